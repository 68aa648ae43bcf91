//! What the tests share: requests without a log, a clock that stands still, a server that says what it is told.

use bytes::Bytes;
use futures_util::StreamExt;
use gjc_context::{CacheMarks, Checked, Folds, Msg, Request, Said, View, check, view};
use gjc_entry::message::ImageData;
use gjc_entry::{
    AssistantMessage, At, BlobRef, Blobs, Block, Body, BoxFuture, Clock, Content, Damage, Entry, EntryId, Kind, Label,
    Leaf, Message, Missing, ModelRef, NeedsIndex, Origin, Params, PathNode, PathNodes, RequestEnv, Skeleton, Source,
    Thinking, Timestamp, ToolResult, UserMessage,
};
use gjc_llm::{Assembler, End, ProviderError, StreamEvent};
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

pub(crate) fn blob(n: u8) -> BlobRef {
    BlobRef([n; 32])
}

#[derive(Default, Clone)]
pub(crate) struct Store(pub(crate) HashMap<BlobRef, Arc<[u8]>>);

impl Blobs for Store {
    fn get(&self, blob: &BlobRef) -> Result<Arc<[u8]>, Missing> {
        self.0.get(blob).cloned().ok_or_else(|| Missing { blob: *blob, why: "/some/path of this machine".into() })
    }
}

impl Store {
    /// System prompt in blob 1, tools in blob 2.
    pub(crate) fn new(system: &str, tools: &str) -> Self {
        let mut store = Self::default();
        store.0.insert(blob(1), system.as_bytes().into());
        store.0.insert(blob(2), tools.as_bytes().into());
        store
    }
}

pub(crate) fn model() -> ModelRef {
    ModelRef { provider: "anthropic".into(), id: "claude-x".into(), api: "anthropic-messages".into() }
}

pub(crate) fn env(thinking: Thinking) -> RequestEnv {
    let params = Params { max_tokens: 32_000 };
    RequestEnv {
        all_tools: Vec::new(),
        system: blob(1),
        tools: blob(2),
        model: model(),
        thinking,
        tier: gjc_entry::Tier::Auto,
        params,
        renderer: 1,
        held: None,
    }
}

pub(crate) fn text(text: &str) -> Block {
    Block::text(text, Origin::Typed)
}

pub(crate) fn thought(thinking: &str, signature: Option<&str>) -> Block {
    Block::Thinking { thinking: thinking.into(), signature: signature.map(Into::into), extra: Vec::new() }
}

pub(crate) fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.into()).unwrap()
}

pub(crate) fn call(id: &str, name: &str, arguments: &str) -> Block {
    Block::ToolCall { id: id.into(), name: name.into(), arguments: raw(arguments), extra: Vec::new() }
}

pub(crate) fn png(data: ImageData) -> Block {
    Block::Image { data, mime: "image/png".into(), origin: Some(Origin::Media), extra: Vec::new() }
}

pub(crate) fn user(blocks: Vec<Block>) -> Msg {
    Msg { from: None, said: Said::User(blocks) }
}

pub(crate) fn answer(blocks: Vec<Block>) -> Msg {
    Msg { from: None, said: Said::Assistant { blocks, model: model() } }
}

pub(crate) fn result(call: &str, content: Vec<Block>, is_error: bool) -> Msg {
    Msg { from: None, said: Said::Result { call: call.into(), tool: "read".into(), content, is_error } }
}

/// A checked request with the marks of its view.
pub(crate) fn request(env: RequestEnv, messages: Vec<Msg>) -> Checked<Request> {
    let view = View { messages };
    let cache = CacheMarks::of(&view);
    check(Request { env, view: view.clone(), cache }, &view).unwrap()
}

/// A session in memory: a path of messages.
pub(crate) struct Session(pub(crate) Vec<Message>);

impl Source for Session {
    fn path(&self, _: Leaf) -> Result<PathNodes, NeedsIndex> {
        let node = |index: usize| PathNode {
            at: At { off: index as u64, len: 1 },
            kind: Kind::Message,
            label: Label::PUBLIC_TRUSTED,
            id: EntryId::Short(index as u32),
        };
        Ok(PathNodes((0..self.0.len()).map(node).collect()))
    }

