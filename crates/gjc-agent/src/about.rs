//! What a face asks of the session beside its messages: its name, what it is, its places as a tree.

use crate::actor::Actor;
use crate::admit::Session;
use gjc_context::{About, Places, Speaker, Speakers, Totals};
use gjc_entry::{Block, Body, Entry, Kind, Leaf, Message, Node, Ordinal, Own, Skeleton, Source};
use gjc_log::fs::Fs;
use gjc_protocol::{EventBody, LabelInfo, Outcome, Refusal, SessionReport, Tree, TreeFilter, TreeNode};
use serde_json::json;
use std::collections::BTreeMap;

/// How many places are told at once.
const USUAL: usize = 500;
const MOST: usize = 2000;
/// Characters of a preview.
const PREVIEW: usize = 200;

impl<F: Fs> Session<F> {
    /// The session's name: the one that it was given last, else that of its header.
    pub(crate) fn name(&mut self) -> Option<String> {
        let title = self.log().header().title.clone();
        let (log, folds) = self.parts();
        let given = folds.get::<About>(log, Leaf::Current).ok().and_then(|about| about.name.clone());
        given.or(title).map(|name| one_line(&name)).filter(|name| !name.is_empty())
    }

    /// The places that a filter shows, from the one with that number on.
    pub(crate) fn tree(&mut self, filter: TreeFilter, from: usize, limit: Option<usize>) -> Tree {
        let (log, folds) = self.parts();
        // Only a source without an index fails here; the log of a writer has one.
        let speakers = folds.get::<Speakers>(log, Leaf::Current).cloned().unwrap_or_default();
        let places = folds.get::<Places>(log, Leaf::Current).cloned().unwrap_or_default();
        let Some(skeleton) = log.skeleton() else {
            return Tree { leaf: None, total: 0, from, nodes: Vec::new() };
        };
        let sight = Sight { filter, skeleton, speakers, places };
        let active = on_path(skeleton);
        // The nearest shown place at or above each entry: parents stand before their children.
        let mut nearest: Vec<Option<Ordinal>> = Vec::with_capacity(skeleton.len());
        let (mut total, mut nodes) = (0, Vec::new());
        let limit = limit.unwrap_or(USUAL).min(MOST);
        for (ordinal, node) in skeleton.iter() {
            let above = node.parent().and_then(|parent| *nearest.get(parent.0 as usize)?);
            let shown = sight.shows(ordinal, node);
            nearest.push(if shown { Some(ordinal) } else { above });
            if !shown {
                continue;
            }
            if total >= from && nodes.len() < limit {
                let entry = log.body(node.at()).ok();
                nodes.push(TreeNode {
                    id: skeleton.id(ordinal).to_string(),
                    parent: above.map(|above| skeleton.id(above).to_string()),
                    kind: node.kind().as_str().into(),
                    role: entry.as_ref().and_then(|entry| role(entry)),
                    at: entry.as_ref().map(|entry| entry.at.to_string()),
                    label: sight.places.name(&skeleton.id(ordinal)).map(one_line),
                    preview: entry.as_ref().map(|entry| preview(entry)).filter(|text| !text.is_empty()),
                    active: active.get(ordinal.0 as usize).copied().unwrap_or(false),
                });
            }
            total += 1;
        }
        Tree { leaf: skeleton.leaf().map(|leaf| skeleton.id(leaf).to_string()), total, from, nodes }
    }
}

/// What of a session is shown.
struct Sight<'a> {
    filter: TreeFilter,
    skeleton: &'a Skeleton,
    speakers: Speakers,
    places: Places,
}

impl Sight<'_> {
    fn shows(&self, ordinal: Ordinal, node: &Node) -> bool {
        let speaker = || self.speakers.of(node.at());
        // Where the session stands is never hidden for saying nothing.
        let speaks = || speaker() != Some(Speaker::Calls) || self.skeleton.leaf() == Some(ordinal);
        let plain = || !hidden(node.kind()) && (node.kind() != Kind::Message || speaks());
        match self.filter {
            TreeFilter::All => true,
            TreeFilter::LabeledOnly => self.places.name(&self.skeleton.id(ordinal)).is_some(),
            TreeFilter::UserOnly => speaker() == Some(Speaker::Person),
            TreeFilter::NoTools => plain() && speaker() != Some(Speaker::Tool),
            TreeFilter::Default => plain(),
        }
    }
}

/// Whether places of a kind say nothing in a tree.
fn hidden(kind: Kind) -> bool {
    let settings = [
        Kind::Label,
        Kind::SessionInfo,
        Kind::Custom,
        Kind::ModelChange,
        Kind::ThinkingLevelChange,
        Kind::ServiceTierChange,
    ];
    settings.contains(&kind) || kind.as_str().starts_with("gjc.")
}

