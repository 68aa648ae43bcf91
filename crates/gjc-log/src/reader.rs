//! A look at a session file that changes no byte of it.

use crate::backwards::{self, Found};
use crate::error::OpenError;
use crate::fs::{Fs, FsFile, Held, Open, Stat};
use crate::index::{self, Scars};
use crate::lease;
use crate::scan::{Scanned, first_value, is_json, read_line};
use crate::window::Window;
use gjc_entry::fields::{FieldError, replace_lone_surrogates};
use gjc_entry::{
    At, Blobs, ContextPath, Damage, DamageKind, Entry, Header, Leaf, NeedsIndex, Ordinal, PathNodes, Skeleton, Source,
};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

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

/// So many entries from the leaf on are proved before a path that an index file gave is told.
const PROVED: usize = 4096;

/// A snapshot of a session file.
#[derive(Debug)]
pub struct Reader<F: Fs> {
    file: F::File,
    path: PathBuf,
    header: Header,
    stat: Stat,
    tree: Tree,
    /// The whole file scanned, once an index file turned out to be about another content.
    anew: OnceLock<Scanned>,
}

/// How much of the tree is known.
#[derive(Debug)]
enum Tree {
    /// The end of the active path, with the whole context in it.
    End(Found),
    /// All of it; up to `proved`, an index file said so, and each line that is used has to prove it.
    Whole { scanned: Box<Scanned>, scars: Scars, proved: u64 },
}

impl<F: Fs> Reader<F> {
    /// Opens a file for looking and indexes it in one pass.
    ///
    /// # Errors
    /// [`OpenError`] when there is no session in it; damage is no error.
    pub fn open(fs: &F, path: &Path) -> Result<Loaded<Self>, OpenError> {
        let (file, stat) = Self::handle(fs, path)?;
        let mut scanned = Scanned::default();
        scanned.scan(&file, stat.len).map_err(|why| failed(path, why))?;
        Self::whole(path, file, stat, scanned, 0)
    }

    /// As [`Reader::open`], with the index file that somebody left of exactly this state of the file, which makes it fast and
    /// changes no answer. After a scan of a large file one is left for the next look.
    ///
    /// # Errors
    /// As [`Reader::open`].
    pub fn open_with(fs: &F, path: &Path, agent_dir: &Path) -> Result<Loaded<Self>, OpenError> {
        let (file, stat) = Self::handle(fs, path)?;
        let (scanned, proved) = scan_with(fs, path, agent_dir, &file, &stat)?;
        Self::whole(path, file, stat, scanned, proved)
    }

    /// Opens a file for its context alone, read from its end: the cost grows with the active path, never with the file.
    /// [`Source::context_path`] of the current leaf is known then, and nothing else of the tree. Where the end leaves any
    /// doubt the file is indexed, as by [`Reader::open_with`].
    ///
    /// # Errors
    /// As [`Reader::open`].
    pub fn open_end(fs: &F, path: &Path, agent_dir: &Path) -> Result<Loaded<Self>, OpenError> {
        let (file, stat) = Self::handle(fs, path)?;
        let Ok(found) = backwards::context_path(&file, stat.len).map_err(|why| failed(path, why))? else {
            return Self::open_with(fs, path, agent_dir);
        };
        let tail = tail_of(found.covered, stat.len);
        let header = found.header.clone();
        let value = Self { file, path: path.into(), header, stat, tree: Tree::End(found), anew: OnceLock::new() };
        Ok(Loaded { value, damage: Vec::new(), tail })
    }

