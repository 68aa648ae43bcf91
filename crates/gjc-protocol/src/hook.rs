//! What a hook is told, and what it may answer: one JSON object on its standard input, one on its standard output.

use crate::{LabelInfo, SwitchReason, TurnEnd};
use gjc_entry::OpId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// An event at which hooks are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HookEvent {
    /// Before a call runs. Guards.
    PreToolCall,
    /// After the result of a call is stored.
    PostToolResponse,
    /// Before an answer counts as the answer of the turn. Guards.
    PreOutput,
    /// After a turn has ended.
    TurnEnd,
    /// Before another session takes the place of the one that is open. Guards.
    SessionBeforeSwitch,
    /// After it has. Those of the other session are told.
    SessionSwitch,
    /// Before a session is branched at a message. Guards.
    SessionBeforeBranch,
    /// After it was. Those of the branch are told.
    SessionBranch,
}

impl HookEvent {
    /// Its name in settings and in what a hook is told.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::PreToolCall => "pre_tool_call",
            Self::PostToolResponse => "post_tool_response",
            Self::PreOutput => "pre_output",
            Self::TurnEnd => "turn_end",
            Self::SessionBeforeSwitch => "session_before_switch",
            Self::SessionSwitch => "session_switch",
            Self::SessionBeforeBranch => "session_before_branch",
            Self::SessionBranch => "session_branch",
        }
    }

    /// Whether what hooks of it print is read.
    #[must_use]
    pub const fn is_answered(self) -> bool {
        !matches!(self, Self::TurnEnd | Self::SessionSwitch | Self::SessionBranch)
    }
}

/// What a hook is told.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct HookCall {
    /// The session.
    pub session: String,
    /// The folder it works in, in which the hook is run.
    pub cwd: String,
    /// Its file; absent with `--no-session`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The session's label: how secret, and whether it holds words of others.
    pub label: LabelInfo,
    /// What happens.
    #[serde(flatten)]
    pub what: HookBody,
}

/// What happens, by its event.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum HookBody {
    /// A call is about to run. The hook answers with a `hook-verdict`.
    PreToolCall {
        /// Which act.
        #[schemars(with = "String")]
        op: OpId,
        /// The tool.
        tool: String,
        /// Its arguments, as the model wrote them.
        #[schemars(with = "Value")]
        input: Box<RawValue>,
    },
    /// A call has run, and its result is stored. The hook may answer with a `hook-addition`.
    PostToolResponse {
        /// Which act.
        #[schemars(with = "String")]
        op: OpId,
        /// The tool.
        tool: String,
        /// Its arguments, as the model wrote them.
        #[schemars(with = "Value")]
        input: Box<RawValue>,
        /// Whether the call failed.
        is_error: bool,
        /// The text of the result, as it is stored.
        text: String,
    },
    /// The model gave an answer without calls. The hook answers with a `hook-verdict`.
    PreOutput {
        /// The text of the answer.
        text: String,
    },
    /// A turn has ended. What the hook prints is not read.
    TurnEnd {
        /// How.
        end: TurnEnd,
    },
    /// Another session is about to take the place of this one. The hook answers with a `hook-verdict`; one that blocks keeps the
    /// session open.
    SessionBeforeSwitch {
        /// How it comes to that.
        reason: SwitchReason,
        /// Which one, where it is there already.
        #[serde(skip_serializing_if = "Option::is_none")]
        target: Option<OtherSession>,
    },
    /// This session has taken the place of another one. What the hook prints is not read.
    SessionSwitch {
        /// How it came to that.
        reason: SwitchReason,
        /// The session that was open before.
        previous: OtherSession,
    },
    /// A new session is about to be made of everything before a message of a person, and to take the place of this one; comes
    /// behind `session_before_switch`. The hook answers with a `hook-verdict`; one that blocks keeps the session open.
    SessionBeforeBranch {
        /// The message.
        entry: String,
    },
    /// This session was made of the beginning of another one, and has taken its place; comes behind `session_switch`. What the
    /// hook prints is not read.
    SessionBranch {
        /// The session that it was made of.
        previous: OtherSession,
    },
}

/// A session that is not the one that a hook runs in.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct OtherSession {
    /// Its id.
    pub session: String,
    /// Its file; absent with `--no-session`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

impl HookBody {
    /// Its event.
    #[must_use]
    pub const fn event(&self) -> HookEvent {
        match self {
            Self::PreToolCall { .. } => HookEvent::PreToolCall,
            Self::PostToolResponse { .. } => HookEvent::PostToolResponse,
            Self::PreOutput { .. } => HookEvent::PreOutput,
            Self::TurnEnd { .. } => HookEvent::TurnEnd,
            Self::SessionBeforeSwitch { .. } => HookEvent::SessionBeforeSwitch,
            Self::SessionSwitch { .. } => HookEvent::SessionSwitch,
            Self::SessionBeforeBranch { .. } => HookEvent::SessionBeforeBranch,
            Self::SessionBranch { .. } => HookEvent::SessionBranch,
        }
    }

    /// The tool whose call it is about.
    #[must_use]
    pub fn tool(&self) -> Option<&str> {
        match self {
            Self::PreToolCall { tool, .. } | Self::PostToolResponse { tool, .. } => Some(tool),
            _ => None,
        }
    }
}

/// What a hook that guards answers. An unknown field makes it no answer.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HookVerdict {
    /// May it be?
    pub decision: HookDecision,
    /// Why not, for the model.
    #[serde(default)]
    pub reason: Option<String>,
}

/// The decision of a hook that guards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HookDecision {
    /// As far as this hook is concerned.
    Allow,
    /// Not this.
    Block,
}

/// What a hook may answer to a result. Nothing at all is an answer too.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HookAddition {
    /// A text that the model hears after the result.
    #[serde(default)]
    pub add: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use gjc_entry::Level;

    #[test]
    fn arguments_are_told_as_the_model_wrote_them() {
        let input = RawValue::from_string(r#"{"b":1e999,"a":"\ud800 한글","a":2}"#.into()).unwrap();
        let op = "01a22c78-6247-707a-a63b-a30e5f46449a/2facead9/0".parse().unwrap();
        let call = HookCall {
            session: "s".into(),
            cwd: "/작업".into(),
            file: None,
            label: LabelInfo { level: Level::Public, trusted: true },
            what: HookBody::PreToolCall { op, tool: "bash".into(), input },
        };
        let told = serde_json::to_string(&call).unwrap();
        assert!(told.contains(r#""event":"pre_tool_call""#), "{told}");
        assert!(told.ends_with(r#""input":{"b":1e999,"a":"\ud800 한글","a":2}}"#), "{told}");
    }

    #[test]
    fn an_answer_is_exact_or_none() {
        let verdict = |text: &str| serde_json::from_str::<HookVerdict>(text);
        assert_eq!(verdict(r#"{"decision":"allow"}"#).unwrap().decision, HookDecision::Allow);
        assert_eq!(verdict(r#"{"decision":"block","reason":"안 된다"}"#).unwrap().reason.as_deref(), Some("안 된다"));
        for text in ["", "{}", "allow", r#"{"decision":"ask"}"#, r#"{"decision":"allow","input":{}}"#, "[]", "null"] {
            assert!(verdict(text).is_err(), "{text}");
        }
    }
}
