//! Whole copies of a session.

use crate::wrapped::Wrapped;
use gjc_entry::{Body, DamageKind, Header, Message, SessionId, Source, Timestamp};
use gjc_log::fs::sim::{Fault, SimFs};
use gjc_log::fs::{Fs, FsFile, Open, OsFs, mkdir_all_durable};
use gjc_log::{ForkError, Forked, OpenError, Reader, Writer, carry_artifacts, fork};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use testkit::log::{Bench, add, read, sync, texts};
use testkit::session::{answer, user};

pub(crate) fn header(id: &str) -> Header {
    Header::new(SessionId::new(id).unwrap(), Timestamp::from_millis(9), "/다른 곳".into())
}

/// A file as somebody else left it.
pub(crate) fn lay<F: Fs>(bench: &Bench<F>, name: &str, bytes: &[u8]) -> PathBuf {
    mkdir_all_durable(&*bench.fs, &bench.root).unwrap();
    let path = bench.root.join(name);
    let file = bench.fs.open(&path, Open::CreateNew).unwrap();
    assert_eq!(file.append(bytes).unwrap(), bytes.len());
    path
}

fn make<F: Fs>(bench: &Bench<F>, source: &Path, id: &str) -> Result<(Forked, PathBuf), ForkError> {
    let to = bench.root.join(format!("sessions/--다른 곳--/{id}.jsonl"));
    fork(&*bench.fs, source, &to, header(id)).map(|forked| (forked, to))
}

