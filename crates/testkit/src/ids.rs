//! Ids that come out the same in every run.

use gjc_entry::{Ids, SessionId};
use std::sync::Mutex;
use std::sync::PoisonError;

/// Seeded ids: the same seed gives the same ids in the same order.
pub struct SeededIds(Mutex<u64>);

impl SeededIds {
    /// From a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(Mutex::new(seed))
    }

    /// The next random number (splitmix64, Steele et al. 2014).
    pub fn next(&self) -> u64 {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = *state;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    }
}

impl Ids for SeededIds {
    fn session(&self) -> SessionId {
        let (a, b) = (self.next(), self.next());
        let text = format!(
            "0197a0c2-{:04x}-7{:03x}-9{:03x}-{:012x}",
            a & 0xffff,
            a >> 16 & 0xfff,
            a >> 28 & 0xfff,
            b & 0xffff_ffff_ffff
        );
        SessionId::new(&text).unwrap_or_else(|error| panic!("{error}"))
    }

    fn entry(&self, taken: &dyn Fn(u32) -> bool) -> u32 {
        loop {
            let id = (self.next() >> 32) as u32;
            if !taken(id) {
                return id;
            }
        }
    }
}
