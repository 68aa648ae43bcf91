use crate::rig::{Rig, mode, names, sha256};
use gjc_entry::{Label, Level};
use gjc_flow::{Permits, digest};
use serde_json::json;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use unicode_normalization::UnicodeNormalization;

#[tokio::test]
async fn a_file_is_created_then_replaced() {
    let rig = Rig::new();
    let done = rig.write("새/폴더/글.txt", "가\n나").await;
    assert_eq!(done.ok(), "created 새/폴더/글.txt: 2 lines, 7 bytes");
    let path = rig.cwd.join("새/폴더/글.txt");
    assert_eq!(done.details, json!({"path": path, "bytes": 7, "sha256": sha256("가\n나".as_bytes()), "created": true}));
    let done = rig.write("새/폴더/글.txt", "").await;
    assert_eq!(done.ok(), "replaced 새/폴더/글.txt: 0 lines, 0 bytes");
    assert_eq!(done.details["created"], false);
    assert_eq!((fs::read(&path).unwrap(), names(path.parent().unwrap())), (vec![], vec!["글.txt".to_string()]));
}

#[tokio::test]
async fn modes_follow_the_file_or_the_umask() {
    let rig = Rig::new();
    File::create(rig.cwd.join("usual")).unwrap();
    rig.write("new", "").await.ok();
    assert_eq!(mode(&rig.cwd.join("new")), mode(&rig.cwd.join("usual")));
    for bits in [0o755, 0o600, 0o640, 0o4755] {
        let path = rig.file("f", "old");
        fs::set_permissions(&path, Permissions::from_mode(bits)).unwrap();
        rig.write("f", "new").await.ok();
        assert_eq!((mode(&path), fs::read_to_string(&path).unwrap()), (bits, "new".into()));
    }
}

#[tokio::test]
async fn the_target_of_a_link_is_written() {
    let rig = Rig::new();
    fs::write(rig.outside.join("글"), "old").unwrap();
    symlink("../outside/글", rig.cwd.join("a")).unwrap();
    symlink("a", rig.cwd.join("b")).unwrap();
    rig.write("b", "new").await.ok();
    assert_eq!(fs::read_to_string(rig.outside.join("글")).unwrap(), "new");
    assert!(rig.cwd.join("a").is_symlink() && rig.cwd.join("b").is_symlink());
    symlink("../outside/아직", rig.cwd.join("dangling")).unwrap();
    assert_eq!(rig.write("dangling", "x").await.details["created"], true);
    assert_eq!(fs::read_to_string(rig.outside.join("아직")).unwrap(), "x");
}

#[tokio::test]
async fn a_name_in_the_other_normal_form_gets_no_twin() {
    let rig = Rig::new();
    let nfd: String = "한글.txt".nfd().collect();
    rig.file(&nfd, "old");
    rig.write("한글.txt", "new").await.ok();
    assert_eq!(names(&rig.cwd), [nfd]);
}

#[tokio::test]
async fn what_cannot_be_written_has_a_way_out() {
    let rig = Rig::new();
    let protected = rig.file("보호", "old");
    fs::set_permissions(&protected, Permissions::from_mode(0o444)).unwrap();
    rig.file("file", "");
    fs::create_dir(rig.cwd.join("dir")).unwrap();
    symlink("loop", rig.cwd.join("loop")).unwrap();
    let long = "가".repeat(86);
    #[rustfmt::skip]
    let table = [
        ("보호", "보호 is write-protected"), ("dir", "dir is a folder"), ("/dev/null", "/dev/null is a device"),
        ("file/x", "file/x could not be written: a part of the path is a file"), ("loop", "loop could not be written: too many links"),
        (&long, &long), ("/proc/없음", "/proc/없음 could not be written"),
    ];
    for (path, expected) in table {
        let done = rig.write(path, "new").await;
        assert!(done.err().starts_with(expected) || done.text.contains(expected), "{}", done.text);
        assert!(done.text.contains("\nhint: "), "{}", done.text);
    }
    assert_eq!(fs::read_to_string(protected).unwrap(), "old");
    assert_eq!(names(&rig.cwd), ["dir", "file", "loop", "보호"], "no temporary file is left");
    rig.write(&"가".repeat(85), "the longest name that exists").await.ok();
}

