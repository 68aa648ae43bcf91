//! What can go wrong with a session file, as sentences.

use std::io;
use std::path::PathBuf;

/// Why a session file cannot be opened. The file is untouched in every case.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// It is not there.
    #[error("File not found: {}", .0.display())]
    NotFound(PathBuf),
    /// It cannot be read.
    #[error("{} cannot be opened: {why}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        why: io::Error,
    },
    /// Its first line is no session header.
    #[error("{} is no session file: {why}; it was left as it is", .path.display())]
    NoHeader {
        /// The file.
        path: PathBuf,
        /// What stands there instead.
        why: String,
    },
    /// A version that this program does not read.
    #[error("{} has session version {version}, and this gjc reads versions 1 to {max}; it was left as it is", .path.display(), max = gjc_entry::header::MAX_VERSION)]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u32,
    },
    /// A version that is read, and not appended to.
    #[error("{} has session version {version}, whose entries cannot be added to", .path.display())]
    Old {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u32,
    },
    /// A new session whose writer died before it could give the file its name.
    #[error("{} was cut off in the first moments of a session, before it had its name", .path.display())]
    Unnamed {
        /// The file, under its temporary name.
        path: PathBuf,
    },
    /// Somebody else has it open.
    #[error("session is open in another process{}", .pid.map_or(String::new(), |pid| format!(" (pid {pid})")))]
    Locked {
        /// The file.
        path: PathBuf,
        /// Who, where known.
        pid: Option<u32>,
    },
    /// Somebody else has it open, and a lease says so: the file system refuses locks.
    #[error("session is open in another process ({})", .owner.as_ref().map_or("unknown".into(), |owner| format!("pid {} on {}", owner.pid, owner.host)))]
    Leased {
        /// The file.
        path: PathBuf,
        /// Who, where it can be read.
        owner: Option<crate::fs::Owner>,
    },
}

impl OpenError {
    /// The way out, where there is one.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NotFound(_) => Some("gjc sessions list shows the sessions that there are"),
            Self::Locked { .. } => Some("close it there, or look at it with: gjc sessions show <id>"),
            Self::Leased { .. } => Some(
                "close it there; if that process is gone, its lease runs out half a minute after somebody begins to wait for it",
            ),
            Self::Unnamed { .. } => {
                Some("rename it, so that it begins without the dot and ends in .jsonl, to go on with it")
            }
            Self::Old { .. } => Some("it goes on in a copy of version 3, which gjc --resume makes"),
            Self::Version { .. } => Some("the program that wrote it reads it; a newer gjc may too"),
            _ => None,
        }
    }
}

/// Why an append was refused. Nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// The named parent is not in the session.
    #[error("the entry {0} is not in this session")]
    NoSuchParent(gjc_entry::EntryId),
    /// A line over 4 GiB.
    #[error("an entry of {0} bytes is more than a session file can hold")]
    TooLong(usize),
    /// The session was closed.
    #[error("the session is closed")]
    Closed,
}

/// Why there is no fork, or no branch. The source is untouched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ForkError {
    /// The source cannot be read.
    #[error(transparent)]
    Source(#[from] OpenError),
    /// There is such a file already.
    #[error("{} exists already; nothing was copied", .0.display())]
    Exists(PathBuf),
    /// Another process makes the same file.
    #[error("another process is making {} at this moment", .0.display())]
    Busy(PathBuf),
    /// The new file cannot be written.
    #[error("{} cannot be copied to {}: {why}; there is no new session, and the old one is as it was", .from.display(), .to.display())]
    Io {
        /// The source.
        from: PathBuf,
        /// The new file.
        to: PathBuf,
        /// Why.
        why: io::Error,
    },
    /// A branch at an entry that is not there.
    #[error("the entry {0} is not in this session")]
    NoSuchEntry(gjc_entry::EntryId),
    /// A line of the path cannot be read.
    #[error("the branch cannot be made: {0}")]
    Unreadable(gjc_entry::Damage),
    /// Only the end of the source was read so far.
    #[error("the session is not read as a whole yet; this is a fault of gjc")]
    NotRead,
}

impl ForkError {
    /// The way out, where there is one.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Source(error) => error.hint(),
            Self::Busy(_) => Some("try again in a moment"),
            Self::Io { why, .. } if why.kind() == io::ErrorKind::StorageFull => {
                Some("make room on the disk, or keep sessions elsewhere with --session-dir")
            }
            Self::NoSuchEntry(_) => Some("/tree shows the entries that there are"),
            _ => None,
        }
    }
}
