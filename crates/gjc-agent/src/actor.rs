//! The actor: one task that owns the session, takes commands, and answers each exactly once.

use crate::admit::{NotAdmitted, Session};
use crate::approve::Allowed;
use crate::asks::Asks;
use crate::boundary::Prompting;
use crate::choice::{Changes, Choosing, Roles};
use crate::config::Config;
use crate::events::{Events, Subscription};
use crate::jobs::{Ask, EndWithActor, JobTable};
use crate::shell::{Executed, PersonsCommand};
use crate::shown::shown_as;
use crate::turn::Beginning;
use futures_util::stream::FuturesOrdered;
use futures_util::{FutureExt, StreamExt};
use gjc_context::{ContextMessage, Totals, select};
use gjc_entry::{Body, BoxFuture, EntryId, Leaf, Message, Origin};
use gjc_flow::LabelWatch;
use gjc_llm::{Assembler, End};
use gjc_log::fs::Fs;
use gjc_log::{Durability, Health, Refused, Storage, durable, written};
use gjc_protocol::{
    Command, EventBody, Health as Told, LabelInfo, Outcome, Partial, PromptMode, PromptPart, Queued, Refusal, Snapshot,
    StepName, TurnEnd,
};
use gjc_tools::Artifacts;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::future::Future;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

/// How long the actor waits before it tries again to store what could not be stored: twice as long each time, up to the
/// second, until it succeeds. Each new entry tries at once.
const WRITE_AGAIN: Duration = Duration::from_millis(250);
const WRITE_AGAIN_MOST: Duration = Duration::from_secs(15);

type Mail = (Command, oneshot::Sender<Outcome>);

/// A face's end of a session.
#[derive(Clone)]
pub struct SessionHandle {
    mailbox: mpsc::Sender<Mail>,
    events: Events,
    first: Arc<First>,
}

/// What a face hears first, but for the label, which may have changed since.
struct First {
    home: Mutex<Home>,
    cwd: String,
    resumed: bool,
    labels: LabelWatch,
}

/// Where a session is; a rescue changes it.
#[derive(Clone)]
struct Home {
    id: String,
    file: Option<String>,
}

impl Home {
    fn of<F: Fs>(session: &Session<F>) -> Self {
        let file = session.log().file_path().map(|path| path.display().to_string());
        Self { id: session.id().to_string(), file }
    }
}

