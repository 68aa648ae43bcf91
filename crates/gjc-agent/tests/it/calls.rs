//! The calls of an answer: each has exactly one result, whatever becomes of it.

use crate::world::*;
use gjc_llm::{BlockKind, StreamEvent};
use gjc_log::fs::sim::Fault;
use gjc_protocol::{EventBody, Health, TurnEnd};
use gjc_tools::Run;
use std::path::Path;
use std::sync::Arc;
use testkit::log::{Bench, texts};

#[tokio::test]
async fn parallel_calls_overlap_are_admitted_as_they_finish_and_sent_in_the_order_of_the_calls() {
    let (_bench, mut world) = usual();
    world.say("일").await.call(&[("a", "p", "{}"), ("b", "q", "{}"), ("c", "p", "{}")]);
    // All three are under way before any of them has ended.
    let (a, b, c) = (world.begun().await, world.begun().await, world.begun().await);
    for (call, text) in [(c, "셋"), (a, "하나"), (b, "둘")] {
        call.done(text);
        assert_eq!(world.face.message("toolResult").await, text);
    }
    let ask = world.ask().await;
    let results: Vec<(String, bool)> =
        ask.results().into_iter().map(|(id, text)| (id, text.contains("하나"))).collect();
    assert_eq!(results, [("a".into(), true), ("b".into(), false), ("c".into(), false)]);
    ask.say("네");
    world.turn_end().await;
}

#[tokio::test]
async fn serial_calls_run_one_after_another_in_order_and_beside_nothing() {
    let (_bench, mut world) = usual();
    world.say("일").await.call(&[("a", "s", "{\"n\":1}"), ("b", "s", "{\"n\":2}"), ("c", "p", "{}")]);
    for (at, id) in ["a", "b", "c"].into_iter().enumerate() {
        let call = world.begun().await;
        assert_eq!(usize::from(call.op.call), at);
        assert!(world.started.try_recv().is_err(), "another call runs beside {id}");
        call.done(id);
        assert_eq!(world.face.message("toolResult").await, id);
    }
    world.ask().await.say("네");
    world.turn_end().await;
}

#[tokio::test]
async fn a_sole_call_beside_others_is_refused_and_the_others_run() {
    let (_bench, mut world) = usual();
    world.say("일").await.call(&[("a", "p", "{}"), ("b", "only", "{}"), ("c", "s", "{}")]);
    world.begun().await.done("하나");
    world.begun().await.done("셋");
    let ask = world.ask().await;
    let results = ask.results();
    assert!(results[1].1.contains("only must be the only call"), "{results:?}");
    ask.call(&[("d", "only", "{}")]);
    assert_eq!(world.begun().await.tool, "only");
}

#[tokio::test]
async fn what_cannot_run_is_answered_with_its_reason_and_does_not_keep_others_from_running() {
    let bench = sim();
    let mut setup = Setup::new(&bench);
    let tools = vec![
        setup.tool("p", Run::Parallel),
        setup.tool("no", Run::Parallel).refuses("'경로' is no path"),
        setup.tool("bad", Run::Parallel).panics_in_plan(),
    ];
    setup.set(tools);
    let mut world = setup.start(bench.create(), false);
    let ask = world.say("일").await;
    ask.send(StreamEvent::BlockStart { index: 9, kind: BlockKind::ToolCall { id: "half".into(), name: "p".into() } });
    ask.send(StreamEvent::Delta { index: 9, text: "{\"path\": \"한".into() });
    ask.call(&[("a", "p", "{}"), ("b", "nowhere", "{}"), ("c", "no", "{}"), ("d", "bad", "{}"), ("e", "p", "{}")]);
    world.begun().await.panic();
    world.begun().await.done("다섯");
    let ask = world.ask().await;
    let results = ask.results();
    let of = |id: &str| &results.iter().find(|(other, _)| other == id).unwrap().1;
    assert_eq!(results.len(), 6, "{results:?}");
    assert!(of("a").contains("failed inside"));
    assert!(of("b").contains("there is no tool") && of("b").contains("nowhere"));
    assert!(of("c").contains("'경로' is no path") && of("c").contains("another way"));
    assert!(of("d").contains("failed inside"));
    assert!(of("e").contains("다섯"));
    assert!(of("half").contains("broke off"));
    ask.say("네");
    assert_eq!(world.turn_end().await, TurnEnd::Done);
    let (mut ended, mut ids) = (0, Vec::new());
    for event in &world.face.events {
        match &event.body {
            EventBody::ToolEnded(_) => ended += 1,
            EventBody::Message { message, .. } if message["role"] == "toolResult" => {
                ids.push(message["toolCallId"].as_str().unwrap().to_owned());
            }
            _ => {}
        }
    }
    ids.sort();
    assert_eq!((ended, ids), (6, ["a", "b", "c", "d", "e", "half"].map(String::from).to_vec()));
}

