//! From ids to places: the table of the ids of a [`Skeleton`](crate::Skeleton).
//!
//! The ids themselves are in the nodes. A slot holds 32 bits of an id's hash and the place, so that a search reads a node
//! only where it most likely ends, and growing reads none. A scan asks for each id once and mostly in vain: nearly every
//! such question would wait for memory, so it can be announced ([`Names::prefetch`]).

use crate::EntryId;
use std::hash::{BuildHasher, RandomState};

/// An open-addressed table with linear probing, at most three quarters full.
///
/// The hash begins with a number that no file can know: ids that were chosen to meet in one place do not.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names {
    /// The hash in the upper half, the place in the lower one; their number is a power of two.
    slots: Vec<u64>,
    used: usize,
    seed: Seed,
}

#[derive(Debug, Clone)]
struct Seed {
    texts: RandomState,
    factor: u64,
}

impl Default for Seed {
    fn default() -> Self {
        let texts = RandomState::new();
        let factor = texts.hash_one(0) | 1;
        Self { texts, factor }
    }
}

const FEWEST_SLOTS: usize = 64;
/// Not zero: pages that nobody has written to would be met twice, once by a search and once by what is put there.
const EMPTY: u64 = u64::MAX;

impl Names {
    /// The hash of an id, for the other questions.
    pub(crate) fn hash(&self, id: &EntryId) -> u32 {
        match id {
            EntryId::Short(id) => self.hash_short(*id),
            EntryId::Other(text) => self.hash_text(text),
        }
    }

    /// As [`Names::hash`] of a short id.
    pub(crate) fn hash_short(&self, id: u32) -> u32 {
        let product = u64::from(id).wrapping_mul(self.seed.factor);
        // Once more, by 2^64 divided by the golden ratio: ids in a row must not depend on one factor.
        upper((product ^ product >> 32).wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    /// As [`Names::hash`] of any other id.
    pub(crate) fn hash_text(&self, text: &str) -> u32 {
        upper(self.seed.texts.hash_one(text))
    }

    /// The first place under a hash that `is` the one. It is asked of few others.
    pub(crate) fn find(&self, hash: u32, is: impl Fn(u32) -> bool) -> Option<u32> {
        let mask = self.slots.len().checked_sub(1)?;
        let mut slot = self.first_slot(hash);
        loop {
            // One slot in four is empty.
            let entry = self.slots[slot & mask];
            if entry == EMPTY {
                return None;
            }
            if upper(entry) == hash && is(lower(entry)) {
                return Some(lower(entry));
            }
            slot += 1;
        }
    }

    /// Adds a place (any but the highest number) under a hash.
    pub(crate) fn insert(&mut self, hash: u32, at: u32) {
        self.reserve(1);
        self.put(u64::from(hash) << 32 | u64::from(at));
        self.used += 1;
    }

    fn put(&mut self, entry: u64) {
        let mask = self.slots.len() - 1;
        let mut slot = self.first_slot(upper(entry));
        while self.slots[slot & mask] != EMPTY {
            slot += 1;
        }
        self.slots[slot & mask] = entry;
    }

    /// Makes room for so many more.
    pub(crate) fn reserve(&mut self, more: usize) {
        let wanted = self.used.saturating_add(more);
        let least = wanted.saturating_add(wanted / 3 + 1);
        if least <= self.slots.len() {
            return;
        }
        let entries = std::mem::replace(&mut self.slots, vec![EMPTY; least.next_power_of_two().max(FEWEST_SLOTS)]);
        entries.into_iter().filter(|entry| *entry != EMPTY).for_each(|entry| self.put(entry));
    }

    /// A search for this hash comes soon.
    #[inline]
    pub(crate) fn prefetch(&self, hash: u32) {
        #[cfg(target_arch = "x86_64")]
        if let Some(slot) = self.slots.get(self.first_slot(hash)) {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            // SAFETY: a hint about memory that is ours.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(slot).cast()) };
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = hash;
    }

    /// The upper bits of the hash, as many as the slots have.
    fn first_slot(&self, hash: u32) -> usize {
        ((u64::from(hash) * self.slots.len() as u64) >> 32) as usize
    }
}

fn upper(bits: u64) -> u32 {
    (bits >> 32) as u32
}

fn lower(bits: u64) -> u32 {
    bits as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_inserted_is_found_among_many() {
        let mut names = Names::default();
        let ids: Vec<EntryId> = (0..5000u32)
            .map(|n| if n % 3 == 0 { EntryId::new(&format!("세션-{n}")) } else { EntryId::Short(n * 7) })
            .collect();
        assert_eq!(names.find(names.hash(&ids[0]), |_| true), None, "an empty table");
        for (at, id) in (0u32..).zip(&ids) {
            let hash = names.hash(id);
            assert_eq!(names.find(hash, |at| ids[at as usize] == *id), None);
            names.prefetch(hash);
            names.insert(hash, at);
        }
        for (at, id) in (0u32..).zip(&ids) {
            assert_eq!(names.find(names.hash(id), |at| ids[at as usize] == *id), Some(at));
        }
        assert_eq!(names.find(names.hash(&EntryId::new("없음")), |_| false), None);
        assert!(names.slots.len() * 3 / 4 >= ids.len());
    }

    #[test]
    fn ids_that_meet_are_told_apart() {
        let mut names = Names::default();
        (0..200).for_each(|at| names.insert(u32::MAX, at));
        names.reserve(10_000);
        for wanted in 0..200 {
            assert_eq!(names.find(u32::MAX, |at| at == wanted), Some(wanted), "around the end of the table");
        }
    }

    #[test]
    fn ids_in_a_row_spread() {
        let names = Names::default();
        let mut shares = [0u32; 64];
        (0..64_000).for_each(|id| shares[(names.hash_short(id) >> 26) as usize] += 1);
        assert!(shares.iter().all(|share| (250..4000).contains(share)), "{shares:?}");
    }
}
