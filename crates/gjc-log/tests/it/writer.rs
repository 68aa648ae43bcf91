//! One writer, one file, on both file systems.

use crate::{promised, simulated};
use gjc_entry::{Label, Leaf, Level, ParentOf, Source, Timestamp};
use gjc_log::fs::sim::{Fault, SimFs};
use gjc_log::fs::{Fs, FsFile, Open, OsFs};
use gjc_log::{Batch, Health, OpenError, Reader, Refused, Repaired, Tail};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use testkit::log::{Bench, add, sync, texts};
use testkit::session::{answer, draft, user};

both!(nothing_is_on_disk_before_the_first_answer, bench => {
    let mut writer = bench.create();
    let blob = writer.put_blob("시스템".as_bytes());
    add(&mut writer, user("안녕"));
    sync(&mut writer).unwrap();
    assert!(bench.fs.stat(&bench.path()).is_err());
    assert!(bench.fs.stat(&bench.root.join("sessions")).is_err());
    assert!(bench.fs.stat(&bench.root.join("blobs")).is_err());
    add(&mut writer, answer("네"));
    sync(&mut writer).unwrap();
    assert!(bench.fs.stat(&bench.root.join("blobs").join(blob.hex())).is_ok());
    drop(writer);
    let names: Vec<String> = bench.fs.list(bench.path().parent().unwrap()).unwrap()
        .iter().map(|path| path.file_name().unwrap().to_string_lossy().into()).collect();
    assert_eq!(names, ["s.jsonl"], "no temporary name is left");
    let (loaded, repaired) = bench.open().unwrap();
    assert_eq!((loaded.damage.len(), repaired), (0, Repaired::Nothing));
    assert_eq!(texts(&loaded.value), ["안녕", "네"]);
});

both!(a_session_gets_its_name_though_nobody_waits_for_it, bench => {
    let mut writer = bench.create();
    add(&mut writer, answer("x"));
    drop(writer);
    assert_eq!(texts(&bench.open().unwrap().0.value), ["x"]);
});

both!(a_session_goes_on_after_it_was_closed, bench => {
    let mut writer = bench.create();
    add(&mut writer, user("a"));
    add(&mut writer, answer("b"));
    sync(&mut writer).unwrap();
    drop(writer);
    let before = bench.bytes();
    let mut writer = bench.open().unwrap().0.value;
    add(&mut writer, user("c"));
    add(&mut writer, answer("d"));
    sync(&mut writer).unwrap();
    assert_eq!(texts(&writer), ["a", "b", "c", "d"]);
    assert!(bench.bytes().starts_with(&before));
    let reader = Reader::open(&*bench.fs, &bench.path()).unwrap();
    assert_eq!((reader.tail, reader.damage.len()), (Tail::Clean, 0));
    assert_eq!(texts(&reader.value), ["a", "b", "c", "d"]);
    assert!(reader.value.verify_bodies().is_empty());
});

both!(the_second_opener_is_told_who_has_it, bench => {
    let mut writer = bench.create();
    add(&mut writer, answer("x"));
    sync(&mut writer).unwrap();
    assert!(matches!(bench.open(), Err(OpenError::Locked { .. })));
    assert!(Reader::open(&*bench.fs, &bench.path()).is_ok(), "looking is always possible");
    drop(writer);
    assert!(bench.open().is_ok());
});

