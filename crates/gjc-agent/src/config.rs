//! What a session runs with.

use crate::hooks::Hooks;
use gjc_context::Effect;
use gjc_entry::{ApprovalMode, Env, Label, ModelRef, Params, Thinking};
use gjc_flow::Policy;
use gjc_llm::{Backoff, Provider};
use gjc_tools::Tools;
use std::path::PathBuf;
use std::sync::Arc;

/// Everything that a session runs with.
#[derive(Clone)]
pub struct Config {
    /// Clock, ids, folders, variables.
    pub env: Env,
    /// The folder that it works in.
    pub cwd: PathBuf,
    /// Who answers.
    pub provider: Arc<dyn Provider>,
    /// Which model of theirs.
    pub model: ModelRef,
    /// How long it may think.
    pub thinking: Thinking,
    /// Numbers of a request.
    pub params: Params,
    /// How a request that failed is sent again.
    pub retry: Backoff,
    /// The tools that it may call.
    pub tools: Tools,
    /// What a person is asked before it runs.
    pub approval: ApprovalMode,
    /// Whether somebody is there to answer.
    pub answers: bool,
    /// The rules of flow.
    pub policy: Policy,
    /// The system prompt, without the day.
    pub system: String,
    /// How secret and how trusted the system prompt is: a repository's instructions may be a part of it.
    pub system_label: Label,
    /// Whether the day stands at the end of the system prompt.
    pub with_day: bool,
    /// The effects of several entries that may have been cut off between two of them: completed when a session is opened.
    pub effects: Vec<Arc<dyn Effect>>,
    /// The person's programs that are asked or told at events.
    pub hooks: Hooks,
}

impl Config {
    /// The system prompt of a day.
    pub(crate) fn system_prompt(&self, today: &str) -> String {
        if self.with_day { format!("{}\n\nToday is {today}.", self.system) } else { self.system.clone() }
    }
}
