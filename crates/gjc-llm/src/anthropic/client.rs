//! The only part that touches the network.

use super::{API, RENDERER, decode};
use crate::error::root_cause;
use crate::{Provider, ProviderError, Rendered, Secret, StreamEvent, Unsupported, classify, retry_after};
use futures_util::stream::{self, BoxStream, StreamExt};
use gjc_context::{Checked, Request};
use gjc_entry::{Blobs, Clock};
use reqwest::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How a server of the Messages API is reached.
#[derive(Debug, Clone)]
pub struct AnthropicConfig {
    /// As in `https://api.anthropic.com`; a path is kept, and `/v1` at its end may stand or not.
    pub base_url: String,
    /// Sent as `x-api-key`; servers on one's own machine need none.
    pub key: Option<Secret>,
    /// How long the connection may take.
    pub connect_limit: Duration,
    /// How long the server may be silent, before its answer and within it. There is no limit on the whole.
    pub idle_limit: Duration,
}

impl Default for AnthropicConfig {
    fn default() -> Self {
        Self {
            base_url: "https://api.anthropic.com".into(),
            key: None,
            connect_limit: Duration::from_secs(10),
            idle_limit: Duration::from_secs(300),
        }
    }
}

/// A server of the Messages API.
///
/// No proxy is used, whatever the environment says: only the binary reads the environment. Redirects are not followed,
/// because the key would travel with them. Certificates are checked against the system's store, which is read with the
/// first request to an `https` address and never for `http`.
#[derive(Clone)]
pub struct Anthropic(Arc<Inner>);

struct Inner {
    config: AnthropicConfig,
    clock: Arc<dyn Clock>,
    client: OnceLock<Result<reqwest::Client, String>>,
}

impl std::fmt::Debug for Anthropic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Anthropic").field(&self.0.config).finish()
    }
}

impl Anthropic {
    /// Costs nothing: the HTTP client is built with the first request. `clock` is asked only to read dates in
    /// `retry-after`.
    #[must_use]
    pub fn new(config: AnthropicConfig, clock: Arc<dyn Clock>) -> Self {
        Self(Arc::new(Inner { config, clock, client: OnceLock::new() }))
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
        let inner = self.0.clone();
        stream::once(async move {
            let events = match inner.send(request).await {
                Ok(answer) => decode(answer.bytes_stream().boxed()),
                Err(error) => stream::iter([Err(error)]).boxed(),
            };
            events.map(move |event| event.map_err(|error| inner.masked(error)))
        })
        .flatten()
        .take_until(cancel.cancelled_owned())
        .boxed()
    }

    fn api(&self) -> &'static str {
        API
    }

    fn renderer(&self) -> u16 {
        RENDERER
    }
}

impl Inner {
    /// An answer whose head says that events follow.
    async fn send(&self, request: Rendered) -> Result<reqwest::Response, ProviderError> {
        let client = self.client.get_or_init(|| client(&self.config)).as_ref();
        let client = client.map_err(|why| ProviderError::BadRequest(why.clone()))?;
        let mut post = client
            .post(endpoint(&self.config.base_url))
            .header(CONTENT_TYPE, "application/json")
            .header("anthropic-version", "2023-06-01")
            .body(request.body);
        if let Some(key) = &self.config.key {
            let mut value = HeaderValue::from_str(key.reveal())
                .map_err(|_| ProviderError::Auth("the key holds characters that no key has".into()))?;
            value.set_sensitive(true);
            post = post.header("x-api-key", value);
        }
        let answer = post.send().await.map_err(|error| self.unreachable(error))?;
        let status = answer.status();
        if !status.is_success() {
            let header = answer.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
            let after = header.and_then(|value| retry_after(value, self.clock.wall()));
            return Err(classify(status.as_u16(), after, &beginning(answer).await));
        }
        let kind = answer.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        if !kind.is_empty() && !kind.to_ascii_lowercase().starts_with("text/event-stream") {
            let why = format!("it answered with {kind} instead of a stream of events; check the provider's URL");
            return Err(ProviderError::BadRequest(why));
        }
        Ok(answer)
    }

    /// No head came.
    fn unreachable(&self, error: reqwest::Error) -> ProviderError {
        // The URL may hold a password, and the sentence names the host anyway.
        let error = error.without_url();
        let host = reqwest::Url::parse(&self.config.base_url).ok();
        let host = host.as_ref().and_then(reqwest::Url::host_str).unwrap_or("the server").to_owned();
        let cause = root_cause(&error);
        if error.is_builder() {
            ProviderError::BadRequest(format!("the provider's URL is not usable ({cause})"))
        } else if cause.contains("certificate") {
            ProviderError::BadRequest(format!(
                "the certificate of {host} is not trusted ({cause}); add its authority to the system's certificates"
            ))
        } else if error.is_connect() {
            ProviderError::Retry { after: None, why: format!("{host} cannot be reached ({cause})") }
        } else {
            ProviderError::Retry { after: None, why: format!("{host} did not answer ({cause})") }
        }
    }

    fn masked(&self, error: ProviderError) -> ProviderError {
        match &self.config.key {
            Some(key) => error.map_text(|text| key.mask(text)),
            None => error,
        }
    }
}

/// The first 64 KiB of an error's body; what breaks off is what there is.
async fn beginning(mut answer: reqwest::Response) -> Vec<u8> {
    let mut body = Vec::new();
    while let Ok(Some(piece)) = answer.chunk().await {
        body.extend_from_slice(&piece);
        if body.len() > 64 * 1024 {
            body.truncate(64 * 1024);
            break;
        }
    }
    body
}

fn endpoint(base: &str) -> String {
    let base = base.trim_end_matches('/');
    format!("{}/v1/messages", base.strip_suffix("/v1").unwrap_or(base))
}

fn client(config: &AnthropicConfig) -> Result<reqwest::Client, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS cannot be set up ({error})"))?;
    // Reading the system's certificates costs more than a whole turn on one's own machine may.
    let plain = config.base_url.trim_start().to_ascii_lowercase().starts_with("http://");
    let tls = if plain {
        tls.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth()
    } else {
        let system = rustls_platform_verifier::Verifier::new(provider).map_err(|error| {
            format!("the system's certificates cannot be read ({error}); install the package ca-certificates")
        })?;
        tls.dangerous().with_custom_certificate_verifier(Arc::new(system)).with_no_client_auth()
    };
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(config.connect_limit)
        .read_timeout(config.idle_limit)
        .user_agent(concat!("gjc/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|error| format!("the HTTP client cannot be built ({})", root_cause(&error)))
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
