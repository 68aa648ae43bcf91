//! Where the file system refuses locks.

use crate::wrapped::Wrapped;
use gjc_log::fs::sim::{Fault, SimFs};
use gjc_log::fs::{Fs, FsFile, Open, OsFs};
use gjc_log::{Lock, OpenError, Writer};
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use testkit::log::{Bench, add, failure, sync, texts};
use testkit::session::{answer, user};

fn lease<F: Fs>(bench: &Bench<F>) -> PathBuf {
    bench.path().with_file_name("s.jsonl.lease")
}

fn without_locks(test: impl Fn(Bench<Wrapped<OsFs>>), simulated: impl Fn(Bench<SimFs>)) {
    let dir = tempfile::tempdir().unwrap();
    test(Bench::new(Arc::new(Wrapped::new(OsFs, true)), dir.path()));
    let fs = SimFs::new();
    fs.fault(Fault::NoLocks);
    simulated(Bench::new(Arc::new(fs), Path::new("/agent")));
}

macro_rules! lockless {
    ($name:ident, $bench:ident => $body:block) => {
        #[test]
        fn $name() {
            fn test<F: Fs>($bench: Bench<F>) $body
            without_locks(test, test);
        }
    };
}

lockless!(a_lease_keeps_others_away_and_is_given_back, bench => {
    let mut writer = bench.create();
    add(&mut writer, answer("하나"));
    sync(&mut writer).unwrap();
    assert_eq!(writer.lock_kind(), Lock::Lease);
    assert!(writer.lock_kind().notice().unwrap().contains("refuses locks") && Lock::Kernel.notice().is_none());
    let Err(error) = bench.open().map(drop) else { panic!("opened twice") };
    assert!(matches!(error, OpenError::Leased { owner: Some(_), .. }), "{error}");
    assert!(error.to_string().starts_with("session is open in another process (pid "), "{error}");
    drop(writer);
    assert!(bench.fs.stat(&lease(&bench)).is_err(), "given back");
    let mut writer = bench.open().unwrap().0.value;
    assert_eq!(writer.lock_kind(), Lock::Lease);
    add(&mut writer, user("둘"));
    sync(&mut writer).unwrap();
    drop(writer);
    let names = bench.fs.list(bench.path().parent().unwrap()).unwrap();
    assert_eq!(names, [bench.path()], "nothing is left beside it");
});

#[test]
fn locks_are_locks_where_there_are_any() {
    let dir = tempfile::tempdir().unwrap();
    let bench = Bench::new(Arc::new(OsFs), dir.path());
    let mut writer = bench.create();
    add(&mut writer, answer("하나"));
    assert_eq!(writer.lock_kind(), Lock::Kernel);
    assert!(bench.fs.stat(&lease(&bench)).is_err());
}

lockless!(a_writer_whose_lease_was_taken_over_stops, bench => {
    let mut writer = bench.create();
    add(&mut writer, answer("하나"));
    sync(&mut writer).unwrap();
    let before = bench.bytes();
    bench.fs.unlink(&lease(&bench)).unwrap();
    let theirs = b"{\"pid\":7,\"host\":\"elsewhere\",\"boot\":\"b\",\"started\":1,\"token\":\"other\",\"beat\":\"0000000000\"}\n";
    bench.fs.open(&lease(&bench), Open::CreateNew).unwrap().append(theirs).unwrap();
    add(&mut writer, user("둘"));
    let (why, lost) = failure(&writer).unwrap();
    assert!(lost && why.contains("another process has taken"), "{why}");
    assert_eq!((bench.bytes(), texts(&writer).len()), (before, 2));
    drop(writer);
    assert_eq!(testkit::log::read(&*bench.fs, &lease(&bench)), theirs, "theirs is not removed");
});

