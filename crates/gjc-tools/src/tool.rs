//! What a tool is.

use crate::{Preview, ToolCtx, ToolOutput};
use async_trait::async_trait;
use gjc_context::ToolDef;
use gjc_entry::OpId;
use gjc_flow::{Call, Permits};
use gjc_protocol::{Mode, Refusal};
use serde_json::value::RawValue;
use std::sync::Arc;

/// One tool.
#[async_trait]
pub trait Tool: Send + Sync + 'static {
    /// Its name, as the model calls it.
    fn name(&self) -> &'static str;

    /// Its description; `None` when it is not shown in this situation.
    fn spec(&self, shown: &Shown) -> Option<ToolSpec>;

    /// Reads the input and names sources and sinks. No effect; no byte of a file's content is read.
    ///
    /// # Errors
    /// A refusal that tells the model how to call it right.
    fn plan(&self, ctx: &ToolCtx, input: &RawValue) -> Result<Call, Refusal>;

    /// What a person sees before they allow a planned call. Files may be read for it; what is shown goes to people alone.
    ///
    /// # Errors
    /// The output of a call that would fail anyway, so that nobody is asked in vain. It bears the label of what it tells of.
    fn preview(&self, ctx: &ToolCtx, call: &Call) -> Result<Preview, ToolOutput> {
        let _ = ctx;
        Ok(Preview::of_input(call))
    }

    /// Does it. Each sink's permit is redeemed right before its effect.
    async fn run(&self, ctx: ToolCtx, call: Call, permits: Permits) -> ToolOutput;

    /// After a crash: what became of the act?
    async fn recover(&self, ctx: ToolCtx, op: &OpId) -> Recovery {
        let (_, _) = (ctx, op);
        Recovery::Unknown
    }
}

/// The situation in which tools are shown.
#[derive(Debug, Clone, Default)]
pub struct Shown {
    /// The session's mode: in plan mode only tools without effects are shown.
    pub mode: Mode,
    /// Whether somebody is there to answer questions.
    pub answers: bool,
}

/// A tool's description.
#[derive(Debug, Clone)]
pub struct ToolSpec {
    /// What it is for, for the model.
    pub description: String,
    /// The JSON schema of its input.
    pub input: schemars::Schema,
    /// What it can change.
    pub effects: Effects,
    /// What may run beside it.
    pub run: Run,
}

/// What a tool can change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effects {
    /// Nothing.
    None,
    /// The session.
    Session,
    /// Files of the workspace.
    Workspace,
    /// Anything: the call waits until the session is durable, so that no effect is ever without its record.
    Outside,
}

/// What may run beside a tool's call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Run {
    /// Other parallel calls of the same answer.
    Parallel,
    /// Nothing; calls run in order.
    Serial,
    /// It must be the only call of its answer.
    Sole,
}

/// What became of an act that was under way when the process died.
#[derive(Debug)]
pub enum Recovery {
    /// It is done, with this output.
    Done(ToolOutput),
    /// It did not happen.
    NotDone,
    /// Nobody knows: the model is told so.
    Unknown,
}

/// The tools of a session, in the order in which the model sees them.
#[derive(Clone, Default)]
pub struct Tools(Vec<Arc<dyn Tool>>);

impl Tools {
    /// From a list. Of a name that stands twice the first counts.
    #[must_use]
    pub fn new(tools: Vec<Arc<dyn Tool>>) -> Self {
        let mut kept: Vec<Arc<dyn Tool>> = Vec::new();
        for tool in tools {
            if kept.iter().all(|other| other.name() != tool.name()) {
                kept.push(tool);
            }
        }
        Self(kept)
    }

    /// These, and one more at the end.
    #[must_use]
    pub fn with(mut self, tool: Arc<dyn Tool>) -> Self {
        self.0.push(tool);
        Self::new(self.0)
    }

    /// Only these.
    ///
    /// # Errors
    /// A refusal that names the first unknown one.
    pub fn only(&self, names: &[String]) -> Result<Self, Refusal> {
        let find = |name: &String| {
            self.get(name).cloned().ok_or_else(|| {
                Refusal::new("unknown_tool", format!("there is no tool \"{name}\""))
                    .hint(format!("choose from: {}", self.names().join(", ")))
            })
        };
        names.iter().map(find).collect::<Result<Vec<_>, _>>().map(Self::new)
    }

    /// The one with a name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.0.iter().find(|tool| tool.name() == name)
    }

    /// All names.
    #[must_use]
    pub fn names(&self) -> Vec<&'static str> {
        self.0.iter().map(|tool| tool.name()).collect()
    }

    /// The one with a name and its description, if it is shown in this situation.
    #[must_use]
    pub fn shown(&self, name: &str, shown: &Shown) -> Option<(&Arc<dyn Tool>, ToolSpec)> {
        let tool = self.get(name)?;
        let fits = |spec: &ToolSpec| shown.mode != Mode::Plan || spec.effects == Effects::None;
        Some((tool, tool.spec(shown).filter(fits)?))
    }

    /// The definitions for the model.
    #[must_use]
    pub fn defs(&self, shown: &Shown) -> Vec<ToolDef> {
        self.0
            .iter()
            .filter_map(|tool| {
                let (_, spec) = self.shown(tool.name(), shown)?;
                let input = serde_json::value::to_raw_value(&spec.input).ok()?;
                Some(ToolDef { name: tool.name().into(), description: spec.description, input })
            })
            .collect()
    }
}
