//! The bytes of a request are a function of the path: written before it leaves, and rebuilt from the file alone.

use crate::world::*;
use gjc_context::{CacheMarks, Folds, Request, Settings, check, view};
use gjc_entry::{Body, Leaf, Message, Origin, Source};
use gjc_log::BlobStore;
use gjc_log::fs::Fs;
use gjc_log::fs::OsFs;
use gjc_log::fs::sim::SimFs;
use gjc_protocol::{Command, PromptMode};
use gjc_tools::Run;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use testkit::SeededIds;
use testkit::log::Bench;

fn envs<F: Fs>(bench: &Bench<F>) -> usize {
    String::from_utf8(bench.bytes()).unwrap().lines().filter(|line| line.contains("\"gjc.env\"")).count()
}

async fn turn(world: &mut World, text: &str) -> Vec<u8> {
    let ask = world.say(text).await;
    let body = ask.body.clone();
    ask.say("네");
    world.turn_end().await;
    body
}

#[tokio::test]
async fn settings_are_written_before_the_first_request_and_again_only_when_they_change() {
    let bench = sim();
    let mut world = Setup::new(&bench).usual_tools().start(bench.create(), false);
    turn(&mut world, "하나").await;
    assert_eq!(envs(&bench), 1);
    turn(&mut world, "둘").await;
    assert_eq!(envs(&bench), 1, "nothing has changed");
    bench.clock.advance(Duration::from_secs(24 * 3600));
    let next_day = String::from_utf8(turn(&mut world, "셋").await).unwrap();
    assert_eq!(envs(&bench), 2, "the day has changed");
    assert!(next_day.contains("2026-06-06"));
    world.close().await;

    let again = |change: &dyn Fn(Setup) -> Setup| change(Setup::new(&bench)).start(bench.open().unwrap().0.value, true);
    let mut world = again(&Setup::usual_tools);
    turn(&mut world, "넷").await;
    assert_eq!(envs(&bench), 2, "a restart changes nothing");
    world.close().await;
    let mut world = again(&|mut setup| {
        let tools = vec![setup.tool("p", Run::Parallel)];
        setup.set(tools);
        setup
    });
    turn(&mut world, "다섯").await;
    assert_eq!(envs(&bench), 3, "the tools have changed");
    world.close().await;
    let mut world = again(&|mut setup| {
        let tools = vec![setup.tool("p", Run::Parallel)];
        setup.set(tools);
        setup.config.system = "너는 gjc다.".into();
        setup
    });
    let body = turn(&mut world, "여섯").await;
    assert_eq!(envs(&bench), 4, "the system prompt has changed");
    assert!(contains(&body, "너는 gjc다.".as_bytes()));
    world.close().await;
    assert_eq!(rebuilt(&bench).last().unwrap(), &body);
}

/// The request that each stored answer answered, from the file and the blobs alone.
fn rebuilt<F: Fs>(bench: &Bench<F>) -> Vec<Vec<u8>> {
    let reader = bench.open().unwrap().0.value;
    let blobs = BlobStore::new(Arc::clone(&bench.fs), Some(bench.root.join("blobs")));
    let skeleton = reader.skeleton().unwrap();
    let mut bodies = Vec::new();
    for (_, node) in skeleton.iter() {
        let entry = reader.body(node.at()).unwrap();
        if !matches!(&entry.body, Body::Message(Message::Assistant(_))) {
            continue;
        }
        let leaf = Leaf::At(node.parent().unwrap());
        let mut folds = Folds::default();
        let (view, notes) = view(&reader, leaf, &mut folds).unwrap();
        assert_eq!(notes, []);
        let env = folds.get::<Settings>(&reader, leaf).unwrap().env.clone().unwrap();
        let (api, renderer, unedited) = (env.model.api.clone(), env.renderer, view.clone());
        let checked = check(Request { env, cache: CacheMarks::of(&view), view }, &unedited).unwrap();
        bodies.push(gjc_llm::render(&api, renderer, &checked, &blobs).unwrap().body.to_vec());
    }
    bodies
}

