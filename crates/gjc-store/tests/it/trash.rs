//! The trash: a session is whole in one place after every interruption, and comes back as it was.

use gjc_entry::Timestamp;
use gjc_log::fs::sim::{SimFile, SimFs};
use gjc_log::fs::{Fs, FsFile, Open, OsFs, Stat};
use gjc_store::{TrashError, empty, in_trash, restore, settle_all, sweep_all, trash, trash_dir};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const AGENT: &str = "/agent";
const BUCKET: &str = "/agent/sessions/--작업--";
const ID: &str = "0197a0c2-5c7e-7c11-9b7a-2f6f0a6d9e01";

fn now() -> Timestamp {
    Timestamp::from_millis(1_780_643_934_120)
}

fn session() -> PathBuf {
    Path::new(BUCKET).join(format!("2026-06-05T07-18-54-120Z_{ID}.jsonl"))
}

fn put<F: Fs>(fs: &F, path: &Path, bytes: &[u8]) {
    let file = fs.open(path, Open::CreateNew).unwrap();
    assert_eq!(file.append(bytes).unwrap(), bytes.len());
    file.sync_data().unwrap();
}

/// A machine with one session, its artefacts and its torn end, all durable.
fn machine() -> SimFs {
    let fs = SimFs::new();
    let folder = session().with_extension("");
    for dir in [AGENT, "/agent/sessions", BUCKET] {
        fs.mkdir(dir.as_ref()).unwrap();
    }
    for dir in [folder.clone(), folder.join("아이")] {
        fs.mkdir(&dir).unwrap();
    }
    let header =
        format!(r#"{{"type":"session","version":3,"id":"{ID}","timestamp":"2026-06-05T07:18:54.120Z","cwd":"/작업"}}"#);
    let said = r#"{"type":"message","id":"0000000a","parentId":null,"timestamp":"2026-06-05T07:19:00.000Z","message":{"role":"user","content":"쓰레기통","timestamp":1}}"#;
    put(&fs, &session(), format!("{header}\n{said}\n").as_bytes());
    put(&fs, &folder.join("0.bash.log"), "출력 하나".as_bytes());
    put(&fs, &folder.join("아이/1.jsonl"), b"{}\n");
    put(&fs, &session().with_extension("jsonl.torn"), b"{\"type\":");
    fs.settle();
    fs
}

/// All files below a folder: path from there, bytes.
fn files<F: Fs>(fs: &F, dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![dir.to_path_buf()];
    while let Some(at) = waiting.pop() {
        for path in fs.list(&at).unwrap_or_default() {
            let stat = fs.stat(&path).unwrap();
            if stat.is_dir {
                waiting.push(path);
                continue;
            }
            let mut bytes = vec![0; usize::try_from(stat.len).unwrap()];
            fs.open(&path, Open::Read).unwrap().read_at(&mut bytes, 0).unwrap();
            found.insert(path.strip_prefix(dir).unwrap().into(), bytes);
        }
    }
    found
}

/// Files of the trash without its lock and the records.
fn trashed<F: Fs>(fs: &F) -> BTreeMap<PathBuf, Vec<u8>> {
    let inside = in_trash(fs, AGENT.as_ref()).unwrap();
    let mut all = inside.first().map_or(BTreeMap::new(), |item| files(fs, &item.folder));
    assert!(inside.len() <= 1);
    all.remove(Path::new("record.json"));
    all
}

/// The session is whole in exactly one place, and nothing else lies about.
fn whole_in_one_place<F: Fs>(fs: &F, whole: &BTreeMap<PathBuf, Vec<u8>>, when: &str) {
    let (at_home, in_trash) = (files(fs, BUCKET.as_ref()), trashed(fs));
    match fs.stat(&session()).is_ok() {
        true => assert_eq!((&at_home, in_trash.len()), (whole, 0), "{when}"),
        false => assert_eq!((at_home.len(), &in_trash), (0, whole), "{when}"),
    }
    let expected = if at_home.is_empty() { 2 } else { 1 };
    assert!(
        fs.list(&trash_dir(AGENT.as_ref())).map_or(0, |names| names.len()) <= expected,
        "{when}: something is left"
    );
}

#[test]
fn a_session_goes_with_all_that_belongs_to_it_and_comes_back_as_it_was() {
    let fs = machine();
    let before = files(&fs, BUCKET.as_ref());
    let gone = trash(&fs, AGENT.as_ref(), &session(), now()).unwrap();
    assert_eq!((gone.id.as_str(), &gone.from), (ID, &session()));
    assert_eq!(gone.folder, Path::new("/agent/trash").join(format!("2026-06-05T07-18-54-120Z_{ID}")));
    assert!(fs.stat(&gone.file).is_ok());
    assert!(files(&fs, BUCKET.as_ref()).is_empty());
    assert_eq!(trashed(&fs), before);
    assert!(sweep_all(&fs, "/agent/sessions".as_ref()).unwrap().0.is_empty(), "it is in no list");

    let inside = in_trash(&fs, AGENT.as_ref()).unwrap();
    assert_eq!(inside[0].id(), ID);
    assert_eq!(inside[0].info.as_ref().unwrap().name(), "쓰레기통");
    let record = inside[0].record.as_ref().unwrap();
    assert_eq!((record.at, &record.path), (now(), &session()));

    assert_eq!(restore(&fs, AGENT.as_ref(), &inside[0].folder).unwrap(), session());
    assert_eq!(files(&fs, BUCKET.as_ref()), before);
    assert!(in_trash(&fs, AGENT.as_ref()).unwrap().is_empty());
    assert!(fs.stat(&gone.folder).is_err(), "its folder of the trash is gone");
}

#[test]
fn a_power_cut_at_any_step_leaves_a_whole_session_in_one_place() {
    let start = machine();
    let whole = files(&start, BUCKET.as_ref());
    let mut cuts = 0;
    let mut check = |fs: &SimFs| {
        for cut in fs.power_cuts() {
            // As it is found, before anything is settled: the session file itself is always somewhere, whole.
            let (name, bytes) = whole.iter().find(|(path, _)| path.ends_with(session().file_name().unwrap())).unwrap();
            let places: Vec<_> =
                files(&cut.fs, AGENT.as_ref()).into_iter().filter(|(path, _)| path.ends_with(name)).collect();
            assert!(places.iter().any(|(_, found)| found == bytes), "{cut}: it is gone");
            settle_all(&cut.fs, AGENT.as_ref()).unwrap();
            whole_in_one_place(&cut.fs, &whole, &cut.to_string());
            cuts += 1;
        }
    };
    trash(&start, AGENT.as_ref(), &session(), now()).unwrap();
    check(&start);
    start.settle();
    let folder = in_trash(&start, AGENT.as_ref()).unwrap()[0].folder.clone();
    restore(&start, AGENT.as_ref(), &folder).unwrap();
    check(&start);
    assert!(cuts > 50, "only {cuts} states were looked at");
}

/// A machine whose process dies after so many operations, and on which the trash may be another file system.
struct Dies {
    inner: SimFs,
    left: Arc<AtomicUsize>,
    two_disks: bool,
}

impl Dies {
    fn step(&self) -> io::Result<()> {
        let alive = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok();
        if alive { Ok(()) } else { Err(io::Error::other("it died")) }
    }

    fn renamed(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.step()?;
        let disk = |path: &Path| path.starts_with("/agent/trash");
        if self.two_disks && disk(from) != disk(to) { Err(io::ErrorKind::CrossesDevices.into()) } else { Ok(()) }
    }
}

impl Fs for Dies {
    type File = SimFile;

    fn open(&self, path: &Path, how: Open) -> io::Result<SimFile> {
        self.step()?;
        self.inner.open(path, how)
    }
    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.renamed(from, to)?;
        self.inner.rename_new(from, to)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.renamed(from, to)?;
        self.inner.rename(from, to)
    }
    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.step()?;
        self.inner.sync_dir(dir)
    }
    fn stat(&self, path: &Path) -> io::Result<Stat> {
        self.inner.stat(path)
    }
    fn mkdir(&self, dir: &Path) -> io::Result<()> {
        self.step()?;
        self.inner.mkdir(dir)
    }
    fn unlink(&self, path: &Path) -> io::Result<()> {
        self.step()?;
        self.inner.unlink(path)
    }
    fn rmdir(&self, dir: &Path) -> io::Result<()> {
        self.step()?;
        self.inner.rmdir(dir)
    }
    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        self.inner.list(dir)
    }
}

