//! One session file: an append-only tree of JSON lines that survives anything.
//!
//! - [`Reader`]: a snapshot of a file, for looking; changes no byte
//! - [`Writer`]: the one owner of a file; appends, never rewrites
//! - [`fork()`]: a whole new file with all entries of another
//! - [`backwards`]: the first context, from the end of the file
//! - [`index`]: what a scan found, kept for the next open; advice only
//! - [`scan`]: from bytes to the skeleton of the tree, without parsing bodies
//! - [`fs`]: the file system underneath, real or simulated
//! - [`BlobStore`]: content-addressed bytes beside the sessions
//!
//! What never happens here: a session file is mapped into memory; a reader writes; opening parses message bodies; bytes of
//! a session are changed, other than cutting a torn tail that was saved to `<file>.torn` before.
//!
//! Order of a commit (`spec`: blobs → lines → sync): blobs are written and renamed, then the lines that name them; then a
//! thread of its own syncs blobs, their folder and the session, and moves one number, [`Storage::durable`].

pub mod backwards;
pub mod fs;
pub mod index;
pub mod scan;

mod artifact;
mod blobs;
mod branch;
mod carry;
mod copy;
mod error;
mod foreign;
mod fork;
mod lease;
mod memory;
mod open;
mod reader;
mod sift;
mod sync;
mod tail;
mod usual;
mod window;
mod writer;

pub use blobs::BlobStore;
pub use branch::Lines;
pub use carry::carry_artifacts;
pub use error::{ForkError, OpenError, Refused};
pub use fork::{Forked, fork};
pub use lease::Lock;
pub use reader::{Loaded, Reader, Tail};
pub use sync::{Health, Lsn, Storage, durable, written};
pub use tail::Repaired;
pub use writer::{Appended, Batch, Durability, LogEnv, Writer};
