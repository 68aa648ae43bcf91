//! Runs git so that nothing answers but git: no hook and no program of the repository's own settings, no network, no question, no
//! other repository than that of the folder.

use gjc_entry::Env;
use gjc_process::{Errors, Exit, OutputCap, Spawn, SpawnError};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use tokio_util::sync::CancellationToken;

/// Variables that say which repository, or that change how it is read: they are those of another git that runs us, as from a hook.
/// (The list is that of `git rev-parse --local-env-vars`, without the settings that a person gives by number.)
const OF_ANOTHER: [&str; 13] = [
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_CONFIG",
    "GIT_CONFIG_PARAMETERS",
    "GIT_DIR",
    "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
];
/// What is set: its words in English, which are looked at; nobody is asked; nothing is fetched, which in a clone that has left files
/// out would run whatever its settings name.
const SET: [(&str, &str); 5] = [
    ("LC_ALL", "C"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_ALLOW_PROTOCOL", "none"),
];
/// As much is read of what git says.
const MOST: usize = 16 * 1024 * 1024;

/// git in one folder.
pub(crate) struct Git<'e> {
    env: &'e Env,
    pub(crate) cwd: PathBuf,
    /// Settings that stand above those of every file.
    settings: Vec<(OsString, OsString)>,
}

/// git has refused.
#[derive(Debug)]
pub(crate) enum Refused {
    /// It did not start.
    NotStarted(SpawnError),
    /// It said so, in these words.
    Said(String),
}

impl Refused {
    /// Whether another git holds a lock that this one wanted.
    pub(crate) fn is_locked(&self) -> bool {
        let said = |words: &str| words.contains("could not lock") || words.contains(".lock': File exists");
        matches!(self, Self::Said(words) if said(words))
    }
}

impl<'e> Git<'e> {
    pub(crate) fn new(env: &'e Env, cwd: &Path) -> Self {
        let settings = [("core.hooksPath", "/dev/null"), ("core.fsmonitor", "false")];
        let settings = settings.map(|(key, value)| (key.into(), value.into())).to_vec();
        Self { env, cwd: cwd.into(), settings }
    }

    /// The same git in another folder.
    pub(crate) fn at(&self, cwd: &Path) -> Self {
        Self { env: self.env, cwd: cwd.into(), settings: self.settings.clone() }
    }

    /// Filters that the repository's own settings define, as they hold in this folder and on its branch: what a repository includes
    /// can hang on both. From now on they do not run; those of a person's settings do.
    pub(crate) async fn without_own_filters(&mut self) -> Result<Vec<String>, Refused> {
        let ask = ["config", "--show-scope", "-z", "--name-only", "--get-regexp", "^filter\\."];
        let found = match self.output(&ask, Errors::Dropped).await? {
            (Exit::Code(0), bytes) if bytes.len() >= MOST => {
                return Err(Refused::Said("the settings of the repository define too many filters".into()));
            }
            (Exit::Code(0), bytes) => bytes,
            // 1: there is none.
            (Exit::Code(1), _) => return Ok(Vec::new()),
            _ => return Err(self.words(&ask).await),
        };
        let fields: Vec<&[u8]> = found.split(|byte| *byte == 0).collect();
        // In bytes: a name that is no text is a name all the same.
        let mut names: Vec<&[u8]> = Vec::new();
        for pair in fields.chunks_exact(2).filter(|pair| matches!(pair[0], b"local" | b"worktree")) {
            let Some(rest) = pair[1].strip_prefix(b"filter.") else { continue };
            let Some(dot) = rest.iter().rposition(|byte| *byte == b'.') else { continue };
            let (name, what) = rest.split_at(dot);
            if matches!(what, b".smudge" | b".clean" | b".process") && !names.contains(&name) {
                names.push(name);
                self.without_filter(OsStr::from_bytes(name));
            }
        }
        Ok(names.into_iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect())
    }

    /// From now on a filter does not run, whoever defines it.
    fn without_filter(&mut self, name: &OsStr) {
        for (what, value) in [(".smudge", ""), (".clean", ""), (".process", ""), (".required", "false")] {
            let mut key = OsString::from("filter.");
            key.push(name);
            key.push(what);
            self.settings.push((key, value.into()));
        }
    }

    /// From now on no filter runs as a process that takes file after file; false where none would have.
    async fn without_processes(&mut self) -> Result<bool, Refused> {
        let ask = ["config", "-z", "--get-regexp", "^filter\\..*\\.process$"];
        let (_, found) = self.output(&ask, Errors::Dropped).await?;
        let text = String::from_utf8_lossy(&found).into_owned();
        let lines = text.split('\0').filter_map(|line| line.split_once('\n'));
        let running: Vec<String> =
            lines.filter(|(_, value)| !value.is_empty()).map(|(key, _)| key.to_owned()).collect();
        let off = |key: &String| {
            self.settings.iter().any(|(known, value)| known.as_os_str() == OsStr::new(key) && value.is_empty())
        };
        let running: Vec<String> = running.into_iter().filter(|key| !off(key)).collect();
        self.settings.extend(running.iter().map(|key| (key.into(), OsString::new())));
        Ok(!running.is_empty())
    }

