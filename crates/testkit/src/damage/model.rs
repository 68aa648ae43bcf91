//! What any reader owes to a damaged file.

use super::sound::LEVELS;
use super::{Damaged, Record, Sound};
use gjc_entry::{At, Damage, DamageKind, Fields, Leaf, Level, Skeleton, Source};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::ops::Range;

/// What a reader made of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// Its entries, in its order.
    pub nodes: Vec<NodeSeen>,
    /// What it says is damaged, by opening it and by reading every body.
    pub reports: Vec<Report>,
    /// The active leaf.
    pub leaf: Option<usize>,
    /// The session's level, 0 to 3.
    pub level: usize,
}

/// An entry as a reader sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeSeen {
    /// Its bytes.
    pub span: Range<usize>,
    /// Its id.
    pub id: String,
    /// Its parent's place among the nodes.
    pub parent: Option<usize>,
    /// The id inside its body; `None` when the body cannot be read.
    pub body: Option<String>,
}

/// A report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Where.
    pub span: Range<usize>,
    /// The parent that is not there, when it is about one.
    pub orphan_of: Option<String>,
    /// The sentence.
    pub what: String,
}

impl From<&Damage> for Report {
    fn from(damage: &Damage) -> Self {
        let orphan_of = match &damage.kind {
            DamageKind::Orphan(parent) => Some(parent.to_string()),
            _ => None,
        };
        Self { span: span(damage.at), orphan_of, what: damage.to_string() }
    }
}

fn span(at: At) -> Range<usize> {
    let off = usize::try_from(at.off).expect("a file of a test fits into memory");
    off..off + at.len as usize
}

impl Look {
    /// Looks through a source that has opened with this damage.
    pub fn through(source: &dyn Source, damage: &[Damage]) -> Self {
        let none = Skeleton::default();
        let tree = source.skeleton().unwrap_or(&none);
        let mut reports: Vec<Report> = damage.iter().map(Report::from).collect();
        let nodes = tree.iter().map(|(ordinal, node)| NodeSeen {
            span: span(node.at()),
            id: tree.id(ordinal).to_string(),
            parent: node.parent().map(|parent| parent.0 as usize),
            body: match source.body(node.at()) {
                Ok(entry) => Some(entry.id.to_string()),
                Err(damage) => {
                    reports.push(Report::from(&damage));
                    None
                }
            },
        });
        let nodes = nodes.collect();
        let path = source.path(Leaf::Current).unwrap_or_else(|error| panic!("{error}"));
        let leaf = tree.leaf().map(|leaf| leaf.0 as usize);
        assert_eq!(path.0.last().map(|node| node.at), tree.leaf().and_then(|leaf| Some(tree.node(leaf)?.at())));
        let level = Level::ALL.iter().position(|level| *level == tree.label().level).unwrap_or(0);
        Self { nodes, reports, leaf, level }
    }
}

/// What a reader did not do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Flaw {
    /// It refused a file whose header is whole.
    Refused(String),
    /// A whole record, or a line that is one, is no entry.
    Lost {
        /// Its id.
        id: String,
        /// Where it begins.
        off: usize,
        /// What else is known of it.
        how: Lost,
    },
    /// A whole record has another parent than it says, though that one is there.
    Branch(String),
    /// The body of a whole record cannot be read.
    Body(String),
    /// A line that is no entry is not reported.
    Unreported(String),
    /// A report about a place where nothing is wrong.
    False(String),
    /// An entry that no line holds.
    Invented(String),
    /// The session's level is lower than that of an entry in it.
    Level(String),
    /// Two ways of reading the same file do not agree.
    Disagree(String),
    /// Bytes were changed that must stay.
    Changed(String),
    /// The next entry was not taken in as it should.
    Append(String),
}

/// How a record was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lost {
    /// It stands alone on its line, and no other entry has its id.
    Alone,
    /// Another entry has its id.
    Repeated,
    /// It ends its line, but for NULs; other bytes stand before or behind it.
    Last,
    /// Its line goes on behind it.
    Followed,
    /// It is the last one and lost its line feed; opening for writing has cut it.
    Torn,
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

