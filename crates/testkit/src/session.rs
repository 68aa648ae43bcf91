//! Entries for tests, in one line each.

use gjc_entry::{
    AssistantMessage, Block, Body, Content, Draft, Label, Message, Origin, StopReason, ToolResult, Usage, UserMessage,
};
use serde_json::value::RawValue;

/// A person says something.
#[must_use]
pub fn user(text: &str) -> Body {
    Body::Message(Message::User(UserMessage {
        content: Content::Blocks(vec![Block::text(text, Origin::Typed)]),
        at: 1,
        extra: Vec::new(),
    }))
}

/// The model answers.
#[must_use]
pub fn answer(text: &str) -> Body {
    Body::Message(Message::Assistant(assistant(vec![plain(text)], StopReason::Stop)))
}

/// The model answers with calls: id, tool, arguments as JSON.
#[must_use]
pub fn calls(text: &str, calls: &[(&str, &str, &str)]) -> Body {
    let mut blocks = vec![plain(text)];
    blocks.extend(calls.iter().map(|(id, name, arguments)| call(id, name, arguments)));
    Body::Message(Message::Assistant(assistant(blocks, StopReason::ToolUse)))
}

/// A call block.
#[must_use]
pub fn call(id: &str, name: &str, arguments: &str) -> Block {
    let arguments = RawValue::from_string(arguments.into()).unwrap_or_else(|error| panic!("{arguments}: {error}"));
    Block::ToolCall { id: id.into(), name: name.into(), arguments, extra: Vec::new() }
}

/// A tool answers.
#[must_use]
pub fn result(id: &str, tool: &str, text: &str) -> Body {
    Body::Message(Message::ToolResult(ToolResult {
        call_id: id.into(),
        tool: tool.into(),
        content: Content::Blocks(vec![Block::text(text, Origin::Tool)]),
        details: None,
        is_error: false,
        at: 1,
        extra: Vec::new(),
    }))
}

/// An assistant message of blocks.
#[must_use]
pub fn assistant(content: Vec<Block>, stop: StopReason) -> AssistantMessage {
    AssistantMessage {
        content,
        api: "anthropic-messages".into(),
        provider: "anthropic".into(),
        model: "claude-x".into(),
        response_id: None,
        usage: Usage::default(),
        stop,
        error: None,
        at: 1,
        extra: Vec::new(),
    }
}

/// A public, trusted draft under the leaf.
#[must_use]
pub fn draft(body: Body) -> Draft {
    Draft::new(body, Label::PUBLIC_TRUSTED)
}

fn plain(text: &str) -> Block {
    Block::Text { text: text.into(), origin: None, extra: Vec::new() }
}
