//! A disk that fails to sync: nothing is called durable that a power cut could take.

use crate::wrapped::Wrapped;
use crate::{promised, simulated};
use gjc_entry::{Blobs, Header, SessionId};
use gjc_log::fs::sim::{Fault, SimFs};
use gjc_log::fs::{Fs, FsFile, Open};
use gjc_log::{LogEnv, Writer};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use testkit::log::{Bench, add, failure, heal, sync, texts};
use testkit::session::{answer, user};

fn faults(times: u32) -> [Fault; 2] {
    [Fault::SyncFails { times }, Fault::SyncLoses { times }]
}

#[test]
fn a_failed_sync_is_never_called_durable() {
    for fault in faults(2) {
        let (fs, bench) = simulated();
        let mut writer = bench.create();
        add(&mut writer, answer("a"));
        sync(&mut writer).unwrap();
        fs.mark(1);
        let durable = bench.bytes();
        fs.fault(fault);
        let lsn = add(&mut writer, user("나"));
        assert!(sync(&mut writer).is_err(), "the bytes that were written anew failed too");
        assert!(writer.storage().borrow().durable < lsn);
        let (why, lost) = failure(&writer).unwrap();
        assert!(why.contains("written anew and tried again") && !lost, "{why}");
        // A later sync that succeeds is worth something only for what was written anew.
        let later = add(&mut writer, user("c"));
        heal(&mut writer);
        assert!(writer.storage().borrow().durable >= later);
        fs.mark(2);
        drop(writer);
        let mut states = 0;
        for (marks, after) in promised(&fs) {
            assert!(after.bytes().starts_with(&durable), "{marks:?}");
            let all = texts(&after.open().unwrap().0.value);
            if marks == [1, 2] {
                assert_eq!(all, ["a", "나", "c"]);
                states += 1;
            }
        }
        assert!(states > 0);
    }
}

#[test]
fn one_failed_sync_is_made_good_at_once_and_nobody_is_bothered() {
    for fault in faults(1) {
        let (fs, bench) = simulated();
        let mut writer = bench.create();
        add(&mut writer, answer("a"));
        fs.fault(fault);
        sync(&mut writer).unwrap();
        assert_eq!(failure(&writer), None);
        fs.mark(1);
        add(&mut writer, user("더"));
        assert_eq!(texts(&writer), ["a", "더"]);
        drop(writer);
        for (_, after) in promised(&fs) {
            assert_eq!(texts(&after.open().unwrap().0.value)[0], "a");
        }
    }
}

#[test]
fn while_syncs_fail_entries_are_read_and_written_all_the_same() {
    let (fs, bench) = simulated();
    let mut writer = bench.create();
    add(&mut writer, answer("a"));
    sync(&mut writer).unwrap();
    fs.fault(Fault::SyncLoses { times: 2 });
    add(&mut writer, user("잃은"));
    assert!(sync(&mut writer).is_err());
    assert!(!String::from_utf8_lossy(&bench.bytes()).contains("잃은"), "the page was dropped");
    bench.forget();
    assert_eq!(texts(&writer), ["a", "잃은"]);
    add(&mut writer, user("b"));
    heal(&mut writer);
    drop(writer);
    assert_eq!(texts(&bench.open().unwrap().0.value), ["a", "잃은", "b"]);
}

#[test]
fn lines_of_a_dead_writer_do_not_lose_their_chance() {
    let (fs, bench) = simulated();
    let mut writer = bench.create();
    add(&mut writer, answer("a"));
    sync(&mut writer).unwrap();
    fs.mark(1);
    let durable = bench.bytes();
    add(&mut writer, user("죽은"));
    drop(writer);
    let mut writer = bench.open().unwrap().0.value;
    add(&mut writer, user("b"));
    fs.fault(Fault::SyncFails { times: 2 });
    assert!(sync(&mut writer).is_err());
    heal(&mut writer);
    fs.mark(2);
    drop(writer);
    for (marks, after) in promised(&fs) {
        assert!(after.bytes().starts_with(&durable), "what was durable before is not put at risk");
        let all = texts(&after.open().unwrap().0.value);
        assert!(marks == [1] || all == ["a", "죽은", "b"], "{marks:?} {all:?}");
    }
}

#[test]
fn a_blob_whose_sync_fails_is_stored_anew() {
    for times in [1, 2] {
        for fault in faults(times) {
            let (fs, bench) = simulated();
            let mut writer = bench.create();
            add(&mut writer, answer("a"));
            sync(&mut writer).unwrap();
            let blob = writer.put_blob("도구".as_bytes());
            add(&mut writer, user("b"));
            fs.fault(fault);
            assert_eq!(sync(&mut writer).is_ok(), times == 1);
            heal(&mut writer);
            fs.mark(1);
            drop(writer);
            assert!(fs.list(&bench.root.join("blobs")).unwrap().len() == 1, "no temporary name is left");
            let mut states = 0;
            for (_, after) in promised(&fs) {
                assert_eq!(&*after.env().blobs.get(&blob).unwrap(), "도구".as_bytes());
                assert_eq!(texts(&after.open().unwrap().0.value), ["a", "b"]);
                states += 1;
            }
            assert!(states > 0);
        }
    }
}

/// A machine whose disk a test can look behind, and on which other things happen.
fn wrapped() -> (SimFs, Bench<Wrapped<SimFs>>) {
    let fs = SimFs::new();
    (fs.clone(), Bench::new(Arc::new(Wrapped::new(fs, false)), Path::new("/agent")).unwatched())
}

