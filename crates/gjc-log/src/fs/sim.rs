//! A machine with a disk that can lose power, for tests.
//!
//! Programs see the page cache. A power cut leaves the platter: bytes that were synced, and of the rest whatever POSIX
//! permits. Unsynced bytes vanish, survive as any prefix, or leave their length behind with NUL from a sector (512
//! bytes) or from their first byte on. The operations on one file reach the platter in order. An unsynced change of a
//! name survives or does not, whatever became of the others; a rename is one change. Syncing a file does not make its
//! name durable; a directory is a name too, and without it all below is gone.
//!
//! ```
//! use gjc_log::fs::{Fs, FsFile, Open, sim::SimFs};
//! # fn main() -> std::io::Result<()> {
//! let fs = SimFs::new();
//! let file = fs.open("/a".as_ref(), Open::CreateNew)?;
//! file.append(b"one\n")?;
//! file.sync_data()?;
//! fs.sync_dir("/".as_ref())?;
//! fs.mark(1);
//! for cut in fs.power_cuts().filter(|cut| cut.marks.contains(&1)) {
//!     assert_eq!(cut.fs.read("/a")?, b"one\n", "{cut}");
//! }
//! # Ok(())
//! # }
//! ```

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;

use super::{Fs, FsFile, Held, Open, Owner, Stat};

mod cuts;
mod disk;

pub use cuts::Cut;

use cuts::PowerCuts;
use disk::{Disk, Ino, Name, Node, Op};

/// The simulated device's number.
const DEV: u64 = 0x51;
/// Bytes in a block: what files share begins and ends at such places.
const BLOCK: u64 = 4096;
/// One operation takes a millisecond of the simulated clock.
const TICK_NS: i128 = 1_000_000;

/// A simulated machine. A clone is the same machine.
#[derive(Debug, Clone)]
pub struct SimFs {
    state: Arc<Mutex<State>>,
}

/// What goes wrong. Faults add up until [`SimFs::clear_faults`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The disk is full after so many more bytes: the append that reaches it is short, the next ones are `ENOSPC`.
    Enospc {
        /// Bytes that still fit.
        after_bytes: u64,
    },
    /// The next `sync_data` calls fail with `EIO`. As on Linux, the bytes count as clean afterwards although they may
    /// never reach the platter: a later sync succeeds and changes nothing for them. Only bytes written anew are safe.
    SyncFails {
        /// How many calls.
        times: u32,
    },
    /// As [`Fault::SyncFails`], and the kernel drops the pages: what is read from then on is what the platter has.
    SyncLoses {
        /// How many calls.
        times: u32,
    },
    /// The next append writes only so many bytes.
    ShortWrite {
        /// Bytes written.
        bytes: usize,
    },
    /// No name can be made, changed or removed in this directory (`EACCES`).
    ReadOnlyDir(PathBuf),
    /// Locks are `Unsupported`.
    NoLocks,
    /// Files share no blocks.
    NoSharing,
    /// Nothing is copied without passing through the process.
    NoRanges,
}

#[derive(Debug)]
struct State {
    disk: Disk,
    /// The disk before the first operation of the journal.
    start: Disk,
    journal: Vec<Op>,
    /// Which handle holds the lock of a file.
    locks: BTreeMap<Ino, u64>,
    handles: u64,
    faults: Faults,
    /// Which start of the machine this is, and which process everything is done by.
    boot: u64,
    pid: u32,
}

#[derive(Debug, Clone, Default)]
struct Faults {
    room: Option<u64>,
    failing_syncs: u32,
    losing_syncs: u32,
    short_write: Option<usize>,
    read_only: Vec<PathBuf>,
    no_locks: bool,
    no_sharing: bool,
    no_ranges: bool,
}

impl Default for SimFs {
    fn default() -> Self {
        Self::new()
    }
}

impl SimFs {
    /// A machine with an empty root directory `/`.
    #[must_use]
    pub fn new() -> Self {
        Self::booted(Disk::new())
    }

    fn booted(disk: Disk) -> Self {
        let start = disk.clone();
        static BOOTS: AtomicU64 = AtomicU64::new(1);
        let boot = BOOTS.fetch_add(1, Ordering::Relaxed);
        let (journal, locks, faults) = (Vec::new(), BTreeMap::new(), Faults::default());
        Self { state: Arc::new(Mutex::new(State { disk, start, journal, locks, handles: 0, faults, boot, pid: 1 })) }
    }

    /// Puts `value` into the journal: "from here on this was promised".
    pub fn mark(&self, value: u64) {
        self.lock().run(Op::Mark(value));
    }

