//! What a face may ask for.

use crate::{Answer, Mode, TreeFilter};
use gjc_entry::{EntryId, Origin, Thinking, Tier};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;

/// The face's own name for a command; the reply bears it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct CmdId(pub String);

/// A command and its name.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cmd {
    /// The face's name for it.
    pub id: CmdId,
    /// What is asked.
    pub command: Command,
}

/// What is asked.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Command {
    /// Say something. While a turn runs it is queued.
    Prompt {
        /// The words.
        parts: Vec<PromptPart>,
        /// When it enters, if a turn is running.
        #[serde(default)]
        mode: PromptMode,
    },
    /// Take the newest queued prompt back; the reply holds its text.
    Unqueue,
    /// End the running turn; of an idle session the command of `bash`, or the jobs that its end waits for.
    Abort,
    /// Run a person's own command, whatever the session does, outside of any sandbox. One at a time. Its output enters the
    /// conversation when no call waits for its result.
    Bash {
        /// The command, for `bash -c`.
        command: String,
        /// Keep it from the model; the session holds it all the same.
        #[serde(default)]
        exclude_from_context: bool,
    },
    /// End the command of `bash`.
    AbortBash,
    /// Go to another place of the session, while no turn runs. A message of a person is left out, to be said anew: the
    /// place is then the entry before it, and the reply holds its text (`text`). The reply's `leaf` is the place; nothing
    /// is written when the session stands there already.
    MoveLeaf {
        /// The entry; `null` is the beginning, before all entries.
        #[serde(deserialize_with = "Option::deserialize")]
        #[schemars(with = "String", extend("type" = ["string", "null"]))]
        to: Option<EntryId>,
    },
    /// Answer something that the session has asked (event `asked`). Each is answered once.
    Answer {
        /// Its name.
        ask: String,
        /// What is said to it.
        value: Answer,
    },
    /// Begin plan mode, or end it, while no turn runs. The reply's `mode` is the mode; nothing is written when the session is
    /// in it already.
    SetMode {
        /// The mode.
        mode: Mode,
    },
    /// Give a place of the session a name. Control characters become spaces.
    Label {
        /// The entry.
        #[schemars(with = "String")]
        target: EntryId,
        /// The name; without one, or with an empty one, the place loses its name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        label: Option<String>,
    },
    /// Another model, from the next request on: as it is named with `--model`, for the conversation or, with the role `plan`, for
    /// plan mode. The reply comes when it was found, and holds
    /// its `provider`, `model` and `api`. A session that is resumed keeps it.
    SetModel {
        /// `PROVIDER/MODEL`.
        model: String,
        /// For what.
        #[serde(default)]
        role: Role,
    },
    /// How long the model may think, from the next request on.
    SetThinking {
        /// `off`, `minimal`, `low`, `medium`, `high` or `xhigh`.
        #[schemars(with = "String", extend("enum" = Thinking::ALL.map(Thinking::as_str)))]
        level: Thinking,
    },
    /// How soon requests are served, and for which price, from the next request on.
    SetTier {
        /// `auto`, `default`, `flex`, `scale` or `priority`.
        #[schemars(with = "String", extend("enum" = Tier::ALL.map(Tier::as_str)))]
        tier: Tier,
    },
    /// Go on with another session, from now on: the one that is open stops its work, and stays as it is then. Commands that
    /// come before the reply wait for it, and are for the session that is open then; those of a switch that was refused are
    /// refused too. The reply holds the id (`session`), the `file`, whether it is another one (`switched`; `false` for the
    /// one that is open), and which prompts still waited (`unsaid`).
    Switch {
        /// The beginning of its id, or its file.
        session: String,
    },
    /// Go on with a new session in the same folder. The reply is that of `switch`.
    NewSession,
    /// Go on in a copy of the session under an id of its own, while nothing runs. The reply is that of `switch`.
    Fork {
        /// What is said there, and there alone.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        prompt: Vec<PromptPart>,
    },
    /// Go on in a new session that has everything before a message of a person, while nothing runs. The reply is that of `switch`,
    /// with the message's `text`, to be said anew.
    Branch {
        /// The message.
        #[schemars(with = "String")]
        entry: EntryId,
    },
    /// Take the session along to another folder, while nothing runs: from now on it works there. The reply is that of `switch`.
    MoveSession {
        /// The folder; a relative one begins at the session's own.
        to: String,
    },
    /// Put a session into the trash. Of the one that is open a new one takes the place: the reply is then that of `switch`.
    /// It holds where it is now (`deleted`).
    DeleteSession {
        /// The beginning of its id, or its file; without one it is the session that is open.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<String>,
        /// Whether a person has said yes to it.
        #[serde(default)]
        confirm: bool,
    },
    /// Give the session a name. Control characters become spaces. The reply holds the `name` as it was stored.
    Rename {
        /// The name.
        name: String,
    },
    /// What the session is: see the schema `session-report`.
    Session,
    /// The session's places as a tree, in the order of the file: see the schema `tree`.
    Tree {
        /// Which of them.
        #[serde(default)]
        filter: TreeFilter,
        /// How many are passed over.
        #[serde(default)]
        from: usize,
        /// How many are given at most; 500 without it, never more than 2,000.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<usize>,
    },
    /// Go on in a new file when another program has replaced, cut or deleted the session's own: a fork with all that can
    /// still be read. The reply holds its `id` and `file`.
    Rescue,
    /// Write the session as one page of HTML. The reply comes when it is there, and holds its file (`page`) and length
    /// (`bytes`); of a page that was to be opened, whether that was begun (`opened`), and else why not (`notOpened`).
    Export {
        /// The page; a relative path is in the session's folder. By default `gjc-session-<name of the session's file>.html`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<String>,
        /// Replace the file whatever it is, unless it is a session. An earlier page is replaced without it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        force: bool,
        /// Open it then, with the program of the desktop for pages.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        open: bool,
        /// What a person typed behind `/export`, instead of `path` and `open`: a path that ends at its first blank,
        /// `--no-open`, `--force`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        typed: Option<String>,
    },
    /// The whole state as a face needs it.
    Snapshot,
    /// The session as one text, as it is now: settings, system prompt, tools, every entry of the path. Nothing is written. The
    /// reply holds the `text`, and how secret it is (`label`).
    Dump,
    /// Share the session's page, without keys, as a secret gist or with `share.command`. Without `confirm` nothing is sent: the
    /// reply holds where it would go (`to`), its `name` and length (`bytes`), what was taken out (`masked`: each `kind` and its
    /// `count`), and `confirm`. With that, once a person has said yes, this very page is sent (`shared`); the reply then holds
    /// its `address`, if the program has told one.
    Share {
        /// What the reply before held: yes to that page, and to no other.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        confirm: Option<String>,
    },
    /// End the session at once: stop work, make everything durable. The reply says whether all is stored (`stored`), how
    /// the last turn ended (`end`), and which prompts still waited (`unsaid`).
    Close,
    /// End the session once nothing runs and nothing waits. What is asked from then on, or waits for an answer, is not
    /// answered any more. The reply is that of `close`.
    Finish,
}

