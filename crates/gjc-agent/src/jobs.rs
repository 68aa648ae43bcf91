//! The background jobs of a session: what runs beside its turns.
//!
//! A job begins in this order: its record is admitted (`gjc.job`), the record is safe, its permit is redeemed, its work runs.
//! So a job that a crash took along is on record, and the next process tells the model. How an end comes back into the
//! session is in `deliveries`.

use crate::actor::Actor;
use crate::events::Events;
use async_trait::async_trait;
use futures_util::FutureExt;
use gjc_context::Jobs as Started;
use gjc_entry::{Body, BoxFuture, Clock, DeliveryId, Leaf, OpId, Own, StartedJob};
use gjc_log::fs::Fs;
use gjc_protocol::{EventBody, JobInfo, JobStatus, Refusal};
use gjc_tools::{JobEnd, JobState, Jobs, NewJob, Progress, Running};
use serde_json::Value;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

/// Output that comes within so long is told at once.
const TOGETHER: Duration = Duration::from_millis(150);
/// Bytes told at once at most; of more the end.
const TOLD: usize = 16 << 10;
/// Bytes that are kept of a running job's output, for who asks how it does.
const RECENT: usize = 2 << 10;
/// Jobs that are kept after their end was taken in.
const KEPT: usize = 64;

/// The jobs that this process has started for its session, and those that it found unfinished.
#[derive(Clone)]
pub(crate) struct JobTable(Arc<Shared>);

struct Shared {
    jobs: Mutex<Vec<Job>>,
    /// Counts ends.
    ends: watch::Sender<u64>,
    asks: mpsc::UnboundedSender<Ask>,
    events: Events,
    clock: Arc<dyn Clock>,
}

struct Job {
    state: JobState,
    cancel: CancellationToken,
    /// The session has its end.
    settled: bool,
}

/// What a job needs of the actor.
pub(crate) enum Ask {
    /// A job wants to begin; it has no id yet.
    Record { job: Box<JobState>, reply: oneshot::Sender<Result<Recorded, Refusal>> },
    /// It did not begin after all: nothing is owed for it.
    Withdraw(DeliveryId),
    /// One has ended.
    Ended,
}

/// A job that is on record.
pub(crate) struct Recorded {
    id: String,
    cancel: CancellationToken,
    /// Completes when the record is safe, or cannot be (`false`).
    safe: BoxFuture<'static, bool>,
}

/// Ends all jobs when the actor is gone, whichever way.
pub(crate) struct EndWithActor(JobTable);

impl Drop for EndWithActor {
    fn drop(&mut self) {
        self.0.cancel_all();
    }
}

impl JobTable {
    pub(crate) fn new(events: Events, clock: Arc<dyn Clock>) -> (Self, mpsc::UnboundedReceiver<Ask>) {
        let (asks, asked) = mpsc::unbounded_channel();
        let shared = Shared { jobs: Mutex::default(), ends: watch::Sender::new(0), asks, events, clock };
        (Self(Arc::new(shared)), asked)
    }

