//! What a session does at a provider's limits.

use crate::world::*;
use gjc_llm::ProviderError;
use gjc_protocol::{Command, EventBody, TurnEnd};
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3_600);

fn limit(after: Option<Duration>) -> ProviderError {
    ProviderError::Quota { after, why: "한도".into() }
}

fn patient(longest: Duration) -> (testkit::log::Bench<gjc_log::fs::sim::SimFs>, World) {
    let bench = sim();
    let mut setup = Setup::new(&bench).usual_tools();
    setup.config.wait_for_quota = Some(longest);
    let world = setup.start(bench.create(), false);
    (bench, world)
}

async fn wait(world: &mut World) -> Duration {
    match world.face.until(|body| matches!(body, EventBody::QuotaWait { .. })).await {
        EventBody::QuotaWait { left_ms, until, why } => {
            assert!(why == "한도" && until.ends_with('Z'), "{why} {until}");
            Duration::from_millis(left_ms)
        }
        _ => unreachable!(),
    }
}

#[tokio::test]
async fn the_countdown_is_told_until_the_very_moment_of_the_reset() {
    let (bench, mut world) = patient(HOUR);
    let ask = world.say("하나").await;
    let body = ask.body.clone();
    ask.fail(limit(Some(HOUR)));
    let mut told = Vec::new();
    let mut left = wait(&mut world).await;
    loop {
        told.push(left.as_secs());
        let step = (left / 2).max(Duration::from_secs(10)).min(left);
        bench.clock.advance(step - Duration::from_millis(1));
        world.snapshot().await;
        world.no_request();
        bench.clock.advance(Duration::from_millis(1));
        if step == left {
            break;
        }
        left = wait(&mut world).await;
    }
    assert_eq!(&told[..3], [3_600, 1_800, 900]);
    assert!(told.len() < 20 && told[told.len() - 1] <= 10, "{told:?}");
    let ask = world.ask().await;
    assert_eq!(ask.body, body, "the same request");
    // Once.
    ask.fail(limit(Some(HOUR)));
    assert_eq!(world.turn_end().await, TurnEnd::Failed);
    // A new turn may wait anew.
    world.say("둘").await.fail(limit(Some(Duration::from_secs(5))));
    assert_eq!(wait(&mut world).await, Duration::from_secs(5));
    bench.clock.advance(Duration::from_secs(5));
    world.ask().await.say("네");
    assert_eq!(world.turn_end().await, TurnEnd::Done);
}

#[tokio::test]
async fn an_abort_ends_the_wait_and_commands_are_answered_meanwhile() {
    let (bench, mut world) = patient(HOUR);
    world.say("하나").await.fail(limit(Some(HOUR)));
    wait(&mut world).await;
    assert_eq!(world.snapshot().await.messages.len(), 1);
    world.call(Command::Abort).await;
    assert_eq!(world.turn_end().await, TurnEnd::Aborted);
    bench.clock.advance(HOUR * 2);
    world.snapshot().await;
    world.no_request();
}

#[tokio::test]
async fn nothing_is_waited_for_that_is_too_far_or_not_known() {
    for after in [Some(HOUR + Duration::from_millis(1)), None] {
        let (_bench, mut world) = patient(HOUR);
        world.say("하나").await.fail(limit(after));
        let failed = world.face.until(|body| matches!(body, EventBody::Error { .. })).await;
        let EventBody::Error { code, hint, .. } = failed else { unreachable!() };
        assert_eq!((code.as_str(), hint.is_some()), ("provider_quota", after.is_some()));
        assert_eq!(world.turn_end().await, TurnEnd::Failed);
        assert!(!world.face.names().contains(&"quota_wait".into()));
    }
}

#[tokio::test]
async fn a_request_that_is_too_large_without_pictures_ends_the_turn_and_is_not_sent_again() {
    let (_bench, mut world) = usual();
    world.say("하나").await.fail(ProviderError::TooLarge("x".into()));
    let failed = world.face.until(|body| matches!(body, EventBody::Error { .. })).await;
    assert!(matches!(&failed, EventBody::Error { code, .. } if code == "context_overflow"), "{failed:?}");
    assert_eq!(world.turn_end().await, TurnEnd::Failed);
    world.no_request();
}
