//! What a provider's complaint means: by its status, its kind, and the wording of the servers that have no kinds.
//!
//! Statuses and kinds: <https://docs.anthropic.com/en/api/errors>, <https://platform.openai.com/docs/guides/error-codes>.
//! The wordings are those of the servers themselves (OpenAI, Azure, OpenRouter, Gemini, Groq, xAI, Mistral, DeepSeek; llama.cpp,
//! vLLM, SGLang, Ollama, LM Studio, TGI). What is not known here is judged by its status alone.

use crate::ProviderError;
use crate::error::one_line;
use crate::sse::Decode;
use gjc_entry::Timestamp;
use serde_json::Value;
use std::time::Duration;

/// What an HTTP answer other than 2xx means. `after` is the wait of its `retry-after` header ([`retry_after`]), `body` what
/// came with it.
///
/// An account without credit answers 400 with a sentence about it, a request above the context 400 (or 500, or 429) with
/// another, so the sentence counts too. Without a header the wait is what the body asks for ("try again in 1.5s").
#[must_use]
pub fn classify(status: u16, after: Option<Duration>, body: &[u8]) -> ProviderError {
    let complaint = Complaint::read(body);
    judge(status, after.or(complaint.after), &complaint)
}

/// The wait in a `retry-after` header: seconds, or an HTTP date (RFC 9110 10.2.3) seen from `now`. `None` for anything else.
#[must_use]
pub fn retry_after(value: &str, now: Timestamp) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let at = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(value).ok()?;
    Some(Duration::from_millis(at.as_millisecond().saturating_sub(now.as_millis()).try_into().unwrap_or(0)))
}

/// A complaint within a stream whose head said that all is well: what its kind would mean as a status, unless part of the
/// answer is out already.
pub(crate) fn failure(decoder: &impl Decode, complaint: &Complaint) -> ProviderError {
    if decoder.begun() {
        return decoder.cut(complaint.sentence(500));
    }
    let word = [&complaint.code, &complaint.kind].into_iter().find_map(|word| status_of(word));
    judge(word.unwrap_or(500), complaint.after, complaint)
}

/// What a provider says when it does not answer.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Complaint {
    message: String,
    /// Its word for the kind, as in `rate_limit_error`.
    kind: String,
    /// A second word or a number, as in `insufficient_quota`.
    code: String,
    /// The wait that it asks for.
    after: Option<Duration>,
    /// A limit that no short wait lifts.
    daily: bool,
}

impl Complaint {
    /// A complaint that was read already.
    pub(crate) fn new(message: String, kind: String) -> Self {
        let message = if message.is_empty() { kind.clone() } else { message };
        let after = wait_in(&message);
        Self { message, kind, after, ..Self::default() }
    }

    /// From a body: `{"error": {"message", "type", "code"}}`, `{"error": "…"}`, `{"message": …}`, `{"detail": …}`, one of these in a
    /// list, or any text.
    pub(crate) fn read(body: &[u8]) -> Self {
        match serde_json::from_slice::<Value>(body) {
            Ok(value) => Self::of(&value),
            Err(_) => Self::new(one_line(&String::from_utf8_lossy(body)), String::new()),
        }
    }

    /// From JSON.
    pub(crate) fn of(value: &Value) -> Self {
        let outer = value.get(0).unwrap_or(value);
        let inner = outer.get("error").filter(|error| error.is_object() || error.is_string()).unwrap_or(outer);
        let text = |name: &str| match inner.get(name) {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Number(number)) => number.to_string(),
            _ => String::new(),
        };
        let mut message = match inner {
            Value::String(said) => said.clone(),
            _ => text("message"),
        };
        if message.is_empty() {
            let detail = inner.get("detail");
            let first = detail.and_then(|detail| detail.get(0)).and_then(|first| first.get("msg"));
            message = first.or(detail).and_then(Value::as_str).unwrap_or_default().into();
        }
        // A router tells what its upstream said only here.
        if let Some(raw) = inner.pointer("/metadata/raw").and_then(Value::as_str) {
            message = format!("{message}: {raw}");
        }
        let mut complaint = Self::new(one_line(&message), text("type"));
        complaint.code = text("code");
        let details = inner.get("details").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let delay = details.iter().find_map(|detail| detail.get("retryDelay").and_then(Value::as_str));
        let seconds = inner.get("resets_in_seconds").and_then(Value::as_f64);
        let seconds = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        complaint.after = delay.and_then(span).or(seconds).or(complaint.after);
        complaint.daily = Value::from(details.to_vec()).to_string().contains("PerDay");
        complaint
    }

    fn sentence(&self, status: u16) -> String {
        match one_line(&self.message) {
            said if said.is_empty() => format!("HTTP {status}"),
            said => said,
        }
    }
}

