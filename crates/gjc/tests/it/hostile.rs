//! What a model, a server or a program must not be able to do.

use crate::kit::*;
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};
use testkit::anthropic::Turn;
use testkit::harness::Home;
use testkit::stub::{Gate, Reply};

#[test]
fn a_session_in_memory_ends_when_it_is_told_to_though_nothing_was_said() {
    for input in
        ["", "{\"id\":\"1\",\"command\":{\"type\":\"close\"}}\n", "{\"id\":\"1\",\"command\":{\"type\":\"finish\"}}\n"]
    {
        let home = Home::new();
        let stub = stub([]);
        let out = on(&home, &stub).args(["--mode", "rpc", "--no-session"]).stdin(input).output().ok();
        assert!(out.out().lines().last().unwrap().contains(r#""type":"closed""#), "{input:?}: {out}");
    }
}

#[test]
fn every_command_behind_a_close_has_its_reply() {
    let home = Home::new();
    let stub = stub([]);
    let mut input = String::new();
    for n in 0..20 {
        let kind = if n == 5 { "close" } else { "snapshot" };
        input.push_str(&format!("{}\n", json!({"id": n.to_string(), "command": {"type": kind}})));
    }
    let out = on(&home, &stub).args(["--mode", "rpc"]).stdin(input).output().ok();
    let replies = out.out().lines().filter(|line| line.contains(r#""outcome":"#)).count();
    assert_eq!(replies, 20, "{out}");
}

#[test]
fn a_command_cannot_read_the_key_out_of_the_process() {
    let peek = json!({"command": "tr '\\0' '\\n' < /proc/$PPID/environ; env; cat /proc/$PPID/cmdline"});
    for sandbox in ["off", "auto"] {
        let home = Home::new();
        let stub = stub([Turn::new("m").tool_call("t", "bash", &peek), text("끝")]);
        ask(&home, &stub, "x").args(["--sandbox", sandbox]).env("ANTHROPIC_API_KEY", "sk-ant-아주비밀").output().ok();
        let result = messages(&the_session(&home)).into_iter().find(|message| message["role"] == "toolResult").unwrap();
        let shown = result["content"][0]["text"].as_str().unwrap();
        // In a sandbox the environment of gjc is out of reach; without one it is read, and the key is not in it any more.
        let held = sandbox == "auto" && gjc_process::Support::now().landlock.is_ok();
        assert_eq!(shown.contains("ANTHROPIC_API_KEY=*****"), !held, "{sandbox}: {shown}");
        for file in walk(&root(&home)) {
            let bytes = std::fs::read(&file).unwrap_or_default();
            assert!(!bytes.windows(6).any(|window| window == b"sk-ant"), "{}", file.display());
        }
    }
}

#[test]
fn a_name_that_a_model_made_up_does_not_spoil_the_session() {
    let home = Home::new();
    let names = ["", "re\"ad\n", "read\u{202e}", "../../x", &"x".repeat(100_000)];
    let mut turns: Vec<Turn> = names.iter().map(|name| Turn::new("m").tool_call("t", name, &json!({}))).collect();
    turns.push(text("끝"));
    let stub = stub(turns);
    ask(&home, &stub, "x").output().ok();
    for request in stub.requests() {
        let body: Value = request.json();
        for block in body["messages"].as_array().unwrap().iter().flat_map(|m| m["content"].as_array().cloned().unwrap())
        {
            if block["type"] == "tool_use" {
                let name = block["name"].as_str().unwrap();
                let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
                assert!(plain && (1..=64).contains(&name.len()), "{name:?}");
            }
        }
    }
}

#[test]
fn an_answer_without_an_end_is_broken_off() {
    let home = Home::new();
    let reply = Reply::sse(vec![b'x'; 40 << 20]);
    let stub = replies([reply]);
    let out = ask(&home, &stub, "x").output();
    assert_eq!(out.code(), Some(1), "{out}");
    assert!(out.err().contains("has no end"), "{}", out.err());
}

#[test]
fn a_command_does_not_outlive_a_gjc_that_was_killed() {
    let home = Home::new();
    let mark = home.work().join("after-death");
    let begun = home.work().join("begun");
    let command = json!({"command": format!("touch {}; sleep 1; touch {}", begun.display(), mark.display())});
    let stub =
        replies([Turn::new("m").tool_call("t", "bash", &command).reply(), text("x").reply().gate_at(0, &Gate::new())]);
    let mut run = ask(&home, &stub, "x").spawn();
    run.close_stdin();
    let limit = Instant::now() + Duration::from_secs(20);
    while !begun.exists() {
        assert!(Instant::now() < limit, "the command never began");
        std::thread::yield_now();
    }
    run.kill_9();
    // The command's next act would come within the second; nothing tells that it will not, so there is only waiting.
    std::thread::sleep(Duration::from_millis(1500));
    assert!(!mark.exists(), "the command went on");
}

#[test]
fn a_file_that_blocks_does_not_hold_the_end_up() {
    if !Path::new("/proc/kmsg").exists() || std::fs::File::open("/proc/kmsg").is_err() {
        assert!(
            std::env::var_os("GJC_CI").is_none(),
            "/proc/kmsg cannot be opened, so a file that blocks is not tested"
        );
        eprintln!("left out: /proc/kmsg cannot be opened here");
        return;
    }
    let home = Home::new();
    let stub =
        replies([Turn::new("m").tool_call("t", "read", &json!({"path": "/proc/kmsg"})).reply(), text("끝").reply()]);
    let mut run = ask(&home, &stub, "x").args(["--mode", "json"]).spawn();
    run.close_stdin();
    run.wait_for(|line| line.contains("tool_started"));
    run.interrupt();
    run.interrupt();
    // Either it was read to its end already, or the interrupts end the process though its read never comes back.
    let out = run.wait();
    assert!(matches!(out.code(), Some(0 | 130)), "{out}");
}

#[test]
fn lost_settings_are_damage() {
    let home = Home::new();
    let stub = stub([text("답")]);
    ask(&home, &stub, "x").output().ok();
    let id = id_of(&the_session(&home));
    look(&home, &["sessions", "verify", &id]).output().ok();
    std::fs::remove_dir_all(home.agent_dir().join("blobs")).unwrap();
    let out = look(&home, &["sessions", "verify", &id]).output();
    assert_eq!(out.code(), Some(1));
    assert!(out.out().contains("is missing"), "{out}");
}
