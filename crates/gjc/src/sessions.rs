//! `gjc sessions`: looks at session files, changes none. What moves them whole is in `trash.rs`.

use crate::cli::Sessions;
use crate::export;
use crate::failure::Failure;
use crate::{du, dump, finding, out, share, trash};
use gjc_context::{ContextMessage, select};
use gjc_entry::{Damage, Env, Leaf, Message, Source};
use gjc_log::fs::OsFs;
use gjc_log::{BlobStore, Loaded, Reader, Tail};
use gjc_store::{NotResolved, Store, sweep_all};
use schemars::JsonSchema;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

/// Runs one of its commands.
pub(crate) fn run(env: &Env, command: Sessions) -> Result<ExitCode, Failure> {
    match command {
        Sessions::List { subagents, json } => finding::list(env, subagents, json),
        Sessions::Search { words, here, number, json } => finding::search(env, &words, here, number, json),
        Sessions::Show { session, copy: true, .. } => dump::copy(env, &find(env, &session)?),
        Sessions::Show { session, full: true, .. } => dump::run(env, &find(env, &session)?),
        Sessions::Show { session, json, .. } => show(env, &find(env, &session)?, json),
        Sessions::Export { session, out, force, copy, json } => {
            export::no_copies(&session, out.as_deref(), copy)?;
            export::run(env, &find(env, &session)?, out, force, json)
        }
        Sessions::Share { session, yes, json } => share::run(env, &find(env, &session)?, yes, json),
        Sessions::Verify { session: Some(session), json, .. } => verify(env, &[find(env, &session)?], json),
        Sessions::Verify { session: None, json, .. } => verify(env, &everything(env)?, json),
        Sessions::Delete { sessions, yes, json } => trash::delete(env, &sessions, yes, json),
        Sessions::Restore { session, json } => trash::put_back(env, &session, json),
        Sessions::Trash { json, command } => trash::run(env, json, command),
        Sessions::Du { sessions, json } => du::run(env, sessions, json),
    }
}

/// The file that a word means.
pub(crate) fn find(env: &Env, word: &str) -> Result<PathBuf, Failure> {
    let here = std::fs::canonicalize(".").unwrap_or_else(|_| PathBuf::from("/"));
    let store = Store::new(&env.dirs.agent);
    match store.resolve(&here, word) {
        Err(unknown @ NotResolved::Unknown(_)) => {
            let unreadable = store.list().ok().and_then(|listing| listing.unreadable_of(word));
            Err(unreadable.map_or_else(|| unknown.into(), |file| file.why.into()))
        }
        found => Ok(found?),
    }
}

/// The blobs of a session's own agent folder: beside the sessions folder that the file is in, wherever that is; else those
/// of this agent folder.
pub(crate) fn blobs_of(env: &Env, file: &Path) -> BlobStore<OsFs> {
    let sessions = file.ancestors().nth(2).filter(|dir| dir.file_name().is_some_and(|name| name == "sessions"));
    let beside = sessions.map(|dir| dir.with_file_name("blobs")).filter(|dir| dir.is_dir());
    BlobStore::new(Arc::new(OsFs), Some(beside.unwrap_or_else(|| env.dirs.blobs())))
}

/// Opens a session for looking.
pub(crate) fn look(env: &Env, path: &Path) -> Result<Loaded<Reader<OsFs>>, Failure> {
    Ok(Reader::open_with(&OsFs, path, &env.dirs.agent)?)
}

/// What `gjc sessions show --json` prints.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ShowJson {
    /// Its id.
    id: String,
    /// Its file.
    path: String,
    /// The folder that it worked in.
    cwd: String,
    /// The active leaf.
    leaf: Option<String>,
    /// All entries, all branches together.
    entries: usize,
    /// The session's label.
    label: LabelJson,
    /// The messages of the active path, as the file holds them.
    messages: Vec<serde_json::Value>,
    /// What is damaged.
    damage: Vec<DamageJson>,
}

/// A label.
#[derive(Serialize, JsonSchema)]
pub(crate) struct LabelJson {
    /// PUBLIC, INTERNAL, CONFIDENTIAL or RESTRICTED.
    level: String,
    /// Integrity.
    trusted: bool,
}

impl From<gjc_entry::Label> for LabelJson {
    fn from(label: gjc_entry::Label) -> Self {
        Self { level: label.level.to_string(), trusted: label.trusted }
    }
}

/// A damaged place.
#[derive(Serialize, JsonSchema)]
pub(crate) struct DamageJson {
    /// Byte offset.
    offset: u64,
    /// Bytes.
    length: u32,
    /// The sentence.
    what: String,
}

impl From<&Damage> for DamageJson {
    fn from(damage: &Damage) -> Self {
        Self { offset: damage.at.off, length: damage.at.len, what: damage.to_string() }
    }
}

fn show(env: &Env, path: &Path, json: bool) -> Result<ExitCode, Failure> {
    let loaded = look(env, path)?;
    let reader = &loaded.value;
    let (selected, notes) = select(reader, Leaf::Current).map_err(|error| Failure::new(error.to_string()))?;
    if json {
        let skeleton = reader.skeleton();
        let label = skeleton.map_or(gjc_entry::Label::PUBLIC_TRUSTED, gjc_entry::Skeleton::label);
        return Ok(print_json(&ShowJson {
            id: reader.header().id.to_string(),
            path: path.display().to_string(),
            cwd: reader.header().cwd.clone(),
            leaf: skeleton.and_then(|tree| Some(tree.id(tree.leaf()?).to_string())),
            entries: skeleton.map_or(0, gjc_entry::Skeleton::len),
            label: label.into(),
            messages: selected.iter().map(|item| message_json(&item.message)).collect(),
            damage: loaded.damage.iter().map(DamageJson::from).collect(),
        }));
    }
    for item in &selected {
        out::line(&out::row(&format!("── {} {}", item.id, role(&item.message))));
        out::line(&out::plain(&text(&item.message)));
    }
    for note in notes {
        out::talk(&format!("gjc: {}", out::row(&note.sentence)));
    }
    for damage in &loaded.damage {
        out::talk(&format!("gjc: {}", out::row(&damage.to_string())));
    }
    Ok(ExitCode::SUCCESS)
}

