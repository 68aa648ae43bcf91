//! A request before it is bytes.

use crate::{Msg, Said, View};
use gjc_entry::RequestEnv;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Everything that goes to a model: settings, conversation, and where its cache may cut.
#[derive(Debug, Clone)]
pub struct Request {
    /// The settings half, as an entry holds it.
    pub env: RequestEnv,
    /// The conversation half.
    pub view: View,
    /// Where the provider may cache up to.
    pub cache: CacheMarks,
}

/// The definition of a tool, as the blob behind [`RequestEnv::tools`] holds it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ToolDef {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// The JSON schema of its input.
    pub input: Box<RawValue>,
}

/// Messages up to which a provider may keep a prefix in its cache. A pure function of the view, never of the clock.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CacheMarks {
    /// Indices into [`View::messages`], rising; the message is the last of its cached prefix.
    pub after: Vec<usize>,
}

impl CacheMarks {
    /// The last message of the two newest user turns: the older one was marked when it was the newest, so its prefix is
    /// in the cache already.
    #[must_use]
    pub fn of(view: &View) -> Self {
        let mut after: Vec<usize> = Vec::new();
        let mut index = view.messages.len();
        while index > 0 && after.len() < 2 {
            if matches!(view.messages[index - 1].said, Said::Assistant { .. }) {
                index -= 1;
                continue;
            }
            after.push(index - 1);
            while index > 0 && !matches!(view.messages[index - 1].said, Said::Assistant { .. }) {
                index -= 1;
            }
        }
        after.reverse();
        Self { after }
    }
}

/// Messages of one side in a row. A sequence of turns alternates by construction.
#[derive(Debug)]
pub enum Turn<'a> {
    /// People and tools; with each message its index in the view.
    User(Vec<(usize, &'a Msg)>),
    /// The model.
    Assistant(Vec<(usize, &'a Msg)>),
}

impl View {
    /// The messages as alternating turns.
    #[must_use]
    pub fn turns(&self) -> Vec<Turn<'_>> {
        let mut turns: Vec<Turn<'_>> = Vec::new();
        for (index, message) in self.messages.iter().enumerate() {
            let model = matches!(message.said, Said::Assistant { .. });
            match turns.last_mut() {
                Some(Turn::Assistant(turn)) if model => turn.push((index, message)),
                Some(Turn::User(turn)) if !model => turn.push((index, message)),
                _ if model => turns.push(Turn::Assistant(vec![(index, message)])),
                _ => turns.push(Turn::User(vec![(index, message)])),
            }
        }
        turns
    }
}

/// Where things stand in a rendered body, for cache accounting.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Layout {
    /// Each message's bytes.
    pub blocks: Vec<BlockAt>,
    /// Offsets up to which the provider was asked to cache.
    pub marks: Vec<usize>,
}

/// One message's bytes in a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockAt {
    /// Index into the view's messages.
    pub message: usize,
    /// First byte.
    pub start: usize,
    /// One past the last.
    pub end: usize,
}
