//! One prompt and its answer; what an abort leaves.

use crate::world::*;
use gjc_entry::{Origin, StopReason};
use gjc_llm::{BlockKind, ProviderError, StreamEvent};
use gjc_protocol::{Command, EventBody, PromptMode, StepName, TurnEnd};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use testkit::log::{Bench, texts};

#[tokio::test]
async fn a_turn_without_calls_tells_its_events_in_this_order_and_numbers_them_without_a_gap() {
    let (_bench, mut world) = usual();
    world.say("안녕").await.say("반가워요");
    assert_eq!(world.turn_end().await, TurnEnd::Done);
    assert_eq!(
        world.face.names(),
        [
            "session",
            "turn_started",
            "message user",
            "message_started",
            "text_delta",
            "message assistant",
            "usage",
            "turn_ended"
        ]
    );
    let seqs: Vec<u64> = world.face.events.iter().map(|event| event.seq).collect();
    assert_eq!(seqs, (seqs[0]..seqs[0] + 8).collect::<Vec<_>>());
    assert!(matches!(&world.face.events[0].body, EventBody::Session { resumed: false, file: Some(_), .. }));
}

#[tokio::test]
async fn what_a_finished_turn_has_said_survives_any_power_cut() {
    let (bench, mut world) = usual();
    for turn in 1..=3 {
        world.say(&format!("질문 {turn}")).await.say(&format!("답 {turn}"));
        world.turn_end().await;
        for seed in 0..60 {
            let cut = Bench::new(Arc::new(bench.fs.crash(seed)), Path::new("/agent"));
            let kept = texts(&cut.open().unwrap().0.value);
            assert_eq!(kept.len(), 2 * turn, "seed {seed}");
            assert_eq!(kept[2 * turn - 1], format!("답 {turn}"));
        }
    }
}

#[tokio::test]
async fn an_abort_while_the_answer_streams_keeps_the_partial_and_the_next_request_passes() {
    let (bench, mut world) = usual();
    let ask = world.say("이야기").await;
    ask.begin("옛날 옛적");
    ask.send(StreamEvent::BlockStart { index: 1, kind: BlockKind::ToolCall { id: "c".into(), name: "p".into() } });
    ask.send(StreamEvent::Delta { index: 1, text: "{\"pa".into() });
    world.face.until(|body| matches!(body, EventBody::CallDelta { .. })).await;
    world.accepted(Command::Abort).await;
    assert_eq!(world.turn_end().await, TurnEnd::Aborted);
    let snapshot = world.snapshot().await;
    assert_eq!(snapshot.messages[1]["stopReason"], "aborted");
    assert_eq!(snapshot.step, StepName::Idle);
    let ask = world.say("계속").await;
    assert!(ask.text().contains("옛날 옛적"));
    ask.say("끝");
    assert_eq!(world.turn_end().await, TurnEnd::Done);
    world.close().await;
    assert_eq!(texts(&bench.open().unwrap().0.value), ["이야기", "옛날 옛적", "계속", "끝"]);
}

#[tokio::test]
async fn an_abort_before_the_first_byte_stores_nothing_of_an_answer() {
    let (_bench, mut world) = usual();
    let ask = world.say("하나").await;
    world.accepted(Command::Abort).await;
    assert_eq!(world.turn_end().await, TurnEnd::Aborted);
    assert!(ask.cancel.is_cancelled());
    assert_eq!(world.snapshot().await.messages.len(), 1);
    world.say("둘").await.say("네");
    assert_eq!(world.turn_end().await, TurnEnd::Done);
}

