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
    bench.fs.fault(Fault::SyncFails { times: 1 });
    ask.say("이");
    assert_eq!(world.turn_end().await, TurnEnd::Done);
    let names = world.face.names();
    let at = |name: &str| names.iter().rposition(|other| other == name).unwrap();
    assert!(at("storage") < at("turn_ended"));
    assert!(world.face.events.iter().any(|event| failing(&event.body)));
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
