//! Whole texts beside the session: what was too long for an entry stands in a file of the session's own folder
//! (`<session file without .jsonl>/`), which the entry names.
//!
//! The order is that of blobs: the file (temporary name, bytes, rename), then the line that names it; both are synced by
//! the same commit before the line counts as durable.

use crate::blobs::{Unsynced, store_whole};
use crate::fs::{Fs, make_dirs};
use crate::sync::Shared;
use crate::writer::Writer;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Files that lines which are not written yet name: name, content.
#[derive(Default)]
pub(crate) struct Artifacts(Vec<(String, Arc<[u8]>)>);

impl Artifacts {
    /// Writes all of them into the folder of the session `file`; those that are there already, whole, are left alone.
    /// All stay here until [`Artifacts::clear`], so that a second attempt forgets none.
    pub(crate) fn store<F: Fs>(&self, fs: &F, shared: &Shared<F>, file: &Path) -> io::Result<Vec<Unsynced<F>>> {
        if self.0.is_empty() {
            return Ok(Vec::new());
        }
        let dir = folder_of(file);
        let mut holders = BTreeSet::new();
        let stored = make_dirs(fs, &dir, &mut holders)
            .and_then(|()| self.0.iter().map(|(name, bytes)| store_whole(fs, &dir, name, Arc::clone(bytes))).collect());
        // Only now: a commit that runs at this moment must not take these folders before the names are in them.
        holders.insert(dir);
        shared.new_names_in(holders);
        stored
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

impl<F: Fs> Writer<F> {
    /// The session's own folder; it exists once something is in it. `None` for a session in memory.
    #[must_use]
    pub fn artifact_dir(&self) -> Option<PathBuf> {
        self.file_path().map(folder_of)
    }

    /// Takes a file for the session's folder in; it is written before the lines that name it. A name stands for one
    /// content: make it of the content's hash. `false` when it waits already, and in a session in memory.
    pub fn put_artifact(&mut self, name: &str, bytes: &[u8]) -> bool {
        let new = self.file_path().is_some() && !self.artifacts.0.iter().any(|(other, _)| other == name);
        if new {
            self.artifacts.0.push((name.into(), bytes.into()));
        }
        new
    }

    /// Takes back what no line names after all.
    pub fn drop_artifact(&mut self, name: &str) {
        self.artifacts.0.retain(|(other, _)| other != name);
    }
}

fn folder_of(file: &Path) -> PathBuf {
    file.with_extension("")
}
