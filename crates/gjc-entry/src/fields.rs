//! JSON objects whose fields keep their order and their bytes.
//!
//! Session files are written by several programs; a field that we do not know must survive a round trip. So a typed value
//! takes the fields that it knows out of [`Fields`] and carries the rest along as [`RawFields`].

use crate::onepass::Text;
use crate::quote::{quote, quote_name};
use serde::de::{DeserializeOwned, Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// Fields of an object that nobody took: name and value as they were written, in order.
pub type RawFields = Vec<(Box<str>, Box<RawValue>)>;

/// The fields of one JSON object, to be taken one by one. They borrow from its text: nothing is copied that nobody keeps.
#[derive(Debug, Clone, Default)]
pub struct Fields<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

/// Why an object could not be read as what it should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FieldError {
    /// Not JSON, or not an object.
    #[error("not a JSON object: {0}")]
    NotAnObject(String),
    /// A needed field is not there.
    #[error("the field \"{0}\" is missing")]
    Absent(&'static str),
    /// A field that decides what an entry is stands twice.
    #[error("the field \"{0}\" stands twice")]
    Twice(&'static str),
    /// A field has another type than it should.
    #[error("the field \"{name}\" cannot be read: {why}")]
    Wrong {
        /// Its name.
        name: &'static str,
        /// What the parser says.
        why: String,
    },
}

impl<'a> Fields<'a> {
    /// Splits an object into its fields. Of a name that stands twice the last value counts, as in `JSON.parse`.
    ///
    /// # Errors
    /// When the text is no JSON object.
    pub fn parse(json: &'a str) -> Result<Self, FieldError> {
        serde_json::from_str(json).map_err(|error| FieldError::NotAnObject(error.to_string()))
    }

    /// Takes a field as raw JSON.
    pub fn raw(&mut self, name: &str) -> Option<&'a RawValue> {
        let mut found = None;
        // Later duplicates win; all of them leave.
        while let Some(index) = self.0.iter().rposition(|(key, _)| &**key == name) {
            let (_, value) = self.0.remove(index);
            found.get_or_insert(value);
        }
        found
    }

    /// Takes an optional field; `null` counts as absent.
    ///
    /// # Errors
    /// When it is there and of another type.
    pub fn optional<T: DeserializeOwned>(&mut self, name: &'static str) -> Result<Option<T>, FieldError> {
        let Some(raw) = self.raw(name) else { return Ok(None) };
        if raw.get() == "null" {
            return Ok(None);
        }
        from_raw(raw).map(Some).map_err(|why| FieldError::Wrong { name, why })
    }

    /// Takes an optional field, if it can be read. One of another type stays where it is: it is no reason to lose the rest, and
    /// goes on as it was written.
    pub fn lenient<T: DeserializeOwned>(&mut self, name: &'static str) -> Option<T> {
        let value = from_raw(self.peek(name)?).ok()?;
        let _ = self.raw(name);
        value
    }

    /// Takes a field that must be there.
    ///
    /// # Errors
    /// When it is absent, `null`, or of another type.
    pub fn required<T: DeserializeOwned>(&mut self, name: &'static str) -> Result<T, FieldError> {
        self.optional(name)?.ok_or(FieldError::Absent(name))
    }

    /// Refuses an object in which one of these fields stands twice: of two readers each might believe another one.
    ///
    /// # Errors
    /// [`FieldError::Twice`].
    pub fn once(&self, names: &[&'static str]) -> Result<(), FieldError> {
        let twice = |name: &&&str| self.0.iter().filter(|(key, _)| **key == ***name).count() > 1;
        names.iter().find(twice).map_or(Ok(()), |name| Err(FieldError::Twice(name)))
    }

    /// What is left, in order.
    #[must_use]
    pub fn rest(self) -> RawFields {
        self.0.into_iter().map(|(name, value)| (name.into(), value.to_owned())).collect()
    }

    /// Looks at a field without taking it.
    #[must_use]
    pub fn peek(&self, name: &str) -> Option<&'a RawValue> {
        self.0.iter().rev().find(|(key, _)| &**key == name).map(|(_, value)| *value)
    }
}

/// Parses raw JSON; a text with lone surrogate escapes (JavaScript writes them) is read with U+FFFD in their place.
///
/// # Errors
/// What the parser says, when the value is of another type.
pub fn from_raw<T: DeserializeOwned>(raw: &RawValue) -> Result<T, String> {
    match serde_json::from_str(raw.get()) {
        Ok(value) => Ok(value),
        Err(error) => match replace_lone_surrogates(raw.get()) {
            Some(mended) => serde_json::from_str(&mended).map_err(|error| error.to_string()),
            None => Err(error.to_string()),
        },
    }
}

/// Replaces each `\uD800`…`\uDFFF` escape that has no partner by `\ufffd`; `None` when there is none.
#[must_use]
pub fn replace_lone_surrogates(json: &str) -> Option<String> {
    let bytes = json.as_bytes();
    let unit = |at: usize| -> Option<u16> {
        let hex = bytes.get(at + 2..at + 6)?;
        (bytes.get(at..at + 2)? == b"\\u").then_some(())?;
        u16::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok()
    };
    let (mut out, mut copied, mut at) = (String::new(), 0, 0);
    while at < bytes.len() {
        if bytes[at] != b'\\' {
            at += 1;
            continue;
        }
        match unit(at) {
            Some(0xD800..=0xDBFF) if matches!(unit(at + 6), Some(0xDC00..=0xDFFF)) => at += 12,
            Some(0xD800..=0xDFFF) => {
                out.push_str(&json[copied..at]);
                out.push_str("\\ufffd");
                at += 6;
                copied = at;
            }
            // Any other escape: skip the escaped byte, so that `\\ud800` is not misread.
            _ => at += 2,
        }
    }
    (copied > 0).then(|| {
        out.push_str(&json[copied..]);
        out
    })
}

/// Where a string stands in a JSON text.
#[derive(Debug, Clone, Copy)]
pub struct StringAt<'a> {
    /// As a JSON pointer (RFC 6901): `/message/content/0/text`.
    pub pointer: &'a str,
    /// The field that it is the value of; empty in an array.
    pub key: &'a str,
}

