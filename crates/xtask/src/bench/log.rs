//! What opening, appending to and forking a session costs: the rows of the bench executables beside the code.
//!
//! `benches/log.rs` and `benches/fork.rs` of gjc-log, `benches/context.rs` of gjc-context and `benches/finding.rs` of gjc-store
//! say which rows there are, make their files, and do each job in a process of its own that reports its time; here they are
//! only run.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::{Bench, Group, Row};
use crate::shell;
use crate::workspace::Workspace;

#[derive(Deserialize)]
struct Suite {
    title: String,
    rows: Vec<Job>,
}

#[derive(Deserialize)]
struct Job {
    name: String,
    command: Vec<String>,
}

/// All suites of these executables. Their files (1.2 GB, those of `finding` 5.5 GB) stay under the target folder.
///
/// # Errors
/// When they cannot be built, or do not answer.
pub(super) fn groups(bench: &Bench, workspace: &Workspace, names: &[&str]) -> Result<Vec<Group>> {
    let folder = workspace.target.join("tmp");
    let mut groups = Vec::new();
    for program in build(workspace, names)? {
        let mut command = Command::new(&program);
        command.arg("rows").arg(&folder);
        if bench.cache.pi_module().is_dir() {
            command.env("GJC_PI_MODULE", bench.cache.pi_module()).env("PATH", &bench.path);
        }
        let said = shell::capture(&mut command)?;
        let suites: Vec<Suite> =
            serde_json::from_str(&said).with_context(|| format!("the rows of {}", program.display()))?;
        groups.extend(suites.into_iter().map(|suite| group(suite, &bench.path)));
    }
    Ok(groups)
}

fn group(suite: Suite, path: &OsString) -> Group {
    let row = |job: Job| {
        let mut command = job.command.into_iter();
        let program = command.next().unwrap_or_default();
        let mut row = Row::new(&job.name, program, command);
        row.environment.push(("PATH".into(), path.clone()));
        row.reports = true;
        row
    };
    Group { title: suite.title, rows: suite.rows.into_iter().map(row).collect(), stub: None }
}

/// Builds the executables and answers where they are.
fn build(workspace: &Workspace, names: &[&str]) -> Result<Vec<PathBuf>> {
    let manifest = workspace.root.join("Cargo.toml");
    let mut command = Command::new("cargo");
    command.args(["bench", "--no-run", "-p", "gjc-log", "-p", "gjc-context", "-p", "gjc-store"]);
    command.args(names.iter().flat_map(|name| ["--bench", name]));
    command.args(["--message-format", "json-render-diagnostics", "--manifest-path"]).arg(manifest);
    let said = shell::capture(&mut command)?;
    let programs: Vec<PathBuf> = said.lines().filter_map(executable).collect();
    let (built, wanted) = (programs.len(), names.len());
    ensure!(built == wanted, "cargo built {built} bench executables instead of {wanted}");
    Ok(programs)
}

/// The executable that a line of cargo's JSON names.
fn executable(line: &str) -> Option<PathBuf> {
    let message: serde_json::Value = serde_json::from_str(line).ok()?;
    Some(Path::new(message["executable"].as_str()?).to_path_buf())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executables_are_found_among_the_messages() {
        assert_eq!(
            executable(r#"{"reason":"compiler-artifact","executable":"/t/log-1"}"#),
            Some(PathBuf::from("/t/log-1"))
        );
        assert_eq!(executable(r#"{"reason":"compiler-artifact","executable":null}"#), None);
        assert_eq!(executable("running 0 tests"), None);
    }

    #[test]
    fn a_suite_becomes_rows_that_report() {
        let suite: Suite =
            serde_json::from_str(r#"{"title":"열기","rows":[{"name":"a","command":["/bin/echo","x"]}]}"#).unwrap();
        let group = group(suite, &"/bin".into());
        assert_eq!((group.title.as_str(), &group.rows[0].program), ("열기", &PathBuf::from("/bin/echo")));
        assert!(group.rows[0].reports);
    }
}
