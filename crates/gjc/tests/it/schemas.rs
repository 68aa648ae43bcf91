//! Every JSON that the binary prints is what its schema in `docs/schemas` says, and every schema has such a proof.

use crate::help::pages;
use crate::kit::*;
use serde_json::{Value, json as j};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use testkit::anthropic::{self, Turn};
use testkit::harness::{Home, Output};
use testkit::schema::assert_valid;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemas")
}

/// The schemas, and which of them something was checked against.
#[derive(Default)]
struct Proof {
    schemas: BTreeSet<String>,
    pages: BTreeSet<String>,
}

impl Proof {
    #[track_caller]
    fn value(&mut self, name: &str, value: &Value) {
        let file = folder().join(format!("{name}.json"));
        let schema = std::fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        assert_valid(&serde_json::from_slice(&schema).unwrap(), value);
        self.schemas.insert(name.to_owned());
    }

    /// A command with `--json`, checked against the schema with its name.
    #[track_caller]
    fn command(&mut self, home: &Home, page: &str, args: &[&str], code: i32) {
        let words: Vec<&str> = page.split(' ').collect();
        let out = look(home, &words).args(args).arg("--json").output();
        assert_eq!(out.code(), Some(code), "{out}");
        self.value(&page.replace(' ', "-"), &json(&out));
        self.pages.insert(page.to_owned());
    }

    /// Every line of a session's output.
    #[track_caller]
    fn lines(&mut self, out: &Output) {
        for line in out.out().lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            let reply = line.get("outcome").is_some();
            self.value(if reply { "reply" } else { "event" }, &line);
            if reply && line["value"].get("queue").is_some() {
                self.value("snapshot", &line["value"]);
            }
            for (field, name) in [("nodes", "tree"), ("kinds", "session-report")] {
                if reply && line["value"].get(field).is_some() {
                    self.value(name, &line["value"]);
                }
            }
        }
    }
}

