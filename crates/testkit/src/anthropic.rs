//! Answers of the Messages API: streams in its event grammar, and its error bodies.
//!
//! Source of the grammar: "Streaming messages" of the Claude platform documentation. A stream is `message_start`; for each
//! content block, one after the other, `content_block_start`, deltas, `content_block_stop`; then `message_delta` with
//! the stop reason and the usage so far, and `message_stop`. `ping` may stand anywhere, and an `error` event may end the
//! stream anywhere. The first block is followed by a ping, a tool call's first delta is empty, and a thinking block
//! carries its signature as a last delta, as the real service does it.
//!
//! ```
//! use serde_json::json;
//! use testkit::anthropic::{Turn, Usage};
//! let sse = Turn::new("msg_1")
//!     .thinking("어디 보자", "sig==")
//!     .text("안녕")
//!     .tool_call("toolu_1", "read", &json!({"path": "a.rs"}))
//!     .usage(Usage { input: 25, output: 12, ..Usage::default() })
//!     .sse();
//! assert!(sse.starts_with(b"event: message_start\n"));
//! ```

use serde_json::{Value, json};

use crate::stub::Reply;

/// Tokens as the service counts them: `input` holds neither kind of cached tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// `input_tokens`
    pub input: u64,
    /// `output_tokens`, cumulative, as the last `message_delta` tells it
    pub output: u64,
    /// `cache_read_input_tokens`
    pub cache_read: u64,
    /// `cache_creation_input_tokens`
    pub cache_write: u64,
}

impl Default for Usage {
    fn default() -> Self {
        Self { input: 10, output: 5, cache_read: 0, cache_write: 0 }
    }
}

/// One answer of the model, event by event.
#[derive(Debug, Clone)]
pub struct Turn {
    id: String,
    model: String,
    usage: Usage,
    stop: Option<String>,
    delta_chars: usize,
    blocks: usize,
    called: bool,
    /// The events between `message_start` and `message_delta`, as (name, data).
    body: Vec<(&'static str, String)>,
    /// An `error` event has ended the stream.
    broken: bool,
}

impl Turn {
    /// An answer without content. Deltas hold 8 characters until [`Turn::delta_chars`] says otherwise.
    #[must_use]
    pub fn new(id: &str) -> Self {
        Self {
            id: id.into(),
            model: "claude-stub-1".into(),
            usage: Usage::default(),
            stop: None,
            delta_chars: 8,
            blocks: 0,
            called: false,
            body: vec![],
            broken: false,
        }
    }

    /// The model's name in `message_start`.
    #[must_use]
    pub fn model(mut self, model: &str) -> Self {
        self.model = model.into();
        self
    }

    /// Token counts.
    #[must_use]
    pub fn usage(mut self, usage: Usage) -> Self {
        self.usage = usage;
        self
    }

    /// The stop reason. Unset: `tool_use` after a tool call, else `end_turn`.
    #[must_use]
    pub fn stop(mut self, reason: &str) -> Self {
        self.stop = Some(reason.into());
        self
    }

    /// Characters (not bytes) a delta of the following blocks holds; at least 1.
    #[must_use]
    pub fn delta_chars(mut self, n: usize) -> Self {
        self.delta_chars = n.max(1);
        self
    }

