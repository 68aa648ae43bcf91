//! Pages made of sessions, as a parser and as a browser see them; sessions as texts.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

mod kit;
mod parsed;
mod text;
