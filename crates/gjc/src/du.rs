//! `gjc sessions du`: what the sessions take, by folder and session, and what is kept beside them.

use crate::failure::Failure;
use crate::out;
use crate::sessions::print_json;
use gjc_entry::Env;
use gjc_log::fs::OsFs;
use gjc_store::{FolderUse, SessionUse, Size, Usage, usage};
use schemars::JsonSchema;
use serde::Serialize;
use std::process::ExitCode;

/// What `gjc sessions du --json` prints.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct UsageJson {
    /// All of it, everything counted once.
    total: SizeJson,
    /// By working folder, the largest first.
    folders: Vec<FolderJson>,
    /// Files below the sessions folder that belong to no session that can be read.
    others: SizeJson,
    /// All blobs.
    blobs: SizeJson,
    /// Of those, the ones that no session names, in the trash or out of it.
    unnamed_blobs: SizeJson,
    /// The trash.
    trash: SizeJson,
    /// What is made anew when it is missing: indexes.
    cache: SizeJson,
    /// The history of prompts.
    history: SizeJson,
}

/// Bytes.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct SizeJson {
    /// As long as the files are.
    bytes: u64,
    /// As much as they take of the disk; blocks that two files share count in each.
    on_disk: u64,
    /// How many files.
    files: usize,
}

/// A working folder.
#[derive(Serialize, JsonSchema)]
struct FolderJson {
    /// The folder, as the headers say.
    cwd: String,
    /// Files and artefacts of its sessions, without blobs.
    own: SizeJson,
    /// Its sessions, the largest first.
    sessions: Vec<SessionJson>,
}

/// A session.
#[derive(Serialize, JsonSchema)]
struct SessionJson {
    /// Its id.
    id: String,
    /// Its file.
    path: String,
    /// What to call it.
    name: String,
    /// Its file, with its torn end.
    file: SizeJson,
    /// Its artefacts.
    artefacts: SizeJson,
    /// The blobs that it names; other sessions may name them too.
    blobs: SizeJson,
}

impl From<Size> for SizeJson {
    fn from(size: Size) -> Self {
        Self { bytes: size.bytes, on_disk: size.on_disk, files: size.files }
    }
}

impl From<&SessionUse> for SessionJson {
    fn from(used: &SessionUse) -> Self {
        Self {
            id: used.info.id.clone(),
            path: used.info.path.display().to_string(),
            name: used.info.name().to_owned(),
            file: used.file.into(),
            artefacts: used.artefacts.into(),
            blobs: used.blobs.into(),
        }
    }
}

impl From<&FolderUse> for FolderJson {
    fn from(folder: &FolderUse) -> Self {
        let sessions = folder.sessions.iter().map(SessionJson::from).collect();
        Self { cwd: folder.cwd.clone(), own: folder.own.into(), sessions }
    }
}

/// Shows it; each session too where it is asked for.
pub(crate) fn run(env: &Env, each: bool, json: bool) -> Result<ExitCode, Failure> {
    let used = usage(&OsFs, &env.dirs.agent)
        .map_err(|error| Failure::new(format!("the sessions folder cannot be read: {error}")))?;
    if json {
        return Ok(print_json(&UsageJson {
            total: used.total().into(),
            folders: used.folders.iter().map(FolderJson::from).collect(),
            others: used.others.into(),
            blobs: used.blobs.into(),
            unnamed_blobs: used.unnamed_blobs.into(),
            trash: used.trash.into(),
            cache: used.cache.into(),
            history: used.history.into(),
        }));
    }
    rows(&used, each).iter().for_each(|row| out::line(row.trim_end()));
    Ok(ExitCode::SUCCESS)
}

fn rows(used: &Usage, each: bool) -> Vec<String> {
    let row = |size: Size, what: &str| format!("{:>9}  {:>9}  {what}", amount(size.bytes), amount(size.on_disk));
    let mut rows = vec![format!("{:>9}  {:>9}", "bytes", "on disk")];
    for folder in &used.folders {
        let cwd = out::cell(&folder.cwd, 48);
        let count = folder.sessions.len();
        rows.push(row(folder.own, &format!("{cwd}  {count:>5} session{}", if count == 1 { "" } else { "s" })));
        for session in folder.sessions.iter().filter(|_| each) {
            let name = out::cell(session.info.name(), 46);
            let blobs = match session.blobs.files {
                0 => String::new(),
                count => format!("  + {} in {count} blobs", amount(session.blobs.bytes)),
            };
            rows.push(row(session.own(), &format!("  {name}  {}{blobs}", out::row(&session.info.id))));
        }
    }
    let unnamed = match used.unnamed_blobs.files {
        0 => "blobs".to_owned(),
        count => format!("blobs ({} of {count} are named by no session)", amount(used.unnamed_blobs.bytes)),
    };
    for (size, what) in [
        (used.blobs, unnamed.as_str()),
        (used.others, "no readable session"),
        (used.trash, "trash"),
        (used.cache, "indexes"),
        (used.history, "history of prompts"),
    ] {
        if size.files > 0 {
            rows.push(row(size, what));
        }
    }
    rows.push(row(used.total(), "total"));
    rows
}

/// Bytes in at most five letters and a unit.
fn amount(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KB", "MB", "GB", "TB", "PB"];
    let (mut value, mut unit) = (bytes, None);
    let mut tenths = 0;
    for name in UNITS {
        if value < 1000 {
            break;
        }
        (tenths, value, unit) = (value % 1000 / 100, value / 1000, Some(name));
    }
    match unit {
        None => format!("{bytes} B"),
        Some(name) if value < 10 => format!("{value}.{tenths} {name}"),
        Some(name) => format!("{value} {name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_short() {
        let shown = [0, 999, 1000, 1949, 9999, 12_345, 999_999, 1_000_000, 5_600_000_000].map(amount);
        assert_eq!(shown, ["0 B", "999 B", "1.0 KB", "1.9 KB", "9.9 KB", "12 KB", "999 KB", "1.0 MB", "5.6 GB"]);
        assert_eq!(amount(u64::MAX), "18446 PB");
    }
}