#[tokio::test]
async fn without_a_good_permit_nothing_changes() {
    let mut rig = Rig::new();
    let path = rig.file("f", "old");
    let before = fs::metadata(&path).unwrap();
    let input = json!({"path": "f", "content": "new"});
    let call = rig.plan("write", &input).unwrap();
    let both = [path.canonicalize().unwrap().as_os_str().as_encoded_bytes(), b"\0new"].concat();
    assert_eq!((call.sinks[0].level, call.sinks[0].digest), (Level::Restricted, digest(&both)));

    let done = rig.run(call.clone(), Permits::default()).await;
    assert_eq!((done.is_error, &done.details["error"]), (true, &json!("no_permit")));

    // Judged for other bytes than it would write.
    let other = rig.plan("write", &json!({"path": "f", "content": "harmless"})).unwrap();
    let done = rig.run(call, rig.permits(&other)).await;
    assert_eq!((done.is_error, &done.details["error"]), (true, &json!("stale_permit")));
    assert!(done.text.contains("is not what was permitted"), "{}", done.text);

    // The session has learnt more than the sink may get.
    let mut call = rig.plan("write", &json!({"path": "새/f", "content": "new"})).unwrap();
    call.sinks[0].level = Level::Internal;
    let permits = rig.permits(&call);
    rig.state.join(Label { level: Level::Confidential, trusted: true }).unwrap();
    let done = rig.run(call, permits).await;
    assert!(done.err().starts_with("nothing was done: write-down"), "{}", done.text);

    let after = fs::metadata(&path).unwrap();
    assert_eq!((before.ino(), before.mtime_nsec()), (after.ino(), after.mtime_nsec()));
    assert_eq!(names(&rig.cwd), ["f"], "no folder, no temporary file");
}

#[tokio::test]
async fn a_cancelled_call_writes_nothing() {
    let rig = Rig::new();
    rig.cancel.cancel();
    assert_eq!(rig.write("f", "x").await.details["error"], "cancelled");
    assert!(names(&rig.cwd).is_empty());
}

#[tokio::test]
async fn a_link_that_leads_elsewhere_by_then_is_not_written_through() {
    let rig = Rig::new();
    let (judged, other) = (rig.file("judged", "a"), rig.file("other", "b"));
    let link = rig.cwd.join("링크");
    std::os::unix::fs::symlink(&judged, &link).unwrap();
    let call = rig.plan("write", &json!({"path": "링크", "content": "new"})).unwrap();
    let permits = rig.permits(&call);
    fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink(&other, &link).unwrap();
    let done = rig.run(call, permits).await;
    assert_eq!((done.is_error, &done.details["error"]), (true, &json!("stale_permit")));
    assert_eq!((fs::read_to_string(judged).unwrap().as_str(), fs::read_to_string(other).unwrap().as_str()), ("a", "b"));
}

#[tokio::test]
async fn what_gjc_keeps_for_itself_is_not_written_by_any_way() {
    let rig = Rig::new();
    let own = rig.outside.join("own");
    let config = own.join("config.yml");
    std::os::unix::fs::symlink(&own, rig.cwd.join("링크")).unwrap();
    std::os::unix::fs::symlink(&config, rig.cwd.join("설정.yml")).unwrap();
    let name = rig.outside.file_name().unwrap().to_str().unwrap().to_owned();
    let ways = [
        config.display().to_string(),
        "링크/config.yml".into(),
        "링크/trust/새/x".into(),
        "설정.yml".into(),
        format!("../{name}/own/config.yml"),
        format!("없음/../../{name}/own/config.yml"),
    ];
    // Before the folder is there, and when it is.
    for there in [false, true] {
        if there {
            fs::create_dir(&own).unwrap();
            fs::write(&config, "tools: [read]\n").unwrap();
        }
        for way in &ways {
            let wrote = rig.write(way, "tools: [bash]\n").await;
            assert!(wrote.is_error, "{way}: {}", wrote.text);
            let edited = rig.call("edit", json!({"path": way, "edits": [{"old": "read", "new": "bash"}]})).await;
            assert!(edited.is_error, "{way}: {}", edited.text);
        }
    }
    assert_eq!(fs::read_to_string(&config).unwrap(), "tools: [read]\n");
    assert_eq!(names(&own), ["config.yml"]);
    assert_eq!(names(&rig.cwd), ["링크", "설정.yml"]);
    assert_eq!(rig.write(&config.display().to_string(), "x").await.details["error"], "own_folder");
}

/// What a folder is when it changes between check and effect: a link into gjc's own folder.
#[tokio::test]
async fn a_folder_that_becomes_a_link_into_the_own_folder_gets_nothing_in_there() {
    for path in ["문/config.yml", "문/새/폴더/config.yml"] {
        let mut rig = Rig::new();
        let own = rig.outside.join("own");
        fs::create_dir(&own).unwrap();
        fs::write(own.join("config.yml"), "그대로").unwrap();
        let door = rig.cwd.join("문");
        fs::create_dir(&door).unwrap();
        let (from, to, target) = (door.clone(), rig.cwd.join("옛 문"), own.clone());
        rig.at_commit(move || {
            fs::rename(&from, &to).unwrap();
            symlink(&target, &from).unwrap();
        });
        let done = rig.write(path, "x").await;
        assert_eq!(
            (names(&own), fs::read_to_string(own.join("config.yml")).unwrap()),
            (vec!["config.yml".into()], "그대로".into())
        );
        // What was checked is what was written, under the name that it has by now.
        assert!(!done.is_error && rig.cwd.join(path.replacen('문', "옛 문", 1)).is_file(), "{}", done.text);
    }
}

