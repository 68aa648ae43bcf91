//! The picture of the house, as data: `ARCHITECTURE.md` draws it, this table is what is checked.

/// One crate and what it may know.
#[derive(Debug)]
pub(crate) struct Room {
    /// Name of the crate.
    pub(crate) name: &'static str,
    /// Its floor; `None` for automation, which stands outside the house.
    pub(crate) floor: Option<u8>,
    /// Which crates of ours it may depend on.
    pub(crate) knows: Knows,
}

/// The "knows" column.
#[derive(Debug)]
pub(crate) enum Knows {
    /// These and no others.
    Only(&'static [&'static str]),
    /// Everything on a lower floor.
    Below,
}

use Knows::{Below, Only};

const fn room(name: &'static str, floor: u8, knows: Knows) -> Room {
    Room { name, floor: Some(floor), knows }
}

/// From the ground up. Entry and fp (failpoints, empty in a release) are known wherever state is kept.
pub(crate) const ROOMS: &[Room] = &[
    room("gjc-entry", 0, Only(&[])),
    room("gjc-fp", 0, Only(&[])),
    room("gjc-flow", 1, Only(&["gjc-entry"])),
    room("gjc-log", 1, Only(&["gjc-entry", "gjc-fp"])),
    room("gjc-process", 1, Only(&[])),
    room("gjc-settings", 1, Only(&[])),
    room("gjc-protocol", 1, Only(&["gjc-entry"])),
    room("gjc-store", 2, Only(&["gjc-entry", "gjc-fp", "gjc-log"])),
    room("gjc-context", 2, Only(&["gjc-entry"])),
    room("gjc-workspace", 2, Only(&["gjc-entry", "gjc-fp", "gjc-process"])),
    room("gjc-memory", 2, Only(&["gjc-entry", "gjc-fp", "gjc-flow"])),
    room("gjc-hub", 2, Only(&["gjc-entry", "gjc-fp", "gjc-flow"])),
    room("gjc-channels", 2, Only(&["gjc-entry", "gjc-fp", "gjc-flow"])),
    room("gjc-bank", 3, Only(&["gjc-entry", "gjc-fp", "gjc-flow", "gjc-memory"])),
    room("gjc-llm", 3, Only(&["gjc-entry", "gjc-context"])),
    room("gjc-export", 3, Only(&["gjc-entry", "gjc-log", "gjc-context"])),
    room("gjc-tools", 4, Below),
    room("gjc-agent", 5, Below),
    room("gjc-tui", 6, Only(&["gjc-entry", "gjc-protocol", "gjc-context"])),
    room("gjc-serve", 6, Below),
    room("gjc", 7, Below),
    // Test tools: below everything they help to test, so floors 0 and 1 only.
    room("testkit", 2, Only(&["gjc-entry", "gjc-fp", "gjc-flow", "gjc-log", "gjc-process", "gjc-protocol"])),
    Room { name: "xtask", floor: None, knows: Only(&[]) },
];

/// A dependency that never happens, and the sentence that says why. A crate of ours or of others.
#[derive(Debug)]
pub(crate) struct Never {
    /// Which crates the rule binds; empty: all.
    pub(crate) who: &'static [&'static str],
    /// What they must not depend on.
    pub(crate) what: &'static [&'static str],
    /// Why, as a sentence for whoever tries.
    pub(crate) why: &'static str,
}

/// Forbidden dependencies, checked in `[dependencies]` and `[build-dependencies]`.
pub(crate) const NEVER: &[Never] = &[
    Never {
        who: &["gjc-tui"],
        what: &["gjc-agent"],
        why: "gjc-tui must not know gjc-agent: a face only reads events and sends commands (gjc-protocol)",
    },
    Never {
        who: &["gjc-entry", "gjc-flow", "gjc-context"],
        what: &["tokio", "tokio-util", "reqwest", "rustix", "libc"],
        why: "gjc-entry, gjc-flow and gjc-context are pure: no runtime, no network, no system calls; \
              take the value as an argument, or define a trait that a higher floor implements",
    },
    Never {
        who: &[],
        what: &["memmap", "memmap2"],
        why: "no file is mapped into memory: a scan makes the map resident, and a truncation by another process \
              is a SIGBUS; read with pread",
    },
];

