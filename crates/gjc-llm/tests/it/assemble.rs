//! Blocks whose events come in any order between each other.

use crate::kit::{json, model};
use gjc_entry::{Block, Message, StopReason};
use gjc_llm::{Assembler, BlockKind, End, INCOMPLETE, StreamEvent};
use proptest::prelude::*;
use std::collections::VecDeque;

#[derive(Debug, Clone)]
struct Plan {
    kind: BlockKind,
    deltas: Vec<String>,
    signature: Option<String>,
}

fn plan() -> impl Strategy<Value = Plan> {
    let kind = prop_oneof![
        Just(BlockKind::Text),
        Just(BlockKind::Thinking),
        "[가-힣a-z]{1,4}".prop_map(|data| BlockKind::RedactedThinking { data }),
        "[a-z]{1,4}".prop_map(|id| BlockKind::ToolCall { id, name: "도구".into() }),
    ];
    let deltas = prop::collection::vec("[가-힣{}\":,0-9 \n]{1,6}", 0..5);
    (kind, deltas, prop::option::of("[a-z]{0,3}")).prop_map(|(kind, deltas, signature)| Plan {
        kind,
        deltas,
        signature,
    })
}

fn events(index: u16, plan: &Plan) -> VecDeque<StreamEvent> {
    let start = StreamEvent::BlockStart { index, kind: plan.kind.clone() };
    let deltas = plan.deltas.iter().map(|text| StreamEvent::Delta { index, text: text.clone() });
    [start]
        .into_iter()
        .chain(deltas)
        .chain([StreamEvent::BlockEnd { index, signature: plan.signature.clone() }])
        .collect()
}

fn assemble(events: impl IntoIterator<Item = StreamEvent>, end: End) -> String {
    let mut assembler = Assembler::new(model());
    for event in events {
        assembler.push(event);
    }
    let message = assembler.finish(end, 1);
    let text = json(&message);
    assert!(!text.contains('\n'), "one line");
    let raw = crate::kit::raw(&text);
    let mut again = Vec::new();
    let reread = Message::from_json(&raw).unwrap();
    let Message::Assistant(said) = &reread else { panic!("an answer") };
    assert!(!said.content.iter().any(|block| matches!(block, Block::Unknown(_))), "every block is read as what it is");
    reread.write(&mut again);
    assert_eq!(again, text.as_bytes(), "writing and reading keep every byte");
    text
}

proptest! {
    #[test]
    fn any_interleaving_gives_the_same_message(
        plans in prop::collection::vec(plan(), 1..5),
        picks in prop::collection::vec(any::<prop::sample::Index>(), 40),
    ) {
        let mut queues: Vec<_> = (0u16..).zip(&plans).map(|(index, plan)| events(index, plan)).collect();
        let in_order = assemble(queues.iter().flatten().cloned(), End::Complete);
        let mut mixed = Vec::new();
        for pick in picks {
            let live: Vec<usize> = (0..queues.len()).filter(|at| !queues[*at].is_empty()).collect();
            if live.is_empty() { break; }
            mixed.extend(queues[live[pick.index(live.len())]].pop_front());
        }
        mixed.extend(queues.into_iter().flatten());
        prop_assert_eq!(assemble(mixed, End::Complete), in_order);
    }

    #[test]
    fn wherever_it_is_cut_nothing_that_came_is_lost(plans in prop::collection::vec(plan(), 1..4), keep in any::<prop::sample::Index>()) {
        let all: Vec<_> = (0u16..).zip(&plans).flat_map(|(index, plan)| events(index, plan)).collect();
        let kept = &all[..keep.index(all.len() + 1)];
        let mut assembler = Assembler::new(model());
        kept.iter().for_each(|event| assembler.push(event.clone()));
        let message = assembler.finish(End::Aborted, 1);
        prop_assert_eq!(&message.stop, &StopReason::Aborted);
        let came: String = kept.iter().map(|event| match event { StreamEvent::Delta { text, .. } => text.as_str(), _ => "" }).collect();
        let stored: String = message.content.iter().map(|block| match block {
            Block::Text { text, .. } => text.clone(),
            Block::Thinking { thinking, .. } => thinking.clone(),
            Block::ToolCall { arguments, extra, .. } => match extra.iter().find(|(name, _)| &**name == INCOMPLETE) {
                Some((_, text)) => serde_json::from_str(text.get()).unwrap(),
                None => arguments.get().to_owned(),
            },
            _ => String::new(),
        }).collect();
        // Redacted blocks have no words, white space between tokens of arguments may change.
        let plain = |text: &str| text.chars().filter(|c| !matches!(c, ' ' | '\n' | '{' | '}')).collect::<String>();
        if !plans.iter().any(|plan| matches!(plan.kind, BlockKind::RedactedThinking { .. })) {
            prop_assert_eq!(plain(&stored), plain(&came));
        }
    }
}

#[test]
fn ends_have_their_stop_reasons() {
    let stop = |events: Vec<StreamEvent>, end| {
        let mut assembler = Assembler::new(model());
        events.into_iter().for_each(|event| assembler.push(event));
        let message = assembler.finish(end, 1);
        (message.stop, message.error)
    };
    let length = StreamEvent::Stop(StopReason::Length);
    assert_eq!(stop(vec![length.clone()], End::Complete), (StopReason::Length, None));
    assert_eq!(stop(vec![], End::Complete), (StopReason::Stop, None));
    assert_eq!(stop(vec![length.clone()], End::Aborted), (StopReason::Aborted, None));
    assert_eq!(stop(vec![length], End::Error("끊김".into())), (StopReason::Error, Some("끊김".into())));
}
