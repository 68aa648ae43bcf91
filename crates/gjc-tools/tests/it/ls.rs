use crate::rig::Rig;
use gjc_entry::Label;
use serde_json::json;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use unicode_normalization::UnicodeNormalization;

#[tokio::test]
async fn names_are_sorted_and_marked() {
    let rig = Rig::new();
    for folder in ["src", ".git", "문서"] {
        fs::create_dir(rig.cwd.join(folder)).unwrap();
    }
    for file in [".gitignore", ".env", "b", "B", "a.rs", "보고서.md"] {
        rig.file(file, "*");
    }
    symlink("b", rig.cwd.join("link")).unwrap();
    symlink("../ws/src", rig.cwd.join("link2")).unwrap();
    symlink("loop", rig.cwd.join("loop")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(rig.cwd.join("socket")).unwrap();
    pipe(&rig.cwd.join("pipe"));
    let done = rig.call("ls", json!({})).await;
    let expected = ".env\n.git/\n.gitignore\nB\na.rs\nb\nlink -> b\nlink2 -> ../ws/src/\nloop -> loop\npipe|\nsocket=\nsrc/\n문서/\n보고서.md\n";
    assert_eq!(done.ok(), expected, "ignored and hidden ones too");
    assert_eq!(done.details, json!({"path": rig.cwd.to_str().unwrap(), "entries": 14, "shown": 14}));
    assert_eq!(done.label, Label::PUBLIC_TRUSTED);
    assert_eq!(rig.call("ls", json!({"path": "문서/"})).await.ok(), "[the folder is empty]\n");
    assert_eq!(rig.call("ls", json!({"path": "link2"})).await.ok(), "[the folder is empty]\n");
}

#[tokio::test]
async fn what_does_not_fit_is_counted() {
    let rig = Rig::new();
    (0..600).for_each(|n| drop(rig.file(&format!("{n:03}"), "")));
    let done = rig.call("ls", json!({})).await;
    let note = "[500 of 600 names shown, 100 more; raise limit, or look for a name with find]\n";
    assert!(done.ok().starts_with("000\n001\n") && done.text.ends_with(&format!("499\n{note}")), "{}", done.text);
    assert_eq!((&done.details["entries"], &done.details["shown"]), (&json!(600), &json!(500)));
    let done = rig.call("ls", json!({"limit": 2})).await;
    assert!(done.ok().starts_with("000\n001\n[2 of 600 names shown, 598 more;"), "{}", done.text);
    (0..600).for_each(|n| drop(rig.file(&format!("{n:03}{}", "긴".repeat(80)), "")));
    let done = rig.call("ls", json!({"limit": u64::MAX})).await;
    assert!(done.ok().len() < 51_500 && done.text.contains(" of 1200 names shown, "), "{}", done.text.len());
}

#[tokio::test]
async fn either_form_of_a_folder_s_name_lists_it() {
    let rig = Rig::new();
    for (disk, asked) in
        [("한글", "한글".nfd().collect::<String>()), (&*"문서".nfd().collect::<String>(), "문서".into())]
    {
        fs::create_dir(rig.cwd.join(disk)).unwrap();
        rig.file(&format!("{disk}/안"), "");
        assert_eq!(rig.call("ls", json!({"path": asked})).await.ok(), "안\n");
    }
}

#[tokio::test]
async fn a_name_is_one_line_whatever_it_holds() {
    let rig = Rig::new();
    fs::write(rig.cwd.join(OsStr::from_bytes(b"\xb0\xa1.txt")), "").unwrap();
    rig.file("a\n[the folder is empty]", "");
    let done = rig.call("ls", json!({})).await;
    let note =
        "[bytes of names that are not UTF-8 are shown as \u{fffd}; reach such a file with bash and a wildcard]\n";
    assert_eq!(done.ok(), format!("a\\n[the folder is empty]\n\u{fffd}\u{fffd}.txt\n{note}"));
}

#[tokio::test]
async fn what_is_no_folder_is_told_with_a_way_out() {
    let rig = Rig::new();
    rig.file("보고서.md", "");
    symlink("loop", rig.cwd.join("loop")).unwrap();
    for (path, expected) in [
        ("보고서.md", "보고서.md is no folder\nhint: "),
        ("보고사.md", "there is no 보고사.md\nhint: did you mean 보고서.md?"),
        ("/dev/null", "/dev/null is no folder"),
        ("loop", "loop could not be listed: "),
    ] {
        let done = rig.call("ls", json!({"path": path})).await;
        assert!(done.err().starts_with(expected) && done.text.contains("\nhint: "), "{}", done.text);
    }
    rig.cancel.cancel();
    assert_eq!(rig.call("ls", json!({})).await.details["error"], "cancelled");
}

#[tokio::test]
async fn nobody_vouches_for_folders_outside() {
    let rig = Rig::new();
    symlink(&rig.outside, rig.cwd.join("out")).unwrap();
    for (path, trusted) in [(".", true), ("../ws", true), ("..", false), ("out", false), ("../outside", false)] {
        let done = rig.call("ls", json!({"path": path})).await;
        assert_eq!(done.label, Label { trusted, ..Label::PUBLIC_TRUSTED }, "{path}");
        let call = rig.plan("ls", &json!({"path": path})).unwrap();
        assert_eq!((call.sources[0].label, call.sinks.len()), (done.label, 0));
    }
}

/// A named pipe.
pub(crate) fn pipe(path: &std::path::Path) {
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, 0o644.into(), 0).unwrap();
}
