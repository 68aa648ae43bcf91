//! Every state a power cut can leave, one after another.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use super::SimFs;
use super::disk::{DirNode, Disk, FileNode, Ino, Left, Name, NameOp, Names, Node, Op, ROOT};

/// Up to this many pending changes of names, every subset of them is tried.
const ALL_SUBSETS: usize = 10;
/// Up to this many combinations of the states of several files, all are tried.
const ALL_COMBINATIONS: usize = 4_096;
/// Up to this many files with unsynced changes, while one file goes through all its states the others are whole or
/// as synced, independently; beyond it, all whole or all as synced.
const ALL_CORNERS: usize = 5;

/// What a machine finds after the power was cut.
#[derive(Debug, Clone)]
pub struct Cut {
    /// The rebooted machine: no locks, no faults, an empty journal.
    pub fs: SimFs,
    /// The marks that had been set before the cut, in order.
    pub marks: Vec<u64>,
    /// How many operations the journal held when the power was cut.
    pub position: usize,
    tree: Arc<Tree>,
    left: Vec<(Ino, Left, Option<Range<usize>>)>,
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "power cut after operation {}, marks {:?}", self.position, self.marks)?;
        for (op, _) in self.tree.pending.iter().zip(&self.tree.kept).filter(|(_, kept)| !**kept) {
            for edit in op {
                match edit.to {
                    Some(ino) => write!(f, "; lost: name {} of inode {ino}", edit.name.display())?,
                    None => write!(f, "; lost: removal of name {}", edit.name.display())?,
                }
            }
        }
        for (ino, left, lost) in &self.left {
            write!(f, "; {} (inode {ino}): ", self.tree.name_of(*ino))?;
            match left {
                Left::Synced { len } => write!(f, "the {len} synced bytes")?,
                Left::Prefix { len } => write!(f, "{len} bytes")?,
                Left::Nul { from, len } => write!(f, "{len} bytes, NUL from {from} on")?,
                Left::Rewritten { upto, len } => write!(f, "{len} bytes, written anew up to {upto}")?,
            }
            if let Some(lost) = lost {
                write!(f, ", NUL within {}..{} since a failed sync", lost.start, lost.end)?;
            }
        }
        Ok(())
    }
}

/// The directories that survived, for one choice of the pending changes of names.
#[derive(Debug)]
struct Tree {
    dirs: Vec<(Ino, Arc<Names>)>,
    files: Vec<Ino>,
    pending: Arc<Vec<NameOp>>,
    kept: Vec<bool>,
}

impl Tree {
    fn of(disk: &Disk, pending: &Arc<Vec<NameOp>>, kept: Vec<bool>) -> Self {
        let mut changed: BTreeMap<Ino, Names> = BTreeMap::new();
        for (op, _) in pending.iter().zip(&kept).filter(|(_, kept)| **kept) {
            for edit in op {
                let Some(dir) = disk.dir(edit.dir) else { continue };
                edit.apply(changed.entry(edit.dir).or_insert_with(|| (*dir.durable).clone()));
            }
        }
        let mut tree = Self { dirs: Vec::new(), files: Vec::new(), pending: Arc::clone(pending), kept };
        let mut seen = HashSet::from([ROOT]);
        let mut todo = vec![ROOT];
        while let Some(ino) = todo.pop() {
            let Some(dir) = disk.dir(ino) else {
                tree.files.push(ino);
                continue;
            };
            let names = changed.remove(&ino).map_or_else(|| Arc::clone(&dir.durable), Arc::new);
            todo.extend(names.values().filter(|ino| seen.insert(**ino)));
            tree.dirs.push((ino, names));
        }
        tree.files.sort_unstable();
        tree.dirs.sort_unstable_by_key(|(ino, _)| *ino);
        tree
    }

    fn name_of(&self, ino: Ino) -> String {
        let names = self.dirs.iter().flat_map(|(_, names)| names.iter());
        let name: Option<&Name> = names.filter(|(_, to)| **to == ino).map(|(name, _)| name).next();
        name.map_or_else(String::new, |name| name.display().to_string())
    }

    /// What survives of everything that is not in question.
    fn nodes(&self, disk: &Disk) -> Vec<Node> {
        let last = self.files.iter().chain(self.dirs.iter().map(|(ino, _)| ino)).max().copied().unwrap_or(ROOT);
        let mut nodes = vec![Node::Gone; last + 1];
        for (ino, names) in &self.dirs {
            let changed = disk.dir(*ino).map_or(0, |dir| dir.changed);
            nodes[*ino] = Node::Dir(DirNode::settled(Arc::clone(names), changed));
        }
        for ino in &self.files {
            if let Some(file) = disk.file(*ino) {
                nodes[*ino] = Node::File(FileNode::clean(file.state(0), file.changed));
            }
        }
        nodes
    }
}

