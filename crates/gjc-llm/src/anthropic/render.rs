//! A request as the body of `POST /v1/messages`. The order of keys is the order of the code.

use crate::{Rendered, Unsupported};
use base64::Engine;
use gjc_context::{BlockAt, Layout, Msg, Request, Said, ToolDef, Turn};
use gjc_entry::fields::replace_lone_surrogates;
use gjc_entry::message::ImageData;
use gjc_entry::{BlobRef, Blobs, Block, JsonObject, RequestEnv, Thinking};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// The most `cache_control` marks that the API takes in one request.
const MARKS: usize = 4;

/// Renders a request: model, max_tokens, stream, system, tools, thinking, messages.
///
/// What the API refuses is left out the same way each time: blank texts, thinking without a signature or of another
/// provider, pictures that are lost or of a type that it does not read (a sentence stands in their place).
///
/// # Errors
/// [`Unsupported`] when the system prompt or the tools are lost or cannot be read.
pub fn render(request: &Request, blobs: &dyn Blobs) -> Result<Rendered, Unsupported> {
    let env = &request.env;
    let system = text_blob(blobs, &env.system, "system prompt")?;
    let tools: Vec<ToolDef> = match text_blob(blobs, &env.tools, "tool list")? {
        text if text.trim().is_empty() => Vec::new(),
        text => serde_json::from_str(&text)
            .map_err(|error| Unsupported::Unreadable { part: "tool list", why: error.to_string() })?,
    };
    // The provider caches tools, then system, then messages: a mark behind the system prompt covers the tools.
    let head_mark = !system.is_empty() || !tools.is_empty();
    let marked: BTreeSet<usize> =
        request.cache.after.iter().rev().take(MARKS - usize::from(head_mark)).copied().collect();
    let turns: Vec<Pieces<'_>> = request.view.turns().iter().map(|turn| pieces_of_turn(turn, env, blobs)).collect();

    let (mut out, mut layout) = (Vec::with_capacity(16 * 1024), Layout::default());
    let mut body = JsonObject::begin(&mut out);
    body.field("model", &env.model.id).field("max_tokens", &env.params.max_tokens).field("stream", &true);
    if !system.is_empty() {
        body.with("system", |out| {
            list(out, [&system], |out, text| {
                write_text(out, text, true);
                layout.marks.push(out.len());
            });
        });
    }
    if !tools.is_empty() {
        body.with("tools", |out| {
            list(out, tools.iter().enumerate(), |out, (index, tool)| {
                let mark = system.is_empty() && index + 1 == tools.len();
                let mut object = JsonObject::begin(out);
                object
                    .field("name", &tool.name)
                    .field("description", &tool.description)
                    .field("input_schema", &tool.input);
                end(object, mark);
                if mark {
                    layout.marks.push(out.len());
                }
            });
        });
    }
    if let Some(budget) = budget(env).filter(|_| may_think(&turns)) {
        body.with("thinking", |out| {
            JsonObject::begin(out).field("type", "enabled").field("budget_tokens", &budget).end();
        });
    }
    body.with("messages", |out| {
        list(out, &turns, |out, (role, messages)| {
            let mut object = JsonObject::begin(out);
            object.field("role", role).with("content", |out| write_turn(out, messages, &marked, &mut layout));
            object.end();
        });
    });
    body.end();
    Ok(Rendered { body: out.into(), layout })
}

/// One block of the wire.
enum Piece<'a> {
    Text(Cow<'a, str>),
    Thinking { thinking: &'a str, signature: &'a str },
    Redacted(&'a str),
    Image { mime: &'a str, base64: Cow<'a, str> },
    Call { id: &'a str, name: &'a str, input: Cow<'a, str> },
    Result { call: &'a str, content: Vec<Piece<'a>>, is_error: bool },
}

/// A turn: its role, and what each of its messages becomes.
type Pieces<'a> = (&'static str, Vec<(usize, Vec<Piece<'a>>)>);

/// A turn's role and pieces, by message. Results stand first in a turn of people and tools: the checker lets them stand
/// nowhere but right behind their calls. A turn is never without content.
fn pieces_of_turn<'a>(turn: &Turn<'a>, env: &RequestEnv, blobs: &dyn Blobs) -> Pieces<'a> {
    let (role, messages) = match turn {
        Turn::User(messages) => ("user", messages),
        Turn::Assistant(messages) => ("assistant", messages),
    };
    let mut pieces: Vec<(usize, Vec<Piece<'a>>)> =
        messages.iter().map(|(index, message)| (*index, pieces(message, env, blobs))).collect();
    if pieces.iter().all(|(_, pieces)| pieces.is_empty())
        && let Some((_, first)) = pieces.first_mut()
    {
        first.push(Piece::Text("(no text)".into()));
    }
    (role, pieces)
}

fn pieces<'a>(message: &'a Msg, env: &RequestEnv, blobs: &dyn Blobs) -> Vec<Piece<'a>> {
    match &message.said {
        Said::User(blocks) => shown(blocks, blobs),
        Said::Result { call, content, is_error, .. } => {
            vec![Piece::Result { call, content: shown(content, blobs), is_error: *is_error }]
        }
        Said::Assistant { blocks, model } => {
            // Signatures are the provider's; another one refuses them.
            let own = model.provider == env.model.provider && model.api == env.model.api;
            blocks.iter().filter_map(|block| said_by_model(block, own)).collect()
        }
    }
}

