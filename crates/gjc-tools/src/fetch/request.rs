//! Asking a server: one GET, its redirects, and every hop looked at before a byte is sent.
//!
//! A name is resolved once, what it resolves to is judged, and the connection goes to that address and no other: a name that
//! means another machine a moment later changes nothing. No proxy, no cookie, no key, no redirect that was not looked at.

use super::address::is_public;
use gjc_protocol::Refusal;
use reqwest::dns::{Name, Resolve, Resolving};
use reqwest::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderName, LOCATION};
use reqwest::redirect::Policy;
use reqwest::{Client, Response, StatusCode, Url};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Redirects that are followed.
const MOST_HOPS: usize = 10;
/// The longest address, in bytes.
const MOST_URL: usize = 8 * 1024;
/// Bytes of an answer that are read.
pub(super) const MOST_BYTES: usize = 8 << 20;
/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(10);

/// Reads an address as a model wrote it.
pub(super) fn parse(given: &str) -> Result<Url, Refusal> {
    if given.len() > MOST_URL {
        return Err(Refusal::new("wrong_input", format!("`url` has more than {MOST_URL} bytes")).hint("ask for less"));
    }
    let url = Url::parse(given.trim()).map_err(|error| {
        Refusal::new("wrong_input", format!("`url` is no address: {error}"))
            .hint("give it whole, as in https://example.com/page")
    })?;
    check(&url)?;
    Ok(url)
}

/// What an address must be, at each hop.
fn check(url: &Url) -> Result<(), Refusal> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(Refusal::new("wrong_input", format!("{} is no address of the web", shown(url)))
            .hint("http:// and https:// are fetched; files are for read"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(Refusal::new("wrong_input", "the address holds a name or a password")
            .hint("fetch sends neither; give the address without them"));
    }
    if url.host_str().is_none_or(str::is_empty) {
        return Err(Refusal::new("wrong_input", "the address names no server")
            .hint("give it whole, as in https://example.com/page"));
    }
    Ok(())
}

/// An address for a sentence, without what may be a secret in it.
pub(super) fn shown(url: &Url) -> String {
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{}://{}{port}", url.scheme(), url.host_str().unwrap_or_default())
}

/// What a server answered.
#[derive(Debug)]
pub(super) struct Answer {
    /// Where it came from in the end.
    pub(super) url: Url,
    pub(super) status: StatusCode,
    pub(super) content_type: String,
    /// How many bytes the server says there are.
    pub(super) length: Option<u64>,
    response: Response,
}

impl Answer {
    /// Its bytes, and whether there are more than are read.
    pub(super) async fn bytes(&mut self) -> Result<(Vec<u8>, bool), Refusal> {
        let mut bytes = Vec::new();
        loop {
            match self.response.chunk().await {
                Ok(Some(piece)) => bytes.extend_from_slice(&piece),
                Ok(None) => return Ok((bytes, false)),
                Err(error) => return Err(broken(&self.url, error)),
            }
            if bytes.len() > MOST_BYTES {
                bytes.truncate(MOST_BYTES);
                return Ok((bytes, true));
            }
        }
    }
}

/// Sends requests.
#[derive(Debug)]
pub(super) struct Web {
    /// Servers that may be on this machine or in its network: `host` or `host:port`.
    allowed: Vec<String>,
    tls: OnceLock<Result<rustls::ClientConfig, String>>,
}

impl Web {
    pub(super) fn new(allowed: Vec<String>) -> Self {
        Self { allowed: allowed.into_iter().map(|host| host.to_ascii_lowercase()).collect(), tls: OnceLock::new() }
    }

    /// Asks for an address, and for those that it leads to.
    pub(super) async fn get(&self, url: Url) -> Result<Answer, Refusal> {
        let mut url = url;
        for _ in 0..=MOST_HOPS {
            let response = self.ask(&url).await?;
            let Some(next) = redirect(&url, &response)? else { return answer(url, response) };
            url = next;
        }
        Err(Refusal::new("redirects", format!("{} leads on and on, more than {MOST_HOPS} times", shown(&url)))
            .hint("fetch the page itself"))
    }