/// Every distinct tree that a cut can leave now.
fn trees(disk: &Disk) -> Vec<Arc<Tree>> {
    let pending = Arc::new(disk.pending.clone());
    let mut seen: HashSet<Vec<(Ino, Arc<Names>)>> = HashSet::new();
    let trees = subsets(pending.len()).map(|kept| Tree::of(disk, &pending, kept));
    trees.filter(|tree| seen.insert(tree.dirs.clone())).map(Arc::new).collect()
}

fn subsets(count: usize) -> Box<dyn Iterator<Item = Vec<bool>>> {
    if count <= ALL_SUBSETS {
        return Box::new((0..1_usize << count).map(move |mask| (0..count).map(|bit| mask >> bit & 1 == 1).collect()));
    }
    let prefixes = (0..=count).map(move |kept| (0..count).map(|op| op < kept).collect());
    let one_missing = (0..count).map(move |lost| (0..count).map(|op| op != lost).collect());
    Box::new(prefixes.chain(one_missing))
}

/// The states of one file that a job goes through.
#[derive(Debug, Clone)]
enum Picks {
    Range(Range<usize>),
    Both(usize, usize),
}

impl Picks {
    fn len(&self) -> usize {
        match self {
            Self::Range(range) => range.len(),
            Self::Both(..) => 2,
        }
    }

    fn get(&self, at: usize) -> usize {
        match self {
            Self::Range(range) => range.start + at,
            Self::Both(a, b) => [*a, *b][at.min(1)],
        }
    }
}

/// One tree times the states of its files.
#[derive(Debug)]
struct Job {
    tree: Arc<Tree>,
    files: Vec<(Ino, Picks)>,
    /// Made when the job begins and dropped when it ends, so that the replay finds its contents unshared again.
    nodes: Vec<Node>,
    at: Vec<usize>,
    over: bool,
}

impl Job {
    fn new(tree: &Arc<Tree>, files: Vec<(Ino, Picks)>) -> Self {
        let over = files.iter().any(|(_, picks)| picks.len() == 0);
        Self { tree: Arc::clone(tree), at: vec![0; files.len()], files, nodes: Vec::new(), over }
    }

    fn next(&mut self, disk: &Disk, marks: &[u64], position: usize) -> Option<Cut> {
        if self.over {
            return None;
        }
        if self.nodes.is_empty() {
            self.nodes = self.tree.nodes(disk);
        }
        let mut nodes = self.nodes.clone();
        let mut left = Vec::with_capacity(self.files.len());
        for ((ino, picks), at) in self.files.iter().zip(&self.at) {
            let Some(file) = disk.file(*ino) else { continue };
            let state = picks.get(*at);
            nodes[*ino] = Node::File(FileNode::clean(file.state(state), file.changed));
            let (what, lost) = file.describe(state);
            left.push((*ino, what, lost));
        }
        self.step();
        let fs = SimFs::booted(Disk::of(nodes, disk.tick));
        Some(Cut { fs, marks: marks.to_vec(), position, tree: Arc::clone(&self.tree), left })
    }

    fn step(&mut self) {
        for ((_, picks), at) in self.files.iter().zip(&mut self.at) {
            *at += 1;
            if *at < picks.len() {
                return;
            }
            *at = 0;
        }
        self.over = true;
    }
}

/// The iterator behind [`SimFs::power_cuts`].
///
/// It replays the journal. Under the same marks a state is yielded at the first position that can leave it: after an
/// operation only the states in which that operation left something are new; after a mark all are.
#[derive(Debug)]
pub(super) struct PowerCuts {
    disk: Disk,
    journal: Vec<Op>,
    position: usize,
    marks: Vec<u64>,
    trees: Vec<Arc<Tree>>,
    jobs: VecDeque<Job>,
    begun: bool,
}

impl PowerCuts {
    pub(super) fn new(start: Disk, journal: Vec<Op>) -> Self {
        let (trees, jobs) = (Vec::new(), VecDeque::new());
        Self { disk: start, journal, position: 0, marks: Vec::new(), trees, jobs, begun: false }
    }

