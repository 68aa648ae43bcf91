//! Tests of the log.
#![allow(clippy::unwrap_used, clippy::panic)]

mod fs_suite;
