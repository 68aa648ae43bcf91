//! Whole outputs beside the session: what was too long to show, read back as `artifact://<number>`.
//!
//! Each is a file `<number>.<tool>.log` in the session's own folder. The tool in the name says what the content is worth
//! ([`label_of`]), so that a process which did not write it knows as well. A session in memory keeps them in memory.

use gjc_entry::{Label, Level};
use gjc_protocol::Refusal;
use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Cursor, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How an artifact is named.
pub(crate) const SCHEME: &str = "artifact://";
/// Bytes that a session in memory keeps of all its outputs; the oldest leave.
const KEPT: usize = 32 << 20;
/// How many numbers are named to who asks for one that is not there.
const NAMED: usize = 20;

/// The whole outputs of one session.
#[derive(Debug, Clone)]
pub struct Artifacts {
    folder: Option<PathBuf>,
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug, Default)]
struct Shared {
    /// The last number that was given out; `None` before the folder was looked at.
    last: Option<u64>,
    /// In memory: number, tool, content.
    kept: VecDeque<(u64, &'static str, Arc<[u8]>)>,
}

/// An artifact that was found.
pub(crate) struct Found {
    pub(crate) from: Box<dyn Read + Send>,
    pub(crate) size: u64,
    pub(crate) label: Label,
    /// Its file, if it has one.
    pub(crate) path: Option<PathBuf>,
}

impl Artifacts {
    /// Of a session with such a folder, which need not exist yet; `None` for one in memory.
    #[must_use]
    pub fn new(folder: Option<PathBuf>) -> Self {
        Self { folder, shared: Arc::default() }
    }

    /// The same session's, now that its folder is another one: numbers go on.
    #[must_use]
    pub fn moved(&self, folder: Option<PathBuf>) -> Self {
        Self { folder, shared: Arc::clone(&self.shared) }
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// A number that no other output has, and where its file goes; the file is made when it is needed.
    pub(crate) fn reserve(&self, tool: &str) -> (u64, Option<PathBuf>) {
        let mut shared = self.lock();
        let last = shared.last.unwrap_or_else(|| self.on_disk().iter().map(|(number, _)| *number).max().unwrap_or(0));
        shared.last = Some(last + 1);
        (last + 1, self.folder.as_ref().map(|folder| folder.join(format!("{}.{tool}.log", last + 1))))
    }

    /// Keeps a whole text that is there already, for the person alone as all of a session is; gives its name.
    pub(crate) fn store(&self, tool: &'static str, text: &str) -> io::Result<String> {
        let (number, path) = self.reserve(tool);
        match path {
            Some(path) => {
                if let Some(folder) = path.parent() {
                    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
                }
                let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
                file.write_all(text.as_bytes())?;
            }
            None => self.keep(number, tool, text.into()),
        }
        Ok(format!("{SCHEME}{number}"))
    }

    /// Keeps a whole output in memory.
    pub(crate) fn keep(&self, number: u64, tool: &'static str, content: Vec<u8>) {
        let mut shared = self.lock();
        shared.kept.push_back((number, tool, content.into()));
        while shared.kept.len() > 1 && shared.kept.iter().map(|(.., content)| content.len()).sum::<usize>() > KEPT {
            shared.kept.pop_front();
        }
    }

    /// What a name stands for, opened.
    pub(crate) fn open(&self, given: &str) -> Result<Found, Refusal> {
        let number = number(given)?;
        let kept = self.lock().kept.iter().find(|(other, ..)| *other == number).cloned();
        if let Some((_, tool, content)) = kept {
            let size = content.len() as u64;
            return Ok(Found { from: Box::new(Cursor::new(content)), size, label: label_of(tool), path: None });
        }
        let (path, tool) = self.place(number).ok_or_else(|| self.unknown(given))?;
        let (file, size) = open_file(&path).map_err(|error| {
            let failed = Refusal::new("io", format!("{given} could not be read: {error}"));
            failed.hint("run the command again to get its output")
        })?;
        Ok(Found { from: Box::new(file), size, label: label_of(&tool), path: Some(path) })
    }

    /// The label of what a name stands for. Where there is nothing, nothing is told but the numbers that there are.
    pub(crate) fn label(&self, given: &str) -> Label {
        let Ok(number) = number(given) else { return Label::PUBLIC_TRUSTED };
        let kept = self.lock().kept.iter().find(|(other, ..)| *other == number).map(|(_, tool, _)| label_of(tool));
        kept.or_else(|| self.place(number).map(|(_, tool)| label_of(&tool))).unwrap_or(Label::PUBLIC_TRUSTED)
    }

    fn place(&self, number: u64) -> Option<(PathBuf, String)> {
        let tool = self.on_disk().into_iter().find(|(other, _)| *other == number)?.1;
        Some((self.folder.as_ref()?.join(format!("{number}.{tool}.log")), tool))
    }

    /// The numbers of the files that there are, with their tools, in no order. What is named otherwise is none.
    fn on_disk(&self) -> Vec<(u64, String)> {
        let Some(Ok(entries)) = self.folder.as_ref().map(fs::read_dir) else { return Vec::new() };
        let named = entries.flatten().filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let (number, tool) = name.strip_suffix(".log")?.split_once('.')?;
            Some((canonical(number)?, tool.to_owned()))
        });
        named.collect()
    }

