//! What opening and appending cost, each in a process of its own. `cargo bench -p gjc-log [-- TEXT]`.
#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

use gjc_entry::{Clock, Ids};
use gjc_log::fs::{Fs, FsFile, Open, OsFs};
use gjc_log::index;
use gjc_log::scan::Scanned;
use gjc_log::{Batch, BlobStore, Durability, LogEnv, Writer};
use serde_json::{Value, json};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use testkit::bulk::{self, Shape};
use testkit::probe::{self, Row, Suite};
use testkit::{SeededIds, VirtualClock};

/// Appends in one run.
const TIMES: usize = 400;
/// The same, where each waits for the device.
const DURABLE_TIMES: usize = 40;
/// The session that is appended to, in a folder of its own.
const SESSION: &str = "sessions/--s--/s.jsonl";

fn main() {
    probe::main(env!("CARGO_TARGET_TMPDIR"), suites, job);
}

fn suites(folder: &Path) -> io::Result<Vec<Suite>> {
    let small = bulk::cached(folder, "session-100MB.jsonl", Shape::of(100_000_000))?;
    let large = bulk::cached(folder, "session-1GB.jsonl", Shape::of(1_000_000_000))?;
    let labelled = bulk::cached(folder, "labelled-100MB.jsonl", Shape { labels: true, ..Shape::of(100_000_000) })?;
    let open = |title: &str, file: &Path| {
        let index = kept_index(folder, file)?;
        let rows = vec![
            Row::job("newline scan", "newline-scan", &[file]),
            Row::job("full index", "full-index", &[file]),
            Row::job("with its index file", "with-index-file", &[file, &index]),
        ];
        io::Result::Ok(Suite { title: format!("log: index, {title}"), rows })
    };
    let append = Suite {
        title: "log: append 1 KB (CPU of one)".into(),
        rows: vec![
            Row::job("bare write", "bare-write", &[folder]),
            Row::job("append, batches of 16", "append-16", &[folder]),
            Row::job("append, alone", "append-1", &[folder]),
        ],
    };
    let durable = Suite {
        title: "log: durable append of 1 KB".into(),
        rows: vec![
            Row::job("O_APPEND + fdatasync", "bare-durable", &[folder]),
            Row::job("append, durable", "append-durable", &[folder]),
        ],
    };
    Ok(vec![open("100 MB", &small)?, open("100 MB, labelled", &labelled)?, open("1 GB", &large)?, append, durable])
}

/// The index of a file, as whoever scanned it keeps it.
fn kept_index(folder: &Path, path: &Path) -> io::Result<PathBuf> {
    let file = OsFs.open(path, Open::Read)?;
    let stat = file.stat()?;
    let index = index::path_of(folder, path);
    let mut scanned = Scanned::default();
    scanned.scan(&file, stat.len)?;
    index::store(&OsFs, &index, &file, &stat, &scanned)?;
    Ok(index)
}

fn job(name: &str, arguments: &[PathBuf]) -> io::Result<Value> {
    let path = arguments.first().ok_or_else(|| io::Error::other("a job needs a file or a folder"))?;
    match name {
        "newline-scan" => probe::took(|| newline_scan(path), |lines| json!({"lines": lines})),
        "full-index" => probe::took(|| full_index(path), found),
        "with-index-file" => probe::took(|| with_index_file(path, &arguments[1]), found),
        "bare-write" => bare(path, false),
        "bare-durable" => bare(path, true),
        "append-1" => append(path, 1),
        "append-16" => append(path, 16),
        "append-durable" => append_durable(path),
        _ => Err(io::Error::other("there is no such job")),
    }
}

/// The physical limit: every byte read once, every line feed found.
fn newline_scan(path: &Path) -> io::Result<u64> {
    let file = OsFs.open(path, Open::Read)?;
    let mut buffer = vec![0; 256 * 1024];
    let (mut at, mut lines) = (0, 0u64);
    loop {
        let got = file.read_at(&mut buffer, at)?;
        if got == 0 {
            return Ok(lines);
        }
        at += got as u64;
        lines += memchr::memchr_iter(b'\n', &buffer[..got]).count() as u64;
    }
}