both!(every_cut_of_the_last_line_keeps_all_before_it, bench => {
    let mut writer = bench.create();
    add(&mut writer, user("질문"));
    add(&mut writer, answer("답"));
    sync(&mut writer).unwrap();
    let kept = bench.bytes().len();
    add(&mut writer, user("끊긴 말"));
    sync(&mut writer).unwrap();
    drop(writer);
    let whole = bench.bytes();
    for end in kept..whole.len() {
        let file = bench.fs.open(&bench.path(), Open::Append).unwrap();
        file.truncate(kept as u64).unwrap();
        bench.forget();
        file.append(&whole[kept..end]).unwrap();
        drop(file);
        let looked = Reader::open(&*bench.fs, &bench.path()).unwrap();
        assert_eq!(looked.tail == Tail::Clean, end == kept);
        assert_eq!(bench.bytes(), &whole[..end], "looking changes nothing");
        let (loaded, repaired) = bench.open().unwrap();
        let mut writer = loaded.value;
        if end == whole.len() - 1 {
            assert_eq!(repaired, Repaired::Completed);
            assert_eq!(texts(&writer), ["질문", "답", "끊긴 말"]);
        } else if end > kept {
            let Repaired::Cut { bytes, saved } = repaired else { panic!("{repaired:?} at {end}") };
            assert_eq!(bytes as usize, end - kept);
            let torn = testkit::log::read(&*bench.fs, &saved);
            assert!(torn.windows(end - kept).any(|window| window == &whole[kept..end]), "the cut bytes are kept");
            assert_eq!(texts(&writer), ["질문", "답"]);
        }
        add(&mut writer, answer("새"));
        sync(&mut writer).unwrap();
        drop(writer);
        let again = Reader::open(&*bench.fs, &bench.path()).unwrap();
        assert_eq!(texts(&again.value).last().unwrap(), "새");
        assert!(again.damage.is_empty());
    }
});

both!(times_never_go_back, bench => {
    let mut writer = bench.create();
    add(&mut writer, user("a"));
    bench.clock.set_wall(Timestamp::from_millis(1000));
    add(&mut writer, answer("b"));
    bench.clock.advance(Duration::from_secs(1));
    add(&mut writer, user("c"));
    sync(&mut writer).unwrap();
    let times: Vec<_> = writer.path(Leaf::Current).unwrap().0.iter().map(|node| writer.body(node.at).unwrap().at).collect();
    assert!(times.is_sorted(), "{times:?}");
    drop(writer);
    let mut writer = bench.open().unwrap().0.value;
    add(&mut writer, user("d"));
    let last = writer.path(Leaf::Current).unwrap().0.last().unwrap().at;
    assert!(writer.body(last).unwrap().at >= *times.last().unwrap());
});

both!(the_label_is_on_the_line_and_comes_back, bench => {
    let secret = Label { level: Level::Confidential, trusted: false };
    let mut writer = bench.create();
    add(&mut writer, user("a"));
    writer.append(Batch::One(gjc_entry::Draft::new(answer("b"), secret))).unwrap();
    sync(&mut writer).unwrap();
    drop(writer);
    let text = String::from_utf8(bench.bytes()).unwrap();
    let labelled: Vec<bool> = text.lines().map(|line| line.contains("gjcLabel")).collect();
    assert_eq!(labelled, [false, false, true]);
    let mut writer = bench.open().unwrap().0.value;
    assert_eq!(writer.label(), secret);
    // A typed prompt restores trust; the line must say so, though its own label were silent in a clean session.
    let typed = Label { trusted: true, ..secret };
    writer.append(Batch::One(gjc_entry::Draft::new(user("c"), typed))).unwrap();
    sync(&mut writer).unwrap();
    drop(writer);
    assert_eq!(bench.open().unwrap().0.value.label(), typed);
});

both!(trust_that_comes_back_in_a_public_session_is_written, bench => {
    let mut writer = bench.create();
    let untrusted = Label { level: Level::Public, trusted: false };
    writer.append(Batch::One(gjc_entry::Draft::new(answer("b"), untrusted))).unwrap();
    add(&mut writer, user("c"));
    add(&mut writer, user("d"));
    sync(&mut writer).unwrap();
    drop(writer);
    assert_eq!(bench.open().unwrap().0.value.label(), Label::PUBLIC_TRUSTED);
    let text = String::from_utf8(bench.bytes()).unwrap();
    assert_eq!(text.matches("gjcLabel").count(), 2);
});

