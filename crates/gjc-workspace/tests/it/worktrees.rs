//! Worktrees for sessions, in repositories of real git.

use gjc_entry::{BoxFuture, Clock, Dirs, Env, Timestamp, Vars};
use gjc_workspace::{Worktree, WorktreeError, slug, worktree};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use testkit::git::{self, Repo};
use unicode_normalization::UnicodeNormalization;

/// Other programs are waited for, so time must pass.
struct Real;

impl Clock for Real {
    fn wall(&self) -> Timestamp {
        Timestamp::default()
    }

    fn mono(&self) -> Instant {
        Instant::now()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(duration))
    }
}

/// What gjc would see in a home folder beside the repository. Hooks are not kept away by the variables here.
pub(crate) fn env(repo: &Repo) -> Env {
    let home = repo.beside("home");
    let usual = git::env(&home).into_iter().filter(|(name, _)| !name.starts_with("GIT_CONFIG_COUNT"));
    let path = ("PATH".to_owned(), std::env::var("PATH").unwrap());
    Env {
        clock: Arc::new(Real),
        ids: Arc::new(testkit::SeededIds::new(1)),
        dirs: Dirs { agent: home.join(".gjc"), home: home.clone(), temp: home },
        vars: Vars::new(usual.chain([path])),
    }
}

/// A repository with a commit, a folder and one more branch.
pub(crate) fn repo() -> Repo {
    let repo = Repo::init();
    repo.write("메모.txt", "하나\n");
    repo.write("아래/깊이/파일.txt", "둘\n");
    repo.commit("처음");
    repo.git(&["branch", "other"]);
    repo
}

pub(crate) fn block<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(future)
}

pub(crate) fn make(repo: &Repo, here: &Path, name: Option<&str>) -> Result<Worktree, WorktreeError> {
    block(worktree(&env(repo), here, name))
}

/// All that git keeps of a repository but worktrees: refs, stash, settings, and what is checked out.
fn kept(repo: &Repo) -> (String, Vec<u8>, Vec<u8>, String) {
    let read = |name: &str| fs::read(repo.path().join(".git").join(name)).unwrap_or_default();
    (repo.git(&["for-each-ref"]), read("config"), read("index"), repo.status())
}

#[track_caller]
pub(crate) fn refused(found: Result<Worktree, WorktreeError>, says: &[&str]) {
    let error = found.map(|worktree| worktree.path).unwrap_err();
    let said = format!("{error} / {}", error.hint());
    assert!(says.iter().all(|part| said.contains(part)), "{said}: {says:?}");
}

#[test]
fn a_worktree_stands_beside_the_checkout_and_changes_nothing_else() {
    let repo = repo();
    repo.write("메모.txt", "밖에서 고침\n");
    repo.write("새것.txt", "x");
    repo.git(&["stash"]);
    repo.write("메모.txt", "또 고침\n");
    let (refs, config, index, status) = kept(&repo);
    let made = make(&repo, &repo.path().join("아래/깊이"), Some("기능/로그인")).unwrap();
    assert!(made.made && !made.dirty && !made.submodules && made.filters.is_empty());
    assert_eq!(made.path, repo.beside("repo.gjc-worktrees").join(slug("기능/로그인")));
    assert_eq!((made.cwd.clone(), made.branch.as_deref()), (made.path.join("아래/깊이"), Some("기능/로그인")));
    assert_eq!(fs::read_to_string(made.path.join("메모.txt")).unwrap(), "하나\n");
    let branch = format!("{} commit\trefs/heads/기능/로그인", repo.git(&["rev-parse", "HEAD"]));
    let now = kept(&repo);
    let others: Vec<&str> = now.0.lines().filter(|line| **line != branch).collect();
    assert_eq!((others.join("\n"), now.1, now.2, now.3), (refs, config, index, status));
    assert!(now.0.contains(&branch), "{}", now.0);
}

