//! `--mode json`: every event, one a line.

use crate::kit::*;
use gjc_protocol::{Event, EventBody, TurnEnd};
use serde_json::json;
use testkit::anthropic::{self, Turn};
use testkit::harness::{Home, Output};

/// Every line as an event; what holds of every run holds here.
pub(crate) fn events(out: &Output) -> Vec<EventBody> {
    let events: Vec<Event> =
        out.out().lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"))).collect();
    // The first event bears the number of the last one before it. Merged events bear their last number.
    assert_eq!(events[0].seq, 0);
    assert!(events.windows(2).all(|pair| pair[0].seq < pair[1].seq), "{out}");
    assert!(matches!(events.first().unwrap().body, EventBody::Session { .. }), "{out}");
    assert_eq!(events.last().unwrap().body, EventBody::Closed, "{out}");
    events.into_iter().map(|event| event.body).collect()
}

fn kinds(events: &[EventBody]) -> Vec<String> {
    let kind = |event: &EventBody| serde_json::to_value(event).unwrap()["type"].as_str().unwrap().to_owned();
    let mut kinds: Vec<String> = events.iter().map(kind).collect();
    kinds.dedup();
    kinds
}

#[test]
fn a_run_is_told_from_its_first_event_to_its_last() {
    let home = Home::new();
    let stub = stub([
        Turn::new("m1").thinking("음", "sig==").tool_call("c1", "bash", &json!({"command": "echo 나왔다"})),
        text("끝났습니다"),
    ]);
    let out = ask(&home, &stub, "해 줘").args(["--mode", "json"]).output().ok();
    assert_eq!(out.err(), "");
    let events = events(&out);
    let expected = [
        "session",
        "turn_started",
        "message",
        "message_started",
        "thinking_delta",
        "call_delta",
        "message",
        "usage",
        "tool_started",
        "message",
        "tool_ended",
        "message_started",
        "text_delta",
        "message",
        "usage",
        "turn_ended",
        "closed",
    ];
    // A command's output may be shown while it runs, or be there when it has ended; labels may change with it.
    let told: Vec<String> =
        kinds(&events).into_iter().filter(|kind| kind != "tool_progress" && kind != "label").collect();
    assert_eq!(told, expected);
    // The messages told are the messages stored.
    let file = the_session(&home);
    let EventBody::Session { file: told, id, resumed, .. } = &events[0] else { panic!("{:?}", events[0]) };
    assert_eq!((told.as_deref(), id, resumed), (file.to_str(), &id_of(&file), &false));
    let told: Vec<_> = events
        .iter()
        .filter_map(|event| if let EventBody::Message { message, .. } = event { Some(message.clone()) } else { None })
        .collect();
    assert_eq!(told, messages(&file));
    // Deltas joined are the text.
    let deltas: String = events
        .iter()
        .filter_map(|event| if let EventBody::TextDelta { text, .. } = event { Some(text.as_str()) } else { None })
        .collect();
    assert_eq!(deltas, "끝났습니다");
}

#[test]
fn numbers_have_no_gaps_when_nothing_was_merged() {
    let home = Home::new();
    let stub = stub([text("a").delta_chars(100)]);
    let out = ask(&home, &stub, "x").args(["--mode", "json"]).output().ok();
    let numbers: Vec<u64> = out.out().lines().map(|line| serde_json::from_str::<Event>(line).unwrap().seq).collect();
    assert_eq!(numbers, (0..numbers.len() as u64).collect::<Vec<_>>());
}

#[test]
fn a_failure_is_an_event_and_an_exit_code() {
    let home = Home::new();
    let stub = replies([anthropic::error(401, "authentication_error", "invalid x-api-key")]);
    let out = ask(&home, &stub, "x").args(["--mode", "json"]).output();
    assert_eq!(out.code(), Some(1));
    let events = events(&out);
    assert!(events.iter().any(|event| matches!(event, EventBody::Error { code, .. } if code == "provider_auth")));
    assert!(events.contains(&EventBody::TurnEnded { end: TurnEnd::Failed }));
}

#[test]
fn a_session_that_goes_on_says_so() {
    let home = Home::new();
    let stub = stub([text("a"), text("b")]);
    ask(&home, &stub, "x").output().ok();
    let id = id_of(&the_session(&home));
    let out = ask(&home, &stub, "y").args(["--mode", "json", "--resume", &id]).output().ok();
    assert!(matches!(&events(&out)[0], EventBody::Session { resumed: true, id: told, .. } if *told == id), "{out}");
}

#[test]
fn a_session_in_memory_has_no_file() {
    let home = Home::new();
    let stub = stub([text("a")]);
    let out = ask(&home, &stub, "x").args(["--mode", "json", "--no-session"]).output().ok();
    assert!(matches!(&events(&out)[0], EventBody::Session { file: None, .. }), "{out}");
}
