//! Real programs, started, timed out, cancelled and dropped.
#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods, clippy::print_stdout)]

mod child;
mod ending;
mod output;
mod refusal;
mod sandbox;
mod scale;
mod support;
