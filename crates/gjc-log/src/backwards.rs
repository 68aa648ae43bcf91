//! The first context of a file, read from its end: cost grows with the active path, never with the file.
//!
//! The header is read, then lines backwards from the last one along `parentId`, until the context is complete: what the
//! newest compaction keeps, a reset, or the root. Every line on the way gets the look that the index gives it, and whatever
//! is not plain sailing (damage, an id met twice, a parent behind its child, a record that changes another) is left to
//! the index.
//!
//! Two things stand in the part that was not read, and the answer says so. The *taint* is the highest label of all lines:
//! until the index is built it is the highest there is, unless the whole file was read. And an *id* that a line in the
//! unread part bears too would belong to that line: no program that checks its ids writes such a file, but
//! [`Found::agrees`] is to be asked once the index is there.

use crate::fs::FsFile;
use crate::scan::{Frame, Scanned, frame, is_json, may_join, records_meet};
use gjc_entry::{At, Body, Entry, EntryId, Header, Kind, Label, Leaf, NeedsIndex, PathNode, PathNodes, Skeleton};
use std::collections::HashSet;
use std::io;

/// How far back is read before the index is asked for.
pub const FARTHEST: u64 = 64 << 20;
/// The first step back; later ones double, up to the limit below.
const FIRST_STEP: usize = 64 * 1024;
const LONGEST_STEP: usize = 256 * 1024;
/// The header, and a title before it, end within so many bytes.
const HEAD: usize = 1 << 20;

/// What the end of a file gave.
#[derive(Debug, Clone)]
pub struct Found {
    /// The header as its line has it: records that change it may stand in the part that was not read.
    pub header: Header,
    /// The end of the path of the current leaf, with the whole context in it. The labels are [`Label::CORRUPT`] where
    /// `taint` is not known.
    pub nodes: PathNodes,
    /// Whether the first of the nodes is the root.
    pub from_root: bool,
    /// The session's taint; known only when the whole file was read.
    pub taint: Option<Label>,
    /// One past the last line feed: what stands behind it is growing.
    pub covered: u64,
}

impl Found {
    /// Whether the index, built of the file as it was then, says the same. If not, everything that was shown is to be
    /// built again.
    #[must_use]
    pub fn agrees(&self, skeleton: &Skeleton) -> bool {
        let path = skeleton.path(Leaf::Current).0;
        let from = path.len().saturating_sub(self.nodes.0.len());
        let same = |(a, b): (&PathNode, &PathNode)| (a.at, a.kind, &a.id) == (b.at, b.kind, &b.id);
        path.len() >= self.nodes.0.len()
            && path[from..].iter().zip(&self.nodes.0).all(same)
            && (!self.from_root || from == 0)
    }
}

/// Finds the context path of the current leaf. `len`: how long the file is taken to be.
///
/// # Errors
/// When the file cannot be read. [`NeedsIndex`] inside when anything is in doubt, or too far away.
pub fn context_path<F: FsFile>(file: &F, len: u64) -> io::Result<Result<Found, NeedsIndex>> {
    context_path_within(file, len, FARTHEST)
}

/// As [`context_path`], with another limit than [`FARTHEST`].
///
/// # Errors
/// As [`context_path`].
pub fn context_path_within<F: FsFile>(file: &F, len: u64, back: u64) -> io::Result<Result<Found, NeedsIndex>> {
    let Some((header, first)) = head(file, len)? else { return Ok(Err(NeedsIndex)) };
    // Older files are small, and their entries mean something else.
    if !(gjc_entry::header::VERSION..=gjc_entry::header::MAX_VERSION).contains(&header.version) {
        return Ok(Err(NeedsIndex));
    }
    let mut walk = Walk {
        path: Vec::new(),
        labels: Vec::new(),
        seen: HashSet::new(),
        wanted: Wanted::Leaf,
        kept: None,
        joined: may_join(header.version),
    };
    let mut lines = Lines { file, first, step: FIRST_STEP, from: len, bytes: Vec::new(), end: 0, covered: None };
    let farthest = len.saturating_sub(back);
    let from_root = loop {
        match lines.before(farthest)? {
            Next::Line(line, off) => match walk.line(line, off) {
                Step::On => {}
                Step::Complete => break walk.wanted == Wanted::Nothing,
                Step::Doubt => return Ok(Err(NeedsIndex)),
            },
            Next::Start if walk.wanted == Wanted::Leaf => break true,
            // The parent is nowhere, or what the compaction keeps is not on the path: both are for the index to say.
            Next::Start | Next::TooFar => return Ok(Err(NeedsIndex)),
        }
    };
    let covered = lines.covered.unwrap_or(first);
    // With the root reached, the rest of the file's beginning is all that is missing of the labels.
    let complete = from_root && lines.is_at_start();
    Ok(Ok(walk.found(header, from_root, complete, covered)))
}

