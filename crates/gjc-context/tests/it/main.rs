//! Tests of what the model sees.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr)]

mod check;
mod effects;
mod fixtures;
mod folds;
mod marks;
mod mem;
mod model;
mod props;
mod random;
mod symptoms;