#[tokio::test]
async fn an_edit_reads_and_writes_the_folder_that_was_checked() {
    let mut rig = Rig::new();
    let (own, door) = (rig.outside.join("own"), rig.cwd.join("문"));
    for folder in [&own, &door] {
        fs::create_dir(folder).unwrap();
        fs::write(folder.join("config.yml"), "tools: [read]\n").unwrap();
    }
    let (from, to, target) = (door.clone(), rig.cwd.join("옛 문"), own.clone());
    rig.at_commit(move || {
        fs::rename(&from, &to).unwrap();
        symlink(&target, &from).unwrap();
    });
    rig.edit("문/config.yml", &[("read", "bash")]).await;
    assert_eq!(fs::read_to_string(own.join("config.yml")).unwrap(), "tools: [read]\n");
    assert_eq!(fs::read_to_string(rig.cwd.join("옛 문/config.yml")).unwrap(), "tools: [bash]\n");
}

/// The same without knowing the moment: a thread that swaps a folder and a link into the own folder all the time.
#[tokio::test]
async fn a_thread_that_swaps_folder_and_link_gets_nothing_into_the_own_folder() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    let rig = Rig::new();
    let (own, door, link) = (rig.outside.join("own"), rig.cwd.join("door"), rig.cwd.join("link"));
    fs::create_dir(&own).unwrap();
    fs::create_dir(&door).unwrap();
    symlink(&own, &link).unwrap();
    let done = Arc::new(AtomicBool::new(false));
    let swapping = std::thread::spawn({
        let done = Arc::clone(&done);
        move || {
            use rustix::fs::{CWD, RenameFlags, renameat_with};
            let mut swaps = 0u64;
            while !done.load(Ordering::Relaxed) {
                renameat_with(CWD, &door, CWD, &link, RenameFlags::EXCHANGE).unwrap();
                swaps += 1;
            }
            swaps
        }
    });
    let (mut written, mut refused) = (0, 0);
    for turn in 0..400 {
        let done = rig.write(&format!("door/{turn}/설정.yml"), "x").await;
        if done.is_error { refused += 1 } else { written += 1 }
    }
    done.store(true, Ordering::Relaxed);
    assert!(swapping.join().unwrap() > 0);
    assert!(written + refused == 400 && written > 0, "{written} {refused}");
    assert!(names(&own).is_empty(), "{:?}", names(&own));
}

/// Runs a test of this binary in a namespace where it may mount; `false`, and a word, where there is none.
pub(crate) fn passes_in_a_namespace(test: &str) -> bool {
    let ran = std::process::Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env("GJC_MAY_MOUNT", "1")
        .output();
    let Ok(ran) = ran else {
        println!("left out: there is no unshare");
        return false;
    };
    let said = String::from_utf8_lossy(&ran.stdout) + String::from_utf8_lossy(&ran.stderr);
    if !said.contains("running 1 test") {
        println!("left out: no namespace can be made here: {said}");
        return false;
    }
    assert!(ran.status.success() && said.contains("MOUNTED"), "{said}");
    true
}

/// Shows `from` at `to` too, if this test runs where it may; `false` if not.
pub(crate) fn mounted(from: &std::path::Path, to: &std::path::Path) -> bool {
    if std::env::var_os("GJC_MAY_MOUNT").is_none() {
        return false;
    }
    fs::create_dir_all(to).unwrap();
    let mounted = std::process::Command::new("mount").arg("--bind").args([from, to]).status().unwrap();
    assert!(mounted.success());
    println!("MOUNTED");
    true
}

#[tokio::test]
async fn the_own_folder_is_itself_under_another_name() {
    let rig = Rig::new();
    let own = rig.outside.join("own");
    fs::create_dir_all(own.join("skills/글")).unwrap();
    if !mounted(&own, &rig.cwd.join("다른 이름")) {
        passes_in_a_namespace("write::the_own_folder_is_itself_under_another_name");
        return;
    }
    mounted(&own.join("skills"), &rig.cwd.join("part"));
    for path in
        ["다른 이름/config.yml", "다른 이름/skills/글/x", "다른 이름/새/x", "part/x", "part/글/x", "part/새/것/x"]
    {
        assert_eq!(rig.write(path, "x").await.details["error"], "own_folder", "{path}");
    }
    assert_eq!((names(&own), names(&own.join("skills"))), (vec!["skills".to_string()], vec!["글".to_string()]));
    assert!(names(&own.join("skills/글")).is_empty());
    rig.write("옆/x", "x").await.ok();
}
