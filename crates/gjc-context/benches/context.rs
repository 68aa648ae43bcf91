//! What the first context of a session costs, from the open to the parsed messages. `cargo bench -p gjc-context`.
#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

use gjc_entry::{At, Damage, DamageKind, Entry, Leaf, NeedsIndex, PathNodes, Skeleton, Source};
use gjc_log::Reader;
use gjc_log::backwards::{Found, context_path};
use gjc_log::fs::{Fs, FsFile, Open, OsFile, OsFs};
use serde_json::{Value, json};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
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
        "first-context" => probe::took(|| tail_first(path)),
        "first-path" => probe::took(|| first_path(path).map(|found| json!({"path": found.found.nodes.0.len()}))),
        "indexed-context" => probe::took(|| indexed(path)),
        _ => Err(io::Error::other("there is no such job")),
    }
}

fn indexed(path: &Path) -> io::Result<Value> {
    let loaded = Reader::open(&OsFs, path).map_err(io::Error::other)?;
    let (selected, notes) = gjc_context::select(&loaded.value, Leaf::Current).map_err(io::Error::other)?;
    Ok(json!({"messages": selected.len(), "notes": notes.len()}))
}

fn tail_first(path: &Path) -> io::Result<Value> {
    let tail = first_path(path)?;
    let (selected, notes) = gjc_context::select(&tail, Leaf::Current).map_err(io::Error::other)?;
    Ok(json!({"path": tail.found.nodes.0.len(), "messages": selected.len(), "notes": notes.len()}))
}

fn first_path(path: &Path) -> io::Result<Tail> {
    let file = OsFs.open(path, Open::Read)?;
    let len = file.stat()?.len;
    let found = context_path(&file, len)?.map_err(io::Error::other)?;
    Ok(Tail { file, found })
}

/// What a reader has before its index.
struct Tail {
    file: OsFile,
    found: Found,
}

impl Source for Tail {
    fn path(&self, _: Leaf) -> Result<PathNodes, NeedsIndex> {
        Ok(self.found.nodes.clone())
    }

    fn skeleton(&self) -> Option<&Skeleton> {
        None
    }

    fn body(&self, at: At) -> Result<Arc<Entry>, Damage> {
        let damage = |why: String| Damage { at, kind: DamageKind::Body(why) };
        let mut bytes = vec![0; at.len as usize];
        self.file.read_at(&mut bytes, at.off).map_err(|error| damage(error.to_string()))?;
        let text = str::from_utf8(&bytes).map_err(|error| damage(error.to_string()))?;
        Entry::parse(text).map(Arc::new).map_err(|error| damage(error.to_string()))
    }
}
