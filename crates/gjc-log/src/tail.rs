//! What a dead writer left at the end of a file. Only the holder of the lock repairs it.

use crate::fs::{Fs, FsFile, Open};
use crate::scan;
use gjc_entry::Timestamp;
use std::io;
use std::path::{Path, PathBuf};

/// Bytes that are read at a time.
const WINDOW: usize = 256 * 1024;
/// What is longer is no record (the same border as that of a scan).
const LONGEST: u64 = crate::scan::LONGEST as u64;
/// NULs of a longer hole are counted, not copied.
const LONGEST_HOLE: u64 = 1 << 20;

/// What was done to the end of a file when it was opened for writing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Repaired {
    /// Nothing: it ended with a line feed.
    Nothing,
    /// The last record was whole and got its line feed.
    Completed,
    /// Bytes that are no record were saved beside the session and cut off.
    Cut {
        /// How many.
        bytes: u64,
        /// Where they are kept.
        saved: PathBuf,
    },
}

/// Brings the file to an end after a line feed.
///
/// Bytes after the last line feed that are a whole record get their line feed. Anything else (and trailing NULs, which a
/// power cut leaves) is first appended to `<file>.torn` with its offset and the time, synced, and only then cut: nothing
/// that a person might want to look at is ever lost.
pub(crate) fn repair<F: Fs>(fs: &F, file: &F::File, path: &Path, now: Timestamp) -> io::Result<Repaired> {
    let len = file.stat()?.len;
    // All of it may be longer than memory: a power cut can leave a hole of any length.
    let (start, solid) = find_tail(file, len)?;
    if start == len {
        return Ok(Repaired::Nothing);
    }
    if start == 0 {
        // No complete line at all: the header itself is torn. The opener refuses such a file, so leave it as it is.
        return Ok(Repaired::Nothing);
    }
    let complete = |end: u64| {
        append_all(file, b"\n", end)?;
        gjc_fp::fp!("log.torn.completed");
        Ok::<_, io::Error>(())
    };
    // A hole that a power cut left may stand behind a whole record: then only the hole goes.
    let whole = solid - start <= LONGEST && {
        let mut record = vec![0; usize::try_from(solid - start).map_err(io::Error::other)?];
        read_full(file, &mut record, start)?;
        scan::frame(&record).is_ok() && scan::is_json(&record)
    };
    if whole && solid == len {
        complete(len)?;
        return Ok(Repaired::Completed);
    }
    let start = if whole { solid } else { start };
    let saved = torn_name(path);
    let torn = match fs.open(&saved, Open::CreateNew) {
        Ok(torn) => torn,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => fs.open(&saved, Open::Append)?,
        Err(error) => return Err(error),
    };
    gjc_fp::fp!("log.torn.opened");
    save(file, &torn, (start, solid, len), now)?;
    gjc_fp::fp!("log.torn.appended");
    torn.sync_data()?;
    if let Some(dir) = saved.parent() {
        fs.sync_dir(dir)?;
    }
    gjc_fp::fp!("log.torn.saved");
    file.truncate(start)?;
    gjc_fp::fp!("log.torn.cut");
    if whole {
        complete(start)?;
    }
    Ok(Repaired::Cut { bytes: len - start, saved })
}

/// Copies the bytes from `start` to `len` behind a line about them; of a long hole, which begins at `solid`, only the line
/// tells.
fn save<F: FsFile>(file: &F, torn: &F, (start, solid, len): (u64, u64, u64), now: Timestamp) -> io::Result<()> {
    let (count, hole) = (len - start, len - solid);
    let (told, end) = match hole > LONGEST_HOLE {
        true => (format!(", the last {hole} of them are NUL and left out here"), solid),
        false => (String::new(), len),
    };
    let mut saving = format!("# {count} bytes from byte {start}{told}, cut at {now}\n").into_bytes();
    let base = torn.stat()?.len;
    let (mut from, mut to) = (start, base);
    loop {
        let step = usize::try_from(end - from).unwrap_or(WINDOW).min(WINDOW);
        let filled = saving.len();
        saving.resize(filled + step, 0);
        read_full(file, &mut saving[filled..], from)?;
        from += step as u64;
        if from == end {
            saving.push(b'\n');
        }
        // Half a copy is none: who comes next begins anew.
        append_all(torn, &saving, to).inspect_err(|_| drop(torn.truncate(base)))?;
        to += saving.len() as u64;
        if from == end {
            return Ok(());
        }
        saving.clear();
    }
}

