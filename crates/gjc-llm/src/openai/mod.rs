//! The Chat Completions API of OpenAI, and of the many servers that speak it: Ollama, llama.cpp, vLLM, LM Studio, OpenRouter,
//! Gemini's compatible endpoint.
//!
//! Source: <https://platform.openai.com/docs/api-reference/chat>. [`render`] makes the body, [`decode`] reads the answer in
//! each of its dialects, [`remote`] moves both.

mod calls;
mod client;
mod decode;
mod details;
mod render;

pub use client::remote;
pub use decode::decode;
pub use render::render;

/// OpenAI's own server.
pub const URL: &str = crate::family::URL;

/// The wire's name in session files.
pub const API: &str = "openai-completions";

/// The version of [`render`]'s output. Raise it with every change of a byte, and keep the old code: sessions name it.
pub const RENDERER: u16 = 1;
