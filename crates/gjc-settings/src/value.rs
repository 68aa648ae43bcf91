//! The kinds of values: how each is read, what of it is refused, how it is written again. No kind knows its setting.

use crate::setting::nearest;
use crate::yaml::{Content, Node, Style, brief};
use serde_json::{Value as Json, json};
use std::time::Duration;

/// A value in its usual form: what `gjc config` shows, compares and writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Plain {
    /// Nothing is set, and there is no default.
    None,
    /// Yes or no.
    Truth(bool),
    /// A number.
    Number(u64),
    /// A text, a name, or a number with its unit.
    Text(String),
    /// A list of names.
    List(Vec<String>),
    /// A number with decimals, as it is written.
    Decimal(String),
    /// Values by their names, in the order of the file.
    Map(Vec<(String, Plain)>),
    /// Values without names.
    Many(Vec<Plain>),
}

impl Plain {
    /// As JSON.
    #[must_use]
    pub fn json(&self) -> Json {
        match self {
            Self::None => Json::Null,
            Self::Truth(truth) => json!(truth),
            Self::Number(number) => json!(number),
            Self::Text(text) => json!(text),
            Self::List(names) => json!(names),
            Self::Decimal(digits) => serde_json::from_str(digits).unwrap_or(Json::Null),
            Self::Map(values) => values.iter().map(|(name, value)| (name.clone(), value.json())).collect(),
            Self::Many(values) => values.iter().map(Self::json).collect(),
        }
    }

    /// As it stands in a file: one line of YAML.
    #[must_use]
    pub fn yaml(&self) -> String {
        match self {
            Self::None => "null".into(),
            Self::Truth(truth) => truth.to_string(),
            Self::Number(number) => number.to_string(),
            Self::Text(text) => yaml_text(text),
            Self::List(names) => {
                format!("[{}]", names.iter().map(|name| yaml_text(name)).collect::<Vec<_>>().join(", "))
            }
            Self::Decimal(digits) => digits.clone(),
            Self::Map(values) => {
                let one = |(name, value): &(String, Self)| format!("{}: {}", yaml_text(name), value.yaml());
                format!("{{{}}}", values.iter().map(one).collect::<Vec<_>>().join(", "))
            }
            Self::Many(values) => format!("[{}]", values.iter().map(Self::yaml).collect::<Vec<_>>().join(", ")),
        }
    }

    /// For a person: a text as it is, nothing as nothing.
    #[must_use]
    pub fn shown(&self) -> String {
        match self {
            Self::None => String::new(),
            Self::Text(text) => text.clone(),
            other => other.yaml(),
        }
    }
}

/// Plain where nothing in it could mean something else, otherwise in quotes: every JSON string is one of YAML.
fn yaml_text(text: &str) -> String {
    let safe = |c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '_' | '-');
    let is_plain = text.starts_with(char::is_alphanumeric)
        && text.contains(char::is_alphabetic)
        && text.chars().all(safe)
        && kind_of(text) == Kind::Text;
    if is_plain {
        return text.into();
    }
    let json = Json::String(text.into()).to_string();
    // JSON leaves these as they are; a reader of YAML may take some for the end of a line, or refuse them.
    json.chars().map(|c| if is_odd(c) { format!("\\u{:04X}", c as u32) } else { c.into() }).collect()
}

fn is_odd(c: char) -> bool {
    matches!(c, '\u{7F}'..='\u{9F}' | '\u{2028}' | '\u{2029}' | '\u{FEFF}' | '\u{FFFE}' | '\u{FFFF}')
}

/// Why a value is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wrong {
    pub(crate) sentence: String,
    pub(crate) hint: Option<String>,
    /// The byte of the node that is wrong, where it is not the first of the value.
    pub(crate) at: Option<usize>,
}

