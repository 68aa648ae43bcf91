//! Nothing that a model, a file or a tool says reaches the terminal as a command to it. (`-p` prints the answer as data.)

use crate::kit::*;
use serde_json::json;
use testkit::anthropic::Turn;
use testkit::harness::{Home, Output};

/// Colours, a title, the clipboard, C1 forms, a bell, an override of the writing direction, a carriage return, a backspace.
const EVIL: &str = "한글\u{1b}[31m빨강\u{1b}]0;제목\u{7}\u{1b}]52;c;eA==\u{7}\u{9b}2J\u{9d}0;x\u{9c}\u{7f}\u{8}\u{202e}뒤집힘\u{2066}끝\rx";

#[track_caller]
fn harmless(out: &Output) {
    for text in [out.out(), out.err()] {
        let bad: Vec<char> = text
            .chars()
            .filter(|c| {
                c.is_control() && !matches!(c, '\n' | '\t')
                    || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
            })
            .collect();
        assert!(bad.is_empty(), "{bad:?} in {text:?}");
    }
}

#[test]
fn sessions_and_context_show_text_only() {
    let home = Home::new();
    let folder = home.work().join("폴더\u{1b}[7m");
    std::fs::create_dir(&folder).unwrap();
    let stub = stub([
        Turn::new("m1")
            .text(EVIL)
            .tool_call("c1", "write", &json!({"path": EVIL.replace('\r', ""), "content": EVIL}))
            .tool_call("c2", "bash", &json!({"command": format!("printf '%s' '{EVIL}'")}))
            .tool_call("c3", EVIL, &json!({"x": EVIL})),
        text(EVIL),
    ]);
    let out = ask(&home, &stub, EVIL).cwd(&folder).output().ok();
    assert_eq!(out.out(), format!("{EVIL}\n"), "-p prints the answer as it is");
    let file = the_session(&home);
    let id = id_of(&file);
    // A title of another program.
    let named = std::fs::read_to_string(&file).unwrap()
        + &json!({"type": "session_info", "id": "0000000c", "parentId": answers(&file)[1].0, "timestamp": "2026-06-05T07:41:00.000Z", "name": EVIL}).to_string()
        + "\n";
    std::fs::write(&file, named).unwrap();
    for args in [
        &["sessions", "list"][..],
        &["sessions", "show", &id],
        &["sessions", "verify", "--all"],
        &["context", "show", &id],
    ] {
        let out = look(&home, args).output().ok();
        assert!(out.out().contains("빨강") || args[1] == "verify", "{out}");
        harmless(&out);
    }
    for args in
        [&["sessions", "list", "--json"][..], &["sessions", "show", &id, "--json"], &["context", "show", &id, "--json"]]
    {
        let out = look(&home, args).output().ok();
        assert!(!out.stdout.contains(&0x1b) && !out.stdout.contains(&0x07), "JSON escapes what it must");
        json(&out);
    }
}

