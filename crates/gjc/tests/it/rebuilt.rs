//! The promise of the log: every request that was ever sent can be made again from the session file, byte for byte, by a
//! process that knows nothing else.

use crate::kit::*;
use serde_json::json;
use std::path::Path;
use testkit::anthropic::{self, Turn};
use testkit::harness::Home;
use testkit::stub::{Gate, Stub};

/// Compares what `gjc context request` gives for each answer with what the stub recorded. `answered`: the number of the
/// request that each answer in the file answers.
#[track_caller]
pub(crate) fn assert_rebuilt(home: &Home, stub: &Stub, file: &Path, answered: &[usize]) {
    let answers = answers(file);
    assert_eq!(answers.len(), answered.len(), "answers in {}", file.display());
    let requests = stub.requests();
    for ((entry, _), n) in answers.iter().zip(answered) {
        same(home, file, Some(entry), &requests[*n].body, &format!("request {n}, answered by {entry}"));
    }
}

#[track_caller]
fn same(home: &Home, file: &Path, at: Option<&str>, sent: &[u8], which: &str) {
    let mut run = look(home, &["context", "request", file.to_str().unwrap()]);
    if let Some(at) = at {
        run = run.args(["--at", at]);
    }
    let rebuilt = run.output().ok();
    assert_eq!(rebuilt.err(), "");
    if rebuilt.stdout != sent {
        let at = rebuilt.stdout.iter().zip(sent).take_while(|(a, b)| a == b).count();
        let part = |bytes: &[u8]| {
            String::from_utf8_lossy(&bytes[at.saturating_sub(80)..(at + 200).min(bytes.len())]).into_owned()
        };
        panic!("{which} differs at byte {at}\n  sent:    {}\n  rebuilt: {}", part(sent), part(&rebuilt.stdout));
    }
}

