//! Secrets, taken out of a text that a person may give to others.

mod addresses;
mod assigned;
mod keys;

use assigned::Assigned;
use keys::Keys;
use regex::Regex;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::rc::Rc;

/// What stands in the place of a secret.
const MASKED: &str = "[secret]";

/// The shapes of tokens that anybody can tell, and what they are called: of Anthropic, OpenAI and who follows them, GitHub,
/// GitLab, Slack, Google, AWS, Hugging Face, npm, Stripe; signed tokens (JWT); what stands behind `Bearer`. One that is a special case of another stands before it.
const SHAPES: &[(&str, &str)] = &[
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
];

/// What is called so, and the words for it.
const KEY: &str = "private key";
const ADDRESS: &str = "password in an address";
const ASSIGNED: &str = "value of a secret's name";

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
    keys: Option<Keys>,
    assigned: Option<Assigned>,
}

impl Masks {
    /// With these secrets, beside everything that has the shape of one.
    #[must_use]
    pub fn new(known: impl IntoIterator<Item = String>) -> Self {
        let long = |secret: &String| secret.len() >= SHORTEST;
        let mut known: Vec<String> = known.into_iter().map(|secret| secret.trim().to_owned()).filter(long).collect();
        known.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        let shapes = SHAPES.iter().filter_map(|(kind, shape)| Some((*kind, Regex::new(shape).ok()?))).collect();
        Self { known, shapes, keys: Keys::new(), assigned: Assigned::new() }
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
        let (without, count) = assigned.out(&text);
        masked.add(ASSIGNED, count);
        without
    }

    /// JSON that goes to others: each of its texts as [`Self::mask_for_others`] makes it, all else byte for byte. A text or a
    /// number under a name that tells of a secret goes whole, those of a list too. What is no JSON is taken as a text.
    #[must_use]
    pub fn mask_json_for_others(&self, json: Vec<u8>, masked: &mut Masked) -> Vec<u8> {
        let mut out = Vec::with_capacity(json.len());
        // The names that the open objects and lists are at: that of a list stands for each of its elements.
        let (mut at, mut open, mut name) = (0, Vec::<Option<Rc<str>>>::new(), None::<Rc<str>>);
        while let Some(byte) = json.get(at) {
            let rest = &json[at..];
            let len = match byte {
                b'"' => {
                    // A string without an end: there is no JSON in what is left.
                    let Some(len) = literal(rest) else { break };
                    let Ok(text) = serde_json::from_slice::<String>(&rest[..len]) else { break };
                    let is_name = rest[len..].iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b':');
                    let without = match name.as_deref().filter(|_| !is_name) {
                        Some(name) if self.is_under(name, &text) => {
                            masked.add(ASSIGNED, 1);
                            MASKED.to_owned()
                        }
                        _ => self.mask_for_others(&text, masked),
                    };
                    if without == text {
                        out.extend_from_slice(&rest[..len]);
                    } else {
                        out.extend(serde_json::to_vec(&without).unwrap_or_default());
                    }
                    if is_name {
                        name = Some(text.into());
                    }
                    at += len;
                    continue;
                }
                b'-' | b'0'..=b'9' => {
                    let is_part = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E');
                    let len = rest.iter().position(|byte| !is_part(byte)).unwrap_or(rest.len());
                    let number = std::str::from_utf8(&rest[..len]).unwrap_or_default();
                    if name.as_deref().is_some_and(|name| self.is_under(name, number)) {
                        masked.add(ASSIGNED, 1);
                        out.extend(serde_json::to_vec(MASKED).unwrap_or_default());
                        at += len;
                        continue;
                    }
                    len
                }
                b'[' => {
                    open.push(name.clone());
                    1
                }
                b'{' => {
                    open.push(None);
                    name = None;
                    1
                }
                b'}' | b']' => {
                    open.pop();
                    name = open.last().cloned().flatten();
                    1
                }
                b',' => {
                    name = open.last().cloned().flatten();
                    1
                }
                _ => 1,
            };
            out.extend_from_slice(&rest[..len]);
            at += len;
        }
        let rest = json.get(at..).unwrap_or_default();
        if !rest.is_empty() {
            out.extend(self.mask_for_others(&String::from_utf8_lossy(rest), masked).into_bytes());
        }
        out
    }

    /// Whether a text or a number in JSON is a secret by its name.
    fn is_under(&self, name: &str, value: &str) -> bool {
        let authorization = name.eq_ignore_ascii_case("authorization") && value.len() >= SHORTEST;
        authorization || self.assigned.as_ref().is_some_and(|assigned| assigned.is_under(name, value))
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
        if let Some((without, count)) = self.keys.as_ref().and_then(|keys| keys.out(&text)) {
            text = without.into();
            masked.add(KEY, count);
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
        if let Some((without, count)) = addresses::out(&text) {
            text = without.into();
            masked.add(ADDRESS, count);
        }
        text
    }
}

/// The beginning of a text: what is looked at again and again must not be long.
fn window(text: &str, longest: usize) -> &str {
    &text[..(0..=longest.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)]
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
mod tests;
