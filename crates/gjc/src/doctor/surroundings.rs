//! Programs, terminal, language and keys.

use super::Finding;
use crate::cli::KeyOf;
use crate::failure::Failure;
use crate::keyring;
use crate::providers::KEYS;
use crate::settings::Files;
use crate::world;
use clap::ValueEnum;
use gjc_entry::{Env, Vars};
use gjc_process::{Exit, Spawn};
use gjc_settings::{Origin, SETTINGS};
use std::io::IsTerminal;
use std::path::Path;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The oldest git that the tests of this project run with.
const GIT_FLOOR: (u32, u32) = (2, 39);

pub(super) fn findings(env: &Env, cwd: &Path) -> Result<Vec<Finding>, Failure> {
    let terminal = std::io::stdout().is_terminal();
    let (settings, commands) = settings(env, cwd);
    Ok(vec![git(env)?, self::terminal(&env.vars, terminal), locale(&env.vars), settings, keys(env, &commands)])
}

/// Whether the settings of a folder can be read, and the names of those that give a key.
fn settings(env: &Env, cwd: &Path) -> (Finding, Vec<String>) {
    let files = match Files::read(env, cwd) {
        Ok(files) => files,
        Err(failure) => {
            let told = failure.to_string();
            let first = told.lines().next().unwrap_or_default();
            let hint = "mend that line: no session begins before; gjc config list shows more";
            return (Finding::problem("settings", first, hint), Vec::new());
        }
    };
    let (_, project, trusted) = files.project();
    let says = match (project, trusted) {
        (false, _) => "they can be read",
        (true, true) => "they can be read; the project's are trusted",
        (true, false) => "they can be read; the project's are not trusted, and can only be stricter",
    };
    let commands = SETTINGS.iter().filter(|setting| setting.key.ends_with(".keyCommand"));
    let effective = files.effective(&[]);
    let given = |key: &str| effective.get(key).is_some_and(|layered| layered.origin != Origin::Default);
    let commands = commands.map(|setting| setting.key.to_owned()).filter(|key| given(key)).collect();
    (Finding::ok("settings", says), commands)
}

fn git(env: &Env) -> Result<Finding, Failure> {
    // In a folder that is no repository, so that no repository's settings have a say.
    let mut spawn = Spawn::new("git", "/");
    spawn.args = vec!["--version".into()];
    spawn.env = env.vars.get("PATH").map(|path| ("PATH".into(), path.into())).into_iter().collect();
    spawn.timeout = Some(Duration::from_secs(10));
    let ran = world::runtime()?.block_on(gjc_process::run(spawn, CancellationToken::new(), None));
    Ok(match ran {
        Ok(finished) if finished.exit == Exit::Code(0) => judge_git(&finished.output.text()),
        Ok(_) => Finding::problem("git", "`git --version` fails", "mend the installation of git"),
        Err(_) => Finding::note("git", "there is no git", "install git to work with repositories"),
    })
}

fn judge_git(said: &str) -> Finding {
    let version = said.trim().strip_prefix("git version ").unwrap_or(said.trim());
    let mut numbers = version.split('.').map_while(|part| part.parse::<u32>().ok());
    match (numbers.next(), numbers.next()) {
        (Some(major), Some(minor)) if (major, minor) < GIT_FLOOR => Finding::note(
            "git",
            format!("{version} is older than what gjc is tested with"),
            format!("install git {}.{} or newer", GIT_FLOOR.0, GIT_FLOOR.1),
        ),
        (Some(_), Some(_)) => Finding::ok("git", version),
        _ => {
            Finding::note("git", format!("its version is not understood: {version}"), "see what `git --version` prints")
        }
    }
}

fn terminal(vars: &Vars, terminal: bool) -> Finding {
    match (terminal, vars.get("TERM")) {
        (false, _) => Finding::ok("terminal", "standard output is none: it is plain"),
        (true, None | Some("dumb")) => {
            Finding::note("terminal", "it says that it can move no cursor", "set TERM to what the terminal is")
        }
        (true, Some(name)) => Finding::ok("terminal", name),
    }
}

/// The value that counts for characters (locale(7)).
fn locale(vars: &Vars) -> Finding {
    let value = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(|name| vars.get(name));
    match value {
        Some(value) if is_utf8(value) => Finding::ok("locale", value),
        Some(value) => Finding::note(
            "locale",
            format!("{value} is not UTF-8: programs may show 한글 and other letters wrongly"),
            "export LANG=C.UTF-8",
        ),
        None => Finding::note(
            "locale",
            "none is set: programs may show 한글 and other letters wrongly",
            "export LANG=C.UTF-8",
        ),
    }
}

fn is_utf8(value: &str) -> bool {
    let encoding = value.split_once('.').map_or("", |(_, encoding)| encoding);
    let encoding = encoding.split('@').next().unwrap_or_default();
    encoding.eq_ignore_ascii_case("utf-8") || encoding.eq_ignore_ascii_case("utf8")
}

/// Names alone. `commands`: the settings that give a key when one is wanted.
fn keys(env: &Env, commands: &[String]) -> Finding {
    let mut set: Vec<String> =
        KEYS.iter().filter(|name| env.vars.get(name).is_some()).map(|name| (*name).to_owned()).collect();
    let kept = KeyOf::value_variants().iter().filter(|provider| keyring::find(env, provider.name()).is_some());
    set.extend(kept.map(|provider| format!("{} (keyring)", provider.name())));
    set.extend(commands.iter().cloned());
    if set.is_empty() {
        Finding::note(
            "keys",
            "none is set",
            format!(
                "set {}, give one to the keyring (gjc config key set PROVIDER), or name a server that needs none with --provider-url",
                KEYS.join("/")
            ),
        )
    } else {
        Finding::ok("keys", set.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::*;

    #[test]
    fn versions_of_git_are_compared_as_numbers() {
        for (said, state) in [
            ("git version 2.39.5\n", State::Ok),
            ("git version 2.100.0", State::Ok),
            ("git version 10.0", State::Ok),
            ("git version 2.39.5 (Apple Git-154)", State::Ok),
            ("git version 2.9.1", State::Note),
            ("git version 1.99", State::Note),
            ("기트", State::Note),
            ("", State::Note),
        ] {
            assert!(judge_git(said).state == state, "{said}");
        }
    }

    #[test]
    fn the_locale_is_the_one_that_counts() {
        let of = |pairs: &[(&str, &str)]| {
            locale(&Vars::new(pairs.iter().map(|(name, value)| ((*name).to_string(), (*value).to_string())))).state
        };
        assert!(of(&[("LANG", "ko_KR.UTF-8")]) == State::Ok);
        assert!(of(&[("LANG", "ko_KR.UTF-8@x"), ("LC_ALL", "")]) == State::Ok);
        assert!(of(&[("LANG", "C.utf8"), ("LC_ALL", "C")]) == State::Note);
        assert!(of(&[("LANG", "ko_KR.EUC-KR")]) == State::Note);
        assert!(of(&[]) == State::Note);
    }

    #[test]
    fn a_terminal_that_can_do_nothing_is_named() {
        let of = |name: &str, is: bool| terminal(&Vars::new([("TERM".to_string(), name.to_string())]), is).state;
        assert!(
            of("xterm-256color", true) == State::Ok && of("dumb", true) == State::Note && of("", true) == State::Note
        );
        assert!(of("dumb", false) == State::Ok);
    }
}
