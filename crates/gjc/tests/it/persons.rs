//! Commands that a person runs beside the conversation (`!cmd`, the command `bash` of RPC).

use crate::kit::*;
use serde_json::{Value, json};
use std::path::Path;
use testkit::anthropic::Turn;
use testkit::harness::{Home, Running};
use testkit::stub::{Gate, Stub};

fn rpc<'h>(home: &'h Home, stub: &Stub) -> Running<'h> {
    on(home, stub).args(["--mode", "rpc"]).spawn()
}

fn bash(id: &str, command: &str, hidden: bool) -> String {
    json!({"id": id, "command": {"type": "bash", "command": command, "exclude_from_context": hidden}}).to_string()
}

fn command(kind: &str) -> String {
    json!({"id": kind, "command": {"type": kind}}).to_string()
}

fn prompt(words: &str) -> String {
    json!({"id": "p", "command": {"type": "prompt", "parts": [{"text": words, "origin": "typed"}]}}).to_string()
}

#[track_caller]
fn line(run: &mut Running<'_>, fits: impl Fn(&Value) -> bool) -> Value {
    let line = run.wait_for(|line| fits(&serde_json::from_str(line).unwrap()));
    serde_json::from_str(&line).unwrap()
}

fn is_execution(event: &Value) -> bool {
    event["type"] == "message" && event["message"]["role"] == "bashExecution"
}

fn executions(session: &Path) -> Vec<Value> {
    lines(session).into_iter().filter(|line| line["message"]["role"] == "bashExecution").collect()
}

#[test]
fn the_model_hears_what_a_person_ran_and_not_what_they_kept_to_themselves() {
    let home = Home::new();
    let stub = stub([text("봤습니다")]);
    let mut run = rpc(&home, &stub);
    run.send(&bash("1", "echo 한글 출력; exit 3", false));
    let reply = line(&mut run, |line| line["id"] == "1");
    assert_eq!(reply["outcome"], "accepted");
    assert_eq!(line(&mut run, |event| event["type"] == "bash_started")["command"], "echo 한글 출력; exit 3");
    let told = line(&mut run, is_execution)["message"].clone();
    assert_eq!((&told["command"], &told["exitCode"]), (&json!("echo 한글 출력; exit 3"), &json!(3)));
    assert!(told["output"] == "한글 출력\n", "{told}");
    assert_eq!((&told["cancelled"], &told["truncated"]), (&json!(false), &json!(false)));
    run.send(&bash("2", "echo 나만 볼 것; printenv ANTHROPIC_API_KEY; echo $?", true));
    line(&mut run, is_execution);
    run.send(&prompt("뭐가 나왔어?"));
    line(&mut run, |event| event["type"] == "turn_ended");
    let out = run.wait().ok();
    assert!(!out.out().contains(KEY), "no secret of the process reaches a session");
    let request = String::from_utf8(stub.requests()[0].body.clone()).unwrap();
    assert!(
        request.contains("Ran `echo 한글 출력; exit 3`") && request.contains("Command exited with code 3"),
        "{request}"
    );
    assert!(!request.contains("나만 볼 것"), "{request}");
    let file = the_session(&home);
    let stored = executions(&file);
    assert_eq!(stored.len(), 2);
    assert_eq!(stored[0]["gjcLabel"]["t"], false, "nobody vouches for what a command prints: {}", stored[0]);
    assert_eq!(stored[0]["message"]["excludeFromContext"], Value::Null);
    assert_eq!(stored[1]["message"]["excludeFromContext"], true);
    look(&home, &["sessions", "verify", &id_of(&file)]).output().ok();
}

