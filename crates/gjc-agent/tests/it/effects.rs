//! An effect of several entries: whole, or completed once when the session is opened again.

use crate::world::*;
use gjc_agent::{Fact, Facts, NotAdmitted, Session};
use gjc_context::{Effect, unfinished};
use gjc_entry::fields::JsonObject;
use gjc_entry::{Body, Content, EntryId, Kind, KindSet, Label, Leaf, Level, Own, ParentOf, Source};
use gjc_flow::{Labelled, Runtime};
use gjc_log::Refused;
use gjc_log::fs::sim::SimFs;
use gjc_log::fs::{Fs, FsFile, Open};
use gjc_protocol::EventBody;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use testkit::log::{Bench, add, texts};
use testkit::session::{answer, user};

/// Repeats a word as notes for the model, and says how many messages came before.
struct Echo;

const INTENT: &str = "gjc.test-echo";

fn echo(word: &str, times: usize) -> Body {
    let mut data = Vec::new();
    JsonObject::begin(&mut data).field("word", word).field("times", &times).end();
    let data = RawValue::from_string(String::from_utf8(data).unwrap()).unwrap();
    Body::Own(Own::Other { kind: "test-echo".into(), data: Some(data) })
}

impl Effect for Echo {
    fn kinds(&self) -> KindSet {
        KindSet::of(&[Kind::OwnOther])
    }

    fn rest(&self, intent: &Body, source: &dyn Source, before: Leaf) -> Option<Vec<Body>> {
        let Body::Own(Own::Other { kind, data: Some(data) }) = intent else { return None };
        (&**kind == "test-echo").then_some(())?;
        let data: Value = serde_json::from_str(data.get()).ok()?;
        let count = source.path(before).ok()?.0.iter().filter(|node| node.kind == Kind::Message).count();
        let note = |n| Body::CustomMessage {
            custom_type: "gjc.note.echo".into(),
            content: Content::Text(format!(
                "{} {n} of {} after {count}",
                data["word"].as_str().unwrap(),
                data["times"]
            )),
            display: true,
            details: None,
        };
        Some((1..=data["times"].as_u64()?).map(note).collect())
    }
}

fn effects() -> Vec<Arc<dyn Effect>> {
    vec![Arc::new(Echo)]
}

fn session(bench: &Bench<SimFs>, writer: gjc_log::Writer<SimFs>) -> Session<SimFs> {
    Session::new(writer, Runtime::new(), bench.clock.clone(), Level::Restricted).unwrap()
}

fn effect(body: Body) -> Facts {
    Facts::Effect { intent: Fact::new(body), effect: Arc::new(Echo) }
}

/// The notes on the active path.
fn notes(source: &dyn Source) -> Vec<String> {
    let path = source.path(Leaf::Current).unwrap().0;
    path.iter()
        .filter_map(|node| match &source.body(node.at).ok()?.body {
            Body::CustomMessage { content, .. } => Some(content.text()),
            _ => None,
        })
        .collect()
}

fn expected() -> Vec<String> {
    (1..=3).map(|n| format!("메아리 {n} of 3 after 2")).collect()
}

/// Durable; waited for outside of the test's runtime.
fn synced(writer: &mut gjc_log::Writer<SimFs>) {
    std::thread::scope(|scope| scope.spawn(|| testkit::log::sync(writer).unwrap()).join().unwrap());
}

/// A machine with a conversation and an effect of an intent and three notes behind it.
fn with_effect() -> Bench<SimFs> {
    let bench = sim();
    let mut writer = bench.create();
    add(&mut writer, user("하나"));
    add(&mut writer, answer("둘"));
    synced(&mut writer);
    let mut session = session(&bench, writer);
    let label = level(Level::Confidential);
    let appended = session.admit(Labelled::new(effect(echo("메아리", 3)), label)).unwrap();
    assert_eq!(appended.ids.len(), 4);
    assert_eq!(notes(session.log()), expected());
    drop(session);
    bench
}

