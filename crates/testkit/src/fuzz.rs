//! The bodies of the fuzz targets, so that a fuzzer (`fuzz/`) and a test that replays its corpora run the same code.
//!
//! Each takes bytes and panics when something that must hold does not.

use crate::damage::{AT_BYTES, AT_LINES, Look, NodeSeen, Sound};
use crate::{SeededIds, VirtualClock};
use gjc_entry::header::MIN_APPENDED;
use gjc_entry::{
    AssistantMessage, Block, Body, Clock, Content, Entry, Fields, Header, Ids, Leaf, Message, Ordinal, RawFields,
    Source, Timestamp,
};
use gjc_log::fs::sim::SimFs;
use gjc_log::fs::{Fs, FsFile, Open};
use gjc_log::{Batch, BlobStore, Durability, LogEnv, OpenError, Reader, Repaired, Tail, Writer};
use serde_json::value::RawValue;
use std::path::Path;
use std::sync::Arc;

/// How much memory looking at so many bytes may take, at most, at any one moment: buffers, a skeleton of many short lines,
/// parsed bodies.
#[must_use]
pub fn memory_for(bytes: usize) -> usize {
    (2 << 20) + 64 * bytes
}

/// A session file: whatever the bytes are, a look changes none of them, and a writer only lets the file grow.
///
/// `visit` is called with sources and leaves, for what stands above the log (the context).
pub fn loader(bytes: &[u8], visit: &dyn Fn(&dyn Source, Leaf)) {
    let dir = Path::new("/작업");
    let path = dir.join("s.jsonl");
    let fs = SimFs::new();
    fs.mkdir(dir).expect("a simulated disk does what it is told");
    let file = fs.open(&path, Open::CreateNew).expect("a simulated disk does what it is told");
    file.append(bytes).expect("a simulated disk does what it is told");
    drop(file);
    let stat = fs.stat(&path).expect("the file is there");
    let same = |who: &str| {
        assert_eq!(fs.stat(&path).expect("the file is there"), stat, "{who} has touched the file");
        let files = fs.list(dir).expect("the folder is there");
        assert_eq!(files.iter().filter(|file| !file.ends_with("새")).count(), 1, "{who} has made a file");
    };

    let opened = Reader::open(&fs, &path);
    let Ok(loaded) = opened else {
        same("a look");
        assert!(Writer::open(env(&fs), &path).is_err(), "the reader refuses what the writer opens");
        return same("a refusal");
    };
    let look = Look::through(&loaded.value, &loaded.damage);
    visit_all(&loaded.value, visit);
    // Bodies are read one by one and all together.
    let bodies = loaded.value.verify_bodies().into_iter().filter(|damage| !damage.kind.is_harmless());
    assert_eq!(bodies.count(), look.reports.len() - loaded.damage.len());
    let covered = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
    match loaded.tail {
        Tail::Clean => assert_eq!(covered, bytes.len()),
        Tail::Growing { at } => assert_eq!(at, covered as u64),
    }
    if loaded.value.header().version < MIN_APPENDED {
        assert!(matches!(Writer::open(env(&fs), &path), Err(OpenError::Old { .. })), "it cannot be added to");
        copy(&fs, &loaded.value, &look, visit);
        return same("a copy");
    }
    drop(loaded);
    same("a look");

    let (mut loaded, repaired) = Writer::open(env(&fs), &path).expect("what a reader opens a writer opens");
    let mended = fs.read(&path).expect("the file is there");
    assert!(mended.starts_with(&bytes[..covered]), "complete lines were changed");
    assert!(mended.last() == Some(&b'\n') && mended.len() <= bytes.len() + 1, "{repaired:?}");
    // What is no longer there is kept.
    let kept = mended.strip_suffix(b"\n").filter(|kept| kept.len() >= covered).unwrap_or(&mended);
    if let Some(cut) = bytes.strip_prefix(kept).filter(|cut| !cut.is_empty() && *cut != b"\n") {
        let torn = fs.read(path.with_extension("jsonl.torn")).unwrap_or_default();
        assert!(torn.windows(cut.len()).any(|part| part == cut), "{} bytes were cut and not kept", cut.len());
    } else {
        assert!(!matches!(repaired, Repaired::Cut { .. }), "nothing is missing and something was cut");
    }
    let writer = Look::through(&loaded.value, &loaded.damage);
    // The end may hold one more record, or the whole copy of one that was cut before.
    let stays = |(now, before): (&NodeSeen, &NodeSeen)| {
        now == before || before.body.is_none() && (&now.id, now.parent) == (&before.id, before.parent)
    };
    let more = writer.nodes.len().checked_sub(look.nodes.len());
    assert!(
        more.is_some_and(|more| more <= 1) && writer.nodes.iter().zip(&look.nodes).all(stays),
        "{repaired:?}\nreader {look:#?}\nwriter {writer:#?}"
    );
    if mended.len() == covered {
        assert_eq!(writer, look, "writer and reader");
    }
    visit_all(&loaded.value, visit);

    let draft = crate::session::draft(crate::session::user("이어서"));
    let id = loaded.value.append(Batch::One(draft)).expect("the leaf is there").ids[0].to_string();
    drop(loaded);
    let grown = fs.read(&path).expect("the file is there");
    assert!(grown.starts_with(&mended) && grown.ends_with(b"\n"), "an append changed what was there");
    let again = Reader::open(&fs, &path).expect("it was open a moment ago");
    let last = Look::through(&again.value, &again.damage);
    let (new, old) = last.nodes.split_last().expect("an entry was appended");
    assert_eq!(old, writer.nodes, "an append changed the entries before it");
    assert_eq!(last.reports, writer.reports, "an append changed what is damaged");
    assert_eq!((&new.id, new.parent, new.body.as_ref()), (&id, writer.leaf, Some(&id)));
    assert_eq!(last.leaf, Some(old.len()));
    assert!(last.level >= writer.level, "an append has lowered the session's level");
    visit(&again.value, Leaf::Current);
}

