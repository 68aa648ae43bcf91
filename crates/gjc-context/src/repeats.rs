//! Whether a model goes round in circles: the same call with the same result, again and again.

use crate::Fold;
use gjc_entry::{At, Body, Entry, Kind, KindSet, Message, Scope};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The last call on a path, and how often it came in a row, each time with the same result. A person's words begin a new row.
#[derive(Debug, Clone, Default)]
pub struct Repeats {
    /// Calls without a result yet, by their ids: tool, and tool with arguments.
    open: HashMap<String, (String, u64)>,
    tool: String,
    last: Option<u64>,
    times: u32,
}

/// Tools that are asked again until something has changed.
const POLLING: [&str; 2] = ["job", "session_status"];

impl Repeats {
    /// So many times in a row are no accident.
    pub const MOST: u32 = 5;

    /// The tool, once the same call has had the same result [`Repeats::MOST`] times in a row.
    #[must_use]
    pub fn circling(&self) -> Option<&str> {
        (self.times >= Self::MOST).then_some(&self.tool)
    }
}

impl Fold for Repeats {
    const SCOPE: Scope = Scope::Path;
    const KINDS: KindSet = KindSet::of(&[Kind::Message]);

    fn step(&mut self, _: At, entry: &Entry) {
        match &entry.body {
            Body::Message(Message::User(_)) => *self = Self::default(),
            Body::Message(Message::Assistant(said)) => {
                // Only the last answer's calls are open.
                self.open.clear();
                for (id, name, arguments) in said.calls().filter(|(_, name, _)| !POLLING.contains(name)) {
                    self.open.insert(id.to_owned(), (name.to_owned(), hash(&(name, arguments.get()))));
                }
            }
            Body::Message(Message::ToolResult(result)) => {
                let Some((tool, call)) = self.open.remove(&result.call_id) else { return };
                let mut content = Vec::new();
                result.content.write(&mut content);
                let this = Some(hash(&(call, result.is_error, content)));
                self.times = if this == self.last { self.times + 1 } else { 1 };
                (self.tool, self.last) = (tool, this);
            }
            _ => {}
        }
    }
}

fn hash(of: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls of a tool with a result each, after a prompt.
    fn fold(tool: &str, results: &[&str]) -> Repeats {
        let mut repeats = Repeats::default();
        let mut step = |message: String| {
            let line = format!(r#"{{"type":"message","id":"0000000a","parentId":null,"message":{message}}}"#);
            repeats.step(At { off: 0, len: 0 }, &Entry::parse(&line).expect("a line of the test"));
        };
        step(r#"{"role":"user","content":"고쳐 줘"}"#.into());
        for result in results {
            let call = format!(r#"{{"type":"toolCall","id":"c","name":"{tool}","arguments":{{"경로":"가"}}}}"#);
            step(format!(r#"{{"role":"assistant","content":[{call}]}}"#));
            step(format!(r#"{{"role":"toolResult","toolCallId":"c","toolName":"{tool}","content":"{result}"}}"#));
        }
        repeats
    }

    #[test]
    fn five_in_a_row_are_a_circle_and_a_person_ends_it() {
        assert_eq!(fold("read", &["같음"; 4]).circling(), None);
        let mut circle = fold("read", &["같음"; 5]);
        assert_eq!(circle.circling(), Some("read"));
        assert_eq!(fold("read", &["같음", "같음", "다름", "같음", "같음", "같음"]).circling(), None);
        let line = r#"{"type":"message","id":"0000000b","parentId":null,"message":{"role":"user","content":"계속"}}"#;
        circle.step(At { off: 0, len: 0 }, &Entry::parse(line).expect("a line of the test"));
        assert_eq!(circle.circling(), None);
    }

    #[test]
    fn asking_for_news_is_no_circle() {
        for tool in POLLING {
            assert_eq!(fold(tool, &["running"; 20]).circling(), None);
        }
    }

    #[test]
    fn a_result_that_answers_no_call_counts_for_nothing() {
        let mut repeats = Repeats::default();
        let line = r#"{"type":"message","id":"0000000a","parentId":null,"message":{"role":"toolResult","toolCallId":"c","toolName":"read","content":"x"}}"#;
        for _ in 0..9 {
            repeats.step(At { off: 0, len: 0 }, &Entry::parse(line).expect("a line of the test"));
        }
        assert_eq!(repeats.circling(), None);
    }
}
