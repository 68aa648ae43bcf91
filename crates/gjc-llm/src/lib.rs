//! The model: a checked request becomes bytes, an answer becomes events and then a message.
//!
//! - [`Provider`]: one wire. [`Provider::render`] is pure; [`Provider::stream`] is the only part that touches the network.
//! - [`render`]: the same bytes again, later and elsewhere, without keys or network (`gjc context request`).
//! - [`StreamEvent`], [`Assembler`]: what comes back, for every wire, complete or cut.
//! - [`ProviderError`]: what can go wrong, each a sentence with a way out; [`Backoff`]: how long to wait before asking again.
//! - [`Prices`]: what an answer costs.
//! - [`Recording`]: what a model says, as a script that can be played again; [`Masks`]: without secrets.
//! - [`anthropic`], [`openai`], [`openai_responses`], [`scripted`]: the wires.
//!
//! What never happens here: a key in an error or in debug output; a byte of a request that depends on the clock, the
//! environment or the process; a panic over what a provider sends.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::disallowed_methods))]

pub mod anthropic;
pub mod openai;
pub mod openai_responses;
pub mod scripted;

mod backoff;
mod classify;
mod error;
mod event;
mod family;
mod http;
mod items;
mod mask;
mod parts;
mod price;
mod provider;
mod record;
mod reset;
mod secret;
mod sse;

pub use backoff::Backoff;
pub use classify::{classify, retry_after};
pub use error::ProviderError;
pub use event::{Assembler, BlockKind, End, INCOMPLETE, StreamEvent};
pub use http::{HttpConfig, Remote, USER_AGENT, tls};
pub use mask::{Masked, Masks};
pub use price::{MICRO, Prices, Rates};
pub use provider::{Provider, Rendered, Unsupported, render};
pub use record::{Lines, Mask, Recording};
pub use secret::Secret;
