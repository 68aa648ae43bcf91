//! What holds on every wire: answers cut wherever a network may cut them, requests that are the same from memory and from disk,
//! what HTTP may do, and where the key goes.

use crate::kit::{
    HEAD, RECORDED, Reply, Server, Session, Still, Store, assembled_of, block_on, json, recorded, request, said, text,
    tool_result, user,
};
use crate::{openai, openai_responses};
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use gjc_entry::{AssistantMessage, Clock, Message, ModelRef, Params, RequestEnv, StopReason, Thinking};
use gjc_llm::{HttpConfig, Provider, ProviderError, Rendered, Secret, StreamEvent, render};
use proptest::prelude::*;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

type Pieces = futures_util::stream::Iter<std::vec::IntoIter<Result<Bytes, std::io::Error>>>;

/// One wire, with an answer as its servers stream it.
pub(crate) struct Wire {
    pub(crate) model: ModelRef,
    /// The answer, and the message that it is.
    pub(crate) recorded: String,
    pub(crate) message: &'static str,
    /// A text in the event with which something of the answer is passed on.
    begins: &'static str,
    /// A text in the event with which it is whole.
    ends: &'static str,
    decode: fn(Pieces) -> BoxStream<'static, Result<StreamEvent, ProviderError>>,
    provider: fn(HttpConfig, Arc<dyn Clock>) -> Box<dyn Provider>,
    path: &'static str,
    key: &'static str,
}

pub(crate) fn wires() -> [Wire; 3] {
    [
        Wire {
            model: crate::kit::model(),
            recorded: recorded(),
            message: RECORDED,
            begins: "content_block_start",
            ends: "message_stop",
            decode: gjc_llm::anthropic::decode,
            provider: |config, clock| Box::new(gjc_llm::anthropic::remote(config, clock)),
            path: "/v1/messages",
            key: "x-api-key: sk-0123456789",
        },
        Wire {
            model: openai::model(),
            recorded: openai::recorded(),
            message: openai::RECORDED,
            begins: "먼저 읽",
            ends: "finish_reason\":\"tool_calls",
            decode: gjc_llm::openai::decode,
            provider: |config, clock| Box::new(gjc_llm::openai::remote(config, clock)),
            path: "/v1/chat/completions",
            key: "authorization: Bearer sk-0123456789",
        },
        Wire {
            model: openai_responses::model(),
            recorded: openai_responses::recorded(),
            message: openai_responses::RECORDED,
            begins: "response.output_item.added",
            ends: "response.completed",
            decode: gjc_llm::openai_responses::decode,
            provider: |config, clock| Box::new(gjc_llm::openai_responses::remote(config, clock)),
            path: "/v1/responses",
            key: "authorization: Bearer sk-0123456789",
        },
    ]
}

impl Wire {
    pub(crate) fn decoded(&self, pieces: Vec<Bytes>) -> (AssistantMessage, Option<ProviderError>) {
        let pieces: Vec<_> = pieces.into_iter().map(Ok).collect();
        let answer = block_on((self.decode)(futures_util::stream::iter(pieces)).collect());
        assembled_of(self.model.clone(), answer)
    }

    #[track_caller]
    fn assert_whole(&self, pieces: Vec<Bytes>, which: &str) {
        let (message, error) = self.decoded(pieces);
        assert_eq!((json(&message).as_str(), error), (self.message, None), "{} {which}", self.model.api);
    }

    pub(crate) fn env(&self) -> RequestEnv {
        let params = Params { max_tokens: 32_000 };
        let (system, tools) = (crate::kit::blob(1), crate::kit::blob(2));
        RequestEnv {
            all_tools: Vec::new(),
            system,
            tools,
            model: self.model.clone(),
            thinking: Thinking::Low,
            tier: gjc_entry::Tier::Auto,
            params,
            renderer: 1,
            held: None,
        }
    }

