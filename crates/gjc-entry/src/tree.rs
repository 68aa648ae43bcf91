//! The skeleton of a session: which entries there are, where, and how they hang together. No bodies.

use crate::names::Names;
use crate::{BlobRef, Damage, Entry, EntryId, Kind, Label, Level};
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

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

/// One entry of the skeleton: 24 bytes, as an index file has them (numbers are little-endian everywhere). Whether any bytes
/// can stand in a tree says [`Skeleton::from_parts`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Node {
    off: U64,
    len: U32,
    id: U32,
    parent: U32,
    kind: u8,
    label: u8,
    flags: u8,
    unused: u8,
}

const NO_PARENT: u32 = u32::MAX;
const FOREIGN_ID: u8 = 1;
const NAMELESS: u8 = 2;

impl Node {
    /// Where its line is.
    #[must_use]
    pub fn at(&self) -> At {
        At { off: self.off.get(), len: self.len.get() }
    }

    /// What it is.
    #[must_use]
    pub fn kind(&self) -> Kind {
        Kind::from_u8(self.kind)
    }

    /// The parent; `None` for a root.
    #[must_use]
    pub fn parent(&self) -> Option<Ordinal> {
        (self.parent != NO_PARENT).then_some(Ordinal(self.parent.get()))
    }

    /// The session's taint once this entry was in.
    #[must_use]
    pub fn label(&self) -> Label {
        Label { level: Level::from_index(self.label & 3), trusted: self.label & 4 != 0 }
    }

    /// Whether its id belongs to an earlier entry: nothing can be its child, so it is the end of a branch.
    #[must_use]
    pub fn is_nameless(&self) -> bool {
        self.flags & NAMELESS != 0
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
/// it; the leaf is the last entry that has a name; the running label never falls in level.
#[derive(Debug, Clone, Default)]
pub struct Skeleton {
    nodes: Vec<Node>,
    foreign: Vec<Box<str>>,
    /// Built when an id is first looked for: whoever only shows the active branch never needs it.
    names: OnceLock<Names>,
    leaf: Option<Ordinal>,
    running: Option<Label>,
    patches: HashMap<At, At>,
    generation: u64,
    /// Labels of lines that were mended, which are not joined to the entries behind them yet.
    unsettled: Vec<Mended>,
    /// All entries by where their lines begin. Only made where mended lines stand out of file order.
    by_offset: OnceLock<Vec<u32>>,
}

/// A label that counts for the entries of these places.
#[derive(Debug, Clone, Copy)]
struct Mended {
    from: usize,
    to: usize,
    label: Label,
}

/// What [`Skeleton::push`] noticed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pushed {
    /// A new entry.
    New(Ordinal),
    /// A new entry whose parent is not in the file: it became a root.
    Orphan(Ordinal),
    /// The id was there already; nothing was added. [`Skeleton::push_nameless`] adds it all the same.
    Repeated(Ordinal),
}

impl Skeleton {
    /// A tree as an index keeps it: [`Skeleton::nodes`], [`Skeleton::foreign`] and [`Skeleton::patches`] of an earlier one.
    /// `None` when they are none: a line beyond what is `covered` of the file, a parent that does not stand before its child,
    /// an id that is not there, a label that is none. That no id stands twice is taken on trust; a checksum vouches for it.
    #[must_use]
    pub fn from_parts(nodes: Vec<Node>, foreign: Vec<Box<str>>, patches: Vec<(At, At)>, covered: u64) -> Option<Self> {
        let sound = |(at, node): (u32, &Node)| {
            let end = node.off.get().saturating_add(u64::from(node.len.get()));
            let parent = node.parent.get();
            let id_is_there = (node.flags & FOREIGN_ID == 0) | ((node.id.get() as usize) < foreign.len());
            let known = (node.label <= 7) & (node.flags <= FOREIGN_ID | NAMELESS) & (node.unused == 0);
            (end <= covered) & ((parent == NO_PARENT) | (parent < at)) & id_is_there & known
        };
        // Without a branch for each: all of them hold, or the file is not worth a second look.
        if !(0u32..).zip(&nodes).fold(true, |all, node| all & sound(node)) {
            return None;
        }
        let leaf = nodes.iter().rposition(|node| !node.is_nameless());
        Some(Self {
            leaf: leaf.and_then(|last| u32::try_from(last).ok()).map(Ordinal),
            running: nodes.last().map(Node::label),
            patches: patches.into_iter().collect(),
            nodes,
            foreign,
            ..Self::default()
        })
    }

