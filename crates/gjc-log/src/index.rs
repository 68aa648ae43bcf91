//! The index of a session file, kept beside the sessions: advice that makes opening fast and never changes an answer.
//!
//! `<agent dir>/cache/index/<first 32 hex of SHA-256 of the real path>.gjx`, written by whoever has scanned a large file,
//! read by whoever opens it next. All numbers are little-endian.
//!
//! | bytes | what |
//! |---|---|
//! | 8 | `gjcindex` |
//! | 4 | version of this layout |
//! | 4 | entries |
//! | 8, 8 | device and inode of the session file |
//! | 8 | covered: one past the last indexed line feed |
//! | 16 | the file's modification time, ns |
//! | 8 | lines that were seen |
//! | 8 | XXH3 of the file's first 4 KB (or of what is covered) |
//! | 8, 4 | where the last indexed line begins, and its length |
//! | 8 | XXH3 of that line |
//! | 4 | length of the part behind the records |
//! | 24 × entries | [`gjc_entry::Node`]s |
//! | … | header line, foreign ids, changed entries, damage |
//! | 8 | XXH3 of all bytes before |
//!
//! It is taken when the checksum is right, device and inode are those of the file, the file is at least as long as what
//! is covered, its beginning and the last indexed line are what they were, and, when it has not grown, its modification
//! time too. What was appended since is scanned. What a program may have changed in the middle of a file that grew later
//! is seen when an entry is used: [`proves`] is asked for each line that is read.

use crate::fs::{Fs, FsFile, Open, Stat};
use crate::scan::{Scanned, frame};
use gjc_entry::{At, Damage, DamageKind, EntryId, Header, Node, Ordinal, Skeleton};
use sha2::{Digest, Sha256};
use std::collections::HashSet;
use std::hash::Hasher as _;
use std::io;
use std::path::{Path, PathBuf};
use twox_hash::XxHash3_64;
use zerocopy::{FromZeros, IntoBytes};

/// Files below are scanned in a few milliseconds.
pub const SMALLEST: u64 = 1 << 20;
const MAGIC: &[u8; 8] = b"gjcindex";
/// Another number whenever the layout or the meaning of a field (a [`gjc_entry::Kind`]'s number, say) changes.
const VERSION: u32 = 2;
const HEAD: usize = 96;
const CHECKED: u64 = 4096;
const NODE: usize = size_of::<Node>();
/// So much is read at once: what was read is summed up while it is near.
const CHUNK: usize = 256 * 1024;

/// Where the index of a session file is.
#[must_use]
pub fn path_of(agent_dir: &Path, real_path: &Path) -> PathBuf {
    let hash = Sha256::digest(real_path.as_os_str().as_encoded_bytes());
    let name = hash[..16].iter().fold(String::with_capacity(36), |mut name, byte| {
        name.push(char::from_digit(u32::from(byte >> 4), 16).unwrap_or('0'));
        name.push(char::from_digit(u32::from(byte & 15), 16).unwrap_or('0'));
        name
    });
    agent_dir.join("cache/index").join(name + ".gjx")
}

/// Takes the index of a file in, if it is there and fits; what was appended since is then scanned by
/// [`Scanned::scan`] as usual. Whatever is wrong with it means that there is none.
pub fn load<F: Fs>(fs: &F, index: &Path, file: &F::File, stat: &Stat) -> Option<Scanned> {
    if stat.len < SMALLEST || !fs.stat(index).ok()?.is_file {
        return None;
    }
    let index = fs.open(index, Open::Read).ok()?;
    let len = index.stat().ok()?.len;
    let mut source = Source { file: &index, at: 0, hash: XxHash3_64::new() };
    let head = Head::parse(&source.take(HEAD)?)?;
    let nodes = u64::from(head.nodes) * NODE as u64;
    if len != HEAD as u64 + nodes + u64::from(head.rest) + 8 || !head.fits(file, stat)? {
        return None;
    }
    let nodes = source.nodes(head.nodes)?;
    let rest = source.take(head.rest as usize)?;
    let sum = source.hash.finish();
    if source.take(8)? != sum.to_le_bytes() {
        return None;
    }
    let mut rest = Rest(&rest);
    let header = Header::parse(rest.text()?).ok()?;
    let foreign = (0..rest.number()?).map(|_| rest.text().map(Into::into)).collect::<Option<Vec<_>>>()?;
    let patches = (0..rest.number()?).map(|_| Some((rest.at()?, rest.at()?))).collect::<Option<Vec<_>>>()?;
    let damage = (0..rest.number()?).map(|_| rest.damage()).collect::<Option<Vec<_>>>()?;
    let skeleton = Skeleton::from_parts(nodes, foreign, patches, head.covered)?;
    Some(Scanned::from_parts(header, skeleton, damage, head.covered, head.lines))
}

