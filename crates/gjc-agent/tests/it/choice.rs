//! What a person changes while a session runs takes effect with the next request, never with one that is under way.

use crate::world::*;
use gjc_agent::{Choice, Models};
use gjc_entry::{BoxFuture, Thinking, Tier};
use gjc_protocol::{Command, Outcome, Refusal, Role, TurnEnd};
use serde_json::{Value, json};
use std::sync::Arc;
use testkit::log::Bench;
use tokio::sync::Notify;

fn lines(bench: &Bench<gjc_log::fs::sim::SimFs>) -> Vec<Value> {
    String::from_utf8(bench.bytes()).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The kinds of entries, in order.
fn kinds(bench: &Bench<gjc_log::fs::sim::SimFs>) -> Vec<String> {
    let kind = |line: &Value| line["customType"].as_str().or(line["type"].as_str()).unwrap_or_default().to_owned();
    lines(bench).iter().map(kind).collect()
}

#[tokio::test]
async fn a_change_while_the_model_answers_stands_behind_its_answer() {
    let (bench, mut world) = usual();
    let ask = world.say("하나").await;
    let done = world.call(Command::SetThinking { level: Thinking::High }).await;
    assert!(matches!(done, Outcome::Done { value } if value == json!({"level": "high"})));
    world.call(Command::SetTier { tier: Tier::Default }).await;
    ask.say("네");
    assert_eq!(world.turn_end().await, TurnEnd::Done);
    let before = kinds(&bench);
    // Written with the end of the turn: whoever opens the session next finds them.
    let answer = before.iter().rposition(|kind| kind == "message").unwrap();
    assert_eq!(before[answer + 1..], ["thinking_level_change", "service_tier_change", "gjc.env"], "{before:?}");
    let ask = world.say("둘").await;
    assert_eq!(ask.json()["service_tier"], "standard_only");
    ask.say("네");
    world.turn_end().await;
    let kinds = kinds(&bench);
    let of = |name: &str| kinds.iter().filter(|kind| *kind == name).count();
    assert_eq!((of("thinking_level_change"), of("service_tier_change"), of("gjc.env")), (1, 1, 2));
}

#[tokio::test]
async fn a_change_while_nothing_runs_is_written_at_once_and_only_once() {
    let (bench, mut world) = usual();
    world.say("하나").await.say("네");
    world.turn_end().await;
    for _ in 0..2 {
        world.call(Command::SetTier { tier: Tier::Flex }).await;
    }
    world.call(Command::SetTier { tier: Tier::Auto }).await;
    world.close().await;
    let tiers: Vec<Value> = lines(&bench)
        .into_iter()
        .filter(|line| line["type"] == "service_tier_change")
        .map(|line| line["serviceTier"].clone())
        .collect();
    assert_eq!(tiers, [json!("flex"), Value::Null]);
}

#[tokio::test]
async fn a_model_that_is_not_there_is_refused_and_nothing_changes() {
    let (bench, mut world) = usual();
    world.say("하나").await.say("네");
    world.turn_end().await;
    let before = bench.bytes();
    let refused = world.call(Command::SetModel { model: "x/y".into(), role: Role::Default }).await;
    assert!(matches!(refused, Outcome::Refused(refusal) if refusal.code == "unknown_model"));
    assert_eq!(bench.bytes(), before);
}

/// Looks for one model until it is let go.
struct OneIsSlow {
    found: Choice,
    gate: Arc<Notify>,
}

impl Models for OneIsSlow {
    fn choose(&self, name: &str) -> BoxFuture<'static, Result<Choice, Refusal>> {
        let (mut choice, gate, slow) = (self.found.clone(), Arc::clone(&self.gate), name == "slow");
        choice.model.id = name.into();
        Box::pin(async move {
            if slow {
                gate.notified().await;
            }
            Ok(choice)
        })
    }
}

#[tokio::test]
async fn the_model_that_was_named_last_is_the_one_and_a_face_that_comes_late_knows_it() {
    let bench = sim();
    let mut setup = Setup::new(&bench).usual_tools();
    let config = &setup.config;
    let (provider, model, params) = (Arc::clone(&config.provider), config.model.clone(), config.params.clone());
    let gate = Arc::new(Notify::new());
    setup.config.models = Arc::new(OneIsSlow { found: Choice { provider, model, params }, gate: Arc::clone(&gate) });
    let mut world = setup.start(bench.create(), false);
    let set = |name: &str| world.done(Command::SetModel { model: name.into(), role: Role::Default });
    let let_go = async {
        // By then both are looked for.
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        gate.notify_one();
    };
    let (_, last, ()) = tokio::join!(set("slow"), set("quick"), let_go);
    assert_eq!(last["model"], "quick");
    assert_eq!(world.snapshot().await.model.model, "quick");
    // While an answer comes, the next one's: whoever lost events asks for nothing else.
    let ask = world.say("하나").await;
    world.done(Command::SetThinking { level: Thinking::High }).await;
    world.done(Command::SetTier { tier: Tier::Flex }).await;
    let set = world.done(Command::SetModel { model: "other".into(), role: Role::Default }).await;
    let now = world.snapshot().await;
    assert_eq!((now.thinking, now.tier, now.model.model.as_str()), (Thinking::High, Tier::Flex, "other"));
    assert_eq!(set["model"], "other");
    ask.say("네");
    world.turn_end().await;
}
