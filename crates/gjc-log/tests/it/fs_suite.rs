//! What every file system promises the log, and what a power cut may take from the simulated one.

use std::collections::BTreeSet;
use std::io::ErrorKind::{
    self, AlreadyExists, DirectoryNotEmpty, IsADirectory, NotADirectory, NotFound, PermissionDenied, StorageFull,
};
use std::path::Path;
use std::sync::Barrier;

use gjc_log::fs::sim::{Cut, Fault, SimFs};
use gjc_log::fs::{Fs, FsFile, Held, Open, OsFs, mkdir_all_durable};
use proptest::prelude::*;

/// Runs each expectation on the real and on the simulated file system, in an empty directory.
macro_rules! on_both {
    ($($name:ident)*) => {
        mod os {
            $(#[test] fn $name() {
                let dir = tempfile::tempdir().unwrap();
                super::$name(&super::OsFs, dir.path());
            })*
        }
        mod sim {
            $(#[test] fn $name() {
                let fs = super::SimFs::new();
                super::Fs::mkdir(&fs, "/방".as_ref()).unwrap();
                super::$name(&fs, "/방".as_ref());
            })*
        }
    };
}

on_both! {
    create_new_is_exclusive
    appends_go_to_the_end
    a_rewrite_stays_in_its_place
    reads_stop_at_the_end
    a_reader_cannot_write
    rename_new_never_replaces
    of_two_rename_new_one_wins
    rename_replaces
    an_unlinked_file_lives_while_open
    only_an_empty_folder_is_removed
    stat_is_an_identity
    list_is_sorted
    names_fail_as_the_system_says
    directories_are_no_files
    a_lock_is_held_by_one_handle
    truncate_cuts_and_appends_go_on
    ranges_go_behind_the_end
    what_cannot_be_shared_changes_nothing
    mkdir_all_durable_makes_what_is_missing
    syncs_succeed
}

fn kind<T>(result: std::io::Result<T>) -> ErrorKind {
    result.err().expect("this must fail").kind()
}

fn make<F: Fs>(fs: &F, path: &Path, bytes: &[u8]) -> F::File {
    let file = fs.open(path, Open::CreateNew).unwrap();
    assert_eq!(file.append(bytes).unwrap(), bytes.len());
    file
}

fn content<F: Fs>(fs: &F, path: &Path) -> Vec<u8> {
    let file = fs.open(path, Open::Read).unwrap();
    let mut bytes = vec![0; usize::try_from(file.stat().unwrap().len).unwrap()];
    assert_eq!(file.read_at(&mut bytes, 0).unwrap(), bytes.len());
    bytes
}

fn create_new_is_exclusive<F: Fs>(fs: &F, dir: &Path) {
    let path = dir.join("세션.jsonl");
    make(fs, &path, b"1");
    assert_eq!(kind(fs.open(&path, Open::CreateNew)), AlreadyExists);
    assert_eq!(kind(fs.open(dir, Open::CreateNew)), AlreadyExists);
    assert_eq!(content(fs, &path), b"1");
    let again = fs.open(&path, Open::Append).unwrap();
    again.append(b"2").unwrap();
    assert_eq!(content(fs, &path), b"12");
}

fn appends_go_to_the_end<F: Fs>(fs: &F, dir: &Path) {
    let path = dir.join("a");
    let one = make(fs, &path, b"one ");
    let two = fs.open(&path, Open::Append).unwrap();
    two.append(b"two ").unwrap();
    one.append("셋".as_bytes()).unwrap();
    assert_eq!(one.append(b"").unwrap(), 0);
    assert_eq!(content(fs, &path), "one two 셋".as_bytes());
    assert_eq!((one.stat().unwrap().len, two.stat().unwrap().len), (11, 11));
}

fn a_rewrite_stays_in_its_place<F: Fs>(fs: &F, dir: &Path) {
    let path = dir.join("a");
    let file = make(fs, &path, b"0123456789");
    assert_eq!(file.try_lock().unwrap(), Held::Ours);
    file.rewrite_at(b"abc", 4).unwrap();
    assert_eq!(content(fs, &path), b"0123abc789");
    file.append(b"!").unwrap();
    assert_eq!(content(fs, &path), b"0123abc789!");
    assert_eq!(fs.open(&path, Open::Append).unwrap().try_lock().unwrap(), Held::Other, "the lock stays ours");
    fs.rename(&path, &dir.join("b")).unwrap();
    file.rewrite_at("셋".as_bytes(), 0).unwrap();
    assert_eq!(content(fs, &dir.join("b")), "셋3abc789!".as_bytes(), "whatever its name is");
}

fn reads_stop_at_the_end<F: Fs>(fs: &F, dir: &Path) {
    let file = make(fs, &dir.join("a"), b"0123456789");
    let mut buf = [b'-'; 4];
    assert_eq!(file.read_at(&mut buf, 3).unwrap(), 4);
    assert_eq!(&buf, b"3456");
    assert_eq!(file.read_at(&mut buf, 8).unwrap(), 2);
    assert_eq!(&buf, b"8956");
    assert_eq!(file.read_at(&mut buf, 10).unwrap(), 0);
    assert_eq!(file.read_at(&mut buf, 1 << 40).unwrap(), 0);
    assert_eq!(file.read_at(&mut [], 0).unwrap(), 0);
}

