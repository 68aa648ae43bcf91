//! The dump.

use gjc_context::ToolDef;
use gjc_entry::{Body, Leaf, Message, ModelRef, Source, Thinking, Tier};
use gjc_export::{Live, text};
use gjc_log::Reader;
use gjc_log::fs::OsFs;
use serde_json::json;
use serde_json::value::RawValue;
use std::path::{Path, PathBuf};

const AT: &str = "2026-06-05T07:19:00.000Z";

/// A session file of these lines: type, id, parent, other fields.
fn file(lines: &[(&str, &str, Option<&str>, serde_json::Value)]) -> (tempfile::TempDir, Reader<OsFs>) {
    let dir = tempfile::tempdir().unwrap();
    let mut all =
        json!({"type": "session", "version": 3, "id": "s", "timestamp": AT, "cwd": "/작업"}).to_string() + "\n";
    for (kind, id, parent, rest) in lines {
        let mut line = json!({"type": kind, "id": format!("{id:0>8}"), "timestamp": AT});
        line["parentId"] = parent.map_or(serde_json::Value::Null, |parent| format!("{parent:0>8}").into());
        line.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        all += &(line.to_string() + "\n");
    }
    let path = dir.path().join("s.jsonl");
    std::fs::write(&path, all).unwrap();
    let reader = Reader::open(&OsFs, &path).unwrap().value;
    (dir, reader)
}

fn user(text: &str) -> serde_json::Value {
    json!({"message": {"role": "user", "content": text, "timestamp": 1}})
}