/// A machine whose session file has this content.
fn with_file(bytes: &[u8]) -> Bench<SimFs> {
    let bench = sim();
    for dir in bench.path().ancestors().skip(1).take(2).collect::<Vec<_>>().into_iter().rev() {
        bench.fs.mkdir(dir).unwrap();
    }
    let file = bench.fs.open(&bench.path(), Open::CreateNew).unwrap();
    assert_eq!(file.append(bytes).unwrap(), bytes.len());
    bench.fs.settle();
    bench
}

/// Opens as a person would, waits until it is ready, and closes. Gives back the texts of what was completed.
async fn open_and_close(bench: &Bench<SimFs>) -> usize {
    let writer = bench.open().unwrap().0.value;
    let before = writer.skeleton().unwrap().len();
    let mut setup = Setup::new(bench);
    setup.config.effects = effects();
    let world = setup.start(writer, true);
    world.snapshot().await;
    world.close().await;
    let writer = bench.open().unwrap().0.value;
    writer.skeleton().unwrap().len() - before
}

fn lines(bench: &Bench<SimFs>) -> Vec<Value> {
    let bytes = bench.bytes();
    bytes.split(|b| *b == b'\n').skip(1).filter(|l| !l.is_empty()).map(|l| serde_json::from_slice(l).unwrap()).collect()
}

#[test]
fn the_entries_of_an_effect_follow_each_other_name_their_intent_and_bear_the_session_s_whole_label() {
    let bench = with_effect();
    let lines = lines(&bench);
    let effect = &lines[2..];
    assert_eq!((effect.len(), &effect[0]["customType"]), (4, &json!(INTENT)));
    assert!(effect[0].get("gjcPart").is_none());
    for (n, pair) in effect.windows(2).enumerate() {
        assert_eq!(pair[1]["parentId"], pair[0]["id"]);
        assert_eq!(pair[1]["gjcPart"], json!({"of": effect[0]["id"], "n": n + 1}));
    }
    assert!(effect.iter().all(|line| line["gjcLabel"] == json!({"l": "CONFIDENTIAL", "t": true})));
}

#[test]
fn an_effect_is_refused_whole() {
    let bench = sim();
    let mut writer = bench.create();
    add(&mut writer, answer("네"));
    let whole = {
        let mut session = session(&bench, bench.memory());
        session.admit(Labelled::new(effect(echo("긴 말".repeat(50).as_str(), 3)), Label::PUBLIC_TRUSTED)).unwrap();
        session.log().skeleton().unwrap().iter().map(|(_, node)| node.at().len).max().unwrap()
    };
    // The intent fits, a later line does not.
    writer.refuse_longer_than(whole - 1);
    let before = (writer.skeleton().unwrap().len(), writer.leaf());
    let mut session = session(&bench, writer);
    let parent_unknown = Fact { parent: ParentOf::Id(EntryId::new("없음")), ..Fact::new(echo("말", 1)) };
    for facts in [
        effect(echo("긴 말".repeat(50).as_str(), 3)),
        Facts::Effect { intent: parent_unknown, effect: Arc::new(Echo) },
        effect(user("이것은 그 의도가 아니다")),
    ] {
        session.admit(Labelled::new(facts, Label::PUBLIC_TRUSTED)).unwrap_err();
        assert_eq!((session.log().skeleton().unwrap().len(), session.log().leaf()), before);
    }
    let long = session.admit(Labelled::new(effect(echo("긴 말".repeat(50).as_str(), 3)), Label::PUBLIC_TRUSTED));
    assert!(matches!(long, Err(NotAdmitted::Refused(Refused::TooLong(_)))), "{long:?}");
    // What comes next stands right behind, with nothing of the refused ones between.
    session.admit(Labelled::new(Fact::new(user("다음")), Label::PUBLIC_TRUSTED)).unwrap();
    drop(session);
    assert_eq!(texts(&bench.open().unwrap().0.value), ["네", "다음"]);
}

