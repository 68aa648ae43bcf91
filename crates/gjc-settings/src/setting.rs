//! What a setting is, and the macro that makes one of a few lines. No value lives here.

use crate::value::{Plain, Value, Wrong};
use crate::yaml::Node;
use serde_json::Value as Json;

/// One setting.
pub struct Setting {
    /// Its name, with dots between maps: `retry.attempts`.
    pub key: &'static str,
    /// What it does, a line of Markdown each.
    pub about: &'static [&'static str],
    /// What it has while nobody sets it.
    pub default: fn() -> Plain,
    /// What a project may do with it.
    pub guard: Guard,
    /// The option of the command line that stands above it.
    pub flag: Option<&'static str>,
    /// The variable of the environment that counts where no file says anything.
    pub variable: Option<&'static str>,
    /// What is wanted, for a person.
    pub(crate) wanted: fn() -> String,
    pub(crate) schema: fn() -> Json,
    /// Checks a node and gives its usual form.
    pub(crate) check: fn(&Node) -> Result<Plain, Wrong>,
    /// The node that a word of the command line stands for.
    pub(crate) typed: fn(&str) -> Node,
    /// A person's value and a project's together, where the project's only adds.
    pub(crate) join: fn(&Node, &Node) -> Option<Node>,
}

impl std::fmt::Debug for Setting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Setting({})", self.key)
    }
}

/// What a project may do with a setting.
#[derive(Clone, Copy)]
pub enum Guard {
    /// Only make it stricter, until a person trusts the project's file. The function says whether the first value (the
    /// project's) is looser than the second (the person's); an order: nothing is looser than itself, and what is not looser
    /// than something that is not looser is not looser.
    Tighten {
        /// Whether the first is looser than the second.
        looser: fn(&Plain, &Plain) -> bool,
        /// The order, for a person: "fewer are stricter".
        order: &'static str,
    },
    /// Nothing, until a person trusts the project's file: no value is stricter than another.
    Trusted,
    /// Add to what the person has, once they trust the project's file. Nothing of theirs goes, trusted or not.
    Adds,
    /// Nothing, ever. The sentence says why.
    Never(&'static str),
}

impl Guard {
    /// Whether a project's value must stay out while the project is not trusted.
    #[must_use]
    pub fn keeps_out(&self, project: &Plain, user: &Plain) -> bool {
        match self {
            Self::Tighten { looser, .. } => looser(project, user),
            Self::Trusted => project != user,
            Self::Adds | Self::Never(_) => true,
        }
    }
}

/// The guard of a kind whose values have an order: the greater one is looser.
pub(crate) const fn less_is_stricter<T: Value + PartialOrd>(order: &'static str) -> Guard {
    Guard::Tighten { looser: greater::<T>, order }
}

fn greater<T: Value + PartialOrd>(project: &Plain, user: &Plain) -> bool {
    let value = |plain: &Plain| T::read(&T::typed(&plain.shown())).ok();
    match (value(project), value(user)) {
        (Some(project), Some(user)) => project > user,
        // What cannot be compared is not let in.
        _ => true,
    }
}

/// The guard of a list: only names that the person's list has.
pub(crate) const fn fewer_are_stricter(order: &'static str) -> Guard {
    Guard::Tighten { looser: has_more, order }
}

fn has_more(project: &Plain, user: &Plain) -> bool {
    match (project, user) {
        (Plain::List(project), Plain::List(user)) => project.iter().any(|name| !user.contains(name)),
        _ => true,
    }
}

/// The setting with a name.
#[must_use]
pub fn find(key: &str) -> Option<&'static Setting> {
    crate::SETTINGS.iter().find(|setting| setting.key == key)
}

/// What was probably meant by a word; `None` when nothing is near.
pub fn nearest<'a>(word: &str, choices: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // The distance costs the product of both lengths; no name is that long.
    if word.len() > 200 {
        return None;
    }
    let lower = word.to_lowercase();
    let folded: String = lower.chars().filter(|c| !matches!(c, '-' | '_')).collect();
    let far = |choice: &str| {
        let choice = choice.to_lowercase();
        strsim::osa_distance(&lower, &choice).min(strsim::osa_distance(&folded, &choice))
    };
    let near = (word.chars().count() / 3).max(1);
    choices
        .map(|choice| (far(choice), choice))
        .filter(|(far, _)| *far <= near)
        .min_by_key(|(far, _)| *far)
        .map(|(_, c)| c)
}

/// Makes the structs, the table and the reading of [`crate::Settings`] from a list of groups and their settings.
macro_rules! settings {
    ($(
        $(#[doc = $group_doc:literal])+
        $group:ident: $Group:ident {
            $(
                $(#[doc = $doc:literal])+
                $field:ident: $kind:ty = $default:expr; key $key:literal; guard $guard:expr; $(flag $flag:literal;)? $(variable $variable:literal;)?
            )+
        }
    )+) => {
        /// Every setting with its value.
        #[derive(Debug, Clone, PartialEq)]
        pub struct Settings {
            $( $(#[doc = $group_doc])+ pub $group: $Group, )+
        }

        $(
            $(#[doc = $group_doc])+
            #[derive(Debug, Clone, PartialEq)]
            pub struct $Group {
                $( $(#[doc = $doc])+ pub $field: $kind, )+
            }
        )+

        /// Every setting that there is, in the order of the page.
        pub static SETTINGS: &[Setting] = &[$($(
            Setting {
                key: $key,
                about: &[$($doc),+],
                default: || <$kind as Value>::write(&$default),
                guard: $guard,
                flag: settings!(@flag $($flag)?),
                variable: settings!(@flag $($variable)?),
                wanted: <$kind as Value>::wanted,
                schema: <$kind as Value>::schema,
                check: |node| <$kind as Value>::read(node).map(|value| value.write()),
                typed: <$kind as Value>::typed,
                join: <$kind as Value>::join,
            },
        )+)+];

        impl Default for Settings {
            fn default() -> Self {
                Self { $( $group: $Group { $( $field: $default, )+ }, )+ }
            }
        }

        impl Settings {
            /// Sets what a node says; the node has passed the check of the setting with this name.
            pub(crate) fn take(&mut self, key: &str, node: &Node) -> Result<(), Wrong> {
                match key {
                    $($( $key => self.$group.$field = <$kind as Value>::read(node)?, )+)+
                    _ => {}
                }
                Ok(())
            }
        }
    };
    (@flag) => { None };
    (@flag $flag:literal) => { Some($flag) };
}
pub(crate) use settings;
