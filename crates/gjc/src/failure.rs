//! What went wrong, for a person: one sentence that names the thing, a way out, an exit code.

use gjc_log::OpenError;
use gjc_store::NotResolved;
use std::fmt;

/// A failure of a command.
#[derive(Debug)]
pub(crate) struct Failure {
    sentence: String,
    hint: Option<String>,
    code: u8,
}

impl Failure {
    /// Exit code 1.
    pub(crate) fn new(sentence: impl Into<String>) -> Self {
        Self { sentence: sentence.into(), hint: None, code: 1 }
    }

    /// Exit code 2.
    pub(crate) fn usage(sentence: impl Into<String>) -> Self {
        Self { code: 2, ..Self::new(sentence) }
    }

    /// A person has decided against it, and nothing is wrong: exit code 0.
    pub(crate) fn declined(sentence: impl Into<String>) -> Self {
        Self { code: 0, ..Self::new(sentence) }
    }

    /// A person ended it: exit code 130.
    pub(crate) fn interrupted() -> Self {
        Self { code: 130, ..Self::new("interrupted") }
    }

    /// A refusal of what was typed: exit code 2.
    pub(crate) fn misuse(refusal: gjc_protocol::Refusal) -> Self {
        Self { hint: refusal.hint, ..Self::usage(refusal.sentence) }
    }

    /// Adds the way out.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// What happened.
    pub(crate) fn sentence(&self) -> &str {
        &self.sentence
    }

    /// As an answer to a command.
    pub(crate) fn refusal(self, code: &str) -> gjc_protocol::Refusal {
        gjc_protocol::Refusal { hint: self.hint, ..gjc_protocol::Refusal::new(code, self.sentence) }
    }

    pub(crate) fn code(&self) -> u8 {
        self.code
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&crate::out::plain(&self.sentence))?;
        match &self.hint {
            Some(hint) => write!(f, "\nhint: {}", crate::out::plain(hint)),
            None => Ok(()),
        }
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        let hint = error.hint().map(Into::into);
        Self { hint, ..Self::new(error.to_string()) }
    }
}

impl From<gjc_log::ForkError> for Failure {
    fn from(error: gjc_log::ForkError) -> Self {
        let hint = error.hint().map(Into::into);
        Self { hint, ..Self::new(error.to_string()) }
    }
}

impl From<gjc_export::NotWritten> for Failure {
    fn from(error: gjc_export::NotWritten) -> Self {
        let hint = error.hint().map(Into::into);
        Self { hint, ..Self::new(error.to_string()) }
    }
}

impl From<gjc_workspace::WorktreeError> for Failure {
    fn from(error: gjc_workspace::WorktreeError) -> Self {
        use gjc_workspace::WorktreeError::{Name, Path};
        let failure = if matches!(error, Path(_) | Name(_)) { Self::usage } else { Self::new };
        failure(error.to_string()).hint(error.hint())
    }
}

impl From<gjc_workspace::TmuxError> for Failure {
    fn from(error: gjc_workspace::TmuxError) -> Self {
        Self::new(error.to_string()).hint(match error {
            gjc_workspace::TmuxError::NotStarted { .. } => "install tmux 3.2 or later, or leave --tmux out",
            _ => "gjc runs without --tmux as well",
        })
    }
}

impl From<gjc_store::HistoryError> for Failure {
    fn from(error: gjc_store::HistoryError) -> Self {
        Self::new(error.to_string())
    }
}

impl From<gjc_settings::FileError> for Failure {
    fn from(error: gjc_settings::FileError) -> Self {
        Self::usage(error.to_string())
    }
}

impl From<gjc_settings::Problems> for Failure {
    fn from(problems: gjc_settings::Problems) -> Self {
        Self::usage(problems.to_string()).hint("nothing of this file counts until it is right; nothing was begun")
    }
}

impl From<NotResolved> for Failure {
    fn from(error: NotResolved) -> Self {
        let hint = match &error {
            twins if twins.is_twins() => "name one of these files instead of the id".to_owned(),
            NotResolved::Ambiguous { .. } => "give more of the id".to_owned(),
            NotResolved::InTrash { id, .. } => format!("gjc sessions restore {} puts it back", crate::out::id(id)),
            _ => "gjc sessions list shows the sessions that there are".to_owned(),
        };
        Self::new(error.to_string()).hint(hint)
    }
}

impl From<gjc_protocol::Refusal> for Failure {
    fn from(refusal: gjc_protocol::Refusal) -> Self {
        Self { hint: refusal.hint, ..Self::new(refusal.sentence) }
    }
}
