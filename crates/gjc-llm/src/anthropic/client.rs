//! A server of the Messages API.

use super::decode::Decoder;
use super::{API, RENDERER};
use crate::http::{HttpConfig, Manners, Server};
use crate::{Provider, ProviderError, Rendered, StreamEvent, Unsupported};
use futures_util::stream::BoxStream;
use gjc_context::{Checked, Request};
use gjc_entry::{Blobs, Clock};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Anthropic's own server.
pub const URL: &str = "https://api.anthropic.com";

const MANNERS: Manners =
    Manners { endpoint, key: ("x-api-key", ""), headers: &[("anthropic-version", "2023-06-01")], whole: false };

/// A server of the Messages API. Of its base URL a path is kept, and `/v1` at its end may stand or not.
#[derive(Debug, Clone)]
pub struct Anthropic(Arc<Server>);

impl Anthropic {
    /// Costs nothing: the HTTP client is built with the first request. `clock` is asked only to read dates in
    /// `retry-after`.
    #[must_use]
    pub fn new(config: HttpConfig, clock: Arc<dyn Clock>) -> Self {
        Self(Server::new(MANNERS, config, clock))
    }
}

impl Provider for Anthropic {
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

fn endpoint(base: &str) -> String {
    let base = base.trim_end_matches('/');
    format!("{}/v1/messages", base.strip_suffix("/v1").unwrap_or(base))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_spelling_of_a_base_url_leads_to_the_endpoint() {
        for base in ["http://h:1", "http://h:1/", "http://h:1/v1", "http://h:1/v1/"] {
            assert_eq!(endpoint(base), "http://h:1/v1/messages");
        }
        assert_eq!(endpoint("https://h/proxy"), "https://h/proxy/v1/messages");
    }
}
