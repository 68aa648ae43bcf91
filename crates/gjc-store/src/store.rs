//! All sessions of an agent folder, with the index that makes a list fast and changes no answer.

use crate::index::{Index, Key, State};
use crate::look::{Glance, SessionInfo, glance, look};
use crate::resolve::{self, NotResolved};
use crate::search::{self, Answer};
use crate::sweep::{self, Files, Unreadable, each, files, files_all, sort, sort_in};
use gjc_log::OpenError;
use gjc_log::fs::OsFs;
use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};

/// Fewer files, and fewer bytes, are read again as fast as an index is opened: no index is begun for them.
const MANY_FILES: usize = 32;
const MANY_BYTES: u64 = 4 << 20;

/// The sessions below one folder.
#[derive(Debug)]
pub struct Store {
    agent_dir: PathBuf,
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

impl Listing {
    /// The file that cannot be read whose name has an id that begins with this word, where there is one such file.
    #[must_use]
    pub fn unreadable_of(self, word: &str) -> Option<Unreadable> {
        let word = word.to_lowercase();
        let named = |file: &Unreadable| {
            let stem = file.path.file_stem().unwrap_or_default().to_string_lossy().to_lowercase();
            stem.split_once('_').is_some_and(|(_, id)| !word.is_empty() && id.starts_with(&word))
        };
        let mut files = self.unreadable.into_iter().filter(named);
        files.next().filter(|_| files.next().is_none())
    }
}

/// A subagent's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Child {
    /// What it is.
    pub info: SessionInfo,
    /// The file of the session that it worked for.
    pub session: PathBuf,
    /// What it is called by: `<session>/<task>`, with the session's whole id; deeper ones with each task on the way.
    pub name: String,
}

impl Store {
    /// The sessions of an agent folder: `sessions/<bucket>/*.jsonl`, and `index.db` beside.
    #[must_use]
    pub fn new(agent_dir: &Path) -> Self {
        Self { sessions: agent_dir.join("sessions"), flat: false, ..Self::flat(agent_dir, Path::new("")) }
    }

    /// The sessions that lie in a folder of their own (`--session-dir`); the index is the agent folder's.
    #[must_use]
    pub fn flat(agent_dir: &Path, folder: &Path) -> Self {
        Self { agent_dir: agent_dir.into(), sessions: folder.into(), flat: true, index: Index::new(agent_dir) }
    }

    /// All sessions; only files that have changed are read. The same answer as [`crate::sweep_all`] (flat: as
    /// [`crate::sweep`]), whatever the index holds.
    ///
    /// # Errors
    /// When the folder itself cannot be listed.
    pub fn list(&self) -> io::Result<Listing> {
        let Files { sessions, unreadable } = self.files()?;
        let mut listing = self.look_at(&sessions, |path| self.is_session(path));
        listing.unreadable.extend(unreadable);
        listing.unreadable.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(listing)
    }

    /// The logs of subagents, newest entry first, and those that cannot be read. They are in no other list.
    ///
    /// # Errors
    /// When the folder itself cannot be listed.
    pub fn children(&self) -> io::Result<(Vec<Child>, Vec<Unreadable>)> {
        let offspring = sweep::children(&OsFs, &self.files()?.sessions);
        if offspring.is_empty() {
            return Ok((Vec::new(), Vec::new()));
        }
        let ids: HashMap<PathBuf, String> =
            self.list()?.sessions.into_iter().map(|info| (info.path, info.id)).collect();
        let paths: Vec<PathBuf> = offspring.iter().map(|child| child.path.clone()).collect();
        let listing = self.look_at(&paths, |path| path.starts_with(&self.sessions) && !self.is_session(path));
        let mut infos: HashMap<PathBuf, SessionInfo> =
            listing.sessions.into_iter().map(|info| (info.path.clone(), info)).collect();
        let child = |child: sweep::Offspring| {
            let info = infos.remove(&child.path)?;
            // Of a session that cannot be read, its file's name is known.
            let id = ids.get(&child.session).cloned();
            let id = id.unwrap_or_else(|| child.session.file_stem().unwrap_or_default().to_string_lossy().into_owned());
            Some(Child { info, name: format!("{id}/{}", child.task), session: child.session })
        };
        let mut children: Vec<Child> = offspring.into_iter().filter_map(child).collect();
        children.sort_by(|a, b| b.info.modified.cmp(&a.info.modified).then_with(|| a.info.path.cmp(&b.info.path)));
        // Tools keep lines of JSON there as well.
        let log = |file: &Unreadable| !matches!(file.why, OpenError::NoHeader { .. });
        Ok((children, listing.unreadable.into_iter().filter(log).collect()))
    }

