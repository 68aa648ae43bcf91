//! Failpoints: places where a test can kill the process, hold it, or let a call fail.
//!
//! ```
//! use std::io::{self, Write};
//!
//! fn append(file: &mut impl Write, line: &[u8]) -> io::Result<usize> {
//!     let len = gjc_fp::fp!("doc.append.write", io, line.len())?;
//!     let written = file.write(&line[..len])?;
//!     gjc_fp::fp!("doc.append.after_write");
//!     Ok(written)
//! }
//! # assert_eq!(append(&mut Vec::new(), b"line").unwrap(), 4);
//! ```
//!
//! Without the feature `failpoints` of *this* crate every form of [`fp!`] is nothing at all. With it, each place is a
//! static `Point` in the slice `POINTS`, and `set_plan` says what happens where:
//!
//! | rule | meaning |
//! |---|---|
//! | `log.append.*=kill` | SIGKILL to oneself at each point whose name matches (`*` is any text) |
//! | `@137=kill` | at the 137th point passed since the plan was set, whatever its name |
//! | `3:log.sync=err(EIO)` | from the 3rd time on that the rule matches |
//! | `1-2:log.sync=err(EIO)` | the first two times only |
//! | `name=err(ENOSPC)` | an `io` point fails: `EACCES`, `EAGAIN`, `EDQUOT`, `EINTR`, `EIO`, `ENOSPC`, `EROFS` |
//! | `name=short(7)` | an `io` point with a length allows only 7 bytes; without one it fails with `WriteZero` |
//! | `name=pause` | waits in the hook of `set_pause_hook` |
//!
//! Rules are separated by `;`. All rules count; the first one that applies decides. A point without `io` ignores `err`
//! and `short`. Nothing here reads the environment: the program or the test hands the text over.

#[cfg(feature = "failpoints")]
mod plan;
#[cfg(feature = "failpoints")]
mod point;

#[cfg(feature = "failpoints")]
pub use plan::PlanError;
#[cfg(feature = "failpoints")]
pub use point::{Outcome, POINTS, Point, clear_plan, hit, names, passed, set_pause_hook, set_plan};

/// For the expansion of [`fp!`], not an interface.
#[cfg(feature = "failpoints")]
#[doc(hidden)]
pub use linkme;

/// A failpoint.
///
/// - `fp!("name")` may kill or hold the process. Its value is `()`.
/// - `fp!("name", io)` may fail as well: an `io::Result<()>`.
/// - `fp!("name", io, len)` may fail or shorten: an `io::Result<usize>`, the number of bytes to write, at most `len`.
///
/// Which definition is used depends on the feature of `gjc-fp`, never on one of the crate that calls it.
#[cfg(feature = "failpoints")]
#[macro_export]
macro_rules! fp {
    (@point $name:literal) => {{
        #[$crate::linkme::distributed_slice($crate::POINTS)]
        #[linkme(crate = $crate::linkme)]
        static POINT: $crate::Point = $crate::Point::new($name);
        &POINT
    }};
    ($name:literal) => {{
        $crate::hit($crate::fp!(@point $name));
    }};
    ($name:literal, io) => {
        $crate::hit($crate::fp!(@point $name)).io()
    };
    ($name:literal, io, $len:expr) => {
        $crate::hit($crate::fp!(@point $name)).io_len($len)
    };
}

/// A failpoint, built without failpoints: nothing.
///
/// - `fp!("name")` is `()`.
/// - `fp!("name", io)` is `Ok(())`, an `io::Result<()>`.
/// - `fp!("name", io, len)` is `Ok(len)`, an `io::Result<usize>`.
#[cfg(not(feature = "failpoints"))]
#[macro_export]
macro_rules! fp {
    ($name:literal) => {{
        $crate::nothing();
    }};
    ($name:literal, io) => {
        ::core::result::Result::<(), ::std::io::Error>::Ok($crate::nothing())
    };
    ($name:literal, io, $len:expr) => {
        ::core::result::Result::<usize, ::std::io::Error>::Ok($len)
    };
}

/// For the expansion of [`fp!`], not an interface.
#[cfg(not(feature = "failpoints"))]
#[doc(hidden)]
#[inline(always)]
pub const fn nothing() {}