#[test]
fn what_exists_is_used_again() {
    let repo = repo();
    let first = make(&repo, repo.path(), Some("other")).unwrap();
    assert!(first.made);
    let again = make(&repo, repo.path(), Some("other")).unwrap();
    assert!(!again.made && !again.dirty && again.path == first.path);
    // From within it, and from a worktree that somebody made by hand, it is a sibling of the main checkout all the same.
    fs::write(first.path.join("덜 됨.txt"), "x").unwrap();
    let within = make(&repo, &first.path.join("아래"), Some("other")).unwrap();
    assert!(within.dirty && within.cwd == first.path.join("아래"));
    let by_hand = repo.beside("손으로");
    repo.git(&["worktree", "add", "-q", "-b", "hand", by_hand.to_str().unwrap()]);
    let beside = make(&repo, &by_hand, Some("셋")).unwrap();
    assert_eq!(beside.path.parent(), first.path.parent());
    // The folder is gone, its registration is not: it is made again, and no other registration is touched.
    fs::remove_dir_all(&first.path).unwrap();
    fs::remove_dir_all(&by_hand).unwrap();
    let anew = make(&repo, repo.path(), Some("other")).unwrap();
    assert!(anew.made && anew.path == first.path);
    assert!(repo.git(&["worktree", "list"]).contains("[hand]"));
}

#[test]
fn what_is_in_the_way_is_named() {
    let repo = repo();
    refused(
        make(&repo, repo.path(), Some("main")),
        &["main is checked out in", repo.path().to_str().unwrap(), "--cwd"],
    );
    let beside = repo.beside("repo.gjc-worktrees");
    fs::create_dir(&beside).unwrap();
    let full = beside.join(slug("full"));
    fs::create_dir(&full).unwrap();
    fs::write(full.join("x"), "x").unwrap();
    fs::write(beside.join(slug("file")), "x").unwrap();
    symlink("/없는 곳", beside.join(slug("link"))).unwrap();
    fs::create_dir(beside.join(slug("empty"))).unwrap();
    for name in ["full", "file", "link"] {
        refused(make(&repo, repo.path(), Some(name)), &["is there already", &slug(name)]);
        assert!(!repo.git(&["for-each-ref"]).contains(&format!("heads/{name}")), "no branch is left of it");
    }
    assert!(make(&repo, repo.path(), Some("empty")).unwrap().made);
    let there = make(&repo, repo.path(), Some("other")).unwrap();
    repo.git(&["-C", there.path.to_str().unwrap(), "switch", "-q", "-c", "elsewhere"]);
    refused(make(&repo, repo.path(), Some("other")), &["other", "elsewhere", "switch other"]);
    // Locked, on a disk that is not there.
    let away = make(&repo, repo.path(), Some("away")).unwrap().path;
    repo.git(&["worktree", "lock", away.to_str().unwrap()]);
    fs::remove_dir_all(&away).unwrap();
    refused(make(&repo, repo.path(), Some("away")), &["locked", "worktree unlock"]);
    // A branch in the way of another's name: git says it, and nothing is left.
    refused(make(&repo, repo.path(), Some("main/below")), &["git refused", "main"]);
    assert!(!beside.join(slug("main/below")).exists());
}

#[test]
fn a_path_is_no_name() {
    let repo = repo();
    for path in ["/tmp/x", "./x", "../x", "~/x", "x/", "a\\b", "."] {
        refused(make(&repo, repo.path(), Some(path)), &["branch-like name, not a path", path, "--cwd"]);
    }
    for name in ["", " ", "a b", "a..b", "x.lock", "@{-1}", "-x", "a~1", "a:b", "한글?", "a\nb"] {
        refused(make(&repo, repo.path(), Some(name)), &["cannot be the name of a branch", "my-task"]);
    }
    assert!(!repo.beside("repo.gjc-worktrees").exists());
    // The two ways of writing one name are one name.
    let made = make(&repo, repo.path(), Some("기능")).unwrap();
    let again = make(&repo, repo.path(), Some(&"기능".nfd().collect::<String>())).unwrap();
    assert!(!again.made && again.path == made.path);
}

#[test]
fn where_no_worktree_can_be_the_reason_is_said() {
    let repo = repo();
    let empty = tempfile::tempdir().unwrap();
    refused(make(&repo, empty.path(), Some("x")), &["is in no git repository", "git init"]);
    let unborn = Repo::init();
    refused(make(&unborn, unborn.path(), Some("x")), &["no commit yet", "first commit"]);
    let bare = repo.beside("bare.git");
    repo.git(&["clone", "-q", "--bare", ".", bare.to_str().unwrap()]);
    refused(make(&repo, &bare, Some("x")), &["no checkout"]);
    refused(make(&repo, &repo.path().join(".git"), Some("x")), &["no checkout"]);
    let around = self::repo();
    around.git(&[
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "add",
        repo.path().to_str().unwrap(),
        "sub",
    ]);
    around.commit("sub");
    refused(make(&around, &around.path().join("sub"), Some("x")), &["submodule"]);
    assert!(make(&around, around.path(), Some("x")).unwrap().submodules);
    let mut without = env(&repo);
    without.vars = Vars::new([("PATH".into(), empty.path().display().to_string())]);
    refused(block(worktree(&without, repo.path(), Some("x"))), &["git", "git 2.39"]);
}

