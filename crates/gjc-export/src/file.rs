//! A page, or a text, as a file: written under a name of its own and renamed when it is whole.

use crate::page::BEGINS;
use gjc_log::fs::{Fs, FsFile, Open};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// What may become of a file that stands where the new one goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replace {
    /// An earlier page is replaced, nothing else.
    Pages,
    /// Any file is, but for a session.
    Any,
}

/// Why nothing was written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotWritten {
    /// It is a session.
    #[error("{0} is a session file, and is not written over")]
    Session(PathBuf),
    /// It is another file of somebody.
    #[error("{0} is there already, and no earlier export")]
    Taken(PathBuf),
    /// It is no file.
    #[error("{0} is no regular file")]
    NoFile(PathBuf),
    /// The file system refused.
    #[error("{path} cannot be written: {why}")]
    Io {
        /// Where.
        path: PathBuf,
        /// Why.
        why: io::Error,
    },
}

impl NotWritten {
    /// The way out.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Taken(_) => Some("give another name, or replace it with --force"),
            Self::Session(_) | Self::NoFile(_) => Some("give another name"),
            Self::Io { .. } => None,
        }
    }
}

/// The name of a session's page where none is given: `gjc-session-<name of its file>.html`.
#[must_use]
pub fn default_name(session: &Path) -> String {
    let stem = session.file_stem().map(|stem| stem.to_string_lossy()).unwrap_or_default();
    format!("gjc-session-{stem}.html")
}

/// Makes a file of what `write` gives: under a temporary name beside it, synced, renamed. It is whole or not there; nothing
/// that stood under the name is touched before, and only what may be replaced is.
///
/// # Errors
/// [`NotWritten`]; then nothing has changed.
pub fn to_file<F: Fs>(
    fs: &F,
    path: &Path,
    replace: Replace,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<u64, NotWritten> {
    may_replace(fs, path, replace)?;
    let failed = |why| NotWritten::Io { path: path.into(), why };
    let name = path.file_name().ok_or_else(|| NotWritten::NoFile(path.into()))?;
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut temporary_name = std::ffi::OsString::from(".");
    temporary_name.push(name);
    temporary_name.push(format!(".{}.tmp", std::process::id()));
    let temporary = dir.join(temporary_name);
    // One that a process of the same number left when it died.
    let _ = fs.unlink(&temporary);
    let file = fs.open(&temporary, Open::CreateNew).map_err(failed)?;
    let wrote = (|| {
        let mut counted = Appending { file: &file, bytes: 0 };
        write(&mut counted)?;
        file.sync_data()?;
        fs.rename(&temporary, path)?;
        // Where a folder cannot be synced the name is there all the same.
        let _ = fs.sync_dir(dir);
        Ok(counted.bytes)
    })();
    wrote.map_err(|why| {
        let _ = fs.unlink(&temporary);
        failed(why)
    })
}

fn may_replace<F: Fs>(fs: &F, path: &Path, replace: Replace) -> Result<(), NotWritten> {
    let failed = |why| NotWritten::Io { path: path.into(), why };
    match fs.stat(path) {
        Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(why) => return Err(failed(why)),
        Ok(stat) if !stat.is_file => return Err(NotWritten::NoFile(path.into())),
        Ok(_) => {}
    }
    let mut beginning = [0; 64];
    let file = fs.open(path, Open::Read).map_err(failed)?;
    let got = file.read_at(&mut beginning, 0).map_err(failed)?;
    let beginning = &beginning[..got];
    let is_session = path.extension().is_some_and(|extension| extension == "jsonl")
        || beginning.starts_with(b"{\"type\":\"session\"")
        || beginning.starts_with(b"{\"type\":\"title\"");
    match replace {
        _ if is_session => Err(NotWritten::Session(path.into())),
        Replace::Pages if !beginning.starts_with(BEGINS.as_bytes()) => Err(NotWritten::Taken(path.into())),
        _ => Ok(()),
    }
}

/// A handle of the file system as something that is written to.
struct Appending<'a, T: FsFile> {
    file: &'a T,
    bytes: u64,
}

impl<T: FsFile> Write for Appending<'_, T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let wrote = self.file.append(bytes)?;
        self.bytes += wrote as u64;
        Ok(wrote)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gjc_log::fs::OsFs;

    fn page(out: &mut dyn Write) -> io::Result<()> {
        out.write_all(BEGINS.as_bytes())
    }

    #[test]
    fn an_earlier_page_is_replaced_and_nothing_else_without_a_word() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("내보내기.html");
        assert_eq!(to_file(&OsFs, &path, Replace::Pages, page).unwrap(), BEGINS.len() as u64);
        to_file(&OsFs, &path, Replace::Pages, page).unwrap();
        std::fs::write(&path, "my own notes").unwrap();
        assert!(matches!(to_file(&OsFs, &path, Replace::Pages, page), Err(NotWritten::Taken(_))));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "my own notes");
        to_file(&OsFs, &path, Replace::Any, page).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), BEGINS);
    }

    #[test]
    fn a_session_is_never_written_over() {
        let dir = tempfile::tempdir().unwrap();
        for (name, content) in [("a.jsonl", "anything"), ("copy.txt", "{\"type\":\"session\",\"id\":\"x\"}\n")] {
            let path = dir.path().join(name);
            std::fs::write(&path, content).unwrap();
            assert!(matches!(to_file(&OsFs, &path, Replace::Any, page), Err(NotWritten::Session(_))));
            assert_eq!(std::fs::read_to_string(&path).unwrap(), content);
        }
        assert!(matches!(to_file(&OsFs, dir.path(), Replace::Any, page), Err(NotWritten::NoFile(_))));
    }

    #[test]
    fn what_breaks_off_leaves_nothing_and_what_was_there() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("page.html");
        to_file(&OsFs, &path, Replace::Pages, page).unwrap();
        let breaks = |out: &mut dyn Write| out.write_all(b"half").and(Err(io::Error::other("the disk is full")));
        let told = to_file(&OsFs, &path, Replace::Pages, breaks).unwrap_err().to_string();
        assert!(told.ends_with("cannot be written: the disk is full"), "{told}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), BEGINS);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "no temporary file is left");
    }
}
