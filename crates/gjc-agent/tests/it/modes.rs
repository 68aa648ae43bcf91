//! Plan mode: what is shown and run, what the model hears, and how it follows the path.

use crate::world::*;
use gjc_entry::{ApprovalMode, EntryId};
use gjc_log::fs::sim::SimFs;
use gjc_log::fs::{Fs, FsFile, Open};
use gjc_protocol::{Command, EventBody, Mode};
use gjc_tools::{Ask, Effects, Run, Tool, Tools};
use serde_json::{Value, json};
use std::sync::Arc;
use testkit::log::Bench;

fn setup(bench: &Bench<SimFs>) -> Setup {
    let mut setup = Setup::new(bench);
    let tools: Vec<Arc<dyn Tool>> = vec![
        Arc::new(setup.tool("look", Run::Parallel)),
        Arc::new(setup.tool("note", Run::Serial).effects(Effects::Session)),
        Arc::new(setup.tool("change", Run::Serial).effects(Effects::Workspace)),
        Arc::new(setup.tool("act", Run::Serial).effects(Effects::Outside)),
        Arc::new(Ask),
    ];
    setup.config.tools = Tools::new(tools);
    (setup.config.approval, setup.config.answers) = (ApprovalMode::Full, true);
    setup
}

fn set(mode: Mode) -> Command {
    Command::SetMode { mode }
}

fn tools(request: &Value) -> Vec<&str> {
    request["tools"].as_array().into_iter().flatten().filter_map(|tool| tool["name"].as_str()).collect()
}

const ALL: &[&str] = &["look", "note", "change", "act", "ask"];
const LOOKING: &[&str] = &["look", "ask"];

