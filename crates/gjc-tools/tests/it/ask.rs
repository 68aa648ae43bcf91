//! Questions to a person.

use crate::rig::Rig;
use async_trait::async_trait;
use gjc_entry::{Block, Label, OpId, Origin};
use gjc_flow::Caller;
use gjc_protocol::{Answer, Approval, Question};
use gjc_tools::{Host, Shown};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

/// Gives one answer to whatever is asked.
struct Says(Option<Answer>, Mutex<Option<Question>>);

#[async_trait]
impl Host for Says {
    async fn ask(&self, _: &Caller, op: &OpId, question: Question) -> Option<Answer> {
        assert_eq!(*op, Rig::op(), "the act is the runtime's");
        *self.1.lock().unwrap() = Some(question);
        self.0.clone()
    }

    async fn approve(&self, _: &Caller, _: &OpId, _: Approval) -> Option<Answer> {
        None
    }
}

fn rig(answer: Option<Answer>) -> (Rig, Arc<Says>) {
    let mut rig = Rig::new();
    let says = Arc::new(Says(answer, Mutex::default()));
    rig.host = says.clone();
    (rig, says)
}

fn question() -> Value {
    json!({"question": "어느 것을 쓸까요?", "choices": [{"label": "가"}, {"label": "나", "about": "빠르다"}], "several": true})
}

#[tokio::test]
async fn the_answer_is_the_person_s_and_trusted() {
    let reply = Answer::Reply { choices: vec![1, 0], text: Some("천천히".into()) };
    let (rig, says) = rig(Some(reply));
    let done = rig.call("ask", question()).await;
    assert_eq!((done.ok(), done.label), ("나\n가천천히", Label::PUBLIC_TRUSTED));
    assert!(
        done.blocks.iter().all(|block| matches!(block, Block::Text { origin: Some(Origin::Ask), .. })),
        "{:?}",
        done.blocks
    );
    assert_eq!(done.details, json!({"choices": [1, 0]}));
    let asked = says.1.lock().unwrap().clone().unwrap();
    assert_eq!(
        (asked.question.as_str(), asked.choices.len(), asked.several, asked.free),
        ("어느 것을 쓸까요?", 2, true, true)
    );
}

#[tokio::test]
async fn no_answer_is_told_as_such() {
    let (silent, _) = rig(None);
    assert!(silent.call("ask", question()).await.err().contains("nobody answered"));
    let (no, _) = rig(Some(Answer::Deny { words: Some("나중에".into()) }));
    assert_eq!(no.call("ask", question()).await.err(), "The person does not answer this question.나중에");
}

#[test]
fn what_is_no_question_is_refused_and_where_nobody_answers_nothing_is_shown() {
    let (rig, _) = rig(None);
    for (input, why) in [
        (json!({"question": " "}), "`question` is empty"),
        (json!({"question": "?", "free": false}), "must be free"),
        (json!({"question": "?", "choices": [{"label": ""}]}), "`label` of choice 1 is empty"),
        (json!({"question": "?", "choices": [{"label": "가"}, {"label": "가"}]}), "choice 2 stands there twice"),
        (json!({"question": "가".repeat(6000)}), "longer than"),
        (json!({"question": "?", "choices": vec![json!({"label": "x"}); 21]}), "more than 20"),
        (json!({"question": "?", "who": "me"}), "who"),
    ] {
        let refused = rig.plan("ask", &input).unwrap_err();
        assert!(refused.sentence.contains(why) && refused.hint.is_some(), "{refused}");
    }
    let tool = rig.tools.get("ask").unwrap();
    assert!(tool.spec(&Shown::default()).is_none());
    assert!(tool.spec(&Shown { answers: true, ..Shown::default() }).is_some());
}
