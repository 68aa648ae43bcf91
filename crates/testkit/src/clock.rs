//! A clock that moves only when it is told to.

use gjc_entry::{BoxFuture, Clock, Timestamp};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

/// Virtual time. `advance` moves it and wakes the sleepers that are due.
#[derive(Clone)]
pub struct VirtualClock(Arc<Mutex<State>>);

struct State {
    wall: Timestamp,
    began: Instant,
    passed: Duration,
    sleepers: Vec<(Duration, Waker)>,
}

impl VirtualClock {
    /// A clock that shows 2026-06-05T07:18:54.123Z.
    #[must_use]
    pub fn new() -> Self {
        Self::at(Timestamp::from_millis(1_780_643_934_123))
    }

    /// A clock that shows a given time.
    #[must_use]
    pub fn at(wall: Timestamp) -> Self {
        Self(Arc::new(Mutex::new(State { wall, began: Instant::now(), passed: Duration::ZERO, sleepers: Vec::new() })))
    }

    /// Lets time pass.
    pub fn advance(&self, by: Duration) {
        let due = {
            let mut state = self.lock();
            state.passed += by;
            state.wall =
                Timestamp::from_millis(state.wall.as_millis() + i64::try_from(by.as_millis()).unwrap_or(i64::MAX));
            let passed = state.passed;
            let (due, later) = std::mem::take(&mut state.sleepers).into_iter().partition(|(at, _)| *at <= passed);
            state.sleepers = later;
            due
        };
        let due: Vec<(Duration, Waker)> = due;
        due.into_iter().for_each(|(_, waker)| waker.wake());
    }

    /// Sets wall time, also backwards, as an administrator may. Monotone time goes on.
    pub fn set_wall(&self, wall: Timestamp) {
        self.lock().wall = wall;
    }

    /// How many sleep.
    #[must_use]
    pub fn sleepers(&self) -> usize {
        self.lock().sleepers.len()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for VirtualClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for VirtualClock {
    fn wall(&self) -> Timestamp {
        self.lock().wall
    }

    fn mono(&self) -> Instant {
        let state = self.lock();
        state.began + state.passed
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        let clock = self.clone();
        let until = self.lock().passed + duration;
        Box::pin(std::future::poll_fn(move |cx| {
            let mut state = clock.lock();
            if state.passed >= until {
                return Poll::Ready(());
            }
            state.sleepers.push((until, cx.waker().clone()));
            Poll::Pending
        }))
    }
}
