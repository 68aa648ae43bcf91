//! `gjc context`: what the model sees, and saw.

use crate::cli::Context;
use crate::failure::Failure;
use crate::out;
use crate::sessions::{blobs_of, find, look, message_json, print_json, text};
use gjc_context::{CacheMarks, Folds, Request, Said, Selected, Settings, check, select, view};
use gjc_entry::{At, Body, EntryId, Env, Kind, KindSet, Leaf, Message, Node, Ordinal, Skeleton, Source};
use gjc_log::fs::OsFs;
use gjc_log::{BlobStore, Reader};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::HashMap;
use std::process::ExitCode;

/// Runs one of its commands.
pub(crate) fn run(env: &Env, command: Context) -> Result<ExitCode, Failure> {
    match command {
        Context::Show { session, at, json } => show(env, &session, at.as_deref(), json),
        Context::Request { session, at } => request(env, &session, at.as_deref()),
    }
}

/// What `gjc context show --json` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ContextJson {
    /// The session's id.
    session: String,
    /// The entry that the context is at.
    at: Option<String>,
    /// The messages, as the family's programs build them.
    messages: Vec<serde_json::Value>,
    /// What could not be read.
    notes: Vec<String>,
}

fn show(env: &Env, word: &str, at: Option<&str>, json: bool) -> Result<ExitCode, Failure> {
    let file = find(env, word)?;
    let loaded = look(env, &file)?;
    let reader = &loaded.value;
    let leaf = leaf(reader, at)?;
    let (selected, unreadable) = select(reader, leaf).map_err(|error| Failure::new(error.to_string()))?;
    if json {
        let path = reader.context_path(leaf).map_err(|error| Failure::new(error.to_string()))?;
        return Ok(print_json(&ContextJson {
            session: reader.header().id.to_string(),
            at: at.map(Into::into).or_else(|| path.nodes.0.last().map(|node| node.id.to_string())),
            messages: selected.iter().map(|item| message_json(&item.message)).collect(),
            notes: unreadable.into_iter().map(|note| note.sentence).collect(),
        }));
    }
    // For a person: what would be sent, with what the projection puts in and leaves out.
    let (view, notes) = view(reader, leaf, &mut Folds::default()).map_err(|error| Failure::new(error.to_string()))?;
    // Of an entry that contributes several messages (a compaction: system message and summary) each is shown as it is sent.
    let mut entries: HashMap<At, (&Selected, usize)> = HashMap::with_capacity(selected.len());
    for item in &selected {
        entries.entry(item.at).or_insert((item, 0)).1 += 1;
    }
    for message in &view.messages {
        let entry = message.from.and_then(|at| entries.get(&at));
        let id = entry.map_or_else(|| "(put in)".into(), |(item, _)| item.id.to_string());
        out::line(&out::row(&format!("── {id} {}", said_role(&message.said))));
        match entry {
            Some((item, 1)) => out::line(&out::plain(&text(&item.message))),
            _ => out::line(&out::plain(&said_text(&message.said))),
        }
    }
    for note in notes {
        out::talk(&format!("gjc: {}", out::row(&note.sentence)));
    }
    Ok(ExitCode::SUCCESS)
}

fn said_role(said: &Said) -> &'static str {
    match said {
        Said::User(_) => "user",
        Said::Assistant { .. } => "assistant",
        Said::Result { .. } => "toolResult",
    }
}

fn said_text(said: &Said) -> String {
    let (Said::User(blocks) | Said::Assistant { blocks, .. } | Said::Result { content: blocks, .. }) = said;
    blocks.iter().filter_map(gjc_entry::Block::as_text).collect::<Vec<_>>().join("\n")
}

/// Rebuilds a request from the log alone: settings, conversation and blobs are all in it.
fn request(env: &Env, word: &str, at: Option<&str>) -> Result<ExitCode, Failure> {
    let file = find(env, word)?;
    let loaded = look(env, &file)?;
    out::bytes(&rebuild(&loaded.value, &blobs_of(env, &file), at)?);
    Ok(ExitCode::SUCCESS)
}

/// The bytes of the request at an entry.
pub(crate) fn rebuild(reader: &Reader<OsFs>, blobs: &BlobStore<OsFs>, at: Option<&str>) -> Result<Vec<u8>, Failure> {
    let leaf = before_answer(reader, leaf(reader, at)?);
    let mut folds = Folds::default();
    let failed = |error: &dyn std::fmt::Display| Failure::new(error.to_string());
    let settings = folds.get::<Settings>(reader, leaf).map_err(|error| failed(&error))?.env.clone();
    let settings = settings.ok_or_else(|| {
        let recorded = reader.skeleton().is_some_and(|tree| tree.iter().any(|(_, node)| node.kind() == Kind::OwnEnv));
        Failure::new("no request can be rebuilt here: no settings were recorded before this entry").hint(match recorded
        {
            true => "the session stands before its first request: name an answer with --at",
            false => "requests of other programs' sessions were not recorded by them",
        })
    })?;
    let (view, _) = view(reader, leaf, &mut folds).map_err(|error| failed(&error))?;
    let request = Request { env: settings, cache: CacheMarks::of(&view), view: view.clone() };
    let checked = check(request, &view).map_err(|error| failed(&error))?;
    let rendered = gjc_llm::render(&checked.env.model.api, checked.env.renderer, &checked, blobs);
    Ok(rendered.map_err(|error| failed(&error))?.body.to_vec())
}

fn leaf(reader: &Reader<OsFs>, at: Option<&str>) -> Result<Leaf, Failure> {
    let Some(at) = at else { return Ok(Leaf::Current) };
    let found = reader.skeleton().and_then(|tree| tree.find(&EntryId::new(at)));
    found.map(Leaf::At).ok_or_else(|| {
        Failure::new(format!("the entry {at} is not in this session")).hint("gjc sessions show <id> names the entries")
    })
}

/// The last entry of the active path that is about what is said: names of places and moves of the leaf may follow it.
fn last_said(tree: &Skeleton) -> Option<Ordinal> {
    const BESIDE: KindSet = KindSet::of(&[
        Kind::Label,
        Kind::OwnLeaf,
        Kind::OwnTaint,
        Kind::OwnDelivered,
        Kind::OwnApproval,
        Kind::ModeChange,
        Kind::SessionInfo,
        Kind::Usage,
    ]);
    let mut place = tree.leaf();
    while let Some((at, node)) = place.and_then(|at| Some((at, tree.node(at)?))) {
        if !BESIDE.has(node.kind()) {
            return Some(at);
        }
        place = node.parent();
    }
    None
}

/// An answer stands for the request that it answers. Any other entry stands for the request that follows it; settings that
/// were written for just that request stand between the two.
fn before_answer(reader: &Reader<OsFs>, leaf: Leaf) -> Leaf {
    let Some(tree) = reader.skeleton() else { return leaf };
    let ordinal = match leaf {
        Leaf::At(ordinal) => Some(ordinal),
        Leaf::Current => last_said(tree),
        Leaf::Root => None,
    };
    let Some((ordinal, node)) = ordinal.and_then(|ordinal| Some((ordinal, tree.node(ordinal)?))) else { return leaf };
    match reader.body(node.at()) {
        Ok(entry) if matches!(entry.body, Body::Message(Message::Assistant(_))) => {
            node.parent().map_or(Leaf::Root, Leaf::At)
        }
        _ => {
            let follows = |(_, next): &(Ordinal, &Node)| next.parent() == Some(ordinal) && next.kind() == Kind::OwnEnv;
            tree.iter().find(follows).map_or(leaf, |(settings, _)| Leaf::At(settings))
        }
    }
}