both!(a_draft_under_an_unknown_parent_changes_nothing, bench => {
    let mut writer = bench.create();
    add(&mut writer, answer("x"));
    let mut lost = draft(user("y"));
    lost.parent = ParentOf::Id(gjc_entry::EntryId::new("deadbeef"));
    assert!(matches!(writer.append(Batch::One(lost)), Err(Refused::NoSuchParent(_))));
    assert_eq!(writer.skeleton().unwrap().len(), 1);
});

both!(a_file_that_is_no_session_is_left_alone, bench => {
    let dir = bench.path().parent().unwrap().to_path_buf();
    gjc_log::fs::mkdir_all_durable(&*bench.fs, &dir).unwrap();
    for content in ["", "hello", "{\"type\":\"message\"}\n", "{\"type\":\"session\",\"version\":6,\"id\":\"x\"}\n", "{\"type\":\"session\",\"id\":\"x\"}\nhalf", "\0\0\0\0", "\0\0\n", "{\"type\":\"session\",\"version\":3,\"id\":\"x\",\"timest"] {
        let file = bench.fs.open(&bench.path(), Open::CreateNew).unwrap();
        if !content.is_empty() {
            file.append(content.as_bytes()).unwrap();
        }
        drop(file);
        assert!(matches!(bench.open(), Err(OpenError::NoHeader { .. } | OpenError::Version { .. } | OpenError::Old { .. })), "{content:?}");
        assert_eq!(bench.bytes(), content.as_bytes());
        bench.fs.unlink(&bench.path()).unwrap();
        bench.forget();
    }
});

both!(a_session_in_memory_is_complete_and_leaves_no_trace, bench => {
    let mut writer = bench.memory();
    writer.put_blob(b"tools");
    add(&mut writer, user("가"));
    add(&mut writer, answer("나"));
    sync(&mut writer).unwrap();
    assert_eq!(texts(&writer), ["가", "나"]);
    assert!(bench.fs.stat(&bench.root.join("sessions")).is_err());
    assert!(bench.fs.stat(&bench.root.join("blobs")).is_err());
});

#[test]
fn a_full_disk_is_told_and_the_entries_follow_when_there_is_room() {
    let (fs, bench) = simulated();
    let mut writer = bench.create();
    add(&mut writer, answer("first"));
    sync(&mut writer).unwrap();
    let before = bench.bytes();
    fs.fault(Fault::Enospc { after_bytes: 40 });
    add(&mut writer, user("말"));
    add(&mut writer, user("두 번째"));
    let error = sync(&mut writer).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
    assert_eq!(bench.bytes(), before, "no half line stays");
    fs.clear_faults();
    writer.write();
    sync(&mut writer).unwrap();
    assert!(matches!(writer.storage().borrow().health, Health::Ok));
    drop(writer);
    assert_eq!(texts(&bench.open().unwrap().0.value), ["first", "말", "두 번째"]);
}

#[test]
fn a_folder_that_cannot_be_written_is_told_at_the_first_answer() {
    let (fs, bench) = simulated();
    gjc_log::fs::mkdir_all_durable(&*fs, bench.path().parent().unwrap()).unwrap();
    fs.fault(Fault::ReadOnlyDir(bench.path().parent().unwrap().into()));
    let mut writer = bench.create();
    add(&mut writer, user("말"));
    sync(&mut writer).unwrap();
    add(&mut writer, answer("답"));
    assert!(sync(&mut writer).is_err());
    fs.clear_faults();
    sync(&mut writer).unwrap();
    assert_eq!(texts(&Reader::open(&*fs, &bench.path()).unwrap().value), ["말", "답"]);
}

