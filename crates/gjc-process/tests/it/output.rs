//! What a program says, what is kept of it, and what it is told.

use bytes::Bytes;
use gjc_process::{Exit, OutputCap, Stdin, run};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::support::{alone, finish, mode, own_kb, sh};

#[tokio::test]
async fn both_streams_arrive_in_the_order_they_were_written() {
    let script = "for i in 1 2 3 4 5 6 7 8 9; do echo out$i; echo err$i >&2; done";
    let expected: String = (1..=9).map(|i| format!("out{i}\nerr{i}\n")).collect();
    let done = finish(sh(script)).await;
    assert_eq!(done.output.text(), expected);
    assert!(!done.output.truncated);
    assert_eq!(done.output.total_bytes, expected.len() as u64);
}

#[tokio::test]
async fn input_larger_than_a_pipe_comes_back_whole() {
    let text = "한글 입력\n".repeat(100_000);
    let mut spawn = sh("cat");
    spawn.stdin = Stdin::Bytes(text.clone().into_bytes());
    spawn.cap = OutputCap { keep_head: text.len(), keep_tail: 0 };
    assert_eq!(finish(spawn).await.output.text(), text);
}

#[tokio::test]
async fn input_that_nobody_reads_is_no_error() {
    let mut spawn = sh("head -c 3; exit 5");
    spawn.stdin = Stdin::Bytes(vec![b'x'; 1_000_000]);
    let done = finish(spawn).await;
    assert_eq!((done.exit, done.output.text().as_str()), (Exit::Code(5), "xxx"));
}

#[tokio::test]
async fn without_input_reading_ends_at_once() {
    let done = finish(sh("cat; readlink /proc/self/fd/0")).await;
    assert_eq!(done.output.text(), "/dev/null\n");
}

#[tokio::test]
async fn the_spill_file_holds_everything_and_only_its_owner_may_read_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("출력.log");
    let expected: String = (1..=50_000).map(|i| format!("{i} 줄\n")).collect();
    let mut spawn = sh("i=1; while [ $i -le 50000 ]; do echo \"$i 줄\"; i=$((i+1)); done");
    spawn.cap = OutputCap { keep_head: 1000, keep_tail: 1001 };
    spawn.spill = Some(path.clone());
    let done = finish(spawn).await.output;
    assert_eq!(std::fs::read_to_string(&path).unwrap(), expected);
    assert_eq!(mode(&path), 0o600);
    assert_eq!((done.spilled, done.truncated, done.total_bytes), (Some(path), true, expected.len() as u64));
    assert!(expected.as_bytes().starts_with(&done.head) && expected.as_bytes().ends_with(&done.tail));
}

#[tokio::test]
async fn an_output_that_fits_makes_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("out");
    let mut spawn = sh("printf 12345678");
    spawn.cap = OutputCap { keep_head: 4, keep_tail: 4 };
    spawn.spill = Some(path.clone());
    let done = finish(spawn).await.output;
    assert_eq!((done.text().as_str(), done.spilled), ("12345678", None));
    assert!(!path.exists());
}

#[tokio::test]
async fn an_existing_file_is_not_overwritten_and_the_run_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("out");
    std::fs::write(&path, "precious").unwrap();
    let mut spawn = sh("printf 12345678");
    spawn.cap = OutputCap { keep_head: 1, keep_tail: 1 };
    spawn.spill = Some(path.clone());
    let done = finish(spawn).await;
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
    assert_eq!((done.exit, done.output.spilled), (Exit::Code(0), None));
    assert!(done.output.spill_failed.unwrap().contains("could not be kept"));
}

#[test]
fn a_full_disk_costs_the_file_and_not_the_run() {
    if !alone("output::a_full_disk_costs_the_file_and_not_the_run") {
        return;
    }
    // SAFETY: this process runs this test only. With the signal ignored, a write beyond the limit is an error.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
        let limit = libc::rlimit { rlim_cur: 1_000_000, rlim_max: 1_000_000 };
        assert_eq!(libc::setrlimit(libc::RLIMIT_FSIZE, &limit), 0);
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("out");
    let mut spawn = sh("head -c 8000000 /dev/zero; echo 끝");
    spawn.spill = Some(path.clone());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let done = runtime.block_on(finish(spawn));
    assert_eq!(done.exit, Exit::Code(0));
    assert_eq!(done.output.total_bytes, 8_000_004);
    assert!(done.output.text().ends_with("끝\n"));
    assert!(done.output.spilled.is_none() && done.output.spill_failed.is_some());
    assert!(!path.exists(), "half an output must not pass for the whole");
}

#[tokio::test]
async fn progress_is_the_output_and_never_splits_a_code_point() {
    let (send, mut receive) = mpsc::channel::<Bytes>(1024);
    // Each byte of the text in a write of its own.
    let script = "for b in 355 225 234 352 270 200 12; do printf \"\\\\$b\"; sleep 0.01; done";
    let done = run(sh(script), CancellationToken::new(), Some(send)).await.unwrap();
    let mut seen = String::new();
    while let Some(chunk) = receive.recv().await {
        seen.push_str(std::str::from_utf8(&chunk).unwrap());
    }
    assert_eq!(seen, "한글\n");
    assert_eq!(done.output.text(), "한글\n");
}

#[tokio::test]
async fn a_stuck_reader_of_the_progress_holds_nothing_up() {
    let (send, receive) = mpsc::channel::<Bytes>(1);
    let done = run(sh("head -c 5000000 /dev/zero"), CancellationToken::new(), Some(send)).await.unwrap();
    assert_eq!(done.output.total_bytes, 5_000_000);
    drop(receive);
}

#[test]
fn two_hundred_megabytes_take_no_memory() {
    if !alone("output::two_hundred_megabytes_take_no_memory") {
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let dir = tempfile::tempdir().unwrap();
        finish(sh("true")).await;
        let before = own_kb("VmHWM");
        let mut spawn = sh("yes 한글한글 | head -c 200000000");
        spawn.spill = Some(dir.path().join("all"));
        let done = finish(spawn).await;
        let grown = own_kb("VmHWM") - before;
        assert_eq!(done.output.total_bytes, 200_000_000);
        assert_eq!(std::fs::metadata(done.output.spilled.unwrap()).unwrap().len(), 200_000_000);
        assert!(grown < 16 * 1024, "VmHWM grew by {grown} kB");
    });
}
