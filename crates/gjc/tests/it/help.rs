//! What `--help` says.

use crate::kit::*;
use testkit::harness::Home;

#[test]
fn every_command_has_help() {
    let home = Home::new();
    for command in [
        &[][..],
        &["sessions"],
        &["sessions", "list"],
        &["sessions", "show"],
        &["sessions", "verify"],
        &["context"],
        &["context", "show"],
        &["context", "request"],
        &["prompts"],
        &["prompts", "show"],
        &["prompts", "forget"],
        &["config"],
        &["config", "list"],
        &["config", "get"],
        &["config", "set"],
        &["config", "path"],
        &["demo"],
    ] {
        let out = look(&home, command).arg("--help").output().ok();
        assert_eq!(out.err(), "");
        let name = if command.is_empty() { "gjc".into() } else { command.join("_") };
        insta::assert_snapshot!(name, out.out());
        let widest = out.out().lines().map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= 100, "{command:?} has a line of {widest} columns");
    }
}

#[test]
fn the_version_is_one_line() {
    let home = Home::new();
    assert_eq!(look(&home, &["--version"]).output().ok().out(), format!("gjc {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn misuse_says_what_was_wrong() {
    let home = Home::new();
    let mut all = String::new();
    for args in [
        &["--no-such"][..],
        &["sessions"],
        &["sessions", "verify"],
        &["sessions", "lost"],
        &["--mode", "xml"],
        &[],
        &["-p", "x", "--resume", "a", "--no-session"],
        &["-p", "x", "--cwd", "/없는 폴더"],
        &["--mode", "rpc", "x"],
        &["-p", "x", "--system-prompt", "없는 파일", "--provider-url", "http://127.0.0.1:9"],
        &["-p", "x", "--tools", "read,없는 도구", "--provider-url", "http://127.0.0.1:9"],
        &["-p", "x", "--provider-url", "http://127.0.0.1:9", "--resume", "없는 세션"],
    ] {
        let out = look(&home, args).output();
        assert_eq!(out.out(), "");
        all += &format!("# gjc {}: exit {}\n{}", args.join(" "), out.code().unwrap(), out.err());
    }
    steady(&home, || insta::assert_snapshot!(all));
}
