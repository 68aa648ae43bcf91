//! `--worktree`: a session in a checkout of its own, which leaves the one that a person works in alone.

use crate::kit::*;
use crate::start_refused::{git, repo};
use serde_json::json;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use testkit::harness::Home;

/// All that a person has in a checkout: every file with its bytes, the index and the settings; refs, stash, and what is staged.
type Kept = (BTreeMap<PathBuf, Option<Vec<u8>>>, Vec<Vec<u8>>, [String; 3]);

fn kept(home: &Home, repo: &Path) -> Kept {
    let files = tree(repo).into_iter().filter(|(path, _)| !path.starts_with(repo.join(".git"))).collect();
    let own = ["config", "index", "HEAD", "info/exclude"].map(|name| fs::read(repo.join(".git").join(name)).unwrap());
    let says =
        [&["stash", "list"][..], &["status", "--porcelain"], &["diff", "--cached"]].map(|args| git(home, repo, args));
    (files, own.into(), says)
}

fn refs(home: &Home, repo: &Path) -> String {
    git(home, repo, &["for-each-ref", "--format=%(refname) %(objectname)"])
}

#[test]
fn what_a_person_works_on_stays_as_it_is() {
    let home = Home::new();
    let main = repo(&home, "저장소");
    fs::write(main.join("메모.txt"), "치워 둠\n").unwrap();
    git(&home, &main, &["stash", "-q"]);
    fs::write(main.join("더함.txt"), "더함\n").unwrap();
    git(&home, &main, &["add", "더함.txt"]);
    fs::write(main.join("메모.txt"), "고치는 중\n").unwrap();
    fs::write(main.join("새것.txt"), "아직\n").unwrap();
    fs::write(main.join(".git/info/exclude"), ".env\n").unwrap();
    fs::write(main.join(".env"), "비밀\n").unwrap();
    let (before, refs_before) = (kept(&home, &main), refs(&home, &main));
    let writes = text("씁니다").tool_call("t1", "write", &json!({"path": "메모.txt", "content": "worktree에서\n"}));
    let stub = stub([writes, text("썼습니다"), text("이어서")]);
    let out = ask(&home, &stub, "고쳐 줘").args(["-w", "기능/로그인"]).cwd(&main).output().ok();
    assert!(out.err().contains("a new worktree of the branch 기능/로그인: "), "{out}");
    assert_eq!(kept(&home, &main), before);
    // One more branch, and nothing else, at the commit of the checkout.
    let now = refs(&home, &main);
    let head = git(&home, &main, &["rev-parse", "HEAD"]);
    let more: Vec<&str> = now.lines().filter(|line| !refs_before.contains(line)).collect();
    assert_eq!(more, [format!("refs/heads/기능/로그인 {}", head.trim())]);
    let file = the_session(&home);
    let there = PathBuf::from(lines(&file)[0]["cwd"].as_str().unwrap());
    assert_eq!(fs::read_to_string(there.join("메모.txt")).unwrap(), "worktree에서\n");
    assert!(
        !there.join(".env").exists() && !there.join("더함.txt").exists(),
        "what is in no commit does not come along"
    );
    // The next start finds it, with what was left in it, and says so.
    let out = ask(&home, &stub, "다음").args(["-w", "기능/로그인", "-c"]).cwd(&main).output().ok();
    assert!(out.err().contains("gjc: the worktree of the branch 기능/로그인: "), "{out}");
    assert!(out.err().contains("changes that are in no commit; they stay as they are"), "{out}");
    assert_eq!(fs::read_to_string(there.join("메모.txt")).unwrap(), "worktree에서\n");
    assert_eq!((the_session(&home), kept(&home, &main)), (file, before));
}

