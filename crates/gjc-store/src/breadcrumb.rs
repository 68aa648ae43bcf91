//! What a terminal worked on last: a file of its own below `terminal-sessions`, which `--continue` asks first.
//!
//! The first two lines are the family's: the working folder and the session's file. Ours is a third, which says when the terminal
//! began, because the numbers of terminals are given away again. Other programs read two lines, and theirs are read here.
//!
//! It is a convenience: where it cannot be written, nobody is told, and where it cannot be read, it is not there.

use gjc_entry::Vars;
use gjc_log::fs::{Fs, FsFile, Open, mkdir_all_durable};
use std::io;
use std::path::{Path, PathBuf};

/// No breadcrumb is longer, in bytes.
const LONGEST: usize = 16 * 1024;
/// The longest name of a terminal that is used, in bytes.
const LONGEST_NAME: usize = 120;

/// A terminal, as its breadcrumb names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terminal {
    name: String,
    since: Option<String>,
}

impl Terminal {
    /// With when it began, in any form without a line feed: another beginning under the same name is another terminal.
    #[must_use]
    pub fn since(self, since: Option<String>) -> Self {
        Self { since: since.filter(|since| !since.is_empty() && !since.contains('\n')), ..self }
    }
}

/// What a terminal worked on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Breadcrumb {
    /// The folder that it worked in.
    pub cwd: PathBuf,
    /// The session's file; it may be gone, or never have been written.
    pub session: PathBuf,
}

/// The terminal that a process runs in: the device of its standard input, else what the program around it says of itself (kitty,
/// tmux, Terminal of macOS, Windows Terminal). None where nobody says anything.
#[must_use]
pub fn terminal(vars: &Vars, tty: Option<&Path>) -> Option<Terminal> {
    let device = tty.map(|tty| tty.strip_prefix("/dev").unwrap_or(tty).to_string_lossy().into_owned());
    let told =
        [("kitty", "KITTY_WINDOW_ID"), ("tmux", "TMUX_PANE"), ("apple", "TERM_SESSION_ID"), ("wt", "WT_SESSION")]
            .into_iter()
            .find_map(|(program, variable)| Some(format!("{program}-{}", vars.get(variable)?)));
    // It becomes the name of a file, and variables may hold anything.
    let safe = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '%' | ':' | '.') { c } else { '-' };
    let name: String = device.or(told)?.chars().map(safe).take(LONGEST_NAME).collect();
    let name = name.trim_start_matches(['-', '.']).to_owned();
    (!name.is_empty()).then_some(Terminal { name, since: None })
}

/// What this terminal worked on last. Nothing where another terminal bore its name.
pub fn read<F: Fs>(fs: &F, agent_dir: &Path, terminal: &Terminal) -> Option<Breadcrumb> {
    let file = fs.open(&place(agent_dir, terminal), Open::Read).ok()?;
    let mut bytes = vec![0; LONGEST + 1];
    let len = file.read_at(&mut bytes, 0).ok().filter(|len| *len <= LONGEST)?;
    let text = std::str::from_utf8(&bytes[..len]).ok()?;
    let mut lines = text.lines();
    let (cwd, session) = (lines.next()?, lines.next()?);
    // What is not known on either side is no sign of another terminal.
    let other = matches!((lines.next(), &terminal.since), (Some(then), Some(now)) if then != now);
    let absolute = |text: &str| Some(PathBuf::from(text)).filter(|path| path.is_absolute());
    if other { None } else { Some(Breadcrumb { cwd: absolute(cwd)?, session: absolute(session)? }) }
}

/// Writes down what this terminal works on now. A reader sees the old one or this one.
pub fn write<F: Fs>(fs: &F, agent_dir: &Path, terminal: &Terminal, cwd: &Path, session: &Path) {
    let (Some(cwd), Some(session)) = (cwd.to_str(), session.to_str()) else { return };
    if cwd.contains('\n') || session.contains('\n') {
        return;
    }
    let since = terminal.since.as_ref().map(|since| format!("{since}\n")).unwrap_or_default();
    let _ = replace(fs, &place(agent_dir, terminal), format!("{cwd}\n{session}\n{since}").as_bytes());
}

fn place(agent_dir: &Path, terminal: &Terminal) -> PathBuf {
    agent_dir.join("terminal-sessions").join(&terminal.name)
}

