//! The binary: arguments, environment, home, clock, composition. The only crate that reads the environment or prints.
//!
//! Read it from here: [`cli`] says what may be typed; [`compose`] puts a session together: its file ([`opening`]), what it ran
//! with [`before`], other sessions for it ([`another`]), a model of [`providers`], [`instructions`], [`skills`], [`hooks`], the [`confinement`] of commands; the faces are
//! [`mod@print`] (`-p`, `--mode json`) and [`rpc`], with [`prompt`] and [`history`] for what a person says; [`sessions`], [`context`]
//! and [`prompts`] only look at files; [`config`] shows and sets [`settings`]; [`demo`] is the tour, [`doctor`] looks at the system, [`manual`] is for shells.
#![allow(clippy::disallowed_methods, reason = "this crate is the edge: it reads the environment and makes the clock")]

mod another;
mod before;
mod breadcrumbs;
mod cli;
mod clipboard;
mod compose;
mod config;
mod confinement;
mod confirm;
mod context;
mod demo;
mod doctor;
mod du;
mod dump;
mod export;
mod failure;
mod finding;
mod history;
mod hooks;
mod instructions;
mod key;
mod key_commands;
mod keyring;
mod manual;
mod opening;
mod out;
mod print;
mod prompt;
mod prompts;
mod providers;
mod record;
mod rpc;
#[cfg(test)]
mod schemas;
mod sessions;
mod settings;
mod share;
mod skills;
mod tmux;
mod trash;
mod unseen;
mod which;
mod words;
mod world;

use clap::{ArgMatches, CommandFactory, FromArgMatches};
use cli::{Cli, Command, Mode};
use failure::Failure;
use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    words::choose();
    let typed: Vec<OsString> = std::env::args_os().skip(1).collect();
    let parsed = words::command(Cli::command())
        .try_get_matches()
        .and_then(|found| Cli::from_arg_matches(&found).map(|cli| (cli, found)));
    let (cli, found) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => {
            // Help and version go to stdout and end with 0, misuse to stderr with 2. What was mistyped is repeated in the
            // error, and may hold anything.
            let page = words::page(error.render().to_string());
            if error.use_stderr() {
                out::talk(page.trim_end());
            } else {
                out::bytes(page.as_bytes());
            }
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    #[cfg(feature = "failpoints")]
    if let Err(wrong) = world::set_failpoints() {
        out::talk(&format!("gjc: {wrong}"));
        return ExitCode::from(2);
    }
    let ran = run(cli, &found, &typed);
    #[cfg(feature = "failpoints")]
    if let Err(error) = world::count_failpoints() {
        out::talk(&format!("gjc: the passed failpoints could not be counted: {error}"));
        return ExitCode::from(2);
    }
    match ran {
        Ok(code) => code,
        Err(failure) => {
            out::talk(&format!("gjc: {failure}"));
            ExitCode::from(failure.code())
        }
    }
}

fn run(cli: Cli, found: &ArgMatches, typed: &[OsString]) -> Result<ExitCode, Failure> {
    if cli.session.quiet {
        out::be_quiet();
    }
    let env = world::env()?;
    if cli.command.is_none() {
        which::check(&cli.session, found, typed)?;
        if cli.session.tmux {
            tmux::check(&cli.session)?;
            if !tmux::is_inside(&env) {
                return Err(tmux::run(&env, &cli.session, found, typed));
            }
        }
    }
    match cli.command {
        Some(Command::Sessions { command }) => sessions::run(&env, command),
        Some(Command::Context { command }) => context::run(&env, command),
        Some(Command::Prompts(args)) => prompts::run(&env, args),
        Some(Command::Doctor { cwd, json }) => doctor::run(&env, cwd, json),
        Some(Command::Config { command }) => config::run(&env, command),
        Some(Command::Demo { dir, keep_quiet }) => demo::run(&env, dir, keep_quiet),
        Some(Command::Completions { shell }) => Ok(manual::completions(shell)),
        Some(Command::Man { command }) => manual::page(&command),
        #[cfg(feature = "failpoints")]
        Some(Command::Failpoints) => {
            gjc_fp::names().into_iter().for_each(out::line);
            Ok(ExitCode::SUCCESS)
        }
        None if cli.export.export.is_some() => export::file(&env, cli.export),
        None if cli.session.mode == Mode::Rpc => rpc::run(&env, &cli.session),
        None if cli.session.print || cli.session.mode == Mode::Json => print::run(&env, &cli.session),
        None if cli.session.resume == Some(None) => which::offer(&env, &cli.session),
        None => Err(Failure::usage("the terminal interface is not part of this version")
            .hint("ask once with: gjc -p \"your question\", or try: gjc demo; a command stands before its options: gjc sessions list")),
    }
}
