//! A session whose model, tools, time and disk do what the test says, and nothing before it says so.

use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use gjc_agent::{Config, Hooks, Session, SessionHandle, Subscription, start};
use gjc_context::{Checked, Request};
use gjc_entry::{ApprovalMode, Blobs, Env, Label, Level, ModelRef, OpId, Origin, Params, StopReason, Thinking, Usage};
use gjc_entry::{Dirs, Vars};
use gjc_flow::{Call, Permits, Policy, Runtime, SinkRef, SourceRef, digest};
use gjc_llm::{Backoff, BlockKind, Provider, ProviderError, Rendered, StreamEvent, Unsupported};
use gjc_log::Writer;
use gjc_log::fs::Fs;
use gjc_log::fs::sim::SimFs;
use gjc_protocol::{Command, Event, EventBody, Outcome, PromptMode, PromptPart, Refusal, Snapshot, TurnEnd};
use gjc_tools::{Bash, Confinement, Effects, Output, Recovery, Run, Shown, Tool, ToolCtx, ToolOutput, ToolSpec, Tools};
use serde_json::Value;
use serde_json::value::RawValue;
use std::future::Future;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use testkit::log::Bench;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Nothing in these tests takes long: what is not there by then never comes.
const LIMIT: Duration = Duration::from_secs(30);

/// Waits for something that must come.
pub(crate) async fn soon<T>(what: &str, work: impl Future<Output = T>) -> T {
    match tokio::time::timeout(LIMIT, work).await {
        Ok(done) => done,
        Err(_) => panic!("never came: {what}"),
    }
}

/// Gives a command whose answer must come. If it does not, the failure says what the session does instead.
pub(crate) async fn answer(handle: &SessionHandle, what: &str, command: Command) -> Outcome {
    match tokio::time::timeout(LIMIT, handle.call(command)).await {
        Ok(outcome) => outcome,
        Err(_) => panic!("never came: {what}; {}", doing(handle).await),
    }
}

/// What a session says of itself, and what it does meanwhile.
async fn doing(handle: &SessionHandle) -> String {
    let mut face = handle.subscribe();
    let says = match tokio::time::timeout(Duration::from_secs(2), handle.call(Command::Snapshot)).await {
        Ok(Outcome::Done { value }) => {
            let Snapshot { step, queue, storage, .. } = serde_json::from_value(value).unwrap();
            format!("asked now, it is at {step:?}, {} prompts wait, its storage is {storage:?}", queue.len())
        }
        Ok(other) => format!("asked now, it answers {other:?}"),
        Err(_) => "asked now, it answers nothing either".into(),
    };
    let mut told = Vec::new();
    while face.waiting().0 > 0 {
        told.extend(face.next().await.map(|event| name(&event.body)));
    }
    format!("{says}; it tells {told:?}")
}

/// One request that the model got, and the test's end of its answer. Dropping it ends the stream.
pub(crate) struct Ask {
    pub(crate) body: Vec<u8>,
    pub(crate) cancel: CancellationToken,
    answer: mpsc::UnboundedSender<Result<StreamEvent, ProviderError>>,
}

impl Ask {
    pub(crate) fn send(&self, event: StreamEvent) {
        let _ = self.answer.send(Ok(event));
    }

    pub(crate) fn fail(self, error: ProviderError) {
        let _ = self.answer.send(Err(error));
    }

    /// The beginning of an answer, left open.
    pub(crate) fn begin(&self, text: &str) {
        self.send(StreamEvent::Start { response_id: None });
        self.send(StreamEvent::BlockStart { index: 0, kind: BlockKind::Text });
        self.send(StreamEvent::Delta { index: 0, text: text.into() });
    }

    /// A whole answer without calls.
    pub(crate) fn say(self, text: &str) {
        self.begin(text);
        self.finish();
    }

    /// The end of an answer that was begun.
    pub(crate) fn finish(self) {
        self.send(StreamEvent::BlockEnd { index: 0, signature: None });
        self.send(StreamEvent::Usage(Usage { input: 3, output: 2, total_tokens: 5, ..Usage::default() }));
        self.send(StreamEvent::Stop(StopReason::Stop));
    }

