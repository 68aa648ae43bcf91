//! The real binary, as a person or a program runs it: through its arguments, pipes, signals and files.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a test fails by panicking, starts programs and reads the environment"
)]

mod approvals;
mod artifacts;
mod attached;
mod clone;
mod damage;
mod demo;
mod doctor;
mod dump;
#[cfg(feature = "failpoints")]
mod durability;
mod endings;
mod errors;
mod escapes;
mod exporting;
mod failing_storage;
mod fetch;
mod finding;
mod fixtures;
mod help;
mod history;
mod hooks;
mod hostile;
mod instructions;
mod jobs;
mod json;
mod keys;
#[cfg(feature = "failpoints")]
mod kill;
mod kit;
mod llama;
mod locks;
mod models;
mod moving;
mod pages;
mod persons;
mod print;
mod providers;
mod rebuilt;
mod rpc;
mod sandbox;
mod schemas;
mod search;
mod sessions;
mod settings;
mod sharing;
mod skills;
mod start;
mod start_folders;
mod start_refused;
mod switching;
#[cfg(feature = "failpoints")]
mod switching_fails;
mod taken_away;
mod tmux;
mod trash;
mod ways;
mod ways_read;
mod wires;
mod worktrees;
