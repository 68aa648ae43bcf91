//! The simulated disk: what programs see (page cache), what is certain to survive (platter), and what lies between.
//!
//! One type serves the running machine and the replay of its journal: both go through [`Disk::apply`].

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::ops::Range;
use std::path::{Component, Path};
use std::sync::Arc;

use smallvec::{SmallVec, smallvec};

/// Index into [`Disk::nodes`]; never reused while the machine runs. The root directory is 0.
pub(super) type Ino = usize;
pub(super) type Name = Arc<OsStr>;
pub(super) type Names = BTreeMap<Name, Ino>;

pub(super) const ROOT: Ino = 0;
/// What a disk writes whole: a torn write ends at a multiple of it.
const SECTOR: usize = 512;

/// One operation in the journal of the machine.
#[derive(Debug, Clone)]
pub(super) enum Op {
    Create { dir: Ino, name: Name },
    Mkdir { dir: Ino, name: Name },
    Append { ino: Ino, bytes: Arc<[u8]> },
    Truncate { ino: Ino, len: usize },
    SyncData { ino: Ino },
    SyncFailed { ino: Ino, dropped: bool },
    Rewrite { ino: Ino, from: usize, bytes: Arc<[u8]> },
    Rename { from: (Ino, Name), to: (Ino, Name) },
    Unlink { dir: Ino, name: Name },
    SyncDir { dir: Ino },
    Mark(u64),
}

/// One change of one name: it leads to `to`, or to nothing.
#[derive(Debug, Clone)]
pub(super) struct Edit {
    pub(super) dir: Ino,
    pub(super) name: Name,
    pub(super) to: Option<Ino>,
}

/// Changes of names that survive together or not at all.
pub(super) type NameOp = SmallVec<[Edit; 2]>;

#[derive(Debug, Clone)]
pub(super) struct Disk {
    /// Shared between machines until one of them writes.
    pub(super) nodes: Arc<Vec<Node>>,
    /// Changes of names that no `sync_dir` has made durable, oldest first.
    pub(super) pending: Vec<NameOp>,
    /// Count of operations; the simulated clock.
    pub(super) tick: u64,
}

#[derive(Debug, Clone)]
pub(super) enum Node {
    /// Nothing survived of it.
    Gone,
    File(FileNode),
    Dir(DirNode),
}

#[derive(Debug, Clone)]
pub(super) struct DirNode {
    pub(super) names: Arc<Names>,
    pub(super) durable: Arc<Names>,
    pub(super) changed: u64,
}

impl DirNode {
    pub(super) fn settled(names: Arc<Names>, changed: u64) -> Self {
        Self { durable: Arc::clone(&names), names, changed }
    }
}

impl Disk {
    pub(super) fn new() -> Self {
        let root = Node::Dir(DirNode::settled(Arc::default(), 0));
        Self::of(vec![root], 0)
    }

    /// A disk on which all of `nodes` is durable.
    pub(super) fn of(nodes: Vec<Node>, tick: u64) -> Self {
        Self { nodes: Arc::new(nodes), pending: Vec::new(), tick }
    }

    pub(super) fn apply(&mut self, op: &Op) {
        self.tick += 1;
        let tick = self.tick;
        match op {
            Op::Create { dir, name } => {
                let file = FileNode::clean(Content::default(), tick);
                self.add(*dir, name, Node::File(file));
            }
            Op::Mkdir { dir, name } => self.add(*dir, name, Node::Dir(DirNode::settled(Arc::default(), tick))),
            Op::Append { ino, bytes } => self.file_mut(*ino).append(bytes, tick),
            Op::Truncate { ino, len } => self.file_mut(*ino).truncate(*len, tick),
            Op::SyncData { ino } => self.file_mut(*ino).sync(),
            Op::SyncFailed { ino, dropped } => self.file_mut(*ino).sync_failed(*dropped),
            Op::Rewrite { ino, from, bytes } => self.file_mut(*ino).rewrite(*from, bytes, tick),
            Op::Rename { from, to } => {
                let Some(ino) = self.dir(from.0).and_then(|dir| dir.names.get(&from.1)).copied() else { return };
                let gone = Edit { dir: from.0, name: Arc::clone(&from.1), to: None };
                let here = Edit { dir: to.0, name: Arc::clone(&to.1), to: Some(ino) };
                self.edit(smallvec![gone, here]);
            }
            Op::Unlink { dir, name } => self.edit(smallvec![Edit { dir: *dir, name: Arc::clone(name), to: None }]),
            Op::SyncDir { dir } => self.sync_dir(*dir),
            Op::Mark(_) => {}
        }
    }

