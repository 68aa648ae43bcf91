//! A session whose last turn was cut: what became of its calls.

use crate::world::*;
use gjc_entry::{Label, Level};
use gjc_log::fs::sim::SimFs;
use gjc_protocol::{Command, EventBody, StepName};
use gjc_tools::Run;
use testkit::log::{Bench, add};
use testkit::session::{calls, result, user};

/// A machine with a session that was cut when `x` was answered and `y`, `z` were not.
async fn cut() -> Bench<SimFs> {
    let bench = sim();
    let mut writer = bench.create();
    add(&mut writer, user("일"));
    add(&mut writer, calls("음", &[("x", "t", "{}"), ("y", "t", "{}"), ("z", "gone", "{}")]));
    add(&mut writer, result("x", "t", "하나"));
    let lsn = writer.want_durable();
    gjc_log::durable(&mut writer.storage(), lsn).await.unwrap();
    bench
}

fn open(bench: &Bench<SimFs>, clearance: Level, recovers: Recovers) -> World {
    let mut setup = Setup::new(bench);
    setup.clearance = clearance;
    let tools = vec![setup.tool("t", Run::Serial).recovers(recovers)];
    setup.set(tools);
    setup.start(bench.open().unwrap().0.value, true)
}

#[tokio::test]
async fn an_unanswered_call_is_answered_with_what_its_tool_knows() {
    for (recovers, expected, stored) in [
        (Recovers::Done("둘", level(Level::Internal)), "둘", true),
        (Recovers::NotDone, "It did not happen", true),
        (Recovers::Unknown, "interrupted: outcome unknown", false),
        (Recovers::Panics, "interrupted: outcome unknown", false),
    ] {
        let bench = cut().await;
        let mut world = open(&bench, Level::Restricted, recovers);
        let ask = world.say("계속").await;
        let results = ask.results();
        assert_eq!(results.len(), 3, "{recovers:?}");
        assert!(results[0].1.contains("하나"));
        assert!(results[1].1.contains(expected), "{recovers:?}: {results:?}");
        assert!(results[2].1.contains("interrupted: outcome unknown"), "its tool is gone: {results:?}");
        ask.say("네");
        world.turn_end().await;
        // A face that reads from the beginning sees the result that came late.
        assert_eq!(world.face.results().iter().any(|(id, text)| id == "y" && text.contains(expected)), stored);
        let raised = matches!(recovers, Recovers::Done(..));
        assert_eq!(world.snapshot().await.label.level == Level::Internal, raised);
        world.close().await;
        // The next start has nothing to ask.
        let world = open(&bench, Level::Restricted, Recovers::Done("다시", Label::PUBLIC_TRUSTED));
        world.snapshot().await;
        assert!(!serde_json::to_string(&world.snapshot().await.messages).unwrap().contains("다시"));
    }
}

#[tokio::test]
async fn a_recovered_output_above_the_clearance_stays_outside_and_the_session_goes_on() {
    let bench = cut().await;
    let mut world = open(&bench, Level::Public, Recovers::Done("연봉", level(Level::Confidential)));
    let ask = world.say("계속").await;
    assert!(ask.results()[1].1.contains("may know no more than PUBLIC"), "{:?}", ask.results());
    assert!(!ask.text().contains("연봉"));
    ask.say("네");
    world.turn_end().await;
    assert!(!world.face.names().contains(&"error".into()));
    assert!(!contains(&bench.bytes(), "연봉".as_bytes()));
}

#[tokio::test]
async fn commands_are_answered_while_a_tool_is_asked_what_became_of_its_call() {
    for end in [Command::Abort, Command::Close] {
        let bench = cut().await;
        let mut world = open(&bench, Level::Restricted, Recovers::Never);
        assert_eq!(world.snapshot().await.step, StepName::Running);
        world.accepted(typed("기다림")).await;
        if matches!(end, Command::Abort) {
            world.accepted(end).await;
            let ask = world.ask().await;
            assert!(ask.text().contains("기다림") && ask.text().contains("outcome unknown"));
            ask.say("네");
            world.turn_end().await;
        } else {
            world.done(end).await;
            world.face.until(|body| *body == EventBody::Closed).await;
        }
    }
}

#[tokio::test]
async fn a_call_of_an_aborted_answer_is_not_asked_about() {
    let bench = sim();
    let mut world = Setup::new(&bench).usual_tools().start(bench.create(), false);
    let ask = world.say("일").await;
    ask.send(gjc_llm::StreamEvent::BlockStart {
        index: 0,
        kind: gjc_llm::BlockKind::ToolCall { id: "c".into(), name: "t".into() },
    });
    ask.send(gjc_llm::StreamEvent::Delta { index: 0, text: "{".into() });
    world.face.until(|body| matches!(body, EventBody::CallDelta { .. })).await;
    world.accepted(Command::Abort).await;
    world.turn_end().await;
    world.close().await;
    let mut world = open(&bench, Level::Restricted, Recovers::Never);
    world.say("계속").await.say("네");
    world.turn_end().await;
}
