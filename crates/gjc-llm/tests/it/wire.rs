//! The events of the Messages API. What holds on every wire stands in `wires.rs`.

use crate::kit::{RECORDED, assembled, block_on, decoded, json, recorded};
use bytes::Bytes;
use gjc_llm::ProviderError;

fn decode_pieces(pieces: Vec<Bytes>) -> (String, Option<ProviderError>) {
    let (message, error) = assembled(block_on(decoded(pieces)));
    (json(&message), error)
}

#[test]
fn a_call_that_breaks_off_keeps_its_text() {
    let body = recorded();
    let cut = body.find("서.md").unwrap();
    let cut = body[..cut].rfind("event:").unwrap();
    let (message, error) = decode_pieces(vec![Bytes::copy_from_slice(&body.as_bytes()[..cut])]);
    assert!(matches!(error, Some(ProviderError::Cut { replay_safe: false, .. })));
    assert!(message.contains(r#""name":"read","arguments":{},"gjcIncomplete":"{\"path\": \"문"}"#), "{message}");
}

#[test]
fn errors_in_the_stream_mean_what_their_place_says() {
    let error = |kind: &str| {
        format!("event: error\ndata: {{\"type\":\"error\",\"error\":{{\"type\":\"{kind}\",\"message\":\"앗\"}}}}\n\n")
    };
    let start = &recorded()[..recorded().find("event: content_block_start").unwrap()];
    let only = |body: String| decode_pieces(vec![body.into()]).1.unwrap();
    assert!(matches!(only(start.to_owned() + &error("overloaded_error")), ProviderError::Retry { after: None, .. }));
    assert!(matches!(only(error("api_error")), ProviderError::Retry { .. }));
    assert!(matches!(only(error("rate_limit_error")), ProviderError::Retry { .. }));
    assert!(matches!(only(error("authentication_error")), ProviderError::Auth(_)));
    assert!(matches!(only(error("billing_error")), ProviderError::Quota { .. }));
    assert!(matches!(only(error("request_too_large")), ProviderError::TooLarge(_)));
    assert!(matches!(only(error("invalid_request_error")), ProviderError::BadRequest(_)));
    let middle = &recorded()[..recorded().find("event: message_delta").unwrap()];
    let late = only(middle.to_owned() + &error("overloaded_error"));
    assert_eq!(late, ProviderError::Cut { replay_safe: false, why: "앗".into() });
}

#[test]
fn nonsense_is_an_error_and_never_a_panic() {
    for body in [
        "data: {\n\n",
        "data: []\n\n",
        "data: {\"type\":\"content_block_delta\"}\n\n",
        "data: {\"type\":\"content_block_start\",\"index\":70000,\"content_block\":{\"type\":\"text\"}}\n\n",
        "data: \u{0}\n\n",
        "<html>no</html>",
    ] {
        let (_, error) = decode_pieces(vec![Bytes::copy_from_slice(body.as_bytes())]);
        assert!(matches!(error, Some(ProviderError::Cut { replay_safe: true, .. })), "{body}: {error:?}");
    }
    let (_, error) = decode_pieces(vec![Bytes::from_static(b"data: \xff\xfe\n\n")]);
    assert!(matches!(error, Some(ProviderError::Cut { .. })));
}

/// A connection that is not read to its end cannot be used again: the next request would pay for a new handshake.
#[test]
fn a_whole_answer_is_read_to_the_end_of_its_body() {
    use futures_util::{StreamExt, stream};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    let at_the_end = Arc::new(AtomicBool::new(false));
    let flag = at_the_end.clone();
    let end = stream::poll_fn(move |_| {
        flag.store(true, Ordering::SeqCst);
        std::task::Poll::Ready(None)
    });
    let body = stream::iter([Ok::<_, std::io::Error>(Bytes::from(recorded()))]).chain(end);
    let (message, error) = assembled(block_on(gjc_llm::anthropic::decode(body).collect()));
    assert_eq!((json(&message).as_str(), error), (RECORDED, None));
    assert!(at_the_end.load(Ordering::SeqCst));
}

#[test]
fn what_lenient_servers_send_is_understood() {
    // Arguments with the beginning of the block, no end of it, no stop reason, a `[DONE]`, half an emoji.
    let body = concat!(
        "data: {\"type\":\"message_start\",\"message\":{}}\n\n",
        "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\\ud83d\"}}\n\n",
        "data: {\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"ls\",\"input\":{\"경로\": \".\"}}}\n\n",
        "data: {\"type\":\"message_stop\"}\n\ndata: [DONE]\n\n",
    );
    let (message, error) = decode_pieces(vec![Bytes::from_static(body.as_bytes())]);
    assert_eq!(error, None);
    assert!(message.contains(r#""text":"�""#) && message.contains(r#""arguments":{"경로": "."}"#), "{message}");
    assert!(message.contains(r#""stopReason":"toolUse""#));
}
