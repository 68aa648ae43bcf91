//! Bytes that go from one file to another without passing through this process.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use rustix::ioctl::{Setter, opcode};

/// `struct file_clone_range` of ioctl_ficlonerange(2).
#[repr(C)]
struct CloneRange {
    source: i64,
    from: u64,
    len: u64,
    to: u64,
}

const FICLONERANGE: rustix::ioctl::Opcode = opcode::write::<CloneRange>(0x94, 13);

/// Lets `len` bytes of `source` from `from` on stand in `target` from `to` on too, in the same blocks. What is dirty of
/// `source` there, the kernel writes out first.
pub(super) fn share(source: &File, from: u64, len: u64, target: &File, to: u64) -> io::Result<()> {
    // Zero would mean "up to the end".
    if len == 0 {
        return Ok(());
    }
    let range = CloneRange { source: source.as_raw_fd().into(), from, len, to };
    // SAFETY: the number belongs to this structure, which the kernel only reads; both files are open for the whole call.
    let done = unsafe { rustix::ioctl::ioctl(target, Setter::<FICLONERANGE, CloneRange>::new(range)) };
    done.map_err(io::Error::from)
}

/// Copies up to `len` bytes of `source` from `from` on to `to` in `target`; how many.
pub(super) fn copy(source: &File, mut from: u64, len: u64, target: &File, mut to: u64) -> io::Result<u64> {
    // More than the kernel does at once; it says how far it came.
    let len = usize::try_from(len).unwrap_or(usize::MAX).min(1 << 30);
    let done = rustix::fs::copy_file_range(source, Some(&mut from), target, Some(&mut to), len)?;
    Ok(done as u64)
}