/// What an old session goes on in has all its entries that can be read.
fn copy(fs: &SimFs, source: &Reader<SimFs>, look: &Look, visit: &dyn Fn(&dyn Source, Leaf)) {
    let header = Header::new(SeededIds::new(4).session(), Timestamp::from_millis(1), "/작업".into());
    let path = Path::new("/작업/새/새.jsonl").to_path_buf();
    let (mut writer, left) = Writer::copy(env(fs), source, path.clone(), header);
    let readable = look.nodes.iter().filter(|node| node.body.is_some()).count();
    let tree = writer.skeleton().expect("a writer has its tree");
    // That the leaf stays the leaf may take an entry more.
    let moved = tree.len().saturating_sub(readable);
    assert_eq!((tree.len(), left.len()), (readable + moved, look.nodes.len() - readable));
    assert!(moved <= 1, "{moved} entries were made up");
    visit_all(&writer, visit);
    let draft = crate::session::draft(crate::session::answer("이어서"));
    writer.append(Batch::One(draft)).expect("the leaf is there");
    drop(writer);
    let copied = Reader::open(fs, &path).expect("a copy is a session");
    let again = Look::through(&copied.value, &copied.damage);
    assert_eq!(again.nodes.len(), readable + moved + 1, "{:?}", again.reports);
    assert_eq!(again.reports, [], "a copy is sound");
    fs.unlink(&path).expect("the copy is there");
    let _ = fs.unlink(Path::new("/작업/새"));
}

fn visit_all(source: &dyn Source, visit: &dyn Fn(&dyn Source, Leaf)) {
    let len = source.skeleton().map_or(0, gjc_entry::Skeleton::len) as u32;
    for leaf in [Leaf::Current, Leaf::Root, Leaf::At(Ordinal(0)), Leaf::At(Ordinal(len / 2)), Leaf::At(Ordinal(len))] {
        visit(source, leaf);
    }
}

