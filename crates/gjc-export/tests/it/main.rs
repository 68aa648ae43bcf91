//! Pages made of sessions, as a parser and as a browser see them; sessions as texts.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, clippy::print_stderr)]

mod browser;
mod kit;
mod parsed;
mod shown;
mod text;
