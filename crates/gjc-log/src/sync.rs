//! Durability: a thread of its own syncs, and one number tells how far.

use crate::blobs::Unsynced;
use crate::fs::{Fs, FsFile, Stat};
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// A length of the session file, ordered after the count of times that its writer had to lay down elsewhere what it had
/// promised: in another file, or behind lines of another program. Durability is one monotone value of this type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Lsn {
    /// How many times places have moved.
    pub file: u32,
    /// Bytes of the file.
    pub len: u64,
}

/// Bytes that are laid down anew between two looks at the file.
const CHUNK: usize = 256 * 1024;
/// So much that was written waits in memory for a sync before one is begun without being asked for.
const MOST_KEPT: usize = 8 << 20;
/// So much of the end of a file that was opened may be lines of a writer that died before it synced them.
const OLD_END: u64 = 1 << 20;

/// How far a session is written and durable, and how storage does.
#[derive(Debug, Clone, Default)]
pub struct Storage {
    /// In the file (or, with a session in memory, taken in).
    pub written: Lsn,
    /// On the platter.
    pub durable: Lsn,
    /// How storage does.
    pub health: Health,
    /// Whether, while it fails, the reason is that the file is no longer this session's: it was deleted, renamed, replaced
    /// or rewritten, or another writer has taken it. More room does not help then; a person puts it back, or goes on in
    /// another file ([`crate::Writer::save_as`]).
    pub lost: bool,
}

/// How storage does.
#[derive(Debug, Clone, Default)]
pub enum Health {
    /// Well.
    #[default]
    Ok,
    /// Entries are in memory only, or not known to be durable. They are tried again.
    Failing(Arc<io::Error>),
}

/// Waits until everything up to `lsn` is durable.
///
/// # Errors
/// Why it is not, as soon as storage fails. The entries are kept in memory and tried again all the same.
pub async fn durable(storage: &mut watch::Receiver<Storage>, lsn: Lsn) -> Result<(), Arc<io::Error>> {
    let gone = || Arc::new(io::Error::other("the session was closed before it was durable"));
    let now = storage
        .wait_for(|now| now.durable >= lsn || matches!(now.health, Health::Failing(_)))
        .await
        .map_err(|_| gone())?;
    match &now.health {
        _ if now.durable >= lsn => Ok(()),
        Health::Failing(why) => Err(Arc::clone(why)),
        Health::Ok => Err(gone()),
    }
}

/// Waits until everything up to `lsn` is in the file, where it survives the process.
///
/// # Errors
/// Why it is not, as soon as storage fails.
pub async fn written(storage: &mut watch::Receiver<Storage>, lsn: Lsn) -> Result<(), Arc<io::Error>> {
    let now = storage.wait_for(|now| now.written >= lsn || matches!(now.health, Health::Failing(_))).await;
    let now = now.map_err(|_| Arc::new(io::Error::other("the session was closed before it was written")))?;
    match &now.health {
        Health::Failing(why) => Err(Arc::clone(why)),
        Health::Ok => Ok(()),
    }
}

/// What writer and thread share.
pub(crate) struct Shared<F: Fs> {
    fs: Arc<F>,
    state: Mutex<State<F>>,
    /// Held by whoever changes bytes of the file; in it, the file as it was left. Locked before `state`.
    left: Mutex<Option<Stat>>,
    wake: Condvar,
    storage: watch::Sender<Storage>,
}

