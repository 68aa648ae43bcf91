//! Disks that are full, and places where nothing can be written (K07, K08).

use crate::kit::*;
use serde_json::json;
use std::path::{Path, PathBuf};
use testkit::anthropic::Turn;
use testkit::harness::Home;

/// A small file system of its own, for as long as it lives. Only root may mount one.
pub(crate) struct Small(pub(crate) PathBuf);

impl Small {
    pub(crate) fn mount(at: PathBuf, size: &str) -> Option<Self> {
        std::fs::create_dir_all(&at).unwrap();
        let path = at.to_str().unwrap();
        let mounted = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size},mode=700"), "tmpfs", path])
            .output();
        match mounted {
            Ok(out) if out.status.success() => return Some(Self(at)),
            Ok(out) => {
                eprintln!("left out: no file system can be mounted ({})", String::from_utf8_lossy(&out.stderr).trim())
            }
            Err(error) => eprintln!("left out: no file system can be mounted ({error})"),
        }
        let ci = std::env::var("GJC_CI").is_ok_and(|value| value == "1");
        assert!(!ci, "GJC_CI=1, but no file system can be mounted: the full disk may not be left out here");
        None
    }

    pub(crate) fn fill(&self) -> PathBuf {
        let filler = self.0.join("filler");
        let mut size = 1 << 20;
        use std::io::Write;
        let mut file = std::fs::File::create(&filler).unwrap();
        // Down to the last byte.
        while size > 0 {
            if file.write_all(&vec![b'x'; size]).is_err() {
                size /= 2;
            }
        }
        filler
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_is_told_and_the_answer_is_printed_all_the_same() {
    let home = Home::new();
    let Some(small) = Small::mount(home.path().join("small"), "1m") else { return };
    let filler = small.fill();
    let stub = stub([text("길게 생각한 답입니다")]);
    let out = ask(&home, &stub, "x").env("GJC_CODING_AGENT_DIR", &small.0).output();
    assert_eq!((out.code(), out.out().as_str()), (Some(1), "길게 생각한 답입니다\n"), "{out}");
    steady(&home, || insta::assert_snapshot!(out.err()));
    std::fs::remove_file(filler).unwrap();
}

#[test]
fn a_disk_that_fills_up_in_the_middle_keeps_what_was_stored_and_goes_on_later() {
    let home = Home::new();
    let Some(small) = Small::mount(home.path().join("small"), "1m") else { return };
    let stub = replies([text("하나").reply(), long(&"긴 답 ".repeat(1000)), text("셋").reply()]);
    let run = |prompt: &str| ask(&home, &stub, prompt).env("GJC_CODING_AGENT_DIR", &small.0);
    run("x").output().ok();
    let file = walk(&small.0).into_iter().find(|path| path.extension().is_some_and(|e| e == "jsonl")).unwrap();
    let id = id_of(&file);
    let before = std::fs::read(&file).unwrap();
    let filler = small.fill();
    let out = run("y").args(["--resume", &id]).output();
    assert_eq!(out.code(), Some(1), "{out}");
    assert!(out.out().starts_with("긴 답 ") && out.err().contains("No space left"), "{out}");
    let after = std::fs::read(&file).unwrap();
    assert!(after.starts_with(&before) && after.ends_with(b"\n"), "whole lines only");
    std::fs::remove_file(filler).unwrap();
    look(&home, &["sessions", "verify", file.to_str().unwrap()]).output().ok();
    assert_eq!(run("z").args(["--resume", &id]).output().ok().out(), "셋\n");
    look(&home, &["sessions", "verify", file.to_str().unwrap()]).output().ok();
    // It goes with its file system.
    home.forget(&file);
}

#[test]
fn no_tool_acts_outside_while_the_session_cannot_be_stored() {
    let home = Home::new();
    let Some(small) = Small::mount(home.path().join("small"), "1m") else { return };
    let filler = small.fill();
    let stub = stub([Turn::new("m").tool_call("c", "bash", &json!({"command": "touch 했다"})), text("못 했습니다")]);
    let out = ask(&home, &stub, "x").env("GJC_CODING_AGENT_DIR", &small.0).output();
    assert_eq!((out.code(), out.out().as_str()), (Some(1), "못 했습니다\n"), "{out}");
    assert!(!home.work().join("했다").exists());
    let result = stub.requests()[1].json()["messages"].as_array().unwrap().last().unwrap()["content"].to_string();
    assert!(result.contains("not run"), "{result}");
    std::fs::remove_file(filler).unwrap();
}

/// Root ignores modes, so something else stands in the way: a file where a folder has to be.
#[test]
fn a_place_where_nothing_can_be_written_is_told() {
    let home = Home::new();
    let bucket = format!("--{}--", home.work().display().to_string().trim_start_matches('/').replace('/', "-"));
    for (n, in_the_way) in ["home/.gjc", "home/.gjc/agent", "home/.gjc/agent/sessions", "home/.gjc/agent/blobs"]
        .into_iter()
        .map(Into::into)
        .chain([format!("home/.gjc/agent/sessions/{bucket}")])
        .enumerate()
    {
        let _ = std::fs::remove_dir_all(home.path().join(".gjc"));
        let _ = std::fs::remove_file(home.path().join(".gjc"));
        let file = home.write(Path::new(&in_the_way), "in the way");
        let stub = stub([text("답은 있습니다")]);
        let out = ask(&home, &stub, "x").output();
        assert_eq!((out.code(), out.out().as_str()), (Some(1), "답은 있습니다\n"), "{in_the_way}: {out}");
        assert!(out.err().contains("could not be stored"), "{in_the_way}: {out}");
        if n == 4 {
            steady(&home, || insta::assert_snapshot!(out.err()));
        }
        assert_eq!(std::fs::read_to_string(file).unwrap(), "in the way");
    }
}

#[test]
fn a_read_only_file_system_is_told() {
    let home = Home::new();
    let Some(small) = Small::mount(home.path().join("small"), "1m") else { return };
    let remounted = std::process::Command::new("mount").args(["-o", "remount,ro"]).arg(&small.0).status().unwrap();
    assert!(remounted.success());
    let stub = stub([text("답은 있습니다")]);
    let out = ask(&home, &stub, "x").env("GJC_CODING_AGENT_DIR", &small.0).output();
    assert_eq!((out.code(), out.out().as_str()), (Some(1), "답은 있습니다\n"), "{out}");
    assert!(out.err().contains("Read-only file system"), "{out}");
    assert_eq!(out.err().matches("what you say is not kept").count(), 1, "{out}");
}

#[test]
fn the_prompts_on_a_read_only_file_system_can_be_seen() {
    let home = Home::new();
    for clean in [false, true] {
        let Some(small) = Small::mount(home.path().join("small"), "4m") else { return };
        let run = |prompt: &str| ask(&home, &stub([text("네")]), prompt).env("GJC_CODING_AGENT_DIR", &small.0).output();
        run("봉인된 물음").ok();
        let db = small.0.join("history.db");
        if clean {
            // As other programs leave it.
            rusqlite::Connection::open(&db).unwrap().execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
            assert!(!small.0.join("history.db-wal").exists());
        }
        let remounted = std::process::Command::new("mount").args(["-o", "remount,ro"]).arg(&small.0).status().unwrap();
        assert!(remounted.success());
        let out = look(&home, &["prompts"]).env("GJC_CODING_AGENT_DIR", &small.0).output().ok();
        assert!(out.out().contains("봉인된 물음"), "{clean}: {out}");
        for file in walk(&small.0).iter().filter(|path| path.extension().is_some_and(|e| e == "jsonl")) {
            home.forget(file);
        }
    }
}