    /// A text block.
    #[must_use]
    pub fn text(self, text: &str) -> Self {
        let deltas = self.cut(text).into_iter().map(|t| delta("text_delta", "text", &t)).collect();
        self.block(r#"{"type":"text","text":""}"#, deltas)
    }

    /// A thinking block with its signature; an empty signature is left out (what an interrupted stream leaves behind).
    #[must_use]
    pub fn thinking(self, text: &str, signature: &str) -> Self {
        let mut deltas: Vec<_> = self.cut(text).iter().map(|t| delta("thinking_delta", "thinking", t)).collect();
        if !signature.is_empty() {
            deltas.push(delta("signature_delta", "signature", signature));
        }
        self.block(r#"{"type":"thinking","thinking":"","signature":""}"#, deltas)
    }

    /// A thinking block that the service has encrypted: no deltas.
    #[must_use]
    pub fn redacted_thinking(self, data: &str) -> Self {
        self.block(&format!(r#"{{"type":"redacted_thinking","data":{}}}"#, quoted(data)), vec![])
    }

    /// A tool call.
    #[must_use]
    pub fn tool_call(self, id: &str, name: &str, arguments: &Value) -> Self {
        self.tool_call_raw(id, name, &arguments.to_string())
    }

    /// A tool call whose argument text is sent as given, valid JSON or not. Empty text sends only the empty delta, as the
    /// service does for a tool without arguments.
    #[must_use]
    pub fn tool_call_raw(mut self, id: &str, name: &str, arguments: &str) -> Self {
        self.called = true;
        let deltas = self.argument_deltas(arguments);
        self.block(&tool_use(id, name), deltas)
    }

    /// Tool calls (id, name, argument text) whose deltas take turns. The service sends one block after the other; its
    /// `index` allows this, and compatible servers do it.
    #[must_use]
    pub fn interleaved_calls(mut self, calls: &[(&str, &str, &str)]) -> Self {
        self.called = true;
        let first = self.blocks;
        let mut rest: Vec<_> = calls.iter().map(|(.., args)| self.argument_deltas(args).into_iter()).collect();
        for (i, (id, name, _)) in calls.iter().enumerate() {
            self.start(first + i, &tool_use(id, name));
        }
        let mut moved = true;
        while std::mem::take(&mut moved) {
            for (i, deltas) in rest.iter_mut().enumerate() {
                if let Some(d) = deltas.next() {
                    moved = true;
                    self.delta(first + i, &d);
                }
            }
        }
        for i in 0..calls.len() {
            self.finish(first + i);
        }
        self
    }

    /// A ping at this place.
    #[must_use]
    pub fn ping(mut self) -> Self {
        self.push("ping", r#"{"type":"ping"}"#.into());
        self
    }

    /// An event as given, for kinds that a client must pass over.
    #[must_use]
    pub fn event(mut self, name: &'static str, data: &Value) -> Self {
        self.push(name, data.to_string());
        self
    }

    /// An error event (`overloaded_error`, `api_error`, …) that ends the stream here; what is added later is not sent.
    #[must_use]
    pub fn error(mut self, kind: &str, message: &str) -> Self {
        let data = format!(r#"{{"type":"error","error":{{"type":{},"message":{}}}}}"#, quoted(kind), quoted(message));
        self.push("error", data);
        self.broken = true;
        self
    }

    /// The events, each with its name line, its data line and the empty line that ends it.
    #[must_use]
    pub fn events(&self) -> Vec<String> {
        let u = &self.usage;
        let cached =
            format!(r#""cache_creation_input_tokens":{},"cache_read_input_tokens":{}"#, u.cache_write, u.cache_read);
        let start = format!(
            r#"{{"type":"message_start","message":{{"id":{},"type":"message","role":"assistant","model":{},"content":[],"stop_reason":null,"stop_sequence":null,"usage":{{"input_tokens":{},{cached},"output_tokens":1}}}}}}"#,
            quoted(&self.id),
            quoted(&self.model),
            u.input,
        );
        let mut events = vec![("message_start", start)];
        events.extend(self.body.iter().cloned());
        if !self.broken {
            let stop = self.stop.as_deref().unwrap_or(if self.called { "tool_use" } else { "end_turn" });
            let delta = format!(
                r#"{{"type":"message_delta","delta":{{"stop_reason":{},"stop_sequence":null}},"usage":{{"input_tokens":{},{cached},"output_tokens":{}}}}}"#,
                quoted(stop),
                u.input,
                u.output,
            );
            events.push(("message_delta", delta));
            events.push(("message_stop", r#"{"type":"message_stop"}"#.into()));
        }
        events.into_iter().map(|(name, data)| format!("event: {name}\ndata: {data}\n\n")).collect()
    }

    /// The bytes of the stream.
    #[must_use]
    pub fn sse(&self) -> Vec<u8> {
        self.events().concat().into_bytes()
    }

    /// Offsets in [`Turn::sse`] just behind each event: places for a gate or a cut between events.
    #[must_use]
    pub fn event_ends(&self) -> Vec<usize> {
        let grow = |sum: &mut usize, e: String| {
            *sum += e.len();
            Some(*sum)
        };
        self.events().into_iter().scan(0, grow).collect()
    }

    /// The stream as a reply of the stub, one write an event.
    #[must_use]
    pub fn reply(&self) -> Reply {
        Reply::sse(self.sse()).header("request-id", &format!("req_{}", self.id)).split_at(&self.event_ends())
    }

    fn block(mut self, start: &str, deltas: Vec<String>) -> Self {
        let index = self.blocks;
        self.start(index, start);
        for d in deltas {
            self.delta(index, &d);
        }
        self.finish(index);
        self
    }

    fn start(&mut self, index: usize, block: &str) {
        self.push(
            "content_block_start",
            format!(r#"{{"type":"content_block_start","index":{index},"content_block":{block}}}"#),
        );
        if index == 0 {
            self.push("ping", r#"{"type":"ping"}"#.into());
        }
        self.blocks += 1;
    }

    fn delta(&mut self, index: usize, delta: &str) {
        self.push(
            "content_block_delta",
            format!(r#"{{"type":"content_block_delta","index":{index},"delta":{delta}}}"#),
        );
    }

    fn finish(&mut self, index: usize) {
        self.push("content_block_stop", format!(r#"{{"type":"content_block_stop","index":{index}}}"#));
    }

    fn push(&mut self, name: &'static str, data: String) {
        if !self.broken {
            self.body.push((name, data));
        }
    }

    fn argument_deltas(&self, text: &str) -> Vec<String> {
        let parts = std::iter::once(String::new()).chain(self.cut(text));
        parts.map(|t| delta("input_json_delta", "partial_json", &t)).collect()
    }

    fn cut(&self, text: &str) -> Vec<String> {
        let chars: Vec<char> = text.chars().collect();
        chars.chunks(self.delta_chars).map(|c| c.iter().collect()).collect()
    }
}

/// An answer with an error status: `error(529, "overloaded_error", "Overloaded")`, `error(429, "rate_limit_error", …)`.
/// A `retry-after` is added with [`Reply::header`].
#[must_use]
pub fn error(status: u16, kind: &str, message: &str) -> Reply {
    Reply::json(
        status,
        &json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_stub"}),
    )
    .header("request-id", "req_stub")
}

fn delta(kind: &str, field: &str, text: &str) -> String {
    format!(r#"{{"type":"{kind}","{field}":{}}}"#, quoted(text))
}

fn tool_use(id: &str, name: &str) -> String {
    format!(r#"{{"type":"tool_use","id":{},"name":{},"input":{{}}}}"#, quoted(id), quoted(name))
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}
