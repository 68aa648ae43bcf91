#![allow(clippy::unwrap_used, clippy::panic, missing_docs, clippy::disallowed_methods)]

mod assemble;
mod client;
mod kit;
mod openai;
mod openai_responses;
mod render;
mod script;
mod wire;
mod wires;