impl Wrong {
    pub(crate) fn new(sentence: impl Into<String>) -> Self {
        Self { sentence: sentence.into(), hint: None, at: None }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The word that may stand there too.
    pub(crate) fn or_off(mut self, word: &str) -> Self {
        self.sentence.push_str(&format!(" (or: {word})"));
        self
    }
}

/// One kind of value.
pub(crate) trait Value: Sized {
    /// What is wanted, for a sentence and for the page: "a number from 1 to 5".
    fn wanted() -> String;
    /// Its JSON schema.
    fn schema() -> Json;
    /// Reads a node of a file.
    fn read(node: &Node) -> Result<Self, Wrong>;
    /// Its usual form.
    fn write(&self) -> Plain;
    /// The node that a word of the command line stands for.
    fn typed(word: &str) -> Node {
        scalar(word, Style::Quoted)
    }
    /// What a person's value and a project's are together, where the project's only adds ([`crate::Guard::Adds`]).
    fn join(_person: &Node, _project: &Node) -> Option<Node> {
        None
    }
}

pub(crate) fn scalar(word: &str, style: Style) -> Node {
    Node { bytes: 0..word.len(), content: Content::Scalar { text: word.into(), style } }
}

impl<T: Value> Value for Option<T> {
    fn wanted() -> String {
        T::wanted()
    }

    fn schema() -> Json {
        T::schema()
    }

    fn read(node: &Node) -> Result<Self, Wrong> {
        T::read(node).map(Some)
    }

    fn write(&self) -> Plain {
        self.as_ref().map_or(Plain::None, T::write)
    }

    fn typed(word: &str) -> Node {
        T::typed(word)
    }
}

/// What a plain scalar is, by the core schema of YAML 1.2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Null,
    Truth,
    Number,
    Text,
}

fn kind_of(text: &str) -> Kind {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let special = matches!(digits.to_ascii_lowercase().as_str(), ".inf" | ".nan");
    let based = text.starts_with("0x") || text.starts_with("0o");
    let dotted = digits.strip_prefix('.').unwrap_or(digits);
    let number = dotted.starts_with(|c: char| c.is_ascii_digit()) && digits.parse::<f64>().is_ok();
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Kind::Null,
        "true" | "True" | "TRUE" | "false" | "False" | "FALSE" => Kind::Truth,
        _ if number || special || based => Kind::Number,
        _ => Kind::Text,
    }
}

/// What stands there, for a sentence.
fn stands(node: &Node) -> &'static str {
    match &node.content {
        Content::List { .. } => "a list",
        Content::Map { .. } => "a map",
        Content::Scalar { style: Style::Quoted | Style::Block, .. } => "a text",
        Content::Scalar { text, .. } => match kind_of(text) {
            Kind::Null => "nothing",
            Kind::Truth => "a truth value",
            Kind::Number => "a number",
            Kind::Text => "a text",
        },
    }
}

pub(crate) fn wrong_kind<T: Value>(node: &Node) -> Wrong {
    let wrong = Wrong::new(format!("{} stands here; wanted: {}", stands(node), T::wanted()));
    match &node.content {
        _ if node.is_null() => wrong.hint("give a value, or leave the line out"),
        Content::Scalar { style: Style::Plain, .. } => {
            wrong.hint("put a text that looks like something else in quotes")
        }
        _ => wrong,
    }
}

/// A text of one line; plain ones must not look like anything else.
pub(crate) fn text<T: Value>(node: &Node) -> Result<&str, Wrong> {
    match &node.content {
        Content::Scalar { text, style } if *style != Style::Plain || kind_of(text) == Kind::Text => {
            match text.chars().find(|c| c.is_control() || is_odd(*c)) {
                None => Ok(text),
                Some(_) => Err(Wrong::new("this text holds a line feed or another control character")
                    .hint("a value is one line; leave \"|\" and \">\" out")),
            }
        }
        _ => Err(wrong_kind::<T>(node)),
    }
}

/// The digits of a plain or quoted scalar.
fn digits<T: Value>(node: &Node) -> Result<&str, Wrong> {
    match &node.content {
        Content::Scalar { text, style: Style::Plain | Style::Quoted } if !node.is_null() => Ok(text),
        _ => Err(wrong_kind::<T>(node)),
    }
}

/// On or off: `true` or `false`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Switch(pub bool);

impl Value for Switch {
    fn wanted() -> String {
        "true or false".into()
    }

    fn schema() -> Json {
        json!({"type": "boolean"})
    }

    fn read(node: &Node) -> Result<Self, Wrong> {
        match &node.content {
            Content::Scalar { text, style: Style::Plain } if kind_of(text) == Kind::Truth => {
                Ok(Self(text.eq_ignore_ascii_case("true")))
            }
            Content::Scalar { style: Style::Quoted, .. } => {
                Err(Wrong { hint: None, ..wrong_kind::<Self>(node) }.hint("leave the quotes out"))
            }
            _ => Err(Wrong { hint: None, ..wrong_kind::<Self>(node) }),
        }
    }

