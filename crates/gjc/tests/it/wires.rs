//! The wires of OpenAI through the binary: the same promises as on the Messages API, and a session that moves between all three.

use crate::kit::*;
use crate::rebuilt::assert_rebuilt;
use serde_json::{Value, json};
use testkit::anthropic::Turn;
use testkit::harness::{Home, Run};
use testkit::openai::{self, Chat, Response, Usage};
use testkit::stub::{Gate, Reply, Stub};

/// Answers of one wire.
struct Wire {
    name: &'static str,
    path: &'static str,
    /// Signed thinking, words, and three calls: two reads, one of a file that is not there, and a command that fails.
    calls: Reply,
    text: fn(&str) -> Reply,
    /// Thinking and words, and where its events end.
    long: (Reply, Vec<usize>),
}

const CALLS: &[(&str, &str, &str)] = &[
    ("t1", "read", r#"{"path": "메모.md",   "limit": 1e1}"#),
    ("t2", "read", r#"{"path":"없음"}"#),
    ("t3", "bash", r#"{"command":"printf '굵게\\n\\xff'; exit 7"}"#),
];

fn wires() -> [Wire; 2] {
    let usage = Usage { input: 120, output: 12, cached: 100 };
    let chat = Chat::new("c0").signed_reasoning("먼저 읽자", "c2lnbmF0dXJl").text("읽습니다.").usage(usage);
    let response = Response::new("r0").reasoning("먼저 읽자", "c2lnbmF0dXJl").text("읽습니다.").usage(usage);
    let long_chat = Chat::new("c1").reasoning("중간에 생각하고").text("끊긴 답이고 나머지는 안 옵니다");
    let long_response = Response::new("r1").reasoning("중간에 생각하고", "").text("끊긴 답이고 나머지는 안 옵니다");
    [
        Wire {
            name: "openai",
            path: "/v1/chat/completions",
            calls: chat.interleaved_calls(CALLS).reply(),
            text: |text| Chat::new("c").text(text).reply(),
            long: (long_chat.reply(), long_chat.event_ends()),
        },
        Wire {
            name: "openai-responses",
            path: "/v1/responses",
            calls: response.interleaved_calls(CALLS).reply(),
            text: |text| Response::new("r").text(text).reply(),
            long: (long_response.reply(), long_response.event_ends()),
        },
    ]
}

impl Wire {
    /// `gjc -p` on this wire, with a key.
    fn ask<'h>(&self, home: &'h Home, stub: &Stub, prompt: &str) -> Run<'h> {
        self.on(home, stub).args(["-p", prompt, "--model", &format!("{}/gpt-5-stub", self.name)])
    }

    /// gjc with the stub where it would look for OpenAI.
    fn on<'h>(&self, home: &'h Home, stub: &Stub) -> Run<'h> {
        gjc(home).args(["--provider-url", &stub.url()]).env("OPENAI_API_KEY", KEY)
    }

    /// The end of the event that holds a text.
    fn behind(&self, text: &str, sse: &[u8]) -> usize {
        let at = sse.windows(text.len()).position(|part| part == text.as_bytes()).unwrap();
        *self.long.1.iter().find(|end| **end > at).unwrap()
    }
}

fn body_of(reply: &Reply) -> Vec<u8> {
    let bytes = reply.pieces.iter().filter_map(|piece| match piece {
        testkit::stub::Piece::Bytes(bytes) => Some(bytes.clone()),
        _ => None,
    });
    bytes.flatten().collect()
}

