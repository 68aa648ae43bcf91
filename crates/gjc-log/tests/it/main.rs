//! Tests of the log.
#![allow(clippy::unwrap_used, clippy::panic)]

mod fs_suite;
mod kit;
mod power_cuts;
mod writer;
