//! The trash: where a session goes that a person wants no more, and from where it comes back.
//!
//! `<agent dir>/trash/<time>_<id>/` holds the session file under its own name, what lay beside it (its folder of artefacts,
//! its torn end), and `record.json`, which says where it was. Nothing leaves the trash by itself: [`empty`] is called for a
//! person only. Blobs are shared between sessions and are neither moved nor removed.
//!
//! **One rename decides.** The record is durable before anything moves; then the session file moves, alone. A folder of the
//! trash that holds its session file is a session in the trash, and what is still missing of it follows; one that does not
//! is none, and what it holds goes back. So a process that dies at any step leaves something that [`settle`] completes or
//! undoes, always to a whole session in one place. Putting back is the same in the other direction.

mod moving;
mod record;

pub use record::Record;

use crate::{SessionInfo, sweep};
use gjc_entry::Timestamp;
use gjc_log::fs::{Fs, FsFile, Held, Open, mkdir_all_durable};
use gjc_log::{OpenError, Reader, index};
use std::io;
use std::path::{Path, PathBuf};

/// A session that was moved to the trash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trashed {
    /// Its id, or the name of its file where the header cannot be read.
    pub id: String,
    /// Where it was.
    pub from: PathBuf,
    /// Its folder in the trash.
    pub folder: PathBuf,
    /// Its file there.
    pub file: PathBuf,
}

/// A folder of the trash, for a list.
#[derive(Debug)]
pub struct InTrash {
    /// The folder.
    pub folder: PathBuf,
    /// What its record says; `None` where that cannot be read, and then it is not known where to put it back.
    pub record: Option<Record>,
    /// What the session is; `None` where its file cannot be read.
    pub info: Option<SessionInfo>,
}

impl InTrash {
    /// The id, as well as it is known.
    #[must_use]
    pub fn id(&self) -> String {
        let known =
            self.record.as_ref().map(|record| record.id.clone()).or_else(|| Some(self.info.as_ref()?.id.clone()));
        known.unwrap_or_else(|| self.folder.file_name().unwrap_or_default().to_string_lossy().into_owned())
    }

    /// Where the session goes on, if this is its file of before it moved.
    #[must_use]
    pub fn moved_to(&self) -> Option<&Path> {
        self.record.as_ref()?.moved_to.as_deref()
    }
}

/// Why a session was not moved to the trash, out of it, or removed from it. Nothing is lost in any case.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrashError {
    /// It is no session, or not to be read as one.
    #[error("{0}")]
    NoSession(#[from] OpenError),
    /// It is a link to a file elsewhere.
    #[error("{} is a symbolic link to a session, not the session", .0.display())]
    Link(PathBuf),
    /// It is in the trash.
    #[error("{} is in the trash already", .0.display())]
    There(PathBuf),
    /// A process has it open.
    #[error("session is open in another process{}", .pid.map_or(String::new(), |pid| format!(" (pid {pid})")))]
    InUse {
        /// Who, where known.
        pid: Option<u32>,
    },
    /// Another gjc moves something.
    #[error("another gjc is moving sessions to the trash or out of it at this moment")]
    Busy,
    /// Nothing there is known to be a session that was somewhere.
    #[error("{} has no record of where the session was", .0.display())]
    NoRecord(PathBuf),
    /// Something else is where it was.
    #[error("{} is there again: a session is never put over another file", .0.display())]
    Taken(PathBuf),
    /// The session is where it should be; something that belongs to it is not yet.
    #[error("the session was moved, but {} did not follow yet: {why}", .part.display())]
    Behind {
        /// What.
        part: PathBuf,
        /// Why.
        why: io::Error,
    },
    /// The file system refuses.
    #[error("{} cannot be moved: {why}", .path.display())]
    Io {
        /// What.
        path: PathBuf,
        /// Why.
        why: io::Error,
    },
}

impl TrashError {
    /// The way out, where there is one.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NoSession(why) => why.hint(),
            Self::Link(_) => Some("name the file that the link leads to"),
            Self::There(_) => Some("gjc sessions restore <id> puts it back, gjc sessions trash shows what is there"),
            Self::InUse { .. } => Some("close it there first"),
            Self::Busy => Some("try again in a moment"),
            Self::NoRecord(_) => Some("its file is in that folder: move it where it belongs"),
            Self::Taken(_) => Some("move that file away first, then put the session back"),
            Self::Behind { .. } => Some("it follows with the next gjc sessions delete, restore or trash"),
            Self::Io { .. } => None,
        }
    }
}

