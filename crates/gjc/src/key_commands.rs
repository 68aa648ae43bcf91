//! `gjc config key`: a provider's key into the kernel's keyring and out of it, and where the key of a session would come from. No
//! key is an argument, and none is shown.

use crate::cli::{ConfigKey, KeyOf};
use crate::failure::Failure;
use crate::settings::Files;
use crate::world::real_dir;
use crate::{key, keyring, out, providers};
use gjc_entry::Env;
use gjc_settings::Origin;
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};
use schemars::JsonSchema;
use serde::Serialize;
use std::io::{IsTerminal, Read, Write};
use std::path::Path;
use std::process::ExitCode;

/// Runs it.
pub(crate) fn run(env: &Env, command: ConfigKey) -> Result<ExitCode, Failure> {
    match command {
        ConfigKey::Set { provider } => set(env, provider),
        ConfigKey::Forget { provider } => forget(env, provider),
        ConfigKey::Where { provider, json } => place(env, provider, json),
    }
}

/// What `gjc config key where --json` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct KeyWhereJson {
    /// The provider.
    provider: &'static str,
    /// Where the key comes from: `variable`, `keyring`, `command`, or `nowhere`.
    source: &'static str,
    /// The variable that is looked at first.
    variable: &'static str,
    /// File and line of the command, where one is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<String>,
}

fn set(env: &Env, provider: KeyOf) -> Result<ExitCode, Failure> {
    let name = provider.name();
    let typed = typed(name)?;
    let key = key::sound(&typed).ok_or_else(|| {
        Failure::usage("this is no key: one word of letters, digits and signs is wanted")
            .hint(format!("give it on standard input: gjc config key set {name} < FILE"))
    })?;
    keyring::keep(env, name, key)?;
    out::talk(&format!("gjc: the keyring has the key of {name} until the machine's next start"));
    Ok(ExitCode::SUCCESS)
}

fn forget(env: &Env, provider: KeyOf) -> Result<ExitCode, Failure> {
    let name = provider.name();
    let told = if keyring::forget(env, name)? {
        "the keyring has no key of {} any more"
    } else {
        "the keyring had no key of {}"
    };
    out::talk(&format!("gjc: {}", told.replace("{}", name)));
    Ok(ExitCode::SUCCESS)
}

fn place(env: &Env, provider: KeyOf, json: bool) -> Result<ExitCode, Failure> {
    let (name, variable) = (provider.name(), providers::variable_of(provider));
    let effective = Files::read(env, &real_dir(Path::new("."))?)?.effective(&[]);
    let command = effective.get(&format!("providers.{name}.keyCommand"));
    let command = command.filter(|layered| layered.origin != Origin::Default).map(|layered| layered.origin.to_string());
    let source = match &command {
        _ if env.vars.get(variable).is_some() => "variable",
        _ if keyring::find(env, name).is_some() => "keyring",
        Some(_) => "command",
        None => "nowhere",
    };
    let code = if source == "nowhere" { ExitCode::FAILURE } else { ExitCode::SUCCESS };
    if json {
        crate::sessions::print_json(&KeyWhereJson { provider: name, source, variable, command });
        return Ok(code);
    }
    match (source, command) {
        ("variable", _) => out::line(variable),
        ("command", Some(place)) => out::line(&format!("keyCommand {}", out::row(&place))),
        ("keyring", _) => out::line("keyring"),
        _ => return Err(providers::no_key(provider)),
    }
    Ok(code)
}

/// What is given on standard input: a line that is not shown at a terminal, everything elsewhere.
fn typed(name: &str) -> Result<String, Failure> {
    let unreadable = |error: std::io::Error| Failure::new(format!("standard input cannot be read: {error}"));
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        let mut bytes = Vec::new();
        stdin.take(key::LONGEST as u64 + 2).read_to_end(&mut bytes).map_err(unreadable)?;
        return Ok(String::from_utf8(bytes).unwrap_or_default());
    }
    let mut err = std::io::stderr();
    let _ = err
        .write_all(crate::words::told(&format!("key of {name} (not shown): ")).as_bytes())
        .and_then(|()| err.flush());
    let hidden = Hidden::begin().map_err(|error| unreadable(error.into()))?;
    let line = line(&mut std::io::stdin().lock());
    drop(hidden);
    let _ = err.write_all(b"\n");
    line.map_err(unreadable)?.ok_or_else(Failure::interrupted)
}

/// A line, letter by letter; `None` where a person has interrupted it.
fn line(from: &mut impl Read) -> std::io::Result<Option<String>> {
    let (mut typed, mut byte) = (Vec::new(), [0]);
    while from.read(&mut byte)? == 1 {
        match byte[0] {
            b'\r' | b'\n' | 0x04 => break,
            0x03 => return Ok(None),
            0x08 | 0x7f => drop(typed.pop()),
            0x15 => typed.clear(),
            _ if typed.len() > key::LONGEST => {}
            other => typed.push(other),
        }
    }
    Ok(Some(String::from_utf8(typed).unwrap_or_default()))
}

/// A terminal that shows nothing of what is typed, until this is dropped. Signals of its keys are off as well: a process that one of
/// them ended would leave the terminal so.
struct Hidden(Termios);

impl Hidden {
    fn begin() -> rustix::io::Result<Self> {
        let before = tcgetattr(std::io::stdin())?;
        let mut now = before.clone();
        now.local_modes.remove(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG);
        now.special_codes[SpecialCodeIndex::VMIN] = 1;
        now.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(std::io::stdin(), OptionalActions::Flush, &now)?;
        Ok(Self(before))
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Flush, &self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hidden_line_is_edited_and_can_be_given_up() {
        for (typed, read) in [
            ("sk-abc\r", Some("sk-abc")),
            ("wrong\u{15}sk-x\u{7f}y\n", Some("sk-y")),
            ("\u{7f}\u{8}sk\u{4}more", Some("sk")),
            ("sk-abc", Some("sk-abc")),
            ("sk-\u{3}\n", None),
        ] {
            assert_eq!(line(&mut typed.as_bytes()).unwrap().as_deref(), read, "{typed:?}");
        }
    }
}