fn a_reader_cannot_write<F: Fs>(fs: &F, dir: &Path) {
    let path = dir.join("a");
    make(fs, &path, b"x");
    let reader = fs.open(&path, Open::Read).unwrap();
    assert!(reader.append(b"y").is_err());
    assert!(reader.truncate(0).is_err());
    assert_eq!(content(fs, &path), b"x");
}

fn rename_new_never_replaces<F: Fs>(fs: &F, dir: &Path) {
    let (tmp, to, other) = (dir.join(".tmp"), dir.join("to"), dir.join("other"));
    make(fs, &tmp, b"new");
    make(fs, &to, b"old");
    assert_eq!(kind(fs.rename_new(&tmp, &to)), AlreadyExists);
    assert_eq!((content(fs, &tmp), content(fs, &to)), (b"new".to_vec(), b"old".to_vec()));
    assert_eq!(kind(fs.rename_new(&tmp, &tmp)), AlreadyExists);
    fs.rename_new(&tmp, &other).unwrap();
    assert_eq!(fs.list(dir).unwrap(), [other.clone(), to]);
    assert_eq!(content(fs, &other), b"new");
    assert_eq!(kind(fs.rename_new(&tmp, &dir.join("x"))), NotFound);
}

fn of_two_rename_new_one_wins<F: Fs>(fs: &F, dir: &Path) {
    for round in 0..50 {
        let to = dir.join(format!("to{round}"));
        let start = Barrier::new(2);
        let rename = |name: &str| {
            let from = dir.join(name);
            make(fs, &from, name.as_bytes());
            start.wait();
            fs.rename_new(&from, &to).map_err(|error| error.kind())
        };
        let (a, b) = std::thread::scope(|scope| {
            let (a, b) = (scope.spawn(|| rename("a")), scope.spawn(|| rename("b")));
            (a.join().unwrap(), b.join().unwrap())
        });
        let (winner, loser) = match (a, b) {
            (Ok(()), Err(AlreadyExists)) => ("a", "b"),
            (Err(AlreadyExists), Ok(())) => ("b", "a"),
            both => panic!("exactly one must win: {both:?}"),
        };
        assert_eq!(content(fs, &to), winner.as_bytes());
        fs.unlink(&dir.join(loser)).unwrap();
        assert_eq!(kind(fs.stat(&dir.join(winner))), NotFound);
    }
}

fn rename_replaces<F: Fs>(fs: &F, dir: &Path) {
    let (tmp, to) = (dir.join(".tmp"), dir.join("색인"));
    make(fs, &tmp, b"new");
    let old = make(fs, &to, b"old");
    fs.rename(&tmp, &to).unwrap();
    assert_eq!(fs.list(dir).unwrap(), std::slice::from_ref(&to));
    assert_eq!(content(fs, &to), b"new");
    assert_ne!(old.stat().unwrap().inode, fs.stat(&to).unwrap().inode);
    fs.rename(&to, &to).unwrap();
    let sub = dir.join("sub");
    fs.mkdir(&sub).unwrap();
    assert_eq!(kind(fs.rename(&to, &sub)), IsADirectory);
    assert_eq!(kind(fs.rename(&sub, &to)), NotADirectory);
    assert_eq!(kind(fs.rename(&tmp, &to)), NotFound);
    fs.rename(&to, &sub.join("x")).unwrap();
    assert_eq!(content(fs, &sub.join("x")), b"new");
}

fn only_an_empty_folder_is_removed<F: Fs>(fs: &F, dir: &Path) {
    let (folder, file) = (dir.join("폴더"), dir.join("폴더/x"));
    fs.mkdir(&folder).unwrap();
    drop(fs.open(&file, Open::CreateNew).unwrap());
    assert_eq!(kind(fs.rmdir(&folder)), DirectoryNotEmpty);
    assert_eq!(kind(fs.rmdir(&file)), NotADirectory);
    assert!(!fs.is_link(&file).unwrap() && !fs.is_link(&folder).unwrap());
    fs.unlink(&file).unwrap();
    fs.rmdir(&folder).unwrap();
    assert_eq!((kind(fs.rmdir(&folder)), kind(fs.is_link(&folder))), (NotFound, NotFound));
}

fn an_unlinked_file_lives_while_open<F: Fs>(fs: &F, dir: &Path) {
    let path = dir.join("a");
    let file = make(fs, &path, b"one ");
    fs.unlink(&path).unwrap();
    assert_eq!(kind(fs.open(&path, Open::Read)), NotFound);
    file.append(b"two").unwrap();
    file.sync_data().unwrap();
    let mut buf = [0; 7];
    assert_eq!(file.read_at(&mut buf, 0).unwrap(), 7);
    assert_eq!(&buf, b"one two");
    make(fs, &path, b"another");
    assert_ne!(file.stat().unwrap().inode, fs.stat(&path).unwrap().inode);
}

