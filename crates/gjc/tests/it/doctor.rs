//! `gjc doctor`: in an environment that is fixed, and where something is wrong.

use crate::kit::*;
use gjc_process::Support;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use testkit::harness::{Home, Output, Run};

/// A doctor whose programs are those of the test: a git of this answer, and the shell of the machine.
fn doctor<'h>(home: &'h Home, git: &str) -> Run<'h> {
    let bin = root(home).join("bin");
    fs::create_dir_all(&bin).unwrap();
    for program in ["bash", "cat"] {
        let there = ["/bin", "/usr/bin"].iter().map(|dir| Path::new(dir).join(program)).find(|path| path.exists());
        let _ = symlink(there.expect("every machine has a shell"), bin.join(program));
    }
    let _ = fs::remove_file(bin.join("git"));
    if !git.is_empty() {
        let script = home.write("bin/git", format!("#!/bin/sh\n{git}\n"));
        fs::set_permissions(script, fs::Permissions::from_mode(0o755)).unwrap();
    }
    gjc(home).arg("doctor").env("PATH", bin)
}

const GIT: &str = "echo git version 2.47.3";

/// Lines that the machine's kernel and disks decide; they are looked at by themselves.
const OF_THE_MACHINE: &[&str] = &["sandbox", "attempts", "workspace", "sessions"];

/// The text without what the machine decides, hints with their line.
fn steady_text(out: &Output) -> String {
    let mut kept = String::new();
    let mut keep = true;
    for line in out.out().lines() {
        if !line.starts_with(' ') {
            keep = !OF_THE_MACHINE.contains(&line.split_whitespace().nth(1).unwrap_or_default());
        }
        if keep {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

fn finding<'v>(found: &'v Value, about: &str) -> &'v Value {
    let findings = found["findings"].as_array().unwrap();
    findings
        .iter()
        .find(|finding| finding["about"] == about)
        .unwrap_or_else(|| panic!("nothing about {about}: {found}"))
}

#[test]
fn a_sound_system_is_told_line_by_line() {
    let home = Home::new();
    let fresh = doctor(&home, GIT).env("ANTHROPIC_API_KEY", KEY).output().ok();
    assert_eq!(fresh.err(), "");
    assert!(!home.agent_dir().exists(), "a look makes nothing");
    plant(&home, "b", "2026-01-01_한글.jsonl", header("s", "/"));
    plant(&home, "b", "2026-01-01_한글.jsonl.lease", "{}");
    home.write("home/.gjc/agent/cache/index/00.gjx", vec![0; 1500]);
    let before = tree(&home.agent_dir());
    let used = doctor(&home, GIT).env_remove("LANG").env("LC_ALL", "ko_KR.EUC-KR").output().ok();
    assert_eq!(tree(&home.agent_dir()), before, "what was tried out leaves no trace");
    let korean = doctor(&home, GIT).env("LC_ALL", "ko_KR.UTF-8").output().ok();
    steady(&home, || {
        let [fresh, used, korean] = [&fresh, &used, &korean].map(steady_text);
        insta::assert_snapshot!(format!("# new\n{fresh}\n# used\n{used}\n# in Korean\n{korean}"));
    });
    assert!(!format!("{fresh}{used}").contains(KEY));
    assert!(fs::read_dir(home.tmp()).unwrap().next().is_none(), "nothing stays in the temporary folder");
}

#[test]
fn the_same_is_told_as_json() {
    let home = Home::new();
    let out = doctor(&home, GIT).arg("--json").output().ok();
    let found = json(&out);
    assert_eq!((&found["version"], &found["problems"]), (&env!("CARGO_PKG_VERSION").into(), &0.into()));
    let text = doctor(&home, GIT).output().ok();
    for finding in found["findings"].as_array().unwrap() {
        let (state, about, says) = (&finding["state"], &finding["about"], &finding["says"]);
        assert!(["ok", "note", "problem"].contains(&state.as_str().unwrap()));
        let line = format!("{:7}  {:10}  {}", state.as_str().unwrap(), about.as_str().unwrap(), says.as_str().unwrap());
        assert!(text.out().lines().any(|shown| shown == line.trim_end()), "{line}\n{text}");
        assert_eq!(finding.get("hint").is_some(), state != "ok", "whatever is not right has a way out: {finding}");
    }
}

#[test]
fn what_the_sandbox_holds_is_tried_out() {
    let home = Home::new();
    let found = json(&doctor(&home, GIT).arg("--json").output().ok());
    let support = Support::now();
    let sandbox = finding(&found, "sandbox");
    if support.essential().is_empty() {
        let version = support.landlock.unwrap();
        assert!(sandbox["says"].as_str().unwrap().starts_with(&format!("Landlock {version} and seccomp")));
        assert_eq!((&sandbox["state"], &finding(&found, "attempts")["state"]), (&"ok".into(), &"ok".into()), "{found}");
        let workspace = finding(&found, "workspace");
        assert!(workspace["says"].as_str().unwrap().contains(&home.work().display().to_string()), "{workspace}");
        // In the home folder itself commands write nowhere.
        let found = json(&doctor(&home, GIT).args(["--json", "--cwd"]).arg(home.path()).output().ok());
        let workspace = finding(&found, "workspace");
        assert_eq!(workspace["state"], "note");
        assert!(workspace["says"].as_str().unwrap().contains("temporary files alone"), "{workspace}");
    } else {
        assert_eq!(sandbox["state"], "note", "{found}");
    }
}

#[test]
fn each_problem_has_a_way_out_and_ends_with_1() {
    let home = Home::new();
    home.write("home/.gjc/agent/history.db", "글이지 데이터베이스가 아니다. ".repeat(100));
    home.write("home/.gjc/agent/sessions", "a file");
    let out = doctor(&home, "exit 3").output();
    assert_eq!(out.code(), Some(1));
    let found = json(&doctor(&home, "exit 3").arg("--json").output());
    assert_eq!(found["problems"], 3, "{found}");
    for about in ["git", "sessions", "history"] {
        let finding = finding(&found, about);
        assert!(finding["state"] == "problem" && finding["hint"].is_string(), "{finding}");
    }
    assert_eq!(fs::read_to_string(home.agent_dir().join("sessions")).unwrap(), "a file");
}

#[test]
fn a_git_that_is_old_missing_or_strange_is_a_note() {
    let home = Home::new();
    for (git, says) in [
        ("", "there is no git"),
        ("echo git version 2.9.0", "2.9.0 is older than what gjc is tested with"),
        ("printf 'git version \\033[31m한글\\n가짜'", "its version is not understood: "),
    ] {
        let out = doctor(&home, git).output().ok();
        assert!(out.out().contains(&format!("note     git         {says}")), "{out}");
        assert!(!out.out().contains('\u{1b}') && !out.out().lines().any(|line| line.starts_with("가짜")), "{out}");
    }
}
