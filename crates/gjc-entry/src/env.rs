//! The world outside, as arguments: clock, ids, folders, variables. Made once, in the binary or in a test.

use crate::{SessionId, Timestamp};
use std::collections::BTreeMap;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A boxed future that may move between threads.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Time, passed in: wall time for what is written, monotone time for durations.
pub trait Clock: Send + Sync + 'static {
    /// Wall time. May jump.
    fn wall(&self) -> Timestamp;
    /// Monotone time. Never goes back.
    fn mono(&self) -> Instant;
    /// Completes after `duration` of monotone time.
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()>;
}

/// Where new ids come from.
pub trait Ids: Send + Sync + 'static {
    /// A new session id (UUIDv7).
    fn session(&self) -> SessionId;
    /// A new entry id for which `taken` is false.
    fn entry(&self, taken: &dyn Fn(u32) -> bool) -> u32;
}

/// The folders that gjc may use.
#[derive(Debug, Clone)]
pub struct Dirs {
    /// `~/.gjc/agent`, or `GJC_CODING_AGENT_DIR`.
    pub agent: PathBuf,
    /// The home folder.
    pub home: PathBuf,
    /// For temporary files.
    pub temp: PathBuf,
}

impl Dirs {
    /// Where sessions live.
    #[must_use]
    pub fn sessions(&self) -> PathBuf {
        self.agent.join("sessions")
    }

    /// Where blobs live.
    #[must_use]
    pub fn blobs(&self) -> PathBuf {
        self.agent.join("blobs")
    }
}

/// A copy of the environment variables, made at the start.
#[derive(Debug, Clone, Default)]
pub struct Vars(BTreeMap<String, String>);

impl Vars {
    /// From pairs of name and value.
    pub fn new(pairs: impl IntoIterator<Item = (String, String)>) -> Self {
        Self(pairs.into_iter().collect())
    }

    /// The value of a variable; an empty one counts as absent.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// All pairs, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

/// All of it.
#[derive(Clone)]
pub struct Env {
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// New ids.
    pub ids: Arc<dyn Ids>,
    /// Folders.
    pub dirs: Dirs,
    /// Environment variables.
    pub vars: Vars,
}
