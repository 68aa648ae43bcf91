use testkit::git::Repo;

#[test]
fn the_same_steps_give_the_same_ids() {
    let make = || {
        let repo = Repo::init();
        repo.write("src/한글.rs", "fn main() {}\n");
        let commit = repo.commit("첫 커밋");
        (commit, repo.tree_hash())
    };
    assert_eq!(make(), make());
}

#[test]
fn nothing_of_this_machine_reaches_it() {
    let repo = Repo::init();
    repo.write("a", "1\n");
    repo.commit("one");
    assert_eq!(repo.git(&["symbolic-ref", "--short", "HEAD"]), "main");
    assert_eq!(repo.git(&["log", "-1", "--format=%an <%ae> %at"]), "Test <test@example.invalid> 1893456000");
    let origins = repo.git(&["config", "--list", "--show-origin"]);
    let foreign: Vec<_> =
        origins.lines().filter(|l| !l.starts_with("command line:") && !l.starts_with("file:.git/config")).collect();
    assert!(foreign.is_empty(), "{foreign:?}");
}

#[test]
fn hooks_do_not_run() {
    use std::os::unix::fs::PermissionsExt;
    let repo = Repo::init();
    let hook = repo.write(".git/hooks/pre-commit", "#!/bin/sh\nexit 1\n");
    std::fs::set_permissions(hook, std::fs::Permissions::from_mode(0o755)).unwrap();
    repo.commit("not hindered");
}

#[test]
fn status_and_tree_of_the_working_copy() {
    let repo = Repo::init();
    repo.write("a", "1\n");
    repo.commit("one");
    assert_eq!(repo.status(), "");
    assert_eq!(repo.worktree_hash(), repo.tree_hash());
    repo.write("나", "2\n");
    assert_eq!(repo.status(), "?? 나");
    let planned = repo.worktree_hash();
    assert_eq!(repo.status(), "?? 나", "the index was touched");
    repo.commit("two");
    assert_eq!(repo.tree_hash(), planned);
}

#[test]
fn a_failing_git_tells_why() {
    let repo = Repo::init();
    assert!(repo.try_git(&["rev-parse", "nowhere"]).unwrap_err().contains("nowhere"));
    let said = crate::failure(std::panic::AssertUnwindSafe(|| {
        repo.git(&["checkout", "nowhere"]);
    }));
    assert!(said.contains("git checkout nowhere failed"), "{said}");
}
