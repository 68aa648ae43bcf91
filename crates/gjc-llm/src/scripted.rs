//! A model that plays a script: for the demo, for tests and for bug reports.
//!
//! One JSON object a line: `{"agent"?, "expect"?, "delayMs"?, "content"?: [{"type":"text","text"} |
//! {"type":"thinking","thinking"} | {"type":"toolCall","name","arguments"}], "stopReason"?, "error"?: {"status","body"},
//! "usage"?}`. Blank lines are skipped. Lines without `agent` belong to `main`. Each agent plays its own lines in order.
//! With both `content` and `error` the answer breaks off after the content.

use crate::error::one_line;
use crate::{BlockKind, Provider, ProviderError, Rendered, StreamEvent, Unsupported, anthropic, classify};
use futures_util::stream::{self, BoxStream, StreamExt};
use gjc_context::{Checked, Request};
use gjc_entry::fields::from_raw;
use gjc_entry::message::Usage;
use gjc_entry::{Blobs, Clock, Fields, StopReason};
use regex::Regex;
use serde_json::value::RawValue;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The wire's name in session files.
pub const API: &str = "scripted";

/// The agent of lines that name none.
pub const MAIN: &str = "main";

/// Why a script cannot be played. Lines are counted from 1.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScriptError {
    /// The file cannot be read.
    #[error("the script {} cannot be read ({why}); check the path", file.display())]
    Unreadable {
        /// The script.
        file: PathBuf,
        /// Why.
        why: std::io::Error,
    },
    /// A line is not as the format wants it.
    #[error("line {line} of the script {} cannot be played: {why}; mend that line", file.display())]
    Line {
        /// The script.
        file: PathBuf,
        /// The line.
        line: usize,
        /// Why.
        why: String,
    },
}

/// A script, and how far each agent has played it.
#[derive(Debug)]
pub struct ScriptedModel {
    file: PathBuf,
    lines: Vec<Line>,
    /// Lines taken, by agent. In memory only: a new process begins anew.
    taken: Mutex<HashMap<String, usize>>,
}

#[derive(Debug)]
struct Line {
    number: usize,
    agent: String,
    expect: Option<Regex>,
    delay: Duration,
    content: Vec<Said>,
    stop: Option<StopReason>,
    error: Option<(u16, Vec<u8>)>,
    usage: Option<Usage>,
}

#[derive(Debug)]
enum Said {
    Text(String),
    Thinking(String),
    Call { name: String, arguments: Box<RawValue> },
}

impl ScriptedModel {
    /// Reads a script. Keys that the format does not have are errors, so that a slip of the pen is seen at once.
    ///
    /// # Errors
    /// [`ScriptError`], with the line.
    pub fn load(path: &Path) -> Result<Arc<Self>, ScriptError> {
        let unreadable = |why| ScriptError::Unreadable { file: path.into(), why };
        Self::parse(path, &std::fs::read_to_string(path).map_err(unreadable)?)
    }

    /// The script in a text; `file` is its name in sentences.
    ///
    /// # Errors
    /// [`ScriptError::Line`].
    pub fn parse(file: &Path, text: &str) -> Result<Arc<Self>, ScriptError> {
        let lines = text
            .lines()
            .enumerate()
            .filter(|(_, line)| !line.trim().is_empty())
            .map(|(index, text)| {
                let number = index + 1;
                Line::parse(number, text).map_err(|why| ScriptError::Line { file: file.into(), line: number, why })
            })
            .collect::<Result<_, _>>()?;
        Ok(Arc::new(Self { file: file.into(), lines, taken: Mutex::default() }))
    }

    /// The provider of one agent. `names` are all names under which the script may speak to it (a child's task id and the
    /// name of its agent); the first tells it from others. Two players of the same agent go on where the other stopped.
    #[must_use]
    pub fn player<'a>(self: &Arc<Self>, names: impl IntoIterator<Item = &'a str>, clock: Arc<dyn Clock>) -> Scripted {
        let mut names: Vec<String> = names.into_iter().map(str::to_owned).collect();
        if names.is_empty() {
            names.push(MAIN.into());
        }
        Scripted(Arc::new(Player { script: self.clone(), names, clock }))
    }
}

/// One agent's part of a [`ScriptedModel`].
#[derive(Clone)]
pub struct Scripted(Arc<Player>);

