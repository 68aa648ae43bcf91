//! A session that begins with all entries of another one. Files of versions 1 and 2 go on in such a copy: their entries
//! have no ids, or not those of today, so nothing can be appended to them. The source is only read.

use crate::fs::Fs;
use crate::reader::Reader;
use crate::writer::{LogEnv, Writer};
use gjc_entry::{Damage, EntryId, Header, Ordinal, Source};
use std::collections::HashMap;
use std::path::PathBuf;

impl<F: Fs> Writer<F> {
    /// A new session whose first entries are those of `source`, with their ids, times and labels. As with any new session,
    /// nothing is on disk until its first new answer.
    ///
    /// An entry that cannot be read stays behind, and is told; what follows it hangs on what precedes it. One whose id
    /// belonged to another gets an id of its own.
    pub fn copy(env: LogEnv<F>, source: &Reader<F>, path: PathBuf, header: Header) -> (Self, Vec<Damage>) {
        let mut writer = Self::create(env, path, header);
        let mut left = Vec::new();
        // Where what hangs on an entry goes.
        let mut now: HashMap<Ordinal, Option<EntryId>> = HashMap::new();
        for (ordinal, node) in source.skeleton().into_iter().flat_map(gjc_entry::Skeleton::iter) {
            let parent = node.parent().and_then(|parent| now.get(&parent).cloned().flatten());
            match source.body(node.at()) {
                Ok(entry) => {
                    let mut entry = (*entry).clone();
                    entry.parent = parent;
                    now.insert(ordinal, Some(writer.take_over(entry, node.is_nameless())));
                }
                Err(damage) => {
                    left.push(damage);
                    now.insert(ordinal, parent);
                }
            }
        }
        (writer, left)
    }
}
