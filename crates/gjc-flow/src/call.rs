//! What a call reads and where it writes, and who makes it.

use gjc_entry::{Label, Level, SessionId};
use serde_json::value::RawValue;

use crate::Digest;

/// A planned call of a tool: nothing has happened yet, nothing secret has been read.
#[derive(Debug, Clone)]
pub struct Call {
    /// The tool.
    pub tool: String,
    /// Its input as the model wrote it.
    pub input: Box<RawValue>,
    /// What it will read.
    pub sources: Vec<SourceRef>,
    /// Where its effects land.
    pub sinks: Vec<SinkRef>,
}

/// Something that a call reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceRef {
    /// For people: a path, a host, a program.
    pub what: String,
    /// The label of what comes from there.
    pub label: Label,
}

/// Somewhere a call writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SinkRef {
    /// For people: a path, a host, a program.
    pub what: String,
    /// The highest level that may go there.
    pub level: Level,
    /// The hash of exactly what goes there.
    pub digest: Digest,
}

/// Who calls. Only a [`Runtime`] makes one, and it cannot be read from JSON: no model names its own identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    session: SessionId,
}

impl Caller {
    /// The calling session.
    #[must_use]
    pub fn session(&self) -> &SessionId {
        &self.session
    }
}

/// The authority over callers. Made where sessions are run, and nowhere else (`clippy.toml`, `cargo xtask layers`).
#[derive(Debug)]
pub struct Runtime(());

impl Runtime {
    /// The runtime. Disallowed outside the actor, the binary and tests; no `Default`, which would be a way round that.
    #[must_use]
    #[allow(clippy::new_without_default, reason = "see above")]
    pub fn new() -> Self {
        Self(())
    }

    /// A session's identity as a caller.
    #[must_use]
    pub fn caller(&self, session: &SessionId) -> Caller {
        Caller { session: session.clone() }
    }
}
