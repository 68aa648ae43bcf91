//! Which sessions there are.

use gjc_entry::{Body, Kind, Message, Source, Timestamp};
use gjc_log::fs::{Fs, FsFile, Held, Open};
use gjc_log::{OpenError, Reader, Tail};
use std::io;
use std::path::{Path, PathBuf};

/// What a list shows of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionInfo {
    /// Its file.
    pub path: PathBuf,
    /// Its id, as the header says.
    pub id: String,
    /// The folder that it worked in, as the header says.
    pub cwd: String,
    /// Its name, if it has one: the last `session_info`, else the header's title.
    pub title: Option<String>,
    /// The first words of a person.
    pub first_message: Option<String>,
    /// How many messages there are, all branches together.
    pub messages: usize,
    /// When it began.
    pub created: Timestamp,
    /// The time of its last entry.
    pub modified: Timestamp,
    /// Bytes of the file.
    pub size: u64,
    /// How many places of the file are damaged.
    pub damaged: usize,
    /// Whether it ends in the middle of a line: its writer is at work, or died there.
    pub unfinished: bool,
}

impl SessionInfo {
    /// What to call it: title, first words, id.
    #[must_use]
    pub fn name(&self) -> &str {
        self.title.as_deref().or(self.first_message.as_deref()).unwrap_or(&self.id)
    }
}

/// A file that looks like a session and could not be read as one.
#[derive(Debug)]
pub struct Unreadable {
    /// The file.
    pub path: PathBuf,
    /// Why.
    pub why: OpenError,
}

/// All sessions below a sessions folder (one level of buckets), newest entry first, and the files that could not be read.
/// A folder that is not there holds none.
///
/// # Errors
/// When the folder itself cannot be listed.
pub fn sweep_all<F: Fs>(fs: &F, sessions: &Path) -> io::Result<(Vec<SessionInfo>, Vec<Unreadable>)> {
    let mut found = (Vec::new(), Vec::new());
    for bucket in list(fs, sessions)? {
        if fs.stat(&bucket).is_ok_and(|stat| stat.is_dir) {
            match sweep(fs, &bucket) {
                Ok((infos, unreadable)) => {
                    found.0.extend(infos);
                    found.1.extend(unreadable);
                }
                // One folder that cannot be read hides no other.
                Err(why) => found.1.push(Unreadable { path: bucket.clone(), why: OpenError::Io { path: bucket, why } }),
            }
        }
    }
    sort(&mut found.0);
    Ok(found)
}

/// The sessions of one bucket, newest entry first.
///
/// # Errors
/// When the folder cannot be listed.
pub fn sweep<F: Fs>(fs: &F, bucket: &Path) -> io::Result<(Vec<SessionInfo>, Vec<Unreadable>)> {
    let (mut infos, mut unreadable) = (Vec::new(), Vec::new());
    for path in list(fs, bucket)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with('.') && name.ends_with(".jsonl.tmp") && is_left(fs, &path) {
            unreadable.push(Unreadable { path: path.clone(), why: OpenError::Unnamed { path } });
            continue;
        }
        if !name.ends_with(".jsonl") || name.starts_with('.') {
            continue;
        }
        match look(fs, &path) {
            Ok(info) => infos.push(info),
            // Deleted between the list and the look.
            Err(OpenError::NotFound(_)) => {}
            Err(why) => unreadable.push(Unreadable { path, why }),
        }
    }
    sort(&mut infos);
    Ok((infos, unreadable))
}

/// Whether a session under its temporary name has entries and no writer: nobody will ever give it its name.
fn is_left<F: Fs>(fs: &F, path: &Path) -> bool {
    let file = fs.open(path, Open::Read);
    file.is_ok_and(|file| matches!(file.try_lock(), Ok(Held::Ours)) && file.stat().is_ok_and(|stat| stat.len > 0))
}

fn sort(infos: &mut [SessionInfo]) {
    infos.sort_by(|a, b| b.modified.cmp(&a.modified).then_with(|| a.path.cmp(&b.path)));
}

fn list<F: Fs>(fs: &F, dir: &Path) -> io::Result<Vec<PathBuf>> {
    match fs.list(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        other => other,
    }
}

fn look<F: Fs>(fs: &F, path: &Path) -> Result<SessionInfo, OpenError> {
    let loaded = Reader::open(fs, path)?;
    let reader = &loaded.value;
    let size = fs.stat(path).map_or(0, |stat| stat.len);
    let nodes: Vec<_> =
        reader.skeleton().into_iter().flat_map(gjc_entry::Skeleton::iter).map(|(_, node)| *node).collect();
    let of = |kind| nodes.iter().filter(move |node| node.kind() == kind);
    let first_message = of(Kind::Message).find_map(|node| match &reader.body(node.at()).ok()?.body {
        Body::Message(Message::User(user)) => Some(first_line(&user.content.text())),
        _ => None,
    });
    let title = of(Kind::SessionInfo)
        .next_back()
        .and_then(|node| match &reader.body(node.at()).ok()?.body {
            Body::SessionInfo { name } => name.clone(),
            _ => None,
        })
        .or_else(|| reader.header().title.clone())
        .map(|title| first_line(&title))
        .filter(|title| !title.is_empty());
    let modified = nodes.iter().rev().find_map(|node| Some(reader.body(node.at()).ok()?.at));
    let header = reader.header();
    Ok(SessionInfo {
        id: header.id.to_string(),
        cwd: header.cwd.clone(),
        title,
        first_message: first_message.filter(|text| !text.is_empty()),
        messages: of(Kind::Message).count(),
        created: header.at,
        modified: modified.unwrap_or(header.at).max(header.at),
        size,
        damaged: loaded.damage.len(),
        unfinished: loaded.tail != Tail::Clean,
        path: path.into(),
    })
}

/// The first line that says something, without control characters.
fn first_line(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    line.chars().map(|c| if c.is_control() { ' ' } else { c }).take(500).collect()
}