#[test]
fn every_request_of_a_life_in_many_processes() {
    let home = Home::new();
    home.write("project/메모.md", "# 메모\n한글 \u{1F600} \"quotes\" \\ and \u{7f}\n");
    let system = home.write("project/system.md", "당신은 조수입니다.\n");
    let append = home.write("project/append.md", "짧게 대답하세요.");
    let broken = Turn::new("m6").thinking("중간에", "").text("끊긴 답이고").text("안 옴");
    let half = Turn::new("m8").thinking("서명 없음", "").text("멈춘 답과 나머지");
    let stub = replies([
        // 0–1: thinking with a signature, parallel calls, one of them fails.
        Turn::new("m0")
            .thinking("먼저 읽자", "c2lnbmF0dXJl+/==")
            .redacted_thinking("b3BhcXVl")
            .text("읽습니다.")
            .interleaved_calls(&[
                ("t1", "read", r#"{"path": "메모.md",   "limit": 1e1}"#),
                ("t2", "read", r#"{"path":"없음"}"#),
                ("t3", "bash", r#"{"command":"printf '\\033[1m굵게\\033[0m\\n\\xff'; exit 7"}"#),
            ])
            .reply(),
        text("다 읽었습니다.").reply(),
        // 2: other prompt files, other tools. 3: refused at first, then answered.
        text("").reply(),
        anthropic::error(529, "overloaded_error", "Overloaded").header("retry-after", "0"),
        Turn::new("m4").tool_call("t1", "no_such_tool", &json!({"x": null})).tool_call_raw("t2", "read", "").reply(),
        text("  앞뒤 공백  ").reply(),
        // 6: breaks off.
        broken.reply().cut_at(broken.event_ends()[7]),
        // 7: refused for good; nothing answers it.
        anthropic::error(400, "invalid_request_error", "no"),
        // 8: interrupted.
        half.reply().gate_at(half.event_ends()[6], &Gate::new()),
        text("마지막").reply(),
    ]);
    let go = |id: &str, prompt: &str| ask(&home, &stub, prompt).args(["--resume", id]);
    ask(&home, &stub, "읽어 줘").output().ok();
    let file = the_session(&home);
    let id = id_of(&file);
    let prompts = ["--system-prompt", system.to_str().unwrap(), "--append-system-prompt", append.to_str().unwrap()];
    go(&id, "둘째").args(prompts).args(["--tools", "read"]).stdin("붙임\r\n").output().ok();
    std::fs::write(&system, "이제 다릅니다.").unwrap();
    std::fs::remove_file(&append).unwrap();
    go(&id, "셋째").args(&prompts[..2]).args(["--tools", ""]).output().ok();
    std::fs::remove_file(&system).unwrap();
    assert_eq!(go(&id, "넷째").args(["--tools", "bash,read"]).output().code(), Some(1));
    assert_eq!(go(&id, "다섯째").output().code(), Some(1));
    // Nothing has answered it, so it is what the leaf would ask.
    same(&home, &file, None, &stub.requests()[7].body, "the refused request");
    let mut run = go(&id, "여섯째").args(["--mode", "json"]).spawn();
    run.close_stdin();
    run.wait_for(|line| line.contains("text_delta"));
    run.interrupt();
    assert_eq!(run.wait().code(), Some(130));
    go(&id, "끝").output().ok();
    assert_eq!(stub.left(), 0);

    let requests = stub.requests();
    assert_eq!(requests[3].body, requests[4].body);
    assert_rebuilt(&home, &stub, &file, &[0, 1, 2, 4, 5, 6, 8, 9]);
    same(&home, &file, None, &requests[9].body, "the leaf");

    // The test would be worth little if the settings had not differed.
    let bodies: Vec<_> = requests.iter().map(|request| request.json()).collect();
    let tools = |n: usize| bodies[n]["tools"].as_array().map_or(0, Vec::len);
    // The last runs name none: the session keeps those that it was given last.
    assert_eq!((tools(0), tools(2), tools(3), tools(6), tools(9)), (8, 1, 0, 2, 2));
    let system = |n: usize| bodies[n]["system"].to_string();
    assert!(system(2).contains("당신은 조수입니다.") && system(2).contains("짧게"), "{}", system(2));
    assert!(system(3).contains("이제 다릅니다.") && !system(3).contains("Today"), "{}", system(3));
    assert_eq!(system(0), system(9));
    assert!(bodies[1]["messages"].to_string().contains("c2lnbmF0dXJl+/=="));
    assert!(!bodies[9].to_string().contains("서명 없음"));
}

#[test]
fn each_step_asks_with_what_the_steps_before_it_asked_with() {
    let home = Home::new();
    let mut turns: Vec<Turn> = (0..12)
        .map(|n| {
            Turn::new(&format!("m{n}")).tool_call(&format!("c{n}"), "bash", &json!({"command": format!("echo {n} 번")}))
        })
        .collect();
    turns.push(text("끝"));
    let stub = stub(turns);
    ask(&home, &stub, "열두 번").output().ok();
    assert_rebuilt(&home, &stub, &the_session(&home), &(0..13).collect::<Vec<_>>());
    // A prefix of messages never changes: the provider's cache depends on it.
    let messages = |n: usize| {
        let text = stub.requests()[n].json()["messages"].to_string();
        text.replace(r#""cache_control":{"type":"ephemeral"},"#, "")
            .replace(r#","cache_control":{"type":"ephemeral"}"#, "")
    };
    for n in 1..13 {
        let (before, after) = (messages(n - 1), messages(n));
        assert!(after.starts_with(before.trim_end_matches(']')), "request {n}\n{before}\n{after}");
    }
}

#[test]
fn a_request_of_a_session_that_recorded_no_settings_is_refused_with_the_reason() {
    let home = Home::new();
    let file = plant(
        &home,
        "--x--",
        "a.jsonl",
        header("s-1", "/x") + &user("0000000a", None, "안녕") + &said("0000000b", "0000000a", "네"),
    );
    let out = look(&home, &["context", "request", file.to_str().unwrap()]).output();
    assert_eq!((out.code(), out.stdout.len()), (Some(1), 0));
    let other = look(&home, &["context", "request", file.to_str().unwrap(), "--at", "ffffffff"]).output();
    assert_eq!((other.code(), other.stdout.len()), (Some(1), 0));
    steady(&home, || insta::assert_snapshot!(out.err() + &other.err()));
}

/// The settings half of a request is a blob: without it there is no request, and with other bytes none is made up.
#[test]
fn a_request_whose_blob_is_gone_or_changed_is_refused() {
    let home = Home::new();
    let stub = stub([text("네"), text("또")]);
    ask(&home, &stub, "x").output().ok();
    let file = the_session(&home);
    let (id, blobs) = (id_of(&file), home.agent_dir().join("blobs"));
    let mut said = String::new();
    for blob in walk(&blobs) {
        let bytes = std::fs::read(&blob).unwrap();
        std::fs::write(&blob, [&bytes[..], b" "].concat()).unwrap();
        let changed = look(&home, &["context", "request", &id]).output();
        std::fs::remove_file(&blob).unwrap();
        let gone = look(&home, &["context", "request", &id]).output();
        for out in [changed, gone] {
            assert_eq!((out.code(), out.stdout.len()), (Some(1), 0), "{out}");
            said = out.err();
        }
        std::fs::write(&blob, bytes).unwrap();
    }
    assert!(said.contains("is missing"), "{said}");
    // Whatever became of the blobs, the session can be shown and goes on.
    std::fs::remove_dir_all(&blobs).unwrap();
    look(&home, &["sessions", "show", &id]).output().ok();
    ask(&home, &stub, "y").args(["--resume", &id]).output().ok();
    assert_rebuilt(&home, &stub, &file, &[0, 1]);
}

/// The day stands at the end of the system prompt; yesterday's requests keep yesterday's.
#[cfg(feature = "failpoints")]
#[test]
fn a_request_of_yesterday_keeps_its_day() {
    let home = Home::new();
    let stub = stub([text("어제"), text("오늘"), text("내일")]);
    let day = 86_400_000i64;
    ask(&home, &stub, "하나").env("GJC_TEST_WALL_MS", (-day).to_string()).output().ok();
    let file = the_session(&home);
    for (prompt, ahead) in [("둘", 0), ("셋", day)] {
        ask(&home, &stub, prompt)
            .args(["--resume", &id_of(&file)])
            .env("GJC_TEST_WALL_MS", ahead.to_string())
            .output()
            .ok();
    }
    let days: Vec<String> = stub.requests().iter().map(|request| request.json()["system"].to_string()).collect();
    assert!(days[0] != days[1] && days[1] != days[2], "{days:?}");
    assert_rebuilt(&home, &stub, &file, &[0, 1, 2]);
}