    fn skeleton(&self) -> Option<&Skeleton> {
        None
    }

    fn body(&self, at: At) -> Result<Arc<Entry>, Damage> {
        Ok(Arc::new(Entry {
            id: EntryId::Short(at.off as u32),
            parent: None,
            at: Timestamp::from_millis(0),
            label: None,
            body: Body::Message(self.0[at.off as usize].clone()),
            extra: Vec::new(),
        }))
    }
}

impl Session {
    pub(crate) fn view(&self) -> View {
        view(self, Leaf::Current, &mut Folds::default()).unwrap().0
    }

    /// The same after a way through JSON.
    pub(crate) fn reread(&self) -> Self {
        let reread = |message: &Message| {
            let mut json = Vec::new();
            message.write(&mut json);
            let json = String::from_utf8(json).unwrap();
            assert!(!json.contains('\n'), "an entry is one line");
            Message::from_json(&raw(&json)).unwrap()
        };
        Self(self.0.iter().map(reread).collect())
    }
}

pub(crate) fn said(text: &str) -> Message {
    let content = Content::Blocks(vec![Block::text(text, Origin::Typed)]);
    Message::User(UserMessage { content, at: 0, extra: Vec::new() })
}

pub(crate) fn tool_result(call: &str, text: &str) -> Message {
    Message::ToolResult(ToolResult {
        call_id: call.into(),
        tool: "read".into(),
        content: Content::Blocks(vec![Block::text(text, Origin::Tool)]),
        details: None,
        is_error: false,
        at: 0,
        extra: Vec::new(),
    })
}

pub(crate) fn json(message: &AssistantMessage) -> String {
    let mut out = Vec::new();
    Message::Assistant(message.clone()).write(&mut out);
    String::from_utf8(out).unwrap()
}

/// Runs a future with time, on this thread.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

pub(crate) type Answer = Vec<Result<StreamEvent, ProviderError>>;

/// Decodes pieces of a body.
pub(crate) async fn decoded(pieces: Vec<Bytes>) -> Answer {
    let pieces = pieces.into_iter().map(Ok::<_, std::io::Error>);
    gjc_llm::anthropic::decode(futures_util::stream::iter(pieces)).collect().await
}

/// The message of an answer, and its error.
pub(crate) fn assembled(answer: Answer) -> (AssistantMessage, Option<ProviderError>) {
    assembled_of(model(), answer)
}

/// The message of a model's answer, and its error.
pub(crate) fn assembled_of(model: ModelRef, answer: Answer) -> (AssistantMessage, Option<ProviderError>) {
    let mut assembler = Assembler::new(model);
    let mut error = None;
    for event in answer {
        assert!(error.is_none(), "nothing follows an error");
        match event {
            Ok(event) => assembler.push(event),
            Err(failure) => error = Some(failure),
        }
    }
    let end = error.as_ref().map_or(End::Complete, |error| End::Error(error.to_string()));
    (assembler.finish(end, 7), error)
}

/// Wall time stands still; sleeping is noted and takes none.
pub(crate) struct Still(pub(crate) Mutex<Vec<Duration>>);

impl Still {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::default()))
    }
}

impl Clock for Still {
    fn wall(&self) -> Timestamp {
        "2026-06-05T07:18:54.000Z".parse().unwrap()
    }
    fn mono(&self) -> Instant {
        Instant::now()
    }
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.0.lock().unwrap().push(duration);
        Box::pin(std::future::ready(()))
    }
}

/// What the server does once it has read a request.
#[derive(Clone)]
pub(crate) enum Reply {
    /// Sends these pieces, then closes.
    Pieces(Vec<Vec<u8>>),
    /// Sends this, then keeps the connection open and silent.
    ThenSilence(Vec<u8>),
}

/// A server on loopback: one reply a connection, in order; gives each request as it came.
pub(crate) struct Server {
    pub(crate) at: SocketAddr,
    pub(crate) requests: mpsc::Receiver<String>,
}

