//! The two system calls for which there is no safe door.

use std::io;
use std::mem::MaybeUninit;

use rustix::process::Pid;

/// How a child ended, and the most memory it held.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reaped {
    pub(crate) raw_status: i32,
    /// Peak resident set in bytes.
    pub(crate) max_rss: u64,
}

/// Takes a child that has ended out of the process table; waits when it has not.
pub(crate) fn reap(pid: Pid) -> io::Result<Reaped> {
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    loop {
        // SAFETY: both pointers are to live, writable values of the types wait4 fills in; the pid is a child of ours that
        // nobody else waits for.
        let got = unsafe { libc::wait4(pid.as_raw_nonzero().get(), &raw mut status, 0, usage.as_mut_ptr()) };
        if got >= 0 {
            break;
        }
        let e = io::Error::last_os_error();
        if e.kind() != io::ErrorKind::Interrupted {
            return Err(e);
        }
    }
    // SAFETY: the value was zeroed, which is a valid rusage, and wait4 has filled it in.
    let usage = unsafe { usage.assume_init() };
    // Linux counts kilobytes, macOS bytes.
    let unit = if cfg!(target_os = "macos") { 1 } else { 1024 };
    Ok(Reaped { raw_status: status, max_rss: u64::try_from(usage.ru_maxrss).unwrap_or(0) * unit })
}

/// SIGINT and SIGTERM, held back so that a program can tell something before it ends.
#[derive(Clone, Copy)]
pub struct StopSignals(libc::sigset_t);

impl StopSignals {
    /// Holds both signals back in this thread and in those it starts from here on: call it first in `main`.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn block() -> io::Result<Self> {
        let mut set = MaybeUninit::<libc::sigset_t>::zeroed();
        // SAFETY: sigemptyset initialises the set, the calls behind it only read or change an initialised set, and all
        // pointers are to a local.
        let (set, refused) = unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            libc::sigaddset(set.as_mut_ptr(), libc::SIGINT);
            libc::sigaddset(set.as_mut_ptr(), libc::SIGTERM);
            let set = set.assume_init();
            (set, libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()))
        };
        if refused == 0 { Ok(Self(set)) } else { Err(io::Error::from_raw_os_error(refused)) }
    }

    /// Waits for one of them.
    pub fn wait(&self) {
        let mut signal = 0;
        // SAFETY: the set is initialised, its signals are blocked, and the pointers are to live values.
        unsafe { libc::sigwait(&raw const self.0, &raw mut signal) };
    }

    /// Sends SIGTERM to this process: wakes [`StopSignals::wait`] from another thread.
    pub fn raise(&self) {
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::TERM);
    }
}