    fn add(&mut self, dir: Ino, name: &Name, node: Node) {
        let nodes = Arc::make_mut(&mut self.nodes);
        nodes.push(node);
        let to = Some(nodes.len() - 1);
        self.edit(smallvec![Edit { dir, name: Arc::clone(name), to }]);
    }

    fn edit(&mut self, op: NameOp) {
        let tick = self.tick;
        for edit in &op {
            if let Some(dir) = self.dir_mut(edit.dir) {
                edit.apply(Arc::make_mut(&mut dir.names));
                dir.changed = tick;
            }
        }
        self.pending.push(op);
    }

    /// A move between directories is never lost: syncing the old home settles both names. Syncing only the new one
    /// leaves the file under both names until the old home is synced too.
    fn sync_dir(&mut self, dir: Ino) {
        for mut op in std::mem::take(&mut self.pending) {
            let leaves_here = op.iter().any(|edit| edit.dir == dir && edit.to.is_none());
            for edit in op.iter().filter(|edit| edit.dir == dir || leaves_here) {
                if let Some(dir) = self.dir_mut(edit.dir) {
                    edit.apply(Arc::make_mut(&mut dir.durable));
                }
            }
            op.retain(|edit| edit.dir != dir && !leaves_here);
            if !op.is_empty() {
                self.pending.push(op);
            }
        }
    }

    /// Makes everything durable.
    pub(super) fn settle(&mut self) {
        self.pending.clear();
        for node in Arc::make_mut(&mut self.nodes) {
            match node {
                Node::Gone => {}
                Node::File(file) => {
                    file.dirty = None;
                    file.doubt = None;
                }
                Node::Dir(dir) => dir.durable = Arc::clone(&dir.names),
            }
        }
    }

    pub(super) fn dir(&self, ino: Ino) -> Option<&DirNode> {
        match self.nodes.get(ino) {
            Some(Node::Dir(dir)) => Some(dir),
            _ => None,
        }
    }

    fn dir_mut(&mut self, ino: Ino) -> Option<&mut DirNode> {
        match Arc::make_mut(&mut self.nodes).get_mut(ino) {
            Some(Node::Dir(dir)) => Some(dir),
            _ => None,
        }
    }

    pub(super) fn file(&self, ino: Ino) -> Option<&FileNode> {
        match self.nodes.get(ino) {
            Some(Node::File(file)) => Some(file),
            _ => None,
        }
    }

    fn file_mut(&mut self, ino: Ino) -> &mut FileNode {
        match Arc::make_mut(&mut self.nodes).get_mut(ino) {
            Some(Node::File(file)) => file,
            _ => unreachable!("operations on a file are journalled only for files"),
        }
    }

    /// The node a path leads to.
    pub(super) fn find(&self, path: &Path) -> io::Result<Ino> {
        let mut at = ROOT;
        for part in parts(path)? {
            let dir = self.dir(at).ok_or(io::ErrorKind::NotADirectory)?;
            at = *dir.names.get(part).ok_or(io::ErrorKind::NotFound)?;
        }
        Ok(at)
    }

    /// The directory and the name in it that a path means, whether the name exists or not.
    pub(super) fn place(&self, path: &Path) -> io::Result<(Ino, Name)> {
        let mut parts = parts(path)?;
        // The root has no name; the system says "busy" or "exists", and nobody asks for it.
        let name = parts.pop().ok_or(io::ErrorKind::AlreadyExists)?;
        let mut at = ROOT;
        for part in parts {
            let dir = self.dir(at).ok_or(io::ErrorKind::NotADirectory)?;
            at = *dir.names.get(part).ok_or(io::ErrorKind::NotFound)?;
        }
        self.dir(at).ok_or(io::ErrorKind::NotADirectory)?;
        Ok((at, Arc::from(name)))
    }
}

impl Edit {
    pub(super) fn apply(&self, names: &mut Names) {
        match self.to {
            Some(ino) => names.insert(Arc::clone(&self.name), ino),
            None => names.remove(&self.name),
        };
    }
}

/// Paths are taken from the root whether they begin with `/` or not: there is no current directory.
fn parts(path: &Path) -> io::Result<Vec<&OsStr>> {
    let mut parts = Vec::new();
    for component in path.components() {
        match component {
            Component::RootDir | Component::CurDir => {}
            Component::ParentDir => drop(parts.pop()),
            Component::Normal(part) => parts.push(part),
            Component::Prefix(_) => return Err(io::ErrorKind::InvalidInput.into()),
        }
    }
    Ok(parts)
}

