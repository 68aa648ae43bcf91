//! `gjc sessions list --subagents` and `gjc sessions search`: what they say, and that they change nothing but the index.

use crate::kit::*;
use serde_json::{Value, json};
use testkit::harness::{Home, Output};

const ONE: &str = "0197a0c2-0000-7000-8000-000000000001";
const TWO: &str = "0197a0c2-0000-7000-8000-000000000002";

/// Two sessions of two folders, one of them with a branch that was left, and a subagent.
fn home() -> Home {
    let home = Home::new();
    let work = home.work();
    let left = user("0000000c", Some("0000000b"), "버려진 가지의 색인을 고쳐 줘").replace("07:19:00", "07:20:00");
    let other = user("0000000d", Some("0000000b"), "다른 길로").replace("07:19:00", "07:21:00");
    let one = header(ONE, work.to_str().unwrap())
        + &user("0000000a", None, "Worktree를 만들어 줘")
        + &said("0000000b", "0000000a", "세션 목록에서 찾았습니다")
        + &left
        + &other;
    plant(&home, "--p--", "one.jsonl", one);
    let two = header(TWO, "/q")
        + &user("0000000a", None, "세션목록이 느리다")
        + &said("0000000b", "0000000a", "\u{1b}[31m색인을 씁니다");
    plant(&home, "--q--", "two.jsonl", two);
    let child = header("0198c0c2-0000-7000-8000-000000000003", "/p") + &user("0000000a", None, "정찰해 줘");
    plant(&home, "--p--/one", "1-정찰.jsonl", child);
    home
}

#[track_caller]
fn run(home: &Home, args: &[&str]) -> Output {
    look(home, args).output()
}

