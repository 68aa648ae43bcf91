//! gjc in a session of tmux, which outlives the terminal that it was started from.
//!
//! What runs inside is told to tmux on its standard input, in tmux's own language, and not as arguments: arguments of a program are
//! there for everybody to read, and variables hold keys. tmux gives more than one word to no shell.

use crate::slug::{readable, short_hash};
use gjc_entry::Env;
use gjc_process::{Exit, OutputCap, Spawn, SpawnError, Stdin};
use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use tokio_util::sync::CancellationToken;

/// Variables that say which terminal a program runs in: inside it is another one.
const OF_THE_TERMINAL: [&str; 16] = [
    "COLUMNS",
    "KITTY_PID",
    "KITTY_WINDOW_ID",
    "LINES",
    "OLDPWD",
    "PWD",
    "SHLVL",
    "STY",
    "TERM",
    "TERM_PROGRAM",
    "TERM_SESSION_ID",
    "TMUX",
    "TMUX_PANE",
    "WINDOWID",
    "WT_SESSION",
    "_",
];
/// As many sessions of one project and branch there may be.
const MOST: usize = 1000;

/// What runs inside.
#[derive(Debug, Clone)]
pub struct Command {
    /// gjc itself.
    pub program: PathBuf,
    /// Its arguments, as they were given.
    pub args: Vec<OsString>,
    /// The folder that it is started in.
    pub cwd: PathBuf,
    /// Its variables, keys included; those of the terminal outside are left out.
    pub vars: Vec<(String, String)>,
    /// The main checkout, or the folder.
    pub project: PathBuf,
    /// The branch of its worktree.
    pub branch: Option<String>,
    /// Whether it wants a session of its own, because it was told more than where to work.
    pub anew: bool,
}

/// tmux, with the variables that it may have itself.
pub struct Tmux<'e> {
    env: &'e Env,
    program: OsString,
}

/// Why there is no session of tmux.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TmuxError {
    /// It is not there, or cannot be started.
    #[error("--tmux needs tmux, and {program} cannot be started")]
    NotStarted {
        /// Its name.
        program: String,
        /// Why.
        why: SpawnError,
    },
    /// It refused.
    #[error("tmux refused: {0}")]
    Refused(String),
}

impl<'e> Tmux<'e> {
    /// `program` of the `PATH` of these variables, `tmux` by default.
    #[must_use]
    pub fn new(env: &'e Env, program: Option<&str>) -> Self {
        Self { env, program: program.unwrap_or("tmux").into() }
    }

    /// Has a session that runs the command: the one of its project and branch, or a new one. Answers what to become to be in it.
    ///
    /// # Errors
    /// [`TmuxError`].
    pub async fn session(&self, command: &Command) -> Result<Spawn, TmuxError> {
        let stem = name(command);
        for n in 1..=MOST {
            let name = if n == 1 { stem.clone() } else { format!("{stem}-{n}") };
            match self.state(&name, command).await? {
                State::Alive if command.anew => continue,
                State::Alive => return Ok(self.attach(&name, command)),
                // What is left of a gjc that failed is only its last words.
                State::Dead => {
                    drop(self.run(&["kill-session", "-t", &format!("={name}")], Stdin::Null, command).await?)
                }
                State::Absent => {}
            }
            let (exit, said) =
                self.run(&["start-server", ";", "source-file", "-"], script(&name, command), command).await?;
            return match exit {
                Exit::Code(0) => Ok(self.attach(&name, command)),
                // Started twice at once.
                _ if said.contains("duplicate session") => continue,
                _ => Err(TmuxError::Refused(said)),
            };
        }
        Err(TmuxError::Refused(format!("there are too many sessions {stem}")))
    }

    async fn state(&self, name: &str, command: &Command) -> Result<State, TmuxError> {
        // The colon makes it the name of a session, whatever windows are called.
        let ask = ["list-panes", "-s", "-t", &format!("={name}:"), "-F", "#{pane_dead}"];
        Ok(match self.run(&ask, Stdin::Null, command).await? {
            (Exit::Code(0), panes) if panes.lines().all(|dead| dead == "1") => State::Dead,
            (Exit::Code(0), _) => State::Alive,
            _ => State::Absent,
        })
    }

    fn attach(&self, name: &str, command: &Command) -> Spawn {
        self.spawn(&["attach-session", "-t", &format!("={name}")], command)
    }

    fn spawn(&self, args: &[&str], command: &Command) -> Spawn {
        let mut spawn = Spawn::new(&self.program, &command.cwd);
        spawn.args = args.iter().map(Into::into).collect();
        spawn.env = self.env.vars.iter().map(|(name, value)| (name.into(), value.into())).collect();
        spawn
    }

    async fn run(
        &self,
        args: &[&str],
        stdin: impl Into<Stdin>,
        command: &Command,
    ) -> Result<(Exit, String), TmuxError> {
        // -u: names of all scripts go in and come out as they are, whatever the locale.
        let mut spawn = self.spawn(&[&["-u"], args].concat(), command);
        spawn.stdin = stdin.into();
        spawn.cap = OutputCap::default();
        let program = self.program.to_string_lossy().into_owned();
        let not_started = |why| TmuxError::NotStarted { program, why };
        let finished = gjc_process::run(spawn, CancellationToken::new(), None).await.map_err(not_started)?;
        let said = String::from_utf8_lossy(&finished.output.head).trim().to_owned();
        Ok((finished.exit, said))
    }
}