/// A path of the source that stays in few rooms.
#[derive(Debug)]
pub(crate) struct Kept {
    /// Paths, complete or a prefix at `::`; a macro is written with its `!`.
    pub(crate) paths: &'static [&'static str],
    /// Where the path may be mentioned: `crate` or `crate/src/sub`; tests are never looked at.
    pub(crate) only_in: &'static [&'static str],
    /// Whom the rule binds; empty: all.
    pub(crate) who: &'static [&'static str],
    /// Why, as a sentence for whoever tries.
    pub(crate) why: &'static str,
}

/// Source rules that clippy cannot express, because they are about imports and rooms.
pub(crate) const KEPT: &[Kept] = &[
    Kept {
        paths: &["std::process::Command", "tokio::process"],
        only_in: &["gjc-process", "gjc-workspace", "testkit", "xtask"],
        who: &[],
        why: "only gjc-process and gjc-workspace start programs",
    },
    Kept {
        paths: &[
            "std::env::var",
            "std::env::var_os",
            "std::env::vars",
            "std::env::vars_os",
            "std::env::args",
            "std::env::args_os",
            "std::env::set_var",
            "std::env::remove_var",
        ],
        only_in: &["gjc", "testkit", "xtask"],
        who: &[],
        why: "only gjc reads arguments and the environment; take the value as an argument",
    },
    Kept {
        paths: &["println!", "print!", "eprintln!", "eprint!", "std::println!", "std::print!", "std::eprintln!"],
        only_in: &["gjc", "testkit", "xtask"],
        who: &[],
        why: "only gjc prints; return the value, or send an event",
    },
    Kept {
        paths: &["memmap", "memmap2", "libc::mmap", "rustix::mm::mmap"],
        only_in: &[],
        who: &[],
        why: "no file is mapped into memory; read with pread",
    },
    Kept {
        paths: &["std::fs", "std::net", "std::process", "std::env", "std::thread"],
        only_in: &[],
        who: &["gjc-entry", "gjc-flow", "gjc-context"],
        why: "gjc-entry, gjc-flow and gjc-context do no I/O",
    },
    Kept {
        paths: &["std::fs"],
        only_in: &["gjc-log/src/fs"],
        who: &["gjc-log"],
        why: "the log touches files only through its `Fs`, so that a test can cut the power between two operations",
    },
];

/// A place where clippy's `disallowed_methods` may be switched off.
#[derive(Debug)]
pub(crate) struct Exempt {
    /// `crate` or `crate/src/sub`.
    pub(crate) place: &'static str,
    /// What it needs, and why it is the one that has it.
    pub(crate) why: &'static str,
}

/// The whole allow-list; `cargo xtask layers` prints it.
pub(crate) const EXEMPT: &[Exempt] = &[
    Exempt { place: "gjc", why: "composition: reads arguments, environment and clock, passes them down" },
    Exempt { place: "gjc-process", why: "starts programs, and waits for them by the machine's clock" },
    Exempt { place: "gjc-workspace", why: "runs git and mounts, works on whole directories" },
    Exempt { place: "gjc-log/src/fs", why: "the real file system behind `Fs`" },
    Exempt { place: "gjc-log/src/branch.rs", why: "lays down how a branch begins, before a session could admit it" },
    Exempt { place: "gjc-settings/src/files.rs", why: "replaces a person's file in one step, and syncs it" },
    Exempt { place: "gjc-store/src/history.rs", why: "waits for another process's lock, of which no event tells" },
    Exempt { place: "gjc-tools", why: "the file tools change a person's files; each place says so" },
    Exempt { place: "gjc-agent", why: "makes the caller's identity: `Runtime::new`, `ToolCtx::new`" },
    Exempt { place: "testkit", why: "test tools: programs, directories, real and virtual clocks" },
    Exempt { place: "xtask", why: "automation, outside the product" },
];
