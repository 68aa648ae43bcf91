//! Other programs that do not know our lock: they append, touch, rewrite, rename, replace, delete.

use crate::wrapped::Wrapped;
use crate::{promised, simulated};
use gjc_entry::{DamageKind, EntryId, Kind, Label, Leaf, Level, SessionId, Source};
use gjc_log::fs::sim::{Fault, SimFs};
use gjc_log::fs::{Fs, FsFile, Open, OsFs};
use gjc_log::{Lsn, Reader, Writer};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use testkit::log::{Bench, add, failure, heal, read, sync, texts};
use testkit::session::{answer, user};

/// A line of another program.
fn line(id: &str, parent: &str, more: &str) -> String {
    format!(
        "{{\"type\":\"message\",\"id\":\"{id}\",\"parentId\":{parent}{more},\"timestamp\":\"2026-06-05T07:18:55.000Z\",\"message\":{{\"role\":\"user\",\"content\":\"남의 {id}\"}}}}\n"
    )
}

fn append<F: Fs>(bench: &Bench<F>, text: &str) {
    let other = bench.fs.open(&bench.path(), Open::Append).unwrap();
    assert_eq!(other.append(text.as_bytes()).unwrap(), text.len());
}

/// Puts other content under the session's name: by a rename, or into the same file.
fn put<F: Fs>(bench: &Bench<F>, content: &[u8], same_file: bool) {
    bench.forget();
    if same_file {
        let file = bench.fs.open(&bench.path(), Open::Append).unwrap();
        file.truncate(0).unwrap();
        file.append(content).unwrap();
        return;
    }
    let temporary = bench.path().with_file_name("other.tmp");
    bench.fs.open(&temporary, Open::CreateNew).unwrap().append(content).unwrap();
    bench.fs.rename(&temporary, &bench.path()).unwrap();
}

fn begun<F: Fs>(bench: &Bench<F>) -> Writer<F> {
    let mut writer = bench.create();
    add(&mut writer, user("하나"));
    add(&mut writer, answer("둘"));
    sync(&mut writer).unwrap();
    writer
}

fn kinds(source: &dyn Source) -> Vec<Kind> {
    source.skeleton().unwrap().iter().map(|(_, node)| node.kind()).collect()
}

both!(what_another_program_appends_is_taken_in_and_our_leaf_stays, bench => {
    let mut writer = begun(&bench);
    let ours = writer.skeleton().unwrap().id(writer.leaf().unwrap());
    let generation = writer.skeleton().unwrap().generation();
    append(&bench, &line("0000000a", "null", ",\"gjcLabel\":{\"l\":\"CONFIDENTIAL\",\"t\":true}"));
    append(&bench, "no entry\n");
    let lsn = add(&mut writer, user("셋"));
    assert_eq!(failure(&writer), None);
    assert!(lsn.file > 0, "places have moved");
    assert_ne!(writer.skeleton().unwrap().generation(), generation);
    assert_eq!(texts(&writer), ["하나", "둘", "셋"]);
    assert_eq!(kinds(&writer), [Kind::Message, Kind::Message, Kind::Message, Kind::OwnLeaf, Kind::Message]);
    assert_eq!(writer.label(), Label { level: Level::Confidential, trusted: true }, "their labels join");
    let damage = writer.take_damage();
    assert!(matches!(&damage[..], [one] if matches!(one.kind, DamageKind::Frame(_))), "{damage:?}");
    assert!(writer.take_damage().is_empty());
    assert!(writer.skeleton().unwrap().find(&EntryId::new("0000000a")).is_some());
    sync(&mut writer).unwrap();
    drop(writer);
    let text = String::from_utf8(bench.bytes()).unwrap();
    let moved = text.lines().find(|line| line.contains("gjc.leaf")).unwrap();
    assert!(moved.contains(&format!("\"parentId\":\"{ours}\"")) && moved.contains("\"from\":\"0000000a\""), "{moved}");
    let again = bench.open().unwrap().0;
    assert_eq!(texts(&again.value), ["하나", "둘", "셋"]);
    assert_eq!(again.damage.len(), 1);
});

