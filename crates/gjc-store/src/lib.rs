//! The directory of sessions: where a session's file belongs, which sessions there are, and which one a word means.
//!
//! Each file is read by the log's own reader, so that a list, a look and a resume never disagree about what is in it
//! ([`sweep_all`]). A bucket's name is only a hint: **the header's `cwd` decides scope**. [`Store`] is the same with an index
//! beside it (`index.db`), which remembers what was in files that have not changed, and which words: it makes a list and a
//! search fast and changes no answer.
//!
//! Beside them lies the prompt history ([`History`]): what people have said, so that nothing of it is lost before a session
//! holds it.
//!
//! The trash ([`trash`](trash())) takes whole sessions in and gives them back.
//!
//! What never happens here: a byte of a session file is changed; one is removed without a person's explicit word.

pub mod breadcrumb;
mod bucket;
mod folder;
mod history;
mod index;
mod look;
mod moved;
mod resolve;
mod search;
mod store;
mod sweep;
mod trash;
mod usage;
pub mod words;

pub use bucket::bucket_name;
pub use folder::{Folders, same_folder};
pub use history::{Fate, History, HistoryError, Prompt, Said};
pub use look::{Glance, SessionInfo};
pub use moved::{Likeness, Moved, moved};
pub use resolve::{NotResolved, is_path_like, resolve};
pub use search::{Answer, Found, Hit};
pub use store::{Child, Listing, Store};
pub use sweep::{Unreadable, sweep, sweep_all};
pub use trash::{
    InTrash, Record, TrashError, Trashed, empty, in_trash, restore, settle_all, trash, trash_dir, trash_moved,
};
pub use usage::{FolderUse, SessionUse, Size, Usage, usage};
