//! File systems of a kind that the machine need not have: made in a file, mounted over a loop device.
//!
//! Only root may mount, and a kernel may lack a kind. Where it cannot be, a line that begins with `left out: ` says why, and
//! `cargo xtask ci` counts such lines. A mount lives in a namespace of its own and is gone with the processes in it, however
//! they end: nothing stays on the machine, and nobody else sees it.

use std::ffi::CString;
use std::io::{self, Write as _};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What kind of file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Shares blocks; a small one has 300 MB.
    Xfs,
    /// Shares blocks, and never writes over old ones; a small one has 110 MB.
    Btrfs,
    /// Shares none.
    Ext4,
}

impl Kind {
    /// As the kernel calls it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Xfs => "xfs",
            Self::Btrfs => "btrfs",
            Self::Ext4 => "ext4",
        }
    }

    fn options(self) -> &'static [&'static str] {
        match self {
            Self::Xfs => &["-q", "-m", "reflink=1"],
            Self::Btrfs => &["-q"],
            Self::Ext4 => &["-q", "-F"],
        }
    }

    fn made(self, image: &Path) -> Result<(), Lack> {
        let program = format!("mkfs.{}", self.name());
        let out = on_system_path(&program).args(self.options()).arg(image).output();
        match out {
            Ok(out) if out.status.success() => Ok(()),
            Ok(out) => Err(Lack::Here(format!("{program} failed: {}", said(&out.stderr)))),
            Err(why) => Err(Lack::Here(format!("{program} cannot be started ({why}); install it"))),
        }
    }
}

/// Why there is none.
enum Lack {
    /// The machine is not made for it: nothing to be done here.
    Machine(String),
    /// A build machine may not lack it.
    Here(String),
}

/// A file system in a file of its own, for as long as it lives.
#[derive(Debug)]
pub struct Disk {
    folder: Folder,
    kind: Kind,
}

#[derive(Debug)]
enum Folder {
    Own(tempfile::TempDir),
    Kept(PathBuf),
}

impl Disk {
    /// An empty file system of so many MiB; `None`, and a line on stderr, where there can be none. Under `GJC_CI=1` it is a
    /// failure that only a program is missing, or that root gets none although the kernel has what it takes.
    #[must_use]
    #[track_caller]
    pub fn new(kind: Kind, mib: u64) -> Option<Self> {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        Self { folder: Folder::Own(folder), kind }.filled(mib)
    }

    /// As [`Disk::new`], in this folder, where it stays for the next who wants it; a bench makes its files once.
    #[must_use]
    #[track_caller]
    pub fn kept(kind: Kind, mib: u64, folder: &Path) -> Option<Self> {
        std::fs::create_dir_all(folder).expect("the folder can be made");
        let disk = Self { folder: Folder::Kept(folder.into()), kind };
        if disk.image().exists() { Some(disk) } else { disk.filled(mib) }
    }

    #[track_caller]
    fn filled(self, mib: u64) -> Option<Self> {
        let done = self.fill(mib);
        let why = match done {
            Ok(()) => return Some(self),
            Err(why) => why,
        };
        let _ = std::fs::remove_file(self.image());
        let ci = std::env::var("GJC_CI").is_ok_and(|value| value == "1");
        let name = self.kind.name();
        match why {
            Lack::Here(why) if ci => panic!("GJC_CI=1, but there is no {name}, and it may not be left out here: {why}"),
            Lack::Machine(why) | Lack::Here(why) => {
                // In one piece: what counts such lines looks at their beginning.
                let line = format!("left out: no {name} here: {why}\n");
                let _ = io::stderr().write_all(line.as_bytes());
            }
        }
        None
    }

    fn fill(&self, mib: u64) -> Result<(), Lack> {
        if !may_mount() {
            return Err(Lack::Machine("only root may mount a file system".into()));
        }
        if !Path::new("/dev/loop-control").exists() {
            return Err(Lack::Machine("this system has no loop devices".into()));
        }
        let here = |why: io::Error| Lack::Here(why.to_string());
        std::fs::create_dir_all(self.at()).map_err(here)?;
        std::fs::File::create(self.image()).and_then(|image| image.set_len(mib << 20)).map_err(here)?;
        self.kind.made(&self.image())?;
        let out = self.command(Path::new("true")).output().map_err(here)?;
        if out.status.success() {
            return Ok(());
        }
        let why = said(&out.stderr);
        // Asked after the mount, which loads a module that is there.
        let known = std::fs::read_to_string("/proc/filesystems").unwrap_or_default();
        if known.split_whitespace().any(|name| name == self.kind.name()) {
            Err(Lack::Here(why))
        } else {
            Err(Lack::Machine(why))
        }
    }

    fn image(&self) -> PathBuf {
        self.folder().join(format!("{}.image", self.kind.name()))
    }

    fn folder(&self) -> &Path {
        match &self.folder {
            Folder::Own(folder) => folder.path(),
            Folder::Kept(folder) => folder,
        }
    }

    /// Where it is mounted for those in its namespace; for everybody else an empty folder.
    #[must_use]
    pub fn at(&self) -> PathBuf {
        self.folder().join(format!("{} 디스크", self.kind.name()))
    }

    /// A command for which the file system is mounted. What it leaves there, the next one finds.
    #[must_use]
    pub fn command(&self, program: &Path) -> Command {
        // The end of the namespace would unmount it too, but later than the next command may want it.
        let mount =
            r#"mount -t "$1" -o loop "$2" "$3"; at=$3; shift 3; "$@" && code=0 || code=$?; umount "$at"; exit $code"#;
        let mut command = on_system_path("unshare");
        command.args(["--mount", "--propagation", "private", "sh", "-ec", mount, "sh", self.kind.name()]);
        command.arg(self.image()).arg(self.at()).arg(program).stdin(Stdio::null());
        command
    }