    /// What git prints, without the line feed at its end.
    pub(crate) async fn read(&self, args: &[&str]) -> Result<Vec<u8>, Refused> {
        match self.output(args, Errors::Dropped).await? {
            (Exit::Code(0), mut bytes) => {
                bytes.pop_if(|byte| *byte == b'\n');
                Ok(bytes)
            }
            _ => Err(self.words(args).await),
        }
    }

    /// What git prints, where it runs filters. One of a person's own whose program is not there, as of LFS, is left out from now on:
    /// the work can begin without it. Answers the names of those too.
    pub(crate) async fn read_filtered(&mut self, args: &[&str]) -> Result<(Vec<u8>, Vec<String>), Refused> {
        let mut failed: Vec<String> = Vec::new();
        loop {
            let words = match self.read(args).await {
                Ok(bytes) => return Ok((bytes, failed)),
                Err(Refused::Said(words)) => words,
                Err(refused) => return Err(refused),
            };
            match failed_filter(&words).filter(|name| !failed.contains(name)) {
                Some(filter) => {
                    self.without_filter(OsStr::new(&filter));
                    failed.push(filter);
                }
                // The end of a filter that is a process is all that git knows of it; its other program will tell its name.
                None if words.contains("hung up") && self.without_processes().await? => {}
                None => return Err(Refused::Said(words)),
            }
        }
    }

    /// Whether git ends with 0.
    pub(crate) async fn holds(&self, args: &[&str]) -> Result<bool, Refused> {
        Ok(self.output(args, Errors::Dropped).await?.0 == Exit::Code(0))
    }

    /// Lets git change something.
    pub(crate) async fn act(&self, args: &[&(dyn AsRef<OsStr> + Sync)]) -> Result<(), Refused> {
        let args = args.iter().map(|arg| arg.as_ref().to_owned()).collect();
        match self.run(args, Errors::WithOutput).await? {
            (Exit::Code(0), _) => Ok(()),
            (_, bytes) => Err(said(&bytes)),
        }
    }

    /// Why a reading command failed: it is asked again, with its words.
    async fn words(&self, args: &[&str]) -> Refused {
        match self.output(args, Errors::WithOutput).await {
            Ok((_, bytes)) => said(&bytes),
            Err(refused) => refused,
        }
    }

    async fn output(&self, args: &[&str], errors: Errors) -> Result<(Exit, Vec<u8>), Refused> {
        self.run(args.iter().map(Into::into).collect(), errors).await
    }

    async fn run(&self, args: Vec<OsString>, errors: Errors) -> Result<(Exit, Vec<u8>), Refused> {
        let mut spawn = Spawn::new("git", &self.cwd);
        spawn.args = args;
        spawn.env = self.variables();
        spawn.errors = errors;
        spawn.cap = OutputCap { keep_head: MOST, keep_tail: 0 };
        let finished = gjc_process::run(spawn, CancellationToken::new(), None).await.map_err(Refused::NotStarted)?;
        Ok((finished.exit, finished.output.head))
    }

    fn variables(&self) -> Vec<(OsString, OsString)> {
        let vars = &self.env.vars;
        let theirs: usize = vars.get("GIT_CONFIG_COUNT").and_then(|count| count.parse().ok()).unwrap_or(0);
        let kept = vars.iter().filter(|(name, _)| !OF_ANOTHER.contains(name) && *name != "GIT_CONFIG_COUNT");
        let mut all: Vec<(OsString, OsString)> =
            kept.chain(SET.iter().copied()).map(|(name, value)| (name.into(), value.into())).collect();
        for (at, (key, value)) in self.settings.iter().enumerate() {
            let at = theirs + at;
            all.push((format!("GIT_CONFIG_KEY_{at}").into(), key.into()));
            all.push((format!("GIT_CONFIG_VALUE_{at}").into(), value.into()));
        }
        all.push(("GIT_CONFIG_COUNT".into(), (theirs + self.settings.len()).to_string().into()));
        all
    }
}

/// git's own words: what it calls fatal or an error, else its last line.
fn said(bytes: &[u8]) -> Refused {
    let text = String::from_utf8_lossy(bytes);
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    let stripped = |line: &str| {
        let line = line.strip_prefix("fatal: ").or_else(|| line.strip_prefix("error: ")).unwrap_or(line);
        line.to_owned()
    };
    let loud: Vec<String> =
        lines().filter(|line| line.starts_with("fatal: ") || line.starts_with("error: ")).map(stripped).collect();
    match loud.is_empty() {
        false => Refused::Said(loud.join("; ")),
        true => Refused::Said(lines().next_back().unwrap_or("it said nothing").to_owned()),
    }
}

/// The filter that git's words say has failed: `fatal: a.bin: smudge filter lfs failed`, or `clean filter 'lfs' failed`.
fn failed_filter(words: &str) -> Option<String> {
    let (_, rest) = words.split_once("smudge filter ").or_else(|| words.split_once("clean filter "))?;
    let (name, _) = rest.split_once(" failed")?;
    let name = name.trim_matches('\'');
    (!name.is_empty() && !name.contains(['\n', '\0'])).then(|| name.to_owned())
}
