//! What a fork and a branch of a long session cost, each in a process of its own. `cargo bench -p gjc-log --bench fork`.
//!
//! Everything is durable at the end: file, name, folder. `cp` alone promises nothing, so its rows sync what it made.
#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

use gjc_entry::{Clock, Header, Ids, Leaf, Source};
use gjc_log::fs::{Fs, FsFile, Open, OsFs};
use gjc_log::{BlobStore, Durability, LogEnv, Reader, Writer, fork};
use serde_json::{Value, json};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use testkit::bulk::{self, Shape};
use testkit::disk::{Disk, Kind};
use testkit::probe::{self, Row, Suite};
use testkit::{SeededIds, VirtualClock};

const NAME: &str = "session-100MB.jsonl";

fn main() {
    probe::main(env!("CARGO_TARGET_TMPDIR"), suites, job);
}

fn suites(folder: &Path) -> io::Result<Vec<Suite>> {
    let source = bulk::cached(folder, NAME, Shape::of(100_000_000))?;
    let pi = |how: &'static str| {
        Row::pi_script("pi 0.73.1 (not durable)", "fork-session.mjs", &[&how, &source.display(), &folder.display()])
    };
    let forks = vec![
        Row::job("cp, made durable", "cp", &[&source, folder]),
        Row::job("fork", "fork", &[&source, folder]),
        Row::job("cp (not durable)", "bare-cp", &[&source, folder]),
    ];
    let branches = vec![Row::job("branch at the leaf, its first answer", "branch", &[&source, folder])];
    let mut suites = vec![
        Suite { title: "fork: 100 MB, copied".into(), rows: forks.into_iter().chain(pi("fork")).collect() },
        Suite { title: "fork: branch of 100 MB".into(), rows: branches.into_iter().chain(pi("branch")).collect() },
    ];
    for (kind, mib) in [(Kind::Xfs, 512), (Kind::Btrfs, 512)] {
        suites.extend(shared(kind, mib, &source, folder)?);
    }
    Ok(suites)
}

/// The same on a file system that shares blocks; `None` where there can be none.
fn shared(kind: Kind, mib: u64, source: &Path, folder: &Path) -> io::Result<Option<Suite>> {
    let Some(disk) = Disk::kept(kind, mib, &folder.join(format!("{}-{mib}", kind.name()))) else { return Ok(None) };
    let (at, there) = (disk.at(), disk.at().join(NAME));
    let here = "test -e \"$2\" || { cp \"$1\" \"$2\" && sync; }";
    let copied = disk.command(Path::new("sh")).args(["-c", here, "sh"]).args([source, &there]).status()?;
    if !copied.success() {
        return Err(io::Error::other(format!("the session cannot be copied to {}", at.display())));
    }
    let rows = vec![
        Row::job_on(&disk, "cp --reflink=always, made durable", "cp-reflink", &[&there, &at]),
        Row::job_on(&disk, "fork", "fork-shared", &[&there, &at]),
        Row::job_on(&disk, "a file of one line, made durable", "one-line", &[&there, &at]),
        Row::job_on(&disk, "cp --reflink=never, made durable", "cp-whole", &[&there, &at]),
    ];
    Ok(Some(Suite { title: format!("fork: 100 MB, blocks shared on {}", kind.name()), rows }))
}

fn job(name: &str, arguments: &[PathBuf]) -> io::Result<Value> {
    let [source, folder] = arguments else { return Err(io::Error::other("a job needs a session and a folder")) };
    let scratch = tempfile::tempdir_in(folder)?;
    let to = |name: &str| scratch.path().join(name);
    let shared = |len: u64| json!({"shared": len});
    match name {
        "cp" => probe::took(|| cp(source, &to("copy"), "auto", true), |()| json!({})),
        "bare-cp" => probe::took(|| cp(source, &to("copy"), "auto", false), |()| json!({})),
        "cp-whole" => probe::took(|| cp(source, &to("copy"), "never", true), |()| json!({})),
        "cp-reflink" => {
            // Once more as warm as the rest.
            cp(source, &to("first"), "always", true)?;
            probe::took(|| cp(source, &to("copy"), "always", true), |()| json!({}))
        }
        "fork" => probe::took(|| forked(source, &to("fork.jsonl")), |len| shared(*len)),
        "fork-shared" => {
            forked(source, &to("first.jsonl"))?;
            let line = probe::took(|| forked(source, &to("fork.jsonl")), |len| shared(*len))?;
            match line["found"]["shared"].as_u64() {
                Some(len) if len > 99_000_000 => Ok(line),
                _ => Err(io::Error::other(format!("no blocks were shared: {line}"))),
            }
        }
        "one-line" => {
            one_line(&to("first"))?;
            probe::took(|| one_line(&to("line")), |()| json!({}))
        }
        "branch" => probe::took(|| branched(source, &to("branch.jsonl")), |len| json!({"entries": len})),
        _ => Err(io::Error::other("there is no such job")),
    }
}

fn header() -> Header {
    Header::new(SeededIds::new(2).session(), VirtualClock::new().wall(), "/srv/가재".into())
}

fn forked(source: &Path, to: &Path) -> io::Result<u64> {
    fork(&OsFs, source, to, header()).map(|forked| forked.shared).map_err(io::Error::other)
}

fn cp(source: &Path, to: &Path, reflink: &str, durable: bool) -> io::Result<()> {
    let done = Command::new("cp").arg(format!("--reflink={reflink}")).arg(source).arg(to).status()?;
    if !done.success() {
        return Err(io::Error::other(format!("cp ended with {done}")));
    }
    if durable { sync(to) } else { Ok(()) }
}

fn sync(file: &Path) -> io::Result<()> {
    OsFs.open(file, Open::Append)?.sync_data()?;
    OsFs.sync_dir(file.parent().unwrap())
}

/// The least that a new session costs: what the device asks for a file and its name.
fn one_line(to: &Path) -> io::Result<()> {
    let temporary = to.with_extension("tmp");
    let mut line = Vec::new();
    header().write(&mut line);
    let file = OsFs.open(&temporary, Open::CreateNew)?;
    file.append(&line)?;
    file.sync_data()?;
    OsFs.rename_new(&temporary, to)?;
    OsFs.sync_dir(to.parent().unwrap())
}

/// Whole and durable: it is no file before its first answer.
fn branched(source: &Path, to: &Path) -> io::Result<usize> {
    let source = Reader::open(&OsFs, source).map_err(io::Error::other)?.value;
    let tree = source.skeleton().ok_or_else(|| io::Error::other("it has no tree"))?;
    let leaf = tree.leaf().map(|leaf| tree.id(leaf));
    let fs = Arc::new(OsFs);
    let env = LogEnv {
        blobs: Arc::new(BlobStore::new(Arc::clone(&fs), None)),
        fs,
        clock: Arc::new(VirtualClock::new()) as Arc<dyn Clock>,
        ids: Arc::new(SeededIds::new(1)) as Arc<dyn Ids>,
        durability: Durability::Turn,
        agent_dir: None,
    };
    let mut writer = Writer::branch(env, &source, leaf.as_ref(), to.into(), header()).map_err(io::Error::other)?;
    testkit::log::add(&mut writer, testkit::session::answer("끝"));
    testkit::log::sync(&mut writer).map_err(io::Error::other)?;
    writer.skeleton().map(|tree| tree.path(Leaf::Current).0.len()).ok_or_else(|| io::Error::other("it has no tree"))
}
