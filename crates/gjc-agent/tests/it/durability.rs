//! What `Durability::None` leaves out, and what it never does.

use crate::world::*;
use gjc_entry::{Header, SessionId, Timestamp};
use gjc_log::fs::Fs;
use gjc_log::fs::sim::{Fault, SimFs};
use gjc_log::{Durability, LogEnv, Writer};
use gjc_protocol::{Command, EventBody, Health, TurnEnd};
use std::path::Path;
use std::sync::Arc;
use testkit::log::{Bench, texts};

fn loose() -> (Bench<SimFs>, World) {
    let bench = sim();
    let env = LogEnv { durability: Durability::None, ..bench.env() };
    let header = Header::new(SessionId::new("s").unwrap(), Timestamp::from_millis(1_780_643_934_123), "/작업".into());
    let writer = Writer::create(env, bench.path(), header);
    let world = Setup::new(&bench).usual_tools().start(writer, false);
    (bench, world)
}

fn after(fs: SimFs) -> Vec<String> {
    let bench = Bench::new(Arc::new(fs), Path::new("/agent"));
    bench.open().map(|(loaded, _)| texts(&loaded.value)).unwrap_or_default()
}

fn failing(world: &World) -> bool {
    world.face.events.iter().any(|event| matches!(event.body, EventBody::Storage(Health::Failing { .. })))
}

#[tokio::test]
async fn without_durability_no_turn_and_no_act_waits_for_the_disk_and_a_kill_loses_nothing() {
    let (bench, mut world) = loose();
    world.say("하나").await.say("일");
    assert_eq!(world.turn_end().await, TurnEnd::Done);
    assert_eq!(after(bench.fs.crash(1)), ["하나", "일"], "a session is named by a first sync");
    // A disk that cannot sync is not noticed: nobody asks it to.
    bench.fs.fault(Fault::SyncFails { times: 1_000 });
    world.say("보내").await.call(&[("a", "out", "{}")]);
    let call = world.begun().await;
    assert_eq!(after(bench.fs.kill()).len(), 4, "what is done outside is in the file");
    call.done("보냈다");
    world.ask().await.say("네");
    assert_eq!(world.turn_end().await, TurnEnd::Done);
    assert!(!failing(&world));
    assert_eq!(after(bench.fs.kill()).last().unwrap(), "네");
    assert!((0..40).any(|seed| after(bench.fs.crash(seed)).len() < 6), "a power cut may take it: nothing was synced");
    bench.fs.clear_faults();
    world.close().await;
    for seed in 0..40 {
        assert_eq!(after(bench.fs.crash(seed)).last().unwrap(), "네", "seed {seed}: closing makes it safe");
    }
}

#[tokio::test]
async fn without_durability_a_session_that_cannot_be_written_acts_outside_no_more_either() {
    let (bench, mut world) = loose();
    world.say("하나").await.say("일");
    world.turn_end().await;
    let ask = world.say("보내").await;
    bench.fs.fault(Fault::Enospc { after_bytes: 0 });
    ask.call(&[("a", "out", "{}")]);
    let ask = world.ask().await;
    assert!(ask.results()[0].1.contains("cannot be stored"), "{:?}", ask.results());
    ask.say("네");
    world.turn_end().await;
    assert!(failing(&world));
}

#[tokio::test]
async fn without_durability_the_first_act_of_all_waits_until_the_file_has_its_name() {
    let (bench, mut world) = loose();
    world.say("보내").await.call(&[("a", "out", "{}")]);
    let call = world.begun().await;
    for seed in 0..40 {
        assert_eq!(after(bench.fs.crash(seed)).len(), 2, "seed {seed}");
    }
    assert_eq!(after(bench.fs.kill()).len(), 2);
    call.done("보냈다");
    world.ask().await.say("네");
    world.turn_end().await;
}

#[tokio::test]
async fn without_durability_a_lost_session_that_goes_on_in_a_new_file_is_under_its_name_before_it_acts() {
    let (bench, mut world) = loose();
    world.say("하나").await.say("일");
    world.turn_end().await;
    bench.fs.unlink(&bench.path()).unwrap();
    world.say("둘").await.say("이");
    world.turn_end().await;
    let told = world.done(Command::Rescue).await;
    let file = Path::new(told["file"].as_str().unwrap()).to_path_buf();
    world.say("보내").await.call(&[("a", "out", "{}")]);
    let call = world.begun().await;
    let killed = bench.fs.kill();
    let text = String::from_utf8(killed.read(&file).unwrap()).unwrap();
    assert!(text.contains("하나") && text.contains("이") && text.contains("\"out\""), "{text}");
    call.done("보냈다");
    world.ask().await.say("네");
    world.turn_end().await;
}
