//! `gjc sessions delete|restore|trash`: sessions into the trash, back out of it, and, by an explicit word only, away for good.

use crate::cli::TrashCommand;
use crate::confirm::confirm;
use crate::failure::Failure;
use crate::out;
use crate::sessions::{find, print_json};
use gjc_entry::Env;
use gjc_log::fs::OsFs;
use gjc_store::{InTrash, Store, TrashError, empty, in_trash, restore, settle_all, trash};
use schemars::JsonSchema;
use serde::Serialize;
use std::path::PathBuf;
use std::process::ExitCode;

/// What `gjc sessions delete --json` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct DeletedJson {
    /// What was moved to the trash.
    trashed: Vec<TrashedJson>,
}

/// A session that was moved to the trash.
#[derive(Serialize, JsonSchema)]
pub(crate) struct TrashedJson {
    /// Its id.
    id: String,
    /// Where its file was.
    from: String,
    /// Its file in the trash.
    path: String,
}

/// What `gjc sessions restore --json` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct RestoredJson {
    /// Its id.
    id: String,
    /// Where its file is again.
    path: String,
}

/// What `gjc sessions trash --json` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct TrashJson {
    /// What was moved last first.
    sessions: Vec<InTrashJson>,
}

/// A session in the trash.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InTrashJson {
    /// Its id.
    id: String,
    /// Its folder in the trash.
    folder: String,
    /// Where its file was, where that is known.
    from: Option<String>,
    /// When it was moved, ISO 8601, where that is known.
    trashed: Option<String>,
    /// The folder that it worked in, where it can be read.
    cwd: Option<String>,
    /// What to call it: title, first words, id.
    name: Option<String>,
    /// How many messages.
    messages: Option<usize>,
    /// Where the session goes on, if this is its file of before it moved to another folder.
    moved_to: Option<String>,
}

/// What `gjc sessions trash empty --json` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct EmptiedJson {
    /// The ids of what was removed for good.
    removed: Vec<String>,
}

