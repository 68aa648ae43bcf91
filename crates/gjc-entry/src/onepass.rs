//! The lines that most of a session is made of, messages of people, models and tools, read in one pass.
//!
//! The general way ([`crate::Fields`]) takes an object apart into its fields, and each field again: right for whatever a line may
//! be, and five looks at every byte of a text that stands four objects deep. What begins as the family's programs write it
//! (`type` first, `role` first, block by block `type` first) is read here at once. Anything else, also a field that is there
//! twice or `null`, or half a character, is an error here and is read the general way. Where both read, they say the same.

use crate::fields::RawFields;
use crate::message::ImageData;
use crate::{
    AssistantMessage, Block, Body, Content, Entry, Label, Message, StopReason, Timestamp, ToolResult, Usage,
    UserMessage,
};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// The entry of a line; `None` when it is to be read the general way.
pub(crate) fn message_entry(line: &str) -> Option<Entry> {
    serde_json::from_str::<Line>(line).ok().map(|Line(entry)| entry)
}

/// Implements `Deserialize` for a type by a function over the map.
macro_rules! from_map {
    ($type:ident, $what:literal, |$map:ident| $read:expr) => {
        impl<'a> Deserialize<'a> for $type {
            fn deserialize<D: Deserializer<'a>>(from: D) -> Result<Self, D::Error> {
                struct Walk;
                impl<'a> Visitor<'a> for Walk {
                    type Value = $type;

                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($what)
                    }

                    fn visit_map<M: MapAccess<'a>>(self, mut $map: M) -> Result<$type, M::Error> {
                        $read
                    }
                }
                from.deserialize_map(Walk)
            }
        }
    };
}

struct Line(Entry);
struct Said(Message);
struct Piece(Block);
struct Pieces(Content);

from_map!(Line, "an entry", |map| {
    if first(&mut map, "type")? != "message" {
        return Err(Error::custom("no message"));
    }
    let (mut id, mut parent, mut label, mut at, mut message) = (None, None, None, None, None);
    let mut extra = RawFields::new();
    while let Some(Text(name)) = map.next_key()? {
        match &*name {
            "id" => given(&mut map, &mut id)?,
            // A root has none.
            "parentId" if parent.is_none() => parent = Some(map.next_value()?),
            "gjcLabel" if label.is_none() => label = Some(Label::from_json(map.next_value::<&RawValue>()?.get())),
            "timestamp" if at.is_none() => {
                let text = map.next_value::<Text<'a>>()?.0;
                let read = Timestamp::written(&text).ok_or_else(|| Error::custom("another form of time"))?;
                at = Some(read);
            }
            "message" => given(&mut map, &mut message)?,
            // What it would mean here is for the general way to say.
            "type" | "parentId" | "gjcLabel" | "timestamp" | "customType" => return Err(Error::custom("twice")),
            _ => keep(&mut map, name, &mut extra)?,
        }
    }
    let (Some(id), Some(Said(message))) = (id, message) else { return Err(Error::custom("not whole")) };
    let body = Body::Message(message);
    Ok(Line(Entry { id, parent: parent.flatten(), at: at.unwrap_or_default(), label, body, extra }))
});

from_map!(Said, "a message", |map| {
    match &*first(&mut map, "role")? {
        "user" => user(map),
        "assistant" => assistant(map),
        "toolResult" => result(map),
        _ => Err(Error::custom("another role")),
    }
});

fn user<'a, M: MapAccess<'a>>(mut map: M) -> Result<Said, M::Error> {
    let (mut content, mut at, mut extra) = (None, None, RawFields::new());
    while let Some(Text(name)) = map.next_key()? {
        match &*name {
            "content" => given(&mut map, &mut content)?,
            "timestamp" => given(&mut map, &mut at)?,
            "role" => return Err(Error::custom("twice")),
            _ => keep(&mut map, name, &mut extra)?,
        }
    }
    let Some(Pieces(content)) = content else { return Err(Error::custom("no content")) };
    Ok(Said(Message::User(UserMessage { content, at: at.unwrap_or(0), extra })))
}

