//! A whole file as the family's readers read it, once more: from the description of the format, over plain JSON.

use crate::model::context;
use serde_json::{Value, json};
use std::collections::HashMap;

/// The entries that have a name, and the last of them.
pub(crate) struct File {
    pub(crate) entries: Vec<Value>,
    pub(crate) leaf: Option<String>,
}

impl File {
    /// Reads it.
    pub(crate) fn read(text: &str) -> Self {
        let mut lines = text.lines().filter_map(|line| Some((line, serde_json::from_str::<Value>(line).ok()?)));
        let mut header = lines.next().unwrap().1;
        if header["type"] == "title" {
            header = lines.next().unwrap().1;
        }
        assert_eq!(header["type"], "session");
        let version = header["version"].as_u64().unwrap_or(1);
        let mut entries: Vec<Value> = Vec::new();
        let mut named: HashMap<String, (usize, &str)> = HashMap::new();
        for (line, mut value) in lines {
            match value["type"].as_str() {
                None | Some("header_patch") => continue,
                Some("entry_patch") => {
                    let target = value["entryId"].as_str().and_then(|id| named.get(id));
                    if let (Some((at, _)), Some(message)) = (target, value["patch"].get("message")) {
                        entries[*at]["message"] = message.clone();
                    }
                    continue;
                }
                Some(_) => {}
            }
            if version == 1 {
                number(&mut value, entries.len());
            }
            let Some(id) = value["id"].as_str().map(String::from) else { continue };
            if version < 3 && value["message"]["role"] == "hookMessage" {
                value["message"]["role"] = json!("custom");
            }
            // The first owns the id. One that says the same is that one; another one has no name.
            if let std::collections::hash_map::Entry::Vacant(e) = named.entry(id) {
                e.insert((entries.len(), line));
                entries.push(value);
            }
        }
        // A parent that does not stand before its child is none.
        let mut seen = std::collections::HashSet::new();
        for entry in &mut entries {
            if entry["parentId"].as_str().is_some_and(|parent| !seen.contains(parent)) {
                entry["parentId"] = Value::Null;
            }
            seen.insert(entry["id"].as_str().unwrap().to_owned());
        }
        let leaf = entries.last().map(|last| last["id"].as_str().unwrap().to_owned());
        Self { entries, leaf }
    }

    /// The context at the leaf.
    pub(crate) fn context(&self) -> Vec<Value> {
        context(&self.entries, self.leaf.as_deref())
    }
}

/// Version 1 has no ids: the place is one, and each entry follows the one before.
fn number(value: &mut Value, place: usize) {
    value["id"] = json!(format!("{place:08x}"));
    value["parentId"] = if place == 0 { Value::Null } else { json!(format!("{:08x}", place - 1)) };
    if let Some(index) = value["firstKeptEntryIndex"].as_u64() {
        // The header is counted.
        value["firstKeptEntryId"] = if index == 0 { json!("") } else { json!(format!("{:08x}", index - 1)) };
    }
}
