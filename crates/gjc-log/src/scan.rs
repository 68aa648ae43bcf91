//! From bytes to the skeleton, without parsing bodies.
//!
//! A line is judged by its frame: no NUL, UTF-8, `{…}`, and the top-level keys of an entry. The scan leaves a line as soon
//! as it has them; a second `"parentId":` outside of strings (quotes inside strings are escaped, so the bytes cannot occur
//! there) makes it look closer, because two records may be glued together.
//!
//! An id belongs to the first line that bears it. A line that says the same once more is no entry; one that says something
//! else is kept beside it, without a name ([`Skeleton::push_nameless`]). In files of version 1 entries have no ids: they
//! follow each other, and the place of each is its id.

use crate::fs::FsFile;
use crate::sift::{Sifted, sift, sift_line, skip_nested, skip_string};
use crate::usual::{Begun, begin};
use gjc_entry::tree::{NewNode, Pushed};
use gjc_entry::{At, Damage, DamageKind, EntryId, Header, Kind, Label, Ordinal, Skeleton};
use memchr::memmem;
use std::borrow::Cow;
use std::collections::HashSet;
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
    /// The records that have changed the header or an entry, in file order.
    pub(crate) changes: Vec<At>,
    /// Where what stands behind the header begins.
    pub(crate) first: u64,
    lines: u64,
    /// The title in a line before the header.
    title: Option<String>,
    /// Entries whose ids were repeated, and which are JSON.
    sound: HashSet<Ordinal>,
    /// Where a line begins that is longer than a line may be, and how far it is known to have no end.
    endless: Option<(u64, u64)>,
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
/// The longest line that is looked at as a whole. No entry comes near it; what is longer is damage: records at its beginning
/// are read, and the rest is passed over.
pub(crate) const LONGEST: usize = 128 << 20;
/// How often a damaged line may be read in search of whole records, and how much of a short one.
const GLUED_LOOKS: usize = 8;
const GLUED_LEAST: usize = 1 << 16;
/// How many beginnings of headers are tried in a damaged first line.
const HEADER_TRIES: usize = 64;
static HEADER_START: LazyLock<memmem::Finder<'static>> =
    LazyLock::new(|| memmem::Finder::new(b"{\"type\":\"session\""));
