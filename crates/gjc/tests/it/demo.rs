//! `gjc demo`: the tour, what it leaves, and what another program of the family makes of its session.

use crate::kit::*;
use serde_json::Value;
use std::path::PathBuf;
use testkit::grown::Watch;
use testkit::harness::Home;

#[test]
fn the_tour() {
    let home = Home::new();
    let dir = home.work().join("둘러보기");
    let before = tree(&root(&home));
    let out = look(&home, &["demo", "--dir", dir.to_str().unwrap()]).output().ok();
    assert_eq!(out.err(), "");
    steady(&home, || {
        let mut settings = insta::Settings::clone_current();
        // Sizes follow from the lengths of paths and ids of this run.
        settings.add_filter(r"jsonl: \d+ bytes", "jsonl: [n] bytes");
        settings.add_filter(r" +\d+ bytes were sent", " [n] bytes were sent");
        settings.add_filter(r"/\S+/gjc ", "[gjc] ");
        settings.add_filter(r"\d+ bytes were added", "[n] bytes were added");
        settings.add_filter(r"\d+ bytes were moved", "[n] bytes were moved");
        settings.bind(|| insta::assert_snapshot!(out.out()));
    });
    let outside: Vec<PathBuf> =
        tree(&root(&home)).into_keys().filter(|path| !before.contains_key(path) && !path.starts_with(&dir)).collect();
    assert!(outside.is_empty(), "{outside:?}");
    let notes = std::fs::read_to_string(dir.join("work/notes.md")).unwrap();
    assert!(notes.contains("run commands") && notes.contains("명령 실행"), "{notes}");
    // The same folder a second time is refused, and nothing in it changes.
    let left = tree(&dir);
    let again = look(&home, &["demo", "--dir", dir.to_str().unwrap()]).output();
    assert_eq!((again.code(), again.out().as_str()), (Some(2), ""));
    steady(&home, || insta::assert_snapshot!("again", again.err()));
    assert_eq!(tree(&dir), left);
}

/// The demo's session file.
fn session(home: &Home) -> PathBuf {
    let dir = home.work().join("d");
    let out = look(home, &["demo", "--quiet", "--dir", dir.to_str().unwrap()]).output().ok();
    let path = PathBuf::from(out.out().trim_end());
    assert_eq!(out.out(), format!("{}\n", path.display()), "the path alone");
    assert!(path.starts_with(dir.join("agent/sessions")), "{out}");
    path
}

#[test]
fn without_a_folder_it_makes_one_among_the_temporary_ones() {
    let home = Home::new();
    let out = look(&home, &["demo"]).output().ok();
    assert!(out.out().contains(&format!("Everything happens in {}/gjc-demo-", home.tmp().display())), "{out}");
    assert!(walk(&home.path()).is_empty());
}

#[test]
fn its_session_is_sound_and_every_request_can_be_rebuilt() {
    let home = Home::new();
    let file = session(&home);
    let path = file.to_str().unwrap();
    let mut watch = Watch::new(file.parent().unwrap());
    look(&home, &["sessions", "verify", path]).output().ok();
    let agent = home.work().join("d/agent");
    let answers = answers(&file);
    assert_eq!(answers.len(), 6);
    for (entry, _) in &answers {
        let out =
            look(&home, &["context", "request", path, "--at", entry]).env("GJC_CODING_AGENT_DIR", &agent).output().ok();
        let body = json(&out);
        assert!(!body["messages"].as_array().unwrap().is_empty());
    }
    // A session that the tour made is one like any other: it goes on, and only grows.
    let stub = stub([text("이어서")]);
    ask(&home, &stub, "계속").env("GJC_CODING_AGENT_DIR", &agent).args(["--resume", path]).output().ok();
    watch.check();
}

/// 0 and 0.0 are one number in JSON, and two for serde.
fn same_numbers(value: &Value) -> Value {
    match value {
        Value::Number(number) => number.as_f64().unwrap().into(),
        Value::Array(items) => items.iter().map(same_numbers).collect(),
        Value::Object(fields) => fields.iter().map(|(key, value)| (key.clone(), same_numbers(value))).collect(),
        other => other.clone(),
    }
}

#[test]
fn its_session_is_pi_s_session_too() {
    let home = Home::new();
    let file = session(&home);
    let ours = json(&look(&home, &["context", "show", file.to_str().unwrap(), "--json"]).output().ok());
    let Some(pi) = testkit::pi::read(&file) else { return };
    assert_eq!(pi["leafId"], ours["at"]);
    assert_eq!(pi["sessionId"], ours["session"]);
    assert_eq!(pi["cwd"], lines(&file)[0]["cwd"]);
    assert_eq!(pi["entries"].as_u64().unwrap() as usize, lines(&file).len() - 1);
    let (pi, ours) = (pi["messages"].as_array().unwrap(), ours["messages"].as_array().unwrap());
    let said = |messages: &[Value]| -> Vec<(Value, Value)> {
        messages.iter().map(|message| (message["role"].clone(), message["content"].clone())).collect()
    };
    assert_eq!(said(pi), said(ours));
    assert_eq!(same_numbers(&pi.clone().into()), same_numbers(&ours.clone().into()), "and every other field");
}

#[test]
fn a_session_with_all_kinds_of_blocks_is_pi_s_session_too() {
    let home = Home::new();
    let turn = testkit::anthropic::Turn::new("m1")
        .thinking("생각", "sig==")
        .redacted_thinking("b3BhcXVl")
        .text("읽습니다")
        .tool_call("c1", "read", &serde_json::json!({"path": "없다"}))
        .tool_call("c2", "bash", &serde_json::json!({"command": "echo 하나"}));
    let broken = text("끊긴 답");
    let stub = replies([turn.reply(), text("끝").reply(), broken.reply().cut_at(broken.event_ends()[3])]);
    ask(&home, &stub, "첫째").output().ok();
    let file = the_session(&home);
    ask(&home, &stub, "둘째").args(["--resume", &id_of(&file), "--tools", "read"]).output();
    let ours = json(&look(&home, &["context", "show", file.to_str().unwrap(), "--json"]).output().ok());
    let Some(pi) = testkit::pi::read(&file) else { return };
    assert_eq!(pi["leafId"], ours["at"]);
    assert_eq!(same_numbers(&pi["messages"]), same_numbers(&ours["messages"]));
}
