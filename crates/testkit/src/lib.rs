//! Test tools: stub model server, process harness, hermetic git, virtual clock, session builders.
//!
//! | module | what a test gets from it |
//! |---|---|
//! | [`stub`] | an HTTP server on loopback whose every byte, pause and cut is scripted |
//! | [`anthropic`] | answers in the event grammar of the Messages API, for the stub or for a parser alone |
//! | [`openai`] | the same for the two APIs of OpenAI |
//! | [`harness`] | a built binary run in a home of its own, with a time limit that cannot hang a test |
//! | [`grown`] | the watch that fails a test when a session file did anything but grow |
//! | [`git`] | repositories that no setting of this machine reaches |
//! | [`clock`], [`ids`] | time and ids that do what the test says |
//! | [`damage`] | damaged session files of every kind, and what a reader owes to them |
//! | [`disk`] | XFS, btrfs, ext4 in a file, mounted where nobody else sees it; where a file stands on the disk |
//! | [`fuzz`] | the bodies of the fuzz targets of `fuzz/` |
//! | [`session`] | entries in one line each |
//! | [`bulk`] | session files of any size, fast |
//! | [`probe`] | one thing measured in a fresh process, and a table of such things |
//! | [`log`] | a machine with one session on it, on the real file system or on `SimFs` |
//! | [`material`] | recorded sessions and answers of other programs, where a machine has them |
//! | [`llama`] | llama.cpp's own server with a small model, where a machine has it |
//! | [`search`] | ripgrep and fd as judges of our searches, and a tree of any size to search |
//! | [`schema`] | whether a JSON value is what one of our schemas says |
//! | [`pi`] | what pi's own `SessionManager` makes of a session file |
//!
//! A tool of a test reports by failing the test: functions here panic with a sentence that holds what was seen. What only
//! a test may do (start programs, read the environment, print) is allowed in this crate alone.
#![allow(
    clippy::panic,
    clippy::print_stderr,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a test tool fails the test by panicking, starts programs and reads the environment"
)]

pub mod anthropic;
pub mod bulk;
pub mod clock;
pub mod damage;
pub mod disk;
pub mod fuzz;
pub mod git;
pub mod grown;
pub mod harness;
pub mod ids;
pub mod llama;
pub mod log;
pub mod material;
pub mod openai;
pub mod pi;
pub mod probe;
pub mod process;
pub mod schema;
pub mod search;
pub mod session;
pub mod stub;
mod sys;

pub use clock::VirtualClock;
pub use ids::SeededIds;
pub use sys::StopSignals;
