//! Approvals, questions and plan mode through the binary.

use crate::kit::*;
use crate::rebuilt::assert_rebuilt;
use gjc_protocol::Snapshot;
use serde_json::{Value, json as j};
use std::fs;
use testkit::anthropic::Turn;
use testkit::harness::{Home, Running};
use testkit::stub::Stub;

fn rpc<'h>(home: &'h Home, stub: &Stub, args: &[&str]) -> Running<'h> {
    on(home, stub).args(["--mode", "rpc"]).args(args).spawn()
}

fn say(run: &mut Running<'_>, id: &str, text: &str) {
    send(run, id, j!({"type": "prompt", "parts": [{"text": text, "origin": "typed"}]}));
}

fn send(run: &mut Running<'_>, id: &str, command: Value) {
    run.send(&j!({"id": id, "command": command}).to_string());
}

/// Sends a command and gives its reply.
#[track_caller]
fn told(run: &mut Running<'_>, id: &str, command: Value) -> Value {
    send(run, id, command);
    let line = run.wait_for(|line| {
        let value: Value = serde_json::from_str(line).unwrap();
        value["id"] == id && !value["outcome"].is_null()
    });
    serde_json::from_str(&line).unwrap()
}

#[track_caller]
fn event(run: &mut Running<'_>, kind: &str) -> Value {
    let line = run.wait_for(|line| serde_json::from_str::<Value>(line).unwrap()["type"] == kind);
    serde_json::from_str(&line).unwrap()
}

fn call(id: &str, tool: &str, input: &Value) -> Turn {
    Turn::new("m").tool_call(id, tool, input)
}

fn results(home: &Home) -> Vec<String> {
    let of = |message: &Value| {
        let blocks = message["content"].as_array().unwrap();
        blocks.iter().filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n")
    };
    messages(&the_session(home)).iter().filter(|message| message["role"] == "toolResult").map(of).collect()
}

fn tools(body: &Value) -> Vec<&str> {
    body["tools"].as_array().into_iter().flatten().map(|tool| tool["name"].as_str().unwrap()).collect()
}

