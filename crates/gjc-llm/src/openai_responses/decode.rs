//! The events of an answer. Event and item types that are not known here are left out.

use crate::classify::{Complaint, failure};
use crate::family::{counted, number};
use crate::sse::{self, Decode, delta};
use crate::{BlockKind, ProviderError, StreamEvent};
use bytes::Buf;
use futures_util::stream::{BoxStream, Stream};
use gjc_entry::{JsonObject, StopReason};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// Reads a body of server-sent events, cut into pieces wherever the network liked.
///
/// The stream ends after [`StreamEvent::Stop`] or after one error; a body that ends before `response.completed` or
/// `response.incomplete`, or with `[DONE]` before each item has ended, is a [`ProviderError::Cut`]. Needs a tokio runtime with time.
pub fn decode<S, B, E>(body: S) -> BoxStream<'static, Result<StreamEvent, ProviderError>>
where
    S: Stream<Item = Result<B, E>> + Send + Unpin + 'static,
    B: Buf + Send + 'static,
    E: std::error::Error + Send + Sync + 'static,
{
    sse::decode::<Decoder, _, _, _>(body)
}

/// The most items of an answer: events that bear no place are looked up among them.
const MOST_ITEMS: usize = 2_048;

/// Turns one event after another into ours.
#[derive(Default)]
pub(super) struct Decoder {
    started: bool,
    /// By their place in the output.
    items: BTreeMap<u64, Item>,
    /// The place of the item that was added last: what names none belongs to it.
    last: u64,
    /// How many blocks have begun.
    blocks: u16,
    whole: bool,
}