fn env(fs: &SimFs) -> LogEnv<SimFs> {
    let fs = Arc::new(fs.clone());
    LogEnv {
        blobs: Arc::new(BlobStore::new(Arc::clone(&fs), None)),
        fs,
        clock: Arc::new(VirtualClock::at(Timestamp::from_millis(1_790_000_000_000))) as Arc<dyn Clock>,
        ids: Arc::new(SeededIds::new(3)) as Arc<dyn Ids>,
        durability: Durability::Turn,
        agent_dir: None,
    }
}

/// A line: what is read of it is written, and read again, without a difference; unknown fields keep their bytes.
pub fn entry(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    // A line of a file has no line feed in it.
    let Some(line) = text.lines().next().map(|line| line.trim_matches([' ', '\t', '\r'])) else { return };
    // The short way and the general one say the same.
    let (entry, general) = (Entry::parse(line), Entry::parse_generally(line));
    assert_eq!(format!("{entry:?}"), format!("{general:?}"));
    if let Ok(entry) = entry {
        let once = written(|out| entry.write(out));
        let again = Entry::parse(&once).unwrap_or_else(|error| panic!("{error}: {once}"));
        assert_eq!(once, written(|out| again.write(out)), "writing is not stable");
        assert_eq!(
            (&entry.id, &entry.parent, entry.at, entry.label, entry.body.kind()),
            (&again.id, &again.parent, again.at, again.label, again.body.kind()),
        );
        kept("entry", &entry.extra, &again.extra);
        nothing_is_dropped(line, &once, &entry.extra);
        if let (Body::Message(before), Body::Message(after)) = (&entry.body, &again.body) {
            same_message(before, after);
        }
    }
    if let Ok(header) = Header::parse(line) {
        let once = written(|out| header.write(out));
        let again = Header::parse(&once).unwrap_or_else(|error| panic!("{error}: {once}"));
        assert_eq!(once, written(|out| again.write(out)), "writing is not stable");
        assert_eq!((header.version, &header.id, &header.cwd), (again.version, &again.id, &again.cwd));
        kept("header", &header.extra, &again.extra);
        nothing_is_dropped(line, &once, &header.extra);
    }
    if let Ok(raw) = serde_json::from_str::<Box<RawValue>>(line)
        && let Ok(message) = Message::from_json(&raw)
    {
        let mut once = Vec::new();
        message.write(&mut once);
        let once = String::from_utf8(once).expect("a message is text");
        let raw = serde_json::from_str::<Box<RawValue>>(&once).unwrap_or_else(|error| panic!("{error}: {once}"));
        let again = Message::from_json(&raw).unwrap_or_else(|error| panic!("{error}: {once}"));
        let mut twice = Vec::new();
        again.write(&mut twice);
        assert_eq!(once.as_bytes(), twice, "writing is not stable");
        same_message(&message, &again);
    }
}

/// One line, without its line feed.
fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut out = Vec::new();
    write(&mut out);
    let text = String::from_utf8(out).expect("a line is text");
    let line = text.strip_suffix('\n').unwrap_or_else(|| panic!("no line feed at the end of {text:?}"));
    assert!(!line.contains('\n'), "two lines: {text:?}");
    line.to_owned()
}

fn kept(what: &str, before: &RawFields, after: &RawFields) {
    let plain = |fields: &RawFields| -> Vec<(String, String)> {
        fields.iter().map(|(name, raw)| (name.to_string(), raw.get().to_owned())).collect()
    };
    assert_eq!(plain(before), plain(after), "unknown fields of {what}");
}

