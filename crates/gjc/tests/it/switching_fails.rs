//! Going to another session fails at each step in turn, or the process dies there: the session that was open goes on unharmed.

use crate::kit::*;
use crate::switching::{call, done, event, file_of, refused, rpc, said_in, say};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use testkit::harness::{Home, Running};
use testkit::stub::Stub;

const OTHER: &str = "0197a0c2-0000-7000-8000-000000000001";
const SIGKILL: i32 = 9;

/// A session that can be gone to.
fn other(home: &Home) -> PathBuf {
    let text = header(OTHER, &home.work().display().to_string())
        + &user("0000000a", None, "다른 물음")
        + &said("0000000b", "0000000a", "다른 답");
    plant(home, "--other--", &format!("2026-06-05T07-18-54-123Z_{OTHER}.jsonl"), text)
}

/// Puts something in the way of a step; a process that holds it is given.
type Before = for<'h> fn(&'h Home, &Path, &Stub) -> Option<Running<'h>>;

/// A step that fails: what is in the way, the command, the code and what the sentence says.
struct Step {
    name: &'static str,
    settings: &'static str,
    failing: &'static str,
    before: Before,
    command: Value,
    code: &'static str,
    says: &'static str,
}

impl Step {
    fn new(name: &'static str, command: Value, code: &'static str, says: &'static str) -> Self {
        Self { name, settings: "", failing: "", before: |_, _, _| None, command, code, says }
    }
}

/// The steps in their order: the session is found → hooks are asked → the present one is durable → the other is opened, or
/// made.
fn steps() -> Vec<Step> {
    let resume = || json!({"type": "switch", "session": OTHER});
    let held: Before = |home, _, stub| {
        let mut run = on(home, stub).args(["--mode", "rpc", "--resume", OTHER]).spawn();
        event(&mut run, "session");
        Some(run)
    };
    vec![
        Step::new("found", json!({"type": "switch", "session": "ffff"}), "not_found", "Session \"ffff\" not found."),
        Step {
            before: |_, other, _| fs::write(other, "이것은 세션이 아닙니다\n").ok().and(None),
            ..Step::new("read", resume(), "not_found", "not found")
        },
        Step {
            settings: "hooks:\n  session_before_switch:\n    - echo '{\"decision\":\"block\",\"reason\":\"지금은 안 됩니다\"}'\n",
            ..Step::new("hook", resume(), "hook_blocked", "지금은 안 됩니다")
        },
        Step {
            settings: "hooks:\n  session_before_switch:\n    - exit 3\n",
            ..Step::new("hook that fails", resume(), "hook_blocked", "exit code 3")
        },
        Step {
            settings: "hooks:\n  session_before_branch:\n    - echo '{\"decision\":\"block\",\"reason\":\"가지는 안 됩니다\"}'\n",
            ..Step::new(
                "hook of a branch",
                json!({"type": "branch", "entry": "ENTRY"}),
                "hook_blocked",
                "가지는 안 됩니다",
            )
        },
        Step { before: held, ..Step::new("lock", resume(), "not_switched", "session is open in another process") },
        Step {
            before: |_, other, _| {
                let text = fs::read_to_string(other).unwrap().replacen("\"version\":3", "\"version\":99", 1);
                fs::write(other, text).ok().and(None)
            },
            ..Step::new("version", json!({"type": "switch", "session": "FILE"}), "not_opened", "99")
        },
        Step {
            before: |home, other, _| {
                let text = fs::read_to_string(other).unwrap();
                fs::write(other, text.replace(&home.work().display().to_string(), "/없는/폴더")).ok().and(None)
            },
            ..Step::new("folder", resume(), "not_switched", "/없는/폴더")
        },
        Step {
            failing: "log.fork.write=err(ENOSPC);log.fork.shared=err(ENOSPC);log.fork.sync=err(ENOSPC)",
            ..Step::new("copy", json!({"type": "fork"}), "not_switched", "")
        },
        Step {
            failing: "log.fork.write=err(ENOSPC);log.fork.shared=err(ENOSPC);log.fork.sync=err(ENOSPC)",
            ..Step::new("move", json!({"type": "move_session", "to": ".."}), "not_switched", "")
        },
    ]
}

