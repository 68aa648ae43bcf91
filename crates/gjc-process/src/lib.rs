//! Child processes: groups, time-outs, output caps, kill tree, sandbox.
//!
//! One door: [`run`] starts a program, moves its bytes, and does not return before the whole tree it
//! started is dead. The crate knows nothing of sessions, tools or labels, reads no environment variable and
//! no wall clock: what the program sees is exactly what [`Spawn`] says. Linux only (pidfd, `/proc`).
//!
//! **What never happens**: a program outlives the `run` that started it (finished, timed out, cancelled or
//! dropped); memory grows with the output; a slow or stuck reader of the progress holds a program up; a program that
//! was to run in a sandbox ([`Spawn::sandbox`]) runs outside of it.
//!
//! One way out of the tree remains: a process that makes a session of its own (`setsid`, a daemon). It is
//! not waited for and not killed, and it is reported ([`Finished::escaped`]) only while it holds the output. Closing that way takes
//! a pid namespace.

#![expect(
    clippy::disallowed_methods,
    reason = "the room where programs are started, and waited for by the machine's own clock"
)]

mod capture;
mod error;
mod program;
mod pump;
mod sandbox;
mod tree;

use std::{
    ffi::OsString,
    future::pending,
    path::{Path, PathBuf},
    process::ExitStatus,
    time::Duration,
};

use bytes::Bytes;
use rustix::process::Signal;
use tokio::{
    select,
    sync::mpsc,
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{capture::Capture, pump::Pump, tree::Tree};
pub use crate::{
    capture::{Captured, OutputCap},
    error::SpawnError,
    sandbox::{Demand, Lack, LocalSockets, Network, NoLandlock, Sandbox, SandboxError, Support},
};

/// How long a killed process may take to be gone before we stop waiting for it. Only a process stuck in the
/// kernel (a dead network disk) needs longer, and nothing we do makes that faster.
const KILL_WAIT: Duration = Duration::from_secs(2);

/// What to start and within which limits.
#[derive(Debug, Clone)]
pub struct Spawn {
    /// A path, or a bare name that is looked up in the `PATH` of [`Spawn::env`], in the entries that begin with `/`: no
    /// working folder decides which program a name means.
    pub program: OsString,
    /// The arguments, without the program's own name.
    pub args: Vec<OsString>,
    /// The working directory; it must exist.
    pub cwd: PathBuf,
    /// The complete environment. Nothing is inherited.
    pub env: Vec<(OsString, OsString)>,
    /// What the program reads on its standard input.
    pub stdin: Stdin,
    /// After this long the tree is ended and the result is [`Exit::TimedOut`]. `None`: no limit.
    pub timeout: Option<Duration>,
    /// Between SIGTERM and SIGKILL on time-out and cancel.
    pub grace: Duration,
    /// How long the pipe may stay silent after the main process has ended, while something it left behind
    /// still holds it. Ten times this is the limit for a left-over that keeps writing.
    pub linger: Duration,
    /// How much of the output stays in memory.
    pub cap: OutputCap,
    /// Where the whole output goes once it exceeds [`Spawn::cap`]: a new file (mode 0600, an existing one is
    /// never touched), created only then, folders included, with every byte from the first.
    pub spill: Option<PathBuf>,
    /// What the program, and all that it starts, may reach; `None`: whatever its user may.
    pub sandbox: Option<Sandbox>,
    /// Where its standard error goes.
    pub errors: Errors,
}

impl Spawn {
    /// `program` in `cwd` with an empty environment, no input, no time-out, 2 s grace, 200 ms linger, and the
    /// default [`OutputCap`].
    pub fn new(program: impl Into<OsString>, cwd: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            cwd: cwd.into(),
            env: Vec::new(),
            stdin: Stdin::Null,
            timeout: None,
            grace: Duration::from_secs(2),
            linger: Duration::from_millis(200),
            cap: OutputCap::default(),
            spill: None,
            sandbox: None,
            errors: Errors::default(),
        }
    }
}

/// Where the standard error of a program goes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Errors {
    /// Among its output, in the order of the writes.
    #[default]
    WithOutput,
    /// Nowhere: its output is read by us, and a warning would be taken for a part of it.
    Dropped,
}

/// The standard input of a program. It is never a terminal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Stdin {
    /// `/dev/null`.
    #[default]
    Null,
    /// These bytes, then end of file. A program that does not read them all is not an error.
    Bytes(Vec<u8>),
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// It exited by itself with this code (0–255).
    Code(i32),
    /// A signal that was not ours killed it.
    Signal(i32),
    /// [`Spawn::timeout`] passed and we ended it, whatever code it then chose.
    TimedOut,
    /// The token was cancelled and we ended it (or never started it).
    Cancelled,
}

