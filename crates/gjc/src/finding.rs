//! `gjc sessions list` and `gjc sessions search`: which sessions there are, and which of them hold words.

use crate::failure::Failure;
use crate::out;
use crate::sessions::{LabelJson, print_json};
use gjc_entry::{Env, Level};
use gjc_store::{Child, Folders, Found, Hit, SessionInfo, Store, Unreadable};
use schemars::JsonSchema;
use serde::Serialize;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What `gjc sessions list --json` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ListJson {
    /// Newest entry first.
    sessions: Vec<InfoJson>,
    /// Files that could not be read.
    unreadable: Vec<UnreadableJson>,
}

/// A session in a list.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InfoJson {
    /// Its id.
    id: String,
    /// Of a subagent's log, what it is found by as well: the session's id, a slash, the task's.
    #[serde(skip_serializing_if = "Option::is_none")]
    subagent: Option<String>,
    /// Its file.
    path: String,
    /// The folder that it worked in.
    cwd: String,
    /// Its name, if it has one.
    title: Option<String>,
    /// The first words of a person.
    first_message: Option<String>,
    /// How many messages, all branches together.
    messages: usize,
    /// When it began, ISO 8601.
    created: String,
    /// The time of its last entry, ISO 8601.
    modified: String,
    /// Bytes of the file.
    size: u64,
    /// How many places are damaged.
    damaged: usize,
    /// What its words are worth: the highest level that it had, trusted only if all of it is.
    label: LabelJson,
}

/// A file that is no readable session.
#[derive(Serialize, JsonSchema)]
pub(crate) struct UnreadableJson {
    /// The file.
    path: String,
    /// Why.
    why: String,
}

impl From<SessionInfo> for InfoJson {
    fn from(info: SessionInfo) -> Self {
        Self {
            id: info.id,
            subagent: None,
            path: info.path.display().to_string(),
            cwd: info.cwd,
            title: info.title,
            first_message: info.first_message,
            messages: info.messages,
            created: info.created.to_string(),
            modified: info.modified.to_string(),
            size: info.size,
            damaged: info.damaged,
            label: info.label.into(),
        }
    }
}

impl From<Unreadable> for UnreadableJson {
    fn from(file: Unreadable) -> Self {
        Self { path: file.path.display().to_string(), why: file.why.to_string() }
    }
}

/// Lists the sessions, and with `subagents` the logs of these among them.
pub(crate) fn list(env: &Env, subagents: bool, json: bool) -> Result<ExitCode, Failure> {
    let store = Store::new(&env.dirs.agent);
    let listing = store.list().map_err(|error| unlistable(&error))?;
    let (children, lost) =
        if subagents { store.children().map_err(|error| unlistable(&error))? } else { <_>::default() };
    let unreadable: Vec<Unreadable> = listing.unreadable.into_iter().chain(lost).collect();
    let own = listing.sessions.into_iter().map(|info| (info, None));
    let of_others = children.into_iter().map(|Child { info, name, .. }| (info, Some(name)));
    // A session without messages has nothing to go on with, unless damage took them; it is found by its id all the same.
    let mut rows: Vec<(SessionInfo, Option<String>)> =
        own.chain(of_others).filter(|(info, _)| info.has_content()).collect();
    rows.sort_by_key(|(info, _)| std::cmp::Reverse(info.modified));
    if json {
        let sessions = rows.into_iter().map(|(info, subagent)| InfoJson { subagent, ..info.into() }).collect();
        let unreadable = unreadable.into_iter().map(Into::into).collect();
        return Ok(print_json(&ListJson { sessions, unreadable }));
    }
    if rows.is_empty() && unreadable.is_empty() {
        out::talk("There are no sessions yet. Begin one with: gjc -p \"your question\"");
    }
    for (info, subagent) in rows {
        out::line(&row(&info, subagent.as_deref()));
    }
    tell(&unreadable);
    Ok(ExitCode::SUCCESS)
}

/// Goes on with the index of words until it is dropped, beside whatever else a process does that stays a while.
pub(crate) struct Filling(Arc<AtomicBool>);

impl Filling {
    /// Begins. Where no thread can be had, the next search does the work.
    pub(crate) fn begin(env: &Env) -> Self {
        let (stop, store) = (Arc::new(AtomicBool::new(false)), Store::new(&env.dirs.agent));
        let stopped = Arc::clone(&stop);
        let fill = move || drop(store.fill(|| stopped.load(Ordering::Relaxed)));
        let _ = std::thread::Builder::new().name("index".into()).spawn(fill);
        Self(stop)
    }
}

