//! Opens the session file that a command is about: a new one, one to go on with, the copy of an old one.

use crate::failure::Failure;
use crate::out;
use crate::world::real_dir;
use gjc_entry::{DamageKind, EntryId, Env, Header};
use gjc_log::fs::OsFs;
use gjc_log::{BlobStore, Durability, LogEnv, OpenError, Reader, Repaired, Writer};
use gjc_store::{bucket_name, same_folder};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where a new session's file lies: in the folder that holds all of them, or in the bucket of its working folder.
pub(crate) fn place(env: &Env, all: Option<&Path>, cwd: &Path, header: &Header) -> PathBuf {
    let folder = all.map_or_else(|| env.dirs.sessions().join(bucket_name(cwd)), Path::to_path_buf);
    folder.join(header.file_name())
}

/// A new session of a folder; in memory unless `stored`. `all`: the folder that holds all sessions, if a person named one.
pub(crate) fn create(env: &Env, all: Option<&Path>, cwd: &Path, stored: bool, durability: Durability) -> Writer<OsFs> {
    let (at, id) = (env.clock.wall(), env.ids.session());
    let header = Header::new(id, at, cwd.display().to_string());
    let path = place(env, all, cwd, &header);
    let log = log_env(env, stored.then(|| env.dirs.blobs()), durability);
    if stored { Writer::create(log, path, header) } else { Writer::in_memory(log, header) }
}

/// A new session of a folder with everything of another one, which is stored, up to an entry.
pub(crate) fn branch(
    env: &Env,
    all: Option<&Path>,
    source: &Path,
    upto: Option<&EntryId>,
    cwd: &Path,
    durability: Durability,
) -> Result<Writer<OsFs>, Failure> {
    let source = Reader::open_with(&OsFs, source, &env.dirs.agent)?.value;
    let header = Header::new(env.ids.session(), env.clock.wall(), cwd.display().to_string());
    let path = place(env, all, cwd, &header);
    let log = log_env(env, Some(env.dirs.blobs()), durability);
    Ok(Writer::branch(log, &source, upto, path, header)?)
}

/// What a log is opened with; blobs stay in memory without a folder for them.
fn log_env(env: &Env, blobs: Option<PathBuf>, durability: Durability) -> LogEnv<OsFs> {
    let fs = Arc::new(OsFs);
    LogEnv {
        blobs: Arc::new(BlobStore::new(Arc::clone(&fs), blobs)),
        fs,
        clock: Arc::clone(&env.clock),
        ids: Arc::clone(&env.ids),
        durability,
        agent_dir: Some(env.dirs.agent.clone()),
    }
}

/// Opens a session to go on with, and says in which folder it does.
pub(crate) async fn resume(
    env: &Env,
    all: Option<&Path>,
    path: &Path,
    durability: Durability,
    here: &Path,
    cwd_given: bool,
    notices: &mut Vec<String>,
) -> Result<(Writer<OsFs>, PathBuf, bool), Failure> {
    let (writer, more) = open(env, all, path, durability).await?;
    notices.extend(more);
    let recorded = PathBuf::from(&writer.header().cwd);
    let cwd = if cwd_given || recorded.as_os_str().is_empty() {
        here.into()
    } else if let Ok(real) = real_dir(&recorded) {
        // Another program, or a folder that was moved and linked, may have left another way to it.
        real
    } else if same_folder(&writer.header().cwd, here) {
        // Written in another normal form of Unicode.
        here.into()
    } else {
        let recorded = out::row(&recorded.to_string_lossy());
        notices.push(format!("the session's folder {recorded} is gone; it goes on in {}", here.display()));
        here.into()
    };
    Ok((writer, cwd, true))
}

