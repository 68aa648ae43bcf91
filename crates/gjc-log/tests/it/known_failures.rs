//! What has gone wrong in other tools, by the numbers of the list of known failures.

use crate::forks::{header, long};
use crate::simulated;
use crate::wrapped::Wrapped;
use gjc_entry::{Body, Message, SessionId, Source, StopReason, Usage};
use gjc_log::fs::sim::Fault;
use gjc_log::fs::{Fs, FsFile, Open, OsFs, mkdir_all_durable};
use gjc_log::{Health, Reader, Repaired, Writer, carry_artifacts, fork};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use testkit::log::{Bench, add, failure, heal, sync, texts};
use testkit::session::{answer, assistant, user};

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

both!(k38_what_is_said_after_a_fork_stands_in_the_fork_alone, bench => {
    drop(long(&bench, 2, 30_000));
    let before = bench.bytes();
    let to = bench.root.join(header("b").file_name());
    fork(&*bench.fs, &bench.path(), &to, header("b")).unwrap();
    let mut child = Writer::open(bench.env(), &to).unwrap().0.value;
    add(&mut child, user("갈래의 물음"));
    add(&mut child, answer("갈래의 답"));
    sync(&mut child).unwrap();
    assert!(bench.bytes() == before, "no byte of the parent");
});

both!(k40_file_name_header_and_parent_agree_from_the_first_message_on, bench => {
    let mut writer = bench.create();
    let first = writer.append(gjc_log::Batch::One(testkit::session::draft(user("하나")))).unwrap().ids[0].clone();
    add(&mut writer, answer("둘"));
    sync(&mut writer).unwrap();
    // Before the first message, and with it.
    for (id, upto) in [("before", None), ("with", Some(&first))] {
        let path = bench.root.join(header(id).file_name());
        let mut made = Writer::branch(bench.env(), &writer, upto, path.clone(), header(id)).unwrap();
        add(&mut made, answer("셋"));
        sync(&mut made).unwrap();
        drop(made);
        let read = Reader::open(&*bench.fs, &path).unwrap().value;
        assert!(path.file_stem().unwrap().to_str().unwrap().ends_with(&format!("_{}", read.header().id)), "{path:?}");
        assert_eq!(read.header().parent.as_deref(), bench.path().to_str());
    }
});

/// What a fork of a session with so many children asks of the disk, and what it changes there.
fn price(children: usize) -> (u64, u64) {
    let dir = tempfile::tempdir().unwrap();
    let bench = Bench::new(Arc::new(OsFs), dir.path());
    drop(long(&bench, 2, 30_000));
    let (old, new) = (dir.path().join("old"), dir.path().join("new"));
    mkdir_all_durable(&OsFs, &old).unwrap();
    std::fs::write(old.join("1.bash.log"), "출력").unwrap();
    for child in 0..children {
        std::fs::write(old.join(format!("{child}-Child.jsonl")), "{}\n").unwrap();
    }
    let disk = Wrapped::new(OsFs, false);
    fork(&disk, &bench.path(), &bench.root.join("fork.jsonl"), header("fork")).unwrap();
    assert_eq!(carry_artifacts(&disk, &old, &new), None);
    assert_eq!(OsFs.list(&new).unwrap(), [new.join("1.bash.log")]);
    (disk.hooks.asked.load(Ordering::Relaxed), disk.hooks.steps.load(Ordering::SeqCst))
}

#[test]
fn k41_a_fork_costs_the_same_however_many_children_there_are() {
    let (none, many) = (price(0), price(200));
    assert_eq!(many, none, "asked, changed");
    assert!(none.0 < 20, "{none:?}");
}

/// What the answers of these files cost: an entry is the same one in each file that has it, and counts once.
fn tokens<F: Fs>(fs: &F, files: &[&Path]) -> (u64, u64) {
    let (mut by_id, mut by_line) = (BTreeMap::new(), 0);
    for file in files {
        let read = Reader::open(fs, file).unwrap().value;
        let tree = read.skeleton().unwrap();
        for (ordinal, node) in tree.iter() {
            if let Body::Message(Message::Assistant(said)) = &read.body(node.at()).unwrap().body {
                by_id.insert(tree.id(ordinal).to_string(), said.usage.total_tokens);
                by_line += said.usage.total_tokens;
            }
        }
    }
    (by_id.values().sum(), by_line)
}

both!(k42_what_was_copied_is_known_by_its_ids_and_counts_once, bench => {
    let spent = |total_tokens| {
        let said = assistant(Vec::new(), StopReason::Stop);
        Body::Message(Message::Assistant(gjc_entry::AssistantMessage { usage: Usage { total_tokens, ..Usage::default() }, ..said }))
    };
    let mut writer = bench.create();
    add(&mut writer, user("하나"));
    add(&mut writer, spent(100));
    sync(&mut writer).unwrap();
    let (forked, branched) = (bench.root.join("f.jsonl"), bench.root.join("b.jsonl"));
    fork(&*bench.fs, &bench.path(), &forked, header("f")).unwrap();
    let leaf = writer.skeleton().unwrap().id(writer.leaf().unwrap());
    let mut branch = Writer::branch(bench.env(), &writer, Some(&leaf), branched.clone(), header("b")).unwrap();
    add(&mut branch, spent(7));
    sync(&mut branch).unwrap();
    let mut fork = Writer::open(bench.env(), &forked).unwrap().0.value;
    add(&mut fork, spent(50));
    sync(&mut fork).unwrap();
    let source = bench.path();
    assert_eq!(tokens(&*bench.fs, &[&source, &forked]), (150, 250));
    assert_eq!(tokens(&*bench.fs, &[&source, &forked, &branched]), (157, 357));
});
