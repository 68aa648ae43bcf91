//! Sessions of a real tmux, which has a socket of its own and is ended by it.

use gjc_entry::{Dirs, Env, Vars};
use gjc_workspace::{Command, Tmux};
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long a program in tmux may take to end.
const LIMIT: Duration = Duration::from_secs(30);

/// A tmux that nothing else on this machine knows.
struct Own {
    dir: TempDir,
    env: Env,
}

impl Own {
    /// None where there is no tmux.
    fn new() -> Option<Self> {
        if std::process::Command::new("tmux").arg("-V").output().is_err() {
            eprintln!("left out: there is no tmux");
            return None;
        }
        let dir = tempfile::Builder::new().prefix("tm-").tempdir().unwrap();
        let real = dir.path().canonicalize().unwrap();
        let wrapper = format!("#!/bin/sh\nexec tmux -S '{}' -f /dev/null \"$@\"\n", real.join("socket").display());
        fs::write(real.join("own"), wrapper).unwrap();
        fs::set_permissions(real.join("own"), fs::Permissions::from_mode(0o755)).unwrap();
        let path = std::env::var("PATH").unwrap();
        let vars = [("PATH", path.as_str()), ("HOME", real.to_str().unwrap()), ("LC_ALL", "C.UTF-8")];
        let env = Env {
            clock: Arc::new(testkit::VirtualClock::default()),
            ids: Arc::new(testkit::SeededIds::new(1)),
            dirs: Dirs { agent: real.join(".gjc"), home: real.clone(), temp: real.clone() },
            vars: Vars::new(vars.map(|(name, value)| (name.to_owned(), value.to_owned()))),
        };
        Some(Self { dir, env })
    }

    fn root(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap()
    }

    fn ask(&self, args: &[&str]) -> String {
        let mut ask = std::process::Command::new(self.root().join("own"));
        let output = ask.args(args).env_clear().envs(self.env.vars.iter()).stdin(Stdio::null()).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    /// Asks until all that runs in it has ended. (The hook `pane-died` does not always come: tmux 3.3 sometimes does not hear of the
    /// end of a program that ends at once.)
    fn until_all_have_ended(&self) {
        let began = Instant::now();
        while self.ask(&["list-panes", "-a", "-F", "#{pane_dead}"]).lines().any(|dead| dead != "1") {
            assert!(began.elapsed() < LIMIT, "a program in tmux does not end");
        }
    }

    fn sessions(&self) -> Vec<String> {
        let mut names: Vec<String> =
            self.ask(&["list-sessions", "-F", "#{session_name}"]).lines().map(Into::into).collect();
        names.sort();
        names
    }

    /// The session of a command, by the name that would be attached to.
    fn session(&self, command: &Command) -> String {
        let program = self.root().join("own");
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let spawn = runtime.block_on(Tmux::new(&self.env, program.to_str()).session(command)).unwrap();
        let args: Vec<String> = spawn.args.iter().map(|arg| arg.to_string_lossy().into_owned()).collect();
        assert_eq!(args[..2], ["attach-session", "-t"]);
        args[2].trim_start_matches('=').to_owned()
    }

    /// A shell script in the place of gjc.
    fn command(&self, script: &str, project: &str, branch: Option<&str>) -> Command {
        let project = self.root().join(project);
        fs::create_dir_all(&project).unwrap();
        Command {
            program: "/bin/sh".into(),
            args: ["-c", script].map(OsString::from).to_vec(),
            cwd: project.clone(),
            vars: vec![("말".into(), "x".into()), ("WORD".into(), "두 낱말 $HOME\n'\"".into())],
            project,
            branch: branch.map(Into::into),
            anew: false,
        }
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        self.ask(&["kill-server"]);
    }
}

/// Lives until its server is ended.
const LIVES: &str = "read never";

#[test]
fn a_project_and_a_branch_have_one_session_that_is_found_again() {
    let Some(own) = Own::new() else { return };
    let first = own.session(&own.command(LIVES, "가재 코드", None));
    assert!(first.starts_with("gjc-가재-코드-"), "{first}");
    assert_eq!(own.session(&own.command(LIVES, "가재 코드", None)), first);
    // Another folder of the same name, and another branch, are others.
    let beside = own.session(&own.command(LIVES, "밑/가재 코드", None));
    let branch = own.session(&own.command(LIVES, "가재 코드", Some("기능/로그인")));
    let other = own.session(&own.command(LIVES, "밑/가재 코드", Some("기능/로그인")));
    assert_eq!(own.session(&own.command(LIVES, "가재 코드", Some("기능/로그인"))), branch);
    // Who has more to say than where gets a session of their own.
    let anew = own.session(&Command { anew: true, ..own.command(LIVES, "가재 코드", None) });
    assert_eq!(anew, format!("{first}-2"));
    let mut all = vec![first, beside, branch.clone(), other, anew];
    all.sort();
    all.dedup();
    assert_eq!((all.len(), own.sessions()), (5, all));
    let tags = own.ask(&["display-message", "-p", "-t", &format!("={branch}:"), "#{@gjc-branch} #{@gjc-project}"]);
    assert_eq!(tags.trim_end(), format!("기능/로그인 {}", own.root().join("가재 코드").display()));
}

#[test]
fn what_runs_inside_has_its_words_its_folder_and_its_variables() {
    let Some(own) = Own::new() else { return };
    let out = own.root().join("out");
    let script = format!("printf '%s|%s|%s' \"$PWD\" \"$WORD\" \"$1\" > '{}'; exit 3", out.display());
    let mut command = own.command(&script, "내 #{x} 폴더", None);
    command.args.extend(["0", "$(touch 나쁨) ; ~"].map(OsString::from));
    let name = own.session(&command);
    own.until_all_have_ended();
    let folder = command.cwd.display().to_string();
    assert_eq!(fs::read_to_string(out).unwrap(), format!("{folder}|두 낱말 $HOME\n'\"|$(touch 나쁨) ; ~"));
    // Its last words stay to be read; the next one takes their place.
    let dead = ["list-panes", "-t", &format!("={name}:"), "-F", "#{pane_dead}"];
    assert_eq!(own.ask(&dead), "1\n");
    assert_eq!(own.session(&own.command(LIVES, "내 #{x} 폴더", None)), name);
    assert_eq!((own.ask(&dead).trim_end(), own.sessions()), ("0", vec![name]));
}