/// Ids, roles, types and folders of other programs' sessions are their words, too.
#[test]
fn what_other_programs_wrote_is_shown_as_text_in_its_own_row() {
    let home = Home::new();
    let mut bytes = json!({"type": "session", "version": 3, "id": "0197a0c2", "timestamp": "2026-06-05T07:18:54.123Z",
        "cwd": format!("/p\n0197ffff  forged row {EVIL}")})
    .to_string();
    let mut parent = serde_json::Value::Null;
    for (id, message) in [
        (format!("a\n── forged {EVIL}"), json!({"role": "user", "content": EVIL, "timestamp": 1})),
        (format!("b{EVIL}"), json!({"role": format!("x\n── forged {EVIL}"), "content": EVIL, "timestamp": 1})),
        (
            format!("c{EVIL}"),
            json!({"role": "assistant", "content": [{"type": "toolCall", "id": EVIL, "name": format!("n{EVIL}"), "arguments": {EVIL: EVIL}}],
            "api": "x", "provider": "x", "model": "x", "stopReason": "error", "errorMessage": EVIL, "timestamp": 2, "usage": {"input": 1, "output": 1, "cacheRead": 0,
            "cacheWrite": 0, "totalTokens": 2, "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}}}),
        ),
    ] {
        let line = json!({"type": "message", "id": id, "parentId": parent, "timestamp": "2026-06-05T07:19:00.000Z", "message": message});
        bytes += &format!("\n{line}");
        parent = id.into();
    }
    let custom = json!({"type": "custom_message", "id": "0000000d", "parentId": parent, "timestamp": "2026-06-05T07:19:00.000Z",
        "customType": format!("t\n── forged {EVIL}"), "content": EVIL, "display": true});
    bytes += &format!("\n{custom}\n");
    let again = format!(
        "{}\n",
        json!({"type": "message", "id": EVIL, "parentId": format!("없음{EVIL}"), "timestamp": "2026-06-05T07:19:00.000Z", "message": {}})
    );
    plant(&home, "--p--", "s\nforged.jsonl", bytes.clone() + &again);
    plant(&home, "--p--", "whole.jsonl", bytes.replace("0197a0c2", "0197a0c3"));
    for args in [
        &["sessions", "list"][..],
        &["sessions", "show", "0197a0c3"],
        &["context", "show", "0197a0c3"],
        &["sessions", "show", "0197a0c2"],
        &["sessions", "verify", "--all"],
    ] {
        let out = look(&home, args).output();
        harmless(&out);
        let said = out.out();
        let forged: Vec<&str> = said
            .lines()
            .filter(|l| ["── forged", "forged", "0197ffff"].iter().any(|begin| l.starts_with(begin)))
            .collect();
        assert!(forged.is_empty(), "{args:?}: {forged:?} in {out}");
    }
    assert!(look(&home, &["context", "show", "0197a0c3"]).output().ok().out().contains("── a ── forged"));
}

#[test]
fn errors_show_text_only() {
    let home = Home::new();
    let evil_path = home.work().join("x\u{1b}[31m.jsonl");
    std::fs::write(&evil_path, "{\"type\":\"\\u001b[31m\"}\n").unwrap();
    plant(&home, "--p--", "bad\u{1b}]0;x\u{7}.jsonl", "{}\n");
    for n in 1..=2 {
        plant(
            &home,
            "--p--",
            &format!("{n}.jsonl"),
            header(&format!("abc{n}"), "/p\u{1b}[7m") + &user("0000000a", None, EVIL),
        );
    }
    for args in [
        &["sessions", "show", EVIL][..],
        &["sessions", "show", "abc"],
        &["sessions", "show", evil_path.to_str().unwrap()],
        &["sessions", "verify", "--all"],
        &["sessions", "list"],
        &["context", "show", "abc1", "--at", EVIL],
        &["-p", "x", "--model", EVIL],
        &["-p", "x", "--cwd", EVIL],
        &["-p", "x", "--system-prompt", EVIL],
        &["-p", "x", "--tools", EVIL, "--provider-url", "http://127.0.0.1:9"],
        &["demo", "--dir", evil_path.to_str().unwrap()],
        &["--mode", EVIL],
        &["sessions", EVIL],
        &[&format!("--{EVIL}")],
    ] {
        let out = look(&home, args).output();
        assert!(!out.out().is_empty() || !out.err().is_empty(), "{args:?}");
        harmless(&out);
    }
    let stub = replies([testkit::anthropic::error(400, "invalid_request_error", EVIL)]);
    harmless(&ask(&home, &stub, "x").output());
}

#[test]
fn the_demo_shows_text_only() {
    let home = Home::new();
    let dir = home.work().join("d\u{1b}[31m\u{202e}");
    harmless(&look(&home, &["demo", "--dir", dir.to_str().unwrap()]).output().ok());
}