/// What stands behind the header and its blanks.
pub(crate) fn entries(bytes: &[u8]) -> &[u8] {
    let header = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    let blank = bytes[header..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    &bytes[header + blank..]
}

fn names<F: Fs>(bench: &Bench<F>) -> Vec<PathBuf> {
    bench.fs.list(&bench.root.join("sessions/--다른 곳--")).unwrap_or_default()
}

/// A session of some answers, each so long.
pub(crate) fn long<F: Fs>(bench: &Bench<F>, answers: usize, letters: usize) -> Writer<F> {
    let mut writer = bench.create();
    for n in 0..answers {
        add(&mut writer, user(&format!("질문 {n}")));
        add(&mut writer, answer(&"답".repeat(letters)));
    }
    sync(&mut writer).unwrap();
    writer
}

both!(a_fork_has_all_entries_and_the_source_stays_as_it_was, bench => {
    // The source is open for writing all the while.
    let mut writer = long(&bench, 3, 30_000);
    let before = read(&*bench.fs, &bench.path());
    let (forked, to) = make(&bench, &bench.path(), "new").unwrap();
    assert_eq!((forked.source.id.as_str(), forked.header.id.as_str(), forked.left_behind), ("s", "new", 0));
    let made = read(&*bench.fs, &to);
    assert_eq!(made.len() as u64, forked.len);
    assert!(entries(&made) == entries(&before));
    let (opened, _) = Writer::open(bench.env(), &to).unwrap();
    assert!(opened.damage.is_empty(), "{:?}", opened.damage);
    let mut child = opened.value;
    assert_eq!((child.header().parent.as_deref(), &*child.header().cwd), (Some("s"), "/다른 곳"));
    assert_eq!(child.header().version, 3);
    assert_eq!(texts(&child), texts(&writer));
    // K38: what happens in the fork happens nowhere else, and both go on.
    add(&mut child, answer("갈래"));
    sync(&mut child).unwrap();
    assert!(read(&*bench.fs, &bench.path()) == before);
    add(&mut writer, answer("줄기"));
    sync(&mut writer).unwrap();
    assert_eq!(texts(&child).last().unwrap(), "갈래");
    assert_eq!(texts(&writer).last().unwrap(), "줄기");
    drop((child, writer));
    // K10: nobody holds either of them afterwards.
    for (path, last) in [(bench.path(), "줄기"), (to, "갈래")] {
        let (opened, _) = Writer::open(bench.env(), &path).unwrap();
        assert_eq!(texts(&opened.value).last().unwrap(), last);
    }
});

both!(a_title_goes_along_and_says_who_gave_it, bench => {
    let text = concat!(
        r#"{"type":"title","v":1,"title":"새 이름","pad":"     "}"#, "\n",
        r#"{"type":"session","version":3,"id":"old","timestamp":"2026-06-05T07:18:54.123Z","cwd":"/","title":"첫 이름","titleSource":"user","starred":true}"#, "\n",
        r#"{"type":"message","id":"0000000a","parentId":null,"timestamp":"2026-06-05T07:18:54Z","message":{"role":"user","content":"하나","timestamp":1}}"#, "\n",
    );
    let source = lay(&bench, "old.jsonl", text.as_bytes());
    let (_, to) = make(&bench, &source, "new").unwrap();
    let made = String::from_utf8(read(&*bench.fs, &to)).unwrap();
    assert_eq!(
        made.lines().next().unwrap(),
        r#"{"type":"session","version":3,"id":"new","title":"새 이름","timestamp":"1970-01-01T00:00:00.009Z","cwd":"/다른 곳","parentSession":"old","titleSource":"user"}"#
    );
    assert_eq!(made.lines().skip(1).collect::<Vec<_>>(), text.lines().skip(2).collect::<Vec<_>>());
    // Under the same id it is the same session in another place, and nobody's child.
    let to = bench.root.join("moved.jsonl");
    let moved = fork(&*bench.fs, &source, &to, header("old")).unwrap();
    assert_eq!((moved.header.parent, moved.header.title.as_deref()), (None, Some("새 이름")));
});

/// Where an entry stands within a block, and what stands before it.
fn layout(bytes: &[u8]) -> (usize, Vec<String>) {
    let first = bytes.len() - entries(bytes).len();
    (first % 4096, String::from_utf8(bytes[..first].to_vec()).unwrap().lines().map(str::to_owned).collect())
}

#[test]
fn what_is_shared_stands_at_the_same_place_within_a_block() {
    let (fs, bench) = crate::simulated();
    let writer = long(&bench, 4, 20_000);
    let source = read(&*fs, &bench.path());
    let (forked, to) = make(&bench, &bench.path(), "new").unwrap();
    let made = read(&*fs, &to);
    assert!(forked.shared >= made.len() as u64 - 3 * 4096 && forked.shared % 4096 == 0, "{forked:?}");
    assert_eq!(layout(&made).0, layout(&source).0);
    let (_, before) = layout(&made);
    // The header is short and whole by itself: pi looks for it in the first 512 bytes, others in 4,096.
    assert_eq!(before.len(), 2, "{before:?}");
    assert!(before[0].len() < 512 && Header::parse(&before[0]).is_ok() && before[1].trim().is_empty());
    // The end reads like that of any file: from its end too.
    let end = Reader::open_end(&*fs, &to, &bench.root).unwrap();
    assert_eq!(texts(&end.value), texts(&writer));
    // A fork of a fork has no more blanks than it needs.
    let (again, twice) = make(&bench, &to, "again").unwrap();
    let twice = read(&*fs, &twice);
    assert_eq!((layout(&twice).0, layout(&twice).1.len()), (layout(&source).0, 2));
    assert!(again.len <= source.len() as u64 + 2 * 4096, "{again:?}");
    assert!(entries(&twice) == entries(&source));
}

#[test]
fn where_nothing_can_be_shared_whole_blocks_are_copied() {
    for faults in [vec![Fault::NoSharing], vec![Fault::NoSharing, Fault::NoRanges]] {
        let (fs, bench) = crate::simulated();
        drop(long(&bench, 4, 20_000));
        let source = read(&*fs, &bench.path());
        faults.iter().for_each(|fault| fs.fault(fault.clone()));
        let (forked, to) = make(&bench, &bench.path(), "new").unwrap();
        let made = read(&*fs, &to);
        assert_eq!(
            (forked.shared, layout(&made), made.len() as u64),
            (0, (layout(&source).0, layout(&made).1), forked.len),
            "{faults:?}"
        );
        assert!(layout(&made).1.len() == 2 && layout(&made).1[1].trim().is_empty());
        assert!(entries(&made) == entries(&source));
    }
    // A short one has no blanks.
    let (fs, bench) = crate::simulated();
    drop(long(&bench, 1, 3));
    let (forked, to) = make(&bench, &bench.path(), "new").unwrap();
    assert_eq!((forked.shared, layout(&read(&*fs, &to)).1.len()), (0, 1));
}

const NEWER: &str = concat!(
    r#"{"type":"session","version":5,"id":"old","timestamp":"2026-06-05T07:18:54.123Z","cwd":"/a"}"#,
    "\n",
    r#"{"type":"message","id":"0000000a","parentId":null,"timestamp":"2026-06-05T07:18:54Z","message":{"role":"user","content":"하나","timestamp":1}}"#,
    "\n",
    r#"{"type":"header_patch","patch":{"title":"제목","cwd":"/b"}}"#,
    "\n",
    r#"{"type":"message","id":"0000000b","parentId":"0000000a","timestamp":"2026-06-05T07:18:55Z","message":{"role":"assistant","content":[{"type":"text","text":"둘"}],"timestamp":2},"unknown":{"x": 1.50}}"#,
    "\n",
    r#"{"type":"entry_patch","entryId":"0000000b","patch":{"message":{"role":"assistant","content":[{"type":"text","text":"둘 반"}],"timestamp":2}}}"#,
    "\n",
    "{\"type\":\"mess\0ge\"}\n",
    r#"{"type":"entry_patch","entryId":"0000000b","patch":{"message":{"role":"assistant","content":[{"type":"text","text":"셋"}],"timestamp":2}}}"#,
    "\n",
    r#"{"type":"message","id":"0000000c","parentId":"0000000b","timestamp":"2026-06-05T07:18:56Z","message":{"role":"user","content":"넷","timestamp":3}}"#,
    "\n",
);

both!(what_a_newer_version_changes_of_entries_stands_in_the_entries, bench => {
    let source = lay(&bench, "old.jsonl", NEWER.as_bytes());
    let (forked, to) = make(&bench, &source, "new").unwrap();
    assert_eq!(forked.damage.len(), 1, "{:?}", forked.damage);
    let made = String::from_utf8(read(&*bench.fs, &to)).unwrap();
    let (lines, before): (Vec<_>, Vec<_>) = (made.lines().collect(), NEWER.lines().collect());
    // The header stays as it was asked for, whatever the source came to say of itself.
    assert!(lines[0].contains(r#""version":3,"id":"new","title":"제목""#) && lines[0].contains(r#""cwd":"/다른 곳""#), "{}", lines[0]);
    assert!(!made.contains("_patch"), "{made}");
    let lines: Vec<_> = lines[1..].iter().filter(|line| !line.is_empty()).collect();
    assert_eq!([*lines[0], *lines[2], *lines[3]], [before[1], before[5], before[7]], "the others are as they were");
    assert!(lines[1].contains(r#""text":"셋""#) && lines[1].contains(r#""unknown":{"x": 1.50}"#), "{}", lines[1]);
    let copied = Reader::open(&*bench.fs, &to).unwrap();
    assert_eq!(texts(&copied.value), ["하나", "셋", "넷"]);
    assert_eq!(copied.value.header().cwd, "/다른 곳");
    assert_eq!(read(&*bench.fs, &source), NEWER.as_bytes());
});

both!(entries_of_old_versions_are_told_as_version_3, bench => {
    let v1 = concat!(
        r#"{"type":"session","id":"old","timestamp":"2026-06-05T07:18:54.123Z","cwd":"/"}"#, "\n",
        r#"{"type":"message","timestamp":"2026-06-05T07:18:54Z","message":{"role":"user","content":"하나","timestamp":1}}"#, "\n",
        r#"{"type":"message","timestamp":"2026-06-05T07:18:55Z","message":{"role":"assistant","content":[{"type":"text","text":"둘"}],"timestamp":1}}"#, "\n",
    );
    let v2 = concat!(
        r#"{"type":"session","version":2,"id":"old","timestamp":"2026-06-05T07:18:54.123Z","cwd":"/"}"#, "\n",
        r#"{"type":"message","id":"0000000a","parentId":null,"timestamp":"2026-06-05T07:18:54Z","message":{"role":"user","content":"하나","timestamp":1}}"#, "\n",
        r#"{"type":"message","id":"0000000a","parentId":null,"timestamp":"2026-06-05T07:18:54Z","message":{"role":"user","content":"또 하나","timestamp":1}}"#, "\n",
        r#"{"type":"message","id":"0000000b","parentId":"0000000a","timestamp":"2026-06-05T07:18:55Z","message":{"role":"assistant","content":[{"type":"text","text":"둘"}],"timestamp":1}}"#, "\n",
    );
    // What bears another's id is nobody's leaf, also at the end of the file.
    let repeated = format!("{v2}{}\n", v2.lines().nth(2).unwrap().replace("또 하나", "아무의 끝도 아님"));
    for (name, text, entries) in [("1", v1, 2), ("2", v2, 3), ("3", &*repeated, 5)] {
        let source = lay(&bench, name, text.as_bytes());
        let (_, to) = make(&bench, &source, &format!("new{name}")).unwrap();
        let (opened, _) = Writer::open(bench.env(), &to).unwrap();
        assert!(opened.damage.is_empty(), "{:?}", opened.damage);
        assert_eq!(texts(&opened.value), ["하나", "둘"]);
        assert_eq!(opened.value.skeleton().unwrap().len(), entries);
        assert_eq!(read(&*bench.fs, &source), text.as_bytes());
    }
});

both!(damage_is_copied_as_it_is_and_told, bench => {
    let text = concat!(
        r#"{"type":"session","version":3,"id":"old","timestamp":"2026-06-05T07:18:54.123Z","cwd":"/"}"#, "\n",
        r#"{"type":"message","id":"0000000a","parentId":null,"timestamp":"2026-06-05T07:18:54Z","message":{"role":"user","content":"하나","timestamp":1}}"#, "\n",
        "\0\0\0\0\n",
        r#"{"type":"message","id":"0000000b","parentId":"0000000a","timestamp":"2026-06-05T07:18:55Z","message":{"role":"user","content":[broken]}}"#, "\n",
        "남은 글자\n",
        r#"{"type":"message","id":"0000000c","parentId":"0000000b","timestamp":"2026-06-05T07:18:56Z","message":{"role":"user","content":"셋","timestamp":1}}"#, "\n",
    );
    let source = lay(&bench, "old.jsonl", text.as_bytes());
    let told = Reader::open(&*bench.fs, &source).unwrap().damage.len();
    let (_, to) = make(&bench, &source, "new").unwrap();
    let made = read(&*bench.fs, &to);
    assert_eq!(entries(&made), entries(text.as_bytes()));
    let (opened, _) = Writer::open(bench.env(), &to).unwrap();
    assert_eq!((opened.damage.len(), told), (2, 2), "{:?}", opened.damage);
    assert_eq!(texts(&opened.value), ["하나", "셋"]);
    // A header that lost its line feed has an entry on its line.
    let glued = text.replacen("\"cwd\":\"/\"}\n", "\"cwd\":\"/\"}", 1);
    let source = lay(&bench, "glued.jsonl", glued.as_bytes());
    let (_, to) = make(&bench, &source, "glued").unwrap();
    assert_eq!(texts(&Reader::open(&*bench.fs, &to).unwrap().value), ["하나", "셋"]);
});

both!(an_unfinished_line_stays_behind, bench => {
    let mut writer = long(&bench, 1, 3);
    add(&mut writer, user("끝"));
    sync(&mut writer).unwrap();
    drop(writer);
    let whole = read(&*bench.fs, &bench.path());
    let torn = [&whole[..], "{\"type\":\"message\",\"id\":\"0000".as_bytes()].concat();
    let source = lay(&bench, "torn.jsonl", &torn);
    let (forked, to) = make(&bench, &source, "new").unwrap();
    assert_eq!(forked.left_behind, (torn.len() - whole.len()) as u64);
    assert_eq!(entries(&read(&*bench.fs, &to)), entries(&whole));
    assert_eq!(read(&*bench.fs, &source), torn);
    // In the middle of a letter, and with the hole of a power cut.
    for cut in [whole.len() - 20, whole.len() - 1] {
        let source = lay(&bench, &format!("cut{cut}"), &[&whole[..cut], &[0; 700]].concat());
        let (forked, to) = make(&bench, &source, &format!("cut{cut}")).unwrap();
        assert!(forked.left_behind > 700);
        assert_eq!(texts(&Reader::open(&*bench.fs, &to).unwrap().value).len(), 2);
    }
});

both!(nothing_is_replaced_and_what_is_no_session_is_refused, bench => {
    drop(long(&bench, 1, 3));
    let (_, to) = make(&bench, &bench.path(), "new").unwrap();
    let made = read(&*bench.fs, &to);
    assert!(matches!(make(&bench, &bench.path(), "new"), Err(ForkError::Exists(_))));
    assert!(matches!(fork(&*bench.fs, &to, &to, header("x")), Err(ForkError::Exists(_))));
    assert_eq!(read(&*bench.fs, &to), made);
    let refused = |name: &str, text: &str| {
        let source = lay(&bench, name, text.as_bytes());
        let error = make(&bench, &source, name).unwrap_err();
        assert!(bench.fs.stat(&bench.root.join(format!("sessions/--다른 곳--/{name}.jsonl"))).is_err());
        assert!(!error.to_string().is_empty());
        let ForkError::Source(error) = error else { panic!("{error}") };
        error
    };
    assert!(matches!(refused("empty", ""), OpenError::NoHeader { .. }));
    assert!(matches!(refused("torn", "{\"type\":\"session\""), OpenError::NoHeader { .. }));
    assert!(matches!(refused("other", "{\"a\":1}\n"), OpenError::NoHeader { .. }));
    assert!(matches!(refused("high", "{\"type\":\"session\",\"version\":9,\"id\":\"h\"}\n"), OpenError::Version { version: 9, .. }));
    assert!(matches!(make(&bench, &bench.root.join("없음"), "x"), Err(ForkError::Source(OpenError::NotFound(_)))));
    assert!(matches!(make(&bench, &bench.root, "x"), Err(ForkError::Source(OpenError::Io { .. }))));
    assert_eq!(names(&bench), [to], "nothing is left of what failed");
});

both!(what_a_dead_process_left_is_in_nobody_s_way, bench => {
    drop(long(&bench, 1, 3));
    let folder = bench.root.join("sessions/--다른 곳--");
    mkdir_all_durable(&*bench.fs, &folder).unwrap();
    let left = bench.fs.open(&folder.join(".new.jsonl.tmp"), Open::CreateNew).unwrap();
    left.append(b"{\"type\":\"sess").unwrap();
    // Alive, it is at work on the same file.
    left.try_lock().unwrap();
    let error = make(&bench, &bench.path(), "new").unwrap_err();
    assert!(matches!(error, ForkError::Busy(_)) && error.hint().is_some(), "{error}");
    drop(left);
    let (_, to) = make(&bench, &bench.path(), "new").unwrap();
    assert_eq!(names(&bench), std::slice::from_ref(&to));
    assert_eq!(texts(&Reader::open(&*bench.fs, &to).unwrap().value).len(), 2);
});

#[test]
fn a_disk_that_fills_or_fails_leaves_no_new_session() {
    let size = {
        let (fs, bench) = crate::simulated();
        drop(long(&bench, 2, 400));
        read(&*fs, &bench.path()).len() as u64
    };
    let faults = (0..size).step_by(97).map(|after_bytes| Fault::Enospc { after_bytes });
    for fault in faults.chain([Fault::SyncFails { times: 1 }, Fault::SyncLoses { times: 1 }]) {
        let (fs, bench) = crate::simulated();
        drop(long(&bench, 2, 400));
        let before = read(&*fs, &bench.path());
        fs.fault(fault.clone());
        let error = make(&bench, &bench.path(), "new").unwrap_err();
        assert!(error.to_string().contains("there is no new session"), "{error}");
        assert_eq!(names(&bench), Vec::<PathBuf>::new(), "{fault:?}");
        assert_eq!(read(&*fs, &bench.path()), before);
        fs.clear_faults();
        make(&bench, &bench.path(), "new").unwrap();
    }
}

#[test]
fn a_power_cut_leaves_no_new_session_or_a_whole_one() {
    for faults in [vec![], vec![Fault::NoSharing]] {
        let (fs, bench) = crate::simulated();
        drop(long(&bench, 3, 8_000));
        let source = read(&*fs, &bench.path());
        fs.settle();
        faults.into_iter().for_each(|fault| fs.fault(fault));
        let (forked, to) = make(&bench, &bench.path(), "new").unwrap();
        fs.mark(1);
        let whole = read(&*fs, &to);
        let (mut cuts, mut whole_ones) = (0, 0);
        for cut in fs.power_cuts() {
            cuts += 1;
            assert!(cut.fs.read(bench.path()).unwrap() == source, "{cut}");
            match cut.fs.read(&to) {
                Ok(bytes) => assert!(bytes == whole, "{cut}: {} of {} bytes", bytes.len(), whole.len()),
                Err(_) => assert!(cut.marks.is_empty(), "{cut}: it was promised"),
            }
            whole_ones += u32::from(cut.fs.stat(&to).is_ok());
            // Whatever else was left, the same is made again.
            if cuts % 501 == 0 && cut.fs.stat(&to).is_err() {
                let after = Bench::new(Arc::new(cut.fs), Path::new("/agent")).unwatched();
                make(&after, &after.path(), "new").unwrap();
                assert_eq!(names(&after), std::slice::from_ref(&to));
            }
        }
        assert!(cuts > 20_000 && whole_ones > 0, "{cuts} cuts, {whole_ones} with the fork; {forked:?}");
    }
}

/// Tells the test binary that it is the process that dies: `<step> <agent folder>`.
const ROLE: &str = "GJC_TEST_FORK";

/// SIGKILL, for real, before each step that changes anything on the disk.
#[test]
fn a_death_at_any_step_leaves_no_new_session_or_a_whole_one() {
    let fork_at = |step: &str, root: &Path| {
        let wrapped = Wrapped::new(OsFs, false);
        wrapped.hooks.dies_before.store(step.parse().unwrap(), Ordering::SeqCst);
        let bench = Bench::new(Arc::new(wrapped), root).unwatched();
        make(&bench, &bench.path(), "new").unwrap();
        bench.fs.hooks.steps.load(Ordering::SeqCst)
    };
    if let Ok(role) = std::env::var(ROLE) {
        let (step, root) = role.split_once(' ').unwrap();
        fork_at(step, Path::new(root));
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let begin = |name: &str| {
        let bench = Bench::new(Arc::new(OsFs), &home.path().join(name));
        drop(long(&bench, 3, 30_000));
        bench
    };
    let steps = fork_at("0", &begin("nobody dies").root);
    assert!(steps > 20, "{steps}");
    let mut whole = 0;
    for step in 1..=steps {
        let bench = begin(&step.to_string());
        let before = read(&OsFs, &bench.path());
        let out = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "--nocapture", "forks::a_death_at_any_step_leaves_no_new_session_or_a_whole_one"])
            .env(ROLE, format!("{step} {}", bench.root.display()))
            .output()
            .unwrap();
        assert_eq!(out.status.signal(), Some(9), "{step}: {}", String::from_utf8_lossy(&out.stderr));
        assert!(read(&OsFs, &bench.path()) == before);
        let to = bench.root.join("sessions/--다른 곳--/new.jsonl");
        if to.exists() {
            whole += 1;
        } else {
            make(&bench, &bench.path(), "new").unwrap();
        }
        let (opened, _) = Writer::open(bench.env(), &to).unwrap();
        assert!(opened.damage.is_empty());
        assert!(entries(&read(&OsFs, &to)) == entries(&before), "{step}");
        assert_eq!(names(&bench), std::slice::from_ref(&to), "{step}");
    }
    assert!((1..steps / 2).contains(&whole), "{whole} of {steps}");
}

/// A fork of a session that another thread writes to has the lines of one moment, whole.
#[test]
fn a_fork_of_a_session_that_grows_has_whole_lines() {
    let dir = tempfile::tempdir().unwrap();
    let bench = Bench::new(Arc::new(OsFs), dir.path());
    let mut writer = long(&bench, 1, 3);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0..600 {
                add(&mut writer, user(&format!("줄 {n} {}", "가".repeat(n * 7 % 900))));
            }
            done.store(true, Ordering::Release);
        });
        let (mut round, mut before) = (0, 0);
        while !done.load(Ordering::Acquire) || round < 3 {
            let (_, to) = make(&bench, &bench.path(), &format!("f{round}")).unwrap();
            let copied = Reader::open(&OsFs, &to).unwrap();
            assert!(copied.damage.is_empty(), "{:?}", copied.damage);
            let lines = texts(&copied.value);
            assert!(lines.len() >= before);
            let numbers = lines.iter().skip(2).map(|line| line.split(' ').nth(1).unwrap().parse::<usize>().unwrap());
            assert!(numbers.eq(0..lines.len() - 2));
            (before, round) = (lines.len(), round + 1);
        }
    });
}

