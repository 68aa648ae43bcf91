//! Whole copies of a session, and branches of one path.

use gjc_entry::{Header, Leaf, SessionId, Source, Timestamp};
use gjc_log::{Reader, Writer, fork};
use testkit::log::{add, read, sync, texts};
use testkit::session::{answer, user};

fn header(id: &str) -> Header {
    Header::new(SessionId::new(id).unwrap(), Timestamp::from_millis(9), "/다른 곳".into())
}

both!(a_fork_has_all_entries_and_the_source_stays_as_it_was, bench => {
    let mut writer = bench.create();
    add(&mut writer, user("하나"));
    add(&mut writer, answer(&"둘".repeat(60_000)));
    sync(&mut writer).unwrap();
    let before = read(&*bench.fs, &bench.path());
    let to = bench.root.join("가지/new.jsonl");
    // The source is open for writing all the while.
    let forked = fork(&*bench.fs, &bench.path(), &to, header("new")).unwrap();
    assert_eq!(forked.source.id.as_str(), "s");
    let made = read(&*bench.fs, &to);
    assert_eq!(made.len() as u64, forked.len);
    let entries = |bytes: &[u8]| {
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        text.lines().skip(1).filter(|line| !line.trim().is_empty()).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(entries(&made), entries(&before));
    let (opened, _) = Writer::open(bench.env(), &to).unwrap();
    assert!(opened.damage.is_empty(), "{:?}", opened.damage);
    let mut child = opened.value;
    assert_eq!((child.header().id.as_str(), child.header().parent.as_deref()), ("new", Some("s")));
    assert_eq!(texts(&child).len(), 2);
    add(&mut child, user("셋"));
    sync(&mut child).unwrap();
    assert_eq!(read(&*bench.fs, &bench.path()), before);
    assert_eq!(texts(&child).len(), 3);
    assert_eq!(texts(&writer).len(), 2);
});

both!(a_branch_has_the_path_alone, bench => {
    let mut writer = bench.create();
    add(&mut writer, user("하나"));
    add(&mut writer, answer("둘"));
    let tree = writer.skeleton().unwrap();
    let upto = tree.id(tree.leaf().unwrap());
    add(&mut writer, user("셋"));
    add(&mut writer, answer("넷"));
    sync(&mut writer).unwrap();
    let path = bench.root.join("branch.jsonl");
    let mut branch = Writer::branch(bench.env(), &writer, Some(&upto), path.clone(), header("b")).unwrap();
    assert_eq!(texts(&branch), ["하나", "둘"]);
    assert_eq!(branch.header().parent.as_deref(), bench.path().to_str());
    assert!(bench.fs.stat(&path).is_err(), "nothing is on disk before its first answer");
    add(&mut branch, answer("다섯"));
    sync(&mut branch).unwrap();
    drop(branch);
    let opened = Reader::open(&*bench.fs, &path).unwrap();
    assert!(opened.damage.is_empty());
    assert_eq!(opened.value.path(Leaf::Current).unwrap().0.len(), 3);
});
