//! Content-addressed bytes: `<agent dir>/blobs/<64 hex>`, the name is the SHA-256 of the content.

use crate::fs::{Fs, FsFile, Open};
use gjc_entry::{BlobRef, Blobs, Missing};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The blobs of an agent folder, or of a session that lives in memory only.
pub struct BlobStore<F: Fs> {
    fs: Arc<F>,
    dir: Option<PathBuf>,
    held: Mutex<HashMap<BlobRef, Arc<[u8]>>>,
}

/// A blob that was written and is not known to be durable yet.
pub(crate) struct Unsynced<F: Fs> {
    pub(crate) file: F::File,
}

impl<F: Fs> BlobStore<F> {
    /// Blobs in a folder; `None` keeps them in memory.
    pub fn new(fs: Arc<F>, dir: Option<PathBuf>) -> Self {
        Self { fs, dir, held: Mutex::default() }
    }

    /// The name of some bytes.
    #[must_use]
    pub fn name(bytes: &[u8]) -> BlobRef {
        BlobRef(Sha256::digest(bytes).into())
    }

    /// Takes bytes in: from now on [`Blobs::get`] gives them. They reach the folder with [`BlobStore::store`].
    pub(crate) fn hold(&self, bytes: &[u8]) -> BlobRef {
        let name = Self::name(bytes);
        self.held().entry(name).or_insert_with(|| bytes.into());
        name
    }

    /// Writes a held blob to the folder: temporary name, bytes, rename. One that is there already is not written again,
    /// but it is given back to be synced, because another process may have written it a moment ago.
    pub(crate) fn store(&self, name: &BlobRef) -> io::Result<Option<Unsynced<F>>> {
        let (Some(dir), Some(bytes)) = (&self.dir, self.held().get(name).cloned()) else { return Ok(None) };
        let path = dir.join(name.hex());
        if let Ok(file) = self.fs.open(&path, Open::Read)
            && file.stat()?.len == bytes.len() as u64
        {
            return Ok(Some(Unsynced { file }));
        }
        let temporary = dir.join(format!(".{}.{}.tmp", name.hex(), std::process::id()));
        let file = match self.fs.open(&temporary, Open::CreateNew) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                // Left by a process of the same number that died here.
                self.fs.unlink(&temporary)?;
                self.fs.open(&temporary, Open::CreateNew)?
            }
            Err(error) => return Err(error),
        };
        gjc_fp::fp!("log.blob.opened");
        let mut rest: &[u8] = &bytes;
        while !rest.is_empty() {
            match file.append(rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(wrote) => rest = &rest[wrote..],
                Err(error) => {
                    let _ = self.fs.unlink(&temporary);
                    return Err(error);
                }
            }
        }
        gjc_fp::fp!("log.blob.written");
        self.fs.rename(&temporary, &path)?;
        gjc_fp::fp!("log.blob.renamed");
        Ok(Some(Unsynced { file }))
    }

    /// The folder.
    pub(crate) fn dir(&self) -> Option<&Path> {
        self.dir.as_deref()
    }

    fn held(&self) -> std::sync::MutexGuard<'_, HashMap<BlobRef, Arc<[u8]>>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<F: Fs> Blobs for BlobStore<F> {
    fn get(&self, blob: &BlobRef) -> Result<Arc<[u8]>, Missing> {
        if let Some(bytes) = self.held().get(blob) {
            return Ok(Arc::clone(bytes));
        }
        let missing = |why: String| Missing { blob: *blob, why };
        let dir = self.dir.as_ref().ok_or_else(|| missing("it was never put in".into()))?;
        let read = || -> io::Result<Vec<u8>> {
            let file = self.fs.open(&dir.join(blob.hex()), Open::Read)?;
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
        };
        let bytes = read().map_err(|error| missing(error.to_string()))?;
        if Self::name(&bytes) != *blob {
            return Err(missing("its content is not what its name says".into()));
        }
        Ok(bytes.into())
    }
}
