//! Writes the page of a session, and says how long that took and how much memory it needed.
//!
//! `cargo run --release -p gjc-export --example page -- SESSION OUT [BLOBS]`
#![allow(clippy::disallowed_methods, clippy::disallowed_macros, clippy::unwrap_used, clippy::print_stdout)]

use gjc_entry::Timestamp;
use gjc_export::{Kept, Making, Replace, children, html, to_file};
use gjc_log::fs::OsFs;
use gjc_log::{BlobStore, Reader};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

fn main() {
    let mut arguments = std::env::args_os().skip(1);
    let (Some(session), Some(out)) = (arguments.next(), arguments.next()) else {
        println!("usage: page SESSION OUT [BLOBS]");
        return;
    };
    let session = Path::new(&session);
    let begun = Instant::now();
    let loaded = Reader::open(&OsFs, session).unwrap();
    let blobs = BlobStore::new(Arc::new(OsFs), arguments.next().map(Into::into));
    let children = children(&OsFs, session);
    let at = Timestamp::from_millis(1_796_042_387_559);
    let making = Making { blobs: &blobs, children: &children, at, mask: None, progress: &|_, _| {} };
    let kept = Kept { source: session, own: None };
    let bytes = to_file(&OsFs, Path::new(&out), Replace::Any, kept, |out| html(&loaded, &making, out)).unwrap();
    let took = begun.elapsed();
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or("VmHWM: unknown");
    println!("{bytes} bytes in {took:?}, {peak}");
}