#[test]
fn names_of_all_scripts_have_folders_that_tell_them_apart() {
    let home = Home::new();
    let main = repo(&home, "가재");
    let names = ["수정", "수-정", "수/정", "로그인", "修正", "🦞", "🦀", "A/b", "a/b"];
    let stub = stub(names.iter().map(|_| text("네")));
    for name in names {
        ask(&home, &stub, "x").arg(format!("--worktree={name}")).cwd(&main).output().ok();
    }
    let folders: Vec<String> = fs::read_dir(root(&home).join("가재.gjc-worktrees"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(folders.len(), names.len(), "{folders:?}");
    for (readable, count) in [("수정-", 1), ("수-정-", 2), ("로그인-", 1), ("修正-", 1), ("a-b-", 2)] {
        assert_eq!(folders.iter().filter(|name| name.starts_with(readable)).count(), count, "{readable}: {folders:?}");
    }
    assert!(folders.iter().all(|name| name.len() >= 8), "{folders:?}");
    assert_eq!(session_files(&home).len(), names.len());
}

#[test]
fn nothing_of_the_repository_s_settings_runs_and_what_is_missing_is_said() {
    let home = Home::new();
    let (library, main) = (repo(&home, "도서관"), repo(&home, "저장소"));
    let allow = ["-c", "protocol.file.allow=always"];
    git(&home, &main, &[&allow[..], &["submodule", "--quiet", "add", library.to_str().unwrap(), "도서관"]].concat());
    fs::write(main.join(".gitattributes"), "*.own filter=own\n*.bin filter=lfs\n").unwrap();
    fs::write(main.join("것.own"), "그대로\n").unwrap();
    fs::write(main.join("큰것.bin"), "pointer\n").unwrap();
    git(&home, &main, &["add", "-A"]);
    git(&home, &main, &["commit", "-qm", "설정"]);
    let sprung = root(&home).join("sprung");
    fs::create_dir(&sprung).unwrap();
    let trap = |name: &str| format!(": > '{}'; cat", sprung.join(name).display());
    for name in ["post-checkout", "reference-transaction", "post-commit"] {
        let path = main.join(".git/hooks").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, format!("#!/bin/sh\n{}\n", trap(name))).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    for (key, value) in [("filter.own.smudge", trap("smudge")), ("core.fsmonitor", trap("fsmonitor"))] {
        git(&home, &main, &["config", key, &value]);
    }
    // A person's own: the program of LFS is gone.
    home.write("home/.gitconfig", "[filter \"lfs\"]\n\tprocess = no-such-lfs filter-process\n\trequired = true\n");
    let run =
        |stub: &_| ask(&home, stub, "x").args(["-w", "일"]).cwd(&main).env_remove("GIT_CONFIG_COUNT").output().ok();
    let out = run(&stub([text("네")]));
    for says in [
        "the filter own of the repository's own settings did not run",
        "the filter lfs failed, so its files are as git keeps them",
        "submodules are empty in a new worktree; git submodule update --init fills them",
    ] {
        assert!(out.err().contains(says), "{out}");
    }
    let there = PathBuf::from(lines(&the_session(&home))[0]["cwd"].as_str().unwrap());
    assert_eq!(fs::read_to_string(there.join("것.own")).unwrap(), "그대로\n");
    assert_eq!(fs::read_to_string(there.join("큰것.bin")).unwrap(), "pointer\n");
    run(&stub([text("네")]));
    assert_eq!(fs::read_dir(&sprung).unwrap().count(), 0, "something ran");
    // It is git that fills the submodule, and then a session goes on there.
    git(&home, &there, &[&allow[..], &["submodule", "--quiet", "update", "--init"]].concat());
    fs::write(there.join("도서관/새것.txt"), "안에서\n").unwrap();
    run(&stub([text("네")]));
    assert_eq!(fs::read_to_string(there.join("도서관/새것.txt")).unwrap(), "안에서\n");
}

#[test]
fn many_at_once_all_begin_and_leave_nothing_over() {
    let home = Home::new();
    let main = repo(&home, "저장소");
    let names = ["일/하나", "일/둘", "일/셋", "같은-것", "같은-것", "같은-것"];
    let stub = stub(names.iter().map(|_| text("네")));
    let running: Vec<_> = names
        .iter()
        .map(|name| {
            let mut run = ask(&home, &stub, "x").arg(format!("--worktree={name}")).cwd(&main).spawn();
            run.close_stdin();
            run
        })
        .collect();
    for run in running {
        run.wait().ok();
    }
    let branches = git(&home, &main, &["branch", "--format=%(refname:short)"]);
    let mut branches: Vec<&str> = branches.lines().collect();
    branches.sort_unstable();
    assert_eq!(branches, ["main", "같은-것", "일/둘", "일/셋", "일/하나"]);
    assert_eq!(fs::read_dir(root(&home).join("저장소.gjc-worktrees")).unwrap().count(), 4);
    assert_eq!(git(&home, &main, &["worktree", "list"]).lines().count(), 5);
    assert!(walk(&main.join(".git")).iter().all(|path| path.extension().is_none_or(|end| end != "lock")));
    assert_eq!(session_files(&home).len(), names.len());
}

#[test]
fn a_worktree_without_a_name_is_one_s_own_while_one_works_there() {
    let home = Home::new();
    let main = repo(&home, "저장소");
    let cwd = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["cwd"].as_str().unwrap().to_owned();
    let stub = stub([text("네"), text("네")]);
    let mut first = on(&home, &stub).args(["--mode", "rpc", "--worktree"]).cwd(&main).spawn();
    let one = cwd(&first.wait_for(|line| line.contains("\"type\":\"session\"")));
    let out = on(&home, &stub).args(["--mode", "json", "x", "-w"]).cwd(&main).output().ok();
    let two = cwd(out.out().lines().next().unwrap());
    assert_ne!(one, two);
    assert!(out.err().contains("a new worktree without a branch"), "{out}");
    first.close_stdin();
    first.wait().ok();
    let out = on(&home, &stub).args(["--mode", "json", "x", "-w"]).cwd(&main).output().ok();
    assert_eq!(cwd(out.out().lines().next().unwrap()), one);
    assert!(out.err().contains("a worktree without a branch, which nobody works in"), "{out}");
    assert_eq!(refs(&home, &main).lines().count(), 1, "no branch was made");
}
