//! New sessions of one path of another.

use crate::forks::{header, lay};
use gjc_entry::{Body, Draft, EntryId, Kind, Label, Leaf, Level, Own, ParentOf, Source};
use gjc_log::fs::Fs;
use gjc_log::{Batch, ForkError, Reader, Writer};
use testkit::log::{Bench, add, read, sync, texts};
use testkit::session::{answer, user};

/// The entry that was added last.
fn last<F: Fs>(writer: &Writer<F>) -> EntryId {
    let tree = writer.skeleton().unwrap();
    tree.id(tree.leaf().unwrap())
}

fn say<F: Fs>(writer: &mut Writer<F>, body: Body, parent: ParentOf, label: Label) -> EntryId {
    writer.append(Batch::One(Draft { parent, ..Draft::new(body, label) })).unwrap();
    last(writer)
}

fn label(target: &EntryId, label: Option<&str>) -> Body {
    Body::Label { target: target.clone(), label: label.map(str::to_owned) }
}

/// What each entry is called in the end.
fn places(source: &dyn Source) -> Vec<(EntryId, String)> {
    let mut names: Vec<(EntryId, String)> = Vec::new();
    for (_, node) in source.skeleton().unwrap().iter().filter(|(_, node)| node.kind() == Kind::Label) {
        let Body::Label { target, label } = source.body(node.at()).unwrap().body.clone() else { panic!() };
        names.retain(|(place, _)| *place != target);
        names.extend(label.map(|label| (target, label)));
    }
    names
}

fn branch<F: Fs>(bench: &Bench<F>, source: &Writer<F>, upto: Option<&EntryId>) -> Writer<F> {
    Writer::branch(bench.env(), source, upto, bench.root.join("branch.jsonl"), header("b")).unwrap()
}

both!(a_branch_has_the_lines_of_the_path_and_a_file_with_its_first_answer, bench => {
    let mut writer = bench.create();
    add(&mut writer, user("하나"));
    add(&mut writer, answer("둘"));
    let upto = last(&writer);
    add(&mut writer, user("셋"));
    add(&mut writer, answer("넷"));
    sync(&mut writer).unwrap();
    // From a file that is written, and from one that is only looked at; some of it may not be on disk yet.
    add(&mut writer, user("다섯"));
    let source = read(&*bench.fs, &bench.path());
    let path = bench.root.join("branch.jsonl");
    let mut made = branch(&bench, &writer, Some(&upto));
    assert_eq!(texts(&made), ["하나", "둘"]);
    let looked = Reader::open(&*bench.fs, &bench.path()).unwrap().value;
    let other = Writer::branch(bench.env(), &looked, Some(&upto), path.clone(), header("b")).unwrap();
    assert_eq!(texts(&other), texts(&made));
    assert!(bench.fs.stat(&path).is_err(), "nothing is on disk before its first answer");
    add(&mut made, user("여섯"));
    assert!(bench.fs.stat(&path).is_err());
    add(&mut made, answer("일곱"));
    sync(&mut made).unwrap();
    drop(made);
    let (text, before) = (read(&*bench.fs, &path), String::from_utf8(source.clone()).unwrap());
    let text = String::from_utf8(text).unwrap();
    assert_eq!(text.lines().skip(1).take(2).collect::<Vec<_>>(), before.lines().skip(1).take(2).collect::<Vec<_>>());
    let opened = Reader::open(&*bench.fs, &path).unwrap();
    assert!(opened.damage.is_empty() && opened.value.verify_bodies().is_empty());
    assert_eq!(texts(&opened.value), ["하나", "둘", "여섯", "일곱"]);
    assert_eq!(read(&*bench.fs, &bench.path()), source, "the source is as it was");
});

