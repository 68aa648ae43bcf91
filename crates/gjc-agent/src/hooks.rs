//! Hooks: programs of a person that are run at events of a session.
//!
//! A hook is a command line for `sh`. It hears one JSON object ([`HookCall`]) and answers with at most one. Those of a guarding
//! event are asked one after another, and the first that blocks has decided; one that fails has not said that it may be, so it
//! blocks too. Those of an observing event are told, and a failure of theirs is a notice.
//!
//! A hook never holds the actor up (`Actor::attend`), ends with the turn that a person ends, and is started only if whoever knows
//! what is trusted vouches for its command at that moment ([`Vouch`]).

use crate::actor::Actor;
use crate::admit::{Fact, NotAdmitted};
use futures_util::{StreamExt, stream};
use gjc_entry::{AssistantMessage, Block, Body, Content, Label};
use gjc_flow::Labelled;
use gjc_log::fs::Fs;
use gjc_process::{Exit, OutputCap, Spawn, Stdin};
use gjc_protocol::{
    EventBody, HookAddition, HookBody, HookCall, HookDecision, HookEvent, HookVerdict, LabelInfo, OtherSession,
    Refusal, SwitchReason, TurnEnd,
};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The most bytes of an answer.
const LONGEST: usize = 64 * 1024;
/// How many things hooks are asked about side by side: a model may make any number of calls at once.
const SIDE_BY_SIDE: usize = 8;
/// So many answers of one turn are held back and asked for again; the next one fails the turn.
const HELD_MOST: u32 = 3;
/// The variable by which a program knows that it runs in a hook, and of which event.
const MARK: &str = "GJC_HOOK";
/// What a hook says is what some program printed: nobody vouches for where it got that from.
pub(crate) const LABEL: Label = Label { trusted: false, ..Label::PUBLIC_TRUSTED };

/// A program that is run at an event.
#[derive(Debug, Clone)]
pub struct Hook {
    /// When.
    pub event: HookEvent,
    /// Which of the event's it is, from 1. It is named by this: its command may hold what nobody should read.
    pub number: usize,
    /// What is run, with `sh -c`.
    pub command: String,
    /// The tools whose calls it is run for; `None`: all of them.
    pub tools: Option<Vec<String>>,
    /// How long it may run.
    pub timeout: Duration,
}

impl Hook {
    fn is_for(&self, what: &HookBody) -> bool {
        let chosen = |tool: &str| self.tools.as_ref().is_none_or(|tools| tools.iter().any(|name| name == tool));
        self.event == what.event() && what.tool().is_none_or(chosen)
    }

    fn broken(&self, why: Why) -> Broken {
        Broken { event: self.event.name(), number: self.number, why }
    }
}

/// Says whether a command may be started as things are at this moment.
pub trait Vouch: Send + Sync + 'static {
    /// It looks at files, so it may block.
    ///
    /// # Errors
    /// Why not, as a sentence.
    fn vouch(&self, command: &str) -> Result<(), String>;
}

/// The hooks of a session. Where there are none, no event costs anything.
#[derive(Clone, Default)]
pub struct Hooks(Option<Arc<Set>>);

struct Set {
    hooks: Vec<Hook>,
    env: Vec<(OsString, OsString)>,
    vouch: Arc<dyn Vouch>,
}

/// What the hooks of a guarding event say.
pub(crate) enum Judged {
    Passed,
    /// With the hook's reason.
    Blocked(String),
    /// A hook failed.
    Broken(Broken),
    /// The turn was ended meanwhile.
    Cancelled,
}

/// What came of guarding an answer.
pub(crate) enum Guarded {
    Passed,
    /// The model has heard why, and is asked again.
    SentBack,
    Failed,
    Aborted,
}

/// A hook that failed.
#[derive(Debug, thiserror::Error)]
#[error("hook {number} of hooks.{event} {why} (gjc config get hooks.{event} shows it)")]
pub(crate) struct Broken {
    event: &'static str,
    number: usize,
    why: Why,
}

