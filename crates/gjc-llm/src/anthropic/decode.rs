//! The events of an answer. Event and delta types that are not known here are left out, as the API asks of its clients.

use crate::classify::{Complaint, failure};
use crate::sse::{self, Decode, MOST_BLOCKS, delta};
use crate::{BlockKind, ProviderError, StreamEvent};
use bytes::Buf;
use futures_util::stream::{BoxStream, Stream};
use gjc_entry::StopReason;
use gjc_entry::message::Usage;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// Reads a body of server-sent events, cut into pieces wherever the network liked.
///
/// The stream ends after [`StreamEvent::Stop`] or after one error; a body that ends before `message_stop` is a
/// [`ProviderError::Cut`]. Needs a tokio runtime with time.
pub fn decode<S, B, E>(body: S) -> BoxStream<'static, Result<StreamEvent, ProviderError>>
where
    S: Stream<Item = Result<B, E>> + Send + Unpin + 'static,
    B: Buf + Send + 'static,
    E: std::error::Error + Send + Sync + 'static,
{
    sse::decode::<Decoder, _, _, _>(body)
}

/// Turns the data of one event after another into ours.
#[derive(Default)]
pub(super) struct Decoder {
    open: BTreeMap<u16, Open>,
    /// How many blocks have begun.
    blocks: usize,
    usage: Usage,
    stop: Option<StopReason>,
    /// Some block has begun.
    content: bool,
    /// Some block was a call.
    calls: bool,
    /// `message_stop` has come.
    whole: bool,
}

/// A block that has not ended.
#[derive(Default)]
struct Open {
    signature: String,
    /// Arguments that came with the beginning of the block; they count only when no piece follows.
    input: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Typed {
    #[serde(rename = "type", default)]
    kind: String,
}

#[derive(Deserialize)]
struct MessageStart {
    message: StartOfMessage,
}

#[derive(Deserialize)]
struct StartOfMessage {
    id: Option<String>,
    usage: Option<WireUsage>,
}

#[derive(Deserialize)]
struct BlockStart {
    index: u16,
    content_block: StartOfBlock,
}

#[derive(Deserialize)]
struct StartOfBlock {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    id: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    data: String,
    text: Option<String>,
    thinking: Option<String>,
    signature: Option<String>,
    input: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct BlockDelta {
    index: u16,
    delta: DeltaOfBlock,
}

#[derive(Deserialize)]
struct DeltaOfBlock {
    #[serde(rename = "type")]
    kind: String,
    text: Option<String>,
    thinking: Option<String>,
    signature: Option<String>,
    partial_json: Option<String>,
}

#[derive(Deserialize)]
struct BlockStop {
    index: u16,
}

#[derive(Deserialize)]
struct MessageDelta {
    delta: Option<DeltaOfMessage>,
    usage: Option<WireUsage>,
}

#[derive(Deserialize)]
struct DeltaOfMessage {
    stop_reason: Option<String>,
}

#[derive(Deserialize)]
struct WireUsage {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct Failure {
    error: FailureOf,
}

#[derive(Deserialize)]
struct FailureOf {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    message: String,
}

impl Decode for Decoder {
    fn feed(&mut self, data: &str) -> Result<Vec<StreamEvent>, ProviderError> {
        // Some compatible servers add it.
        if data.trim() == "[DONE]" {
            return Ok(Vec::new());
        }
        let Typed { kind } = self.read(data)?;
        let mut events = Vec::new();
        match kind.as_str() {
            "message_start" => {
                let MessageStart { message } = self.read(data)?;
                events.push(StreamEvent::Start { response_id: message.id });
                events.extend(message.usage.map(|usage| self.count(usage)));
            }
            "content_block_start" => {
                self.blocks += 1;
                if self.blocks > MOST_BLOCKS {
                    return Err(self.cut("the answer has too many parts".into()));
                }
                self.begin(self.read(data)?, &mut events);
            }
            "content_block_delta" => self.more(self.read(data)?, &mut events),
            "content_block_stop" => {
                let BlockStop { index } = self.read(data)?;
                self.end(index, &mut events);
            }
            "message_delta" => {
                let MessageDelta { delta, usage } = self.read(data)?;
                if let Some(reason) = delta.and_then(|delta| delta.stop_reason) {
                    self.stop = Some(stop_reason(reason));
                }
                events.extend(usage.map(|usage| self.count(usage)));
            }
            "message_stop" => {
                while let Some(index) = self.open.keys().next().copied() {
                    self.end(index, &mut events);
                }
                let usual = if self.calls { StopReason::ToolUse } else { StopReason::Stop };
                events.push(StreamEvent::Stop(self.stop.take().unwrap_or(usual)));
                self.whole = true;
            }
            "error" => {
                let Failure { error } = self.read(data)?;
                return Err(failure(self, &Complaint::new(error.message, error.kind)));
            }
            _ => {}
        }
        Ok(events)
    }

