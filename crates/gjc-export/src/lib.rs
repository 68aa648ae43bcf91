//! A session for people and other programs: one page of HTML, or a text.
//!
//! What never happens here: a session is changed; something of its content runs or is loaded where the page is shown.

mod text;

pub use text::{Live, TextError, text};
