//! Secrets, taken out of a text that a person may give to others.

use regex::Regex;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// What stands in the place of a secret.
const MASKED: &str = "[secret]";

/// The shapes of tokens that anybody can tell, and what they are called: of Anthropic, OpenAI and who follows them, GitHub,
/// GitLab, Slack, Google, AWS, Hugging Face, npm, Stripe; signed tokens (JWT); private keys; what stands behind `Bearer` and in
/// the address of a server. One that is a special case of another stands before it.
const SHAPES: &[(&str, &str)] = &[
    ("private key", r"(?s)-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----.*?-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----"),
    ("private key", r"-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----[A-Za-z0-9+/=\s\\]*"),
    ("Anthropic key", r"\bsk-ant-[A-Za-z0-9_-]{16,}"),
    ("OpenAI key", r"\bsk-[A-Za-z0-9_-]{16,}"),
    ("GitHub token", r"\b(?:ghp|gho|ghu|ghs|ghr)_[A-Za-z0-9]{20,}"),
    ("GitHub token", r"\bgithub_pat_[A-Za-z0-9_]{20,}"),
    ("GitLab token", r"\bglpat-[A-Za-z0-9_-]{16,}"),
    ("Slack token", r"\bx(?:ox[a-z]|app)-[A-Za-z0-9-]{10,}"),
    ("Google key", r"\bAIza[A-Za-z0-9_-]{30,}"),
    ("Google key", r"\bya29\.[A-Za-z0-9_-]{20,}"),
    ("AWS key", r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
    ("Hugging Face token", r"\bhf_[A-Za-z0-9]{20,}"),
    ("npm token", r"\bnpm_[A-Za-z0-9]{20,}"),
    ("Stripe key", r"\b[rsp]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    ("signed token", r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"),
    ("authorization", r"(?i)\bbearer [A-Za-z0-9._~+/-]{16,}=*"),
    ("authorization", r"(?i)\bauthorization\b[^\sA-Za-z]*\s*[A-Za-z]+ +[A-Za-z0-9._~+/=-]{6,}"),
    ("password in an address", r"://[^\s/@:]*:[^\s/@]+@"),
];

/// A name that tells of a secret, and what is assigned to it: `AWS_SECRET_ACCESS_KEY=…`, `password: …`, `"apiKey": "…"`.
const ASSIGNED: &str = r#"(?x)
    (?<name> [A-Za-z0-9_.-]*? (?: (?i: password | passwd | passphrase | secret | api[_-]?key | access[_-]?key | private[_-]?key
        | access[_-]?token | auth[_-]?token | client[_-]?secret | refresh[_-]?token ) | _TOKEN | _KEY | _PASS | _PAT | ^TOKEN ) )
    (?<sign> ["'\\]{0,3} \s? (?: = | : ) \s? ["'\\]{0,3} )
    (?<value> [A-Za-z0-9+/_.~!@\#%^*=-]{8,} )"#;

/// The shortest value that is taken for a secret wherever it stands; shorter ones would take words out of texts.
const SHORTEST: usize = 8;

/// What was taken out: what it is called, and how often.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Masked(BTreeMap<&'static str, usize>);

impl Masked {
    /// Each kind and how often, by name.
    pub fn kinds(&self) -> impl Iterator<Item = (&'static str, usize)> {
        self.0.iter().map(|(kind, count)| (*kind, *count))
    }

    /// All together.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.values().sum()
    }

    fn add(&mut self, kind: &'static str, count: usize) {
        if count > 0 {
            *self.0.entry(kind).or_default() += count;
        }
    }
}

/// Takes secrets out of texts.
#[derive(Debug)]
pub struct Masks {
    /// Longest first: one secret may begin with another.
    known: Vec<String>,
    shapes: Vec<(&'static str, Regex)>,
    assigned: Option<Regex>,
}

impl Masks {
    /// With these secrets, beside everything that has the shape of one.
    #[must_use]
    pub fn new(known: impl IntoIterator<Item = String>) -> Self {
        let long = |secret: &String| secret.len() >= SHORTEST;
        let mut known: Vec<String> = known.into_iter().map(|secret| secret.trim().to_owned()).filter(long).collect();
        known.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        let shapes = SHAPES.iter().filter_map(|(kind, shape)| Some((*kind, Regex::new(shape).ok()?))).collect();
        Self { known, shapes, assigned: Regex::new(ASSIGNED).ok() }
    }

    /// A text without them.
    #[must_use]
    pub fn mask(&self, text: &str) -> String {
        self.shapes_out(text, &mut Masked::default()).into_owned()
    }

    /// A text that goes to others: without them, and without what is assigned to names that tell of a secret. What was taken
    /// out is counted.
    #[must_use]
    pub fn mask_for_others(&self, text: &str, masked: &mut Masked) -> String {
        let text = self.shapes_out(text, masked);
        let Some(assigned) = &self.assigned else { return text.into_owned() };
        let mut count = 0;
        let without = assigned.replace_all(&text, |found: &regex::Captures<'_>| {
            let (name, value) = (&found["name"], &found["value"]);
            if !is_value(name, value) {
                return found[0].to_owned();
            }
            count += 1;
            format!("{name}{}{MASKED}", &found["sign"])
        });
        masked.add("value of a secret's name", count);
        without.into_owned()
    }

    /// JSON that goes to others: each of its texts as [`Self::mask_for_others`] makes it, all else byte for byte. A text under a
    /// name that tells of a secret goes whole. What is no JSON is taken as a text.
    #[must_use]
    pub fn mask_json_for_others(&self, json: Vec<u8>, masked: &mut Masked) -> Vec<u8> {
        let mut out = Vec::with_capacity(json.len());
        let (mut rest, mut name) = (&json[..], None::<String>);
        while let Some(start) = rest.iter().position(|byte| *byte == b'"') {
            let Some(len) = literal(&rest[start..]) else { break };
            let (before, quoted) = (&rest[..start], &rest[start..start + len]);
            let Ok(text) = serde_json::from_slice::<String>(quoted) else { break };
            out.extend_from_slice(before);
            rest = &rest[start + len..];
            let is_name = rest.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b':');
            // Between a name and its own value stands a colon and nothing else.
            let under = name.take().filter(|_| before.iter().all(|byte| matches!(byte, b':' | b' ' | b'\n' | b'\t')));
            let without = match &under {
                Some(name) if self.is_under(name, &text) => {
                    masked.add("value of a secret's name", 1);
                    MASKED.to_owned()
                }
                _ => self.mask_for_others(&text, masked),
            };
            if is_name {
                name = Some(text.clone());
            }
            if without == text {
                out.extend_from_slice(quoted);
            } else {
                out.extend(serde_json::to_vec(&without).unwrap_or_default());
            }
        }
        if rest.contains(&b'"') {
            // A string without an end: there is no JSON in what is left.
            out.extend(self.mask_for_others(&String::from_utf8_lossy(rest), masked).into_bytes());
        } else {
            out.extend_from_slice(rest);
        }
        out
    }

    /// Whether a text in JSON is a secret by its name: the pattern wants what it wants of `NAME=VALUE`.
    fn is_under(&self, name: &str, value: &str) -> bool {
        let authorization = name.eq_ignore_ascii_case("authorization") && value.len() >= SHORTEST;
        let whole = format!("{name}={value}");
        let found = self.assigned.as_ref().and_then(|assigned| assigned.captures(&whole));
        authorization
            || found.is_some_and(|found| found["name"] == *name && found["value"] == *value && is_value(name, value))
    }

    fn shapes_out<'a>(&self, text: &'a str, masked: &mut Masked) -> Cow<'a, str> {
        let mut text = Cow::Borrowed(text);
        for secret in &self.known {
            let mut take = |secret: &str| {
                let count = text.matches(secret).count();
                if count > 0 {
                    masked.add("key of this machine", count);
                    text = text.replace(secret, MASKED).into();
                }
            };
            take(secret);
            // In JSON it may stand with escapes.
            let json = serde_json::Value::from(secret.as_str()).to_string();
            let json = json.trim_matches('"');
            if json != secret {
                take(json);
            }
        }
        for (kind, shape) in &self.shapes {
            let mut count = 0;
            let without = shape.replace_all(&text, |_: &regex::Captures<'_>| {
                count += 1;
                MASKED
            });
            if let Cow::Owned(without) = without {
                text = without.into();
            }
            masked.add(kind, count);
        }
        text
    }
}

