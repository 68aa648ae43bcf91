//! The Messages API of Anthropic, and of the many servers that speak it.
//!
//! Source: <https://docs.anthropic.com/en/api/messages> and `/messages-streaming`, `anthropic-version: 2023-06-01`.
//! [`render`] makes the body, [`decode`] reads the answer, [`remote`] moves both.

mod client;
mod decode;
mod render;

pub use client::{URL, remote};
pub use decode::decode;
pub use render::render;

/// The wire's name in session files.
pub const API: &str = "anthropic-messages";

/// The version of [`render`]'s output. Raise it with every change of a byte, and keep the old code: sessions name it.
pub const RENDERER: u16 = 1;
