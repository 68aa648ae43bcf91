//! What happens, as faces see it.

use crate::{AskEnd, Asked, Mode, Snapshot};
use gjc_entry::{Label, Level, OpId, Usage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Something that happened. Numbers rise by one for each event of a session, from 1. A face's first event (`session`) bears
/// the number of the last event before it, 0 at the start; a merged event the last number of those that went into it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    /// Its number.
    pub seq: u64,
    /// What happened.
    #[serde(flatten)]
    pub body: EventBody,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum EventBody {
    /// A session is there: the first event of every face.
    Session {
        /// Its id.
        id: String,
        /// The folder it works in.
        cwd: String,
        /// Its file; absent with `--no-session`.
        #[serde(skip_serializing_if = "Option::is_none")]
        file: Option<String>,
        /// Whether it had entries before.
        resumed: bool,
        /// Its label.
        label: LabelInfo,
    },
    /// Prompts of this folder that nobody answered: their processes ended before a session held them. Comes right after
    /// `session`, with its number, if there are any. `gjc prompts` has all of them.
    Unanswered {
        /// How many there are.
        count: usize,
        /// The oldest, oldest first.
        prompts: Vec<Unanswered>,
    },
    /// A turn begins.
    TurnStarted,
    /// The model begins to answer.
    MessageStarted,
    /// More text of block `index`.
    TextDelta {
        /// The block within the answer.
        index: u16,
        /// The new text.
        text: String,
    },
    /// More reasoning of block `index`.
    ThinkingDelta {
        /// The block within the answer.
        index: u16,
        /// The new text.
        text: String,
    },
    /// More of the arguments of a call, as raw JSON text.
    CallDelta {
        /// The block within the answer.
        index: u16,
        /// The new text.
        text: String,
    },
    /// A message was admitted to the log: a person's, the model's or a tool's.
    Message {
        /// Its entry.
        entry: String,
        /// The message, as the session file holds it.
        message: Value,
    },
    /// A tool begins.
    ToolStarted {
        /// Which act.
        #[schemars(with = "String")]
        op: OpId,
        /// The tool.
        tool: String,
        /// Its input.
        input: Value,
    },
    /// A tool has something to show.
    ToolProgress {
        /// Which act.
        #[schemars(with = "String")]
        op: OpId,
        /// More of its output.
        text: String,
    },
    /// A tool has ended.
    ToolEnded(ToolEnd),
    /// A person is asked: a call waits for their yes, or the model for their answer.
    Asked(Asked),
    /// It was answered, or will not be any more.
    Answered {
        /// Which ask.
        ask: String,
        /// How it ended.
        end: AskEnd,
    },
    /// The session's mode changed.
    Mode {
        /// The mode.
        mode: Mode,
    },
    /// A background job begins. It goes on beside turns; `tool_ended` of the call that started it comes at once.
    JobStarted {
        /// Its id, as the model knows it.
        id: String,
        /// The act that started it.
        #[schemars(with = "String")]
        op: OpId,
        /// The tool that runs it.
        tool: String,
        /// What it does, in few words.
        what: String,
    },
    /// A background job has something to show. What it writes in a moment comes together, and of very much the end.
    JobProgress {
        /// Which job.
        id: String,
        /// More of its output.
        text: String,
    },
    /// A background job has ended. The message that tells the model so follows when it can be taken in.
    JobEnded {
        /// Which job.
        id: String,
        /// How.
        status: JobStatus,
    },
    /// A person's own command begins (`bash`). A `message` of the role `bashExecution` tells its end.
    BashStarted {
        /// The command.
        command: String,
    },
    /// A person's own command has something to show.
    BashProgress {
        /// More of its output.
        text: String,
    },
    /// The queue of prompts changed.
    Queued {
        /// How many wait.
        waiting: usize,
    },
    /// The session stands at another place now: messages of the active path are others. Ask for a snapshot.
    LeafMoved {
        /// The entry that the next one follows; absent before all entries.
        #[serde(skip_serializing_if = "Option::is_none")]
        leaf: Option<String>,
    },
    /// The session goes on in another file, under another id: its own was lost to another program.
    Rescued {
        /// The new id.
        id: String,
        /// The new file.
        file: String,
    },
    /// Another session is open now. Nothing of the one before is part of it. Ask for a snapshot.
    Switched {
        /// Its id.
        id: String,
        /// The folder it works in.
        cwd: String,
        /// Its file; absent with `--no-session`.
        #[serde(skip_serializing_if = "Option::is_none")]
        file: Option<String>,
        /// Whether it had entries before.
        resumed: bool,
        /// How it came to that.
        reason: SwitchReason,
        /// Its label.
        label: LabelInfo,
    },
    /// The session has another name.
    Renamed {
        /// The name.
        name: String,
    },
    /// What an answer took.
    Usage {
        /// Tokens and cost of this answer.
        #[schemars(with = "Value")]
        usage: Usage,
    },
    /// The session's label changed.
    Label(LabelInfo),
    /// The model could not answer and will be asked again.
    Retry {
        /// Which attempt comes next, from 2.
        attempt: u32,
        /// In how many milliseconds.
        delay_ms: u64,
        /// Why.
        why: String,
    },
    /// The provider's usage limit is reached, and the session waits for its reset; then the model is asked once more. Told at
    /// the beginning and again while it waits, the more often the less is left. An abort ends it.
    QuotaWait {
        /// When the model is asked again, ISO 8601.
        until: String,
        /// In how many milliseconds.
        left_ms: u64,
        /// What the provider says.
        why: String,
    },
    /// Something that a person should read.
    Notice {
        /// The sentence.
        text: String,
    },
    /// Storage began or ceased to fail.
    Storage(Health),
    /// The last answer is not the answer of the turn: a `pre_output` hook held it back, or the turn ended before all of them let
    /// it pass. What a face has shown of it stays what it is; nothing may take it for the answer.
    Withheld,
    /// Something failed; the turn ends.
    Error {
        /// Stable code.
        code: String,
        /// The sentence.
        sentence: String,
        /// The way out.
        #[serde(skip_serializing_if = "Option::is_none")]
        hint: Option<String>,
    },
    /// A turn has ended, and all that it admitted is durable (or `Storage` has said that it is not).
    TurnEnded {
        /// How.
        end: TurnEnd,
    },
    /// This face was too slow: events were dropped for it. Ask for a snapshot.
    Resync,
    /// The state after a `resync`, where no snapshot can be asked for (`--mode json`).
    Snapshot {
        /// Everything, as it is now.
        state: Box<Snapshot>,
    },
    /// The session is closed: the last event.
    Closed,
}

/// A prompt that nobody answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unanswered {
    /// Its number for `gjc prompts show` and `forget`.
    pub id: i64,
    /// The beginning of its text, at most 200 characters.
    pub text: String,
    /// Whether that is all of it.
    pub whole: bool,
    /// The session that it was said to, and that may not exist.
    pub session: String,
    /// When, ISO 8601.
    pub at: String,
}

