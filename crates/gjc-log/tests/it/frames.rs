//! The frame scanner beside a full parser, over lines that try to mislead it.

use crate::wrapped::Wrapped;
use gjc_entry::{EntryId, Kind, Label};
use gjc_log::fs::{Fs, Open, OsFs};
use gjc_log::scan::{Scanned, frame};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use std::io::Write;
use std::sync::atomic::Ordering;

/// Text with everything that a scanner may trip over.
fn text() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "a",
        "한글",
        "\"",
        "\\",
        "\\\"",
        "}{\"type\":\"",
        "\"id\":",
        "{",
        "}",
        "[",
        "]",
        "\n",
        "\u{7}",
        "😀",
        ":",
        ",",
        "null",
    ]);
    prop::collection::vec(pieces, 0..6).prop_map(|pieces| pieces.concat())
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e9..1e9f64).prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key(), inner), 0..4).prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

/// Keys of nested objects are decoys of the keys that are looked for.
fn key() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec!["type", "id", "parentId", "gjcLabel", "customType", "x"]).prop_map(String::from),
        text()
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn a_frame_is_what_a_full_parser_says(
        id in "[0-9a-f]{8}|[a-z가-힣\"\\\\]{1,12}",
        parent in prop::option::of("[0-9a-f]{8}"),
        custom in prop::option::of(text()),
        labelled in any::<bool>(),
        others in prop::collection::vec((text(), value()), 0..4),
        order in any::<prop::sample::Index>(),
        spaced in any::<bool>(),
    ) {
        let label = Label { level: gjc_entry::Level::Confidential, trusted: false };
        let kind = if custom.is_some() { "custom" } else { "message" };
        let mut fields: Vec<(String, Value)> = vec![
            ("type".into(), json!(kind)),
            ("id".into(), json!(id)),
            ("parentId".into(), json!(parent)),
        ];
        if labelled {
            fields.push(("gjcLabel".into(), serde_json::from_str(&label.to_json()).unwrap()));
        }
        fields.extend(custom.clone().map(|custom| ("customType".into(), json!(custom))));
        // Other fields in front: then nothing may be decided early.
        let known: Vec<String> = fields.iter().map(|(name, _)| name.clone()).collect();
        let others: Vec<_> = others.into_iter().filter(|(name, _)| !known.contains(name)).collect();
        let at = if others.is_empty() { 0 } else { order.index(others.len() + 1) };
        let (before, after) = others.split_at(at);
        let all: Vec<&(String, Value)> = before.iter().chain(&fields).chain(after).collect();
        let gap = if spaced { " " } else { "" };
        let line = all
            .iter()
            .map(|(name, value)| format!("{gap}{}{gap}:{gap}{value}{gap}", json!(name)))
            .collect::<Vec<_>>()
            .join(",");
        let line = format!("{{{line}}}");
        let parsed: Map<String, Value> = serde_json::from_str(&line).unwrap();
        let found = frame(line.as_bytes()).unwrap();
        prop_assert_eq!(found.id, EntryId::new(parsed["id"].as_str().unwrap()));
        prop_assert_eq!(found.parent, parsed["parentId"].as_str().map(EntryId::new));
        prop_assert_eq!(found.kind, Kind::of(kind, custom.as_deref()));
        prop_assert_eq!(found.label, labelled.then_some(label));
    }

    #[test]
    fn no_bytes_make_it_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..200), wrap in any::<bool>()) {
        if wrap {
            bytes.insert(0, b'{');
            bytes.push(b'}');
        }
        let _ = frame(&bytes);
    }
}

/// What a file with this content is to a reader.
fn opened(content: &str) -> Result<gjc_log::Loaded<gjc_log::Reader<gjc_log::fs::OsFs>>, gjc_log::OpenError> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    std::fs::write(&path, content).unwrap();
    gjc_log::Reader::open(&gjc_log::fs::OsFs, &path)
}

#[test]
fn a_header_is_found_behind_blank_lines_and_a_mark_of_byte_order() {
    use gjc_entry::Source;
    let header = r#"{"type":"session","version":3,"id":"s","timestamp":"2026-06-05T07:18:54.123Z","cwd":"/작업"}"#;
    let entry = r#"{"type":"message","id":"0000000a","parentId":null,"message":{"role":"user","content":"말"}}"#;
    for (before, damage) in [("", 0), ("\n", 0), ("\n  \n\r\n", 0), ("\u{feff}", 1)] {
        let loaded =
            opened(&format!("{before}{header}\n{entry}\n")).unwrap_or_else(|error| panic!("{before:?}: {error}"));
        assert_eq!((loaded.damage.len(), loaded.value.skeleton().unwrap().len()), (damage, 1), "{before:?}");
    }
    let why = opened(&format!("{{\"type\":\"session\",\"id\":7}}\n{entry}\n")).unwrap_err().to_string();
    assert!(why.contains("the field \"id\" cannot be read"), "the first line is what is wrong: {why}");
}

#[test]
fn of_two_labels_nobody_knows_which_is_meant() {
    use gjc_entry::Label;
    let line = |labels: &str| {
        format!(
            r#"{{"type":"message","id":"0000000a","parentId":null{labels},"timestamp":"2026-06-05T07:18:54.123Z","message":{{}}}}"#
        )
    };
    let one = r#","gjcLabel":{"l":"RESTRICTED","t":false}"#;
    let two = r#","gjcLabel":{"l":"PUBLIC","t":true}"#;
    for labels in [format!("{one}{two}"), format!("{two}{one}"), format!("{two}{two}")] {
        let found = gjc_log::scan::frame(line(&labels).as_bytes()).unwrap();
        assert_eq!(found.label, Some(Label::CORRUPT), "{labels}");
    }
}

/// A log that lost its line feeds, say: each look at it as it grows reads what it has grown by, and no more.
#[test]
fn a_line_without_end_is_read_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("세션.jsonl");
    let header =
        "{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"timestamp\":\"2026-06-05T07:18:54.123Z\",\"cwd\":\"/\"}\n";
    std::fs::write(&path, header).unwrap();
    let grow = |to: u64| std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(to).unwrap();
    let fs = Wrapped::new(OsFs, false);
    let file = fs.open(&path, Open::Read).unwrap();
    let read = || fs.hooks.read.swap(0, Ordering::Relaxed);
    let mut scanned = Scanned::default();
    let first = 130 << 20;
    grow(first);
    scanned.scan(&file, first).unwrap();
    assert!(read() >= 128 << 20);
    for step in 1..4 {
        grow(first + step * 1000);
        scanned.scan(&file, first + step * 1000).unwrap();
        assert!(read() <= 1000);
    }
    assert_eq!((scanned.covered, scanned.damage.len()), (header.len() as u64, 0));
    // Once it has ended, it is damage, and what comes behind it counts.
    let line = "\n{\"type\":\"message\",\"id\":\"0000000a\",\"parentId\":null}\n";
    std::fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(line.as_bytes()).unwrap();
    scanned.scan(&file, std::fs::metadata(&path).unwrap().len()).unwrap();
    assert_eq!((scanned.skeleton.len(), scanned.damage.len()), (1, 1));
}
