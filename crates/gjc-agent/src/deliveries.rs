//! What comes in by itself: the ends of background jobs. (Messages of peers and channels will come the same way.)
//!
//! The one rule: pending → not in the [`Delivered`] fold yet → *one* line that holds the text and names the delivery → safe →
//! acknowledged. A crash anywhere begins again, and changes nothing.
//!
//! An end that the model has seen because it asked for it (`job`) is named by that very result; a `gjc.delivered` behind it
//! says so to the fold. A job that is on record, whose end is neither in the session nor on its way, was taken along by a
//! crash: the next process delivers that.

use crate::actor::Actor;
use crate::admit::{Fact, NotAdmitted};
use crate::jobs::delivery_of;
use gjc_context::{Delivered, Jobs as Started, Seen};
use gjc_entry::{Block, Body, Content, DeliveryId, Label, Leaf, Origin, Own, StartedJob};
use gjc_flow::Labelled;
use gjc_log::fs::Fs;
use gjc_protocol::{EventBody, JobStatus};
use gjc_tools::{JobEnd, JobState};
use serde_json::{Value, json};

/// The type of the message, as the family's programs know it.
const CUSTOM_TYPE: &str = "async-result";
/// What the model hears of a job that a crash took along.
const INTERRUPTED: &str = "failed: interrupted. gjc was stopped before the end of the job was stored; its outcome is unknown, check before repeating.";

impl<F: Fs> Actor<F> {
    /// Whether something has come that the session does not have yet.
    pub(crate) fn has_arrivals(&mut self) -> bool {
        let waiting = self.jobs.unsettled();
        waiting.iter().any(|job| !self.is_delivered(&delivery_of(job)))
    }

    /// The names of what has come and is not acknowledged, oldest first.
    pub(crate) fn arrivals(&self) -> Vec<DeliveryId> {
        self.jobs.unsettled().iter().map(delivery_of).collect()
    }

    fn is_delivered(&mut self, id: &DeliveryId) -> bool {
        let (log, folds) = self.session.parts();
        // Only a source without an index fails here; the log of a writer has one.
        folds.get::<Delivered>(log, Leaf::Current).is_ok_and(|delivered| delivered.0.contains(id))
    }

    /// Takes one in, unless the session has it. `true` when the model has something new to hear.
    pub(crate) fn take_in(&mut self, id: &DeliveryId) -> Result<bool, NotAdmitted> {
        let Some(job) = self.jobs.unsettled().into_iter().find(|job| delivery_of(job) == *id) else { return Ok(false) };
        if self.is_delivered(id) {
            return Ok(false);
        }
        gjc_fp::fp!("agent.delivery.before");
        let taken = match self.admit_message(message(&job)) {
            Ok(_) => Ok(true),
            // It stays outside, and is not tried again.
            Err(NotAdmitted::AboveClearance(_)) => {
                self.session.admit_own(Body::Own(Own::Delivered(id.clone()))).map(|_| false)
            }
            Err(failure) => Err(failure),
        };
        if taken.is_err() {
            // The log refuses it. It is still on record, so the next process tells of it; this one would try for ever.
            self.jobs.settle(id);
        }
        gjc_fp::fp!("agent.delivery.admitted");
        taken
    }

    /// What is safe in the session is not delivered again.
    pub(crate) fn acknowledge(&mut self, id: &DeliveryId) {
        gjc_fp::fp!("agent.delivery.safe");
        if self.is_delivered(id) {
            self.jobs.settle(id);
        }
        gjc_fp::fp!("agent.delivery.acknowledged");
    }

    /// The model has seen ends in the result of a call, which is in the session by now.
    pub(crate) fn seen(&mut self, ids: &[DeliveryId]) {
        for id in ids {
            gjc_fp::fp!("agent.delivery.seen");
            self.owe_nothing(id);
        }
    }

