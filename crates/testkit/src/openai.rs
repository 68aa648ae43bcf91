//! Answers of OpenAI's two APIs: [`Chat`] in chunks of Chat Completions, [`Response`] in the events of Responses, and their error
//! bodies.
//!
//! Source of the grammars: "Streaming" and "Responses streaming" of the OpenAI API reference. Chunks carry no event names, the
//! usage comes in a chunk without choices behind the last, and `[DONE]` ends the stream. Events of Responses carry their name and a
//! rising `sequence_number`; each item of the output is added, filled by deltas, and done; `response.completed` repeats all items.
//!
//! ```
//! use testkit::openai::{Chat, Response};
//! let chat = Chat::new("chatcmpl-1").reasoning("어디 보자").text("안녕").sse();
//! assert!(chat.ends_with(b"data: [DONE]\n\n"));
//! let response = Response::new("resp_1").reasoning("어디 보자", "c2ln").text("안녕").sse();
//! assert!(response.starts_with(b"event: response.created\n"));
//! ```

use serde_json::{Value, json};

use crate::stub::Reply;

/// Tokens as these APIs count them: `input` holds what was read from the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// `prompt_tokens`, `input_tokens`
    pub input: u64,
    /// `completion_tokens`, `output_tokens`
    pub output: u64,
    /// `cached_tokens` among the input
    pub cached: u64,
}

impl Default for Usage {
    fn default() -> Self {
        Self { input: 10, output: 5, cached: 0 }
    }
}

/// One answer of Chat Completions, chunk by chunk. Deltas hold 8 characters.
#[derive(Debug, Clone)]
pub struct Chat {
    id: String,
    usage: Usage,
    stop: Option<String>,
    calls: usize,
    chunks: Vec<String>,
    broken: bool,
}

impl Chat {
    /// An answer without content.
    #[must_use]
    pub fn new(id: &str) -> Self {
        let chat =
            Self { id: id.into(), usage: Usage::default(), stop: None, calls: 0, chunks: Vec::new(), broken: false };
        chat.delta(&json!({"role": "assistant", "content": ""}))
    }

    /// Token counts.
    #[must_use]
    pub fn usage(mut self, usage: Usage) -> Self {
        self.usage = usage;
        self
    }

    /// The reason of the end. Unset: `tool_calls` after a call, else `stop`.
    #[must_use]
    pub fn stop(mut self, reason: &str) -> Self {
        self.stop = Some(reason.into());
        self
    }

    /// Words.
    #[must_use]
    pub fn text(self, text: &str) -> Self {
        cut(text).into_iter().fold(self, |chat, piece| chat.delta(&json!({"content": piece})))
    }

    /// Thinking, as DeepSeek, llama.cpp and vLLM stream it.
    #[must_use]
    pub fn reasoning(self, text: &str) -> Self {
        cut(text).into_iter().fold(self, |chat, piece| chat.delta(&json!({"reasoning_content": piece})))
    }

    /// Thinking with its signature, as OpenRouter streams it.
    #[must_use]
    pub fn signed_reasoning(self, text: &str, signature: &str) -> Self {
        let detail = |name: &str, value: &str| json!({"reasoning_details": [{"type": "reasoning.text", "index": 0, name: value}]});
        let chat = cut(text).into_iter().fold(self, |chat, piece| chat.delta(&detail("text", &piece)));
        chat.delta(&detail("signature", signature))
    }

    /// A call whose argument text is sent as given, valid JSON or not.
    #[must_use]
    pub fn tool_call(self, id: &str, name: &str, arguments: &str) -> Self {
        self.interleaved_calls(&[(id, name, arguments)])
    }

    /// Calls (id, name, argument text) whose deltas take turns.
    #[must_use]
    pub fn interleaved_calls(mut self, calls: &[(&str, &str, &str)]) -> Self {
        let first = self.calls;
        self.calls += calls.len();
        for (n, (id, name, _)) in calls.iter().enumerate() {
            let function = json!({"name": name, "arguments": ""});
            self = self.delta(
                &json!({"tool_calls": [{"index": first + n, "id": id, "type": "function", "function": function}]}),
            );
        }
        for (n, piece) in turns(calls) {
            self = self.delta(&json!({"tool_calls": [{"index": first + n, "function": {"arguments": piece}}]}));
        }
        self
    }

    /// A delta as given, for dialects.
    #[must_use]
    pub fn delta(self, delta: &Value) -> Self {
        let choices = json!([{"index": 0, "delta": delta, "finish_reason": null}]);
        self.chunk(&json!({ "choices": choices }))
    }