/// A kill in the middle of the write leaves any part of the batch; what is there of it is completed, exactly once.
#[tokio::test]
async fn an_effect_that_was_cut_anywhere_is_completed_once() {
    let whole = with_effect().bytes();
    let begins: Vec<usize> = std::iter::once(0)
        .chain(whole.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(at, _)| at + 1))
        .collect();
    // Header, two messages, then the intent and its three notes.
    let (intent, end) = (begins[3], whole.len());
    let interesting = |at: &usize| begins.iter().any(|begin| at.abs_diff(*begin) <= 2) || at.is_multiple_of(37);
    for cut in (intent..=end).filter(interesting) {
        let bench = with_file(&whole[..cut]).unwatched();
        // The line feed alone may be missing: then the line is whole.
        let lines_there = begins.iter().filter(|begin| **begin > intent && **begin <= cut + 1).count();
        let missing = if lines_there == 0 { 0 } else { 4 - lines_there };
        assert_eq!(open_and_close(&bench).await, missing, "cut at {cut}");
        let writer = bench.open().unwrap().0.value;
        assert_eq!(notes(&writer), if lines_there == 0 { Vec::new() } else { expected() }, "cut at {cut}");
        assert!(unfinished(&writer, &effects()).unwrap().is_empty());
        drop(writer);
        assert_eq!(open_and_close(&bench).await, 0, "the second time there is nothing to do");
    }
}

/// Every state that a power cut can leave, at every operation of the append and of its commit.
#[tokio::test]
async fn an_effect_that_lost_power_anywhere_is_completed_once() {
    let bench = with_effect();
    let (mut states, mut completed) = (0, 0);
    let mut seen = std::collections::HashSet::new();
    for cut in bench.fs.power_cuts() {
        let Ok(bytes) = cut.fs.read(bench.path()) else { continue };
        // Equal content is opened in equal ways.
        if !seen.insert(bytes) {
            continue;
        }
        let what = cut.to_string();
        let again = Bench::new(Arc::new(cut.fs), Path::new("/agent")).unwatched();
        if again.open().is_err() {
            continue;
        }
        let there = unfinished(&again.open().unwrap().0.value, &effects()).unwrap();
        let missing: usize = there.iter().map(|one| one.missing.len()).sum();
        assert_eq!(open_and_close(&again).await, missing, "{what}");
        let writer = again.open().unwrap().0.value;
        let kinds: Vec<Kind> = writer.skeleton().unwrap().iter().map(|(_, node)| node.kind()).collect();
        let begun = kinds.contains(&Kind::OwnOther);
        assert_eq!(notes(&writer), if begun { expected() } else { Vec::new() }, "{what}");
        drop(writer);
        assert_eq!(open_and_close(&again).await, 0, "{what}");
        states += 1;
        completed += usize::from(missing > 0);
    }
    assert!(states > 50 && completed > 10, "{states} states, {completed} of them with something to complete");
}

/// With failpoints compiled in, [`killed`] does this with a real process.
#[tokio::test]
async fn an_effect_whose_process_was_killed_before_or_after_its_write_is_there_or_not_at_all() {
    for before in [true, false] {
        let bench = sim();
        let mut writer = bench.create();
        add(&mut writer, user("하나"));
        add(&mut writer, answer("둘"));
        synced(&mut writer);
        let mut session = session(&bench, writer);
        if !before {
            session.admit(Labelled::new(effect(echo("메아리", 3)), Label::PUBLIC_TRUSTED)).unwrap();
        }
        let killed = Bench::new(Arc::new(bench.fs.kill()), Path::new("/agent")).unwatched();
        assert_eq!(open_and_close(&killed).await, 0);
        assert_eq!(notes(&killed.open().unwrap().0.value), if before { Vec::new() } else { expected() });
    }
}