    /// One hop.
    async fn ask(&self, url: &Url) -> Result<Response, Refusal> {
        let addresses = self.addresses(url).await?;
        let client = self.client(url, &addresses)?;
        let request = client
            .get(url.clone())
            .header(ACCEPT, "text/html, text/markdown, text/plain, application/json, */*;q=0.5")
            // Nothing is unpacked here: a small answer could become one that fills the memory.
            .header(ACCEPT_ENCODING, "identity");
        request.send().await.map_err(|error| unreachable(url, error))
    }

    /// The addresses of a server, all of which may be asked.
    async fn addresses(&self, url: &Url) -> Result<Vec<SocketAddr>, Refusal> {
        let host = url.host_str().unwrap_or_default();
        let port = url.port_or_known_default().unwrap_or(443);
        let literal = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        let found: Vec<SocketAddr> = match literal {
            Ok(address) => vec![SocketAddr::new(address, port)],
            Err(_) => match tokio::net::lookup_host((host, port)).await {
                Ok(found) => found.collect(),
                Err(error) => {
                    return Err(Refusal::new("unreachable", format!("{host} is not found: {error}"))
                        .hint("check the name, and whether this machine has a network"));
                }
            },
        };
        if found.is_empty() {
            return Err(Refusal::new("unreachable", format!("{host} has no address")).hint("check the name"));
        }
        if self.is_allowed(host, port) {
            return Ok(found);
        }
        match found.iter().find(|address| !is_public(address.ip())) {
            None => Ok(found),
            Some(own) => {
                let place = if literal.is_ok() { host.to_string() } else { format!("{host} ({})", own.ip()) };
                Err(Refusal::new(
                    "private_address",
                    format!("{place} is this machine or in a network of its own, not on the Internet"),
                )
                .hint("a person can allow it: `gjc config set fetch.allowHosts` with its name"))
            }
        }
    }

    fn is_allowed(&self, host: &str, port: u16) -> bool {
        let host = host.to_ascii_lowercase();
        let with_port = format!("{host}:{port}");
        // Brackets belong to the address of a URL; a person may leave them out.
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        self.allowed.iter().any(|allowed| *allowed == host || *allowed == bare || *allowed == with_port)
    }

    /// A client that connects to these addresses alone.
    fn client(&self, url: &Url, addresses: &[SocketAddr]) -> Result<Client, Refusal> {
        let tls = self.tls.get_or_init(gjc_llm::tls).clone();
        let tls = tls.map_err(|why| Refusal::new("unreachable", format!("no connection can be made safe: {why}")))?;
        Client::builder()
            .tls_backend_preconfigured(tls)
            .no_proxy()
            .redirect(Policy::none())
            .referer(false)
            .connect_timeout(CONNECT)
            .user_agent(gjc_llm::USER_AGENT)
            .dns_resolver(Arc::new(Nobody))
            .resolve_to_addrs(url.host_str().unwrap_or_default(), addresses)
            .build()
            .map_err(|error| Refusal::new("internal", format!("the HTTP client cannot be built: {}", cause(&error))))
    }
}

/// Resolves nothing: every address that a client may use is given to it.
struct Nobody;

impl Resolve for Nobody {
    fn resolve(&self, _: Name) -> Resolving {
        Box::pin(async { Err("this name was not looked at before".into()) })
    }
}

/// Where a response leads on to.
fn redirect(url: &Url, response: &Response) -> Result<Option<Url>, Refusal> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let Some(to) = response.headers().get(LOCATION) else { return Ok(None) };
    let next = String::from_utf8_lossy(to.as_bytes());
    let nowhere =
        || Refusal::new("redirects", format!("{} leads to what is no address", shown(url))).hint("fetch another page");
    if next.len() > MOST_URL {
        return Err(nowhere());
    }
    let next = url.join(&next).map_err(|_| nowhere())?;
    check(&next)?;
    if url.scheme() == "https" && next.scheme() == "http" {
        return Err(Refusal::new(
            "redirects",
            format!("{} leads to {}, which anybody on the way could read and change", shown(url), shown(&next)),
        )
        .hint("fetch that address itself if that is all right"));
    }
    Ok(Some(next))
}

