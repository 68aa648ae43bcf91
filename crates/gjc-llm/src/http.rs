//! A server that is asked over HTTP: the only part that touches the network, for every wire.
//!
//! No proxy is used, whatever the environment says: only the binary reads the environment. Redirects are not followed, because
//! the key would travel with them. Certificates are checked against the system's store, which is read with the first request
//! to an `https` address and never for `http`.

use crate::error::root_cause;
use crate::reset::{is_used_up, reset};
use crate::sse::{Decode, decode, decode_whole};
use crate::{Provider, ProviderError, Rendered, Secret, StreamEvent, Unsupported, classify, retry_after};
use futures_util::stream::{self, BoxStream, StreamExt};
use gjc_context::{Checked, Request};
use gjc_entry::{Blobs, Clock};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How a server is reached.
#[derive(Debug, Clone)]
pub struct HttpConfig {
    /// As in `https://api.anthropic.com`; what of a path may stand behind it is told by each wire.
    pub base_url: String,
    /// Servers on one's own machine need none.
    pub key: Option<Secret>,
    /// How long the connection may take.
    pub connect_limit: Duration,
    /// How long the server may be silent, before its answer and within it. There is no limit on the whole.
    pub idle_limit: Duration,
}

impl HttpConfig {
    /// A server without a key.
    #[must_use]
    pub fn new(base_url: impl Into<String>) -> Self {
        Self {
            base_url: base_url.into(),
            key: None,
            connect_limit: Duration::from_secs(10),
            idle_limit: Duration::from_secs(300),
        }
    }

    /// Whether the server is on this machine: `localhost` or an address of loopback.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        let Ok(url) = reqwest::Url::parse(self.base_url.trim()) else { return false };
        let host = url.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
        host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
    }
}

/// A wire: what is its own.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wire {
    /// As [`Provider::api`].
    pub(crate) api: &'static str,
    /// As [`Provider::renderer`].
    pub(crate) renderer: u16,
    /// As [`Provider::render`].
    pub(crate) render: fn(&Request, &dyn Blobs) -> Result<Rendered, Unsupported>,
    /// [`Server::stream`] with the wire's decoder.
    pub(crate) stream: Streaming,
    /// Where a request goes, from the base URL.
    pub(crate) endpoint: fn(&str) -> String,
    /// The header of the key, and what stands before the key in it.
    pub(crate) key: (&'static str, &'static str),
    /// Further headers.
    pub(crate) headers: &'static [(&'static str, &'static str)],
    /// The most bytes of a request that its own server takes; others may take less.
    pub(crate) largest: usize,
    /// Whether an answer that is one JSON document is taken too: some servers do not know how to stream.
    pub(crate) whole: bool,
}

type Streaming =
    fn(&Arc<Server>, Rendered, CancellationToken) -> BoxStream<'static, Result<StreamEvent, ProviderError>>;

/// A server that speaks a wire.
#[derive(Debug, Clone)]
pub struct Remote(Arc<Server>);

impl Remote {
    /// Costs nothing: the HTTP client is built with the first request. `clock` is asked only to read dates in
    /// `retry-after`.
    pub(crate) fn new(wire: Wire, config: HttpConfig, clock: Arc<dyn Clock>) -> Self {
        Self(Arc::new(Server { wire, config, clock, client: OnceLock::new() }))
    }
}

impl Provider for Remote {
    fn render(&self, request: &Checked<Request>, blobs: &dyn Blobs) -> Result<Rendered, Unsupported> {
        (self.0.wire.render)(request, blobs)
    }

    fn stream(
        &self,
        request: Rendered,
        cancel: CancellationToken,
    ) -> BoxStream<'static, Result<StreamEvent, ProviderError>> {
        (self.0.wire.stream)(&self.0, request, cancel)
    }

    fn api(&self) -> &'static str {
        self.0.wire.api
    }

    fn largest(&self) -> Option<usize> {
        Some(self.0.wire.largest)
    }

    fn renderer(&self) -> u16 {
        self.0.wire.renderer
    }
}

/// A server, with its client.
pub(crate) struct Server {
    wire: Wire,
    config: HttpConfig,
    clock: Arc<dyn Clock>,
    client: OnceLock<Result<reqwest::Client, String>>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.config.fmt(f)
    }
}