    /// A whole answer of calls: id, tool, arguments.
    pub(crate) fn call(self, calls: &[(&str, &str, &str)]) {
        self.send(StreamEvent::Start { response_id: None });
        for (index, (id, name, arguments)) in (0..).zip(calls) {
            let kind = BlockKind::ToolCall { id: (*id).into(), name: (*name).into() };
            self.send(StreamEvent::BlockStart { index, kind });
            self.send(StreamEvent::Delta { index, text: (*arguments).into() });
            self.send(StreamEvent::BlockEnd { index, signature: None });
        }
        self.send(StreamEvent::Stop(StopReason::ToolUse));
    }

    /// The request as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// The results of the newest message: call id, text.
    pub(crate) fn results(&self) -> Vec<(String, String)> {
        let json = self.json();
        let messages = json["messages"].as_array().unwrap();
        let blocks = messages.last().unwrap()["content"].as_array().unwrap();
        blocks
            .iter()
            .filter(|block| block["type"] == "tool_result")
            .map(|block| {
                let text = match &block["content"] {
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                };
                (block["tool_use_id"].as_str().unwrap().to_owned(), text)
            })
            .collect()
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }
}

/// A model that asks the test.
struct Model {
    asks: mpsc::UnboundedSender<Ask>,
    /// Every body that was sent, in order.
    sent: Arc<Mutex<Vec<Vec<u8>>>>,
    /// It does not notice when an answer shall end.
    deaf: bool,
}

impl Provider for Model {
    fn render(&self, request: &Checked<Request>, blobs: &dyn Blobs) -> Result<Rendered, Unsupported> {
        gjc_llm::render("scripted", self.renderer(), request, blobs)
    }

    fn stream(
        &self,
        request: Rendered,
        cancel: CancellationToken,
    ) -> BoxStream<'static, Result<StreamEvent, ProviderError>> {
        let (asks, sent) = (self.asks.clone(), Arc::clone(&self.sent));
        let token = cancel.clone();
        let answer = stream::once(async move {
            let (answer, events) = mpsc::unbounded_channel();
            sent.lock().unwrap().push(request.body.to_vec());
            let _ = asks.send(Ask { body: request.body.to_vec(), cancel: token, answer });
            stream::unfold(events, |mut events| async move { Some((events.recv().await?, events)) })
        })
        .flatten();
        if self.deaf { answer.boxed() } else { answer.take_until(cancel.cancelled_owned()).boxed() }
    }

    fn api(&self) -> &'static str {
        "scripted"
    }

    fn renderer(&self) -> u16 {
        gjc_llm::anthropic::RENDERER
    }
}

/// A call that has begun, and the test's end of it.
pub(crate) struct Started {
    pub(crate) op: OpId,
    pub(crate) tool: &'static str,
    pub(crate) ctx: ToolCtx,
    pub(crate) permits: Permits,
    end: oneshot::Sender<Ending>,
}

enum Ending {
    Output(ToolOutput),
    Panic,
}

impl Started {
    pub(crate) fn output(self, output: ToolOutput) {
        let _ = self.end.send(Ending::Output(output));
    }

    pub(crate) fn done(self, text: &str) {
        self.output(public(text));
    }

    pub(crate) fn panic(self) {
        let _ = self.end.send(Ending::Panic);
    }
}

/// A public output.
pub(crate) fn public(text: &str) -> ToolOutput {
    labelled(text, Label::PUBLIC_TRUSTED)
}

/// An output with a label.
pub(crate) fn labelled(text: &str, label: Label) -> ToolOutput {
    Output::from(label).text(text).done()
}

pub(crate) fn level(level: Level) -> Label {
    Label { level, trusted: true }
}

/// A tool that waits for the test; cancelled, it answers `cancelled`.
#[derive(Clone)]
pub(crate) struct Gate {
    name: &'static str,
    effects: Effects,
    run: Run,
    reads: Option<Label>,
    writes: Option<Level>,
    refuses: Option<&'static str>,
    panics_in_plan: bool,
    recovers: Recovers,
    started: mpsc::UnboundedSender<Started>,
}

