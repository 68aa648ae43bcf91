//! What the tests left out: they say so in a line that begins with `left out: `, and pass. Nobody reads the output of a
//! test that passes, so the lines are told at the end, and counted.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

const MARK: &str = "left out: ";

/// Lets nextest keep what the tests of the profile `ci` say, below the target folder: by itself it would do so in the
/// working tree. Answers the argument that it needs, and where the report will be.
///
/// # Errors
/// When the file that tells it cannot be written.
pub(super) fn prepare(target: &Path) -> Result<(String, PathBuf)> {
    let folder = target.join("nextest");
    let report = folder.join("ci/junit.xml");
    // Of an earlier run.
    let _ = fs::remove_file(&report);
    let settings = folder.join("xtask.toml");
    let dir = folder.to_str().context("the target folder's name is no text")?;
    // A literal string of TOML has no escapes; a quote in a path is none of ours.
    let text = format!(
        "[store]\ndir = '{dir}'\n\n[profile.ci.junit]\npath = 'junit.xml'\nstore-success-output = true\nstore-failure-output = true\n"
    );
    fs::create_dir_all(&folder)
        .and_then(|()| fs::write(&settings, text))
        .context("cannot tell nextest to keep a report")?;
    Ok((format!("xtask:{}", settings.display()), report))
}

/// What one test left out.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LeftOut {
    test: String,
    what: String,
}

/// The lines of a report, in its order.
///
/// # Errors
/// When it cannot be read.
pub(super) fn read(report: &Path) -> Result<Vec<LeftOut>> {
    let text = fs::read_to_string(report).with_context(|| format!("cannot read {}", report.display()))?;
    Ok(found(&text))
}

/// They are lines of a test's output, so no parser of XML is needed: an element's name stands before the first line, and
/// letters of XML's own are written as entities.
fn found(report: &str) -> Vec<LeftOut> {
    let (mut test, mut out) = (String::new(), Vec::new());
    for line in report.lines() {
        if let Some(case) = line.trim_start().strip_prefix("<testcase ") {
            test = format!("{} {}", attribute(case, "classname"), attribute(case, "name"));
        }
        let said = line.trim_start();
        let said = ["<system-err>", "<system-out>"].iter().find_map(|tag| said.strip_prefix(tag)).unwrap_or(line);
        if let Some(what) = said.strip_prefix(MARK) {
            let what = what.split("</system-").next().unwrap_or(what);
            let left = LeftOut { test: test.clone(), what: unescaped(what.trim_end()) };
            // A test may try the same more than once.
            if !out.contains(&left) {
                out.push(left);
            }
        }
    }
    out
}

fn attribute(element: &str, name: &str) -> String {
    let value = element.split_once(&format!("{name}=\"")).and_then(|(before, rest)| {
        // `name` is also the end of `classname`.
        let whole = before.is_empty() || before.ends_with(' ');
        let rest = if whole { rest } else { rest.split_once(&format!(" {name}=\""))?.1 };
        rest.split('"').next()
    });
    unescaped(value.unwrap_or_default())
}

fn unescaped(text: &str) -> String {
    [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&#39;", "'"), ("&amp;", "&")]
        .iter()
        .fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

/// How many there are, and each in a line.
pub(super) fn told(left: &[LeftOut]) -> String {
    let mut out = format!("\nleft out by tests: {}\n", left.len());
    for LeftOut { test, what } in left {
        let _ = writeln!(out, "  {test}: {what}");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_tests_that_pass_are_found_once_each() {
        let report = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="nextest-run" tests="3">
    <testsuite name="gjc-log::it" tests="2">
        <testcase name="disks::빈 것" classname="gjc-log::it" timestamp="t" time="0.1">
            <system-out>running 1 test
test disks::빈 것 ... ok</system-out>
            <system-err>left out: &quot;XFS&quot; &amp; 나머지
left out: &quot;XFS&quot; &amp; 나머지
  left out: not at the beginning
left out: the last</system-err>
        </testcase>
        <testcase name="other" classname="gjc-log::it" time="0.1">
            <system-err>12 of them are left out: no line of ours</system-err>
        </testcase>
        <testcase classname="gjc::it" name="one" time="0.1">
            <system-err>left out: one line</system-err>
        </testcase>
    </testsuite>
</testsuites>"#;
        let left = |test: &str, what: &str| LeftOut { test: test.into(), what: what.into() };
        let found = found(report);
        assert_eq!(
            found,
            [
                left("gjc-log::it disks::빈 것", "\"XFS\" & 나머지"),
                left("gjc-log::it disks::빈 것", "the last"),
                left("gjc::it one", "one line")
            ]
        );
        assert!(
            told(&found).starts_with("\nleft out by tests: 3\n  gjc-log::it disks::빈 것: \"XFS\""),
            "{}",
            told(&found)
        );
        assert_eq!(told(&[]), "\nleft out by tests: 0\n");
    }
}
