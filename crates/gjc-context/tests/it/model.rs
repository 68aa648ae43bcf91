//! The family's rules of context, once more: over plain JSON, from the description of its readers, and nothing of ours.

use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The messages of the context at a leaf (`None`: before the first entry).
pub(crate) fn context(lines: &[Value], leaf: Option<&str>) -> Vec<Value> {
    let by_id: BTreeMap<&str, &Value> = lines.iter().map(|line| (line["id"].as_str().unwrap(), line)).collect();
    // Walk parentId to the root; a missing parent stops the walk.
    let mut path: Vec<&Value> = std::iter::successors(leaf.and_then(|id| by_id.get(id)), |line| {
        line["parentId"].as_str().and_then(|id| by_id.get(id))
    })
    .copied()
    .collect();
    path.reverse();
    // A line that cannot be read says nothing, but it has its place: children and kept ids find it.
    let is = |line: &Value, kind: &str| line["type"] == kind && line.get("damaged").is_none();
    let compaction = path.iter().rposition(|line| is(line, "compaction"));
    let mut before: Vec<&Value> = Vec::new();
    let mut after: &[&Value] = &path;
    let mut summary = None;
    if let Some(index) = compaction {
        before =
            path[..index].iter().skip_while(|line| line["id"] != path[index]["firstKeptEntryId"]).copied().collect();
        after = &path[index + 1..];
        summary = Some(path[index]);
        before.retain(|line| line["message"]["role"] != "system");
    }
    // omp: a reset starts over; the later of it and the compaction wins, and the kept tail stops at it too.
    if let Some(reset) = after.iter().rposition(|line| is(line, "reset_boundary")) {
        (summary, before, after) = (None, Vec::new(), &after[reset + 1..]);
    } else if let Some(reset) = before.iter().rposition(|line| is(line, "reset_boundary")) {
        before.drain(..=reset);
    }
    let range: Vec<&Value> = before.iter().chain(after).copied().collect();
    // pi: the latest edit of a target counts.
    let edit = |id: &Value| {
        let of_target = |line: &&&Value| is(line, "context_edit") && line["targetId"] == *id;
        range.iter().rev().find(of_target).map(|line| &line["replacement"])
    };
    let mut messages = Vec::new();
    for line in summary.into_iter().chain(range.iter().copied()) {
        let Some(mut message) = message(line, summary) else { continue };
        match edit(&line["id"]) {
            Some(Value::Null) => continue,
            Some(replacement) => replace(&mut message, &replacement["content"]),
            None => {}
        }
        // pi 1.6 keeps the system message of the time beside the summary.
        if line["type"] == "compaction" && line["systemMessage"].is_object() {
            messages.push(line["systemMessage"].clone());
        }
        messages.push(message);
    }
    messages
}

fn message(line: &Value, summary: Option<&Value>) -> Option<Value> {
    let millis = || line["timestamp"].as_str().unwrap().parse::<gjc_entry::Timestamp>().unwrap().as_millis();
    match line["type"].as_str()? {
        _ if line.get("damaged").is_some() => None,
        "message" => Some(line["message"].clone()),
        "custom_message" => {
            let mut message = json!({
                "role": "custom",
                "customType": line["customType"],
                "content": line.get("content").cloned().unwrap_or(json!([])),
                "display": line["display"],
                "timestamp": millis(),
            });
            if let Some(details) = line.get("details") {
                message["details"] = details.clone();
            }
            Some(message)
        }
        "branch_summary" if line["summary"] != "" => Some(json!({
            "role": "branchSummary", "summary": line["summary"], "fromId": line["fromId"], "timestamp": millis(),
        })),
        "compaction" if summary.is_some_and(|summary| summary["id"] == line["id"]) => Some(json!({
            "role": "compactionSummary", "summary": line["summary"], "tokensBefore": line["tokensBefore"],
            "timestamp": millis(),
        })),
        _ => None,
    }
}

fn replace(message: &mut Value, content: &Value) {
    let role = message["role"].as_str().unwrap_or_default().to_owned();
    match (role.as_str(), content) {
        ("assistant" | "toolResult", Value::String(text)) => {
            message["content"] = json!([{ "type": "text", "text": text }])
        }
        ("user" | "assistant" | "toolResult" | "custom", content) => message["content"] = content.clone(),
        _ => {}
    }
}

/// Whether our message says what theirs says: numbers by value, and only empty fields more than theirs.
pub(crate) fn same(ours: &Value, theirs: &Value) -> bool {
    match (ours, theirs) {
        (Value::Object(ours), Value::Object(theirs)) => {
            let filled = |value: &Value| match value {
                Value::Null => false,
                Value::Number(number) => number.as_f64() != Some(0.0),
                Value::String(text) => !text.is_empty(),
                Value::Object(fields) => fields.values().any(|value| value.as_f64() != Some(0.0) && !value.is_object()),
                _ => true,
            };
            theirs.iter().all(|(name, theirs)| match ours.get(name) {
                Some(ours) => same(ours, theirs),
                // An empty signature and an absent one are the same: neither can be sent.
                None => !filled(theirs),
            }) && ours.iter().all(|(name, ours)| theirs.contains_key(name) || !filled(ours))
        }
        (Value::Array(ours), Value::Array(theirs)) => {
            ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(ours, theirs)| same(ours, theirs))
        }
        (Value::Number(ours), Value::Number(theirs)) => ours.as_f64() == theirs.as_f64(),
        _ => ours == theirs,
    }
}

/// Our context as the family prints it.
pub(crate) fn written(selected: &[gjc_context::Selected]) -> Vec<Value> {
    let value = |item: &gjc_context::Selected| {
        let mut out = Vec::new();
        item.message.write(&mut out);
        serde_json::from_slice(&out).unwrap()
    };
    selected.iter().map(value).collect()
}

/// Fails, naming the first message that differs.
#[track_caller]
pub(crate) fn assert_same(what: &str, ours: &[Value], theirs: &[Value]) {
    let roles = |messages: &[Value]| messages.iter().map(|message| message["role"].clone()).collect::<Vec<_>>();
    for (index, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
        assert!(same(ours, theirs), "{what}, message {index}:\n  ours {ours}\n  theirs {theirs}");
    }
    assert_eq!(roles(ours), roles(theirs), "{what}");
}
