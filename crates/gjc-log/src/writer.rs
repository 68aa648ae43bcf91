//! The one owner of a session file.

use crate::artifact::Artifacts;
use crate::blobs::{BlobStore, Unsynced};
use crate::error::Refused;
use crate::foreign::{Unwritable, Watched};
use crate::fs::{Fs, FsFile, Stat, make_dirs};
use crate::index;
use crate::lease::{Lease, Lock};
use crate::reader::{parse_body, read_entry};
use crate::scan::{Frame, Scanned, frame, read_line};
use crate::sync::{Lsn, Shared, Storage};
use crate::tail::append_whole;
use crate::window::Window;
use gjc_entry::tree::{NewNode, Pushed};
use gjc_entry::{
    At, BlobRef, Body, Clock, Damage, DamageKind, DeliveryId, Draft, Entry, EntryId, Header, Ids, Kind, Label, Leaf,
    Message, NeedsIndex, Ordinal, ParentOf, Part, PathNodes, Skeleton, Source, Timestamp,
};
use smallvec::SmallVec;
use std::collections::{BTreeSet, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;

/// A scan reads a line up to 128 MiB, with its line feed; what it would call damage is never written.
const LONGEST: u32 = crate::scan::LONGEST as u32 - 1;

/// When entries are made durable without being asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// When somebody waits for it, which every end of a turn does.
    #[default]
    Turn,
    /// After each batch.
    Entry,
    /// When the writer is asked for it by name ([`Writer::want_durable`]): its owner asks at the close, and until there is a
    /// durable file under the session's name. In between entries are written, and survive the process, not a power cut.
    None,
}

/// What is appended together.
#[derive(Debug)]
pub enum Batch {
    /// One entry.
    One(Draft),
    /// An effect of several entries. The lines may be torn apart, so the intent comes first, and `rest` is a pure function
    /// of it and of what precedes it: opening the session completes it, once.
    Effect {
        /// What shall happen.
        intent: Draft,
        /// What follows from it.
        rest: Vec<Draft>,
    },
}

/// What an append gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Appended {
    /// The new entries' ids.
    pub ids: SmallVec<[EntryId; 4]>,
    /// Durable once [`Storage::durable`] is at least this.
    pub lsn: Lsn,
}

/// What a log is opened with.
pub struct LogEnv<F: Fs> {
    /// The disk.
    pub fs: Arc<F>,
    /// The blobs of the same agent folder.
    pub blobs: Arc<BlobStore<F>>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// New entry ids.
    pub ids: Arc<dyn Ids>,
    /// When entries are made durable without being asked.
    pub durability: Durability,
    /// The agent folder, for index files of large sessions ([`crate::index`]); `None` keeps none.
    pub agent_dir: Option<PathBuf>,
}

impl<F: Fs> Clone for LogEnv<F> {
    fn clone(&self) -> Self {
        Self {
            fs: Arc::clone(&self.fs),
            blobs: Arc::clone(&self.blobs),
            clock: Arc::clone(&self.clock),
            ids: Arc::clone(&self.ids),
            durability: self.durability,
            agent_dir: self.agent_dir.clone(),
        }
    }
}

/// Where the bytes are.
pub(crate) enum Place<F: Fs> {
    /// In memory for good (`--no-session`).
    Memory,
    /// In memory until the first write is due.
    Deferred { path: PathBuf },
    /// In a file that we hold the lock of.
    Disk { path: PathBuf, file: Arc<F::File> },
}

