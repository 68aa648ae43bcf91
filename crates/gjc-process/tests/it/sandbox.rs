//! The fence itself, with grants that the tests choose. What `bash` makes of it is tested in `gjc-tools`.

use std::{
    fs,
    path::{Path, PathBuf},
};

use gjc_process::{Demand, Exit, Finished, LocalSockets, Network, Sandbox, SpawnError, Support, run};
use tokio_util::sync::CancellationToken;

use crate::support::{finish, sh};

/// Everything may be read, nothing written.
fn reading() -> Sandbox {
    Sandbox { read: vec!["/".into()], ..Sandbox::default() }
}

/// A folder with a file, and whether this kernel holds a fence. Where it does not, all is refused, and that is tested.
async fn world() -> Option<(tempfile::TempDir, PathBuf)> {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    fs::write(root.join("파일"), "글\n").unwrap();
    let lacks = Support::now().essential();
    if lacks.is_empty() {
        return Some((dir, root));
    }
    println!("no sandbox on this system: {lacks:?}");
    let mut spawn = sh("touch made");
    (spawn.cwd, spawn.sandbox) = (root.clone(), Some(reading()));
    let refused = run(spawn, CancellationToken::new(), None).await.unwrap_err();
    assert!(matches!(refused, SpawnError::Sandbox { .. }) && !root.join("made").exists());
    None
}

async fn inside(root: &Path, sandbox: Sandbox, script: &str) -> Finished {
    let mut spawn = sh(script);
    (spawn.cwd, spawn.sandbox) = (root.into(), Some(sandbox));
    finish(spawn).await
}

#[tokio::test]
async fn what_is_granted_is_there_and_nothing_else() {
    let Some((_dir, root)) = world().await else { return };
    for folder in ["쓰기", "다른"] {
        fs::create_dir(root.join(folder)).unwrap();
    }
    std::os::unix::fs::symlink(root.join("다른"), root.join("link")).unwrap();
    let write = ["쓰기", "link", "없는 것"].map(|name| root.join(name)).to_vec();
    let sandbox = Sandbox { write, devices: vec!["/dev/null".into()], ..reading() };
    let script = "cat 파일; echo x > 쓰기/a && echo wrote; (echo x > 다른/a) 2>/dev/null; (echo x > link/a) 2>&-; \
                  (mkdir '없는 것') 2>&-; echo x >> 파일";
    let done = inside(&root, sandbox, script).await;
    assert!(done.output.text().starts_with("글\nwrote\n"), "{}", done.output.text());
    assert_ne!(done.exit, Exit::Code(0));
    assert!(root.join("쓰기/a").exists() && !root.join("다른/a").exists() && !root.join("없는 것").exists());
    assert_eq!(fs::read_to_string(root.join("파일")).unwrap(), "글\n");
}

#[tokio::test]
async fn a_device_is_written_only_where_it_is_granted() {
    let Some((_dir, root)) = world().await else { return };
    let script = "echo x > /dev/null";
    assert_ne!(inside(&root, reading(), script).await.exit, Exit::Code(0));
    let sandbox = Sandbox { devices: vec!["/dev/null".into()], ..reading() };
    assert_eq!(inside(&root, sandbox, script).await.exit, Exit::Code(0));
}

#[tokio::test]
async fn a_program_that_may_not_be_read_is_not_run() {
    let Some((_dir, root)) = world().await else { return };
    let mut spawn = sh("true");
    (spawn.cwd, spawn.sandbox) = (root, Some(Sandbox::default()));
    let refused = run(spawn, CancellationToken::new(), None).await.unwrap_err();
    assert!(matches!(refused, SpawnError::Denied { .. }), "{refused}");
}

#[tokio::test]
async fn the_tree_of_a_sandboxed_program_is_ended_like_any_other() {
    let Some((_dir, root)) = world().await else { return };
    let sandbox = Sandbox { devices: vec!["/dev/null".into()], ..reading() };
    let done = inside(&root, sandbox, "sleep 1000 & echo $!").await;
    let pid = done.output.text().trim().parse().unwrap();
    assert!(done.left_running && !crate::support::alive(pid));
}

#[tokio::test]
async fn what_is_demanded_decides_nothing_about_what_is_held() {
    let Some((_dir, root)) = world().await else { return };
    for demand in [Demand::Whole, Demand::WhatThereIs] {
        for (network, local) in [(Network::Allowed, LocalSockets::All), (Network::Denied, LocalSockets::Pairs)] {
            let sandbox = Sandbox { demand, network, local, ..reading() };
            let done = inside(&root, sandbox, "echo x > made; grep -c '^Seccomp:.2$' /proc/self/status").await;
            assert!(done.output.text().ends_with("1\n") && !root.join("made").exists(), "{}", done.output.text());
        }
    }
}

#[tokio::test]
async fn no_descriptor_stays_open_for_a_fence() {
    if !crate::support::alone("sandbox::no_descriptor_stays_open_for_a_fence") {
        return;
    }
    let Some((_dir, root)) = world().await else { return };
    inside(&root, reading(), "true").await;
    let before = crate::support::open_fds();
    for _ in 0..20 {
        inside(&root, reading(), "true").await;
    }
    assert_eq!(crate::support::open_fds(), before);
}