struct State<F: Fs> {
    file: Option<Arc<F::File>>,
    /// The session's name, once there is a file.
    path: PathBuf,
    /// Counts the contents that the writer has gone on with; an answer about an earlier one is no answer.
    home: u32,
    /// [`Lsn::file`].
    moved: u32,
    /// Blobs that the lines written so far name.
    blobs: Vec<Unsynced<F>>,
    /// Folders with new names in them: that of the blobs, new parents of the session file.
    dirs: BTreeSet<PathBuf>,
    publish: Option<Publish>,
    written: u64,
    /// How long the file was when it was opened.
    found: u64,
    /// How much of this file is known to be durable.
    synced: u64,
    /// No sync of less than this keeps what was promised before places moved.
    least: u64,
    durable: Lsn,
    /// How far somebody waits for.
    wanted: u64,
    /// What we have written and what is not durable yet, with its places: a failed sync may lose it in the file.
    kept: Vec<(u64, Arc<[u8]>)>,
    /// How many bytes that is.
    kept_bytes: usize,
    /// A sync has failed: pages that the kernel calls clean may never have reached the platter.
    doubtful: bool,
    /// Why syncing fails.
    broken: Option<Arc<io::Error>>,
    /// Lines wait in memory because they cannot be written.
    unwritable: Option<Arc<io::Error>>,
    lost: bool,
    /// The content is safe, but a name of it is not: that is tried again when somebody asks next.
    unnamed: Option<Arc<io::Error>>,
    closing: bool,
}

impl<F: Fs> State<F> {
    fn health(&self) -> Health {
        let failure = self.broken.as_ref().or(self.unwritable.as_ref()).or(self.unnamed.as_ref());
        failure.map_or(Health::Ok, |why| Health::Failing(Arc::clone(why)))
    }
}

/// A first write: the file has a temporary name until its content is durable.
#[derive(Clone)]
pub(crate) struct Publish {
    pub(crate) temporary: PathBuf,
    pub(crate) path: PathBuf,
}