/// A random run: prompts of all kinds, calls of all kinds, aborts, new days. Gives the bodies that were answered.
async fn random_run<F: Fs>(bench: &Bench<F>, mut world: World, seed: u64) -> Vec<Vec<u8>> {
    let random = SeededIds::new(seed);
    let mut answered = Vec::new();
    for n in 0..6 {
        let origin = if random.next().is_multiple_of(2) { Origin::Typed } else { Origin::Paste };
        world.accepted(prompt(&format!("{seed}.{n} 질문 \"\\ 😀"), origin, PromptMode::Steer)).await;
        loop {
            let ask = world.ask().await;
            let body = ask.body.clone();
            match random.next() % 6 {
                0 | 1 => {
                    ask.say(&format!("{n} 답"));
                    answered.push(body);
                    break;
                }
                2 => {
                    ask.begin("중단된 답");
                    world.face.until(|body| name(body) == "text_delta").await;
                    world.accepted(Command::Abort).await;
                    answered.push(body);
                    break;
                }
                3 => {
                    world.accepted(Command::Abort).await;
                    break;
                }
                kind => {
                    let ids: Vec<String> = (0..3).map(|call| format!("{n}_{call}_{}", random.next() % 1000)).collect();
                    let names = ["p", "s", if kind == 4 { "out" } else { "none" }];
                    let calls: Vec<(&str, &str, &str)> =
                        ids.iter().zip(names).map(|(id, name)| (id.as_str(), name, "{\"경로\": 1.50}")).collect();
                    ask.call(&calls);
                    answered.push(body);
                    for _ in 0..if kind == 4 { 3 } else { 2 } {
                        let call = world.begun().await;
                        if random.next().is_multiple_of(3) {
                            world.accepted(said("끼어듦", PromptMode::Steer)).await;
                        }
                        call.done(&format!("결과 {}", random.next()));
                    }
                }
            }
        }
        world.turn_end().await;
        if random.next().is_multiple_of(2) {
            bench.clock.advance(Duration::from_secs(20 * 3600));
        }
    }
    world.close().await;
    answered
}

#[tokio::test]
async fn each_answered_request_can_be_rebuilt_byte_for_byte_from_the_file_alone() {
    for seed in 0..25 {
        let bench = sim();
        let world = Setup::new(&bench).usual_tools().start(bench.create(), false);
        let sent = random_run(&bench, world, seed).await;
        if sent.is_empty() {
            continue;
        }
        let cut = Bench::new(Arc::new(bench.fs.crash(seed)), Path::new("/agent"));
        assert_eq!(rebuilt(&cut), sent, "seed {seed}");
    }
}

#[tokio::test]
async fn the_same_holds_on_a_real_disk() {
    for seed in 100..104 {
        let folder = tempfile::tempdir().unwrap();
        let bench = Bench::new(Arc::new(OsFs), folder.path());
        let world = Setup::new(&bench).usual_tools().start(bench.create(), false);
        let sent = random_run(&bench, world, seed).await;
        if !sent.is_empty() {
            assert_eq!(rebuilt(&bench), sent, "seed {seed}");
        }
    }
}

#[tokio::test]
async fn a_session_in_memory_sends_the_same_bytes_as_one_in_a_file() {
    let mut bodies = Vec::new();
    for memory in [false, true] {
        let bench: Bench<SimFs> = sim();
        let writer = if memory { bench.memory() } else { bench.create() };
        let mut world = Setup::new(&bench).usual_tools().start(writer, false);
        turn(&mut world, "하나").await;
        bodies.push(turn(&mut world, "둘").await);
        let file = world.snapshot().await.file;
        assert_eq!(file.is_none(), memory);
    }
    assert_eq!(bodies[0], bodies[1]);
}
