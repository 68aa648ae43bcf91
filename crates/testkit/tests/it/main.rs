//! testkit tested as its users use it.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, clippy::disallowed_methods)]

mod anthropic;
mod git;
mod grown;
mod harness;
mod openai;
mod pi;
mod stub;

/// The panic's sentence of a call that must fail the test.
fn failure(f: impl FnOnce() + std::panic::UnwindSafe) -> String {
    let panic = std::panic::catch_unwind(f).expect_err("this must fail the test");
    panic.downcast::<String>().map(|s| *s).unwrap_or_else(|p| (*p.downcast::<&str>().unwrap()).to_owned())
}
