//! `bash`: a command in a shell.

use crate::artifacts::Artifacts;
use crate::command::{Command, Ran};
use crate::input::{Form, schema};
use crate::sandbox::{Cell, Guard, stays_outside};
use crate::work::{cancelled, failed, leave, planned};
use crate::{
    Confinement, Effects, JobEnd, NewJob, Output, Preview, Progress, Run, Running, Shown, Tool, ToolCtx, ToolOutput,
    ToolSpec,
};
use async_trait::async_trait;
use gjc_entry::{Label, Level, Vars};
use gjc_flow::{Call, Permits, SinkRef, SourceRef, digest};
use gjc_process::{Exit, OutputCap, Spawn};
use gjc_protocol::{JobStatus, Refusal};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::num::NonZeroU64;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

const FORM: Form = Form { tool: "bash", example: r#"{"command": "cargo test", "timeout_ms": 120000}"# };

/// Time-out when none is given.
const TIMEOUT_MS: u64 = 120_000;
/// The longest time-out.
const TIMEOUT_MAX_MS: u64 = 600_000;
/// Characters of a command that stand for it.
const FEW: usize = 80;
/// How long a poll of a job waits.
const POLL: Duration = Duration::from_secs(30);

/// Words in the names of variables that hold secrets, between lines and without numbers behind them.
const SECRET_WORDS: &[&str] = &[
    "KEY",
    "KEYS",
    "APIKEY",
    "TOKEN",
    "TOKENS",
    "SECRET",
    "SECRETS",
    "PASS",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "SSHPASS",
    "PGPASSWORD",
    "CREDENTIAL",
    "CREDENTIALS",
    "PAT",
    "AUTH",
    "BEARER",
    "WEBHOOK",
];
/// Beginnings of variable names that belong to model providers, or to settings of git, which may hold a header with a key.
const SECRET_STARTS: &[&str] =
    &["ANTHROPIC_", "OPENAI_", "GEMINI_", "OPENROUTER_", "GIT_CONFIG_COUNT", "GIT_CONFIG_VALUE_"];
/// Whole names that hold secrets.
const SECRET_NAMES: &[&str] = &["MYSQL_PWD"];
/// Names that only look so.
const NO_SECRETS: &[&str] = &["SSH_AUTH_SOCK"];
/// What every command gets, so that nothing asks, pages or paints: nobody sits at its terminal.
const FIXED: &[(&str, &str)] =
    &[("GIT_PAGER", "cat"), ("GIT_TERMINAL_PROMPT", "0"), ("NO_COLOR", "1"), ("PAGER", "cat"), ("TERM", "dumb")];

/// Runs a command with `bash -c` (`sh -c` where there is no bash) in the working folder, and ends all that it started.
///
/// The beginning and the end of the output are shown, 16 KiB of each if [`Limits`] do not say otherwise; all of a longer one is
/// kept ([`Artifacts`]). Details: `{command, exit, wall_ms, bytes, artifact?, left_running}`, where `exit` is the code as a
/// number, or `"signal N"`, `"timed out"` or `"cancelled"`, and `artifact` the name as in `artifact://3`.
///
/// With `background` it is a job of the session ([`crate::Jobs`]): the call returns at once with the job's id, the command
/// runs on in the same sandbox, and its end comes to the model by itself. Details then: `{command, job}`.
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
    /// How long `job` waits for the end of one that runs in the background.
    pub poll: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            timeout: Duration::from_millis(TIMEOUT_MS),
            longest_timeout: Duration::from_millis(TIMEOUT_MAX_MS),
            shown: OutputCap::default(),
            poll: POLL,
        }
    }
}

impl Limits {
    fn timeout_ms(&self) -> u128 {
        self.timeout.min(self.longest_timeout).as_millis()
    }
}

impl Bash {
    /// With these variables, without the secrets among them ([`is_secret`]).
    /// In a sandbox those that lead to programs outside (`SSH_AUTH_SOCK`, `DISPLAY` …) are left out as well.
    /// `PAGER` and `GIT_PAGER` (`cat`), `GIT_TERMINAL_PROMPT` (0), `NO_COLOR` (1) and `TERM` (`dumb`) are set.
    #[must_use]
    pub fn new(vars: &Vars, how: Confinement) -> Self {
        let guard = Arc::new(Guard::new(how, vars));
        let fixed = |name: &str| FIXED.iter().any(|(fixed, _)| *fixed == name);
        let outside = |name: &str| guard.guards_files() && stays_outside(name);
        let given = vars.iter().filter(|(name, value)| !is_secret(name, value) && !fixed(name) && !outside(name));
        let env = given.chain(FIXED.iter().copied()).map(|(name, value)| (name.into(), value.into())).collect();
        Self { env, guard, limits: Limits::default() }
    }

