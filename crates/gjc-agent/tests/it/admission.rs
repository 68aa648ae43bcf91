//! What is stored of what comes in: long texts, pictures, halves of characters. Memory, view and disk hold the same.

use crate::world::*;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gjc_agent::{Fact, Session};
use gjc_context::{Folds, Said, view};
use gjc_entry::message::ImageData;
use gjc_entry::{Block, Body, Content, Entry, Label, Leaf, Level, Message, Source};
use gjc_flow::{Labelled, Runtime};
use gjc_llm::StreamEvent;
use gjc_log::fs::Fs;
use gjc_log::fs::sim::{Fault, SimFs};
use gjc_log::{BlobStore, Reader, Writer};
use gjc_protocol::{EventBody, TurnEnd};
use gjc_tools::{Output, Run};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use testkit::log::Bench;
use testkit::session::{answer, assistant, result, user};

const LONGEST: usize = 500_000;

fn session<F: Fs>(bench: &Bench<F>, writer: Writer<F>) -> Session<F> {
    Session::new(writer, Runtime::new(), bench.clock.clone(), Level::Restricted).unwrap()
}

fn admit<F: Fs>(session: &mut Session<F>, body: Body) -> Arc<Entry> {
    let id = session.admit(Labelled::new(Fact::new(body), Label::PUBLIC_TRUSTED)).unwrap().ids[0].clone();
    session.entry(&id).unwrap()
}

fn units(text: &str) -> usize {
    text.encode_utf16().count()
}

fn json_of(entry: &Entry) -> Value {
    let mut line = Vec::new();
    entry.write(&mut line);
    serde_json::from_slice(&line).unwrap()
}

/// The lines of the session file as JSON, without the header.
fn lines(bench: &Bench<SimFs>) -> Vec<Value> {
    let bytes = bench.bytes();
    bytes.split(|b| *b == b'\n').skip(1).filter(|l| !l.is_empty()).map(|l| serde_json::from_slice(l).unwrap()).collect()
}

fn folder(bench: &Bench<SimFs>) -> PathBuf {
    bench.path().with_extension("")
}

#[tokio::test]
async fn a_long_text_is_cut_the_whole_is_beside_the_session_and_memory_view_and_disk_hold_the_same() {
    let bench = sim();
    let mut session = session(&bench, bench.create());
    // One unit too many, of characters that are 1, 3 and 4 bytes, so that no counting of bytes would do.
    for whole in ["a".repeat(LONGEST + 1), "한".repeat(LONGEST + 1), format!("a{}", "😀".repeat(LONGEST / 2))] {
        let entry = admit(&mut session, result("c", "read", &whole));
        let json = json_of(&entry);
        let cut = json["message"]["content"][0]["text"].as_str().unwrap();
        assert!(units(cut) <= LONGEST && units(cut) > LONGEST - 3, "{}", units(cut));
        let (kept, notice) = cut.split_once("\n\n[cut here: ").unwrap();
        assert!(whole.starts_with(kept));
        let named = &json["gjcWhole"][0];
        assert_eq!((&named["at"], &named["units"]), (&json!("/message/content/0/text"), &json!(units(&whole))));
        let file = folder(&bench).join(named["artifact"].as_str().unwrap());
        assert!(notice.contains(&file.display().to_string()), "{notice}");
        assert!(bench.fs.stat(&file).is_err(), "nothing is on disk before the first answer");
    }
    admit(&mut session, answer("네"));
    sync_session(&mut session);
    let disk = lines(&bench);
    let memory: Vec<Value> = ids(&session).iter().map(|id| json_of(&session.entry(id).unwrap())).collect();
    assert_eq!(disk, memory);
    for (line, whole) in disk.iter().zip(["a", "한", "😀"]) {
        let named = line["gjcWhole"][0]["artifact"].as_str().unwrap();
        let text = String::from_utf8(testkit::log::read(&*bench.fs, &folder(&bench).join(named))).unwrap();
        assert!(text.ends_with(whole) && json!(units(&text)) == line["gjcWhole"][0]["units"]);
    }
    let reader = Reader::open(&*bench.fs, &bench.path()).unwrap().value;
    let (mut a, mut b) = (Folds::default(), Folds::default());
    let (seen, read) =
        (view(session.log(), Leaf::Current, &mut a).unwrap().0, view(&reader, Leaf::Current, &mut b).unwrap().0);
    assert_eq!(format!("{seen:?}"), format!("{read:?}"));
}

