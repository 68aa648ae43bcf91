//! `bash`: a command in a shell.

use crate::input::{Form, schema};
use crate::sandbox::{Cell, Guard, stays_outside};
use crate::work::{artifact, failed, leave, planned};
use crate::{Confinement, Effects, Output, Preview, Run, Shown, Tool, ToolCtx, ToolOutput, ToolSpec};
use async_trait::async_trait;
use gjc_entry::{Label, Level, Vars};
use gjc_flow::{Call, Permits, SinkRef, SourceRef, digest};
use gjc_process::{Exit, Finished, OutputCap, Spawn, SpawnError};
use gjc_protocol::Refusal;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

const FORM: Form = Form { tool: "bash", example: r#"{"command": "cargo test", "timeout_ms": 120000}"# };

/// Time-out when none is given.
const TIMEOUT_MS: u64 = 120_000;
/// The longest time-out.
const TIMEOUT_MAX_MS: u64 = 600_000;
/// Pieces of output that may wait to be shown.
const PROGRESS: usize = 64;

/// Ends of variable names that hold secrets.
const SECRET_ENDS: &[&str] =
    &["_KEY", "_TOKEN", "_SECRET", "_PASSWORD", "_PASSWD", "_PASSPHRASE", "_CREDENTIALS", "_PAT"];
/// Beginnings of variable names that belong to model providers.
const SECRET_STARTS: &[&str] = &["ANTHROPIC_", "OPENAI_", "GEMINI_", "OPENROUTER_"];
/// Whole names that hold secrets.
const SECRET_NAMES: &[&str] = &["TOKEN", "SECRET", "PASSWORD", "PGPASSWORD", "MYSQL_PWD", "APIKEY", "API_KEY"];
/// What every command gets, so that nothing asks, pages or paints: nobody sits at its terminal.
const FIXED: &[(&str, &str)] =
    &[("GIT_PAGER", "cat"), ("GIT_TERMINAL_PROMPT", "0"), ("NO_COLOR", "1"), ("PAGER", "cat"), ("TERM", "dumb")];

/// Runs a command with `bash -c` (`sh -c` where there is no bash) in the working folder, and ends all that it started.
///
/// The beginning and the end of the output are shown, 16 KiB of each if [`Limits`] do not say otherwise; all of a longer one is kept as
/// `<artifacts>/<entry>-<call>.bash.log`. Details: `{command, exit, wall_ms, bytes, artifact?, left_running}`, where `exit` is
/// the code as a number, or `"signal N"`, `"timed out"` or `"cancelled"`.
///
/// It runs in the sandbox that its [`Confinement`] describes. Its output counts as public and untrusted all the same: a command
/// may still fetch and read much that nobody vouches for.
#[derive(Debug, Clone)]
pub struct Bash {
    env: Vec<(OsString, OsString)>,
    guard: Arc<Guard>,
    limits: Limits,
}

/// How long a command may run, and how much of its output is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Time-out when the model gives none; never more than `longest_timeout`.
    pub timeout: Duration,
    /// The longest time-out that the model may give.
    pub longest_timeout: Duration,
    /// What is shown of the output.
    pub shown: OutputCap,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            timeout: Duration::from_millis(TIMEOUT_MS),
            longest_timeout: Duration::from_millis(TIMEOUT_MAX_MS),
            shown: OutputCap::default(),
        }
    }
}

impl Limits {
    fn timeout_ms(&self) -> u128 {
        self.timeout.min(self.longest_timeout).as_millis()
    }
}

impl Bash {
    /// With these variables, without the secrets among them: names that end with `_KEY`, `_TOKEN`, `_SECRET`,
    /// `_PASSWORD`, `_PASSWD`, `_PASSPHRASE`, `_CREDENTIALS` or `_PAT`, that begin with `ANTHROPIC_`, `OPENAI_`, `GEMINI_`
    /// or `OPENROUTER_`, and `TOKEN`, `SECRET`, `PASSWORD`, `PGPASSWORD`, `MYSQL_PWD`, `APIKEY`, `API_KEY`; capital or not.
    /// In a sandbox those that lead to programs outside (`SSH_AUTH_SOCK`, `DISPLAY` …) are left out as well.
    /// `PAGER` and `GIT_PAGER` (`cat`), `GIT_TERMINAL_PROMPT` (0), `NO_COLOR` (1) and `TERM` (`dumb`) are set.
    #[must_use]
    pub fn new(vars: &Vars, how: Confinement) -> Self {
        let guard = Arc::new(Guard::new(how, vars));
        let fixed = |name: &str| FIXED.iter().any(|(fixed, _)| *fixed == name);
        let outside = |name: &str| guard.guards_files() && stays_outside(name);
        let given = vars.iter().filter(|(name, _)| !is_secret(name) && !fixed(name) && !outside(name));
        let env = given.chain(FIXED.iter().copied()).map(|(name, value)| (name.into(), value.into())).collect();
        Self { env, guard, limits: Limits::default() }
    }

