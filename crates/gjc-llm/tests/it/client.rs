//! The adapter against a server on loopback.

use crate::kit::{
    Answer, HEAD, RECORDED, Reply, Server, Still, Store, assembled, block_on, env, json, read_request, recorded,
    request, text, user,
};
use futures_util::StreamExt;
use gjc_entry::Thinking;
use gjc_llm::anthropic::remote;
use gjc_llm::{HttpConfig, Provider, ProviderError, Remote, Rendered, Secret, StreamEvent};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

const KEY: &str = "sk-ant-비밀-0123456789";
const ASCII_KEY: &str = "sk-ant-0123456789";

fn config(base_url: String) -> HttpConfig {
    HttpConfig { key: Some(Secret::new(ASCII_KEY)), ..HttpConfig::new(base_url) }
}

fn provider(config: HttpConfig) -> Remote {
    remote(config, Still::new())
}

fn rendered(provider: &Remote) -> Rendered {
    provider.render(&request(env(Thinking::Off), vec![user(vec![text("안녕")])]), &Store::new("s", "[]")).unwrap()
}

fn ask(provider: &Remote) -> Answer {
    let body = rendered(provider);
    block_on(provider.stream(body, CancellationToken::new()).collect())
}

fn ask_server(replies: Vec<Reply>) -> ProviderError {
    let server = Server::new(replies);
    let (_, error) = assembled(ask(&provider(config(server.url()))));
    let error = error.unwrap();
    assert!(!format!("{error} {error:?}").contains(ASCII_KEY), "{error}");
    error
}

fn reply(status: &str, headers: &str, body: &str) -> Reply {
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}");
    Reply::Pieces(vec![head.into_bytes()])
}

#[test]
fn a_request_is_sent_and_its_answer_read() {
    let body = recorded();
    let middle = body.find('한').unwrap_or(body.len() / 2) + 1;
    let (one, two) = body.as_bytes().split_at(middle);
    let server = Server::new(vec![Reply::Pieces(vec![HEAD.into(), one.to_vec(), two.to_vec()])]);
    let provider = provider(config(server.url()));
    let (message, error) = assembled(ask(&provider));
    assert_eq!((json(&message).as_str(), error), (RECORDED, None));

    let sent = server.requests.recv().unwrap();
    let (head, body) = sent.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("POST /v1/messages HTTP/1.1\r\n"), "{head}");
    for header in
        [&format!("x-api-key: {ASCII_KEY}"), "anthropic-version: 2023-06-01", "content-type: application/json"]
    {
        assert!(head.contains(header), "{head}");
    }
    assert_eq!(body.as_bytes(), rendered(&provider).body);
}

