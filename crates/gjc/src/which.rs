//! Which session a run is about, and where it works: what `--continue`, `--resume`, `--fork`, `--session-dir` and `--worktree` mean.
//! Nothing of a session is changed here, and no file of one is made.

use crate::cli::{Mode, SessionArgs};
use crate::failure::Failure;
use crate::world::real_dir;
use crate::{breadcrumbs, out};
use clap::ArgMatches;
use gjc_entry::{EntryId, Env, Skeleton, Source as _, Vars};
use gjc_log::Reader;
use gjc_log::fs::OsFs;
use gjc_store::{NotResolved, SessionInfo, Store, is_path_like, same_folder};
use gjc_tools::is_secret;
use gjc_workspace::{Worktree, check_name, worktree};
use std::ffi::OsString;
use std::io::{BufRead, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What a run begins with.
pub(crate) struct Which {
    /// The folder to work in, as a real path.
    pub(crate) here: PathBuf,
    /// Whether it works there whatever folder the session's file records.
    pub(crate) stays_here: bool,
    /// The session.
    pub(crate) from: From,
    /// What a person should know of it.
    pub(crate) notices: Vec<String>,
    /// The worktree, which is this process's own for as long as this is held.
    pub(crate) worktree: Option<Worktree>,
}

/// Which session it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum From {
    /// A new one.
    Nothing,
    /// The one of this file.
    File(PathBuf),
    /// A new one with all entries of this file.
    ForkOf(PathBuf),
    /// A new one with what this file holds up to an entry; before all of them without one.
    BranchOf(PathBuf, Option<EntryId>),
}

impl From {
    /// The file whose entries it begins with.
    pub(crate) fn file(&self) -> Option<&Path> {
        match self {
            Self::Nothing => None,
            Self::File(path) | Self::ForkOf(path) | Self::BranchOf(path, _) => Some(path),
        }
    }
}

/// Refuses options that cannot go together, and words that stand where they mean something else.
pub(crate) fn check(args: &SessionArgs, matches: &ArgMatches, typed: &[OsString]) -> Result<(), Failure> {
    if args.fork.is_some() && args.no_session {
        return Err(Failure::usage("--fork requires session persistence").hint("leave --no-session out"));
    }
    if args.resume == Some(None) && (args.print || args.mode != Mode::Text) {
        return Err(Failure::usage("--resume without a session is a choice for a person, and here nobody is asked")
            .hint(
                "name it: gjc -p --resume ID \"your question\"; the newest of this folder: gjc -p -c \"your question\"",
            ));
    }
    let Some(Some(name)) = &args.worktree else { return Ok(()) };
    check_name(name)?;
    if words_follow(args, name, matches, typed) {
        let words = args.prompt.join(" ");
        let shown: String = words.chars().take(60).collect();
        return Err(Failure::usage(format!(
            "after --worktree, \"{name}\" is the name of a worktree, and the words behind it would be the prompt"
        ))
        .hint(format!(
            "if so: gjc -p --worktree={name} \"{shown}\"; without a name: gjc -p --worktree -- \"{name} {shown}\""
        )));
    }
    Ok(())
}

/// Whether a name was typed as a word of its own, and others behind it: `-w fix the bug`.
fn words_follow(args: &SessionArgs, name: &str, matches: &ArgMatches, typed: &[OsString]) -> bool {
    let end = typed.iter().position(|word| word == "--").unwrap_or(typed.len());
    let takes_a_word = |word: &OsString| {
        let text = word.to_string_lossy();
        // `-w` alone or behind other letters that take nothing.
        text == "--worktree"
            || text
                .strip_prefix('-')
                .and_then(|rest| rest.strip_suffix('w'))
                .is_some_and(|rest| rest.chars().all(|c| "cpq".contains(c)))
    };
    let apart = typed[..end].windows(2).any(|pair| takes_a_word(&pair[0]) && pair[1] == *name);
    let behind_the_end = typed.len().saturating_sub(end + 1);
    let places = |id: &str| matches.indices_of(id).into_iter().flatten();
    let before_the_end = args.prompt.len().saturating_sub(behind_the_end);
    let named = places("worktree").max().unwrap_or(usize::MAX);
    apart && places("prompt").take(before_the_end).any(|place| place > named)
}

