//! Forks on real file systems: blocks that are shared, and disks that are full.
//!
//! Each test starts itself once more in a mount namespace of its own, where the file system is mounted.

use crate::forks::{entries, header, long};
use gjc_log::fs::{Fs, OsFs};
use gjc_log::{ForkError, Reader, Writer, carry_artifacts, fork};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use testkit::disk::{self, Disk, Extent, Kind};
use testkit::log::{Bench, add, read, sync, texts};
use testkit::session::answer;

/// Tells the test binary that the file system is mounted, and where.
const ROLE: &str = "GJC_LOG_DISK";

/// Where it is mounted in the process that is started for that.
fn mounted() -> Option<PathBuf> {
    std::env::var_os(ROLE).map(PathBuf::from)
}

fn bucket(bench: &Bench<OsFs>) -> PathBuf {
    bench.root.join("sessions/--갈래--")
}

fn names(bench: &Bench<OsFs>) -> Vec<PathBuf> {
    OsFs.list(&bucket(bench)).unwrap_or_default()
}

/// The same bytes on the disk, however each file has them in pieces: by where each block stands.
fn blocks(extents: &[Extent]) -> Vec<(u64, u64, bool)> {
    let block = |extent: &Extent, n: u64| (extent.logical + n * 4096, extent.physical + n * 4096, extent.shared);
    extents.iter().flat_map(|extent| (0..extent.len / 4096).map(|n| block(extent, n))).collect()
}

#[test]
fn a_fork_shares_its_blocks_on_xfs() {
    match mounted() {
        Some(at) => shares(&at),
        None => run(Kind::Xfs, 320, "disks::a_fork_shares_its_blocks_on_xfs"),
    }
}

#[test]
fn a_fork_shares_its_blocks_on_btrfs() {
    match mounted() {
        Some(at) => shares(&at),
        None => run(Kind::Btrfs, 256, "disks::a_fork_shares_its_blocks_on_btrfs"),
    }
}

fn run(kind: Kind, mib: u64, test: &str) {
    if let Some(disk) = Disk::new(kind, mib) {
        disk.run_test(ROLE, test);
    }
}

fn shares(at: &Path) {
    let bench = Bench::new(Arc::new(OsFs), &at.join("agent"));
    let writer = long(&bench, 100, 30_000);
    let source = bench.bytes();
    assert!(source.len() > 8 << 20);
    // More of them than there would be room for.
    let free = disk::free(at).unwrap();
    let count = usize::try_from(free).unwrap() / source.len() + 5;
    for n in 0..count {
        let to = bucket(&bench).join(format!("{n}.jsonl"));
        let forked = fork(&OsFs, &bench.path(), &to, header(&n.to_string())).unwrap();
        assert!(forked.shared > forked.len - 4 * 4096, "{forked:?}");
    }
    let to = bucket(&bench).join("0.jsonl");
    let (ours, theirs) = (disk::extents(&bench.path()).unwrap(), disk::extents(&to).unwrap());
    let made = read(&OsFs, &to);
    assert!(entries(&made) == entries(&source));
    // Every block of the fork but the first ones and the last is a block of the source; it stands later by as many blocks
    // as its header with its blanks is longer.
    let (ours, theirs) = (blocks(&ours), blocks(&theirs));
    let same = theirs.iter().filter(|block| ours.iter().any(|source| source.1 == block.1) && block.2).count();
    assert!(same * 4096 >= made.len() - 4 * 4096, "{same} blocks of {}", made.len());
    assert!(ours.iter().filter(|block| block.2).count() >= same);

    // Both go on, and neither sees what is said in the other.
    let (opened, _) = Writer::open(bench.env(), &to).unwrap();
    assert!(opened.damage.is_empty(), "{:?}", opened.damage);
    let (mut child, mut parent) = (opened.value, writer);
    add(&mut child, answer("갈래"));
    sync(&mut child).unwrap();
    assert!(bench.bytes() == source);
    add(&mut parent, answer("줄기"));
    sync(&mut parent).unwrap();
    drop((child, parent));
    for (path, last) in [(bench.path(), "줄기"), (to.clone(), "갈래"), (bucket(&bench).join("1.jsonl"), "답")] {
        let read = Reader::open(&OsFs, &path).unwrap().value;
        assert!(texts(&read).last().unwrap().starts_with(last), "{}", path.display());
    }

    // A fork of a fork stands in the same blocks.
    let again = bucket(&bench).join("again.jsonl");
    assert!(fork(&OsFs, &to, &again, header("again")).unwrap().shared > 8 << 20);
    // And so does what stands beside a session.
    let (old, new) = (bench.root.join("old"), bench.root.join("new"));
    std::fs::create_dir_all(&old).unwrap();
    std::fs::write(old.join("1.bash.log"), &source).unwrap();
    assert_eq!(carry_artifacts(&OsFs, &old, &new), None);
    let shared = disk::extents(&new.join("1.bash.log")).unwrap();
    assert!(shared.iter().all(|extent| extent.shared), "{shared:?}");
    assert!(read(&OsFs, &new.join("1.bash.log")) == source);
}

