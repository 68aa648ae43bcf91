//! The other ways from session to session over RPC: fork, branch, move, delete; and the tree, names and the report.

use crate::kit::*;
use crate::switching::{call, done, event, file_of, no_reply_but, refused, rpc, said_in, say};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use testkit::anthropic::Turn;
use testkit::harness::{Home, Running};
use testkit::stub::{Gate, Stub};

/// A process whose session has had one exchange, and its file.
fn begun<'h>(home: &'h Home, stub: &Stub) -> (Running<'h>, PathBuf) {
    let mut run = rpc(home, stub);
    let first = file_of(&event(&mut run, "session"));
    say(&mut run, "1", "첫째 물음");
    (run, first)
}

fn entry(path: &Path, text: &str) -> String {
    let line = lines(path).into_iter().find(|line| line["message"]["content"][0]["text"] == text);
    line.unwrap_or_else(|| panic!("nobody said {text}"))["id"].as_str().unwrap().to_owned()
}

/// The texts that pi 0.73.1 hears of a session, if it is here; its id and leaf are those of the file.
fn heard_by_pi(path: &Path) -> Option<Vec<String>> {
    let heard = testkit::pi::read(path)?;
    assert_eq!(heard["sessionId"], id_of(path));
    let text = |message: &Value| message["content"][0]["text"].as_str().unwrap_or_default().to_owned();
    Some(heard["messages"].as_array().unwrap().iter().map(text).collect())
}

fn trashed(home: &Home) -> Vec<PathBuf> {
    let files = walk(&home.agent_dir().join("trash"));
    files.into_iter().filter(|path| path.extension().is_some_and(|end| end == "jsonl")).collect()
}

#[test]
fn a_fork_goes_on_under_an_id_of_its_own_and_the_parent_stays_as_it_is() {
    let home = Home::new();
    let stub = stub([text("첫째 답"), text("둘째 답"), text("셋째 답")]);
    let (mut run, first) = begun(&home, &stub);
    let artifact = first.with_extension("").join("쪽지.txt");
    fs::create_dir_all(artifact.parent().unwrap()).unwrap();
    fs::write(&artifact, "곁에 둔 것").unwrap();
    let before = fs::read(&first).unwrap();
    let value = done(call(&mut run, "2", &json!({"type": "fork"})));
    let fork = file_of(&value);
    let switched = event(&mut run, "switched");
    assert_eq!((&switched["reason"], &switched["resumed"]), (&json!("fork"), &json!(true)));
    // K38: what is said from now on is said in the copy alone.
    say(&mut run, "3", "둘째 물음");
    run.close_stdin();
    run.wait().ok();
    assert_eq!(fs::read(&first).unwrap(), before);
    assert_eq!(said_in(&fork), ["첫째 물음", "첫째 답", "둘째 물음", "둘째 답"]);
    let header = &lines(&fork)[0];
    assert_eq!((&header["parentSession"], &header["cwd"]), (&json!(id_of(&first)), &lines(&first)[0]["cwd"]));
    assert!(header["id"] != id_of(&first) && fork.to_string_lossy().contains(&id_of(&fork)));
    assert_eq!(fs::read_to_string(fork.with_extension("").join("쪽지.txt")).unwrap(), "곁에 둔 것");
    let copied = |path: &Path| lines(path).into_iter().skip(1).map(|line| line["id"].clone()).collect::<Vec<_>>();
    assert_eq!(copied(&fork)[..copied(&first).len()], copied(&first));
    assert_eq!(heard_by_pi(&fork).unwrap_or_else(|| said_in(&fork)), said_in(&fork));
}

#[test]
fn the_prompt_of_a_fork_is_said_in_the_fork_alone() {
    let home = Home::new();
    let write = Turn::new("m").tool_call("c", "bash", &json!({"command": "echo 한 번 >> written"}));
    let stub = stub([text("첫째 답"), write, text("썼다")]);
    let (mut run, first) = begun(&home, &stub);
    let before = fs::read(&first).unwrap();
    let fork = json!({"type": "fork", "prompt": [{"text": "파일에 써 줘", "origin": "typed"}]});
    let fork = file_of(&done(call(&mut run, "2", &fork)));
    event(&mut run, "turn_ended");
    run.close_stdin();
    run.wait().ok();
    // K39
    assert_eq!(fs::read_to_string(home.work().join("written")).unwrap(), "한 번\n");
    assert_eq!(fs::read(&first).unwrap(), before);
    assert!(said_in(&fork).contains(&"파일에 써 줘".to_owned()));
    assert_eq!(stub.requests().len(), 3);
}