/// The result of [`run`]. Nothing of the tree is alive any more, except what the kernel cannot kill and what
/// left the tree (see the crate's documentation).
#[derive(Debug, Clone)]
pub struct Finished {
    /// How the main process ended.
    pub exit: Exit,
    /// stdout and stderr in the order they arrived.
    pub output: Captured,
    /// From the call of [`run`] to the end, on tokio's clock.
    pub wall: Duration,
    /// True if other processes of the tree were still alive after the main one had ended and the grace was
    /// over (`server &` in a shell). They have been killed.
    pub left_running: bool,
    /// True if a process that left the tree (`setsid`) still holds the output. It lives on: nobody killed it.
    pub escaped: bool,
}

/// Starts a program and sees it through to its end.
///
/// The program gets a session of its own, so the terminal and its Ctrl-C are out of its reach; stdout and
/// stderr are one pipe, so their order is the order of the writes. On time-out or cancel the tree gets
/// SIGTERM, [`Spawn::grace`] later SIGKILL. After the main process has ended, whoever still holds the pipe
/// is waited for at most [`Spawn::linger`] of silence; then what is left is killed. Dropping the future kills
/// the tree at once.
///
/// `progress` receives the output as it comes, cut only between code points. It is a window, not a record: a
/// chunk that finds the channel full is left out there, never in [`Finished::output`].
///
/// Must be called within a tokio runtime that has I/O and time enabled.
///
/// # Errors
/// [`SpawnError`] if the program could not be started. Whatever happens after that is a [`Finished`].
pub async fn run(
    spawn: Spawn,
    cancel: CancellationToken,
    progress: Option<mpsc::Sender<Bytes>>,
) -> Result<Finished, SpawnError> {
    let began = Instant::now();
    if cancel.is_cancelled() {
        let output = Captured::default();
        return Ok(Finished {
            exit: Exit::Cancelled,
            output,
            wall: Duration::ZERO,
            left_running: false,
            escaped: false,
        });
    }
    let (tree, ends) = Tree::start(&spawn)?;
    let mut pump = Pump::new(ends, Capture::new(spawn.cap, spawn.spill), progress);

    let cut_short = pump
        .until(async {
            select! {
                biased;
                () = tree.exited() => None,
                () = cancel.cancelled() => Some(Exit::Cancelled),
                () = limit(spawn.timeout) => Some(Exit::TimedOut),
            }
        })
        .await;
    if cut_short.is_some() {
        tree.signal(Signal::TERM);
        // All of the tree gets the grace, not only its root: the shell dies at once, its test runner has
        // temporary directories to remove.
        let _ = pump.until(timeout(spawn.grace, tree.gone())).await;
    } else {
        pump.drain(spawn.linger, &cancel).await;
        // Who has just let go of the pipe is about to end: dying is not being left running.
        let _ = pump.until(timeout(spawn.linger.min(DYING), tree.gone())).await;
    }
    // Not dead in time counts as left running.
    let found = pump.until(timeout(KILL_WAIT, tree.kill())).await.unwrap_or(true);
    let held = pump.rest().await;

    let exit = match (tree.reap().map_err(|source| SpawnError::Lost { source })?, cut_short) {
        (_, Some(exit)) => exit,
        (Some(status), None) => exit_of(status),
        // Only a process the kernel cannot end gets here, and only after a cut.
        (None, None) => Exit::Signal(libc::SIGKILL),
    };
    let output = pump.finish().await;
    Ok(Finished { exit, output, wall: began.elapsed(), left_running: found, escaped: held })
}

/// Becomes a program: this process goes on as it, with its terminal, its number and all that it has open for others. Of `spawn`
/// only program, arguments, folder and environment count. Returns only when that failed.
#[must_use]
pub fn become_program(spawn: &Spawn) -> SpawnError {
    use std::os::unix::process::CommandExt;
    let failed = match program::find(spawn) {
        Ok(file) => std::process::Command::new(file)
            .arg0(&spawn.program)
            .args(&spawn.args)
            .current_dir(&spawn.cwd)
            .env_clear()
            .envs(spawn.env.iter().map(|(name, value)| (name, value)))
            .exec(),
        Err(failed) => failed,
    };
    SpawnError::explain(spawn, failed)
}

/// How long a process may take from closing its output to its end, under load.
const DYING: Duration = Duration::from_millis(200);

/// The number of the user whose rights this process has.
#[must_use]
pub fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Whether this process may write to a file, or connect to a socket, as far as permissions say.
#[must_use]
pub fn may_write(path: &Path) -> bool {
    let effective = rustix::fs::AtFlags::EACCESS;
    rustix::fs::accessat(rustix::fs::CWD, path, rustix::fs::Access::WRITE_OK, effective).is_ok()
}

async fn limit(timeout: Option<Duration>) {
    match timeout {
        Some(timeout) => sleep(timeout).await,
        None => pending().await,
    }
}

fn exit_of(status: ExitStatus) -> Exit {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, signal) => Exit::Signal(signal.unwrap_or(libc::SIGKILL)),
    }
}
