//! A built binary, run in a home folder of its own.
//!
//! ```no_run
//! # fn env(_: &str) -> &'static str { "" }
//! use testkit::harness::Home;
//! let home = Home::new();
//! let out = home.run(env("CARGO_BIN_EXE_gjc")).args(["-p", "안녕"]).output();
//! assert_eq!(out.code(), Some(0), "{out}");
//! ```
//!
//! A run has a hard time limit: at its end the whole process group is killed and the test fails with both outputs. After
//! every run, and when the [`Home`] goes, all session files below it must have grown only (see [`crate::grown`]).

mod capture;
mod running;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tempfile::TempDir;

use crate::git;
use crate::grown::Watch;
pub use running::{Output, Running};

/// Variables of the test's own environment that a binary under test may see: where programs are, and where coverage and
/// backtraces go. All others are cleared, so that no key, proxy or setting of a developer decides a test.
const ALLOWED: &[&str] = &["PATH", "LLVM_PROFILE_FILE", "RUST_BACKTRACE"];

/// Time a run may take unless it says otherwise.
const LIMIT: Duration = Duration::from_secs(60);

/// A temporary home, a working folder and a temporary folder, removed together.
#[derive(Debug)]
pub struct Home {
    /// Held for its drop.
    _root: TempDir,
    real: PathBuf,
    watch: Mutex<Watch>,
}

impl Home {
    /// Makes the folders `home/`, `work/` and `tmp/`.
    #[must_use]
    #[track_caller]
    pub fn new() -> Self {
        let root = tempfile::Builder::new().prefix("testkit-home-").tempdir().expect("a temporary folder can be made");
        // Programs print real paths; /tmp may be a link.
        let real = root.path().canonicalize().expect("the folder was just made");
        for name in ["home", "project", "tmp"] {
            fs::create_dir(real.join(name)).expect("a folder can be made in it");
        }
        Self { _root: root, watch: Mutex::new(Watch::new(&real)), real }
    }

    /// `HOME`.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.real.join("home")
    }

    /// `GJC_CODING_AGENT_DIR`: settings, sessions and all else the binary keeps. Not made here.
    #[must_use]
    pub fn agent_dir(&self) -> PathBuf {
        self.real.join("home/.gjc/agent")
    }

    /// The folder runs start in.
    #[must_use]
    pub fn work(&self) -> PathBuf {
        self.real.join("project")
    }

    /// The folder `TMPDIR`.
    #[must_use]
    pub fn tmp(&self) -> PathBuf {
        self.real.join("tmp")
    }

    /// Writes a file at a path relative to the folder that holds `home/`, `work/` and `tmp/`.
    #[track_caller]
    pub fn write(&self, path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.real.join(path);
        let folder = path.parent().expect("a path in the home has a folder");
        if let Err(e) = fs::create_dir_all(folder).and_then(|()| fs::write(&path, bytes)) {
            panic!("{} could not be written: {e}", path.display());
        }
        path
    }

    /// A run of this binary, to be filled in and started.
    pub fn run(&self, bin: impl AsRef<OsStr>) -> Run<'_> {
        let mut env: BTreeMap<OsString, OsString> = BTreeMap::new();
        env.extend(ALLOWED.iter().filter_map(|k| Some(((*k).into(), std::env::var_os(k)?))));
        env.extend(git::env(&self.path()).into_iter().map(|(k, v)| (k.into(), v.into())));
        env.insert("GIT_CEILING_DIRECTORIES".into(), self.real.clone().into());
        env.insert("GJC_CODING_AGENT_DIR".into(), self.agent_dir().into());
        env.insert("TMPDIR".into(), self.tmp().into());
        env.insert("LANG".into(), "C.UTF-8".into());
        env.insert("TZ".into(), "UTC".into());
        Run { home: self, bin: bin.as_ref().into(), args: vec![], env, cwd: self.work(), stdin: None, limit: LIMIT }
    }

    /// Looks at all session files now; fails the test when one did anything but grow.
    #[track_caller]
    pub fn check_grown(&self) {
        self.watch.lock().unwrap_or_else(PoisonError::into_inner).check();
    }

    /// Tells the watch of a session file that the test itself is about to damage, move or delete, or that the run is meant
    /// to delete.
    pub fn forget(&self, path: &Path) {
        self.watch.lock().unwrap_or_else(PoisonError::into_inner).forget(path);
    }
}

impl Default for Home {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.check_grown();
        }
    }
}

/// A run being described.
#[derive(Debug, Clone)]
#[must_use]
pub struct Run<'h> {
    home: &'h Home,
    bin: OsString,
    args: Vec<OsString>,
    env: BTreeMap<OsString, OsString>,
    cwd: PathBuf,
    stdin: Option<Vec<u8>>,
    limit: Duration,
}

impl<'h> Run<'h> {
    /// Adds an argument.
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().into());
        self
    }

    /// Adds arguments.
    pub fn args(mut self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.args.extend(args.into_iter().map(|a| a.as_ref().into()));
        self
    }

    /// Sets a variable.
    pub fn env(mut self, key: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.env.insert(key.as_ref().into(), value.as_ref().into());
        self
    }

    /// Takes a variable away.
    pub fn env_remove(mut self, key: impl AsRef<OsStr>) -> Self {
        self.env.remove(key.as_ref());
        self
    }

    /// Starts in this folder instead of [`Home::work`].
    pub fn cwd(mut self, dir: impl Into<PathBuf>) -> Self {
        self.cwd = dir.into();
        self
    }

    /// Gives these bytes on stdin, then its end. Unset, [`Run::output`] gives an empty stdin.
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = Some(bytes.into());
        self
    }

    /// The time after which the run is killed and the test fails (60 s unless set).
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Runs to the end.
    #[track_caller]
    pub fn output(self) -> Output {
        let stdin = self.stdin.clone();
        let mut running = self.spawn();
        match stdin {
            Some(bytes) => running.feed(bytes),
            None => running.close_stdin(),
        }
        running.wait()
    }

    /// Starts it and talks to it; stdin stays open, and bytes of [`Run::stdin`] are not sent.
    #[track_caller]
    pub fn spawn(self) -> Running<'h> {
        use std::os::unix::process::CommandExt;
        let mut command = Command::new(&self.bin);
        command.args(&self.args).env_clear().envs(&self.env).current_dir(&self.cwd);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        Running::start(self.home, command, self.limit)
    }
}
