//! Reading from the end: what it costs, and the shapes that have broken other readers.

use gjc_entry::{Leaf, NeedsIndex};
use gjc_log::backwards::{Found, context_path, context_path_within};
use gjc_log::fs::{FsFile, Held, Stat};
use gjc_log::scan::Scanned;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

/// A file in memory that counts the bytes that are read of it.
struct Counted {
    bytes: Vec<u8>,
    read: AtomicU64,
}

impl FsFile for Counted {
    fn append(&self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let rest = self.bytes.get(usize::try_from(offset).unwrap()..).unwrap_or_default();
        let got = rest.len().min(buf.len());
        buf[..got].copy_from_slice(&rest[..got]);
        self.read.fetch_add(got as u64, Ordering::Relaxed);
        Ok(got)
    }

    fn truncate(&self, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn rewrite_at(&self, _: &[u8], _: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn stat(&self) -> io::Result<Stat> {
        let len = self.bytes.len() as u64;
        Ok(Stat { dev: 1, inode: 1, len, mtime_ns: 0, is_dir: false, is_file: true })
    }

    fn try_lock(&self) -> io::Result<Held> {
        Ok(Held::Ours)
    }
}

const HEADER: &str = "{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"cwd\":\"/작업\"}\n";

fn entry(id: u32, parent: Option<u32>, more: &str) -> String {
    let parent = parent.map_or("null".into(), |parent| format!("\"{parent:08x}\""));
    format!("{{\"type\":\"message\",\"id\":\"{id:08x}\",\"parentId\":{parent}{more}}}\n")
}

/// A chain of entries, each with so much more in it.
fn chain(more: &[String]) -> String {
    (0u32..).zip(more).fold(HEADER.into(), |text, (id, more)| text + &entry(id, id.checked_sub(1), more))
}

/// What the end gives (checked beside the index), and how many bytes were read for it.
fn look(text: impl Into<Vec<u8>>) -> (Option<Found>, u64) {
    let file = Counted { bytes: text.into(), read: AtomicU64::new(0) };
    let len = file.bytes.len() as u64;
    let found = context_path(&file, len).unwrap().ok();
    let read = file.read.load(Ordering::Relaxed);
    if let Some(found) = &found {
        let mut scanned = Scanned::default();
        scanned.scan(&file, len).unwrap();
        assert!(found.agrees(&scanned.skeleton));
        assert_eq!(found.covered, scanned.covered);
        if found.from_root {
            assert_eq!(found.nodes.0.len(), scanned.skeleton.path(Leaf::Current).0.len());
        }
    }
    (found, read)
}

#[test]
fn a_compaction_ends_the_walk_at_what_it_keeps() {
    let mut text = chain(&vec![format!(",\"x\":\"{}\"", "말".repeat(3000)); 200]);
    text += "{\"type\":\"compaction\",\"id\":\"0000ffff\",\"parentId\":\"000000c7\",\"summary\":\"s\",\"firstKeptEntryId\":\"000000c0\",\"tokensBefore\":1}\n";
    text += &entry(0xfffe, Some(0xffff), "");
    let (found, read) = look(text);
    let found = found.unwrap();
    assert_eq!((found.nodes.0.len(), found.from_root, found.taint), (10, false, None));
    assert!(read < 300_000, "{read} bytes were read");
}

#[test]
fn a_line_of_12_megabytes_is_read_once() {
    let long = format!(",\"x\":\"{}\"", "한글 \\\" ".repeat(1_200_000));
    assert!(long.len() > 12_000_000);
    let len = long.len() as u64;
    let (found, read) = look(chain(&[String::new(), long, String::new()]));
    assert!(found.unwrap().from_root);
    // Its steps grow with the line: the file, and the head.
    assert!(read < len + len / 8, "{read} bytes were read");
}

#[test]
fn what_is_too_far_away_is_left_to_the_index() {
    let text = chain(&[String::new(), format!(",\"x\":\"{}\"", " ".repeat(4 << 20)), String::new()]);
    let file = Counted { bytes: text.into_bytes(), read: AtomicU64::new(0) };
    let len = file.bytes.len() as u64;
    assert_eq!(context_path_within(&file, len, 1 << 20).unwrap().err(), Some(NeedsIndex));
    let read = file.read.load(Ordering::Relaxed);
    assert!(read < 3 << 20, "{read} bytes were read");
    assert!(context_path_within(&file, len, 5 << 20).unwrap().is_ok());
}

#[test]
fn depth_is_no_recursion() {
    let deep = format!(",\"x\":{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let found = look(chain(&[deep.clone(), String::new()])).0.unwrap();
    assert_eq!(found.nodes.0.len(), 2);
    // Before the keys, and in doubt: a key of an entry stands inside.
    let first = format!(
        "{{\"x\":{}{{\"parentId\":1}}{},\"type\":\"message\",\"id\":\"0000000a\",\"parentId\":null}}\n",
        "[".repeat(100_000),
        "]".repeat(100_000)
    );
    assert_eq!(look(format!("{HEADER}{first}")).0.unwrap().nodes.0.len(), 1);
}

#[test]
fn line_ends_of_windows_and_unfinished_ends_are_passed() {
    let text = chain(&[String::new(), String::new()]).replace('\n', "\r\n");
    assert_eq!(look(text.clone()).0.unwrap().nodes.0.len(), 2);
    assert_eq!(look(text.clone() + "{\"type\":\"message\"").0.unwrap().nodes.0.len(), 2);
    assert_eq!(look(text + " \n\r\n\n").0.unwrap().nodes.0.len(), 2);
    let empty = look(HEADER).0.unwrap();
    assert!(empty.nodes.0.is_empty() && empty.from_root && empty.taint.is_some());
}

#[test]
fn whatever_is_not_plain_sailing_is_left_to_the_index() {
    let fine = chain(&vec![String::new(); 3]);
    for (why, text) in [
        ("a byte order mark", format!("\u{feff}{fine}")),
        ("no header", fine.replacen("session", "sessoin", 1)),
        ("half a header", HEADER[..20].into()),
        ("an older version", fine.replacen("\"version\":3", "\"version\":1", 1)),
        ("a newer version", fine.replacen("\"version\":3", "\"version\":9", 1)),
        ("a hole", fine.clone() + "\0\0\0\n"),
        ("a cut record before a whole one", fine.clone() + "{\"type\":\"mes" + &entry(9, Some(2), "")),
        ("a repeated id", fine.clone() + &entry(2, Some(1), ",\"x\":1")),
        ("an orphan", fine.clone() + &entry(9, Some(77), "")),
        ("a parent behind its child", fine.clone() + &entry(9, Some(10), "") + &entry(10, Some(2), "")),
        ("its own parent", fine.clone() + &entry(9, Some(9), "")),
    ] {
        assert!(look(text).0.is_none(), "{why}");
    }
    assert!(look(fine).0.is_some());
}