fn stat_is_an_identity<F: Fs>(fs: &F, dir: &Path) {
    let (a, b) = (dir.join("a"), dir.join("b"));
    let file = make(fs, &a, b"12345");
    let (open, named) = (file.stat().unwrap(), fs.stat(&a).unwrap());
    assert_eq!(open, named);
    assert_eq!((open.len, open.is_dir), (5, false));
    fs.rename(&a, &b).unwrap();
    assert_eq!(fs.stat(&b).unwrap().inode, open.inode);
    let other = make(fs, &a, b"").stat().unwrap();
    assert_ne!((other.dev, other.inode), (open.dev, open.inode));
    assert!(fs.stat(dir).unwrap().is_dir);
    assert_eq!(kind(fs.stat(&dir.join("c"))), NotFound);
    assert_eq!(kind(fs.stat(&a.join("c"))), NotADirectory);
}

fn list_is_sorted<F: Fs>(fs: &F, dir: &Path) {
    for name in ["b", "하나", "a", "B", ".tmp", "가"] {
        make(fs, &dir.join(name), b"");
    }
    let names: Vec<_> = [".tmp", "B", "a", "b", "가", "하나"].iter().map(|name| dir.join(name)).collect();
    assert_eq!(fs.list(dir).unwrap(), names);
    assert_eq!(kind(fs.list(&dir.join("none"))), NotFound);
    assert_eq!(kind(fs.list(&dir.join("a"))), NotADirectory);
}

fn names_fail_as_the_system_says<F: Fs>(fs: &F, dir: &Path) {
    let sub = dir.join("sub");
    fs.mkdir(&sub).unwrap();
    assert_eq!(kind(fs.mkdir(&sub)), AlreadyExists);
    assert_eq!(kind(fs.mkdir(&dir.join("x/y"))), NotFound);
    make(fs, &dir.join("f"), b"");
    assert_eq!(kind(fs.mkdir(&dir.join("f"))), AlreadyExists);
    assert_eq!(kind(fs.mkdir(&dir.join("f/y"))), NotADirectory);
    assert_eq!(kind(fs.open(&dir.join("x/y"), Open::CreateNew)), NotFound);
    assert_eq!(kind(fs.open(&dir.join("none"), Open::Read)), NotFound);
    assert_eq!(kind(fs.open(&dir.join("none"), Open::Append)), NotFound);
    assert_eq!(kind(fs.unlink(&dir.join("none"))), NotFound);
    assert_eq!(fs.list(&sub).unwrap(), Vec::<std::path::PathBuf>::new());
}

fn directories_are_no_files<F: Fs>(fs: &F, dir: &Path) {
    assert_eq!(kind(fs.open(dir, Open::Append)), IsADirectory);
    assert_eq!(kind(fs.unlink(dir)), IsADirectory);
    let (outer, inner) = (dir.join("outer"), dir.join("outer/inner"));
    fs.mkdir(&outer).unwrap();
    assert_eq!(kind(fs.rename(&outer, &inner)), ErrorKind::InvalidInput);
    fs.mkdir(&inner).unwrap();
    fs.mkdir(&dir.join("b")).unwrap();
    // POSIX leaves the choice, and XFS has the other word.
    let refused = kind(fs.rename(&dir.join("b"), &outer));
    assert!(matches!(refused, ErrorKind::DirectoryNotEmpty | AlreadyExists), "{refused}");
    fs.rename(&inner, &dir.join("b")).unwrap();
    assert_eq!(fs.list(dir).unwrap(), [dir.join("b"), outer]);
}

fn a_lock_is_held_by_one_handle<F: Fs>(fs: &F, dir: &Path) {
    let path = dir.join("a");
    let one = make(fs, &path, b"");
    let two = fs.open(&path, Open::Append).unwrap();
    assert_eq!(one.try_lock().unwrap(), Held::Ours);
    assert_eq!(one.try_lock().unwrap(), Held::Ours);
    assert_eq!(two.try_lock().unwrap(), Held::Other);
    let other = make(fs, &dir.join("b"), b"");
    assert_eq!(other.try_lock().unwrap(), Held::Ours);
    fs.rename(&dir.join("b"), &path).unwrap();
    assert_eq!(fs.open(&path, Open::Append).unwrap().try_lock().unwrap(), Held::Other);
    assert_eq!(two.try_lock().unwrap(), Held::Other);
    drop(one);
    assert_eq!(two.try_lock().unwrap(), Held::Ours);
}

fn truncate_cuts_and_appends_go_on<F: Fs>(fs: &F, dir: &Path) {
    let path = dir.join("a");
    let file = make(fs, &path, b"0123456789");
    file.truncate(4).unwrap();
    file.append(b"ab").unwrap();
    assert_eq!(content(fs, &path), b"0123ab");
    file.truncate(8).unwrap();
    file.append(b"c").unwrap();
    assert_eq!(content(fs, &path), b"0123ab\0\0c");
    file.truncate(0).unwrap();
    assert_eq!(file.stat().unwrap().len, 0);
}

