//! What comes in raises the session, and what is above it stays outside.

use crate::world::*;
use gjc_entry::{Label, Level, Origin, Source};
use gjc_flow::{Stale, digest};
use gjc_log::fs::Fs;
use gjc_log::fs::sim::SimFs;
use gjc_protocol::{Command, EventBody, PromptMode, TurnEnd};
use gjc_tools::Run;
use testkit::log::Bench;

const SECRET: &str = "연봉 1억 2천";

fn lines(bench: &Bench<SimFs>) -> Vec<String> {
    String::from_utf8(bench.bytes()).unwrap().lines().map(String::from).collect()
}

/// A session with one tool `t`, and one tool `u` beside it.
fn with(bench: &Bench<SimFs>, clearance: Level, change: impl Fn(Gate) -> Gate) -> World {
    let mut setup = Setup::new(bench);
    setup.clearance = clearance;
    let tools = vec![change(setup.tool("t", Run::Parallel)), setup.tool("u", Run::Parallel)];
    setup.set(tools);
    setup.start(bench.create(), false)
}

#[tokio::test]
async fn a_result_raises_the_session_in_the_very_line_that_holds_it_and_a_restart_keeps_it() {
    let bench = sim();
    let mut world = with(&bench, Level::Restricted, |tool| tool.reads(level(Level::Confidential)));
    world.say("읽어").await.call(&[("a", "t", "{}")]);
    world.begun().await.output(labelled(SECRET, level(Level::Confidential)));
    let told = world.face.until(|body| matches!(body, EventBody::Label(_))).await;
    assert!(matches!(told, EventBody::Label(info) if info.level == Level::Confidential && info.trusted));
    world.ask().await.say("네");
    world.turn_end().await;
    let late = Face::new(world.handle.subscribe()).next().await;
    assert!(
        matches!(late, Some(EventBody::Session { label, .. }) if label.level == Level::Confidential),
        "a face that comes later hears the label of now"
    );
    world.close().await;
    let lines = lines(&bench);
    let holds: Vec<&String> = lines.iter().filter(|line| line.contains(SECRET)).collect();
    assert_eq!(holds.len(), 1);
    assert!(holds[0].contains("CONFIDENTIAL"), "{}", holds[0]);
    let before: Vec<&String> = lines.iter().take_while(|line| !line.contains(SECRET)).collect();
    assert!(before.iter().all(|line| !line.contains("CONFIDENTIAL")));
    let writer = bench.open().unwrap().0.value;
    assert_eq!(writer.label(), level(Level::Confidential));
    let mut again = Setup::new(&bench).start(writer, true);
    assert_eq!(again.snapshot().await.label.level, Level::Confidential);
    assert!(
        matches!(again.face.next().await, Some(EventBody::Session { resumed: true, label, .. }) if label.level == Level::Confidential)
    );
}

#[tokio::test]
async fn a_session_that_knows_more_than_its_new_clearance_does_not_open() {
    let bench = sim();
    let mut world = with(&bench, Level::Restricted, |tool| tool);
    world.say("읽어").await.call(&[("a", "t", "{}")]);
    world.begun().await.output(labelled(SECRET, level(Level::Confidential)));
    world.ask().await.say("네");
    world.turn_end().await;
    world.close().await;
    let writer = bench.open().unwrap().0.value;
    let opened = gjc_agent::Session::new(writer, gjc_flow::Runtime::new(), bench.clock.clone(), Level::Internal);
    assert!(opened.is_err());
}

#[tokio::test]
async fn untrusted_text_lowers_trust_a_paste_leaves_it_low_and_a_typed_prompt_restores_it() {
    let bench = sim();
    let mut world = with(&bench, Level::Restricted, |tool| tool);
    world.say("가져와").await.call(&[("a", "t", "{}")]);
    world.begun().await.output(labelled("남의 글", Label { level: Level::Public, trusted: false }));
    world.ask().await.say("네");
    world.turn_end().await;
    assert!(!world.snapshot().await.label.trusted);
    world.accepted(prompt("붙인 글", Origin::Paste, PromptMode::Steer)).await;
    world.ask().await.say("네");
    world.turn_end().await;
    assert!(!world.snapshot().await.label.trusted, "a paste is nobody's word");
    world.say("내 말").await.say("네");
    world.turn_end().await;
    assert!(world.snapshot().await.label.trusted);
    let file = lines(&bench);
    let trust = |text: &str| file.iter().find(|line| line.contains(text)).unwrap().contains("\"t\":false");
    assert_eq!((trust("남의 글"), trust("붙인 글"), trust("내 말")), (true, true, false));
}

