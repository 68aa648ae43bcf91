//! A branch: a new session whose first entries are those of one path of another.

use crate::error::ForkError;
use crate::fs::Fs;
use crate::reader::Reader;
use crate::scan::{frame, read_line};
use crate::writer::{Batch, LogEnv, Writer};
use gjc_entry::header::VERSION;
use gjc_entry::{
    At, Body, Damage, DamageKind, Draft, EntryId, Header, Kind, Label, Leaf, Own, PathNode, Skeleton, Source,
};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Where a branch is taken from: a session that is only looked at, or one that is being written.
pub trait Lines: Source {
    /// The line of the entry at a place as version 3 has it, without its line feed: as it stands in the file, but for what
    /// later lines change of it.
    ///
    /// # Errors
    /// What is wrong with it.
    fn line_at(&self, at: At) -> Result<Vec<u8>, Damage>;

    /// The file; `None` for a session in memory.
    fn source_path(&self) -> Option<&Path>;
}

impl<F: Fs> Lines for Reader<F> {
    fn line_at(&self, at: At) -> Result<Vec<u8>, Damage> {
        let changed =
            self.header().version < VERSION || self.skeleton().is_some_and(|tree| tree.patch_of(at).is_some());
        if changed {
            return self.body(at).map(|entry| written(&entry));
        }
        read_line(self.file(), at).map_err(|why| Damage { at, kind: DamageKind::Io(why.to_string()) })
    }

    fn source_path(&self) -> Option<&Path> {
        Some(self.file_path())
    }
}

impl<F: Fs> Lines for Writer<F> {
    fn line_at(&self, at: At) -> Result<Vec<u8>, Damage> {
        match self.skeleton.patch_of(at) {
            Some(_) => self.body(at).map(|entry| written(&entry)),
            None => self.bytes(at),
        }
    }

    fn source_path(&self) -> Option<&Path> {
        self.file_path()
    }
}

fn written(entry: &gjc_entry::Entry) -> Vec<u8> {
    let mut line = Vec::new();
    entry.write(&mut line);
    line.pop();
    line
}

impl<F: Fs> Writer<F> {
    /// A new session with the entries from the root of `source` to `upto`, both included, byte for byte; none for `None`. As
    /// with any new session, nothing is on disk until its first new answer.
    ///
    /// It knows what the whole source knows: each entry has the taint here that it has there, and a `gjc.taint` raises what
    /// the path alone would not give, so the session begins with the source's. Names of places on the path that were given,
    /// or taken back, elsewhere come at the end. The header gets no title, and the source's file as its parent.
    ///
    /// # Errors
    /// [`ForkError`].
    pub fn branch(
        env: LogEnv<F>,
        source: &dyn Lines,
        upto: Option<&EntryId>,
        path: PathBuf,
        header: Header,
    ) -> Result<Self, ForkError> {
        let tree = source.skeleton().ok_or(ForkError::NotRead)?;
        let leaf = match upto {
            Some(id) => Leaf::At(tree.find(id).ok_or_else(|| ForkError::NoSuchEntry(id.clone()))?),
            None => Leaf::Root,
        };
        let parent = source.source_path().map(|path| path.to_string_lossy().into_owned());
        let header = Header { version: VERSION, title: None, parent, ..header };
        let nodes = tree.path(leaf).0;
        let mut writer = Self::create(env, path, header);
        for node in &nodes {
            let line = source.line_at(node.at).map_err(ForkError::Unreadable)?;
            if frame(&line).is_ok_and(|frame| frame.label.is_none()) {
                writer.raise(node.label);
            }
            let time = writer.last;
            writer.take_over(&line, time);
        }
        if let Some(at) = nodes.last().map(|last| last.at) {
            writer.last = source.body(at).map_or(writer.last, |entry| writer.last.max(entry.at));
        }
        writer.raise(tree.label());
        for (target, label) in names_elsewhere(source, tree, &nodes) {
            let draft = Draft::new(Body::Label { target, label }, writer.label());
            writer.add(draft);
        }
        Ok(writer)
    }

    /// Raises the session's taint to at least this one.
    fn raise(&mut self, to: Label) {
        let label = self.label().join(to);
        if label != self.label() {
            self.add(Draft::new(Body::Own(Own::Taint), label));
        }
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "what a branch begins with belongs to no session yet that could admit it"
    )]
    fn add(&mut self, draft: Draft) {
        // Nothing can refuse it: its parent is the leaf, and it is short.
        let added = self.append(Batch::One(draft));
        debug_assert!(added.is_ok(), "{added:?}");
    }
}

/// The names of places on a path that its own entries do not give, in the order of the path. The last entry of the file that
/// names a place counts, on whatever branch it stands.
fn names_elsewhere(source: &dyn Lines, tree: &Skeleton, path: &[PathNode]) -> Vec<(EntryId, Option<String>)> {
    let named = |at: At| match source.body(at).ok().map(|entry| entry.body.clone()) {
        Some(Body::Label { target, label }) => Some((target, label.filter(|label| !label.is_empty()))),
        _ => None,
    };
    let labels = |places: &mut dyn Iterator<Item = At>| places.filter_map(named).collect::<BTreeMap<_, _>>();
    let all = labels(&mut tree.iter().filter(|(_, node)| node.kind() == Kind::Label).map(|(_, node)| node.at()));
    let mut own = labels(&mut path.iter().filter(|node| node.kind == Kind::Label).map(|node| node.at));
    let changed = path.iter().filter_map(|node| {
        let label = all.get(&node.id)?;
        (own.remove(&node.id).flatten() != *label).then(|| (node.id.clone(), label.clone()))
    });
    changed.collect()
}
