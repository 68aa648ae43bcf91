//! What a list shows of one session file.

use gjc_entry::header::VERSION;
use gjc_entry::{Body, Entry, Header, Kind, Label, Message, Skeleton, Source, Timestamp};
use gjc_log::fs::{Fs, FsFile, Open};
use gjc_log::{OpenError, Reader, Tail};
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
    /// The session that it came from, as the header says: an id (a fork) or a file (a branch). Trusted as neither.
    pub parent: Option<String>,
    /// Of the file's form.
    pub version: u32,
    /// What its words are worth: the highest level that it ever had, and trusted only if all of it is. Whoever hands a list or
    /// what was found in it to a model hands this on.
    pub label: Label,
}

impl SessionInfo {
    /// Whether there is something to go on with. A session without messages is left out of lists and never the newest, unless
    /// damage took them; its id finds it all the same.
    #[must_use]
    pub fn has_content(&self) -> bool {
        self.messages > 0 || self.damaged > 0 || self.unfinished
    }

    /// What to call it: title, first words, id.
    #[must_use]
    pub fn name(&self) -> &str {
        self.title.as_deref().or(self.first_message.as_deref()).unwrap_or(&self.id)
    }
}

/// All that a list shows of a session; reads the whole file.
pub(crate) fn look<F: Fs>(fs: &F, path: &Path) -> Result<SessionInfo, OpenError> {
    let loaded = Reader::open(fs, path)?;
    let reader = &loaded.value;
    let size = fs.stat(path).map_or(0, |stat| stat.len);
    let nodes: Vec<_> = reader.skeleton().into_iter().flat_map(Skeleton::iter).map(|(_, node)| *node).collect();
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
        parent: header.parent.clone(),
        version: header.version,
        label: label_of(reader.skeleton()),
        path: path.into(),
    })
}

/// What all of a session's words are worth together.
pub(crate) fn label_of(tree: Option<&Skeleton>) -> Label {
    let Some(tree) = tree else { return Label::CORRUPT };
    // A typed prompt makes what follows trusted again, not what came before.
    tree.iter().fold(tree.label(), |label, (_, node)| label.join(node.label()))
}

/// The first line that says something, without control characters.
pub(crate) fn first_line(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    line.chars().map(|c| if c.is_control() { ' ' } else { c }).take(500).collect()
}

/// What the beginning and the end of a file say of a session: enough to show it to a person among the recent ones. How many
/// messages there are, what is damaged, and what the words are worth, only [`SessionInfo`] knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glance {
    /// Its file.
    pub path: PathBuf,
    /// Its id.
    pub id: String,
    /// The folder that it worked in.
    pub cwd: String,
    /// Its name, as far as header, beginning and end tell: a later one in the middle is not seen.
    pub title: Option<String>,
    /// The first words of a person.
    pub first_message: Option<String>,
    /// When it began.
    pub created: Timestamp,
    /// The time of its last entry.
    pub modified: Timestamp,
    /// Bytes of the file.
    pub size: u64,
}

impl Glance {
    /// What to call it: title, first words, id, name of the file.
    #[must_use]
    pub fn name(&self) -> String {
        let id = Some(self.id.as_str()).filter(|id| !id.is_empty());
        let known = self.title.as_deref().or(self.first_message.as_deref()).or(id);
        known.map_or_else(|| self.path.file_name().unwrap_or_default().to_string_lossy().into_owned(), Into::into)
    }
}

impl From<SessionInfo> for Glance {
    fn from(info: SessionInfo) -> Self {
        let SessionInfo { path, id, cwd, title, first_message, created, modified, size, .. } = info;
        Self { path, id, cwd, title, first_message, created, modified, size }
    }
}

/// So much is read of either end at first.
const GLANCE: usize = 4 << 10;
/// And so much at most, when a line is longer (a picture in the first prompt).
const LONGEST_GLANCE: usize = 4 << 20;

