//! Which terminal this is, and what it worked on last: what `--continue` asks first.
//!
//! Only sessions of a terminal leave a breadcrumb: what a model runs has no terminal, and a program that speaks RPC or reads
//! events works for itself.

use crate::cli::{Mode, SessionArgs};
use gjc_entry::Env;
use gjc_log::fs::OsFs;
use gjc_store::breadcrumb::{self, Breadcrumb, Terminal};
use rustix::termios::{isatty, tcgetsid, ttyname};
use std::fs::{self, File};
use std::io::stdin;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// What this terminal worked on last.
pub(crate) fn last(env: &Env) -> Option<Breadcrumb> {
    breadcrumb::read(&OsFs, &env.dirs.agent, &terminal(env)?)
}

/// Keeps what this terminal works on from now on.
pub(crate) fn remember(env: &Env, args: &SessionArgs, cwd: &Path, session: Option<&Path>) {
    if let (Mode::Text, Some(session), Some(terminal)) = (args.mode, session, terminal(env)) {
        breadcrumb::write(&OsFs, &env.dirs.agent, &terminal, cwd, session);
    }
}

fn terminal(env: &Env) -> Option<Terminal> {
    let stdin = stdin();
    if isatty(&stdin) {
        let device =
            ttyname(&stdin, Vec::new()).ok().map(|name| PathBuf::from(std::ffi::OsString::from_vec(name.into_bytes())));
        return Some(breadcrumb::terminal(&env.vars, device.as_deref())?.since(since()));
    }
    // Variables are inherited by whatever runs in a terminal, also by what a model starts; that has no terminal itself.
    File::open("/dev/tty").ok()?;
    breadcrumb::terminal(&env.vars, None)
}

/// When the terminal began: the first program in it, in this run of the machine. Its number is given to another one later.
fn since() -> Option<String> {
    let leader = tcgetsid(stdin()).ok()?.as_raw_nonzero();
    let stat = fs::read_to_string(format!("/proc/{leader}/stat")).ok()?;
    // The name of the program may hold anything, blanks and parentheses too; field 22 is when it began.
    let began = stat.rsplit_once(") ")?.1.split(' ').nth(19)?.to_owned();
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(format!("{} {leader} {began}", boot.trim()))
}
