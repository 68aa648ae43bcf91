//! What a session works on: the repository of its folder, with the parts that git keeps elsewhere. Reads git's own files and
//! believes none that is not confirmed from the other side; runs nothing.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The longest file of git's that is looked at.
const MOST: u64 = 64 * 1024;

/// Where the commands of a session may write.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Workspace {
    /// The repository's root (or the working folder), and the folder of git where a worktree or submodule has it elsewhere.
    /// Empty where that would be the home folder, or hold it.
    pub write: Vec<PathBuf>,
}

impl Workspace {
    /// The workspace of a folder.
    #[must_use]
    pub fn of(cwd: &Path, home: &Path) -> Self {
        let cwd = fs::canonicalize(cwd).unwrap_or_else(|_| cwd.into());
        let home = fs::canonicalize(home).unwrap_or_else(|_| home.into());
        // A home folder under version control is still a home folder.
        let free = |folder: &Path| !home.starts_with(folder);
        let repository = cwd.ancestors().take_while(|folder| free(folder)).find(|folder| is_repository(folder));
        let Some(root) = repository.or_else(|| Some(&*cwd).filter(|cwd| free(cwd))) else { return Self::default() };
        let elsewhere = git_elsewhere(root).filter(|git| free(git) && !git.starts_with(root));
        Self { write: [root.to_path_buf()].into_iter().chain(elsewhere).collect() }
    }
}

/// Whether git takes a folder for the root of a repository of the same person. (A `.git` that somebody else has put into a
/// shared folder above makes no workspace of all of it.)
fn is_repository(folder: &Path) -> bool {
    match (fs::symlink_metadata(folder.join(".git")), gjc_process::user()) {
        (Ok(git), user) => (git.is_dir() || git.is_file()) && (git.uid() == user || user == 0),
        (Err(_), _) => false,
    }
}

/// The folder of git that a `.git` file leads to. What such a file says is believed only if the other side says the same:
/// anybody can write `gitdir: /home/somebody`.
fn git_elsewhere(root: &Path) -> Option<PathBuf> {
    let link = root.join(".git");
    if !fs::symlink_metadata(&link).ok()?.is_file() {
        return None;
    }
    let said = text(&link)?;
    let named = said.lines().next()?.strip_prefix("gitdir:")?.trim();
    let git = fs::canonicalize(root.join(named)).ok()?;
    match text(&git.join("commondir")) {
        // A worktree: `<common>/worktrees/<name>`, whose `gitdir` names our `.git`.
        Some(common) => {
            let common = fs::canonicalize(git.join(common.trim())).ok()?;
            let back = fs::canonicalize(git.join(text(&git.join("gitdir"))?.trim())).ok()?;
            (git.parent()? == common.join("worktrees") && back == link && is_git(&common)).then_some(common)
        }
        // A submodule: its configuration names our folder.
        None => {
            let config = text(&git.join("config"))?;
            let back = fs::canonicalize(git.join(worktree_of(&config)?)).ok()?;
            (back == root && is_git(&git)).then_some(git)
        }
    }
}

fn is_git(folder: &Path) -> bool {
    folder.join("HEAD").is_file() && folder.join("objects").is_dir() && folder.join("refs").is_dir()
}

/// `core.worktree` of a configuration.
fn worktree_of(config: &str) -> Option<&str> {
    let mut in_core = false;
    for line in config.lines().map(str::trim) {
        if line.starts_with('[') {
            in_core = line.eq_ignore_ascii_case("[core]");
        } else if let Some((name, value)) = line.split_once('=')
            && in_core
            && name.trim().eq_ignore_ascii_case("worktree")
        {
            return Some(value.trim().trim_matches('"'));
        }
    }
    None
}