fn found(out: &Output) -> Vec<String> {
    json(out)["sessions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|found| found["session"]["id"].as_str().unwrap().into())
        .collect()
}

#[test]
fn subagents_are_listed_when_they_are_asked_for_and_found_by_id_and_by_task() {
    let home = home();
    let listed = |args: &[&str]| -> Vec<(Value, Value)> {
        let listed = json(&run(&home, args).ok());
        listed["sessions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|info| (info["id"].clone(), info["subagent"].clone()))
            .collect()
    };
    assert_eq!(listed(&["sessions", "list", "--json"]).len(), 2);
    let name = format!("{ONE}/1-정찰");
    let all = listed(&["sessions", "list", "--subagents", "--json"]);
    assert_eq!(all.len(), 3);
    assert!(all.contains(&(json!("0198c0c2-0000-7000-8000-000000000003"), json!(name))), "{all:?}");
    let out = run(&home, &["sessions", "list", "--subagents"]).ok().out();
    assert!(out.lines().any(|line| line.starts_with(&name) && line.contains("정찰해 줘")), "{out}");
    assert!(!run(&home, &["sessions", "list"]).ok().out().contains("정찰해"));
    for word in ["0198", &name, &format!("{}/1", &ONE[..36])] {
        let shown = json(&run(&home, &["sessions", "show", word, "--json"]).ok());
        assert_eq!(shown["id"], "0198c0c2-0000-7000-8000-000000000003", "{word}");
    }
    let out = run(&home, &["sessions", "show", "0197a0c2/1-정찰", "--json"]);
    assert_eq!(json(&out)["id"], "0198c0c2-0000-7000-8000-000000000003", "only one of them has such a task");
    let out = run(&home, &["sessions", "show", "0197a0c2/2-없음"]);
    assert_eq!(out.code(), Some(1));
    assert!(out.err().contains("File not found: "), "{}", out.err());
}

#[test]
fn a_search_finds_all_words_whatever_the_particles_case_and_order_and_says_where() {
    let home = home();
    for (words, ids) in [
        (&["목록"][..], &[ONE, TWO][..]),
        (&["목록에서", "세션"], &[ONE, TWO]),
        (&["worktree"], &[ONE]),
        (&["WORKTREE는"], &[ONE]),
        (&["색인"], &[ONE, TWO]),
        (&["색인이", "느린"], &[]),
        (&["색인", "느리다"], &[TWO]),
        (&["work tree"], &[]),
        (&["\u{1109}\u{1166}\u{1109}\u{1167}\u{11ab}"], &[ONE, TWO]),
    ] {
        let args = [&["sessions", "search", "--json"], words].concat();
        let out = run(&home, &args);
        assert_eq!(found(&out), ids, "{words:?}");
        assert_eq!(out.code(), Some(i32::from(ids.is_empty())), "{words:?}");
    }
    let out = run(&home, &["sessions", "search", "색인"]).ok().out();
    let lines: Vec<&str> = out.lines().collect();
    assert!(lines[0].starts_with(ONE) && lines[2].starts_with(TWO), "{out}");
    assert_eq!(lines[1], "    user 0000000c (a branch that was left): 버려진 가지의 색인을 고쳐 줘");
    assert_eq!(lines[3], "    assistant 0000000b: [31m색인을 씁니다", "nothing that a terminal obeys");
    let here = json(&run(&home, &["sessions", "search", "--here", "목록", "--json"]).ok());
    assert_eq!(here["sessions"][0]["session"]["id"], ONE);
    assert_eq!((here["sessions"].as_array().unwrap().len(), &here["more"]), (1, &json!(false)));
    assert_eq!(here["sessions"][0]["hits"][0]["label"], json!({"level": "PUBLIC", "trusted": true}));
    assert_eq!(here["sessions"][0]["session"]["label"], json!({"level": "PUBLIC", "trusted": true}));
}

#[test]
fn a_search_for_nothing_or_without_an_end_says_so() {
    let home = home();
    let out = run(&home, &["sessions", "search", "…", "!"]);
    assert_eq!((out.code(), out.out().as_str()), (Some(2), ""));
    assert!(out.err().contains("there is no word to search for in \"… !\""), "{}", out.err());
    let out = run(&home, &["sessions", "search", "없는말"]);
    assert_eq!((out.code(), out.err().as_str()), (Some(1), "No session holds all of these words.\n"));
    let out = run(&home, &["sessions", "search", "--here", "느리다"]);
    assert!(out.err().contains("No session of this folder holds all of these words."), "{}", out.err());
    let out = run(&home, &["sessions", "search", "-n", "1", "목록"]).ok();
    assert_eq!(out.out().lines().filter(|line| !line.starts_with(' ')).count(), 1);
    assert!(
        out.err().contains("There may be more; these are the 1 newest. More: gjc sessions search -n 20"),
        "{}",
        out.err()
    );
    assert_eq!(run(&home, &["sessions", "search"]).code(), Some(2));
}

#[test]
fn no_state_of_the_index_changes_what_list_and_search_say() {
    // A list of so many that it is kept; the file is deleted, filled with noise, held by another process.
    let home = home();
    for n in 0..40 {
        plant(
            &home,
            "--m--",
            &format!("{n}.jsonl"),
            header(&format!("0196-{n}"), "/m") + &user("0000000a", None, &format!("{n}번째 물음")),
        );
    }
    let said = || {
        let asks: [&[&str]; 4] = [
            &["sessions", "list", "--json"],
            &["sessions", "search", "물음", "-n", "100", "--json"],
            &["sessions", "search", "17번째", "--json"],
            &["sessions", "show", "0196-3", "--json"],
        ];
        asks.map(|args| shown(&run(&home, args)))
    };
    let right = said();
    let index = home.agent_dir().join("index.db");
    assert!(index.exists());
    assert_eq!(said(), right, "from the index");
    std::fs::remove_file(&index).unwrap();
    assert_eq!(said(), right, "deleted");
    std::fs::write(&index, "noise 소음 ".repeat(10_000)).unwrap();
    assert_eq!(said(), right, "random bytes");
    let held = rusqlite::Connection::open(&index).unwrap();
    held.execute_batch("BEGIN EXCLUSIVE").unwrap();
    assert_eq!(said(), right, "held by another process");
    held.execute_batch("ROLLBACK").unwrap();
    assert_eq!(said(), right, "afterwards");
}

#[test]
fn a_process_that_stays_fills_the_index_of_words_beside_its_work() {
    let home = home();
    for n in 0..40 {
        let text = header(&format!("0196-{n}"), "/m") + &user("0000000a", None, &format!("{n}번째 물음"));
        plant(&home, "--m--", &format!("{n}.jsonl"), text);
    }
    let stub = stub([]);
    let mut rpc = on(&home, &stub).args(["--mode", "rpc"]).spawn();
    let known = || {
        let db = rusqlite::Connection::open(home.agent_dir().join("index.db")).ok()?;
        db.query_row("SELECT count(*) FROM gjc_words_1 WHERE shard = 0", [], |row| row.get::<_, i64>(0)).ok()
    };
    let began = std::time::Instant::now();
    for n in 0.. {
        rpc.send(&json!({"id": format!("s{n}"), "command": {"type": "snapshot"}}).to_string());
        rpc.wait_for(|line| line.contains(&format!("\"id\":\"s{n}\"")));
        if known() == Some(42) {
            break;
        }
        assert!(began.elapsed().as_secs() < 60, "{:?} sessions are known", known());
    }
    rpc.close_stdin();
    assert_eq!(rpc.wait().code(), Some(0));
    assert_eq!(found(&run(&home, &["sessions", "search", "17번째", "--json"])), ["0196-17"]);
}