#[test]
fn what_cannot_be_copied_says_why() {
    let home = Home::new();
    let gate = Gate::new();
    let answer = text("천천히 온 답").reply();
    let held = answer.body_len() / 2;
    let stub = replies([text("첫째 답").reply(), answer.gate_at(held, &gate)]);
    let mut run = rpc(&home, &stub);
    let first = file_of(&event(&mut run, "session"));
    let ways = |entry: &str| {
        [
            ("forking", "forked", json!({"type": "fork"})),
            ("branching", "branched", json!({"type": "branch", "entry": entry})),
            ("moving", "moved", json!({"type": "move_session", "to": ".."})),
        ]
    };
    for (_, _, way) in ways("00000001") {
        refused(&call(&mut run, "a", &way), "not_saved", "Session has not been saved yet");
    }
    say(&mut run, "1", "첫째 물음");
    let message = entry(&first, "첫째 물음");
    let prompt = json!({"type": "prompt", "parts": [{"text": "둘째 물음", "origin": "typed"}]});
    assert_eq!(call(&mut run, "2", &prompt)["outcome"], "accepted");
    stub.wait_for_requests(2, LIMIT);
    for (wait, _, way) in ways(&message) {
        let sentence = format!("Wait for the current response to finish or abort it before {wait}.");
        refused(&call(&mut run, "b", &way), "busy", &sentence);
    }
    gate.open();
    event(&mut run, "turn_ended");
    run.close_stdin();
    run.wait().ok();
    assert_eq!(session_files(&home), std::slice::from_ref(&first));
    assert_eq!(said_in(&first).len(), 4);

    let stub = self::stub([text("답")]);
    let mut run = on(&home, &stub).args(["--mode", "rpc", "--no-session"]).spawn();
    event(&mut run, "session");
    say(&mut run, "1", "기억에만");
    for (_, done, way) in ways(&message) {
        let sentence = format!("a session in memory (--no-session) cannot be {done}");
        refused(&call(&mut run, "c", &way), "in_memory", &sentence);
    }
    let delete = json!({"type": "delete_session", "confirm": true});
    refused(&call(&mut run, "d", &delete), "in_memory", "No session file to delete (in-memory session)");
    run.close_stdin();
    run.wait().ok();
}

#[test]
fn a_branch_begins_before_a_message_and_gives_its_words_back() {
    let home = Home::new();
    let stub = stub([text("첫째 답"), text("둘째 답"), text("다른 답")]);
    let (mut run, first) = begun(&home, &stub);
    say(&mut run, "2", "둘째 물음");
    let place = entry(&first, "첫째 답");
    done(call(&mut run, "3", &json!({"type": "label", "target": place, "label": "갈림길"})));
    let before = fs::read(&first).unwrap();
    let branch = json!({"type": "branch", "entry": entry(&first, "둘째 물음")});
    let value = done(call(&mut run, "4", &branch));
    assert_eq!(value["text"], "둘째 물음");
    assert_eq!(event(&mut run, "switched")["reason"], "branch");
    let tree = done(call(&mut run, "5", &json!({"type": "tree", "filter": "labeled_only"})));
    assert_eq!((&tree["nodes"][0]["id"], &tree["nodes"][0]["label"]), (&json!(place), &json!("갈림길")), "{tree}");
    say(&mut run, "6", "다른 물음");
    run.close_stdin();
    run.wait().ok();
    let branched = file_of(&value);
    assert_eq!(fs::read(&first).unwrap(), before);
    let said = ["첫째 물음", "첫째 답", "다른 물음", "다른 답"];
    assert_eq!(said_in(&branched), said);
    assert_eq!(heard_by_pi(&branched).unwrap_or_else(|| said_in(&branched)), said);
    assert!(!lines(&branched)[0]["parentSession"].as_str().unwrap().is_empty());
}

