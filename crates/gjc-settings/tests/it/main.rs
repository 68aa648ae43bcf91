//! Settings as a person and an attacker write them.
#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods, reason = "a test fails by panicking")]

mod editing;
mod files;
mod guards;
mod hooks;
mod page;
mod prices;
mod reading;
