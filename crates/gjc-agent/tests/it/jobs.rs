//! Background jobs, and how what arrives comes into a session.

use crate::world::*;
use gjc_entry::{Label, Level};
use gjc_log::fs::sim::{Fault, SimFs};
use gjc_protocol::{Command, EventBody, JobStatus, Refusal, TurnEnd};
use gjc_tools::{JobEnd, NewJob, Running};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use testkit::log::Bench;
use tokio::sync::oneshot;

const SECRET: &str = "연봉 9천";

/// A job that ends when the test says so, or is cancelled.
fn job(label: Label) -> (NewJob, oneshot::Sender<&'static str>) {
    let (end, ended) = oneshot::channel::<&'static str>();
    let begin = move |Running { cancel, progress }: Running| {
        progress.show("일하는 중");
        let work = async move {
            let (status, text) = tokio::select! {
                text = ended => (JobStatus::Completed, text.unwrap_or("끝")),
                () = cancel.cancelled() => (JobStatus::Cancelled, "멈춤"),
            };
            assert_ne!(text, "panic", "a fault of the job");
            JobEnd { status, text: text.into(), details: Value::Null }
        };
        Ok(Box::pin(work) as gjc_entry::BoxFuture<'static, JobEnd>)
    };
    (NewJob { tool: "s", what: "긴 일".into(), label, begin: Box::new(begin) }, end)
}

/// A session in which a job runs, idle, and the test's end of that job.
async fn running(clearance: Level, label: Label) -> (Bench<SimFs>, World, oneshot::Sender<&'static str>) {
    let bench = sim();
    let mut setup = Setup::new(&bench).usual_tools();
    setup.clearance = clearance;
    let mut world = setup.start(bench.create(), false);
    world.say("시작해").await.call(&[("a", "s", "{}")]);
    let call = world.begun().await;
    let (job, end) = job(label);
    assert_eq!(soon("a start", call.ctx.jobs.start(&call.op, job)).await.unwrap(), "job-1");
    call.done("시작됨");
    world.ask().await.say("기다립니다");
    assert_eq!(world.turn_end().await, TurnEnd::Done);
    (bench, world, end)
}

fn file(bench: &Bench<SimFs>) -> String {
    String::from_utf8(bench.bytes()).unwrap()
}

#[tokio::test]
async fn an_end_raises_the_session_when_it_comes_in_and_not_before() {
    let (bench, mut world, end) = running(Level::Restricted, level(Level::Confidential)).await;
    assert_eq!(world.snapshot().await.label.level, Level::Public);
    end.send(SECRET).unwrap();
    let ask = world.ask().await;
    assert!(ask.text().contains(SECRET));
    assert_eq!(world.snapshot().await.label.level, Level::Confidential);
    ask.say("네");
    world.turn_end().await;
    world.close().await;
    let line = file(&bench).lines().find(|line| line.contains(r#""async-result""#)).unwrap().to_owned();
    assert!(line.contains(r#""gjcLabel":{"l":"CONFIDENTIAL""#) && line.contains(SECRET), "{line}");
}

#[tokio::test]
async fn of_an_end_above_the_clearance_nothing_is_in_file_events_or_requests() {
    let (bench, mut world, end) = running(Level::Internal, level(Level::Restricted)).await;
    end.send(SECRET).unwrap();
    world.face.until(|body| matches!(body, EventBody::JobEnded { .. })).await;
    // A prompt after it finds everything settled, and only it asks the model.
    let ask = world.say("다음").await;
    assert!(!ask.text().contains(SECRET));
    ask.say("네");
    world.turn_end().await;
    world.no_request();
    let sent = Arc::clone(&world.sent);
    let events = world.close().await;
    assert!(!serde_json::to_string(&events).unwrap().contains(SECRET));
    assert!(!file(&bench).contains(SECRET));
    assert_eq!(file(&bench).matches(r#""customType":"gjc.delivered""#).count(), 1);
    assert!(sent.lock().unwrap().iter().all(|body| !contains(body, SECRET.as_bytes())));
}

#[tokio::test]
async fn what_does_not_begin_leaves_nothing_owed() {
    let (bench, mut world) = usual();
    world.say("시작해").await.call(&[("a", "s", "{}")]);
    let call = world.begun().await;
    let begin = |_: Running| Err(Refusal::new("no", "지금은 아니다"));
    let refusing = NewJob { tool: "s", what: "일".into(), label: Label::PUBLIC_TRUSTED, begin: Box::new(begin) };
    let refused = soon("a refusal", call.ctx.jobs.start(&call.op, refusing)).await.unwrap_err();
    assert_eq!(refused.sentence, "지금은 아니다");
    assert_eq!(call.ctx.jobs.list(), []);
    call.done("안 됨");
    world.ask().await.say("네");
    world.turn_end().await;
    world.close().await;
    let before = file(&bench);
    assert_eq!((before.matches("gjc.job").count(), before.matches("gjc.delivered").count()), (1, 1));
    let (loaded, _) = bench.open().unwrap();
    let mut again = Setup::new(&bench).usual_tools().start(loaded.value, true);
    again.say("또").await.say("네");
    again.turn_end().await;
    again.close().await;
    assert!(!file(&bench).contains("async-result"));
}

#[tokio::test]
async fn while_nothing_can_be_stored_no_job_begins() {
    let (bench, mut world) = usual();
    world.say("하나").await.say("일");
    world.turn_end().await;
    world.say("시작해").await.call(&[("a", "s", "{}")]);
    let call = world.begun().await;
    bench.fs.fault(Fault::Enospc { after_bytes: 0 });
    let begun = Arc::new(AtomicBool::new(false));
    let (mut job, _end) = job(Label::PUBLIC_TRUSTED);
    let (flag, begin) = (Arc::clone(&begun), job.begin);
    job.begin = Box::new(move |running| {
        flag.store(true, Ordering::SeqCst);
        begin(running)
    });
    let refused = soon("a refusal", call.ctx.jobs.start(&call.op, job)).await.unwrap_err();
    assert!(refused.sentence.contains("the session cannot be stored at the moment"), "{refused:?}");
    assert!(!begun.load(Ordering::SeqCst));
    bench.fs.clear_faults();
    call.done("안 됨");
    world.ask().await.say("네");
    world.turn_end().await;
}

#[tokio::test]
async fn a_job_that_panics_is_told_as_a_fault_of_gjc() {
    let (_bench, mut world, end) = running(Level::Restricted, Label::PUBLIC_TRUSTED).await;
    end.send("panic").unwrap();
    let ask = world.ask().await;
    assert!(ask.text().contains("the job failed inside; this is a fault of gjc"), "{}", ask.text());
    ask.say("네");
    world.turn_end().await;
}

#[tokio::test]
async fn an_end_that_comes_while_calls_run_is_heard_with_their_results_and_only_once() {
    let (bench, mut world, end) = running(Level::Restricted, Label::PUBLIC_TRUSTED).await;
    world.say("읽어").await.call(&[("b", "p", "{}")]);
    let call = world.begun().await;
    end.send("다 됐다").unwrap();
    world.face.until(|body| matches!(body, EventBody::JobEnded { .. })).await;
    call.done("읽음");
    let ask = world.ask().await;
    assert!(ask.text().contains("다 됐다") && ask.text().contains("읽음"), "{}", ask.text());
    ask.say("네");
    assert_eq!(world.turn_end().await, TurnEnd::Done);
    world.say("그래").await.say("네");
    world.turn_end().await;
    world.no_request();
    world.close().await;
    assert_eq!(file(&bench).matches("async-result").count(), 1);
}

#[tokio::test]
async fn after_an_abort_what_came_waits_for_a_person() {
    let (_bench, mut world, end) = running(Level::Restricted, Label::PUBLIC_TRUSTED).await;
    let ask = world.say("길게").await;
    ask.begin("여기까지");
    end.send("다 됐다").unwrap();
    world.face.until(|body| matches!(body, EventBody::JobEnded { .. })).await;
    world.accepted(Command::Abort).await;
    assert_eq!(world.turn_end().await, TurnEnd::Aborted);
    world.snapshot().await;
    world.no_request();
    let ask = world.say("계속").await;
    assert!(ask.text().contains("다 됐다"), "{}", ask.text());
    ask.say("네");
    world.turn_end().await;
}

#[tokio::test]
async fn an_abort_of_a_turn_leaves_jobs_alone_and_the_end_of_the_session_does_not() {
    let (bench, mut world, _end) = running(Level::Restricted, Label::PUBLIC_TRUSTED).await;
    let ask = world.say("길게").await;
    ask.begin("여기까지");
    world.accepted(Command::Abort).await;
    world.turn_end().await;
    assert_eq!(world.snapshot().await.jobs[0].status, JobStatus::Running);
    assert_eq!(world.done(Command::Close).await["jobs"], serde_json::json!(["job-1"]));
    assert_eq!(file(&bench).matches("has ended: cancelled").count(), 1);
}