#[tokio::test]
async fn an_act_outside_begins_only_when_the_answer_that_asks_for_it_is_durable() {
    let (bench, mut world) = usual();
    world.say("보내").await.call(&[("a", "out", "{}")]);
    let call = world.begun().await;
    for seed in 0..60 {
        let cut = Bench::new(Arc::new(bench.fs.crash(seed)), Path::new("/agent"));
        assert_eq!(texts(&cut.open().unwrap().0.value).len(), 2, "seed {seed}: the effect would be without its record");
    }
    call.done("보냈다");
    world.ask().await.say("네");
    world.turn_end().await;
}

#[tokio::test]
async fn an_act_outside_is_refused_while_the_session_cannot_be_stored() {
    for fault in [Fault::Enospc { after_bytes: 0 }, Fault::SyncFails { times: 9 }] {
        let (bench, mut world) = usual();
        let ask = world.say("보내").await;
        bench.fs.fault(fault.clone());
        ask.call(&[("a", "out", "{}"), ("b", "p", "{}")]);
        // Nothing was lost but the act outside.
        world.begun().await.done("읽었다");
        let ask = world.ask().await;
        assert!(ask.results()[0].1.contains("cannot be stored"), "{fault:?}: {:?}", ask.results());
        assert!(ask.results()[1].1.contains("읽었다"));
        ask.say("네");
        world.turn_end().await;
        let failing = |event: &gjc_protocol::Event| matches!(&event.body, EventBody::Storage(Health::Failing { .. }));
        assert_eq!(world.face.events.iter().filter(|event| failing(event)).count(), 1, "{fault:?}");
    }
}

#[tokio::test]
async fn the_same_call_with_the_same_result_five_times_in_a_row_ends_the_turn_with_a_note() {
    let (bench, mut world) = usual();
    let mut ask = Some(world.say("고쳐 줘").await);
    for time in 1..=5 {
        // Ids differ, as a provider's do.
        ask.unwrap().call(&[(&format!("c{time}"), "s", "{\"file\":\"가.rs\"}")]);
        world.begun().await.done("변화 없음");
        ask = if time < 5 { Some(world.ask().await) } else { None };
    }
    assert_eq!(world.turn_end().await, TurnEnd::Failed);
    let told = world.face.events.iter().find_map(|event| match &event.body {
        EventBody::Error { code, sentence, hint } => Some((code.clone(), sentence.clone(), hint.clone())),
        _ => None,
    });
    let (code, sentence, hint) = told.unwrap();
    assert_eq!(code, "circling");
    assert!(sentence.contains("\"s\"") && sentence.contains("5 times") && hint.is_some(), "{sentence}");
    // The next prompt reaches a model that knows why, and begins a new row.
    let ask = world.say("계속").await;
    assert!(ask.text().contains("The turn was ended: the same call"), "{}", ask.text());
    ask.call(&[("d", "s", "{\"file\":\"가.rs\"}")]);
    world.begun().await.done("변화 없음");
    world.ask().await.say("다른 길로 갈게요");
    assert_eq!(world.turn_end().await, TurnEnd::Done);
    world.close().await;
    assert!(texts(&bench.open().unwrap().0.value).iter().any(|text| text == "다른 길로 갈게요"));
}

#[tokio::test]
async fn calls_that_differ_in_anything_are_no_circle() {
    let (_bench, mut world) = usual();
    let mut ask = world.say("고쳐 줘").await;
    for (arguments, result) in [
        ("{\"n\":1}", "a"),
        ("{\"n\":1}", "a"),
        ("{\"n\":1}", "a"),
        ("{\"n\":1}", "a"),
        ("{\"n\":1}", "b"),
        ("{\"n\":2}", "b"),
        ("{\"n\":1}", "b"),
        ("{\"n\":1}", "b"),
        ("{\"n\":1}", "b"),
        ("{\"n\":1}", "b"),
    ] {
        ask.call(&[("c", "s", arguments)]);
        world.begun().await.done(result);
        ask = world.ask().await;
    }
    ask.say("끝");
    assert_eq!(world.turn_end().await, TurnEnd::Done);
}