    /// Which entries have another content, and where it stands.
    pub fn patches(&self) -> impl ExactSizeIterator<Item = (At, At)> {
        self.patches.iter().map(|(base, patch)| (*base, *patch))
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

    /// Makes room for so many more entries, so that a scan of a large file does not move its tables again and again.
    /// None, and the table of ids stays unmade until somebody asks for an id: opening by an index file needs none.
    pub fn reserve(&mut self, more: usize) {
        if more == 0 {
            return;
        }
        self.nodes.reserve(more);
        if self.names.get().is_none() {
            let _ = self.names.set(self.name_all());
        }
        if let Some(names) = self.names.get_mut() {
            names.reserve(more);
        }
    }

    /// Announces that an entry with this id comes soon: its slot in the table of ids is fetched meanwhile.
    #[inline]
    pub fn expect(&self, id: &EntryId) {
        if let Some(names) = self.names.get() {
            names.prefetch(names.hash(id));
        }
    }

    /// Adds the next entry in file order.
    pub fn push(&mut self, new: NewNode) -> Pushed {
        if let Some(first) = self.find(&new.id) {
            return Pushed::Repeated(first);
        }
        let (ordinal, orphan) = self.put(&new, 0);
        if let Some(names) = self.names.get_mut() {
            names.insert(names.hash(&new.id), ordinal.0);
        }
        self.leaf = Some(ordinal);
        if orphan { Pushed::Orphan(ordinal) } else { Pushed::New(ordinal) }
    }

    /// Adds the next entry in file order whose id belongs to an earlier one. It is in the tree, under its parent, and can
    /// be looked at; it never is anybody's parent nor the leaf, because no line could name it.
    pub fn push_nameless(&mut self, new: NewNode) -> Pushed {
        let (ordinal, orphan) = self.put(&new, NAMELESS);
        if orphan { Pushed::Orphan(ordinal) } else { Pushed::New(ordinal) }
    }

    fn put(&mut self, new: &NewNode, flags: u8) -> (Ordinal, bool) {
        let ordinal = Ordinal(u32::try_from(self.nodes.len()).unwrap_or(NO_PARENT - 1));
        let found = new.parent.as_ref().and_then(|id| self.find_near(id));
        let before = self.label();
        let after = match new.label {
            // A level never falls; trust is what the line says, because a typed prompt restores it.
            Some(label) => Label { level: before.level.max(label.level), trusted: label.trusted },
            None => before,
        };
        self.running = Some(after);
        let (id, foreign) = match &new.id {
            EntryId::Short(id) => (*id, 0),
            EntryId::Other(text) => {
                self.foreign.push(text.clone());
                (u32::try_from(self.foreign.len() - 1).unwrap_or(u32::MAX), FOREIGN_ID)
            }
        };
        if let Some(by_offset) = self.by_offset.get_mut() {
            by_offset.push(ordinal.0);
        }
        self.nodes.push(Node {
            off: new.at.off.into(),
            len: new.at.len.into(),
            id: id.into(),
            parent: found.map_or(NO_PARENT, |ordinal| ordinal.0).into(),
            kind: new.kind as u8,
            label: after.level as u8 | u8::from(after.trusted) << 2,
            flags: flags | foreign,
            unused: 0,
        });
        (ordinal, new.parent.is_some() && found.is_none())
    }

    /// A line that was cut has its place; the whole copy of it that came later gives the content, and its label, which from
    /// the place on is the session's too. [`Skeleton::settle`] is to be called once after the last of them.
    pub fn mend(&mut self, ordinal: Ordinal, at: At, kind: Kind, label: Option<Label>) {
        let Some(node) = self.nodes.get_mut(ordinal.0 as usize) else { return };
        (node.off, node.len, node.kind) = (at.off.into(), at.len.into(), kind as u8);
        self.generation += 1;
        self.by_offset = OnceLock::new();
        let Some(label) = label else { return };
        self.unsettled.push(Mended { from: ordinal.0 as usize, to: self.nodes.len(), label });
        let level = self.label().level.max(label.level);
        self.running = Some(Label { level, trusted: label.trusted });
    }

    /// Joins the labels of all mended lines to the entries between them and the place where each was found again: one walk
    /// for all, however many there are.
    pub fn settle(&mut self) {
        let mut mended = std::mem::take(&mut self.unsettled);
        mended.sort_unstable_by_key(|mended| mended.from);
        let (mut waiting, mut level, mut untrusted_to) = (mended.iter().peekable(), Level::Public, 0);
        let first = waiting.peek().map_or(self.nodes.len(), |mended| mended.from);
        for (at, node) in self.nodes.iter_mut().enumerate().skip(first) {
            while let Some(mended) = waiting.next_if(|mended| mended.from == at) {
                // What came after it was found has its level by itself: levels never fall.
                level = level.max(mended.label.level);
                if !mended.label.trusted {
                    untrusted_to = untrusted_to.max(mended.to);
                }
            }
            let label = node.label();
            let joined = Label { level: label.level.max(level), trusted: label.trusted && at >= untrusted_to };
            node.label = joined.level as u8 | u8::from(joined.trusted) << 2;
        }
    }

    /// Changes whenever anything but a new entry at the end has changed: what was folded before has to be folded again.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The content of the entry at `base` is replaced by that of the line at `patch` (gajae-code's `entry_patch`).
    pub fn patch(&mut self, base: At, patch: At) {
        self.patches.insert(base, patch);
        self.generation += 1;
    }

    /// The line that replaces the content of the entry at a place, if there is one.
    #[must_use]
    pub fn patch_of(&self, base: At) -> Option<At> {
        self.patches.get(&base).copied()
    }

    /// Parents mostly are the entry before: look there first.
    fn find_near(&self, id: &EntryId) -> Option<Ordinal> {
        let last = self.leaf?;
        if self.id_is(last, id) { Some(last) } else { self.find(id) }
    }

    /// The entry with an id.
    #[must_use]
    pub fn find(&self, id: &EntryId) -> Option<Ordinal> {
        let names = self.names.get_or_init(|| self.name_all());
        names.find(names.hash(id), |at| self.id_is(Ordinal(at), id)).map(Ordinal)
    }

    fn name_all(&self) -> Names {
        let mut names = Names::default();
        names.reserve(self.nodes.len());
        for (at, node) in (0..).zip(&self.nodes).filter(|(_, node)| !node.is_nameless()) {
            let hash = match node.flags & FOREIGN_ID {
                0 => names.hash_short(node.id.get()),
                _ => names.hash_text(self.foreign.get(node.id.get() as usize).map_or("", |text| text)),
            };
            names.insert(hash, at);
        }
        names
    }

    fn id_is(&self, ordinal: Ordinal, id: &EntryId) -> bool {
        self.node(ordinal).is_some_and(|node| match id {
            EntryId::Short(id) => node.flags & FOREIGN_ID == 0 && node.id == *id,
            EntryId::Other(text) => {
                node.flags & FOREIGN_ID != 0 && self.foreign.get(node.id.get() as usize).is_some_and(|own| own == text)
            }
        })
    }

    /// Whether a short id is in use.
    #[must_use]
    pub fn has_short(&self, id: u32) -> bool {
        self.find(&EntryId::Short(id)).is_some()
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
            Some(node) if node.flags & FOREIGN_ID == 0 => EntryId::Short(node.id.get()),
            Some(node) => EntryId::Other(self.foreign.get(node.id.get() as usize).cloned().unwrap_or_default()),
            None => EntryId::Other("".into()),
        }
    }

