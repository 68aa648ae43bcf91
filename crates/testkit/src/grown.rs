//! The watch over session files: they may grow, and nothing else.
//!
//! Every run of a binary under test ends with this look, so that the promise "a session file is append-only" is tested by
//! every test, not only by those that think of it.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Remembers every `*.jsonl` file below a folder, byte for byte, and compares at each look.
///
/// Two exceptions: recovery may cut a torn tail, the bytes behind the last newline, if a file `<name>.torn` beside the
/// session holds them; and a file may move whole into a folder `trash`, or out of it.
#[derive(Debug)]
pub struct Watch {
    dir: PathBuf,
    seen: BTreeMap<PathBuf, Vec<u8>>,
}

impl Watch {
    /// Looks for the first time. A folder that does not exist yet is an empty one.
    #[must_use]
    #[track_caller]
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        let dir = dir.into();
        let seen = look(&dir).unwrap_or_else(|e| panic!("{e}"));
        Self { dir, seen }
    }

    /// Looks again, and fails the test when a file seen before is gone or its old bytes are not the beginning of the new.
    #[track_caller]
    pub fn check(&mut self) {
        if let Err(e) = self.try_check() {
            panic!("{e}");
        }
    }

    /// As [`Watch::check`].
    ///
    /// # Errors
    /// A sentence for each file that did anything but grow. The new state is remembered in either case.
    pub fn try_check(&mut self) -> Result<(), String> {
        let now = look(&self.dir)?;
        let wrong: Vec<String> = self
            .seen
            .iter()
            .filter(|(path, old)| now.contains_key(*path) || !has_moved(path, old, &now))
            .filter_map(|(path, old)| wrong(path, old, now.get(path)))
            .collect();
        self.seen = now;
        if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
    }

    /// Forgets a file that the test itself deletes, moves or damages.
    pub fn forget(&mut self, path: &Path) {
        self.seen.remove(path);
    }

    /// The files seen at the last look.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.seen.keys().map(PathBuf::as_path)
    }
}

/// Whether a file that is gone stands whole elsewhere under its name, on the other side of the trash.
fn has_moved(path: &Path, old: &[u8], now: &BTreeMap<PathBuf, Vec<u8>>) -> bool {
    let is_trash = |path: &Path| path.components().any(|part| part.as_os_str() == "trash");
    now.iter().any(|(other, bytes)| {
        other.file_name() == path.file_name() && is_trash(other) != is_trash(path) && bytes.starts_with(old)
    })
}

fn wrong(path: &Path, old: &[u8], new: Option<&Vec<u8>>) -> Option<String> {
    let Some(new) = new else {
        return Some(format!("a session file vanished: {}", path.display()));
    };
    if new.starts_with(old) {
        return None;
    }
    let whole = old.iter().rposition(|&b| b == b'\n').map_or(0, |at| at + 1);
    let torn = &old[whole..];
    let cut_by_recovery = !torn.is_empty() && new.starts_with(&old[..whole]) && kept(path, torn);
    if cut_by_recovery {
        return None;
    }
    let same = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let line = old[..same].iter().filter(|&&b| b == b'\n').count() + 1;
    let part = |bytes: &[u8]| {
        let from = bytes[same..].iter().take(120).copied().collect::<Vec<u8>>();
        String::from_utf8_lossy(&from).into_owned()
    };
    Some(format!(
        "a session file did not only grow: {} ({} → {} bytes) differs at byte {same}, line {line}\n  before: {:?}\n  after:  {:?}",
        path.display(),
        old.len(),
        new.len(),
        part(old),
        part(new),
    ))
}

/// Whether `<path>.torn` holds these bytes.
fn kept(path: &Path, torn: &[u8]) -> bool {
    let mut name = path.as_os_str().to_owned();
    name.push(".torn");
    fs::read(name).is_ok_and(|all| all.windows(torn.len()).any(|w| w == torn))
}

fn look(dir: &Path) -> Result<BTreeMap<PathBuf, Vec<u8>>, String> {
    let mut found = BTreeMap::new();
    let mut todo = vec![dir.to_path_buf()];
    while let Some(dir) = todo.pop() {
        // A folder may go while we look (temporary folders of a program that still runs).
        let Some(entries) = gone_is_none(fs::read_dir(&dir)).map_err(|e| unreadable(&dir, &e))? else { continue };
        for entry in entries {
            let entry = entry.map_err(|e| unreadable(&dir, &e))?;
            let path = entry.path();
            let kind = entry.file_type().map_err(|e| unreadable(&path, &e))?;
            if kind.is_dir() {
                todo.push(path);
            } else if kind.is_file() && path.extension().is_some_and(|e| e == "jsonl") {
                let bytes = gone_is_none(fs::read(&path)).map_err(|e| unreadable(&path, &e))?;
                found.extend(bytes.map(|b| (path, b)));
            }
        }
    }
    Ok(found)
}

fn gone_is_none<T>(r: io::Result<T>) -> io::Result<Option<T>> {
    match r {
        Ok(v) => Ok(Some(v)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}

fn unreadable(path: &Path, e: &io::Error) -> String {
    format!("the watch over session files could not read {}: {e}", path.display())
}
