//! An index file is advice: whatever is in it, and whatever became of the session, the answer is that of a scan.

use gjc_entry::Ordinal;
use gjc_log::fs::{Fs, FsFile, Open, OsFile, OsFs};
use gjc_log::index::{Scars, load, path_of, proves, store};
use gjc_log::scan::Scanned;
use proptest::prelude::*;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use tempfile::TempDir;

/// A session of a megabyte with every kind of damage, and its index.
struct Kept {
    dir: TempDir,
    file: PathBuf,
    index: PathBuf,
    bytes: Vec<u8>,
}

fn record(id: &str, parent: &str, more: &str) -> String {
    format!(
        "{{\"type\":\"message\",\"id\":\"{id}\",\"parentId\":{parent}{more},\"message\":{{\"role\":\"user\",\"content\":\"말\"}}}}"
    )
}

fn session() -> Vec<u8> {
    let mut text = String::from("{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"cwd\":\"/작업\"}\n");
    let filler = "한글 \\\" ".repeat(20);
    let mut last = "null".to_owned();
    for number in 0..4000u32 {
        let id = if number % 100 == 7 { format!("세션-{number}") } else { format!("{number:08x}") };
        let label = if number > 3000 { ",\"gjcLabel\":{\"l\":\"INTERNAL\",\"t\":false}" } else { "" };
        let parent = if number % 501 == 500 { "\"dead\"".into() } else { last.clone() };
        let line = record(&id, &parent, &format!("{label},\"x\":\"{filler}\""));
        if number % 777 == 5 {
            text += &line[..60];
        }
        text += &line;
        text += "\n";
        match number % 900 {
            3 => text += &(line + "\n"),
            8 => text += "{\"type\":\"message\",\0\0}\n",
            9 => text += "[1]\r\n\n",
            _ => {}
        }
        last = format!("\"{id}\"");
    }
    text.into_bytes()
}

impl Kept {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("세션.jsonl");
        let kept = Self { index: path_of(dir.path(), &file), bytes: session(), dir, file };
        std::fs::write(&kept.file, &kept.bytes).unwrap();
        let scanned = kept.scan(Scanned::default());
        assert!(scanned.damage.len() > 20 && kept.bytes.len() > 1_000_000);
        let file = kept.open();
        store(&OsFs, &kept.index, &file, &file.stat().unwrap(), &scanned).unwrap();
        assert!(kept.load().is_some());
        kept
    }

    fn open(&self) -> OsFile {
        OsFs.open(&self.file, Open::Read).unwrap()
    }

    fn scan(&self, mut scanned: Scanned) -> Scanned {
        let file = self.open();
        scanned.scan(&file, file.stat().unwrap().len).unwrap();
        scanned
    }

    fn load(&self) -> Option<Scanned> {
        let file = self.open();
        load(&OsFs, &self.index, &file, &file.stat().unwrap())
    }

    /// With the index, whatever became of it, the file is what it is without. Whether the index was of use.
    #[track_caller]
    fn check(&self) -> bool {
        let (known, loaded) = (self.scan(Scanned::default()), self.load());
        let was_of_use = loaded.is_some();
        let found = self.scan(loaded.unwrap_or_default());
        assert!(
            found.skeleton.nodes() == known.skeleton.nodes() && found.skeleton.foreign() == known.skeleton.foreign()
        );
        assert_eq!(found.damage, known.damage);
        assert_eq!((found.covered, found.skeleton.label()), (known.covered, known.skeleton.label()));
        assert_eq!(found.header.map(|header| header.cwd), known.header.map(|header| header.cwd));
        let last = known.skeleton.leaf().map(|leaf| known.skeleton.id(leaf)).unwrap();
        assert_eq!(found.skeleton.find(&last), known.skeleton.find(&last));
        was_of_use
    }

    /// Changes bytes in place, and the time with them.
    fn rewrite(&self, at: usize, bytes: &[u8]) {
        let mut file = std::fs::OpenOptions::new().write(true).open(&self.file).unwrap();
        file.seek(SeekFrom::Start(at as u64)).unwrap();
        file.write_all(bytes).unwrap();
        file.set_modified(SystemTime::now() + Duration::from_secs(1)).unwrap();
    }

    fn append(&self, bytes: &[u8]) {
        std::fs::OpenOptions::new().append(true).open(&self.file).unwrap().write_all(bytes).unwrap();
    }
}

