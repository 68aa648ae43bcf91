//! The tools that a model may call, one module a tool, named as the tool; and the traits that they are written against.
//!
//! A tool never acts on its own: [`Tool::plan`] only names what would be read and written, the session decides, and
//! [`Tool::run`] gets the permits. It learns who calls from [`ToolCtx`], which only the runtime can make, and what it
//! returns bears the label of where it came from ([`Output::from`]).

#![cfg_attr(test, allow(clippy::disallowed_methods))]

mod atomic;
mod bash;
mod context;
mod diff;
mod edit;
mod input;
mod output;
mod path;
mod read;
mod tool;
mod work;
mod write;

pub use bash::{Bash, Limits};
pub use context::{Progress, SessionView, Surroundings, ToolCtx};
pub use edit::Edit;
pub use output::{Output, ToolOutput};
pub use read::Read;
pub use tool::{Effects, Recovery, Run, Shown, Tool, ToolSpec, Tools};
pub use write::Write;

use std::sync::Arc;

/// The tools that every session has: [`Read`], [`Write`], [`Edit`], [`Bash`]. `vars` is what commands get as their
/// environment, once the secrets are out ([`Bash::new`]).
#[must_use]
pub fn builtin(vars: &gjc_entry::Vars) -> Tools {
    builtin_within(vars, Limits::default())
}

/// As [`builtin`], with other limits for commands.
#[must_use]
pub fn builtin_within(vars: &gjc_entry::Vars, limits: Limits) -> Tools {
    let bash = Bash::new(vars).within(limits);
    Tools::new(vec![Arc::new(Read), Arc::new(Write), Arc::new(Edit), Arc::new(bash)])
}
