//! What an entry is, without its body.

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $text:literal),+ $(,)?) => {
        /// What an entry is, by its `type` (and, for gjc's own, its `customType`).
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Kind { $($(#[$doc])* $name),+ }

        impl Kind {
            const ALL: &[Self] = &[$(Self::$name),+];

            /// The word in lists and reports.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text),+ }
            }

            /// The kind with this number; [`Kind::Unknown`] beyond the end.
            #[must_use]
            pub fn from_u8(number: u8) -> Self {
                Self::ALL.get(usize::from(number)).copied().unwrap_or(Self::Unknown)
            }
        }
    };
}

kinds! {
    /// A type that we do not know.
    Unknown = "unknown",
    /// Somebody said something.
    Message = "message",
    /// Older history was replaced by a summary.
    Compaction = "compaction",
    /// A summary of an abandoned branch.
    BranchSummary = "branch_summary",
    /// A program's state that the model does not see.
    Custom = "custom",
    /// A program's text that the model sees.
    CustomMessage = "custom_message",
    /// A name for a place.
    Label = "label",
    /// Another model.
    ModelChange = "model_change",
    /// Another thinking level.
    ThinkingLevelChange = "thinking_level_change",
    /// Another service tier.
    ServiceTierChange = "service_tier_change",
    /// Another mode.
    ModeChange = "mode_change",
    /// The session's name.
    SessionInfo = "session_info",
    /// omp's `/clear`: the context begins anew behind it.
    ResetBoundary = "reset_boundary",
    /// pi's other content for an entry, or none.
    ContextEdit = "context_edit",
    /// pi's usage of a model beside the conversation.
    Usage = "usage",
    /// Not an entry: a change of the header (gajae-code).
    HeaderPatch = "header_patch",
    /// Not an entry: another content for an entry (gajae-code).
    EntryPatch = "entry_patch",
    /// `gjc.leaf`.
    OwnLeaf = "gjc.leaf",
    /// `gjc.env`.
    OwnEnv = "gjc.env",
    /// `gjc.taint`.
    OwnTaint = "gjc.taint",
    /// `gjc.delivered`.
    OwnDelivered = "gjc.delivered",
    /// Another entry of gjc's own.
    OwnOther = "gjc.*",
    /// `gjc.approval`. New kinds come last, because their numbers stand in index files.
    OwnApproval = "gjc.approval",
    /// `gjc.job`.
    OwnJob = "gjc.job",
    /// `gjc.images`.
    OwnImages = "gjc.images",
}

impl Kind {
    /// From the top-level `type` and `customType`.
    #[must_use]
    pub fn of(kind: &str, custom_type: Option<&str>) -> Self {
        match (kind, custom_type) {
            ("custom", Some("gjc.leaf")) => Self::OwnLeaf,
            ("custom", Some("gjc.env")) => Self::OwnEnv,
            ("custom", Some("gjc.taint")) => Self::OwnTaint,
            ("custom", Some("gjc.delivered")) => Self::OwnDelivered,
            ("custom", Some("gjc.approval")) => Self::OwnApproval,
            ("custom", Some("gjc.job")) => Self::OwnJob,
            ("custom", Some("gjc.images")) => Self::OwnImages,
            ("custom", Some(own)) if own.starts_with("gjc.") => Self::OwnOther,
            ("message", _) => Self::Message,
            ("compaction", _) => Self::Compaction,
            ("branch_summary", _) => Self::BranchSummary,
            ("custom", _) => Self::Custom,
            ("custom_message", _) => Self::CustomMessage,
            ("label", _) => Self::Label,
            ("model_change", _) => Self::ModelChange,
            ("thinking_level_change", _) => Self::ThinkingLevelChange,
            ("service_tier_change", _) => Self::ServiceTierChange,
            ("mode_change", _) => Self::ModeChange,
            ("session_info", _) => Self::SessionInfo,
            ("reset_boundary", _) => Self::ResetBoundary,
            ("context_edit", _) => Self::ContextEdit,
            ("usage", _) => Self::Usage,
            ("header_patch", _) => Self::HeaderPatch,
            ("entry_patch", _) => Self::EntryPatch,
            _ => Self::Unknown,
        }
    }
}

/// A set of kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KindSet(u64);

impl KindSet {
    /// Of these kinds.
    #[must_use]
    pub const fn of(kinds: &[Kind]) -> Self {
        let (mut bits, mut index) = (0, 0);
        while index < kinds.len() {
            bits |= 1 << kinds[index] as u8;
            index += 1;
        }
        Self(bits)
    }

    /// Whether a kind is in it.
    #[must_use]
    pub const fn has(self, kind: Kind) -> bool {
        self.0 & (1 << kind as u8) != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_round_trip() {
        for &kind in Kind::ALL {
            assert_eq!(Kind::from_u8(kind as u8), kind);
        }
    }
}
