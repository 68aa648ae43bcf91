//! What a child writes, kept whole, and readable line by line while it still runs.

use std::io::Read;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// One output of a child.
#[derive(Debug, Clone, Default)]
pub(super) struct Capture(Arc<Kept>);

#[derive(Debug, Default)]
struct Kept {
    state: Mutex<State>,
    grew: Condvar,
}

#[derive(Debug, Default)]
struct State {
    bytes: Vec<u8>,
    /// Behind the last line that `next_line` gave.
    given: usize,
    ended: bool,
}

/// What `next_line` found.
pub(super) enum Next {
    Line(String),
    Ended,
    TooLate,
}

impl Capture {
    pub(super) fn read(mut from: impl Read + Send + 'static) -> Self {
        let capture = Self::default();
        let kept = Arc::clone(&capture.0);
        thread::spawn(move || {
            let mut buf = [0; 16 * 1024];
            loop {
                let n = from.read(&mut buf).unwrap_or(0);
                let mut state = kept.state.lock().unwrap_or_else(PoisonError::into_inner);
                state.bytes.extend_from_slice(&buf[..n]);
                state.ended = n == 0;
                kept.grew.notify_all();
                if n == 0 {
                    return;
                }
            }
        });
        capture
    }

    /// The next whole line without its newline (at the end also a last line without one).
    pub(super) fn next_line(&self, until: Instant) -> Next {
        let found = self.wait(until, |s| {
            let rest = &s.bytes[s.given..];
            let (line, skip) = match rest.iter().position(|&b| b == b'\n') {
                Some(at) => (&rest[..at], at + 1),
                None if s.ended && !rest.is_empty() => (rest, rest.len()),
                None => return s.ended.then_some(Next::Ended),
            };
            let line = String::from_utf8_lossy(line).into_owned();
            s.given += skip;
            Some(Next::Line(line))
        });
        found.unwrap_or(Next::TooLate)
    }

    /// Waits for the end of the output: false when it did not come.
    pub(super) fn wait_for_end(&self, until: Instant) -> bool {
        self.wait(until, |s| s.ended.then_some(())).is_some()
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner).bytes.clone()
    }

    fn wait<T>(&self, until: Instant, mut look: impl FnMut(&mut State) -> Option<T>) -> Option<T> {
        let mut state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(found) = look(&mut state) {
                return Some(found);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left == Duration::ZERO {
                return None;
            }
            state = self.0.grew.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}
