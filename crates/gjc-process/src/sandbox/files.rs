//! The rules about files, connections and signals, as a ruleset of Landlock.

use std::{
    fs::File,
    os::{
        fd::OwnedFd,
        unix::fs::{FileTypeExt, OpenOptionsExt},
    },
    path::Path,
};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, Scope,
};

use super::{Network, Sandbox, SandboxError};

/// The newest interface whose rights were looked at one by one. Kernels that know fewer hold fewer ([`super::Support`]).
const KNOWN: ABI = ABI::V9;

/// Makes the ruleset; `None` where the kernel has no Landlock.
pub(super) fn ruleset(sandbox: &Sandbox) -> Result<Option<OwnedFd>, SandboxError> {
    let wrong = |error: landlock::RulesetError| SandboxError::Files(error.to_string());
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(KNOWN))
        .and_then(|rules| rules.scope(Scope::from_all(KNOWN)))
        .map_err(wrong)?;
    if sandbox.network == Network::Denied {
        // No rule follows: no port can be bound or connected to. The filter of system calls says the same of all sockets.
        rules = rules.handle_access(AccessNet::from_all(ABI::V4)).map_err(wrong)?;
    }
    let mut made = rules.create().map_err(wrong)?;
    let read = AccessFs::from_read(KNOWN);
    let change = AccessFs::from_all(KNOWN) & !(AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev);
    let device = read | AccessFs::WriteFile | AccessFs::IoctlDev;
    for (paths, access) in [(&sandbox.read, read), (&sandbox.write, change), (&sandbox.devices, device)] {
        for path in paths {
            made = grant(made, path, access)?;
        }
    }
    Ok(made.into())
}

/// Grants access to a file, or to all below a folder. A link grants nothing: where it leads is named by itself.
fn grant(rules: RulesetCreated, path: &Path, access: BitFlags<AccessFs>) -> Result<RulesetCreated, SandboxError> {
    // O_PATH opens nothing: no device is woken, no pipe waits for its other end.
    let opened = File::options().read(true).custom_flags(libc::O_PATH | libc::O_NOFOLLOW).open(path);
    let (fd, kind) = match opened.and_then(|fd| Ok((fd.metadata()?.file_type(), fd))) {
        Ok((kind, fd)) if !kind.is_symlink() => (fd, kind),
        // Gone, or not ours to reach: nothing can be granted, so nothing is.
        _ => return Ok(rules),
    };
    let access = if kind.is_dir() { access } else { access & AccessFs::from_file(KNOWN) };
    // Commands to a device are granted to folders of devices and to devices; of other files they are no right.
    let access =
        if kind.is_dir() || kind.is_char_device() { access } else { access & !BitFlags::from(AccessFs::IoctlDev) };
    rules
        .add_rule(PathBeneath::new(fd, access))
        .map_err(|error| SandboxError::Files(format!("{} cannot be granted: {error}", path.display())))
}