#[test]
fn a_kill_at_any_step_leaves_a_whole_session_in_one_place_also_between_two_disks() {
    for two_disks in [false, true] {
        let whole = files(&machine(), BUCKET.as_ref());
        let (mut done, mut steps) = ((false, false), 0_usize);
        while !(done.0 && done.1) {
            let dies = |inner: &SimFs| Dies { inner: inner.clone(), left: Arc::new(steps.into()), two_disks };
            let lives = |inner: &SimFs| Dies { inner: inner.clone(), left: Arc::new(usize::MAX.into()), two_disks };
            let settled = |inner: &SimFs, what: &str| {
                let after = inner.kill();
                settle_all(&lives(&after), AGENT.as_ref()).unwrap();
                whole_in_one_place(&after, &whole, &format!("{what}, {steps} steps, two disks: {two_disks}"));
            };
            let fs = machine();
            done.0 |= trash(&dies(&fs), AGENT.as_ref(), &session(), now()).is_ok();
            settled(&fs, "trash");

            let fs = machine();
            let gone = trash(&lives(&fs), AGENT.as_ref(), &session(), now()).unwrap();
            done.1 |= restore(&dies(&fs), AGENT.as_ref(), &gone.folder).is_ok();
            settled(&fs, "restore");
            steps += 1;
        }
        assert!(steps > 10, "{steps}");
    }
}

