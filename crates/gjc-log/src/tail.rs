//! What a dead writer left at the end of a file. Only the holder of the lock repairs it.

use crate::fs::{Fs, FsFile, Open};
use crate::scan;
use gjc_entry::Timestamp;
use std::io;
use std::path::{Path, PathBuf};

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
    let tail = read_tail(file, len)?;
    let start = len - tail.len() as u64;
    if tail.is_empty() {
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
    let (record, hole) = tail.split_at(tail.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1));
    let whole = scan::frame(record).is_ok() && scan::is_json(record);
    if whole && hole.is_empty() {
        complete(len)?;
        return Ok(Repaired::Completed);
    }
    let (start, tail) = if whole { (start + record.len() as u64, hole) } else { (start, &tail[..]) };
    let saved = torn_name(path);
    let torn = match fs.open(&saved, Open::CreateNew) {
        Ok(torn) => torn,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => fs.open(&saved, Open::Append)?,
        Err(error) => return Err(error),
    };
    gjc_fp::fp!("log.torn.opened");
    let mut saving = format!("# {} bytes from byte {start}, cut at {now}\n", tail.len()).into_bytes();
    saving.extend_from_slice(tail);
    saving.push(b'\n');
    append_all(&torn, &saving, torn.stat()?.len)?;
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
    Ok(Repaired::Cut { bytes: tail.len() as u64, saved })
}

/// `<file>.torn`.
fn torn_name(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".torn");
    name.into()
}

/// The bytes after the last line feed, read backwards in growing steps.
fn read_tail<F: FsFile>(file: &F, len: u64) -> io::Result<Vec<u8>> {
    let mut step = 64 * 1024;
    loop {
        let from = len.saturating_sub(step);
        let mut bytes = vec![0; usize::try_from(len - from).map_err(io::Error::other)?];
        let mut filled = 0;
        while filled < bytes.len() {
            match file.read_at(&mut bytes[filled..], from + filled as u64)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                got => filled += got,
            }
        }
        match memchr::memrchr(b'\n', &bytes) {
            Some(last) => return Ok(bytes.split_off(last + 1)),
            None if from == 0 => return Ok(bytes),
            None => step *= 4,
        }
    }
}

/// Appends all bytes in one write. After a short write or an error the file is cut back to `base`, so that lines are in it
/// whole or not at all, and nobody else's line can come between their halves.
///
/// # Errors
/// Why they could not be written. When even cutting back fails, a part of the bytes stays; [`own_part`] recognises it.
pub(crate) fn append_all<F: FsFile>(file: &F, bytes: &[u8], base: u64) -> io::Result<()> {
    let mut short = false;
    loop {
        match gjc_fp::fp!("log.append.write", io, bytes.len()).and_then(|len| file.append(&bytes[..len])) {
            Ok(wrote) if wrote == bytes.len() => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // The next attempt tells why.
            Ok(_) if !short => {
                short = true;
                cut_back(file, bytes, base)?;
            }
            failed => {
                cut_back(file, bytes, base)?;
                // A file that takes only a part, twice, has no room for the rest.
                let full = || io::Error::new(io::ErrorKind::StorageFull, "No space left on device");
                return Err(failed.err().unwrap_or_else(full));
            }
        }
    }
}

/// Takes a short write back, unless another program has appended behind it: nobody else's bytes are ever cut.
fn cut_back<F: FsFile>(file: &F, bytes: &[u8], base: u64) -> io::Result<()> {
    let len = file.stat()?.len;
    if len == base {
        return Ok(());
    }
    if own_part(file, bytes, base, len) {
        return file.truncate(base);
    }
    Err(io::Error::other("another program wrote to the session file at the same moment"))
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