#[test]
fn over_rpc_a_person_sees_what_would_run_and_their_answer_counts() {
    let home = Home::new();
    let file = home.write("project/글.txt", "하나\n둘\n");
    let change = |old: &str, new: &str| j!({"path": "글.txt", "edits": [{"old": old, "new": new}]});
    let stub = stub([
        call("c1", "edit", &change("둘", "두울")),
        call("c2", "edit", &change("하나", "한나")),
        call("c3", "bash", &j!({"command": "echo 실행 >> 글.txt"})),
        call("c4", "bash", &j!({"command": "echo 실행 >> 글.txt"})),
        call("c5", "bash", &j!({"command": "echo 다른 것"})),
        text("끝"),
    ]);
    let mut run = rpc(&home, &stub, &["--approval", "ask"]);
    say(&mut run, "1", "고쳐 줘");
    let asked = event(&mut run, "asked");
    assert_eq!((&asked["about"], &asked["tool"], &asked["reach"]), (&j!("approval"), &j!("edit"), &j!("workspace")));
    assert_eq!(asked["path"], j!(file.canonicalize().unwrap()));
    assert_eq!(asked["preview"], "--- a/글.txt\n+++ b/글.txt\n@@ -1,2 +1,2 @@\n 하나\n-둘\n+두울\n");
    assert_eq!(fs::read_to_string(&file).unwrap(), "하나\n둘\n", "nothing has happened yet");
    let snapshot: Snapshot =
        serde_json::from_value(told(&mut run, "2", j!({"type": "snapshot"}))["value"].clone()).unwrap();
    assert_eq!(snapshot.asked[0].ask, asked["ask"].as_str().unwrap());
    let answer = |ask: &Value, value: Value| j!({"type": "answer", "ask": ask, "value": value});
    // Edits for the rest of the session: the second one is not asked for.
    told(&mut run, "3", answer(&asked["ask"], j!({"type": "session"})));
    let answered = event(&mut run, "answered");
    assert_eq!((&answered["ask"], &answered["end"]), (&asked["ask"], &j!("session")));
    let asked = event(&mut run, "asked");
    assert_eq!(
        (&asked["command"], &asked["reach"], &asked["remembers"]),
        (&j!("echo 실행 >> 글.txt"), &j!("outside"), &j!("command"))
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), "한나\n두울\n");
    told(&mut run, "4", answer(&asked["ask"], j!({"type": "session"})));
    // The same command is not asked for again, another one is.
    let asked = event(&mut run, "asked");
    assert_eq!(asked["command"], "echo 다른 것");
    told(&mut run, "5", answer(&asked["ask"], j!({"type": "deny", "words": "그만"})));
    assert_eq!(told(&mut run, "6", answer(&asked["ask"], j!({"type": "once"})))["code"], "unknown_ask");
    event(&mut run, "turn_ended");
    run.close_stdin();
    let out = run.wait().ok();
    assert_eq!(out.out().lines().filter(|line| line.contains(r#""type":"asked""#)).count(), 3, "{out}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "한나\n두울\n실행\n실행\n");
    assert!(results(&home)[4].contains("그만"), "{:?}", results(&home));
    assert_rebuilt(&home, &stub, &the_session(&home), &[0, 1, 2, 3, 4, 5]);
}

#[test]
fn a_file_that_changes_while_a_person_thinks_is_left_alone() {
    let home = Home::new();
    let file = home.write("project/글.txt", "하나\n");
    let stub = stub([call("c", "write", &j!({"path": "글.txt", "content": "내 글"})), text("끝")]);
    let mut run = rpc(&home, &stub, &["--approval", "ask"]);
    say(&mut run, "1", "써 줘");
    let asked = event(&mut run, "asked");
    fs::write(&file, "남의 글").unwrap();
    told(&mut run, "2", j!({"type": "answer", "ask": asked["ask"], "value": {"type": "once"}}));
    event(&mut run, "turn_ended");
    run.close_stdin();
    run.wait().ok();
    assert_eq!(fs::read_to_string(&file).unwrap(), "남의 글");
    assert!(results(&home)[0].contains("has changed since this was allowed"), "{:?}", results(&home));
}

#[test]
fn the_end_of_the_input_ends_an_ask() {
    let home = Home::new();
    let stub = stub([call("c", "bash", &j!({"command": "touch 됨"})), text("끝")]);
    let mut run = rpc(&home, &stub, &["--approval", "ask"]);
    say(&mut run, "1", "해 줘");
    event(&mut run, "asked");
    run.close_stdin();
    let out = run.wait().ok();
    assert!(out.out().contains(r#""end":"withdrawn""#), "{out}");
    assert!(!home.work().join("됨").exists());
    assert!(results(&home)[0].contains("nobody allowed it"), "{:?}", results(&home));
}

#[test]
fn with_p_nobody_is_asked_and_what_would_ask_is_refused_with_its_way_out() {
    let inside = j!({"path": "안.txt", "content": "x"});
    for (mode, written, ran) in
        [("full", true, true), ("auto-edit", true, false), ("ask", false, false), ("read-only", false, false)]
    {
        for face in [&[][..], &["--mode", "json"]] {
            let home = Home::new();
            let stub = stub([
                call("c1", "write", &inside),
                call("c2", "bash", &j!({"command": "touch 밖.txt"})),
                call("c3", "write", &j!({"path": ".git/hooks/post-checkout", "content": "x"})),
                call("c4", "read", &j!({"path": "."})),
                text("끝"),
            ]);
            let out = ask(&home, &stub, "해 줘").args(face).args(["--approval", mode]).output().ok();
            let is = |name: &str| home.work().join(name).exists();
            assert_eq!((is("안.txt"), is("밖.txt"), is(".git")), (written, ran, mode == "full"), "{mode} {out}");
            let results = results(&home);
            for (result, ran) in results.iter().zip([written, ran, mode == "full", true]) {
                let refused =
                    result.starts_with("not run: ") && result.contains("hint: ") && result.contains("--approval");
                assert_eq!(refused, !ran, "{mode}: {result}");
                assert!(!result.contains("--approval ask"), "asking would allow nothing here: {result}");
            }
            assert!(!out.out().contains(r#""type":"asked""#), "{out}");
            assert!(!tools(&stub.requests()[0].json()).contains(&"ask"), "nobody answers questions here");
        }
    }
}

#[test]
fn a_clone_gains_nothing_by_saying_how_it_wants_to_be_approved() {
    let evil = |home: &Home, text: &str| {
        home.write("project/.git/HEAD", "ref: refs/heads/main\n");
        home.write("project/.gjc/config.yml", text);
    };
    let turns = || [call("c", "bash", &j!({"command": "touch 됨"})), text("끝")];
    // The person is strict; the clone wants everything.
    for theirs in ["approval: full\n", "approval: auto-edit\n", "\"appro\\u0076al\": 'full'\n"] {
        let home = Home::new();
        home.write("home/.gjc/agent/config.yml", "approval: ask\n");
        evil(&home, theirs);
        let stub = stub(turns());
        let out = ask(&home, &stub, "해 줘").output().ok();
        assert!(!home.work().join("됨").exists(), "{theirs}");
        assert!(out.err().contains("which you have not trusted"), "{out}");
    }
    // The person has said nothing: a clone may be stricter, and that is all.
    for (theirs, ran) in [("full", true), ("auto-edit", true), ("ask", false), ("read-only", false)] {
        let home = Home::new();
        evil(&home, &format!("approval: {theirs}\n"));
        let stub = stub(turns());
        let out = ask(&home, &stub, "해 줘").output().ok();
        assert_eq!(home.work().join("됨").exists(), ran, "{theirs}");
        assert_eq!(out.err().contains("which you have not trusted"), ran, "{out}");
    }
    // Nor does it through a model that writes the file, or the program behind a name.
    let home = Home::new();
    home.write("home/.gjc/agent/config.yml", "approval: auto-edit\n");
    let writing = stub([
        call("c1", "write", &j!({"path": ".gjc/config.yml", "content": "approval: full\n"})),
        call("c2", "write", &j!({"path": ".git/hooks/pre-commit", "content": "#!/bin/sh\n"})),
        text("끝"),
    ]);
    ask(&home, &writing, "해 줘").output().ok();
    assert!(!home.work().join(".gjc").exists() && !home.work().join(".git").exists());
    // Trusted, it counts as it says.
    let home = Home::new();
    home.write("home/.gjc/agent/config.yml", "approval: ask\n");
    evil(&home, "approval: full\n");
    let stub = stub(turns());
    ask(&home, &stub, "해 줘").arg("--trust-project").output().ok();
    assert!(home.work().join("됨").exists());
}

#[test]
fn a_session_that_goes_on_gets_looser_by_the_option_alone() {
    let home = Home::new();
    let act = |n: usize| call("c", "bash", &j!({"command": format!("touch {n}")}));
    let stub = stub([text("네"), act(1), text("끝"), act(2), text("끝"), act(3), text("끝"), act(4), text("끝")]);
    ask(&home, &stub, "시작").args(["--approval", "read-only"]).output().ok();
    let id = id_of(&the_session(&home));
    let go = |args: &[&str]| ask(&home, &stub, "해 줘").args(["--resume", &id]).args(args).output().ok();
    let is = |n: usize| home.work().join(n.to_string()).exists();
    // Neither by the default nor by a setting.
    let out = go(&[]);
    assert!(out.err().contains("the session goes on in approval mode read-only, as it was; --approval full"), "{out}");
    home.write("home/.gjc/agent/config.yml", "approval: full\n");
    go(&[]);
    assert!(!is(1) && !is(2));
    // A person says so, and from then on it is so.
    assert_eq!(go(&["--approval", "full"]).err(), "");
    assert_eq!(go(&[]).err(), "");
    assert!(is(3) && is(4));
    assert_rebuilt(&home, &stub, &the_session(&home), &[0, 1, 2, 3, 4, 5, 6, 7, 8]);
}

#[test]
fn a_wrong_mode_is_told_with_those_that_there_are() {
    let home = Home::new();
    let stub = stub([]);
    let out = ask(&home, &stub, "x").args(["--approval", "yolo"]).output();
    assert_eq!(out.code(), Some(2));
    assert!(out.err().contains("ask, auto-edit, full, read-only"), "{out}");
    home.write("home/.gjc/agent/config.yml", "approval: autoedit\n");
    let out = ask(&home, &stub, "x").output();
    assert!(out.code() == Some(2) && out.err().contains("did you mean \"auto-edit\"?"), "{out}");
}

#[test]
fn plan_mode_over_rpc_is_kept_on_resume_and_each_request_can_be_made_again() {
    let home = Home::new();
    let stub = stub([
        text("네"),
        Turn::new("m").tool_call("c1", "read", &j!({"path": "."})).tool_call(
            "c2",
            "bash",
            &j!({"command": "touch 됨"}),
        ),
        text("계획"),
        call("c3", "write", &j!({"path": "됨", "content": "x"})),
        text("아직 계획"),
        call("c4", "write", &j!({"path": "됨", "content": "x"})),
        text("했습니다"),
    ]);
    let mut run = rpc(&home, &stub, &[]);
    say(&mut run, "1", "안녕");
    event(&mut run, "turn_ended");
    assert_eq!(told(&mut run, "2", j!({"type": "set_mode", "mode": "plan"}))["value"]["mode"], "plan");
    assert_eq!(event(&mut run, "mode")["mode"], "plan");
    say(&mut run, "3", "계획을 세워 줘");
    event(&mut run, "turn_ended");
    assert!(!home.work().join("됨").exists());
    run.close_stdin();
    run.wait().ok();
    // In another process, and another face.
    let id = id_of(&the_session(&home));
    ask(&home, &stub, "더").args(["--resume", &id]).output().ok();
    assert!(!home.work().join("됨").exists());
    let mut run = rpc(&home, &stub, &["--resume", &id]);
    told(&mut run, "1", j!({"type": "set_mode", "mode": "none"}));
    say(&mut run, "2", "이제 해 줘");
    event(&mut run, "turn_ended");
    run.close_stdin();
    run.wait().ok();
    assert!(home.work().join("됨").exists());
    let shown: Vec<Vec<String>> =
        stub.requests().iter().map(|request| tools(&request.json()).into_iter().map(Into::into).collect()).collect();
    let all = gjc_settings::TOOLS;
    assert_eq!(shown[0], all);
    assert_eq!(shown[1], ["read", "grep", "find", "ls", "ask"]);
    assert_eq!(shown[3], ["read", "grep", "find", "ls"]);
    assert_eq!(shown[5], all, "plan mode and a face without a person take no tool from the session");
    assert_rebuilt(&home, &stub, &the_session(&home), &[0, 1, 2, 3, 4, 5, 6]);
    // What stands behind the last answer does not hide it.
    look(&home, &["context", "request", &id]).output().ok();
}

#[test]
fn a_question_is_answered_over_rpc() {
    let home = Home::new();
    let stub = stub([
        call("c", "ask", &j!({"question": "어느 것?", "choices": [{"label": "가"}, {"label": "나"}]})),
        text("네"),
    ]);
    let mut run = rpc(&home, &stub, &[]);
    say(&mut run, "1", "물어봐 줘");
    let asked = event(&mut run, "asked");
    assert_eq!(
        (&asked["about"], &asked["question"], &asked["choices"][1]["label"]),
        (&j!("question"), &j!("어느 것?"), &j!("나"))
    );
    let reply = |value: Value| j!({"type": "answer", "ask": asked["ask"], "value": value});
    assert_eq!(told(&mut run, "2", reply(j!({"type": "once"})))["code"], "wrong_answer");
    assert_eq!(told(&mut run, "3", reply(j!({"type": "reply", "choices": [7]})))["code"], "wrong_answer");
    assert_eq!(told(&mut run, "4", reply(j!({"type": "shrug"})))["code"], "unreadable");
    told(&mut run, "5", reply(j!({"type": "reply", "choices": [1], "text": "천천히"})));
    event(&mut run, "turn_ended");
    run.close_stdin();
    run.wait().ok();
    assert_eq!(results(&home), ["나\n천천히"]);
    let sent = stub.requests()[1].json().to_string();
    assert!(sent.contains("천천히"), "{sent}");
    assert_rebuilt(&home, &stub, &the_session(&home), &[0, 1]);
}

/// What was said beside the command is a part of what a person allowed.
#[test]
fn a_command_that_was_allowed_is_asked_for_again_in_the_background() {
    let home = Home::new();
    let stub = stub([
        call("c1", "bash", &j!({"command": "echo x"})),
        call("c2", "bash", &j!({"command": "echo x", "background": true})),
        text("끝"),
    ]);
    let mut run = rpc(&home, &stub, &["--approval", "ask"]);
    say(&mut run, "1", "해 줘");
    let asked = event(&mut run, "asked");
    told(&mut run, "2", j!({"type": "answer", "ask": asked["ask"], "value": {"type": "session"}}));
    let asked = event(&mut run, "asked");
    assert!(asked["preview"].as_str().unwrap().contains("background"), "{asked}");
    told(&mut run, "3", j!({"type": "answer", "ask": asked["ask"], "value": {"type": "deny"}}));
    event(&mut run, "turn_ended");
    run.close_stdin();
    run.wait().ok();
}
