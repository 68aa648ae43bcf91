//! `gjc doctor`: what holds on this system. Each finding is tried out where that can be done without a trace; nothing is
//! changed, and of keys only the names are told.

mod added;
mod sandbox;
mod storage;
mod surroundings;

use crate::failure::Failure;
use crate::out;
use crate::sessions::print_json;
use crate::words;
use crate::world::real_dir;
use gjc_entry::Env;
use schemars::JsonSchema;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What `gjc doctor --json` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct DoctorJson {
    /// The version of gjc.
    version: String,
    /// How many of the findings are problems.
    problems: usize,
    /// What was looked at, in the order of the text.
    findings: Vec<Finding>,
}

/// One thing that was looked at.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Finding {
    /// What it is about, a word that does not change.
    about: &'static str,
    /// How it stands.
    state: State,
    /// What was found, as a sentence.
    says: String,
    /// The way out.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

/// How something stands.
#[derive(Serialize, JsonSchema, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
    /// As it should.
    Ok,
    /// It works, but a person should know.
    Note,
    /// Something does not work.
    Problem,
}

impl Finding {
    fn new(about: &'static str, state: State, says: impl Into<String>) -> Self {
        Self { about, state, says: says.into(), hint: None }
    }

    fn ok(about: &'static str, says: impl Into<String>) -> Self {
        Self::new(about, State::Ok, says)
    }

    fn note(about: &'static str, says: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..Self::new(about, State::Note, says) }
    }

    fn problem(about: &'static str, says: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..Self::new(about, State::Problem, says) }
    }
}

/// Looks, and tells. Exit code 1 where anything does not work.
pub(crate) fn run(env: &Env, cwd: Option<PathBuf>, json: bool) -> Result<ExitCode, Failure> {
    let cwd = real_dir(cwd.as_deref().unwrap_or(Path::new(".")))?;
    let mut findings = sandbox::findings(env, &cwd)?;
    findings.extend(surroundings::findings(env, &cwd)?);
    findings.extend(added::findings(env, &cwd));
    findings.extend(storage::findings(env));
    let problems = findings.iter().filter(|finding| finding.state == State::Problem).count();
    if json {
        print_json(&DoctorJson { version: env!("CARGO_PKG_VERSION").into(), problems, findings });
    } else {
        findings.iter().for_each(show);
    }
    Ok(if problems == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn show(finding: &Finding) {
    let state = match finding.state {
        State::Ok => "ok",
        State::Note => "note",
        State::Problem => "problem",
    };
    out::line(&format!("{state:7}  {:10}  {}", finding.about, out::row(&words::told(&finding.says))));
    if let Some(hint) = &finding.hint {
        out::line(&format!("{:21}{}", "", out::row(&words::told(&format!("hint: {hint}")))));
    }
}
