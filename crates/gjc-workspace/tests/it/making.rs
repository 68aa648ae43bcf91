//! Worktrees in the making: what a repository's settings must not run, where a branch must not lead, what was cut short.

use crate::worktrees::{block, env, make, refused, repo};
use gjc_workspace::{slug, worktree};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use testkit::git::Repo;

#[test]
fn settings_that_hold_only_in_the_worktree_run_nothing() {
    let repo = repo();
    let sprung = repo.beside("sprung");
    fs::create_dir(&sprung).unwrap();
    let named = "*.g filter=gdf\n*.b filter=가지\n*.w filter=wf\n".as_bytes();
    fs::write(repo.path().join(".gitattributes"), [named, b"*.x filter=\xff\n"].concat()).unwrap();
    for name in ["하나.g", "둘.b", "셋.w", "넷.x"] {
        repo.write(name, "그대로\n");
    }
    repo.commit("attributes");
    let program = |name: &str| {
        let trap = format!("#!/bin/sh\n: > '{}'\ncat\n", sprung.join(name).display());
        let path = repo.write(format!(".git/{name}"), trap);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path.display().to_string()
    };
    let section = |filter: &[u8], name: &str| {
        let (smudge, clean) = (program(&format!("{name}-smudge")), program(&format!("{name}-clean")));
        let end = format!("\"]\n\tsmudge = {smudge}\n\tclean = {clean}\n");
        [b"[filter \"", filter, end.as_bytes()].concat()
    };
    // They hold in a worktree only, on a branch only, and under a name that is no text.
    let git_dir = repo.path().join(".git");
    fs::write(git_dir.join("gd.cfg"), section(b"gdf", "gitdir")).unwrap();
    fs::write(git_dir.join("evb.cfg"), section("가지".as_bytes(), "onbranch")).unwrap();
    let mut config = fs::read(git_dir.join("config")).unwrap();
    config.extend(section(b"\xff", "bytes"));
    config.extend(
        "[includeIf \"gitdir:**/worktrees/**\"]\n\tpath = gd.cfg\n[includeIf \"onbranch:evb\"]\n\tpath = evb.cfg\n"
            .bytes(),
    );
    fs::write(git_dir.join("config"), config).unwrap();
    repo.git(&["config", "extensions.worktreeConfig", "true"]);
    let nothing_ran = || {
        let ran: Vec<_> = fs::read_dir(&sprung).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert!(ran.is_empty(), "{ran:?}");
    };
    let made = make(&repo, repo.path(), Some("evb")).unwrap();
    nothing_ran();
    let mut left_out = made.filters.clone();
    left_out.sort();
    assert_eq!((made.made, left_out), (true, vec!["gdf".to_owned(), "가지".to_owned(), "\u{fffd}".to_owned()]));
    assert_eq!(fs::read_to_string(made.path.join("하나.g")).unwrap(), "그대로\n");
    // A setting that the worktree got later, and files whose times say that they are to be looked at.
    let there = made.path.to_str().unwrap();
    repo.git(&["-C", there, "config", "--worktree", "filter.wf.clean", &program("worktree")]);
    let touch = || {
        for name in ["하나.g", "둘.b", "셋.w", "넷.x"] {
            fs::write(made.path.join(name), "그대로\n").unwrap();
        }
    };
    touch();
    let again = make(&repo, repo.path(), Some("evb")).unwrap();
    nothing_ran();
    assert!(!again.made && !again.dirty);
    let detached = make(&repo, repo.path(), None).unwrap();
    nothing_ran();
    assert!(detached.made && detached.filters.contains(&"gdf".to_owned()));
    // The traps spring where nothing keeps them.
    touch();
    repo.git(&["-C", there, "status"]);
    repo.git(&["-C", there, "rm", "-q", "--cached", "-r", "."]);
    repo.git(&["-C", there, "reset", "-q", "--hard"]);
    let ran = fs::read_dir(&sprung).unwrap().count();
    assert!(ran >= 7, "the traps do not spring: {ran}");
}

#[test]
fn a_link_on_the_branch_leads_no_session_out_of_its_worktree() {
    let repo = repo();
    let victim = repo.beside("victim");
    fs::create_dir_all(victim.join("깊이")).unwrap();
    repo.git(&["switch", "-q", "-c", "evil"]);
    repo.git(&["rm", "-q", "-r", "아래"]);
    symlink(&victim, repo.path().join("아래")).unwrap();
    repo.commit("link");
    repo.git(&["switch", "-q", "-c", "within", "main"]);
    repo.git(&["mv", "아래", "옮김"]);
    symlink("옮김", repo.path().join("아래")).unwrap();
    repo.commit("link within");
    repo.git(&["switch", "-q", "main"]);
    for folder in ["아래", "아래/깊이"] {
        let made = make(&repo, &repo.path().join(folder), Some("evil")).unwrap();
        assert_eq!(made.cwd, made.path, "from {folder}");
        // A link that stays within it is a folder of it.
        let made = make(&repo, &repo.path().join(folder), Some("within")).unwrap();
        assert_eq!(made.cwd, made.path.join(folder));
    }
}

