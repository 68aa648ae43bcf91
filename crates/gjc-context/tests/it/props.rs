//! What holds for every tree and every leaf.

use crate::mem::{Tree, checked};
use crate::model::{assert_same, context, written};
use crate::random::{grow, leaf_id, steps, view_at};
use gjc_context::{INTERRUPTED, Said, View, select};
use gjc_entry::{At, Block, Body, Leaf, Message, Source};
use proptest::prelude::*;
use std::collections::HashSet;

proptest! {
    #[test]
    fn the_context_is_the_one_that_every_reader_of_the_family_builds(steps in steps(true)) {
        let tree = grow(&steps);
        for leaf in tree.leaves() {
            let theirs = context(&tree.lines, leaf_id(&tree, leaf).as_deref());
            assert_same(&format!("{leaf:?}"), &written(&select(&tree, leaf).unwrap().0), &theirs);
        }
    }

    #[test]
    fn every_view_that_does_not_end_with_the_model_can_be_sent(steps in steps(true)) {
        let tree = grow(&steps);
        for leaf in tree.leaves() {
            let view = view_at(&tree, leaf);
            prop_assert!(!matches!(view.messages.first(), Some(first) if !matches!(first.said, Said::User(_))));
            if matches!(view.messages.last(), Some(last) if !matches!(last.said, Said::Assistant { .. })) {
                prop_assert!(checked(view.clone()).is_ok(), "{:?}: {:#?}", checked(view.clone()), view);
            }
            plain_ids(&view);
            pairs_are_the_right_ones(&tree, leaf, &view);
        }
    }

    #[test]
    fn what_people_said_is_there_and_in_order(steps in steps(false)) {
        let tree = grow(&steps);
        for leaf in tree.leaves() {
            let theirs = context(&tree.lines, leaf_id(&tree, leaf).as_deref());
            let said: Vec<&str> = theirs
                .iter()
                .filter(|message| message["role"] == "user")
                .flat_map(|message| message["content"].as_array().unwrap())
                .filter_map(|block| block["text"].as_str())
                .filter(|text| !text.is_empty())
                .collect();
            let view = view_at(&tree, leaf);
            let sent: Vec<&str> = view
                .messages
                .iter()
                .flat_map(|message| match &message.said {
                    Said::User(blocks) => &blocks[..],
                    _ => &[],
                })
                .filter_map(|block| match block {
                    Block::Text { text, origin: Some(gjc_entry::Origin::Typed), .. } => Some(text.as_str()),
                    _ => None,
                })
                .collect();
            prop_assert_eq!(said, sent, "{:?}", leaf);
        }
    }

    #[test]
    fn the_same_leaf_gives_the_same_view_whatever_came_after(steps in steps(true), more in steps(true)) {
        let mut tree = grow(&steps);
        let before: Vec<(Leaf, String)> =
            tree.leaves().into_iter().filter(|leaf| *leaf != Leaf::Current).map(|leaf| (leaf, format!("{:?}", view_at(&tree, leaf)))).collect();
        for step in &more {
            crate::random::apply(&mut tree, step);
        }
        for (leaf, before) in before {
            prop_assert_eq!(before, format!("{:?}", view_at(&tree, leaf)));
        }
    }
}

fn plain_ids(view: &View) {
    let mut seen = HashSet::new();
    for message in &view.messages {
        let Said::Assistant { blocks, .. } = &message.said else { continue };
        for block in blocks {
            if let Block::ToolCall { id, .. } = block {
                assert!(id.len() <= 64 && id.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b)), "{id}");
                assert!(seen.insert(id.clone()), "{id} twice");
            }
        }
    }
}

/// A result in the view answers a call of the very answer before it, and a call without one had none to be found.
fn pairs_are_the_right_ones(tree: &Tree, leaf: Leaf, view: &View) {
    let path: Vec<At> = tree.path(leaf).unwrap().0.iter().map(|node| node.at).collect();
    let place = |at: At| path.iter().position(|other| *other == at).unwrap();
    let role = |at: At| match tree.peek(at).map(|entry| &entry.body) {
        Some(Body::Message(message)) => Some(message),
        _ => None,
    };
    let (mut answer, mut stored): (Option<At>, Vec<String>) = (None, Vec::new());
    for message in &view.messages {
        match &message.said {
            Said::User(_) => {}
            Said::Assistant { blocks, .. } => {
                answer = message.from;
                // The ids as the model gave them, of the calls that stayed: the view keeps their order.
                let sent = blocks.iter().filter(|block| matches!(block, Block::ToolCall { .. })).count();
                let Some(Message::Assistant(said)) = role(message.from.unwrap()) else { unreachable!() };
                stored = said.calls().map(|(id, ..)| id.to_owned()).collect();
                assert!(sent <= stored.len());
            }
            Said::Result { content, .. } => {
                let from = place(answer.unwrap());
                // Up to the next answer that is context (one before a reset or a cut is none, nor is one edited away).
                let until = path[from + 1..]
                    .iter()
                    .position(|at| matches!(role(*at), Some(Message::Assistant(_))))
                    .map_or(path.len(), |more| from + 1 + more);
                match message.from {
                    Some(at) => {
                        let Some(Message::ToolResult(result)) = role(at) else { unreachable!("a result is a result") };
                        assert!(stored.contains(&result.call_id));
                        assert!(place(at) > from);
                    }
                    None => {
                        assert!(matches!(&content[..], [Block::Text { text, .. }] if text == INTERRUPTED));
                        // The calls with this id outnumber the results with it: checked by count.
                        let given = path[from + 1..until]
                            .iter()
                            .filter(|at| matches!(role(**at), Some(Message::ToolResult(result)) if stored.contains(&result.call_id)))
                            .count();
                        assert!(given < stored.len() || has_edits(tree), "a finished call is marked as interrupted");
                    }
                }
            }
        }
    }
}

/// Edits can hide results and answers; then the stored path no longer tells what is missing.
fn has_edits(tree: &Tree) -> bool {
    tree.lines.iter().any(|line| line["type"] == "context_edit")
}