    fn ended(&mut self) -> Option<Vec<StreamEvent>> {
        None
    }

    fn whole(&self) -> bool {
        self.whole
    }

    fn begun(&self) -> bool {
        self.content
    }
}

impl Decoder {
    fn begin(&mut self, BlockStart { index, content_block: block }: BlockStart, events: &mut Vec<StreamEvent>) {
        let (kind, text) = match block.kind.as_str() {
            "text" => (BlockKind::Text, block.text),
            "thinking" => (BlockKind::Thinking, block.thinking),
            "redacted_thinking" => (BlockKind::RedactedThinking { data: block.data }, None),
            "tool_use" => (BlockKind::ToolCall { id: block.id, name: block.name }, None),
            _ => return,
        };
        self.content = true;
        self.calls |= matches!(kind, BlockKind::ToolCall { .. });
        self.open.insert(index, Open { signature: block.signature.unwrap_or_default(), input: block.input });
        events.push(StreamEvent::BlockStart { index, kind });
        events.extend(delta(index, text));
    }

    fn more(&mut self, BlockDelta { index, delta: more }: BlockDelta, events: &mut Vec<StreamEvent>) {
        let Some(open) = self.open.get_mut(&index) else { return };
        match more.kind.as_str() {
            "text_delta" => events.extend(delta(index, more.text)),
            "thinking_delta" => events.extend(delta(index, more.thinking)),
            "signature_delta" => open.signature.push_str(&more.signature.unwrap_or_default()),
            "input_json_delta" => {
                let piece = delta(index, more.partial_json);
                if piece.is_some() {
                    open.input = None;
                }
                events.extend(piece);
            }
            _ => {}
        }
    }

    fn end(&mut self, index: u16, events: &mut Vec<StreamEvent>) {
        let Some(open) = self.open.remove(&index) else { return };
        events.extend(delta(index, open.input.map(|input| input.get().to_owned()).filter(|input| input != "{}")));
        events.push(StreamEvent::BlockEnd { index, signature: Some(open.signature).filter(|text| !text.is_empty()) });
    }

    /// Numbers of an event replace those before; what it does not name stays.
    fn count(&mut self, wire: WireUsage) -> StreamEvent {
        let usage = &mut self.usage;
        for (slot, number) in [
            (&mut usage.input, wire.input_tokens),
            (&mut usage.output, wire.output_tokens),
            (&mut usage.cache_read, wire.cache_read_input_tokens),
            (&mut usage.cache_write, wire.cache_creation_input_tokens),
        ] {
            *slot = number.unwrap_or(*slot);
        }
        let parts = [usage.input, usage.output, usage.cache_read, usage.cache_write];
        usage.total_tokens = parts.into_iter().fold(0, u64::saturating_add);
        StreamEvent::Usage(usage.clone())
    }
}

fn stop_reason(wire: String) -> StopReason {
    match wire.as_str() {
        "end_turn" | "stop_sequence" => StopReason::Stop,
        "max_tokens" | "model_context_window_exceeded" => StopReason::Length,
        "tool_use" => StopReason::ToolUse,
        _ => StopReason::Other(wire),
    }
}