/// Gives each string value that takes more than `over` bytes in a sound JSON text to `edit`, and puts what it gives in its
/// place; everything else keeps its bytes. `None` when nothing changed. Names of fields are no values and are left alone.
pub fn edit_strings(
    json: &str,
    over: usize,
    edit: &mut dyn FnMut(StringAt<'_>, String) -> Option<String>,
) -> Option<String> {
    enum Frame<'a> {
        Array(usize),
        /// The name as it is written, quotes and escapes included.
        Object(&'a str),
    }
    let bytes = json.as_bytes();
    let (mut out, mut copied, mut at) = (String::new(), 0, 0);
    let mut frames: Vec<Frame<'_>> = Vec::new();
    let mut name_is_next = false;
    while at < bytes.len() {
        match bytes[at] {
            b'{' => {
                frames.push(Frame::Object("\"\""));
                name_is_next = true;
            }
            b'[' => frames.push(Frame::Array(0)),
            b'}' | b']' => {
                frames.pop();
                name_is_next = false;
            }
            b',' => match frames.last_mut() {
                Some(Frame::Array(index)) => *index += 1,
                Some(Frame::Object(_)) => name_is_next = true,
                None => {}
            },
            b'"' => {
                let end = string_end(bytes, at);
                let quoted = &json[at..end];
                if let (true, Some(Frame::Object(name))) = (std::mem::take(&mut name_is_next), frames.last_mut()) {
                    *name = quoted;
                } else if quoted.len() > over
                    && let Some(text) = unquoted(quoted)
                {
                    let (mut pointer, mut key) = (String::new(), String::new());
                    for frame in &frames {
                        key = match frame {
                            Frame::Array(index) => index.to_string(),
                            Frame::Object(name) => unquoted(name).unwrap_or_default(),
                        };
                        pointer.push('/');
                        pointer.push_str(&key.replace('~', "~0").replace('/', "~1"));
                    }
                    if matches!(frames.last(), Some(Frame::Array(_))) {
                        key.clear();
                    }
                    if let Some(new) = edit(StringAt { pointer: &pointer, key: &key }, text) {
                        out.push_str(&json[copied..at]);
                        out.push_str(&serde_json::to_string(&new).unwrap_or_else(|_| "\"\"".into()));
                        copied = end;
                    }
                }
                at = end;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    (copied > 0).then(|| {
        out.push_str(&json[copied..]);
        out
    })
}

/// The place behind the closing quote of the string that begins at `at`.
fn string_end(bytes: &[u8], at: usize) -> usize {
    let mut end = at + 1;
    while end < bytes.len() && bytes[end] != b'"' {
        end += if bytes[end] == b'\\' { 2 } else { 1 };
    }
    (end + 1).min(bytes.len())
}

fn unquoted(json: &str) -> Option<String> {
    serde_json::from_str(json).ok().or_else(|| serde_json::from_str(&replace_lone_surrogates(json)?).ok())
}

impl<'a> Deserialize<'a> for Fields<'a> {
    fn deserialize<D: Deserializer<'a>>(from: D) -> Result<Self, D::Error> {
        struct Walk;
        impl<'a> Visitor<'a> for Walk {
            type Value = Fields<'a>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<M: MapAccess<'a>>(self, mut map: M) -> Result<Fields<'a>, M::Error> {
                let mut fields = Vec::with_capacity(8);
                while let Some((Text(key), value)) = map.next_entry::<Text<'a>, &'a RawValue>()? {
                    fields.push((key, value));
                }
                Ok(Fields(fields))
            }
        }
        from.deserialize_map(Walk)
    }
}

/// Writes one JSON object, field by field, in the order of the calls.
#[derive(Debug)]
pub struct JsonObject<'a> {
    out: &'a mut Vec<u8>,
    first: bool,
    /// Fields that are written as they came, and by nobody else.
    kept: &'a [(Box<str>, Box<RawValue>)],
}

