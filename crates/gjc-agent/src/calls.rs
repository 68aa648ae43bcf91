//! The calls of one answer: plan, decide, permit, run, admit.

use crate::act;
use crate::actor::Actor;
use crate::admit::{Fact, NotAdmitted};
use crate::hooks::{self, Judged};
use crate::mode::not_there;
use crate::shown::shown;
use gjc_context::{INTERRUPTED, Seen};
use gjc_entry::{AssistantMessage, Block, Body, Content, EntryId, Label, Message, OpId, StopReason, ToolResult};
use gjc_flow::{Call, Digest, Labelled, Permits, Verdict, decide_all};
use gjc_llm::INCOMPLETE;
use gjc_log::fs::Fs;
use gjc_protocol::{EventBody, HookBody, HookEvent, StepName, ToolEnd};
use gjc_tools::{Effects, Output, Run, Shown, Tool, ToolCtx, ToolOutput};
use serde_json::Value;
use serde_json::value::RawValue;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// What the model hears of a tool that panicked.
pub(crate) const FAILED_INSIDE: &str = "the tool failed inside; this is a fault of gjc, not of the call";
/// How long tools may take to end once a person has ended the turn.
const PATIENCE: Duration = Duration::from_secs(10);
/// What the model hears of a call that an abort came before.
pub(crate) const NOT_RUN: &str = "not run: the turn was ended before";

/// A call as the model asked for it.
#[derive(Clone)]
struct Asked {
    op: OpId,
    id: String,
    name: String,
    input: Box<RawValue>,
    /// The arguments broke off at the output limit.
    incomplete: bool,
    /// It began, and acts outside: its result bears the name of the act.
    acted: bool,
}

/// A call that may be planned.
struct Ready {
    asked: Asked,
    tool: Arc<dyn Tool>,
    effects: Effects,
    run: Run,
}

/// What a call's task gives back.
struct Ran {
    asked: Asked,
    output: ToolOutput,
    began: Instant,
}

impl<F: Fs> Actor<F> {
    /// Runs the calls of an answer and admits a result for each. Parallel calls run side by side; serial ones in order.
    pub(crate) async fn run_calls(&mut self, entry: &EntryId, said: &AssistantMessage) -> Result<(), NotAdmitted> {
        let calls = said.content.iter().filter_map(|block| match block {
            Block::ToolCall { id, name, arguments, extra } => {
                Some((id, name, arguments, extra.iter().any(|(field, _)| &**field == INCOMPLETE)))
            }
            _ => None,
        });
        let asked: Vec<Asked> = calls
            .enumerate()
            .map(|(index, (id, name, input, incomplete))| Asked {
                op: OpId {
                    session: self.session.id().clone(),
                    entry: entry.clone(),
                    call: u16::try_from(index).unwrap_or(u16::MAX),
                },
                id: id.clone(),
                name: name.clone(),
                input: input.clone(),
                incomplete,
                acted: false,
            })
            .collect();
        let alone = asked.len() == 1;
        let shown = self.session.shown(self.config.answers);
        let mut waiting = asked.into_iter().peekable();
        while let Some(asked) = waiting.next() {
            if self.cancel.is_cancelled() {
                self.refuse(asked, NOT_RUN.into()).await?;
                continue;
            }
            let ready = match self.ready(asked, alone, &shown) {
                Ok(ready) => ready,
                Err(refused) => {
                    self.refuse(refused.0, refused.1).await?;
                    continue;
                }
            };
            let mut batch = vec![ready];
            if batch[0].run == Run::Parallel {
                while let Some(next) = waiting.next_if(|next| self.is_parallel(&next.name, &shown)) {
                    match self.ready(next, alone, &shown) {
                        Ok(ready) => batch.push(ready),
                        Err(refused) => self.refuse(refused.0, refused.1).await?,
                    }
                }
            }
            self.run_batch(batch).await?;
        }
        Ok(())
    }

    fn is_parallel(&self, name: &str, shown: &Shown) -> bool {
        self.config.tools.shown(name, shown).is_some_and(|(_, spec)| spec.run == Run::Parallel)
    }