    fn rendered(&self) -> Rendered {
        let request = request(self.env(), vec![user(vec![text("안녕")])]);
        render(&self.model.api, 1, &request, &Store::new("s", "[]")).unwrap()
    }

    fn ask(&self, config: HttpConfig) -> (AssistantMessage, Option<ProviderError>) {
        let provider = (self.provider)(config, Still::new());
        let answer = block_on(provider.stream(self.rendered(), CancellationToken::new()).collect());
        assembled_of(self.model.clone(), answer)
    }

    fn ask_server(&self, reply: Reply) -> ProviderError {
        let server = Server::new(vec![reply]);
        let error = self.ask(config(server.url())).1.unwrap();
        assert!(!format!("{error} {error:?}").contains("0123456789"), "{error}");
        error
    }
}

fn config(base_url: String) -> HttpConfig {
    HttpConfig { key: Some(Secret::new("sk-0123456789")), ..HttpConfig::new(base_url) }
}

fn reply(status: &str, headers: &str, body: &str) -> Reply {
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}");
    Reply::Pieces(vec![head.into_bytes()])
}

#[test]
fn every_cut_into_two_gives_the_same_message() {
    for wire in wires() {
        let body = Bytes::from(wire.recorded.clone());
        for cut in 0..=body.len() {
            wire.assert_whole(vec![body.slice(..cut), body.slice(cut..)], &format!("cut at {cut}"));
        }
    }
}

#[test]
fn one_byte_at_a_time_and_other_line_ends_give_the_same_message() {
    for wire in wires() {
        for end in ["\n", "\r\n", "\r"] {
            let body = wire.recorded.replace('\n', end);
            wire.assert_whole(body.bytes().map(|byte| Bytes::copy_from_slice(&[byte])).collect(), end);
        }
    }
}

#[test]
fn a_truncated_answer_is_cut_wherever_it_ends() {
    for wire in wires() {
        let body = Bytes::from(wire.recorded.clone());
        let begins = wire.recorded.find(wire.begins).unwrap();
        let ends = wire.recorded.find(wire.ends).unwrap();
        let (mut safe, mut unsafe_) = (0, 0);
        for cut in 0..ends {
            let (message, error) = wire.decoded(vec![body.slice(..cut)]);
            match error {
                Some(ProviderError::Cut { replay_safe: true, .. }) => {
                    safe += 1;
                    assert!(message.content.is_empty(), "{} cut at {cut}", wire.model.api);
                }
                Some(ProviderError::Cut { replay_safe: false, .. }) => {
                    unsafe_ += 1;
                    assert!(cut > begins);
                    assert_eq!(message.stop, StopReason::Error);
                }
                other => panic!("{} cut at {cut}: {other:?}", wire.model.api),
            }
        }
        assert!(safe > begins && unsafe_ > 1000, "{}: {safe} {unsafe_}", wire.model.api);
    }
}

#[test]
fn nonsense_is_an_error_and_never_a_panic() {
    for wire in wires() {
        for body in ["data: {\n\n", "data: []\n\n", "data: 7\n\n", "data: \u{0}\n\n", "<html>아니</html>"] {
            let (_, error) = wire.decoded(vec![Bytes::copy_from_slice(body.as_bytes())]);
            assert!(matches!(error, Some(ProviderError::Cut { replay_safe: true, .. })), "{body}: {error:?}");
        }
        let (_, error) = wire.decoded(vec![Bytes::from_static(b"data: \xff\xfe\n\n")]);
        assert!(matches!(error, Some(ProviderError::Cut { .. })));
    }
}

