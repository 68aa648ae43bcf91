//! The real file system.
/// The real file system, through the standard library and `rustix`.
#[derive(Debug, Clone, Copy, Default)]
pub struct OsFs;
