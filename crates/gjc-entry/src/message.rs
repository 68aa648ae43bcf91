//! Messages and their content blocks, in the family's JSON (both ways).
//!
//! Source of the format: pi 0.73.1 and gajae-code 0.3.1 session files. Fields that are not named here travel in `extra`.

use crate::fields::{FieldError, Fields, JsonObject, RawFields};
use crate::quote::quote;
use crate::{BlobRef, Origin};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// What one party said. Roles that only other programs write keep their raw form.
#[derive(Debug, Clone)]
pub enum Message {
    /// A person, or somebody in their place.
    User(UserMessage),
    /// The model.
    Assistant(AssistantMessage),
    /// A tool's answer to one call.
    ToolResult(ToolResult),
    /// Any other role (`bashExecution`, `fileMention`, `developer`, …).
    Other {
        /// The role.
        role: Box<str>,
        /// The whole message.
        raw: Box<RawValue>,
    },
}

/// The content of a message: one text, or blocks. Both spellings exist in files and are kept.
#[derive(Debug, Clone)]
pub enum Content {
    /// A plain string.
    Text(String),
    /// Blocks in order.
    Blocks(Vec<Block>),
}

impl Content {
    /// All text in it, joined by line feeds.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Blocks(blocks) => {
                let texts: Vec<&str> = blocks.iter().filter_map(Block::as_text).collect();
                texts.join("\n")
            }
        }
    }
}

/// One piece of content.
#[derive(Debug, Clone)]
pub enum Block {
    /// Text.
    Text {
        /// The words.
        text: String,
        /// Who brought them, where known.
        origin: Option<Origin>,
        /// Other fields (`textSignature`, …).
        extra: RawFields,
    },
    /// The model's reasoning.
    Thinking {
        /// The words; may be empty when only the signature was given.
        thinking: String,
        /// The provider's signature; without it the block cannot be sent again.
        signature: Option<String>,
        /// Other fields.
        extra: RawFields,
    },
    /// Reasoning that the provider keeps closed.
    RedactedThinking {
        /// Opaque data.
        data: String,
        /// Other fields.
        extra: RawFields,
    },
    /// A picture.
    Image {
        /// Its bytes.
        data: ImageData,
        /// As in `image/png`.
        mime: String,
        /// Who brought it, where known.
        origin: Option<Origin>,
        /// Other fields.
        extra: RawFields,
    },
    /// A call of a tool.
    ToolCall {
        /// The provider's id; repeats from turn to turn with some of them.
        id: String,
        /// The tool.
        name: String,
        /// The arguments as the model wrote them.
        arguments: Box<RawValue>,
        /// Other fields.
        extra: RawFields,
    },
    /// A type that we do not know, kept whole.
    Unknown(Box<RawValue>),
}

impl Block {
    /// A text block.
    #[must_use]
    pub fn text(text: impl Into<String>, origin: Origin) -> Self {
        Self::Text { text: text.into(), origin: Some(origin), extra: Vec::new() }
    }

    /// Its text, if it is a text block.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text { text, .. } => Some(text),
            _ => None,
        }
    }
}

/// Where a picture's bytes are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImageData {
    /// In the line, base64.
    Inline(String),
    /// In the blob store.
    Blob(BlobRef),
}

/// What a person (or somebody in their place) said.
#[derive(Debug, Clone)]
pub struct UserMessage {
    /// The words and pictures.
    pub content: Content,
    /// Milliseconds since the epoch.
    pub at: i64,
    /// Other fields (`attribution`, `synthetic`, …).
    pub extra: RawFields,
}

/// What the model said.
#[derive(Debug, Clone)]
pub struct AssistantMessage {
    /// Text, thinking, calls, in order.
    pub content: Vec<Block>,
    /// The wire, as in `anthropic-messages`.
    pub api: String,
    /// The provider.
    pub provider: String,
    /// The model.
    pub model: String,
    /// The provider's name for this answer.
    pub response_id: Option<String>,
    /// Tokens and cost.
    pub usage: Usage,
    /// Why it ended.
    pub stop: StopReason,
    /// What went wrong, with `error` and `aborted`.
    pub error: Option<String>,
    /// Milliseconds since the epoch.
    pub at: i64,
    /// Other fields.
    pub extra: RawFields,
}

