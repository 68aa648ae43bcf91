//! Session files of any size, for those who measure programs with them.
//!
//! | called as | makes |
//! |---|---|
//! | `testkit-bulk file PATH BYTES` | one session, once |
//! | `testkit-bulk sessions AGENT_DIR COUNT BYTES` | so many sessions of that size, of the folder `/srv/가재`, in its bucket, once |
#![allow(clippy::print_stderr, clippy::disallowed_methods, reason = "a tool of measurements")]

use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use gjc_entry::Header;
use testkit::bulk::{self, Shape};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let number = |text: &str| text.parse::<u64>().map_err(io::Error::other);
    let done = match &arguments[..] {
        ["file", path, bytes] => number(bytes).and_then(|bytes| file(Path::new(path), bytes)),
        ["sessions", dir, count, bytes] => number(count)
            .and_then(|count| Ok((count, number(bytes)?)))
            .and_then(|(count, bytes)| sessions(Path::new(dir), count, bytes)),
        _ => Err(io::Error::other("usage: testkit-bulk file PATH BYTES | sessions AGENT_DIR COUNT BYTES")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("testkit-bulk: {why}");
            ExitCode::FAILURE
        }
    }
}

fn file(path: &Path, bytes: u64) -> io::Result<()> {
    let folder = path.parent().ok_or_else(|| io::Error::other("a file has a folder"))?;
    let name = path.file_name().and_then(|name| name.to_str()).ok_or_else(|| io::Error::other("a name is text"))?;
    bulk::cached(folder, name, Shape::of(bytes)).map(drop)
}

fn sessions(dir: &Path, count: u64, bytes: u64) -> io::Result<()> {
    let whole = dir.join(format!("{count}-of-{bytes}"));
    if whole.exists() {
        return Ok(());
    }
    let bucket = dir.join("sessions/--srv-가재--");
    std::fs::create_dir_all(&bucket)?;
    for seed in 1..=count {
        let temporary = bucket.join(".making");
        // Not all of one size: half as long to half as long again.
        let bytes = bytes / 2 + bytes * (seed % 100) / 100;
        bulk::write(std::fs::File::create(&temporary)?, Shape { seed, ..Shape::of(bytes) })?;
        std::fs::rename(&temporary, bucket.join(name(&temporary)?))?;
    }
    std::fs::write(whole, "")
}

/// The name that a session with this header has.
fn name(file: &Path) -> io::Result<PathBuf> {
    let mut line = String::new();
    BufReader::new(std::fs::File::open(file)?).read_line(&mut line)?;
    let header = Header::parse(line.trim_end()).map_err(io::Error::other)?;
    Ok(header.file_name().into())
}
