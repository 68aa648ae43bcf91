//! Moving inside of a session, and names of places.

use crate::world::*;
use gjc_context::{Folds, Places};
use gjc_entry::{EntryId, Leaf, Level, Source};
use gjc_log::fs::Fs;
use gjc_protocol::{Command, EventBody, Outcome};
use serde_json::{Value, json};
use std::sync::Arc;
use testkit::log::{Bench, texts};

fn to(id: &str) -> Command {
    Command::MoveLeaf { to: Some(EntryId::new(id)) }
}

fn name(id: &str, label: Option<&str>) -> Command {
    Command::Label { target: EntryId::new(id), label: label.map(Into::into) }
}

/// Two turns; gives the ids of prompt, answer, prompt, answer.
async fn two_turns(world: &mut World) -> Vec<String> {
    for n in ["하나", "둘"] {
        world.say(&format!("{n} 물음")).await.say(&format!("{n} 답"));
        world.turn_end().await;
    }
    world
        .face
        .events
        .iter()
        .filter_map(|event| match &event.body {
            EventBody::Message { entry, .. } => Some(entry.clone()),
            _ => None,
        })
        .collect()
}

fn lines<F: Fs>(bench: &Bench<F>) -> Vec<Value> {
    let bytes = bench.bytes();
    bytes.split(|b| *b == b'\n').skip(1).filter(|l| !l.is_empty()).map(|l| serde_json::from_slice(l).unwrap()).collect()
}

#[tokio::test]
async fn a_moved_leaf_survives_the_end_and_the_conversation_goes_on_from_there() {
    let (bench, mut world) = usual();
    let ids = two_turns(&mut world).await;
    assert_eq!(world.done(to(&ids[1])).await, json!({"leaf": ids[1]}));
    let moved = world.face.until(|body| matches!(body, EventBody::LeafMoved { .. })).await;
    assert_eq!(moved, EventBody::LeafMoved { leaf: Some(ids[1].clone()) });
    assert_eq!(world.snapshot().await.messages.len(), 2);
    let told = world.close().await;
    assert!(!told.iter().any(|event| matches!(event.body, EventBody::Error { .. })));
    let last = lines(&bench).pop().unwrap();
    assert_eq!((&last["customType"], &last["parentId"]), (&json!("gjc.leaf"), &json!(ids[1])));
    assert_eq!(last["data"], json!({"from": ids[3], "to": ids[1]}));
    let writer = bench.open().unwrap().0.value;
    assert_eq!(texts(&writer), ["하나 물음", "하나 답"]);
    let mut world = Setup::new(&bench).usual_tools().start(writer, true);
    let ask = world.say("다른 둘").await;
    assert!(!ask.text().contains("둘 물음") && ask.text().contains("하나 답"));
    ask.say("다른 답");
    world.turn_end().await;
    assert_eq!(world.snapshot().await.usage.input, 9, "what the other branch has cost is not forgotten");
    world.close().await;
    assert_eq!(texts(&bench.open().unwrap().0.value), ["하나 물음", "하나 답", "다른 둘", "다른 답"]);
}

#[tokio::test]
async fn choosing_what_a_person_said_goes_before_it_and_gives_the_words_back() {
    let (bench, mut world) = usual();
    let ids = two_turns(&mut world).await;
    let value = world.done(to(&ids[2])).await;
    assert_eq!(value, json!({"leaf": ids[1], "text": "둘 물음"}));
    // Once more: the session stands there already.
    let before = bench.bytes();
    assert_eq!(world.done(to(&ids[2])).await, value);
    assert_eq!(world.done(to(&ids[1])).await, json!({"leaf": ids[1]}));
    assert_eq!(bench.bytes(), before);
    // The first words of all: before them there is nothing.
    assert_eq!(world.done(to(&ids[0])).await, json!({"leaf": null, "text": "하나 물음"}));
    assert_eq!(world.done(Command::MoveLeaf { to: None }).await, json!({"leaf": null}));
    assert!(world.snapshot().await.messages.is_empty());
    let last = lines(&bench).pop().unwrap();
    assert_eq!(
        (&last["customType"], &last["parentId"], &last["data"]["to"]),
        (&json!("gjc.leaf"), &Value::Null, &Value::Null)
    );
    let ask = world.say("처음부터").await;
    assert!(!ask.text().contains("하나"));
    ask.say("네");
    world.turn_end().await;
    world.close().await;
    assert_eq!(texts(&bench.open().unwrap().0.value), ["처음부터", "네"]);
}

