//! Many at once.

use std::fs;

use gjc_process::Exit;
use tokio::task::JoinSet;

use crate::support::{alone, finish, open_fds, sh};

#[test]
fn sixty_four_at_once_leave_no_zombie_and_no_descriptor() {
    if !alone("scale::sixty_four_at_once_leave_no_zombie_and_no_descriptor") {
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        finish(sh("true")).await;
        let before = open_fds();
        let mut runs = JoinSet::new();
        for i in 0..64 {
            runs.spawn(async move {
                let done = finish(sh(&format!("sleep 999 >/dev/null & head -c 100000 /dev/zero; exit {i}"))).await;
                assert_eq!((done.exit, done.output.total_bytes, done.left_running), (Exit::Code(i), 100_000, true));
            });
        }
        while let Some(done) = runs.join_next().await {
            done.unwrap();
        }
        assert_eq!(open_fds(), before);
    });
    let children: String = fs::read_dir("/proc/self/task")
        .unwrap()
        .map(|task| fs::read_to_string(task.unwrap().path().join("children")).unwrap())
        .collect();
    assert_eq!(children, "");
}
