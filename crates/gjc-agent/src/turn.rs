//! One turn: ask, run calls, ask again, until the model has nothing left to ask; then the turn boundary.

use crate::actor::Actor;
use crate::admit::{Fact, Facts, NotAdmitted};
use crate::boundary::{Act, Boundary, BoundaryStage, Cause, NextTurn, Prompting, STEP, Stage, TURN};
use crate::calls::wants_tools;
use crate::hooks::Guarded;
use crate::limits::likely_limit;
use crate::prepare::mend_arguments;
use crate::request::NoRequest;
use futures_util::StreamExt;
use gjc_context::Repeats;
use gjc_entry::message::ImageData;
use gjc_entry::{AssistantMessage, Block, Body, Content, EntryId, Label, Leaf, Message, UserMessage};
use gjc_flow::Labelled;
use gjc_llm::{Assembler, BlockKind, End, ProviderError, StreamEvent};
use gjc_log::fs::Fs;
use gjc_protocol::{EventBody, HookEvent, LabelInfo, Picture, PromptPart, StepName, TurnEnd};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// What a turn begins with.
pub(crate) enum Beginning {
    /// A person's words.
    Prompt(Prompting),
    /// What arrived, and is in the session already.
    Delivered,
}

/// What came of asking the model.
enum Heard {
    Answer(EntryId, Box<AssistantMessage>),
    Aborted,
    /// Code, sentence, way out.
    Failed(&'static str, String, Option<String>),
}

/// What of a turn may happen once.
#[derive(Default)]
pub(crate) struct Once {
    /// It has waited for the reset of a usage limit.
    pub(crate) waited: bool,
}

impl<F: Fs> Actor<F> {
    /// Runs turns until nothing waits.
    pub(crate) async fn turns(&mut self, first: Beginning) {
        let mut next = Some(first);
        while let Some(beginning) = next.take() {
            self.cancel = CancellationToken::new();
            self.events.emit(EventBody::TurnStarted);
            let cause = match self.turn(beginning).await {
                Ok(cause) => cause,
                Err(failure) => {
                    self.fail("not_stored", failure.to_string(), None);
                    Cause::Failure
                }
            };
            gjc_fp::fp!("agent.turn.over");
            if cause != Cause::Answer && self.config.hooks.any(HookEvent::PreOutput) {
                self.events.emit(EventBody::Withheld);
            }
            let follows = self.turn_boundary(cause).await;
            let end = match cause {
                Cause::Answer | Cause::Results => TurnEnd::Done,
                Cause::Abort => TurnEnd::Aborted,
                Cause::Failure => TurnEnd::Failed,
            };
            self.tell_turn_end(end).await;
            self.step = StepName::Idle;
            self.end = Some(end);
            self.events.emit(EventBody::TurnEnded { end });
            gjc_fp::fp!("agent.turn.told");
            next = match follows {
                _ if self.closing || self.leaves() => None,
                NextTurn::Human => self.take_queued(|_| true).map(Beginning::Prompt),
                NextTurn::Delivered => Some(Beginning::Delivered),
                NextTurn::Idle => None,
            };
        }
    }

    /// Takes in what arrived while nothing ran, and runs turns if the model shall hear of it.
    pub(crate) async fn hear_arrivals(&mut self) {
        self.step = StepName::TurnBoundary;
        let next = self.boundary(&[Stage::Deliveries, Stage::Next], Cause::Answer).await;
        self.step = StepName::Idle;
        match next {
            Ok(NextTurn::Delivered) if !self.closing => self.turns(Beginning::Delivered).await,
            // A prompt that came meanwhile begins the turn.
            Ok(_) => {}
            Err(failure) => self.fail("not_stored", failure.to_string(), None),
        }
    }

