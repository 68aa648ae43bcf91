//! What `--help` says.

use crate::kit::*;
use testkit::harness::Home;

/// Every page of help: that of gjc, and of each command that a page names.
pub(crate) fn pages(home: &Home) -> Vec<Vec<String>> {
    let mut pages = vec![vec![]];
    let mut next = 0;
    while let Some(page) = pages.get(next).cloned() {
        next += 1;
        let help = look(home, &[]).args(&page).arg("--help").output().ok().out();
        let named = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
        // A command is set in by two columns; what is set in further goes on with what is said of it.
        let names = named.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
        pages.extend(names.map(|line| [&page[..], &[line.split_whitespace().next().unwrap().to_owned()]].concat()));
    }
    pages
}

#[test]
fn every_page_of_help_in_both_languages() {
    let home = Home::new();
    let pages = pages(&home);
    assert!(pages.len() >= 24, "{pages:?}");
    for page in pages {
        let name = if page.is_empty() { "gjc".into() } else { page.join("_") };
        for (lang, name) in [("C.UTF-8", name.clone()), ("ko_KR.UTF-8", format!("{name}_ko"))] {
            let out = look(&home, &[]).args(&page).arg("--help").env("LC_ALL", lang).output().ok();
            assert_eq!(out.err(), "");
            insta::assert_snapshot!(name, out.out());
            let widest = out.out().lines().map(|line| line.chars().count()).max().unwrap();
            assert!(widest <= 100, "{page:?} has a line of {widest} columns");
        }
    }
}

#[test]
fn the_version_is_one_line() {
    let home = Home::new();
    assert_eq!(look(&home, &["--version"]).output().ok().out(), format!("gjc {}\n", env!("CARGO_PKG_VERSION")));
}

/// What goes wrong in the hands of a newcomer, in a language.
fn misuses(home: &Home, lang: &str) -> String {
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
        let out = look(home, args).env("LANG", lang).output();
        assert_eq!(out.out(), "");
        all += &format!("# gjc {}: exit {}\n{}", args.join(" "), out.code().unwrap(), out.err());
    }
    all
}

#[test]
fn misuse_says_what_was_wrong() {
    let home = Home::new();
    let all = misuses(&home, "C.UTF-8");
    steady(&home, || insta::assert_snapshot!(all));
}

#[test]
fn misuse_says_what_was_wrong_in_korean() {
    let home = Home::new();
    let all = misuses(&home, "ko_KR.UTF-8");
    steady(&home, || insta::assert_snapshot!(all));
}

#[test]
fn what_programs_read_is_never_translated() {
    let home = Home::new();
    let stub = replies([testkit::anthropic::error(401, "authentication_error", "invalid x-api-key")]);
    let out = ask(&home, &stub, "안녕").env("LANG", "ko_KR.UTF-8").args(["--mode", "json"]).output();
    assert!(out.out().contains("the provider refused the key"), "{}", out.out());
    let stub = replies([testkit::anthropic::error(401, "authentication_error", "invalid x-api-key")]);
    let out = ask(&home, &stub, "안녕").env("LANG", "ko_KR.UTF-8").output();
    assert!(out.err().contains("제공자가 키를 받지 않았습니다: "), "{}", out.err());
}

#[test]
fn shells_complete_every_command() {
    let home = Home::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = look(&home, &["completions", shell]).output().ok().out();
        for word in ["sessions", "verify", "append-system-prompt"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    // What the script offers after "gjc sessions v".
    let script = home.tmp().join("gjc.bash");
    std::fs::write(&script, look(&home, &["completions", "bash"]).output().ok().out()).unwrap();
    let line = format!(
        "source {}; COMP_WORDS=(gjc sessions v); COMP_CWORD=2; _gjc gjc v sessions; echo \"${{COMPREPLY[@]}}\"",
        script.display()
    );
    let offered = home.run("bash").args(["--norc", "-c", &line]).output().ok();
    assert_eq!((offered.out().trim(), offered.err().as_str()), ("verify", ""));
}

#[test]
fn every_command_has_a_manual_page() {
    let home = Home::new();
    for command in [&[][..], &["sessions"], &["sessions", "verify"], &["prompts", "forget"], &["man"]] {
        let page = look(&home, &["man"]).args(command).output().ok().out();
        let name = [&["gjc"], command].concat().join("-");
        assert!(page.contains(&format!(".TH {name} 1")), "{page}");
        assert!(page.contains(".SH SYNOPSIS"), "{page}");
    }
    let wrong = look(&home, &["man", "sessions", "없음"]).output();
    assert_eq!((wrong.code(), wrong.out().as_str()), (Some(2), ""));
    assert!(
        wrong.err().contains("choose from: list, show, export, share, verify, delete, restore, trash, du"),
        "{}",
        wrong.err()
    );
}
