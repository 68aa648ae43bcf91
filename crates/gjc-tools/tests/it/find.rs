use crate::ls::pipe;
use crate::rig::Rig;
use gjc_entry::Label;
use serde_json::json;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use unicode_normalization::UnicodeNormalization;

/// A workspace that is a git repository with these files.
pub(crate) fn with(files: &[(&str, &str)]) -> Rig {
    let rig = Rig::new();
    fs::create_dir(rig.cwd.join(".git")).unwrap();
    for (name, content) in files {
        let path = rig.cwd.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    rig
}

#[tokio::test]
async fn names_come_in_the_order_of_paths_as_other_tools_take_them() {
    let rig = with(&[
        ("src/main.rs", ""),
        ("src.rs", ""),
        ("src/깊이/한글.rs", ""),
        ("src/a.txt", ""),
        (".hidden/x.rs", ""),
        (".git/y.rs", ""),
    ]);
    let find = async |input| rig.call("find", input).await.ok().to_string();
    assert_eq!(find(json!({"pattern": "*.rs"})).await, ".hidden/x.rs\nsrc/main.rs\nsrc/깊이/한글.rs\nsrc.rs\n");
    assert_eq!(find(json!({"pattern": "*.rs", "path": "./src/"})).await, "src/main.rs\nsrc/깊이/한글.rs\n");
    assert_eq!(find(json!({"pattern": "깊이/*", "path": "src"})).await, "src/깊이/한글.rs\n");
    assert_eq!(find(json!({"pattern": "s*"})).await, "src/\nsrc.rs\n");
    assert_eq!(find(json!({"pattern": "*/"})).await, ".hidden/\nsrc/\nsrc/깊이/\n");
    assert_eq!(find(json!({"pattern": "!*.rs"})).await, ".hidden/\nsrc/\nsrc/a.txt\nsrc/깊이/\n");
    assert_eq!(find(json!({"pattern": "*", "path": ".git"})).await, ".git/y.rs\n", "asked for by name");
    let absolute = rig.cwd.join("src");
    let found = find(json!({"pattern": "main.rs", "path": absolute})).await;
    assert_eq!(found, format!("{}/main.rs\n", absolute.display()));
    let done = rig.call("find", json!({"pattern": "*.rs"})).await;
    assert_eq!(done.details, json!({"path": rig.cwd.to_str().unwrap(), "found": 4, "shown": 4, "unread": 0}));
    assert_eq!(done.label, Label::PUBLIC_TRUSTED);
    let done = rig.call("find", json!({"pattern": "없다"})).await;
    assert!(done.ok().starts_with("[nothing is found; what ignore files name is left out"), "{}", done.text);
}

#[tokio::test]
async fn what_ignore_files_name_is_left_out() {
    let rig = with(&[
        (".gitignore", "target/\n*.log\n!keep.log\n"),
        ("target/a", ""),
        ("x.log", ""),
        ("keep.log", ""),
        (".ignore", "비밀/\n"),
        ("비밀/a", ""),
        (".git/info/exclude", "local\n"),
        ("local", ""),
        ("sub/.gitignore", "/only-here\n"),
        ("sub/only-here", ""),
        ("sub/deep/only-here", ""),
    ]);
    let done = rig.call("find", json!({"pattern": "**"})).await;
    let expected = ".gitignore\n.ignore\nkeep.log\nsub/\nsub/.gitignore\nsub/deep/\nsub/deep/only-here\n";
    assert_eq!(done.ok(), expected);
    let done = rig.call("find", json!({"pattern": "*", "path": "sub"})).await;
    assert_eq!(done.ok(), "sub/.gitignore\nsub/deep/\nsub/deep/only-here\n", "the rules of the folders above count");
    fs::remove_dir_all(rig.cwd.join(".git")).unwrap();
    let done = rig.call("find", json!({"pattern": "*.log"})).await;
    assert_eq!(done.ok(), "keep.log\nx.log\n", "without a repository there is no .gitignore");
}

#[tokio::test]
async fn either_form_of_a_glob_finds_either_form_of_a_name() {
    let rig = Rig::new();
    let (nfc, nfd) = ("보고서.md", "보고서.md".nfd().collect::<String>());
    fs::create_dir(rig.cwd.join("composed")).unwrap();
    fs::create_dir(rig.cwd.join("decomposed")).unwrap();
    rig.file(&format!("composed/{nfc}"), "");
    rig.file(&format!("decomposed/{nfd}"), "");
    for pattern in [nfc.to_string(), nfd.clone(), "보??.md".into(), "[가-힣]*.md".into(), "**/보고서.*".nfd().collect()]
    {
        let done = rig.call("find", json!({"pattern": pattern})).await;
        assert_eq!(done.ok(), format!("composed/{nfc}\ndecomposed/{nfd}\n"), "{pattern}");
    }
}

#[tokio::test]
async fn what_does_not_fit_is_counted_and_the_first_are_shown_each_time() {
    let rig = Rig::new();
    for folder in 0..30 {
        fs::create_dir(rig.cwd.join(format!("폴더{folder:02}"))).unwrap();
        (0..50).for_each(|n| drop(rig.file(&format!("폴더{folder:02}/{n:02}.txt"), "")));
    }
    let first = rig.call("find", json!({"pattern": "*.txt", "limit": 60})).await;
    let expected: String = (0..60).map(|n| format!("폴더{:02}/{:02}.txt\n", n / 50, n % 50)).collect();
    let note = "[60 of 1500 names shown, 1440 more; narrow pattern or path, or raise limit]\n";
    assert_eq!(first.ok(), format!("{expected}{note}"));
    for _ in 0..20 {
        assert_eq!(rig.call("find", json!({"pattern": "*.txt", "limit": 60})).await.text, first.text);
    }
    let done = rig.call("find", json!({"pattern": "*.txt"})).await;
    assert!(done.ok().contains("[1000 of 1500 names shown, 500 more;"), "{}", done.text);
}

#[tokio::test]
async fn links_are_found_and_not_followed() {
    let rig = with(&[("src/a.rs", "")]);
    fs::write(rig.outside.join("b.rs"), "").unwrap();
    symlink(&rig.outside, rig.cwd.join("out")).unwrap();
    symlink("..", rig.cwd.join("src/up")).unwrap();
    symlink("a.rs", rig.cwd.join("src/link.rs")).unwrap();
    let done = rig.call("find", json!({"pattern": "**"})).await;
    assert_eq!(done.ok(), "out\nsrc/\nsrc/a.rs\nsrc/link.rs\nsrc/up\n");
    let done = rig.call("find", json!({"pattern": "*", "path": "src/up/src"})).await;
    assert_eq!(done.ok(), "src/up/src/a.rs\nsrc/up/src/link.rs\nsrc/up/src/up\n", "a link that is named is followed");
}

#[tokio::test]
async fn hostile_trees_are_walked_to_the_end() {
    let rig = with(&[("ok/a.rs", ""), ("pipes/b.rs", ""), ("zero/c.rs", ""), ("huge/d.rs", ""), ("worktree/e.rs", "")]);
    pipe(&rig.cwd.join("pipes/.gitignore"));
    symlink("/dev/zero", rig.cwd.join("zero/.ignore")).unwrap();
    fs::File::create(rig.cwd.join("huge/.gitignore")).unwrap().set_len(1 << 40).unwrap();
    pipe(&rig.outside.join("commondir"));
    rig.file("worktree/.git", format!("gitdir: {}\n", rig.outside.display()));
    pipe(&rig.cwd.join("pipe.rs"));
    fs::write(rig.cwd.join(OsStr::from_bytes(b"\xb0\xa1.rs")), "").unwrap();
    rig.file("a\nb.rs", "");
    let done = rig.call("find", json!({"pattern": "*.rs"})).await;
    let expected = "a\\nb.rs\nok/a.rs\npipe.rs\n\u{fffd}\u{fffd}.rs\n\
        [not all could be read: huge: huge/.gitignore is no regular file, or too large for an ignore file; \
        pipes: pipes/.gitignore is no regular file, or too large for an ignore file; ";
    assert!(done.ok().starts_with(expected) && done.text.contains("; and 1 more]\n"), "{}", done.text);
    assert_eq!(done.details["unread"], 4);

    // The same above the folder: nothing waits for a pipe there either.
    let done = rig.call("find", json!({"pattern": "*.rs", "path": "pipes"})).await;
    assert!(done.ok().starts_with("pipes/b.rs\n[no ignore files were heeded: "), "{}", done.text);
}

#[tokio::test]
async fn deep_trees_and_broken_ignore_files_are_told_and_not_fatal() {
    let rig = with(&[("a.rs", ""), ("src/.gitignore", "[z-a]\n*.log\n"), ("src/b.log", ""), ("src/c.rs", "")]);
    // Deeper than any path may be long, made step by step.
    let name = "깊이".repeat(30);
    let mut at = rustix::fs::open(&rig.cwd, rustix::fs::OFlags::DIRECTORY, rustix::fs::Mode::empty()).unwrap();
    for _ in 0..40 {
        rustix::fs::mkdirat(&at, &*name, 0o755.into()).unwrap();
        at = rustix::fs::openat(&at, &*name, rustix::fs::OFlags::DIRECTORY, rustix::fs::Mode::empty()).unwrap();
    }
    let done = rig.call("find", json!({"pattern": "*.{rs,log}"})).await;
    assert!(done.ok().starts_with("a.rs\nsrc/c.rs\n[not all could be read: "), "{}", done.text);
    assert!(done.text.contains("File name too long") && done.text.contains("src/.gitignore: line 1"), "{}", done.text);
    assert!(done.text.len() < 2_000, "{}", done.text.len());
    assert_eq!(done.details["unread"], 2);
}

#[test]
fn what_may_not_be_read_is_told_and_not_fatal() {
    let rig = with(&[("a.rs", "찾\n"), ("closed/b.rs", "찾\n"), ("src/c.rs", "찾\n"), ("src/닫힘.rs", "찾\n")]);
    let mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    mode(rig.cwd.parent().unwrap(), 0o755);
    mode(&rig.cwd.join("closed"), 0);
    mode(&rig.cwd.join("src/닫힘.rs"), 0);
    // Root may read everything; nobody may not. Threads that this one starts are nobody too.
    // SAFETY: a system call without pointers that changes this thread alone.
    let be = |user: u32| unsafe { libc::setfsuid(user) };
    if rustix::process::geteuid().is_root() {
        be(65_534);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let call = |tool, input| runtime.block_on(rig.call(tool, input));
    let found = call("find", json!({"pattern": "*.rs"}));
    let said = call("grep", json!({"pattern": "찾"}));
    let listed = call("ls", json!({"path": "closed"}));
    drop(runtime);
    be(rustix::process::geteuid().as_raw());
    mode(&rig.cwd.join("closed"), 0o755);
    let denied = "Permission denied (os error 13)";
    assert_eq!(found.ok(), format!("a.rs\nsrc/c.rs\nsrc/닫힘.rs\n[not all could be read: closed: {denied}]\n"));
    let both = format!("[not all could be read: closed: {denied}; src/닫힘.rs: {denied}]\n");
    assert_eq!(said.ok(), format!("a.rs:1: 찾\nsrc/c.rs:1: 찾\n{both}"));
    assert_eq!(said.details["unread"], 2);
    assert!(listed.err().starts_with("closed could not be listed: permission denied\nhint: "), "{}", listed.text);
}

#[tokio::test]
async fn a_search_ends_when_it_is_cancelled() {
    let rig = Rig::new();
    for folder in 0..100 {
        fs::create_dir(rig.cwd.join(folder.to_string())).unwrap();
        (0..30).for_each(|n| drop(rig.file(&format!("{folder}/{n}"), "")));
    }
    let call = rig.plan("find", &json!({"pattern": "*"})).unwrap();
    let permits = rig.permits(&call);
    let (done, ()) = tokio::join!(rig.run(call.clone(), permits), async { rig.cancel.cancel() });
    assert_eq!(done.details["error"], "cancelled");
    let permits = rig.permits(&call);
    assert_eq!(rig.run(call, permits).await.details["error"], "cancelled", "before it begins");
}

#[tokio::test]
async fn what_is_no_folder_is_told_with_a_way_out() {
    let rig = Rig::new();
    rig.file("보고서.md", "");
    for (path, expected) in [
        ("보고서.md", "보고서.md is no folder\nhint: "),
        ("/dev/null", "/dev/null is no folder\nhint: "),
        ("보고사.md", "there is no 보고사.md\nhint: did you mean 보고서.md?"),
    ] {
        let done = rig.call("find", json!({"pattern": "*", "path": path})).await;
        assert!(done.err().starts_with(expected), "{}", done.text);
    }
}

#[tokio::test]
async fn nobody_vouches_for_names_outside() {
    let rig = Rig::new();
    fs::write(rig.outside.join("밖"), "").unwrap();
    symlink(&rig.outside, rig.cwd.join("out")).unwrap();
    for (path, trusted) in [(".", true), ("../ws", true), ("..", false), ("out", false), ("../outside", false)] {
        let done = rig.call("find", json!({"pattern": "*", "path": path})).await;
        assert_eq!(done.label, Label { trusted, ..Label::PUBLIC_TRUSTED }, "{path}");
        let call = rig.plan("find", &json!({"pattern": "*", "path": path})).unwrap();
        assert_eq!((call.sources[0].label, call.sinks.len()), (done.label, 0));
    }
    // A link that moves between plan and run.
    symlink(".", rig.cwd.join("moving")).unwrap();
    let call = rig.plan("find", &json!({"pattern": "*", "path": "moving"})).unwrap();
    assert!(call.sources[0].label.trusted);
    fs::remove_file(rig.cwd.join("moving")).unwrap();
    symlink(&rig.outside, rig.cwd.join("moving")).unwrap();
    let permits = rig.permits(&call);
    let done = rig.run(call, permits).await;
    assert!(!done.label.trusted && done.ok() == "moving/밖\n", "{}", done.text);
}
