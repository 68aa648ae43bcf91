//! The settings of a run: read once, before anything is opened. A file with a problem ends it there.

use crate::cli::SessionArgs;
use crate::failure::Failure;
use gjc_entry::{ApprovalMode, Env};
use gjc_settings::{
    Document, Effective, Flag, SETTINGS, Scope, Trust, merge, project_file, project_root, read_project, read_user,
};
use std::path::{Path, PathBuf};

/// Both files, as they were read.
pub(crate) struct Files {
    user: Option<Document>,
    project: Option<Document>,
    /// The project's real path.
    root: PathBuf,
    trusted: bool,
}

/// The person's file.
pub(crate) fn user_file(env: &Env) -> PathBuf {
    env.dirs.agent.join("config.yml")
}

impl Files {
    /// Those of a folder, which is a real path.
    pub(crate) fn read(env: &Env, cwd: &Path) -> Result<Self, Failure> {
        let (user_file, root) = (user_file(env), project_root(cwd));
        let user = read_user(&user_file)?;
        let user = user.map(|bytes| Document::parse(&user_file, &bytes, Scope::User)).transpose()?;
        let project = read_project(&root, &user_file)?;
        let project = project.map(|bytes| Document::parse(&project_file(&root), &bytes, Scope::Project)).transpose()?;
        let trusted =
            project.as_ref().is_some_and(|document| Trust::new(&env.dirs.agent).holds(&root, document.hash()));
        Ok(Self { user, project, root, trusted })
    }

    /// Lets the project's file in as it was read, and says so; nothing where there is none.
    fn trust(&mut self, env: &Env) -> Result<Vec<String>, Failure> {
        let Some(document) = &self.project else { return Ok(Vec::new()) };
        Trust::new(&env.dirs.agent).grant(&self.root, document.hash())?;
        self.trusted = true;
        let path = document.path().display();
        let mut notices = vec![format!("{path} is trusted as it is ({})", document.hash())];
        if document.entries().iter().any(|entry| entry.setting.key.starts_with("hooks.")) {
            notices.push(format!(
                "{path} has hooks: programs that run from now on as you run them yourself, outside of the sandbox of commands"
            ));
        }
        Ok(notices)
    }

    /// What counts.
    pub(crate) fn effective(&self, flags: &[Flag]) -> Effective {
        merge(self.user.as_ref(), self.project.as_ref().map(|document| (document, self.trusted)), flags)
    }

    /// The project's file, whether there is one, and whether it is trusted.
    pub(crate) fn project(&self) -> (PathBuf, bool, bool) {
        (project_file(&self.root), self.project.is_some(), self.trusted)
    }
}

/// What counts for a session in a folder, which is a real path; whether the project has settings of its own; and what a
/// person should know of all that.
pub(crate) fn of_session(
    env: &Env,
    args: &SessionArgs,
    cwd: &Path,
    trust_project: bool,
) -> Result<(Effective, bool, Vec<String>), Failure> {
    let flags = [
        ("models.default", args.model.clone()),
        // It is that of whoever answers.
        ("providers.anthropic.url", args.provider_url.clone()),
        ("providers.openai.url", args.provider_url.clone()),
        ("approval", args.approval.map(|mode| ApprovalMode::from(mode).as_str().to_owned())),
        ("sandbox.mode", args.commands.sandbox.map(word)),
        ("sandbox.network", args.commands.sandbox_network.map(word)),
        ("tools", args.tools.as_ref().map(|names| names.join(","))),
    ];
    let given = flags.into_iter().filter_map(|(key, word)| Some((key, word?)));
    let flags = given.map(|(key, word)| Flag::new(key, &word).map_err(misuse)).collect::<Result<Vec<_>, _>>()?;
    let flags = [flags, variables(env)].concat();
    let mut files = Files::read(env, cwd)?;
    let mut notices = Vec::new();
    if trust_project {
        notices.extend(files.trust(env)?);
    }
    let effective = files.effective(&flags);
    notices.extend(effective.ignored.iter().map(ToString::to_string));
    Ok((effective, files.project.is_some(), notices))
}

/// The variables that other programs know too and that mean a setting. One that is empty or no sound value is none here: whoever needs
/// it says what is wrong with it.
pub(crate) fn variables(env: &Env) -> Vec<Flag> {
    let variables = SETTINGS.iter().filter_map(|setting| Some((setting.key, env.vars.get(setting.variable?)?)));
    variables.filter_map(|(key, value)| Flag::of_variable(key, value)).collect()
}

/// The word of an option that takes one of a few.
fn word(choice: impl clap::ValueEnum) -> String {
    choice.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

/// A word that a setting cannot have.
pub(crate) fn misuse((sentence, hint): (String, Option<String>)) -> Failure {
    let failure = Failure::usage(sentence);
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}
