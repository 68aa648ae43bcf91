//! The checker refuses every view that the projection would not make.

use crate::mem::{Tree, checked, checked_against};
use crate::random::{grow, steps, view_at};
use gjc_context::{Msg, Said, View, Violation};
use gjc_entry::{Block, ModelRef, Origin};
use proptest::prelude::*;
use testkit::session::{answer, calls, result, user};

/// Every wrong view that is one change away, with what was done.
fn mutations(view: &View) -> Vec<(String, View)> {
    let mut wrong: Vec<(String, View)> = vec![("nothing left".into(), View::default())];
    let mut renamed: Vec<(String, View)> = Vec::new();
    let mut add = |what: String, messages: Vec<Msg>| wrong.push((what, View { messages }));
    let messages = &view.messages;
    let model = ModelRef { provider: "p".into(), id: "m".into(), api: "a".into() };
    let said = |text: &str| Said::Assistant { blocks: vec![Block::text(text, Origin::Host)], model: model.clone() };

    let mut first = messages.clone();
    first.insert(0, Msg { from: None, said: said("first") });
    add("begins with an answer".into(), first);
    let mut last = messages.clone();
    last.push(Msg { from: None, said: said("last") });
    add("ends with an answer".into(), last);
    for at in 0..=messages.len() {
        let mut more = messages.clone();
        more.insert(at, Msg { from: None, said: Said::User(vec![Block::text("not said", Origin::Typed)]) });
        add(format!("words put into a mouth at {at}"), more);
        let mut more = messages.clone();
        let said = Said::Result { call: "nobody".into(), tool: "t".into(), content: Vec::new(), is_error: false };
        more.insert(at, Msg { from: None, said });
        add(format!("a result of no call at {at}"), more);
    }
    for (index, message) in messages.iter().enumerate() {
        match &message.said {
            Said::Result { .. } => {
                let mut less = messages.clone();
                let result = less.remove(index);
                add(format!("result {index} dropped"), less.clone());
                for to in (0..=less.len()).filter(|to| *to != index) {
                    let mut moved = less.clone();
                    moved.insert(to, result.clone());
                    add(format!("result {index} moved to {to}"), moved);
                    let mut twice = messages.clone();
                    twice.insert(to, result.clone());
                    add(format!("result {index} twice, at {to}"), twice);
                }
                for other in index + 1..messages.len() {
                    let mut swapped = messages.clone();
                    let (head, tail) = swapped.split_at_mut(other);
                    if let (Said::Result { call: a, .. }, Said::Result { call: b, .. }) =
                        (&mut head[index].said, &mut tail[0].said)
                    {
                        std::mem::swap(a, b);
                        add(format!("ids of {index} and {other} swapped"), swapped);
                    }
                }
            }
            Said::User(blocks) => {
                let mut empty = messages.clone();
                empty[index].said = Said::User(Vec::new());
                add(format!("message {index} emptied"), empty);
                for (number, block) in blocks.iter().enumerate() {
                    let Block::Text { text, origin, .. } = block else { continue };
                    if !origin.is_none_or(Origin::is_human) {
                        continue;
                    }
                    let mut less = messages.clone();
                    less.remove(index);
                    add(format!("person's message {index} dropped"), less);
                    let mut twice = messages.clone();
                    twice.insert(index, message.clone());
                    add(format!("person's message {index} twice"), twice);
                    for new in [format!("{text}."), text.chars().skip(1).collect(), String::new()] {
                        let mut changed = blocks.clone();
                        changed[number] = Block::Text { text: new, origin: *origin, extra: Vec::new() };
                        let mut messages = messages.clone();
                        messages[index].said = Said::User(changed);
                        add(format!("words {index}/{number} changed"), messages);
                    }
                    let mut host = blocks.clone();
                    host[number] = Block::text(text.clone(), Origin::Host);
                    let mut messages = messages.clone();
                    messages[index].said = Said::User(host);
                    add(format!("words {index}/{number} taken from the person"), messages);
                }
            }
            Said::Assistant { blocks, model } => {
                let mut with = |what: String, blocks: Vec<Block>| {
                    let mut messages = messages.clone();
                    messages[index].said = Said::Assistant { blocks, model: model.clone() };
                    add(what, messages);
                };
                with(format!("answer {index} emptied"), Vec::new());
                let call = |id: &str| testkit::session::call(id, "t", "{}");
                let mut more = blocks.clone();
                more.push(call("new"));
                with(format!("a call without a result in {index}"), more);
                for (number, block) in blocks.iter().enumerate() {
                    let Block::ToolCall { id: old, .. } = block else { continue };
                    let mut twice = blocks.clone();
                    twice.push(block.clone());
                    with(format!("call {index}/{number} twice"), twice);
                    let mut less = blocks.clone();
                    less.remove(number);
                    with(format!("call {index}/{number} dropped"), less);
                    for id in ["", "a b", "한글", "a|b"] {
                        renamed.push((format!("{old} renamed to {id:?} in {index}/{number}"), rename(view, old, id)));
                    }
                    if let Some(other) = ids(view).find(|other| other != old) {
                        renamed
                            .push((format!("{old} renamed to {other} in {index}/{number}"), rename(view, old, &other)));
                    }
                }
            }
        }
    }
    wrong.append(&mut renamed);
    wrong
}

