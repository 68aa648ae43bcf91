//! A program and everything it started, as one thing that can be signalled, waited for and buried.
//!
//! The root is the leader of a session of its own. Its zombie is kept until the very end, because as long as
//! it is there the kernel gives its number to nobody else, so a signal to the group cannot hit a stranger.
//! All other processes are held by pidfd for the same reason.

use std::{
    fs, io,
    os::{fd::OwnedFd, unix::process::CommandExt},
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::Duration,
};

use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal, setsid};
use tokio::{
    io::{Interest, unix::AsyncFd},
    net::unix::pipe,
    time::sleep,
};

use crate::{
    Errors, Spawn, SpawnError, Stdin, Support, program,
    pump::Ends,
    sandbox::{Fence, REFUSED, SandboxError},
};

pub(crate) struct Tree {
    /// `None` once it has been reaped or handed to whoever will.
    child: Option<Child>,
    root: AsyncFd<OwnedFd>,
    /// Number of the root, of its group and of its session.
    pid: Pid,
}

impl Tree {
    /// Starts the program. When this returns, it has been executed (not only forked).
    pub(crate) fn start(spawn: &Spawn) -> Result<(Self, Ends), SpawnError> {
        let fence = match &spawn.sandbox {
            Some(sandbox) => {
                Some(Fence::build(sandbox, &Support::now()).map_err(|why| SpawnError::sandbox(spawn, why))?)
            }
            None => None,
        };
        Self::try_start(spawn, fence).map_err(|source| match source.raw_os_error() {
            Some(REFUSED) => SpawnError::sandbox(spawn, SandboxError::Entering),
            _ => SpawnError::explain(spawn, source),
        })
    }

    fn try_start(spawn: &Spawn, fence: Option<Fence>) -> io::Result<(Self, Ends)> {
        let (reader, writer) = io::pipe()?;
        let output = pipe::Receiver::from_owned_fd(reader.into())?;
        let input = match &spawn.stdin {
            Stdin::Bytes(bytes) if !bytes.is_empty() => Some(bytes.clone()),
            Stdin::Null | Stdin::Bytes(_) => None,
        };
        let mut command = Command::new(program::find(spawn)?);
        command
            .arg0(&spawn.program)
            .args(&spawn.args)
            .current_dir(&spawn.cwd)
            .env_clear()
            .envs(spawn.env.iter().map(|(name, value)| (name, value)))
            .stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() })
            .stdout(writer.try_clone()?)
            .stderr(match spawn.errors {
                Errors::WithOutput => Stdio::from(writer),
                Errors::Dropped => Stdio::null(),
            });
        // SAFETY: `detach` runs between fork and exec, where only async-signal-safe calls are allowed; it
        // makes system calls, allocates nothing and takes no lock.
        unsafe { command.pre_exec(detach) };
        if let Some(fence) = fence {
            // SAFETY: as above; `enter` was made for this place. It is the last to run, so nothing that it forbids is needed
            // any more but the exec itself.
            unsafe { command.pre_exec(move || fence.enter()) };
        }
        let child = command.spawn()?;
        // The command owns our copies of the writing end; with them open the pipe would never end.
        drop(command);
        let (tree, stdin) = Self::adopt(child)?;
        let input = match (stdin, input) {
            (Some(fd), Some(bytes)) => Some((pipe::Sender::from_owned_fd(fd)?, bytes)),
            _ => None,
        };
        Ok((tree, Ends { output, input }))
    }

    fn adopt(mut child: Child) -> io::Result<(Self, Option<OwnedFd>)> {
        let pid = Pid::from_child(&child);
        let stdin = child.stdin.take().map(OwnedFd::from);
        match pidfd_open(pid, PidfdFlags::empty()).map_err(io::Error::from).and_then(watch) {
            Ok(root) => Ok((Self { child: Some(child), root, pid }, stdin)),
            Err(error) => {
                let _ = kill_process_group(pid, Signal::KILL);
                bury(child);
                Err(error)
            }
        }
    }

    /// Waits until the root has ended. It stays a zombie.
    pub(crate) async fn exited(&self) {
        // Fails only when the runtime shuts down, and then nobody polls us again.
        let _ = self.root.readable().await;
    }

    /// Waits until all of the tree has ended.
    pub(crate) async fn gone(&self) {
        self.exited().await;
        loop {
            let left = self.members();
            if left.is_empty() {
                return;
            }
            for member in left {
                member.exited().await;
            }
        }
    }

    /// Kills all of the tree and waits until it is dead; true if anything but the root was alive. In rounds,
    /// because a member outside the root's group may fork while we look for it.
    pub(crate) async fn kill(&self) -> bool {
        let mut found = false;
        loop {
            let left = self.members();
            let _ = kill_process_group(self.pid, Signal::KILL);
            if left.is_empty() {
                break;
            }
            found = true;
            for member in &left {
                let _ = pidfd_send_signal(&member.fd, Signal::KILL);
            }
            for member in left {
                member.exited().await;
            }
        }
        self.exited().await;
        found
    }

    /// Signals every process of the tree once: the root's group in one go, so that no fork slips through,
    /// then the groups a shell with job control made for its jobs.
    pub(crate) fn signal(&self, signal: Signal) {
        let outside: Vec<_> = self.members().into_iter().filter(|member| member.group != self.pid).collect();
        let _ = kill_process_group(self.pid, signal);
        for member in outside {
            let _ = pidfd_send_signal(member.fd, signal);
        }
    }

    /// Takes the root's status and lets its number go. `None` if it has not ended.
    pub(crate) fn reap(mut self) -> io::Result<Option<ExitStatus>> {
        let status = match &mut self.child {
            Some(child) => child.try_wait()?,
            None => None,
        };
        if status.is_some() {
            self.child = None;
        }
        Ok(status)
    }

    /// The living processes of the session without its root. Reads one small file for each process of the
    /// machine (some 10 µs each); there is no cheaper way to find orphans.
    fn members(&self) -> Vec<Member> {
        let Ok(listing) = fs::read_dir("/proc") else { return Vec::new() };
        listing
            .filter_map(|entry| Pid::from_raw(entry.ok()?.file_name().to_str()?.parse().ok()?))
            .filter(|pid| *pid != self.pid)
            .filter_map(|pid| {
                self.group_of_member(pid)?;
                let fd = pidfd_open(pid, PidfdFlags::empty()).ok()?;
                // Again: between the two the number may have got a new owner. Now the fd holds it.
                Some(Member { group: self.group_of_member(pid)?, fd })
            })
            .collect()
    }

    /// The group of a living process of this session; `None` for all others.
    fn group_of_member(&self, pid: Pid) -> Option<Pid> {
        let stat = fs::read(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
        let (state, group, session) = parse_stat(&stat)?;
        let alive = !matches!(state, b'Z' | b'X' | b'x');
        if alive && session == self.pid.as_raw_nonzero().get() { Pid::from_raw(group) } else { None }
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        if let Some(child) = self.child.take() {
            self.signal(Signal::KILL);
            bury(child);
        }
    }
}

