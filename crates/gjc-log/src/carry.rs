//! What stands beside a session (whole texts, outputs of commands) comes along to the one that goes on with its entries,
//! which name these files.
//!
//! They never change, so they are shared (blocks, else a hard link) and copied only where neither can be. Not carried:
//! children, however many, which are read where they are through `parentSession`; and the draft of a prompt.

use crate::fork::copy;
use crate::fs::{Fs, FsFile, Open, make_dirs};
use crate::open::temporary_name;
use crate::writer::Writer;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

/// Brings the files of the folder `old` to `new`, which is made when there are any. Best effort: a note says what did not come.
pub fn carry_artifacts<F: Fs>(fs: &F, old: &Path, new: &Path) -> Option<String> {
    // Most sessions have no such folder.
    let files: Vec<PathBuf> = fs.list(old).ok()?.into_iter().filter(|file| comes_along(fs, file)).collect();
    if files.is_empty() {
        return None;
    }
    let mut holders: BTreeSet<PathBuf> = new.parent().map(Path::to_path_buf).into_iter().collect();
    let made = make_dirs(fs, new, &mut holders);
    let mut sharing = true;
    let left = files.iter().filter(|from| bring(fs, from, new, &mut sharing).is_err()).count();
    holders.insert(new.into());
    let named = made.and_then(|()| holders.iter().try_for_each(|holder| fs.sync_dir(holder)));
    (left > 0 || named.is_err()).then(|| {
        let (old, new) = (old.display(), new.display());
        format!("{left} of the files beside the session could not be brought to {new}; they are in {old}")
    })
}

fn comes_along<F: Fs>(fs: &F, file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    // A child has its file, and may have a torn end or a lease beside it.
    let child = name.ends_with(".jsonl") || name.contains(".jsonl.");
    !child && name != "draft.txt" && !name.starts_with('.') && fs.lstat(file).is_ok_and(|stat| stat.is_file)
}

/// Brings one file; `sharing`: whether blocks could be shared so far.
fn bring<F: Fs>(fs: &F, from: &Path, folder: &Path, sharing: &mut bool) -> io::Result<()> {
    let to = folder.join(from.file_name().unwrap_or_default());
    // What is there already was written for the same entries.
    if fs.lstat(&to).is_ok() {
        return Ok(());
    }
    let source = fs.open(from, Open::Read)?;
    let len = source.stat()?.len;
    if *sharing {
        match staged(fs, &to, |file| file.clone_range(&source, 0, len)) {
            Ok(()) => return Ok(()),
            Err(_) => *sharing = false,
        }
    }
    if fs.link(from, &to).is_ok() {
        return Ok(());
    }
    staged(fs, &to, |file| copy(file, &source, 0, len).map(drop))
}

/// A file that has its name only once its content is durable.
fn staged<F: Fs>(fs: &F, to: &Path, fill: impl FnOnce(&F::File) -> io::Result<()>) -> io::Result<()> {
    let temporary = temporary_name(to);
    // Left by a process that died here: the folder is the new session's own.
    let _ = fs.unlink(&temporary);
    let file = fs.open(&temporary, Open::CreateNew)?;
    let done = fill(&file).and_then(|()| file.sync_data()).and_then(|()| fs.rename_new(&temporary, to));
    done.inspect_err(|_| drop(fs.unlink(&temporary)))
}

impl<F: Fs> Writer<F> {
    /// Brings what stands in the folder of the session that this one goes on with ([`carry_artifacts`]).
    pub fn carry_artifacts_from(&self, old: &Path) -> Option<String> {
        carry_artifacts(&**self.fs(), old, &self.artifact_dir()?)
    }
}
