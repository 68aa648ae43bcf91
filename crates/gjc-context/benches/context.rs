//! What the first context of a session costs, from the open to the parsed messages. `cargo bench -p gjc-context`.
#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

use gjc_context::{Note, Selected};
use gjc_entry::Leaf;
use gjc_log::backwards::{Found, context_path};
use gjc_log::fs::{Fs, FsFile, Open, OsFs};
use gjc_log::{Loaded, OpenError, Reader};
use serde_json::{Value, json};
use std::io;
use std::path::{Path, PathBuf};
use testkit::bulk::{self, Shape};
use testkit::probe::{self, Row, Suite};

fn main() {
    probe::main(env!("CARGO_TARGET_TMPDIR"), suites, job);
}

fn suites(folder: &Path) -> io::Result<Vec<Suite>> {
    let small = bulk::cached(folder, "session-100MB.jsonl", Shape::of(100_000_000))?;
    let large = bulk::cached(folder, "session-1GB.jsonl", Shape::of(1_000_000_000))?;
    let rows = |file: &Path| {
        vec![
            Row::job("first context, tail first", "first-context", &[file]),
            Row::job("of which: finding the path", "first-path", &[file]),
            Row::job("first context, whole index", "indexed-context", &[file]),
        ]
    };
    Ok(vec![
        // pi would need a minute and several gigabytes for the large one.
        Suite { title: "log: context, 100 MB".into(), rows: rows(&small).into_iter().chain(Row::pi(&small)).collect() },
        Suite { title: "log: context, 1 GB".into(), rows: rows(&large) },
    ])
}

fn job(name: &str, arguments: &[PathBuf]) -> io::Result<Value> {
    let path = arguments.first().ok_or_else(|| io::Error::other("a job needs a file"))?;
    match name {
        "first-context" => probe::took(|| tail_first(path), found),
        "first-path" => probe::took(|| first_path(path), |found| json!({"path": found.nodes.0.len()})),
        "indexed-context" => probe::took(|| indexed(path), found),
        _ => Err(io::Error::other("there is no such job")),
    }
}

/// An open session and its context.
type First = (Loaded<Reader<OsFs>>, Vec<Selected>, Vec<Note>);

fn indexed(path: &Path) -> io::Result<First> {
    context(Reader::open(&OsFs, path))
}

fn tail_first(path: &Path) -> io::Result<First> {
    context(Reader::open_end(&OsFs, path, Path::new("/nowhere")))
}

fn context(opened: Result<Loaded<Reader<OsFs>>, OpenError>) -> io::Result<First> {
    let loaded = opened.map_err(io::Error::other)?;
    let (selected, notes) = gjc_context::select(&loaded.value, Leaf::Current).map_err(io::Error::other)?;
    Ok((loaded, selected, notes))
}

fn found((_, selected, notes): &First) -> Value {
    json!({"messages": selected.len(), "notes": notes.len()})
}

fn first_path(path: &Path) -> io::Result<Found> {
    let file = OsFs.open(path, Open::Read)?;
    let len = file.stat()?.len;
    context_path(&file, len)?.map_err(io::Error::other)
}
