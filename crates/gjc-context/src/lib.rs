//! What the model sees, as pure functions of the log.
//!
//! The way of a request: [`select`] (which entries of the path are context, as every reader of the family builds it) →
//! [`view`] (what of it may be sent: results beside their calls, nothing half) → [`check`] (the only maker of
//! [`Checked`]) → `gjc-llm` renders it.
//!
//! [`Fold`]s turn entries into state; [`Folds`] caches them. A fold over a *path* changes when the leaf moves, one over the
//! *session* never falls back. Nothing here opens a file or calls a model.

mod about;
mod check;
mod edits;
mod effects;
mod fold;
mod folds;
mod images;
mod mode;
mod places;
mod project;
mod repeats;
mod request;
mod select;
mod view;

pub use about::{About, Speaker, Speakers};
pub use check::{Checked, Violation, check};
pub use effects::{Effect, Unfinished, unfinished};
pub use fold::{Fold, Folds};
pub use folds::{Delivered, Jobs, Seen, Settings, Totals};
pub use images::LEFT_OUT;
pub use mode::{Approved, InMode};
pub use places::Places;
pub use project::{too_large, view};
pub use repeats::Repeats;
pub use request::{BlockAt, CacheMarks, Layout, Request, ToolDef, Turn};
pub use select::{ContextMessage, Selected, select};
pub use view::{INTERRUPTED, Msg, Note, Said, View};
