//! What is not as it should be in a session file.

use crate::{At, EntryId, Missing};
use std::fmt;

/// Something in a session file that is not as it should be. The rest of the file stays usable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// Where.
    pub at: At,
    /// What.
    pub kind: DamageKind,
}

/// The kinds of damage.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum DamageKind {
    /// NUL bytes in the line.
    Nul,
    /// Not UTF-8.
    Utf8,
    /// Not an object with the keys of an entry.
    Frame(String),
    /// Several records on one line. The place is that of the bytes between two whole ones, or before the first: none, or
    /// those of a cut one.
    Glued,
    /// The id belongs to an earlier entry that says something else; this one is kept beside it, without a name.
    Repeated(EntryId),
    /// A patch of an entry that is not in the file.
    Patch(EntryId),
    /// So many bytes that are no record stand behind a whole one on its line; the entry was read without them.
    Behind(u32),
    /// Lone surrogates in its text, which no text can hold: they were read as U+FFFD.
    Surrogates,
    /// The parent is not in the file.
    Orphan(EntryId),
    /// The frame is sound, the content is not JSON or not what its type needs.
    Body(String),
    /// The entry needs bytes that are not in the blob store.
    Blob(Missing),
    /// The bytes could not be read.
    Io(String),
}

impl DamageKind {
    /// Whether the entry is there all the same, as it was meant: opening does not tell it, verifying does.
    #[must_use]
    pub fn is_harmless(&self) -> bool {
        matches!(self, Self::Surrogates | Self::Behind(_))
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {}: ", self.at.off)?;
        match &self.kind {
            DamageKind::Nul => write!(f, "a line of {} bytes holds NUL bytes", self.at.len),
            DamageKind::Utf8 => write!(f, "a line of {} bytes is not UTF-8", self.at.len),
            DamageKind::Frame(why) => write!(f, "a line of {} bytes is no entry: {why}", self.at.len),
            DamageKind::Glued if self.at.len == 0 => write!(f, "two records stand on one line; both were read"),
            DamageKind::Glued => {
                write!(f, "{} bytes of a cut record stand before a whole one on the same line", self.at.len)
            }
            DamageKind::Repeated(id) => {
                write!(f, "the id {id} belongs to an earlier entry; this one is kept as a branch that ends here")
            }
            DamageKind::Patch(id) => write!(f, "the line changes the entry {id}, which is not in the file"),
            DamageKind::Behind(bytes) => {
                write!(f, "{bytes} bytes that are no record stand behind a whole one on its line")
            }
            DamageKind::Surrogates => {
                write!(f, "the entry holds halves of characters (lone surrogates), which were read as \u{fffd}")
            }
            DamageKind::Orphan(id) => write!(f, "the parent {id} is not in the file; the entry was taken as a root"),
            DamageKind::Body(why) => write!(f, "the entry's content cannot be read: {why}"),
            DamageKind::Blob(missing) => write!(f, "{missing}"),
            DamageKind::Io(why) => write!(f, "the line cannot be read: {why}"),
        }
    }
}