    /// Within these limits instead of the usual ones.
    #[must_use]
    pub fn within(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }
}

/// Whether a variable holds a secret: by a word in its name (`KEY`, `TOKEN`, `SECRET`, `PASS`, `AUTH` …, capital or not), by the
/// provider or program that it belongs to, or by a password in the address that it holds. No program that gjc starts for a
/// model or a hook gets it.
#[must_use]
pub fn is_secret(name: &str, value: &str) -> bool {
    let name = name.to_ascii_uppercase();
    if NO_SECRETS.contains(&name.as_str()) {
        return false;
    }
    let word = |word: &str| SECRET_WORDS.contains(&word.trim_end_matches(|c: char| c.is_ascii_digit()));
    SECRET_NAMES.contains(&name.as_str())
        || SECRET_STARTS.iter().any(|start| name.starts_with(start))
        || name.split('_').any(word)
        || has_password(value)
}

/// Whether an address with a password stands in a value: `postgres://me:secret@host/db`.
fn has_password(value: &str) -> bool {
    value.split("://").skip(1).any(|rest| {
        let authority = rest.split(['/', '?', '#', ' ']).next().unwrap_or_default();
        authority.rsplit_once('@').is_some_and(|(user, _)| user.contains(':'))
    })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The command; several lines are a script.
    command: String,
    /// After so many milliseconds it is ended.
    timeout_ms: Option<NonZeroU64>,
    /// Runs it as a job in the background: the call returns at once, and its end is told to you when it comes.
    #[serde(default)]
    background: bool,
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
        let sentence = format!(
            "After so many milliseconds it is ended; {usual} if left out, {most} at most. In the background: no limit if left out."
        );
        if let Some(timeout) = input.pointer_mut("/properties/timeout_ms/description") {
            *timeout = Value::from(sentence);
        }
        let mut description: String =
            "Runs a command in bash, in the working folder; each call is a new shell. There is no input and no \
                          terminal. What it leaves running is ended with it, but for what makes a session of its own (setsid). Of long output the middle is left out. What takes long, and servers, run in the background: such a job ends with the session."
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
        let shown = |input: Input| Preview {
            text: input
                .background
                .then(|| "in the background: beside the conversation, until it ends or the session does\n".into()),
            ..Preview::of_command(&input.command)
        };
        parsed.map(shown).map_err(|refusal| failed(planned(call), &refusal))
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
        let given = input.timeout_ms.map(|ms| Duration::from_millis(ms.get()));
        // Nobody waits for what runs in the background.
        let usual = (!input.background).then_some(self.limits.timeout);
        let timeout = given.or(usual).map(|timeout| timeout.min(self.limits.longest_timeout));
        let mut spawn = Spawn::new("bash", &ctx.cwd);
        spawn.args = vec!["-c".into(), input.command.as_str().into()];
        spawn.env = self.env.clone();
        spawn.timeout = timeout;
        spawn.cap = self.limits.shown;
        let cell = self.cell(ctx).await?;
        if let Some(cell) = &cell {
            spawn.env.retain(|(name, _)| cell.env.iter().all(|(set, _)| set != name));
            spawn.env.extend(cell.env.iter().cloned());
            spawn.sandbox = Some(cell.sandbox.clone());
        }
        let command = Command::new(input.command, spawn, cell, ctx.artifacts.clone());
        if input.background {
            return in_background(ctx, command, permits, label).await;
        }
        let _by = leave(ctx, &mut permits, digest(command.text.as_bytes()))?;
        let told = command.run(&ctx.cancel, &ctx.progress).await?;
        let output = Output::from(label).text(told.text()).details(told.details);
        Ok(if told.exit == Exit::Code(0) { output.done() } else { output.error().done() })
    }

    /// The sandbox of a command that begins now.
    async fn cell(&self, ctx: &ToolCtx) -> Result<Option<Cell>, Refusal> {
        let (guard, cwd, artifacts) = (Arc::clone(&self.guard), ctx.cwd.clone(), ctx.artifacts.clone());
        tokio::task::spawn_blocking(move || guard.cell(&cwd, artifacts.folder()))
            .await
            .map_err(|error| Refusal::new("internal", format!("the sandbox could not be prepared: {error}")))?
    }
}

