//! Kinds of values that are one word of a few. The words stand from strict to loose, so that a project's can be compared.

use crate::value::{Plain, Value, Wrong, one_of, text, wrong_kind};
use crate::yaml::Node;
use serde_json::{Value as Json, json};

/// Makes an enum and its words: `what` is the noun of a sentence about a wrong one.
macro_rules! words {
    (
        $(#[doc = $doc:literal])+
        $Name:ident($what:literal) { $( $(#[doc = $variant_doc:literal])+ $Variant:ident = $word:literal, )+ }
    ) => {
        $(#[doc = $doc])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $Name {
            $( $(#[doc = $variant_doc])+ $Variant, )+
        }

        impl $Name {
            const WORDS: &'static [&'static str] = &[$($word),+];

            /// Its word.
            #[must_use]
            pub const fn word(self) -> &'static str {
                match self { $( Self::$Variant => $word, )+ }
            }
        }

        impl Value for $Name {
            fn wanted() -> String {
                Self::WORDS.join(", ")
            }

            fn schema() -> Json {
                json!({"type": "string", "enum": Self::WORDS})
            }

            fn read(node: &Node) -> Result<Self, Wrong> {
                let text = text::<Self>(node)?;
                one_of($what, text, Self::WORDS)?;
                match text {
                    $( $word => Ok(Self::$Variant), )+
                    _ => Err(wrong_kind::<Self>(node)),
                }
            }

            fn write(&self) -> Plain {
                Plain::Text(self.word().into())
            }
        }
    };
}

words! {
    /// When entries of a session are made durable.
    Durability("durability") {
        /// After each entry.
        Entry = "entry",
        /// Before anything outside is done, and at the end of each turn.
        Turn = "turn",
        /// When the session is closed.
        None = "none",
    }
}

words! {
    /// How commands are held.
    SandboxMode("sandbox") {
        /// By all of it, or they do not run.
        Require = "require",
        /// By what the kernel has.
        Auto = "auto",
        /// Not at all.
        Off = "off",
    }
}

words! {
    /// How soon requests are served. Which of them is stricter nobody can say.
    ServiceTier("service tier") {
        /// As the account is set up.
        Auto = "auto",
        /// The standard one.
        Default = "default",
        /// Cheaper and slower.
        Flex = "flex",
        /// With capacity that was bought ahead.
        Scale = "scale",
        /// Before others, for more.
        Priority = "priority",
    }
}

words! {
    /// How secret something may be.
    Secrecy("level") {
        /// What anybody may know.
        Public = "PUBLIC",
        /// What those of the house may know.
        Internal = "INTERNAL",
        /// What few may know.
        Confidential = "CONFIDENTIAL",
        /// What only the person may know.
        Restricted = "RESTRICTED",
    }
}

words! {
    /// Whether something is reached.
    Access("access") {
        /// Not.
        Denied = "denied",
        /// As outside of the sandbox.
        Allowed = "allowed",
    }
}

words! {
    /// What a person is asked before it runs.
    Approval("approval mode") {
        /// Nothing is changed, nobody is asked.
        ReadOnly = "read-only",
        /// Whatever changes files or acts outside.
        Ask = "ask",
        /// Whatever acts outside of the workspace.
        AutoEdit = "auto-edit",
        /// Nothing.
        Full = "full",
    }
}

impl Approval {
    /// Whether a project's value is looser than the person's. Where the person has set none, `ask` counts: what a terminal
    /// has then, the strictest of what the faces have.
    pub(crate) fn is_looser(project: &Plain, user: &Plain) -> bool {
        let of = |plain: &Plain| match plain {
            Plain::None => Some(Self::Ask),
            plain => Self::read(&Self::typed(&plain.shown())).ok(),
        };
        match (of(project), of(user)) {
            (Some(project), Some(user)) => project > user,
            // What cannot be compared is not let in.
            _ => true,
        }
    }
}
