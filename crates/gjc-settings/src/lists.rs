//! Kinds of values that are lists of names, each name once: tools, servers, folders. Whether what they name exists is not asked here.

use crate::value::{Plain, Value, Wrong, one_of, scalar, text, wrong_kind};
use crate::yaml::{Content, Node, Style, brief};
use serde_json::{Value as Json, json};
use std::path::{Path, PathBuf};

/// The names of a list; `check` judges each. `example` is shown where something else stands.
fn names<T: Value>(
    node: &Node,
    example: &str,
    check: impl Fn(&str) -> Result<(), Wrong>,
) -> Result<Vec<String>, Wrong> {
    let Content::List { items, .. } = &node.content else {
        let wrong = wrong_kind::<T>(node);
        return Err(if node.is_null() { wrong } else { wrong.hint(format!("as in: {example}")) });
    };
    let mut found: Vec<String> = Vec::new();
    for item in items {
        let here = |wrong: Wrong| Wrong { at: Some(item.bytes.start), ..wrong };
        let name = text::<T>(item).map_err(here)?;
        check(name).map_err(here)?;
        if found.iter().any(|other| other == name) {
            return Err(here(Wrong::new(format!("\"{name}\" stands here a second time"))));
        }
        found.push(name.into());
    }
    Ok(found)
}

/// The list that a word stands for: `a,b` or `[a, b]`.
fn typed_list(word: &str) -> Node {
    let inner = word.strip_prefix('[').and_then(|word| word.strip_suffix(']')).unwrap_or(word);
    let items = inner.split(',').map(str::trim).filter(|name| !name.is_empty());
    let items = items.map(|name| scalar(name, Style::Quoted)).collect();
    Node { bytes: 0..word.len(), content: Content::List { items, flow: true } }
}

/// The tools that there are, in the order in which a model sees them.
pub const TOOLS: &[&str] = &["read", "write", "edit", "bash", "grep", "find", "ls", "ask", "job"];

/// The tools that are off until a setting of their own switches them on.
pub const OPTIONAL_TOOLS: &[&str] = &["fetch"];

fn all_tools() -> Vec<&'static str> {
    [TOOLS, OPTIONAL_TOOLS].concat()
}

/// Names of tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolNames(pub Vec<String>);

impl Value for ToolNames {
    fn wanted() -> String {
        format!("a list of tools ({})", all_tools().join(", "))
    }

    fn schema() -> Json {
        json!({"type": "array", "uniqueItems": true, "items": {"type": "string", "enum": all_tools()}})
    }

    fn read(node: &Node) -> Result<Self, Wrong> {
        names::<Self>(node, "tools: [read, bash]", |name| one_of("tool", name, &all_tools())).map(Self)
    }

    fn write(&self) -> Plain {
        Plain::List(self.0.clone())
    }

    fn typed(word: &str) -> Node {
        typed_list(word)
    }
}

/// Servers as they stand in an address: `host` or `host:port`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hosts(pub Vec<String>);

/// Whether a text can be a server of an address: a name or an address, with a port or without.
fn is_server(text: &str) -> bool {
    let odd = |c: char| matches!(c, '/' | '@' | '*' | '?' | '#') || c.is_whitespace();
    // In an address of IPv6 colons stand between its own parts, unless there are brackets around those.
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => (host, Some(port)),
        _ => (text, None),
    };
    !host.is_empty() && !text.contains(odd) && port.is_none_or(|port| port.parse::<u16>().is_ok_and(|port| port > 0))
}

impl Value for Hosts {
    fn wanted() -> String {
        "a list of servers, each as HOST or HOST:PORT".into()
    }

    fn schema() -> Json {
        json!({"type": "array", "uniqueItems": true, "items": {"type": "string", "pattern": "^[^/@\\s]+$"}})
    }

    fn read(node: &Node) -> Result<Self, Wrong> {
        let check = |name: &str| match is_server(name) {
            true => Ok(()),
            false => Err(Wrong::new(format!("\"{}\" is no server", brief(name)))
                .hint("give its name or its address alone, as in localhost or 192.168.0.7:8080")),
        };
        names::<Self>(node, "[localhost, \"192.168.0.7:8080\"]", check).map(Self)
    }

    fn write(&self) -> Plain {
        Plain::List(self.0.clone())
    }

    fn typed(word: &str) -> Node {
        // The brackets of an address are not those of a list.
        if word.starts_with('[') && word.contains("]:") {
            return typed_list(&format!("[{word}]"));
        }
        typed_list(word)
    }
}

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
        let check = |name: &str| match name.starts_with('/') || name == "~" || name.starts_with("~/") {
            true => Ok(()),
            false => {
                let wanted = Self::wanted();
                Err(Wrong::new(format!("this is no folder that is meant everywhere; wanted: {wanted}")))
            }
        };
        names::<Self>(node, "[~/build, /srv/cache]", check).map(Self)
    }

    fn write(&self) -> Plain {
        Plain::List(self.0.clone())
    }

    fn typed(word: &str) -> Node {
        typed_list(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_never_be_a_server_is_told_apart() {
        for server in ["localhost", "localhost:8080", "192.168.0.7:1", "::1", "[::1]", "[::1]:443", "집.example"] {
            assert!(is_server(server), "{server}");
        }
        for other in ["", ":80", "localhost:port", "localhost:0", "a:99999", "http://a", "a b", "*.example", "u@h"] {
            assert!(!is_server(other), "{other}");
        }
    }
}
