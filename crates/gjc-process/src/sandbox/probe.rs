//! What this kernel can hold. Asks the kernel itself: a version number would be wrong wherever a distribution or a container
//! switched something off.

/// What the kernel offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Support {
    /// The version of Landlock's interface, or why there is none.
    pub landlock: Result<u32, NoLandlock>,
    /// Whether filters of system calls can be set.
    pub seccomp: bool,
}

/// Why there is no Landlock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoLandlock {
    /// The kernel is too old or was built without it.
    NotBuilt,
    /// It was built in, but is not among the modules that were switched on at boot.
    SwitchedOff,
    /// Something else (a container's own filter) answers in its place.
    Refused,
}

impl NoLandlock {
    /// As a sentence's part.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::NotBuilt => "the kernel has no Landlock (Linux 5.13 brought it)",
            Self::SwitchedOff => "Landlock is switched off: it is missing in the kernel's parameter `lsm=`",
            Self::Refused => "Landlock is refused here, as some containers do",
        }
    }
}

/// Something that a sandbox should hold and this kernel cannot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lack {
    /// Nothing is held about files.
    Files,
    /// Files outside can be cut to nothing.
    Truncation,
    /// System calls are not filtered: network, namespaces, kernel keyrings.
    Calls,
    /// Processes outside, gjc among them, can be signalled; abstract sockets of others can be reached.
    Scopes,
    /// Sockets with a path are not covered by the rules about files.
    LocalSockets,
}

impl Lack {
    /// What it means, as a sentence without its end.
    #[must_use]
    pub fn sentence(self) -> &'static str {
        match self {
            Self::Files => "files cannot be guarded: this kernel offers no Landlock (Linux 5.13 and later do)",
            Self::Truncation => {
                "files outside could be emptied: this kernel's Landlock does not cover truncation (Linux 6.2 and later do)"
            }
            Self::Calls => "system calls cannot be filtered: this kernel offers no seccomp filters",
            Self::Scopes => {
                "processes outside can be signalled and their abstract sockets reached (Linux 6.12 and later prevent it)"
            }
            Self::LocalSockets => "rules about files do not cover sockets with a path (Linux 7.1 and later do)",
        }
    }
}

impl Support {
    /// Asks the kernel.
    #[must_use]
    pub fn now() -> Self {
        Self { landlock: landlock(), seccomp: seccomp() }
    }

    /// All that it lacks, the gravest first.
    #[must_use]
    pub fn lacks(&self) -> Vec<Lack> {
        let version = self.landlock.unwrap_or(0);
        [
            (version < 1, Lack::Files),
            ((1..3).contains(&version), Lack::Truncation),
            (!self.seccomp, Lack::Calls),
            ((1..6).contains(&version), Lack::Scopes),
            ((1..9).contains(&version), Lack::LocalSockets),
        ]
        .into_iter()
        .filter_map(|(lacks, what)| lacks.then_some(what))
        .collect()
    }

    /// What it lacks of that without which nothing outside is safe.
    #[must_use]
    pub fn essential(&self) -> Vec<Lack> {
        self.lacks().into_iter().filter(|lack| matches!(lack, Lack::Files | Lack::Truncation | Lack::Calls)).collect()
    }

    /// Whether it offers nothing at all.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        self.landlock.is_err() && !self.seccomp
    }

    /// Whether the rules about files cover sockets with a path.
    #[must_use]
    pub fn covers_local_sockets(&self) -> bool {
        self.landlock.is_ok_and(|version| version >= 9)
    }
}

/// `LANDLOCK_CREATE_RULESET_VERSION` (landlock_create_ruleset(2)).
const ASK_VERSION: libc::c_ulong = 1;

fn landlock() -> Result<u32, NoLandlock> {
    // SAFETY: with this flag the call takes no pointer and makes nothing; it only answers.
    let answer = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<libc::c_void>(), 0usize, ASK_VERSION)
    };
    match u32::try_from(answer) {
        Ok(version) if version > 0 => Ok(version),
        _ => Err(match std::io::Error::last_os_error().raw_os_error() {
            Some(libc::ENOSYS) => NoLandlock::NotBuilt,
            Some(libc::EOPNOTSUPP) => NoLandlock::SwitchedOff,
            _ => NoLandlock::Refused,
        }),
    }
}

fn seccomp() -> bool {
    let action: u32 = libc::SECCOMP_RET_ERRNO;
    // SAFETY: reads one number behind the pointer, which lives for the call; nothing is set.
    let known = unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_GET_ACTION_AVAIL, 0, &raw const action) } == 0;
    known && std::env::consts::ARCH.try_into().is_ok_and(|_: seccompiler::TargetArch| true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_version_lacks_what_came_later() {
        use Lack::*;
        for (landlock, seccomp, lacks, essential) in [
            (Err(NoLandlock::NotBuilt), true, vec![Files], vec![Files]),
            (Err(NoLandlock::SwitchedOff), false, vec![Files, Calls], vec![Files, Calls]),
            (Ok(1), true, vec![Truncation, Scopes, LocalSockets], vec![Truncation]),
            (Ok(3), true, vec![Scopes, LocalSockets], vec![]),
            (Ok(6), false, vec![Calls, LocalSockets], vec![Calls]),
            (Ok(7), true, vec![LocalSockets], vec![]),
            (Ok(9), true, vec![], vec![]),
            (Ok(99), true, vec![], vec![]),
        ] {
            let support = Support { landlock, seccomp };
            assert_eq!((support.lacks(), support.essential()), (lacks, essential), "{support:?}");
        }
    }
}