#[derive(Debug, thiserror::Error)]
enum Why {
    #[error("was not run: {0}")]
    NotVouched(String),
    #[error("could not be started: {0}")]
    NotStarted(String),
    #[error("ended with exit code {0}")]
    Code(i32),
    #[error("was killed by signal {0}")]
    Signal(i32),
    #[error("did not end within {0:?}")]
    TimedOut(Duration),
    #[error("printed more than {LONGEST} bytes")]
    TooMuch,
    #[error("did not answer with one JSON object as in {0}")]
    NoAnswer(&'static str),
    #[error("was ended with the turn")]
    Cancelled,
}

impl Hooks {
    /// These, in this order, with this whole environment.
    #[must_use]
    pub fn new(hooks: Vec<Hook>, env: Vec<(OsString, OsString)>, vouch: Arc<dyn Vouch>) -> Self {
        Self((!hooks.is_empty()).then(|| Arc::new(Set { hooks, env, vouch })))
    }

    /// Those of an event, if it has any.
    fn of(&self, event: HookEvent) -> Option<Arc<Set>> {
        self.0.as_ref().filter(|set| set.hooks.iter().any(|hook| hook.event == event)).cloned()
    }

    /// Whether an event has any.
    pub(crate) fn any(&self, event: HookEvent) -> bool {
        self.of(event).is_some()
    }
}

impl Set {
    /// Asks hooks that guard, until one blocks.
    async fn judge(&self, call: HookCall, cwd: &Path, cancel: &CancellationToken) -> Judged {
        for hook in self.hooks.iter().filter(|hook| hook.is_for(&call.what)) {
            let verdict = self.ask(hook, &call, cwd, cancel).await.and_then(|answer| {
                let form = r#"{"decision":"allow"} or {"decision":"block","reason":"…"}"#;
                serde_json::from_slice::<HookVerdict>(&answer).map_err(|_| Why::NoAnswer(form))
            });
            match verdict {
                Ok(HookVerdict { decision: HookDecision::Allow, .. }) => {}
                Ok(HookVerdict { decision: HookDecision::Block, reason }) => {
                    return Judged::Blocked(reason.unwrap_or_else(|| "it gives no reason".into()));
                }
                Err(Why::Cancelled) => return Judged::Cancelled,
                Err(why) => return Judged::Broken(hook.broken(why)),
            }
        }
        Judged::Passed
    }