#[tokio::test]
async fn words_whose_parent_is_lost_or_stands_behind_them_are_gone_before_to_the_beginning() {
    let dir = tempfile::tempdir().unwrap();
    let bench = Bench::new(Arc::new(gjc_log::fs::OsFs), dir.path()).unwatched();
    let mut world = Setup::new(&bench).usual_tools().start(bench.create(), false);
    let ids = two_turns(&mut world).await;
    world.close().await;
    for (parent, behind) in [("deadbeef", "ffffff01"), ("ffffff02", "ffffff02")] {
        let mut text = String::from_utf8(bench.bytes()).unwrap();
        let line = |id: &str, parent: &str| {
            json!({"type": "message", "id": id, "parentId": parent, "timestamp": "2026-06-05T07:18:54.123Z",
                "message": {"role": "user", "content": format!("{parent} 없이"), "timestamp": 1}})
        };
        let orphan = format!("{:0>8}", &parent[4..]);
        text += &format!("{}\n{}\n", line(&orphan, parent), line(behind, &ids[1]));
        std::fs::write(bench.path(), text).unwrap();
        let mut world = Setup::new(&bench).usual_tools().start(bench.open().unwrap().0.value, true);
        let value = world.done(to(&orphan)).await;
        assert_eq!(value, json!({"leaf": null, "text": format!("{parent} 없이")}));
        let ask = world.say("새로").await;
        assert!(!ask.text().contains("하나 물음"));
        ask.say("네");
        world.turn_end().await;
        world.close().await;
    }
}

#[tokio::test]
async fn a_move_to_where_the_session_stands_writes_nothing_and_tells_nobody() {
    let (bench, mut world) = usual();
    assert_eq!(world.done(Command::MoveLeaf { to: None }).await, json!({"leaf": null}), "an empty session");
    let ids = two_turns(&mut world).await;
    let (before, events) = (bench.bytes(), world.snapshot().await.seq);
    assert_eq!(world.done(to(&ids[3])).await, json!({"leaf": ids[3]}));
    assert_eq!((bench.bytes(), world.snapshot().await.seq), (before, events));
    // A name is no step of the conversation.
    world.done(name(&ids[3], Some("여기"))).await;
    let before = bench.bytes();
    assert_eq!(world.done(to(&ids[3])).await, json!({"leaf": ids[3]}));
    assert_eq!(bench.bytes(), before);
}

