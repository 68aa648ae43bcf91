//! Builders and questions the tests share.

use std::{fs, path::Path, process::Command, time::Duration};

use bytes::Bytes;
use gjc_process::{Finished, Spawn, run};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// `sh -c script` in the temporary directory.
pub(crate) fn sh(script: &str) -> Spawn {
    shell("sh", script)
}

/// `bash -c script`, for job control.
pub(crate) fn bash(script: &str) -> Spawn {
    shell("bash", script)
}

fn shell(program: &str, script: &str) -> Spawn {
    let mut spawn = Spawn::new(program, std::env::temp_dir());
    spawn.args = vec!["-c".into(), script.into()];
    spawn.env = vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())];
    spawn
}

pub(crate) async fn finish(spawn: Spawn) -> Finished {
    run(spawn, CancellationToken::new(), None).await.unwrap()
}

/// Starts it in a task and waits until it has printed a line with as many numbers as `pids`.
pub(crate) async fn started(
    spawn: Spawn,
    pids: usize,
) -> (tokio::task::JoinHandle<Finished>, CancellationToken, Vec<i32>) {
    let (send, mut receive) = mpsc::channel::<Bytes>(64);
    let cancel = CancellationToken::new();
    let task = tokio::spawn({
        let cancel = cancel.clone();
        async move { run(spawn, cancel, Some(send)).await.unwrap() }
    });
    let mut said = String::new();
    while !said.ends_with('\n') || numbers(&said).len() < pids {
        said.push_str(std::str::from_utf8(&receive.recv().await.unwrap()).unwrap());
    }
    (task, cancel, numbers(&said))
}

pub(crate) fn numbers(text: &str) -> Vec<i32> {
    text.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

/// Neither gone nor a zombie.
pub(crate) fn alive(pid: i32) -> bool {
    let Ok(status) = fs::read_to_string(format!("/proc/{pid}/status")) else { return false };
    !status.lines().any(|line| line.starts_with("State:") && (line.contains('Z') || line.contains('X')))
}

/// A value of `/proc/self/status`, in kB.
pub(crate) fn own_kb(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

pub(crate) fn open_fds() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Waits for something no event tells of (a reaper thread, init), and fails after ten seconds.
pub(crate) async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let came = tokio::time::timeout(Duration::from_secs(10), async {
        while !holds() {
            tokio::task::yield_now().await;
        }
    });
    assert!(came.await.is_ok(), "{what}");
}

/// Runs the test `name` in a process of its own, for what is counted or changed process-wide. True in that
/// process, where the test then does its work.
pub(crate) fn alone(name: &str) -> bool {
    const MARK: &str = "GJC_PROCESS_TEST_ALONE";
    if std::env::var_os(MARK).is_some() {
        return true;
    }
    let exe = std::env::current_exe().unwrap();
    let done = Command::new(exe).args(["--exact", name, "--nocapture"]).env(MARK, "1").output().unwrap();
    let said = String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success() && said.contains("1 passed"), "{said}");
    false
}

pub(crate) fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}
