//! The world outside, made once: clock, ids, folders, variables.

use crate::failure::Failure;
use crate::providers::KEYS;
use gjc_entry::{BoxFuture, Clock, Dirs, Env, Ids, SessionId, Timestamp, Vars};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

struct SystemClock {
    /// What is added to the time of day.
    ahead: i64,
}

impl Clock for SystemClock {
    fn wall(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX).saturating_add(self.ahead))
    }

    fn mono(&self) -> Instant {
        Instant::now()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(duration))
    }
}

struct RandomIds;

impl Ids for RandomIds {
    fn session(&self) -> SessionId {
        SessionId::new(&uuid::Uuid::now_v7().to_string()).unwrap_or_else(|_| unreachable!("a UUID is a session id"))
    }

    fn entry(&self, taken: &dyn Fn(u32) -> bool) -> u32 {
        loop {
            let id = (uuid::Uuid::new_v4().as_u128() >> 96) as u32;
            if !taken(id) {
                return id;
            }
        }
    }
}

/// Reads the environment.
pub(crate) fn env() -> Result<Env, Failure> {
    let vars = Vars::new(std::env::vars_os().filter_map(|(name, value)| {
        // A variable that is no text is of no use to gjc; what tools run still gets a sound environment.
        Some((name.into_string().ok()?, value.into_string().ok()?))
    }));
    wipe_keys();
    let home = vars.get("HOME").map(PathBuf::from);
    let agent = match (vars.get("GJC_CODING_AGENT_DIR"), &home) {
        (Some(dir), _) => std::path::absolute(dir).map_err(|error| {
            Failure::usage(format!("GJC_CODING_AGENT_DIR cannot be used: {error}")).hint("set it to an absolute path")
        })?,
        (None, Some(home)) => home.join(".gjc/agent"),
        (None, None) => {
            return Err(Failure::usage("there is no home folder")
                .hint("set HOME, or GJC_CODING_AGENT_DIR to the folder to use"));
        }
    };
    let temp = vars.get("TMPDIR").map_or_else(|| PathBuf::from("/tmp"), PathBuf::from);
    let dirs = Dirs { home: home.unwrap_or_else(|| agent.clone()), agent, temp };
    Ok(Env { clock: Arc::new(SystemClock { ahead: ahead() }), ids: Arc::new(RandomIds), dirs, vars })
}

/// Overwrites the keys in the process's own environment, once they are copied: `/proc/<pid>/environ` shows that memory to
/// every process of the same person, the commands that a model runs among them.
fn wipe_keys() {
    for name in KEYS {
        let Ok(name) = std::ffi::CString::new(*name) else { continue };
        // SAFETY: called from `main` before any other thread exists, so nobody else reads or changes the environment;
        // `getenv` gives null or a NUL-terminated text within the environment block, which is writable, and only the bytes
        // before its NUL are written.
        unsafe {
            let value = libc::getenv(name.as_ptr());
            if !value.is_null() {
                std::ptr::write_bytes(value, b'*', libc::strlen(value));
            }
        }
    }
}

/// Milliseconds that tests put the time of day ahead (or back) by with `GJC_TEST_WALL_MS`, so that one of them can see the
/// day change. Only in builds with failpoints: in others nothing can move the clock.
fn ahead() -> i64 {
    #[cfg(feature = "failpoints")]
    if let Some(ahead) = std::env::var("GJC_TEST_WALL_MS").ok().and_then(|text| text.parse().ok()) {
        return ahead;
    }
    0
}

/// Sets the plan of failpoints from `GJC_FP`.
#[cfg(feature = "failpoints")]
pub(crate) fn set_failpoints() -> Result<(), String> {
    match std::env::var("GJC_FP") {
        Ok(plan) if !plan.is_empty() => gjc_fp::set_plan(&plan).map_err(|error| error.to_string()),
        _ => Ok(()),
    }
}

/// Writes how many points were passed to the file `GJC_FP_COUNT`, so that a test knows which of them it may ask for.
#[cfg(feature = "failpoints")]
pub(crate) fn count_failpoints() -> std::io::Result<()> {
    match std::env::var_os("GJC_FP_COUNT") {
        Some(file) => std::fs::write(file, gjc_fp::passed().to_string()),
        None => Ok(()),
    }
}

/// A runtime: one worker for the session, while the calling thread is the face. A face that cannot write never holds the
/// session up.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("gjc-session")
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format!("no threads can be started: {error}")))
}

/// The real path of a folder.
pub(crate) fn real_dir(dir: &Path) -> Result<PathBuf, Failure> {
    match std::fs::canonicalize(dir) {
        Ok(real) if real.is_dir() => Ok(real),
        Ok(real) => Err(Failure::usage(format!("{} is no folder", real.display()))),
        Err(error) => Err(Failure::usage(format!("the folder {} cannot be used: {error}", dir.display()))),
    }
}
