//! Records what a model says as a script that [`crate::scripted`] plays.

use crate::event::INCOMPLETE;
use crate::{Assembler, End, Provider, ProviderError, Rendered, StreamEvent, Unsupported};
use futures_util::stream::{self, BoxStream, StreamExt};
use gjc_context::{Checked, Request};
use gjc_entry::message::Usage;
use gjc_entry::{Blobs, Block, JsonObject, ModelRef, StopReason};
use serde_json::value::RawValue;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Takes lines of a script, without their line feeds.
pub type Lines = Arc<dyn Fn(&str) + Send + Sync>;

/// Changes a text so that no secret is left in it.
pub type Mask = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// A model whose answers are written down. Everything else is that of the model behind it.
///
/// Each request becomes one line: what was said, how it ended, what it took, how it failed. What the format has no place for
/// is left out: signatures, closed thinking, calls whose arguments broke off, the ids that the provider gave.
pub struct Recording {
    inner: Arc<dyn Provider>,
    lines: Lines,
    mask: Mask,
}

impl Recording {
    /// Gives a line to `lines` at the end of each answer, whatever ended it. `mask` sees every text before it is written.
    #[must_use]
    pub fn new(inner: Arc<dyn Provider>, lines: Lines, mask: Mask) -> Self {
        Self { inner, lines, mask }
    }
}

impl Provider for Recording {
    fn render(&self, request: &Checked<Request>, blobs: &dyn Blobs) -> Result<Rendered, Unsupported> {
        self.inner.render(request, blobs)
    }

    fn stream(
        &self,
        request: Rendered,
        cancel: CancellationToken,
    ) -> BoxStream<'static, Result<StreamEvent, ProviderError>> {
        let heard = Heard {
            lines: Arc::clone(&self.lines),
            mask: Arc::clone(&self.mask),
            said: Some(Assembler::new(ModelRef { provider: String::new(), id: String::new(), api: String::new() })),
            error: None,
            stopped: false,
        };
        let inner = self.inner.stream(request, cancel);
        stream::unfold((inner, heard), |(mut inner, mut heard)| async move {
            let event = inner.next().await?;
            heard.hear(&event);
            Some((event, (inner, heard)))
        })
        .boxed()
    }

    fn api(&self) -> &'static str {
        self.inner.api()
    }

    fn largest(&self) -> Option<usize> {
        self.inner.largest()
    }

    fn renderer(&self) -> u16 {
        self.inner.renderer()
    }
}

/// An answer as far as it has come. It is written when it goes: an abort drops the stream in the middle.
struct Heard {
    lines: Lines,
    mask: Mask,
    said: Option<Assembler>,
    error: Option<ProviderError>,
    stopped: bool,
}

impl Heard {
    fn hear(&mut self, event: &Result<StreamEvent, ProviderError>) {
        match event {
            Ok(event) => {
                self.stopped |= matches!(event, StreamEvent::Stop(_));
                if let Some(said) = &mut self.said {
                    said.push(event.clone());
                }
            }
            Err(error) => self.error = Some(error.clone()),
        }
    }
}

impl Drop for Heard {
    fn drop(&mut self) {
        let Some(said) = self.said.take() else { return };
        let end = if self.stopped || self.error.is_some() { End::Complete } else { End::Aborted };
        let said = said.finish(end, 0);
        let mask = |text: &str| (self.mask)(text);
        let blocks: Vec<Vec<u8>> = said.content.iter().filter_map(|block| line_of(block, &mask)).collect();
        // An abort before anything came is no line: playing it would be an answer.
        if blocks.is_empty() && self.error.is_none() && !self.stopped {
            return;
        }
        let mut out = Vec::new();
        let mut line = JsonObject::begin(&mut out);
        // A failure that came before anything was shown is one, with content it is an answer that broke off.
        if self.error.is_none() || !blocks.is_empty() {
            line.with("content", |out| crate::parts::list(out, &blocks, |out, block| out.extend_from_slice(block)));
        }
        match &self.error {
            Some(error) => {
                line.with("error", |out| failure(error, &mask, out));
            }
            None => {
                line.field("stopReason", word(&said.stop));
            }
        }
        if said.usage != Usage::default() {
            line.field("usage", &said.usage);
        }
        line.end();
        (self.lines)(&String::from_utf8_lossy(&out));
    }
}