/// How a tool ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolEnd {
    /// Which act.
    #[schemars(with = "String")]
    pub op: OpId,
    /// The tool.
    pub tool: String,
    /// Whether it failed.
    pub is_error: bool,
    /// How long it took.
    pub ms: u64,
}

/// How a background job does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum JobStatus {
    /// It runs.
    Running,
    /// It has ended well.
    Completed,
    /// It has ended otherwise, or with gjc.
    Failed,
    /// It was ended by the model, by a person or with its session.
    Cancelled,
}

impl JobStatus {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TurnEnd {
    /// With an answer.
    Done,
    /// By a person.
    Aborted,
    /// By a failure.
    Failed,
}

/// How another session came to be the one that is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SwitchReason {
    /// It is new.
    New,
    /// It was there, and goes on.
    Resume,
    /// It is a copy of the one before.
    Fork,
    /// It has the beginning of the one before.
    Branch,
    /// It is the one before, in another folder.
    Move,
}

/// A label in an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LabelInfo {
    /// The level.
    #[schemars(with = "String")]
    pub level: Level,
    /// Integrity.
    pub trusted: bool,
}

impl From<Label> for LabelInfo {
    fn from(label: Label) -> Self {
        Self { level: label.level, trusted: label.trusted }
    }
}

/// How storage does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "health", rename_all = "snake_case")]
pub enum Health {
    /// All is written.
    Ok,
    /// Entries are in memory only, and will be written as soon as that is possible again.
    Failing {
        /// Why.
        why: String,
    },
}

/// What became of an attempt to merge two events.
#[derive(Debug, PartialEq)]
pub enum Merge {
    /// The later one went into the earlier one.
    Done,
    /// They cannot be merged; here is the later one back.
    No(Event),
}

impl Event {
    /// Appends a later event of the same kind and block to this one, if both are deltas.
    pub fn merge(&mut self, later: Event) -> Merge {
        let merged = match (&mut self.body, &later.body) {
            (EventBody::TextDelta { index, text }, EventBody::TextDelta { index: other, text: more })
            | (EventBody::ThinkingDelta { index, text }, EventBody::ThinkingDelta { index: other, text: more })
            | (EventBody::CallDelta { index, text }, EventBody::CallDelta { index: other, text: more })
                if index == other =>
            {
                text.push_str(more);
                true
            }
            (EventBody::ToolProgress { op, text }, EventBody::ToolProgress { op: other, text: more })
                if op == other =>
            {
                text.push_str(more);
                true
            }
            (EventBody::JobProgress { id, text }, EventBody::JobProgress { id: other, text: more }) if id == other => {
                text.push_str(more);
                true
            }
            (EventBody::BashProgress { text }, EventBody::BashProgress { text: more }) => {
                text.push_str(more);
                true
            }
            _ => false,
        };
        if !merged {
            return Merge::No(later);
        }
        self.seq = later.seq;
        Merge::Done
    }

    /// Roughly what it takes in memory, in bytes.
    #[must_use]
    pub fn weight(&self) -> usize {
        64 + match &self.body {
            EventBody::TextDelta { text, .. }
            | EventBody::ThinkingDelta { text, .. }
            | EventBody::CallDelta { text, .. }
            | EventBody::ToolProgress { text, .. }
            | EventBody::JobProgress { text, .. }
            | EventBody::BashProgress { text } => text.len(),
            EventBody::Message { message, .. } => value_weight(message),
            EventBody::ToolStarted { input, .. } => value_weight(input),
            EventBody::Asked(asked) => asked.weight(),
            _ => 64,
        }
    }
}

fn value_weight(value: &Value) -> usize {
    match value {
        Value::String(text) => 32 + text.len(),
        Value::Array(items) => 32 + items.iter().map(value_weight).sum::<usize>(),
        Value::Object(fields) => {
            32 + fields.iter().map(|(key, value)| 32 + key.len() + value_weight(value)).sum::<usize>()
        }
        _ => 32,
    }
}
