//! The Responses API of OpenAI, and of the servers that speak it (OpenRouter, vLLM, LM Studio, Ollama, llama.cpp).
//!
//! Source: <https://platform.openai.com/docs/api-reference/responses>. Nothing is kept by the server (`store: false`): each request
//! says everything, and thinking travels as encrypted reasoning items. [`render`] makes the body, [`decode`] reads the answer,
//! [`remote`] moves both.

mod client;
mod decode;
mod render;

pub use client::remote;
pub use decode::decode;
pub use render::render;

/// OpenAI's own server.
pub const URL: &str = crate::family::URL;

/// The wire's name in session files.
pub const API: &str = "openai-responses";

/// The version of [`render`]'s output. Raise it with every change of a byte, and keep the old code: sessions name it.
pub const RENDERER: u16 = 1;