/// Every field of the line is either unknown, and kept byte for byte, or known, and written under its name (or another
/// spelling of it).
fn nothing_is_dropped(line: &str, once: &str, extra: &RawFields) {
    // `model` becomes `provider` and `modelId`; an absent name and a `null` one are the same.
    const RENAMED: &[&str] = &["model"];
    let fields = Fields::parse(line).unwrap_or_default().rest();
    let out = Fields::parse(once).unwrap_or_default();
    for (name, raw) in &fields {
        let unknown = extra.iter().any(|(known, value)| known == name && value.get() == raw.get());
        let gone = out.peek(name).is_none() && raw.get() != "null" && !RENAMED.contains(&&**name);
        assert!(unknown || !gone, "the field {name:?} is dropped");
    }
}

fn same_message(before: &Message, after: &Message) {
    assert_eq!(before.role(), after.role());
    match (before, after) {
        (Message::User(a), Message::User(b)) => {
            kept("user message", &a.extra, &b.extra);
            same_content(&a.content, &b.content);
        }
        (Message::Assistant(a), Message::Assistant(b)) => same_assistant(a, b),
        (Message::ToolResult(a), Message::ToolResult(b)) => {
            kept("tool result", &a.extra, &b.extra);
            same_content(&a.content, &b.content);
        }
        (Message::Other { raw: a, .. }, Message::Other { raw: b, .. }) => assert_eq!(a.get(), b.get()),
        _ => panic!("another kind of message"),
    }
}

fn same_assistant(a: &AssistantMessage, b: &AssistantMessage) {
    kept("assistant message", &a.extra, &b.extra);
    assert_eq!((&a.usage, &a.stop, &a.error, a.at), (&b.usage, &b.stop, &b.error, b.at));
    same_blocks(&a.content, &b.content);
}

fn same_content(a: &Content, b: &Content) {
    match (a, b) {
        (Content::Text(a), Content::Text(b)) => assert_eq!(a, b),
        (Content::Blocks(a), Content::Blocks(b)) => same_blocks(a, b),
        _ => panic!("content became another kind"),
    }
}

fn same_blocks(a: &[Block], b: &[Block]) {
    assert_eq!(a.len(), b.len());
    for pair in a.iter().zip(b) {
        match pair {
            (Block::Text { text: a, origin: ao, extra: ae }, Block::Text { text: b, origin: bo, extra: be }) => {
                assert_eq!((a, ao), (b, bo));
                kept("text block", ae, be);
            }
            (Block::ToolCall { arguments: a, extra: ae, .. }, Block::ToolCall { arguments: b, extra: be, .. }) => {
                assert_eq!(a.get(), b.get(), "arguments are the model's own bytes");
                kept("call", ae, be);
            }
            (Block::Thinking { signature: a, extra: ae, .. }, Block::Thinking { signature: b, extra: be, .. }) => {
                assert_eq!(a, b);
                kept("thinking", ae, be);
            }
            (Block::Image { data: a, extra: ae, .. }, Block::Image { data: b, extra: be, .. }) => {
                assert_eq!(a, b);
                kept("image", ae, be);
            }
            (Block::RedactedThinking { data: a, .. }, Block::RedactedThinking { data: b, .. }) => assert_eq!(a, b),
            (Block::Unknown(a), Block::Unknown(b)) => assert_eq!(a.get(), b.get()),
            _ => panic!("a block became another kind"),
        }
    }
}