fn write(path: &Path, bytes: &[u8]) {
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn a_file_that_grew_is_scanned_from_where_the_index_ends() {
    let kept = Kept::new();
    assert!(kept.check());
    // Damage and repeats across the border, an unfinished line.
    let known = record("00000004", "null", "");
    for more in
        [record("0000ffff", "\"00000f9f\"", "") + "\n", known + "\n", "{\"type\":\"mess".into(), "age\"}\n{}\n".into()]
    {
        kept.append(more.as_bytes());
        assert!(kept.check(), "{more}");
    }
}

#[test]
fn another_file_has_no_use_of_it() {
    let kept = Kept::new();
    // The same length, other bytes: in the middle, in the last line, in the header.
    let middle = kept.bytes.len() / 2;
    kept.rewrite(middle, b"\n\n\n");
    assert!(!kept.check());
    let kept = Kept::new();
    kept.rewrite(kept.bytes.len() - 5, b"x");
    kept.append(b"{}\n");
    assert!(!kept.check());
    let kept = Kept::new();
    kept.rewrite(2, b"T");
    kept.append(b"{}\n");
    assert!(kept.load().is_none());
    // The same bytes in another file of that name.
    let kept = Kept::new();
    let other = kept.dir.path().join("other");
    write(&other, &kept.bytes);
    std::fs::rename(&other, &kept.file).unwrap();
    assert!(!kept.check());
    // Cut short.
    let kept = Kept::new();
    let cut = std::fs::OpenOptions::new().write(true).open(&kept.file).unwrap();
    cut.set_len(kept.bytes.len() as u64 - 9).unwrap();
    assert!(!kept.check());
}

#[test]
fn an_index_that_is_not_whole_is_none() {
    let kept = Kept::new();
    let index = std::fs::read(&kept.index).unwrap();
    for cut in [0, 1, 95, 96, 97, index.len() / 2, index.len() - 1] {
        write(&kept.index, &index[..cut]);
        assert!(!kept.check(), "{cut}");
    }
    write(&kept.index, &[&index[..], b"\0"].concat());
    assert!(!kept.check());
    // Of a newer version, with a right checksum.
    let mut newer = index.clone();
    newer[8] += 1;
    write(&kept.index, &sealed(newer));
    assert!(!kept.check());
    std::fs::remove_file(&kept.index).unwrap();
    std::fs::create_dir(&kept.index).unwrap();
    assert!(!kept.check());
}

/// With the checksum that its bytes ask for.
fn sealed(mut index: Vec<u8>) -> Vec<u8> {
    let end = index.len() - 8;
    let sum = twox_hash::XxHash3_64::oneshot(&index[..end]);
    index[end..].copy_from_slice(&sum.to_le_bytes());
    index
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1, max_shrink_iters: 0, ..ProptestConfig::default() })]

    #[test]
    fn no_bit_of_it_can_change(places in prop::collection::vec((any::<prop::sample::Index>(), 0u8..8), 300)) {
        let kept = Kept::new();
        let index = std::fs::read(&kept.index).unwrap();
        // Every bit of the head, and some of the rest.
        let head = (0..96 * 8).map(|bit| (bit / 8, bit % 8));
        for (byte, bit) in head.chain(places.into_iter().map(|(at, bit)| (at.index(index.len()), usize::from(bit)))) {
            let mut flipped = index.clone();
            flipped[byte] ^= 1 << bit;
            write(&kept.index, &flipped);
            prop_assert!(kept.load().is_none(), "bit {} of byte {}", bit, byte);
        }
        let noise: Vec<u8> = index.iter().map(|byte| byte.wrapping_mul(151) ^ 77).collect();
        write(&kept.index, &noise);
        prop_assert!(kept.load().is_none());
    }

    /// Even one whose checksum lies is found out where it is used.
    #[test]
    fn a_record_that_lies_proves_nothing(places in prop::collection::vec((0..4000usize, 0..23usize, 0u8..8), 200)) {
        let kept = Kept::new();
        let index = std::fs::read(&kept.index).unwrap();
        let honest = kept.load().unwrap();
        for (node, byte, bit) in places {
            let mut lie = index.clone();
            lie[96 + node * 24 + byte] ^= 1 << bit;
            write(&kept.index, &sealed(lie));
            let Some(scanned) = kept.load() else { continue };
            let place = Ordinal(u32::try_from(node).unwrap());
            let (at, told) = (scanned.skeleton.node(place).unwrap().at(), honest.skeleton.node(place).unwrap());
            let from = usize::try_from(at.off).unwrap();
            let Some(around) = kept.bytes.get(from - 1..from + at.len as usize + 1) else { continue };
            // Levels and trust of lines without a label come from the lines before, which are proved when they are used.
            if scanned.skeleton.node(place).unwrap().label() == told.label() && scanned.skeleton.node(place) != Some(told) {
                prop_assert!(!proves(around, &scanned.skeleton, place, &Scars::of(&scanned.damage)), "byte {} of node {}", byte, node);
            }
        }
    }
}