#[test]
fn what_a_process_has_open_stays() {
    let fs = machine();
    let held = fs.open(&session(), Open::Append).unwrap();
    held.try_lock().unwrap();
    let before = files(&fs, BUCKET.as_ref());
    let refused = trash(&fs, AGENT.as_ref(), &session(), now()).unwrap_err();
    assert!(matches!(refused, TrashError::InUse { .. }), "{refused}");
    assert_eq!(refused.hint(), Some("close it there first"));
    assert_eq!(files(&fs, BUCKET.as_ref()), before);
    drop(held);
    let gone = trash(&fs, AGENT.as_ref(), &session(), now()).unwrap();
    let held = fs.open(&gone.file, Open::Append).unwrap();
    held.try_lock().unwrap();
    assert!(matches!(restore(&fs, AGENT.as_ref(), &gone.folder), Err(TrashError::InUse { .. })));
    assert!(matches!(empty(&fs, AGENT.as_ref(), &gone.folder), Err(TrashError::InUse { .. })));
    assert!(fs.stat(&gone.file).is_ok());
}

#[test]
fn a_session_never_comes_back_over_another_file() {
    let fs = machine();
    let gone = trash(&fs, AGENT.as_ref(), &session(), now()).unwrap();
    for path in [session(), session().with_extension("jsonl.torn")] {
        put(&fs, &path, "다른 것".as_bytes());
        let before = (trashed(&fs), files(&fs, BUCKET.as_ref()));
        let refused = restore(&fs, AGENT.as_ref(), &gone.folder).unwrap_err();
        assert!(matches!(&refused, TrashError::Taken(taken) if *taken == path), "{refused}");
        assert_eq!((trashed(&fs), files(&fs, BUCKET.as_ref())), before);
        settle_all(&fs, AGENT.as_ref()).unwrap();
        fs.unlink(&path).unwrap_or_default();
        fs.list(BUCKET.as_ref()).unwrap().iter().for_each(|left| fs.unlink(left).unwrap());
    }
    restore(&fs, AGENT.as_ref(), &gone.folder).unwrap();
}

#[test]
fn the_same_session_goes_twice_and_both_are_kept() {
    let fs = machine();
    let copy = session().with_file_name("사본.jsonl");
    put(&fs, &copy, &fs.read(session()).unwrap());
    let first = trash(&fs, AGENT.as_ref(), &session(), now()).unwrap();
    let second = trash(&fs, AGENT.as_ref(), &copy, now()).unwrap();
    assert_ne!(first.folder, second.folder);
    assert_eq!(in_trash(&fs, AGENT.as_ref()).unwrap().len(), 2);
    let again = trash(&fs, AGENT.as_ref(), &second.file, now()).unwrap_err();
    assert!(matches!(again, TrashError::There(_)), "{again}");
}

#[test]
fn emptying_removes_what_was_named_and_nothing_else() {
    let fs = machine();
    let copy = session().with_file_name("사본.jsonl");
    put(&fs, &copy, &fs.read(session()).unwrap());
    fs.mkdir("/agent/blobs".as_ref()).unwrap();
    put(&fs, "/agent/blobs/aa".as_ref(), b"blob");
    let first = trash(&fs, AGENT.as_ref(), &session(), now()).unwrap();
    let second = trash(&fs, AGENT.as_ref(), &copy, now()).unwrap();
    empty(&fs, AGENT.as_ref(), &first.folder).unwrap();
    assert!(fs.stat(&first.folder).is_err() && fs.stat(&second.file).is_ok());
    assert_eq!(fs.read("/agent/blobs/aa").unwrap(), b"blob");
    assert_eq!(in_trash(&fs, AGENT.as_ref()).unwrap().len(), 1);
}