#[tokio::test]
async fn of_an_output_above_the_clearance_nothing_is_in_file_events_or_requests() {
    let bench = sim();
    let mut world = with(&bench, Level::Internal, |tool| tool);
    world.say("읽어").await.call(&[("a", "t", "{}")]);
    let call = world.begun().await;
    let output =
        gjc_tools::Output::from(level(Level::Restricted)).text(SECRET).details(serde_json::json!({"x": SECRET}));
    call.output(output.done());
    let ask = world.ask().await;
    assert!(ask.results()[0].1.contains("may know no more than INTERNAL"), "{:?}", ask.results());
    ask.say("네");
    assert_eq!(world.turn_end().await, TurnEnd::Done);
    assert_eq!(world.snapshot().await.label.level, Level::Public, "a refused fact raises nothing");
    let ended = world.face.events.iter().find_map(|event| match &event.body {
        EventBody::ToolEnded(end) => Some(end.is_error),
        _ => None,
    });
    assert_eq!(ended, Some(true));
    let sent = std::sync::Arc::clone(&world.sent);
    let events = world.close().await;
    assert!(!serde_json::to_string(&events).unwrap().contains(SECRET));
    assert!(!contains(&bench.bytes(), SECRET.as_bytes()));
    assert!(sent.lock().unwrap().iter().all(|body| !contains(body, SECRET.as_bytes())));
}

#[tokio::test]
async fn what_a_call_would_read_above_the_clearance_is_refused_before_it_runs() {
    let bench = sim();
    let mut world = with(&bench, Level::Internal, |tool| tool.reads(level(Level::Confidential)));
    world.say("읽어").await.call(&[("a", "t", "{}")]);
    let ask = world.ask().await;
    assert!(ask.results()[0].1.contains("no-read-above-clearance"));
    assert!(world.started.try_recv().is_err());
}

#[tokio::test]
async fn a_permit_taken_before_a_rise_is_stale_for_a_lower_sink() {
    for (sink, good) in [(Level::Internal, false), (Level::Confidential, true)] {
        let bench = sim();
        let mut world = with(&bench, Level::Restricted, |tool| tool.writes(sink));
        world.say("보내").await.call(&[("a", "t", "{}"), ("b", "u", "{}")]);
        let (first, second) = (world.begun().await, world.begun().await);
        let (mut sending, reading) = if first.tool == "t" { (first, second) } else { (second, first) };
        let permit = sending.permits.take_next().unwrap();
        // `u` gives more than it said it would read.
        reading.output(labelled(SECRET, level(Level::Confidential)));
        world.face.until(|body| matches!(body, EventBody::Label(_))).await;
        assert_eq!(sending.ctx.session.label().level, Level::Confidential);
        let redeemed = sending.ctx.redeem.redeem(permit, digest(b"bytes"));
        assert_eq!(redeemed.is_ok(), good, "{sink}");
        assert!(good || matches!(redeemed, Err(Stale::Raised { taint: Level::Confidential, .. })));
        sending.done("끝");
        world.ask().await.say("네");
        world.turn_end().await;
    }
}

#[tokio::test]
async fn parallel_calls_are_judged_at_the_join_of_what_all_of_them_read() {
    let bench = sim();
    let mut setup = Setup::new(&bench);
    let tools = vec![
        setup.tool("t", Run::Parallel).reads(level(Level::Confidential)),
        setup.tool("u", Run::Parallel).writes(Level::Public),
    ];
    setup.set(tools);
    let mut world = setup.start(bench.create(), false);
    world.say("둘 다").await.call(&[("a", "u", "{}"), ("b", "t", "{}")]);
    let call = world.begun().await;
    assert_eq!(call.tool, "t");
    call.output(labelled("x", level(Level::Confidential)));
    let ask = world.ask().await;
    assert!(ask.results()[0].1.contains("no-write-down"), "{:?}", ask.results());
    // Alone, and before anything is read, the same call is allowed; after it, not any more.
    ask.call(&[("c", "u", "{}")]);
    let ask = world.ask().await;
    assert!(ask.results()[0].1.contains("no-write-down"));
}

