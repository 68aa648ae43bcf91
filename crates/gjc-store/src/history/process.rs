//! Which process wrote a row, and whether it still runs.

use std::fs;

/// This process, so that another one can tell whether it still runs: boot, number, time of its start.
pub(super) fn this_process() -> String {
    let pid = std::process::id();
    format!("{}/{pid}/{}", boot(), started(pid).unwrap_or_default())
}

/// Whether a process still runs. One of another boot, or of another machine, counts as ended: at worst a prompt is offered
/// that is being answered elsewhere.
pub(super) fn is_alive(process: &str) -> bool {
    let mut parts = process.split('/');
    let (Some(then), Some(pid), Some(start)) = (parts.next(), parts.next(), parts.next()) else { return false };
    let Ok(pid) = pid.parse::<u32>() else { return false };
    if start.is_empty() {
        // No /proc on that system: a number that is in use must do.
        let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
        return pid.is_some_and(|pid| !matches!(rustix::process::test_kill_process(pid), Err(rustix::io::Errno::SRCH)));
    }
    then == boot() && started(pid).is_some_and(|now| now == start)
}

fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().into()
}

/// When a process was started, in clock ticks since boot; `None` when it is not there, or only its body is.
fn started(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in brackets may hold anything.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    (!matches!(state, "Z" | "X")).then(|| fields.nth(18).map(Into::into))?
}