/// `<file>.torn`.
fn torn_name(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".torn");
    name.into()
}

/// Where the bytes after the last line feed begin, and where the NULs at their end begin; looked for from the end.
pub(crate) fn find_tail<F: FsFile>(file: &F, len: u64) -> io::Result<(u64, u64)> {
    let mut buffer = vec![0; usize::try_from(len).unwrap_or(WINDOW).min(WINDOW)];
    let (mut to, mut solid) = (len, None);
    while to > 0 {
        let from = to.saturating_sub(WINDOW as u64);
        let bytes = &mut buffer[..usize::try_from(to - from).map_err(io::Error::other)?];
        read_full(file, bytes, from)?;
        let end = |at: usize| from + at as u64 + 1;
        solid = solid.or_else(|| bytes.iter().rposition(|byte| *byte != 0).map(end));
        if let Some(last) = memchr::memrchr(b'\n', bytes) {
            return Ok((end(last), solid.unwrap_or(len)));
        }
        to = from;
    }
    Ok((0, solid.unwrap_or_default()))
}

pub(crate) fn read_full<F: FsFile>(file: &F, bytes: &mut [u8], from: u64) -> io::Result<()> {
    let mut filled = 0;
    while filled < bytes.len() {
        match file.read_at(&mut bytes[filled..], from + filled as u64)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            got => filled += got,
        }
    }
    Ok(())
}

/// An append that failed.
pub(crate) struct Unappended {
    pub(crate) why: io::Error,
    /// Bytes of ours that stayed in the file, because even cutting back failed.
    pub(crate) uncut: u64,
}

impl From<Unappended> for io::Error {
    fn from(failed: Unappended) -> Self {
        failed.why
    }
}

/// Appends all bytes in one write. After a short write the file is cut back to `base`, so that lines are in it whole or not
/// at all, and nobody else's line can come between their halves.
///
/// # Errors
/// Why they could not be written.
pub(crate) fn append_all<F: FsFile>(file: &F, bytes: &[u8], base: u64) -> io::Result<()> {
    Ok(append_whole(file, bytes, base)?)
}

/// As [`append_all`], and says what it had to leave behind.
pub(crate) fn append_whole<F: FsFile>(file: &F, bytes: &[u8], base: u64) -> Result<(), Unappended> {
    let mut short = false;
    loop {
        match gjc_fp::fp!("log.append.write", io, bytes.len()).and_then(|len| file.append(&bytes[..len])) {
            Ok(wrote) if wrote == bytes.len() => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // The next attempt tells why.
            Ok(wrote) if !short => {
                short = true;
                cut_back(file, bytes, base, wrote)?;
            }
            failed => {
                cut_back(file, bytes, base, *failed.as_ref().unwrap_or(&0))?;
                // A file that takes only a part, twice, has no room for the rest.
                let full = || io::Error::new(io::ErrorKind::StorageFull, "No space left on device");
                return Err(Unappended { why: failed.err().unwrap_or_else(full), uncut: 0 });
            }
        }
    }
}

/// Takes a short write of `wrote` bytes back, unless another program has appended too: nobody else's bytes are ever cut,
/// also those that look like a beginning of ours.
fn cut_back<F: FsFile>(file: &F, bytes: &[u8], base: u64, wrote: usize) -> Result<(), Unappended> {
    let failed = |uncut| move |why| Unappended { why, uncut };
    let len = file.stat().map_err(failed(0))?.len;
    if len == base {
        return Ok(());
    }
    let uncut = wrote as u64;
    if wrote > 0 && len == base + uncut && own_part(file, bytes, base, len) {
        return file.truncate(base).map_err(failed(uncut));
    }
    Err(failed(0)(io::Error::other("another program wrote to the session file at the same moment")))
}

/// Whether what stands behind `base` is a beginning of `bytes`: our own lines, half written, that could not be cut back.
pub(crate) fn own_part<F: FsFile>(file: &F, bytes: &[u8], base: u64, len: u64) -> bool {
    let Some(part) =
        len.checked_sub(base).and_then(|part| usize::try_from(part).ok()).and_then(|part| bytes.get(..part))
    else {
        return false;
    };
    let mut there = vec![0; part.len()];
    let mut filled = 0;
    while filled < there.len() {
        match file.read_at(&mut there[filled..], base + filled as u64) {
            Ok(got) if got > 0 => filled += got,
            _ => return false,
        }
    }
    there == part
}
