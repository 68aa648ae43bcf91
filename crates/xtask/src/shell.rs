//! Running other programs: said before they start, their output live, their failure a sentence.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// A command as a person would type it.
pub(crate) fn line(command: &Command) -> String {
    std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| {
            let word = word.to_string_lossy();
            if word.contains([' ', '"', '\'', '$']) { format!("'{word}'") } else { word.into_owned() }
        })
        .collect::<Vec<_>>()
        .join(" ")
}

/// Prints the command, runs it with the terminal's stdout and stderr and no stdin.
///
/// # Errors
/// When it cannot be started or ends with anything but success.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let line = line(command);
    println!("$ {line}");
    let status = command
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("`{}` could not be started; is it on PATH?", command.get_program().display()))?;
    match status.code() {
        Some(0) => Ok(()),
        Some(code) => bail!("`{line}` failed with exit code {code}"),
        None => bail!("`{line}` was ended by a signal ({status})"),
    }
}

/// What a command prints on stdout, trimmed; `None` when it is absent or fails. For asking about versions.
pub(crate) fn ask(command: &mut Command) -> Option<String> {
    let out = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    out.status.success().then(|| String::from_utf8_lossy(&out.stdout).trim().to_owned())
}

/// What a command prints on stdout; its stderr is the terminal's.
///
/// # Errors
/// As [`run`].
pub(crate) fn capture(command: &mut Command) -> Result<String> {
    let line = line(command);
    let out = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("`{}` could not be started; is it on PATH?", command.get_program().display()))?;
    if !out.status.success() {
        bail!("`{line}` failed ({})", out.status);
    }
    String::from_utf8(out.stdout).with_context(|| format!("`{line}` printed something that is no text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_names_the_command_and_its_code() {
        let error = run(Command::new("sh").args(["-c", "exit 3"])).unwrap_err();
        assert_eq!(error.to_string(), "`sh -c 'exit 3'` failed with exit code 3");
    }

    #[test]
    fn an_absent_program_is_none_when_asked_and_a_sentence_when_run() {
        assert_eq!(ask(&mut Command::new("/nowhere/at-all")), None);
        assert!(run(&mut Command::new("/nowhere/at-all")).unwrap_err().to_string().contains("could not be started"));
    }
}
