//! From one session to another within one process. Whatever belongs to a session is left behind with it: the next one is an
//! actor of its own, which takes over nothing but the mailbox, the events and who waits for the end ([`Actor::enter`]).
//!
//! The order: hooks may keep the session open → it is durable so far → the next session is got ready, its lock held (all of
//! that beside the present one, which goes on: `ways`) → the present one stops its work, and everything of it is durable →
//! the next one takes its place → the old lock is released → the reply, the event → the next one completes what a crash
//! left of it → hooks are told. Up to the moment in which it takes the place any failure leaves the present session where it
//! was, and is the reply.

use crate::actor::Actor;
use crate::boundary::Prompting;
use crate::handle::{Home, Mail};
use crate::hooks::taken_back;
use crate::sessions::Ready;
use crate::ways::{Chosen, Led, Then, cannot_store};
use gjc_entry::BoxFuture;
use gjc_log::fs::Fs;
use gjc_protocol::{Command, EventBody, LabelInfo, OtherSession, Outcome, Refusal, SwitchReason};
use serde_json::json;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// The most commands that wait for the end of a switch.
const WAITING: usize = 64;

/// A switch that was asked for.
pub(crate) struct Switch<F: Fs> {
    reason: SwitchReason,
    reply: oneshot::Sender<Outcome>,
    then: Then,
    /// Takes it back.
    cancel: CancellationToken,
    state: State<F>,
}

enum State<F: Fs> {
    /// The next session is being got ready.
    Going(BoxFuture<'static, Result<Led<F>, Refusal>>),
    /// It is ready: the present one shall end its work.
    Ready(Box<Ready<F>>),
}

/// How a session came to be the one that is open.
pub(crate) struct Arrival {
    reason: SwitchReason,
    previous: OtherSession,
}

/// Completes when the next session is ready, or will not be; never without a switch.
pub(crate) async fn found<F: Fs>(switch: &mut Option<Switch<F>>) -> Result<Led<F>, Refusal> {
    match switch {
        Some(Switch { state: State::Going(going), .. }) => going.await,
        _ => std::future::pending().await,
    }
}

impl<F: Fs> Actor<F> {
    /// Whether a next session is ready, and waits for the end of this one's work.
    pub(crate) fn leaves(&self) -> bool {
        matches!(self.switch, Some(Switch { state: State::Ready(_), .. })) && !self.closing
    }