/// Bytes shared between machines: `buf[..real]`, then NUL up to `len`. A prefix or a NUL tail costs no copy.
#[derive(Debug, Clone, Default)]
pub(super) struct Content {
    buf: Arc<Vec<u8>>,
    real: usize,
    len: usize,
}

impl Content {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    fn prefix(&self, len: usize) -> Self {
        let len = len.min(self.len);
        Self { buf: Arc::clone(&self.buf), real: self.real.min(len), len }
    }

    fn nul_from(&self, at: usize) -> Self {
        Self { buf: Arc::clone(&self.buf), real: self.real.min(at), len: self.len }
    }

    fn nul_within(&self, range: Range<usize>) -> Self {
        let mut bytes = self.to_vec();
        let end = range.end.min(bytes.len());
        if let Some(hole) = bytes.get_mut(range.start..end) {
            hole.fill(0);
        }
        Self { real: bytes.len(), len: bytes.len(), buf: Arc::new(bytes) }
    }

    /// `bytes` over what stands at `from`.
    fn with(&self, from: usize, bytes: &[u8]) -> Self {
        let mut all = self.to_vec();
        if let Some(there) = all.get_mut(from..from + bytes.len()) {
            there.copy_from_slice(bytes);
        }
        Self { real: all.len(), len: all.len(), buf: Arc::new(all) }
    }

    fn push(&mut self, bytes: &[u8]) {
        match Arc::get_mut(&mut self.buf) {
            Some(buf) => {
                buf.truncate(self.real);
                buf.resize(self.len, 0);
                buf.extend_from_slice(bytes);
            }
            None => {
                let mut buf = Vec::with_capacity((self.len + bytes.len()).next_power_of_two());
                buf.extend_from_slice(&self.buf[..self.real]);
                buf.resize(self.len, 0);
                buf.extend_from_slice(bytes);
                self.buf = Arc::new(buf);
            }
        }
        self.len += bytes.len();
        self.real = self.len;
    }

    fn resize(&mut self, len: usize) {
        self.real = self.real.min(len);
        self.len = len;
    }

    pub(super) fn read_at(&self, out: &mut [u8], offset: u64) -> usize {
        let Some(at) = usize::try_from(offset).ok().filter(|at| *at < self.len) else { return 0 };
        let count = out.len().min(self.len - at);
        let real = self.real.saturating_sub(at).min(count);
        out[..real].copy_from_slice(&self.buf[at..at + real]);
        out[real..count].fill(0);
        count
    }

    pub(super) fn to_vec(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.len];
        self.read_at(&mut bytes, 0);
        bytes
    }
}

#[derive(Debug, Clone)]
pub(super) struct FileNode {
    /// What programs read.
    pub(super) cache: Content,
    /// Bytes below the last sync that a failed sync before it may have lost: the kernel calls their pages clean after
    /// the failure and never writes them again, whatever later syncs say.
    doubt: Option<Range<usize>>,
    /// What has changed since the last sync; absent when nothing has.
    dirty: Option<Box<Dirty>>,
    pub(super) changed: u64,
}

/// Changes since the last sync. A *run* is a stretch of appends without a truncation; its content holds all of its
/// states as prefixes. The run going on has its content in [`FileNode::cache`].
#[derive(Debug, Clone)]
struct Dirty {
    /// Length at the last sync, a prefix of run 0.
    base: usize,
    /// Lowest length since then: bytes before it are as the sync left them.
    low: usize,
    ended: Vec<Content>,
    /// For each run, what remains of [`FileNode::doubt`] in it.
    doubts: Vec<Option<Range<usize>>>,
    ops: Vec<FileOp>,
    /// Bytes that a failed sync has left "clean".
    failed: Option<Range<usize>>,
    /// Bytes that it had left so, and that were written anew since: the next sync decides about them.
    redone: Option<Range<usize>>,
}

#[derive(Debug, Clone)]
enum FileOp {
    Append {
        run: usize,
        from: usize,
        to: usize,
        low: usize,
    },
    Truncate {
        run: usize,
        len: usize,
    },
    /// Bytes in place; a power cut leaves what stood there before from a sector on.
    Rewrite {
        run: usize,
        from: usize,
        to: usize,
        len: usize,
    },
}

impl FileOp {
    /// The number of states this operation can be found in after a power cut, "not at all" not counted.
    fn states(&self) -> usize {
        match *self {
            Self::Append { from, to, low, .. } => (to - from) + 1 + ((to - 1) / SECTOR - low / SECTOR),
            Self::Truncate { .. } => 1,
            Self::Rewrite { from, to, .. } => 1 + ((to - 1) / SECTOR - from / SECTOR),
        }
    }
}

