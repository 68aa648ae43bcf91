//! A request as the body of `POST /v1/responses`. The order of keys is the order of the code.

use crate::family::{effort, reasons, tier};
use crate::items::{self, Items};
use crate::parts::{Head, Shown, arguments, list, shown, some_text};
use crate::{Rendered, Unsupported};
use gjc_context::{BlockAt, Msg, Request, Said, Turn};
use gjc_entry::{Blobs, Block, JsonObject, RequestEnv};
use serde::Deserialize;
use serde_json::value::RawValue;

/// What stands before the text of a result that is a failure: the wire has no field for that.
const FAILED: &str = "(failed) ";

/// Renders a request: model, max_output_tokens, stream, store, include, reasoning, service_tier, instructions, tools, input.
///
/// - A limit of 0 tokens is left to the server.
/// - Thinking that the asked model itself signed goes back as its reasoning item, without the item's id: the server kept none. Any
///   other thinking stays away. Encrypted thinking is asked for where a model thinks; others refuse the wish.
/// - Messages of people in a row are one item. A result with pictures is a list of parts, one without is a string. A result that
///   is a failure begins with `(failed) `.
///
/// # Errors
/// [`Unsupported`] when the system prompt or the tools are lost or cannot be read.
pub fn render(request: &Request, blobs: &dyn Blobs) -> Result<Rendered, Unsupported> {
    let env = &request.env;
    let Head { system, tools } = Head::read(env, blobs)?;
    let effort = effort(&env.model.id, env.thinking);
    let mut items = Items::default();
    let mut body = JsonObject::begin(&mut items.out);
    body.field("model", &env.model.id);
    if env.params.max_tokens > 0 {
        body.field("max_output_tokens", &env.params.max_tokens);
    }
    body.field("stream", &true).field("store", &false);
    if effort.is_some() || reasons(&env.model.id) {
        body.field("include", &["reasoning.encrypted_content"]);
    }
    if let Some(effort) = effort {
        body.with("reasoning", |out| {
            JsonObject::begin(out).field("effort", effort).field("summary", "auto").end();
        });
    }
    if let Some(tier) = tier(env.tier) {
        body.field("service_tier", tier);
    }
    if !system.is_empty() {
        body.field("instructions", &system);
    }
    if !tools.is_empty() {
        body.with("tools", |out| {
            list(out, &tools, |out, tool| {
                JsonObject::begin(out)
                    .field("type", "function")
                    .field("name", &tool.name)
                    .field("description", &tool.description)
                    .field("parameters", &tool.input)
                    .field("strict", &false)
                    .end();
            });
        });
    }
    items.out.extend_from_slice(br#","input":["#);
    for turn in request.view.turns() {
        match turn {
            Turn::User(messages) => user(&mut items, &messages, blobs),
            Turn::Assistant(messages) => assistant(&mut items, &messages, env),
        }
    }
    items.out.extend_from_slice(b"]}");
    Ok(Rendered { body: items.out.into(), layout: items.layout })
}

/// Results, each an item; then all that people say, in one.
fn user(items: &mut Items, messages: &[(usize, &Msg)], blobs: &dyn Blobs) {
    let mut said: Vec<(usize, Vec<Shown<'_>>)> = Vec::new();
    let mut results = false;
    for (index, message) in messages {
        match &message.said {
            Said::Result { call, content, is_error, .. } => {
                results = true;
                let shown = shown(content, blobs);
                let at = items.item(|out| write_result(out, call, &shown, *is_error));
                items.place(*index, at);
            }
            Said::User(blocks) => said.push((*index, shown(blocks, blobs))),
            Said::Assistant { .. } => {}
        }
    }
    let Some(said) = items::said(said, messages, results) else { return };
    let mut places = Vec::new();
    items.item(|out| {
        JsonObject::begin(out)
            .field("type", "message")
            .field("role", "user")
            .with("content", |out| {
                out.push(b'[');
                for (index, (message, shown)) in said.iter().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    let start = out.len();
                    write_parts(out, shown);
                    places.push(BlockAt { message: *message, start, end: out.len() });
                }
                out.push(b']');
            })
            .end();
    });
    items.layout.blocks.extend(places);
}

/// Answers: each of their blocks is an item.
fn assistant(items: &mut Items, messages: &[(usize, &Msg)], env: &RequestEnv) {
    let mut written = false;
    for (index, message) in messages {
        let Said::Assistant { blocks, model } = &message.said else { continue };
        let mut place = None;
        // Thinking before nothing is refused; the projection ends no answer with it, but a text of blanks is left out here.
        let mut thoughts: Vec<Reasoning<'_>> = Vec::new();
        for block in blocks {
            match block {
                // Signatures are the model's own; another one refuses them.
                Block::Thinking { signature: Some(signature), .. } if *model == env.model => {
                    thoughts.extend(Reasoning::read(signature));
                }
                Block::Text { text, .. } if some_text(text).is_some() => {
                    for thought in thoughts.drain(..) {
                        widen(&mut place, items.item(|out| thought.write(out)));
                    }
                    widen(&mut place, items.item(|out| write_words(out, text)));
                }
                Block::ToolCall { id, name, arguments, .. } => {
                    for thought in thoughts.drain(..) {
                        widen(&mut place, items.item(|out| thought.write(out)));
                    }
                    widen(&mut place, items.item(|out| write_call(out, id, name, arguments)));
                }
                _ => {}
            }
        }
        if let Some(at) = place {
            items.place(*index, at);
            written = true;
        }
    }
    if let (false, Some((index, _))) = (written, messages.first()) {
        let at = items.item(|out| write_words(out, "(no text)"));
        items.place(*index, at);
    }
}

/// Items of one message stand side by side.
fn widen(place: &mut Option<(usize, usize)>, (start, end): (usize, usize)) {
    *place = Some((place.map_or(start, |(first, _)| first), end));
}

/// A reasoning item as it goes back.
#[derive(Deserialize)]
struct Reasoning<'a> {
    #[serde(borrow, rename = "type")]
    kind: std::borrow::Cow<'a, str>,
    #[serde(borrow)]
    summary: Option<Vec<&'a RawValue>>,
    encrypted_content: Option<String>,
}

