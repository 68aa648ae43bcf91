//! A page, or a text, as a file: written under a name of its own and renamed when it is whole.

use crate::page::BEGINS;
use gjc_log::fs::{Fs, FsFile, Open};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Bytes of a file that are looked at before it is replaced, and how many of its lines.
const LOOKED_AT: usize = 1 << 20;
const LINES: usize = 16;
/// Folders above a file that are looked at.
const DEEPEST: usize = 256;

/// What may become of a file that stands where the new one goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replace {
    /// An earlier page is replaced, nothing else.
    Pages,
    /// Any file is, but for a session.
    Any,
}

/// What is never written over, whatever its bytes are.
#[derive(Debug, Clone, Copy)]
pub struct Kept<'a> {
    /// The session that the page is made of, under whatever name.
    pub source: &'a Path,
    /// The folder of gjc's own files: settings, keys, indexes, blobs. Earlier pages in it may be replaced.
    pub own: Option<&'a Path>,
}

/// Why nothing was written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotWritten {
    /// It is a session.
    #[error("{0} is a session file, and is not written over")]
    Session(PathBuf),
    /// It is what gjc itself lives on.
    #[error("{0} belongs to gjc, and is not written over")]
    Own(PathBuf),
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
            Self::Session(_) | Self::Own(_) | Self::NoFile(_) => Some("give another name"),
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
    kept: Kept<'_>,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<u64, NotWritten> {
    may_replace(fs, path, replace, kept)?;
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

fn may_replace<F: Fs>(fs: &F, path: &Path, replace: Replace, kept: Kept<'_>) -> Result<(), NotWritten> {
    let failed = |why| NotWritten::Io { path: path.into(), why };
    let stat = match fs.stat(path) {
        Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(why) => return Err(failed(why)),
        Ok(stat) if !stat.is_file => return Err(NotWritten::NoFile(path.into())),
        Ok(stat) => stat,
    };
    let is_source = fs.stat(kept.source).is_ok_and(|source| (source.dev, source.inode) == (stat.dev, stat.inode));
    let beginning = beginning(fs, path).map_err(failed)?;
    let is_page = beginning.starts_with(BEGINS.as_bytes());
    let is_jsonl = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("jsonl"));
    if is_source || is_jsonl || is_session(&beginning) {
        Err(NotWritten::Session(path.into()))
    } else if !is_page && kept.own.is_some_and(|own| is_within(fs, path, own)) {
        Err(NotWritten::Own(path.into()))
    } else if !is_page && replace == Replace::Pages {
        Err(NotWritten::Taken(path.into()))
    } else {
        Ok(())
    }
}

/// As much of a file as is looked at.
fn beginning<F: Fs>(fs: &F, path: &Path) -> io::Result<Vec<u8>> {
    let file = fs.open(path, Open::Read)?;
    let mut beginning = vec![0; LOOKED_AT];
    let mut len = 0;
    while len < beginning.len() {
        match file.read_at(&mut beginning[len..], len as u64)? {
            0 => break,
            got => len += got,
        }
    }
    beginning.truncate(len);
    Ok(beginning)
}

/// Whether bytes are a session's first ones: one of the first lines is JSON that only sessions have, however it is written.
/// A header may be damaged, so entries count too. A line that is longer than what is looked at is taken for one that may be.
fn is_session(beginning: &[u8]) -> bool {
    let beginning = beginning.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(beginning);
    let mut lines = beginning.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty());
    lines.by_ref().take(LINES).any(|line| match serde_json::from_slice::<serde_json::Value>(line) {
        Ok(value) => {
            let of_type = |wanted: &str| value["type"] == wanted;
            let is_entry = value["type"].is_string() && value.get("parentId").is_some() && value["id"].is_string();
            of_type("session") || of_type("title") || is_entry
        }
        Err(_) => beginning.len() == LOOKED_AT && line.starts_with(b"{") && beginning.ends_with(line),
    })
}