    /// The newest sessions with content as the index remembers them, each of them still as it was: to be shown while
    /// [`Store::list`] goes on. What is new since is not among them.
    #[must_use]
    pub fn first(&self, n: usize) -> Vec<SessionInfo> {
        let (mut first, mut seen) = (Vec::with_capacity(n), 0);
        // Some of them may have changed; where all have, that is found out in bounded time.
        let most = n.max(100).saturating_mul(10);
        self.index.newest(|path, row| {
            seen += 1;
            if self.is_session(&path)
                && let Some((then, info)) = row.open(&path)
                && info.has_content()
                && State::of(&path) == Some(then)
            {
                first.push(info);
            }
            first.len() < n && seen < most
        });
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
            let fresh = kept.filter(|(then, _)| State::of(path) == Some(*then));
            fresh.map_or_else(|| glance(&OsFs, path), |(_, info)| Ok(info.into()))
        });
        let mut found = Vec::new();
        for (path, glance) in paths.into_iter().zip(glances) {
            sort_in(path, glance, &mut found, &mut unreadable);
        }
        found.sort_by(|a, b| b.modified.cmp(&a.modified).then_with(|| a.path.cmp(&b.path)));
        Ok((found, unreadable))
    }

    /// The file that a word means: a path, the unique beginning of an id, first among the sessions of `cwd`, then
    /// everywhere, or `<session>/<task>` for a subagent's log. A whole id wins over longer ones that begin with it, and what
    /// has messages over what has none.
    ///
    /// # Errors
    /// [`NotResolved`]; several matches are listed, none is chosen.
    pub fn resolve(&self, cwd: &Path, word: &str) -> Result<PathBuf, NotResolved> {
        let list = || Ok(self.list()?.sessions);
        resolve::among(&OsFs, &self.agent_dir, cwd, word, list, || Ok(self.children()?.0))
    }

    /// As [`Store::resolve`], to go on with it: by its id, a session without messages is none.
    ///
    /// # Errors
    /// [`NotResolved`].
    pub fn resume(&self, cwd: &Path, word: &str) -> Result<PathBuf, NotResolved> {
        let list = || Ok(self.list()?.sessions.into_iter().filter(SessionInfo::has_content).collect());
        let found = resolve::among(&OsFs, &self.agent_dir, cwd, word, list, || Ok(self.children()?.0));
        match found {
            Err(NotResolved::Unknown(_)) => self.resolve(cwd, word).and(Err(NotResolved::Empty(word.into()))),
            found => found,
        }
    }

    /// The sessions that hold all words of a query, newest first, at most `limit`; only those that `wanted` takes. Complete
    /// whatever the index holds: what it does not know is read, and remembered for the next search.
    ///
    /// # Errors
    /// When the folder itself cannot be listed.
    pub fn search(&self, query: &str, limit: usize, wanted: impl Fn(&SessionInfo) -> bool) -> io::Result<Answer> {
        Ok(search::search(self, self.list()?, query, limit, wanted))
    }

    /// Remembers the words of sessions that the index does not know yet, the newest first, until `stop` says so; for the
    /// background. Answers how many sessions it has read.
    ///
    /// # Errors
    /// When the folder itself cannot be listed.
    pub fn fill(&self, stop: impl Fn() -> bool + Sync) -> io::Result<usize> {
        Ok(search::fill(self, &self.list()?, stop))
    }

    /// Whether what was read is worth being remembered.
    pub(crate) fn is_worth(&self, files: usize, bytes: u64) -> bool {
        files >= MANY_FILES || bytes >= MANY_BYTES || self.index.is_there()
    }

    /// What is in these files, from the index where it still knows. `mine`: of which rows they are all that there are.
    fn look_at(&self, paths: &[PathBuf], mine: impl Fn(&Path) -> bool) -> Listing {
        let rows = self.index.rows();
        let mut listing = Listing { states: HashMap::with_capacity(paths.len()), ..Listing::default() };
        let (mut changed, mut replaced) = (Vec::new(), Vec::new());
        let states = each(paths, |path| (State::of(path), rows.get(path).and_then(|row| row.open(path))));
        for (path, (now, kept)) in paths.iter().zip(states) {
            match kept {
                Some((then, info)) if Some(then) == now => {
                    listing.states.insert(path.clone(), then);
                    listing.sessions.push(info);
                }
                kept => {
                    replaced.extend(kept.map(|(then, _)| (path.clone(), Some(Key::of(path, &then)))));
                    changed.push((path.clone(), now));
                }
            }
        }
        let there: HashSet<&PathBuf> = paths.iter().collect();
        let gone = rows.iter().filter(|(path, _)| mine(path) && !there.contains(path));
        replaced.extend(gone.map(|(path, row)| (path.clone(), row.open(path).map(|(then, _)| Key::of(path, &then)))));
        let looks = each(&changed, |(path, _)| look(&OsFs, path));
        let known = listing.sessions.len();
        let mut read = 0;
        for ((path, state), looked) in changed.into_iter().zip(looks) {
            if let (Ok(_), Some(state)) = (&looked, state) {
                read += state.len();
                listing.states.insert(path.clone(), state);
            }
            sort_in(path, looked, &mut listing.sessions, &mut listing.unreadable);
        }
        let found: Vec<(State, &SessionInfo)> = listing.sessions[known..]
            .iter()
            .filter_map(|info| Some((*listing.states.get(&info.path)?, info)))
            .collect();
        if (!found.is_empty() || !replaced.is_empty()) && self.is_worth(found.len(), read) {
            self.index.keep(&found, &replaced);
        }
        sort(&mut listing.sessions);
        listing
    }

    fn files(&self) -> io::Result<Files> {
        if self.flat { files(&OsFs, &self.sessions) } else { files_all(&OsFs, &self.sessions) }
    }

    /// Whether a path is where this folder's sessions lie.
    fn is_session(&self, path: &Path) -> bool {
        let up = if self.flat { path.parent() } else { path.ancestors().nth(2) };
        up == Some(&self.sessions)
    }
}
