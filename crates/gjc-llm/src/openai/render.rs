//! A request as the body of `POST /v1/chat/completions`. The order of keys is the order of the code.

use crate::family::{effort, reasons, tier};
use crate::items::{self, Items};
use crate::parts::{Head, Shown, arguments, list, shown, some_text};
use crate::{Rendered, Unsupported};
use gjc_context::{BlockAt, Msg, Request, Said, Turn};
use gjc_entry::{Blobs, Block, JsonObject, RequestEnv};
use serde_json::value::RawValue;

/// What stands before the text of a result that is a failure: the wire has no field for that.
const FAILED: &str = "(failed) ";

/// Renders a request: model, max_tokens, stream, stream_options, reasoning_effort, service_tier, tools, messages.
///
/// - A limit of 0 tokens is left to the server. OpenAI's thinking models get it as `max_completion_tokens`, all others as
///   `max_tokens`: servers know one of the two.
/// - Words are one string where there is no picture, and messages of people in a row are one message: templates of local models
///   take nothing else.
/// - A result takes no picture in this wire. Its pictures follow the results in a message of the user's that names the call;
///   in the layout such a result has two places. A result that is a failure begins with `(failed) `.
/// - Thinking is not sent back, unless its provider signed it (`reasoning_details`); nor is a call's own signature
///   (`extra_content`) sent to any model but the one that made it.
///
/// # Errors
/// [`Unsupported`] when the system prompt or the tools are lost or cannot be read.
pub fn render(request: &Request, blobs: &dyn Blobs) -> Result<Rendered, Unsupported> {
    let env = &request.env;
    let Head { system, tools } = Head::read(env, blobs)?;
    let mut items = Items::default();
    let mut body = JsonObject::begin(&mut items.out);
    body.field("model", &env.model.id);
    if env.params.max_tokens > 0 {
        let name = if reasons(&env.model.id) { "max_completion_tokens" } else { "max_tokens" };
        body.field(name, &env.params.max_tokens);
    }
    body.field("stream", &true);
    body.with("stream_options", |out| JsonObject::begin(out).field("include_usage", &true).end());
    if let Some(effort) = effort(&env.model.id, env.thinking) {
        body.field("reasoning_effort", effort);
    }
    if let Some(tier) = tier(env.tier) {
        body.field("service_tier", tier);
    }
    if !tools.is_empty() {
        body.with("tools", |out| {
            list(out, &tools, |out, tool| {
                JsonObject::begin(out)
                    .field("type", "function")
                    .with("function", |out| {
                        JsonObject::begin(out)
                            .field("name", &tool.name)
                            .field("description", &tool.description)
                            .field("parameters", &tool.input)
                            .end();
                    })
                    .end();
            });
        });
    }
    items.out.extend_from_slice(br#","messages":["#);
    if !system.is_empty() {
        items.item(|out| JsonObject::begin(out).field("role", "system").field("content", &system).end());
    }
    for turn in request.view.turns() {
        match turn {
            Turn::User(messages) => user(&mut items, &messages, blobs),
            Turn::Assistant(messages) => assistant(&mut items, &messages, env),
        }
    }
    items.out.extend_from_slice(b"]}");
    Ok(Rendered { body: items.out.into(), layout: items.layout })
}

/// Results, each a message; then all that people and pictures of results say, in one message.
fn user(items: &mut Items, messages: &[(usize, &Msg)], blobs: &dyn Blobs) {
    let mut said: Vec<(usize, Vec<Shown<'_>>)> = Vec::new();
    let mut results = false;
    for (index, message) in messages {
        match &message.said {
            Said::Result { call, content, is_error, .. } => {
                results = true;
                let (words, pictures): (Vec<_>, Vec<_>) =
                    shown(content, blobs).into_iter().partition(|shown| matches!(shown, Shown::Text(_)));
                let at = items.item(|out| write_result(out, call, &words, *is_error, !pictures.is_empty()));
                items.place(*index, at);
                if !pictures.is_empty() {
                    let mut shown = vec![Shown::Text(format!("(the pictures of the result of {call})").into())];
                    shown.extend(pictures);
                    said.push((*index, shown));
                }
            }
            Said::User(blocks) => said.push((*index, shown(blocks, blobs))),
            Said::Assistant { .. } => {}
        }
    }
    let Some(said) = items::said(said, messages, results) else { return };
    let mut places = Vec::new();
    items.item(|out| {
        JsonObject::begin(out).field("role", "user").with("content", |out| places = write_said(out, &said)).end();
    });
    items.layout.blocks.extend(places);
}

/// Answers, each a message.
fn assistant(items: &mut Items, messages: &[(usize, &Msg)], env: &RequestEnv) {
    let mut written = false;
    for (index, message) in messages {
        let Said::Assistant { blocks, model } = &message.said else { continue };
        let answer = Answer::of(blocks, *model == env.model);
        if !answer.is_empty() {
            let at = items.item(|out| answer.write(out));
            items.place(*index, at);
            written = true;
        }
    }
    if let (false, Some((index, _))) = (written, messages.first()) {
        let at = items.item(|out| Answer { words: "(no text)".into(), ..Answer::default() }.write(out));
        items.place(*index, at);
    }
}

fn write_result(out: &mut Vec<u8>, call: &str, words: &[Shown<'_>], is_error: bool, pictures: bool) {
    let texts: Vec<&str> =
        words.iter().filter_map(|word| if let Shown::Text(text) = word { Some(&**text) } else { None }).collect();
    let text = match texts.join("\n\n") {
        text if !text.is_empty() => text,
        _ if pictures => "(the pictures follow)".into(),
        _ => "(no output)".into(),
    };
    let text = if is_error { format!("{FAILED}{text}") } else { text };
    JsonObject::begin(out).field("role", "tool").field("tool_call_id", call).field("content", &text).end();
}

/// What people say: one string where it is words alone, else a list of parts. Gives the place of each message in it.
fn write_said(out: &mut Vec<u8>, said: &[(usize, Vec<Shown<'_>>)]) -> Vec<BlockAt> {
    let words_alone = said.iter().flat_map(|(_, shown)| shown).all(|shown| matches!(shown, Shown::Text(_)));
    let mut places = Vec::new();
    let mut first = true;
    out.push(if words_alone { b'"' } else { b'[' });
    for (message, shown) in said {
        let mut start = None;
        for shown in shown {
            if !std::mem::take(&mut first) {
                out.extend_from_slice(if words_alone { br"\n\n" } else { b"," });
            }
            start.get_or_insert(out.len());
            match shown {
                Shown::Text(text) if words_alone => write_inside(out, text),
                Shown::Text(text) => JsonObject::begin(out).field("type", "text").field("text", text).end(),
                Shown::Image { mime, base64 } => JsonObject::begin(out)
                    .field("type", "image_url")
                    .with("image_url", |out| {
                        JsonObject::begin(out).field("url", &format!("data:{mime};base64,{base64}")).end();
                    })
                    .end(),
            }
        }
        if let Some(start) = start {
            places.push(BlockAt { message: *message, start, end: out.len() });
        }
    }
    out.push(if words_alone { b'"' } else { b']' });
    places
}

/// A text as a part of a JSON string.
fn write_inside(out: &mut Vec<u8>, text: &str) {
    let start = out.len();
    if serde_json::to_writer(&mut *out, text).is_ok() {
        out.pop();
        out.remove(start);
    }
}

/// An answer as the wire says it.
#[derive(Default)]
struct Answer<'a> {
    words: String,
    /// `reasoning_details` as they came.
    signed: Option<&'a str>,
    calls: Vec<Call<'a>>,
}

struct Call<'a> {
    id: &'a str,
    name: &'a str,
    arguments: &'a RawValue,
    /// `extra_content` as it came.
    signed: Option<String>,
}

impl<'a> Answer<'a> {
    /// `own`: the very model said it that is asked now. Signatures are its own; another one refuses them.
    fn of(blocks: &'a [Block], own: bool) -> Self {
        let mut answer = Self::default();
        for block in blocks {
            match block {
                Block::Text { text, .. } => {
                    let Some(text) = some_text(text) else { continue };
                    if !answer.words.is_empty() {
                        answer.words.push_str("\n\n");
                    }
                    answer.words.push_str(text);
                }
                Block::Thinking { signature: Some(signature), .. } if own && answer.signed.is_none() => {
                    answer.signed = Some(signature.as_str()).filter(|text| is_list_of_objects(text));
                }
                Block::ToolCall { id, name, arguments, extra } => {
                    let signature = extra.iter().find(|(name, _)| &**name == crate::event::CALL_SIGNATURE);
                    let signed = signature.filter(|_| own).and_then(|(_, raw)| extra_content(raw));
                    answer.calls.push(Call { id, name, arguments, signed });
                }
                _ => {}
            }
        }
        answer
    }

    /// Thinking alone is no message.
    fn is_empty(&self) -> bool {
        self.words.is_empty() && self.calls.is_empty()
    }

    fn write(&self, out: &mut Vec<u8>) {
        let mut object = JsonObject::begin(out);
        object.field("role", "assistant");
        match self.words.is_empty() {
            true => object.field("content", &()),
            false => object.field("content", &self.words),
        };
        if let Some(signed) = self.signed {
            object.with("reasoning_details", |out| out.extend_from_slice(signed.as_bytes()));
        }
        if !self.calls.is_empty() {
            object.with("tool_calls", |out| list(out, &self.calls, |out, call| call.write(out)));
        }
        object.end();
    }
}

impl Call<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        let mut object = JsonObject::begin(out);
        object.field("id", self.id).field("type", "function").with("function", |out| {
            JsonObject::begin(out).field("name", self.name).field("arguments", &arguments(self.arguments)).end();
        });
        if let Some(signed) = &self.signed {
            object.with("extra_content", |out| out.extend_from_slice(signed.as_bytes()));
        }
        object.end();
    }
}

/// Signatures come from files that other programs write too: what goes into the body as it stands must be what it says to be.
fn is_list_of_objects(json: &str) -> bool {
    serde_json::from_str::<Vec<serde_json::Map<String, serde_json::Value>>>(json).is_ok_and(|list| !list.is_empty())
}

/// A call's signature as the object that it came in. The family stores the bare signature of Google's models too.
fn extra_content(raw: &RawValue) -> Option<String> {
    let signature: String = serde_json::from_str(raw.get()).ok().filter(|text: &String| !text.is_empty())?;
    if signature.starts_with('{') {
        return serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(&signature)
            .is_ok()
            .then_some(signature);
    }
    let mut out = Vec::new();
    JsonObject::begin(&mut out)
        .with("google", |out| JsonObject::begin(out).field("thought_signature", &signature).end())
        .end();
    String::from_utf8(out).ok()
}