impl<F: Fs> Shared<F> {
    pub(crate) fn new(fs: Arc<F>) -> Self {
        let state = State {
            file: None,
            path: PathBuf::new(),
            home: 0,
            moved: 0,
            blobs: Vec::new(),
            dirs: BTreeSet::new(),
            publish: None,
            written: 0,
            found: 0,
            synced: 0,
            least: 0,
            durable: Lsn::default(),
            wanted: 0,
            kept: Vec::new(),
            kept_bytes: 0,
            doubtful: false,
            broken: None,
            unwritable: None,
            lost: false,
            unnamed: None,
            closing: false,
        };
        Self {
            fs,
            state: Mutex::new(state),
            left: Mutex::default(),
            wake: Condvar::new(),
            storage: watch::Sender::new(Storage::default()),
        }
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<Storage> {
        self.storage.subscribe()
    }

    /// A file that exists. Who wrote it may not have synced it, so nothing of it counts as durable yet.
    pub(crate) fn opened(&self, path: &Path, file: Arc<F::File>, stat: Stat) {
        *self.left() = Some(stat);
        {
            let mut state = self.lock();
            state.path = path.into();
            state.file = Some(file);
            (state.written, state.found) = (stat.len, stat.len);
        }
        self.tell();
    }

    /// A file under a temporary name, in place of the one before, if there was one.
    pub(crate) fn staged(&self, file: Arc<F::File>, stat: Stat, publish: Publish) {
        let mut left = self.left();
        let mut state = self.lock();
        *left = Some(stat);
        state.path.clone_from(&publish.path);
        state.begin(Arc::clone(&file), 0);
        state.publish = Some(publish);
    }

    /// The writer goes on with another content: another file under the name, or this one rewritten. All of it is as
    /// others left it.
    pub(crate) fn rehoused(&self, file: Arc<F::File>, len: u64) {
        let mut state = self.lock();
        state.begin(file, len);
        let bucket = state.path.parent().map(Path::to_path_buf);
        state.dirs.extend(bucket);
    }

    /// Places that were given out have moved: what was promised is kept once `least` bytes are durable.
    pub(crate) fn moved(&self, least: u64) -> u32 {
        let mut state = self.lock();
        state.moved += 1;
        state.least = least;
        state.wanted = state.wanted.max(least);
        state.moved
    }

    /// Folders that hold new names, to be synced with the next commit.
    pub(crate) fn new_names_in(&self, dirs: BTreeSet<PathBuf>) {
        self.lock().dirs.extend(dirs);
    }

    /// What stands under the name that the file has at this moment: a temporary one until it is published.
    pub(crate) fn stat_name(&self) -> io::Result<Stat> {
        // The lock keeps the thread from renaming in between.
        let state = self.lock();
        self.fs.stat(state.publish.as_ref().map_or(&state.path, |publish| &publish.temporary))
    }

    /// The right to change bytes of the file, and the file as whoever had it before has left it.
    pub(crate) fn left(&self) -> MutexGuard<'_, Option<Stat>> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lines, given with their place, and the blobs that they name are in the file, which now ends at `len`.
    pub(crate) fn wrote(&self, at: u64, lines: &[u8], len: u64, blobs: Vec<Unsynced<F>>) {
        let due = {
            let mut state = self.lock();
            state.written = len;
            state.unwritable = None;
            state.lost = false;
            if !lines.is_empty() {
                state.keep(at, lines);
            }
            // Nobody may ever ask for a sync (`Durability::None`); memory is not given for that without end.
            if state.kept_bytes > MOST_KEPT {
                state.wanted = state.wanted.max(len);
            }
            if !blobs.is_empty() {
                state.dirs.extend(blobs.iter().map(|blob| blob.dir().to_path_buf()));
                state.blobs.extend(blobs);
            }
            // What somebody waits for may be in the file only now.
            state.is_due()
        };
        self.wake_if(due);
        self.tell();
    }

    /// Lines could not be written; `lost`: because the file is not ours any more.
    pub(crate) fn failed(&self, why: io::Error, lost: bool) {
        {
            let mut state = self.lock();
            state.unwritable = Some(Arc::new(why));
            state.lost = lost;
        }
        self.tell();
    }

    pub(crate) fn failing(&self) -> bool {
        matches!(self.lock().health(), Health::Failing(_))
    }

    /// How much of the file is known to be durable.
    pub(crate) fn synced(&self) -> u64 {
        self.lock().synced
    }

    /// Bytes that we wrote and that are not known to be durable: as written, whatever the file gives back.
    pub(crate) fn kept(&self, from: u64, len: usize) -> Option<Vec<u8>> {
        let state = self.lock();
        let next = state.kept.partition_point(|(at, _)| *at <= from);
        let (at, bytes) = state.kept.get(next.checked_sub(1)?)?;
        let start = usize::try_from(from - at).ok()?;
        bytes.get(start..start.checked_add(len)?).map(<[u8]>::to_vec)
    }

    /// Lines of ours that stand in the file already, as others left them.
    pub(crate) fn keep(&self, at: u64, lines: &[u8]) {
        self.lock().keep(at, lines);
    }

    /// A session in memory: what is taken in is as durable as it will ever be.
    pub(crate) fn in_memory(&self, len: u64) {
        {
            let mut state = self.lock();
            state.written = len;
            state.durable = Lsn { file: state.moved, len };
        }
        self.tell();
    }

    fn tell(&self) {
        self.storage.send_modify(|now| {
            // Looked at here, in the order of the changes: a sync that fails at this moment is not overwritten with Ok.
            let state = self.lock();
            now.written = Lsn { file: state.moved, len: state.written };
            now.durable = state.durable;
            now.health = state.health();
            now.lost = state.lost && matches!(now.health, Health::Failing(_));
        });
    }

    /// Asks for everything up to `len` to become durable.
    pub(crate) fn want(&self, len: u64) {
        let due = {
            let mut state = self.lock();
            state.wanted = state.wanted.max(len);
            state.is_due()
        };
        self.wake_if(due);
    }

    /// Wakes the thread when it has something to do. A wake-up costs more than writing a line does, so most appends, for
    /// which nobody waits, go without. Not with the state locked: the thread would wake up only to wait for it.
    fn wake_if(&self, due: bool) {
        if due {
            self.wake.notify_all();
        }
    }

    /// Lets the thread finish what is wanted, and end.
    pub(crate) fn close(&self) {
        self.lock().closing = true;
        self.wake.notify_all();
    }

    /// The thread.
    pub(crate) fn run(&self) {
        while let Some(mut work) = self.next() {
            let done = self.commit(&mut work);
            self.lock().take_back(work, done);
            self.tell();
        }
    }

    /// Blobs, their folder, the session, its name: in this order, so that no durable line ever names what is not there.
    fn commit(&self, work: &mut Work<F>) -> Result<(), Failed> {
        for blob in &mut work.blobs {
            self.sync_blob(blob).map_err(Failed::Sync)?;
        }
        for dir in &work.dirs {
            gjc_fp::fp!("log.sync.dir", io).map_err(Failed::Name)?;
            match self.fs.sync_dir(dir) {
                // Nobody can sync a folder that we may not read; the session shall not wait for that for ever.
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied && self.is_above(dir) => {}
                done => done.map_err(Failed::Name)?,
            }
        }
        work.blobs.iter().for_each(Unsynced::is_durable);
        self.sync_lines(work).map_err(Failed::Sync)?;
        gjc_fp::fp!("log.sync.after_data");
        let (ours, named) = (work.file.stat().map_err(Failed::Name)?, self.stat_name());
        if !named.is_ok_and(|named| (named.dev, named.inode) == (ours.dev, ours.inode)) {
            let why = "the session file was moved, replaced or deleted by another program";
            return Err(Failed::Name(io::Error::other(why)));
        }
        if let Some(Publish { temporary, path }) = &work.publish {
            // The lock keeps an append from looking for the file under the name that it is losing.
            let mut state = self.lock();
            if state.home != work.home {
                return Err(Failed::Name(io::Error::other("the session went on in another file")));
            }
            self.fs.rename_new(temporary, path).map_err(Failed::Name)?;
            state.publish = None;
            state.dirs.extend(path.parent().map(Path::to_path_buf));
            drop(state);
            gjc_fp::fp!("log.publish.renamed");
            if let Some(bucket) = path.parent() {
                self.fs.sync_dir(bucket).map_err(Failed::Name)?;
                self.lock().dirs.remove(bucket);
            }
            gjc_fp::fp!("log.publish.durable");
        }
        Ok(())
    }

    /// Whether it is above the folder of the session file.
    fn is_above(&self, dir: &Path) -> bool {
        self.lock().path.parent().is_some_and(|bucket| bucket != dir && bucket.starts_with(dir))
    }

    /// A blob whose sync fails is stored anew, once at a time.
    fn sync_blob(&self, blob: &mut Unsynced<F>) -> io::Result<()> {
        let sync = |file: &F::File| gjc_fp::fp!("log.sync.blob", io).and_then(|()| file.sync_data());
        if let Some(file) = &blob.file
            && sync(file).is_ok()
        {
            return Ok(());
        }
        blob.file = None;
        let anew = blob.store_anew(&self.fs)?;
        sync(&anew)?;
        blob.file = Some(anew);
        Ok(())
    }

    /// After a failed sync the kernel may call pages clean that never reached the platter, and a second sync would prove
    /// nothing: only bytes that were written once more are worth one.
    fn sync_lines(&self, work: &mut Work<F>) -> io::Result<()> {
        let sync = || gjc_fp::fp!("log.sync.data", io).and_then(|()| work.file.sync_data());
        if !work.doubtful {
            match sync() {
                Ok(()) => return Ok(()),
                Err(_) => work.doubtful = true,
            }
        }
        let differed = self.lay_anew(work)?;
        sync().map_err(|error| {
            let dropped =
                if differed > 0 { format!(", and {differed} bytes of it read back otherwise") } else { String::new() };
            let why = format!(
                "what was written could not be made durable ({error}{dropped}); it is written anew and tried again"
            );
            io::Error::new(error.kind(), why)
        })?;
        work.doubtful = false;
        Ok(())
    }

    /// Lays down once more, in place, all that was written since the last good sync, also what was appended while the sync
    /// that failed ran: our own bytes from memory, those of others as they read. Of what stood there when the file was
    /// opened only the end: a writer that died may not have synced it, and what we add hangs on it; the rest is old.
    /// Returns how many bytes of ours read back otherwise.
    fn lay_anew(&self, work: &Work<F>) -> io::Result<u64> {
        let mut left = self.left();
        let (mut at, kept, written) = {
            let state = self.lock();
            if state.home != work.home {
                return Err(io::Error::other("the session went on in another file"));
            }
            (state.synced.max(state.found.saturating_sub(OLD_END)), state.kept.clone(), state.written)
        };
        self.unchanged(work, &left)?;
        let mut differed = 0;
        for (from, bytes) in &kept {
            self.copy_back(work, &mut left, at, *from)?;
            let mut there = vec![0; bytes.len()];
            let got = work.file.read_at(&mut there, *from).unwrap_or_default();
            differed += there.iter().zip(&bytes[..]).filter(|(there, ours)| there != ours).count() as u64;
            differed += (bytes.len() - got.min(bytes.len())) as u64;
            gjc_fp::fp!("log.sync.rewrite", io)?;
            self.rewrite(work, &mut left, bytes, *from)?;
            at = at.max(from + bytes.len() as u64);
        }
        self.copy_back(work, &mut left, at, written)?;
        gjc_fp::fp!("log.sync.rewritten");
        Ok(differed)
    }

    /// Never over what another program has put there, nor behind an end that it has cut off: the writer looks into that
    /// first.
    fn unchanged(&self, work: &Work<F>, left: &Option<Stat>) -> io::Result<()> {
        if *left == Some(work.file.stat()?) {
            return Ok(());
        }
        Err(io::Error::other("the session file was changed by another program before it was durable"))
    }

    fn rewrite(&self, work: &Work<F>, left: &mut Option<Stat>, bytes: &[u8], at: u64) -> io::Result<()> {
        for (index, chunk) in bytes.chunks(CHUNK).enumerate() {
            self.unchanged(work, left)?;
            let done = work.file.rewrite_at(chunk, at + (index * CHUNK) as u64);
            // Only the time may be another: what else differs is the doing of another program.
            let now = work.file.stat()?;
            if let Some(left) = left {
                left.mtime_ns = now.mtime_ns;
            }
            done?;
        }
        Ok(())
    }

    /// Bytes of other writers: nothing of them was promised, but they shall not lose their chance.
    fn copy_back(&self, work: &Work<F>, left: &mut Option<Stat>, mut from: u64, to: u64) -> io::Result<()> {
        let mut buffer = vec![0; usize::try_from(to.saturating_sub(from)).unwrap_or(usize::MAX).min(CHUNK)];
        while from < to {
            let len = usize::try_from(to - from).unwrap_or(usize::MAX).min(buffer.len());
            match work.file.read_at(&mut buffer[..len], from)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                got => {
                    self.rewrite(work, left, &buffer[..got], from)?;
                    from += got as u64;
                }
            }
        }
        Ok(())
    }

