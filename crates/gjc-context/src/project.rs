//! From the family's context to a view. Rules, each with the failure that it prevents:
//!
//! - results stand right behind their calls, in the order of the calls; pairing is by position, because ids repeat;
//! - a call without a result gets [`INTERRUPTED`], a result without a call leaves (providers refuse either for ever);
//! - an answer that was aborted or failed keeps no unsigned thinking and no call that was not answered;
//! - thinking with nothing behind it leaves (a cut answer may end with it; providers refuse that as the last block);
//! - an answer without text or calls leaves;
//! - a result without content says so (an error without content is refused);
//! - a conversation whose root is lost, or that does not begin with a person, begins with a sentence that says so;
//! - ids of calls become unique and plain (at most 64 of `A-Z a-z 0-9 _ -`), names of tools plain, the same way each time: a
//!   model that once made up a name must not be refused for it ever after;
//! - pictures that an entry leaves out become a sentence;
//! - roles that other programs write become the text that those programs send for them; what they exclude stays out.

use crate::images::{leave_out, too_many};
use crate::select::{Selection, selection};
use crate::view::INTERRUPTED;
use crate::{ContextMessage, Folds, Msg, Note, Said, Selected, View};
use gjc_entry::message::ImageData;
use gjc_entry::{
    AssistantMessage, At, Block, Content, Fields, Leaf, LeftOut, Message, ModelRef, NeedsIndex, Origin, Source,
    StopReason, ToolResult,
};
use serde_json::value::RawValue;
use std::collections::{HashMap, HashSet};

/// The view at a leaf. A pure function of the path: live and rebuilt from disk it is the same.
///
/// # Errors
/// [`NeedsIndex`] when the source cannot find the path without its index.
pub fn view(source: &dyn Source, leaf: Leaf, _folds: &mut Folds) -> Result<(View, Vec<Note>), NeedsIndex> {
    let selection = selection(source, leaf)?;
    let Project { view, notes: more } = projected(&selection);
    let mut notes = selection.notes;
    notes.extend(more);
    Ok((view, notes))
}

/// The pictures that have to be left out at a leaf, beside those that are already, so that its request has `excess` bytes less:
/// the oldest, and no more than need be. Empty where that cannot be reached. `size`: what a picture takes in the request.
///
/// # Errors
/// [`NeedsIndex`] when the source cannot find the path without its index.
pub fn too_large(
    source: &dyn Source,
    leaf: Leaf,
    excess: usize,
    size: impl Fn(&ImageData) -> usize,
) -> Result<Vec<LeftOut>, NeedsIndex> {
    let selection = selection(source, leaf)?;
    let found: HashMap<At, u32> = too_many(&projected(&selection).view, excess, size).into_iter().collect();
    let more = |item: &Selected| {
        let first = selection.pictures.of(&item.id).saturating_add(*found.get(&item.at)?);
        Some(LeftOut { of: item.id.clone(), first })
    };
    Ok(selection.items.iter().filter_map(more).collect())
}

fn projected(Selection { items, pictures, beginning_lost, .. }: &Selection) -> Project {
    let mut project = project(items, *beginning_lost);
    if !pictures.is_empty() {
        let first = items.iter().map(|item| (item.at, pictures.of(&item.id))).filter(|(_, first)| *first > 0);
        leave_out(&mut project.view.messages, &first.collect());
    }
    project
}

struct Project {
    view: View,
    notes: Vec<Note>,
}

fn project(selected: &[Selected], beginning_lost: bool) -> Project {
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
    walk.finish(beginning_lost)
}

fn is_assistant(item: &Selected) -> bool {
    matches!(item.message, ContextMessage::Message(Message::Assistant(_)))
}