both!(what_another_program_appends_while_ours_waits_comes_first, bench => {
    let mut writer = begun(&bench);
    for round in 0..3 {
        append(&bench, &line(&format!("0000000{round}"), "null", ""));
        add(&mut writer, user(&format!("말 {round}")));
        add(&mut writer, answer(&format!("답 {round}")));
    }
    sync(&mut writer).unwrap();
    let expected = ["하나", "둘", "말 0", "답 0", "말 1", "답 1", "말 2", "답 2"];
    assert_eq!(texts(&writer), expected);
    drop(writer);
    let again = bench.open().unwrap().0;
    assert_eq!((texts(&again.value), again.damage.len()), (expected.map(String::from).to_vec(), 0));
    assert_eq!(kinds(&again.value).len(), 2 + 3 * 4);
});

#[test]
fn nobody_is_told_early_when_places_move() {
    let (fs, bench) = simulated();
    let mut writer = begun(&bench);
    fs.mark(1);
    fs.fault(Fault::Enospc { after_bytes: 0 });
    let lsn = add(&mut writer, user("기다리는"));
    let far = "x".repeat(4_000);
    fs.clear_faults();
    append(&bench, &line("0000000a", "null", &format!(",\"more\":\"{far}\"")));
    // Their lines are taken in; ours still finds no room behind them.
    fs.fault(Fault::Enospc { after_bytes: 0 });
    assert!(sync(&mut writer).is_err());
    assert!(bench.bytes().len() as u64 > lsn.len, "the file is longer than what was promised by then");
    fs.clear_faults();
    // A sync of what is there now says nothing about ours.
    assert!(writer.storage().borrow().durable < lsn);
    heal(&mut writer);
    let storage = writer.storage().borrow().clone();
    assert!(storage.durable >= lsn && storage.durable.file == 1);
    fs.mark(2);
    drop(writer);
    for (marks, after) in promised(&fs).filter(|(marks, _)| marks == &[1, 2]) {
        assert_eq!(texts(&after.open().unwrap().0.value), ["하나", "둘", "기다리는"], "{marks:?}");
    }
}

#[test]
fn another_program_that_is_faster_at_the_moment_of_a_write_tears_nothing() {
    for before in [true, false] {
        let sim = SimFs::new();
        let fs = Arc::new(Wrapped::new(sim.clone(), false));
        let hooks = Arc::clone(&fs.hooks);
        let bench = Bench::new(fs, Path::new("/agent"));
        let mut writer = begun(&bench);
        let hook = if before { &hooks.before_append } else { &hooks.after_append };
        *hook.lock().unwrap() = Some(line("0000000a", "null", "").into_bytes());
        add(&mut writer, user("셋"));
        assert_eq!(texts(&writer).last().unwrap(), "셋", "{before}");
        add(&mut writer, answer("넷"));
        let lsn = writer.want_durable();
        // The line that was written at another place than it was meant for is laid down there if a sync fails.
        sim.fault(Fault::SyncLoses { times: 1 });
        sync(&mut writer).unwrap();
        assert!(writer.storage().borrow().durable >= lsn);
        sim.mark(1);
        assert_eq!(texts(&writer), ["하나", "둘", "셋", "넷"], "{before}");
        drop(writer);
        for (_, after) in promised(&sim) {
            let again = after.open().unwrap().0;
            assert_eq!((texts(&again.value).join(" "), again.damage.len()), ("하나 둘 셋 넷".into(), 0), "{before}");
            assert!(again.value.skeleton().unwrap().find(&EntryId::new("0000000a")).is_some());
        }
    }
}

both!(a_file_that_was_only_touched_is_gone_on_with, bench => {
    let mut writer = begun(&bench);
    let content = bench.bytes();
    bench.fs.open(&bench.path(), Open::Append).unwrap().rewrite_at(&content, 0).unwrap();
    add(&mut writer, user("셋"));
    sync(&mut writer).unwrap();
    assert_eq!(texts(&writer), ["하나", "둘", "셋"]);
    drop(writer);
    assert!(bench.bytes().starts_with(&content));
    assert_eq!(kinds(&bench.open().unwrap().0.value).len(), 3);
});

#[test]
fn an_entry_that_was_changed_in_place_is_noticed_though_no_byte_was_added() {
    let (_, bench) = simulated();
    let mut writer = begun(&bench);
    let content = bench.bytes();
    let text = String::from_utf8(content.clone()).unwrap();
    let id = writer.skeleton().unwrap().id(writer.leaf().unwrap()).to_string();
    let other = text.replace(&format!("\"id\":\"{id}\""), "\"id\":\"ffffffff\"");
    assert_ne!(other, text);
    bench.fs.open(&bench.path(), Open::Append).unwrap().rewrite_at(other.as_bytes(), 0).unwrap();
    bench.forget();
    add(&mut writer, user("셋"));
    let (why, lost) = failure(&writer).unwrap();
    assert!(lost && why.contains("rewritten by another program"), "{why}");
    assert_eq!(bench.bytes(), other.as_bytes(), "nothing is written");
    bench.forget();
    bench.fs.open(&bench.path(), Open::Append).unwrap().rewrite_at(&content, 0).unwrap();
    heal(&mut writer);
    assert_eq!(texts(&writer), ["하나", "둘", "셋"]);
}