/// The writer of a session: owns the lock, the append handle, what is not written yet, and the skeleton.
///
/// [`Writer::append`] never fails for the sake of storage and never waits for a sync: it takes entries in, writes what it
/// can, and keeps the rest in memory, in order, until it can.
pub struct Writer<F: Fs> {
    pub(crate) env: LogEnv<F>,
    pub(crate) header: Header,
    pub(crate) skeleton: Skeleton,
    pub(crate) place: Place<F>,
    /// Lines that are not in the file yet; the first of them belongs at `written`.
    pub(crate) unwritten: Vec<u8>,
    pub(crate) written: u64,
    /// Up to here the file is as it was found: what stood there belongs to the session, whoever wrote it.
    pub(crate) found: u64,
    /// [`Lsn::file`] of what is given out now.
    pub(crate) moved: u32,
    pub(crate) last: Timestamp,
    /// Whether lines go to disk: not before the first answer.
    pub(crate) due: bool,
    /// Blobs that lines in `unwritten` name.
    unstored: Vec<BlobRef>,
    pub(crate) cache: Cache,
    pub(crate) shared: Arc<Shared<F>>,
    /// Files of the session's own folder that lines in `unwritten` name.
    pub(crate) artifacts: Artifacts,
    /// The longest line, in bytes: an index has 32 bits for it.
    longest: u32,
    thread: Option<std::thread::JoinHandle<()>>,
    pub(crate) watched: Watched,
    pub(crate) damage: Vec<Damage>,
    /// All damage of the file that scans have found, for the index file.
    pub(crate) scars: Vec<Damage>,
    /// Whether the file has lines that only a scan can judge: then no index is left.
    pub(crate) unscanned: bool,
    /// Stands in for the lock where the file system refuses one.
    pub(crate) lease: Option<Lease<F>>,
}

impl<F: Fs> Writer<F> {
    /// A new session. Nothing is on disk until its first assistant message (or [`Writer::make_due`]).
    pub fn create(env: LogEnv<F>, path: PathBuf, header: Header) -> Self {
        Self::begin(env, header, Skeleton::default(), Place::Deferred { path }, None)
    }

    /// A session that lives in memory only.
    pub fn in_memory(env: LogEnv<F>, header: Header) -> Self {
        Self::begin(env, header, Skeleton::default(), Place::Memory, None)
    }

    /// `found`: the file as it was when the skeleton was made of it.
    pub(crate) fn begin(
        env: LogEnv<F>,
        header: Header,
        skeleton: Skeleton,
        place: Place<F>,
        found: Option<Stat>,
    ) -> Self {
        let mut writer = Self {
            shared: Arc::new(Shared::new(Arc::clone(&env.fs))),
            env,
            last: header.at,
            header,
            skeleton,
            unwritten: Vec::new(),
            written: 0,
            found: 0,
            moved: 0,
            due: matches!(place, Place::Disk { .. }),
            unstored: Vec::new(),
            artifacts: Artifacts::default(),
            cache: Cache::default(),
            longest: LONGEST,
            thread: None,
            place,
            watched: Watched::default(),
            damage: Vec::new(),
            scars: Vec::new(),
            unscanned: false,
            lease: None,
        };
        match (&writer.place, found) {
            (Place::Disk { file, path }, Some(stat)) => {
                writer.shared.opened(path, Arc::clone(file), stat);
                (writer.written, writer.found) = (stat.len, stat.len);
                writer.keep_time();
            }
            _ => writer.header.write(&mut writer.unwritten),
        }
        writer
    }

    /// Nothing is ever written with an earlier time than the newest that can be read.
    pub(crate) fn keep_time(&mut self) {
        let newest = self.skeleton.iter().rev().find_map(|(_, node)| Some(self.body(node.at()).ok()?.at));
        self.last = self.last.max(newest.unwrap_or_default());
    }

    /// Takes entries in, as children of the leaf (or where they say), and writes them if a write is due.
    ///
    /// # Errors
    /// [`Refused`]; nothing has changed. Never a failure of storage: that shows in [`Writer::storage`].
    pub fn append(&mut self, batch: Batch) -> Result<Appended, Refused> {
        let drafts: SmallVec<[Draft; 4]> = match batch {
            Batch::One(draft) => SmallVec::from_iter([draft]),
            Batch::Effect { intent, rest } => std::iter::once(intent).chain(rest).collect(),
        };
        if let Some(unknown) = drafts.iter().find_map(|draft| match &draft.parent {
            ParentOf::Id(id) if self.skeleton.find(id).is_none() => Some(id.clone()),
            _ => None,
        }) {
            return Err(Refused::NoSuchParent(unknown));
        }
        let due = drafts.iter().any(|draft| makes_due(&draft.body));
        // All of them are encoded before the first is taken in: a batch is refused whole.
        let start = self.unwritten.len();
        let mut entries: SmallVec<[(At, Entry); 4]> = SmallVec::new();
        for draft in drafts {
            match self.encode(draft, &entries) {
                Ok(entry) => entries.push(entry),
                Err(refused) => {
                    self.unwritten.truncate(start);
                    return Err(refused);
                }
            }
        }
        let ids = entries.into_iter().map(|(at, entry)| self.take(at, entry)).collect();
        self.due |= due;
        match &self.place {
            Place::Memory => self.shared.in_memory(self.end()),
            Place::Deferred { .. } | Place::Disk { .. } => self.write(),
        }
        // After the write: it may have found lines of another program, and ours stand behind them then.
        Ok(Appended { ids, lsn: self.lsn() })
    }