/// What there is under a name.
enum State {
    Absent,
    Alive,
    /// All that ran in it has ended, and is shown.
    Dead,
}

/// The name of the session of a project and branch. tmux gives `.`, `:` and blanks meanings of their own.
fn name(command: &Command) -> String {
    let folder = command.project.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let spoken = readable(command.branch.as_deref().unwrap_or(&folder));
    let mut identity = command.project.as_os_str().as_bytes().to_vec();
    identity.push(0);
    identity.extend(command.branch.as_deref().unwrap_or_default().bytes());
    let parts = ["gjc", &spoken, &short_hash(&identity)];
    parts.iter().filter(|part| !part.is_empty()).copied().collect::<Vec<_>>().join("-")
}

/// What tmux is told: the session, and that the last words of a gjc that failed stay to be read.
fn script(name: &str, command: &Command) -> Stdin {
    let mut script = format!("new-session -d -s {} -c ", quoted(OsStr::new(name)));
    // A folder is a format to tmux, in which # begins a place.
    let cwd = command
        .cwd
        .as_os_str()
        .as_bytes()
        .iter()
        .flat_map(|byte| if *byte == b'#' { vec![b'#'; 2] } else { vec![*byte] });
    script += &quoted(OsStr::from_bytes(&cwd.collect::<Vec<u8>>()));
    for (name, value) in command.vars.iter().filter(|(name, _)| is_passed_on(name)) {
        let _ = write!(script, " -e {}", quoted(OsStr::new(&format!("{name}={value}"))));
    }
    let _ = write!(script, " {}", quoted(command.program.as_os_str()));
    // One word alone would be given to a shell.
    let args = if command.args.is_empty() { &[OsString::from("--")][..] } else { &command.args };
    for arg in args {
        let _ = write!(script, " {}", quoted(arg));
    }
    let target = quoted(OsStr::new(&format!("={name}:")));
    let _ = write!(script, "\nset-option -w -t {target} remain-on-exit failed\n");
    let tags = [("@gjc-project", command.project.to_string_lossy().into_owned())];
    let branch = command.branch.clone().map(|branch| ("@gjc-branch", branch));
    for (tag, value) in tags.into_iter().chain(branch) {
        let _ = writeln!(script, "set-option -t {target} {tag} {}", quoted(OsStr::new(&value)));
    }
    Stdin::Bytes(script.into_bytes())
}

fn is_passed_on(name: &str) -> bool {
    let sound = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !name.is_empty() && name.chars().all(sound) && !OF_THE_TERMINAL.contains(&name)
}

/// A word in tmux's language: every byte that is no plain letter by its number. (Within quotes a line feed would swallow the blanks
/// behind it, `$` is a variable, and `~` a folder.)
fn quoted(word: &OsStr) -> String {
    let mut quoted = String::from("\"");
    for byte in word.as_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'_' | b'.' | b'-' | b'=' | b':' => {
                quoted.push(char::from(*byte))
            }
            _ => drop(write!(quoted, "\\{byte:03o}")),
        }
    }
    quoted + "\""
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(project: &str, branch: Option<&str>) -> Command {
        Command {
            program: "/bin/gjc".into(),
            args: Vec::new(),
            cwd: "/작업/#{x} y".into(),
            vars: [("TERM", "x"), ("KEY", "a b"), ("B@D", "x"), ("PWD", "/")]
                .map(|(a, b)| (a.into(), b.into()))
                .to_vec(),
            project: project.into(),
            branch: branch.map(Into::into),
            anew: false,
        }
    }

    #[test]
    fn a_session_is_named_after_its_branch_or_folder_and_belongs_to_one_project() {
        let name = |project: &str, branch: Option<&str>| super::name(&command(project, branch));
        assert!(name("/a/가재.코드", None).starts_with("gjc-가재-코드-"));
        assert!(name("/a/x", Some("기능/로그인")).starts_with("gjc-기능-로그인-"));
        assert!(name("/", None).starts_with("gjc-") && !name("/", None).contains("--"));
        let mut all = vec![
            name("/a/x", None),
            name("/b/x", None),
            name("/a/x", Some("x")),
            name("/b/x", Some("x")),
            name("/a/x", Some("X")),
        ];
        all.dedup();
        assert_eq!(all.len(), 5);
    }

    #[test]
    fn what_tmux_is_told_has_each_word_as_one_and_nothing_of_the_terminal_outside() {
        let Stdin::Bytes(script) = script("gjc-x", &command("/a/x", Some("b"))) else { unreachable!() };
        let script = String::from_utf8(script).unwrap();
        let first = script.lines().next().unwrap();
        assert!(first.ends_with(r#" -e "KEY=a\040b" "/bin/gjc" "--""#), "{first}");
        assert!(first.contains(r"\043\043\173x\175\040y"), "{first}");
        assert!(!first.contains("TERM") && !first.contains("PWD") && !first.contains('@'), "{first}");
        assert_eq!(quoted(OsStr::new("$(x)\n ~'\"")), r#""\044\050x\051\012\040\176\047\042""#);
    }
}
