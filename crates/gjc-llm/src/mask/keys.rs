//! Private keys, whole or in pieces: as a file has them, cut off, numbered by a program that shows lines, quoted in a mail.

use super::MASKED;
use regex::Regex;
use std::ops::Range;

const BEGIN: &str = r"-{4,5} ?BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)? ?-{4,5}";
const END: &str = r"-{4,5} ?END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)? ?-{4,5}";
/// Where a line ends, in a text and in a string of JSON.
const BREAK: &str = r"\r?\n|(?:\\+r)?\\+n";
/// A line of a key: what programs put before lines (`12:`, `12→`, `> `, `id_rsa:1:`, `id_rsa-2-`, `+`), and then base64.
const LINE: &str =
    r"^[\s>|│+]*(?:[^\s:]{1,200}[:-])?\s*[0-9]*\s*[:→|│>-]?[\s>|│#*]*(?<body>[A-Za-z0-9+/]+={0,2})?(?<rest>.*)$";
/// What stands before the base64 in some keys.
const HEAD: &str = r"(?:Proc-Type|DEK-Info|Version|Comment|Hash|Charset|Subject|X-[A-Za-z-]+): ";

/// Base64 that is a line of a key for certain.
const LONG: usize = 16;
/// So many lines that are none may stand between two that are: `[12 lines left out]`.
const BETWEEN: usize = 3;

#[derive(Debug)]
pub(super) struct Keys {
    begin: Regex,
    end: Regex,
    line_break: Regex,
    line: Regex,
    head: Regex,
}

/// What a line is.
#[derive(PartialEq)]
enum Line {
    Body,
    /// Base64, but short: the last line of a key, or a word.
    Short,
    Other,
}

impl Keys {
    pub(super) fn new() -> Option<Self> {
        let regex = |pattern| Regex::new(pattern).ok();
        Some(Self {
            begin: regex(BEGIN)?,
            end: regex(END)?,
            line_break: regex(BREAK)?,
            line: regex(LINE)?,
            head: regex(HEAD)?,
        })
    }

    /// A text without them and how many there were, where there were any.
    pub(super) fn out(&self, text: &str) -> Option<(String, usize)> {
        if !text.contains("PRIVATE KEY") {
            return None;
        }
        let found = self.find(text);
        let mut without = String::with_capacity(text.len());
        let mut from = 0;
        for range in &found {
            without.push_str(text.get(from..range.start)?);
            without.push_str(MASKED);
            from = range.end;
        }
        without.push_str(text.get(from..)?);
        (!found.is_empty()).then_some((without, found.len()))
    }

    fn find(&self, text: &str) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        let begins: Vec<_> = self.begin.find_iter(text).map(|begin| begin.range()).collect();
        let ends: Vec<_> = self.end.find_iter(text).map(|end| end.range()).collect();
        let mut ends = ends.into_iter().peekable();
        let mut from = 0;
        for (at, begin) in begins.iter().enumerate() {
            let next = begins.get(at + 1).map_or(text.len(), |next| next.start);
            // Ends without a beginning: the tail of a key.
            while let Some(end) = ends.next_if(|end| end.start < begin.start) {
                found.push(self.tail(text, from..end.end, end.start));
                from = end.end;
            }
            // The end belongs to it when no other key begins before.
            let to = match ends.next_if(|end| end.end <= next) {
                Some(end) => end.end,
                None => begin.end + self.body(&text[begin.end..next]),
            };
            found.push(begin.start..to);
            from = to;
        }
        for end in ends {
            found.push(self.tail(text, from..end.end, end.start));
            from = end.end;
        }
        found
    }

    /// How much of what follows a beginning without an end is of the key.
    fn body(&self, rest: &str) -> usize {
        // A string of a program or of JSON ends what is in it.
        let rest = &rest[..rest.find(['"', '\'', '`']).unwrap_or(rest.len())];
        let (mut taken, mut between, mut last) = (0, 0, Line::Body);
        for line in self.lines(rest) {
            let (kind, end) = self.line(&rest[line.clone()]);
            match kind {
                Line::Body => (taken, between) = (line.start + end, 0),
                Line::Short if last == Line::Body => taken = line.start + end,
                _ if between == BETWEEN => break,
                _ if rest[line].trim().is_empty() => {}
                _ => between += 1,
            }
            last = kind;
        }
        taken
    }

    /// An end, with the lines of the key before it.
    fn tail(&self, text: &str, within: Range<usize>, end: usize) -> Range<usize> {
        let before = &text[within.start..end];
        let start = before.rfind(['"', '\'', '`']).map_or(0, |quote| quote + 1);
        let mut taken = end;
        let lines: Vec<_> = self.lines(&before[start..]).collect();
        for (back, line) in lines.into_iter().rev().enumerate() {
            let line = within.start + start + line.start..within.start + start + line.end;
            let (kind, _) = self.line(&text[line.clone()]);
            // The first is what stands before the end in its own line, the second may be the short one.
            if kind == Line::Body || (kind == Line::Short && back < 2) {
                taken = line.start;
            } else if back > 0 {
                break;
            }
        }
        taken..within.end
    }

    fn lines<'a>(&'a self, text: &'a str) -> impl Iterator<Item = Range<usize>> + 'a {
        let mut from = 0;
        let mut breaks =
            self.line_break.find_iter(text).map(|found| found.range()).chain(std::iter::once(text.len()..text.len()));
        std::iter::from_fn(move || {
            let found = breaks.next()?;
            let line = from..found.start;
            from = found.end;
            Some(line)
        })
    }

    /// What a line is, and where the key ends in it.
    fn line(&self, line: &str) -> (Line, usize) {
        if self.head.is_match(line) {
            return (Line::Body, line.len());
        }
        let Some(found) = self.line.captures(line) else { return (Line::Other, 0) };
        let Some(body) = found.name("body") else { return (Line::Other, 0) };
        let alone = found.name("rest").is_none_or(|rest| rest.as_str().trim().is_empty());
        if body.len() >= LONG {
            (Line::Body, body.end())
        } else if alone && !is_word(body.as_str()) {
            (Line::Short, body.end())
        } else {
            (Line::Other, 0)
        }
    }
}

fn is_word(text: &str) -> bool {
    let small = text.bytes().skip(1).all(|byte| byte.is_ascii_lowercase());
    small && text.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic())
}
