//! What has gone wrong in other tools, by the numbers of the list of known failures.

use crate::simulated;
use gjc_entry::SessionId;
use gjc_log::fs::sim::Fault;
use gjc_log::fs::{FsFile, Open};
use gjc_log::{Health, Reader, Repaired, Writer};
use testkit::log::{add, failure, heal, sync, texts};
use testkit::session::{answer, user};

both!(k02_a_tail_cut_inside_a_code_point_stops_no_append, bench => {
    let mut writer = bench.create();
    add(&mut writer, answer("x"));
    sync(&mut writer).unwrap();
    drop(writer);
    let half = b"{\"type\":\"message\",\"id\":\"0000000a\",\"parentId\":null,\"message\":{\"role\":\"user\",\"content\":\"\xED\x95";
    bench.fs.open(&bench.path(), Open::Append).unwrap().append(half).unwrap();
    let (loaded, repaired) = bench.open().unwrap();
    let Repaired::Cut { bytes, saved } = repaired else { panic!("{repaired:?}") };
    assert_eq!(bytes as usize, half.len());
    assert!(testkit::log::read(&*bench.fs, &saved).windows(half.len()).any(|window| window == half));
    let mut writer = loaded.value;
    add(&mut writer, user("한"));
    sync(&mut writer).unwrap();
    drop(writer);
    let looked = Reader::open(&*bench.fs, &bench.path()).unwrap();
    assert_eq!((texts(&looked.value), looked.damage.len()), (vec!["x".to_owned(), "한".into()], 0));
});

both!(k03_nul_blocks_cost_no_record_and_are_trimmed_by_the_next_writer, bench => {
    // A whole record without its line feed, then a hole; and a hole on a line of its own.
    for (line_feed, hole) in [(false, 9 << 10), (true, 140 << 10)] {
        let _ = bench.fs.unlink(&bench.path());
        bench.forget();
        let mut writer = bench.create();
        add(&mut writer, answer("x"));
        add(&mut writer, user("질문"));
        sync(&mut writer).unwrap();
        drop(writer);
        let file = bench.fs.open(&bench.path(), Open::Append).unwrap();
        if !line_feed {
            bench.forget();
            file.truncate(file.stat().unwrap().len - 1).unwrap();
        }
        file.append(&vec![0; hole]).unwrap();
        assert_eq!(texts(&Reader::open(&*bench.fs, &bench.path()).unwrap().value)[0], "x");
        let (loaded, repaired) = bench.open().unwrap();
        assert!(matches!(repaired, Repaired::Cut { bytes, .. } if bytes == hole as u64), "{repaired:?}");
        let mut writer = loaded.value;
        assert_eq!(texts(&writer), ["x", "질문"]);
        add(&mut writer, user("y"));
        sync(&mut writer).unwrap();
        drop(writer);
        let looked = Reader::open(&*bench.fs, &bench.path()).unwrap();
        assert_eq!((texts(&looked.value), looked.damage.len()), (vec!["x".into(), "질문".into(), "y".to_owned()], 0));
        assert!(!bench.bytes().contains(&0));
    }
});

#[test]
fn k07_a_full_disk_is_told_at_once_and_written_to_when_there_is_room() {
    let (fs, bench) = simulated();
    fs.fault(Fault::Enospc { after_bytes: 700 });
    let mut writer = bench.create();
    add(&mut writer, answer("처음"));
    let mut told = None;
    for n in 0..20 {
        add(&mut writer, user(&format!("말 {n}")));
        told = told.or(failure(&writer).map(|_| n));
    }
    assert!(told.is_some_and(|n| n < 10), "{told:?}");
    let (why, lost) = failure(&writer).unwrap();
    assert!(!lost, "{why}");
    fs.clear_faults();
    heal(&mut writer);
    assert!(matches!(writer.storage().borrow().health, Health::Ok));
    drop(writer);
    assert_eq!(texts(&bench.open().unwrap().0.value).len(), 21);
}

#[test]
fn k08_a_first_write_that_fails_is_told_and_not_swallowed() {
    let (fs, bench) = simulated();
    gjc_log::fs::mkdir_all_durable(&*fs, bench.path().parent().unwrap()).unwrap();
    fs.fault(Fault::ReadOnlyDir(bench.path().parent().unwrap().into()));
    let mut writer = bench.create();
    let blob = writer.put_blob("큰 결과".as_bytes());
    add(&mut writer, answer("답"));
    assert!(failure(&writer).is_some(), "told with the very entry");
    fs.clear_faults();
    heal(&mut writer);
    assert!(gjc_entry::Blobs::get(&*bench.env().blobs, &blob).is_ok());
    assert_eq!(texts(&Reader::open(&*fs, &bench.path()).unwrap().value), ["답"]);
}

both!(k10_after_a_fork_both_sessions_can_be_resumed, bench => {
    let mut writer = bench.create();
    add(&mut writer, answer("하나"));
    sync(&mut writer).unwrap();
    let fork = bench.path().with_file_name("fork.jsonl");
    let header = gjc_entry::Header { id: SessionId::new("fork").unwrap(), ..writer.header().clone() };
    writer.save_as(&fork, header).unwrap();
    add(&mut writer, user("둘"));
    sync(&mut writer).unwrap();
    // The first is free as soon as the fork goes on without it.
    assert_eq!(texts(&bench.open().unwrap().0.value), ["하나"]);
    drop(writer);
    let (loaded, repaired) = Writer::open(bench.env(), &fork).unwrap();
    assert_eq!((texts(&loaded.value), repaired), (vec!["하나".to_owned(), "둘".into()], Repaired::Nothing));
    assert_eq!(loaded.value.header().id.to_string(), "fork");
});