    pub(crate) fn end_with_actor(&self) -> EndWithActor {
        EndWithActor(self.clone())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Job>> {
        self.0.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The ids of those that run.
    pub(crate) fn running(&self) -> Vec<String> {
        self.lock().iter().filter(|job| job.state.end.is_none()).map(|job| job.state.id.clone()).collect()
    }

    /// Those whose end the session does not have yet, oldest first.
    pub(crate) fn unsettled(&self) -> Vec<JobState> {
        let jobs = self.lock();
        jobs.iter().filter(|job| job.state.end.is_some() && !job.settled).map(|job| job.state.clone()).collect()
    }

    /// The session has the end of a job: it is not delivered any more.
    pub(crate) fn settle(&self, id: &DeliveryId) {
        let mut jobs = self.lock();
        for job in jobs.iter_mut().filter(|job| delivery_of(&job.state) == *id) {
            job.settled = true;
        }
        let settled = jobs.iter().filter(|job| job.settled).count();
        let mut most = settled.saturating_sub(KEPT);
        jobs.retain(|job| {
            let goes = job.settled && most > 0;
            most -= usize::from(goes);
            !goes
        });
    }

    pub(crate) fn cancel_all(&self) {
        self.lock().iter().for_each(|job| job.cancel.cancel());
    }

    /// Takes in what has ended before this process knew of it.
    pub(crate) fn add_ended(&self, state: JobState) {
        self.lock().push(Job { state, cancel: CancellationToken::new(), settled: false });
    }

    pub(crate) fn infos(&self) -> Vec<JobInfo> {
        let info = |job: &Job| JobInfo {
            id: job.state.id.clone(),
            tool: job.state.tool.clone(),
            what: job.state.what.clone(),
            status: job.state.status(),
        };
        self.lock().iter().map(info).collect()
    }

    /// Runs the work of a job to its end, and shows what it shows.
    async fn see_through(
        self,
        id: String,
        work: BoxFuture<'static, JobEnd>,
        mut shown: mpsc::UnboundedReceiver<String>,
    ) {
        let mut work = AssertUnwindSafe(work).catch_unwind();
        let mut window = String::new();
        let mut tick: Option<BoxFuture<'static, ()>> = None;
        let tell = |window: &mut String| {
            if !window.is_empty() {
                self.0.events.emit(EventBody::JobProgress { id: id.clone(), text: std::mem::take(window) });
            }
        };
        let end = loop {
            let due = async {
                match &mut tick {
                    Some(tick) => tick.await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                end = &mut work => break end,
                () = due => {
                    tick = None;
                    tell(&mut window);
                }
                Some(text) = shown.recv() => {
                    self.saw(&id, &text);
                    keep_end(&mut window, &text, TOLD);
                    tick.get_or_insert_with(|| self.0.clock.sleep(TOGETHER));
                }
            }
        };
        while let Ok(text) = shown.try_recv() {
            keep_end(&mut window, &text, TOLD);
        }
        tell(&mut window);
        self.ended(&id, end.unwrap_or_else(|_| failed_inside()));
    }

    fn saw(&self, id: &str, text: &str) {
        if let Some(job) = self.lock().iter_mut().find(|job| job.state.id == id) {
            keep_end(&mut job.state.recent, text, RECENT);
        }
    }

    fn ended(&self, id: &str, end: JobEnd) {
        gjc_fp::fp!("agent.job.ended");
        let status = end.status;
        if let Some(job) = self.lock().iter_mut().find(|job| job.state.id == id) {
            job.state.recent = String::new();
            job.state.end = Some(end);
        }
        self.0.events.emit(EventBody::JobEnded { id: id.into(), status });
        self.0.ends.send_modify(|ends| *ends += 1);
        // The actor is gone: nobody can be told.
        let _ = self.0.asks.send(Ask::Ended);
    }

    fn remove(&self, id: &str) {
        self.lock().retain(|job| job.state.id != id);
        self.0.ends.send_modify(|ends| *ends += 1);
    }

    /// Puts a job on record, and lets it begin once that is safe.
    async fn begin(self, op: OpId, job: NewJob) -> Result<String, Refusal> {
        let gone = || Refusal::new("closed", "not run: the session is being closed");
        let NewJob { tool, what, label, begin } = job;
        let (reply, answer) = oneshot::channel();
        let state =
            JobState { id: String::new(), op, tool: tool.into(), what, label, recent: String::new(), end: None };
        let delivery = delivery_of(&state);
        self.0.asks.send(Ask::Record { job: Box::new(state.clone()), reply }).map_err(|_| gone())?;
        let Recorded { id, cancel, safe } = answer.await.map_err(|_| gone())??;
        let withdraw = |refusal| {
            // In this order: who waits for the last job's end and then closes has heard of this.
            let _ = self.0.asks.send(Ask::Withdraw(delivery.clone()));
            self.remove(&id);
            Err(refusal)
        };
        if !safe.await {
            let why = "not run: the session cannot be stored at the moment, and this would act outside of it";
            return withdraw(Refusal::new("not_stored", why));
        }
        gjc_fp::fp!("agent.job.recorded");
        let (progress, shown) = mpsc::unbounded_channel();
        // The session may have been closed meanwhile.
        if cancel.is_cancelled() {
            return withdraw(gone());
        }
        let work = match begin(Running { cancel, progress: Progress::new(progress) }) {
            Ok(work) => work,
            Err(refusal) => return withdraw(refusal),
        };
        let JobState { op, tool, what, .. } = state;
        self.0.events.emit(EventBody::JobStarted { id: id.clone(), op, tool, what });
        tokio::spawn(self.clone().see_through(id.clone(), work, shown));
        Ok(id)
    }
}

#[async_trait]
impl Jobs for JobTable {
    async fn start(&self, op: &OpId, job: NewJob) -> Result<String, Refusal> {
        // In a task of its own: who called may be given up, and a record must not be left without an end.
        let begun = tokio::spawn(self.clone().begin(op.clone(), job)).await;
        begun.unwrap_or_else(|_| Err(Refusal::new("internal", "the job could not begin; this is a fault of gjc")))
    }

    fn list(&self) -> Vec<JobState> {
        self.lock().iter().map(|job| job.state.clone()).collect()
    }

    fn cancel(&self, id: &str) -> bool {
        let jobs = self.lock();
        let found = jobs.iter().find(|job| job.state.id == id && job.state.end.is_none());
        found.inspect(|job| job.cancel.cancel()).is_some()
    }

    async fn first_end(&self, ids: &[String]) {
        let mut ends = self.0.ends.subscribe();
        loop {
            ends.borrow_and_update();
            let running = self.running();
            if ids.iter().any(|id| !running.contains(id)) || ends.changed().await.is_err() {
                return;
            }
        }
    }
}

pub(crate) fn delivery_of(job: &JobState) -> DeliveryId {
    DeliveryId(job.op.to_string().into())
}

fn failed_inside() -> JobEnd {
    let text = "the job failed inside; this is a fault of gjc, not of what it should do".into();
    JobEnd { status: JobStatus::Failed, text, details: Value::Null }
}

/// Adds text, and keeps the last so many bytes, cut between characters.
fn keep_end(kept: &mut String, more: &str, most: usize) {
    kept.push_str(more);
    if let Some(over) = kept.len().checked_sub(most).filter(|over| *over > 0) {
        kept.drain(..kept.ceil_char_boundary(over));
    }
}

impl<F: Fs> Actor<F> {
    /// What a job asks for. Never waits.
    pub(crate) fn job_asks(&mut self, ask: Ask) {
        match ask {
            Ask::Record { job, reply } => {
                // A caller that is gone does not begin.
                let _ = reply.send(self.record_job(*job));
            }
            Ask::Withdraw(id) => self.owe_nothing(&id),
            // The loop that waits looks itself.
            Ask::Ended => {}
        }
    }

    /// Whether jobs still run, for which a session that shall end waits. Says so, once.
    pub(crate) fn waits_for_jobs(&mut self) -> bool {
        let running = self.jobs.running();
        if running.is_empty() {
            return false;
        }
        if !std::mem::replace(&mut self.told_to_wait, true) {
            let running = running.join(", ");
            self.events.emit(EventBody::Notice { text: format!("waiting for background jobs: {running}") });
        }
        true
    }

    fn record_job(&mut self, mut job: JobState) -> Result<Recorded, Refusal> {
        if self.closing || self.step == gjc_protocol::StepName::Closing {
            return Err(Refusal::new("closed", "not run: the session is being closed"));
        }
        let most = self.config.max_jobs;
        if self.jobs.running().len() >= most {
            let why = format!("Background job limit reached ({most}). Wait for running jobs to finish or cancel one.");
            return Err(Refusal::new("job_limit", why));
        }
        let (log, folds) = self.session.parts();
        let before = folds.get::<Started>(log, Leaf::Current).map_or(0, |started| started.0.len());
        job.id = format!("job-{}", before + 1);
        let JobState { op, id, tool, what, .. } = job.clone();
        let record = StartedJob { op, id: id.clone(), tool, what };
        let admitted = self.session.admit_own(Body::Own(Own::Job(record)));
        self.tell_storage();
        if let Err(failure) = admitted {
            return Err(Refusal::new("not_stored", format!("not run: {failure}")));
        }
        let cancel = CancellationToken::new();
        self.jobs.lock().push(Job { state: job, cancel: cancel.clone(), settled: false });
        Ok(Recorded { id, cancel, safe: self.becoming_safe() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_much_output_whole_characters_of_the_end_are_kept() {
        let mut kept = String::new();
        for _ in 0..100 {
            keep_end(&mut kept, "가나다", 10);
        }
        assert_eq!(kept, "가나다");
        keep_end(&mut kept, "ab", 10);
        assert_eq!(kept, "나다ab");
        keep_end(&mut kept, &"x".repeat(50), 10);
        assert_eq!(kept, "x".repeat(10));
    }
}
