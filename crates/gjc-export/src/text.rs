//! The dump: a session as one text, for a clipboard, a mail, another program.
//!
//! Each part begins with a line whose first two letters are `──`. A line of the content that begins so has a `\` before it,
//! so that nothing in a session can pass for a part. Letters that a terminal would obey are shown as pictures (`␛`), those that
//! turn the direction of writing as `\u{FFFD}`; all others, line feeds and tabs among them, stay as they are.
//!
//! The same state gives the same bytes. What is written is never held as a whole: one entry after the other.

use gjc_context::ToolDef;
use gjc_entry::{
    Block, Body, Content, Entry, Kind, KindSet, Leaf, Message, ModelRef, NeedsIndex, Ordinal, Skeleton, Source,
    Thinking, Tier,
};
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::{HashMap, HashSet};
use std::io::{self, Write};

/// What the next request would have beside its messages.
#[derive(Debug, Clone, Copy)]
pub struct Live<'a> {
    /// The system prompt.
    pub system: &'a str,
    /// The tools that are shown.
    pub tools: &'a [ToolDef],
    /// Who answers.
    pub model: &'a ModelRef,
    /// How long it may think.
    pub thinking: Thinking,
    /// How soon it is served.
    pub tier: Tier,
}

/// Why there is no dump.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TextError {
    /// The path is not known yet.
    #[error(transparent)]
    NeedsIndex(#[from] NeedsIndex),
    /// It cannot be written.
    #[error("the dump cannot be written: {0}")]
    Io(#[from] io::Error),
}

/// Writes the dump: the session's label, settings, system prompt, tools, then every entry of the path from the root to the leaf, also those that
/// a compaction has taken out of the context. Where other branches leave the path, a part says so; they are not shown.
///
/// # Errors
/// [`TextError`]. An entry that cannot be read is a part that says why, not an error.
pub fn text(source: &dyn Source, leaf: Leaf, live: Option<Live<'_>>, out: &mut dyn Write) -> Result<(), TextError> {
    let path = source.path(leaf)?.0;
    let mut page = Page { out };
    if let Some(tree) = source.skeleton() {
        page.part("label", &crate::page::label_words(tree.label()))?;
    }
    match live {
        Some(live) => settings(&mut page, live)?,
        None => page.part("settings", "none are recorded")?,
    }
    let leaving = source.skeleton().map(|tree| leaving(tree, leaf)).unwrap_or_default();
    let (mut nodes, mut written) = (path.iter(), Ok(()));
    source.bodies(&mut path.iter().map(|node| node.at), &mut |read| {
        let Some(node) = nodes.next() else { return };
        let one = |page: &mut Page<'_>| {
            match &read {
                Ok(entry) => whole(page, entry)?,
                Err(damage) => page.part(&format!("unreadable {}", node.id), &damage.to_string())?,
            }
            leaving.get(&node.at.off).map_or(Ok(()), |others| page.part(&branches(others), ""))
        };
        if written.is_ok() {
            written = one(&mut page);
        }
    });
    Ok(written?)
}

fn branches(others: &[String]) -> String {
    match others {
        [one] => format!("another branch leaves here: {one}"),
        many => format!("other branches leave here: {}", many.join(", ")),
    }
}

/// Where branches leave the path on which something was said: offset of the entry, first entries of the branches. Those that
/// begin anew, without a parent, leave nothing.
fn leaving(tree: &Skeleton, leaf: Leaf) -> HashMap<u64, Vec<String>> {
    const SAID: KindSet =
        KindSet::of(&[Kind::Message, Kind::CustomMessage, Kind::BranchSummary, Kind::Compaction, Kind::Custom]);
    let on_path: HashSet<u64> = tree.path(leaf).0.iter().map(|node| node.at.off).collect();
    let mut says: HashSet<Ordinal> = HashSet::new();
    let mut found: HashMap<u64, Vec<String>> = HashMap::new();
    // A parent stands before its children: seen from the end, a branch is known whole when its first entry comes.
    for (ordinal, node) in tree.iter().rev().filter(|(_, node)| !on_path.contains(&node.at().off)) {
        if !(SAID.has(node.kind()) || says.contains(&ordinal)) {
            continue;
        }
        let Some((parent, home)) = node.parent().and_then(|parent| Some((parent, tree.node(parent)?))) else {
            continue;
        };
        if on_path.contains(&home.at().off) {
            found.entry(home.at().off).or_default().insert(0, tree.id(ordinal).to_string());
        } else {
            says.insert(parent);
        }
    }
    found
}

