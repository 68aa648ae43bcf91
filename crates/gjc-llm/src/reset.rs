//! When a limit that is used up is lifted: what the heads of refusals tell beside `retry-after`.

use crate::classify::span;
use gjc_entry::Timestamp;
use reqwest::header::HeaderMap;
use std::time::Duration;

/// The wait until every limit is lifted that a head calls used up; `None` where it names none.
///
/// Anthropic (<https://platform.claude.com/docs/en/api/rate-limits>): `anthropic-ratelimit-<what>-remaining` and
/// `anthropic-ratelimit-<what>-reset`, a point in time (RFC 3339); for plans `anthropic-ratelimit-unified-status` (`rejected`)
/// and `-unified-reset`, seconds since the epoch. OpenAI (<https://platform.openai.com/docs/guides/rate-limits>) and who follows
/// it: `x-ratelimit-remaining-<what>` and `x-ratelimit-reset-<what>`, a span such as `6m0s`.
pub(crate) fn reset(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let until =
        |at_millis: i64| Duration::from_millis(at_millis.saturating_sub(now.as_millis()).try_into().unwrap_or(0));
    let seconds = |text: &str| text.parse::<i64>().ok().map(|seconds| until(seconds.saturating_mul(1_000)));
    let time = |text: &str| text.parse::<Timestamp>().ok().map(|at| until(at.as_millis()));
    let mut waits = Vec::new();
    if is_used_up(headers) {
        waits
            .extend(text("anthropic-ratelimit-unified-reset").and_then(|reset| seconds(reset).or_else(|| time(reset))));
    }
    for what in ["requests", "tokens", "input-tokens", "output-tokens"] {
        if text(&format!("anthropic-ratelimit-{what}-remaining")) == Some("0") {
            waits.extend(text(&format!("anthropic-ratelimit-{what}-reset")).and_then(time));
        }
        if text(&format!("x-ratelimit-remaining-{what}")) == Some("0") {
            waits.extend(text(&format!("x-ratelimit-reset-{what}")).and_then(span));
        }
    }
    waits.into_iter().max()
}

/// Whether a head says that a plan is used up.
pub(crate) fn is_used_up(headers: &HeaderMap) -> bool {
    headers.get("anthropic-ratelimit-unified-status").is_some_and(|status| status.as_bytes() == b"rejected")
}

#[cfg(test)]
mod tests {
    use super::*;
    use reqwest::header::{HeaderName, HeaderValue};

    fn of(fields: &[(&str, &str)]) -> Option<Duration> {
        let field = |(name, value): &(&str, &str)| {
            (HeaderName::try_from(*name).unwrap(), HeaderValue::from_bytes(value.as_bytes()).unwrap())
        };
        reset(&fields.iter().map(field).collect(), "2026-06-05T07:18:54.000Z".parse().unwrap())
    }

    #[test]
    fn the_longest_wait_counts_of_the_limits_that_are_used_up() {
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        let unified = "anthropic-ratelimit-unified-reset";
        let rejected = ("anthropic-ratelimit-unified-status", "rejected");
        assert_eq!(of(&[rejected, (unified, "1780647534")]), seconds(3_600));
        assert_eq!(of(&[(unified, "1780647534")]), None, "it is told with every answer");
        assert_eq!(of(&[rejected, (unified, "1")]), seconds(0));
        let requests = [
            ("anthropic-ratelimit-requests-remaining", "0"),
            ("anthropic-ratelimit-requests-reset", "2026-06-05T07:19:54Z"),
            ("anthropic-ratelimit-tokens-remaining", "5"),
            ("anthropic-ratelimit-tokens-reset", "2026-06-06T07:19:54Z"),
        ];
        assert_eq!(of(&requests), seconds(60));
        let openai = [
            ("x-ratelimit-remaining-requests", "0"),
            ("x-ratelimit-reset-requests", "6m0s"),
            ("x-ratelimit-remaining-tokens", "0"),
            ("x-ratelimit-reset-tokens", "1h2m"),
        ];
        assert_eq!(of(&openai), seconds(3_720));
    }

    #[test]
    fn what_makes_no_sense_says_nothing() {
        for bad in ["", "soon", "-1", "NaN", "99999999999999999999", "\u{ff}", "내일"] {
            let wait = of(&[
                ("anthropic-ratelimit-requests-remaining", "0"),
                ("anthropic-ratelimit-requests-reset", bad),
                ("x-ratelimit-remaining-tokens", "0"),
                ("x-ratelimit-reset-tokens", bad),
            ]);
            assert_eq!(wait, None, "{bad}");
        }
        assert_eq!(of(&[]), None);
    }
}
