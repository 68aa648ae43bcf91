//! Our answers against those of ripgrep and fd, on generated trees with nested ignore files.

use crate::rig::Rig;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use testkit::search::Judge;

const FOLDERS: &[&str] = &["a", "b", "src", "target", "가", ".hid", "build"];
const FILES: &[&str] = &["a", "b.rs", "나.rs", "x.log", ".env", "keep", "A.rs", "#x", "b.rs.orig", "sp ace.rs"];
#[rustfmt::skip]
const RULES: &[&str] = &[
    "*.log", "target/", "/src", "!x.log", "a", "**/b", "build/*", "!build/keep", "src/**/나.rs", r"\#x", "#x", "가", "*.rs",
    "!*.rs", ".hid", "b/", "a/b.rs", "/가/", "!/a", "", "*", "!*/", "!keep", "[ab]*", "b.rs ", r"sp\ ace.rs", "나*", "가/**", "**",
];
const GLOBS: &[&str] = &["*.rs", "*", "a", "{a,b}*", "*.log", "[a-b]*", ".*", "*.{rs,log}", "나*", "가", "**", "b.rs*"];
const PATHS: &[&str] = &["src/*", "src/**/*.rs", "**/*.rs", "a/**", "가/*.rs", "**/target/**", "*/*", "{a,src}/*.rs"];
const LINES: &[&str] = &["let 한글 = 1;", "fn main() {}", "", "needle", "NEEDLE 바늘", "a.b(c)", "  needle  ", "끝\r"];
const PATTERNS: &[&str] = &["needle", "^$", "한글|바늘", "n.*e", "^fn", "글 =", r"\w+\(", "끝$", r"\s$", "[가-힣]"];

#[derive(Debug, Clone)]
struct Tree {
    files: Vec<(Vec<&'static str>, &'static str, Vec<&'static str>)>,
    ignores: Vec<(Vec<&'static str>, &'static str, Vec<&'static str>)>,
    repositories: Vec<Vec<&'static str>>,
}

fn folder() -> impl Strategy<Value = Vec<&'static str>> {
    prop::collection::vec(prop::sample::select(FOLDERS), 0..4)
}

fn tree() -> impl Strategy<Value = Tree> {
    let lines = prop::collection::vec(prop::sample::select(LINES), 0..6);
    let file = (folder(), prop::sample::select(FILES), lines);
    let rules = prop::collection::vec(prop::sample::select(RULES), 0..4);
    let ignore = (folder(), prop::sample::select(&[".gitignore", ".ignore", ".git/info/exclude"][..]), rules);
    let (files, ignores) = (prop::collection::vec(file, 1..25), prop::collection::vec(ignore, 0..5));
    (files, ignores, prop::collection::vec(folder(), 0..3)).prop_map(|(files, ignores, mut repositories)| {
        if repositories.len() != 1 {
            repositories.push(Vec::new());
        }
        Tree { files, ignores, repositories }
    })
}

impl Tree {
    fn plant(&self) -> Rig {
        let rig = Rig::new();
        let put = |folder: &[&str], name: &str, text: String| {
            let path = rig.cwd.join(folder.join("/")).join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            // A folder may have that name already.
            let _ = fs::write(path, text);
        };
        for folder in &self.repositories {
            fs::create_dir_all(rig.cwd.join(folder.join("/")).join(".git")).unwrap();
        }
        for (folder, name, lines) in &self.ignores {
            // An exclude makes no repository of its folder.
            if !name.starts_with(".git/") || self.repositories.contains(folder) {
                put(folder, name, lines.join("\n"));
            }
        }
        for (folder, name, lines) in &self.files {
            if !folder.iter().any(|part| FILES.contains(part)) {
                put(folder, name, lines.iter().map(|line| format!("{line}\n")).collect());
            }
        }
        rig
    }
}

fn asked(rig: &Rig, tool: &str, input: Value) -> BTreeSet<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let done = runtime.block_on(rig.call(tool, input));
    done.ok().lines().filter(|line| !line.starts_with('[')).map(str::to_string).collect()
}

fn said(judge: &Judge, rig: &Rig, arguments: &[&str]) -> Vec<String> {
    let arguments: Vec<_> = arguments.iter().map(OsStr::new).collect();
    let said = judge.says(&rig.cwd, &arguments);
    String::from_utf8(said).unwrap().lines().map(str::to_string).collect()
}

fn home() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

const CASES: u32 = 64;

