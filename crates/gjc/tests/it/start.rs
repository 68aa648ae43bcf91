//! How gjc starts: which session `-c`, `-r`, `--fork` and `--session-dir` mean, and what a terminal remembers.

use crate::kit::*;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use testkit::harness::{Home, Output, Run};
use testkit::stub::Stub;
use unicode_normalization::UnicodeNormalization;

const ONE: &str = "0197a0c2-0000-7000-8000-000000000001";
const TWO: &str = "0197a0c2-0000-7000-8000-000000000002";
const THREE: &str = "0197a0c2-0000-7000-8000-000000000003";

/// A session of a folder with a question and an answer; the answer is of this minute.
pub(crate) fn plant_at(home: &Home, id: &str, cwd: &str, minute: u32) -> PathBuf {
    let text = header(id, cwd) + &user("0000000a", None, "옛 물음") + &said("0000000b", "0000000a", "옛 대답");
    let text = text.replace("07:19:00", &format!("07:{minute:02}:00"));
    plant(home, "--bucket--", &format!("{id}.jsonl"), text)
}

/// The working folder as sessions record it.
fn work(home: &Home) -> String {
    home.work().display().to_string()
}

/// How many messages a file holds.
fn count(path: &Path) -> usize {
    messages(path).len()
}

/// `gjc -p <prompt> <args>`.
fn go<'h>(home: &'h Home, stub: &Stub, args: &[&str]) -> Run<'h> {
    ask(home, stub, "다음").args(args)
}

/// A shell script in a terminal of its own, which `gjc` begins with the stub as its model. What is typed is given at once.
pub(crate) fn in_terminal(home: &Home, stub: &Stub, script: &str, typed: &str) -> Output {
    let gjc = env!("CARGO_BIN_EXE_gjc");
    let url = stub.url();
    let run = format!("gjc() {{ '{gjc}' --model anthropic/claude-stub-1 --provider-url '{url}' \"$@\"; }}\n{script}\n");
    let file = home.write("tmp/terminal.sh", run);
    let command = format!("sh '{}'", file.display());
    home.run("script").args(["-qec", &command, "/dev/null"]).env("ANTHROPIC_API_KEY", KEY).stdin(typed).output()
}

fn breadcrumbs(home: &Home) -> Vec<PathBuf> {
    walk(&home.agent_dir().join("terminal-sessions"))
}

#[test]
fn continue_takes_the_newest_session_of_this_folder_alone() {
    let home = Home::new();
    let stub = stub([text("하나"), text("둘")]);
    let old = plant_at(&home, ONE, &work(&home), 20);
    let newest = plant_at(&home, TWO, &work(&home), 30);
    let elsewhere = plant_at(&home, THREE, "/elsewhere", 50);
    go(&home, &stub, &["-c"]).output().ok();
    assert_eq!((count(&old), count(&newest), count(&elsewhere)), (2, 4, 2));
    // Where there is none, it is a new one, and that is said.
    let fresh = root(&home).join("다른 폴더");
    fs::create_dir(&fresh).unwrap();
    let out = go(&home, &stub, &["--continue"]).cwd(&fresh).output().ok();
    assert!(out.err().contains("there is no session of") && out.err().contains("다른 폴더"), "{out}");
    assert_eq!(session_files(&home).len(), 4);
}

#[test]
fn a_session_without_messages_never_wins() {
    let home = Home::new();
    let real = plant_at(&home, ONE, &work(&home), 20);
    let empty = header(TWO, &work(&home)).replace("2026-06-05", "2036-06-05");
    plant(&home, "--bucket--", "empty.jsonl", empty);
    go(&home, &stub([text("네")]), &["-c"]).output().ok();
    assert_eq!(count(&real), 4);
    let out = look(&home, &["--resume"]).output().ok();
    assert!(out.out().contains(ONE) && !out.out().contains(TWO), "{out}");
}

#[test]
fn a_terminal_goes_on_with_its_own_session() {
    let home = Home::new();
    let stub = stub([text("하나"), text("둘"), text("셋")]);
    let out = in_terminal(&home, &stub, "gjc -p 첫째", "");
    assert_eq!(out.code(), Some(0), "{out}");
    let mine = the_session(&home);
    assert_eq!(breadcrumbs(&home).len(), 1);
    // Another terminal has worked here since; this one's number is given away again, and it goes by the newest.
    let newer = plant_at(&home, TWO, &work(&home), 20);
    let later = fs::read_to_string(&newer).unwrap().replace("2026-06-05", "2036-06-05");
    home.forget(&newer);
    fs::write(&newer, &later).unwrap();
    let out = in_terminal(&home, &stub, "gjc -p -c 둘째", "");
    assert_eq!(out.code(), Some(0), "{out}");
    assert_eq!((count(&mine), count(&newer)), (2, 4));
    // Within one terminal its own session counts, however new another is.
    home.forget(&newer);
    fs::remove_file(&newer).unwrap();
    let script =
        format!("gjc -p -r '{}' 셋째; cp \"$TMPDIR/newer\" '{}'; gjc -p -c 넷째", mine.display(), newer.display());
    home.write("tmp/newer", later);
    let stub = self::stub([text("셋"), text("넷")]);
    let out = in_terminal(&home, &stub, &script, "");
    assert_eq!(out.code(), Some(0), "{out}");
    assert_eq!((count(&mine), count(&newer)), (6, 2));
}