/// The header, and where the line behind it begins. The scan itself knows what may stand before it.
pub(crate) fn head<F: FsFile>(file: &F, len: u64) -> io::Result<Option<(Header, u64)>> {
    let mut bytes = vec![0; 4096];
    loop {
        let room = bytes.len().min(usize::try_from(len).unwrap_or(usize::MAX));
        let got = file.read_at(&mut bytes[..room], 0)?;
        for end in memchr::memchr_iter(b'\n', &bytes[..got]).take(2) {
            let mut scanned = Scanned::default();
            let end = end as u64 + 1;
            scanned.scan(file, end)?;
            // An entry on the header's line, which lost its line feed, is for the index.
            let alone = scanned.damage.is_empty() && scanned.skeleton.is_empty();
            if let Some(header) = scanned.header.filter(|_| alone) {
                return Ok(Some((header, end)));
            }
        }
        if got < bytes.len() || bytes.len() >= HEAD {
            return Ok(None);
        }
        bytes.resize(bytes.len() * 4, 0);
    }
}

/// Which line is looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Wanted {
    /// The last one.
    Leaf,
    /// The entry with this id.
    Entry(EntryId),
    /// None: the root was found.
    Nothing,
}

enum Step {
    On,
    /// The context is complete.
    Complete,
    Doubt,
}

struct Walk {
    /// Leaf first.
    path: Vec<(At, Kind, EntryId)>,
    /// Of all lines that have one, last first.
    labels: Vec<(u64, Label)>,
    seen: HashSet<EntryId>,
    wanted: Wanted,
    /// What the newest compaction on the path keeps from on.
    kept: Option<EntryId>,
    /// Whether records that change others may stand behind one on its line.
    joined: bool,
}

impl Walk {
    /// The next line towards the beginning.
    fn line(&mut self, line: &[u8], off: u64) -> Step {
        if line.iter().all(u8::is_ascii_whitespace) {
            return Step::On;
        }
        let (Ok(frame), Ok(len)) = (frame(line), u32::try_from(line.len())) else { return Step::Doubt };
        // What a change of an entry means is for the index to say.
        if matches!(frame.kind, Kind::HeaderPatch | Kind::EntryPatch) {
            return Step::Doubt;
        }
        // An id that comes twice belongs to the line farther ahead, and a parent that was passed already stands behind its
        // child: the index knows what becomes of both.
        let parent_passed = frame.parent.as_ref().is_some_and(|id| *id == frame.id || self.seen.contains(id));
        let doubtful = frame.doubtful || self.joined && records_meet(line);
        if doubtful && !is_json(line) || parent_passed || !self.seen.insert(frame.id.clone()) {
            return Step::Doubt;
        }
        if let Some(label) = frame.label {
            self.labels.push((off, label));
        }
        let on_path = match &self.wanted {
            Wanted::Leaf => true,
            Wanted::Entry(id) => *id == frame.id,
            Wanted::Nothing => false,
        };
        if on_path { self.take(frame, line, At { off, len }) } else { Step::On }
    }

