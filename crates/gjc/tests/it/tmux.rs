//! `--tmux`, in a real tmux with a socket of its own, which is ended by it and by nothing else.

use crate::kit::*;
use crate::start::in_terminal;
use crate::start_refused::{git, repo};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use testkit::harness::{Home, Output};
use testkit::stub::Stub;

/// How long a program in tmux may take to end.
const LIMIT: Duration = Duration::from_secs(30);

struct Own<'h> {
    home: &'h Home,
    program: PathBuf,
}

impl<'h> Own<'h> {
    /// A tmux in which whoever attaches is let go at once. None where there is no tmux.
    fn new(home: &'h Home) -> Option<Self> {
        if std::process::Command::new("tmux").arg("-V").output().is_err() {
            eprintln!("left out: there is no tmux");
            return None;
        }
        let conf = "set-hook -g client-attached detach-client\n";
        let conf = home.write("tmp/tmux.conf", conf);
        let socket = home.tmp().join("socket");
        let script = format!("#!/bin/sh\nexec tmux -S '{}' -f '{}' \"$@\"\n", socket.display(), conf.display());
        let program = home.write("tmp/own-tmux", script);
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        Some(Self { home, program })
    }

    fn ask(&self, args: &[&str]) -> String {
        self.home.run(&self.program).args(args).env("LC_ALL", "C.UTF-8").output().out()
    }

    fn in_terminal(&self, stub: &Stub, script: &str) -> Output {
        let script = format!(
            "export TERM=xterm-256color GJC_TMUX_COMMAND='{}'; {script}; echo ended $?",
            self.program.display()
        );
        in_terminal(self.home, stub, &script, "")
    }

    /// Asks until all that runs in it has ended. (The hook `pane-died` does not always come: tmux 3.3 sometimes does not hear of the
    /// end of a program that ends at once. What it has said is there all the same.)
    fn until_all_have_ended(&self) {
        let began = Instant::now();
        while self.ask(&["list-panes", "-a", "-F", "#{pane_dead}"]).lines().any(|dead| dead != "1") {
            assert!(began.elapsed() < LIMIT, "a program in tmux does not end");
        }
    }

    fn sessions(&self) -> Vec<String> {
        self.ask(&["list-sessions", "-F", "#{session_name}"]).lines().map(Into::into).collect()
    }
}

impl Drop for Own<'_> {
    fn drop(&mut self) {
        self.ask(&["kill-server"]);
    }
}

#[test]
fn gjc_runs_in_a_session_of_tmux_that_outlives_the_terminal() {
    let home = Home::new();
    let Some(tmux) = Own::new(&home) else { return };
    let main = repo(&home, "가재 코드");
    let stub = stub([]);
    let script = format!("cd '{}'; gjc --tmux -w 기능/로그인", main.display());
    let out = tmux.in_terminal(&stub, &script);
    assert!(out.out().contains("ended 0"), "{out}");
    tmux.until_all_have_ended();
    // The terminal is gone, the session is not, and what gjc said stays to be read.
    let sessions = tmux.sessions();
    assert!(sessions.len() == 1 && sessions[0].starts_with("gjc-기능-로그인-"), "{sessions:?}");
    let target = format!("={}:", sessions[0]);
    let shown = tmux.ask(&["capture-pane", "-p", "-J", "-S", "-", "-t", &target]);
    assert!(shown.contains("the terminal interface is not part of this version"), "{shown}");
    let tags = tmux.ask(&["display-message", "-p", "-t", &target, "#{@gjc-branch} #{@gjc-project}"]);
    assert_eq!(tags.trim_end(), format!("기능/로그인 {}", main.display()));
    // tmux itself has no key, and nobody reads one among the arguments of its programs.
    let known = tmux.ask(&["show-environment", "-g"]);
    assert!(!known.contains(KEY) && known.contains("HOME="), "{known}");
    assert!(!tmux.ask(&["list-panes", "-a", "-F", "#{pane_start_command}"]).contains(KEY));
    // Nothing was begun, as without tmux.
    assert_eq!(git(&home, &main, &["branch", "--format=%(refname:short)"]), "main\n");
    assert_eq!(session_files(&home), Vec::<PathBuf>::new());
    // Another folder has a session of its own.
    tmux.in_terminal(&stub, "gjc --tmux");
    tmux.until_all_have_ended();
    assert_eq!(tmux.sessions().len(), 2);
}

#[test]
fn inside_of_tmux_there_is_nothing_to_do() {
    let home = Home::new();
    let out = look(&home, &["--tmux"]).env("TMUX", "/tmp/x,1,0").env("GJC_TMUX_COMMAND", "no-such-tmux").output();
    assert!(out.code() == Some(2) && out.err().contains("the terminal interface is not part"), "{out}");
    let out = look(&home, &["--tmux", "-r"]).env("TMUX", "/tmp/x,1,0").output().ok();
    assert!(out.err().contains("no sessions of this folder yet"), "{out}");
}