fn full_index(path: &Path) -> io::Result<Scanned> {
    let file = OsFs.open(path, Open::Read)?;
    let len = file.stat()?.len;
    let mut scanned = Scanned::default();
    scanned.scan(&file, len)?;
    Ok(scanned)
}

fn with_index_file(path: &Path, index: &Path) -> io::Result<Scanned> {
    let file = OsFs.open(path, Open::Read)?;
    let stat = file.stat()?;
    let mut scanned =
        index::load(&OsFs, index, &file, &stat).ok_or_else(|| io::Error::other("the index does not fit"))?;
    scanned.scan(&file, stat.len)?;
    Ok(scanned)
}

fn found(scanned: &Scanned) -> Value {
    json!({"entries": scanned.skeleton.len(), "damage": scanned.damage.len()})
}

/// A line of 1 KB as the log writes it.
fn body() -> gjc_entry::Body {
    testkit::session::answer(&"fn 가재() -> Result<(), Error> {\n\t\"lines\"\n}\n".repeat(14))
}

fn scratch(folder: &Path) -> tempfile::TempDir {
    // Beside the files of the other rows: a temporary folder may be in memory.
    tempfile::tempdir_in(folder).unwrap()
}

fn writer(folder: &Path) -> Writer<OsFs> {
    let fs = Arc::new(OsFs);
    let env = LogEnv {
        blobs: Arc::new(BlobStore::new(Arc::clone(&fs), None)),
        fs,
        clock: Arc::new(VirtualClock::new()) as Arc<dyn Clock>,
        ids: Arc::new(SeededIds::new(1)) as Arc<dyn Ids>,
        durability: Durability::Turn,
        agent_dir: None,
    };
    let clock = VirtualClock::new();
    let header = gjc_entry::Header::new(SeededIds::new(2).session(), clock.wall(), "/srv/가재".into());
    let mut writer = Writer::create(env, folder.join(SESSION), header);
    testkit::log::add(&mut writer, body());
    testkit::log::sync(&mut writer).unwrap();
    writer
}

/// The same bytes, in the same folder, and nothing else.
fn bare(folder: &Path, durable: bool) -> io::Result<Value> {
    let folder = scratch(folder);
    drop(writer(folder.path()));
    let log = OsFs.open(&folder.path().join(SESSION), Open::Read)?;
    let mut bytes = vec![0; usize::try_from(log.stat()?.len).unwrap()];
    log.read_at(&mut bytes, 0)?;
    let line = bytes.split_inclusive(|byte| *byte == b'\n').next_back().unwrap();

    let file = OsFs.open(&folder.path().join(SESSION).with_file_name("bare.jsonl"), Open::CreateNew)?;
    file.append(line)?;
    file.sync_data()?;
    let clock = if durable { probe::wall_ns } else { probe::cpu_ns };
    let times = if durable { DURABLE_TIMES } else { TIMES };
    probe::took_each(times, clock, || {
        file.append(line)?;
        if durable { file.sync_data() } else { Ok(()) }
    })
}

fn append(folder: &Path, batch: usize) -> io::Result<Value> {
    let folder = scratch(folder);
    let mut writer = writer(folder.path());
    let draft = || testkit::session::draft(body());
    let drafts = || match batch {
        1 => Batch::One(draft()),
        // Each line of an effect names it, and so is longer than the bare one.
        _ => Batch::Effect { intent: draft(), rest: (1..batch).map(|_| draft()).collect() },
    };
    let mut line = probe::took_each_with(TIMES / batch, probe::cpu_ns, drafts, |batch| {
        writer.append(batch).map(drop).map_err(io::Error::other)
    })?;
    for ns in ["/ns", "/found/min_ns"] {
        let value = line.pointer_mut(ns).unwrap();
        *value = json!(value.as_u64().unwrap() / batch as u64);
    }
    Ok(line)
}

fn append_durable(folder: &Path) -> io::Result<Value> {
    let folder = scratch(folder);
    let mut writer = writer(folder.path());
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let mut storage = writer.storage();
    let draft = || testkit::session::draft(body());
    probe::took_each_with(DURABLE_TIMES, probe::wall_ns, draft, |draft| {
        writer.append(Batch::One(draft)).map_err(io::Error::other)?;
        let lsn = writer.want_durable();
        runtime.block_on(gjc_log::durable(&mut storage, lsn)).map_err(io::Error::other)
    })
}
