//! What is written, when, and where it is cut.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;

use super::serve::Bell;

/// How a connection is closed in the middle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// FIN: the client reads an end of file.
    Clean,
    /// RST: the client reads "connection reset by peer", and bytes not yet read may be lost.
    Reset,
}

/// One act of a reply.
#[derive(Debug, Clone)]
pub enum Piece {
    /// Write these bytes at once (one chunk under [`Framing::Chunked`]).
    Bytes(Vec<u8>),
    /// Write nothing for this long.
    Wait(Duration),
    /// Write nothing until the test opens the gate.
    Gate(Gate),
    /// Close the connection; what follows is never written.
    Close(Cut),
}

/// How the client learns where the body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// `content-length` of the whole body as it was before any cut: a cut is visible to the client.
    Length,
    /// `transfer-encoding: chunked`: a cut is visible to the client.
    Chunked,
    /// The end of the connection is the end of the body: a clean cut looks like a complete answer.
    UntilClose,
    /// No head is written: the pieces are the bytes on the wire, and the connection ends after them.
    Raw,
}

/// A scripted reply.
#[derive(Debug, Clone)]
pub struct Reply {
    /// HTTP status.
    pub status: u16,
    /// Headers; those of the framing and `date` are not added when they are here.
    pub headers: Vec<(String, String)>,
    /// How the body's end is told.
    pub framing: Framing,
    /// The body's acts in order.
    pub pieces: Vec<Piece>,
    /// The length announced under [`Framing::Length`] when the pieces no longer have it.
    announced: Option<usize>,
}

impl Reply {
    /// A reply with a body of known length.
    #[must_use]
    pub fn new(status: u16, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        Self {
            status,
            headers: vec![("content-type".into(), content_type.into())],
            framing: Framing::Length,
            pieces: vec![Piece::Bytes(body.into())],
            announced: None,
        }
    }

    /// A text.
    #[must_use]
    pub fn text(status: u16, body: &str) -> Self {
        Self::new(status, "text/plain; charset=utf-8", body)
    }

    /// A JSON document.
    #[must_use]
    pub fn json(status: u16, body: &Value) -> Self {
        Self::new(status, "application/json", body.to_string())
    }

    /// A stream of server-sent events, chunked.
    #[must_use]
    pub fn sse(body: impl Into<Vec<u8>>) -> Self {
        Self::new(200, "text/event-stream; charset=utf-8", body)
            .header("cache-control", "no-cache")
            .framing(Framing::Chunked)
    }

