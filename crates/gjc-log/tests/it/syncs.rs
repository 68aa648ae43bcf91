//! A disk that fails to sync: nothing is called durable that a power cut could take.

use crate::{promised, simulated};
use gjc_entry::Blobs;
use gjc_log::fs::Fs;
use gjc_log::fs::sim::Fault;
use testkit::log::{add, failure, heal, sync, texts};
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