    /// The entry whose line begins at an offset.
    #[must_use]
    pub fn at_offset(&self, off: u64) -> Option<Ordinal> {
        let near = self.nodes.partition_point(|node| node.off < off);
        if self.nodes.get(near).is_some_and(|node| node.off == off) {
            return u32::try_from(near).ok().map(Ordinal);
        }
        // In file order but for those that were mended.
        let off_of = |at: u32| self.nodes.get(at as usize).map(|node| node.off.get());
        let by_offset = self.by_offset.get_or_init(|| {
            let mut all: Vec<u32> = (0..).take(self.nodes.len()).collect();
            all.sort_unstable_by_key(|at| off_of(*at));
            all
        });
        let near = by_offset.binary_search_by_key(&Some(off), |at| off_of(*at)).ok()?;
        by_offset.get(near).copied().map(Ordinal)
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

    /// The active leaf: the last entry of the file that has a name of its own. A moved leaf is an entry (`gjc.leaf`) whose
    /// parent is the target.
    #[must_use]
    pub fn leaf(&self) -> Option<Ordinal> {
        self.leaf
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

    /// Takes another tree over in place of this one, as after another program has changed the file.
    pub fn replace(&mut self, by: Self) {
        *self = Self { generation: self.generation + 1, ..by };
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

/// The end of a path that holds the whole context, as [`Source::context_path`] gives it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContextPath {
    /// Up to the leaf.
    pub nodes: PathNodes,
    /// Whether the first of them is the root of the path. Otherwise what comes before it is no context.
    pub from_root: bool,
}

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

    /// As much of the path as the context at a leaf needs: back to what its last compaction keeps, to the last reset, or to
    /// the root. A file that is read from its end has this long before it has the whole path.
    ///
    /// # Errors
    /// [`NeedsIndex`] when it cannot be found without it.
    fn context_path(&self, leaf: Leaf) -> Result<ContextPath, NeedsIndex> {
        Ok(ContextPath { nodes: self.path(leaf)?, from_root: true })
    }

    /// The whole tree; `None` until it is indexed.
    fn skeleton(&self) -> Option<&Skeleton>;

    /// One entry with its body.
    ///
    /// # Errors
    /// [`Damage`] when its line cannot be read; the entry keeps its place all the same.
    fn body(&self, at: At) -> Result<Arc<Entry>, Damage>;

    /// As [`Source::body`], for many one after the other: those that stand near each other may be read at once.
    fn bodies(&self, places: &mut dyn Iterator<Item = At>, each: &mut dyn FnMut(Result<Arc<Entry>, Damage>)) {
        places.for_each(|at| each(self.body(at)));
    }
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
    fn no_room_wanted_makes_no_table_of_ids() {
        let mut scanned = Skeleton::default();
        let _ = scanned.push(node(1, None, None));
        let mut loaded = Skeleton::from_parts(scanned.nodes().to_vec(), Vec::new(), Vec::new(), 99).unwrap();
        loaded.reserve(0);
        assert!(loaded.names.get().is_none());
        loaded.reserve(5);
        assert_eq!(loaded.find(&EntryId::Short(1)), Some(Ordinal(0)));
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
    fn a_label_behind_a_cut_is_not_dropped() {
        let secret = Label { level: Level::Restricted, trusted: false };
        let mut tree = Skeleton::default();
        tree.push(node(1, None, None));
        tree.push(node(2, Some(1), None));
        tree.push(node(3, Some(2), None));
        tree.mend(Ordinal(1), At { off: 99, len: 9 }, Kind::Message, Some(secret));
        tree.settle();
        let labels: Vec<Label> = tree.iter().map(|(_, node)| node.label()).collect();
        assert_eq!(labels, [Label::PUBLIC_TRUSTED, secret, secret]);
        assert_eq!((tree.label(), tree.generation()), (secret, 1));
        tree.push(node(4, Some(3), None));
        assert_eq!(tree.label(), secret);
    }

    /// All mends settled at once are what each would have done when it came, and every entry is found where it stands.
    #[test]
    fn many_mends_are_settled_as_if_one_by_one() {
        let (mut seed, mut next) = (7_u64, 0_u32);
        let mut dice = |sides: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % sides
        };
        for _ in 0..300 {
            let (mut tree, mut model) = (Skeleton::default(), Vec::<Label>::new());
            let mut running = Label::PUBLIC_TRUSTED;
            for _ in 0..dice(40) {
                next += 1;
                let label = (dice(3) == 0)
                    .then(|| Label { level: Level::from_index(u8::try_from(dice(4)).unwrap()), trusted: dice(2) == 0 });
                if dice(3) > 0 || model.is_empty() {
                    tree.push(node(next, None, label));
                    if let Some(label) = label {
                        running = Label { level: running.level.max(label.level), trusted: label.trusted };
                    }
                    model.push(running);
                } else {
                    let place = usize::try_from(dice(model.len() as u64)).unwrap();
                    let at = node(next, None, None).at;
                    tree.mend(Ordinal(u32::try_from(place).unwrap()), at, Kind::Message, label);
                    let Some(label) = label else { continue };
                    for had in &mut model[place..] {
                        *had = Label { level: had.level.max(label.level), trusted: had.trusted && label.trusted };
                    }
                    running = Label { level: running.level.max(label.level), trusted: label.trusted };
                }
            }
            tree.settle();
            assert_eq!(tree.iter().map(|(_, node)| node.label()).collect::<Vec<_>>(), model);
            for (ordinal, node) in tree.iter() {
                assert_eq!(tree.at_offset(node.at().off), Some(ordinal));
            }
            assert_eq!(tree.at_offset(3), None);
            tree.push(node(next + 1, None, None));
            assert_eq!(tree.at_offset(u64::from(next + 1) * 10), tree.leaf());
        }
    }

    #[test]
    fn a_repeated_id_is_a_branch_that_ends() {
        let mut tree = Skeleton::default();
        tree.push(node(1, None, None));
        tree.push(node(2, Some(1), None));
        let twice = NewNode { at: At { off: 99, len: 9 }, ..node(1, Some(2), None) };
        assert_eq!(tree.push(twice.clone()), Pushed::Repeated(Ordinal(0)));
        assert_eq!(tree.push_nameless(twice), Pushed::New(Ordinal(2)));
        assert_eq!((tree.leaf(), tree.find(&EntryId::Short(1))), (Some(Ordinal(1)), Some(Ordinal(0))));
        assert_eq!(tree.path(Leaf::At(Ordinal(2))).0.len(), 3, "it hangs where it says");
        tree.push(node(3, Some(1), None));
        assert_eq!(tree.path(Leaf::Current).0.len(), 2, "its id means the first");
    }
}
