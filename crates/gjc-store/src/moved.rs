//! Folders that went elsewhere: whose sessions a folder may be offered, because it may be the one that they worked in.

use crate::SessionInfo;
use std::path::Path;
use unicode_normalization::UnicodeNormalization;

/// A folder that is gone, and its sessions.
#[derive(Debug)]
pub struct Moved<'a> {
    /// The folder, as the headers say.
    pub cwd: &'a str,
    /// Those with content, in the order of the list.
    pub sessions: Vec<&'a SessionInfo>,
    /// Whether this folder has its name; else it stands where that one stood.
    pub same_name: bool,
}

/// Folders of which `here` may be the new place: they are gone, and had its name elsewhere, or another name beside it. A
/// guess, to be offered to a person: those of the same name first, then in the order of the list.
#[must_use]
pub fn moved<'a>(sessions: &'a [SessionInfo], here: &Path) -> Vec<Moved<'a>> {
    let part = |part: Option<&Path>| part.map(|part| part.to_string_lossy().nfc().collect::<String>());
    let name = |path: &Path| part(path.file_name().map(Path::new));
    let (own_name, own_parent) = (name(here), part(here.parent()));
    let mut found: Vec<Moved<'a>> = Vec::new();
    for info in sessions.iter().filter(|info| info.has_content()) {
        if let Some(moved) = found.iter_mut().find(|moved| moved.cwd == info.cwd) {
            moved.sessions.push(info);
            continue;
        }
        let cwd = Path::new(&info.cwd);
        let same_name = name(cwd) == own_name;
        let beside = part(cwd.parent()) == own_parent;
        // A folder that may not be looked at is not gone.
        if cwd.is_absolute() && (same_name || beside) && matches!(cwd.try_exists(), Ok(false)) {
            found.push(Moved { cwd: &info.cwd, sessions: vec![info], same_name });
        }
    }
    found.sort_by_key(|moved| !moved.same_name);
    found
}
