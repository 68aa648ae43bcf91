//! A look at a session file that changes no byte of it.

use crate::error::OpenError;
use crate::fs::{Fs, FsFile, Held, Open, Stat};
use crate::scan::{Scanned, read_line};
use gjc_entry::fields::{FieldError, replace_lone_surrogates};
use gjc_entry::{At, Blobs, Damage, DamageKind, Entry, Header, Leaf, NeedsIndex, Ordinal, PathNodes, Skeleton, Source};
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
    scanned: Scanned,
    header: Header,
    stat: Stat,
}

/// What a [`Reader::refresh`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Nothing new.
    None,
    /// The file grew.
    Grew {
        /// How many entries there are more.
        entries: usize,
    },
}

/// The file is no longer the one that was opened: replaced, cut short, or gone. The snapshot stays as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the session file was replaced, cut short or deleted by another program")]
pub struct Gone;

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
        let stat = file.stat().map_err(failed)?;
        let mut scanned = Scanned::default();
        scanned.scan(&file, stat.len).map_err(failed)?;
        let header = header_of(path, &scanned)?;
        let (damage, tail) = (std::mem::take(&mut scanned.damage), tail_of(&scanned, stat.len));
        let value = Self { file, path: path.into(), scanned, header, stat };
        Ok(Loaded { value, damage, tail })
    }

    /// The file.
    #[must_use]
    pub fn file_path(&self) -> &Path {
        &self.path
    }

    /// The header, with what later lines changed of it.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Takes in what was appended since. The damage in it is added to `damage`.
    ///
    /// # Errors
    /// [`Gone`]; the snapshot stays as it was.
    pub fn refresh(&mut self, fs: &F, damage: &mut Vec<Damage>) -> Result<Change, Gone> {
        let (named, ours) = (fs.stat(&self.path).map_err(|_| Gone)?, self.file.stat().map_err(|_| Gone)?);
        let same = |other: &Stat| (other.dev, other.inode) == (self.stat.dev, self.stat.inode);
        if !same(&named) || !same(&ours) || ours.len < self.scanned.covered {
            return Err(Gone);
        }
        let before = self.scanned.skeleton.len();
        self.scanned.scan(&self.file, ours.len).map_err(|_| Gone)?;
        damage.append(&mut self.scanned.damage);
        self.header = self.scanned.header.clone().unwrap_or_else(|| self.header.clone());
        self.stat = ours;
        Ok(match self.scanned.skeleton.len() - before {
            0 => Change::None,
            entries => Change::Grew { entries },
        })
    }

    /// Whether another process has the session open for writing at this moment: then an unfinished end is not damage.
    pub fn writer_at_work(&self, fs: &F) -> bool {
        // A handle of its own, so that the lock is given back at once where it was free.
        fs.open(&self.path, Open::Read).and_then(|file| file.try_lock()).is_ok_and(|held| held == Held::Other)
    }

    /// Parses every body and says what is wrong with those that cannot be read, or not to the letter. What opening has told
    /// already is not told again.
    #[must_use]
    pub fn verify_bodies(&self) -> Vec<Damage> {
        self.each(|reader, at| {
            reader.body(at)?;
            let damage = |kind| Damage { at, kind };
            let bytes = read_line(&reader.file, at).map_err(|error| damage(DamageKind::Io(error.to_string())))?;
            let text = std::str::from_utf8(&bytes).unwrap_or_default();
            replace_lone_surrogates(text).map_or(Ok(()), |_| Err(damage(DamageKind::Surrogates)))
        })
    }

    /// The entries that need bytes which the blob store does not have: settings whose request cannot be rebuilt, pictures.
    #[must_use]
    pub fn lost_blobs(&self, blobs: &dyn Blobs) -> Vec<Damage> {
        self.each(|reader, at| {
            // One that cannot be read is told by the other look.
            let needed = reader.body(at).map_or(Vec::new(), |entry| entry.blobs());
            let missing = needed.iter().find_map(|blob| blobs.get(blob).err());
            missing.map_or(Ok(()), |missing| Err(Damage { at, kind: DamageKind::Blob(missing) }))
        })
    }

    fn each(&self, look: impl Fn(&Self, At) -> Result<(), Damage>) -> Vec<Damage> {
        self.scanned.skeleton.iter().filter_map(|(_, node)| look(self, node.at()).err()).collect()
    }
}

fn tail_of(scanned: &Scanned, len: u64) -> Tail {
    if scanned.covered == len { Tail::Clean } else { Tail::Growing { at: scanned.covered } }
}

/// The header of a scanned file, if this program reads its version.
pub(crate) fn header_of(path: &Path, scanned: &Scanned) -> Result<Header, OpenError> {
    let path = || path.to_path_buf();
    let header = scanned.header.clone().ok_or_else(|| OpenError::NoHeader {
        path: path(),
        why: scanned.no_header.clone().unwrap_or_else(|| "it has no complete line".into()),
    })?;
    if header.version <= gjc_entry::header::MAX_VERSION {
        Ok(header)
    } else {
        Err(OpenError::Version { path: path(), version: header.version })
    }
}

/// Reads and parses the entry at a place, as its file's version means it and with what later lines changed of it.
pub(crate) fn read_entry<F: FsFile>(file: &F, header: &Header, skeleton: &Skeleton, at: At) -> Result<Entry, Damage> {
    let damage = |kind| Damage { at, kind };
    let read = |at| read_line(file, at).map_err(|error| damage(DamageKind::Io(error.to_string())));
    let bytes = read(at)?;
    let mut entry = if header.is_linear() {
        let place = skeleton.at_offset(at.off).unwrap_or(Ordinal(0));
        parse_with(&bytes, at, |line| Entry::parse_linear(line, place))?
    } else {
        parse_body(&bytes, at)?
    };
    if header.version < gjc_entry::header::MIN_APPENDED {
        entry = entry.migrated();
    }
    match skeleton.patch_of(at) {
        Some(patch) => parse_with(&read(patch)?, at, |line| entry.patched(line)),
        None => Ok(entry),
    }
}

/// Parses one line.
pub(crate) fn parse_body(bytes: &[u8], at: At) -> Result<Entry, Damage> {
    parse_with(bytes, at, Entry::parse)
}

fn parse_with(bytes: &[u8], at: At, parse: impl FnOnce(&str) -> Result<Entry, FieldError>) -> Result<Entry, Damage> {
    let text = std::str::from_utf8(bytes).map_err(|_| Damage { at, kind: DamageKind::Utf8 })?;
    parse(text.trim()).map_err(|error| Damage { at, kind: DamageKind::Body(error.to_string()) })
}

impl<F: Fs> Source for Reader<F> {
    fn path(&self, leaf: Leaf) -> Result<PathNodes, NeedsIndex> {
        Ok(self.scanned.skeleton.path(leaf))
    }

    fn skeleton(&self) -> Option<&Skeleton> {
        Some(&self.scanned.skeleton)
    }

    fn body(&self, at: At) -> Result<Arc<Entry>, Damage> {
        read_entry(&self.file, &self.header, &self.scanned.skeleton, at).map(Arc::new)
    }
}
