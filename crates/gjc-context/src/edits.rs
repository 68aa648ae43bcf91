//! pi's `context_edit` entries: another content for an entry, or none.

use crate::{ContextMessage, Selected};
use gjc_entry::{Block, Content, Entry, EntryId, Fields, JsonObject, Message};
use serde_json::value::RawValue;
use std::collections::HashMap;

/// The latest edit of each target.
#[derive(Default)]
pub(crate) struct Edits(HashMap<EntryId, Option<Content>>);

impl Edits {
    /// Takes a `context_edit` in. One that does not say what to do changes nothing.
    pub(crate) fn take(&mut self, entry: &Entry) {
        let field = |name: &str| entry.extra.iter().rev().find(|(key, _)| &**key == name).map(|(_, raw)| &**raw);
        let Some(target) = field("targetId").and_then(|raw| serde_json::from_str::<EntryId>(raw.get()).ok()) else {
            return;
        };
        let Some(replacement) = field("replacement") else { return };
        if replacement.get() == "null" {
            self.0.insert(target, None);
        } else if let Ok(mut fields) = Fields::parse(replacement.get())
            && let Some(raw) = fields.raw("content")
            && let Ok(content) = Content::from_json(raw)
        {
            self.0.insert(target, Some(content));
        }
    }

    /// Changes the context. Roles without a content of that kind stay as they are.
    pub(crate) fn apply(mut self, selected: &mut Vec<Selected>) {
        selected.retain_mut(|item| match self.0.get_mut(&item.id) {
            None => true,
            Some(None) => false,
            // A summary has a second message under its id, and neither has such a content.
            Some(Some(new)) => {
                let new = new.clone();
                match &mut item.message {
                    ContextMessage::Message(Message::User(user)) => user.content = new,
                    ContextMessage::Message(Message::Assistant(said)) => said.content = blocks(new),
                    ContextMessage::Message(Message::ToolResult(result)) => {
                        result.content = Content::Blocks(blocks(new))
                    }
                    ContextMessage::Custom { content, .. } => *content = new,
                    ContextMessage::Message(Message::Other { role, raw }) if &**role == "custom" => {
                        *raw = with_content(raw, &new).unwrap_or_else(|| raw.clone());
                    }
                    _ => {}
                }
                true
            }
        });
    }
}

/// A message of another program with another content.
fn with_content(raw: &RawValue, content: &Content) -> Option<Box<RawValue>> {
    let mut fields = Fields::parse(raw.get()).ok()?;
    let _ = fields.raw("content");
    let mut json = Vec::new();
    JsonObject::begin(&mut json).with("content", |out| content.write(out)).rest(&fields.rest()).end();
    RawValue::from_string(String::from_utf8(json).ok()?).ok()
}

fn blocks(content: Content) -> Vec<Block> {
    match content {
        Content::Text(text) => vec![Block::Text { text, origin: None, extra: Vec::new() }],
        Content::Blocks(blocks) => blocks,
    }
}