    fn ready(&self, asked: Asked, alone: bool, shown: &Shown) -> Result<Ready, Box<(Asked, String)>> {
        let found = self.config.tools.shown(&asked.name, shown);
        if asked.op.call == u16::MAX {
            return Err(Box::new((asked, "not run: one message cannot hold so many calls".into())));
        }
        if asked.incomplete {
            let why = "not run: the arguments broke off at the output limit; send less in one call, or split it";
            return Err(Box::new((asked, why.into())));
        }
        let Some((tool, spec)) = found else {
            let why = not_there(&self.config.tools, &asked.name, shown);
            return Err(Box::new((asked, why)));
        };
        if spec.run == Run::Sole && !alone {
            let why = format!("{} must be the only call of its message; call it again alone", asked.name);
            return Err(Box::new((asked, why)));
        }
        Ok(Ready { tool: Arc::clone(tool), effects: spec.effects, run: spec.run, asked })
    }

    /// Plans and decides all calls of a batch, at the join of what all of them read, then runs them side by side.
    async fn run_batch(&mut self, batch: Vec<Ready>) -> Result<(), NotAdmitted> {
        self.step = StepName::Deciding;
        let (mut planned, mut calls): (Vec<Ready>, Vec<Call>) = (Vec::new(), Vec::new());
        for ready in batch {
            let ctx = self.context(ready.asked.op.clone(), act::nowhere());
            // A plan looks at paths, and a path may hang (a dead network folder): never in the actor's own task.
            let (tool, input) = (Arc::clone(&ready.tool), ready.asked.input.clone());
            let planning = tokio::task::spawn_blocking(move || tool.plan(&ctx, &input));
            let cancel = self.cancel.clone();
            let done = self.attend(async move {
                tokio::select! {
                    biased;
                    done = planning => Some(done),
                    () = cancel.cancelled() => None,
                }
            });
            match done.await {
                Some(Ok(Ok(call))) => {
                    planned.push(ready);
                    calls.push(call);
                }
                Some(Ok(Err(refusal))) => self.refuse(ready.asked, refusal.to_string()).await?,
                Some(Err(_)) => self.refuse(ready.asked, FAILED_INSIDE.into()).await?,
                None => self.refuse(ready.asked, NOT_RUN.into()).await?,
            }
        }
        let (planned, calls) = self.past_hooks(planned, calls).await?;
        let decisions = decide_all(&self.config.policy, self.session.labels(), &calls);
        let mut running: JoinSet<Ran> = JoinSet::new();
        let mut names: Vec<(tokio::task::Id, Asked)> = Vec::new();
        for ((mut ready, call), decision) in planned.into_iter().zip(calls).zip(decisions) {
            match &decision.verdict {
                Verdict::Allow => {}
                Verdict::Block(why) => {
                    let why = why.clone();
                    self.refuse(ready.asked, why).await?;
                    continue;
                }
                // A verdict that is not understood is no leave.
                _ => {
                    self.refuse(ready.asked, "not run: this version cannot carry the decision out".into()).await?;
                    continue;
                }
            }
            let basis = match self.approve(&ready.asked.op, &ready.tool, ready.effects, &call).await {
                Ok(basis) => basis,
                Err(told) => {
                    self.refuse_with(ready.asked, told)?;
                    continue;
                }
            };
            // An effect outside is never without its record: the answer that asks for it is durable first.
            if ready.effects == Effects::Outside && !self.make_safe().await {
                let why = "not run: the session cannot be stored at the moment, and this would act outside of it";
                self.refuse(ready.asked, why.into()).await?;
                continue;
            }
            // While that was waited for, or in the same moment, a person may have ended the turn.
            if self.cancel.is_cancelled() {
                self.refuse(ready.asked, NOT_RUN.into()).await?;
                continue;
            }
            let permits = decision.permits(&ready.asked.op, self.session.labels());
            gjc_fp::fp!("agent.call.before");
            ready.asked.acted = ready.effects == Effects::Outside;
            let asked = ready.asked.clone();
            let handle = self.start(&mut running, ready, call, permits, basis);
            names.push((handle, asked));
        }
        self.step = StepName::Running;
        let mut heard = Vec::new();
        while !running.is_empty() {
            let (cancel, clock) = (self.cancel.clone(), Arc::clone(&self.config.env.clock));
            let too_long = async move {
                cancel.cancelled().await;
                clock.sleep(PATIENCE).await;
            };
            let ended = self.attend(async {
                tokio::select! {
                    biased;
                    ended = running.join_next_with_id() => ended,
                    // It does not listen: what it did is unknown, and the session goes on without it.
                    () = too_long => {
                        running.abort_all();
                        running.join_next_with_id().await
                    }
                }
            });
            match ended.await {
                Some(Ok((id, ran))) => {
                    names.retain(|(other, _)| *other != id);
                    heard.extend(self.finish(ran)?);
                }
                Some(Err(error)) => {
                    if let Some(index) = names.iter().position(|(id, _)| *id == error.id()) {
                        let (_, asked) = names.swap_remove(index);
                        let why = if error.is_cancelled() { INTERRUPTED } else { FAILED_INSIDE };
                        self.refuse(asked, why.into()).await?;
                    }
                }
                None => break,
            }
        }
        self.tell_results(heard).await
    }