#[test]
fn only_sessions_go_and_links_do_not() {
    let dir = tempfile::tempdir().unwrap();
    let agent = dir.path().join("agent");
    let bucket = agent.join("sessions/--a--");
    std::fs::create_dir_all(&bucket).unwrap();
    let (notes, broken) = (dir.path().join("notes.jsonl"), bucket.join("broken.jsonl"));
    std::fs::write(&notes, "my notes\n").unwrap();
    std::fs::write(&broken, "no header\n").unwrap();
    let link = bucket.join("link.jsonl");
    std::os::unix::fs::symlink(&notes, &link).unwrap();
    let refused = |path: &Path| trash(&OsFs, &agent, path, now()).unwrap_err();
    assert!(refused(&notes).to_string().contains("no session file"));
    assert!(matches!(refused(&link), TrashError::Link(_)));
    assert!(refused(&bucket.join("nothing.jsonl")).to_string().contains("File not found"));
    assert!(matches!(refused(&bucket), TrashError::NoSession(_)));
    assert!(!agent.join("trash").exists(), "a refusal makes nothing");
    // What a crash or a hand has made unreadable below the sessions folder can be taken away, and comes back.
    let gone = trash(&OsFs, &agent, &broken, now()).unwrap();
    assert_eq!(gone.id, "broken");
    restore(&OsFs, &agent, &gone.folder).unwrap();
    assert_eq!(std::fs::read_to_string(&broken).unwrap(), "no header\n");
}

#[test]
fn emptying_removes_a_link_and_not_what_it_leads_to() {
    let dir = tempfile::tempdir().unwrap();
    let agent = dir.path().join("agent");
    let bucket = agent.join("sessions/--a--");
    std::fs::create_dir_all(bucket.join("s")).unwrap();
    let precious = dir.path().join("precious");
    std::fs::create_dir(&precious).unwrap();
    std::fs::write(precious.join("귀한 것"), "x").unwrap();
    std::os::unix::fs::symlink(&precious, bucket.join("s/link")).unwrap();
    std::fs::write(bucket.join("s.jsonl"), "no header\n").unwrap();
    let gone = trash(&OsFs, &agent, &bucket.join("s.jsonl"), now()).unwrap();
    assert!(gone.folder.join("s/link").is_symlink());
    empty(&OsFs, &agent, &gone.folder).unwrap();
    assert!(!gone.folder.exists() && precious.join("귀한 것").exists());
}

#[test]
fn two_that_move_at_once_do_not_undo_each_other() {
    let fs = machine();
    fs.mkdir("/agent/trash".as_ref()).unwrap();
    let lock = fs.open("/agent/trash/.lock".as_ref(), Open::CreateNew).unwrap();
    lock.try_lock().unwrap();
    let refused = trash(&fs, AGENT.as_ref(), &session(), now()).unwrap_err();
    assert!(matches!(refused, TrashError::Busy), "{refused}");
    assert!(matches!(settle_all(&fs, AGENT.as_ref()), Err(TrashError::Busy)));
    assert!(fs.stat(&session()).is_ok());
}

#[test]
fn a_record_that_leads_elsewhere_is_none() {
    let fs = machine();
    let gone = trash(&fs, AGENT.as_ref(), &session(), now()).unwrap();
    let record = gone.folder.join("record.json");
    let sound = String::from_utf8(fs.read(&record).unwrap()).unwrap();
    for hostile in
        [sound.replace(".jsonl.torn", "../../x"), sound.replace("\"version\": 1", "\"version\": 2"), "{".into()]
    {
        assert_ne!(hostile, sound);
        fs.unlink(&record).unwrap();
        put(&fs, &record, hostile.as_bytes());
        assert!(matches!(restore(&fs, AGENT.as_ref(), &gone.folder), Err(TrashError::NoRecord(_))), "{hostile}");
        settle_all(&fs, AGENT.as_ref()).unwrap();
        assert!(fs.stat(&gone.file).is_ok(), "it stays, with all that is in it");
        assert_eq!(in_trash(&fs, AGENT.as_ref()).unwrap()[0].id(), ID, "and is listed");
    }
}
