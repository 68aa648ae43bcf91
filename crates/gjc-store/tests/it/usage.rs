//! What the sessions take.

use gjc_entry::Timestamp;
use gjc_log::fs::OsFs;
use gjc_store::{trash, usage};
use sha2::{Digest, Sha256};
use std::fs;
use std::path::Path;

fn session(id: &str, cwd: &str, more: &str) -> String {
    format!(
        "{{\"type\":\"session\",\"version\":3,\"id\":\"{id}\",\"timestamp\":\"2026-06-05T00:00:00.000Z\",\"cwd\":\"{cwd}\"}}\n{{\"type\":\"message\",\"id\":\"0000000a\",\"parentId\":null,\"timestamp\":\"2026-06-05T00:00:01.000Z\",\"message\":{{\"role\":\"user\",\"content\":\"물음 {more}\",\"timestamp\":1}}}}\n"
    )
}

fn blob(agent: &Path, bytes: &[u8]) -> String {
    let name: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    fs::create_dir_all(agent.join("blobs")).unwrap();
    fs::write(agent.join("blobs").join(&name), bytes).unwrap();
    name
}

#[test]
fn every_byte_is_counted_once_and_in_its_place() {
    let dir = tempfile::tempdir().unwrap();
    let agent = dir.path();
    let (shared, single, lost, kept) =
        (blob(agent, &[1; 1000]), blob(agent, &[2; 200]), blob(agent, &[3; 30]), blob(agent, &[4; 4]));
    let bucket = agent.join("sessions/--작업--");
    fs::create_dir_all(bucket.join("big/안")).unwrap();
    let big = session("big", "/작업", &format!("blob:sha256:{shared} {single}{}", " ".repeat(300_000)));
    let small = session("small", "/작업", &format!("blob:sha256:{shared}"));
    let other = session("other", "/b", "x");
    // One letter more is another word.
    let binned = session("binned", "/작업", &format!("{kept} a{lost} {lost}0"));
    for (name, text) in [("big", &big), ("small", &small), ("other", &other), ("binned", &binned)] {
        fs::write(bucket.join(format!("{name}.jsonl")), text).unwrap();
    }
    fs::write(bucket.join("big/안/0.log"), "출력").unwrap();
    fs::write(bucket.join("big.jsonl.torn"), "torn").unwrap();
    fs::write(bucket.join("broken.jsonl"), "no header\n").unwrap();
    fs::write(agent.join("history.db"), "hist").unwrap();
    fs::create_dir_all(agent.join("cache/index")).unwrap();
    fs::write(agent.join("cache/index/a.gjx"), "index").unwrap();
    std::os::unix::fs::symlink("/", bucket.join("big/안/everything")).unwrap();
    trash(&OsFs, agent, &bucket.join("binned.jsonl"), Timestamp::from_millis(0)).unwrap();

    let used = usage(&OsFs, agent).unwrap();
    let folders: Vec<_> = used.folders.iter().map(|folder| (folder.cwd.as_str(), folder.sessions.len())).collect();
    assert_eq!(folders, [("/작업", 2), ("/b", 1)]);
    let first = &used.folders[0].sessions[0];
    assert_eq!((first.info.id.as_str(), first.file.bytes), ("big", big.len() as u64 + 4));
    assert_eq!((first.artefacts.bytes, first.artefacts.files), (6, 1));
    assert_eq!((first.blobs.bytes, first.blobs.files), (1200, 2));
    assert_eq!(used.folders[0].sessions[1].blobs.bytes, 1000, "a shared blob is named by both");
    assert_eq!(used.folders[0].own.bytes, (big.len() + small.len()) as u64 + 4 + 6);
    assert_eq!((used.blobs.bytes, used.blobs.files), (1234, 4), "and is there once");
    assert_eq!((used.unnamed_blobs.bytes, used.unnamed_blobs.files), (30, 1), "one in the trash is named");
    assert_eq!(used.others.bytes, "no header\n".len() as u64);
    assert_eq!((used.history.bytes, used.cache.bytes), (4, 5));
    assert!(used.trash.bytes > binned.len() as u64);
    // Nothing is left out: the whole is what a walk over all files finds.
    let all: u64 = walk(agent).iter().map(|path| fs::metadata(path).unwrap().len()).sum();
    assert_eq!(used.total().bytes, all);
    assert!(used.total().on_disk > 0);
}

fn walk(dir: &Path) -> Vec<std::path::PathBuf> {
    let (mut files, mut folders) = (Vec::new(), vec![dir.to_path_buf()]);
    while let Some(at) = folders.pop() {
        for entry in fs::read_dir(at).unwrap().map(Result::unwrap) {
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() {
                files.push(entry.path());
            }
        }
    }
    files
}

#[test]
fn nothing_takes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let used = usage(&OsFs, dir.path()).unwrap();
    assert_eq!((used.total().bytes, used.folders.len()), (0, 0));
}
