//! One value in a person's text is set, and nothing else of it changes: comments, order, line ends, quotes stay. What cannot
//! be edited so is refused. Nothing here touches a file.

use crate::document::{Document, Scope};
use crate::problem::Problems;
use crate::setting::nearest;
use crate::yaml::{Content, Key, Node, Style, parse};
use crate::{SETTINGS, find};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

/// Why a value was not set.
#[derive(Debug, thiserror::Error)]
pub enum NotSet {
    /// There is no such setting.
    #[error("there is no setting \"{key}\"")]
    Unknown {
        /// What was asked for.
        key: String,
        /// What was probably meant.
        meant: Option<&'static str>,
    },
    /// The value is refused.
    #[error("{key}: {sentence}")]
    Wrong {
        /// The setting.
        key: &'static str,
        /// Why.
        sentence: String,
        /// The way out.
        hint: Option<String>,
    },
    /// The file has problems, or would have.
    #[error("{0}")]
    Broken(Problems),
    /// The text cannot be edited without loss.
    #[error("line {line} of {path} cannot be edited without loss: {why}")]
    ByHand {
        /// The file.
        path: String,
        /// The line, from 1.
        line: usize,
        /// Why.
        why: &'static str,
        /// What has to stand there.
        value: String,
    },
}

/// The text of a person's file with one setting set to what was typed.
///
/// # Errors
/// [`NotSet`]: also when other parts of the file have problems, since none of it would count.
pub fn set(path: &Path, text: &str, key: &str, word: &str) -> Result<String, NotSet> {
    let Some(setting) = find(key) else {
        return Err(NotSet::Unknown {
            key: key.into(),
            meant: nearest(key, SETTINGS.iter().map(|setting| setting.key)),
        });
    };
    // Easily typed by accident; whoever means it can say so.
    if word.trim().is_empty() {
        let hint = "a list without names is written []".to_owned();
        return Err(NotSet::Wrong { key: setting.key, sentence: "no value is given".into(), hint: Some(hint) });
    }
    let plain = (setting.check)(&(setting.typed)(word)).map_err(|wrong| NotSet::Wrong {
        key: setting.key,
        sentence: wrong.sentence,
        hint: wrong.hint,
    })?;
    let root = parse(path, text).map_err(NotSet::Broken)?;
    let mut before = flatten(root.as_ref());
    let value = plain.yaml();
    let by_hand = |at: usize, why| NotSet::ByHand {
        path: path.display().to_string(),
        line: text[..at.min(text.len())].matches('\n').count() + 1,
        why,
        value: by_hand_of(key, &value),
    };
    let Edit { at, with } = edit(text, root.as_ref(), setting.key, &value).map_err(|(at, why)| by_hand(at, why))?;
    let mut edited = text.to_owned();
    edited.replace_range(at.clone(), &with);
    // The proof: the same tree but for this one value, and a file that counts.
    let document = Document::parse(path, edited.as_bytes(), Scope::User).map_err(NotSet::Broken)?;
    let mut after = flatten(parse(path, &edited).map_err(NotSet::Broken)?.as_ref());
    let took = document.entries().iter().any(|entry| entry.setting.key == key && entry.plain == plain);
    let parts = [format!("{key}["), format!("{key}.")];
    let others = |tree: &mut BTreeMap<String, String>| {
        tree.retain(|path, value| !value.is_empty() && path != key && !parts.iter().any(|part| path.starts_with(part)));
    };
    others(&mut before);
    others(&mut after);
    if took && before == after { Ok(edited) } else { Err(by_hand(at.start, "its form is unusual")) }
}

