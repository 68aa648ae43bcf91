//! The built-in tools on real files and real programs, as the session calls them: plan, decide, permit, run.
#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods, clippy::print_stdout)]

mod ask;
mod attempts;
mod bash;
mod edit;
mod fetch;
mod find;
mod grep;
mod input;
mod judged;
mod ls;
mod preview;
mod read;
mod rig;
mod sandbox;
mod write;