#[test]
fn a_branch_at_the_first_message_is_a_session_with_its_own_id_and_parent() {
    let home = Home::new();
    let stub = stub([text("첫째 답"), text("새 답")]);
    let (mut run, first) = begun(&home, &stub);
    let value = done(call(&mut run, "2", &json!({"type": "branch", "entry": entry(&first, "첫째 물음")})));
    assert_eq!(value["text"], "첫째 물음");
    let branched = file_of(&value);
    assert!(!branched.exists(), "it has no answer yet");
    say(&mut run, "3", "새 물음");
    run.close_stdin();
    run.wait().ok();
    // K40
    let header = &lines(&branched)[0];
    assert_eq!(header["id"], value["session"]);
    assert!(branched.to_string_lossy().ends_with(&format!("_{}.jsonl", id_of(&branched))));
    let parent = header["parentSession"].as_str().unwrap();
    assert!(parent == first.to_string_lossy() || parent == id_of(&first), "{parent}");
    assert_eq!(said_in(&branched), ["새 물음", "새 답"]);
}

/// What a fresh branch says of itself is what is on the disk, and what works of it does at once.
#[test]
fn a_fresh_branch_is_as_stored_as_it_says() {
    let home = Home::new();
    let stub = stub([text("첫째 답"), text("둘째 답")]);
    let (mut run, first) = begun(&home, &stub);
    say(&mut run, "2", "둘째 물음");
    let (begins, goes_on) = (entry(&first, "첫째 물음"), entry(&first, "둘째 물음"));
    let value = done(call(&mut run, "3", &json!({"type": "branch", "entry": goes_on})));
    let report = done(call(&mut run, "4", &json!({"type": "session"})));
    assert!(report["stored"] == false || file_of(&value).is_file(), "{report}");
    let page = done(call(&mut run, "5", &json!({"type": "export", "path": "가지.html"})));
    let page = fs::read_to_string(page["page"].as_str().unwrap()).unwrap();
    assert!(page.contains("첫째 답") && !page.contains("둘째 답"));
    assert_eq!(done(call(&mut run, "6", &json!({"type": "session"})))["stored"], true);
    assert_eq!(said_in(&file_of(&value)), ["첫째 물음", "첫째 답"]);
    done(call(&mut run, "7", &json!({"type": "switch", "session": first})));
    let value = done(call(&mut run, "8", &json!({"type": "branch", "entry": begins})));
    assert_eq!(done(call(&mut run, "9", &json!({"type": "session"})))["stored"], false);
    assert!(!file_of(&value).exists());
    for (id, kind) in [("10", "export"), ("11", "share")] {
        assert_eq!(call(&mut run, id, &json!({"type": kind}))["code"], "nothing_stored");
    }
    run.close_stdin();
    run.wait().ok();
}

#[test]
fn only_a_message_of_a_person_can_be_branched_at() {
    let home = Home::new();
    let stub = stub([text("첫째 답")]);
    let (mut run, first) = begun(&home, &stub);
    for id in [entry(&first, "첫째 답"), "ffffffff".into()] {
        let reply = call(&mut run, "2", &json!({"type": "branch", "entry": id}));
        refused(&reply, "invalid_entry", "Invalid entry ID for branching");
    }
    run.close_stdin();
    run.wait().ok();
    assert_eq!(session_files(&home), [first]);
}

