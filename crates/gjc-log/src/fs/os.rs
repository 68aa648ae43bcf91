//! The real file system.

// These are the calls that the lint keeps out of everything else: this is the one place that makes them.
#![allow(clippy::disallowed_methods)]

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use super::{Fs, FsFile, Held, Open, Owner, Stat, ranges};

/// The real file system, through the standard library and `rustix`.
#[derive(Debug, Clone, Copy, Default)]
pub struct OsFs;

impl Fs for OsFs {
    type File = OsFile;

    fn open(&self, path: &Path, how: Open) -> io::Result<OsFile> {
        let mut options = OpenOptions::new();
        // The standard library adds O_CLOEXEC.
        options.read(true);
        match how {
            Open::Read => {}
            Open::Append => drop(options.append(true)),
            Open::CreateNew => drop(options.append(true).create_new(true).mode(0o600)),
        }
        retry(|| options.open(path)).map(OsFile)
    }

    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        match retry(|| Ok(renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE)?)) {
            Err(error) if unsupported(&error) => link_new(from, to),
            done => done,
        }
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        retry(|| fs::rename(from, to))
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let dir = retry(|| OpenOptions::new().read(true).custom_flags(O_DIRECTORY).open(dir))?;
        match retry(|| dir.sync_all()) {
            // The file system knows no sync of a folder: there is nothing more to be done for its names.
            Err(error) if matches!(Errno::from_io_error(&error), Some(Errno::INVAL | Errno::NOTSUP)) => Ok(()),
            done => done,
        }
    }

    fn stat(&self, path: &Path) -> io::Result<Stat> {
        retry(|| fs::metadata(path)).map(|found| stat_of(&found))
    }

    fn lstat(&self, path: &Path) -> io::Result<Stat> {
        retry(|| fs::symlink_metadata(path)).map(|found| stat_of(&found))
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        retry(|| fs::hard_link(from, to))
    }

    fn on_disk(&self, path: &Path) -> io::Result<u64> {
        // In units of 512 bytes, whatever the file system's own blocks are: stat(2).
        retry(|| fs::symlink_metadata(path)).map(|found| found.blocks().saturating_mul(512))
    }

    fn mkdir(&self, dir: &Path) -> io::Result<()> {
        retry(|| DirBuilder::new().mode(0o700).create(dir))
    }

    fn unlink(&self, path: &Path) -> io::Result<()> {
        retry(|| fs::remove_file(path))
    }

    fn rmdir(&self, dir: &Path) -> io::Result<()> {
        retry(|| fs::remove_dir(dir))
    }

    fn is_link(&self, path: &Path) -> io::Result<bool> {
        retry(|| fs::symlink_metadata(path)).map(|found| found.is_symlink())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        let names = retry(|| fs::read_dir(dir))?.map(|entry| entry.map(|entry| entry.path()));
        let mut names = names.collect::<io::Result<Vec<_>>>()?;
        names.sort_unstable();
        Ok(names)
    }

    fn owner(&self) -> Owner {
        let pid = std::process::id();
        let line = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
        // Containers share a kernel and may share a name, but not the numbers of their processes.
        let space = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
        Owner {
            pid,
            host: line("/proc/sys/kernel/hostname"),
            boot: format!("{} {}", line("/proc/sys/kernel/random/boot_id"), space.display()),
            started: started(pid).unwrap_or_default(),
        }
    }

    fn is_dead(&self, owner: &Owner) -> bool {
        let ours = self.owner();
        let known = !owner.host.is_empty() && ours.started != 0 && ours.boot.len() > 1;
        known && (&ours.host, &ours.boot) == (&owner.host, &owner.boot) && started(owner.pid) != Some(owner.started)
    }
}

/// When a process began, in ticks since the machine started: field 22 of proc_pid_stat(5). `None` when there is none.
fn started(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program may hold anything, blanks and parentheses too.
    stat.rsplit_once(") ")?.1.split(' ').nth(19)?.parse().ok()
}

/// An open file of the real file system.
#[derive(Debug)]
pub struct OsFile(File);

impl OsFile {
    /// The same file once more, without `O_APPEND`: on a handle that appends, Linux puts even `pwrite` at the end, and
    /// neither clones nor copies ranges.
    fn not_appending(&self) -> io::Result<File> {
        // By its number, not by its name, which may lead elsewhere by now. The lock belongs to our own handle and stays.
        let again = format!("/proc/self/fd/{}", self.0.as_raw_fd());
        retry(|| OpenOptions::new().write(true).open(&again))
    }
}

impl FsFile for OsFile {
    fn append(&self, bytes: &[u8]) -> io::Result<usize> {
        retry(|| io::Write::write(&mut &self.0, bytes))
    }

