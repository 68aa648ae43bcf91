//! A started child: its process group, its outputs, its end.

use std::fmt;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::{ChildStdin, Command, ExitStatus};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid};

use super::Home;
use super::capture::{Capture, Next};
use crate::sys;

/// How a run ended and what it left.
#[derive(Debug, Clone)]
pub struct Output {
    /// As the system tells it.
    pub status: ExitStatus,
    /// The signal that ended it, if one did.
    pub signal: Option<i32>,
    /// All of stdout.
    pub stdout: Vec<u8>,
    /// All of stderr.
    pub stderr: Vec<u8>,
    /// Peak resident memory in bytes: never less than the child's own, but the kernel carries the test process's peak at
    /// the start over into the child's count. "At most N" holds if it passes; it may only fail wrongly in a test process
    /// that is itself larger than N.
    pub max_rss: u64,
    /// From the start to the end of the process.
    pub wall: Duration,
}

impl Output {
    /// The exit code; `None` after a signal.
    #[must_use]
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// stdout as text, bytes that are not UTF-8 replaced.
    #[must_use]
    pub fn out(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// stderr as text, bytes that are not UTF-8 replaced.
    #[must_use]
    pub fn err(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    /// Gives itself when the code was 0; fails the test with both outputs otherwise.
    #[track_caller]
    #[allow(clippy::must_use_candidate, clippy::return_self_not_must_use, reason = "often called for its check alone")]
    pub fn ok(self) -> Self {
        assert!(self.status.success(), "the run failed: {self}");
        self
    }
}

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} after {:?}\n{}", self.status, self.wall, both(&self.stdout, &self.stderr))
    }
}

/// A child under the time limit of its run. Dropped, its process group is killed.
#[derive(Debug)]
pub struct Running<'h> {
    home: &'h Home,
    pid: Pid,
    stdin: Option<ChildStdin>,
    stdout: Capture,
    stderr: Capture,
    ended: Receiver<Instant>,
    started: Instant,
    until: Instant,
    reaped: bool,
}

impl<'h> Running<'h> {
    #[track_caller]
    pub(super) fn start(home: &'h Home, mut command: Command, limit: Duration) -> Self {
        // Session files that the test has put there since the last look belong to the watch as well.
        home.check_grown();
        let started = Instant::now();
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(e) => panic!("{} could not be started: {e}", command.get_program().display()),
        };
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("a child has a positive pid");
        let (tell, ended) = mpsc::channel();
        thread::spawn(move || {
            // NOWAIT leaves the zombie, so that its pid (and group) stays ours until `reap`.
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            while matches!(waitid(WaitId::Pid(pid), options), Err(rustix::io::Errno::INTR)) {}
            let _ = tell.send(Instant::now());
        });
        Self {
            home,
            pid,
            stdin: child.stdin.take(),
            stdout: Capture::read(child.stdout.take().expect("stdout is piped")),
            stderr: Capture::read(child.stderr.take().expect("stderr is piped")),
            ended,
            started,
            until: started + limit,
            reaped: false,
        }
    }

    /// Its process id, which is its group's as well.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// Writes a line and its newline to stdin. A child that has closed its stdin is no failure here: its end will tell.
    pub fn send(&mut self, line: &str) {
        if let Some(stdin) = &mut self.stdin {
            let _ = stdin.write_all(format!("{line}\n").as_bytes()).and_then(|()| stdin.flush());
        }
    }

    /// Ends stdin.
    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Writes all of this from a thread of its own, then ends stdin: a child that does not read cannot hold up the test.
    pub(super) fn feed(&mut self, bytes: Vec<u8>) {
        if let Some(mut stdin) = self.stdin.take() {
            thread::spawn(move || drop(stdin.write_all(&bytes)));
        }
    }

    /// Reads lines of stdout until one fits and gives it; lines are given once. Fails the test when stdout ends first or
    /// the time limit passes.
    #[track_caller]
    pub fn wait_for(&mut self, mut fits: impl FnMut(&str) -> bool) -> String {
        loop {
            match self.stdout.next_line(self.until) {
                Next::Line(line) if fits(&line) => return line,
                Next::Line(_) => {}
                Next::Ended => self.fail("stdout ended before the line that was waited for"),
                Next::TooLate => self.fail("the line that was waited for did not come in time"),
            }
        }
    }

    /// `SIGTERM` to the child alone.
    pub fn terminate(&self) {
        let _ = kill_process(self.pid, Signal::TERM);
    }

    /// `SIGINT` to the child alone.
    pub fn interrupt(&self) {
        let _ = kill_process(self.pid, Signal::INT);
    }

    /// `SIGHUP` to the process, as when its terminal is closed.
    pub fn hang_up(&self) {
        let _ = kill_process(self.pid, Signal::HUP);
    }

    /// `SIGKILL` to the whole process group, and its end.
    #[track_caller]
    pub fn kill_9(self) -> Output {
        self.kill_group();
        self.wait()
    }

    /// Waits for the end of the process and of both outputs; stdin is closed first. What is left of its process group is
    /// killed. Fails the test when the time limit passes.
    #[track_caller]
    pub fn wait(mut self) -> Output {
        self.stdin = None;
        let left = self.until.saturating_duration_since(Instant::now());
        let Ok(end) = self.ended.recv_timeout(left) else { self.fail("the run took longer than its time limit") };
        if !(self.stdout.wait_for_end(self.until) && self.stderr.wait_for_end(self.until)) {
            self.fail("the process has ended, but something it started still holds its output open");
        }
        self.kill_group();
        let reaped = self.reap().unwrap_or_else(|e| panic!("the end of the child could not be read: {e}"));
        self.home.check_grown();
        let status = ExitStatus::from_raw(reaped.raw_status);
        Output {
            status,
            signal: status.signal(),
            stdout: self.stdout.bytes(),
            stderr: self.stderr.bytes(),
            max_rss: reaped.max_rss,
            wall: end - self.started,
        }
    }

    #[track_caller]
    fn fail(&mut self, why: &str) -> ! {
        self.kill_group();
        let _ = self.reap();
        panic!("{why} ({:?})\n{}", self.started.elapsed(), both(&self.stdout.bytes(), &self.stderr.bytes()));
    }

    /// Only called before `reap`: until then the pid cannot belong to anyone else.
    fn kill_group(&self) {
        let _ = kill_process_group(self.pid, Signal::KILL);
    }

    fn reap(&mut self) -> std::io::Result<sys::Reaped> {
        self.reaped = true;
        sys::reap(self.pid)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if !self.reaped {
            self.kill_group();
            let _ = self.reap();
        }
    }
}

fn both(stdout: &[u8], stderr: &[u8]) -> String {
    let (out, err) = (String::from_utf8_lossy(stdout), String::from_utf8_lossy(stderr));
    format!("--- stdout\n{out}\n--- stderr\n{err}")
}
