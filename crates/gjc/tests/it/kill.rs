//! SIGKILL, for real: the binary dies at a failpoint, or from outside, and another process goes on with its session.
//!
//! After each death: acknowledged ⊆ recovered ⊆ issued. *Acknowledged* is every message that the dead process showed (once
//! its session has a name), *recovered* what a reader finds in the file, *issued* what was said to it by prompts and script.
//! Every text bears the number of its process and its place, so a lost, doubled, swapped or invented one is seen. Then the
//! next prompt is answered, the model is told once of each call whose outcome nobody knows, and no effect happened twice or
//! without its record. That session files only grow is watched by [`Home`].
//!
//! What the page cache keeps survives SIGKILL; power cuts are tested on `SimFs`.
#![allow(clippy::print_stdout, reason = "a failing walk is found by its seed")]

use gjc_context::INTERRUPTED;
use gjc_entry::{Blobs, Body, Leaf, Message, Own, Source};
use gjc_log::fs::OsFs;
use gjc_log::{BlobStore, Reader, Tail};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;
use testkit::harness::{Home, Output, Run};

const GJC: &str = env!("CARGO_BIN_EXE_gjc");
const SIGKILL: i32 = 9;

/// What the process that dies does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    /// Begins a session.
    New,
    /// Goes on with one.
    Resumed,
    /// Goes on with one whose last writer died in the middle of a line.
    Torn,
    /// Goes on with one whose last writer died right before a line feed.
    Unended,
    /// Goes on with one whose last writer died while calls ran.
    Unanswered,
    /// Goes on with one, over RPC, with prompts that steer and follow up.
    Rpc,
}

const STAGES: [Stage; 6] = [Stage::New, Stage::Resumed, Stage::Torn, Stage::Unended, Stage::Unanswered, Stage::Rpc];

/// How it dies.
#[derive(Debug, Clone)]
enum Death {
    /// Not at all.
    Never,
    /// By its own hand, as the plan of failpoints says.
    Plan(String),
    /// From outside, after so many lines of its output.
    AfterLines(usize),
}

/// A session from a run that nobody killed, and what each stage's run is like.
struct Base {
    /// Its work folder, which stands in the header.
    work: String,
    /// The file's name and bytes.
    file: (String, Vec<u8>),
    blobs: Vec<(String, Vec<u8>)>,
    /// Failpoints passed and lines printed.
    sizes: BTreeMap<Stage, (u64, usize)>,
}

impl Base {
    fn new() -> Self {
        let home = Home::new();
        let mut play = Play::new(&home);
        play.live(Stage::New, &Death::Never);
        let path = play.session.clone().unwrap();
        let read = |path: &Path| (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read(path).unwrap());
        let blobs = fs::read_dir(home.agent_dir().join("blobs")).unwrap();
        let mut base = Self {
            work: home.work().display().to_string(),
            file: read(&path),
            blobs: blobs.map(|entry| read(&entry.unwrap().path())).collect(),
            sizes: BTreeMap::new(),
        };
        for stage in STAGES {
            let home = Home::new();
            let mut play = Play::set(&home, &base, stage);
            let output = play.live(stage, &Death::Never);
            assert_eq!(output.code(), Some(0), "{stage:?}: {output}");
            let passed = fs::read_to_string(home.tmp().join("passed")).unwrap().parse().unwrap();
            let lines = events(&output).filter(counts).count();
            assert!(passed > 40 && lines > 20, "{stage:?}: {passed} points, {lines} lines");
            base.sizes.insert(stage, (passed, lines));
        }
        base
    }
}

/// One session in one home, and what is known of it.
struct Play<'h> {
    home: &'h Home,
    /// Number of the next process; the base's is 0.
    process: usize,
    session: Option<PathBuf>,
    /// Messages that were shown, by entry.
    shown: BTreeMap<String, Value>,
    /// A shown message whose line has no end yet: who only reads does not take it for an entry before a writer has.
    unended: Option<(String, Value)>,
    /// Calls that no result answers, when last looked at.
    unanswered: BTreeSet<(String, String)>,
}

impl<'h> Play<'h> {
    fn new(home: &'h Home) -> Self {
        Self { home, process: 0, session: None, shown: BTreeMap::new(), unended: None, unanswered: BTreeSet::new() }
    }