/// Inputs to begin with, by target: short sound sessions, one of each kind of damage, lines of every type.
#[must_use]
pub fn seeds(target: &str) -> Vec<(String, Vec<u8>)> {
    let sound = Sound::small();
    let lines = sound.records.iter().map(|record| sound.bytes[record.span.clone()].to_vec());
    if target == "loader" {
        let random = SeededIds::new(5);
        let hurt = |(kind, damage): &crate::damage::Kind, at| (kind.replace(' ', "-"), damage(&sound, at).bytes);
        let bytes = AT_BYTES.iter().map(|kind| hurt(kind, 130 + random.next() as usize % (sound.len() - 130)));
        let whole = AT_LINES.iter().map(|kind| hurt(kind, 1 + random.next() as usize % (sound.records.len() - 1)));
        // A hole of 9,000 NULs says no more than one of 600.
        let short = |(name, bytes): (String, Vec<u8>)| (bytes.len() < 4096).then_some((name, bytes));
        let family = FAMILY.iter().map(|(name, text)| ((*name).into(), text.as_bytes().to_vec()));
        let hurt = bytes.chain(whole).filter_map(short).chain([("sound".into(), sound.bytes.clone())]).chain(family);
        return hurt.collect();
    }
    let mut seeds: Vec<Vec<u8>> = lines.collect();
    seeds.extend(MORE_LINES.iter().map(|line| line.as_bytes().to_vec()));
    // Messages alone, as they stand inside a line.
    let messages = seeds.iter().filter_map(|line| {
        let message = Fields::parse(std::str::from_utf8(line).ok()?).ok()?.raw("message")?;
        Some(message.get().as_bytes().to_vec())
    });
    let messages: Vec<Vec<u8>> = messages.collect();
    seeds.extend(messages);
    seeds.push(b"{}".to_vec());
    seeds.into_iter().enumerate().map(|(index, seed)| (format!("line-{index:02}"), seed)).collect()
}

/// Sessions of other versions.
const FAMILY: &[(&str, &str)] = &[
    (
        "version-1",
        concat!(
            r#"{"type":"session","id":"s","timestamp":"2026-06-05T07:18:54.123Z","cwd":"/p"}"#,
            "\n",
            r#"{"type":"message","timestamp":"2026-06-05T07:18:54.123Z","message":{"role":"user","content":"말","timestamp":1}}"#,
            "\n",
            r#"{"type":"message","timestamp":"2026-06-05T07:18:54.123Z","message":{"role":"hookMessage","customType":"h","content":"훅","display":true,"timestamp":1}}"#,
            "\n",
            r#"{"type":"compaction","timestamp":"2026-06-05T07:18:54.123Z","summary":"s","firstKeptEntryIndex":2,"tokensBefore":7}"#,
            "\n",
        ),
    ),
    (
        "version-2",
        concat!(
            r#"{"type":"session","version":2,"id":"s","timestamp":"2026-06-05T07:18:54.123Z","cwd":"/p"}"#,
            "\n",
            r#"{"type":"message","id":"0000000a","parentId":null,"timestamp":"2026-06-05T07:18:54.123Z","message":{"role":"hookMessage","customType":"h","content":"훅","display":true,"timestamp":1}}"#,
            "\n",
        ),
    ),
    (
        "version-5",
        concat!(
            r#"{"type":"title","v":1,"title":"이름","pad":"   "}"#,
            "\n",
            r#"{"type":"session","version":5,"id":"s","timestamp":"2026-06-05T07:18:54.123Z","cwd":"/p"}"#,
            "\n",
            r#"{"type":"message","id":"0000000a","parentId":null,"timestamp":"2026-06-05T07:18:54.123Z","message":{"role":"user","content":"말","timestamp":1}}"#,
            "\n",
            r#"{"type":"entry_patch","entryId":"0000000a","patch":{"message":{"role":"user","content":"새","timestamp":1}}}"#,
            "\n",
            r#"{"type":"header_patch","patch":{"title":"바뀜","cwd":"/q"}}"#,
            "\n",
            r#"{"type":"reset_boundary","id":"0000000b","parentId":"0000000a","timestamp":"2026-06-05T07:18:54.123Z"}"#,
            "\n",
            r#"{"type":"message","id":"0000000a","parentId":"0000000b","timestamp":"2026-06-05T07:18:54.123Z","message":{"role":"user","content":"또","timestamp":1}}"#,
            "\n",
            r#"{"type":"context_edit","id":"0000000c","parentId":"0000000b","timestamp":"2026-06-05T07:18:54.123Z","targetId":"0000000a","replacement":null}"#,
            "\n",
        ),
    ),
];

