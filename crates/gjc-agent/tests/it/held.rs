//! A disk whose syncs last until the test lets them end: what must wait for durability, and what must not.

use crate::world::*;
use gjc_log::fs::sim::{SimFile, SimFs};
use gjc_log::fs::{Fs, FsFile, Held, Open, Stat};
use gjc_protocol::{Command, EventBody, StepName, TurnEnd};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};
use testkit::log::Bench;

/// Open or shut.
#[derive(Clone, Default)]
struct Door(Arc<(Mutex<bool>, Condvar)>);

impl Door {
    fn shut(&self) {
        *self.0.0.lock().unwrap() = true;
    }

    fn open(&self) {
        *self.0.0.lock().unwrap() = false;
        self.0.1.notify_all();
    }

    fn pass(&self) {
        drop(self.0.1.wait_while(self.0.0.lock().unwrap(), |shut| *shut).unwrap());
    }
}

struct SlowFs {
    fs: SimFs,
    door: Door,
}

struct SlowFile {
    file: SimFile,
    door: Door,
}

impl Fs for SlowFs {
    type File = SlowFile;

    fn open(&self, path: &Path, how: Open) -> io::Result<SlowFile> {
        Ok(SlowFile { file: self.fs.open(path, how)?, door: self.door.clone() })
    }

    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.fs.rename_new(from, to)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.fs.rename(from, to)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.fs.sync_dir(dir)
    }

    fn stat(&self, path: &Path) -> io::Result<Stat> {
        self.fs.stat(path)
    }

    fn mkdir(&self, dir: &Path) -> io::Result<()> {
        self.fs.mkdir(dir)
    }

    fn unlink(&self, path: &Path) -> io::Result<()> {
        self.fs.unlink(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        self.fs.list(dir)
    }
}

impl FsFile for SlowFile {
    fn append(&self, bytes: &[u8]) -> io::Result<usize> {
        self.file.append(bytes)
    }

    fn rewrite_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.file.rewrite_at(bytes, offset)
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(buf, offset)
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.file.truncate(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.door.pass();
        self.file.sync_data()
    }

    fn stat(&self) -> io::Result<Stat> {
        self.file.stat()
    }

    fn try_lock(&self) -> io::Result<Held> {
        self.file.try_lock()
    }
}

fn slow() -> (World, Door) {
    let (fs, door) = (SimFs::new(), Door::default());
    fs.mkdir(Path::new("/agent")).unwrap();
    let bench = Bench::new(Arc::new(SlowFs { fs, door: door.clone() }), Path::new("/agent"));
    (Setup::new(&bench).usual_tools().start(bench.create(), false), door)
}

#[tokio::test]
async fn a_turn_ends_only_when_its_sync_has_ended_and_commands_are_answered_meanwhile() {
    let (mut world, door) = slow();
    let ask = world.say("하나").await;
    door.shut();
    ask.say("일");
    world.face.until(|body| matches!(body, EventBody::Usage { .. })).await;
    for _ in 0..100 {
        assert_eq!(world.snapshot().await.step, StepName::TurnBoundary);
    }
    world.accepted(typed("둘")).await;
    world.face.until(|body| matches!(body, EventBody::Queued { waiting: 1 })).await;
    assert!(!world.face.names().contains(&"turn_ended".into()));
    door.open();
    assert_eq!(world.turn_end().await, TurnEnd::Done);
    world.ask().await.say("이");
    assert_eq!(world.turn_end().await, TurnEnd::Done);
}

#[tokio::test]
async fn an_act_outside_waits_for_the_sync_and_an_abort_meanwhile_keeps_it_from_happening() {
    for abort in [false, true] {
        let (mut world, door) = slow();
        let ask = world.say("보내").await;
        door.shut();
        ask.call(&[("a", "out", "{}")]);
        world.face.message("assistant").await;
        for _ in 0..100 {
            world.snapshot().await;
        }
        assert!(world.started.try_recv().is_err(), "it began before its record was durable");
        if abort {
            world.accepted(Command::Abort).await;
        }
        door.open();
        if abort {
            assert_eq!(world.turn_end().await, TurnEnd::Aborted);
            assert!(world.started.try_recv().is_err(), "it began after the abort");
            assert!(world.face.results()[0].1.starts_with("not run"));
        } else {
            world.begun().await.done("보냈다");
            world.ask().await.say("네");
            assert_eq!(world.turn_end().await, TurnEnd::Done);
        }
    }
}
