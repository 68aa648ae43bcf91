//! Where a session works: worktrees of git, and sessions of tmux. Runs those two programs (through `gjc-process`), with the
//! variables that it is given, and reads what they say in the forms that they promise to keep.
//!
//! [`worktree`] gives a session a checkout of its own beside the main one. [`Tmux`] runs gjc in a terminal that outlives the one it
//! was started from.
//!
//! **What never happens**: a worktree that was made is removed; a branch, the index, the stash or a setting that was there is changed;
//! a program that the repository's own settings name runs, hooks included; a key stands in the arguments of a program.

mod git;
mod list;
mod making;
mod slug;
mod tmux;
mod why;
mod worktree;

pub use slug::slug;
pub use tmux::{Command, Tmux, TmuxError};
pub use why::WorktreeError;
pub use worktree::{Worktree, check_name, main_checkout, worktree};
