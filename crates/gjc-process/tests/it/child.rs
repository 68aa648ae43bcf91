//! What a program finds when it wakes up.

use std::os::fd::AsRawFd;

use crate::support::{alone, finish, sh};

#[tokio::test]
async fn the_environment_is_the_one_given_and_nothing_else() {
    let mut spawn = sh("env | sort");
    spawn.program = "/usr/bin/env".into();
    spawn.args.clear();
    spawn.env = vec![("A".into(), "1".into()), ("한글".into(), "값".into())];
    assert_eq!(finish(spawn).await.output.text(), "A=1\n한글=값\n");
}

#[tokio::test]
async fn it_leads_a_session_without_a_terminal() {
    let done = finish(sh("read -r pid name state ppid group session tty rest </proc/$$/stat; \
        [ $group = $$ ] && [ $session = $$ ] && echo $tty; (: </dev/tty) 2>/dev/null || echo no terminal"))
    .await;
    assert_eq!(done.output.text(), "0\nno terminal\n");
}

#[test]
fn no_signal_is_blocked_or_ignored_whatever_we_do() {
    if !alone("child::no_signal_is_blocked_or_ignored_whatever_we_do") {
        return;
    }
    // SAFETY: this process runs this test only; the set is initialised by sigemptyset before it is used.
    unsafe {
        libc::signal(libc::SIGINT, libc::SIG_IGN);
        libc::signal(libc::SIGPIPE, libc::SIG_IGN);
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, libc::SIGTERM);
        assert_eq!(libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut()), 0);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut spawn = sh("");
    spawn.program = "grep".into();
    spawn.args = vec!["-E".into(), "^Sig(Blk|Ign)".into(), "/proc/self/status".into()];
    let done = runtime.block_on(finish(spawn));
    // 32 and 33 belong to the C library, which lets nobody touch them.
    const LIBC: u64 = 0b11 << 31;
    for line in done.output.text().lines() {
        let mask = u64::from_str_radix(line.split_whitespace().nth(1).unwrap(), 16).unwrap();
        assert_eq!(mask & !LIBC, 0, "{line}");
    }
    assert_eq!(done.output.text().lines().count(), 2);
}

#[tokio::test]
async fn a_leaking_descriptor_of_ours_does_not_reach_it() {
    let file = tempfile::tempfile().unwrap();
    // SAFETY: duplicates a descriptor we own to the first free number from 100, without close-on-exec.
    let leak = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_DUPFD, 100) };
    assert!(leak >= 100);
    let done = finish(sh("for fd in /proc/$$/fd/*; do echo ${fd##*/}; done")).await;
    // SAFETY: ours, and nobody else knows it.
    unsafe { libc::close(leak) };
    // 3 is the listing itself.
    assert_eq!(done.output.text(), "0\n1\n2\n3\n");
}