    /// Makes everything durable as it is and empties the journal: what happened so far is not under test.
    pub fn settle(&self) {
        let mut state = self.lock();
        state.disk.settle();
        state.start = state.disk.clone();
        state.journal.clear();
    }

    /// The number of operations in the journal, marks included.
    #[must_use]
    pub fn position(&self) -> usize {
        self.lock().journal.len()
    }

    /// Every state that a power cut could have left, at every position of the journal up to now, lazily.
    ///
    /// All states of every file (each byte prefix of its unsynced appends, NUL tails) are combined with all subsets of
    /// the unsynced changes of names. Three bounds keep this finite in practice: with more than 10 pending changes of
    /// names, the subsets are "the first n survived" and "one is missing"; with more than 4,096 combinations of the
    /// states of several files, each file in turn goes through all of its states while the others are whole or as
    /// synced; with more than 5 such files, the others are all whole or all as synced (a few states are then yielded
    /// twice). A state that an earlier position yielded under the same marks is not yielded again.
    #[must_use = "iterators are lazy"]
    pub fn power_cuts(&self) -> impl Iterator<Item = Cut> + Send + use<> {
        let state = self.lock();
        PowerCuts::new(state.start.clone(), state.journal.clone())
    }

    /// The machine after a power cut at this moment; `seed` chooses what survived.
    #[must_use]
    pub fn crash(&self, seed: u64) -> Self {
        Self::booted(cuts::random(&self.lock().disk, seed))
    }

    /// The machine after all its processes were killed: the page cache is as it was, the journal goes on, locks are
    /// free, faults stay. Handles opened before belong to the machine as it was.
    #[must_use]
    pub fn kill(&self) -> Self {
        let state = self.lock();
        let killed = State {
            disk: state.disk.clone(),
            start: state.start.clone(),
            journal: state.journal.clone(),
            locks: BTreeMap::new(),
            handles: 0,
            faults: state.faults.clone(),
            boot: state.boot,
            pid: state.pid + 1,
        };
        Self { state: Arc::new(Mutex::new(killed)) }
    }

    /// From now on this goes wrong.
    pub fn fault(&self, fault: Fault) {
        let faults = &mut self.lock().faults;
        match fault {
            Fault::Enospc { after_bytes } => faults.room = Some(after_bytes),
            Fault::SyncFails { times } => faults.failing_syncs = times,
            Fault::SyncLoses { times } => faults.losing_syncs = times,
            Fault::ShortWrite { bytes } => faults.short_write = Some(bytes),
            Fault::ReadOnlyDir(dir) => faults.read_only.push(dir),
            Fault::NoLocks => faults.no_locks = true,
            Fault::NoSharing => faults.no_sharing = true,
            Fault::NoRanges => faults.no_ranges = true,
        }
    }

    /// Everything works again. Bytes that a failed sync has lost stay lost.
    pub fn clear_faults(&self) {
        self.lock().faults = Faults::default();
    }

