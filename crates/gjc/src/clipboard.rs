//! The clipboard: by a program where there is a display, else by the terminal (OSC 52).

use crate::failure::Failure;
use crate::world::runtime;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use gjc_entry::Env;
use gjc_process::{Exit, Spawn, SpawnError, Stdin};
use std::fs::OpenOptions;
use std::io::Write;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The programs, in the order in which they are tried: the variable of the display that each needs, its name and arguments.
const PROGRAMS: [(Option<&str>, &str, &[&str]); 4] = [
    (Some("WAYLAND_DISPLAY"), "wl-copy", &[]),
    (Some("DISPLAY"), "xclip", &["-selection", "clipboard"]),
    (Some("DISPLAY"), "xsel", &["--clipboard", "--input"]),
    (None, "pbcopy", &[]),
];
/// The longest base64 that terminals take at once; a longer one is dropped by most without a word.
const LONGEST: usize = 74_994;
/// How long a program may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Puts a text there; answers by what.
///
/// # Errors
/// There is no clipboard, or it did not take the text.
pub(crate) fn copy(env: &Env, text: Vec<u8>) -> Result<&'static str, Failure> {
    for (display, program, args) in PROGRAMS {
        if display.is_some_and(|variable| env.vars.get(variable).is_none()) {
            continue;
        }
        match runtime()?.block_on(gjc_process::run(spawn(env, program, args, &text), CancellationToken::new(), None)) {
            Err(SpawnError::ProgramMissing { .. }) => {}
            Err(error) => return Err(Failure::new(error.to_string())),
            Ok(finished) if finished.exit == Exit::Code(0) => return Ok(program),
            Ok(_) => {
                return Err(Failure::new(format!("{program} did not take the text: the clipboard is as it was"))
                    .hint("write it to a file: gjc sessions show ID --full > dump.txt"));
            }
        }
    }
    let Ok(mut terminal) = OpenOptions::new().write(true).open("/dev/tty") else {
        return Err(Failure::new("there is no clipboard here: no wl-copy, xclip, xsel or pbcopy, and no terminal")
            .hint("write it to a file: gjc sessions show ID --full > dump.txt"));
    };
    let sequence = osc_52(&text)?;
    let written = terminal.write_all(sequence.as_bytes()).and_then(|()| terminal.flush());
    written.map_err(|error| Failure::new(format!("the terminal cannot be written to: {error}")))?;
    Ok("the terminal")
}

/// What a terminal obeys as an order to keep a text in its clipboard.
fn osc_52(text: &[u8]) -> Result<String, Failure> {
    let text = BASE64_STANDARD.encode(text);
    if text.len() > LONGEST {
        return Err(Failure::new("the dump is too long for the clipboard of a terminal; nothing was copied")
            .hint("write it to a file: gjc sessions show ID --full > dump.txt"));
    }
    Ok(format!("\u{1b}]52;c;{text}\u{7}"))
}

/// These programs stay, to hand the text to who pastes it: in a session of their own they outlive what ends with us.
fn spawn(env: &Env, program: &str, args: &[&str], text: &[u8]) -> Spawn {
    let found = env.vars.get("PATH").unwrap_or_default().split(':').filter(|folder| folder.starts_with('/'));
    let is_there = |name: &str| found.clone().any(|folder| std::path::Path::new(folder).join(name).is_file());
    let mut words: Vec<&str> = [program].into_iter().chain(args.iter().copied()).collect();
    if is_there(program) && is_there("setsid") {
        words.splice(0..0, ["setsid", "--wait"]);
    }
    let mut spawn = Spawn::new(words[0], &env.dirs.home);
    spawn.args = words[1..].iter().map(Into::into).collect();
    spawn.env = env.vars.iter().map(|(name, value)| (name.into(), value.into())).collect();
    spawn.stdin = Stdin::Bytes(text.to_vec());
    spawn.timeout = Some(PATIENCE);
    spawn
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_gets_the_text_as_base64_and_nothing_too_long() {
        assert_eq!(osc_52("한글\u{1b}".as_bytes()).unwrap(), "\u{1b}]52;c;7ZWc6riAGw==\u{7}");
        assert!(osc_52(&vec![b'x'; LONGEST]).unwrap_err().sentence().contains("too long"));
    }
}
