//! The sessions of subagents: files beside the session's own.

use gjc_log::fs::Fs;
use std::path::{Path, PathBuf};

/// A subagent's session. A page names it and does not hold it: a session with ten of them stays as small as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Child {
    /// Its file.
    pub path: PathBuf,
    /// Bytes of the file.
    pub bytes: u64,
}

/// The sessions in the folder of a session's artefacts, by name. What cannot be listed has none.
#[must_use]
pub fn children<F: Fs>(fs: &F, session: &Path) -> Vec<Child> {
    let names = fs.list(&session.with_extension("")).unwrap_or_default();
    let sessions = names.into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    let child =
        |path: PathBuf| fs.stat(&path).ok().filter(|stat| stat.is_file).map(|stat| Child { path, bytes: stat.len });
    sessions.filter_map(child).collect()
}
