//! A session as a tree of places, and what it is, for a face that shows either.

use crate::{LabelInfo, ModelInfo};
use gjc_entry::Usage;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Which places of a session are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TreeFilter {
    /// What was said, with summaries: no names of places, no state of programs, no changes of model or thinking, no answers
    /// of calls alone.
    #[default]
    Default,
    /// The same without results of tools.
    NoTools,
    /// What a person said.
    UserOnly,
    /// What has a name.
    LabeledOnly,
    /// Everything.
    All,
}

/// The places that a filter shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tree {
    /// The entry that the next one follows; absent before all entries. It may be one that is not shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaf: Option<String>,
    /// How many there are.
    pub total: usize,
    /// How many were passed over.
    pub from: usize,
    /// Those behind them, as many as were asked for.
    pub nodes: Vec<TreeNode>,
}

/// A place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TreeNode {
    /// Its entry.
    pub id: String,
    /// The nearest place before it that is shown too; absent at a beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// What it is, as `message` or `compaction`.
    pub kind: String,
    /// Who speaks in a message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// When, ISO 8601; absent where it cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// The name that a person gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// What it says, in one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
    /// Whether it is on the way from the beginning to the leaf.
    pub active: bool,
}

/// What a session is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionReport {
    /// Its id.
    pub id: String,
    /// Its file; absent with `--no-session`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Whether the file is there: it is not before the first answer.
    pub stored: bool,
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The folder that it works in.
    pub cwd: String,
    /// The session that it was made of: an id, or a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// When it was begun, ISO 8601.
    pub created: String,
    /// All entries, abandoned branches included.
    pub entries: usize,
    /// How many of them there are of each kind.
    pub kinds: BTreeMap<String, u64>,
    /// How many messages there are of each role.
    pub messages: BTreeMap<String, u64>,
    /// How many calls of tools the model has made.
    pub calls: u64,
    /// Tokens and cost, abandoned branches included.
    #[schemars(with = "Value")]
    pub usage: Usage,
    /// Who is asked next.
    pub model: ModelInfo,
    /// Its label.
    pub label: LabelInfo,
    /// Bytes of the file.
    pub size: u64,
}