#[test]
fn a_worktree_without_a_name_is_nobody_else_s() {
    let repo = repo();
    let first = make(&repo, repo.path(), None).unwrap();
    assert!(first.made && first.branch.is_none());
    assert!(first.path.ends_with(format!("head-{}", &repo.git(&["rev-parse", "HEAD"])[..12])));
    let second = make(&repo, repo.path(), None).unwrap();
    assert!(second.made && second.path != first.path, "somebody works in the first");
    let (one, two) = (first.path.clone(), second.path.clone());
    drop((first, second));
    let again = make(&repo, repo.path(), None).unwrap();
    assert!(!again.made && again.path == one, "nobody does any more, and it is clean");
    drop(again);
    fs::write(one.join("덜 됨.txt"), "x").unwrap();
    assert_eq!(make(&repo, repo.path(), None).unwrap().path, two, "work that was left is not disturbed");
    fs::remove_dir_all(&one).unwrap();
    assert!(make(&repo, repo.path(), None).unwrap().made);
    assert_eq!(repo.git(&["for-each-ref", "--format=%(refname)"]), "refs/heads/main\nrefs/heads/other");
}

#[test]
fn sixteen_at_once_all_start() {
    let repo = repo();
    let lock = repo.path().join(".git/config.lock");
    fs::write(&lock, "").unwrap();
    let names: Vec<String> = (0..16).map(|n| format!("일/{n}")).collect();
    let made: Vec<Worktree> = block(async {
        let release = tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(2)).await;
            fs::remove_file(lock).unwrap();
        });
        let env = env(&repo);
        let path: PathBuf = repo.path().into();
        let all: Vec<_> = names
            .iter()
            .map(|name| {
                let (env, path, name) = (env.clone(), path.clone(), name.clone());
                tokio::spawn(async move { worktree(&env, &path, Some(&name)).await })
            })
            .collect();
        let mut made = Vec::new();
        for one in all {
            made.push(one.await.unwrap().unwrap());
        }
        release.await.unwrap();
        made
    });
    assert!(made.iter().all(|one| one.made && one.path.join("메모.txt").exists()));
    let branches = repo.git(&["branch", "--format=%(refname:short)"]);
    assert_eq!(branches.lines().count(), 18, "{branches}");
    // The same name sixteen times is one worktree; without a name there are sixteen.
    for name in [Some("같은 이름".replace(' ', "-")), None] {
        let made: Vec<Worktree> = block(async {
            let (env, path) = (env(&repo), repo.path().to_path_buf());
            let one = || {
                let (env, path, name) = (env.clone(), path.clone(), name.clone());
                tokio::spawn(async move { worktree(&env, &path, name.as_deref()).await })
            };
            let all: Vec<_> = (0..16).map(|_| one()).collect();
            let mut made = Vec::new();
            for one in all {
                made.push(one.await.unwrap().unwrap());
            }
            made
        });
        let mut paths: Vec<&Path> = made.iter().map(|one| one.path.as_path()).collect();
        paths.sort();
        paths.dedup();
        assert_eq!(paths.len(), if name.is_some() { 1 } else { 16 });
        assert_eq!(made.iter().filter(|one| one.made).count(), paths.len());
        assert!(made.iter().all(|one| one.path.join("메모.txt").exists()), "nobody begins in half a checkout");
    }
}

