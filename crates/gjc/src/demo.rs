//! `gjc demo`: an offline tour on the scripted model. Everything is real but the model: the session file, the tool calls,
//! the files that they change. All of it happens in one new folder; nothing else is touched.

use crate::context::rebuild;
use crate::failure::Failure;
use crate::opening;
use crate::{out, world};
use futures_util::stream::BoxStream;
use gjc_agent::{Config, Session, SessionHandle};
use gjc_context::{Checked, ContextMessage, Request, select};
use gjc_entry::{
    ApprovalMode, Blobs, Dirs, Env, Label, Leaf, Level, Message, ModelRef, Origin, Params, Source, Thinking,
};
use gjc_flow::{Policy, Runtime};
use gjc_llm::scripted::{self, Scripted, ScriptedModel};
use gjc_llm::{Backoff, Provider, ProviderError, Rendered, StreamEvent, Unsupported};
use gjc_log::fs::OsFs;
use gjc_log::{BlobStore, Durability, Reader, Writer};
use gjc_protocol::{Command, EventBody, Outcome, PromptMode, PromptPart};
use gjc_tools::{Bash, Confinement};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use tokio_util::sync::CancellationToken;

const SCRIPT: &str = include_str!("demo.jsonl");

/// The tour.
pub(crate) fn run(env: &Env, dir: Option<PathBuf>, quiet: bool) -> Result<ExitCode, Failure> {
    let place = place(env, dir)?;
    let env = Env { dirs: Dirs { agent: place.join("agent"), ..env.dirs.clone() }, ..env.clone() };
    let work = place.join("work");
    std::fs::create_dir(&work).map_err(|error| cannot(&work, &error))?;
    let work = std::fs::canonicalize(&work).map_err(|error| cannot(&work, &error))?;
    let tour = Tour { quiet };
    world::runtime()?.block_on(async {
        tour.say("gjc demo: a tour without a network. The model is a script; everything else is real.");
        tour.say(&format!("Everything happens in {}, which can be deleted afterwards.", place.display()));
        let sent = Sent::default();
        let file = tour.station_prompt(&env, &work, &sent).await?;
        tour.station_restart(&env, &work, &file, &sent).await?;
        tour.station_request(&env, &file, &sent)?;
        tour.station_torn(&env, &file).await?;
        let id = Reader::open(&OsFs, &file)?.value.header().id.clone();
        tour.say("\nLook for yourself:");
        tour.say(&format!("  export GJC_CODING_AGENT_DIR={}", env.dirs.agent.display()));
        let gjc = std::env::current_exe().map_or_else(|_| "gjc".into(), |path| path.display().to_string());
        tour.say(&format!("  {gjc} sessions list"));
        tour.say(&format!("  {gjc} sessions show {id}"));
        tour.say(&format!("  {gjc} context request {id}"));
        if quiet {
            out::line(&file.display().to_string());
        }
        Ok(ExitCode::SUCCESS)
    })
}

struct Tour {
    quiet: bool,
}

impl Tour {
    fn say(&self, text: &str) {
        if !self.quiet {
            out::line(&out::plain(text));
        }
    }

    /// A prompt goes through the whole house.
    async fn station_prompt(&self, env: &Env, work: &Path, sent: &Sent) -> Result<PathBuf, Failure> {
        self.say("\n1. A prompt, and real tools");
        let writer = opening::create(env, None, work, true, Durability::default());
        let file =
            writer.file_path().map(Path::to_path_buf).ok_or_else(|| Failure::new("the demo's session has no file"))?;
        self.turn(env, work, writer, sent, "Note down what you can do, and check it. 한국어로도 적어 주세요.").await?;
        let size = std::fs::metadata(&file).map_or(0, |found| found.len());
        let shown = file.strip_prefix(&env.dirs.agent).unwrap_or(&file).display();
        self.say(&format!("   The session is agent/{shown}: {size} bytes, durable before the turn ended."));
        Ok(file)
    }

