//! Faces that read, that are slow, that are dead or gone: none of them changes anything for another.

use crate::world::*;
use gjc_llm::StreamEvent;
use gjc_protocol::{EventBody, StepName};

#[tokio::test]
async fn a_face_that_reads_misses_nothing_whatever_others_do_and_memory_is_bounded() {
    let (_bench, mut world) = usual();
    let mut slow = Face::new(world.handle.subscribe());
    let mut dead = world.handle.subscribe();
    drop(world.handle.subscribe());
    slow.next().await;
    let ask = world.say("길게").await;
    ask.begin("시작");
    world.face.until(|body| matches!(body, EventBody::TextDelta { .. })).await;
    let piece = "가".repeat(4000);
    let (mut read, mut most) = (String::new(), (0, 0));
    for n in 0..1500 {
        ask.send(StreamEvent::Delta { index: 0, text: format!("{n} {piece}") });
        match world.face.until(|body| matches!(body, EventBody::TextDelta { .. })).await {
            EventBody::TextDelta { text, .. } => read.push_str(&text),
            _ => unreachable!(),
        }
        most = (most.0.max(dead.waiting().0), most.1.max(dead.waiting().1));
        if n % 100 == 0 {
            slow.next().await;
        }
    }
    ask.finish();
    world.turn_end().await;
    let seqs: Vec<u64> = world.face.events.iter().map(|event| event.seq).collect();
    assert!(seqs.windows(2).all(|two| two[1] == two[0] + 1), "the first face misses a number");
    assert!(read.len() > 1500 * 12_000);
    assert!(most.1 <= (8 << 20) + 64 * 1024 && most.0 <= 4097, "{most:?}");
    // The slow one gets all the text, merged, or is told to resync; then the snapshot has the state.
    let mut resync = 0;
    while let Some(body) = dead.next().await.map(|event| event.body) {
        match body {
            EventBody::Resync => resync = 1,
            EventBody::TurnEnded { .. } => break,
            _ => {}
        }
    }
    assert_eq!(resync, 1, "18 MB do not wait for a dead face");
    let snapshot = world.snapshot().await;
    assert_eq!(snapshot.messages.len(), 2);
    assert_eq!(snapshot.seq, world.face.events.last().unwrap().seq);
    let stored = texts_of(&snapshot.messages[1]);
    assert!(
        stored.len() > 1_400_000 && stored.contains("[cut here: the whole text"),
        "what is stored is what is shown"
    );
}

#[tokio::test]
async fn a_snapshot_while_the_answer_streams_holds_what_has_come_of_it() {
    let (_bench, mut world) = usual();
    assert_eq!(world.snapshot().await.step, StepName::Idle);
    let ask = world.say("하나").await;
    ask.begin("절반까지");
    world.face.until(|body| matches!(body, EventBody::TextDelta { .. })).await;
    world.accepted(typed("둘")).await;
    let mut late = Face::new(world.handle.subscribe());
    let snapshot = world.snapshot().await;
    assert_eq!((snapshot.step, snapshot.messages.len()), (StepName::Streaming, 1));
    assert_eq!(texts_of(&snapshot.partial.unwrap().message), "절반까지");
    assert_eq!(snapshot.queue[0].text, "둘");
    // What a face that comes late gets from here on is what the snapshot does not hold.
    ask.send(StreamEvent::Delta { index: 0, text: " 나머지".into() });
    late.until(|body| matches!(body, EventBody::TextDelta { .. })).await;
    assert_eq!(late.events.last().unwrap().seq, snapshot.seq + 1);
    ask.finish();
    world.turn_end().await;
    let ask = world.ask().await;
    ask.say("네");
    world.turn_end().await;
    let snapshot = world.snapshot().await;
    assert!(snapshot.partial.is_none() && snapshot.usage.total_tokens == 10, "{:?}", snapshot.usage);
}

#[tokio::test]
async fn progress_of_a_tool_comes_before_its_end() {
    let (_bench, mut world) = usual();
    world.say("일").await.call(&[("a", "s", "{\"n\": 1}")]);
    let call = world.begun().await;
    call.ctx.progress.show("하나");
    call.ctx.progress.show("둘");
    call.done("끝");
    world.ask().await.say("네");
    world.turn_end().await;
    let shown: String = world
        .face
        .events
        .iter()
        .filter_map(|event| match &event.body {
            EventBody::ToolProgress { text, .. } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(shown, "하나둘");
    let names = world.face.names();
    let at = |name: &str| names.iter().position(|other| other == name).unwrap();
    assert!(at("tool_started") < at("tool_progress") && at("tool_progress") < at("message toolResult"));
    assert!(at("message toolResult") < at("tool_ended"));
}
