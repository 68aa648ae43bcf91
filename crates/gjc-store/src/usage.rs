//! What the sessions take: bytes by folder and session, and of everything that is shared or kept beside them.

use crate::{SessionInfo, sweep_all, trash_dir};
use gjc_log::fs::{Fs, FsFile, Open};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::ops::AddAssign;
use std::path::{Path, PathBuf};

/// So much of a file is read at once.
const CHUNK: usize = 256 * 1024;
/// Letters of a blob's name.
const NAME: usize = 64;

/// Bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Size {
    /// As long as the files are.
    pub bytes: u64,
    /// As much as they take of the disk. Blocks that two files share (a fork on a file system that can) count in each.
    pub on_disk: u64,
    /// How many files.
    pub files: usize,
}

impl AddAssign for Size {
    fn add_assign(&mut self, other: Self) {
        self.bytes += other.bytes;
        self.on_disk += other.on_disk;
        self.files += other.files;
    }
}

/// What one session takes.
#[derive(Debug)]
pub struct SessionUse {
    /// Which.
    pub info: SessionInfo,
    /// Its file, and its torn end.
    pub file: Size,
    /// Its folder of artefacts.
    pub artefacts: Size,
    /// The blobs that it names; other sessions may name them too.
    pub blobs: Size,
}

impl SessionUse {
    /// What is its own: without blobs.
    #[must_use]
    pub fn own(&self) -> Size {
        let mut sum = self.file;
        sum += self.artefacts;
        sum
    }
}

/// What the sessions of one working folder take.
#[derive(Debug, Default)]
pub struct FolderUse {
    /// The folder, as the headers say.
    pub cwd: String,
    /// Its sessions, the largest first.
    pub sessions: Vec<SessionUse>,
    /// Files and artefacts of all of them.
    pub own: Size,
}

/// What everything takes.
#[derive(Debug, Default)]
pub struct Usage {
    /// By working folder, the largest first.
    pub folders: Vec<FolderUse>,
    /// Below the sessions folder, and of no session that can be read.
    pub others: Size,
    /// All blobs, each once.
    pub blobs: Size,
    /// Of those, the ones that no session names, in the trash or out of it.
    pub unnamed_blobs: Size,
    /// The trash.
    pub trash: Size,
    /// Indexes and other things that are made anew when they are missing.
    pub cache: Size,
    /// The history of prompts.
    pub history: Size,
}

impl Usage {
    /// All of it.
    #[must_use]
    pub fn total(&self) -> Size {
        let mut sum = self.others;
        for size in [self.blobs, self.trash, self.cache, self.history] {
            sum += size;
        }
        self.folders.iter().for_each(|folder| sum += folder.own);
        sum
    }
}

/// Adds up what an agent folder holds. Reads every session, to know which blobs it names; changes nothing.
///
/// # Errors
/// When the sessions folder cannot be listed. What else cannot be read counts as nothing.
pub fn usage<F: Fs>(fs: &F, agent_dir: &Path) -> io::Result<Usage> {
    let sessions = agent_dir.join("sessions");
    let (infos, _) = sweep_all(fs, &sessions)?;
    let blobs = blobs(fs, &agent_dir.join("blobs"));
    let mut named: BTreeSet<&str> = BTreeSet::new();
    let (mut folders, mut counted): (BTreeMap<String, FolderUse>, _) = (BTreeMap::new(), Size::default());
    for info in infos {
        let artefacts = info.path.with_extension("");
        let mut names = BTreeSet::new();
        for file in std::iter::once(info.path.clone()).chain(files(fs, &artefacts)) {
            names.append(&mut names_in(fs, &file, &blobs));
        }
        let mut file = size_of(fs, &info.path);
        file += size_of(fs, &info.path.with_extension("jsonl.torn"));
        let mut used = SessionUse { file, artefacts: below(fs, &artefacts), blobs: Size::default(), info };
        names.iter().filter_map(|name| blobs.get(*name)).for_each(|size| used.blobs += *size);
        named.append(&mut names);
        counted += used.own();
        let folder = folders.entry(used.info.cwd.clone()).or_default();
        folder.own += used.own();
        folder.cwd.clone_from(&used.info.cwd);
        folder.sessions.push(used);
    }
    for file in files(fs, &trash_dir(agent_dir)) {
        named.append(&mut names_in(fs, &file, &blobs));
    }
    let mut usage = Usage {
        trash: below(fs, &trash_dir(agent_dir)),
        cache: below(fs, &agent_dir.join("cache")),
        folders: folders.into_values().collect(),
        ..Usage::default()
    };
    // SQLite keeps up to two files beside each database.
    for ending in ["", "-wal", "-shm"] {
        usage.history += size_of(fs, &agent_dir.join(format!("history.db{ending}")));
        usage.cache += size_of(fs, &agent_dir.join(format!("index.db{ending}")));
    }
    for (name, size) in &blobs {
        usage.blobs += *size;
        if !named.contains(name.as_str()) {
            usage.unnamed_blobs += *size;
        }
    }
    let all = below(fs, &sessions);
    usage.others = Size {
        bytes: all.bytes.saturating_sub(counted.bytes),
        on_disk: all.on_disk.saturating_sub(counted.on_disk),
        files: all.files.saturating_sub(counted.files),
    };
    for folder in &mut usage.folders {
        folder.sessions.sort_by(|a, b| b.own().bytes.cmp(&a.own().bytes).then_with(|| a.info.path.cmp(&b.info.path)));
    }
    usage.folders.sort_by(|a, b| b.own.bytes.cmp(&a.own.bytes).then_with(|| a.cwd.cmp(&b.cwd)));
    Ok(usage)
}

