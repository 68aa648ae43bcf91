//! What holds for every tree and every leaf.

use crate::mem::{Tree, checked};
use crate::model::{assert_same, context, written};
use crate::random::{grow, leaf_id, steps, view_at};
use gjc_context::{INTERRUPTED, Said, View, select};
use gjc_entry::{At, Block, Body, Leaf, Message, Source, StopReason};
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

/// A result in the view answers the call in its place, and a call that is told to be interrupted has no result left.
fn pairs_are_the_right_ones(tree: &Tree, leaf: Leaf, view: &View) {
    // Edits hide results and answers; then the path no longer tells what is missing.
    if tree.lines.iter().any(|line| line["type"] == "context_edit") {
        return;
    }
    let path: Vec<&Message> = tree.path(leaf).unwrap().0.iter().filter_map(|node| message(tree, node.at)).collect();
    let mut following: &[&Message] = &[];
    let mut open: Vec<(&str, bool)> = Vec::new();
    for sent in &view.messages {
        match &sent.said {
            Said::User(_) => {}
            Said::Assistant { .. } => {
                let Some(Message::Assistant(said)) = sent.from.and_then(|at| message(tree, at)) else { unreachable!() };
                let from =
                    path.iter().position(|other| std::ptr::eq(*other, message(tree, sent.from.unwrap()).unwrap()));
                following = &path[from.unwrap() + 1..];
                let until = following.iter().position(|message| matches!(message, Message::Assistant(_)));
                following = &following[..until.unwrap_or(following.len())];
                // Of a broken answer only the calls with a result stay.
                let broken = matches!(said.stop, StopReason::Aborted | StopReason::Error);
                open = Vec::new();
                for (id, ..) in said.calls() {
                    let earlier = said
                        .calls()
                        .take_while(|(other, ..)| !std::ptr::eq(*other, id))
                        .filter(|(other, ..)| *other == id);
                    let answered = results(following, id) > earlier.count();
                    if answered || !broken {
                        open.push((id, answered));
                    }
                }
                open.reverse();
            }
            Said::Result { content, is_error, .. } => {
                let (id, answered) = open.pop().expect("no more results than calls");
                match sent.from {
                    Some(at) => {
                        let Some(Message::ToolResult(result)) = message(tree, at) else { unreachable!() };
                        assert!(answered && result.call_id == id);
                        assert!(following.iter().any(|other| std::ptr::eq(*other, message(tree, at).unwrap())));
                    }
                    None => {
                        assert!(!answered, "a finished call is marked as interrupted");
                        assert!(*is_error && matches!(&content[..], [Block::Text { text, .. }] if text == INTERRUPTED));
                    }
                }
            }
        }
    }
}

fn message(tree: &Tree, at: At) -> Option<&Message> {
    match &tree.peek(at)?.body {
        Body::Message(message) => Some(message),
        _ => None,
    }
}

fn results(among: &[&Message], id: &str) -> usize {
    among.iter().filter(|message| matches!(message, Message::ToolResult(result) if result.call_id == id)).count()
}
