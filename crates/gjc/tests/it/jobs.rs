//! Background jobs: commands that run beside turns, and how their ends come to the model, each exactly once.

use crate::kit::*;
use serde_json::{Value, json};
use std::path::Path;
use testkit::anthropic::Turn;
use testkit::harness::{Home, Running};
use testkit::process::assert_ended;
use testkit::stub::Stub;

/// An answer that starts a command in the background.
fn start(command: &str) -> Turn {
    Turn::new("m").tool_call("c", "bash", &json!({"command": command, "background": true}))
}

/// An answer that calls `job`.
fn job(input: &Value) -> Turn {
    Turn::new("m").tool_call("j", "job", input)
}

/// A command that notes its process, waits for a file that the test makes, and then says something.
fn gated(said: &str) -> String {
    format!("echo $$ > pid; echo 시작; while [ ! -e go ]; do sleep 0.02; done; {said}")
}

/// Waits for a line, and for the first output of a job: either may come first.
#[track_caller]
fn wait_for_both(run: &mut Running<'_>, other: &str) {
    let (mut shown, mut told) = (false, false);
    run.wait_for(|line| {
        shown |= line.contains("job_progress") && line.contains("시작");
        told |= line.contains(other);
        shown && told
    });
}

/// The process that a gated job has noted.
fn pid(home: &Home) -> String {
    std::fs::read_to_string(home.work().join("pid")).unwrap()
}

/// The lines that deliver an end.
fn deliveries(session: &Path) -> Vec<Value> {
    lines(session).into_iter().filter(|line| line["customType"] == "async-result").collect()
}

fn own(session: &Path, kind: &str) -> Vec<Value> {
    lines(session).into_iter().filter(|line| line["customType"] == kind).collect()
}

fn text_of(line: &Value) -> String {
    line["content"][0]["text"].as_str().unwrap().to_owned()
}

/// The texts of the results of calls, in order.
fn results(session: &Path) -> Vec<String> {
    let of = |message: &Value| message["content"][0]["text"].as_str().unwrap_or_default().to_owned();
    messages(session).iter().filter(|message| message["role"] == "toolResult").map(of).collect()
}

fn body(stub: &Stub, at: usize) -> String {
    String::from_utf8(stub.requests()[at].body.clone()).unwrap()
}

/// What the newest message of a request says.
fn newest(stub: &Stub, at: usize) -> String {
    stub.requests()[at].json()["messages"].as_array().unwrap().last().unwrap().to_string()
}

#[test]
fn one_prompt_waits_for_its_job_and_prints_the_answer_that_knows_its_end() {
    let home = Home::new();
    let stub = stub([start(&gated("echo 한글 결과; exit 3")), text("시작했습니다"), text("끝났습니다")]);
    let mut run = ask(&home, &stub, "빌드해 줘").spawn();
    run.close_stdin();
    stub.wait_for_requests(2, LIMIT);
    home.write("project/go", "");
    let out = run.wait().ok();
    assert_eq!(out.out(), "끝났습니다\n", "one answer: {out}");
    let file = the_session(&home);
    let told = deliveries(&file);
    assert_eq!(told.len(), 1);
    let text = text_of(&told[0]);
    assert!(text.contains("Background job job-1 has ended: failed.") && text.contains("한글 결과"), "{text}");
    assert!(text.contains("[exit code 3]"), "{text}");
    let started = own(&file, "gjc.job");
    assert_eq!((started.len(), &started[0]["data"]["id"]), (1, &json!("job-1")));
    assert_eq!(told[0]["details"]["gjc"]["delivered"], started[0]["data"]["op"]);
    assert_eq!(told[0]["details"]["result"]["exit"], 3);
    // The record is there before the command has begun, the label with what it printed.
    assert_eq!(started[0]["gjcLabel"], Value::Null, "{}", started[0]);
    assert_eq!(told[0]["gjcLabel"]["t"], false, "{}", told[0]);
    assert!(newest(&stub, 2).contains("한글 결과"));
    assert_eq!(
        results(&file),
        ["Started background job job-1. Its end is told to you when it comes; `job` waits for it or ends it."]
    );
    look(&home, &["sessions", "verify", &id_of(&file)]).output().ok();
}

