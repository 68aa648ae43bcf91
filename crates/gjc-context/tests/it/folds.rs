//! Folds give what a fresh fold gives, and read no more than they must.

use crate::mem::Tree;
use crate::random::{Step, apply, steps};
use gjc_context::{Delivered, Fold, Folds, Settings, Totals};
use gjc_entry::{
    At, Body, DeliveryId, Entry, Kind, KindSet, Leaf, NeedsIndex, Own, PathNodes, Scope, Skeleton, Source,
};
use proptest::prelude::*;
use std::sync::Arc;
use testkit::session::{answer, user};

/// Everything that went in, in order.
#[derive(Debug, Clone, Default, PartialEq)]
struct Trail(Vec<(At, String)>);

impl Fold for Trail {
    const SCOPE: Scope = Scope::Path;
    const KINDS: KindSet = KindSet::of(&[Kind::Message, Kind::Compaction, Kind::OwnLeaf]);

    fn step(&mut self, at: At, entry: &Entry) {
        self.0.push((at, entry.id.to_string()));
    }
}

/// The same over the whole file.
#[derive(Debug, Clone, Default, PartialEq)]
struct Ever(Vec<At>);

impl Fold for Ever {
    const SCOPE: Scope = Scope::Session;
    const KINDS: KindSet = KindSet::of(&[Kind::Message]);

    fn step(&mut self, at: At, _: &Entry) {
        self.0.push(at);
    }
}

proptest! {
    #[test]
    fn a_path_fold_equals_a_fresh_one_and_a_session_fold_never_falls_back(
        steps in steps(true),
        asked in proptest::collection::vec(any::<(bool, usize)>(), 40),
    ) {
        let (mut tree, mut folds, mut seen) = (Tree::default(), Folds::default(), 0);
        for (step, (current, number)) in steps.iter().zip(asked) {
            apply(&mut tree, step);
            let leaves = tree.leaves();
            let leaf = if current { Leaf::Current } else { leaves[number % leaves.len()] };
            let trail = folds.get::<Trail>(&tree, leaf).unwrap().clone();
            prop_assert_eq!(&trail, &Folds::default().get::<Trail>(&tree, leaf).unwrap().clone());
            // What it must be, from the path itself: all that can be read of its kinds.
            let path = tree.path(leaf).unwrap().0;
            let sound: Vec<At> = path
                .iter()
                .filter(|node| Trail::KINDS.has(node.kind) && tree.peek(node.at).is_some())
                .map(|node| node.at)
                .collect();
            prop_assert_eq!(trail.0.iter().map(|(at, _)| *at).collect::<Vec<_>>(), sound);
            let fresh = format!("{:?}", Folds::default().get::<Settings>(&tree, leaf).unwrap());
            prop_assert_eq!(format!("{:?}", folds.get::<Settings>(&tree, leaf).unwrap()), fresh);

            let ever = folds.get::<Ever>(&tree, leaf).unwrap().clone();
            prop_assert_eq!(&ever, &Folds::default().get::<Ever>(&tree, Leaf::Root).unwrap().clone());
            prop_assert!(ever.0.len() >= seen);
            seen = ever.0.len();
        }
        // Each body once in file order, whatever was asked.
        prop_assert!(folds.get::<Ever>(&tree, Leaf::Root).unwrap().0.is_sorted());
    }
}

#[test]
fn a_growing_path_reads_each_body_once_for_each_fold() {
    let (mut tree, mut folds) = (Tree::default(), Folds::default());
    for round in 0..100 {
        tree.say(user(&format!("{round}")));
        tree.say(answer("답"));
        folds.get::<Trail>(&tree, Leaf::Current).unwrap();
        folds.get::<Trail>(&tree, Leaf::Current).unwrap();
    }
    assert_eq!(tree.reads().len(), 200);
    assert!(tree.reads().values().all(|reads| *reads == 1), "{:?}", tree.reads().values().max());
    folds.get::<Settings>(&tree, Leaf::Current).unwrap();
    assert!(tree.reads().values().all(|reads| *reads == 1), "a fold reads only its kinds");
    folds.get::<Ever>(&tree, Leaf::Current).unwrap();
    folds.get::<Ever>(&tree, Leaf::Root).unwrap();
    assert!(tree.reads().values().all(|reads| *reads == 2));
}

#[test]
fn damaged_bodies_are_passed_over_and_read_no_second_time() {
    let (mut tree, mut folds) = (Tree::default(), Folds::default());
    tree.say(user("하나"));
    let bad = tree.damaged(Kind::Message);
    tree.say(user("둘"));
    assert_eq!(folds.get::<Trail>(&tree, Leaf::Current).unwrap().0.len(), 2);
    tree.say(user("셋"));
    assert_eq!(folds.get::<Trail>(&tree, Leaf::Current).unwrap().0.len(), 3);
    assert_eq!(tree.reads()[&tree.at(bad)], 1);
}

