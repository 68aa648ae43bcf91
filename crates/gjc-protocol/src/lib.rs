//! What faces (terminal, print, RPC) and the session actor say to each other. Plain data; the JSON that `--mode json` and
//! `--mode rpc` speak is made from these types, and so are the schemas in `docs/schemas`.
//!
//! - [`Cmd`]: a command with an id; answered exactly once by a [`Reply`]
//! - [`Event`]: numbered; text deltas may be merged for a slow face, all else is delivered, or the face is told
//!   [`EventBody::Resync`] and asks for a [`Snapshot`]
//! - [`HookCall`]: what a hook is told, and [`HookVerdict`], [`HookAddition`]: what it may answer

mod asked;
mod command;
mod event;
mod export;
mod hook;
mod snapshot;
mod tree;

pub use asked::{About, Answer, Approval, AskEnd, Asked, Choice, Mode, Question, Reach, Remembers};
pub use command::{Cmd, CmdId, Command, Outcome, Picture, PromptMode, PromptPart, Refusal, Reply, Role};
pub use event::{Event, EventBody, Health, JobStatus, LabelInfo, Merge, SwitchReason, ToolEnd, TurnEnd, Unanswered};
pub use export::{ExportArgument, export_argument, refuse_copies};
pub use hook::{HookAddition, HookBody, HookCall, HookDecision, HookEvent, HookVerdict, OtherSession};
pub use snapshot::{JobInfo, ModelInfo, Partial, Queued, Snapshot, StepName};
pub use tree::{SessionReport, Tree, TreeFilter, TreeNode};

/// The JSON schemas of everything that goes over the wire or to a hook, by file name.
#[must_use]
pub fn schemas() -> Vec<(&'static str, schemars::Schema)> {
    vec![
        ("command.json", schemars::schema_for!(Cmd)),
        ("reply.json", schemars::schema_for!(Reply)),
        ("event.json", schemars::schema_for!(Event)),
        ("snapshot.json", schemars::schema_for!(Snapshot)),
        ("session-report.json", schemars::schema_for!(SessionReport)),
        ("tree.json", schemars::schema_for!(Tree)),
        ("hook-call.json", schemars::schema_for!(HookCall)),
        ("hook-verdict.json", schemars::schema_for!(HookVerdict)),
        ("hook-addition.json", schemars::schema_for!(HookAddition)),
    ]
}
