use serde_json::{Value, json};
use testkit::anthropic::{Turn, Usage, error};

fn data(turn: &Turn) -> Vec<Value> {
    let text = String::from_utf8(turn.sse()).unwrap();
    let events: Vec<Value> = text
        .split_terminator("\n\n")
        .map(|event| {
            let (name, data) = event.split_once('\n').unwrap();
            let data: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
            assert_eq!(name.strip_prefix("event: ").unwrap(), data["type"].as_str().unwrap());
            data
        })
        .collect();
    events
}

fn kinds(turn: &Turn) -> String {
    let short = |v: &Value| match v["type"].as_str().unwrap() {
        "content_block_start" => format!("start{}", v["index"]),
        "content_block_delta" => format!("{}{}", v["delta"]["type"].as_str().unwrap(), v["index"]),
        "content_block_stop" => format!("stop{}", v["index"]),
        other => other.to_owned(),
    };
    data(turn).iter().map(short).collect::<Vec<_>>().join(" ")
}

fn joined(turn: &Turn, index: u64, field: &str) -> String {
    let deltas = data(turn);
    let mine = deltas.iter().filter(|v| v["index"] == index);
    mine.filter_map(|v| v["delta"][field].as_str()).collect()
}

fn whole() -> Turn {
    Turn::new("msg_1")
        .thinking("어디 보자, 파일을 읽어야 한다", "c2ln")
        .text("안녕하세요, \"친구\"")
        .tool_call("toolu_1", "read", &json!({"path": "한글.rs"}))
        .usage(Usage { input: 25, output: 12, cache_read: 100, cache_write: 7 })
}

#[test]
fn the_events_follow_the_grammar() {
    let turn = Turn::new("msg_1")
        .thinking("하나 둘 셋 넷 다섯", "c2ln")
        .redacted_thinking("b64")
        .text("안녕하세요")
        .tool_call("toolu_1", "read", &json!({"p": "가"}))
        .ping();
    assert_eq!(
        kinds(&turn),
        "message_start start0 ping thinking_delta0 thinking_delta0 signature_delta0 stop0 start1 stop1 \
         start2 text_delta2 stop2 start3 input_json_delta3 input_json_delta3 input_json_delta3 stop3 ping \
         message_delta message_stop"
    );
}

#[test]
fn the_deltas_join_to_what_was_said() {
    let turn = whole().delta_chars(1);
    assert_eq!(joined(&turn, 0, "thinking"), "어디 보자, 파일을 읽어야 한다");
    assert_eq!(joined(&turn, 0, "signature"), "c2ln");
    assert_eq!(joined(&turn, 1, "text"), "안녕하세요, \"친구\"");
    assert_eq!(joined(&turn, 2, "partial_json"), r#"{"path":"한글.rs"}"#);
}

#[test]
fn usage_and_stop_reason_stand_where_the_service_puts_them() {
    let events = data(&whole());
    let first = &events[0]["message"];
    assert_eq!(first["usage"]["input_tokens"], 25);
    assert_eq!(first["usage"]["cache_read_input_tokens"], 100);
    assert_eq!(first["usage"]["cache_creation_input_tokens"], 7);
    let delta = &events[events.len() - 2];
    assert_eq!((&delta["delta"]["stop_reason"], &delta["usage"]["output_tokens"]), (&json!("tool_use"), &json!(12)));
    let plain = data(&Turn::new("m").text("x").stop("max_tokens"));
    assert_eq!(plain[plain.len() - 2]["delta"]["stop_reason"], "max_tokens");
}

#[test]
fn calls_may_interleave_and_a_stream_may_break() {
    let turn = Turn::new("m").interleaved_calls(&[("a", "read", r#"{"p":"12345"}"#), ("b", "ls", "{}")]);
    assert_eq!(
        kinds(&turn),
        "message_start start0 ping start1 input_json_delta0 input_json_delta1 input_json_delta0 input_json_delta1 \
         input_json_delta0 stop0 stop1 message_delta message_stop"
    );
    assert_eq!(joined(&turn, 1, "partial_json"), "{}");
    let broken = Turn::new("m").text("반").error("overloaded_error", "Overloaded").text("never");
    assert_eq!(kinds(&broken), "message_start start0 ping text_delta0 stop0 error");
}

#[test]
fn event_ends_are_the_places_between_events() {
    let turn = whole();
    let (bytes, ends) = (turn.sse(), turn.event_ends());
    assert_eq!(ends.last(), Some(&bytes.len()));
    assert!(ends.iter().all(|&e| bytes[..e].ends_with(b"\n\n")));
    assert_eq!(turn.reply().pieces.len(), ends.len());
}

#[test]
fn an_error_body_names_its_kind() {
    let reply = error(529, "overloaded_error", "Overloaded");
    let testkit::stub::Piece::Bytes(body) = &reply.pieces[0] else { panic!("a body") };
    let body: Value = serde_json::from_slice(body).unwrap();
    assert_eq!((reply.status, &body["error"]["type"]), (529, &json!("overloaded_error")));
}
