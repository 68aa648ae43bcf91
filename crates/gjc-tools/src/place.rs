//! A file that may be written, with its folder held open: what was checked is what is written, whatever becomes of its path
//! meanwhile. gjc's own folder is never such a place, under no name: what stands there decides what a model may do.

use crate::artifacts::SCHEME;
use crate::mounts::Mounts;
use crate::path::{find, follow, real, refuse, special};
use crate::{ToolCtx, atomic};
use gjc_flow::Redeemed;
use gjc_protocol::Refusal;
use rustix::fs::{self as sys, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

/// To look at a folder and to begin there; needs no right to read it.
const LOOK: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// A regular file, or nothing yet, outside of gjc's own folder.
pub(crate) struct Place {
    /// Its path, links at the end followed.
    pub(crate) path: PathBuf,
    /// What is there.
    pub(crate) existing: Option<Metadata>,
    /// The folder, or the deepest one above it that exists.
    folder: OwnedFd,
    /// The folders that are to be made in it.
    missing: Vec<OsString>,
    name: OsString,
    own: Own,
}

impl Place {
    /// Where a path of a model leads at this moment. Refuses folders and devices, what is write-protected, and gjc's own
    /// folder.
    pub(crate) fn find(ctx: &ToolCtx, given: &str) -> Result<Self, Refusal> {
        let failed = |error: io::Error| refuse(&ctx.cwd, given, "written", &error);
        if given.starts_with(SCHEME) {
            let refusal = Refusal::new("read_only", format!("{given} is the output of a command, and stays as it is"));
            return Err(refusal.hint("write its text to a file of the workspace"));
        }
        let path = follow(&find(&ctx.cwd, given)).map_err(failed)?;
        let own = Own::of(&ctx.own);
        // A way up out of a folder that is not there yet leads who knows where, once that folder is made.
        let leads_to = real(&path).ok_or_else(|| unclear(given))?;
        if leads_to.starts_with(&own.path) {
            return Err(own_folder(given));
        }
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(Refusal::new("is_folder", format!("{given} is a folder")).hint("give the path of a file in it"));
        };
        let (folder, missing) = deepest(parent).map_err(failed)?;
        let name = name.to_os_string();
        own.check(folder.as_fd(), missing.iter().chain([&name]), given)?;
        let existing = if missing.is_empty() { existing(folder.as_fd(), &name, given, failed)? } else { None };
        Ok(Self { path, existing, folder, missing, name, own })
    }

    /// The file, open for reading.
    pub(crate) fn open(&self) -> io::Result<File> {
        // Not a pipe that has taken the file's place: opening one would wait.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Ok(sys::openat(&self.folder, &self.name, flags, Mode::empty())?.into())
    }

    /// All of the file as it is now.
    pub(crate) fn read(&self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.open()?.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Makes the missing folders and replaces the file as [`atomic::replace`] does.
    pub(crate) fn replace(
        self,
        ctx: &ToolCtx,
        given: &str,
        bytes: &[u8],
        by: Redeemed,
        go: impl FnOnce(&Self) -> io::Result<bool>,
    ) -> Result<bool, Refusal> {
        let failed = |error: io::Error| refuse(&ctx.cwd, given, "written", &error);
        let mut made: Option<OwnedFd> = None;
        for (at, name) in self.missing.iter().enumerate() {
            let above = made.as_ref().unwrap_or(&self.folder).as_fd();
            let below = self.missing[at..].iter().chain([&self.name]);
            self.own.check(above, below, given)?;
            let inner = make_folder(above, name).map_err(failed)?;
            made = Some(inner);
        }
        let folder = made.as_ref().unwrap_or(&self.folder).as_fd();
        // Last before the effect. From here on nothing is looked up by a path any more.
        self.own.check(folder, [&self.name], given)?;
        let go = || go(&self);
        atomic::replace(folder, &self.name, self.existing.as_ref(), bytes, by, go).map_err(failed)
    }
}

/// Makes a folder, or enters one that somebody else has just made; never through a link.
fn make_folder(above: BorrowedFd<'_>, name: &OsStr) -> io::Result<OwnedFd> {
    match sys::mkdirat(above, name, Mode::from_raw_mode(0o777)) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(sys::openat(above, name, LOOK | OFlags::NOFOLLOW, Mode::empty())?)
}

/// The deepest folder of a path that exists, open, and the names below it.
fn deepest(path: &Path) -> io::Result<(OwnedFd, Vec<OsString>)> {
    let mut missing = Vec::new();
    for folder in path.ancestors() {
        let folder = if folder.as_os_str().is_empty() { Path::new("/") } else { folder };
        match sys::open(folder, LOOK, Mode::empty()) {
            Ok(open) => {
                missing.reverse();
                return Ok((open, missing));
            }
            Err(Errno::NOENT) => match folder.components().next_back() {
                Some(Component::Normal(name)) => missing.push(name.to_os_string()),
                _ => return Err(ErrorKind::NotFound.into()),
            },
            Err(error) => return Err(error.into()),
        }
    }
    Err(ErrorKind::NotFound.into())
}

/// What stands at a name of an open folder: a regular file that may be written, or nothing.
fn existing(
    folder: BorrowedFd<'_>,
    name: &OsStr,
    given: &str,
    failed: impl Fn(io::Error) -> Refusal,
) -> Result<Option<Metadata>, Refusal> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let found = match sys::openat(folder, name, flags, Mode::empty()) {
        Ok(open) => File::from(open).metadata().map_err(&failed)?,
        Err(Errno::NOENT) => return Ok(None),
        Err(error) => return Err(failed(error.into())),
    };
    if found.is_dir() {
        return Err(Refusal::new("is_folder", format!("{given} is a folder")).hint("give the path of a file in it"));
    }
    if found.is_symlink() {
        return Err(Refusal::new(
            "changed_meanwhile",
            format!("nothing was done: {given} has become a link meanwhile"),
        )
        .hint("look at it again, then try again"));
    }
    if !found.is_file() {
        return Err(special(given));
    }
    // The rename would get past the protection; who protected the file did not mean that.
    if found.mode() & 0o222 == 0 {
        return Err(Refusal::new("read_only", format!("{given} is write-protected"))
            .hint("ask whether it may be changed; `chmod u+w` lifts the protection"));
    }
    Ok(Some(found))
}