/// Inside of a text quotes are escaped, so these bytes stand only between two records.
static NEXT_RECORD: LazyLock<memmem::Finder<'static>> = LazyLock::new(|| memmem::Finder::new(b"}{\"type\":\""));
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
        Self { header: Some(header), skeleton, damage, covered, lines, ..Self::default() }
    }

    pub(crate) fn lines(&self) -> u64 {
        self.lines
    }

    /// Reads complete lines from `covered` to `len`, through one reused buffer that grows only for a longer line.
    ///
    /// # Errors
    /// When the file cannot be read; what was scanned before stays.
    pub fn scan<F: FsFile>(&mut self, file: &F, len: u64) -> io::Result<()> {
        let scanned = self.scan_lines(file, len);
        self.skeleton.settle();
        scanned
    }

    fn scan_lines<F: FsFile>(&mut self, file: &F, len: u64) -> io::Result<()> {
        let mut buffer =
            vec![0; BUFFER.min(usize::try_from(len.saturating_sub(self.covered)).unwrap_or(BUFFER)).max(1)];
        // Lines of real sessions have some 3 KB; what is reserved and not used costs no memory.
        self.skeleton.reserve(usize::try_from(len.saturating_sub(self.covered) / 3072).unwrap_or(0).min(1 << 22));
        // Another look at it reads only what it has grown by.
        if let Some((begin, to)) = self.endless.take()
            && begin == self.covered
            && to <= len
            && pass_over(file, to, len)?.is_none()
        {
            self.endless = Some((begin, len));
            return Ok(());
        }
        let mut filled = 0;
        let mut read_to = self.covered;
        while read_to < len {
            if filled == buffer.len() {
                if filled >= LONGEST {
                    let Some(next) = pass_over(file, read_to, len)? else {
                        self.endless = Some((self.covered, len));
                        return Ok(());
                    };
                    let kind = DamageKind::Frame("it is longer than a line may be".into());
                    self.glued(file, &buffer, self.covered, kind);
                    (self.covered, read_to, filled) = (next, next, 0);
                    self.lines = self.lines.saturating_add(1);
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
            while start < complete {
                let at = self.covered;
                let len = self.line(file, &buffer[start..complete], at);
                start += len + 1;
                self.covered = at + len as u64 + 1;
            }
            buffer.copy_within(complete..filled, 0);
            filled -= complete;
        }
        Ok(())
    }

    /// Takes the first of the lines that bytes are, and how long it is without its line feed.
    fn line<F: FsFile>(&mut self, file: &F, bytes: &[u8], off: u64) -> usize {
        let begun = begin(bytes);
        if let Some(begun) = &begun {
            self.skeleton.expect(&begun.frame.id);
        }
        let read = begun.as_ref().map_or(0, |begun| begun.len);
        let (sifted, len) = sift_line(&bytes[read..]);
        let line = &bytes[..read + len];
        self.judge(file, line, begun, sifted, off);
        line.len()
    }

    fn judge<F: FsFile>(&mut self, file: &F, line: &[u8], begun: Option<Begun>, sifted: Sifted, off: u64) {
        if line.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        let number = self.lines;
        self.lines = self.lines.saturating_add(1);
        let Some(header) = &mut self.header else {
            if number < 2 {
                self.header_line(file, line, number, off);
            }
            return;
        };
        // Entries that have ids are no entries of version 1, whatever became of the number in the header.
        if header.is_linear() && self.skeleton.is_empty() && frame(line).is_ok_and(|frame| frame.parented) {
            header.version = gjc_entry::header::VERSION;
        }
        // Records without a parent (changes of entries, entries of version 1) are told apart by where they meet.
        let joined = may_join(header.version);
        match frame_of(line, begun, sifted, header.is_linear()) {
            Ok(frame) if !(frame.doubtful || joined && records_meet(line)) || is_json(line) => {
                self.record(file, frame, line, off);
            }
            Ok(_) => self.glued(file, line, off, DamageKind::Frame("two records stand on one line".into())),
            Err(kind) => self.glued(file, line, off, kind),
        }
    }

    fn header_line<F: FsFile>(&mut self, file: &F, line: &[u8], number: u64, off: u64) {
        // A title may stand before the header: newer programs of the family put a fixed slot there.
        if number == 0
            && let Some(title) =
                std::str::from_utf8(line).ok().and_then(|text| Header::title_slot(text.trim_end()).ok())
        {
            self.title = title;
            return;
        }
        let parsed = std::str::from_utf8(line).map_err(|_| "its first line is not UTF-8".to_owned());
        match parsed.and_then(|text| Header::parse(text.trim_end()).map_err(|error| error.to_string())) {
            Ok(header) => {
                self.take_header(header);
                self.first = off + line.len() as u64 + 1;
            }
            // A header may have lost its line feed, or have a hole beside it. What is JSON as a whole is another program's.
            Err(why) if !is_json(line) => match header_in(line) {
                Some((header, start, end)) => {
                    self.take_header(header);
                    self.first = off + end as u64;
                    let rest = &line[end..];
                    if start > 0 {
                        self.damage.push(Damage { at: place(off, start), kind: DamageKind::Glued });
                    }
                    if !rest.trim_ascii().is_empty() {
                        let kind = DamageKind::Frame("it stands on the line of the header".into());
                        self.glued(file, rest, off + end as u64, kind);
                    }
                }
                None => self.refuse_header(why, line, off),
            },
            Err(why) => self.refuse_header(why, line, off),
        }
    }

    fn take_header(&mut self, mut header: Header) {
        header.title = self.title.take().or(header.title);
        self.header = Some(header);
        self.no_header = None;
    }

    fn refuse_header(&mut self, why: String, line: &[u8], off: u64) {
        self.damage.push(Damage { at: place(off, line.len()), kind: DamageKind::Frame(why.clone()) });
        self.no_header.get_or_insert(why);
    }

    /// A sound line: an entry, or a change of one.
    fn record<F: FsFile>(&mut self, file: &F, frame: Frame, line: &[u8], off: u64) {
        let at = place(off, line.len());
        match frame.kind {
            kind if is_patch(kind) => match self.patch(frame.kind, line, at) {
                Ok(()) => self.changes.push(at),
                Err(kind) => self.damage.push(Damage { at, kind }),
            },
            _ => self.node(file, frame, line, at),
        }
    }

    fn patch(&mut self, kind: Kind, line: &[u8], at: At) -> Result<(), DamageKind> {
        let line = std::str::from_utf8(line).map_err(|_| DamageKind::Utf8)?;
        let body = |error: gjc_entry::fields::FieldError| DamageKind::Body(error.to_string());
        if kind == Kind::HeaderPatch {
            return self.header.as_mut().map_or(Ok(()), |header| header.patch(line)).map_err(body);
        }
        let target: EntryId =
            gjc_entry::Fields::parse(line).and_then(|mut found| found.required("entryId")).map_err(body)?;
        let base = self.skeleton.find(&target).and_then(|ordinal| self.skeleton.node(ordinal));
        let base = base.map(gjc_entry::Node::at).ok_or(DamageKind::Patch(target))?;
        self.skeleton.patch(base, at);
        Ok(())
    }

    /// A damaged line may hold whole records, behind a cut one, beside each other, or before a hole: each place where one
    /// may begin is tried. What the tries that fail may read is bounded, so that no line costs much more than some looks.
    fn glued<F: FsFile>(&mut self, file: &F, line: &[u8], off: u64, kind: DamageKind) {
        let linear = self.header.as_ref().is_some_and(Header::is_linear);
        let (mut from, mut behind) = (0, 0);
        let mut budget = line.len().saturating_mul(GLUED_LOOKS).saturating_add(GLUED_LEAST);
        while let Some(found) = line.get(from..).and_then(|rest| RECORD_START.find(rest)) {
            let start = from + found;
            from = start + 1;
            let rest = &line[start..];
            let record = match value_at_start(rest) {
                Ok(record) => record,
                Err(read) => match budget.checked_sub(read) {
                    Some(left) => {
                        budget = left;
                        continue;
                    }
                    None => break,
                },
            };
            // Blocks inside a record begin alike; an entry has an id and a parent, or at least a type that is one.
            let is_entry =
                |frame: &Frame| frame.parented || is_patch(frame.kind) || linear && frame.kind != Kind::Unknown;
            let Some(frame) = frame_in(record, linear).ok().filter(is_entry) else {
                let Some(left) = budget.checked_sub(record.len()) else { break };
                budget = left;
                continue;
            };
            // Where another record ends, this one stands on its line; else bytes of a cut one stand between.
            if start > 0 {
                self.damage.push(Damage { at: place(off + behind as u64, start - behind), kind: DamageKind::Glued });
            }
            self.record(file, frame, record, off + start as u64);
            from = start + record.len();
            behind = from;
        }
        if line[behind..].iter().any(|byte| !byte.is_ascii_whitespace()) {
            // As long as the line is, from its beginning on: what is wrong with it is seen best as a whole.
            self.damage.push(Damage { at: place(off, line.len()), kind });
        }
    }

    fn node<F: FsFile>(&mut self, file: &F, frame: Frame, line: &[u8], at: At) {
        let linear = self.header.as_ref().is_some_and(Header::is_linear);
        let Frame { kind, id, parent, label, .. } = frame;
        let new = if linear {
            let place = u32::try_from(self.skeleton.len()).unwrap_or(u32::MAX);
            NewNode { at, kind, id: EntryId::Short(place), parent: place.checked_sub(1).map(EntryId::Short), label }
        } else {
            NewNode { at, kind, id, parent, label }
        };
        let pushed = match self.skeleton.push(new.clone()) {
            Pushed::Repeated(first) => match self.repeated(file, first, line) {
                Repeat::Same => return,
                Repeat::Whole => {
                    self.skeleton.mend(first, at, kind, label);
                    return;
                }
                Repeat::Other => {
                    self.damage.push(Damage { at, kind: DamageKind::Repeated(new.id.clone()) });
                    self.skeleton.push_nameless(new.clone())
                }
            },
            pushed => pushed,
        };
        if let (Pushed::Orphan(_), Some(parent)) = (pushed, new.parent) {
            self.damage.push(Damage { at, kind: DamageKind::Orphan(parent) });
        }
    }

    /// What a line is to the entry whose id it bears. Reads no more than it is long, but once for each id.
    fn repeated<F: FsFile>(&mut self, file: &F, first: Ordinal, line: &[u8]) -> Repeat {
        let line = line.trim_ascii();
        let Some(at) = self.skeleton.node(first).map(gjc_entry::Node::at) else { return Repeat::Other };
        let same_length = at.len as usize == line.len();
        let sound = self.sound.contains(&first);
        if !same_length && (sound || !is_json(line)) {
            return Repeat::Other;
        }
        let Ok(before) = read_line(file, at) else { return Repeat::Other };
        // What stands behind a whole record costs it nothing.
        let whole = first_value(before.trim_ascii());
        if before.trim_ascii() == line || whole == Some(line) {
            return Repeat::Same;
        }
        if whole.is_some() {
            self.sound.insert(first);
        }
        if whole.is_some() || !is_json(line) {
            return Repeat::Other;
        }
        // Written in part first, and whole later.
        self.damage.push(Damage { at, kind: DamageKind::Body("it was written again, whole, later".into()) });
        Repeat::Whole
    }
}

/// What a line with the id of an earlier entry says.
enum Repeat {
    /// The same.
    Same,
    /// What the earlier one says only in part.
    Whole,
    /// Something else.
    Other,
}

/// The bytes of a line.
///
/// # Errors
/// When they cannot be read, or are no longer there.
pub(crate) fn read_line<F: FsFile>(file: &F, at: At) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; at.len as usize];
    let mut filled = 0;
    while filled < bytes.len() {
        match file.read_at(&mut bytes[filled..], at.off + filled as u64)? {
            0 => return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the file is shorter than it was")),
            got => filled += got,
        }
    }
    Ok(bytes)
}

