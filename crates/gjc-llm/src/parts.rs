//! What the wires read of a request in the same way: its head, and what of its blocks a model can be shown.

use crate::Unsupported;
use base64::Engine;
use gjc_context::ToolDef;
use gjc_entry::fields::replace_lone_surrogates;
use gjc_entry::message::ImageData;
use gjc_entry::{BlobRef, Blobs, Block, RequestEnv};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// What stands before the conversation.
pub(crate) struct Head {
    /// The system prompt; empty for none.
    pub(crate) system: String,
    /// The tools, in their order.
    pub(crate) tools: Vec<ToolDef>,
}

impl Head {
    /// From the blobs that the settings name.
    pub(crate) fn read(env: &RequestEnv, blobs: &dyn Blobs) -> Result<Self, Unsupported> {
        let system = text_blob(blobs, &env.system, "system prompt")?;
        let tools = match text_blob(blobs, &env.tools, "tool list")? {
            text if text.trim().is_empty() => Vec::new(),
            text => serde_json::from_str(&text)
                .map_err(|error| Unsupported::Unreadable { part: "tool list", why: error.to_string() })?,
        };
        Ok(Self { system, tools })
    }
}

/// What a person or a tool shows to a model.
pub(crate) enum Shown<'a> {
    /// Words, or a sentence in the place of a picture.
    Text(Cow<'a, str>),
    /// A picture.
    Image {
        /// As in `image/png`.
        mime: &'a str,
        /// Its bytes.
        base64: Cow<'a, str>,
    },
}

/// Texts and pictures.
pub(crate) fn shown<'a>(blocks: &'a [Block], blobs: &dyn Blobs) -> Vec<Shown<'a>> {
    blocks
        .iter()
        .filter_map(|block| match block {
            Block::Text { text, .. } => some_text(text).map(|text| Shown::Text(Cow::Borrowed(text))),
            Block::Image { data, mime, .. } => Some(picture(data, mime, blobs)),
            _ => None,
        })
        .collect()
}

/// Providers refuse texts without a visible character.
pub(crate) fn some_text(text: &str) -> Option<&str> {
    (!text.trim().is_empty()).then_some(text)
}

/// A picture, or a sentence in its place. The sentence names the blob and no more: why it is missing differs from machine
/// to machine, and the bytes of a request must not.
fn picture<'a>(data: &'a ImageData, mime: &'a str, blobs: &dyn Blobs) -> Shown<'a> {
    if !matches!(mime, "image/png" | "image/jpeg" | "image/gif" | "image/webp") {
        return Shown::Text(format!("(an image of type {mime} stood here, which this model cannot read)").into());
    }
    match data {
        ImageData::Inline(base64) => Shown::Image { mime, base64: Cow::Borrowed(base64) },
        ImageData::Blob(blob) => match blobs.get(blob) {
            Ok(bytes) => Shown::Image { mime, base64: base64::engine::general_purpose::STANDARD.encode(bytes).into() },
            Err(_) => Shown::Text(format!("(an image stood here, but {blob} is missing)").into()),
        },
    }
}

/// The arguments of a call as an object. Half a surrogate pair, as a cut emoji leaves it, would make the whole body
/// unreadable for ever.
pub(crate) fn arguments(raw: &RawValue) -> Cow<'_, str> {
    let input = match replace_lone_surrogates(raw.get()) {
        Some(mended) => Cow::Owned(mended),
        None => Cow::Borrowed(raw.get()),
    };
    if input.trim_start().starts_with('{') { input } else { Cow::Borrowed("{}") }
}

/// A JSON array.
pub(crate) fn list<T>(out: &mut Vec<u8>, items: impl IntoIterator<Item = T>, mut write: impl FnMut(&mut Vec<u8>, T)) {
    out.push(b'[');
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write(out, item);
    }
    out.push(b']');
}

fn text_blob(blobs: &dyn Blobs, blob: &BlobRef, part: &'static str) -> Result<String, Unsupported> {
    let bytes = blobs.get(blob).map_err(|missing| Unsupported::Lost { part, why: missing.to_string() })?;
    match std::str::from_utf8(&bytes) {
        Ok(text) => Ok(text.to_owned()),
        Err(error) => Err(Unsupported::Unreadable { part, why: error.to_string() }),
    }
}