    /// The line of one entry, behind those of the same batch before it. The first of a batch is the intent that the
    /// others name.
    pub(crate) fn encode(&mut self, draft: Draft, before: &[(At, Entry)]) -> Result<(At, Entry), Refused> {
        let skeleton = &self.skeleton;
        let taken = |id| skeleton.has_short(id) || before.iter().any(|(_, entry)| entry.id == EntryId::Short(id));
        let id = EntryId::Short(self.env.ids.entry(&taken));
        let last = before.last().map(|(_, entry)| entry);
        let parent = match draft.parent {
            ParentOf::Leaf => last.map(|entry| entry.id.clone()).or_else(|| Some(skeleton.id(skeleton.leaf()?))),
            ParentOf::Id(id) => Some(id),
            ParentOf::Root => None,
        };
        // A label may be left out only while the session is, and was, public and trusted: readers take a line without one
        // to have the session's label so far.
        let silent = draft.label == Label::PUBLIC_TRUSTED
            && skeleton.label() == Label::PUBLIC_TRUSTED
            && before.iter().all(|(_, entry)| entry.label.is_none());
        let mut extra = draft.extra;
        if let (Some((_, intent)), Ok(n)) = (before.first(), u32::try_from(before.len())) {
            extra.push(Part { of: intent.id.clone(), n }.field());
        }
        let entry = Entry {
            id,
            parent,
            at: self.env.clock.wall().max(last.map_or(self.last, |entry| entry.at)),
            label: (!silent).then_some(draft.label),
            body: draft.body,
            extra,
        };
        let (start, off) = (self.unwritten.len(), self.end());
        entry.write(&mut self.unwritten);
        let line = self.unwritten.len() - start - 1;
        let fits = u32::try_from(line).ok().filter(|len| *len <= self.longest);
        let len = fits.ok_or(Refused::TooLong(line))?;
        Ok((At { off, len }, entry))
    }

    /// An encoded entry becomes part of the session: time, skeleton, cache.
    pub(crate) fn take(&mut self, at: At, entry: Entry) -> EntryId {
        let id = entry.id.clone();
        self.last = entry.at;
        let (kind, parent, label) = (entry.body.kind(), entry.parent.clone(), entry.label);
        self.skeleton.push(NewNode { at, kind, id: id.clone(), parent, label });
        self.cache.keep(at, Arc::new(entry));
        id
    }

    /// Refuses lines from fewer bytes on than a file can hold, for tests.
    #[cfg(feature = "testing")]
    pub fn refuse_longer_than(&mut self, bytes: u32) {
        self.longest = bytes;
    }

    /// Takes in a line of another session (with its line feed) as it is.
    pub(crate) fn take_over(&mut self, line: &[u8], time: Timestamp) {
        let text = line.strip_suffix(b"\n").unwrap_or(line);
        let Ok(Frame { kind, id, parent, label, .. }) = frame(text) else { return };
        let at = At { off: self.end(), len: u32::try_from(text.len()).unwrap_or(u32::MAX) };
        self.unwritten.extend_from_slice(text);
        self.unwritten.push(b'\n');
        self.last = self.last.max(time);
        let pushed = self.skeleton.push(NewNode { at, kind, id, parent, label });
        self.unscanned |= !matches!(pushed, Pushed::New(_));
    }

