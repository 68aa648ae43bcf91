//! A machine with one session on it, on any file system.

use crate::{SeededIds, VirtualClock};
use gjc_entry::{Body, Clock, Header, Ids, Leaf, Message, PathNode, SessionId, Source, Timestamp};
use gjc_log::fs::{Fs, FsFile, Open};
use gjc_log::{Batch, BlobStore, Durability, Health, Loaded, LogEnv, Lsn, OpenError, Repaired, Writer, durable};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A machine with one session on it. Each look at it ([`Bench::open`], [`Bench::bytes`], its end) fails the test when the
/// session file did anything but grow: whole lines that were seen once stay where they are.
pub struct Bench<F: Fs> {
    /// Its disk.
    pub fs: Arc<F>,
    /// The agent folder.
    pub root: PathBuf,
    /// Time.
    pub clock: Arc<VirtualClock>,
    /// Ids, the same in every run.
    pub ids: Arc<SeededIds>,
    /// The whole lines that were seen; `None` while nobody watches.
    seen: Mutex<Option<Vec<u8>>>,
}

impl<F: Fs> Bench<F> {
    /// A machine whose agent folder is `root`.
    pub fn new(fs: Arc<F>, root: &Path) -> Self {
        Self {
            fs,
            root: root.into(),
            clock: Arc::new(VirtualClock::new()),
            ids: Arc::new(SeededIds::new(7)),
            seen: Mutex::new(Some(Vec::new())),
        }
    }

    /// Without the watch, for campaigns that compare the whole content themselves.
    #[must_use]
    pub fn unwatched(self) -> Self {
        *self.seen() = None;
        self
    }

    /// Forgets what was seen, when the test itself cuts or replaces the file.
    pub fn forget(&self) {
        if let Some(seen) = &mut *self.seen() {
            seen.clear();
        }
    }

    fn seen(&self) -> MutexGuard<'_, Option<Vec<u8>>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[track_caller]
    fn watch(&self) {
        let mut seen = self.seen();
        let Some(seen) = &mut *seen else { return };
        if self.fs.stat(&self.path()).is_err() {
            assert!(seen.is_empty(), "the session file vanished");
            return;
        }
        let mut now = read(&*self.fs, &self.path());
        assert!(now.starts_with(seen), "the session file did anything but grow");
        now.truncate(now.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1));
        *seen = now;
    }

    /// The session file; its folders do not exist at first.
    pub fn path(&self) -> PathBuf {
        self.root.join("sessions/--작업--/s.jsonl")
    }

    /// What a log of this machine is opened with.
    pub fn env(&self) -> LogEnv<F> {
        self.env_with(Some(self.root.join("blobs")))
    }

    fn env_with(&self, blobs: Option<PathBuf>) -> LogEnv<F> {
        LogEnv {
            fs: Arc::clone(&self.fs),
            blobs: Arc::new(BlobStore::new(Arc::clone(&self.fs), blobs)),
            clock: Arc::clone(&self.clock) as Arc<dyn Clock>,
            ids: Arc::clone(&self.ids) as Arc<dyn Ids>,
            durability: Durability::Turn,
            agent_dir: None,
        }
    }

    /// A new session.
    pub fn create(&self) -> Writer<F> {
        let header = Header::new(
            SessionId::new("s").expect("a test machine does what it is told"),
            Timestamp::from_millis(1_780_643_934_123),
            "/작업".into(),
        );
        Writer::create(self.env(), self.path(), header)
    }

    /// A session in memory.
    pub fn memory(&self) -> Writer<F> {
        let header = Header::new(self.ids.session(), Timestamp::from_millis(5), "/작업".into());
        Writer::in_memory(self.env_with(None), header)
    }

    /// The session again.
    ///
    /// # Errors
    /// As [`Writer::open`].
    pub fn open(&self) -> Result<(Loaded<Writer<F>>, Repaired), OpenError> {
        self.watch();
        Writer::open(self.env(), &self.path())
    }

    /// The session file.
    pub fn bytes(&self) -> Vec<u8> {
        self.watch();
        read(&*self.fs, &self.path())
    }
}

impl<F: Fs> Drop for Bench<F> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.watch();
        }
    }
}

/// A whole file.
pub fn read<F: Fs>(fs: &F, path: &Path) -> Vec<u8> {
    let file = fs.open(path, Open::Read).expect("a test machine does what it is told");
    let mut bytes = vec![
        0;
        usize::try_from(file.stat().expect("a test machine does what it is told").len)
            .expect("a test machine does what it is told")
    ];
    let got = file.read_at(&mut bytes, 0).expect("a test machine does what it is told");
    assert_eq!(got, bytes.len());
    bytes
}

/// Appends an entry under the leaf.
pub fn add<F: Fs>(writer: &mut Writer<F>, body: Body) -> Lsn {
    writer.append(Batch::One(crate::session::draft(body))).expect("a test machine does what it is told").lsn
}

/// Waits until all is durable, or storage fails.
///
/// # Errors
/// Why it is not.
pub fn sync<F: Fs>(writer: &mut Writer<F>) -> Result<(), Arc<std::io::Error>> {
    let lsn = writer.want_durable();
    let mut storage = writer.storage();
    tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a test machine does what it is told")
        .block_on(durable(&mut storage, lsn))
}

/// Waits until all is durable, though storage fails at first: for a test that has made it well again.
pub fn heal<F: Fs>(writer: &mut Writer<F>) {
    let lsn = writer.want_durable();
    let mut storage = writer.storage();
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a test machine does what it is told");
    let durable = runtime.block_on(storage.wait_for(|now| now.durable >= lsn && matches!(now.health, Health::Ok)));
    drop(durable.expect("the writer is open"));
}

/// Why storage fails, and whether the file is lost.
pub fn failure<F: Fs>(writer: &Writer<F>) -> Option<(String, bool)> {
    let storage = writer.storage().borrow().clone();
    match storage.health {
        Health::Ok => None,
        Health::Failing(why) => Some((why.to_string(), storage.lost)),
    }
}

/// The texts of all messages on the active path.
pub fn texts(source: &dyn Source) -> Vec<String> {
    let path = source.path(Leaf::Current).unwrap_or_else(|error| panic!("{error}"));
    let text = |node: &PathNode| match &source.body(node.at).ok()?.body {
        Body::Message(Message::User(user)) => Some(user.content.text()),
        Body::Message(Message::Assistant(said)) => Some(said.text()),
        Body::Message(Message::ToolResult(result)) => Some(result.content.text()),
        _ => None,
    };
    path.0.iter().filter_map(text).collect()
}
