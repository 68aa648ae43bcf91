//! As what else a character may be written: which characters become it, or begin what becomes it, in NFC.
//!
//! Made from the tables of `unicode-normalization`, of the few thousand characters that have a canonical decomposition; 한글
//! is not among them, since its rule is arithmetic.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::sync::OnceLock;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::{canonical_combining_class, decompose_canonical, is_combining_mark};

/// Where characters with a canonical decomposition are, without 한글. A test looks at all the others.
const PLACES: &[RangeInclusive<u32>] = &[
    0xC0..=0x33FF,
    0xF900..=0xFB4F,
    0x1_0000..=0x1_1FFF,
    0x1_6100..=0x1_6DFF,
    0x1_D100..=0x1_D1FF,
    0x2_F800..=0x2_FA1F,
];

/// A character with a decomposition.
struct Composite {
    c: char,
    /// The first of its NFC and of its NFD.
    nfc: char,
    nfd: char,
}

#[derive(Default)]
struct Table {
    all: Vec<Composite>,
    /// Places in `all` by the first of the NFD.
    by_first: BTreeMap<char, Vec<usize>>,
    /// What stands behind the first in any NFD.
    behind: BTreeSet<char>,
}

fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut table = Table::default();
        for c in PLACES.iter().cloned().flatten().filter_map(char::from_u32) {
            let mut apart = Vec::new();
            decompose_canonical(c, |part| apart.push(part));
            let [nfd, behind @ ..] = &apart[..] else { continue };
            if apart == [c] {
                continue;
            }
            table.behind.extend(behind);
            table.by_first.entry(*nfd).or_default().push(table.all.len());
            table.all.push(Composite { c, nfc: std::iter::once(c).nfc().next().unwrap_or(c), nfd: *nfd });
        }
        table
    })
}

/// Whether a character may become one with the character before, or change places with one that does.
pub(super) fn joins(c: char) -> bool {
    !c.is_ascii() && (is_combining_mark(c) || canonical_combining_class(c) != 0 || table().behind.contains(&c))
}

/// Whether one between these does.
pub(super) fn joins_within(start: char, end: char) -> bool {
    (start..=end).any(joins)
}

/// The characters that a text may have where its NFC has `c`: those that begin with it in NFC, and, where it is composed
/// itself, all that have the same first part. Without `c`; nothing for a character that is always itself.
pub(super) fn kin(c: char) -> BTreeSet<char> {
    let mut kin = of_range(c, c);
    kin.remove(&c);
    kin
}

/// [`kin`] of all between these; those themselves may be among them.
pub(super) fn of_range(start: char, end: char) -> BTreeSet<char> {
    let table = table();
    let mut kin = BTreeSet::new();
    let mut firsts = BTreeSet::new();
    for composite in table.all.iter().filter(|composite| (start..=end).contains(&composite.nfc)) {
        kin.insert(composite.c);
        if composite.c == composite.nfc {
            firsts.insert(composite.nfd);
        }
    }
    for first in firsts {
        kin.insert(first);
        kin.extend(table.by_first[&first].iter().map(|at| table.all[*at].c));
    }
    kin
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_places_hold_every_character_that_has_a_decomposition() {
        for c in '\0'..=char::MAX {
            let mut apart = Vec::new();
            decompose_canonical(c, |part| apart.push(part));
            let known = PLACES.iter().any(|place| place.contains(&u32::from(c))) || ('가'..='힣').contains(&c);
            assert!(known || apart == [c], "{}", c.escape_unicode());
        }
    }

    #[test]
    fn what_joins_is_a_mark_or_one_vowel_sign_of_another_kind() {
        // The widened pattern lists this one beside the marks.
        let odd: Vec<char> = table().behind.iter().copied().filter(|c| !is_combining_mark(*c)).collect();
        assert_eq!(odd, ['\u{16D67}']);
        assert!(('\0'..=char::MAX).all(|c| canonical_combining_class(c) == 0 || is_combining_mark(c)));
    }

    #[test]
    fn kin_are_what_a_letter_may_be_written_as() {
        assert!(kin('樂').contains(&'\u{F914}') && kin('Å').contains(&'\u{212B}') && kin('K').contains(&'\u{212A}'));
        let of_e = kin('ẹ');
        assert!(['e', 'é', 'ê', 'ệ'].iter().all(|c| of_e.contains(c)) && !of_e.contains(&'ẹ'));
        assert!(kin('e').is_empty() && kin('α').is_empty() && kin('한').is_empty() && kin('中').is_empty());
        assert!(kin('\u{915}').contains(&'\u{958}'), "one that NFC never composes");
    }
}
