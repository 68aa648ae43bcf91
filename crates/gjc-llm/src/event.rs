//! What a model sends, for every wire, and how it becomes a message: whole, interrupted or cut.

use gjc_entry::message::Usage;
use gjc_entry::{AssistantMessage, Block, ModelRef, StopReason};
use serde_json::value::RawValue;

/// One event of an answer. Blocks are told apart by their index; their events may be interleaved.
#[derive(Debug, Clone, PartialEq)]
pub enum StreamEvent {
    /// The answer has begun.
    Start {
        /// The provider's name for it.
        response_id: Option<String>,
    },
    /// A block begins.
    BlockStart {
        /// Its place in the answer.
        index: u16,
        /// What it is.
        kind: BlockKind,
    },
    /// More of a block: words, reasoning, or JSON text of a call's arguments.
    Delta {
        /// Which block.
        index: u16,
        /// What to append. Whole characters, never empty.
        text: String,
    },
    /// A block is complete.
    BlockEnd {
        /// Which block.
        index: u16,
        /// The provider's signature, for reasoning; for a call what its provider wants back with it.
        signature: Option<String>,
    },
    /// Tokens so far; each replaces the one before.
    Usage(Usage),
    /// The answer is whole.
    Stop(StopReason),
}

/// What a block is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlockKind {
    /// Words.
    Text,
    /// Reasoning.
    Thinking,
    /// Reasoning that the provider keeps closed.
    RedactedThinking {
        /// Opaque data.
        data: String,
    },
    /// A call of a tool.
    ToolCall {
        /// The provider's id.
        id: String,
        /// The tool.
        name: String,
    },
}

/// How an answer ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// It is whole.
    Complete,
    /// A person interrupted it.
    Aborted,
    /// It failed; the sentence.
    Error(String),
}

/// The field of a call whose arguments broke off: the text that came. The call's arguments are `{}` then.
pub const INCOMPLETE: &str = "gjcIncomplete";

/// The field of a call that holds its signature, as the family writes it.
pub(crate) const CALL_SIGNATURE: &str = "thoughtSignature";

/// Makes a message of events. It never fails: what came is kept, what makes no sense is left out.
#[derive(Debug, Clone)]
pub struct Assembler {
    model: ModelRef,
    response_id: Option<String>,
    /// In the order of their indices.
    blocks: Vec<Open>,
    usage: Usage,
    stop: Option<StopReason>,
}

#[derive(Debug, Clone)]
struct Open {
    index: u16,
    kind: BlockKind,
    text: String,
    signature: Option<String>,
}

impl Assembler {
    /// For an answer of `model`.
    #[must_use]
    pub fn new(model: ModelRef) -> Self {
        Self { model, response_id: None, blocks: Vec::new(), usage: Usage::default(), stop: None }
    }

    /// Takes the next event. One for a block that never began is left out: its adapter did not know what it is.
    pub fn push(&mut self, event: StreamEvent) {
        match event {
            StreamEvent::Start { response_id } => self.response_id = response_id,
            StreamEvent::BlockStart { index, kind } => {
                let place = self.blocks.partition_point(|block| block.index <= index);
                self.blocks.insert(place, Open { index, kind, text: String::new(), signature: None });
            }
            StreamEvent::Delta { index, text } => {
                if let Some(block) = self.block(index) {
                    block.text.push_str(&text);
                }
            }
            StreamEvent::BlockEnd { index, signature } => {
                if let Some(block) = self.block(index) {
                    block.signature = signature.filter(|text| !text.is_empty());
                }
            }
            StreamEvent::Usage(usage) => self.usage = usage,
            StreamEvent::Stop(stop) => self.stop = Some(stop),
        }
    }

    /// The message, as it is stored. `at_millis`: milliseconds since the epoch.
    #[must_use]
    pub fn finish(self, why: End, at_millis: i64) -> AssistantMessage {
        let content: Vec<Block> = self.blocks.into_iter().filter_map(Open::close).collect();
        let calls = content.iter().any(|block| matches!(block, Block::ToolCall { .. }));
        let (stop, error) = match why {
            End::Complete => (self.stop.unwrap_or(if calls { StopReason::ToolUse } else { StopReason::Stop }), None),
            End::Aborted => (StopReason::Aborted, None),
            End::Error(sentence) => (StopReason::Error, Some(sentence)),
        };
        AssistantMessage {
            content,
            api: self.model.api,
            provider: self.model.provider,
            model: self.model.id,
            response_id: self.response_id,
            usage: self.usage,
            stop,
            error,
            at: at_millis,
            extra: Vec::new(),
        }
    }

