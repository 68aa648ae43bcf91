//! Which file a program's name means. The kernel's own search (`execvp`) begins in the working folder where `PATH` holds `.`, an
//! empty entry or `./bin`: there a `git` of a cloned repository would be ours to run. Only entries that begin with `/` are looked at.

use crate::Spawn;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Where programs are when there is no `PATH`.
const USUAL: &str = "/bin:/usr/bin";

/// The file to execute: a path as it is, a bare name from `PATH`.
///
/// # Errors
/// `ENOENT` where there is none, `EACCES` where there are only files that may not be executed.
pub(crate) fn find(spawn: &Spawn) -> io::Result<PathBuf> {
    // What holds a NUL is no name; starting it says so.
    if spawn.program.as_bytes().iter().any(|byte| matches!(byte, b'/' | 0)) {
        return Ok(PathBuf::from(&spawn.program));
    }
    let may_run = |path: &Path| rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok();
    let mut there = false;
    for path in candidates(spawn).filter(|path| path.is_file()) {
        if may_run(&path) {
            return Ok(path);
        }
        there = true;
    }
    Err(io::Error::from_raw_os_error(if there { libc::EACCES } else { libc::ENOENT }))
}

/// The file that would have been executed, if there is one.
pub(crate) fn locate(spawn: &Spawn) -> Option<PathBuf> {
    if spawn.program.as_bytes().contains(&b'/') {
        return Some(spawn.cwd.join(&spawn.program)).filter(|path| path.is_file());
    }
    candidates(spawn).find(|path| fs::metadata(path).is_ok_and(|found| found.is_file()))
}

fn candidates(spawn: &Spawn) -> impl Iterator<Item = PathBuf> {
    let path = spawn.env.iter().rev().find(|(name, _)| name == "PATH").map(|(_, value)| value.as_os_str());
    std::env::split_paths(path.unwrap_or(OsStr::new(USUAL)))
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(&spawn.program))
}
