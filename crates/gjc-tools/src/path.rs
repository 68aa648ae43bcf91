//! Paths as a model writes them, and files as the disk names them.

use crate::input::Form;
use gjc_entry::Label;
use gjc_protocol::Refusal;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use unicode_normalization::UnicodeNormalization;

/// How many links may stand in a row, as in the kernel.
const MAX_LINKS: usize = 40;
/// How many names of a folder are looked at for a suggestion.
const MAX_NAMES: usize = 10_000;

/// Refuses what can be no path.
pub(crate) fn check(form: &Form, path: &str) -> Result<(), Refusal> {
    if path.is_empty() {
        return Err(form.wrong("`path` is empty"));
    }
    if path.contains('\0') {
        return Err(form.wrong("`path` holds a NUL character"));
    }
    Ok(())
}

/// Where a path leads from `cwd`. Of each name the first form that exists counts: as written, then NFC, then NFD; macOS
/// writes 한글 names decomposed, models write them composed. A name without any file stays as written. `~` means nothing.
pub(crate) fn find(cwd: &Path, path: &str) -> PathBuf {
    cwd.join(path).components().fold(PathBuf::new(), |found, part| {
        let exact = found.join(part);
        let Component::Normal(name) = part else { return exact };
        let Some(name) = name.to_str().filter(|name| !name.is_ascii()) else { return exact };
        if exact.symlink_metadata().is_ok() {
            return exact;
        }
        let forms = [name.nfc().collect::<String>(), name.nfd().collect()];
        forms.iter().map(|form| found.join(form)).find(|path| path.symlink_metadata().is_ok()).unwrap_or(exact)
    })
}

/// Follows links at the end of a path, also to where nothing is yet.
pub(crate) fn follow(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_path_buf();
    for _ in 0..MAX_LINKS {
        match fs::read_link(&path) {
            Ok(target) => path = path.parent().unwrap_or(Path::new("/")).join(target),
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::other("too many links lead to one another"))
}

/// The path without links, also of what does not exist yet. `None` where that cannot be said.
pub(crate) fn real(path: &Path) -> Option<PathBuf> {
    let path = follow(path).ok()?;
    let (there, ancestor) = path.ancestors().find_map(|ancestor| Some((ancestor.canonicalize().ok()?, ancestor)))?;
    let rest = path.strip_prefix(ancestor).ok()?;
    rest.components().try_fold(there, |path, part| matches!(part, Component::Normal(_)).then(|| path.join(part)))
}

/// The label of what a path leads to: files of the workspace are the person's own, for all others nobody vouches. Nor for what
/// gjc keeps in its `own` folder, wherever that is: outputs of commands and pages of the web lie there.
pub(crate) fn label(cwd: &Path, own: &Path, path: &Path) -> Label {
    let inside = |path: &Path, folder: &Path| folder.canonicalize().is_ok_and(|folder| path.starts_with(folder));
    let trusted = real(path).is_some_and(|path| inside(&path, cwd) && !inside(&path, own));
    Label { trusted, ..Label::PUBLIC_TRUSTED }
}

/// [`label`] of an open file. A path that by now leads elsewhere (a link was moved) vouches for nothing.
pub(crate) fn label_of(cwd: &Path, own: &Path, path: &Path, file: &File) -> Label {
    let label = label(cwd, own, path);
    Label { trusted: label.trusted && is_behind(path, file), ..label }
}

/// Whether an open file is (still) the one that a path leads to.
pub(crate) fn is_behind(path: &Path, file: &File) -> bool {
    match (file.metadata(), fs::metadata(path)) {
        (Ok(open), Ok(named)) => (open.dev(), open.ino()) == (named.dev(), named.ino()),
        _ => false,
    }
}

/// Whether a path names something among the person's own skills, in gjc's own folder: no tool writes there, so whatever stands
/// there, links included, they have put there.
pub(crate) fn is_own_skill(own: &Path, path: &Path) -> bool {
    path.starts_with(own.join("skills")) && path.components().all(|part| part != Component::ParentDir)
}

/// Where a path leads at this moment, links followed; the path itself where that cannot be told.
pub(crate) fn target(cwd: &Path, given: &str) -> PathBuf {
    let path = find(cwd, given);
    follow(&path).unwrap_or(path)
}

/// The refusal of what is neither file nor folder.
pub(crate) fn special(given: &str) -> Refusal {
    Refusal::new("special_file", format!("{given} is a device, a pipe or a socket, not a file"))
        .hint("use bash for such things")
}

/// A failed access as a sentence. `done` is what should have been done, as in `read` or `written`.
pub(crate) fn refuse(cwd: &Path, given: &str, done: &str, error: &io::Error) -> Refusal {
    let failed = |why: &str| format!("{given} could not be {done}: {why}");
    match error.kind() {
        // The folder is there or was made: file systems like /proc answer so.
        ErrorKind::NotFound if done == "written" => {
            Refusal::new("io", failed("no file can be made there")).hint("use a folder of the workspace")
        }
        ErrorKind::NotFound => missing(cwd, given),
        ErrorKind::NotADirectory => Refusal::new("not_a_folder", failed("a part of the path is a file, not a folder"))
            .hint("list the folder above it with read"),
        ErrorKind::PermissionDenied => Refusal::new("permission_denied", failed("permission denied"))
            .hint("use another path, or ask the person to change the permissions"),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            Refusal::new("disk_full", failed("the disk is full")).hint("remove something that is not needed")
        }
        ErrorKind::ReadOnlyFilesystem => {
            Refusal::new("read_only", failed("the file system is read-only")).hint("use a path on another file system")
        }
        ErrorKind::Interrupted => cancelled_while(given),
        _ => Refusal::new("io", failed(&error.to_string())).hint("check the path with bash: `ls -la`"),
    }
}

