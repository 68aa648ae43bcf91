//! Every example line of `docs/rpc.md` can be read, and nothing that can be sent is left out there.

use gjc_protocol::{Cmd, Event, Reply, Snapshot};
use serde_json::Value;
use std::path::Path;

fn document() -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/rpc.md")).unwrap()
}

/// The lines of its `jsonl` blocks.
fn examples(document: &str) -> Vec<Value> {
    let mut inside = false;
    let mut lines = Vec::new();
    for line in document.lines() {
        match line.strip_prefix("```") {
            Some(language) => inside = language == "jsonl",
            None if inside => lines.push(serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"))),
            None => {}
        }
    }
    lines
}

#[test]
fn every_example_is_what_it_says() {
    let (mut commands, mut replies, mut events) = (0, 0, 0);
    for example in examples(&document()) {
        let read = if example.get("command").is_some_and(Value::is_object) {
            commands += 1;
            serde_json::from_value::<Cmd>(example.clone()).map(drop)
        } else if example.get("outcome").is_some() {
            replies += 1;
            serde_json::from_value::<Reply>(example.clone()).map(drop)
        } else if example.get("step").is_some() {
            serde_json::from_value::<Snapshot>(example.clone()).map(drop)
        } else {
            events += 1;
            serde_json::from_value::<Event>(example.clone()).map(drop)
        };
        read.unwrap_or_else(|error| panic!("{example}: {error}"));
    }
    assert!(commands >= 6 && replies >= 3 && events >= 15, "{commands} {replies} {events}");
}

#[test]
fn every_command_and_event_is_described() {
    let document = document();
    for (name, schema) in gjc_protocol::schemas() {
        if name == "command.json" || name == "event.json" {
            let mut words = Vec::new();
            type_words(schema.as_value(), &mut words);
            assert!(words.len() >= 6, "{name}: {words:?}");
            for word in words {
                assert!(document.contains(&format!("`{word}`")), "docs/rpc.md does not describe `{word}` of {name}");
            }
        }
    }
}

/// The constants that the `type` of some object in a schema can be.
fn type_words(schema: &Value, words: &mut Vec<String>) {
    match schema {
        Value::Object(fields) => {
            if let Some(word) = fields.get("type").and_then(|field| field.get("const")).and_then(Value::as_str) {
                words.push(word.into());
            }
            fields.values().for_each(|value| type_words(value, words));
        }
        Value::Array(items) => items.iter().for_each(|item| type_words(item, words)),
        _ => {}
    }
}