    /// The process could have ended here: another one goes on from the file alone.
    async fn station_restart(&self, env: &Env, work: &Path, file: &Path, sent: &Sent) -> Result<(), Failure> {
        self.say("\n2. The session again, from its file alone");
        let before = std::fs::read(file).map_err(|error| cannot(file, &error))?;
        let (writer, _) = opening::open(env, None, file, Durability::default()).await?;
        let entries = writer.skeleton().map_or(0, gjc_entry::Skeleton::len);
        self.turn(env, work, writer, sent, "What did you note?").await?;
        let after = std::fs::read(file).map_err(|error| cannot(file, &error))?;
        if !after.starts_with(&before) {
            return Err(Failure::new("the session file did not only grow; this is a fault of gjc"));
        }
        self.say(&format!(
            "   {entries} entries were read back, {} bytes were added behind them, none was changed.",
            after.len() - before.len()
        ));
        Ok(())
    }

    /// One turn, told as it happens.
    async fn turn(
        &self,
        env: &Env,
        work: &Path,
        writer: Writer<OsFs>,
        sent: &Sent,
        prompt: &str,
    ) -> Result<(), Failure> {
        self.say(&format!("   you: {prompt}"));
        let (handle, actor) = start(env, work, writer, sent)?;
        let mut events = handle.subscribe();
        let parts = vec![PromptPart::new(prompt, Origin::Typed)];
        if let Outcome::Refused(refusal) = handle.call(Command::Prompt { parts, mode: PromptMode::Steer }).await {
            return Err(refusal.into());
        }
        let finish = tokio::spawn(async move { handle.call(Command::Finish).await });
        let mut results: Vec<Value> = Vec::new();
        while let Some(event) = events.next().await {
            match event.body {
                EventBody::Message { message, .. } if message["role"] == "toolResult" => results.push(message),
                EventBody::MessageStarted => self.results(&mut results),
                EventBody::Message { message, .. } if message["role"] == "assistant" => self.answer(&message),
                EventBody::Error { sentence, .. } => return Err(Failure::new(sentence)),
                _ => {}
            }
        }
        let _ = (finish.await, actor.await);
        Ok(())
    }

    fn answer(&self, message: &Value) {
        for block in message["content"].as_array().into_iter().flatten() {
            match block["type"].as_str() {
                Some("text") => self.say(&format!("   model: {}", block["text"].as_str().unwrap_or_default())),
                Some("toolCall") => {
                    self.say(&format!("   → {} {}", block["name"].as_str().unwrap_or_default(), block["arguments"]));
                }
                _ => {}
            }
        }
    }

    /// Results came as they ended; they are told in the order of their calls.
    fn results(&self, results: &mut Vec<Value>) {
        results.sort_by_key(|result| result["toolCallId"].to_string());
        for result in results.drain(..) {
            self.say(&format!("   ← {}", result["toolName"].as_str().unwrap_or_default()));
            let text = result["content"][0]["text"].as_str().unwrap_or_default();
            let mut lines = text.lines();
            lines.by_ref().take(5).for_each(|line| self.say(&format!("      │ {line}")));
            if lines.next().is_some() {
                self.say("      │ …");
            }
        }
    }

    /// Every request of the past can be rebuilt: here, beside the bytes that were sent.
    fn station_request(&self, env: &Env, file: &Path, sent: &Sent) -> Result<(), Failure> {
        self.say("\n3. What the model saw, byte for byte");
        let loaded = Reader::open(&OsFs, file)?;
        let reader = &loaded.value;
        let blobs = BlobStore::new(Arc::new(OsFs), Some(env.dirs.blobs()));
        let (selected, _) = select(reader, Leaf::Current).map_err(|error| Failure::new(error.to_string()))?;
        let answers =
            selected.iter().filter(|item| matches!(&item.message, ContextMessage::Message(Message::Assistant(_))));
        for (item, sent) in answers.zip(sent.bodies()) {
            let rebuilt = rebuild(reader, &blobs, Some(&item.id.to_string()))?;
            if rebuilt != sent {
                return Err(Failure::new(
                    "a request was rebuilt with other bytes than were sent; this is a fault of gjc",
                ));
            }
            self.say(&format!(
                "   answer {}: {:>5} bytes were sent, and rebuilt from the log: the same",
                item.id,
                rebuilt.len()
            ));
        }
        Ok(())
    }

