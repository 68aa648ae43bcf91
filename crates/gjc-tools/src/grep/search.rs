//! The search of one file, line by line, in little memory however long its lines are.

use super::found::Line;
use super::pattern::Pattern;
use crate::page::SHOWN_BYTES;
use crate::walk::Stop;
use grep_matcher::{LineTerminator, Matcher};
use grep_searcher::{BinaryDetection, MmapChoice, Searcher, SearcherBuilder, Sink, SinkContext, SinkFinish, SinkMatch};
use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Characters shown of a line.
pub(crate) const LINE_CHARS: usize = 500;
/// Characters shown before a match that stands far behind.
const LEAD_CHARS: usize = 100;
/// The longest line, in bytes: so much memory a thread.
pub(crate) const LINE_BYTES: usize = 16 << 20;

/// How a file is searched.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Manner {
    /// Lines shown around a match.
    pub(crate) context: usize,
    /// Whether a file with a NUL in it is searched to its end all the same.
    pub(crate) binary: bool,
}

/// What was found in a file.
#[derive(Debug, Default)]
pub(crate) struct Sifted {
    /// The first lines that match, with those around them.
    pub(crate) lines: Vec<Line>,
    /// How many of these match.
    pub(crate) kept: u64,
    /// How many lines match in all.
    pub(crate) hits: u64,
    /// Whether there is a NUL in the file.
    pub(crate) binary: bool,
}

/// Why a search ended early.
#[derive(Debug)]
pub(crate) enum Broken {
    /// It was stopped.
    Stopped,
    /// A line is longer than [`LINE_BYTES`]; what comes before it was searched.
    LongLine,
    /// The file could not be read.
    Io(io::Error),
}

/// Opens a file to be searched. Never waits for the other end of a pipe, and never follows a link if `as_named`.
pub(crate) fn open(path: &Path, as_named: bool) -> io::Result<File> {
    let link = if as_named { OFlags::NOFOLLOW } else { OFlags::empty() };
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY | link).bits();
    OpenOptions::new().read(true).custom_flags(flags.cast_signed()).open(path)
}

/// Searches files, one after another.
pub(crate) struct Search<'s> {
    searcher: Searcher,
    pattern: Pattern,
    stop: &'s Stop,
}

impl<'s> Search<'s> {
    /// A searcher with buffers of its own.
    pub(crate) fn new(pattern: Pattern, manner: Manner, stop: &'s Stop) -> Self {
        let binary = if manner.binary { BinaryDetection::convert(0) } else { BinaryDetection::quit(0) };
        let searcher = SearcherBuilder::new()
            .line_terminator(LineTerminator::crlf())
            .before_context(manner.context)
            .after_context(manner.context)
            .binary_detection(binary)
            .heap_limit(Some(LINE_BYTES))
            // A map of a file that another process cuts is a SIGBUS.
            .memory_map(MmapChoice::never())
            .build();
        Self { searcher, pattern, stop }
    }

    /// Searches a file; at most `keep` matching lines are kept, all are counted.
    pub(crate) fn file(&mut self, file: &File, keep: u64) -> (Sifted, Result<(), Broken>) {
        let mut reader = Watched { file, stop: self.stop, failed: false };
        let mut sink = Sifter { sifted: Sifted::default(), bytes: 0, keep, pattern: &self.pattern, stop: self.stop };
        let done = self.searcher.search_reader(&self.pattern, &mut reader, &mut sink);
        let sifted = sink.sifted;
        let done = match done {
            _ if self.stop.is_set() => Err(Broken::Stopped),
            Ok(()) => Ok(()),
            // The searcher fails by itself only where its buffer may not grow.
            Err(_) if !reader.failed => Err(Broken::LongLine),
            Err(error) => Err(Broken::Io(error)),
        };
        (sifted, done)
    }
}

/// A file that ends when the work shall end.
struct Watched<'s> {
    file: &'s File,
    stop: &'s Stop,
    failed: bool,
}

impl Read for Watched<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.stop.is_set() {
            return Err(io::Error::other("stopped"));
        }
        let read = self.file.read(buffer);
        self.failed |= read.as_ref().is_err_and(|error| error.kind() != io::ErrorKind::Interrupted);
        read
    }
}

struct Sifter<'s> {
    sifted: Sifted,
    bytes: usize,
    keep: u64,
    pattern: &'s Pattern,
    stop: &'s Stop,
}

impl Sifter<'_> {
    fn add(&mut self, number: Option<u64>, hit: bool, line: &[u8]) {
        let line = without_end(line);
        let at = if hit && line.len() > LINE_CHARS {
            self.pattern.find(line).ok().flatten().map_or(0..0, |found| found.start()..found.end())
        } else {
            0..0
        };
        let text = cut(line, at);
        // Empty lines take room too.
        self.bytes += text.len() + 8;
        self.sifted.lines.push(Line { number: number.unwrap_or(0), hit, text });
    }

    fn full(&self) -> bool {
        self.sifted.kept >= self.keep || self.bytes > SHOWN_BYTES
    }
}

