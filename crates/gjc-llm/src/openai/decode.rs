//! The events of an answer, in each dialect. What is not known here is left out.

use super::calls::{CallPiece, Calls, FunctionPiece};
use super::details::Details;
use crate::classify::{Complaint, failure};
use crate::family::{counted, number};
use crate::sse::{self, Decode, MOST_BLOCKS};
use crate::{BlockKind, ProviderError, StreamEvent};
use bytes::Buf;
use futures_util::stream::{BoxStream, Stream};
use gjc_entry::StopReason;
use serde::Deserialize;
use serde_json::Value;

/// Reads a body of server-sent events, cut into pieces wherever the network liked.
///
/// The stream ends after [`StreamEvent::Stop`] or after one error. An answer is whole with `[DONE]`, or where a body ends behind a
/// `finish_reason`; any other end is a [`ProviderError::Cut`]. Needs a tokio runtime with time.
pub fn decode<S, B, E>(body: S) -> BoxStream<'static, Result<StreamEvent, ProviderError>>
where
    S: Stream<Item = Result<B, E>> + Send + Unpin + 'static,
    B: Buf + Send + 'static,
    E: std::error::Error + Send + Sync + 'static,
{
    sse::decode::<Decoder, _, _, _>(body)
}

/// Turns one chunk after another into our events.
#[derive(Default)]
pub(super) struct Decoder {
    started: bool,
    /// How many blocks have begun. Number 0 is kept for thinking that is closed from its beginning to its end.
    blocks: u16,
    /// The block of words or thinking that is open.
    open: Option<Open>,
    /// The first block of thinking: the signature of all of it is put there.
    thinking: Option<u16>,
    details: Details,
    calls: Calls,
    stop: Option<StopReason>,
    whole: bool,
}

#[derive(Clone, Copy)]
struct Open {
    block: u16,
    thinks: bool,
}

