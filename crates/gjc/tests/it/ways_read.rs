//! What the ways from session to session leave behind: files that pi reads as we do, children where they were, and everything
//! in the folder that a person has named for sessions.

use crate::failing_storage::Small;
use crate::kit::*;
use crate::switching::{call, done, event, file_of, refused, rpc, said_in, say};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use testkit::anthropic::Turn;
use testkit::harness::{Home, Running};
use testkit::stub::Stub;

const ONE: &str = "0197a0c2-0000-7000-8000-000000000001";
const TWO: &str = "0198b0c2-0000-7000-8000-000000000002";

/// The entry of a session file that says this.
#[track_caller]
fn entry(path: &Path, text: &str) -> String {
    let line = lines(path).into_iter().find(|line| line["message"]["content"][0]["text"] == text);
    line.unwrap_or_else(|| panic!("nobody said {text}"))["id"].as_str().unwrap().to_owned()
}

/// JSON with every number as a float: JavaScript has no others.
fn same_numbers(value: &Value) -> Value {
    match value {
        Value::Number(number) => number.as_f64().unwrap().into(),
        Value::Array(items) => items.iter().map(same_numbers).collect(),
        Value::Object(fields) => fields.iter().map(|(key, value)| (key.clone(), same_numbers(value))).collect(),
        other => other.clone(),
    }
}

/// Fails unless pi 0.73.1 finds the same session in a file as we do: id, folder, leaf and the whole context of it.
#[track_caller]
fn is_pi_s_too(home: &Home, file: &Path, last: &str) {
    let ours = json(&look(home, &["context", "show", file.to_str().unwrap(), "--json"]).output().ok());
    let messages = ours["messages"].as_array().unwrap();
    assert_eq!(messages.last().unwrap()["content"][0]["text"], last, "{ours}");
    let Some(pi) = testkit::pi::read(file) else { return };
    assert_eq!((&pi["leafId"], &pi["sessionId"]), (&ours["at"], &ours["session"]));
    assert_eq!((&pi["sessionId"], &pi["cwd"]), (&lines(file)[0]["id"], &lines(file)[0]["cwd"]));
    assert_eq!(same_numbers(&pi["messages"]), same_numbers(&ours["messages"]));
}

/// A process whose sessions lie in a folder of a person's own.
fn rpc_in<'h>(home: &'h Home, stub: &Stub, dir: &str) -> Running<'h> {
    on(home, stub).args(["--mode", "rpc", "--session-dir", dir]).spawn()
}

/// The sessions of a flat folder.
fn sessions_of(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|end| end == "jsonl")).collect();
    files.sort();
    files
}

#[test]
fn pi_finds_the_same_leaf_and_context_in_each_file_that_a_way_has_made() {
    let home = Home::new();
    let call_of = Turn::new("m1").text("봅니다").tool_call("c1", "bash", &json!({"command": "echo 결과"}));
    let answers = ["첫째 답", "둘째 답", "옮긴 자리의 답", "이름 붙인 답", "갈래의 답", "가지의 답", "옮긴 폴더의 답"];
    let stub = stub(std::iter::once(call_of).chain(answers.map(text)));
    let mut run = rpc(&home, &stub);
    let first = file_of(&event(&mut run, "session"));
    say(&mut run, "1", "첫째 물음");
    say(&mut run, "2", "둘째 물음");
    is_pi_s_too(&home, &first, "둘째 답");

    // The leaf moves, and the next message begins another branch.
    let second = entry(&first, "둘째 물음");
    done(call(&mut run, "3", &json!({"type": "move_leaf", "to": second})));
    done(call(&mut run, "4", &json!({"type": "label", "target": second, "label": "갈림길"})));
    say(&mut run, "5", "다른 물음");
    is_pi_s_too(&home, &first, "옮긴 자리의 답");

    done(call(&mut run, "6", &json!({"type": "rename", "name": "인증 고치기"})));
    is_pi_s_too(&home, &first, "옮긴 자리의 답");
    say(&mut run, "7", "이름 뒤 물음");
    is_pi_s_too(&home, &first, "이름 붙인 답");

    let fork = file_of(&done(call(&mut run, "8", &json!({"type": "fork"}))));
    is_pi_s_too(&home, &fork, "이름 붙인 답");
    say(&mut run, "9", "갈래의 물음");
    is_pi_s_too(&home, &fork, "갈래의 답");

    let branch = json!({"type": "branch", "entry": entry(&fork, "갈래의 물음")});
    let branch = file_of(&done(call(&mut run, "10", &branch)));
    say(&mut run, "11", "가지의 물음");
    is_pi_s_too(&home, &branch, "가지의 답");

    fs::create_dir(root(&home).join("옮긴 폴더")).unwrap();
    home.forget(&branch);
    let moved = file_of(&done(call(&mut run, "12", &json!({"type": "move_session", "to": "../옮긴 폴더"}))));
    is_pi_s_too(&home, &moved, "가지의 답");
    say(&mut run, "13", "옮긴 폴더의 물음");
    is_pi_s_too(&home, &moved, "옮긴 폴더의 답");
    run.close_stdin();
    run.wait().ok();
    is_pi_s_too(&home, &first, "이름 붙인 답");
    for file in [&first, &fork, &moved] {
        look(&home, &["sessions", "verify", file.to_str().unwrap()]).output().ok();
    }
}