#[tokio::test]
async fn what_another_program_said_meanwhile_stays_in_the_conversation_and_the_effect_is_completed_behind_it() {
    let whole = with_effect().bytes();
    let lines_of: Vec<&[u8]> = whole.split_inclusive(|b| *b == b'\n').collect();
    // The intent and the first note; then somebody else's message, and the answer to it.
    let mut bytes = lines_of[..5].concat();
    let parent: Value = serde_json::from_slice(lines_of[4]).unwrap();
    for (id, parent, role) in [("f0000001", parent["id"].as_str().unwrap(), "user"), ("f0000002", "f0000001", "user")] {
        let line = json!({
            "type": "message", "id": id, "parentId": parent, "timestamp": "2026-06-05T07:18:54.123Z",
            "message": {"role": role, "content": format!("남의 말 {id}"), "timestamp": 1},
        });
        bytes.extend(format!("{line}\n").as_bytes());
    }
    let bench = with_file(&bytes);
    assert_eq!(open_and_close(&bench).await, 2);
    let writer = bench.open().unwrap().0.value;
    assert_eq!(notes(&writer), expected(), "made of what preceded the intent, not of what is there now");
    assert_eq!(texts(&writer), ["하나", "둘", "남의 말 f0000001", "남의 말 f0000002"]);
    drop(writer);
    assert_eq!(open_and_close(&bench).await, 0);
    let lines = lines(&bench);
    for (n, line) in [(2, &lines[6]), (3, &lines[7])] {
        assert_eq!(line["gjcPart"], json!({"of": lines[2]["id"], "n": n}));
        assert_eq!(line["gjcLabel"], json!({"l": "CONFIDENTIAL", "t": true}), "the rest knows what the intent knew");
    }
}

#[tokio::test]
async fn two_equal_effects_are_each_completed_and_one_on_an_abandoned_branch_is_let_be() {
    let bench = sim();
    let mut session = session(&bench, bench.create());
    let admit = |session: &mut Session<SimFs>, body: Body| {
        session.admit(Labelled::new(Fact::new(body), Label::PUBLIC_TRUSTED)).unwrap().ids[0].clone()
    };
    let start = admit(&mut session, answer("처음"));
    // Begun on a branch that is left.
    admit(&mut session, echo("버림", 2));
    session.move_leaf(Some(start)).unwrap();
    // Two equal intents, the first without its rest, the second whole.
    let first = admit(&mut session, echo("같다", 2));
    session.admit(Labelled::new(effect(echo("같다", 2)), Label::PUBLIC_TRUSTED)).unwrap();
    let found = unfinished(session.log(), &effects()).unwrap();
    assert!(matches!(&found[..], [one] if one.intent == first && one.missing.len() == 2), "{found:?}");
    session.want_durable();
    drop(session);
    assert_eq!(open_and_close(&bench).await, 2);
    assert_eq!(notes(&bench.open().unwrap().0.value).len(), 4);
}

#[tokio::test]
async fn faces_see_an_effect_completed_before_anything_is_asked() {
    let whole = with_effect().bytes();
    let lines_of: Vec<&[u8]> = whole.split_inclusive(|b| *b == b'\n').collect();
    let bench = with_file(&lines_of[..4].concat());
    let mut setup = Setup::new(&bench);
    setup.config.effects = effects();
    let mut world = setup.start(bench.open().unwrap().0.value, true);
    let ask = world.say("계속").await;
    let text = ask.text();
    assert!(text.find("메아리 3 of 3").unwrap() < text.find("계속").unwrap());
    ask.say("네");
    world.turn_end().await;
    assert!(!world.face.events.iter().any(|event| matches!(event.body, EventBody::Error { .. })));
}

