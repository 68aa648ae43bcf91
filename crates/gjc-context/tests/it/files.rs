//! Random files of every version: our reader and the model agree on the context.

use crate::family::File;
use crate::model::{assert_same, context, written};
use gjc_context::select;
use gjc_entry::{EntryId, Leaf, Source};
use gjc_log::Reader;
use gjc_log::fs::{Fs, FsFile, Open, OsFs};
use proptest::prelude::*;
use serde_json::{Value, json};

/// One line of a random file. Numbers choose among what is there.
#[derive(Debug, Clone)]
pub(crate) enum Line {
    User,
    Answer {
        call: bool,
    },
    Result,
    Hook,
    System,
    CustomMessage {
        without: bool,
    },
    BranchSummary {
        empty: bool,
    },
    Compaction {
        kept: usize,
        system: bool,
    },
    Label(usize),
    Custom,
    Leaf(usize),
    State(u8),
    Reset,
    Edit {
        target: usize,
        how: u8,
    },
    Patch(usize),
    HeaderPatch,
    Usage,
    /// A line that stood before, once more: as it was, or with another content under its id.
    Twice {
        which: usize,
        same: bool,
    },
    /// A parent that is not in the file, or not yet.
    Orphan,
    /// The next entry goes on from here.
    Move(usize),
    /// No JSON, no entry.
    Noise(u8),
}

pub(crate) fn line() -> impl Strategy<Value = Line> {
    let number = any::<usize>;
    prop_oneof![
        5 => Just(Line::User),
        5 => any_bool().prop_map(|call| Line::Answer { call }),
        3 => Just(Line::Result),
        1 => Just(Line::Hook),
        1 => Just(Line::System),
        1 => any_bool().prop_map(|without| Line::CustomMessage { without }),
        1 => any_bool().prop_map(|empty| Line::BranchSummary { empty }),
        1 => (number(), any_bool()).prop_map(|(kept, system)| Line::Compaction { kept, system }),
        1 => number().prop_map(Line::Label),
        1 => Just(Line::Custom),
        1 => number().prop_map(Line::Leaf),
        1 => any::<u8>().prop_map(Line::State),
        1 => Just(Line::Reset),
        2 => (number(), any::<u8>()).prop_map(|(target, how)| Line::Edit { target, how }),
        1 => number().prop_map(Line::Patch),
        1 => Just(Line::HeaderPatch),
        1 => Just(Line::Usage),
        2 => (number(), any_bool()).prop_map(|(which, same)| Line::Twice { which, same }),
        1 => Just(Line::Orphan),
        2 => number().prop_map(Line::Move),
        1 => any::<u8>().prop_map(Line::Noise),
    ]
}

fn any_bool() -> impl Strategy<Value = bool> {
    any::<bool>()
}