    fn unknown(&self, given: &str) -> Refusal {
        let mut there: Vec<u64> = self.on_disk().into_iter().map(|(number, _)| number).collect();
        there.extend(self.lock().kept.iter().map(|(number, ..)| *number));
        there.sort_unstable_by(|a, b| b.cmp(a));
        let more = if there.len() > NAMED { ", …" } else { "" };
        let there: Vec<String> = there.iter().take(NAMED).map(|number| format!("{SCHEME}{number}")).collect();
        let hint = match &there[..] {
            [] => "no output of this session was too long to be shown".into(),
            there => format!("there are, the newest first: {}{more}", there.join(", ")),
        };
        Refusal::new("unknown_artifact", format!("there is no {given}")).hint(hint)
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const UNKNOWN: Label = Label { level: Level::Restricted, trusted: false };

/// What the output of a tool is worth. Nobody vouches for what a command prints or a page says; of other names nothing is known.
fn label_of(tool: &str) -> Label {
    match tool {
        "bash" | "fetch" => Label { trusted: false, ..Label::PUBLIC_TRUSTED },
        _ => UNKNOWN,
    }
}

/// The number in a name. Only its own spelling: no path, no sign, no zero in front.
fn number(given: &str) -> Result<u64, Refusal> {
    let number = given.strip_prefix(SCHEME).and_then(canonical);
    number.ok_or_else(|| {
        Refusal::new("wrong_artifact", format!("\"{given}\" names no artifact: behind {SCHEME} stands a number"))
            .hint(format!("the results that were too long name theirs, as in {SCHEME}3"))
    })
}

fn canonical(digits: &str) -> Option<u64> {
    let number: u64 = digits.parse().ok()?;
    (number.to_string() == digits).then_some(number)
}

/// A regular file, and no link to one.
fn open_file(path: &Path) -> io::Result<(File, u64)> {
    let found = path.symlink_metadata()?;
    if !found.is_file() {
        return Err(io::Error::other("it is no file of gjc's"));
    }
    let no_link = i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).unwrap_or(0);
    let file = OpenOptions::new().read(true).custom_flags(no_link).open(path)?;
    let size = file.metadata()?.len();
    Ok((file, size))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn text(artifacts: &Artifacts, name: &str) -> Result<String, String> {
        let mut text = String::new();
        artifacts.open(name).map_err(|refusal| refusal.to_string())?.from.read_to_string(&mut text).unwrap();
        Ok(text)
    }

    #[test]
    fn numbers_go_on_behind_what_is_there_and_are_given_once() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["7.bash.log", "007.bash.log", "가.bash.log", "12.txt", "whole-9.txt", "-3.bash.log"] {
            fs::write(dir.path().join(name), "").unwrap();
        }
        let artifacts = Artifacts::new(Some(dir.path().into()));
        assert_eq!(artifacts.reserve("bash"), (8, Some(dir.path().join("8.bash.log"))));
        let moved = artifacts.moved(Some("/elsewhere".into()));
        assert_eq!(moved.reserve("bash").0, 9);
        assert_eq!(artifacts.reserve("bash").0, 10);
    }

