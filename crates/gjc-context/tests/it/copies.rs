//! Forks and branches of random files: the context in the copy is the context at that place of the source.

use crate::files::{Line, file, line};
use crate::model::{assert_same, written};
use gjc_context::select;
use gjc_entry::{Body, Draft, EntryId, Header, Label, Leaf, Own, ParentOf, SessionId, Source, Timestamp};
use gjc_log::fs::sim::SimFs;
use gjc_log::fs::{Fs, FsFile, Open, OsFs};
use gjc_log::{Batch, Reader, Writer, fork};
use proptest::prelude::*;
use std::path::Path;
use std::sync::Arc;
use testkit::log::{Bench, add, read, sync};
use testkit::session::{answer, user};

fn header() -> Header {
    Header::new(SessionId::new("new").unwrap(), Timestamp::from_millis(9), "/다른 곳".into())
}

fn laid(dir: &Path, version: u64, title: bool, lines: &[Line]) -> Reader<OsFs> {
    let path = dir.join("s.jsonl");
    OsFs.open(&path, Open::CreateNew).unwrap().append(file(version, title, lines).as_bytes()).unwrap();
    Reader::open(&OsFs, &path).unwrap().value
}

/// The leaf, and every fifth entry that has a name.
fn places(source: &Reader<OsFs>) -> Vec<Leaf> {
    let tree = source.skeleton().unwrap();
    let named = tree.iter().filter(|(_, node)| !node.is_nameless()).map(|(at, _)| Leaf::At(at));
    std::iter::once(Leaf::Current).chain(named.step_by(5)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_fork_has_the_context_of_its_source_everywhere(
        version in 1u64..=5, title in any::<bool>(), lines in proptest::collection::vec(line(), 0..60)
    ) {
        let dir = tempfile::tempdir().unwrap();
        let source = laid(dir.path(), version, title, &lines);
        let to = dir.path().join("fork.jsonl");
        let forked = fork(&OsFs, source.file_path(), &to, header()).unwrap();
        let copy = Reader::open(&OsFs, &to).unwrap().value;
        prop_assert_eq!(&copy.header().title, &source.header().title);
        prop_assert_eq!((copy.header().version, &*copy.header().cwd), (3, "/다른 곳"));
        prop_assert_eq!(forked.header.parent.as_deref(), Some("s"));
        let tree = source.skeleton().unwrap();
        for leaf in places(&source) {
            let there = match leaf {
                Leaf::At(at) => Leaf::At(copy.skeleton().unwrap().find(&tree.id(at)).unwrap()),
                leaf => leaf,
            };
            assert_same(&format!("{leaf:?}"), &written(&select(&copy, there).unwrap().0), &written(&select(&source, leaf).unwrap().0));
        }
    }

    #[test]
    fn a_branch_has_the_context_of_its_source_at_that_place(
        version in 3u64..=5, title in any::<bool>(), lines in proptest::collection::vec(line(), 0..60)
    ) {
        let dir = tempfile::tempdir().unwrap();
        let source = laid(dir.path(), version, title, &lines);
        let bench = Bench::new(Arc::new(OsFs), dir.path());
        let tree = source.skeleton().unwrap();
        for (n, leaf) in places(&source).into_iter().enumerate() {
            let upto = match leaf {
                Leaf::At(at) => Some(tree.id(at)),
                _ => tree.leaf().map(|leaf| tree.id(leaf)),
            };
            let path = dir.path().join(format!("branch{n}.jsonl"));
            let mut branch = Writer::branch(bench.env(), &source, upto.as_ref(), path.clone(), header()).unwrap();
            let expected = written(&select(&source, leaf).unwrap().0);
            assert_same("in memory", &written(&select(&branch, Leaf::Current).unwrap().0), &expected);
            if n % 4 == 0 {
                add(&mut branch, answer("끝"));
                sync(&mut branch).unwrap();
                drop(branch);
                let read = Reader::open(&OsFs, &path).unwrap().value;
                let mut context = written(&select(&read, Leaf::Current).unwrap().0);
                context.pop();
                assert_same("on disk", &context, &expected);
            }
        }
    }
}

fn say<F: Fs>(writer: &mut Writer<F>, body: Body, parent: ParentOf) -> EntryId {
    let draft = Draft { parent, ..Draft::new(body, Label::PUBLIC_TRUSTED) };
    writer.append(Batch::One(draft)).unwrap().ids[0].clone()
}

/// A session with moves, names of places, a new name, a compaction, and enough to share; the place of its first answer.
fn lived(bench: &Bench<SimFs>) -> (Writer<SimFs>, EntryId) {
    let mut writer = bench.create();
    say(&mut writer, user("하나"), ParentOf::Leaf);
    let first = say(&mut writer, answer(&"첫 답 ".repeat(20_000)), ParentOf::Leaf);
    say(&mut writer, Body::Label { target: first.clone(), label: Some("여기".into()) }, ParentOf::Leaf);
    let kept = say(&mut writer, user("둘"), ParentOf::Leaf);
    let away = say(&mut writer, answer("버린 답"), ParentOf::Leaf);
    let moved = Own::Leaf { from: Some(away.clone()), to: Some(kept.clone()) };
    say(&mut writer, Body::Own(moved), ParentOf::Id(kept.clone()));
    say(&mut writer, answer("둘째 답"), ParentOf::Leaf);
    let summary = Body::Compaction { summary: "요약".into(), first_kept: kept, tokens_before: 9 };
    say(&mut writer, summary, ParentOf::Leaf);
    say(&mut writer, user("셋"), ParentOf::Leaf);
    say(&mut writer, Body::SessionInfo { name: Some("새 이름".into()) }, ParentOf::Leaf);
    say(&mut writer, Body::Label { target: away, label: Some("길 밖".into()) }, ParentOf::Leaf);
    sync(&mut writer).unwrap();
    (writer, first)
}

/// Other programs of the family find the same leaf and the same context in a fork and in a branch, and find the files at
/// all, although a fork that shares blocks has a line of blanks behind its header.
#[test]
fn pi_reads_forks_and_branches_as_we_do() {
    let bench = Bench::new(Arc::new(SimFs::new()), Path::new("/agent"));
    let (writer, first) = lived(&bench);
    let to = bench.root.join("fork.jsonl");
    assert!(fork(&*bench.fs, &bench.path(), &to, header()).unwrap().shared > 0);
    let (opened, _) = Writer::open(bench.env(), &to).unwrap();
    let mut grown = opened.value;
    add(&mut grown, answer("갈래의 답"));
    sync(&mut grown).unwrap();
    let mut files = vec![to.clone()];
    let leaf = writer.skeleton().unwrap().id(writer.leaf().unwrap());
    for (n, upto) in [Some(&first), Some(&leaf), None].into_iter().enumerate() {
        let path = bench.root.join(format!("branch{n}.jsonl"));
        let mut branch = Writer::branch(bench.env(), &writer, upto, path.clone(), header()).unwrap();
        add(&mut branch, answer("가지의 답"));
        sync(&mut branch).unwrap();
        files.push(path);
    }
    let dir = tempfile::tempdir().unwrap();
    for (n, file) in files.iter().enumerate() {
        let ours = Reader::open(&*bench.fs, file).unwrap().value;
        let tree = ours.skeleton().unwrap();
        let copy = dir.path().join(format!("{n}.jsonl"));
        std::fs::write(&copy, read(&*bench.fs, file)).unwrap();
        for theirs in [testkit::pi::read(&copy), testkit::pi::read_newer(&copy)].into_iter().flatten() {
            assert_eq!(theirs["leafId"], tree.id(tree.leaf().unwrap()).to_string(), "{file:?}");
            assert_eq!((&theirs["sessionId"], &theirs["recent"]), (&"new".into(), &"new".into()));
            assert_eq!(theirs["cwd"], "/다른 곳");
            assert_eq!(theirs["entries"], tree.len());
            let context = written(&select(&ours, Leaf::Current).unwrap().0);
            assert!(!context.is_empty());
            assert_same(&file.display().to_string(), &context, theirs["messages"].as_array().unwrap());
        }
    }
}