#[test]
fn the_repository_s_own_settings_run_nothing() {
    let repo = repo();
    let sprung = repo.beside("sprung");
    fs::create_dir(&sprung).unwrap();
    let trap = |name: &str| format!(": > '{}'; cat", sprung.join(name).display());
    let program = |path: &str, name: &str| {
        let path = repo.write(path, format!("#!/bin/sh\n{}\n", trap(name)));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    };
    program(".git/hooks/post-checkout", "hook");
    program(".git/hooks/reference-transaction", "refs");
    let fsmonitor = program("fsmonitor", "fsmonitor");
    repo.write(".gitattributes", "*.bin filter=lfs\n*.own filter=own\n");
    repo.write("큰것.bin", "pointer\n");
    repo.write("것.own", "own\n");
    repo.commit("attributes");
    for (key, value) in [
        ("core.fsmonitor", fsmonitor.to_str().unwrap()),
        ("filter.own.smudge", &trap("smudge")),
        ("filter.own.process", &trap("process")),
        ("filter.own.required", "true"),
    ] {
        repo.git(&["config", key, value]);
    }
    // A person's own settings are theirs: what they have git do on a checkout is done.
    fs::write(repo.beside("home").join(".gitconfig"), "[filter \"lfs\"]\n\tsmudge = sed s/pointer/whole/\n").unwrap();
    let made = make(&repo, repo.path(), Some("x")).unwrap();
    assert_eq!(fs::read_dir(&sprung).unwrap().count(), 0, "something ran");
    assert_eq!(fs::read_to_string(made.path.join("큰것.bin")).unwrap(), "whole\n");
    assert_eq!(fs::read_to_string(made.path.join("것.own")).unwrap(), "own\n");
    assert_eq!(made.filters, ["own"]);
    assert!(!make(&repo, repo.path(), Some("x")).unwrap().made);
    assert_eq!(fs::read_dir(&sprung).unwrap().count(), 0, "something ran");
    // The traps spring where nothing keeps them.
    let mut plain = repo.command();
    plain.env_remove("GIT_CONFIG_COUNT").args(["worktree", "add", "-q", "-b", "y", "../y"]);
    let _ = plain.output().unwrap();
    assert!(fs::read_dir(&sprung).unwrap().count() >= 2, "the traps do not spring");
}

#[test]
fn a_filter_that_fails_is_left_out_and_named() {
    let repo = repo();
    repo.write(".gitattributes", "*.bin filter=lfs\n*.own filter=둘째\n");
    repo.write("큰것.bin", "pointer\n");
    repo.write("것.own", "own\n");
    repo.commit("attributes");
    // LFS was installed once, and its program is gone.
    let settings = "[filter \"lfs\"]\n\tsmudge = no-such-lfs smudge %f\n\tclean = no-such-lfs clean %f\n\tprocess = no-such-lfs filter-process\n\trequired = true\n[filter \"둘째\"]\n\tsmudge = false\n\trequired = true\n";
    fs::write(repo.beside("home").join(".gitconfig"), settings).unwrap();
    for name in [Some("x"), None] {
        let made = make(&repo, repo.path(), name).unwrap();
        let mut failed = made.failed_filters.clone();
        failed.sort();
        assert_eq!((made.made, failed), (true, vec!["lfs".to_owned(), "둘째".to_owned()]));
        assert!(made.filters.is_empty());
        assert_eq!(fs::read_to_string(made.path.join("큰것.bin")).unwrap(), "pointer\n");
        assert_eq!(fs::read_to_string(made.path.join("것.own")).unwrap(), "own\n");
    }
    let again = make(&repo, repo.path(), Some("x")).unwrap();
    assert!(!again.made && !again.dirty, "{again:?}");
    assert_eq!(repo.git(&["for-each-ref", "--format=%(refname)"]), "refs/heads/main\nrefs/heads/other\nrefs/heads/x");
}

#[test]
fn variables_of_a_git_that_runs_gjc_lead_to_no_other_repository() {
    let (repo, other) = (self::repo(), self::repo());
    let mut within = env(&repo);
    let vars = [("GIT_DIR", ".git"), ("GIT_WORK_TREE", "."), ("GIT_INDEX_FILE", "index")];
    let leads = vars.map(|(name, value)| (name.to_owned(), other.path().join(value).display().to_string()));
    let all: Vec<_> = within.vars.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    within.vars = Vars::new(all.into_iter().chain(leads));
    let made = block(worktree(&within, repo.path(), Some("x"))).unwrap();
    assert_eq!(made.path.parent(), Some(repo.beside("repo.gjc-worktrees").as_path()));
    assert!(!other.git(&["for-each-ref"]).contains("heads/x"));
}