    /// Runs one test of the test binary that calls this on the mounted file system, with the variable `role` set to where
    /// that is. What it says goes to the output of the caller.
    #[track_caller]
    pub fn run_test(&self, role: &str, test: &str) {
        let own = std::env::current_exe().expect("a program knows where it is");
        let out = self.command(&own).args(["--exact", "--nocapture", test]).env(role, self.at()).output();
        let out = out.expect("it could be started before");
        let (told, heard) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
        eprint!("{heard}");
        assert!(out.status.success(), "{test} on {}:\n{told}{heard}", self.kind.name());
        assert!(told.contains("1 passed"), "there is no test {test}:\n{told}");
    }
}

/// What makes and mounts file systems is in folders that not everybody has on PATH.
fn on_system_path(program: &str) -> Command {
    let mut path = std::env::var_os("PATH").unwrap_or_default();
    path.push(":/usr/sbin:/sbin:/usr/bin:/bin");
    // Found along the PATH that the command gets.
    let mut command = Command::new(program);
    command.env("PATH", path);
    command
}

fn said(stderr: &[u8]) -> String {
    String::from_utf8_lossy(stderr)
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect::<Vec<_>>()
        .join("; ")
}

/// Whether this process has `CAP_SYS_ADMIN`: the root of a container often lacks it. capabilities(7).
fn may_mount() -> bool {
    const CAP_SYS_ADMIN: u32 = 21;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let held = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    held.and_then(|held| u64::from_str_radix(held.trim(), 16).ok()).is_some_and(|held| held >> CAP_SYS_ADMIN & 1 == 1)
}

/// Bytes of a file that stand together on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Where they begin in the file.
    pub logical: u64,
    /// Where they begin on the disk.
    pub physical: u64,
    /// How many they are.
    pub len: u64,
    /// Whether another file has them too.
    pub shared: bool,
}

/// Where a file stands on the disk (`FIEMAP`), written out first.
///
/// # Errors
/// Where the file system does not tell.
pub fn extents(path: &Path) -> io::Result<Vec<Extent>> {
    // struct fiemap and struct fiemap_extent of linux/fiemap.h.
    const FS_IOC_FIEMAP: libc::Ioctl = 0xC020_660B_u32 as libc::Ioctl;
    const FLAG_SYNC: u32 = 1;
    const EXTENT_LAST: u32 = 1;
    const EXTENT_SHARED: u32 = 0x2000;
    #[repr(C)]
    #[derive(Clone, Copy, Default)]
    struct Found {
        logical: u64,
        physical: u64,
        len: u64,
        reserved: [u64; 2],
        flags: u32,
        more: [u32; 3],
    }
    #[repr(C)]
    struct Map {
        start: u64,
        len: u64,
        flags: u32,
        mapped: u32,
        count: u32,
        reserved: u32,
        found: [Found; 64],
    }
    let file = std::fs::File::open(path)?;
    let (mut all, mut start) = (Vec::new(), 0);
    loop {
        let mut map = Map {
            start,
            len: u64::MAX - start,
            flags: FLAG_SYNC,
            mapped: 0,
            count: 64,
            reserved: 0,
            found: [Found::default(); 64],
        };
        // SAFETY: the number belongs to this structure, whose `count` says how many places stand behind its head; the file is open.
        if unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP, &raw mut map) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let found = &map.found[..(map.mapped as usize).min(64)];
        all.extend(found.iter().map(|extent| Extent {
            logical: extent.logical,
            physical: extent.physical,
            len: extent.len,
            shared: extent.flags & EXTENT_SHARED != 0,
        }));
        match found.last() {
            Some(last) if last.flags & EXTENT_LAST == 0 => start = last.logical + last.len,
            _ => return Ok(all),
        }
    }
}

/// Bytes that a file system has left for its users.
///
/// # Errors
/// As statvfs(3).
pub fn free(path: &Path) -> io::Result<u64> {
    let name = CString::new(path.as_os_str().as_bytes())?;
    let mut found = std::mem::MaybeUninit::<libc::statvfs>::zeroed();
    // SAFETY: both pointers are to live values of the right types.
    if unsafe { libc::statvfs(name.as_ptr(), found.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: zeroed, so every bit pattern is set, and filled by the call that succeeded.
    let found = unsafe { found.assume_init() };
    Ok(found.f_bavail * found.f_frsize)
}

/// Takes what is left but for about `spare` bytes, in a new file; with 0 down to the last block.
///
/// # Errors
/// Where the file cannot be made, or the file system does not reserve.
pub fn fill(file: &Path, spare: u64) -> io::Result<()> {
    let filler = std::fs::File::create(file)?;
    let folder = file.parent().unwrap_or(file);
    let mut len = 0_u64;
    let mut step = free(folder)?.saturating_sub(spare) / 4096 * 4096;
    while step >= 4096 {
        if spare > 0 && free(folder)? <= spare {
            break;
        }
        let (at, more) = (len.cast_signed(), step.cast_signed());
        // SAFETY: a plain system call on a file that is open.
        if unsafe { libc::fallocate(filler.as_raw_fd(), 0, at, more) } == 0 {
            len += step;
        } else {
            match io::Error::last_os_error() {
                why if why.kind() == io::ErrorKind::StorageFull => step = step / 2 / 4096 * 4096,
                why => return Err(why),
            }
        }
    }
    filler.sync_all()
}
