//! How programs end, and that nothing of them stays.

use std::time::{Duration, Instant};

use gjc_process::Exit;
use tokio_util::sync::CancellationToken;

use crate::support::{alive, bash, eventually, finish, numbers, sh, started};

const LONG: Duration = Duration::from_secs(60);

#[tokio::test]
async fn exit_codes_come_through() {
    for code in [0, 1, 42, 255] {
        let done = finish(sh(&format!("exit {code}"))).await;
        assert_eq!((done.exit, done.left_running), (Exit::Code(code), false));
    }
}

#[tokio::test]
async fn death_by_a_signal_is_told_apart_from_a_code() {
    assert_eq!(finish(sh("kill -SEGV $$")).await.exit, Exit::Signal(11));
    assert_eq!(finish(sh("kill -TERM $$")).await.exit, Exit::Signal(15));
}

#[tokio::test]
async fn a_timeout_kills_grandchildren_too() {
    let mut spawn = sh("sh -c 'sleep 999 & echo $! $$; wait' & echo $!; wait");
    spawn.timeout = Some(Duration::from_millis(300));
    let done = finish(spawn).await;
    let pids = numbers(&done.output.text());
    assert_eq!(pids.len(), 3);
    assert_eq!(done.exit, Exit::TimedOut);
    assert!(done.wall >= Duration::from_millis(300) && done.wall < LONG);
    assert!(pids.iter().all(|pid| !alive(*pid)), "{pids:?}");
}

#[tokio::test]
async fn who_ignores_sigterm_gets_sigkill_after_the_grace() {
    let mut spawn = sh("trap '' TERM; echo $$; while :; do sleep 1; done");
    spawn.grace = Duration::from_millis(100);
    let (task, cancel, pids) = started(spawn, 1).await;
    cancel.cancel();
    let done = task.await.unwrap();
    assert_eq!(done.exit, Exit::Cancelled);
    assert!(!alive(pids[0]));
}

#[tokio::test]
async fn sigterm_leaves_time_to_clean_up_even_after_the_shell_is_dead() {
    // The background process is silent for longer than the linger; only the grace gives it the time.
    let mut spawn =
        sh("sh -c 'trap \"sleep 0.3; echo cleaned; exit\" TERM; echo $$; while :; do sleep 0.01; done' & wait");
    spawn.grace = LONG;
    spawn.linger = Duration::from_millis(10);
    let (task, cancel, _) = started(spawn, 1).await;
    cancel.cancel();
    let done = task.await.unwrap();
    assert!(done.output.text().ends_with("cleaned\n"), "{}", done.output.text());
    assert_eq!((done.exit, done.left_running), (Exit::Cancelled, false));
}

#[tokio::test]
async fn a_cancelled_token_starts_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut spawn = sh("touch started");
    spawn.cwd = dir.path().into();
    let cancel = CancellationToken::new();
    cancel.cancel();
    assert_eq!(gjc_process::run(spawn, cancel, None).await.unwrap().exit, Exit::Cancelled);
    assert!(!dir.path().join("started").exists());
}

#[tokio::test]
async fn a_background_process_that_holds_the_pipe_does_not_hold_us() {
    let began = Instant::now();
    let done = finish(sh("sleep 999 & echo $!; exit 3")).await;
    let pids = numbers(&done.output.text());
    assert_eq!((done.exit, done.left_running, pids.len()), (Exit::Code(3), true, 1));
    assert!(began.elapsed() < Duration::from_secs(30));
    assert!(!alive(pids[0]));
}

#[tokio::test]
async fn a_background_process_that_keeps_writing_does_not_hold_us_either() {
    let mut spawn = sh("yes 한글 & echo done; exit 0");
    spawn.linger = Duration::from_millis(50);
    let done = finish(spawn).await;
    assert_eq!((done.exit, done.left_running), (Exit::Code(0), true));
    assert!(done.wall >= Duration::from_millis(500) && done.wall < LONG);
}

#[tokio::test]
async fn a_background_process_without_the_pipe_is_killed_and_reported() {
    let done = finish(sh("sleep 999 >/dev/null 2>&1 </dev/null & echo $!")).await;
    let pids = numbers(&done.output.text());
    assert!(done.left_running);
    assert!(!alive(pids[0]));
}

#[tokio::test]
async fn a_job_in_a_group_of_its_own_is_still_of_the_tree() {
    let done = finish(bash("set -m; sleep 999 >/dev/null 2>&1 & echo $!")).await;
    let pids = numbers(&done.output.text());
    assert!(done.left_running);
    assert!(!alive(pids[0]));
}

#[tokio::test]
async fn who_leaves_the_tree_is_reported_while_it_holds_the_output() {
    let done = finish(bash("exec 3>&1; pid=$(setsid sh -c 'sleep 999 >&3 2>&3 & echo $!'); echo $pid")).await;
    let pids = numbers(&done.output.text());
    let escaped = alive(pids[0]);
    // SAFETY: plain system call on the process this test started.
    unsafe { libc::kill(pids[0], libc::SIGKILL) };
    assert_eq!((done.exit, done.left_running, done.escaped, escaped), (Exit::Code(0), false, true, true));
}

#[tokio::test]
async fn what_a_background_process_writes_within_the_linger_is_kept() {
    let mut spawn = sh("(sleep 0.1; echo late) & echo early");
    spawn.linger = LONG;
    let done = finish(spawn).await;
    assert_eq!(done.output.text(), "early\nlate\n");
    assert!(!done.left_running);
}

#[tokio::test]
async fn cancel_ends_the_wait_for_a_background_process() {
    let mut spawn = sh("sleep 999 & echo $! $$");
    spawn.linger = LONG;
    let (task, cancel, pids) = started(spawn, 2).await;
    // The shell is a zombie now or soon: we keep it until the end.
    eventually("the shell ends", || !alive(pids[1])).await;
    cancel.cancel();
    let done = task.await.unwrap();
    assert!(matches!(done.exit, Exit::Code(0) | Exit::Cancelled), "{:?}", done.exit);
    assert!(!alive(pids[0]));
}

#[tokio::test]
async fn dropping_the_future_kills_the_tree() {
    let (task, _cancel, pids) = started(bash("set -m; sleep 999 & echo $! $$; wait"), 2).await;
    task.abort();
    assert!(task.await.unwrap_err().is_cancelled());
    eventually("the tree is dead", || !pids.iter().any(|pid| alive(*pid))).await;
    // Reaped as well: no zombie is left under this number.
    eventually("the root is reaped", || !std::path::Path::new(&format!("/proc/{}", pids[1])).exists()).await;
}

#[tokio::test(start_paused = true)]
async fn a_paused_clock_times_out_without_waiting() {
    let began = Instant::now();
    let mut spawn = sh("sleep 999");
    spawn.timeout = Some(Duration::from_secs(3600));
    let done = finish(spawn).await;
    assert_eq!(done.exit, Exit::TimedOut);
    assert!(done.wall >= Duration::from_secs(3600));
    assert!(began.elapsed() < LONG);
}
