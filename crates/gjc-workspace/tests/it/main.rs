//! Real git, in repositories of its own.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a test fails by panicking, starts programs and waits for them"
)]

mod making;
mod tmux;
mod worktrees;
