//! Repositories that nothing on this machine reaches: no system or user settings, no hooks, fixed names and dates.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// Settings every git below this environment has, whoever starts it. They travel in variables, so that no file and no
/// repository has to carry them (git 2.31 and later).
const SETTINGS: &[(&str, &str)] = &[
    ("init.defaultBranch", "main"),
    ("core.hooksPath", "/dev/null"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("commit.gpgSign", "false"),
    ("core.quotePath", "false"),
];

/// The variables of a hermetic git with this home folder.
#[must_use]
pub fn env(home: &Path) -> Vec<(String, String)> {
    let mut vars: Vec<(String, String)> = vec![
        ("HOME".into(), home.display().to_string()),
        ("GIT_CONFIG_NOSYSTEM".into(), "1".into()),
        ("GIT_TERMINAL_PROMPT".into(), "0".into()),
        ("GIT_CONFIG_COUNT".into(), SETTINGS.len().to_string()),
    ];
    for (i, (key, value)) in SETTINGS.iter().enumerate() {
        vars.push((format!("GIT_CONFIG_KEY_{i}"), (*key).into()));
        vars.push((format!("GIT_CONFIG_VALUE_{i}"), (*value).into()));
    }
    for who in ["AUTHOR", "COMMITTER"] {
        vars.push((format!("GIT_{who}_NAME"), "Test".into()));
        vars.push((format!("GIT_{who}_EMAIL"), "test@example.invalid".into()));
        vars.push((format!("GIT_{who}_DATE"), "2030-01-01T00:00:00+00:00".into()));
    }
    vars
}

/// A repository in a temporary folder, removed with it. The same steps give the same object ids on every machine.
#[derive(Debug)]
pub struct Repo {
    root: TempDir,
    work: PathBuf,
}

impl Repo {
    /// An empty repository on branch `main`.
    #[must_use]
    #[track_caller]
    pub fn init() -> Self {
        let root = tempfile::Builder::new().prefix("testkit-git-").tempdir().expect("a temporary folder can be made");
        // git prints real paths; /tmp may be a link.
        let real = root.path().canonicalize().expect("the folder was just made");
        fs::create_dir_all(real.join("home")).expect("a folder can be made in it");
        let repo = Self { root, work: real.join("repo") };
        fs::create_dir_all(&repo.work).expect("a folder can be made in it");
        repo.git(&["init", "--quiet"]);
        repo
    }

    /// The working tree.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.work
    }

    /// A folder beside the working tree that lives as long: for worktrees, clones, bare copies.
    #[must_use]
    pub fn beside(&self, name: &str) -> PathBuf {
        self.work.with_file_name(name)
    }

    /// Writes a file of the working tree, with its folders.
    #[track_caller]
    pub fn write(&self, path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.work.join(path);
        let folder = path.parent().expect("a path in the repository has a folder");
        if let Err(e) = fs::create_dir_all(folder).and_then(|()| fs::write(&path, bytes)) {
            panic!("{} could not be written: {e}", path.display());
        }
        path
    }

    /// Adds everything, commits it (also when nothing changed), and gives the commit's id.
    #[track_caller]
    pub fn commit(&self, message: &str) -> String {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--allow-empty", "-m", message]);
        self.git(&["rev-parse", "HEAD"])
    }

    /// Runs git here and gives its stdout without the newline at its end. Fails the test when git fails.
    #[track_caller]
    pub fn git(&self, args: &[&str]) -> String {
        self.try_git(args).unwrap_or_else(|e| panic!("git {} failed: {e}", args.join(" ")))
    }

    /// Runs git here.
    ///
    /// # Errors
    /// git's stderr (and stdout, where it tells of conflicts), when it ends with another status than 0.
    pub fn try_git(&self, args: &[&str]) -> Result<String, String> {
        finish(self.command().args(args))
    }

    /// `git status --porcelain`: empty when clean.
    #[must_use]
    #[track_caller]
    pub fn status(&self) -> String {
        self.git(&["status", "--porcelain"])
    }

    /// The tree of `HEAD`.
    #[must_use]
    #[track_caller]
    pub fn tree_hash(&self) -> String {
        self.git(&["rev-parse", "HEAD^{tree}"])
    }

    /// The tree that committing the working tree now would give (ignored files left out). The index is not touched.
    #[must_use]
    #[track_caller]
    pub fn worktree_hash(&self) -> String {
        let index = self.work.with_file_name("index.tmp");
        let _ = fs::remove_file(&index);
        let with_index = |args: &[&str]| finish(self.command().env("GIT_INDEX_FILE", &index).args(args));
        let hash = with_index(&["add", "--all"]).and_then(|_| with_index(&["write-tree"]));
        hash.unwrap_or_else(|e| panic!("the working tree could not be hashed: {e}"))
    }

    /// A git command in this repository, with the hermetic environment only.
    #[must_use]
    pub fn command(&self) -> Command {
        let mut command = Command::new("git");
        command.env_clear().envs(env(&self.work.with_file_name("home"))).env("LC_ALL", "C.UTF-8");
        if let Some(path) = std::env::var_os("PATH") {
            command.env("PATH", path);
        }
        // A repository above the temporary folder must never be found by mistake.
        command.env("GIT_CEILING_DIRECTORIES", self.root.path()).current_dir(&self.work).stdin(Stdio::null());
        command
    }
}

fn finish(command: &mut Command) -> Result<String, String> {
    let out = command.output().map_err(|e| format!("git could not be started: {e}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end_matches('\n').to_owned();
    if out.status.success() {
        Ok(text(&out.stdout))
    } else {
        Err(format!("{}{}", text(&out.stderr), text(&out.stdout)))
    }
}