    /// The bytes of the line at a place, wherever they are by now.
    pub(crate) fn bytes(&self, at: At) -> Result<Vec<u8>, Damage> {
        match (&self.place, at.off.checked_sub(self.written)) {
            // A failed sync may have lost in the file what is not durable yet.
            (Place::Disk { file, .. }, None) => match self.shared.kept(at.off, at.len as usize) {
                Some(line) => Ok(line),
                None => read_line(&**file, at).map_err(|why| Damage { at, kind: DamageKind::Io(why.to_string()) }),
            },
            (_, start) => {
                let start = start.and_then(|start| usize::try_from(start).ok()).unwrap_or(usize::MAX);
                Ok(self.unwritten.get(start..start.saturating_add(at.len as usize)).unwrap_or_default().to_vec())
            }
        }
    }

    /// Takes bytes into the blob store; they are written before the lines that name them.
    pub fn put_blob(&mut self, bytes: &[u8]) -> BlobRef {
        let name = self.env.blobs.hold(bytes);
        let there = self.unstored.contains(&name) || self.env.blobs.is_durable(&name);
        if !matches!(self.place, Place::Memory) && !there {
            self.unstored.push(name);
        }
        name
    }

    /// Makes the first write due at once, for whatever has to be durable before the first answer.
    pub fn make_due(&mut self) {
        self.due = true;
        self.write();
    }

    /// Writes what is not written yet and due; called again while storage fails, also with nothing to write: then it looks
    /// whether the file is well again.
    pub fn write(&mut self) {
        if !self.unwritten.is_empty() || self.shared.failing() {
            self.store();
        }
    }

    fn store(&mut self) {
        if !self.due {
            return;
        }
        let first = self.written == 0;
        if let Err(Unwritable { why, lost }) = self.stage_once().and_then(|()| self.try_write()) {
            self.shared.failed(why, lost);
        } else if first || self.env.durability == Durability::Entry {
            // A new session gets its name only when it is durable: nobody waits for that here, but a process that is
            // killed in the middle of its first turn leaves a session that can be gone on with.
            self.sync_soon();
        }
    }

    fn stage_once(&mut self) -> Result<(), Unwritable> {
        if let Place::Deferred { path } = &self.place {
            let path = path.clone();
            let file = self.stage(&path)?;
            self.place = Place::Disk { path, file };
        }
        Ok(())
    }

    fn try_write(&mut self) -> Result<(), Unwritable> {
        gjc_fp::fp!("log.append.before", io)?;
        let synced_later = self.store_blobs()?;
        let shared = Arc::clone(&self.shared);
        // From the look at the file to the look at what became of it nobody else of this process changes it.
        let mut left = shared.left();
        loop {
            self.look(&mut left)?;
            let Place::Disk { file, .. } = &self.place else { return Ok(()) };
            let at = self.written;
            let end = at + self.unwritten.len() as u64;
            if !self.unwritten.is_empty() {
                let done = append_whole(&**file, &self.unwritten, at);
                *left = file.stat().ok();
                self.watched.uncut =
                    done.as_ref().err().filter(|failed| failed.uncut > 0).map(|failed| at + failed.uncut);
                done.map_err(io::Error::from)?;
                gjc_fp::fp!("log.append.written");
                if left.is_some_and(|left| left.len != end) {
                    // Another program appended between the look and the write; the next look takes its lines in.
                    *left = None;
                    if !lies_at(&**file, &self.unwritten, at) {
                        continue;
                    }
                }
            }
            self.written = end;
            drop(left);
            shared.wrote(at, &self.unwritten, end, synced_later);
            self.unwritten.clear();
            self.unwritten.shrink_to(64 * 1024);
            self.unstored.clear();
            self.artifacts.clear();
            return Ok(());
        }
    }