/// Where the file system has neither, both say so and change nothing.
fn ranges_go_behind_the_end<F: Fs>(fs: &F, dir: &Path) {
    let bytes: Vec<u8> = (0..30_000u32).map(|n| (n % 251) as u8).collect();
    make(fs, &dir.join("source"), &bytes);
    let source = fs.open(&dir.join("source"), Open::Read).unwrap();
    let file = make(fs, &dir.join("target"), &bytes[..4096]);
    let mut expected = bytes[..4096].to_vec();
    if file.clone_range(&source, 8192, 8192).is_ok() {
        expected.extend_from_slice(&bytes[8192..16_384]);
    }
    assert_eq!(content(fs, &dir.join("target")), expected);
    if let Ok(done) = file.copy_range(&source, 5, 100) {
        assert!((1..=100).contains(&done));
        expected.extend_from_slice(&bytes[5..5 + usize::try_from(done).unwrap()]);
        assert_eq!(file.copy_range(&source, 30_000, 100).unwrap(), 0, "at the end");
        let done = file.copy_range(&source, 29_990, 100).unwrap();
        assert!((1..=10).contains(&done));
        expected.extend_from_slice(&bytes[29_990..29_990 + usize::try_from(done).unwrap()]);
    }
    // What is appended next stands behind it, and the source is as it was.
    file.append(b"end").unwrap();
    expected.extend_from_slice(b"end");
    assert_eq!(content(fs, &dir.join("target")), expected);
    assert_eq!(content(fs, &dir.join("source")), bytes);
    assert_eq!(file.stat().unwrap().len, expected.len() as u64);
}

fn what_cannot_be_shared_changes_nothing<F: Fs>(fs: &F, dir: &Path) {
    let source = make(fs, &dir.join("source"), &[7; 20_000]);
    let file = make(fs, &dir.join("target"), &[1; 4000]);
    file.clone_range(&source, 0, 4096).unwrap_err();
    file.truncate(0).unwrap();
    file.append(&[1; 4096]).unwrap();
    for (from, len) in [(1, 4096), (4096, 4095), (16_384, 8192), (u64::MAX - 4095, 4096)] {
        file.clone_range(&source, from, len).unwrap_err();
    }
    assert_eq!(content(fs, &dir.join("target")), [1; 4096]);
}

fn mkdir_all_durable_makes_what_is_missing<F: Fs>(fs: &F, dir: &Path) {
    let deep = dir.join("가/나/다");
    mkdir_all_durable(fs, &deep).unwrap();
    mkdir_all_durable(fs, &deep).unwrap();
    assert!(fs.stat(&deep).unwrap().is_dir);
    make(fs, &dir.join("f"), b"");
    assert_eq!(kind(mkdir_all_durable(fs, &dir.join("f"))), NotADirectory);
}

fn syncs_succeed<F: Fs>(fs: &F, dir: &Path) {
    let file = make(fs, &dir.join("a"), b"x");
    file.sync_data().unwrap();
    fs.sync_dir(dir).unwrap();
    assert_eq!(kind(fs.sync_dir(&dir.join("none"))), NotFound);
    assert_eq!(kind(fs.sync_dir(&dir.join("a"))), NotADirectory);
}

// The simulated disk alone.

fn contents(cuts: impl Iterator<Item = Cut>, path: &str) -> Vec<Option<Vec<u8>>> {
    cuts.map(|cut| cut.fs.read(path).ok()).collect()
}

fn settled(path: &str, bytes: &[u8]) -> (SimFs, <SimFs as Fs>::File) {
    let fs = SimFs::new();
    let file = make(&fs, path.as_ref(), bytes);
    fs.settle();
    (fs, file)
}

#[test]
fn the_cuts_of_a_tiny_journal_are_these() {
    let (fs, file) = settled("/a", b"12");
    file.append(b"345").unwrap();
    let expected: [&[u8]; 5] = [b"12", b"123", b"1234", b"12345", b"12\0\0\0"];
    let all = |cuts: Vec<Option<Vec<u8>>>| cuts.into_iter().map(Option::unwrap).collect::<Vec<_>>();
    assert_eq!(all(contents(fs.power_cuts(), "/a")), expected);

    file.sync_data().unwrap();
    assert_eq!(fs.power_cuts().count(), 5, "a sync adds no state");
    fs.mark(1);
    let promised = fs.power_cuts().filter(|cut| cut.marks == [1]);
    assert_eq!(all(contents(promised, "/a")), [b"12345"]);
    assert_eq!(fs.power_cuts().count(), 6);
}

#[test]
fn the_cuts_of_names_times_bytes_are_counted_by_hand() {
    let fs = SimFs::new();
    // Nothing: 1. Name of a: +1. "xy" while the name survives: 2 prefixes + all NUL = +3.
    let a = make(&fs, "/a".as_ref(), b"xy");
    assert_eq!(fs.power_cuts().count(), 5);
    // Rename: "b" from {rename} and {create, rename} is one tree, times 4 states of the bytes: +4.
    fs.rename_new("/a".as_ref(), "/b".as_ref()).unwrap();
    assert_eq!(fs.power_cuts().count(), 9);
    fs.sync_dir("/".as_ref()).unwrap();
    a.sync_data().unwrap();
    assert_eq!(fs.power_cuts().count(), 9);
    fs.mark(7);
    let last = fs.power_cuts().last().unwrap();
    assert_eq!((last.marks.as_slice(), last.position), (&[7][..], 6));
    assert_eq!(last.fs.read("/b").unwrap(), b"xy");
}

