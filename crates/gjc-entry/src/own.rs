//! gjc's own entries: `custom` lines whose `customType` begins with `gjc.`. Other readers skip them.

use crate::fields::{FieldError, Fields, JsonObject, RawFields};
use crate::{BlobRef, DeliveryId, EntryId, Kind, OpId};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Which part of a session a fold over an entry sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Root to leaf: changes when the leaf moves.
    Path,
    /// The whole file in file order, abandoned branches included: never falls back.
    Session,
}

/// One of gjc's own entries. The variant is the `customType` without `gjc.`.
#[derive(Debug, Clone)]
pub enum Own {
    /// The leaf was moved; the entry's parent is the target, so that every reader lands there.
    Leaf {
        /// The leaf before.
        from: Option<EntryId>,
        /// The leaf from now on.
        to: Option<EntryId>,
    },
    /// The settings half of the requests that follow.
    Env(RequestEnv),
    /// A rise of the session's taint that brought no content; the rise itself is the entry's label.
    Taint,
    /// A delivery that was taken in without text, or refused.
    Delivered(DeliveryId),
    /// What the session's calls ask a person for, from now on.
    Approval(ApprovalMode),
    /// A background job was about to start. Until its end is delivered, the session owes the model that end.
    Job(StartedJob),
    /// Pictures that are left out of the requests that follow, because a request had more bytes than the provider takes.
    Images(Vec<LeftOut>),
    /// A kind that this version does not know, kept whole.
    Other {
        /// Without `gjc.`.
        kind: Box<str>,
        /// Its `data`.
        data: Option<Box<RawValue>>,
    },
}

/// A background job, as its session has it on record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartedJob {
    /// The act that started it; as text it is the job's [`DeliveryId`]. A copy of the session has another id, and owes
    /// nothing of what this names.
    pub op: OpId,
    /// What the model calls it, as in `job-3`.
    pub id: String,
    /// The tool that runs it, as in `bash`.
    pub tool: String,
    /// For people and the model: what it does, in few words.
    pub what: String,
}

impl StartedJob {
    /// What its end is delivered under.
    #[must_use]
    pub fn delivery(&self) -> DeliveryId {
        DeliveryId(self.op.to_string().into())
    }
}

/// Everything in a request but its messages. An entry, written whenever it changes and before the request that uses it, so
/// that each request of the past can be rebuilt byte for byte.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RequestEnv {
    /// The system prompt.
    pub system: BlobRef,
    /// The tool definitions: a JSON array of `{name, description, input}`.
    pub tools: BlobRef,
    /// The names of all tools that the session has, where this request does not show all of them: its mode, or the face, has
    /// no use for the others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub all_tools: Vec<String>,
    /// Who answers.
    pub model: ModelRef,
    /// How long it may think.
    pub thinking: Thinking,
    /// How soon it is served. Not written where nothing is asked for, so that lines are as they were before there were tiers.
    #[serde(default, skip_serializing_if = "Tier::is_auto")]
    pub tier: Tier,
    /// Numbers.
    pub params: Params,
    /// The version of the code that turns a checked request into bytes. It is raised when that code changes its output.
    pub renderer: u16,
    /// How commands are held: who goes on with the session holds them no looser, unless a person says so. No byte of the
    /// request. Absent in sessions from before it was written down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<Held>,
}

/// How the commands of a session are held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Held {
    /// By how much of a sandbox.
    pub sandbox: HeldBy,
    /// Whether they reach the network from in it.
    pub network: bool,
}

/// How much of a sandbox commands are held by, from strict to loose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HeldBy {
    /// All of it, or they do not run.
    Require,
    /// What the kernel has.
    Auto,
    /// Nothing.
    Off,
}

/// Pictures of one entry that are left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// The entry that holds them.
    pub of: EntryId,
    /// How many of its first pictures are left out, those included that were left out before.
    pub first: u32,
}

/// A model at a provider.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ModelRef {
    /// As in `anthropic`.
    pub provider: String,
    /// The provider's name for it.
    pub id: String,
    /// The wire, as in `anthropic-messages`.
    pub api: String,
}