    /// Goes to the next position and plans its cuts; false at the end of the journal.
    fn advance(&mut self) -> bool {
        if !self.begun {
            self.begun = true;
            self.trees = trees(&self.disk);
            self.plan(&self.trees.clone(), None);
            return true;
        }
        let Some(op) = self.journal.get(self.position).cloned() else { return false };
        self.position += 1;
        match op {
            Op::Mark(value) => {
                self.marks.push(value);
                self.plan(&self.trees.clone(), None);
            }
            Op::Append { ino, .. } | Op::Truncate { ino, .. } | Op::Rewrite { ino, .. } => {
                self.disk.apply(&op);
                self.plan(&self.having(ino), Some(ino));
            }
            Op::SyncData { ino } => {
                // A sync only takes states away, unless there were too many to try all: fewer may now be possible.
                let mut again = self.having(ino);
                let bounded = |tree: &Arc<Tree>| self.combinations(tree) > ALL_COMBINATIONS;
                let bounded: Vec<bool> = again.iter().map(bounded).collect();
                self.disk.apply(&op);
                let doubt = self.disk.file(ino).is_some_and(FileNode::in_doubt);
                let mut bounded = bounded.into_iter();
                again.retain(|_| bounded.next().unwrap_or(false) || doubt);
                self.plan(&again, None);
            }
            Op::SyncFailed { .. } => self.disk.apply(&op),
            Op::Create { .. } | Op::Mkdir { .. } | Op::Rename { .. } | Op::Unlink { .. } | Op::SyncDir { .. } => {
                self.disk.apply(&op);
                let old = std::mem::replace(&mut self.trees, trees(&self.disk));
                let old: HashSet<_> = old.iter().map(|tree| tree.dirs.clone()).collect();
                let new: Vec<_> = self.trees.iter().filter(|tree| !old.contains(&tree.dirs)).cloned().collect();
                self.plan(&new, None);
            }
        }
        true
    }

    fn having(&self, ino: Ino) -> Vec<Arc<Tree>> {
        self.trees.iter().filter(|tree| tree.files.contains(&ino)).cloned().collect()
    }

    fn combinations(&self, tree: &Tree) -> usize {
        let files = tree.files.iter().filter_map(|ino| self.disk.file(*ino));
        files.map(FileNode::states).fold(1, usize::saturating_mul)
    }

    /// Plans the states of these trees; of file `newest`, only those that its newest operation made possible.
    fn plan(&mut self, trees: &[Arc<Tree>], newest: Option<Ino>) {
        for tree in trees {
            let files = || tree.files.iter().filter_map(|ino| Some((*ino, self.disk.file(*ino)?)));
            let open: Vec<(Ino, &FileNode)> = files().filter(|(_, file)| file.states() > 1).collect();
            let all = |ino: Ino, file: &FileNode| {
                Picks::Range(if newest == Some(ino) { file.newest_states() } else { 0..file.states() })
            };
            if open.len() < 2 || self.combinations(tree) <= ALL_COMBINATIONS {
                let picks = open.iter().map(|(ino, file)| (*ino, all(*ino, file))).collect();
                self.jobs.push_back(Job::new(tree, picks));
                continue;
            }
            let whole = |file: &FileNode| Picks::Range(file.whole_state()..file.whole_state() + 1);
            let synced = |ino: Ino, _: &FileNode| Picks::Range(if newest == Some(ino) { 0..0 } else { 0..1 });
            let corners = |ino: Ino, file: &FileNode| match newest == Some(ino) {
                true => whole(file),
                false => Picks::Both(0, file.whole_state()),
            };
            for (turn, _) in &open {
                let mut job = |others: &dyn Fn(Ino, &FileNode) -> Picks| {
                    let pick = |ino, file| if ino == *turn { all(ino, file) } else { others(ino, file) };
                    let picks = open.iter().map(|(ino, file)| (*ino, pick(*ino, *file))).collect();
                    self.jobs.push_back(Job::new(tree, picks));
                };
                if open.len() <= ALL_CORNERS {
                    job(&corners);
                } else {
                    job(&|_, file| whole(file));
                    job(&synced);
                }
            }
        }
    }
}

impl Iterator for PowerCuts {
    type Item = Cut;

    fn next(&mut self) -> Option<Cut> {
        loop {
            while let Some(job) = self.jobs.front_mut() {
                if let Some(cut) = job.next(&self.disk, &self.marks, self.position) {
                    return Some(cut);
                }
                self.jobs.pop_front();
            }
            if !self.advance() {
                return None;
            }
        }
    }
}

/// One cut of `disk`, chosen by `seed`.
pub(super) fn random(disk: &Disk, seed: u64) -> Disk {
    let mut random = SplitMix(seed);
    let kept = disk.pending.iter().map(|_| random.below(2) == 0).collect();
    let tree = Tree::of(disk, &Arc::new(disk.pending.clone()), kept);
    let mut nodes = tree.nodes(disk);
    for ino in &tree.files {
        if let Some(file) = disk.file(*ino) {
            let state = file.state(random.below(file.states()));
            nodes[*ino] = Node::File(FileNode::clean(state, file.changed));
        }
    }
    Disk::of(nodes, disk.tick)
}

/// SplitMix64 (Steele, Lea, Flood 2014): enough to choose, and the same everywhere.
struct SplitMix(u64);

impl SplitMix {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        let bound = u64::try_from(bound.max(1)).unwrap_or(u64::MAX);
        usize::try_from((z ^ (z >> 31)) % bound).unwrap_or(0)
    }
}
