//! From the family's context to a view. Rules, each with the failure that it prevents:
//!
//! - results stand right behind their calls, in the order of the calls; pairing is by position, because ids repeat;
//! - a call without a result gets [`INTERRUPTED`], a result without a call leaves (providers refuse either for ever);
//! - an answer that was aborted or failed keeps no unsigned thinking and no call that was not answered;
//! - an answer with nothing left leaves;
//! - a conversation that does not begin with a person (its root is lost) begins with a sentence that says so;
//! - ids of calls become unique and plain, the same way each time.

use crate::view::INTERRUPTED;
use crate::{ContextMessage, Msg, Note, Said, Selected, View};
use gjc_entry::{AssistantMessage, At, Block, Content, Message, ModelRef, Origin, StopReason, ToolResult};
use std::collections::HashSet;

pub(crate) struct Project {
    pub(crate) view: View,
    pub(crate) notes: Vec<Note>,
}

pub(crate) fn project(selected: &[Selected]) -> Project {
    let mut walk = Walk::default();
    let mut at = 0;
    while let Some(item) = selected.get(at) {
        at += 1;
        match &item.message {
            ContextMessage::Message(Message::Assistant(said)) => {
                // What follows up to the next answer may hold this answer's results.
                let until = selected[at..].iter().position(is_assistant).map_or(selected.len(), |more| at + more);
                walk.answer(item.at, said, &selected[at..until]);
                at = until;
            }
            _ => walk.other(item),
        }
    }
    walk.finish()
}

fn is_assistant(item: &Selected) -> bool {
    matches!(item.message, ContextMessage::Message(Message::Assistant(_)))
}

#[derive(Default)]
struct Walk {
    messages: Vec<Msg>,
    notes: Vec<Note>,
    ids: HashSet<String>,
}

impl Walk {
    /// An answer and everything up to the next one.
    fn answer(&mut self, at: At, said: &AssistantMessage, following: &[Selected]) {
        let mut results: Vec<Option<(At, &ToolResult)>> = following
            .iter()
            .map(|item| match &item.message {
                ContextMessage::Message(Message::ToolResult(result)) => Some((item.at, result)),
                _ => None,
            })
            .collect();
        let broken = matches!(said.stop, StopReason::Aborted | StopReason::Error);
        let (mut blocks, mut answers) = (Vec::new(), Vec::new());
        for block in &said.content {
            match block {
                Block::ToolCall { id, name, arguments, extra } => {
                    let found = results
                        .iter_mut()
                        .find(|slot| slot.is_some_and(|(_, result)| result.call_id == *id))
                        .and_then(Option::take);
                    if found.is_none() && broken {
                        continue;
                    }
                    let wire = self.wire_id(id);
                    blocks.push(Block::ToolCall {
                        id: wire.clone(),
                        name: name.clone(),
                        arguments: arguments.clone(),
                        extra: extra.clone(),
                    });
                    answers.push(match found {
                        Some((at, result)) => Msg {
                            from: Some(at),
                            said: Said::Result {
                                call: wire,
                                tool: name.clone(),
                                content: sendable(&result.content),
                                is_error: result.is_error,
                            },
                        },
                        None => Msg {
                            from: None,
                            said: Said::Result {
                                call: wire,
                                tool: name.clone(),
                                content: vec![Block::text(INTERRUPTED, Origin::Host)],
                                is_error: true,
                            },
                        },
                    });
                }
                Block::Thinking { signature: None, .. } if broken => {}
                Block::Text { text, .. } if text.trim().is_empty() => {}
                Block::Text { .. } | Block::Thinking { .. } | Block::RedactedThinking { .. } => {
                    blocks.push(block.clone())
                }
                Block::Image { .. } | Block::Unknown(_) => {
                    self.note(at, "the answer holds a block that no request can carry; it was left out");
                }
            }
        }
        // Thinking alone, without text or calls, is refused by providers.
        if blocks.iter().any(|block| matches!(block, Block::Text { .. } | Block::ToolCall { .. })) {
            let model = ModelRef { provider: said.provider.clone(), id: said.model.clone(), api: said.api.clone() };
            self.messages.push(Msg { from: Some(at), said: Said::Assistant { blocks, model } });
            self.messages.append(&mut answers);
        }
        for (item, left) in following.iter().zip(results) {
            match left {
                Some((at, _)) => self.note(at, "a tool result has no call before it; it was left out"),
                None if matches!(item.message, ContextMessage::Message(Message::ToolResult(_))) => {}
                None => self.other(item),
            }
        }
    }