    /// Leaves out the calls that a hook blocks, and answers them.
    async fn past_hooks(
        &mut self,
        planned: Vec<Ready>,
        calls: Vec<Call>,
    ) -> Result<(Vec<Ready>, Vec<Call>), NotAdmitted> {
        if !self.config.hooks.any(HookEvent::PreToolCall) {
            return Ok((planned, calls));
        }
        let asked = planned.iter().map(|ready| {
            let Asked { op, name, input, .. } = ready.asked.clone();
            HookBody::PreToolCall { op, tool: name, input }
        });
        let judged = self.judge(asked.collect()).await;
        let (mut passed, mut their_calls) = (Vec::new(), Vec::new());
        for ((ready, call), judged) in planned.into_iter().zip(calls).zip(judged) {
            match judged {
                Judged::Passed => {
                    passed.push(ready);
                    their_calls.push(call);
                }
                Judged::Blocked(reason) => {
                    let told = format!("not run: a hook blocks this call: {reason}");
                    self.refuse_with(ready.asked, Output::from(hooks::LABEL).text(told).error().done())?;
                }
                Judged::Broken(broken) => {
                    self.events.emit(EventBody::Notice { text: broken.to_string() });
                    let why = format!("not run: {broken}, and without its leave nothing runs that it guards");
                    self.refuse(ready.asked, why).await?;
                }
                Judged::Cancelled => self.refuse(ready.asked, NOT_RUN.into()).await?,
            }
        }
        Ok((passed, their_calls))
    }

    pub(crate) fn context(&self, op: OpId, progress: mpsc::UnboundedSender<String>) -> ToolCtx {
        act::context(&self.session, (&self.jobs, &self.artifacts), &self.config, &self.asks, &self.cancel, op, progress)
    }

    fn start(
        &self,
        running: &mut JoinSet<Ran>,
        ready: Ready,
        call: Call,
        permits: Permits,
        basis: Option<Digest>,
    ) -> tokio::task::Id {
        let Ready { asked, tool, .. } = ready;
        let input = shown(asked.input.get());
        self.events.emit(EventBody::ToolStarted { op: asked.op.clone(), tool: asked.name.clone(), input });
        let (progress, mut shown) = mpsc::unbounded_channel();
        let (events, op) = (self.events.clone(), asked.op.clone());
        let ctx = self.context(asked.op.clone(), progress).bound_to(basis);
        let clock = Arc::clone(&self.config.env.clock);
        let handle = running.spawn(async move {
            let began = clock.mono();
            let work = tool.run(ctx, call, permits);
            tokio::pin!(work);
            let output = loop {
                tokio::select! {
                    output = &mut work => break output,
                    Some(text) = shown.recv() => events.emit(EventBody::ToolProgress { op: op.clone(), text }),
                }
            };
            while let Ok(text) = shown.try_recv() {
                events.emit(EventBody::ToolProgress { op: op.clone(), text });
            }
            Ran { asked, output, began }
        });
        handle.id()
    }

