//! The points of this process and the plan they follow.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use linkme::distributed_slice;

use crate::plan::{Action, Plan, PlanError};

/// Every point linked into this process, in no order; a name may stand at several places.
#[distributed_slice]
pub static POINTS: [Point];

/// One place with a failpoint. Made by [`fp!`](crate::fp) only.
#[derive(Debug)]
pub struct Point {
    name: &'static str,
}

impl Point {
    /// The point called `name`, in words joined by dots from the crate to the moment: `log.append.after_write`.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self { name }
    }

    /// Its name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }
}

/// What the plan says at a point, after any killing and waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Go on as if nothing were here.
    Go,
    /// Fail with this system error number.
    Err(i32),
    /// Write only so many bytes.
    Short(usize),
}

impl Outcome {
    /// As the result of a call that returns nothing.
    ///
    /// # Errors
    /// The injected error; `WriteZero` for [`Outcome::Short`], which such a call cannot follow.
    pub fn io(self) -> io::Result<()> {
        match self {
            Self::Go => Ok(()),
            Self::Err(errno) => Err(io::Error::from_raw_os_error(errno)),
            Self::Short(_) => Err(io::ErrorKind::WriteZero.into()),
        }
    }

    /// As the number of bytes that a write of `len` may write.
    ///
    /// # Errors
    /// The injected error.
    pub fn io_len(self, len: usize) -> io::Result<usize> {
        match self {
            Self::Short(bytes) => Ok(bytes.min(len)),
            Self::Go | Self::Err(_) => self.io().map(|()| len),
        }
    }
}

type Hook = Arc<dyn Fn(&'static str) + Send + Sync>;

// The points are in the code of the process, so what they follow is the process's too.
static PLAN: RwLock<Option<Plan>> = RwLock::new(None);
static PASSED: AtomicU64 = AtomicU64::new(0);
static PAUSE: RwLock<Option<Hook>> = RwLock::new(None);

/// From now on the points follow this plan; the counts begin anew. The syntax is on the crate's front page.
///
/// # Errors
/// A sentence about the first rule that cannot be read; the plan stays as it was.
pub fn set_plan(text: &str) -> Result<(), PlanError> {
    replace(Some(Plan::parse(text)?));
    Ok(())
}

/// From now on the points do nothing; the counts begin anew.
pub fn clear_plan() {
    replace(None);
}

fn replace(plan: Option<Plan>) {
    let mut current = PLAN.write().unwrap_or_else(PoisonError::into_inner);
    *current = plan;
    PASSED.store(0, Ordering::Relaxed);
}

/// The number of points passed since the plan was set or cleared, or since the process began.
#[must_use]
pub fn passed() -> u64 {
    PASSED.load(Ordering::Relaxed)
}

/// The names of all points of this process, sorted, each once.
#[must_use]
pub fn names() -> Vec<&'static str> {
    let mut names: Vec<_> = POINTS.iter().map(Point::name).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// What a point with the action `pause` does: it goes on when `hook`, called with its name, returns. Without a hook it
/// waits until the process ends.
pub fn set_pause_hook(hook: impl Fn(&'static str) + Send + Sync + 'static) {
    *PAUSE.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(hook));
}

/// Passes a point: kills the process or waits here if the plan says so.
pub fn hit(point: &Point) -> Outcome {
    // The lock is free again before anything happens: a paused point must not stop the next `set_plan`.
    let action = {
        let plan = PLAN.read().unwrap_or_else(PoisonError::into_inner);
        let nth = PASSED.fetch_add(1, Ordering::Relaxed) + 1;
        plan.as_ref().and_then(|plan| plan.action(point.name, nth))
    };
    match action {
        None => Outcome::Go,
        Some(Action::Err(errno)) => Outcome::Err(errno),
        Some(Action::Short(bytes)) => Outcome::Short(bytes),
        Some(Action::Kill) => kill(),
        Some(Action::Pause) => {
            pause(point.name);
            Outcome::Go
        }
    }
}

fn kill() -> ! {
    // SAFETY: `kill` and `getpid` take and return plain numbers and touch no memory of ours.
    unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
    wait_for_the_end()
}

fn pause(name: &'static str) {
    let hook = PAUSE.read().unwrap_or_else(PoisonError::into_inner).clone();
    match hook {
        Some(hook) => hook(name),
        None => wait_for_the_end(),
    }
}

fn wait_for_the_end() -> ! {
    loop {
        std::thread::park();
    }
}
