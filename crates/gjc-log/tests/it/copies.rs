//! What an old session goes on in.

use gjc_entry::{Header, SessionId, Source, Timestamp};
use gjc_log::fs::{FsFile, Open};
use gjc_log::{Reader, Writer};
use testkit::log::{add, read, sync, texts};
use testkit::session::answer;

const OLD: &str = concat!(
    r#"{"type":"session","version":2,"id":"old","timestamp":"2026-06-05T07:18:54.123Z","cwd":"/"}"#,
    "\n",
    r#"{"type":"message","id":"0000000a","parentId":null,"timestamp":"2026-06-05T07:18:54Z","message":{"role":"user","content":"하나","timestamp":1}}"#,
    "\n",
    r#"{"type":"message","id":"0000000b","parentId":"0000000a","timestamp":"2026-06-05T07:18:55.123Z","message":{"role":"user","content":[broken]}}"#,
    "\n",
    r#"{"type":"message","id":"0000000c","parentId":"0000000b","timestamp":"2026-06-05T07:18:56.123Z","message":{"role":"assistant","content":[{"type":"text","text":"둘","gjcOrigin":"nobody"}],"usage":{"input":1,"reasoningTokens":7},"timestamp":1}}"#,
    "\n",
    r#"{"type":"compaction","id":"0000000d","parentId":"0000000c","timestamp":"2026-06-05T07:18:57.123Z","summary":"요약","firstKeptEntryId":"0000000b","tokensBefore":7.5}"#,
    "\n",
);

both!(a_copy_has_every_byte_of_what_can_be_read, bench => {
    let old = bench.root.join("old.jsonl");
    gjc_log::fs::mkdir_all_durable(&*bench.fs, &bench.root).unwrap();
    bench.fs.open(&old, Open::CreateNew).unwrap().append(OLD.as_bytes()).unwrap();
    let source = Reader::open(&*bench.fs, &old).unwrap().value;
    let header = Header::new(SessionId::new("new").unwrap(), Timestamp::from_millis(1), "/".into());
    let (mut writer, left) = Writer::copy(bench.env(), &source, bench.path(), header);
    assert_eq!(left.len(), 1, "{left:?}");
    assert!(bench.fs.stat(&bench.path()).is_err(), "nothing is on disk before the first new answer");
    assert_eq!(texts(&writer), ["하나", "둘"]);
    add(&mut writer, answer("셋"));
    sync(&mut writer).unwrap();
    drop(writer);
    let new = String::from_utf8(read(&*bench.fs, &bench.path())).unwrap();
    let lines: Vec<&str> = new.lines().collect();
    let before: Vec<&str> = OLD.lines().collect();
    assert_eq!(lines[1], before[1]);
    // What hung on the lost one hangs on what came before it, and is kept in its place.
    assert_eq!(lines[2], before[3].replace("\"parentId\":\"0000000b\"", "\"parentId\":\"0000000a\""));
    assert!(lines[3].contains("\"firstKeptEntryId\":\"0000000c\"") && lines[3].contains("\"tokensBefore\":7.5"), "{}", lines[3]);
    let copied = Reader::open(&*bench.fs, &bench.path()).unwrap();
    assert!(copied.damage.is_empty() && copied.value.verify_bodies().is_empty());
    assert_eq!(copied.value.skeleton().unwrap().len(), 4);
    assert_eq!(read(&*bench.fs, &old), OLD.as_bytes());
});
