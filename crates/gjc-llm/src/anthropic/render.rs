//! A request as the body of `POST /v1/messages`. The order of keys is the order of the code.

use crate::parts::{Head, Shown, arguments, list, shown, some_text};
use crate::{Rendered, Unsupported};
use gjc_context::{BlockAt, Layout, Msg, Request, Said, Turn};
use gjc_entry::{Blobs, Block, JsonObject, RequestEnv, Thinking, Tier};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// The most `cache_control` marks that the API takes in one request.
const MARKS: usize = 4;

/// Renders a request: model, max_tokens, stream, system, tools, thinking, service_tier, messages.
///
/// What the API refuses is left out the same way each time: blank texts, thinking without a signature or of another
/// provider, pictures that are lost or of a type that it does not read (a sentence stands in their place).
///
/// # Errors
/// [`Unsupported`] when the system prompt or the tools are lost or cannot be read.
pub fn render(request: &Request, blobs: &dyn Blobs) -> Result<Rendered, Unsupported> {
    let env = &request.env;
    let Head { system, tools } = Head::read(env, blobs)?;
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
    if let Some(tier) = tier(env.tier) {
        body.field("service_tier", tier);
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

/// The word for a tier; `None` asks for nothing. The API knows its standard tier, and the one with capacity that was bought, which
/// `auto` uses as long as there is some (<https://platform.claude.com/docs/en/api/service-tiers>).
fn tier(tier: Tier) -> Option<&'static str> {
    match tier {
        Tier::Default => Some("standard_only"),
        Tier::Priority | Tier::Scale => Some("auto"),
        Tier::Auto | Tier::Flex => None,
    }
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
        Said::User(blocks) => pieces_shown(blocks, blobs),
        Said::Result { call, content, is_error, .. } => {
            vec![Piece::Result { call, content: pieces_shown(content, blobs), is_error: *is_error }]
        }
        Said::Assistant { blocks, model } => {
            // Signatures are the provider's; another one refuses them.
            let own = model.provider == env.model.provider && model.api == env.model.api;
            blocks.iter().filter_map(|block| said_by_model(block, own)).collect()
        }
    }
}

fn said_by_model(block: &Block, own: bool) -> Option<Piece<'_>> {
    match block {
        Block::Text { text, .. } => some_text(text).map(|text| Piece::Text(Cow::Borrowed(text))),
        Block::Thinking { thinking, signature: Some(signature), .. } if own => {
            Some(Piece::Thinking { thinking, signature })
        }
        // Data that was too long to be stored is empty; the API refuses that.
        Block::RedactedThinking { data, .. } if own && !data.is_empty() => Some(Piece::Redacted(data)),
        Block::ToolCall { id, name, arguments: raw, .. } => Some(Piece::Call { id, name, input: arguments(raw) }),
        _ => None,
    }
}

impl<'a> From<Shown<'a>> for Piece<'a> {
    fn from(shown: Shown<'a>) -> Self {
        match shown {
            Shown::Text(text) => Self::Text(text),
            Shown::Image { mime, base64 } => Self::Image { mime, base64 },
        }
    }
}

fn pieces_shown<'a>(blocks: &'a [Block], blobs: &dyn Blobs) -> Vec<Piece<'a>> {
    shown(blocks, blobs).into_iter().map(Into::into).collect()
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