#[test]
fn a_torn_append_ends_at_any_byte_or_in_nul_from_any_sector() {
    let (fs, file) = settled("/a", &[b'-'; 500]);
    file.append(&[b'+'; 1_100]).unwrap();
    let found: BTreeSet<Vec<u8>> = contents(fs.power_cuts(), "/a").into_iter().flatten().collect();
    let torn = |whole: usize, len: usize| {
        let mut bytes = [vec![b'-'; 500], vec![b'+'; whole - 500]].concat();
        bytes.resize(len, 0);
        bytes
    };
    let mut expected: BTreeSet<_> = (500..=1_600).map(|len| torn(len, len)).collect();
    expected.extend([500, 512, 1_024, 1_536].map(|whole| torn(whole, 1_600)));
    assert_eq!(found, expected);
}

#[test]
fn synced_bytes_stay_and_their_name_needs_its_directory() {
    let fs = SimFs::new();
    let file = make(&fs, "/a".as_ref(), "하나\n".as_bytes());
    file.sync_data().unwrap();
    fs.mark(1);
    let promised = || fs.power_cuts().filter(|cut| cut.marks.contains(&1));
    let states = contents(promised(), "/a");
    assert_eq!(states, [None, Some("하나\n".as_bytes().to_vec())], "a synced file may lack its name");
    fs.sync_dir("/".as_ref()).unwrap();
    fs.mark(2);
    file.append(b"two\n").unwrap();
    for cut in fs.power_cuts().filter(|cut| cut.marks.contains(&2)) {
        assert!(cut.fs.read("/a").unwrap().starts_with("하나\n".as_bytes()), "{cut}");
    }
}

#[test]
fn a_lost_directory_takes_everything_below() {
    let fs = SimFs::new();
    fs.mkdir("/d".as_ref()).unwrap();
    make(&fs, "/d/a".as_ref(), b"x").sync_data().unwrap();
    fs.sync_dir("/d".as_ref()).unwrap();
    fs.mark(1);
    let promised = || fs.power_cuts().filter(|cut| cut.marks == [1]);
    assert_eq!(contents(promised(), "/d/a"), [None, Some(b"x".to_vec())]);
    let fs = SimFs::new();
    mkdir_all_durable(&fs, "/가/나".as_ref()).unwrap();
    fs.mark(1);
    assert!(fs.power_cuts().filter(|cut| cut.marks == [1]).all(|cut| cut.fs.stat("/가/나".as_ref()).is_ok()));
}

#[test]
fn a_rename_is_one_change_and_replaces_whole() {
    let (fs, _) = settled("/index", b"old");
    let new = make(&fs, "/.tmp".as_ref(), b"new");
    new.sync_data().unwrap();
    fs.rename(("/.tmp").as_ref(), "/index".as_ref()).unwrap();
    let mut both = 0;
    for cut in fs.power_cuts() {
        let index = cut.fs.read("/index").unwrap();
        assert!(index == b"old" || index == b"new", "{cut}");
        let tmp = cut.fs.read("/.tmp").is_ok();
        assert!(!(tmp && index == b"new"), "both names at once: {cut}");
        both += u32::from(index == b"new");
    }
    assert_eq!(both, 1);

    let (fs, _) = settled("/index", b"old");
    make(&fs, "/.tmp".as_ref(), b"new");
    fs.rename("/.tmp".as_ref(), "/index".as_ref()).unwrap();
    assert!(contents(fs.power_cuts(), "/index").contains(&Some(Vec::new())), "renamed before its bytes were synced");
}

#[test]
fn a_move_between_directories_is_never_lost() {
    let fs = SimFs::new();
    fs.mkdir("/from".as_ref()).unwrap();
    fs.mkdir("/to".as_ref()).unwrap();
    make(&fs, "/from/a".as_ref(), b"x");
    fs.settle();
    fs.rename_new("/from/a".as_ref(), "/to/a".as_ref()).unwrap();
    fs.sync_dir("/to".as_ref()).unwrap();
    fs.mark(1);
    let found = |cut: &Cut| (cut.fs.read("/from/a").is_ok(), cut.fs.read("/to/a").is_ok());
    let promised: BTreeSet<_> = fs.power_cuts().filter(|cut| cut.marks == [1]).map(|cut| found(&cut)).collect();
    assert_eq!(promised, BTreeSet::from([(true, true), (false, true)]));
    fs.sync_dir("/from".as_ref()).unwrap();
    fs.mark(2);
    let promised: Vec<_> = fs.power_cuts().filter(|cut| cut.marks == [1, 2]).map(|cut| found(&cut)).collect();
    assert_eq!(promised, [(false, true)]);
}