    #[test]
    fn only_numbers_lead_to_files_and_only_to_those_of_the_folder() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("세션");
        fs::create_dir(&folder).unwrap();
        fs::write(dir.path().join("1.bash.log"), "outside").unwrap();
        fs::write(folder.join("2.bash.log"), "가나다").unwrap();
        std::os::unix::fs::symlink(dir.path().join("1.bash.log"), folder.join("3.bash.log")).unwrap();
        fs::create_dir(folder.join("4.bash.log")).unwrap();
        let artifacts = Artifacts::new(Some(folder));
        assert_eq!(text(&artifacts, "artifact://2").unwrap(), "가나다");
        for name in ["../1", "2/../../1", "02", "+2", "", "2.bash.log", "２", "99999999999999999999", "2 "] {
            let refused = text(&artifacts, &format!("artifact://{name}")).unwrap_err();
            assert!(refused.contains("names no artifact"), "{name}: {refused}");
        }
        for name in ["artifact://3", "artifact://4"] {
            assert!(text(&artifacts, name).unwrap_err().contains("could not be read"), "{name}");
        }
        let unknown = text(&artifacts, "artifact://9").unwrap_err();
        assert!(
            unknown.contains("there is no artifact://9\nhint: there are, the newest first: artifact://4"),
            "{unknown}"
        );
    }

    #[test]
    fn the_label_is_known_without_who_wrote_it_and_of_other_names_it_is_the_worst() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("1.bash.log"), "").unwrap();
        fs::write(dir.path().join("2.other.log"), "").unwrap();
        let artifacts = Artifacts::new(Some(dir.path().into()));
        let untrusted = Label { level: Level::Public, trusted: false };
        assert_eq!(artifacts.label("artifact://1"), untrusted);
        assert_eq!(artifacts.open("artifact://1").unwrap().label, untrusted);
        assert_eq!(artifacts.open("artifact://2").unwrap().label, UNKNOWN);
        assert_eq!(artifacts.label("artifact://2"), UNKNOWN);
        assert_eq!(artifacts.label("artifact://3"), Label::PUBLIC_TRUSTED);
    }

    #[test]
    fn a_text_is_kept_for_the_person_alone_and_in_memory_where_there_is_no_folder() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("세션");
        for artifacts in [Artifacts::new(Some(folder.clone())), Artifacts::new(None)] {
            let name = artifacts.store("fetch", "쪽의 글").unwrap();
            assert_eq!((name.as_str(), text(&artifacts, &name).unwrap().as_str()), ("artifact://1", "쪽의 글"));
            assert!(!artifacts.label(&name).trusted);
        }
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&folder), mode(&folder.join("1.fetch.log"))), (0o700, 0o600));
    }

    #[test]
    fn a_session_in_memory_keeps_the_newest() {
        let artifacts = Artifacts::new(None);
        let (first, path) = artifacts.reserve("bash");
        assert_eq!((first, path), (1, None));
        artifacts.keep(first, "bash", vec![b'a'; KEPT - 1]);
        let (second, _) = artifacts.reserve("bash");
        artifacts.keep(second, "bash", "나".into());
        assert!(text(&artifacts, "artifact://1").unwrap_err().contains("there are, the newest first: artifact://2"));
        assert_eq!(text(&artifacts, "artifact://2").unwrap(), "나");
        assert!(!artifacts.label("artifact://2").trusted);
    }
}
