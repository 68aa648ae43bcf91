//! What can go wrong between us and a model, and what to do about it.

use std::time::Duration;

/// Why there is no (whole) answer. Each is a sentence for a person with a way out, and none holds a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProviderError {
    /// Nothing of an answer has come, and asking again may help.
    #[error("the provider cannot answer now: {why}; try again in a moment")]
    Retry {
        /// The wait that the provider asks for.
        after: Option<Duration>,
        /// What it says.
        why: String,
    },
    /// The conversation does not fit.
    #[error("the conversation is too long for the model: {0}; compact it or choose a model with a longer context")]
    Overflow(String),
    /// The request has more bytes than the provider takes, whatever it says.
    #[error(
        "the request is too large for the provider: {0}; leave out pictures or long outputs, or begin a new session"
    )]
    TooLarge(String),
    /// The key is missing, wrong, or not allowed to do this.
    #[error("the provider refused the key: {0}; check the key of this provider and its permissions")]
    Auth(String),
    /// A usage limit or an empty account: only time or money helps.
    #[error("the provider's usage limit is reached: {why}; wait for its reset, add credit or choose another model")]
    Quota {
        /// The wait until the reset, where the provider tells.
        after: Option<Duration>,
        /// What it says.
        why: String,
    },
    /// The request will never work as it is.
    #[error("the provider refused the request: {0}; change the model, the settings or the message before asking again")]
    BadRequest(String),
    /// The answer broke off.
    #[error("the answer broke off: {why}; {}", if *.replay_safe { "nothing of it was shown, so it can be asked for again" } else { "what came is kept, ask the model to go on" })]
    Cut {
        /// Whether nothing of the answer was passed on, so that asking again shows nothing twice.
        replay_safe: bool,
        /// What happened.
        why: String,
    },
}

impl ProviderError {
    /// Whether the same request may be sent again without a person: nothing of an answer was passed on.
    #[must_use]
    pub fn may_retry(&self) -> bool {
        matches!(self, Self::Retry { .. } | Self::Cut { replay_safe: true, .. })
    }

    /// The wait that the provider asked for.
    #[must_use]
    pub fn after(&self) -> Option<Duration> {
        match self {
            Self::Retry { after, .. } | Self::Quota { after, .. } => *after,
            _ => None,
        }
    }

    /// What the provider says, without what gjc makes of it.
    pub(crate) fn said(&self) -> &str {
        let (Self::Overflow(text)
        | Self::TooLarge(text)
        | Self::Auth(text)
        | Self::BadRequest(text)
        | Self::Retry { why: text, .. }
        | Self::Quota { why: text, .. }
        | Self::Cut { why: text, .. }) = self;
        text
    }

    /// The same error with every text in it changed by `change` (masking).
    pub(crate) fn map_text(mut self, change: impl FnOnce(&str) -> String) -> Self {
        let (Self::Overflow(text)
        | Self::TooLarge(text)
        | Self::Auth(text)
        | Self::BadRequest(text)
        | Self::Retry { why: text, .. }
        | Self::Quota { why: text, .. }
        | Self::Cut { why: text, .. }) = &mut self;
        *text = change(text);
        self
    }
}

/// A text of unknown origin as part of a sentence: one line, no control characters, at most 400 characters, no full stop
/// at its end.
pub(crate) fn one_line(text: &str) -> String {
    let words: Vec<&str> =
        text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()).collect();
    let line = words.join(" ");
    let line = line.trim_end_matches('.');
    match line.char_indices().nth(400) {
        Some((cut, _)) => format!("{}…", &line[..cut]),
        None => line.into(),
    }
}

/// The innermost cause: "Connection refused (os error 111)" instead of "error sending request".
pub(crate) fn root_cause(error: &(dyn std::error::Error + 'static)) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    one_line(&cause.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_unknown_origin_becomes_one_short_line() {
        assert_eq!(one_line("<html>\r\n<b>Bad\x1b[2J Gateway</b>."), "<html> <b>Bad [2J Gateway</b>");
        assert_eq!(one_line(" \n"), "");
        assert_eq!(one_line(&"한글".repeat(1000)).chars().count(), 401);
    }
}