struct Player {
    script: Arc<ScriptedModel>,
    names: Vec<String>,
    clock: Arc<dyn Clock>,
}

impl std::fmt::Debug for Scripted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scripted").field("file", &self.0.script.file).field("names", &self.0.names).finish()
    }
}

impl Provider for Scripted {
    fn render(&self, request: &Checked<Request>, blobs: &dyn Blobs) -> Result<Rendered, Unsupported> {
        anthropic::render(request, blobs)
    }

    fn stream(
        &self,
        request: Rendered,
        cancel: CancellationToken,
    ) -> BoxStream<'static, Result<StreamEvent, ProviderError>> {
        let player = self.0.clone();
        stream::once(async move {
            let events = match player.take(&newest_text(&request)) {
                Ok(line) => {
                    if !line.delay.is_zero() {
                        player.clock.sleep(line.delay).await;
                    }
                    line.events()
                }
                Err(sentence) => vec![Err(ProviderError::BadRequest(sentence))],
            };
            stream::iter(events)
        })
        .flatten()
        .take_until(cancel.cancelled_owned())
        .boxed()
    }

    fn api(&self) -> &'static str {
        API
    }

    fn renderer(&self) -> u16 {
        anthropic::RENDERER
    }
}

impl Player {
    /// The next line of this agent, which is used up, unless it expects something else.
    fn take(&self, newest: &str) -> Result<&Line, String> {
        let Self { script, names, .. } = self;
        let file = script.file.display();
        let mut taken = script.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let place = taken.entry(names[0].clone()).or_default();
        let mut own = script.lines.iter().filter(|line| names.contains(&line.agent));
        let Some(line) = own.nth(*place) else {
            let last = script.lines.iter().rfind(|line| names.contains(&line.agent)).map_or(0, |line| line.number);
            let name = &names[0];
            return Err(format!("the script {file} has no more lines for {name} (its last one is line {last})"));
        };
        if let Some(expect) = line.expect.as_ref().filter(|expect| !expect.is_match(newest)) {
            let number = line.number;
            let newest = one_line(newest);
            return Err(format!(
                "line {number} of the script {file} expects /{expect}/, but the newest message is: {newest}"
            ));
        }
        *place += 1;
        Ok(line)
    }
}

impl Line {
    fn parse(number: usize, text: &str) -> Result<Self, String> {
        let mut fields = Fields::parse(text).map_err(|error| error.to_string())?;
        let expect: Option<String> = optional(&mut fields, "expect")?;
        let stop: Option<StopReason> = optional(&mut fields, "stopReason")?;
        if let Some(StopReason::Other(word)) = &stop {
            return Err(format!("\"{word}\" is no stopReason (stop, length, toolUse, error, aborted)"));
        }
        let content: Option<Vec<Box<RawValue>>> = optional(&mut fields, "content")?;
        let error: Option<Box<RawValue>> = optional(&mut fields, "error")?;
        if content.is_none() && error.is_none() {
            return Err("it has neither \"content\" nor \"error\"".into());
        }
        let line = Self {
            number,
            agent: optional(&mut fields, "agent")?.unwrap_or_else(|| MAIN.into()),
            expect: expect.as_deref().map(Regex::new).transpose().map_err(|error| one_line(&error.to_string()))?,
            delay: Duration::from_millis(optional(&mut fields, "delayMs")?.unwrap_or_default()),
            content: content.unwrap_or_default().iter().map(|block| Said::parse(block)).collect::<Result<_, _>>()?,
            stop,
            error: error.map(|error| failure(&error)).transpose()?,
            usage: optional(&mut fields, "usage")?,
        };
        no_more(fields)?;
        Ok(line)
    }

