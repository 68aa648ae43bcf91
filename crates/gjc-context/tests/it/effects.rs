//! Unfinished effects and named places, as folds over a session in memory.

use crate::mem::Tree;
use gjc_context::{Effect, Folds, Places, unfinished};
use gjc_entry::{Body, Kind, KindSet, Leaf, NeedsIndex, Own, PathNodes, Source};
use serde_json::json;
use std::sync::Arc;
use testkit::session::{answer, user};

/// Two names for the session follow from each `gjc.pair`.
struct Pair;

fn pair() -> Body {
    Body::Own(Own::Other { kind: "pair".into(), data: None })
}

impl Effect for Pair {
    fn kinds(&self) -> KindSet {
        KindSet::of(&[Kind::OwnOther])
    }

    fn rest(&self, intent: &Body, source: &dyn Source, before: Leaf) -> Option<Vec<Body>> {
        let Body::Own(Own::Other { kind, .. }) = intent else { return None };
        (&**kind == "pair").then_some(())?;
        let before = source.path(before).ok()?.0.len();
        Some((1..=2).map(|n| Body::SessionInfo { name: Some(format!("{n} nach {before}")) }).collect())
    }
}

fn pairs() -> Vec<Arc<dyn Effect>> {
    vec![Arc::new(Pair)]
}

/// What is missing: intent's place in the file, numbers.
fn missing(tree: &Tree) -> Vec<(String, Vec<u32>)> {
    let found = unfinished(tree, &pairs()).unwrap();
    found.iter().map(|one| (one.intent.to_string(), one.missing.iter().map(|(n, _)| *n).collect())).collect()
}

#[test]
fn what_is_missing_is_told_by_number_wherever_it_was_torn() {
    let mut tree = Tree::path([user("하나"), answer("둘")]);
    let first = tree.say(pair());
    let of = |tree: &Tree, intent| tree.id(intent).to_string();
    assert_eq!(missing(&tree), [(of(&tree, first), vec![1, 2])]);
    // Another program's line, and its own name for the session, which is none of ours.
    tree.say(user("남의 말"));
    tree.foreign("session_info", json!({"name": "1 nach 2"}));
    let part = |of: &str, n| json!({"name": "x", "gjcPart": {"of": of, "n": n}});
    let intent = of(&tree, first);
    tree.foreign("session_info", part(&intent, 2));
    assert_eq!(missing(&tree), [(intent.clone(), vec![1])]);
    let second = tree.say(pair());
    // A part of another intent, of none, and one beyond the end.
    tree.foreign("session_info", part(&intent, 7));
    tree.foreign("session_info", json!({"name": "x", "gjcPart": "kaputt"}));
    assert_eq!(missing(&tree), [(intent.clone(), vec![1]), (of(&tree, second), vec![1, 2])]);
    tree.foreign("session_info", part(&intent, 1));
    assert_eq!(missing(&tree), [(of(&tree, second), vec![1, 2])]);
    let found = unfinished(&tree, &pairs()).unwrap();
    let Body::SessionInfo { name } = &found[0].missing[0].1 else { panic!("{found:?}") };
    assert_eq!(name.as_deref(), Some("1 nach 6"), "what preceded the intent, whatever came since");
    // A branch that does not hold the intents owes nothing.
    tree.move_leaf(None);
    assert_eq!(missing(&tree), []);
}

#[test]
fn nothing_is_read_that_cannot_be_an_intent_or_follow_from_one() {
    let mut tree = Tree::path([user("하나"), answer("둘"), user("셋")]);
    tree.foreign("session_info", json!({"name": "davor"}));
    tree.say(pair());
    tree.say(user("넷"));
    tree.foreign("session_info", json!({"name": "danach"}));
    tree.damaged(Kind::SessionInfo);
    assert!(unfinished(&tree, &[]).unwrap().is_empty() && tree.reads().is_empty());
    assert_eq!(missing(&tree).len(), 1);
    let reads = tree.reads();
    let path = tree.path(Leaf::Current).unwrap().0;
    let read: Vec<usize> =
        path.iter().enumerate().filter(|(_, node)| reads.contains_key(&node.at)).map(|(index, _)| index).collect();
    assert_eq!(read, [4, 6, 7]);
}

#[test]
fn without_an_index_nothing_is_said() {
    struct Blind(Tree);
    impl Source for Blind {
        fn path(&self, leaf: Leaf) -> Result<PathNodes, NeedsIndex> {
            self.0.path(leaf)
        }
        fn skeleton(&self) -> Option<&gjc_entry::Skeleton> {
            None
        }
        fn body(&self, at: gjc_entry::At) -> Result<Arc<gjc_entry::Entry>, gjc_entry::Damage> {
            self.0.body(at)
        }
    }
    let blind = Blind(Tree::path([pair()]));
    assert!(matches!(unfinished(&blind, &pairs()), Err(NeedsIndex)));
    assert!(matches!(Folds::default().get::<Places>(&blind, Leaf::Current), Err(NeedsIndex)));
}

#[test]
fn a_place_has_the_last_name_that_it_was_given_whatever_branch_gave_it() {
    let mut tree = Tree::path([user("하나"), answer("둘")]);
    let path = tree.path(Leaf::Current).unwrap().0;
    let (first, second) = (path[0].id.clone(), path[1].id.clone());
    let name = |target: &gjc_entry::EntryId, name: Option<&str>| Body::Label {
        target: target.clone(),
        label: name.map(Into::into),
    };
    let mut folds = Folds::default();
    let mut places = |tree: &Tree| folds.get::<Places>(tree, Leaf::Current).unwrap().clone();
    tree.say(name(&first, Some("처음")));
    tree.say(name(&second, Some("둘째")));
    tree.say(name(&first, Some("시작")));
    assert_eq!(places(&tree).iter().collect::<Vec<_>>(), [(&second, "둘째"), (&first, "시작")]);
    tree.move_leaf(None);
    tree.damaged(Kind::Label);
    assert_eq!(places(&tree).name(&first), Some("시작"), "moving the leaf loses no name");
    tree.say(name(&first, None));
    tree.say(name(&second, Some("")));
    assert_eq!(places(&tree), Places::default());
}
