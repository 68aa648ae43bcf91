//! The sandbox of `bash`: what a command may reach, from what a person said and where things are.
//!
//! Nothing here holds anybody back: that is the kernel's work, asked for through `gjc-process`. And nothing here trusts what
//! a command could have written: the workspace is found once, before the first command of a session.
//! The reasons stand in `docs/decisions/0011-home-except-secrets.md`.

mod doors;
mod grants;
pub(crate) mod secrets;
mod workspace;

use crate::work::count;
use gjc_entry::{Dirs, Vars};
use gjc_process::{Demand, LocalSockets, Network, Sandbox, Support};
use gjc_protocol::Refusal;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use tempfile::TempDir;

pub use secrets::{SECRETS, SecretPlace};
pub use workspace::Workspace;

/// How much of a sandbox commands get.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SandboxMode {
    /// What the kernel has.
    #[default]
    Auto,
    /// None.
    Off,
    /// All of it, or no command is run.
    Require,
}

/// What a person decided about commands, and what this system can hold of it.
#[derive(Debug, Clone)]
pub struct Confinement {
    /// How much of a sandbox.
    pub mode: SandboxMode,
    /// Whether commands reach the network.
    pub network: Network,
    /// Folders that commands may write to, beside the workspace.
    pub write: Vec<PathBuf>,
    /// Home, gjc's own folder, and where temporary folders are made.
    pub dirs: Dirs,
    /// What the kernel has.
    pub support: Support,
}

impl Confinement {
    /// What a person gets who says nothing: what the kernel has, with the network.
    #[must_use]
    pub fn auto(dirs: &Dirs) -> Self {
        Self {
            mode: SandboxMode::Auto,
            network: Network::Allowed,
            write: Vec::new(),
            dirs: dirs.clone(),
            support: Support::now(),
        }
    }

    /// Commands reach what their person reaches.
    #[must_use]
    pub fn off(dirs: &Dirs) -> Self {
        Self { mode: SandboxMode::Off, ..Self::auto(dirs) }
    }

    /// What a person should know before the first command, as sentences.
    #[must_use]
    pub fn notices(&self, cwd: &Path) -> Vec<String> {
        if self.mode == SandboxMode::Off {
            return Vec::new();
        }
        let essential = self.support.essential();
        let mut notices = Vec::new();
        if let Err(refusal) = self.required() {
            notices.push(refusal.sentence);
        } else if self.support.is_nothing() {
            notices.push(
                "commands run without a sandbox: this kernel has nothing to make one of (gjc doctor tells more)".into(),
            );
        } else {
            notices.extend(
                essential.iter().map(|lack| format!("the sandbox of commands is not whole: {}", lack.sentence())),
            );
        }
        let workspace = Workspace::of(cwd, &self.dirs.home);
        if self.support.landlock.is_err() {
            return notices;
        }
        if workspace.write.is_empty() {
            notices.push(format!(
                "{} is the home folder or holds it, so commands write to temporary files alone; work in a folder of the project (--cwd), or allow one with --sandbox-write",
                cwd.display()
            ));
        } else if self.divided(workspace.write.iter()).0.is_empty() {
            notices.push(format!(
                "{} is in the folder that gjc keeps for itself, so commands write to temporary files alone; work in another folder (--cwd)",
                cwd.display()
            ));
        }
        notices
    }

    /// Folders that a person named, without and with those in gjc's own folder. What stands there decides what a model may do,
    /// so no command writes there, whoever works in it; it may read there what its person works on.
    fn divided<'p>(&self, named: impl Iterator<Item = &'p PathBuf>) -> (Vec<PathBuf>, Vec<PathBuf>) {
        let guarded = secrets::own(&self.dirs);
        named.cloned().partition(|root| !guarded.iter().any(|own| root.starts_with(own)))
    }

    /// Refuses where all of a sandbox is required and the kernel lacks some of it.
    fn required(&self) -> Result<(), Refusal> {
        match self.support.essential().first() {
            Some(lack) if self.mode == SandboxMode::Require => Err(Refusal::new(
                "no_sandbox",
                format!("bash does not run: the sandbox is required, and {}", lack.sentence()),
            )
            .hint("gjc doctor tells what this system can hold; --sandbox auto uses what there is")),
            _ => Ok(()),
        }
    }
}

