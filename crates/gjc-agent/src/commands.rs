//! What faces ask for while the actor is at work or idle, each answered exactly once and at once. What takes time is only begun here.

use crate::actor::Actor;
use crate::admit::NotAdmitted;
use crate::boundary::Prompting;
use crate::closed;
use gjc_entry::{Body, EntryId, Message, Origin};
use gjc_log::Refused;
use gjc_log::fs::Fs;
use gjc_protocol::{Command, EventBody, Outcome, PromptMode, PromptPart, Refusal, StepName, TurnEnd};
use serde_json::json;
use tokio::sync::oneshot;

impl<F: Fs> Actor<F> {
    /// Answers a prompt; gives it back when it may begin.
    pub(crate) fn accept(
        &self,
        parts: Vec<PromptPart>,
        mode: PromptMode,
        reply: oneshot::Sender<Outcome>,
    ) -> Option<Prompting> {
        let prompt = Prompting { parts, mode };
        let outcome = match self.check_prompt(&prompt) {
            _ if self.closing || self.step == StepName::Closing => closed(),
            Ok(()) => Outcome::Accepted,
            Err(refusal) => Outcome::Refused(refusal),
        };
        let accepted = matches!(outcome, Outcome::Accepted);
        let _ = reply.send(outcome);
        gjc_fp::fp!("agent.prompt.replied");
        accepted.then_some(prompt)
    }

    /// Whether a prompt is one.
    pub(crate) fn check_prompt(&self, prompt: &Prompting) -> Result<(), Refusal> {
        let mut pictures = prompt.parts.iter().filter_map(|part| part.picture.as_ref());
        let empty = prompt.text().trim().is_empty() && pictures.clone().next().is_none();
        let human =
            prompt.parts.iter().all(|part| matches!(part.origin, Origin::Typed | Origin::Paste | Origin::Media));
        if empty {
            Err(Refusal::new("empty_prompt", "the prompt is empty").hint("say something"))
        } else if !human {
            Err(Refusal::new("bad_origin", "a prompt's origin must be typed, paste or media"))
        } else {
            pictures.find_map(|picture| gjc_tools::check_picture(picture).err()).map_or(Ok(()), Err)
        }
    }

    /// Any command but a prompt that begins a turn. Never waits.
    pub(crate) fn command(&mut self, command: Command, reply: oneshot::Sender<Outcome>) {
        let Some((command, reply)) = self.defer(command, reply) else { return };
        let outcome = match command {
            Command::Prompt { parts, mode } => {
                if let Some(prompt) = self.accept(parts, mode, reply) {
                    self.queue.push_back(prompt);
                    self.tell_queue();
                }
                return;
            }
            Command::Unqueue => match self.queue.pop_back() {
                Some(prompt) => {
                    self.tell_queue();
                    Outcome::Done { value: json!({ "text": prompt.text() }) }
                }
                None => Outcome::Refused(Refusal::new("nothing_queued", "no prompt is waiting")),
            },
            Command::Bash { command, exclude_from_context } => {
                self.run_for_person(command, exclude_from_context, reply);
                return;
            }
            Command::AbortBash => self.abort_persons(),
            Command::Abort if self.step == StepName::Idle && self.cancel_switch() => Outcome::Accepted,
            Command::Abort if self.step == StepName::Idle && self.persons.is_some() => self.abort_persons(),
            // It waits for its jobs alone, and shall not.
            Command::Abort if self.step == StepName::Idle && self.finishing && !self.jobs.running().is_empty() => {
                self.end = Some(TurnEnd::Aborted);
                Outcome::Accepted
            }
            Command::Abort if self.step == StepName::Idle => {
                Outcome::Refused(Refusal::new("nothing_running", "nothing is running"))
            }
            Command::Abort => {
                self.cancel_switch();
                self.cancel.cancel();
                Outcome::Accepted
            }
            Command::MoveLeaf { .. } if self.step != StepName::Idle => {
                let refusal = Refusal::new("busy", "the place in the session cannot be changed while a turn runs");
                Outcome::Refused(refusal.hint("wait for its end, or abort it"))
            }
            Command::MoveLeaf { to } => {
                self.move_leaf(to, reply);
                return;
            }
            Command::Answer { ask, value } => match self.asks.take(&ask, value) {
                Ok(taken) => {
                    let _ = reply.send(Outcome::Done { value: json!({ "ask": ask }) });
                    taken.tell(&self.asks);
                    return;
                }
                Err(refusal) => Outcome::Refused(refusal),
            },
            Command::SetMode { mode } => {
                self.set_mode(mode, reply);
                return;
            }
            Command::Label { target, label } => self.name_place(target, label),
            Command::SetModel { model, role } => {
                self.choose_model(role, &model, reply);
                return;
            }
            Command::SetThinking { level } => self.set_thinking(level),
            Command::SetTier { tier } => self.set_tier(tier),
            Command::Switch { .. }
            | Command::NewSession
            | Command::Fork { .. }
            | Command::Branch { .. }
            | Command::MoveSession { .. }
            | Command::DeleteSession { .. } => {
                self.begin_switch(command, reply);
                return;
            }
            Command::Rename { name } => {
                let outcome = self.rename(&name);
                let renamed = matches!(outcome, Outcome::Done { .. });
                let _ = reply.send(outcome);
                if renamed {
                    self.tell_name();
                }
                return;
            }
            Command::Session => as_value("no_report", serde_json::to_value(self.report())),
            Command::Tree { filter, from, limit } => {
                as_value("no_tree", serde_json::to_value(self.session.tree(filter, from, limit)))
            }
            Command::Export { path, force, open, typed } => {
                self.export(path, force, open, typed, reply);
                return;
            }
            Command::Rescue => self.rescue(),
            Command::Snapshot => as_value("no_snapshot", serde_json::to_value(self.snapshot())),
            Command::Dump => self.dump(),
            Command::Share { confirm } => {
                self.share(confirm.as_deref(), reply);
                return;
            }
            Command::Close => {
                self.closing = true;
                self.cancel.cancel();
                self.asks.close();
                self.closers.push(reply);
                return;
            }
            Command::Finish => {
                self.finishing = true;
                self.asks.close();
                self.closers.push(reply);
                return;
            }
            _ => Outcome::Refused(Refusal::new("unknown_command", "this version does not know the command")),
        };
        let _ = reply.send(outcome);
    }

