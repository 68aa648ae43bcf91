//! `--mode rpc`: commands on standard input, replies and events on standard output, one JSON object a line.
//!
//! A line in is a [`Cmd`]; a line out is a [`Reply`] (it has `outcome`) or an event (it has `seq`). When the input ends,
//! the session is closed, after what runs has ended.

use crate::cli::SessionArgs;
use crate::compose::{Composed, compose};
use crate::failure::Failure;
use crate::{out, print, world};
use gjc_entry::Env;
use gjc_protocol::{Cmd, Command, EventBody, Outcome, Refusal, Reply};
use std::io::{BufRead, Read};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::mpsc;

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
        let Composed { session, config, resumed, notices } = compose(env, args).await?;
        for notice in notices {
            out::talk(&format!("gjc: {notice}"));
        }
        let (handle, actor) = gjc_agent::start(session, config, resumed);
        let mut events = handle.subscribe();
        // Two threads of lines, so that a reader that stops reading holds up neither the session nor its own commands.
        let (say, mut said) = mpsc::unbounded_channel::<String>();
        let mut lines = stdin_lines();
        let replies = tokio::spawn({
            let handle = handle.clone();
            async move {
                while let Some(line) = lines.recv().await {
                    let reply = match serde_json::from_str::<Cmd>(&line) {
                        // Its reply comes when all is over; until then other commands count.
                        Ok(Cmd { id, command: Command::Finish }) => {
                            let (handle, say) = (handle.clone(), say.clone());
                            tokio::spawn(async move {
                                let reply = Reply { id: Some(id), outcome: handle.call(Command::Finish).await };
                                let _ = say.send(serde_json::to_string(&reply).unwrap_or_default());
                            });
                            continue;
                        }
                        Ok(Cmd { id, command }) => Reply { id: Some(id), outcome: handle.call(command).await },
                        Err(error) => Reply { id: id_of(&line), outcome: Outcome::Refused(unreadable(&error)) },
                    };
                    let _ = say.send(serde_json::to_string(&reply).unwrap_or_default());
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
        while closed.is_none() {
            tokio::select! {
                Some(reply) = said.recv() => out::line(&reply),
                Some(event) = events.next() => match event.body {
                    EventBody::Closed => closed = Some(event),
                    _ => out::line(&serde_json::to_string(&event).unwrap_or_default()),
                },
            }
        }
        let interrupted = stopped.load(Ordering::SeqCst);
        interrupt.abort();
        // Every command that was sent has its reply before the last event. A closed session replies at once, so a pause
        // means that no more lines are there.
        while let Ok(Some(reply)) = tokio::time::timeout(REPLIES, said.recv()).await {
            out::line(&reply);
        }
        replies.abort();
        out::line(&serde_json::to_string(&closed).unwrap_or_default());
        let _ = actor.await;
        Ok(if interrupted { ExitCode::from(130) } else { ExitCode::SUCCESS })
    });
    // The thread that reads standard input may still be waiting for a line.
    runtime.shutdown_background();
    code
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

/// The id of a line that is no command otherwise, so that its sender can tell which one it was.
fn id_of(line: &str) -> Option<gjc_protocol::CmdId> {
    serde_json::from_value(serde_json::from_str::<serde_json::Value>(line).ok()?.get("id")?.clone()).ok()
}
