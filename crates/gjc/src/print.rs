//! `-p`: one answer on standard output. `--mode json`: every event, one a line.

use crate::cli::{Mode, SessionArgs};
use crate::failure::Failure;
use crate::{compose, out, prompt, world};
use gjc_agent::SessionHandle;
use gjc_entry::Env;
use gjc_protocol::{Command, Event, EventBody, Health, Outcome, PromptMode, TurnEnd};
use std::io::IsTerminal;
use std::process::ExitCode;

/// Runs one prompt.
pub(crate) fn run(env: &Env, args: &SessionArgs) -> Result<ExitCode, Failure> {
    let said = prompt::from_person(args)?;
    let runtime = world::runtime()?;
    let code = runtime.block_on(async {
        let (handle, actor, keeper) = compose::begin(env, args).await?;
        let unanswered = keeper.offer(said.words()).await;
        let parts = said.into_parts(&handle.cwd(), &env.dirs.agent);
        let mut events = handle.subscribe();
        let interrupt = tokio::spawn({
            let handle = handle.clone();
            async move {
                interrupted().await;
                handle.call(Command::Abort).await;
                // The second time a person means it.
                interrupted().await;
                std::process::exit(130)
            }
        });
        keeper.record(&parts).await;
        if let Outcome::Refused(refusal) = handle.call(Command::Prompt { parts, mode: PromptMode::Steer }).await {
            return Err(refusal.into());
        }
        let finish = tokio::spawn({
            let handle = handle.clone();
            async move { handle.call(Command::Finish).await }
        });
        let mut printed = Printed::default();
        while let Some(event) = events.next().await {
            if args.mode == Mode::Json {
                out::line(&serde_json::to_string(&event).unwrap_or_default());
            }
            keeper.see(&event.body);
            match event.body {
                EventBody::Session { .. } if args.mode == Mode::Json => out::unanswered(event.seq, unanswered.as_ref()),
                EventBody::Resync if args.mode == Mode::Json => resync(&handle, event.seq).await,
                // The answer is out before the session is closed: closing may take a moment, reading it need not wait.
                EventBody::TurnEnded { .. } if args.mode == Mode::Text && !printed.jobs => printed.answer(),
                EventBody::Closed if args.mode == Mode::Text && printed.jobs => printed.answer(),
                body => printed.see(body),
            }
        }
        interrupt.abort();
        let _ = actor.await;
        keeper.finish().await;
        Ok(printed.end(finish.await.ok()))
    });
    // A read that never comes back (a device, a dead network folder) has a thread that nobody waits for.
    runtime.shutdown_background();
    code
}

/// Standard output was not read for so long that events were dropped: the state takes their place.
async fn resync(handle: &SessionHandle, seq: u64) {
    // A session that is closing answers no more; what is left of its events tells the end.
    if let Outcome::Done { value } = handle.call(Command::Snapshot).await
        && let Ok(state) = serde_json::from_value(value)
    {
        let event = Event { seq, body: EventBody::Snapshot { state } };
        out::line(&serde_json::to_string(&event).unwrap_or_default());
    }
}

/// What of the events matters at the end.
#[derive(Default)]
struct Printed {
    text: String,
    /// Background jobs were started: turns may follow by themselves, and the last one's answer is the answer.
    jobs: bool,
    unstored: Option<String>,
    failure: Option<String>,
}

impl Printed {
    fn see(&mut self, body: EventBody) {
        match body {
            EventBody::Message { message, .. } if message["role"] == "assistant" => {
                let blocks = message["content"].as_array().map(Vec::as_slice).unwrap_or_default();
                let texts: Vec<&str> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
                self.text = texts.join("\n");
            }
            // What was said before the tools ran is not the answer, should the model never come to give one.
            EventBody::MessageStarted | EventBody::Withheld => self.text.clear(),
            EventBody::JobStarted { .. } => self.jobs = true,
            EventBody::Storage(Health::Failing { why }) => self.unstored = Some(why),
            EventBody::Storage(Health::Ok) => self.unstored = None,
            EventBody::Retry { attempt, delay_ms, why } => {
                out::notice(&format!("gjc: {why} (attempt {attempt} in {:.1} s)", delay_ms as f64 / 1000.0));
            }
            EventBody::QuotaWait { until, why, .. } => {
                out::notice(&format!("gjc: {why} (waiting until {until}; Ctrl+C ends it)"));
            }
            EventBody::Notice { text } => out::notice(&format!("gjc: {text}")),
            EventBody::Rescued { file, .. } => {
                let what = "the session's file was changed or taken away by another program; all that could still be read is in";
                out::talk(&format!("gjc: {what} {file}, where it goes on"));
            }
            EventBody::Error { sentence, hint, .. } => {
                let hint = hint.map(|hint| format!("\nhint: {hint}")).unwrap_or_default();
                self.failure = Some(format!("{sentence}{hint}"));
            }
            _ => {}
        }
    }

    fn answer(&self) {
        if self.text.is_empty() {
            return;
        }
        // Data goes out as it is; a terminal would obey what a model writes.
        if std::io::stdout().is_terminal() { out::line(&out::plain(&self.text)) } else { out::line(&self.text) }
    }

    /// The exit code, from the reply to `finish`.
    fn end(self, reply: Option<Outcome>) -> ExitCode {
        if let Some(failure) = &self.failure {
            out::talk(&format!("gjc: {failure}"));
        }
        if let Some(why) = &self.unstored {
            out::talk(&format!("gjc: the session could not be stored: {why}"));
            out::talk(
                "hint: the answer above is all there is of it; make room there or permit writing there, or choose another folder with GJC_CODING_AGENT_DIR",
            );
        }
        let Some(Outcome::Done { value }) = reply else { return ExitCode::FAILURE };
        match serde_json::from_value(value["end"].clone()) {
            Ok(TurnEnd::Done) if value["stored"] == true => ExitCode::SUCCESS,
            Ok(TurnEnd::Aborted) => {
                out::talk("gjc: interrupted");
                ExitCode::from(130)
            }
            _ => ExitCode::FAILURE,
        }
    }
}

/// Completes at the first interrupt, hang-up or termination.
pub(crate) async fn interrupted() {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut interrupt), Ok(mut terminate)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return std::future::pending().await;
    };
    // A terminal that was closed: what was done is kept as with any other end. With `nohup` it is none.
    let mut hangup = (!ignores_hangup()).then(|| signal(SignalKind::hangup()).ok()).flatten();
    let closed = async {
        match &mut hangup {
            Some(hangup) => drop(hangup.recv().await),
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        () = closed => {}
    }
}

/// Whether whoever started gjc has told it to ignore a hang-up (`SigIgn` in proc(5), a mask in which signal 1 is the lowest bit).
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}
