//! A checkout of its own for a session: `<repository>.gjc-worktrees/<slug>`, beside the main checkout.
//!
//! git keeps the account of worktrees, so git is asked before and after. Several programs may do this at once: each step is one
//! that a single one of them can win (a branch is made only where there is none, a folder is taken by `git worktree add`), and
//! whoever loses looks again.

use crate::git::{Git, Refused};
use crate::list::{self, Registered};
use crate::making::{self, Filters};
use crate::slug::slug;
use crate::why::WorktreeError;
use gjc_entry::Env;
use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use unicode_normalization::UnicodeNormalization;

/// How long another git may hold a lock, or make the worktree that is wanted.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks at what another program holds.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// No repository has more worktrees without a branch at one commit.
const MOST_DETACHED: usize = 10_000;

/// A checkout for a session.
#[derive(Debug)]
pub struct Worktree {
    /// Its folder.
    pub path: PathBuf,
    /// The folder in it that answers to the one that was asked from: the same folder of the repository where it is checked out,
    /// else its root.
    pub cwd: PathBuf,
    /// The branch that is checked out; none in a worktree without a name.
    pub branch: Option<String>,
    /// Whether it was made just now.
    pub made: bool,
    /// Whether it holds changes that are in no commit.
    pub dirty: bool,
    /// Whether it has submodules, which are empty in a new worktree.
    pub submodules: bool,
    /// Filters of the repository's own settings, which did not run.
    pub filters: Vec<String>,
    /// Filters of a person's settings that failed, and were left out.
    pub failed_filters: Vec<String>,
    /// A worktree without a name belongs to one program at a time: it holds this lock for as long as it works there.
    _held: Option<File>,
}

/// Whether a value can be a name at all: it must not be a path.
///
/// # Errors
/// [`WorktreeError::Path`], or [`WorktreeError::Name`] where it is empty.
pub fn check_name(name: &str) -> Result<(), WorktreeError> {
    let is_path = name.starts_with(['/', '.', '~']) || name.ends_with('/') || name.contains('\\');
    match (name.trim().is_empty(), is_path) {
        (true, _) => Err(WorktreeError::Name(name.into())),
        (false, true) => Err(WorktreeError::Path(name.into())),
        (false, false) => Ok(()),
    }
}

/// The main checkout of a folder's repository; it is also what can be refused before anything is made.
///
/// # Errors
/// [`WorktreeError`].
pub async fn main_checkout(env: &Env, here: &Path) -> Result<PathBuf, WorktreeError> {
    Ok(Place::of(&Git::new(env, here)).await?.main)
}

/// The worktree of this name for a session that was started in `here`: the one that is there, or a new one, on the branch of that
/// name, which begins at the commit of `here` where there is none. Without a name a checkout of that commit without a branch,
/// which no other program works in.
///
/// Nothing of the repository changes but the branch and the registration. `env.vars` is what git sees.
///
/// # Errors
/// [`WorktreeError`]; then nothing was made.
pub async fn worktree(env: &Env, here: &Path, name: Option<&str>) -> Result<Worktree, WorktreeError> {
    let git = Git::new(env, here);
    let place = Place::of(&git).await?;
    let (path, branch, made, held) = match name {
        Some(name) => {
            let branch = branch_name(&git, name).await?;
            let path = place.beside().join(slug(&branch));
            let made = on_branch(env, &git, &place, &path, &branch).await?;
            (path, Some(branch), made, None)
        }
        None => {
            let (path, made, held) = detached(env, &git, &place).await?;
            (path, None, made, Some(held))
        }
    };
    let path = fs::canonicalize(&path).map_err(|why| WorktreeError::Git(format!("{}: {why}", path.display())))?;
    let dirty = made.is_none() && is_dirty(&git, &path).await?;
    let is_made = made.is_some();
    let Filters { own, failed } = made.unwrap_or_default();
    Ok(Worktree {
        cwd: same_folder(&path, OsStr::from_bytes(&place.prefix)),
        dirty,
        submodules: path.join(".gitmodules").exists(),
        filters: own,
        failed_filters: failed,
        path,
        branch,
        made: is_made,
        _held: held,
    })
}

