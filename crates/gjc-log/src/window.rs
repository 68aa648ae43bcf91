//! A stretch of a session file that holds several lines, read at once.

use crate::fs::FsFile;
use crate::scan::read_line;
use gjc_entry::At;
use std::borrow::Cow;
use std::io;

/// Bytes of a file, kept no longer than for one pass over some of its lines: another program may change the file.
#[derive(Debug, Default)]
pub(crate) struct Window {
    off: u64,
    /// Reused; the first `filled` bytes are the file's.
    buffer: Vec<u8>,
    filled: usize,
}

/// So much is read at once, unless one line is longer.
const MOST: u64 = 64 * 1024;
/// So much that nobody asked for may stand between two lines: reading it costs less than another call.
const GAP: u64 = 4096;

impl Window {
    /// The bytes at a place: out of the window, or read from the file.
    ///
    /// # Errors
    /// As [`read_line`].
    pub(crate) fn read<F: FsFile>(&self, file: &F, at: At) -> io::Result<Cow<'_, [u8]>> {
        self.get(at).map_or_else(|| read_line(file, at).map(Cow::Owned), |bytes| Ok(Cow::Borrowed(bytes)))
    }

    /// Moves the window to the first of some lines if it does not hold it, with as many of the others as stand near behind
    /// it. What cannot be read is not in it.
    pub(crate) fn reach<F: FsFile>(&mut self, file: &F, lines: &[At]) {
        let Some(&first) = lines.first().filter(|at| self.get(**at).is_none()) else { return };
        // A line is proved by the bytes around it.
        let off = first.off.saturating_sub(1);
        let mut end = end_of(first);
        for next in &lines[1..] {
            if next.off < end || next.off - end > GAP || end_of(*next) - off > MOST {
                break;
            }
            end = end_of(*next);
        }
        let Ok(len) = usize::try_from(end.saturating_add(1) - off) else { return };
        if self.buffer.len() < len {
            self.buffer.resize(len, 0);
        }
        (self.off, self.filled) = (off, 0);
        while self.filled < len {
            match file.read_at(&mut self.buffer[self.filled..len], off + self.filled as u64) {
                Ok(got) if got > 0 => self.filled += got,
                _ => return,
            }
        }
    }

    fn get(&self, at: At) -> Option<&[u8]> {
        let from = usize::try_from(at.off.checked_sub(self.off)?).ok()?;
        self.buffer[..self.filled].get(from..from.checked_add(at.len as usize)?)
    }
}

fn end_of(at: At) -> u64 {
    at.off.saturating_add(u64::from(at.len))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::{Fs, Open, sim::SimFs};
    use std::path::Path;

    #[test]
    fn lines_are_the_same_through_any_window() {
        let fs = SimFs::default();
        let file = fs.open(Path::new("/lines"), Open::CreateNew).unwrap();
        let bytes: Vec<u8> = (0..600_000u32).map(|n| ((n * 7) >> 3) as u8).collect();
        file.append(&bytes).unwrap();
        let at = |off, len| At { off, len };
        // Neighbours, a gap, a long one, one before, and ends beyond the file's.
        let lines = [
            at(0, 100),
            at(101, 50),
            at(3000, 1),
            at(9000, 300_000),
            at(309_001, 5),
            at(309_007, 200_000),
            at(20, 7),
            at(599_990, 10),
            at(599_990, 11),
            at(u64::MAX, u32::MAX),
        ];
        let mut window = Window::default();
        for start in 0..lines.len() {
            for (index, &line) in lines.iter().enumerate().skip(start) {
                window.reach(&file, &lines[index..]);
                let (through, plain) = (window.read(&file, line), read_line(&file, line));
                assert_eq!(through.ok().as_deref(), plain.ok().as_deref(), "{line:?}");
            }
        }
    }
}
