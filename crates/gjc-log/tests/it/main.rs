//! Tests of the log.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, clippy::disallowed_methods)]

mod fs_suite;
mod kit;
mod power_cuts;
mod writer;
