//! What the two wires of OpenAI have in common: where a request goes, the words for thinking and tiers, how tokens are counted.
//!
//! Neither wire tells what a model takes, and a request is a pure function of the log: so what differs between models is
//! decided by the model's name alone. A name that is not known here gets what most servers take.

use gjc_entry::message::Usage;
use gjc_entry::{Thinking, Tier};
use serde_json::Value;

/// OpenAI's own server.
pub(crate) const URL: &str = "https://api.openai.com/v1";

/// How both wires take a key.
pub(crate) const KEY: (&str, &str) = ("authorization", "Bearer ");

/// The address of `last` below a base URL: one without a path gets `/v1`, one with a path has its version in it (`/v1`,
/// `/v1beta/openai`, `/api/v1`), and one that names the endpoint already stays. A query stays where it is.
pub(crate) fn endpoint(base: &str, last: &str) -> String {
    let Ok(mut url) = reqwest::Url::parse(base.trim()) else { return base.into() };
    let path = url.path().trim_end_matches('/');
    let path = match path {
        "" => format!("/v1/{last}"),
        path if path.ends_with(&format!("/{last}")) => path.into(),
        path => format!("{path}/{last}"),
    };
    url.set_path(&path);
    url.into()
}

/// The name without what routers put before it, as in `openai/gpt-5`.
fn bare(model: &str) -> String {
    model.rsplit('/').next().unwrap_or(model).to_ascii_lowercase()
}

/// The version of a `gpt-…`, as (5, 1) for `gpt-5.1-codex`; of others none.
fn gpt(bare: &str) -> Option<(u32, u32)> {
    let rest = bare.strip_prefix("gpt-")?;
    let number = |text: &str| text.split(|c: char| !c.is_ascii_digit()).next().and_then(|digits| digits.parse().ok());
    let major: u32 = number(rest)?;
    let minor = rest.trim_start_matches(|c: char| c.is_ascii_digit()).strip_prefix('.').and_then(number);
    Some((major, minor.unwrap_or(0)))
}

/// Whether it is a model of OpenAI that always thinks before it speaks: `o1`, `o3-mini`, `gpt-5`, `codex-mini-latest`.
pub(crate) fn reasons(model: &str) -> bool {
    let bare = bare(model);
    let o = bare.strip_prefix('o').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let gpt = gpt(&bare).is_some_and(|(major, _)| major >= 5) && !bare.contains("-chat");
    o || gpt || bare.starts_with("codex-")
}

/// The word for a level of thinking, or for the level next to it that the model has; `None` asks for nothing.
///
/// `minimal` is known to `gpt-5` (not to its later versions or to Codex) and to Gemini, `xhigh` to `gpt-5.2` and later and to
/// `codex-max` (<https://platform.openai.com/docs/guides/reasoning>).
pub(crate) fn effort(model: &str, thinking: Thinking) -> Option<&'static str> {
    let bare = bare(model);
    let version = gpt(&bare);
    Some(match thinking {
        Thinking::Off => return None,
        Thinking::Minimal => {
            let gpt_5 = version == Some((5, 0)) && !bare.contains("codex");
            if gpt_5 || bare.starts_with("gemini") { "minimal" } else { "low" }
        }
        Thinking::Low => "low",
        Thinking::Medium => "medium",
        Thinking::High => "high",
        Thinking::Xhigh => {
            let later = version.is_some_and(|version| version >= (5, 2));
            if later || bare.contains("codex-max") { "xhigh" } else { "high" }
        }
    })
}

/// The word for a tier (<https://platform.openai.com/docs/api-reference>); `None` asks for nothing.
pub(crate) fn tier(tier: Tier) -> Option<&'static str> {
    (tier != Tier::Auto).then_some(tier.as_str())
}

/// The first of these numbers that stands in an object. Paths as in `prompt_tokens_details/cached_tokens`.
pub(crate) fn number(value: &Value, paths: &[&str]) -> Option<u64> {
    paths.iter().find_map(|path| {
        let found = value.pointer(&format!("/{path}"))?;
        found.as_u64().or_else(|| found.as_f64().filter(|number| *number >= 0.0).map(|number| number as u64))
    })
}

/// Tokens as they are stored. These wires count what was read from a cache or written to it among the input; stored it is
/// beside it.
pub(crate) fn counted(prompt: u64, read: u64, written: u64, output: u64) -> Usage {
    let input = prompt.saturating_sub(read).saturating_sub(written);
    let total_tokens = [input, output, read, written].into_iter().fold(0, u64::saturating_add);
    Usage { input, output, cache_read: read, cache_write: written, total_tokens, ..Usage::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_spelling_of_a_base_url_leads_to_the_endpoint() {
        let chat = |base| endpoint(base, "chat/completions");
        for base in ["http://h:1", "http://h:1/", "http://h:1/v1", " http://h:1/v1/ ", "http://h:1/v1/chat/completions"]
        {
            assert_eq!(chat(base), "http://h:1/v1/chat/completions");
        }
        assert_eq!(chat("https://h/v1beta/openai/"), "https://h/v1beta/openai/chat/completions");
        assert_eq!(chat("https://h/api/v1"), "https://h/api/v1/chat/completions");
        assert_eq!(chat("https://h/v1?api-version=1"), "https://h/v1/chat/completions?api-version=1");
        assert_eq!(chat("no url"), "no url");
    }

    #[test]
    fn what_a_model_takes_is_told_by_its_name() {
        for model in ["o1", "o3-mini", "gpt-5", "openai/gpt-5.1-codex", "GPT-6-turbo", "codex-mini-latest"] {
            assert!(reasons(model), "{model}");
        }
        for model in
            ["gpt-4o", "gpt-4.1", "gpt-oss-120b", "gpt-5-chat-latest", "olmo-2", "qwen3", "한글", "", "gpt-", "o"]
        {
            assert!(!reasons(model), "{model}");
        }
        assert_eq!(effort("gpt-5", Thinking::Off), None);
        assert_eq!(effort("gpt-5-mini", Thinking::Minimal), Some("minimal"));
        assert_eq!(effort("gpt-5.1", Thinking::Minimal), Some("low"));
        assert_eq!(effort("google/gemini-3-pro", Thinking::Minimal), Some("minimal"));
        assert_eq!(effort("gpt-oss-20b", Thinking::Xhigh), Some("high"));
        assert_eq!(effort("gpt-5.2", Thinking::Xhigh), Some("xhigh"));
        assert_eq!(effort("gpt-5.1-codex-max", Thinking::Xhigh), Some("xhigh"));
        assert_eq!(gpt("gpt-99999999999"), None);
    }

    #[test]
    fn input_is_what_was_not_read_from_a_cache() {
        let usage = counted(120, 100, 5, 7);
        assert_eq!(
            (usage.input, usage.cache_read, usage.cache_write, usage.output, usage.total_tokens),
            (15, 100, 5, 7, 127)
        );
        assert_eq!(counted(3, 9, 0, u64::MAX).input, 0, "a server that cannot count");
        assert_eq!(number(&serde_json::json!({"a": null, "b": {"c": 2.0}}), &["a", "b/c"]), Some(2));
        assert_eq!(number(&serde_json::json!({"a": -1, "b": "3"}), &["a", "b"]), None);
    }
}