    /// Goes to an entry, or to the one before it if a person said it: then they get their words back.
    fn move_leaf(&mut self, to: Option<EntryId>, reply: oneshot::Sender<Outcome>) {
        let (mut place, mut text) = (to.clone(), None);
        if let Some(entry) = to.and_then(|to| self.session.entry(&to))
            && let Body::Message(Message::User(user)) = &entry.body
        {
            // The tree's parent, not the one that the entry names: that may be lost, or stand behind it.
            (place, text) = (self.session.parent(&entry.id), Some(user.content.text()));
        }
        let mode = self.session.mode();
        match self.session.move_leaf(place.clone()) {
            Ok(moved) => {
                let mut value = json!({ "leaf": place });
                if let Some(text) = text {
                    value["text"] = text.into();
                }
                let _ = reply.send(Outcome::Done { value });
                if moved.is_some() {
                    self.session.want_durable();
                    self.events.emit(EventBody::LeafMoved { leaf: place.map(|place| place.to_string()) });
                    // The mode is the path's.
                    let there = self.session.mode();
                    if there != mode {
                        self.events.emit(EventBody::Mode { mode: there });
                    }
                    self.tell_storage();
                }
            }
            Err(failure) => drop(reply.send(Outcome::Refused(no_place(&failure)))),
        }
    }

    /// Goes on in a new file when another program has taken the session's own away.
    pub(crate) fn rescue(&mut self) -> Outcome {
        match self.session.rescue(self.config.env.ids.session()) {
            Ok(Some(file)) => {
                let (id, file) = (self.session.id().to_string(), file.display().to_string());
                // Before it is told: a face that comes at this moment hears either.
                self.first.home().moves(&self.session);
                self.events.emit(EventBody::Rescued { id: id.clone(), file: file.clone() });
                self.tell_notes();
                self.session.want_durable();
                self.tell_storage();
                Outcome::Done { value: json!({ "id": id, "file": file }) }
            }
            Ok(None) => {
                let why = "the session's file is there, nothing has to be rescued";
                Outcome::Refused(Refusal::new("nothing_lost", why))
            }
            Err(error) => {
                let why = format!("the session cannot go on in a new file: {error}");
                Outcome::Refused(Refusal::new("not_rescued", why).hint("make room there, and try again"))
            }
        }
    }

    /// Names a place, or takes its name away.
    fn name_place(&mut self, target: EntryId, label: Option<String>) -> Outcome {
        if !self.session.has(&target) {
            return Outcome::Refused(no_place(&NotAdmitted::Refused(Refused::NoSuchParent(target))));
        }
        let label = label.map(|label| label.replace(char::is_control, " ").trim().to_owned());
        let label = label.filter(|label| !label.is_empty());
        match self.session.admit_own(Body::Label { target: target.clone(), label: label.clone() }) {
            Ok(_) => {
                self.session.want_durable();
                Outcome::Done { value: json!({ "target": target, "label": label }) }
            }
            Err(failure) => Outcome::Refused(no_place(&failure)),
        }
    }

    fn tell_queue(&self) {
        self.events.emit(EventBody::Queued { waiting: self.queue.len() });
    }

    /// The oldest queued prompt of a kind.
    pub(crate) fn take_queued(&mut self, kind: impl Fn(&Prompting) -> bool) -> Option<Prompting> {
        let index = self.queue.iter().position(kind)?;
        let prompt = self.queue.remove(index);
        self.tell_queue();
        prompt
    }
}

/// What a command gives, as the value of its reply.
fn as_value(code: &str, given: serde_json::Result<serde_json::Value>) -> Outcome {
    match given {
        Ok(value) => Outcome::Done { value },
        Err(error) => Outcome::Refused(Refusal::new(code, error.to_string())),
    }
}

fn no_place(failure: &NotAdmitted) -> Refusal {
    match failure {
        NotAdmitted::Refused(Refused::NoSuchParent(_)) => {
            Refusal::new("unknown_entry", failure.to_string()).hint("gjc sessions show <id> lists the entries")
        }
        _ => Refusal::new("not_stored", failure.to_string()),
    }
}
