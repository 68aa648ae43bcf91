//! Both ends of the way between a face and its session: the handle, and the mailbox. Whichever way an actor ends, no face waits
//! for one that is gone.

use crate::admit::Session;
use crate::config::Config;
use crate::events::{Events, Subscription};
use futures_util::FutureExt;
use gjc_flow::LabelWatch;
use gjc_log::fs::Fs;
use gjc_protocol::{Command, EventBody, LabelInfo, Outcome, Refusal};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};

/// Commands that wait for the actor, before who gives another waits too.
const WAITING: usize = 64;

pub(crate) type Mail = (Command, oneshot::Sender<Outcome>);

/// A face's end of a session.
#[derive(Clone)]
pub struct SessionHandle {
    mailbox: mpsc::Sender<Mail>,
    events: Events,
    first: Arc<First>,
}

/// What a face hears first, but for the label, which may have changed since.
pub(crate) struct First(Mutex<Home>);

/// Where a session is, and which one it is; a rescue and a switch change it.
#[derive(Clone)]
pub(crate) struct Home {
    id: String,
    file: Option<String>,
    cwd: PathBuf,
    resumed: bool,
    labels: LabelWatch,
}

impl Home {
    pub(crate) fn of<F: Fs>(session: &Session<F>, config: &Config, resumed: bool) -> Self {
        let file = session.log().file_path().map(|path| path.display().to_string());
        let (id, cwd) = (session.id().to_string(), config.cwd.clone());
        Self { id, file, cwd, resumed, labels: session.labels().watch() }
    }

    /// The same session in another file.
    pub(crate) fn moves<F: Fs>(&mut self, session: &Session<F>) {
        self.id = session.id().to_string();
        self.file = session.log().file_path().map(|path| path.display().to_string());
    }
}

impl First {
    pub(crate) fn of<F: Fs>(session: &Session<F>, config: &Config, resumed: bool) -> Self {
        Self(Mutex::new(Home::of(session, config, resumed)))
    }

    pub(crate) fn home(&self) -> MutexGuard<'_, Home> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SessionHandle {
    pub(crate) fn new(events: Events, first: Arc<First>) -> (Self, Inbox) {
        let (mailbox, inbox) = mpsc::channel(WAITING);
        (Self { mailbox, events, first }, Inbox(inbox))
    }

    /// Gives a command, and waits for its one answer.
    pub async fn call(&self, command: Command) -> Outcome {
        let (reply, answer) = oneshot::channel();
        self.post(command, reply).await;
        answer.await.unwrap_or_else(|_| closed())
    }

    /// Gives a command whose one answer goes to `reply`, before any event that the command causes; an answer that never
    /// comes is [`closed`].
    pub async fn post(&self, command: Command, reply: oneshot::Sender<Outcome>) {
        if let Err(lost) = self.mailbox.send((command, reply)).await {
            let (_, reply) = lost.0;
            let _ = reply.send(closed());
        }
    }

    /// The folder that the session works in.
    #[must_use]
    pub fn cwd(&self) -> PathBuf {
        self.first.home().cwd.clone()
    }

    /// Begins to read events: first `Session`, then everything from now on.
    #[must_use]
    pub fn subscribe(&self) -> Subscription {
        self.events.subscribe_with(|| {
            let Home { id, file, cwd, resumed, labels } = self.first.home().clone();
            let label = LabelInfo::from(labels.now().0);
            EventBody::Session { id, cwd: cwd.display().to_string(), file, resumed, label }
        })
    }
}

/// The answer of a session that is closed.
#[must_use]
pub fn closed() -> Outcome {
    Outcome::Refused(Refusal::new("closed", "the session is closed").hint("resume it: gjc --resume <id>"))
}

/// The actor's end of the mailbox. Whichever way the actor ends, what still comes in is answered.
///
/// A receiver that is dropped throws away what lies there, and no more: a sender that has been let in, and lays its
/// command down a moment later, would keep it alive, and its face waiting, for as long as anybody holds a handle.
pub(crate) struct Inbox(pub(crate) mpsc::Receiver<Mail>);

impl Drop for Inbox {
    fn drop(&mut self) {
        let mut mailbox = std::mem::replace(&mut self.0, mpsc::channel(1).1);
        mailbox.close();
        // Closed, it ends only after every sender that was let in is done.
        let mut rest = Box::pin(async move {
            while let Some((_, reply)) = mailbox.recv().await {
                let _ = reply.send(closed());
            }
        });
        if rest.as_mut().now_or_never().is_none()
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(rest);
        }
    }
}

/// Tells the faces that the session is closed, whichever way its actor ends: no face waits for one that is gone.
pub(crate) struct Last(pub(crate) Events);

impl Drop for Last {
    fn drop(&mut self) {
        self.0.emit(EventBody::Closed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test]
    async fn a_command_that_is_laid_down_after_the_end_is_answered_while_handles_are_still_there() {
        let (mailbox, inbox) = mpsc::channel(64);
        let post = |mailbox: &mpsc::Sender<Mail>| {
            let (reply, answer) = oneshot::channel();
            (mailbox.clone().try_reserve_owned().unwrap(), (Command::Snapshot, reply), answer)
        };
        let (waiting, mail, first) = post(&mailbox);
        waiting.send(mail);
        // Let in, and overtaken by the actor's end before it lays its command down.
        let (late, mail, second) = post(&mailbox);
        drop(Inbox(inbox));
        let is_closed = |outcome| matches!(outcome, Outcome::Refused(Refusal { code, .. }) if code == "closed");
        // As a handle takes it: nobody is left to answer.
        assert!(is_closed(first.await.unwrap_or_else(|_| closed())));
        late.send(mail);
        let second = tokio::time::timeout(Duration::from_secs(10), second).await;
        assert!(is_closed(second.expect("it is answered").unwrap()));
        assert!(mailbox.is_closed());
    }
}
