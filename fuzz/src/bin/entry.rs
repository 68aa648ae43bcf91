//! Bytes as one line.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| testkit::fuzz::entry(bytes));