/// The tests of forks, branches and of the file system itself hold on these as well.
#[test]
fn what_holds_of_forks_and_files_holds_on_xfs_and_btrfs_too() {
    for (kind, mib) in [(Kind::Xfs, 320), (Kind::Btrfs, 256)] {
        let Some(disk) = Disk::new(kind, mib) else { continue };
        let own = std::env::current_exe().unwrap();
        let out = disk
            .command(&own)
            .args(["forks::", "branches::", "copies::", "fs_suite::", "handover::"])
            // They are of simulated disks, or long.
            .args(["--skip", "power_cut", "--skip", "a_death_at_any_step", "--skip", "eight_processes"])
            .env("TMPDIR", disk.at())
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&out.stdout);
        assert!(out.status.success(), "on {}:\n{told}{}", kind.name(), String::from_utf8_lossy(&out.stderr));
        let passed = told.split(" passed").next().unwrap().rsplit(' ').next().unwrap().parse::<u32>();
        assert!(passed.is_ok_and(|passed| passed > 25), "{told}");
    }
}

#[test]
fn a_full_disk_leaves_no_half_of_a_fork() {
    let test = "disks::a_full_disk_leaves_no_half_of_a_fork";
    match mounted() {
        Some(at) => fills(&at),
        None => {
            for (kind, mib) in [(Kind::Ext4, 48), (Kind::Xfs, 320), (Kind::Btrfs, 128)] {
                run(kind, mib, test);
            }
        }
    }
}

/// With less and less room, down to none: each fork is there whole, or is not there and says so.
fn fills(at: &Path) {
    let bench = Bench::new(Arc::new(OsFs), &at.join("agent"));
    drop(long(&bench, 40, 20_000));
    let source = bench.bytes();
    let filler = at.join("filler");
    let (mut made, mut refused) = (0, 0);
    for spare in [8 << 20, 1 << 20, 300 << 10, 100 << 10, 20 << 10, 4096, 0] {
        disk::fill(&filler, spare).unwrap();
        for n in 0..4 {
            let id = format!("{spare}-{n}");
            let to = bucket(&bench).join(format!("{id}.jsonl"));
            let before = names(&bench);
            match fork(&OsFs, &bench.path(), &to, header(&id)) {
                Ok(_) => {
                    made += 1;
                    assert!(entries(&read(&OsFs, &to)) == entries(&source));
                }
                Err(why) => {
                    refused += 1;
                    assert!(matches!(why, ForkError::Io { .. }), "{why:?}");
                    let told = why.to_string();
                    assert!(told.contains("there is no new session") && told.contains("No space left"), "{told}");
                    assert_eq!(names(&bench), before, "nothing of it is left, not even a temporary file");
                }
            }
            assert!(bench.bytes() == source);
        }
        std::fs::remove_file(&filler).unwrap();
    }
    assert!(made > 0 && refused > 0, "{made} were made, {refused} refused");
    // As soon as there is room, the same goes through.
    let to = bucket(&bench).join("0-3.jsonl");
    if !to.exists() {
        fork(&OsFs, &bench.path(), &to, header("0-3")).unwrap();
        assert!(entries(&read(&OsFs, &to)) == entries(&source));
    }
}