// K40: a branch at the first message has no entries, and yet a parent; id and file name agree.
both!(a_branch_before_the_first_message_is_empty_and_knows_its_parent, bench => {
    let mut writer = bench.create();
    add(&mut writer, user("하나"));
    add(&mut writer, answer("둘"));
    sync(&mut writer).unwrap();
    let path = bench.root.join(header("b").file_name());
    let mut made = Writer::branch(bench.env(), &writer, None, path.clone(), header("b")).unwrap();
    assert_eq!(made.skeleton().unwrap().len(), 0);
    assert_eq!((made.header().id.as_str(), made.header().parent.as_deref()), ("b", bench.path().to_str()));
    add(&mut made, answer("셋"));
    sync(&mut made).unwrap();
    assert_eq!(texts(&Reader::open(&*bench.fs, &path).unwrap().value), ["셋"]);
});

both!(a_branch_knows_what_the_whole_session_knows, bench => {
    let secret = Label { level: Level::Confidential, trusted: false };
    let mut writer = bench.create();
    let first = say(&mut writer, user("하나"), ParentOf::Root, Label::PUBLIC_TRUSTED);
    say(&mut writer, answer("비밀"), ParentOf::Leaf, secret);
    // Another program goes on at the first message; its line has no label, and so the session's.
    sync(&mut writer).unwrap();
    drop(writer);
    let foreign = format!(
        "{{\"type\":\"message\",\"id\":\"0f0f0f0f\",\"parentId\":\"{first}\",\"timestamp\":\"2026-06-05T07:18:54Z\",\"message\":{{\"role\":\"user\",\"content\":\"남의 말\",\"timestamp\":1}}}}\n"
    );
    let text = [read(&*bench.fs, &bench.path()), foreign.clone().into_bytes()].concat();
    let source = Reader::open(&*bench.fs, &lay(&bench, "s", &text)).unwrap().value;
    let tree = source.skeleton().unwrap();
    for upto in [Some(EntryId::new("0f0f0f0f")), Some(first.clone()), None] {
        let path = bench.root.join(format!("b{upto:?}.jsonl"));
        let mut made = Writer::branch(bench.env(), &source, upto.as_ref(), path.clone(), header("b")).unwrap();
        assert_eq!(made.label(), secret, "{upto:?}");
        let own = made.skeleton().unwrap();
        for (ordinal, node) in own.iter().filter(|(_, node)| node.kind() == Kind::Message) {
            let there = tree.node(tree.find(&own.id(ordinal)).unwrap()).unwrap();
            assert_eq!(node.label(), there.label(), "each entry is as secret as it was");
        }
        add(&mut made, answer("끝"));
        sync(&mut made).unwrap();
        drop(made);
        let again = Reader::open(&*bench.fs, &path).unwrap();
        assert!(again.damage.is_empty());
        assert_eq!(again.value.skeleton().unwrap().label().level, Level::Confidential);
        let text = String::from_utf8(read(&*bench.fs, &path)).unwrap();
        assert!(text.contains(r#""customType":"gjc.taint""#) && !text.contains("비밀"), "{text}");
        assert_eq!(text.contains(&*foreign), upto == Some(EntryId::new("0f0f0f0f")), "as it was, byte for byte");
    }
});

both!(a_clean_session_s_branch_says_nothing_of_taint, bench => {
    let mut writer = bench.create();
    add(&mut writer, user("하나"));
    let upto = last(&writer);
    add(&mut writer, answer("둘"));
    let made = branch(&bench, &writer, Some(&upto));
    assert_eq!((made.skeleton().unwrap().len(), made.label()), (1, Label::PUBLIC_TRUSTED));
});

both!(names_of_places_come_along_wherever_they_were_given, bench => {
    let mut writer = bench.create();
    let one = say(&mut writer, user("하나"), ParentOf::Root, Label::PUBLIC_TRUSTED);
    let on_path = say(&mut writer, label(&one, Some("처음")), ParentOf::Leaf, Label::PUBLIC_TRUSTED);
    let two = say(&mut writer, answer("둘"), ParentOf::Leaf, Label::PUBLIC_TRUSTED);
    let three = say(&mut writer, user("셋"), ParentOf::Leaf, Label::PUBLIC_TRUSTED);
    say(&mut writer, label(&two, Some("옛 이름")), ParentOf::Id(one.clone()), Label::PUBLIC_TRUSTED);
    say(&mut writer, label(&two, Some("둘째")), ParentOf::Leaf, Label::PUBLIC_TRUSTED);
    say(&mut writer, label(&three, Some("길 밖")), ParentOf::Leaf, Label::PUBLIC_TRUSTED);
    let made = branch(&bench, &writer, Some(&two));
    assert_eq!(places(&made), [(one.clone(), "처음".into()), (two.clone(), "둘째".into())]);
    // What the path says itself is there once, under its id; what was said elsewhere has an id of its own.
    let tree = made.skeleton().unwrap();
    assert_eq!(tree.len(), 4);
    assert!(tree.find(&on_path).is_some() && writer.skeleton().unwrap().find(&last(&made)).is_none());
    assert_eq!(texts(&made), ["하나", "둘"]);
    // A name that was taken back elsewhere is gone here too.
    say(&mut writer, label(&one, None), ParentOf::Leaf, Label::PUBLIC_TRUSTED);
    say(&mut writer, label(&two, Some("")), ParentOf::Leaf, Label::PUBLIC_TRUSTED);
    let made = branch(&bench, &writer, Some(&two));
    assert_eq!(places(&made), []);
});

both!(a_moved_leaf_s_branch_is_the_path_of_the_moved_leaf, bench => {
    let mut writer = bench.create();
    let one = say(&mut writer, user("하나"), ParentOf::Root, Label::PUBLIC_TRUSTED);
    let away = say(&mut writer, answer("버린 가지"), ParentOf::Leaf, Label::PUBLIC_TRUSTED);
    let body = Body::Own(Own::Leaf { from: Some(away), to: Some(one.clone()) });
    say(&mut writer, body, ParentOf::Id(one), Label::PUBLIC_TRUSTED);
    let two = say(&mut writer, answer("둘"), ParentOf::Leaf, Label::PUBLIC_TRUSTED);
    let made = branch(&bench, &writer, Some(&two));
    assert_eq!((texts(&made), made.skeleton().unwrap().len()), (vec!["하나".into(), "둘".into()], 3));
    assert_eq!(made.path(Leaf::Current).unwrap().0.len(), 3);
});

both!(what_is_not_there_cannot_be_branched_at, bench => {
    let mut writer = bench.create();
    add(&mut writer, user("하나"));
    let path = bench.root.join("branch.jsonl");
    let error = Writer::branch(bench.env(), &writer, Some(&EntryId::Short(7)), path, header("b")).err().unwrap();
    assert!(matches!(error, ForkError::NoSuchEntry(EntryId::Short(7))) && error.hint().is_some());
});

both!(what_later_lines_change_of_the_path_stands_in_the_branch, bench => {
    let text = concat!(
        r#"{"type":"session","version":5,"id":"old","timestamp":"2026-06-05T07:18:54.123Z","cwd":"/a"}"#, "\n",
        r#"{"type":"message","id":"0000000a","parentId":null,"timestamp":"2026-06-05T07:18:54Z","message":{"role":"user","content":"하나","timestamp":1}}"#, "\n",
        r#"{"type":"message","id":"0000000b","parentId":"0000000a","timestamp":"2026-06-05T07:18:55Z","message":{"role":"user","content":"둘","timestamp":2}}"#, "\n",
        r#"{"type":"entry_patch","entryId":"0000000a","patch":{"message":{"role":"user","content":"새 하나","timestamp":2}}}"#, "\n",
    );
    let path = lay(&bench, "old.jsonl", text.as_bytes());
    let upto = EntryId::new("0000000b");
    let looked = Reader::open(&*bench.fs, &path).unwrap().value;
    let made = Writer::branch(bench.env(), &looked, Some(&upto), bench.root.join("b.jsonl"), header("b")).unwrap();
    assert_eq!((texts(&made), made.header().version), (vec!["새 하나".into(), "둘".into()], 3));
    let (writer, _) = Writer::open(bench.env(), &path).unwrap();
    let made = Writer::branch(bench.env(), &writer.value, Some(&upto), bench.root.join("b.jsonl"), header("b")).unwrap();
    assert_eq!(texts(&made), ["새 하나", "둘"]);
});
