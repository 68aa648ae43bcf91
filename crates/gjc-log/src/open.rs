//! Opening a session for writing: create under a temporary name, or lock, repair and index what is there.

use crate::error::OpenError;
use crate::fs::{Fs, FsFile, Held, Open, Stat, make_dirs};
use crate::index;
use crate::lease::{Lease, Seen, Taken, refuses_locks};
use crate::reader::{Loaded, Tail, header_of};
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
/// The waits between two looks at the lock: short at first, then longer; who has waited long looks often again, so that
/// newcomers do not always win.
const STEPS_MS: [u32; 5] = [1, 2, 4, 8, 8];
const LONG: Duration = Duration::from_millis(200);

impl<F: Fs> Writer<F> {
    /// Opens an existing session for writing: takes the lock, repairs the tail, indexes the file.
    ///
    /// # Errors
    /// [`OpenError`]; the file is then untouched.
    pub fn open(env: LogEnv<F>, path: &Path) -> Result<(Loaded<Self>, Repaired), OpenError> {
        let fs = Arc::clone(&env.fs);
        Self::attempt(env, path, &mut Seen::default()).map_err(|error| named(&*fs, error))
    }

    fn attempt(env: LogEnv<F>, path: &Path, seen: &mut Seen) -> Result<(Loaded<Self>, Repaired), OpenError> {
        let failed = |why: io::Error| match why.kind() {
            io::ErrorKind::NotFound => OpenError::NotFound(path.into()),
            _ => OpenError::Io { path: path.into(), why },
        };
        if !env.fs.stat(path).map_err(failed)?.is_file {
            return Err(failed(io::Error::other("it is no regular file")));
        }
        let file = env.fs.open(path, Open::Append).map_err(failed)?;
        let lease = match file.try_lock() {
            Ok(Held::Ours) => None,
            Ok(Held::Other) => return Err(OpenError::Locked { path: path.into(), pid: None }),
            Err(why) if refuses_locks(&why) => match Lease::take(&env, path, seen) {
                Ok(lease) => Some(lease),
                Err(Taken::By(owner)) => return Err(OpenError::Leased { path: path.into(), owner }),
                Err(Taken::Io(why)) => return Err(failed(why)),
            },
            Err(why) => return Err(failed(why)),
        };
        // Between opening and locking the name may have come to lead to another file.
        let (ours, named) = (file.stat().map_err(failed)?, env.fs.stat(path).map_err(failed)?);
        if (ours.dev, ours.inode) != (named.dev, named.inode) {
            return Err(failed(io::Error::other("it was replaced while it was being opened; try again")));
        }
        // Refuse before anything is repaired: a file that we cannot read is not ours to mend.
        let kept = env.agent_dir.as_ref().map(|agent_dir| index::path_of(agent_dir, path));
        // A writer takes only the index of exactly this state of the file; what grew since it reads itself.
        let kept = kept.and_then(|kept| index::load(&*env.fs, &kept, &file, &ours));
        let mut scanned = kept.filter(|kept| kept.covered == ours.len).unwrap_or_default();
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
        // What others write from here on is seen before the first batch. What they wrote without syncing becomes durable
        // with our first sync, and no earlier promise depends on it.
        let place = Place::Disk { path: path.into(), file: Arc::new(file) };
        let mut value = Self::begin(env, header, scanned.skeleton, place, Some(Stat { len: scanned.covered, ..stat }));
        value.lease = lease;
        value.scars.clone_from(&scanned.damage);
        // Its writer may have died between giving the file its name and syncing the folder.
        value.shared().new_names_in(path.ancestors().skip(1).take(2).map(Path::to_path_buf).collect());
        Ok((Loaded { value, damage: scanned.damage, tail: Tail::Clean }, repaired))
    }

    /// As [`Writer::open`], trying for half a second while another process holds the lock.
    ///
    /// # Errors
    /// [`OpenError`].
    pub async fn open_patiently(env: LogEnv<F>, path: &Path) -> Result<(Loaded<Self>, Repaired), OpenError> {
        Self::open_waiting(env, path, LOCK_PATIENCE).await
    }

    /// As [`Writer::open`], waiting while another process has the session open: the hand-over between processes that
    /// write to one session in turns. What the others wrote is taken in, because the file is read after the lock is ours.
    ///
    /// Where a lease stands in for the lock, one whose owner fell silent on another machine is taken over after half a
    /// minute of such waiting.
    ///
    /// # Errors
    /// [`OpenError`]; [`OpenError::Locked`] (or [`OpenError::Leased`]) when `patience` ends first.
    pub async fn open_waiting(
        env: LogEnv<F>,
        path: &Path,
        patience: Duration,
    ) -> Result<(Loaded<Self>, Repaired), OpenError> {
        let (fs, began, mut seen) = (Arc::clone(&env.fs), env.clock.mono(), Seen::default());
        let mut steps = STEPS_MS.iter();
        loop {
            let waited = env.clock.mono().duration_since(began);
            match Self::attempt(env.clone(), path, &mut seen) {
                Err(OpenError::Locked { .. } | OpenError::Leased { .. }) if waited < patience => {
                    let step = if waited >= LONG { 1 } else { steps.next().copied().unwrap_or(8) };
                    // Between half and one and a half of it: processes that began to wait together come apart.
                    let micros = step * 500 + env.ids.entry(&|_| false) % (step * 1000);
                    env.clock.sleep(Duration::from_micros(micros.into())).await;
                }
                done => return done.map_err(|error| named(&*fs, error)),
            }
        }
    }

    /// The first write: folders, a locked file under a temporary name. The sync thread gives it its name once its content
    /// is durable, so that a session file is never seen without its header.
    pub(crate) fn stage(&mut self, path: &Path) -> io::Result<Arc<F::File>> {
        let fs = &Arc::clone(self.fs());
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
        let taken = "the new session file is locked by another process";
        let lease = match file.try_lock() {
            Ok(Held::Ours) => None,
            Ok(Held::Other) => return Err(io::Error::other(taken)),
            Err(why) if refuses_locks(&why) => match Lease::take(&self.env, path, &mut Seen::default()) {
                Ok(lease) => Some(lease),
                Err(Taken::By(_)) => return Err(io::Error::other(taken)),
                Err(Taken::Io(why)) => return Err(why),
            },
            Err(why) => return Err(why),
        };
        gjc_fp::fp!("log.create.locked");
        let (file, stat) = (Arc::new(file), fs.stat(&temporary)?);
        self.lease = lease;
        self.shared().staged(Arc::clone(&file), stat, Publish { temporary, path: path.into() });
        Ok(file)
    }
}

/// With the name of who holds the lock: looked up for the sentence only, not at each attempt.
fn named<F: Fs>(fs: &F, error: OpenError) -> OpenError {
    match error {
        OpenError::Locked { path, .. } => {
            let pid = fs.open(&path, Open::Read).ok().and_then(|file| file.lock_holder());
            OpenError::Locked { path, pid }
        }
        other => other,
    }
}

/// `.<name>.tmp`.
pub(crate) fn temporary_name(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.tmp"))
}