impl Which {
    /// What the arguments mean.
    pub(crate) async fn of(env: &Env, args: &SessionArgs) -> Result<Self, Failure> {
        let here = match &args.cwd {
            Some(dir) => real_dir(dir)?,
            None => real_dir(Path::new("."))?,
        };
        // Words are looked up before anything is made; what they mean depends on where they were typed.
        let wanted = args.fork.as_ref().or(args.resume.as_ref().and_then(Option::as_ref));
        let found = wanted.map(|word| find(env, args, &here, word)).transpose()?;
        let mut notices = Vec::new();
        let worktree = match &args.worktree {
            Some(name) => Some(checkout(env, &here, name.as_deref(), &mut notices).await?),
            None => None,
        };
        let here = worktree.as_ref().map_or(here, |worktree| worktree.cwd.clone());
        let from = match (found, wanted) {
            (Some(path), _) if args.fork.is_some() => From::ForkOf(path),
            // Who asks for a worktree has said where the session is to go on.
            (Some(path), Some(_)) if worktree.is_some() => From::File(path),
            (Some(path), Some(word)) => or_fork(args, &here, path, word)?,
            _ if args.go_on => latest(env, args, &here, &mut notices)?.map_or(From::Nothing, From::File),
            _ => From::Nothing,
        };
        let stays_here = args.cwd.is_some() || worktree.is_some() || matches!(from, From::ForkOf(_));
        Ok(Self { here, stays_here, from, notices, worktree })
    }
}

/// The run's folder of sessions.
pub(crate) fn store(env: &Env, args: &SessionArgs) -> Store {
    match &args.session_dir {
        Some(flat) => Store::flat(&env.dirs.agent, flat),
        None => Store::new(&env.dirs.agent),
    }
}

/// Its sessions, newest first.
fn all(env: &Env, args: &SessionArgs) -> Result<Vec<SessionInfo>, Failure> {
    let listing = store(env, args).list();
    let listing = listing.map_err(|error| Failure::new(format!("the sessions folder cannot be read: {error}")))?;
    Ok(listing.sessions)
}

/// The file that a word means.
fn find(env: &Env, args: &SessionArgs, here: &Path, word: &str) -> Result<PathBuf, Failure> {
    // A path is one of the shell that it was typed in.
    let from = if is_path_like(word) { real_dir(Path::new("."))? } else { here.into() };
    let store = store(env, args);
    let unknown = match store.resume(&from, word) {
        Err(unknown @ NotResolved::Unknown(_)) => unknown,
        found => return Ok(found?),
    };
    if let Some(file) = store.list().ok().and_then(|listing| listing.unreadable_of(word)) {
        return Err(file.why.into());
    }
    let failure = Failure::from(unknown);
    Err(match &args.session_dir {
        Some(dir) => failure.hint(format!(
            "gjc -r --session-dir {} shows the sessions that there are",
            out::word(&dir.to_string_lossy())
        )),
        None => failure,
    })
}

/// The session of a file goes on, or, where its id has led into another project, a person may have a fork of it here.
fn or_fork(args: &SessionArgs, here: &Path, path: PathBuf, word: &str) -> Result<From, Failure> {
    let cwd = Reader::open(&OsFs, &path)?.value.header().cwd.clone();
    // Who names the file or the folder knows where it is. A project that is gone is in nobody's way.
    let elsewhere = !is_path_like(word) && args.cwd.is_none() && !same_folder(&cwd, here) && Path::new(&cwd).is_dir();
    if !elsewhere {
        return Ok(From::File(path));
    }
    let there = out::word(&out::row(&cwd));
    let ways = format!(
        "go on there: gjc -p --cwd {there} --resume {word} \"your question\"; a fork of it here: gjc -p --fork {word} \
         \"your question\""
    );
    if args.mode != Mode::Text || !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Err(Failure::new(format!("Session \"{word}\" is in another project ({}).", out::row(&cwd))).hint(ways));
    }
    let cwd = out::row(&cwd);
    out::ask(&format!("Session found in different project: {cwd}. Fork into current directory? [y/N] "));
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer);
    match (read, answer.trim().to_lowercase().as_str()) {
        (Ok(_), "y" | "yes") => Ok(From::ForkOf(path)),
        _ => Err(Failure::declined("nothing was begun").hint(ways)),
    }
}

