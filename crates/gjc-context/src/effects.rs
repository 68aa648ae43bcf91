//! Effects of several entries: *intent first*, and completed when the session is opened again.
//!
//! Lines of one append can be torn apart by a crash. So the first line says what shall happen, and what follows from it is
//! a pure function of it and of what precedes it ([`Effect::rest`]). Each entry of the rest names its intent (`gjcPart`,
//! [`gjc_entry::Part`]), so that [`unfinished`] finds what is missing whatever another program has appended since.

use gjc_entry::{At, Body, EntryId, KindSet, Label, Leaf, NeedsIndex, Part, PathNode, Source};
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

/// One kind of effect.
pub trait Effect: Send + Sync {
    /// What its intents are; only such entries are read to look for them.
    fn kinds(&self) -> KindSet;

    /// What follows from an intent, in order; `None` when `intent` is none of this effect. `source` at `before` is the
    /// path that the intent was put on, without it.
    ///
    /// **Pure**: the same intent at the same place gives the same bodies at any time, on any machine. Times and ids that
    /// the rest needs stand in the intent. The entries follow the intent on its path; an effect that moves the leaf makes
    /// the move its intent.
    fn rest(&self, intent: &Body, source: &dyn Source, before: Leaf) -> Option<Vec<Body>>;
}

impl fmt::Debug for dyn Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Effect")
    }
}

/// An intent whose rest is not all there.
#[derive(Debug, Clone)]
pub struct Unfinished {
    /// The intent.
    pub intent: EntryId,
    /// The session's label when it was admitted: the rest is made of nothing else.
    pub label: Label,
    /// What is missing: its number in the rest, from 1, and the entry.
    ///
    /// It belongs under the *leaf*. Under the intent it would begin a branch, and what another program has said since
    /// would fall out of the conversation.
    pub missing: Vec<(u32, Body)>,
}

/// The effects of the active path that were begun and not finished, oldest first. Nothing is read when there are no
/// effects.
///
/// # Errors
/// [`NeedsIndex`] when the source cannot answer without its index.
pub fn unfinished(source: &dyn Source, effects: &[Arc<dyn Effect>]) -> Result<Vec<Unfinished>, NeedsIndex> {
    let mut found = Vec::new();
    if effects.is_empty() {
        return Ok(found);
    }
    let path = source.path(Leaf::Current)?.0;
    let skeleton = source.skeleton().ok_or(NeedsIndex)?;
    for (index, node) in path.iter().enumerate() {
        for effect in effects.iter().filter(|effect| effect.kinds().has(node.kind)) {
            // What cannot be read says nothing; the log reports it.
            let Ok(intent) = source.body(node.at) else { break };
            let before = index.checked_sub(1).and_then(|before| skeleton.find(&path[before].id));
            let Some(rest) = effect.rest(&intent.body, source, before.map_or(Leaf::Root, Leaf::At)) else { continue };
            let there = parts(source, &path[index + 1..], &node.id, &rest);
            let numbered = (1..).zip(rest);
            let missing: Vec<(u32, Body)> = numbered.filter(|(n, _)| !there.contains(n)).collect();
            if !missing.is_empty() {
                found.push(Unfinished { intent: node.id.clone(), label: node.label, missing });
            }
            break;
        }
    }
    Ok(found)
}

/// Which entries of a rest stand on the path behind its intent.
fn parts(source: &dyn Source, behind: &[PathNode], intent: &EntryId, rest: &[Body]) -> HashSet<u32> {
    let kinds: Vec<_> = rest.iter().map(Body::kind).collect();
    let part = |at: At| Part::among(&source.body(at).ok()?.extra).filter(|part| part.of == *intent);
    let mut there = HashSet::new();
    for node in behind.iter().filter(|node| kinds.contains(&node.kind)) {
        if there.len() == rest.len() {
            break;
        }
        there.extend(part(node.at).map(|part| part.n).filter(|n| (1..=rest.len()).contains(&(*n as usize))));
    }
    there
}