proptest! {
    /// Values of recorded events in the place of others, and parts left out: whatever a server sends, there is a message or an
    /// error, and what is kept can be written, read and sent again.
    #[test]
    fn events_out_of_order_out_of_shape_or_doubled_panic_nothing(
        which in 0usize..3,
        picks in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0usize..8), 1..40),
    ) {
        let wire = &wires()[which];
        let events: Vec<&str> = wire.recorded.split_inclusive("\n\n").collect();
        let mut body = String::new();
        for (pick, place, how) in picks {
            let event = events[pick.index(events.len())];
            let changed = match how {
                0 => event.replace("index\":0", "index\":18446744073709551615"),
                1 => event.replace("index\":", "indices\":"),
                2 => event.replace("\"id\":\"", "\"name\":\""),
                3 => event.replace("\":\"", "\":[\"").replace("\",\"", "\"],\""),
                4 => {
                    let mut at = place.index(event.len());
                    while !event.is_char_boundary(at) { at -= 1; }
                    event[..at].to_owned() + "\n\n"
                }
                _ => event.to_owned(),
            };
            body.push_str(&changed);
        }
        let (message, _) = wire.decoded(vec![Bytes::from(body)]);
        let session = Session(vec![said("x"), Message::Assistant(message), said("y")]);
        let body = |session: &Session| {
            render(&wire.model.api, 1, &request(wire.env(), session.view().messages), &Store::new("s", "[]")).unwrap()
        };
        let live = body(&session);
        prop_assert_eq!(&live, &body(&session.reread()));
        let _: serde_json::Value = serde_json::from_slice(&live.body).unwrap();
    }
}

