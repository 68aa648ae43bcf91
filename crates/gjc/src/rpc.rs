//! `--mode rpc`: commands on standard input, replies and events on standard output, one JSON object a line.
//!
//! A line in is a [`Cmd`]; a line out is a [`Reply`] (it has `outcome`) or an event (it has `seq`). A reply stands before the
//! events that its command causes. When the input ends, the session is closed, after what runs has ended.

use crate::cli::SessionArgs;
use crate::failure::Failure;
use crate::history::Keeper;
use crate::{compose, finding, out, print, world};
use futures_util::StreamExt;
use futures_util::stream::{FuturesOrdered, FuturesUnordered};
use gjc_entry::fields::replace_lone_surrogates;
use gjc_entry::{BoxFuture, Env};
use gjc_protocol::{Cmd, CmdId, Command, EventBody, Outcome, Refusal, Reply};
use std::io::{BufRead, Read};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// A line in.
const EXAMPLE: &str = r#"{"id":"1","command":{"type":"prompt","parts":[{"text":"hello","origin":"typed"}]}}"#;

/// The pause after which a closed session has no more lines to reply to.
const REPLIES: Duration = Duration::from_millis(50);
/// The longest line that is read.
const LONGEST_LINE: u64 = 64 << 20;

/// Serves until the input ends or the session is closed.
pub(crate) fn run(env: &Env, args: &SessionArgs) -> Result<ExitCode, Failure> {
    if !args.prompt.is_empty() {
        return Err(Failure::usage("--mode rpc takes its prompts as commands")
            .hint(format!("write them to standard input, one a line: {EXAMPLE}")));
    }
    let runtime = world::runtime()?;
    let code = runtime.block_on(async {
        let (handle, actor, keeper) = compose::begin(env, args).await?;
        // With `--no-session` nothing is written, not even what could be found again.
        let _filling = (!args.no_session).then(|| finding::Filling::begin(env));
        let unanswered = keeper.offer(&[]).await;
        let mut events = handle.subscribe();
        let (ask, mut asked) = mpsc::unbounded_channel::<Asked>();
        let mut lines = stdin_lines();
        let commands = tokio::spawn({
            let (handle, keeper) = (handle.clone(), keeper.clone());
            async move {
                while let Some(line) = lines.recv().await {
                    let (reply, outcome) = oneshot::channel();
                    // The loop below waits for the reply before the session can have given it, so that no event which the
                    // command causes is told before the reply.
                    match command_of(&line) {
                        Ok(Cmd { id, command }) => {
                            // These may take their time, and nothing else waits for them.
                            let late = matches!(
                                command,
                                Command::Close
                                    | Command::Finish
                                    | Command::SetModel { .. }
                                    | Command::Switch { .. }
                                    | Command::NewSession
                                    | Command::Fork { .. }
                                    | Command::Branch { .. }
                                    | Command::MoveSession { .. }
                                    | Command::DeleteSession { .. }
                            );
                            let back = matches!(command, Command::Unqueue).then(|| keeper.clone());
                            let _ = ask.send(Asked { id: Some(id), outcome, late, back });
                            if let Command::Prompt { parts, .. } | Command::Fork { prompt: parts } = &command {
                                keeper.record(parts).await;
                            }
                            handle.post(command, reply).await;
                        }
                        Err(error) => {
                            let _ = reply.send(Outcome::Refused(unreadable(&error)));
                            let _ = ask.send(Asked { id: id_of(&line), outcome, late: false, back: None });
                        }
                    }
                }
                // The input has ended: let what runs end, then close.
                handle.call(Command::Finish).await;
            }
        });
        // Set before the session is asked to close: its last event may be here before that call has returned.
        let stopped = Arc::new(AtomicBool::new(false));
        let interrupt = tokio::spawn({
            let (handle, stopped) = (handle.clone(), Arc::clone(&stopped));
            async move {
                print::interrupted().await;
                stopped.store(true, Ordering::SeqCst);
                handle.call(Command::Close).await;
                // The second time a person means it.
                print::interrupted().await;
                std::process::exit(130)
            }
        });
        let mut closed = None;
        let mut open = Open::default();
        while closed.is_none() {
            tokio::select! {
                biased;
                Some(asked) = asked.recv() => open.push(asked),
                Some(reply) = open.next() => out::line(&reply),
                Some(event) = events.next() => {
                    keeper.see(&event.body);
                    if event.body == EventBody::Closed {
                        closed = Some(event);
                        continue;
                    }
                    out::line(&serde_json::to_string(&event).unwrap_or_default());
                    if matches!(event.body, EventBody::Session { .. }) {
                        out::unanswered(event.seq, unanswered.as_ref());
                    }
                },
            }
        }
        let interrupted = stopped.load(Ordering::SeqCst);
        interrupt.abort();
        // Every command that was sent has its reply before the last event. A closed session replies at once, so a pause
        // means that no more lines are there.
        loop {
            tokio::select! {
                biased;
                Some(asked) = asked.recv() => open.push(asked),
                Some(reply) = open.next() => out::line(&reply),
                () = tokio::time::sleep(REPLIES) => break,
            }
        }
        commands.abort();
        out::line(&serde_json::to_string(&closed).unwrap_or_default());
        let _ = actor.await;
        keeper.finish().await;
        Ok(if interrupted { ExitCode::from(130) } else { ExitCode::SUCCESS })
    });
    // The thread that reads standard input may still be waiting for a line.
    runtime.shutdown_background();
    code
}