#[test]
fn a_breadcrumb_that_leads_nowhere_is_passed_by() {
    let home = Home::new();
    let newest = plant_at(&home, ONE, &work(&home), 30);
    let other = plant_at(&home, TWO, "/elsewhere", 40);
    let (work, agent) = (work(&home), home.agent_dir());
    let note = home.write("tmp/notes.jsonl", "no session");
    for (cwd, session) in [
        ("/elsewhere", other.as_path()),
        (&work, Path::new("/gone/x.jsonl")),
        (&work, note.as_path()),
        (&work, other.as_path()),
        (&work, home.work().as_path()),
    ] {
        let before = count(&newest);
        let crumb = format!("{cwd}\n{}\n", session.display());
        home.write("tmp/crumb", crumb);
        let script = format!(
            "d='{}/terminal-sessions'; mkdir -p \"$d\"; t=$(tty); cp \"$TMPDIR/crumb\" \"$d/$(echo \"${{t#/dev/}}\" | tr / -)\"; gjc -p -c x",
            agent.display()
        );
        let out = in_terminal(&home, &stub([text("네")]), &script, "");
        assert_eq!(out.code(), Some(0), "{out}");
        assert_eq!(count(&newest), before + 2, "{cwd} {}", session.display());
    }
    assert_eq!(count(&other), 2);
}

#[test]
fn only_a_session_of_a_terminal_leaves_a_breadcrumb() {
    let home = Home::new();
    // A program around gjc is known by a variable, which a model's command inherits; that has no terminal.
    let pane = |run: Run<'_>| run.env("TMUX_PANE", "%7").env("KITTY_WINDOW_ID", "3").output();
    pane(go(&home, &stub([text("네")]), &[]));
    let id = id_of(&the_session(&home));
    let bin = env!("CARGO_BIN_EXE_gjc");
    let file = the_session(&home).display().to_string();
    let looks = format!("'{bin}' sessions list; '{bin}' sessions show {id}; '{bin}' sessions verify {id}; '{bin}' -r");
    let pages = format!("'{bin}' --export '{file}' a.html; '{bin}' sessions export {id} b.html");
    let script = format!("{looks}; {pages}; gjc -p --no-session x; gjc --mode json x");
    let out = in_terminal(&home, &stub([text("네"), text("네")]), &script, "");
    assert_eq!(breadcrumbs(&home), Vec::<PathBuf>::new(), "{out}");
    assert!(home.work().join("a.html").exists() && home.work().join("b.html").exists(), "{out}");
    // Where it cannot be written, nobody is told.
    fs::write(home.agent_dir().join("terminal-sessions"), "a file").unwrap();
    let out = in_terminal(&home, &stub([text("네")]), "gjc -p x", "");
    assert!(out.code() == Some(0) && !out.out().contains("terminal-sessions"), "{out}");
}

#[test]
fn resume_without_a_value_lists_what_is_here() {
    let home = Home::new();
    let out = look(&home, &["-r"]).output().ok();
    assert!(out.out().is_empty() && out.err().contains("no sessions of this folder yet"), "{out}");
    plant_at(&home, ONE, &work(&home), 20);
    plant_at(&home, TWO, &work(&home), 30);
    plant_at(&home, THREE, "/elsewhere", 40);
    let out = look(&home, &["-r"]).output().ok();
    let ids: Vec<String> = out.out().lines().map(|line| line[..36].to_owned()).collect();
    assert_eq!(ids, [TWO, ONE], "{out}");
    assert!(out.err().contains(&format!("gjc -p --resume {TWO}")), "{out}");
    for args in
        [&["-p", "x", "-r"][..], &["-p", "-r", "--", "x"], &["--mode", "json", "x", "-r"], &["--mode", "rpc", "-r"]]
    {
        let out = look(&home, args).output();
        assert!(out.code() == Some(2) && out.err().contains("--resume without a session"), "{out}");
    }
}