    /// The answer, in pieces as a real model sends them. Everything in it is made of the line alone.
    fn events(&self) -> Vec<Result<StreamEvent, ProviderError>> {
        let failure = self.error.as_ref().map(|(status, body)| classify(*status, None, body));
        if let (Some(failure), true) = (&failure, self.content.is_empty()) {
            return vec![Err(failure.clone())];
        }
        let mut events = vec![StreamEvent::Start { response_id: Some(format!("scripted_{}", self.number)) }];
        let mut calls = 0;
        for (index, said) in (0..=u16::MAX).zip(&self.content) {
            let (kind, text) = match said {
                Said::Text(text) => (BlockKind::Text, text.as_str()),
                Said::Thinking(text) => (BlockKind::Thinking, text.as_str()),
                Said::Call { name, arguments } => {
                    calls += 1;
                    let id = format!("call_{}_{calls}", self.number);
                    (BlockKind::ToolCall { id, name: name.clone() }, arguments.get())
                }
            };
            events.push(StreamEvent::BlockStart { index, kind });
            events.extend(pieces(text).map(|text| StreamEvent::Delta { index, text: text.into() }));
            events.push(StreamEvent::BlockEnd { index, signature: None });
        }
        events.extend(self.usage.clone().map(StreamEvent::Usage));
        if let Some(failure) = failure {
            let cut = ProviderError::Cut { replay_safe: false, why: one_line(failure.said()) };
            return events.into_iter().map(Ok).chain([Err(cut)]).collect();
        }
        let usual = if calls > 0 { StopReason::ToolUse } else { StopReason::Stop };
        events.push(StreamEvent::Stop(self.stop.clone().unwrap_or(usual)));
        events.into_iter().map(Ok).collect()
    }
}

impl Said {
    fn parse(json: &RawValue) -> Result<Self, String> {
        let mut fields = Fields::parse(json.get()).map_err(|error| error.to_string())?;
        let kind: String = required(&mut fields, "type")?;
        let said = match kind.as_str() {
            "text" => Self::Text(required(&mut fields, "text")?),
            "thinking" => Self::Thinking(required(&mut fields, "thinking")?),
            "toolCall" => {
                let name = required(&mut fields, "name")?;
                let arguments: Box<RawValue> = required(&mut fields, "arguments")?;
                if !arguments.get().starts_with('{') {
                    return Err("\"arguments\" must be an object".into());
                }
                Self::Call { name, arguments }
            }
            _ => return Err(format!("\"{kind}\" is no type of content (text, thinking, toolCall)")),
        };
        no_more(fields)?;
        Ok(said)
    }
}

/// `{"status": 529, "body": …}`; the body is a string, or any JSON.
fn failure(json: &RawValue) -> Result<(u16, Vec<u8>), String> {
    let mut fields = Fields::parse(json.get()).map_err(|error| error.to_string())?;
    let status = required(&mut fields, "status")?;
    let body = fields.raw("body").map(|body| match from_raw::<String>(body) {
        Ok(text) => text.into_bytes(),
        Err(_) => body.get().as_bytes().to_vec(),
    });
    no_more(fields)?;
    Ok((status, body.unwrap_or_default()))
}

fn required<T: serde::de::DeserializeOwned>(fields: &mut Fields<'_>, name: &'static str) -> Result<T, String> {
    fields.required(name).map_err(|error| error.to_string())
}

fn optional<T: serde::de::DeserializeOwned>(fields: &mut Fields<'_>, name: &'static str) -> Result<Option<T>, String> {
    fields.optional(name).map_err(|error| error.to_string())
}

fn no_more(fields: Fields<'_>) -> Result<(), String> {
    match fields.rest().first() {
        Some((name, _)) => Err(format!("the key \"{name}\" is not known here")),
        None => Ok(()),
    }
}

/// Pieces of a few characters each.
fn pieces(mut text: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        let cut = text.char_indices().nth(12).map_or(text.len(), |(cut, _)| cut);
        let (piece, rest) = text.split_at(cut);
        text = rest;
        (!piece.is_empty()).then_some(piece)
    })
}

/// The text of the newest message, read from the very bytes that a model would get.
fn newest_text(request: &Rendered) -> String {
    let Some(at) = request.layout.blocks.last() else { return String::new() };
    let json = [b"[", &request.body[at.start..at.end], b"]"].concat();
    let blocks: Vec<BTreeMap<String, serde_json::Value>> = serde_json::from_slice(&json).unwrap_or_default();
    let mut texts = Vec::new();
    for block in &blocks {
        let nested = block.get("content").and_then(serde_json::Value::as_array);
        texts.extend(block.get("text").and_then(serde_json::Value::as_str));
        texts.extend(nested.into_iter().flatten().filter_map(|block| block.get("text")?.as_str()));
    }
    texts.join("\n")
}