/// What a tool knows after a crash.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Recovers {
    Done(&'static str, Label),
    NotDone,
    Unknown,
    Panics,
    Never,
}

impl Gate {
    pub(crate) fn effects(mut self, effects: Effects) -> Self {
        self.effects = effects;
        self
    }

    pub(crate) fn reads(mut self, label: Label) -> Self {
        self.reads = Some(label);
        self
    }

    pub(crate) fn writes(mut self, level: Level) -> Self {
        self.writes = Some(level);
        self
    }

    pub(crate) fn refuses(mut self, why: &'static str) -> Self {
        self.refuses = Some(why);
        self
    }

    pub(crate) fn panics_in_plan(mut self) -> Self {
        self.panics_in_plan = true;
        self
    }

    pub(crate) fn recovers(mut self, recovers: Recovers) -> Self {
        self.recovers = recovers;
        self
    }
}

#[async_trait]
impl Tool for Gate {
    fn name(&self) -> &'static str {
        self.name
    }

    fn spec(&self, _: &Shown) -> Option<ToolSpec> {
        let input = schemars::json_schema!({"type": "object"});
        Some(ToolSpec { description: format!("{} 도구", self.name), input, effects: self.effects, run: self.run })
    }

    fn plan(&self, _: &ToolCtx, input: &RawValue) -> Result<Call, Refusal> {
        assert!(!self.panics_in_plan, "a fault of the tool");
        if let Some(why) = self.refuses {
            return Err(Refusal::new("no", why).hint("another way"));
        }
        Ok(Call {
            tool: self.name.into(),
            input: input.to_owned(),
            sources: self.reads.map(|label| SourceRef { what: "급여.xlsx".into(), label }).into_iter().collect(),
            sinks: self
                .writes
                .map(|level| SinkRef { what: "host".into(), level, digest: digest(b"bytes") })
                .into_iter()
                .collect(),
        })
    }

    async fn run(&self, ctx: ToolCtx, _: Call, permits: Permits) -> ToolOutput {
        let (end, ended) = oneshot::channel();
        let cancel = ctx.cancel.clone();
        let _ = self.started.send(Started { op: ctx.op().clone(), tool: self.name, ctx, permits, end });
        tokio::select! {
            biased;
            Ok(ending) = ended => match ending {
                Ending::Output(output) => output,
                Ending::Panic => panic!("a fault of the tool"),
            },
            () = cancel.cancelled() => public("cancelled"),
        }
    }

    async fn recover(&self, _: ToolCtx, _: &OpId) -> Recovery {
        match self.recovers {
            Recovers::Done(text, label) => Recovery::Done(labelled(text, label)),
            Recovers::NotDone => Recovery::NotDone,
            Recovers::Unknown => Recovery::Unknown,
            Recovers::Panics => panic!("a fault of the tool"),
            Recovers::Never => std::future::pending().await,
        }
    }
}