/// Which entries are on the way to the leaf.
fn on_path(skeleton: &Skeleton) -> Vec<bool> {
    let mut active = vec![false; skeleton.len()];
    let mut at = skeleton.leaf();
    while let Some((ordinal, node)) = at.and_then(|ordinal| Some((ordinal, skeleton.node(ordinal)?))) {
        if let Some(active) = active.get_mut(ordinal.0 as usize) {
            *active = true;
        }
        at = node.parent();
    }
    active
}

fn role(entry: &Entry) -> Option<String> {
    match &entry.body {
        Body::Message(message) => Some(message.role().into()),
        _ => None,
    }
}

/// What an entry says, in one line.
fn preview(entry: &Entry) -> String {
    let text = match &entry.body {
        Body::Message(Message::User(user)) => user.content.text(),
        Body::Message(Message::Assistant(said)) => match said.text() {
            text if text.trim().is_empty() => {
                let calls = said.content.iter().filter_map(|block| match block {
                    Block::ToolCall { name, arguments, .. } => Some(format!("→ {name} {}", arguments.get())),
                    _ => None,
                });
                calls.collect::<Vec<_>>().join(" ")
            }
            text => text,
        },
        Body::Message(Message::ToolResult(result)) => result.content.text(),
        Body::Compaction { summary, .. } | Body::BranchSummary { summary, .. } => summary.clone(),
        Body::CustomMessage { content, .. } => content.text(),
        Body::Label { label, .. } => label.clone().unwrap_or_default(),
        Body::ModelChange { provider, model, .. } => format!("{provider}/{model}"),
        Body::ThinkingLevelChange { level } => level.clone().unwrap_or_default(),
        Body::ServiceTierChange { tier } => tier.clone().unwrap_or_default(),
        Body::ModeChange { mode, .. } => mode.clone().unwrap_or_default(),
        Body::SessionInfo { name } => name.clone().unwrap_or_default(),
        Body::Own(Own::Leaf { to, .. }) => to.as_ref().map(ToString::to_string).unwrap_or_default(),
        _ => String::new(),
    };
    // Of a very long text only the beginning is looked at.
    let start: String = text.trim_start().chars().take(PREVIEW * 4).collect();
    one_line(&start).chars().take(PREVIEW).collect()
}

/// A text without control characters and double blanks, in one line.
fn one_line(text: &str) -> String {
    let spaced = text.replace(|c: char| c.is_control(), " ");
    spaced.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl<F: Fs> Actor<F> {
    /// Gives the session a name.
    pub(crate) fn rename(&mut self, name: &str) -> Outcome {
        let name = one_line(name);
        if name.is_empty() {
            return Outcome::Refused(Refusal::new("empty_name", "Session name cannot be empty."));
        }
        match self.session.admit_own(Body::SessionInfo { name: Some(name.clone()) }) {
            Ok(_) => {
                self.session.want_durable();
                self.tell_storage();
                Outcome::Done { value: json!({ "name": name }) }
            }
            Err(failure) => Outcome::Refused(Refusal::new("not_stored", failure.to_string())),
        }
    }

    /// Tells that the session has another name.
    pub(crate) fn tell_name(&mut self) {
        if let Some(name) = self.session.name() {
            self.events.emit(EventBody::Renamed { name });
        }
    }

    /// What the session is.
    pub(crate) fn report(&mut self) -> SessionReport {
        let name = self.session.name();
        let (log, folds) = self.session.parts();
        let about = folds.get::<About>(log, Leaf::Current).cloned().unwrap_or_default();
        let usage = folds.get::<Totals>(log, Leaf::Current).map(|totals| totals.usage.clone()).unwrap_or_default();
        let mut kinds = BTreeMap::new();
        for (_, node) in log.skeleton().into_iter().flat_map(Skeleton::iter) {
            *kinds.entry(node.kind().as_str().to_owned()).or_default() += 1;
        }
        let header = log.header();
        SessionReport {
            id: header.id.to_string(),
            file: log.file_path().map(|path| path.display().to_string()),
            // Until its first sync a file has not its name, and nobody else finds it.
            stored: log.on_disk()
                && log.file_path().is_some_and(|path| log.fs().stat(path).is_ok_and(|stat| stat.is_file)),
            name,
            cwd: self.config.cwd.display().to_string(),
            parent: header.parent.clone(),
            created: header.at.to_string(),
            entries: log.skeleton().map_or(0, Skeleton::len),
            kinds,
            messages: about.messages,
            calls: about.calls,
            usage,
            size: log.storage().borrow().written.len,
            model: self.next_model().clone().into(),
            label: LabelInfo::from(self.session.labels().label()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::one_line;

    #[test]
    fn a_name_is_one_line_without_control_characters() {
        assert_eq!(one_line("  \u{1b}[31m빨강\u{1b}[0m\n\t이름  둘 \u{0}"), "[31m빨강 [0m 이름 둘");
        assert_eq!(one_line("\n\t\u{7f}\u{85} "), "");
    }
}