#[test]
fn a_session_moves_to_another_folder_and_its_old_file_to_the_trash() {
    let home = Home::new();
    let stub = stub([text("첫째 답"), text("둘째 답")]);
    let (mut run, first) = begun(&home, &stub);
    let there = home.work().parent().unwrap().join("옮긴 곳");
    fs::create_dir(&there).unwrap();
    let (id, bytes) = (id_of(&first), fs::read(&first).unwrap());
    fs::create_dir_all(first.with_extension("")).unwrap();
    fs::write(first.with_extension("").join("쪽지.txt"), "곁에 둔 것").unwrap();
    home.forget(&first);
    let reply = call(&mut run, "2", &json!({"type": "move_session", "to": home.work().display().to_string()}));
    assert!(reply["outcome"] == "refused" && reply["sentence"].to_string().contains("already"), "{reply}");
    refused(&call(&mut run, "3", &json!({"type": "move_session", "to": "../없는 곳"})), "not_switched", "없는 곳");
    let value = done(call(&mut run, "4", &json!({"type": "move_session", "to": "../옮긴 곳"})));
    let moved = file_of(&value);
    let switched = event(&mut run, "switched");
    assert_eq!((&switched["reason"], &switched["cwd"]), (&json!("move"), &json!(there.display().to_string())));
    say(&mut run, "5", "둘째 물음");
    run.close_stdin();
    run.wait().ok();
    assert!(!first.exists() && moved.exists());
    assert_eq!((id_of(&moved), &lines(&moved)[0]["cwd"]), (id.clone(), &json!(there.display().to_string())));
    assert_eq!(said_in(&moved).len(), 4);
    assert_eq!(fs::read_to_string(moved.with_extension("").join("쪽지.txt")).unwrap(), "곁에 둔 것");
    // The file itself was never written again.
    let old = trashed(&home);
    assert_eq!(old.len(), 1, "{old:?}");
    assert_eq!(fs::read(&old[0]).unwrap(), bytes);
    let list = json(&look(&home, &["sessions", "list", "--json"]).cwd(&there).output().ok());
    assert_eq!((list["sessions"].as_array().unwrap().len(), &list["sessions"][0]["id"]), (1, &json!(id)), "{list}");
}

#[test]
fn a_session_is_deleted_only_after_a_yes_and_a_new_one_takes_its_place() {
    let home = Home::new();
    let stub = stub([text("첫째 답"), text("둘째 답")]);
    let (mut run, first) = begun(&home, &stub);
    let (id, bytes) = (id_of(&first), fs::read(&first).unwrap());
    refused(&call(&mut run, "2", &json!({"type": "delete_session"})), "not_confirmed", "only after a yes");
    assert!(first.exists());
    home.forget(&first);
    let value = done(call(&mut run, "3", &json!({"type": "delete_session", "confirm": true})));
    assert_eq!(value["switched"], true);
    assert!(Path::new(value["deleted"].as_str().unwrap()).exists() && !first.exists(), "{value}");
    say(&mut run, "4", "둘째 물음");
    let second = file_of(&value);
    // One that is open elsewhere, or here, is told apart from others by its id.
    let unknown = json!({"type": "delete_session", "session": "없는것", "confirm": true});
    refused(&call(&mut run, "5", &unknown), "not_found", "Session \"없는것\" not found.");
    run.close_stdin();
    run.wait().ok();
    assert_eq!(fs::read(&trashed(&home)[0]).unwrap(), bytes);
    assert_eq!(said_in(&second), ["둘째 물음", "둘째 답"]);
    look(&home, &["sessions", "restore", &id]).output().ok();
    assert_eq!(fs::read(&first).unwrap(), bytes);
}

