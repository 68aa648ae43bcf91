//! A repository that somebody else made, and what it gains before a person trusts it: nothing. The table of all attempts is in
//! `docs/tests.md`.
//!
//! Each attempt leaves a trap: a program that would leave its name, or words that would get to where they must not be. Where a
//! program is the bait, the test first springs the trap by hand, so that one that cannot spring proves nothing.

mod programs;
mod settings;
mod words;

use crate::kit::*;
use gjc_process::Support;
use serde_json::{Value, json as j};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use testkit::anthropic::Turn;
use testkit::git;
use testkit::harness::{Home, Output, Run};

/// A clone in the working folder, and the place outside of it where sprung traps leave their names.
struct Clone {
    home: Home,
    sprung: PathBuf,
}

impl Clone {
    fn new() -> Self {
        let home = Home::new();
        let sprung = root(&home).join("sprung");
        fs::create_dir(&sprung).unwrap();
        let clone = Self { home, sprung };
        clone.git(&["init", "--quiet"]);
        clone.write("메모.txt", "첫 줄\n");
        clone.git(&["add", "."]);
        clone.git(&["commit", "--quiet", "-m", "처음"]);
        clone
    }

    fn write(&self, path: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        self.home.write(Path::new("project").join(path), bytes)
    }

    /// A program that leaves its name where it must not.
    fn trap(&self, path: &str, name: &str) -> PathBuf {
        let mark = self.sprung.join(name);
        let file = self.write(path, format!("#!/bin/sh\n: > '{}'\n/bin/cat\nexit 0\n", mark.display()));
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        file
    }

    /// git of the machine, in the working folder, as a person would run it.
    fn git(&self, args: &[&str]) {
        let mut command = Command::new("git");
        command.args(args).current_dir(self.home.work()).env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin");
        // Without the settings of our own that keep hooks away: the traps have to work.
        command.envs(git::env(&self.home.path()).into_iter().filter(|(name, _)| !name.starts_with("GIT_CONFIG_")));
        let done = command.output().unwrap();
        assert!(done.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&done.stderr));
    }

    /// The traps that have sprung; none is set off any more.
    fn take_sprung(&self) -> Vec<String> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.sprung).unwrap().flatten() {
            names.push(entry.file_name().into_string().unwrap());
            fs::remove_file(entry.path()).unwrap();
        }
        names.sort();
        names
    }

    /// Runs every command of gjc that looks at a folder or works in it, with a model that reads a file and runs a command.
    #[track_caller]
    fn every_face(&self, vars: &[(&str, &str)]) -> Vec<Output> {
        let home = &self.home;
        let turns = || {
            [
                Turn::new("m1").tool_call("c1", "read", &j!({"path": "메모.txt"})),
                Turn::new("m2").tool_call("c2", "grep", &j!({"pattern": "줄"})),
                Turn::new("m3").tool_call("c3", "bash", &j!({"command": "echo 네"})),
                text("끝"),
            ]
        };
        let stub = stub(turns().into_iter().chain(turns()).chain([text("또")]));
        // Without the harness's settings of git: those of the clone are what this is about.
        let run = |run: Run<'_>| {
            vars.iter().fold(run.env("GIT_CONFIG_COUNT", "0"), |run, (name, value)| run.env(name, value)).output()
        };
        // Without a sandbox, which would keep a trap that has sprung from leaving its name.
        let free = |prompt: &str| ask(home, &stub, prompt).args(["--sandbox", "off"]);
        let mut seen = vec![run(free("봐 줘")).ok(), run(free("봐 줘").args(["--mode", "json"])).ok()];
        let id = id_of(&session_files(home)[0]);
        seen.push(run(free("더").args(["--resume", &id])).ok());
        for args in [
            &["doctor"][..],
            &["config", "list"],
            &["config", "path", "--json"],
            &["sessions", "list"],
            &["sessions", "show", &id],
            &["sessions", "verify", "--all"],
            &["context", "show", &id],
            &["prompts"],
        ] {
            seen.push(run(look(home, args)).ok());
        }
        seen
    }

    /// `gjc -p` with one answer.
    fn ask_once(&self, args: &[&str]) -> (Output, Value) {
        let stub = stub([text("답")]);
        let out = ask(&self.home, &stub, "해 줘").args(args).output().ok();
        (out, stub.requests()[0].json())
    }
}

/// The system prompt of a request, as a text.
fn system(body: &Value) -> String {
    let blocks = body["system"].as_array().unwrap();
    blocks.iter().map(|block| block["text"].as_str().unwrap()).collect::<Vec<_>>().join("\n")
}

/// Whether the last label of the only session says trusted.
fn trusted(home: &Home) -> bool {
    let lines = lines(&the_session(home));
    lines.iter().filter_map(|line| line["gjcLabel"]["t"].as_bool()).next_back().unwrap_or(true)
}

/// Whether this kernel holds commands; where it does not, what is about commands is left out and said.
fn holds() -> bool {
    let lacks = Support::now().essential();
    if !lacks.is_empty() {
        eprintln!("left out: no sandbox on this system: {lacks:?}");
    }
    lacks.is_empty()
}