impl AssistantMessage {
    /// The calls in it, in order: id, name, arguments.
    pub fn calls(&self) -> impl Iterator<Item = (&str, &str, &RawValue)> {
        self.content.iter().filter_map(|block| match block {
            Block::ToolCall { id, name, arguments, .. } => Some((id.as_str(), name.as_str(), &**arguments)),
            _ => None,
        })
    }

    /// All its text, joined by line feeds.
    #[must_use]
    pub fn text(&self) -> String {
        let texts: Vec<&str> = self.content.iter().filter_map(Block::as_text).collect();
        texts.join("\n")
    }
}

/// What a tool answered.
#[derive(Debug, Clone)]
pub struct ToolResult {
    /// The call's id.
    pub call_id: String,
    /// The tool.
    pub tool: String,
    /// What the model sees.
    pub content: Content,
    /// What programs see.
    pub details: Option<Box<RawValue>>,
    /// Whether the call failed.
    pub is_error: bool,
    /// Milliseconds since the epoch.
    pub at: i64,
    /// Other fields.
    pub extra: RawFields,
}

/// Why an answer ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StopReason {
    /// It was complete.
    Stop,
    /// The output limit.
    Length,
    /// It wants tools to run.
    ToolUse,
    /// Something failed.
    Error,
    /// A person interrupted it.
    Aborted,
    /// What a newer program wrote.
    #[serde(untagged)]
    Other(String),
}

/// Tokens and cost of one answer. `input` is what was not read from a cache.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Usage {
    /// Fresh input tokens.
    pub input: u64,
    /// Output tokens.
    pub output: u64,
    /// Tokens read from the provider's cache.
    pub cache_read: u64,
    /// Tokens written to it.
    pub cache_write: u64,
    /// The sum.
    pub total_tokens: u64,
    /// In US dollars.
    pub cost: Cost,
}

/// Cost of one answer in US dollars.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Cost {
    /// Fresh input.
    pub input: f64,
    /// Output.
    pub output: f64,
    /// Cache reads.
    pub cache_read: f64,
    /// Cache writes.
    pub cache_write: f64,
    /// The sum.
    pub total: f64,
}

impl Usage {
    /// Reads what any program wrote: a number that is none counts as nothing.
    #[must_use]
    pub fn read(raw: &RawValue) -> Self {
        // Mostly there is nothing to forgive. (Lists would be taken for fields without their names.)
        let strict = Some(raw.get()).filter(|text| !text.contains('[')).map(serde_json::from_str);
        strict.and_then(Result::ok).unwrap_or_else(|| Self::read_leniently(raw))
    }

    fn read_leniently(raw: &RawValue) -> Self {
        let mut usage = Fields::parse(raw.get()).unwrap_or_default();
        let mut cost = usage.raw("cost").and_then(|raw| Fields::parse(raw.get()).ok()).unwrap_or_default();
        let mut tokens = |name| match usage.raw(name).map(RawValue::get).map(|text| (text.parse(), text.parse::<f64>()))
        {
            Some((Ok(whole), _)) => whole,
            Some((_, Ok(number))) => number.max(0.0) as u64,
            _ => 0,
        };
        let mut dollars = |name| cost.lenient::<f64>(name).unwrap_or(0.0);
        Self {
            input: tokens("input"),
            output: tokens("output"),
            cache_read: tokens("cacheRead"),
            cache_write: tokens("cacheWrite"),
            total_tokens: tokens("totalTokens"),
            cost: Cost {
                input: dollars("input"),
                output: dollars("output"),
                cache_read: dollars("cacheRead"),
                cache_write: dollars("cacheWrite"),
                total: dollars("total"),
            },
        }
    }

