//! From bytes to the skeleton, without parsing bodies.
//!
//! A line is judged by its frame: no NUL, UTF-8, `{…}`, and the top-level keys of an entry. The scan leaves a line as soon
//! as it has them; a second `"parentId":` outside of strings (quotes inside strings are escaped, so the bytes cannot occur
//! there) makes it look closer, because two records may be glued together.

use crate::fs::FsFile;
use crate::sift::{Sifted, sift, skip_nested, skip_string};
use crate::usual::usual;
use gjc_entry::tree::{NewNode, Pushed};
use gjc_entry::{At, Damage, DamageKind, EntryId, Header, Kind, Label, Skeleton};
use memchr::memmem;
use std::borrow::Cow;
use std::io;
use std::sync::LazyLock;

/// What a scan has found so far.
#[derive(Debug, Default)]
pub struct Scanned {
    /// The header, once its line was seen.
    pub header: Option<Header>,
    /// Why the first line is none.
    pub no_header: Option<String>,
    /// The tree.
    pub skeleton: Skeleton,
    /// What is not as it should be.
    pub damage: Vec<Damage>,
    /// Up to where lines are complete: one past the last line feed.
    pub covered: u64,
    lines: u64,
}

/// The frame of an entry.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    /// What it is.
    pub kind: Kind,
    /// Its id.
    pub id: EntryId,
    /// Its parent.
    pub parent: Option<EntryId>,
    /// The label on the line.
    pub label: Option<Label>,
    /// Whether the line has a parent at all, `null` included: every writer of entries gives one.
    pub parented: bool,
    /// Whether a second record may stand on the line.
    pub doubtful: bool,
}

const BUFFER: usize = 256 * 1024;
/// The longest line that is looked at. No entry comes near it; what is longer is damage, and is passed over.
const LONGEST: usize = 1 << 30;
/// Within so many bytes of its beginning an entry has named its parent.
const ENTRY_HEAD: usize = 1024;
/// How many beginnings of entries are tried in one damaged line.
const GLUED_TRIES: usize = 64;
static PARENT_KEY: LazyLock<memmem::Finder<'static>> = LazyLock::new(|| memmem::Finder::new(b"\"parentId\":"));
static RECORD_START: LazyLock<memmem::Finder<'static>> = LazyLock::new(|| memmem::Finder::new(b"{\"type\":\""));

impl Scanned {
    /// As a scan up to `covered` left it.
    pub(crate) fn from_parts(
        header: Header,
        skeleton: Skeleton,
        damage: Vec<Damage>,
        covered: u64,
        lines: u64,
    ) -> Self {
        Self { header: Some(header), no_header: None, skeleton, damage, covered, lines }
    }

    pub(crate) fn lines(&self) -> u64 {
        self.lines
    }

    /// Reads complete lines from `covered` to `len`, through one reused buffer that grows only for a longer line.
    ///
    /// # Errors
    /// When the file cannot be read; what was scanned before stays.
    pub fn scan<F: FsFile>(&mut self, file: &F, len: u64) -> io::Result<()> {
        let mut buffer =
            vec![0; BUFFER.min(usize::try_from(len.saturating_sub(self.covered)).unwrap_or(BUFFER)).max(1)];
        let mut filled = 0;
        let mut read_to = self.covered;
        while read_to < len {
            if filled == buffer.len() {
                if filled >= LONGEST {
                    let Some(next) = pass_over(file, read_to, len)? else { return Ok(()) };
                    let why = "it is longer than a line may be".into();
                    let at = place(self.covered, usize::try_from(next - self.covered).unwrap_or(usize::MAX));
                    self.damage.push(Damage { at, kind: DamageKind::Frame(why) });
                    (self.covered, read_to, filled) = (next, next, 0);
                    self.lines += 1;
                    continue;
                }
                buffer.resize(buffer.len() * 2, 0);
            }
            let room = (buffer.len() - filled).min(usize::try_from(len - read_to).unwrap_or(usize::MAX));
            let got = file.read_at(&mut buffer[filled..filled + room], read_to)?;
            if got == 0 {
                break;
            }
            let searched = filled;
            filled += got;
            read_to += got as u64;
            // Only the new bytes can hold the next line feed.
            let Some(last) = memchr::memrchr(b'\n', &buffer[searched..filled]) else { continue };
            let complete = searched + last + 1;
            let mut start = 0;
            for end in memchr::memchr_iter(b'\n', &buffer[..complete]) {
                let at = self.covered;
                self.covered += (end + 1 - start) as u64;
                self.line(&buffer[start..end], at);
                start = end + 1;
            }
            buffer.copy_within(complete..filled, 0);
            filled -= complete;
        }
        Ok(())
    }

