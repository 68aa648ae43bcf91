//! The directory of sessions: where a session's file belongs, which sessions there are, and which one a word means.
//!
//! The listing is a plain sweep: each file is read by the log's own reader, so that a list, a look and a resume never
//! disagree about what is in it. A bucket's name is only a hint: **the header's `cwd` decides scope**.
//!
//! Beside them lies the prompt history ([`History`]): what people have said, so that nothing of it is lost before a session
//! holds it.
//!
//! What never happens here: a session file is written, moved or deleted.

mod bucket;
mod folder;
mod history;
mod index;
mod look;
mod resolve;
mod search;
mod store;
mod sweep;
pub mod words;

pub use bucket::bucket_name;
pub use folder::{Folders, repository, same_folder};
pub use history::{Fate, History, HistoryError, Prompt, Said};
pub use resolve::{NotResolved, is_path_like, resolve};
pub use look::{Glance, SessionInfo};
pub use search::{Answer, Found, Hit};
pub use store::{Listing, Store};
pub use sweep::{Unreadable, sweep, sweep_all};
