//! From one session to another within one process: `switch`, `new_session`.

use crate::kit::*;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use testkit::harness::{Home, Running};
use testkit::stub::{Gate, Stub};

pub(crate) fn rpc<'h>(home: &'h Home, stub: &Stub) -> Running<'h> {
    on(home, stub).args(["--mode", "rpc"]).spawn()
}

/// Gives a command and waits for its reply.
#[track_caller]
pub(crate) fn call(run: &mut Running<'_>, id: &str, command: &Value) -> Value {
    run.send(&json!({"id": id, "command": command}).to_string());
    reply(run, id)
}

#[track_caller]
fn reply(run: &mut Running<'_>, id: &str) -> Value {
    let line = run.wait_for(|line| {
        let value: Value = serde_json::from_str(line).unwrap();
        value["id"] == id && !value["outcome"].is_null()
    });
    serde_json::from_str(&line).unwrap()
}

#[track_caller]
pub(crate) fn event(run: &mut Running<'_>, kind: &str) -> Value {
    let line = run.wait_for(|line| serde_json::from_str::<Value>(line).unwrap()["type"] == kind);
    serde_json::from_str(&line).unwrap()
}

#[track_caller]
pub(crate) fn say(run: &mut Running<'_>, id: &str, text: &str) {
    let prompt = json!({"type": "prompt", "parts": [{"text": text, "origin": "typed"}]});
    assert_eq!(call(run, id, &prompt)["outcome"], "accepted");
    event(run, "turn_ended");
}

/// What the roles of a session file's messages say.
pub(crate) fn said_in(path: &Path) -> Vec<String> {
    let text = |message: &Value| message["content"][0]["text"].as_str().unwrap_or_default().to_owned();
    messages(path).iter().map(text).collect()
}

pub(crate) fn file_of(value: &Value) -> PathBuf {
    value["file"].as_str().unwrap().into()
}

/// The value of a reply to something that was done.
#[track_caller]
pub(crate) fn done(reply: Value) -> Value {
    assert_eq!(reply["outcome"], "done", "{reply}");
    reply["value"].clone()
}

/// Fails unless something was refused with this code and a sentence that says this.
#[track_caller]
pub(crate) fn refused(reply: &Value, code: &str, says: &str) {
    let sentence = reply["sentence"].as_str().unwrap_or_default();
    assert!(reply["outcome"] == "refused" && reply["code"] == code && sentence.contains(says), "{reply}");
}

/// Whether all replies of an id have this outcome.
pub(crate) fn no_reply_but(out: &str, outcome: &str, id: &str) -> bool {
    let lines = out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter(|line| line["id"] == id && !line["outcome"].is_null()).all(|line| line["outcome"] == outcome)
}

#[test]
fn a_new_session_and_back_again() {
    let home = Home::new();
    let stub = stub([text("하나"), text("둘"), text("셋")]);
    let mut run = rpc(&home, &stub);
    let first = file_of(&event(&mut run, "session"));
    say(&mut run, "1", "첫째");
    let new = call(&mut run, "2", &json!({"type": "new_session"}));
    assert_eq!((&new["outcome"], &new["value"]["switched"]), (&json!("done"), &json!(true)), "{new}");
    let switched = event(&mut run, "switched");
    assert_eq!((&switched["reason"], &switched["resumed"]), (&json!("new"), &json!(false)));
    assert_eq!((&switched["file"], &switched["id"]), (&new["value"]["file"], &new["value"]["session"]));
    let second = file_of(&switched);
    assert!(!second.exists(), "a session without an answer has no file");
    let snapshot = call(&mut run, "3", &json!({"type": "snapshot"}))["value"].clone();
    assert_eq!((&snapshot["session"], &snapshot["messages"]), (&switched["id"], &json!([])));
    say(&mut run, "4", "둘째");
    // The beginning of an id is enough.
    let back = call(&mut run, "5", &json!({"type": "switch", "session": id_of(&first)}));
    assert_eq!(back["value"]["session"], id_of(&first), "{back}");
    assert_eq!(event(&mut run, "switched")["reason"], "resume");
    say(&mut run, "6", "셋째");
    run.close_stdin();
    run.wait().ok();
    assert_eq!(said_in(&first), ["첫째", "하나", "셋째", "셋"]);
    assert_eq!(said_in(&second), ["둘째", "둘"]);
    let last = stub.requests()[2].json()["messages"].to_string();
    assert!(last.contains("첫째") && !last.contains("둘째"), "{last}");
}

