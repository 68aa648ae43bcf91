use crate::rig::{Rig, mode, names, sha256};
use gjc_entry::{Label, Level};
use gjc_flow::Permits;
use serde_json::json;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use unicode_normalization::UnicodeNormalization;

/// A file, edits, and the file after them.
type Case<'a> = (&'a [u8], &'a [(&'a str, &'a str)], &'a [u8]);
/// A file, edits that do not fit, and what is told.
type Misfit<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a str);

#[tokio::test]
async fn texts_are_replaced_and_all_else_stays() {
    let rig = Rig::new();
    #[rustfmt::skip]
    let table: &[Case<'_>] = &[
        (b"a b c", &[("b", "B")], b"a B c"),
        (b"a b c\n", &[("c\n", ""), ("a", "x\ny")], b"x\ny b "),
        // Matched against the file before the call: the second edit does not see the first.
        (b"1 2", &[("1", "2"), ("2", "1")], b"2 1"),
        (b"ab", &[("a", "x"), ("b", "y")], b"xy"),
        ("안녕 세상".as_bytes(), &[("세상", "世界")], "안녕 世界".as_bytes()),
        // Line ends stay as they are in the file.
        (b"a\r\nb\r\nc\r\n", &[("a\nb", "1\n2\n3")], b"1\r\n2\r\n3\r\nc\r\n"),
        (b"a\r\nb\r\n", &[("b", "b\nc")], b"a\r\nb\r\nc\r\n"),
        (b"a\r\nb\r\n", &[("\nb\n", "\n")], b"a\r\n"),
        (b"a\nb\n", &[("a\r\nb", "1\r\n2")], b"1\n2\n"),
        (b"a\nb\nc\r\nd\r\n", &[("a\nb", "1\n2"), ("c\nd", "3\n4")], b"1\n2\n3\r\n4\r\n"),
        (b"\xef\xbb\xbfa\r\nb", &[("a\n", "x\n")], b"\xef\xbb\xbfx\r\nb"),
        (b"\xef\xbb\xbfa", &[("a", "b")], b"\xef\xbb\xbfb"),
        // What is no text stays as it is.
        (b"\xb0\xa1 a\r \0", &[("a", "b")], b"\xb0\xa1 b\r \0"),
    ];
    for (before, edits, after) in table {
        let path = rig.file("글", before);
        let done = rig.edit("글", edits).await;
        done.ok();
        assert_eq!(fs::read(&path).unwrap().escape_ascii().to_string(), after.escape_ascii().to_string());
        assert_eq!(done.details["sha256_before"], sha256(before));
        assert_eq!(done.details["sha256_after"], sha256(after));
    }
    assert_eq!(names(&rig.cwd), ["글"]);
}

#[tokio::test]
async fn details_tell_what_was_changed() {
    let rig = Rig::new();
    let before: String = (1..=12).map(|n| format!("줄 {n}\n")).collect();
    let path = rig.file("f.txt", &before);
    let done = rig.edit("f.txt", &[("줄 11\n", ""), ("줄 2\n", "둘\n둘 반\n")]).await;
    assert_eq!(done.ok(), "f.txt: 2 edits, +2 −2 lines, at lines 2, 12");
    assert_eq!(done.details["path"], path.to_str().unwrap());
    assert_eq!(
        done.details["hunks"],
        json!([{"line": 2, "removed": 1, "added": 2}, {"line": 12, "removed": 1, "added": 0}])
    );
    assert_eq!(
        done.details["diff"],
        "--- a/f.txt\n+++ b/f.txt\n@@ -1,5 +1,6 @@\n 줄 1\n-줄 2\n+둘\n+둘 반\n 줄 3\n 줄 4\n 줄 5\n\
         @@ -8,5 +9,4 @@\n 줄 8\n 줄 9\n 줄 10\n-줄 11\n 줄 12\n"
    );
}

#[tokio::test]
async fn all_replaces_every_occurrence() {
    let rig = Rig::new();
    let path = rig.file("f", "가 나 가\n가가가\n");
    let input = json!({"path": "f", "edits": [{"old": "가", "new": "a", "all": true}, {"old": "나", "new": "b"}]});
    rig.call("edit", input).await.ok();
    assert_eq!(fs::read_to_string(path).unwrap(), "a b a\naaa\n");
    let path = rig.file("f", "aaaa");
    rig.call("edit", json!({"path": "f", "edits": [{"old": "aa", "new": "b", "all": true}]})).await.ok();
    assert_eq!(fs::read_to_string(path).unwrap(), "bb");
}

