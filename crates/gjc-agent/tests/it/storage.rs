//! A disk that fails, and comes back.

use crate::world::*;
use gjc_log::fs::sim::Fault;
use gjc_protocol::{Command, EventBody, Health, TurnEnd};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use testkit::log::{Bench, texts};

fn failing(body: &EventBody) -> bool {
    matches!(body, EventBody::Storage(Health::Failing { .. }))
}

#[tokio::test]
async fn a_full_disk_ends_no_turn_is_told_before_its_end_and_is_written_to_once_there_is_room() {
    for first in [false, true] {
        let (bench, mut world) = usual();
        if !first {
            world.say("하나").await.say("일");
            world.turn_end().await;
        }
        let before = if first { 0 } else { texts_on(&bench).len() };
        let ask = world.say("둘").await;
        bench.fs.fault(Fault::Enospc { after_bytes: 10 });
        ask.say("이");
        assert_eq!(world.turn_end().await, TurnEnd::Done);
        let names: Vec<bool> = world.face.events.iter().map(|event| failing(&event.body)).collect();
        assert_eq!(names.iter().filter(|failing| **failing).count(), 1);
        assert!(matches!(world.snapshot().await.storage, Health::Failing { .. }));
        // Still full: nothing new is told.
        bench.clock.advance(Duration::from_secs(1));
        world.snapshot().await;
        bench.fs.clear_faults();
        // A face that asks all the time does not keep the session from trying again.
        for _ in 0..4 {
            bench.clock.advance(Duration::from_millis(400));
            world.snapshot().await;
        }
        world.face.until(|body| *body == EventBody::Storage(Health::Ok)).await;
        let kept = texts_on(&bench);
        assert_eq!(kept[before..], ["둘", "이"]);
        world.say("셋").await.say("삼");
        assert_eq!(world.turn_end().await, TurnEnd::Done);
        assert!(world.face.events.iter().filter(|event| matches!(event.body, EventBody::Storage(_))).count() == 2);
    }
}

/// What would be there after any power cut at this moment: the least that the disk has.
fn texts_on(bench: &Bench<gjc_log::fs::sim::SimFs>) -> Vec<String> {
    (0..40)
        .map(|seed| {
            let cut = Bench::new(Arc::new(bench.fs.crash(seed)), Path::new("/agent"));
            cut.open().map(|(loaded, _)| texts(&loaded.value)).unwrap_or_default()
        })
        .min_by_key(Vec::len)
        .unwrap()
}

#[tokio::test]
async fn a_failed_sync_is_told_before_the_turn_ends() {
    let (bench, mut world) = usual();
    world.say("하나").await.say("일");
    world.turn_end().await;
    let ask = world.say("둘").await;
    // That of the bytes, and that of the same bytes written anew.
    bench.fs.fault(Fault::SyncFails { times: 2 });
    ask.say("이");
    assert_eq!(world.turn_end().await, TurnEnd::Done);
    let names = world.face.names();
    let at = |name: &str| names.iter().rposition(|other| other == name).unwrap();
    assert!(at("storage") < at("turn_ended"));
    assert!(world.face.events.iter().any(|event| failing(&event.body)));
    bench.clock.advance(Duration::from_millis(250));
    world.face.until(|body| *body == EventBody::Storage(Health::Ok)).await;
    assert_eq!(texts_on(&bench), ["하나", "일", "둘", "이"]);
}

#[tokio::test]
async fn a_sync_that_fails_once_is_nobodys_business() {
    let (bench, mut world) = usual();
    let ask = world.say("하나").await;
    bench.fs.fault(Fault::SyncLoses { times: 1 });
    ask.say("일");
    assert_eq!(world.turn_end().await, TurnEnd::Done);
    assert!(!world.face.names().contains(&"storage".into()));
    assert_eq!(texts_on(&bench), ["하나", "일"]);
}

#[tokio::test]
async fn storing_is_tried_again_after_twice_the_time_and_during_a_turn_too() {
    let (bench, mut world) = usual();
    world.say("하나").await.say("일");
    world.turn_end().await;
    bench.fs.fault(Fault::Enospc { after_bytes: 0 });
    let ask = world.say("둘").await;
    world.face.until(failing).await;
    // The answer streams on; after 250, 750, 1,750 ms it is tried in vain, and nobody is told again.
    ask.begin("이");
    for ms in [250, 500, 1_000] {
        bench.clock.advance(Duration::from_millis(ms));
        world.snapshot().await;
    }
    bench.fs.clear_faults();
    bench.clock.advance(Duration::from_millis(1_999));
    assert!(matches!(world.snapshot().await.storage, Health::Failing { .. }), "not yet");
    bench.clock.advance(Duration::from_millis(1));
    world.face.until(|body| *body == EventBody::Storage(Health::Ok)).await;
    assert_eq!(texts_on(&bench), ["하나", "일", "둘"]);
    ask.finish();
    assert_eq!(world.turn_end().await, TurnEnd::Done);
    // The next trouble begins with the shortest wait.
    bench.fs.fault(Fault::Enospc { after_bytes: 0 });
    world.say("셋").await.say("삼");
    world.turn_end().await;
    bench.fs.clear_faults();
    bench.clock.advance(Duration::from_millis(250));
    world.face.until(|body| *body == EventBody::Storage(Health::Ok)).await;
    assert_eq!(texts_on(&bench).len(), 6);
    let told = world.face.events.iter().filter(|event| matches!(event.body, EventBody::Storage(_))).count();
    assert_eq!(told, 4);
}

#[tokio::test]
async fn close_says_when_something_could_not_be_stored() {
    let (bench, mut world) = usual();
    let ask = world.say("하나").await;
    bench.fs.fault(Fault::Enospc { after_bytes: 0 });
    ask.say("일");
    world.turn_end().await;
    assert_eq!(world.done(Command::Close).await["stored"], false);
}

#[tokio::test]
async fn a_face_that_comes_after_a_rescue_hears_the_new_id_and_file() {
    let dir = tempfile::tempdir().unwrap();
    let bench = Bench::new(Arc::new(gjc_log::fs::OsFs), dir.path()).unwatched();
    let mut world = Setup::new(&bench).usual_tools().start(bench.create(), false);
    world.say("하나").await.say("일");
    world.turn_end().await;
    std::fs::remove_file(bench.path()).unwrap();
    world.say("둘").await.say("이");
    world.turn_end().await;
    let told = world.done(Command::Rescue).await;
    let mut late = Face::new(world.handle.subscribe());
    match late.next().await {
        Some(EventBody::Session { id, file, .. }) => {
            assert_eq!(serde_json::json!({"id": id, "file": file}), told);
            assert_ne!(file.unwrap(), bench.path().display().to_string());
        }
        other => panic!("{other:?}"),
    }
    world.close().await;
}
