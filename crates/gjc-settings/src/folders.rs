//! A list of folders as a person writes it. Whether they exist is not asked here.

use crate::value::{Plain, Value, Wrong, scalar, text, wrong_kind};
use crate::yaml::{Content, Node, Style};
use serde_json::{Value as Json, json};
use std::path::{Path, PathBuf};

/// Folders, each from the root (`/…`) or from the home folder (`~/…`): where a run begins decides none of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folders(pub Vec<String>);

impl Folders {
    /// As paths, with `~` for this home folder.
    pub fn below<'f>(&'f self, home: &'f Path) -> impl Iterator<Item = PathBuf> + 'f {
        self.0.iter().map(move |named| match named.strip_prefix('~') {
            Some(rest) => home.join(rest.trim_start_matches('/')),
            None => PathBuf::from(named),
        })
    }
}

impl Value for Folders {
    fn wanted() -> String {
        "a list of folders that begin with / or ~/".into()
    }

    fn schema() -> Json {
        json!({"type": "array", "uniqueItems": true, "items": {"type": "string", "pattern": "^(/|~/|~$)"}})
    }

    fn read(node: &Node) -> Result<Self, Wrong> {
        let Content::List { items, .. } = &node.content else {
            return Err(wrong_kind::<Self>(node));
        };
        let mut found: Vec<String> = Vec::new();
        for item in items {
            let here = |wrong: Wrong| Wrong { at: Some(item.bytes.start), ..wrong };
            let name = text::<Self>(item).map_err(here)?;
            if !(name.starts_with('/') || name == "~" || name.starts_with("~/")) {
                let wrong =
                    Wrong::new(format!("this is no folder that is meant everywhere; wanted: {}", Self::wanted()));
                return Err(here(wrong));
            }
            if found.iter().any(|other| other == name) {
                return Err(here(Wrong::new(format!("\"{name}\" stands here a second time"))));
            }
            found.push(name.into());
        }
        Ok(Self(found))
    }

    fn write(&self) -> Plain {
        Plain::List(self.0.clone())
    }

    fn typed(word: &str) -> Node {
        let inner = word.strip_prefix('[').and_then(|word| word.strip_suffix(']')).unwrap_or(word);
        let items = inner.split(',').map(str::trim).filter(|name| !name.is_empty());
        let items = items.map(|name| scalar(name, Style::Quoted)).collect();
        Node { bytes: 0..word.len(), content: Content::List { items, flow: true } }
    }
}