/// Bodies that cannot be read are copied too, and told by whoever reads them.
#[test]
fn a_fork_reads_no_bodies() {
    let (fs, bench) = crate::simulated();
    let text = concat!(
        r#"{"type":"session","version":3,"id":"old","timestamp":"2026-06-05T07:18:54.123Z","cwd":"/"}"#,
        "\n",
        r#"{"type":"message","id":"0000000b","parentId":null,"timestamp":"2026-06-05T07:18:55Z","message":{"role":"user","content":[broken]}}"#,
        "\n",
    );
    let source = lay(&bench, "old.jsonl", text.as_bytes());
    let (_, to) = make(&bench, &source, "new").unwrap();
    let copied = Reader::open(&*fs, &to).unwrap().value;
    assert!(matches!(copied.verify_bodies()[..], [gjc_entry::Damage { kind: DamageKind::Body(_), .. }]));
    let _: &SimFs = &fs;
    let bodies =
        copied.skeleton().unwrap().iter().filter_map(|(_, node)| copied.body(node.at()).ok()).collect::<Vec<_>>();
    assert!(!bodies.iter().any(|entry| matches!(&entry.body, Body::Message(Message::User(_)))));
}

both!(outputs_come_along_and_children_and_drafts_stay, bench => {
    let (old, new) = (bench.root.join("old"), bench.root.join("sessions/--다른 곳--/new"));
    assert_eq!(carry_artifacts(&*bench.fs, &old, &new), None, "there is nothing");
    mkdir_all_durable(&*bench.fs, &old.join("folder")).unwrap();
    let put = |name: &str, bytes: &[u8]| {
        bench.fs.open(&old.join(name), Open::CreateNew).unwrap().append(bytes).unwrap();
    };
    put("draft.txt", "쓰다 만 말".as_bytes());
    for child in 0..200 {
        put(&format!("0-Child{child}.jsonl"), b"{}\n");
    }
    for left in ["0-Child1.jsonl.torn", "0-Child1.jsonl.lease", ".3.bash.log.tmp"] {
        put(left, b"x");
    }
    assert_eq!(carry_artifacts(&*bench.fs, &old, &new), None);
    assert!(bench.fs.stat(&new).is_err(), "nothing comes along, so there is no folder");
    put("1.bash.log", b"output");
    put("2.bash.log", b"");
    put("whole-한글.txt", &[7; 70_000]);
    // One is there already: it was written for the same entries. Another was left by a process that died.
    mkdir_all_durable(&*bench.fs, &new).unwrap();
    bench.fs.open(&new.join("1.bash.log"), Open::CreateNew).unwrap().append(b"there").unwrap();
    bench.fs.open(&new.join(".2.bash.log.tmp"), Open::CreateNew).unwrap().append(b"half").unwrap();
    assert_eq!(carry_artifacts(&*bench.fs, &old, &new), None);
    let mut names = bench.fs.list(&new).unwrap();
    names.retain(|name| !name.ends_with(".2.bash.log.tmp"));
    assert_eq!(names, ["1.bash.log", "2.bash.log", "whole-한글.txt"].map(|name| new.join(name)));
    assert_eq!(read(&*bench.fs, &new.join("1.bash.log")), b"there");
    assert_eq!(read(&*bench.fs, &new.join("2.bash.log")), b"");
    assert_eq!(read(&*bench.fs, &new.join("whole-한글.txt")), [7; 70_000]);
    assert_eq!(bench.fs.list(&old).unwrap().len(), 1 + 1 + 200 + 3 + 3, "all of them are still there");
});

