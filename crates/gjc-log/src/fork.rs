//! A fork: a whole new file with all entries of another one.
//!
//! The source is only read: it may be open and growing in another process, or damaged. What is taken is a snapshot up to its
//! last whole line; bytes behind it stay where they are. Entries are copied as bytes, nothing that was damaged is mended.
//!
//! The new file is filled and locked under `.<name>.tmp`, synced, and only then renamed, replacing nothing, and its folder
//! synced: at every instant there is no new session, or a whole one. A temporary file that a dead process left is no session
//! and is in nobody's way.
//!
//! **Blocks are shared** where the file system can. For that the entries have to stand at the same place within a block in
//! both files, so between the header and the first entry stands a line of blanks (all programs of the family pass over lines
//! without content). Where nothing can be shared the kernel copies whole blocks, not pieces of two each. Short sessions have
//! no such line.

use crate::backwards::head;
use crate::copy::in_our_version;
use crate::error::{ForkError, OpenError};
use crate::fs::{Fs, FsFile, Held, Open, make_dirs};
use crate::lease::refuses_locks;
use crate::open::temporary_name;
use crate::reader::Reader;
use crate::tail::find_tail;
use gjc_entry::header::VERSION;
use gjc_entry::{At, Damage, Header, Ids, SessionId, Source};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Bytes in a block, on nearly every file system.
const BLOCK: u64 = 4096;
/// Fewer bytes are not worth the line of blanks.
const LEAST_SHARED: u64 = 64 * 1024;
/// What the system is asked to copy at a time, ending at a multiple of it: the page cache of a new file is made of large
/// pieces, and a copy that fits into them takes a fifth less time than one that does not.
const STEP: u64 = 1 << 20;
/// What is copied at a time where the system does not do it.
const BUFFER: u64 = 256 * 1024;

/// What came of a fork.
#[derive(Debug)]
pub struct Forked {
    /// The header of the new file.
    pub header: Header,
    /// The header of the source, with what later lines changed of it.
    pub source: Header,
    /// How long the new file is, in bytes.
    pub len: u64,
    /// How many of them are in blocks that both files share.
    pub shared: u64,
    /// Bytes behind the last whole line of the source, which were left there: its writer is in the middle of a line, or died
    /// in it.
    pub left_behind: u64,
    /// What could not be read of a source of another version than 3. What is damaged in one of version 3 is copied as it is,
    /// and told by whoever opens the new file.
    pub damage: Vec<Damage>,
}

/// Makes the file `to` with this header and all entries of `source`. It can then be opened as any session
/// ([`crate::Writer::open`]).
///
/// The header is written as version 3. A title that it lacks is the source's; where its id is another than the source's,
/// and it names no parent, its parent is the source's id.
///
/// # Errors
/// [`ForkError`]; the source is untouched and there is no new session.
pub fn fork<F: Fs>(fs: &F, source: &Path, to: &Path, header: Header) -> Result<Forked, ForkError> {
    let plan = Plan::of(fs, source)?;
    let header = heir(header, &plan.header);
    let failed = |why| ForkError::Io { from: source.into(), to: to.into(), why };
    let bucket = to.parent().ok_or_else(|| failed(io::Error::other("a session file needs a folder")))?;
    // Another process may have made one a moment ago, and have died before it was durable.
    let mut holders: BTreeSet<PathBuf> = bucket.ancestors().skip(1).take(2).map(Path::to_path_buf).collect();
    make_dirs(fs, bucket, &mut holders).map_err(failed)?;
    if fs.stat(to).is_ok() {
        return Err(ForkError::Exists(to.into()));
    }
    let temporary = temporary_name(to);
    let file = stage(fs, &temporary).map_err(failed)?.ok_or_else(|| ForkError::Busy(to.into()))?;
    let filled = fill(&file, &plan, &header).and_then(|(len, shared)| {
        gjc_fp::fp!("log.fork.filled");
        gjc_fp::fp!("log.fork.sync", io)?;
        file.sync_data()?;
        gjc_fp::fp!("log.fork.synced");
        Ok((len, shared))
    });
    let named = filled.and_then(|done| fs.rename_new(&temporary, to).map(|()| done));
    let (len, shared) = match named {
        Ok(done) => done,
        Err(why) => {
            let _ = fs.unlink(&temporary);
            return Err(match why.kind() {
                io::ErrorKind::AlreadyExists => ForkError::Exists(to.into()),
                _ => failed(why),
            });
        }
    };
    gjc_fp::fp!("log.fork.renamed");
    holders.insert(bucket.into());
    if let Err(why) = holders.iter().try_for_each(|holder| fs.sync_dir(holder)) {
        // It is ours alone: nobody else could write to it while we hold its lock.
        let _ = fs.unlink(to);
        return Err(failed(why));
    }
    gjc_fp::fp!("log.fork.named");
    let Plan { header: source, left_behind, damage, .. } = plan;
    Ok(Forked { header, source, len, shared, left_behind, damage })
}

