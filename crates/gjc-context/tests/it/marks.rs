//! Cache marks.

use crate::mem::Tree;
use crate::random::{grow, steps, view_at};
use gjc_context::{CacheMarks, Said, View};
use proptest::prelude::*;
use testkit::session::{answer, calls, result, user};

proptest! {
    #[test]
    fn marks_are_at_most_two_rising_and_never_on_an_answer(steps in steps(true)) {
        let tree = grow(&steps);
        for leaf in tree.leaves() {
            let view = view_at(&tree, leaf);
            let marks = CacheMarks::of(&view);
            let model = |index: usize| matches!(view.messages[index].said, Said::Assistant { .. });
            prop_assert_eq!(&marks, &CacheMarks::of(&view.clone()), "a pure function");
            prop_assert!(marks.after.len() <= 2);
            prop_assert!(marks.after.is_sorted_by(|a, b| a < b));
            for &index in &marks.after {
                prop_assert!(!model(index));
                // The last of its turn: what follows is an answer or nothing.
                prop_assert!(index + 1 == view.messages.len() || model(index + 1));
            }
            prop_assert_eq!(marks.after.is_empty(), view.messages.is_empty());
        }
    }
}

#[test]
fn the_mark_of_the_last_request_is_one_of_the_next() {
    let mut tree = Tree::path([user("하나")]);
    let mut last = CacheMarks::of(&tree.view().0);
    assert_eq!(last.after, [0]);
    for round in 0..5 {
        tree.say(calls("", &[("call-1", "read", "{}"), ("call-2", "read", "{}")]));
        tree.say(result("call-1", "read", "a"));
        tree.say(result("call-2", "read", "b"));
        if round == 2 {
            tree.say(user("둘"));
        }
        let now = CacheMarks::of(&tree.view().0);
        assert_eq!(now.after[0], *last.after.last().unwrap());
        last = now;
    }
    tree.say(answer("끝"));
    assert_eq!(CacheMarks::of(&tree.view().0), last, "an answer moves no mark");
    assert_eq!(CacheMarks::of(&View::default()).after, [0usize; 0]);
}