#[test]
fn the_holder_of_the_lock_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let bench = Bench::new(Arc::new(OsFs), dir.path());
    let mut writer = bench.create();
    add(&mut writer, answer("x"));
    sync(&mut writer).unwrap();
    let Err(error) = bench.open().map(|_| ()) else { panic!("opened twice") };
    assert_eq!(error.to_string(), format!("session is open in another process (pid {})", std::process::id()));
    drop(writer);
}

#[test]
fn a_name_that_its_writer_could_not_make_durable_is_made_so_by_the_next() {
    let (fs, bench) = simulated();
    let mut writer = bench.create();
    add(&mut writer, answer("x"));
    sync(&mut writer).unwrap();
    drop(writer);
    // As a process leaves it that is killed between giving the name and syncing the folder.
    let staged = bench.path().with_file_name("staged");
    fs.rename(&bench.path(), &staged).unwrap();
    fs.settle();
    fs.rename_new(&staged, &bench.path()).unwrap();
    let mut writer = bench.open().unwrap().0.value;
    add(&mut writer, user("y"));
    sync(&mut writer).unwrap();
    fs.mark(1);
    drop(writer);
    let mut states = 0;
    for (_, after) in promised(&fs) {
        assert_eq!(texts(&after.open().unwrap().0.value), ["x", "y"]);
        states += 1;
    }
    assert!(states > 0);
}

#[test]
fn folders_that_another_process_made_a_moment_ago_are_made_durable_too() {
    let (fs, bench) = simulated();
    fs.mkdir(Path::new("/agent")).unwrap();
    fs.settle();
    fs.mkdir(Path::new("/agent/sessions")).unwrap();
    fs.mkdir(bench.path().parent().unwrap()).unwrap();
    let mut writer = bench.create();
    add(&mut writer, answer("x"));
    sync(&mut writer).unwrap();
    fs.mark(1);
    drop(writer);
    for (_, after) in promised(&fs) {
        assert_eq!(texts(&after.open().unwrap().0.value), ["x"]);
    }
}

#[test]
fn a_blob_that_a_power_cut_left_as_nuls_is_written_again() {
    let (fs, bench) = simulated();
    let text = "시스템 프롬프트".as_bytes();
    let name = bench.root.join("blobs").join(gjc_log::BlobStore::<SimFs>::name(text).hex());
    gjc_log::fs::mkdir_all_durable(&*fs, name.parent().unwrap()).unwrap();
    fs.open(&name, Open::CreateNew).unwrap().append(&vec![0; text.len()]).unwrap();
    let mut writer = bench.create();
    let blob = writer.put_blob(text);
    add(&mut writer, answer("x"));
    sync(&mut writer).unwrap();
    drop(writer);
    assert_eq!(&*gjc_entry::Blobs::get(&*bench.env().blobs, &blob).unwrap(), text);
}

#[test]
fn a_session_that_comes_without_its_blobs_folder_gets_one() {
    let (fs, bench) = simulated();
    let mut writer = bench.create();
    add(&mut writer, answer("x"));
    sync(&mut writer).unwrap();
    drop(writer);
    assert!(fs.stat(&bench.root.join("blobs")).is_err());
    let mut writer = bench.open().unwrap().0.value;
    let blob = writer.put_blob(b"tools");
    add(&mut writer, user("y"));
    sync(&mut writer).unwrap();
    fs.mark(1);
    drop(writer);
    for (_, after) in promised(&fs) {
        assert!(gjc_entry::Blobs::get(&*after.env().blobs, &blob).is_ok());
    }
}

/// A session of these lines, looked at.
fn looked(lines: &[String]) -> gjc_log::Loaded<Reader<SimFs>> {
    let fs = SimFs::new();
    let path = Path::new("/s.jsonl");
    let header = r#"{"type":"session","version":3,"id":"s","timestamp":"2026-06-05T07:18:54.123Z","cwd":"/"}"#;
    let content = format!("{header}\n{}\n", lines.join("\n"));
    fs.open(path, Open::CreateNew).unwrap().append(content.as_bytes()).unwrap();
    Reader::open(&fs, path).unwrap()
}