/// Every new source and sink gets its row here through the levels that it names.
#[tokio::test]
async fn what_was_read_at_a_level_goes_to_no_lower_sink_at_any_level() {
    for source in Level::ALL {
        for sink in Level::ALL {
            let bench = sim();
            let mut setup = Setup::new(&bench);
            let tools =
                vec![setup.tool("t", Run::Serial).reads(level(source)), setup.tool("u", Run::Serial).writes(sink)];
            setup.set(tools);
            let mut world = setup.start(bench.create(), false);
            world.say("읽고 보내").await.call(&[("a", "t", "{}"), ("b", "u", "{}")]);
            world.begun().await.output(labelled(SECRET, level(source)));
            if sink >= source {
                let mut call = world.begun().await;
                let permit = call.permits.take_next().unwrap();
                assert!(call.ctx.redeem.redeem(permit, digest(b"other")).is_err(), "a permit is for its bytes");
                call.done("보냈다");
            }
            let ask = world.ask().await;
            assert_eq!(ask.results()[1].1.contains("no-write-down"), sink < source, "{source} to {sink}");
            assert!(world.started.try_recv().is_err());
        }
    }
}

#[tokio::test]
async fn an_answer_bears_the_label_of_what_it_was_made_of() {
    let bench = sim();
    let mut world = with(&bench, Level::Restricted, |tool| tool);
    world.say("읽어").await.call(&[("a", "t", "{}")]);
    world.begun().await.output(labelled("x", level(Level::Internal)));
    world.ask().await.say("그것을 읽고 하는 말");
    world.turn_end().await;
    world.done(Command::Close).await;
    let file = lines(&bench);
    assert!(file.iter().find(|line| line.contains("그것을 읽고")).unwrap().contains("INTERNAL"));
    assert!(bench.open().unwrap().0.value.skeleton().is_some());
}

