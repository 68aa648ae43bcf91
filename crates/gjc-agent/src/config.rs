//! What a session runs with.

use crate::choice::{Choice, Models};
use crate::hooks::Hooks;
use crate::share::Sharing;
use gjc_context::Effect;
use gjc_entry::{ApprovalMode, Env, Held, Label, ModelRef, Params, Thinking, Tier};
use gjc_flow::Policy;
use gjc_llm::{Backoff, Prices, Provider};
use gjc_tools::{Bash, Tools};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

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
    /// How soon it is served.
    pub tier: Tier,
    /// Who answers in plan mode, if somebody else.
    pub plan: Option<Choice>,
    /// The models that a person may change to.
    pub models: Arc<dyn Models>,
    /// What its answers cost.
    pub prices: Prices,
    /// Numbers of a request.
    pub params: Params,
    /// How a request that failed is sent again.
    pub retry: Backoff,
    /// How long it waits at most until a usage limit is reset, once in a turn; `None` ends the turn.
    pub wait_for_quota: Option<Duration>,
    /// The tools that it may call.
    pub tools: Tools,
    /// What a person is asked before it runs.
    pub approval: ApprovalMode,
    /// Whether somebody is there to answer.
    pub answers: bool,
    /// How commands are held, for whoever goes on with the session; what holds them is in `tools`. `None`: it is not
    /// written down.
    pub held: Option<Held>,
    /// The rules of flow.
    pub policy: Policy,
    /// The system prompt, without the day.
    pub system: String,
    /// How secret and how trusted the system prompt is: a repository's instructions may be a part of it.
    pub system_label: Label,
    /// Whether the day stands at the end of the system prompt.
    pub with_day: bool,
    /// What runs a person's own commands (`!cmd`).
    pub shell: Bash,
    /// How many background jobs may run at a time.
    pub max_jobs: usize,
    /// The effects of several entries that may have been cut off between two of them: completed when a session is opened.
    pub effects: Vec<Arc<dyn Effect>>,
    /// Where its person shares it.
    pub sharing: Sharing,
    /// The person's programs that are asked or told at events.
    pub hooks: Hooks,
}

impl Config {
    /// The system prompt of a day.
    pub(crate) fn system_prompt(&self, today: &str) -> String {
        if self.with_day { format!("{}\n\nToday is {today}.", self.system) } else { self.system.clone() }
    }
}
