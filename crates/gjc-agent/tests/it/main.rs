//! Tests of the session actor and of what stands below it together.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, clippy::disallowed_methods)]

mod power_cuts;
