//! Replaces a file in one step: who reads it sees the old content or the new, never a part.

use gjc_flow::Redeemed;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Writes `bytes` beside `path` and renames. `path` is a file, no link ([`crate::path::follow`]).
///
/// Of an `existing` file owner (as far as we may) and mode stay; a new one gets what the umask leaves. `go` is asked right
/// before the rename; when it says no, nothing has changed. Nothing is synced: what an agent does to a workspace can be
/// done again, its record is the session's. A second hard link keeps the old content; extended attributes are lost.
pub(crate) fn replace(
    path: &Path,
    existing: Option<&Metadata>,
    bytes: &[u8],
    by: Redeemed,
    go: impl FnOnce() -> io::Result<bool>,
) -> io::Result<bool> {
    let _used_up = by;
    let dir = path.parent().unwrap_or(Path::new("/"));
    let (temp, mut file) = Temp::new(dir, if existing.is_some() { 0o600 } else { 0o666 })?;
    gjc_fp::fp!("tools.replace.opened");
    file.write_all(bytes)?;
    if let Some(existing) = existing {
        let new = file.metadata()?;
        if (new.uid(), new.gid()) != (existing.uid(), existing.gid()) {
            // Only root may give files away; for all others the file becomes theirs, as with every editor that renames.
            let _ = fchown(&file, Some(existing.uid()), Some(existing.gid()));
        }
        // After the owner: a change of owner clears the bits for set-user-id.
        file.set_permissions(fs::Permissions::from_mode(existing.mode() & 0o7777))?;
    }
    drop(file);
    gjc_fp::fp!("tools.replace.written");
    if !go()? {
        return Ok(false);
    }
    temp.become_(path)?;
    gjc_fp::fp!("tools.replace.renamed");
    Ok(true)
}

/// A file that is gone unless it is renamed.
struct Temp(Option<PathBuf>);

impl Temp {
    fn new(dir: &Path, mode: u32) -> io::Result<(Self, File)> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        loop {
            // Not made from the file's name: 85 letters of 한글 fill the 255 bytes that a name may have.
            let name = format!(".gjc-{}-{}.tmp", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
            let path = dir.join(name);
            match OpenOptions::new().write(true).create_new(true).mode(mode).open(&path) {
                Ok(file) => return Ok((Self(Some(path)), file)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "a person's file: it is replaced whole or not at all, and synced by nobody"
    )]
    fn become_(mut self, path: &Path) -> io::Result<()> {
        if let Some(temp) = &self.0 {
            fs::rename(temp, path)?;
        }
        self.0 = None;
        Ok(())
    }
}

impl Drop for Temp {
    #[expect(clippy::disallowed_methods, reason = "our own temporary file, which nobody has seen")]
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            let _ = fs::remove_file(path);
        }
    }
}