/// The folder of a worktree that answers to the one that was asked from, else its root. On another branch a link may stand in the
/// way to it, which must not lead a session out of its worktree.
fn same_folder(root: &Path, prefix: &OsStr) -> PathBuf {
    let same = root.join(prefix);
    let within = fs::canonicalize(&same).is_ok_and(|real| real.starts_with(root) && real.is_dir());
    if within { same.components().collect() } else { root.into() }
}

/// Where a session was started.
struct Place {
    /// The main checkout, beside which worktrees stand.
    main: PathBuf,
    /// What all worktrees of the repository have in common: its `.git`.
    common: PathBuf,
    /// From the root of the checkout to the folder.
    prefix: Vec<u8>,
    /// The commit that is checked out.
    head: String,
}

impl Place {
    async fn of(git: &Git<'_>) -> Result<Self, WorktreeError> {
        let here = || git.cwd.clone();
        let git_dir = match git.read(&["rev-parse", "--absolute-git-dir"]).await {
            Err(Refused::Said(words)) if words.contains("not a git repository") => {
                return Err(WorktreeError::NoRepository(here()));
            }
            answer => path(answer?),
        };
        if git.read(&["rev-parse", "--is-inside-work-tree"]).await? != b"true" {
            return Err(WorktreeError::NoCheckout(here()));
        }
        let top = path(git.read(&["rev-parse", "--show-toplevel"]).await?);
        if !git.read(&["rev-parse", "--show-superproject-working-tree"]).await?.is_empty() {
            return Err(WorktreeError::Submodule(top));
        }
        let common = path(git.read(&["rev-parse", "--path-format=absolute", "--git-common-dir"]).await?);
        let main = if git_dir == common {
            top.clone()
        } else {
            registered(git).await?.into_iter().next().map_or_else(|| top.clone(), |main| main.path)
        };
        if main.parent().is_none() {
            return Err(WorktreeError::NoCheckout(main));
        }
        let prefix = git.read(&["rev-parse", "--show-prefix"]).await?;
        if !git.holds(&["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).await? {
            return Err(WorktreeError::NoCommit(top));
        }
        let head = text(git.read(&["rev-parse", "--verify", "HEAD^{commit}"]).await?);
        Ok(Self { main, common, prefix, head })
    }

    /// The folder that holds this repository's worktrees.
    fn beside(&self) -> PathBuf {
        let mut name = self.main.file_name().unwrap_or_default().to_owned();
        name.push(".gjc-worktrees");
        self.main.with_file_name(name)
    }
}

impl Place {
    /// Waits until no other gjc makes a worktree of this repository, and keeps others waiting. Two gits that make one of the same
    /// folder at once both find it free, and both register it. Where nothing can be locked, git's own care has to do.
    async fn turn(&self, env: &Env) -> Option<File> {
        let turn = File::open(&self.common).ok()?;
        loop {
            match turn.try_lock() {
                Ok(()) => return Some(turn),
                Err(TryLockError::Error(_)) => return None,
                Err(TryLockError::WouldBlock) => env.clock.sleep(LOOK_AGAIN).await,
            }
        }
    }
}

fn path(bytes: Vec<u8>) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(&bytes))
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8_lossy(&bytes).into_owned()
}

async fn registered(git: &Git<'_>) -> Result<Vec<Registered>, WorktreeError> {
    Ok(list::parse(&git.read(&["worktree", "list", "--porcelain", "-z"]).await?))
}

/// The branch that a name means: it is written in its composed form, unless one is there that is written as it stands.
async fn branch_name(git: &Git<'_>, name: &str) -> Result<String, WorktreeError> {
    check_name(name)?;
    let composed: String = name.nfc().collect();
    let name = if composed != name && has_branch(git, name).await? { name.to_owned() } else { composed };
    // `@{-1}` is a name that means another one; nobody means that here.
    match git.read(&["check-ref-format", "--branch", &name]).await {
        Ok(said) if said == name.as_bytes() => Ok(name),
        Ok(_) | Err(Refused::Said(_)) => Err(WorktreeError::Name(name)),
        Err(refused) => Err(refused.into()),
    }
}