/// The script's words; a reason that it does not know is an end like any other.
fn word(stop: &StopReason) -> &'static str {
    match stop {
        StopReason::Length => "length",
        StopReason::ToolUse => "toolUse",
        StopReason::Error => "error",
        StopReason::Aborted => "aborted",
        _ => "stop",
    }
}

fn line_of(block: &Block, mask: &impl Fn(&str) -> String) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut object = JsonObject::begin(&mut out);
    match block {
        Block::Text { text, .. } => object.field("type", "text").field("text", &mask(text)),
        Block::Thinking { thinking, .. } if !thinking.is_empty() => {
            object.field("type", "thinking").field("thinking", &mask(thinking))
        }
        Block::ToolCall { name, arguments, extra, .. } if extra.iter().all(|(name, _)| &**name != INCOMPLETE) => {
            let masked = RawValue::from_string(mask(arguments.get())).ok();
            let arguments = masked.filter(|json| json.get().trim_start().starts_with('{'))?;
            object.field("type", "toolCall").field("name", &mask(name)).field("arguments", &arguments)
        }
        _ => return None,
    };
    object.end();
    Some(out)
}

/// A status and a body that mean this failure to [`crate::classify`].
fn failure(error: &ProviderError, mask: &impl Fn(&str) -> String, out: &mut Vec<u8>) {
    let (status, why, code): (u16, _, _) = match error {
        ProviderError::Retry { why, .. } | ProviderError::Cut { why, .. } => (503, why, None),
        ProviderError::Overflow(why) => (400, why, Some("context_length_exceeded")),
        ProviderError::TooLarge(why) => (413, why, None),
        ProviderError::Auth(why) => (401, why, None),
        ProviderError::Quota { why, .. } => (402, why, None),
        ProviderError::BadRequest(why) => (404, why, None),
    };
    let resets = match error {
        ProviderError::Quota { after, .. } => after.map(|after| after.as_secs_f64()),
        _ => None,
    };
    let body = |out: &mut Vec<u8>| {
        JsonObject::begin(out)
            .with("error", |out| {
                JsonObject::begin(out)
                    .field("message", &mask(why))
                    .some("code", &code)
                    .some("resets_in_seconds", &resets)
                    .end();
            })
            .end();
    };
    JsonObject::begin(out).field("status", &status).with("body", body).end();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classify;
    use serde_json::Value;
    use std::time::Duration;

    #[test]
    fn a_failure_that_was_recorded_means_the_same() {
        let why = || "왜 (\"이유\")".to_owned();
        for error in [
            ProviderError::Retry { after: None, why: why() },
            ProviderError::Overflow(why()),
            ProviderError::TooLarge(why()),
            ProviderError::Auth(why()),
            ProviderError::Quota { after: None, why: why() },
            ProviderError::Quota { after: Some(Duration::from_millis(1_500)), why: why() },
            ProviderError::BadRequest(why()),
        ] {
            let mut json = Vec::new();
            failure(&error, &|text| text.to_owned(), &mut json);
            let json: Value = serde_json::from_slice(&json).unwrap();
            let status = u16::try_from(json["status"].as_u64().unwrap()).unwrap();
            assert_eq!(classify(status, None, json["body"].to_string().as_bytes()), error);
        }
        let mut json = Vec::new();
        failure(&ProviderError::Quota { after: None, why: why() }, &|_| "[secret]".into(), &mut json);
        assert_eq!(String::from_utf8(json).unwrap(), r#"{"status":402,"body":{"error":{"message":"[secret]"}}}"#);
    }
}
