//! What a search has found: the first lines in the order of paths and numbers, in little memory, and how many there are of all.

use crate::names::Name;
use crate::page::SHOWN_BYTES;
use gjc_entry::Label;
use std::collections::BTreeMap;

/// A line that is shown.
#[derive(Debug)]
pub(crate) struct Line {
    /// From 1.
    pub(crate) number: u64,
    /// Whether it matches, or stands beside one that does.
    pub(crate) hit: bool,
    /// Without its end, perhaps cut.
    pub(crate) text: String,
}

/// What was found in one file.
#[derive(Debug)]
pub(crate) struct InFile {
    /// The first lines.
    pub(crate) lines: Vec<Line>,
    /// How many of them match.
    pub(crate) kept: u64,
    /// How many lines of the file match.
    pub(crate) hits: u64,
    /// A NUL was in it: its lines are not shown.
    pub(crate) binary: bool,
    /// Of what the lines are.
    pub(crate) label: Label,
}

impl InFile {
    fn bytes(&self) -> usize {
        self.lines.iter().map(|line| line.text.len() + 8).sum()
    }

    /// What it takes of the limit.
    fn takes(&self) -> u64 {
        self.kept.max(1)
    }
}

/// What was found in all files.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// The first files with matches.
    pub(crate) files: BTreeMap<Name, InFile>,
    /// Lines that match, in all files.
    pub(crate) hits: u64,
    /// Files with such lines.
    pub(crate) files_with_hits: u64,
    /// Files that were searched.
    pub(crate) searched: u64,
    /// Files that were left out because they are binary.
    pub(crate) binary: u64,
    /// Matching lines (or files) that may be shown.
    limit: u64,
    kept: u64,
    bytes: usize,
}

impl Found {
    /// With room for so many matching lines, or files.
    pub(crate) fn new(limit: u64) -> Self {
        Self { limit, ..Self::default() }
    }

    /// Whether lines of this file could be among the first.
    pub(crate) fn wants(&self, name: &[u8]) -> bool {
        if self.kept < self.limit && self.bytes < SHOWN_BYTES {
            return true;
        }
        self.files.last_key_value().is_none_or(|(last, _)| crate::names::by_parts(name, &last.0).is_lt())
    }

    /// Takes a file with its lines.
    pub(crate) fn keep(&mut self, name: Name, file: InFile) {
        self.kept += file.takes();
        self.bytes += file.bytes() + name.0.len();
        self.files.insert(name, file);
        // What stands behind a full page is never shown.
        while let Some((name, last)) = self.files.last_key_value() {
            let (kept, bytes) = (self.kept - last.takes(), self.bytes - last.bytes() - name.0.len());
            if kept < self.limit && bytes < SHOWN_BYTES {
                break;
            }
            self.files.pop_last();
            (self.kept, self.bytes) = (kept, bytes);
        }
    }

    /// Takes what another one has.
    pub(crate) fn take(&mut self, other: Self) {
        self.hits += other.hits;
        self.files_with_hits += other.files_with_hits;
        self.searched += other.searched;
        self.binary += other.binary;
        for (name, file) in other.files {
            self.keep(name, file);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn in_file(hits: u64, wide: bool) -> InFile {
        let text = if wide { "가".repeat(7_000) } else { "가".into() };
        let line = |number| Line { number, hit: true, text: text.clone() };
        let label = Label::PUBLIC_TRUSTED;
        InFile { lines: (1..=hits).map(line).collect(), kept: hits, hits, binary: false, label }
    }

    proptest! {
        #[test]
        fn the_first_page_is_kept_however_files_come(
            files in prop::collection::btree_map("[a-d가]{1,3}", (1u64..4, any::<bool>()), 1..30),
            order in any::<prop::sample::Index>(), limit in 1u64..12,
        ) {
            let mut found = [Found::new(limit), Found::new(limit)];
            let mut shuffled: Vec<_> = files.iter().collect();
            let middle = order.index(shuffled.len());
            shuffled.rotate_left(middle);
            for (n, (name, (hits, wide))) in shuffled.into_iter().enumerate() {
                let found = &mut found[n % 2];
                if found.wants(name.as_bytes()) {
                    found.keep(Name(name.as_bytes().to_vec()), in_file(*hits, *wide));
                }
                prop_assert!(found.bytes < SHOWN_BYTES + 3 * 7_000 * 3 + 100);
            }
            let [mut found, second] = found;
            found.take(second);
            let (mut hits, mut bytes) = (0, 0);
            for (name, (more, wide)) in &files {
                if hits >= limit || bytes >= SHOWN_BYTES {
                    break;
                }
                prop_assert!(found.files.contains_key(&Name(name.as_bytes().to_vec())), "{} is missing", name);
                hits += more;
                bytes += in_file(*more, *wide).bytes() + name.len();
            }
        }
    }
}
