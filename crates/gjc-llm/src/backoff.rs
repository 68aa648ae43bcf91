//! How long to wait before a request is sent again. Pure: the seed of the jitter comes from the caller.

use std::time::Duration;

/// The policy: exponential with jitter, within bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// How often a request is sent again.
    pub attempts: u32,
    /// The longest wait. Longer ones are a person's decision.
    pub longest: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { attempts: Self::ATTEMPTS, longest: Self::LONGEST }
    }
}

impl Backoff {
    /// How often a request is sent again by default.
    pub const ATTEMPTS: u32 = 5;
    /// The longest wait by default.
    pub const LONGEST: Duration = Duration::from_secs(60);
    const FIRST: Duration = Duration::from_secs(1);

    /// The wait before retry `attempt` (from 1). Half of the exponential step is certain, the other half is drawn from
    /// `jitter_seed`, so that many sessions that failed together do not come back together. Never shorter than `after`,
    /// the wait that the provider asked for.
    ///
    /// `None`: give up, because the attempts are used up or the provider wants more patience than [`Backoff::longest`].
    #[must_use]
    pub fn delay(&self, attempt: u32, after: Option<Duration>, jitter_seed: u64) -> Option<Duration> {
        let asked = after.unwrap_or_default();
        if attempt > self.attempts || asked > self.longest {
            return None;
        }
        let step = Self::FIRST.saturating_mul(1 << attempt.saturating_sub(1).min(16)).min(self.longest);
        let share = f64::from((mix(jitter_seed ^ u64::from(attempt)) >> 32) as u32) / f64::from(u32::MAX);
        Some(step.mul_f64(0.5 + share / 2.0).max(asked).min(self.longest))
    }
}

/// SplitMix64's finaliser (Steele, Lea, Flood 2014): neighbouring seeds give unrelated values.
fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_within_their_bounds_and_end() {
        for seed in 0..200 {
            for attempt in 1..=Backoff::ATTEMPTS {
                let step = Duration::from_secs(1 << (attempt - 1));
                let wait = Backoff::default().delay(attempt, None, seed).unwrap();
                assert!(wait >= step / 2 && wait <= step, "attempt {attempt}, seed {seed}: {wait:?}");
            }
            assert_eq!(Backoff::default().delay(Backoff::ATTEMPTS + 1, None, seed), None);
        }
        let spread: std::collections::HashSet<_> =
            (0..200).map(|seed| Backoff::default().delay(3, None, seed)).collect();
        assert!(spread.len() > 190, "neighbouring seeds spread");
    }

    #[test]
    fn the_providers_wish_is_honoured_up_to_the_cap() {
        let secs = Duration::from_secs;
        assert_eq!(Backoff::default().delay(1, Some(secs(20)), 7), Some(secs(20)));
        assert_eq!(Backoff::default().delay(1, Some(secs(60)), 7), Some(secs(60)));
        assert_eq!(Backoff::default().delay(1, Some(secs(61)), 7), None);
        assert!(Backoff::default().delay(5, Some(secs(1)), 7).unwrap() >= secs(8), "not shorter than our own step");
        assert!(Backoff::default().delay(0, None, u64::MAX).is_some());
    }

    #[test]
    fn the_bounds_are_those_that_were_given() {
        let secs = Duration::from_secs;
        let none = Backoff { attempts: 0, ..Backoff::default() };
        assert_eq!(none.delay(1, None, 7), None);
        let short = Backoff { attempts: 40, longest: secs(3) };
        for attempt in 1..=40 {
            assert!(short.delay(attempt, None, 7).unwrap() <= secs(3));
        }
        assert_eq!((short.delay(41, None, 7), short.delay(1, Some(secs(4)), 7)), (None, None));
    }
}
