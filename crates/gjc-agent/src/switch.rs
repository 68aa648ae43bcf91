//! From one session to another within one process. Whatever belongs to a session is left behind with it: the next one is an
//! actor of its own, which takes over nothing but the mailbox, the events and who waits for the end ([`Actor::enter`]).
//!
//! The order: the next session is found and got ready, its lock held, while the present one goes on unharmed → the present one
//! stops its work, and everything of it is durable → the next one takes its place → the old lock is released → the reply, the
//! event → the next one completes what a crash left of it. Up to the moment in which it takes the place any failure leaves
//! the present session where it was, and is the reply.

use crate::actor::Actor;
use crate::handle::{Home, Mail};
use crate::sessions::{Found, Present, Ready, Wanted};
use gjc_entry::BoxFuture;
use gjc_log::fs::Fs;
use gjc_protocol::{Command, EventBody, LabelInfo, Outcome, Refusal, SwitchReason};
use serde_json::json;
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// The most commands that wait for the end of a switch.
const WAITING: usize = 64;

/// A switch that was asked for.
pub(crate) struct Switch<F: Fs> {
    reason: SwitchReason,
    reply: oneshot::Sender<Outcome>,
    /// Takes it back.
    cancel: CancellationToken,
    state: State<F>,
}

enum State<F: Fs> {
    /// The next session is being got ready.
    Finding(BoxFuture<'static, Result<Option<Ready<F>>, Refusal>>),
    /// It is ready: the present one shall end its work.
    Ready(Box<Ready<F>>),
}

/// Completes when the next session is ready, or will not be; never without a switch.
pub(crate) async fn found<F: Fs>(switch: &mut Option<Switch<F>>) -> Result<Option<Ready<F>>, Refusal> {
    match switch {
        Some(Switch { state: State::Finding(finding), .. }) => finding.await,
        _ => std::future::pending().await,
    }
}

impl<F: Fs> Actor<F> {
    /// The session as it is now.
    pub(crate) fn present(&self) -> Present {
        Present {
            id: self.session.id().to_string(),
            file: self.session.log().file_path().map(Into::into),
            cwd: self.config.cwd.clone(),
        }
    }

    /// Whether a next session is ready, and waits for the end of this one's work.
    pub(crate) fn leaves(&self) -> bool {
        matches!(self.switch, Some(Switch { state: State::Ready(_), .. })) && !self.closing
    }

    /// Begins to look for another session.
    pub(crate) fn begin_switch(&mut self, command: Command, reply: oneshot::Sender<Outcome>) {
        let (sessions, present) = (Arc::clone(&self.sessions), self.present());
        let cancel = CancellationToken::new();
        let reason = match &command {
            Command::NewSession => SwitchReason::New,
            _ => SwitchReason::Resume,
        };
        let finding = async move {
            let wanted = match command {
                Command::Switch { session } => match sessions.find(session, present.clone()).await? {
                    Found::Present => return Ok(None),
                    Found::Other { file, .. } => Wanted::File(file),
                },
                _ => Wanted::New,
            };
            sessions.ready(wanted, present).await.map(Some)
        };
        let token = cancel.clone();
        let finding = async move {
            tokio::select! {
                biased;
                () = token.cancelled() => Err(Refusal::new("aborted", "the switch was taken back; nothing has changed")),
                found = finding => found,
            }
        };
        self.switch = Some(Switch { reason, reply, cancel, state: State::Finding(Box::pin(finding)) });
    }

    /// Takes back a switch that has not happened yet.
    pub(crate) fn cancel_switch(&mut self) -> bool {
        match &self.switch {
            Some(switch) => {
                switch.cancel.cancel();
                true
            }
            None => false,
        }
    }

    /// The next session is ready: what this one does ends. Or it will not be, and this one goes on.
    pub(crate) fn found(&mut self, found: Result<Option<Ready<F>>, Refusal>) {
        match found {
            Ok(Some(ready)) => {
                if let Some(switch) = &mut self.switch {
                    switch.state = State::Ready(Box::new(ready));
                }
                self.cancel.cancel();
            }
            Ok(None) => {
                if let Some(switch) = self.switch.take() {
                    let value = json!({ "session": self.session.id(), "switched": false });
                    let _ = switch.reply.send(Outcome::Done { value });
                }
            }
            Err(refusal) => self.stay(refusal),
        }
    }