#[tokio::test]
async fn an_abort_ends_the_turn_also_when_the_adapter_is_deaf_or_answers_it_with_an_error() {
    for error in [
        None,
        Some(ProviderError::Cut { replay_safe: false, why: "reset".into() }),
        Some(ProviderError::Retry { after: None, why: "busy".into() }),
    ] {
        let bench = sim();
        let mut world = Setup::deaf(&bench).start(bench.create(), false);
        let ask = world.say("하나").await;
        ask.begin("부분");
        world.face.until(|body| matches!(body, EventBody::TextDelta { .. })).await;
        // The error is there before the actor looks again, and so is the abort.
        let abort = world.handle.call(Command::Abort);
        let keep = match error {
            Some(error) => {
                tokio::join!(abort, async { ask.fail(error) });
                None
            }
            None => {
                abort.await;
                Some(ask)
            }
        };
        assert_eq!(world.turn_end().await, TurnEnd::Aborted);
        assert!(!world.face.names().iter().any(|name| name == "error" || name == "retry"), "{:?}", world.face.names());
        assert_eq!(world.snapshot().await.messages[1]["stopReason"], "aborted");
        drop(keep);
    }
}

#[tokio::test]
async fn an_abort_while_tools_run_cancels_them_admits_what_they_give_and_starts_no_more() {
    let (_bench, mut world) = usual();
    world.say("일").await.call(&[("a", "p", "{}"), ("b", "q", "{}"), ("c", "s", "{}")]);
    let (first, second) = (world.begun().await, world.begun().await);
    world.accepted(Command::Abort).await;
    assert_eq!(world.turn_end().await, TurnEnd::Aborted);
    drop((first, second));
    let mut results = world.face.results();
    results.sort();
    assert_eq!(results[0], ("a".into(), "cancelled".into()));
    assert_eq!(results[1], ("b".into(), "cancelled".into()));
    assert!(results[2].1.starts_with("not run"), "{results:?}");
    let ask = world.say("그 다음").await;
    assert_eq!(ask.results().len(), 3, "every call has its result");
    ask.say("네");
    world.turn_end().await;
}

#[tokio::test]
async fn an_abort_while_a_retry_is_waited_for_ends_the_turn() {
    let (bench, mut world) = usual();
    world.say("하나").await.fail(ProviderError::Retry { after: None, why: "busy".into() });
    world.face.until(|body| matches!(body, EventBody::Retry { .. })).await;
    world.accepted(Command::Abort).await;
    assert_eq!(world.turn_end().await, TurnEnd::Aborted);
    bench.clock.advance(Duration::from_secs(600));
    assert_eq!(world.snapshot().await.messages.len(), 1);
    world.no_request();
}

#[tokio::test]
async fn an_abort_when_nothing_runs_is_refused() {
    let (_bench, mut world) = usual();
    assert_eq!(world.refused(Command::Abort).await, "nothing_running");
    world.say("하나").await.say("네");
    world.turn_end().await;
    assert_eq!(world.refused(Command::Abort).await, "nothing_running");
}

#[tokio::test]
async fn prompts_queued_during_an_aborted_turn_begin_the_next_one() {
    for mode in [PromptMode::Steer, PromptMode::FollowUp] {
        let (_bench, mut world) = usual();
        let _open = world.say("하나").await;
        world.accepted(said("둘", mode)).await;
        world.accepted(Command::Abort).await;
        assert_eq!(world.turn_end().await, TurnEnd::Aborted);
        let ask = world.ask().await;
        assert!(ask.text().contains("둘"));
        ask.say("네");
        assert_eq!(world.turn_end().await, TurnEnd::Done);
        assert!(world.snapshot().await.queue.is_empty());
    }
}

#[tokio::test]
async fn an_answer_that_reached_the_output_limit_ends_the_turn() {
    let (_bench, mut world) = usual();
    let ask = world.say("하나").await;
    ask.begin("길다");
    ask.send(StreamEvent::Stop(StopReason::Length));
    drop(ask);
    assert_eq!(world.turn_end().await, TurnEnd::Done);
    assert_eq!(world.snapshot().await.messages[1]["stopReason"], "length");
}

#[tokio::test]
async fn a_pasted_prompt_keeps_its_origin() {
    let (_bench, mut world) = usual();
    world.accepted(prompt("붙여넣기", Origin::Paste, PromptMode::Steer)).await;
    world.ask().await.say("네");
    world.turn_end().await;
    assert_eq!(world.snapshot().await.messages[0]["content"][0]["gjcOrigin"], "paste");
}