/// Whether what is assigned to such a name is a secret, and no program, placeholder or place of one: words alone are none
/// but behind a name of capitals, as variables have them, or in a file of settings.
fn is_value(name: &str, value: &str) -> bool {
    let variable = !name.chars().any(|c| c.is_ascii_lowercase());
    let (digit, letter) = (value.bytes().any(|b| b.is_ascii_digit()), value.bytes().any(|b| b.is_ascii_alphabetic()));
    // `process.env.API_KEY`, `self.password`, `./keys/id`, `your-api-key-here`.
    let path = value.starts_with(['/', '.', '~']) || value.contains("env.") || value.starts_with("self.");
    let placeholder = value.to_ascii_lowercase().starts_with("your") || value.contains("xxxx") || value.contains("...");
    letter && (variable || digit) && !path && !placeholder
}

/// The length of the JSON string that bytes begin with, quotes included.
fn literal(bytes: &[u8]) -> Option<usize> {
    let mut escaped = false;
    for (at, byte) in bytes.iter().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return Some(at + 1),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn every_shape_is_a_sound_pattern() {
        let masks = Masks::new([]);
        assert_eq!(masks.shapes.len(), SHAPES.len());
        assert!(masks.assigned.is_some(), "{:?}", Regex::new(ASSIGNED));
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

    fn for_others(text: &str) -> (String, Vec<(&'static str, usize)>) {
        let mut masked = Masked::default();
        let text = Masks::new(["이-기계의-열쇠".into()]).mask_for_others(text, &mut masked);
        (text, masked.kinds().collect())
    }

    /// K46: each kind by its name, with 한글 on both sides, and as a text of JSON.
    #[test]
    fn what_goes_to_others_goes_without_keys_and_tells_what_was_in_it() {
        let url = "postgres://me:비밀번호@db/x".to_owned();
        for (kind, secret) in [
            ("Anthropic key", format!("sk-ant-api03-{}", "Ab1_".repeat(10))),
            ("OpenAI key", format!("sk-proj-{}", "aB3".repeat(12))),
            ("GitHub token", format!("ghp_{}", "a1B2".repeat(9))),
            ("GitHub token", format!("github_pat_{}", "a1_B".repeat(9))),
            ("AWS key", "AKIAIOSFODNN7EXAMPLE".to_owned()),
            ("Slack token", format!("xoxb-{}", "12-ab".repeat(5))),
            ("Slack token", format!("xapp-1-{}", "A2".repeat(12))),
            ("Google key", format!("AIza{}", "Sy1".repeat(12))),
            ("signed token", format!("eyJ{}.eyJ{}.{}", "a".repeat(12), "b".repeat(12), "c".repeat(20))),
            (
                "private key",
                "-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl\nAAAA\n-----END OPENSSH PRIVATE KEY-----".to_owned(),
            ),
            ("authorization", "Authorization: Basic dXNlcjpwdw==".to_owned()),
            ("key of this machine", "이-기계의-열쇠".to_owned()),
        ] {
            let text = format!("앞의 \u{AC00} \"{secret}\" 뒤의 글");
            let told = vec![(kind, 1)];
            assert_eq!(for_others(&text), (format!("앞의 \u{AC00} \"{MASKED}\" 뒤의 글"), told.clone()), "{secret}");
            let json = serde_json::json!({"role": "toolResult", "content": [{"text": text}], "n": 12}).to_string();
            let mut masked = Masked::default();
            let without = Masks::new(["이-기계의-열쇠".into()]).mask_json_for_others(json.into_bytes(), &mut masked);
            let without: Value = serde_json::from_slice(&without).unwrap();
            assert_eq!(without["content"][0]["text"], format!("앞의 \u{AC00} \"{MASKED}\" 뒤의 글"));
            assert_eq!(masked.kinds().collect::<Vec<_>>(), told);
        }
        assert_eq!(for_others(&url).0, format!("postgres{MASKED}db/x"));
        for (text, without) in [
            (
                "export AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY 이다",
                "export AWS_SECRET_ACCESS_KEY=[secret] 이다",
            ),
            ("DB_PASSWORD='hunter22pass'", "DB_PASSWORD='[secret]'"),
            ("password: s3cretvalue", "password: [secret]"),
            ("{\"apiKey\": \"a1b2c3d4e5\"}", "{\"apiKey\": \"[secret]\"}"),
            ("비밀 MY_TOKEN=abcdefgh12 끝", "비밀 MY_TOKEN=[secret] 끝"),
        ] {
            assert_eq!(for_others(text), (without.into(), vec![("value of a secret's name", 1)]), "{text}");
        }
    }

    #[test]
    fn hashes_ids_code_and_words_are_no_secrets() {
        for text in [
            "commit 3f786850e387550fdab836ed7e6dc881de23001b",
            "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            "0197a0c2-0000-7000-8000-000000000001",
            "blob:sha256:e3b0c44298fc1c149afbf4c8996fb924",
            "\"totalTokens\":1580123456,\"maxTokens\": 12345678",
            "const apiKey = process.env.API_KEY2",
            "let password = get_password(user)",
            "API_KEY=your-api-key-here",
            "OPENAI_API_KEY=$OPENAI_API_KEY",
            "SSH_KEY=/home/ann/.ssh/id_ed25519",
            "비밀번호: 나중에 정함",
            "the secret: patience and practice",
            "monkey=bananas123 keyboard: qwertz99",
            "toolu_01A09q90qw90lq917835lq9",
            "call_9fJ2kD8sLq0PzXw1",
        ] {
            assert_eq!(for_others(text), (text.to_owned(), Vec::new()), "{text}");
        }
    }

    #[test]
    fn of_json_only_the_texts_with_secrets_change() {
        let mut masked = Masked::default();
        let json = r#"{ "a" : [1.50, true, "\u00e9\/", "\u003c"], "password":12345678,"token_count": 7 }"#;
        let same = Masks::new([]).mask_json_for_others(json.as_bytes().to_vec(), &mut masked);
        assert_eq!((String::from_utf8(same).unwrap(), masked.count()), (json.to_owned(), 0));
        let json = r#"{"client_secret":"abcd1234efgh","Authorization":"Basic abcdef","b":{"x":"hunter22pass"}}"#;
        let without = Masks::new([]).mask_json_for_others(json.as_bytes().to_vec(), &mut masked);
        let right = r#"{"client_secret":"[secret]","Authorization":"[secret]","b":{"x":"hunter22pass"}}"#;
        assert_eq!((String::from_utf8(without).unwrap(), masked.count()), (right.to_owned(), 2));
        let broken = format!("no json \" ghp_{}", "a1".repeat(18));
        let without = Masks::new([]).mask_json_for_others(broken.into_bytes(), &mut masked);
        assert_eq!(String::from_utf8(without).unwrap(), "no json \" [secret]");
    }
}