    /// Admits what a call gave. Gives back what hooks shall hear of it, if there are any.
    fn finish(&mut self, ran: Ran) -> Result<Option<HookBody>, NotAdmitted> {
        let Ran { asked, output, began } = ran;
        let ms = self.config.env.clock.mono().duration_since(began).as_millis();
        gjc_fp::fp!("agent.call.after");
        let (entry, is_error) = self.admit_output(&asked.id, &asked.name, asked.acted.then_some(&asked.op), output)?;
        let ms = u64::try_from(ms).unwrap_or(u64::MAX);
        let end = ToolEnd { op: asked.op.clone(), tool: asked.name.clone(), is_error, ms };
        self.events.emit(EventBody::ToolEnded(end));
        Ok(self.config.hooks.any(HookEvent::PostToolResponse).then(|| {
            // As it is stored: hooks hear nothing that the session may not know.
            let text = match self.session.entry(&entry).as_deref().map(|entry| &entry.body) {
                Some(Body::Message(Message::ToolResult(result))) => result.content.text(),
                _ => String::new(),
            };
            HookBody::PostToolResponse { op: asked.op, tool: asked.name, input: asked.input, is_error, text }
        }))
    }

    /// Admits an output as the result of a call; gives back its entry, and whether that is an error. What is above the clearance stays
    /// outside: the model hears so, and nothing of the content. `act`: which outward act it is the result of.
    pub(crate) fn admit_output(
        &mut self,
        id: &str,
        tool: &str,
        act: Option<&OpId>,
        output: ToolOutput,
    ) -> Result<(EntryId, bool), NotAdmitted> {
        let (is_error, at) = (output.is_error, self.session.now_millis());
        let label = output.content.label();
        let seen = if tool == "job" { Seen::in_result(tool, &output.details.to_string()) } else { Vec::new() };
        let whose = Whose { id: id.to_owned(), tool: tool.to_owned(), act: act.cloned() };
        let rest = Labelled::new((whose, output.details, is_error, at), label);
        let fact = output
            .content
            .zip(rest)
            .map(|(content, (whose, details, is_error, at))| Fact::new(result(whose, content, details, is_error, at)));
        match self.admit_message(fact) {
            Err(NotAdmitted::AboveClearance(above)) => {
                Ok((self.admit_refusal(id, tool, act, above.to_string())?, true))
            }
            other => {
                let entry = other?;
                self.seen(&seen);
                Ok((entry, is_error))
            }
        }
    }

    /// Answers a call that does not run.
    async fn refuse(&mut self, asked: Asked, why: String) -> Result<(), NotAdmitted> {
        self.admit_refusal(&asked.id, &asked.name, asked.acted.then_some(&asked.op), why)?;
        self.events.emit(EventBody::ToolEnded(ToolEnd { op: asked.op, tool: asked.name, is_error: true, ms: 0 }));
        Ok(())
    }

    /// Answers a call that does not run with what has a label of its own.
    fn refuse_with(&mut self, asked: Asked, told: ToolOutput) -> Result<(), NotAdmitted> {
        self.admit_output(&asked.id, &asked.name, None, told)?;
        self.events.emit(EventBody::ToolEnded(ToolEnd { op: asked.op, tool: asked.name, is_error: true, ms: 0 }));
        Ok(())
    }

    fn admit_refusal(&mut self, id: &str, tool: &str, act: Option<&OpId>, why: String) -> Result<EntryId, NotAdmitted> {
        let at = self.session.now_millis();
        let content = vec![Block::text(why, gjc_entry::Origin::Host)];
        let whose = Whose { id: id.into(), tool: tool.into(), act: act.cloned() };
        let body = result(whose, content, Value::Null, true, at);
        self.admit_message(Labelled::new(Fact::new(body), Label::PUBLIC_TRUSTED))
    }
}

/// Which call a result answers.
struct Whose {
    id: String,
    tool: String,
    /// The outward act, which the result then names: ids of calls repeat with some providers.
    act: Option<OpId>,
}

/// A tool's result as a body.
fn result(whose: Whose, content: Vec<Block>, details: Value, is_error: bool, at: i64) -> Body {
    let details = (!details.is_null()).then(|| serde_json::value::to_raw_value(&details).ok()).flatten();
    let act = whose.act.and_then(|act| serde_json::value::to_raw_value(&act).ok());
    Body::Message(Message::ToolResult(ToolResult {
        call_id: whose.id,
        tool: whose.tool,
        content: Content::Blocks(content),
        details,
        is_error,
        at,
        extra: act.into_iter().map(|act| ("gjcOp".into(), act)).collect(),
    }))
}

/// Whether an answer wants tools to run.
pub(crate) fn wants_tools(said: &AssistantMessage) -> bool {
    !matches!(said.stop, StopReason::Aborted | StopReason::Error) && said.calls().next().is_some()
}
