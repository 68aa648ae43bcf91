//! Which sessions there are.

use crate::look::{SessionInfo, look};
use gjc_log::OpenError;
use gjc_log::fs::{Fs, FsFile, Held, Open};
use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A file that looks like a session and could not be read as one.
#[derive(Debug)]
pub struct Unreadable {
    /// The file.
    pub path: PathBuf,
    /// Why.
    pub why: OpenError,
}

/// All sessions below a sessions folder (one level of buckets), newest entry first, and the files that could not be read.
/// A folder that is not there holds none. A bucket that is a symbolic link is followed, and read once whatever its names.
///
/// # Errors
/// When the folder itself cannot be listed.
pub fn sweep_all<F: Fs>(fs: &F, sessions: &Path) -> io::Result<(Vec<SessionInfo>, Vec<Unreadable>)> {
    Ok(look_at(fs, files_all(fs, sessions)?))
}

/// The sessions of one bucket, newest entry first.
///
/// # Errors
/// When the folder cannot be listed.
pub fn sweep<F: Fs>(fs: &F, bucket: &Path) -> io::Result<(Vec<SessionInfo>, Vec<Unreadable>)> {
    Ok(look_at(fs, files(fs, bucket)?))
}

/// The files that look like sessions, and what is known to be none.
#[derive(Debug, Default)]
pub(crate) struct Files {
    pub(crate) sessions: Vec<PathBuf>,
    pub(crate) unreadable: Vec<Unreadable>,
}

pub(crate) fn files_all<F: Fs>(fs: &F, sessions: &Path) -> io::Result<Files> {
    let (mut all, mut seen) = (Files::default(), HashSet::new());
    for bucket in list(fs, sessions)? {
        let Ok(stat) = fs.stat(&bucket) else { continue };
        if !stat.is_dir || !seen.insert((stat.dev, stat.inode)) {
            continue;
        }
        match files(fs, &bucket) {
            Ok(found) => {
                all.sessions.extend(found.sessions);
                all.unreadable.extend(found.unreadable);
            }
            // One folder that cannot be read hides no other.
            Err(why) => {
                all.unreadable.push(Unreadable { path: bucket.clone(), why: OpenError::Io { path: bucket, why } })
            }
        }
    }
    Ok(all)
}

pub(crate) fn files<F: Fs>(fs: &F, bucket: &Path) -> io::Result<Files> {
    let mut found = Files::default();
    for path in list(fs, bucket)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with('.') && name.ends_with(".jsonl.tmp") && is_left(fs, &path) {
            found.unreadable.push(Unreadable { path: path.clone(), why: OpenError::Unnamed { path } });
        } else if name.ends_with(".jsonl") && !name.starts_with('.') {
            found.sessions.push(path);
        }
    }
    Ok(found)
}

/// The logs of subagents, which lie among what belongs to a session (and to a subagent, theirs): each with the session's file
/// and its own name there, as `task` or `task/task`.
pub(crate) fn children<F: Fs>(fs: &F, sessions: &[PathBuf]) -> Vec<Offspring> {
    /// Deeper, nobody is looked for.
    const DEEPEST: usize = 8;
    let (mut found, mut seen) = (Vec::new(), HashSet::new());
    for session in sessions {
        let mut left = vec![(session.clone(), String::new(), 0)];
        while let Some((parent, name, depth)) = left.pop() {
            // Nothing belongs to most sessions. A folder that is linked into itself is read once.
            let folder = parent.with_extension("");
            if !fs.stat(&folder).is_ok_and(|stat| stat.is_dir && seen.insert((stat.dev, stat.inode))) {
                continue;
            }
            for path in fs.list(&folder).unwrap_or_default() {
                let Some(task) = path.file_name().and_then(|name| name.to_str()?.strip_suffix(".jsonl")) else {
                    continue;
                };
                if task.is_empty() || task.starts_with('.') {
                    continue;
                }
                let name = if name.is_empty() { task.to_owned() } else { format!("{name}/{task}") };
                if depth < DEEPEST {
                    left.push((path.clone(), name.clone(), depth + 1));
                }
                found.push(Offspring { path, session: session.clone(), task: name });
            }
        }
    }
    found
}

/// A file that may be a subagent's log.
#[derive(Debug)]
pub(crate) struct Offspring {
    pub(crate) path: PathBuf,
    pub(crate) session: PathBuf,
    pub(crate) task: String,
}

fn look_at<F: Fs>(fs: &F, files: Files) -> (Vec<SessionInfo>, Vec<Unreadable>) {
    let looks = each(&files.sessions, |path| look(fs, path));
    let (mut infos, mut unreadable) = (Vec::new(), files.unreadable);
    for (path, found) in files.sessions.into_iter().zip(looks) {
        sort_in(path, found, &mut infos, &mut unreadable);
    }
    sort(&mut infos);
    unreadable.sort_by(|a, b| a.path.cmp(&b.path));
    (infos, unreadable)
}

/// Puts what was found of a file where it belongs.
pub(crate) fn sort_in<T>(
    path: PathBuf,
    found: Result<T, OpenError>,
    infos: &mut Vec<T>,
    unreadable: &mut Vec<Unreadable>,
) {
    match found {
        Ok(info) => infos.push(info),
        // Deleted between the list and the look.
        Err(OpenError::NotFound(_)) => {}
        Err(why) => unreadable.push(Unreadable { path, why }),
    }
}

/// Does something with each of many, in a few threads where that pays, and answers in their order.
pub(crate) fn each<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    /// Fewer are done before a thread has begun.
    const WORTH: usize = 16;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let more = cores.min(8).min(items.len() / WORTH).saturating_sub(1);
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::with_capacity(items.len())));
    let run = || {
        let mut own = Vec::new();
        while let Some((index, item)) =
            Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|at| Some((at, items.get(at)?)))
        {
            own.push((index, work(item)));
        }
        done.lock().unwrap_or_else(std::sync::PoisonError::into_inner).append(&mut own);
    };
    std::thread::scope(|scope| {
        for _ in 0..more {
            // Where no thread can be had, this one does it all.
            if std::thread::Builder::new().stack_size(1 << 20).spawn_scoped(scope, run).is_err() {
                break;
            }
        }
        run();
    });
    let mut done = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    done.sort_unstable_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

/// Whether a session under its temporary name has entries and no writer: nobody will ever give it its name.
fn is_left<F: Fs>(fs: &F, path: &Path) -> bool {
    let file = fs.open(path, Open::Read);
    file.is_ok_and(|file| matches!(file.try_lock(), Ok(Held::Ours)) && file.stat().is_ok_and(|stat| stat.len > 0))
}

/// Newest entry first.
pub(crate) fn sort(infos: &mut [SessionInfo]) {
    infos.sort_by(|a, b| b.modified.cmp(&a.modified).then_with(|| a.path.cmp(&b.path)));
}

fn list<F: Fs>(fs: &F, dir: &Path) -> io::Result<Vec<PathBuf>> {
    match fs.list(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        other => other,
    }
}
