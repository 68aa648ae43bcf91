//! Other programs: what to do when the session file is not as we left it.
//!
//! The lock keeps other writers of this kind away; programs that do not know it append to the file, rewrite it, rename
//! it, replace it. Before each batch the file is looked at. What was added is taken in, and the leaf stays ours. A file that
//! lacks what was durable is not written to: entries wait in memory until it is whole again, or a person decides.

use crate::fs::{Fs, FsFile, Held, Open, Stat};
use crate::scan::{self, Scanned};
use crate::tail::{append_all, own_part};
use crate::writer::{Place, Writer};
use gjc_entry::tree::{NewNode, Pushed};
use gjc_entry::{
    At, Block, Body, Content, Damage, DamageKind, Draft, Entry, EntryId, Header, Label, Message, Ordinal, Origin, Own,
    ParentOf, Skeleton, Source,
};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// For so long another program may be in the middle of a line before we take it to be dead.
const HALF_LINE: Duration = Duration::from_millis(250);

/// Up to so many bytes of another program are kept until they are durable.
const MOST_KEPT: u64 = 64 << 20;

/// Why lines stay in memory.
pub(crate) struct Unwritable {
    pub(crate) why: io::Error,
    /// The file is not ours any more.
    pub(crate) lost: bool,
}

impl From<io::Error> for Unwritable {
    fn from(why: io::Error) -> Self {
        Self { why, lost: false }
    }
}

fn lost(why: String) -> Unwritable {
    Unwritable { why: io::Error::other(why), lost: true }
}

/// What was seen of a file that cannot be written to, so that it is not read again and again.
#[derive(Default)]
pub(crate) struct Watched {
    /// This file, as it was then, lacks what is ours.
    refused: Option<(Stat, String)>,
    /// There is no file under the name.
    gone: Option<String>,
    /// It ends in the middle of another program's line, seen first at this time.
    half: Option<(Stat, Instant)>,
    /// So long is the file with a part of our own lines that could not be cut off again.
    pub(crate) uncut: Option<u64>,
}

/// How a file compares with what we know.
enum Fit {
    /// It was touched.
    Same,
    /// Others have added lines behind ours.
    Grown,
    /// It is another content, with all in it that has to be there.
    Other,
}

impl<F: Fs> Writer<F> {
    /// Brings file and memory together before a batch is written: afterwards the file ends at `written`, and `left` says
    /// how it is.
    pub(crate) fn look(&mut self, left: &mut Option<Stat>) -> Result<(), Unwritable> {
        let Place::Disk { path, file } = &self.place else { return Ok(()) };
        if let Some(lease) = &self.lease
            && !lease.is_ours()?
        {
            return Err(lost(format!(
                "another process has taken {} over: the lease of this one was not renewed for half a minute; close the session here",
                path.display()
            )));
        }
        let named = self.shared.stat_name();
        if let (Ok(named), Some(left)) = (&named, &left)
            && named == left
            && left.len == self.written
        {
            self.watched = Watched::default();
            return Ok(());
        }
        let here = file.stat()?;
        let ours = named.as_ref().is_ok_and(|named| same_file(named, &here));
        // Ours, from an attempt whose rest could not be cut off at the time. Only then: another program's line begins as
        // ours do.
        let uncut = here.len > self.written && self.watched.uncut == Some(here.len);
        if ours && uncut && own_part(&**file, &self.unwritten, self.written, here.len) {
            file.truncate(self.written)?;
            self.watched.uncut = None;
            *left = Some(file.stat()?);
            return Ok(());
        }
        let file = if ours { Arc::clone(file) } else { self.open_other(&path.clone(), named, &here)? };
        let (scanned, stat) = self.scan_anew(&file)?;
        let Some(fit) = self.compare(&scanned, ours, &stat) else {
            let why = self.refusal(ours, &stat);
            self.watched.refused = Some((stat, why.clone()));
            return Err(lost(why));
        };
        let (scanned, stat) = self.end_half_line(&file, scanned, stat)?;
        self.watched = Watched::default();
        *left = Some(stat);
        // Bodies may have changed behind equal frames.
        self.cache.clear();
        match fit {
            Fit::Same if scanned.covered == self.written => Ok(()),
            Fit::Same | Fit::Grown => self.take_in(scanned, None),
            Fit::Other => self.take_in(scanned, Some(file)),
        }
    }

