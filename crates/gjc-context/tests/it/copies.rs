//! Forks and branches of random files: the context in the copy is the context at that place of the source.

use crate::files::{Line, file, line};
use crate::model::{assert_same, written};
use gjc_context::select;
use gjc_entry::{Header, Leaf, SessionId, Source, Timestamp};
use gjc_log::fs::{Fs, FsFile, Open, OsFs};
use gjc_log::{Reader, Writer, fork};
use proptest::prelude::*;
use std::path::Path;
use std::sync::Arc;
use testkit::log::{Bench, add, sync};
use testkit::session::answer;

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
