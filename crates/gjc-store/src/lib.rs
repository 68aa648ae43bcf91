//! The directory of sessions: where a session's file belongs, which sessions there are, and which one a word means.
//!
//! The listing is a plain sweep: each file is read by the log's own reader, so that a list, a look and a resume never
//! disagree about what is in it. A bucket's name is only a hint: **the header's `cwd` decides scope**.
//!
//! Beside them lies the prompt history ([`History`]): what people have said, so that nothing of it is lost before a session
//! holds it.
//!
//! The trash ([`trash`](trash())) takes whole sessions in and gives them back.
//!
//! What never happens here: a byte of a session file is changed; one is removed without a person's explicit word.

pub mod breadcrumb;
mod bucket;
mod history;
mod resolve;
mod sweep;
mod trash;
mod usage;

pub use bucket::bucket_name;
pub use history::{Fate, History, HistoryError, Prompt, Said};
pub use resolve::{NotResolved, is_path_like, resolve};
pub use sweep::{SessionInfo, Unreadable, sweep, sweep_all};
pub use trash::{InTrash, Record, TrashError, Trashed, empty, in_trash, restore, settle_all, trash, trash_dir};
pub use usage::{FolderUse, SessionUse, Size, Usage, usage};