    fn store_blobs(&self) -> io::Result<Vec<Unsynced<F>>> {
        if let Some(dir) = self.env.blobs.dir().filter(|_| !self.unstored.is_empty()) {
            // A session of another program, or one that was brought here from elsewhere, comes without it.
            // Another writer may have made it a moment ago: its name is synced here too.
            let mut holders: BTreeSet<PathBuf> = dir.parent().map(Path::to_path_buf).into_iter().collect();
            let made = make_dirs(&*self.env.fs, dir, &mut holders);
            self.shared.new_names_in(holders);
            made?;
        }
        let mut synced_later = Vec::new();
        for name in &self.unstored {
            synced_later.extend(self.env.blobs.store(name)?);
        }
        if let Some(file) = self.file_path() {
            synced_later.extend(self.artifacts.store(&*self.env.fs, &self.shared, file)?);
        }
        Ok(synced_later)
    }

    /// When entries are made durable without being asked.
    #[must_use]
    pub fn durability(&self) -> Durability {
        self.env.durability
    }

    /// Writes everything so far, and says how far it has to be written. Wait with [`crate::written`].
    pub fn want_written(&mut self) -> Lsn {
        self.store();
        self.lsn()
    }

    /// Asks for everything so far to become durable. Wait with [`crate::durable`].
    pub fn want_durable(&mut self) -> Lsn {
        // Also with nothing to write: what is made durable shall be the file under the name.
        self.store();
        match self.place {
            Place::Disk { .. } => self.sync_soon(),
            // Nothing that a person would miss: the first answer has not come.
            Place::Deferred { .. } if !self.due => return Lsn::default(),
            Place::Deferred { .. } => {}
            Place::Memory => self.shared.in_memory(self.end()),
        }
        self.lsn()
    }

    /// What is wrong with lines that other programs have added to the file, or changed in it, since this was asked last.
    pub fn take_damage(&mut self) -> Vec<Damage> {
        std::mem::take(&mut self.damage)
    }

    /// What keeps other writers away.
    #[must_use]
    pub fn lock_kind(&self) -> Lock {
        if self.lease.is_some() { Lock::Lease } else { Lock::Kernel }
    }

    /// How storage does, and how far it is.
    #[must_use]
    pub fn storage(&self) -> watch::Receiver<Storage> {
        self.shared.subscribe()
    }

    /// The file; `None` for a session in memory.
    #[must_use]
    pub fn file_path(&self) -> Option<&Path> {
        match &self.place {
            Place::Memory => None,
            Place::Deferred { path } | Place::Disk { path, .. } => Some(path),
        }
    }

    /// Whether anything is on disk.
    #[must_use]
    pub fn on_disk(&self) -> bool {
        matches!(self.place, Place::Disk { .. })
    }

    /// Whether entries are in memory that are due on disk and cannot be written.
    #[must_use]
    pub fn has_unwritten(&self) -> bool {
        self.due && !self.unwritten.is_empty() && !matches!(self.place, Place::Memory)
    }

    /// The header.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The blobs.
    #[must_use]
    pub fn blobs(&self) -> &Arc<BlobStore<F>> {
        &self.env.blobs
    }

    /// The session's taint. It rises also when another program's lines were taken in.
    #[must_use]
    pub fn label(&self) -> Label {
        self.skeleton.label()
    }

    /// The place of the leaf.
    #[must_use]
    pub fn leaf(&self) -> Option<Ordinal> {
        self.skeleton.leaf()
    }

    /// Length with everything that is taken in.
    pub(crate) fn end(&self) -> u64 {
        self.written + self.unwritten.len() as u64
    }

    fn lsn(&self) -> Lsn {
        Lsn { file: self.moved, len: self.end() }
    }

    /// The file system that the session lives on.
    #[must_use]
    pub fn fs(&self) -> &Arc<F> {
        &self.env.fs
    }

    pub(crate) fn shared(&self) -> &Arc<Shared<F>> {
        &self.shared
    }

    /// Wakes the thread that syncs; it is started when it is first needed.
    fn sync_soon(&mut self) {
        if self.thread.is_none() {
            let shared = Arc::clone(&self.shared);
            match std::thread::Builder::new().name("gjc-sync".into()).spawn(move || shared.run()) {
                Ok(thread) => self.thread = Some(thread),
                Err(error) => return self.shared.failed(error, false),
            }
        }
        self.shared.want(self.written);
    }
}

