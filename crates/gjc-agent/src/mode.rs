//! Plan mode, and what a session and its model must know before a turn begins.

use crate::actor::Actor;
use crate::admit::{Fact, NotAdmitted, Session};
use gjc_context::{Approved, InMode};
use gjc_entry::{ApprovalMode, Block, Body, Content, Label, Leaf, Origin, Own};
use gjc_flow::Labelled;
use gjc_log::fs::Fs;
use gjc_protocol::{EventBody, Mode, Outcome, Refusal, StepName};
use gjc_tools::{Shown, Tools};
use serde_json::json;
use tokio::sync::oneshot;

/// What the model hears when plan mode begins.
const BEGUN: &str = "Plan mode is on. Only tools that look, and questions to the person, are there: nothing can be changed now. \
                     Find out what is needed, then answer with a plan: what would be changed, where, in which order, and how it would be checked. \
                     A person ends plan mode; until then do not try to change anything.";
/// What it hears when it ends.
const OVER: &str = "Plan mode is over: all tools are there again. Do what the person wants done now.";

impl<F: Fs> Session<F> {
    /// Whether the session plans.
    pub(crate) fn mode(&mut self) -> Mode {
        if self.in_mode().plan { Mode::Plan } else { Mode::None }
    }

    fn in_mode(&mut self) -> InMode {
        let (log, folds) = self.parts();
        // Only a source without an index fails here; the log of a writer has one.
        folds.get::<InMode>(log, Leaf::Current).cloned().unwrap_or_default()
    }

    /// The situation in which tools are shown.
    pub(crate) fn shown(&mut self, answers: bool) -> Shown {
        Shown { mode: self.mode(), answers }
    }
}

impl<F: Fs> Actor<F> {
    /// Begins plan mode, or ends it.
    pub(crate) fn set_mode(&mut self, mode: Mode, reply: oneshot::Sender<Outcome>) {
        if self.step != StepName::Idle {
            let refusal = Refusal::new("busy", "the mode cannot be changed while a turn runs");
            let _ = reply.send(Outcome::Refused(refusal.hint("wait for its end, or abort it")));
            return;
        }
        let changed = self.session.mode() != mode;
        let word = if mode == Mode::Plan { InMode::PLAN } else { InMode::NONE };
        let body = Body::ModeChange { mode: Some(word.into()), data: None };
        if changed && let Err(failure) = self.session.admit_own(body) {
            let _ = reply.send(Outcome::Refused(Refusal::new("not_stored", failure.to_string())));
            return;
        }
        let _ = reply.send(Outcome::Done { value: json!({ "mode": mode }) });
        if changed {
            self.session.want_durable();
            self.events.emit(EventBody::Mode { mode });
            self.tell_storage();
        }
    }

    /// Before a prompt comes in: the file says what a person is asked for, and the model knows the mode.
    pub(crate) fn prepare_turn(&mut self) -> Result<(), NotAdmitted> {
        let (log, folds) = self.session.parts();
        let before = folds.get::<Approved>(log, Leaf::Current).ok().and_then(|approved| approved.0);
        if before.unwrap_or(ApprovalMode::Full) != self.config.approval {
            self.session.admit_own(Body::Own(Own::Approval(self.config.approval)))?;
        }
        let InMode { plan, told_plan } = self.session.in_mode();
        if plan != told_plan {
            let (custom_type, text) = if plan { (InMode::BEGUN, BEGUN) } else { (InMode::OVER, OVER) };
            let body = Body::CustomMessage {
                custom_type: custom_type.into(),
                content: Content::Blocks(vec![Block::text(text, Origin::Mode)]),
                display: false,
                details: None,
            };
            self.admit_message(Labelled::new(Fact::new(body), Label::PUBLIC_TRUSTED))?;
        }
        Ok(())
    }
}

/// What the model hears of a call whose tool is not there, or not now.
pub(crate) fn not_there(tools: &Tools, name: &str, shown: &Shown) -> String {
    let hidden = |shown: &Shown| tools.get(name).is_some() && tools.shown(name, shown).is_none();
    if hidden(&Shown { mode: Mode::None, ..shown.clone() }) {
        return format!(
            "not run: {name} needs somebody who answers, and in this run nobody is asked; decide yourself, or end your turn with the question"
        );
    }
    if hidden(shown) {
        return format!(
            "not run: {name} does not run in plan mode, where nothing is changed; answer with the plan, and the person ends plan mode when it shall be done"
        );
    }
    let there: Vec<&str> = tools.names().into_iter().filter(|name| tools.shown(name, shown).is_some()).collect();
    format!("there is no tool \"{name}\"; choose from: {}", there.join(", "))
}