#[test]
fn what_cannot_come_along_is_counted() {
    let (fs, bench) = crate::simulated();
    let (old, new) = (bench.root.join("old"), bench.root.join("new"));
    mkdir_all_durable(&*fs, &old).unwrap();
    for name in ["1.bash.log", "2.bash.log"] {
        fs.open(&old.join(name), Open::CreateNew).unwrap().append(&[7; 500]).unwrap();
    }
    fs.fault(Fault::NoSharing);
    fs.fault(Fault::Enospc { after_bytes: 700 });
    let note = carry_artifacts(&*fs, &old, &new).unwrap();
    assert_eq!(
        note,
        format!(
            "1 of the files beside the session could not be brought to {}; they are in {}",
            new.display(),
            old.display()
        )
    );
    assert_eq!(fs.list(&new).unwrap(), [new.join("1.bash.log")], "no half of a file");
}

/// A link in the folder leads out of it, and never comes along, nor what it leads to.
#[test]
fn links_stay_where_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let (old, new) = (dir.path().join("old"), dir.path().join("new"));
    std::fs::create_dir(&old).unwrap();
    std::fs::write(dir.path().join("secret"), "비밀").unwrap();
    std::os::unix::fs::symlink(dir.path().join("secret"), old.join("1.bash.log")).unwrap();
    assert_eq!((carry_artifacts(&OsFs, &old, &new), new.exists()), (None, false));
}
