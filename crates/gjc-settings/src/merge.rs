//! Layers become one value each, with its origin: default, the person's file, the project's file, flags. The guard of each
//! setting stands between a project that is not trusted and the person. Pure.

use crate::document::{Document, Scope};
use crate::setting::Setting;
use crate::value::Plain;
use crate::yaml::{Node, brief};
use crate::{SETTINGS, Settings, find};
use std::fmt;
use std::path::{Path, PathBuf};

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Nobody set it.
    Default,
    /// A file, and the line in it.
    File {
        /// The file.
        path: PathBuf,
        /// The line of the setting's name, from 1.
        line: usize,
        /// Whose it is.
        scope: Scope,
    },
    /// An option of the command line.
    Flag(&'static str),
    /// A variable of the environment.
    Variable(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line, .. } => write!(f, "{}:{line}", path.display()),
            Self::Flag(name) | Self::Variable(name) => f.write_str(name),
        }
    }
}

/// The value of one setting.
#[derive(Debug, Clone)]
pub struct Layered {
    /// Which.
    pub setting: &'static Setting,
    /// Its value in its usual form.
    pub plain: Plain,
    /// Where it came from.
    pub origin: Origin,
    node: Option<Node>,
}

/// A value of a project that does not count while the project is not trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ignored {
    /// The setting.
    pub key: &'static str,
    /// What the project says.
    pub plain: Plain,
    /// What counts instead.
    pub instead: Plain,
    /// The project's file.
    pub path: PathBuf,
    /// The line in it.
    pub line: usize,
}

impl fmt::Display for Ignored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, plain, instead, path, line } = self;
        let path = path.display();
        write!(
            f,
            "{path}:{line} sets {key} to {}, which you have not trusted; {} stays (--trust-project takes the file as it is)",
            brief(&plain.yaml()),
            brief(&instead.yaml())
        )
    }
}

/// A setting that the command line gives, or the environment.
#[derive(Debug, Clone)]
pub struct Flag {
    setting: &'static Setting,
    plain: Plain,
    node: Node,
    origin: Origin,
}

impl Flag {
    /// The value of an option, as it was typed.
    ///
    /// # Errors
    /// A sentence, and a way out if there is one.
    pub fn new(key: &str, word: &str) -> Result<Self, (String, Option<String>)> {
        let none = || (format!("no option sets {key}"), None);
        let setting = find(key).ok_or_else(none)?;
        let flag = setting.flag.ok_or_else(none)?;
        let node = (setting.typed)(word);
        let plain = (setting.check)(&node).map_err(|wrong| (format!("{flag}: {}", wrong.sentence), wrong.hint))?;
        Ok(Self { setting, plain, node, origin: Origin::Flag(flag) })
    }

    /// The value of the variable that means a setting; `None` where none does, or where the value is not one.
    #[must_use]
    pub fn of_variable(key: &str, value: &str) -> Option<Self> {
        let setting = find(key)?;
        let origin = Origin::Variable(setting.variable?);
        let node = (setting.typed)(value);
        let plain = (setting.check)(&node).ok()?;
        Some(Self { setting, plain, node, origin })
    }

    fn layer(&self) -> Layered {
        let Self { setting, plain, node, origin } = self.clone();
        Layered { setting, plain, origin, node: Some(node) }
    }
}

/// What counts.
#[derive(Debug, Clone)]
pub struct Effective {
    /// For code.
    pub settings: Settings,
    /// For a person: every setting in the order of the page.
    pub values: Vec<Layered>,
    /// What of a project does not count.
    pub ignored: Vec<Ignored>,
}

impl Effective {
    /// One setting.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Layered> {
        self.values.iter().find(|layered| layered.setting.key == key)
    }

    /// Whether nobody set it.
    #[must_use]
    pub fn is_default(&self, key: &str) -> bool {
        self.get(key).is_none_or(|layered| layered.origin == Origin::Default)
    }
}

/// Lays the layers over each other: default, variable, the person's file, the project's, options. A project counts in full only if its file is trusted.
#[must_use]
pub fn merge(user: Option<&Document>, project: Option<(&Document, bool)>, flags: &[Flag]) -> Effective {
    let mut ignored = Vec::new();
    let values: Vec<Layered> = SETTINGS
        .iter()
        .map(|setting| {
            let mut now = Layered { setting, plain: (setting.default)(), origin: Origin::Default, node: None };
            let given = |variable: bool| {
                let is = |flag: &&Flag| {
                    flag.setting.key == setting.key && matches!(flag.origin, Origin::Variable(_)) == variable
                };
                flags.iter().find(is).map(Flag::layer)
            };
            now = given(true).unwrap_or(now);
            if let Some(found) = user.and_then(|document| from(document, setting)) {
                now = found;
            }
            if let Some((document, trusted)) = project
                && let Some(found) = from(document, setting)
            {
                if !trusted && setting.guard.keeps_out(&found.plain, &now.plain) {
                    ignored.extend(ignore(document.path(), found, &now));
                } else {
                    now = over(now, found);
                }
            }
            given(false).unwrap_or(now)
        })
        .collect();
    let settings = Settings::of(values.iter().filter_map(|value| Some((value.setting.key, value.node.as_ref()?))));
    Effective { settings, values, ignored }
}

/// A project's value over what is below it: in its place, or beside it where it only adds.
fn over(below: Layered, found: Layered) -> Layered {
    let setting = found.setting;
    let both = below.node.zip(found.node.as_ref()).and_then(|(below, found)| (setting.join)(&below, found));
    match both.and_then(|both| Some(((setting.check)(&both).ok()?, both))) {
        Some((plain, both)) => Layered { plain, node: Some(both), ..found },
        None => found,
    }
}

fn from(document: &Document, setting: &'static Setting) -> Option<Layered> {
    let entry = document.entries().iter().find(|entry| entry.setting.key == setting.key)?;
    let origin = Origin::File { path: document.path().into(), line: entry.line, scope: document.scope() };
    Some(Layered { setting, plain: entry.plain.clone(), origin, node: Some(entry.node.clone()) })
}

fn ignore(path: &Path, found: Layered, now: &Layered) -> Option<Ignored> {
    let Origin::File { line, .. } = found.origin else { return None };
    Some(Ignored { key: found.setting.key, plain: found.plain, instead: now.plain.clone(), path: path.into(), line })
}