async fn has_branch(git: &Git<'_>, name: &str) -> Result<bool, Refused> {
    git.holds(&["show-ref", "--verify", "--quiet", &format!("refs/heads/{name}")]).await
}

async fn is_dirty(git: &Git<'_>, path: &Path) -> Result<bool, Refused> {
    let mut there = git.at(path);
    there.without_own_filters().await?;
    let (changes, _) = there.read_filtered(&["status", "--porcelain", "--ignore-submodules=all"]).await?;
    Ok(!changes.is_empty())
}

/// What stands in the way of a new worktree, or was made by somebody else meanwhile.
enum Found {
    /// The worktree is there.
    There,
    /// The place is free.
    Free,
    /// Something is at work there; look again.
    AtWork,
    /// It is being made, or its making was cut short.
    Half(Registered),
}

/// Makes the worktree of a branch unless it is there; answers how it was made.
async fn on_branch(
    env: &Env,
    git: &Git<'_>,
    place: &Place,
    path: &Path,
    branch: &str,
) -> Result<Option<Filters>, WorktreeError> {
    let wait = Wait::new(env, path);
    loop {
        let turn = place.turn(env).await;
        match look(git, path, branch).await? {
            Found::There => return Ok(None),
            // It is our turn, so no gjc is at work on it.
            Found::Half(half) if turn.is_some() => {
                match making::finish(git, &place.common, &place.beside(), &half).await? {
                    Some(made) if half.branch.as_deref() == Some(branch) => return Ok(Some(made)),
                    _ => continue,
                }
            }
            Found::Half(_) | Found::AtWork => {}
            Found::Free => match add(git, place, path, branch).await {
                Ok(Some(made)) => return Ok(Some(made)),
                // Somebody else was faster with the branch, or holds a lock.
                Ok(None) => {}
                Err(refused) if refused.is_locked() => {}
                Err(refused) => match look(git, path, branch).await {
                    Ok(Found::There | Found::AtWork | Found::Half(_)) => continue,
                    Ok(Found::Free) | Err(_) => return Err(refused.into()),
                },
            },
        }
        drop(turn);
        wait.a_little().await?;
    }
}

async fn look(git: &Git<'_>, path: &Path, branch: &str) -> Result<Found, WorktreeError> {
    let all = registered(git).await?;
    if let Some(there) = all.iter().find(|one| one.is_at(path)) {
        return match &there.branch {
            _ if there.is_being_made() => Ok(Found::Half(there.clone())),
            _ if !path.exists() => forget(git, there).await,
            Some(found) if found == branch => Ok(Found::There),
            other => Err(WorktreeError::OtherBranch {
                path: path.into(),
                branch: branch.into(),
                found: other.clone().unwrap_or_else(|| there.head.chars().take(12).collect()),
            }),
        };
    }
    if let Some(other) = all.iter().find(|one| one.branch.as_deref() == Some(branch)) {
        return Err(WorktreeError::InUse { branch: branch.into(), at: other.path.clone() });
    }
    if is_free(path) {
        return Ok(Found::Free);
    }
    // git registers a worktree before it fills the folder: somebody may have begun since the first look.
    match registered(git).await?.iter().any(|one| one.is_at(path)) {
        true => Ok(Found::AtWork),
        false => Err(WorktreeError::Taken(path.into())),
    }
}

/// Lets git forget the worktree of a folder that is gone: this one and no other.
async fn forget(git: &Git<'_>, gone: &Registered) -> Result<Found, WorktreeError> {
    if gone.locked.is_some() {
        return Err(WorktreeError::Away(gone.path.clone()));
    }
    match git.act(&[&"worktree", &"remove", &gone.path]).await {
        Ok(()) => Ok(Found::Free),
        // Another program forgot it first.
        Err(Refused::Said(words)) if words.contains("is not a working tree") => Ok(Found::Free),
        Err(refused) if refused.is_locked() => Ok(Found::AtWork),
        Err(refused) => Err(refused.into()),
    }
}

/// Whether nothing stands at a path, or an empty folder, which git takes.
fn is_free(path: &Path) -> bool {
    match fs::symlink_metadata(path) {
        Err(_) => true,
        Ok(found) => found.is_dir() && fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none()),
    }
}

