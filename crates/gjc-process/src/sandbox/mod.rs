//! What a program may reach: plain data in, a fence of Landlock and seccomp out.
//!
//! All that allocates, opens or can fail for a reason worth a sentence happens before the fork ([`Fence::build`]); between
//! fork and exec there are only system calls ([`Fence::enter`]). A fence that cannot be entered is a program that is not
//! started: what was asked for is never left out in silence.

mod calls;
mod files;
mod probe;

use std::{
    io,
    os::fd::{AsRawFd, OwnedFd},
    path::PathBuf,
};

use seccompiler::BpfProgram;

pub use probe::{Lack, NoLandlock, Support};

/// What a program, and all that it starts, may reach. Whatever is not named is out of reach; a path that does not exist
/// grants nothing.
///
/// Beside files and network this keeps it, wherever the kernel can, from signals to and traces of processes outside, from
/// abstract sockets of others, from mounts and namespaces, from kernel keyrings, from io_uring, from injecting input into a
/// terminal, and from gaining privileges by set-user-id programs. What no fence of this kind sees: modes, owners and times
/// of files that the program's user owns (chmod, utimes).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sandbox {
    /// Files and folders, with all below them, that may be read and executed.
    pub read: Vec<PathBuf>,
    /// Files and folders, with all below them, that may also be changed, made and removed. No device can be made there.
    pub write: Vec<PathBuf>,
    /// Devices that may be opened in any way and be given commands (`ioctl`), or folders of such.
    pub devices: Vec<PathBuf>,
    /// Whether sockets of the Internet can be made.
    pub network: Network,
    /// Which local sockets can be made.
    pub local: LocalSockets,
    /// What happens where the kernel cannot hold all of it.
    pub demand: Demand,
}

/// Whether sockets of the Internet, the loopback among it, can be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Network {
    /// None.
    #[default]
    Denied,
    /// As outside.
    Allowed,
}

/// Which local (`AF_UNIX`) sockets can be made. A socket with a path is the door to a program outside (a container engine,
/// an agent of keys), and before Linux 7.1 no rule about files covers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LocalSockets {
    /// Only connected pairs (`socketpair`), which lead nowhere else.
    #[default]
    Pairs,
    /// All; where Landlock covers them, only those below [`Sandbox::write`] can be connected to.
    All,
}

/// What happens where the kernel cannot hold all of a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Demand {
    /// The program is not started.
    #[default]
    Whole,
    /// What the kernel has is used.
    WhatThereIs,
}

/// Why a sandbox could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SandboxError {
    /// The kernel lacks something, and all was demanded.
    #[error("{}", .0.sentence())]
    Lacks(Lack),
    /// The rules about files could not be made.
    #[error("the rules about files could not be made: {0}")]
    Files(String),
    /// The rules about system calls could not be made.
    #[error("the rules about system calls could not be made: {0}")]
    Calls(String),
    /// The kernel refused to enter it.
    #[error("the kernel refused it between fork and exec")]
    Entering,
}

/// What [`Fence::enter`] fails with, because only a number passes from the child: none of the calls before an exec ends so.
pub(crate) const REFUSED: i32 = libc::ENOTRECOVERABLE;

/// A sandbox in the form in which a child enters it.
pub(crate) struct Fence {
    files: Option<OwnedFd>,
    calls: Vec<BpfProgram>,
}

impl Fence {
    /// Prepares a fence with what the kernel has.
    pub(crate) fn build(sandbox: &Sandbox, support: &Support) -> Result<Self, SandboxError> {
        let lack = support.essential().into_iter().next();
        if let Some(lack) = lack.filter(|_| sandbox.demand == Demand::Whole) {
            return Err(SandboxError::Lacks(lack));
        }
        let files = if support.landlock.is_ok() { files::ruleset(sandbox)? } else { None };
        if files.is_none() && sandbox.demand == Demand::Whole {
            return Err(SandboxError::Lacks(Lack::Files));
        }
        let calls = if support.seccomp { calls::filters(sandbox, files.is_some())? } else { Vec::new() };
        Ok(Self { files, calls })
    }

    /// Enters it: from here on there is no way back for this process and all that it starts. Async-signal-safe: system calls
    /// alone.
    pub(crate) fn enter(&self) -> io::Result<()> {
        for capability in CAPABILITIES {
            // SAFETY: takes a number, concerns this process only. Whoever is not root has nothing to drop and is refused.
            unsafe { libc::prctl(libc::PR_CAPBSET_DROP, *capability, 0, 0, 0) };
        }
        // SAFETY: takes numbers, concerns this process only.
        if unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) } != 0 {
            return Err(io::Error::from_raw_os_error(REFUSED));
        }
        if let Some(files) = &self.files {
            // SAFETY: takes a descriptor that `self` keeps open, and flags.
            if unsafe { libc::syscall(libc::SYS_landlock_restrict_self, files.as_raw_fd(), 0) } != 0 {
                return Err(io::Error::from_raw_os_error(REFUSED));
            }
        }
        for program in &self.calls {
            seccompiler::apply_filter(program).map_err(|_| io::Error::from_raw_os_error(REFUSED))?;
        }
        Ok(())
    }
}

/// What root loses for good (capabilities(7)): whatever changes the machine, reads past permissions by a handle, or reaches
/// into other processes. Permissions of files stay root's affair.
const CAPABILITIES: &[libc::c_ulong] = &[
    2,  // DAC_READ_SEARCH: open_by_handle_at
    9,  // LINUX_IMMUTABLE
    12, // NET_ADMIN
    13, // NET_RAW
    16, // SYS_MODULE
    17, // SYS_RAWIO
    18, // SYS_CHROOT
    19, // SYS_PTRACE
    21, // SYS_ADMIN
    22, // SYS_BOOT
    25, // SYS_TIME
    27, // MKNOD
    31, // SETFCAP
    32, // MAC_OVERRIDE
    33, // MAC_ADMIN
    34, // SYSLOG
    38, // PERFMON
    39, // BPF
    40, // CHECKPOINT_RESTORE
];