#[test]
fn many_names_keep_their_prefixes_and_each_single_loss() {
    let fs = SimFs::new();
    for n in 0..12 {
        make(&fs, format!("/{n:02}").as_ref(), b"");
    }
    fs.mark(1);
    let found: BTreeSet<usize> = fs
        .power_cuts()
        .filter(|cut| cut.marks == [1])
        .map(|cut| (0..12).filter(|n| cut.fs.read(format!("/{n:02}")).is_ok()).map(|n| 1 << n).sum())
        .collect();
    let whole = (1 << 12) - 1;
    let expected: BTreeSet<usize> = (0..=12).map(|n| (1 << n) - 1).chain((0..12).map(|n| whole - (1 << n))).collect();
    assert_eq!(found, expected);
}

#[test]
fn two_long_tails_are_tried_in_turn() {
    let (fs, a) = settled("/a", b"");
    let b = make(&fs, "/b".as_ref(), b"");
    fs.settle();
    a.append(&[b'a'; 1_000]).unwrap();
    b.append(&[b'b'; 1_000]).unwrap();
    let found: BTreeSet<_> =
        fs.power_cuts().map(|cut| (cut.fs.read("/a").unwrap().len(), cut.fs.read("/b").unwrap().len())).collect();
    let lens = || 0..=1_000;
    let expected = lens().flat_map(|n| [(n, 0), (n, 1_000), (0, n), (1_000, n)]).collect();
    assert_eq!(found, expected);
    // After the sync of b fewer combinations are open, and all of them are old.
    b.sync_data().unwrap();
    fs.mark(1);
    assert_eq!(fs.power_cuts().filter(|cut| cut.marks == [1]).count(), 1 + 1_000 + 1 + 1);
}

#[test]
fn of_many_tails_one_varies_while_the_others_are_whole_or_lost() {
    let fs = SimFs::new();
    let names: Vec<_> = (0..6).map(|n| format!("/{n}")).collect();
    let files: Vec<_> = names.iter().map(|name| make(&fs, name.as_ref(), b"")).collect();
    fs.settle();
    files.iter().for_each(|file| assert_eq!(file.append(&[b'x'; 40]).unwrap(), 40));
    fs.mark(1);
    let lens = |cut: Cut| names.iter().map(|name| cut.fs.read(name).unwrap().len()).collect::<Vec<_>>();
    let found: BTreeSet<_> = fs.power_cuts().filter(|cut| cut.marks == [1]).map(lens).collect();
    let one = |turn: usize, len: usize, others: usize| {
        (0..6).map(|file| if file == turn { len } else { others }).collect::<Vec<_>>()
    };
    let turns = (0..6).flat_map(|turn| (0..=40).map(move |len| (turn, len)));
    let expected = turns.flat_map(|(turn, len)| [one(turn, len, 0), one(turn, len, 40)]).collect();
    assert_eq!(found, expected);
}

#[test]
fn a_truncation_may_not_have_happened() {
    let (fs, file) = settled("/a", b"0123456789");
    file.truncate(4).unwrap();
    file.append(b"ab").unwrap();
    let found: Vec<_> = contents(fs.power_cuts(), "/a").into_iter().flatten().collect();
    let expected: [&[u8]; 5] = [b"0123456789", b"0123", b"0123a", b"0123ab", b"0123\0\0"];
    assert_eq!(found, expected);
    file.sync_data().unwrap();
    fs.mark(1);
    assert_eq!(contents(fs.power_cuts().filter(|cut| cut.marks == [1]), "/a"), [Some(b"0123ab".to_vec())]);
}

#[test]
fn bytes_of_a_failed_sync_may_be_lost_though_a_later_sync_succeeds() {
    let (fs, file) = settled("/a", b"12");
    fs.fault(Fault::SyncFails { times: 1 });
    file.append(b"34").unwrap();
    assert!(file.sync_data().is_err());
    file.append(b"56").unwrap();
    file.sync_data().unwrap();
    fs.mark(1);
    let promised = |mark| contents(fs.power_cuts().filter(|cut| cut.marks.ends_with(&[mark])), "/a");
    assert_eq!(promised(1), [Some(b"123456".to_vec()), Some(b"12\0\x0056".to_vec())]);
    assert_eq!(fs.read("/a").unwrap(), b"123456", "the page cache shows nothing of it");
    // Only bytes written anew are safe again.
    file.truncate(2).unwrap();
    file.append(b"3456").unwrap();
    file.sync_data().unwrap();
    fs.mark(2);
    assert_eq!(promised(2), [Some(b"123456".to_vec())]);
}

