//! The tools that a model may call, one module a tool, named as the tool; and the traits that they are written against.
//!
//! A tool never acts on its own: [`Tool::plan`] only names what would be read and written, the session decides, and
//! [`Tool::run`] gets the permits. It learns who calls from [`ToolCtx`], which only the runtime can make, and what it
//! returns bears the label of where it came from ([`Output::from`]).

#![cfg_attr(test, allow(clippy::disallowed_methods))]

mod artifacts;
mod ask;
mod atomic;
mod attach;
mod bash;
mod command;
mod context;
mod diff;
mod edit;
mod fetch;
mod find;
mod glob;
mod grep;
mod host;
mod input;
mod job;
mod jobs;
mod ls;
mod mounts;
mod names;
mod output;
mod page;
mod path;
mod place;
mod preview;
mod read;
mod sandbox;
mod tool;
mod walk;
mod work;
mod write;

pub use artifacts::Artifacts;
pub use ask::Ask;
pub use attach::{Attached, check_picture};
pub use bash::{Bash, Limits, is_secret};
pub use command::Ran;
pub use context::{Progress, SessionView, Surroundings, ToolCtx};
pub use edit::Edit;
pub use fetch::{Fetch, Reach};
pub use find::Find;
pub use grep::Grep;
pub use host::{Host, Nobody};
pub use job::Job;
pub use jobs::{Begin, JobEnd, JobState, Jobs, NewJob, NoJobs, Running};
pub use ls::Ls;
pub use output::{Output, ToolOutput};
pub use preview::Preview;
pub use read::Read;
pub use sandbox::{Confinement, SECRETS, SandboxMode, SecretPlace, Workspace, describe, sandbox_of};
pub use tool::{Effects, Recovery, Run, Shown, Tool, ToolSpec, Tools};
pub use write::Write;

use std::sync::Arc;

/// The tools that every session has: [`Read`], [`Write`], [`Edit`], [`Bash`], [`Grep`], [`Find`], [`Ls`], [`Ask`], [`Job`]. `vars` is what
/// commands get as their environment, once the secrets are out ([`Bash::new`]); `how` is what they may reach.
#[must_use]
pub fn builtin(vars: &gjc_entry::Vars, how: Confinement) -> Tools {
    builtin_within(vars, how, Limits::default())
}

/// As [`builtin`], with other limits for commands.
#[must_use]
pub fn builtin_within(vars: &gjc_entry::Vars, how: Confinement, limits: Limits) -> Tools {
    Tools::new(vec![
        Arc::new(Read),
        Arc::new(Write),
        Arc::new(Edit),
        Arc::new(Bash::new(vars, how).within(limits)),
        Arc::new(Grep),
        Arc::new(Find),
        Arc::new(Ls),
        Arc::new(Ask),
        Arc::new(Job::waiting(limits.poll)),
    ])
}