impl First {
    fn home(&self) -> MutexGuard<'_, Home> {
        self.home.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SessionHandle {
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
    pub fn cwd(&self) -> &Path {
        Path::new(&self.first.cwd)
    }

    /// Begins to read events: first `Session`, then everything from now on.
    #[must_use]
    pub fn subscribe(&self) -> Subscription {
        let First { cwd, resumed, labels, .. } = &*self.first;
        self.events.subscribe_with(|| {
            let Home { id, file } = self.first.home().clone();
            let label = LabelInfo::from(labels.now().0);
            EventBody::Session { id, cwd: cwd.clone(), file, resumed: *resumed, label }
        })
    }
}

/// The answer of a session that is closed.
#[must_use]
pub fn closed() -> Outcome {
    Outcome::Refused(Refusal::new("closed", "the session is closed").hint("resume it: gjc --resume <id>"))
}

/// The actor's state. Its turn loop is in `turn`, its calls in `calls`.
pub(crate) struct Actor<F: Fs> {
    pub(crate) session: Session<F>,
    pub(crate) config: Config,
    pub(crate) events: Events,
    first: Arc<First>,
    pub(crate) queue: VecDeque<Prompting>,
    /// What waits for a person.
    pub(crate) asks: Asks,
    /// What they have allowed for as long as this process lives.
    pub(crate) allowed: Allowed,
    pub(crate) cancel: CancellationToken,
    pub(crate) partial: Option<Assembler>,
    pub(crate) step: StepName,
    pub(crate) closing: bool,
    /// How the last turn ended.
    pub(crate) end: Option<TurnEnd>,
    /// Ends when idle.
    finishing: bool,
    /// Every face is gone, and all that they sent was read.
    gone: bool,
    /// Numbers of whole outputs.
    pub(crate) artifacts: Artifacts,
    /// A person's command that runs, and those that have ended and are not in the session yet.
    pub(crate) persons: Option<PersonsCommand>,
    pub(crate) heard: Vec<Executed>,
    pub(crate) executed: mpsc::UnboundedSender<Executed>,
    pub(crate) executions: mpsc::UnboundedReceiver<Executed>,
    /// What runs beside turns, and what it asks for.
    pub(crate) jobs: JobTable,
    job_asks: mpsc::UnboundedReceiver<Ask>,
    /// That the end waits for jobs was said.
    pub(crate) told_to_wait: bool,
    _end_jobs: EndWithActor,
    mailbox: Inbox,
    storage: watch::Receiver<Storage>,
    told: Told,
    /// While storage fails: when it is tried again, and how long was waited for that.
    again: Option<(BoxFuture<'static, ()>, Duration)>,
    /// Who answers for what.
    pub(crate) roles: Roles,
    /// What is used from the next request on.
    pub(crate) changes: Changes,
    /// Models that are being looked for.
    pub(crate) choosing: FuturesOrdered<Choosing>,
    /// Who asked for the end; answered when everything is done.
    closers: Vec<oneshot::Sender<Outcome>>,
}

/// Starts a session on the current runtime. `resumed`: whether it had entries before.
pub fn start<F: Fs>(
    session: Session<F>,
    config: Config,
    resumed: bool,
) -> (SessionHandle, tokio::task::JoinHandle<()>) {
    let (mailbox, inbox) = mpsc::channel(64);
    let events = Events::default();
    let first = Arc::new(First {
        home: Mutex::new(Home::of(&session)),
        cwd: config.cwd.display().to_string(),
        resumed,
        labels: session.labels().watch(),
    });
    let last = Last(events.clone());
    let handle = SessionHandle { mailbox, events: events.clone(), first: Arc::clone(&first) };
    let storage = session.log().storage();
    let asks = Asks::new(events.clone(), config.answers);
    let (executed, executions) = mpsc::unbounded_channel();
    let (jobs, job_asks) = JobTable::new(events.clone(), Arc::clone(&config.env.clock));
    let roles = Roles::of(&config);
    let actor = Actor {
        session,
        config,
        asks,
        allowed: Allowed::default(),
        events,
        first,
        queue: VecDeque::new(),
        cancel: CancellationToken::new(),
        partial: None,
        step: StepName::Idle,
        closing: false,
        end: None,
        finishing: false,
        gone: false,
        artifacts: Artifacts::new(None),
        persons: None,
        heard: Vec::new(),
        executed,
        executions,
        _end_jobs: jobs.end_with_actor(),
        jobs,
        job_asks,
        told_to_wait: false,
        mailbox: Inbox(inbox),
        storage,
        told: Told::Ok,
        again: None,
        roles,
        changes: Changes::default(),
        choosing: FuturesOrdered::new(),
        closers: Vec::new(),
    };
    let task = tokio::spawn(async move {
        let _last = last;
        actor.run().await;
    });
    (handle, task)
}

/// The actor's end of the mailbox. Whichever way the actor ends, what still comes in is answered.
///
/// A receiver that is dropped throws away what lies there, and no more: a sender that has been let in, and lays its
/// command down a moment later, would keep it alive, and its face waiting, for as long as anybody holds a handle.
struct Inbox(mpsc::Receiver<Mail>);

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
struct Last(Events);

impl Drop for Last {
    fn drop(&mut self) {
        self.0.emit(EventBody::Closed);
    }
}

impl<F: Fs> Actor<F> {
    async fn run(mut self) {
        let begun = match self.complete() {
            Ok(()) => self.recover().await,
            Err(failure) => Err(failure),
        };
        let begun = begun.and_then(|()| self.deliver_interrupted());
        if let Err(failure) = begun {
            self.fail("not_stored", failure.to_string(), None);
        }
        self.step = StepName::Idle;
        while !self.closing {
            if let Err(failure) = self.admit_executed() {
                self.fail("not_stored", failure.to_string(), None);
            }
            // What came while the session was neither idle nor in a turn.
            if let Some(prompt) = self.take_queued(|_| true) {
                self.turns(Beginning::Prompt(prompt)).await;
                continue;
            }
            // After an abort or a failure nobody waits for what still runs.
            if self.finishing && !matches!(self.end, None | Some(TurnEnd::Done)) {
                break;
            }
            if self.has_arrivals() {
                self.hear_arrivals().await;
                continue;
            }
            if self.finishing && self.persons.is_none() && !self.waits_for_jobs() {
                break;
            }
            tokio::select! {
                mail = self.mailbox.0.recv(), if !self.gone => match mail {
                    Some((Command::Prompt { parts, mode }, reply)) => {
                        if let Some(prompt) = self.accept(parts, mode, reply) {
                            self.turns(Beginning::Prompt(prompt)).await;
                        }
                    }
                    Some((command, reply)) => self.command(command, reply),
                    None => self.everybody_left(),
                },
                Some(ask) = self.job_asks.recv() => self.job_asks(ask),
                Some(executed) = self.executions.recv() => self.persons_ended(executed),
                Some(found) = self.choosing.next() => self.chosen(found),
                Ok(()) = self.storage.changed() => self.tell_storage(),
                () = due(&mut self.again) => self.store_again(),
            }
        }
        self.step = StepName::Closing;
        self.keep_changes();
        let ended = self.end_jobs().await;
        gjc_fp::fp!("agent.close.before");
        // What would be gone with this process goes to a new file, whether or not somebody could be asked.
        if !self.make_durable().await && matches!(self.rescue(), Outcome::Done { .. }) {
            self.make_durable().await;
        }
        gjc_fp::fp!("agent.close.durable");
        // The log is closed, and its lock free, before anybody is told so.
        drop(self.session);
        gjc_fp::fp!("agent.close.dropped");
        let mut value = json!({
            "stored": self.told == Told::Ok,
            "end": self.end,
            "unsaid": self.queue.iter().map(Prompting::text).collect::<Vec<_>>(),
        });
        if !ended.is_empty() {
            value["jobs"] = ended.into();
        }
        for closer in self.closers {
            let _ = closer.send(Outcome::Done { value: value.clone() });
        }
    }

