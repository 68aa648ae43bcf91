//! What finding sessions costs, each in a process of its own. `cargo bench -p gjc-store [-- TEXT]`.
//!
//! 10,000 sessions of 5 GB and 1,000 of 500 MB: real lines of `testkit::bulk` in files of many sizes, each with an id and last
//! words of its own. They are made once, and are read from the page cache.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a bench makes its files and stops at the first error"
)]

use gjc_store::Store;
use serde_json::{Value, json};
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use testkit::bulk::{self, Shape};
use testkit::probe::{self, Row, Suite};

/// Sizes of the sessions that are written; the others are copies with ids and last words of their own.
const SIZES: &[u64] = &[30_000, 60_000, 120_000, 250_000, 400_000, 500_000, 600_000, 800_000, 1_000_000, 1_240_000];

fn main() {
    probe::main(env!("CARGO_TARGET_TMPDIR"), suites, job);
}

fn suites(folder: &Path) -> io::Result<Vec<Suite>> {
    let many = sessions(&folder.join("finding-10000"), 10_000)?;
    let some = sessions(&folder.join("finding-1000"), 1_000)?;
    let suite = |title: &str, rows| Suite { title: title.into(), rows };
    Ok(vec![
        suite(
            "store: list of 10,000 sessions, 5 GB",
            vec![
                Row::job("read of all bytes", "read", &[&many]),
                Row::job("list, no index", "rebuild", &[&many]),
                Row::job("list, index", "list", &[&many]),
                Row::job("first 50 rows, index", "first", &[&many]),
            ],
        ),
        suite(
            "store: list of 1,000 sessions, 500 MB",
            vec![
                Row::job("read of all bytes", "read", &[&some]),
                Row::job("rows, no index", "glances", &[&some]),
                Row::job("list, no index", "rebuild", &[&some]),
                Row::job("list, index", "list", &[&some]),
            ],
        ),
        suite(
            "store: search of 1,000 sessions, 500 MB",
            vec![
                Row::job("read of all bytes", "read", &[&some]),
                Row::job("index all words", "fill", &[&some]),
                Row::job("search, no index", "search-bare", &[&some]),
                Row::job("search, index: 20 of 200 found", "search", &[&some]),
                Row::job("search, index: 1 found", "search-one", &[&some]),
            ],
        ),
        suite(
            "store: search of 10,000 sessions, 5 GB",
            vec![Row::job("search, index: 1 found", "search-one", &[&many])],
        ),
    ])
}

/// An agent folder with so many sessions, made at the first call.
fn sessions(agent: &Path, count: usize) -> io::Result<PathBuf> {
    if agent.join("made").exists() {
        return Ok(agent.into());
    }
    let bases: Vec<Vec<u8>> = SIZES
        .iter()
        .zip(1..)
        .map(|(bytes, seed)| {
            let mut base = Vec::new();
            bulk::write(&mut base, Shape { seed, ..Shape::of(*bytes) }).map(|_| base)
        })
        .collect::<io::Result<_>>()?;
    for n in 0..count {
        let base = &bases[n % bases.len()];
        let end = base.iter().position(|byte| *byte == b'\n').unwrap();
        let cwd = format!("/home/누구/project-{}", n % 50);
        let bucket = agent.join("sessions").join(gjc_store::bucket_name(Path::new(&cwd)));
        fs::create_dir_all(&bucket)?;
        let id = format!("0197a0c2-0000-7000-8000-{n:012x}");
        let mut header: Value = serde_json::from_slice(&base[..end])?;
        header["id"] = id.clone().into();
        header["cwd"] = cwd.into();
        let said = json!({"type": "message", "id": "ffffffff", "parentId": null, "timestamp": "2026-06-05T00:00:00.000Z",
            "message": {"role": "user", "content": format!("{n}번째세션의 마지막 말"), "timestamp": 1}});
        let bytes = [header.to_string().as_bytes(), &base[end..], format!("{said}\n").as_bytes()].concat();
        fs::write(bucket.join(format!("2026-06-05T00-00-00-000Z_{id}.jsonl")), bytes)?;
    }
    fs::write(agent.join("made"), "")?;
    Ok(agent.into())
}

/// The same sessions below an agent folder that knows nothing of them.
fn bare(agent: &Path) -> io::Result<tempfile::TempDir> {
    let bare = tempfile::tempdir_in(agent)?;
    std::os::unix::fs::symlink(agent.join("sessions"), bare.path().join("sessions"))?;
    Ok(bare)
}

fn job(name: &str, arguments: &[PathBuf]) -> io::Result<Value> {
    let agent = arguments.first().ok_or_else(|| io::Error::other("a job needs a folder"))?;
    let store = Store::new(agent);
    let count = |count: &usize| json!({"sessions": count});
    match name {
        "read" => probe::took(|| read(agent), |bytes| json!({"bytes": bytes})),
        "rebuild" => {
            let bare = bare(agent)?;
            probe::took(|| Ok(Store::new(bare.path()).list()?.sessions.len()), count)
        }
        "glances" => {
            let bare = bare(agent)?;
            probe::took(|| Ok(Store::new(bare.path()).glances()?.0.len()), count)
        }
        "list" => {
            store.list()?;
            probe::took(|| Ok(Store::new(agent).list()?.sessions.len()), count)
        }
        "first" => {
            if store.first(50).len() < 50 {
                store.list()?;
            }
            probe::took(|| Ok(Store::new(agent).first(50).len()), count)
        }
        "fill" => {
            let bare = bare(agent)?;
            let store = Store::new(bare.path());
            store.list()?;
            probe::took(|| store.fill(|| false), count)
        }
        "search-bare" => {
            let bare = bare(agent)?;
            probe::took(|| Ok(Store::new(bare.path()).search("777번째세션", 20, |_| true)?.found.len()), count)
        }
        "search" => {
            store.fill(|| false)?;
            probe::took(|| Ok(Store::new(agent).search("777번째세션", 20, |_| true)?.found.len()), count)
        }
        "search-one" => {
            store.fill(|| false)?;
            // Words of one of them alone, which the text of no other has.
            let query = format!("{}번째세션", store.list()?.sessions.len() - 3);
            probe::took(|| Ok(Store::new(agent).search(&query, 20, |_| true)?.found.len()), count)
        }
        other => Err(io::Error::other(format!("there is no job {other}"))),
    }
}

/// Reads each byte of all sessions, in as many threads as a list has.
fn read(agent: &Path) -> io::Result<usize> {
    let mut files = Vec::new();
    for bucket in fs::read_dir(agent.join("sessions"))? {
        for file in fs::read_dir(bucket?.path())? {
            files.push(file?.path());
        }
    }
    let (next, bytes) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from).min(8) {
            scope.spawn(|| {
                let mut buffer = vec![0; 1 << 20];
                while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let mut file = fs::File::open(file).unwrap();
                    while let Ok(got @ 1..) = file.read(&mut buffer) {
                        bytes.fetch_add(got, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    Ok(bytes.into_inner())
}
