//! Tests of the log.
#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

mod backwards;
mod frames;
mod fs_suite;
mod index;
mod writer;