/// A whole effect that is capped is completed as it was stored.
#[tokio::test]
async fn the_rest_of_an_intent_that_was_cut_is_made_of_what_was_stored() {
    let bench = sim();
    let mut session = session(&bench, bench.create());
    session.admit(Labelled::new(Fact::new(answer("네")), Label::PUBLIC_TRUSTED)).unwrap();
    session.admit(Labelled::new(effect(echo(&"가".repeat(500_001), 1)), Label::PUBLIC_TRUSTED)).unwrap();
    assert!(unfinished(session.log(), &effects()).unwrap().is_empty());
    session.want_durable();
    drop(session);
    let lines_before = lines(&bench);
    let [_, intent, note] = &lines_before[..] else { panic!("{}", lines_before.len()) };
    let stored = intent["data"]["word"].as_str().unwrap();
    assert!(stored.contains("[cut here: the whole text, 500001 UTF-16 units"));
    let behind = " 1 of 1 after 1".len();
    assert_eq!(note["gjcWhole"][0]["units"], json!(stored.encode_utf16().count() + behind));
    // Cut off between the two, the same is made of what is in the file.
    let bytes = bench.bytes();
    let end = bytes.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(at, _)| at + 1).nth(2).unwrap();
    let again = with_file(&bytes[..end]);
    assert_eq!(open_and_close(&again).await, 1);
    let completed = lines(&again).pop().unwrap();
    for field in ["content", "gjcWhole", "gjcPart", "customType"] {
        assert_eq!(completed[field], note[field]);
    }
}

/// SIGKILL, for real: this test runs itself as another process, which dies at each failpoint that the effect passes.
#[cfg(feature = "failpoints")]
mod killed {
    use super::*;
    use gjc_log::fs::OsFs;
    use std::path::PathBuf;
    use std::process::Command;

    const DIR: &str = "GJC_TEST_EFFECT_DIR";
    const PLAN: &str = "GJC_TEST_EFFECT_PLAN";

    fn machine(dir: &Path) -> Bench<OsFs> {
        Bench::new(Arc::new(OsFs), dir).unwatched()
    }

    /// What dies: an effect on top of a conversation.
    fn child(dir: PathBuf) {
        let bench = machine(&dir);
        let writer = bench.open().unwrap().0.value;
        let mut session = Session::new(writer, Runtime::new(), bench.clock.clone(), Level::Restricted).unwrap();
        gjc_fp::set_plan(&std::env::var(PLAN).unwrap()).unwrap();
        session.admit(Labelled::new(effect(echo("메아리", 3)), level(Level::Confidential))).unwrap();
        session.want_durable();
    }

    #[tokio::test]
    async fn at_each_failpoint_that_an_effect_passes_it_is_there_whole_or_not_at_all_or_completed() {
        if let Some(dir) = std::env::var_os(DIR) {
            return child(dir.into());
        }
        let name = std::thread::current().name().unwrap().to_owned();
        let (mut point, mut found) = (1, [0, 0]);
        loop {
            let dir = tempfile::tempdir().unwrap();
            let bench = machine(dir.path());
            let mut writer = bench.create();
            add(&mut writer, user("하나"));
            add(&mut writer, answer("둘"));
            std::thread::scope(|scope| scope.spawn(|| testkit::log::sync(&mut writer).unwrap()).join().unwrap());
            drop(writer);
            let ended = Command::new(std::env::current_exe().unwrap())
                .args([name.as_str(), "--exact", "--test-threads=1"])
                .env(DIR, dir.path())
                .env(PLAN, format!("@{point}=kill"))
                .output()
                .unwrap();
            let writer = bench.open().unwrap().0.value;
            let there = writer.skeleton().unwrap().len() - 2;
            let missing = unfinished(&writer, &effects()).unwrap().iter().map(|one| one.missing.len()).sum::<usize>();
            let mut session = Session::new(writer, Runtime::new(), bench.clock.clone(), Level::Restricted).unwrap();
            for unfinished in unfinished(session.log(), &effects()).unwrap() {
                let label = unfinished.label;
                session.admit(Labelled::new(Facts::Rest(unfinished), label)).unwrap();
            }
            let notes = notes(session.log());
            assert_eq!(
                (there + missing, notes),
                if there == 0 { (0, Vec::new()) } else { (4, expected()) },
                "@{point}"
            );
            found[usize::from(there > 0)] += 1;
            if ended.status.success() {
                break;
            }
            point += 1;
        }
        assert!(point >= 6 && found.iter().all(|count| *count > 0), "{point} points, {found:?}");
    }
}
