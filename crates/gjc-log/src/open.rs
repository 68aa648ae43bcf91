//! Opening a session for writing: create under a temporary name, or lock, repair and index what is there.

use crate::error::OpenError;
use crate::fs::{Fs, FsFile, Held, Open, Stat, make_dirs};
use crate::reader::{Loaded, Tail, header_of};
use crate::scan::Scanned;
use crate::sync::Publish;
use crate::tail::{Repaired, repair};
use crate::writer::{LogEnv, Place, Writer};
use gjc_entry::header::MIN_APPENDED;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How long the lock is tried for: a child between fork and exec still holds its parent's.
const LOCK_PATIENCE: Duration = Duration::from_millis(500);
const LOCK_STEP: Duration = Duration::from_millis(20);

impl<F: Fs> Writer<F> {
    /// Opens an existing session for writing: takes the lock, repairs the tail, indexes the file.
    ///
    /// # Errors
    /// [`OpenError`]; the file is then untouched.
    pub fn open(env: LogEnv<F>, path: &Path) -> Result<(Loaded<Self>, Repaired), OpenError> {
        let failed = |why: io::Error| match why.kind() {
            io::ErrorKind::NotFound => OpenError::NotFound(path.into()),
            _ => OpenError::Io { path: path.into(), why },
        };
        if !env.fs.stat(path).map_err(failed)?.is_file {
            return Err(failed(io::Error::other("it is no regular file")));
        }
        let file = env.fs.open(path, Open::Append).map_err(failed)?;
        match file.try_lock() {
            Ok(Held::Ours) => {}
            Ok(Held::Other) => return Err(OpenError::Locked { path: path.into(), pid: file.lock_holder() }),
            Err(why) => return Err(failed(why)),
        }
        // Between opening and locking the name may have come to lead to another file.
        let (ours, named) = (file.stat().map_err(failed)?, env.fs.stat(path).map_err(failed)?);
        if (ours.dev, ours.inode) != (named.dev, named.inode) {
            return Err(failed(io::Error::other("it was replaced while it was being opened; try again")));
        }
        // Refuse before anything is repaired: a file that we cannot read is not ours to mend.
        let mut scanned = Scanned::default();
        scanned.scan(&file, ours.len).map_err(failed)?;
        let header = header_of(path, &scanned)?;
        if header.version < MIN_APPENDED {
            return Err(OpenError::Old { path: path.into(), version: header.version });
        }
        gjc_fp::fp!("log.open.locked");
        let repaired = repair(&*env.fs, &file, path, env.clock.wall()).map_err(failed)?;
        gjc_fp::fp!("log.open.repaired");
        let stat = file.stat().map_err(failed)?;
        scanned.scan(&file, stat.len).map_err(failed)?;
        // What others wrote without syncing becomes durable with our first sync, and no earlier promise depends on it.
        let place = Place::Disk { path: path.into(), file: Arc::new(file), stat };
        let value = Self::begin(env, header, scanned.skeleton, place);
        // Its writer may have died between giving the file its name and syncing the folder.
        value.shared().new_names_in(path.ancestors().skip(1).take(2).map(Path::to_path_buf).collect());
        Ok((Loaded { value, damage: scanned.damage, tail: Tail::Clean }, repaired))
    }

    /// As [`Writer::open`], trying for half a second while another process holds the lock.
    ///
    /// # Errors
    /// [`OpenError`].
    pub async fn open_patiently(env: LogEnv<F>, path: &Path) -> Result<(Loaded<Self>, Repaired), OpenError> {
        let began = env.clock.mono();
        loop {
            match Self::open(env.clone(), path) {
                Err(OpenError::Locked { .. }) if env.clock.mono().duration_since(began) < LOCK_PATIENCE => {
                    env.clock.sleep(LOCK_STEP).await;
                }
                done => return done,
            }
        }
    }

    /// The first write: folders, a locked file under a temporary name. The sync thread gives it its name once its content
    /// is durable, so that a session file is never seen without its header.
    pub(crate) fn stage(&self, path: &Path) -> io::Result<(Arc<F::File>, Stat)> {
        let fs = self.fs();
        let bucket = path.parent().ok_or_else(|| io::Error::other("a session file needs a folder"))?;
        // All of them are synced with the first commit, not only those made here: another process may have made one a
        // moment ago and have died before it was durable.
        let mut holders: BTreeSet<PathBuf> = bucket.ancestors().skip(1).take(2).map(Path::to_path_buf).collect();
        let made = make_dirs(&**fs, bucket, &mut holders);
        self.shared().new_names_in(holders);
        made?;
        gjc_fp::fp!("log.create.dirs");
        if fs.stat(path).is_ok() {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("{} exists already", path.display())));
        }
        let temporary = temporary_name(path);
        let file = match fs.open(&temporary, Open::CreateNew) {
            // Ours from an attempt that failed half-way: session ids are unique.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                fs.unlink(&temporary)?;
                fs.open(&temporary, Open::CreateNew)?
            }
            opened => opened?,
        };
        gjc_fp::fp!("log.create.opened");
        if file.try_lock()? != Held::Ours {
            return Err(io::Error::other("the new session file is locked by another process"));
        }
        gjc_fp::fp!("log.create.locked");
        let (file, stat) = (Arc::new(file), fs.stat(&temporary)?);
        self.shared().staged(Arc::clone(&file), Publish { temporary, path: path.into() });
        Ok((file, stat))
    }
}

/// `.<name>.tmp`.
fn temporary_name(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.tmp"))
}