/// The header somewhere in a damaged line, and where it begins and ends.
fn header_in(line: &[u8]) -> Option<(Header, usize, usize)> {
    HEADER_START.find_iter(line).take(HEADER_TRIES).find_map(|start| {
        let value = first_value(&line[start..])?;
        let header = Header::parse(std::str::from_utf8(value).ok()?).ok()?;
        Some((header, start, start + value.len()))
    })
}

/// The JSON value that bytes begin with, whatever follows it.
pub(crate) fn first_value(bytes: &[u8]) -> Option<&[u8]> {
    value_at_start(bytes).ok()
}

/// As [`first_value`]; or how many bytes had to be read to know that there is none.
fn value_at_start(bytes: &[u8]) -> Result<&[u8], usize> {
    let mut values = serde_json::Deserializer::from_slice(bytes).into_iter::<serde::de::IgnoredAny>();
    match values.next() {
        Some(Ok(_)) => bytes.get(..values.byte_offset()).ok_or(bytes.len()),
        // Without line feeds in it, a line's column is a count of bytes.
        Some(Err(error)) => Err(error.column().clamp(1, bytes.len())),
        None => Err(bytes.len()),
    }
}

fn is_patch(kind: Kind) -> bool {
    matches!(kind, Kind::HeaderPatch | Kind::EntryPatch)
}