impl Drop for Filling {
    fn drop(&mut self) {
        // It is not waited for: what it has not finished is read again by who needs it.
        self.0.store(true, Ordering::Relaxed);
    }
}

fn unlistable(error: &std::io::Error) -> Failure {
    Failure::new(format!("the sessions folder cannot be read: {error}"))
}

/// One row of a list.
fn row(info: &SessionInfo, subagent: Option<&str>) -> String {
    let mark = match (info.damaged, info.unfinished) {
        (0, false) => "",
        (0, true) => "  (unfinished)",
        _ => "  (damaged)",
    };
    let level = if info.label.level > Level::Public { format!("  ({})", info.label.level) } else { String::new() };
    let line = format!(
        "{}  {}  {:>4} messages  {}  {}{level}{mark}",
        out::row(subagent.unwrap_or(&info.id)),
        minute(info),
        info.messages,
        out::cell(info.name(), 48),
        out::row(&info.cwd)
    );
    line.trim_end().into()
}

/// The time of the last entry, to the minute.
fn minute(info: &SessionInfo) -> String {
    let when = info.modified.to_string();
    when.get(..16).map_or_else(|| when.clone(), |minute| minute.replace('T', " ") + "Z")
}

fn tell(unreadable: &[Unreadable]) {
    for file in unreadable {
        out::talk(&format!("gjc: {}", out::row(&file.why.to_string())));
    }
}

/// What `gjc sessions search --json` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct SearchJson {
    /// Newest entry first.
    sessions: Vec<FoundJson>,
    /// Whether there may be more: so many were asked for.
    more: bool,
    /// Files that could not be read, and so were not searched.
    unreadable: Vec<UnreadableJson>,
}

/// A session that holds the words.
#[derive(Serialize, JsonSchema)]
pub(crate) struct FoundJson {
    /// The session.
    session: InfoJson,
    /// Where, the places with the most of the words first.
    hits: Vec<HitJson>,
}

/// A place that holds some of the words.
#[derive(Serialize, JsonSchema)]
pub(crate) struct HitJson {
    /// The entry; null for a title of the header and the folder.
    entry: Option<String>,
    /// user, assistant, tool, title or folder.
    who: String,
    /// Whether it lies on the active path, rather than on a branch that was left.
    active: bool,
    /// What the entry is worth.
    label: LabelJson,
    /// The text around the words.
    text: String,
}

impl From<Found> for FoundJson {
    fn from(found: Found) -> Self {
        Self { session: found.session.into(), hits: found.hits.into_iter().map(Into::into).collect() }
    }
}

impl From<Hit> for HitJson {
    fn from(hit: Hit) -> Self {
        Self {
            entry: hit.entry.map(|id| id.to_string()),
            who: hit.who.into(),
            active: hit.active,
            label: hit.label.into(),
            text: hit.text,
        }
    }
}

/// Searches all sessions, or those of this folder.
pub(crate) fn search(env: &Env, words: &[String], here: bool, number: usize, json: bool) -> Result<ExitCode, Failure> {
    let query = words.join(" ");
    let (folders, folder) = (Folders::default(), std::fs::canonicalize(".").unwrap_or_default());
    let folder = folder.to_string_lossy();
    let wanted = |info: &SessionInfo| info.has_content() && (!here || folders.same(&info.cwd, &folder));
    let answer = Store::new(&env.dirs.agent).search(&query, number, wanted).map_err(|error| unlistable(&error))?;
    if answer.no_words {
        return Err(Failure::usage(format!("there is no word to search for in \"{query}\""))
            .hint("name letters or digits that a session holds: gjc sessions search worktree"));
    }
    let code = if answer.found.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS };
    if json {
        print_json(&SearchJson {
            sessions: answer.found.into_iter().map(Into::into).collect(),
            more: answer.more,
            unreadable: answer.unreadable.into_iter().map(Into::into).collect(),
        });
        return Ok(code);
    }
    for Found { session, hits } in &answer.found {
        out::line(&row(session, None));
        for hit in hits {
            let entry = hit.entry.as_ref().map_or_else(String::new, |id| format!(" {id}"));
            let left = if hit.active { "" } else { " (a branch that was left)" };
            out::line(&out::row(&format!("    {}{entry}{left}: {}", hit.who, hit.text)));
        }
    }
    tell(&answer.unreadable);
    if answer.found.is_empty() && number > 0 {
        out::talk(if here {
            "No session of this folder holds all of these words. All folders: leave --here out"
        } else {
            "No session holds all of these words."
        });
    }
    if answer.more {
        out::talk(&format!(
            "There may be more; these are the {number} newest. More: gjc sessions search -n {}",
            number.saturating_mul(5).max(20)
        ));
    }
    Ok(code)
}
