//! Which entries of a path are context. The rules are the family's own (its `buildSessionContext`), so that every reader
//! of a file sees the same conversation.

use crate::Note;
use crate::edits::Edits;
use crate::images::Pictures;
use gjc_entry::fields::JsonObject;
use gjc_entry::{
    At, Body, Content, ContextPath, Damage, Entry, EntryId, Kind, KindSet, Leaf, Message, NeedsIndex, Own, PathNode,
    PathNodes, Source, Timestamp,
};
use serde_json::value::RawValue;
use std::sync::Arc;

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
/// Only the last compaction on the path counts: its summary comes first, then what it keeps, then what follows it. (One
/// that cannot be read counts as absent. What a provider keeps of its own of a compaction, `preserveData`, is not used: the
/// kept entries say the same to every provider.) Nothing from before an omp `reset_boundary` is context; a pi
/// `context_edit` replaces or hides what one entry contributes.
///
/// # Errors
/// [`NeedsIndex`] when the source cannot find the path without its index.
pub fn select(source: &dyn Source, leaf: Leaf) -> Result<(Vec<Selected>, Vec<Note>), NeedsIndex> {
    selection(source, leaf).map(|Selection { items, notes, .. }| (items, notes))
}

/// The context at a leaf.
pub(crate) struct Selection {
    pub(crate) items: Vec<Selected>,
    pub(crate) notes: Vec<Note>,
    /// The pictures that are left out.
    pub(crate) pictures: Pictures,
    /// Whether the path begins in the middle, with an entry whose parent is not in the file, and nothing stands for what
    /// came before: no summary, and no reset that somebody wanted.
    pub(crate) beginning_lost: bool,
}

/// As [`select`].
pub(crate) fn selection(source: &dyn Source, leaf: Leaf) -> Result<Selection, NeedsIndex> {
    const CONTEXT: KindSet = KindSet::of(&[
        Kind::Message,
        Kind::CustomMessage,
        Kind::BranchSummary,
        Kind::ResetBoundary,
        Kind::ContextEdit,
        Kind::OwnImages,
    ]);
    let ContextPath { nodes: PathNodes(path), from_root } = source.context_path(leaf)?;
    let (mut notes, mut cut) = (Vec::new(), !from_root);
    let mut taken = |node: &PathNode, read: Result<Arc<Entry>, Damage>| match read {
        Ok(entry) => Some(entry),
        Err(damage) => {
            notes.push(Note { at: Some(node.at), sentence: damage.to_string(), unreadable: true });
            None
        }
    };

    let mut selected = Vec::new();
    let (mut first, mut compacted) = (0, 0);
    for (index, node) in path.iter().enumerate().rev().filter(|(_, node)| node.kind == Kind::Compaction) {
        let Some(entry) = taken(node, source.body(node.at)) else { continue };
        let Body::Compaction { summary, first_kept, tokens_before } = &entry.body else { continue };
        // pi 1.6 keeps the system message of the time beside the summary.
        if let Some((_, raw)) = entry.extra.iter().rev().find(|(name, _)| &**name == "systemMessage")
            && let Ok(system) = Message::from_json(raw)
        {
            let message = ContextMessage::Message(system);
            selected.push(Selected { at: node.at, id: node.id.clone(), message });
        }
        let message =
            ContextMessage::CompactionSummary { summary: summary.clone(), tokens_before: *tokens_before, at: entry.at };
        selected.push(Selected { at: node.at, id: node.id.clone(), message });
        // An id that is not on the path keeps nothing.
        first = path[..index].iter().position(|node| node.id == *first_kept).unwrap_or(index);
        (compacted, cut) = (index, true);
        break;
    }
    let summaries = selected.len();
    let (mut edits, mut pictures) = (Edits::default(), Pictures::default());
    let context = || (first..).zip(&path[first..]).filter(|(_, node)| CONTEXT.has(node.kind));
    let mut nodes = context();
    source.bodies(&mut context().map(|(_, node)| node.at), &mut |read| {
        let Some((index, node)) = nodes.next() else { return };
        let Some(entry) = taken(node, read) else { return };
        if node.kind == Kind::ContextEdit {
            edits.take(&entry);
            return;
        }
        if let Body::Own(Own::Images(left_out)) = &entry.body {
            pictures.take(left_out);
            return;
        }
        // Not copied where nobody else holds it.
        let entry = Arc::unwrap_or_clone(entry);
        let message = match entry.body {
            // A newer summary has its own.
            Body::Message(Message::Other { role, .. }) if &*role == "system" && index < compacted => return,
            Body::Message(message) => ContextMessage::Message(message),
            Body::CustomMessage { custom_type, content, display, details } => {
                ContextMessage::Custom { custom_type, content, display, details, at: entry.at }
            }
            Body::BranchSummary { from, summary } if !summary.is_empty() => {
                ContextMessage::BranchSummary { summary, from, at: entry.at }
            }
            Body::Unknown { .. } if node.kind == Kind::ResetBoundary => {
                // One in the kept part cuts that part; the summary behind it is newer and stays.
                selected.truncate(if index < compacted { summaries } else { 0 });
                (edits, cut) = (Edits::default(), true);
                return;
            }
            _ => return,
        };
        selected.push(Selected { at: node.at, id: node.id.clone(), message });
    });
    edits.apply(&mut selected);
    let root = path.first().filter(|_| !cut).and_then(|root| source.body(root.at).ok());
    let beginning_lost = root.is_some_and(|root| root.parent.is_some());
    Ok(Selection { items: selected, notes, pictures, beginning_lost })
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