/// The text of a person's file without one setting; the same text where it does not set it. Comments on its own lines go with it, all
/// others stay.
///
/// # Errors
/// [`NotSet`]: also when other parts of the file have problems, since none of it would count.
pub fn unset(path: &Path, text: &str, key: &str) -> Result<String, NotSet> {
    let Some(setting) = find(key) else {
        return Err(NotSet::Unknown {
            key: key.into(),
            meant: nearest(key, SETTINGS.iter().map(|setting| setting.key)),
        });
    };
    Document::parse(path, text.as_bytes(), Scope::User).map_err(NotSet::Broken)?;
    let root = parse(path, text).map_err(NotSet::Broken)?;
    let mut before = flatten(root.as_ref());
    let by_hand = |at: usize, why| NotSet::ByHand {
        path: path.display().to_string(),
        line: text[..at.min(text.len())].matches('\n').count() + 1,
        why,
        value: String::new(),
    };
    let Some(at) = lines_of(text, root.as_ref(), setting.key).map_err(|(at, why)| by_hand(at, why))? else {
        return Ok(text.to_owned());
    };
    let mut edited = text.to_owned();
    edited.replace_range(at.clone(), "");
    // The proof: the same tree but for this one value.
    let mut after = flatten(parse(path, &edited).map_err(NotSet::Broken)?.as_ref());
    let parts = [format!("{key}["), format!("{key}.")];
    let is_part = |path: &str| path == key || parts.iter().any(|begin| path.starts_with(begin));
    before.retain(|path, value| !value.is_empty() && !is_part(path));
    after.retain(|_, value| !value.is_empty());
    if before == after { Ok(edited) } else { Err(by_hand(at.start, "its form is unusual")) }
}

/// The lines of a setting, with those of the maps that hold nothing else. `None` where it is not there.
fn lines_of(text: &str, root: Option<&Node>, key: &str) -> Result<Option<Range<usize>>, (usize, &'static str)> {
    let (mut node, mut from) = (root, None);
    for part in key.split('.') {
        let Some(found) = node.filter(|node| !node.is_null()) else { return Ok(None) };
        let Content::Map { pairs, flow } = &found.content else { return Ok(None) };
        let Some((name, inner)) = pairs.iter().find(|(name, _)| name.name == part) else { return Ok(None) };
        if *flow {
            return Err((found.bytes.start, "it is a map in braces"));
        }
        let begin = text[..name.bytes.start].rfind('\n').map_or(0, |at| at + 1);
        // What stands before a name on its line is its margin, and the mark at the beginning of a file.
        let begin = name.bytes.start - text[begin..name.bytes.start].trim_start_matches('\u{FEFF}').len();
        // A map goes with the only value in it, if nothing stands between them.
        let only = pairs.len() == 1 && from.is_some_and(|(_, end)| end == begin);
        let behind = text[name.bytes.end..].find('\n').map_or(text.len(), |at| name.bytes.end + at + 1);
        let bare = text[name.bytes.end..behind].trim() == ":";
        from = Some((
            if only { from.map_or(begin, |(start, _)| start) } else { begin },
            if bare { behind } else { usize::MAX },
        ));
        node = Some(inner);
    }
    let (Some((start, _)), Some(node)) = (from, node) else { return Ok(None) };
    let last = text[..end_of(node)].trim_end().len().max(start);
    let end = text[last..].find('\n').map_or(text.len(), |at| last + at + 1);
    Ok(Some(start..end))
}

/// The byte behind a value. The parser's end of a list without brackets is where the next token begins: comments lie between.
fn end_of(node: &Node) -> usize {
    match &node.content {
        Content::List { items, flow: false } => items.last().map_or(node.bytes.start, end_of),
        _ => node.bytes.end,
    }
}

/// How a person writes it, on one line.
fn by_hand_of(key: &str, value: &str) -> String {
    let (mut written, mut parts) = (String::new(), key.split('.').rev());
    written.push_str(&format!("{}: {value}", parts.next().unwrap_or(key)));
    parts.fold(written, |inner, part| format!("{part}: {{{inner}}}"))
}

struct Edit {
    at: Range<usize>,
    with: String,
}

