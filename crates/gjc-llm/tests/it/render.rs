//! The bytes of requests.

use crate::kit::{
    Session, Store, answer, assembled, blob, block_on, call, decoded, env, png, recorded, request, result, said, text,
    thought, tool_result, user,
};
use gjc_context::{BlockAt, CacheMarks, Checked, Msg, Request, Said, check};
use gjc_entry::message::ImageData;
use gjc_entry::{Block, Message, ModelRef, StopReason, Thinking};
use gjc_llm::{Rendered, Unsupported, anthropic, render};

const TOOLS: &str = r#"[{"name":"read","description":"파일을 읽는다","input":{"type":"object", "x":1.0}}]"#;

fn rendered(request: &Checked<Request>, store: &Store) -> Rendered {
    let once = render("anthropic-messages", 1, request, store).unwrap();
    assert_eq!(render("anthropic-messages", 1, request, store).unwrap(), once, "the same bytes each time");
    assert_eq!(render("scripted", 1, request, store).unwrap(), once, "a script sees what a model would see");
    let _: serde_json::Value = serde_json::from_slice(&once.body).unwrap();
    once
}

fn body(request: &Checked<Request>, store: &Store) -> String {
    String::from_utf8(rendered(request, store).body.to_vec()).unwrap()
}

#[test]
fn a_whole_conversation() {
    let mut store = Store::new("너는 gjc다.", TOOLS);
    store.0.insert(blob(3), b"\x89PNG".as_slice().into());
    let messages = vec![
        user(vec![text("이 그림을 봐"), png(ImageData::Inline("iVBO".into())), png(ImageData::Blob(blob(3)))]),
        answer(vec![
            thought("음…", Some("sig==")),
            Block::RedactedThinking { data: "closed".into(), extra: Vec::new() },
            text("읽겠습니다"),
            call("a", "read", r#"{"path":"ㄱ", "n": 1.50}"#),
            call("b", "read", "{}"),
        ]),
        result("a", vec![text("내용"), png(ImageData::Blob(blob(9)))], false),
        result("b", vec![], true),
        user(vec![text("빨리"), text(" \n")]),
    ];
    let request = request(env(Thinking::Medium), messages);
    assert_eq!(request.cache, CacheMarks { after: vec![0, 4] });
    let rendered = rendered(&request, &store);
    let missing = "blob:sha256:".to_owned() + &"09".repeat(32);
    let expected = [
        r#"{"model":"claude-x","max_tokens":32000,"stream":true,"#,
        r#""system":[{"type":"text","text":"너는 gjc다.","cache_control":{"type":"ephemeral"}}],"#,
        r#""tools":[{"name":"read","description":"파일을 읽는다","input_schema":{"type":"object", "x":1.0}}],"#,
        r#""thinking":{"type":"enabled","budget_tokens":10240},"#,
        r#""messages":[{"role":"user","content":[{"type":"text","text":"이 그림을 봐"},"#,
        r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBO"}},"#,
        r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw=="},"cache_control":{"type":"ephemeral"}}]},"#,
        r#"{"role":"assistant","content":[{"type":"thinking","thinking":"음…","signature":"sig=="},"#,
        r#"{"type":"redacted_thinking","data":"closed"},{"type":"text","text":"읽겠습니다"},"#,
        r#"{"type":"tool_use","id":"a","name":"read","input":{"path":"ㄱ", "n": 1.50}},"#,
        r#"{"type":"tool_use","id":"b","name":"read","input":{}}]},"#,
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"내용"},"#,
        &format!(r#"{{"type":"text","text":"(an image stood here, but {missing} is missing)"}}]}},"#),
        r#"{"type":"tool_result","tool_use_id":"b","is_error":true},"#,
        r#"{"type":"text","text":"빨리","cache_control":{"type":"ephemeral"}}]}]}"#,
    ]
    .concat();
    assert_eq!(std::str::from_utf8(&rendered.body).unwrap(), expected);

    let text_at = |at: &BlockAt| &expected[at.start..at.end];
    let blocks = &rendered.layout.blocks;
    assert_eq!(blocks.iter().map(|at| at.message).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    assert_eq!(text_at(&blocks[3]), r#"{"type":"tool_result","tool_use_id":"b","is_error":true}"#);
    assert!(text_at(&blocks[0]).starts_with(r#"{"type":"text","text":"이"#));
    assert_eq!(text_at(&blocks[4]), r#"{"type":"text","text":"빨리","cache_control":{"type":"ephemeral"}}"#);
    assert_eq!(rendered.layout.marks.len(), 3);
    for mark in &rendered.layout.marks {
        assert!(expected[..*mark].ends_with(r#""cache_control":{"type":"ephemeral"}}"#));
    }
}

#[test]
fn redacted_thinking_whose_data_was_too_long_to_be_kept_is_not_sent() {
    let store = Store::new("너는 gjc다.", "");
    let with = |blocks: Vec<Block>| {
        let messages = vec![user(vec![text("물음")]), answer(blocks), user(vec![text("또")])];
        body(&request(env(Thinking::Medium), messages), &store)
    };
    let redacted = |data: &str| Block::RedactedThinking { data: data.into(), extra: Vec::new() };
    assert_eq!(with(vec![redacted(""), text("답")]), with(vec![text("답")]));
    assert!(with(vec![redacted("닫힘"), text("답")]).contains(r#"{"type":"redacted_thinking","data":"닫힘"}"#));
}

#[test]
fn without_a_system_prompt_the_last_tool_is_marked() {
    let request = request(env(Thinking::Off), vec![user(vec![text("hi")])]);
    let with_tools = body(&request, &Store::new("", TOOLS));
    assert!(!with_tools.contains("\"system\"") && !with_tools.contains("\"thinking\""), "{with_tools}");
    assert!(with_tools.contains(r#""x":1.0},"cache_control":{"type":"ephemeral"}}],"messages""#), "{with_tools}");
    for empty in ["", "[]"] {
        let bare = body(&request, &Store::new("", empty));
        let message = r#"{"role":"user","content":[{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}}]}"#;
        assert_eq!(bare, format!(r#"{{"model":"claude-x","max_tokens":32000,"stream":true,"messages":[{message}]}}"#));
    }
}

#[test]
fn no_more_marks_than_the_provider_takes_and_none_on_thinking() {
    let mut messages = Vec::new();
    for n in 0..5 {
        messages.push(user(vec![text(&format!("{n}"))]));
        messages.push(answer(vec![text("답"), thought("t", Some("s"))]));
    }
    messages.push(user(vec![text("끝")]));
    let view = gjc_context::View { messages };
    let cache = CacheMarks { after: (0..view.messages.len()).collect() };
    let request = check(Request { env: env(Thinking::Off), view: view.clone(), cache }, &view).unwrap();
    let body = body(&request, &Store::new("s", "[]"));
    assert_eq!(body.matches("cache_control").count(), 4);
    // The newest ones count; on an answer that ends with thinking the mark stands on the block before it.
    assert!(
        body.contains(r#"{"type":"text","text":"답","cache_control":{"type":"ephemeral"}},{"type":"thinking""#),
        "{body}"
    );
}

#[test]
fn thinking_goes_back_to_its_provider_only() {
    let store = Store::new("", "");
    let other = |provider: &str, api: &str| {
        let model = ModelRef { provider: provider.into(), id: "claude-y".into(), api: api.into() };
        let blocks = vec![thought("비밀 생각", Some("sig")), thought("unsigned", None), text("답")];
        vec![user(vec![text("1")]), Msg { from: None, said: Said::Assistant { blocks, model } }, user(vec![text("2")])]
    };
    let own = body(&request(env(Thinking::Off), other("anthropic", "anthropic-messages")), &store);
    assert!(own.contains("비밀 생각") && !own.contains("unsigned"), "another model of the same provider: {own}");
    for messages in [other("bedrock", "anthropic-messages"), other("anthropic", "openai")] {
        assert!(!body(&request(env(Thinking::Off), messages), &store).contains("비밀"));
    }
}

#[test]
fn thinking_budget_leaves_room_for_the_answer() {
    let budget = |thinking, max_tokens| {
        let mut env = env(thinking);
        env.params.max_tokens = max_tokens;
        let body: serde_json::Value =
            serde_json::from_str(&body(&request(env, vec![user(vec![text("x")])]), &Store::new("", ""))).unwrap();
        body["thinking"]["budget_tokens"].as_u64()
    };
    assert_eq!(budget(Thinking::Off, 64_000), None);
    assert_eq!(budget(Thinking::Minimal, 64_000), Some(1_024));
    assert_eq!(budget(Thinking::Low, 64_000), Some(4_096));
    assert_eq!(budget(Thinking::High, 64_000), Some(20_480));
    assert_eq!(budget(Thinking::Xhigh, 64_000), Some(32_000));
    assert_eq!(budget(Thinking::Xhigh, 8_000), Some(6_000));
    assert_eq!(budget(Thinking::Minimal, 1_024), None, "the least budget does not fit");
    assert_eq!(budget(Thinking::Xhigh, 0), None);
    assert_eq!(budget(Thinking::Xhigh, u32::MAX), Some(32_000));
}

#[test]
fn thinking_is_not_asked_for_in_the_middle_of_a_loop_without_it() {
    let thinks = |messages| body(&request(env(Thinking::Low), messages), &Store::new("", "")).contains("budget_tokens");
    let first = |blocks: Vec<Block>| vec![user(vec![text("1")]), answer(blocks), result("a", vec![text("r")], false)];
    assert!(!thinks(first(vec![call("a", "read", "{}")])));
    assert!(thinks(first(vec![thought("t", Some("s")), call("a", "read", "{}")])));
    let mut later = first(vec![thought("t", Some("s")), call("a", "read", "{}")]);
    later.extend([answer(vec![call("b", "read", "{}")]), result("b", vec![], false)]);
    assert!(thinks(later), "the loop began with thinking");
    let mut next = first(vec![call("a", "read", "{}")]);
    next.extend([answer(vec![text("done")]), user(vec![text("2")])]);
    assert!(thinks(next), "a new prompt begins anew");
}

#[test]
fn what_a_provider_refuses_is_not_sent() {
    let tiff = Block::Image {
        data: ImageData::Inline("x".into()),
        mime: "image/tiff".into(),
        origin: None,
        extra: Vec::new(),
    };
    let messages = vec![
        user(vec![text(" \t")]),
        answer(vec![
            text(""),
            call("a", "t", r#""words""#),
            call("b", "t", r#"{"e":"\ud83d"}"#),
            call("c", "t", "[1]"),
        ]),
        result("a", vec![text("")], false),
        result("b", vec![tiff], false),
        result("c", vec![], false),
    ];
    let body = body(&request(env(Thinking::Off), messages), &Store::new("", ""));
    let message = r#"{"role":"user","content":[{"type":"text","text":"(no text)","cache_control""#;
    assert!(body.contains(message), "{body}");
    assert!(body.contains(r#"{"type":"tool_use","id":"a","name":"t","input":{}}"#), "{body}");
    assert!(body.contains(r#""input":{"e":"\ufffd"}"#), "{body}");
    assert!(body.contains(r#"{"type":"tool_use","id":"c","name":"t","input":{}}"#), "{body}");
    assert!(body.contains(r#"{"type":"tool_result","tool_use_id":"a"}"#), "{body}");
    assert!(body.contains("image/tiff stood here"), "{body}");
    assert!(!body.contains(r#""text":"""#), "{body}");
}

#[test]
fn what_cannot_be_rendered_is_a_sentence() {
    let request = request(env(Thinking::Off), vec![user(vec![text("x")])]);
    let store = Store::new("", "");
    let unsupported = |api: &str, version, store: &Store| render(api, version, &request, store).unwrap_err();
    assert_eq!(unsupported("telepathy", 1, &store), Unsupported::Api("telepathy".into()));
    assert!(matches!(unsupported(anthropic::API, 2, &store), Unsupported::Renderer { version: 2, known: 1, .. }));
    assert!(matches!(unsupported(anthropic::API, 0, &store), Unsupported::Renderer { .. }));
    let lost = unsupported(anthropic::API, 1, &Store::default());
    assert!(lost.to_string().contains("system prompt") && lost.to_string().contains("blob:sha256:0101"), "{lost}");
    let bad = unsupported(anthropic::API, 1, &Store::new("", "{"));
    assert!(matches!(bad, Unsupported::Unreadable { part: "tool list", .. }));
}

/// The rule of the project: from memory and from disk the bytes are the same.
#[test]
fn an_answer_read_back_from_its_line_renders_to_the_same_bytes() {
    let full = recorded();
    let first_stop = full.find("event: content_block_stop").unwrap();
    let mut sessions = Vec::new();
    for cut in [full.len(), full.len() - 40, full.find("서.md").unwrap(), first_stop] {
        let (mut message, error) = assembled(block_on(decoded(vec![full.as_bytes()[..cut].to_vec().into()])));
        message.stop = if error.is_some() { StopReason::Aborted } else { message.stop };
        let mut messages = vec![said("읽어 줘"), Message::Assistant(message)];
        if error.is_none() {
            messages.extend([tool_result("toolu_B", "둘째"), tool_result("toolu_A", "첫째")]);
        }
        messages.push(said("계속"));
        sessions.push(Session(messages));
    }
    // A model that writes its arguments over several lines.
    let mut pretty = gjc_llm::Assembler::new(crate::kit::model());
    let kind = gjc_llm::BlockKind::ToolCall { id: "p".into(), name: "read".into() };
    pretty.push(gjc_llm::StreamEvent::BlockStart { index: 0, kind });
    pretty.push(gjc_llm::StreamEvent::Delta { index: 0, text: "{\n  \"경로\": \"a\\nb\"\n}".into() });
    let pretty = Message::Assistant(pretty.finish(gjc_llm::End::Complete, 0));
    sessions.push(Session(vec![said("x"), pretty, tool_result("p", "y")]));

    let store = Store::new("s", TOOLS);
    for session in &sessions {
        let bytes = |session: &Session| body(&request(env(Thinking::Low), session.view().messages), &store);
        let once = bytes(session);
        assert_eq!(bytes(&session.reread()), once);
        assert_eq!(bytes(&session.reread().reread()), once);
    }
    let whole = body(&request(env(Thinking::Low), sessions[0].view().messages), &store);
    assert!(whole.contains(r#""input":{"path": "문서.md", "n": 1.50}"#), "arguments as the model wrote them: {whole}");
    assert!(whole.find("첫째").unwrap() < whole.find("둘째").unwrap(), "results in the order of their calls");
    let cut = body(&request(env(Thinking::Low), sessions[2].view().messages), &store);
    assert!(cut.contains("파일을") && !cut.contains("toolu_A"), "half a call is not sent: {cut}");
}