#[test]
fn a_session_of_another_project_is_asked_about() {
    let home = Home::new();
    let other = root(&home).join("다른 일");
    fs::create_dir(&other).unwrap();
    let source = plant_at(&home, ONE, other.to_str().unwrap(), 20);
    let before = fs::read(&source).unwrap();
    let asked = format!("Session found in different project: {}. Fork into current directory? [y/N] ", other.display());
    let resume = "gjc -p -r 0197a0c2 x; echo ended $?";
    for no in ["n\n", "\n", "nope\n"] {
        let out = in_terminal(&home, &stub([]), resume, no);
        assert!(out.out().contains(&asked), "{out}");
        assert!(out.out().contains("ended 0") && out.out().contains("nothing was begun"), "{out}");
        assert_eq!(session_files(&home), std::slice::from_ref(&source));
    }
    let stub = stub([text("여기서")]);
    let out = in_terminal(&home, &stub, resume, "y\n");
    assert!(out.out().contains(&asked) && out.out().contains("여기서"), "{out}");
    let files = session_files(&home);
    let fork = files.iter().find(|file| **file != source).unwrap();
    let first = &lines(fork)[0];
    assert_eq!((&first["cwd"], &first["parentSession"]), (&work(&home).into(), &ONE.into()));
    assert_eq!((count(fork), fs::read(&source).unwrap()), (4, before));
}

#[test]
fn where_nobody_can_be_asked_another_project_is_an_error_with_two_ways_out() {
    let home = Home::new();
    let other = root(&home).join("다른 일");
    fs::create_dir(&other).unwrap();
    let source = plant_at(&home, ONE, other.to_str().unwrap(), 20);
    let out = go(&home, &stub([]), &["-r", "0197a0c2"]).output();
    assert_eq!(out.code(), Some(1), "{out}");
    let said = out.err();
    assert!(said.contains(&format!("Session \"0197a0c2\" is in another project ({}).", other.display())), "{said}");
    assert!(said.contains("--cwd") && said.contains("--fork 0197a0c2"), "{said}");
    assert_eq!(count(&source), 2);
    // The ways out lead out; so does the file itself.
    let stub = stub([text("거기"), text("저기"), text("갈래")]);
    go(&home, &stub, &["-r", "0197a0c2", "--cwd", other.to_str().unwrap()]).output().ok();
    go(&home, &stub, &["-r", source.to_str().unwrap()]).output().ok();
    assert_eq!(count(&source), 6);
    go(&home, &stub, &["--fork", "0197a0c2"]).output().ok();
    assert_eq!((count(&source), session_files(&home).len()), (6, 2));
}

#[test]
fn a_fork_begins_here_and_leaves_its_source_alone() {
    let home = Home::new();
    let source = plant_at(&home, ONE, "/gone/옛 자리", 20);
    let beside = source.with_extension("");
    fs::create_dir(&beside).unwrap();
    fs::write(beside.join("출력.txt"), "전부").unwrap();
    fs::write(beside.join("1-Child.jsonl.torn"), "x").unwrap();
    symlink("/etc/passwd", beside.join("link")).unwrap();
    let before = tree(&home.agent_dir().join("sessions"));
    let out = go(&home, &stub([text("갈래")]), &["--fork", ONE]).output().ok();
    assert!(out.err().contains(&format!("a fork of {ONE}")), "{out}");
    let after = tree(&home.agent_dir().join("sessions"));
    assert!(before.iter().all(|(path, bytes)| after.get(path) == Some(bytes)), "the source has changed");
    let files = session_files(&home);
    let fork = files.iter().find(|file| **file != source).unwrap();
    assert_ne!(id_of(fork), ONE);
    assert!(fork.to_str().unwrap().ends_with(&format!("_{}.jsonl", id_of(fork))), "the name has the header's id");
    assert_eq!(lines(fork)[0]["parentSession"], ONE);
    assert_eq!(lines(fork)[0]["cwd"], work(&home));
    assert_eq!(lines(fork)[1..3], lines(&source)[1..3]);
    let copied = fork.with_extension("");
    assert_eq!(fs::read_to_string(copied.join("출력.txt")).unwrap(), "전부");
    assert!(
        ["link", "1-Child.jsonl.torn"].iter().all(|name| !copied.join(name).exists()),
        "children stay where they are"
    );
    // What cannot be, leaves nothing behind.
    for (word, says) in [("ffff", "not found"), ("/없는/길.jsonl", "File not found"), ("/tmp/", "is a folder")] {
        let out = go(&home, &stub([]), &["--fork", word]).output();
        assert!(out.code() == Some(1) && out.err().contains(says), "{out}");
    }
    assert_eq!(session_files(&home).len(), 2);
    let failed = gjc(&home).args(["-p", "x", "--fork", ONE, "--model", "nobody/x"]).output();
    assert_eq!((failed.code(), session_files(&home).len()), (Some(2), 2), "{failed}");
}

