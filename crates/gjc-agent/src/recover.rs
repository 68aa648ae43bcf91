//! Opening a session whose last turn was cut: calls without a result are asked about before the model hears anything.

use crate::actor::Config;
use crate::admit::{Fact, NotAdmitted, Session};
use crate::calls::{self, Surrounding};
use gjc_context::{ContextMessage, select};
use gjc_entry::{EntryId, Leaf, Message, OpId};
use gjc_flow::Labelled;
use gjc_log::fs::Fs;
use gjc_tools::{Output, Recovery};

/// A call that has no result on the active path.
struct Unanswered {
    op: OpId,
    call_id: String,
    tool: String,
}

/// Asks the tools what became of unanswered calls, and admits what they know. What nobody knows stays unanswered: the
/// projection tells the model so.
pub(crate) async fn recover<F: Fs>(
    session: &mut Session<F>,
    config: &Config,
    around: &Surrounding,
) -> Result<(), NotAdmitted> {
    for Unanswered { op, call_id, tool } in unanswered(session) {
        gjc_fp::fp!("agent.recover.asking");
        let Some(found) = config.tools.get(&tool) else { continue };
        let ctx = calls::context(session, config, around, op.clone());
        let output = match found.recover(ctx, &op).await {
            Recovery::Done(output) => output,
            Recovery::NotDone => Output::from(gjc_entry::Label::PUBLIC_TRUSTED)
                .text("It did not happen: gjc was stopped before.")
                .error()
                .done(),
            Recovery::Unknown => continue,
        };
        let at = session.now_millis();
        let label = output.content.label();
        let fact = output.content.zip(Labelled::new((call_id, tool, output.details, output.is_error, at), label)).map(
            |(content, (id, tool, details, is_error, at))| {
                Fact::new(calls::result(id, tool, content, details, is_error, at))
            },
        );
        session.admit(fact)?;
    }
    Ok(())
}

fn unanswered<F: Fs>(session: &mut Session<F>) -> Vec<Unanswered> {
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
