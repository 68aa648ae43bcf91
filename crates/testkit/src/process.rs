//! Whether processes have ended that nobody waits for here.

use std::time::{Duration, Instant};

/// Fails unless the process of this id has ended, or ends within ten seconds: who was sent SIGKILL dies of it when it is its
/// turn to run. A zombie has ended; it belongs to init, whose pace is its own.
#[track_caller]
pub fn assert_ended(pid: &str) {
    let (pid, began) = (pid.trim(), Instant::now());
    loop {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let state = stat.rsplit(')').next().unwrap_or_default().trim_start().chars().next();
        if matches!(state, None | Some('Z' | 'X')) {
            return;
        }
        assert!(began.elapsed() < Duration::from_secs(10), "{pid} still runs: {stat}");
        std::thread::yield_now();
    }
}