impl<'a> Reasoning<'a> {
    /// From a signature: the item as JSON, as the family stores it. An item that is not encrypted says nothing to a server that
    /// keeps none.
    fn read(signature: &'a str) -> Option<Self> {
        let item: Self = serde_json::from_str(signature).ok()?;
        let closed = item.encrypted_content.as_ref().is_some_and(|data| !data.is_empty());
        (item.kind == "reasoning" && closed && item.summary.iter().flatten().all(|part| is_sound(part))).then_some(item)
    }

    fn write(&self, out: &mut Vec<u8>) {
        JsonObject::begin(out)
            .field("type", "reasoning")
            .field("summary", self.summary.as_deref().unwrap_or_default())
            .field("encrypted_content", &self.encrypted_content)
            .end();
    }
}

/// A signature comes from a file that other programs write too: half a surrogate pair in it would make the body unreadable.
fn is_sound(part: &RawValue) -> bool {
    serde_json::from_str::<serde_json::Value>(part.get()).is_ok()
}

fn write_words(out: &mut Vec<u8>, text: &str) {
    JsonObject::begin(out)
        .field("type", "message")
        .field("role", "assistant")
        .with("content", |out| {
            list(out, [text], |out, text| {
                JsonObject::begin(out).field("type", "output_text").field("text", text).end()
            });
        })
        .end();
}

fn write_call(out: &mut Vec<u8>, id: &str, name: &str, raw: &RawValue) {
    JsonObject::begin(out)
        .field("type", "function_call")
        .field("call_id", id)
        .field("name", name)
        .field("arguments", &arguments(raw))
        .end();
}

fn write_result(out: &mut Vec<u8>, call: &str, shown: &[Shown<'_>], is_error: bool) {
    let mut object = JsonObject::begin(out);
    object.field("type", "function_call_output").field("call_id", call);
    let failed = if is_error { FAILED } else { "" };
    if shown.iter().any(|shown| matches!(shown, Shown::Image { .. })) {
        object.with("output", |out| {
            out.push(b'[');
            if is_error {
                write_parts(out, &[Shown::Text(FAILED.trim_end().into())]);
                out.push(b',');
            }
            write_parts(out, shown);
            out.push(b']');
        });
    } else {
        let texts: Vec<&str> =
            shown.iter().filter_map(|shown| if let Shown::Text(text) = shown { Some(&**text) } else { None }).collect();
        let text = if texts.is_empty() { "(no output)".into() } else { texts.join("\n\n") };
        object.field("output", &format!("{failed}{text}"));
    }
    object.end();
}

/// Parts of a message, without the brackets of their list.
fn write_parts(out: &mut Vec<u8>, shown: &[Shown<'_>]) {
    for (index, shown) in shown.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        match shown {
            Shown::Text(text) => JsonObject::begin(out).field("type", "input_text").field("text", text).end(),
            Shown::Image { mime, base64 } => JsonObject::begin(out)
                .field("type", "input_image")
                .field("image_url", &format!("data:{mime};base64,{base64}"))
                .end(),
        }
    }
}