    /// Tells hooks that observe. Gives back what each wants to add; of those that the turn's end has ended, nothing.
    async fn tell(&self, call: HookCall, cwd: &Path, cancel: &CancellationToken) -> Vec<Result<String, Broken>> {
        let mut heard = Vec::new();
        for hook in self.hooks.iter().filter(|hook| hook.is_for(&call.what)) {
            let answered = self.ask(hook, &call, cwd, cancel).await.and_then(|answer| match call.what {
                HookBody::PostToolResponse { .. } if !answer.trim_ascii().is_empty() => {
                    serde_json::from_slice::<HookAddition>(&answer).map_err(|_| Why::NoAnswer(r#"{"add":"…"}"#))
                }
                _ => Ok(HookAddition::default()),
            });
            match answered {
                Ok(HookAddition { add }) => heard.extend(add.filter(|text| !text.trim().is_empty()).map(Ok)),
                Err(Why::Cancelled) => break,
                Err(why) => heard.push(Err(hook.broken(why))),
            }
        }
        heard
    }

    /// Runs a hook to its end; gives back what it printed.
    async fn ask(&self, hook: &Hook, call: &HookCall, cwd: &Path, cancel: &CancellationToken) -> Result<Vec<u8>, Why> {
        let (vouch, command) = (Arc::clone(&self.vouch), hook.command.clone());
        tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(Why::Cancelled),
            vouched = tokio::task::spawn_blocking(move || vouch.vouch(&command)) => {
                vouched.map_err(|error| Why::NotStarted(error.to_string()))?.map_err(Why::NotVouched)?;
            }
        }
        let mut told = serde_json::to_vec(call).map_err(|error| Why::NotStarted(error.to_string()))?;
        told.push(b'\n');
        let mut spawn = Spawn::new("sh", cwd);
        // What it says on standard error is talk; it would end up in the answer.
        spawn.args = vec!["-c".into(), format!("exec 2>/dev/null\n{}", hook.command).into()];
        spawn.env.clone_from(&self.env);
        spawn.env.push((MARK.into(), hook.event.name().into()));
        spawn.stdin = Stdin::Bytes(told);
        spawn.timeout = Some(hook.timeout);
        spawn.cap = OutputCap { keep_head: LONGEST, keep_tail: 0 };
        let ran = gjc_process::run(spawn, cancel.clone(), None).await;
        let finished = ran.map_err(|error| Why::NotStarted(error.to_string()))?;
        match finished.exit {
            // Nobody reads what some of them print, however long it is.
            Exit::Code(0) if finished.output.truncated && hook.event.is_answered() => Err(Why::TooMuch),
            Exit::Code(0) => Ok(finished.output.head),
            Exit::Code(code) => Err(Why::Code(code)),
            Exit::Signal(signal) => Err(Why::Signal(signal)),
            Exit::TimedOut => Err(Why::TimedOut(hook.timeout)),
            Exit::Cancelled => Err(Why::Cancelled),
        }
    }
}

/// Asks hooks that guard while the actor goes on: as the session is at the moment in which it was made.
pub(crate) struct Guards {
    hooks: Hooks,
    /// As a call of it is told; `what` is another each time.
    session: String,
    file: Option<String>,
    label: LabelInfo,
    cwd: PathBuf,
    cancel: CancellationToken,
}

impl Guards {
    /// Whether the session may be left.
    ///
    /// # Errors
    /// Why not.
    pub(crate) async fn may(&self, what: HookBody) -> Result<(), Refusal> {
        let Some(set) = self.hooks.of(what.event()) else { return Ok(()) };
        let (session, file, cwd) = (self.session.clone(), self.file.clone(), self.cwd.display().to_string());
        let call = HookCall { session, cwd, file, label: self.label, what };
        let hint = "change the hook, or do what it asks for";
        match set.judge(call, &self.cwd, &self.cancel).await {
            Judged::Passed => Ok(()),
            Judged::Blocked(reason) => {
                Err(Refusal::new("hook_blocked", format!("a hook keeps this session open: {reason}")).hint(hint))
            }
            Judged::Broken(broken) => {
                Err(Refusal::new("hook_blocked", format!("this session stays open: {broken}")).hint(hint))
            }
            Judged::Cancelled => Err(taken_back()),
        }
    }
}

/// The answer to a switch that was taken back.
pub(crate) fn taken_back() -> Refusal {
    Refusal::new("aborted", "the switch was taken back; nothing has changed")
}

impl<F: Fs> Actor<F> {
    /// Who is asked whether the session may be left.
    pub(crate) fn guards(&self, cancel: CancellationToken) -> Guards {
        Guards {
            hooks: self.config.hooks.clone(),
            session: self.session.id().to_string(),
            file: self.session.log().file_path().map(|path| path.display().to_string()),
            label: LabelInfo::from(self.session.labels().label()),
            cwd: self.config.cwd.clone(),
            cancel,
        }
    }

    /// What hooks that guard say of each of these.
    pub(crate) async fn judge(&mut self, what: Vec<HookBody>) -> Vec<Judged> {
        let Some(set) = what.first().and_then(|first| self.config.hooks.of(first.event())) else {
            return what.iter().map(|_| Judged::Passed).collect();
        };
        let (calls, cwd, cancel) = self.calls_of(what);
        let judge = async move {
            let each = calls.into_iter().map(|call| set.judge(call, &cwd, &cancel));
            stream::iter(each.collect::<Vec<_>>()).buffered(SIDE_BY_SIDE).collect().await
        };
        self.attend(judge).await
    }

    /// Tells hooks that observe of each of these; gives back what they want to add to each.
    async fn tell(&mut self, what: Vec<HookBody>) -> Vec<Vec<String>> {
        let Some(set) = what.first().and_then(|first| self.config.hooks.of(first.event())) else { return Vec::new() };
        let (calls, cwd, cancel) = self.calls_of(what);
        let tell = async move {
            let each = calls.into_iter().map(|call| set.tell(call, &cwd, &cancel));
            stream::iter(each.collect::<Vec<_>>()).buffered(SIDE_BY_SIDE).collect::<Vec<_>>().await
        };
        let mut added = Vec::new();
        for heard in self.attend(tell).await {
            let (texts, broken): (Vec<_>, Vec<_>) = heard.into_iter().partition(Result::is_ok);
            for broken in broken.into_iter().filter_map(Result::err) {
                self.events.emit(EventBody::Notice { text: broken.to_string() });
            }
            added.push(texts.into_iter().flatten().collect());
        }
        added
    }