/// The folder of the trash.
#[must_use]
pub fn trash_dir(agent_dir: &Path) -> PathBuf {
    agent_dir.join("trash")
}

/// Moves a session to the trash: its file (an absolute path), with the folder of its artefacts and its torn end. The names
/// are durable when this returns.
///
/// A file whose header cannot be read is taken only from below the sessions folder: elsewhere it may be anything.
///
/// # Errors
/// [`TrashError`]. Unless it is [`TrashError::Behind`], the session is where it was.
pub fn trash<F: Fs>(fs: &F, agent_dir: &Path, session: &Path, now: Timestamp) -> Result<Trashed, TrashError> {
    put_away(fs, agent_dir, session, None, now)
}

/// As [`trash`], of the file that a session has left for another one, in which it goes on under its id.
///
/// # Errors
/// [`TrashError`].
pub fn trash_moved<F: Fs>(
    fs: &F,
    agent_dir: &Path,
    session: &Path,
    to: &Path,
    now: Timestamp,
) -> Result<Trashed, TrashError> {
    put_away(fs, agent_dir, session, Some(to), now)
}

fn put_away<F: Fs>(
    fs: &F,
    agent_dir: &Path,
    session: &Path,
    moved_to: Option<&Path>,
    now: Timestamp,
) -> Result<Trashed, TrashError> {
    let failed = |why| TrashError::Io { path: session.into(), why };
    let dir = trash_dir(agent_dir);
    if session.starts_with(&dir) {
        return Err(TrashError::There(session.into()));
    }
    if fs.is_link(session).unwrap_or(false) {
        return Err(TrashError::Link(session.into()));
    }
    let id = identity(fs, agent_dir, session)?;
    let _open = unused(fs, session)?;
    let _moving = alone(fs, &dir)?;
    let record = Record { moved_to: moved_to.map(Into::into), ..Record::of(fs, id, session, now).map_err(failed)? };
    let folder = make_folder(fs, &dir, &record).map_err(|why| TrashError::Io { path: dir.clone(), why })?;
    gjc_fp::fp!("store.trash.begun");
    let (file, kept) = (folder.join(&record.name), index::path_of(agent_dir, session));
    let moved = record.write(fs, &folder).and_then(|()| fs.sync_dir(&dir)).and_then(|()| {
        gjc_fp::fp!("store.trash.recorded");
        moving::move_file(fs, session, &file)
    });
    if let Err(why) = moved {
        let _ = settle(fs, &folder);
        return Err(failed(why));
    }
    gjc_fp::fp!("store.trash.moved");
    // Derived from the file, and found by the path that it no longer has.
    let _ = fs.unlink(&kept);
    settle(fs, &folder)?;
    Ok(Trashed { id: record.id, from: session.into(), folder, file })
}

/// Puts a session back where it was; the folder is one of [`in_trash`]. The path that it has then.
///
/// # Errors
/// [`TrashError`]. Unless it is [`TrashError::Behind`], the session is in the trash as before.
pub fn restore<F: Fs>(fs: &F, agent_dir: &Path, folder: &Path) -> Result<PathBuf, TrashError> {
    let _moving = alone(fs, &trash_dir(agent_dir))?;
    let record = Record::read(fs, folder).ok_or_else(|| TrashError::NoRecord(folder.into()))?;
    let file = folder.join(&record.name);
    let _open = unused(fs, &file)?;
    settle(fs, folder)?;
    let taken = std::iter::once(record.path.clone()).chain(record.parts.iter().map(|part| record.place_of(part)));
    if let Some(taken) = taken.into_iter().find(|path| fs.stat(path).is_ok()) {
        return Err(TrashError::Taken(taken));
    }
    if let Some(home) = record.path.parent() {
        mkdir_all_durable(fs, home).map_err(|why| TrashError::Io { path: home.into(), why })?;
    }
    for part in &record.parts {
        move_if_there(fs, &folder.join(part), &record.place_of(part))?;
        gjc_fp::fp!("store.restore.part");
    }
    moving::move_file(fs, &file, &record.path).map_err(|why| TrashError::Io { path: file.clone(), why })?;
    gjc_fp::fp!("store.restore.moved");
    settle(fs, folder)?;
    Ok(record.path)
}