    /// Within these limits instead of the usual ones.
    #[must_use]
    pub fn within(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }
}

/// Whether a variable's name is that of a secret (see [`Bash::new`]): no program that gjc starts for a model or a hook gets it.
#[must_use]
pub fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    SECRET_NAMES.contains(&name.as_str())
        || SECRET_ENDS.iter().any(|end| name.ends_with(end))
        || SECRET_STARTS.iter().any(|start| name.starts_with(start))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The command; several lines are a script.
    command: String,
    /// After so many milliseconds it is ended.
    timeout_ms: Option<NonZeroU64>,
}

fn parse(input: &RawValue, limits: Limits) -> Result<Input, Refusal> {
    let input: Input = FORM.parse(input)?;
    if input.command.trim().is_empty() {
        return Err(FORM.wrong("`command` is empty"));
    }
    if input.command.contains('\0') {
        return Err(FORM.wrong("`command` holds a NUL character"));
    }
    let longest = limits.longest_timeout.as_millis();
    if input.timeout_ms.is_some_and(|ms| u128::from(ms.get()) > longest) {
        return Err(FORM.wrong(format!("`timeout_ms` is more than {longest}")));
    }
    Ok(input)
}

#[async_trait]
impl Tool for Bash {
    fn name(&self) -> &'static str {
        "bash"
    }

    fn spec(&self, _: &Shown) -> Option<ToolSpec> {
        let mut input = schema::<Input>();
        let (usual, most) = (self.limits.timeout_ms(), self.limits.longest_timeout.as_millis());
        let sentence = format!("After so many milliseconds it is ended; {usual} if left out, {most} at most.");
        if let Some(timeout) = input.pointer_mut("/properties/timeout_ms/description") {
            *timeout = Value::from(sentence);
        }
        let mut description: String =
            "Runs a command in bash, in the working folder; each call is a new shell. There is no input and no \
                          terminal. What it leaves running is ended with it, but for what makes a session of its own (setsid). Of long output the middle is left out."
                .into();
        if self.guard.guards_files() {
            description.push_str(
                " It runs in a sandbox: it writes only in the repository of the working folder and in $TMPDIR, and does not read keys.",
            );
        }
        Some(ToolSpec { description, input, effects: Effects::Outside, run: Run::Serial })
    }

    fn plan(&self, _: &ToolCtx, input: &RawValue) -> Result<Call, Refusal> {
        let parsed = parse(input, self.limits)?;
        let what = format!("bash: {}", parsed.command.chars().take(80).collect::<String>());
        let digest = digest(parsed.command.as_bytes());
        Ok(Call {
            tool: self.name().into(),
            input: input.to_owned(),
            sources: vec![SourceRef { what: what.clone(), label: Label { trusted: false, ..Label::PUBLIC_TRUSTED } }],
            sinks: vec![SinkRef { what, level: Level::Restricted, digest }],
        })
    }

    fn preview(&self, _: &ToolCtx, call: &Call) -> Result<Preview, ToolOutput> {
        let parsed = parse(&call.input, self.limits);
        parsed.map(|input| Preview::of_command(&input.command)).map_err(|refusal| failed(planned(call), &refusal))
    }

    async fn run(&self, ctx: ToolCtx, call: Call, permits: Permits) -> ToolOutput {
        let label = planned(&call);
        let done = match parse(&call.input, self.limits) {
            Ok(input) => self.command(&ctx, input, permits, label).await,
            Err(refusal) => Err(refusal),
        };
        done.unwrap_or_else(|refusal| failed(label, &refusal))
    }
}