    fn write(&self) -> Plain {
        Plain::Truth(self.0)
    }

    fn typed(word: &str) -> Node {
        scalar(word, Style::Plain)
    }
}

/// A number within bounds, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Count<const LEAST: u32, const MOST: u32>(pub u32);

impl<const LEAST: u32, const MOST: u32> Value for Count<LEAST, MOST> {
    fn wanted() -> String {
        format!("a number from {LEAST} to {MOST}")
    }

    fn schema() -> Json {
        json!({"type": "integer", "minimum": LEAST, "maximum": MOST})
    }

    fn read(node: &Node) -> Result<Self, Wrong> {
        let Content::Scalar { text: digits, style: Style::Plain } = &node.content else {
            return Err(wrong_kind::<Self>(node));
        };
        if node.is_null() {
            return Err(wrong_kind::<Self>(node));
        }
        if !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(Wrong::new(format!("\"{}\" is not {}", brief(digits), Self::wanted())));
        }
        digits
            .parse()
            .ok()
            .filter(|number| (LEAST..=MOST).contains(number))
            .map(Self)
            .ok_or_else(|| Wrong::new(format!("{} is not {}", brief(digits), Self::wanted())))
    }

    fn write(&self) -> Plain {
        Plain::Number(self.0.into())
    }

    fn typed(word: &str) -> Node {
        scalar(word, Style::Plain)
    }
}

/// A number with one of these units behind it, and the unit's size; the units stand from small to large.
fn with_unit(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit())?;
    let (digits, unit) = (&text[..end], text[end..].trim_start());
    let size = units.iter().find(|(name, _)| *name == unit)?.1;
    digits.parse::<u64>().ok()?.checked_mul(size)
}

/// In the largest unit that leaves no rest.
fn in_units(number: u64, units: &[(&str, u64)]) -> String {
    let fits = |(_, size): &&(&str, u64)| number.is_multiple_of(*size);
    let found = units.iter().rev().find(fits).filter(|_| number > 0).or(units.first());
    found.map_or_else(|| number.to_string(), |(name, size)| format!("{}{name}", number / size))
}

/// A span of time within bounds of milliseconds, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Patience<const LEAST: u64, const MOST: u64>(pub u64);

