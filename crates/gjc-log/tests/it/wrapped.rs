//! A file system on which other things happen, on top of a good one.

use gjc_log::fs::{Fs, FsFile, Held, Open, Owner, Stat};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

/// On top of `F`: locks may be refused, and another program may be faster at the moment of an append.
pub(crate) struct Wrapped<F: Fs> {
    inner: F,
    pub(crate) hooks: Arc<Hooks>,
}

#[derive(Default)]
pub(crate) struct Hooks {
    pub(crate) no_locks: bool,
    /// Appended by another program right before, or right after, our next append.
    pub(crate) before_append: Mutex<Option<Vec<u8>>>,
    pub(crate) after_append: Mutex<Option<Vec<u8>>>,
    /// The next sync says that it has begun, and waits until it may.
    pub(crate) hold_sync: Mutex<Option<(Sender<()>, Receiver<()>)>>,
    /// A folder that may not be read.
    pub(crate) unreadable: Mutex<Option<PathBuf>>,
    /// Nothing can be cut off.
    pub(crate) no_truncate: AtomicBool,
    /// Bytes that were read.
    pub(crate) read: AtomicU64,
    /// Bytes that were written over others.
    pub(crate) rewritten: AtomicU64,
    /// Cut to so many bytes by another program right after our next rewrite.
    pub(crate) cut_after_rewrite: Mutex<Option<u64>>,
    /// The process kills itself right before its so-manieth step that changes something, counted from 1. 0 is never.
    pub(crate) dies_before: AtomicU64,
    /// Such steps so far.
    pub(crate) steps: AtomicU64,
    /// Files that were opened or asked about, and folders that were listed.
    pub(crate) asked: AtomicU64,
}

impl Hooks {
    fn step(&self) {
        if self.steps.fetch_add(1, Ordering::SeqCst) + 1 == self.dies_before.load(Ordering::SeqCst) {
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).unwrap();
        }
    }

    fn ask(&self) {
        self.asked.fetch_add(1, Ordering::Relaxed);
    }

    /// Holds the next sync: a message when it has begun, and what lets it go on.
    pub(crate) fn hold(&self) -> (Receiver<()>, Sender<()>) {
        let ((begun, begins), (goes_on, go_on)) = (channel(), channel());
        *self.hold_sync.lock().unwrap() = Some((begun, go_on));
        (begins, goes_on)
    }
}

pub(crate) struct WrappedFile<F: Fs> {
    inner: F::File,
    hooks: Arc<Hooks>,
}

impl<F: Fs> Wrapped<F> {
    pub(crate) fn new(inner: F, no_locks: bool) -> Self {
        Self { inner, hooks: Arc::new(Hooks { no_locks, ..Hooks::default() }) }
    }
}

impl<F: Fs> Fs for Wrapped<F> {
    type File = WrappedFile<F>;

    fn open(&self, path: &Path, how: Open) -> io::Result<WrappedFile<F>> {
        if how == Open::CreateNew {
            self.hooks.step();
        }
        self.hooks.ask();
        Ok(WrappedFile { inner: self.inner.open(path, how)?, hooks: Arc::clone(&self.hooks) })
    }
    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.hooks.step();
        self.inner.rename_new(from, to)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.hooks.step();
        self.inner.rename(from, to)
    }
    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.hooks.step();
        if self.hooks.unreadable.lock().unwrap().as_deref() == Some(dir) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        self.inner.sync_dir(dir)
    }
    fn stat(&self, path: &Path) -> io::Result<Stat> {
        self.hooks.ask();
        self.inner.stat(path)
    }
    fn lstat(&self, path: &Path) -> io::Result<Stat> {
        self.hooks.ask();
        self.inner.lstat(path)
    }
    fn mkdir(&self, dir: &Path) -> io::Result<()> {
        self.hooks.step();
        self.inner.mkdir(dir)
    }
    fn unlink(&self, path: &Path) -> io::Result<()> {
        self.hooks.step();
        self.inner.unlink(path)
    }
    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        self.hooks.ask();
        self.inner.list(dir)
    }
    fn owner(&self) -> Owner {
        self.inner.owner()
    }
    fn is_dead(&self, owner: &Owner) -> bool {
        self.inner.is_dead(owner)
    }
}

impl<F: Fs> FsFile for WrappedFile<F> {
    fn append(&self, bytes: &[u8]) -> io::Result<usize> {
        self.hooks.step();
        let other = |hook: &Mutex<Option<Vec<u8>>>| {
            if let Some(bytes) = hook.lock().unwrap_or_else(PoisonError::into_inner).take() {
                self.inner.append(&bytes).unwrap();
            }
        };
        other(&self.hooks.before_append);
        let done = self.inner.append(bytes);
        other(&self.hooks.after_append);
        done
    }
    fn rewrite_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.hooks.rewritten.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        self.inner.rewrite_at(bytes, offset)?;
        match self.hooks.cut_after_rewrite.lock().unwrap().take() {
            Some(len) => self.inner.truncate(len),
            None => Ok(()),
        }
    }
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let got = self.inner.read_at(buf, offset)?;
        self.hooks.read.fetch_add(got as u64, Ordering::Relaxed);
        Ok(got)
    }
    fn clone_range(&self, source: &Self, from: u64, len: u64) -> io::Result<()> {
        self.hooks.step();
        self.inner.clone_range(&source.inner, from, len)
    }
    fn copy_range(&self, source: &Self, from: u64, len: u64) -> io::Result<u64> {
        self.hooks.step();
        // In many steps, so that there is a middle.
        self.inner.copy_range(&source.inner, from, len.min(20_000))
    }
    fn truncate(&self, len: u64) -> io::Result<()> {
        self.hooks.step();
        match self.hooks.no_truncate.load(Ordering::Relaxed) {
            true => Err(io::ErrorKind::PermissionDenied.into()),
            false => self.inner.truncate(len),
        }
    }
    fn sync_data(&self) -> io::Result<()> {
        self.hooks.step();
        let held = self.hooks.hold_sync.lock().unwrap().take();
        if let Some((begun, go_on)) = held {
            begun.send(()).unwrap();
            go_on.recv().unwrap();
        }
        self.inner.sync_data()
    }
    fn stat(&self) -> io::Result<Stat> {
        self.inner.stat()
    }
    fn try_lock(&self) -> io::Result<Held> {
        if self.hooks.no_locks { Err(io::ErrorKind::Unsupported.into()) } else { self.inner.try_lock() }
    }
    fn lock_holder(&self) -> Option<u32> {
        self.inner.lock_holder()
    }
}