    fn line(&mut self, line: &[u8], off: u64) {
        let number = self.lines;
        self.lines += 1;
        if line.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        if self.header.is_none() && number < 2 {
            return self.header_line(line, number, off);
        }
        match frame(line) {
            Ok(frame) if !frame.doubtful => self.node(frame, off, line.len()),
            Ok(frame) if is_json(line) => self.node(frame, off, line.len()),
            Ok(_) => self.glued(line, off, DamageKind::Frame("two records stand on one line".into())),
            Err(kind) => self.glued(line, off, kind),
        }
    }

    fn header_line(&mut self, line: &[u8], number: u64, off: u64) {
        let text = match std::str::from_utf8(line) {
            Ok(text) => text,
            Err(_) => return self.no_header = Some("the first line is not UTF-8".into()),
        };
        match Header::parse(text.trim_end()) {
            Ok(header) => {
                self.header = Some(header);
                self.no_header = None;
            }
            // Newer programs of the family put a fixed title slot before the header.
            Err(_) if number == 0 && text.starts_with("{\"type\":\"title\"") => {}
            Err(error) => {
                self.no_header = Some(error.to_string());
                self.damage.push(Damage { at: place(off, line.len()), kind: DamageKind::Frame(error.to_string()) });
            }
        }
    }

    /// A damaged line may hold a whole record behind a cut one, or before a hole: each place where an entry may begin is
    /// tried again, a bounded number of times, so that no line costs much more than one look.
    fn glued(&mut self, line: &[u8], off: u64, kind: DamageKind) {
        // Trailing NULs are a hole that a power cut left behind a whole record.
        let whole = line.trim_ascii_end();
        let whole = &whole[..whole.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)];
        // No record holds a NUL: what may be whole begins behind the last one.
        let mut from = memchr::memrchr(0, whole).map_or(0, |nul| nul + 1);
        let mut tries = 0;
        while let Some(found) = whole.get(from..).and_then(|rest| RECORD_START.find(rest)) {
            let start = from + found;
            from = start + 1;
            let rest = &whole[start..];
            // Blocks inside a record begin alike; an entry names its parent among its first keys.
            if PARENT_KEY.find(&rest[..rest.len().min(ENTRY_HEAD)]).is_none() {
                continue;
            }
            tries += 1;
            if tries > GLUED_TRIES {
                break;
            }
            if let Ok(frame) = frame(rest)
                && frame.parented
                && is_json(rest)
            {
                let (at, kind) =
                    if start > 0 { (place(off, start), DamageKind::Glued) } else { (place(off, line.len()), kind) };
                self.damage.push(Damage { at, kind });
                return self.node(frame, off + start as u64, rest.len());
            }
        }
        self.damage.push(Damage { at: place(off, line.len()), kind });
    }

    fn node(&mut self, frame: Frame, off: u64, len: usize) {
        let at = place(off, len);
        let Frame { kind, id, parent, label, .. } = frame;
        let pushed = self.skeleton.push(NewNode { at, kind, id: id.clone(), parent: parent.clone(), label });
        match (pushed, parent) {
            (Pushed::Repeated(_), _) => self.damage.push(Damage { at, kind: DamageKind::Repeated(id) }),
            (Pushed::Orphan(_), Some(parent)) => self.damage.push(Damage { at, kind: DamageKind::Orphan(parent) }),
            _ => {}
        }
    }
}

/// Where the next line begins; `None` when the line has no end yet.
fn pass_over<F: FsFile>(file: &F, mut from: u64, len: u64) -> io::Result<Option<u64>> {
    let mut buffer = vec![0; BUFFER];
    while from < len {
        let got = file.read_at(&mut buffer, from)?;
        if got == 0 {
            break;
        }
        if let Some(end) = memchr::memchr(b'\n', &buffer[..got]) {
            return Ok(Some(from + end as u64 + 1));
        }
        from += got as u64;
    }
    Ok(None)
}

