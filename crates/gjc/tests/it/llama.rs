//! A real model behind a real server: what stubs cannot prove. Left out where `GJC_LLAMA_PYTHON` names none.

use crate::kit::*;
use testkit::anthropic::Turn;
use testkit::harness::Home;
use testkit::llama::Llama;
use testkit::openai::{Chat, Response};
use testkit::stub::{Reply, Stub};

/// The request that an entry answers, from the file alone.
fn rebuilt_at(home: &Home, file: &std::path::Path, entry: &str) -> Vec<u8> {
    look(home, &["context", "request", file.to_str().unwrap(), "--at", entry]).output().ok().stdout
}

/// Two calls, of which one fails.
const CALLS: [(&str, &str, &str); 2] = [("t1", "read", r#"{"path":"메모.md"}"#), ("t2", "read", r#"{"path":"없음"}"#)];

/// The stub calls a tool and thinks; then the real server has to take all of that, with Korean in it, and answers.
fn a_real_server_takes_our_requests_and_we_take_its_answers(wire: &str, scripted: [Reply; 2]) {
    let Some(llama) = Llama::start(8192) else { return };
    let home = Home::new();
    home.write("project/메모.md", "# 메모\n한글 \u{1F600}\n");
    let model = format!("{wire}/smollm2");
    let stub: Stub = replies(scripted);
    let on = |url: &str| gjc(&home).args(["--model", &model, "--provider-url", url]);
    on(&stub.url()).args(["-p", "메모를 읽어 줘"]).output().ok();
    let file = the_session(&home);
    let id = id_of(&file);
    // Twice, so that the second reads the first from the server's cache. A small model may go on and on: it is enough that
    // it speaks.
    for prompt in ["Say hello.", "Say bye."] {
        let mut run = on(llama.url()).args(["-p", prompt, "--resume", &id, "--mode", "json"]).spawn();
        run.close_stdin();
        let line = run.wait_for(|line| {
            line.contains("text_delta") || line.contains(r#""type":"error""#) || line.contains(r#""type":"retry""#)
        });
        assert!(line.contains("text_delta"), "{line}");
        run.interrupt();
        let code = run.wait().code();
        assert!(matches!(code, Some(0 | 130)), "{code:?}");
    }
    let said = answers(&file);
    assert_eq!(said.len(), 4);
    assert!(said[3].1["content"][0]["text"].as_str().is_some_and(|text| !text.is_empty()), "{}", said[3].1);
    // What the stub saw can still be rebuilt; what the real one saw it took.
    let first: Vec<Vec<u8>> = said[..2].iter().map(|(entry, _)| rebuilt_at(&home, &file, entry)).collect();
    let sent: Vec<Vec<u8>> = stub.requests().into_iter().map(|request| request.body).collect();
    assert_eq!(first, sent);
}

#[test]
fn a_real_server_speaks_chat_completions_with_us() {
    let scripted = [
        Chat::new("c").reasoning("먼저 읽자").text("읽습니다.").interleaved_calls(&CALLS).reply(),
        Chat::new("c").text("한글 메모입니다.").reply(),
    ];
    a_real_server_takes_our_requests_and_we_take_its_answers("openai", scripted);
}

#[test]
fn a_real_server_speaks_responses_with_us() {
    let scripted = [
        Response::new("r").reasoning("먼저 읽자", "").text("읽습니다.").interleaved_calls(&CALLS).reply(),
        Response::new("r").text("한글 메모입니다.").reply(),
    ];
    a_real_server_takes_our_requests_and_we_take_its_answers("openai-responses", scripted);
}

#[test]
fn a_real_server_speaks_messages_with_us() {
    let scripted = [
        Turn::new("m").thinking("먼저 읽자", "c2ln").text("읽습니다.").interleaved_calls(&CALLS).reply(),
        Turn::new("m").text("한글 메모입니다.").reply(),
    ];
    a_real_server_takes_our_requests_and_we_take_its_answers("anthropic", scripted);
}

/// llama.cpp's own words for a conversation that does not fit.
#[test]
fn a_real_server_says_that_a_conversation_does_not_fit_and_we_understand() {
    let Some(llama) = Llama::start(512) else { return };
    for wire in ["openai", "openai-responses", "anthropic"] {
        let home = Home::new();
        let long = "한글 자모와 낱말 ".repeat(400);
        let model = format!("{wire}/smollm2");
        let out = gjc(&home).args(["-p", &long, "--model", &model, "--provider-url", llama.url()]).output();
        assert_eq!(out.code(), Some(1), "{out}");
        assert!(out.err().contains("the conversation is too long for the model"), "{wire}: {out}");
    }
}
