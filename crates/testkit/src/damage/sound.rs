//! Sound session files, written by hand: the log's own writer has no part in them.

use crate::SeededIds;
use serde_json::{Value, json};
use std::ops::Range;

/// A session file without damage.
#[derive(Debug, Clone)]
pub struct Sound {
    /// The file.
    pub bytes: Vec<u8>,
    /// Its lines; the first is the header.
    pub records: Vec<Record>,
}

/// A line.
#[derive(Debug, Clone)]
pub struct Record {
    /// Its bytes, without the line feed.
    pub span: Range<usize>,
    /// Its id.
    pub id: String,
    /// Its parent's id.
    pub parent: Option<String>,
    /// Whether it is a message.
    pub message: bool,
    /// The level of its label, 0 to 3.
    pub level: usize,
}

/// Levels of a label, lowest first.
pub(super) const LEVELS: [&str; 4] = ["PUBLIC", "INTERNAL", "CONFIDENTIAL", "RESTRICTED"];

impl Sound {
    /// From lines.
    #[must_use]
    pub fn new(lines: &[String]) -> Self {
        let (mut bytes, mut records) = (Vec::new(), Vec::new());
        for line in lines {
            let start = bytes.len();
            bytes.extend_from_slice(line.as_bytes());
            let parsed: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
            let level = LEVELS.iter().position(|level| parsed["gjcLabel"]["l"] == *level).unwrap_or(0);
            let text = |key: &str| parsed[key].as_str().map(str::to_owned);
            records.push(Record {
                span: start..bytes.len(),
                id: text("id").unwrap_or_else(|| panic!("a line without id: {line}")),
                parent: text("parentId"),
                message: parsed["type"] == "message",
                level,
            });
            bytes.push(b'\n');
        }
        Self { bytes, records }
    }

    /// A short session with all that a session has: two branches, a moved leaf, calls, labels, 한글, foreign ids, types that
    /// nobody knows.
    #[must_use]
    pub fn small() -> Self {
        Self::new(&[
            header("0197a0c2-0000-7000-8000-000000000001", "/작업"),
            entry("model_change", "0000000a", None, &json!({"provider": "p", "modelId": "m"})),
            user("0000000b", Some("0000000a"), "첫 물음: {\"type\":\"message\",\"id\":\"x\"}"),
            call("0000000c", "0000000b", "call_1"),
            labelled(&result("0000000d", "0000000c", "call_1", "읽은 것 \\ \" \u{1f600}"), "INTERNAL"),
            labelled(&said("0000000e", "0000000d", "첫 대답"), "INTERNAL"),
            user("0000000f", Some("0000000e"), "버린 가지"),
            entry(
                "custom",
                "00000010",
                Some("0000000e"),
                &json!({"customType": "gjc.leaf", "data": {"from": "0000000f", "to": "0000000e"}}),
            ),
            entry("brand_new", "외부-1", Some("00000010"), &json!({"한글": {"z": [1, 2.50]}})),
            labelled(&user("00000011", Some("외부-1"), "둘째 물음"), "INTERNAL"),
            labelled(&said("00000012", "00000011", "둘째 대답"), "INTERNAL"),
        ])
    }

    /// A session of some megabyte: a picture in the first prompt, lines around the size of a read, one of `longest` bytes.
    #[must_use]
    pub fn large(seed: u64, entries: usize, longest: usize) -> Self {
        let random = SeededIds::new(seed);
        let mut lines = vec![header("0197a0c2-0000-7000-8000-000000000002", "/작업")];
        // Behind the words, as a person pastes it.
        let picture = json!({"type": "image", "data": "QUJD".repeat(55_000), "mimeType": "image/png"});
        lines.push(user("00000100", None, "그림").replacen("}],", &format!("}},{picture}],"), 1));
        for index in 1..entries {
            let id = format!("{:08x}", 0x100 + index);
            // Mostly the entry before, now and then another branch.
            let back = if random.next().is_multiple_of(8) { random.next() as usize % index } else { index - 1 };
            let parent = format!("{:08x}", 0x100 + back);
            let size = if index == entries / 2 {
                longest
            } else {
                match random.next() % 8 {
                    0 => 262_144 - 200 + random.next() as usize % 400,
                    1 => random.next() as usize % 60_000,
                    _ => random.next() as usize % 3_000,
                }
            };
            let text = "가나다 abc \"\\ ".repeat(size / 18 + 1);
            lines.push(if index % 2 == 1 { said(&id, &parent, &text) } else { user(&id, Some(&parent), &text) });
        }
        Self::new(&lines)
    }

    /// How many bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Never.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The line that holds a byte, without its line feed.
    #[must_use]
    pub fn line_at(&self, at: usize) -> Range<usize> {
        let index = self.records.partition_point(|record| record.span.end < at);
        self.records[index.min(self.records.len() - 1)].span.clone()
    }

    /// A line with its line feed.
    #[must_use]
    pub fn whole_line(&self, line: usize) -> Range<usize> {
        let span = &self.records[line].span;
        span.start..span.end + 1
    }

    /// Another record with the id and the parent of a line.
    pub(super) fn other_content(&self, line: usize) -> Vec<u8> {
        let record = &self.records[line];
        (user(&record.id, record.parent.as_deref(), "다른 말") + "\n").into_bytes()
    }
}

fn header(id: &str, cwd: &str) -> String {
    format!(r#"{{"type":"session","version":3,"id":"{id}","timestamp":"2026-06-05T07:18:54.123Z","cwd":"{cwd}"}}"#)
}

/// A line: `fields` behind what every entry has.
fn entry(kind: &str, id: &str, parent: Option<&str>, fields: &Value) -> String {
    let parent = parent.map_or("null".into(), |parent| format!("\"{parent}\""));
    let fields = fields.to_string();
    format!(
        r#"{{"type":"{kind}","id":"{id}","parentId":{parent},"timestamp":"2026-06-05T07:19:00.000Z",{}"#,
        &fields[1..]
    )
}

fn user(id: &str, parent: Option<&str>, text: &str) -> String {
    let content = json!([{"type": "text", "text": text, "gjcOrigin": "typed"}]);
    entry("message", id, parent, &json!({"message": {"role": "user", "content": content, "timestamp": 1}}))
}

fn assistant(id: &str, parent: &str, content: &Value, stop: &str) -> String {
    let usage = json!({"input": 1, "output": 1, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 2});
    let message = json!({"role": "assistant", "content": content, "api": "anthropic-messages", "provider": "anthropic",
        "model": "x", "usage": usage, "stopReason": stop, "timestamp": 2});
    entry("message", id, Some(parent), &json!({"message": message}))
}

fn said(id: &str, parent: &str, text: &str) -> String {
    assistant(id, parent, &json!([{"type": "text", "text": text}]), "stop")
}

fn call(id: &str, parent: &str, call: &str) -> String {
    let content = json!([{"type": "toolCall", "id": call, "name": "read", "arguments": {"path": "파일"}}]);
    assistant(id, parent, &content, "toolUse")
}

fn result(id: &str, parent: &str, call: &str, text: &str) -> String {
    let message = json!({"role": "toolResult", "toolCallId": call, "toolName": "read",
        "content": [{"type": "text", "text": text}], "isError": false, "timestamp": 3});
    entry("message", id, Some(parent), &json!({"message": message}))
}

fn labelled(line: &str, level: &str) -> String {
    let label = format!(r#","gjcLabel":{{"l":"{level}","t":false}},"timestamp":"2026"#);
    line.replacen(r#","timestamp":"2026"#, &label, 1)
}
