//! `gjc sessions delete|restore|trash|du`, and that nothing is ever deleted by itself.

use crate::kit::*;
use serde_json::json;
use std::fs::File;
use std::time::{Duration, SystemTime};
use testkit::harness::Home;

const ID: &str = "0197a0c2-0000-7000-8000-000000000001";
const OTHER: &str = "0197b0c2-0000-7000-8000-000000000002";

/// A home with two sessions, the first with artefacts.
fn home() -> Home {
    let home = Home::new();
    for (id, prompt) in [(ID, "지울 세션"), (OTHER, "남는 세션")] {
        let text = header(id, "/작업/한글") + &user("0000000a", None, prompt) + &said("0000000b", "0000000a", "대답");
        plant(&home, "--작업-한글--", &format!("2026-06-05T07-18-54-120Z_{id}.jsonl"), text);
    }
    let artefacts = home.agent_dir().join(format!("sessions/--작업-한글--/2026-06-05T07-18-54-120Z_{ID}"));
    std::fs::create_dir(&artefacts).unwrap();
    std::fs::write(artefacts.join("0.bash.log"), "출력").unwrap();
    home
}

/// Deletes a session.
#[track_caller]
fn delete(home: &Home, id: &str) -> testkit::harness::Output {
    look(home, &["sessions", "delete", id, "--yes"]).output().ok()
}

#[test]
fn a_deleted_session_is_nowhere_but_in_the_trash_and_comes_back_as_it_was() {
    let home = home();
    let before = tree(&home.agent_dir().join("sessions"));
    let out = delete(&home, "0197a");
    assert_eq!(out.err(), format!("gjc: {ID} is in the trash; gjc sessions restore {ID} puts it back\n"));
    let listed = json(&look(&home, &["sessions", "list", "--json"]).output().ok());
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 1);
    assert_eq!((&listed["sessions"][0]["id"], &listed["unreadable"]), (&json!(OTHER), &json!([])));

    for args in [&["sessions", "show", "0197a"][..], &["-p", "x", "--resume", ID], &["sessions", "delete", ID, "--yes"]]
    {
        let out = look(&home, args).env("ANTHROPIC_API_KEY", KEY).output();
        assert_ne!(out.code(), Some(0), "{args:?}");
        assert!(out.err().contains("is in the trash.\nhint: gjc sessions restore 0197a0c2"), "{args:?}: {}", out.err());
    }
    let trash = json(&look(&home, &["sessions", "trash", "--json"]).output().ok());
    let item = &trash["sessions"][0];
    assert_eq!((&item["id"], &item["name"], &item["cwd"]), (&json!(ID), &json!("지울 세션"), &json!("/작업/한글")));
    assert!(look(&home, &["sessions", "trash"]).output().ok().out().contains("지울 세션"));

    let back = json(&look(&home, &["sessions", "restore", "0197a", "--json"]).output().ok());
    assert!(back["path"].as_str().unwrap().ends_with(&format!("{ID}.jsonl")));
    assert_eq!(tree(&home.agent_dir().join("sessions")), before);
    assert_eq!(look(&home, &["sessions", "trash"]).output().ok().err(), "The trash is empty.\n");
    let lost = look(&home, &["sessions", "restore", "0197a"]).output();
    assert_eq!(
        lost.err(),
        "gjc: Session \"0197a\" is not in the trash.\nhint: gjc sessions trash shows what is there\n"
    );
}