/// Words of an empty account or a used-up allowance.
const QUOTA: &[&str] = &[
    "usage limit",
    "credit balance",
    "insufficient_quota",
    "insufficient quota",
    "insufficient balance",
    "insufficient credits",
    "insufficient_funds",
    "billing",
    "spend limit",
    "spending limit",
    "quota exceeded",
    "quota_exceeded",
    "exceeded your current quota",
    "out of credits",
    "key limit exceeded",
];

/// Words of an allowance that is given anew after hours or days: also where it is told when that is.
const ALLOWANCE: &[&str] = &["usage_limit_reached", "usage limit has been reached"];

/// Words of a conversation that does not fit.
const OVERFLOW: &[&str] = &[
    "prompt is too long",
    "prompt too long",
    "exceed context limit",
    "context window",
    "context length",
    "context_length_exceeded",
    "exceed_context_size",
    "context size",
    "maximum model length",
    "maximum prompt length",
    "max_model_len",
    "maximum number of tokens allowed",
    "input is too long",
    "too many tokens",
    "reduce the length of the messages",
    "`inputs` tokens + `max_new_tokens`",
];

fn judge(status: u16, after: Option<Duration>, complaint: &Complaint) -> ProviderError {
    let said = complaint.sentence(status);
    let lower = format!("{}\n{}\n{}", complaint.message, complaint.kind, complaint.code).to_lowercase();
    let about = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    // Gemini words a limit for each minute like an empty account, but tells when it is over.
    let soon = complaint.after.is_some() && !complaint.daily;
    let quota = about(QUOTA) && !soon || about(ALLOWANCE);
    match status {
        403 if quota => ProviderError::Quota { after, why: said },
        401 | 403 => ProviderError::Auth(said),
        402 => ProviderError::Quota { after, why: said },
        // Groq's allowance of a minute; all others mean bytes.
        413 if about(&["tokens", "context"]) => ProviderError::Overflow(said),
        413 => ProviderError::TooLarge(said),
        400 | 429 if quota => ProviderError::Quota { after, why: said },
        400 | 422 | 500 if about(OVERFLOW) => ProviderError::Overflow(said),
        // A request that is larger than the allowance of a minute never passes; "too many tokens" in a minute does later.
        429 if about(&["request too large for"]) => ProviderError::Overflow(said),
        // Some compatible servers answer a wrong key with 400.
        400 if about(&["invalid_api_key", "api key not valid", "api_key_invalid"]) => ProviderError::Auth(said),
        408 | 425 | 429 | 500.. => ProviderError::Retry { after, why: said },
        300..=399 => {
            ProviderError::BadRequest(format!("it redirects elsewhere (HTTP {status}); check the provider's URL"))
        }
        _ => ProviderError::BadRequest(said),
    }
}

/// The status that a complaint within a stream would have had.
fn status_of(word: &str) -> Option<u16> {
    if let Ok(number) = word.parse::<u16>() {
        return Some(number).filter(|status| (400..600).contains(status));
    }
    Some(match word {
        "invalid_request_error"
        | "invalid_prompt"
        | "bad_request"
        | "context_length_exceeded"
        | "exceed_context_size_error" => 400,
        "authentication_error" | "invalid_api_key" => 401,
        "billing_error" => 402,
        "permission_error" => 403,
        "not_found_error" | "model_not_found" => 404,
        "request_too_large" => 413,
        "rate_limit_error" | "rate_limit_exceeded" | "insufficient_quota" => 429,
        "server_error" | "api_error" => 500,
        "unavailable_error" => 503,
        "timeout_error" => 504,
        "overloaded_error" | "overloaded" | "slow_down" => 529,
        _ => return None,
    })
}

/// The wait that a sentence asks for: "try again in 6m0s", "Please retry in 12.5s.".
fn wait_in(text: &str) -> Option<Duration> {
    let lower = text.to_ascii_lowercase();
    let at = ["try again in ", "retry in ", "retry after "]
        .into_iter()
        .find_map(|marker| lower.find(marker).map(|at| at + marker.len()))?;
    span(&lower[at..])
}

