//! Which sessions there are, and which one a word means.
#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods, clippy::print_stdout)]

mod campaign;
mod corpora;
mod finding;
mod history;
mod searching;
mod trash;
mod usage;

use gjc_log::fs::OsFs;
use gjc_store::{NotResolved, resolve, sweep_all};
use std::fs;
use std::path::{Path, PathBuf};

const NFC: &str = "/작업";
const NFD: &str = "/\u{110c}\u{1161}\u{11a8}\u{110b}\u{1165}\u{11b8}";

struct Dir(tempfile::TempDir);

impl Dir {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn sessions(&self) -> PathBuf {
        self.0.path().join("sessions")
    }

    /// A session with one message at a given second.
    fn session(&self, bucket: &str, id: &str, cwd: &str, second: u32, text: &str) -> PathBuf {
        let dir = self.sessions().join(bucket);
        fs::create_dir_all(&dir).unwrap();
        let path = dir.join(format!("2026-06-05T00-00-00-000Z_{id}.jsonl"));
        let header = format!(
            r#"{{"type":"session","version":3,"id":"{id}","timestamp":"2026-06-05T00:00:00.000Z","cwd":"{cwd}"}}"#
        );
        let message = format!(
            r#"{{"type":"message","id":"0000000a","parentId":null,"timestamp":"2026-06-05T00:00:{second:02}.000Z","message":{{"role":"user","content":"{text}","timestamp":1}}}}"#
        );
        fs::write(&path, format!("{header}\n{message}\n")).unwrap();
        path
    }

    fn find(&self, cwd: &str, word: &str) -> Result<PathBuf, NotResolved> {
        resolve(&OsFs, &self.sessions(), Path::new(cwd), word)
    }
}

#[test]
fn no_folder_holds_no_sessions() {
    let (infos, unreadable) = sweep_all(&OsFs, &Dir::new().sessions()).unwrap();
    assert!(infos.is_empty() && unreadable.is_empty());
}

#[test]
fn the_newest_entry_comes_first_whatever_the_file_s_own_time_says() {
    let dir = Dir::new();
    dir.session("--a--", "one", "/a", 9, "새 것");
    dir.session("--b--", "two", "/b", 30, "가장 새 것");
    dir.session("--b--", "three", "/b", 5, "오래된 것");
    let (infos, _) = sweep_all(&OsFs, &dir.sessions()).unwrap();
    let names: Vec<&str> = infos.iter().map(|info| info.name()).collect();
    assert_eq!(names, ["가장 새 것", "새 것", "오래된 것"]);
    assert!(infos.iter().all(|info| info.messages == 1 && info.damaged == 0));
}

#[test]
fn a_file_that_cannot_be_read_is_told_and_hides_no_other() {
    let dir = Dir::new();
    dir.session("--a--", "one", "/a", 9, "x");
    fs::write(dir.sessions().join("--a--/broken.jsonl"), "not a header\n").unwrap();
    fs::write(dir.sessions().join("--a--/.s.jsonl.tmp"), "").unwrap();
    fs::write(dir.sessions().join("--a--/notes.txt"), "x").unwrap();
    fs::write(dir.sessions().join("stray.jsonl"), "x").unwrap();
    let (infos, unreadable) = sweep_all(&OsFs, &dir.sessions()).unwrap();
    assert_eq!((infos.len(), unreadable.len()), (1, 1));
    assert!(unreadable[0].why.to_string().contains("no session file"));
}

#[test]
fn a_session_that_died_before_it_had_its_name_is_told() {
    let dir = Dir::new();
    let path = dir.session("--a--", "one", "/a", 9, "x");
    let unnamed = path.with_file_name(".s.jsonl.tmp");
    fs::rename(&path, &unnamed).unwrap();
    let held = fs::File::open(&unnamed).unwrap();
    held.lock().unwrap();
    assert!(sweep_all(&OsFs, &dir.sessions()).unwrap().1.is_empty(), "its writer is at work");
    drop(held);
    let (infos, unreadable) = sweep_all(&OsFs, &dir.sessions()).unwrap();
    assert!(infos.is_empty());
    assert!(unreadable[0].why.to_string().contains("cut off in the first moments"));
}

#[test]
fn an_id_is_found_by_its_beginning_here_first_then_everywhere() {
    let dir = Dir::new();
    let here = dir.session("--a--", "0197-aa", "/a", 1, "x");
    let there = dir.session("--b--", "0197-bb", "/b", 2, "y");
    assert_eq!(dir.find("/a", "0197").unwrap(), here);
    assert_eq!(dir.find("/b", "0197").unwrap(), there);
    assert_eq!(dir.find("/a", "0197-B").unwrap(), there);
    assert!(matches!(dir.find("/c", "0197"), Err(NotResolved::Ambiguous { matches, .. }) if matches.len() == 2));
    assert!(matches!(dir.find("/a", "0198"), Err(NotResolved::Unknown(_))));
    assert!(matches!(dir.find("/a", ""), Err(NotResolved::Unknown(_))));
}

#[test]
fn a_whole_id_wins_over_longer_ones() {
    let dir = Dir::new();
    dir.session("--a--", "abc-1", "/a", 1, "x");
    let exact = dir.session("--b--", "abc", "/b", 2, "y");
    assert_eq!(dir.find("/a", "abc").unwrap(), exact);
}

#[test]
fn a_folder_is_the_same_in_either_spelling_of_its_letters() {
    let dir = Dir::new();
    let here = dir.session("--작업--", "0197-aa", NFC, 1, "x");
    dir.session("--b--", "0197-bb", "/b", 2, "y");
    assert_eq!(dir.find(NFD, "0197").unwrap(), here);
}

#[test]
fn the_header_decides_the_folder_not_the_bucket() {
    let dir = Dir::new();
    let first = dir.session("--a-b-c--", "0197-aa", "/a/b-c", 1, "x");
    let second = dir.session("--a-b-c--", "0197-bb", "/a-b/c", 2, "y");
    assert_eq!(dir.find("/a/b-c", "0197").unwrap(), first);
    assert_eq!(dir.find("/a-b/c", "0197").unwrap(), second);
}

#[test]
fn a_path_is_that_file_and_nothing_else() {
    let dir = Dir::new();
    let path = dir.session("--a--", "0197-aa", "/a", 1, "x");
    let word = path.to_str().unwrap();
    assert_eq!(dir.find("/", word).unwrap(), path);
    assert!(matches!(dir.find("/", "nothing.jsonl"), Err(NotResolved::NoFile(_))));
    assert!(matches!(dir.find("/", "./0197"), Err(NotResolved::NoFile(_))));
    assert!(matches!(dir.find("/", "/"), Err(NotResolved::Folder(_))));
}

#[test]
fn two_files_with_one_id_are_both_named_and_none_is_chosen() {
    let dir = Dir::new();
    dir.session("--a--", "abc", "/a", 1, "x");
    dir.session("--b--", "abc", "/b", 2, "y");
    let Err(error) = dir.find("/a", "abc") else { panic!("one was chosen") };
    assert!(error.to_string().contains("--a--") && error.to_string().contains("--b--"), "{error}");
}

#[test]
fn a_session_of_a_very_deep_folder_has_a_place_and_is_found() {
    let dir = Dir::new();
    let deep = format!("/{}", ["한글한글한글한글한글한"; 10].join("/"));
    let path = dir.session(&gjc_store::bucket_name(Path::new(&deep)), "deep", &deep, 5, "깊은 곳");
    assert_eq!(dir.find(&deep, "de").unwrap(), path);
    assert_eq!(sweep_all(&OsFs, &dir.sessions()).unwrap().0[0].cwd, deep);
}
