//! Permits: a decision made good for one sink, one content, one use.

use crate::LabelWatch;
use gjc_entry::{Level, OpId};
use sha2::{Digest as _, Sha256};
use std::io;

/// SHA-256 of the bytes that go into a sink.
pub type Digest = [u8; 32];

/// Hashes what goes into a sink.
#[must_use]
pub fn digest(bytes: &[u8]) -> Digest {
    Sha256::digest(bytes).into()
}

/// Hashes what goes into a sink while it is written.
#[derive(Debug)]
pub struct Digesting<W> {
    to: W,
    hash: Sha256,
}

impl<W: io::Write> Digesting<W> {
    /// Passes on what it is given.
    pub fn new(to: W) -> Self {
        Self { to, hash: Sha256::new() }
    }

    /// As [`digest`] of all that was written.
    #[must_use]
    pub fn digest(self) -> Digest {
        self.hash.finalize().into()
    }
}

impl<W: io::Write> io::Write for Digesting<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let wrote = self.to.write(bytes)?;
        self.hash.update(&bytes[..wrote]);
        Ok(wrote)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// Leave to write certain bytes to one sink. Not `Clone`, not readable from JSON, made only by
/// [`Decision::permits`](crate::Decision::permits); it never crosses a process.
#[derive(Debug)]
pub struct Permit {
    pub(crate) op: OpId,
    pub(crate) what: String,
    pub(crate) sink: Level,
    pub(crate) generation: u64,
    pub(crate) digest: Digest,
}

impl Permit {
    /// The act that it belongs to.
    #[must_use]
    pub fn op(&self) -> &OpId {
        &self.op
    }

    /// The label generation that it was given at.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation
    }
}

/// The permits of one call, one for each sink that the call named, in that order.
#[derive(Debug, Default)]
pub struct Permits(pub(crate) std::collections::VecDeque<Permit>);

impl Permits {
    /// Takes the permit of the next sink.
    pub fn take_next(&mut self) -> Option<Permit> {
        self.0.pop_front()
    }

    /// How many are left.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether none is left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Proof that a permit was good at the moment of commit. One use: [`Labelled::release`](crate::Labelled::release).
#[derive(Debug)]
pub struct Redeemed {
    _private: (),
}

/// The permit is no longer, or not for this, good.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Stale {
    /// The session has learnt something that may not go there.
    #[error("write-down: the session has become {taint} meanwhile, and {sink} may get no more than {level}")]
    Raised {
        /// The sink.
        sink: String,
        /// What may go there.
        level: Level,
        /// The session's level now.
        taint: Level,
    },
    /// Other bytes than those that were judged.
    #[error("what goes to {sink} is not what was permitted; plan the call again")]
    OtherBytes {
        /// The sink.
        sink: String,
    },
}

/// Redeems permits at the moment of commit: a lock-free read, never a wait, because it is called inside a sink's own
/// transaction.
pub trait Redeem: Send + Sync + 'static {
    /// Uses a permit up for these bytes.
    ///
    /// # Errors
    /// [`Stale`]; the effect must then not happen.
    fn redeem(&self, permit: Permit, bytes: Digest) -> Result<Redeemed, Stale>;
}

impl Redeem for LabelWatch {
    fn redeem(&self, permit: Permit, bytes: Digest) -> Result<Redeemed, Stale> {
        if permit.digest != bytes {
            return Err(Stale::OtherBytes { sink: permit.what });
        }
        let (label, _) = self.now();
        // A label that rose since the decision is no harm as long as the sink still dominates it.
        if label.level > permit.sink {
            return Err(Stale::Raised { sink: permit.what, level: permit.sink, taint: label.level });
        }
        Ok(Redeemed { _private: () })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn what_is_hashed_while_it_is_written_has_the_digest_of_the_whole() {
        let mut out = Vec::new();
        let mut hashing = Digesting::new(&mut out);
        for part in ["페", "이지", ""] {
            hashing.write_all(part.as_bytes()).unwrap();
        }
        assert_eq!(hashing.digest(), digest("페이지".as_bytes()));
        assert_eq!(out, "페이지".as_bytes());
    }
}
