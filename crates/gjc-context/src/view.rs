//! What may be sent of the context: every call beside its one result, nothing half, ids that a provider accepts.

use crate::project::{Project, project};
use crate::{ContextMessage, Folds, Selected, select};
use gjc_entry::{At, Block, Leaf, ModelRef, NeedsIndex, Source};

/// What the model is told of a call whose outcome nobody knows.
pub const INTERRUPTED: &str = "interrupted: outcome unknown, check before repeating";

/// The conversation as it can be sent.
#[derive(Debug, Clone, Default)]
pub struct View {
    /// Oldest first.
    pub messages: Vec<Msg>,
}

/// One message of a view.
#[derive(Debug, Clone)]
pub struct Msg {
    /// The line that it comes from; `None` for what the projection put in.
    pub from: Option<At>,
    /// What is said.
    pub said: Said,
}

/// What is said.
#[derive(Debug, Clone)]
pub enum Said {
    /// By a person, or to the model in their place. Text and image blocks only.
    User(Vec<Block>),
    /// By the model. Text, thinking and call blocks; never empty.
    Assistant {
        /// The blocks. Call ids are unique in the view and made of `A-Z a-z 0-9 _ -`.
        blocks: Vec<Block>,
        /// Which model said it: only that one gets its thinking back.
        model: ModelRef,
    },
    /// By a tool.
    Result {
        /// The call's id in this view.
        call: String,
        /// The tool.
        tool: String,
        /// Text and image blocks only.
        content: Vec<Block>,
        /// Whether it failed.
        is_error: bool,
    },
}

/// Something that a person should know about a view: an entry that could not be read, a result without its call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The line.
    pub at: Option<At>,
    /// What about it.
    pub sentence: String,
}

/// The view at a leaf. A pure function of the path: live and rebuilt from disk it is the same.
///
/// # Errors
/// [`NeedsIndex`] when the source cannot find the path without its index.
pub fn view(source: &dyn Source, leaf: Leaf, _folds: &mut Folds) -> Result<(View, Vec<Note>), NeedsIndex> {
    let (selected, mut notes) = select(source, leaf)?;
    let Project { view, notes: more } = project(&selected, lost_root(source, leaf, &selected)?);
    notes.extend(more);
    Ok((view, notes))
}

/// Whether the path begins in the middle: its first entry names a parent that is not in the file. A summary that stands for
/// everything before it makes up for that.
fn lost_root(source: &dyn Source, leaf: Leaf, selected: &[Selected]) -> Result<bool, NeedsIndex> {
    if matches!(selected.first(), Some(Selected { message: ContextMessage::CompactionSummary { .. }, .. })) {
        return Ok(false);
    }
    let path = source.path(leaf)?.0;
    Ok(path.first().and_then(|root| source.body(root.at).ok()).is_some_and(|root| root.parent.is_some()))
}
