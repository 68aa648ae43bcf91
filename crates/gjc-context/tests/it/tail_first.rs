//! The context that is read from the end of a file is the one that its index gives, or it is left to the index.

use gjc_context::{Selected, select};
use gjc_entry::{At, Damage, Entry, Label, Leaf, NeedsIndex, PathNodes, Skeleton, Source};
use gjc_log::Reader;
use gjc_log::backwards::{Found, context_path};
use gjc_log::fs::{Fs, FsFile, Open, OsFs};
use proptest::prelude::*;
use std::path::Path;
use std::sync::Arc;

/// What a reader has before its index.
struct Tail {
    reader: Reader<OsFs>,
    found: Found,
}

impl Source for Tail {
    fn path(&self, leaf: Leaf) -> Result<PathNodes, NeedsIndex> {
        if leaf == Leaf::Current { Ok(self.found.nodes.clone()) } else { Err(NeedsIndex) }
    }

    fn skeleton(&self) -> Option<&Skeleton> {
        None
    }

    fn body(&self, at: At) -> Result<Arc<Entry>, Damage> {
        self.reader.body(at)
    }
}

/// One line, or what a crash made of it.
#[derive(Debug, Clone)]
struct Line {
    what: What,
    /// How many entries back the parent is; mostly the last one.
    back: usize,
    /// Likewise for what a compaction keeps.
    kept: usize,
    label: Option<&'static str>,
    end: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum What {
    Message,
    Compaction,
    BrokenCompaction,
    Reset,
    Custom,
    Root,
    Orphan,
    /// The id of an entry before.
    Repeated,
    /// A parent that comes later.
    Early,
    Torn,
    Holed,
    Blank,
    Decoy,
    /// A message and a change of it on one line, as two writers leave them.
    Joined,
}

fn line() -> impl Strategy<Value = Line> {
    use What::{
        Blank, BrokenCompaction, Compaction, Custom, Decoy, Early, Holed, Joined, Message, Orphan, Repeated, Reset,
        Root, Torn,
    };
    let what = prop_oneof![
        30 => Just(Message),
        5 => Just(Custom),
        5 => prop::sample::select(vec![Compaction, Compaction, BrokenCompaction, Reset]),
        2 => prop::sample::select(vec![Blank, Decoy, Root]),
        1 => prop::sample::select(vec![Orphan, Repeated, Early, Torn, Holed, Joined]),
    ];
    let label = prop::option::weighted(
        0.2,
        prop::sample::select(vec![
            r#"{"l":"PUBLIC","t":true}"#,
            r#"{"l":"CONFIDENTIAL","t":false}"#,
            r#"{"l":"INTERNAL","t":true}"#,
            r#"{"l":"broken"}"#,
        ]),
    );
    let back = prop_oneof![8 => Just(1usize), 1 => 1..9usize];
    let end = prop_oneof![9 => Just("\n"), 1 => Just("\r\n")];
    (what, back, 1..12usize, label, end).prop_map(|(what, back, kept, label, end)| Line {
        what,
        back,
        kept,
        label,
        end,
    })
}

/// The file, and whether an id stands in it twice.
fn file(version: u32, lines: &[Line], tail: &str) -> (String, bool) {
    let mut text = format!(
        "{{\"type\":\"session\",\"version\":{version},\"id\":\"s\",\"timestamp\":\"2026-06-05T07:18:54.123Z\",\"cwd\":\"/\"}}\n",
    );
    let (mut ids, mut repeats) = (Vec::<u32>::new(), false);
    for (number, line) in (1u32..).zip(lines) {
        let earlier = |steps: usize| ids.len().checked_sub(steps).and_then(|at| ids.get(at)).copied();
        let quoted = |id: Option<u32>| id.map_or("null".into(), |id| format!("\"{id:08x}\""));
        let parent = match line.what {
            What::Root => None,
            What::Orphan => Some(0xdead),
            What::Early => Some(number + 1),
            _ => earlier(line.back),
        };
        let mut id = number;
        if line.what == What::Repeated
            && let Some(earlier) = earlier(line.kept)
        {
            (id, repeats) = (earlier, true);
        }
        let label = line.label.map_or(String::new(), |label| format!(",\"gjcLabel\":{label}"));
        let head =
            |kind: &str| format!("{{\"type\":\"{kind}\",\"id\":\"{id:08x}\",\"parentId\":{}{label}", quoted(parent));
        let said = |text: &str| {
            head("message")
                + &format!(",\"message\":{{\"role\":\"user\",\"content\":\"{text} {number}\",\"timestamp\":1}}}}")
        };
        let record = match line.what {
            What::Compaction => {
                let kept = quoted(earlier(line.kept)).replace("null", "\"x\"");
                head("compaction")
                    + &format!(",\"summary\":\"요약 {number}\",\"firstKeptEntryId\":{kept},\"tokensBefore\":1}}")
            }
            What::BrokenCompaction => head("compaction") + ",\"summary\":}",
            What::Reset => head("reset_boundary") + "}",
            What::Custom => head("custom") + ",\"customType\":\"x\",\"data\":{\"parentId\":\"00000001\"}}",
            What::Decoy => said(r#"\"parentId\":\"00000002\"}{\"type\":\"message"#),
            What::Torn => {
                text += &said("찢어진")[..40];
                said("뒤")
            }
            What::Joined => {
                let patch = format!(
                    "{{\"type\":\"entry_patch\",\"entryId\":\"{id:08x}\",\"patch\":{{\"message\":{{\"role\":\"user\",\"content\":\"고침\",\"timestamp\":1}}}}}}"
                );
                said("말") + &patch
            }
            What::Holed => said("구멍").replace("구멍", "\0\0"),
            What::Blank => "  ".into(),
            _ => said("말"),
        };
        text += &record;
        text += line.end;
        if !matches!(line.what, What::Holed | What::Blank) {
            ids.push(id);
        }
    }
    (text + tail, repeats)
}

fn printed(selected: &[Selected]) -> Vec<(At, String)> {
    let print = |selected: &Selected| {
        let mut out = Vec::new();
        selected.message.write(&mut out);
        (selected.at, String::from_utf8(out).unwrap())
    };
    selected.iter().map(print).collect()
}

fn from_the_end(path: &Path) -> Option<Tail> {
    let file = OsFs.open(path, Open::Read).unwrap();
    let len = file.stat().unwrap().len;
    let found = context_path(&file, len).unwrap().ok()?;
    let reader = Reader::open_end(&OsFs, path, Path::new("/nowhere")).unwrap().value;
    assert!(reader.skeleton().is_none(), "it is read from its end");
    Some(Tail { reader, found })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    #[test]
    fn the_end_of_a_file_gives_what_its_index_gives(
        version in 3..=5_u32,
        lines in prop::collection::vec(line(), 0..40),
        tail in prop::sample::select(vec!["", "{\"type\":\"mess", "  "]),
    ) {
        let (text, repeats) = file(version, &lines, tail);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("세션.jsonl");
        std::fs::write(&path, &text).unwrap();
        let Some(tail) = from_the_end(&path) else { return Ok(()) };
        let index = Reader::open(&OsFs, &path).unwrap().value;
        let skeleton = index.skeleton().unwrap();
        if !tail.found.agrees(skeleton) {
            // The one thing that the end of a file cannot know, and that `agrees` is there to say.
            prop_assert!(repeats, "{text}");
            return Ok(());
        }
        prop_assert_eq!(
            printed(&select(&tail, Leaf::Current).unwrap().0),
            printed(&select(&index, Leaf::Current).unwrap().0),
            "{}", text
        );
        let whole = skeleton.path(Leaf::Current).0;
        let known = &whole[whole.len() - tail.found.nodes.0.len()..];
        for (node, known) in tail.found.nodes.0.iter().zip(known) {
            let expected = if tail.found.taint.is_some() { known.label } else { Label::CORRUPT };
            prop_assert_eq!(node.label, expected);
        }
        prop_assert!(tail.found.taint.is_none_or(|taint| taint == skeleton.label()), "{text}");
    }
}

/// The property would hold as well if everything were left to the index.
#[test]
fn a_long_session_needs_no_index() {
    let dir = tempfile::tempdir().unwrap();
    let shape = testkit::bulk::Shape { labels: true, ..testkit::bulk::Shape::of(12_000_000) };
    let path = testkit::bulk::cached(dir.path(), "s.jsonl", shape).unwrap();
    let tail = from_the_end(&path).expect("it is a sound file");
    let index = Reader::open(&OsFs, &path).unwrap().value;
    assert!(tail.found.agrees(index.skeleton().unwrap()) && !tail.found.from_root);
    assert_eq!(printed(&select(&tail, Leaf::Current).unwrap().0), printed(&select(&index, Leaf::Current).unwrap().0));
}