fn place(off: u64, len: usize) -> At {
    At { off, len: u32::try_from(len).unwrap_or(u32::MAX) }
}

/// Whether bytes are one JSON value.
#[must_use]
pub fn is_json(bytes: &[u8]) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok()
}

/// Reads the frame of a line (without its line feed).
///
/// # Errors
/// What is wrong with it.
pub fn frame(line: &[u8]) -> Result<Frame, DamageKind> {
    let sifted = sift(line);
    if sifted.nul {
        return Err(DamageKind::Nul);
    }
    if !sifted.utf8 {
        return Err(DamageKind::Utf8);
    }
    let line = line.trim_ascii();
    let wrong = |why: &str| DamageKind::Frame(why.into());
    if line.first() != Some(&b'{') || line.last() != Some(&b'}') {
        return Err(wrong("it is no {…}"));
    }
    if let Some(frame) = usual(line, sifted) {
        return Ok(frame);
    }
    general(line, sifted)
}

/// The frame of a `{…}` whose keys may come in any order.
pub(crate) fn general(line: &[u8], sifted: Sifted) -> Result<Frame, DamageKind> {
    let wrong = |why: &str| DamageKind::Frame(why.into());
    let mut keys = Keys { bytes: line, at: 1 };
    let (mut kind, mut id, mut parent, mut label, mut custom) = (None, None, None, None, None);
    while let Some((key, value)) = keys.next().map_err(|()| wrong("its keys cannot be told apart"))? {
        match key {
            b"\"type\"" => kind = Some(text(value).ok_or_else(|| wrong("its type is no text"))?),
            b"\"id\"" => id = Some(id_of(value).ok_or_else(|| wrong("its id is no text"))?),
            b"\"parentId\"" if value == b"null" => parent = Some(None),
            b"\"parentId\"" => parent = Some(Some(id_of(value).ok_or_else(|| wrong("its parent is no text"))?)),
            b"\"gjcLabel\"" => label = Some(label_of(value)),
            b"\"customType\"" => custom = text(value),
            _ => {}
        }
        // gjc writes its label right behind the parent, so one more key decides.
        let framed = kind.is_some() && id.is_some() && parent.is_some();
        if framed
            && (label.is_some() || key != b"\"parentId\"")
            && (custom.is_some() || kind.as_deref() != Some("custom"))
        {
            break;
        }
    }
    match (kind, id) {
        (Some(kind), Some(id)) => Ok(Frame {
            kind: Kind::of(&kind, custom.as_deref()),
            id,
            parented: parent.is_some(),
            parent: parent.flatten(),
            label: label.or_else(|| if sifted.label { late_label(line) } else { None }),
            doubtful: sifted.parents > 1,
        }),
        (None, _) => Err(wrong("it has no type")),
        (_, None) => Err(wrong("it has no id")),
    }
}

/// The `type` of a line that has a frame.
pub(crate) fn type_of(line: &[u8]) -> Option<Cow<'_, str>> {
    let mut keys = Keys { bytes: line.trim_ascii(), at: 1 };
    while let Ok(Some((key, value))) = keys.next() {
        if key == b"\"type\"" {
            return text(value);
        }
    }
    None
}

/// The label of a line whose keys another program has put into another order. No label is dropped on the way.
fn late_label(line: &[u8]) -> Option<Label> {
    let mut keys = Keys { bytes: line, at: 1 };
    while let Ok(Some((key, value))) = keys.next() {
        if key == b"\"gjcLabel\"" {
            return Some(label_of(value));
        }
    }
    None
}

fn label_of(value: &[u8]) -> Label {
    std::str::from_utf8(value).map_or(Label::CORRUPT, Label::from_json)
}

/// A JSON string as an id; the usual form without a detour.
fn id_of(raw: &[u8]) -> Option<EntryId> {
    if let [b'"', inner @ .., b'"'] = raw
        && let Some(short) = EntryId::short(inner)
    {
        return Some(EntryId::Short(short));
    }
    text(raw).map(|text| EntryId::new(&text))
}

/// A JSON string as text; the common case has no escapes.
fn text(raw: &[u8]) -> Option<Cow<'_, str>> {
    let inner = raw.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    if memchr::memchr(b'\\', inner).is_none() {
        return std::str::from_utf8(inner).ok().map(Cow::Borrowed);
    }
    serde_json::from_slice(raw).ok().map(Cow::Owned)
}