/// A command that waits for its reply.
struct Asked {
    id: Option<CmdId>,
    outcome: oneshot::Receiver<Outcome>,
    /// It is answered when the session ends; those behind it do not wait for that.
    late: bool,
    /// Who has to know when it takes a prompt back.
    back: Option<Keeper>,
}

/// Replies that are waited for: in the order of their commands, but for the late ones.
#[derive(Default)]
struct Open {
    in_order: FuturesOrdered<BoxFuture<'static, String>>,
    late: FuturesUnordered<BoxFuture<'static, String>>,
}

impl Open {
    fn push(&mut self, asked: Asked) {
        let late = asked.late;
        let reply = Box::pin(asked.reply());
        if late { self.late.push(reply) } else { self.in_order.push_back(reply) }
    }

    /// The next reply that is there; `None` when none is waited for.
    async fn next(&mut self) -> Option<String> {
        tokio::select! {
            biased;
            Some(reply) = self.in_order.next() => Some(reply),
            Some(reply) = self.late.next() => Some(reply),
            else => None,
        }
    }
}

impl Asked {
    /// The line of the reply, once it is there.
    async fn reply(self) -> String {
        let outcome = self.outcome.await.unwrap_or_else(|_| gjc_agent::closed());
        if let (Some(keeper), Outcome::Done { value }) = (&self.back, &outcome) {
            keeper.taken_back(value["text"].as_str().unwrap_or_default());
        }
        serde_json::to_string(&Reply { id: self.id, outcome }).unwrap_or_default()
    }
}

fn stdin_lines() -> mpsc::UnboundedReceiver<String> {
    let (send, lines) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        let mut input = std::io::stdin().lock();
        let mut line = Vec::new();
        while matches!((&mut input).take(LONGEST_LINE).read_until(b'\n', &mut line), Ok(read) if read > 0) {
            // The rest of a line that is too long is read as one of its own, and refused like any other.
            let text = String::from_utf8_lossy(&line).trim().to_owned();
            line.clear();
            if !text.is_empty() && send.send(text).is_err() {
                break;
            }
        }
    });
    lines
}

fn unreadable(error: &serde_json::Error) -> Refusal {
    Refusal::new("unreadable", format!("the line is no command: {error}"))
        .hint(format!("a command looks like this: {EXAMPLE}"))
}

/// A line as a command. JavaScript writes halves of characters as they are; they are read as U+FFFD.
fn command_of(line: &str) -> Result<Cmd, serde_json::Error> {
    serde_json::from_str(line).or_else(|error| match replace_lone_surrogates(line) {
        Some(mended) => serde_json::from_str(&mended),
        None => Err(error),
    })
}

/// The id of a line that is no command otherwise, so that its sender can tell which one it was: of a line that is no JSON,
/// the id that it begins with.
fn id_of(line: &str) -> Option<CmdId> {
    let whole = serde_json::from_str::<serde_json::Value>(line).ok().and_then(|line| Some(line.get("id")?.clone()));
    let first = || {
        let rest = line.trim_start().strip_prefix("{\"id\":")?;
        serde_json::Deserializer::from_str(rest).into_iter::<serde_json::Value>().next()?.ok()
    };
    serde_json::from_value(whole.or_else(first)?).ok()
}
