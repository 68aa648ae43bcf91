//! The skeleton of a session: which entries there are, where, and how they hang together. No bodies.

use crate::{BlobRef, Entry, EntryId, Label, Level};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// The place of an entry in file order, from 0 (the header is not counted).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ordinal(pub u32);

/// Where a line (or a whole record inside a damaged line) stands: offset and length in bytes, without the line feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct At {
    /// From the start of the file.
    pub off: u64,
    /// Length.
    pub len: u32,
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $text:literal),+ $(,)?) => {
        /// What an entry is, by its `type` (and, for gjc's own, its `customType`).
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Kind { $($(#[$doc])* $name),+ }

        impl Kind {
            const ALL: &[Self] = &[$(Self::$name),+];

            /// The word in lists and reports.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text),+ }
            }

            /// The kind with this number; [`Kind::Unknown`] beyond the end.
            #[must_use]
            pub fn from_u8(number: u8) -> Self {
                Self::ALL.get(usize::from(number)).copied().unwrap_or(Self::Unknown)
            }
        }
    };
}

kinds! {
    /// A type that we do not know.
    Unknown = "unknown",
    /// Somebody said something.
    Message = "message",
    /// Older history was replaced by a summary.
    Compaction = "compaction",
    /// A summary of an abandoned branch.
    BranchSummary = "branch_summary",
    /// A program's state that the model does not see.
    Custom = "custom",
    /// A program's text that the model sees.
    CustomMessage = "custom_message",
    /// A name for a place.
    Label = "label",
    /// Another model.
    ModelChange = "model_change",
    /// Another thinking level.
    ThinkingLevelChange = "thinking_level_change",
    /// Another service tier.
    ServiceTierChange = "service_tier_change",
    /// Another mode.
    ModeChange = "mode_change",
    /// The session's name.
    SessionInfo = "session_info",
    /// `gjc.leaf`.
    OwnLeaf = "gjc.leaf",
    /// `gjc.env`.
    OwnEnv = "gjc.env",
    /// `gjc.taint`.
    OwnTaint = "gjc.taint",
    /// `gjc.delivered`.
    OwnDelivered = "gjc.delivered",
    /// Another entry of gjc's own.
    OwnOther = "gjc.*",
}

impl Kind {
    /// From the top-level `type` and `customType`.
    #[must_use]
    pub fn of(kind: &str, custom_type: Option<&str>) -> Self {
        match (kind, custom_type) {
            ("custom", Some("gjc.leaf")) => Self::OwnLeaf,
            ("custom", Some("gjc.env")) => Self::OwnEnv,
            ("custom", Some("gjc.taint")) => Self::OwnTaint,
            ("custom", Some("gjc.delivered")) => Self::OwnDelivered,
            ("custom", Some(own)) if own.starts_with("gjc.") => Self::OwnOther,
            ("message", _) => Self::Message,
            ("compaction", _) => Self::Compaction,
            ("branch_summary", _) => Self::BranchSummary,
            ("custom", _) => Self::Custom,
            ("custom_message", _) => Self::CustomMessage,
            ("label", _) => Self::Label,
            ("model_change", _) => Self::ModelChange,
            ("thinking_level_change", _) => Self::ThinkingLevelChange,
            ("service_tier_change", _) => Self::ServiceTierChange,
            ("mode_change", _) => Self::ModeChange,
            ("session_info", _) => Self::SessionInfo,
            _ => Self::Unknown,
        }
    }
}

/// A set of kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KindSet(u64);

impl KindSet {
    /// Of these kinds.
    #[must_use]
    pub const fn of(kinds: &[Kind]) -> Self {
        let (mut bits, mut index) = (0, 0);
        while index < kinds.len() {
            bits |= 1 << kinds[index] as u8;
            index += 1;
        }
        Self(bits)
    }

    /// Whether a kind is in it.
    #[must_use]
    pub const fn has(self, kind: Kind) -> bool {
        self.0 & (1 << kind as u8) != 0
    }
}

/// One entry of the skeleton: 24 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node {
    off: u64,
    len: u32,
    id: u32,
    parent: u32,
    kind: u8,
    label: u8,
    flags: u8,
}

const NO_PARENT: u32 = u32::MAX;
const FOREIGN_ID: u8 = 1;

impl Node {
    /// Of [`Node::to_bytes`].
    pub const SIZE: usize = 24;

