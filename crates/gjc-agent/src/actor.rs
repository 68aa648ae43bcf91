//! The actor: one task that owns the session, takes commands, and answers each exactly once.

use crate::admit::Session;
use crate::approve::Allowed;
use crate::asks::Asks;
use crate::boundary::Prompting;
use crate::choice::{Changes, Choosing, Roles};
use crate::config::Config;
use crate::events::Events;
use crate::handle::{First, Inbox, Last, Mail, SessionHandle};
use crate::jobs::{Ask, EndWithActor, JobTable};
use crate::sessions::{OneSession, Sessions};
use crate::shell::{Executed, PersonsCommand};
use crate::storage::due;
use crate::switch::{Arrival, Switch, found};
use crate::turn::Beginning;
use futures_util::StreamExt;
use futures_util::stream::FuturesOrdered;
use gjc_entry::BoxFuture;
use gjc_llm::Assembler;
use gjc_log::Storage;
use gjc_log::fs::Fs;
use gjc_protocol::{Command, Health as Told, Outcome, StepName, TurnEnd};
use gjc_tools::Artifacts;
use serde_json::json;
use std::collections::VecDeque;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

/// The actor's state. Its turn loop is in `turn`, its calls in `calls`.
pub(crate) struct Actor<F: Fs> {
    pub(crate) session: Session<F>,
    pub(crate) config: Config,
    pub(crate) events: Events,
    pub(crate) first: Arc<First>,
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
    pub(crate) finishing: bool,
    /// Every face is gone, and all that they sent was read.
    pub(crate) gone: bool,
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
    pub(crate) mailbox: Inbox,
    /// Who gives other sessions.
    pub(crate) sessions: Arc<dyn Sessions<F>>,
    /// The way to another session, and what was said to that already.
    pub(crate) switch: Option<Switch<F>>,
    pub(crate) deferred: VecDeque<Mail>,
    /// How this session came to be the one that is open, until hooks have heard it.
    pub(crate) arrival: Option<Arrival>,
    /// Set when the session is left for another.
    pub(crate) left: CancellationToken,
    pub(crate) storage: watch::Receiver<Storage>,
    pub(crate) told: Told,
    /// While storage fails: when it is tried again, and how long was waited for that.
    pub(crate) again: Option<(BoxFuture<'static, ()>, Duration)>,
    /// Who answers for what.
    pub(crate) roles: Roles,
    /// What is used from the next request on.
    pub(crate) changes: Changes,
    /// Models that are being looked for.
    pub(crate) choosing: FuturesOrdered<Choosing>,
    /// Who asked for the end; answered when everything is done.
    pub(crate) closers: Vec<oneshot::Sender<Outcome>>,
}

/// What comes after a session.
#[derive(PartialEq, Eq)]
enum Next {
    Another,
    End,
}

/// Starts a session on the current runtime. `resumed`: whether it had entries before.
pub fn start<F: Fs>(
    session: Session<F>,
    config: Config,
    resumed: bool,
) -> (SessionHandle, tokio::task::JoinHandle<()>) {
    start_among(session, config, resumed, Arc::new(OneSession))
}

/// The same among others, which it can be left for.
pub fn start_among<F: Fs>(
    session: Session<F>,
    config: Config,
    resumed: bool,
    sessions: Arc<dyn Sessions<F>>,
) -> (SessionHandle, tokio::task::JoinHandle<()>) {
    let events = Events::default();
    let first = Arc::new(First::of(&session, &config, resumed));
    let last = Last(events.clone());
    let (handle, mailbox) = SessionHandle::new(events.clone(), Arc::clone(&first));
    let actor = Actor::new(session, config, events, first, mailbox, sessions, 0);
    let task = tokio::spawn(async move {
        let _last = last;
        actor.run().await;
    });
    (handle, task)
}

impl<F: Fs> Actor<F> {
    /// An actor that has done nothing yet. `asked`: how often something was asked before it.
    pub(crate) fn new(
        session: Session<F>,
        config: Config,
        events: Events,
        first: Arc<First>,
        mailbox: Inbox,
        sessions: Arc<dyn Sessions<F>>,
        asked: u64,
    ) -> Self {
        let storage = session.log().storage();
        let asks = Asks::new(events.clone(), config.answers, asked);
        let (executed, executions) = mpsc::unbounded_channel();
        let (jobs, job_asks) = JobTable::new(events.clone(), Arc::clone(&config.env.clock));
        let roles = Roles::of(&config);
        Self {
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
            mailbox,
            sessions,
            switch: None,
            deferred: VecDeque::new(),
            arrival: None,
            left: CancellationToken::new(),
            storage,
            told: Told::Ok,
            again: None,
            roles,
            changes: Changes::default(),
            choosing: FuturesOrdered::new(),
            closers: Vec::new(),
        }
    }

