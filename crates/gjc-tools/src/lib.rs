//! The tools that a model may call, one module a tool, named as the tool; and the traits that they are written against.
//!
//! A tool never acts on its own: [`Tool::plan`] only names what would be read and written, the session decides, and
//! [`Tool::run`] gets the permits. It learns who calls from [`ToolCtx`], which only the runtime can make, and what it
//! returns bears the label of where it came from ([`Output::from`]).

mod context;
mod output;
mod tool;

pub use context::{Progress, SessionView, Surroundings, ToolCtx};
pub use output::{Output, ToolOutput};
pub use tool::{Effects, Recovery, Run, Shown, Tool, ToolSpec, Tools};
