//! The file system as the log needs it: few operations, each with its promise about what survives.
//!
//! [`OsFs`] is the real one. `SimFs` (feature `testing`) keeps a page cache apart from a platter, so that a test can cut
//! the power between any two operations. Both pass the same suite (`tests/it/fs_suite.rs`).

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

mod os;
mod ranges;
#[cfg(feature = "testing")]
pub mod sim;

pub use os::{OsFile, OsFs};

/// How a file is opened. The log knows no other way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Open {
    /// An existing file, for reading only.
    Read,
    /// An existing file, for reading and appending (`O_RDWR|O_APPEND|O_CLOEXEC`).
    Append,
    /// A file that must not exist yet (`O_CREAT|O_EXCL`), mode 0600, for reading and appending.
    CreateNew,
}

/// Identity and length of a file, as `stat` tells them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// Device number; with `inode`, the identity of the file.
    pub dev: u64,
    /// Inode number.
    pub inode: u64,
    /// Length in bytes.
    pub len: u64,
    /// Modification time, nanoseconds since the Unix epoch.
    pub mtime_ns: i128,
    /// Whether the name is a directory.
    pub is_dir: bool,
    /// Whether it is a regular file: nothing else is ever opened.
    pub is_file: bool,
}

/// A process, as a lease names it. Two processes with the same `host` and `boot` see each other's pids.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// Its number.
    pub pid: u32,
    /// The machine's name.
    pub host: String,
    /// Which run of the kernel, and which space of process numbers in it.
    pub boot: String,
    /// When the process began, in ticks of that kernel: numbers are used again.
    pub started: u64,
}

/// What a lock attempt found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Held {
    /// The lock is ours until the handle is dropped.
    Ours,
    /// Another open file description holds it.
    Other,
}