#[test]
fn every_request_of_a_life_in_many_processes_can_be_rebuilt() {
    for wire in wires() {
        let home = Home::new();
        home.write("project/메모.md", "# 메모\n한글 \u{1F600} \"quotes\" \\ and \u{7f}\n");
        let (long, sse) = (&wire.long.0, body_of(&wire.long.0));
        let cut = wire.behind("끊긴", &sse);
        let stub = replies([
            wire.calls.clone(),
            (wire.text)("다 읽었습니다."),
            openai::error(503, "overloaded", "Loading model").header("retry-after", "0"),
            (wire.text)("  앞뒤 공백  "),
            long.clone().cut_at(cut),
            long.clone().gate_at(cut, &Gate::new()),
            (wire.text)("마지막"),
        ]);
        wire.ask(&home, &stub, "읽어 줘").output().ok();
        let file = the_session(&home);
        let id = id_of(&file);
        // From here on nobody names the model: the session keeps it, and the wire with it.
        let go = |prompt: &str| wire.on(&home, &stub).args(["-p", prompt, "--resume", &id]);
        assert_eq!(go("둘째").output().ok().out(), "  앞뒤 공백  \n");
        let broken = go("셋째").output();
        assert_eq!(broken.code(), Some(1), "{broken}");
        assert!(broken.err().contains("the answer broke off"), "{broken}");
        let mut run = go("넷째").args(["--mode", "json"]).spawn();
        run.close_stdin();
        run.wait_for(|line| line.contains("text_delta"));
        run.interrupt();
        assert_eq!(run.wait().code(), Some(130));
        go("끝").output().ok();
        assert_eq!(stub.left(), 0);
        assert_rebuilt(&home, &stub, &file, &[0, 1, 3, 4, 5, 6]);

        let requests = stub.requests();
        assert!(requests.iter().all(|request| request.path == wire.path), "{}", wire.name);
        assert_eq!(requests[2].body, requests[3].body, "a retry sends the same bytes");
        let body = |n: usize| String::from_utf8(requests[n].body.clone()).unwrap();
        assert!(body(1).contains("c2lnbmF0dXJl"), "signed thinking goes back: {}", body(1));
        assert!(!body(6).contains("중간에"), "unsigned thinking does not");
        assert!(body(1).contains("(failed) "), "a failed call is told to the model");
        // A prefix of the conversation never changes: the server's cache depends on it.
        let said = |n: usize| {
            let body = requests[n].json();
            body.get("messages").or(body.get("input")).unwrap().to_string()
        };
        for (n, next) in [(0, 1), (1, 3), (3, 4), (4, 5), (5, 6)] {
            assert!(said(next).starts_with(said(n).trim_end_matches(']')), "{}: request {next} after {n}", wire.name);
        }
        let first = &answers(&file)[0].1;
        let usage = &first["usage"];
        assert_eq!((&usage["input"], &usage["cacheRead"], &usage["output"]), (&json!(20), &json!(100), &json!(12)));
        assert_eq!((&first["provider"], &first["stopReason"]), (&json!("openai"), &json!("toolUse")));
    }
}

/// The session of a person who changes the model as they like.
#[test]
fn a_session_moves_between_wires_and_no_signature_goes_to_another() {
    let home = Home::new();
    home.write("project/메모.md", "한글\n");
    let read = r#"{"path":"메모.md"}"#;
    let own: Value = serde_json::from_str(read).unwrap();
    let stub = replies([
        Turn::new("m").thinking("하나", "c2lnLWFudGhyb3BpYw==").tool_call("call_1", "read", &own).reply(),
        text("첫째 답").reply(),
        Chat::new("c").signed_reasoning("둘", "c2lnLWNoYXQ=").tool_call("call_1", "read", read).reply(),
        Chat::new("c").text("둘째 답").reply(),
        Response::new("r").reasoning("셋", "c2lnLXJlc3BvbnNlcw==").tool_call("call_1", "read", read).reply(),
        Response::new("r").text("셋째 답").reply(),
        text("넷째 답").reply(),
    ]);
    let ask = |model: &str, prompt: &str| {
        let keys = gjc(&home).env("OPENAI_API_KEY", KEY).env("ANTHROPIC_API_KEY", KEY);
        keys.args(["-p", prompt, "--provider-url", &stub.url(), "--model", model])
    };
    ask("anthropic/claude-stub-1", "하나").output().ok();
    let file = the_session(&home);
    let id = id_of(&file);
    for (model, prompt) in
        [("openai/qwen3", "둘"), ("openai-responses/gpt-5-stub", "셋"), ("anthropic/claude-stub-1", "넷")]
    {
        ask(model, prompt).args(["--resume", &id]).output().ok();
    }
    assert_rebuilt(&home, &stub, &file, &[0, 1, 2, 3, 4, 5, 6]);
    let requests = stub.requests();
    let signatures = ["c2lnLWFudGhyb3BpYw==", "c2lnLWNoYXQ=", "c2lnLXJlc3BvbnNlcw=="];
    let seen = |n: usize| {
        let body = String::from_utf8(requests[n].body.clone()).unwrap();
        signatures.map(|signature| body.contains(signature))
    };
    assert_eq!(seen(1), [true, false, false]);
    assert_eq!(seen(2), [false, false, false]);
    assert_eq!(seen(3), [false, true, false]);
    assert_eq!(seen(4), [false, false, false]);
    assert_eq!(seen(5), [false, false, true]);
    assert_eq!(seen(6), [true, false, false]);
    let paths: Vec<&str> = requests.iter().map(|request| request.path.as_str()).collect();
    let (messages, chat, responses) = ("/v1/messages", "/v1/chat/completions", "/v1/responses");
    assert_eq!(paths, [messages, messages, chat, chat, responses, responses, messages]);
    // Three calls that their servers all named call_1: each has its own result.
    let sent = requests[4].json();
    let outputs: Vec<&Value> =
        sent["input"].as_array().unwrap().iter().filter(|item| item["type"] == "function_call_output").collect();
    assert_eq!(outputs.len(), 2);
    assert_ne!(outputs[0]["call_id"], outputs[1]["call_id"]);
}