impl Sink for Sifter<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        self.sifted.hits += 1;
        if !self.full() {
            self.sifted.kept += 1;
            self.add(found.line_number(), true, found.bytes());
        }
        Ok(!self.stop.is_set())
    }

    fn context(&mut self, _: &Searcher, found: &SinkContext<'_>) -> io::Result<bool> {
        // What follows the last line that is kept is shown as well; there are never more than the context.
        if self.bytes <= SHOWN_BYTES && (!self.full() || self.sifted.hits == self.sifted.kept) && self.keep > 0 {
            self.add(found.line_number(), false, found.bytes());
        }
        Ok(true)
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> io::Result<bool> {
        self.sifted.binary = true;
        Ok(true)
    }

    fn finish(&mut self, _: &Searcher, end: &SinkFinish) -> io::Result<()> {
        self.sifted.binary |= end.binary_byte_offset().is_some();
        Ok(())
    }
}

fn without_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// A line as it is shown: all of it, or the part around what was found at `at`. A cut goes between letters.
fn cut(line: &[u8], at: std::ops::Range<usize>) -> String {
    // No letter takes more than four bytes.
    let head = String::from_utf8_lossy(&line[..on_border(line, line.len().min((LINE_CHARS + 1) * 4))]);
    let Some(end) = nth_letter(&head, LINE_CHARS) else {
        return head.into_owned();
    };
    let told = format!("[… line cut: it has {} bytes]", line.len());
    // A little room for a cut that moves back to the border of a letter.
    let fits = at.end <= LINE_CHARS * 4 && String::from_utf8_lossy(&line[..at.end]).chars().count() + 16 <= LINE_CHARS;
    if fits || at.start == 0 {
        return format!("{} {told}", &head[..end]);
    }
    let start = on_border(line, at.start.saturating_sub(LEAD_CHARS * 4));
    let before = String::from_utf8_lossy(&line[start..at.start]);
    let skip = before.chars().count().saturating_sub(LEAD_CHARS);
    let from = before.char_indices().nth(skip).map_or(before.len(), |(at, _)| at);
    let shown = &before[from..];
    let rest = String::from_utf8_lossy(&line[at.start..on_border(line, line.len().min(at.start + LINE_CHARS * 4))]);
    // The cut before must not go through a letter either.
    let shown = shown.trim_start_matches(follows);
    let room = LINE_CHARS - shown.chars().count();
    let end = nth_letter(&rest, room).unwrap_or(rest.len());
    format!("[…] {shown}{} {told}", &rest[..end])
}

/// The same place, or the nearest before it that is on the border of a character.
fn on_border(line: &[u8], mut at: usize) -> usize {
    for _ in 0..3 {
        if line.get(at).is_none_or(|byte| byte & 0xC0 != 0x80) {
            break;
        }
        at = at.saturating_sub(1);
    }
    at
}

/// Where the character `n` begins, or the letter that it belongs to; `None` if there are not so many.
fn nth_letter(text: &str, n: usize) -> Option<usize> {
    let (at, _) = text.char_indices().nth(n)?;
    let mut cut = at;
    // A letter with more marks than this is none.
    for _ in 0..16 {
        let next = text[cut..].chars().next()?;
        if !follows(next) {
            return Some(cut);
        }
        let Some((before, _)) = text[..cut].char_indices().next_back() else { break };
        cut = before;
    }
    Some(at)
}

/// Whether a character belongs to the letter before it: a mark, a vowel or a final of decomposed 한글.
fn follows(c: char) -> bool {
    unicode_normalization::char::is_combining_mark(c) || matches!(c, '\u{1160}'..='\u{11ff}' | '\u{200d}' | '\u{fe0f}')
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::single_range_in_vec_init)]
    use super::*;
    use proptest::prelude::*;
    use unicode_normalization::UnicodeNormalization;

    #[test]
    fn a_long_line_is_shown_around_what_was_found() {
        let line = format!("{}찾음{}", "가".repeat(5_000), "나".repeat(5_000));
        let shown = cut(line.as_bytes(), 15_000..15_006);
        let expected = format!("[…] {}찾음{}", "가".repeat(100), "나".repeat(398));
        assert_eq!(shown, format!("{expected} [… line cut: it has 30006 bytes]"));
        let shown = cut(line.as_bytes(), 0..3);
        assert_eq!(shown, format!("{} [… line cut: it has 30006 bytes]", "가".repeat(500)));
    }

    #[test]
    fn no_cut_goes_through_a_syllable() {
        let line: String = "각".repeat(400).nfd().collect();
        let shown = cut(line.as_bytes(), 0..0);
        let (kept, told) = shown.split_once(' ').unwrap();
        assert_eq!(kept, "각".repeat(166).nfd().collect::<String>(), "500 characters are 166 syllables and two thirds");
        assert!(told.contains("it has 3600 bytes"));
    }

    proptest! {
        #[test]
        fn whatever_a_line_holds_a_bounded_part_with_the_match_is_shown(
            before in prop::collection::vec(any::<u8>(), 0..3_000), found in "[a-z가각]{1,8}",
            after in "[가-힣a-z]{0,900}", nfd in any::<bool>(),
        ) {
            let before: Vec<u8> = before.into_iter().filter(|byte| *byte != b'\n').collect();
            let after: String = if nfd { after.nfd().collect() } else { after };
            let line = [&before, found.as_bytes(), after.as_bytes()].concat();
            let shown = cut(&line, before.len()..before.len() + found.len());
            prop_assert!(shown.contains(&found), "{shown}");
            prop_assert!(shown.chars().count() <= LINE_CHARS + 60);
        }
    }
}