    /// Lives through sessions until one of them ends.
    async fn run(mut self) {
        while self.live().await == Next::Another {
            self = self.enter().await;
        }
        self.end().await;
    }

    /// Works until the session ends, or is left for another.
    async fn live(&mut self) -> Next {
        let begun = match self.complete() {
            Ok(()) => self.recover().await,
            Err(failure) => Err(failure),
        };
        let begun = begun.and_then(|()| self.deliver_interrupted());
        if let Err(failure) = begun {
            self.fail("not_stored", failure.to_string(), None);
        }
        self.tell_hooks_of_arrival().await;
        self.step = StepName::Idle;
        while !self.closing {
            if self.leaves() {
                if self.leave().await {
                    return Next::Another;
                }
                continue;
            }
            if let Err(failure) = self.admit_executed() {
                self.fail("not_stored", failure.to_string(), None);
            }
            while self.switch.is_none()
                && let Some((command, reply)) = self.deferred.pop_front()
            {
                self.command(command, reply);
            }
            // What came while the session was neither idle nor in a turn.
            if let Some(prompt) = self.take_queued(|_| true) {
                self.turns(Beginning::Prompt(prompt)).await;
                continue;
            }
            // After an abort or a failure nobody waits for what still runs.
            if self.finishing && self.switch.is_none() && !matches!(self.end, None | Some(TurnEnd::Done)) {
                break;
            }
            if self.has_arrivals() {
                self.hear_arrivals().await;
                continue;
            }
            if self.finishing && self.switch.is_none() && self.persons.is_none() && !self.waits_for_jobs() {
                break;
            }
            tokio::select! {
                mail = self.mailbox.0.recv(), if !self.gone => match mail {
                    Some((command, reply)) => self.take(command, reply).await,
                    None => self.everybody_left(),
                },
                Some(ask) = self.job_asks.recv() => self.job_asks(ask),
                Some(executed) = self.executions.recv() => self.persons_ended(executed),
                Some(found) = self.choosing.next() => self.chosen(found),
                found = found(&mut self.switch) => self.found(found),
                Ok(()) = self.storage.changed() => self.tell_storage(),
                () = due(&mut self.again) => self.store_again(),
            }
        }
        Next::End
    }

    /// A command while nothing runs.
    async fn take(&mut self, command: Command, reply: oneshot::Sender<Outcome>) {
        match command {
            Command::Prompt { parts, mode } if self.switch.is_none() => {
                if let Some(prompt) = self.accept(parts, mode, reply) {
                    self.turns(Beginning::Prompt(prompt)).await;
                }
            }
            command => self.command(command, reply),
        }
    }

    /// Ends the session and tells everybody who waits for that.
    async fn end(mut self) {
        self.step = StepName::Closing;
        // A session that was ready to take the place is closed too, and what was made for it alone is taken back.
        self.switch = None;
        self.deferred.clear();
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
                found = found(&mut self.switch) => self.found(found),
                Ok(()) = self.storage.changed() => self.tell_storage(),
                () = due(&mut self.again) => self.store_again(),
                done = &mut work => return done,
            }
        }
    }
}