    async fn turn(&mut self, beginning: Beginning) -> Result<Cause, NotAdmitted> {
        self.prepare_turn()?;
        if let Beginning::Prompt(prompt) = beginning {
            self.admit_prompt(prompt)?;
        }
        let (mut once, mut held) = (Once::default(), 0);
        loop {
            match self.ask(&mut once).await? {
                Heard::Aborted => return Ok(Cause::Abort),
                Heard::Failed(code, sentence, hint) => {
                    self.fail(code, sentence, hint);
                    return Ok(Cause::Failure);
                }
                Heard::Answer(_, said) if !wants_tools(&said) => match self.guard_answer(&said, &mut held).await? {
                    Guarded::Passed => return Ok(Cause::Answer),
                    Guarded::Aborted => return Ok(Cause::Abort),
                    Guarded::Failed => return Ok(Cause::Failure),
                    Guarded::SentBack => {}
                },
                Heard::Answer(entry, said) => self.run_calls(&entry, &said).await?,
            }
            if self.cancel.is_cancelled() {
                return Ok(Cause::Abort);
            }
            if self.circles()? {
                return Ok(Cause::Failure);
            }
            self.step_boundary().await?;
        }
    }

    /// Whether the model makes one and the same call for ever: then a person is told, and the model by the next request.
    fn circles(&mut self) -> Result<bool, NotAdmitted> {
        let (log, folds) = self.session.parts();
        // Only a source without an index fails here; the log of a writer has one.
        let Some(tool) = folds.get::<Repeats>(log, Leaf::Current).ok().and_then(Repeats::circling) else {
            return Ok(false);
        };
        let what = format!("the same call of \"{tool}\" has had the same result {} times in a row", Repeats::MOST);
        let body = Body::CustomMessage {
            custom_type: "gjc.note.circle".into(),
            content: Content::Text(format!("The turn was ended: {what}.")),
            display: true,
            details: None,
        };
        self.admit_message(Labelled::new(Fact::new(body), Label::PUBLIC_TRUSTED))?;
        let hint = "say what it should do instead, or \"go on\"".to_owned();
        self.fail("circling", format!("{what}; the turn was ended"), Some(hint));
        Ok(true)
    }

    async fn step_boundary(&mut self) -> Result<(), NotAdmitted> {
        self.step = StepName::StepBoundary;
        self.boundary(STEP, Cause::Results).await.map(drop)
    }

    async fn turn_boundary(&mut self, cause: Cause) -> NextTurn {
        self.step = StepName::TurnBoundary;
        self.keep_changes();
        match self.boundary(TURN, cause).await {
            Ok(next) => next,
            Err(failure) => {
                self.fail("not_stored", failure.to_string(), None);
                NextTurn::Idle
            }
        }
    }

    /// The driver: plans each stage in its order and executes the plan. Every stage looks at the situation as the stages
    /// before it have left it.
    async fn boundary(&mut self, stages: &[Stage], cause: Cause) -> Result<NextTurn, NotAdmitted> {
        let mut next = NextTurn::Idle;
        self.admit_executed()?;
        let (mut arrived, mut safe) = (false, false);
        for stage in stages {
            let queue = self.queue.iter().cloned().collect();
            let situation = Boundary { cause, queue, deliveries: self.arrivals(), arrived };
            for act in stage.plan(&situation) {
                match act {
                    Act::AdmitSteering => {
                        if let Some(prompt) = self.take_queued(Prompting::steers) {
                            self.admit_prompt(prompt)?;
                        }
                    }
                    Act::TakeIn(id) => arrived |= self.take_in(&id)?,
                    Act::AwaitDurable => safe = self.make_safe().await,
                    Act::Acknowledge(id) if safe => self.acknowledge(&id),
                    // It stays pending; the session has it, and does not take it in twice.
                    Act::Acknowledge(_) => {}
                    Act::Next(chosen) => next = chosen,
                }
            }
            gjc_fp::fp!("agent.boundary.stage");
        }
        Ok(next)
    }

    fn admit_prompt(&mut self, prompt: Prompting) -> Result<(), NotAdmitted> {
        let trusted = !prompt.parts.iter().any(|part| part.untrusted);
        // What somebody else wrote is not made a person's by standing beside their words.
        let typed = trusted && prompt.parts.iter().any(|part| part.origin == gjc_entry::Origin::Typed);
        let label = Label { trusted, ..Label::PUBLIC_TRUSTED };
        let blocks = prompt.parts.into_iter().flat_map(blocks).collect();
        let at = self.session.now_millis();
        let body =
            Body::Message(Message::User(UserMessage { content: Content::Blocks(blocks), at, extra: Vec::new() }));
        let fact = Fact { typed, ..Fact::new(body) };
        self.admit_message(Labelled::new(fact, label)).map(drop)
    }

