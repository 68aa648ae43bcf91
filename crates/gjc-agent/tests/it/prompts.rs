//! Prompts while something runs, and commands of every kind at every moment.

use crate::world::*;
use gjc_entry::Origin;
use gjc_protocol::{Command, EventBody, Outcome, PromptMode, PromptPart, TurnEnd};
use std::collections::BTreeMap;
use testkit::SeededIds;

#[tokio::test]
async fn steering_enters_between_steps_in_its_order_and_a_follow_up_after_the_turn() {
    let (_bench, mut world) = usual();
    world.say("하나").await.call(&[("a", "p", "{}")]);
    let call = world.begun().await;
    world.accepted(said("나중", PromptMode::FollowUp)).await;
    world.accepted(said("둘", PromptMode::Steer)).await;
    world.accepted(said("셋", PromptMode::Steer)).await;
    assert_eq!(world.snapshot().await.queue.len(), 3);
    call.done("결과");
    let ask = world.ask().await;
    let text = ask.text();
    assert!(text.find("결과") < text.find("둘") && text.find("둘") < text.find("셋"), "{text}");
    assert!(!text.contains("나중"));
    ask.say("네");
    assert_eq!(world.turn_end().await, TurnEnd::Done);
    let ask = world.ask().await;
    assert!(ask.text().contains("나중"));
    ask.say("네");
    world.turn_end().await;
    let waiting: Vec<usize> = world
        .face
        .events
        .iter()
        .filter_map(|event| match event.body {
            EventBody::Queued { waiting } => Some(waiting),
            _ => None,
        })
        .collect();
    assert_eq!(waiting, [1, 2, 3, 2, 1, 0]);
}

#[tokio::test]
async fn the_newest_queued_prompt_can_be_taken_back() {
    let (_bench, mut world) = usual();
    assert_eq!(world.refused(Command::Unqueue).await, "nothing_queued");
    let ask = world.say("하나").await;
    world.accepted(typed("둘")).await;
    world.accepted(typed("셋")).await;
    assert_eq!(world.done(Command::Unqueue).await["text"], "셋");
    assert_eq!(world.done(Command::Unqueue).await["text"], "둘");
    assert_eq!(world.refused(Command::Unqueue).await, "nothing_queued");
    ask.say("네");
    world.turn_end().await;
    assert_eq!(world.snapshot().await.messages.len(), 2);
    world.no_request();
}

#[tokio::test]
async fn a_prompt_that_says_nothing_or_comes_from_no_person_is_refused_and_changes_nothing() {
    let (_bench, mut world) = usual();
    let mut open = None;
    for busy in [false, true] {
        for empty in [vec![], vec![PromptPart::new(" \n", Origin::Typed)]] {
            let command = Command::Prompt { parts: empty, mode: PromptMode::Steer };
            assert_eq!(world.refused(command).await, "empty_prompt");
        }
        for origin in [Origin::Host, Origin::Mode, Origin::Ask, Origin::Peer, Origin::Tool] {
            assert_eq!(world.refused(prompt("x", origin, PromptMode::Steer)).await, "bad_origin", "{origin:?}");
        }
        assert_eq!(world.snapshot().await.messages.len(), usize::from(busy));
        assert!(world.snapshot().await.queue.is_empty());
        if !busy {
            open = Some(world.say("하나").await);
        }
    }
    open.unwrap().say("네");
    assert_eq!(world.turn_end().await, TurnEnd::Done);
}

/// Eight tasks send commands of every kind, while the model and the tools answer whenever they are asked.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_command_is_answered_exactly_once_whatever_runs() {
    for seed in 0..12 {
        let (_bench, mut world) = usual();
        let mut stormers = Vec::new();
        for stormer in 0..8 {
            let handle = world.handle.clone();
            stormers.push(tokio::spawn(async move {
                let random = SeededIds::new(seed * 100 + stormer);
                let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
                for n in 0..60 {
                    let command = match random.next() % 12 {
                        0..=2 => said(&format!("{stormer}.{n} 질문"), PromptMode::Steer),
                        3 => said("나중", PromptMode::FollowUp),
                        4 => typed(""),
                        5 | 6 => Command::Abort,
                        7 => Command::Unqueue,
                        8 if n == 50 && stormer == 3 => Command::Finish,
                        9 if n > 55 && stormer == 5 => Command::Close,
                        _ => Command::Snapshot,
                    };
                    let what = format!("an answer to {n} of {stormer}, seed {seed}");
                    let kind = match answer(&handle, &what, command).await {
                        Outcome::Accepted => "accepted",
                        Outcome::Done { .. } => "done",
                        Outcome::Refused(_) => "refused",
                    };
                    *kinds.entry(kind).or_default() += 1;
                    if random.next().is_multiple_of(3) {
                        tokio::task::yield_now().await;
                    }
                }
                kinds.values().sum::<usize>()
            }));
        }
        let random = SeededIds::new(seed);
        let (mut asks, mut started) = (world.asks, world.started);
        let others = tokio::spawn(async move {
            let mut n = 0;
            loop {
                tokio::select! {
                    Some(ask) = asks.recv() => {
                        n += 1;
                        let (a, b) = (format!("a{n}"), format!("b{n}"));
                        match random.next() % 3 {
                            0 => ask.say("네"),
                            1 => ask.call(&[(&a, "p", "{}"), (&b, "s", "{}")]),
                            _ => {
                                ask.begin("부분");
                                tokio::task::yield_now().await;
                                drop(ask);
                            }
                        }
                    }
                    Some(call) = started.recv() => call.done("결과"),
                    else => break,
                }
            }
        });
        let mut answered = 0;
        for stormer in stormers {
            answered += stormer.await.unwrap();
        }
        assert_eq!(answered, 8 * 60, "seed {seed}");
        let outcome = answer(&world.handle, &format!("the end, seed {seed}"), Command::Close).await;
        assert!(
            matches!(&outcome, Outcome::Done { .. })
                || matches!(&outcome, Outcome::Refused(why) if why.code == "closed")
        );
        while world.face.next().await.is_some() {}
        let (turns, ends) = (
            world.face.names().iter().filter(|name| *name == "turn_started").count(),
            world.face.names().iter().filter(|name| *name == "turn_ended").count(),
        );
        assert_eq!(turns, ends);
        assert_eq!(world.face.names().last().unwrap(), "closed");
        soon("the end of the actor", world.actor).await.unwrap();
        others.abort();
    }
}
