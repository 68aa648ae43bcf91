//! What pi's own `SessionManager` reads from a session file: the judge of our pi-compatible bytes.
//!
//! The package `@mariozechner/pi-coding-agent` is not part of this project. Install it anywhere
//! (`npm install --prefix DIR @mariozechner/pi-coding-agent@0.73.1 --ignore-scripts`) and name its folder
//! (`DIR/node_modules/@mariozechner/pi-coding-agent`) in `GJC_PI_MODULE`. Without it these tests are left out aloud; under
//! `GJC_CI=1` they fail, so that a build machine cannot lose them silently.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

const READ: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/pi/read-session.mjs");
const EDIT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/pi/edit-session.mjs");
const WRITE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/pi/write-sessions.mjs");

/// Opens a copy of the file with pi: `{leafId, sessionId, cwd, messages, entries, model, thinkingLevel, recent}`, where
/// `messages` is pi's context of the leaf, `entries` counts the lines without the header, and `recent` is the session that
/// pi's `--continue` finds where this is the only one. `None` (and a line on stderr) when pi is
/// not here. Fails the test when pi cannot read the file.
#[must_use]
#[track_caller]
pub fn read(file: &Path) -> Option<Value> {
    said_about(file, run(READ, file, &[])?)
}

/// As [`read`], with the newer pi (1.6). `None` when it is not here.
#[must_use]
#[track_caller]
pub fn read_newer(file: &Path) -> Option<Value> {
    said_about(file, run_with(newer()?, READ, file, &[]))
}

#[track_caller]
fn said_about(file: &Path, said: Vec<u8>) -> Option<Value> {
    match serde_json::from_slice(&said) {
        Ok(value) => Some(value),
        Err(e) => panic!("pi's answer about {} is not JSON ({e})", file.display()),
    }
}

/// Lets pi change the file itself: `append` a message, give it a `name`, `rewrite` it whole from memory. `None` when pi is
/// not here. Fails the test when pi cannot do it.
#[must_use]
#[track_caller]
pub fn edit(file: &Path, steps: &[&str]) -> Option<()> {
    run(EDIT, file, steps).map(drop)
}

#[track_caller]
fn run(script: &str, file: &Path, more: &[&str]) -> Option<Vec<u8>> {
    Some(run_with(module()?, script, file, more))
}

#[track_caller]
fn run_with(module: PathBuf, script: &str, file: &Path, more: &[&str]) -> Vec<u8> {
    let scratch = tempfile::tempdir().expect("a temporary folder can be made");
    let out = Command::new("node")
        .arg(script)
        .arg(&module)
        .arg(file)
        .args(more)
        .env_clear()
        .envs(std::env::var_os("PATH").map(|p| ("PATH", p)))
        // pi looks for its settings at home; it must find none.
        .env("HOME", scratch.path())
        .env("TMPDIR", scratch.path())
        .stdin(Stdio::null())
        .output();
    let out =
        out.unwrap_or_else(|e| panic!("node could not be started for pi ({e}); GJC_PI_MODULE needs node 20 or later"));
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "pi failed on {}:\n{said}", file.display());
    out.stdout
}

/// Sessions that a newer pi (1.6, `@earendil-works/pi-coding-agent`) writes into `dir`, each with every kind of entry that
/// it has: `{file, leafId, messages}`, where `messages` is its own context of the file opened anew. `None` (and a line on
/// stderr) when it is not here.
#[must_use]
#[track_caller]
pub fn write_newer(dir: &Path, count: usize) -> Option<Vec<Value>> {
    let module = newer()?;
    let out = Command::new("node")
        .arg(WRITE)
        .arg(&module)
        .arg(dir)
        .arg(count.to_string())
        .env_clear()
        .envs(std::env::var_os("PATH").map(|p| ("PATH", p)))
        .env("HOME", dir)
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|e| panic!("node could not be started for pi ({e}); it needs node 22.19 or later"));
    assert!(out.status.success(), "pi could not write sessions:\n{}", String::from_utf8_lossy(&out.stderr));
    let said = String::from_utf8_lossy(&out.stdout);
    Some(said.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{line}: {e}"))).collect())
}

/// The folder of pi's package, if this machine names one.
fn module() -> Option<PathBuf> {
    named("GJC_PI_MODULE", "dist/index.js")
}

fn newer() -> Option<PathBuf> {
    named("GJC_PI_NEWER_MODULE", "dist/core/session-manager.js")
}

fn named(variable: &str, file: &str) -> Option<PathBuf> {
    match std::env::var_os(variable).map(PathBuf::from) {
        Some(dir) if dir.join(file).is_file() => return Some(dir),
        Some(dir) => panic!("{variable} names {}, where there is no {file} of pi", dir.display()),
        None => {}
    }
    let ci = std::env::var("GJC_CI").is_ok_and(|v| v == "1");
    assert!(!ci, "GJC_CI=1, but {variable} is not set: the comparison with pi may not be left out here");
    eprintln!("left out: comparison with pi's SessionManager ({variable} names no package folder)");
    None
}
