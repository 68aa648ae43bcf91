//! Hooks: from settings to programs that a session may run, and which files of a project they may run.
//!
//! A command may name a file of the project, and who can write there (a model, a pull) could change what it does. So each file
//! of the project that a command names is let in by its bytes, as the project's settings are; it is looked at again before
//! each run.

use gjc_agent::{Hook, Hooks, Vouch};
use gjc_entry::Env;
use gjc_protocol::HookEvent;
use gjc_settings::{ContentHash, HookList, Settings, Trust, project_root};
use std::fs;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// The variable that holds the project's root.
const PROJECT: &str = "GJC_PROJECT_DIR";
/// The most bytes of a file that is vouched for.
const LARGEST: u64 = 4 * 1024 * 1024;

/// The hooks of a session in a folder, which is a real path; and what a person should know of them. `trust_project`: the
/// person trusts the files of the project that they name.
pub(crate) fn of_session(env: &Env, settings: &Settings, cwd: &Path, trust_project: bool) -> (Hooks, Vec<String>) {
    let (hooks, vouching) = (all(settings), Vouching::of(env, cwd));
    let notices = if trust_project { vouching.grant(&hooks) } else { Vec::new() };
    let vars = env.vars.iter().filter(|(name, value)| !gjc_tools::is_secret(name, value) && *name != PROJECT);
    let vars = vars.map(|(name, value)| (name.into(), value.into()));
    let vars = vars.chain([(PROJECT.into(), vouching.root.clone().into_os_string())]).collect();
    (Hooks::new(hooks, vars, Arc::new(vouching)), notices)
}

/// How many hooks a session in a folder would have, and why the first that it could not run would not be.
pub(crate) fn look(env: &Env, settings: &Settings, cwd: &Path) -> (usize, Option<String>) {
    let (hooks, vouching) = (all(settings), Vouching::of(env, cwd));
    (hooks.len(), hooks.iter().find_map(|hook| vouching.vouch(&hook.command).err()))
}

fn all(settings: &Settings) -> Vec<Hook> {
    let gjc_settings::Hooks {
        pre_tool_call,
        post_tool_response,
        pre_output,
        turn_end,
        session_before_switch,
        session_switch,
        session_before_branch,
        session_branch,
    } = &settings.hooks;
    [
        listed(HookEvent::PreToolCall, pre_tool_call),
        listed(HookEvent::PostToolResponse, post_tool_response),
        listed(HookEvent::PreOutput, pre_output),
        listed(HookEvent::TurnEnd, turn_end),
        listed(HookEvent::SessionBeforeSwitch, session_before_switch),
        listed(HookEvent::SessionSwitch, session_switch),
        listed(HookEvent::SessionBeforeBranch, session_before_branch),
        listed(HookEvent::SessionBranch, session_branch),
    ]
    .concat()
}

fn listed<const OF_CALLS: bool>(event: HookEvent, list: &HookList<OF_CALLS>) -> Vec<Hook> {
    let hook = |(index, hook): (usize, &gjc_settings::Hook)| Hook {
        event,
        number: index + 1,
        command: hook.command.0.clone(),
        tools: hook.tools.as_ref().map(|tools| tools.0.clone()),
        timeout: hook.timeout.duration(),
    };
    list.0.iter().enumerate().map(hook).collect()
}

/// What a person has let in of a project, for commands that are run in a folder of it.
struct Vouching {
    trust: Trust,
    cwd: PathBuf,
    root: PathBuf,
    home: PathBuf,
}

impl Vouch for Vouching {
    fn vouch(&self, command: &str) -> Result<(), String> {
        for file in self.named(command) {
            let trusted = hash(&file).is_ok_and(|hash| self.trust.holds(&file, &hash));
            if !trusted {
                return Err(format!(
                    "{} is a file of the project, and not trusted as it is now; --trust-project trusts it",
                    file.display()
                ));
            }
        }
        Ok(())
    }
}

impl Vouching {
    fn of(env: &Env, cwd: &Path) -> Self {
        let trust = Trust::of_hooks(&env.dirs.agent);
        Self { trust, cwd: cwd.into(), root: project_root(cwd), home: env.dirs.home.clone() }
    }