    fn rewrite_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let again = self.not_appending()?;
        retry(|| again.write_all_at(bytes, offset))
    }

    fn clone_range(&self, source: &Self, from: u64, len: u64) -> io::Result<()> {
        let (again, end) = (self.not_appending()?, self.stat()?.len);
        retry(|| ranges::share(&source.0, from, len, &again, end))
    }

    fn copy_range(&self, source: &Self, from: u64, len: u64) -> io::Result<u64> {
        let (again, end) = (self.not_appending()?, self.stat()?.len);
        retry(|| ranges::copy(&source.0, from, len, &again, end))
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut done = 0;
        while done < buf.len() {
            let at = offset.saturating_add(u64::try_from(done).unwrap_or(u64::MAX));
            match retry(|| self.0.read_at(&mut buf[done..], at))? {
                0 => break,
                count => done += count,
            }
        }
        Ok(done)
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        retry(|| self.0.set_len(len))
    }

    fn sync_data(&self) -> io::Result<()> {
        // Interrupted does not mean done: asking again is right, and an error it reported is reported once only.
        retry(|| self.0.sync_data())
    }

    fn stat(&self) -> io::Result<Stat> {
        retry(|| self.0.metadata()).map(|found| stat_of(&found))
    }

    fn try_lock(&self) -> io::Result<Held> {
        loop {
            match self.0.try_lock() {
                Ok(()) => return Ok(Held::Ours),
                Err(TryLockError::WouldBlock) => return Ok(Held::Other),
                Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
    }

    fn lock_holder(&self) -> Option<u32> {
        use std::os::unix::fs::MetadataExt;
        let inode = self.0.metadata().ok()?.ino();
        // `1: FLOCK  ADVISORY  WRITE 1234 08:01:5678 0 EOF`; see proc_locks(5).
        let table = std::fs::read_to_string("/proc/locks").ok()?;
        table.lines().find_map(|line| {
            let mut fields = line.split_ascii_whitespace().skip(1);
            let (kind, pid, place) = (fields.next()?, fields.nth(2)?, fields.next()?);
            let found = kind == "FLOCK" && place.rsplit(':').next()?.parse() == Ok(inode);
            found.then(|| pid.parse().ok()).flatten()
        })
    }
}

/// `rustix` knows the number for each architecture; the standard library takes it as `i32`.
const O_DIRECTORY: i32 = rustix::fs::OFlags::DIRECTORY.bits().cast_signed();

/// A hard link never replaces either; between the two calls the file has both names.
fn link_new(from: &Path, to: &Path) -> io::Result<()> {
    retry(|| fs::hard_link(from, to))?;
    retry(|| fs::remove_file(from))
}

/// An old kernel says `ENOSYS`; a file system without the flag says `EINVAL` (so does renaming a directory into
/// itself, which the link then refuses).
fn unsupported(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::INVAL | Errno::NOSYS))
}

fn retry<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

fn stat_of(found: &fs::Metadata) -> Stat {
    Stat {
        dev: found.dev(),
        inode: found.ino(),
        len: found.len(),
        mtime_ns: i128::from(found.mtime()) * 1_000_000_000 + i128::from(found.mtime_nsec()),
        is_dir: found.is_dir(),
        is_file: found.is_file(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn without_renameat2_a_link_does_not_replace_either() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("쓰는 중"), dir.path().join("세션"));
        fs::write(&from, "new").unwrap();
        fs::write(&to, "old").unwrap();
        assert_eq!(link_new(&from, &to).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!((fs::read(&from).unwrap(), fs::read(&to).unwrap()), (b"new".to_vec(), b"old".to_vec()));
        fs::remove_file(&to).unwrap();
        link_new(&from, &to).unwrap();
        assert_eq!(OsFs.list(dir.path()).unwrap(), [to]);
    }

    #[test]
    fn only_a_missing_flag_falls_back() {
        assert!(unsupported(&Errno::INVAL.into()) && unsupported(&Errno::NOSYS.into()));
        assert!(!unsupported(&Errno::EXIST.into()) && !unsupported(&Errno::NOENT.into()));
    }

    #[test]
    fn interrupted_calls_are_made_again() {
        let mut left = 3;
        let done = retry(|| {
            left -= 1;
            if left > 0 { Err(Errno::INTR.into()) } else { Ok(left) }
        });
        assert_eq!(done.unwrap(), 0);
    }

    #[test]
    fn a_process_is_dead_when_its_number_belongs_to_nobody_or_to_another() {
        let us = OsFs.owner();
        assert!(us.pid > 0 && us.started > 0 && !us.host.is_empty(), "{us:?}");
        assert!(!OsFs.is_dead(&us));
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let gone = Owner { pid: child.id(), started: 1, ..us.clone() };
        child.wait().unwrap();
        assert!(OsFs.is_dead(&gone));
        assert!(OsFs.is_dead(&Owner { started: us.started + 1, ..us.clone() }), "the number was given away again");
        assert!(!OsFs.is_dead(&Owner { host: "elsewhere".into(), ..gone.clone() }), "nobody knows");
        assert!(!OsFs.is_dead(&Owner { boot: "other".into(), ..gone }), "another machine may bear the same name");
    }

    #[test]
    fn modes_are_private() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let (sub, file) = (dir.path().join("d"), dir.path().join("d/f"));
        OsFs.mkdir(&sub).unwrap();
        OsFs.open(&file, Open::CreateNew).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&sub), mode(&file)), (0o700, 0o600));
    }
}