fn settings(page: &mut Page<'_>, live: Live<'_>) -> io::Result<()> {
    let Live { system, tools, model, thinking, tier } = live;
    let tier = if tier == Tier::Auto { String::new() } else { format!("\ntier: {}", tier.as_str()) };
    let said = format!("model: {}/{} ({})\nthinking: {}{tier}", model.provider, model.id, model.api, thinking.as_str());
    page.part("settings", &said)?;
    page.part("system prompt", system)?;
    for tool in tools {
        page.part(&format!("tool {}", tool.name), &tool.description)?;
        page.text(&parameters(&tool.input))?;
    }
    Ok(())
}

/// A parameter a line: name, type, whether it is needed, what it is for. What is more than that stays JSON.
fn parameters(input: &RawValue) -> String {
    let Ok(schema) = serde_json::from_str::<Value>(input.get()) else { return input.get().to_owned() };
    let Some(properties) = schema["properties"].as_object() else { return input.get().to_owned() };
    let needed = |name: &str| schema["required"].as_array().is_some_and(|all| all.iter().any(|one| one == name));
    let line = |(name, about): (&String, &Value)| {
        let kind = about["type"].as_str().unwrap_or("any");
        let needed = if needed(name) { ", required" } else { "" };
        let what = about["description"].as_str().map(|text| format!(": {text}")).unwrap_or_default();
        let mut rest = about.as_object().cloned().unwrap_or_default();
        rest.retain(|key, value| !(key == "description" || key == "type" && value.is_string()));
        let rest = if rest.is_empty() { String::new() } else { format!(" {}", Value::from(rest)) };
        format!("- {name} ({kind}{needed}){what}{rest}")
    };
    properties.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn whole(page: &mut Page<'_>, entry: &Entry) -> io::Result<()> {
    let id = format!("{} {}", entry.id, entry.at);
    match &entry.body {
        Body::Message(said) => message(page, said, &id),
        Body::Compaction { summary, tokens_before, .. } => {
            page.part(&format!("compaction {id} ({tokens_before} tokens before it)"), summary)
        }
        Body::BranchSummary { summary, .. } if summary.is_empty() => Ok(()),
        Body::BranchSummary { from, summary } => page.part(&format!("branch summary {id} (from {from})"), summary),
        // What gjc keeps for itself; what of it bears on the conversation stands in other entries too.
        Body::Own(_) => Ok(()),
        Body::Custom { custom_type, data } => {
            page.part(&format!("custom {custom_type} {id}"), data.as_ref().map_or("", |data| data.get()))
        }
        Body::CustomMessage { custom_type, content, display, .. } => {
            let hidden = if *display { "" } else { " (not shown to a person)" };
            page.part(&format!("{custom_type} {id}{hidden}"), "")?;
            blocks(page, content, "[Image]")
        }
        Body::Label { target, label } => match label.as_deref().filter(|label| !label.is_empty()) {
            Some(label) => page.part(&format!("name of {target} {id}"), label),
            None => page.part(&format!("name of {target} {id} taken away"), ""),
        },
        Body::ModelChange { provider, model, role } => {
            let role = role.as_ref().map(|role| format!(" for {role}")).unwrap_or_default();
            page.part(&format!("model{role} {id}"), &format!("{provider}/{model}"))
        }
        Body::ThinkingLevelChange { level } => page.part(&format!("thinking {id}"), level.as_deref().unwrap_or("off")),
        Body::ModeChange { mode, .. } => page.part(&format!("mode {id}"), mode.as_deref().unwrap_or("none")),
        Body::ServiceTierChange { tier } => page.part(&format!("tier {id}"), tier.as_deref().unwrap_or("none")),
        Body::SessionInfo { name } => page.part(&format!("name of the session {id}"), name.as_deref().unwrap_or("")),
        Body::Unknown { kind } => {
            let fields = entry.extra.iter().map(|(name, value)| format!("{name}: {}", value.get()));
            page.part(&format!("{kind} {id}"), &fields.collect::<Vec<_>>().join("\n"))
        }
    }
}

fn message(page: &mut Page<'_>, said: &Message, id: &str) -> io::Result<()> {
    match said {
        Message::User(user) => {
            page.part(&format!("user {id}"), "")?;
            blocks(page, &user.content, "[Image]")
        }
        Message::Assistant(said) => {
            page.part(&format!("assistant {id} {}/{}", said.provider, said.model), "")?;
            let mut apart = false;
            for one in &said.content {
                let text = matches!(one, Block::Text { text, .. } if !text.is_empty());
                if text && apart {
                    page.part("says", "")?;
                }
                block(page, one, "[Image]")?;
                apart = !text && (apart || !is_blank(one));
            }
            said.error.as_ref().map_or(Ok(()), |error| page.part("failed", error))
        }
        Message::ToolResult(result) => {
            let error = if result.is_error { " (error)" } else { "" };
            page.part(&format!("result {} {id} of {}{error}", result.tool, result.call_id), "")?;
            blocks(page, &result.content, "[Image output]")
        }
        Message::Other { role, raw } => {
            let fields: Value = serde_json::from_str(raw.get()).unwrap_or_default();
            let excluded = if fields["excludeFromContext"] == true { " (kept from the model)" } else { "" };
            page.part(&format!("{role} {id}{excluded}"), "")?;
            match (fields["command"].as_str().or_else(|| fields["code"].as_str()), fields["output"].as_str()) {
                (Some(command), Some(output)) => {
                    page.text(&format!("$ {command}"))?;
                    page.text(output)?;
                    match (&fields["exitCode"], &fields["cancelled"]) {
                        (_, Value::Bool(true)) => page.text("(cancelled)"),
                        (Value::Number(code), _) if code.as_i64() != Some(0) => page.text(&format!("(exit {code})")),
                        _ => Ok(()),
                    }
                }
                _ => match content(raw) {
                    Some(content) => blocks(page, &content, "[Image]"),
                    None => page.text(raw.get()),
                },
            }
        }
    }
}

fn content(raw: &RawValue) -> Option<Content> {
    #[derive(serde::Deserialize)]
    struct Said<'a> {
        #[serde(borrow)]
        content: &'a RawValue,
    }
    Content::from_json(serde_json::from_str::<Said<'_>>(raw.get()).ok()?.content).ok()
}

fn blocks(page: &mut Page<'_>, content: &Content, image: &str) -> io::Result<()> {
    match content {
        Content::Text(text) => page.text(text),
        Content::Blocks(blocks) => blocks.iter().try_for_each(|one| block(page, one, image)),
    }
}

fn block(page: &mut Page<'_>, block: &Block, image: &str) -> io::Result<()> {
    match block {
        Block::Text { text, .. } => page.text(text),
        Block::Thinking { .. } if is_blank(block) => Ok(()),
        Block::Thinking { thinking, .. } => page.part("thinks", thinking),
        Block::RedactedThinking { .. } => page.text("[Thinking that the provider keeps closed]"),
        Block::Image { .. } => page.text(image),
        Block::ToolCall { id, name, arguments, .. } => {
            page.part(&format!("call {name} {id}"), "")?;
            match serde_json::from_str::<Value>(arguments.get()) {
                Ok(Value::Object(all)) => all.iter().try_for_each(|(name, value)| match value {
                    Value::String(text) => page.text(&format!("{name}: {text}")),
                    other => page.text(&format!("{name}: {other}")),
                }),
                _ => page.text(arguments.get()),
            }
        }
        Block::Unknown(raw) => page.text(raw.get()),
    }
}

/// Whether nothing is shown of it.
fn is_blank(block: &Block) -> bool {
    match block {
        Block::Thinking { thinking, .. } => thinking.trim().is_empty(),
        Block::Text { text, .. } => text.is_empty(),
        _ => false,
    }
}

/// The text as it is written.
struct Page<'a> {
    out: &'a mut dyn Write,
}

impl Page<'_> {
    /// Begins a part.
    fn part(&mut self, title: &str, text: &str) -> io::Result<()> {
        // A title is one line, whatever the names in it hold.
        writeln!(self.out, "── {}", shown(&title.replace(['\n', '\r', '\t'], " ")))?;
        self.text(text)
    }

    /// Writes a piece of content, ending in a line feed.
    fn text(&mut self, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        for line in text.strip_suffix('\n').unwrap_or(text).split('\n') {
            let line = line.strip_suffix('\r').unwrap_or(line);
            let mark = if line.trim_start_matches('\\').starts_with("──") { "\\" } else { "" };
            writeln!(self.out, "{mark}{}", shown(line))?;
        }
        Ok(())
    }
}

/// Text without letters that a terminal would obey.
fn shown(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\t' => c,
            '\0'..='\u{1f}' => char::from_u32(0x2400 + u32::from(c)).unwrap_or('\u{FFFD}'),
            '\u{7f}' => '\u{2421}',
            '\u{80}'..='\u{9f}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' => '\u{FFFD}',
            _ => c,
        })
        .collect()
}
