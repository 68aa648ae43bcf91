//! Why there is no worktree, for a person, with the way out.

use crate::git::Refused;
use std::path::{Path, PathBuf};

/// Why there is no worktree. Nothing was made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorktreeError {
    /// The name is a path.
    #[error("--worktree takes a branch-like name, not a path: \"{0}\"")]
    Path(String),
    /// git takes no branch of this name.
    #[error("\"{0}\" cannot be the name of a branch")]
    Name(String),
    /// There is no repository.
    #[error("{} is in no git repository, so there is nothing to make a worktree of", .0.display())]
    NoRepository(PathBuf),
    /// The repository has no checkout, or this is a folder of git's own.
    #[error("{} is no checkout of a repository, so a worktree has nothing to stand beside", .0.display())]
    NoCheckout(PathBuf),
    /// A worktree beside a submodule would lie in the repository around it.
    #[error("{} is a submodule; a worktree beside it would lie in the repository around it", .0.display())]
    Submodule(PathBuf),
    /// There is no commit to begin at.
    #[error("the repository {} has no commit yet, so a worktree has nothing to begin with", .0.display())]
    NoCommit(PathBuf),
    /// The branch is checked out elsewhere.
    #[error("the branch {branch} is checked out in {}", at.display())]
    InUse {
        /// Its name.
        branch: String,
        /// Where.
        at: PathBuf,
    },
    /// The branch's worktree is there, and another branch is checked out in it.
    #[error("in the worktree {} of {branch} something else is checked out: {found}", path.display())]
    OtherBranch {
        /// Its folder.
        path: PathBuf,
        /// The branch that was asked for.
        branch: String,
        /// A branch or a commit.
        found: String,
    },
    /// Something else has the place.
    #[error("{} is there already and is no worktree of this repository", .0.display())]
    Taken(PathBuf),
    /// The worktree is locked, and its folder is not there.
    #[error("the worktree {} is locked and not there; it may be on a disk that is not mounted", .0.display())]
    Away(PathBuf),
    /// Another program does not come to an end.
    #[error("another program has been making the worktree {} for a minute", .0.display())]
    Busy(PathBuf),
    /// Its making was cut short, and what is there may be somebody's.
    #[error("the making of the worktree {} was cut short, and gjc cannot tell what is in it for its own", .0.display())]
    CutShort(PathBuf),
    /// git is not there, or cannot be started.
    #[error("{0}")]
    NotStarted(String),
    /// git refused.
    #[error("git refused: {0}")]
    Git(String),
}

impl WorktreeError {
    /// The way out.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::Path(path) => {
                format!(
                    "a folder that is there already is worked in with: gjc --cwd {}; a name looks like this: my-task",
                    typed(Path::new(path))
                )
            }
            Self::Name(_) => "take letters, digits, - and /, as in my-task or 기능/로그인".into(),
            Self::NoRepository(_) => {
                "git init and a first commit make one; without --worktree gjc works in any folder".into()
            }
            Self::NoCheckout(_) => "run it in a checkout, or without --worktree".into(),
            Self::Submodule(_) => "run it in the repository around it, or without --worktree".into(),
            Self::NoCommit(_) => "make a first commit, or leave --worktree out".into(),
            Self::InUse { at, .. } => format!(
                "work there: gjc --cwd {}; or take another name (git worktree prune forgets folders that are gone)",
                typed(at)
            ),
            Self::OtherBranch { path, branch, .. } => {
                format!("git -C {} switch {branch}, or take another name", typed(path))
            }
            Self::Taken(_) => "move it away, or take another name".into(),
            Self::Away(path) => format!("mount it, or let git forget it: git worktree unlock {}", typed(path)),
            Self::Busy(_) => "if none is at work any more: git worktree unlock, then git worktree remove".into(),
            Self::CutShort(path) => format!(
                "git worktree unlock {}; then, if nothing in it is wanted: git worktree remove --force {}",
                typed(path),
                typed(path)
            ),
            Self::NotStarted(_) => "--worktree needs git 2.39 or later".into(),
            Self::Git(_) => "nothing was made; git worktree list shows what there is".into(),
        }
    }
}

/// A path as a shell takes it for one word.
fn typed(path: &Path) -> String {
    let path = path.to_string_lossy();
    let bare = |c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '-' | '_' | '+' | ':' | '@' | ',');
    if path.chars().all(bare) { path.into_owned() } else { format!("'{}'", path.replace('\'', "'\\''")) }
}

impl From<Refused> for WorktreeError {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::NotStarted(why) => Self::NotStarted(why.to_string().lines().next().unwrap_or_default().to_owned()),
            Refused::Said(words) => Self::Git(words),
        }
    }
}
