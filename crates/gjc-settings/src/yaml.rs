//! A text of YAML as a tree in which every node knows its bytes. Of YAML only what settings need: maps, lists, scalars.
//!
//! Anchors, aliases, merges, tags, directives, several documents and keys that are no scalars are refused: they say the same
//! in ways that are hard to see. Nothing here knows a setting. Nesting is bounded, and nothing recurses on the text.

use crate::problem::{Problem, Problems};
use granit_parser::{Event, Parser, ScalarStyle, StructureStyle};
use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;

/// How deep maps and lists may stand in each other; settings need three.
const DEEPEST: usize = 16;

/// A node.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    /// Its bytes; of a map or list in lines only the beginning is exact.
    pub(crate) bytes: Range<usize>,
    pub(crate) content: Content,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Content {
    Scalar { text: String, style: Style },
    List { items: Vec<Node>, flow: bool },
    Map { pairs: Vec<(Key, Node)>, flow: bool },
}

/// How a scalar is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    Plain,
    Quoted,
    /// `|` or `>`.
    Block,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Key {
    pub(crate) name: String,
    pub(crate) bytes: Range<usize>,
}

impl Node {
    /// Whether nothing stands there.
    pub(crate) fn is_null(&self) -> bool {
        match &self.content {
            Content::Scalar { text, style: Style::Plain } => {
                matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL")
            }
            _ => false,
        }
    }
}

/// Parses; `None` when the text holds nothing but comments.
pub(crate) fn parse(file: &Path, text: &str) -> Result<Option<Node>, Problems> {
    let options = granit_parser::options! {
        flow_nesting_limit: DEEPEST,
        block_nesting_limit: DEEPEST,
        disallow_directives: true,
        emit_unresolved_aliases: true,
        emit_comments: false,
    };
    // The parser skips a byte order mark, and counts its bytes or not; without it there is nothing to doubt.
    let skipped = text.len() - text.trim_start_matches('\u{FEFF}').len();
    let mut tree = Tree { file, text, stack: Vec::new(), root: None, problems: Problems::default() };
    for event in Parser::new_from_str_with_options(&text[skipped..], options) {
        let done = match event {
            Ok((event, span)) => {
                let place = |marker: granit_parser::Marker| marker.byte_offset().map_or(0, |at| at + skipped);
                tree.take(event, place(span.start)..place(span.end))
            }
            Err(error) => {
                let at = error.marker().byte_offset().map_or(0, |at| at + skipped);
                tree.refuse(at, format!("this is no YAML: {}", told(&error)), None);
                Err(())
            }
        };
        if done.is_err() {
            break;
        }
    }
    if tree.problems.is_empty() { Ok(tree.root) } else { Err(tree.problems) }
}

fn told(error: &granit_parser::ScanError) -> String {
    let info = error.info();
    if info.contains("recursion limit") { format!("nested deeper than {DEEPEST}") } else { info }
}

/// A map or list that is not closed yet.
enum Open {
    List { at: usize, items: Vec<Node>, flow: bool },
    Map { at: usize, pairs: Vec<(Key, Node)>, flow: bool, key: Option<Key>, seen: HashMap<String, usize> },
}

struct Tree<'a> {
    file: &'a Path,
    text: &'a str,
    stack: Vec<Open>,
    root: Option<Node>,
    problems: Problems,
}

