//! What may be sent of the context: every call beside its one result, nothing half, ids that a provider accepts.

use gjc_entry::{At, Block, ModelRef};

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
    /// Whether an entry could not be read: then the model does not hear what it says.
    pub unreadable: bool,
}