#[test]
fn errors_over_http() {
    let echo =
        format!(r#"{{"type":"error","error":{{"type":"authentication_error","message":"invalid key {ASCII_KEY}"}}}}"#);
    let error = ask_server(vec![reply("401 Unauthorized", "", &echo)]);
    assert_eq!(error, ProviderError::Auth("invalid key [key]".into()));
    let error =
        ask_server(vec![reply("429 Too Many Requests", "retry-after: 7\r\n", r#"{"error":{"message":"천천히"}}"#)]);
    assert_eq!(error, ProviderError::Retry { after: Some(Duration::from_secs(7)), why: "천천히".into() });
    let date = "retry-after: Fri, 05 Jun 2026 07:19:54 GMT\r\n";
    let error = ask_server(vec![reply("503 Service Unavailable", date, "")]);
    assert_eq!(error, ProviderError::Retry { after: Some(Duration::from_secs(60)), why: "HTTP 503".into() });
    let error = ask_server(vec![reply("400 Bad Request", "", r#"{"error":{"message":"prompt is too long: 3 > 2"}}"#)]);
    assert_eq!(error, ProviderError::Overflow("prompt is too long: 3 > 2".into()));
    let error = ask_server(vec![reply("302 Found", "location: http://127.0.0.1:9/\r\n", "")]);
    assert!(matches!(error, ProviderError::BadRequest(_)), "no redirect is followed: {error}");
    let error = ask_server(vec![reply("200 OK", "content-type: text/html\r\n", "<html>")]);
    assert!(error.to_string().contains("text/html"), "{error}");
}

#[test]
fn broken_connections() {
    let error = ask_server(vec![Reply::Pieces(Vec::new())]);
    assert!(matches!(error, ProviderError::Retry { .. }), "no head: {error}");
    let error = ask_server(vec![Reply::Pieces(vec![HEAD.into()])]);
    assert!(matches!(error, ProviderError::Cut { replay_safe: true, .. }), "no body: {error}");
    // A body that was promised in chunks and ends within one.
    let head = HEAD.replace("connection: close", "transfer-encoding: chunked");
    let body = recorded();
    let half = &body[..body.find("event: content_block_stop").unwrap()];
    let chunk = format!("{:x}\r\n{half}", half.len() + 50);
    let error = ask_server(vec![Reply::Pieces(vec![(head + &chunk).into_bytes()])]);
    assert!(matches!(error, ProviderError::Cut { replay_safe: false, .. }), "half a chunk: {error}");

    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (_, error) = assembled(ask(&provider(config(format!("http://user:pw-geheim@{closed}")))));
    let sentence = error.clone().unwrap().to_string();
    assert!(matches!(error, Some(ProviderError::Retry { .. })), "{sentence}");
    assert!(sentence.contains("127.0.0.1") && !sentence.contains("geheim"), "{sentence}");
    let (_, error) = assembled(ask(&provider(config("no url".into()))));
    assert!(matches!(error, Some(ProviderError::BadRequest(_))), "{error:?}");
}

#[test]
fn a_silent_server_is_not_waited_for_for_ever() {
    let begun = recorded()[..recorded().find("event: content_block_stop").unwrap()].to_owned();
    for (bytes, begun) in [(HEAD.to_owned(), false), (HEAD.to_owned() + &begun, true)] {
        let server = Server::new(vec![Reply::ThenSilence(bytes.into_bytes())]);
        let config = HttpConfig { idle_limit: Duration::from_millis(500), ..config(server.url()) };
        let (_, error) = assembled(ask(&provider(config)));
        assert!(matches!(error, Some(ProviderError::Cut { replay_safe, .. }) if replay_safe != begun), "{error:?}");
    }
}

#[test]
fn cancelling_ends_the_stream_without_an_error() {
    let begun = recorded()[..recorded().find("event: content_block_stop").unwrap()].to_owned();
    let server = Server::new(vec![Reply::ThenSilence((HEAD.to_owned() + &begun).into_bytes())]);
    let provider = provider(config(server.url()));
    let body = rendered(&provider);
    let last = block_on(async {
        let cancel = CancellationToken::new();
        let mut events = provider.stream(body, cancel.clone());
        let mut last = None;
        while let Some(event) = events.next().await {
            let event = event.unwrap();
            if matches!(&event, StreamEvent::Delta { text, .. } if text == "는다.") {
                cancel.cancel();
            }
            last = Some(event);
        }
        last
    });
    assert!(matches!(last, Some(StreamEvent::Delta { .. })), "{last:?}");
}

#[test]
fn a_connection_is_used_again() {
    // One connection, two requests: the server refuses a second connection. The end of a body comes behind its last event.
    use std::io::Write;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let served = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        drop(listener);
        stream.set_nodelay(true).unwrap();
        let body = recorded();
        let head = HEAD.replace("connection: close", "transfer-encoding: chunked");
        let mut served = 0;
        while served < 2 && !read_request(&mut stream).is_empty() {
            write!(stream, "{head}{:x}\r\n{body}\r\n", body.len()).unwrap();
            stream.write_all(b"0\r\n\r\n").unwrap();
            served += 1;
        }
        served
    });
    let provider = provider(config(format!("http://{at}")));
    block_on(async {
        for _ in 0..2 {
            let answer: Answer = provider.stream(rendered(&provider), CancellationToken::new()).collect().await;
            assert_eq!(assembled(answer).1, None);
        }
    });
    assert_eq!(served.join().unwrap(), 2);
}

#[test]
fn a_key_is_in_no_debug_output_and_a_strange_one_is_refused() {
    let secret = Secret::new(KEY);
    let config = HttpConfig { key: Some(secret), ..config("http://127.0.0.1:9".into()) };
    let provider = provider(config.clone());
    assert!(!format!("{config:?} {config:#?} {provider:?}").contains("sk-ant"));
    // Bytes that no header takes.
    let line = HttpConfig { key: Some(Secret::new("sk-ant\nx")), ..config };
    let (_, error) = assembled(ask(&remote(line, Still::new())));
    let sentence = error.clone().unwrap().to_string();
    assert!(matches!(error, Some(ProviderError::Auth(_))) && !sentence.contains("sk-ant"), "{sentence}");
}

#[test]
fn an_unreachable_server_is_named_whatever_the_scheme() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for scheme in ["http", "https"] {
        let (_, error) = assembled(ask(&provider(config(format!("{scheme}://{closed}")))));
        let sentence = error.unwrap().to_string();
        // A machine without a certificate store is told so, and only for https.
        let no_store = scheme == "https" && sentence.contains("ca-certificates");
        assert!(sentence.contains("127.0.0.1 cannot be reached") || no_store, "{scheme}: {sentence}");
    }
}

#[test]
fn a_key_is_never_sent_in_the_clear_to_an_https_address() {
    // The server takes the first bytes of the handshake and hangs up.
    use std::io::Read;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let seen = std::thread::spawn(move || {
        let mut first = [0; 4096];
        let count = listener.accept().unwrap().0.read(&mut first).unwrap();
        first[..count].to_vec()
    });
    let provider = provider(config(format!("https://{at}")));
    let (_, error) = assembled(ask(&provider));
    let sentence = error.unwrap().to_string();
    if sentence.contains("ca-certificates") {
        // A machine without a certificate store never gets as far; the server must not wait for it.
        drop(std::net::TcpStream::connect(at));
    }
    let seen = seen.join().unwrap();
    assert!(!sentence.contains(ASCII_KEY), "{sentence}");
    assert!(!seen.windows(ASCII_KEY.len()).any(|bytes| bytes == ASCII_KEY.as_bytes()), "{sentence}");
    assert!(!seen.starts_with(b"POST"), "{sentence}");
}