/// Texts and pictures.
fn shown<'a>(blocks: &'a [Block], blobs: &dyn Blobs) -> Vec<Piece<'a>> {
    blocks
        .iter()
        .filter_map(|block| match block {
            Block::Text { text, .. } => some_text(text),
            Block::Image { data, mime, .. } => Some(picture(data, mime, blobs)),
            _ => None,
        })
        .collect()
}

fn said_by_model(block: &Block, own: bool) -> Option<Piece<'_>> {
    match block {
        Block::Text { text, .. } => some_text(text),
        Block::Thinking { thinking, signature: Some(signature), .. } if own => {
            Some(Piece::Thinking { thinking, signature })
        }
        // Data that was too long to be stored is empty; the API refuses that.
        Block::RedactedThinking { data, .. } if own && !data.is_empty() => Some(Piece::Redacted(data)),
        Block::ToolCall { id, name, arguments, .. } => {
            // Half a surrogate pair, as a cut emoji leaves it, would make the whole body unreadable for ever.
            let input = match replace_lone_surrogates(arguments.get()) {
                Some(mended) => Cow::Owned(mended),
                None => Cow::Borrowed(arguments.get()),
            };
            let input = if input.trim_start().starts_with('{') { input } else { Cow::Borrowed("{}") };
            Some(Piece::Call { id, name, input })
        }
        _ => None,
    }
}

/// The API refuses texts without a visible character.
fn some_text(text: &str) -> Option<Piece<'_>> {
    (!text.trim().is_empty()).then_some(Piece::Text(Cow::Borrowed(text)))
}

/// A picture, or a sentence in its place. The sentence names the blob and no more: why it is missing differs from machine
/// to machine, and the bytes of a request must not.
fn picture<'a>(data: &'a ImageData, mime: &'a str, blobs: &dyn Blobs) -> Piece<'a> {
    if !matches!(mime, "image/png" | "image/jpeg" | "image/gif" | "image/webp") {
        return Piece::Text(format!("(an image of type {mime} stood here, which this model cannot read)").into());
    }
    match data {
        ImageData::Inline(base64) => Piece::Image { mime, base64: Cow::Borrowed(base64) },
        ImageData::Blob(blob) => match blobs.get(blob) {
            Ok(bytes) => Piece::Image { mime, base64: base64::engine::general_purpose::STANDARD.encode(bytes).into() },
            Err(_) => Piece::Text(format!("(an image stood here, but {blob} is missing)").into()),
        },
    }
}

