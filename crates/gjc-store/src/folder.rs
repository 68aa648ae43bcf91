//! Folders that sessions work in: whether two spellings mean one folder.
//!
//! A session keeps the spelling that its header has (`/mnt/c/Users/Me`); only comparisons look through it.

use std::fs;
use std::path::Path;
use unicode_normalization::UnicodeNormalization;

/// Whether the folder that a header names is this one: the same name in NFC, or one real path. On Windows' own paths
/// (`d:\x`, `D:/x`) the letter of the drive and the slashes may differ.
#[must_use]
pub fn same_folder(a: &str, b: &Path) -> bool {
    let spelled = b.to_string_lossy();
    if plain(a) == plain(&spelled) {
        return true;
    }
    matches!((real(a), real(&spelled)), (Some(a), Some(b)) if a == b)
}

/// Folders that are compared again and again, with their real paths asked once.
#[derive(Debug, Default)]
pub struct Folders(std::cell::RefCell<std::collections::HashMap<String, (String, Option<String>)>>);

impl Folders {
    /// As [`same_folder`].
    #[must_use]
    pub fn same(&self, a: &str, b: &str) -> bool {
        let (a, b) = (self.known(a), self.known(b));
        a.0 == b.0 || a.1.is_some() && a.1 == b.1
    }

    /// Whether the folder is there.
    #[must_use]
    pub fn is_there(&self, folder: &str) -> bool {
        self.known(folder).1.is_some()
    }

    fn known(&self, folder: &str) -> (String, Option<String>) {
        self.0.borrow_mut().entry(folder.into()).or_insert_with(|| (plain(folder), real(folder))).clone()
    }
}

/// The real path in NFC. What a header names by a relative path is no folder of whoever looks.
fn real(folder: &str) -> Option<String> {
    let real =
        Some(Path::new(folder)).filter(|path| path.is_absolute()).and_then(|path| fs::canonicalize(path).ok())?;
    Some(real.to_string_lossy().nfc().collect())
}

/// A folder's name for comparing: NFC, no slash at the end; a path with a drive in one spelling.
fn plain(path: &str) -> String {
    let path: String = path.nfc().collect();
    let path = match path.as_bytes() {
        [drive, b':', b'\\' | b'/', ..] if drive.is_ascii_alphabetic() => {
            path[..1].to_ascii_uppercase() + &path[1..].replace('\\', "/")
        }
        _ => path,
    };
    let end = path.trim_end_matches('/');
    if end.is_empty() { path } else { end.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drive_is_the_same_in_either_letter_and_a_stored_spelling_stays() {
        for (a, b, same) in [
            ("d:\\일\\x", "D:\\일\\x", true),
            ("D:/일/x", "d:\\일\\x\\", true),
            ("D:\\x", "E:\\x", false),
            ("/mnt/c/Users/Me", "/mnt/c/Users/Me/", true),
            ("/mnt/c/Users/Me", "/mnt/c/users/me", false),
            ("/작업", "/\u{110c}\u{1161}\u{11a8}\u{110b}\u{1165}\u{11b8}", true),
            ("/a/b-c", "/a-b/c", false),
            ("/", "/", true),
            ("", "/", false),
            (".", env!("CARGO_MANIFEST_DIR"), false),
        ] {
            assert_eq!(same_folder(a, Path::new(b)), same, "{a} {b}");
            assert_eq!(Folders::default().same(a, b), same, "{a} {b}");
        }
    }

    #[test]
    fn a_folder_is_the_same_through_links() {
        let dir = tempfile::tempdir().unwrap();
        let (real, link) = (dir.path().join("프로젝트"), dir.path().join("link"));
        fs::create_dir(&real).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        assert!(same_folder(link.to_str().unwrap(), &real) && same_folder(real.to_str().unwrap(), &link));
        assert!(!same_folder(link.to_str().unwrap(), dir.path()));
    }
}
