//! What `git worktree list --porcelain -z` says.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Why git locks a worktree for as long as it makes it.
pub(crate) const IN_THE_MAKING: &str = "initializing";

/// A checkout of a repository, as git has it registered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Registered {
    /// Its folder; it may be gone.
    pub(crate) path: PathBuf,
    /// The commit that it stands at.
    pub(crate) head: String,
    /// The branch that is checked out, without `refs/heads/`; none where it is detached.
    pub(crate) branch: Option<String>,
    /// Why it is locked; some without a reason.
    pub(crate) locked: Option<String>,
}

impl Registered {
    /// Whether it stands at this path.
    pub(crate) fn is_at(&self, path: &Path) -> bool {
        let real = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.into());
        self.path == path || real(&self.path) == real(path)
    }

    /// Whether another program is just making it.
    pub(crate) fn is_being_made(&self) -> bool {
        self.locked.as_deref() == Some(IN_THE_MAKING)
    }
}

/// All checkouts, the main one first.
pub(crate) fn parse(bytes: &[u8]) -> Vec<Registered> {
    let mut found: Vec<Registered> = Vec::new();
    for line in bytes.split(|byte| *byte == 0) {
        let text = String::from_utf8_lossy(line);
        let (word, rest) = text.split_once(' ').unwrap_or((&text, ""));
        if word == "worktree" && !rest.is_empty() {
            let path = PathBuf::from(OsStr::from_bytes(line.get(b"worktree ".len()..).unwrap_or_default()));
            found.push(Registered { path, ..Registered::default() });
            continue;
        }
        let Some(last) = found.last_mut() else { continue };
        match word {
            "HEAD" => last.head = rest.into(),
            "branch" => last.branch = Some(rest.strip_prefix("refs/heads/").unwrap_or(rest).into()),
            "locked" => last.locked = Some(rest.into()),
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_checkout_is_read_whatever_its_path_holds() {
        let list = b"worktree /a/\xed\x95\x9c b\nc\0HEAD 12\0branch refs/heads/\xea\xb8\xb0/x y\0\0worktree /d\0HEAD 34\0detached\0locked initializing\0prunable gone\0\0worktree /e\0bare\0\0";
        let found = parse(list);
        assert_eq!(found.len(), 3);
        assert_eq!((found[0].path.as_path(), found[0].branch.as_deref()), (Path::new("/a/한 b\nc"), Some("기/x y")));
        assert!(found[1].branch.is_none() && found[1].is_being_made() && found[1].head == "34");
        assert_eq!(found[2].locked, None);
        assert_eq!(parse(b""), []);
        assert_eq!(parse(b"worktree"), []);
    }
}