#[test]
fn the_tree_shows_every_branch_and_the_leaf_moves_in_it() {
    let home = Home::new();
    let stub = stub([text("첫째 답"), text("둘째 답"), text("셋째 답")]);
    let (mut run, first) = begun(&home, &stub);
    say(&mut run, "2", "둘째 물음");
    let (answer, second) = (entry(&first, "첫째 답"), entry(&first, "둘째 물음"));
    let moved = done(call(&mut run, "3", &json!({"type": "move_leaf", "to": second})));
    assert_eq!((&moved["leaf"], &moved["text"]), (&json!(answer), &json!("둘째 물음")));
    say(&mut run, "4", "셋째 물음");
    done(call(&mut run, "5", &json!({"type": "label", "target": answer, "label": "여기서"})));
    let tree = done(call(&mut run, "6", &json!({"type": "tree"})));
    let nodes = tree["nodes"].as_array().unwrap();
    let shown: Vec<(&str, bool)> =
        nodes.iter().map(|node| (node["preview"].as_str().unwrap(), node["active"] == true)).collect();
    let all = [
        ("첫째 물음", true),
        ("첫째 답", true),
        ("둘째 물음", false),
        ("둘째 답", false),
        ("셋째 물음", true),
        ("셋째 답", true),
    ];
    assert_eq!(shown, all);
    assert_eq!(
        (&nodes[1]["label"], &nodes[2]["parent"], &nodes[4]["parent"]),
        (&json!("여기서"), &json!(answer), &json!(answer))
    );
    let total = |run: &mut Running<'_>, filter: &str| {
        done(call(run, filter, &json!({"type": "tree", "filter": filter})))["total"].as_u64().unwrap()
    };
    assert_eq!((total(&mut run, "user_only"), total(&mut run, "labeled_only"), total(&mut run, "no_tools")), (3, 1, 6));
    assert!(total(&mut run, "all") > 6);
    let part = done(call(&mut run, "7", &json!({"type": "tree", "from": 2, "limit": 1})));
    assert_eq!((part["nodes"].as_array().unwrap().len(), &part["nodes"][0]["id"]), (1, &json!(second)));
    let unknown = call(&mut run, "8", &json!({"type": "move_leaf", "to": "ffffffff"}));
    assert_eq!(unknown["code"], "unknown_entry", "{unknown}");
    run.close_stdin();
    run.wait().ok();
    let said = ["첫째 물음", "첫째 답", "셋째 물음", "셋째 답"];
    assert_eq!(heard_by_pi(&first).unwrap_or_else(|| said.map(Into::into).into()), said);
}

#[test]
fn a_name_and_what_the_session_is() {
    let home = Home::new();
    let stub = stub([text("첫째 답")]);
    let (mut run, first) = begun(&home, &stub);
    refused(
        &call(&mut run, "2", &json!({"type": "rename", "name": " \n\t"})),
        "empty_name",
        "Session name cannot be empty.",
    );
    let named = done(call(&mut run, "3", &json!({"type": "rename", "name": " 인증\n 고치기 "})));
    assert_eq!(named["name"], "인증 고치기");
    assert_eq!(event(&mut run, "renamed")["name"], "인증 고치기");
    let report = done(call(&mut run, "4", &json!({"type": "session"})));
    assert_eq!((&report["id"], &report["name"]), (&json!(id_of(&first)), &json!("인증 고치기")), "{report}");
    assert_eq!((&report["messages"], &report["calls"]), (&json!({"user": 1, "assistant": 1}), &json!(0)), "{report}");
    assert_eq!((&report["stored"], file_of(&report)), (&json!(true), first.clone()));
    run.close_stdin();
    run.wait().ok();
    assert_eq!(heard_by_pi(&first).unwrap_or_else(|| said_in(&first)), said_in(&first));
    let list = json(&look(&home, &["sessions", "list", "--json"]).output().ok());
    assert_eq!(list["sessions"][0]["title"], "인증 고치기", "{list}");
}

#[test]
fn a_session_that_nobody_can_mean_is_not_gone_to() {
    let home = Home::new();
    let stub = stub([text("첫째 답"), text("둘째 답")]);
    let (mut run, first) = begun(&home, &stub);
    let work = home.work().display().to_string();
    for n in 1..=2 {
        let id = format!("0197a0c2-0000-7000-8000-00000000000{n}");
        let text = header(&id, &work) + &user("0000000a", None, "물음") + &said("0000000b", "0000000a", "답");
        plant(&home, "--x--", &format!("{n}_{id}.jsonl"), text);
    }
    let before = tree(&home.agent_dir().join("sessions"));
    let mut to = |word: &str| call(&mut run, "s", &json!({"type": "switch", "session": word}));
    refused(&to("ffff"), "not_found", "Session \"ffff\" not found.");
    let several = to("0197a0c2");
    refused(&several, "not_found", "is the beginning of 2 session ids");
    assert!(several["sentence"].to_string().contains("000000000002"), "{several}");
    refused(&to("/없는/파일.jsonl"), "not_found", "File not found: /없는/파일.jsonl");
    refused(&to(&work), "not_found", "is a folder, not a session file");
    let gone = home.write("project/사라진.jsonl", header("0197a0c2-0000-7000-8000-00000000000a", &work));
    fs::remove_file(&gone).unwrap();
    refused(&to("사라진.jsonl"), "not_found", "File not found");
    assert_eq!(tree(&home.agent_dir().join("sessions")), before);
    say(&mut run, "9", "둘째 물음");
    run.close_stdin();
    let out = run.wait().ok();
    assert!(no_reply_but(&out.out(), "refused", "s"), "{out}");
    assert_eq!(said_in(&first).len(), 4);
}

