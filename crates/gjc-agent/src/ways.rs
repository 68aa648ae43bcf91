//! The ways to another session: what each of them asks for before it begins, and how its session is got ready while the
//! present one goes on.

use crate::actor::Actor;
use crate::boundary::Prompting;
use crate::hooks::Guards;
use crate::sessions::{Found, Present, Purpose, Ready, Sessions, Wanted};
use gjc_entry::{Body, BoxFuture, EntryId, Message};
use gjc_log::durable;
use gjc_log::fs::Fs;
use gjc_protocol::{Command, HookBody, OtherSession, PromptMode, Refusal, StepName, SwitchReason};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;

/// A way to another session.
pub(crate) enum Way {
    New,
    /// To the session that a word means.
    To(String),
    Fork,
    /// Before a message; its parent.
    Branch(EntryId, Option<EntryId>),
    Move(PathBuf),
    /// Away from the session that a word means, or from the present one.
    Delete(Option<String>),
}

/// What belongs to a way and is done, or told, when the other session is there.
#[derive(Default)]
pub(crate) struct Then {
    /// What is said there.
    pub(crate) prompt: Option<Prompting>,
    /// The text of a message that is to be said anew.
    pub(crate) text: Option<String>,
    /// Whether the session that was left goes to the trash.
    pub(crate) delete: bool,
}

/// Where a way has led.
pub(crate) enum Led<F: Fs> {
    /// Another session takes the place of the present one.
    To(Box<Ready<F>>),
    /// It was done without that; the reply.
    Nowhere(Value),
}

impl Way {
    fn reason(&self) -> SwitchReason {
        match self {
            Self::New | Self::Delete(_) => SwitchReason::New,
            Self::To(_) => SwitchReason::Resume,
            Self::Fork => SwitchReason::Fork,
            Self::Branch(..) => SwitchReason::Branch,
            Self::Move(_) => SwitchReason::Move,
        }
    }
}

/// A way that may be gone.
pub(crate) struct Chosen {
    pub(crate) reason: SwitchReason,
    pub(crate) way: Way,
    pub(crate) then: Then,
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

    /// The way that a command asks for, if it may be gone.
    pub(crate) fn choose_way(&self, command: Command) -> Result<Chosen, Refusal> {
        let mut then = Then::default();
        let way = match command {
            Command::Switch { session } => Way::To(session),
            Command::Fork { prompt } => {
                let busy = Refusal::new("busy", "Wait for the current response to finish or abort it before forking.");
                self.may_copy(busy, Refusal::new("in_memory", "a session in memory (--no-session) cannot be forked"))?;
                if !prompt.is_empty() {
                    let prompt = Prompting { parts: prompt, mode: PromptMode::Steer };
                    self.check_prompt(&prompt)?;
                    then.prompt = Some(prompt);
                }
                Way::Fork
            }
            Command::Branch { entry } => {
                let busy =
                    Refusal::new("busy", "Wait for the current response to finish or abort it before branching.");
                self.may_copy(
                    busy,
                    Refusal::new("in_memory", "a session in memory (--no-session) cannot be branched"),
                )?;
                let found = self.session.entry(&entry);
                let Some(Body::Message(Message::User(user))) = found.as_ref().map(|entry| &entry.body) else {
                    let refusal = Refusal::new("invalid_entry", "Invalid entry ID for branching");
                    return Err(refusal.hint("name a message of a person; tree lists them with the filter user_only"));
                };
                then.text = Some(user.content.text());
                let parent = self.session.parent(&entry);
                Way::Branch(entry, parent)
            }
            Command::MoveSession { to } => {
                let busy = Refusal::new("busy", "Wait for the current response to finish or abort it before moving.");
                self.may_copy(busy, Refusal::new("in_memory", "a session in memory (--no-session) cannot be moved"))?;
                Way::Move(to.into())
            }
            Command::DeleteSession { confirm: false, .. } => {
                return Err(Refusal::new("not_confirmed", "a session is put into the trash only after a yes")
                    .hint("send the command with \"confirm\":true; gjc sessions restore brings a session back"));
            }
            Command::DeleteSession { session, .. } => {
                if session.is_none() {
                    self.is_stored(Refusal::new("in_memory", "No session file to delete (in-memory session)"))?;
                }
                then.delete = true;
                Way::Delete(session)
            }
            _ => Way::New,
        };
        Ok(Chosen { reason: way.reason(), way, then })
    }

