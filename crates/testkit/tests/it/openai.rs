use serde_json::{Value, json};
use testkit::openai::{Chat, Response, Usage, error};

fn chunks(sse: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(sse).unwrap();
    let data = text.split_terminator("\n\n").map(|event| event.rsplit("data: ").next().unwrap());
    data.filter(|data| *data != "[DONE]").map(|data| serde_json::from_str(data).unwrap()).collect()
}

#[test]
fn chunks_join_to_what_was_said() {
    let chat = Chat::new("c1")
        .reasoning("어디 보자, 파일을 읽어야 한다")
        .text("안녕하세요, \"친구\"")
        .interleaved_calls(&[("a", "read", r#"{"path":"한글.rs"}"#), ("b", "ls", "{}")])
        .usage(Usage { input: 120, output: 7, cached: 100 });
    let chunks = chunks(&chat.sse());
    let joined = |path: &str| chunks.iter().filter_map(|chunk| chunk.pointer(path)?.as_str()).collect::<String>();
    assert_eq!(joined("/choices/0/delta/reasoning_content"), "어디 보자, 파일을 읽어야 한다");
    assert_eq!(joined("/choices/0/delta/content"), "안녕하세요, \"친구\"");
    assert_eq!(joined("/choices/0/finish_reason"), "tool_calls");
    let first = chunks.iter().filter_map(|chunk| chunk.pointer("/choices/0/delta/tool_calls/0"));
    let of_a = first.filter(|call| call["index"] == 0).filter_map(|call| call["function"]["arguments"].as_str());
    assert_eq!(of_a.collect::<String>(), r#"{"path":"한글.rs"}"#);
    assert_eq!(chunks.last().unwrap()["usage"]["prompt_tokens_details"]["cached_tokens"], 100);
    assert_eq!(*chat.event_ends().last().unwrap(), chat.sse().len());
}

#[test]
fn events_of_a_response_carry_their_names_and_its_end_repeats_all_items() {
    let response = Response::new("r1").reasoning("어디 보자", "c2ln").text("안녕하세요, 친구여 반갑습니다").tool_call(
        "a",
        "read",
        r#"{"path":"한글.rs"}"#,
    );
    let text = String::from_utf8(response.sse()).unwrap();
    for event in text.split_terminator("\n\n") {
        let (name, data) = event.split_once('\n').unwrap();
        let data: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
        assert_eq!(name.strip_prefix("event: ").unwrap(), data["type"].as_str().unwrap());
    }
    let all = chunks(&response.sse());
    assert!((0u64..).zip(&all).all(|(n, event)| event["sequence_number"] == n));
    let deltas = all.iter().filter(|event| event["type"] == "response.output_text.delta");
    assert_eq!(deltas.filter_map(|event| event["delta"].as_str()).collect::<String>(), "안녕하세요, 친구여 반갑습니다");
    let end = all.last().unwrap();
    let kinds: Vec<&str> =
        end["response"]["output"].as_array().unwrap().iter().map(|i| i["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["reasoning", "message", "function_call"]);
    assert_eq!(end["response"]["output"][0]["encrypted_content"], "c2ln");
}

#[test]
fn an_error_ends_the_stream() {
    let chat = Chat::new("c").text("반").error("server_error", "끊김").text("안 옴");
    assert_eq!(chunks(&chat.sse()).last().unwrap()["error"], json!({"code": "server_error", "message": "끊김"}));
    assert!(!String::from_utf8(chat.sse()).unwrap().contains("DONE"));
    let response = Response::new("r").text("반").error("server_error", "끊김").text("안 옴");
    assert_eq!(chunks(&response.sse()).last().unwrap()["response"]["error"]["message"], "끊김");
    assert!(!String::from_utf8(response.sse()).unwrap().contains("안 옴"));
    assert!(error(429, "insufficient_quota", "없음").body_len() > 0);
}
