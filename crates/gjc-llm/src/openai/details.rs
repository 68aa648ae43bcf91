//! `reasoning_details`, the list in which OpenRouter streams thinking with the signatures of those who thought. It goes back as
//! one list, or not at all: <https://openrouter.ai/docs/use-cases/reasoning-tokens>.

use serde_json::{Map, Value};

/// The list so far.
#[derive(Default)]
pub(super) struct Details {
    list: Vec<Map<String, Value>>,
    /// It grew beyond all measure: it is not worth to be kept.
    lost: bool,
}

/// The most details of an answer: each new one is compared with those before it.
const MOST: usize = 1_024;

/// The fields that come in pieces.
const STREAMED: &[&str] = &["text", "summary"];

impl Details {
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Takes the details of one event; gives the words in them.
    pub(super) fn take(&mut self, details: Vec<Value>) -> String {
        let mut words = String::new();
        for detail in details {
            let Value::Object(detail) = detail else { continue };
            for name in STREAMED {
                words.push_str(detail.get(*name).and_then(Value::as_str).unwrap_or_default());
            }
            match self.list.iter().rposition(|open| same(open, &detail)) {
                Some(at) => merge(&mut self.list[at], detail),
                None if self.list.len() < MOST => self.list.push(detail),
                None => self.lost = true,
            }
        }
        words
    }

    /// The list as JSON, if anything in it is signed or closed: without, it is of no use to who made it.
    pub(super) fn signature(&self) -> Option<String> {
        let signed = |detail: &Map<String, Value>| {
            ["signature", "data"]
                .iter()
                .any(|name| detail.get(*name).and_then(Value::as_str).is_some_and(|text| !text.is_empty()))
        };
        (!self.lost && self.list.iter().any(signed)).then(|| serde_json::to_string(&self.list).ok()).flatten()
    }
}

/// Whether two pieces belong to one detail: of one type and place, and neither is data, which comes whole.
fn same(open: &Map<String, Value>, detail: &Map<String, Value>) -> bool {
    ["type", "index"].iter().all(|name| open.get(*name) == detail.get(*name)) && !open.contains_key("data")
}

fn merge(open: &mut Map<String, Value>, detail: Map<String, Value>) {
    for (name, value) in detail {
        match (open.get_mut(&name), value) {
            (_, Value::Null) => {}
            (Some(Value::String(all)), Value::String(more)) if STREAMED.contains(&name.as_str()) => all.push_str(&more),
            (_, value) => {
                open.insert(name, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn pieces_become_one_list_and_only_a_signed_one_goes_back() {
        let mut details = Details::default();
        let piece = |text: &str| vec![json!({"type": "reasoning.text", "index": 0, "text": text, "signature": null})];
        assert_eq!(details.take(piece("먼저 ")), "먼저 ");
        assert_eq!(details.take(piece("읽자")), "읽자");
        assert_eq!(details.signature(), None);
        details.take(vec![json!({"type": "reasoning.text", "index": 0, "signature": "c2ln"}), json!("junk")]);
        let one = r#"[{"index":0,"signature":"c2ln","text":"먼저 읽자","type":"reasoning.text"}]"#;
        assert_eq!(details.signature().as_deref(), Some(one));
        let closed = || vec![json!({"type": "reasoning.encrypted", "data": "eA==", "index": 1})];
        details.take(closed());
        details.take(closed());
        assert_eq!(details.list.len(), 3, "data comes whole");
        details.take((0..2_000).map(|n| json!({"type": "reasoning.text", "index": n + 2, "text": "끝없이"})).collect());
        assert_eq!((details.list.len(), details.signature()), (MOST, None));
    }
}