    /// An error that ends the stream here; what is added later is not sent.
    #[must_use]
    pub fn error(mut self, code: &str, message: &str) -> Self {
        self = self.chunk(&json!({"error": {"code": code, "message": message}}));
        self.broken = true;
        self
    }

    /// The chunks, each with its data line and the empty line that ends it.
    #[must_use]
    pub fn events(&self) -> Vec<String> {
        let mut events = self.chunks.clone();
        if !self.broken {
            let stop = self.stop.as_deref().unwrap_or(if self.calls > 0 { "tool_calls" } else { "stop" });
            events.push(self.event(&json!({"choices": [{"index": 0, "delta": {}, "finish_reason": stop}]})));
            let Usage { input, output, cached } = self.usage;
            let details = json!({"cached_tokens": cached});
            let usage = json!({
                "prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output,
                "prompt_tokens_details": details,
            });
            events.push(self.event(&json!({"choices": [], "usage": usage})));
            events.push("data: [DONE]\n\n".into());
        }
        events
    }

    /// The bytes of the stream.
    #[must_use]
    pub fn sse(&self) -> Vec<u8> {
        self.events().concat().into_bytes()
    }

    /// Offsets in [`Chat::sse`] just behind each chunk.
    #[must_use]
    pub fn event_ends(&self) -> Vec<usize> {
        ends(&self.events())
    }

    /// The stream as a reply of the stub, one write a chunk.
    #[must_use]
    pub fn reply(&self) -> Reply {
        Reply::sse(self.sse()).split_at(&self.event_ends())
    }

    fn chunk(mut self, fields: &Value) -> Self {
        if !self.broken {
            let event = self.event(fields);
            self.chunks.push(event);
        }
        self
    }

    fn event(&self, fields: &Value) -> String {
        let mut chunk = json!({"id": self.id, "object": "chat.completion.chunk", "model": "stub-1"});
        if let (Some(chunk), Some(fields)) = (chunk.as_object_mut(), fields.as_object()) {
            chunk.extend(fields.clone());
        }
        format!("data: {chunk}\n\n")
    }
}

/// One answer of Responses, event by event. Deltas hold 8 characters.
#[derive(Debug, Clone)]
pub struct Response {
    id: String,
    usage: Usage,
    events: Vec<(&'static str, Value)>,
    output: Vec<Value>,
    incomplete: Option<String>,
    broken: bool,
}

impl Response {
    /// An answer without items.
    #[must_use]
    pub fn new(id: &str) -> Self {
        let response = Self {
            id: id.into(),
            usage: Usage::default(),
            events: Vec::new(),
            output: Vec::new(),
            incomplete: None,
            broken: false,
        };
        let begun = json!({"id": id, "object": "response", "status": "in_progress", "output": []});
        response
            .event("response.created", json!({ "response": begun }))
            .event("response.in_progress", json!({ "response": begun }))
    }

    /// Token counts.
    #[must_use]
    pub fn usage(mut self, usage: Usage) -> Self {
        self.usage = usage;
        self
    }

    /// The answer ends incomplete, for this reason.
    #[must_use]
    pub fn incomplete(mut self, reason: &str) -> Self {
        self.incomplete = Some(reason.into());
        self
    }

    /// An item of thinking: its summary, and its encrypted content (empty: none, as of servers that encrypt nothing).
    #[must_use]
    pub fn reasoning(mut self, summary: &str, encrypted: &str) -> Self {
        let (at, id) = (self.output.len(), format!("rs_{}", self.output.len()));
        let mut item = json!({"id": id, "type": "reasoning", "summary": []});
        self = self.event("response.output_item.added", json!({"output_index": at, "item": item}));
        for piece in cut(summary) {
            let delta = json!({"item_id": id, "output_index": at, "summary_index": 0, "delta": piece});
            self = self.event("response.reasoning_summary_text.delta", delta);
        }
        item["summary"] = json!([{"type": "summary_text", "text": summary}]);
        if !encrypted.is_empty() {
            item["encrypted_content"] = encrypted.into();
        }
        self.done(at, item)
    }

    /// A message.
    #[must_use]
    pub fn text(mut self, text: &str) -> Self {
        let (at, id) = (self.output.len(), format!("msg_{}", self.output.len()));
        let mut item = json!({"id": id, "type": "message", "role": "assistant", "content": []});
        self = self.event("response.output_item.added", json!({"output_index": at, "item": item}));
        for piece in cut(text) {
            let delta = json!({"item_id": id, "output_index": at, "content_index": 0, "delta": piece});
            self = self.event("response.output_text.delta", delta);
        }
        let whole = json!({"item_id": id, "output_index": at, "content_index": 0, "text": text});
        self = self.event("response.output_text.done", whole);
        item["content"] = json!([{"type": "output_text", "text": text, "annotations": []}]);
        self.done(at, item)
    }

