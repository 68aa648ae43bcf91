//! Content-addressed bytes: `<agent dir>/blobs/<64 hex>`, the name is the SHA-256 of the content.

use crate::fs::{Fs, FsFile, Open};
use gjc_entry::{BlobRef, Blobs, Missing};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Longer blobs are not kept in memory once they are durable.
const MOST_HELD: usize = 64 * 1024;

/// The blobs of an agent folder, or of a session that lives in memory only.
pub struct BlobStore<F: Fs> {
    fs: Arc<F>,
    dir: Option<PathBuf>,
    held: InMemory,
}

type InMemory = Arc<Mutex<HashMap<BlobRef, Held>>>;

/// A blob in memory.
struct Held {
    bytes: Arc<[u8]>,
    /// Whether it is in the folder, and synced there: until then each writer that names it has to sync it.
    durable: bool,
}

/// A blob, or another whole file, that was written and is not known to be durable yet.
pub(crate) struct Unsynced<F: Fs> {
    dir: PathBuf,
    name: String,
    bytes: Arc<[u8]>,
    /// `None` after a failed sync: the kernel may have dropped its pages, so it is stored anew.
    pub(crate) file: Option<F::File>,
    /// Who holds it in memory.
    holder: Option<(InMemory, BlobRef)>,
}

impl<F: Fs> Unsynced<F> {
    /// The folder that holds its name.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// It, and its name, are durable: the file gives its bytes from now on, unless they are few.
    pub(crate) fn is_durable(&self) {
        let Some((holder, name)) = &self.holder else { return };
        let mut held = holder.lock().unwrap_or_else(PoisonError::into_inner);
        if self.bytes.len() > MOST_HELD {
            held.remove(name);
        } else if let Some(held) = held.get_mut(name) {
            held.durable = true;
        }
    }

    /// Writes it once more, whatever stands under its name: a sync of it has failed.
    pub(crate) fn store_anew(&self, fs: &F) -> io::Result<F::File> {
        write_whole(fs, &self.dir, &self.name, &self.bytes)
    }
}

impl<F: Fs> BlobStore<F> {
    /// Blobs in a folder; `None` keeps them in memory.
    pub fn new(fs: Arc<F>, dir: Option<PathBuf>) -> Self {
        Self { fs, dir, held: Arc::default() }
    }

    /// The name of some bytes.
    #[must_use]
    pub fn name(bytes: &[u8]) -> BlobRef {
        BlobRef(Sha256::digest(bytes).into())
    }

    /// Takes bytes in: from now on [`Blobs::get`] gives them. They reach the folder
    /// through [`crate::Writer::put_blob`] only.
    pub(crate) fn hold(&self, bytes: &[u8]) -> BlobRef {
        let name = Self::name(bytes);
        self.held().entry(name).or_insert_with(|| Held { bytes: bytes.into(), durable: false });
        name
    }

    /// Writes a held blob to the folder: temporary name, bytes, rename. One that is there already, whole, is not written
    /// again, but it is given back to be synced, because another process may have written it a moment ago. Its content is
    /// compared, not its length: a power cut may have left NULs under a good name.
    pub(crate) fn store(&self, name: &BlobRef) -> io::Result<Option<Unsynced<F>>> {
        let (Some(dir), Some(bytes)) = (&self.dir, self.held().get(name).map(|held| Arc::clone(&held.bytes))) else {
            return Ok(None);
        };
        let unsynced = store_whole(&*self.fs, dir, &name.hex(), bytes)?;
        Ok(Some(Unsynced { holder: Some((Arc::clone(&self.held), *name)), ..unsynced }))
    }

    /// Whether nothing is to be done for it any more. What another writer has only stored is no promise yet.
    pub(crate) fn is_durable(&self, name: &BlobRef) -> bool {
        self.held().get(name).is_some_and(|held| held.durable)
    }

    /// The folder.
    pub(crate) fn dir(&self) -> Option<&Path> {
        self.dir.as_deref()
    }

    fn held(&self) -> std::sync::MutexGuard<'_, HashMap<BlobRef, Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes a file under its final name. One that is there already, whole, is left alone.
pub(crate) fn store_whole<F: Fs>(fs: &F, dir: &Path, name: &str, bytes: Arc<[u8]>) -> io::Result<Unsynced<F>> {
    let file = match fs.open(&dir.join(name), Open::Read) {
        Ok(file) if read_all(&file).is_ok_and(|there| there == *bytes) => file,
        _ => write_whole(fs, dir, name, &bytes)?,
    };
    Ok(Unsynced { dir: dir.into(), name: name.into(), bytes, file: Some(file), holder: None })
}

/// Temporary name, bytes, rename.
fn write_whole<F: Fs>(fs: &F, dir: &Path, name: &str, bytes: &[u8]) -> io::Result<F::File> {
    let (temporary, file) = loop {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let count = NEXT.fetch_add(1, Ordering::Relaxed);
        let temporary = dir.join(format!(".{name}.{}-{count}.tmp", std::process::id()));
        match fs.open(&temporary, Open::CreateNew) {
            Ok(file) => break (temporary, file),
            // Left by a process of the same number that died here.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    };
    gjc_fp::fp!("log.blob.opened");
    let mut rest = bytes;
    while !rest.is_empty() {
        match file.append(rest) {
            Ok(wrote) if wrote > 0 => rest = &rest[wrote..],
            failed => {
                let error = failed.err().unwrap_or_else(|| io::ErrorKind::WriteZero.into());
                let _ = fs.unlink(&temporary);
                return Err(error);
            }
        }
    }
    gjc_fp::fp!("log.blob.written");
    fs.rename(&temporary, &dir.join(name))?;
    gjc_fp::fp!("log.blob.renamed");
    Ok(file)
}

/// A whole file.
fn read_all<T: FsFile>(file: &T) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(file.stat()?.len).map_err(io::Error::other)?];
    let mut filled = 0;
    while filled < bytes.len() {
        match file.read_at(&mut bytes[filled..], filled as u64)? {
            0 => break,
            got => filled += got,
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}

impl<F: Fs> Blobs for BlobStore<F> {
    fn get(&self, blob: &BlobRef) -> Result<Arc<[u8]>, Missing> {
        if let Some(held) = self.held().get(blob) {
            return Ok(Arc::clone(&held.bytes));
        }
        let missing = |why: String| Missing { blob: *blob, why };
        let dir = self.dir.as_ref().ok_or_else(|| missing("it was never put in".into()))?;
        let bytes = self
            .fs
            .open(&dir.join(blob.hex()), Open::Read)
            .and_then(|file| read_all(&file))
            .map_err(|error| missing(error.to_string()))?;
        if Self::name(&bytes) != *blob {
            return Err(missing("its content is not what its name says".into()));
        }
        Ok(bytes.into())
    }
}