    /// The base's session in another home, as the stage needs it.
    fn set(home: &'h Home, base: &Base, stage: Stage) -> Self {
        let mut play = Self { process: 1, ..Self::new(home) };
        if stage == Stage::New {
            return play;
        }
        let text = String::from_utf8(base.file.1.clone()).unwrap();
        let mut text = text.replacen(&base.work, &home.work().display().to_string(), 1);
        let answer = text.find(r#""role":"assistant""#).unwrap();
        let answered = answer + text[answer..].find('\n').unwrap() + 1;
        match stage {
            Stage::Torn => text += r#"{"type":"message","id":"0badf00d","parentId":"0000"#,
            Stage::Unended => drop(text.pop()),
            Stage::Unanswered => text.truncate(answered),
            Stage::New | Stage::Resumed | Stage::Rpc => {}
        }
        let whole = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        for line in whole.filter(|line| line["type"] == "message") {
            play.shown.insert(line["id"].as_str().unwrap().to_owned(), line["message"].clone());
        }
        if stage == Stage::Unended {
            play.unended = text.lines().last().and_then(|line| {
                let line: Value = serde_json::from_str(line).unwrap();
                play.shown.remove_entry(line["id"].as_str()?)
            });
            assert!(play.unended.is_some());
        }
        for (name, bytes) in &base.blobs {
            home.write(format!("home/.gjc/agent/blobs/{name}"), bytes);
        }
        // The base's effects belong to its answers.
        if stage != Stage::Unanswered {
            home.write("project/effects", "0.1\n");
        }
        play.session = Some(home.write(format!("home/.gjc/agent/sessions/base/{}", base.file.0), text));
        play
    }

    /// A process from its start to its end or death, and all that must be true then.
    fn live(&mut self, stage: Stage, death: &Death) -> Output {
        let n = self.process;
        self.process += 1;
        let lines = script(n);
        let run = self.run(&lines);
        let run = match stage {
            Stage::Rpc => run.args(["--mode", "rpc"]),
            _ => run.args(["--mode", "json"]).arg(format!("질문 {n}.0")),
        };
        let input: Vec<String> = match stage {
            Stage::Rpc => (0..3).map(|k| prompt(n, k)).collect(),
            _ => Vec::new(),
        };
        let output = match death {
            Death::Never => run.stdin(input.join("\n")).output(),
            Death::Plan(plan) => run.env("GJC_FP", plan).stdin(input.join("\n")).output(),
            Death::AfterLines(count) => {
                let mut running = run.spawn();
                input.iter().for_each(|line| running.send(line));
                running.close_stdin();
                let mut left = *count;
                running.wait_for(|line| {
                    left -= usize::from(serde_json::from_str(line).is_ok_and(|event| counts(&event)));
                    left == 0
                });
                running.kill_9()
            }
        };
        assert!(
            output.code() == Some(0) || output.signal == Some(SIGKILL),
            "it neither ended nor was killed: {output}"
        );
        self.look(&output);
        if output.code() == Some(0) {
            let asked = if stage == Stage::Rpc { 3 } else { 1 };
            let heard = self.shown.values().filter(|message| number(message).is_some_and(|(of, _)| of == n));
            let heard: Vec<&str> = heard.filter_map(|message| message["role"].as_str()).collect();
            let count = |role| heard.iter().filter(|other| **other == role).count();
            assert_eq!(count("user"), asked, "{output}");
            assert!(count("assistant") >= 3, "{output}");
        }
        output
    }

    /// The process after: nothing is in its way, and the model hears the truth about the calls that were cut.
    fn go_on(&mut self) {
        let n = self.process;
        self.process += 1;
        let before = self.unanswered.clone();
        let lines = [json!({ "content": [{ "type": "text", "text": format!("답 {n}.0") }] })];
        let run = self.run(&lines).args(["--mode", "json"]).arg(format!("질문 {n}.0"));
        let output = run.stdin("").output().ok();
        self.look(&output);
        assert_eq!(self.unanswered, before, "answered by nobody: {output}");
        let path = self.session.clone().unwrap();
        let request = self.home.run(GJC).args(["context", "request"]).arg(&path).output().ok();
        let told: Value = serde_json::from_slice(&request.stdout).unwrap();
        let told = told["messages"].as_array().unwrap().iter().flat_map(|turn| turn["content"].as_array().unwrap());
        let told =
            told.filter(|block| block["type"] == "tool_result" && block.to_string().contains(INTERRUPTED)).count();
        assert_eq!(told, before.len(), "calls without an outcome, as told to the model: {before:?}");
        assert_eq!(request.out().matches(INTERRUPTED).count(), told, "{request}");
    }

    fn run(&self, script: &[Value]) -> Run<'h> {
        let text: String = script.iter().map(|line| format!("{line}\n")).collect();
        let script = self.home.write(format!("script/{}", self.process), text);
        let run = self.home.run(GJC).arg("--model").arg(format!("scripted/{}", script.display()));
        let run = run.env("GJC_FP_COUNT", self.home.tmp().join("passed"));
        match &self.session {
            Some(path) => run.arg("--resume").arg(path),
            None => run,
        }
    }