    /// A call whose argument text is sent as given.
    #[must_use]
    pub fn tool_call(self, id: &str, name: &str, arguments: &str) -> Self {
        self.interleaved_calls(&[(id, name, arguments)])
    }

    /// Calls (id, name, argument text) whose deltas take turns.
    #[must_use]
    pub fn interleaved_calls(mut self, calls: &[(&str, &str, &str)]) -> Self {
        let first = self.output.len();
        let item = |n: usize, arguments: &str| {
            let (id, name, _) = calls[n];
            json!({"id": format!("fc_{}", first + n), "type": "function_call", "call_id": id, "name": name, "arguments": arguments})
        };
        for n in 0..calls.len() {
            self = self.event("response.output_item.added", json!({"output_index": first + n, "item": item(n, "")}));
        }
        for (n, piece) in turns(calls) {
            let delta = json!({"item_id": format!("fc_{}", first + n), "output_index": first + n, "delta": piece});
            self = self.event("response.function_call_arguments.delta", delta);
        }
        for (n, (.., arguments)) in calls.iter().enumerate() {
            self = self.done(first + n, item(n, arguments));
        }
        self
    }

    /// An event as given.
    #[must_use]
    pub fn event(mut self, name: &'static str, mut fields: Value) -> Self {
        if !self.broken {
            fields["type"] = name.into();
            fields["sequence_number"] = self.events.len().into();
            self.events.push((name, fields));
        }
        self
    }

    /// A failure that ends the stream here; what is added later is not sent.
    #[must_use]
    pub fn error(mut self, code: &str, message: &str) -> Self {
        let error = json!({"code": code, "message": message});
        let response = json!({"id": self.id, "object": "response", "status": "failed", "error": error});
        self = self.event("response.failed", json!({ "response": response }));
        self.broken = true;
        self
    }

    /// The events, each with its name line, its data line and the empty line that ends it.
    #[must_use]
    pub fn events(&self) -> Vec<String> {
        let Usage { input, output, cached } = self.usage;
        let mut whole = json!({
            "id": self.id, "object": "response", "status": "completed", "output": self.output,
            "usage": {
                "input_tokens": input, "input_tokens_details": {"cached_tokens": cached}, "output_tokens": output,
                "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": input + output,
            },
        });
        let mut name = "response.completed";
        if let Some(reason) = &self.incomplete {
            whole["status"] = "incomplete".into();
            whole["incomplete_details"] = json!({ "reason": reason });
            name = "response.incomplete";
        }
        let ended = if self.broken { self.clone() } else { self.clone().event(name, json!({ "response": whole })) };
        ended.events.iter().map(|(name, data)| format!("event: {name}\ndata: {data}\n\n")).collect()
    }

    /// The bytes of the stream.
    #[must_use]
    pub fn sse(&self) -> Vec<u8> {
        self.events().concat().into_bytes()
    }

    /// Offsets in [`Response::sse`] just behind each event.
    #[must_use]
    pub fn event_ends(&self) -> Vec<usize> {
        ends(&self.events())
    }

    /// The stream as a reply of the stub, one write an event.
    #[must_use]
    pub fn reply(&self) -> Reply {
        Reply::sse(self.sse()).header("x-request-id", &format!("req_{}", self.id)).split_at(&self.event_ends())
    }

    fn done(mut self, at: usize, item: Value) -> Self {
        self = self.event("response.output_item.done", json!({"output_index": at, "item": item}));
        self.output.push(item);
        self
    }
}

/// An answer with an error status: `error(429, "insufficient_quota", "You exceeded …")`.
#[must_use]
pub fn error(status: u16, code: &str, message: &str) -> Reply {
    Reply::json(
        status,
        &json!({"error": {"message": message, "type": "invalid_request_error", "param": null, "code": code}}),
    )
}

/// The pieces of calls' arguments, by call, in turns.
fn turns(calls: &[(&str, &str, &str)]) -> Vec<(usize, String)> {
    let pieces: Vec<Vec<String>> = calls.iter().map(|(.., arguments)| cut(arguments)).collect();
    let most = pieces.iter().map(Vec::len).max().unwrap_or(0);
    let at = |round: usize| pieces.iter().enumerate().filter_map(move |(n, all)| Some((n, all.get(round)?.clone())));
    (0..most).flat_map(at).collect()
}

fn cut(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    chars.chunks(8).map(|chunk| chunk.iter().collect()).collect()
}

fn ends(events: &[String]) -> Vec<usize> {
    let grow = |sum: &mut usize, event: &String| {
        *sum += event.len();
        Some(*sum)
    };
    events.iter().scan(0, grow).collect()
}