    /// As an index stores it, little-endian.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        bytes[..8].copy_from_slice(&self.off.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.len.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.id.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.parent.to_le_bytes());
        bytes[20..23].copy_from_slice(&[self.kind, self.label, self.flags]);
        bytes
    }

    /// From the bytes of [`Node::to_bytes`]. Every bytes give a node; whether it can stand in a tree says
    /// [`Skeleton::from_parts`].
    #[must_use]
    pub fn from_bytes(bytes: &[u8; Self::SIZE]) -> Self {
        let [o0, o1, o2, o3, o4, o5, o6, o7, l0, l1, l2, l3, i0, i1, i2, i3, p0, p1, p2, p3, kind, label, flags, _] =
            *bytes;
        Self {
            off: u64::from_le_bytes([o0, o1, o2, o3, o4, o5, o6, o7]),
            len: u32::from_le_bytes([l0, l1, l2, l3]),
            id: u32::from_le_bytes([i0, i1, i2, i3]),
            parent: u32::from_le_bytes([p0, p1, p2, p3]),
            kind,
            label,
            flags,
        }
    }

    /// Where its line is.
    #[must_use]
    pub fn at(&self) -> At {
        At { off: self.off, len: self.len }
    }

    /// What it is.
    #[must_use]
    pub fn kind(&self) -> Kind {
        Kind::from_u8(self.kind)
    }

    /// The parent; `None` for a root.
    #[must_use]
    pub fn parent(&self) -> Option<Ordinal> {
        (self.parent != NO_PARENT).then_some(Ordinal(self.parent))
    }

    /// The session's taint once this entry was in.
    #[must_use]
    pub fn label(&self) -> Label {
        Label { level: Level::from_index(self.label & 3), trusted: self.label & 4 != 0 }
    }
}

/// What a scan or an append knows of one entry.
#[derive(Debug, Clone)]
pub struct NewNode {
    /// Where its line is.
    pub at: At,
    /// What it is.
    pub kind: Kind,
    /// Its id.
    pub id: EntryId,
    /// Its parent's id.
    pub parent: Option<EntryId>,
    /// The label on the line, if there is one.
    pub label: Option<Label>,
}

/// The whole tree of a session without its bodies.
///
/// Invariants: a parent stands before its child, so there are no cycles; an id belongs to the first sound line that bears
/// it; the leaf is the last entry; the running label never falls in level.
#[derive(Debug, Clone, Default)]
pub struct Skeleton {
    nodes: Vec<Node>,
    foreign: Vec<Box<str>>,
    by_short: HashMap<u32, Ordinal, BuildFib>,
    by_foreign: HashMap<Box<str>, Ordinal>,
    running: Option<Label>,
}

/// What [`Skeleton::push`] noticed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pushed {
    /// A new entry.
    New(Ordinal),
    /// A new entry whose parent is not in the file: it became a root.
    Orphan(Ordinal),
    /// The id was there already; nothing was added.
    Repeated(Ordinal),
}

impl Skeleton {
    /// A tree as an index keeps it: [`Skeleton::nodes`] and [`Skeleton::foreign`] of an earlier one. `None` when they are
    /// none: a parent that does not stand before its child, an id that is not there or stands twice, a label that is none.
    #[must_use]
    pub fn from_parts(nodes: Vec<Node>, foreign: Vec<Box<str>>) -> Option<Self> {
        let running = nodes.last().map(Node::label);
        let mut tree = Self { running, foreign, ..Self::default() };
        tree.by_short.reserve(nodes.len());
        for (at, node) in (0u32..).zip(&nodes) {
            let before = node.parent == NO_PARENT || node.parent < at;
            let twice = match node.flags {
                0 => tree.by_short.insert(node.id, Ordinal(at)).is_some(),
                FOREIGN_ID => {
                    tree.by_foreign.insert(tree.foreign.get(node.id as usize)?.clone(), Ordinal(at)).is_some()
                }
                _ => true,
            };
            if !before || twice || node.label > 7 {
                return None;
            }
        }
        tree.nodes = nodes;
        Some(tree)
    }

    /// All entries in file order, as an index keeps them.
    #[must_use]
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The ids that are not of the usual form, in file order, as an index keeps them.
    #[must_use]
    pub fn foreign(&self) -> &[Box<str>] {
        &self.foreign
    }

    /// Adds the next entry in file order.
    pub fn push(&mut self, new: NewNode) -> Pushed {
        if let Some(first) = self.find(&new.id) {
            return Pushed::Repeated(first);
        }
        let ordinal = Ordinal(u32::try_from(self.nodes.len()).unwrap_or(NO_PARENT - 1));
        let found = new.parent.as_ref().and_then(|id| self.find_near(id));
        let before = self.label();
        let after = match new.label {
            // A level never falls; trust is what the line says, because a typed prompt restores it.
            Some(label) => Label { level: before.level.max(label.level), trusted: label.trusted },
            None => before,
        };
        self.running = Some(after);
        let (id, flags) = match &new.id {
            EntryId::Short(id) => {
                self.by_short.insert(*id, ordinal);
                (*id, 0)
            }
            EntryId::Other(text) => {
                self.by_foreign.insert(text.clone(), ordinal);
                self.foreign.push(text.clone());
                (u32::try_from(self.foreign.len() - 1).unwrap_or(u32::MAX), FOREIGN_ID)
            }
        };
        self.nodes.push(Node {
            off: new.at.off,
            len: new.at.len,
            id,
            parent: found.map_or(NO_PARENT, |ordinal| ordinal.0),
            kind: new.kind as u8,
            label: after.level as u8 | u8::from(after.trusted) << 2,
            flags,
        });
        if new.parent.is_some() && found.is_none() { Pushed::Orphan(ordinal) } else { Pushed::New(ordinal) }
    }

