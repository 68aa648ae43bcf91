//! Settings: what may be set, where each value came from, and what a project may set.
//!
//! Everything is made from one table, [`SETTINGS`], written once in `definition.rs`: the typed [`Settings`], their defaults,
//! the check of a file, `gjc config list`, `docs/settings.md` ([`page`]) and the JSON schema ([`schema`]).
//!
//! The way of a file: [`read_user`] and [`read_project`] take its bytes once; [`Document::parse`] makes values of them, or
//! names every problem with its place; [`merge`] lays them over each other, with the [`Guard`] of each setting between a
//! project and the person; [`Trust`] remembers which bytes of which project a person has let in; [`set`] changes one value
//! in a text and nothing else.
//!
//! **What never happens**: a value counts whose file has a problem; a project loosens what guards a person before that
//! person trusts its very bytes; a file is read twice to be judged once; a person's file is written but by [`write()`].

#![cfg_attr(test, allow(clippy::disallowed_methods))]

mod definition;
mod document;
mod edit;
mod files;
mod front;
mod hook;
mod lists;
mod merge;
mod models;
mod page;
mod problem;
mod setting;
mod trust;
mod value;
mod words;
mod yaml;

pub use definition::{
    Anthropic, Bash, FetchSettings, Hooks, Models, Retry, SETTINGS, Sandbox, SessionSettings, Settings,
};
pub use document::{Document, Entry, Scope};
pub use edit::{NotSet, set, unset};
pub use files::{FileError, LARGEST, project_file, project_root, read_project, read_user, write};
pub use front::front_matter;
pub use hook::{Hook, HookList, HookTime};
pub use lists::{Folders, Hosts, OPTIONAL_TOOLS, TOOLS, ToolNames};
pub use merge::{Effective, Flag, Ignored, Layered, Origin, merge};
pub use models::{ModelPrice, OrOff, PriceList};
pub use page::{page, schema};
pub use problem::{Problem, Problems};
pub use setting::{Guard, Setting, find, nearest};
pub use trust::{ContentHash, Trust};
pub use value::{Address, CommandLine, Count, ModelName, Patience, Plain, Size, Switch};
pub use words::{Access, Approval, Durability, SandboxMode, Secrecy, ServiceTier};