    /// Lets in what hooks name as it is, and says so.
    fn grant(&self, hooks: &[Hook]) -> Vec<String> {
        let mut files: Vec<PathBuf> = hooks.iter().flat_map(|hook| self.named(&hook.command)).collect();
        files.sort();
        files.dedup();
        let grant = |file: PathBuf| match hash(&file) {
            Ok(hash) => match self.trust.grant(&file, &hash) {
                Ok(()) => format!("{}, which a hook names, is trusted as it is", file.display()),
                Err(error) => error.to_string(),
            },
            Err(why) => format!("{}, which a hook names, is not trusted: {why}", file.display()),
        };
        files.into_iter().map(grant).collect()
    }

    /// The files of the project that a command names, by their real paths. What it names by way of something else (a variable,
    /// a file that a script calls) is not seen.
    fn named(&self, command: &str) -> Vec<PathBuf> {
        let mut files: Vec<PathBuf> = words(command).iter().filter_map(|word| self.file(word)).collect();
        files.sort();
        files.dedup();
        files
    }

    /// The path that a word is, as far as it begins with a place that is known.
    fn path(&self, word: &str) -> PathBuf {
        let places = [("$GJC_PROJECT_DIR", &self.root), ("${GJC_PROJECT_DIR}", &self.root)];
        let places = places.into_iter().chain([("$PWD", &self.cwd), ("${PWD}", &self.cwd)]);
        let places = places.chain([("~", &self.home), ("$HOME", &self.home), ("${HOME}", &self.home)]);
        let below = |(name, place): (&str, &PathBuf)| Some(place.join(word.strip_prefix(name)?.strip_prefix('/')?));
        places.into_iter().find_map(below).unwrap_or_else(|| self.cwd.join(word))
    }

    /// What a word leads to, if the word or that is in the project, and it is no folder.
    fn file(&self, word: &str) -> Option<PathBuf> {
        let path = self.path(word);
        let real = fs::canonicalize(&path).ok()?;
        let inside = plainly(&path).starts_with(&self.root) || real.starts_with(&self.root);
        (inside && !real.is_dir()).then_some(real)
    }
}

/// A path without `.` and `..`, by its names alone.
fn plainly(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut plain, part| {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(plain.pop()),
            other => plain.push(other),
        }
        plain
    })
}

