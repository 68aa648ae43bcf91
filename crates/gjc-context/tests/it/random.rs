//! Random trees of random entries.

use crate::mem::Tree;
use gjc_context::{Folds, View, view};
use gjc_entry::{Block, Body, Content, EntryId, Kind, Leaf, Message, Ordinal, StopReason};
use proptest::prelude::*;
use serde_json::json;
use testkit::session::{assistant, call, result, user};

/// One thing that happens to a session. Numbers choose among what is there.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    User,
    Empty,
    Answer {
        calls: Vec<u8>,
        stop: u8,
        thinking: u8,
        text: bool,
    },
    Result {
        id: u8,
        empty: bool,
    },
    /// The kept id: an entry, or (one in eight) none.
    Compaction(usize),
    Branch {
        empty: bool,
    },
    CustomMessage,
    Bash {
        hidden: bool,
    },
    Damaged(u8),
    Move(usize),
    /// Entries of newer programs of the family.
    Reset,
    Edit {
        target: usize,
        how: u8,
    },
}

/// A call id: few, so that they repeat, and not all plain.
pub(crate) fn call_id(number: u8) -> String {
    match number % 6 {
        0 | 1 => "call-1".into(),
        2 => "call-2".into(),
        3 => "call_1|fc_한글".into(),
        4 => "call_1|fc_??".into(),
        _ => "x".repeat(80),
    }
}

/// Steps; with `family`, resets and edits too.
pub(crate) fn steps(family: bool) -> impl Strategy<Value = Vec<Step>> {
    let answer = (proptest::collection::vec(0u8..6, 0..5), 0u8..8, 0u8..4, any::<bool>())
        .prop_map(|(calls, stop, thinking, text)| Step::Answer { calls, stop, thinking, text });
    let step = prop_oneof![
        4 => Just(Step::User),
        1 => Just(Step::Empty),
        5 => answer,
        8 => (0u8..6, any::<bool>()).prop_map(|(id, empty)| Step::Result { id, empty }),
        1 => any::<usize>().prop_map(Step::Compaction),
        1 => any::<bool>().prop_map(|empty| Step::Branch { empty }),
        1 => Just(Step::CustomMessage),
        1 => any::<bool>().prop_map(|hidden| Step::Bash { hidden }),
        1 => (0u8..5).prop_map(Step::Damaged),
        2 => any::<usize>().prop_map(Step::Move),
        1 => Just(Step::Reset),
        2 => (any::<usize>(), 0u8..3).prop_map(|(target, how)| Step::Edit { target, how }),
    ];
    let step = step.prop_map(move |step| match step {
        Step::Reset | Step::Edit { .. } if !family => Step::User,
        step => step,
    });
    proptest::collection::vec(step, 0..40)
}

/// The session that the steps make.
pub(crate) fn grow(steps: &[Step]) -> Tree {
    let mut tree = Tree::default();
    for step in steps {
        apply(&mut tree, step);
    }
    tree
}

/// Takes one step.
pub(crate) fn apply(tree: &mut Tree, step: &Step) {
    let count = tree.lines.len();
    let pick = |number: usize| (count > 0).then(|| Ordinal(u32::try_from(number % count.max(1)).unwrap()));
    match step {
        Step::User => {
            tree.say(user(&format!("말 {count}")));
        }
        Step::Empty => {
            tree.say(user(""));
        }
        Step::Answer { calls, stop, thinking, text } => {
            let stop = match stop {
                0 => StopReason::Aborted,
                1 => StopReason::Error,
                2 => StopReason::Length,
                3 => StopReason::Other("refusal".into()),
                4 => StopReason::Stop,
                _ => StopReason::ToolUse,
            };
            let thought = |signature: Option<&str>| Block::Thinking {
                thinking: "음".into(),
                signature: signature.map(Into::into),
                extra: Vec::new(),
            };
            let mut blocks = Vec::new();
            match thinking {
                1 => blocks.push(thought(None)),
                2 => blocks.push(thought(Some("sig"))),
                3 => blocks.push(Block::RedactedThinking { data: "d".into(), extra: Vec::new() }),
                _ => {}
            }
            if *text {
                blocks.push(Block::Text { text: format!("답 {count}"), origin: None, extra: Vec::new() });
            }
            blocks.extend(calls.iter().map(|id| call(&call_id(*id), "read", "{}")));
            tree.say(Body::Message(Message::Assistant(assistant(blocks, stop))));
        }
        Step::Result { id, empty } => {
            tree.say(result(&call_id(*id), "read", &if *empty { String::new() } else { format!("결과 {count}") }));
        }
        Step::Compaction(kept) => {
            let first_kept = match pick(*kept).filter(|_| kept % 8 != 0) {
                Some(kept) => tree.id(kept),
                None => EntryId::Other("none".into()),
            };
            tree.say(Body::Compaction { summary: format!("요약 {count}"), first_kept, tokens_before: 9 });
        }
        Step::Branch { empty } => {
            let summary = if *empty { String::new() } else { format!("가지 {count}") };
            tree.say(Body::BranchSummary { from: "root".into(), summary });
        }
        Step::CustomMessage => {
            tree.say(Body::CustomMessage {
                custom_type: "handoff".into(),
                content: Content::Text(format!("넘김 {count}")),
                display: true,
                details: None,
            });
        }
        Step::Bash { hidden } => {
            let said = json!({"role":"bashExecution","command":"ls","output":"a","excludeFromContext":hidden});
            tree.role(said);
        }
        Step::Damaged(kind) => {
            let kinds = [Kind::Message, Kind::Compaction, Kind::BranchSummary, Kind::CustomMessage, Kind::Unknown];
            tree.damaged(kinds[usize::from(*kind) % 5]);
        }
        Step::Move(to) => {
            let to = if to % 8 == 0 { None } else { pick(*to) };
            tree.move_leaf(to);
        }
        Step::Reset => {
            tree.foreign("reset_boundary", json!({}));
        }
        Step::Edit { target, how } => {
            // Sometimes one that comes later: then the edit waits for it, unless a reset comes between.
            let target = EntryId::Short(0xa000_0000 + u32::try_from(target % (count + 6)).unwrap());
            let replacement = match how {
                0 => json!(null),
                1 => json!({ "content": format!("고침 {count}") }),
                _ => json!({ "content": [{ "type": "text", "text": format!("고침 {count}") }] }),
            };
            tree.foreign("context_edit", json!({ "targetId": target.to_string(), "replacement": replacement }));
        }
    }
}

/// The id of a leaf, for a reader of JSON.
pub(crate) fn leaf_id(tree: &Tree, leaf: Leaf) -> Option<String> {
    match leaf {
        Leaf::Root => None,
        Leaf::Current => tree.lines.last().map(|line| line["id"].as_str().unwrap().into()),
        Leaf::At(ordinal) => Some(tree.id(ordinal).to_string()),
    }
}

/// The view at a leaf.
pub(crate) fn view_at(tree: &Tree, leaf: Leaf) -> View {
    view(tree, leaf, &mut Folds::default()).unwrap().0
}
