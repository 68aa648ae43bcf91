//! One file as values, or as problems: all of them, each with its place. Nothing here decides whether a value counts.

use crate::problem::{Problem, Problems};
use crate::setting::{Guard, Setting, nearest};
use crate::trust::ContentHash;
use crate::value::Plain;
use crate::yaml::{Content, Key, Node, brief, parse};
use crate::{SETTINGS, Settings};
use std::path::{Path, PathBuf};

/// Whose file it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The person's.
    User,
    /// A project's: it came with a clone, and anybody may have written it.
    Project,
}

/// A file that was read.
#[derive(Debug, Clone)]
pub struct Document {
    path: PathBuf,
    scope: Scope,
    hash: ContentHash,
    entries: Vec<Entry>,
}

/// One value of a file.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Which setting.
    pub setting: &'static Setting,
    /// The value in its usual form.
    pub plain: Plain,
    /// The line of its name, from 1.
    pub line: usize,
    pub(crate) node: Node,
}

impl Document {
    /// Reads the bytes of a file. What is hashed is what is parsed.
    ///
    /// # Errors
    /// Every problem of the file; none of its values counts then.
    pub fn parse(path: &Path, bytes: &[u8], scope: Scope) -> Result<Self, Problems> {
        let hash = ContentHash::of(bytes);
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                let text = String::from_utf8_lossy(bytes);
                let sentence = "the file is no UTF-8 from here on";
                let problem = Problem::at(path, &text, error.valid_up_to(), sentence);
                let shown = vec![problem.hint("save it as UTF-8")];
                return Err(Problems { shown, more: 0 });
            }
        };
        let root = parse(path, text)?;
        let mut walk = Walk { path, text, scope, entries: Vec::new(), problems: Problems::default() };
        match root {
            None => {}
            Some(node) if node.is_null() => {}
            Some(Node { content: Content::Map { pairs, .. }, .. }) => walk.map("", pairs),
            Some(node) => {
                let sentence = "a file of settings is a map of names and values";
                walk.tell(node.bytes.start, || (sentence.into(), Some("as in: tools: [read, bash]".into())));
            }
        }
        let Walk { entries, problems, .. } = walk;
        if problems.is_empty() { Ok(Self { path: path.into(), scope, hash, entries }) } else { Err(problems) }
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whose it is.
    #[must_use]
    pub fn scope(&self) -> Scope {
        self.scope
    }

    /// What its bytes were.
    #[must_use]
    pub fn hash(&self) -> &ContentHash {
        &self.hash
    }

    /// Its values, in the order of the file.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }
}

struct Walk<'a> {
    path: &'a Path,
    text: &'a str,
    scope: Scope,
    entries: Vec<Entry>,
    problems: Problems,
}

impl Walk<'_> {
    /// Nesting is bounded by the parser.
    fn map(&mut self, above: &str, pairs: Vec<(Key, Node)>) {
        for (key, node) in pairs {
            let full = if above.is_empty() { key.name.clone() } else { format!("{above}.{}", key.name) };
            let at = key.bytes.start;
            if let Some((first, rest)) = key.name.split_once('.') {
                self.tell(at, || {
                    let sentence = format!("\"{}\" has a dot: a dot stands for a map in a map", brief(&key.name));
                    (sentence, Some(format!("write {}: and below it, indented, {}:", brief(first), brief(rest))))
                });
            } else if let Some(setting) = crate::find(&full) {
                self.value(setting, at, node);
            } else if SETTINGS.iter().any(|setting| below(setting.key, &full).is_some()) {
                match node.content {
                    Content::Map { pairs, .. } => self.map(&full, pairs),
                    // A name whose lines are all commented out.
                    Content::Scalar { .. } if node.is_null() => {}
                    _ => self.tell(node.bytes.start, || {
                        let first = next(&full).first().copied().unwrap_or_default();
                        let hint = format!("below it, indented, stands a line such as {first}: …");
                        (format!("\"{full}\" is a map of settings, not a value"), Some(hint))
                    }),
                }
            } else {
                self.tell(at, || unknown(above, &key.name));
            }
        }
    }

    fn value(&mut self, setting: &'static Setting, key_at: usize, node: Node) {
        if let (Scope::Project, Guard::Never(why)) = (self.scope, setting.guard) {
            return self.tell(key_at, || {
                let hint = "set it for yourself with: gjc config set, or remove this line";
                (format!("a project may not set {}: {why}", setting.key), Some(hint.into()))
            });
        }
        match (setting.check)(&node) {
            Ok(plain) => {
                let line = self.text[..key_at].matches('\n').count() + 1;
                self.entries.push(Entry { setting, plain, line, node });
            }
            Err(wrong) => {
                // A value that is not there has no place of its own.
                let at = if node.is_null() { key_at } else { wrong.at.unwrap_or(node.bytes.start) };
                self.tell(at, || (format!("{}: {}", setting.key, wrong.sentence), wrong.hint));
            }
        }
    }

    fn tell(&mut self, at: usize, what: impl FnOnce() -> (String, Option<String>)) {
        let (path, text) = (self.path, self.text);
        self.problems.add(|| {
            let (sentence, hint) = what();
            let problem = Problem::at(path, text, at, sentence);
            match hint {
                Some(hint) => problem.hint(hint),
                None => problem,
            }
        });
    }
}

/// What is said of a name that is no setting, and what was probably meant.
fn unknown(above: &str, name: &str) -> (String, Option<String>) {
    let whole = if above.is_empty() { String::new() } else { format!(" of {above}") };
    let choices = next(above);
    let elsewhere = SETTINGS.iter().find(|setting| setting.key.rsplit('.').next() == Some(name));
    let hint = match (nearest(name, choices.iter().copied()), elsewhere) {
        (Some(meant), _) => format!("did you mean \"{meant}\"?"),
        (None, Some(setting)) => format!("did you mean {}?", setting.key),
        (None, None) => format!("there are: {}", choices.join(", ")),
    };
    (format!("\"{}\" is no setting{whole}", brief(name)), Some(hint))
}

/// What of a key stands below a map.
fn below<'a>(key: &'a str, above: &str) -> Option<&'a str> {
    if above.is_empty() { Some(key) } else { key.strip_prefix(above)?.strip_prefix('.') }
}

/// The names that may stand directly in a map.
fn next(above: &str) -> Vec<&'static str> {
    let mut names: Vec<&str> =
        SETTINGS.iter().filter_map(|setting| below(setting.key, above)?.split('.').next()).collect();
    names.dedup();
    names
}

impl Settings {
    /// These entries laid over the defaults; each has passed its check.
    pub(crate) fn of<'a>(entries: impl Iterator<Item = (&'a str, &'a Node)>) -> Self {
        let mut settings = Self::default();
        for (key, node) in entries {
            // It was read before: it can be read again.
            let read = settings.take(key, node);
            debug_assert!(read.is_ok(), "{key} passed its check");
        }
        settings
    }
}
