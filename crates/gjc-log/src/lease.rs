//! A lease beside the session, where the file system refuses locks (some network file systems).
//!
//! `<file>.lease` names its owner and bears a beat that is renewed. Who waits for it takes it over once the beat has stood
//! still for long enough by the waiter's own monotonic clock (clocks of two machines are never compared), or at once when
//! the owner was a process of this machine and is dead. A lease is weaker than a lock: a writer that was held up for longer
//! than that finds a foreign token before its next write, and stops.

use crate::fs::{Fs, FsFile, Open, Owner};
use crate::tail::append_all;
use crate::writer::LogEnv;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often a beat is renewed.
const RENEW: Duration = Duration::from_secs(5);
/// After so long without a beat the owner is taken to be gone.
const STALE: Duration = Duration::from_secs(30);

/// What keeps other writers away from a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lock {
    /// A lock of the kernel.
    Kernel,
    /// A lease file that is renewed.
    Lease,
}

impl Lock {
    /// What a person should know about it.
    #[must_use]
    pub fn notice(self) -> Option<&'static str> {
        match self {
            Self::Kernel => None,
            Self::Lease => Some(
                "this file system refuses locks: a lease beside the session, renewed every few seconds, keeps other \
                 processes away; do not open the session on two machines at once",
            ),
        }
    }
}

/// Where the lease of a session is.
pub(crate) fn path_of(session: &Path) -> PathBuf {
    beside(session, ".lease")
}

/// Whether an error says that there are no locks here, and not that this one failed.
pub(crate) fn refuses_locks(error: &io::Error) -> bool {
    // EOPNOTSUPP and ENOTSUP are one number on Linux.
    error.kind() == io::ErrorKind::Unsupported
        || matches!(Errno::from_io_error(error), Some(Errno::NOLCK | Errno::OPNOTSUPP | Errno::NOSYS))
}

/// What stands in the file.
#[derive(Serialize, Deserialize)]
struct Paper {
    #[serde(flatten)]
    owner: Owner,
    token: String,
    /// Last, and of fixed width: renewed in place, so that a full disk does not end the lease.
    beat: String,
}

/// Why a lease could not be taken.
pub(crate) enum Taken {
    By(Option<Owner>),
    Io(io::Error),
}

/// What a waiter has seen of somebody else's lease.
#[derive(Default)]
pub(crate) struct Seen(Option<(Vec<u8>, Instant)>);

impl Seen {
    /// Whether the lease has stood still for too long.
    fn stale(&mut self, content: &[u8], now: Instant) -> bool {
        match &self.0 {
            Some((seen, since)) if seen == content => now.duration_since(*since) >= STALE,
            _ => {
                self.0 = Some((content.into(), now));
                false
            }
        }
    }
}

/// A lease of ours; given back when it is dropped.
pub(crate) struct Lease<F: Fs> {
    held: Arc<Held<F>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

struct Held<F: Fs> {
    fs: Arc<F>,
    path: PathBuf,
    file: F::File,
    token: String,
    /// Where the beat stands in the file.
    beat_at: u64,
    ended: Mutex<bool>,
    end: Condvar,
}

impl<F: Fs> Lease<F> {
    pub(crate) fn take(env: &LogEnv<F>, session: &Path, seen: &mut Seen) -> Result<Self, Taken> {
        let (fs, path) = (&env.fs, path_of(session));
        let token: String = (0..4).map(|_| format!("{:08x}", env.ids.entry(&|_| false))).collect();
        // Twice, because the one in the way may be gone, or be moved out of it, meanwhile.
        for _ in 0..2 {
            match fs.open(&path, Open::CreateNew) {
                Ok(file) => return Self::begin(fs, path, file, token).map_err(Taken::Io),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(Taken::Io(error)),
            }
            let (content, inode) = match read(&**fs, &path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                read => read.map_err(Taken::Io)?,
            };
            // Half written, or not by us: only time tells.
            let owner = serde_json::from_slice(&content).ok().map(|paper: Paper| paper.owner);
            let over = owner.as_ref().is_some_and(|owner| fs.is_dead(owner)) || seen.stale(&content, env.clock.mono());
            if !over || !clear(&**fs, &path, inode, &token).map_err(Taken::Io)? {
                return Err(Taken::By(owner));
            }
        }
        Err(Taken::By(None))
    }

