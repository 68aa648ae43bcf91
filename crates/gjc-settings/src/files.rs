//! The files: each is read once, whole, within a bound, and never through a link that came with a project; a person's file
//! is replaced in one step or not at all.

use rustix::fs::{AtFlags, Mode, OFlags, open, openat, statat};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// The most bytes of a file of settings.
pub const LARGEST: u64 = 256 * 1024;

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It cannot be read.
    #[error("{path} cannot be read: {source}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is a folder, a pipe, a device.
    #[error("{path} is no file; settings are read from files alone")]
    NoFile {
        /// What stands there.
        path: PathBuf,
    },
    /// It is too large.
    #[error("{path} has more than {LARGEST} bytes; settings need a few lines")]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// A project's file is behind a link.
    #[error("{path} is a symbolic link; a project's settings are a file of the project itself")]
    Link {
        /// The link.
        path: PathBuf,
    },
    /// It cannot be written.
    #[error("{path} cannot be written: {source}")]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Somebody changed it meanwhile.
    #[error("{path} was changed by somebody else in this moment; nothing was written, try again")]
    Changed {
        /// The file.
        path: PathBuf,
    },
}

/// The bytes of the person's file; `None` where there is none. A link is followed: many keep their files elsewhere.
///
/// # Errors
/// [`FileError`].
pub fn read_user(path: &Path) -> Result<Option<Vec<u8>>, FileError> {
    // Without O_NONBLOCK opening a pipe would wait for its writer.
    let opened = OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path);
    match opened {
        // Where a file stands in the place of a folder there is nothing below it either.
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
        Err(source) => Err(FileError::Unreadable { path: path.into(), source }),
        Ok(file) => read(path, file).map(Some),
    }
}

fn read(path: &Path, file: File) -> Result<Vec<u8>, FileError> {
    let unreadable = |source| FileError::Unreadable { path: path.into(), source };
    if !file.metadata().map_err(unreadable)?.is_file() {
        return Err(FileError::NoFile { path: path.into() });
    }
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > LARGEST { Err(FileError::TooLarge { path: path.into() }) } else { Ok(bytes) }
}

/// The root of the project that a folder belongs to: the nearest folder above it with `.git`, else the folder itself.
#[must_use]
pub fn project_root(cwd: &Path) -> PathBuf {
    let holds_git = |dir: &&Path| dir.join(".git").symlink_metadata().is_ok();
    cwd.ancestors().find(holds_git).unwrap_or(cwd).into()
}

/// Where a project has its settings.
#[must_use]
pub fn project_file(root: &Path) -> PathBuf {
    root.join(".gjc").join("config.yml")
}

/// The bytes of a project's file; `None` where there is none, or where it is the person's own file. `root` is a real path;
/// nothing below it is reached through a link.
///
/// # Errors
/// [`FileError`].
pub fn read_project(root: &Path, user: &Path) -> Result<Option<Vec<u8>>, FileError> {
    let path = project_file(root);
    let folder = root.join(".gjc");
    let unreadable = |source: io::Error| FileError::Unreadable { path: path.clone(), source };
    // As places to go on from: a folder that may be passed through but not listed is one.
    let place = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let root: File = open(root, place, Mode::empty()).map_err(|error| unreadable(error.into()))?.into();
    let Some(dir) = open_below(&root, ".gjc", place, &folder)? else { return Ok(None) };
    let readable = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let Some(file) = open_below(&dir, "config.yml", readable, &path)? else { return Ok(None) };
    let (here, theirs) = (file.metadata().map_err(unreadable)?, fs::metadata(user));
    if theirs.is_ok_and(|theirs| (theirs.dev(), theirs.ino()) == (here.dev(), here.ino())) {
        return Ok(None);
    }
    read(&path, file).map(Some)
}

fn open_below(dir: &File, name: &str, flags: OFlags, path: &Path) -> Result<Option<File>, FileError> {
    let error = match openat(dir, name, flags, Mode::empty()) {
        Ok(file) => return Ok(Some(file.into())),
        Err(error) => error,
    };
    // A folder that is wanted and is a link is reported as no folder: look what it is.
    let what = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW);
    match what.map(|stat| rustix::fs::FileType::from_raw_mode(stat.st_mode)) {
        Ok(rustix::fs::FileType::Symlink) => Err(FileError::Link { path: path.into() }),
        Err(rustix::io::Errno::NOENT) => Ok(None),
        _ if error == rustix::io::Errno::NOTDIR => Ok(None),
        _ => Err(FileError::Unreadable { path: path.into(), source: error.into() }),
    }
}

/// Writes the person's file, if it still holds what was read (`before`; `None`: there was none). Who reads it sees all of
/// the old text or all of the new one, also after a power cut. A link stays, and the file behind it is written.
///
/// # Errors
/// [`FileError`]; nothing has changed then.
pub fn write(path: &Path, before: Option<&[u8]>, text: &str) -> Result<(), FileError> {
    let unwritable = |source: io::Error| FileError::Unwritable { path: path.into(), source };
    let real = match fs::canonicalize(path) {
        Ok(real) => real,
        Err(error) if error.kind() == io::ErrorKind::NotFound && path.symlink_metadata().is_err() => path.into(),
        Err(source) => return Err(unwritable(source)),
    };
    let dir = real.parent().unwrap_or(Path::new("/"));
    make_private(dir).map_err(unwritable)?;
    // Two of these at once take turns; the lock goes with the handle.
    let turn = File::open(dir).map_err(unwritable)?;
    turn.lock().map_err(unwritable)?;
    if read_user(&real)?.as_deref() != before {
        return Err(FileError::Changed { path: path.into() });
    }
    let mode = fs::metadata(&real).map(|found| found.mode() & 0o7777).ok();
    replace(&real, text.as_bytes(), mode).map_err(unwritable)
}

/// Makes a folder of the person's, and what is missing above it.
pub(crate) fn make_private(dir: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

/// Writes beside it, syncs, renames, syncs the name.
#[expect(clippy::disallowed_methods, reason = "the file and the folder of its name are synced here")]
pub(crate) fn replace(path: &Path, bytes: &[u8], mode: Option<u32>) -> io::Result<()> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let dir = path.parent().unwrap_or(Path::new("/"));
    let (temp, mut file) = loop {
        let name = format!(".gjc-{}-{}.tmp", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let temp = dir.join(name);
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temp) {
            Ok(file) => break (temp, file),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    };
    let done = file
        .write_all(bytes)
        .and_then(|()| mode.map_or(Ok(()), |mode| file.set_permissions(fs::Permissions::from_mode(mode))))
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&temp, path))
        .and_then(|()| File::open(dir)?.sync_all());
    if done.is_err() {
        let _ = fs::remove_file(&temp);
    }
    done
}
