//! The threads of the stub: one that accepts, and two a connection, so that a client that hangs up is noticed while its
//! reply stands at a gate.

use std::io::Write;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::http::Requests;
use super::reply::{Cut, Framing, Piece, Reply};
use super::{Plan, Recorded};

/// Wakes whoever waits for anything of this stub; each waiter looks again at what it waits for.
#[derive(Debug, Default)]
pub(super) struct Bell {
    lock: Mutex<()>,
    rung: Condvar,
}

impl Bell {
    /// Must not be called with [`State`] locked: a waiter holds the bell's lock while it looks at the state.
    pub(super) fn ring(&self) {
        drop(lock(&self.lock));
        self.rung.notify_all();
    }

    /// Waits until `done` holds; false when `limit` passed first.
    pub(super) fn wait(&self, limit: Option<Duration>, mut done: impl FnMut() -> bool) -> bool {
        let until = limit.map(|d| Instant::now() + d);
        let mut held = lock(&self.lock);
        loop {
            if done() {
                return true;
            }
            let Some(until) = until else {
                held = self.rung.wait(held).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            held = self.rung.wait_timeout(held, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// How far a reply came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Playing,
    /// All that was scripted has been written (a scripted cut included).
    Played(Duration),
    /// The client went away, or the stub was stopped, before that.
    HungUp,
}

struct State {
    plan: Plan,
    seen: Vec<(Recorded, Outcome)>,
    open: Vec<Weak<TcpStream>>,
    stopped: bool,
}

pub(super) struct Shared {
    pub(super) bell: Arc<Bell>,
    state: Mutex<State>,
}

impl Shared {
    pub(super) fn requests(&self) -> Vec<Recorded> {
        lock(&self.state).seen.iter().map(|(r, _)| r.clone()).collect()
    }

    pub(super) fn outcome(&self, n: usize) -> Option<Outcome> {
        lock(&self.state).seen.get(n).map(|(_, o)| *o)
    }

    pub(super) fn own_times(&self) -> Vec<Duration> {
        let state = lock(&self.state);
        state.seen.iter().filter_map(|(_, o)| if let Outcome::Played(d) = o { Some(*d) } else { None }).collect()
    }

    pub(super) fn push(&self, reply: Reply) -> bool {
        let Plan::Queue(queue) = &mut lock(&self.state).plan else { return false };
        queue.push_back(reply);
        true
    }

    pub(super) fn left(&self) -> usize {
        let Plan::Queue(queue) = &lock(&self.state).plan else { return 0 };
        queue.len()
    }

    fn stopped(&self) -> bool {
        lock(&self.state).stopped
    }

    /// Notes the request and takes its reply in one step, so that the queue's order is the order of arrival.
    fn admit(&self, request: Recorded) -> (usize, Reply) {
        let mut state = lock(&self.state);
        let n = state.seen.len();
        state.seen.push((request.clone(), Outcome::Playing));
        let answer = match &mut state.plan {
            Plan::Queue(queue) => Err(queue.pop_front()),
            Plan::Answer(f) => Ok(Arc::clone(f)),
        };
        drop(state);
        self.bell.ring();
        let reply = match answer {
            Ok(f) => f(&request, n),
            Err(Some(reply)) => reply,
            Err(None) => Reply::text(500, &format!("the stub's script has no reply for request {n}")),
        };
        (n, reply)
    }

    fn settle(&self, n: usize, outcome: Outcome) {
        lock(&self.state).seen[n].1 = outcome;
        self.bell.ring();
    }
}

pub(super) struct Server {
    pub(super) addr: SocketAddr,
    pub(super) shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

impl Server {
    pub(super) fn start(port: u16, plan: Plan) -> std::io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        let addr = listener.local_addr()?;
        let state = State { plan, seen: vec![], open: vec![], stopped: false };
        let shared = Arc::new(Shared { bell: Arc::default(), state: Mutex::new(state) });
        let accepting = thread::spawn({
            let shared = Arc::clone(&shared);
            move || accept(&listener, &shared)
        });
        Ok(Self { addr, shared, accepting: Some(accepting) })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let open = {
            let mut state = lock(&self.shared.state);
            state.stopped = true;
            std::mem::take(&mut state.open)
        };
        for stream in open.iter().filter_map(Weak::upgrade) {
            let _ = stream.shutdown(Shutdown::Both);
        }
        self.shared.bell.ring();
        // `accept` has no other way to be woken.
        let woken = TcpStream::connect(self.addr).is_ok();
        if let Some(accepting) = self.accepting.take().filter(|_| woken) {
            let _ = accepting.join();
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    let mut connections = Vec::new();
    for (number, stream) in listener.incoming().enumerate() {
        let Ok(stream) = stream else { continue };
        let stream = Arc::new(stream);
        {
            let mut state = lock(&shared.state);
            if state.stopped {
                break;
            }
            state.open.retain(|s| s.strong_count() > 0);
            state.open.push(Arc::downgrade(&stream));
        }
        let shared = Arc::clone(shared);
        connections.push(thread::spawn(move || connection(stream, number, &shared)));
    }
    for c in connections {
        let _ = c.join();
    }
}

/// Plays replies; a second thread reads requests and notices the end of the client.
fn connection(stream: Arc<TcpStream>, number: usize, shared: &Arc<Shared>) {
    let _ = stream.set_nodelay(true);
    let gone = Arc::new(AtomicBool::new(false));
    let (send, arrived) = mpsc::channel();
    let reader = thread::spawn({
        let (stream, gone, bell) = (Arc::clone(&stream), Arc::clone(&gone), Arc::clone(&shared.bell));
        move || {
            let mut requests = Requests::new(&*stream);
            while let Ok(Some(request)) = requests.next() {
                if send.send((request, Instant::now())).is_err() {
                    break;
                }
            }
            gone.store(true, Ordering::SeqCst);
            bell.ring();
        }
    });
    for (q, at) in arrived {
        let recorded =
            Recorded { method: q.method, path: q.path, headers: q.headers, body: q.body, at, connection: number };
        let (n, reply) = shared.admit(recorded);
        let end = play(&reply, &stream, shared, &gone);
        shared.settle(n, if end == End::Gone { Outcome::HungUp } else { Outcome::Played(at.elapsed()) });
        match end {
            End::Kept => continue,
            End::Closed(Cut::Clean) | End::Gone => {}
            End::Closed(Cut::Reset) => {
                // With linger 0 the last close sends RST; a plain shutdown(Both) would send FIN first.
                let _ = rustix::net::sockopt::set_socket_linger(&*stream, Some(Duration::ZERO));
                let _ = stream.shutdown(Shutdown::Read);
                break;
            }
        }
        let _ = stream.shutdown(Shutdown::Both);
        break;
    }
    // The reader holds the socket too: only after it has ended does the drop of `stream` close it.
    let _ = reader.join();
}

#[derive(PartialEq, Eq)]
enum End {
    Kept,
    Closed(Cut),
    Gone,
}

fn play(reply: &Reply, mut stream: &TcpStream, shared: &Shared, gone: &AtomicBool) -> End {
    let left = || gone.load(Ordering::SeqCst) || shared.stopped();
    if stream.write_all(&reply.head()).is_err() {
        return End::Gone;
    }
    for piece in &reply.pieces {
        match piece {
            Piece::Bytes(bytes) if bytes.is_empty() => {}
            Piece::Bytes(bytes) => {
                let written = if reply.framing == Framing::Chunked {
                    let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
                    chunk.extend_from_slice(bytes);
                    chunk.extend_from_slice(b"\r\n");
                    stream.write_all(&chunk)
                } else {
                    stream.write_all(bytes)
                };
                if written.is_err() {
                    return End::Gone;
                }
            }
            Piece::Wait(pause) => {
                if shared.bell.wait(Some(*pause), left) {
                    return End::Gone;
                }
            }
            Piece::Gate(gate) => {
                gate.tell(&shared.bell);
                shared.bell.wait(None, || gate.is_open() || left());
                if !gate.is_open() {
                    return End::Gone;
                }
            }
            Piece::Close(cut) => return End::Closed(*cut),
        }
    }
    match reply.framing {
        Framing::Length => End::Kept,
        Framing::Chunked if stream.write_all(b"0\r\n\r\n").is_ok() => End::Kept,
        Framing::Chunked => End::Gone,
        Framing::UntilClose | Framing::Raw => End::Closed(Cut::Clean),
    }
}

fn lock<T>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    m.lock().unwrap_or_else(PoisonError::into_inner)
}