/// Keeps the index of a file that was scanned: best effort. Not for small files, nor while another program writes.
///
/// # Errors
/// Why it was not kept, for whoever asks; nothing depends on it.
pub fn store<F: Fs>(fs: &F, index: &Path, file: &F::File, stat: &Stat, scanned: &Scanned) -> io::Result<()> {
    if stat.len < SMALLEST {
        return Ok(());
    }
    let Some(bytes) = encode(file, stat, scanned)? else { return Ok(()) };
    if let Some(dir) = index.parent() {
        crate::fs::make_dirs(fs, dir, &mut std::collections::BTreeSet::new())?;
    }
    // A name of its own for each file state: two programs that write at once do not write into each other.
    let mut temporary = index.as_os_str().to_owned();
    temporary.push(format!(".{:016x}.tmp", XxHash3_64::oneshot(&bytes)));
    let temporary = PathBuf::from(temporary);
    let written = fs.open(&temporary, Open::CreateNew).and_then(|file| match file.append(&bytes)? {
        all if all == bytes.len() => Ok(()),
        _ => Err(io::ErrorKind::StorageFull.into()),
    });
    // No sync: an index that a power cut tore has a wrong checksum.
    written.and_then(|()| fs.rename(&temporary, index)).inspect_err(|_| drop(fs.unlink(&temporary)))
}

/// Where damage lets a line begin, end or lose its parent in an unusual way.
#[derive(Debug, Default)]
pub struct Scars {
    /// Where the bytes before a recovered record begin.
    glued_from: HashSet<u64>,
    /// Where they end, and the record begins.
    glued_to: HashSet<u64>,
    /// Where lines without a parent in the file end.
    orphans: HashSet<u64>,
}

impl Scars {
    /// Of the damage of a file.
    #[must_use]
    pub fn of(damage: &[Damage]) -> Self {
        let mut scars = Self::default();
        for Damage { at, kind } in damage {
            let end = at.off.saturating_add(at.len.into());
            match kind {
                DamageKind::Glued => {
                    scars.glued_from.insert(at.off);
                    scars.glued_to.insert(end);
                }
                DamageKind::Orphan(_) => drop(scars.orphans.insert(end)),
                _ => {}
            }
        }
        scars
    }
}

