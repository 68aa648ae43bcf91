//! What waits for a person: each ask is told to every face, answered once, and taken back when nobody waits for it any more.

use crate::events::Events;
use async_trait::async_trait;
use gjc_entry::OpId;
use gjc_flow::Caller;
use gjc_protocol::{About, Answer, Approval, AskEnd, Asked, EventBody, Question, Refusal};
use gjc_tools::Host;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// The open asks of a session. Cheap to clone; all clones are one.
///
/// Their list and the events about them change together, under one lock, so that a snapshot holds what the events before it
/// have told. (Whoever has the lock may take that of the events, never the other way round.)
#[derive(Clone)]
pub(crate) struct Asks {
    open: Arc<Mutex<Open>>,
    events: Events,
}

#[derive(Default)]
struct Open {
    /// How many there have been.
    count: u64,
    /// Nobody is there to answer any more.
    closed: bool,
    waiting: Vec<Waiting>,
}

struct Waiting {
    asked: Asked,
    answer: oneshot::Sender<Answer>,
}

/// An answer that was taken, and is not yet told.
pub(crate) struct Taken {
    waiting: Waiting,
    value: Answer,
}

/// Takes an ask back when nobody waits for its answer any more.
struct Ticket<'a> {
    asks: &'a Asks,
    ask: String,
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        let mut open = self.asks.lock();
        if let Some(at) = open.waiting.iter().position(|waiting| waiting.asked.ask == self.ask) {
            open.waiting.remove(at);
            self.asks.tell_end(&self.ask, AskEnd::Withdrawn);
        }
    }
}

impl Asks {
    /// Asks that are told as these events, after `count` others. `answered`: whether somebody is there to answer.
    pub(crate) fn new(events: Events, answered: bool, count: u64) -> Self {
        Self { open: Arc::new(Mutex::new(Open { count, closed: !answered, ..Open::default() })), events }
    }

    /// How many there have been; names never come again, from session to session either.
    pub(crate) fn count(&self) -> u64 {
        self.lock().count
    }

    /// What waits, oldest first, and the number of the last event that has told of it.
    pub(crate) fn open(&self) -> (Vec<Asked>, u64) {
        let open = self.lock();
        (open.waiting.iter().map(|waiting| waiting.asked.clone()).collect(), self.events.seq())
    }

    /// Nobody answers from now on: what waits ends without an answer, and so does what is asked later.
    pub(crate) fn close(&self) {
        let mut open = self.lock();
        open.closed = true;
        for Waiting { asked, .. } in std::mem::take(&mut open.waiting) {
            self.tell_end(&asked.ask, AskEnd::Withdrawn);
        }
    }

    /// Takes an answer, if it fits what was asked. Nobody hears of it before [`Taken::tell`].
    pub(crate) fn take(&self, ask: &str, value: Answer) -> Result<Taken, Refusal> {
        let mut open = self.lock();
        let Some(at) = open.waiting.iter().position(|waiting| waiting.asked.ask == ask) else {
            return Err(Refusal::new("unknown_ask", format!("nothing waits for an answer as \"{}\"", brief(ask)))
                .hint("a snapshot names what waits; what was answered, or taken back, waits no more"));
        };
        fits(&open.waiting[at].asked.about, &value)?;
        Ok(Taken { waiting: open.waiting.remove(at), value })
    }

    async fn wait(&self, op: &OpId, about: About) -> Option<Answer> {
        let (send, answer) = oneshot::channel();
        let ticket = {
            let mut open = self.lock();
            if open.closed {
                return None;
            }
            open.count += 1;
            let ask = format!("a{}", open.count);
            let asked = Asked { ask: ask.clone(), op: op.clone(), about };
            self.events.emit(EventBody::Asked(asked.clone()));
            open.waiting.push(Waiting { asked, answer: send });
            Ticket { asks: self, ask }
        };
        let answer = answer.await.ok();
        drop(ticket);
        answer
    }