/// A living process of the tree. The pidfd keeps meaning this process, whatever becomes of its number.
struct Member {
    fd: OwnedFd,
    group: Pid,
}

impl Member {
    async fn exited(self) {
        match watch(self.fd) {
            Ok(fd) => drop(fd.readable().await),
            // Out of watches: look again a little later.
            Err(_) => sleep(Duration::from_millis(5)).await,
        }
    }
}

/// What the child does before it becomes the program.
///
/// A session of its own rather than only a group: a background group that asks the terminal for a password
/// is stopped by SIGTTIN and hangs, a process without a terminal gets an error and says so. Signals blocked
/// or ignored in us (`nohup`, `&` in a script, a thread that waits for them) would stay so across exec; the
/// standard library resets SIGPIPE only. Open files of a careless library must not reach the program either:
/// whoever holds a lock or a pipe by accident is a riddle for everybody else.
///
/// When we are killed, the program is killed too: nobody is there any more who could tell what it did.
fn detach() -> io::Result<()> {
    setsid()?;
    // SAFETY: a plain system call that concerns this process only; its failure leaves things as they were.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    for signal in 1..=64 {
        // SAFETY: no handler is installed; a number that cannot be reset gives an error we do not need.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    // SAFETY: sigemptyset initialises the set before it is used, and only this process is concerned.
    unsafe {
        let mut none = std::mem::MaybeUninit::uninit();
        libc::sigemptyset(none.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), std::ptr::null_mut());
    }
    // SAFETY: only marks descriptors of this process. Not closing them keeps the pipe on which the standard
    // library reports a failed exec. Old kernels refuse, then close-on-exec at opening is all there is.
    unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    Ok(())
}

/// Reaps a process that has been killed but may not be dead yet, without waiting for it here.
fn bury(mut child: Child) {
    if let Ok(None) = child.try_wait() {
        // Without a thread the zombie stays until this process ends; nothing better is left to try.
        let _ = thread::Builder::new().name("reaper".into()).spawn(move || child.wait());
    }
}

fn watch(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: the `AsyncFd` owns the descriptor and hands out no way to close or replace it.
    unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }.map_err(io::Error::from)
}

/// State, group and session from `/proc/<pid>/stat` (proc_pid_stat(5)). The name in brackets may hold
/// anything, brackets too, so the fields are counted from the last one.
fn parse_stat(stat: &[u8]) -> Option<(u8, i32, i32)> {
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    let mut fields = std::str::from_utf8(&stat[end + 1..]).ok()?.split_ascii_whitespace();
    let state = *fields.next()?.as_bytes().first()?;
    let group = fields.nth(1)?.parse().ok()?;
    let session = fields.next()?.parse().ok()?;
    Some((state, group, session))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_is_read_behind_the_last_bracket() {
        assert_eq!(parse_stat(b"7 (a) R 1 2 3) S 1 42 43 0 -1"), Some((b'S', 42, 43)));
        assert_eq!(parse_stat("7 (한글) Z 1 42 43 0".as_bytes()), Some((b'Z', 42, 43)));
        assert_eq!(parse_stat(b"7 (a) R 1"), None);
        assert_eq!(parse_stat(b""), None);
    }
}