#[test]
fn children_stay_with_the_session_that_had_them_however_many_there_are() {
    // K41
    let home = Home::new();
    let stub = stub([text("첫째 답"), text("둘째 답")]);
    let mut run = rpc(&home, &stub);
    let first = file_of(&event(&mut run, "session"));
    say(&mut run, "1", "첫째 물음");
    let folder = first.with_extension("");
    fs::create_dir_all(&folder).unwrap();
    for n in 0..200 {
        let id = format!("0198c0c2-0000-7000-8000-{n:012}");
        let child = header(&id, "/p") + &user("0000000a", None, "정찰해 줘") + &said("0000000b", "0000000a", "봤다");
        fs::write(folder.join(format!("{n}-정찰.jsonl")), child).unwrap();
    }
    fs::write(folder.join("1.bash.log"), "긴 출력").unwrap();
    let before = tree(&folder);
    let fork = file_of(&done(call(&mut run, "2", &json!({"type": "fork"}))));
    say(&mut run, "3", "둘째 물음");
    run.close_stdin();
    run.wait().ok();
    assert_eq!(tree(&folder), before);
    let beside: Vec<PathBuf> = walk(&fork.with_extension(""));
    assert_eq!(beside, [fork.with_extension("").join("1.bash.log")]);
    // They are found where they are, by the id and by the task.
    let name = format!("{}/7-정찰", id_of(&first));
    let shown = json(&look(&home, &["sessions", "show", &name, "--json"]).output().ok());
    assert_eq!(shown["id"], "0198c0c2-0000-7000-8000-000000000007");
}