/// A message as JSON.
pub(crate) fn message_json(message: &ContextMessage) -> serde_json::Value {
    gjc_agent::shown_as(|out| message.write(out))
}

/// Who speaks.
pub(crate) fn role(message: &ContextMessage) -> &str {
    match message {
        ContextMessage::Message(message) => message.role(),
        ContextMessage::Custom { custom_type, .. } => custom_type,
        ContextMessage::BranchSummary { .. } => "branch summary",
        ContextMessage::CompactionSummary { .. } => "compaction summary",
    }
}

/// What is said, with calls.
pub(crate) fn text(message: &ContextMessage) -> String {
    match message {
        ContextMessage::Message(Message::User(user)) => user.content.text(),
        ContextMessage::Message(Message::Assistant(said)) => {
            let mut lines = vec![said.text()];
            lines.extend(said.calls().map(|(_, name, input)| format!("→ {name} {}", input.get())));
            lines.extend(said.error.iter().map(|error| format!("(failed: {error})")));
            lines.retain(|line| !line.is_empty());
            lines.join("\n")
        }
        ContextMessage::Message(Message::ToolResult(result)) => result.content.text(),
        ContextMessage::Message(Message::Other { raw, .. }) => raw.get().into(),
        ContextMessage::Custom { content, .. } => content.text(),
        ContextMessage::BranchSummary { summary, .. } | ContextMessage::CompactionSummary { summary, .. } => {
            summary.clone()
        }
    }
}

/// What `gjc sessions verify --json` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct VerifyJson {
    /// Whether nothing is damaged.
    sound: bool,
    /// Each file.
    files: Vec<VerifiedJson>,
}

/// A verified file.
#[derive(Serialize, JsonSchema)]
pub(crate) struct VerifiedJson {
    /// The file.
    path: String,
    /// Entries that are there.
    entries: usize,
    /// Why it is no readable session.
    unreadable: Option<String>,
    /// Whether it ends in the middle of a line.
    unfinished: bool,
    /// Whether another process has it open for writing; then an unfinished line is no damage.
    writing: bool,
    /// What is damaged.
    damage: Vec<DamageJson>,
}

impl VerifiedJson {
    fn is_sound(&self) -> bool {
        self.damage.is_empty() && self.unreadable.is_none() && (!self.unfinished || self.writing)
    }
}

fn verify(env: &Env, paths: &[PathBuf], json: bool) -> Result<ExitCode, Failure> {
    let files: Vec<VerifiedJson> = paths.iter().map(|path| verify_one(path, &blobs_of(env, path))).collect();
    let sound = files.iter().all(VerifiedJson::is_sound);
    let code = if sound { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    if json {
        print_json(&VerifyJson { sound, files });
        return Ok(code);
    }
    for file in files {
        let path = out::row(&file.path);
        if let Some(why) = file.unreadable {
            // The sentence names the file.
            out::line(&out::row(&why));
            continue;
        }
        let state = if file.is_sound() { "sound" } else { "damaged" };
        let writing = if file.writing { ", open in another process" } else { "" };
        out::line(&format!("{path}: {} entries, {state}{writing}", file.entries));
        if file.unfinished && !file.writing {
            out::line("  the last line is unfinished: its writer was cut off; the next one mends it");
        }
        for damage in file.damage {
            out::line(&format!("  {}", out::row(&damage.what)));
        }
    }
    Ok(code)
}

fn verify_one(path: &Path, blobs: &BlobStore<OsFs>) -> VerifiedJson {
    let name = path.display().to_string();
    match Reader::open(&OsFs, path) {
        Err(why) => VerifiedJson {
            path: name,
            entries: 0,
            unreadable: Some(why.to_string()),
            unfinished: false,
            writing: false,
            damage: Vec::new(),
        },
        Ok(loaded) => {
            let reader = &loaded.value;
            let mut damage = [loaded.damage, reader.verify_bodies(), reader.lost_blobs(blobs)].concat();
            damage.sort_by_key(|damage| damage.at);
            VerifiedJson {
                path: name,
                entries: reader.skeleton().map_or(0, gjc_entry::Skeleton::len),
                unreadable: None,
                unfinished: loaded.tail != Tail::Clean,
                writing: reader.writer_at_work(&OsFs),
                damage: damage.iter().map(DamageJson::from).collect(),
            }
        }
    }
}

fn everything(env: &Env) -> Result<Vec<PathBuf>, Failure> {
    let (infos, unreadable) = sweep_all(&OsFs, &env.dirs.sessions())
        .map_err(|error| Failure::new(format!("the sessions folder cannot be read: {error}")))?;
    Ok(infos.into_iter().map(|info| info.path).chain(unreadable.into_iter().map(|file| file.path)).collect())
}

/// Prints one JSON object.
pub(crate) fn print_json<T: Serialize>(value: &T) -> ExitCode {
    out::line(&serde_json::to_string_pretty(value).unwrap_or_default());
    ExitCode::SUCCESS
}