    /// Comes to know the whole tree after [`Reader::open_end`]; answers its damage, and whether what was shown of the context
    /// so far holds. An id that a line of the unread part bears as well is the one thing that the end cannot know of.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn complete(&mut self, fs: &F, agent_dir: &Path) -> Result<(Vec<Damage>, bool), OpenError> {
        let Tree::End(found) = &self.tree else { return Ok((Vec::new(), true)) };
        let (mut scanned, proved) = scan_with(fs, &self.path, agent_dir, &self.file, &self.stat)?;
        let holds = found.agrees(&scanned.skeleton);
        self.header = header_of(&self.path, &scanned)?;
        let damage = std::mem::take(&mut scanned.damage);
        let scars = if proved > 0 { Scars::of(&damage) } else { Scars::default() };
        self.tree = Tree::Whole { scanned: Box::new(scanned), scars, proved };
        Ok((damage, holds))
    }

    pub(crate) fn handle(fs: &F, path: &Path) -> Result<(F::File, Stat), OpenError> {
        let failed = |why| failed(path, why);
        // Opening a pipe would wait for its other end.
        if !fs.stat(path).map_err(failed)?.is_file {
            return Err(failed(io::Error::other("it is no regular file")));
        }
        let file = fs.open(path, Open::Read).map_err(failed)?;
        let stat = file.stat().map_err(failed)?;
        Ok((file, stat))
    }

    fn whole(
        path: &Path,
        file: F::File,
        stat: Stat,
        mut scanned: Scanned,
        proved: u64,
    ) -> Result<Loaded<Self>, OpenError> {
        let header = header_of(path, &scanned)?;
        let (damage, tail) = (std::mem::take(&mut scanned.damage), tail_of(scanned.covered, stat.len));
        let tree = Tree::Whole {
            scanned: Box::new(scanned),
            scars: if proved > 0 { Scars::of(&damage) } else { Scars::default() },
            proved,
        };
        let value = Self { file, path: path.into(), header, stat, tree, anew: OnceLock::new() };
        Ok(Loaded { value, damage, tail })
    }

    pub(crate) fn file(&self) -> &F::File {
        &self.file
    }

    /// Where lines that changed others, or the header, stand; none where an index file gave the tree.
    pub(crate) fn changes(&self) -> &[At] {
        self.scanned().map_or(&[], |scanned| &scanned.changes)
    }

    /// Where what stands behind the header begins.
    pub(crate) fn first_entry(&self) -> u64 {
        self.scanned().map_or(0, |scanned| scanned.first)
    }

    /// The text of a line, without what stands behind its record.
    pub(crate) fn line(&self, at: At) -> Option<String> {
        let line = String::from_utf8(read_line(&self.file, at).ok()?).ok()?;
        Some(first_of(line.trim()).to_owned())
    }

    fn scanned(&self) -> Option<&Scanned> {
        self.anew.get().or(match &self.tree {
            Tree::Whole { scanned, .. } => Some(scanned),
            Tree::End(_) => None,
        })
    }

    fn body_through(&self, window: &Window, at: At) -> Result<Arc<Entry>, Damage> {
        self.prove(window, at);
        let Some(skeleton) = self.skeleton() else {
            // Only a file of today's version without changed entries is read from its end.
            let bytes = window.read(&self.file, at);
            let bytes = bytes.map_err(|error| Damage { at, kind: DamageKind::Io(error.to_string()) })?;
            return parse_body(&bytes, at).map(Arc::new);
        };
        read_entry(&self.file, window, &self.header, skeleton, at).map(Arc::new)
    }

    /// Whether the line at a place is what an index file said of it. If it is not, the whole file is scanned anew.
    fn prove(&self, window: &Window, at: At) {
        let Tree::Whole { scanned, scars, proved } = &self.tree else { return };
        if at.off >= *proved || self.anew.get().is_some() {
            return;
        }
        let around = At { off: at.off.saturating_sub(1), len: at.len.saturating_add(2) };
        let place = scanned.skeleton.at_offset(at.off);
        // Entries without ids, or changed ones, say less than an index asks for; their files are small.
        let proves = window
            .read(&self.file, around)
            .is_ok_and(|around| place.is_some_and(|place| index::proves(&around, &scanned.skeleton, place, scars)));
        if !proves {
            self.anew.get_or_init(|| {
                let mut scanned = Scanned::default();
                // What cannot be read is told by whoever reads it next.
                let _ = scanned.scan(&self.file, self.stat.len);
                // What was folded from the other one is to be folded again.
                let mut tree = Skeleton::default();
                tree.replace(std::mem::take(&mut scanned.skeleton));
                scanned.skeleton = tree;
                scanned
            });
        }
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

    /// Whether another process has the session open for writing at this moment: then an unfinished end is not damage.
    pub fn writer_at_work(&self, fs: &F) -> bool {
        // A handle of its own, so that the lock is given back at once where it was free.
        match fs.open(&self.path, Open::Read).and_then(|file| file.try_lock()) {
            Ok(held) => held == Held::Other,
            // Where the file system refuses locks, a lease that its owner removes when done.
            Err(why) => lease::refuses_locks(&why) && fs.stat(&lease::path_of(&self.path)).is_ok(),
        }
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
            let behind = text.trim().len() - first_of(text.trim()).len();
            if behind > 0 {
                return Err(damage(DamageKind::Behind(u32::try_from(behind).unwrap_or(u32::MAX))));
            }
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
        let nodes = self.skeleton().into_iter().flat_map(Skeleton::iter);
        nodes.filter_map(|(_, node)| look(self, node.at()).err()).collect()
    }
}

