//! Folders that went elsewhere: whose sessions a folder may be offered, because it may be the one that they worked in.

use crate::{SessionInfo, same_folder};
use std::path::{Path, PathBuf};
use unicode_normalization::UnicodeNormalization;

/// A folder that is gone, and its sessions.
#[derive(Debug)]
pub struct Moved<'a> {
    /// The folder, as the headers say.
    pub cwd: &'a str,
    /// Those with content, in the order of the list.
    pub sessions: Vec<&'a SessionInfo>,
    /// Why it may have been this one.
    pub likeness: Likeness,
}

/// Why a folder that is gone may have been this one, the likeliest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Likeness {
    /// It had the same name elsewhere: one that was moved.
    Name,
    /// It was a worktree that gjc had made beside this checkout.
    Worktree,
    /// It stood beside it: one that was renamed.
    Place,
}

/// Folders of which `here` may be the new place: they are gone, and are like it ([`Likeness`]). A guess, to be offered
/// to a person: the likeliest first, then in the order of the list.
#[must_use]
pub fn moved<'a>(sessions: &'a [SessionInfo], here: &Path) -> Vec<Moved<'a>> {
    let part = |part: Option<&Path>| part.map(|part| part.to_string_lossy().nfc().collect::<String>());
    let name = |path: &Path| part(path.file_name().map(Path::new));
    let (own_name, own_parent) = (name(here), part(here.parent()));
    let worktrees = part(Some(here)).map(|here| PathBuf::from(here + ".gjc-worktrees"));
    let mut found: Vec<Moved<'a>> = Vec::new();
    for info in sessions.iter().filter(|info| info.has_content()) {
        if let Some(moved) = found.iter_mut().find(|moved| moved.cwd == info.cwd) {
            moved.sessions.push(info);
            continue;
        }
        let cwd = Path::new(&info.cwd);
        let likeness = if name(cwd) == own_name {
            Likeness::Name
        } else if worktrees.as_ref().zip(part(Some(cwd))).is_some_and(|(dir, cwd)| Path::new(&cwd).starts_with(dir)) {
            Likeness::Worktree
        } else if part(cwd.parent()) == own_parent {
            Likeness::Place
        } else {
            continue;
        };
        // A folder that may not be looked at is not gone; nor is this one, in another spelling.
        if cwd.is_absolute() && matches!(cwd.try_exists(), Ok(false)) && !same_folder(&info.cwd, here) {
            found.push(Moved { cwd: &info.cwd, sessions: vec![info], likeness });
        }
    }
    found.sort_by_key(|moved| moved.likeness);
    found
}
