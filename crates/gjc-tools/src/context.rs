//! What a tool knows of its surroundings.

use crate::{Artifacts, Host, Jobs};
use gjc_entry::{Clock, Label, OpId};
use gjc_flow::{Caller, Digest, Redeem, Runtime};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Read-only looks at the session.
pub trait SessionView: Send + Sync + 'static {
    /// Its label at this moment.
    fn label(&self) -> Label;
}

/// Where a tool shows output while it runs. Never waits; what a slow reader misses is in the result.
#[derive(Debug, Clone)]
pub struct Progress(mpsc::UnboundedSender<String>);

impl Progress {
    /// A progress channel.
    #[must_use]
    pub fn new(to: mpsc::UnboundedSender<String>) -> Self {
        Self(to)
    }

    /// Shows text.
    pub fn show(&self, text: impl Into<String>) {
        // Nobody listens any more: the result still comes.
        let _ = self.0.send(text.into());
    }
}

/// What a call may use, whoever makes it.
#[derive(Clone)]
pub struct Surroundings {
    /// Fires when the call shall end.
    pub cancel: CancellationToken,
    /// The session.
    pub session: Arc<dyn SessionView>,
    /// Where permits are redeemed.
    pub redeem: Arc<dyn Redeem>,
    /// Who can ask a person.
    pub host: Arc<dyn Host>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Where relative paths begin.
    pub cwd: PathBuf,
    /// The person's home folder: no workspace, whatever lies in it.
    pub home: PathBuf,
    /// gjc's own folder: settings, what is trusted, sessions. No tool writes there.
    pub own: PathBuf,
    /// Where whole outputs are kept.
    pub artifacts: Artifacts,
    /// Where to show output meanwhile.
    pub progress: Progress,
    /// The session's background jobs.
    pub jobs: Arc<dyn Jobs>,
}

/// Everything a call may use, and who makes it. Only the runtime makes one: who calls is never read from a model's
/// arguments.
#[derive(Clone)]
pub struct ToolCtx {
    caller: Caller,
    op: OpId,
    basis: Option<Digest>,
    around: Surroundings,
}

impl ToolCtx {
    /// A context for one act. Disallowed outside the actor, the binary and tests.
    #[must_use]
    pub fn new(runtime: &Runtime, op: OpId, around: Surroundings) -> Self {
        Self { caller: runtime.caller(&op.session), op, basis: None, around }
    }

    /// The same act, bound to what it was allowed for ([`crate::Preview::basis`]).
    #[must_use]
    pub fn bound_to(self, basis: Option<Digest>) -> Self {
        Self { basis, ..self }
    }

    /// What was looked at before the call was allowed, if anything was: the tool acts only if that is still so.
    #[must_use]
    pub fn basis(&self) -> Option<Digest> {
        self.basis
    }

    /// Who calls.
    #[must_use]
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Which act this is.
    #[must_use]
    pub fn op(&self) -> &OpId {
        &self.op
    }

    /// A path as the model wrote it, from the working folder.
    #[must_use]
    pub fn resolve(&self, path: &str) -> PathBuf {
        self.cwd.join(Path::new(path))
    }
}

impl std::ops::Deref for ToolCtx {
    type Target = Surroundings;
    fn deref(&self) -> &Surroundings {
        &self.around
    }
}