    /// The other file under our name, opened and locked.
    fn open_other(&mut self, path: &Path, named: io::Result<Stat>, here: &Stat) -> Result<Arc<F::File>, Unwritable> {
        let named = match named {
            Ok(named) => named,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let fs = Arc::clone(self.fs());
                let why = self.watched.gone.get_or_insert_with(|| gone(&*fs, path, here)).clone();
                return Err(lost(why));
            }
            Err(error) => return Err(error.into()),
        };
        self.watched.gone = None;
        if !named.is_file {
            return Err(lost(format!("{} is no regular file any more; {WAY_OUT}", path.display())));
        }
        self.refused_before(&named)?;
        let file = self.fs().open(path, Open::Append)?;
        if self.lease.is_none() && file.try_lock()? == Held::Other {
            let pid = file.lock_holder().map_or(String::new(), |pid| format!(" (pid {pid})"));
            let what = "was replaced, and another process has the new file open";
            return Err(lost(format!("{} {what}{pid}; {WAY_OUT}", path.display())));
        }
        if !same_file(&file.stat()?, &named) {
            return Err(io::Error::other(format!("{} is being replaced by another program", path.display())).into());
        }
        Ok(Arc::new(file))
    }

    fn refused_before(&self, stat: &Stat) -> Result<(), Unwritable> {
        match &self.watched.refused {
            Some((refused, why)) if refused == stat => Err(lost(why.clone())),
            _ => Ok(()),
        }
    }

    fn scan_anew(&self, file: &Arc<F::File>) -> Result<(Scanned, Stat), Unwritable> {
        let stat = file.stat()?;
        self.refused_before(&stat)?;
        let mut scanned = Scanned::default();
        scanned.scan(&**file, stat.len)?;
        Ok((scanned, stat))
    }

    /// `None`: it lacks what was there, or says something else under an id of ours.
    fn compare(&self, scanned: &Scanned, ours: bool, stat: &Stat) -> Option<Fit> {
        if scanned.header.as_ref()?.id != self.header.id {
            return None;
        }
        let in_file = self.in_file();
        let kept = ours
            && scanned.covered >= self.written
            && scanned.skeleton.len() >= in_file
            && self.skeleton.iter().zip(scanned.skeleton.iter()).take(in_file).all(|((place, before), (_, now))| {
                before == now && self.skeleton.id(place) == scanned.skeleton.id(place)
            });
        // What was found, or is durable, has to be there; the rest can be written again.
        let firm = if kept { 0 } else { self.found.max(self.shared.synced()) };
        let sound = self.skeleton.iter().skip(if kept { in_file } else { 0 }).all(|(place, node)| {
            let id = self.skeleton.id(place);
            // An id that stands twice belongs to its first line.
            self.skeleton.find(&id) != Some(place)
                || match scanned.skeleton.find(&id) {
                    Some(there) => alike(&self.skeleton, place, &scanned.skeleton, there),
                    None => node.at().off >= firm,
                }
        });
        match (sound, kept) {
            (false, _) => None,
            (true, true) if scanned.skeleton.len() == in_file && stat.len == self.written => Some(Fit::Same),
            (true, true) => Some(Fit::Grown),
            (true, false) => Some(Fit::Other),
        }
    }

    fn in_file(&self) -> usize {
        self.skeleton.iter().take_while(|(_, node)| node.at().off < self.written).count()
    }

    fn refusal(&self, ours: bool, stat: &Stat) -> String {
        let path = self.file_path().unwrap_or(Path::new("")).display();
        let what = match ours {
            true if stat.len < self.written => format!("was cut to {} bytes by another program", stat.len),
            true => "was rewritten by another program, and entries of this session are missing or changed in it".into(),
            false => {
                "was replaced by another program, and entries of this session are missing in what stands there now"
                    .into()
            }
        };
        format!("{path} {what}; {WAY_OUT}")
    }

    /// Another program's line without an end is waited for, and ended by us when nothing comes: its bytes are never cut.
    fn end_half_line(
        &mut self,
        file: &Arc<F::File>,
        mut scanned: Scanned,
        stat: Stat,
    ) -> Result<(Scanned, Stat), Unwritable> {
        if scanned.covered == stat.len {
            return Ok((scanned, stat));
        }
        let now = self.env.clock.mono();
        match self.watched.half {
            Some((seen, since)) if seen == stat && now.duration_since(since) >= HALF_LINE => {}
            seen => {
                if seen.is_none_or(|(seen, _)| seen != stat) {
                    self.watched.half = Some((stat, now));
                }
                let path = self.file_path().unwrap_or(Path::new("")).display();
                let why = format!("another program is in the middle of a line in {path}; its end is waited for");
                return Err(io::Error::other(why).into());
            }
        }
        append_all(&**file, b"\n", stat.len)?;
        let stat = file.stat()?;
        scanned.scan(&**file, stat.len)?;
        Ok((scanned, stat))
    }

    /// Goes on with the file as it is: what it has is the session now, what it lacks of ours is to be written behind it.
    /// `other`: the content is not ours with something added, but another one.
    ///
    /// # Errors
    /// When the file cannot be read; nothing has changed then.
    fn take_in(&mut self, mut scanned: Scanned, other: Option<Arc<F::File>>) -> Result<(), Unwritable> {
        let since = if other.is_some() { 0 } else { self.written };
        let firm = if other.is_some() { self.found.max(self.shared.synced()) } else { self.written };
        let (mut lacking, mut there) = (Vec::new(), Vec::new());
        for (place, node) in self.skeleton.iter().filter(|(_, node)| node.at().off >= firm) {
            match scanned.skeleton.find(&self.skeleton.id(place)).and_then(|found| scanned.skeleton.node(found)) {
                Some(found) => there.push(found.at()),
                // A line that we do not hold was another program's, which has taken it out again.
                None => lacking.extend(self.held_line(node.at())),
            }
        }
        let ours = self.skeleton.iter().rev().map(|(place, _)| self.skeleton.id(place));
        let leaf = { ours }.find(|id| scanned.skeleton.find(id).is_some());
        let theirs = scanned.skeleton.leaf().map(|leaf| scanned.skeleton.id(leaf));
        // As it reads now: if a sync fails later, this is laid down again. Read before anything changes here.
        let mut kept = Vec::new();
        if let (Some(file), _) | (None, Place::Disk { file, .. }) = (&other, &self.place) {
            let lines = there.iter().map(|at| (at.off, at.off + u64::from(at.len) + 1));
            match since > 0 && scanned.covered - since <= MOST_KEPT {
                true => kept.push(read_range(&**file, since, scanned.covered)?),
                false => {
                    for (from, to) in lines {
                        kept.push(read_range(&**file, from, to)?);
                    }
                }
            }
        }

        self.damage.extend(scanned.damage.iter().filter(|damage| damage.at.off >= since).cloned());
        self.scars = std::mem::take(&mut scanned.damage);
        self.skeleton.replace(scanned.skeleton);
        self.unwritten.clear();
        self.written = scanned.covered;
        if let (Some(file), Place::Disk { file: place, .. }) = (other, &mut self.place) {
            self.found = scanned.covered;
            *place = Arc::clone(&file);
            self.shared.rehoused(file, scanned.covered);
        }
        // Another program may have changed it behind our lines too, with a patch.
        if let Some(header) = scanned.header {
            self.header = header;
        }
        for (at, bytes) in kept {
            self.shared.keep(at, &bytes);
        }
        self.keep_time();
        if let (Some(to), Some(from)) = (leaf, theirs)
            && to != from
        {
            let body = gjc_entry::Body::Own(Own::Leaf { from: Some(from), to: Some(to.clone()) });
            let draft = Draft { parent: ParentOf::Id(to), ..Draft::new(body, self.label()) };
            // Refused only for a length that no such line has.
            if let Ok((at, entry)) = self.encode(draft, &[]) {
                self.take(at, entry);
            }
        }
        for line in lacking {
            self.take_line(&line);
        }
        self.moved = self.shared.moved(self.end());
        Ok(())
    }

    /// A line that was an entry before. What others have added since may have raised the session's label; then the line
    /// says so, and only words that a person typed restore trust.
    fn take_line(&mut self, line: &[u8]) {
        let Ok(frame) = scan::frame(line) else { return };
        // What a scan will say of it (that its parent is missing, that it is a repeat) is not known here.
        self.unscanned = true;
        let (before, off, start) = (self.label(), self.end(), self.unwritten.len());
        let mut label = frame.label;
        let entry = (before != Label::PUBLIC_TRUSTED).then(|| std::str::from_utf8(line).ok().map(Entry::parse));
        if let Some(Some(Ok(mut entry))) = entry {
            let own = entry.label.unwrap_or(Label::PUBLIC_TRUSTED);
            let trusted = own.trusted && (before.trusted || is_typed(&entry.body));
            label = Some(Label { level: own.level.max(before.level), trusted });
            entry.label = label;
            entry.write(&mut self.unwritten);
            self.unwritten.pop();
        } else {
            self.unwritten.extend_from_slice(line);
        }
        let at = At { off, len: u32::try_from(self.unwritten.len() - start).unwrap_or(u32::MAX) };
        self.unwritten.push(b'\n');
        let new = NewNode { at, kind: frame.kind, id: frame.id, parent: frame.parent, label };
        if let Pushed::Repeated(_) = self.skeleton.push(new.clone()) {
            self.skeleton.push_nameless(new);
        }
    }

    /// A line that is in our memory, as it was or will be written.
    fn held_line(&self, at: At) -> Option<Vec<u8>> {
        let len = at.len as usize;
        match at.off.checked_sub(self.written).and_then(|start| usize::try_from(start).ok()) {
            Some(start) => self.unwritten.get(start..start.checked_add(len)?).map(<[u8]>::to_vec),
            None => self.shared.kept(at.off, len),
        }
    }

    /// A line from wherever it can still be read.
    fn readable_line(&self, place: Ordinal, at: At) -> Option<Vec<u8>> {
        let is_it = |line: &Vec<u8>| scan::frame(line).is_ok_and(|frame| frame.id == self.skeleton.id(place));
        let from_file = || match &self.place {
            Place::Disk { file, .. } => {
                let mut line = vec![0; at.len as usize];
                let got = file.read_at(&mut line, at.off).ok()?;
                Some(line).filter(|line| got == line.len())
            }
            _ => None,
        };
        let written = |entry: &Entry| {
            let mut line = Vec::new();
            entry.write(&mut line);
            line.pop();
            line
        };
        // Its content stands in another line, which the new file does not have.
        if self.skeleton.patch_of(at).is_some() {
            return self.body(at).ok().map(|entry| written(&entry));
        }
        let from_cache = || Some(written(&*self.cache.get(at)?));
        self.held_line(at).or_else(|| from_file().filter(is_it)).or_else(from_cache)
    }

    /// Goes on in a new file with all entries that can still be read: from memory, from the old file if it is still open
    /// and whole, from the cache. For when the session's own file was lost ([`crate::Storage::lost`]); the new one is a
    /// fork, with a header (and so an id) of its own. What cannot be read is told by [`Writer::take_damage`].
    ///
    /// The whole content is in memory until it is durable in the new place.
    ///
    /// # Errors
    /// When the new file cannot be made (`AlreadyExists`, no room, …): nothing has changed then. Later failures are shown
    /// in [`Writer::storage`] as ever.
    pub fn save_as(&mut self, path: &Path, header: Header) -> io::Result<()> {
        let (mut lines, mut missing) = (Vec::new(), Vec::new());
        for (place, node) in self.skeleton.iter() {
            match self.readable_line(place, node.at()) {
                Some(line) => lines.push(line),
                None => missing.push(Damage {
                    at: node.at(),
                    kind: DamageKind::Io("it was only in the file that was lost".into()),
                }),
            }
        }
        let file = self.stage(path)?;
        self.place = Place::Disk { path: path.into(), file };
        self.damage.extend(missing);
        self.cache.clear();
        self.watched = Watched::default();
        self.skeleton.replace(Skeleton::default());
        (self.written, self.found, self.due) = (0, 0, true);
        self.unwritten.clear();
        header.write(&mut self.unwritten);
        self.header = header;
        for line in lines {
            self.take_line(&line);
        }
        self.moved = self.shared.moved(self.end());
        self.write();
        Ok(())
    }
}