/// All blobs by name, with what was left of interrupted ones.
fn blobs<F: Fs>(fs: &F, dir: &Path) -> HashMap<String, Size> {
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    files(fs, dir).into_iter().map(|path| (name(&path), size_of(fs, &path))).collect()
}

/// Which blobs a file names, in whatever field: any word of 64 hexadecimal digits that is the name of one.
fn names_in<'b, F: Fs>(fs: &F, path: &Path, blobs: &'b HashMap<String, Size>) -> BTreeSet<&'b str> {
    let mut found = BTreeSet::new();
    let Ok(file) = fs.open(path, Open::Read) else { return found };
    if blobs.is_empty() || !fs.stat(path).is_ok_and(|stat| stat.is_file) {
        return found;
    }
    let (mut chunk, mut at, mut word) = (vec![0; CHUNK], 0, Vec::with_capacity(NAME + 1));
    let mut ended = |word: &mut Vec<u8>| {
        let name = if word.len() == NAME { std::str::from_utf8(word).ok() } else { None };
        if let Some((name, _)) = name.and_then(|name| blobs.get_key_value(name)) {
            found.insert(name.as_str());
        }
        word.clear();
    };
    while let Ok(got @ 1..) = file.read_at(&mut chunk, at) {
        for byte in &chunk[..got] {
            match byte {
                // A longer word is no name; it need not be kept to be known as too long.
                b'0'..=b'9' | b'a'..=b'f' if word.len() > NAME => {}
                b'0'..=b'9' | b'a'..=b'f' => word.push(*byte),
                _ if word.is_empty() => {}
                _ => ended(&mut word),
            }
        }
        at += got as u64;
    }
    ended(&mut word);
    found
}

/// A file's size; nothing where there is none. Of a link: the link.
fn size_of<F: Fs>(fs: &F, path: &Path) -> Size {
    match fs.stat(path) {
        Ok(stat) if stat.is_file && !fs.is_link(path).unwrap_or(true) => {
            Size { bytes: stat.len, on_disk: fs.on_disk(path).unwrap_or(stat.len), files: 1 }
        }
        _ => Size::default(),
    }
}

fn below<F: Fs>(fs: &F, dir: &Path) -> Size {
    let mut sum = Size::default();
    files(fs, dir).iter().for_each(|path| sum += size_of(fs, path));
    sum
}

/// All regular files below a folder; links are not followed.
fn files<F: Fs>(fs: &F, dir: &Path) -> Vec<PathBuf> {
    let (mut found, mut waiting) = (Vec::new(), vec![dir.to_path_buf()]);
    while let Some(at) = waiting.pop() {
        for path in fs.list(&at).unwrap_or_default() {
            if fs.is_link(&path).unwrap_or(true) {
                continue;
            }
            match fs.stat(&path) {
                Ok(stat) if stat.is_dir => waiting.push(path),
                Ok(stat) if stat.is_file => found.push(path),
                _ => {}
            }
        }
    }
    found
}
