//! The Responses API: its bytes, its events, and what servers make of both.

use crate::kit::{Store, answer, blob, call, json, png, request, result, text, thought, user};
use crate::wires::{Wire, wires};
use bytes::Bytes;
use gjc_context::Msg;
use gjc_entry::message::ImageData;
use gjc_entry::{AssistantMessage, Block, ModelRef, Params, RequestEnv, StopReason, Thinking};
use gjc_llm::{ProviderError, openai_responses, render};

pub(crate) fn model() -> ModelRef {
    ModelRef { provider: "openai".into(), id: "gpt-5".into(), api: "openai-responses".into() }
}

/// An answer as OpenAI streams it: an encrypted reasoning item with a summary, Korean text, two calls with interleaved arguments.
pub(crate) fn recorded() -> String {
    let item = r#"{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"먼저 읽는다."}],"encrypted_content":"EqQB==","status":null}"#;
    let reasoning_done = format!(r#"{{"type":"response.output_item.done","output_index":0,"item":{item}}}"#);
    let completed = format!(
        r#"{{"type":"response.completed","response":{{"id":"resp_1","object":"response","status":"completed","output":[{item},{{"id":"msg_1","type":"message","content":[{{"type":"output_text","text":"파일을 한글"}}]}}],"usage":{{"input_tokens":117,"input_tokens_details":{{"cached_tokens":100}},"output_tokens":89,"output_tokens_details":{{"reasoning_tokens":64}},"total_tokens":206}}}}}}"#
    );
    let events = [
        r#"{"type":"response.created","response":{"id":"resp_1","object":"response","status":"in_progress","output":[]}}"#,
        r#"{"type":"response.in_progress","response":{"id":"resp_1"}}"#,
        r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[]}}"#,
        r#"{"type":"response.reasoning_summary_part.added","item_id":"rs_1","output_index":0,"summary_index":0,"part":{"type":"summary_text","text":""}}"#,
        r#"{"type":"response.reasoning_summary_text.delta","item_id":"rs_1","output_index":0,"summary_index":0,"delta":"먼저 읽"}"#,
        r#"{"type":"response.reasoning_summary_text.delta","item_id":"rs_1","output_index":0,"summary_index":0,"delta":"는다."}"#,
        r#"{"type":"response.reasoning_summary_text.done","item_id":"rs_1","output_index":0,"summary_index":0,"text":"먼저 읽는다."}"#,
        &reasoning_done,
        r#"{"type":"response.output_item.added","output_index":1,"item":{"id":"msg_1","type":"message","status":"in_progress","content":[],"role":"assistant"}}"#,
        r#"{"type":"response.content_part.added","item_id":"msg_1","output_index":1,"content_index":0,"part":{"type":"output_text","annotations":[],"text":""}}"#,
        r#"{"type":"response.output_text.delta","item_id":"msg_1","output_index":1,"content_index":0,"delta":"파"}"#,
        r#"{"type":"response.output_text.delta","item_id":"msg_1","output_index":1,"content_index":0,"delta":""}"#,
        r#"{"type":"response.output_text.delta","item_id":"msg_1","output_index":1,"content_index":0,"delta":"일을 \ud55c\uae00 \"읽\" 😀"}"#,
        r#"{"type":"response.output_text.done","item_id":"msg_1","output_index":1,"content_index":0,"text":"파일을 한글"}"#,
        r#"{"type":"response.output_item.done","output_index":1,"item":{"id":"msg_1","type":"message","content":[{"type":"output_text","text":"파일을 한글"}]}}"#,
        r#"{"type":"response.output_item.added","output_index":2,"item":{"id":"fc_1","type":"function_call","call_id":"call_A","name":"read","arguments":""}}"#,
        r#"{"type":"response.output_item.added","output_index":3,"item":{"id":"fc_2","type":"function_call","call_id":"call_B","name":"grep","arguments":""}}"#,
        r#"{"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":2,"delta":"{\"path\": \"문"}"#,
        r#"{"type":"response.function_call_arguments.delta","item_id":"fc_2","output_index":3,"delta":"{\"pattern\":"}"#,
        r#"{"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":2,"delta":"서.md\", \"n\": 1.50}"}"#,
        r#"{"type":"response.function_call_arguments.delta","item_id":"fc_2","output_index":3,"delta":"\"\\\\w+\"}"}"#,
        r#"{"type":"response.function_call_arguments.done","item_id":"fc_2","output_index":3,"arguments":"{\"pattern\":\"\\\\w+\"}"}"#,
        r#"{"type":"response.output_item.done","output_index":3,"item":{"id":"fc_2","type":"function_call","call_id":"call_B","name":"grep","arguments":"{\"pattern\":\"\\\\w+\"}"}}"#,
        r#"{"type":"response.output_item.done","output_index":2,"item":{"id":"fc_1","type":"function_call","call_id":"call_A","name":"read","arguments":"{}"}}"#,
        r#"{"type":"response.output_item.added","output_index":4,"item":{"id":"ws_1","type":"web_search_call"}}"#,
        r#"{"type":"response.brand_new","output_index":"none"}"#,
        &completed,
    ];
    let mut body = String::from(": 안녕, a comment\n\n");
    for event in events {
        let kind = event.split('"').nth(3).unwrap();
        body.push_str(&format!("event: {kind}\ndata: {event}\n\n"));
    }
    body
}

