//! What a tool gives back.

use gjc_entry::{Block, Label, Origin};
use gjc_flow::Labelled;
use serde_json::Value;

/// The result of a call. The content is labelled; there is no way to make one without.
#[derive(Debug)]
pub struct ToolOutput {
    /// What the model sees.
    pub content: Labelled<Vec<Block>>,
    /// What programs see: resolved path, range, hash, exit state.
    pub details: Value,
    /// Whether the call failed.
    pub is_error: bool,
}

/// Builds a [`ToolOutput`], beginning with the label of its source.
#[derive(Debug)]
pub struct Output {
    label: Label,
    blocks: Vec<Block>,
    details: Value,
    is_error: bool,
}

impl Output {
    /// Begins with the label of where the content comes from.
    #[must_use]
    pub fn from(source: Label) -> Self {
        Self { label: source, blocks: Vec::new(), details: Value::Null, is_error: false }
    }

    /// Adds text.
    #[must_use]
    pub fn text(mut self, text: impl Into<String>) -> Self {
        self.blocks.push(Block::text(text, Origin::Tool));
        self
    }

    /// Adds a block.
    #[must_use]
    pub fn block(mut self, block: Block) -> Self {
        self.blocks.push(block);
        self
    }

    /// Sets what programs see.
    #[must_use]
    pub fn details(mut self, details: Value) -> Self {
        self.details = details;
        self
    }

    /// Marks it as failed.
    #[must_use]
    pub fn error(mut self) -> Self {
        self.is_error = true;
        self
    }

    /// Done.
    #[must_use]
    pub fn done(self) -> ToolOutput {
        ToolOutput { content: Labelled::new(self.blocks, self.label), details: self.details, is_error: self.is_error }
    }
}