fn cancelled_while(given: &str) -> Refusal {
    Refusal::new("cancelled", format!("cancelled while {given} was being read"))
}

fn missing(cwd: &Path, given: &str) -> Refusal {
    let path = find(cwd, given);
    let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else {
        return Refusal::new("missing", format!("there is no {given}")).hint("give the path of a file");
    };
    if dir.is_dir() {
        let near = near(dir, name);
        let refusal = Refusal::new("missing", format!("there is no {given}"));
        if near.is_empty() {
            return refusal.hint(format!("list the folder with read {{\"path\": {:?}}}", shown_parent(given)));
        }
        let near: Vec<_> =
            near.iter().map(|name| Path::new(given).with_file_name(name).display().to_string()).collect();
        return refusal.hint(format!("did you mean {}?", near.join(" or ")));
    }
    let nearest = dir.ancestors().find(|dir| dir.is_dir()).unwrap_or(Path::new("/"));
    Refusal::new("missing", format!("there is no {given}: its folder does not exist either"))
        .hint(format!("the nearest folder that exists is {}; list it with read", nearest.display()))
}

fn shown_parent(given: &str) -> String {
    let parent = Path::new(given).parent().unwrap_or(Path::new(""));
    if parent.as_os_str().is_empty() { ".".into() } else { parent.display().to_string() }
}

/// Names in a folder that look like `name`, the nearest first, at most three.
fn near(dir: &Path, name: &OsStr) -> Vec<String> {
    let wanted = folded(&name.to_string_lossy());
    let most = (wanted.len() / 3).max(1);
    let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
    let mut near: Vec<(usize, String)> = entries
        .take(MAX_NAMES)
        .filter_map(|entry| {
            let name = entry.ok()?.file_name().to_string_lossy().into_owned();
            let distance = distance(&wanted, &folded(&name));
            (distance <= most).then_some((distance, name))
        })
        .collect();
    near.sort();
    near.truncate(3);
    near.into_iter().map(|(_, name)| name).collect()
}

/// Letters without case and normal form. 한글 stays decomposed: one wrong jamo is one mistake.
fn folded(name: &str) -> Vec<char> {
    name.nfd().flat_map(char::to_lowercase).collect()
}

/// How many letters must be changed, added or removed (Levenshtein).
fn distance(a: &[char], b: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, one) in a.iter().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, other) in b.iter().enumerate() {
            let changed = corner + usize::from(one != other);
            corner = row[j + 1];
            row[j + 1] = changed.min(corner + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn distance_counts_letters() {
        for (a, b, expected) in [("", "", 0), ("", "abc", 3), ("kitten", "sitting", 3), ("보고서", "보고사", 1)] {
            assert_eq!(distance(&folded(a), &folded(b)), expected, "{a} {b}");
            assert_eq!(distance(&folded(b), &folded(a)), expected, "{b} {a}");
        }
    }

    #[test]
    fn each_name_is_found_in_whatever_form_it_has() {
        let dir = tempfile::tempdir().unwrap();
        let cwd = dir.path();
        let (nfc, nfd) = ("한글", "한글".nfd().collect::<String>());
        fs::create_dir(cwd.join(&nfd)).unwrap();
        fs::write(cwd.join(&nfd).join(nfc), "").unwrap();
        assert_eq!(find(cwd, &format!("{nfc}/{nfd}")), cwd.join(&nfd).join(nfc), "mixed");
        fs::write(cwd.join(&nfd).join(&nfd), "").unwrap();
        assert_eq!(find(cwd, &format!("{nfc}/{nfd}")), cwd.join(&nfd).join(&nfd), "exact first");
        assert_eq!(find(cwd, "없다/한글"), cwd.join("없다/한글"), "what is missing stays as written");
    }

    #[test]
    fn links_that_lead_to_one_another_end() {
        let dir = tempfile::tempdir().unwrap();
        let (a, b) = (dir.path().join("a"), dir.path().join("b"));
        std::os::unix::fs::symlink(&a, &b).unwrap();
        std::os::unix::fs::symlink(&b, &a).unwrap();
        assert!(follow(&a).is_err());
        assert_eq!(real(&a), None);
        assert!(!label(dir.path(), Path::new("/nowhere"), &a).trusted);
    }

    #[test]
    fn a_file_that_is_not_behind_its_path_any_more_is_untrusted() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("글");
        fs::write(&path, "one").unwrap();
        let file = File::open(&path).unwrap();
        assert!(label_of(dir.path(), Path::new("/nowhere"), &path, &file).trusted);
        fs::write(dir.path().join("other"), "two").unwrap();
        fs::rename(dir.path().join("other"), &path).unwrap();
        assert!(!label_of(dir.path(), Path::new("/nowhere"), &path, &file).trusted);
    }

    #[test]
    fn what_gjc_keeps_is_nobody_s_word_wherever_it_lies() {
        let dir = tempfile::tempdir().unwrap();
        let (cwd, own) = (dir.path().to_path_buf(), dir.path().join("agent"));
        fs::create_dir(&own).unwrap();
        for name in ["agent/1.bash.log", "agents.md"] {
            fs::write(cwd.join(name), "x").unwrap();
            assert_eq!(label(&cwd, &own, &cwd.join(name)).trusted, name == "agents.md", "{name}");
        }
    }
}