#[derive(Default)]
struct Walk {
    messages: Vec<Msg>,
    notes: Vec<Note>,
    ids: HashSet<String>,
    /// How often an id was given out: ten thousand turns of `call-1` must not search ten thousand names each.
    repeats: HashMap<String, u32>,
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
                        name: plain_name(name),
                        arguments: arguments.clone(),
                        extra: extra.clone(),
                    });
                    answers.push(match found {
                        Some((at, result)) => Msg {
                            from: Some(at),
                            said: Said::Result {
                                call: wire,
                                tool: name.clone(),
                                content: outcome(result),
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
        while matches!(blocks.last(), Some(Block::Thinking { .. } | Block::RedactedThinking { .. })) {
            blocks.pop();
        }
        // What is left ends with a text or a call.
        if !blocks.is_empty() {
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
                Some(blocks) => blocks,
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

    fn finish(mut self, beginning_lost: bool) -> Project {
        if beginning_lost || matches!(self.messages.first(), Some(Msg { said: Said::Assistant { .. }, .. })) {
            let text = "(The earlier part of this conversation is not available.)";
            self.messages.insert(0, Msg { from: None, said: Said::User(vec![Block::text(text, Origin::Host)]) });
        }
        Project { view: View { messages: self.messages }, notes: self.notes }
    }

    fn note(&mut self, at: At, sentence: &str) {
        self.notes.push(Note { at: Some(at), sentence: sentence.into(), unreadable: false });
    }

    fn wire_id(&mut self, id: &str) -> String {
        // With the longest number behind it, 64 characters: what the strictest provider takes.
        let mut plain: String = id
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '_' })
            .take(53)
            .collect();
        if plain.is_empty() {
            plain.push_str("call");
        }
        let count = self.repeats.entry(plain.clone()).or_default();
        loop {
            *count += 1;
            let wire = if *count == 1 { plain.clone() } else { format!("{plain}_{count}") };
            if self.ids.insert(wire.clone()) {
                return wire;
            }
        }
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

/// What a call gave. A result that was pruned keeps its text only, as in the family.
fn outcome(result: &ToolResult) -> Vec<Block> {
    let mut content = sendable(&result.content);
    if result.extra.iter().any(|(name, _)| &**name == "prunedAt") {
        content.retain(|block| matches!(block, Block::Text { .. }));
    }
    if content.is_empty() {
        content.push(Block::text("(no output)", Origin::Host));
    }
    content
}

/// Roles that other programs write, as what they send for them; `None` for what they keep from the model.
fn foreign(role: &str, raw: &str) -> Option<Vec<Block>> {
    let Ok(mut fields) = Fields::parse(raw) else { return Some(Vec::new()) };
    match role {
        "bashExecution" | "pythonExecution" => {
            let name = if role == "bashExecution" { "command" } else { "code" };
            execution(&mut fields, name)
        }
        "fileMention" => Some(files(&mut fields)),
        _ => Some(
            fields
                .raw("content")
                .and_then(|raw| Content::from_json(raw).ok())
                .map_or(Vec::new(), |said| sendable(&said)),
        ),
    }
}

/// A command that a person ran beside the conversation.
fn execution(fields: &mut Fields<'_>, name: &'static str) -> Option<Vec<Block>> {
    if fields.optional("excludeFromContext").ok().flatten().unwrap_or(false) {
        return None;
    }
    let Some(command) = fields.optional::<String>(name).ok().flatten() else { return Some(Vec::new()) };
    let output: String = fields.optional("output").ok().flatten().unwrap_or_default();
    let mut text = format!("Ran `{command}`\n");
    text.push_str(&if output.is_empty() { "(no output)".into() } else { format!("```\n{output}\n```") });
    if fields.optional("cancelled").ok().flatten().unwrap_or(false) {
        text.push_str("\n\n(command cancelled)");
    } else if let Some(code) = fields.optional::<i64>("exitCode").ok().flatten().filter(|code| *code != 0) {
        text.push_str(&format!("\n\nCommand exited with code {code}"));
    }
    Some(vec![Block::text(text, Origin::Host)])
}

/// Files that a person named in a prompt.
fn files(fields: &mut Fields<'_>) -> Vec<Block> {
    let files: Vec<Box<RawValue>> = fields.optional("files").ok().flatten().unwrap_or_default();
    let (mut text, mut images) = (String::new(), Vec::new());
    for raw in &files {
        let Ok(mut file) = Fields::parse(raw.get()) else { continue };
        let path: String = file.optional("path").ok().flatten().unwrap_or_default();
        let content: String = file.optional("content").ok().flatten().unwrap_or_default();
        text.push_str(&format!("<file path=\"{path}\">\n{content}\n</file>\n"));
        images.extend(file.raw("image").map(Block::from_json).filter(|block| matches!(block, Block::Image { .. })));
    }
    if text.is_empty() {
        return Vec::new();
    }
    let mut blocks = vec![Block::text(format!("<system-reminder>\n{text}</system-reminder>"), Origin::Host)];
    blocks.append(&mut images);
    blocks
}

/// The name of a tool as providers take it.
fn plain_name(name: &str) -> String {
    let plain: String = name.chars().map(|c| if is_plain(c) { c } else { '_' }).take(64).collect();
    if plain.is_empty() { "unnamed".into() } else { plain }
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '-' || c == '_'
}