    /// The newest block of an index: a provider that begins one twice means the second.
    fn block(&mut self, index: u16) -> Option<&mut Open> {
        let past = self.blocks.partition_point(|block| block.index <= index);
        self.blocks[..past].last_mut().filter(|block| block.index == index)
    }
}

impl Open {
    /// As it is stored; `None` when there is nothing in it.
    fn close(self) -> Option<Block> {
        let Self { kind, text, signature, .. } = self;
        Some(match kind {
            BlockKind::Text if text.is_empty() => return None,
            BlockKind::Text => Block::Text { text, origin: None, extra: Vec::new() },
            BlockKind::Thinking if text.is_empty() && signature.is_none() => return None,
            BlockKind::Thinking => Block::Thinking { thinking: text, signature, extra: Vec::new() },
            BlockKind::RedactedThinking { data } => Block::RedactedThinking { data, extra: Vec::new() },
            BlockKind::ToolCall { id, name } => {
                let (arguments, mut extra) = match arguments(&text) {
                    Some(arguments) => (arguments, Vec::new()),
                    None => (raw("{}"), vec![(INCOMPLETE.into(), json_string(&text))]),
                };
                extra.extend(signature.map(|signature| (CALL_SIGNATURE.into(), json_string(&signature))));
                Block::ToolCall { id, name, arguments, extra }
            }
        })
    }
}

/// Arguments as the model wrote them, `None` when they are not whole. A line feed between two tokens becomes a space: it
/// means the same, and a session file has one line for an entry.
fn arguments(text: &str) -> Option<Box<RawValue>> {
    if text.trim().is_empty() {
        return Some(raw("{}"));
    }
    // JSON strings hold no bare control characters, so in valid JSON each of these stands between tokens.
    RawValue::from_string(text.to_owned())
        .and_then(|whole| match whole.get().contains(['\n', '\r']) {
            true => RawValue::from_string(whole.get().replace(['\n', '\r'], " ")),
            false => Ok(whole),
        })
        .ok()
}

fn raw(json: &'static str) -> Box<RawValue> {
    RawValue::from_string(json.into()).expect("a literal that is JSON")
}

fn json_string(text: &str) -> Box<RawValue> {
    serde_json::value::to_raw_value(text).unwrap_or_else(|_| raw("\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(deltas: &[&str]) -> (String, Vec<(String, String)>) {
        let model = ModelRef { provider: "p".into(), id: "m".into(), api: "a".into() };
        let mut assembler = Assembler::new(model);
        assembler
            .push(StreamEvent::BlockStart { index: 3, kind: BlockKind::ToolCall { id: "c".into(), name: "t".into() } });
        for text in deltas {
            assembler.push(StreamEvent::Delta { index: 3, text: (*text).into() });
        }
        let message = assembler.finish(End::Complete, 1);
        assert_eq!(message.stop, StopReason::ToolUse);
        let Some(Block::ToolCall { arguments, extra, .. }) = message.content.into_iter().next() else { unreachable!() };
        (arguments.get().into(), extra.into_iter().map(|(name, value)| (name.into(), value.get().into())).collect())
    }

    #[test]
    fn arguments_stay_as_the_model_wrote_them() {
        assert_eq!(call(&[r#"{"n": 1.50,"#, r#""큰":1e2, "n":2}"#]).0, r#"{"n": 1.50,"큰":1e2, "n":2}"#);
        assert_eq!(call(&[]), ("{}".into(), Vec::new()));
        assert_eq!(call(&[" \n"]), ("{}".into(), Vec::new()));
        assert_eq!(call(&["{\r\n \"a\\n\": 1\n}"]).0, "{   \"a\\n\": 1 }");
    }

    #[test]
    fn half_arguments_are_kept_as_text() {
        let kept = vec![("gjcIncomplete".to_string(), r#""{\"path\":\"한""#.to_string())];
        assert_eq!(call(&[r#"{"path":"#, r#""한"#]), ("{}".into(), kept));
        assert_eq!(call(&[r#"{}{"#]).1.len(), 1);
    }

    #[test]
    fn unsigned_thinking_of_an_interrupted_answer_is_kept() {
        let model = ModelRef { provider: "p".into(), id: "m".into(), api: "a".into() };
        let mut assembler = Assembler::new(model);
        assembler.push(StreamEvent::BlockStart { index: 0, kind: BlockKind::Thinking });
        assembler.push(StreamEvent::Delta { index: 0, text: "생각".into() });
        assembler.push(StreamEvent::Delta { index: 9, text: "of nothing".into() });
        let message = assembler.finish(End::Aborted, 5);
        assert!(
            matches!(&message.content[..], [Block::Thinking { thinking, signature: None, .. }] if thinking == "생각")
        );
        assert_eq!((message.stop, message.at), (StopReason::Aborted, 5));
    }
}