    /// Whether another file may be made of this session now.
    fn may_copy(&self, busy: Refusal, in_memory: Refusal) -> Result<(), Refusal> {
        if self.step != StepName::Idle {
            return Err(busy);
        }
        self.is_stored(in_memory)
    }

    /// Whether the session has a file.
    fn is_stored(&self, in_memory: Refusal) -> Result<(), Refusal> {
        if self.session.log().file_path().is_none() {
            return Err(in_memory.hint("begin without --no-session"));
        }
        if !self.session.log().on_disk() {
            let refusal = Refusal::new("not_saved", "Session has not been saved yet");
            return Err(refusal.hint("a session has a file once the model has answered in it"));
        }
        Ok(())
    }

    /// Goes a way as far as it can be gone beside the present session.
    pub(crate) fn go(&mut self, way: Way, guards: Guards) -> BoxFuture<'static, Result<Led<F>, Refusal>> {
        let (sessions, present, reason) = (Arc::clone(&self.sessions), self.present(), way.reason());
        // Before anything ends: what cannot be stored now would be lost with the session.
        let lsn = self.session.want_durable();
        let mut storage = self.session.log().storage();
        self.tell_storage();
        Box::pin(async move {
            let (wanted, target) = match wanted(&*sessions, way, &present).await? {
                Next::Wanted(wanted, target) => (wanted, target),
                Next::Nowhere(value) => return Ok(Led::Nowhere(value)),
            };
            gjc_fp::fp!("agent.switch.chosen");
            guards.may(HookBody::SessionBeforeSwitch { reason, target }).await?;
            if let (Wanted::Branch(_), Some(entry)) = (&wanted.0, wanted.1) {
                guards.may(HookBody::SessionBeforeBranch { entry: entry.to_string() }).await?;
            }
            gjc_fp::fp!("agent.switch.allowed");
            durable(&mut storage, lsn).await.map_err(|why| cannot_store(&why.to_string()))?;
            gjc_fp::fp!("agent.switch.stored");
            sessions.ready(wanted.0, present).await.map(|ready| Led::To(Box::new(ready)))
        })
    }
}

enum Next {
    /// The session, and the message before which it is branched; what hooks are told of it.
    Wanted((Wanted, Option<EntryId>), Option<OtherSession>),
    Nowhere(Value),
}

/// What a way wants.
async fn wanted<F: Fs>(sessions: &dyn Sessions<F>, way: Way, present: &Present) -> Result<Next, Refusal> {
    Ok(match way {
        Way::New | Way::Delete(None) => Next::Wanted((Wanted::New, None), None),
        Way::Fork => Next::Wanted((Wanted::Fork, None), None),
        Way::Branch(entry, parent) => Next::Wanted((Wanted::Branch(parent), Some(entry)), None),
        Way::Move(to) => Next::Wanted((Wanted::Moved(to), None), None),
        Way::To(word) => match sessions.find(word, Purpose::GoOn, present.clone()).await? {
            Found::Present => Next::Nowhere(json!({ "session": present.id, "switched": false })),
            Found::Other { id, file } => {
                let target = OtherSession { session: id, file: Some(file.display().to_string()) };
                Next::Wanted((Wanted::File(file), None), Some(target))
            }
        },
        Way::Delete(Some(word)) => match sessions.find(word, Purpose::PutAway, present.clone()).await? {
            Found::Present => Next::Wanted((Wanted::New, None), None),
            Found::Other { file, .. } => {
                let deleted = sessions.trash(file).await?;
                Next::Nowhere(json!({ "session": present.id, "switched": false, "deleted": deleted }))
            }
        },
    })
}

/// The answer when the present session cannot be stored.
pub(crate) fn cannot_store(why: &str) -> Refusal {
    Refusal::new(
        "not_stored",
        format!("the session cannot be stored at the moment ({why}), so it is not left; it goes on"),
    )
    .hint("make room on its disk, or give gjc the right to write there")
}