    fn tell_end(&self, ask: &str, end: AskEnd) {
        self.events.emit(EventBody::Answered { ask: ask.into(), end });
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Taken {
    /// Tells every face, then whoever has asked.
    pub(crate) fn tell(self, asks: &Asks) {
        let end = match self.value {
            Answer::Once => AskEnd::Once,
            Answer::Session => AskEnd::Session,
            Answer::Reply { .. } => AskEnd::Replied,
            _ => AskEnd::Denied,
        };
        asks.tell_end(&self.waiting.asked.ask, end);
        // Whoever has asked may be gone in this moment; the answer is then nobody's.
        let _ = self.waiting.answer.send(self.value);
    }
}

#[async_trait]
impl Host for Asks {
    async fn ask(&self, _: &Caller, op: &OpId, question: Question) -> Option<Answer> {
        self.wait(op, About::Question(question)).await
    }

    async fn approve(&self, _: &Caller, op: &OpId, approval: Approval) -> Option<Answer> {
        self.wait(op, About::Approval(approval)).await
    }
}

/// Whether an answer is one to what was asked.
fn fits(about: &About, value: &Answer) -> Result<(), Refusal> {
    let wrong = |why: &str, hint: &str| Err(Refusal::new("wrong_answer", why).hint(hint));
    match (about, value) {
        (_, Answer::Deny { .. }) | (About::Approval(_), Answer::Once | Answer::Session) => Ok(()),
        (About::Question(question), Answer::Reply { choices, text }) => {
            let text = text.as_deref().filter(|text| !text.trim().is_empty());
            let mut seen = HashSet::new();
            if choices.iter().any(|at| *at >= question.choices.len()) {
                wrong("the question has no such choice", "choices are counted from 0")
            } else if choices.iter().any(|at| !seen.insert(at)) {
                wrong("a choice stands in the answer twice", "name each choice once")
            } else if choices.len() > 1 && !question.several {
                wrong("the question takes one choice", "send one place in choices")
            } else if text.is_some() && !question.free {
                wrong("the question takes no own words", "choose, or deny with words")
            } else if choices.is_empty() && text.is_none() {
                wrong("the answer is empty", "choose, give a text, or deny")
            } else {
                Ok(())
            }
        }
        (About::Approval(_), _) => wrong("a call is waiting for a yes or no", "answer with once, session or deny"),
        _ => wrong("a question is waiting for its answer", "answer with reply or deny"),
    }
}

fn brief(ask: &str) -> String {
    ask.chars().filter(|c| !c.is_control()).take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use gjc_entry::{EntryId, SessionId};
    use gjc_protocol::Choice;
    use proptest::prelude::*;
    use std::pin::pin;

    fn op(call: u16) -> OpId {
        OpId { session: SessionId::new("s").unwrap(), entry: EntryId::Short(1), call }
    }

    fn question(choices: usize, several: bool, free: bool) -> About {
        let choices = (0..choices).map(|n| Choice { label: format!("{n}번"), about: None }).collect();
        About::Question(Question { question: "무엇?".into(), choices, several, free })
    }

    fn ends(face: &mut crate::Subscription) -> Vec<(String, Option<AskEnd>)> {
        let mut found = Vec::new();
        while let Some(event) = face.next().now_or_never().flatten() {
            match event.body {
                EventBody::Asked(asked) => found.push((asked.ask, None)),
                EventBody::Answered { ask, end } => found.push((ask, Some(end))),
                _ => {}
            }
        }
        found
    }

    #[test]
    fn each_is_answered_once_and_whoever_leaves_takes_theirs_back() {
        let events = Events::default();
        let asks = Asks::new(events.clone(), true, 0);
        let mut face = events.subscribe(EventBody::TurnStarted);
        let (op0, op1) = (op(0), op(1));
        let mut first = Box::pin(asks.wait(&op0, question(2, false, false)));
        let mut second = Box::pin(asks.wait(&op1, question(0, false, true)));
        assert!(first.as_mut().now_or_never().is_none() && second.as_mut().now_or_never().is_none());
        assert_eq!(asks.open().0.iter().map(|asked| asked.ask.as_str()).collect::<Vec<_>>(), ["a1", "a2"]);
        let reply = Answer::Reply { choices: vec![1], text: None };
        asks.take("a1", reply.clone()).ok().unwrap().tell(&asks);
        assert_eq!(first.now_or_never().unwrap(), Some(reply.clone()));
        assert_eq!(asks.take("a1", reply).err().unwrap().code, "unknown_ask");
        drop(second);
        assert!(asks.open().0.is_empty());
        let expected = [("a1", None), ("a2", None), ("a1", Some(AskEnd::Replied)), ("a2", Some(AskEnd::Withdrawn))];
        assert_eq!(ends(&mut face), expected.map(|(ask, end)| (ask.to_owned(), end)));
    }

    #[test]
    fn once_nobody_answers_nothing_waits() {
        let asks = Asks::new(Events::default(), true, 0);
        let op = op(0);
        let mut waiting = pin!(asks.wait(&op, question(0, false, true)));
        assert!(waiting.as_mut().now_or_never().is_none());
        asks.close();
        assert_eq!(waiting.now_or_never(), Some(None));
        assert_eq!(asks.wait(&op, question(0, false, true)).now_or_never(), Some(None));
    }

    proptest! {
        /// What is let through can be told to a model as it stands.
        #[test]
        fn an_answer_that_fits_is_one_to_the_question(
            offered in 0usize..4, several: bool, free: bool,
            choices in proptest::collection::vec(0usize..6, 0..4), text in proptest::option::of("[가-힣 ]{0,3}"),
        ) {
            let said = text.clone().unwrap_or_default();
            let fine = fits(&question(offered, several, free), &Answer::Reply { choices: choices.clone(), text }).is_ok();
            let distinct = choices.iter().collect::<HashSet<_>>().len() == choices.len();
            let right = choices.iter().all(|at| *at < offered)
                && distinct
                && (several || choices.len() <= 1)
                && (free || said.trim().is_empty())
                && (!choices.is_empty() || !said.trim().is_empty());
            prop_assert_eq!(fine, right);
        }
    }
}
