//! Another program takes the session's file away, puts it back, adds to it, or rewrites it, while the session is open.

use crate::kit::*;
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;
use testkit::harness::{Home, Running};
use testkit::stub::Gate;

fn prompt(run: &mut Running<'_>, text: &str) -> Value {
    let line = json!({"id": text, "command": {"type": "prompt", "parts": [{"text": text, "origin": "typed"}]}});
    run.send(&line.to_string());
    until(run, |value| value["type"] == "turn_ended")
}

fn command(run: &mut Running<'_>, kind: &str) -> Value {
    run.send(&json!({"id": kind, "command": {"type": kind}}).to_string());
    until(run, |value| value["id"] == kind && !value["outcome"].is_null())
}

fn until(run: &mut Running<'_>, mut wanted: impl FnMut(&Value) -> bool) -> Value {
    let line = run.wait_for(|line| wanted(&serde_json::from_str(line).unwrap()));
    serde_json::from_str(&line).unwrap()
}

/// Nothing more is said; the session ends.
fn end(mut run: Running<'_>) -> testkit::harness::Output {
    run.close_stdin();
    run.wait()
}

/// The texts of a session's active path.
fn texts(home: &Home, file: &Path) -> Vec<String> {
    let shown = json(&look(home, &["sessions", "show", file.to_str().unwrap(), "--json"]).output().ok());
    let text = |message: &Value| match &message["content"] {
        Value::String(text) => text.clone(),
        blocks => blocks[0]["text"].as_str().unwrap_or_default().to_owned(),
    };
    shown["messages"].as_array().unwrap().iter().map(text).collect()
}

#[test]
fn a_deleted_session_is_gone_on_with_in_a_new_file() {
    let home = Home::new();
    let stub = stub([text("일"), text("이"), text("삼")]);
    let mut run = on(&home, &stub).args(["--mode", "rpc"]).spawn();
    prompt(&mut run, "하나");
    let file = the_session(&home);
    home.forget(&file);
    assert_eq!(command(&mut run, "rescue")["code"], "nothing_lost");
    std::fs::remove_file(&file).unwrap();
    run.send(
        &json!({"id": "2", "command": {"type": "prompt", "parts": [{"text": "둘", "origin": "typed"}]}}).to_string(),
    );
    let told = until(&mut run, |value| value["type"] == "storage");
    let why = told["why"].as_str().unwrap();
    assert!(
        why.contains("was deleted or moved away by another program") && why.contains("go on in a new one"),
        "{why}"
    );
    until(&mut run, |value| value["type"] == "turn_ended");
    let rescued = command(&mut run, "rescue");
    assert_eq!(rescued["outcome"], "done", "{rescued}");
    let new = Path::new(rescued["value"]["file"].as_str().unwrap()).to_owned();
    prompt(&mut run, "셋");
    end(run);
    assert_eq!(texts(&home, &new), ["하나", "일", "둘", "이", "셋", "삼"]);
    look(&home, &["sessions", "verify", new.to_str().unwrap()]).output().ok();
    let header = &lines(&new)[0];
    assert_eq!((&header["id"], file.exists()), (&rescued["value"]["id"], false));
    assert!(file.to_str().unwrap().contains(header["parentSession"].as_str().unwrap()));
}