/// A span of time at the beginning of a text: "350ms", "12.5s", "1m2.5s", "2 seconds", "1h0m0s". `None` when it begins with
/// anything else.
pub(crate) fn span(text: &str) -> Option<Duration> {
    let (mut rest, mut all) = (text.trim_start(), None::<Duration>);
    loop {
        let digits = rest.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(rest.len());
        let Ok(number) = rest[..digits].trim_end_matches('.').parse::<f64>() else { return all };
        let after = rest[digits..].trim_start();
        let letters = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let seconds = match &after[..letters] {
            "ms" | "millisecond" | "milliseconds" => number / 1000.0,
            "s" | "sec" | "secs" | "second" | "seconds" => number,
            "m" | "min" | "minute" | "minutes" => number * 60.0,
            "h" | "hour" | "hours" => number * 3600.0,
            _ => return all,
        };
        let part = Duration::try_from_secs_f64(seconds).ok()?;
        all = Some(all.unwrap_or_default().saturating_add(part));
        rest = &after[letters..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_and_sentences_have_their_meaning() {
        let body = |message: &str| {
            serde_json::json!({"type": "error", "error": {"type": "x", "message": message}}).to_string().into_bytes()
        };
        let after = Some(Duration::from_secs(9));
        let text = "다시 시도하세요";
        for (status, message, expected) in [
            (401, "invalid x-api-key", ProviderError::Auth("invalid x-api-key".into())),
            (403, "no permission", ProviderError::Auth("no permission".into())),
            (402, "pay", ProviderError::Quota { after, why: "pay".into() }),
            (400, "messages: 필드", ProviderError::BadRequest("messages: 필드".into())),
            (404, "model: x", ProviderError::BadRequest("model: x".into())),
            (400, "prompt is too long: 9 > 8", ProviderError::Overflow("prompt is too long: 9 > 8".into())),
            (413, "Request exceeds the size", ProviderError::TooLarge("Request exceeds the size".into())),
            (
                400,
                "Your credit balance is too low",
                ProviderError::Quota { after, why: "Your credit balance is too low".into() },
            ),
            (
                429,
                "This would exceed your usage limit.",
                ProviderError::Quota { after, why: "This would exceed your usage limit".into() },
            ),
            (429, text, ProviderError::Retry { after, why: text.into() }),
            (500, text, ProviderError::Retry { after, why: text.into() }),
            (502, text, ProviderError::Retry { after, why: text.into() }),
            (503, text, ProviderError::Retry { after, why: text.into() }),
            (504, text, ProviderError::Retry { after, why: text.into() }),
            (529, text, ProviderError::Retry { after, why: text.into() }),
        ] {
            let error = classify(status, after, &body(message));
            assert_eq!(error, expected, "{status} {message}");
            assert!(error.to_string().contains("; "), "has a way out: {error}");
        }
        assert!(matches!(classify(302, None, b""), ProviderError::BadRequest(_)));
    }

    /// Bodies as the servers send them.
    #[test]
    fn a_conversation_that_does_not_fit_is_known_in_the_words_of_each_server() {
        for (status, body) in [
            (
                400,
                r#"{"error":{"message":"This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
            ),
            (
                400,
                r#"{"error":{"message":"Your input exceeds the context window of this model.","type":"invalid_request_error","code":null}}"#,
            ),
            (
                400,
                r#"{"error":{"code":400,"message":"request (4390 tokens) exceeds the available context size (4096 tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":4390,"n_ctx":4096}}"#,
            ),
            (500, r#"{"error":{"code":500,"message":"Context size has been exceeded.","type":"server_error"}}"#),
            (
                400,
                r#"{"object":"error","message":"The decoder prompt (length 9000) is longer than the maximum model length of 4096.","type":"BadRequestError","code":400}"#,
            ),
            (
                400,
                r#"{"object":"error","message":"The input (9000 tokens) is longer than the model's context length (4096 tokens).","code":400}"#,
            ),
            (
                400,
                r#"{"error":"Trying to keep the first 9000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens"}"#,
            ),
            (
                400,
                r#"{"error":{"message":"prompt too long; exceeded max context length by 12 tokens","type":"invalid_request_error"}}"#,
            ),
            (
                400,
                r#"[{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}]"#,
            ),
            (
                400,
                r#"{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"This endpoint's maximum context length is 8192 tokens.","provider_name":"x"}}}"#,
            ),
            (
                400,
                r#"{"error":"This model's maximum prompt length is 131072 but the request contains 537812 tokens."}"#,
            ),
            (
                413,
                r#"{"error":{"message":"Request too large for model `x` on tokens per minute (TPM): Limit 6000, Requested 9000","type":"tokens","code":"rate_limit_exceeded"}}"#,
            ),
            (422, r#"{"error":"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096"}"#),
            (
                429,
                r#"{"error":{"message":"Request too large for gpt-4o in organization o on tokens per min (TPM): Limit 30000, Requested 90000.","type":"tokens","code":"rate_limit_exceeded"}}"#,
            ),
        ] {
            let error = classify(status, None, body.as_bytes());
            assert!(matches!(error, ProviderError::Overflow(_)), "{status} {body}: {error:?}");
        }
    }

    #[test]
    fn a_body_that_is_too_large_is_known_in_the_words_of_each_server() {
        for body in [
            r#"{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}"#,
            r#"{"error":{"message":"Request Entity Too Large"}}"#,
            "<html><head><title>413 Request Entity Too Large</title></head></html>",
            "",
        ] {
            let error = classify(413, None, body.as_bytes());
            assert!(matches!(error, ProviderError::TooLarge(_)), "{body}: {error:?}");
        }
    }

    #[test]
    fn a_limit_of_the_minute_is_no_empty_account() {
        let empty = [
            r#"{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","code":"insufficient_quota"}}"#,
            r#"{"error":{"message":"Insufficient Balance","type":"unknown_error"}}"#,
            r#"[{"error":{"code":429,"message":"You exceeded your current quota. Please retry in 3.2s.","details":[{"violations":[{"quotaId":"GenerateRequestsPerDayPerProject"}]},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"3s"}]}}]"#,
        ];
        for body in empty {
            assert!(matches!(classify(429, None, body.as_bytes()), ProviderError::Quota { .. }), "{body}");
        }
        let busy = br#"{"message":"Too many tokens, please wait before trying again."}"#;
        assert!(matches!(classify(429, None, busy), ProviderError::Retry { after: None, .. }));
        let soon = [
            (
                r#"{"error":{"message":"Rate limit reached for gpt-x on tokens per min (TPM): Limit 30000, Used 29000. Please try again in 6m1.5s. Visit https://h/account/billing.","type":"tokens","code":"rate_limit_exceeded"}}"#,
                361_500,
            ),
            (r#"{"error":{"message":"Rate limit reached. Please try again in 350ms."}}"#, 350),
            (
                r#"[{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details.","status":"RESOURCE_EXHAUSTED","details":[{"violations":[{"quotaId":"GenerateRequestsPerMinute"}]},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"12.5s"}]}}]"#,
                12_500,
            ),
        ];
        for (body, millis) in soon {
            let error = classify(429, None, body.as_bytes());
            assert!(matches!(error, ProviderError::Retry { .. }), "{body}: {error:?}");
            assert_eq!(error.after(), Some(Duration::from_millis(millis)), "{body}");
        }
        let header = Some(Duration::from_secs(2));
        assert_eq!(classify(429, header, soon[0].0.as_bytes()).after(), header, "the header goes before the body");
    }

    #[test]
    fn any_body_becomes_one_short_line() {
        let said = |body: &[u8]| Complaint::read(body).sentence(418);
        assert_eq!(said(br#"{"error":"overloaded"}"#), "overloaded");
        assert_eq!(said(br#"{"message":"a\nb"}"#), "a b");
        assert_eq!(said(br#"{"detail":"Not Found"}"#), "Not Found");
        assert_eq!(said(br#"{"detail":[{"loc":["body"],"msg":"field required"}]}"#), "field required");
        assert_eq!(said(r#"[{"error":{"message":"한글"}}]"#.as_bytes()), "한글");
        assert_eq!(said(b"<html>\r\n<b>Bad\x1b[2J Gateway</b>"), "<html> <b>Bad [2J Gateway</b>");
        for nothing in [&b"  "[..], b"{}", b"[]", b"null", b"7", br#"{"error":null}"#, br#"{"error":{"message":3}}"#] {
            assert!(["HTTP 418", "7", "3"].contains(&said(nothing).as_str()), "{}", said(nothing));
        }
        assert!(!said(b"\xff\xfe").is_empty());
        let deep = [b"[".repeat(50_000), b"]".repeat(50_000)].concat();
        assert!(said(&deep).chars().count() <= 401);
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now: Timestamp = "2026-06-05T07:18:54.000Z".parse().unwrap();
        assert_eq!(retry_after("12", now), Some(Duration::from_secs(12)));
        assert_eq!(retry_after(" 0.5 ", now), Some(Duration::from_millis(500)));
        assert_eq!(retry_after("Fri, 05 Jun 2026 07:19:24 GMT", now), Some(Duration::from_secs(30)));
        assert_eq!(retry_after("Fri, 05 Jun 2026 07:00:00 GMT", now), Some(Duration::ZERO));
        for bad in ["", "-1", "NaN", "inf", "1e300", "soon", "내일"] {
            assert_eq!(retry_after(bad, now), None, "{bad}");
        }
    }

    #[test]
    fn a_span_of_time_is_read_as_it_is_written() {
        let millis = |text| span(text).map(|span| span.as_millis());
        assert_eq!(millis("1h2m3.5s."), Some(3_723_500));
        assert_eq!(millis("20 seconds"), Some(20_000));
        assert_eq!(millis("12"), None);
        for bad in ["", "한 시간", "1e9s", "..s", "soon", "9999999999999999999999999h"] {
            assert_eq!(millis(bad), None, "{bad}");
        }
    }
}