fn assistant<'a, M: MapAccess<'a>>(mut map: M) -> Result<Said, M::Error> {
    let (mut content, mut api, mut provider, mut model, mut response_id) = (None, None, None, None, None);
    let (mut usage, mut stop, mut error, mut at, mut extra) = (None, None, None, None, RawFields::new());
    while let Some(Text(name)) = map.next_key()? {
        match &*name {
            "content" => given(&mut map, &mut content)?,
            "api" => given(&mut map, &mut api)?,
            "provider" => given(&mut map, &mut provider)?,
            "model" => given(&mut map, &mut model)?,
            "responseId" => given(&mut map, &mut response_id)?,
            "usage" if usage.is_none() => {
                let raw = map.next_value::<&RawValue>()?;
                let read = Usage::read(raw);
                if !read.is_all_of(raw) {
                    extra.push((name.into(), raw.to_owned()));
                }
                usage = Some(read);
            }
            "stopReason" => given(&mut map, &mut stop)?,
            "errorMessage" => given(&mut map, &mut error)?,
            "timestamp" => given(&mut map, &mut at)?,
            "role" | "usage" => return Err(Error::custom("twice")),
            _ => keep(&mut map, name, &mut extra)?,
        }
    }
    let Some(Pieces(Content::Blocks(content))) = content else { return Err(Error::custom("no blocks")) };
    Ok(Said(Message::Assistant(AssistantMessage {
        content,
        api: api.unwrap_or_default(),
        provider: provider.unwrap_or_default(),
        model: model.unwrap_or_default(),
        response_id,
        usage: usage.unwrap_or_default(),
        stop: stop.unwrap_or(StopReason::Stop),
        error,
        at: at.unwrap_or(0),
        extra,
    })))
}

fn result<'a, M: MapAccess<'a>>(mut map: M) -> Result<Said, M::Error> {
    let (mut call_id, mut tool, mut content, mut details) = (None, None, None, None);
    let (mut is_error, mut at, mut extra) = (None, None, RawFields::new());
    while let Some(Text(name)) = map.next_key()? {
        match &*name {
            "toolCallId" => given(&mut map, &mut call_id)?,
            "toolName" => given(&mut map, &mut tool)?,
            "content" => given(&mut map, &mut content)?,
            "details" if details.is_none() => details = Some(map.next_value::<&RawValue>()?.to_owned()),
            "isError" => given(&mut map, &mut is_error)?,
            "timestamp" => given(&mut map, &mut at)?,
            "role" | "details" => return Err(Error::custom("twice")),
            _ => keep(&mut map, name, &mut extra)?,
        }
    }
    let (Some(call_id), Some(Pieces(content))) = (call_id, content) else { return Err(Error::custom("not whole")) };
    Ok(Said(Message::ToolResult(ToolResult {
        call_id,
        tool: tool.unwrap_or_default(),
        content,
        details,
        is_error: is_error.unwrap_or(false),
        at: at.unwrap_or(0),
        extra,
    })))
}

