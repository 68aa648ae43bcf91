//! Which session a word means.

use crate::store::Child;
use crate::{Folders, SessionInfo, in_trash, sweep_all};
use gjc_log::fs::Fs;
use std::io;
use std::path::{Path, PathBuf};

/// Why a word means no session.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotResolved {
    /// None has such an id.
    #[error("Session \"{0}\" not found.")]
    Unknown(String),
    /// Nothing can be gone on with.
    #[error("Session \"{0}\" has no messages: there is nothing to go on with.")]
    Empty(String),
    /// The only one that has lies in the trash.
    #[error("Session \"{word}\" is in the trash.")]
    InTrash {
        /// The word.
        word: String,
        /// The whole id.
        id: String,
    },
    /// Several have.
    #[error("{}", several(.word, .matches))]
    Ambiguous {
        /// The word.
        word: String,
        /// Whose ids begin with it.
        matches: Vec<SessionInfo>,
    },
    /// There is no such file.
    #[error("File not found: {}", .0.display())]
    NoFile(PathBuf),
    /// It is a folder.
    #[error("{} is a folder, not a session file", .0.display())]
    Folder(PathBuf),
    /// The sessions cannot be listed.
    #[error("the sessions folder cannot be read: {0}")]
    Io(#[from] io::Error),
}

impl NotResolved {
    /// Whether several files have one id, so that no more of it tells them apart.
    #[must_use]
    pub fn is_twins(&self) -> bool {
        matches!(self, Self::Ambiguous { matches, .. } if matches.iter().all(|info| info.id == matches[0].id))
    }
}

fn several(word: &str, matches: &[SessionInfo]) -> String {
    let row = |info: &SessionInfo| format!("\n  {}  {}  {}", info.id, info.name(), info.path.display());
    let rows: String = matches.iter().map(row).collect();
    match matches {
        [first, rest @ ..] if rest.iter().all(|info| info.id == first.id) => {
            format!("{} files have the session id \"{}\":{rows}", matches.len(), first.id)
        }
        _ => format!("\"{word}\" is the beginning of {} session ids:{rows}", matches.len()),
    }
}

/// Whether a word is a path rather than an id: it has a separator, or ends in `.jsonl`.
#[must_use]
pub fn is_path_like(word: &str) -> bool {
    word.contains(['/', '\\']) || word.ends_with(".jsonl")
}

/// As [`crate::Store::resolve`], without an index and without subagents.
///
/// # Errors
/// [`NotResolved`]; several matches are listed, none is chosen.
pub fn resolve<F: Fs>(fs: &F, sessions: &Path, cwd: &Path, word: &str) -> Result<PathBuf, NotResolved> {
    let agent_dir = sessions.parent().unwrap_or(sessions);
    among(fs, agent_dir, cwd, word, || Ok(sweep_all(fs, sessions)?.0), || Ok(Vec::new()))
}

/// The file that a word means among these.
pub(crate) fn among<F: Fs>(
    fs: &F,
    agent_dir: &Path,
    cwd: &Path,
    word: &str,
    sessions: impl FnOnce() -> io::Result<Vec<SessionInfo>>,
    children: impl FnOnce() -> io::Result<Vec<Child>>,
) -> Result<PathBuf, NotResolved> {
    if is_path_like(word) {
        // Without the `.` components, which a person would have to read past.
        let path: PathBuf = cwd.join(word).components().collect();
        return match fs.stat(&path) {
            Ok(stat) if stat.is_dir => Err(NotResolved::Folder(path)),
            Ok(_) => Ok(path),
            Err(_) => task(cwd, word, children)?.ok_or(NotResolved::NoFile(path)),
        };
    }
    let lower = word.to_lowercase();
    let begins = |info: &SessionInfo| !word.is_empty() && info.id.to_lowercase().starts_with(&lower);
    let is_whole = |info: &SessionInfo| info.id.to_lowercase() == lower;
    let matching = sessions()?.into_iter().filter(begins).collect();
    if let Some(path) = choose(cwd, word, matching, is_whole)? {
        return Ok(path);
    }
    let matching = children()?.into_iter().map(|child| child.info).filter(begins).collect();
    if let Some(path) = choose(cwd, word, matching, is_whole)? {
        return Ok(path);
    }
    Err(match in_trash_by(fs, agent_dir, &lower) {
        Some(id) => NotResolved::InTrash { word: word.into(), id },
        None => NotResolved::Unknown(word.into()),
    })
}

/// The log of a subagent that is named `<session>/<task>`.
fn task(
    cwd: &Path,
    word: &str,
    children: impl FnOnce() -> io::Result<Vec<Child>>,
) -> Result<Option<PathBuf>, NotResolved> {
    let Some((session, task)) = word.split_once('/') else { return Ok(None) };
    if session.is_empty() || session.starts_with(['.', '~']) || task.is_empty() || word.contains('\\') {
        return Ok(None);
    }
    let (session, task) = (session.to_lowercase(), task.to_lowercase());
    let depth = |name: &str| name.matches('/').count();
    let (mut matching, mut whole) = (Vec::new(), Vec::new());
    for child in children()? {
        let name = child.name.to_lowercase();
        let Some((of, name)) = name.split_once('/') else { continue };
        if of.starts_with(&session) && name.starts_with(&task) && depth(name) == depth(&task) {
            if name == task {
                whole.push(child.info.path.clone());
            }
            matching.push(child.info);
        }
    }
    choose(cwd, word, matching, |info| whole.contains(&info.path))
}

/// The one that is meant of those whose names begin as the word does: what has messages before what has none, whole names
/// before longer ones, those of this folder before others. Several of a kind are for a person to choose from.
fn choose(
    cwd: &Path,
    word: &str,
    matching: Vec<SessionInfo>,
    is_whole: impl Fn(&SessionInfo) -> bool,
) -> Result<Option<PathBuf>, NotResolved> {
    let one = |mut group: Vec<SessionInfo>| match group.len() {
        0 => Ok(None),
        1 => Ok(Some(group.swap_remove(0).path)),
        _ => Err(NotResolved::Ambiguous { word: word.into(), matches: group }),
    };
    // A copy of a file bears its whole id too: which of them is meant, no folder tells.
    let (whole, longer): (Vec<_>, Vec<_>) = matching.into_iter().partition(is_whole);
    if !whole.is_empty() {
        return one(whole);
    }
    let (matching, empty): (Vec<_>, Vec<_>) = longer.into_iter().partition(SessionInfo::has_content);
    let (folders, here) = (Folders::default(), cwd.to_string_lossy());
    for group in [matching, empty] {
        let (mine, others): (Vec<_>, Vec<_>) = group.into_iter().partition(|info| folders.same(&info.cwd, &here));
        for group in [mine, others] {
            if let Some(path) = one(group)? {
                return Ok(Some(path));
            }
        }
    }
    Ok(None)
}

/// The id of the only session that was deleted whose id begins so.
fn in_trash_by<F: Fs>(fs: &F, agent_dir: &Path, lower: &str) -> Option<String> {
    let deleted = in_trash(fs, agent_dir).ok()?.into_iter().filter(|item| item.moved_to().is_none());
    let ids = deleted.map(|item| item.id());
    let mut ids = ids.filter(|id| !lower.is_empty() && id.to_lowercase().starts_with(lower));
    ids.next().filter(|_| ids.next().is_none())
}
