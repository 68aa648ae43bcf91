//! A look at a session file that changes no byte of it.

use crate::error::OpenError;
use crate::fs::{Fs, FsFile, Held, Open};
use crate::scan::Scanned;
use gjc_entry::{At, Damage, DamageKind, Entry, Header, Leaf, NeedsIndex, PathNodes, Skeleton, Source};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What was loaded, and what is wrong with it.
#[derive(Debug)]
pub struct Loaded<T> {
    /// The thing.
    pub value: T,
    /// Damage, in file order.
    pub damage: Vec<Damage>,
    /// How the file ends.
    pub tail: Tail,
}

/// How a session file ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tail {
    /// With a line feed.
    Clean,
    /// With bytes after the last line feed: a writer may be in the middle of a line, or died there.
    Growing {
        /// Where those bytes begin.
        at: u64,
    },
}

/// A snapshot of a session file.
#[derive(Debug)]
pub struct Reader<F: Fs> {
    file: F::File,
    path: PathBuf,
    header: Header,
    skeleton: Skeleton,
}

impl<F: Fs> Reader<F> {
    /// Opens a file for looking and indexes it in one pass.
    ///
    /// # Errors
    /// [`OpenError`] when there is no session in it; damage is no error.
    pub fn open(fs: &F, path: &Path) -> Result<Loaded<Self>, OpenError> {
        let failed = |why: io::Error| match why.kind() {
            io::ErrorKind::NotFound => OpenError::NotFound(path.into()),
            _ => OpenError::Io { path: path.into(), why },
        };
        // Opening a pipe would wait for its other end.
        if !fs.stat(path).map_err(failed)?.is_file {
            return Err(failed(io::Error::other("it is no regular file")));
        }
        let file = fs.open(path, Open::Read).map_err(failed)?;
        let len = file.stat().map_err(failed)?.len;
        let mut scanned = Scanned::default();
        scanned.scan(&file, len).map_err(failed)?;
        let tail = if scanned.covered == len { Tail::Clean } else { Tail::Growing { at: scanned.covered } };
        let header = header_of(path, &scanned)?;
        let value = Self { file, path: path.into(), header, skeleton: scanned.skeleton };
        Ok(Loaded { value, damage: scanned.damage, tail })
    }

    /// The file.
    #[must_use]
    pub fn file_path(&self) -> &Path {
        &self.path
    }

    /// The header.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Whether another process has the session open for writing at this moment: then an unfinished end is not damage.
    pub fn writer_at_work(&self, fs: &F) -> bool {
        // A handle of its own, so that the lock is given back at once where it was free.
        fs.open(&self.path, Open::Read).and_then(|file| file.try_lock()).is_ok_and(|held| held == Held::Other)
    }

    /// Parses every body and says what is wrong with those that cannot be read.
    #[must_use]
    pub fn verify_bodies(&self) -> Vec<Damage> {
        self.skeleton.iter().filter_map(|(_, node)| self.body(node.at()).err()).collect()
    }
}

/// The header of a scanned file, if this program reads its version.
pub(crate) fn header_of(path: &Path, scanned: &Scanned) -> Result<Header, OpenError> {
    let path = || path.to_path_buf();
    let header = scanned.header.clone().ok_or_else(|| OpenError::NoHeader {
        path: path(),
        why: scanned.no_header.clone().unwrap_or_else(|| "it has no complete line".into()),
    })?;
    if (gjc_entry::header::VERSION..=gjc_entry::header::MAX_VERSION).contains(&header.version) {
        Ok(header)
    } else {
        Err(OpenError::Version { path: path(), version: header.version })
    }
}

/// Reads and parses one line.
pub(crate) fn read_body<F: FsFile>(file: &F, at: At) -> Result<Entry, Damage> {
    let damage = |kind| Damage { at, kind };
    let mut bytes = vec![0; at.len as usize];
    let mut filled = 0;
    while filled < bytes.len() {
        match file.read_at(&mut bytes[filled..], at.off + filled as u64) {
            Ok(0) => return Err(damage(DamageKind::Io("the file is shorter than it was".into()))),
            Ok(got) => filled += got,
            Err(error) => return Err(damage(DamageKind::Io(error.to_string()))),
        }
    }
    parse_body(&bytes, at)
}

/// Parses one line.
pub(crate) fn parse_body(bytes: &[u8], at: At) -> Result<Entry, Damage> {
    let text = std::str::from_utf8(bytes).map_err(|_| Damage { at, kind: DamageKind::Utf8 })?;
    Entry::parse(text.trim()).map_err(|error| Damage { at, kind: DamageKind::Body(error.to_string()) })
}

impl<F: Fs> Source for Reader<F> {
    fn path(&self, leaf: Leaf) -> Result<PathNodes, NeedsIndex> {
        Ok(self.skeleton.path(leaf))
    }

    fn skeleton(&self) -> Option<&Skeleton> {
        Some(&self.skeleton)
    }

    fn body(&self, at: At) -> Result<Arc<Entry>, Damage> {
        read_body(&self.file, at).map(Arc::new)
    }
}
