//! The one place where a session's taint lives.

use gjc_entry::{Label, Level};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A session's label and its upper bound. One instance a session, inside the actor; deliberately not `Clone`.
///
/// Invariants: the taint never falls and never passes the clearance; every change of label raises the generation.
#[derive(Debug)]
pub struct LabelState {
    label: Label,
    clearance: Level,
    generation: u64,
    shared: Arc<AtomicU64>,
}

/// A fact is above what this session may know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "this is {fact}, and the session may know no more than {clearance}; open a session with a higher clearance for it"
)]
pub struct AboveClearance {
    /// The fact's level.
    pub fact: Level,
    /// The session's bound.
    pub clearance: Level,
}

impl LabelState {
    /// The state of a session whose entries so far bear `label`.
    ///
    /// # Errors
    /// [`AboveClearance`] when they already pass the clearance.
    pub fn new(label: Label, clearance: Level) -> Result<Self, AboveClearance> {
        if label.level > clearance {
            return Err(AboveClearance { fact: label.level, clearance });
        }
        let state = Self { label, clearance, generation: 0, shared: Arc::default() };
        state.publish();
        Ok(state)
    }

    /// What the session has taken in, joined.
    #[must_use]
    pub fn label(&self) -> Label {
        self.label
    }

    /// What it may take in at most.
    #[must_use]
    pub fn clearance(&self) -> Level {
        self.clearance
    }

    /// A count that rises with each change of the label.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Takes a label in.
    ///
    /// # Errors
    /// [`AboveClearance`]; the state is then unchanged.
    pub fn join(&mut self, label: Label) -> Result<(), AboveClearance> {
        if label.level > self.clearance {
            return Err(AboveClearance { fact: label.level, clearance: self.clearance });
        }
        self.set(self.label.join(label));
        Ok(())
    }

    /// A person has typed: what follows answers their words, not those of a stranger. Trust is the only thing that comes
    /// back; the level stays.
    pub fn human_spoke(&mut self) {
        self.set(Label { trusted: true, ..self.label });
    }

    /// A handle that sinks read at the moment of commit, from any thread, without a lock.
    #[must_use]
    pub fn watch(&self) -> LabelWatch {
        LabelWatch(Arc::clone(&self.shared))
    }

    fn set(&mut self, label: Label) {
        if label != self.label {
            self.label = label;
            self.generation += 1;
            self.publish();
        }
    }

    fn publish(&self) {
        let packed = self.generation << 3 | u64::from(self.label.trusted) << 2 | self.label.level as u64;
        self.shared.store(packed, Ordering::SeqCst);
    }
}

/// Reads the present label of a session. See [`LabelState::watch`].
#[derive(Debug, Clone)]
pub struct LabelWatch(Arc<AtomicU64>);

impl LabelWatch {
    /// The label and its generation, read together.
    #[must_use]
    pub fn now(&self) -> (Label, u64) {
        let packed = self.0.load(Ordering::SeqCst);
        let label = Label { level: Level::from_index((packed & 3) as u8), trusted: packed & 4 != 0 };
        (label, packed >> 3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taint_rises_stops_at_the_clearance_and_is_seen_outside() {
        let mut state = LabelState::new(Label::PUBLIC_TRUSTED, Level::Confidential).unwrap();
        let watch = state.watch();
        state.join(Label { level: Level::Internal, trusted: false }).unwrap();
        assert_eq!(watch.now(), (Label { level: Level::Internal, trusted: false }, 1));
        assert!(state.join(Label { level: Level::Restricted, trusted: true }).is_err());
        assert_eq!(state.label().level, Level::Internal, "a refused fact raises nothing");
        state.join(Label::PUBLIC_TRUSTED).unwrap();
        assert_eq!((state.label().level, state.generation()), (Level::Internal, 1));
        state.human_spoke();
        assert_eq!(watch.now(), (Label { level: Level::Internal, trusted: true }, 2));
    }
}