/// The message that [`recorded`] is.
pub(crate) const RECORDED: &str = r#"{"role":"assistant","content":[{"type":"thinking","thinking":"먼저 읽는다.","thinkingSignature":"{\"type\":\"reasoning\",\"id\":\"rs_1\",\"summary\":[{\"text\":\"먼저 읽는다.\",\"type\":\"summary_text\"}],\"encrypted_content\":\"EqQB==\"}"},{"type":"text","text":"파일을 한글 \"읽\" 😀"},{"type":"toolCall","id":"call_A","name":"read","arguments":{"path": "문서.md", "n": 1.50}},{"type":"toolCall","id":"call_B","name":"grep","arguments":{"pattern":"\\w+"}}],"api":"openai-responses","provider":"openai","model":"gpt-5","responseId":"resp_1","usage":{"input":17,"output":89,"cacheRead":100,"cacheWrite":0,"totalTokens":206,"cost":{"input":0.0,"output":0.0,"cacheRead":0.0,"cacheWrite":0.0,"total":0.0}},"stopReason":"toolUse","timestamp":7}"#;

fn wire() -> Wire {
    wires().into_iter().nth(2).unwrap()
}

fn of(events: &[&str]) -> (AssistantMessage, Option<ProviderError>) {
    let body: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    wire().decoded(vec![Bytes::from(body)])
}

#[track_caller]
fn whole(events: &[&str]) -> AssistantMessage {
    let (message, error) = of(events);
    assert_eq!(error, None, "{}", json(&message));
    message
}

fn content(message: &AssistantMessage) -> String {
    let text = json(message);
    let (start, end) = (text.find("\"content\":").unwrap() + 10, text.find(",\"api\"").unwrap());
    text[start..end].to_owned()
}

const COMPLETED: &str = r#"{"type":"response.completed","response":{"status":"completed"}}"#;