fn ids<F: Fs>(session: &Session<F>) -> Vec<gjc_entry::EntryId> {
    let skeleton = session.log().skeleton().unwrap();
    skeleton.iter().map(|(ordinal, _)| skeleton.id(ordinal)).collect()
}

fn sync_session<F: Fs>(session: &mut Session<F>) {
    let lsn = session.want_durable();
    let mut storage = session.log().storage();
    let wait = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(gjc_log::durable(&mut storage, lsn))
    });
    wait.join().unwrap().unwrap();
}

#[test]
fn what_is_exactly_as_long_as_may_be_stays_byte_for_byte() {
    let bench = sim();
    let mut session = session(&bench, bench.create());
    for text in ["a".repeat(LONGEST), "한".repeat(LONGEST), "😀".repeat(LONGEST / 2), "\n".repeat(LONGEST)] {
        let arguments = format!("{{ \"path\" : {} , \"n\":1.50}}", serde_json::to_string(&text).unwrap());
        let call = testkit::session::call("c", "write", &arguments);
        let entry = admit(
            &mut session,
            Body::Message(Message::Assistant(assistant(vec![call], gjc_entry::StopReason::ToolUse))),
        );
        assert!(entry.extra.is_empty());
        let Body::Message(Message::Assistant(said)) = &entry.body else { unreachable!() };
        assert_eq!(said.calls().next().unwrap().2.get(), arguments);
    }
}

#[test]
fn every_string_is_capped_wherever_it_stands_and_a_signature_is_dropped() {
    let bench = sim();
    let mut session = session(&bench, bench.create());
    let long = "긴 글 ".repeat(LONGEST / 4 + 1);
    let raw = |value: Value| serde_json::value::to_raw_value(&value).unwrap();
    let mut said = assistant(
        vec![
            Block::Thinking { thinking: "짧다".into(), signature: Some(long.clone()), extra: Vec::new() },
            Block::RedactedThinking { data: long.clone(), extra: Vec::new() },
            Block::Text {
                text: "짧다".into(), origin: None, extra: vec![("textSignature".into(), raw(json!(long)))]
            },
            Block::ToolCall {
                id: "c".into(),
                name: "write".into(),
                arguments: raw(json!({"path": "a", "deep": [{"b/c": long}]})),
                extra: vec![("thoughtSignature".into(), raw(json!(long)))],
            },
            Block::Unknown(raw(json!({"type": "audio", "data": long}))),
            Block::Thinking { thinking: long.clone(), signature: Some("서명".into()), extra: Vec::new() },
            Block::Text { text: "끝".into(), origin: None, extra: Vec::new() },
        ],
        gjc_entry::StopReason::ToolUse,
    );
    said.error = Some(long.clone());
    said.extra.push(("later".into(), raw(json!([long]))));
    let json = json_of(&admit(&mut session, Body::Message(Message::Assistant(said))));
    let at = |pointer: &str| json.pointer(pointer).unwrap().as_str().unwrap();
    for dropped in [
        "/message/content/0/thinkingSignature",
        "/message/content/1/data",
        "/message/content/2/textSignature",
        "/message/content/3/thoughtSignature",
    ] {
        assert_eq!(at(dropped), "", "{dropped}");
    }
    let cut = [
        "/message/content/5/thinking",
        "/message/content/3/arguments/deep/0/b~1c",
        "/message/content/4/data",
        "/message/errorMessage",
        "/message/later/0",
    ];
    for pointer in cut {
        assert!(units(at(pointer)) <= LONGEST && at(pointer).contains("[cut here: "), "{pointer}");
    }
    assert_eq!(json["message"]["content"][5]["thinkingSignature"], Value::Null, "it signs something else");
    let named = json["gjcWhole"].as_array().unwrap();
    assert_eq!(named.len(), 9);
    assert!(named.iter().all(|item| json.pointer(item["at"].as_str().unwrap()).is_some()));
    // The same text is one file.
    let files: std::collections::BTreeSet<_> = named.iter().filter_map(|item| item["artifact"].as_str()).collect();
    assert_eq!(files.len(), 1);
    // A provider would refuse a signature that is empty; without one the thinking is only not sent back.
    let (seen, _) = view(session.log(), Leaf::Current, &mut Folds::default()).unwrap();
    let blocks = seen.messages.iter().flat_map(|message| match &message.said {
        Said::Assistant { blocks, .. } => blocks.as_slice(),
        _ => &[],
    });
    let signatures: Vec<bool> = blocks
        .filter_map(|block| match block {
            Block::Thinking { signature, .. } => Some(signature.is_some()),
            _ => None,
        })
        .collect();
    assert_eq!(signatures, [false, false]);
    for body in [
        result("c", "t", "짧다"),
        Body::CustomMessage {
            custom_type: "gjc.note.x".into(),
            content: Content::Text(long.clone()),
            display: true,
            details: Some(raw(json!({"a": {"b": long}}))),
        },
        Body::Custom { custom_type: "other".into(), data: Some(raw(json!({"x": long}))) },
        Body::Compaction { summary: long.clone(), first_kept: gjc_entry::EntryId::Short(1), tokens_before: 1 },
        Body::SessionInfo { name: Some(long.clone()) },
    ] {
        let short = matches!(&body, Body::Message(_));
        let entry = admit(&mut session, body);
        assert_eq!(entry.extra.is_empty(), short);
        strings(&json_of(&entry), &mut |text| assert!(units(text) <= LONGEST));
    }
}