/// What a power cut has left of a file, for people.
#[derive(Debug, Clone)]
pub(super) enum Left {
    Synced { len: usize },
    Prefix { len: usize },
    Nul { from: usize, len: usize },
    Rewritten { upto: usize, len: usize },
}

impl FileNode {
    pub(super) fn clean(cache: Content, changed: u64) -> Self {
        Self { cache, doubt: None, dirty: None, changed }
    }

    fn dirty(&mut self) -> (&mut Content, &mut Dirty) {
        let len = self.cache.len();
        let doubt = &self.doubt;
        let dirty = self.dirty.get_or_insert_with(|| {
            Box::new(Dirty {
                base: len,
                low: len,
                ended: Vec::new(),
                doubts: vec![doubt.clone()],
                ops: Vec::new(),
                failed: None,
                redone: None,
            })
        });
        (&mut self.cache, dirty)
    }

    fn append(&mut self, bytes: &[u8], tick: u64) {
        self.changed = tick;
        let (cache, dirty) = self.dirty();
        let from = cache.len();
        cache.push(bytes);
        dirty.ops.push(FileOp::Append { run: dirty.ended.len(), from, to: cache.len(), low: dirty.low });
    }

    fn truncate(&mut self, len: usize, tick: u64) {
        self.changed = tick;
        let (cache, dirty) = self.dirty();
        dirty.ended.push(cache.clone());
        cache.resize(len);
        dirty.low = dirty.low.min(len);
        dirty.failed = clip(dirty.failed.take(), len);
        dirty.redone = clip(dirty.redone.take(), len);
        dirty.doubts.push(clip(dirty.doubts.last().cloned().flatten(), len));
        dirty.ops.push(FileOp::Truncate { run: dirty.ended.len(), len });
    }

    fn sync(&mut self) {
        if let Some(dirty) = self.dirty.take() {
            self.doubt = hull(dirty.doubts.into_iter().next_back().flatten(), dirty.failed);
        }
    }

    fn sync_failed(&mut self, dropped: bool) {
        let len = self.cache.len();
        let Some(dirty) = &mut self.dirty else { return };
        let lost = hull((dirty.low < len).then_some(dirty.low..len), dirty.redone.take());
        dirty.failed = hull(dirty.failed.take(), lost.clone());
        if let Some(lost) = lost.filter(|_| dropped) {
            dirty.ended.push(self.cache.clone());
            dirty.doubts.push(dirty.doubts.last().cloned().flatten());
            self.cache = self.cache.nul_within(lost);
            dirty.ops.push(FileOp::Truncate { run: dirty.ended.len(), len });
        }
    }

    /// What stands there already, once more: bytes that a failed sync has left "clean" are dirty again.
    fn rewrite(&mut self, from: usize, bytes: &[u8], tick: u64) {
        self.changed = tick;
        let (cache, dirty) = self.dirty();
        let (to, len) = (from + bytes.len(), cache.len());
        dirty.ended.push(cache.clone());
        *cache = cache.with(from, bytes);
        let (doubt, was_in_doubt) = without(dirty.doubts.last().cloned().flatten(), from..to);
        let (failed, had_failed) = without(dirty.failed.take(), from..to);
        dirty.failed = failed;
        dirty.doubts.push(doubt);
        dirty.redone = hull(dirty.redone.take(), hull(was_in_doubt, had_failed));
        dirty.ops.push(FileOp::Rewrite { run: dirty.ended.len(), from, to, len });
    }

    pub(super) fn in_doubt(&self) -> bool {
        self.doubt.is_some()
    }

    /// The number of states this file can be found in after a power cut: the synced one is state 0.
    pub(super) fn states(&self) -> usize {
        let ops = self.dirty.iter().flat_map(|dirty| &dirty.ops);
        (1 + ops.map(FileOp::states).sum::<usize>()) * self.doubt_states()
    }

    /// Those of [`FileNode::states`] in which the newest operation left something.
    pub(super) fn newest_states(&self) -> Range<usize> {
        let newest = self.dirty.as_ref().and_then(|dirty| dirty.ops.last()).map_or(0, FileOp::states);
        let all = self.states();
        all - newest * self.doubt_states()..all
    }

