//! What a start refuses: each with a sentence of its own, a way out and an exit code, and nothing half done.

use crate::kit::*;
use crate::start::{in_terminal, plant_at};
use std::fs;
use std::path::{Path, PathBuf};
use testkit::harness::Home;

const ONE: &str = "0197a0c2-0000-7000-8000-000000000001";
const TWO: &str = "0197a0c2-0000-7000-8000-000000000002";
const OTHER: &str = "0197ffff-0000-7000-8000-000000000003";

/// Lets git do something in a folder.
#[track_caller]
pub(crate) fn git(home: &Home, dir: &Path, args: &[&str]) -> String {
    home.run("git").args(args).cwd(dir).output().ok().out()
}

/// A repository below the home, with one commit.
pub(crate) fn repo(home: &Home, name: &str) -> PathBuf {
    let dir = root(home).join(name);
    fs::create_dir_all(&dir).unwrap();
    git(home, &dir, &["init", "-q"]);
    fs::write(dir.join("메모.txt"), "하나\n").unwrap();
    git(home, &dir, &["add", "-A"]);
    git(home, &dir, &["commit", "-qm", "처음"]);
    dir
}

/// The folder that a start is made from, what it is given, its exit code, and what it says.
type Bad<'a> = (&'a Path, &'a [&'a str], i32, &'a [&'a str]);

#[test]
fn what_cannot_be_is_refused_in_a_sentence_and_leaves_nothing() {
    let home = Home::new();
    let work = home.work();
    plant_at(&home, ONE, work.to_str().unwrap(), 20);
    plant_at(&home, TWO, work.to_str().unwrap(), 30);
    let there = root(&home).join("다른 일");
    fs::create_dir(&there).unwrap();
    plant_at(&home, OTHER, there.to_str().unwrap(), 40);
    home.write("project/notes.jsonl", "no session\n");
    let repo = repo(&home, "저장소");
    let unborn = root(&home).join("빈 저장소");
    fs::create_dir(&unborn).unwrap();
    git(&home, &unborn, &["init", "-q"]);
    let elsewhere = format!("is in another project ({}).", there.display());
    let way = format!("gjc -p --cwd '{}' --resume 0197f", there.display());
    let in_use = format!("the branch main is checked out in {}", repo.display());
    let no_commit = format!("the repository {} has no commit yet", unborn.display());
    let no_repo = format!("{} is in no git repository", work.display());
    let not_a_path = "--worktree takes a branch-like name, not a path";
    let table: &[Bad<'_>] = &[
        // An id that nobody has.
        (&work, &["-r", "ffff"], 1, &["Session \"ffff\" not found.", "hint: gjc sessions list"]),
        (&work, &["-r", "없는아이디"], 1, &["Session \"없는아이디\" not found."]),
        (&work, &["-r", ""], 1, &["not found"]),
        (&work, &["--fork", "ffff"], 1, &["Session \"ffff\" not found."]),
        // The beginning of several.
        (&work, &["-r", "0197a0c2"], 1, &["is the beginning of 2 session ids", ONE, TWO, "hint: give more of the id"]),
        (&there, &["--fork", "0197A0C2"], 1, &["is the beginning of 2 session ids", ONE, TWO]),
        // A file that is gone, or is none of a session.
        (&work, &["-r", "/없는/길.jsonl"], 1, &["File not found: /없는/길.jsonl"]),
        (&work, &["--fork", "./gone.jsonl"], 1, &["File not found: ", "gone.jsonl"]),
        (&work, &["-r", "/tmp/"], 1, &["is a folder, not a session file"]),
        (&work, &["-r", "notes.jsonl"], 1, &["notes.jsonl"]),
        (&work, &["--fork", "notes.jsonl"], 1, &["notes.jsonl"]),
        // Another project, where nobody can be asked.
        (&work, &["-r", "0197f"], 1, &["Session \"0197f\"", &elsewhere, &way, "gjc -p --fork 0197f"]),
        // What only a person can choose, or what contradicts itself.
        (&work, &["-r"], 2, &["--resume without a session", "gjc -p --resume ID"]),
        (&work, &["--fork", ONE, "--no-session"], 2, &["--fork requires session persistence"]),
        (&work, &["-c", "--no-session"], 2, &["--continue", "--no-session"]),
        (&work, &["-c", "-r", ONE], 2, &["--resume"]),
        (&work, &["--cwd", "/없는 곳", "-c"], 2, &["the folder /없는 곳 cannot be used"]),
        // Worktrees.
        (&repo, &["--worktree", "./path"], 2, &[not_a_path, "\"./path\"", "gjc --cwd ./path"]),
        (&repo, &["--worktree=/tmp/x"], 2, &[not_a_path, "\"/tmp/x\""]),
        (&repo, &["-w", "../밖"], 2, &[not_a_path, "\"../밖\""]),
        (
            &repo,
            &["-w", "fix", "the", "bug"],
            2,
            &["\"fix\" is the name of a worktree", "gjc -p --worktree=fix \"물음 the bug\""],
        ),
        (&repo, &["-w", "fix the bug"], 2, &["\"fix the bug\" cannot be the name of a branch", "my-task"]),
        (&repo, &["-w", "main"], 1, &[&in_use, "gjc --cwd"]),
        (&unborn, &["-w", "x"], 1, &[&no_commit, "make a first commit"]),
        (&unborn, &["-w"], 1, &[&no_commit]),
        (&work, &["-w", "x"], 1, &[&no_repo, "git init"]),
        // A session that is not found makes no worktree either, nor does a terminal interface that nobody sees.
        (&repo, &["-w", "x", "-r", "ffff"], 1, &["Session \"ffff\" not found."]),
        (&work, &["--tmux"], 2, &["--tmux is for the terminal interface"]),
    ];
    let before = tree(&root(&home));
    for (from, args, code, says) in table {
        // The prompt stands first: behind `-r` or `-w` it would be their value.
        let out = ask(&home, &stub([]), "물음").args(*args).cwd(*from).output();
        assert_eq!(out.code(), Some(*code), "{args:?}: {out}");
        assert!(out.out().is_empty(), "{args:?}: {out}");
        for part in *says {
            assert!(out.err().contains(part), "{args:?} does not say {part:?}: {out}");
        }
        let after = tree(&root(&home));
        let changed: Vec<_> = after.iter().filter(|(path, bytes)| before.get(*path) != Some(*bytes)).collect();
        assert!(changed.is_empty() && before.len() == after.len(), "{args:?} left {changed:?}");
    }
}

