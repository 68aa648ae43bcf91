//! The whole state of a session as a face needs it, and its messages as JSON.

use crate::actor::Actor;
use crate::admit::Session;
use crate::shown::shown_as;
use gjc_context::{ContextMessage, Totals, select};
use gjc_entry::{Body, EntryId, Leaf, Message};
use gjc_llm::End;
use gjc_log::fs::Fs;
use gjc_protocol::{LabelInfo, Partial, Queued, Snapshot};
use serde_json::Value;

impl<F: Fs> Actor<F> {
    pub(crate) fn snapshot(&mut self) -> Snapshot {
        let messages = self.session.messages();
        let partial = self.partial.clone().map(|assembler| Partial {
            message: to_json(&Message::Assistant(assembler.finish(End::Aborted, self.session.now_millis()))),
        });
        let (log, folds) = self.session.parts();
        let usage = folds.get::<Totals>(log, Leaf::Current).map(|totals| totals.usage.clone()).unwrap_or_default();
        let mode = self.session.mode();
        let name = self.session.name();
        let (asked, seq) = self.asks.open();
        Snapshot {
            seq,
            session: self.session.id().to_string(),
            name,
            cwd: self.config.cwd.display().to_string(),
            file: self.session.log().file_path().map(|path| path.display().to_string()),
            step: self.step,
            label: LabelInfo::from(self.session.labels().label()),
            messages,
            partial,
            asked,
            mode,
            model: self.next_model().clone().into(),
            thinking: self.changes.thinking.unwrap_or(self.config.thinking),
            tier: self.changes.tier.unwrap_or(self.config.tier),
            approval: self.config.approval,
            queue: self.queue.iter().map(|prompt| Queued { text: prompt.text(), mode: prompt.mode }).collect(),
            jobs: self.jobs.infos(),
            bash: self.persons.as_ref().map(|running| running.command.clone()),
            usage,
            storage: self.told.clone(),
        }
    }
}

impl<F: Fs> Session<F> {
    /// The message of an entry, as JSON.
    pub(crate) fn message(&self, id: &EntryId) -> Option<Value> {
        let entry = self.entry(id)?;
        match &entry.body {
            Body::Message(message) => Some(to_json(message)),
            Body::CustomMessage { custom_type, content, display, details } => {
                let message = ContextMessage::Custom {
                    custom_type: custom_type.clone(),
                    content: content.clone(),
                    display: *display,
                    details: details.clone(),
                    at: entry.at,
                };
                Some(shown_as(|out| message.write(out)))
            }
            _ => None,
        }
    }

    /// The messages of the active path, as JSON.
    fn messages(&self) -> Vec<Value> {
        let Ok((selected, _)) = select(self.log(), Leaf::Current) else { return Vec::new() };
        selected.iter().map(|item| shown_as(|out| item.message.write(out))).collect()
    }
}

fn to_json(message: &Message) -> Value {
    shown_as(|out| message.write(out))
}
