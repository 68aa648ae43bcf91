use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};

/// The plan belongs to the process; tests that run as threads of one take turns.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    gjc_fp::clear_plan();
    turn
}

fn steps(len: usize) -> io::Result<usize> {
    gjc_fp::fp!("test.before");
    gjc_fp::fp!("test.io", io)?;
    let len = gjc_fp::fp!("test.write", io, len)?;
    gjc_fp::fp!("test.후");
    Ok(len)
}

/// The same name at a second place.
fn again() {
    gjc_fp::fp!("test.before");
}

#[test]
fn points_are_enumerated_without_being_passed() {
    let _turn = alone();
    assert_eq!(gjc_fp::names(), ["test.before", "test.io", "test.write", "test.후"]);
    assert_eq!(gjc_fp::POINTS.len(), 5);
    assert_eq!(gjc_fp::passed(), 0);
}

#[test]
fn points_are_counted() {
    let _turn = alone();
    assert_eq!(steps(5).unwrap(), 5);
    again();
    assert_eq!(gjc_fp::passed(), 5);
    gjc_fp::set_plan("test.io=err(EIO)").unwrap();
    assert_eq!(gjc_fp::passed(), 0, "a new plan counts anew");
    steps(5).unwrap_err();
    assert_eq!(gjc_fp::passed(), 2);
}

#[test]
fn calls_fail_as_planned() {
    let _turn = alone();
    gjc_fp::set_plan("test.w*=err(ENOSPC)").unwrap();
    assert_eq!(steps(5).unwrap_err().kind(), io::ErrorKind::StorageFull);
    gjc_fp::set_plan("2-2:test.io=err(EINTR)").unwrap();
    let kinds: Vec<_> = (0..3).map(|_| steps(5).map_err(|error| error.kind())).collect();
    assert_eq!(kinds, [Ok(5), Err(io::ErrorKind::Interrupted), Ok(5)]);
    gjc_fp::set_plan("@6=err(EROFS)").unwrap();
    let kinds: Vec<_> = (0..3).map(|_| steps(5).map_err(|error| error.kind())).collect();
    assert_eq!(kinds, [Ok(5), Err(io::ErrorKind::ReadOnlyFilesystem), Ok(5)]);
    gjc_fp::set_plan("test.before=err(EIO);test.후=short(1)").unwrap();
    assert_eq!(steps(5).unwrap(), 5, "points without io ignore errors");
}

#[test]
fn writes_are_shortened_as_planned() {
    let _turn = alone();
    gjc_fp::set_plan("test.write=short(3)").unwrap();
    assert_eq!((steps(5).unwrap(), steps(2).unwrap()), (3, 2));
    gjc_fp::set_plan("test.io=short(3)").unwrap();
    assert_eq!(steps(5).unwrap_err().kind(), io::ErrorKind::WriteZero);
}

#[test]
fn a_plan_that_cannot_be_read_changes_nothing() {
    let _turn = alone();
    gjc_fp::set_plan("test.write=short(3)").unwrap();
    let error = gjc_fp::set_plan("test.write=short(1);test.io=boom").unwrap_err().to_string();
    assert!(error.starts_with("The failpoint rule `test.io=boom` cannot be read: "), "{error}");
    assert_eq!(steps(5).unwrap(), 3);
}

#[test]
fn a_paused_point_goes_on_when_the_hook_returns() {
    let _turn = alone();
    let (arrived, arrivals) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let released = Mutex::new(released);
    gjc_fp::set_pause_hook(move |name| {
        arrived.send(name).unwrap();
        released.lock().unwrap().recv().unwrap();
    });
    gjc_fp::set_plan("test.write=pause").unwrap();
    let paused = std::thread::spawn(|| steps(5));
    assert_eq!(arrivals.recv().unwrap(), "test.write");
    assert_eq!(gjc_fp::passed(), 3);
    gjc_fp::clear_plan();
    release.send(()).unwrap();
    assert_eq!(paused.join().unwrap().unwrap(), 5);
}

/// This test is its own child: with a plan in its environment it follows it and should not come back.
#[test]
fn a_killed_process_is_killed_at_the_point() {
    const PLAN: &str = "GJC_FP_TEST_PLAN";
    if let Ok(plan) = std::env::var(PLAN) {
        gjc_fp::set_plan(&plan).unwrap();
        steps(5).unwrap();
        std::process::exit(42);
    }
    let run = |plan: &str| {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "armed::a_killed_process_is_killed_at_the_point"]).env(PLAN, plan);
        child.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap()
    };
    for plan in ["test.before=kill", "test.*=kill", "@4=kill", "test.후=kill"] {
        assert_eq!(run(plan).signal(), Some(9), "{plan}");
    }
    for plan in ["@5=kill", "2:test.후=kill", "other=kill"] {
        assert_eq!(run(plan).code(), Some(42), "{plan}");
    }
}