/// Every call id.
fn ids(view: &View) -> impl Iterator<Item = String> {
    view.messages.iter().filter_map(|message| match &message.said {
        Said::Result { call, .. } => Some(call.clone()),
        _ => None,
    })
}

/// Another id for a call and its result.
fn rename(view: &View, old: &str, new: &str) -> View {
    let mut view = view.clone();
    for message in &mut view.messages {
        match &mut message.said {
            Said::Result { call, .. } if call == old => *call = new.into(),
            Said::Assistant { blocks, .. } => {
                for block in blocks {
                    if let Block::ToolCall { id, .. } = block
                        && id == old
                    {
                        *id = new.into();
                    }
                }
            }
            _ => {}
        }
    }
    view
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn every_wrong_change_of_a_valid_view_is_refused(steps in steps(false)) {
        let tree = grow(&steps);
        let view = view_at(&tree, gjc_entry::Leaf::Current);
        prop_assume!(checked(view.clone()).is_ok());
        for (what, wrong) in mutations(&view) {
            prop_assert!(checked_against(wrong, &view).is_err(), "{what}");
        }
    }
}

fn two_calls() -> View {
    let calls = calls("보자", &[("a", "read", "{}"), ("b", "read", "{}")]);
    Tree::path([user("하나"), calls, result("a", "read", "1"), result("b", "read", "2"), user("둘")]).view().0
}

/// What is wrong with a changed view.
fn violation(change: impl FnOnce(&mut Vec<Msg>)) -> Violation {
    let view = two_calls();
    let mut wrong = view.clone();
    change(&mut wrong.messages);
    checked_against(wrong, &view).map(|_| ()).unwrap_err()
}

#[test]
fn each_violation_has_its_name() {
    assert!(checked(two_calls()).is_ok());
    let words = |text: &str| Said::User(vec![Block::text(text, Origin::Typed)]);
    let at = two_calls().messages[0].from;
    assert_eq!(violation(Vec::clear), Violation::Empty);
    assert_eq!(violation(|all| drop(all.remove(0))), Violation::FirstIsAssistant);
    assert_eq!(violation(|all| all.truncate(2)), Violation::LastIsAssistant);
    assert_eq!(violation(|all| drop(all.remove(2))), Violation::Unpaired("b".into()));
    assert_eq!(violation(|all| drop(all.remove(3))), Violation::Unpaired("b".into()));
    assert_eq!(violation(|all| all.swap(2, 3)), Violation::Unpaired("b".into()));
    assert_eq!(violation(|all| all.swap(3, 4)), Violation::Unpaired("b".into()));
    assert_eq!(violation(|all| all.push(all[2].clone())), Violation::Unpaired("a".into()));
    assert_eq!(violation(|all| all[0].said = Said::User(Vec::new())), Violation::EmptyMessage(0));
    assert_eq!(violation(|all| all[0].said = words("하나!")), Violation::HumanWords(at));
    assert_eq!(violation(|all| drop(all.pop())), Violation::HumanWords(two_calls().messages[4].from));
    let again = |all: &mut Vec<Msg>| {
        let copies: Vec<Msg> = all[1..4].to_vec();
        all.splice(4..4, copies);
    };
    assert_eq!(violation(again), Violation::BadCallId("a".into()));
}

#[test]
fn every_violation_is_a_sentence() {
    for violation in
        [Violation::Empty, Violation::HumanWords(None), Violation::EmptyMessage(3), Violation::Unpaired("x".into())]
    {
        assert!(violation.to_string().contains(' '), "{violation}");
    }
}

#[test]
fn a_conversation_that_ends_with_the_model_has_nothing_to_answer() {
    let view = Tree::path([user("하나"), answer("답")]).view().0;
    assert_eq!(checked(view).map(|_| ()).unwrap_err(), Violation::LastIsAssistant);
}