#[test]
fn an_end_that_was_polled_is_not_delivered_again() {
    let home = Home::new();
    let poll = job(&json!({"poll": ["job-1", "job-9"]}));
    let stub = stub([start("echo 한글; echo '```'"), poll, text("다 봤습니다"), text("그다음")]);
    ask(&home, &stub, "x").output().ok();
    let file = the_session(&home);
    let seen = &results(&file)[1];
    assert!(
        seen.contains(
            "## Completed (1)\n\n### job-1 [bash] — completed\nLabel: echo 한글; echo '```'\n````\n한글\n```\n````\n"
        ),
        "{seen}"
    );
    assert!(seen.starts_with("Background job not found: job-9\n"), "{seen}");
    assert_eq!(deliveries(&file).len(), 0);
    assert_eq!(own(&file, "gjc.delivered").len(), 1);
    let result = messages(&file).into_iter().rfind(|message| message["toolName"] == "job").unwrap();
    assert_eq!(result["details"]["gjc"]["delivered"][0], own(&file, "gjc.job")[0]["data"]["op"]);
    let line = lines(&file).into_iter().rfind(|line| line["message"]["toolName"] == "job").unwrap();
    assert_eq!(line["gjcLabel"]["t"], false, "a command's output is nobody's word");
    // Nor by the next process.
    ask(&home, &stub, "y").args(["--resume", &id_of(&file)]).output().ok();
    assert_eq!((deliveries(&file).len(), stub.left()), (0, 0));
    assert!(!body(&stub, 3).contains("interrupted"));
}

#[test]
fn a_poll_that_runs_out_is_an_observation_and_cancel_ends_the_whole_group() {
    let home = Home::new();
    home.write("home/.gjc/agent/config.yml", "async:\n  pollWaitDuration: 1s\n");
    let command = "echo $$ > pid; sleep 600 & echo $! >> pid; echo 자는 중; wait";
    let stub = stub([
        start(command),
        job(&json!({})),
        job(&json!({"list": true})),
        job(&json!({"list": true, "poll": ["job-1"]})),
        job(&json!({"cancel": ["job-1", "없다"]})),
        job(&json!({"cancel": ["job-1"]})),
        job(&json!({"poll": ["없다"]})),
        job(&json!({})),
        text("끝"),
    ]);
    ask(&home, &stub, "x").output().ok();
    let file = the_session(&home);
    let results = results(&file);
    assert!(results[1].starts_with("## Still Running (1)\n\n### job-1 [bash] — running\n"), "{}", results[1]);
    assert!(results[1].contains("The end of its output so far:\n```\n자는 중\n```"), "{}", results[1]);
    assert!(results[2].starts_with("- job-1 [bash] — running: echo $$ > pid;"), "{}", results[2]);
    assert!(results[3].starts_with("job: `list` cannot be combined with `poll` or `cancel`."), "{}", results[3]);
    let ended = &results[4];
    assert!(
        ended.starts_with("Cancelled background job job-1.\nBackground job not found: 없다\n\n## Cancelled (1)\n"),
        "{ended}"
    );
    assert!(ended.contains("### job-1 [bash] — cancelled") && ended.contains("자는 중"), "{ended}");
    assert!(results[5].starts_with("Background job job-1 is already cancelled."), "{}", results[5]);
    assert!(results[6].starts_with("No matching jobs found for IDs: 없다\nhint: there are: job-1"), "{}", results[6]);
    assert_eq!(results[7], "No running background jobs to wait for.");
    let errors: Vec<bool> = messages(&file)
        .iter()
        .filter(|message| message["role"] == "toolResult")
        .map(|message| message["isError"].as_bool().unwrap())
        .collect();
    assert_eq!(errors, [false, false, false, true, false, false, true, false]);
    for pid in pid(&home).lines() {
        assert_ended(pid);
    }
    assert_eq!(deliveries(&file).len(), 0);
}

