//! Every way in which a session ends.

use crate::world::*;
use gjc_protocol::{Command, EventBody, TurnEnd};
use testkit::log::texts;

#[derive(Debug, Clone, Copy)]
enum When {
    Idle,
    Streaming,
    Running,
}

// With two threads the answer races with what the actor does after it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn close_stores_everything_frees_the_lock_before_it_answers_and_is_the_last_event_of_every_face() {
    for when in [When::Idle, When::Streaming, When::Running] {
        let (bench, mut world) = usual();
        let mut other = Face::new(world.handle.subscribe());
        world.say("하나").await.say("네");
        world.turn_end().await;
        match when {
            When::Idle => {}
            When::Streaming => {
                world.say("둘").await.begin("부분");
                world.face.until(|body| matches!(body, EventBody::TextDelta { .. })).await;
            }
            When::Running => {
                world.say("둘").await.call(&[("a", "p", "{}")]);
                world.begun().await;
            }
        }
        assert_eq!(world.done(Command::Close).await["stored"], true);
        // The lock is free at this very moment.
        let kept = texts(&bench.open().unwrap_or_else(|error| panic!("{when:?}: {error}")).0.value);
        assert_eq!(kept[1], "네");
        match when {
            When::Idle => assert_eq!(kept.len(), 2),
            When::Streaming => assert_eq!(kept[3], "부분"),
            When::Running => assert_eq!(kept[4], "cancelled"),
        }
        for face in [&mut world.face, &mut other] {
            while face.next().await.is_some() {}
            assert_eq!(face.names().last().unwrap(), "closed");
            assert_eq!(face.names().iter().filter(|name| *name == "closed").count(), 1);
            let (turns, ends) = (
                face.names().iter().filter(|name| *name == "turn_started").count(),
                face.names().iter().filter(|name| *name == "turn_ended").count(),
            );
            assert_eq!(turns, ends, "{when:?}");
        }
        assert_eq!(world.refused(Command::Snapshot).await, "closed");
        assert_eq!(world.refused(typed("둘")).await, "closed");
        soon("the end of the actor", world.actor).await.unwrap();
    }
}

#[tokio::test]
async fn a_prompt_that_comes_after_close_is_refused_and_not_taken_and_forgotten() {
    let (_bench, mut world) = usual();
    world.say("하나").await.call(&[("a", "p", "{}")]);
    let _call = world.begun().await;
    let (first, second, third) = tokio::join!(
        world.handle.call(Command::Close),
        world.handle.call(typed("둘")),
        world.handle.call(Command::Close)
    );
    assert!(matches!(first, gjc_protocol::Outcome::Done { .. }));
    assert!(matches!(&second, gjc_protocol::Outcome::Refused(why) if why.code == "closed"), "{second:?}");
    assert!(matches!(third, gjc_protocol::Outcome::Done { .. }), "{third:?}");
}

#[tokio::test]
async fn finish_waits_for_the_turn_and_for_the_queue() {
    let (bench, mut world) = usual();
    let ask = world.say("하나").await;
    world.accepted(typed("둘")).await;
    let handle = world.handle.clone();
    let finish = tokio::spawn(async move { handle.call(Command::Finish).await });
    while world.snapshot().await.queue.len() != 1 {}
    ask.say("일");
    assert_eq!(world.turn_end().await, TurnEnd::Done);
    let ask = world.ask().await;
    assert!(!finish.is_finished());
    ask.say("이");
    let outcome = soon("the end", finish).await.unwrap();
    assert!(matches!(outcome, gjc_protocol::Outcome::Done { value } if value["stored"] == true));
    assert_eq!(texts(&bench.open().unwrap().0.value), ["하나", "일", "둘", "이"]);
    while world.face.next().await.is_some() {}
    assert_eq!(world.face.names().last().unwrap(), "closed");
}

#[tokio::test]
async fn finish_of_an_idle_session_ends_it_at_once() {
    let (_bench, mut world) = usual();
    world.done(Command::Finish).await;
    world.face.until(|body| *body == EventBody::Closed).await;
    soon("the end of the actor", world.actor).await.unwrap();
}

#[tokio::test]
async fn a_session_that_nobody_can_reach_any_more_ends_after_its_turn() {
    for running in [false, true] {
        let (bench, mut world) = usual();
        let ask = if running { Some(world.say("하나").await) } else { None };
        drop(world.handle);
        if let Some(ask) = ask {
            ask.call(&[("a", "p", "{}")]);
            soon("a call", world.started.recv()).await.unwrap().done("결과");
            soon("a request", world.asks.recv()).await.unwrap().say("네");
        }
        world.face.until(|body| *body == EventBody::Closed).await;
        soon("the end of the actor", world.actor).await.unwrap();
        if running {
            assert_eq!(texts(&bench.open().unwrap().0.value), ["하나", "", "결과", "네"]);
        }
    }
}

#[tokio::test]
async fn faces_are_told_the_end_also_of_a_session_whose_task_was_ended_from_outside() {
    let (bench, mut world) = usual();
    world.say("하나").await.begin("부분");
    world.actor.abort();
    world.face.until(|body| *body == EventBody::Closed).await;
    assert_eq!(world.refused(Command::Snapshot).await, "closed");
    assert!(bench.open().is_err(), "nothing was on disk yet");
}