fn answer(url: Url, response: Response) -> Result<Answer, Refusal> {
    let text = |name: HeaderName| {
        let value = response.headers().get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
        value.unwrap_or_default()
    };
    let packed = text(CONTENT_ENCODING);
    if !matches!(packed.trim(), "" | "identity") {
        let packed: String = packed.chars().filter(|c| c.is_ascii_graphic()).take(40).collect();
        return Err(Refusal::new(
            "packed",
            format!("{} answered packed as {packed}, which was not asked for", shown(&url)),
        )
        .hint("bash can fetch it with `curl --compressed`, where commands have a network"));
    }
    let content_type = text(CONTENT_TYPE).chars().filter(|c| !c.is_control()).take(200).collect();
    Ok(Answer { status: response.status(), length: response.content_length(), content_type, url, response })
}

fn unreachable(url: &Url, error: reqwest::Error) -> Refusal {
    let cause = cause(&error.without_url());
    Refusal::new("unreachable", format!("{} cannot be reached: {cause}", shown(url)))
        .hint("check the address; whether it is up can be seen in a browser")
}

fn broken(url: &Url, error: reqwest::Error) -> Refusal {
    let cause = cause(&error.without_url());
    Refusal::new("broken_off", format!("the answer of {} broke off: {cause}", shown(url))).hint("try again")
}

/// The deepest cause, as one line.
fn cause(error: &(dyn std::error::Error + 'static)) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string().split_whitespace().collect::<Vec<_>>().join(" ").chars().take(300).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_is_no_address_of_the_web_is_refused() {
        for (given, why) in [
            ("", "no address"),
            ("example.com/page", "no address"),
            ("file:///etc/passwd", "no address of the web"),
            ("ftp://example.com", "no address of the web"),
            ("data:text/html,x", "no address of the web"),
            ("javascript:alert(1)", "no address of the web"),
            ("https://user@example.com/", "name or a password"),
            ("https://a:b@example.com/", "name or a password"),
            ("https://", "no address"),
        ] {
            let refusal = parse(given).unwrap_err();
            assert!(refusal.sentence.contains(why) && refusal.hint.is_some(), "{given}: {refusal}");
        }
        assert!(parse(&format!("https://example.com/{}", "x".repeat(9_000))).is_err());
        assert_eq!(parse(" https://한글.example/길 ").unwrap().host_str(), Some("xn--bj0bj06e.example"));
    }

    #[tokio::test]
    async fn an_address_of_this_machine_is_refused_however_it_is_written() {
        let web = Web::new(Vec::new());
        for given in [
            "http://127.0.0.1/",
            "http://127.1/",
            "http://2130706433/",
            "http://0x7f.0.0.1/",
            "http://0177.0.0.1/",
            "http://localhost/",
            "http://LOCALHOST:8080/",
            "http://[::1]/",
            "http://[::ffff:127.0.0.1]/",
            "http://[::ffff:a9fe:a9fe]/",
            "http://169.254.169.254/latest/meta-data/",
            "http://10.0.0.1/",
            "http://192.168.1.1/",
            "http://0.0.0.0/",
            "http://１２７.0.0.1/",
        ] {
            let refusal = web.addresses(&parse(given).unwrap()).await.unwrap_err();
            assert!(refusal.code == "private_address" && refusal.hint.is_some(), "{given}: {refusal}");
        }
        let web = Web::new(vec!["LocalHost".into(), "127.0.0.1:81".into(), "[::1]".into()]);
        for (given, allowed) in [
            ("http://localhost/", true),
            ("http://localhost:9/", true),
            ("http://127.0.0.1:81/", true),
            ("http://127.0.0.1/", false),
            ("http://[::1]:3/", true),
            ("http://localhost.example.invalid/", false),
        ] {
            assert_eq!(web.addresses(&parse(given).unwrap()).await.is_ok(), allowed, "{given}");
        }
    }
}