#[test]
fn what_is_not_installed_is_named() {
    let home = Home::new();
    let repo = repo(&home, "저장소");
    let empty = root(&home).join("empty");
    fs::create_dir(&empty).unwrap();
    let before = tree(&root(&home));
    let out = ask(&home, &stub([]), "x").args(["-w", "x"]).cwd(&repo).env("PATH", &empty).output();
    assert!(out.code() == Some(1) && out.err().contains("hint: --worktree needs git 2.39 or later"), "{out}");
    assert_eq!(tree(&root(&home)), before);
    // tmux is wanted in a terminal alone.
    let out = look(&home, &["--tmux"]).output();
    assert!(out.code() == Some(2) && out.err().contains("--tmux needs a terminal"), "{out}");
    let out = in_terminal(&home, &stub([]), "export GJC_TMUX_COMMAND=no-such-tmux; gjc --tmux; echo ended $?", "");
    assert!(out.out().contains("--tmux needs tmux, and no-such-tmux cannot be started"), "{out}");
    assert!(
        out.out().contains("install tmux 3.2 or later, or leave --tmux out") && out.out().contains("ended 1"),
        "{out}"
    );
    // What stands in the way of a worktree is said before tmux begins.
    let tmux = "export GJC_TMUX_COMMAND=no-such-tmux; gjc --tmux";
    for (script, code, says) in [
        (format!("{tmux} -w x"), 1, "is in no git repository"),
        (format!("cd '{}'; {tmux} -w ./x", repo.display()), 2, "not a path"),
        (format!("cd '{}'; {tmux} -w fix the bug", repo.display()), 2, "is the name of a worktree"),
    ] {
        let out = in_terminal(&home, &stub([]), &format!("{script}; echo ended $?"), "");
        assert!(out.out().contains(says) && out.out().contains(&format!("ended {code}")), "{script}: {out}");
    }
    assert_eq!(git(&home, &repo, &["branch", "--format=%(refname:short)"]), "main\n");
}

#[test]
fn a_person_who_says_no_has_changed_nothing() {
    let home = Home::new();
    let there = root(&home).join("다른 일");
    fs::create_dir(&there).unwrap();
    plant_at(&home, OTHER, there.to_str().unwrap(), 40);
    // Beside what a terminal leaves: the script itself.
    let resume = "gjc -p -r 0197f x; echo ended $?";
    in_terminal(&home, &stub([]), resume, "n\n");
    let before = tree(&root(&home));
    let out = in_terminal(&home, &stub([]), resume, "n\n");
    assert!(out.out().contains("Fork into current directory? [y/N]") && out.out().contains("ended 0"), "{out}");
    let strip = |tree: std::collections::BTreeMap<PathBuf, _>| -> Vec<_> {
        tree.into_iter().filter(|(path, _)| !path.ends_with("terminal.sh")).collect()
    };
    assert_eq!(strip(tree(&root(&home))), strip(before));
    // In Korean the question is a Korean one, and `y` is `y` in every language.
    let script = format!("export LANG=ko_KR.UTF-8; {resume}");
    let out = in_terminal(&home, &stub([text("여기서")]), &script, "y\n");
    assert!(out.out().contains("다른 프로젝트") && out.out().contains("ended 0"), "{out}");
    assert_eq!(session_files(&home).len(), 2);
}

#[test]
fn nothing_is_asked_for_where_a_person_has_said_where() {
    let home = Home::new();
    let repo = repo(&home, "저장소");
    let file = plant_at(&home, OTHER, root(&home).to_str().unwrap(), 40);
    // The worktree is where it goes on: neither a question nor a fork.
    let where_ = text("어디지").tool_call("t1", "bash", &serde_json::json!({"command": "pwd"}));
    let stub = stub([where_, text("네")]);
    let out = ask(&home, &stub, "x").args(["--worktree=일", "-r", OTHER]).cwd(&repo).output().ok();
    assert!(out.err().contains("a new worktree of the branch 일"), "{out}");
    let said = messages(&file);
    assert_eq!((session_files(&home).len(), said.len()), (1, 6));
    assert!(said[4].to_string().contains("저장소.gjc-worktrees/일-"), "{}", said[4]);
}