impl Server {
    /// Sends a request and reads its answer with a decoder of the wire.
    pub(crate) fn stream<D: Decode + Default>(
        self: &Arc<Self>,
        request: Rendered,
        cancel: CancellationToken,
    ) -> BoxStream<'static, Result<StreamEvent, ProviderError>> {
        let server = Arc::clone(self);
        stream::once(async move {
            let events = match server.send(request).await {
                Ok((answer, true)) => decode_whole::<D, _, _, _>(answer.bytes_stream().boxed()),
                Ok((answer, false)) => decode::<D, _, _, _>(answer.bytes_stream().boxed()),
                Err(error) => stream::iter([Err(error)]).boxed(),
            };
            events.map(move |event| event.map_err(|error| server.masked(error)))
        })
        .flatten()
        .take_until(cancel.cancelled_owned())
        .boxed()
    }

    /// An answer whose head says that events follow, or (`true`) that it is one JSON document.
    async fn send(&self, request: Rendered) -> Result<(reqwest::Response, bool), ProviderError> {
        let client = self.client.get_or_init(|| client(&self.config)).as_ref();
        let client = client.map_err(|why| ProviderError::BadRequest(why.clone()))?;
        let mut post = client
            .post((self.wire.endpoint)(&self.config.base_url))
            .header(CONTENT_TYPE, "application/json")
            .body(request.body);
        for (name, value) in self.wire.headers {
            post = post.header(*name, *value);
        }
        if let Some(key) = &self.config.key {
            let (name, before) = self.wire.key;
            let mut value = HeaderValue::from_str(&format!("{before}{}", key.reveal()))
                .map_err(|_| ProviderError::Auth("the key holds characters that no key has".into()))?;
            value.set_sensitive(true);
            post = post.header(HeaderName::from_static(name), value);
        }
        let answer = post.send().await.map_err(|error| self.unreachable(error))?;
        let status = answer.status();
        if !status.is_success() {
            let after = self.asked_for(answer.headers());
            let headers = answer.headers().clone();
            let reset = reset(&headers, self.clock.wall());
            let mut error = classify(status.as_u16(), after, &beginning(answer).await);
            // A plan that is used up is worded like a limit of the moment; its own header tells them apart.
            if let ProviderError::Retry { after, why } = &error
                && status.as_u16() == 429
                && is_used_up(&headers)
            {
                error = ProviderError::Quota { after: *after, why: why.clone() };
            }
            if let ProviderError::Quota { after, .. } = &mut error {
                *after = reset.max(*after);
            }
            return Err(error);
        }
        let kind = answer.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let lower = kind.to_ascii_lowercase();
        if self.wire.whole && lower.starts_with("application/json") {
            return Ok((answer, true));
        }
        if !kind.is_empty() && !lower.starts_with("text/event-stream") {
            let why = format!("it answered with {kind} instead of a stream of events; check the provider's URL");
            return Err(ProviderError::BadRequest(why));
        }
        Ok((answer, false))
    }

    /// The wait that a head asks for. `retry-after-ms` is finer where it stands (OpenAI, Azure).
    fn asked_for(&self, headers: &HeaderMap) -> Option<Duration> {
        let text = |name: &HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
        let fine = text(&HeaderName::from_static("retry-after-ms"))
            .and_then(|millis| millis.trim().parse::<f64>().ok())
            .and_then(|millis| Duration::try_from_secs_f64(millis / 1000.0).ok());
        fine.or_else(|| text(&RETRY_AFTER).and_then(|value| retry_after(value, self.clock.wall())))
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

/// What every request says of its sender.
pub const USER_AGENT: &str = concat!("gjc/", env!("CARGO_PKG_VERSION"));

/// TLS with the system's certificates, for whoever speaks HTTP.
///
/// # Errors
/// A sentence, where the system has none that can be read.
pub fn tls() -> Result<rustls::ClientConfig, String> {
    tls_with(true)
}

fn tls_with(certificates: bool) -> Result<rustls::ClientConfig, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS cannot be set up ({error})"))?;
    if !certificates {
        return Ok(tls.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth());
    }
    let system = rustls_platform_verifier::Verifier::new(provider).map_err(|error| {
        format!("the system's certificates cannot be read ({error}); install the package ca-certificates")
    })?;
    Ok(tls.dangerous().with_custom_certificate_verifier(Arc::new(system)).with_no_client_auth())
}

fn client(config: &HttpConfig) -> Result<reqwest::Client, String> {
    // Reading the system's certificates costs more than a whole turn on one's own machine may.
    let plain = config.base_url.trim_start().to_ascii_lowercase().starts_with("http://");
    let tls = tls_with(!plain)?;
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(config.connect_limit)
        .read_timeout(config.idle_limit)
        .user_agent(USER_AGENT)
        .build()
        .map_err(|error| format!("the HTTP client cannot be built ({})", root_cause(&error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_this_machine_and_nothing_that_looks_like_it() {
        let is = |url: &str| HttpConfig::new(url).is_loopback();
        for url in [
            "http://127.0.0.1:8080",
            "http://localhost/v1",
            "http://LOCALHOST",
            "http://[::1]:1",
            "http://127.1",
            "http://u:p@127.0.0.9",
        ] {
            assert!(is(url), "{url}");
        }
        for url in [
            "http://127.0.0.1.example.com",
            "http://localhost@example.com",
            "http://10.0.0.1",
            "http://한글",
            "127.0.0.1",
            "",
        ] {
            assert!(!is(url), "{url}");
        }
    }
}
