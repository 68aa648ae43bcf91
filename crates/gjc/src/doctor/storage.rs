//! Where sessions are kept: what its file system can do, tried out in a folder that is removed again; what stands beside
//! the sessions; the prompt history. Opens no session.

use super::Finding;
use crate::history;
use gjc_entry::Env;
use gjc_log::fs::{Fs, FsFile, Held, Open, OsFs};
use gjc_store::{History, HistoryError};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Less room than this is told.
const LOW: u64 = 256 << 20;
/// Folders of sessions, and names in each, that are looked at.
const MOST: usize = 100_000;

pub(super) fn findings(env: &Env) -> Vec<Finding> {
    let sessions = env.dirs.sessions();
    let mut findings = vec![folder(&sessions)];
    if sessions.is_dir() {
        findings.extend([abilities(&sessions), leases(&sessions)]);
    }
    findings.extend([indexes(&env.dirs.agent.join("cache/index")), prompts(env)]);
    findings
}

/// The folder, or where it will be made.
fn folder(sessions: &Path) -> Finding {
    let shown = sessions.display();
    let there = sessions.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("/"));
    if !there.is_dir() {
        return Finding::problem("sessions", format!("{} is no folder", there.display()), "move that file away");
    }
    if !gjc_process::may_write(there) {
        return Finding::problem(
            "sessions",
            format!("{} cannot be written to", there.display()),
            "change its permissions, or set GJC_CODING_AGENT_DIR to another folder",
        );
    }
    let about = rustix::fs::statfs(there).ok();
    let kind = about.as_ref().map_or("an unknown file system", |about| file_system(about.f_type));
    let free = rustix::fs::statvfs(there).map_or(u64::MAX, |about| about.f_bavail.saturating_mul(about.f_frsize));
    if free < LOW {
        return Finding::problem(
            "sessions",
            format!("{shown} on {kind} has only {} MiB left", free >> 20),
            "make room",
        );
    }
    if kind == "tmpfs" {
        return Finding::note(
            "sessions",
            format!("{shown} is in memory (tmpfs): sessions are gone with the machine's next start"),
            "set GJC_CODING_AGENT_DIR to a folder on a disk",
        );
    }
    let says =
        if sessions.is_dir() { format!("{shown} is on {kind}") } else { format!("{shown} is on {kind}, not made yet") };
    Finding::ok("sessions", says)
}

/// Names of file systems (statfs(2), linux/magic.h).
fn file_system(magic: impl TryInto<i64>) -> &'static str {
    match magic.try_into().unwrap_or_default() & 0xffff_ffff {
        0xef53 => "ext4",
        0x9123_683e => "btrfs",
        0x5846_5342 => "xfs",
        0x0102_1994 => "tmpfs",
        0x794c_7630 => "overlayfs",
        0x2fc1_2fc1 => "zfs",
        0xf2f5_2010 => "f2fs",
        0x6969 => "nfs",
        0xff53_4d42 | 0xfe53_4d42 | 0x517b => "smb",
        0x6573_5546 => "fuse",
        0x0102_1997 => "9p",
        0xca45_1a4e => "bcachefs",
        _ => "another file system",
    }
}

/// Locks, renames that replace nothing, and syncs, tried out.
fn abilities(sessions: &Path) -> Finding {
    let Ok(trial) = tempfile::Builder::new().prefix(".gjc-doctor-").tempdir_in(sessions) else {
        return Finding::problem(
            "storage",
            "no folder can be made where the sessions are",
            "change the permissions, or make room",
        );
    };
    match tried(trial.path()) {
        Ok(lacks) if lacks.is_empty() => {
            Finding::ok("storage", "locks, renames that replace nothing, and syncs of files and folders work")
        }
        Ok(lacks) => {
            Finding::note("storage", lacks.join("; "), "keep the sessions on a local disk: set GJC_CODING_AGENT_DIR")
        }
        Err(error) => Finding::problem(
            "storage",
            format!("a file cannot be written and read back where the sessions are: {error}"),
            "look at the disk, or set GJC_CODING_AGENT_DIR to another folder",
        ),
    }
}

fn tried(folder: &Path) -> io::Result<Vec<&'static str>> {
    let (fs, one, two) = (OsFs, folder.join("one"), folder.join("두 번째"));
    let mut lacks = Vec::new();
    let file = fs.open(&one, Open::CreateNew)?;
    let mut read = [0; 4];
    if file.append(b"gjc\n")? != 4 || file.read_at(&mut read, 0)? != 4 || read != *b"gjc\n" {
        return Err(io::Error::other("it does not hold what was written"));
    }
    match file.try_lock() {
        Ok(_) if !matches!(fs.open(&one, Open::Append)?.try_lock(), Ok(Held::Other)) => {
            lacks.push("a lock keeps nobody away: do not open a session twice at once");
        }
        Ok(_) => {}
        Err(_) => lacks.push("locks are refused: a lease beside each session stands in for them"),
    }
    if file.sync_data().is_err() || fs.sync_dir(folder).is_err() {
        lacks.push("files or folders cannot be synced: a power cut may take what was said to be kept");
    }
    drop(fs.open(&two, Open::CreateNew)?);
    let replaced = fs.rename_new(&one, &two).is_ok();
    if replaced || fs.rename_new(&one, &folder.join("three")).is_err() {
        lacks.push("a rename that replaces nothing is not to be had");
    }
    Ok(lacks)
}

/// Files that stand in for locks.
fn leases(sessions: &Path) -> Finding {
    let found: Vec<PathBuf> = names(sessions)
        .flat_map(|bucket| names(&bucket).collect::<Vec<_>>())
        .filter(|path| path.extension().is_some_and(|end| end == "lease"))
        .collect();
    match found.as_slice() {
        [] => Finding::ok("leases", "none is there"),
        [first, ..] => Finding::note(
            "leases",
            format!("{}, the first {}", count(found.len(), "lease"), first.display()),
            "one whose process is gone is taken over by the next that opens its session; nothing needs to be removed",
        ),
    }
}

fn indexes(folder: &Path) -> Finding {
    let found: Vec<PathBuf> = names(folder).filter(|path| path.extension().is_some_and(|end| end == "gjx")).collect();
    let bytes: u64 = found.iter().filter_map(|path| Some(fs::metadata(path).ok()?.len())).sum();
    if found.is_empty() {
        return Finding::ok("indexes", "none yet; large sessions get them");
    }
    let says =
        format!("{}, {} KiB; they may be removed at any time", count(found.len(), "index file"), bytes.div_ceil(1024));
    Finding::ok("indexes", says)
}

fn prompts(env: &Env) -> Finding {
    let path = history::path(env);
    let found =
        History::look(&path).and_then(|history| history.map(|mut history| history.unanswered(None)).transpose());
    match found {
        Ok(None) => Finding::ok("history", "no prompts are kept yet"),
        Ok(Some(waiting)) if waiting.is_empty() => Finding::ok("history", "every prompt was answered or settled"),
        Ok(Some(waiting)) => {
            Finding::ok("history", format!("{} without an answer: gjc prompts --all", count(waiting.len(), "prompt")))
        }
        Err(error @ (HistoryError::Busy(_) | HistoryError::Late(_))) => {
            Finding::note("history", error.to_string(), "end the program that holds it")
        }
        Err(error) => Finding::problem("history", error.to_string(), "move the file away; a new one is made"),
    }
}

/// The paths in a folder, as far as it can be listed.
fn names(folder: &Path) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().take(MOST).map(|entry| entry.path())
}

/// A count with its noun.
fn count(n: usize, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}
