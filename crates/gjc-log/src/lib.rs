//! One session file.
pub mod fs;