/// The sandbox of one command, and what its environment must say of it.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    pub(crate) sandbox: Sandbox,
    pub(crate) env: Vec<(OsString, OsString)>,
    /// What a model is told when something was refused; nothing where files are not guarded.
    pub(crate) told: Option<String>,
}

/// Makes the sandboxes of a session's commands.
#[derive(Debug)]
pub(crate) struct Guard {
    how: Confinement,
    /// Places of keys, and sockets, that variables name.
    secrets: Vec<PathBuf>,
    doors: Vec<PathBuf>,
    workspace: OnceLock<Workspace>,
    private: OnceLock<TempDir>,
}

impl Guard {
    pub(crate) fn new(how: Confinement, vars: &Vars) -> Self {
        Self {
            how,
            secrets: secrets::named(vars),
            doors: doors::named(vars),
            workspace: OnceLock::new(),
            private: OnceLock::new(),
        }
    }

    /// Whether files are guarded from commands.
    pub(crate) fn guards_files(&self) -> bool {
        self.how.mode != SandboxMode::Off && self.how.support.landlock.is_ok()
    }

    /// The sandbox of a command that begins now; `None` where it runs without one. Looks at folders, so it may block.
    pub(crate) fn cell(&self, cwd: &Path, artifacts: Option<&Path>) -> Result<Option<Cell>, Refusal> {
        if self.how.mode == SandboxMode::Off {
            return Ok(None);
        }
        self.how.required()?;
        if self.how.support.is_nothing() {
            return Ok(None);
        }
        let private = self.private()?;
        let workspace = self.workspace.get_or_init(|| Workspace::of(cwd, &self.how.dirs.home));
        let secrets = secrets::places(&self.how.dirs, &self.secrets);
        let (own, kept) = self.how.divided(workspace.write.iter().chain(&self.how.write));

        // What a person named (by working in it) is granted even where it lies among secrets; secrets within it are not.
        let granted = |roots: &[PathBuf]| -> Vec<PathBuf> {
            roots.iter().flat_map(|root| grants::all_but(root, &within(&secrets, root))).collect()
        };
        let mut write = granted(&own);
        write.extend([private.to_path_buf(), PathBuf::from(SHARED_MEMORY)]);
        let mut read = granted(&kept);
        read.extend(artifacts.map(Path::to_path_buf));
        read.extend(self.skills(&secrets));
        let mut hidden = secrets;
        hidden.push("/dev".into());
        read.extend(grants::all_but(Path::new("/"), &hidden));

        let reachable = doors::reachable(&self.how.dirs.home, &self.doors, &write);
        let local = if reachable.is_empty() || self.how.support.covers_local_sockets() {
            LocalSockets::All
        } else {
            LocalSockets::Pairs
        };
        let demand = if self.how.mode == SandboxMode::Require { Demand::Whole } else { Demand::WhatThereIs };
        let told = self.guards_files().then(|| told(&own, self.how.network, local));
        let devices = DEVICES.iter().map(PathBuf::from).collect();
        let sandbox = Sandbox { read, write, devices, network: self.how.network, local, demand };
        Ok(Some(Cell { sandbox, env: environment(private), told }))
    }

    /// The person's skills are read although they lie in gjc's own folder: they may hold programs for commands to run.
    fn skills(&self, secrets: &[PathBuf]) -> Vec<PathBuf> {
        let skills = fs::canonicalize(self.how.dirs.agent.join("skills"));
        skills.map_or_else(|_| Vec::new(), |skills| grants::all_but(&skills, &within(secrets, &skills)))
    }

    /// The session's own temporary folder: nobody else may look into it, and it goes with the session.
    fn private(&self) -> Result<&Path, Refusal> {
        if self.private.get().is_none() {
            let only_ours = fs::Permissions::from_mode(0o700);
            let made = tempfile::Builder::new()
                .prefix("gjc-")
                .permissions(only_ours)
                .tempdir_in(&self.how.dirs.temp)
                .map_err(|error| {
                Refusal::new(
                    "no_sandbox",
                    format!(
                        "bash does not run: no temporary folder can be made in {}: {error}",
                        self.how.dirs.temp.display()
                    ),
                )
                .hint("make room, or set TMPDIR to another folder")
            })?;
            // Two commands at once: the second folder is removed again right here.
            let _ = self.private.set(made);
        }
        self.private.get().map(TempDir::path).ok_or_else(|| Refusal::new("internal", "the temporary folder is gone"))
    }
}