    /// Admits messages and shows them to the faces. Gives back the first entry.
    pub(crate) fn admit_message<T: Into<Facts>>(&mut self, facts: Labelled<T>) -> Result<EntryId, NotAdmitted> {
        let before = self.session.labels().label();
        let appended = self.session.admit(facts)?;
        for id in &appended.ids {
            if let Some(message) = self.session.message(id) {
                self.events.emit(EventBody::Message { entry: id.to_string(), message });
            }
        }
        self.tell_notes();
        let after = self.session.labels().label();
        if after != before {
            self.events.emit(EventBody::Label(LabelInfo::from(after)));
        }
        self.tell_storage();
        Ok(appended.ids.into_iter().next().unwrap_or(EntryId::Other("".into())))
    }

    /// Tells faces what a person should know.
    pub(crate) fn tell_notes(&mut self) {
        for text in self.session.take_notes() {
            self.events.emit(EventBody::Notice { text });
        }
    }

    /// One request and its answer.
    async fn ask(&mut self, once: &mut Once) -> Result<Heard, NotAdmitted> {
        match self.ask_patiently(once).await {
            Ok(heard) => Ok(heard),
            Err(NoRequest::NotAdmitted(failure)) => Err(failure),
            Err(failure) => Ok(Heard::Failed("no_request", failure.to_string(), None)),
        }
    }

    /// With retries where they are safe, and what may be done at a provider's limits.
    async fn ask_patiently(&mut self, once: &mut Once) -> Result<Heard, NoRequest> {
        let mut rendered = self.request()?;
        let mut smaller = false;
        if let Some(most) = self.config.provider.largest().filter(|most| rendered.body.len() > *most) {
            smaller = self.leave_pictures_out(rendered.body.len(), most)?;
            if smaller {
                rendered = self.request()?;
            }
        }
        gjc_fp::fp!("agent.request.before");
        let mut attempt = 0;
        loop {
            attempt += 1;
            self.step = StepName::Streaming;
            let (assembler, error) = self.stream(rendered.clone()).await;
            gjc_fp::fp!("agent.answer.heard");
            let Some(error) = error else {
                let end = if self.cancel.is_cancelled() { End::Aborted } else { End::Complete };
                return Ok(self.admit_answer(assembler, end)?);
            };
            if matches!(error, ProviderError::TooLarge(_)) && !smaller {
                smaller = self.leave_pictures_out(rendered.body.len(), likely_limit(rendered.body.len()))?;
                if smaller {
                    rendered = self.request()?;
                    continue;
                }
            }
            if self.waits_for_quota(&error, once).await {
                if self.cancel.is_cancelled() {
                    return Ok(Heard::Aborted);
                }
                // Much may have been changed in hours.
                rendered = self.request()?;
                continue;
            }
            let jitter = u64::try_from(self.session.now_millis()).unwrap_or(0);
            let delay = if error.may_retry() { self.config.retry.delay(attempt, error.after(), jitter) } else { None };
            let Some(delay) = delay else {
                let sentence = error.to_string();
                // What came before the break is kept: it was paid for, and a person has seen it.
                if !assembler.clone().finish(End::Aborted, 0).content.is_empty() {
                    self.admit_answer(assembler, End::Error(sentence.clone()))?;
                }
                return Ok(Heard::Failed(code(&error), sentence, self.way_out(&error)));
            };
            // Whole milliseconds, rounded up: what is told is what is waited, and never less than the provider asked for.
            let delay_ms = u64::try_from(delay.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX);
            self.events.emit(EventBody::Retry { attempt: attempt + 1, delay_ms, why: why(&error) });
            let delay = Duration::from_millis(delay_ms);
            let (sleep, cancel) = (self.config.env.clock.sleep(delay), self.cancel.clone());
            self.attend(async move {
                tokio::select! {
                    () = sleep => {}
                    () = cancel.cancelled() => {}
                }
            })
            .await;
            if self.cancel.is_cancelled() {
                return Ok(Heard::Aborted);
            }
        }
    }