/// Whether files of a version hold records that a second parent does not give away.
pub(crate) fn may_join(version: u32) -> bool {
    version != gjc_entry::header::VERSION
}

/// Whether one record may end on a line, and another begin.
pub(crate) fn records_meet(line: &[u8]) -> bool {
    NEXT_RECORD.find(line).is_some()
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
    frame_in(line, false)
}

/// As [`frame`]; in a `linear` file (version 1) entries have no ids.
fn frame_in(line: &[u8], linear: bool) -> Result<Frame, DamageKind> {
    let begun = begin(line);
    let read = begun.as_ref().map_or(0, |begun| begun.len);
    frame_of(line, begun, sift(&line[read..]), linear)
}

/// The frame of a line of which the beginning was read and what comes behind that was sifted.
fn frame_of(line: &[u8], begun: Option<Begun>, behind: Sifted, linear: bool) -> Result<Frame, DamageKind> {
    if behind.nul {
        return Err(DamageKind::Nul);
    }
    if !behind.utf8 {
        return Err(DamageKind::Utf8);
    }
    let line = line.trim_ascii();
    let wrong = |why: &str| DamageKind::Frame(why.into());
    if line.first() != Some(&b'{') || line.last() != Some(&b'}') {
        return Err(wrong("it is no {…}"));
    }
    match begun {
        // Another label would be somewhere behind.
        Some(Begun { frame, .. }) if behind.labels == 0 => Ok(Frame { doubtful: behind.parents > 0, ..frame }),
        Some(begun) => general(line, begun.sifted().and(behind), linear),
        None => general(line, behind, linear),
    }
}

/// The frame of a `{…}` whose keys may come in any order.
pub(crate) fn general(line: &[u8], sifted: Sifted, linear: bool) -> Result<Frame, DamageKind> {
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
    let kind = Kind::of(&kind.ok_or_else(|| wrong("it has no type"))?, custom.as_deref());
    let id = match id {
        Some(id) => id,
        // They change entries and are none.
        None if linear || is_patch(kind) => EntryId::Other("".into()),
        None => return Err(wrong("it has no id")),
    };
    Ok(Frame {
        kind,
        id,
        parented: parent.is_some(),
        parent: parent.flatten(),
        label: match sifted.labels {
            0 => None,
            1 if label.is_some() => label,
            _ => label_anywhere(line),
        },
        doubtful: sifted.parents > 1,
    })
}

/// The label of a line whose keys another program has put into another order. No label is dropped on the way: of two nobody
/// knows which one is meant.
fn label_anywhere(line: &[u8]) -> Option<Label> {
    let (mut keys, mut found) = (Keys { bytes: line, at: 1 }, None);
    while let Ok(Some((key, value))) = keys.next() {
        if key == b"\"gjcLabel\"" {
            found = Some(if found.is_some() { Label::CORRUPT } else { label_of(value) });
        }
    }
    found
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