    /// What must be true whenever a process is gone.
    fn look(&mut self, output: &Output) {
        let (mut promised, mut acting) = (false, false);
        for event in events(output) {
            match event["type"].as_str() {
                Some("session") => {
                    let path = PathBuf::from(event["file"].as_str().unwrap());
                    assert!(self.session.as_ref().is_none_or(|session| *session == path));
                    // A session gets its name with its first promise.
                    self.session = path.exists().then_some(path);
                }
                Some("message") => {
                    let entry = event["entry"].as_str().unwrap().to_owned();
                    assert_eq!(self.shown.insert(entry, event["message"].clone()), None, "shown twice: {output}");
                }
                Some("tool_started") => acting |= event["tool"] == "bash",
                Some("turn_ended") => promised = true,
                _ => {}
            }
        }
        // A process that died before it printed may have named its file already.
        self.session = self.session.take().or_else(|| session_of(self.home));
        let effects = fs::read_to_string(self.home.work().join("effects")).unwrap_or_default();
        let effects: Vec<&str> = effects.lines().collect();
        let Some(path) = &self.session else {
            assert!(!promised && !acting, "a promise without a file: {output}");
            assert!(effects.is_empty(), "an effect without a file: {effects:?} {output}");
            self.shown.clear();
            return;
        };

        let loaded = Reader::open(&OsFs, path).unwrap();
        assert!(loaded.damage.is_empty(), "{:?} {output}", loaded.damage);
        assert!(loaded.tail == Tail::Clean || output.signal.is_some(), "an end without a line feed: {output}");
        if loaded.tail == Tail::Clean {
            self.shown.extend(self.unended.take());
        }
        let reader = loaded.value;
        assert_eq!(reader.verify_bodies(), []);
        let path = reader.path(Leaf::Current).unwrap().0;
        assert_eq!(reader.skeleton().unwrap().len(), path.len(), "a branch that nobody made: {output}");
        let skeleton = reader.skeleton().unwrap();
        let store = BlobStore::new(Arc::new(OsFs), Some(self.home.agent_dir().join("blobs")));
        for (_, node) in skeleton.iter() {
            if let Body::Own(Own::Env(env)) = &reader.body(node.at()).unwrap().body {
                let missing = [&env.system, &env.tools].into_iter().find_map(|blob| store.get(blob).err());
                assert!(missing.is_none(), "a line names what is not there: {missing:?} {output}");
            }
        }
        let recovered: Vec<(String, Message)> = skeleton
            .iter()
            .filter_map(|(ordinal, node)| match &reader.body(node.at()).unwrap().body {
                Body::Message(message) => Some((skeleton.id(ordinal).to_string(), message.clone())),
                _ => None,
            })
            .collect();

        let by_id: BTreeMap<&str, Value> = recovered.iter().map(|(id, message)| (&**id, to_json(message))).collect();
        for (entry, message) in &self.shown {
            assert_eq!(by_id.get(&**entry), Some(message), "acknowledged, and not recovered: {output}");
        }
        self.unanswered = issued(&recovered);
        for effect in &effects {
            assert_eq!(effects.iter().filter(|other| *other == effect).count(), 1, "done twice: {effects:?}");
            let asked = recovered.iter().any(|(_, message)| match message {
                Message::Assistant(said) => said.calls().any(|(_, _, input)| input.get().contains(&effect_of(effect))),
                _ => false,
            });
            assert!(asked, "an effect without its record: {effect} {output}");
        }
        for n in 0..self.process {
            let Ok(text) = fs::read_to_string(self.home.work().join(format!("w{n}"))) else { continue };
            assert!([format!("첫 줄 {n}\n"), format!("새 줄 {n}\n")].contains(&text), "half a file: {text:?}");
        }
    }
}

