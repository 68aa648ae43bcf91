//! The schemas and the examples of the documentation say what the types say.
#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

mod examples;
mod schemas;
