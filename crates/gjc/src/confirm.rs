//! A yes or no of the person at the terminal, before something that cannot be taken back by itself.

use crate::failure::Failure;
use crate::{out, words};
use std::io::{IsTerminal, Write};

/// Asks. `false` is everything but a clear yes, the end of the input too.
///
/// # Errors
/// Where there is no terminal: nobody can be asked; `--yes` says it beforehand.
pub(crate) fn confirm(question: &str) -> Result<bool, Failure> {
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Err(Failure::usage("nobody can be asked here").hint("say --yes beforehand, or run it at a terminal"));
    }
    let mut err = std::io::stderr();
    let _ = err.write_all(out::plain(&words::told(question)).as_bytes()).and_then(|()| err.write_all(b" [y/N] "));
    let _ = err.flush();
    let mut line = String::new();
    let read = std::io::stdin().read_line(&mut line);
    read.map_err(|error| Failure::new(format!("standard input cannot be read: {error}")))?;
    Ok(is_yes(&line))
}

/// `ㅛ` is the key of `y` on a Korean keyboard.
fn is_yes(line: &str) -> bool {
    ["y", "yes", "예", "네", "ㅛ"].contains(&line.trim().to_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_yes_is_one() {
        assert!(["y\n", " YES \n", "예\n", "네", "ㅛ\n"].iter().all(|line| is_yes(line)));
        assert!(["", "\n", "n\n", "yy", "아니요\n", "y n"].iter().all(|line| !is_yes(line)));
    }
}
