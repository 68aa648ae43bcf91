//! What searching 100,000 files costs beside ripgrep and fd, each run in a process of its own.
//! `cargo bench -p gjc-tools [-- TEXT]`.
#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

use gjc_entry::{BoxFuture, Clock, EntryId, Label, Level, OpId, SessionId, Timestamp};
use gjc_flow::{LabelState, Policy, Runtime, decide};
use gjc_tools::{Find, Grep, Ls, Nobody, Progress, SessionView, Surroundings, ToolCtx, Tools};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use testkit::probe::{self, Row, Suite};
use testkit::search::{forest, on_path};
use tokio_util::sync::CancellationToken;

const FILES: usize = 100_000;

fn main() {
    probe::main(env!("CARGO_TARGET_TMPDIR"), suites, job);
}

/// One comparison: the judge's arguments and ours.
struct Contest {
    title: &'static str,
    judge: &'static str,
    arguments: &'static [&'static str],
    tool: &'static str,
    input: fn() -> Value,
}

const CONTESTS: &[Contest] = &[
    Contest {
        title: "find *.md",
        judge: "fd",
        arguments: &["--hidden", "--exclude", ".git", "--case-sensitive", "--glob", "--", "*.md"],
        tool: "find",
        input: || json!({"pattern": "*.md", "limit": 1_000_000}),
    },
    Contest {
        title: "grep a word in 200 files",
        judge: "rg",
        arguments: &["--hidden", "-g", "!.git", "-n", "--no-heading", "--", "needle_in_haystack"],
        tool: "grep",
        input: || json!({"pattern": "needle_in_haystack", "limit": 1_000_000}),
    },
    Contest {
        title: "grep 한글 in 200 files",
        judge: "rg",
        arguments: &["--hidden", "-g", "!.git", "-n", "--no-heading", "--", "찾았다"],
        tool: "grep",
        input: || json!({"pattern": "찾았다", "limit": 1_000_000}),
    },
    Contest {
        title: "grep a pattern in all lines",
        judge: "rg",
        arguments: &["--hidden", "-g", "!.git", "-n", "--no-heading", "--", r"value_\d+ = compute"],
        tool: "grep",
        input: || json!({"pattern": r"value_\d+ = compute"}),
    },
];

fn suites(folder: &Path) -> io::Result<Vec<Suite>> {
    let root = forest(folder, FILES)?;
    let suite = |(n, contest): (usize, &Contest)| {
        let n = PathBuf::from(n.to_string());
        let judge = on_path(contest.judge).map(|_| Row::job(contest.judge, "judge", &[&root, &n]));
        let ours = Row::job("gjc", "ours", &[&root, &n]);
        let title = format!("search: {}, {FILES} files", contest.title);
        Suite { title, rows: judge.into_iter().chain([ours]).collect() }
    };
    Ok(CONTESTS.iter().enumerate().map(suite).collect())
}

fn job(name: &str, arguments: &[PathBuf]) -> io::Result<Value> {
    let [root, n] = arguments else { return Err(io::Error::other("a job needs a tree and a number")) };
    let contest = n.to_str().and_then(|n| n.parse::<usize>().ok()).and_then(|n| CONTESTS.get(n));
    let contest = contest.ok_or_else(|| io::Error::other("there is no such contest"))?;
    match name {
        "judge" => judge(root, contest),
        "ours" => ours(root, contest),
        _ => Err(io::Error::other("there is no such job")),
    }
}

/// The judge with its start and its output read, as a tool that starts it would pay for it.
fn judge(root: &Path, contest: &Contest) -> io::Result<Value> {
    let program = on_path(contest.judge).ok_or_else(|| io::Error::other("the judge is not installed"))?;
    let run = || {
        let mut child = Command::new(program)
            .args(contest.arguments)
            .current_dir(root)
            .env("HOME", "/nonexistent")
            .env("XDG_CONFIG_HOME", "/nonexistent")
            .arg0(contest.judge)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut said = Vec::new();
        child.stdout.take().expect("it was piped").read_to_end(&mut said)?;
        child.wait()?;
        Ok(said)
    };
    // The processor time is that of this process, which only waits: the wall is what is compared.
    let mut took = probe::took(run, |said| json!({"lines": memchr::memchr_iter(b'\n', said).count()}))?;
    took.as_object_mut().expect("it is an object").remove("cpu_ns");
    Ok(took)
}

/// Ours, from the call to its output.
fn ours(root: &Path, contest: &Contest) -> io::Result<Value> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let state = LabelState::new(Label::PUBLIC_TRUSTED, Level::Restricted).expect("it is within the clearance");
    let (to, _progress) = tokio::sync::mpsc::unbounded_channel();
    let op = OpId { session: SessionId::new("s").expect("an id"), entry: EntryId::Short(1), call: 0 };
    let around = Surroundings {
        cancel: CancellationToken::new(),
        session: Arc::new(View),
        redeem: Arc::new(state.watch()),
        host: Arc::new(Nobody),
        clock: Arc::new(Real),
        cwd: root.into(),
        home: "/nowhere".into(),
        own: "/nowhere".into(),
        artifacts: gjc_tools::Artifacts::new(None),
        progress: Progress::new(to),
        jobs: Arc::new(gjc_tools::NoJobs),
    };
    let ctx = ToolCtx::new(&Runtime::new(), op.clone(), around);
    let tools = Tools::new(vec![Arc::new(Grep), Arc::new(Find), Arc::new(Ls)]);
    let tool = Arc::clone(tools.get(contest.tool).expect("it is built in"));
    let input = RawValue::from_string((contest.input)().to_string())?;
    let run = || {
        let call = tool.plan(&ctx, &input).map_err(|refusal| io::Error::other(refusal.to_string()))?;
        let permits = decide(&Policy::default(), &state, &call).permits(&op, &state);
        Ok(runtime.block_on(tool.run(ctx.clone(), call, permits)))
    };
    probe::took(run, |output| output.details.clone())
}

struct View;

impl SessionView for View {
    fn label(&self) -> Label {
        Label::PUBLIC_TRUSTED
    }
}

struct Real;

impl Clock for Real {
    fn wall(&self) -> Timestamp {
        Timestamp::from_millis(0)
    }

    fn mono(&self) -> Instant {
        Instant::now()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(duration))
    }
}