#[test]
fn no_more_jobs_than_may_run_at_a_time_and_ids_are_never_given_twice() {
    let home = Home::new();
    home.write("home/.gjc/agent/config.yml", "async:\n  maxJobs: 1\n");
    let wait = || job(&json!({"poll": ["job-1"]}));
    let first = stub([
        start(&gated("echo 하나")),
        start("echo 둘"),
        job(&json!({"cancel": ["job-1"]})),
        start("echo 셋"),
        wait(),
        text("끝"),
        text("끝"),
    ]);
    ask(&home, &first, "x").output().ok();
    let file = the_session(&home);
    let results = results(&file);
    assert!(results[0].starts_with("Started background job job-1."), "{}", results[0]);
    assert_eq!(results[1], "Background job limit reached (1). Wait for running jobs to finish or cancel one.");
    assert!(results[3].starts_with("Started background job job-2."), "{}", results[3]);
    let second = stub([start("echo 넷"), job(&json!({"poll": ["job-3"]})), text("끝")]);
    ask(&home, &second, "y").args(["--resume", &id_of(&file)]).output().ok();
    let ids: Vec<Value> = own(&file, "gjc.job").into_iter().map(|line| line["data"]["id"].clone()).collect();
    assert_eq!(ids, ["job-1", "job-2", "job-3"]);
}

#[test]
fn an_interrupt_ends_the_jobs_that_one_prompt_waits_for() {
    let home = Home::new();
    let stub = stub([start(&gated("echo 못 온다")), text("기다립니다"), text("그랬군요")]);
    let mut run = ask(&home, &stub, "x").args(["--mode", "json"]).spawn();
    run.close_stdin();
    wait_for_both(&mut run, "waiting for background jobs: job-1");
    run.interrupt();
    let out = run.wait();
    assert_eq!(out.code(), Some(130), "{out}");
    assert_ended(&pid(&home));
    let file = the_session(&home);
    let told = deliveries(&file);
    assert_eq!(told.len(), 1, "{out}");
    assert!(text_of(&told[0]).contains("has ended: cancelled"), "{}", told[0]);
    // The next process has nothing to add.
    ask(&home, &stub, "y").args(["--resume", &id_of(&file)]).output().ok();
    assert_eq!(deliveries(&file).len(), 1);
    assert!(body(&stub, 2).contains("has ended: cancelled"));
}

#[test]
fn a_job_that_died_with_its_process_is_told_once_by_the_next() {
    let home = Home::new();
    let stub = stub([start(&gated("echo 못 온다")), text("기다립니다"), text("다시 하겠습니다"), text("네")]);
    let mut run = ask(&home, &stub, "x").args(["--mode", "json"]).spawn();
    run.close_stdin();
    wait_for_both(&mut run, "waiting for background jobs");
    let pid = pid(&home);
    run.kill_9();
    let file = the_session(&home);
    assert_eq!(deliveries(&file).len(), 0);
    for prompt in ["어떻게 됐어?", "그래?"] {
        ask(&home, &stub, prompt).args(["--resume", &id_of(&file)]).output().ok();
        assert_ended(&pid);
        let told = deliveries(&file);
        assert_eq!(told.len(), 1);
        assert!(text_of(&told[0]).contains("failed: interrupted. gjc was stopped before"), "{}", told[0]);
    }
    assert!(body(&stub, 2).contains("failed: interrupted"));
}

fn rpc<'h>(home: &'h Home, stub: &Stub) -> Running<'h> {
    on(home, stub).args(["--mode", "rpc"]).spawn()
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

#[test]
fn an_end_that_comes_while_nothing_runs_begins_a_turn_of_its_own() {
    let home = Home::new();
    let stub = stub([start(&gated("echo 다 됐다")), text("기다립니다"), text("알겠습니다")]);
    let mut run = rpc(&home, &stub);
    run.send(&prompt("x"));
    let started = line(&mut run, |event| event["type"] == "job_started");
    assert_eq!((&started["id"], &started["tool"]), (&json!("job-1"), &json!("bash")));
    line(&mut run, |event| event["type"] == "turn_ended");
    run.send(&command("snapshot"));
    let reply = line(&mut run, |reply| reply["id"] == "snapshot");
    let jobs = &reply["value"]["jobs"];
    assert_eq!((&jobs[0]["id"], &jobs[0]["status"]), (&json!("job-1"), &json!("running")));
    home.write("project/go", "");
    let ended = line(&mut run, |event| event["type"] == "job_ended");
    assert_eq!(ended["status"], "completed");
    let told = line(&mut run, |event| event["type"] == "message");
    assert_eq!((&told["message"]["role"], &told["message"]["customType"]), (&json!("custom"), &json!("async-result")));
    line(&mut run, |event| event["type"] == "turn_started");
    line(&mut run, |event| event["type"] == "turn_ended");
    run.wait().ok();
    assert_eq!(deliveries(&the_session(&home)).len(), 1);
    assert!(newest(&stub, 2).contains("다 됐다"));
}