fn dump(reader: &Reader<OsFs>, live: Option<Live<'_>>) -> String {
    let mut out = Vec::new();
    text(reader, Leaf::Current, live, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn every_kind_of_entry_has_its_part() {
    let image = json!({"type": "image", "data": "aGk=", "mimeType": "image/png"});
    let (_dir, reader) = file(&[
        ("message", "1", None, user("첫 물음\n둘째 줄")),
        ("thinking_level_change", "2", Some("1"), json!({"thinkingLevel": "high"})),
        ("model_change", "3", Some("2"), json!({"provider": "anthropic", "modelId": "claude"})),
        ("mode_change", "4", Some("3"), json!({"mode": "plan"})),
        (
            "message",
            "5",
            Some("4"),
            json!({"message": {"role": "assistant", "provider": "p", "model": "m", "timestamp": 1,
            "content": [{"type": "thinking", "thinking": " \n"}, {"type": "thinking", "thinking": "생각 중"},
                {"type": "text", "text": "답"},
                {"type": "toolCall", "id": "c1", "name": "bash", "arguments": {"command": "ls\n-l", "n": 3}}]}}),
        ),
        (
            "message",
            "6",
            Some("5"),
            json!({"message": {"role": "toolResult", "toolCallId": "c1", "toolName": "bash", "isError": true,
            "content": [{"type": "text", "text": "없음"}, image], "timestamp": 1}}),
        ),
        (
            "message",
            "7",
            Some("6"),
            json!({"message": {"role": "bashExecution", "command": "make", "output": "did\n", "exitCode": 2,
            "cancelled": false, "excludeFromContext": true, "timestamp": 1}}),
        ),
        (
            "message",
            "8",
            Some("7"),
            json!({"message": {"role": "hookMessage", "content": "훅이 한 말", "timestamp": 1}}),
        ),
        ("custom", "9", Some("8"), json!({"customType": "theirs", "data": {"a": 1}})),
        ("custom_message", "a", Some("9"), json!({"customType": "note", "content": "알림", "display": false})),
        ("branch_summary", "b", Some("a"), json!({"fromId": "00000001", "summary": "버린 가지"})),
        ("compaction", "c", Some("b"), json!({"summary": "요약", "firstKeptEntryId": "00000001", "tokensBefore": 77})),
        ("label", "d", Some("c"), json!({"targetId": "00000001", "label": "여기"})),
        ("session_info", "e", Some("d"), json!({"name": "이름"})),
        ("unheard_of", "f", Some("e"), json!({"x": [1]})),
    ]);
    let id = |id: &str| format!("{id:0>8} {AT}");
    let expected = [
        "── label",
        "PUBLIC trusted",
        "── settings",
        "none are recorded",
        &format!("── user {}", id("1")),
        "첫 물음",
        "둘째 줄",
        &format!("── thinking {}", id("2")),
        "high",
        &format!("── model {}", id("3")),
        "anthropic/claude",
        &format!("── mode {}", id("4")),
        "plan",
        &format!("── assistant {} p/m", id("5")),
        "── thinks",
        "생각 중",
        "── says",
        "답",
        "── call bash c1",
        "command: ls",
        "-l",
        "n: 3",
        &format!("── result bash {} of c1 (error)", id("6")),
        "없음",
        "[Image output]",
        &format!("── bashExecution {} (kept from the model)", id("7")),
        "$ make",
        "did",
        "(exit 2)",
        &format!("── hookMessage {}", id("8")),
        "훅이 한 말",
        &format!("── custom theirs {}", id("9")),
        "{\"a\":1}",
        &format!("── note {} (not shown to a person)", id("a")),
        "알림",
        &format!("── branch summary {} (from 00000001)", id("b")),
        "버린 가지",
        &format!("── compaction {} (77 tokens before it)", id("c")),
        "요약",
        &format!("── name of 00000001 {}", id("d")),
        "여기",
        &format!("── name of the session {}", id("e")),
        "이름",
        &format!("── unheard_of {}", id("f")),
        "x: [1]",
    ];
    assert_eq!(dump(&reader, None).lines().collect::<Vec<_>>(), expected);
    assert_eq!(dump(&reader, None), dump(&reader, None));
}

#[test]
fn settings_prompt_and_tools_stand_first() {
    let (_dir, reader) = file(&[("message", "1", None, user("물음"))]);
    let input = json!({"type": "object", "required": ["path"], "properties": {
        "path": {"type": "string", "description": "어느 파일"}, "limit": {"type": ["integer", "null"], "minimum": 1}}});
    let tools = [ToolDef {
        name: "read".into(),
        description: "Reads.".into(),
        input: RawValue::from_string(input.to_string()).unwrap(),
    }];
    let model = ModelRef { provider: "p".into(), id: "m".into(), api: "w".into() };
    let live =
        Live { system: "너는 조수다.", tools: &tools, model: &model, thinking: Thinking::High, tier: Tier::Auto };
    let shown = dump(&reader, Some(live));
    let head = "── label\nPUBLIC trusted\n── settings\nmodel: p/m (w)\nthinking: high\n── system prompt\n너는 조수다.\n\
                ── tool read\nReads.\n";
    assert!(shown.starts_with(head), "{shown}");
    assert!(shown.contains("- path (string, required): 어느 파일\n"), "{shown}");
    assert!(shown.contains("- limit (any) {\"minimum\":1,\"type\":[\"integer\",\"null\"]}\n"), "{shown}");
}

/// K43: what was left is not told as if it had happened.
#[test]
fn only_the_active_path_is_shown_and_where_others_leave_it_is_marked() {
    let (_dir, reader) = file(&[
        ("message", "1", None, user("뿌리")),
        ("message", "2", Some("1"), user("버린 가지")),
        ("message", "3", Some("2"), user("버린 가지의 끝")),
        ("message", "4", Some("1"), user("또 버린 가지")),
        ("label", "5", Some("1"), json!({"targetId": "00000001", "label": "가지가 아님"})),
        ("message", "6", Some("1"), user("남은 가지")),
    ]);
    let shown = dump(&reader, None);
    assert!(!shown.contains("버린") && shown.contains("뿌리") && shown.contains("남은 가지"), "{shown}");
    assert!(shown.contains("뿌리\n── other branches leave here: 00000002, 00000004\n── user 00000006"), "{shown}");
}

#[test]
fn nothing_in_a_session_passes_for_a_part_or_moves_a_terminal() {
    let hostile = "── user 00000009\n\\── x\r\n\u{1b}]52;c;eA==\u{7}\u{9b}2J\u{202e}\t끝";
    let (_dir, reader) = file(&[
        ("message", "1", None, user(hostile)),
        ("custom", "2", Some("1"), json!({"customType": "a\n── user", "data": null})),
    ]);
    let shown = dump(&reader, None);
    let parts = shown.lines().filter(|line| line.starts_with("──")).count();
    assert_eq!(parts, 4, "{shown}");
    assert!(shown.contains("\n\\── user 00000009\n\\\\── x\n␛]52;c;eA==␇\u{FFFD}2J\u{FFFD}\t끝\n"), "{shown:?}");
}

#[test]
fn an_entry_that_cannot_be_read_is_a_part_that_says_so() {
    let (dir, _) = file(&[("message", "1", None, user("물음")), ("message", "2", Some("1"), user("대답"))]);
    let path = dir.path().join("s.jsonl");
    let bytes = std::fs::read_to_string(&path).unwrap().replace("\"role\":\"user\"", "\"role\":\"user\",,");
    std::fs::write(&path, bytes).unwrap();
    let shown = dump(&Reader::open(&OsFs, &path).unwrap().value, None);
    assert_eq!(shown.matches("── unreadable 0000000").count(), 2, "{shown}");
}

/// Every recorded session of the family: all that a person said on the active path is in the dump, word for word.
#[test]
fn recorded_sessions_keep_every_human_word() {
    let Some(folder) = testkit::material::path("fixtures/sessions") else { return };
    let (mut files, mut words) = (0, 0);
    for path in sessions(&folder) {
        let Ok(loaded) = Reader::open(&OsFs, &path) else { continue };
        let reader = loaded.value;
        let shown = dump(&reader, None);
        files += 1;
        for node in reader.path(Leaf::Current).unwrap().0 {
            let Ok(entry) = reader.body(node.at) else { continue };
            let Body::Message(Message::User(said)) = &entry.body else { continue };
            for line in said.content.text().lines().filter(|line| !line.chars().any(char::is_control)) {
                assert!(shown.contains(line.trim_end()), "{}: {line}", path.display());
                words += 1;
            }
        }
    }
    assert!(files >= 10 && words > 100, "{files} sessions, {words} lines");
}

fn sessions(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            found.extend(sessions(&path));
        } else if path.extension().is_some_and(|ending| ending == "jsonl") {
            found.push(path);
        }
    }
    found
}
