//! One thing measured in a fresh process, and tables of such things.
//!
//! A bench executable hands its jobs and its rows to [`main`]. A job does one thing and answers what it took; each run of a
//! row is a process of its own, because a peak of memory belongs to a process. The rows of a suite run interleaved, so that
//! a noisy minute of the machine hits all of them alike, and their ratios are against the first.
//!
//! | called as | prints |
//! |---|---|
//! | `job NAME ARGUMENT…` | what one run took, as one JSON line |
//! | `rows FOLDER` | all suites as JSON, for a measurer like `cargo xtask bench`; their files are made in the folder |
//! | `[TEXT]` | the suites whose title holds the text, measured |

#![allow(clippy::print_stdout, reason = "its output is what a bench is for")]

use crate::disk::Disk;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Rows that are compared with each other.
#[derive(Debug, Clone)]
pub struct Suite {
    /// What is compared.
    pub title: String,
    /// The first is the measure of the others.
    pub rows: Vec<Row>,
}

/// One command that prints what [`took`] answers.
#[derive(Debug, Clone)]
pub struct Row {
    /// In the table.
    pub name: String,
    /// The program and its arguments.
    pub command: Vec<String>,
}

impl Row {
    /// A job of this executable.
    #[must_use]
    pub fn job(name: &str, job: &str, arguments: &[&Path]) -> Self {
        let own = std::env::current_exe().expect("a program knows where it is");
        let arguments = arguments.iter().map(|argument| argument.display().to_string());
        let command = [own.display().to_string(), "job".into(), job.into()].into_iter().chain(arguments).collect();
        Self { name: name.into(), command }
    }

    /// A job of this executable on a file system that is mounted for it alone.
    #[must_use]
    pub fn job_on(disk: &Disk, name: &str, job: &str, arguments: &[&Path]) -> Self {
        let own = std::env::current_exe().expect("a program knows where it is");
        let mut command = disk.command(&own);
        command.args(["job", job]).args(arguments);
        // A row has no variables of its own.
        let variables =
            command.get_envs().filter_map(|(name, value)| Some(format!("{}={}", name.display(), value?.display())));
        let words =
            std::iter::once(command.get_program()).chain(command.get_args()).map(|word| word.display().to_string());
        Self { name: name.into(), command: std::iter::once("env".into()).chain(variables).chain(words).collect() }
    }

    /// pi's own open and context of a file; `None` where the package is not installed.
    #[must_use]
    pub fn pi(file: &Path) -> Option<Self> {
        Self::pi_script("pi 0.73.1", "open-session.mjs", &[&file.display()])
    }

    /// What pi makes of it, by a script of the folder `pi`; `None` where the package is not installed.
    #[must_use]
    pub fn pi_script(name: &str, script: &str, arguments: &[&dyn std::fmt::Display]) -> Option<Self> {
        let script = format!("{}/pi/{script}", env!("CARGO_MANIFEST_DIR"));
        let module = PathBuf::from(std::env::var_os("GJC_PI_MODULE")?);
        let command = ["node".into(), script, module.display().to_string()];
        let command = command.into_iter().chain(arguments.iter().map(ToString::to_string)).collect();
        module.join("dist/index.js").is_file().then(|| Self { name: name.into(), command })
    }
}

/// Measures a job until what it makes is there; what that costs when it goes is not its price. `say`: what was found, for
/// the line.
///
/// # Errors
/// The job's.
pub fn took<T>(job: impl FnOnce() -> io::Result<T>, say: impl FnOnce(&T) -> Value) -> io::Result<Value> {
    let (start, cpu) = (wall_ns(), cpu_ns());
    let made = job()?;
    let (ns, cpu) = (wall_ns() - start, cpu_ns() - cpu);
    Ok(json!({"ns": ns, "cpu_ns": cpu, "vm_hwm_kib": peak_kib(), "found": say(&made)}))
}

/// As [`took`], for what is done many times: `ns` is the median of one, without what looking at the clock takes.
///
/// # Errors
/// The job's.
pub fn took_each(
    times: usize,
    clock: impl FnMut() -> u64,
    mut job: impl FnMut() -> io::Result<()>,
) -> io::Result<Value> {
    took_each_with(times, clock, || (), |()| job())
}