/// The header of the new file.
fn heir(mut header: Header, source: &Header) -> Header {
    header.version = VERSION;
    if header.title.is_none() {
        header.title.clone_from(&source.title);
        // Who gave it goes with it: the family never replaces a name of a person by one of its own.
        let given = source.extra.iter().filter(|(name, _)| &**name == "titleSource").cloned();
        let given: Vec<_> = given.collect();
        header.extra.retain(|(name, _)| &**name != "titleSource");
        header.extra.extend(given);
    }
    // The same id is the same session in another place.
    if header.id != source.id {
        header.parent.get_or_insert_with(|| source.id.to_string());
    }
    header
}

/// What the new file is made of.
struct Plan<F: Fs> {
    file: F::File,
    header: Header,
    pieces: Vec<Piece>,
    left_behind: u64,
    damage: Vec<Damage>,
}

enum Piece {
    /// Bytes of the source, from here to there.
    Range(u64, u64),
    /// Others.
    Text(Vec<u8>),
}

impl<F: Fs> Plan<F> {
    fn of(fs: &F, source: &Path) -> Result<Self, OpenError> {
        let failed = |why| OpenError::Io { path: source.into(), why };
        let (file, stat) = Reader::handle(fs, source)?;
        let (end, _) = find_tail(&file, stat.len).map_err(failed)?;
        if let Some((header, first)) = head(&file, end).map_err(failed)?.filter(|(header, _)| header.version == VERSION)
        {
            // The blanks of an earlier fork belong to its header.
            let first = behind_blanks(&file, first, end).map_err(failed)?;
            let pieces = vec![Piece::Range(first, end)];
            return Ok(Self { file, header, pieces, left_behind: stat.len - end, damage: Vec::new() });
        }
        let loaded = Reader::open(fs, source)?;
        let (reader, mut damage) = (loaded.value, loaded.damage);
        let header = reader.header().clone();
        let end = end.min(stat.len);
        let pieces = if header.version < VERSION {
            let mut lines = Vec::new();
            let ids = Derived::of(&header.id);
            damage.extend(in_our_version(&reader, &ids, &mut |line, _| lines.extend_from_slice(line)));
            vec![Piece::Text(lines)]
        } else {
            folded(&reader, end, &mut damage)
        };
        Ok(Self { file, header, pieces, left_behind: stat.len - end, damage })
    }
}

/// The lines of a newer version as they are, without those that change the header or entries: the new header is to stay as
/// it is, and what they changed of entries stands in the entries.
fn folded<F: Fs>(reader: &Reader<F>, end: u64, damage: &mut Vec<Damage>) -> Vec<Piece> {
    let Some(tree) = reader.skeleton() else { return Vec::new() };
    // Where other bytes stand in the new file, by where they begin in the source.
    let mut others: BTreeMap<u64, (At, Vec<u8>)> = BTreeMap::new();
    for at in reader.changes() {
        others.insert(at.off, (*at, Vec::new()));
    }
    for (base, patch) in tree.patches() {
        match reader.body(base) {
            Ok(entry) => {
                let mut line = Vec::new();
                entry.write(&mut line);
                line.pop();
                others.insert(base.off, (base, line));
            }
            // What cannot be read stays as it is, and so does what would change it.
            Err(unread) => {
                others.remove(&patch.off);
                damage.push(unread);
            }
        }
    }
    let first = reader.first_entry();
    let (mut pieces, mut from) = (Vec::new(), first);
    for (off, (at, text)) in others {
        if off < from || off >= end {
            continue;
        }
        pieces.push(Piece::Range(from, off));
        pieces.push(Piece::Text(text));
        from = off + u64::from(at.len);
    }
    pieces.push(Piece::Range(from, end));
    pieces
}

/// Where the first line with content begins.
fn behind_blanks<T: FsFile>(file: &T, mut first: u64, end: u64) -> io::Result<u64> {
    let mut bytes = [0; BLOCK as usize];
    let mut at = first;
    while at < end {
        let got = file.read_at(&mut bytes, at)?.min(usize::try_from(end - at).unwrap_or(usize::MAX));
        if got == 0 {
            break;
        }
        let solid = bytes[..got].iter().position(|byte| !byte.is_ascii_whitespace());
        let blank = &bytes[..solid.unwrap_or(got)];
        if let Some(last) = memchr::memrchr(b'\n', blank) {
            first = at + last as u64 + 1;
        }
        if solid.is_some() {
            break;
        }
        at += got as u64;
    }
    Ok(first)
}