#[test]
fn a_whole_answer_in_one_event_or_one_document_is_an_answer() {
    let response = r#"{"id":"r","object":"response","status":"completed","output":[{"type":"reasoning","content":[{"type":"reasoning_text","text":"생각"}],"summary":[]},{"type":"message","content":[{"type":"output_text","text":"네"},{"type":"refusal","refusal":"아니"}]},{"type":"function_call","name":"ls","arguments":"{\"경로\": \".\"}"}],"usage":{"input_tokens":3,"output_tokens":2}}"#;
    for event in [format!(r#"{{"type":"response.completed","response":{response}}}"#), response.to_owned()] {
        let message = whole(&[&event]);
        let expected = r#"[{"type":"thinking","thinking":"생각"},{"type":"text","text":"네\n\n아니"},{"type":"toolCall","id":"call_3","name":"ls","arguments":{"경로": "."}}]"#;
        assert_eq!(content(&message), expected);
        assert_eq!(
            (message.stop, message.usage.input, message.response_id.as_deref()),
            (StopReason::ToolUse, 3, Some("r"))
        );
    }
}

#[test]
fn servers_that_announce_nothing_or_number_nothing_are_understood() {
    let message = whole(&[
        r#"{"type":"response.reasoning_text.delta","delta":"생각","item_id":"a","output_index":0}"#,
        r#"{"type":"response.output_text.delta","delta":{"text":"네"},"output_index":1}"#,
        r#"{"type":"response.function_call_arguments.delta","delta":"{\"a\":","output_index":2}"#,
        r#"{"type":"response.function_call_arguments.delta","delta":"1}","output_index":2}"#,
        r#"{"type":"response.output_item.done","output_index":2,"item":{"type":"function_call","call_id":"c","name":"ls","arguments":"{\"a\":1}"}}"#,
        COMPLETED,
    ]);
    let expected = r#"[{"type":"thinking","thinking":"생각"},{"type":"text","text":"네"},{"type":"toolCall","id":"c","name":"ls","arguments":{"a":1}}]"#;
    assert_eq!(content(&message), expected);
    let message = whole(&[
        r#"{"type":"response.output_item.added","item":{"id":"m","type":"message"}}"#,
        r#"{"type":"response.output_text.delta","delta":"하나"}"#,
        r#"{"type":"response.output_item.added","item":{"id":"n","type":"message"}}"#,
        r#"{"type":"response.output_text.delta","item_id":"n","delta":"둘"}"#,
        r#"{"type":"response.output_text.delta","item_id":"m","delta":" 셋"}"#,
        COMPLETED,
    ]);
    assert_eq!(content(&message), r#"[{"type":"text","text":"하나 셋"},{"type":"text","text":"둘"}]"#);
    let done = whole(&[r#"{"type":"response.output_text.done","output_index":0,"text":"한 번에"}"#, COMPLETED]);
    assert_eq!(content(&done), r#"[{"type":"text","text":"한 번에"}]"#);
}

#[test]
fn parts_of_a_summary_are_told_apart() {
    let part = |n: u8, text: &str| {
        format!(
            r#"{{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":{n},"delta":"{text}"}}"#
        )
    };
    let message = whole(&[&part(0, "하나"), &part(0, "."), &part(1, "둘"), COMPLETED]);
    assert_eq!(content(&message), r#"[{"type":"thinking","thinking":"하나.\n\n둘"}]"#);
}

#[test]
fn a_list_of_items_that_leaves_some_out_doubles_nothing() {
    let message = whole(&[
        r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"r","type":"reasoning"}}"#,
        r#"{"type":"response.output_item.added","output_index":1,"item":{"id":"m","type":"message"}}"#,
        r#"{"type":"response.output_text.delta","output_index":1,"delta":"답"}"#,
        r#"{"type":"response.completed","response":{"output":[{"id":"m","type":"message","content":[{"type":"output_text","text":"답"}]}]}}"#,
    ]);
    assert_eq!(content(&message), r#"[{"type":"text","text":"답"}]"#);
}

#[test]
fn an_incomplete_answer_says_why() {
    let stop = |reason: &str| {
        let end = format!(
            r#"{{"type":"response.incomplete","response":{{"status":"incomplete","incomplete_details":{reason}}}}}"#
        );
        whole(&[r#"{"type":"response.output_text.delta","output_index":0,"delta":"반"}"#, &end]).stop
    };
    assert_eq!(stop(r#"{"reason":"max_output_tokens"}"#), StopReason::Length);
    assert_eq!(stop("null"), StopReason::Length);
    assert_eq!(stop(r#"{"reason":"content_filter"}"#), StopReason::Other("content_filter".into()));
}

#[test]
fn errors_in_the_stream_mean_what_their_place_says() {
    let only = |event: &str| of(&[event]).1.unwrap();
    let failed = |code: &str, message: &str| {
        only(&format!(
            r#"{{"type":"response.failed","response":{{"status":"failed","error":{{"code":"{code}","message":"{message}"}}}}}}"#
        ))
    };
    assert!(matches!(failed("server_error", "앗"), ProviderError::Retry { .. }));
    let slow = failed("rate_limit_exceeded", "Rate limit reached. Please try again in 11.5s.");
    assert_eq!(slow.after(), Some(std::time::Duration::from_millis(11_500)));
    assert!(matches!(failed("context_length_exceeded", "too long"), ProviderError::Overflow(_)));
    assert!(matches!(failed("insufficient_quota", "앗"), ProviderError::Quota { .. }));
    assert!(matches!(failed("invalid_prompt", "앗"), ProviderError::BadRequest(_)));
    assert!(matches!(
        only(r#"{"type":"error","code":"server_error","message":"앗","param":null}"#),
        ProviderError::Retry { .. }
    ));
    assert!(matches!(
        only(r#"{"type":"error","error":{"type":"invalid_request_error","message":"앗"}}"#),
        ProviderError::BadRequest(_)
    ));
    assert!(matches!(only(r#"{"error":{"code":401,"message":"앗"}}"#), ProviderError::Auth(_)));
    let late = of(&[
        r#"{"type":"response.output_text.delta","output_index":0,"delta":"반"}"#,
        r#"{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"끊겼다"}}}"#,
    ]);
    assert_eq!(late.1, Some(ProviderError::Cut { replay_safe: false, why: "끊겼다".into() }));
}

fn env(id: &str, thinking: Thinking) -> RequestEnv {
    let model = ModelRef { id: id.into(), ..model() };
    RequestEnv {
        all_tools: Vec::new(),
        system: blob(1),
        tools: blob(2),
        model,
        thinking,
        tier: gjc_entry::Tier::Auto,
        params: Params { max_tokens: 32_000 },
        renderer: 1,
        held: None,
    }
}

fn own(blocks: Vec<Block>) -> Msg {
    let mut own = answer(blocks);
    if let gjc_context::Said::Assistant { model, .. } = &mut own.said {
        *model = self::model();
    }
    own
}

#[test]
fn a_whole_conversation() {
    let mut store = Store::new(
        "너는 gjc다.",
        r#"[{"name":"read","description":"파일을 읽는다","input":{"type":"object", "x":1.0}}]"#,
    );
    store.0.insert(blob(3), b"\x89PNG".as_slice().into());
    let item = r#"{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"음…"}],"encrypted_content":"x==","status":null}"#;
    let messages = vec![
        user(vec![text("이 그림을 봐"), png(ImageData::Inline("iVBO".into()))]),
        own(vec![
            thought("음…", Some(item)),
            text("읽겠습니다"),
            thought("", Some(item)),
            call("a", "read", r#"{"path":"ㄱ", "n": 1.50}"#),
            call("b", "read", "[1]"),
        ]),
        result("a", vec![text("내용"), png(ImageData::Blob(blob(3)))], true),
        result("b", vec![text("하나"), text("둘")], false),
        user(vec![text("빨리")]),
        user(vec![text("어서")]),
        answer(vec![thought("남의 생각", Some(item)), text("네")]),
        user(vec![text("끝")]),
    ];
    let request = request(env("gpt-5", Thinking::Medium), messages);
    let rendered = render(openai_responses::API, 1, &request, &store).unwrap();
    let reasoning =
        r#"{"type":"reasoning","summary":[{"type":"summary_text","text":"음…"}],"encrypted_content":"x=="}"#;
    let expected = [
        r#"{"model":"gpt-5","max_output_tokens":32000,"stream":true,"store":false,"include":["reasoning.encrypted_content"],"#,
        r#""reasoning":{"effort":"medium","summary":"auto"},"instructions":"너는 gjc다.","#,
        r#""tools":[{"type":"function","name":"read","description":"파일을 읽는다","parameters":{"type":"object", "x":1.0},"strict":false}],"#,
        r#""input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"이 그림을 봐"},{"type":"input_image","image_url":"data:image/png;base64,iVBO"}]},"#,
        reasoning,
        r#",{"type":"message","role":"assistant","content":[{"type":"output_text","text":"읽겠습니다"}]},"#,
        reasoning,
        r#",{"type":"function_call","call_id":"a","name":"read","arguments":"{\"path\":\"ㄱ\", \"n\": 1.50}"},"#,
        r#"{"type":"function_call","call_id":"b","name":"read","arguments":"{}"},"#,
        r#"{"type":"function_call_output","call_id":"a","output":[{"type":"input_text","text":"(failed)"},{"type":"input_text","text":"내용"},{"type":"input_image","image_url":"data:image/png;base64,iVBORw=="}]},"#,
        r#"{"type":"function_call_output","call_id":"b","output":"하나\n\n둘"},"#,
        r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"빨리"},{"type":"input_text","text":"어서"}]},"#,
        r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"네"}]},"#,
        r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"끝"}]}]}"#,
    ]
    .concat();
    assert_eq!(std::str::from_utf8(&rendered.body).unwrap(), expected);
    let places: Vec<(usize, &str)> =
        rendered.layout.blocks.iter().map(|at| (at.message, &expected[at.start..at.end])).collect();
    assert_eq!(places.iter().map(|(message, _)| *message).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5, 6, 7]);
    assert!(places[1].1.starts_with(reasoning) && places[1].1.ends_with(r#""arguments":"{}"}"#), "{}", places[1].1);
    assert_eq!(places[5].1, r#"{"type":"input_text","text":"어서"}"#);
}

#[test]
fn what_a_server_refuses_is_not_sent() {
    let sent = |id: &str, thinking, messages| {
        let mut env = env(id, thinking);
        env.params.max_tokens = 0;
        let rendered = render(openai_responses::API, 1, &request(env, messages), &Store::new("", "[]")).unwrap();
        String::from_utf8(rendered.body.to_vec()).unwrap()
    };
    let ask = || vec![user(vec![text("x")])];
    let plain = sent("gpt-4o", Thinking::Off, ask());
    let input = r#""input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"x"}]}]}"#;
    assert_eq!(plain, format!(r#"{{"model":"gpt-4o","stream":true,"store":false,{input}"#));
    assert!(sent("gpt-5", Thinking::Off, ask()).contains("encrypted_content"), "it thinks unasked");
    assert!(sent("gpt-oss-20b", Thinking::Low, ask()).contains(r#""effort":"low""#));
    let sealed = r#"{"type":"reasoning","summary":[],"encrypted_content":"x=="}"#;
    // Thinking before a text that is left out stands before nothing.
    let trailing =
        vec![user(vec![text("1")]), own(vec![text("답"), thought("", Some(sealed)), text(" ")]), user(vec![text("2")])];
    assert!(!sent("gpt-5", Thinking::Off, trailing).contains("x=="));
    for bad in [
        "",
        "{",
        "[]",
        "sig",
        r#"{"type":"reasoning"}"#,
        r#"{"type":"message","encrypted_content":"x"}"#,
        r#"{"type":"reasoning","encrypted_content":""}"#,
        r#"{"type":"reasoning","summary":[{"text":"\ud83d"}],"encrypted_content":"x"}"#,
    ] {
        let messages =
            vec![user(vec![text("1")]), own(vec![thought("생각", Some(bad)), text("답")]), user(vec![text("2")])];
        let body = sent("gpt-5", Thinking::Off, messages);
        assert!(!body.contains(r#""type":"reasoning""#) && !body.contains("생각"), "{bad}: {body}");
        let _: serde_json::Value = serde_json::from_str(&body).unwrap();
    }
}

#[test]
fn an_end_that_comes_before_each_item_has_ended_is_no_end() {
    let events = |done: bool| {
        let mut body = String::from("data: {\"type\":\"response.created\",\"response\":{\"id\":\"r\"}}\n\n");
        for event in [
            r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"m","type":"message"}}"#,
            r#"{"type":"response.output_text.delta","item_id":"m","output_index":0,"content_index":0,"delta":"half an ans"}"#,
        ] {
            body += &format!("data: {event}\n\n");
        }
        if done {
            body += "data: {\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{\"id\":\"m\",\"type\":\"message\",\"content\":[{\"type\":\"output_text\",\"text\":\"half an ans\"}]}}\n\n";
        }
        body + "data: [DONE]\n\n"
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let read = |body: String| {
        let pieces = futures_util::stream::iter([Ok::<_, std::io::Error>(Bytes::from(body))]);
        runtime.block_on(futures_util::StreamExt::collect::<Vec<_>>(openai_responses::decode(pieces)))
    };
    assert!(matches!(read(events(false)).last(), Some(Err(ProviderError::Cut { .. }))));
    assert!(matches!(read(events(true)).last(), Some(Ok(gjc_llm::StreamEvent::Stop(StopReason::Stop)))));
}
