//! Secrets, taken out of a text that a person may give to others.

use regex::Regex;
use std::borrow::Cow;

/// What stands in the place of a secret.
const MASKED: &str = "[secret]";

/// The shapes of tokens that anybody can tell: of Anthropic, OpenAI and who follows them, GitHub, GitLab, Slack, Google, AWS,
/// Hugging Face, npm, Stripe; signed tokens (JWT); private keys; what stands behind `Bearer` and in the address of a server.
const SHAPES: &[&str] = &[
    r"\bsk-[A-Za-z0-9_-]{16,}",
    r"\b(?:ghp|gho|ghu|ghs|ghr)_[A-Za-z0-9]{20,}",
    r"\bgithub_pat_[A-Za-z0-9_]{20,}",
    r"\bglpat-[A-Za-z0-9_-]{16,}",
    r"\bxox[a-z]-[A-Za-z0-9-]{10,}",
    r"\bAIza[A-Za-z0-9_-]{30,}",
    r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",
    r"\bhf_[A-Za-z0-9]{20,}",
    r"\bnpm_[A-Za-z0-9]{20,}",
    r"\b[rsp]k_(?:live|test)_[A-Za-z0-9]{16,}",
    r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*",
    r"(?i)\bbearer [A-Za-z0-9._~+/-]{16,}=*",
    r"(?i)\bauthorization\b[^\sA-Za-z]*\s*[A-Za-z]+ +[A-Za-z0-9._~+/=-]{6,}",
    r"(?s)-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----.*?-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----",
    r"-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----[A-Za-z0-9+/=\s\\]*",
    r"://[^\s/@:]*:[^\s/@]+@",
];

/// The shortest value that is taken for a secret wherever it stands; shorter ones would take words out of texts.
const SHORTEST: usize = 8;

/// Takes secrets out of texts.
#[derive(Debug)]
pub struct Masks {
    /// Longest first: one secret may begin with another.
    known: Vec<String>,
    shapes: Vec<Regex>,
}

impl Masks {
    /// With these secrets, beside everything that has the shape of one.
    #[must_use]
    pub fn new(known: impl IntoIterator<Item = String>) -> Self {
        let long = |secret: &String| secret.len() >= SHORTEST;
        let mut known: Vec<String> = known.into_iter().map(|secret| secret.trim().to_owned()).filter(long).collect();
        known.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Self { known, shapes: SHAPES.iter().filter_map(|shape| Regex::new(shape).ok()).collect() }
    }

    /// A text without them.
    #[must_use]
    pub fn mask(&self, text: &str) -> String {
        let mut text = Cow::Borrowed(text);
        for secret in &self.known {
            if text.contains(secret.as_str()) {
                text = text.replace(secret.as_str(), MASKED).into();
            }
            // In JSON it may stand with escapes.
            let json = serde_json::Value::from(secret.as_str()).to_string();
            let json = json.trim_matches('"');
            if json != secret && text.contains(json) {
                text = text.replace(json, MASKED).into();
            }
        }
        for shape in &self.shapes {
            if let Cow::Owned(masked) = shape.replace_all(&text, MASKED) {
                text = masked.into();
            }
        }
        text.into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn every_shape_is_a_sound_pattern() {
        assert_eq!(Masks::new([]).shapes.len(), SHAPES.len());
    }

    #[test]
    fn secrets_go_and_words_stay() {
        let masks = Masks::new(["비밀의 열쇠".into(), "quo\"ted-secret".into(), "short".into(), "  ".into()]);
        for secret in [
            "비밀의 열쇠".to_owned(),
            "quo\"ted-secret".to_owned(),
            format!("sk-ant-api03-{}", "x".repeat(40)),
            format!("ghp_{}", "a1".repeat(18)),
            format!("xoxb-{}", "1".repeat(12)),
            format!("AKIA{}", "Z".repeat(16)),
            format!("eyJ{}.eyJ{}.{}", "a".repeat(12), "b".repeat(12), "c".repeat(20)),
            format!("Bearer {}", "t".repeat(24)),
            "-----BEGIN RSA PRIVATE KEY-----\nMIIE+/=\nAAAA\n-----END RSA PRIVATE KEY-----".to_owned(),
            "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nMIIE\n-----END RSA PRIVATE KEY-----".to_owned(),
            "-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: 1\n\nlQO\n-----END PGP PRIVATE KEY BLOCK-----".to_owned(),
        ] {
            let text = format!("앞 \"{secret}\" 뒤");
            let masked = masks.mask(&text);
            assert_eq!(masked, format!("앞 \"{MASKED}\" 뒤"), "{secret}");
            // Arguments of a call are JSON, before and after.
            let json = Value::from(text).to_string();
            let masked: Value = serde_json::from_str(&masks.mask(&json)).unwrap();
            assert_eq!(masked, format!("앞 \"{MASKED}\" 뒤"), "{json}");
        }
        assert_eq!(masks.mask("https://me:pw@host/x"), "https[secret]host/x");
        assert_eq!(masks.mask("redis://:hunter2@host/0"), "redis[secret]host/0");
        assert_eq!(masks.mask("curl -H 'Authorization: Basic dXNlcjpwdw=='"), "curl -H '[secret]'");
        for word in [
            "a short word",
            "the authorization failed",
            "sk-1",
            "task-oriented-programming-language",
            "eyJhbGci",
            "한글 sk- 글",
            "http://h:80/a@b",
        ] {
            assert_eq!(masks.mask(word), word);
        }
    }
}