#[test]
fn a_place_beyond_all_numbers_is_no_place() {
    let kept = Kept::new();
    let mut index = std::fs::read(&kept.index).unwrap();
    index[96..108].fill(0xFF);
    write(&kept.index, &sealed(index));
    assert!(!kept.check());
}

#[test]
fn every_record_of_an_honest_index_is_proved() {
    let kept = Kept::new();
    let scanned = kept.load().unwrap();
    for (place, node) in scanned.skeleton.iter() {
        let from = usize::try_from(node.at().off).unwrap();
        let around = &kept.bytes[from - 1..from + node.at().len as usize + 1];
        assert!(
            proves(around, &scanned.skeleton, place, &Scars::of(&scanned.damage)),
            "{}",
            String::from_utf8_lossy(around)
        );
    }
}

#[test]
fn small_files_have_no_index_and_unwritable_folders_are_no_fault_of_the_session() {
    let dir = tempfile::tempdir().unwrap();
    let (file, index) = (dir.path().join("s.jsonl"), path_of(dir.path(), Path::new("/작업")));
    write(&file, b"{\"type\":\"session\",\"version\":3,\"id\":\"s\"}\n");
    let open = OsFs.open(&file, Open::Read).unwrap();
    store(&OsFs, &index, &open, &open.stat().unwrap(), &Scanned::default()).unwrap();
    assert!(!index.exists());
    let kept = Kept::new();
    let scanned = kept.scan(Scanned::default());
    let (file, nowhere) = (kept.open(), kept.file.join("no/folder.gjx"));
    assert!(store(&OsFs, &nowhere, &file, &file.stat().unwrap(), &scanned).is_err());
    // Nothing is left behind beside a good one.
    let names = std::fs::read_dir(kept.index.parent().unwrap()).unwrap().count();
    assert_eq!(names, 1);
}

/// What a look, with or without the index file, makes of a session.
fn seen(reader: &gjc_log::Reader<impl Fs>) -> Vec<String> {
    use gjc_entry::Source;
    let tree = reader.skeleton().unwrap();
    tree.iter().map(|(place, node)| format!("{} {node:?} {:?}", tree.id(place), reader.body(node.at()))).collect()
}

both!(a_writer_leaves_an_index_file_and_takes_it_up_again, bench => {
    use gjc_entry::Source;
    use gjc_log::{LogEnv, Reader, Writer};
    use testkit::log::{add, sync, texts};
    use testkit::session::{answer, user};
    let root = bench.root.clone();
    let open = || Writer::open(LogEnv { agent_dir: Some(root.clone()), ..bench.env() }, &bench.path()).unwrap().0;
    let mut writer = bench.create();
    add(&mut writer, answer("x"));
    sync(&mut writer).unwrap();
    drop(writer);
    let mut writer = open().value;
    for number in 0..300 {
        add(&mut writer, user(&format!("{number} {}", "한글 ".repeat(600))));
    }
    sync(&mut writer).unwrap();
    drop(writer);
    let index = path_of(&root, &bench.path());
    assert!(bench.fs.stat(&index).is_ok(), "a large session has one");
    let plain = Reader::open(&*bench.fs, &bench.path()).unwrap();
    let quick = Reader::open_with(&*bench.fs, &bench.path(), &root).unwrap();
    assert_eq!(seen(&plain.value), seen(&quick.value));
    // It goes on from there, and what it says stays true.
    let mut writer = open().value;
    assert_eq!(texts(&writer).len(), 301);
    add(&mut writer, answer("끝"));
    let ids = writer.skeleton().unwrap().len();
    drop(writer);
    let quick = Reader::open_with(&*bench.fs, &bench.path(), &root).unwrap();
    assert_eq!((quick.value.skeleton().unwrap().len(), quick.damage.len()), (ids, 0));
    assert_eq!(texts(&quick.value).last().unwrap(), "끝");
    // Noise in its place changes nothing.
    bench.fs.unlink(&index).unwrap();
    bench.fs.open(&index, Open::CreateNew).unwrap().append(&[7; 5000]).unwrap();
    let again = Reader::open_with(&*bench.fs, &bench.path(), &root).unwrap();
    assert_eq!(seen(&again.value), seen(&quick.value));
    assert_eq!(texts(&open().value).len(), 302);
});

