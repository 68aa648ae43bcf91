//! What the modules share: runs of the binary, looks at what it left, and snapshots without ids, times and paths.

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use testkit::anthropic::Turn;
use testkit::harness::{Home, Run};
use testkit::stub::{Reply, Script, Stub};

/// A key that no test may ever find anywhere but in the request's header.
pub(crate) const KEY: &str = "sk-ant-e2e-key-0123456789";

/// How long anything may take that is waited for.
pub(crate) const LIMIT: Duration = Duration::from_secs(20);

/// A run of gjc without arguments.
pub(crate) fn gjc(home: &Home) -> Run<'_> {
    home.run(env!("CARGO_BIN_EXE_gjc"))
}

/// A run of gjc with these arguments.
pub(crate) fn look<'h>(home: &'h Home, args: &[&str]) -> Run<'h> {
    gjc(home).args(args)
}

/// `gjc -p <prompt>` against a stub.
pub(crate) fn ask<'h>(home: &'h Home, stub: &Stub, prompt: &str) -> Run<'h> {
    on(home, stub).args(["-p", prompt])
}

/// gjc with the stub as its model.
pub(crate) fn on<'h>(home: &'h Home, stub: &Stub) -> Run<'h> {
    gjc(home).args(["--model", "anthropic/claude-stub-1", "--provider-url", &stub.url()]).env("ANTHROPIC_API_KEY", KEY)
}

/// A stub that gives these answers in turn.
pub(crate) fn stub(turns: impl IntoIterator<Item = Turn>) -> Stub {
    replies(turns.into_iter().map(|turn| turn.reply()))
}

/// A stub that gives these replies in turn.
pub(crate) fn replies(replies: impl IntoIterator<Item = Reply>) -> Stub {
    Stub::start(Script::queue(replies))
}

/// An answer of one text.
pub(crate) fn text(text: &str) -> Turn {
    Turn::new("msg_1").text(text)
}

/// An answer of many events, written at once.
pub(crate) fn long(text: &str) -> Reply {
    Reply::sse(self::text(text).sse())
}

/// All session files of the home, by path.
pub(crate) fn session_files(home: &Home) -> Vec<PathBuf> {
    let sessions = home.agent_dir().join("sessions");
    let mut files: Vec<PathBuf> =
        walk(&sessions).into_iter().filter(|path| path.extension().is_some_and(|e| e == "jsonl")).collect();
    files.sort();
    files
}

/// The only session file.
#[track_caller]
pub(crate) fn the_session(home: &Home) -> PathBuf {
    let files = session_files(home);
    assert_eq!(files.len(), 1, "{files:?}");
    files[0].clone()
}

/// The lines of a session file as JSON.
#[track_caller]
pub(crate) fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    assert!(text.ends_with('\n'), "{} ends in the middle of a line", path.display());
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"))).collect()
}

/// The messages of a session file, in its order.
pub(crate) fn messages(path: &Path) -> Vec<Value> {
    lines(path).into_iter().filter(|line| line["type"] == "message").map(|line| line["message"].clone()).collect()
}

/// (entry id, message) of each answer in a session file.
pub(crate) fn answers(path: &Path) -> Vec<(String, Value)> {
    let of = |line: Value| (line["id"].as_str().unwrap().to_owned(), line["message"].clone());
    lines(path).into_iter().filter(|line| line["message"]["role"] == "assistant").map(of).collect()
}

/// The id in a session file's header.
pub(crate) fn id_of(path: &Path) -> String {
    lines(path)[0]["id"].as_str().unwrap().to_owned()
}

/// Every file and folder below a folder, links not followed.
pub(crate) fn walk(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let Ok(entries) = std::fs::read_dir(dir) else { return found };
    for entry in entries.map(Result::unwrap) {
        found.push(entry.path());
        if entry.file_type().unwrap().is_dir() {
            found.extend(walk(&entry.path()));
        }
    }
    found.sort();
    found
}