    /// Parents mostly are the entry before: look there first.
    fn find_near(&self, id: &EntryId) -> Option<Ordinal> {
        let last = Ordinal(u32::try_from(self.nodes.len().checked_sub(1)?).ok()?);
        if self.id(last) == *id { Some(last) } else { self.find(id) }
    }

    /// The entry with an id.
    #[must_use]
    pub fn find(&self, id: &EntryId) -> Option<Ordinal> {
        match id {
            EntryId::Short(id) => self.by_short.get(id).copied(),
            EntryId::Other(text) => self.by_foreign.get(text).copied(),
        }
    }

    /// Whether a short id is in use.
    #[must_use]
    pub fn has_short(&self, id: u32) -> bool {
        self.by_short.contains_key(&id)
    }

    /// The node at a place. Panics never: a place beyond the end gives `None`.
    #[must_use]
    pub fn node(&self, ordinal: Ordinal) -> Option<&Node> {
        self.nodes.get(ordinal.0 as usize)
    }

    /// The id of the entry at a place; an empty foreign id beyond the end.
    #[must_use]
    pub fn id(&self, ordinal: Ordinal) -> EntryId {
        match self.node(ordinal) {
            Some(node) if node.flags & FOREIGN_ID == 0 => EntryId::Short(node.id),
            Some(node) => EntryId::Other(self.foreign.get(node.id as usize).cloned().unwrap_or_default()),
            None => EntryId::Other("".into()),
        }
    }

    /// How many entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// All entries in file order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (Ordinal, &Node)> {
        self.nodes
            .iter()
            .enumerate()
            .map(|(index, node)| (Ordinal(u32::try_from(index).unwrap_or(NO_PARENT - 1)), node))
    }

    /// The active leaf: the last entry of the file. A moved leaf is an entry (`gjc.leaf`) whose parent is the target.
    #[must_use]
    pub fn leaf(&self) -> Option<Ordinal> {
        self.nodes.len().checked_sub(1).and_then(|last| u32::try_from(last).ok()).map(Ordinal)
    }

    /// The session's taint after all entries.
    #[must_use]
    pub fn label(&self) -> Label {
        self.running.unwrap_or(Label::PUBLIC_TRUSTED)
    }

    /// The entries from the root to `leaf`.
    #[must_use]
    pub fn path(&self, leaf: Leaf) -> PathNodes {
        let mut at = match leaf {
            Leaf::Current => self.leaf(),
            Leaf::At(ordinal) => Some(ordinal),
            Leaf::Root => None,
        };
        let mut path = Vec::new();
        while let Some((ordinal, node)) = at.and_then(|ordinal| Some((ordinal, self.node(ordinal)?))) {
            path.push(PathNode { at: node.at(), kind: node.kind(), label: node.label(), id: self.id(ordinal) });
            at = node.parent();
        }
        path.reverse();
        PathNodes(path)
    }
}

/// Which leaf a question is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Leaf {
    /// The active one.
    Current,
    /// This entry.
    At(Ordinal),
    /// Before the first entry.
    Root,
}

/// An entry on a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathNode {
    /// Where its line is.
    pub at: At,
    /// What it is.
    pub kind: Kind,
    /// The session's taint once it was in.
    pub label: Label,
    /// Its id.
    pub id: EntryId,
}

/// Root to leaf.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PathNodes(pub Vec<PathNode>);

/// The question needs the index, and it is not built yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the index of this session is not built yet")]
pub struct NeedsIndex;

/// What folds and projections read a session through. The log implements it, and so do tests.
pub trait Source {
    /// The entries from the root to a leaf.
    ///
    /// # Errors
    /// [`NeedsIndex`] when the path cannot be found without it.
    fn path(&self, leaf: Leaf) -> Result<PathNodes, NeedsIndex>;

    /// The whole tree; `None` until it is indexed.
    fn skeleton(&self) -> Option<&Skeleton>;

    /// One entry with its body.
    ///
    /// # Errors
    /// [`Damage`] when its line cannot be read; the entry keeps its place all the same.
    fn body(&self, at: At) -> Result<Arc<Entry>, Damage>;
}

/// Content-addressed bytes.
pub trait Blobs: Send + Sync {
    /// The bytes behind a reference.
    ///
    /// # Errors
    /// [`Missing`] when they are not there or not what the reference says.
    fn get(&self, blob: &BlobRef) -> Result<Arc<[u8]>, Missing>;
}