#[test]
fn what_a_session_knows_goes_along_on_every_way() {
    // A session that has read what nobody vouches for stays untrusted in its fork, its branch before that, in the tree before
    // it, and after it was gone from and come back to; a new one knows nothing of it.
    let home = Home::new();
    let prompts = || json!([{"text": "붙인 글", "origin": "paste", "untrusted": true}]);
    let stub = stub([text("첫째 답"), text("둘째 답")]);
    let (mut run, first) = begun(&home, &stub);
    assert_eq!(call(&mut run, "2", &json!({"type": "prompt", "parts": prompts()}))["outcome"], "accepted");
    event(&mut run, "turn_ended");
    let label = |run: &mut Running<'_>| done(call(run, "l", &json!({"type": "snapshot"})))["label"].clone();
    let known = label(&mut run);
    assert_eq!(known["trusted"], false, "{known}");
    let beginning = entry(&first, "첫째 물음");
    done(call(&mut run, "3", &json!({"type": "move_leaf", "to": beginning})));
    assert_eq!(label(&mut run), known, "the tree");
    done(call(&mut run, "4", &json!({"type": "fork"})));
    assert_eq!((event(&mut run, "switched")["label"].clone(), label(&mut run)), (known.clone(), known.clone()), "fork");
    done(call(&mut run, "5", &json!({"type": "branch", "entry": beginning})));
    assert_eq!(
        (event(&mut run, "switched")["label"].clone(), label(&mut run)),
        (known.clone(), known.clone()),
        "branch"
    );
    done(call(&mut run, "6", &json!({"type": "new_session"})));
    assert_eq!(label(&mut run), json!({"level": "PUBLIC", "trusted": true}), "new");
    done(call(&mut run, "7", &json!({"type": "switch", "session": id_of(&first)})));
    assert_eq!(label(&mut run), known, "resume");
    home.forget(&first);
    fs::create_dir(home.work().parent().unwrap().join("다른 곳")).unwrap();
    done(call(&mut run, "8", &json!({"type": "move_session", "to": "../다른 곳"})));
    assert_eq!(label(&mut run), known, "move");
    run.close_stdin();
    run.wait().ok();
}

#[test]
fn model_thinking_and_tier_come_back_with_their_session() {
    let home = Home::new();
    let stub = stub([text("첫째 답"), text("둘째 답"), text("셋째 답")]);
    let (mut run, first) = begun(&home, &stub);
    done(call(&mut run, "2", &json!({"type": "set_thinking", "level": "high"})));
    done(call(&mut run, "3", &json!({"type": "set_model", "model": "anthropic/claude-stub-2"})));
    done(call(&mut run, "tier", &json!({"type": "set_tier", "tier": "priority"})));
    say(&mut run, "4", "둘째 물음");
    done(call(&mut run, "5", &json!({"type": "new_session"})));
    let new = done(call(&mut run, "6", &json!({"type": "snapshot"})));
    assert_eq!((&new["model"]["model"], &new["thinking"]), (&json!("claude-stub-1"), &json!("off")));
    assert_ne!(new["tier"], "priority");
    done(call(&mut run, "7", &json!({"type": "switch", "session": id_of(&first)})));
    let back = done(call(&mut run, "8", &json!({"type": "snapshot"})));
    assert_eq!((&back["model"]["model"], &back["thinking"]), (&json!("claude-stub-2"), &json!("high")));
    assert_eq!(back["tier"], "priority");
    say(&mut run, "9", "셋째 물음");
    run.close_stdin();
    run.wait().ok();
    assert_eq!(stub.requests()[2].json()["model"], "claude-stub-2");
}