/// Whether a name is in a folder or below, whatever links and `..` lead there: folders are the same where the file system
/// says that they are.
fn is_within<F: Fs>(fs: &F, path: &Path, folder: &Path) -> bool {
    let Ok(folder) = fs.stat(folder) else { return false };
    let parent = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut above = parent.to_owned();
    let mut last = None;
    for _ in 0..DEEPEST {
        let Ok(stat) = fs.stat(&above) else { break };
        let here = Some((stat.dev, stat.inode));
        if here == Some((folder.dev, folder.inode)) {
            return true;
        }
        // Above the root is the root.
        if here == std::mem::replace(&mut last, here) {
            break;
        }
        above.push("..");
    }
    false
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

    fn nothing() -> Kept<'static> {
        Kept { source: Path::new("/nowhere"), own: None }
    }

    fn page(out: &mut dyn Write) -> io::Result<()> {
        out.write_all(BEGINS.as_bytes())
    }

    #[test]
    fn an_earlier_page_is_replaced_and_nothing_else_without_a_word() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("내보내기.html");
        assert_eq!(to_file(&OsFs, &path, Replace::Pages, nothing(), page).unwrap(), BEGINS.len() as u64);
        to_file(&OsFs, &path, Replace::Pages, nothing(), page).unwrap();
        std::fs::write(&path, "my own notes").unwrap();
        assert!(matches!(to_file(&OsFs, &path, Replace::Pages, nothing(), page), Err(NotWritten::Taken(_))));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "my own notes");
        to_file(&OsFs, &path, Replace::Any, nothing(), page).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), BEGINS);
    }

    #[test]
    fn a_session_is_never_written_over() {
        let dir = tempfile::tempdir().unwrap();
        for (name, content) in [
            ("a.jsonl", "anything"),
            ("A.JSONL", "anything"),
            ("copy.txt", "{\"type\":\"session\",\"id\":\"x\"}\n"),
            ("blanks.txt", "{ \"type\" : \"session\", \"id\":\"x\"}\n"),
            ("order.txt", "{\"id\": \"x\", \"cwd\": \"/집\", \"type\":\"session\"}\r\n{}\n"),
            ("titled.txt", "\n{\"title\":\"이름\",\"type\": \"title\"}\n{\"type\":\"session\"}\n"),
            ("bom.txt", "\u{feff}{\"version\":3,\"type\":\"session\"}"),
            ("damaged.txt", "{\"type\":\"sess\n{\"id\":\"0000000a\",\"type\":\"message\",\"parentId\":null}\n"),
            ("long.txt", &format!("{{\"pad\":\"{}\",\"type\":\"session\"}}\n", "x".repeat(LOOKED_AT))),
        ] {
            let path = dir.path().join(name);
            std::fs::write(&path, content).unwrap();
            let told = to_file(&OsFs, &path, Replace::Any, nothing(), page);
            assert!(matches!(told, Err(NotWritten::Session(_))), "{name}: {told:?}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), content);
        }
        for (name, content) in [("a.json", "{\"type\":\"module\",\"id\":\"x\"}"), ("b.txt", "{ no json"), ("빈", "")] {
            let path = dir.path().join(name);
            std::fs::write(&path, content).unwrap();
            to_file(&OsFs, &path, Replace::Any, nothing(), page).unwrap();
        }
        assert!(matches!(to_file(&OsFs, dir.path(), Replace::Any, nothing(), page), Err(NotWritten::NoFile(_))));
    }

    /// By device and inode: another name, a link of either kind; even with bytes that no session has.
    #[test]
    fn the_session_that_is_exported_is_not_written_over_by_any_name() {
        let dir = tempfile::tempdir().unwrap();
        let source = dir.path().join("세션");
        std::fs::write(&source, "damaged from its first byte on").unwrap();
        let (hard, soft) = (dir.path().join("hard.html"), dir.path().join("soft.html"));
        std::fs::hard_link(&source, &hard).unwrap();
        std::os::unix::fs::symlink(&source, &soft).unwrap();
        let kept = Kept { source: &source, own: None };
        for path in [&source, &hard, &soft, &dir.path().join("./세션")] {
            let told = to_file(&OsFs, path, Replace::Any, kept, page);
            assert!(matches!(told, Err(NotWritten::Session(_))), "{told:?}");
        }
        assert_eq!(std::fs::read_to_string(&source).unwrap(), "damaged from its first byte on");
    }

    #[test]
    fn what_gjc_lives_on_is_not_written_over() {
        let dir = tempfile::tempdir().unwrap();
        let own = dir.path().join("agent");
        std::fs::create_dir_all(own.join("blobs")).unwrap();
        std::os::unix::fs::symlink(own.join("blobs"), dir.path().join("link")).unwrap();
        std::fs::write(own.join("settings.json"), "{}").unwrap();
        std::fs::write(own.join("blobs/ab"), "조각").unwrap();
        std::fs::write(dir.path().join("outside"), "x").unwrap();
        let kept = Kept { source: Path::new("/nowhere"), own: Some(&own) };
        for name in ["agent/settings.json", "agent/blobs/ab", "link/ab", "link/../settings.json"] {
            let told = to_file(&OsFs, &dir.path().join(name), Replace::Any, kept, page);
            assert!(matches!(told, Err(NotWritten::Own(_))), "{name}: {told:?}");
        }
        assert_eq!(std::fs::read_to_string(own.join("settings.json")).unwrap(), "{}");
        assert_eq!(std::fs::read_to_string(own.join("blobs/ab")).unwrap(), "조각");
        for _ in 0..2 {
            to_file(&OsFs, &own.join("page.html"), Replace::Pages, kept, page).unwrap();
        }
        to_file(&OsFs, &dir.path().join("outside"), Replace::Any, kept, page).unwrap();
    }

    #[test]
    fn what_breaks_off_leaves_nothing_and_what_was_there() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("page.html");
        to_file(&OsFs, &path, Replace::Pages, nothing(), page).unwrap();
        let breaks = |out: &mut dyn Write| out.write_all(b"half").and(Err(io::Error::other("the disk is full")));
        let told = to_file(&OsFs, &path, Replace::Pages, nothing(), breaks).unwrap_err().to_string();
        assert!(told.ends_with("cannot be written: the disk is full"), "{told}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), BEGINS);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "no temporary file is left");
    }
}
