//! Pages made of sessions, as a parser and as a browser see them.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

mod kit;
mod parsed;