    /// Begins to go to another session.
    pub(crate) fn begin_switch(&mut self, command: Command, reply: oneshot::Sender<Outcome>) {
        let Chosen { reason, way, then } = match self.choose_way(command) {
            Ok(chosen) => chosen,
            Err(refusal) => return drop(reply.send(Outcome::Refused(refusal))),
        };
        let cancel = CancellationToken::new();
        let guards = self.guards(cancel.clone());
        let (going, token) = (self.go(way, guards), cancel.clone());
        let going = async move {
            tokio::select! {
                biased;
                () = token.cancelled() => Err(taken_back()),
                led = going => led,
            }
        };
        self.switch = Some(Switch { reason, reply, then, cancel, state: State::Going(Box::pin(going)) });
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
    pub(crate) fn found(&mut self, led: Result<Led<F>, Refusal>) {
        match led {
            Ok(Led::To(ready)) => {
                gjc_fp::fp!("agent.switch.ready");
                if let Some(switch) = &mut self.switch {
                    switch.state = State::Ready(ready);
                }
                self.cancel.cancel();
            }
            Ok(Led::Nowhere(value)) => {
                if let Some(switch) = self.switch.take() {
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
        if at_once || self.switch.is_none() {
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
        // Nothing beside the turn has ended yet.
        let mut stored = self.make_durable().await;
        gjc_fp::fp!("agent.switch.durable");
        if stored && !self.is_taken_back() {
            self.end_jobs().await;
            stored = self.make_durable().await;
        }
        if self.closing {
            return false;
        }
        if self.is_taken_back() {
            self.stay(taken_back());
            return false;
        }
        if !stored {
            let why = match &self.told {
                gjc_protocol::Health::Failing { why } => why.clone(),
                gjc_protocol::Health::Ok => "its storage fails".into(),
            };
            self.stay(cannot_store(&why));
        }
        stored
    }

    fn is_taken_back(&self) -> bool {
        self.switch.as_ref().is_some_and(|switch| switch.cancel.is_cancelled())
    }

    /// Goes over to the next session, and gives its actor; without one, this.
    pub(crate) async fn enter(mut self) -> Self {
        let Some(Switch { reason, reply, then, state: State::Ready(ready), .. }) = self.switch.take() else {
            return self;
        };
        let Ready { session, config, resumed, mut notices, undo } = *ready;
        undo.keep();
        let previous = self.present();
        let unsaid: Vec<String> = self.queue.iter().map(Prompting::text).collect();
        // Who waits for a model of the old session hears that it is gone.
        self.left.cancel();
        while let Some(found) = futures_util::StreamExt::next(&mut self.choosing).await {
            self.chosen(found);
        }
        let asked = self.asks.count();
        let mut next = Self::new(session, config, self.events, self.first, self.mailbox, self.sessions, asked);
        next.closers = self.closers;
        next.finishing = self.finishing;
        next.gone = self.gone;
        next.deferred = self.deferred;
        next.queue.extend(then.prompt);
        if next.finishing {
            next.asks.close();
        }
        gjc_fp::fp!("agent.switch.entered");
        // The old log is closed, and its lock free, before anybody is told of the new one.
        drop((self.session, self.jobs));
        gjc_fp::fp!("agent.switch.left");
        let present = next.present();
        let mut value = json!({ "session": present.id, "switched": true });
        match (reason, previous.file.clone(), present.file.clone()) {
            // A branch from before all entries names nothing that stands beside the old file.
            (SwitchReason::Branch, ..) if !resumed => {}
            (SwitchReason::Fork | SwitchReason::Branch | SwitchReason::Move, Some(from), Some(to)) => {
                notices.extend(next.sessions.follow(reason, from, to).await);
            }
            (SwitchReason::New, Some(file), _) if then.delete => {
                let deleted = next.sessions.trash(file).await;
                value["deleted"] = json!(deleted.as_ref().ok());
                notices.extend(deleted.err().map(|refusal| refusal.to_string()));
            }
            _ => {}
        }
        if reason == SwitchReason::Branch && resumed {
            // It has answers already, and whoever ends here finds it again.
            next.session.make_due();
            next.session.want_durable();
        }
        gjc_fp::fp!("agent.switch.followed");
        next.sessions.arrived(&present);
        let file = present.file.map(|file| file.display().to_string());
        if let Some(file) = &file {
            value["file"] = json!(file);
        }
        if let Some(text) = then.text {
            value["text"] = text.into();
        }
        if !unsaid.is_empty() {
            value["unsaid"] = unsaid.into();
        }
        *next.first.home() = Home::of(&next.session, &next.config, resumed);
        let _ = reply.send(Outcome::Done { value });
        next.events.emit(EventBody::Switched {
            id: present.id,
            cwd: present.cwd.display().to_string(),
            file,
            resumed,
            reason,
            label: LabelInfo::from(next.session.labels().label()),
        });
        gjc_fp::fp!("agent.switch.told");
        for text in notices {
            next.events.emit(EventBody::Notice { text });
        }
        let previous =
            OtherSession { session: previous.id, file: previous.file.map(|file| file.display().to_string()) };
        next.arrival = Some(Arrival { reason, previous });
        next
    }

    /// Tells hooks that this session has taken the place of another one.
    pub(crate) async fn tell_hooks_of_arrival(&mut self) {
        if let Some(Arrival { reason, previous }) = self.arrival.take() {
            self.tell_arrival(reason, previous).await;
        }
    }
}
