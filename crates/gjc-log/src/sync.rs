//! Durability: a thread of its own syncs, and one number tells how far.

use crate::blobs::Unsynced;
use crate::fs::{Fs, FsFile, Stat};
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// A length of the session file, ordered after the count of files that its writer has moved to. Durability is one
/// monotone value of this type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Lsn {
    /// How many files this writer has moved to.
    pub file: u32,
    /// Bytes of that file.
    pub len: u64,
}

/// How far a session is written and durable, and how storage does.
#[derive(Debug, Clone, Default)]
pub struct Storage {
    /// In the file (or, with a session in memory, taken in).
    pub written: Lsn,
    /// On the platter.
    pub durable: Lsn,
    /// How storage does.
    pub health: Health,
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

/// What the writer hands to the thread.
pub(crate) struct Shared<F: Fs> {
    fs: Arc<F>,
    state: Mutex<State<F>>,
    wake: Condvar,
    storage: watch::Sender<Storage>,
}

struct State<F: Fs> {
    file: Option<Arc<F::File>>,
    /// Blobs that the lines written so far name.
    blobs: Vec<Unsynced<F>>,
    /// Folders with new names in them: that of the blobs, new parents of the session file.
    dirs: BTreeSet<PathBuf>,
    publish: Option<Publish>,
    written: u64,
    durable: u64,
    /// How far somebody waits for.
    wanted: u64,
    /// A failed sync makes everything after the last good one doubtful: the kernel may have dropped those pages.
    broken: Option<Arc<io::Error>>,
    /// Lines wait in memory because they cannot be written.
    unwritable: Option<Arc<io::Error>>,
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
pub(crate) struct Publish {
    pub(crate) temporary: PathBuf,
    pub(crate) path: PathBuf,
}

impl<F: Fs> Shared<F> {
    pub(crate) fn new(fs: Arc<F>) -> Self {
        let state = State {
            file: None,
            blobs: Vec::new(),
            dirs: BTreeSet::new(),
            publish: None,
            written: 0,
            durable: 0,
            wanted: 0,
            broken: None,
            unwritable: None,
            unnamed: None,
            closing: false,
        };
        Self { fs, state: Mutex::new(state), wake: Condvar::new(), storage: watch::Sender::new(Storage::default()) }
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<Storage> {
        self.storage.subscribe()
    }

    /// A file that exists. Who wrote it may not have synced it, so nothing of it counts as durable yet.
    pub(crate) fn opened(&self, file: Arc<F::File>, len: u64) {
        {
            let mut state = self.lock();
            state.file = Some(file);
            state.written = len;
        }
        self.storage.send_modify(|now| now.written.len = len);
    }

    /// A file under a temporary name.
    pub(crate) fn staged(&self, file: Arc<F::File>, publish: Publish) {
        let mut state = self.lock();
        state.file = Some(file);
        state.publish = Some(publish);
    }

    /// Folders that hold new names, to be synced with the next commit.
    pub(crate) fn new_names_in(&self, dirs: BTreeSet<PathBuf>) {
        self.lock().dirs.extend(dirs);
    }

    /// What stands under the name that the file has at this moment: a temporary one until it is published.
    pub(crate) fn stat_name(&self, path: &Path) -> io::Result<Stat> {
        // The lock keeps the thread from renaming in between.
        let state = self.lock();
        self.fs.stat(state.publish.as_ref().map_or(path, |publish| &publish.temporary))
    }

    /// Lines and the blobs that they name are in the file.
    pub(crate) fn wrote(&self, len: u64, blobs: Vec<Unsynced<F>>, blob_dir: Option<&Path>) {
        {
            let mut state = self.lock();
            state.written = len;
            state.unwritable = None;
            if !blobs.is_empty() {
                state.dirs.extend(blob_dir.map(Path::to_path_buf));
                state.blobs.extend(blobs);
            }
        }
        self.storage.send_modify(|now| {
            now.written.len = len;
            // Looked at here, in the order of the changes: a sync that fails at this moment is not overwritten with Ok.
            now.health = self.lock().health();
        });
    }

    /// Lines could not be written.
    pub(crate) fn failed(&self, why: io::Error) {
        self.lock().unwritable = Some(Arc::new(why));
        self.storage.send_modify(|now| now.health = self.lock().health());
    }

    /// A session in memory: what is taken in is as durable as it will ever be.
    pub(crate) fn in_memory(&self, len: u64) {
        self.storage.send_modify(|now| {
            now.written.len = len;
            now.durable.len = len;
        });
    }

    /// Asks for everything up to `len` to become durable.
    pub(crate) fn want(&self, len: u64) {
        let mut state = self.lock();
        state.wanted = state.wanted.max(len);
        self.wake.notify_all();
    }

    /// Lets the thread finish what is wanted, and end.
    pub(crate) fn close(&self) {
        self.lock().closing = true;
        self.wake.notify_all();
    }

    /// The thread.
    pub(crate) fn run(&self) {
        while let Some(work) = self.next() {
            match self.commit(&work) {
                Ok(()) => {
                    {
                        let mut state = self.lock();
                        state.durable = work.written;
                        state.unnamed = None;
                    }
                    self.storage.send_modify(|now| {
                        now.durable.len = work.written;
                        now.health = self.lock().health();
                    });
                }
                Err(Failed::Sync(error)) => {
                    self.lock().broken = Some(Arc::new(error));
                    self.storage.send_modify(|now| now.health = self.lock().health());
                }
                Err(Failed::Name(error)) => {
                    {
                        let mut state = self.lock();
                        state.unnamed = Some(Arc::new(error));
                        state.wanted = state.durable;
                        state.dirs.extend(work.dirs);
                    }
                    self.storage.send_modify(|now| now.health = self.lock().health());
                }
            }
        }
    }

    /// Blobs, their folder, the session, its name: in this order, so that no durable line ever names what is not there.
    fn commit(&self, work: &Work<F>) -> Result<(), Failed> {
        for blob in &work.blobs {
            gjc_fp::fp!("log.sync.blob", io).map_err(Failed::Sync)?;
            blob.file.sync_data().map_err(Failed::Sync)?;
        }
        for dir in &work.dirs {
            gjc_fp::fp!("log.sync.dir", io).map_err(Failed::Name)?;
            self.fs.sync_dir(dir).map_err(Failed::Name)?;
        }
        gjc_fp::fp!("log.sync.data", io).map_err(Failed::Sync)?;
        work.file.sync_data().map_err(Failed::Sync)?;
        gjc_fp::fp!("log.sync.after_data");
        if let Some(Publish { temporary, path }) = &work.publish {
            // The lock keeps an append from looking for the file under the name that it is losing.
            let mut state = self.lock();
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

    fn next(&self) -> Option<Work<F>> {
        let mut state = self.lock();
        loop {
            let due = state.broken.is_none() && state.wanted > state.durable && state.written > state.durable;
            if let Some(file) = state.file.clone().filter(|_| due) {
                return Some(Work {
                    file,
                    blobs: std::mem::take(&mut state.blobs),
                    dirs: std::mem::take(&mut state.dirs),
                    publish: state.publish.as_ref().map(|Publish { temporary, path }| Publish {
                        temporary: temporary.clone(),
                        path: path.clone(),
                    }),
                    written: state.written,
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

/// What failed.
enum Failed {
    /// A sync of content: the kernel may have dropped pages, so nothing that follows proves anything.
    Sync(io::Error),
    /// A name, or the sync of a folder: it can be tried again.
    Name(io::Error),
}

struct Work<F: Fs> {
    file: Arc<F::File>,
    blobs: Vec<Unsynced<F>>,
    dirs: BTreeSet<PathBuf>,
    publish: Option<Publish>,
    written: u64,
}
