//! `gjc prompts`: what a person has said in a folder, what nobody answered first.

use crate::cli::{Prompts, PromptsCommand};
use crate::failure::Failure;
use crate::history::{minute, path};
use crate::out;
use crate::sessions::print_json;
use gjc_entry::Env;
use gjc_store::{Fate, History, Prompt};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::HashSet;
use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;

/// Runs it.
pub(crate) fn run(env: &Env, args: Prompts) -> Result<ExitCode, Failure> {
    match args.command {
        None => list(env, &args),
        Some(PromptsCommand::Show { id, json }) => show(env, id, json),
        Some(PromptsCommand::Forget { ids, all }) => forget(env, &ids, all),
    }
}

/// What `gjc prompts --json` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct PromptsJson {
    /// What nobody answered, oldest first; then the others, newest first.
    prompts: Vec<PromptJson>,
}

/// A prompt that was kept.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PromptJson {
    /// Its number; absent where another program wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<i64>,
    /// What was typed.
    text: String,
    /// How many pieces of the prompt (text from standard input) are not in `text`.
    not_kept: usize,
    /// The folder.
    cwd: String,
    /// The id of its session, where that is known; there is no such session yet if nobody answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<String>,
    /// When, ISO 8601.
    at: String,
    /// `open`, `stored` (its session holds it), `sent_again`, `taken_back` or `dismissed`.
    fate: String,
    /// Whether it is open and nobody will answer it any more.
    unanswered: bool,
}

impl From<Prompt> for PromptJson {
    fn from(prompt: Prompt) -> Self {
        Self {
            id: prompt.id,
            text: prompt.text,
            not_kept: prompt.more,
            cwd: prompt.cwd,
            session: prompt.session,
            at: prompt.at.to_string(),
            fate: prompt.fate.as_str().into(),
            unanswered: prompt.unanswered,
        }
    }
}

fn list(env: &Env, args: &Prompts) -> Result<ExitCode, Failure> {
    let cwd = here();
    let cwd = (!args.all).then_some(cwd.as_str());
    let query = args.query.join(" ");
    let mut prompts = match History::look(&path(env))? {
        None => Vec::new(),
        Some(mut history) => {
            let unanswered = history.unanswered(cwd)?;
            let waiting: HashSet<Option<i64>> = unanswered.iter().map(|prompt| prompt.id).collect();
            let matching = history.recent(cwd, &query, args.number.saturating_add(unanswered.len()))?;
            let first = unanswered.into_iter().filter(|prompt| prompt.holds(&query));
            let rest = matching.into_iter().filter(|prompt| prompt.id.is_none() || !waiting.contains(&prompt.id));
            first.chain(rest).collect()
        }
    };
    prompts.truncate(args.number);
    if args.json {
        return Ok(print_json(&PromptsJson { prompts: prompts.into_iter().map(PromptJson::from).collect() }));
    }
    // Whoever asks for none is told nothing.
    if prompts.is_empty() && args.number > 0 {
        out::talk(match (query.is_empty(), args.all) {
            (false, _) => "No prompt holds this text.",
            (true, true) => "There are no prompts yet.",
            (true, false) => "There are no prompts of this folder yet. All folders: gjc prompts --all",
        });
    }
    for prompt in prompts {
        let id = prompt.id.map_or_else(|| "-".into(), |id| id.to_string());
        let mark = if prompt.unanswered { "no answer" } else { "" };
        let text = out::cell(&prompt.text, 60);
        let cwd = if args.all { out::row(&prompt.cwd) } else { String::new() };
        out::line(format!("{id:>5}  {}  {mark:9}  {text}  {cwd}", minute(&prompt)).trim_end());
    }
    Ok(ExitCode::SUCCESS)
}

fn show(env: &Env, id: i64, json: bool) -> Result<ExitCode, Failure> {
    let mut history = History::look(&path(env))?.ok_or_else(|| unknown(id))?;
    let prompt = history.get(id)?.ok_or_else(|| unknown(id))?;
    let unanswered =
        prompt.fate == Fate::Open && history.unanswered(Some(&prompt.cwd))?.iter().any(|other| other.id == prompt.id);
    let prompt = Prompt { unanswered, ..prompt };
    if json {
        return Ok(print_json(&PromptJson::from(prompt)));
    }
    if prompt.more > 0 {
        out::talk("gjc: text from standard input, or a file, was a part of it; that is not kept");
    }
    // As it was typed, for programs; a terminal would obey what it holds.
    out::line(&if std::io::stdout().is_terminal() { out::plain(&prompt.text) } else { prompt.text });
    Ok(ExitCode::SUCCESS)
}

fn forget(env: &Env, ids: &[i64], all: bool) -> Result<ExitCode, Failure> {
    let Some(mut history) = History::look(&path(env))? else {
        return ids.first().map_or(Ok(ExitCode::SUCCESS), |id| Err(unknown(*id)));
    };
    let mut wanted = Vec::new();
    if all {
        wanted.extend(history.unanswered(Some(&here()))?.into_iter().filter_map(|prompt| prompt.id));
    }
    for id in ids {
        let prompt = history.get(*id)?.ok_or_else(|| unknown(*id))?;
        if prompt.fate != Fate::Open {
            out::talk(&format!("gjc: prompt {id} is not waiting for an answer; nothing changes"));
        }
        wanted.push(*id);
    }
    if !wanted.is_empty() {
        History::open(&path(env))?.settle(&wanted, Fate::Dismissed)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn unknown(id: i64) -> Failure {
    Failure::new(format!("there is no prompt {id}"))
        .hint("gjc prompts lists those of this folder, gjc prompts --all all")
}

/// This folder, as sessions name theirs.
fn here() -> String {
    std::fs::canonicalize(".").unwrap_or_else(|_| Path::new("/").into()).display().to_string()
}
