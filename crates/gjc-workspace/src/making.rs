//! How a worktree is made: it is registered empty, filled, and given free. Until then git's own account calls it one in the making,
//! so that a making that was cut short can be told from work that somebody left.

use crate::git::{Git, Refused};
use crate::list::{IN_THE_MAKING, Registered};
use crate::why::WorktreeError;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Filters that had no part in a new worktree.
#[derive(Debug, Default)]
pub(crate) struct Filters {
    /// Those of the repository's own settings.
    pub(crate) own: Vec<String>,
    /// Those of a person's settings that failed.
    pub(crate) failed: Vec<String>,
}

/// Makes a worktree; where it fails, nothing of it stays.
pub(crate) async fn add(git: &Git<'_>, path: &Path, how: &[&str], what: &str) -> Result<Filters, Refused> {
    let start = ["worktree", "add", "--no-checkout", "--lock", "--reason", IN_THE_MAKING];
    let mut args: Vec<&(dyn AsRef<OsStr> + Sync)> = Vec::new();
    args.extend(start.iter().chain(how).map(|arg| arg as &(dyn AsRef<OsStr> + Sync)));
    args.extend([&path as &(dyn AsRef<OsStr> + Sync), &what]);
    git.act(&args).await?;
    let filled = fill(git, path).await;
    if filled.is_err() {
        let _ = remove(git, path).await;
    }
    filled
}

/// Goes on with a making that was cut short; none where nothing was in it, and the place is free again. Nobody else may be at it.
///
/// # Errors
/// [`WorktreeError::CutShort`] where anything is in it that the checkout itself would not put there.
pub(crate) async fn finish(
    git: &Git<'_>,
    common: &Path,
    beside: &Path,
    half: &Registered,
) -> Result<Option<Filters>, WorktreeError> {
    let path = &half.path;
    let cut_short = || WorktreeError::CutShort(path.clone());
    let real = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.into());
    if path.parent().map(real) != Some(real(beside)) {
        return Err(cut_short());
    }
    // Only an empty one goes.
    let _ = fs::remove_dir(path);
    if !path.exists() || (half.head.bytes().all(|byte| byte == b'0') && holds_only_git(path)) {
        return remove(git, path).await.map(|()| None).map_err(|_| cut_short());
    }
    let there = git.at(path);
    let own = there.read(&["rev-parse", "--absolute-git-dir"]).await.map_err(|_| cut_short())?;
    let own = PathBuf::from(OsStr::from_bytes(&own));
    if own.parent().map(real) != Some(real(&common.join("worktrees"))) {
        return Err(cut_short());
    }
    // The last that filling does is to put the index in its place.
    if own.join("index").exists() {
        git.act(&[&"worktree", &"unlock", path]).await?;
        return Ok(Some(Filters::default()));
    }
    let found = there.read(&["ls-files", "--others", "-z"]).await.map_err(|_| cut_short())?;
    let wanted = there.read(&["ls-tree", "-r", "-z", "--name-only", "HEAD"]).await.map_err(|_| cut_short())?;
    let wanted: HashSet<&[u8]> = wanted.split(|byte| *byte == 0).collect();
    if !found.split(|byte| *byte == 0).all(|name| wanted.contains(name)) {
        return Err(cut_short());
    }
    #[expect(clippy::disallowed_methods, reason = "the lock of the git that was ended with the gjc that ran it")]
    let _ = fs::remove_file(own.join("index.lock"));
    Ok(Some(fill(git, path).await?))
}

/// Fills a worktree that is registered, and gives it free. Which filters are the repository's own is asked there: only there do
/// all settings hold that will when its files are written.
async fn fill(git: &Git<'_>, path: &Path) -> Result<Filters, Refused> {
    let mut there = git.at(path);
    let own = there.without_own_filters().await?;
    let (_, failed) = there.read_filtered(&["reset", "--hard", "--quiet", "--no-recurse-submodules"]).await?;
    git.act(&[&"worktree", &"unlock", &path]).await?;
    Ok(Filters { own, failed })
}

/// Takes away a worktree in the making; git wants to hear twice that its lock does not count.
async fn remove(git: &Git<'_>, path: &Path) -> Result<(), Refused> {
    git.act(&[&"worktree", &"remove", &"--force", &"--force", &path]).await
}

fn holds_only_git(path: &Path) -> bool {
    fs::read_dir(path)
        .is_ok_and(|mut entries| entries.all(|entry| entry.is_ok_and(|entry| entry.file_name() == ".git")))
}