/// What the two ends of a file say. Where they leave a doubt (damage, another version, no entry at the end) the whole file is
/// read, so that the order of a list is always by the time of the last entry.
pub(crate) fn glance<F: Fs>(fs: &F, path: &Path) -> Result<Glance, OpenError> {
    ends(fs, path).map_or_else(|| look(fs, path).map(Into::into), Ok)
}

fn ends<F: Fs>(fs: &F, path: &Path) -> Option<Glance> {
    if !fs.stat(path).ok()?.is_file {
        return None;
    }
    let file = fs.open(path, Open::Read).ok()?;
    let len = file.stat().ok()?.len;
    let (header, beginning) = first_of(&file, len)?;
    let (modified, named) = last_of(&file, len)?;
    let shown = |title: String| Some(first_line(&title)).filter(|title| !title.is_empty());
    Some(Glance {
        path: path.into(),
        id: header.id.to_string(),
        cwd: header.cwd,
        title: named.or(beginning.title).or(header.title).and_then(shown),
        first_message: beginning.words,
        created: header.at,
        modified: modified.max(header.at),
        size: len,
    })
}

#[derive(Default)]
struct Beginning {
    title: Option<String>,
    words: Option<String>,
}

/// The header and the first words of a person, from the first 4 KB, or more where a cut line hides them.
fn first_of<F: FsFile>(file: &F, len: u64) -> Option<(Header, Beginning)> {
    let mut room = GLANCE;
    loop {
        let mut head = vec![0; room.min(usize::try_from(len).ok()?)];
        let got = file.read_at(&mut head, 0).ok()?;
        head.truncate(got);
        let whole = memchr::memrchr(b'\n', &head).map_or(0, |end| end + 1);
        let text = std::str::from_utf8(&head[..whole]).ok()?;
        let mut lines = text.lines();
        if let Some(first) = lines.next() {
            // What has another line before the header, or an older form, is for the whole reader.
            let header = Header::parse(first).ok().filter(|header| header.version == VERSION)?;
            let mut beginning = Beginning::default();
            for line in lines {
                match Entry::parse(line).ok()?.body {
                    Body::Message(Message::User(user)) => {
                        let words = first_line(&user.content.text());
                        beginning.words = Some(words).filter(|words| !words.is_empty());
                        return Some((header, beginning));
                    }
                    Body::SessionInfo { name } => beginning.title = name,
                    Body::Unknown { .. } => return None,
                    _ => {}
                }
            }
            if whole as u64 == len {
                return Some((header, beginning));
            }
        }
        if room >= LONGEST_GLANCE || head.len() as u64 == len {
            return None;
        }
        room *= 4;
    }
}

/// The time of the last entry, and the session's last name if that stands near the end.
fn last_of<F: FsFile>(file: &F, len: u64) -> Option<(Timestamp, Option<String>)> {
    let mut room = GLANCE as u64;
    loop {
        let from = len.saturating_sub(room);
        let mut tail = vec![0; usize::try_from(len - from).ok()?];
        let got = file.read_at(&mut tail, from).ok()?;
        tail.truncate(got);
        // A line that grows is not an entry yet.
        tail.truncate(memchr::memrchr(b'\n', &tail)?);
        // The first line is the header, or was cut.
        let begin = memchr::memchr(b'\n', &tail).map_or(tail.len(), |end| end + 1);
        if begin < tail.len() {
            let entries = std::str::from_utf8(&tail[begin..]).ok()?.lines().rev().map(Entry::parse);
            let (mut at, mut name) = (None, None);
            for entry in entries {
                // Damage is for the whole reader.
                let entry = entry.ok()?;
                at = at.or(Some(entry.at));
                if let (None, Body::SessionInfo { name: Some(said) }) = (&name, entry.body) {
                    name = Some(said);
                }
            }
            return at.map(|at| (at, name));
        }
        if from == 0 || room >= LONGEST_GLANCE as u64 {
            return None;
        }
        room *= 4;
    }
}