    /// An entry of the path.
    fn take(&mut self, frame: Frame, line: &[u8], at: At) -> Step {
        self.path.push((at, frame.kind, frame.id.clone()));
        self.wanted = frame.parent.map_or(Wanted::Nothing, Wanted::Entry);
        let reached = self.kept.as_ref() == Some(&frame.id);
        if self.kept.is_none() {
            match frame.kind {
                // One that cannot be read counts as absent.
                Kind::Compaction => {
                    let entry = std::str::from_utf8(line).ok().and_then(|text| Entry::parse(text.trim()).ok());
                    if let Some(Body::Compaction { first_kept, .. }) = entry.map(|entry| entry.body) {
                        self.kept = Some(first_kept);
                    }
                }
                Kind::ResetBoundary => return Step::Complete,
                _ => {}
            }
        }
        if reached || self.wanted == Wanted::Nothing { Step::Complete } else { Step::On }
    }

    fn found(self, header: Header, from_root: bool, complete: bool, covered: u64) -> Found {
        let mut labels = self.labels.into_iter().rev().peekable();
        let mut running = Label::PUBLIC_TRUSTED;
        let mut until = |off: u64| {
            while let Some((_, label)) = labels.next_if(|(at, _)| *at <= off) {
                running = Label { level: running.level.max(label.level), trusted: label.trusted };
            }
            if complete { running } else { Label::CORRUPT }
        };
        let nodes = self.path.into_iter().rev();
        let nodes = nodes.map(|(at, kind, id)| PathNode { at, kind, label: until(at.off), id }).collect();
        let taint = complete.then(|| until(u64::MAX));
        Found { header, nodes: PathNodes(nodes), from_root, taint, covered }
    }
}

enum Next<'a> {
    /// A line and its offset.
    Line(&'a [u8], u64),
    /// There is none before.
    Start,
    /// The next one would be too far back.
    TooFar,
}

/// Complete lines from the end of a file towards its beginning, through one buffer that holds no more than a step and the
/// line that it cuts.
struct Lines<'f, F: FsFile> {
    file: &'f F,
    /// Where the first of them begins.
    first: u64,
    step: usize,
    /// The buffer holds the file from here; `bytes[..end]` is not given yet.
    from: u64,
    bytes: Vec<u8>,
    end: usize,
    /// One past the last line feed of the file, once it was seen.
    covered: Option<u64>,
}

impl<F: FsFile> Lines<'_, F> {
    fn is_at_start(&self) -> bool {
        self.from + self.end as u64 <= self.first
    }

    fn before(&mut self, farthest: u64) -> io::Result<Next<'_>> {
        // How much of the end of the buffer is known to hold no line feed.
        let mut searched = 0;
        loop {
            // A line ends with its line feed, which is `bytes[end - 1]` once the last one was found.
            let to = if self.covered.is_some() { self.end.saturating_sub(1) } else { self.end };
            let found = memchr::memrchr(b'\n', &self.bytes[..to.saturating_sub(searched)]);
            match (found, self.covered) {
                (Some(feed), None) => {
                    self.covered = Some(self.from + feed as u64 + 1);
                    self.end = feed + 1;
                    searched = 0;
                    continue;
                }
                (Some(feed), Some(_)) => {
                    self.end = feed + 1;
                    return Ok(Next::Line(&self.bytes[feed + 1..to], self.from + feed as u64 + 1));
                }
                (None, Some(_)) if self.from <= self.first && to > 0 => {
                    self.end = 0;
                    return Ok(Next::Line(&self.bytes[..to], self.from));
                }
                (None, _) if self.from <= self.first => return Ok(Next::Start),
                (None, _) if self.from <= farthest => return Ok(Next::TooFar),
                (None, _) => {}
            }
            searched = to;
            self.back()?;
        }
    }

    /// One step towards the beginning.
    fn back(&mut self) -> io::Result<()> {
        let most = usize::try_from(self.from - self.first).unwrap_or(usize::MAX);
        // A line that is longer than a step is not copied once for each.
        let step = self.step.max(self.end).min(most);
        self.step = (self.step * 2).min(LONGEST_STEP);
        if self.bytes.len() < self.end + step {
            self.bytes.resize(self.end + step, 0);
        }
        self.bytes.copy_within(..self.end, step);
        self.end += step;
        self.from -= step as u64;
        let got = self.file.read_at(&mut self.bytes[..step], self.from)?;
        if got == step { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }
}