fn line(id: &str, parent: &str, more: &str) -> String {
    let parent = if parent.is_empty() { "null".into() } else { format!("\"{parent}\"") };
    format!(
        r#"{{"type":"message","id":"{id}","parentId":{parent}{more},"message":{{"role":"user","content":"{id}"}}}}"#
    )
}

#[test]
fn a_label_counts_wherever_another_program_has_put_it() {
    let label = r#","timestamp":"2026-06-05T07:18:54.123Z","gjcLabel":{"l":"CONFIDENTIAL","t":false}"#;
    let loaded = looked(&[line("0000000a", "", label), line("0000000b", "0000000a", "")]);
    let secret = Label { level: Level::Confidential, trusted: false };
    assert_eq!(loaded.value.skeleton().unwrap().label(), secret);
}

#[test]
fn a_block_inside_a_cut_record_is_no_entry() {
    let cut = r#"{"type":"message","id":"0000000b","parentId":"0000000a","message":{"role":"assistant","content":[{"type":"toolCall","id":"x","name":"a","arguments":{}}"#;
    let loaded = looked(&[line("0000000a", "", ""), cut.into()]);
    assert_eq!((texts(&loaded.value).as_slice(), loaded.damage.len()), (["0000000a".to_owned()].as_slice(), 1));
}

#[test]
fn a_damaged_line_full_of_blocks_is_passed_over_at_once() {
    let block = r#"{"type":"text","text":"x"},{"type":"message","id":"a","parentId":null,"#;
    let loaded = looked(&[line("0000000a", "", ""), format!("{}]", block.repeat(200_000))]);
    assert_eq!(loaded.damage.len(), 1);
    assert_eq!(texts(&loaded.value), ["0000000a"]);
}

#[test]
fn a_pipe_named_like_a_session_is_refused_and_not_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    let Err(error) = Reader::open(&OsFs, &path) else { panic!("opened a pipe") };
    assert!(error.to_string().contains("no regular file"), "{error}");
}

#[test]
fn what_must_be_durable_before_the_first_answer_makes_the_first_write_due() {
    let (fs, bench) = simulated();
    let mut writer = bench.create();
    add(&mut writer, user("맡긴 일"));
    writer.make_due();
    sync(&mut writer).unwrap();
    fs.mark(1);
    drop(writer);
    for (_, after) in promised(&fs) {
        assert_eq!(texts(&after.open().unwrap().0.value), ["맡긴 일"]);
    }
}

#[test]
fn a_session_that_is_durable_at_each_entry_needs_nobody_to_ask() {
    let (fs, bench) = simulated();
    let mut writer = bench.create();
    add(&mut writer, answer("x"));
    sync(&mut writer).unwrap();
    drop(writer);
    let env = gjc_log::LogEnv { durability: gjc_log::Durability::Entry, ..bench.env() };
    let mut writer = gjc_log::Writer::open(env, &bench.path()).unwrap().0.value;
    let lsn = add(&mut writer, user("y"));
    let mut storage = writer.storage();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(gjc_log::durable(&mut storage, lsn)).unwrap();
    fs.mark(1);
    drop(writer);
    for (_, after) in promised(&fs) {
        assert_eq!(texts(&after.open().unwrap().0.value), ["x", "y"]);
    }
}

#[test]
fn an_effect_of_several_entries_is_written_intent_first() {
    let (_, bench) = simulated();
    let mut writer = bench.create();
    add(&mut writer, answer("x"));
    let rest = vec![draft(user("first")), draft(user("second"))];
    let appended = writer.append(Batch::Effect { intent: draft(user("intent")), rest }).unwrap();
    assert_eq!(appended.ids.len(), 3);
    sync(&mut writer).unwrap();
    drop(writer);
    assert_eq!(texts(&bench.open().unwrap().0.value), ["x", "intent", "first", "second"]);
}

