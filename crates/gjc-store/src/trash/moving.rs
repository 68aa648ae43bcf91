//! Moving files and folders, also from one file system to another, so that a process that dies on the way loses nothing.

use gjc_log::fs::{Fs, FsFile, Open};
use std::io;
use std::path::{Path, PathBuf};

/// So much is copied or compared at once.
const CHUNK: usize = 256 * 1024;

/// Moves a session file, never over another one. Both folders are durable afterwards.
pub(super) fn move_file<F: Fs>(fs: &F, from: &Path, to: &Path) -> io::Result<()> {
    match fs.rename_new(from, to) {
        Err(why) if why.kind() == io::ErrorKind::CrossesDevices => {
            copy_file(fs, from, to)?;
            gjc_fp::fp!("store.move.copied");
            fs.unlink(from)?;
        }
        renamed => renamed?,
    }
    sync_homes(fs, from, to)
}

/// Moves what belongs to a session, if it is there. What a move between file systems has left of the source, when the whole
/// stands at its end already, is removed; anything else at the end is never touched.
pub(super) fn move_part<F: Fs>(fs: &F, from: &Path, to: &Path) -> io::Result<()> {
    let stat = match fs.stat(from) {
        Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(()),
        stat => stat?,
    };
    if let Ok(there) = fs.stat(to) {
        // One folder under two names would lose its content with either of them.
        if stat.is_dir && (stat.dev, stat.inode) == (there.dev, there.inode) {
            return Ok(());
        }
        if is_within(fs, from, to)? {
            remove_tree(fs, from)?;
            return sync_homes(fs, from, to);
        }
        if !is_within(fs, to, from)? {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("{} is there", to.display())));
        }
        // The move in the other direction was interrupted while its source was being removed.
        remove_tree(fs, to)?;
    }
    // A folder without replacing, where the kernel cannot: nothing is at `to`, and only an empty folder could be replaced.
    let renamed = if stat.is_dir { fs.rename(from, to) } else { fs.rename_new(from, to) };
    match renamed {
        Err(why) if why.kind() == io::ErrorKind::CrossesDevices => {
            copy_tree(fs, from, to)?;
            remove_tree(fs, from)?;
        }
        renamed => renamed?,
    }
    sync_homes(fs, from, to)
}

/// Removes a file, or a folder with everything below it. A link is removed, not what it leads to.
pub(super) fn remove_tree<F: Fs>(fs: &F, path: &Path) -> io::Result<()> {
    if fs.is_link(path)? || !fs.stat(path)?.is_dir {
        return fs.unlink(path);
    }
    fs.list(path)?.iter().try_for_each(|below| remove_tree(fs, below))?;
    fs.rmdir(path)
}

/// Removes what an interrupted copy to `to` has left.
pub(super) fn drop_staged<F: Fs>(fs: &F, to: &Path) -> io::Result<()> {
    match fs.is_link(&staged(to)) {
        // A name that is too long for a file is none's.
        Err(why) if matches!(why.kind(), io::ErrorKind::NotFound | io::ErrorKind::InvalidFilename) => Ok(()),
        found => found.and_then(|_| remove_tree(fs, &staged(to))),
    }
}

/// Whether a file begins with all bytes of another one.
pub(super) fn begins_with<F: Fs>(fs: &F, file: &Path, beginning: &Path) -> io::Result<bool> {
    let (file, beginning) = (fs.open(file, Open::Read)?, fs.open(beginning, Open::Read)?);
    if file.stat()?.len < beginning.stat()?.len {
        return Ok(false);
    }
    let (mut ours, mut theirs, mut at) = (vec![0; CHUNK], vec![0; CHUNK], 0);
    loop {
        let got = beginning.read_at(&mut theirs, at)?;
        if got == 0 {
            return Ok(true);
        }
        if file.read_at(&mut ours[..got], at)? != got || ours[..got] != theirs[..got] {
            return Ok(false);
        }
        at += got as u64;
    }
}

