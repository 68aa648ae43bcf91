//! The rules about system calls, as programs for seccomp: a list of what is refused, since whatever a developer runs needs
//! all the rest.
//!
//! A filter sees numbers, never what a pointer leads to. Calls whose flags stand behind a pointer (`clone3`) are answered
//! "no such call", and libraries fall back to the one whose flags can be seen.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, sock_filter,
};

use super::{LocalSockets, Network, Sandbox, SandboxError};

/// What a refused call answers, and which calls do. No rule: always.
type Table = (i32, BTreeMap<i64, Vec<SeccompRule>>);

/// The programs, to be set one after the other; of several answers the kernel takes the strictest.
pub(super) fn filters(sandbox: &Sandbox, files_held: bool) -> Result<Vec<BpfProgram>, SandboxError> {
    let mut programs = Vec::new();
    for (errno, table) in tables(sandbox, files_held).map_err(wrong)? {
        let arch: TargetArch = std::env::consts::ARCH.try_into().map_err(wrong)?;
        let refuse = SeccompAction::Errno(errno.unsigned_abs());
        let filter = SeccompFilter::new(table, SeccompAction::Allow, refuse, arch).map_err(wrong)?;
        programs.push(BpfProgram::try_from(filter).map_err(wrong)?);
    }
    if cfg!(target_arch = "x86_64") {
        programs.push(no_x32());
    }
    Ok(programs)
}

fn wrong(error: seccompiler::BackendError) -> SandboxError {
    SandboxError::Calls(error.to_string())
}

fn tables(sandbox: &Sandbox, files_held: bool) -> Result<Vec<Table>, seccompiler::BackendError> {
    let mut denied: BTreeMap<i64, Vec<SeccompRule>> = ALWAYS.iter().map(|call| (*call, Vec::new())).collect();
    if !files_held {
        // With Landlock a program reaches only processes of its own sandbox, so a debugger works; without it there is this.
        denied.extend(INTO_PROCESSES.iter().map(|call| (*call, Vec::new())));
    }
    for command in TERMINAL {
        denied.entry(libc::SYS_ioctl).or_default().push(all(&[arg(1, SeccompCmpOp::Eq, *command)])?);
    }
    for space in NAMESPACES {
        for call in [libc::SYS_clone, libc::SYS_unshare] {
            denied.entry(call).or_default().push(all(&[arg(0, SeccompCmpOp::MaskedEq(*space), *space)])?);
        }
    }
    // `clone` has the number of a signal at this bit.
    denied.entry(libc::SYS_unshare).or_default().push(all(&[arg(0, SeccompCmpOp::MaskedEq(NEW_TIME), NEW_TIME)])?);
    // Limits of another process: gjc's own could be set so that it can write no file any more.
    denied.entry(libc::SYS_prlimit64).or_default().push(SeccompRule::new(vec![
        SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, 0)?,
        SeccompCondition::new(2, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0)?,
    ])?);
    // Of the kernel's own message bus only routes, which resolvers look at: everything else there is administration.
    let netlink = libc::AF_NETLINK as u64;
    denied
        .entry(libc::SYS_socket)
        .or_default()
        .push(all(&[arg(0, SeccompCmpOp::Eq, netlink), arg(2, SeccompCmpOp::Ne, libc::NETLINK_ROUTE as u64)])?);

    let mut families = Vec::new();
    if sandbox.network == Network::Denied {
        families.extend([libc::AF_INET, libc::AF_INET6]);
    }
    if sandbox.local == LocalSockets::Pairs {
        families.push(libc::AF_UNIX);
    }
    let closed: Result<Vec<_>, _> =
        families.iter().map(|family| all(&[arg(0, SeccompCmpOp::Eq, *family as u64)])).collect();
    let closed = closed?;
    let known = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];
    let foreign = all(&known.map(|family| arg(0, SeccompCmpOp::Ne, family as u64)))?;

    let mut tables = vec![
        (libc::EPERM, denied),
        (libc::EAFNOSUPPORT, BTreeMap::from([(libc::SYS_socket, vec![foreign])])),
        (libc::ENOSYS, BTreeMap::from([(libc::SYS_clone3, Vec::new())])),
        (libc::EOPNOTSUPP, ATTRIBUTES.iter().map(|call| (*call, Vec::new())).collect()),
    ];
    if !closed.is_empty() {
        tables.push((libc::EACCES, BTreeMap::from([(libc::SYS_socket, closed)])));
    }
    Ok(tables)
}

/// An argument of a call, of which the kernel looks at 32 bits: the upper ones are anybody's.
fn arg(place: u8, compare: SeccompCmpOp, with: u64) -> (u8, SeccompCmpOp, u64) {
    (place, compare, with)
}

