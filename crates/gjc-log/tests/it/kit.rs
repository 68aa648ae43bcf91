//! What the tests of the log share.

use gjc_entry::{Body, Header, Ids, SessionId, Source, Timestamp};
use gjc_log::fs::{Fs, FsFile, Open};
use gjc_log::{Batch, BlobStore, Durability, Loaded, Lsn, OpenError, Repaired, Writer, durable};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use testkit::{SeededIds, VirtualClock};

/// A machine with one session on it.
pub(crate) struct Bench<F: Fs> {
    pub(crate) fs: Arc<F>,
    pub(crate) root: PathBuf,
    pub(crate) clock: Arc<VirtualClock>,
    pub(crate) ids: Arc<SeededIds>,
}

impl<F: Fs> Bench<F> {
    pub(crate) fn new(fs: Arc<F>, root: &Path) -> Self {
        Self { fs, root: root.into(), clock: Arc::new(VirtualClock::new()), ids: Arc::new(SeededIds::new(7)) }
    }

    /// The session file; its folders do not exist at first.
    pub(crate) fn path(&self) -> PathBuf {
        self.root.join("sessions/--작업--/s.jsonl")
    }

    fn blobs(&self) -> Arc<BlobStore<F>> {
        Arc::new(BlobStore::new(Arc::clone(&self.fs), Some(self.root.join("blobs"))))
    }

    pub(crate) fn create(&self) -> Writer<F> {
        let header = Header::new(SessionId::new("s").unwrap(), Timestamp::from_millis(1_780_643_934_123), "/작업".into());
        let (fs, clock, ids) = (Arc::clone(&self.fs), Arc::clone(&self.clock), Arc::clone(&self.ids));
        Writer::create(fs, self.path(), header, self.blobs(), clock, ids, Durability::Turn)
    }

    pub(crate) fn memory(&self) -> Writer<F> {
        let header = Header::new(self.ids.session(), Timestamp::from_millis(5), "/작업".into());
        let blobs = Arc::new(BlobStore::new(Arc::clone(&self.fs), None));
        Writer::in_memory(Arc::clone(&self.fs), header, blobs, self.clock.clone(), self.ids.clone())
    }

    pub(crate) fn open(&self) -> Result<(Loaded<Writer<F>>, Repaired), OpenError> {
        let (fs, clock, ids) = (Arc::clone(&self.fs), Arc::clone(&self.clock), Arc::clone(&self.ids));
        Writer::open(fs, &self.path(), self.blobs(), clock, ids, Durability::Turn)
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        read(&*self.fs, &self.path())
    }
}

pub(crate) fn read<F: Fs>(fs: &F, path: &Path) -> Vec<u8> {
    let file = fs.open(path, Open::Read).unwrap();
    let mut bytes = vec![0; usize::try_from(file.stat().unwrap().len).unwrap()];
    let got = file.read_at(&mut bytes, 0).unwrap();
    assert_eq!(got, bytes.len());
    bytes
}

pub(crate) fn add<F: Fs>(writer: &mut Writer<F>, body: Body) -> Lsn {
    writer.append(Batch::One(testkit::session::draft(body))).unwrap().lsn
}

/// Waits until all is durable, or storage fails.
pub(crate) fn sync<F: Fs>(writer: &mut Writer<F>) -> Result<(), Arc<std::io::Error>> {
    let lsn = writer.want_durable();
    let mut storage = writer.storage();
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(durable(&mut storage, lsn))
}

/// The texts of all messages on the active path.
pub(crate) fn texts(source: &dyn Source) -> Vec<String> {
    let (selected, _) = gjc_context::select(source, gjc_entry::Leaf::Current).unwrap();
    selected
        .iter()
        .map(|item| match &item.message {
            gjc_context::ContextMessage::Message(gjc_entry::Message::User(user)) => user.content.text(),
            gjc_context::ContextMessage::Message(gjc_entry::Message::Assistant(said)) => said.text(),
            gjc_context::ContextMessage::Message(gjc_entry::Message::ToolResult(result)) => result.content.text(),
            other => format!("{other:?}"),
        })
        .collect()
}
