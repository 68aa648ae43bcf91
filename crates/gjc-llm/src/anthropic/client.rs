//! A server of the Messages API.

use super::decode::Decoder;
use super::{API, RENDERER, render};
use crate::http::{HttpConfig, Remote, Server, Wire};
use gjc_entry::Clock;
use std::sync::Arc;

/// Anthropic's own server.
pub const URL: &str = "https://api.anthropic.com";

const WIRE: Wire = Wire {
    api: API,
    renderer: RENDERER,
    render,
    stream: Server::stream::<Decoder>,
    endpoint,
    key: ("x-api-key", ""),
    headers: &[("anthropic-version", "2023-06-01")],
    // <https://platform.claude.com/docs/en/api/overview#request-size-limits>
    largest: 32 << 20,
    whole: false,
};

/// A server of the Messages API. Of its base URL a path is kept, and `/v1` at its end may stand or not.
#[must_use]
pub fn remote(config: HttpConfig, clock: Arc<dyn Clock>) -> Remote {
    Remote::new(WIRE, config, clock)
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
