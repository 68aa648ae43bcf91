//! A session that moves to another folder, and what is left of it: two files never pass for one session.

use crate::kit::*;
use crate::switching::{call, done, event, file_of, rpc, said_in, say};
use serde_json::json;
use std::fs;
use testkit::harness::Home;

#[test]
fn a_session_moves_between_folders_whose_buckets_have_one_name_and_keeps_its_header() {
    let home = Home::new();
    let (from, to) = (root(&home).join("가/나-다"), root(&home).join("가-나/다"));
    [&from, &to].iter().for_each(|dir| fs::create_dir_all(dir).unwrap());
    let known = json!({"type": "session", "version": 3, "id": "0197-옮김", "timestamp": "2026-06-05T07:18:54.123Z",
        "cwd": from, "title": "이름", "titleSource": "user", "남의것": {"a": [1, 2]}});
    let lines_before = format!("{known}\n") + &user("00000001", None, "안녕") + &said("00000002", "00000001", "네");
    let bucket = gjc_store::bucket_name(&from);
    assert_eq!(bucket, gjc_store::bucket_name(&to), "they are not alike");
    let first = plant(&home, &bucket, "2026-06-05T07-18-54-123Z_0197-옮김.jsonl", lines_before);
    home.forget(&first);
    let stub = stub([text("여기서")]);
    let mut run = rpc(&home, &stub);
    done(call(&mut run, "1", &json!({"type": "switch", "session": "0197"})));
    event(&mut run, "switched");
    let moved = file_of(&done(call(&mut run, "2", &json!({"type": "move_session", "to": to.display().to_string()}))));
    event(&mut run, "switched");
    say(&mut run, "3", "이어서");
    run.close_stdin();
    run.wait().ok();
    assert!(!first.exists() && moved.parent() == first.parent(), "{}", moved.display());
    let header = &lines(&moved)[0];
    for field in ["id", "timestamp", "title", "titleSource", "남의것"] {
        assert_eq!(header[field], known[field], "{field}");
    }
    assert_eq!(header["cwd"], json!(to));
    assert_eq!(said_in(&moved), ["안녕", "네", "이어서", "여기서"]);

    // What it has left is no session that was deleted, and never stands beside it again.
    let trash = json(&look(&home, &["sessions", "trash", "--json"]).output().ok());
    assert_eq!(trash["sessions"][0]["movedTo"], json!(moved), "{trash}");
    let refused = look(&home, &["sessions", "restore", "0197"]).output();
    assert!(refused.code() == Some(1) && refused.err().contains("gjc sessions trash empty"), "{refused}");
    // Deleted, it comes back as itself.
    home.forget(&moved);
    look(&home, &["sessions", "delete", "0197", "--yes"]).output().ok();
    let gone = look(&home, &["sessions", "show", "0197"]).output();
    assert!(gone.err().contains("is in the trash") && gone.err().contains("gjc sessions restore"), "{gone}");
    look(&home, &["sessions", "restore", "0197"]).output().ok();
    assert_eq!(said_in(&moved).len(), 4);
}

#[test]
fn a_session_moves_within_the_folder_that_a_person_named_for_all_of_them() {
    let home = Home::new();
    let dir = root(&home).join("모두");
    let there = root(&home).join("저기");
    fs::create_dir(&there).unwrap();
    let stub = stub([text("하나"), text("둘")]);
    let mut run = on(&home, &stub).args(["--mode", "rpc", "--session-dir"]).arg(&dir).spawn();
    let first = file_of(&event(&mut run, "session"));
    say(&mut run, "1", "첫째");
    let id = id_of(&first);
    home.forget(&first);
    let moved =
        file_of(&done(call(&mut run, "2", &json!({"type": "move_session", "to": there.display().to_string()}))));
    event(&mut run, "switched");
    say(&mut run, "3", "둘째");
    run.close_stdin();
    run.wait().ok();
    assert!(!first.exists() && moved.parent() == Some(&*dir));
    assert_eq!((said_in(&moved).len(), id_of(&moved)), (4, id));
}

#[test]
fn two_files_with_one_id_are_told_apart_by_their_names() {
    let home = Home::new();
    let text = header("0197-둘", "/어디") + &user("00000001", None, "안녕") + &said("00000002", "00000001", "네");
    let files = ["a", "b"].map(|bucket| plant(&home, bucket, "2026-06-05T07-18-54-123Z_x.jsonl", &text));
    let out = look(&home, &["sessions", "show", "0197-둘"]).output();
    assert!(out.code() == Some(1) && out.err().contains("2 files have the session id \"0197-둘\""), "{out}");
    assert!(out.err().contains("name one of these files instead of the id"), "{out}");
    for file in files {
        assert!(out.err().contains(file.to_str().unwrap()), "{out}");
        look(&home, &["sessions", "show"]).arg(&file).output().ok();
    }
}

#[test]
fn a_session_with_the_longest_name_that_a_disk_takes_comes_back_from_the_trash() {
    let home = Home::new();
    let name = "가".repeat(81) + "가.jsonl";
    let text = header("0197-긴", "/어디") + &user("00000001", None, "안녕") + &said("00000002", "00000001", "네");
    let long = plant(&home, "a", &name, &text);
    let other = plant(&home, "a", "2026-06-05T07-18-54-123Z_y.jsonl", text.replace("0197-긴", "0198-짧"));
    for (id, file) in [("0197-긴", &long), ("0198-짧", &other)] {
        home.forget(file);
        look(&home, &["sessions", "delete", id, "--yes"]).output().ok();
    }
    assert!(!long.exists() && !other.exists());
    for id in ["0198-짧", "0197-긴"] {
        look(&home, &["sessions", "restore", id]).output().ok();
    }
    assert_eq!((fs::read_to_string(&long).unwrap(), other.exists()), (text, true));
}
