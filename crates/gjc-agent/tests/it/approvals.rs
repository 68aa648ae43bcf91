//! A person is asked before a call runs: what asks, what an answer allows, and how an ask ends.

use crate::world::*;
use async_trait::async_trait;
use gjc_entry::{ApprovalMode, Label, Origin};
use gjc_flow::{Call, Permits};
use gjc_log::fs::sim::SimFs;
use gjc_protocol::{
    About, Answer, Approval, AskEnd, Asked, Command, EventBody, Reach, Refusal, Remembers, StepName, TurnEnd,
};
use gjc_tools::{Effects, Output, Preview, Run, Shown, Tool, ToolCtx, ToolOutput, ToolSpec, Tools};
use serde_json::json;
use serde_json::value::RawValue;
use std::sync::Arc;
use testkit::log::Bench;

/// A session in which `look` reads, `change` changes files and `act` acts outside.
fn with(mode: ApprovalMode, answers: bool) -> (Bench<SimFs>, World) {
    let bench = sim();
    let mut setup = Setup::new(&bench);
    setup.set(vec![
        setup.tool("look", Run::Parallel),
        setup.tool("note", Run::Serial).effects(Effects::Session),
        setup.tool("change", Run::Serial).effects(Effects::Workspace),
        setup.tool("act", Run::Serial).effects(Effects::Outside),
    ]);
    (setup.config.approval, setup.config.answers) = (mode, answers);
    let world = setup.start(bench.create(), false);
    (bench, world)
}

fn answer(ask: &str, value: Answer) -> Command {
    Command::Answer { ask: ask.into(), value }
}

fn deny(words: &str) -> Answer {
    Answer::Deny { words: Some(words.into()) }
}

impl World {
    async fn asked(&mut self) -> Asked {
        match self.face.until(|body| matches!(body, EventBody::Asked(_))).await {
            EventBody::Asked(asked) => asked,
            _ => unreachable!(),
        }
    }

    async fn answered(&mut self) -> (String, AskEnd) {
        match self.face.until(|body| matches!(body, EventBody::Answered { .. })).await {
            EventBody::Answered { ask, end } => (ask, end),
            _ => unreachable!(),
        }
    }
}