/// The secrets below a folder.
fn within(secrets: &[PathBuf], root: &Path) -> Vec<PathBuf> {
    secrets.iter().filter(|secret| *secret != root && secret.starts_with(root)).cloned().collect()
}

/// Named semaphores and shared memory, which Python's `multiprocessing` and others cannot do without. It is memory, gone
/// with the machine's next start.
const SHARED_MEMORY: &str = "/dev/shm";

/// Devices that are no hardware. Terminals are not among them: a grant of `/dev/pts` is one of the person's own terminals,
/// what is typed there included.
const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];

/// Variables that name a folder for temporary files.
const TEMPORARY: &[&str] = &["TMPDIR", "TMP", "TEMP", "TEMPDIR"];

/// Caches of tools that refuse to work, or grumble, when theirs cannot be written. What is in the person's own cache is left
/// there: it would be written to from inside and believed outside.
const CACHES: &[(&str, &str)] = &[
    ("CCACHE_DIR", "ccache"),
    ("GOCACHE", "go-build"),
    ("PIP_CACHE_DIR", "pip"),
    ("UV_CACHE_DIR", "uv"),
    ("YARN_CACHE_FOLDER", "yarn"),
    ("npm_config_cache", "npm"),
];

fn environment(private: &Path) -> Vec<(OsString, OsString)> {
    let temporary = TEMPORARY.iter().map(|name| ((*name).into(), private.into()));
    let caches = CACHES.iter().map(|(name, cache)| ((*name).into(), private.join("cache").join(cache).into()));
    temporary.chain(caches).collect()
}

/// Variables that lead to programs outside, or name what is hidden: they would only make tools try and fail.
const DOORS_VARS: &[&str] = &[
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "DOCKER_HOST",
    "GPG_AGENT_INFO",
    "SSH_AGENT_PID",
    "SSH_AUTH_SOCK",
    "STY",
    "TMUX",
    "TMUX_PANE",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
];

/// Whether a variable stays outside of a sandbox.
pub(crate) fn stays_outside(name: &str) -> bool {
    DOORS_VARS.contains(&name)
}

fn told(own: &[PathBuf], network: Network, local: LocalSockets) -> String {
    let folders: Vec<_> = own.iter().map(|path| path.display().to_string()).collect();
    let mut told = match folders.as_slice() {
        [] => "in the sandbox commands write only below $TMPDIR".to_string(),
        folders => format!("in the sandbox commands write only below {} and $TMPDIR", folders.join(", ")),
    };
    told.push_str(", and the home folder's keys and top list cannot be read");
    if network == Network::Denied {
        told.push_str("; there is no network");
    }
    if local == LocalSockets::Pairs {
        told.push_str("; local sockets are closed");
    }
    told.push_str(". A person can allow another folder with --sandbox-write");
    told
}

/// The sandbox that a command of a folder would get, for whoever wants to try it; `None` where it would get none.
///
/// # Errors
/// A refusal, where one is required and cannot be had.
pub fn sandbox_of(how: &Confinement, vars: &Vars, cwd: &Path) -> Result<Option<Sandbox>, Refusal> {
    Ok(Guard::new(how.clone(), vars).cell(cwd, None)?.map(|cell| cell.sandbox))
}

/// A sandbox in a person's words, for `gjc doctor`.
#[must_use]
pub fn describe(how: &Confinement, cwd: &Path, vars: &Vars) -> String {
    let (own, _) = how.divided(Workspace::of(cwd, &how.dirs.home).write.iter());
    let hidden = secrets::places(&how.dirs, &secrets::named(vars)).into_iter().filter(|place| place.exists()).count();
    let write = if own.is_empty() {
        "temporary files alone".into()
    } else {
        own.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
    };
    let doors = doors::reachable(&how.dirs.home, &doors::named(vars), &own);
    let local = match doors.as_slice() {
        [first, ..] if !how.support.covers_local_sockets() => {
            format!("; local sockets are closed, because {} could be reached", first.display())
        }
        _ => String::new(),
    };
    format!(
        "commands write to {write}; of the home folder {} with keys {} hidden{local}",
        count(hidden, "place"),
        if hidden == 1 { "is" } else { "are" }
    )
}