impl Server {
    pub(crate) fn new(replies: Vec<Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let (seen, requests) = mpsc::channel();
        std::thread::spawn(move || {
            let mut silent = Vec::new();
            for reply in replies {
                let Ok((mut stream, _)) = listener.accept() else { return };
                stream.set_nodelay(true).unwrap();
                let _ = seen.send(read_request(&mut stream));
                match reply {
                    Reply::Pieces(pieces) => {
                        for piece in pieces {
                            let _ = stream.write_all(&piece);
                        }
                    }
                    Reply::ThenSilence(bytes) => {
                        let _ = stream.write_all(&bytes);
                        silent.push(stream);
                    }
                }
            }
            // Silent connections end when the client is gone.
            for mut stream in silent {
                let _ = stream.read(&mut [0; 16]);
            }
        });
        Self { at, requests }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.at)
    }
}

/// One request: head and body.
pub(crate) fn read_request(stream: &mut impl Read) -> String {
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length =
                head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
            if body.len() >= length.unwrap_or(0) {
                return text;
            }
        }
        match stream.read(&mut piece) {
            Ok(0) | Err(_) => return text,
            Ok(count) => bytes.extend_from_slice(&piece[..count]),
        }
    }
}

/// The head of an answer with events.
pub(crate) const HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\nconnection: close\r\n\r\n";

/// An answer as servers stream it: thinking with its signature in two pieces, Korean text, two calls with interleaved
/// arguments, and things that no client knows.
pub(crate) fn recorded() -> String {
    let events = [
        r#"{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-x","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":12,"cache_creation_input_tokens":5,"cache_read_input_tokens":100,"output_tokens":1}}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
        r#"{"type":"ping"}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"먼저 읽"}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"는다."}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"EqQ"}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"B=="}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"text","text":"파"}}"#,
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":""}}"#,
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"일을 \ud55c\uae00 \"읽\" 😀"}}"#,
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"citations_delta","citation":{"x":1}}}"#,
        r#"{"type":"content_block_stop","index":1}"#,
        r#"{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"toolu_A","name":"read","input":{}}}"#,
        r#"{"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"toolu_B","name":"grep","input":{}}}"#,
        r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":""}}"#,
        r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"path\": \"문"}}"#,
        r#"{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\"pattern\":"}}"#,
        r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"서.md\", \"n\": 1.50}"}}"#,
        r#"{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"\"\\\\w+\"}"}}"#,
        r#"{"type":"content_block_stop","index":3}"#,
        r#"{"type":"content_block_stop","index":2}"#,
        r#"{"type":"content_block_start","index":4,"content_block":{"type":"server_tool_use","id":"x","name":"web","input":{}}}"#,
        r#"{"type":"content_block_delta","index":4,"delta":{"type":"input_json_delta","partial_json":"{\"q\":1}"}}"#,
        r#"{"type":"content_block_stop","index":4}"#,
        r#"{"type":"brand_new_event","index":"none"}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":89}}"#,
        r#"{"type":"message_stop"}"#,
    ];
    let mut body = String::from(": 안녕, a comment\n\n");
    for event in events {
        let kind = event.split('"').nth(3).unwrap();
        body.push_str(&format!("event: {kind}\ndata: {event}\n\n"));
    }
    body
}

/// The message that [`recorded`] is.
pub(crate) const RECORDED: &str = r#"{"role":"assistant","content":[{"type":"thinking","thinking":"먼저 읽는다.","thinkingSignature":"EqQB=="},{"type":"text","text":"파일을 한글 \"읽\" 😀"},{"type":"toolCall","id":"toolu_A","name":"read","arguments":{"path": "문서.md", "n": 1.50}},{"type":"toolCall","id":"toolu_B","name":"grep","arguments":{"pattern":"\\w+"}}],"api":"anthropic-messages","provider":"anthropic","model":"claude-x","responseId":"msg_1","usage":{"input":12,"output":89,"cacheRead":100,"cacheWrite":5,"totalTokens":206,"cost":{"input":0.0,"output":0.0,"cacheRead":0.0,"cacheWrite":0.0,"total":0.0}},"stopReason":"toolUse","timestamp":7}"#;
