//! Several processes that write to one session in turns.

use gjc_entry::{BoxFuture, Clock, Ids, SessionId, Source, Timestamp};
use gjc_log::fs::OsFs;
use gjc_log::{BlobStore, Durability, LogEnv, Reader, Writer};
use std::collections::HashMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use testkit::SeededIds;
use testkit::log::{Bench, add, sync, texts};
use testkit::session::{answer, user};

const PROCESSES: u64 = 8;
const EACH: usize = 2_000;
/// Tells the test binary that it is one of the processes: `<number> <session file>`.
const ROLE: &str = "GJC_TEST_HANDOVER";

/// Time as it is, for processes that really wait for each other.
struct RealClock;

impl Clock for RealClock {
    fn wall(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap())
    }
    fn mono(&self) -> Instant {
        Instant::now()
    }
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        // One task in one process: nothing else is held up.
        Box::pin(async move { std::thread::sleep(duration) })
    }
}

fn be_one(number: u64, path: &Path) {
    let fs = Arc::new(OsFs);
    let ids = Arc::new(SeededIds::new(number + 1_000));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (mut next, mut longest) = (0, Duration::ZERO);
    while next < EACH {
        let env = LogEnv {
            fs: Arc::clone(&fs),
            blobs: Arc::new(BlobStore::new(Arc::clone(&fs), None)),
            clock: Arc::new(RealClock),
            ids: Arc::clone(&ids) as Arc<dyn Ids>,
            durability: Durability::Turn,
            agent_dir: None,
        };
        let began = Instant::now();
        let opened = runtime.block_on(Writer::open_waiting(env, path, Duration::from_secs(100)));
        longest = longest.max(began.elapsed());
        let (loaded, _) = opened.unwrap();
        assert!(loaded.damage.is_empty(), "{:?}", loaded.damage);
        let mut writer = loaded.value;
        for _ in 0..(1 + ids.next() % 40).min((EACH - next) as u64) {
            add(&mut writer, user(&format!("{number} {next} 한글")));
            next += 1;
        }
        if ids.next().is_multiple_of(16) {
            sync(&mut writer).unwrap();
        }
        assert_eq!(testkit::log::failure(&writer), None);
    }
    // Each of the others holds it for some milliseconds at a time.
    assert!(longest < Duration::from_secs(30), "waited for {longest:?}");
}

#[test]
fn eight_processes_append_in_turns_and_every_entry_is_there_once() {
    if let Ok(role) = std::env::var(ROLE) {
        let (number, path) = role.split_once(' ').unwrap();
        return be_one(number.parse().unwrap(), Path::new(path));
    }
    let dir = tempfile::tempdir().unwrap();
    let bench = Bench::new(Arc::new(OsFs), dir.path());
    let mut writer = bench.create();
    add(&mut writer, answer("first"));
    sync(&mut writer).unwrap();
    drop(writer);
    let children: Vec<_> = (0..PROCESSES)
        .map(|number| {
            Command::new(std::env::current_exe().unwrap())
                .args([
                    "--exact",
                    "--nocapture",
                    "handover::eight_processes_append_in_turns_and_every_entry_is_there_once",
                ])
                .env(ROLE, format!("{number} {}", bench.path().display()))
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    for child in children {
        let out = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&out.stderr).into_owned() + &String::from_utf8_lossy(&out.stdout);
        assert!(out.status.success(), "{said}");
    }
    let looked = Reader::open(&*bench.fs, &bench.path()).unwrap();
    assert!(looked.damage.is_empty(), "{:?}", looked.damage);
    let skeleton = looked.value.skeleton().unwrap();
    assert_eq!(skeleton.len(), 1 + EACH * PROCESSES as usize, "each once, under an id of its own");
    // Each goes on from the leaf of the one before, so all of them are on one path.
    let mut seen: HashMap<String, usize> = HashMap::new();
    for text in &texts(&looked.value)[1..] {
        let mut words = text.split(' ');
        let next = seen.entry(words.next().unwrap().into()).or_default();
        assert_eq!(words.next().unwrap().parse(), Ok(*next), "in each process's own order");
        *next += 1;
    }
    assert_eq!(seen.len(), PROCESSES as usize);
    assert!(seen.values().all(|count| *count == EACH));
    assert_eq!(looked.value.header().id, SessionId::new("s").unwrap());
}
