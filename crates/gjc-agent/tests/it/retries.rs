//! What is asked again, when, and what never is.

use crate::world::*;
use gjc_llm::{Backoff, ProviderError};
use gjc_protocol::{EventBody, TurnEnd};
use std::time::Duration;

fn busy() -> ProviderError {
    ProviderError::Retry { after: None, why: "혼잡".into() }
}

async fn delay(world: &mut World) -> Duration {
    match world.face.until(|body| matches!(body, EventBody::Retry { .. })).await {
        EventBody::Retry { delay_ms, why, .. } => {
            assert!(why.contains("혼잡") || why.contains("reset"), "{why}");
            Duration::from_millis(delay_ms)
        }
        _ => unreachable!(),
    }
}

#[tokio::test]
async fn a_busy_provider_is_asked_again_with_the_same_bytes_after_growing_waits_and_not_for_ever() {
    let (bench, mut world) = usual();
    let mut ask = world.say("하나").await;
    for attempt in 1..=Backoff::ATTEMPTS {
        let body = ask.body.clone();
        ask.fail(busy());
        let wait = delay(&mut world).await;
        assert!(wait >= Duration::from_millis(500 << (attempt - 1)) && wait <= Duration::from_secs(1 << (attempt - 1)));
        bench.clock.advance(wait - Duration::from_millis(1));
        world.snapshot().await;
        world.no_request();
        bench.clock.advance(Duration::from_millis(1));
        ask = world.ask().await;
        assert_eq!(ask.body, body);
    }
    ask.fail(busy());
    assert_eq!(world.turn_end().await, TurnEnd::Failed);
    assert_eq!(world.snapshot().await.messages.len(), 1, "nothing of a failed answer is stored");
    world.say("둘").await.say("네");
    assert_eq!(world.turn_end().await, TurnEnd::Done);
}

#[tokio::test]
async fn the_wait_that_the_provider_asks_for_is_kept_and_too_long_a_one_ends_the_turn() {
    let (bench, mut world) = usual();
    let after = |secs| ProviderError::Retry { after: Some(Duration::from_secs(secs)), why: "혼잡".into() };
    world.say("하나").await.fail(after(40));
    assert_eq!(delay(&mut world).await, Duration::from_secs(40));
    bench.clock.advance(Duration::from_secs(40));
    world.ask().await.fail(after(61));
    assert_eq!(world.turn_end().await, TurnEnd::Failed);
}

#[tokio::test]
async fn what_asking_again_cannot_mend_is_not_asked_again() {
    for (error, code) in [
        (ProviderError::Auth("x".into()), "provider_auth"),
        (ProviderError::BadRequest("x".into()), "provider_bad_request"),
        (ProviderError::Overflow("x".into()), "context_overflow"),
        (ProviderError::Quota { after: Some(Duration::from_secs(1)), why: "x".into() }, "provider_quota"),
    ] {
        let (bench, mut world) = usual();
        world.say("하나").await.fail(error);
        let failed = world.face.until(|body| matches!(body, EventBody::Error { .. })).await;
        assert!(matches!(&failed, EventBody::Error { code: told, .. } if told == code), "{failed:?}");
        assert_eq!(world.turn_end().await, TurnEnd::Failed);
        bench.clock.advance(Duration::from_secs(600));
        world.snapshot().await;
        world.no_request();
        assert!(!world.face.names().contains(&"retry".into()));
    }
}

#[tokio::test]
async fn a_cut_that_showed_nothing_is_asked_again_and_one_that_showed_something_keeps_it() {
    let (bench, mut world) = usual();
    world.say("하나").await.fail(ProviderError::Cut { replay_safe: true, why: "reset".into() });
    bench.clock.advance(delay(&mut world).await);
    let ask = world.ask().await;
    ask.begin("절반");
    ask.fail(ProviderError::Cut { replay_safe: false, why: "reset".into() });
    assert_eq!(world.turn_end().await, TurnEnd::Failed);
    let messages = world.snapshot().await.messages;
    assert_eq!((texts_of(&messages[1]).as_str(), messages[1]["stopReason"].as_str()), ("절반", Some("error")));
    assert!(messages[1]["errorMessage"].as_str().unwrap().contains("broke off"));
    let ask = world.say("계속").await;
    assert!(ask.text().contains("절반"), "what was paid for is sent");
    ask.say("끝");
    assert_eq!(world.turn_end().await, TurnEnd::Done);
}

#[tokio::test]
async fn a_retry_after_midnight_sends_the_bytes_of_the_day_before() {
    let (bench, mut world) = usual();
    let ask = world.say("하나").await;
    let body = ask.body.clone();
    bench.clock.advance(Duration::from_secs(24 * 3600));
    ask.fail(busy());
    bench.clock.advance(delay(&mut world).await);
    assert_eq!(world.ask().await.body, body);
}

#[tokio::test]
async fn the_bounds_of_the_retries_are_those_of_the_session() {
    let bench = sim();
    let mut setup = Setup::new(&bench).usual_tools();
    setup.config.retry = Backoff { attempts: 1, longest: Duration::from_millis(200) };
    let mut world = setup.start(bench.create(), false);
    world.say("하나").await.fail(busy());
    let wait = delay(&mut world).await;
    assert!(wait <= Duration::from_millis(200), "{wait:?}");
    bench.clock.advance(wait);
    world.ask().await.fail(busy());
    assert_eq!(world.turn_end().await, TurnEnd::Failed);
}
