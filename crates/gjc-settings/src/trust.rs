//! Which bytes of which project's file a person has let in. Nothing is trusted by its name alone, and no other byte of it.

use crate::files::{self, FileError};
use sha2::{Digest, Sha256};
use std::fmt;
use std::fs;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The SHA-256 of a file's bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentHash(String);

impl ContentHash {
    /// Of these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(hex(&Sha256::digest(bytes)))
    }
}

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.0)
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What was let in: one file for each project below `trust` in the agent folder. Its name is the hash of the project's real
/// path, byte by byte, so that another spelling (a link, another Unicode form, another case) is another project. Its first
/// line is the hash of the content; the second is the path, for a person.
#[derive(Debug, Clone)]
pub struct Trust {
    dir: PathBuf,
}

impl Trust {
    /// Of an agent folder.
    #[must_use]
    pub fn new(agent: &Path) -> Self {
        Self { dir: agent.join("trust") }
    }

    /// Of an agent folder, for the instruction files of projects: each by its own path.
    #[must_use]
    pub fn of_instructions(agent: &Path) -> Self {
        Self { dir: agent.join("trust/instructions") }
    }

    /// Of an agent folder, for the skills of projects: each `SKILL.md` by its own path.
    #[must_use]
    pub fn of_skills(agent: &Path) -> Self {
        Self { dir: agent.join("trust/skills") }
    }

    /// Of an agent folder, for the files of projects that hooks name: each by its own path.
    #[must_use]
    pub fn of_hooks(agent: &Path) -> Self {
        Self { dir: agent.join("trust/hooks") }
    }

    /// Whether a person has let in exactly these bytes of the project at this real path. Whatever cannot be read is no
    /// trust.
    #[must_use]
    pub fn holds(&self, root: &Path, hash: &ContentHash) -> bool {
        let wanted = format!("{hash}\n");
        let mut found = vec![0; wanted.len()];
        let read = fs::File::open(self.file(root)).and_then(|mut file| file.read_exact(&mut found));
        read.is_ok() && found == wanted.as_bytes()
    }

    /// Lets these bytes in, and no others of that project any more.
    ///
    /// # Errors
    /// [`FileError`] if that cannot be kept.
    pub fn grant(&self, root: &Path, hash: &ContentHash) -> Result<(), FileError> {
        let file = self.file(root);
        let unwritable = |source: io::Error| FileError::Unwritable { path: file.clone(), source };
        files::make_private(&self.dir).map_err(unwritable)?;
        files::replace(&file, format!("{hash}\n{}\n", root.display()).as_bytes(), None).map_err(unwritable)
    }

    fn file(&self, root: &Path) -> PathBuf {
        self.dir.join(hex(&Sha256::digest(root.as_os_str().as_bytes())))
    }
}
