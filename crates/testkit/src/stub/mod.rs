//! A stub model server: HTTP/1.1 on `127.0.0.1`, plain threads, no library between the script and the socket.
//!
//! The places where clients of a streaming API break lie between two bytes: a cut inside a UTF-8 letter, a stream that
//! ends cleanly but too early, a server that says nothing for a while. So a [`Reply`] is a list of [`Piece`]s, written one
//! by one with a flush after each, and a test stops the stream at a [`Gate`] instead of sleeping.
//!
//! ```
//! use testkit::stub::{Reply, Script, Stub};
//! let stub = Stub::start(Script::queue([Reply::text(200, "안녕")]));
//! assert!(stub.url().starts_with("http://127.0.0.1:"));
//! assert!(stub.requests().is_empty());
//! ```

mod http;
mod reply;
mod serve;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub use reply::{Cut, Framing, Gate, Piece, Reply};
use serve::{Outcome, Server};

/// A request as it arrived; `body` is byte for byte what the client sent (chunked transfer already joined).
#[derive(Debug, Clone)]
pub struct Recorded {
    /// `POST`, `GET`, …
    pub method: String,
    /// Path with its query, as in the request line.
    pub path: String,
    /// Headers in their order, names as sent.
    pub headers: Vec<(String, String)>,
    /// The body's bytes.
    pub body: Vec<u8>,
    /// When its last byte had been read.
    pub at: Instant,
    /// The connection it came on, counted from 0: equal numbers prove a connection was kept alive.
    pub connection: usize,
}

impl Recorded {
    /// The value of the first header of this name, any case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(k, _)| k.eq_ignore_ascii_case(name)).map(|(_, v)| v.as_str())
    }

    /// The body as JSON. Fails the test when it is not.
    #[must_use]
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| {
            panic!(
                "the body of {} {} is not JSON ({e}): {}",
                self.method,
                self.path,
                String::from_utf8_lossy(&self.body)
            )
        })
    }
}

type Answer = dyn Fn(&Recorded, usize) -> Reply + Send + Sync;

/// What the stub answers.
pub struct Script(pub(crate) Plan);

pub(crate) enum Plan {
    Queue(VecDeque<Reply>),
    Answer(Arc<Answer>),
}

impl Script {
    /// One reply for each request, in the order the requests arrive. A request beyond the last gets status 500 with a
    /// sentence that says so; more can be added with [`Stub::push`].
    pub fn queue(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self(Plan::Queue(replies.into_iter().collect()))
    }

    /// The same reply for every request.
    #[must_use]
    pub fn always(reply: Reply) -> Self {
        Self::answer(move |_, _| reply.clone())
    }

    /// A reply made from the request and its number (from 0).
    pub fn answer(f: impl Fn(&Recorded, usize) -> Reply + Send + Sync + 'static) -> Self {
        Self(Plan::Answer(Arc::new(f)))
    }
}

/// A running stub. Dropping it closes every connection and ends its threads.
pub struct Stub {
    server: Server,
}

impl Stub {
    /// Starts on a free port of loopback.
    #[must_use]
    pub fn start(script: Script) -> Self {
        Self::start_on(0, script)
    }

    /// Starts on this port of loopback (0: any free one). Fails the test when the port is taken.
    #[must_use]
    #[track_caller]
    pub fn start_on(port: u16, script: Script) -> Self {
        match Server::start(port, script.0) {
            Ok(server) => Self { server },
            Err(e) => panic!("the stub could not listen on 127.0.0.1:{port}: {e}"),
        }
    }

    /// `http://127.0.0.1:<port>`, without a slash at the end.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.server.addr)
    }

    /// Where it listens.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.server.addr
    }

    /// Every request read so far, in the order of arrival.
    #[must_use]
    pub fn requests(&self) -> Vec<Recorded> {
        self.server.shared.requests()
    }

    /// Waits until `n` requests have been read whole, and gives all that arrived. Fails the test after `limit`. It blocks,
    /// see [`Stub::wait_for_hang_up`].
    #[track_caller]
    pub fn wait_for_requests(&self, n: usize, limit: Duration) -> Vec<Recorded> {
        let shared = &self.server.shared;
        if !shared.bell.wait(Some(limit), || shared.requests().len() >= n) {
            let seen = shared.requests().iter().map(|r| format!("\n  {} {}", r.method, r.path)).collect::<String>();
            panic!("{n} requests were expected within {limit:?}, these came:{seen}");
        }
        shared.requests()
    }

    /// Waits until the client has hung up in the middle of the reply to request `n` (from 0). Fails the test after `limit`.
    /// A client that closes only its sending side counts as gone.
    ///
    /// It blocks: an async client on a single-threaded runtime closes its connection only while the runtime runs, so such
    /// a test waits through `spawn_blocking`.
    #[track_caller]
    pub fn wait_for_hang_up(&self, n: usize, limit: Duration) {
        let shared = &self.server.shared;
        if !shared.bell.wait(Some(limit), || shared.outcome(n) == Some(Outcome::HungUp)) {
            panic!("the client did not hang up on request {n} within {limit:?}; its reply: {:?}", shared.outcome(n));
        }
    }

    /// Waits, without limit, until `n` replies have been written to their end.
    pub fn wait_for_played(&self, n: usize) {
        self.server.shared.bell.wait(None, || self.own_times().len() >= n);
    }

    /// The stub's own time for each finished reply: from the request's last byte read to the reply's last byte written,
    /// scripted pauses included. A bench subtracts it.
    #[must_use]
    pub fn own_times(&self) -> Vec<Duration> {
        self.server.shared.own_times()
    }

    /// Adds a reply to the end of a queue. Fails the test when the script is a function.
    #[track_caller]
    pub fn push(&self, reply: Reply) {
        assert!(self.server.shared.push(reply), "only a stub with a queue takes more replies");
    }

    /// Replies of the queue that no request has taken yet.
    #[must_use]
    pub fn left(&self) -> usize {
        self.server.shared.left()
    }
}
