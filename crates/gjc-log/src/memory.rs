//! Tables of some megabytes.

/// Asks for huge pages under memory that will be written to as a whole: on some machines a fault for each 4 KiB costs more than
/// what is put there. A hint; a system that has none to give ignores it.
pub(crate) fn prefer_huge_pages(bytes: &mut [u8]) {
    #[cfg(target_os = "linux")]
    {
        const HUGE: usize = 2 << 20;
        let skip = bytes.as_ptr().align_offset(HUGE);
        let Some(inner) = bytes.get_mut(skip..) else { return };
        // Whole pages that are ours alone: no byte is made resident that is not wanted.
        let len = inner.len() / HUGE * HUGE;
        if len > 0 {
            // SAFETY: the pages are ours, and the advice changes nothing of what is in them.
            let _ = unsafe { rustix::mm::madvise(inner.as_mut_ptr().cast(), len, rustix::mm::Advice::LinuxHugepage) };
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = bytes;
}