/// A file under a temporary name, locked; `None` while another process is at it.
fn stage<F: Fs>(fs: &F, temporary: &Path) -> io::Result<Option<F::File>> {
    let free = |file: &F::File| match file.try_lock() {
        Ok(held) => Ok(held == Held::Ours),
        Err(why) if refuses_locks(&why) => Ok(true),
        Err(why) => Err(why),
    };
    let file = match fs.open(temporary, Open::CreateNew) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let left = fs.open(temporary, Open::Append)?;
            if !free(&left)? {
                return Ok(None);
            }
            fs.unlink(temporary)?;
            fs.open(temporary, Open::CreateNew)?
        }
        opened => opened?,
    };
    gjc_fp::fp!("log.fork.opened");
    if !free(&file)? {
        return Ok(None);
    }
    // Who took it for a left one before it was locked has removed its name.
    let (ours, named) = (file.stat()?, fs.stat(temporary));
    let same = named.is_ok_and(|named| (named.dev, named.inode) == (ours.dev, ours.inode));
    gjc_fp::fp!("log.fork.locked");
    Ok(same.then_some(file))
}

/// Writes header and pieces; how long the file is then, and how much of it is shared.
fn fill<F: Fs>(file: &F::File, plan: &Plan<F>, header: &Header) -> io::Result<(u64, u64)> {
    let mut line = Vec::new();
    header.write(&mut line);
    if let [Piece::Range(from, to)] = plan.pieces[..] {
        let blocks = whole_blocks(from, to);
        if blocks.1 >= LEAST_SHARED {
            return in_blocks(file, &plan.file, line, (from, to), blocks);
        }
    }
    append(file, &line)?;
    let mut len = line.len() as u64;
    for piece in &plan.pieces {
        len += match piece {
            Piece::Range(from, to) => copy(file, &plan.file, *from, *to)?,
            Piece::Text(text) => append(file, text)?,
        };
    }
    Ok((len, 0))
}

/// Where the first whole block between two places begins, and how many bytes there are in such.
fn whole_blocks(from: u64, to: u64) -> (u64, u64) {
    let first = from.next_multiple_of(BLOCK);
    (first, to.saturating_sub(first) / BLOCK * BLOCK)
}

/// Header, blanks and entries, the middle of them in the blocks of the source where it can be.
fn in_blocks<T: FsFile>(
    file: &T,
    source: &T,
    mut begin: Vec<u8>,
    (from, to): (u64, u64),
    (first, len): (u64, u64),
) -> io::Result<(u64, u64)> {
    // Bytes between the header's line and the first entry, so that both stand at the same place within a block.
    let blanks = (BLOCK + from % BLOCK - begin.len() as u64 % BLOCK) % BLOCK;
    if let Some(spaces) = blanks.checked_sub(1) {
        begin.extend(std::iter::repeat_n(b' ', usize::try_from(spaces).map_err(io::Error::other)?));
        begin.push(b'\n');
    }
    let mut made = append(file, &begin)? + copy(file, source, from, first)?;
    let shared = match file.clone_range(source, first, len) {
        Ok(()) => len,
        // For whatever reason: copying finds out what is really wrong.
        Err(_) => copy(file, source, first, first + len).map(|_| 0)?,
    };
    gjc_fp::fp!("log.fork.shared");
    made += len + copy(file, source, first + len, to)?;
    Ok((made, shared))
}

/// Appends the bytes of `source` between two places.
pub(crate) fn copy<T: FsFile>(file: &T, source: &T, mut from: u64, to: u64) -> io::Result<u64> {
    let all = to.saturating_sub(from);
    let mut end = file.stat()?.len;
    while from < to {
        match file.copy_range(source, from, (to - from).min(STEP - end % STEP)) {
            Ok(0) | Err(_) => break,
            Ok(done) => (from, end) = (from + done, end + done),
        }
        gjc_fp::fp!("log.fork.copied");
    }
    let mut buffer = vec![0; usize::try_from(BUFFER.min(to.saturating_sub(from))).map_err(io::Error::other)?];
    while from < to {
        let room = buffer.len().min(usize::try_from(to - from).unwrap_or(usize::MAX));
        let got = source.read_at(&mut buffer[..room], from)?;
        if got == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the file is shorter than it was"));
        }
        append(file, &buffer[..got])?;
        from += got as u64;
    }
    Ok(all)
}

fn append<T: FsFile>(file: &T, bytes: &[u8]) -> io::Result<u64> {
    let mut rest = bytes;
    while !rest.is_empty() {
        match gjc_fp::fp!("log.fork.write", io, rest.len()).and_then(|len| file.append(&rest[..len])) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(wrote) => rest = &rest[wrote..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(bytes.len() as u64)
}

/// Ids for entries that had none of their own: of the session's id, so that a fork needs no source of chance.
struct Derived {
    session: SessionId,
    count: AtomicU32,
}

impl Derived {
    fn of(session: &SessionId) -> Self {
        Self { session: session.clone(), count: AtomicU32::new(0) }
    }
}

impl Ids for Derived {
    fn session(&self) -> SessionId {
        self.session.clone()
    }

    fn entry(&self, taken: &dyn Fn(u32) -> bool) -> u32 {
        loop {
            let count = self.count.fetch_add(1, Ordering::Relaxed);
            let digest = Sha256::digest(format!("{} {count}", self.session));
            let id = u32::from_le_bytes([digest[0], digest[1], digest[2], digest[3]]);
            if !taken(id) {
                return id;
            }
        }
    }
}
