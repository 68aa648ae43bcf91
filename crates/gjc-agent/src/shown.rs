//! Messages as JSON for those who look at a session.
//!
//! A session holds what other programs and models wrote, raw: it may be nested deeper than a stack can bear, or be a number
//! that no reader takes. One such value must not take the message with it that it stands in.

use gjc_entry::fields::{Fields, from_raw};
use serde_json::{Map, Value, json};

/// How deep a shown value may be nested. Readers take 128, and what it is shown in (an event, a list of messages) is a few.
const DEEPEST: usize = 100;
const TOO_DEEP: &str = "\"(nested too deep to be shown)\"";

/// A JSON text as a value, at most 100 deep: a sentence stands in place of what is deeper, and of what cannot be read.
#[must_use]
pub fn shown(json: &str) -> Value {
    let bounded = bounded(json);
    let json = bounded.as_deref().unwrap_or(json);
    let read = |json: &str| match serde_json::value::RawValue::from_string(json.to_owned()) {
        Ok(raw) => from_raw::<Value>(&raw),
        Err(error) => Err(error.to_string()),
    };
    serde_json::from_str(json).or_else(|_| read(json)).unwrap_or_else(|why| {
        let Ok(fields) = Fields::parse(json) else { return json!(format!("(cannot be shown: {why})")) };
        // Field by field, so that the text beside an unreadable value is there.
        let field = |(name, raw): (Box<str>, Box<serde_json::value::RawValue>)| {
            let value = from_raw::<Value>(&raw).unwrap_or_else(|why| json!(format!("(cannot be shown: {why})")));
            (name.into(), value)
        };
        Value::Object(fields.rest().into_iter().map(field).collect::<Map<String, Value>>())
    })
}

/// The same of what is written by `write`.
#[must_use]
pub fn shown_as(write: impl FnOnce(&mut Vec<u8>)) -> Value {
    let mut json = Vec::new();
    write(&mut json);
    shown(&String::from_utf8_lossy(&json))
}

/// Puts a sentence in place of each value that lies too deep; `None` where none does. Depth is counted, not descended.
fn bounded(json: &str) -> Option<String> {
    let (mut out, mut copied, mut depth) = (String::new(), 0, 0_usize);
    let (mut in_string, mut escaped) = (false, false);
    for (at, byte) in json.bytes().enumerate() {
        match byte {
            _ if std::mem::take(&mut escaped) => {}
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'{' | b'[' => {
                depth += 1;
                if depth == DEEPEST + 1 {
                    out.push_str(&json[copied..at]);
                    out.push_str(TOO_DEEP);
                    copied = json.len();
                }
            }
            b'}' | b']' => {
                if depth == DEEPEST + 1 {
                    copied = at + 1;
                }
                depth = depth.saturating_sub(1);
            }
            _ => {}
        }
    }
    (!out.is_empty()).then(|| out + &json[copied..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(open: &str, close: &str, depth: usize) -> String {
        format!("{}1{}", open.repeat(depth), close.repeat(depth))
    }

    fn depth(value: &Value) -> usize {
        match value {
            Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
            Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
            _ => 0,
        }
    }

    #[test]
    fn what_is_nested_too_deep_is_named_and_all_beside_it_is_there() {
        for deep in [101, 127, 128, 129, 1000, 100_000] {
            for inner in [nested("[", "]", deep), nested("{\"가\\\"[\":", "}", deep)] {
                let value = shown(&format!(r#"{{"a":"앞 [{{","d":[{inner},{inner}],"z":"뒤 \"]}}"}}"#));
                assert_eq!((&value["a"], &value["z"]), (&json!("앞 [{"), &json!("뒤 \"]}")), "{deep}");
                assert_eq!(value["d"].as_array().unwrap().len(), 2);
                assert_eq!(depth(&value), DEEPEST);
                assert_eq!(value.to_string().matches("nested too deep").count(), 2);
            }
        }
        let bearable = nested("[", "]", DEEPEST);
        assert_eq!((bounded(&bearable), shown(&bearable).to_string()), (None, bearable));
    }

    #[test]
    fn what_no_reader_takes_leaves_the_rest() {
        let value = shown(r#"{"content":"글","details":{"n":1e999},"half":"x\ud83d"}"#);
        assert_eq!((&value["content"], &value["half"]), (&json!("글"), &json!("x\u{fffd}")));
        assert!(value["details"].as_str().unwrap().starts_with("(cannot be shown: "));
        for broken in ["", "[", "}", "\"\\", "{\"a\":", "1e999", &"[".repeat(500), &"]".repeat(500)] {
            assert!(shown(broken).is_string(), "{broken}");
        }
    }
}