impl Tree<'_> {
    fn refuse(&mut self, at: usize, sentence: String, hint: Option<&str>) {
        let (file, text) = (self.file, self.text);
        self.problems.add(|| {
            let problem = Problem::at(file, text, at, sentence);
            match hint {
                Some(hint) => problem.hint(hint),
                None => problem,
            }
        });
    }

    /// `Err` ends it: what follows would only be guessed.
    fn take(&mut self, event: Event<'_>, bytes: Range<usize>) -> Result<(), ()> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.plain_node(anchor, tag.is_some(), &bytes)?;
                let style = match style {
                    ScalarStyle::Plain => Style::Plain,
                    ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => Style::Quoted,
                    ScalarStyle::Literal | ScalarStyle::Folded => Style::Block,
                };
                // The parser gives a value that is not there as `~` without bytes.
                let text = if style == Style::Plain && bytes.is_empty() { String::new() } else { text.into_owned() };
                self.add(Node { bytes, content: Content::Scalar { text, style } })
            }
            Event::SequenceStart(style, anchor, tag) => {
                self.plain_node(anchor, tag.is_some(), &bytes)?;
                self.no_key_is_expected(&bytes)?;
                self.stack.push(Open::List { at: bytes.start, items: Vec::new(), flow: style == StructureStyle::Flow });
                Ok(())
            }
            Event::MappingStart(style, anchor, tag) => {
                self.plain_node(anchor, tag.is_some(), &bytes)?;
                self.no_key_is_expected(&bytes)?;
                let flow = style == StructureStyle::Flow;
                self.stack.push(Open::Map {
                    at: bytes.start,
                    pairs: Vec::new(),
                    flow,
                    key: None,
                    seen: HashMap::new(),
                });
                Ok(())
            }
            Event::SequenceEnd | Event::MappingEnd => match self.stack.pop() {
                Some(Open::List { at, items, flow }) => {
                    self.add(Node { bytes: at..bytes.end.max(at), content: Content::List { items, flow } })
                }
                Some(Open::Map { at, pairs, flow, .. }) => {
                    self.add(Node { bytes: at..bytes.end.max(at), content: Content::Map { pairs, flow } })
                }
                None => Err(()),
            },
            Event::Alias(_) | Event::UnresolvedAlias(_) => {
                self.refuse(bytes.start, "settings have no aliases".into(), Some("write the value itself"));
                Err(())
            }
            Event::DocumentStart(..) if self.root.is_some() => {
                self.refuse(bytes.start, "a second document begins here".into(), Some("one file holds one document"));
                Err(())
            }
            _ => Ok(()),
        }
    }

    fn plain_node(&mut self, anchor: usize, tagged: bool, bytes: &Range<usize>) -> Result<(), ()> {
        if anchor != 0 {
            self.refuse(bytes.start, "settings have no anchors".into(), Some("write the value where it is wanted"));
            return Err(());
        }
        if tagged {
            self.refuse(bytes.start, "settings have no tags".into(), Some("leave the word with \"!\" out"));
            return Err(());
        }
        Ok(())
    }

    fn no_key_is_expected(&mut self, bytes: &Range<usize>) -> Result<(), ()> {
        match self.stack.last() {
            Some(Open::Map { key: None, .. }) => {
                self.refuse(bytes.start, "a map or list is no name of a setting".into(), None);
                Err(())
            }
            _ => Ok(()),
        }
    }

    fn add(&mut self, node: Node) -> Result<(), ()> {
        match self.stack.last_mut() {
            None => {
                self.root = Some(node);
                Ok(())
            }
            Some(Open::List { items, .. }) => {
                items.push(node);
                Ok(())
            }
            Some(Open::Map { key: key @ None, seen, .. }) => {
                let Content::Scalar { text: name, style } = node.content else { return Err(()) };
                let before = seen.insert(name.clone(), node.bytes.start);
                let merge = name == "<<" && style == Style::Plain;
                *key = Some(Key { name: name.clone(), bytes: node.bytes.clone() });
                if merge {
                    self.refuse(
                        node.bytes.start,
                        "settings have no merges (<<)".into(),
                        Some("write the values themselves"),
                    );
                    return Err(());
                }
                if let Some(first) = before {
                    let (file, text, at) = (self.file, self.text, node.bytes.start);
                    self.problems.add(|| {
                        let line = text[..first].matches('\n').count() + 1;
                        let problem =
                            Problem::at(file, text, at, format!("\"{}\" stands here a second time", brief(&name)));
                        problem.hint(format!("the first one is in line {line}; keep one"))
                    });
                }
                Ok(())
            }
            Some(Open::Map { pairs, key, .. }) => {
                if let Some(key) = key.take() {
                    pairs.push((key, node));
                }
                Ok(())
            }
        }
    }
}

/// A name of any length, for a sentence.
pub(crate) fn brief(text: &str) -> String {
    let mut chars = text.chars();
    let kept: String = chars.by_ref().take(40).collect();
    if chars.next().is_some() { format!("{kept}…") } else { kept }
}
