//! Which session a word means.

use crate::{SessionInfo, in_trash, sweep_all};
use gjc_log::fs::Fs;
use std::io;
use std::path::{Path, PathBuf};
use unicode_normalization::UnicodeNormalization;

/// Why a word means no session.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotResolved {
    /// None has such an id.
    #[error("Session \"{0}\" not found.")]
    Unknown(String),
    /// The only one that has lies in the trash.
    #[error("Session \"{word}\" is in the trash.")]
    InTrash {
        /// The word.
        word: String,
        /// The whole id.
        id: String,
    },
    /// Several have.
    #[error("\"{word}\" is the beginning of {} session ids:{}", .matches.len(), .matches.iter().map(|info| format!("\n  {}  {}  {}", info.id, info.name(), info.path.display())).collect::<String>())]
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

/// Whether a word is a path rather than an id: it has a separator, or ends in `.jsonl`.
#[must_use]
pub fn is_path_like(word: &str) -> bool {
    word.contains(['/', '\\']) || word.ends_with(".jsonl")
}

/// The file that a word means: a path, or the unique beginning of an id, first among the sessions of `cwd`, then
/// everywhere. A whole id always wins over longer ones that begin with it.
///
/// # Errors
/// [`NotResolved`]; several matches are listed, none is chosen.
pub fn resolve<F: Fs>(fs: &F, sessions: &Path, cwd: &Path, word: &str) -> Result<PathBuf, NotResolved> {
    if is_path_like(word) {
        // Without the `.` components, which a person would have to read past.
        let path: PathBuf = cwd.join(word).components().collect();
        return match fs.stat(&path) {
            Ok(stat) if stat.is_dir => Err(NotResolved::Folder(path)),
            Ok(_) => Ok(path),
            Err(_) => Err(NotResolved::NoFile(path)),
        };
    }
    let (infos, _) = sweep_all(fs, sessions)?;
    let lower = word.to_lowercase();
    let matching: Vec<SessionInfo> =
        infos.into_iter().filter(|info| !word.is_empty() && info.id.to_lowercase().starts_with(&lower)).collect();
    // A whole id means that session, unless a copy of the file bears it too: then a person chooses.
    let (mut exact, longer): (Vec<_>, Vec<_>) = matching.into_iter().partition(|info| info.id.to_lowercase() == lower);
    let matching = match exact.len() {
        0 => longer,
        1 => return Ok(exact.swap_remove(0).path),
        _ => return Err(NotResolved::Ambiguous { word: word.into(), matches: exact }),
    };
    let here = nfc(&cwd.to_string_lossy());
    let (mine, others): (Vec<_>, Vec<_>) = matching.into_iter().partition(|info| nfc(&info.cwd) == here);
    for mut group in [mine, others] {
        match group.len() {
            0 => {}
            1 => return Ok(group.swap_remove(0).path),
            _ => return Err(NotResolved::Ambiguous { word: word.into(), matches: group }),
        }
    }
    Err(match in_trash_by(fs, sessions, &lower) {
        Some(id) => NotResolved::InTrash { word: word.into(), id },
        None => NotResolved::Unknown(word.into()),
    })
}

/// The id of the only session in the trash beside the sessions folder whose id begins so.
fn in_trash_by<F: Fs>(fs: &F, sessions: &Path, lower: &str) -> Option<String> {
    let ids = in_trash(fs, sessions.parent()?).ok()?.into_iter().map(|item| item.id());
    let mut ids = ids.filter(|id| !lower.is_empty() && id.to_lowercase().starts_with(lower));
    ids.next().filter(|_| ids.next().is_none())
}

fn nfc(text: &str) -> String {
    text.nfc().collect()
}