#[test]
fn where_nobody_can_be_asked_nothing_goes_without_a_word_beforehand() {
    let home = home();
    let before = tree(&home.agent_dir().join("sessions"));
    let out = look(&home, &["sessions", "delete", ID]).output();
    assert_eq!(out.code(), Some(2));
    assert!(out.err().contains("nobody can be asked here\nhint: say --yes beforehand"), "{}", out.err());
    // A wrong word among right ones moves nothing.
    let out = look(&home, &["sessions", "delete", ID, "없는것", "--yes"]).output();
    assert_eq!(out.code(), Some(1));
    assert_eq!(tree(&home.agent_dir().join("sessions")), before);

    delete(&home, ID);
    let trashed = tree(&home.agent_dir().join("trash"));
    assert_eq!(look(&home, &["sessions", "trash", "empty"]).output().code(), Some(2));
    assert_eq!(tree(&home.agent_dir().join("trash")), trashed);
    let emptying = look(&home, &["sessions", "trash", "empty", "--yes"]).spawn();
    walk(&home.agent_dir().join("trash")).iter().for_each(|path| home.forget(path));
    emptying.wait().ok();
    assert!(!walk(&home.agent_dir()).iter().any(|path| path.to_string_lossy().contains(ID)), "it is gone for good");
    assert_eq!(session_files(&home).len(), 1, "and the other is not");
}

#[test]
fn an_open_session_is_not_taken_away() {
    let home = home();
    let file = session_files(&home).into_iter().find(|path| path.to_string_lossy().contains(ID)).unwrap();
    let held = File::open(&file).unwrap();
    held.lock().unwrap();
    let out = look(&home, &["sessions", "delete", ID, "--yes"]).output();
    assert_eq!(out.code(), Some(1));
    assert!(
        out.err().contains("session is open in another process") && out.err().contains("hint: close it there first")
    );
    assert!(file.exists());
}

/// K09: retention by a file's own time deleted living histories.
#[test]
fn nothing_old_is_deleted_by_itself() {
    let home = home();
    delete(&home, ID);
    let long_ago = SystemTime::now() - Duration::from_secs(10 * 365 * 24 * 3600);
    for path in walk(&home.agent_dir()).into_iter().filter(|path| path.is_file()) {
        File::options().append(true).open(&path).unwrap().set_modified(long_ago).unwrap();
    }
    let before = tree(&home.agent_dir());
    for args in [
        &["sessions", "list"][..],
        &["sessions", "show", OTHER],
        &["sessions", "verify", "--all"],
        &["sessions", "du"],
        &["sessions", "trash"],
        &["doctor"],
    ] {
        look(&home, args).output();
        let after = tree(&home.agent_dir());
        let gone: Vec<_> = before.iter().filter(|(path, bytes)| after.get(*path) != Some(bytes)).collect();
        assert!(gone.is_empty(), "{args:?} took away {gone:?}");
    }
    let stub = stub([text("이어서")]);
    let cwd = home.work().display().to_string();
    on(&home, &stub).args(["-p", "더", "--resume", OTHER, "--cwd", &cwd]).output().ok();
    let after = tree(&home.agent_dir());
    for (path, bytes) in &before {
        let Some(bytes) = bytes else { continue };
        let grown = after.get(path).and_then(|now| now.as_ref()).is_some_and(|now| now.starts_with(bytes));
        assert!(grown || path.ends_with("history.db"), "{} did not only grow", path.display());
    }
}

#[test]
fn what_sessions_take_is_told_in_columns() {
    let home = home();
    delete(&home, OTHER);
    let used = json(&look(&home, &["sessions", "du", "--json"]).output().ok());
    let size = |path: &str| std::fs::metadata(home.agent_dir().join(path)).unwrap().len();
    let file = size(&format!("sessions/--작업-한글--/2026-06-05T07-18-54-120Z_{ID}.jsonl"));
    let folder = &used["folders"][0];
    assert_eq!((&folder["cwd"], &folder["own"]["bytes"]), (&json!("/작업/한글"), &json!(file + 6)));
    assert_eq!(folder["sessions"][0]["artefacts"]["bytes"], 6);
    assert!(used["trash"]["bytes"].as_u64().unwrap() > 0);
    let shown = look(&home, &["sessions", "du", "--sessions"]).output().ok().out();
    let folder_row = shown.lines().find(|line| line.contains("/작업/한글")).unwrap();
    assert!(folder_row.ends_with("  1 session"), "{folder_row}");
    assert!(shown.contains("지울 세션") && shown.contains("trash") && shown.lines().last().unwrap().ends_with("total"));
}
