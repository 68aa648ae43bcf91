//! A session that begins with all entries of another one. Files of versions 1 and 2 go on in such a copy: their entries
//! have no ids, or not those of today, so nothing can be appended to them. The source is only read.

use crate::fs::Fs;
use crate::reader::Reader;
use crate::writer::{LogEnv, Writer};
use gjc_entry::{Body, Damage, DamageKind, Entry, EntryId, Header, Ids, Ordinal, Own, Skeleton, Source, Timestamp};
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

impl<F: Fs> Writer<F> {
    /// A new session whose first entries are those of `source`: their lines, byte for byte but for id and parent. As with any
    /// new session, nothing is on disk until its first new answer.
    ///
    /// An entry that cannot be read stays behind, and is told; what follows it hangs on what precedes it, and a compaction
    /// that kept it keeps the next one. One whose id belonged to another gets an id of its own; where it would become the
    /// leaf, a `gjc.leaf` keeps the leaf that the source has.
    pub fn copy(env: LogEnv<F>, source: &Reader<F>, path: PathBuf, header: Header) -> (Self, Vec<Damage>) {
        let ids = Arc::clone(&env.ids);
        let mut writer = Self::create(env, path, header);
        let left = in_our_version(source, &*ids, &mut |line, time| writer.take_over(line, time));
        (writer, left)
    }
}

/// The entries of `source` as lines of version 3 (with their line feeds) and their times, and what cannot be read of them.
pub(crate) fn in_our_version<F: Fs>(
    source: &Reader<F>,
    ids: &dyn Ids,
    each: &mut dyn FnMut(&[u8], Timestamp),
) -> Vec<Damage> {
    let nodes: Vec<_> = source.skeleton().into_iter().flat_map(Skeleton::iter).collect();
    let read: Vec<_> = nodes.iter().map(|(_, node)| source.body(node.at())).collect();
    let mut left = Vec::new();
    // Where what hangs on an entry goes.
    let mut now: HashMap<Ordinal, Option<EntryId>> = HashMap::new();
    let mut given: HashSet<u32> = HashSet::new();
    let mut newest = (None, Timestamp::default());
    for ((ordinal, node), entry) in nodes.iter().zip(&read) {
        let parent = node.parent().and_then(|parent| now.get(&parent).cloned().flatten());
        let entry = match entry {
            Ok(entry) => entry,
            Err(damage) => {
                left.push(damage.clone());
                now.insert(*ordinal, parent);
                continue;
            }
        };
        let id = if node.is_nameless() {
            let in_use = |id| given.contains(&id) || source.skeleton().is_some_and(|tree| tree.has_short(id));
            let new = ids.entry(&in_use);
            given.insert(new);
            EntryId::Short(new)
        } else {
            entry.id.clone()
        };
        let first_kept = match &entry.body {
            Body::Compaction { first_kept, .. } => Some(next_kept(source, &nodes, &read, first_kept)),
            _ => None,
        };
        let changed = source.skeleton().is_some_and(|tree| tree.patch_of(node.at()).is_some());
        let line = match changed {
            // Its content stands elsewhere.
            true => Some(whole(Entry { id: id.clone(), parent: parent.clone(), ..Entry::clone(entry) })),
            false => source
                .line(node.at())
                .and_then(|line| Entry::respelled(&line, &id, parent.as_ref(), first_kept.as_ref()).ok()),
        };
        match line {
            Some(line) => {
                each(&line, entry.at);
                newest = (Some(id.clone()), entry.at);
            }
            None => left.push(Damage { at: node.at(), kind: DamageKind::Io("it cannot be copied".into()) }),
        }
        now.insert(*ordinal, Some(id));
    }
    let to = source.skeleton().and_then(Skeleton::leaf).and_then(|leaf| now.get(&leaf).cloned().flatten());
    let (from, at) = newest;
    if from != to {
        let taken = |id| given.contains(&id) || source.skeleton().is_some_and(|tree| tree.has_short(id));
        let id = EntryId::Short(ids.entry(&taken));
        let body = Body::Own(Own::Leaf { from, to: to.clone() });
        each(&whole(Entry { id, parent: to, at, label: None, body, extra: Vec::new() }), at);
    }
    left
}

/// An entry as a line, with its line feed.
fn whole(entry: Entry) -> Vec<u8> {
    let mut line = Vec::new();
    entry.write(&mut line);
    line
}

/// The first entry from this one on that goes along.
fn next_kept<F: Fs, T>(
    source: &Reader<F>,
    nodes: &[(Ordinal, &gjc_entry::Node)],
    read: &[Result<T, Damage>],
    first: &EntryId,
) -> EntryId {
    let place = source.skeleton().and_then(|tree| tree.find(first));
    let from = place.and_then(|place| nodes.iter().position(|(ordinal, _)| *ordinal == place));
    let next = from.and_then(|from| (from..nodes.len()).find(|index| read[*index].is_ok()));
    let id = next.and_then(|next| Some(source.skeleton()?.id(nodes[next].0)));
    id.unwrap_or_else(|| first.clone())
}