fn strings(value: &Value, see: &mut dyn FnMut(&str)) {
    match value {
        Value::String(text) => see(text),
        Value::Array(items) => items.iter().for_each(|item| strings(item, see)),
        Value::Object(fields) => fields.values().for_each(|item| strings(item, see)),
        _ => {}
    }
}

#[tokio::test]
async fn a_tool_gets_the_whole_of_arguments_that_are_stored_cut_and_an_answer_is_shown_as_it_is_stored() {
    let bench = sim();
    let mut world = Setup::new(&bench).usual_tools().start(bench.create(), false);
    let long = "가나다 ".repeat(200_000);
    let ask = world.say("써").await;
    ask.call(&[("c", "s", &json!({ "text": long, "lone": "x" }).to_string())]);
    let begun = world.begun().await;
    let input = world.face.events.iter().find_map(|event| match &event.body {
        EventBody::ToolStarted { input, .. } => Some(input.clone()),
        _ => None,
    });
    let input = match input {
        Some(input) => input,
        None => match world.face.until(|body| matches!(body, EventBody::ToolStarted { .. })).await {
            EventBody::ToolStarted { input, .. } => input,
            _ => unreachable!(),
        },
    };
    assert_eq!(input["text"], long);
    begun.done("썼다");
    let ask = world.ask().await;
    assert!(ask.text().contains("[cut here: the whole text"), "the next request is made of what is stored");
    ask.say("네");
    assert_eq!(world.turn_end().await, TurnEnd::Done);
    assert!(world.face.names().contains(&"notice".into()), "a person is told");
    let events = world.close().await;
    let told = events.iter().find_map(|event| match &event.body {
        EventBody::Message { message, .. } if message["role"] == "assistant" => Some(message.clone()),
        _ => None,
    });
    let line = lines(&bench).into_iter().find(|line| line["message"]["role"] == "assistant").unwrap();
    assert_eq!(told.unwrap(), line["message"]);
}

#[test]
fn a_session_in_memory_cuts_too_and_says_that_the_rest_was_not_kept() {
    let bench = sim();
    let mut session = session(&bench, bench.memory());
    let json = json_of(&admit(&mut session, user(&"글".repeat(LONGEST + 1))));
    let text = json["message"]["content"][0]["text"].as_str().unwrap();
    assert!(units(text) <= LONGEST && text.ends_with("the rest was not kept (--no-session)]"));
    assert_eq!(json["gjcWhole"], json!([{"at": "/message/content/0/text", "units": LONGEST + 1}]));
}