/// What a line is, as a JSON parser sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing but white space.
    Blank,
    /// A JSON object with the keys of an entry.
    Entry {
        /// Its id.
        id: String,
        /// Its parent.
        parent: Option<String>,
    },
    /// One that says one of these keys twice: a parser takes the last, an early exit the first.
    Twice,
    /// Anything else.
    Other,
}

/// One line of a damaged file.
#[derive(Debug, Clone)]
struct Line {
    span: Range<usize>,
    touched: bool,
    verdict: Verdict,
}

/// The owed part of a damaged file.
#[derive(Debug, Clone)]
pub struct Model<'a> {
    damaged: &'a Damaged,
    sound: &'a Sound,
    lines: Vec<Line>,
    /// One past the last line feed.
    complete: usize,
}

impl<'a> Model<'a> {
    /// Of a damaged file.
    #[must_use]
    pub fn new(sound: &'a Sound, damaged: &'a Damaged) -> Self {
        let bytes = &damaged.bytes;
        let complete = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        let known: HashMap<usize, &Record> =
            damaged.intact.iter().map(|(index, off)| (*off, &sound.records[*index])).collect();
        let (mut lines, mut seen) = (Vec::new(), BTreeSet::new());
        let mut start = 0;
        while start < complete {
            let end = bytes[start..].iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |at| start + at);
            // A line that is a whole record, and nothing else, is what it was.
            let (touched, verdict) = match known.get(&start) {
                Some(record) if start + record.span.len() == end => {
                    // A second copy may be reported.
                    (
                        !seen.insert(record.span.start),
                        Verdict::Entry { id: record.id.clone(), parent: record.parent.clone() },
                    )
                }
                _ => (true, verdict(&bytes[start..end])),
            };
            lines.push(Line { span: start..end, touched, verdict });
            start = end + 1;
        }
        Self { damaged, sound, lines, complete }
    }

    /// One past the last line feed.
    #[must_use]
    pub fn complete(&self) -> usize {
        self.complete
    }

    /// Whether the header is whole and in its place: then the session must open, whatever became of the rest.
    #[must_use]
    pub fn must_open(&self) -> bool {
        let first = self.damaged.intact.iter().any(|(index, off)| *index == 0 && self.line_of(*off) == Some(0));
        first && !self.lines.is_empty()
    }

    /// Whether the header's line holds nothing but the whole header.
    #[must_use]
    pub fn header_is_alone(&self) -> bool {
        self.lines.first().is_some_and(|line| {
            let text = self.damaged.bytes[line.span.clone()].trim_ascii();
            text == &self.sound.bytes[self.sound.records[0].span.clone()]
        })
    }

    fn line_of(&self, off: usize) -> Option<usize> {
        let index = self.lines.partition_point(|line| line.span.end < off);
        (index < self.lines.len() && off < self.complete).then_some(index)
    }

    /// What stands before and behind a whole record on its line.
    fn around(&self, span: &Range<usize>) -> [&[u8]; 2] {
        let line = self.line_of(span.start).map_or(span.clone(), |index| self.lines[index].span.clone());
        [&self.damaged.bytes[line.start..span.start], &self.damaged.bytes[span.end..line.end.max(span.end)]]
    }

    /// Checks what a reader made of it.
    ///
    /// # Errors
    /// The first thing that it did not do.
    pub fn check(&self, look: &Look) -> Result<(), Flaw> {
        let owners = owners(look);
        self.whole_records_are_there(look, &owners)?;
        self.lines_are_what_they_are(look, &owners)?;
        self.reports_are_true(look, &owners)?;
        // Only what has a name can be gone on from.
        let named = |(place, node): &(usize, &NodeSeen)| owners.get(node.id.as_str()) == Some(place);
        if look.leaf != look.nodes.iter().enumerate().rev().find(named).map(|(place, _)| place) {
            return Err(Flaw::Branch(format!("the leaf is {:?} of {} entries", look.leaf, look.nodes.len())));
        }
        Ok(())
    }

    fn whole_records_are_there(&self, look: &Look, owners: &HashMap<&str, usize>) -> Result<(), Flaw> {
        let mut level = 0;
        let mut written: BTreeMap<&str, &[u8]> = BTreeMap::new();
        let mut intact = self.damaged.intact.clone();
        intact.sort_by_key(|(_, off)| *off);
        for (index, off) in intact {
            let record = &self.sound.records[index];
            let span = off..off + record.span.len();
            if index == 0 || span.end > self.complete {
                continue;
            }
            let bytes = &self.damaged.bytes[span.clone()];
            let seen = look.nodes.iter().position(|node| self.is_at(node, &span));
            let Some(place) = seen else {
                // The same record a second time is no second entry.
                if written.get(record.id.as_str()) == Some(&bytes) {
                    continue;
                }
                let around = self.around(&span);
                let blank = |bytes: &[u8]| bytes.iter().all(u8::is_ascii_whitespace);
                let hole = |byte: &u8| *byte == 0 || byte.is_ascii_whitespace();
                let how = if owners.contains_key(record.id.as_str()) {
                    Lost::Repeated
                } else if around.iter().all(|bytes| blank(bytes)) {
                    Lost::Alone
                } else if around[1].iter().all(hole) {
                    Lost::Last
                } else {
                    Lost::Followed
                };
                return Err(Flaw::Lost { id: record.id.clone(), off, how });
            };
            written.entry(&record.id).or_insert(bytes);
            level = level.max(record.level);
            let node = &look.nodes[place];
            if node.body.as_deref() != Some(record.id.as_str()) {
                return Err(Flaw::Body(format!("{} at byte {off}: {:?}", record.id, node.body)));
            }
            self.parent_is(look, owners, place, record.parent.as_deref())?;
        }
        let floor = LEVELS[level];
        if look.level < level {
            return Err(Flaw::Level(format!("{} though an entry is {floor}", LEVELS[look.level])));
        }
        Ok(())
    }

    /// A node may hold white space before its record, and anything behind it.
    fn is_at(&self, node: &NodeSeen, span: &Range<usize>) -> bool {
        node.span.start <= span.start
            && node.span.end >= span.end
            && self.damaged.bytes[node.span.start..span.start].iter().all(u8::is_ascii_whitespace)
    }

    fn parent_is(
        &self,
        look: &Look,
        owners: &HashMap<&str, usize>,
        place: usize,
        parent: Option<&str>,
    ) -> Result<(), Flaw> {
        let node = &look.nodes[place];
        let expected = parent.and_then(|parent| owners.get(parent)).copied().filter(|owner| *owner < place);
        if node.parent != expected {
            return Err(Flaw::Branch(format!(
                "{} at byte {}: parent {:?} instead of {expected:?} ({parent:?})",
                node.id, node.span.start, node.parent
            )));
        }
        let told = |report: &Report| report.span.start == node.span.start && report.orphan_of.as_deref() == parent;
        if parent.is_some() && expected.is_none() && !look.reports.iter().any(told) {
            return Err(Flaw::Unreported(format!("{} at byte {} lost its parent", node.id, node.span.start)));
        }
        Ok(())
    }

    fn lines_are_what_they_are(&self, look: &Look, owners: &HashMap<&str, usize>) -> Result<(), Flaw> {
        let mut ids: BTreeMap<&str, &[u8]> = BTreeMap::new();
        for (number, line) in self.lines.iter().enumerate().skip(1) {
            let reported = || look.reports.iter().any(|report| overlaps(&report.span, &line.span));
            let bytes = self.damaged.bytes[line.span.clone()].trim_ascii();
            match &line.verdict {
                Verdict::Blank => {}
                Verdict::Other if !reported() => {
                    return Err(Flaw::Unreported(format!("line {number} at byte {} is no entry", line.span.start)));
                }
                Verdict::Twice if !reported() => {
                    let off = line.span.start;
                    return Err(Flaw::Unreported(format!("line {number} at byte {off} says a key twice")));
                }
                Verdict::Other | Verdict::Twice => {}
                // The header again, or behind a damaged first line.
                _ if bytes == &self.sound.bytes[self.sound.records[0].span.clone()] => {}
                Verdict::Entry { id, .. } if ids.get(id.as_str()) == Some(&bytes) => {}
                Verdict::Entry { id, parent } => {
                    ids.entry(id).or_insert(bytes);
                    let seen = look.nodes.iter().position(|node| overlaps(&node.span, &line.span));
                    let Some(place) = seen else {
                        let how = if owners.contains_key(id.as_str()) { Lost::Repeated } else { Lost::Alone };
                        return Err(Flaw::Lost { id: id.clone(), off: line.span.start, how });
                    };
                    if line.touched {
                        self.parent_is(look, owners, place, parent.as_deref())?;
                    }
                }
            }
        }
        Ok(())
    }

    fn reports_are_true(&self, look: &Look, owners: &HashMap<&str, usize>) -> Result<(), Flaw> {
        let touched: Vec<&Range<usize>> =
            self.lines.iter().filter(|line| line.touched).map(|line| &line.span).collect();
        let mut twice = BTreeSet::new();
        for report in &look.reports {
            let here = touched.iter().any(|line| overlaps(&report.span, line));
            // What follows from damage elsewhere: the parent stood there.
            let orphan = report.orphan_of.as_deref().is_some_and(|parent| {
                let place = look.nodes.iter().position(|node| node.span.start == report.span.start);
                place.is_some_and(|place| owners.get(parent).is_none_or(|owner| *owner >= place))
            });
            // Likewise: the first that bears an id owns it, whichever of the two was there before.
            let repeated = look
                .nodes
                .iter()
                .position(|node| node.span.start == report.span.start)
                .is_some_and(|place| owners.get(look.nodes[place].id.as_str()).is_some_and(|owner| *owner < place));
            if !here && !orphan && !repeated {
                return Err(Flaw::False(format!("{} though nothing is wrong there", report.what)));
            }
            if !twice.insert((report.span.start, &report.what)) {
                return Err(Flaw::False(format!("told twice: {}", report.what)));
            }
        }
        for node in &look.nodes {
            let inside = |line: &Line| line.span.start <= node.span.start && node.span.end <= line.span.end;
            let index = self.lines.partition_point(|line| line.span.end < node.span.start);
            if !self.lines.get(index).is_some_and(inside) {
                return Err(Flaw::Invented(format!("{} at {:?} is not on one line", node.id, node.span)));
            }
        }
        Ok(())
    }
}

