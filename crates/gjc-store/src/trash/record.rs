//! Where a session in the trash was.

use gjc_entry::Timestamp;
use gjc_log::fs::{Fs, FsFile, Open};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};

const NAME: &str = "record.json";
const STAGED: &str = ".record.json.tmp";
/// A record has a few hundred bytes and two paths.
const LARGEST: u64 = 64 * 1024;

/// What `record.json` of a folder in the trash says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The session's id.
    pub id: String,
    /// When it was moved.
    pub at: Timestamp,
    /// Where its file was, absolute.
    pub path: PathBuf,
    /// Where the session goes on: what lies here is its file of before it moved to another folder, not a session that was
    /// deleted.
    pub moved_to: Option<PathBuf>,
    /// The name of its file.
    pub(super) name: String,
    /// The names of what lay beside it and belongs to it.
    pub(super) parts: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct Written {
    version: u32,
    id: String,
    at: String,
    path: String,
    #[serde(default, rename = "movedTo", skip_serializing_if = "Option::is_none")]
    moved_to: Option<String>,
    parts: Vec<String>,
}

impl Record {
    /// The record of a session that is about to move.
    pub(super) fn of<F: Fs>(fs: &F, id: String, session: &Path, at: Timestamp) -> io::Result<Self> {
        let no_text = || io::Error::other("its path is no text of Unicode, which the record could not keep");
        let name = session.file_name().and_then(|name| name.to_str()).ok_or_else(no_text)?.to_owned();
        if session.to_str().is_none() || !session.is_absolute() {
            return Err(no_text());
        }
        let folder = session.with_extension("");
        let folder = folder.file_name().and_then(|name| name.to_str()).ok_or_else(no_text)?.to_owned();
        let beside = |part: &String| *part != name && fs.stat(&session.with_file_name(part)).is_ok();
        let parts = [folder, format!("{name}.torn")].into_iter().filter(beside).collect();
        Ok(Self { id, at, path: session.into(), moved_to: None, name, parts })
    }

    /// Where a part was.
    pub(super) fn place_of(&self, part: &str) -> PathBuf {
        self.path.with_file_name(part)
    }

    /// Reads the record of a folder; `None` where there is none that can be used.
    pub(super) fn read<F: Fs>(fs: &F, folder: &Path) -> Option<Self> {
        let path = folder.join(NAME);
        let stat = fs.stat(&path).ok()?;
        if !stat.is_file || stat.len > LARGEST {
            return None;
        }
        let mut bytes = vec![0; usize::try_from(stat.len).ok()?];
        let got = fs.open(&path, Open::Read).ok()?.read_at(&mut bytes, 0).ok()?;
        bytes.truncate(got);
        let Written { version: 1, id, at, path, moved_to, parts } = serde_json::from_slice(&bytes).ok()? else {
            return None;
        };
        let path = PathBuf::from(path);
        let name = path.file_name()?.to_str()?.to_owned();
        // A name, and nothing that leads elsewhere: a record may have been edited.
        let is_name = |part: &String| Path::new(part).file_name().is_some_and(|name| name == part.as_str());
        let sound = path.is_absolute() && parts.iter().all(|part| is_name(part) && *part != NAME && *part != name);
        sound.then_some(Self { id, at: at.parse().ok()?, path, moved_to: moved_to.map(Into::into), name, parts })
    }

    /// Writes it into its folder, durable.
    pub(super) fn write<F: Fs>(&self, fs: &F, folder: &Path) -> io::Result<()> {
        let written = Written {
            version: 1,
            id: self.id.clone(),
            at: self.at.to_string(),
            path: self.path.to_string_lossy().into_owned(),
            moved_to: self.moved_to.as_ref().map(|to| to.to_string_lossy().into_owned()),
            parts: self.parts.clone(),
        };
        let mut bytes = serde_json::to_vec_pretty(&written)?;
        bytes.push(b'\n');
        let staged = folder.join(STAGED);
        super::moving::write_new(fs, &staged, &bytes)?;
        fs.rename_new(&staged, &folder.join(NAME))?;
        fs.sync_dir(folder)
    }

    /// Removes a record and its folder, of which nothing but the record is left.
    pub(super) fn clear<F: Fs>(fs: &F, folder: &Path) -> io::Result<()> {
        let others = |path: &PathBuf| !path.ends_with(NAME) && !path.ends_with(STAGED);
        let names = fs.list(folder)?;
        if names.iter().any(others) {
            return Ok(());
        }
        names.iter().try_for_each(|path| fs.unlink(path))?;
        fs.rmdir(folder)?;
        folder.parent().map_or(Ok(()), |trash| fs.sync_dir(trash))
    }
}