#[test]
fn the_key_is_a_bearer_in_the_header_and_nowhere_else() {
    for wire in wires() {
        let home = Home::new();
        let stub = replies([
            match wire.name {
                "openai" => {
                    Chat::new("c").tool_call("c1", "bash", r#"{"command":"env; echo $OPENAI_API_KEY"}"#).reply()
                }
                _ => Response::new("r").tool_call("c1", "bash", r#"{"command":"env; echo $OPENAI_API_KEY"}"#).reply(),
            },
            openai::error(401, "invalid_api_key", &format!("Incorrect API key provided: {KEY}")),
        ]);
        let out = wire.ask(&home, &stub, "x").args(["--mode", "json"]).output();
        assert_eq!(out.code(), Some(1), "{out}");
        assert!(!format!("{out}").contains(KEY), "{out}");
        for (path, bytes) in tree(&root(&home)) {
            let bytes = bytes.unwrap_or_default();
            assert!(!bytes.windows(KEY.len()).any(|part| part == KEY.as_bytes()), "{} holds the key", path.display());
        }
        for request in stub.requests() {
            assert!(!String::from_utf8_lossy(&request.body).contains(KEY), "a body holds the key");
            assert_eq!(request.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
            assert_eq!(request.header("x-api-key"), None);
        }
    }
}

#[test]
fn a_server_on_this_machine_needs_no_key_and_any_other_does() {
    for wire in wires() {
        let home = Home::new();
        let stub = replies([(wire.text)("네"), (wire.text)("또")]);
        let model = format!("{}/qwen3:0.6b", wire.name);
        let local = || gjc(&home).args(["-p", "x", "--no-session", "--model", &model]);
        assert_eq!(local().args(["--provider-url", &stub.url()]).output().ok().out(), "네\n");
        assert_eq!(local().env("OPENAI_BASE_URL", format!("{}/v1", stub.url())).output().ok().out(), "또\n");
        for request in stub.requests() {
            assert_eq!((request.path.as_str(), request.header("authorization")), (wire.path, None));
            let body = request.json();
            assert_eq!(body["model"], "qwen3:0.6b");
            let limits = ["max_tokens", "max_completion_tokens", "max_output_tokens"];
            assert!(limits.iter().all(|name| body.get(name).is_none()), "the server knows its limit: {body}");
        }
        for elsewhere in [&[][..], &["--provider-url", "http://models.example:8080/v1"]] {
            let out = local().args(elsewhere).output();
            assert_eq!((out.code(), out.out().as_str()), (Some(1), ""), "{out}");
            assert!(out.err().contains("there is no key for openai") && out.err().contains("OPENAI_API_KEY"), "{out}");
        }
    }
}

#[test]
fn a_refusal_is_told_and_not_repeated() {
    for wire in wires() {
        for (status, code, message, expected) in [
            (
                400,
                "context_length_exceeded",
                "This model's maximum context length is 9 tokens.",
                "too long for the model",
            ),
            (429, "insufficient_quota", "You exceeded your current quota.", "usage limit is reached"),
            (404, "model_not_found", "The model `없음` does not exist", "refused the request"),
        ] {
            let home = Home::new();
            let stub = replies([openai::error(status, code, message)]);
            let out = wire.ask(&home, &stub, "안녕").output();
            assert_eq!((out.code(), stub.requests().len()), (Some(1), 1), "{out}");
            assert!(out.err().contains(expected), "{out}");
        }
    }
}