    /// Whether writing it gives what was read: otherwise there is more in it than is known here.
    pub(crate) fn is_all_of(&self, raw: &RawValue) -> bool {
        serde_json::to_string(self).is_ok_and(|written| written == raw.get())
    }
}

/// Takes the usage; one with more in it stays, as it was written.
fn usage(fields: &mut Fields<'_>) -> Usage {
    let Some(raw) = fields.peek("usage") else { return Usage::default() };
    let usage = Usage::read(raw);
    if raw.get() == "null" || usage.is_all_of(raw) {
        let _ = fields.raw("usage");
    }
    usage
}

impl Message {
    /// Reads a message.
    ///
    /// # Errors
    /// When a field that its role needs is missing or of another type.
    pub fn from_json(json: &RawValue) -> Result<Self, FieldError> {
        let mut fields = Fields::parse(json.get())?;
        let role: String = fields.required("role")?;
        Ok(match role.as_str() {
            "user" => Self::User(UserMessage {
                content: content(&mut fields)?,
                at: fields.lenient("timestamp").unwrap_or(0),
                extra: fields.rest(),
            }),
            "assistant" => Self::Assistant(AssistantMessage {
                content: match content(&mut fields)? {
                    Content::Blocks(blocks) => blocks,
                    Content::Text(text) => vec![Block::Text { text, origin: None, extra: Vec::new() }],
                },
                api: fields.lenient("api").unwrap_or_default(),
                provider: fields.lenient("provider").unwrap_or_default(),
                model: fields.lenient("model").unwrap_or_default(),
                response_id: fields.lenient("responseId"),
                usage: usage(&mut fields),
                stop: fields.lenient("stopReason").unwrap_or(StopReason::Stop),
                error: fields.lenient("errorMessage"),
                at: fields.lenient("timestamp").unwrap_or(0),
                extra: fields.rest(),
            }),
            "toolResult" => Self::ToolResult(ToolResult {
                call_id: fields.required("toolCallId")?,
                tool: fields.lenient("toolName").unwrap_or_default(),
                content: content(&mut fields)?,
                details: fields.raw("details").map(ToOwned::to_owned),
                is_error: fields.lenient("isError").unwrap_or(false),
                at: fields.lenient("timestamp").unwrap_or(0),
                extra: fields.rest(),
            }),
            _ => Self::Other { role: role.into(), raw: json.to_owned() },
        })
    }

    /// Writes it.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::User(user) => JsonObject::beside(out, &user.extra)
                .field("role", "user")
                .with("content", |out| user.content.write(out))
                .rest(&user.extra)
                .field("timestamp", &user.at)
                .end(),
            Self::Assistant(said) => JsonObject::beside(out, &said.extra)
                .field("role", "assistant")
                .with("content", |out| write_blocks(&said.content, out))
                .field("api", &said.api)
                .field("provider", &said.provider)
                .field("model", &said.model)
                .some("responseId", &said.response_id)
                .field("usage", &said.usage)
                .field("stopReason", &said.stop)
                .some("errorMessage", &said.error)
                .rest(&said.extra)
                .field("timestamp", &said.at)
                .end(),
            Self::ToolResult(result) => JsonObject::beside(out, &result.extra)
                .field("role", "toolResult")
                .field("toolCallId", &result.call_id)
                .field("toolName", &result.tool)
                .with("content", |out| result.content.write(out))
                .some("details", &result.details)
                .field("isError", &result.is_error)
                .rest(&result.extra)
                .field("timestamp", &result.at)
                .end(),
            Self::Other { raw, .. } => out.extend_from_slice(raw.get().as_bytes()),
        }
    }

    /// The role's word.
    #[must_use]
    pub fn role(&self) -> &str {
        match self {
            Self::User(_) => "user",
            Self::Assistant(_) => "assistant",
            Self::ToolResult(_) => "toolResult",
            Self::Other { role, .. } => role,
        }
    }
}

