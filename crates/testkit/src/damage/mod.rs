//! Session files, the ways in which they are damaged, and a model of what must survive.
//!
//! A damaged file is built from pieces of a sound one, so that it is known which records are still whole. [`Model`] says what any reader owes to such a file. It knows nothing of the log's own scan: it splits at line
//! feeds and asks `serde_json`.

mod model;
mod sound;

pub use model::{Flaw, Look, Lost, Model, NodeSeen, Report, Verdict};
pub use sound::{Record, Sound};

use std::fmt;
use std::ops::Range;

/// A piece of a damaged file.
#[derive(Debug, Clone)]
pub enum Piece {
    /// Bytes of the sound file.
    Keep(Range<usize>),
    /// Other bytes.
    Put(Vec<u8>),
}

/// A damaged file.
#[derive(Debug, Clone)]
pub struct Damaged {
    /// What was done.
    pub kind: &'static str,
    /// Where in the sound file, in bytes (or which line, for kinds that work on lines).
    pub at: usize,
    /// The file.
    pub bytes: Vec<u8>,
    /// Records of the sound file that are whole: index and new offset. One that was doubled stands here twice.
    pub intact: Vec<(usize, usize)>,
}

impl fmt::Display for Damaged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.kind, self.at)
    }
}

/// What was done to a file, to be done at any place.
pub type Kind = (&'static str, fn(&Sound, usize) -> Damaged);

/// The kinds of damage that can happen at any byte.
pub const AT_BYTES: &[Kind] = &[
    ("cut", |sound, at| sound.of("cut", at, vec![Piece::Keep(0..at)])),
    ("NUL over 1", |sound, at| sound.over("NUL over 1", at, &[0; 1])),
    ("NUL over 7", |sound, at| sound.over("NUL over 7", at, &[0; 7])),
    ("NUL over 512", |sound, at| sound.over("NUL over 512", at, &[0; 512])),
    ("NUL over 4096", |sound, at| sound.over("NUL over 4096", at, &[0; 4096])),
    ("NULs between", |sound, at| sound.put("NULs between", at, &[0; 9000])),
    ("flip 0", |sound, at| sound.flip("flip 0", at, 0)),
    ("flip 1", |sound, at| sound.flip("flip 1", at, 1)),
    ("flip 2", |sound, at| sound.flip("flip 2", at, 2)),
    ("flip 3", |sound, at| sound.flip("flip 3", at, 3)),
    ("flip 4", |sound, at| sound.flip("flip 4", at, 4)),
    ("flip 5", |sound, at| sound.flip("flip 5", at, 5)),
    ("flip 6", |sound, at| sound.flip("flip 6", at, 6)),
    ("flip 7", |sound, at| sound.flip("flip 7", at, 7)),
    ("a quote over", |sound, at| sound.over("a quote over", at, b"\"")),
    ("a backslash over", |sound, at| sound.over("a backslash over", at, b"\\")),
    ("a brace over", |sound, at| sound.over("a brace over", at, b"}")),
    ("a line feed over", |sound, at| sound.over("a line feed over", at, b"\n")),
    ("half a letter over", |sound, at| sound.over("half a letter over", at, b"\xED\x95")),
    ("half a letter between", |sound, at| sound.put("half a letter between", at, b"\xED\x95")),
    ("a line feed between", |sound, at| sound.put("a line feed between", at, b"\n")),
    ("a BOM between", |sound, at| sound.put("a BOM between", at, b"\xEF\xBB\xBF")),
    ("a lone surrogate between", |sound, at| sound.put("a lone surrogate between", at, b"\\ud83d")),
    ("a byte missing", |sound, at| sound.without("a byte missing", at..at + 1)),
    ("300 bytes missing", |sound, at| sound.without("300 bytes missing", at..at + 300)),
    // A record cut at `at`, and whole again on the same line (K01), or on the next one (K04).
    ("a cut record glued to its whole", |sound, at| {
        let start = sound.line_at(at).start;
        let pieces = vec![Piece::Keep(0..at), Piece::Keep(start..sound.bytes.len())];
        sound.of("a cut record glued to its whole", at, pieces)
    }),
    ("a record cut, then whole", |sound, at| {
        let start = sound.line_at(at).start;
        let pieces = vec![Piece::Keep(0..at), Piece::Put(b"\n".into()), Piece::Keep(start..sound.bytes.len())];
        sound.of("a record cut, then whole", at, pieces)
    }),
];

/// The kinds of damage that happen to whole lines; the header is line 0 and is not among them.
pub const AT_LINES: &[Kind] = &[
    ("a line twice", |sound, line| {
        let whole = sound.whole_line(line);
        let pieces = vec![Piece::Keep(0..whole.end), Piece::Keep(whole.clone()), Piece::Keep(whole.end..sound.len())];
        sound.of("a line twice", line, pieces)
    }),
    ("a line again at the end", |sound, line| {
        let pieces = vec![Piece::Keep(0..sound.len()), Piece::Keep(sound.whole_line(line))];
        sound.of("a line again at the end", line, pieces)
    }),
    ("an id twice, other content", |sound, line| {
        let whole = sound.whole_line(line);
        let other = sound.other_content(line);
        let pieces = vec![Piece::Keep(0..whole.end), Piece::Put(other), Piece::Keep(whole.end..sound.len())];
        sound.of("an id twice, other content", line, pieces)
    }),
    ("an id before, other content", |sound, line| {
        let whole = sound.whole_line(line);
        let other = sound.other_content(line);
        let pieces = vec![Piece::Keep(0..whole.start), Piece::Put(other), Piece::Keep(whole.start..sound.len())];
        sound.of("an id before, other content", line, pieces)
    }),
    ("a line moved behind the next", |sound, line| {
        let (one, two) = (sound.whole_line(line), sound.whole_line((line + 1).min(sound.records.len() - 1)));
        let rest = two.end.max(one.end);
        let mut pieces = vec![Piece::Keep(0..one.start)];
        if two != one {
            pieces.push(Piece::Keep(two));
        }
        pieces.extend([Piece::Keep(one), Piece::Keep(rest..sound.len())]);
        sound.of("a line moved behind the next", line, pieces)
    }),
    ("a line missing", |sound, line| sound.without("a line missing", sound.whole_line(line))),
    ("a line feed missing", |sound, line| {
        let end = sound.records[line].span.end;
        sound.without("a line feed missing", end..end + 1)
    }),
    ("a line of NULs before", |sound, line| {
        sound.put("a line of NULs before", sound.records[line].span.start, &[&[0; 5000][..], b"\n"].concat())
    }),
    ("a foreign line before", |sound, line| {
        sound.put("a foreign line before", sound.records[line].span.start, b"}{ not json\n")
    }),
    ("another object before", |sound, line| {
        sound.put("another object before", sound.records[line].span.start, b"{\"hello\":[1,2]}\n")
    }),
    ("a blank line before", |sound, line| sound.put("a blank line before", sound.records[line].span.start, b" \t\r\n")),
    ("CRLF from here", |sound, line| {
        let mut pieces = vec![Piece::Keep(0..sound.records[line].span.start)];
        for record in &sound.records[line..] {
            pieces.extend([Piece::Keep(record.span.clone()), Piece::Put(b"\r\n".into())]);
        }
        sound.of("CRLF from here", line, pieces)
    }),
    ("blanks around", |sound, line| {
        let span = sound.records[line].span.clone();
        let pieces = vec![
            Piece::Keep(0..span.start),
            Piece::Put(b" \t".into()),
            Piece::Keep(span.clone()),
            Piece::Put(b" \t\r\n".into()),
            Piece::Keep(span.end + 1..sound.len()),
        ];
        sound.of("blanks around", line, pieces)
    }),
];

impl Sound {
    /// A file of pieces.
    #[must_use]
    pub fn of(&self, kind: &'static str, at: usize, pieces: Vec<Piece>) -> Damaged {
        let mut bytes = Vec::with_capacity(self.bytes.len() + 16);
        let mut intact = Vec::new();
        for piece in pieces {
            let start = bytes.len();
            match piece {
                Piece::Keep(range) => {
                    let whole = |(_, record): &(usize, &Record)| {
                        record.span.start >= range.start && record.span.end <= range.end
                    };
                    let found = self.records.iter().enumerate().filter(whole);
                    intact.extend(found.map(|(index, record)| (index, start + record.span.start - range.start)));
                    bytes.extend_from_slice(&self.bytes[range]);
                }
                Piece::Put(put) => bytes.extend_from_slice(&put),
            }
        }
        Damaged { kind, at, bytes, intact }
    }

    /// `over` instead of the bytes from `at` on; the file keeps its length.
    #[must_use]
    pub fn over(&self, kind: &'static str, at: usize, over: &[u8]) -> Damaged {
        let end = (at + over.len()).min(self.len());
        let pieces = vec![Piece::Keep(0..at), Piece::Put(over[..end - at].to_vec()), Piece::Keep(end..self.len())];
        self.of(kind, at, pieces)
    }

    /// `put` before the byte at `at`.
    #[must_use]
    pub fn put(&self, kind: &'static str, at: usize, put: &[u8]) -> Damaged {
        let pieces = vec![Piece::Keep(0..at), Piece::Put(put.to_vec()), Piece::Keep(at..self.len())];
        self.of(kind, at, pieces)
    }

    /// Without a range.
    #[must_use]
    pub fn without(&self, kind: &'static str, range: Range<usize>) -> Damaged {
        let (start, end) = (range.start, range.end.min(self.len()));
        self.of(kind, start, vec![Piece::Keep(0..start), Piece::Keep(end..self.len())])
    }

    fn flip(&self, kind: &'static str, at: usize, bit: u8) -> Damaged {
        self.over(kind, at, &[self.bytes[at] ^ 1 << bit])
    }
}