/// Fails unless each message was said by somebody, in its order and once; gives the calls that have no result.
fn issued(recovered: &[(String, Message)]) -> BTreeSet<(String, String)> {
    let mut next: BTreeMap<(String, usize), usize> = BTreeMap::new();
    let mut newest = 0;
    let mut open = BTreeSet::new();
    let mut asking = String::new();
    for (entry, message) in recovered {
        match message {
            Message::User(_) | Message::Assistant(_) => {
                let (n, k) = number(&to_json(message)).unwrap_or_else(|| panic!("nobody said this: {message:?}"));
                assert!(n >= newest, "out of order: {message:?}");
                newest = n;
                let next = next.entry((message.role().to_owned(), n)).or_default();
                assert_eq!(k, *next, "lost, doubled or swapped: {message:?}");
                *next += 1;
                if let Message::Assistant(said) = message {
                    asking.clone_from(entry);
                    open.extend(said.calls().map(|(call, _, _)| (entry.clone(), call.to_owned())));
                }
            }
            Message::ToolResult(result) => {
                assert!(!result.is_error, "{message:?}");
                assert!(open.remove(&(asking.clone(), result.call_id.clone())), "a result that nobody asked for");
            }
            Message::Other { .. } => panic!("nobody said this: {message:?}"),
        }
    }
    open
}

/// The answers of a process: parallel and serial calls, inside and outside effects; the last ones are for later prompts.
fn script(n: usize) -> Vec<Value> {
    let call = |name: &str, arguments: Value| json!({ "type": "toolCall", "name": name, "arguments": arguments });
    let text = |k: usize| json!({ "type": "text", "text": format!("답 {n}.{k}") });
    let bash = |k: usize| call("bash", json!({ "command": format!("{}; echo 했다", effect_of(&format!("{n}.{k}"))) }));
    let file = format!("w{n}");
    let read = || call("read", json!({ "path": file }));
    let write = call("write", json!({ "path": file, "content": format!("첫 줄 {n}\n") }));
    let edit = call("edit", json!({ "path": file, "edits": [{ "old": "첫", "new": "새" }] }));
    let contents = [
        json!([{ "type": "thinking", "thinking": "생각" }, text(0), write, read(), bash(1)]),
        json!([text(1), read(), read(), edit]),
        json!([text(2)]),
        json!([text(3)]),
        json!([text(4)]),
    ];
    contents.into_iter().map(|content| json!({ "content": content })).collect()
}

/// The command that leaves a trace.
fn effect_of(name: &str) -> String {
    format!("echo {name} >> effects")
}

/// The `k`th prompt of a process, as a line of RPC.
fn prompt(n: usize, k: usize) -> String {
    let mode = if k == 1 { "steer" } else { "follow_up" };
    let parts = json!([{ "text": format!("질문 {n}.{k}"), "origin": "typed" }]);
    json!({ "id": k.to_string(), "command": { "type": "prompt", "parts": parts, "mode": mode } }).to_string()
}

/// Process and place of a message of a person or a model.
fn number(message: &Value) -> Option<(usize, usize)> {
    let text = message["content"].as_array()?.iter().find_map(|block| block["text"].as_str())?;
    let (word, number) = text.split_once(' ')?;
    let expected = if message["role"] == "user" { "질문" } else { "답" };
    let (n, k) = number.split_once('.').filter(|_| word == expected)?;
    Some((n.parse().ok()?, k.parse().ok()?))
}

fn to_json(message: &Message) -> Value {
    let mut json = Vec::new();
    message.write(&mut json);
    serde_json::from_slice(&json).unwrap()
}

/// The whole lines that a process printed.
fn events(output: &Output) -> impl Iterator<Item = Value> {
    let whole = output.stdout.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
    output.stdout[..whole].split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(|line| {
        serde_json::from_slice(line).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(line)))
    })
}

/// Whether a line is there in every run: how many pieces of text come together depends on who reads them when.
fn counts(event: &Value) -> bool {
    !event["type"].as_str().is_some_and(|kind| kind == "tool_progress" || kind.ends_with("_delta"))
}

/// The one session of a home.
fn session_of(home: &Home) -> Option<PathBuf> {
    let buckets = fs::read_dir(home.agent_dir().join("sessions")).ok()?;
    let files =
        buckets.flat_map(|bucket| fs::read_dir(bucket.unwrap().path()).unwrap()).map(|file| file.unwrap().path());
    let is_session = |path: &PathBuf| {
        path.extension().is_some_and(|end| end == "jsonl")
            && !path.file_name().unwrap().as_encoded_bytes().starts_with(b".")
    };
    let mut sessions = files.filter(is_session);
    let first = sessions.next();
    assert_eq!(sessions.next(), None, "two sessions");
    first
}