#[test]
fn it_is_not_in_the_sandbox_runs_alone_and_can_be_aborted() {
    let home = Home::new();
    let stub = stub([text("네")]);
    let outside = home.tmp().join("밖");
    let mut run = rpc(&home, &stub);
    run.send(&bash("1", &format!("echo x > '{}'; echo 시작; echo $$ > pid; exec sleep 600", outside.display()), false));
    line(&mut run, |event| event["type"] == "bash_progress");
    run.send(&bash("2", "true", false));
    assert_eq!(line(&mut run, |line| line["id"] == "2")["code"], "command_running");
    run.send(&command("abort_bash"));
    let told = line(&mut run, is_execution)["message"].clone();
    assert_eq!((&told["cancelled"], &told["exitCode"]), (&json!(true), &Value::Null));
    assert!(outside.exists());
    run.send(&command("abort_bash"));
    assert_eq!(line(&mut run, |line| line["id"] == "abort_bash")["code"], "nothing_running");
    run.send(&bash("3", " ", false));
    assert_eq!(line(&mut run, |line| line["id"] == "3")["code"], "bad_command");
    // A session of which no model knows yet is not on disk.
    run.send(&prompt("x"));
    line(&mut run, |event| event["type"] == "turn_ended");
    // The end of the session is its end as well.
    run.send(&bash("4", "echo 다시; sleep 600", false));
    line(&mut run, |event| event["type"] == "bash_progress");
    run.send(&command("close"));
    run.wait().ok();
    let stored = executions(&the_session(&home));
    assert_eq!((stored.len(), &stored[1]["message"]["cancelled"]), (2, &json!(true)));
}

#[test]
fn while_a_call_waits_for_its_result_the_output_waits_too() {
    let home = Home::new();
    let gate = Gate::new();
    let call =
        Turn::new("m").tool_call("c", "bash", &json!({"command": "while [ ! -e go ]; do sleep 0.02; done; echo 결과"}));
    let last = text("끝");
    let stub = replies([call.reply(), last.reply().gate_at(last.event_ends()[0], &gate)]);
    let mut run = rpc(&home, &stub);
    run.send(&prompt("x"));
    line(&mut run, |event| event["type"] == "tool_started");
    run.send(&bash("1", "echo 사람의 것; touch go", false));
    stub.wait_for_requests(2, LIMIT);
    gate.open();
    line(&mut run, |event| event["type"] == "turn_ended");
    run.wait().ok();
    let roles: Vec<Value> = messages(&the_session(&home)).iter().map(|message| message["role"].clone()).collect();
    let call = roles.iter().position(|role| role == "assistant").unwrap();
    assert_eq!(roles[call + 1], "toolResult", "{roles:?}");
    assert_eq!(roles.iter().filter(|role| *role == "bashExecution").count(), 1, "{roles:?}");
}

#[test]
fn the_session_is_pi_s_too_and_all_of_a_long_output_is_named() {
    let home = Home::new();
    let stub =
        stub([text("봤습니다"), Turn::new("m").tool_call("r", "read", &json!({"path": "artifact://1"})), text("끝")]);
    let mut run = rpc(&home, &stub);
    run.send(&bash("1", "seq 1 20000; echo 끝줄", false));
    let told = line(&mut run, is_execution)["message"].clone();
    assert_eq!(told["truncated"], true);
    assert!(told["output"].as_str().unwrap().contains("is artifact://1 (the file "), "{told}");
    let whole = std::fs::read_to_string(told["fullOutputPath"].as_str().unwrap()).unwrap();
    assert!(whole.starts_with("1\n2\n") && whole.ends_with("20000\n끝줄\n"));
    run.send(&prompt("x"));
    line(&mut run, |event| event["type"] == "turn_ended");
    run.wait().ok();
    let file = the_session(&home);
    if let Some(read) = testkit::pi::read(&file) {
        assert!(read.to_string().contains("bashExecution") && read.to_string().contains("끝줄"), "{read}");
    }
    // A process that did not run it knows what it is worth.
    ask(&home, &stub, "읽어 줘").args(["--resume", &id_of(&file)]).output().ok();
    let result = lines(&file).into_iter().rfind(|line| line["message"]["role"] == "toolResult").unwrap();
    assert!(result["message"]["content"][0]["text"].as_str().unwrap().starts_with("     1\t1\n"), "{result}");
    assert_eq!(result["gjcLabel"]["t"], false);
}

/// Without any model.
#[test]
fn what_a_person_ran_is_in_a_file_although_no_model_has_answered() {
    let home = Home::new();
    let stub = stub([]);
    let mut run = rpc(&home, &stub);
    run.send(&bash("1", "echo 내 출력", false));
    line(&mut run, is_execution);
    run.send(&command("close"));
    let out = run.wait().ok();
    assert!(out.out().contains("\"stored\":true"), "{out}");
    assert_eq!(executions(&the_session(&home)).len(), 1);
}