from_map!(Piece, "a block", |map| {
    let kind = first(&mut map, "type")?;
    // `text`, `thinking`, `data` or `id`; `thinkingSignature`, `mimeType` or `name`.
    let (one, two) = match &*kind {
        "text" => ("text", None),
        "thinking" => ("thinking", Some("thinkingSignature")),
        "image" => ("data", Some("mimeType")),
        "toolCall" => ("id", Some("name")),
        _ => return Err(Error::custom("another block")),
    };
    let (mut a, mut b, mut origin, mut arguments) = (None::<String>, None::<String>, None, None);
    let mut extra = RawFields::new();
    while let Some(Text(name)) = map.next_key()? {
        match &*name {
            name if name == one => given(&mut map, &mut a)?,
            name if two == Some(name) => given(&mut map, &mut b)?,
            "gjcOrigin" if matches!(one, "text" | "data") => given(&mut map, &mut origin)?,
            "arguments" if one == "id" && arguments.is_none() => {
                arguments = Some(map.next_value::<&RawValue>()?.to_owned());
            }
            "type" | "arguments" => return Err(Error::custom("twice, or elsewhere")),
            _ => keep(&mut map, name, &mut extra)?,
        }
    }
    let missing = || Error::custom("not whole");
    let a = a.ok_or_else(missing)?;
    Ok(Piece(match one {
        "text" => Block::Text { text: a, origin, extra },
        // One that was dropped for its length keeps its place in the line.
        "thinking" if b.as_deref() == Some("") => return Err(missing()),
        "thinking" => Block::Thinking { thinking: a, signature: b, extra },
        "data" => Block::Image {
            data: a.parse().map(ImageData::Blob).unwrap_or(ImageData::Inline(a)),
            mime: b.ok_or_else(missing)?,
            origin,
            extra,
        },
        _ => Block::ToolCall { id: a, name: b.ok_or_else(missing)?, arguments: arguments.ok_or_else(missing)?, extra },
    }))
});

impl<'a> Deserialize<'a> for Pieces {
    fn deserialize<D: Deserializer<'a>>(from: D) -> Result<Self, D::Error> {
        struct Walk;
        impl<'a> Visitor<'a> for Walk {
            type Value = Pieces;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or blocks")
            }

            fn visit_str<E>(self, text: &str) -> Result<Pieces, E> {
                Ok(Pieces(Content::Text(text.into())))
            }

            fn visit_seq<S: SeqAccess<'a>>(self, mut blocks: S) -> Result<Pieces, S::Error> {
                let mut pieces = Vec::new();
                while let Some(Piece(block)) = blocks.next_element()? {
                    pieces.push(block);
                }
                Ok(Pieces(Content::Blocks(pieces)))
            }
        }
        from.deserialize_any(Walk)
    }
}

/// The value of the first field, if it has this name.
fn first<'a, M: MapAccess<'a>>(map: &mut M, name: &str) -> Result<Cow<'a, str>, M::Error> {
    match map.next_key::<Text<'a>>()? {
        Some(Text(key)) if key == name => Ok(map.next_value::<Text<'a>>()?.0),
        _ => Err(Error::custom("another order of fields")),
    }
}

/// A value that is neither `null` nor there already.
fn given<'a, M: MapAccess<'a>, T: Deserialize<'a>>(map: &mut M, into: &mut Option<T>) -> Result<(), M::Error> {
    match (&into, map.next_value::<Option<T>>()?) {
        (None, value @ Some(_)) => {
            *into = value;
            Ok(())
        }
        _ => Err(Error::custom("twice, or null")),
    }
}

/// A field that nobody knows, as it was written.
fn keep<'a, M: MapAccess<'a>>(map: &mut M, name: Cow<'a, str>, into: &mut RawFields) -> Result<(), M::Error> {
    into.push((name.into(), map.next_value::<&RawValue>()?.to_owned()));
    Ok(())
}

/// A text; borrowed unless it holds escapes.
pub(crate) struct Text<'a>(pub(crate) Cow<'a, str>);