#[test]
fn after_a_rescue_whole_texts_and_prompts_belong_to_the_new_session() {
    let home = Home::new();
    let never = text("오지 않는 대답").reply().gate_at(0, &Gate::new());
    let stub = replies([text("일").reply(), never]);
    let mut run = on(&home, &stub).args(["--mode", "rpc"]).spawn();
    let whole = "긴 글 ".repeat(150_000);
    prompt(&mut run, &whole);
    let file = the_session(&home);
    let artifact = |lines: &[Value]| {
        lines.iter().find_map(|line| line["gjcWhole"][0]["artifact"].as_str().map(str::to_owned)).unwrap()
    };
    let name = artifact(&lines(&file));
    home.forget(&file);
    std::fs::remove_file(&file).unwrap();
    let say = |run: &mut Running<'_>, text: &str, mode: &str| {
        let parts = json!([{"text": text, "origin": "typed"}]);
        run.send(&json!({"id": text, "command": {"type": "prompt", "parts": parts, "mode": mode}}).to_string());
        until(run, |value| value["id"] == text && value["outcome"] == "accepted");
    };
    say(&mut run, "둘", "steer");
    stub.wait_for_requests(2, LIMIT);
    say(&mut run, "기다리는 말", "follow_up");
    // The answer and the news that all is on the disk come in either order.
    run.send(&json!({"id": "rescue", "command": {"type": "rescue"}}).to_string());
    let (mut rescued, mut sound) = (Value::Null, false);
    until(&mut run, |value| {
        if value["id"] == "rescue" {
            rescued = value.clone();
        }
        sound |= value["type"] == "storage" && value["health"] == "ok";
        sound && !rescued.is_null()
    });
    assert_eq!(rescued["outcome"], "done", "{rescued}");
    let (id, new) = (&rescued["value"]["id"], Path::new(rescued["value"]["file"].as_str().unwrap()).to_owned());
    say(&mut run, "나중 말", "follow_up");
    assert_eq!(artifact(&lines(&new)), name);
    let beside = new.with_extension("").join(&name);
    assert_eq!(std::fs::read_to_string(&beside).unwrap(), whole, "{}", beside.display());
    run.kill_9();
    let listed = json(&look(&home, &["prompts", "--json"]).output().ok());
    let open: Vec<(&Value, &Value)> = listed["prompts"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|prompt| prompt["unanswered"] == true)
        .map(|prompt| (&prompt["text"], &prompt["session"]))
        .collect();
    assert_eq!(open, [(&json!("기다리는 말"), id), (&json!("나중 말"), id)]);
}

#[test]
fn what_nobody_could_be_asked_about_is_rescued_at_the_end() {
    let home = Home::new();
    let stub = stub([text("일"), text("이")]);
    ask(&home, &stub, "하나").output().ok();
    let file = the_session(&home);
    home.forget(&file);
    let mut run = on(&home, &stub).args(["--mode", "rpc", "--resume", file.to_str().unwrap()]).spawn();
    until(&mut run, |value| value["type"] == "session");
    // Another session stands there now.
    std::fs::remove_file(&file).unwrap();
    std::fs::write(&file, "{\"type\":\"session\",\"version\":3,\"id\":\"other\",\"timestamp\":\"2026-06-05T07:18:54.123Z\",\"cwd\":\"/\"}\n").unwrap();
    home.forget(&file);
    prompt(&mut run, "둘");
    let out = end(run);
    let rescued = out
        .out()
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .find(|line| line["type"] == "rescued");
    let new = rescued.unwrap()["file"].as_str().unwrap().to_owned();
    assert_eq!(texts(&home, Path::new(&new)), ["하나", "일", "둘", "이"]);
    assert_eq!(lines(&file).len(), 1, "what stands there now is nobody's business");
}

#[test]
fn what_another_program_adds_is_kept_and_the_leaf_stays_ours() {
    let home = Home::new();
    let stub = stub([text("일"), text("이")]);
    let mut run = on(&home, &stub).args(["--mode", "rpc"]).spawn();
    prompt(&mut run, "하나");
    let file = the_session(&home);
    let theirs = json!({"type":"message","id":"ffffff01","parentId":null,"timestamp":"2026-06-05T07:18:54.123Z",
        "message":{"role":"user","content":"남의 말","timestamp":1}});
    let mut other = std::fs::OpenOptions::new().append(true).open(&file).unwrap();
    writeln!(other, "{theirs}").unwrap();
    writeln!(other, "no entry").unwrap();
    prompt(&mut run, "둘");
    let out = end(run);
    assert!(out.out().contains("another program has left damage in the session file"), "{out}");
    assert_eq!(texts(&home, &file), ["하나", "일", "둘", "이"]);
    let all = lines_sound(&file);
    assert!(all.iter().any(|line| line["id"] == "ffffff01"), "their entry is there");
    let leaf = all.iter().find(|line| line["customType"] == "gjc.leaf").unwrap();
    assert_eq!(leaf["data"]["from"], "ffffff01");
    // A person sees both branches' entries, pi the same leaf.
    if let Some(theirs) = testkit::pi::read(&file) {
        assert_eq!(theirs["messages"].as_array().unwrap().len(), 4);
    }
}

/// The lines of a file that are JSON.
fn lines_sound(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}