/// Whether a line that was read is what the index says of the entry at a place: asked whenever an entry is used. `around`:
/// the line with the byte before it and the byte behind it. One no, and the whole file is to be scanned anew.
#[must_use]
pub fn proves(around: &[u8], skeleton: &Skeleton, place: Ordinal, scars: &Scars) -> bool {
    let ([before, line @ .., behind], Some(node)) = (around, skeleton.node(place)) else { return false };
    let at = node.at();
    let end = at.off.saturating_add(at.len.into());
    // A record that was recovered stands behind the cut one.
    let begins = *before == b'\n' || scars.glued_to.contains(&at.off);
    // Behind a recovered record a hole may stand.
    let ends = *behind == b'\n' || *behind == 0 || scars.glued_from.contains(&end);
    let Ok(frame) = frame(line) else { return false };
    let parent = match node.parent() {
        Some(parent) => frame.parent == Some(skeleton.id(parent)),
        None => frame.parent.is_none() || scars.orphans.contains(&end),
    };
    let label =
        frame.label.is_none_or(|label| node.label().level >= label.level && node.label().trusted == label.trusted);
    // What has no name has it because another has it.
    let named = !node.is_nameless() || skeleton.find(&skeleton.id(place)).is_some_and(|owner| owner < place);
    begins && ends && named && parent && label && frame.kind == node.kind() && frame.id == skeleton.id(place)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Head {
    nodes: u32,
    dev: u64,
    inode: u64,
    covered: u64,
    mtime_ns: i128,
    lines: u64,
    beginning: u64,
    last_off: u64,
    last_len: u32,
    last: u64,
    rest: u32,
}

impl Head {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let mut bytes = bytes.strip_prefix(MAGIC)?;
        let version = u32::from_le_bytes(take(&mut bytes)?);
        let head = Self {
            nodes: u32::from_le_bytes(take(&mut bytes)?),
            dev: u64::from_le_bytes(take(&mut bytes)?),
            inode: u64::from_le_bytes(take(&mut bytes)?),
            covered: u64::from_le_bytes(take(&mut bytes)?),
            mtime_ns: i128::from_le_bytes(take(&mut bytes)?),
            lines: u64::from_le_bytes(take(&mut bytes)?),
            beginning: u64::from_le_bytes(take(&mut bytes)?),
            last_off: u64::from_le_bytes(take(&mut bytes)?),
            last_len: u32::from_le_bytes(take(&mut bytes)?),
            last: u64::from_le_bytes(take(&mut bytes)?),
            rest: u32::from_le_bytes(take(&mut bytes)?),
        };
        (version == VERSION && bytes.is_empty()).then_some(head)
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&self.nodes.to_le_bytes());
        out.extend_from_slice(&self.dev.to_le_bytes());
        out.extend_from_slice(&self.inode.to_le_bytes());
        out.extend_from_slice(&self.covered.to_le_bytes());
        out.extend_from_slice(&self.mtime_ns.to_le_bytes());
        out.extend_from_slice(&self.lines.to_le_bytes());
        out.extend_from_slice(&self.beginning.to_le_bytes());
        out.extend_from_slice(&self.last_off.to_le_bytes());
        out.extend_from_slice(&self.last_len.to_le_bytes());
        out.extend_from_slice(&self.last.to_le_bytes());
        out.extend_from_slice(&self.rest.to_le_bytes());
    }

    /// Whether it is the index of this file.
    fn fits<F: FsFile>(&self, file: &F, stat: &Stat) -> Option<bool> {
        let same_file = (self.dev, self.inode) == (stat.dev, stat.inode) && self.covered <= stat.len;
        // A file that was only appended to cannot keep its length and change its time.
        let same_time = self.covered < stat.len || self.mtime_ns == stat.mtime_ns;
        let last_end = self.last_off.checked_add(u64::from(self.last_len))?;
        if !same_file || !same_time || last_end != self.covered {
            return Some(false);
        }
        let beginning = hash_of(file, 0, CHECKED.min(self.covered)).ok()?;
        let last = hash_of(file, self.last_off, u64::from(self.last_len)).ok()?;
        Some(beginning == self.beginning && last == self.last)
    }
}

/// The bytes of an index; `None` when there is nothing that should be kept.
fn encode<F: FsFile>(file: &F, stat: &Stat, scanned: &Scanned) -> io::Result<Option<Vec<u8>>> {
    let Some(header) = &scanned.header else { return Ok(None) };
    let nodes = scanned.skeleton.nodes();
    let mut rest = Vec::new();
    let mut line = Vec::new();
    header.write(&mut line);
    put_text(&mut rest, &line[..line.len() - 1]);
    put_number(&mut rest, scanned.skeleton.foreign().len());
    scanned.skeleton.foreign().iter().for_each(|id| put_text(&mut rest, id.as_bytes()));
    put_number(&mut rest, scanned.skeleton.patches().len());
    scanned.skeleton.patches().flat_map(|(base, patch)| [base, patch]).for_each(|at| put_at(&mut rest, at));
    put_number(&mut rest, scanned.damage.len());
    for damage in &scanned.damage {
        if !put_damage(&mut rest, damage) {
            return Ok(None);
        }
    }
    let (Ok(count), Ok(rest_len)) = (u32::try_from(nodes.len()), u32::try_from(rest.len())) else { return Ok(None) };
    let (last_off, last_len) = last_line(file, scanned.covered)?;
    let head = Head {
        nodes: count,
        dev: stat.dev,
        inode: stat.inode,
        covered: scanned.covered,
        mtime_ns: stat.mtime_ns,
        lines: scanned.lines(),
        beginning: hash_of(file, 0, CHECKED.min(scanned.covered))?,
        last_off,
        last_len,
        last: hash_of(file, last_off, u64::from(last_len))?,
        rest: rest_len,
    };
    let mut out = Vec::with_capacity(HEAD + nodes.len() * NODE + rest.len() + 8);
    head.write(&mut out);
    out.extend_from_slice(nodes.as_bytes());
    out.extend_from_slice(&rest);
    let sum = XxHash3_64::oneshot(&out);
    out.extend_from_slice(&sum.to_le_bytes());
    Ok(Some(out))
}