const TIMES: &[(&str, u64)] = &[("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)];

impl<const LEAST: u64, const MOST: u64> Patience<LEAST, MOST> {
    /// As a duration.
    #[must_use]
    pub fn duration(self) -> Duration {
        Duration::from_millis(self.0)
    }
}

impl<const LEAST: u64, const MOST: u64> Value for Patience<LEAST, MOST> {
    fn wanted() -> String {
        format!("a time from {} to {}, in ms, s, m or h", in_units(LEAST, TIMES), in_units(MOST, TIMES))
    }

    fn schema() -> Json {
        json!({"type": "string", "pattern": "^[0-9]+ ?(ms|s|m|h)$"})
    }

    fn read(node: &Node) -> Result<Self, Wrong> {
        let text = digits::<Self>(node)?;
        let Some(ms) = with_unit(text, TIMES) else {
            let wrong = Wrong::new(format!("\"{}\" is no time; wanted: {}", brief(text), Self::wanted()));
            let bare = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
            return Err(if bare { wrong.hint(format!("say the unit: {}s, or {0}ms", brief(text))) } else { wrong });
        };
        let fits = (LEAST..=MOST).contains(&ms);
        if fits { Ok(Self(ms)) } else { Err(Wrong::new(format!("{} is not {}", brief(text), Self::wanted()))) }
    }

    fn write(&self) -> Plain {
        Plain::Text(in_units(self.0, TIMES))
    }
}

/// A number of bytes within bounds, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size<const LEAST: u64, const MOST: u64>(pub u64);

const SIZES: &[(&str, u64)] = &[("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20)];

impl<const LEAST: u64, const MOST: u64> Value for Size<LEAST, MOST> {
    fn wanted() -> String {
        format!("a size from {} to {}, in B, KiB or MiB", in_units(LEAST, SIZES), in_units(MOST, SIZES))
    }

    fn schema() -> Json {
        json!({"type": "string", "pattern": "^[0-9]+ ?(B|KiB|MiB)$"})
    }

    fn read(node: &Node) -> Result<Self, Wrong> {
        let text = digits::<Self>(node)?;
        let Some(bytes) = with_unit(text, SIZES) else {
            return Err(Wrong::new(format!("\"{}\" is no size; wanted: {}", brief(text), Self::wanted())));
        };
        let fits = (LEAST..=MOST).contains(&bytes);
        if fits { Ok(Self(bytes)) } else { Err(Wrong::new(format!("{} is not {}", brief(text), Self::wanted()))) }
    }

    fn write(&self) -> Plain {
        Plain::Text(in_units(self.0, SIZES))
    }
}

/// A provider and a model: `anthropic/claude-sonnet-4-5`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelName(pub String);

impl Value for ModelName {
    fn wanted() -> String {
        "PROVIDER/MODEL".into()
    }

    fn schema() -> Json {
        json!({"type": "string", "pattern": "^(anthropic|openai|openai-responses|scripted)/."})
    }

    fn read(node: &Node) -> Result<Self, Wrong> {
        let text = text::<Self>(node)?;
        let wrong = || {
            Wrong::new(format!("\"{}\" names no model", brief(text)))
                .hint("use anthropic/<model>, openai/<model> (Chat Completions), openai-responses/<model>, or scripted/<file>.jsonl to play a script")
        };
        let (provider, model) = text.split_once('/').ok_or_else(wrong)?;
        if model.is_empty() {
            return Err(wrong());
        }
        one_of("provider", provider, PROVIDERS)?;
        Ok(Self(text.into()))
    }

    fn write(&self) -> Plain {
        Plain::Text(self.0.clone())
    }
}

/// The providers that a model can be of.
const PROVIDERS: &[&str] = &["anthropic", "openai", "openai-responses", "scripted"];

pub(crate) fn one_of(what: &str, word: &str, choices: &[&str]) -> Result<(), Wrong> {
    if choices.contains(&word) {
        return Ok(());
    }
    let wrong = Wrong::new(format!("there is no {what} \"{}\"", brief(word)));
    Err(match nearest(word, choices.iter().copied()) {
        Some(meant) => wrong.hint(format!("did you mean \"{meant}\"? there are: {}", choices.join(", "))),
        None => wrong.hint(format!("there are: {}", choices.join(", "))),
    })
}

/// The address of a server: `http://` or `https://`, without a name and password in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address(pub String);

impl Address {
    /// Whether a text is one; else what is wrong, and the way out.
    ///
    /// # Errors
    /// Sentence and hint.
    pub fn check(text: &str) -> Result<(), (String, Option<String>)> {
        Self::read(&Self::typed(text)).map(drop).map_err(|wrong| (wrong.sentence, wrong.hint))
    }
}

impl Value for Address {
    fn wanted() -> String {
        "an address that begins with http:// or https://".into()
    }

    fn schema() -> Json {
        json!({"type": "string", "pattern": "^https?://[^/]"})
    }

    fn read(node: &Node) -> Result<Self, Wrong> {
        let text = text::<Self>(node)?;
        let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
        let host = rest.and_then(|rest| rest.split(['/', '?', '#']).next()).unwrap_or_default();
        if host.is_empty() || text.contains(char::is_whitespace) {
            return Err(Wrong::new(format!("this is no address of a server; wanted: {}", Self::wanted())));
        }
        if host.contains('@') {
            return Err(Wrong::new("an address holds no name or password")
                .hint("keys come from the environment or from a keyCommand"));
        }
        Ok(Self(text.into()))
    }

    fn write(&self) -> Plain {
        Plain::Text(self.0.clone())
    }
}

/// A line for `sh -c`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandLine(pub String);

impl Value for CommandLine {
    fn wanted() -> String {
        "a command for sh".into()
    }

    fn schema() -> Json {
        json!({"type": "string", "minLength": 1})
    }

    fn read(node: &Node) -> Result<Self, Wrong> {
        let text = text::<Self>(node)?;
        if text.trim().is_empty() {
            return Err(Wrong::new("the command is empty"));
        }
        Ok(Self(text.into()))
    }

    fn write(&self) -> Plain {
        Plain::Text(self.0.clone())
    }
}
