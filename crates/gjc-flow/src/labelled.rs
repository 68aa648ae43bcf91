//! Values that cannot be looked at without consequences.

use crate::{AboveClearance, LabelState, Redeemed};
use gjc_entry::Label;
use std::fmt;

/// A value and its label. The value comes out in two ways only: [`Labelled::open`] joins the label to a session, and
/// [`Labelled::release`] hands it to a sink that has redeemed a permit.
///
/// It is not `Clone` (one permit releases one value), and its debug output shows the label alone.
pub struct Labelled<T> {
    value: T,
    label: Label,
}

impl<T> Labelled<T> {
    /// Puts a label on a value, at its source.
    pub fn new(value: T, label: Label) -> Self {
        Self { value, label }
    }

    /// Takes the value into a session: its label joins the session's.
    ///
    /// # Errors
    /// [`AboveClearance`]; the session is then unchanged, and the value is gone.
    pub fn open(self, into: &mut LabelState) -> Result<T, AboveClearance> {
        into.join(self.label)?;
        Ok(self.value)
    }

    /// Hands the value to a sink at its commit.
    pub fn release(self, by: Redeemed) -> T {
        let Redeemed { .. } = by;
        self.value
    }

    /// Changes the value. A function pointer, not a closure: a closure could carry the value out.
    pub fn map<U>(self, change: fn(T) -> U) -> Labelled<U> {
        Labelled { value: change(self.value), label: self.label }
    }

    /// Puts two values together under the join of their labels.
    pub fn zip<U>(self, other: Labelled<U>) -> Labelled<(T, U)> {
        Labelled { label: self.label.join(other.label), value: (self.value, other.value) }
    }

    /// The label.
    pub fn label(&self) -> Label {
        self.label
    }
}

impl<T> fmt::Debug for Labelled<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Labelled").field("label", &self.label).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gjc_entry::Level;

    #[test]
    fn opening_is_joining() {
        let mut state = LabelState::new(Label::PUBLIC_TRUSTED, Level::Restricted).unwrap();
        let secret = Labelled::new("연봉", Label { level: Level::Confidential, trusted: true });
        let note = Labelled::new("x", Label { level: Level::Public, trusted: false });
        let both = secret.zip(note).map(|(a, b)| format!("{a}{b}"));
        assert_eq!(both.open(&mut state).unwrap(), "연봉x");
        assert_eq!(state.label(), Label { level: Level::Confidential, trusted: false });
    }
}