#[test]
fn the_lease_of_a_dead_process_of_this_machine_is_taken_over_at_once() {
    let fs = SimFs::new();
    fs.fault(Fault::NoLocks);
    let bench = Bench::new(Arc::new(fs.clone()), Path::new("/agent"));
    let mut writer = bench.create();
    add(&mut writer, answer("하나"));
    sync(&mut writer).unwrap();
    let after = Bench::new(Arc::new(fs.kill()), Path::new("/agent"));
    assert!(after.fs.stat(&lease(&after)).is_ok());
    let mut resumed = after.open().unwrap().0.value;
    add(&mut resumed, user("둘"));
    sync(&mut resumed).unwrap();
    drop(resumed);
    assert_eq!(after.fs.list(after.path().parent().unwrap()).unwrap(), [after.path()]);
    // On a real machine: a process that was here.
    let dir = tempfile::tempdir().unwrap();
    let bench = Bench::new(Arc::new(Wrapped::new(OsFs, true)), dir.path());
    let mut writer = bench.create();
    add(&mut writer, answer("하나"));
    sync(&mut writer).unwrap();
    let paper = String::from_utf8(testkit::log::read(&*bench.fs, &lease(&bench))).unwrap();
    drop(writer);
    let mut child = std::process::Command::new("true").spawn().unwrap();
    let dead = paper.replacen(&format!("\"pid\":{}", std::process::id()), &format!("\"pid\":{}", child.id()), 1);
    child.wait().unwrap();
    assert_ne!(dead, paper);
    bench.fs.open(&lease(&bench), Open::CreateNew).unwrap().append(dead.as_bytes()).unwrap();
    assert_eq!(texts(&bench.open().unwrap().0.value), ["하나"]);
}

/// Polls a future until its session is opened or given up, letting virtual time pass; says how much passed.
fn wait<F: Fs>(bench: &Bench<F>, patience: u64, mut each_second: impl FnMut(u64)) -> (Option<Writer<F>>, u64) {
    let path = bench.path();
    let mut opening = std::pin::pin!(Writer::open_waiting(bench.env(), &path, Duration::from_secs(patience)));
    let mut context = Context::from_waker(Waker::noop());
    for tick in 0.. {
        if let Poll::Ready(done) = opening.as_mut().poll(&mut context) {
            return (done.ok().map(|(loaded, _)| loaded.value), tick / 10);
        }
        if tick % 10 == 0 {
            each_second(tick / 10);
        }
        bench.clock.advance(Duration::from_millis(100));
    }
    unreachable!("patience ends")
}

lockless!(a_lease_from_elsewhere_runs_out_when_it_stands_still_and_only_then, bench => {
    let mut writer = bench.create();
    add(&mut writer, answer("하나"));
    sync(&mut writer).unwrap();
    drop(writer);
    let paper = |beat| format!("{{\"pid\":7,\"host\":\"elsewhere\",\"boot\":\"b\",\"started\":1,\"token\":\"t\",\"beat\":\"{beat:010}\"}}\n");
    let theirs = bench.fs.open(&lease(&bench), Open::CreateNew).unwrap();
    theirs.append(paper(0).as_bytes()).unwrap();
    let (opened, _) = wait(&bench, 40, |second| theirs.rewrite_at(paper(second / 5).as_bytes(), 0).unwrap());
    assert!(opened.is_none(), "it is renewed");
    let (opened, _) = wait(&bench, 29, |_| {});
    assert!(opened.is_none(), "not yet");
    let (opened, seconds) = wait(&bench, 60, |_| {});
    assert!(opened.is_some() && (30..=31).contains(&seconds), "{seconds}");
    assert_ne!(testkit::log::read(&*bench.fs, &lease(&bench)), paper(0).as_bytes(), "ours now");
    drop(opened);
    assert!(bench.fs.stat(&lease(&bench)).is_err());
});

lockless!(a_half_written_lease_counts_until_it_stood_still, bench => {
    let mut writer = bench.create();
    add(&mut writer, answer("하나"));
    sync(&mut writer).unwrap();
    drop(writer);
    bench.fs.open(&lease(&bench), Open::CreateNew).unwrap().append(b"{\"pid\":").unwrap();
    assert!(matches!(bench.open(), Err(OpenError::Leased { owner: None, .. })));
    assert!(wait(&bench, 60, |_| {}).0.is_some());
});
