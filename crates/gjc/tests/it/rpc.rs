//! `--mode rpc`: commands in, replies and events out.

use crate::kit::*;
use crate::rebuilt::assert_rebuilt;
use gjc_protocol::{Event, Reply, Snapshot, StepName};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::Instant;
use testkit::anthropic::Turn;
use testkit::harness::{Home, Output, Running};
use testkit::stub::{Gate, Reply as Answer, Stub};

fn start<'h>(home: &'h Home, stub: &Stub) -> Running<'h> {
    on(home, stub).args(["--mode", "rpc"]).spawn()
}

fn prompt(id: &str, text: &str) -> String {
    json!({"id": id, "command": {"type": "prompt", "parts": [{"text": text, "origin": "typed"}]}}).to_string()
}

fn command(id: &str, kind: &str) -> String {
    json!({"id": id, "command": {"type": kind}}).to_string()
}

/// The reply to a command.
#[track_caller]
fn reply(run: &mut Running<'_>, id: &str) -> Value {
    let mut found = Value::Null;
    run.wait_for(|line| {
        let value: Value = serde_json::from_str(line).unwrap();
        let ours = value["id"] == id && !value["outcome"].is_null();
        if ours {
            found = value;
        }
        ours
    });
    found
}

#[track_caller]
fn event(run: &mut Running<'_>, kind: &str) -> Value {
    let line = run.wait_for(|line| serde_json::from_str::<Value>(line).unwrap()["type"] == kind);
    serde_json::from_str(&line).unwrap()
}