both!(a_line_in_the_making_is_waited_for, bench => {
    let mut writer = begun(&bench);
    let theirs = line("0000000a", "null", "");
    let (first, rest) = theirs.split_at(40);
    append(&bench, first);
    add(&mut writer, user("셋"));
    let (why, lost) = failure(&writer).unwrap();
    assert!(!lost && why.contains("in the middle of a line"), "{why}");
    let before = bench.bytes();
    for _ in 0..5 {
        writer.write();
    }
    assert_eq!(bench.bytes(), before);
    append(&bench, rest);
    heal(&mut writer);
    assert!(writer.skeleton().unwrap().find(&EntryId::new("0000000a")).is_some());
    assert_eq!(texts(&writer), ["하나", "둘", "셋"]);
    assert!(writer.take_damage().is_empty());
});

both!(a_line_whose_writer_died_is_ended_and_never_cut, bench => {
    let mut writer = begun(&bench);
    append(&bench, "{\"type\":\"message\",\"id\":\"반");
    add(&mut writer, user("셋"));
    assert!(failure(&writer).is_some());
    bench.clock.advance(Duration::from_millis(249));
    writer.write();
    assert!(failure(&writer).is_some(), "not yet");
    bench.clock.advance(Duration::from_millis(1));
    heal(&mut writer);
    assert_eq!(writer.take_damage().len(), 1);
    assert_eq!(texts(&writer), ["하나", "둘", "셋"]);
    drop(writer);
    assert!(String::from_utf8(bench.bytes()).unwrap().contains("\"id\":\"반\n{"));
    let again = bench.open().unwrap().0;
    assert_eq!((texts(&again.value).len(), again.damage.len()), (3, 1));
});

both!(a_file_that_was_renamed_or_deleted_is_not_written_to_and_gone_on_with_when_it_is_back, bench => {
    let mut writer = begun(&bench);
    let away = bench.path().with_file_name("옮긴.jsonl");
    let before = bench.bytes();
    bench.fs.rename(&bench.path(), &away).unwrap();
    bench.forget();
    let lsn = add(&mut writer, user("셋"));
    let (why, lost) = failure(&writer).unwrap();
    assert!(lost && why.contains("was renamed to") && why.contains("옮긴.jsonl"), "{why}");
    assert!(sync(&mut writer).is_err());
    assert_eq!(read(&*bench.fs, &away), before);
    assert!(bench.fs.stat(&bench.path()).is_err(), "no new file is made");
    assert_eq!(texts(&writer), ["하나", "둘", "셋"]);
    bench.fs.rename(&away, &bench.path()).unwrap();
    heal(&mut writer);
    assert!(!writer.storage().borrow().lost && writer.storage().borrow().durable >= lsn);
    bench.fs.unlink(&bench.path()).unwrap();
    add(&mut writer, answer("넷"));
    let (why, lost) = failure(&writer).unwrap();
    assert!(lost && why.contains("deleted or moved away") && why.contains("go on in a new one"), "{why}");
    put(&bench, &before, false);
    add(&mut writer, user("다섯"));
    let (why, lost) = failure(&writer).unwrap();
    assert!(lost && why.contains("replaced"), "an older copy lacks what was durable: {why}");
    assert_eq!(bench.bytes(), before);
    bench.forget();
    // The folder is empty again, and a person decides.
    let fork = bench.path().with_file_name("fork.jsonl");
    let header = gjc_entry::Header { id: SessionId::new("fork").unwrap(), ..writer.header().clone() };
    writer.save_as(&fork, header.clone()).unwrap();
    heal(&mut writer);
    assert_eq!(failure(&writer), None);
    add(&mut writer, answer("여섯"));
    sync(&mut writer).unwrap();
    assert!(writer.take_damage().is_empty());
    assert!(writer.save_as(&fork, header).is_err(), "never over another file");
    drop(writer);
    let saved = Writer::open(bench.env(), &fork).unwrap().0;
    assert_eq!((texts(&saved.value).join(" "), saved.damage.len()), ("하나 둘 셋 넷 다섯 여섯".into(), 0));
    assert_eq!(bench.bytes(), before);
});

