//! All sessions of an agent folder, with the index that makes a list fast and changes no answer.

use crate::index::{Index, Key, Row, State};
use crate::look::{Glance, SessionInfo, glance, look};
use crate::search::{self, Answer};
use crate::sweep::{Files, Unreadable, each, files, files_all, sort, sort_in};
use gjc_log::OpenError;
use gjc_log::fs::{Fs, OsFs};
use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};

/// Fewer files, and fewer bytes, are read again as fast as an index is opened: no index is begun for them.
const MANY_FILES: usize = 32;
const MANY_BYTES: u64 = 4 << 20;

/// The sessions below one folder.
#[derive(Debug)]
pub struct Store {
    sessions: PathBuf,
    /// Whether the folder is one bucket rather than a folder of buckets.
    flat: bool,
    pub(crate) index: Index,
}

/// A list, newest entry first.
#[derive(Debug, Default)]
pub struct Listing {
    /// The sessions; those without messages too.
    pub sessions: Vec<SessionInfo>,
    /// Files that look like sessions and could not be read.
    pub unreadable: Vec<Unreadable>,
    /// The state that each file was in when it was looked at, by path.
    pub(crate) states: HashMap<PathBuf, State>,
}

impl Store {
    /// The sessions of an agent folder: `sessions/<bucket>/*.jsonl`, and `index.db` beside.
    #[must_use]
    pub fn new(agent_dir: &Path) -> Self {
        Self { sessions: agent_dir.join("sessions"), flat: false, index: Index::new(agent_dir) }
    }

    /// The sessions that lie in a folder of their own (`--session-dir`); the index is the agent folder's.
    #[must_use]
    pub fn flat(agent_dir: &Path, folder: &Path) -> Self {
        Self { sessions: folder.into(), flat: true, index: Index::new(agent_dir) }
    }

    /// All sessions; only files that have changed are read. The same answer as [`crate::sweep_all`] (flat: as
    /// [`crate::sweep`]), whatever the index holds.
    ///
    /// # Errors
    /// When the folder itself cannot be listed.
    pub fn list(&self) -> io::Result<Listing> {
        let Files { sessions: paths, mut unreadable } = self.files()?;
        let rows = self.index.rows();
        let (mut sessions, mut states) = (Vec::with_capacity(paths.len()), HashMap::with_capacity(paths.len()));
        let (mut changed, mut replaced) = (Vec::new(), Vec::new());
        let stats = each(&paths, |path| (OsFs.stat(path), rows.get(path).and_then(|row| row.open(path))));
        let there: HashSet<&PathBuf> = paths.iter().collect();
        for (path, (stat, kept)) in paths.iter().zip(stats) {
            let now = stat.ok().filter(|stat| stat.is_file).map(|stat| State::from(&stat));
            match kept {
                Some((then, info)) if Some(then) == now => {
                    states.insert(path.clone(), then);
                    sessions.push(info);
                }
                kept => {
                    replaced.extend(kept.map(|(then, _)| (path.clone(), Some(Key::of(path, &then)))));
                    changed.push((path.clone(), now));
                }
            }
        }
        replaced.extend(rows.iter().filter(|(path, _)| self.is_below(path) && !there.contains(path)).map(|(path, row)| {
            (path.clone(), row.open(path).map(|(then, _)| Key::of(path, &then)))
        }));
        let looks = each(&changed, |(path, _)| look(&OsFs, path));
        let known = sessions.len();
        let mut found = Vec::new();
        for ((path, state), looked) in changed.into_iter().zip(looks) {
            if let (Ok(_), Some(state)) = (&looked, state) {
                states.insert(path.clone(), state);
                found.push(state);
            }
            sort_in(path, looked, &mut sessions, &mut unreadable);
        }
        let read = found.iter().map(State::len).sum();
        if (!found.is_empty() || !replaced.is_empty()) && self.is_worth(found.len(), read) {
            let found: Vec<(State, &SessionInfo)> =
                sessions[known..].iter().filter_map(|info| Some((*states.get(&info.path)?, info))).collect();
            self.index.keep(&found, &replaced);
        }
        sort(&mut sessions);
        Ok(Listing { sessions, unreadable, states })
    }

    /// The newest sessions with content as the index remembers them, each of them still as it was: to be shown while
    /// [`Store::list`] goes on. What is new since is not among them.
    #[must_use]
    pub fn first(&self, n: usize) -> Vec<SessionInfo> {
        let fresh = |(path, row): (PathBuf, Row)| {
            let (then, info) = row.open(&path)?;
            let now = OsFs.stat(&path).ok().filter(|stat| stat.is_file)?;
            (self.is_below(&path) && State::from(&now) == then && info.has_content()).then_some(info)
        };
        let mut first: Vec<SessionInfo> = Vec::new();
        // Some of them may have changed.
        for (at, row) in self.index.newest(n.saturating_mul(2).saturating_add(16)).into_iter().enumerate() {
            if first.len() >= n || at > 10 * n.max(100) {
                break;
            }
            first.extend(fresh(row));
        }
        sort(&mut first);
        first
    }

    /// The sessions by the time of their last entry, from both ends of each file alone where the index knows nothing: fast
    /// without any index, but without counts.
    ///
    /// # Errors
    /// When the folder itself cannot be listed.
    pub fn glances(&self) -> io::Result<(Vec<Glance>, Vec<Unreadable>)> {
        let Files { sessions: paths, mut unreadable } = self.files()?;
        let rows = self.index.rows();
        let glances = each(&paths, |path| -> Result<Glance, OpenError> {
            let kept = rows.get(path).and_then(|row| row.open(path));
            let now = OsFs.stat(path).ok().map(|stat| State::from(&stat));
            kept.filter(|(then, _)| Some(*then) == now).map_or_else(|| glance(&OsFs, path), |(_, info)| Ok(info.into()))
        });
        let mut found = Vec::new();
        for (path, glance) in paths.into_iter().zip(glances) {
            sort_in(path, glance, &mut found, &mut unreadable);
        }
        found.sort_by(|a, b| b.modified.cmp(&a.modified).then_with(|| a.path.cmp(&b.path)));
        Ok((found, unreadable))
    }

    /// The sessions that hold all words of a query, newest first, at most `limit`; only those that `wanted` takes. Complete
    /// whatever the index holds: what it does not know is read, and remembered for the next search.
    ///
    /// # Errors
    /// When the folder itself cannot be listed.
    pub fn search(&self, query: &str, limit: usize, wanted: impl Fn(&SessionInfo) -> bool) -> io::Result<Answer> {
        Ok(search::search(self, self.list()?, query, limit, wanted))
    }

    /// Whether what was read is worth being remembered.
    pub(crate) fn is_worth(&self, files: usize, bytes: u64) -> bool {
        files >= MANY_FILES || bytes >= MANY_BYTES || self.index.is_there()
    }

    fn files(&self) -> io::Result<Files> {
        if self.flat { files(&OsFs, &self.sessions) } else { files_all(&OsFs, &self.sessions) }
    }

    fn is_below(&self, path: &Path) -> bool {
        let up = if self.flat { path.parent() } else { path.ancestors().nth(2) };
        up == Some(&self.sessions)
    }
}
