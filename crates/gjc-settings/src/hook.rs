//! The kind of value of `hooks.*`: the programs that are run at an event.

use crate::lists::ToolNames;
use crate::setting::nearest;
use crate::value::{CommandLine, Patience, Plain, Value, Wrong, scalar, wrong_kind};
use crate::yaml::{Content, Key, Node, Style, brief, parse};
use serde_json::{Value as Json, json};
use std::path::Path;

/// How long a hook may run.
pub type HookTime = Patience<100, 600_000>;

/// While nobody says more or less.
const USUAL: HookTime = Patience(30_000);

/// A program that is run at an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hook {
    /// What is run, with `sh -c`.
    pub command: CommandLine,
    /// The tools whose calls it is run for; `None`: all of them.
    pub tools: Option<ToolNames>,
    /// How long it may run.
    pub timeout: HookTime,
}

/// The hooks of an event, in the order in which they are run. `OF_CALLS`: the event is about a call, so `match` may choose among
/// the tools.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HookList<const OF_CALLS: bool>(pub Vec<Hook>);

impl<const OF_CALLS: bool> HookList<OF_CALLS> {
    /// The names in a map that is a hook.
    const NAMES: &[&str] = if OF_CALLS { &["command", "match", "timeout"] } else { &["command", "timeout"] };

    fn hook(node: &Node) -> Result<Hook, Wrong> {
        let pairs = match &node.content {
            Content::Map { pairs, .. } => pairs,
            Content::Scalar { .. } if !node.is_null() => {
                return Ok(Hook { command: CommandLine::read(node)?, tools: None, timeout: USUAL });
            }
            _ => return Err(wrong_kind::<Self>(node)),
        };
        if let Some((key, _)) = pairs.iter().find(|(key, _)| !Self::NAMES.contains(&key.name.as_str())) {
            return Err(Wrong { at: Some(key.bytes.start), ..Self::unknown(key) });
        }
        let Some(command) = value(pairs, "command") else {
            return Err(Wrong::new("a hook needs a command").hint("as in: [{command: ./check.sh, timeout: 10s}]"));
        };
        let command = CommandLine::read(command).map_err(|wrong| inside(command, wrong))?;
        let tools = value(pairs, "match").map(|node| match ToolNames::read(node) {
            Ok(tools) if tools.0.is_empty() => Err(inside(
                node,
                Wrong::new("this hook would never run: match names no tool").hint("leave match out for all tools"),
            )),
            read => read.map_err(|wrong| inside(node, wrong)),
        });
        let timeout = value(pairs, "timeout").map(|node| HookTime::read(node).map_err(|wrong| inside(node, wrong)));
        Ok(Hook { command, tools: tools.transpose()?, timeout: timeout.transpose()?.unwrap_or(USUAL) })
    }

    fn unknown(key: &Key) -> Wrong {
        if key.name == "match" {
            return Wrong::new("match chooses among tools, and this event is about no call").hint("leave match out");
        }
        let wrong = Wrong::new(format!("a hook has no \"{}\"", brief(&key.name)));
        match nearest(&key.name, Self::NAMES.iter().copied()) {
            Some(meant) => wrong.hint(format!("did you mean \"{meant}\"?")),
            None => wrong.hint(format!("there are: {}", Self::NAMES.join(", "))),
        }
    }
}

fn value<'a>(pairs: &'a [(Key, Node)], name: &str) -> Option<&'a Node> {
    pairs.iter().find(|(key, _)| key.name == name).map(|(_, node)| node)
}

/// The place of what is wrong, where it is not known more exactly.
fn inside(node: &Node, wrong: Wrong) -> Wrong {
    Wrong { at: wrong.at.or(Some(node.bytes.start)), ..wrong }
}

impl<const OF_CALLS: bool> Value for HookList<OF_CALLS> {
    fn wanted() -> String {
        format!("a list of commands for sh, or of maps of {}", Self::NAMES.join(", "))
    }

    fn schema() -> Json {
        let mut names = json!({"command": CommandLine::schema(), "timeout": HookTime::schema()});
        if OF_CALLS {
            names["match"] = ToolNames::schema();
            names["match"]["minItems"] = json!(1);
        }
        let map =
            json!({"type": "object", "additionalProperties": false, "required": ["command"], "properties": names});
        json!({"type": "array", "items": {"anyOf": [CommandLine::schema(), map]}})
    }

    fn read(node: &Node) -> Result<Self, Wrong> {
        let Content::List { items, .. } = &node.content else {
            let wrong = wrong_kind::<Self>(node);
            return Err(if node.is_null() {
                wrong
            } else {
                wrong.hint("as in: [{command: ./check.sh, timeout: 10s}]")
            });
        };
        items
            .iter()
            .map(|item| Self::hook(item).map_err(|wrong| inside(item, wrong)))
            .collect::<Result<_, _>>()
            .map(Self)
    }

    fn write(&self) -> Plain {
        let map = |hook: &Hook| {
            let tools = hook.tools.as_ref().map(|tools| ("match", tools.write()));
            let command = ("command", hook.command.write());
            let pairs = [Some(command), tools, Some(("timeout", hook.timeout.write()))].into_iter().flatten();
            Plain::Map(pairs.map(|(name, value)| (name.to_owned(), value)).collect())
        };
        Plain::Many(self.0.iter().map(map).collect())
    }

    /// A list as it stands in a file, or one command.
    fn typed(word: &str) -> Node {
        let list = word.trim_start().starts_with('[').then(|| parse(Path::new(""), word).ok().flatten()).flatten();
        list.unwrap_or_else(|| {
            let command = scalar(word, Style::Quoted);
            Node { bytes: command.bytes.clone(), content: Content::List { items: vec![command], flow: true } }
        })
    }

    /// The person's are run first.
    fn join(person: &Node, project: &Node) -> Option<Node> {
        match (&person.content, &project.content) {
            (Content::List { items: person, .. }, Content::List { items, flow }) => {
                let items = person.iter().chain(items).cloned().collect();
                Some(Node { bytes: project.bytes.clone(), content: Content::List { items, flow: *flow } })
            }
            _ => None,
        }
    }
}