#[test]
fn bytes_written_anew_in_place_are_safe_with_the_next_sync() {
    for fault in [Fault::SyncFails { times: 1 }, Fault::SyncLoses { times: 1 }] {
        let (fs, file) = settled("/a", b"12");
        file.append(b"34").unwrap();
        let dropped = matches!(fault, Fault::SyncLoses { .. });
        fs.fault(fault);
        assert!(file.sync_data().is_err());
        assert_eq!(fs.read("/a").unwrap(), if dropped { *b"12\0\0" } else { *b"1234" });
        file.rewrite_at(b"34", 2).unwrap();
        assert_eq!(fs.read("/a").unwrap(), b"1234");
        let lost = |fs: &SimFs| contents(fs.power_cuts(), "/a").contains(&Some(b"12\0\0".to_vec()));
        assert!(lost(&fs), "not before the sync");
        file.sync_data().unwrap();
        fs.mark(1);
        assert_eq!(contents(fs.power_cuts().filter(|cut| cut.marks == [1]), "/a"), [Some(b"1234".to_vec())]);
    }
}

#[test]
fn a_rewrite_whose_sync_fails_too_proves_nothing() {
    let (fs, file) = settled("/a", b"12");
    fs.fault(Fault::SyncFails { times: 2 });
    file.append(b"34").unwrap();
    assert!(file.sync_data().is_err());
    file.rewrite_at(b"1234", 0).unwrap();
    assert!(file.sync_data().is_err());
    file.sync_data().unwrap();
    fs.mark(1);
    let found = contents(fs.power_cuts().filter(|cut| cut.marks == [1]), "/a");
    assert_eq!(found, [Some(b"1234".to_vec()), Some(b"12\0\0".to_vec())], "what was durable before is not lost");
}

#[test]
fn a_torn_rewrite_ends_at_a_sector() {
    let (fs, file) = settled("/a", &[b'-'; 1_100]);
    file.rewrite_at(&[b'+'; 1_000], 100).unwrap();
    let found: BTreeSet<usize> = contents(fs.power_cuts(), "/a")
        .into_iter()
        .map(|bytes| bytes.unwrap().iter().filter(|byte| **byte == b'+').count())
        .collect();
    assert_eq!(found, BTreeSet::from([0, 412, 924, 1_000]));
}

#[test]
fn faults_happen_and_are_cleared() {
    let (fs, file) = settled("/a", b"");
    fs.fault(Fault::Enospc { after_bytes: 3 });
    assert_eq!(file.append(b"12345").unwrap(), 3);
    assert_eq!(kind(file.append(b"45")), StorageFull);
    fs.clear_faults();
    fs.fault(Fault::ShortWrite { bytes: 1 });
    assert_eq!((file.append(b"45").unwrap(), file.append(b"5").unwrap()), (1, 1));
    assert_eq!(fs.read("/a").unwrap(), b"12345");

    fs.fault(Fault::ReadOnlyDir("/".into()));
    assert_eq!(kind(fs.open("/b".as_ref(), Open::CreateNew)), PermissionDenied);
    assert_eq!(kind(fs.mkdir("/d".as_ref())), PermissionDenied);
    assert_eq!(kind(fs.unlink("/a".as_ref())), PermissionDenied);
    assert_eq!(kind(fs.rename("/a".as_ref(), "/b".as_ref())), PermissionDenied);
    fs.fault(Fault::NoLocks);
    assert_eq!(kind(file.try_lock()), ErrorKind::Unsupported);
    fs.clear_faults();
    fs.unlink("/a".as_ref()).unwrap();
    assert_eq!(file.try_lock().unwrap(), Held::Ours);
}

#[test]
fn a_killed_process_loses_its_locks_and_nothing_else() {
    let (fs, file) = settled("/a", b"1");
    file.append(b"2").unwrap();
    assert_eq!(file.try_lock().unwrap(), Held::Ours);
    let after = fs.kill();
    assert_eq!(after.read("/a").unwrap(), b"12");
    assert_eq!(after.open("/a".as_ref(), Open::Append).unwrap().try_lock().unwrap(), Held::Ours);
    assert_eq!(contents(after.power_cuts(), "/a").len(), 3, "the power may still fail");
    file.append(b"3").unwrap();
    assert_eq!(after.read("/a").unwrap(), b"12", "the dead write no more");
}

#[test]
fn a_seed_chooses_one_of_the_cuts() {
    let fs = SimFs::new();
    let file = make(&fs, "/a".as_ref(), b"one");
    file.sync_data().unwrap();
    make(&fs, "/b".as_ref(), b"two");
    fs.mark(1);
    let state = |fs: &SimFs| (fs.read("/a").ok(), fs.read("/b").ok());
    let all: BTreeSet<_> = fs.power_cuts().filter(|cut| cut.marks == [1]).map(|cut| state(&cut.fs)).collect();
    let some: BTreeSet<_> = (0..1_000).map(|seed| state(&fs.crash(seed))).collect();
    assert_eq!(some, all);
    assert_eq!(state(&fs.crash(5)), state(&fs.crash(5)));
}

#[test]
fn a_rebooted_machine_works_and_can_lose_power_again() {
    let (fs, file) = settled("/a", b"1");
    file.append(b"2").unwrap();
    for cut in fs.power_cuts() {
        let before = cut.fs.read("/a").unwrap();
        let file = cut.fs.open("/a".as_ref(), Open::Append).unwrap();
        file.append(b"x").unwrap();
        for again in cut.fs.power_cuts() {
            assert!(again.fs.read("/a").unwrap().starts_with(&before), "{cut}, then {again}");
        }
    }
    assert_eq!(fs.read("/a").unwrap(), b"12", "a cut is another machine");
}