impl<F: Fs> Drop for Writer<F> {
    fn drop(&mut self) {
        gjc_fp::fp!("log.close.before");
        self.shared.close();
        if let Some(thread) = self.thread.take() {
            // The thread ends after the sync that it is in; the lock is free once its handle is gone too.
            let _ = thread.join();
            gjc_fp::fp!("log.close.synced");
        }
        self.keep_index();
    }
}

impl<F: Fs> Writer<F> {
    /// Leaves an index file for the next open of a large session: best effort, while the lock is still ours.
    fn keep_index(&mut self) {
        let (Some(agent_dir), Place::Disk { path, file }) = (&self.env.agent_dir, &self.place) else { return };
        if self.unscanned || self.written == self.found || self.written < index::SMALLEST || !self.unwritten.is_empty()
        {
            return;
        }
        let Some(stat) = file.stat().ok().filter(|stat| Some(*stat) == *self.shared.left()) else { return };
        let kept = index::path_of(agent_dir, path);
        let (skeleton, scars) = (std::mem::take(&mut self.skeleton), std::mem::take(&mut self.scars));
        let scanned = Scanned::from_parts(self.header.clone(), skeleton, scars, self.written, u64::MAX);
        let _ = index::store(&*self.env.fs, &kept, &**file, &stat, &scanned);
    }
}

/// Whether these bytes stand there.
fn lies_at<T: FsFile>(file: &T, bytes: &[u8], at: u64) -> bool {
    crate::tail::own_part(file, bytes, at, at + bytes.len() as u64)
}

/// Whether an entry makes the first write due. Until the model has answered, a session is not worth a file; but what
/// was delivered to it shall not be delivered again.
fn makes_due(body: &Body) -> bool {
    match body {
        Body::Message(Message::Assistant(_)) => true,
        Body::CustomMessage { details: Some(details), .. } => {
            #[derive(serde::Deserialize)]
            struct Details {
                #[serde(rename = "gjc")]
                _gjc: Ours,
            }
            #[derive(serde::Deserialize)]
            struct Ours {
                #[serde(rename = "delivered")]
                _delivered: DeliveryId,
            }
            serde_json::from_str::<Details>(details.get()).is_ok()
        }
        _ => body.kind() == Kind::OwnDelivered,
    }
}

impl<F: Fs> Source for Writer<F> {
    fn path(&self, leaf: Leaf) -> Result<PathNodes, NeedsIndex> {
        Ok(self.skeleton.path(leaf))
    }

    fn skeleton(&self) -> Option<&Skeleton> {
        Some(&self.skeleton)
    }

    fn body(&self, at: At) -> Result<Arc<Entry>, Damage> {
        if let Some(entry) = self.cache.get(at) {
            return Ok(entry);
        }
        let entry = match (&self.place, at.off.checked_sub(self.written)) {
            // A failed sync may have lost in the file what is not durable yet.
            (Place::Disk { file, .. }, None) => match self.shared.kept(at.off, at.len as usize) {
                Some(line) => parse_body(&line, at)?,
                None => read_entry(&**file, &Window::default(), &self.header, &self.skeleton, at)?,
            },
            (_, Some(start)) => {
                let start = usize::try_from(start).unwrap_or(usize::MAX);
                let line = self.unwritten.get(start..start.saturating_add(at.len as usize)).unwrap_or_default();
                parse_body(line, at)?
            }
            (_, None) => parse_body(&[], at)?,
        };
        let entry = Arc::new(entry);
        self.cache.keep(at, Arc::clone(&entry));
        Ok(entry)
    }
}

/// Parsed entries, so that a step of a long session does not parse its path again. Bounded; anything can be read again.
#[derive(Default)]
pub(crate) struct Cache(Mutex<(HashMap<At, Arc<Entry>>, u64)>);

impl Cache {
    const MOST: u64 = 32 << 20;

    pub(crate) fn clear(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Default::default();
    }

    pub(crate) fn get(&self, at: At) -> Option<Arc<Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).0.get(&at).cloned()
    }

    fn keep(&self, at: At, entry: Arc<Entry>) {
        let (entries, bytes) = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if *bytes > Self::MOST {
            entries.clear();
            *bytes = 0;
        }
        entries.insert(at, entry);
        *bytes += u64::from(at.len);
    }
}
