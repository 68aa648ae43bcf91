//! What a person is asked while a session works, and what they say to it.

use gjc_entry::OpId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Something that waits for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Asked {
    /// Its name, for the command `answer`.
    pub ask: String,
    /// The call that it is about.
    #[schemars(with = "String")]
    pub op: OpId,
    /// What is asked.
    #[serde(flatten)]
    pub about: About,
}

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "about", rename_all = "snake_case")]
#[non_exhaustive]
pub enum About {
    /// Whether a call may run.
    Approval(Approval),
    /// What the model wants to know.
    Question(Question),
}

/// A call that runs only if a person says so. What is told here is what runs, byte for byte, or nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Approval {
    /// The tool.
    pub tool: String,
    /// How far the call reaches.
    pub reach: Reach,
    /// The command that would run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The file that would be written: its real path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// What would change, as a unified diff; of a tool with neither command nor file its input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
    /// Whether command or preview were too long and are cut at the end.
    pub cut: bool,
    /// What `session` as the answer allows from then on.
    pub remembers: Remembers,
}

/// How far a call reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    /// It changes files of the workspace.
    Workspace,
    /// It acts outside of it, or nobody can say how far it reaches.
    Outside,
}

/// What an answer `session` allows until the process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Remembers {
    /// The same command, letter for letter.
    Command,
    /// All changes of files in the workspace.
    Edits,
    /// The same call, letter for letter.
    Call,
}

/// A question of the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Question {
    /// The question.
    pub question: String,
    /// What can be chosen; empty for a question that is answered in words alone.
    pub choices: Vec<Choice>,
    /// Whether several may be chosen.
    pub several: bool,
    /// Whether an answer in own words is taken.
    pub free: bool,
}

/// Something that can be chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Choice {
    /// What the answer then is.
    pub label: String,
    /// What it means.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
}

/// What a person says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Answer {
    /// The call may run, this one time.
    Once,
    /// The call may run, and what the ask's `remembers` says, until the process ends.
    Session,
    /// The call may not run, or the question is not answered.
    Deny {
        /// What the model should hear with it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        words: Option<String>,
    },
    /// The answer to a question: choices, own words, or both.
    Reply {
        /// Places in the question's `choices`, from 0.
        #[serde(default)]
        choices: Vec<usize>,
        /// Own words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
    },
}

/// How an ask ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AskEnd {
    /// The call may run once.
    Once,
    /// The call, and its like, may run.
    Session,
    /// A person said no.
    Denied,
    /// A person answered.
    Replied,
    /// Nobody answered before the turn or the session ended.
    Withdrawn,
}

/// What a session is doing in general.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// It works as usual.
    #[default]
    None,
    /// It looks and asks, and makes a plan; it changes nothing.
    Plan,
}

impl Asked {
    /// Roughly what its texts take in memory, in bytes.
    pub(crate) fn weight(&self) -> usize {
        let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        match &self.about {
            About::Approval(Approval { command, path, preview, .. }) => text(command) + text(path) + text(preview),
            About::Question(Question { question, choices, .. }) => {
                question.len()
                    + choices.iter().map(|choice| 64 + choice.label.len() + text(&choice.about)).sum::<usize>()
            }
        }
    }
}
