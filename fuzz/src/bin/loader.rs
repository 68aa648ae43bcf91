//! Bytes as a session file.
#![no_main]

use gjc_context::select;
use gjc_fuzz::Peak;
use libfuzzer_sys::fuzz_target;
use testkit::fuzz;

#[global_allocator]
static PEAK: Peak = Peak::new();

fuzz_target!(|bytes: &[u8]| {
    PEAK.begin();
    fuzz::loader(bytes, &|source, leaf| drop(select(source, leaf)));
    let (peak, most) = (PEAK.end(), fuzz::memory_for(bytes.len()));
    assert!(peak <= most, "{} bytes took {peak} bytes of memory, at most {most} are allowed", bytes.len());
});