#[tokio::test]
async fn what_does_not_fit_is_told_and_nothing_changes() {
    let rig = Rig::new();
    let nfd: String = "한글".nfd().collect();
    #[rustfmt::skip]
    let table: &[Misfit<'_>] = &[
        ("x\ny\nx\n", &[("x", "z")], "edit 1: `old` occurs 2 times in f (lines 1, 3); give more of the lines around it, or \"all\": true"),
        ("aaa", &[("aa", "b")], "occurs 2 times in f (lines 1, 1)"),
        ("a\n", &[("a", "b"), ("없다", "c")], "nothing was changed:\nedit 2: `old` is not in f; read the file again"),
        ("a\n", &[("b", "c"), ("d", "e")], "edit 1: `old` is not in f; read the file again\nedit 2: `old` is not in f"),
        ("fn a() {\n\tx();\n}\n", &[("fn a() {\n    x();", "y")], "the white space differs: the file has\n     1\tfn a() {\n     2\t\tx();"),
        ("가\n나\n다\n", &[("나\n라\n", "x")], "its first line is there, the others differ: the file has\n     2\t나\n     3\t다"),
        ("let b = 2;\n", &[("let b = 1;", "let b = 2;")], "`new` stands already in line 1"),
        (&nfd, &[("한글", "x")], "line 1 has it in another Unicode normal form"),
        ("abc\n", &[("ab", "x"), ("bc", "y")], "edits 1 and 2 overlap in line 1 of f; make one edit of them"),
        ("가 나\n", &[("가 나", "x"), ("나", "y")], "edits 1 and 2 overlap"),
    ];
    for (before, edits, expected) in table {
        let path = rig.file("f", before);
        let done = rig.edit("f", edits).await;
        assert!(done.err().contains(expected), "{}", done.text);
        assert_eq!(done.details, json!({"error": "no_match"}));
        assert_eq!(fs::read_to_string(path).unwrap(), *before);
    }
    assert_eq!(names(&rig.cwd), ["f"]);
    assert_eq!(rig.edit("g", &[("a", "b")]).await.err(), "there is no g\nhint: did you mean f?");
    assert!(rig.edit(".", &[("a", "b")]).await.err().contains("is a folder"));
}

#[tokio::test]
async fn mode_and_link_stay() {
    let rig = Rig::new();
    let path = rig.file("f", "a");
    fs::set_permissions(&path, Permissions::from_mode(0o751)).unwrap();
    symlink("f", rig.cwd.join("링크")).unwrap();
    rig.edit("링크", &[("a", "b")]).await.ok();
    assert_eq!((mode(&path), fs::read_to_string(&path).unwrap()), (0o751, "b".into()));
    assert!(rig.cwd.join("링크").is_symlink());
}

#[tokio::test]
async fn a_file_that_changes_meanwhile_is_left_alone() {
    let mut rig = Rig::new();
    let path = rig.file("f", "a");
    let theirs = path.clone();
    rig.at_commit(move || fs::write(&theirs, "c").unwrap());
    let done = rig.edit("f", &[("a", "b")]).await;
    assert_eq!(done.err(), "nothing was done: f has changed meanwhile\nhint: read it again, then plan the edit anew");
    assert_eq!((fs::read_to_string(&path).unwrap(), names(&rig.cwd)), ("c".into(), vec!["f".to_string()]));
    let theirs = path.clone();
    rig.at_commit(move || fs::remove_file(&theirs).unwrap());
    assert!(rig.edit("f", &[("c", "b")]).await.err().contains("f has changed meanwhile"));
    assert!(names(&rig.cwd).is_empty());
}

#[tokio::test]
async fn without_a_good_permit_nothing_changes() {
    let rig = Rig::new();
    let path = rig.file("f", "a b");
    let plan =
        |old: &str, new: &str| rig.plan("edit", &json!({"path": "f", "edits": [{"old": old, "new": new}]})).unwrap();
    assert_eq!(plan("a", "x").sinks[0].level, Level::Restricted);
    assert_eq!(rig.run(plan("a", "x"), Permits::default()).await.details["error"], "no_permit");
    let done = rig.run(plan("a", "x"), rig.permits(&plan("b", "x"))).await;
    assert_eq!((done.is_error, &done.details["error"]), (true, &json!("stale_permit")));
    assert_eq!((fs::read_to_string(path).unwrap(), names(&rig.cwd)), ("a b".into(), vec!["f".to_string()]));
}

#[tokio::test]
async fn nobody_vouches_for_files_outside() {
    let rig = Rig::new();
    fs::write(rig.outside.join("밖"), "a").unwrap();
    let label = Label { trusted: false, ..Label::PUBLIC_TRUSTED };
    assert_eq!(rig.edit("../outside/밖", &[("없다", "b")]).await.label, label);
    assert_eq!(rig.edit("../outside/밖", &[("a", "b")]).await.label, label);
    // A link that moves between plan and run: what the failed edit tells of the file is labelled too.
    rig.file("안", "a");
    symlink("안", rig.cwd.join("moving")).unwrap();
    let call = rig.plan("edit", &json!({"path": "moving", "edits": [{"old": "없다", "new": "b"}]})).unwrap();
    assert!(call.sources[0].label.trusted);
    fs::remove_file(rig.cwd.join("moving")).unwrap();
    symlink(rig.outside.join("밖"), rig.cwd.join("moving")).unwrap();
    let permits = rig.permits(&call);
    let done = rig.run(call, permits).await;
    assert_eq!((done.is_error, done.label), (true, label));
}