#[test]
fn an_index_file_about_another_content_is_found_out_when_an_entry_is_used() {
    use gjc_log::Reader;
    // The file grew, and something in its middle was changed: only the line itself can tell.
    let kept = Kept::new();
    let mut changed = kept.bytes.clone();
    let at = memchr::memmem::find(&changed, b"\"id\":\"00000064\"").unwrap() + 7;
    changed[at..at + 6].copy_from_slice(b"ffffff");
    let last = record("fffffffe", "\"ffffff64\"", "");
    changed.extend_from_slice(format!("{last}\n").as_bytes());
    let mut file = std::fs::OpenOptions::new().write(true).open(&kept.file).unwrap();
    file.seek(SeekFrom::Start(0)).unwrap();
    file.write_all(&changed).unwrap();
    let quick = Reader::open_with(&OsFs, &kept.file, kept.dir.path()).unwrap().value;
    let plain = Reader::open(&OsFs, &kept.file).unwrap().value;
    // The first look at the changed place finds it out; from then on both say the same.
    seen(&quick);
    assert_eq!(seen(&quick), seen(&plain));
    let texts = |reader: &Reader<OsFs>| testkit::log::texts(reader);
    assert_eq!(texts(&quick), texts(&plain));
}

both!(what_others_changed_is_in_the_index_that_a_writer_leaves_or_there_is_none, bench => {
    use gjc_entry::{Header, SessionId};
    use gjc_log::{LogEnv, Reader, Writer};
    use testkit::log::{add, heal, sync};
    use testkit::session::{answer, user};
    let root = bench.root.clone();
    let env = LogEnv { agent_dir: Some(root.clone()), ..bench.env() };
    let append = |text: &str| {
        bench.fs.open(&bench.path(), Open::Append).unwrap().append(text.as_bytes()).unwrap();
    };
    let same = |path: &Path| {
        let plain = Reader::open(&*bench.fs, path).unwrap();
        let quick = Reader::open_with(&*bench.fs, path, &root).unwrap();
        assert_eq!((seen(&plain.value), &plain.damage), (seen(&quick.value), &quick.damage));
        assert_eq!(plain.value.header().title, quick.value.header().title);
        plain
    };
    let mut writer = Writer::create(env, bench.path(), bench.create().header().clone());
    add(&mut writer, answer("x"));
    for number in 0..300 {
        add(&mut writer, user(&format!("{number} {}", "한글 ".repeat(600))));
    }
    sync(&mut writer).unwrap();
    append("{\"type\":\"header_patch\",\"id\":\"0000000b\",\"parentId\":null,\"patch\":{\"title\":\"제목\"}}\n");
    add(&mut writer, user("뒤"));
    sync(&mut writer).unwrap();
    assert_eq!(writer.header().title.as_deref(), Some("제목"));
    // A parent that is nowhere, and a second line of the same id.
    append(&(record("0000000c", "\"dddddddd\"", "") + "\n"));
    append(&(record("0000000c", "null", "") + "\n"));
    add(&mut writer, user("끝"));
    sync(&mut writer).unwrap();
    let fork = bench.path().with_file_name("fork.jsonl");
    let header = Header { id: SessionId::new("fork").unwrap(), title: None, ..writer.header().clone() };
    bench.forget();
    writer.save_as(&fork, header).unwrap();
    heal(&mut writer);
    drop(writer);
    assert!(same(&fork).damage.len() > 1);
    // And without the second file.
    let writer = Writer::open(LogEnv { agent_dir: Some(root.clone()), ..bench.env() }, &bench.path());
    let mut writer = writer.unwrap().0.value;
    append("{\"type\":\"header_patch\",\"id\":\"0000000d\",\"parentId\":null,\"patch\":{\"title\":\"둘째\"}}\n");
    add(&mut writer, user("뒤"));
    sync(&mut writer).unwrap();
    drop(writer);
    assert_eq!(same(&bench.path()).value.header().title.as_deref(), Some("둘째"));
});