/// The content of one turn, with the place of each message in it.
fn write_turn(out: &mut Vec<u8>, messages: &[(usize, Vec<Piece<'_>>)], marked: &BTreeSet<usize>, layout: &mut Layout) {
    out.push(b'[');
    let mut first = true;
    for (message, pieces) in messages {
        // Thinking takes no mark.
        let markable = |piece: &Piece<'_>| !matches!(piece, Piece::Thinking { .. } | Piece::Redacted(_));
        let mark = pieces.iter().rposition(markable).filter(|_| marked.contains(message));
        let mut start = None;
        for (index, piece) in pieces.iter().enumerate() {
            if !std::mem::take(&mut first) {
                out.push(b',');
            }
            start.get_or_insert(out.len());
            piece.write(out, mark == Some(index));
            if mark == Some(index) {
                layout.marks.push(out.len());
            }
        }
        if let Some(start) = start {
            layout.blocks.push(BlockAt { message: *message, start, end: out.len() });
        }
    }
    out.push(b']');
}

impl Piece<'_> {
    fn write(&self, out: &mut Vec<u8>, mark: bool) {
        match self {
            Self::Text(text) => write_text(out, text, mark),
            Self::Thinking { thinking, signature } => {
                JsonObject::begin(out)
                    .field("type", "thinking")
                    .field("thinking", thinking)
                    .field("signature", signature)
                    .end();
            }
            Self::Redacted(data) => JsonObject::begin(out).field("type", "redacted_thinking").field("data", data).end(),
            Self::Image { mime, base64 } => {
                let mut object = JsonObject::begin(out);
                object.field("type", "image").with("source", |out| {
                    JsonObject::begin(out)
                        .field("type", "base64")
                        .field("media_type", mime)
                        .field("data", base64)
                        .end();
                });
                end(object, mark);
            }
            Self::Call { id, name, input } => {
                let mut object = JsonObject::begin(out);
                object.field("type", "tool_use").field("id", id).field("name", name);
                object.with("input", |out| out.extend_from_slice(input.as_bytes()));
                end(object, mark);
            }
            Self::Result { call, content, is_error } => {
                let mut object = JsonObject::begin(out);
                object.field("type", "tool_result").field("tool_use_id", call);
                if !content.is_empty() {
                    object.with("content", |out| list(out, content, |out, piece| piece.write(out, false)));
                }
                if *is_error {
                    object.field("is_error", &true);
                }
                end(object, mark);
            }
        }
    }
}

fn write_text(out: &mut Vec<u8>, text: &str, mark: bool) {
    let mut object = JsonObject::begin(out);
    object.field("type", "text").field("text", text);
    end(object, mark);
}

/// Closes a block, with a cache mark where asked.
fn end(mut object: JsonObject<'_>, mark: bool) {
    if mark {
        object.with("cache_control", |out| JsonObject::begin(out).field("type", "ephemeral").end());
    }
    object.end();
}

fn list<T>(out: &mut Vec<u8>, items: impl IntoIterator<Item = T>, mut write: impl FnMut(&mut Vec<u8>, T)) {
    out.push(b'[');
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write(out, item);
    }
    out.push(b']');
}

/// How many tokens the model may think; `None` = not at all.
///
/// The API wants at least 1,024 and less than `max_tokens`, and advises against more than 32,000 outside batches
/// (<https://docs.anthropic.com/en/docs/build-with-claude/extended-thinking>); the steps between are ours. A quarter of
/// `max_tokens` always stays for the answer.
fn budget(env: &RequestEnv) -> Option<u32> {
    let wish = match env.thinking {
        Thinking::Off => return None,
        Thinking::Minimal => 1_024,
        Thinking::Low => 4_096,
        Thinking::Medium => 10_240,
        Thinking::High => 20_480,
        Thinking::Xhigh => 32_000,
    };
    let room = env.params.max_tokens - env.params.max_tokens / 4;
    Some(wish.min(room)).filter(|budget| *budget >= 1_024)
}

/// Whether thinking may be asked for. The API refuses it in the middle of a tool loop that began without (thinking was
/// switched on, or another provider's model began): from the last prompt on some answer must have its thinking.
fn may_think(turns: &[Pieces<'_>]) -> bool {
    let results = |pieces: &[Piece<'_>]| pieces.iter().any(|piece| matches!(piece, Piece::Result { .. }));
    let prompt = turns
        .iter()
        .rposition(|(role, messages)| *role == "user" && !messages.iter().any(|(_, pieces)| results(pieces)));
    let since = &turns[prompt.map_or(0, |at| at + 1)..];
    let mut answers = since.iter().filter(|(role, _)| *role == "assistant").peekable();
    answers.peek().is_none()
        || answers.any(|(_, messages)| {
            let first = messages.iter().find_map(|(_, pieces)| pieces.first());
            matches!(first, Some(Piece::Thinking { .. } | Piece::Redacted(_)))
        })
}

fn text_blob(blobs: &dyn Blobs, blob: &BlobRef, part: &'static str) -> Result<String, Unsupported> {
    let bytes = blobs.get(blob).map_err(|missing| Unsupported::Lost { part, why: missing.to_string() })?;
    match std::str::from_utf8(&bytes) {
        Ok(text) => Ok(text.to_owned()),
        Err(error) => Err(Unsupported::Unreadable { part, why: error.to_string() }),
    }
}
