//! Automation of the workspace: `cargo xtask ci`, `cargo xtask layers`, `cargo xtask bench`, `cargo xtask fuzz`.
//!
//! A person reads what this prints and it starts other programs for a living, so the two rules of the product that
//! forbid both do not hold here (`layers::table` lists the exception).
#![allow(clippy::disallowed_methods, clippy::print_stdout, clippy::print_stderr)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::panic))]

mod bench;
mod ci;
mod fuzz;
mod layers;
mod shell;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Automation of the gjc workspace. Run it from anywhere inside the repository.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    job: Job,
}

#[derive(Debug, Subcommand)]
enum Job {
    /// Install what the checks need, then run all of them; a table with times closes the run
    Ci(ci::Options),
    /// Prove the floors: which crate may know which, and which calls stay in one room
    Layers,
    /// Measure commands beside each other: time (p50, p99) and peak memory
    Bench(bench::Options),
    /// Feed a fuzz target of the log for some minutes, into a log file
    Fuzz(fuzz::Options),
}

fn main() -> ExitCode {
    let done = match Arguments::parse().job {
        Job::Ci(options) => ci::run(&options),
        Job::Layers => layers::run(),
        Job::Bench(options) => bench::run(&options),
        Job::Fuzz(options) => fuzz::run(&options),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