/// The whole tree of a file, from an index file or by a scan, and up to where an index file vouches for it.
fn scan_with<F: Fs>(
    fs: &F,
    path: &Path,
    agent_dir: &Path,
    file: &F::File,
    stat: &Stat,
) -> Result<(Scanned, u64), OpenError> {
    let kept = index::path_of(agent_dir, path);
    if let Some(scanned) = index::load(fs, &kept, file, stat).filter(|kept| kept.covered == stat.len) {
        let proved = scanned.covered;
        return Ok((scanned, proved));
    }
    let mut scanned = Scanned::default();
    scanned.scan(file, stat.len).map_err(|why| failed(path, why))?;
    if scanned.covered == stat.len {
        // Best effort: a folder that cannot be written to costs the next look some milliseconds.
        let _ = index::store(fs, &kept, file, stat, &scanned);
    }
    Ok((scanned, 0))
}

fn tail_of(covered: u64, len: u64) -> Tail {
    if covered == len { Tail::Clean } else { Tail::Growing { at: covered } }
}

fn failed(path: &Path, why: io::Error) -> OpenError {
    match why.kind() {
        io::ErrorKind::NotFound => OpenError::NotFound(path.into()),
        _ => OpenError::Io { path: path.into(), why },
    }
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
pub(crate) fn read_entry<F: FsFile>(
    file: &F,
    window: &Window,
    header: &Header,
    skeleton: &Skeleton,
    at: At,
) -> Result<Entry, Damage> {
    let damage = |kind| Damage { at, kind };
    let read = |at| window.read(file, at).map_err(|error| damage(DamageKind::Io(error.to_string())));
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
        Some(patch) => parse_with(&read(patch)?, at, |line| entry.clone().patched(line)),
        None => Ok(entry),
    }
}

/// Parses one line.
pub(crate) fn parse_body(bytes: &[u8], at: At) -> Result<Entry, Damage> {
    parse_with(bytes, at, Entry::parse)
}

fn parse_with(bytes: &[u8], at: At, parse: impl Fn(&str) -> Result<Entry, FieldError>) -> Result<Entry, Damage> {
    let text = simdutf8::basic::from_utf8(bytes).map_err(|_| Damage { at, kind: DamageKind::Utf8 })?;
    let line = text.trim();
    parse(line)
        .or_else(|error| match first_of(line) {
            whole if whole.len() < line.len() => parse(whole),
            _ => Err(error),
        })
        .map_err(|error| Damage { at, kind: DamageKind::Body(error.to_string()) })
}

/// A line without what stands behind its first whole value: the end of another record may, when a line feed was lost.
fn first_of(line: &str) -> &str {
    let whole = || first_value(line.as_bytes()).and_then(|value| line.get(..value.len()));
    if is_json(line.as_bytes()) { line } else { whole().unwrap_or(line) }
}

impl<F: Fs> Source for Reader<F> {
    fn path(&self, leaf: Leaf) -> Result<PathNodes, NeedsIndex> {
        match (self.scanned(), &self.tree) {
            (Some(scanned), _) => Ok(scanned.skeleton.path(leaf)),
            (None, Tree::End(found)) if leaf == Leaf::Current && found.from_root => Ok(found.nodes.clone()),
            (None, _) => Err(NeedsIndex),
        }
    }

    fn context_path(&self, leaf: Leaf) -> Result<ContextPath, NeedsIndex> {
        match (self.scanned(), &self.tree) {
            (None, Tree::End(found)) if leaf == Leaf::Current => {
                Ok(ContextPath { nodes: found.nodes.clone(), from_root: found.from_root })
            }
            _ => {
                // What is read next anyway is proved first, so that a lie of an index file reaches nobody.
                self.path(leaf)?.0.iter().rev().take(PROVED).for_each(|node| self.prove(&Window::default(), node.at));
                Ok(ContextPath { nodes: self.path(leaf)?, from_root: true })
            }
        }
    }

    fn skeleton(&self) -> Option<&Skeleton> {
        self.scanned().map(|scanned| &scanned.skeleton)
    }

    fn body(&self, at: At) -> Result<Arc<Entry>, Damage> {
        self.body_through(&Window::default(), at)
    }

    fn bodies(&self, places: &mut dyn Iterator<Item = At>, each: &mut dyn FnMut(Result<Arc<Entry>, Damage>)) {
        let (mut window, places) = (Window::default(), places.collect::<Vec<_>>());
        for (index, at) in places.iter().enumerate() {
            window.reach(&self.file, &places[index..]);
            each(self.body_through(&window, *at));
        }
    }
}