/// What a session is started with.
pub(crate) struct Setup {
    pub(crate) config: Config,
    pub(crate) clearance: Level,
    asks: mpsc::UnboundedReceiver<Ask>,
    started: mpsc::UnboundedReceiver<Started>,
    gate: mpsc::UnboundedSender<Started>,
    sent: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Setup {
    pub(crate) fn new<F: Fs>(bench: &Bench<F>) -> Self {
        Self::with(bench, false)
    }

    /// With a model that does not notice an abort.
    pub(crate) fn deaf<F: Fs>(bench: &Bench<F>) -> Self {
        Self::with(bench, true)
    }

    fn with<F: Fs>(bench: &Bench<F>, deaf: bool) -> Self {
        let (asks, asked) = mpsc::unbounded_channel();
        let (gate, started) = mpsc::unbounded_channel();
        let sent = Arc::default();
        let dirs = Dirs { agent: bench.root.clone(), home: bench.root.clone(), temp: bench.root.clone() };
        let config = Config {
            env: Env { clock: bench.clock.clone(), ids: bench.ids.clone(), dirs: dirs.clone(), vars: Vars::default() },
            cwd: "/작업".into(),
            provider: Arc::new(Model { asks, sent: Arc::clone(&sent), deaf }),
            model: ModelRef { provider: "scripted".into(), id: "m".into(), api: "scripted".into() },
            tier: gjc_entry::Tier::Auto,
            plan: None,
            models: Arc::new(gjc_agent::OneModel),
            prices: gjc_llm::Prices::default(),
            thinking: Thinking::Off,
            held: None,
            params: Params { max_tokens: 1000 },
            sharing: gjc_agent::Sharing::default(),
            wait_for_quota: None,
            retry: Backoff::default(),
            tools: Tools::default(),
            approval: ApprovalMode::Full,
            answers: false,
            policy: Policy::default(),
            system: "You are gjc.".into(),
            system_label: Label::PUBLIC_TRUSTED,
            with_day: true,
            effects: Vec::new(),
            shell: Bash::new(&Vars::default(), Confinement::off(&dirs)),
            max_jobs: 15,
            hooks: Hooks::default(),
        };
        Self { config, clearance: Level::Restricted, asks: asked, started, gate, sent }
    }

    pub(crate) fn tool(&self, name: &'static str, run: Run) -> Gate {
        Gate {
            name,
            effects: Effects::None,
            run,
            reads: None,
            writes: None,
            refuses: None,
            panics_in_plan: false,
            recovers: Recovers::Unknown,
            started: self.gate.clone(),
        }
    }

    /// `p` and `q` run beside others, `s` in order, `only` alone, `out` acts outside.
    pub(crate) fn usual_tools(mut self) -> Self {
        let tools = vec![
            self.tool("p", Run::Parallel),
            self.tool("q", Run::Parallel),
            self.tool("s", Run::Serial),
            self.tool("only", Run::Sole),
            self.tool("out", Run::Serial).effects(Effects::Outside),
        ];
        self.set(tools);
        self
    }

    pub(crate) fn set(&mut self, tools: Vec<Gate>) {
        self.config.tools = Tools::new(tools.into_iter().map(|tool| Arc::new(tool) as Arc<dyn Tool>).collect());
    }

    pub(crate) fn start<F: Fs>(self, writer: Writer<F>, resumed: bool) -> World {
        let Self { config, clearance, asks, started, sent, .. } = self;
        let session = Session::new(writer, Runtime::new(), Arc::clone(&config.env.clock), clearance).unwrap();
        let (handle, actor) = start(session, config, resumed);
        let face = Face::new(handle.subscribe());
        World { handle, face, asks, started, sent, actor }
    }
}

/// A running session.
pub(crate) struct World {
    pub(crate) handle: SessionHandle,
    pub(crate) face: Face,
    pub(crate) asks: mpsc::UnboundedReceiver<Ask>,
    pub(crate) started: mpsc::UnboundedReceiver<Started>,
    pub(crate) sent: Arc<Mutex<Vec<Vec<u8>>>>,
    pub(crate) actor: JoinHandle<()>,
}

/// A machine of its own.
pub(crate) fn sim() -> Bench<SimFs> {
    let bench = Bench::new(Arc::new(SimFs::new()), Path::new("/agent"));
    bench.fs.mkdir(Path::new("/agent")).unwrap();
    bench.fs.settle();
    bench
}

/// A session on a simulated disk, with the usual tools.
pub(crate) fn usual() -> (Bench<SimFs>, World) {
    let bench = sim();
    let world = Setup::new(&bench).usual_tools().start(bench.create(), false);
    (bench, world)
}

pub(crate) fn typed(text: &str) -> Command {
    said(text, PromptMode::Steer)
}

pub(crate) fn said(text: &str, mode: PromptMode) -> Command {
    prompt(text, Origin::Typed, mode)
}

pub(crate) fn prompt(text: &str, origin: Origin, mode: PromptMode) -> Command {
    Command::Prompt { parts: vec![PromptPart::new(text, origin)], mode }
}

impl World {
    pub(crate) async fn ask(&mut self) -> Ask {
        soon("a request", self.asks.recv()).await.unwrap()
    }