fn unclear(given: &str) -> Refusal {
    Refusal::new("io", format!("it cannot be told where {given} leads")).hint("give the path without \"..\"")
}

fn own_folder(given: &str) -> Refusal {
    Refusal::new("own_folder", format!("{given} is in the folder that gjc keeps for itself"))
        .hint("tell the person what should stand there; they can change it")
}

/// gjc's own folder, whether it exists yet or not.
struct Own {
    path: PathBuf,
}

impl Own {
    fn of(path: &Path) -> Self {
        Self { path: real(path).unwrap_or_else(|| path.into()) }
    }

    /// Refuses an open folder if it, or what `below` names in it, is the own folder or in it.
    fn check<'n>(
        &self,
        folder: BorrowedFd<'_>,
        below: impl IntoIterator<Item = &'n OsString>,
        given: &str,
    ) -> Result<(), Refusal> {
        let Ok(ancestors) = ancestors(folder) else { return Err(unclear(given)) };
        if is_among(identity_of(&self.path), &ancestors) {
            return Err(own_folder(given));
        }
        // By name, for what does not exist yet, and for a part of the own folder that is mounted by itself elsewhere.
        let Ok(at) = fs::read_link(format!("/proc/self/fd/{}", folder.as_raw_fd())) else { return Ok(()) };
        let place = below.into_iter().fold(at.clone(), |path, name| path.join(name));
        let inside = place.starts_with(&self.path) || Mounts::now().holds(&self.path, &at);
        if inside { Err(own_folder(given)) } else { Ok(()) }
    }
}

/// What a folder is, whatever it is called: device and inode.
type Identity = (u64, u64);

fn identity_of(path: &Path) -> Option<Identity> {
    fs::metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

/// A folder and all above it, up to the root.
fn ancestors(folder: BorrowedFd<'_>) -> io::Result<Vec<Identity>> {
    let identity = |folder: BorrowedFd<'_>| -> io::Result<Identity> {
        let found = sys::fstat(folder)?;
        Ok((found.st_dev, found.st_ino))
    };
    let mut found = vec![identity(folder)?];
    let mut above = sys::openat(folder, "..", LOOK, Mode::empty())?;
    loop {
        let next = identity(above.as_fd())?;
        // The root's parent is the root.
        if found.last() == Some(&next) {
            return Ok(found);
        }
        found.push(next);
        above = sys::openat(&above, "..", LOOK, Mode::empty())?;
    }
}

fn is_among(own: Option<Identity>, ancestors: &[Identity]) -> bool {
    own.is_some_and(|own| ancestors.contains(&own))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn open(path: &Path) -> OwnedFd {
        sys::open(path, LOOK, Mode::empty()).unwrap()
    }

    #[test]
    fn a_folder_is_known_by_what_it_is_and_not_by_its_name() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let (own, deep) = (root.join("own"), root.join("own/깊은/곳"));
        fs::create_dir_all(&deep).unwrap();
        fs::create_dir(root.join("owner")).unwrap();
        let held = open(&deep);
        let (of_deep, of_other) =
            (ancestors(held.as_fd()).unwrap(), ancestors(open(&root.join("owner")).as_fd()).unwrap());
        assert_eq!(of_deep.len(), root.components().count() + 3);
        assert!(is_among(identity_of(&own), &of_deep) && !is_among(identity_of(&own), &of_other));
        assert!(!is_among(identity_of(&root.join("없다")), &of_deep), "what does not exist is nowhere");
        // By another name it is what it was.
        fs::rename(&own, root.join("new name")).unwrap();
        assert!(is_among(identity_of(&root.join("new name")), &ancestors(held.as_fd()).unwrap()));
    }

    #[test]
    fn an_own_folder_that_is_not_there_yet_is_guarded_by_its_name() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let own = Own::of(&root.join("아직/agent"));
        let names = |names: &[&str]| names.iter().map(OsString::from).collect::<Vec<_>>();
        let check = |below: &[&str]| own.check(open(&root).as_fd(), &names(below), "x").is_err();
        assert!(check(&["아직", "agent"]) && check(&["아직", "agent", "config.yml"]));
        assert!(!check(&["아직", "agents"]) && !check(&["아직"]));
    }

    #[test]
    fn a_folder_is_made_and_never_through_a_link() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("target")).unwrap();
        std::os::unix::fs::symlink("target", dir.path().join("link")).unwrap();
        let held = open(dir.path());
        assert!(make_folder(held.as_fd(), OsStr::new("link")).is_err());
        make_folder(held.as_fd(), OsStr::new("새 폴더")).unwrap();
        make_folder(held.as_fd(), OsStr::new("새 폴더")).unwrap();
        assert!(dir.path().join("새 폴더").is_dir());
    }
}
