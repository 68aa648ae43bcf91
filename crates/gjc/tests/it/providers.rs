//! What a provider may do to us: refuse, hesitate, break off. And the key, which stays in the header.

use crate::kit::*;
use std::net::TcpListener;
use testkit::anthropic::{self, Turn};
use testkit::harness::{Home, Output};

fn failing(status: u16, kind: &str, message: &str) -> (Home, Output, usize) {
    let home = Home::new();
    let stub = replies([anthropic::error(status, kind, message)]);
    let out = ask(&home, &stub, "안녕").output();
    let asked = stub.requests().len();
    (home, out, asked)
}

#[test]
fn a_refusal_is_told_and_not_repeated() {
    for (status, kind, message) in [
        (400, "invalid_request_error", "messages: 필드가 없습니다"),
        (401, "authentication_error", "invalid x-api-key"),
        (404, "not_found_error", "model: claude-stub-1"),
        (400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
        (400, "invalid_request_error", "Your credit balance is too low to access the API."),
    ] {
        let (home, out, asked) = failing(status, kind, message);
        assert_eq!((out.code(), asked), (Some(1), 1), "{out}");
        let name = format!("refused_{}", message.split([' ', ':']).next().unwrap().to_lowercase());
        steady(&home, || insta::assert_snapshot!(name, shown(&out)));
        // Of the session nothing reaches the disk before the first answer; what the person said is in the history.
        let names = walk(&home.agent_dir()).into_iter().map(|path| path.file_name().unwrap().to_owned());
        assert!(names.into_iter().all(|name| name.to_str().unwrap().starts_with("history.db")));
    }
}

#[test]
fn a_busy_provider_is_asked_again_and_the_person_is_told() {
    let home = Home::new();
    let stub = replies([
        anthropic::error(429, "rate_limit_error", "천천히").header("retry-after", "0"),
        anthropic::error(529, "overloaded_error", "Overloaded").header("retry-after", "0"),
        text("이제 됩니다").reply(),
    ]);
    let out = ask(&home, &stub, "x").output().ok();
    assert_eq!(out.out(), "이제 됩니다\n");
    let requests = stub.requests();
    assert_eq!(requests.len(), 3);
    assert!(requests.windows(2).all(|pair| pair[0].body == pair[1].body), "the same bytes each time");
    let err = out.err();
    let waits: Vec<&str> = err.lines().collect();
    assert_eq!(waits.len(), 2, "{err}");
    assert!(waits[0].contains("천천히") && waits[1].contains("Overloaded"), "{err}");
    assert!(messages(&the_session(&home)).len() == 2, "failed attempts are no messages");
}

#[test]
fn a_provider_that_wants_more_patience_than_a_person_has_is_an_error() {
    let home = Home::new();
    let stub = replies([anthropic::error(429, "rate_limit_error", "wait").header("retry-after", "3600")]);
    let out = ask(&home, &stub, "x").output();
    assert_eq!((out.code(), stub.requests().len()), (Some(1), 1), "{out}");
}

#[test]
fn a_stream_that_breaks_off_keeps_what_came() {
    for reset in [false, true] {
        let home = Home::new();
        let turn = Turn::new("m").text("여기까지는 왔습니다").text("여기는 안 옵니다");
        let cut = turn.event_ends()[3];
        let reply = if reset { turn.reply().reset_at(cut) } else { turn.reply().cut_at(cut) };
        // A reset may take bytes back that were sent: stop until they have been read.
        let stub = replies([reply]);
        let out = ask(&home, &stub, "x").output();
        assert_eq!(out.code(), Some(1), "{out}");
        assert_eq!(stub.requests().len(), 1, "what was shown is not asked for again");
        assert!(out.err().contains("the answer broke off"), "{out}");
        if reset {
            continue;
        }
        assert_eq!(out.out(), "여기까지는 왔습\n");
        let kept = &answers(&the_session(&home))[0].1;
        assert_eq!(kept["content"][0]["text"], "여기까지는 왔습");
        assert_eq!(kept["stopReason"], "error");
        steady(&home, || insta::assert_snapshot!("broken_off", out.err()));
    }
}

#[test]
fn what_was_said_before_the_tools_ran_is_not_the_answer() {
    let home = Home::new();
    let stub = replies([
        Turn::new("m").text("먼저 봅니다").tool_call("c", "read", &serde_json::json!({"path": "."})).reply(),
        anthropic::error(401, "authentication_error", "invalid x-api-key"),
    ]);
    let out = ask(&home, &stub, "x").output();
    assert_eq!((out.code(), out.out().as_str()), (Some(1), ""), "{out}");
    assert_eq!(answers(&the_session(&home)).len(), 1, "it is kept");
}

#[test]
fn an_error_inside_the_stream_is_told() {
    let home = Home::new();
    let stub = stub([Turn::new("m").text("반쯤").error("overloaded_error", "Overloaded")]);
    let out = ask(&home, &stub, "x").output();
    assert_eq!((out.code(), out.out().as_str()), (Some(1), "반쯤\n"), "{out}");
    assert!(out.err().contains("Overloaded"), "{out}");
}

#[test]
fn a_server_that_is_not_there_is_named() {
    let home = Home::new();
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    // The retries of a real person's patience are cut short by an interrupt, as a person would.
    let mut run = gjc(&home).args(["-p", "x", "--provider-url", &format!("http://{free}"), "--mode", "json"]).spawn();
    run.close_stdin();
    let line = run.wait_for(|line| line.contains(r#""type":"retry""#));
    assert!(line.contains("127.0.0.1 cannot be reached") && line.contains("refused"), "{line}");
    run.interrupt();
    assert_eq!(run.wait().code(), Some(130));
}

#[test]
fn what_cannot_be_a_model_is_misuse() {
    let home = Home::new();
    let mut all = String::new();
    for model in ["gpt", "anthropic/", "/x", "openai/gpt", "scripted/없는.jsonl"] {
        let out = look(&home, &["-p", "x", "--model", model]).env("ANTHROPIC_API_KEY", KEY).output();
        assert_ne!(out.code(), Some(0), "{out}");
        all += &format!("# {model}: exit {:?}\n{}", out.code(), out.err());
    }
    steady(&home, || insta::assert_snapshot!(all));
    assert!(session_files(&home).is_empty());
}

#[test]
fn a_missing_key_is_told_before_anything_is_sent_or_stored() {
    let home = Home::new();
    let out = look(&home, &["-p", "x"]).output();
    assert_eq!(out.code(), Some(1));
    steady(&home, || insta::assert_snapshot!(shown(&out)));
    let empty = look(&home, &["-p", "x"]).env("ANTHROPIC_API_KEY", "").output();
    assert_eq!(shown(&empty), shown(&out), "an empty key is none");
    assert!(walk(&home.path()).is_empty());
}

#[test]
fn the_key_is_in_the_header_and_nowhere_else() {
    let home = Home::new();
    let stub = replies([
        Turn::new("m1")
            .tool_call("c1", "bash", &serde_json::json!({"command": "env; echo $ANTHROPIC_API_KEY"}))
            .reply(),
        anthropic::error(401, "authentication_error", &format!("the key {KEY} is no longer valid")),
    ]);
    let out = ask(&home, &stub, "x").args(["--mode", "json"]).output();
    assert_eq!(out.code(), Some(1), "{out}");
    assert!(!format!("{out}").contains(KEY), "{out}");
    for (path, bytes) in tree(&root(&home)) {
        let bytes = bytes.unwrap_or_default();
        assert!(!bytes.windows(KEY.len()).any(|part| part == KEY.as_bytes()), "{} holds the key", path.display());
    }
    for request in stub.requests() {
        assert!(!String::from_utf8_lossy(&request.body).contains(KEY), "a body holds the key");
        assert_eq!(request.header("x-api-key"), Some(KEY));
    }
}