/// Every state that a power cut can leave: a line that is there and was promised has its whole text beside it.
#[test]
fn no_power_cut_loses_a_whole_text_whose_line_was_promised() {
    let bench = sim();
    let mut session = session(&bench, bench.create());
    admit(&mut session, answer("네"));
    sync_session(&mut session);
    bench.fs.mark(1);
    let whole = "a".repeat(LONGEST + 1);
    let json = json_of(&admit(&mut session, result("c", "t", &whole)));
    let file = folder(&bench).join(json["gjcWhole"][0]["artifact"].as_str().unwrap());
    sync_session(&mut session);
    bench.fs.mark(2);
    let mut promised = 0;
    for cut in bench.fs.power_cuts().filter(|cut| cut.marks.contains(&2)) {
        promised += 1;
        assert_eq!(cut.fs.read(&file).unwrap(), whole.as_bytes(), "{cut}");
        let reader = Reader::open(&cut.fs, &bench.path()).unwrap();
        assert_eq!(reader.value.skeleton().unwrap().len(), 2, "{cut}");
    }
    assert!(promised > 0);
}

#[test]
fn a_whole_text_that_could_not_be_written_is_written_with_its_line_later_and_once() {
    let bench = sim();
    let mut session = session(&bench, bench.create());
    admit(&mut session, answer("네"));
    sync_session(&mut session);
    bench.fs.fault(Fault::Enospc { after_bytes: 100_000 });
    let whole = "a".repeat(LONGEST * 2);
    admit(&mut session, result("c", "t", &whole));
    assert_eq!(lines(&bench).len(), 1, "the line is not there without its text");
    bench.fs.clear_faults();
    sync_session(&mut session);
    assert_eq!(lines(&bench).len(), 2);
    let files = bench.fs.list(&folder(&bench)).unwrap();
    assert_eq!(files.len(), 1, "{files:?}");
    assert_eq!(testkit::log::read(&*bench.fs, &files[0]), whole.as_bytes());
    // The same text again is the same file.
    admit(&mut session, result("d", "t", &whole));
    sync_session(&mut session);
    assert_eq!((lines(&bench).len(), bench.fs.list(&folder(&bench)).unwrap().len()), (3, 1));
}

#[test]
fn a_refused_entry_leaves_no_whole_text_and_no_picture_behind_and_takes_none_away() {
    let bench = sim();
    let mut writer = bench.create();
    writer.refuse_longer_than(520_000);
    let mut session = session(&bench, writer);
    let whole = "x".repeat(LONGEST * 2);
    let refused = |session: &mut Session<SimFs>, body: Body, parent: gjc_entry::ParentOf| {
        let fact = Fact { parent, ..Fact::new(body) };
        session.admit(Labelled::new(fact, Label::PUBLIC_TRUSTED)).unwrap_err();
    };
    let mut seen = user(&whole);
    let Body::Message(Message::User(message)) = &mut seen else { unreachable!() };
    let Content::Blocks(blocks) = &mut message.content else { unreachable!() };
    blocks.push(picture(&"A".repeat(2048)));
    refused(&mut session, seen, gjc_entry::ParentOf::Id(gjc_entry::EntryId::new("없는 것")));
    // Too long as a line: two such texts.
    let both = |a: &str, b: &str| {
        let block = |text: &str| Block::text(text, gjc_entry::Origin::Typed);
        Body::Message(Message::User(gjc_entry::UserMessage {
            content: Content::Blocks(vec![block(a), block(b)]),
            at: 1,
            extra: Vec::new(),
        }))
    };
    refused(&mut session, both(&whole, &"y".repeat(LONGEST * 2)), gjc_entry::ParentOf::Leaf);
    admit(&mut session, answer("그 다음"));
    sync_session(&mut session);
    assert!(bench.fs.stat(&folder(&bench)).is_err() && bench.fs.stat(&bench.root.join("blobs")).is_err());
    // While it cannot be written, one entry waits with its text; another with the same text is refused.
    bench.fs.fault(Fault::Enospc { after_bytes: 0 });
    admit(&mut session, user(&whole));
    refused(&mut session, both(&whole, &"z".repeat(LONGEST * 2)), gjc_entry::ParentOf::Leaf);
    bench.fs.clear_faults();
    sync_session(&mut session);
    let files = bench.fs.list(&folder(&bench)).unwrap();
    assert_eq!((files.len(), lines(&bench).len()), (1, 2), "{files:?}");
}