/// The session that a terminal, or else the folder, worked on last.
fn latest(env: &Env, args: &SessionArgs, here: &Path, notices: &mut Vec<String>) -> Result<Option<PathBuf>, Failure> {
    if let Some(last) = breadcrumbs::last(env).filter(|last| same_folder(&last.cwd.to_string_lossy(), here)) {
        let lies_in =
            |dir: &Path| last.session.parent().is_some_and(|folder| same_folder(&folder.to_string_lossy(), dir));
        let within = args.session_dir.as_ref().is_none_or(|dir| lies_in(dir));
        if within && is_real_session(&last.session, here) {
            return Ok(Some(last.session));
        }
    }
    let infos = all(env, args)?;
    let real = |info: &&SessionInfo| info.messages > 0;
    if let Some(info) = infos.iter().filter(real).find(|info| same_folder(&info.cwd, here)) {
        return Ok(Some(info.path.clone()));
    }
    notices.extend(moved(&infos, here));
    notices.push(format!("there is no session of {} yet; this is a new one", here.display()));
    Ok(None)
}

/// What may be this folder's sessions of the time when it had another path.
fn moved(infos: &[SessionInfo], here: &Path) -> Option<String> {
    let found = gjc_store::moved(infos, here);
    let (cwd, newest) = found.first().and_then(|moved| Some((moved.cwd, moved.sessions.first()?)))?;
    Some(format!(
        "there are sessions of {}, which is gone; if that was this folder, go on with: gjc -p --resume {} \"your question\"",
        out::row(cwd),
        out::id(&newest.id)
    ))
}

/// Whether a file is a session of this folder that has something to go on with.
fn is_real_session(path: &Path, here: &Path) -> bool {
    let Ok(loaded) = Reader::open(&OsFs, path) else { return false };
    let has_message = |skeleton: &Skeleton| skeleton.iter().any(|(_, node)| node.kind() == gjc_entry::Kind::Message);
    same_folder(&loaded.value.header().cwd, here) && loaded.value.skeleton().is_some_and(has_message)
}

/// What git sees of a person's variables: those without secrets, and the settings that are given to git by number.
pub(crate) fn for_git(env: &Env) -> Env {
    let kept = env.vars.iter().filter(|(name, value)| !is_secret(name, value) || name.starts_with("GIT_CONFIG_"));
    let vars = Vars::new(kept.map(|(name, value)| (name.to_owned(), value.to_owned())));
    Env { vars, ..env.clone() }
}

/// The worktree of a name, and what a person should know of it.
async fn checkout(env: &Env, here: &Path, name: Option<&str>, notices: &mut Vec<String>) -> Result<Worktree, Failure> {
    let found = worktree(&for_git(env), here, name).await?;
    let path = found.path.display();
    notices.push(match (&found.branch, found.made) {
        (Some(branch), true) => format!("a new worktree of the branch {branch}: {path}"),
        (Some(branch), false) => format!("the worktree of the branch {branch}: {path}"),
        (None, true) => format!("a new worktree without a branch: {path}"),
        (None, false) => format!("a worktree without a branch, which nobody works in: {path}"),
    });
    if found.dirty {
        notices.push("the worktree has changes that are in no commit; they stay as they are".into());
    }
    if found.made && found.submodules {
        notices.push("submodules are empty in a new worktree; git submodule update --init fills them".into());
    }
    for filter in &found.filters {
        notices.push(format!(
            "the filter {filter} of the repository's own settings did not run; its files are as git keeps them"
        ));
    }
    for filter in &found.failed_filters {
        notices.push(format!("the filter {filter} failed, so its files are as git keeps them"));
    }
    Ok(found)
}

/// What `--resume` without a value shows: this folder's sessions, newest first, and how to go on with one.
pub(crate) fn offer(env: &Env, args: &SessionArgs) -> Result<ExitCode, Failure> {
    let here = real_dir(args.cwd.as_deref().unwrap_or(Path::new(".")))?;
    let all = all(env, args)?;
    let infos: Vec<&SessionInfo> =
        all.iter().filter(|info| info.messages > 0 && same_folder(&info.cwd, &here)).collect();
    for info in &infos {
        let when = info.modified.to_string();
        let when = when.get(..16).map_or_else(|| when.clone(), |minute| minute.replace('T', " ") + "Z");
        out::line(
            format!("{}  {when}  {:>4} messages  {}", out::row(&info.id), info.messages, out::cell(info.name(), 60))
                .trim_end(),
        );
    }
    match infos.first() {
        Some(newest) => {
            out::talk(&format!("Go on with one of them: gjc -p --resume {} \"your question\"", out::id(&newest.id)))
        }
        None => out::talk("There are no sessions of this folder yet. All folders: gjc sessions list"),
    }
    if let Some(moved) = moved(&all, &here) {
        out::talk(&format!("gjc: {moved}"));
    }
    Ok(ExitCode::SUCCESS)
}