impl<'a> Deserialize<'a> for Text<'a> {
    fn deserialize<D: Deserializer<'a>>(from: D) -> Result<Self, D::Error> {
        struct Walk;
        impl<'a> Visitor<'a> for Walk {
            type Value = Text<'a>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text")
            }

            fn visit_borrowed_str<E>(self, text: &'a str) -> Result<Text<'a>, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Text<'a>, E> {
                Ok(Text(Cow::Owned(text.into())))
            }
        }
        from.deserialize_str(Walk)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where the one pass reads a line, it reads what the general way reads; `wanted`: whether it has to.
    fn check(line: &str, wanted: bool) {
        let (fast, general) = (message_entry(line), Entry::parse_generally(line));
        assert_eq!(fast.is_some(), wanted, "{line}");
        if let Some(fast) = fast {
            assert_eq!(format!("{fast:?}"), format!("{:?}", general.unwrap()), "{line}");
        }
    }

    #[test]
    fn what_the_family_writes_is_read_at_once() {
        let line = |message: &str| {
            format!(
                r#"{{"type":"message","id":"0000000a","parentId":null,"timestamp":"2026-06-05T07:18:54.123Z","message":{message}}}"#
            )
        };
        for message in [
            r#"{"role":"user","content":"한글 \n \u2028","timestamp":1}"#,
            r#"{"role":"user","content":[{"type":"text","text":"x\"y","gjcOrigin":"typed"},{"type":"image","data":"aGk=","mimeType":"image/png","z":[1 , 2]}],"attribution":"user","timestamp":1}"#,
            r#"{"role":"assistant","content":[{"type":"thinking","thinking":"음","thinkingSignature":"s"},{"type":"thinking","thinking":""},{"type":"text","text":""},{"type":"toolCall","id":"c","name":"read","arguments":{"a": [1.50]},"thoughtSignature":"q"}],"api":"a","provider":"p","model":"m","responseId":"r","usage":{"input":1,"cost":{"input":0.5}},"stopReason":"new","errorMessage":"e","timestamp":9,"duration":1.25}"#,
            r#"{"role":"toolResult","toolCallId":"c","toolName":"read","content":[],"details":null,"isError":true,"timestamp":1}"#,
            r#"{"role":"toolResult","toolCallId":"c","content":"x"}"#,
            // A field without a name is a field.
            r#"{"role":"user","content":[{"type":"text","text":"x","":"y"}],"":1}"#,
        ] {
            check(&line(message), true);
        }
        check(
            r#"{"type":"message","id":"세션","parentId":"p","gjcLabel":{"l":"INTERNAL","t":false},"z":1,"message":{"role":"user","content":"x"},"a":"\ud800"}"#,
            true,
        );
    }

    #[test]
    fn what_is_unusual_is_left_to_the_general_way() {
        for line in [
            r#"{"id":"a","type":"message","message":{"role":"user","content":"x"}}"#,
            r#"{"type":"message","id":"a","timestamp":"?","message":{"role":"user","content":"x"}}"#,
            r#"{"type":"custom","id":"a","customType":"x"}"#,
            r#"{"type":"message","id":"a","timestamp":"2026-06-05T07:18:54Z","message":{"role":"user","content":"x"}}"#,
            r#"{"type":"message","id":"a","timestamp":7,"message":{"role":"user","content":"x","timestamp":"y"}}"#,
            r#"{"type":"message","id":"a","id":"b","message":{"role":"user","content":"x"}}"#,
            r#"{"type":"message","id":"a","message":{"role":"user","content":"x","role":"user"}}"#,
            r#"{"type":"message","id":"a","message":{"content":"x","role":"user"}}"#,
            r#"{"type":"message","id":"a","message":{"role":"bashExecution","command":"ls"}}"#,
            r#"{"type":"message","id":"a","message":{"role":"user","content":null}}"#,
            r#"{"type":"message","id":"a","message":{"role":"user","content":"\ud83d"}}"#,
            r#"{"type":"message","id":"a","message":{"role":"assistant","content":"x"}}"#,
            r#"{"type":"message","id":"a","message":{"role":"user","content":[{"type":"brand_new"}]}}"#,
            r#"{"type":"message","id":"a","message":{"role":"user","content":[{"type":"text","text":"x","text":"y"}]}}"#,
            r#"{"type":"message","id":"a","message":{"role":"user","content":[{"type":"text","text":"x","gjcOrigin":"nobody"}]}}"#,
            r#"{"type":"message","id":"a","message":{"role":"assistant","content":[{"type":"thinking","thinking":"x","thinkingSignature":""}]}}"#,
        ] {
            check(line, false);
        }
    }
}