/// Removes a session from the trash for good; the folder is one of [`in_trash`]. For a person's explicit word only.
///
/// # Errors
/// [`TrashError`]; after [`TrashError::Io`] the rest is removed by the next call of [`settle_all`].
pub fn empty<F: Fs>(fs: &F, agent_dir: &Path, folder: &Path) -> Result<(), TrashError> {
    let dir = trash_dir(agent_dir);
    let _moving = alone(fs, &dir)?;
    if let Some(record) = Record::read(fs, folder) {
        settle(fs, folder)?;
        match unused(fs, &folder.join(&record.name)) {
            Err(TrashError::NoSession(_)) => {}
            held => drop(held?),
        }
    }
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let gone = dir.join(format!(".{name}{GONE}"));
    // First out of the list, in one step: what dies half-way is rubbish and no half session.
    let removed =
        fs.rename(folder, &gone).and_then(|()| moving::remove_tree(fs, &gone)).and_then(|()| fs.sync_dir(&dir));
    removed.map_err(|why| TrashError::Io { path: folder.into(), why })
}

/// How the name of a folder ends that a person has given up and that is being removed.
const GONE: &str = ".gone";

/// What is in the trash, what was moved last first. Looks only.
///
/// # Errors
/// When the folder cannot be listed.
pub fn in_trash<F: Fs>(fs: &F, agent_dir: &Path) -> io::Result<Vec<InTrash>> {
    let look = |folder: PathBuf| {
        let record = Record::read(fs, &folder);
        let info = sweep(fs, &folder).map_or_else(|_| Vec::new(), |(infos, _)| infos).into_iter().next();
        // What never came in, or is on its way back, is a session at its place.
        let there = record.as_ref().is_some_and(|record| fs.stat(&folder.join(&record.name)).is_ok());
        (there || info.is_some()).then_some(InTrash { folder, record, info })
    };
    let mut found: Vec<InTrash> = folders(fs, &trash_dir(agent_dir))?.into_iter().filter_map(look).collect();
    let when = |item: &InTrash| item.record.as_ref().map(|record| record.at);
    found.sort_by(|a, b| when(b).cmp(&when(a)).then_with(|| b.folder.cmp(&a.folder)));
    Ok(found)
}

/// Completes or undoes what was interrupted in any folder of the trash, and goes on removing what a person has given up.
///
/// # Errors
/// The first that could not be settled; the others are.
pub fn settle_all<F: Fs>(fs: &F, agent_dir: &Path) -> Result<(), TrashError> {
    let dir = trash_dir(agent_dir);
    if fs.stat(&dir).is_err() {
        return Ok(());
    }
    let _moving = alone(fs, &dir)?;
    let failed = |why| TrashError::Io { path: dir.clone(), why };
    let mut done = Ok(());
    for folder in folders(fs, &dir).map_err(failed)? {
        done = done.and(settle(fs, &folder));
    }
    for path in fs.list(&dir).map_err(failed)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with('.') && name.ends_with(GONE) {
            done = done.and(moving::remove_tree(fs, &path).map_err(|why| TrashError::Io { path: path.clone(), why }));
        }
    }
    done
}

/// Brings one folder of the trash to rest: see the top of this file.
fn settle<F: Fs>(fs: &F, folder: &Path) -> Result<(), TrashError> {
    let failed = |path: &Path| {
        let path = path.to_path_buf();
        move |why| TrashError::Io { path, why }
    };
    let Some(record) = Record::read(fs, folder) else {
        return Record::clear(fs, folder).map_err(failed(folder));
    };
    for name in record.parts.iter().chain([&record.name]) {
        // Copies that were not finished; what they were made of is still there.
        let (ours, theirs) = (folder.join(name), record.place_of(name));
        [ours, theirs].iter().try_for_each(|path| moving::drop_staged(fs, path)).map_err(failed(folder))?;
    }
    let file = folder.join(&record.name);
    let (mut here, there) = (fs.stat(&file).is_ok(), fs.stat(&record.path).is_ok());
    if here && there && moving::begins_with(fs, &record.path, &file).map_err(failed(&file))? {
        // Between two file systems a move is a copy and a removal, and the removal is missing.
        fs.unlink(&file).and_then(|()| fs.sync_dir(folder)).map_err(failed(&file))?;
        here = false;
    }
    match (here, there) {
        // Another file came to its place meanwhile: what lies beside that one is not ours.
        (true, true) => Ok(()),
        (true, false) => record.parts.iter().try_for_each(|part| {
            match move_if_there(fs, &record.place_of(part), &folder.join(part)) {
                // It came meanwhile, and is not ours.
                Err(TrashError::Behind { why, .. }) if why.kind() == io::ErrorKind::AlreadyExists => Ok(()),
                moved => moved,
            }
        }),
        (false, true) => {
            record.parts.iter().try_for_each(|part| move_if_there(fs, &folder.join(part), &record.place_of(part)))?;
            Record::clear(fs, folder).map_err(failed(folder))
        }
        // Somebody else took the session; what is left of it is left to him.
        (false, false) => Ok(()),
    }
}