#[test]
fn a_cut_says_what_was_lost() {
    let (fs, file) = settled("/가", b"12");
    file.append(b"34").unwrap();
    make(&fs, "/b".as_ref(), b"");
    fs.mark(9);
    let cut = fs.power_cuts().find(|cut| cut.marks == [9]).unwrap();
    assert_eq!(
        cut.to_string(),
        "power cut after operation 3, marks [9]; lost: name b of inode 2; 가 (inode 1): the 2 synced bytes"
    );
}

#[derive(Debug, Clone)]
enum Step {
    Append(usize, Vec<u8>),
    Truncate(usize, usize),
    Sync(usize),
    Rename(usize),
    SyncDir,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let file = 0..2_usize;
    let bytes = proptest::collection::vec(b'a'..=b'z', 1..24);
    let step = prop_oneof![
        4 => (file.clone(), bytes).prop_map(|(file, bytes)| Step::Append(file, bytes)),
        1 => (file.clone(), 0..40_usize).prop_map(|(file, len)| Step::Truncate(file, len)),
        2 => file.clone().prop_map(Step::Sync),
        1 => file.prop_map(Step::Rename),
        1 => Just(Step::SyncDir),
    ];
    proptest::collection::vec(step, 0..12)
}

/// The state of a file at each position, as a program saw it, since its last sync.
#[derive(Debug, Clone, Default)]
struct Seen {
    synced: Vec<u8>,
    /// Contents since then, with the lowest length since the sync.
    since: Vec<(usize, Vec<u8>)>,
}

impl Seen {
    fn allows(&self, found: &[u8]) -> bool {
        found == self.synced
            || self.since.iter().any(|(low, seen)| {
                let sound = found.iter().zip(seen).take_while(|(a, b)| a == b).count();
                let kept = sound >= found.len().min(*low);
                kept && found.len() <= seen.len() && found[sound..].iter().all(|byte| *byte == 0)
            })
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Whatever was done: what a cut leaves of a file is its synced content, or a prefix (perhaps with a NUL tail) of
    /// something that it held since, intact up to where the sync had proved it.
    #[test]
    fn a_cut_leaves_a_prefix_or_nul(steps in steps()) {
        let fs = SimFs::new();
        let mut names = ["/가", "/나"].map(String::from);
        let files = names.clone().map(|name| fs.open(name.as_ref(), Open::CreateNew).unwrap());
        fs.settle();
        let inodes = files.each_ref().map(|file| file.stat().unwrap().inode);
        let mut seen = [Seen::default(), Seen::default()];
        let mut history = vec![seen.clone()];
        for (n, step) in steps.iter().enumerate() {
            match step {
                Step::Append(at, bytes) => {
                    files[*at].append(bytes).unwrap();
                }
                Step::Truncate(at, len) => {
                    let len = u64::try_from(*len).unwrap().min(files[*at].stat().unwrap().len);
                    files[*at].truncate(len).unwrap();
                }
                Step::Sync(at) => files[*at].sync_data().unwrap(),
                Step::Rename(at) => {
                    let to = format!("/{at}-{n}");
                    fs.rename_new(names[*at].as_ref(), to.as_ref()).unwrap();
                    names[*at] = to;
                }
                Step::SyncDir => fs.sync_dir("/".as_ref()).unwrap(),
            }
            for (at, file) in files.iter().enumerate() {
                let now = content(&fs, names[at].as_ref());
                let synced = matches!(step, Step::Sync(synced) if *synced == at);
                let touched = matches!(step, Step::Append(to, _) | Step::Truncate(to, _) if *to == at);
                if synced {
                    seen[at] = Seen { synced: now, since: Vec::new() };
                } else if touched {
                    let low = seen[at].since.last().map_or(seen[at].synced.len(), |(low, _)| *low);
                    seen[at].since.push((low.min(now.len()), now));
                }
                prop_assert_eq!(file.stat().unwrap().inode, inodes[at]);
            }
            fs.mark(u64::try_from(n).unwrap());
            history.push(seen.clone());
        }
        for cut in fs.power_cuts().step_by(5) {
            // A cut lies between the state at its last mark and the one after the operation that follows.
            let promised = &history[cut.marks.len()];
            let next = &history[(cut.marks.len() + 1).min(history.len() - 1)];
            let mut names = [0; 2];
            for path in cut.fs.list("/".as_ref()).unwrap() {
                let inode = cut.fs.stat(&path).unwrap().inode;
                let at = inodes.iter().position(|known| *known == inode).unwrap();
                names[at] += 1;
                let found = cut.fs.read(&path).unwrap();
                prop_assert!(promised[at].allows(&found) || next[at].allows(&found), "{}: {:?}", cut, found);
            }
            // Of two renames in a row the second alone may survive: then the file has its first and its last name.
            prop_assert!(names.iter().all(|names| *names > 0), "a rename loses no name: {}", cut);
        }
    }
}