fn replace<F: Fs>(fs: &F, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let dir = path.parent().ok_or(io::ErrorKind::NotFound)?;
    mkdir_all_durable(fs, dir)?;
    // Two programs in one terminal are a person who starts one from the other; the last one counts.
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let staged = dir.join(format!(".{name}.{}.tmp", std::process::id()));
    let _ = fs.unlink(&staged);
    let file = fs.open(&staged, Open::CreateNew)?;
    // A short write leaves a name that is never given.
    let written = file.append(bytes)?;
    if written < bytes.len() {
        fs.unlink(&staged)?;
        return Err(io::ErrorKind::WriteZero.into());
    }
    fs.rename(&staged, path)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::disallowed_methods)]

    use super::*;
    use gjc_log::fs::OsFs;

    fn vars(pairs: &[(&str, &str)]) -> Vars {
        Vars::new(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())))
    }

    #[test]
    fn a_terminal_is_its_device_or_what_the_program_around_it_says() {
        let name = |pairs: &[(&str, &str)], tty: Option<&str>| {
            terminal(&vars(pairs), tty.map(Path::new)).map(|terminal| terminal.name)
        };
        let all = [("KITTY_WINDOW_ID", "7"), ("TMUX_PANE", "%3"), ("TERM_SESSION_ID", "w0t1"), ("WT_SESSION", "g-u")];
        assert_eq!(name(&all, Some("/dev/pts/3")).as_deref(), Some("pts-3"));
        for (from, expected) in [(0, "kitty-7"), (1, "tmux-%3"), (2, "apple-w0t1"), (3, "wt-g-u")] {
            assert_eq!(name(&all[from..], None).as_deref(), Some(expected));
        }
        assert_eq!((name(&[], None), name(&[("TMUX_PANE", "")], None)), (None, None));
        // A variable leads nowhere else.
        assert_eq!(name(&[("WT_SESSION", "/../../etc/한글")], None).as_deref(), Some("wt--..-..-etc---"));
        assert_eq!(name(&[], Some("/dev/../..")), None);
        assert_eq!(name(&[("WT_SESSION", &"가".repeat(5000))], None).map(|name| name.len()), Some(LONGEST_NAME));
    }

    #[test]
    fn a_breadcrumb_counts_for_its_terminal_alone() {
        let home = tempfile::tempdir().unwrap();
        let agent = home.path().join("agent");
        let three = terminal(&Vars::default(), Some(Path::new("/dev/pts/3"))).unwrap();
        assert_eq!(read(&OsFs, &agent, &three), None);
        let (cwd, session) = (Path::new("/작업/한글 폴더"), Path::new("/s/세션.jsonl"));
        let began = three.clone().since(Some("boot 1 2".into()));
        write(&OsFs, &agent, &began, cwd, session);
        let found = Some(Breadcrumb { cwd: cwd.into(), session: session.into() });
        assert_eq!(read(&OsFs, &agent, &began), found);
        assert_eq!(read(&OsFs, &agent, &three), found, "who does not know its beginning believes it");
        assert_eq!(read(&OsFs, &agent, &three.clone().since(Some("boot 1 3".into()))), None);
        let four = terminal(&Vars::default(), Some(Path::new("/dev/pts/4"))).unwrap();
        assert_eq!(read(&OsFs, &agent, &four), None);
        let file = agent.join("terminal-sessions/pts-3");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "/작업/한글 폴더\n/s/세션.jsonl\nboot 1 2\n");
        // Another program of the family writes two lines.
        std::fs::write(&file, "/a\n/b.jsonl\n").unwrap();
        assert_eq!(read(&OsFs, &agent, &began).unwrap().cwd, Path::new("/a"));
        write(&OsFs, &agent, &began, cwd, session);
        assert_eq!(std::fs::read_dir(file.parent().unwrap()).unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn what_is_no_breadcrumb_is_none_and_what_cannot_be_one_is_not_written() {
        let home = tempfile::tempdir().unwrap();
        let three = terminal(&Vars::default(), Some(Path::new("/dev/pts/3"))).unwrap();
        let folder = home.path().join("terminal-sessions");
        write(&OsFs, home.path(), &three, Path::new("/두\n줄"), Path::new("/s"));
        assert!(!folder.exists());
        std::fs::create_dir(&folder).unwrap();
        for bytes in [&b""[..], b"/a", b"a\nb\n", b"/a\nb\n", b"/\xff\n/b\n", &[b'/'; LONGEST + 1]] {
            std::fs::write(folder.join("pts-3"), bytes).unwrap();
            assert_eq!(read(&OsFs, home.path(), &three), None);
        }
        // Where it cannot be written, nothing happens.
        std::fs::remove_dir_all(&folder).unwrap();
        std::fs::write(&folder, "a file").unwrap();
        write(&OsFs, home.path(), &three, Path::new("/a"), Path::new("/b"));
        assert_eq!(std::fs::read_to_string(&folder).unwrap(), "a file");
    }
}