fn edit(text: &str, root: Option<&Node>, key: &str, value: &str) -> Result<Edit, (usize, &'static str)> {
    const BRACES: &str = "it is a map in braces";
    let end = if text.split_inclusive('\n').next().is_some_and(|line| line.ends_with("\r\n")) { "\r\n" } else { "\n" };
    let parts: Vec<&str> = key.split('.').collect();
    let root = root.filter(|node| !node.is_null());
    let mut pairs: &[(Key, Node)] = match root.map(|node| (&node.content, node.bytes.start)) {
        None => &[],
        Some((Content::Map { pairs, flow: false }, _)) => pairs,
        Some((_, at)) => return Err((at, BRACES)),
    };
    // The end of the text, and the column at which the names of the whole file stand.
    let mut indent = pairs.first().map_or(0, |(key, _)| column(text, key.bytes.start));
    let mut place = text.len();
    for (depth, part) in parts.iter().enumerate() {
        let Some((found, node)) = pairs.iter().find(|(key, _)| key.name == *part) else {
            let lines = lines(&parts[depth..], indent, value, end);
            let ahead = if text[..place].ends_with('\n') || place == 0 { "" } else { end };
            return Ok(Edit { at: place..place, with: format!("{ahead}{lines}") });
        };
        if depth + 1 == parts.len() {
            return replace(text, found, node, value);
        }
        // The line behind that of the map's name: comments above its first line stay with that line.
        place = text[found.bytes.end..].find('\n').map_or(text.len(), |at| found.bytes.end + at + 1);
        match &node.content {
            Content::Map { pairs: inner, flow: false } => {
                indent = inner.first().map_or(indent + 2, |(key, _)| column(text, key.bytes.start));
                pairs = inner;
            }
            _ if node.is_null() && node.bytes.is_empty() => {
                indent = column(text, found.bytes.start) + 2;
                pairs = &[];
            }
            Content::Map { .. } => return Err((node.bytes.start, BRACES)),
            _ => return Err((node.bytes.start, "a value stands where a map is wanted")),
        }
    }
    Err((0, "there is no such setting"))
}

/// `a:\n  b: value\n`, indented.
fn lines(parts: &[&str], indent: usize, value: &str, end: &str) -> String {
    let mut lines = String::new();
    for (depth, part) in parts.iter().enumerate() {
        let margin = " ".repeat(indent + 2 * depth);
        let last = depth + 1 == parts.len();
        lines.push_str(&if last { format!("{margin}{part}: {value}{end}") } else { format!("{margin}{part}:{end}") });
    }
    lines
}

fn replace(text: &str, key: &Key, node: &Node, value: &str) -> Result<Edit, (usize, &'static str)> {
    const LINES: &str = "its value is written over several lines";
    let at = node.bytes.clone();
    let one_line = text.get(at.clone()).is_some_and(|old| !old.contains(['\n', '\r']));
    match &node.content {
        Content::Scalar { style: Style::Block, .. } | Content::List { flow: false, .. } => Err((at.start, LINES)),
        // Nothing stands there: the value goes behind the colon.
        Content::Scalar { .. } if at.is_empty() => {
            let rest = &text[key.bytes.end..];
            let colon = rest.find(':').filter(|colon| rest[..*colon].trim().is_empty());
            let colon = colon.ok_or((key.bytes.end, "its form is unusual"))? + key.bytes.end + 1;
            Ok(Edit { at: colon..colon, with: format!(" {value}") })
        }
        Content::Scalar { .. } | Content::List { .. } if one_line => Ok(Edit { at, with: value.into() }),
        // A value that is a map: it has passed its check, or another problem of the file was told before.
        Content::Map { flow: true, .. } if one_line => Ok(Edit { at, with: value.into() }),
        Content::Scalar { .. } | Content::List { .. } | Content::Map { .. } => Err((at.start, LINES)),
    }
}

fn column(text: &str, at: usize) -> usize {
    let begin = text[..at].rfind('\n').map_or(0, |at| at + 1);
    text[begin..at].trim_start_matches('\u{FEFF}').chars().count()
}

/// Every value of a tree by its path. Nesting is bounded by the parser.
fn flatten(root: Option<&Node>) -> BTreeMap<String, String> {
    fn walk(node: &Node, path: &str, into: &mut BTreeMap<String, String>) {
        match &node.content {
            Content::Map { pairs, .. } => {
                for (key, node) in pairs {
                    walk(node, &if path.is_empty() { key.name.clone() } else { format!("{path}.{}", key.name) }, into);
                }
            }
            Content::List { items, .. } => {
                into.insert(path.into(), "[]".into());
                for (nth, node) in items.iter().enumerate() {
                    walk(node, &format!("{path}[{nth}]"), into);
                }
            }
            // What says nothing is the same as nothing: a map whose lines are all commented out.
            Content::Scalar { .. } if node.is_null() => {
                into.insert(path.into(), String::new());
            }
            Content::Scalar { text, style } => {
                into.insert(path.into(), format!("{style:?} {text}"));
            }
        }
    }
    let mut values = BTreeMap::new();
    if let Some(root) = root {
        walk(root, "", &mut values);
    }
    values
}