#[tokio::test]
async fn a_picture_from_the_store_is_sent_as_it_came() {
    let bench = sim();
    let mut world = Setup::new(&bench).usual_tools().start(bench.create(), false);
    let base64 = STANDARD.encode((0..2000u32).map(|n| (n * 7 % 251) as u8).collect::<Vec<_>>());
    world.say("봐").await.call(&[("c", "s", "{}")]);
    world.begun().await.output(Output::from(Label::PUBLIC_TRUSTED).block(picture(&base64)).done());
    let ask = world.ask().await;
    assert!(ask.text().contains(&base64));
    ask.say("네");
    world.turn_end().await;
    world.close().await;
    assert!(!contains(&bench.bytes(), &base64.as_bytes()[..100]));
}

#[cfg(unix)]
#[test]
fn a_whole_text_is_the_owner_s_alone() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let bench = Bench::new(Arc::new(gjc_log::fs::OsFs), dir.path());
    let mut session = session(&bench, bench.create());
    admit(&mut session, user(&"글".repeat(LONGEST + 1)));
    admit(&mut session, answer("네"));
    sync_session(&mut session);
    let folder = bench.path().with_extension("");
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    let files = bench.fs.list(&folder).unwrap();
    assert_eq!((files.len(), mode(&files[0])), (1, 0o600), "{files:?}");
}

fn picture(base64: &str) -> Block {
    Block::Image { data: ImageData::Inline(base64.into()), mime: "image/png".into(), origin: None, extra: Vec::new() }
}

#[test]
fn a_picture_whose_base64_is_broken_into_lines_is_a_picture_and_what_is_no_base64_is_said_to_be_none() {
    let bench = sim();
    let mut session = session(&bench, bench.create());
    let bytes: Vec<u8> = (0..400_000u32).map(|n| (n * 7 % 251) as u8).collect();
    let base64 = STANDARD.encode(&bytes);
    let lines: Vec<&str> = base64.as_bytes().chunks(76).map(|line| std::str::from_utf8(line).unwrap()).collect();
    let of = |base64: &str| {
        Body::Message(Message::User(gjc_entry::UserMessage {
            content: Content::Blocks(vec![Block::text("봐", gjc_entry::Origin::Typed), picture(base64)]),
            at: 1,
            extra: Vec::new(),
        }))
    };
    let whole = STANDARD.encode(&bytes[..3000]);
    for (broken, bytes) in
        [(lines.join("\n"), &bytes[..]), (lines.join(" \r\n\t"), &bytes), (whole + "\n", &bytes[..3000])]
    {
        let entry = admit(&mut session, of(&broken));
        let Body::Message(Message::User(user)) = &entry.body else { unreachable!() };
        let Content::Blocks(blocks) = &user.content else { unreachable!() };
        let Block::Image { data: ImageData::Blob(blob), .. } = &blocks[1] else { panic!("{:?}", json_of(&entry)) };
        assert_eq!(&*session.blobs().get(blob).unwrap(), bytes);
        assert!(entry.extra.is_empty());
    }
    let none = format!("{}한", "A".repeat(LONGEST));
    let json = json_of(&admit(&mut session, of(&none)));
    let block = &json["message"]["content"][1];
    let named = &json["gjcWhole"][0];
    assert_eq!((&block["type"], &named["at"]), (&json!("text"), &json!("/message/content/1/text")));
    let text = block["text"].as_str().unwrap();
    let file = folder(&bench).join(named["artifact"].as_str().unwrap());
    assert!(text.starts_with("[no image: ") && text.contains(&file.display().to_string()), "{text}");
    assert!(text.len() < 1000 && json["gjcWhole"].as_array().unwrap().len() == 1);
    admit(&mut session, answer("네"));
    sync_session(&mut session);
    assert_eq!(testkit::log::read(&*bench.fs, &file), none.as_bytes());
    // Nothing is kept beside a session in memory.
    let mut session = self::session(&bench, bench.memory());
    let json = json_of(&admit(&mut session, of(&none)));
    assert!(json["message"]["content"][1]["text"].as_str().unwrap().ends_with("not kept (--no-session)]"));
    // A short one is as it came.
    let json = json_of(&admit(&mut session, of("한글")));
    assert_eq!(json["message"]["content"][1]["data"], "한글");
}