    fn next(&self) -> Option<Work<F>> {
        let mut state = self.lock();
        loop {
            if let Some(file) = state.file.clone().filter(|_| state.is_due()) {
                return Some(Work {
                    file,
                    home: state.home,
                    blobs: std::mem::take(&mut state.blobs),
                    dirs: std::mem::take(&mut state.dirs),
                    publish: state.publish.clone(),
                    written: state.written,
                    moved: state.moved,
                    doubtful: state.doubtful,
                });
            }
            if state.closing {
                return None;
            }
            state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<F>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<F: Fs> State<F> {
    /// Whether the thread has something to do. Whoever makes it so wakes the thread.
    fn is_due(&self) -> bool {
        self.wanted > self.synced && self.written > self.synced && self.written >= self.least
    }

    fn keep(&mut self, at: u64, lines: &[u8]) {
        self.kept.push((at, lines.into()));
        self.kept_bytes += lines.len();
    }

    fn begin(&mut self, file: Arc<F::File>, len: u64) {
        self.file = Some(file);
        self.home += 1;
        // Nothing of another content is known to be old.
        (self.written, self.found, self.synced, self.wanted) = (len, 0, 0, 0);
        self.kept.clear();
        self.kept_bytes = 0;
        (self.doubtful, self.broken, self.unnamed) = (false, None, None);
    }

    /// What became of a commit.
    fn take_back(&mut self, work: Work<F>, done: Result<(), Failed>) {
        if self.home != work.home {
            // About a file that was left meanwhile. Its blobs and folders are needed all the same.
            self.blobs.extend(work.blobs);
            self.dirs.extend(work.dirs);
            return;
        }
        self.doubtful = work.doubtful;
        let failed = match done {
            Ok(()) => {
                self.synced = work.written;
                // Said of the places as they were when the work began, and true of them only.
                self.durable = self.durable.max(Lsn { file: work.moved, len: work.written });
                self.kept.retain(|(at, bytes)| at + bytes.len() as u64 > work.written);
                self.kept_bytes = self.kept.iter().map(|(_, bytes)| bytes.len()).sum();
                (self.broken, self.unnamed) = (None, None);
                return;
            }
            Err(failed) => failed,
        };
        // Tried again when somebody asks next.
        self.wanted = self.synced;
        self.blobs.splice(0..0, work.blobs);
        self.dirs.extend(work.dirs);
        match failed {
            Failed::Sync(error) => self.broken = Some(Arc::new(error)),
            Failed::Name(error) => (self.broken, self.unnamed) = (None, Some(Arc::new(error))),
        }
    }
}

/// What failed.
enum Failed {
    /// A sync of content, and the attempt to lay it down anew.
    Sync(io::Error),
    /// A name, or the sync of a folder: it can be tried again.
    Name(io::Error),
}

struct Work<F: Fs> {
    file: Arc<F::File>,
    home: u32,
    moved: u32,
    blobs: Vec<Unsynced<F>>,
    dirs: BTreeSet<PathBuf>,
    publish: Option<Publish>,
    written: u64,
    doubtful: bool,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::fs::{Open, OsFs};

    #[test]
    fn the_thread_has_something_to_do_only_when_somebody_waits_for_what_is_in_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("세션.jsonl");
        let file = OsFs.open(&path, Open::CreateNew).unwrap();
        let stat = file.stat().unwrap();
        let shared = Shared::new(Arc::new(OsFs));
        shared.opened(&path, Arc::new(file), stat);
        let due = || shared.lock().is_due();
        let commit = || {
            let mut work = shared.next().unwrap();
            let done = shared.commit(&mut work);
            shared.lock().take_back(work, done);
        };
        let write = |at: u64| {
            shared.lock().file.clone().unwrap().append(b"line\n").unwrap();
            shared.wrote(at, b"line\n", at + 5, Vec::new());
        };

        shared.want(5);
        assert!(!due(), "what is waited for is not written");
        write(0);
        assert!(due(), "it is now");
        commit();
        assert!(!due(), "all of it is durable");
        write(5);
        assert!(!due(), "nobody waits");
        shared.want(10);
        assert!(due());
        commit();

        shared.moved(20);
        write(10);
        assert!(!due(), "a part of what moved keeps no promise");
        write(15);
        assert!(due());
        commit();
        assert_eq!((due(), shared.synced()), (false, 20));
    }

    #[test]
    fn what_nobody_asks_to_be_durable_does_not_stay_in_memory() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("세션.jsonl");
        let file = OsFs.open(&path, Open::CreateNew).unwrap();
        let stat = file.stat().unwrap();
        let shared = Shared::new(Arc::new(OsFs));
        shared.opened(&path, Arc::new(file), stat);
        let line = vec![b'x'; 1 << 20];
        let mut len = 0;
        while !shared.lock().is_due() {
            shared.lock().file.clone().unwrap().append(&line).unwrap();
            let at = len;
            len += line.len() as u64;
            shared.wrote(at, &line, len, Vec::new());
            assert!(len < 10 << 20, "memory is bounded");
        }
        let mut work = shared.next().unwrap();
        let done = shared.commit(&mut work);
        shared.lock().take_back(work, done);
        let state = shared.lock();
        assert_eq!((state.kept.len(), state.kept_bytes, state.synced), (0, 0, len));
    }
}
