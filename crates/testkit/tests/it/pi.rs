use std::fs;

use serde_json::{Value, json};
use testkit::material;

#[test]
fn pi_reads_a_fixture_as_it_did_when_the_fixture_was_made() {
    let Some(dir) = material::path("fixtures/sessions/pi-0.73.1/by-session-manager") else { return };
    let name = "pi.prompt-cache-replay-session.v1.after-open";
    let file = dir.join(format!("{name}.jsonl"));
    let Some(got) = testkit::pi::read(&file) else { return };
    let want: Value = serde_json::from_slice(&fs::read(dir.join(format!("{name}.context.json"))).unwrap()).unwrap();
    let messages = got["messages"].as_array().unwrap();
    let roles: Vec<&Value> = messages.iter().map(|m| &m["role"]).collect();
    assert_eq!(json!(messages.len()), want["messages"]);
    assert_eq!(json!(roles), want["roles"]);
    assert_eq!((&got["model"], &got["thinkingLevel"]), (&want["model"], &want["thinkingLevel"]));
}

#[test]
fn pi_never_touches_the_file_itself() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("옛.jsonl");
    // Version 1: pi migrates it, and would rewrite it.
    let old = concat!(
        "{\"type\":\"session\",\"id\":\"v1\",\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"cwd\":\"/srv/일\"}\n",
        "{\"type\":\"message\",\"timestamp\":\"2026-01-01T00:00:01.000Z\",\"message\":{\"role\":\"user\",\"content\":\"안녕\",\"timestamp\":1}}\n",
    );
    fs::write(&file, old).unwrap();
    let Some(got) = testkit::pi::read(&file) else { return };
    assert_eq!(fs::read_to_string(&file).unwrap(), old);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    assert_eq!((&got["sessionId"], &got["cwd"], &got["entries"]), (&json!("v1"), &json!("/srv/일"), &json!(1)));
    assert_eq!(got["messages"][0]["content"], "안녕");
    assert!(got["leafId"].is_string());
}