impl Content {
    /// Reads content: a string or an array of blocks.
    ///
    /// # Errors
    /// When it is neither.
    pub fn from_json(json: &RawValue) -> Result<Self, FieldError> {
        let wrong = |why| FieldError::Wrong { name: "content", why };
        if json.get().starts_with('"') {
            return crate::fields::from_raw(json).map(Self::Text).map_err(wrong);
        }
        let raw: Vec<&RawValue> = serde_json::from_str(json.get()).map_err(|error| wrong(error.to_string()))?;
        Ok(Self::Blocks(raw.iter().map(|block| Block::from_json(block)).collect()))
    }

    /// Writes it, in the spelling that it has.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Text(text) => quote(out, text),
            Self::Blocks(blocks) => write_blocks(blocks, out),
        }
    }
}

fn content(fields: &mut Fields<'_>) -> Result<Content, FieldError> {
    match fields.raw("content") {
        Some(raw) if raw.get() != "null" => Content::from_json(raw),
        _ => Ok(Content::Blocks(Vec::new())),
    }
}

fn write_blocks(blocks: &[Block], out: &mut Vec<u8>) {
    out.push(b'[');
    for (index, block) in blocks.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        block.write(out);
    }
    out.push(b']');
}

impl Block {
    /// Reads a block. One that cannot be read as what it says to be is kept whole as [`Block::Unknown`].
    #[must_use]
    pub fn from_json(json: &RawValue) -> Self {
        Self::known(json).ok().flatten().unwrap_or_else(|| Self::Unknown(json.to_owned()))
    }

    fn known(json: &RawValue) -> Result<Option<Self>, FieldError> {
        let mut fields = Fields::parse(json.get())?;
        let kind: String = fields.required("type")?;
        Ok(Some(match kind.as_str() {
            "text" => Self::Text {
                text: fields.required("text")?,
                origin: fields.optional("gjcOrigin").ok().flatten(),
                extra: fields.rest(),
            },
            "thinking" => {
                let thinking = fields.required("thinking")?;
                // One that was dropped for its length is no signature, but its place in the line is kept.
                let dropped = fields.peek("thinkingSignature").is_some_and(|raw| raw.get() == "\"\"");
                let signature = if dropped { None } else { fields.optional("thinkingSignature")? };
                Self::Thinking { thinking, signature, extra: fields.rest() }
            }
            "redactedThinking" => Self::RedactedThinking { data: fields.required("data")?, extra: fields.rest() },
            "image" => {
                let data: String = fields.required("data")?;
                Self::Image {
                    data: data.parse().map(ImageData::Blob).unwrap_or(ImageData::Inline(data)),
                    mime: fields.required("mimeType")?,
                    origin: fields.optional("gjcOrigin").ok().flatten(),
                    extra: fields.rest(),
                }
            }
            "toolCall" => Self::ToolCall {
                id: fields.required("id")?,
                name: fields.required("name")?,
                arguments: fields.raw("arguments").ok_or(FieldError::Absent("arguments"))?.to_owned(),
                extra: fields.rest(),
            },
            _ => return Ok(None),
        }))
    }

