//! One command of a shell, from its start to what is told of its end.

use crate::Progress;
use crate::artifacts::{Artifacts, SCHEME};
use crate::sandbox::Cell;
use gjc_process::{Exit, Finished, OutputCap, Spawn, SpawnError};
use gjc_protocol::Refusal;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Pieces of output that may wait to be shown.
const PROGRESS: usize = 64;
/// Bytes that a session in memory keeps of an output's beginning.
const IN_MEMORY: usize = 4 << 20;

/// A command that is ready to run.
pub(crate) struct Command {
    pub(crate) text: String,
    spawn: Spawn,
    cell: Option<Cell>,
    /// What is shown of the output.
    shown: OutputCap,
    /// Where all of a longer one goes.
    artifacts: Artifacts,
    number: u64,
}

/// How it ended, as the model and programs see it.
pub(crate) struct Told {
    /// What it printed, capped.
    printed: String,
    /// What is to be known of that.
    notes: Vec<String>,
    /// How it ended, unless that is as it should be.
    ending: Option<String>,
    pub(crate) details: Value,
    pub(crate) exit: Exit,
    truncated: bool,
    /// The file with all of the output.
    whole: Option<String>,
}

impl Told {
    /// All of it.
    pub(crate) fn text(&self) -> String {
        let all: Vec<&String> = self.notes.iter().chain(&self.ending).collect();
        if self.printed.is_empty() && all.is_empty() { "[no output]".into() } else { noted(&self.printed, all) }
    }
}

/// A text with notes behind it.
fn noted<'n>(printed: &str, notes: impl IntoIterator<Item = &'n String>) -> String {
    let mut text = printed.to_owned();
    for note in notes {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&format!("[{note}]"));
    }
    text
}

impl Command {
    pub(crate) fn new(text: String, mut spawn: Spawn, cell: Option<Cell>, artifacts: Artifacts) -> Self {
        let shown = spawn.cap;
        let (number, path) = artifacts.reserve("bash");
        if path.is_none() {
            // In memory it is kept from there.
            spawn.cap = OutputCap { keep_head: shown.keep_head.max(IN_MEMORY), ..shown };
        }
        spawn.spill = path;
        Self { text, spawn, cell, shown, artifacts, number }
    }

    /// Runs it to its end, in `bash` or, where there is none, in `sh`.
    pub(crate) async fn run(self, cancel: &CancellationToken, progress: &Progress) -> Result<Told, Refusal> {
        let Self { text, spawn, cell, shown: cap, artifacts, number } = self;
        gjc_fp::fp!("tools.bash.before");
        let (timeout, in_memory) = (spawn.timeout.unwrap_or_default(), spawn.spill.is_none());
        let ran = match shown(spawn.clone(), cancel, progress).await {
            Err(SpawnError::ProgramMissing { .. }) => {
                shown(Spawn { program: "sh".into(), ..spawn }, cancel, progress).await
            }
            ran => ran,
        };
        gjc_fp::fp!("tools.bash.after");
        let mut finished = ran.map_err(|error| Refusal::new("spawn", error.to_string()))?;
        if in_memory {
            let whole = std::mem::take(&mut finished.output);
            let text = whole.text();
            finished.output = whole.cut(cap);
            if finished.output.truncated {
                artifacts.keep(number, "bash", text.into_bytes());
            }
        }
        let kept = finished.output.spilled.is_some() || in_memory && finished.output.truncated;
        let artifact = kept.then(|| format!("{SCHEME}{number}"));
        Ok(told(&text, timeout, &finished, cell.as_ref(), artifact))
    }
}

/// Runs it, and shows the output as it comes.
async fn shown(spawn: Spawn, cancel: &CancellationToken, progress: &Progress) -> Result<Finished, SpawnError> {
    let (to, mut from) = mpsc::channel(PROGRESS);
    let ran = gjc_process::run(spawn, cancel.clone(), Some(to));
    let show = async {
        while let Some(chunk) = from.recv().await {
            progress.show(String::from_utf8_lossy(&chunk));
        }
    };
    tokio::join!(ran, show).0
}

fn told(command: &str, timeout: Duration, finished: &Finished, cell: Option<&Cell>, artifact: Option<String>) -> Told {
    let captured = &finished.output;
    let mut notes = Vec::new();
    if let Some(name) = &artifact {
        let file = captured.spilled.as_ref().map(|path| format!(" (the file {})", path.display())).unwrap_or_default();
        notes.push(format!("the whole output, {} bytes, is {name}{file}; read it in parts", captured.total_bytes));
    }
    notes.extend(captured.spill_failed.clone());
    if finished.left_running {
        notes.push("what the command left running was ended".into());
    }
    if finished.escaped {
        notes.push("a process that made a session of its own (setsid) goes on running".into());
    }
    let printed = captured.text();
    // Whatever the exit code: that of `cargo build | tail` is tail's.
    notes.extend(cell.and_then(|cell| cell.told.clone()).filter(|_| sounds_refused(&printed)));
    let (exit, ending) = match finished.exit {
        Exit::Code(0) => (json!(0), None),
        Exit::Code(code) => (json!(code), Some(format!("exit code {code}"))),
        Exit::Signal(signal) => (json!(format!("signal {signal}")), Some(format!("killed by signal {signal}"))),
        Exit::TimedOut => {
            let after = timeout.as_millis();
            let ending = format!("timed out after {after} ms and was ended; `timeout_ms` allows more");
            (json!("timed out"), Some(ending))
        }
        Exit::Cancelled => (json!("cancelled"), Some("cancelled".into())),
    };
    let mut details = json!({
        "command": command,
        "exit": exit,
        "wall_ms": u64::try_from(finished.wall.as_millis()).unwrap_or(u64::MAX),
        "bytes": captured.total_bytes,
        "left_running": finished.left_running,
    });
    if let Some(name) = artifact {
        details["artifact"] = Value::from(name);
    }
    let whole = captured.spilled.as_ref().map(|path| path.display().to_string());
    Told { printed, notes, ending, details, exit: finished.exit, truncated: captured.truncated, whole }
}

/// Whether a program says that something was refused: the sandbox is one reason among others, and worth a word.
fn sounds_refused(text: &str) -> bool {
    const WORDS: &[&str] = &[
        "Permission denied",
        "permission denied",
        "Operation not permitted",
        "EACCES",
        "EPERM",
        "허가 거부",
        "명령을 허용하지 않음",
        "허용되지 않",
    ];
    WORDS.iter().any(|word| text.contains(word))
}

/// What came of a person's command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ran {
    /// What it printed, capped, with notes on what is missing.
    pub output: String,
    /// The code with which it ended by itself.
    pub exit_code: Option<i32>,
    /// It was ended by a person, or with the session.
    pub cancelled: bool,
    /// The middle of the output was left out.
    pub truncated: bool,
    /// The file with all of it.
    pub whole: Option<String>,
}

impl Ran {
    pub(crate) fn of(told: Told) -> Self {
        let exit_code = match told.exit {
            Exit::Code(code) => Some(code),
            // As a shell tells it.
            Exit::Signal(signal) => Some(128 + signal),
            Exit::TimedOut | Exit::Cancelled => None,
        };
        // How it ended has fields of its own.
        let output = noted(&told.printed, &told.notes);
        let cancelled = told.exit == Exit::Cancelled;
        Self { output, exit_code, cancelled, truncated: told.truncated, whole: told.whole }
    }

    /// One that did not come to run.
    #[must_use]
    pub fn failed(why: &str) -> Self {
        Self { output: format!("[{why}]"), exit_code: None, cancelled: false, truncated: false, whole: None }
    }
}
