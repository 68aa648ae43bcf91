//! The last look before a request leaves. Nobody else makes a [`Checked`].

use crate::{Request, Said, View};
use gjc_entry::{At, Block};
use std::collections::{HashSet, VecDeque};
use std::ops::Deref;

/// Something that passed [`check`].
#[derive(Debug, Clone)]
pub struct Checked<T>(T);

impl<T> Deref for Checked<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

/// Why a request may not leave. Each is a fault of ours, never of a person: the projection exists to prevent it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Violation {
    /// Nothing to answer.
    #[error("the conversation is empty; say something first")]
    Empty,
    /// It begins with the model.
    #[error("the conversation does not begin with a person")]
    FirstIsAssistant,
    /// It ends with the model.
    #[error("the conversation ends with an answer; there is nothing to answer")]
    LastIsAssistant,
    /// A call without a result, a result without a call, two results, or results in another order than their calls.
    #[error("the call {0} does not have exactly one result right behind it, in its place")]
    Unpaired(String),
    /// Two calls share an id, or it has characters that providers refuse.
    #[error("the call id {0} is used twice or is not plain")]
    BadCallId(String),
    /// A tool's name that providers refuse.
    #[error("the tool name {0:?} is not plain")]
    BadToolName(String),
    /// A message without content.
    #[error("message {0} of the conversation is empty")]
    EmptyMessage(usize),
    /// A person's words are not what they were.
    #[error("a person's words would be changed or left out (byte {} of the session)", .0.map_or(0, |at| at.off))]
    HumanWords(Option<At>),
}

/// Checks a request against the rules of every provider, and a person's words against the view without edits.
///
/// # Errors
/// The first [`Violation`].
pub fn check(request: Request, unedited: &View) -> Result<Checked<Request>, Violation> {
    let messages = &request.view.messages;
    match (messages.first(), messages.last()) {
        (None, _) | (_, None) => return Err(Violation::Empty),
        (Some(first), _) if matches!(first.said, Said::Assistant { .. }) => return Err(Violation::FirstIsAssistant),
        (_, Some(last)) if matches!(last.said, Said::Assistant { .. }) => return Err(Violation::LastIsAssistant),
        _ => {}
    }
    pairs(&request.view)?;
    human_words(&request.view, unedited)?;
    Ok(Checked(request))
}

/// Every call has its one result in the run of results right behind its answer, in the order of the calls.
fn pairs(view: &View) -> Result<(), Violation> {
    let mut ids: HashSet<&str> = HashSet::new();
    let mut open: VecDeque<&str> = VecDeque::new();
    for (index, message) in view.messages.iter().enumerate() {
        match &message.said {
            // In the order of the calls: a wire without ids pairs by place, and swapped ids would give each call the
            // other's outcome.
            Said::Result { call, .. } => {
                if open.pop_front() != Some(call) {
                    return Err(Violation::Unpaired(call.clone()));
                }
            }
            Said::User(_) | Said::Assistant { .. } if !open.is_empty() => {
                return Err(Violation::Unpaired(open[0].into()));
            }
            Said::User(blocks) => {
                if blocks.is_empty() {
                    return Err(Violation::EmptyMessage(index));
                }
            }
            Said::Assistant { blocks, .. } => {
                if blocks.is_empty() {
                    return Err(Violation::EmptyMessage(index));
                }
                for block in blocks {
                    if let Block::ToolCall { id, name, .. } = block {
                        let fits = (1..=64).contains(&name.len());
                        if !fits || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-') {
                            return Err(Violation::BadToolName(name.clone()));
                        }
                        let plain =
                            !id.is_empty() && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
                        if !plain || !ids.insert(id) {
                            return Err(Violation::BadCallId(id.clone()));
                        }
                        open.push_back(id);
                    }
                }
            }
        }
    }
    match open.front() {
        Some(id) => Err(Violation::Unpaired((*id).into())),
        None => Ok(()),
    }
}

/// What people said stands there, in order, unchanged. Text of a user message without an origin counts as a person's.
fn human_words(view: &View, unedited: &View) -> Result<(), Violation> {
    fn words(view: &View) -> impl Iterator<Item = (Option<At>, &str)> {
        view.messages.iter().flat_map(|message| {
            let blocks: &[Block] = match &message.said {
                Said::User(blocks) => blocks,
                _ => &[],
            };
            blocks.iter().filter_map(|block| match block {
                Block::Text { text, origin, .. } if origin.is_none_or(gjc_entry::Origin::is_human) => {
                    Some((message.from, text.as_str()))
                }
                _ => None,
            })
        })
    }
    let mut sent = words(view);
    for (at, text) in words(unedited) {
        match sent.next() {
            Some((_, same)) if same == text => {}
            _ => return Err(Violation::HumanWords(at)),
        }
    }
    match sent.next() {
        Some((at, _)) => Err(Violation::HumanWords(at)),
        None => Ok(()),
    }
}
