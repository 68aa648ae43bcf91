//! How long to wait before a request is sent again. Pure: the seed of the jitter comes from the caller.

use std::time::Duration;

/// The policy: exponential with jitter, at most [`Backoff::ATTEMPTS`] retries.
#[derive(Debug, Clone, Copy)]
pub struct Backoff;

impl Backoff {
    /// How often a request is sent again.
    pub const ATTEMPTS: u32 = 5;
    /// The longest wait. Longer ones are a person's decision.
    pub const CAP: Duration = Duration::from_secs(60);
    const FIRST: Duration = Duration::from_secs(1);

    /// The wait before retry `attempt` (from 1). Half of the exponential step is certain, the other half is drawn from
    /// `jitter_seed`, so that many sessions that failed together do not come back together. Never shorter than `after`,
    /// the wait that the provider asked for.
    ///
    /// `None`: give up, because the attempts are used up or the provider wants more patience than [`Backoff::CAP`].
    #[must_use]
    pub fn delay(attempt: u32, after: Option<Duration>, jitter_seed: u64) -> Option<Duration> {
        let asked = after.unwrap_or_default();
        if attempt > Self::ATTEMPTS || asked > Self::CAP {
            return None;
        }
        let step = Self::FIRST.saturating_mul(1 << attempt.saturating_sub(1).min(16)).min(Self::CAP);
        let share = f64::from((mix(jitter_seed ^ u64::from(attempt)) >> 32) as u32) / f64::from(u32::MAX);
        Some(step.mul_f64(0.5 + share / 2.0).max(asked).min(Self::CAP))
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
                let wait = Backoff::delay(attempt, None, seed).unwrap();
                assert!(wait >= step / 2 && wait <= step, "attempt {attempt}, seed {seed}: {wait:?}");
            }
            assert_eq!(Backoff::delay(Backoff::ATTEMPTS + 1, None, seed), None);
        }
        let spread: std::collections::HashSet<_> = (0..200).map(|seed| Backoff::delay(3, None, seed)).collect();
        assert!(spread.len() > 190, "neighbouring seeds spread");
    }

    #[test]
    fn the_providers_wish_is_honoured_up_to_the_cap() {
        let secs = Duration::from_secs;
        assert_eq!(Backoff::delay(1, Some(secs(20)), 7), Some(secs(20)));
        assert_eq!(Backoff::delay(1, Some(secs(60)), 7), Some(secs(60)));
        assert_eq!(Backoff::delay(1, Some(secs(61)), 7), None);
        assert!(Backoff::delay(5, Some(secs(1)), 7).unwrap() >= secs(8), "not shorter than our own step");
        assert!(Backoff::delay(0, None, u64::MAX).is_some());
    }
}
