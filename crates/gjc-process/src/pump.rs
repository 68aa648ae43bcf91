//! Moves bytes in and out of a program while something else is waited for.

use std::{future::pending, pin::pin, time::Duration};

use bytes::Bytes;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::unix::pipe,
    select,
    sync::mpsc,
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;

use crate::capture::{Capture, Captured, whole_len};

/// One read. Also the size of a pipe, so one read empties it.
const CHUNK: usize = 64 * 1024;
/// What a pipe holds at most unless the machine's limits were raised (`/proc/sys/fs/pipe-max-size`).
const PIPE_MAX: usize = 1024 * 1024;

/// Our ends of the program's pipes.
pub(crate) struct Ends {
    pub(crate) output: pipe::Receiver,
    pub(crate) input: Option<(pipe::Sender, Vec<u8>)>,
}

pub(crate) struct Pump {
    output: Option<pipe::Receiver>,
    input: Option<Feed>,
    buf: Box<[u8]>,
    capture: Capture,
    progress: Option<Progress>,
}

struct Feed {
    to: pipe::Sender,
    bytes: Vec<u8>,
    at: usize,
}

enum Moved {
    Out(usize),
    OutEnd,
    In(usize),
    InEnd,
}

impl Pump {
    pub(crate) fn new(ends: Ends, capture: Capture, progress: Option<mpsc::Sender<Bytes>>) -> Self {
        Self {
            output: Some(ends.output),
            input: ends.input.map(|(to, bytes)| Feed { to, bytes, at: 0 }),
            buf: vec![0; CHUNK].into(),
            capture,
            progress: progress.map(|to| Progress { to, carry: Vec::new() }),
        }
    }

    /// Pumps until `event` comes.
    pub(crate) async fn until<T>(&mut self, event: impl Future<Output = T>) -> T {
        let mut event = pin!(event);
        loop {
            select! {
                came = &mut event => return came,
                moved = self.io() => self.take(moved).await,
            }
        }
    }

    /// Pumps until the pipe ends, has been silent for `linger`, has been written to for ten times that, or
    /// nobody wants to wait any longer.
    pub(crate) async fn drain(&mut self, linger: Duration, cancel: &CancellationToken) {
        // An instant cannot be arbitrarily far away.
        let linger = linger.min(Duration::from_secs(24 * 3600));
        let mut silent = Instant::now() + linger;
        let end = Instant::now() + linger * 10;
        while self.output.is_some() {
            select! {
                () = cancel.cancelled() => return,
                () = sleep_until(silent.min(end)) => return,
                moved = self.io() => {
                    if matches!(moved, Moved::Out(_)) {
                        silent = Instant::now() + linger;
                    }
                    self.take(moved).await;
                }
            }
        }
    }

    /// Takes what is in the pipe without waiting. The pipe is asked directly: the reactor may not have heard
    /// yet of what a process wrote just before it died. True if somebody can still write into it.
    pub(crate) async fn rest(&mut self) -> bool {
        let mut taken = 0;
        while let Some(output) = &self.output
            && taken < PIPE_MAX
        {
            match rustix::io::read(output, &mut self.buf[..]) {
                Ok(0) => self.output = None,
                Err(_) => break,
                Ok(len) => {
                    taken += len;
                    self.take(Moved::Out(len)).await;
                }
            }
        }
        self.output.is_some()
    }

    pub(crate) async fn finish(mut self) -> Captured {
        if let Some(progress) = &mut self.progress {
            progress.flush();
        }
        self.capture.finish().await
    }

    /// The next movement. Safe to drop: bytes are moved only in the poll that returns.
    async fn io(&mut self) -> Moved {
        let read = async {
            match &mut self.output {
                Some(output) => output.read(&mut self.buf).await,
                None => pending().await,
            }
        };
        let write = async {
            match &mut self.input {
                Some(feed) => feed.to.write(&feed.bytes[feed.at..]).await,
                None => pending().await,
            }
        };
        select! {
            read = read => match read { Ok(0) | Err(_) => Moved::OutEnd, Ok(len) => Moved::Out(len) },
            // A program that closes its input early (`head -1`) has read what it wanted.
            wrote = write => match wrote { Ok(0) | Err(_) => Moved::InEnd, Ok(len) => Moved::In(len) },
        }
    }

    async fn take(&mut self, moved: Moved) {
        match moved {
            Moved::Out(len) => {
                if let Some(progress) = &mut self.progress {
                    progress.offer(&self.buf[..len]);
                }
                self.capture.push(&self.buf[..len]).await;
            }
            Moved::OutEnd => self.output = None,
            Moved::In(len) => {
                if let Some(feed) = &mut self.input {
                    feed.at += len;
                    if feed.at == feed.bytes.len() {
                        self.input = None;
                    }
                }
            }
            Moved::InEnd => self.input = None,
        }
    }
}

/// The live view. Never waits: a face that does not read must not stop a build.
struct Progress {
    to: mpsc::Sender<Bytes>,
    /// The beginning of a code point whose end has not been read yet.
    carry: Vec<u8>,
}

impl Progress {
    fn offer(&mut self, chunk: &[u8]) {
        self.carry.extend_from_slice(chunk);
        let rest = self.carry.split_off(whole_len(&self.carry));
        let whole = std::mem::replace(&mut self.carry, rest);
        self.send(whole);
    }

    fn flush(&mut self) {
        let rest = std::mem::take(&mut self.carry);
        self.send(rest);
    }

    fn send(&self, bytes: Vec<u8>) {
        if !bytes.is_empty() {
            let _ = self.to.try_send(bytes.into());
        }
    }
}
