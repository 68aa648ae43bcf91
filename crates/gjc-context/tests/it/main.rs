//! Tests of what the model sees.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, clippy::disallowed_methods)]

mod check;
mod copies;
mod effects;
mod family;
mod files;
mod fixtures;
mod folds;
mod marks;
mod mem;
mod model;
mod props;
mod random;
mod symptoms;
mod tail_first;