/// The rule of the project: from memory and from disk the bytes are the same.
#[test]
fn an_answer_read_back_from_its_line_renders_to_the_same_bytes() {
    let store =
        Store::new("s", r#"[{"name":"read","description":"파일을 읽는다","input":{"type":"object", "x":1.0}}]"#);
    for wire in wires() {
        let full = wire.recorded.clone();
        let ends = full.find(wire.ends).unwrap();
        for cut in [full.len(), full.find("서.md").unwrap(), full.find("는다").unwrap(), ends / 2] {
            let (mut message, error) = wire.decoded(vec![full.as_bytes()[..cut].to_vec().into()]);
            assert_eq!(error.is_some(), cut < full.len());
            message.stop = if error.is_some() { StopReason::Aborted } else { message.stop };
            let ids: Vec<String> = message
                .content
                .iter()
                .filter_map(
                    |block| if let gjc_entry::Block::ToolCall { id, .. } = block { Some(id.clone()) } else { None },
                )
                .collect();
            let mut messages = vec![said("읽어 줘"), Message::Assistant(message)];
            if error.is_none() {
                assert_eq!(ids.len(), 2);
                messages.extend([tool_result(&ids[1], "둘째"), tool_result(&ids[0], "첫째")]);
            }
            messages.push(said("계속"));
            let session = Session(messages);
            let rendered = |session: &Session| {
                render(&wire.model.api, 1, &request(wire.env(), session.view().messages), &store).unwrap()
            };
            let once = rendered(&session);
            assert_eq!(rendered(&session), once, "the same bytes each time");
            assert_eq!(rendered(&session.reread()), once);
            assert_eq!(rendered(&session.reread().reread()), once);
            let body = String::from_utf8(once.body.to_vec()).unwrap();
            let _: serde_json::Value = serde_json::from_str(&body).unwrap();
            if error.is_none() {
                assert!(body.find("첫째").unwrap() < body.find("둘째").unwrap(), "results in the order of their calls");
                assert!(body.contains("1.50"), "arguments as the model wrote them: {body}");
            } else {
                assert!(!body.contains(r#"{\"path\": \"문"#), "half a call is not sent: {body}");
            }
            // Every message has its place, and nothing of another is in it.
            for at in &once.layout.blocks {
                assert!(at.start < at.end && at.end < body.len());
                assert!(body.is_char_boundary(at.start) && body.is_char_boundary(at.end));
            }
            let last = once.layout.blocks.last().unwrap();
            assert!(body[last.start..last.end].contains("계속"), "{}", &body[last.start..last.end]);
        }
    }
}

/// What one provider signed goes to no other, whatever the wire.
#[test]
fn signatures_go_to_the_model_that_made_them_and_to_no_other() {
    let all = wires();
    for from in &all {
        let (message, _) = from.decoded(vec![Bytes::from(from.recorded.clone())]);
        let ids = ["a", "b"].map(|n| format!("call_{n}"));
        let mut message = message;
        let mut next = ids.iter();
        for block in &mut message.content {
            if let gjc_entry::Block::ToolCall { id, .. } = block {
                *id = next.next().unwrap().clone();
            }
        }
        let session = Session(vec![
            said("읽어 줘"),
            Message::Assistant(message),
            tool_result(&ids[0], "x"),
            tool_result(&ids[1], "y"),
        ]);
        for to in &all {
            let request = request(to.env(), session.view().messages);
            let body = render(&to.model.api, 1, &request, &Store::new("", "")).unwrap().body;
            let body = String::from_utf8(body.to_vec()).unwrap();
            assert_eq!(
                body.contains("EqQB=="),
                from.model == to.model,
                "{} → {}: {body}",
                from.model.api,
                to.model.api
            );
            assert!(body.contains("파일을 한글"), "words go to all: {body}");
        }
        // The same wire and provider, another model.
        let mut env = from.env();
        env.model.id = "another".into();
        let body =
            render(&from.model.api, 1, &request(env, session.view().messages), &Store::new("", "")).unwrap().body;
        let sent = String::from_utf8_lossy(&body).contains("EqQB==");
        assert_eq!(sent, from.model.api == "anthropic-messages", "{}", from.model.api);
    }
}

#[test]
fn a_request_is_sent_and_its_answer_read() {
    for wire in wires() {
        let body = wire.recorded.as_bytes();
        let (one, two) = body.split_at(wire.recorded.find('파').unwrap() + 1);
        let server = Server::new(vec![Reply::Pieces(vec![HEAD.into(), one.to_vec(), two.to_vec()])]);
        let (message, error) = wire.ask(config(server.url()));
        assert_eq!((json(&message).as_str(), error), (wire.message, None));
        let sent = server.requests.recv().unwrap();
        let (head, body) = sent.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with(&format!("POST {} HTTP/1.1\r\n", wire.path)), "{head}");
        assert!(head.contains(wire.key) && head.contains("content-type: application/json"), "{head}");
        assert_eq!(body.as_bytes(), wire.rendered().body);
    }
}

#[test]
fn errors_over_http() {
    for wire in wires() {
        let echo =
            r#"{"error":{"type":"invalid_request_error","message":"Incorrect API key provided: sk-0123456789."}}"#;
        let error = wire.ask_server(reply("401 Unauthorized", "", echo));
        assert_eq!(error, ProviderError::Auth("Incorrect API key provided: [key]".into()));
        let slow = r#"{"error":{"message":"천천히"}}"#;
        let error = wire.ask_server(reply("429 Too Many Requests", "retry-after: 7\r\n", slow));
        assert_eq!(error, ProviderError::Retry { after: Some(Duration::from_secs(7)), why: "천천히".into() });
        let error = wire.ask_server(reply("429 Too Many Requests", "retry-after: 9\r\nretry-after-ms: 250\r\n", slow));
        assert_eq!(error.after(), Some(Duration::from_millis(250)));
        let loading = r#"{"error":{"message":"Loading model","type":"unavailable_error","code":503}}"#;
        let error = wire.ask_server(reply("503 Service Unavailable", "", loading));
        assert_eq!(error, ProviderError::Retry { after: None, why: "Loading model".into() });
        let error = wire.ask_server(reply("302 Found", "location: http://127.0.0.1:9/\r\n", ""));
        assert!(matches!(error, ProviderError::BadRequest(_)), "no redirect is followed: {error}");
        let error = wire.ask_server(reply("200 OK", "content-type: text/html\r\n", "<html>"));
        assert!(error.to_string().contains("text/html"), "{error}");
        let error = wire.ask_server(Reply::Pieces(Vec::new()));
        assert!(matches!(error, ProviderError::Retry { .. }), "no head: {error}");
        let error = wire.ask_server(Reply::Pieces(vec![HEAD.into()]));
        assert!(matches!(error, ProviderError::Cut { replay_safe: true, .. }), "no body: {error}");
    }
}

/// Some servers do not know how to stream, and some answer their errors with 200.
#[test]
fn an_answer_that_is_one_document_is_read_where_the_wire_has_such() {
    let json = "content-type: application/json; charset=utf-8\r\n";
    let documents = [
        r#"{"content":[]}"#,
        "{\n \"id\": \"x\",\n \"choices\": [{\"message\": {\"content\": \"한\\ud83d글\"}, \"finish_reason\": \"stop\"}]\n}\n",
        r#"{"id":"x","object":"response","status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"한\ud83d글"}]}]}"#,
    ];
    for (wire, document) in wires().into_iter().zip(documents) {
        let server = Server::new(vec![reply("200 OK", json, document)]);
        let (message, error) = wire.ask(config(server.url()));
        if wire.model.api == "anthropic-messages" {
            assert!(error.unwrap().to_string().contains("application/json"), "the Messages API always streams");
            continue;
        }
        assert_eq!((error, message.stop), (None, StopReason::Stop), "{}", wire.model.api);
        assert!(matches!(&message.content[..], [gjc_entry::Block::Text { text, .. }] if text == "한\u{fffd}글"));
        let full = r#"{"error":{"message":"maximum context length is 9 tokens","code":"context_length_exceeded"}}"#;
        assert!(matches!(wire.ask_server(reply("200 OK", json, full)), ProviderError::Overflow(_)));
        for half in [&document[..document.len() / 2], "", "[]", "{}", "\u{0}"] {
            let error = wire.ask_server(reply("200 OK", json, half.trim_end_matches('\u{fffd}')));
            assert!(matches!(error, ProviderError::Cut { replay_safe: true, .. }), "{half}: {error:?}");
        }
        let echo = r#"{"error":{"message":"bad key sk-0123456789","code":401}}"#;
        assert_eq!(wire.ask_server(reply("200 OK", json, echo)), ProviderError::Auth("bad key [key]".into()));
    }
}

#[test]
fn a_silent_server_is_not_waited_for_for_ever() {
    for wire in wires() {
        let begun = wire.recorded[..wire.recorded.find("는다").unwrap()].to_owned();
        let begun = begun[..begun.rfind("\n\n").unwrap() + 2].to_owned();
        for (bytes, begun) in [(HEAD.to_owned(), false), (HEAD.to_owned() + &begun, true)] {
            let server = Server::new(vec![Reply::ThenSilence(bytes.into_bytes())]);
            let config = HttpConfig { idle_limit: Duration::from_millis(300), ..config(server.url()) };
            let (_, error) = wire.ask(config);
            assert!(matches!(error, Some(ProviderError::Cut { replay_safe, .. }) if replay_safe != begun), "{error:?}");
        }
    }
}

#[test]
fn a_wire_names_itself_as_the_family_does() {
    let names = wires().map(|wire| {
        let provider = (wire.provider)(HttpConfig::new("http://127.0.0.1:9"), Still::new());
        assert_eq!(provider.api(), wire.model.api);
        let by_name = render(
            provider.api(),
            provider.renderer(),
            &request(wire.env(), vec![user(vec![text("x")])]),
            &Store::new("", ""),
        );
        let by_self = provider.render(&request(wire.env(), vec![user(vec![text("x")])]), &Store::new("", ""));
        assert_eq!(by_name, by_self);
        assert!(
            render(provider.api(), 0, &request(wire.env(), vec![user(vec![text("x")])]), &Store::new("", "")).is_err()
        );
        provider.api()
    });
    assert_eq!(names, ["anthropic-messages", "openai-completions", "openai-responses"]);
}