#[test]
fn a_person_who_is_asked_sees_that_a_command_would_run_in_the_background() {
    let home = Home::new();
    let stub = stub([start("touch 흔적"), text("그만두겠습니다")]);
    let mut run = on(&home, &stub).args(["--mode", "rpc", "--approval", "ask"]).spawn();
    run.send(&prompt("x"));
    let asked = line(&mut run, |event| event["type"] == "asked");
    assert_eq!(asked["command"], "touch 흔적", "{asked}");
    assert!(asked["preview"].as_str().unwrap().starts_with("in the background"), "{asked}");
    let answer = json!({"type": "answer", "ask": asked["ask"], "value": {"type": "deny"}});
    run.send(&json!({"id": "a", "command": answer}).to_string());
    line(&mut run, |event| event["type"] == "turn_ended");
    run.wait().ok();
    assert_eq!(own(&the_session(&home), "gjc.job").len(), 0);
    assert!(!home.work().join("흔적").exists());
}

#[test]
fn closing_ends_jobs_and_names_them() {
    let home = Home::new();
    let stub = stub([start(&gated("echo 못 온다")), text("기다립니다")]);
    let mut run = rpc(&home, &stub);
    run.send(&prompt("x"));
    wait_for_both(&mut run, "turn_ended");
    run.send(&command("close"));
    let reply = line(&mut run, |reply| reply["id"] == "close");
    assert_eq!((&reply["value"]["jobs"], &reply["value"]["stored"]), (&json!(["job-1"]), &json!(true)));
    run.wait().ok();
    assert_ended(&pid(&home));
    assert!(text_of(&deliveries(&the_session(&home))[0]).contains("has ended: cancelled"));
}

#[cfg(feature = "failpoints")]
#[test]
fn a_kill_at_any_step_of_a_delivery_loses_no_end_and_doubles_none() {
    let names = look(&Home::new(), &["__failpoints"]).output().ok().out();
    let ours: Vec<&str> =
        names.lines().filter(|name| name.starts_with("agent.job.") || name.starts_with("agent.delivery.")).collect();
    assert!(ours.len() >= 6, "{names}");
    for point in ours {
        // The first is delivered by itself, the second is polled.
        let turns = || {
            [
                start("echo 하나"),
                start("echo 둘"),
                job(&json!({"poll": ["job-2"]})),
                text("기다립니다"),
                text("끝"),
                text("끝"),
            ]
        };
        let home = Home::new();
        let first = stub(turns());
        let out = ask(&home, &first, "x").env("GJC_FP", format!("{point}=kill")).output();
        assert_eq!(out.signal, Some(9), "{point} is not reached: {out}");
        let file = the_session(&home);
        let second = stub([text("네"), text("네"), text("네")]);
        for prompt in ["하나 더", "둘 더"] {
            ask(&home, &second, prompt).args(["--resume", &id_of(&file)]).output().ok();
        }
        let started: Vec<Value> = own(&file, "gjc.job").into_iter().map(|line| line["data"]["op"].clone()).collect();
        let told: Vec<Value> =
            deliveries(&file).into_iter().map(|line| line["details"]["gjc"]["delivered"].clone()).collect();
        let polled = messages(&file).into_iter().filter(|message| message["toolName"] == "job");
        let seen: Vec<Value> = polled
            .flat_map(|message| message["details"]["gjc"]["delivered"].as_array().cloned().unwrap_or_default())
            .collect();
        assert!(!started.is_empty(), "{point}");
        for op in &started {
            let times = told.iter().chain(&seen).filter(|other| *other == op).count();
            assert_eq!(times, 1, "{point}: {op} was told {told:?} and seen {seen:?}");
        }
        assert_eq!(told.len() + seen.len(), started.len(), "{point}: ends of jobs that nobody started");
        look(&home, &["sessions", "verify", &id_of(&file)]).output().ok();
    }
}