/// A raw key (with its quotes) and its raw value.
type Pair<'a> = (&'a [u8], &'a [u8]);

/// Walks the top-level keys of an object; the value of each is skipped, not parsed.
struct Keys<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Keys<'a> {
    /// The next pair; `None` at the closing brace.
    fn next(&mut self) -> Result<Option<Pair<'a>>, ()> {
        self.blank();
        if self.peek() == Some(b',') {
            self.at += 1;
            self.blank();
        }
        match self.peek() {
            Some(b'}') => return Ok(None),
            Some(b'"') => {}
            _ => return Err(()),
        }
        let key_from = self.at;
        self.at = skip_string(self.bytes, self.at).ok_or(())?;
        let key = &self.bytes[key_from..self.at];
        self.blank();
        if self.peek() != Some(b':') {
            return Err(());
        }
        self.at += 1;
        self.blank();
        let value_from = self.at;
        self.at = match self.peek().ok_or(())? {
            b'"' => skip_string(self.bytes, self.at).ok_or(())?,
            b'{' | b'[' => skip_nested(self.bytes, self.at).ok_or(())?,
            _ => {
                let rest = &self.bytes[self.at..];
                let end = rest.iter().position(|byte| matches!(byte, b',' | b'}' | b']' | b' ' | b'\t')).ok_or(())?;
                if end == 0 {
                    return Err(());
                }
                self.at + end
            }
        };
        let value = &self.bytes[value_from..self.at];
        self.blank();
        match self.peek() {
            Some(b',' | b'}') => Ok(Some((key, value))),
            _ => Err(()),
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn blank(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r')) {
            self.at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn short(text: &str) -> EntryId {
        EntryId::new(text)
    }

    #[test]
    fn frames_are_found_in_any_order_of_keys() {
        let label = Label { level: gjc_entry::Level::Internal, trusted: false };
        for line in [
            r#"{"type":"custom","id":"0000000a","parentId":"0000000b","gjcLabel":{"l":"INTERNAL","t":false},"customType":"gjc.leaf"}"#,
            r#"{"customType":"gjc.leaf","type":"custom","gjcLabel":{"l":"INTERNAL","t":false},"data":{"type":"x","id":"y"},"id":"0000000a", "parentId" : "0000000b" }"#,
            r#"{"data":[1,"]}\"",{"a":"}{"}],"customType":"gjc.leaf","gjcLabel":{"l":"INTERNAL","t":false},"id":"0000000\u0061","parentId":"0000000b","type":"custom"}"#,
        ] {
            let found = frame(line.as_bytes()).unwrap();
            assert_eq!(
                (found.kind, found.id, found.parent),
                (Kind::OwnLeaf, short("0000000a"), Some(short("0000000b"))),
                "{line}"
            );
            assert_eq!(found.label, Some(label), "{line}");
        }
    }

    #[test]
    fn a_frame_that_is_none_is_named() {
        for (line, kind) in [
            (&b"{\"type\":\"message\",\"id\":\"a\",\"parentId\":nu"[..], "it is no {…}"),
            (b"[1]", "it is no {…}"),
            (b"{\"id\":\"a\",\"parentId\":null}", "it has no type"),
            (b"{\"type\":\"a\",\"parentId\":null}", "it has no id"),
            (b"{\"type\":3,\"id\":\"a\"}", "its type is no text"),
            (b"{\"type\":\"a\" \"id\":\"a\"}", "its keys cannot be told apart"),
        ] {
            assert_eq!(frame(line), Err(DamageKind::Frame(kind.into())), "{}", String::from_utf8_lossy(line));
        }
        assert_eq!(frame(b"{\"type\":\"a\",\"id\":\"\xED\x95\"}"), Err(DamageKind::Utf8));
        assert_eq!(frame(b"{\"type\":\"a\",\"id\":\"\0\"}"), Err(DamageKind::Nul));
    }

    #[test]
    fn no_cut_of_a_line_panics_or_invents() {
        let line = r#"{"type":"message","id":"0000000a","parentId":"0000000b","gjcLabel":{"l":"PUBLIC","t":false},"message":{"role":"user","content":"한글 \" \\"}}"#;
        for end in 0..line.len() {
            assert!(frame(&line.as_bytes()[..end]).is_err() || end == line.len() - 1, "{end}");
        }
    }
}