/// A blob that is not there. It is shown to the model as a text that says so, never as a failed request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{blob} is missing: {why}")]
pub struct Missing {
    /// Which.
    pub blob: BlobRef,
    /// Why.
    pub why: String,
}

/// Something in a session file that is not as it should be. The rest of the file stays usable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// Where.
    pub at: At,
    /// What.
    pub kind: DamageKind,
}

/// The kinds of damage.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum DamageKind {
    /// NUL bytes in the line.
    Nul,
    /// Not UTF-8.
    Utf8,
    /// Not an object with the keys of an entry.
    Frame(String),
    /// Two records on one line; the later one was recovered.
    Glued,
    /// The id was taken by an earlier line.
    Repeated(EntryId),
    /// The parent is not in the file.
    Orphan(EntryId),
    /// The frame is sound, the content is not JSON or not what its type needs.
    Body(String),
    /// The bytes could not be read.
    Io(String),
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {}: ", self.at.off)?;
        match &self.kind {
            DamageKind::Nul => write!(f, "a line of {} bytes holds NUL bytes", self.at.len),
            DamageKind::Utf8 => write!(f, "a line of {} bytes is not UTF-8", self.at.len),
            DamageKind::Frame(why) => write!(f, "a line of {} bytes is no entry: {why}", self.at.len),
            DamageKind::Glued => {
                write!(f, "{} bytes of a cut record stand before a whole one on the same line", self.at.len)
            }
            DamageKind::Repeated(id) => write!(f, "the id {id} belongs to an earlier entry"),
            DamageKind::Orphan(id) => write!(f, "the parent {id} is not in the file; the entry was taken as a root"),
            DamageKind::Body(why) => write!(f, "the entry's content cannot be read: {why}"),
            DamageKind::Io(why) => write!(f, "the line cannot be read: {why}"),
        }
    }
}

/// Hashes a random 32-bit id by one multiplication. Ids from a hostile file can at worst slow its own index down.
#[derive(Debug, Clone, Copy, Default)]
pub struct BuildFib;

/// The hasher of [`BuildFib`].
#[derive(Debug, Default)]
pub struct Fib(u64);

impl std::hash::BuildHasher for BuildFib {
    type Hasher = Fib;
    fn build_hasher(&self) -> Fib {
        Fib(0)
    }
}

impl std::hash::Hasher for Fib {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u32(u32::from(*byte));
        }
    }
    fn write_u32(&mut self, value: u32) {
        self.0 = (self.0 ^ u64::from(value)).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(26);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(id: u32, parent: Option<u32>, label: Option<Label>) -> NewNode {
        NewNode {
            at: At { off: u64::from(id) * 10, len: 9 },
            kind: Kind::Message,
            id: EntryId::Short(id),
            parent: parent.map(EntryId::Short),
            label,
        }
    }

    #[test]
    fn a_node_is_24_bytes() {
        assert_eq!(std::mem::size_of::<Node>(), 24);
    }

    #[test]
    fn paths_orphans_and_repeats() {
        let mut tree = Skeleton::default();
        assert_eq!(tree.push(node(1, None, None)), Pushed::New(Ordinal(0)));
        assert_eq!(tree.push(node(2, Some(1), None)), Pushed::New(Ordinal(1)));
        assert_eq!(tree.push(node(2, Some(1), None)), Pushed::Repeated(Ordinal(1)));
        assert_eq!(tree.push(node(3, Some(1), None)), Pushed::New(Ordinal(2)));
        assert_eq!(tree.push(node(4, Some(99), None)), Pushed::Orphan(Ordinal(3)));
        assert_eq!(tree.push(node(5, Some(3), None)), Pushed::New(Ordinal(4)));
        let ids: Vec<String> = tree.path(Leaf::Current).0.iter().map(|node| node.id.to_string()).collect();
        assert_eq!(ids, ["00000001", "00000003", "00000005"]);
        assert_eq!(tree.path(Leaf::At(Ordinal(3))).0.len(), 1);
        assert!(tree.path(Leaf::Root).0.is_empty());
    }

    #[test]
    fn the_running_label_never_falls_in_level() {
        let mut tree = Skeleton::default();
        let secret = Label { level: Level::Confidential, trusted: false };
        tree.push(node(1, None, Some(secret)));
        tree.push(node(2, None, None));
        assert_eq!(tree.label(), secret);
        tree.push(node(3, None, Some(Label::PUBLIC_TRUSTED)));
        assert_eq!(tree.label(), Label { level: Level::Confidential, trusted: true });
    }

    #[test]
    fn kinds_round_trip() {
        for &kind in Kind::ALL {
            assert_eq!(Kind::from_u8(kind as u8), kind);
        }
    }
}