both!(a_copy_with_all_that_is_durable_is_gone_on_with, bench => {
    for same_file in [false, true] {
        let _ = bench.fs.unlink(&bench.path());
        bench.forget();
        let mut writer = begun(&bench);
        let mut copy = bench.bytes();
        // Written, but nobody was promised it: the copy may lack it.
        let lsn = add(&mut writer, user("셋"));
        copy.extend_from_slice(line("0000000a", "null", "").as_bytes());
        put(&bench, &copy, same_file);
        add(&mut writer, answer("넷"));
        assert_eq!(failure(&writer), None);
        let last = writer.want_durable();
        sync(&mut writer).unwrap();
        assert!(last.file > lsn.file && writer.storage().borrow().durable >= last);
        assert_eq!(texts(&writer), ["하나", "둘", "셋", "넷"]);
        drop(writer);
        assert!(bench.bytes().starts_with(&copy));
        let again = bench.open().unwrap().0;
        assert_eq!((texts(&again.value).len(), again.damage.len()), (4, 0));
        assert!(again.value.skeleton().unwrap().find(&EntryId::new("0000000a")).is_some());
    }
});

#[test]
fn what_was_promised_is_durable_in_the_file_that_is_gone_on_with() {
    let (fs, bench) = simulated();
    let mut writer = begun(&bench);
    let copy = bench.bytes();
    let lsn = add(&mut writer, user("셋"));
    put(&bench, &copy, false);
    writer.want_durable();
    heal(&mut writer);
    assert!(writer.storage().borrow().durable >= lsn);
    fs.mark(1);
    drop(writer);
    for (_, after) in promised(&fs) {
        assert_eq!(texts(&after.open().unwrap().0.value), ["하나", "둘", "셋"]);
    }
}

#[test]
fn what_was_promised_and_laid_down_elsewhere_becomes_durable_though_nobody_asks_again() {
    let (fs, bench) = simulated();
    let mut writer = begun(&bench);
    let copy = bench.bytes();
    add(&mut writer, user("셋"));
    put(&bench, &copy, false);
    let lsn = add(&mut writer, user("넷"));
    let mut storage = writer.storage();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(gjc_log::durable(&mut storage, lsn)).unwrap();
    fs.mark(1);
    drop(writer);
    for (_, after) in promised(&fs) {
        assert_eq!(texts(&after.open().unwrap().0.value), ["하나", "둘", "셋", "넷"]);
    }
}

both!(another_writer_on_the_file_that_came_in_our_place_is_respected, bench => {
    let mut writer = begun(&bench);
    let copy = bench.bytes();
    put(&bench, &copy, false);
    let second = bench.open().unwrap().0.value;
    add(&mut writer, user("셋"));
    let (why, lost) = failure(&writer).unwrap();
    assert!(lost && why.contains("another process has the new file open"), "{why}");
    assert_eq!(bench.bytes(), copy);
    drop(second);
    heal(&mut writer);
    assert_eq!(texts(&writer), ["하나", "둘", "셋"]);
});

both!(a_file_that_was_cut_is_not_written_to, bench => {
    let mut writer = begun(&bench);
    let before = bench.bytes();
    bench.forget();
    bench.fs.open(&bench.path(), Open::Append).unwrap().truncate(before.len() as u64 - 30).unwrap();
    add(&mut writer, user("셋"));
    let (why, lost) = failure(&writer).unwrap();
    assert!(lost && why.contains("was cut to"), "{why}");
    assert_eq!(bench.bytes(), before[..before.len() - 30]);
    assert_eq!(texts(&writer), ["하나", "둘", "셋"], "what is lost in the file is still known");
    let fork = bench.path().with_file_name("fork.jsonl");
    let header = gjc_entry::Header { id: SessionId::new("fork").unwrap(), ..writer.header().clone() };
    writer.save_as(&fork, header).unwrap();
    heal(&mut writer);
    drop(writer);
    assert_eq!(texts(&Reader::open(&*bench.fs, &fork).unwrap().value), ["하나", "둘", "셋"]);
});

both!(another_session_is_never_written_to, bench => {
    let mut writer = begun(&bench);
    let other = String::from_utf8(bench.bytes()).unwrap().replacen("\"id\":\"s\"", "\"id\":\"t\"", 1);
    put(&bench, other.as_bytes(), true);
    add(&mut writer, user("셋"));
    assert!(failure(&writer).unwrap().1);
    assert_eq!(bench.bytes(), other.as_bytes());
});