#[test]
fn a_step_that_fails_leaves_the_session_as_it_was() {
    for step in steps() {
        let home = Home::new();
        let other = other(&home);
        let stub = stub([text("첫째 답"), text("둘째 답")]);
        home.write("home/.gjc/agent/config.yml", step.settings);
        let mut run = on(&home, &stub).args(["--mode", "rpc"]).env("GJC_FP", step.failing).spawn();
        let first = file_of(&event(&mut run, "session"));
        say(&mut run, "1", "첫째 물음");
        home.forget(&other);
        let beside = (step.before)(&home, &other, &stub);
        let before = (fs::read(&first).unwrap(), session_files(&home), fs::read(&other).unwrap());
        let message = lines(&first).into_iter().find(|line| line["message"]["role"] == "user").unwrap();
        let command = step.command.to_string().replace("ENTRY", message["id"].as_str().unwrap());
        let command = command.replace("FILE", other.to_str().unwrap());
        let reply = call(&mut run, "2", &serde_json::from_str(&command).unwrap());
        assert_eq!(reply["code"], step.code, "{}: {reply}", step.name);
        refused(&reply, step.code, step.says);
        let after = (fs::read(&first).unwrap(), session_files(&home), fs::read(&other).unwrap());
        assert_eq!(after, before, "{}", step.name);
        let snapshot = done(call(&mut run, "3", &json!({"type": "snapshot"})));
        assert_eq!((&snapshot["session"], &snapshot["step"]), (&json!(id_of(&first)), &json!("idle")), "{}", step.name);
        say(&mut run, "4", "둘째 물음");
        run.close_stdin();
        let out = run.wait().ok();
        assert!(!out.out().contains(r#""type":"switched""#), "{}: {out}", step.name);
        assert_eq!(said_in(&first), ["첫째 물음", "첫째 답", "둘째 물음", "둘째 답"], "{}", step.name);
        if let Some(mut beside) = beside {
            beside.close_stdin();
            beside.wait().ok();
        }
        let hidden = walk(&home.agent_dir().join("sessions"));
        let left = hidden.iter().filter(|path| path.to_string_lossy().contains(".tmp"));
        assert_eq!(left.count(), 0, "{}: {hidden:?}", step.name);
    }
}

/// The ways, each with what goes before it.
fn ways() -> [(&'static str, Value); 6] {
    [
        ("new", json!({"type": "new_session"})),
        ("resume", json!({"type": "switch", "session": OTHER})),
        ("fork", json!({"type": "fork"})),
        ("branch", json!({"type": "branch", "entry": "ENTRY"})),
        ("move", json!({"type": "move_session", "to": "../다른 곳"})),
        ("delete", json!({"type": "delete_session", "confirm": true})),
    ]
}

/// One life of a process: an exchange, and a way that is begun. Gives the session's file, its bytes before, and how it ended.
fn die(home: &Home, command: &Value, plan: &str, count: &Path) -> (PathBuf, Vec<u8>, testkit::harness::Output) {
    other(home);
    fs::create_dir_all(home.work().parent().unwrap().join("다른 곳")).unwrap();
    let script = home.write("script", "{\"content\":[{\"type\":\"text\",\"text\":\"첫째 답\"}]}\n");
    let run = gjc(home).args(["--mode", "rpc", "--model"]).arg(format!("scripted/{}", script.display()));
    let mut run = run.env("GJC_FP", plan).env("GJC_FP_COUNT", count).spawn();
    let first = file_of(&event(&mut run, "session"));
    say(&mut run, "1", "첫째 물음");
    let bytes = fs::read(&first).unwrap();
    home.forget(&first);
    let message = lines(&first).into_iter().find(|line| line["message"]["role"] == "user").unwrap();
    let command = command.to_string().replace("ENTRY", message["id"].as_str().unwrap());
    run.send(&format!("{{\"id\":\"2\",\"command\":{command}}}"));
    run.close_stdin();
    (first, bytes, run.wait())
}

/// Every session file outside of the trash, by what was said in it.
fn sound(home: &Home, at: &str) -> Vec<(PathBuf, Vec<String>)> {
    let files =
        session_files(home).into_iter().filter(|path| !path.file_name().unwrap().as_encoded_bytes().starts_with(b"."));
    files
        .map(|path| {
            let verified = look(home, &["sessions", "verify", path.to_str().unwrap()]).output();
            assert_eq!(verified.code(), Some(0), "{at}: {verified}");
            let said = said_in(&path);
            (path, said)
        })
        .collect()
}

#[test]
fn a_kill_at_any_point_of_a_way_loses_no_session() {
    let points = Home::new().run(env!("CARGO_BIN_EXE_gjc")).arg("__failpoints").output().ok().out();
    let here = |name: &&str| ["agent.switch.", "log.fork.", "store.trash."].iter().any(|begin| name.starts_with(begin));
    let points: Vec<&str> = points.lines().filter(here).collect();
    assert!(points.iter().filter(|name| name.starts_with("agent.switch.")).count() >= 9, "{points:?}");
    let mut reached = std::collections::BTreeSet::new();
    for (way, command) in ways() {
        for point in &points {
            let at = format!("{way} at {point}");
            let home = Home::new();
            let (first, bytes, out) = die(&home, &command, &format!("{point}=kill"), &home.tmp().join("passed"));
            if out.signal != Some(SIGKILL) {
                assert_eq!(out.code(), Some(0), "{at}: {out}");
                continue;
            }
            reached.insert(*point);
            // What was said is there once at least: where it was, in what was to take its place, or, where a person
            // said yes to that, in the trash; and nothing that was there has other bytes.
            let sessions = sound(&home, &at);
            let kept = sessions.iter().filter(|(_, said)| said.starts_with(&["첫째 물음".into(), "첫째 답".into()]));
            let trashed = walk(&home.agent_dir().join("trash"));
            let trashed = trashed.iter().filter(|path| path.extension().is_some_and(|end| end == "jsonl")).count();
            assert!(kept.count() >= 1 || way == "delete" && trashed == 1, "{at}: {sessions:?}");
            if first.exists() {
                assert!(fs::read(&first).unwrap().starts_with(&bytes), "{at}");
            }
            if !matches!(way, "delete" | "move") {
                assert!(first.exists(), "{at}");
            }
            // The next process goes on with it, wherever it is, and its lock is free.
            let stub = stub([text("둘째 답")]);
            let go_on = on(&home, &stub).args(["-p", "둘째 물음"]);
            let Some((file, said)) = sessions
                .into_iter()
                .find(|(path, said)| said.len() == 2 && said[0] == "첫째 물음" && (*path == first || !first.exists()))
            else {
                continue;
            };
            let cwd = lines(&file)[0]["cwd"].as_str().unwrap().to_owned();
            go_on.cwd(cwd).arg("--resume").arg(&file).output().ok();
            assert_eq!(said_in(&file)[..2], said[..], "{at}");
            assert_eq!(said_in(&file)[2..], ["둘째 물음", "둘째 답"], "{at}");
        }
    }
    let never: Vec<&&str> = points.iter().filter(|point| !reached.contains(**point)).collect();
    assert!(!never.iter().any(|point| point.starts_with("agent.switch.")), "no way passes {never:?}");
}

#[test]
fn an_abort_takes_a_switch_back_while_a_hook_thinks() {
    let home = Home::new();
    other(&home);
    let stub = stub([text("첫째 답"), text("둘째 답")]);
    let pipe = home.tmp().join("pipe");
    home.write(
        "home/.gjc/agent/config.yml",
        format!("hooks:\n  session_before_switch:\n    - mkfifo {0}; cat {0}\n", pipe.display()),
    );
    let mut run = rpc(&home, &stub);
    let first = file_of(&event(&mut run, "session"));
    say(&mut run, "1", "첫째 물음");
    run.send(&json!({"id": "2", "command": {"type": "switch", "session": OTHER}}).to_string());
    assert_eq!(call(&mut run, "3", &json!({"type": "abort"}))["outcome"], "accepted");
    run.wait_for(|line| {
        let line: Value = serde_json::from_str(line).unwrap();
        line["id"] == "2" && line["outcome"] == "refused"
    });
    say(&mut run, "4", "둘째 물음");
    run.close_stdin();
    run.wait().ok();
    assert_eq!(said_in(&first).len(), 4);
}