#[test]
fn cost_and_deliveries_stay_when_the_leaf_moves_and_settings_follow_it() {
    let (mut tree, mut folds) = (Tree::default(), Folds::default());
    let root = tree.say(user("하나"));
    let model = |id: &str, role: Option<&str>| Body::ModelChange {
        provider: "p".into(),
        model: id.into(),
        role: role.map(Into::into),
    };
    tree.say(model("a", None));
    tree.say(model("small", Some("smol")));
    let mut said = testkit::session::assistant(Vec::new(), gjc_entry::StopReason::Stop);
    said.usage.input = 5;
    said.usage.cost.total = 0.5;
    tree.say(Body::Message(gjc_entry::Message::Assistant(said)));
    tree.say(Body::Own(Own::Delivered(DeliveryId("d1".into()))));
    tree.foreign(
        "custom_message",
        serde_json::json!({"customType":"x","content":"c","display":true,"details":{"gjc":{"delivered":"d2"}}}),
    );
    let ids = |folds: &mut Folds, tree: &Tree| {
        let mut ids: Vec<String> =
            folds.get::<Delivered>(tree, Leaf::Current).unwrap().0.iter().map(|id| id.0.to_string()).collect();
        ids.sort();
        ids
    };
    assert_eq!(folds.get::<Settings>(&tree, Leaf::Current).unwrap().model, Some(("p".into(), "a".into())));
    assert_eq!(ids(&mut folds, &tree), ["d1", "d2"]);

    tree.move_leaf(Some(root));
    assert_eq!(folds.get::<Settings>(&tree, Leaf::Current).unwrap().model, None);
    assert_eq!(ids(&mut folds, &tree), ["d1", "d2"]);
    let totals = folds.get::<Totals>(&tree, Leaf::Current).unwrap();
    assert_eq!((totals.answers, totals.usage.input, totals.usage.cost.total), (1, 5, 0.5));
}

/// A source that knows the path but has no index yet.
struct Unindexed(Tree);

impl Source for Unindexed {
    fn path(&self, leaf: Leaf) -> Result<PathNodes, NeedsIndex> {
        self.0.path(leaf)
    }
    fn skeleton(&self) -> Option<&Skeleton> {
        None
    }
    fn body(&self, at: At) -> Result<Arc<Entry>, gjc_entry::Damage> {
        self.0.body(at)
    }
}

#[test]
fn without_an_index_path_folds_work_and_session_folds_say_so() {
    let mut tree = Tree::default();
    apply(&mut tree, &Step::User);
    let (source, mut folds) = (Unindexed(tree), Folds::default());
    assert_eq!(folds.get::<Trail>(&source, Leaf::Current).unwrap().0.len(), 1);
    assert_eq!(folds.get::<Ever>(&source, Leaf::Current), Err(NeedsIndex));
    assert_eq!(folds.get::<Ever>(&source.0, Leaf::Current).unwrap().0.len(), 1, "and catch up later");
}

#[test]
fn the_model_of_the_conversation_is_told_from_that_of_plan_mode() {
    let env = |provider: &str, id: &str, api: &str| {
        let blob: gjc_entry::BlobRef =
            serde_json::from_value(format!("blob:sha256:{}", "0".repeat(64)).into()).unwrap();
        Body::Own(Own::Env(gjc_entry::RequestEnv {
            all_tools: Vec::new(),
            system: blob,
            tools: blob,
            model: gjc_entry::ModelRef { provider: provider.into(), id: id.into(), api: api.into() },
            thinking: gjc_entry::Thinking::Off,
            tier: gjc_entry::Tier::Auto,
            params: gjc_entry::Params { max_tokens: 1 },
            renderer: 1,
            held: None,
        }))
    };
    let change = |provider: &str, model: &str, role: Option<&str>| Body::ModelChange {
        provider: provider.into(),
        model: model.into(),
        role: role.map(Into::into),
    };
    let mut tree = Tree::default();
    let mut folds = Folds::default();
    let mut now = |body: Option<Body>| {
        if let Some(body) = body {
            tree.say(body);
        }
        let found = folds.get::<Settings>(&tree, Leaf::Current).unwrap();
        let name = |model: gjc_entry::ModelRef| format!("{}/{}/{}", model.provider, model.id, model.api);
        (found.conversation().map(name), found.planning().map(name))
    };
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(now(None), (None, None));
    assert_eq!(now(Some(change("a", "old", None))), (None, None), "of another program, before anything of ours");
    assert_eq!(now(Some(env("o", "one", "wire-1"))).0, some("o/one/wire-1"));
    assert_eq!(now(Some(change("o", "two", None))).0, some("o/two/wire-1"), "chosen since, on its provider's wire");
    assert_eq!(now(Some(env("o", "two", "wire-2"))).0, some("o/two/wire-2"));
    let plan = now(Some(change("p", "plan", Some("plan"))));
    assert_eq!(plan, (some("o/two/wire-2"), some("p/plan/")));
    let plan = now(Some(env("p", "plan", "wire-3")));
    assert_eq!(plan, (some("o/two/wire-2"), some("p/plan/wire-3")), "in plan mode the conversation keeps its own");
    assert_eq!(now(Some(change("o", "one", None))).0, some("o/one/wire-1"));
}