/// A worktree that git has registered and locked, and not filled.
fn half(repo: &Repo, folder: &str, what: &[&str]) -> (PathBuf, PathBuf) {
    let path = repo.beside("repo.gjc-worktrees").join(folder);
    let start = ["worktree", "add", "-q", "--no-checkout", "--lock", "--reason", "initializing"];
    repo.git(&[&start[..], &[path.to_str().unwrap()], what].concat());
    let own = repo.git(&["-C", path.to_str().unwrap(), "rev-parse", "--absolute-git-dir"]);
    (path, own.into())
}

#[track_caller]
fn whole(repo: &Repo, name: Option<&str>, path: &std::path::Path) {
    let made = make(repo, repo.path(), name).unwrap();
    assert!(made.made && made.path == path, "{made:?}");
    assert_eq!(fs::read_to_string(path.join("메모.txt")).unwrap(), "하나\n");
    assert_eq!(repo.git(&["-C", path.to_str().unwrap(), "status", "--porcelain"]), "");
    assert!(!repo.git(&["worktree", "list", "--porcelain"]).contains("locked"));
}

#[test]
fn a_making_that_was_cut_short_is_finished() {
    let repo = repo();
    // While a file was written.
    let (path, own) = half(&repo, &slug("other"), &["other"]);
    fs::write(path.join("메모.txt"), "하").unwrap();
    fs::write(own.join("index.lock"), "").unwrap();
    whole(&repo, Some("other"), &path);
    // When all was there but the word that it is.
    let (path, _) = half(&repo, &slug("둘"), &["-b", "둘"]);
    repo.git(&["-C", path.to_str().unwrap(), "reset", "-q", "--hard"]);
    whole(&repo, Some("둘"), &path);
    // Before it had a commit; before it had a folder.
    let (path, own) = half(&repo, &slug("셋"), &["-b", "셋"]);
    fs::write(own.join("HEAD"), format!("{}\n", "0".repeat(40))).unwrap();
    whole(&repo, Some("셋"), &path);
    let (path, _) = half(&repo, &slug("넷"), &["-b", "넷"]);
    fs::remove_dir_all(&path).unwrap();
    whole(&repo, Some("넷"), &path);
    let (path, _) = half(&repo, &slug("다섯"), &["-b", "다섯"]);
    fs::remove_file(path.join(".git")).unwrap();
    whole(&repo, Some("다섯"), &path);
    // Without a name.
    let head = format!("head-{}", &repo.git(&["rev-parse", "HEAD"])[..12]);
    let (path, _) = half(&repo, &head, &["--detach", "HEAD"]);
    whole(&repo, None, &path);
}

#[test]
fn what_is_not_gjc_s_own_in_a_half_made_worktree_stays_and_is_said_at_once() {
    let repo = repo();
    let (path, own) = half(&repo, &slug("other"), &["other"]);
    fs::write(path.join("내 것.txt"), "x").unwrap();
    fs::write(own.join("index.lock"), "").unwrap();
    let began = Instant::now();
    let said = ["cut short", "git worktree unlock", "git worktree remove", path.to_str().unwrap()];
    refused(make(&repo, repo.path(), Some("other")), &said);
    assert!(began.elapsed() < Duration::from_secs(20), "it was waited for");
    assert!(path.join("내 것.txt").exists() && own.join("index.lock").exists() && own.join("locked").exists());
    // Without a name another place is taken.
    let head = format!("head-{}", &repo.git(&["rev-parse", "HEAD"])[..12]);
    let (detached, _) = half(&repo, &head, &["--detach", "HEAD"]);
    fs::write(detached.join("내 것.txt"), "x").unwrap();
    let made = make(&repo, repo.path(), None).unwrap();
    assert!(made.made && made.path != detached && detached.join("내 것.txt").exists());
}

#[test]
fn after_a_making_that_was_ended_the_next_one_has_its_worktree() {
    let repo = repo();
    repo.write(".gitattributes", "*.bin filter=slow\n");
    repo.write("큰것.bin", "pointer\n");
    repo.commit("attributes");
    let (home, begun) = (repo.beside("home"), repo.beside("begun"));
    let settings = format!("[filter \"slow\"]\n\tsmudge = \": > '{}'; exec sleep 600\"\n", begun.display());
    for name in [Some("끊긴-일"), None] {
        fs::write(home.join(".gitconfig"), &settings).unwrap();
        let _ = fs::remove_file(&begun);
        block(async {
            let (env, here) = (env(&repo), repo.path().to_path_buf());
            let at_work = tokio::spawn(async move { worktree(&env, &here, name).await.map(drop) });
            while !begun.exists() {
                tokio::task::yield_now().await;
            }
            at_work.abort();
            assert!(at_work.await.unwrap_err().is_cancelled());
        });
        let list = repo.git(&["worktree", "list", "--porcelain"]);
        assert!(list.contains("locked initializing"), "{list}");
        fs::write(home.join(".gitconfig"), "").unwrap();
        let made = make(&repo, repo.path(), name).unwrap();
        assert!(made.made && made.path.join("큰것.bin").exists());
        assert!(!repo.git(&["worktree", "list", "--porcelain"]).contains("locked"));
    }
}