const WAY_OUT: &str =
    "nothing more is written to it and what comes is kept in memory: put the file back, or go on in a new one";

/// Whether a person typed it.
fn is_typed(body: &Body) -> bool {
    let Body::Message(Message::User(user)) = body else { return false };
    let Content::Blocks(blocks) = &user.content else { return false };
    blocks.iter().any(|block| matches!(block, Block::Text { origin: Some(Origin::Typed), .. }))
}

fn same_file(one: &Stat, other: &Stat) -> bool {
    (one.dev, one.inode) == (other.dev, other.inode)
}

/// Whether two places say the same entry under the same parent.
fn alike(ours: &Skeleton, place: Ordinal, theirs: &Skeleton, there: Ordinal) -> bool {
    let parent = |tree: &Skeleton, place| -> Option<EntryId> { Some(tree.id(tree.node(place)?.parent()?)) };
    let kind = |tree: &Skeleton, place| tree.node(place).map(gjc_entry::tree::Node::kind);
    kind(ours, place) == kind(theirs, there) && parent(ours, place) == parent(theirs, there)
}

fn read_range<T: FsFile>(file: &T, from: u64, to: u64) -> io::Result<(u64, Vec<u8>)> {
    let mut bytes = vec![0; usize::try_from(to - from).map_err(io::Error::other)?];
    let got = file.read_at(&mut bytes, from)?;
    bytes.truncate(got);
    Ok((from, bytes))
}

/// There is no file under the name: it was deleted, or it bears another name in the same folder.
fn gone<F: Fs>(fs: &F, path: &Path, here: &Stat) -> String {
    let folder = path.parent().and_then(|folder| fs.list(folder).ok()).unwrap_or_default();
    let renamed = folder.iter().find(|other| fs.stat(other).is_ok_and(|other| same_file(&other, here)));
    match renamed {
        Some(now) => format!("{} was renamed to {} by another program; {WAY_OUT}", path.display(), now.display()),
        None => format!("{} was deleted or moved away by another program; {WAY_OUT}", path.display()),
    }
}