fn all(conditions: &[(u8, SeccompCmpOp, u64)]) -> Result<SeccompRule, seccompiler::BackendError> {
    let made: Result<Vec<_>, _> = conditions
        .iter()
        .map(|(place, compare, with)| SeccompCondition::new(*place, SeccompCmpArgLen::Dword, compare.clone(), *with))
        .collect();
    SeccompRule::new(made?)
}

/// Refused whatever they are called with.
const ALWAYS: &[i64] = &[
    // Does the work of other calls out of the filter's sight.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // The kernel's keyrings, which hold other programs' secrets.
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    // What is mounted where; Landlock does not cover all of them.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_mount_setattr,
    OPEN_TREE_ATTR,
    libc::SYS_setns,
    // A file by its number, past every folder.
    libc::SYS_open_by_handle_at,
    // Into the kernel, and into the machine.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_kexec_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
];

/// Into the memory and the open files of other processes.
const INTO_PROCESSES: &[i64] =
    &[libc::SYS_ptrace, libc::SYS_process_vm_readv, libc::SYS_process_vm_writev, libc::SYS_pidfd_getfd, libc::SYS_kcmp];

/// Attributes of files, which Landlock does not see, and flags of theirs. Programs take the answer for that of a file system
/// that has none.
const ATTRIBUTES: &[i64] = &[
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    SETXATTRAT,
    REMOVEXATTRAT,
    FILE_SETATTR,
];

/// Calls younger than the library; their numbers are the same on every machine.
const SETXATTRAT: i64 = 463;
const REMOVEXATTRAT: i64 = 466;
const OPEN_TREE_ATTR: i64 = 467;
const FILE_SETATTR: i64 = 469;

/// Commands that put input into a terminal, as if its person had typed it.
const TERMINAL: &[u64] = &[0x5412 /* TIOCSTI */, 0x541c /* TIOCLINUX */];

/// Flags that make a namespace: in one of its own a process has every capability, and more of the kernel to attack.
const NAMESPACES: &[u64] = &[
    libc::CLONE_NEWUSER as u64,
    libc::CLONE_NEWNS as u64,
    libc::CLONE_NEWPID as u64,
    libc::CLONE_NEWNET as u64,
    libc::CLONE_NEWIPC as u64,
    libc::CLONE_NEWUTS as u64,
    libc::CLONE_NEWCGROUP as u64,
];

const NEW_TIME: u64 = libc::CLONE_NEWTIME as u64;

/// x86-64 kernels may know every call a second time, with this bit in its number (the x32 interface): whoever used it would
/// pass the tables above.
const X32_BIT: u32 = 0x4000_0000;

/// "No such call" for every number with that bit (seccomp(2), linux/filter.h).
fn no_x32() -> BpfProgram {
    const LOAD_WORD: u16 = 0x20;
    const JUMP_IF_AT_LEAST: u16 = 0x35;
    const RETURN: u16 = 0x06;
    let errno = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs();
    vec![
        sock_filter { code: LOAD_WORD, jt: 0, jf: 0, k: 0 },
        sock_filter { code: JUMP_IF_AT_LEAST, jt: 0, jf: 1, k: X32_BIT },
        sock_filter { code: RETURN, jt: 0, jf: 0, k: errno },
        sock_filter { code: RETURN, jt: 0, jf: 0, k: libc::SECCOMP_RET_ALLOW },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a program answers to a call: the few instructions that [`no_x32`] is made of.
    fn answer(program: &[sock_filter], call: u32) -> u32 {
        let (mut at, mut loaded) = (0, 0);
        loop {
            let step = &program[at];
            at += 1;
            match step.code {
                0x20 => loaded = call,
                0x35 => at += usize::from(if loaded >= step.k { step.jt } else { step.jf }),
                0x06 => return step.k,
                other => panic!("an instruction that the test does not know: {other:#x}"),
            }
        }
    }

    #[test]
    fn calls_of_the_x32_interface_are_unknown_and_others_pass() {
        let program = no_x32();
        let refused = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs();
        for call in [X32_BIT, X32_BIT + 101, X32_BIT + 547, u32::MAX] {
            assert_eq!(answer(&program, call), refused, "{call:#x}");
        }
        for call in [0, 59, 467, X32_BIT - 1] {
            assert_eq!(answer(&program, call), libc::SECCOMP_RET_ALLOW, "{call:#x}");
        }
    }

    #[test]
    fn programs_are_made_for_every_sandbox() {
        for network in [Network::Allowed, Network::Denied] {
            for local in [LocalSockets::All, LocalSockets::Pairs] {
                for files_held in [true, false] {
                    let sandbox = Sandbox { network, local, ..Sandbox::default() };
                    let programs = filters(&sandbox, files_held).expect("the tables are sound");
                    // The kernel takes 4096 instructions a program (linux/bpf_common.h).
                    assert!(programs.len() >= 4 && programs.iter().all(|program| program.len() <= 4096));
                }
            }
        }
    }
}