/// (replies, events) of a whole run; every line is one of both, and the last one is `closed`.
fn split(out: &Output) -> (Vec<Reply>, Vec<Event>) {
    let (mut replies, mut events) = (Vec::new(), Vec::new());
    for line in out.out().lines() {
        let value: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        if value["seq"].is_null() {
            replies.push(serde_json::from_value(value).unwrap_or_else(|e| panic!("{e}: {line}")));
        } else {
            events.push(serde_json::from_value(value).unwrap_or_else(|e| panic!("{e}: {line}")));
        }
    }
    assert_eq!(out.out().lines().filter(|line| line.contains(r#""type":"closed""#)).count(), 1, "{out}");
    assert!(out.out().lines().last().unwrap().contains(r#""type":"closed""#), "{out}");
    (replies, events)
}

#[test]
fn a_conversation() {
    let home = Home::new();
    let stub = stub([text("하나"), text("둘")]);
    let mut run = start(&home, &stub);
    event(&mut run, "session");
    run.send(&prompt("1", "첫째"));
    assert_eq!(reply(&mut run, "1")["outcome"], "accepted");
    event(&mut run, "turn_ended");
    run.send(&prompt("2", "둘째"));
    event(&mut run, "turn_ended");
    run.send(&command("3", "snapshot"));
    let snapshot: Snapshot = serde_json::from_value(reply(&mut run, "3")["value"].clone()).unwrap();
    assert_eq!((snapshot.step, snapshot.messages.len(), snapshot.queue.len()), (StepName::Idle, 4, 0));
    run.send(&command("4", "close"));
    let closed = reply(&mut run, "4");
    assert_eq!((&closed["outcome"], &closed["value"]["stored"]), (&json!("done"), &json!(true)));
    let out = run.wait().ok();
    let (replies, _) = split(&out);
    let ids: Vec<String> = replies.iter().map(|reply| reply.id.as_ref().unwrap().0.clone()).collect();
    assert_eq!(ids, ["1", "2", "3", "4"]);
    assert_eq!(messages(&the_session(&home)).len(), 4);
}

#[test]
fn what_is_said_while_the_model_speaks_enters_at_the_next_step() {
    let home = Home::new();
    let gate = Gate::new();
    let first = Turn::new("m1").text("일합니다").tool_call("c1", "bash", &json!({"command": "true"}));
    let half = first.event_ends()[3];
    let stub = replies([first.reply().gate_at(half, &gate), text("알겠습니다").reply()]);
    let mut run = start(&home, &stub);
    run.send(&prompt("1", "시작"));
    event(&mut run, "text_delta");
    run.send(&prompt("2", "아니, 이렇게"));
    run.send(&prompt("3", "거두어질 말"));
    reply(&mut run, "3");
    run.send(&command("4", "snapshot"));
    let snapshot: Snapshot = serde_json::from_value(reply(&mut run, "4")["value"].clone()).unwrap();
    assert_eq!(snapshot.step, StepName::Streaming);
    assert_eq!(
        snapshot.queue.iter().map(|queued| queued.text.as_str()).collect::<Vec<_>>(),
        ["아니, 이렇게", "거두어질 말"]
    );
    assert!(snapshot.partial.unwrap().message["content"][0]["text"].as_str().unwrap().starts_with("일합니다"));
    run.send(&command("5", "unqueue"));
    assert_eq!(reply(&mut run, "5")["value"]["text"], "거두어질 말");
    gate.open();
    event(&mut run, "turn_ended");
    run.send(&command("6", "unqueue"));
    assert_eq!(reply(&mut run, "6")["code"], "nothing_queued");
    run.close_stdin();
    run.wait().ok();
    let body = stub.requests()[1].json();
    let last = body["messages"].as_array().unwrap().last().unwrap()["content"].to_string();
    assert!(last.contains("tool_result") && last.contains("아니, 이렇게"), "{last}");
    let said: Vec<_> = messages(&the_session(&home)).iter().map(|m| m["role"].as_str().unwrap().to_owned()).collect();
    assert_eq!(said, ["user", "assistant", "toolResult", "user", "assistant"]);
    assert_rebuilt(&home, &stub, &the_session(&home), &[0, 1]);
}

#[test]
fn an_abort_ends_the_turn_and_keeps_what_came() {
    let home = Home::new();
    let turn = text("여기까지 그리고 더");
    let stub = replies([turn.reply().gate_at(turn.event_ends()[3], &Gate::new()), text("다음").reply()]);
    let mut run = start(&home, &stub);
    run.send(&command("0", "abort"));
    assert_eq!(reply(&mut run, "0")["code"], "nothing_running");
    run.send(&prompt("1", "x"));
    event(&mut run, "text_delta");
    run.send(&command("2", "abort"));
    assert_eq!(reply(&mut run, "2")["outcome"], "accepted");
    assert_eq!(event(&mut run, "turn_ended")["end"], "aborted");
    stub.wait_for_hang_up(0, LIMIT);
    run.send(&prompt("3", "계속"));
    assert_eq!(event(&mut run, "turn_ended")["end"], "done");
    run.close_stdin();
    run.wait().ok();
    let kept = &answers(&the_session(&home))[0].1;
    assert_eq!((&kept["stopReason"], &kept["content"][0]["text"]), (&json!("aborted"), &json!("여기까지 그리고")));
    assert_rebuilt(&home, &stub, &the_session(&home), &[0, 1]);
}

#[test]
fn each_bad_line_has_one_reply_and_does_no_harm() {
    let home = Home::new();
    let stub = stub([text("네")]);
    let mut run = start(&home, &stub);
    let bad = [
        "not json",
        "[]",
        r#"{"id":"b3","command":{"type":"fly"}}"#,
        r#"{"command":{"type":"abort"}}"#,
        r#"{"id":7,"command":{"type":"abort"}}"#,
        r#"{"id":"b6","command":{"type":"prompt","parts":[]}}"#,
        r#"{"id":"b7","command":{"type":"prompt","parts":[{"text":"x","origin":"tool"}]}}"#,
        r#"{"id":"b8","command":{"type":"abort"},"extra":1}"#,
    ];
    for line in bad {
        run.send(line);
    }
    run.send("");
    run.send(&prompt("good", "x"));
    event(&mut run, "turn_ended");
    run.close_stdin();
    let out = run.wait().ok();
    let replies: Vec<&str> = Vec::from_iter(out.out().leak().lines().filter(|line| line.contains(r#""outcome""#)));
    assert_eq!(replies.len(), bad.len() + 1, "{replies:#?}");
    steady(&home, || insta::assert_snapshot!(replies.join("\n")));
    assert_eq!(messages(&the_session(&home)).len(), 2);
}

#[test]
fn the_end_of_the_input_waits_for_what_runs() {
    let home = Home::new();
    let gate = Gate::new();
    let turn = text("끝까지 갑니다");
    let stub = replies([turn.reply().gate_at(turn.event_ends()[3], &gate)]);
    let mut run = start(&home, &stub);
    run.send(&prompt("1", "x"));
    event(&mut run, "text_delta");
    run.close_stdin();
    gate.open();
    let out = run.wait().ok();
    let (_, events) = split(&out);
    assert!(events.len() > 4);
    assert_eq!(messages(&the_session(&home))[1]["content"][0]["text"], "끝까지 갑니다");
}

#[test]
fn a_session_without_a_word_leaves_no_file() {
    let home = Home::new();
    let stub = stub([]);
    let mut run = start(&home, &stub);
    event(&mut run, "session");
    run.close_stdin();
    run.wait().ok();
    assert!(session_files(&home).is_empty());
}

/// gjc with a stdout that nobody reads yet, and a prompt on its way.
fn unread(home: &Home, stub: &Stub, args: &[&str], stdin: &str) -> Child {
    let mut child = Command::new(env!("CARGO_BIN_EXE_gjc"))
        .args(["--model", "anthropic/x", "--provider-url", &stub.url()])
        .args(args)
        .env_clear()
        .env("HOME", home.path())
        .env("GJC_CODING_AGENT_DIR", home.agent_dir())
        .current_dir(home.work())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    child.stdin.as_mut().unwrap().write_all(stdin.as_bytes()).unwrap();
    child
}

/// Waits until the session file ends in a whole answer.
#[track_caller]
fn wait_until_answered(home: &Home) {
    let until = Instant::now() + LIMIT;
    let answered = || {
        let bytes = session_files(home).first().map(|file| std::fs::read(file).unwrap()).unwrap_or_default();
        bytes.ends_with(b"\n") && String::from_utf8_lossy(&bytes).contains(r#""role":"assistant""#)
    };
    while !answered() {
        assert!(Instant::now() < until, "the answer was not stored within {LIMIT:?}");
        std::thread::yield_now();
    }
}

#[test]
fn a_reader_that_stops_reading_does_not_stop_the_session_from_being_stored() {
    let home = Home::new();
    // Far more than a pipe holds (64 KiB), in many events.
    let long = "긴 글입니다. ".repeat(40_000);
    let stub = replies([crate::kit::long(&long)]);
    let mut child = unread(&home, &stub, &["--mode", "rpc"], &format!("{}\n", prompt("1", "x")));
    wait_until_answered(&home);
    // SIGKILL: nothing is written at the end that was not written before.
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(messages(&the_session(&home))[1]["content"][0]["text"], long);
}

/// So many events that cannot be merged that some are dropped for a face that does not read; it is told so, and the run
/// ends as it should once it reads again.
#[test]
fn a_reader_that_was_too_slow_is_told_to_look_again() {
    for (args, stdin) in
        [(&["--mode", "rpc"][..], format!("{}\n", prompt("1", "x"))), (&["--mode", "json"], "x".into())]
    {
        let home = Home::new();
        let many = (0..6000).fold(Turn::new("m"), |turn, n| turn.text(&format!("토막 {n}")).delta_chars(100));
        let stub = replies([Answer::sse(many.sse())]);
        let mut child = unread(&home, &stub, args, &stdin);
        drop(child.stdin.take());
        wait_until_answered(&home);
        let mut out = String::new();
        child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0), "{args:?}");
        let kinds: Vec<Value> =
            out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["type"].clone()).collect();
        assert_eq!(kinds.last().unwrap(), "closed", "{args:?}");
        assert!(kinds.contains(&json!("resync")), "{args:?}: nothing was dropped, so the test shows nothing");
    }
}

#[test]
fn a_termination_closes_the_session_in_order() {
    let home = Home::new();
    let turn = text("여기까지 그리고 더");
    let stub = replies([turn.reply().gate_at(turn.event_ends()[3], &Gate::new())]);
    let mut run = start(&home, &stub);
    run.send(&prompt("1", "x"));
    event(&mut run, "text_delta");
    run.terminate();
    let line = run.wait_for(|line| line.contains(r#""type":"closed""#));
    assert!(line.contains("seq"), "{line}");
    let out = run.wait();
    assert_eq!(out.code(), Some(130), "{out}");
    split(&out);
    assert_eq!(answers(&the_session(&home))[0].1["stopReason"], "aborted");
}