/// Every file below a folder with its bytes, and every folder: equal before and after means that nothing has changed.
pub(crate) fn tree(dir: &Path) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    walk(dir)
        .into_iter()
        .map(|path| (path.clone(), if path.is_file() { std::fs::read(&path).ok() } else { None }))
        .collect()
}

/// The folder that holds a home's three.
pub(crate) fn root(home: &Home) -> PathBuf {
    home.work().parent().unwrap().to_path_buf()
}

/// stdout as one JSON document.
#[track_caller]
pub(crate) fn json(out: &testkit::harness::Output) -> Value {
    serde_json::from_slice(&out.stdout).unwrap_or_else(|e| panic!("{e}: {out}"))
}

/// Runs assertions with filters that put names in the place of what differs from run to run.
pub(crate) fn steady(home: &Home, check: impl FnOnce()) {
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(true);
    settings.set_omit_expression(true);
    let root = root(home).display().to_string();
    settings.add_filter(r"--[^ /]*testkit-home-[^ /]*--", "[bucket]");
    settings.add_filter(&root.replace('.', r"\."), "[root]");
    settings.add_filter(r"127\.0\.0\.1:\d+", "[stub]");
    settings.add_filter(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{3}Z", "[time]");
    settings.add_filter(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", "[time]");
    settings.add_filter(r"\d{4}-\d\d-\d\d \d\d:\d\d", "[minute]");
    settings.add_filter(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "[session]");
    settings.add_filter(r"\b1[5-9]\d{11}\b", "[millis]");
    settings.add_filter(r#""wall_ms": \d+"#, r#""wall_ms": [ms]"#);
    settings.add_filter(r"\(pid \d+\)", "(pid [pid])");
    settings.add_filter(r"\b[0-9a-f]{12}…", "[sha]…");
    settings.add_filter(r#"(["/ ])[0-9a-f]{8}([":/ ])"#, "${1}[entry]${2}");
    settings.bind(check);
}

/// An output for a snapshot: code, stdout, stderr.
pub(crate) fn shown(out: &testkit::harness::Output) -> String {
    let code = out.code().map_or_else(|| format!("signal {:?}", out.signal), |code| code.to_string());
    format!("exit {code}\n--- stdout\n{}--- stderr\n{}", out.out(), out.err())
}

/// A session file that the test makes: its lines below the agent folder, in a bucket of its own.
pub(crate) fn plant(home: &Home, bucket: &str, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
    home.write(Path::new("home/.gjc/agent/sessions").join(bucket).join(name), bytes)
}

/// A header line.
pub(crate) fn header(id: &str, cwd: &str) -> String {
    format!(
        "{{\"type\":\"session\",\"version\":3,\"id\":\"{id}\",\"timestamp\":\"2026-06-05T07:18:54.123Z\",\"cwd\":\"{cwd}\"}}\n"
    )
}

/// A user's line.
pub(crate) fn user(id: &str, parent: Option<&str>, text: &str) -> String {
    message(
        id,
        parent,
        &serde_json::json!({"role": "user", "content": [{"type": "text", "text": text}], "timestamp": 1}),
    )
}

/// A line with a message, at minute `id`-independent time.
pub(crate) fn message(id: &str, parent: Option<&str>, message: &Value) -> String {
    let parent = parent.map_or("null".into(), |parent| format!("\"{parent}\""));
    format!(
        "{{\"type\":\"message\",\"id\":\"{id}\",\"parentId\":{parent},\"timestamp\":\"2026-06-05T07:19:00.000Z\",\"message\":{message}}}\n"
    )
}

/// An answer's line.
pub(crate) fn said(id: &str, parent: &str, text: &str) -> String {
    let said = serde_json::json!({
        "role": "assistant", "content": [{"type": "text", "text": text}], "api": "anthropic-messages",
        "provider": "anthropic", "model": "x",
        "usage": {"input": 1, "output": 1, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 2,
                  "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}},
        "stopReason": "stop", "timestamp": 2
    });
    message(id, Some(parent), &said)
}