/// The last complete line with its line feed, or as much of its end as is worth a checksum.
fn last_line<F: FsFile>(file: &F, covered: u64) -> io::Result<(u64, u32)> {
    let from = covered.saturating_sub(64 * 1024);
    let bytes = read(file, from, covered - from)?;
    let inner = bytes.len().saturating_sub(1);
    let begin = memchr::memrchr(b'\n', &bytes[..inner]).map_or(0, |feed| feed + 1);
    let len = u32::try_from(bytes.len() - begin).map_err(io::Error::other)?;
    Ok((from + begin as u64, len))
}

fn hash_of<F: FsFile>(file: &F, from: u64, len: u64) -> io::Result<u64> {
    Ok(XxHash3_64::oneshot(&read(file, from, len)?))
}

fn read<F: FsFile>(file: &F, from: u64, len: u64) -> io::Result<Vec<u8>> {
    // No index asks for more; a damaged one must not make room for gigabytes.
    if len > 64 * 1024 {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bytes = vec![0; usize::try_from(len).map_err(io::Error::other)?];
    match file.read_at(&mut bytes, from)? {
        got if got == bytes.len() => Ok(bytes),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// An index that is read from its beginning on, and what was read of it as a checksum.
struct Source<'f, F: FsFile> {
    file: &'f F,
    at: u64,
    hash: XxHash3_64,
}

impl<F: FsFile> Source<'_, F> {
    fn fill(&mut self, bytes: &mut [u8]) -> Option<()> {
        if self.file.read_at(bytes, self.at).ok()? != bytes.len() {
            return None;
        }
        self.at += bytes.len() as u64;
        self.hash.write(bytes);
        Some(())
    }

    fn take(&mut self, len: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; len];
        self.fill(&mut bytes)?;
        Some(bytes)
    }

    fn nodes(&mut self, count: u32) -> Option<Vec<Node>> {
        let mut nodes = Node::new_vec_zeroed(count as usize).ok()?;
        crate::memory::prefer_huge_pages(nodes.as_mut_bytes());
        for chunk in nodes.as_mut_bytes().chunks_mut(CHUNK) {
            self.fill(chunk)?;
        }
        Some(nodes)
    }
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*first)
}

fn put_number(out: &mut Vec<u8>, number: usize) {
    out.extend_from_slice(&u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes());
}

fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    put_number(out, text.len());
    out.extend_from_slice(text);
}

fn put_at(out: &mut Vec<u8>, at: At) {
    out.extend_from_slice(&at.off.to_le_bytes());
    out.extend_from_slice(&at.len.to_le_bytes());
}

/// Whether it is damage of the file, and not of this moment.
fn put_damage(out: &mut Vec<u8>, damage: &Damage) -> bool {
    let (tag, text) = match &damage.kind {
        DamageKind::Nul => (0, String::new()),
        DamageKind::Utf8 => (1, String::new()),
        DamageKind::Frame(why) => (2, why.clone()),
        DamageKind::Glued => (3, String::new()),
        DamageKind::Repeated(id) => (4, id.to_string()),
        DamageKind::Orphan(id) => (5, id.to_string()),
        DamageKind::Body(why) => (6, why.clone()),
        DamageKind::Patch(id) => (7, id.to_string()),
        _ => return false,
    };
    put_at(out, damage.at);
    out.push(tag);
    put_text(out, text.as_bytes());
    true
}

/// What stands behind the records.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn number(&mut self) -> Option<u32> {
        take(&mut self.0).map(u32::from_le_bytes)
    }

    fn text(&mut self) -> Option<&'a str> {
        let len = self.number()? as usize;
        let (text, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        std::str::from_utf8(text).ok()
    }

    fn at(&mut self) -> Option<At> {
        Some(At { off: u64::from_le_bytes(take(&mut self.0)?), len: u32::from_le_bytes(take(&mut self.0)?) })
    }

    fn damage(&mut self) -> Option<Damage> {
        let at = self.at()?;
        let [tag] = take(&mut self.0)?;
        let text = self.text()?;
        let kind = match tag {
            0 => DamageKind::Nul,
            1 => DamageKind::Utf8,
            2 => DamageKind::Frame(text.into()),
            3 => DamageKind::Glued,
            4 => DamageKind::Repeated(EntryId::new(text)),
            5 => DamageKind::Orphan(EntryId::new(text)),
            6 => DamageKind::Body(text.into()),
            7 => DamageKind::Patch(EntryId::new(text)),
            _ => return None,
        };
        Some(Damage { at, kind })
    }
}