/// An entry's place in an effect of several entries, as the field `gjcPart` of all but the first of them, the intent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// The intent's id.
    pub of: EntryId,
    /// Which of the entries that follow from it, from 1.
    pub n: u32,
}

impl Part {
    const FIELD: &str = "gjcPart";

    /// The field of an entry that says so.
    #[must_use]
    pub fn field(&self) -> (Box<str>, Box<RawValue>) {
        let mut json = Vec::new();
        JsonObject::begin(&mut json).field("of", &self.of).field("n", &self.n).end();
        let json = String::from_utf8(json).unwrap_or_default();
        (Self::FIELD.into(), RawValue::from_string(json).unwrap_or_default())
    }

    /// What an entry says of itself; `None` when it says nothing that can be read.
    #[must_use]
    pub fn among(fields: &RawFields) -> Option<Self> {
        let (_, raw) = fields.iter().rev().find(|(name, _)| &**name == Self::FIELD)?;
        serde_json::from_str(raw.get()).ok()
    }
}

/// How long a model may think before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Thinking {
    /// Not at all.
    #[default]
    Off,
    /// The least that the model can do.
    Minimal,
    /// A little.
    Low,
    /// Some.
    Medium,
    /// Much.
    High,
    /// As much as it can.
    Xhigh,
}

impl Thinking {
    /// From the least to the most.
    pub const ALL: [Self; 6] = [Self::Off, Self::Minimal, Self::Low, Self::Medium, Self::High, Self::Xhigh];

    /// The word for it, in the family's files and in ours.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Xhigh => "xhigh",
        }
    }

    /// What a word means; `None` for any other word.
    #[must_use]
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.as_str() == word)
    }
}

/// What a person is asked before it runs. The order is from the strictest to the loosest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ApprovalMode {
    /// Nothing is changed, nobody is asked.
    ReadOnly,
    /// Whatever changes files or acts outside.
    Ask,
    /// Whatever acts outside of the workspace.
    AutoEdit,
    /// Nothing.
    Full,
}

impl ApprovalMode {
    /// From the strictest to the loosest.
    pub const ALL: [Self; 4] = [Self::ReadOnly, Self::Ask, Self::AutoEdit, Self::Full];

    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ReadOnly => "read-only",
            Self::Ask => "ask",
            Self::AutoEdit => "auto-edit",
            Self::Full => "full",
        }
    }

    /// What a word means; `None` for any other word.
    #[must_use]
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.as_str() == word)
    }
}

/// How soon a request is served, and for which price.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    /// As the account is set up: nothing is asked for.
    #[default]
    Auto,
    /// The standard one, whatever the account is set up for.
    Default,
    /// Cheaper, slower, and not always there.
    Flex,
    /// With capacity that was bought ahead.
    Scale,
    /// Before others, for more.
    Priority,
}

impl Tier {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Auto, Self::Default, Self::Flex, Self::Scale, Self::Priority];

    /// The word for it, in the family's files and in ours.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Default => "default",
            Self::Flex => "flex",
            Self::Scale => "scale",
            Self::Priority => "priority",
        }
    }

    /// What a word means; `None` for any other word.
    #[must_use]
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tier| tier.as_str() == word)
    }

    /// What a word of the family's means for the models of a provider: it has two that are for the models of one alone.
    #[must_use]
    pub fn of_family(word: &str, provider: &str) -> Option<Self> {
        let only = |whose: &str| if provider == whose { Self::Priority } else { Self::Auto };
        match word {
            "openai-only" => Some(only("openai")),
            "claude-only" => Some(only("anthropic")),
            _ => Self::of(word),
        }
    }

    fn is_auto(&self) -> bool {
        *self == Self::Auto
    }
}

/// Numbers of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Params {
    /// The most tokens that an answer may have; 0 leaves it to the server, on wires that allow that.
    pub max_tokens: u32,
}

