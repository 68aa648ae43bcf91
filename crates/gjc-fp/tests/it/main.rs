//! Tests of the failpoints, with the feature and without: `cargo nextest run -p gjc-fp [--features failpoints]`.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, clippy::panic)]

#[cfg(feature = "failpoints")]
mod armed;
#[cfg(not(feature = "failpoints"))]
mod empty;