/// Makes a session of a folder that begins with all entries of another one, and opens it. What the other has stored beside its
/// file is copied as far as it can be.
pub(crate) async fn fork(
    env: &Env,
    all: Option<&Path>,
    source: &Path,
    cwd: &Path,
    durability: Durability,
    notices: &mut Vec<String>,
) -> Result<(Writer<OsFs>, PathBuf, bool), Failure> {
    let (at, id) = (env.clock.wall(), env.ids.session());
    let header = Header::new(id, at, cwd.display().to_string());
    let to = place(env, all, cwd, &header);
    let forked = gjc_log::fork(&OsFs, source, &to, header)?;
    let (id, file) = (out::row(forked.source.id.as_str()), out::row(&source.to_string_lossy()));
    notices.push(format!("this session is a fork of {id} ({file})"));
    notices.extend(stayed_behind(forked.damage.len(), source));
    if forked.left_behind > 0 {
        notices.push(format!("its last line is unfinished; these {} bytes stayed behind", forked.left_behind));
    }
    notices.extend(gjc_log::carry_artifacts(&OsFs, &source.with_extension(""), &to.with_extension("")));
    let (writer, more) = open(env, all, &to, durability).await?;
    notices.extend(more);
    Ok((writer, cwd.into(), true))
}

/// Opens a session file for writing, and says what was mended. `all`: as for [`create`], where it goes on in a copy.
pub(crate) async fn open(
    env: &Env,
    all: Option<&Path>,
    path: &Path,
    durability: Durability,
) -> Result<(Writer<OsFs>, Vec<String>), Failure> {
    let (loaded, repaired) = match Writer::open_patiently(log_env(env, Some(env.dirs.blobs()), durability), path).await
    {
        Err(OpenError::Old { version, .. }) => return copy(env, all, path, version, durability),
        opened => opened?,
    };
    let mut notices: Vec<String> = loaded.value.lock_kind().notice().map(Into::into).into_iter().collect();
    match repaired {
        Repaired::Nothing => {}
        Repaired::Completed => {
            notices.push("the session's last line was whole but had no line feed; it got one".into());
        }
        Repaired::Cut { bytes, saved } => notices.push(format!(
            "the session ended in an unfinished line; its {bytes} bytes were moved to {}",
            saved.display()
        )),
    }
    if !loaded.damage.is_empty() {
        let places = match loaded.damage.len() {
            1 => "one place".into(),
            places => format!("{places} places"),
        };
        let cut = loaded.damage.iter().any(|damage| matches!(damage.kind, DamageKind::Orphan(_)));
        let rest = if cut {
            "what comes before the damage is in the file, but no longer in the conversation"
        } else {
            "everything else is there"
        };
        notices.push(format!("the session is damaged in {places}; {rest} (gjc sessions verify {})", path.display()));
    }
    Ok((loaded.value, notices))
}

/// A session of an old version goes on in a copy.
fn copy(
    env: &Env,
    all: Option<&Path>,
    path: &Path,
    version: u32,
    durability: Durability,
) -> Result<(Writer<OsFs>, Vec<String>), Failure> {
    let loaded = Reader::open(&OsFs, path)?;
    let old = loaded.value.header();
    let (at, id) = (env.clock.wall(), env.ids.session());
    let mut header = Header::new(id, at, old.cwd.clone());
    header.parent = Some(old.id.to_string());
    header.title.clone_from(&old.title);
    header.extra.clone_from(&old.extra);
    let file = place(env, all, Path::new(&old.cwd), &header);
    let (writer, left) =
        Writer::copy(log_env(env, Some(env.dirs.blobs()), durability), &loaded.value, file.clone(), header);
    let mut notices = vec![format!(
        "{} is of version {version}, which nothing can be added to; it goes on in a copy: {}",
        path.display(),
        file.display()
    )];
    // Lines that are no entries, and entries that could not be read.
    notices.extend(stayed_behind(loaded.damage.len() + left.len(), path));
    Ok((writer, notices))
}

/// What is said of damage that a new file does not have.
fn stayed_behind(damaged: usize, source: &Path) -> Option<String> {
    let source = out::row(&source.to_string_lossy());
    match damaged {
        0 => None,
        1 => Some(format!("one damaged entry stayed behind (gjc sessions verify {source})")),
        _ => Some(format!("{damaged} damaged entries stayed behind (gjc sessions verify {source})")),
    }
}