    /// The state in which everything survived.
    pub(super) fn whole_state(&self) -> usize {
        match self.dirty.as_ref().and_then(|dirty| dirty.ops.last()) {
            None => 0,
            Some(FileOp::Truncate { .. } | FileOp::Rewrite { .. }) => self.newest_states().start,
            Some(FileOp::Append { from, to, .. }) => self.newest_states().start + (to - from - 1) * self.doubt_states(),
        }
    }

    /// Intact; NUL; or NUL from a sector on.
    fn doubt_states(&self) -> usize {
        self.doubt.as_ref().map_or(1, |doubt| 2 + (doubt.end - 1) / SECTOR - doubt.start / SECTOR)
    }

    /// What a power cut leaves, for a number below [`FileNode::states`].
    pub(super) fn state(&self, number: usize) -> Content {
        let (state, doubt) = (number / self.doubt_states(), number % self.doubt_states());
        let (content, run) = match self.left(state) {
            (Left::Synced { len } | Left::Prefix { len }, run) => (self.run(run).prefix(len), run),
            (Left::Nul { from, len }, run) => (self.run(run).prefix(len).nul_from(from), run),
            (Left::Rewritten { upto, len }, run) => {
                let before = self.run(run - 1).prefix(len);
                (before.with(0, &self.run(run).prefix(upto).to_vec()), run)
            }
        };
        let Some(lost) = self.lost(doubt) else { return content };
        let within = match &self.dirty {
            Some(dirty) => dirty.doubts.get(run).cloned().flatten(),
            None => self.doubt.clone(),
        };
        within.map_or(content.clone(), |within| content.nul_within(lost.start..lost.end.min(within.end)))
    }

    /// As [`FileNode::state`], in words.
    pub(super) fn describe(&self, number: usize) -> (Left, Option<Range<usize>>) {
        let (state, doubt) = (number / self.doubt_states(), number % self.doubt_states());
        (self.left(state).0, self.lost(doubt))
    }

    fn lost(&self, doubt: usize) -> Option<Range<usize>> {
        let range = self.doubt.clone()?;
        match doubt {
            0 => None,
            1 => Some(range),
            n => Some((range.start / SECTOR + n - 1) * SECTOR..range.end),
        }
    }

    /// The state and the run it belongs to.
    fn left(&self, state: usize) -> (Left, usize) {
        let Some(dirty) = &self.dirty else { return (Left::Synced { len: self.cache.len() }, 0) };
        let Some(mut rest) = state.checked_sub(1) else { return (Left::Synced { len: dirty.base }, 0) };
        for op in &dirty.ops {
            if let Some(next) = rest.checked_sub(op.states()) {
                rest = next;
                continue;
            }
            return match *op {
                FileOp::Truncate { run, len } => (Left::Prefix { len }, run),
                FileOp::Rewrite { run, len, .. } if rest == 0 => (Left::Prefix { len }, run),
                FileOp::Rewrite { run, from, len, .. } => {
                    (Left::Rewritten { upto: (from / SECTOR + rest) * SECTOR, len }, run)
                }
                FileOp::Append { run, from, to, low } => match rest.checked_sub(to - from) {
                    None => (Left::Prefix { len: from + 1 + rest }, run),
                    Some(0) => (Left::Nul { from: low, len: to }, run),
                    Some(sector) => (Left::Nul { from: (low / SECTOR + sector) * SECTOR, len: to }, run),
                },
            };
        }
        (Left::Synced { len: dirty.base }, 0)
    }

    fn run(&self, run: usize) -> &Content {
        self.dirty.as_ref().and_then(|dirty| dirty.ended.get(run)).unwrap_or(&self.cache)
    }
}

fn clip(range: Option<Range<usize>>, len: usize) -> Option<Range<usize>> {
    range.filter(|range| range.start < len).map(|range| range.start..range.end.min(len))
}

/// What is left of a range, and what was taken from it. One that would fall in two stays whole, to be on the safe side.
fn without(range: Option<Range<usize>>, taken: Range<usize>) -> (Option<Range<usize>>, Option<Range<usize>>) {
    let Some(range) = range else { return (None, None) };
    if taken.end <= range.start || taken.start >= range.end {
        return (Some(range), None);
    }
    match (taken.start <= range.start, taken.end >= range.end) {
        (true, true) => (None, Some(range)),
        (true, false) => (Some(taken.end..range.end), Some(range.start..taken.end)),
        (false, true) => (Some(range.start..taken.start), Some(taken.start..range.end)),
        (false, false) => (Some(range), None),
    }
}

fn hull(a: Option<Range<usize>>, b: Option<Range<usize>>) -> Option<Range<usize>> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.start.min(b.start)..a.end.max(b.end)),
        (a, b) => a.or(b),
    }
}