/// One attempt; none where the branch was made by somebody else in between. What it made goes again when it fails.
async fn add(git: &Git<'_>, place: &Place, path: &Path, branch: &str) -> Result<Option<Filters>, Refused> {
    let full = format!("refs/heads/{branch}");
    let made = !has_branch(git, branch).await?;
    if made {
        let message = "branch: Created for a worktree of gjc";
        // The empty old value: only where there is none.
        if let Err(refused) = git.act(&[&"update-ref", &"-m", &message, &full, &place.head, &""]).await {
            return if has_branch(git, branch).await? { Ok(None) } else { Err(refused) };
        }
    }
    let added = making::add(git, path, &["--no-guess-remote"], branch).await;
    if let (Err(_), true) = (&added, made) {
        let used = registered(git).await.is_ok_and(|all| all.iter().any(|one| one.branch.as_deref() == Some(branch)));
        if !used {
            let _ = git.act(&[&"update-ref", &"-d", &full, &place.head]).await;
        }
    }
    added.map(Some)
}

/// A checkout of the commit without a branch, which nobody works in: a clean one that was left, or a new one.
async fn detached(env: &Env, git: &Git<'_>, place: &Place) -> Result<(PathBuf, Option<Filters>, File), WorktreeError> {
    let beside = place.beside();
    let unusable = |why: std::io::Error| WorktreeError::Git(format!("{}: {why}", beside.display()));
    // Between making one and holding it, nobody else may find it free.
    let turn = place.turn(env).await;
    let wait = Wait::new(env, &beside);
    let stem = format!("head-{}", place.head.chars().take(12).collect::<String>());
    for n in 1..=MOST_DETACHED {
        let path = beside.join(if n == 1 { stem.clone() } else { format!("{stem}-{n}") });
        let all = registered(git).await?;
        let there = all.iter().find(|one| one.is_at(&path));
        let mut finished = None;
        let free = match there {
            Some(half) if half.is_being_made() && half.branch.is_none() && turn.is_some() => {
                // What cannot be finished stands in nobody's way here.
                let Ok(made) = making::finish(git, &place.common, &place.beside(), half).await else { continue };
                if made.is_some() && half.head != place.head {
                    continue;
                }
                finished = made;
                finished.is_none()
            }
            Some(there) if path.exists() => {
                if there.branch.is_some() || there.head != place.head || there.locked.is_some() {
                    continue;
                }
                false
            }
            Some(gone) if gone.locked.is_some() => continue,
            Some(gone) => {
                forget(git, gone).await?;
                true
            }
            None if is_free(&path) => true,
            None => continue,
        };
        let made = if free { Some(add_detached(git, &path, &place.head, &wait).await?) } else { finished };
        let there = git.at(&path);
        let own = self::path(there.read(&["rev-parse", "--absolute-git-dir"]).await?);
        let held = File::open(&own).map_err(unusable)?;
        if held.try_lock().is_ok() && (made.is_some() || !is_dirty(git, &path).await?) {
            return Ok((path, made, held));
        }
    }
    Err(WorktreeError::Taken(beside.join(stem)))
}

async fn add_detached(git: &Git<'_>, path: &Path, commit: &str, wait: &Wait<'_>) -> Result<Filters, WorktreeError> {
    loop {
        match making::add(git, path, &["--detach"], commit).await {
            Err(refused) if refused.is_locked() => wait.a_little().await?,
            added => return Ok(added?),
        }
    }
}

/// Waits for another program, which no event tells of, and not for ever.
struct Wait<'e> {
    env: &'e Env,
    path: &'e Path,
    began: std::time::Instant,
}

impl<'e> Wait<'e> {
    fn new(env: &'e Env, path: &'e Path) -> Self {
        Self { env, path, began: env.clock.mono() }
    }

    async fn a_little(&self) -> Result<(), WorktreeError> {
        if self.env.clock.mono().saturating_duration_since(self.began) > PATIENCE {
            return Err(WorktreeError::Busy(self.path.into()));
        }
        self.env.clock.sleep(LOOK_AGAIN).await;
        Ok(())
    }
}
