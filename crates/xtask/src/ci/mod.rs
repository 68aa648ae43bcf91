//! `cargo xtask ci`: everything that has to hold, on a fresh machine, with a table of times at the end.

mod cache;
mod install;
mod left_out;

use std::cell::RefCell;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use clap::Args;

pub(crate) use cache::Cache;

use crate::shell;
use crate::workspace;

/// What `cargo xtask ci` is told.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Run these steps only, in the usual order: install, format, clippy, layers, licences, unused, typos, tests, docs
    #[arg(long, value_delimiter = ',', value_name = "STEP,STEP", value_parser = step_name)]
    only: Vec<&'static str>,
    /// Run the remaining steps after one has failed
    #[arg(long)]
    keep_going: bool,
}

/// What every step gets.
#[derive(Debug)]
struct Context {
    cache: Cache,
    /// PATH with the cached tools first.
    path: OsString,
    /// What the tests left out, once they have run: it is told again below the table.
    left_out: RefCell<Option<String>>,
}

impl Context {
    /// A command that finds the cached tools.
    fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(arguments).env("PATH", &self.path);
        command
    }

    fn cargo(&self, arguments: &[&str]) -> Command {
        self.command("cargo", arguments)
    }
}

struct Step<C> {
    name: &'static str,
    run: fn(&C) -> Result<()>,
}

/// Cheap and telling ones first.
const STEPS: &[Step<Context>] = &[
    Step { name: "install", run: |ci| install::run(&ci.cache, &ci.path) },
    Step { name: "format", run: |ci| shell::run(&mut ci.cargo(&["fmt", "--all", "--check"])) },
    Step { name: "clippy", run: clippy },
    Step { name: "layers", run: |_| crate::layers::run() },
    Step { name: "licences", run: licences },
    Step { name: "unused", run: |ci| shell::run(&mut ci.command("cargo-machete", &["--skip-target-dir"])) },
    Step { name: "typos", run: |ci| shell::run(&mut ci.command("typos", &["--config", "typos.toml"])) },
    Step { name: "tests", run: tests },
    Step { name: "docs", run: docs },
];

fn clippy(ci: &Context) -> Result<()> {
    let scope = ["clippy", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"];
    shell::run(&mut ci.cargo(&scope))
}

fn licences(ci: &Context) -> Result<()> {
    // Advisories live in a git repository outside the package registries, so they are not asked here.
    shell::run(&mut ci.command("cargo-deny", &["--all-features", "check", "licenses", "bans", "sources"]))
}

fn tests(ci: &Context) -> Result<()> {
    ensure!(ci.cache.pi_module().is_dir(), "pi is not in the cache; run `cargo xtask ci --only install` first");
    ensure!(
        ci.cache.llama_python().exists(),
        "llama.cpp is not in the cache; run `cargo xtask ci --only install` first"
    );
    let with_judges = |mut command: Command| {
        command.env("GJC_PI_MODULE", ci.cache.pi_module());
        command.env("GJC_PI_NEWER_MODULE", ci.cache.pi_newer_module());
        command.env("GJC_LLAMA_PYTHON", ci.cache.llama_python()).env("GJC_CI", "1");
        command
    };
    let (keep, report) = left_out::prepare(&workspace::load()?.target)?;
    let units =
        ["nextest", "run", "--workspace", "--all-features", "--profile", "ci", "--tool-config-file", keep.as_str()];
    let ran = shell::run(&mut with_judges(ci.cargo(&units)));
    // Without a report nothing was built: that is the failure to tell.
    if ran.is_ok() || report.exists() {
        let told = left_out::told(&left_out::read(&report)?);
        print!("{told}");
        *ci.left_out.borrow_mut() = Some(told);
    }
    ran?;
    shell::run(&mut with_judges(ci.cargo(&["test", "--doc", "--workspace", "--all-features"])))
}

fn docs(ci: &Context) -> Result<()> {
    shell::run(ci.cargo(&["doc", "--workspace", "--no-deps", "--all-features"]).env("RUSTDOCFLAGS", "-D warnings"))
}

fn step_name(name: &str) -> Result<&'static str, String> {
    let known = || STEPS.iter().map(|step| step.name);
    known()
        .find(|known| *known == name)
        .ok_or_else(|| format!("the steps are {}", known().collect::<Vec<_>>().join(", ")))
}