impl From<TrashError> for Failure {
    fn from(error: TrashError) -> Self {
        let failure = Self::new(error.to_string());
        match error.hint() {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

/// Moves sessions to the trash. All words are resolved before anything moves, so that a wrong one changes nothing.
pub(crate) fn delete(env: &Env, words: &[String], yes: bool, json: bool) -> Result<ExitCode, Failure> {
    settle_all(&OsFs, &env.dirs.agent)?;
    let mut paths: Vec<PathBuf> = words.iter().map(|word| find(env, word)).collect::<Result<_, _>>()?;
    paths.sort();
    paths.dedup();
    if !yes {
        let known = Store::new(&env.dirs.agent).list().map(|listing| listing.sessions).unwrap_or_default();
        for path in &paths {
            let info = known.iter().find(|info| info.path == *path);
            let name = info.map(|info| out::cell(info.name(), 60).trim_end().to_owned() + "  ").unwrap_or_default();
            out::talk(&format!("  {name}{}", out::row(&path.display().to_string())));
        }
        let question = match paths.len() {
            1 => "move this session to the trash?".to_owned(),
            count => format!("move these {count} sessions to the trash?"),
        };
        if !confirm(&question)? {
            out::talk("gjc: nothing was moved");
            return Ok(ExitCode::SUCCESS);
        }
    }
    let mut trashed = Vec::new();
    let mut failed = None;
    for path in paths {
        match trash(&OsFs, &env.dirs.agent, &path, env.clock.wall()) {
            Ok(gone) => trashed.push(gone),
            Err(why) => {
                failed = Some(why);
                break;
            }
        }
    }
    if json {
        let shown = |gone: &gjc_store::Trashed| TrashedJson {
            id: gone.id.clone(),
            from: gone.from.display().to_string(),
            path: gone.file.display().to_string(),
        };
        print_json(&DeletedJson { trashed: trashed.iter().map(shown).collect() });
    } else {
        for gone in &trashed {
            out::notice(&format!(
                "gjc: {} is in the trash; gjc sessions restore {} puts it back",
                out::row(&gone.id),
                out::id(&gone.id)
            ));
        }
    }
    failed.map_or(Ok(ExitCode::SUCCESS), |why| Err(why.into()))
}

/// Puts a session back where it was.
pub(crate) fn put_back(env: &Env, word: &str, json: bool) -> Result<ExitCode, Failure> {
    settle_all(&OsFs, &env.dirs.agent)?;
    let item = the_one(env, word)?;
    let listing = Store::new(&env.dirs.agent).list();
    let live = listing.ok().and_then(|listing| listing.sessions.into_iter().find(|info| info.id == item.id()));
    if let Some(live) = live {
        let folder = item.folder.file_name().unwrap_or_default().to_string_lossy();
        return Err(Failure::new(format!(
            "session {} is there: {}",
            out::row(&live.id),
            out::row(&live.path.display().to_string())
        ))
        .hint(format!(
            "two with one id would stand in each other's way; gjc sessions trash empty {} removes this one for good",
            out::word(&folder)
        )));
    }
    let (id, path) = (item.id(), restore(&OsFs, &env.dirs.agent, &item.folder)?);
    if json {
        return Ok(print_json(&RestoredJson { id, path: path.display().to_string() }));
    }
    out::notice(&format!("gjc: {id} is back: {}", out::row(&path.display().to_string())));
    Ok(ExitCode::SUCCESS)
}

/// Shows the trash, or empties it.
pub(crate) fn run(env: &Env, json: bool, command: Option<TrashCommand>) -> Result<ExitCode, Failure> {
    settle_all(&OsFs, &env.dirs.agent)?;
    match command {
        None => list(env, json),
        Some(TrashCommand::Empty { sessions, yes, json }) => remove(env, &sessions, yes, json),
    }
}

fn list(env: &Env, json: bool) -> Result<ExitCode, Failure> {
    let items = all(env)?;
    if json {
        let shown = |item: &InTrash| InTrashJson {
            id: item.id(),
            folder: item.folder.display().to_string(),
            from: item.record.as_ref().map(|record| record.path.display().to_string()),
            trashed: item.record.as_ref().map(|record| record.at.to_string()),
            cwd: item.info.as_ref().map(|info| info.cwd.clone()),
            name: item.info.as_ref().map(|info| info.name().to_owned()),
            messages: item.info.as_ref().map(|info| info.messages),
            moved_to: item.moved_to().map(|to| to.display().to_string()),
        };
        return Ok(print_json(&TrashJson { sessions: items.iter().map(shown).collect() }));
    }
    if items.is_empty() {
        out::talk("The trash is empty.");
    }
    for item in items {
        let when = item.record.as_ref().map(|record| record.at.to_string()).unwrap_or_default();
        let when = when.get(..16).map_or_else(|| " ".repeat(17), |minute| minute.replace('T', " ") + "Z");
        let (name, cwd) = item.info.as_ref().map_or(("", ""), |info| (info.name(), &info.cwd));
        let line = format!("{}  {when}  {}  {}", out::row(&item.id()), out::cell(name, 48), out::row(cwd));
        out::line(line.trim_end());
        if let Some(to) = item.moved_to() {
            out::line(&format!("  moved to {}", out::row(&to.display().to_string())));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn remove(env: &Env, words: &[String], yes: bool, json: bool) -> Result<ExitCode, Failure> {
    let items = match words {
        [] => all(env)?,
        words => words.iter().map(|word| the_one(env, word)).collect::<Result<_, _>>()?,
    };
    if items.is_empty() {
        out::talk("The trash is empty.");
    } else if !yes {
        let question = match items.len() {
            1 => "remove this session from the trash for good? Nothing brings it back.".to_owned(),
            count => format!("remove {count} sessions from the trash for good? Nothing brings them back."),
        };
        if !confirm(&question)? {
            out::talk("gjc: nothing was removed");
            return Ok(ExitCode::SUCCESS);
        }
    }
    let mut removed = Vec::new();
    for item in items {
        // Named twice, it is gone already.
        if !removed.contains(&item.folder) {
            empty(&OsFs, &env.dirs.agent, &item.folder)?;
            removed.push(item.folder.clone());
            if json {
                continue;
            }
            out::notice(&format!("gjc: {} was removed for good", item.id()));
        }
    }
    if json {
        let name = |folder: &PathBuf| folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        print_json(&EmptiedJson { removed: removed.iter().map(name).collect() });
    }
    Ok(ExitCode::SUCCESS)
}

fn all(env: &Env) -> Result<Vec<InTrash>, Failure> {
    in_trash(&OsFs, &env.dirs.agent).map_err(|why| Failure::new(format!("the trash cannot be read: {why}")))
}

/// What in the trash a word means: the beginning of an id, or the name of a folder of the trash.
fn matching(env: &Env, word: &str) -> Result<Vec<InTrash>, Failure> {
    let lower = word.to_lowercase();
    let means = |item: &InTrash| {
        let folder = item.folder.file_name().unwrap_or_default().to_string_lossy();
        !word.is_empty() && (item.id().to_lowercase().starts_with(&lower) || folder == word)
    };
    let found: Vec<InTrash> = all(env)?.into_iter().filter(means).collect();
    // A session that was deleted is meant rather than what it had left behind when it moved.
    let (moved, deleted): (Vec<_>, Vec<_>) = found.into_iter().partition(|item| item.moved_to().is_some());
    Ok(if deleted.is_empty() { moved } else { deleted })
}

fn the_one(env: &Env, word: &str) -> Result<InTrash, Failure> {
    let mut found = matching(env, word)?;
    match found.len() {
        0 => Err(Failure::new(format!("Session \"{word}\" is not in the trash."))
            .hint("gjc sessions trash shows what is there")),
        1 => Ok(found.swap_remove(0)),
        count => {
            let names: String = found
                .iter()
                .map(|item| format!("\n  {}", item.folder.file_name().unwrap_or_default().to_string_lossy()))
                .collect();
            Err(Failure::new(format!("\"{word}\" means {count} sessions in the trash:{names}"))
                .hint("give more of the id, or the whole name of one of these"))
        }
    }
}
