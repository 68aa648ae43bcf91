//! What a page of a session costs, beside a bare copy of its file. `cargo bench -p gjc-export`; beside pi: `cargo xtask bench`.
#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

use gjc_entry::Timestamp;
use gjc_export::{Kept, Making, Replace, children, html, to_file};
use gjc_log::fs::OsFs;
use gjc_log::{BlobStore, Reader};
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
    let suite = |title: &str, name: &str, bytes: u64| {
        let file = bulk::cached(folder, name, Shape::of(bytes))?;
        let (copy, page) = (folder.join(format!("{name}.copy")), folder.join(format!("{name}.html")));
        let rows = vec![
            Row::job("copy of the file, synced", "copy", &[&file, &copy]),
            Row::job("page, synced", "page", &[&file, &page]),
        ];
        io::Result::Ok(Suite { title: title.into(), rows })
    };
    Ok(vec![
        suite("export: page, 10 MB", "session-10MB.jsonl", 10_000_000)?,
        suite("export: page, 100 MB", "session-100MB.jsonl", 100_000_000)?,
    ])
}

fn job(name: &str, arguments: &[PathBuf]) -> io::Result<Value> {
    let [file, page] = arguments else { return Err(io::Error::other("a job needs a file and a page")) };
    match name {
        "copy" => probe::took(|| copy(file, page), |bytes| json!({"bytes": bytes})),
        "page" => probe::took(|| make(file, page), |bytes| json!({"bytes": bytes})),
        _ => Err(io::Error::other("there is no such job")),
    }
}

fn copy(file: &Path, page: &Path) -> io::Result<u64> {
    let mut out = std::fs::File::create(page)?;
    let bytes = io::copy(&mut std::fs::File::open(file)?, &mut out)?;
    out.sync_data()?;
    Ok(bytes)
}

fn make(file: &Path, page: &Path) -> io::Result<u64> {
    let loaded = Reader::open(&OsFs, file).map_err(io::Error::other)?;
    let blobs = BlobStore::new(Arc::new(OsFs), None);
    let children = children(&OsFs, file);
    let at = Timestamp::from_millis(1_796_042_387_559);
    let making = Making { blobs: &blobs, children: &children, at, mask: None, progress: &|_, _| {} };
    to_file(&OsFs, page, Replace::Any, Kept { source: file, own: None }, |out| html(&loaded, &making, out))
        .map_err(io::Error::other)
}
