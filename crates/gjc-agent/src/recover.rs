//! Opening a session whose last turn was cut: effects that were begun are completed, then calls without a result are asked
//! about, before the model hears anything.

use crate::act;
use crate::actor::Actor;
use crate::admit::{Facts, NotAdmitted, Session};
use gjc_context::{ContextMessage, select, unfinished};
use gjc_entry::{EntryId, Label, Leaf, Message, OpId};
use gjc_flow::Labelled;
use gjc_log::fs::Fs;
use gjc_protocol::StepName;
use gjc_tools::{Effects, Output, Recovery, Shown};
use tokio::task::JoinSet;

/// A call that has no result on the active path.
struct Unanswered {
    op: OpId,
    call_id: String,
    tool: String,
}

impl<F: Fs> Actor<F> {
    /// Completes the effects that were cut off between two of their entries, before anything is asked or sent.
    pub(crate) fn complete(&mut self) -> Result<(), NotAdmitted> {
        // Only a source without an index fails here; the log of a writer has one.
        let found = unfinished(self.session.log(), &self.config.effects).unwrap_or_default();
        for unfinished in found {
            let label = unfinished.label;
            self.admit_message(Labelled::new(Facts::Rest(unfinished), label))?;
        }
        Ok(())
    }

    /// Asks the tools what became of unanswered calls, and admits what they know. What nobody knows stays unanswered: the
    /// projection tells the model so. Commands are answered meanwhile; an abort leaves the rest unknown.
    pub(crate) async fn recover(&mut self) -> Result<(), NotAdmitted> {
        self.step = StepName::Running;
        for Unanswered { op, call_id, tool } in unanswered(&self.session) {
            gjc_fp::fp!("agent.recover.asking");
            let Some(found) = self.config.tools.get(&tool).cloned() else { continue };
            let acts = found.spec(&Shown::default()).is_some_and(|spec| spec.effects == Effects::Outside);
            let act = acts.then(|| op.clone());
            let ctx = self.context(op.clone(), act::nowhere());
            // In a task of its own: a tool that panics knows nothing, and does not take the session along.
            let mut asking = JoinSet::new();
            asking.spawn(async move { found.recover(ctx, &op).await });
            let cancel = self.cancel.clone();
            let known = self.attend(async move {
                tokio::select! {
                    biased;
                    () = cancel.cancelled() => None,
                    known = asking.join_next() => known,
                }
            });
            let output = match known.await {
                Some(Ok(Recovery::Done(output))) => output,
                Some(Ok(Recovery::NotDone)) => Output::from(Label::PUBLIC_TRUSTED)
                    .text("It did not happen: gjc was stopped before.")
                    .error()
                    .done(),
                Some(Ok(Recovery::Unknown) | Err(_)) | None => continue,
            };
            self.admit_output(&call_id, &tool, act.as_ref(), output)?;
        }
        Ok(())
    }
}

fn unanswered<F: Fs>(session: &Session<F>) -> Vec<Unanswered> {
    let id = session.id().clone();
    let Ok((selected, _)) = select(session.log(), Leaf::Current) else { return Vec::new() };
    // Only the last answer's calls can be open: an earlier one was followed by a request, which the checker saw.
    let Some(last) =
        selected.iter().rposition(|item| matches!(&item.message, ContextMessage::Message(Message::Assistant(_))))
    else {
        return Vec::new();
    };
    let ContextMessage::Message(Message::Assistant(said)) = &selected[last].message else { return Vec::new() };
    if matches!(said.stop, gjc_entry::StopReason::Aborted | gjc_entry::StopReason::Error) {
        return Vec::new();
    }
    let mut answered: Vec<&str> = selected[last + 1..]
        .iter()
        .filter_map(|item| match &item.message {
            ContextMessage::Message(Message::ToolResult(result)) => Some(result.call_id.as_str()),
            _ => None,
        })
        .collect();
    let entry: &EntryId = &selected[last].id;
    let mut open = Vec::new();
    for (index, (call_id, tool, _)) in said.calls().enumerate() {
        if let Some(found) = answered.iter().position(|id| *id == call_id) {
            answered.remove(found);
            continue;
        }
        let op = OpId { session: id.clone(), entry: entry.clone(), call: u16::try_from(index).unwrap_or(u16::MAX) };
        open.push(Unanswered { op, call_id: call_id.into(), tool: tool.into() });
    }
    open
}