/// An item of the output.
#[derive(Default)]
struct Item {
    id: String,
    /// The index of its block, once it has begun.
    block: Option<u16>,
    kind: Option<ItemKind>,
    /// Something of its words, thoughts or arguments was passed on.
    told: bool,
    /// The part of the summary that is being written.
    part: u64,
    /// Arguments that came before the item's name did.
    early: String,
    done: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ItemKind {
    Words,
    Thoughts,
    Call,
}

#[derive(Deserialize)]
struct Typed {
    #[serde(rename = "type", default)]
    kind: String,
    /// Of a whole answer that is no event.
    object: Option<String>,
    error: Option<Value>,
}

/// An event of a type that is known here; of others nothing is.
#[derive(Deserialize)]
struct Event {
    response: Option<Value>,
    item: Option<Value>,
    item_id: Option<String>,
    output_index: Option<u64>,
    summary_index: Option<u64>,
    delta: Option<Value>,
    text: Option<String>,
    refusal: Option<String>,
    arguments: Option<String>,
}

/// The types that [`Event`] is read for.
const KNOWN: &[&str] = &[
    "response.created",
    "response.output_item.added",
    "response.output_item.done",
    "response.output_text.delta",
    "response.output_text.done",
    "response.refusal.delta",
    "response.refusal.done",
    "response.reasoning_summary_text.delta",
    "response.reasoning_text.delta",
    "response.reasoning.delta",
    "response.function_call_arguments.delta",
    "response.function_call_arguments.done",
    "response.completed",
    "response.incomplete",
    "response.failed",
    "response.done",
];

impl Decode for Decoder {
    fn feed(&mut self, data: &str) -> Result<Vec<StreamEvent>, ProviderError> {
        let mut events = Vec::new();
        if data.trim() == "[DONE]" {
            // Behind `response.completed` nothing is read any more: this one came instead of it.
            // It may be whole all the same: each of its items has ended.
            if self.blocks == 0 || self.items.values().any(|item| !item.done) {
                return Err(self.cut("the provider ended the answer before it was whole".into()));
            }
            self.finish(None, &mut events)?;
            return Ok(events);
        }
        let Typed { kind, object, error } = self.read(data)?;
        if kind.is_empty() {
            // An answer of a server that does not stream, or the error of one that answers with 200.
            return match object.as_deref() {
                Some("response") => self.completed("", self.read(data)?, &mut events).map(|()| events),
                _ if error.is_some() => Err(failure(self, &Complaint::of(&self.read(data)?))),
                _ => Ok(events),
            };
        }
        if kind == "error" {
            return Err(failure(self, &Complaint::of(&self.read(data)?)));
        }
        if !KNOWN.contains(&kind.as_str()) {
            return Ok(events);
        }
        let event: Event = self.read(data)?;
        match kind.as_str() {
            "response.created" => self.start(event.response.as_ref(), &mut events),
            "response.output_item.added" => {
                let at = event
                    .output_index
                    .unwrap_or_else(|| self.items.keys().next_back().map_or(0, |last| last.saturating_add(1)));
                self.last = at;
                self.added(at, &event.item.unwrap_or_default(), &mut events)?;
            }
            "response.output_item.done" => {
                let at = self.place(&event);
                self.done(at, &event.item.unwrap_or_default(), &mut events)?;
            }
            "response.output_text.delta" | "response.refusal.delta" => {
                self.more(ItemKind::Words, event, &mut events)?
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" | "response.reasoning.delta" => {
                self.more(ItemKind::Thoughts, event, &mut events)?;
            }
            "response.function_call_arguments.delta" => self.more(ItemKind::Call, event, &mut events)?,
            // A server that did not cut into pieces says everything here.
            "response.output_text.done" | "response.refusal.done" | "response.function_call_arguments.done" => {
                let kind = if event.arguments.is_some() { ItemKind::Call } else { ItemKind::Words };
                let at = self.place(&event);
                let all = event.text.or(event.refusal).or(event.arguments).unwrap_or_default();
                if !self.items.get(&at).is_some_and(|item| item.told) {
                    self.tell(at, kind, all, &mut events)?;
                }
            }
            "response.completed" | "response.incomplete" | "response.failed" | "response.done" => {
                self.completed(&kind, event.response.unwrap_or_default(), &mut events)?;
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
        self.blocks > 0
    }
}

impl Decoder {
    fn start(&mut self, response: Option<&Value>, events: &mut Vec<StreamEvent>) {
        if !std::mem::replace(&mut self.started, true) {
            let response_id = response.and_then(|response| text(response, "id")).map(Into::into);
            events.push(StreamEvent::Start { response_id });
        }
    }

    /// The place of the item that an event is about.
    fn place(&self, event: &Event) -> u64 {
        let id = event.item_id.as_deref().or_else(|| event.item.as_ref().and_then(|item| text(item, "id")));
        let named = || self.items.iter().rev().find(|(_, item)| id.is_some_and(|id| item.id == id)).map(|(at, _)| *at);
        event.output_index.or_else(named).unwrap_or(self.last)
    }

    fn item(&mut self, at: u64) -> Result<&mut Item, ProviderError> {
        if self.items.len() >= MOST_ITEMS && !self.items.contains_key(&at) {
            return Err(self.cut("the answer has too many parts".into()));
        }
        Ok(self.items.entry(at).or_default())
    }

    fn added(&mut self, at: u64, wire: &Value, events: &mut Vec<StreamEvent>) -> Result<(), ProviderError> {
        let known = self.item(at)?;
        if known.id.is_empty() {
            known.id = text(wire, "id").unwrap_or_default().into();
        }
        match text(wire, "type") {
            Some("message") => self.begin(at, BlockKind::Text, events),
            Some("reasoning") => self.begin(at, BlockKind::Thinking, events),
            Some("function_call") => {
                let name = text(wire, "name").unwrap_or_default();
                let id = text(wire, "call_id").or_else(|| text(wire, "id"));
                let id = id.map_or_else(|| format!("call_{}", at.saturating_add(1)), Into::into);
                if name.is_empty() {
                    Ok(())
                } else {
                    self.begin(at, BlockKind::ToolCall { id, name: name.into() }, events)
                }
            }
            _ => Ok(()),
        }
    }

    fn begin(&mut self, at: u64, kind: BlockKind, events: &mut Vec<StreamEvent>) -> Result<(), ProviderError> {
        let next = self.blocks.saturating_add(1);
        let item = self.item(at)?;
        if item.block.is_some() {
            return Ok(());
        }
        item.block = Some(next);
        item.kind = Some(match kind {
            BlockKind::Thinking | BlockKind::RedactedThinking { .. } => ItemKind::Thoughts,
            BlockKind::ToolCall { .. } => ItemKind::Call,
            BlockKind::Text => ItemKind::Words,
        });
        let early = std::mem::take(&mut item.early);
        item.told |= !early.is_empty();
        events.push(StreamEvent::BlockStart { index: next, kind });
        events.extend(delta(next, Some(early)));
        self.blocks = next;
        Ok(())
    }

    /// A piece of an item.
    fn more(&mut self, kind: ItemKind, event: Event, events: &mut Vec<StreamEvent>) -> Result<(), ProviderError> {
        let at = self.place(&event);
        let piece = match event.delta {
            Some(Value::String(piece)) => piece,
            // Some servers wrap it.
            Some(wrapped) => text(&wrapped, "text").unwrap_or_default().into(),
            None => String::new(),
        };
        if let Some(part) = event.summary_index {
            let item = self.item(at)?;
            let next = part != std::mem::replace(&mut item.part, part);
            if next && item.told && !piece.is_empty() {
                self.tell(at, kind, "\n\n".into(), events)?;
            }
        }
        self.tell(at, kind, piece, events)
    }

    /// Passes a piece on. Words and thoughts of an item that was not announced begin its block; arguments wait for their name.
    fn tell(
        &mut self,
        at: u64,
        kind: ItemKind,
        piece: String,
        events: &mut Vec<StreamEvent>,
    ) -> Result<(), ProviderError> {
        if piece.is_empty() {
            return Ok(());
        }
        if self.item(at)?.block.is_none() {
            match kind {
                ItemKind::Words => self.begin(at, BlockKind::Text, events)?,
                ItemKind::Thoughts => self.begin(at, BlockKind::Thinking, events)?,
                ItemKind::Call => {
                    self.item(at)?.early.push_str(&piece);
                    return Ok(());
                }
            }
        }
        let item = self.item(at)?;
        // What belongs to another kind of item than this one makes no sense anywhere.
        if let (Some(index), true) = (item.block, item.kind == Some(kind) && !item.done) {
            item.told = true;
            events.push(StreamEvent::Delta { index, text: piece });
        }
        Ok(())
    }

    /// An item is complete. What of it did not come in pieces is taken from it.
    fn done(&mut self, at: u64, wire: &Value, events: &mut Vec<StreamEvent>) -> Result<(), ProviderError> {
        if self.item(at)?.done {
            return Ok(());
        }
        self.added(at, wire, events)?;
        let signature = match text(wire, "type") {
            Some("message") => {
                self.untold(at, ItemKind::Words, joined(wire, "content", "\n\n"), events)?;
                None
            }
            Some("reasoning") => {
                let mut thoughts = joined(wire, "summary", "\n\n");
                if thoughts.is_empty() {
                    thoughts = joined(wire, "content", "\n\n");
                }
                self.untold(at, ItemKind::Thoughts, thoughts, events)?;
                signature(wire)
            }
            Some("function_call") => {
                let all = text(wire, "arguments").unwrap_or_default().into();
                self.untold(at, ItemKind::Call, all, events)?;
                None
            }
            _ => None,
        };
        self.close(at, signature, events);
        Ok(())
    }

    fn untold(
        &mut self,
        at: u64,
        kind: ItemKind,
        all: String,
        events: &mut Vec<StreamEvent>,
    ) -> Result<(), ProviderError> {
        if self.item(at)?.told { Ok(()) } else { self.tell(at, kind, all, events) }
    }

    fn close(&mut self, at: u64, signature: Option<String>, events: &mut Vec<StreamEvent>) {
        let Some(item) = self.items.get_mut(&at).filter(|item| !item.done) else { return };
        item.done = true;
        events.extend(item.block.map(|index| StreamEvent::BlockEnd { index, signature }));
    }

    /// The answer is complete, in part or not at all (`kind`: the event that says so). Items that were not streamed are taken from
    /// it.
    fn completed(&mut self, kind: &str, response: Value, events: &mut Vec<StreamEvent>) -> Result<(), ProviderError> {
        let status = text(&response, "status").or_else(|| kind.strip_prefix("response."));
        if status == Some("failed") {
            let error = response.get("error").filter(|error| error.is_object());
            let unsaid = || Complaint::new("the provider failed and does not say why".into(), String::new());
            return Err(failure(self, &error.map_or_else(unsaid, Complaint::of)));
        }
        self.start(Some(&response), events);
        for (at, item) in (0u64..).zip(response.get("output").and_then(Value::as_array).into_iter().flatten()) {
            // A server that leaves items out of this list shifts the others: its ids tell more than the places.
            let id = text(item, "id").unwrap_or_default();
            let known = self.items.iter().find(|(_, known)| !id.is_empty() && known.id == id).map(|(at, _)| *at);
            self.done(known.unwrap_or(at), item, events)?;
        }
        if let Some(usage) = response.get("usage").filter(|usage| usage.is_object()) {
            let of = |path: &str| number(usage, &[path]).unwrap_or(0);
            let read = of("input_tokens_details/cached_tokens");
            events.push(StreamEvent::Usage(counted(of("input_tokens"), read, 0, of("output_tokens"))));
        }
        let why = response.pointer("/incomplete_details/reason").and_then(Value::as_str);
        let stop = match (status, why) {
            (Some("incomplete"), None | Some("max_output_tokens" | "max_tokens")) => Some(StopReason::Length),
            (Some("incomplete"), Some(why)) => Some(StopReason::Other(why.into())),
            _ => None,
        };
        self.finish(stop, events)
    }

    fn finish(&mut self, stop: Option<StopReason>, events: &mut Vec<StreamEvent>) -> Result<(), ProviderError> {
        let places: Vec<u64> = self.items.keys().copied().collect();
        for at in places {
            self.close(at, None, events);
        }
        let calls = self.items.values().any(|item| item.kind == Some(ItemKind::Call));
        let usual = if calls { StopReason::ToolUse } else { StopReason::Stop };
        events.push(StreamEvent::Stop(stop.unwrap_or(usual)));
        self.whole = true;
        Ok(())
    }
}

fn text<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name).and_then(Value::as_str)
}

/// The words of a list of parts.
fn joined(item: &Value, name: &str, between: &str) -> String {
    let parts = item.get(name).and_then(Value::as_array).into_iter().flatten();
    let words = parts.filter_map(|part| text(part, "text").or_else(|| text(part, "refusal")));
    words.filter(|words| !words.is_empty()).collect::<Vec<_>>().join(between)
}

/// A reasoning item as the signature of its thinking, in the family's form; `None` when it is not encrypted, since then it says
/// nothing to a server that keeps none.
fn signature(item: &Value) -> Option<String> {
    let data = text(item, "encrypted_content").filter(|data| !data.is_empty())?;
    let mut out = Vec::new();
    let mut object = JsonObject::begin(&mut out);
    object.field("type", "reasoning").some("id", &text(item, "id"));
    let none = Value::Array(Vec::new());
    object.field("summary", item.get("summary").filter(|summary| summary.is_array()).unwrap_or(&none));
    object.field("encrypted_content", data).end();
    String::from_utf8(out).ok()
}