#[test]
fn a_long_hole_at_the_end_is_told_of_and_not_copied() {
    let dir = tempfile::tempdir().unwrap();
    let bench = Bench::new(Arc::new(OsFs), dir.path()).unwatched();
    let mut writer = bench.create();
    add(&mut writer, answer("하나"));
    sync(&mut writer).unwrap();
    drop(writer);
    let whole = bench.bytes();
    let hole = 300 << 20;
    for (torn, kept) in [
        (String::new(), true),
        ("{\"type\":\"mess 반".into(), true),
        ("말".repeat(500_000), true),
        (String::new(), false),
    ] {
        std::fs::remove_file(bench.path().with_extension("jsonl.torn")).unwrap_or_default();
        // Without a line feed the record in front of the hole is whole all the same.
        let record = if kept { &whole[..] } else { &whole[..whole.len() - 1] };
        std::fs::write(bench.path(), [record, torn.as_bytes()].concat()).unwrap();
        let (from, len) = (record.len(), record.len() + torn.len() + hole);
        std::fs::OpenOptions::new().write(true).open(bench.path()).unwrap().set_len(len as u64).unwrap();
        let (loaded, repaired) = bench.open().unwrap();
        let Repaired::Cut { bytes, saved } = repaired else { panic!("{repaired:?}") };
        assert_eq!(bytes as usize, torn.len() + hole);
        assert_eq!(texts(&loaded.value), ["하나"]);
        drop(loaded);
        assert_eq!(bench.bytes(), whole);
        let (count, saved) = (torn.len() + hole, std::fs::read_to_string(saved).unwrap());
        let told =
            format!("# {count} bytes from byte {from}, the last {hole} of them are NUL and left out here, cut at ");
        assert!(saved.starts_with(&told), "{:?}", &saved[..saved.len().min(200)]);
        assert!(saved.ends_with(&format!("Z\n{torn}\n")));
    }
}

#[test]
fn a_long_torn_tail_is_saved_whole() {
    let dir = tempfile::tempdir().unwrap();
    let bench = Bench::new(Arc::new(OsFs), dir.path()).unwatched();
    let mut writer = bench.create();
    add(&mut writer, answer("하나"));
    sync(&mut writer).unwrap();
    drop(writer);
    let whole = bench.bytes();
    let torn = [&"반 줄 ".repeat(150_000).into_bytes()[..], &[0; 700]].concat();
    std::fs::write(bench.path(), [&whole[..], &torn].concat()).unwrap();
    let Repaired::Cut { saved, .. } = bench.open().unwrap().1 else { panic!() };
    let saved = std::fs::read(saved).unwrap();
    assert!(saved.starts_with(format!("# {} bytes from byte {}, cut at ", torn.len(), whole.len()).as_bytes()));
    assert!(saved.ends_with(&[&torn[..], b"\n"].concat()));
}

#[test]
fn no_line_is_written_that_a_scan_would_not_read() {
    let (_, bench) = simulated();
    let mut writer = bench.memory();
    add(&mut writer, answer("a"));
    let long = "x".repeat(128 << 20);
    assert!(matches!(writer.append(Batch::One(draft(user(&long)))), Err(Refused::TooLong(_))));
    assert_eq!(texts(&writer), ["a"]);
}

both!(what_was_delivered_makes_the_first_write_due, bench => {
    use gjc_entry::{Body, Content};
    let message = |details: &str| Body::CustomMessage {
        custom_type: "알림".into(),
        content: Content::Text("왔다".into()),
        display: true,
        details: serde_json::value::RawValue::from_string(details.into()).ok(),
    };
    let mut writer = bench.create();
    add(&mut writer, message("{\"gjc\":{\"other\":1},\"delivered\":\"d\"}"));
    assert!(!writer.on_disk());
    add(&mut writer, message("{\"gjc\":{\"delivered\":\"d-1\"}}"));
    assert!(writer.on_disk());
});