#[test]
fn every_way_stays_in_the_folder_that_a_person_named_for_sessions() {
    let home = Home::new();
    let work = home.work().display().to_string();
    let dir = root(&home).join("내 세션");
    fs::create_dir(&dir).unwrap();
    let session = |id: &str| header(id, &work) + &user("0000000a", None, "물음") + &said("0000000b", "0000000a", "답");
    let usual = plant(&home, "--bucket--", &format!("{ONE}.jsonl"), session(ONE));
    let own = dir.join(format!("{TWO}.jsonl"));
    fs::write(&own, session(TWO)).unwrap();
    let stub = stub(["하나", "둘", "셋", "넷", "다섯"].map(text));
    let mut run = rpc_in(&home, &stub, "../내 세션");
    event(&mut run, "session");
    say(&mut run, "1", "첫째 물음");

    // Sessions of the usual place are not among them, but a path leads to them.
    let to = |word: &str| json!({"type": "switch", "session": word});
    refused(&call(&mut run, "2", &to(&ONE[..8])), "not_found", &format!("Session \"{}\" not found.", &ONE[..8]));
    assert_eq!(file_of(&done(call(&mut run, "3", &to(&TWO[..8])))), own);
    say(&mut run, "4", "이어서");
    assert_eq!(file_of(&done(call(&mut run, "5", &json!({"type": "fork"})))).parent(), Some(&*dir));
    let message = entry(&own, "이어서");
    let branch = file_of(&done(call(&mut run, "6", &json!({"type": "branch", "entry": message}))));
    say(&mut run, "7", "가지에서");
    assert_eq!(branch.parent(), Some(&*dir));
    let new = file_of(&done(call(&mut run, "8", &json!({"type": "new_session"}))));
    say(&mut run, "9", "새로");
    assert_eq!((new.parent(), said_in(&new).len()), (Some(&*dir), 2));
    let gone = json!({"type": "delete_session", "session": TWO, "confirm": true});
    let gone = done(call(&mut run, "10", &gone));
    assert!(gone["switched"] == false && !own.exists() && Path::new(gone["deleted"].as_str().unwrap()).exists());
    assert_eq!(done(call(&mut run, "11", &to(usual.to_str().unwrap())))["session"], ONE);
    run.close_stdin();
    run.wait().ok();
    assert_eq!((session_files(&home), sessions_of(&dir).len()), (vec![usual], 4));
}

#[test]
fn a_session_of_an_old_version_goes_on_in_the_folder_that_a_person_named() {
    let home = Home::new();
    let dir = root(&home).join("내 세션");
    fs::create_dir(&dir).unwrap();
    let old = header(ONE, &home.work().display().to_string()).replace("\"version\":3", "\"version\":2")
        + &user("0000000a", None, "옛 물음")
        + &said("0000000b", "0000000a", "옛 답");
    let file = dir.join(format!("{ONE}.jsonl"));
    fs::write(&file, &old).unwrap();
    let stub = stub([text("새 답")]);
    let mut run = rpc_in(&home, &stub, "../내 세션");
    event(&mut run, "session");
    let copy = file_of(&done(call(&mut run, "1", &json!({"type": "switch", "session": ONE}))));
    say(&mut run, "2", "새 물음");
    run.close_stdin();
    run.wait().ok();
    assert_eq!(
        (copy.parent(), said_in(&copy)),
        (Some(&*dir), ["옛 물음", "옛 답", "새 물음", "새 답"].map(Into::into).into())
    );
    assert_eq!((fs::read_to_string(&file).unwrap(), session_files(&home)), (old, Vec::new()));
}

#[test]
fn a_session_without_messages_is_not_gone_to_by_its_id_but_can_be_put_away() {
    let home = Home::new();
    let stub = stub([text("첫째 답"), text("둘째 답")]);
    let empty = plant(&home, "--x--", &format!("{ONE}.jsonl"), header(ONE, &home.work().display().to_string()));
    let mut run = rpc(&home, &stub);
    let first = file_of(&event(&mut run, "session"));
    say(&mut run, "1", "첫째 물음");
    let to = call(&mut run, "2", &json!({"type": "switch", "session": ONE}));
    refused(&to, "not_found", &format!("Session \"{ONE}\" has no messages: there is nothing to go on with."));
    say(&mut run, "3", "둘째 물음");
    home.forget(&empty);
    done(call(&mut run, "4", &json!({"type": "delete_session", "session": ONE, "confirm": true})));
    run.close_stdin();
    run.wait().ok();
    assert!(!empty.exists());
    assert_eq!(said_in(&first).len(), 4);
}

