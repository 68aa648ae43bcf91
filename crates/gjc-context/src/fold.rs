//! State as a fold over entries.

use gjc_entry::{At, Entry, KindSet, Leaf, NeedsIndex, Scope, Skeleton, Source};
use std::any::{Any, TypeId};
use std::collections::HashMap;

/// State that entries add up to. Only entries of [`Fold::KINDS`] are parsed and given to it.
pub trait Fold: Clone + Default + Send + 'static {
    /// The path to the leaf, or the whole file.
    const SCOPE: Scope;
    /// What it looks at.
    const KINDS: KindSet;

    /// Takes the next entry in.
    fn step(&mut self, at: At, entry: &Entry);
}

/// Keeps folds, so that each costs only what is new since it was last asked for.
#[derive(Default)]
pub struct Folds {
    kept: HashMap<TypeId, Box<dyn Any + Send>>,
}

struct Kept<T> {
    state: T,
    /// The entries that went in, in order; for a session fold only their number matters.
    fed: Vec<At>,
    fed_nodes: usize,
    generation: u64,
}

impl Folds {
    /// The state at a leaf (which a session fold does not depend on). Entries whose body is damaged are passed over; the
    /// log reports them.
    ///
    /// # Errors
    /// [`NeedsIndex`] when the source cannot answer without its index.
    pub fn get<T: Fold>(&mut self, source: &dyn Source, leaf: Leaf) -> Result<&T, NeedsIndex> {
        let kept = self
            .kept
            .entry(TypeId::of::<T>())
            .or_insert_with(|| Box::new(Kept { state: T::default(), fed: Vec::new(), fed_nodes: 0, generation: 0 }));
        let Some(kept) = kept.downcast_mut::<Kept<T>>() else { unreachable!("a type id names one type") };
        match T::SCOPE {
            Scope::Session => kept.feed_session(source)?,
            Scope::Path => kept.feed_path(source, leaf)?,
        }
        Ok(&kept.state)
    }
}

impl<T: Fold> Kept<T> {
    fn feed_session(&mut self, source: &dyn Source) -> Result<(), NeedsIndex> {
        let skeleton = source.skeleton().ok_or(NeedsIndex)?;
        if self.generation != skeleton.generation() {
            // Another program has changed the file: what was counted may stand elsewhere, or not at all.
            (self.state, self.fed_nodes, self.generation) = (T::default(), 0, skeleton.generation());
        }
        for (_, node) in skeleton.iter().skip(self.fed_nodes) {
            if T::KINDS.has(node.kind())
                && let Ok(entry) = source.body(node.at())
            {
                self.state.step(node.at(), &entry);
            }
        }
        self.fed_nodes = skeleton.len();
        Ok(())
    }

    fn feed_path(&mut self, source: &dyn Source, leaf: Leaf) -> Result<(), NeedsIndex> {
        let path = source.path(leaf)?.0;
        let grew = self.fed.len() <= path.len() && self.fed.iter().zip(&path).all(|(fed, node)| *fed == node.at);
        // A content may have changed where it stands.
        let generation = source.skeleton().map_or(0, Skeleton::generation);
        if !grew || self.generation != generation {
            (self.state, self.generation) = (T::default(), generation);
            self.fed.clear();
        }
        for node in &path[self.fed.len()..] {
            if T::KINDS.has(node.kind)
                && let Ok(entry) = source.body(node.at)
            {
                self.state.step(node.at, &entry);
            }
        }
        self.fed = path.into_iter().map(|node| node.at).collect();
        Ok(())
    }
}