/// The hash of a regular file of a bearable size.
fn hash(file: &Path) -> Result<ContentHash, String> {
    // A pipe must not be waited for.
    let opened = fs::OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(file);
    let opened = opened.map_err(|error| error.to_string())?;
    if !opened.metadata().map_err(|error| error.to_string())?.is_file() {
        return Err("it is no regular file".into());
    }
    let mut bytes = Vec::new();
    opened.take(LARGEST + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > LARGEST {
        return Err(format!("it is larger than {} MiB", LARGEST >> 20));
    }
    Ok(ContentHash::of(&bytes))
}

/// Every text of a command line that may be a path: its words as a shell splits them, the parts of a word that is a command of
/// its own (`sh -c './check.sh fast'`), and what stands behind a `=`. Rather too many than too few.
fn words(command: &str) -> Vec<String> {
    let mut found = Vec::new();
    for word in shell_words(command) {
        let parts = shell_words(&word);
        for text in [word].into_iter().chain(parts) {
            found.extend(text.match_indices('=').map(|(at, _)| text[at + 1..].to_owned()));
            found.push(text);
        }
    }
    found.retain(|word| !word.is_empty());
    found
}

/// The words of a command line, without their quotes; operators of the shell end a word. What a `>` leads to is left out: it is
/// written, not run.
fn shell_words(command: &str) -> Vec<String> {
    let (mut words, mut word, mut quote, mut written) = (Vec::new(), String::new(), None, false);
    let mut chars = command.chars();
    loop {
        let next = chars.next();
        match (next, quote) {
            (Some(c), Some(open)) if c == open => quote = None,
            (Some(c @ ('\'' | '"')), None) => quote = Some(c),
            (Some('\\'), None | Some('"')) => word.extend(chars.next()),
            (Some(c), None) if !c.is_whitespace() && !";&|<>()`".contains(c) => word.push(c),
            (Some(c), Some(_)) => word.push(c),
            (end, _) => {
                let word = std::mem::take(&mut word);
                if !word.is_empty() && !std::mem::take(&mut written) {
                    words.push(word);
                }
                match end {
                    Some('>') => written = true,
                    Some(c) if !c.is_whitespace() && c != '&' => written = false,
                    Some(_) => {}
                    None => return words,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_s_words_are_those_that_a_shell_would_see() {
        for (command, expected) in [
            ("sh ./a.sh --fast", "sh|./a.sh|--fast"),
            ("'my script.sh' \"b \\\" c\" d\\ e", "my script.sh|b \" c|d e"),
            ("a;b&&c|d<e", "a|b|c|d|e"),
            ("cat >> log 2>&1; x > out y", "cat|2|x|y"),
            ("x >(./a.sh)", "x|./a.sh"),
            ("한글 \"열린 따옴표", "한글|열린 따옴표"),
            ("끝\\", "끝"),
            ("", ""),
        ] {
            assert_eq!(shell_words(command).join("|"), expected, "{command}");
        }
        let found = words("sh -c './a.sh x' --with=b.py");
        assert!(
            ["sh", "./a.sh", "./a.sh x", "b.py"].iter().all(|word| found.iter().any(|other| other == word)),
            "{found:?}"
        );
    }

    /// A project with an agent folder beside it, and a home.
    fn place() -> (tempfile::TempDir, Vouching) {
        let temp = tempfile::tempdir().unwrap();
        let base = fs::canonicalize(temp.path()).unwrap();
        let root = base.join("home/저장소");
        fs::create_dir_all(root.join(".git")).unwrap();
        fs::create_dir_all(root.join("안")).unwrap();
        let trust = Trust::of_hooks(&base.join("agent"));
        (temp, Vouching { trust, cwd: root.join("안"), root, home: base.join("home") })
    }

    #[test]
    fn every_spelling_of_a_file_of_the_project_is_that_file() {
        let (_temp, vouching) = place();
        let file = vouching.root.join("검사.sh");
        fs::write(&file, "true").unwrap();
        let absolute = file.display().to_string();
        for command in [
            "../검사.sh",
            "sh '../검사.sh'",
            "FAST=1 sh ../안/../검사.sh; true",
            "x=$(../검사.sh)",
            "sh -c \"exec ../검사.sh\"",
            "run --script=../검사.sh",
            "\"$GJC_PROJECT_DIR\"/검사.sh",
            "${GJC_PROJECT_DIR}/검사.sh",
            "$PWD/../검사.sh",
            "~/저장소/검사.sh",
            "sh <../검사.sh",
            &absolute,
        ] {
            assert_eq!(vouching.named(command), [&*file], "{command}");
            assert!(vouching.vouch(command).unwrap_err().contains("--trust-project"), "{command}");
        }
        for command in ["검사.sh", "sh /etc/hostname", "true > ../검사.sh", "ls ..", "", "cat ../없다.sh"] {
            assert_eq!(vouching.named(command), Vec::<PathBuf>::new(), "{command}");
            assert_eq!(vouching.vouch(command), Ok(()));
        }
    }

    #[test]
    fn links_in_and_out_of_the_project_are_looked_through() {
        let (_temp, vouching) = place();
        let (inside, outside) = (vouching.root.join("in.sh"), vouching.home.join("out.sh"));
        fs::write(&inside, "true").unwrap();
        fs::write(&outside, "true").unwrap();
        std::os::unix::fs::symlink(&outside, vouching.cwd.join("leads-out")).unwrap();
        std::os::unix::fs::symlink(&inside, vouching.home.join("leads-in")).unwrap();
        assert_eq!(vouching.named("./leads-out"), [&*outside]);
        assert_eq!(vouching.named("~/leads-in"), [&*inside]);
        let hook = Hook {
            event: HookEvent::TurnEnd,
            number: 1,
            command: "./leads-out".into(),
            tools: None,
            timeout: std::time::Duration::ZERO,
        };
        assert_eq!(vouching.grant(&[hook]).len(), 1);
        assert_eq!(vouching.vouch("./leads-out"), Ok(()));
        fs::write(vouching.home.join("evil.sh"), "false").unwrap();
        fs::remove_file(vouching.cwd.join("leads-out")).unwrap();
        std::os::unix::fs::symlink(vouching.home.join("evil.sh"), vouching.cwd.join("leads-out")).unwrap();
        assert!(vouching.vouch("./leads-out").is_err(), "the link leads elsewhere now");
    }
}