#[test]
fn each_filter_of_the_tree_shows_its_own() {
    let home = Home::new();
    let call_of = Turn::new("m1").text("봅니다").tool_call("c1", "bash", &json!({"command": "echo 결과"}));
    let alone = Turn::new("m2").tool_call("c2", "bash", &json!({"command": "echo 둘"}));
    let stub = stub([call_of, alone, text("끝났다")]);
    let mut run = rpc(&home, &stub);
    let first = file_of(&event(&mut run, "session"));
    say(&mut run, "1", "해 줘");
    let answer = entry(&first, "끝났다");
    done(call(&mut run, "2", &json!({"type": "label", "target": answer, "label": "여기까지"})));
    let mut shown = |filter: &str| -> Vec<String> {
        let tree = done(call(&mut run, filter, &json!({"type": "tree", "filter": filter})));
        let nodes = tree["nodes"].as_array().unwrap();
        assert_eq!(tree["total"].as_u64().unwrap() as usize, nodes.len(), "{tree}");
        // What stands above a place in the filtered view is shown too.
        for node in nodes {
            let parent = &node["parent"];
            assert!(parent.is_null() || nodes.iter().any(|other| other["id"] == *parent), "{filter}: {node}");
        }
        nodes.iter().map(|node| node["id"].as_str().unwrap().to_owned()).collect()
    };
    let of = |role: &str| -> Vec<String> {
        let lines = lines(&first).into_iter().filter(|line| line["message"]["role"] == role);
        lines.map(|line| line["id"].as_str().unwrap().to_owned()).collect()
    };
    let (users, answers, results) = (of("user"), of("assistant"), of("toolResult"));
    assert_eq!((users.len(), answers.len(), results.len()), (1, 3, 2));
    assert_eq!(shown("user_only"), users);
    assert_eq!(shown("labeled_only"), [answer.as_str()]);
    // An answer that is a call alone says nothing.
    assert_eq!(shown("no_tools"), [&users[0], &answers[0], &answers[2]].map(Clone::clone));
    assert_eq!(shown("default"), [&users[0], &answers[0], &results[0], &results[1], &answers[2]].map(Clone::clone));
    let all = lines(&first).into_iter().skip(1).filter(|line| line["id"].is_string()).count();
    assert_eq!(shown("all").len(), all);
    run.close_stdin();
    run.wait().ok();
}

#[test]
fn a_session_that_cannot_be_stored_is_not_left_on_any_way() {
    let home = Home::new();
    let Some(small) = Small::mount(home.path().join("small"), "1m") else { return };
    let stub = stub(["첫째 답", "둘째 답", "셋째 답"].map(text));
    let mut run = on(&home, &stub).args(["--mode", "rpc"]).env("GJC_CODING_AGENT_DIR", &small.0).spawn();
    let first = file_of(&event(&mut run, "session"));
    say(&mut run, "1", "첫째 물음");
    let message = entry(&first, "첫째 물음");
    let there = root(&home).join("다른 곳");
    fs::create_dir(&there).unwrap();
    let files = || -> Vec<PathBuf> {
        walk(&small.0).into_iter().filter(|path| path.extension().is_some_and(|end| end == "jsonl")).collect()
    };
    let before = files();
    let filler = small.fill();
    // More than the last block of the file still holds.
    for n in 0..60 {
        let label = format!("{n}번째 {}", "이름 ".repeat(20));
        call(&mut run, "2", &json!({"type": "label", "target": message, "label": label}));
    }
    let ways = [
        json!({"type": "new_session"}),
        json!({"type": "fork", "prompt": [{"text": "갈래에서만", "origin": "typed"}]}),
        json!({"type": "branch", "entry": message}),
        json!({"type": "move_session", "to": "../다른 곳"}),
        json!({"type": "delete_session", "confirm": true}),
    ];
    for way in &ways {
        refused(&call(&mut run, "3", way), "not_stored", "so it is not left; it goes on");
    }
    assert_eq!(files(), before);
    fs::remove_file(filler).unwrap();
    say(&mut run, "4", "둘째 물음");
    // Nothing that was said to this session was lost, and now it can be left.
    done(call(&mut run, "5", &ways[0]));
    say(&mut run, "6", "셋째 물음");
    run.close_stdin();
    run.wait();
    assert_eq!(said_in(&first), ["첫째 물음", "첫째 답", "둘째 물음", "둘째 답"]);
    assert_eq!(lines(&first).iter().filter(|line| line["type"] == "label").count(), 60);
    assert_eq!(stub.requests().len(), 3);
    // They go with their disk.
    for file in files() {
        home.forget(&file);
    }
}
