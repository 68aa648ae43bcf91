//! `gjc config`: what counts and why, and setting one value. The only place that writes a person's file of settings.

use crate::cli::Config;
use crate::failure::Failure;
use crate::sessions::print_json;
use crate::settings::{Files, user_file, variables};
use crate::world::real_dir;
use crate::{key_commands, out};
use gjc_entry::Env;
use gjc_settings::{Effective, Layered, NotSet, Origin, SETTINGS, Scope, find, nearest, read_user, set, unset, write};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::path::Path;
use std::process::ExitCode;

/// Runs it.
pub(crate) fn run(env: &Env, command: Config) -> Result<ExitCode, Failure> {
    match command {
        Config::List { json } => list(env, json),
        Config::Get { key, json } => get(env, &key, json),
        Config::Set { key, value, json } => set_one(env, &key, &value, json),
        Config::Unset { key, json } => unset_one(env, &key, json),
        Config::Key { command } => key_commands::run(env, command),
        Config::Path { json } => path(env, json),
    }
}

/// What `gjc config list --json` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ConfigListJson {
    /// Every setting.
    settings: Vec<SettingJson>,
    /// What the project sets and what does not count, since the project is not trusted.
    ignored: Vec<IgnoredJson>,
}

/// A setting: what `gjc config get --json` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct SettingJson {
    /// Its name.
    key: String,
    /// Its value; null where it has none.
    value: Value,
    /// What it has while nobody sets it.
    default: Value,
    /// Where the value came from: `default`, `user`, `project`, `variable`.
    origin: String,
    /// The variable of the environment, where it came from one.
    #[serde(skip_serializing_if = "Option::is_none")]
    variable: Option<String>,
    /// The file, unless it is the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    /// The line in it, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
}

/// A value of a project that does not count.
#[derive(Serialize, JsonSchema)]
pub(crate) struct IgnoredJson {
    /// The setting.
    key: String,
    /// What the project says.
    value: Value,
    /// The project's file.
    file: String,
    /// The line in it, from 1.
    line: usize,
}

/// What `gjc config set --json` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ConfigSetJson {
    /// The setting.
    key: String,
    /// Its value in your file.
    value: Value,
    /// Your file.
    file: String,
}

/// What `gjc config unset --json` prints.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ConfigUnsetJson {
    /// The setting.
    key: String,
    /// Whether it stood in your file.
    was_set: bool,
    /// Your file.
    file: String,
}

/// What `gjc config path --json` prints.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ConfigPathJson {
    /// Your file.
    user: String,
    /// Whether it is there.
    user_exists: bool,
    /// The project's file.
    project: String,
    /// Whether it is there.
    project_exists: bool,
    /// Whether it is trusted as it is; false as well where it has problems.
    project_trusted: bool,
}

impl From<&Layered> for SettingJson {
    fn from(layered: &Layered) -> Self {
        let (origin, file, line) = match &layered.origin {
            Origin::Default => ("default", None, None),
            Origin::File { path, line, scope: Scope::User } => ("user", Some(path), Some(*line)),
            Origin::File { path, line, scope: Scope::Project } => ("project", Some(path), Some(*line)),
            Origin::Flag(_) => ("flag", None, None),
            Origin::Variable(_) => ("variable", None, None),
        };
        let variable = match layered.origin {
            Origin::Variable(name) => Some(name.into()),
            _ => None,
        };
        Self {
            key: layered.setting.key.into(),
            value: layered.plain.json(),
            default: (layered.setting.default)().json(),
            origin: origin.into(),
            variable,
            file: file.map(|path| path.display().to_string()),
            line,
        }
    }
}

fn effective(env: &Env) -> Result<Effective, Failure> {
    Ok(Files::read(env, &real_dir(Path::new("."))?)?.effective(&variables(env)))
}

fn list(env: &Env, json: bool) -> Result<ExitCode, Failure> {
    let effective = effective(env)?;
    if json {
        let ignored = effective.ignored.iter().map(|ignored| IgnoredJson {
            key: ignored.key.into(),
            value: ignored.plain.json(),
            file: ignored.path.display().to_string(),
            line: ignored.line,
        });
        let settings = effective.values.iter().map(SettingJson::from).collect();
        return Ok(print_json(&ConfigListJson { settings, ignored: ignored.collect() }));
    }
    for layered in &effective.values {
        let value = match layered.plain.shown() {
            none if none.is_empty() => "-".into(),
            value => value,
        };
        let (key, value) = (layered.setting.key, out::cell(&value, 32));
        let origin = out::row(&layered.origin.to_string());
        let row = match ((layered.setting.default)().shown(), &layered.origin) {
            (_, Origin::Default) => format!("{key:30}  {value}  {origin}"),
            (none, _) if none.is_empty() => format!("{key:30}  {value}  {origin} (no default)"),
            (default, _) => format!("{key:30}  {value}  {origin} (default: {default})"),
        };
        out::line(row.trim_end());
    }
    for ignored in &effective.ignored {
        out::talk(&format!("gjc: {ignored}"));
    }
    Ok(ExitCode::SUCCESS)
}