#[test]
fn pi_appends_to_and_rewrites_the_open_file() {
    let dir = tempfile::tempdir().unwrap();
    let bench = Bench::new(Arc::new(OsFs), dir.path());
    let mut writer = begun(&bench);
    if testkit::pi::edit(&bench.path(), &["append", "name"]).is_none() {
        return;
    }
    let lsn = add(&mut writer, user("셋"));
    assert_eq!(failure(&writer), None);
    assert!(lsn > Lsn { file: 1, len: 0 });
    sync(&mut writer).unwrap();
    assert_eq!(texts(&writer), ["하나", "둘", "셋"], "our leaf stays ours");
    assert!(kinds(&writer).contains(&Kind::SessionInfo));
    // It loads all of ours, appends, and writes the whole file anew, from memory, into the same file.
    testkit::pi::edit(&bench.path(), &["append", "rewrite"]).unwrap();
    bench.forget();
    add(&mut writer, answer("넷"));
    assert_eq!(failure(&writer), None);
    sync(&mut writer).unwrap();
    assert_eq!(texts(&writer), ["하나", "둘", "셋", "넷"]);
    let entries = kinds(&writer).len();
    drop(writer);
    let again = bench.open().unwrap().0;
    assert_eq!((texts(&again.value).join(" "), again.damage.len()), ("하나 둘 셋 넷".into(), 0));
    let pi = testkit::pi::read(&bench.path()).unwrap();
    assert_eq!(pi["entries"], entries);
    assert_eq!(pi["messages"].as_array().unwrap().len(), 4, "pi lands on our leaf: {pi}");
    // A program that had loaded the file before we wrote more, and writes it anew then, takes durable entries out.
    let mut writer = again.value;
    let stale = read(&*bench.fs, &bench.path());
    add(&mut writer, user("다섯"));
    sync(&mut writer).unwrap();
    std::fs::write(bench.path(), &stale).unwrap();
    bench.forget();
    testkit::pi::edit(&bench.path(), &["rewrite"]).unwrap();
    let before = bench.bytes();
    add(&mut writer, answer("여섯"));
    let (why, lost) = failure(&writer).unwrap();
    assert!(lost, "{why}");
    assert_eq!(bench.bytes(), before);
    // Leaf moves are no loss: the path of the person who works here is whole.
    assert_eq!(writer.path(Leaf::Current).unwrap().0.iter().filter(|node| node.kind == Kind::Message).count(), 6);
}

both!(half_a_line_of_another_program_that_begins_as_ours_do_is_not_cut, bench => {
    let mut writer = begun(&bench);
    let theirs = line("0000000a", "null", "");
    let begin = "{\"type\":\"message\",\"id\":\"";
    assert!(theirs.starts_with(begin) && String::from_utf8_lossy(&bench.bytes()).contains(begin));
    append(&bench, begin);
    let before = bench.bytes();
    add(&mut writer, user("셋"));
    assert_eq!(bench.bytes(), before, "its end is waited for");
    append(&bench, &theirs[begin.len()..]);
    heal(&mut writer);
    assert_eq!(texts(&writer), ["하나", "둘", "셋"]);
    assert!(writer.skeleton().unwrap().find(&EntryId::new("0000000a")).is_some());
    assert!(writer.take_damage().is_empty());
});

#[test]
fn half_a_line_of_ours_that_could_not_be_cut_off_is_cut_off_later() {
    use std::sync::atomic::Ordering;
    let sim = SimFs::new();
    let bench = Bench::new(Arc::new(Wrapped::new(sim.clone(), false)), Path::new("/agent")).unwatched();
    let mut writer = begun(&bench);
    let before = bench.bytes().len();
    bench.fs.hooks.no_truncate.store(true, Ordering::Relaxed);
    sim.fault(Fault::ShortWrite { bytes: 24 });
    add(&mut writer, user("셋"));
    assert!(failure(&writer).is_some());
    assert_eq!(bench.bytes().len(), before + 24);
    add(&mut writer, user("넷"));
    assert_eq!(bench.bytes().len(), before + 24);
    bench.fs.hooks.no_truncate.store(false, Ordering::Relaxed);
    heal(&mut writer);
    assert_eq!(texts(&writer), ["하나", "둘", "셋", "넷"]);
    drop(writer);
    assert!(Reader::open(&*bench.fs, &bench.path()).unwrap().damage.is_empty());
}