/// Runs the steps and prints the table.
///
/// # Errors
/// When a step fails; the sentence names it.
pub(crate) fn run(options: &Options) -> Result<()> {
    std::env::set_current_dir(workspace::load()?.root)?;
    let cache = Cache::open()?;
    let ci = Context { path: cache.path_variable()?, cache, left_out: RefCell::default() };
    let chosen = |step: &&Step<Context>| options.only.is_empty() || options.only.contains(&step.name);
    let outcomes = go(STEPS.iter().filter(chosen), &ci, options.keep_going);
    print!("{}{}", table(&outcomes), ci.left_out.take().unwrap_or_default());
    match verdict(&outcomes) {
        None => Ok(()),
        Some(sentence) => bail!(sentence),
    }
}

/// How a step ended.
#[derive(Debug, PartialEq, Eq)]
enum Ending {
    Passed,
    Failed(String),
    NotRun,
}

#[derive(Debug)]
struct Outcome {
    name: String,
    ending: Ending,
    took: Duration,
}

fn go<'s, C: 's>(steps: impl Iterator<Item = &'s Step<C>>, context: &C, keep_going: bool) -> Vec<Outcome> {
    let mut outcomes: Vec<Outcome> = Vec::new();
    for Step { name, run } in steps {
        let stop = !keep_going && outcomes.iter().any(|o| o.ending != Ending::Passed);
        let start = Instant::now();
        let ending = if stop {
            Ending::NotRun
        } else {
            println!("\n== {name}");
            run(context).map_or_else(|error| Ending::Failed(format!("{error:#}")), |()| Ending::Passed)
        };
        if let Ending::Failed(why) = &ending {
            println!("{name}: {why}");
        }
        outcomes.push(Outcome { name: (*name).to_owned(), ending, took: start.elapsed() });
    }
    outcomes
}

fn table(outcomes: &[Outcome]) -> String {
    let mut out = format!("\n{:<10} {:<8} {:>9}\n", "step", "result", "time");
    for outcome in outcomes {
        let took = format!("{:.1} s", outcome.took.as_secs_f64());
        let (result, took) = match outcome.ending {
            Ending::Passed => ("passed", took),
            Ending::Failed(_) => ("FAILED", took),
            Ending::NotRun => ("not run", "-".to_owned()),
        };
        let _ = writeln!(out, "{:<10} {result:<8} {took:>9}", outcome.name);
    }
    let total: Duration = outcomes.iter().map(|o| o.took).sum();
    let _ = writeln!(out, "{:<10} {:<8} {:>9}", "total", "", format!("{:.1} s", total.as_secs_f64()));
    out
}

fn verdict(outcomes: &[Outcome]) -> Option<String> {
    let failed: Vec<String> = outcomes
        .iter()
        .filter_map(|o| match &o.ending {
            Ending::Failed(why) => Some(format!("step `{}` failed: {why}", o.name)),
            Ending::Passed | Ending::NotRun => None,
        })
        .collect();
    let skipped: Vec<&str> = outcomes.iter().filter(|o| o.ending == Ending::NotRun).map(|o| o.name.as_str()).collect();
    if failed.is_empty() {
        return None;
    }
    let rest = if skipped.is_empty() { String::new() } else { format!("; not run: {}", skipped.join(", ")) };
    Some(format!("{}{rest}", failed.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn three(keep_going: bool) -> Vec<Outcome> {
        let steps = [
            Step { name: "one", run: |()| Ok(()) },
            Step { name: "two", run: |()| bail!("no luck") },
            Step { name: "three", run: |()| Ok(()) },
        ];
        go(steps.iter(), &(), keep_going)
    }

    #[test]
    fn the_first_failure_stops_and_the_rest_is_listed() {
        let outcomes = three(false);
        assert_eq!(verdict(&outcomes).unwrap(), "step `two` failed: no luck; not run: three");
        let table = table(&outcomes);
        assert!(table.contains("one        passed"), "{table}");
        assert!(table.contains("two        FAILED"), "{table}");
        assert!(table.contains("three      not run          -"), "{table}");
    }

    #[test]
    fn keep_going_runs_all_and_fails_still() {
        let outcomes = three(true);
        assert_eq!(verdict(&outcomes).unwrap(), "step `two` failed: no luck");
        assert_eq!(outcomes[2].ending, Ending::Passed);
    }

    #[test]
    fn only_takes_known_steps() {
        assert_eq!(step_name("layers"), Ok("layers"));
        assert!(step_name("lint").unwrap_err().starts_with("the steps are install, format"));
        let help = <Options as Args>::augment_args(clap::Command::new("ci")).render_help().to_string();
        for step in STEPS {
            assert!(help.contains(step.name), "the help of --only leaves out `{}`", step.name);
        }
    }
}