/// Writes a new file, durable; its name is not yet. One that an interrupted attempt has left is replaced.
pub(super) fn write_new<F: Fs>(fs: &F, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let file = create(fs, path)?;
    append(&file, bytes)?;
    file.sync_data()
}

/// Whether all that is below `part` stands below `whole` too, with the same bytes.
fn is_within<F: Fs>(fs: &F, part: &Path, whole: &Path) -> io::Result<bool> {
    if fs.is_link(part)? {
        return Ok(false);
    }
    match (fs.stat(part)?.is_dir, fs.stat(whole)) {
        (_, Err(why)) if why.kind() == io::ErrorKind::NotFound => Ok(false),
        (_, Err(why)) => Err(why),
        (true, Ok(stat)) if stat.is_dir => {
            for below in fs.list(part)? {
                let name = below.file_name().unwrap_or_default();
                if !is_within(fs, &below, &whole.join(name))? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (false, Ok(stat)) if stat.is_file => Ok(fs.stat(part)?.len == stat.len && begins_with(fs, whole, part)?),
        _ => Ok(false),
    }
}

/// Copies a file or a folder under a temporary name, makes it durable, and gives it its name.
fn copy_tree<F: Fs>(fs: &F, from: &Path, to: &Path) -> io::Result<()> {
    if !fs.stat(from)?.is_dir {
        return copy_file(fs, from, to);
    }
    drop_staged(fs, to)?;
    let staged = staged(to);
    copy_below(fs, from, &staged)?;
    fs.rename(&staged, to)?;
    to.parent().map_or(Ok(()), |home| fs.sync_dir(home))
}

fn copy_below<F: Fs>(fs: &F, from: &Path, to: &Path) -> io::Result<()> {
    let stat = fs.stat(from)?;
    if fs.is_link(from)? || !(stat.is_dir || stat.is_file) {
        let what = format!("{} is neither a file nor a folder; only those go to another file system", from.display());
        return Err(io::Error::other(what));
    }
    if stat.is_file {
        return copy_bytes(fs, from, to);
    }
    fs.mkdir(to)?;
    for below in fs.list(from)? {
        copy_below(fs, &below, &to.join(below.file_name().unwrap_or_default()))?;
    }
    fs.sync_dir(to)
}

fn copy_file<F: Fs>(fs: &F, from: &Path, to: &Path) -> io::Result<()> {
    let staged = staged(to);
    copy_bytes(fs, from, &staged)?;
    fs.rename_new(&staged, to).inspect_err(|_| drop(fs.unlink(&staged)))?;
    to.parent().map_or(Ok(()), |home| fs.sync_dir(home))
}

fn copy_bytes<F: Fs>(fs: &F, from: &Path, to: &Path) -> io::Result<()> {
    let (source, target) = (fs.open(from, Open::Read)?, create(fs, to)?);
    let (mut chunk, mut at) = (vec![0; CHUNK], 0);
    loop {
        let got = source.read_at(&mut chunk, at)?;
        if got == 0 {
            return target.sync_data();
        }
        append(&target, &chunk[..got])?;
        at += got as u64;
    }
}

fn create<F: Fs>(fs: &F, path: &Path) -> io::Result<F::File> {
    match fs.open(path, Open::CreateNew) {
        Err(why) if why.kind() == io::ErrorKind::AlreadyExists => {
            fs.unlink(path)?;
            fs.open(path, Open::CreateNew)
        }
        made => made,
    }
}

fn append<T: FsFile>(file: &T, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.append(bytes)? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            wrote => bytes = &bytes[wrote..],
        }
    }
    Ok(())
}

fn staged(path: &Path) -> PathBuf {
    path.with_file_name(format!(".{}.moving", path.file_name().unwrap_or_default().to_string_lossy()))
}

/// The old home first: its sync settles a rename whole, that of the new one alone could leave a folder under two names.
/// After a copy the new name is durable already.
fn sync_homes<F: Fs>(fs: &F, from: &Path, to: &Path) -> io::Result<()> {
    from.parent().map_or(Ok(()), |home| fs.sync_dir(home))?;
    to.parent().map_or(Ok(()), |home| fs.sync_dir(home))
}
