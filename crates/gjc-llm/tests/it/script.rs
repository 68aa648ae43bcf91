//! The scripted model.

use crate::kit::{Answer, Still, Store, answer, assembled, block_on, call, env, request, result, text, user};
use futures_util::StreamExt;
use gjc_context::Msg;
use gjc_entry::{BoxFuture, Clock, StopReason, Thinking, Timestamp};
use gjc_llm::scripted::{MAIN, ScriptedModel};
use gjc_llm::{Provider, ProviderError, StreamEvent};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

fn script(lines: &str) -> Arc<ScriptedModel> {
    ScriptedModel::parse(Path::new("시험.jsonl"), lines).unwrap()
}

fn play(script: &Arc<ScriptedModel>, names: &[&str], messages: Vec<Msg>) -> Answer {
    let player = script.player(names.iter().copied(), Still::new());
    let body = player.render(&request(env(Thinking::Off), messages), &Store::new("s", "[]")).unwrap();
    block_on(player.stream(body, CancellationToken::new()).collect())
}

fn hello() -> Vec<Msg> {
    vec![user(vec![text("안녕하세요")])]
}

#[test]
fn an_answer_is_streamed_in_pieces_and_the_same_each_time() {
    let line = r#"

{"expect":"^안녕","content":[{"type":"thinking","thinking":"생각해 보자"},{"type":"text","text":"한글로 된 긴 문장을 여러 조각으로 나누어 보낸다"},{"type":"toolCall","name":"read","arguments":{"path": "ㄱ"}},{"type":"toolCall","name":"ls","arguments":{}}],"usage":{"input":3,"output":4}}"#;
    let once = play(&script(line), &[MAIN], hello());
    assert_eq!(play(&script(line), &[MAIN], hello()), once);
    let deltas = once.iter().filter(|event| matches!(event, Ok(StreamEvent::Delta { index: 1, .. }))).count();
    assert!(deltas > 1, "in several pieces");
    let (message, error) = assembled(once);
    assert_eq!(error, None);
    assert_eq!(message.text(), "한글로 된 긴 문장을 여러 조각으로 나누어 보낸다");
    let calls: Vec<_> = message.calls().map(|(id, name, arguments)| (id, name, arguments.get())).collect();
    assert_eq!(calls, [("call_3_1", "read", r#"{"path": "ㄱ"}"#), ("call_3_2", "ls", "{}")]);
    assert_eq!((message.stop, message.usage.output), (StopReason::ToolUse, 4));
}

#[test]
fn each_agent_plays_its_own_lines_in_order() {
    let script = script(concat!(
        "{\"content\":[{\"type\":\"text\",\"text\":\"m1\"}]}\n",
        "{\"agent\":\"Fix-1\",\"content\":[{\"type\":\"text\",\"text\":\"t1\"}]}\n",
        "{\"agent\":\"main\",\"content\":[{\"type\":\"text\",\"text\":\"m2\"}],\"stopReason\":\"length\"}\n",
        "{\"agent\":\"explore\",\"content\":[{\"type\":\"text\",\"text\":\"e1\"}]}\n",
    ));
    let text_of = |names: &[&str]| assembled(play(&script, names, hello())).0;
    assert_eq!(text_of(&["Fix-1", "explore"]).text(), "t1");
    assert_eq!(text_of(&[]).text(), "m1");
    assert_eq!(text_of(&["Fix-1", "explore"]).text(), "e1");
    let second = text_of(&[MAIN]);
    assert_eq!((second.text().as_str(), &second.stop), ("m2", &StopReason::Length));
    let (_, error) = assembled(play(&script, &[MAIN], hello()));
    let sentence = error.unwrap().to_string();
    assert!(
        sentence.contains("시험.jsonl") && sentence.contains("no more lines") && sentence.contains("line 3"),
        "{sentence}"
    );
}

#[test]
fn an_unmet_expectation_names_the_line_and_uses_nothing_up() {
    let script = script(r#"{"expect":"둘째","content":[{"type":"text","text":"ok"}]}"#);
    let messages = || {
        vec![
            user(vec![text("둘째")]),
            answer(vec![call("a", "read", "{}"), call("b", "read", "{}")]),
            result("a", vec![text("둘째")], false),
            result("b", vec![text("셋째"), text("끝")], false),
        ]
    };
    let (_, error) = assembled(play(&script, &[MAIN], messages()));
    assert!(matches!(error, Some(ProviderError::BadRequest(_))));
    let sentence = error.unwrap().to_string();
    assert!(
        sentence.contains("line 1 of the script 시험.jsonl expects /둘째/") && sentence.contains("셋째 끝"),
        "{sentence}"
    );
    let mut met = messages();
    met[3] = result("b", vec![text("둘째")], false);
    assert_eq!(assembled(play(&script, &[MAIN], met)).0.text(), "ok");
}

#[test]
fn errors_are_those_of_the_wire() {
    let script = script(concat!(
        "{\"error\":{\"status\":529,\"body\":{\"error\":{\"message\":\"바쁨\"}}}}\n",
        "{\"error\":{\"status\":401,\"body\":\"no\"}}\n",
        "{\"content\":[{\"type\":\"text\",\"text\":\"반\"}],\"error\":{\"status\":500}}\n",
    ));
    let next = || assembled(play(&script, &[MAIN], hello()));
    assert_eq!(next().1, Some(ProviderError::Retry { after: None, why: "바쁨".into() }));
    assert_eq!(next().1, Some(ProviderError::Auth("no".into())));
    let (message, error) = next();
    assert_eq!(message.text(), "반");
    assert!(matches!(error, Some(ProviderError::Cut { replay_safe: false, .. })));
}

#[test]
fn a_bad_line_is_refused_at_load_with_its_number() {
    let good = r#"{"content":[]}"#;
    for (bad, word) in [
        (r#"{"content":[],"agnt":"x"}"#, "agnt"),
        (r#"{"content":[{"type":"text","text":"x","색":1}]}"#, "색"),
        (r#"{"content":[{"type":"image"}]}"#, "image"),
        (r#"{"content":[{"type":"toolCall","name":"x","arguments":[]}]}"#, "object"),
        (r#"{"content":[],"stopReason":"tool_use"}"#, "tool_use"),
        (r#"{"content":[],"expect":"("}"#, "regex"),
        (r#"{"content":[],"delayMs":"soon"}"#, "delayMs"),
        (r#"{"error":{"status":529,"bdy":1}}"#, "bdy"),
        (r#"{"agent":"x"}"#, "neither"),
        ("[1]", "object"),
        ("{", "object"),
    ] {
        let text = format!("{good}\n\n{bad}\n");
        let error = ScriptedModel::parse(Path::new("s.jsonl"), &text).unwrap_err().to_string();
        assert!(error.starts_with("line 3 of the script s.jsonl") && error.contains(word), "{bad}: {error}");
    }
    let error = ScriptedModel::load(Path::new("/nowhere/대본.jsonl")).unwrap_err().to_string();
    assert!(error.contains("대본.jsonl"), "{error}");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("대본.jsonl");
    std::fs::write(&path, good).unwrap();
    assert!(ScriptedModel::load(&path).is_ok());
}

#[test]
fn a_delay_goes_through_the_clock_and_can_be_cancelled() {
    struct Never;
    impl Clock for Never {
        fn wall(&self) -> Timestamp {
            Timestamp::from_millis(0)
        }
        fn mono(&self) -> Instant {
            Instant::now()
        }
        fn sleep(&self, _: Duration) -> BoxFuture<'static, ()> {
            Box::pin(std::future::pending())
        }
    }
    let line = r#"{"delayMs":1500,"content":[{"type":"text","text":"x"}]}"#;
    let rendered = |player: &gjc_llm::scripted::Scripted| {
        player.render(&request(env(Thinking::Off), hello()), &Store::new("", "")).unwrap()
    };
    let clock = Still::new();
    let player = script(line).player([MAIN], clock.clone());
    let answer: Answer = block_on(player.stream(rendered(&player), CancellationToken::new()).collect());
    assert_eq!(assembled(answer).0.text(), "x");
    assert_eq!(*clock.0.lock().unwrap(), [Duration::from_millis(1500)]);

    let player = script(line).player([MAIN], Arc::new(Never));
    let cancel = CancellationToken::new();
    let events = player.stream(rendered(&player), cancel.clone());
    let answer: Answer = block_on(async {
        let (answer, ()) = tokio::join!(events.collect(), async { cancel.cancel() });
        answer
    });
    assert_eq!(answer, []);
}
