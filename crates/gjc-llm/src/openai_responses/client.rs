//! A server of the Responses API.

use super::decode::Decoder;
use super::{API, RENDERER, render};
use crate::family::{self, KEY};
use crate::http::{HttpConfig, Remote, Server, Wire};
use gjc_entry::Clock;
use std::sync::Arc;

const WIRE: Wire = Wire {
    api: API,
    renderer: RENDERER,
    render,
    stream: Server::stream::<Decoder>,
    endpoint: |base| family::endpoint(base, "responses"),
    key: KEY,
    headers: &[],
    // <https://platform.openai.com/docs/guides/images-vision>: the pictures of a request.
    largest: 50 << 20,
    whole: true,
};

/// A server of the Responses API. A base URL without a path gets `/v1`; one with a path has its version in it, as in
/// `https://openrouter.ai/api/v1`.
#[must_use]
pub fn remote(config: HttpConfig, clock: Arc<dyn Clock>) -> Remote {
    Remote::new(WIRE, config, clock)
}