impl<'a> JsonObject<'a> {
    /// Opens an object at the end of `out`.
    pub fn begin(out: &'a mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, first: true, kept: &[] }
    }

    /// Opens an object whose unknown fields are these: a known one among them could not be read, and stays as it came.
    pub fn beside(out: &'a mut Vec<u8>, kept: &'a RawFields) -> Self {
        Self { kept, ..Self::begin(out) }
    }

    fn keeps(&self, name: &str) -> bool {
        self.kept.iter().any(|(kept, _)| **kept == *name)
    }

    /// A field of any type whose serialisation cannot fail (strings, numbers, plain structures).
    pub fn field<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> &mut Self {
        if self.keeps(name) {
            return self;
        }
        self.key(name);
        // Writing to memory cannot fail, and no value of ours refuses to serialise; `null` keeps the line well formed.
        if serde_json::to_writer(&mut *self.out, value).is_err() {
            self.out.extend_from_slice(b"null");
        }
        self
    }

    /// A field whose value is a text: as [`JsonObject::field`], but faster where the text is long.
    pub fn text(&mut self, name: &str, text: &str) -> &mut Self {
        self.with(name, |out| quote(out, text))
    }

    /// A field that is left out when absent.
    pub fn some<T: Serialize>(&mut self, name: &str, value: &Option<T>) -> &mut Self {
        if let Some(value) = value {
            self.field(name, value);
        }
        self
    }

    /// A field whose value is written by `write`.
    pub fn with(&mut self, name: &str, write: impl FnOnce(&mut Vec<u8>)) -> &mut Self {
        if self.keeps(name) {
            return self;
        }
        self.key(name);
        write(self.out);
        self
    }

    /// Fields as they came.
    pub fn rest(&mut self, fields: &RawFields) -> &mut Self {
        for (name, value) in fields {
            self.key(name);
            self.out.extend_from_slice(value.get().as_bytes());
        }
        self
    }

    /// Closes the object.
    pub fn end(&mut self) {
        self.out.push(b'}');
    }

    fn key(&mut self, name: &str) {
        if !std::mem::take(&mut self.first) {
            self.out.push(b',');
        }
        quote_name(self.out, name);
        self.out.push(b':');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_fields_keep_bytes_and_order() {
        let mut fields = Fields::parse(r#"{"b": 1.50,"a":"x","한글":{"z":[1 , 2]},"a":"y"}"#).unwrap();
        assert_eq!(fields.required::<String>("a").unwrap(), "y");
        let mut out = Vec::new();
        JsonObject::begin(&mut out).rest(&fields.rest()).end();
        assert_eq!(String::from_utf8(out).unwrap(), r#"{"b":1.50,"한글":{"z":[1 , 2]}}"#);
    }

    #[test]
    fn long_strings_are_edited_where_they_stand_and_all_else_keeps_its_bytes() {
        let json =
            r#"{"n": 1.0 ,"a/b":["짧다",{"키":"한글이 \"길다\" 😀"}],"긴 이름은 그대로":"x","s\u0069g":"0123456789"}"#;
        let mut seen = Vec::new();
        let edited = edit_strings(json, 11, &mut |at, text| {
            seen.push((at.pointer.to_owned(), at.key.to_owned(), text));
            (at.key != "sig").then(|| "\"새\"".into())
        });
        assert_eq!(
            seen,
            [
                ("/a~1b/1/키".into(), "키".into(), "한글이 \"길다\" 😀".into()),
                ("/sig".to_owned(), "sig".to_owned(), "0123456789".to_owned())
            ]
        );
        assert_eq!(
            edited.unwrap(),
            r#"{"n": 1.0 ,"a/b":["짧다",{"키":"\"새\""}],"긴 이름은 그대로":"x","s\u0069g":"0123456789"}"#
        );
        assert_eq!(edit_strings(json, 1000, &mut |_, _| unreachable!()), None);
        assert_eq!(edit_strings(r#""0123456789ab""#, 3, &mut |at, _| Some(at.pointer.into())).unwrap(), "\"\"");
        for broken in ["\"", "{\"a", "[\"\\", "}", "]", "{\"a\":\"b\\"] {
            edit_strings(broken, 0, &mut |_, _| None);
        }
    }

    #[test]
    fn lone_surrogates_become_the_replacement_character() {
        let mut fields =
            Fields::parse(r#"{"a":"x\ud83dy","b":"\ud83d\ude00","c":"\\ud800","d":"\ude00\ud83d\ude00"}"#).unwrap();
        assert_eq!(fields.required::<String>("a").unwrap(), "x\u{fffd}y");
        assert_eq!(fields.required::<String>("b").unwrap(), "😀");
        assert_eq!(fields.required::<String>("c").unwrap(), "\\ud800");
        assert_eq!(fields.required::<String>("d").unwrap(), "\u{fffd}😀");
    }
}