/// As [`took_each`], each time with something that is made beforehand: as warm as it is where the job is done in earnest,
/// and not measured.
///
/// # Errors
/// The job's.
pub fn took_each_with<T>(
    times: usize,
    mut clock: impl FnMut() -> u64,
    mut make: impl FnMut() -> T,
    mut job: impl FnMut(T) -> io::Result<()>,
) -> io::Result<Value> {
    // The clock of a process's CPU is a system call, as long as half a write; how long depends on the threads there are.
    let mut look = || {
        let start = clock();
        clock() - start
    };
    let look_ns = (0..100).map(|_| look()).min().unwrap_or(0);
    let mut all = Vec::with_capacity(times);
    for _ in 0..times {
        let made = make();
        let start = clock();
        job(made)?;
        all.push((clock() - start).saturating_sub(look_ns));
    }
    all.sort_unstable();
    Ok(json!({"ns": all[times / 2], "vm_hwm_kib": peak_kib(), "found": {"times": times, "min_ns": all[0]}}))
}

/// Nanoseconds of wall time since some moment.
#[must_use]
pub fn wall_ns() -> u64 {
    clock_ns(libc::CLOCK_MONOTONIC)
}

/// Nanoseconds that all threads of this process ran.
#[must_use]
pub fn cpu_ns() -> u64 {
    clock_ns(libc::CLOCK_PROCESS_CPUTIME_ID)
}

fn clock_ns(clock: libc::clockid_t) -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a live value of the right type.
    let done = unsafe { libc::clock_gettime(clock, &raw mut now) };
    assert_eq!(done, 0, "the clocks of POSIX are there");
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}

/// The greatest resident size so far (`VmHWM`), KiB; 0 where the system does not tell.
#[must_use]
pub fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse().ok()).unwrap_or(0)
}

/// The whole of a bench executable; see the module. `folder` is where the files of `cargo bench` are kept.
pub fn main(
    folder: &str,
    suites: impl FnOnce(&Path) -> io::Result<Vec<Suite>>,
    job: impl FnOnce(&str, &[PathBuf]) -> io::Result<Value>,
) {
    // `cargo bench` adds `--bench`.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match &arguments[..] {
        ["job", name, rest @ ..] => {
            let rest: Vec<PathBuf> = rest.iter().map(PathBuf::from).collect();
            job(name, &rest).map(|line| println!("{line}"))
        }
        ["rows", folder] => suites(Path::new(folder)).map(|suites| {
            let row = |row: &Row| json!({"name": row.name, "command": row.command});
            let suite =
                |suite: &Suite| json!({"title": suite.title, "rows": suite.rows.iter().map(row).collect::<Vec<_>>()});
            println!("{}", Value::from(suites.iter().map(suite).collect::<Vec<_>>()));
        }),
        rest => suites(Path::new(folder)).and_then(|suites| {
            let wanted = |suite: &&Suite| rest.iter().all(|text| suite.title.contains(text));
            suites.iter().filter(wanted).try_for_each(|suite| table(suite, 11).map(|table| println!("{table}")))
        }),
    };
    done.unwrap_or_else(|error| panic!("{error}"));
}