    /// A line that was cut in the middle.
    async fn station_torn(&self, env: &Env, file: &Path) -> Result<(), Failure> {
        self.say("\n4. A power cut in the middle of a line");
        let bytes = std::fs::read(file).map_err(|error| cannot(file, &error))?;
        let dir = env.dirs.agent.with_file_name("torn");
        std::fs::create_dir(&dir).map_err(|error| cannot(&dir, &error))?;
        let torn = dir.join("copy.jsonl");
        let cut = bytes.len().saturating_sub(20);
        std::fs::write(&torn, &bytes[..cut]).map_err(|error| cannot(&torn, &error))?;
        let (writer, notices) = opening::open(env, None, &torn, Durability::default()).await?;
        self.say("   The last 20 bytes of a copy are cut off, and the copy is opened:");
        notices.iter().for_each(|notice| self.say(&format!("   {notice}")));
        let entries = writer.skeleton().map_or(0, gjc_entry::Skeleton::len);
        self.say(&format!("   All {entries} entries before it are there, and the session goes on."));
        Ok(())
    }
}

fn start(
    env: &Env,
    work: &Path,
    writer: Writer<OsFs>,
    sent: &Sent,
) -> Result<(SessionHandle, tokio::task::JoinHandle<()>), Failure> {
    let resumed = writer.on_disk();
    let script =
        ScriptedModel::parse(Path::new("demo.jsonl"), SCRIPT).map_err(|error| Failure::new(error.to_string()))?;
    // The second station plays the last line of the script.
    let name = if resumed { "again" } else { scripted::MAIN };
    let session = Session::new(writer, Runtime::new(), Arc::clone(&env.clock), Level::Restricted)
        .map_err(|above| Failure::new(above.to_string()))?;
    let model = script.player([name], Arc::clone(&env.clock));
    let config = Config {
        env: env.clone(),
        cwd: work.into(),
        provider: Arc::new(Recorded { model, sent: sent.clone() }),
        model: ModelRef { provider: "scripted".into(), id: "demo".into(), api: scripted::API.into() },
        tier: gjc_entry::Tier::Auto,
        plan: None,
        models: Arc::new(gjc_agent::OneModel),
        prices: gjc_llm::Prices::default(),
        thinking: Thinking::Off,
        params: Params { max_tokens: 4096 },
        sharing: gjc_agent::Sharing::default(),
        wait_for_quota: None,
        retry: Backoff::default(),
        tools: gjc_tools::builtin(&env.vars, Confinement::auto(&env.dirs)),
        approval: ApprovalMode::Full,
        answers: false,
        held: None,
        policy: Policy::default(),
        system: "You are the model of gjc's demo: a script.".into(),
        system_label: Label::PUBLIC_TRUSTED,
        with_day: true,
        effects: Vec::new(),
        shell: Bash::new(&env.vars, Confinement::off(&env.dirs)),
        max_jobs: 15,
        hooks: gjc_agent::Hooks::default(),
    };
    Ok(gjc_agent::start(session, config, resumed))
}

/// The bodies that were sent to the model.
#[derive(Clone, Default)]
struct Sent(Arc<Mutex<Vec<Vec<u8>>>>);

impl Sent {
    fn bodies(&self) -> Vec<Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The script, with a look at what it is sent.
struct Recorded {
    model: Scripted,
    sent: Sent,
}

impl Provider for Recorded {
    fn render(&self, request: &Checked<Request>, blobs: &dyn Blobs) -> Result<Rendered, Unsupported> {
        self.model.render(request, blobs)
    }

    fn stream(
        &self,
        request: Rendered,
        cancel: CancellationToken,
    ) -> BoxStream<'static, Result<StreamEvent, ProviderError>> {
        self.sent.0.lock().unwrap_or_else(PoisonError::into_inner).push(request.body.to_vec());
        self.model.stream(request, cancel)
    }

    fn api(&self) -> &'static str {
        self.model.api()
    }

    fn renderer(&self) -> u16 {
        self.model.renderer()
    }
}

/// A new, empty folder.
fn place(env: &Env, dir: Option<PathBuf>) -> Result<PathBuf, Failure> {
    let dir = dir.unwrap_or_else(|| env.dirs.temp.join(format!("gjc-demo-{}", env.ids.session())));
    if dir.exists() && std::fs::read_dir(&dir).map_or(true, |mut entries| entries.next().is_some()) {
        return Err(
            Failure::usage(format!("{} is not an empty folder", dir.display())).hint("name a new one with --dir")
        );
    }
    std::fs::create_dir_all(&dir).map_err(|error| cannot(&dir, &error))?;
    std::fs::canonicalize(&dir).map_err(|error| cannot(&dir, &error))
}

fn cannot(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("{} cannot be used: {error}", path.display()))
}