fn get(env: &Env, key: &str, json: bool) -> Result<ExitCode, Failure> {
    let setting = find(key).ok_or_else(|| unknown(key, nearest(key, SETTINGS.iter().map(|setting| setting.key))))?;
    let effective = effective(env)?;
    let layered = effective.get(setting.key).ok_or_else(|| unknown(key, None))?;
    if json {
        return Ok(print_json(&SettingJson::from(layered)));
    }
    if layered.plain == gjc_settings::Plain::None {
        return Err(Failure::new(format!("{key} is not set, and it has no default"))
            .hint(format!("set it with: gjc config set {key} VALUE")));
    }
    out::line(&out::row(&layered.plain.shown()));
    Ok(ExitCode::SUCCESS)
}

fn set_one(env: &Env, key: &str, value: &str, json: bool) -> Result<ExitCode, Failure> {
    let path = user_file(env);
    let before = read_user(&path)?;
    let text = std::str::from_utf8(before.as_deref().unwrap_or_default())
        .map_err(|_| Failure::usage(format!("{} is no UTF-8 text", path.display())).hint("save it as UTF-8"))?;
    let edited = set(&path, text, key, value).map_err(not_set)?;
    if edited != text || before.is_none() {
        write(&path, before.as_deref(), &edited).map_err(|error| Failure::new(error.to_string()))?;
    }
    let document = gjc_settings::Document::parse(&path, edited.as_bytes(), Scope::User)?;
    let entry = document.entries().iter().find(|entry| entry.setting.key == key).ok_or_else(|| unknown(key, None))?;
    if json {
        let (value, file) = (entry.plain.json(), path.display().to_string());
        return Ok(print_json(&ConfigSetJson { key: key.into(), value, file }));
    }
    out::talk(&format!("gjc: {key} is {} now ({}:{})", entry.plain.yaml(), path.display(), entry.line));
    Ok(ExitCode::SUCCESS)
}

fn unset_one(env: &Env, key: &str, json: bool) -> Result<ExitCode, Failure> {
    let path = user_file(env);
    let before = read_user(&path)?;
    let text = std::str::from_utf8(before.as_deref().unwrap_or_default())
        .map_err(|_| Failure::usage(format!("{} is no UTF-8 text", path.display())).hint("save it as UTF-8"))?;
    let edited = unset(&path, text, key).map_err(not_set)?;
    let was_set = edited != text;
    if was_set {
        write(&path, before.as_deref(), &edited).map_err(|error| Failure::new(error.to_string()))?;
    }
    if json {
        return Ok(print_json(&ConfigUnsetJson { key: key.into(), was_set, file: path.display().to_string() }));
    }
    out::talk(&if was_set {
        format!("gjc: {key} is no longer set in {}", path.display())
    } else {
        format!("gjc: {key} was not set in {}", path.display())
    });
    Ok(ExitCode::SUCCESS)
}

fn path(env: &Env, json: bool) -> Result<ExitCode, Failure> {
    let user = user_file(env);
    if !json {
        out::line(&user.display().to_string());
        return Ok(ExitCode::SUCCESS);
    }
    let cwd = real_dir(Path::new("."))?;
    // Where the files are is told also when they have problems: that is when it is asked.
    let (project, exists, trusted) = Files::read(env, &cwd).map_or_else(
        |_| {
            let file = gjc_settings::project_file(&gjc_settings::project_root(&cwd));
            let exists = file.symlink_metadata().is_ok();
            (file, exists, false)
        },
        |files| files.project(),
    );
    Ok(print_json(&ConfigPathJson {
        user_exists: user.symlink_metadata().is_ok(),
        user: user.display().to_string(),
        project: project.display().to_string(),
        project_exists: exists,
        project_trusted: trusted,
    }))
}

fn not_set(error: NotSet) -> Failure {
    let failure = Failure::usage(error.to_string());
    match error {
        NotSet::Unknown { key, meant } => unknown(&key, meant),
        NotSet::Wrong { hint: Some(hint), .. } => failure.hint(hint),
        NotSet::Wrong { hint: None, .. } => failure,
        NotSet::Broken(problems) => problems.into(),
        NotSet::ByHand { value, .. } if value.is_empty() => failure.hint("nothing was written; take it out by hand"),
        NotSet::ByHand { value, .. } => failure.hint(format!("nothing was written; by hand it is: {value}")),
    }
}

fn unknown(key: &str, meant: Option<&str>) -> Failure {
    let failure = Failure::usage(format!("there is no setting \"{key}\""));
    match meant {
        Some(meant) => failure.hint(format!("did you mean {meant}?")),
        None => failure.hint("gjc config list shows all of them"),
    }
}