    /// Anything but an answer.
    fn other(&mut self, item: &Selected) {
        let blocks = match &item.message {
            ContextMessage::Message(Message::User(user)) => sendable(&user.content),
            ContextMessage::Message(Message::ToolResult(_)) => {
                return self.note(item.at, "a tool result has no call before it; it was left out");
            }
            ContextMessage::Message(Message::Assistant(_)) => return,
            ContextMessage::Message(Message::Other { role, raw }) => match foreign(role, raw.get()) {
                Some(text) => vec![Block::text(text, Origin::Host)],
                None => return,
            },
            ContextMessage::Custom { content, .. } => sendable(content),
            ContextMessage::BranchSummary { summary, .. } => {
                let text = format!(
                    "Summary of a branch of this conversation that was left:\n<summary>\n{summary}\n</summary>"
                );
                vec![Block::text(text, Origin::Host)]
            }
            ContextMessage::CompactionSummary { summary, .. } => {
                let text = format!("Summary of the conversation before this point:\n<summary>\n{summary}\n</summary>");
                vec![Block::text(text, Origin::Host)]
            }
        };
        if blocks.is_empty() {
            return self.note(item.at, "a message has no content; it was left out");
        }
        self.messages.push(Msg { from: Some(item.at), said: Said::User(blocks) });
    }

    fn finish(mut self) -> Project {
        if matches!(self.messages.first(), Some(Msg { said: Said::Assistant { .. }, .. })) {
            let text = "(The earlier part of this conversation is not available.)";
            self.messages.insert(0, Msg { from: None, said: Said::User(vec![Block::text(text, Origin::Host)]) });
        }
        Project { view: View { messages: self.messages }, notes: self.notes }
    }

    fn note(&mut self, at: At, sentence: &str) {
        self.notes.push(Note { at: Some(at), sentence: sentence.into() });
    }

    fn wire_id(&mut self, id: &str) -> String {
        let mut plain: String = id
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '_' })
            .take(58)
            .collect();
        if plain.is_empty() {
            plain.push_str("call");
        }
        let mut wire = plain.clone();
        let mut count = 1;
        while !self.ids.insert(wire.clone()) {
            count += 1;
            wire = format!("{plain}_{count}");
        }
        wire
    }
}

/// Text and images with something in them.
fn sendable(content: &Content) -> Vec<Block> {
    match content {
        Content::Text(text) if text.is_empty() => Vec::new(),
        Content::Text(text) => vec![Block::Text { text: text.clone(), origin: None, extra: Vec::new() }],
        Content::Blocks(blocks) => blocks
            .iter()
            .filter(|block| match block {
                Block::Text { text, .. } => !text.is_empty(),
                Block::Image { .. } => true,
                _ => false,
            })
            .cloned()
            .collect(),
    }
}

/// Roles that other programs write, as the text that they send for them.
fn foreign(role: &str, raw: &str) -> Option<String> {
    let mut fields = gjc_entry::Fields::parse(raw).ok()?;
    match role {
        "bashExecution" | "pythonExecution" => {
            if fields.optional("excludeFromContext").ok().flatten().unwrap_or(false) {
                return None;
            }
            let name = if role == "bashExecution" { "command" } else { "code" };
            let command: String = fields.optional(name).ok()??;
            let output: String = fields.optional("output").ok().flatten().unwrap_or_default();
            let mut text = format!("Ran `{command}`\n");
            text.push_str(&if output.is_empty() { "(no output)".into() } else { format!("```\n{output}\n```") });
            if fields.optional("cancelled").ok().flatten().unwrap_or(false) {
                text.push_str("\n\n(command cancelled)");
            } else if let Some(code) = fields.optional::<i64>("exitCode").ok().flatten().filter(|code| *code != 0) {
                text.push_str(&format!("\n\nCommand exited with code {code}"));
            }
            Some(text)
        }
        _ => {
            let content = fields.raw("content")?;
            Some(Content::from_json(&content).ok()?.text()).filter(|text| !text.is_empty())
        }
    }
}
