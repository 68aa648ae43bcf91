//! What `session.durability` means, told apart by the moment of the first sync: the process dies there, by its own hand.

use crate::kit::*;
use serde_json::json;
use testkit::anthropic::Turn;
use testkit::harness::{Home, Output};
use testkit::stub::{Gate, Reply, Stub};

/// A session whose file is on the disk already, under its name, and its id.
fn begun(durability: &str) -> (Home, String) {
    let home = Home::new();
    ask(&home, &stub([text("처음")]), "x").output().ok();
    let id = id_of(&the_session(&home));
    home.write("project/메모.md", "한글\n");
    home.write("home/.gjc/agent/config.yml", format!("session:\n  durability: {durability}\n"));
    (home, id)
}

/// Goes on with it for one turn: a tool is called, then there is an answer. The process dies when it is about to sync lines for
/// the first time.
fn dies_at_its_first_sync(durability: &str, first: Reply) -> (Output, Stub) {
    let (home, id) = begun(durability);
    let stub = replies([first, text("끝").reply()]);
    let run = ask(&home, &stub, "y").args(["--resume", &id, "--mode", "json"]);
    let out = run.env("GJC_FP", "log.sync.data=kill").output();
    assert_eq!(out.signal, Some(9), "{durability}: {out}");
    keeps_the_prompt(&home);
    (out, stub)
}

/// Whatever was not synced: the death of the process itself loses nothing.
#[track_caller]
fn keeps_the_prompt(home: &Home) {
    let kept = messages(&the_session(home)).into_iter().any(|message| message.to_string().contains("\"y\""));
    assert!(kept, "the prompt is gone");
}

fn reads() -> Reply {
    Turn::new("m").tool_call("c", "read", &json!({"path": "메모.md"})).reply()
}

fn shows(out: &Output, kind: &str) -> bool {
    out.out().lines().any(|line| line.contains(&format!(r#""type":"{kind}""#)))
}

#[test]
fn entry_syncs_what_a_person_said_without_waiting_for_an_answer() {
    // No answer ever comes, so nothing but the prompt's own entry can be what is synced.
    let (out, stub) = dies_at_its_first_sync("entry", reads().gate_at(0, &Gate::new()));
    assert!(!shows(&out, "tool_started") && stub.requests().len() <= 1, "{out}");
}

#[test]
fn turn_syncs_at_the_end_of_a_turn_and_before_it_is_called_ended() {
    let (out, stub) = dies_at_its_first_sync("turn", reads());
    assert_eq!(stub.requests().len(), 2, "nothing was synced before the last answer: {out}");
    assert!(shows(&out, "tool_ended") && !shows(&out, "turn_ended"), "{out}");
}

#[test]
fn turn_syncs_before_a_tool_acts_outside() {
    let acts = Turn::new("m").tool_call("c", "bash", &json!({"command": "echo 네 > ../acted"})).reply();
    let (out, stub) = dies_at_its_first_sync("turn", acts);
    assert_eq!(stub.requests().len(), 1, "{out}");
    assert!(!shows(&out, "tool_ended"), "{out}");
}

#[test]
fn none_syncs_when_the_session_is_closed_and_no_sooner() {
    let (home, id) = begun("none");
    let stub = replies([text("하나").reply(), reads(), text("끝").reply()]);
    // The first turn of a process is an exception: the file is made safe under its name.
    let run = on(&home, &stub).args(["--mode", "rpc", "--resume", &id]);
    let mut run = run.env("GJC_FP", "2:log.sync.data=kill").spawn();
    for (id, said) in [("1", "x"), ("2", "y")] {
        let parts = json!([{"text": said, "origin": "typed"}]);
        run.send(&json!({"id": id, "command": {"type": "prompt", "parts": parts}}).to_string());
        run.wait_for(|line| line.contains(r#""type":"turn_ended""#));
    }
    assert_eq!(stub.requests().len(), 3);
    run.close_stdin();
    let out = run.wait();
    assert_eq!(out.signal, Some(9), "{out}");
    keeps_the_prompt(&home);
}