    /// All bytes of a file.
    ///
    /// # Errors
    /// `NotFound`, `NotADirectory`, `IsADirectory`.
    pub fn read(&self, path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
        let state = self.lock();
        let file = state.disk.file(state.disk.find(path.as_ref())?).ok_or(io::ErrorKind::IsADirectory)?;
        Ok(file.cache.to_vec())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn rename_to(&self, from: &Path, to: &Path, replace: bool) -> io::Result<()> {
        let mut state = self.lock();
        let ino = state.disk.find(from)?;
        let (from, to) = (state.writable(from)?, state.writable(to)?);
        let there = state.disk.dir(to.0).and_then(|dir| dir.names.get(&to.1)).copied();
        if let Some(there) = there {
            if !replace {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            if there == ino {
                return Ok(());
            }
            match (state.disk.dir(ino).is_some(), state.disk.dir(there)) {
                (true, None) => return Err(io::ErrorKind::NotADirectory.into()),
                (false, Some(_)) => return Err(io::ErrorKind::IsADirectory.into()),
                (true, Some(dir)) if !dir.names.is_empty() => return Err(io::ErrorKind::DirectoryNotEmpty.into()),
                _ => {}
            }
        }
        if state.disk.dir(ino).is_some() && state.is_below(to.0, ino) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        state.run(Op::Rename { from, to });
        Ok(())
    }
}

impl State {
    fn run(&mut self, op: Op) {
        self.disk.apply(&op);
        self.journal.push(op);
    }

    /// The place of a name in a directory that may be changed.
    fn writable(&self, path: &Path) -> io::Result<(Ino, Name)> {
        let place = self.disk.place(path)?;
        let same = |dir: &PathBuf| self.disk.find(dir).is_ok_and(|dir| dir == place.0);
        if self.faults.read_only.iter().any(same) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        Ok(place)
    }

    fn taken(&self, place: &(Ino, Name)) -> bool {
        self.disk.dir(place.0).is_some_and(|dir| dir.names.contains_key(&place.1))
    }

    fn is_below(&self, dir: Ino, top: Ino) -> bool {
        let below = |names: &disk::Names| names.values().any(|ino| self.is_below(dir, *ino));
        dir == top || self.disk.dir(top).is_some_and(|top| below(&top.names))
    }

    /// Up to `len` bytes of a file.
    fn part_of(&self, ino: Ino, from: u64, len: u64) -> io::Result<Vec<u8>> {
        let cache = &self.disk.file(ino).ok_or(io::ErrorKind::IsADirectory)?.cache;
        let len = len.min(to_u64(cache.len()).saturating_sub(from));
        let mut bytes = vec![0; usize::try_from(len).map_err(io::Error::other)?];
        cache.read_at(&mut bytes, from);
        Ok(bytes)
    }

    fn stat(&self, ino: Ino) -> io::Result<Stat> {
        let (len, changed, is_dir) = match self.disk.nodes.get(ino) {
            Some(Node::File(file)) => (file.cache.len(), file.changed, false),
            Some(Node::Dir(dir)) => (0, dir.changed, true),
            Some(Node::Gone) | None => return Err(io::ErrorKind::NotFound.into()),
        };
        let mtime_ns = i128::from(changed) * TICK_NS;
        Ok(Stat { dev: DEV, inode: to_u64(ino) + 1, len: to_u64(len), mtime_ns, is_dir, is_file: !is_dir })
    }
}

impl Fs for SimFs {
    type File = SimFile;

    fn open(&self, path: &Path, how: Open) -> io::Result<SimFile> {
        let mut state = self.lock();
        if how == Open::CreateNew {
            let place = state.disk.place(path)?;
            if state.taken(&place) {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            let (dir, name) = state.writable(path)?;
            state.run(Op::Create { dir, name });
        }
        let ino = state.disk.find(path)?;
        state.disk.file(ino).ok_or(io::ErrorKind::IsADirectory)?;
        state.handles += 1;
        let handle = state.handles;
        Ok(SimFile { fs: self.clone(), ino, handle, writes: how != Open::Read })
    }

    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.rename_to(from, to, false)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.rename_to(from, to, true)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let mut state = self.lock();
        let dir = state.disk.find(dir)?;
        state.disk.dir(dir).ok_or(io::ErrorKind::NotADirectory)?;
        state.run(Op::SyncDir { dir });
        Ok(())
    }

    fn stat(&self, path: &Path) -> io::Result<Stat> {
        let state = self.lock();
        state.stat(state.disk.find(path)?)
    }

    fn mkdir(&self, dir: &Path) -> io::Result<()> {
        let mut state = self.lock();
        let place = state.disk.place(dir)?;
        if state.taken(&place) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let (dir, name) = state.writable(dir)?;
        state.run(Op::Mkdir { dir, name });
        Ok(())
    }

    fn unlink(&self, path: &Path) -> io::Result<()> {
        let mut state = self.lock();
        let ino = state.disk.find(path)?;
        state.disk.file(ino).ok_or(io::ErrorKind::IsADirectory)?;
        let (dir, name) = state.writable(path)?;
        state.run(Op::Unlink { dir, name });
        Ok(())
    }

    fn rmdir(&self, path: &Path) -> io::Result<()> {
        let mut state = self.lock();
        let ino = state.disk.find(path)?;
        if !state.disk.dir(ino).ok_or(io::ErrorKind::NotADirectory)?.names.is_empty() {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        let (dir, name) = state.writable(path)?;
        state.run(Op::Unlink { dir, name });
        Ok(())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        let state = self.lock();
        let node = state.disk.dir(state.disk.find(dir)?).ok_or(io::ErrorKind::NotADirectory)?;
        Ok(node.names.keys().map(|name| dir.join(&**name)).collect())
    }

    fn owner(&self) -> Owner {
        let state = self.lock();
        Owner { pid: state.pid, host: "sim".into(), boot: state.boot.to_string(), started: state.pid.into() }
    }

    /// Only the process that everything is done by is alive: the ones before it were killed.
    fn is_dead(&self, owner: &Owner) -> bool {
        let ours = self.owner();
        (&ours.host, &ours.boot) == (&owner.host, &owner.boot) && ours != *owner
    }
}

/// An open file of a [`SimFs`]. The file lives as long as it is open, whatever becomes of its name.
#[derive(Debug)]
pub struct SimFile {
    fs: SimFs,
    ino: Ino,
    handle: u64,
    writes: bool,
}

impl SimFile {
    fn may_write(&self) -> io::Result<()> {
        if self.writes { Ok(()) } else { Err(Errno::BADF.into()) }
    }
}

impl FsFile for SimFile {
    fn append(&self, bytes: &[u8]) -> io::Result<usize> {
        self.may_write()?;
        let mut state = self.fs.lock();
        let mut count = bytes.len();
        if let Some(short) = state.faults.short_write.take() {
            count = count.min(short);
        }
        if let Some(room) = &mut state.faults.room {
            if *room == 0 && count > 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            count = count.min(usize::try_from(*room).unwrap_or(usize::MAX));
            *room -= to_u64(count);
        }
        if count > 0 {
            state.run(Op::Append { ino: self.ino, bytes: Arc::from(&bytes[..count]) });
        }
        Ok(count)
    }

    fn rewrite_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.may_write()?;
        let mut state = self.fs.lock();
        let from = usize::try_from(offset).map_err(|_| io::ErrorKind::FileTooLarge)?;
        let len = state.disk.file(self.ino).map_or(0, |file| file.cache.len());
        if from.checked_add(bytes.len()).is_none_or(|end| end > len) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        if !bytes.is_empty() {
            state.run(Op::Rewrite { ino: self.ino, from, bytes: Arc::from(bytes) });
        }
        Ok(())
    }

    fn clone_range(&self, source: &Self, from: u64, len: u64) -> io::Result<()> {
        self.may_write()?;
        let mut state = self.fs.lock();
        if state.faults.no_sharing {
            return Err(Errno::OPNOTSUPP.into());
        }
        let size = |ino| state.disk.file(ino).map_or(0, |file| to_u64(file.cache.len()));
        let (end, there) = (size(self.ino), size(source.ino));
        let past = from.checked_add(len).filter(|past| *past <= there).ok_or(Errno::INVAL)?;
        if !end.is_multiple_of(BLOCK) || !from.is_multiple_of(BLOCK) || !(len.is_multiple_of(BLOCK) || past == there) {
            return Err(Errno::INVAL.into());
        }
        let bytes = state.part_of(source.ino, from, len)?;
        if !bytes.is_empty() {
            state.run(Op::Append { ino: self.ino, bytes: bytes.into() });
        }
        Ok(())
    }

    fn copy_range(&self, source: &Self, from: u64, len: u64) -> io::Result<u64> {
        let bytes = {
            let state = self.fs.lock();
            if state.faults.no_ranges {
                return Err(Errno::NOSYS.into());
            }
            state.part_of(source.ino, from, len)?
        };
        self.append(&bytes).map(to_u64)
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let state = self.fs.lock();
        Ok(state.disk.file(self.ino).map_or(0, |file| file.cache.read_at(buf, offset)))
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.may_write()?;
        let len = usize::try_from(len).map_err(|_| io::ErrorKind::FileTooLarge)?;
        self.fs.lock().run(Op::Truncate { ino: self.ino, len });
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.fs.lock();
        if state.faults.failing_syncs > 0 {
            state.faults.failing_syncs -= 1;
            state.run(Op::SyncFailed { ino: self.ino, dropped: false });
            return Err(Errno::IO.into());
        }
        if state.faults.losing_syncs > 0 {
            state.faults.losing_syncs -= 1;
            state.run(Op::SyncFailed { ino: self.ino, dropped: true });
            return Err(Errno::IO.into());
        }
        state.run(Op::SyncData { ino: self.ino });
        Ok(())
    }

    fn stat(&self) -> io::Result<Stat> {
        self.fs.lock().stat(self.ino)
    }

    fn try_lock(&self) -> io::Result<Held> {
        let mut state = self.fs.lock();
        if state.faults.no_locks {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let holder = *state.locks.entry(self.ino).or_insert(self.handle);
        Ok(if holder == self.handle { Held::Ours } else { Held::Other })
    }
}

impl Drop for SimFile {
    fn drop(&mut self) {
        let mut state = self.fs.lock();
        if state.locks.get(&self.ino) == Some(&self.handle) {
            state.locks.remove(&self.ino);
        }
    }
}

fn to_u64(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}
