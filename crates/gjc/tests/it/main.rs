//! The binary, tested as a person and as a program use it.
#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

#[cfg(feature = "failpoints")]
mod kill;
