//! Replaces a file in one step: who reads it sees the old content or the new, never a part.

use gjc_flow::Redeemed;
use rustix::fs::{self as sys, AtFlags, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::{File, Metadata, Permissions};
use std::io::{self, Write};
use std::os::fd::BorrowedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::sync::atomic::{AtomicU64, Ordering};

/// Writes `bytes` beside the file `name` of an open folder and renames. A link of that name is replaced, not followed.
///
/// Of an `existing` file owner (as far as we may) and mode stay; a new one gets what the umask leaves. `go` is asked right
/// before the rename; when it says no, nothing has changed. Nothing is synced: what an agent does to a workspace can be
/// done again, its record is the session's. A second hard link keeps the old content; extended attributes are lost.
pub(crate) fn replace(
    folder: BorrowedFd<'_>,
    name: &OsStr,
    existing: Option<&Metadata>,
    bytes: &[u8],
    by: Redeemed,
    go: impl FnOnce() -> io::Result<bool>,
) -> io::Result<bool> {
    let _used_up = by;
    let (temp, mut file) = Temp::new(folder, if existing.is_some() { 0o600 } else { 0o666 })?;
    gjc_fp::fp!("tools.replace.opened");
    file.write_all(bytes)?;
    if let Some(existing) = existing {
        let new = file.metadata()?;
        if (new.uid(), new.gid()) != (existing.uid(), existing.gid()) {
            // Only root may give files away; for all others the file becomes theirs, as with every editor that renames.
            let _ = fchown(&file, Some(existing.uid()), Some(existing.gid()));
        }
        // After the owner: a change of owner clears the bits for set-user-id.
        file.set_permissions(Permissions::from_mode(existing.mode() & 0o7777))?;
    }
    drop(file);
    gjc_fp::fp!("tools.replace.written");
    if !go()? {
        return Ok(false);
    }
    temp.become_(name)?;
    gjc_fp::fp!("tools.replace.renamed");
    Ok(true)
}

/// A file of a folder that is gone unless it is renamed.
struct Temp<'f> {
    folder: BorrowedFd<'f>,
    name: Option<String>,
}

impl<'f> Temp<'f> {
    fn new(folder: BorrowedFd<'f>, mode: u32) -> io::Result<(Self, File)> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        loop {
            // Not made from the file's name: 85 letters of 한글 fill the 255 bytes that a name may have.
            let name = format!(".gjc-{}-{}.tmp", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
            match sys::openat(folder, &name, flags, Mode::from_raw_mode(mode)) {
                Ok(file) => return Ok((Self { folder, name: Some(name) }, file.into())),
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// A person's file: it is replaced whole or not at all, and synced by nobody.
    fn become_(mut self, name: &OsStr) -> io::Result<()> {
        if let Some(temp) = &self.name {
            sys::renameat(self.folder, temp, self.folder, name)?;
        }
        self.name = None;
        Ok(())
    }
}

impl Drop for Temp<'_> {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            // Our own temporary file, which nobody has seen.
            let _ = sys::unlinkat(self.folder, name, AtFlags::empty());
        }
    }
}