    /// Answers a prompt; gives it back when it may begin.
    fn accept(&self, parts: Vec<PromptPart>, mode: PromptMode, reply: oneshot::Sender<Outcome>) -> Option<Prompting> {
        let prompt = Prompting { parts, mode };
        let mut pictures = prompt.parts.iter().filter_map(|part| part.picture.as_ref());
        let empty = prompt.text().trim().is_empty() && pictures.clone().next().is_none();
        let human =
            prompt.parts.iter().all(|part| matches!(part.origin, Origin::Typed | Origin::Paste | Origin::Media));
        let outcome = if self.closing || self.step == StepName::Closing {
            closed()
        } else if empty {
            Outcome::Refused(Refusal::new("empty_prompt", "the prompt is empty").hint("say something"))
        } else if !human {
            let why = "a prompt's origin must be typed, paste or media";
            Outcome::Refused(Refusal::new("bad_origin", why))
        } else if let Some(refusal) = pictures.find_map(|picture| gjc_tools::check_picture(picture).err()) {
            Outcome::Refused(refusal)
        } else {
            Outcome::Accepted
        };
        let accepted = matches!(outcome, Outcome::Accepted);
        let _ = reply.send(outcome);
        gjc_fp::fp!("agent.prompt.replied");
        accepted.then_some(prompt)
    }