    fn calls_of(&self, what: Vec<HookBody>) -> (Vec<HookCall>, PathBuf, CancellationToken) {
        let call = |what: HookBody| HookCall {
            session: self.session.id().to_string(),
            cwd: self.config.cwd.display().to_string(),
            file: self.session.log().file_path().map(|path| path.display().to_string()),
            label: LabelInfo::from(self.session.labels().label()),
            what,
        };
        (what.into_iter().map(call).collect(), self.config.cwd.clone(), self.cancel.clone())
    }

    /// Tells hooks of results. What they add follows the results as messages of their own: a result is in the log before any
    /// program hears of it, and stays what it was.
    pub(crate) async fn tell_results(&mut self, results: Vec<HookBody>) -> Result<(), NotAdmitted> {
        let which: Vec<String> = results.iter().map(named).collect();
        for (which, texts) in which.iter().zip(self.tell(results).await) {
            for text in texts {
                self.admit_words(&format!("A hook adds to the result of {which}:"), &text)?;
            }
        }
        Ok(())
    }

    /// Asks hooks whether an answer may be the answer of the turn. `held`: how many of the turn were held back.
    pub(crate) async fn guard_answer(
        &mut self,
        said: &AssistantMessage,
        held: &mut u32,
    ) -> Result<Guarded, NotAdmitted> {
        let texts = said.content.iter().filter_map(|block| match block {
            Block::Text { text, .. } => Some(text.as_str()),
            _ => None,
        });
        let text = texts.collect::<Vec<_>>().join("\n");
        if text.trim().is_empty() || !self.config.hooks.any(HookEvent::PreOutput) {
            return Ok(Guarded::Passed);
        }
        let hint = Some("change the hook, or say how the answer can pass".to_owned());
        match self.judge(vec![HookBody::PreOutput { text }]).await.into_iter().next() {
            Some(Judged::Passed) | None => Ok(Guarded::Passed),
            Some(Judged::Cancelled) => Ok(Guarded::Aborted),
            Some(Judged::Broken(broken)) => {
                self.fail("output_blocked", format!("the answer is held back: {broken}"), hint);
                Ok(Guarded::Failed)
            }
            Some(Judged::Blocked(reason)) => {
                self.admit_words("A hook holds this answer back; say it again so that it can pass:", &reason)?;
                *held += 1;
                if *held <= HELD_MOST {
                    self.events.emit(EventBody::Withheld);
                    return Ok(Guarded::SentBack);
                }
                self.fail("output_blocked", format!("a hook has held the answer back {held} times"), hint);
                Ok(Guarded::Failed)
            }
        }
    }

    /// Tells hooks how a turn has ended. A person who has ended the turn can end these too.
    pub(crate) async fn tell_turn_end(&mut self, end: TurnEnd) {
        if !self.closing && self.config.hooks.any(HookEvent::TurnEnd) {
            self.cancel = CancellationToken::new();
            self.tell(vec![HookBody::TurnEnd { end }]).await;
        }
    }

    /// Tells hooks of which session this one has taken the place.
    pub(crate) async fn tell_arrival(&mut self, reason: SwitchReason, previous: OtherSession) {
        self.cancel = CancellationToken::new();
        self.tell(vec![HookBody::SessionSwitch { reason, previous: previous.clone() }]).await;
        if reason == SwitchReason::Branch {
            self.tell(vec![HookBody::SessionBranch { previous }]).await;
        }
    }

    /// Admits what a hook says. Each line is marked: none can pass for ours.
    fn admit_words(&mut self, heading: &str, text: &str) -> Result<(), NotAdmitted> {
        let quoted: Vec<String> = text.trim().lines().map(|line| format!("> {line}")).collect();
        let body = Body::CustomMessage {
            custom_type: "gjc.hook".into(),
            content: Content::Text(format!("{heading}\n{}", quoted.join("\n"))),
            display: true,
            details: None,
        };
        self.admit_message(Labelled::new(Fact::new(body), LABEL)).map(drop)
    }
}

/// A call by its place in the answer, for the model.
fn named(what: &HookBody) -> String {
    match what {
        HookBody::PostToolResponse { op, tool, .. } => format!("call {} ({tool})", u32::from(op.call) + 1),
        other => other.event().name().into(),
    }
}
