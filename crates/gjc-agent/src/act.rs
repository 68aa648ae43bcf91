//! What an act of a tool has around it, and who it is.

use crate::admit::Session;
use crate::asks::Asks;
use crate::config::Config;
use crate::jobs::JobTable;
use gjc_entry::{Label, OpId};
use gjc_flow::LabelWatch;
use gjc_log::fs::Fs;
use gjc_tools::{Artifacts, Progress, SessionView, Surroundings, ToolCtx};
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

struct Looks(LabelWatch);

impl SessionView for Looks {
    fn label(&self) -> Label {
        self.0.now().0
    }
}

/// The context of one act; what it shows meanwhile goes to `progress`.
#[allow(clippy::disallowed_methods, reason = "the actor is the runtime that says who calls")]
pub(crate) fn context<F: Fs>(
    session: &Session<F>,
    (jobs, artifacts): (&JobTable, &Artifacts),
    config: &Config,
    asks: &Asks,
    cancel: &CancellationToken,
    op: OpId,
    progress: mpsc::UnboundedSender<String>,
) -> ToolCtx {
    let labels = session.labels().watch();
    ToolCtx::new(
        session.runtime(),
        op,
        Surroundings {
            cancel: cancel.clone(),
            session: Arc::new(Looks(labels.clone())),
            redeem: Arc::new(labels),
            host: Arc::new(asks.clone()),
            clock: Arc::clone(&config.env.clock),
            home: config.env.dirs.home.clone(),
            cwd: config.cwd.clone(),
            own: config.env.dirs.agent.clone(),
            artifacts: artifacts.moved(session.log().artifact_dir()),
            progress: Progress::new(progress),
            jobs: Arc::new(jobs.clone()),
        },
    )
}

/// For an act that shows nothing.
pub(crate) fn nowhere() -> mpsc::UnboundedSender<String> {
    mpsc::unbounded_channel().0
}
