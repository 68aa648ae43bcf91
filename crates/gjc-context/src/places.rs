//! Names that a person gave to places of a session.

use crate::Fold;
use gjc_entry::{At, Body, Entry, EntryId, Kind, KindSet, Scope};

/// The named places, in the order in which they were named. A place has one name: the last one that was given.
///
/// Of the whole session: moving the leaf loses no name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Places(Vec<(EntryId, String)>);

impl Places {
    /// Places and their names.
    pub fn iter(&self) -> impl Iterator<Item = (&EntryId, &str)> {
        self.0.iter().map(|(place, name)| (place, name.as_str()))
    }

    /// The name of a place.
    #[must_use]
    pub fn name(&self, place: &EntryId) -> Option<&str> {
        self.iter().find(|(other, _)| *other == place).map(|(_, name)| name)
    }
}

impl Fold for Places {
    const SCOPE: Scope = Scope::Session;
    const KINDS: KindSet = KindSet::of(&[Kind::Label]);

    fn step(&mut self, _: At, entry: &Entry) {
        let Body::Label { target, label } = &entry.body else { return };
        self.0.retain(|(place, _)| place != target);
        if let Some(label) = label.as_ref().filter(|label| !label.is_empty()) {
            self.0.push((target.clone(), label.clone()));
        }
    }
}