#[test]
fn what_is_appended_while_a_sync_fails_is_laid_down_anew_too() {
    for fault in faults(1) {
        let (fs, bench) = wrapped();
        let mut writer = bench.create();
        add(&mut writer, answer("a"));
        sync(&mut writer).unwrap();
        let (begins, goes_on) = bench.fs.hooks.hold();
        fs.fault(fault);
        add(&mut writer, user("나"));
        writer.want_durable();
        begins.recv().unwrap();
        add(&mut writer, user("그 사이"));
        goes_on.send(()).unwrap();
        sync(&mut writer).unwrap();
        fs.mark(1);
        assert_eq!(failure(&writer), None);
        drop(writer);
        let mut states = 0;
        for (_, after) in promised(&fs) {
            assert_eq!(texts(&after.open().unwrap().0.value), ["a", "나", "그 사이"]);
            states += 1;
        }
        assert!(states > 0);
    }
}

#[test]
fn a_failed_sync_does_not_write_an_old_file_anew() {
    let (fs, bench) = wrapped();
    let mut writer = bench.create();
    for number in 0..100 {
        add(&mut writer, answer(&format!("{number} {}", "한글 ".repeat(6000))));
    }
    sync(&mut writer).unwrap();
    drop(writer);
    let before = bench.bytes();
    assert!(before.len() > 4 << 20);
    let mut writer = bench.open().unwrap().0.value;
    add(&mut writer, user("새"));
    fs.fault(Fault::SyncFails { times: 1 });
    sync(&mut writer).unwrap();
    assert!(bench.bytes().starts_with(&before));
    let rewritten = bench.fs.hooks.rewritten.load(Ordering::Relaxed);
    assert!(rewritten < 2 << 20, "{rewritten}");
}

#[test]
fn a_file_that_is_cut_while_it_is_laid_down_anew_is_not_made_longer() {
    let (fs, bench) = wrapped();
    let mut writer = bench.create();
    add(&mut writer, answer("a"));
    sync(&mut writer).unwrap();
    add(&mut writer, user(&"나".repeat(300_000)));
    fs.fault(Fault::SyncFails { times: 1 });
    *bench.fs.hooks.cut_after_rewrite.lock().unwrap() = Some(100);
    assert!(sync(&mut writer).is_err());
    assert_eq!(bench.bytes().len(), 100);
}

#[test]
fn a_folder_above_that_may_not_be_read_keeps_no_session_from_being_durable() {
    let (_, bench) = wrapped();
    for above in ["/agent/sessions", "/agent"] {
        *bench.fs.hooks.unreadable.lock().unwrap() = Some(above.into());
        let path = bench.path().with_file_name(format!("{}.jsonl", above.len()));
        let mut writer = Writer::create(bench.env(), path.clone(), bench.create().header().clone());
        add(&mut writer, answer("하나"));
        sync(&mut writer).unwrap();
        drop(writer);
        let mut writer = Writer::open(bench.env(), &path).unwrap().0.value;
        add(&mut writer, user("둘"));
        sync(&mut writer).unwrap();
        assert_eq!(failure(&writer), None);
    }
    // The folder of the session itself holds the name that is promised.
    *bench.fs.hooks.unreadable.lock().unwrap() = bench.path().parent().map(Path::to_path_buf);
    let mut writer = bench.create();
    add(&mut writer, answer("하나"));
    assert!(sync(&mut writer).is_err());
}

#[test]
fn two_writers_of_one_store_both_wait_for_a_blob() {
    let (fs, bench) = simulated();
    let env = bench.env();
    let mut writer = Writer::create(env.clone(), bench.path(), bench.create().header().clone());
    let header = Header { id: SessionId::new("t").unwrap(), ..writer.header().clone() };
    let path = bench.path().with_file_name("t.jsonl");
    let mut other = Writer::create(env, path.clone(), header);
    for writer in [&mut writer, &mut other] {
        add(writer, answer("a"));
        sync(writer).unwrap();
    }
    // The first has stored it, and never syncs.
    let blob = writer.put_blob("그림".as_bytes());
    add(&mut writer, user("b"));
    assert_eq!(other.put_blob("그림".as_bytes()), blob);
    add(&mut other, user("b"));
    sync(&mut other).unwrap();
    fs.mark(1);
    drop((writer, other));
    let mut states = 0;
    for (_, after) in promised(&fs) {
        assert_eq!(&*after.env().blobs.get(&blob).unwrap(), "그림".as_bytes());
        states += 1;
    }
    assert!(states > 0);
}

both!(a_long_blob_is_not_kept_in_memory_once_it_is_durable, bench => {
    let env: LogEnv<_> = bench.env();
    let mut writer = Writer::create(env, bench.path(), bench.create().header().clone());
    let (long, short) = ("긴 ".repeat(50_000), "짧은");
    let names = [&long, short].map(|text| writer.put_blob(text.as_bytes()));
    add(&mut writer, answer("a"));
    assert_eq!(&*writer.blobs().get(&names[0]).unwrap(), long.as_bytes());
    sync(&mut writer).unwrap();
    assert_eq!(&*writer.blobs().get(&names[0]).unwrap(), long.as_bytes());
    let file = |at: usize| bench.root.join("blobs").join(names[at].hex());
    bench.fs.unlink(&file(0)).unwrap();
    bench.fs.unlink(&file(1)).unwrap();
    assert!(writer.blobs().get(&names[0]).is_err(), "it came from the file");
    assert_eq!(&*writer.blobs().get(&names[1]).unwrap(), short.as_bytes());
    // Put in once more, it is stored once more.
    writer.put_blob(long.as_bytes());
    add(&mut writer, user("b"));
    sync(&mut writer).unwrap();
    assert_eq!(bench.fs.open(&file(0), Open::Read).unwrap().stat().unwrap().len, long.len() as u64);
});