#[test]
fn the_name_of_a_whole_text_is_half_of_its_hash() {
    let bench = sim();
    let mut session = session(&bench, bench.create());
    let json = json_of(&admit(&mut session, result("c", "t", &"a".repeat(LONGEST + 1))));
    let name = json["gjcWhole"][0]["artifact"].as_str().unwrap();
    let hex = name.strip_prefix("whole-").unwrap().strip_suffix(".txt").unwrap();
    assert!(hex.len() == 32 && hex.bytes().all(|byte| byte.is_ascii_hexdigit()), "{name}");
}

#[tokio::test]
async fn what_is_nested_deeper_than_a_reader_bears_is_named_in_events_and_the_text_beside_it_is_shown() {
    let bench = sim();
    let mut world = Setup::new(&bench).usual_tools().start(bench.create(), false);
    for deep in [127, 100_000] {
        let arguments = format!("{{\"text\":\"글\",\"deep\":{}{}}}", "[".repeat(deep), "]".repeat(deep));
        world.say("해").await.call(&[("c", "s", &arguments)]);
        let begun = world.begun().await;
        begun.done("했다");
        let ask = world.ask().await;
        assert!(ask.text().contains(&"[".repeat(deep)), "the model gets back what it said");
        ask.say("네");
        assert_eq!(world.turn_end().await, TurnEnd::Done);
        let told = |block: &Value| {
            assert_eq!(block["arguments"]["text"], "글");
            assert!(block["arguments"]["deep"].to_string().contains("nested too deep"));
        };
        told(&world.snapshot().await.messages.iter().rev().nth(2).unwrap()["content"][0]);
        let (mut messages, mut inputs) = (0, 0);
        for event in world.face.events.drain(..) {
            match event.body {
                EventBody::Message { message, .. } if message["stopReason"] == "toolUse" => {
                    told(&message["content"][0]);
                    messages += 1;
                }
                EventBody::ToolStarted { input, .. } => {
                    told(&json!({ "arguments": input }));
                    inputs += 1;
                }
                _ => {}
            }
        }
        assert_eq!((messages, inputs), (1, 1));
    }
    world.close().await;
}

/// K16: a picture that is seen many times is once in the store and never in the file.
#[test]
fn a_picture_is_one_blob_and_no_copy_in_the_file_whoever_brought_it() {
    let bench = sim();
    let mut session = session(&bench, bench.create());
    let bytes: Vec<u8> = (0..2000u32).map(|n| (n * 7 % 251) as u8).collect();
    let base64 = STANDARD.encode(&bytes);
    let content = || Content::Blocks(vec![picture(&base64)]);
    let with = |mut body: Body| {
        match &mut body {
            Body::Message(Message::User(user)) => user.content = content(),
            Body::Message(Message::ToolResult(result)) => result.content = content(),
            Body::Message(Message::Assistant(said)) => said.content = vec![picture(base64.trim_end_matches('='))],
            _ => unreachable!(),
        }
        body
    };
    let custom =
        Body::CustomMessage { custom_type: "gjc.note.x".into(), content: content(), display: true, details: None };
    for body in [with(user("")), with(result("c", "read", "")), custom, with(answer(""))] {
        admit(&mut session, body);
    }
    sync_session(&mut session);
    let file = bench.bytes();
    assert!(!contains(&file, &base64.as_bytes()[..100]));
    let blobs = bench.fs.list(&bench.root.join("blobs")).unwrap();
    assert_eq!(blobs.len(), 1, "{blobs:?}");
    assert_eq!(testkit::log::read(&*bench.fs, &blobs[0]), bytes, "the decoded bytes");
    let name = BlobStore::<SimFs>::name(&bytes).to_string();
    for line in lines(&bench) {
        let block = line.pointer("/message/content/0").or(line.pointer("/content/0")).unwrap();
        assert_eq!(block["data"], name);
    }
}