/// Each failpoint kills once in each stage that reaches it, and each is reached.
fn each_failpoint(third: usize) {
    let base = Base::new();
    let names = Home::new().run(GJC).arg("__failpoints").output().ok().out();
    assert!(names.lines().count() > 30, "{names}");
    let mut unreached = Vec::new();
    // Those of background jobs are passed in `jobs`, those of pages in `fetch`, those of another session in `switching_fails`,
    // those of copies and of the trash in their crates as well.
    let elsewhere = ["agent.job.", "agent.delivery.", "agent.switch.", "tools.fetch.", "log.fork.", "store."];
    let here = |name: &&str| !elsewhere.iter().any(|begin| name.starts_with(begin));
    for name in names.lines().filter(here).skip(third).step_by(3) {
        let reached = STAGES.into_iter().filter(|&stage| {
            let home = Home::new();
            let mut play = Play::set(&home, &base, stage);
            // Where a sync has failed, the way goes on by other points.
            let before = if name.starts_with("log.sync.rewr") { "1:log.sync.data=err(EIO);" } else { "" };
            let killed = play.live(stage, &Death::Plan(format!("{before}{name}=kill"))).signal.is_some();
            if let Some(path) = play.session.clone().filter(|_| killed) {
                let verified = home.run(GJC).args(["sessions", "verify", "--json"]).arg(&path).output();
                let verified: Value = serde_json::from_slice(&verified.stdout).unwrap();
                let file = &verified["files"][0];
                assert!(file["damage"] == json!([]) && file["unreadable"].is_null(), "{name}: {verified}");
            }
            if killed {
                play.go_on();
                home.run(GJC).args(["sessions", "verify"]).arg(play.session.unwrap()).output().ok();
            }
            killed
        });
        if reached.count() == 0 {
            unreached.push(name);
        }
    }
    assert_eq!(unreached, Vec::<&str>::new(), "no stage of the workload reaches these points");
}

macro_rules! each_failpoint {
    ($($name:ident: $third:literal),*) => { $(#[test] fn $name() { each_failpoint($third); })* };
}
each_failpoint!(each_failpoint_0: 0, each_failpoint_1: 1, each_failpoint_2: 2);

/// Numbers from a seed (SplitMix64).
struct Dice(u64);

impl Dice {
    /// A number from 1 to `most`.
    fn roll(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % most + 1
    }

    /// How a process of this stage dies: mostly at any point, at times in the middle of a write, or from outside.
    fn death(&mut self, base: &Base, stage: Stage) -> Death {
        let (points, lines) = base.sizes[&stage];
        match self.roll(10) {
            1 => {
                // Over RPC it depends on the moment whether a prompt still steers, which makes a turn more or less.
                let sure = if stage == Stage::Rpc { lines / 2 } else { lines - 2 };
                Death::AfterLines(usize::try_from(self.roll(sure as u64)).unwrap())
            }
            2 | 3 => {
                let (nth, bytes) = (self.roll(6), self.roll(400));
                Death::Plan(format!("{nth}-{nth}:log.append.write=short({bytes});{}:log.append.write=kill", nth + 1))
            }
            _ => Death::Plan(format!("@{}=kill", self.roll(points + 5))),
        }
    }
}

/// Seeded walks: a process dies somewhere, in a fifth of them so does the next one, and then one goes on.
fn walks(seeds: std::ops::Range<u64>) {
    let began = Instant::now();
    let base = Base::new();
    let (mut killed, mut all, mut torn) = (0, 0, 0);
    for seed in seeds.clone() {
        let mut dice = Dice(seed);
        let stage = STAGES[usize::try_from(dice.roll(6)).unwrap() - 1];
        let deaths: Vec<Death> = (0..if dice.roll(5) == 1 { 2 } else { 1 }).map(|_| dice.death(&base, stage)).collect();
        println!("seed {seed}: {stage:?} {deaths:?}");
        let home = Home::new();
        let mut play = Play::set(&home, &base, stage);
        for death in &deaths {
            all += 1;
            killed += usize::from(play.live(stage, death).signal.is_some());
        }
        play.go_on();
        torn += usize::from(play.session.is_some_and(|path| path.with_extension("jsonl.torn").exists()));
    }
    println!("{killed} of {all} processes killed, {torn} tails cut, in {:?}", began.elapsed());
    assert!(killed * 10 >= all * 8, "only {killed} of {all} processes were killed");
}

macro_rules! walks {
    ($($name:ident: $tenth:literal),*) => { $(#[test] fn $name() { walks($tenth * 50..($tenth + 1) * 50); })* };
}
walks!(walks_0: 0, walks_1: 1, walks_2: 2, walks_3: 3, walks_4: 4, walks_5: 5, walks_6: 6, walks_7: 7, walks_8: 8, walks_9: 9);
