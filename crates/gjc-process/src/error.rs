//! Why a program could not be started, in sentences for a person.

use std::{fs, io, path::PathBuf};

use crate::{SandboxError, Spawn, program::locate};

/// A program could not be started. Each message says what is wrong and, after `hint:`, the way out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpawnError {
    /// No such file, or no such name on the `PATH` of the given environment.
    #[error(
        "cannot start `{program}`: there is no such program.\nhint: check the spelling, install it, or give its full path"
    )]
    ProgramMissing {
        /// As given.
        program: String,
    },
    /// The file exists, but the interpreter or loader it names does not.
    #[error("cannot start `{program}`: the interpreter it names does not exist.\nhint: look at the `#!` line of {}", path.display())]
    InterpreterMissing {
        /// As given.
        program: String,
        /// The file that was found.
        path: PathBuf,
    },
    /// The file or the working directory may not be used.
    #[error("cannot start `{program}` in {}: permission denied.\nhint: make the program executable (`chmod +x`) and the directory accessible", cwd.display())]
    Denied {
        /// As given.
        program: String,
        /// The working directory.
        cwd: PathBuf,
    },
    /// The working directory does not exist.
    #[error("cannot start `{program}`: the working directory {} does not exist.\nhint: create it, or choose another", cwd.display())]
    CwdMissing {
        /// As given.
        program: String,
        /// The working directory.
        cwd: PathBuf,
    },
    /// The working directory is a file.
    #[error("cannot start `{program}`: {} is not a directory.\nhint: use the directory that holds it", cwd.display())]
    CwdNotADirectory {
        /// As given.
        program: String,
        /// The path given as working directory.
        cwd: PathBuf,
    },
    /// Arguments and environment together are larger than the kernel takes.
    #[error(
        "cannot start `{program}`: its arguments and environment are too long.\nhint: pass the text on standard input or in a file"
    )]
    TooLong {
        /// As given.
        program: String,
    },
    /// A NUL byte in the program, an argument, the directory or the environment.
    #[error(
        "cannot start `{program}`: an argument, path or variable holds a NUL byte.\nhint: pass binary data on standard input or in a file"
    )]
    Nul {
        /// As given.
        program: String,
    },
    /// No more processes, files or memory.
    #[error(
        "cannot start `{program}`: the machine is out of processes, open files or memory ({source}).\nhint: end something that runs, or raise the limits (`ulimit -u`, `ulimit -n`)"
    )]
    Exhausted {
        /// As given.
        program: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// The sandbox that was asked for cannot be had here. Nothing was started.
    #[error(
        "cannot start `{program}` in its sandbox: {why}.\nhint: `gjc doctor` tells what this system can hold; without a sandbox: --sandbox off"
    )]
    Sandbox {
        /// As given.
        program: String,
        /// What is missing, or went wrong.
        why: SandboxError,
    },
    /// Anything else.
    #[error("cannot start `{program}`: {source}")]
    Other {
        /// As given.
        program: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// The program ran, but how it ended was taken from us.
    #[error(
        "cannot tell how the program ended: {source}.\nhint: SIGCHLD must not be ignored in this process, and nobody else may wait for its children"
    )]
    Lost {
        /// What the kernel said.
        source: io::Error,
    },
}

impl SpawnError {
    /// A sandbox that could not be made or entered.
    pub(crate) fn sandbox(spawn: &Spawn, why: SandboxError) -> Self {
        Self::Sandbox { program: spawn.program.to_string_lossy().into_owned(), why }
    }

    /// Finds the sentence for a failed start. The kernel answers "not found" for the program, its
    /// interpreter and the directory alike, so we look again.
    pub(crate) fn explain(spawn: &Spawn, source: io::Error) -> Self {
        let program = spawn.program.to_string_lossy().into_owned();
        let cwd = spawn.cwd.clone();
        if source.kind() == io::ErrorKind::InvalidInput {
            return Self::Nul { program };
        }
        match fs::metadata(&cwd) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Self::CwdMissing { program, cwd },
            Ok(found) if !found.is_dir() => return Self::CwdNotADirectory { program, cwd },
            _ => {}
        }
        match source.raw_os_error() {
            Some(libc::ENOENT) => match locate(spawn) {
                Some(path) => Self::InterpreterMissing { program, path },
                None => Self::ProgramMissing { program },
            },
            Some(libc::EACCES | libc::EPERM) => Self::Denied { program, cwd },
            Some(libc::E2BIG) => Self::TooLong { program },
            Some(libc::EAGAIN | libc::EMFILE | libc::ENFILE | libc::ENOMEM) => Self::Exhausted { program, source },
            _ => Self::Other { program, source },
        }
    }
}