/// The whole of a long text, and a picture: files that hold what the session knows.
#[tokio::test]
async fn what_is_kept_beside_the_session_is_named_by_a_line_that_bears_the_session_s_label() {
    let bench = sim();
    let mut world = with(&bench, Level::Restricted, |tool| tool);
    world.say("읽어").await.call(&[("a", "t", "{}")]);
    let picture = gjc_entry::Block::Image {
        data: gjc_entry::message::ImageData::Inline("A".repeat(2048)),
        mime: "image/png".into(),
        origin: None,
        extra: Vec::new(),
    };
    let long = format!("{}{SECRET}", "가".repeat(500_000));
    let output = gjc_tools::Output::from(level(Level::Confidential)).text(long).block(picture);
    world.begun().await.output(output.done());
    world.ask().await.say("네");
    world.turn_end().await;
    world.close().await;
    let artifacts = bench.fs.list(&bench.path().with_extension("")).unwrap();
    assert_eq!(artifacts.len(), 1);
    assert!(contains(&testkit::log::read(&*bench.fs, &artifacts[0]), SECRET.as_bytes()));
    let name = artifacts[0].file_name().unwrap().to_str().unwrap();
    for named in [name, "blob:sha256:"] {
        let naming: Vec<String> =
            lines(&bench).into_iter().filter(|line| line.contains(named) && !line.contains("gjc.env")).collect();
        assert_eq!(naming.len(), 1);
        assert!(naming[0].contains(r#""gjcLabel":{"l":"CONFIDENTIAL","t":true}"#), "in the very line that names it");
    }
}

#[tokio::test]
async fn a_long_text_or_a_picture_above_the_clearance_leaves_no_file_behind() {
    let bench = sim();
    let mut world = with(&bench, Level::Internal, |tool| tool);
    world.say("읽어").await.call(&[("a", "t", "{}")]);
    let blobs = |bench: &Bench<SimFs>| bench.fs.list(&bench.root.join("blobs")).map_or(0, |names| names.len());
    let before = blobs(&bench);
    let picture = gjc_entry::Block::Image {
        data: gjc_entry::message::ImageData::Inline("A".repeat(2048)),
        mime: "image/png".into(),
        origin: None,
        extra: Vec::new(),
    };
    let long = format!("{SECRET}{}", "가".repeat(500_000));
    world.begun().await.output(gjc_tools::Output::from(level(Level::Confidential)).text(long).block(picture).done());
    let ask = world.ask().await;
    assert!(ask.results()[0].1.contains("may know no more than INTERNAL"));
    ask.say("네");
    world.turn_end().await;
    let events = world.close().await;
    assert!(!events.iter().any(|event| matches!(event.body, EventBody::Notice { .. })));
    assert!(bench.fs.stat(&bench.path().with_extension("")).is_err(), "no folder of whole texts");
    assert_eq!(blobs(&bench).max(2), before.max(2), "the prompt and the tools alone");
    assert!(!contains(&bench.bytes(), SECRET.as_bytes()));
}

/// Half of an effect above the clearance is no effect.
#[tokio::test]
async fn an_effect_above_the_clearance_stays_outside_with_all_its_entries_and_raises_nothing() {
    use gjc_agent::{Fact, Facts, NotAdmitted, Session};
    struct Never;
    impl gjc_context::Effect for Never {
        fn kinds(&self) -> gjc_entry::KindSet {
            gjc_entry::KindSet::of(&[])
        }
        fn rest(&self, _: &gjc_entry::Body, _: &dyn Source, _: gjc_entry::Leaf) -> Option<Vec<gjc_entry::Body>> {
            panic!("what is above the clearance is not looked at")
        }
    }
    let bench = sim();
    let mut session =
        Session::new(bench.create(), gjc_flow::Runtime::new(), bench.clock.clone(), Level::Internal).unwrap();
    let intent = Fact::new(testkit::session::user(SECRET));
    let facts = Facts::Effect { intent, effect: std::sync::Arc::new(Never) };
    let refused = session.admit(gjc_flow::Labelled::new(facts, level(Level::Confidential)));
    assert!(matches!(refused, Err(NotAdmitted::AboveClearance(_))));
    assert_eq!((session.log().skeleton().unwrap().len(), session.labels().label().level), (0, Level::Public));
}

/// Two doors out: a session's own person may read all of it; a place for others gets no more than its level.
#[tokio::test]
async fn a_dump_is_for_its_person_and_a_confidential_session_is_not_shared() {
    let bench = sim();
    let mut world = with(&bench, Level::Restricted, |tool| tool);
    world.say("읽어").await.call(&[("a", "t", "{}")]);
    world.begun().await.output(labelled(SECRET, level(Level::Confidential)));
    world.ask().await.say("네");
    world.turn_end().await;
    let before = bench.bytes();
    let gjc_protocol::Outcome::Done { value } = answer(&world.handle, "dump", Command::Dump).await else {
        panic!("there is a dump");
    };
    assert!(value["text"].as_str().unwrap().contains(SECRET));
    assert_eq!(value["label"]["level"], "CONFIDENTIAL");
    for confirm in [None, Some(format!("7-{}", "0".repeat(64)))] {
        match answer(&world.handle, "share", Command::Share { confirm }).await {
            gjc_protocol::Outcome::Refused(refusal) => {
                assert_eq!(refusal.code, "blocked");
                assert!(refusal.sentence.contains("the session is CONFIDENTIAL"), "{refusal}");
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(bench.bytes(), before, "neither is stored");
    world.close().await;
}

/// The leave is for the bytes that were seen, and ends when the session comes to know more.
#[tokio::test]
async fn what_was_not_seen_or_has_become_secret_meanwhile_is_not_sent() {
    let bench = sim();
    let env = gjc_entry::Env {
        clock: bench.clock.clone(),
        ids: bench.ids.clone(),
        dirs: gjc_entry::Dirs { home: "/".into(), agent: "/".into(), temp: "/tmp".into() },
        vars: gjc_entry::Vars::default(),
    };
    let sharing = gjc_agent::Sharing { command: Some("cat > /dev/null; touch \"$SENT\"".into()), level: Level::Public };
    let page = || gjc_agent::Shareable {
        name: "쪽.html".into(),
        bytes: "쪽".into(),
        masked: gjc_llm::Masked::default(),
        at: gjc_entry::Timestamp::from_millis(7),
        label: Label::PUBLIC_TRUSTED,
        session: gjc_entry::SessionId::new("s").unwrap(),
        leaf: None,
    };
    let session = gjc_entry::SessionId::new("s").unwrap();
    let mut labels = gjc_flow::LabelState::new(Label::PUBLIC_TRUSTED, Level::Restricted).unwrap();
    let leave = |labels: &gjc_flow::LabelState, bytes: &str| {
        sharing.leave(&gjc_flow::Policy::default(), labels, (&session, None), digest(bytes.as_bytes())).unwrap()
    };
    let other = leave(&labels, "다른 쪽");
    let watch = labels.watch();
    let refused = sharing.send(page(), other, &watch, &env, Default::default()).await.unwrap_err();
    assert_eq!(refused.code, "changed");
    let early = leave(&labels, "쪽");
    labels.join(level(Level::Confidential)).unwrap();
    let refused = sharing.send(page(), early, &watch, &env, Default::default()).await.unwrap_err();
    assert_eq!(refused.code, "blocked");
    assert!(refused.sentence.contains("has become CONFIDENTIAL meanwhile"), "{refused}");
}