#[test]
fn every_json_of_the_binary_is_what_its_schema_says() {
    let (home, mut proof) = (Home::new(), Proof::default());
    home.write("project/.git/HEAD", "ref: refs/heads/main\n");
    home.write("project/메모.md", "# 메모\n");
    home.write("project/.gjc/config.yml", "retry: {attempts: 20}\n");
    home.write("home/.gjc/agent/config.yml", "retry:\n  attempts: 1\nsandbox:\n  write: [/tmp]\n");

    // Events: thinking, calls that work and that fail, a retry, a refusal.
    let busy = || anthropic::error(529, "overloaded_error", "바쁨").header("retry-after", "0");
    let turns = [
        busy(),
        Turn::new("m1")
            .thinking("음", "sig==")
            .text("읽습니다.")
            .tool_call("c1", "read", &j!({"path": "메모.md"}))
            .tool_call("c2", "bash", &j!({"command": "echo 나왔다; exit 3"}))
            .tool_call("c3", "write", &j!({"path": "새.md", "content": "글\n"}))
            .tool_call("c4", "edit", &j!({"path": "없음", "edits": []}))
            .reply(),
        text("끝").reply(),
        anthropic::error(401, "authentication_error", "x"),
    ];
    let stub = replies(turns);
    proof.lines(&ask(&home, &stub, "해 줘").args(["--mode", "json"]).output().ok());
    let id = id_of(&the_session(&home));
    proof.lines(&ask(&home, &stub, "더").args(["--mode", "json", "--resume", &id]).output());

    // Commands, replies, a snapshot.
    let commands = [
        j!({"id": "1", "command": {"type": "snapshot"}}),
        j!({"id": "2", "command": {"type": "prompt", "parts": [{"text": "안녕", "origin": "typed"}]}}),
        j!({"id": "3", "command": {"type": "abort"}}),
        j!({"id": "4", "command": {"type": "session"}}),
        j!({"id": "5", "command": {"type": "tree", "filter": "all"}}),
        j!({"id": "6", "command": {"type": "finish"}}),
    ];
    commands.iter().for_each(|command| proof.value("command", command));
    let input: String = commands.iter().map(|command| format!("{command}\n")).collect();
    let stub = replies([text("네").reply()]);
    let rpc = on(&home, &stub).args(["--mode", "rpc", "--resume", &id]).stdin(format!("no command\n{input}"));
    let told = rpc.output();
    proof.lines(&told);
    for (id, schema) in [("4", "session-report"), ("5", "tree")] {
        let mut replies =
            told.out().lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).collect::<Vec<_>>();
        replies.retain(|reply| reply["id"] == id && reply["outcome"] == "done");
        proof.value(schema, &replies[0]["value"]);
    }

    hooks_hear_and_say(&mut proof);
    plant(&home, "b", "2026-01-01T00-00-00-000Z_x.jsonl", header("남의-세션", "/") + "{\"broken\n");
    plant(&home, "b", "not.jsonl", "no session\n");
    proof.command(&home, "sessions list", &[], 0);
    proof.command(&home, "sessions search", &["메모"], 0);
    proof.command(&home, "sessions show", &[&id], 0);
    proof.command(&home, "sessions show", &["남의-세션"], 0);
    proof.command(&home, "sessions verify", &["--all"], 1);
    proof.command(&home, "sessions export", &[&id, "쪽.html"], 0);
    look(&home, &["config", "set", "share.command", "cat > /dev/null"]).output().ok();
    proof.command(&home, "sessions share", &[&id, "--yes"], 0);
    look(&home, &["config", "unset", "share.command"]).output().ok();
    proof.command(&home, "context show", &[&id], 0);
    proof.command(&home, "prompts", &[], 0);
    proof.command(&home, "prompts show", &["1"], 0);
    proof.command(&home, "doctor", &[], 0);
    proof.command(&home, "config list", &[], 0);
    for key in ["retry.attempts", "tools", "providers.openai.url", "bash.timeout", "sandbox.write"] {
        proof.command(&home, "config get", &[key], 0);
    }
    proof.command(&home, "config set", &["bash.timeout", "3m"], 0);
    proof.command(&home, "config unset", &["bash.timeout"], 0);
    proof.command(&home, "config unset", &["bash.timeout"], 0);
    proof.command(&home, "config path", &[], 0);
    proof.command(&home, "config key where", &["anthropic"], 1);
    proof.command(&home, "sessions du", &["--sessions"], 0);
    proof.command(&home, "sessions delete", &[&id, "--yes"], 0);
    proof.command(&home, "sessions trash", &[], 0);
    proof.command(&home, "sessions restore", &[&id], 0);
    proof.command(&home, "sessions delete", &[&id, "--yes"], 0);
    let emptying = look(&home, &["sessions", "trash", "empty", "--yes", "--json"]).spawn();
    walk(&home.agent_dir().join("trash")).iter().for_each(|path| home.forget(path));
    proof.value("sessions-trash-empty", &json(&emptying.wait().ok()));
    proof.pages.insert("sessions trash empty".into());
    // The schema of a file, for the values that count.
    proof.value(
        "config",
        &j!({"retry": {"attempts": 1}, "tools": ["read"], "sandbox": {"mode": "require", "write": ["~/a"]}}),
    );

    let with_json = pages(&home).into_iter().filter(|page| {
        let help = look(&home, &[]).args(page).arg("--help").output().ok().out();
        help.lines().any(|line| line.trim_start().starts_with("--json"))
    });
    let with_json: BTreeSet<String> = with_json.map(|page| page.join(" ")).collect();
    assert_eq!(proof.pages, with_json, "each command with --json, and no other");
    let files = std::fs::read_dir(folder()).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
    let schemas: BTreeSet<String> = files.filter_map(|name| name.strip_suffix(".json").map(Into::into)).collect();
    assert_eq!(proof.schemas, schemas, "each schema, and no other");
    let index = std::fs::read_to_string(folder().join("README.md")).unwrap();
    for name in schemas {
        assert!(index.contains(&format!("| [{name}.json]({name}.json) |")), "docs/schemas/README.md lacks {name}.json");
    }
}

/// What hooks are told at each event; that what they may say is understood is seen by what comes of it.
fn hooks_hear_and_say(proof: &mut Proof) {
    let home = Home::new();
    let verdict = j!({"decision": "allow"});
    let addition = j!({"add": "훅의 말"});
    proof.value("hook-verdict", &verdict);
    proof.value("hook-addition", &addition);
    let heard = home.tmp().join("heard");
    let hook = |event: &str, says: &Value| {
        let script = format!("cat >> '{}'; echo >> '{0}'\necho '{says}'\n", heard.display());
        let path = home.write(format!("home/{event}.sh"), script);
        format!("  {event}: [sh {}]\n", path.display())
    };
    let settings = [
        hook("pre_tool_call", &verdict),
        hook("post_tool_response", &addition),
        hook("pre_output", &verdict),
        hook("turn_end", &j!({})),
    ];
    home.write("home/.gjc/agent/config.yml", format!("hooks:\n{}", settings.concat()));
    let stub =
        replies([Turn::new("m").tool_call("c", "bash", &j!({"command": "echo 출력"})).reply(), text("끝").reply()]);
    ask(&home, &stub, "해 줘").output().ok();
    assert!(String::from_utf8_lossy(&stub.requests()[1].body).contains("훅의 말"));
    let calls = std::fs::read_to_string(heard).unwrap();
    let calls: Vec<Value> =
        calls.lines().filter(|line| !line.is_empty()).map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(calls.len(), 4, "each event once: {calls:?}");
    calls.iter().for_each(|call| proof.value("hook-call", call));
}
