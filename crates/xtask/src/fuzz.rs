//! `cargo xtask fuzz`: builds a fuzz target with a stable toolchain, and runs it for some minutes.
//!
//! libFuzzer needs coverage counters in the code. Where nightly has `-Zsanitizer`, stable takes the passes of LLVM by name.
//! The corpus that grows while it runs lies below the target folder; a small part of it, in `fuzz/corpus`, is in the tree
//! and is replayed by the tests.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;

use crate::shell;
use crate::workspace;

/// What `cargo xtask fuzz` is told.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// loader (bytes as a session file) or entry (bytes as one line)
    #[arg(value_parser = ["loader", "entry"])]
    target: String,
    /// How long
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=1440))]
    minutes: u64,
    /// Afterwards, replace the corpus in the tree by the smallest one with the same coverage, within its bounds
    #[arg(long)]
    keep: bool,
}

/// What the tree keeps of a target's corpus at most.
const FILES: usize = 150;
const BYTES: u64 = 200_000;
/// How the names of inputs begin that once failed.
const FIND: &str = "found-";

const FLAGS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
     -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
     -Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing";

/// Builds and runs a target.
///
/// # Errors
/// When it does not build, or finds something: the sentence names the input and the log.
pub(crate) fn run(options: &Options) -> Result<()> {
    let workspace = workspace::load()?;
    std::env::set_current_dir(&workspace.root)?;
    let target = options.target.as_str();
    let place = workspace.target.join("fuzz");
    let (grown, tree) = (place.join("corpus").join(target), Path::new("fuzz/corpus").join(target));
    for folder in [&grown, &tree, &PathBuf::from("fuzz/artifacts")] {
        fs::create_dir_all(folder)?;
    }
    let seeds = ["run", "-q", "-p", "testkit", "--example", "seeds", "--", target];
    shell::run(Command::new("cargo").args(seeds).arg(&grown))?;
    let program = build(&place, target)?;

    let log = place.join(format!("{target}.log"));
    println!("{} minutes; the log: {}", options.minutes, log.display());
    let seconds = format!("-max_total_time={}", options.minutes * 60);
    let artifacts = format!("-artifact_prefix=fuzz/artifacts/{target}-");
    let bounds =
        ["-max_len=8192", "-rss_limit_mb=1024", "-timeout=10", "-dict=fuzz/session.dict", "-print_final_stats=1"];
    let out = File::create(&log).with_context(|| format!("{} cannot be written", log.display()))?;
    let status = Command::new(&program)
        .args([&grown, &tree])
        .args(bounds)
        .args([seconds, artifacts])
        .stdin(Stdio::null())
        .stdout(out.try_clone()?)
        .stderr(out)
        .status()?;
    let text = String::from_utf8_lossy(&fs::read(&log)?).into_owned();
    for line in text.lines().rev().take(8).collect::<Vec<_>>().into_iter().rev() {
        println!("  {line}");
    }
    if !status.success() {
        bail!("{target} has found something ({status}): see {} and fuzz/artifacts", log.display());
    }
    if options.keep { keep(&program, &grown, &tree) } else { Ok(()) }
}

fn build(place: &Path, target: &str) -> Result<PathBuf> {
    let version = shell::ask(Command::new("rustc").arg("-vV")).context("rustc does not tell its version")?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).context("rustc names no host")?;
    // With a target named, the flags do not reach build scripts.
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--release", "--manifest-path", "fuzz/Cargo.toml", "--bin", target, "--target", host]);
    shell::run(cargo.arg("--target-dir").arg(place).env("RUSTFLAGS", FLAGS))?;
    Ok(place.join(host).join("release").join(target))
}

/// The corpus of the tree becomes the smallest one that covers what both cover, cut to its bounds: small inputs first.
fn keep(program: &Path, grown: &Path, tree: &Path) -> Result<()> {
    let merged = grown.with_extension("merged");
    if merged.exists() {
        fs::remove_dir_all(&merged)?;
    }
    fs::create_dir_all(&merged)?;
    let bounds: [&OsStr; 2] = ["-merge=1".as_ref(), "-max_len=8192".as_ref()];
    let quiet = Command::new(program)
        .args(bounds)
        .args([&merged, tree, grown])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    ensure!(quiet.success(), "the corpora could not be merged ({quiet})");
    let mut files = Vec::new();
    for entry in fs::read_dir(&merged)? {
        let entry = entry?;
        files.push((entry.metadata()?.len(), entry.path()));
    }
    files.sort();
    let found = files.len();
    let (kept, bytes) = replace(tree, files)?;
    println!("{kept} of {found} inputs and all finds, {bytes} bytes, are in {}", tree.display());
    Ok(())
}

/// Puts these inputs in the place of those in the tree, but for what once failed: that is a test, whatever else covers as
/// much. Gives how many of the inputs there are now, and how many bytes.
fn replace(tree: &Path, files: Vec<(u64, PathBuf)>) -> Result<(usize, u64)> {
    let (mut finds, mut kept, mut bytes) = (0, 0, 0);
    for entry in fs::read_dir(tree)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(FIND) {
            (finds, bytes) = (finds + 1, bytes + entry.metadata()?.len());
        } else {
            fs::remove_file(entry.path())?;
        }
    }
    for (len, path) in spread(files) {
        let name = path.file_name().context("a file has a name")?;
        if name.to_string_lossy().starts_with(FIND) {
            continue;
        }
        if finds + kept == FILES || bytes + len > BYTES {
            break;
        }
        fs::copy(&path, tree.join(name))?;
        (kept, bytes) = (kept + 1, bytes + len);
    }
    Ok((kept, bytes))
}

/// At most as many as the tree takes, of all sizes.
fn spread(files: Vec<(u64, PathBuf)>) -> Vec<(u64, PathBuf)> {
    let step = files.len().div_ceil(FILES).max(1);
    files.into_iter().step_by(step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_corpus_is_cut_to_its_bound_and_keeps_all_sizes() {
        let files = |count: u64| (0..count).map(|len| (len, PathBuf::from(len.to_string()))).collect::<Vec<_>>();
        assert_eq!(spread(files(3)).len(), 3);
        let many = spread(files(1000));
        assert!(many.len() <= FILES && many.len() > FILES / 2, "{}", many.len());
        assert!(many.last().is_some_and(|(len, _)| *len > 900));
    }

    #[test]
    fn what_once_failed_stays_whatever_comes() {
        let (new, tree) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(tree.path().join("found-a-loss"), "once lost").unwrap();
        fs::write(tree.path().join("0123"), "covers nothing new").unwrap();
        let files = (0..400_u64).map(|n| {
            let path = new.path().join(format!("{n:040x}"));
            fs::write(&path, vec![b'x'; 100]).unwrap();
            (100, path)
        });
        let (kept, bytes) = replace(tree.path(), files.collect()).unwrap();
        let names = fs::read_dir(tree.path()).unwrap().count();
        assert!(names == kept + 1 && names <= FILES && kept > 100, "{kept} and {names}");
        assert_eq!(bytes, 100 * kept as u64 + 9);
        assert_eq!(fs::read_to_string(tree.path().join("found-a-loss")).unwrap(), "once lost");
        assert!(!tree.path().join("0123").exists());
    }
}