/// A file system. Durability is explicit: bytes survive a power cut after [`FsFile::sync_data`], names after
/// [`Fs::sync_dir`] of their directory.
pub trait Fs: Send + Sync + 'static {
    /// An open file of this file system.
    type File: FsFile;

    /// Opens `path`.
    ///
    /// # Errors
    /// As the system call: `NotFound`, `AlreadyExists` (for [`Open::CreateNew`]), permissions, …
    fn open(&self, path: &Path, how: Open) -> io::Result<Self::File>;

    /// Renames without replacing: `AlreadyExists` when `to` exists. Atomic where the kernel has `RENAME_NOREPLACE`;
    /// elsewhere a hard link and an unlink, which never replace either.
    ///
    /// # Errors
    /// As the system call.
    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Renames and replaces, atomically. For derived files and blobs only, never for a session.
    ///
    /// # Errors
    /// As the system call.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Makes the names in `dir` durable.
    ///
    /// # Errors
    /// As the system call.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;

    /// Identity and length behind a name (symbolic links are followed).
    ///
    /// # Errors
    /// As the system call.
    fn stat(&self, path: &Path) -> io::Result<Stat>;

    /// As [`Fs::stat`], of the name itself: a symbolic link is neither file nor directory.
    ///
    /// # Errors
    /// As the system call.
    fn lstat(&self, path: &Path) -> io::Result<Stat> {
        self.stat(path)
    }

    /// Gives a file another name beside the one that it has; never replaces.
    ///
    /// # Errors
    /// Where the file system has no such names, or the two places are not in the same one.
    fn link(&self, _from: &Path, _to: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Bytes that a file takes of the disk, as far as the file system tells; what two files share is counted in each.
    ///
    /// # Errors
    /// As the system call.
    fn on_disk(&self, path: &Path) -> io::Result<u64> {
        self.stat(path).map(|stat| stat.len)
    }

    /// Makes one directory, mode 0700. Its parent must exist.
    ///
    /// # Errors
    /// `AlreadyExists` when the name is taken; as the system call otherwise.
    fn mkdir(&self, dir: &Path) -> io::Result<()>;

    /// Removes a file's name.
    ///
    /// # Errors
    /// As the system call.
    fn unlink(&self, path: &Path) -> io::Result<()>;

    /// Removes an empty directory.
    ///
    /// # Errors
    /// `DirectoryNotEmpty` when something is in it; as the system call otherwise.
    fn rmdir(&self, _dir: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Whether a name is a symbolic link, wherever that leads.
    ///
    /// # Errors
    /// As the system call.
    fn is_link(&self, path: &Path) -> io::Result<bool> {
        self.stat(path).map(|_| false)
    }

    /// The names in a directory (full paths, sorted).
    ///
    /// # Errors
    /// As the system call.
    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>>;

    /// This process, for the lease that stands in for a lock where the file system refuses locking.
    fn owner(&self) -> Owner {
        Owner::default()
    }

    /// Whether a process is certainly dead: it was one of this machine, and is not there any more.
    fn is_dead(&self, _owner: &Owner) -> bool {
        false
    }
}

/// An open file. All methods take `&self`: a handle may be shared with the thread that syncs.
pub trait FsFile: Send + Sync + 'static {
    /// Appends; may write fewer bytes than given, as `write` may.
    ///
    /// # Errors
    /// As the system call; nothing is known about how much was written only when the call itself failed with nothing.
    fn append(&self, bytes: &[u8]) -> io::Result<usize>;

    /// Writes over what stands at `offset`, through a handle of its own: on one that appends, Linux puts even `pwrite` at
    /// the end. Only for laying down once more what stands there already; nothing may be written behind the end.
    ///
    /// # Errors
    /// As the system calls; a part may have been written.
    fn rewrite_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Puts bytes of `source` behind the end as blocks that both files have from then on (`FICLONERANGE`): nothing is copied,
    /// and no room is taken. All of them, or none.
    ///
    /// # Errors
    /// Where the file system shares no blocks, or the two files are not in the same one; when `from` or the end of this file
    /// is no multiple of its block size, or `len` is none (but at the end of `source`). Who asks copies the bytes then.
    fn clone_range(&self, _source: &Self, _from: u64, _len: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Puts up to `len` bytes of `source` behind the end without carrying them through this process (`copy_file_range`);
    /// how many, 0 at the end of `source`.
    ///
    /// # Errors
    /// Where the system cannot; what was copied before stays. Who asks reads and appends the rest then.
    fn copy_range(&self, _source: &Self, _from: u64, _len: u64) -> io::Result<u64> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Reads at an offset; fewer bytes only at the end of the file.
    ///
    /// # Errors
    /// As the system call.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Cuts the file to `len` bytes.
    ///
    /// # Errors
    /// As the system call.
    fn truncate(&self, len: u64) -> io::Result<()>;

    /// Makes the file's bytes and length durable (`fdatasync`).
    ///
    /// # Errors
    /// As the system call. A failure means: nothing since the last success is known to be durable.
    fn sync_data(&self) -> io::Result<()>;

    /// Identity and length of the open file, whatever its name is by now.
    ///
    /// # Errors
    /// As the system call.
    fn stat(&self) -> io::Result<Stat>;

    /// Tries to take the exclusive lock of this open file description; never waits. Dropping the handle frees it.
    ///
    /// # Errors
    /// `Unsupported` (or the system's error) where the file system refuses locking.
    fn try_lock(&self) -> io::Result<Held>;

    /// The process that holds the lock, where the system tells. For the sentence only.
    fn lock_holder(&self) -> Option<u32> {
        None
    }
}

/// Makes `dir` and every missing parent, and makes each new name durable in its parent.
///
/// # Errors
/// As the system calls; a directory made meanwhile by another process is no error.
pub fn mkdir_all_durable<F: Fs>(fs: &F, dir: &Path) -> io::Result<()> {
    let mut holders = BTreeSet::new();
    make_dirs(fs, dir, &mut holders)?;
    holders.iter().try_for_each(|holder| fs.sync_dir(holder))
}

/// Makes `dir` and every missing parent. The folders that hold new names go to `holders`, to be synced later; also when
/// the call fails half-way, so that a second attempt does not forget them.
///
/// # Errors
/// As the system calls.
pub(crate) fn make_dirs<F: Fs>(fs: &F, dir: &Path, holders: &mut BTreeSet<PathBuf>) -> io::Result<()> {
    match fs.stat(dir) {
        Ok(stat) if stat.is_dir => return Ok(()),
        Ok(_) => return Err(io::Error::new(io::ErrorKind::NotADirectory, format!("{} is no folder", dir.display()))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let Some(parent) = dir.parent().filter(|parent| !parent.as_os_str().is_empty()) else {
        return Err(io::ErrorKind::NotFound.into());
    };
    make_dirs(fs, parent, holders)?;
    holders.insert(parent.into());
    match fs.mkdir(dir) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}