    /// Writes it.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Text { text, origin, extra } => JsonObject::begin(out)
                .field("type", "text")
                .text("text", text)
                .rest(extra)
                .some("gjcOrigin", origin)
                .end(),
            Self::Thinking { thinking, signature, extra } => JsonObject::begin(out)
                .field("type", "thinking")
                .text("thinking", thinking)
                .some("thinkingSignature", signature)
                .rest(extra)
                .end(),
            Self::RedactedThinking { data, extra } => {
                JsonObject::begin(out).field("type", "redactedThinking").field("data", data).rest(extra).end();
            }
            Self::Image { data, mime, origin, extra } => {
                let mut object = JsonObject::begin(out);
                object.field("type", "image");
                match data {
                    ImageData::Inline(base64) => object.field("data", base64),
                    ImageData::Blob(blob) => object.field("data", blob),
                };
                object.field("mimeType", mime).rest(extra).some("gjcOrigin", origin).end();
            }
            Self::ToolCall { id, name, arguments, extra } => JsonObject::begin(out)
                .field("type", "toolCall")
                .field("id", id)
                .field("name", name)
                .field("arguments", arguments)
                .rest(extra)
                .end(),
            Self::Unknown(raw) => out.extend_from_slice(raw.get().as_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(json: &str) -> String {
        let raw: Box<RawValue> = serde_json::from_str(json).unwrap();
        let mut out = Vec::new();
        Message::from_json(&raw).unwrap().write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn usage_reads_the_same_strictly_and_leniently() {
        for json in [
            r#"{"input":1,"output":2,"cacheRead":3,"cacheWrite":4,"totalTokens":10,"cost":{"input":0.5,"output":1e-3,"cacheRead":0,"cacheWrite":-0.0,"total":7}}"#,
            r#"{"input":1,"new":{"x":[1]},"cost":{"total":1,"y":"z"}}"#,
            r#"{"input":1.5,"output":-2,"cacheRead":null,"cacheWrite":"4","totalTokens":1e3,"cost":null}"#,
            r#"{"input":18446744073709551615,"output":18446744073709551616,"cost":{"total":1e999}}"#,
            r#"{"input":1,"input":2,"cost":{"total":1,"total":2}}"#,
            r#"{"cost":[1,2,3,4,5]}"#,
            "[1,2,3,4,5,{}]",
            "{}",
            "null",
            "7",
        ] {
            let raw: Box<RawValue> = serde_json::from_str(json).unwrap();
            assert_eq!(Usage::read(&raw), Usage::read_leniently(&raw), "{json}");
        }
    }

    #[test]
    fn messages_of_the_family_keep_every_field() {
        for json in [
            r#"{"role":"user","content":"안녕","timestamp":5}"#,
            r#"{"role":"user","content":[{"type":"text","text":"hi","textSignature":"s"},{"type":"audio","x":1}],"attribution":"user","timestamp":5}"#,
            r#"{"role":"assistant","content":[{"type":"thinking","thinking":"t","thinkingSignature":"sig"},{"type":"toolCall","id":"c","name":"read","arguments":{"path":"a", "n":1.0}}],"api":"a","provider":"p","model":"m","responseId":"r","usage":{"input":1,"output":2,"cacheRead":0,"cacheWrite":0,"totalTokens":3,"cost":{"input":0.0,"output":0.0,"cacheRead":0.0,"cacheWrite":0.0,"total":0.0}},"stopReason":"toolUse","duration":7,"timestamp":6}"#,
            r#"{"role":"toolResult","toolCallId":"c","toolName":"read","content":[{"type":"text","text":"x"}],"details":{"a":[1]},"isError":false,"timestamp":7}"#,
            r#"{"role":"bashExecution","command":"ls","output":"a","exitCode":0}"#,
        ] {
            let once = round_trip(json);
            let (a, b): (serde_json::Value, serde_json::Value) =
                (serde_json::from_str(json).unwrap(), serde_json::from_str(&once).unwrap());
            assert_eq!(a, b);
            assert_eq!(round_trip(&once), once, "writing is stable");
        }
    }

    #[test]
    fn an_unknown_stop_reason_and_a_broken_block_are_kept() {
        let json = r#"{"role":"assistant","content":[{"type":"toolCall","id":1}],"stopReason":"refusal"}"#;
        let raw: Box<RawValue> = serde_json::from_str(json).unwrap();
        let Message::Assistant(said) = Message::from_json(&raw).unwrap() else { unreachable!() };
        assert_eq!(said.stop, StopReason::Other("refusal".into()));
        assert!(matches!(&said.content[..], [Block::Unknown(raw)] if raw.get() == r#"{"type":"toolCall","id":1}"#));
    }
}
