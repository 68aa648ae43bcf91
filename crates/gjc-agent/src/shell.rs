//! Commands that a person runs beside the conversation (`!cmd`), and what becomes of their output.
//!
//! Such a command is the person's own: it runs at once, whatever the session does, outside of any sandbox and without a
//! time-out. Its result is the family's message `bashExecution`; it enters where it cannot come between a call and its
//! result. The output is nobody's word: it lowers the session's trust like that of the tool `bash`.

use crate::actor::Actor;
use crate::admit::{Fact, NotAdmitted};
use futures_util::FutureExt;
use gjc_entry::{Body, JsonObject, Label, Message};
use gjc_flow::Labelled;
use gjc_log::fs::Fs;
use gjc_protocol::{EventBody, Outcome, Refusal};
use gjc_tools::{Artifacts, Progress, Ran};
use serde_json::value::RawValue;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// A person's command that runs.
pub(crate) struct PersonsCommand {
    pub(crate) command: String,
    pub(crate) cancel: CancellationToken,
}

/// With the actor, whichever way it ends, the command ends too.
impl Drop for PersonsCommand {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

/// One that has ended, on its way into the session.
pub(crate) struct Executed {
    command: String,
    excluded: bool,
    ran: Ran,
}

impl<F: Fs> Actor<F> {
    /// Starts a person's command. It is answered before the events that it causes.
    pub(crate) fn run_for_person(&mut self, command: String, excluded: bool, reply: oneshot::Sender<Outcome>) {
        let refused = self.refuses_persons(&command);
        let runs = refused.is_none();
        let _ = reply.send(refused.unwrap_or(Outcome::Accepted));
        if runs {
            self.start_persons(command, excluded);
        }
    }

    /// Why a person's command cannot run now.
    fn refuses_persons(&self, command: &str) -> Option<Outcome> {
        if self.closing || self.step == gjc_protocol::StepName::Closing {
            return Some(crate::closed());
        }
        if command.trim().is_empty() || command.contains('\0') {
            let refusal = Refusal::new("bad_command", "the command is empty, or holds a NUL character");
            return Some(Outcome::Refused(refusal.hint("give a command for the shell")));
        }
        if self.persons.is_some() {
            let refusal = Refusal::new("command_running", "a command of yours runs already");
            return Some(Outcome::Refused(refusal.hint("wait for its end, or abort it (`abort_bash`)")));
        }
        None
    }

    fn start_persons(&mut self, command: String, excluded: bool) {
        let cancel = CancellationToken::new();
        self.persons = Some(PersonsCommand { command: command.clone(), cancel: cancel.clone() });
        self.events.emit(EventBody::BashStarted { command: command.clone() });
        let (shell, cwd) = (self.config.shell.clone(), self.config.cwd.clone());
        let artifacts: Artifacts = self.artifacts.moved(self.session.log().artifact_dir());
        let (events, done) = (self.events.clone(), self.executed.clone());
        tokio::spawn(async move {
            let (progress, mut shown) = mpsc::unbounded_channel();
            let progress = Progress::new(progress);
            let ran = {
                let work = shell.run_for_person(&cwd, &artifacts, &command, &cancel, &progress);
                let mut work = pin!(AssertUnwindSafe(work).catch_unwind());
                loop {
                    tokio::select! {
                        biased;
                        ran = &mut work => break ran,
                        Some(text) = shown.recv() => events.emit(EventBody::BashProgress { text }),
                    }
                }
            };
            while let Ok(text) = shown.try_recv() {
                events.emit(EventBody::BashProgress { text });
            }
            let ran = ran.unwrap_or_else(|_| Ran::failed("the command failed inside; this is a fault of gjc"));
            // The actor may be gone: then nobody can be told.
            let _ = done.send(Executed { command, excluded, ran });
        });
    }

    /// Ends the person's command that runs.
    pub(crate) fn abort_persons(&mut self) -> Outcome {
        match &self.persons {
            Some(running) => {
                running.cancel.cancel();
                Outcome::Accepted
            }
            None => Outcome::Refused(Refusal::new("nothing_running", "no command of yours is running")),
        }
    }

    /// Waits for the end of a person's command.
    pub(crate) async fn persons_end(&mut self) {
        let mut executions = std::mem::replace(&mut self.executions, mpsc::unbounded_channel().1);
        let (executed, executions) = self
            .attend(async move {
                let executed = executions.recv().await;
                (executed, executions)
            })
            .await;
        self.executions = executions;
        match executed {
            Some(executed) => self.persons_ended(executed),
            None => self.persons = None,
        }
    }

    /// One has ended: kept until it may enter.
    pub(crate) fn persons_ended(&mut self, executed: Executed) {
        self.persons = None;
        self.heard.push(executed);
    }

    /// Takes the ended ones in. Called where no call waits for its result.
    pub(crate) fn admit_executed(&mut self) -> Result<(), NotAdmitted> {
        while !self.heard.is_empty() {
            let body = message(&self.heard[0], self.session.now_millis())?;
            let label = Label { trusted: false, ..Label::PUBLIC_TRUSTED };
            self.admit_message(Labelled::new(Fact::new(body), label))?;
            // Only now: what the log did not take waits for another time.
            self.heard.remove(0);
            // What a person did has to be in a file, whether or not a model ever answers.
            self.session.make_due();
            self.session.want_durable();
        }
        Ok(())
    }
}

/// The family's message.
fn message(Executed { command, excluded, ran }: &Executed, at: i64) -> Result<Body, NotAdmitted> {
    let mut json = Vec::new();
    let mut fields = JsonObject::begin(&mut json);
    fields.field("role", "bashExecution").field("command", command).field("output", &ran.output);
    fields.some("exitCode", &ran.exit_code).field("cancelled", &ran.cancelled).field("truncated", &ran.truncated);
    // pi's name for the file with the whole output.
    fields.some("fullOutputPath", &ran.whole).field("timestamp", &at);
    fields.some("excludeFromContext", &excluded.then_some(true)).end();
    let raw = RawValue::from_string(String::from_utf8_lossy(&json).into_owned()).unwrap_or_default();
    Ok(Body::Message(Message::from_json(&raw)?))
}
