//! ripgrep and fd as judges of our searches, and a tree of any size to search.
//!
//! The programs are those of `PATH` (`cargo install ripgrep fd-find`); `cargo xtask ci` puts them there. Where they are
//! absent a test is left out aloud; under `GJC_CI=1` it fails.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A judge.
#[derive(Debug, Clone)]
pub struct Judge {
    program: PathBuf,
    home: PathBuf,
}

impl Judge {
    /// ripgrep. `home` is an empty folder: nothing of this machine's settings counts.
    #[must_use]
    #[track_caller]
    pub fn rg(home: &Path) -> Option<Self> {
        Self::named("rg", home)
    }

    /// fd.
    #[must_use]
    #[track_caller]
    pub fn fd(home: &Path) -> Option<Self> {
        Self::named("fd", home)
    }

    #[track_caller]
    fn named(name: &str, home: &Path) -> Option<Self> {
        if let Some(program) = on_path(name) {
            return Some(Self { program, home: home.into() });
        }
        assert!(std::env::var_os("GJC_CI").is_none_or(|ci| ci != "1"), "GJC_CI=1, but there is no {name} on the PATH");
        eprintln!("left out: there is no {name} on the PATH (cargo install ripgrep fd-find)");
        None
    }

    /// What it prints, in a folder. Fails the test when it fails; finding nothing is no failure.
    #[must_use]
    #[track_caller]
    pub fn says(&self, folder: &Path, arguments: &[&OsStr]) -> Vec<u8> {
        let out = Command::new(&self.program)
            .args(arguments)
            .current_dir(folder)
            .env_clear()
            .env("HOME", &self.home)
            .env("XDG_CONFIG_HOME", &self.home)
            .stdin(Stdio::null())
            .output()
            .unwrap_or_else(|error| panic!("{} could not be started: {error}", self.program.display()));
        let said = String::from_utf8_lossy(&out.stderr);
        let done = matches!(out.status.code(), Some(0 | 1)) || said.starts_with("rg: No files were searched");
        assert!(done, "{} {arguments:?}: {said}", self.program.display());
        out.stdout
    }
}

/// A program of `PATH`.
#[must_use]
pub fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|program| program.is_file())
}

/// Makes a source tree of so many files below `folder` (or keeps the one that is there): a repository, 20 files a folder,
/// nested ignore files, one file of ten ignored, names and content in part of 한글. The same each time.
///
/// # Errors
/// Of the disk.
pub fn forest(folder: &Path, files: usize) -> io::Result<PathBuf> {
    let root = folder.join(format!("forest-{files}"));
    let done = root.join(".git/whole");
    if done.is_file() {
        return Ok(root);
    }
    fs::create_dir_all(root.join(".git"))?;
    fs::write(root.join(".gitignore"), "*.log\n/build-*/\n!keep.log\n")?;
    for n in 0..files.div_ceil(20) {
        let (top, middle) = (n / 400, n / 20 % 20);
        let build = if n % 50 == 49 { "build-" } else { "" };
        let dir = root.join(format!("{build}crate{top}/모듈{middle}/part{}", n % 20));
        fs::create_dir_all(&dir)?;
        if n % 10 == 3 {
            fs::write(dir.join(".gitignore"), "generated*\n")?;
        }
        for m in 0..20.min(files - n * 20) {
            let name = match m {
                0 => "readme.log".into(),
                1 => "보고서.md".into(),
                2 => format!("generated{m}.rs"),
                _ => format!("file{m}.rs"),
            };
            fs::write(dir.join(name), content(n * 20 + m))?;
        }
    }
    fs::write(done, "")?;
    Ok(root)
}

fn content(n: usize) -> String {
    let mut text = String::with_capacity(2_200);
    for line in 0..40 {
        text.push_str(&format!("    let value_{line} = compute({n}, \"가재는 게 편\"); // line {line}\n"));
    }
    if n.is_multiple_of(500) {
        text.push_str("fn needle_in_haystack() { panic!(\"찾았다\") }\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forest_has_as_many_files_as_asked() {
        let folder = tempfile::tempdir().unwrap();
        let root = forest(folder.path(), 1_050).unwrap();
        assert_eq!(forest(folder.path(), 1_050).unwrap(), root);
        let mut left = vec![root];
        let mut files = 0;
        while let Some(folder) = left.pop() {
            for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
                let name = entry.file_name();
                match entry.file_type().unwrap().is_dir() {
                    true => left.push(entry.path()),
                    false => files += usize::from(name != ".gitignore" && name != "whole"),
                }
            }
        }
        assert_eq!(files, 1_050);
    }
}