/// What a model is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The conversation.
    #[default]
    Default,
    /// The conversation in plan mode.
    Plan,
}

/// A piece of a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PromptPart {
    /// The words; of a picture, what is said of it.
    #[serde(default)]
    pub text: String,
    /// How they came: `typed`, `paste` or `media`.
    #[schemars(with = "String")]
    #[serde(default = "paste")]
    pub origin: Origin,
    /// A picture that follows the words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub picture: Option<Picture>,
    /// Whether somebody else may have written it: a file from outside of the session's folder, say.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub untrusted: bool,
}

impl PromptPart {
    /// Words, and nothing else.
    #[must_use]
    pub fn new(text: impl Into<String>, origin: Origin) -> Self {
        Self { text: text.into(), origin, picture: None, untrusted: false }
    }
}

/// A picture in a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Picture {
    /// Its kind: `image/png`, `image/jpeg`, `image/gif` or `image/webp`.
    pub mime: String,
    /// Its bytes in base64.
    pub data: String,
}

fn paste() -> Origin {
    Origin::Paste
}

/// When a prompt enters while a turn runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PromptMode {
    /// At the next step, before the model is asked again.
    #[default]
    Steer,
    /// When the turn has ended.
    FollowUp,
}

/// The one answer to a command.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Reply {
    /// The command's name; absent when the command could not be read at all.
    pub id: Option<CmdId>,
    /// What became of it.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// What became of a command.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// It was taken; events tell the rest.
    Accepted,
    /// It is done.
    Done {
        /// What it gave.
        value: Value,
    },
    /// It was not done, and nothing has changed.
    Refused(Refusal),
}

/// Why something was not done: a code for programs, a sentence and a way out for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Refusal {
    /// Stable, `snake_case`, never translated.
    pub code: String,
    /// One sentence that names the thing.
    pub sentence: String,
    /// The way out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Refusal {
    /// A refusal without a hint.
    #[must_use]
    pub fn new(code: &str, sentence: impl Into<String>) -> Self {
        Self { code: code.into(), sentence: sentence.into(), hint: None }
    }

    /// Adds the way out.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)?;
        match &self.hint {
            Some(hint) => write!(f, "\nhint: {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Refusal {}