    fn begin(fs: &Arc<F>, path: PathBuf, file: F::File, token: String) -> io::Result<Self> {
        let paper = Paper { owner: fs.owner(), token: token.clone(), beat: beat(0) };
        let mut line = serde_json::to_vec(&paper)?;
        line.push(b'\n');
        if let Err(error) = append_all(&file, &line, 0) {
            let _ = fs.unlink(&path);
            return Err(error);
        }
        let beat_at = (line.len() - paper.beat.len() - "\"}\n".len()) as u64;
        let (ended, end) = (Mutex::new(false), Condvar::new());
        let held = Arc::new(Held { fs: Arc::clone(fs), path, file, token, beat_at, ended, end });
        let renewing = Arc::clone(&held);
        let thread = std::thread::Builder::new().name("gjc-lease".into()).spawn(move || renewing.renew())?;
        Ok(Self { held, thread: Some(thread) })
    }

    /// Whether nobody has taken it over.
    pub(crate) fn is_ours(&self) -> io::Result<bool> {
        self.held.is_ours()
    }
}

impl<F: Fs> Held<F> {
    fn is_ours(&self) -> io::Result<bool> {
        match read(&*self.fs, &self.path) {
            Ok((content, _)) => {
                Ok(serde_json::from_slice(&content).is_ok_and(|paper: Paper| paper.token == self.token))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// A thread of its own: the one that syncs may be held up by the very disk that is in trouble.
    fn renew(&self) {
        for count in 1_u64.. {
            let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
            let waited = self.end.wait_timeout_while(ended, RENEW, |ended| !*ended);
            if *waited.unwrap_or_else(PoisonError::into_inner).0 {
                return;
            }
            // A beat that fails is tried again with the next one; the writer finds out when it is too late.
            let _ = self.file.rewrite_at(beat(count).as_bytes(), self.beat_at);
        }
    }
}

impl<F: Fs> Drop for Lease<F> {
    fn drop(&mut self) {
        *self.held.ended.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.held.end.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        if self.held.is_ours().unwrap_or(false) {
            let _ = self.held.fs.unlink(&self.held.path);
        }
    }
}

fn beat(count: u64) -> String {
    format!("{:010}", count % 10_000_000_000)
}

/// Moves a dead lease out of the way. Not by removing its name: between the look and the removal another waiter may have
/// put its own there, and that is given back. `false`: somebody was faster.
fn clear<F: Fs>(fs: &F, path: &Path, inode: (u64, u64), token: &str) -> io::Result<bool> {
    let aside = beside(path, &format!(".{token}"));
    match fs.rename_new(path, &aside) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        renamed => renamed?,
    }
    let moved = fs.stat(&aside)?;
    if (moved.dev, moved.inode) == inode {
        fs.unlink(&aside)?;
        return Ok(true);
    }
    fs.rename_new(&aside, path)?;
    Ok(false)
}

fn read<F: Fs>(fs: &F, path: &Path) -> io::Result<(Vec<u8>, (u64, u64))> {
    // Opened anew each time: that is when a network file system looks again.
    let file = fs.open(path, Open::Read)?;
    let stat = file.stat()?;
    // A lease has a few hundred bytes; what is longer is none.
    let mut content = vec![0; usize::try_from(stat.len).unwrap_or(usize::MAX).min(4096)];
    let got = file.read_at(&mut content, 0)?;
    content.truncate(got);
    Ok((content, (stat.dev, stat.inode)))
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}