#[test]
fn what_cannot_go_together_is_misuse() {
    let home = Home::new();
    let out = look(&home, &["-p", "x", "--fork", ONE, "--no-session"]).output();
    assert!(out.code() == Some(2) && out.err().contains("--fork requires session persistence"), "{out}");
    for args in [
        &["-c", "-r", ONE][..],
        &["-c", "--fork", ONE],
        &["-r", ONE, "--fork", ONE],
        &["-c", "--no-session"],
        &["--session-dir", "x", "--no-session"],
    ] {
        let out = look(&home, &[&["-p", "x"], args].concat()).output();
        assert_eq!(out.code(), Some(2), "{args:?}: {out}");
    }
    assert_eq!(session_files(&home), Vec::<PathBuf>::new());
}

#[test]
fn a_folder_of_one_s_own_holds_sessions_flat() {
    let home = Home::new();
    let stub = stub([text("하나"), text("둘"), text("셋"), text("넷")]);
    plant_at(&home, ONE, &work(&home), 20);
    let dir = root(&home).join("내 세션");
    let with = |args: &[&str]| go(&home, &stub, &[&["--session-dir", "../내 세션"], args].concat()).output();
    with(&[]).ok();
    let files = || -> Vec<PathBuf> { walk(&dir).into_iter().filter(|path| path.extension().is_some()).collect() };
    assert_eq!(files().len(), 1);
    let mine = files()[0].clone();
    with(&["-c"]).ok();
    with(&["-r", &id_of(&mine)[..20]]).ok();
    assert_eq!((files().len(), count(&mine)), (1, 6));
    // Sessions of the usual place are not among them, but a path leads to them.
    let out = with(&["-r", ONE]);
    assert!(out.code() == Some(1) && out.err().contains("not found"), "{out}");
    let usual = the_session(&home);
    with(&["--fork", usual.to_str().unwrap()]).ok();
    assert_eq!((files().len(), session_files(&home).len()), (2, 1));
}

#[test]
fn a_folder_that_moved_and_left_a_link_goes_on_from_both() {
    let home = Home::new();
    let (old, new) = (root(&home).join("옛 프로젝트"), root(&home).join("새 프로젝트"));
    fs::create_dir(&old).unwrap();
    let stub = stub([text("하나"), text("둘"), text("셋"), text("넷")]);
    go(&home, &stub, &[]).cwd(&old).output().ok();
    let file = the_session(&home);
    fs::rename(&old, &new).unwrap();
    symlink(&new, &old).unwrap();
    for (place, args) in [(&old, vec!["-c"]), (&new, vec!["-c"]), (&new, vec!["-r", "0"])] {
        let id = id_of(&file);
        let args = args.iter().map(|arg| if *arg == "0" { &id[..20] } else { arg }).collect::<Vec<_>>();
        go(&home, &stub, &args).cwd(place).output().ok();
    }
    assert_eq!((session_files(&home).len(), count(&file)), (1, 8));
}

#[test]
fn a_folder_that_moved_away_is_noticed() {
    let home = Home::new();
    let stub = stub([text("새로"), text("이어서")]);
    let file = plant_at(&home, ONE, "/gone/project", 20);
    let out = go(&home, &stub, &["-c"]).output().ok();
    assert!(
        out.err().contains("/gone/project, which is gone") && out.err().contains(&format!("--resume {ONE}")),
        "{out}"
    );
    assert_eq!(session_files(&home).len(), 2);
    // The way out of that sentence: it says that the folder is gone, and goes on here.
    let out = go(&home, &stub, &["-r", ONE]).output().ok();
    assert!(out.err().contains("/gone/project is gone"), "{out}");
    assert_eq!(count(&file), 4);
}

#[test]
fn a_folder_written_in_the_other_normal_form_is_the_same() {
    let home = Home::new();
    let folder = root(&home).join("한글 폴더");
    fs::create_dir(&folder).unwrap();
    let decomposed: String = folder.to_str().unwrap().nfd().collect();
    assert_ne!(decomposed, folder.to_str().unwrap());
    let file = plant_at(&home, ONE, &decomposed, 20);
    let stub = stub([text("하나"), text("둘")]);
    go(&home, &stub, &["-c"]).cwd(&folder).output().ok();
    go(&home, &stub, &["-r", &ONE[..30]]).cwd(&folder).output().ok();
    assert_eq!(count(&file), 6);
}