/// The first entry with an id.
fn owners(look: &Look) -> HashMap<&str, usize> {
    let mut owners = HashMap::new();
    for (place, node) in look.nodes.iter().enumerate() {
        // The id in the file: one that is kept under another name has the first one's all the same.
        owners.entry(node.id.as_str()).or_insert(place);
    }
    owners
}

fn overlaps(one: &Range<usize>, two: &Range<usize>) -> bool {
    // An empty line is touched by what stands at its place.
    one.start < two.end.max(two.start + 1) && two.start < one.end.max(one.start + 1)
}

fn verdict(line: &[u8]) -> Verdict {
    if line.iter().all(u8::is_ascii_whitespace) {
        return Verdict::Blank;
    }
    entry(line).unwrap_or(Verdict::Other)
}

fn entry(line: &[u8]) -> Option<Verdict> {
    let fields = Fields::parse(std::str::from_utf8(line).ok()?.trim()).ok()?.rest();
    let all = |key: &str| -> Vec<&str> {
        fields.iter().filter(|(name, _)| **name == *key).map(|(_, value)| value.get()).collect()
    };
    if ["type", "id", "parentId", "gjcLabel", "customType"].iter().any(|key| all(key).len() > 1) {
        return Some(Verdict::Twice);
    }
    let text = |key: &str| serde_json::from_str::<String>(all(key).first()?).ok();
    text("type")?;
    let parent = match all("parentId").first() {
        None | Some(&"null") => None,
        Some(_) => Some(text("parentId")?),
    };
    Some(Verdict::Entry { id: text("id")?, parent })
}