#[derive(Deserialize)]
struct Chunk {
    id: Option<Value>,
    choices: Option<Vec<Choice>>,
    usage: Option<Value>,
    /// Groq's place for the usage.
    x_groq: Option<Value>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Choice {
    index: Option<u64>,
    delta: Option<Delta>,
    /// Of a server that does not stream.
    message: Option<Delta>,
    finish_reason: Option<String>,
    /// Moonshot's place for it.
    usage: Option<Value>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Delta {
    content: Option<Value>,
    refusal: Option<String>,
    /// DeepSeek, llama.cpp, vLLM, LM Studio.
    reasoning_content: Option<Value>,
    /// OpenRouter, Ollama, Groq, later vLLM.
    reasoning: Option<Value>,
    reasoning_details: Option<Value>,
    tool_calls: Option<Vec<CallPiece>>,
    function_call: Option<FunctionPiece>,
}

impl Decode for Decoder {
    fn feed(&mut self, data: &str) -> Result<Vec<StreamEvent>, ProviderError> {
        let mut events = Vec::new();
        if data.trim() == "[DONE]" {
            if !self.begun() && self.stop.is_none() {
                return Err(self.cut("the provider ended the answer before it began".into()));
            }
            self.finish(&mut events);
            return Ok(events);
        }
        let chunk: Chunk = self.read(data)?;
        let choices = chunk.choices.unwrap_or_default();
        if let Some(error) = chunk.error.as_ref().or(choices.iter().find_map(|choice| choice.error.as_ref()))
            && !error.is_null()
        {
            return Err(failure(self, &Complaint::of(error)));
        }
        // Azure begins with a chunk that has neither an id nor choices.
        let id = response_id(chunk.id);
        if !self.started && (id.is_some() || !choices.is_empty()) {
            self.started = true;
            events.push(StreamEvent::Start { response_id: id });
        }
        let mut usage =
            chunk.usage.or_else(|| chunk.x_groq.and_then(|mut groq| groq.get_mut("usage").map(Value::take)));
        // Only one answer was asked for.
        for choice in choices.into_iter().filter(|choice| choice.index.unwrap_or(0) == 0) {
            if let Some(delta) = choice.delta.or(choice.message) {
                self.more(delta, &mut events)?;
            }
            match choice.finish_reason.as_deref() {
                None | Some("") => {}
                Some("error") => {
                    return Err(failure(
                        self,
                        &Complaint::new("the provider stopped with an error".into(), String::new()),
                    ));
                }
                Some(reason) => self.stop = Some(stop_reason(reason)),
            }
            usage = usage.or(choice.usage);
        }
        events.extend(usage.filter(Value::is_object).map(|usage| count(&usage)));
        Ok(events)
    }

    fn ended(&mut self) -> Option<Vec<StreamEvent>> {
        self.stop.is_some().then(|| {
            let mut events = Vec::new();
            self.finish(&mut events);
            events
        })
    }

    fn whole(&self) -> bool {
        self.whole
    }

    fn begun(&self) -> bool {
        self.blocks > 0
    }
}

impl Decoder {
    fn more(&mut self, delta: Delta, events: &mut Vec<StreamEvent>) -> Result<(), ProviderError> {
        let details = match delta.reasoning_details {
            Some(Value::Array(details)) => details,
            _ => Vec::new(),
        };
        let detailed = self.details.take(details);
        let thought = [delta.reasoning_content, delta.reasoning].into_iter().flatten().map(|part| said(&part).words);
        // The same words stand in both, or only in one.
        let thought = thought.into_iter().find(|words| !words.is_empty()).unwrap_or(detailed);
        self.say(true, thought, events)?;
        let content = delta.content.map(|content| said(&content)).unwrap_or_default();
        self.say(true, content.thought, events)?;
        self.say(false, content.words, events)?;
        self.say(false, delta.refusal.unwrap_or_default(), events)?;
        let old = delta.function_call.map(CallPiece::of);
        for piece in delta.tool_calls.into_iter().flatten().chain(old) {
            self.call(piece, events)?;
        }
        Ok(())
    }

    /// Words or thinking. A block ends where the other kind begins.
    fn say(&mut self, thinks: bool, text: String, events: &mut Vec<StreamEvent>) -> Result<(), ProviderError> {
        if text.is_empty() {
            return Ok(());
        }
        let block = match self.open {
            Some(open) if open.thinks == thinks => open.block,
            _ => {
                self.close(events);
                let block = self.next()?;
                self.open = Some(Open { block, thinks });
                if thinks {
                    self.thinking.get_or_insert(block);
                }
                let kind = if thinks { BlockKind::Thinking } else { BlockKind::Text };
                events.push(StreamEvent::BlockStart { index: block, kind });
                block
            }
        };
        events.push(StreamEvent::Delta { index: block, text });
        Ok(())
    }

    fn call(&mut self, piece: CallPiece, events: &mut Vec<StreamEvent>) -> Result<(), ProviderError> {
        let at = self.calls.take(piece);
        if self.calls.len() > MOST_CALLS {
            return Err(self.cut(TOO_MANY.into()));
        }
        let next = self.blocks.saturating_add(1);
        let Some((_, call)) = self.calls.iter_mut().nth(at) else { return Ok(()) };
        if let Some((id, name)) = call.begin(at, next) {
            events.push(StreamEvent::BlockStart { index: next, kind: BlockKind::ToolCall { id, name } });
            self.next()?;
            self.close(events);
        }
        let Some((_, call)) = self.calls.iter_mut().nth(at) else { return Ok(()) };
        if let Some(index) = call.block {
            events.extend(sse::delta(index, Some(call.news())));
        }
        Ok(())
    }

    fn next(&mut self) -> Result<u16, ProviderError> {
        if usize::from(self.blocks) >= MOST_BLOCKS {
            return Err(self.cut(TOO_MANY.into()));
        }
        self.blocks += 1;
        Ok(self.blocks)
    }

    /// Ends the open block. Thinking whose signature may still come ends with the answer.
    fn close(&mut self, events: &mut Vec<StreamEvent>) {
        let Some(open) = self.open.take() else { return };
        if self.thinking != Some(open.block) || self.details.is_empty() {
            events.push(StreamEvent::BlockEnd { index: open.block, signature: None });
        }
    }

    fn finish(&mut self, events: &mut Vec<StreamEvent>) {
        self.close(events);
        if !self.details.is_empty() {
            let signature = self.details.signature();
            if let (None, Some(_)) = (self.thinking, &signature) {
                events.push(StreamEvent::BlockStart { index: 0, kind: BlockKind::Thinking });
            }
            events.push(StreamEvent::BlockEnd { index: self.thinking.unwrap_or(0), signature });
        }
        let mut calls = false;
        for (_, call) in self.calls.iter_mut() {
            if let Some(index) = call.block {
                calls = true;
                events.push(StreamEvent::BlockEnd { index, signature: call.signature.take() });
            }
        }
        // Some servers stop with "stop" although they call, others with "tool_calls" although they do not.
        let stop = match self.stop.take() {
            None | Some(StopReason::Stop | StopReason::ToolUse) if calls => StopReason::ToolUse,
            None | Some(StopReason::ToolUse) => StopReason::Stop,
            Some(stop) => stop,
        };
        events.push(StreamEvent::Stop(stop));
        self.whole = true;
    }
}

fn response_id(id: Option<Value>) -> Option<String> {
    id.as_ref().and_then(Value::as_str).filter(|id| !id.is_empty()).map(Into::into)
}

/// The most calls of an answer: each piece is looked up among them.
const MOST_CALLS: usize = 1_024;
const TOO_MANY: &str = "the answer has too many parts";

/// What a content says.
#[derive(Default)]
struct Content {
    words: String,
    thought: String,
}

/// A string, or (Mistral) a list of parts of type `text` and `thinking`.
fn said(content: &Value) -> Content {
    let mut all = Content::default();
    match content {
        Value::String(text) => all.words.push_str(text),
        Value::Array(parts) => {
            for part in parts {
                match part.get("type").and_then(Value::as_str) {
                    Some("thinking") => {
                        let thought = part.get("thinking").map(said).unwrap_or_default();
                        all.thought.push_str(&thought.words);
                    }
                    _ => all.words.push_str(part.get("text").and_then(Value::as_str).unwrap_or_default()),
                }
            }
        }
        _ => {}
    }
    all
}

fn stop_reason(wire: &str) -> StopReason {
    match wire.to_ascii_lowercase().as_str() {
        "stop" | "eos" | "eos_token" | "stop_sequence" | "end_turn" => StopReason::Stop,
        "length" | "max_tokens" | "model_length" => StopReason::Length,
        "tool_calls" | "function_call" | "tool_use" => StopReason::ToolUse,
        _ => StopReason::Other(wire.into()),
    }
}

fn count(usage: &Value) -> StreamEvent {
    let of = |paths: &[&str]| number(usage, paths).unwrap_or(0);
    let read = of(&["prompt_tokens_details/cached_tokens", "prompt_cache_hit_tokens", "cached_tokens"]);
    let written = of(&["prompt_tokens_details/cache_write_tokens"]);
    StreamEvent::Usage(counted(of(&["prompt_tokens"]), read, written, of(&["completion_tokens"])))
}
