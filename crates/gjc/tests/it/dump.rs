//! The dump of a live session and of a file.

use crate::kit::*;
use serde_json::{Value, json};
use testkit::harness::{Home, Running};

fn value(run: &mut Running<'_>, id: &str) -> Value {
    let line = run.wait_for(|line| line.contains(&format!("\"id\":\"{id}\"")));
    serde_json::from_str(&line).unwrap()
}

fn send(run: &mut Running<'_>, id: &str, command: Value) {
    run.send(&json!({ "id": id, "command": command }).to_string());
}

#[test]
fn a_session_in_memory_is_dumped_too_and_nothing_changes() {
    let home = Home::new();
    let stub = stub([text("메모리의 대답")]);
    let mut run = on(&home, &stub).args(["--mode", "rpc", "--no-session", "--thinking", "high"]).spawn();
    send(&mut run, "1", json!({"type": "prompt", "parts": [{"text": "메모리의 물음", "origin": "typed"}]}));
    run.wait_for(|line| line.contains("\"turn_ended\""));
    let before = tree(&home.agent_dir());
    send(&mut run, "2", json!({"type": "dump"}));
    send(&mut run, "3", json!({"type": "dump"}));
    let (first, again) = (value(&mut run, "2"), value(&mut run, "3"));
    assert_eq!(first["value"], again["value"], "the same state, the same bytes");
    assert_eq!(tree(&home.agent_dir()), before);
    let text = first["value"]["text"].as_str().unwrap();
    for part in [
        "model: anthropic/claude-stub-1",
        "thinking: high",
        "── system prompt",
        "── tool read",
        "메모리의 물음",
        "메모리의 대답",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains(KEY));
    run.close_stdin();
    run.wait().ok();
    assert!(session_files(&home).is_empty());
}

#[test]
fn a_stored_session_is_shown_as_it_was_when_it_ran() {
    let home = Home::new();
    let stub = stub([text("대답이다")]);
    let mut run = on(&home, &stub).args(["--mode", "rpc"]).spawn();
    send(&mut run, "1", json!({"type": "prompt", "parts": [{"text": "물음이다", "origin": "typed"}]}));
    run.wait_for(|line| line.contains("\"turn_ended\""));
    send(&mut run, "2", json!({"type": "dump"}));
    let live = value(&mut run, "2")["value"]["text"].as_str().unwrap().to_owned();
    run.close_stdin();
    run.wait().ok();
    let file = the_session(&home);
    let shown = look(&home, &["sessions", "show", "--full"]).arg(&file).output().ok();
    assert_eq!(shown.out(), live);
}