    /// Nothing is to be told of a job any more.
    pub(crate) fn owe_nothing(&mut self, id: &DeliveryId) {
        // If the log does not take it, the next process finds it out from the results.
        if self.is_delivered(id) || self.session.admit_own(Body::Own(Own::Delivered(id.clone()))).is_ok() {
            self.jobs.settle(id);
        }
        self.tell_storage();
    }

    /// When a session is opened: the ends of jobs that an earlier process has started and not delivered. They are taken in
    /// at once, and heard with the next prompt.
    pub(crate) fn deliver_interrupted(&mut self) -> Result<(), NotAdmitted> {
        for job in self.owed() {
            self.jobs.add_ended(interrupted(job));
        }
        for id in self.arrivals() {
            self.take_in(&id)?;
        }
        Ok(())
    }

    /// Jobs on record without an end. No process runs them: this one has the lock.
    fn owed(&mut self) -> Vec<StartedJob> {
        let own = self.session.id().clone();
        let (log, folds) = self.session.parts();
        let Ok(started) = folds.get::<Started>(log, Leaf::Current).cloned() else { return Vec::new() };
        let Ok(delivered) = folds.get::<Delivered>(log, Leaf::Current) else { return Vec::new() };
        let mut owed = started.0;
        // A copy of a session owes nothing of what its source began.
        owed.retain(|job| job.op.session == own && !delivered.0.contains(&job.delivery()));
        if owed.is_empty() {
            return owed;
        }
        let seen = folds.get::<Seen>(log, Leaf::Current).cloned().unwrap_or_default();
        let (seen, owed) = owed.into_iter().partition::<Vec<_>, _>(|job| seen.0.contains(&job.delivery()));
        for job in seen {
            self.owe_nothing(&job.delivery());
        }
        owed
    }

    /// Ends what still runs beside the conversation, jobs and a person's command, and takes the ends in. Gives the ids of jobs that
    /// were ended.
    pub(crate) async fn end_jobs(&mut self) -> Vec<String> {
        if let Some(persons) = &self.persons {
            persons.cancel.cancel();
        }
        let running = self.jobs.running();
        self.jobs.cancel_all();
        let jobs = self.jobs.clone();
        self.attend(async move {
            // In turn: all of them were asked to end.
            for id in jobs.running() {
                gjc_tools::Jobs::first_end(&jobs, &[id]).await;
            }
        })
        .await;
        while self.persons.is_some() {
            self.persons_end().await;
        }
        if let Err(failure) = self.admit_executed() {
            self.fail("not_stored", failure.to_string(), None);
        }
        for id in self.arrivals() {
            if let Err(failure) = self.take_in(&id) {
                self.fail("not_stored", failure.to_string(), None);
            }
        }
        if !running.is_empty() {
            let ended = running.join(", ");
            self.events
                .emit(EventBody::Notice { text: format!("background jobs were ended with the session: {ended}") });
        }
        running
    }
}

/// The one line of a delivery.
fn message(job: &JobState) -> Labelled<Fact> {
    let status = job.status().as_str();
    let text = format!(
        "<system-notice>\nBackground job {} has ended: {status}.\n</system-notice>\n\n{}",
        job.id,
        job.section()
    );
    let result = job.end.as_ref().map_or(Value::Null, |end| end.details.clone());
    let details = json!({
        "gjc": { "delivered": delivery_of(job) },
        "job": { "id": job.id, "tool": job.tool, "status": job.status() },
        "result": result,
    });
    let body = Body::CustomMessage {
        custom_type: CUSTOM_TYPE.into(),
        content: Content::Blocks(vec![Block::text(text, Origin::Host)]),
        display: true,
        details: serde_json::value::to_raw_value(&details).ok(),
    };
    Labelled::new(Fact::new(body), job.label)
}

fn interrupted(job: StartedJob) -> JobState {
    let StartedJob { op, id, tool, what } = job;
    let end = JobEnd { status: JobStatus::Failed, text: INTERRUPTED.into(), details: json!({ "exit": "interrupted" }) };
    JobState { id, op, tool, what, label: Label::PUBLIC_TRUSTED, recent: String::new(), end: Some(end) }
}
