//! The Chat Completions API: its bytes, and the dialects of its servers.

use crate::kit::{Store, answer, blob, call, json, png, request, result, text, thought, user};
use crate::wires::{Wire, wires};
use bytes::Bytes;
use gjc_context::Msg;
use gjc_entry::message::ImageData;
use gjc_entry::{AssistantMessage, Block, ModelRef, Params, RequestEnv, StopReason, Thinking};
use gjc_llm::{ProviderError, openai, render};
use proptest::prelude::*;

pub(crate) fn model() -> ModelRef {
    ModelRef { provider: "openai".into(), id: "qwen3".into(), api: "openai-completions".into() }
}

/// An answer as a router streams it: signed thinking, Korean text, two calls with interleaved arguments, usage behind the end.
pub(crate) fn recorded() -> String {
    let chunk = |rest: &str| {
        format!("data: {{\"id\":\"gen-1\",\"object\":\"chat.completion.chunk\",\"model\":\"qwen3\",{rest}}}\n\n")
    };
    let delta = |delta: &str| chunk(&format!(r#""choices":[{{"index":0,"delta":{delta},"finish_reason":null}}]"#));
    let mut body = String::from(": 안녕, a comment\n\n");
    for piece in [
        r#"{"role":"assistant","content":""}"#,
        r#"{"reasoning":"먼저 읽","reasoning_details":[{"type":"reasoning.text","index":0,"text":"먼저 읽","format":"x"}]}"#,
        r#"{"reasoning":"는다.","reasoning_details":[{"type":"reasoning.text","index":0,"text":"는다."}]}"#,
        r#"{"content":"","reasoning":null,"reasoning_details":[{"type":"reasoning.text","index":0,"signature":"EqQB=="}]}"#,
        r#"{"content":"파"}"#,
        r#"{"content":"일을 \ud55c\uae00 \"읽\" 😀"}"#,
        r#"{"tool_calls":[{"index":0,"id":"call_A","type":"function","function":{"name":"read","arguments":""}}]}"#,
        r#"{"tool_calls":[{"index":1,"id":"call_B","type":"function","function":{"name":"grep","arguments":""}}]}"#,
        r#"{"tool_calls":[{"index":0,"function":{"arguments":"{\"path\": \"문"}}]}"#,
        r#"{"tool_calls":[{"index":1,"function":{"arguments":"{\"pattern\":"}}]}"#,
        r#"{"tool_calls":[{"index":0,"function":{"arguments":"서.md\", \"n\": 1.50}"}},{"index":1,"function":{"arguments":"\"\\\\w+\"}"}}]}"#,
    ] {
        body.push_str(&delta(piece));
    }
    body.push_str(&chunk(r#""choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}],"brand_new":[1]"#));
    body.push_str(&chunk(
        r#""choices":[],"usage":{"prompt_tokens":117,"completion_tokens":89,"total_tokens":206,"prompt_tokens_details":{"cached_tokens":100,"cache_write_tokens":5}}"#,
    ));
    body + "data: [DONE]\n\n"
}

/// The message that [`recorded`] is.
pub(crate) const RECORDED: &str = r#"{"role":"assistant","content":[{"type":"thinking","thinking":"먼저 읽는다.","thinkingSignature":"[{\"format\":\"x\",\"index\":0,\"signature\":\"EqQB==\",\"text\":\"먼저 읽는다.\",\"type\":\"reasoning.text\"}]"},{"type":"text","text":"파일을 한글 \"읽\" 😀"},{"type":"toolCall","id":"call_A","name":"read","arguments":{"path": "문서.md", "n": 1.50}},{"type":"toolCall","id":"call_B","name":"grep","arguments":{"pattern":"\\w+"}}],"api":"openai-completions","provider":"openai","model":"qwen3","responseId":"gen-1","usage":{"input":12,"output":89,"cacheRead":100,"cacheWrite":5,"totalTokens":206,"cost":{"input":0.0,"output":0.0,"cacheRead":0.0,"cacheWrite":0.0,"total":0.0}},"stopReason":"toolUse","timestamp":7}"#;

fn wire() -> Wire {
    wires().into_iter().nth(1).unwrap()
}

/// A message of chunks, each given as what stands in its braces, without a `[DONE]`.
fn of(chunks: &[&str]) -> (AssistantMessage, Option<ProviderError>) {
    let body: String = chunks.iter().map(|chunk| format!("data: {{{chunk}}}\n\n")).collect();
    wire().decoded(vec![Bytes::from(body)])
}

#[track_caller]
fn whole(chunks: &[&str]) -> AssistantMessage {
    let (message, error) = of(chunks);
    assert_eq!(error, None, "{}", json(&message));
    message
}

fn texts(message: &AssistantMessage) -> Vec<String> {
    let of = |block: &Block| match block {
        Block::Text { text, .. } => text.clone(),
        Block::Thinking { thinking, signature, .. } => format!("<{thinking}>{}", signature.as_deref().unwrap_or("")),
        Block::ToolCall { id, name, arguments, .. } => format!("{id}:{name}({})", arguments.get()),
        other => format!("{other:?}"),
    };
    message.content.iter().map(of).collect()
}

#[test]
fn thinking_is_read_in_every_dialect_and_unsigned() {
    for thought in [
        r#""reasoning_content":"생각""#,
        r#""reasoning":"생각""#,
        r#""reasoning_content":"생각","reasoning":"생각""#,
        r#""reasoning_details":[{"type":"reasoning.text","text":"생각"}]"#,
        r#""reasoning_content":null,"content":[{"type":"thinking","thinking":[{"type":"text","text":"생각"}]}]"#,
    ] {
        let message = whole(&[
            &format!(r#""choices":[{{"delta":{{{thought}}}}}]"#),
            r#""choices":[{"delta":{"content":"답"},"finish_reason":"stop"}]"#,
        ]);
        assert_eq!(texts(&message), ["<생각>", "답"], "{thought}");
    }
}

#[test]
fn closed_thinking_stands_first_and_keeps_its_data() {
    let message = whole(&[
        r#""choices":[{"delta":{"content":"답"}}]"#,
        r#""choices":[{"delta":{"reasoning_details":[{"type":"reasoning.encrypted","data":"eA=="}]},"finish_reason":"stop"}]"#,
    ]);
    assert_eq!(texts(&message), [r#"<>[{"data":"eA==","type":"reasoning.encrypted"}]"#, "답"]);
}

#[test]
fn a_whole_answer_in_one_chunk_or_one_document_is_an_answer() {
    let said = r#"{"role":"assistant","content":"네","tool_calls":[{"id":"","function":{"name":"ls","arguments":{"경로": "."}}},{"function":{"name":"ls","arguments":"{}"}}]}"#;
    let usage = r#""usage":{"prompt_tokens":3,"completion_tokens":2}"#;
    for name in ["delta", "message"] {
        let message = whole(&[&format!(r#""id":"x","choices":[{{"{name}":{said},"finish_reason":"stop"}}],{usage}"#)]);
        assert_eq!(texts(&message), ["네", r#"call_1:ls({"경로": "."})"#, "call_2:ls({})"]);
        assert_eq!((message.stop, message.usage.input, message.usage.output), (StopReason::ToolUse, 3, 2));
    }
}

#[test]
fn the_first_id_that_is_one_names_the_answer() {
    let first = r#""id":"","choices":[],"prompt_filter_results":[{"prompt_index":0}]"#;
    let named = whole(&[first, r#""id":"gen-1","choices":[{"delta":{"content":"네"},"finish_reason":"stop"}]"#]);
    assert_eq!(named.response_id.as_deref(), Some("gen-1"));
    let nameless = whole(&[first, r#""id":7,"choices":[{"delta":{"content":"네"},"finish_reason":"stop"}]"#]);
    assert_eq!(nameless.response_id, None);
}

#[test]
fn usage_is_found_wherever_it_stands() {
    for (chunk, input, read) in [
        (r#""choices":[],"usage":{"prompt_tokens":9,"prompt_cache_hit_tokens":4,"completion_tokens":1}"#, 5, 4),
        (r#""choices":[{"delta":{},"usage":{"prompt_tokens":9,"cached_tokens":2,"completion_tokens":1}}]"#, 7, 2),
        (r#""choices":null,"x_groq":{"usage":{"prompt_tokens":9.0,"completion_tokens":1}}"#, 9, 0),
        (r#""choices":[],"usage":{"prompt_tokens":null,"completion_tokens":1,"prompt_tokens_details":null}"#, 0, 0),
    ] {
        let stop = r#""choices":[{"delta":{"content":"a"},"finish_reason":"stop"}],"usage":null"#;
        let usage = whole(&[stop, chunk]).usage;
        assert_eq!((usage.input, usage.cache_read, usage.output), (input, read, 1), "{chunk}");
        assert_eq!(usage.total_tokens, input + read + 1);
    }
}

/// A call: its name, and its arguments in pieces.
fn pieces() -> impl Strategy<Value = (String, Vec<String>)> {
    let cuts = prop::collection::vec(any::<prop::sample::Index>(), 0..4);
    ("[a-c]{1,2}", "[가-힣a-z{}\"\\\\\n ]{0,12}", cuts).prop_map(|(name, text, cuts)| {
        let json = serde_json::json!({"경로": text, "b": {"c": [{}]}}).to_string();
        let chars: Vec<char> = json.chars().collect();
        let mut ends: Vec<usize> = cuts.iter().map(|cut| cut.index(chars.len() + 1)).chain([0, chars.len()]).collect();
        ends.sort_unstable();
        (name, ends.windows(2).map(|pair| chars[pair[0]..pair[1]].iter().collect()).collect())
    })
}

proptest! {
    /// Whatever a server leaves out of its pieces of calls, the same calls come of them.
    #[test]
    fn calls_are_told_apart_in_every_dialect(
        calls in prop::collection::vec(pieces(), 1..5),
        picks in prop::collection::vec(any::<prop::sample::Index>(), 30),
        dialect in 0usize..5,
    ) {
        use serde_json::{Value, json};
        let mut sent: Vec<Value> = Vec::new();
        for (n, (name, parts)) in calls.iter().enumerate() {
            let first = |arguments: &str| json!({"id": format!("id_{n}"), "function": {"name": name, "arguments": arguments}});
            // OpenAI's own way begins all calls, and their pieces follow in any order.
            let mut begin = first(if dialect == 0 { "" } else { &parts[0] });
            match dialect {
                0 => begin["index"] = n.into(),
                1 => {}
                2 => { begin.as_object_mut().unwrap().remove("id"); }
                3 => begin["index"] = 0.into(),
                _ => { begin.as_object_mut().unwrap().remove("id"); begin["index"] = 0.into(); }
            }
            sent.push(begin);
            if dialect > 0 {
                for part in &parts[1..] {
                    let mut piece = json!({"function": {"arguments": part}});
                    if dialect > 2 { piece["index"] = 0.into(); }
                    sent.push(piece);
                }
            }
        }
        if dialect == 0 {
            let mut queues: Vec<std::collections::VecDeque<&String>> = calls.iter().map(|(_, parts)| parts.iter().collect()).collect();
            let mut picks = picks.iter().cycle();
            while queues.iter().any(|queue| !queue.is_empty()) {
                let live: Vec<usize> = (0..queues.len()).filter(|at| !queues[*at].is_empty()).collect();
                let n = live[picks.next().unwrap().index(live.len())];
                let part = queues[n].pop_front().unwrap();
                sent.push(json!({"index": n, "function": {"arguments": part}}));
            }
        }
        let mut chunks: Vec<String> =
            sent.iter().map(|piece| format!(r#""choices":[{{"delta":{{"tool_calls":[{piece}]}}}}]"#)).collect();
        chunks.push(r#""choices":[{"delta":{},"finish_reason":"stop"}]"#.into());
        let message = whole(&chunks.iter().map(String::as_str).collect::<Vec<_>>());
        let expected: Vec<String> = calls.iter().enumerate().map(|(n, (name, parts))| {
            let id = if matches!(dialect, 2 | 4) { format!("call_{}", n + 1) } else { format!("id_{n}") };
            format!("{id}:{name}({})", parts.concat())
        }).collect();
        prop_assert_eq!(texts(&message), expected);
        prop_assert_eq!(message.stop, StopReason::ToolUse);
    }
}

#[test]
fn stop_reasons_have_one_meaning() {
    let stop = |reason: &str| {
        whole(&[&format!(r#""choices":[{{"delta":{{"content":"a"}},"finish_reason":"{reason}"}}]"#)]).stop
    };
    assert_eq!(stop("stop"), StopReason::Stop);
    assert_eq!(stop("STOP"), StopReason::Stop);
    assert_eq!(stop("eos_token"), StopReason::Stop);
    assert_eq!(stop("length"), StopReason::Length);
    assert_eq!(stop("tool_calls"), StopReason::Stop, "there is no call");
    assert_eq!(stop("content_filter"), StopReason::Other("content_filter".into()));
}

#[test]
fn an_answer_is_whole_only_where_its_server_says_so() {
    let said = r#""choices":[{"delta":{"content":"반"},"finish_reason":""}]"#;
    assert!(matches!(of(&[said]).1, Some(ProviderError::Cut { replay_safe: false, .. })), "no end");
    let done = |before: &str| wire().decoded(vec![Bytes::from(format!("{before}data: [DONE]\n\n"))]);
    assert_eq!(done(&format!("data: {{{said}}}\n\n")).1, None, "[DONE] without a reason");
    assert!(matches!(done("").1, Some(ProviderError::Cut { replay_safe: true, .. })), "nothing but an end");
    let empty = whole(&[r#""choices":[{"delta":{"content":""},"finish_reason":"stop"}]"#]);
    assert_eq!((empty.content.len(), empty.stop), (0, StopReason::Stop));
}

#[test]
fn errors_in_the_stream_mean_what_their_place_says() {
    let only = |chunk: &str| of(&[chunk]).1.unwrap();
    assert!(matches!(only(r#""error":{"message":"앗","type":"server_error"}"#), ProviderError::Retry { .. }));
    assert!(matches!(only(r#""error":{"message":"앗","code":429}"#), ProviderError::Retry { .. }));
    assert!(matches!(only(r#""error":{"message":"앗","code":"insufficient_quota"}"#), ProviderError::Quota { .. }));
    assert!(matches!(only(r#""error":"앗""#), ProviderError::Retry { .. }));
    assert!(matches!(only(r#""choices":[{"delta":{},"error":{"message":"no","code":401}}]"#), ProviderError::Auth(_)));
    assert!(matches!(only(r#""choices":[{"delta":{},"finish_reason":"error"}]"#), ProviderError::Retry { .. }));
    let full = r#""error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}"#;
    assert!(matches!(only(full), ProviderError::Overflow(_)));
    let late = of(&[r#""choices":[{"delta":{"content":"반"}}]"#, r#""error":{"message":"끊겼다","code":502}"#]);
    assert_eq!(late.1, Some(ProviderError::Cut { replay_safe: false, why: "끊겼다".into() }));
    assert_eq!(texts(&late.0), ["반"]);
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

fn body(env: RequestEnv, messages: Vec<Msg>, store: &Store) -> String {
    let rendered = render(openai::API, 1, &request(env, messages), store).unwrap();
    let _: serde_json::Value = serde_json::from_slice(&rendered.body).unwrap();
    String::from_utf8(rendered.body.to_vec()).unwrap()
}

/// An answer of the model that is asked.
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
    let signed = Block::ToolCall {
        id: "b".into(),
        name: "read".into(),
        arguments: crate::kit::raw("[1]"),
        extra: vec![("thoughtSignature".into(), crate::kit::raw(r#""{\"google\":{\"thought_signature\":\"c2ln\"}}""#))],
    };
    let messages = vec![
        user(vec![text("이 그림을 봐"), png(ImageData::Inline("iVBO".into()))]),
        own(vec![
            thought("음…", Some(r#"[{"type":"reasoning.text","text":"음…","signature":"s=="}]"#)),
            text("읽겠습니다"),
            text("지금"),
            call("a", "read", r#"{"path":"ㄱ", "n": 1.50}"#),
            signed,
        ]),
        result("a", vec![text("내용"), png(ImageData::Blob(blob(3))), text("끝")], false),
        result("b", vec![], true),
        user(vec![text("빨리"), text(" \n")]),
        answer(vec![thought("남의 생각", Some("sig")), text("네")]),
        user(vec![text("하나\n\"둘\"")]),
        user(vec![text("셋")]),
    ];
    let request = request(env("qwen3", Thinking::Medium), messages);
    let rendered = render(openai::API, 1, &request, &store).unwrap();
    let expected = [
        r#"{"model":"qwen3","max_tokens":32000,"stream":true,"stream_options":{"include_usage":true},"reasoning_effort":"medium","#,
        r#""tools":[{"type":"function","function":{"name":"read","description":"파일을 읽는다","parameters":{"type":"object", "x":1.0}}}],"#,
        r#""messages":[{"role":"system","content":"너는 gjc다."},"#,
        r#"{"role":"user","content":[{"type":"text","text":"이 그림을 봐"},{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBO"}}]},"#,
        r#"{"role":"assistant","content":"읽겠습니다\n\n지금","reasoning_details":[{"type":"reasoning.text","text":"음…","signature":"s=="}],"#,
        r#""tool_calls":[{"id":"a","type":"function","function":{"name":"read","arguments":"{\"path\":\"ㄱ\", \"n\": 1.50}"}},"#,
        r#"{"id":"b","type":"function","function":{"name":"read","arguments":"{}"},"extra_content":{"google":{"thought_signature":"c2ln"}}}]},"#,
        r#"{"role":"tool","tool_call_id":"a","content":"내용\n\n끝"},"#,
        r#"{"role":"tool","tool_call_id":"b","content":"(failed) (no output)"},"#,
        r#"{"role":"user","content":[{"type":"text","text":"(the pictures of the result of a)"},{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw=="}},{"type":"text","text":"빨리"}]},"#,
        r#"{"role":"assistant","content":"네"},"#,
        r#"{"role":"user","content":"하나\n\"둘\"\n\n셋"}]}"#,
    ]
    .concat();
    assert_eq!(std::str::from_utf8(&rendered.body).unwrap(), expected);
    assert!(rendered.layout.marks.is_empty(), "the wire has no cache marks");
    let places: Vec<(usize, &str)> =
        rendered.layout.blocks.iter().map(|at| (at.message, &expected[at.start..at.end])).collect();
    assert_eq!(places.iter().map(|(message, _)| *message).collect::<Vec<_>>(), [0, 1, 2, 3, 2, 4, 5, 6, 7]);
    assert_eq!(places[3].1, r#"{"role":"tool","tool_call_id":"b","content":"(failed) (no output)"}"#);
    assert_eq!(places[5].1, r#"{"type":"text","text":"빨리"}"#);
    assert_eq!((places[7].1, places[8].1), (r#"하나\n\"둘\""#, "셋"));
}

#[test]
fn what_a_server_refuses_is_not_sent() {
    let store = Store::new("", "[]");
    let sent = body(
        env("qwen3", Thinking::Off),
        vec![
            user(vec![text(" \t")]),
            own(vec![text(""), call("a", "t", r#"{"e":"\ud83d"}"#), call("b", "t", r#""words""#)]),
            result("a", vec![text(" ")], false),
            result("b", vec![png(ImageData::Inline("eA".into()))], false),
        ],
        &store,
    );
    assert!(!sent.contains("tools\":") && !sent.contains("reasoning") && !sent.contains("system"), "{sent}");
    assert!(sent.contains(r#"{"role":"user","content":"(no text)"}"#), "{sent}");
    assert!(sent.contains(r#"{"role":"assistant","content":null,"tool_calls":["#), "{sent}");
    assert!(sent.contains(r#""arguments":"{\"e\":\"\\ufffd\"}""#), "half an emoji: {sent}");
    assert!(
        sent.contains(r#""content":"(no output)"}"#) && sent.contains(r#""content":"(the pictures follow)"}"#),
        "{sent}"
    );
}

#[test]
fn limits_and_levels_have_the_names_that_the_model_knows() {
    let sent = |id: &str, thinking, max_tokens| {
        let mut env = env(id, thinking);
        env.params.max_tokens = max_tokens;
        body(env, vec![user(vec![text("x")])], &Store::new("", ""))
    };
    assert!(sent("gpt-4o", Thinking::Off, 9).starts_with(r#"{"model":"gpt-4o","max_tokens":9,"stream":true"#));
    assert!(sent("openai/gpt-5", Thinking::Off, 9).contains(r#""max_completion_tokens":9"#));
    assert!(!sent("gpt-5", Thinking::Off, 0).contains("tokens\":"), "0 is left to the server");
    assert!(sent("o3", Thinking::Xhigh, 0).contains(r#""reasoning_effort":"high""#));
}

/// Signatures come from files that other programs write too.
#[test]
fn a_signature_that_is_none_is_not_sent() {
    for bad in ["reasoning_content", "[", "[]", "[1]", "{}", r#"[{"a":"\ud83d"}]"#, "EqQ=", "한글"] {
        let messages =
            vec![user(vec![text("1")]), own(vec![thought("생각", Some(bad)), text("답")]), user(vec![text("2")])];
        let sent = body(env("qwen3", Thinking::Off), messages, &Store::new("", ""));
        assert!(!sent.contains("reasoning") && !sent.contains("생각"), "{bad}: {sent}");
    }
    for (signature, expected) in [
        (r#""c2ln""#, Some(r#""extra_content":{"google":{"thought_signature":"c2ln"}}"#)),
        (r#""{\"vertex\":{}}""#, Some(r#""extra_content":{"vertex":{}}"#)),
        (r#""{broken""#, None),
        (r#""""#, None),
        ("7", None),
    ] {
        let extra = vec![("thoughtSignature".into(), crate::kit::raw(signature))];
        let call = Block::ToolCall { id: "a".into(), name: "t".into(), arguments: crate::kit::raw("{}"), extra };
        let messages = vec![user(vec![text("1")]), own(vec![call]), result("a", vec![text("x")], false)];
        let sent = body(env("qwen3", Thinking::Off), messages, &Store::new("", ""));
        assert_eq!(sent.contains("extra_content"), expected.is_some(), "{signature}: {sent}");
        assert!(sent.contains(expected.unwrap_or_default()), "{sent}");
    }
}
