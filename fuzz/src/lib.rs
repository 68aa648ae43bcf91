//! What the targets share: an allocator that knows how much was in use at most.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The system's allocator, counting.
#[derive(Debug)]
pub struct Peak {
    now: AtomicUsize,
    most: AtomicUsize,
    base: AtomicUsize,
}

impl Peak {
    /// Nothing in use.
    #[must_use]
    pub const fn new() -> Self {
        Self { now: AtomicUsize::new(0), most: AtomicUsize::new(0), base: AtomicUsize::new(0) }
    }

    /// Begins to measure.
    pub fn begin(&self) {
        let now = self.now.load(Relaxed);
        self.base.store(now, Relaxed);
        self.most.store(now, Relaxed);
    }

    /// How many bytes more than at the beginning were in use at one moment.
    pub fn end(&self) -> usize {
        self.most.load(Relaxed).saturating_sub(self.base.load(Relaxed))
    }
}

impl Default for Peak {
    fn default() -> Self {
        Self::new()
    }
}

// SAFETY: every call goes to the system's allocator unchanged; the counters touch no memory of it.
unsafe impl GlobalAlloc for Peak {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = self.now.fetch_add(layout.size(), Relaxed) + layout.size();
        self.most.fetch_max(now, Relaxed);
        // SAFETY: the caller's promise about the layout is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        self.now.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the pointer came from `alloc` above, with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}