#[test]
fn a_small_picture_and_one_that_is_no_base64_stay_in_the_line() {
    let bench = sim();
    let mut session = session(&bench, bench.create());
    for (data, stays) in [
        ("A".repeat(1020), true),
        ("A".repeat(1024), false),
        ("한".repeat(1024), true),
        (format!("{}!", "A".repeat(1024)), true),
        (format!("data:image/png;base64,{}", "A".repeat(1024)), true),
    ] {
        let mut body = user("");
        let Body::Message(Message::User(user)) = &mut body else { unreachable!() };
        user.content = Content::Blocks(vec![picture(&data)]);
        let json = json_of(&admit(&mut session, body));
        assert_eq!(json["message"]["content"][0]["data"] == data, stays, "{}", &data[..3]);
    }
}

#[tokio::test]
async fn halves_of_characters_in_arguments_are_mended_reported_and_the_call_runs() {
    let bench = sim();
    let mut world = Setup::new(&bench).usual_tools().start(bench.create(), false);
    let ask = world.say("써").await;
    ask.call(&[("c", "s", r#"{"a":"x\ud83dy", "b":"\ud83d\ude00", "c":"\\ud83d"}"#)]);
    let begun = world.begun().await;
    let started = world.face.until(|body| matches!(body, EventBody::ToolStarted { .. })).await;
    let EventBody::ToolStarted { input, .. } = started else { unreachable!() };
    assert_eq!(input, json!({"a": "x\u{fffd}y", "b": "😀", "c": "\\ud83d"}));
    begun.done("썼다");
    world.ask().await.say("네");
    world.turn_end().await;
    let notices: Vec<String> = world
        .face
        .events
        .iter()
        .filter_map(|event| match &event.body {
            EventBody::Notice { text } => Some(text.clone()),
            _ => None,
        })
        .collect();
    assert!(matches!(&notices[..], [one] if one.contains("lone surrogate")), "{notices:?}");
    world.close().await;
    let line = lines(&bench).into_iter().find(|line| line["message"]["role"] == "assistant").unwrap();
    assert_eq!(line["gjcMended"], "lone surrogates");
    assert_eq!(line["message"]["content"][0]["arguments"], input);
    let raw = String::from_utf8(bench.bytes()).unwrap();
    assert!(raw.contains(r#"{"a":"x\ufffdy", "b":"\ud83d\ude00", "c":"\\ud83d"}"#), "the rest keeps its bytes");
}

#[tokio::test]
async fn every_block_says_who_brought_it() {
    let bench = sim();
    let mut world = Setup::new(&bench).usual_tools().start(bench.create(), false);
    let ask = world.say("봐").await;
    ask.call(&[("c", "s", "{}"), ("d", "없음", "{}")]);
    let unnamed = Block::Text { text: "이름 없이".into(), origin: None, extra: Vec::new() };
    world.begun().await.output(Output::from(Label::PUBLIC_TRUSTED).block(unnamed).block(picture("AAAA")).done());
    world.ask().await.say("네");
    world.turn_end().await;
    world.close().await;
    let origins: Vec<Vec<Value>> = lines(&bench)
        .iter()
        .filter(|line| line["message"]["role"] == "user" || line["message"]["role"] == "toolResult")
        .map(|line| {
            let blocks = line["message"]["content"].as_array().unwrap();
            blocks.iter().map(|block| block["gjcOrigin"].clone()).collect()
        })
        .collect();
    assert_eq!(origins, [vec![json!("typed")], vec![json!("tool"), json!("tool")], vec![json!("host")]]);
}

#[tokio::test]
async fn what_cannot_be_recovered_later_is_in_the_entries() {
    let bench = sim();
    let mut setup = Setup::new(&bench);
    let tools =
        vec![setup.tool("in", Run::Serial), setup.tool("out", Run::Serial).effects(gjc_tools::Effects::Outside)];
    setup.set(tools);
    let mut world = setup.start(bench.create(), false);
    let ask = world.say("일").await;
    ask.send(StreamEvent::Start { response_id: Some("msg_01한".into()) });
    for (index, name) in [(0, "in"), (1, "out")] {
        let kind = gjc_llm::BlockKind::ToolCall { id: "같은 이름".into(), name: name.into() };
        ask.send(StreamEvent::BlockStart { index, kind });
        ask.send(StreamEvent::Delta { index, text: "{}".into() });
        ask.send(StreamEvent::BlockEnd { index, signature: None });
    }
    ask.send(StreamEvent::Usage(gjc_entry::Usage {
        input: 1,
        output: 2,
        cache_read: 3,
        cache_write: 4,
        total_tokens: 10,
        ..Default::default()
    }));
    ask.send(StreamEvent::Stop(gjc_entry::StopReason::ToolUse));
    drop(ask);
    world.begun().await.done("안");
    let out = world.begun().await;
    let op = out.op.clone();
    out.output(
        Output::from(Label::PUBLIC_TRUSTED).text("밖").details(json!({"exit": 3, "artifact": "/a"})).error().done(),
    );
    world.ask().await.say("네");
    world.turn_end().await;
    world.close().await;
    let lines = lines(&bench);
    let said = lines.iter().find(|line| line["message"]["role"] == "assistant").unwrap();
    assert_eq!(said["message"]["responseId"], "msg_01한");
    let usage = &said["message"]["usage"];
    assert_eq!((&usage["cacheRead"], &usage["cacheWrite"], &usage["totalTokens"]), (&json!(3), &json!(4), &json!(10)));
    let results: Vec<&Value> =
        lines.iter().map(|line| &line["message"]).filter(|message| message["role"] == "toolResult").collect();
    assert!(results[0].get("gjcOp").is_none(), "it acted on nothing");
    assert_eq!(results[1]["gjcOp"], op.to_string());
    assert_eq!((&results[1]["details"], &results[1]["isError"]), (&json!({"exit": 3, "artifact": "/a"}), &json!(true)));
}

/// The real tools, on a real disk: path, range and hash of what was read and written.
#[tokio::test]
async fn reads_and_writes_leave_path_range_and_hash_of_the_content() {
    let dir = tempfile::tempdir().unwrap();
    let bench = Bench::new(Arc::new(gjc_log::fs::OsFs), &dir.path().join("agent"));
    std::fs::create_dir(&bench.root).unwrap();
    let work = dir.path().join("작업");
    std::fs::create_dir(&work).unwrap();
    std::fs::write(work.join("글.txt"), "하나\n둘\n셋\n").unwrap();
    let mut setup = Setup::new(&bench);
    setup.config.cwd = work.canonicalize().unwrap();
    let free = gjc_tools::Confinement::off(&setup.config.env.dirs);
    setup.config.tools = gjc_tools::Tools::new(vec![
        Arc::new(gjc_tools::Read),
        Arc::new(gjc_tools::Write),
        Arc::new(gjc_tools::Bash::new(&gjc_entry::Vars::default(), free)),
    ]);
    let mut world = setup.start(bench.create(), false);
    world.say("일").await.call(&[
        ("r", "read", r#"{"path":"글.txt","offset":2,"limit":1}"#),
        ("w", "write", r#"{"path":"새.txt","content":"넷\n"}"#),
        ("b", "bash", r#"{"command":"exit 3"}"#),
        ("n", "read", r#"{"path":"없는 것.txt"}"#),
    ]);
    world.ask().await.say("네");
    world.turn_end().await;
    world.close().await;
    let reader = Reader::open(&*bench.fs, &bench.path()).unwrap().value;
    let mut results = std::collections::HashMap::new();
    for (_, node) in reader.skeleton().unwrap().iter() {
        if let Body::Message(Message::ToolResult(result)) = &reader.body(node.at()).unwrap().body {
            let details: Value =
                result.details.as_ref().map_or(Value::Null, |raw| serde_json::from_str(raw.get()).unwrap());
            results.insert(result.call_id.clone(), (details, result.is_error));
        }
    }
    let hash =
        |text: &str| gjc_flow::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let cwd = work.canonicalize().unwrap();
    let (read, failed) = &results["r"];
    assert_eq!((&read["range"], &read["sha256"], failed), (&json!([2, 2]), &json!(hash("둘\n")), &false), "{read}");
    assert_eq!(read["path"], cwd.join("글.txt").to_str().unwrap());
    let (wrote, failed) = &results["w"];
    assert_eq!((&wrote["sha256"], failed), (&json!(hash("넷\n")), &false), "{wrote}");
    assert_eq!(wrote["path"], cwd.join("새.txt").to_str().unwrap());
    assert_eq!((&results["b"].0["exit"], results["b"].1), (&json!(3), true));
    assert!(results["n"].1);
}