    /// Streams one answer to the faces. The text exists as events only until it is whole.
    async fn stream(&mut self, rendered: gjc_llm::Rendered) -> (Assembler, Option<ProviderError>) {
        self.events.emit(EventBody::MessageStarted);
        self.partial = Some(Assembler::new(self.config.model.clone()));
        let mut kinds: Vec<(u16, BlockKind)> = Vec::new();
        let mut stream = self.config.provider.stream(rendered, self.cancel.clone());
        let mut error = None;
        let cancel = self.cancel.clone();
        loop {
            // An abort ends the stream here, whatever the adapter makes of it.
            let next = async {
                tokio::select! {
                    biased;
                    () = cancel.cancelled() => None,
                    event = stream.next() => event,
                }
            };
            let Some(event) = self.attend(next).await else { break };
            let event = match event {
                Ok(event) => event,
                Err(failure) => {
                    error = Some(failure);
                    break;
                }
            };
            match &event {
                StreamEvent::BlockStart { index, kind } => kinds.push((*index, kind.clone())),
                StreamEvent::Delta { index, text } => {
                    let (index, text) = (*index, text.clone());
                    match kinds.iter().rfind(|(other, _)| *other == index) {
                        Some((_, BlockKind::Text)) => self.events.emit(EventBody::TextDelta { index, text }),
                        Some((_, BlockKind::Thinking)) => self.events.emit(EventBody::ThinkingDelta { index, text }),
                        Some((_, BlockKind::ToolCall { .. })) => self.events.emit(EventBody::CallDelta { index, text }),
                        _ => {}
                    }
                }
                _ => {}
            }
            if let Some(partial) = &mut self.partial {
                partial.push(event);
            }
        }
        let assembler = self.partial.take().unwrap_or_else(|| Assembler::new(self.config.model.clone()));
        (assembler, error)
    }

    fn admit_answer(&mut self, assembler: Assembler, end: End) -> Result<Heard, NotAdmitted> {
        let aborted = end == End::Aborted;
        let mut said = assembler.finish(end, self.session.now_millis());
        if aborted && said.content.is_empty() {
            return Ok(Heard::Aborted);
        }
        // Where no price is known, what a script says of its cost stays.
        if let Some(cost) = self.config.prices.cost(&self.config.model, self.config.tier, &said.usage) {
            said.usage.cost = cost;
        }
        let usage = said.usage.clone();
        // The answer is made of the session's own context: it bears the session's label.
        let label = self.session.labels().label();
        let fact = Labelled::new(Fact::new(Body::Message(Message::Assistant(said.clone()))), label);
        let entry = self.admit_message(fact)?;
        // The calls run with what the model wrote, whole; only what no reader of JSON takes is mended here too.
        mend_arguments(&mut said.content);
        self.events.emit(EventBody::Usage { usage });
        Ok(if aborted { Heard::Aborted } else { Heard::Answer(entry, Box::new(said)) })
    }

    pub(crate) fn fail(&mut self, code: &str, sentence: String, hint: Option<String>) {
        self.events.emit(EventBody::Error { code: code.into(), sentence, hint });
    }
}

/// A piece of a prompt as content.
fn blocks(part: PromptPart) -> impl Iterator<Item = Block> {
    let text = (!part.text.is_empty()).then(|| Block::text(part.text, part.origin));
    let picture = part.picture.map(|Picture { mime, data }| Block::Image {
        data: ImageData::Inline(data),
        mime,
        origin: Some(part.origin),
        extra: Vec::new(),
    });
    text.into_iter().chain(picture)
}

/// What happened, without the advice for a person: gjc itself is about to try again.
fn why(error: &ProviderError) -> String {
    match error {
        ProviderError::Retry { why, .. } | ProviderError::Cut { why, .. } => why.clone(),
        other => other.to_string(),
    }
}

/// The stable code of a provider's failure.
fn code(error: &ProviderError) -> &'static str {
    match error {
        ProviderError::Retry { .. } => "provider_unavailable",
        // What makes a conversation shorter helps in both cases.
        ProviderError::Overflow(_) | ProviderError::TooLarge(_) => "context_overflow",
        ProviderError::Auth { .. } => "provider_auth",
        ProviderError::Quota { .. } => "provider_quota",
        ProviderError::BadRequest(_) => "provider_bad_request",
        ProviderError::Cut { .. } => "answer_cut",
        _ => "provider",
    }
}