fn move_if_there<F: Fs>(fs: &F, from: &Path, to: &Path) -> Result<(), TrashError> {
    moving::move_part(fs, from, to).map_err(|why| TrashError::Behind { part: from.into(), why })
}

/// The id in the header.
fn identity<F: Fs>(fs: &F, agent_dir: &Path, session: &Path) -> Result<String, TrashError> {
    match Reader::open_with(fs, session, agent_dir) {
        Ok(loaded) => Ok(loaded.value.header().id.to_string()),
        Err(OpenError::NoHeader { .. } | OpenError::Version { .. })
            if session.starts_with(agent_dir.join("sessions"))
                && session.extension().is_some_and(|ending| ending == "jsonl") =>
        {
            Ok(session.file_stem().unwrap_or_default().to_string_lossy().chars().take(100).collect())
        }
        Err(why) => Err(why.into()),
    }
}

/// The lock of a session file, which no process has. While it is held, no other one opens it for writing.
fn unused<F: Fs>(fs: &F, session: &Path) -> Result<F::File, TrashError> {
    let failed = |why: io::Error| match why.kind() {
        io::ErrorKind::NotFound => TrashError::NoSession(OpenError::NotFound(session.into())),
        _ => TrashError::Io { path: session.into(), why },
    };
    let file = fs.open(session, Open::Read).map_err(failed)?;
    let mut lease = session.as_os_str().to_owned();
    lease.push(".lease");
    match file.try_lock() {
        Ok(Held::Ours) => Ok(file),
        Ok(Held::Other) => Err(TrashError::InUse { pid: file.lock_holder() }),
        // Where the file system refuses locks, a lease stands in for them, which its owner removes when done.
        Err(_) if fs.stat(Path::new(&lease)).is_ok() => Err(TrashError::InUse { pid: None }),
        Err(_) => Ok(file),
    }
}

/// Keeps other processes from moving things at the same time: what one has begun looks to another like a step that was
/// interrupted.
fn alone<F: Fs>(fs: &F, dir: &Path) -> Result<F::File, TrashError> {
    let failed = |why| TrashError::Io { path: dir.into(), why };
    mkdir_all_durable(fs, dir).map_err(failed)?;
    let lock = dir.join(".lock");
    let file = match fs.open(&lock, Open::CreateNew) {
        Err(why) if why.kind() == io::ErrorKind::AlreadyExists => fs.open(&lock, Open::Append),
        made => made,
    };
    let file = file.map_err(failed)?;
    match file.try_lock() {
        Ok(Held::Other) => Err(TrashError::Busy),
        // Without locks there is nothing better.
        Ok(Held::Ours) | Err(_) => Ok(file),
    }
}

/// A folder of its own for one session.
fn make_folder<F: Fs>(fs: &F, dir: &Path, record: &Record) -> io::Result<PathBuf> {
    let name = format!("{}_{}", record.at.file_form(), record.id);
    for count in 1_u32.. {
        let folder = dir.join(if count == 1 { name.clone() } else { format!("{name}-{count}") });
        match fs.mkdir(&folder) {
            Err(why) if why.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|()| folder),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

fn folders<F: Fs>(fs: &F, dir: &Path) -> io::Result<Vec<PathBuf>> {
    let names = match fs.list(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        names => names?,
    };
    let is_folder = |path: &PathBuf| {
        let hidden = path.file_name().unwrap_or_default().to_string_lossy().starts_with('.');
        !hidden && fs.stat(path).is_ok_and(|stat| stat.is_dir) && !fs.is_link(path).unwrap_or(true)
    };
    Ok(names.into_iter().filter(is_folder).collect())
}
