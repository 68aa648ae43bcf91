//! Whole outputs of commands: kept beside the session, read back as `artifact://<number>`.

use crate::kit::*;
use serde_json::{Value, json};
use testkit::anthropic::Turn;
use testkit::harness::Home;

fn bash(command: &str) -> Turn {
    Turn::new("m").tool_call("c", "bash", &json!({"command": command}))
}

fn read(input: &Value) -> Turn {
    Turn::new("m").tool_call("r", "read", input)
}

fn of(name: &str) -> Turn {
    read(&json!({"path": name}))
}

/// Text and whether it is an error, of each result.
fn results(messages: &[Value]) -> Vec<(String, bool)> {
    let results = messages.iter().filter(|message| message["role"] == "toolResult");
    let text = |message: &Value| message["content"][0]["text"].as_str().unwrap().to_owned();
    results.map(|message| (text(message), message["isError"].as_bool().unwrap())).collect()
}

const LONG: &str = "for i in $(seq 1 9000); do echo 한글 줄 $i; done";

#[test]
fn what_was_left_out_is_read_in_parts_also_by_the_next_process() {
    let home = Home::new();
    let part = || read(&json!({"path": "artifact://2", "offset": 4500, "limit": 2}));
    let stub = stub([
        bash("echo 짧다"),
        bash(LONG),
        part(),
        text("끝"),
        part(),
        of("artifact://7"),
        of("artifact://../1"),
        text("끝"),
    ]);
    ask(&home, &stub, "x").output().ok();
    let file = the_session(&home);
    let first = results(&messages(&file));
    assert!(
        first[1].0.contains("bytes left out") && first[1].0.contains(", is artifact://2 (the file "),
        "{}",
        first[1].0
    );
    let details = &messages(&file).into_iter().filter(|m| m["role"] == "toolResult").nth(1).unwrap()["details"];
    assert_eq!(details["artifact"], "artifact://2");
    let expected = "  4500\t한글 줄 4500\n  4501\t한글 줄 4501\n[lines 4500–4501 of 9000; go on with offset 4502]\n";
    assert_eq!(first[2].0, expected);
    // A typed prompt has restored trust; what is read lowers it again.
    ask(&home, &stub, "y").args(["--resume", &id_of(&file)]).output().ok();
    let again = results(&messages(&file));
    assert_eq!(again[3], (expected.to_owned(), false));
    let label = lines(&file).into_iter().filter(|line| line["message"]["toolName"] == "read").nth(1).unwrap();
    assert_eq!(label["gjcLabel"], json!({"l": "PUBLIC", "t": false}));
    assert_eq!(again[4], ("there is no artifact://7\nhint: there are, the newest first: artifact://2".into(), true));
    assert!(again[5].0.starts_with("\"artifact://../1\" names no artifact"), "{}", again[5].0);
    assert!(again[5].1);
}

#[test]
fn what_is_binary_or_gone_is_a_sentence() {
    let home = Home::new();
    let stub = stub([
        bash("head -c 100000 /dev/zero"),
        of("artifact://1"),
        Turn::new("m").tool_call("w", "write", &json!({"path": "artifact://1", "content": "x"})),
        text("끝"),
        of("artifact://1"),
        text("끝"),
    ]);
    ask(&home, &stub, "x").output().ok();
    let file = the_session(&home);
    let first = results(&messages(&file));
    assert!(
        first[1].0.starts_with("artifact://1 is binary data, 100000 bytes\nhint: look at it with bash of /"),
        "{}",
        first[1].0
    );
    assert!(first[2].0.starts_with("artifact://1 is the output of a command, and stays as it is"), "{}", first[2].0);
    assert!(!home.work().join("artifact:").exists());
    std::fs::remove_file(file.with_extension("").join("1.bash.log")).unwrap();
    ask(&home, &stub, "y").args(["--resume", &id_of(&file)]).output().ok();
    let again = results(&messages(&file));
    let sentence = "there is no artifact://1\nhint: no output of this session was too long to be shown";
    assert_eq!(again[3], (sentence.into(), true));
    assert!(lines(&file).iter().all(|line| line["gjcLabel"]["l"] != "RESTRICTED"), "a wrong number raises nothing");
}

#[test]
fn a_session_in_memory_has_them_too() {
    let home = Home::new();
    let stub = stub([bash(LONG), read(&json!({"path": "artifact://1", "offset": 8999})), text("끝")]);
    ask(&home, &stub, "x").arg("--no-session").output().ok();
    let request = stub.requests()[2].json().to_string();
    assert!(request.contains("is artifact://1; read it in parts"), "{request}");
    assert!(request.contains("  8999\\t한글 줄 8999\\n  9000\\t한글 줄 9000\\n"), "{request}");
    assert!(session_files(&home).is_empty());
}