/// A short file of text.
fn text(path: &Path) -> Option<String> {
    let about = fs::metadata(path).ok()?;
    (about.is_file() && about.len() <= MOST).then(|| fs::read_to_string(path).ok()).flatten()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    struct World {
        root: PathBuf,
        _dir: tempfile::TempDir,
    }

    impl World {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let root = dir.path().canonicalize().unwrap();
            fs::create_dir_all(root.join("home")).unwrap();
            Self { root, _dir: dir }
        }

        fn dir(&self, path: &str) -> PathBuf {
            let path = self.root.join(path);
            fs::create_dir_all(&path).unwrap();
            path
        }

        fn file(&self, path: &str, text: &str) {
            let path = self.root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn git(&self, path: &str) -> PathBuf {
            self.file(&format!("{path}/HEAD"), "ref: refs/heads/main\n");
            self.dir(&format!("{path}/objects"));
            self.dir(&format!("{path}/refs"));
            self.root.join(path)
        }

        fn of(&self, cwd: &str) -> Vec<PathBuf> {
            Workspace::of(&self.dir(cwd), &self.root.join("home")).write
        }
    }

    #[test]
    fn the_repository_counts_and_without_one_the_folder() {
        let w = World::new();
        w.git("home/글/.git");
        assert_eq!(w.of("home/글/깊은/곳"), [w.root.join("home/글")]);
        assert_eq!(w.of("home/plain/deep"), [w.root.join("home/plain/deep")]);
        assert_eq!(w.of("outside/x"), [w.root.join("outside/x")]);
    }

    #[test]
    fn the_home_folder_is_no_workspace_even_under_version_control() {
        let w = World::new();
        assert!(w.of("home").is_empty() && Workspace::of(&w.root, &w.root.join("home")).write.is_empty());
        assert!(Workspace::of(Path::new("/"), &w.root.join("home")).write.is_empty());
        w.git("home/.git");
        w.git(".git");
        assert!(w.of("home").is_empty());
        assert_eq!(w.of("home/notes"), [w.root.join("home/notes")]);
    }

    #[test]
    fn a_worktree_and_a_submodule_reach_their_folder_of_git() {
        let w = World::new();
        let common = w.git("main/.git");
        w.file("main/.git/worktrees/곁/commondir", "../..\n");
        w.file("main/.git/worktrees/곁/gitdir", &format!("{}/side/.git\n", w.root.display()));
        w.file("side/.git", &format!("gitdir: {}/main/.git/worktrees/곁\n", w.root.display()));
        assert_eq!(w.of("side/src"), [w.root.join("side"), common]);

        let module = w.git("main/.git/modules/sub");
        w.file("main/.git/modules/sub/config", "[core]\n\tbare = false\n\tworktree = ../../../sub\n");
        w.file("main/sub/.git", "gitdir: ../.git/modules/sub\n");
        assert_eq!(w.of("main/sub"), [w.root.join("main/sub"), module]);
    }

    #[test]
    fn a_git_file_that_nobody_confirms_opens_nothing() {
        let w = World::new();
        let victim = w.git("victim/.git");
        w.file("victim/.git/config", "[core]\n\tbare = false\n[other]\n\tworktree = ../../evil\n");
        for said in [
            format!("gitdir: {}\n", victim.display()),
            format!("gitdir: {}/home\n", w.root.display()),
            "gitdir: /\n".into(),
            "gitdir: ../../..\n".into(),
            "gitdir:\n".into(),
            "no word of it".into(),
            String::new(),
        ] {
            w.file("evil/.git", &said);
            assert_eq!(w.of("evil"), [w.root.join("evil")], "{said:?}");
        }
        // A worktree whose other side names somebody else.
        w.file("victim/.git/worktrees/w/commondir", "../..\n");
        w.file("victim/.git/worktrees/w/gitdir", &format!("{}/true/.git\n", w.root.display()));
        w.file("true/.git", "");
        w.file("evil/.git", &format!("gitdir: {}/worktrees/w\n", victim.display()));
        assert_eq!(w.of("evil"), [w.root.join("evil")]);
        // One that claims a common folder that does not hold it.
        w.file("evil/fake/commondir", &format!("{}\n", victim.display()));
        w.file("evil/fake/gitdir", &format!("{}/evil/.git\n", w.root.display()));
        w.file("evil/.git", "gitdir: fake\n");
        assert_eq!(w.of("evil"), [w.root.join("evil")]);
    }
}
