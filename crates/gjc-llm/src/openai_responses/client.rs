//! A server of the Responses API.

use super::decode::Decoder;
use super::{API, RENDERER};
use crate::family::{self, manners};
use crate::http::{HttpConfig, Manners, Server};
use crate::{Provider, ProviderError, Rendered, StreamEvent, Unsupported};
use futures_util::stream::BoxStream;
use gjc_context::{Checked, Request};
use gjc_entry::{Blobs, Clock};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

const MANNERS: Manners = manners(|base| family::endpoint(base, "responses"));

/// A server of the Responses API. A base URL without a path gets `/v1`; one with a path has its version in it, as in
/// `https://openrouter.ai/api/v1`.
#[derive(Debug, Clone)]
pub struct OpenAiResponses(Arc<Server>);

impl OpenAiResponses {
    /// Costs nothing: the HTTP client is built with the first request. `clock` is asked only to read dates in
    /// `retry-after`.
    #[must_use]
    pub fn new(config: HttpConfig, clock: Arc<dyn Clock>) -> Self {
        Self(Server::new(MANNERS, config, clock))
    }
}

impl Provider for OpenAiResponses {
    fn render(&self, request: &Checked<Request>, blobs: &dyn Blobs) -> Result<Rendered, Unsupported> {
        super::render(request, blobs)
    }

    fn stream(
        &self,
        request: Rendered,
        cancel: CancellationToken,
    ) -> BoxStream<'static, Result<StreamEvent, ProviderError>> {
        self.0.stream::<Decoder>(request, cancel)
    }

    fn api(&self) -> &'static str {
        API
    }

    fn renderer(&self) -> u16 {
        RENDERER
    }
}