/// A suite, measured.
fn table(suite: &Suite, runs: usize) -> io::Result<String> {
    let mut samples: Vec<Vec<Sample>> = vec![Vec::new(); suite.rows.len()];
    for round in 0..=runs {
        for (row, samples) in suite.rows.iter().zip(&mut samples) {
            let sample = once(row)?;
            // The first round fills the page cache.
            if round > 0 {
                samples.push(sample);
            }
        }
    }
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let mut out = format!(
        "{} ({runs} runs each, interleaved; load {})\n",
        suite.title,
        load.split(' ').next().unwrap_or("unknown")
    );
    let width = suite.rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0);
    let _ = writeln!(
        out,
        "{:<width$} {:>10} {:>10} {:>7} {:>10} {:>10} {:>9}",
        "", "min ms", "p50 ms", "ratio", "p99 ms", "min CPU", "peak MiB"
    );
    let mut measure = 0.0;
    for (index, (row, samples)) in suite.rows.iter().zip(&mut samples).enumerate() {
        samples.sort_unstable();
        let at = |percent: usize| samples[(samples.len() * percent).div_ceil(100).saturating_sub(1)].ns as f64 / 1e6;
        let peak = samples.iter().map(|sample| sample.peak_kib).max().unwrap_or(0) as f64 / 1024.0;
        // On a busy machine the wall says more about the others.
        let cpu = samples.iter().map(|sample| sample.cpu_ns).min().unwrap_or(0) as f64 / 1e6;
        if index == 0 {
            measure = at(50);
        }
        let (min, p50, p99) = (at(1), at(50), at(99));
        let _ = writeln!(
            out,
            "{:<width$} {min:>10.4} {p50:>10.4} {:>6.2}x {p99:>10.4} {cpu:>10.4} {peak:>9.1}",
            row.name,
            p50 / measure
        );
    }
    Ok(out)
}

/// One run of one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Sample {
    ns: u64,
    /// The same where the job did not say.
    cpu_ns: u64,
    peak_kib: u64,
}

fn once(row: &Row) -> io::Result<Sample> {
    let wrong = |why: String| io::Error::other(format!("`{}` could not be measured: {why}", row.name));
    let (program, arguments) = row.command.split_first().ok_or_else(|| wrong("it names no program".into()))?;
    let out = Command::new(program).args(arguments).stdin(Stdio::null()).stderr(Stdio::inherit()).output()?;
    let line: Value = serde_json::from_slice(&out.stdout).map_err(|error| wrong(format!("{error}, {}", out.status)))?;
    match (line["ns"].as_u64(), line["vm_hwm_kib"].as_u64()) {
        (Some(ns), Some(peak_kib)) => Ok(Sample { ns, cpu_ns: line["cpu_ns"].as_u64().unwrap_or(ns), peak_kib }),
        _ => Err(wrong(format!("it said {line}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_what_its_process_says_and_the_first_is_the_measure() {
        let row = |name: &str, ns: u64| Row {
            name: name.into(),
            command: vec!["/bin/echo".into(), json!({"ns": ns, "vm_hwm_kib": 2048}).to_string()],
        };
        let suite = Suite { title: "열기".into(), rows: vec![row("밑바닥", 2_000_000), row("ours", 5_000_000)] };
        let table = table(&suite, 3).unwrap();
        let last: Vec<&str> = table.lines().last().unwrap().split_whitespace().collect();
        assert_eq!(last, ["ours", "5.0000", "5.0000", "2.50x", "5.0000", "5.0000", "2.0"]);
    }

    #[test]
    fn a_row_that_fails_is_no_measurement() {
        let row = Row { name: "x".into(), command: vec!["/bin/echo".into(), "{}".into()] };
        assert!(once(&row).unwrap_err().to_string().contains("`x` could not be measured: it said {}"));
    }

    #[test]
    fn what_is_made_beforehand_and_the_look_at_the_clock_are_not_measured() {
        let now = std::cell::Cell::new(0);
        let pass = |ns: u64| now.set(now.get() + ns);
        let clock = || {
            pass(7);
            now.get()
        };
        let mut made = 0;
        let make = || {
            pass(1000);
            made += 1;
            made
        };
        let line = took_each_with(3, clock, make, |made| {
            pass(made);
            Ok(())
        });
        let line = line.unwrap();
        assert_eq!((&line["ns"], &line["found"]), (&json!(2), &json!({"times": 3, "min_ns": 1})));
    }

    #[test]
    fn clocks_and_peaks_grow() {
        let before = (wall_ns(), cpu_ns(), peak_kib());
        let used: Vec<u8> = vec![1; 32 << 20];
        assert!(used.iter().all(|byte| *byte == 1));
        let after = (wall_ns(), cpu_ns(), peak_kib());
        assert!(after.0 > before.0 && after.1 > before.1 && after.2 >= before.2 + 16 * 1024, "{before:?} {after:?}");
    }
}
