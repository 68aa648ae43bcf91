//! What a person changes while a session runs takes effect with the next request, never with one that is under way.

use crate::world::*;
use gjc_entry::{Thinking, Tier};
use gjc_protocol::{Command, Outcome, Role, TurnEnd};
use serde_json::{Value, json};
use testkit::log::Bench;

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