impl Bash {
    async fn command(
        &self,
        ctx: &ToolCtx,
        input: Input,
        mut permits: Permits,
        label: Label,
    ) -> Result<ToolOutput, Refusal> {
        let timeout = input.timeout_ms.map(|ms| Duration::from_millis(ms.get()));
        let timeout = timeout.unwrap_or(self.limits.timeout).min(self.limits.longest_timeout);
        let mut spawn = Spawn::new("bash", &ctx.cwd);
        spawn.args = vec!["-c".into(), input.command.as_str().into()];
        spawn.env = self.env.clone();
        spawn.timeout = Some(timeout);
        spawn.cap = self.limits.shown;
        spawn.spill = artifact(ctx, "bash.log");
        let cell = self.cell(ctx).await?;
        if let Some(cell) = &cell {
            spawn.env.retain(|(name, _)| cell.env.iter().all(|(set, _)| set != name));
            spawn.env.extend(cell.env.iter().cloned());
            spawn.sandbox = Some(cell.sandbox.clone());
        }
        let _by = leave(ctx, &mut permits, digest(input.command.as_bytes()))?;
        gjc_fp::fp!("tools.bash.before");
        let ran = match shown(spawn.clone(), ctx).await {
            Err(SpawnError::ProgramMissing { .. }) => shown(Spawn { program: "sh".into(), ..spawn }, ctx).await,
            ran => ran,
        };
        gjc_fp::fp!("tools.bash.after");
        let finished = ran.map_err(|error| Refusal::new("spawn", error.to_string()))?;
        Ok(output(&input.command, timeout, &finished, cell.as_ref(), label))
    }

    /// The sandbox of a command that begins now.
    async fn cell(&self, ctx: &ToolCtx) -> Result<Option<Cell>, Refusal> {
        let (guard, cwd, artifacts) = (Arc::clone(&self.guard), ctx.cwd.clone(), ctx.artifacts.clone());
        tokio::task::spawn_blocking(move || guard.cell(&cwd, artifacts.as_deref()))
            .await
            .map_err(|error| Refusal::new("internal", format!("the sandbox could not be prepared: {error}")))?
    }
}

/// Runs it, and shows the output as it comes.
async fn shown(spawn: Spawn, ctx: &ToolCtx) -> Result<Finished, SpawnError> {
    let (to, mut from) = mpsc::channel(PROGRESS);
    let ran = gjc_process::run(spawn, ctx.cancel.clone(), Some(to));
    let show = async {
        while let Some(chunk) = from.recv().await {
            ctx.progress.show(String::from_utf8_lossy(&chunk));
        }
    };
    tokio::join!(ran, show).0
}

fn output(command: &str, timeout: Duration, finished: &Finished, cell: Option<&Cell>, label: Label) -> ToolOutput {
    let captured = &finished.output;
    let mut notes = Vec::new();
    if let Some(path) = &captured.spilled {
        notes.push(format!(
            "the whole output, {} bytes, is in {}; read it in parts",
            captured.total_bytes,
            path.display()
        ));
    }
    notes.extend(captured.spill_failed.clone());
    if finished.left_running {
        notes.push("what the command left running was ended".into());
    }
    if finished.escaped {
        notes.push("a process that made a session of its own (setsid) goes on running".into());
    }
    let exit = match finished.exit {
        Exit::Code(0) => json!(0),
        Exit::Code(code) => {
            notes.push(format!("exit code {code}"));
            json!(code)
        }
        Exit::Signal(signal) => {
            notes.push(format!("killed by signal {signal}"));
            json!(format!("signal {signal}"))
        }
        Exit::TimedOut => {
            notes.push(format!("timed out after {} ms and was ended; `timeout_ms` allows more", timeout.as_millis()));
            json!("timed out")
        }
        Exit::Cancelled => {
            notes.push("cancelled".into());
            json!("cancelled")
        }
    };
    let mut text = captured.text();
    // Whatever the exit code: that of `cargo build | tail` is tail's.
    if let Some(told) = cell.and_then(|cell| cell.told.clone()).filter(|_| sounds_refused(&text)) {
        notes.push(told);
    }
    if text.is_empty() && notes.is_empty() {
        text.push_str("[no output]");
    }
    for note in notes {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&format!("[{note}]"));
    }
    let mut details = json!({
        "command": command,
        "exit": exit,
        "wall_ms": u64::try_from(finished.wall.as_millis()).unwrap_or(u64::MAX),
        "bytes": captured.total_bytes,
        "left_running": finished.left_running,
    });
    if let Some(path) = &captured.spilled {
        details["artifact"] = Value::from(path.to_string_lossy());
    }
    let output = Output::from(label).text(text).details(details);
    if finished.exit == Exit::Code(0) { output.done() } else { output.error().done() }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_do_not_reach_a_command() {
        for name in [
            "ANTHROPIC_API_KEY",
            "GITHUB_TOKEN",
            "aws_secret_access_key",
            "OPENAI_BASE_URL",
            "PGPASSWORD",
            "CLIENT_SECRET",
        ] {
            assert!(is_secret(name), "{name}");
        }
        for name in ["PATH", "HOME", "LANG", "KEYBOARD", "TOKENIZERS_PARALLELISM", "SSH_AUTH_SOCK"] {
            assert!(!is_secret(name), "{name}");
        }
    }
}
