//! What can go wrong between us and a model, and what to do about it.

use gjc_entry::Timestamp;
use serde::Deserialize;
use std::time::Duration;

/// Why there is no (whole) answer. Each is a sentence for a person with a way out, and none holds a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProviderError {
    /// Nothing of an answer has come, and asking again may help.
    #[error("the provider cannot answer now: {why}; try again in a moment")]
    Retry {
        /// The wait that the provider asks for.
        after: Option<Duration>,
        /// What it says.
        why: String,
    },
    /// The conversation does not fit.
    #[error("the conversation is too long for the model: {0}; compact it or choose a model with a longer context")]
    Overflow(String),
    /// The key is missing, wrong, or not allowed to do this.
    #[error("the provider refused the key: {0}; check the key of this provider and its permissions")]
    Auth(String),
    /// A usage limit or an empty account: only time or money helps.
    #[error("the provider's usage limit is reached: {why}; wait for its reset, add credit or choose another model")]
    Quota {
        /// The wait until the reset, where the provider tells.
        after: Option<Duration>,
        /// What it says.
        why: String,
    },
    /// The request will never work as it is.
    #[error("the provider refused the request: {0}; change the model, the settings or the message before asking again")]
    BadRequest(String),
    /// The answer broke off.
    #[error("the answer broke off: {why}; {}", if *.replay_safe { "nothing of it was shown, so it can be asked for again" } else { "what came is kept, ask the model to go on" })]
    Cut {
        /// Whether nothing of the answer was passed on, so that asking again shows nothing twice.
        replay_safe: bool,
        /// What happened.
        why: String,
    },
}

impl ProviderError {
    /// Whether the same request may be sent again without a person: nothing of an answer was passed on.
    #[must_use]
    pub fn may_retry(&self) -> bool {
        matches!(self, Self::Retry { .. } | Self::Cut { replay_safe: true, .. })
    }

    /// The wait that the provider asked for.
    #[must_use]
    pub fn after(&self) -> Option<Duration> {
        match self {
            Self::Retry { after, .. } | Self::Quota { after, .. } => *after,
            _ => None,
        }
    }

    /// The same error with every text in it changed by `change` (masking).
    pub(crate) fn map_text(mut self, change: impl FnOnce(&str) -> String) -> Self {
        let (Self::Overflow(text)
        | Self::Auth(text)
        | Self::BadRequest(text)
        | Self::Retry { why: text, .. }
        | Self::Quota { why: text, .. }
        | Self::Cut { why: text, .. }) = &mut self;
        *text = change(text);
        self
    }
}

/// What an HTTP answer other than 2xx means. `after` is the wait of its `retry-after` header ([`retry_after`]), `body` what
/// came with it.
///
/// Statuses and error types: <https://docs.anthropic.com/en/api/errors>. An account without credit answers 400 with a
/// sentence about it, a request above the context answers 400 with "prompt is too long", so the sentence counts too.
#[must_use]
pub fn classify(status: u16, after: Option<Duration>, body: &[u8]) -> ProviderError {
    let said = message_of(body).unwrap_or_else(|| format!("HTTP {status}"));
    let lower = said.to_lowercase();
    let about = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    let quota =
        about(&["usage limit", "credit balance", "insufficient_quota", "billing", "spend limit", "quota exceeded"]);
    match status {
        401 | 403 => ProviderError::Auth(said),
        402 => ProviderError::Quota { after, why: said },
        413 => ProviderError::Overflow(said),
        400 | 429 if quota => ProviderError::Quota { after, why: said },
        400 if about(&["prompt is too long", "exceed context limit", "context window", "context length"]) => {
            ProviderError::Overflow(said)
        }
        408 | 429 | 500.. => ProviderError::Retry { after, why: said },
        300..=399 => {
            ProviderError::BadRequest(format!("it redirects elsewhere (HTTP {status}); check the provider's URL"))
        }
        _ => ProviderError::BadRequest(said),
    }
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

/// The provider's sentence in an error body, `None` when it is empty.
fn message_of(body: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Wrapped {
        error: Said,
    }
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Said {
        Object { message: String },
        Text(String),
    }
    let said = match serde_json::from_slice(body) {
        Ok(Wrapped { error: Said::Object { message } | Said::Text(message) }) => message,
        Err(_) => match serde_json::from_slice(body) {
            Ok(Said::Object { message } | Said::Text(message)) => message,
            Err(_) => String::from_utf8_lossy(body).into_owned(),
        },
    };
    Some(one_line(&said)).filter(|said| !said.is_empty())
}

/// A text of unknown origin as part of a sentence: one line, no control characters, at most 400 characters, no full stop
/// at its end.
pub(crate) fn one_line(text: &str) -> String {
    let words: Vec<&str> =
        text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()).collect();
    let line = words.join(" ");
    let line = line.trim_end_matches('.');
    match line.char_indices().nth(400) {
        Some((cut, _)) => format!("{}…", &line[..cut]),
        None => line.into(),
    }
}

/// The innermost cause: "Connection refused (os error 111)" instead of "error sending request".
pub(crate) fn root_cause(error: &(dyn std::error::Error + 'static)) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    one_line(&cause.to_string())
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
            (413, "Request exceeds the size", ProviderError::Overflow("Request exceeds the size".into())),
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

    #[test]
    fn any_body_becomes_one_short_line() {
        assert_eq!(message_of(br#"{"error":"overloaded"}"#).unwrap(), "overloaded");
        assert_eq!(message_of(br#"{"message":"a\nb"}"#).unwrap(), "a b");
        assert_eq!(message_of(b"<html>\r\n<b>Bad\x1b[2J Gateway</b>").unwrap(), "<html> <b>Bad [2J Gateway</b>");
        assert_eq!(message_of(b"  "), None);
        assert!(message_of(b"\xff\xfe").is_some());
        let long = one_line(&"한글".repeat(1000));
        assert_eq!(long.chars().count(), 401);
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
}
