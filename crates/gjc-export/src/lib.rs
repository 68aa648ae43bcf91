//! A session for people and other programs: one page of HTML, or a text.
//!
//! - [`html`]: the whole session as one file that needs no network; what the page does is in `page/*.js`, how it looks in
//!   `page/page.css`
//! - [`to_file`]: written beside its name and renamed to it; what stands there already is not lost
//! - [`children`]: the sessions of its subagents, which a page names and does not hold
//!
//! What never happens here: a session is changed; something of its content runs or is loaded where the page is shown.

#![cfg_attr(test, allow(clippy::disallowed_methods))]

mod children;
mod data;
mod file;
mod page;
mod text;

pub use children::{Child, children};
pub use file::{Kept, NotWritten, Replace, default_name, to_file};
pub use page::{Making, Piece, html};
pub use text::{Live, TextError, text};
