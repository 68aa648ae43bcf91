//! Tests of the log.
#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

use gjc_log::fs::{OsFs, sim::SimFs};
use std::path::Path;
use std::sync::Arc;
use testkit::log::Bench;

/// A test on the real and on the simulated file system.
macro_rules! both {
    ($(#[$doc:meta])* $name:ident, $bench:ident => $body:block) => {
        $(#[$doc])*
        #[test]
        fn $name() {
            fn test<F: gjc_log::fs::Fs>($bench: testkit::log::Bench<F>) $body
            crate::on_both(test, test);
        }
    };
}

mod backwards;
mod branches;
mod copies;
mod disks;
mod fixtures;
mod foreign;
mod forks;
mod frames;
mod fs_suite;
mod handover;
mod index;
mod known_failures;
mod lease;
mod syncs;
mod wrapped;
mod writer;

fn on_both(test: impl Fn(Bench<OsFs>), simulated: impl Fn(Bench<SimFs>)) {
    let dir = tempfile::tempdir().unwrap();
    test(Bench::new(Arc::new(OsFs), dir.path()));
    simulated(Bench::new(Arc::new(SimFs::new()), Path::new("/agent")));
}

/// A machine whose disk a test can look behind.
fn simulated() -> (Arc<SimFs>, Bench<SimFs>) {
    let fs = Arc::new(SimFs::new());
    (Arc::clone(&fs), Bench::new(fs, Path::new("/agent")))
}

/// Every state after a power cut at a moment when something was promised, as a machine to look at.
fn promised(fs: &SimFs) -> impl Iterator<Item = (Vec<u64>, Bench<SimFs>)> {
    let cuts = fs.power_cuts().filter(|cut| !cut.marks.is_empty());
    cuts.map(|cut| (cut.marks, Bench::new(Arc::new(cut.fs), Path::new("/agent")).unwatched()))
}