impl Bash {
    /// Runs a person's own command, without a time-out. The secrets among the variables are left out here too: what the
    /// command prints goes into the session.
    pub async fn run_for_person(
        &self,
        cwd: &Path,
        artifacts: &Artifacts,
        command: &str,
        cancel: &CancellationToken,
        progress: &Progress,
    ) -> Ran {
        let mut spawn = Spawn::new("bash", cwd);
        spawn.args = vec!["-c".into(), command.into()];
        spawn.env = self.env.clone();
        spawn.cap = self.limits.shown;
        let command = Command::new(command.to_owned(), spawn, None, artifacts.clone());
        command.run(cancel, progress).await.map_or_else(|refusal| Ran::failed(&refusal.sentence), Ran::of)
    }
}

/// Makes a job of a command.
async fn in_background(
    ctx: &ToolCtx,
    command: Command,
    mut permits: Permits,
    label: Label,
) -> Result<ToolOutput, Refusal> {
    let (text, around) = (command.text.clone(), ctx.clone());
    let begin = move |Running { cancel, progress }: Running| {
        // While its record was stored, a person may have ended the turn.
        if around.cancel.is_cancelled() {
            return Err(cancelled());
        }
        let _by = leave(&around, &mut permits, digest(command.text.as_bytes()))?;
        Ok(Box::pin(async move {
            match command.run(&cancel, &progress).await {
                Ok(told) => JobEnd { status: status(told.exit), text: told.text(), details: told.details },
                Err(refusal) => {
                    let details = json!({ "error": refusal.code });
                    JobEnd { status: JobStatus::Failed, text: refusal.to_string(), details }
                }
            }
        }) as gjc_entry::BoxFuture<'static, JobEnd>)
    };
    let job = NewJob { tool: "bash", what: in_few_words(&text), label, begin: Box::new(begin) };
    let id = ctx.jobs.start(ctx.op(), job).await?;
    let told =
        format!("Started background job {id}. Its end is told to you when it comes; `job` waits for it or ends it.");
    // Of what the command prints there is nothing in it.
    Ok(Output::from(Label::PUBLIC_TRUSTED).text(told).details(json!({ "command": text, "job": id })).done())
}

fn status(exit: Exit) -> JobStatus {
    match exit {
        Exit::Code(0) => JobStatus::Completed,
        Exit::Cancelled => JobStatus::Cancelled,
        Exit::Code(_) | Exit::Signal(_) | Exit::TimedOut => JobStatus::Failed,
    }
}

/// The beginning of a command, in one line.
fn in_few_words(command: &str) -> String {
    let line = command.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= FEW { line } else { line.chars().take(FEW - 1).chain(['…']).collect() }
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
            "SSHPASS",
            "AWS_ACCESS_KEY_ID",
            "AWS_BEARER_TOKEN_BEDROCK",
            "DB_PASS",
            "SECRET_KEY_BASE",
            "SLACK_WEBHOOK_URL",
            "VAULT_SECRET_ID",
            "GOOGLE_API_KEY_1",
            "GROQ_APIKEY",
            "GITHUB_AUTH",
            "NPM_CONFIG__AUTH",
            "CLOUDFLARE_API_KEY2",
            "GIT_CONFIG_VALUE_0",
            "MYSQL_PWD",
        ] {
            assert!(is_secret(name, "x"), "{name}");
        }
        for name in
            ["PATH", "HOME", "LANG", "KEYBOARD", "TOKENIZERS_PARALLELISM", "SSH_AUTH_SOCK", "MONKEY", "GIT_ASKPASS"]
        {
            assert!(!is_secret(name, "/x"), "{name}");
        }
        assert!(is_secret("DATABASE_URL", "postgres://me:비밀@db:5432/x"));
        for value in ["http://host:80/a@b", "postgres://me@db/x", "https://example.com/?q=a:b@c", "a:b@c"] {
            assert!(!is_secret("DATABASE_URL", value), "{value}");
        }
    }
}