    /// Any command but a prompt that begins a turn. Never waits.
    fn command(&mut self, command: Command, reply: oneshot::Sender<Outcome>) {
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
            Command::Rescue => self.rescue(),
            Command::Snapshot => match serde_json::to_value(self.snapshot()) {
                Ok(value) => Outcome::Done { value },
                Err(error) => Outcome::Refused(Refusal::new("no_snapshot", error.to_string())),
            },
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
    fn rescue(&mut self) -> Outcome {
        match self.session.rescue(self.config.env.ids.session()) {
            Ok(Some(file)) => {
                let (id, file) = (self.session.id().to_string(), file.display().to_string());
                // Before it is told: a face that comes at this moment hears either.
                *self.first.home() = Home::of(&self.session);
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

    /// Every face is gone: what runs is finished, as a person would want, nobody answers any more, and the session ends.
    fn everybody_left(&mut self) {
        (self.gone, self.finishing) = (true, true);
        self.asks.close();
    }

    /// Waits for something while commands go on being answered.
    pub(crate) async fn attend<T>(&mut self, work: impl Future<Output = T>) -> T {
        tokio::pin!(work);
        loop {
            tokio::select! {
                biased;
                mail = self.mailbox.0.recv(), if !self.gone => match mail {
                    Some((command, reply)) => self.command(command, reply),
                    None => self.everybody_left(),
                },
                Some(ask) = self.job_asks.recv() => self.job_asks(ask),
                Some(executed) = self.executions.recv() => self.persons_ended(executed),
                Some(found) = self.choosing.next() => self.chosen(found),
                Ok(()) = self.storage.changed() => self.tell_storage(),
                () = due(&mut self.again) => self.store_again(),
                done = &mut work => return done,
            }
        }
    }

    /// Waits until everything is as safe as the session's durability asks for while it runs. `false`, and faces are told,
    /// when it cannot be at the moment.
    pub(crate) async fn make_safe(&mut self) -> bool {
        if !self.written_is_safe() {
            return self.make_durable().await;
        }
        let stored = self.becoming_safe();
        let stored = self.attend(stored).await;
        self.tell_storage();
        stored
    }

    /// The same for who cannot hold the actor meanwhile.
    pub(crate) fn becoming_safe(&mut self) -> BoxFuture<'static, bool> {
        let mut storage = self.session.log().storage();
        if self.written_is_safe() {
            let lsn = self.session.want_written();
            Box::pin(async move { written(&mut storage, lsn).await.is_ok() })
        } else {
            let lsn = self.session.want_durable();
            Box::pin(async move { durable(&mut storage, lsn).await.is_ok() })
        }
    }

    /// Whether nothing waits for the disk while the session runs.
    fn written_is_safe(&self) -> bool {
        let log = self.session.log();
        // Until its first sync a file bears a temporary name, also one that a lost session goes on in: killed before that,
        // gjc would lose the session.
        let named = log.on_disk() && {
            let now = self.storage.borrow();
            now.durable.len > 0 && now.durable.file == now.written.file
        };
        log.durability() == Durability::None && named
    }

    /// Waits until everything is durable. `false`, and faces are told, when it cannot be at the moment.
    pub(crate) async fn make_durable(&mut self) -> bool {
        gjc_fp::fp!("agent.durable.before");
        let lsn = self.session.want_durable();
        let mut storage = self.session.log().storage();
        let stored = self.attend(async move { durable(&mut storage, lsn).await }).await;
        gjc_fp::fp!("agent.durable.after");
        self.tell_storage();
        stored.is_ok()
    }

    /// Tries again to store what could not be stored; how it went is told when it is known.
    fn store_again(&mut self) {
        let waited = self.again.take().map_or(WRITE_AGAIN, |(_, waited)| (waited * 2).min(WRITE_AGAIN_MOST));
        self.again = Some((self.config.env.clock.sleep(waited), waited));
        self.session.want_durable();
        self.tell_storage();
    }

    /// Tells faces when storage begins or ceases to fail.
    pub(crate) fn tell_storage(&mut self) {
        let storage = self.storage.borrow_and_update().clone();
        let now = match storage.health {
            // After a failure all is well again once nothing can be lost any more, not when the next write succeeds.
            Health::Ok if self.told != Told::Ok && storage.durable < storage.written => return,
            Health::Ok => Told::Ok,
            Health::Failing(why) => Told::Failing { why: why.to_string() },
        };
        match (&now, &self.again) {
            (Told::Ok, _) => self.again = None,
            (Told::Failing { .. }, None) => {
                self.again = Some((self.config.env.clock.sleep(WRITE_AGAIN), WRITE_AGAIN));
            }
            (Told::Failing { .. }, Some(_)) => {}
        }
        if now != self.told {
            self.told = now.clone();
            self.events.emit(EventBody::Storage(now));
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

    fn snapshot(&mut self) -> Snapshot {
        let messages = self.session.messages();
        let partial = self.partial.clone().map(|assembler| Partial {
            message: to_json(&Message::Assistant(assembler.finish(End::Aborted, self.session.now_millis()))),
        });
        let (log, folds) = self.session.parts();
        let usage = folds.get::<Totals>(log, Leaf::Current).map(|totals| totals.usage.clone()).unwrap_or_default();
        let mode = self.session.mode();
        let (asked, seq) = self.asks.open();
        Snapshot {
            seq,
            session: self.session.id().to_string(),
            cwd: self.config.cwd.display().to_string(),
            file: self.session.log().file_path().map(|path| path.display().to_string()),
            step: self.step,
            label: LabelInfo::from(self.session.labels().label()),
            messages,
            partial,
            asked,
            mode,
            approval: self.config.approval,
            queue: self.queue.iter().map(|prompt| Queued { text: prompt.text(), mode: prompt.mode }).collect(),
            jobs: self.jobs.infos(),
            usage,
            storage: self.told.clone(),
        }
    }
}

/// When it is time to store again; never while storage is well.
async fn due(again: &mut Option<(BoxFuture<'static, ()>, Duration)>) {
    match again {
        Some((sleep, _)) => sleep.await,
        None => std::future::pending().await,
    }
}

impl<F: Fs> Session<F> {
    /// The message of an entry, as JSON.
    pub(crate) fn message(&self, id: &EntryId) -> Option<Value> {
        let entry = self.entry(id)?;
        match &entry.body {
            Body::Message(message) => Some(to_json(message)),
            Body::CustomMessage { custom_type, content, display, details } => {
                let message = ContextMessage::Custom {
                    custom_type: custom_type.clone(),
                    content: content.clone(),
                    display: *display,
                    details: details.clone(),
                    at: entry.at,
                };
                Some(shown_as(|out| message.write(out)))
            }
            _ => None,
        }
    }

    /// The messages of the active path, as JSON.
    fn messages(&self) -> Vec<Value> {
        let Ok((selected, _)) = select(self.log(), Leaf::Current) else { return Vec::new() };
        selected.iter().map(|item| shown_as(|out| item.message.write(out))).collect()
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

fn to_json(message: &Message) -> Value {
    shown_as(|out| message.write(out))
}

#[cfg(test)]
mod tests {
    use super::*;

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