#[test]
fn the_session_that_is_open_is_no_other_one() {
    let home = Home::new();
    let stub = stub([text("하나"), text("둘")]);
    let mut run = rpc(&home, &stub);
    let first = file_of(&event(&mut run, "session"));
    say(&mut run, "1", "첫째");
    for word in [id_of(&first), first.display().to_string()] {
        let same = call(&mut run, "2", &json!({"type": "switch", "session": word}));
        assert_eq!(same["value"], json!({"session": id_of(&first), "switched": false}));
    }
    say(&mut run, "3", "둘째");
    run.close_stdin();
    let out = run.wait().ok();
    assert!(!out.out().contains(r#""type":"switched""#), "{out}");
    assert_eq!(said_in(&first).len(), 4);
}

#[test]
fn what_runs_ends_and_is_stored_and_what_waited_is_given_back() {
    let home = Home::new();
    let gate = Gate::new();
    let slow = text("천천히 온 답").reply();
    let held = slow.body_len() / 2;
    let stub = replies([text("하나").reply(), slow.gate_at(held, &gate), text("셋").reply()]);
    let mut run = rpc(&home, &stub);
    let first = file_of(&event(&mut run, "session"));
    say(&mut run, "1", "첫째");
    let prompt =
        |text: &str, mode: &str| json!({"type": "prompt", "parts": [{"text": text, "origin": "typed"}], "mode": mode});
    assert_eq!(call(&mut run, "2", &prompt("둘째", "steer"))["outcome"], "accepted");
    stub.wait_for_requests(2, LIMIT);
    assert_eq!(call(&mut run, "3", &prompt("나중에", "follow_up"))["outcome"], "accepted");
    // What is said before the reply is said to the session that is open then.
    run.send(&json!({"id": "4", "command": {"type": "new_session"}}).to_string());
    run.send(&json!({"id": "5", "command": prompt("셋째", "steer")}).to_string());
    let value = done(reply(&mut run, "4"));
    assert_eq!(value["unsaid"], json!(["나중에"]), "{value}");
    event(&mut run, "turn_ended");
    gate.open();
    run.close_stdin();
    run.wait().ok();
    assert_eq!(said_in(&first)[..3], ["첫째", "하나", "둘째"]);
    assert!(!said_in(&first).contains(&"셋째".to_owned()));
    assert_eq!(said_in(&file_of(&value)), ["셋째", "셋"]);
    look(&home, &["sessions", "verify", "--all"]).output().ok();
}

#[test]
fn a_session_that_cannot_be_stored_is_not_left() {
    let home = Home::new();
    let stub = stub([text("하나"), text("둘")]);
    let mut run = rpc(&home, &stub);
    let first = file_of(&event(&mut run, "session"));
    say(&mut run, "1", "첫째");
    home.forget(&first);
    let away = home.work().join("치운 것");
    std::fs::rename(&first, &away).unwrap();
    call(&mut run, "2", &json!({"type": "rename", "name": "이름"}));
    for command in [json!({"type": "new_session"}), json!({"type": "fork"})] {
        let reply = call(&mut run, "3", &command);
        refused(&reply, "not_stored", "so it is not left; it goes on");
    }
    std::fs::rename(&away, &first).unwrap();
    say(&mut run, "4", "둘째");
    run.close_stdin();
    run.wait().ok();
    assert_eq!(said_in(&first), ["첫째", "하나", "둘째", "둘"]);
    assert_eq!(session_files(&home), [first]);
}

#[test]
fn hooks_are_asked_before_and_told_after() {
    let home = Home::new();
    let heard = home.tmp().join("heard");
    let allow = "{\"decision\":\"allow\"}";
    let hook = |event: &str| {
        let script = home.write(
            format!("home/{event}.sh"),
            format!("cat >> '{0}'; echo >> '{0}'\necho '{allow}'\n", heard.display()),
        );
        format!("  {event}: [sh {}]\n", script.display())
    };
    let events = ["session_before_switch", "session_switch", "session_before_branch", "session_branch"];
    home.write("home/.gjc/agent/config.yml", format!("hooks:\n{}", events.map(hook).concat()));
    let stub = stub([text("하나"), text("둘")]);
    let mut run = rpc(&home, &stub);
    let first = file_of(&event(&mut run, "session"));
    say(&mut run, "1", "첫째");
    // While hooks are told, the session is not idle; those of the next way would be asked beside them.
    let told = |run: &mut Running<'_>| {
        while done(call(run, "s", &json!({"type": "snapshot"})))["step"] != "idle" {}
    };
    let new = done(call(&mut run, "2", &json!({"type": "new_session"})));
    told(&mut run);
    done(call(&mut run, "3", &json!({"type": "switch", "session": id_of(&first)})));
    told(&mut run);
    let message = lines(&first).into_iter().find(|line| line["message"]["role"] == "user").unwrap();
    done(call(&mut run, "4", &json!({"type": "branch", "entry": message["id"]})));
    run.close_stdin();
    run.wait().ok();
    let heard = std::fs::read_to_string(heard).unwrap();
    let heard: Vec<Value> =
        heard.lines().filter(|line| !line.is_empty()).map(|line| serde_json::from_str(line).unwrap()).collect();
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemas/hook-call.json");
    let schema: Value = serde_json::from_slice(&std::fs::read(schema).unwrap()).unwrap();
    heard.iter().for_each(|call| testkit::schema::assert_valid(&schema, call));
    let told: Vec<(&str, &str)> = heard
        .iter()
        .map(|call| (call["event"].as_str().unwrap(), call["reason"].as_str().unwrap_or_default()))
        .collect();
    let order = [
        ("session_before_switch", "new"),
        ("session_switch", "new"),
        ("session_before_switch", "resume"),
        ("session_switch", "resume"),
        ("session_before_switch", "branch"),
        ("session_before_branch", ""),
        ("session_switch", "branch"),
        ("session_branch", ""),
    ];
    assert_eq!(told, order);
    assert_eq!(heard[2]["target"]["session"], id_of(&first));
    assert_eq!((&heard[3]["session"], &heard[3]["previous"]["session"]), (&json!(id_of(&first)), &new["session"]));
    assert_eq!((&heard[5]["entry"], &heard[7]["previous"]["session"]), (&message["id"], &json!(id_of(&first))));
}
