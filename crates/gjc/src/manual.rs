//! What shells and `man` are given, made from what may be typed.

use crate::cli::Cli;
use crate::failure::Failure;
use crate::out;
use clap::{Command, CommandFactory};
use clap_complete::Shell;
use std::process::ExitCode;

/// `gjc completions SHELL`: a script for the shell.
pub(crate) fn completions(shell: Shell) -> ExitCode {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "gjc", &mut script);
    out::bytes(&script);
    ExitCode::SUCCESS
}

/// `gjc man [COMMAND…]`: a manual page.
pub(crate) fn page(words: &[String]) -> Result<ExitCode, Failure> {
    let mut command = Cli::command();
    command.build();
    let mut found = &command;
    for word in words {
        found = found.find_subcommand(word).ok_or_else(|| {
            let known: Vec<&str> =
                found.get_subcommands().filter(|sub| !sub.is_hide_set()).map(Command::get_name).collect();
            let unknown = Failure::usage(format!("there is no command \"{}\"", words.join(" ")));
            unknown.hint(match known.as_slice() {
                [] => "leave the last word out".to_owned(),
                known => format!("choose from: {}", known.join(", ")),
            })
        })?;
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(found.clone())
        .render(&mut page)
        .map_err(|error| Failure::new(format!("the page cannot be made: {error}")))?;
    out::bytes(&page);
    Ok(ExitCode::SUCCESS)
}
