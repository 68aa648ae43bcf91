//! The state of a session as a face needs it.

use crate::{Asked, Health, JobStatus, LabelInfo, Mode, PromptMode};
use gjc_entry::{ApprovalMode, ModelRef, Thinking, Tier, Usage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Everything a face shows, at one moment. Events with a higher number than `seq` come after it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Snapshot {
    /// The number of the last event that is contained.
    pub seq: u64,
    /// The session's id.
    pub session: String,
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The folder it works in.
    pub cwd: String,
    /// Its file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// What it does.
    pub step: StepName,
    /// Its label.
    pub label: LabelInfo,
    /// The active path, messages only, as the session file holds them.
    pub messages: Vec<Value>,
    /// The answer that is being written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partial: Option<Partial>,
    /// What waits for a person's answer, oldest first.
    pub asked: Vec<Asked>,
    /// Whether it plans.
    pub mode: Mode,
    /// Who is asked next.
    pub model: ModelInfo,
    /// How long it may think.
    #[schemars(with = "String", extend("enum" = Thinking::ALL.map(Thinking::as_str)))]
    pub thinking: Thinking,
    /// How soon requests are served.
    #[schemars(with = "String", extend("enum" = Tier::ALL.map(Tier::as_str)))]
    pub tier: Tier,
    /// What a person is asked before it runs: `read-only`, `ask`, `auto-edit` or `full`.
    #[schemars(with = "String")]
    pub approval: ApprovalMode,
    /// Prompts that wait.
    pub queue: Vec<Queued>,
    /// Background jobs, oldest first; those that ended a while ago may be left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<JobInfo>,
    /// A person's command that runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bash: Option<String>,
    /// Tokens and cost, abandoned branches included.
    #[schemars(with = "Value")]
    pub usage: Usage,
    /// How storage does.
    pub storage: Health,
}

/// A model: what the reply to `set_model` holds too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModelInfo {
    /// The provider, as sessions name it.
    pub provider: String,
    /// The model's id there.
    pub model: String,
    /// The wire.
    pub api: String,
}

impl From<ModelRef> for ModelInfo {
    fn from(ModelRef { provider, id, api }: ModelRef) -> Self {
        Self { provider, model: id, api }
    }
}

/// An answer that is being written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Partial {
    /// The message so far, as it would be stored if it were aborted now.
    pub message: Value,
}

/// A prompt that waits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Queued {
    /// Its text.
    pub text: String,
    /// When it enters.
    pub mode: PromptMode,
}

/// A background job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JobInfo {
    /// Its id, as the model knows it.
    pub id: String,
    /// The tool that runs it.
    pub tool: String,
    /// What it does, in few words.
    pub what: String,
    /// How it does.
    pub status: JobStatus,
}

/// What a session is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepName {
    /// Waiting for a prompt.
    Idle,
    /// The model answers.
    Streaming,
    /// Calls are being judged.
    Deciding,
    /// Tools run.
    Running,
    /// Results are stored, the next request is not sent yet.
    StepBoundary,
    /// The turn is being ended.
    TurnBoundary,
    /// The session is being closed.
    Closing,
}