#[tokio::test]
async fn in_plan_mode_only_looking_and_asking_is_shown_and_runs() {
    let bench = sim();
    let mut world = setup(&bench).start(bench.create(), false);
    let ask = world.say("처음").await;
    assert_eq!(tools(&ask.json()), ALL);
    assert_eq!(world.refused(set(Mode::Plan)).await, "busy");
    ask.say("네");
    world.turn_end().await;
    assert_eq!(world.done(set(Mode::Plan)).await, json!({"mode": "plan"}));
    assert_eq!(
        world.face.until(|body| matches!(body, EventBody::Mode { .. })).await,
        EventBody::Mode { mode: Mode::Plan }
    );
    assert_eq!(world.snapshot().await.mode, Mode::Plan);

    let ask = world.say("계획").await;
    assert_eq!(tools(&ask.json()), LOOKING);
    assert_eq!(ask.text().matches("Plan mode is on.").count(), 1);
    ask.call(&[
        ("a", "look", "{}"),
        ("b", "change", "{}"),
        ("c", "act", "{}"),
        ("d", "note", "{}"),
        ("e", "없음", "{}"),
    ]);
    world.begun().await.done("봄");
    let ask = world.ask().await;
    let results = ask.results();
    for refused in &results[1..4] {
        assert!(refused.1.contains("does not run in plan mode"), "{results:?}");
    }
    assert!(results[4].1.contains("there is no tool") && results[4].1.contains("look, ask"), "{results:?}");
    assert!(world.started.try_recv().is_err());
    assert_eq!(tools(&ask.json()), LOOKING);
    ask.say("이렇게 하겠습니다");
    world.turn_end().await;

    world.done(set(Mode::None)).await;
    let ask = world.say("하세요").await;
    assert_eq!(tools(&ask.json()), ALL);
    assert!(ask.text().contains("Plan mode is over"));
    ask.call(&[("f", "change", "{}")]);
    world.begun().await.done("함");
    world.ask().await.say("네");
    world.turn_end().await;
    let written = String::from_utf8(bench.bytes()).unwrap();
    let modes: Vec<Value> = written
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|line| line["type"] == "mode_change")
        .map(|line| line["mode"].clone())
        .collect();
    assert_eq!(modes, ["plan", "none"], "the family's words");
    assert!(written.contains(r#""gjcOrigin":"mode""#));
}

#[tokio::test]
async fn the_same_mode_again_writes_nothing_and_back_and_forth_says_nothing_to_the_model() {
    let bench = sim();
    let mut world = setup(&bench).start(bench.create(), false);
    world.say("처음").await.say("네");
    world.turn_end().await;
    let before = bench.bytes();
    world.done(set(Mode::None)).await;
    assert_eq!(bench.bytes(), before);
    world.done(set(Mode::Plan)).await;
    world.done(set(Mode::None)).await;
    let ask = world.say("둘").await;
    assert!(!ask.text().contains("Plan mode"), "{}", ask.text());
}

#[tokio::test]
async fn plan_mode_is_kept_on_resume_and_follows_the_path() {
    let bench = sim();
    let mut world = setup(&bench).start(bench.create(), false);
    world.say("처음").await.say("첫 답");
    world.turn_end().await;
    let first = world.face.events.iter().rev().find_map(|event| match &event.body {
        EventBody::Message { entry, .. } => Some(entry.clone()),
        _ => None,
    });
    world.done(set(Mode::Plan)).await;
    world.say("계획").await.say("계획입니다");
    world.turn_end().await;
    world.close().await;

    let mut world = setup(&bench).start(bench.open().unwrap().0.value, true);
    assert_eq!(world.snapshot().await.mode, Mode::Plan);
    let ask = world.say("더").await;
    assert_eq!(tools(&ask.json()), LOOKING);
    assert_eq!(ask.text().matches("Plan mode is on.").count(), 1, "told once");
    ask.say("네");
    world.turn_end().await;
    // Before plan mode nobody has heard of it.
    world.done(Command::MoveLeaf { to: first.map(|id| EntryId::new(&id)) }).await;
    assert!(matches!(
        world.face.until(|body| matches!(body, EventBody::Mode { .. })).await,
        EventBody::Mode { mode: Mode::None }
    ));
    assert_eq!(world.snapshot().await.mode, Mode::None);
    let ask = world.say("다른 길").await;
    assert_eq!(tools(&ask.json()), ALL);
    assert!(!ask.text().contains("Plan mode"));
}

#[tokio::test]
async fn plan_mode_of_another_program_counts_and_one_that_it_has_paused_does_not() {
    for (word, shown) in [("plan", LOOKING), ("plan_paused", ALL), ("none", ALL), ("unheard_of", ALL)] {
        let bench = sim();
        let mut world = setup(&bench).start(bench.create(), false);
        world.say("처음").await.say("네");
        world.turn_end().await;
        world.close().await;
        let last: Value =
            serde_json::from_slice(bench.bytes().trim_ascii().rsplit(|b| *b == b'\n').next().unwrap()).unwrap();
        let line = json!({"type": "mode_change", "id": "0badcafe", "parentId": last["id"], "timestamp": last["timestamp"],
                          "mode": word, "data": {"planFilePath": "local://계획.md"}});
        let file = bench.fs.open(&bench.path(), Open::Append).unwrap();
        file.append(format!("{line}\n").as_bytes()).unwrap();
        let mut world = setup(&bench).start(bench.open().unwrap().0.value, true);
        let ask = world.say("다음").await;
        assert_eq!(tools(&ask.json()), shown, "{word}");
        assert_eq!(ask.text().contains("Plan mode is on."), word == "plan");
    }
}

#[tokio::test]
async fn a_question_is_answered_by_the_person_while_the_session_serves_commands() {
    use gjc_protocol::{About, Answer};
    let bench = sim();
    let mut world = setup(&bench).start(bench.create(), false);
    let question = r#"{"question":"어느 것?","choices":[{"label":"가"},{"label":"나","about":"빠르다"}]}"#;
    world.say("물어봐").await.call(&[("a", "ask", question)]);
    let EventBody::Asked(asked) = world.face.until(|body| matches!(body, EventBody::Asked(_))).await else { panic!() };
    let About::Question(told) = &asked.about else { panic!("{asked:?}") };
    assert_eq!((told.question.as_str(), told.choices[1].label.as_str(), told.several), ("어느 것?", "나", false));
    assert_eq!(world.snapshot().await.asked, std::slice::from_ref(&asked));
    let reply = |choices, text: Option<&str>| Command::Answer {
        ask: asked.ask.clone(),
        value: Answer::Reply { choices, text: text.map(Into::into) },
    };
    for wrong in [reply(vec![2], None), reply(vec![0, 1], None), reply(Vec::new(), Some("  "))] {
        assert_eq!(world.refused(wrong).await, "wrong_answer");
    }
    world.done(reply(vec![1], Some("하지만 천천히"))).await;
    let told = world.face.message("toolResult").await;
    assert_eq!(told, "나\n하지만 천천히");
    let ask = world.ask().await;
    assert!(ask.text().contains("하지만 천천히"));
    ask.say("네");
    world.turn_end().await;
    let written = String::from_utf8(bench.bytes()).unwrap();
    assert_eq!(written.matches(r#""gjcOrigin":"ask""#).count(), 2, "choice and words are the person's");
    // An abort takes the question back.
    world.say("또").await.call(&[("b", "ask", r#"{"question":"그리고?"}"#)]);
    world.face.until(|body| matches!(body, EventBody::Asked(_))).await;
    world.accepted(Command::Abort).await;
    world.turn_end().await;
    assert!(world.face.results().last().unwrap().1.contains("nobody answered"));
    assert!(world.snapshot().await.asked.is_empty());
}

#[tokio::test]
async fn where_nobody_answers_the_tool_is_not_there_and_the_session_keeps_it() {
    let bench = sim();
    let mut setup = setup(&bench);
    setup.config.answers = false;
    let mut world = setup.start(bench.create(), false);
    let ask = world.say("처음").await;
    assert_eq!(tools(&ask.json()), ["look", "note", "change", "act"]);
    ask.call(&[("a", "ask", r#"{"question":"뭐?"}"#)]);
    let ask = world.ask().await;
    assert!(ask.results()[0].1.contains("nobody is asked"), "{:?}", ask.results());
    ask.say("네");
    world.turn_end().await;
    let written = String::from_utf8(bench.bytes()).unwrap();
    assert!(written.contains(r#""allTools":["look","note","change","act","ask"]"#), "{written}");
}