    /// Bytes on the wire as they are, head included (or no head at all).
    #[must_use]
    pub fn raw(pieces: Vec<Piece>) -> Self {
        Self { status: 0, headers: vec![], framing: Framing::Raw, pieces, announced: None }
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Changes how the end of the body is told.
    #[must_use]
    pub fn framing(mut self, framing: Framing) -> Self {
        self.framing = framing;
        self
    }

    /// Adds an act at the end.
    #[must_use]
    pub fn then(mut self, piece: Piece) -> Self {
        self.pieces.push(piece);
        self
    }

    /// Closes the connection cleanly after `n` bytes of the body.
    #[must_use]
    pub fn cut_at(self, n: usize) -> Self {
        self.close_at(n, Cut::Clean)
    }

    /// Resets the connection after `n` bytes of the body.
    #[must_use]
    pub fn reset_at(self, n: usize) -> Self {
        self.close_at(n, Cut::Reset)
    }

    /// Stops after `n` bytes of the body until the gate is opened.
    #[must_use]
    pub fn gate_at(mut self, n: usize, gate: &Gate) -> Self {
        let at = self.piece_at(n);
        self.pieces.insert(at, Piece::Gate(gate.clone()));
        self
    }

    /// Pauses after `n` bytes of the body.
    #[must_use]
    pub fn wait_at(mut self, n: usize, pause: Duration) -> Self {
        let at = self.piece_at(n);
        self.pieces.insert(at, Piece::Wait(pause));
        self
    }

    /// Writes (and flushes) the body in parts that begin at these offsets.
    #[must_use]
    pub fn split_at(mut self, offsets: &[usize]) -> Self {
        for &n in offsets {
            self.piece_at(n);
        }
        self
    }

    /// Writes (and flushes) every byte alone, with a pause before each but the first. Each is one write, with the head in
    /// a write of its own; the kernel may still hand several to one read of the client when the pause is zero.
    #[must_use]
    pub fn every_byte(mut self, pause: Duration) -> Self {
        let mut out = Vec::new();
        for piece in self.pieces.drain(..) {
            let Piece::Bytes(bytes) = piece else {
                out.push(piece);
                continue;
            };
            for byte in bytes {
                if !pause.is_zero() && !out.is_empty() {
                    out.push(Piece::Wait(pause));
                }
                out.push(Piece::Bytes(vec![byte]));
            }
        }
        self.pieces = out;
        self
    }

    /// Bytes of the body that the pieces hold, whether a cut precedes them or not.
    #[must_use]
    pub fn body_len(&self) -> usize {
        self.pieces.iter().map(|p| if let Piece::Bytes(b) = p { b.len() } else { 0 }).sum()
    }

    fn close_at(mut self, n: usize, cut: Cut) -> Self {
        self.announced.get_or_insert(self.body_len());
        let at = self.piece_at(n);
        self.pieces.truncate(at);
        self.pieces.push(Piece::Close(cut));
        self
    }

    /// The place in `pieces` just behind the first `n` bytes; divides a piece when the place lies inside one.
    fn piece_at(&mut self, n: usize) -> usize {
        let mut left = n;
        for at in 0..self.pieces.len() {
            if left == 0 {
                return at;
            }
            let Piece::Bytes(bytes) = &mut self.pieces[at] else { continue };
            if left < bytes.len() {
                let rest = bytes.split_off(left);
                self.pieces.insert(at + 1, Piece::Bytes(rest));
                return at + 1;
            }
            left -= bytes.len();
        }
        self.pieces.len()
    }

    /// Status line and headers; empty under [`Framing::Raw`].
    pub(super) fn head(&self) -> Vec<u8> {
        let framing = match self.framing {
            Framing::Raw => return vec![],
            Framing::Length => ("content-length", self.announced.unwrap_or(self.body_len()).to_string()),
            Framing::Chunked => ("transfer-encoding", "chunked".into()),
            Framing::UntilClose => ("connection", "close".into()),
        };
        let mut head = format!("HTTP/1.1 {} {}\r\n", self.status, reason(self.status));
        for (k, v) in &self.headers {
            head += &format!("{k}: {v}\r\n");
        }
        if !self.headers.iter().any(|(k, _)| k.eq_ignore_ascii_case(framing.0)) {
            head += &format!("{}: {}\r\n", framing.0, framing.1);
        }
        (head + "\r\n").into_bytes()
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        404 => "Not Found",
        413 => "Payload Too Large",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        _ => "Scripted",
    }
}

/// A place in a reply that only the test can pass. Clones are the same gate.
#[derive(Debug, Clone, Default)]
pub struct Gate(Arc<GateState>);

#[derive(Debug, Default)]
struct GateState {
    open: AtomicBool,
    bells: Mutex<Vec<Arc<Bell>>>,
}

impl Gate {
    /// A closed gate.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets every reply through that stands here or comes later.
    pub fn open(&self) {
        self.0.open.store(true, Ordering::SeqCst);
        for bell in self.0.bells.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            bell.ring();
        }
    }

    /// Whether it was opened.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.0.open.load(Ordering::SeqCst)
    }

    /// Makes opening ring this bell. Called before the wait looks at the gate, so that no opening is missed.
    pub(super) fn tell(&self, bell: &Arc<Bell>) {
        self.0.bells.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(bell));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(r: &Reply) -> Vec<Vec<u8>> {
        r.pieces.iter().filter_map(|p| if let Piece::Bytes(b) = p { Some(b.clone()) } else { None }).collect()
    }

    #[test]
    fn a_split_may_fall_inside_a_letter() {
        let r = Reply::text(200, "가나").split_at(&[1, 3, 3, 99]);
        assert_eq!(bytes(&r), [&"가".as_bytes()[..1], &"가".as_bytes()[1..], "나".as_bytes()]);
    }

    #[test]
    fn a_cut_keeps_the_announced_length() {
        let r = Reply::text(200, "abcdef").cut_at(2);
        assert_eq!(bytes(&r), [b"ab"]);
        assert!(matches!(r.pieces.last(), Some(Piece::Close(Cut::Clean))));
        assert!(String::from_utf8_lossy(&r.head()).contains("content-length: 6\r\n"));
    }

    #[test]
    fn every_byte_stands_alone() {
        let r = Reply::text(200, "abc").every_byte(Duration::from_millis(1));
        assert_eq!(bytes(&r), [b"a", b"b", b"c"]);
        assert_eq!(r.pieces.len(), 5);
    }
}
