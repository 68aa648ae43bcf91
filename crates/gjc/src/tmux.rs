//! `--tmux`: this process becomes tmux, in a session that runs gjc with the same arguments.

use crate::cli::{Mode, SessionArgs};
use crate::failure::Failure;
use crate::which::for_git;
use crate::world::{real_dir, runtime};
use clap::{ArgMatches, parser::ValueSource};
use gjc_entry::{Env, Vars};
use gjc_tools::is_secret;
use gjc_workspace::{Command, Tmux, main_checkout};
use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::Path;

/// Options that say where to work, and nothing of what to do there.
const WHERE: [&str; 4] = ["tmux", "worktree", "cwd", "quiet"];

/// Whether gjc runs in tmux already: then there is nothing to do.
pub(crate) fn is_inside(env: &Env) -> bool {
    env.vars.get("TMUX").is_some()
}

/// Becomes tmux. Returns only when that failed.
pub(crate) fn run(env: &Env, args: &SessionArgs, matches: &ArgMatches, typed: &[OsString]) -> Failure {
    runtime().and_then(|runtime| runtime.block_on(start(env, args, matches, typed))).unwrap_or_else(|failure| failure)
}

/// Refuses what has no terminal interface.
pub(crate) fn check(args: &SessionArgs) -> Result<(), Failure> {
    if args.print || args.mode != Mode::Text {
        return Err(Failure::usage(
            "--tmux is for the terminal interface, which -p and --mode json or rpc do not show",
        )
        .hint("leave --tmux out; in a session of tmux, -p works as anywhere"));
    }
    Ok(())
}

async fn start(env: &Env, args: &SessionArgs, matches: &ArgMatches, typed: &[OsString]) -> Result<Failure, Failure> {
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        return Err(Failure::usage("--tmux needs a terminal, and standard input or output is none")
            .hint("without a terminal: gjc -p \"your question\""));
    }
    let here = real_dir(args.cwd.as_deref().unwrap_or(Path::new(".")))?;
    // Whatever stands in the way of a worktree is said here, and not in a terminal that closes with it.
    let project = match &args.worktree {
        Some(_) => main_checkout(&for_git(env), &here).await?,
        None => here,
    };
    let program =
        std::env::current_exe().map_err(|error| Failure::new(format!("gjc cannot find its own program: {error}")))?;
    let command = Command {
        program,
        args: inside(typed),
        // Relative paths among the arguments mean what they mean here.
        cwd: real_dir(Path::new("."))?,
        vars: env.vars.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        project,
        branch: args.worktree.clone().flatten(),
        anew: args.worktree == Some(None) || says_more(matches),
    };
    // tmux itself, and whatever else is started in it later, gets no key.
    let open = env.vars.iter().filter(|(name, value)| !is_secret(name, value));
    let vars = Vars::new(open.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let without_keys = Env { vars, ..env.clone() };
    let tmux = Tmux::new(&without_keys, env.vars.get("GJC_TMUX_COMMAND"));
    let attach = tmux.session(&command).await?;
    Ok(Failure::new(gjc_process::become_program(&attach).to_string()))
}

/// Whether the arguments say more than where to work.
fn says_more(matches: &ArgMatches) -> bool {
    let typed = |id: &str| matches.value_source(id) == Some(ValueSource::CommandLine);
    matches.ids().map(clap::Id::as_str).any(|id| typed(id) && !WHERE.contains(&id) && id != "SessionArgs")
}

/// The arguments without `--tmux`.
fn inside(typed: &[OsString]) -> Vec<OsString> {
    let end = typed.iter().position(|word| word == "--").unwrap_or(typed.len());
    let before = typed[..end].iter().filter(|word| *word != "--tmux");
    before.chain(&typed[end..]).cloned().collect()
}
