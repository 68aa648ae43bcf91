//! What a session is about, for people: its name, and who says how much in it.

use crate::Fold;
use gjc_entry::{At, Body, Entry, Kind, KindSet, Message, Scope, StopReason};
use std::collections::{BTreeMap, HashMap};

/// A session's name, and who says how much. Of the whole session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct About {
    /// The name that it was given last; without one it has that of its header, if any.
    pub name: Option<String>,
    /// How many messages there are of each role.
    pub messages: BTreeMap<String, u64>,
    /// How many calls the model has made.
    pub calls: u64,
}

impl Fold for About {
    const SCOPE: Scope = Scope::Session;
    const KINDS: KindSet = KindSet::of(&[Kind::Message, Kind::SessionInfo]);

    fn step(&mut self, _: At, entry: &Entry) {
        match &entry.body {
            Body::Message(message) => {
                *self.messages.entry(message.role().into()).or_default() += 1;
                if let Message::Assistant(said) = message {
                    self.calls += said.calls().count() as u64;
                }
            }
            Body::SessionInfo { name } => {
                self.name.clone_from(name);
            }
            _ => {}
        }
    }
}

/// Who speaks in a message, as far as a tree of places is filtered by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaker {
    /// A person.
    Person,
    /// The model, with words, or cut off.
    Model,
    /// The model, with nothing but calls.
    Calls,
    /// A tool.
    Tool,
    /// Somebody else.
    Other,
}

/// Who speaks in each message, by its place in the file. Of the whole session.
#[derive(Debug, Clone, Default)]
pub struct Speakers(HashMap<u64, Speaker>);

impl Speakers {
    /// Who speaks in a message; nobody in one that cannot be read.
    #[must_use]
    pub fn of(&self, at: At) -> Option<Speaker> {
        self.0.get(&at.off).copied()
    }
}

impl Fold for Speakers {
    const SCOPE: Scope = Scope::Session;
    const KINDS: KindSet = KindSet::of(&[Kind::Message]);

    fn step(&mut self, at: At, entry: &Entry) {
        let Body::Message(message) = &entry.body else { return };
        let speaker = match message {
            Message::User(_) => Speaker::Person,
            Message::Assistant(said) => {
                let cut = matches!(said.stop, StopReason::Aborted | StopReason::Error);
                let calls_alone = said.text().trim().is_empty() && said.calls().next().is_some();
                if calls_alone && !cut { Speaker::Calls } else { Speaker::Model }
            }
            Message::ToolResult(_) => Speaker::Tool,
            Message::Other { .. } => Speaker::Other,
        };
        self.0.insert(at.off, speaker);
    }
}
