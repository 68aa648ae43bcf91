//! Which entries of a path are context. The rules are the family's own (its `buildSessionContext`), so that every reader
//! of a file sees the same conversation.

use crate::Note;
use gjc_entry::fields::JsonObject;
use gjc_entry::{At, Body, Content, EntryId, Kind, Leaf, Message, NeedsIndex, PathNode, Source, Timestamp};
use serde_json::value::RawValue;

/// An entry that is context, with what it contributes.
#[derive(Debug, Clone)]
pub struct Selected {
    /// Its line.
    pub at: At,
    /// Its id.
    pub id: EntryId,
    /// What it contributes.
    pub message: ContextMessage,
}

/// A message of the context, before anything is adapted to a model.
#[derive(Debug, Clone)]
pub enum ContextMessage {
    /// As stored.
    Message(Message),
    /// A program's text (`role: custom`).
    Custom {
        /// Whose.
        custom_type: String,
        /// The text.
        content: Content,
        /// Whether a person sees it.
        display: bool,
        /// For programs.
        details: Option<Box<RawValue>>,
        /// When.
        at: Timestamp,
    },
    /// What happened on a branch that was left.
    BranchSummary {
        /// The summary.
        summary: String,
        /// Where the branch began.
        from: String,
        /// When.
        at: Timestamp,
    },
    /// What stood before the oldest kept entry.
    CompactionSummary {
        /// The summary.
        summary: String,
        /// Tokens before it.
        tokens_before: u64,
        /// When.
        at: Timestamp,
    },
}

/// The context at a leaf, oldest first, and notes about entries that could not be read.
///
/// Only the last compaction on the path counts: its summary comes first, then what it keeps, then what follows it.
///
/// # Errors
/// [`NeedsIndex`] when the source cannot find the path without its index.
pub fn select(source: &dyn Source, leaf: Leaf) -> Result<(Vec<Selected>, Vec<Note>), NeedsIndex> {
    const CONTEXT: gjc_entry::KindSet =
        gjc_entry::KindSet::of(&[Kind::Message, Kind::CustomMessage, Kind::BranchSummary, Kind::Compaction]);
    let path: Vec<PathNode> = source.path(leaf)?.0;
    let mut notes = Vec::new();
    let mut read = |node: &PathNode| match source.body(node.at) {
        Ok(entry) => Some(entry),
        Err(damage) => {
            notes.push(Note { at: Some(node.at), sentence: damage.to_string() });
            None
        }
    };

    let mut selected = Vec::new();
    let mut first = 0;
    if let Some(index) = path.iter().rposition(|node| node.kind == Kind::Compaction)
        && let Some(entry) = read(&path[index])
        && let Body::Compaction { summary, first_kept, tokens_before } = &entry.body
    {
        selected.push(Selected {
            at: path[index].at,
            id: path[index].id.clone(),
            message: ContextMessage::CompactionSummary {
                summary: summary.clone(),
                tokens_before: *tokens_before,
                at: entry.at,
            },
        });
        // An id that is not on the path keeps nothing.
        first = path[..index].iter().position(|node| node.id == *first_kept).unwrap_or(index);
    }
    for node in &path[first..] {
        if node.kind == Kind::Compaction || !CONTEXT.has(node.kind) {
            continue;
        }
        let Some(entry) = read(node) else { continue };
        let message = match &entry.body {
            Body::Message(message) => ContextMessage::Message(message.clone()),
            Body::CustomMessage { custom_type, content, display, details } => ContextMessage::Custom {
                custom_type: custom_type.clone(),
                content: content.clone(),
                display: *display,
                details: details.clone(),
                at: entry.at,
            },
            Body::BranchSummary { from, summary } if !summary.is_empty() => {
                ContextMessage::BranchSummary { summary: summary.clone(), from: from.clone(), at: entry.at }
            }
            _ => continue,
        };
        selected.push(Selected { at: node.at, id: node.id.clone(), message });
    }
    Ok((selected, notes))
}

impl ContextMessage {
    /// Writes it as the family's programs print their context.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Message(message) => message.write(out),
            Self::Custom { custom_type, content, display, details, at } => JsonObject::begin(out)
                .field("role", "custom")
                .field("customType", custom_type)
                .with("content", |out| content.write(out))
                .field("display", display)
                .some("details", details)
                .field("timestamp", &at.as_millis())
                .end(),
            Self::BranchSummary { summary, from, at } => JsonObject::begin(out)
                .field("role", "branchSummary")
                .field("summary", summary)
                .field("fromId", from)
                .field("timestamp", &at.as_millis())
                .end(),
            Self::CompactionSummary { summary, tokens_before, at } => JsonObject::begin(out)
                .field("role", "compactionSummary")
                .field("summary", summary)
                .field("tokensBefore", tokens_before)
                .field("timestamp", &at.as_millis())
                .end(),
        }
    }
}