impl Own {
    /// The kind that an index gives to such an entry.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Self::Leaf { .. } => Kind::OwnLeaf,
            Self::Env(_) => Kind::OwnEnv,
            Self::Taint => Kind::OwnTaint,
            Self::Delivered(_) => Kind::OwnDelivered,
            Self::Approval(_) => Kind::OwnApproval,
            Self::Job(_) => Kind::OwnJob,
            Self::Images(_) => Kind::OwnImages,
            Self::Other { .. } => Kind::OwnOther,
        }
    }

    /// Which folds see it.
    #[must_use]
    pub fn scope(&self) -> Scope {
        match self {
            Self::Leaf { .. } | Self::Taint | Self::Delivered(_) | Self::Approval(_) | Self::Job(_) => Scope::Session,
            Self::Env(_) | Self::Images(_) | Self::Other { .. } => Scope::Path,
        }
    }

    /// The `customType`.
    #[must_use]
    pub fn custom_type(&self) -> String {
        match self {
            Self::Leaf { .. } => "gjc.leaf".into(),
            Self::Env(_) => "gjc.env".into(),
            Self::Taint => "gjc.taint".into(),
            Self::Delivered(_) => "gjc.delivered".into(),
            Self::Approval(_) => "gjc.approval".into(),
            Self::Job(_) => "gjc.job".into(),
            Self::Images(_) => "gjc.images".into(),
            Self::Other { kind, .. } => format!("gjc.{kind}"),
        }
    }

    /// Reads the `data` of a custom type that begins with `gjc.`.
    ///
    /// # Errors
    /// When a kind that we know has other data than it should.
    pub fn from_json(custom_type: &str, data: Option<Box<RawValue>>) -> Result<Self, FieldError> {
        let kind = custom_type.strip_prefix("gjc.").unwrap_or(custom_type);
        let wrong = |why: String| FieldError::Wrong { name: "data", why };
        let needed = || data.as_deref().ok_or(FieldError::Absent("data"));
        Ok(match kind {
            "leaf" => {
                let mut fields = Fields::parse(needed()?.get())?;
                Self::Leaf { from: fields.optional("from")?, to: fields.optional("to")? }
            }
            "env" => Self::Env(serde_json::from_str(needed()?.get()).map_err(|error| wrong(error.to_string()))?),
            "taint" => Self::Taint,
            "delivered" => {
                let mut fields = Fields::parse(needed()?.get())?;
                Self::Delivered(fields.required("id")?)
            }
            "approval" => {
                let mut fields = Fields::parse(needed()?.get())?;
                let word: String = fields.required("mode")?;
                // A word of a later version: what it allows is not known, so nothing is.
                Self::Approval(ApprovalMode::of(&word).unwrap_or(ApprovalMode::ReadOnly))
            }
            "job" => Self::Job(serde_json::from_str(needed()?.get()).map_err(|error| wrong(error.to_string()))?),
            "images" => {
                let mut fields = Fields::parse(needed()?.get())?;
                Self::Images(fields.required("leftOut")?)
            }
            _ => Self::Other { kind: kind.into(), data },
        })
    }

    /// Writes the `data`.
    pub fn write_data(&self, out: &mut Vec<u8>) {
        match self {
            Self::Leaf { from, to } => JsonObject::begin(out).field("from", from).field("to", to).end(),
            Self::Env(env) => {
                let _ = serde_json::to_writer(out, env);
            }
            Self::Taint => JsonObject::begin(out).end(),
            Self::Delivered(id) => JsonObject::begin(out).field("id", id).end(),
            Self::Approval(mode) => JsonObject::begin(out).field("mode", mode.as_str()).end(),
            Self::Job(job) => {
                let _ = serde_json::to_writer(out, job);
            }
            Self::Images(left_out) => JsonObject::begin(out).field("leftOut", left_out).end(),
            Self::Other { data: Some(data), .. } => out.extend_from_slice(data.get().as_bytes()),
            Self::Other { data: None, .. } => out.extend_from_slice(b"null"),
        }
    }
}