    pub(crate) async fn begun(&mut self) -> Started {
        soon("a call", self.started.recv()).await.unwrap()
    }

    pub(crate) async fn call(&self, command: Command) -> Outcome {
        answer(&self.handle, "an answer to a command", command).await
    }

    pub(crate) async fn accepted(&self, command: Command) {
        let outcome = self.call(command).await;
        assert!(matches!(outcome, Outcome::Accepted), "{outcome:?}");
    }

    pub(crate) async fn refused(&self, command: Command) -> String {
        match self.call(command).await {
            Outcome::Refused(refusal) => refusal.code,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn done(&self, command: Command) -> Value {
        match self.call(command).await {
            Outcome::Done { value } => value,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn snapshot(&self) -> Snapshot {
        serde_json::from_value(self.done(Command::Snapshot).await).unwrap()
    }

    /// Says something and gives the request that comes of it.
    pub(crate) async fn say(&mut self, text: &str) -> Ask {
        self.accepted(typed(text)).await;
        self.ask().await
    }

    /// Waits for the end of the turn.
    pub(crate) async fn turn_end(&mut self) -> TurnEnd {
        match self.face.until(|body| matches!(body, EventBody::TurnEnded { .. })).await {
            EventBody::TurnEnded { end } => end,
            _ => unreachable!(),
        }
    }

    /// Ends the session and waits until the actor is gone.
    pub(crate) async fn close(mut self) -> Vec<Event> {
        self.done(Command::Close).await;
        self.face.until(|body| *body == EventBody::Closed).await;
        soon("the end of the actor", self.actor).await.unwrap();
        self.face.events
    }

    pub(crate) fn no_request(&mut self) {
        assert!(self.asks.try_recv().is_err(), "the model was asked");
    }
}

/// A face that reads everything and keeps it.
pub(crate) struct Face {
    pub(crate) events: Vec<Event>,
    subscription: Subscription,
}

impl Face {
    pub(crate) fn new(subscription: Subscription) -> Self {
        Self { events: Vec::new(), subscription }
    }

    pub(crate) async fn next(&mut self) -> Option<EventBody> {
        let event = soon("an event", self.subscription.next()).await?;
        self.events.push(event.clone());
        Some(event.body)
    }

    /// Reads up to an event.
    pub(crate) async fn until(&mut self, wanted: impl Fn(&EventBody) -> bool) -> EventBody {
        loop {
            let Some(body) = self.next().await else { panic!("the session ended before: {:#?}", self.names()) };
            if wanted(&body) {
                return body;
            }
        }
    }

    /// Reads up to a stored message of a role, and gives its text.
    pub(crate) async fn message(&mut self, role: &str) -> String {
        match self.until(|body| matches!(body, EventBody::Message { message, .. } if message["role"] == role)).await {
            EventBody::Message { message, .. } => texts_of(&message),
            _ => unreachable!(),
        }
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.events.iter().map(|event| name(&event.body)).collect()
    }

    /// The texts of all results that were stored: call id, text.
    pub(crate) fn results(&self) -> Vec<(String, String)> {
        self.events
            .iter()
            .filter_map(|event| match &event.body {
                EventBody::Message { message, .. } if message["role"] == "toolResult" => {
                    Some((message["toolCallId"].as_str().unwrap().to_owned(), texts_of(message)))
                }
                _ => None,
            })
            .collect()
    }
}

/// All texts of a message.
pub(crate) fn texts_of(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        blocks => {
            let blocks = blocks.as_array().unwrap();
            blocks.iter().filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n")
        }
    }
}

/// The kind of an event; a message with its role.
pub(crate) fn name(body: &EventBody) -> String {
    let json = serde_json::to_value(body).unwrap();
    let kind = json["type"].as_str().unwrap().to_owned();
    match body {
        EventBody::Message { message, .. } => format!("{kind} {}", message["role"].as_str().unwrap()),
        _ => kind,
    }
}

/// Whether bytes stand in others.
pub(crate) fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    haystack.windows(needle.len()).any(|window| window == needle)
}