#[track_caller]
fn approval(asked: &Asked) -> &Approval {
    match &asked.about {
        About::Approval(approval) => approval,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn each_mode_asks_for_what_it_says() {
    use ApprovalMode::{Ask, AutoEdit, Full, ReadOnly};
    // A tool that does not say which file it changes may change any: `auto-edit` asks for it too.
    for (mode, asks, refuses) in [
        (Full, &[][..], &[][..]),
        (Ask, &["change", "act"], &[]),
        (AutoEdit, &["change", "act"], &[]),
        (ReadOnly, &[], &["change", "act"]),
    ] {
        let (_bench, mut world) = with(mode, true);
        for (n, tool) in ["look", "note", "change", "act"].into_iter().enumerate() {
            world.say(tool).await.call(&[(&format!("c{n}"), tool, "{}")]);
            if refuses.contains(&tool) {
                let told = world.face.message("toolResult").await;
                assert!(told.contains("this session is read-only") && told.contains("hint: "), "{mode:?} {told}");
            } else {
                if asks.contains(&tool) {
                    let asked = world.asked().await;
                    assert_eq!(approval(&asked).tool, tool);
                    assert!(world.started.try_recv().is_err(), "{tool} runs before it was allowed");
                    world.done(answer(&asked.ask, Answer::Once)).await;
                }
                let call = world.begun().await;
                assert_eq!(call.tool, tool, "{mode:?}");
                call.done("됨");
            }
            world.ask().await.say("네");
            world.turn_end().await;
        }
        let count = world.face.names().iter().filter(|name| *name == "asked").count();
        assert_eq!(count, asks.len(), "{mode:?}");
    }
}

#[tokio::test]
async fn where_nobody_is_nobody_is_asked_and_the_model_hears_why() {
    let (_bench, mut world) = with(ApprovalMode::Ask, false);
    world.say("일").await.call(&[("a", "look", "{}"), ("b", "act", "{}")]);
    world.begun().await.done("봄");
    let results = world.ask().await.results();
    assert!(results[1].1.contains("nobody is asked") && results[1].1.contains("--approval full"), "{results:?}");
    assert!(!world.face.names().contains(&"asked".into()));
}

#[tokio::test]
async fn the_session_goes_on_being_asked_and_each_ask_has_one_answer() {
    let (_bench, mut world) = with(ApprovalMode::Ask, true);
    world.say("일").await.call(&[("a", "act", r#"{"글":"하나"}"#)]);
    let asked = world.asked().await;
    let told = approval(&asked);
    assert_eq!((told.reach, told.remembers, told.cut), (Reach::Outside, Remembers::Call, false));
    assert_eq!(told.preview.as_deref(), Some(r#"{"글":"하나"}"#));
    // A face that comes now, or was too slow, learns of it and can answer.
    let snapshot = world.snapshot().await;
    assert_eq!((snapshot.step, &snapshot.asked), (StepName::Deciding, &vec![asked.clone()]));
    assert_eq!(snapshot.approval, ApprovalMode::Ask);
    for (value, code) in [
        (Answer::Reply { choices: vec![0], text: None }, "wrong_answer"),
        (Answer::Reply { choices: Vec::new(), text: Some("네".into()) }, "wrong_answer"),
    ] {
        assert_eq!(world.refused(answer(&asked.ask, value)).await, code);
    }
    assert_eq!(world.refused(answer("a99", Answer::Once)).await, "unknown_ask");
    assert_eq!(world.done(answer(&asked.ask, Answer::Once)).await, json!({"ask": asked.ask}));
    assert_eq!(world.refused(answer(&asked.ask, Answer::Once)).await, "unknown_ask");
    assert_eq!(world.answered().await, (asked.ask, AskEnd::Once));
    assert!(world.snapshot().await.asked.is_empty());
    world.begun().await.done("됨");
    world.ask().await.say("네");
    world.turn_end().await;
}

#[tokio::test]
async fn several_calls_queue_and_a_no_reaches_the_model_with_the_person_s_words() {
    let (_bench, mut world) = with(ApprovalMode::Ask, true);
    world.say("일").await.call(&[("a", "act", "{\"n\":1}"), ("b", "change", "{}"), ("c", "act", "{\"n\":2}")]);
    let first = world.asked().await;
    world.done(answer(&first.ask, deny("그건 하지 마세요"))).await;
    let second = world.asked().await;
    assert_ne!(first.ask, second.ask);
    world.done(answer(&second.ask, Answer::Deny { words: None })).await;
    let third = world.asked().await;
    world.done(answer(&third.ask, Answer::Once)).await;
    world.begun().await.done("셋");
    let ask = world.ask().await;
    let results = ask.results();
    assert!(results[0].1.contains("does not allow it") && results[0].1.contains("그건 하지 마세요"), "{results:?}");
    assert!(results[1].1.contains("does not allow it") && results[2].1.contains("셋"), "{results:?}");
    // Their words are their own: nobody may change them later.
    let stored = world.face.events.iter().find_map(|event| match &event.body {
        EventBody::Message { message, .. } if message["toolCallId"] == "a" => Some(message.clone()),
        _ => None,
    });
    let words = &stored.unwrap()["content"][1];
    assert_eq!((&words["text"], &words["gjcOrigin"]), (&json!("그건 하지 마세요"), &json!(Origin::Ask.as_str())));
}

#[tokio::test]
async fn for_this_session_means_the_same_call_and_this_process() {
    let (bench, mut world) = with(ApprovalMode::Ask, true);
    world.say("일").await.call(&[("a", "act", r#"{"n":1}"#)]);
    let asked = world.asked().await;
    world.done(answer(&asked.ask, Answer::Session)).await;
    world.begun().await.done("됨");
    // The same once more is not asked for; anything else is.
    world.ask().await.call(&[("b", "act", r#"{"n":1}"#)]);
    world.begun().await.done("됨");
    world.ask().await.call(&[("c", "act", r#"{"n":1 }"#)]);
    let asked = world.asked().await;
    world.done(answer(&asked.ask, Answer::Once)).await;
    world.begun().await.done("됨");
    world.ask().await.call(&[("d", "change", r#"{"n":1}"#)]);
    let asked = world.asked().await;
    world.done(answer(&asked.ask, Answer::Deny { words: None })).await;
    world.ask().await.say("네");
    world.turn_end().await;
    world.close().await;
    // Nothing of it is in the file: a process that goes on asks again.
    let mut setup = Setup::new(&bench);
    setup.set(vec![setup.tool("act", Run::Serial).effects(Effects::Outside)]);
    (setup.config.approval, setup.config.answers) = (ApprovalMode::Ask, true);
    let mut world = setup.start(bench.open().unwrap().0.value, true);
    world.say("다시").await.call(&[("e", "act", r#"{"n":1}"#)]);
    assert_eq!(world.asked().await.ask, "a1");
}

#[tokio::test]
async fn an_ask_ends_with_the_turn_and_with_the_session() {
    // An abort.
    let (_bench, mut world) = with(ApprovalMode::Ask, true);
    world.say("일").await.call(&[("a", "act", "{}"), ("b", "act", "{}")]);
    let asked = world.asked().await;
    world.accepted(Command::Abort).await;
    assert_eq!(world.answered().await, (asked.ask.clone(), AskEnd::Withdrawn));
    assert_eq!(world.turn_end().await, TurnEnd::Aborted);
    let results = world.face.results();
    assert!(results[0].1.contains("nobody allowed it") && results[1].1.contains("not run"), "{results:?}");
    assert_eq!(world.refused(answer(&asked.ask, Answer::Once)).await, "unknown_ask");
    assert!(world.started.try_recv().is_err());

    // A close.
    world.say("또").await.call(&[("c", "act", "{}")]);
    world.asked().await;
    let events = world.close().await;
    assert!(events.iter().any(|event| matches!(event.body, EventBody::Answered { end: AskEnd::Withdrawn, .. })));

    // Finish: nobody will answer any more, so nothing waits for ever.
    let (_bench, mut world) = with(ApprovalMode::Ask, true);
    world.say("일").await.call(&[("a", "act", "{}")]);
    world.asked().await;
    let finishing = tokio::spawn({
        let handle = world.handle.clone();
        async move { handle.call(Command::Finish).await }
    });
    assert_eq!(world.answered().await.1, AskEnd::Withdrawn);
    world.ask().await.call(&[("b", "act", "{}")]);
    let ask = world.ask().await;
    assert!(ask.results()[0].1.contains("nobody allowed it"));
    ask.say("네");
    soon("the end", finishing).await.unwrap();

    // Every face is gone.
    let (bench, mut world) = with(ApprovalMode::Ask, true);
    world.say("일").await.call(&[("a", "act", "{}")]);
    world.asked().await;
    let World { handle, face, mut asks, actor, .. } = world;
    drop((handle, face));
    soon("a request", asks.recv()).await.unwrap().say("네");
    soon("the end of the actor", actor).await.unwrap();
    assert!(String::from_utf8(bench.bytes()).unwrap().contains("nobody allowed it"));
}

#[tokio::test]
async fn what_the_flow_blocks_is_not_asked_for() {
    let bench = sim();
    let mut setup = Setup::new(&bench);
    let act = setup.tool("act", Run::Serial).effects(Effects::Outside);
    setup.set(vec![act.reads(level(gjc_entry::Level::Confidential)).writes(gjc_entry::Level::Public)]);
    (setup.config.approval, setup.config.answers) = (ApprovalMode::Ask, true);
    let mut world = setup.start(bench.create(), false);
    world.say("일").await.call(&[("a", "act", "{}")]);
    assert!(world.ask().await.results()[0].1.contains("write-down"));
    assert!(!world.face.names().contains(&"asked".into()));
}

/// A tool whose preview fails and tells of something that nobody vouches for.
struct Tells(Gate);

#[async_trait]
impl Tool for Tells {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn spec(&self, shown: &Shown) -> Option<ToolSpec> {
        self.0.spec(shown)
    }

    fn plan(&self, ctx: &ToolCtx, input: &RawValue) -> Result<Call, Refusal> {
        self.0.plan(ctx, input)
    }

    fn preview(&self, _: &ToolCtx, _: &Call) -> Result<Preview, ToolOutput> {
        Err(Output::from(Label { trusted: false, ..Label::PUBLIC_TRUSTED }).text("낯선 글이 있다").error().done())
    }

    async fn run(&self, ctx: ToolCtx, call: Call, permits: Permits) -> ToolOutput {
        self.0.run(ctx, call, permits).await
    }
}

#[tokio::test]
async fn what_a_preview_tells_has_its_label() {
    let bench = sim();
    let mut setup = Setup::new(&bench);
    let tool = Tells(setup.tool("change", Run::Serial).effects(Effects::Workspace));
    setup.config.tools = Tools::new(vec![Arc::new(tool)]);
    (setup.config.approval, setup.config.answers) = (ApprovalMode::Ask, true);
    let mut world = setup.start(bench.create(), false);
    world.say("일").await.call(&[("a", "change", "{}")]);
    let results = world.ask().await.results();
    assert!(results[0].1.contains("낯선 글이 있다"), "{results:?}");
    assert!(!world.snapshot().await.label.trusted);
    assert!(!world.face.names().contains(&"asked".into()) && world.started.try_recv().is_err());
}

#[tokio::test]
async fn an_answer_raises_no_label_and_restores_no_trust() {
    let (_bench, mut world) = with(ApprovalMode::Ask, true);
    world.say("일").await.call(&[("a", "look", "{}")]);
    world.begun().await.output(labelled("낯선 글", Label { trusted: false, ..Label::PUBLIC_TRUSTED }));
    world.ask().await.call(&[("b", "act", "{}")]);
    let asked = world.asked().await;
    world.done(answer(&asked.ask, deny("아니요"))).await;
    world.ask().await.say("네");
    world.turn_end().await;
    assert!(!world.snapshot().await.label.trusted);
}

#[tokio::test]
async fn the_file_says_in_which_mode_a_session_was_last() {
    use gjc_context::{Approved, Folds};
    use gjc_entry::Leaf;
    let bench = sim();
    let of = |writer: &gjc_log::Writer<SimFs>| Folds::default().get::<Approved>(writer, Leaf::Current).unwrap().0;
    let mut open = bench.create();
    for (mode, expected) in [
        (ApprovalMode::Full, None),
        (ApprovalMode::ReadOnly, Some(ApprovalMode::ReadOnly)),
        (ApprovalMode::ReadOnly, Some(ApprovalMode::ReadOnly)),
        (ApprovalMode::Full, Some(ApprovalMode::Full)),
    ] {
        let mut setup = Setup::new(&bench).usual_tools();
        setup.config.approval = mode;
        let mut world = setup.start(open, false);
        world.say("말").await.say("네");
        world.turn_end().await;
        world.close().await;
        open = bench.open().unwrap().0.value;
        assert_eq!(of(&open), expected, "{mode:?}");
    }
    let text = String::from_utf8(bench.bytes()).unwrap();
    assert_eq!(text.matches("gjc.approval").count(), 2, "written when it changes, and no more");
}