    /// The switch does not happen. What was said to the next session is not said to this one instead.
    fn stay(&mut self, refusal: Refusal) {
        if let Some(switch) = self.switch.take() {
            let _ = switch.reply.send(Outcome::Refused(refusal));
        }
        for (_, reply) in std::mem::take(&mut self.deferred) {
            let why = "the session that this was meant for was not opened; it was not done";
            let _ = reply.send(Outcome::Refused(Refusal::new("not_switched", why).hint("give the command again")));
        }
    }

    /// Keeps a command until it is clear which session it is for. Gives back what is answered at once.
    pub(crate) fn defer(&mut self, command: Command, reply: oneshot::Sender<Outcome>) -> Option<Mail> {
        let at_once = matches!(
            command,
            Command::Snapshot
                | Command::Abort
                | Command::AbortBash
                | Command::Answer { .. }
                | Command::Unqueue
                | Command::Close
                | Command::Finish
        );
        if self.switch.is_none() || at_once {
            return Some((command, reply));
        }
        if self.deferred.len() < WAITING {
            self.deferred.push_back((command, reply));
        } else {
            let busy = Refusal::new("busy", "too many commands wait for the other session");
            let _ = reply.send(Outcome::Refused(busy.hint("wait for the reply to the switch")));
        }
        None
    }

    /// Ends the work of this session and makes everything of it durable. `false`: it goes on after all.
    pub(crate) async fn leave(&mut self) -> bool {
        self.keep_changes();
        // What cannot be stored now would be lost with the switch; nothing has ended yet.
        let mut stored = self.make_durable().await;
        if stored {
            self.end_jobs().await;
            stored = self.make_durable().await;
        }
        if self.closing {
            return false;
        }
        if self.switch.as_ref().is_some_and(|switch| switch.cancel.is_cancelled()) {
            self.stay(Refusal::new("aborted", "the switch was taken back; the session goes on"));
            return false;
        }
        if !stored {
            let why = "the session cannot be stored at the moment, so it is not left; it goes on";
            self.stay(
                Refusal::new("not_stored", why).hint("make room on its disk, or give gjc the right to write there"),
            );
        }
        stored
    }

    /// Goes over to the next session, and gives its actor; without one, this.
    pub(crate) fn enter(mut self) -> Self {
        let Some(Switch { reason, reply, state: State::Ready(ready), .. }) = self.switch.take() else { return self };
        let Ready { session, config, resumed, notices } = *ready;
        let unsaid: Vec<String> = self.queue.iter().map(crate::boundary::Prompting::text).collect();
        // Who waits for a model of the old session hears that it is gone.
        self.left.cancel();
        let asked = self.asks.count();
        let mut next = Self::new(session, config, self.events, self.first, self.mailbox, self.sessions, asked);
        next.closers = self.closers;
        next.finishing = self.finishing;
        next.gone = self.gone;
        next.deferred = self.deferred;
        if next.finishing {
            next.asks.close();
        }
        // The old log is closed, and its lock free, before anybody is told of the new one.
        drop((self.session, self.jobs));
        let present = next.present();
        next.sessions.arrived(&present);
        let home = Home::of(&next.session, &next.config, resumed);
        let event = EventBody::Switched {
            id: present.id.clone(),
            cwd: present.cwd.display().to_string(),
            file: present.file.map(|file| file.display().to_string()),
            resumed,
            reason,
            label: LabelInfo::from(next.session.labels().label()),
        };
        *next.first.home() = home;
        let mut value = json!({ "session": present.id, "switched": true });
        if let EventBody::Switched { file: Some(file), .. } = &event {
            value["file"] = file.clone().into();
        }
        if !unsaid.is_empty() {
            value["unsaid"] = unsaid.into();
        }
        let _ = reply.send(Outcome::Done { value });
        next.events.emit(event);
        for text in notices {
            next.events.emit(EventBody::Notice { text });
        }
        next
    }
}