#[tokio::test]
async fn a_move_is_refused_while_a_turn_runs_and_to_what_is_not_there() {
    let (bench, mut world) = usual();
    let ids = two_turns(&mut world).await;
    assert_eq!(world.refused(to("없는 것")).await, "unknown_entry");
    assert_eq!(world.refused(to("00000000")).await, "unknown_entry");
    let ask = world.say("셋").await;
    let before = bench.bytes();
    match world.call(to(&ids[1])).await {
        Outcome::Refused(refusal) => assert!(refusal.code == "busy" && refusal.hint.is_some(), "{refusal}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(bench.bytes(), before);
    ask.say("네");
    world.turn_end().await;
    world.done(to(&ids[1])).await;
}

#[tokio::test]
async fn a_reply_stands_before_the_event_of_the_move() {
    let (_bench, mut world) = usual();
    let ids = two_turns(&mut world).await;
    let (reply, mut answer) = tokio::sync::oneshot::channel();
    world.handle.post(to(&ids[1]), reply).await;
    world.face.until(|body| matches!(body, EventBody::LeafMoved { .. })).await;
    assert!(answer.try_recv().is_ok());
}

/// Other programs of the family land at the same place.
#[tokio::test]
async fn pi_lands_where_the_leaf_was_moved_to() {
    let dir = tempfile::tempdir().unwrap();
    let bench = Bench::new(Arc::new(gjc_log::fs::OsFs), dir.path());
    let mut world = Setup::new(&bench).usual_tools().start(bench.create(), false);
    let ids = two_turns(&mut world).await;
    world.done(to(&ids[1])).await;
    world.done(name(&ids[3], Some("그만둔 길"))).await;
    world.close().await;
    let Some(pi) = testkit::pi::read(&bench.path()) else { return };
    let messages = pi["messages"].as_array().unwrap();
    assert_eq!(messages.iter().map(texts_of).collect::<Vec<_>>(), ["하나 물음", "하나 답"]);
    assert_eq!(pi["entries"], lines(&bench).len());
    // And before everything: nothing.
    let mut world = Setup::new(&bench).usual_tools().start(bench.open().unwrap().0.value, true);
    world.done(Command::MoveLeaf { to: None }).await;
    world.face.until(|body| matches!(body, EventBody::LeafMoved { .. })).await;
    world.close().await;
    let pi = testkit::pi::read(&bench.path()).unwrap();
    assert_eq!(pi["messages"], json!([]));
}

fn places(source: &dyn Source) -> Vec<(String, String)> {
    let mut folds = Folds::default();
    let places: &Places = folds.get(source, Leaf::Current).unwrap();
    places.iter().map(|(place, name)| (place.to_string(), name.to_owned())).collect()
}

#[tokio::test]
async fn places_bear_the_last_name_that_they_were_given_on_any_branch() {
    let (bench, mut world) = usual();
    let ids = two_turns(&mut world).await;
    let given = world.done(name(&ids[0], Some(" 처음\n\u{1b}[31m 물음\u{7f} "))).await;
    assert_eq!(given, json!({"target": ids[0], "label": "처음  [31m 물음"}));
    world.done(name(&ids[3], Some("끝"))).await;
    world.done(to(&ids[1])).await;
    world.done(name(&ids[1], Some("가운데"))).await;
    world.done(name(&ids[3], Some("버린 끝"))).await;
    assert_eq!(world.refused(name("00000000", Some("x"))).await, "unknown_entry");
    world.close().await;
    let named = |id: &str, name: &str| (id.to_owned(), name.to_owned());
    let writer = bench.open().unwrap().0.value;
    assert_eq!(
        places(&writer),
        [named(&ids[0], "처음  [31m 물음"), named(&ids[1], "가운데"), named(&ids[3], "버린 끝")],
        "names on abandoned branches are not lost"
    );
    // An ordinary entry of the family, on the chain of the leaf.
    let lines = lines(&bench);
    let (last, before) = (&lines[lines.len() - 1], &lines[lines.len() - 2]);
    assert_eq!(
        (&last["type"], &last["targetId"], &last["label"]),
        (&json!("label"), &json!(ids[3]), &json!("버린 끝"))
    );
    assert_eq!(last["parentId"], before["id"]);
    let world = Setup::new(&bench).usual_tools().start(writer, true);
    for (id, nothing) in [(&ids[0], None), (&ids[1], Some("")), (&ids[3], Some(" \t\n"))] {
        assert_eq!(world.done(name(id, nothing)).await, json!({"target": id, "label": null}));
    }
    world.close().await;
    assert!(places(&bench.open().unwrap().0.value).is_empty());
}

#[tokio::test]
async fn a_place_can_be_named_while_a_turn_runs() {
    let (bench, mut world) = usual();
    let ids = two_turns(&mut world).await;
    let ask = world.say("셋").await;
    ask.call(&[("c", "s", "{}")]);
    let begun = world.begun().await;
    world.done(name(&ids[0], Some("처음"))).await;
    begun.done("했다");
    let ask = world.ask().await;
    assert!(ask.results()[0].1.contains("했다"), "a name between a call and its result parts them not");
    assert!(!ask.text().contains("\"처음\""), "a name is not for the model");
    ask.say("네");
    world.turn_end().await;
    world.close().await;
    assert_eq!(places(&bench.open().unwrap().0.value).len(), 1);
}

#[tokio::test]
async fn what_was_learned_on_a_branch_that_was_left_is_known_all_the_same() {
    let (bench, mut world) = usual();
    let ids = two_turns(&mut world).await;
    world.say("읽어").await.call(&[("a", "s", "{}")]);
    world.begun().await.output(labelled("연봉", level(Level::Confidential)));
    world.ask().await.say("네");
    world.turn_end().await;
    world.done(to(&ids[0])).await;
    assert_eq!(world.snapshot().await.label.level, Level::Confidential);
    world.done(name(&ids[1], Some("이름"))).await;
    world.close().await;
    let lines = lines(&bench);
    for line in &lines[lines.len() - 2..] {
        assert_eq!(line["gjcLabel"]["l"], "CONFIDENTIAL", "{line}");
    }
    assert_eq!(bench.open().unwrap().0.value.label(), level(Level::Confidential));
}