/// The text of a file.
pub(crate) fn file(version: u64, title: bool, lines: &[Line]) -> String {
    let mut text = String::new();
    let mut put = |line: &str| {
        text.push_str(line);
        text.push('\n');
    };
    if title {
        put(r#"{"type":"title","v":1,"title":"이름","pad":"   "}"#);
    }
    let mut header =
        json!({"type":"session","version":version,"id":"s","timestamp":"2026-06-05T07:18:54.123Z","cwd":"/작업"});
    if version == 1 {
        header.as_object_mut().unwrap().remove("version");
    }
    put(&header.to_string());
    // What is named so far, and the lines as they were written.
    let (mut ids, mut written): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    let mut leaf: Option<String> = None;
    for (index, line) in lines.iter().enumerate() {
        // Ids of both forms.
        let id = if index % 5 == 4 { format!("이름-{index}") } else { format!("{:08x}", 0xb000_0000 + index as u32) };
        let pick = |number: usize| (!ids.is_empty()).then(|| ids[number % ids.len()].clone());
        let text = |what: &str| json!([{ "type": "text", "text": format!("{what} {index}") }]);
        let message = |message: Value| json!({ "type": "message", "message": message });
        let mut parent = leaf.clone();
        let mut entry = match line {
            Line::User => message(json!({"role":"user","content":text("말"),"timestamp":1})),
            Line::Answer { call } => {
                let mut content = text("답");
                if *call {
                    let call = json!({"type":"toolCall","id":"c","name":"read","arguments":{"path":"가"}});
                    content.as_array_mut().unwrap().push(call);
                }
                message(json!({"role":"assistant","content":content,"api":"a","provider":"p","model":"m",
                    "usage":{"input":1},"stopReason":"stop","timestamp":1}))
            }
            Line::Result => message(json!({"role":"toolResult","toolCallId":"c","toolName":"read",
                "content":text("결과"),"isError":false,"timestamp":1})),
            Line::Hook => {
                message(json!({"role":"hookMessage","customType":"h","content":"훅","display":true,"timestamp":1}))
            }
            Line::System => message(json!({"role":"system","content":"당신은","timestamp":1})),
            Line::CustomMessage { without: true } => json!({"type":"custom_message","customType":"h","display":false}),
            Line::CustomMessage { .. } => {
                json!({"type":"custom_message","customType":"handoff","content":"넘김","display":true,"details":{"a":[1]}})
            }
            Line::BranchSummary { empty } => {
                json!({"type":"branch_summary","fromId":"root","summary":if *empty { "" } else { "가지" }})
            }
            Line::Compaction { kept, system } => {
                let mut entry = json!({"type":"compaction","summary":format!("요약 {index}"),"tokensBefore":9});
                if version == 1 {
                    entry["firstKeptEntryIndex"] = json!(kept % (ids.len() + 2));
                } else {
                    let kept = pick(*kept).filter(|_| kept % 8 != 0);
                    entry["firstKeptEntryId"] = json!(kept.unwrap_or_else(|| "none".into()));
                }
                if *system {
                    entry["systemMessage"] = json!({"role":"system","content":"그때","timestamp":2});
                }
                entry
            }
            Line::Label(target) => json!({"type":"label","targetId":pick(*target).unwrap_or_default(),"label":"자리"}),
            Line::Custom => json!({"type":"custom","customType":"x","data":{"type":"message","id":"b0000000"}}),
            Line::Leaf(to) => {
                parent = pick(*to);
                json!({"type":"custom","customType":"gjc.leaf","data":{"from":leaf,"to":parent}})
            }
            Line::State(kind) => {
                let kinds = [
                    "model_change",
                    "thinking_level_change",
                    "service_tier_change",
                    "mode_change",
                    "session_info",
                    "ttsr_injection",
                    "session_init",
                    "mcp_tool_selection",
                    "brand_new",
                ];
                json!({ "type": kinds[usize::from(*kind) % kinds.len()] })
            }
            Line::Reset => json!({"type":"reset_boundary"}),
            Line::Edit { target, how } => {
                let replacement = match how % 3 {
                    0 => Value::Null,
                    1 => json!({"content":format!("고침 {index}")}),
                    _ => json!({"content":text("고침")}),
                };
                json!({"type":"context_edit","targetId":pick(*target).unwrap_or_default(),"replacement":replacement})
            }
            Line::Usage => json!({"type":"usage","kind":"title","provider":"p","model":"m","usage":{"input":1}}),
            Line::Orphan => {
                parent = Some(if index % 2 == 0 {
                    "gone".into()
                } else {
                    format!("{:08x}", 0xb000_0000 + index as u32 + 1)
                });
                message(json!({"role":"user","content":text("고아"),"timestamp":1}))
            }
            Line::Patch(target) => {
                let new = json!({"role":"user","content":text("새"),"timestamp":3});
                put(&json!({"type":"entry_patch","entryId":pick(*target).unwrap_or_default(),"patch":{"message":new}})
                    .to_string());
                continue;
            }
            Line::HeaderPatch => {
                put(r#"{"type":"header_patch","patch":{"title":"바뀜","titleSource":"user"}}"#);
                continue;
            }
            Line::Twice { which, same } => {
                if let Some(line) = (!written.is_empty()).then(|| &written[which % written.len()]) {
                    if *same {
                        put(line);
                    } else {
                        let mut other: Value = serde_json::from_str(line).unwrap();
                        other["message"] = json!({"role":"user","content":format!("딴말 {index}"),"timestamp":1});
                        other["type"] = json!("message");
                        put(&other.to_string());
                    }
                }
                continue;
            }
            Line::Move(to) => {
                leaf = if to % 8 == 0 { None } else { pick(*to) };
                continue;
            }
            Line::Noise(kind) => {
                put(["", "{", "[1]", "{\"type\":\"message\",\"id\":\"b0000000\",\"par", "null", "   "]
                    [usize::from(*kind) % 6]);
                continue;
            }
        };
        entry["timestamp"] = json!("2026-06-05T07:18:54.123Z");
        if version > 1 {
            entry["id"] = json!(id);
            entry["parentId"] = json!(parent);
        }
        let line = entry.to_string();
        put(&line);
        ids.push(if version == 1 { format!("{:08x}", ids.len()) } else { id.clone() });
        // In version 1 a line has no id, so the same line twice is two entries.
        if version > 1 {
            written.push(line);
        }
        leaf = Some(id);
    }
    text
}

fn open(text: &str) -> (tempfile::TempDir, Reader<OsFs>) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    OsFs.open(&path, Open::CreateNew).unwrap().append(text.as_bytes()).unwrap();
    let reader = Reader::open(&OsFs, &path).unwrap().value;
    (dir, reader)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]
    #[test]
    fn a_random_file_gives_the_context_of_the_model(
        version in 1u64..=5, title in any::<bool>(), lines in proptest::collection::vec(line(), 0..60)
    ) {
        let text = file(version, title, &lines);
        let theirs = File::read(&text);
        let (_dir, reader) = open(&text);
        let tree = reader.skeleton().unwrap();
        assert_same("the leaf", &written(&select(&reader, Leaf::Current).unwrap().0), &theirs.context());
        let named: Vec<String> = tree.iter().filter(|(_, node)| !node.is_nameless()).map(|(at, _)| tree.id(at).to_string()).collect();
        let expected: Vec<&str> = theirs.entries.iter().map(|entry| entry["id"].as_str().unwrap()).collect();
        prop_assert_eq!(&named, &expected);
        // And at every tenth entry.
        for id in expected.iter().step_by(10) {
            let leaf = Leaf::At(tree.find(&EntryId::new(id)).unwrap());
            assert_same(id, &written(&select(&reader, leaf).unwrap().0), &context(&theirs.entries, Some(id)));
        }
        prop_assert!(reader.verify_bodies().is_empty());
    }
}