#[test]
fn find_finds_what_fd_finds() {
    let home = home();
    let Some(fd) = Judge::fd(home.path()) else { return };
    proptest!(ProptestConfig::with_cases(CASES), |(tree in tree(), glob in prop::sample::select(GLOBS), path in prop::sample::select(PATHS))| {
        let rig = tree.plant();
        let common = ["--hidden", "--exclude", ".git", "--case-sensitive", "--color", "never", "--glob"];
        let expected: BTreeSet<_> = said(&fd, &rig, &[&common[..], &["--", glob]].concat()).into_iter().collect();
        prop_assert_eq!(asked(&rig, "find", json!({"pattern": glob, "limit": 9999})), expected, "{}", glob);
        let whole = format!("{}/{path}", rig.cwd.display());
        let expected = said(&fd, &rig, &[&common[..], &["--full-path", "--", &whole]].concat());
        let expected: BTreeSet<_> = expected.into_iter().collect();
        prop_assert_eq!(asked(&rig, "find", json!({"pattern": path, "limit": 9999})), expected, "{}", path);
    });
}

const RG: &[&str] = &["--hidden", "--no-ignore-global", "--no-config", "--crlf", "--color", "never", "-g", "!.git"];

#[test]
fn grep_says_what_rg_says_in_the_same_order() {
    let home = home();
    let Some(rg) = Judge::rg(home.path()) else { return };
    proptest!(ProptestConfig::with_cases(CASES), |(
        tree in tree(), pattern in prop::sample::select(PATTERNS), ignore_case in any::<bool>(), context in 0u32..3,
    )| {
        let rig = tree.plant();
        let around = context.to_string();
        let mut arguments = [RG, &["--sort", "path", "--line-number", "--no-heading", "--context", &around]].concat();
        if ignore_case {
            arguments.push("--ignore-case");
        }
        arguments.extend(["--", pattern]);
        let expected = said(&rg, &rig, &arguments);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let input = json!({"pattern": pattern, "ignoreCase": ignore_case, "context": context, "limit": 9999});
        let done = runtime.block_on(rig.call("grep", input));
        let ours: Vec<String> = done.ok().lines().filter(|line| !line.starts_with('[')).map(as_rg_says).collect();
        let expected: Vec<String> = expected.iter().map(|line| line.trim_end_matches('\r').to_string()).collect();
        prop_assert_eq!(ours, expected, "{}", pattern);
    });
}

#[test]
fn a_glob_narrows_grep_as_it_narrows_rg_and_never_brings_ignored_files_back() {
    let home = home();
    let Some(rg) = Judge::rg(home.path()) else { return };
    let globs: Vec<_> = GLOBS.iter().chain(PATHS).copied().chain(["!*.rs", "!src", "!a/b.rs", "!/가"]).collect();
    proptest!(ProptestConfig::with_cases(CASES), |(tree in tree(), glob in prop::sample::select(globs))| {
        let rig = tree.plant();
        let all: BTreeSet<_> = said(&rg, &rig, &[RG, &["--files-with-matches", "--", "^"]].concat()).into_iter().collect();
        // A glob of rg brings ignored files back; of ours it does not.
        let narrowed = [&RG[..RG.len() - 2], &["-g", glob, "-g", "!.git", "--files-with-matches", "--", "^"]].concat();
        let narrowed = said(&rg, &rig, &narrowed).into_iter().filter(|file| all.contains(file));
        let expected: BTreeSet<_> = narrowed.collect();
        let ours = asked(&rig, "grep", json!({"pattern": "^", "glob": glob, "filesOnly": true, "limit": 9999}));
        let ours: BTreeSet<_> = ours.iter().map(|line| line.rsplit_once(": ").unwrap().0.to_string()).collect();
        prop_assert_eq!(ours, expected, "{}", glob);
    });
}

/// `a:1: text` as `a:1:text`. No name in these trees has a colon, and only `-` and digits stand around a number.
fn as_rg_says(line: &str) -> String {
    for mark in [':', '-'] {
        let at = line.match_indices(mark).find_map(|(at, _)| {
            let rest = &line[at + 1..];
            let number = rest.find(|c: char| !c.is_ascii_digit()).filter(|end| *end > 0)?;
            rest[number..].starts_with(&format!("{mark} ")).then_some(at + 1 + number + 1)
        });
        if let Some(at) = at {
            return format!("{}{}", &line[..at], &line[at + 1..]);
        }
    }
    line.to_string()
}
