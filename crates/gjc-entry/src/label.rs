//! How secret a fact is, and where it came from.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Classification, from open to closed. The join of two levels is the greater one.
///
/// There is no default and no lenient parser: unknown text is an error, and for data it means [`Level::Restricted`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Level {
    /// Anybody may know it.
    Public,
    /// The organisation may know it.
    Internal,
    /// Those concerned may know it.
    Confidential,
    /// Nobody but the owner.
    Restricted,
}

/// A text that names no level.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is no level: use PUBLIC, INTERNAL, CONFIDENTIAL or RESTRICTED")]
pub struct UnknownLevel(pub String);

impl Level {
    /// All levels, lowest first.
    pub const ALL: [Self; 4] = [Self::Public, Self::Internal, Self::Confidential, Self::Restricted];

    /// The word that is stored and shown.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Public => "PUBLIC",
            Self::Internal => "INTERNAL",
            Self::Confidential => "CONFIDENTIAL",
            Self::Restricted => "RESTRICTED",
        }
    }

    /// The level at a position of [`Level::ALL`]; anything beyond is the highest.
    #[must_use]
    pub const fn from_index(index: u8) -> Self {
        match index {
            0 => Self::Public,
            1 => Self::Internal,
            2 => Self::Confidential,
            _ => Self::Restricted,
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl TryFrom<&str> for Level {
    type Error = UnknownLevel;

    fn try_from(text: &str) -> Result<Self, UnknownLevel> {
        Self::ALL
            .into_iter()
            .find(|level| level.as_str() == text)
            .ok_or_else(|| UnknownLevel(text.chars().take(40).collect()))
    }
}

/// What is known of a fact, or of a session: how secret, and whether only trusted text went into it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Label {
    /// Secrecy.
    pub level: Level,
    /// Integrity: false once text came in that nobody vouches for.
    pub trusted: bool,
}

impl Label {
    /// Where a clean session starts.
    pub const PUBLIC_TRUSTED: Self = Self { level: Level::Public, trusted: true };
    /// What a label that cannot be read means.
    pub const CORRUPT: Self = Self { level: Level::Restricted, trusted: false };

    /// The least label that covers both.
    #[must_use]
    pub fn join(self, other: Self) -> Self {
        Self { level: self.level.max(other.level), trusted: self.trusted && other.trusted }
    }

    /// Reads the JSON of a stored label, `{"l":"PUBLIC","t":true}`. Whatever cannot be read is [`Label::CORRUPT`].
    #[must_use]
    pub fn from_json(json: &str) -> Self {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Stored {
            l: Level,
            t: bool,
        }
        match serde_json::from_str::<Stored>(json) {
            Ok(Stored { l, t }) => Self { level: l, trusted: t },
            Err(_) => Self::CORRUPT,
        }
    }

    /// The JSON that [`Label::from_json`] reads.
    #[must_use]
    pub fn to_json(self) -> String {
        format!(r#"{{"l":"{}","t":{}}}"#, self.level, self.trusted)
    }
}

/// Who brought a content block in. It is stored with the block (`"gjcOrigin"`), because it cannot be guessed later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// A person typed it.
    Typed,
    /// A person pasted it, or a program gave it on the command line or standard input.
    Paste,
    /// An image or a file that a person attached.
    Media,
    /// gjc itself: reminders, notices.
    Host,
    /// The text of a mode (plan mode and the like).
    Mode,
    /// The answer to a question that a tool asked.
    Ask,
    /// Another session or a channel.
    Peer,
    /// A tool's output.
    Tool,
}

impl Origin {
    /// The word that is stored.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Typed => "typed",
            Self::Paste => "paste",
            Self::Media => "media",
            Self::Host => "host",
            Self::Mode => "mode",
            Self::Ask => "ask",
            Self::Peer => "peer",
            Self::Tool => "tool",
        }
    }

    /// Whether the words are a person's own: the checker lets nobody change them.
    #[must_use]
    pub const fn is_human(self) -> bool {
        matches!(self, Self::Typed | Self::Paste | Self::Media | Self::Ask)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_that_cannot_be_read_is_restricted() {
        for json in
            ["", "null", "{}", r#"{"l":"public","t":true}"#, r#"{"l":"PUBLIC","t":1}"#, r#"{"l":"SECRET","t":true}"#]
        {
            assert_eq!(Label::from_json(json), Label::CORRUPT, "{json}");
        }
    }

    #[test]
    fn labels_round_trip_and_joins_are_a_lattice() {
        let all: Vec<Label> =
            Level::ALL.into_iter().flat_map(|level| [true, false].map(|trusted| Label { level, trusted })).collect();
        for &a in &all {
            assert_eq!(Label::from_json(&a.to_json()), a);
            assert_eq!(a.join(a), a);
            assert_eq!(a.join(Label::PUBLIC_TRUSTED), a);
            for &b in &all {
                assert_eq!(a.join(b), b.join(a));
                for &c in &all {
                    assert_eq!(a.join(b).join(c), a.join(b.join(c)));
                }
            }
        }
    }
}