/// Lines of types that no short session has.
const MORE_LINES: &[&str] = &[
    r#"{"type":"session","version":5,"id":"s-1","title":"제목","titleSource":"user","timestamp":"2026-06-05T07:18:54.123Z","cwd":"/p","parentSession":"x","starred":true}"#,
    r#"{"type":"compaction","id":"00000002","parentId":"00000001","timestamp":"2026-06-05T07:18:54.123Z","summary":"s","firstKeptEntryId":"00000001","tokensBefore":7.5,"details":{"a":[1 , 2]}}"#,
    r#"{"type":"branch_summary","id":"00000003","parentId":null,"timestamp":"2026-06-05T07:18:54.123Z","fromId":"root","summary":"","fromHook":true}"#,
    r#"{"type":"custom_message","id":"x","parentId":null,"timestamp":"","customType":"handoff","content":[{"type":"text","text":"c"}],"display":true,"details":{"x":1e3},"attribution":"agent"}"#,
    r#"{"type":"label","id":"00000005","parentId":null,"timestamp":"2026-06-05T07:18:54.123Z","targetId":"00000002","label":"이름"}"#,
    r#"{"type":"model_change","id":"x","parentId":null,"timestamp":"2026-06-05T07:18:54.123Z","model":"p/m/x","role":"default"}"#,
    r#"{"type":"thinking_level_change","id":"x","parentId":null,"timestamp":"2026-06-05T07:18:54.123Z","thinkingLevel":null}"#,
    r#"{"type":"session_info","id":"x","parentId":null,"timestamp":"2026-06-05T07:18:54.123Z","name":"\ud83d 이름"}"#,
    r#"{"type":"custom","id":"00000009","parentId":null,"gjcLabel":{"l":"RESTRICTED","t":false},"timestamp":"2026-06-05T07:18:54.123Z","customType":"gjc.env","data":{"system":"blob:sha256:1722932975dbbb0c53e6dd1e615cffc6f4c0ff009f93fa29882b968e5c3ddcb7","tools":"blob:sha256:2d5945067abe81b2798c62dae475c2c68a195cf70b26851fac3fd8bbe2d0d774","model":{"provider":"p","id":"m","api":"a"},"thinking":"off","params":{"maxTokens":32000},"renderer":1}}"#,
    r#"{"type":"custom","id":"0000000a","parentId":null,"timestamp":"2026-06-05T07:18:54.123Z","customType":"gjc.delivered","data":{"id":"d"}}"#,
    r#"{"type":"custom","id":"0000000b","parentId":null,"timestamp":"2026-06-05T07:18:54.123Z","customType":"gjc.taint","data":{}}"#,
    r#"{"type":"custom","id":"0000000c","parentId":null,"timestamp":"2026-06-05T07:18:54.123Z","customType":"x"}"#,
    r#"{"type":"message","id":"0000000d","parentId":null,"timestamp":"2026-06-05T07:18:54.123Z","message":{"role":"assistant","content":[{"type":"thinking","thinking":"t","thinkingSignature":"sig"},{"type":"redactedThinking","data":"d"},{"type":"image","data":"blob:sha256:1722932975dbbb0c53e6dd1e615cffc6f4c0ff009f93fa29882b968e5c3ddcb7","mimeType":"image/png","gjcOrigin":"media"},{"type":"toolCall","id":"c","name":"read","arguments":{"path":"a", "n":1.0}}],"responseId":"r","usage":{"input":1,"cost":{"input":0.5}},"stopReason":"refusal","errorMessage":"e","duration":7,"timestamp":6}}"#,
    r#"{"type":"message","id":"0000000e","parentId":null,"timestamp":"2026-06-05T07:18:54.123Z","message":{"role":"bashExecution","command":"ls","output":"a","exitCode":0}}"#,
];
