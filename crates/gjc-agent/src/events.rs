//! Events to faces. Nobody waits for a face: each has a queue of its own, in which neighbouring text deltas are merged,
//! and which is emptied and marked `Resync` when it grows beyond its bound.

use gjc_protocol::{Event, EventBody, Merge};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tokio::sync::Notify;

/// The most that is kept for a face that does not read.
const MOST_EVENTS: usize = 4096;
const MOST_BYTES: usize = 8 << 20;

/// The source of a session's events.
#[derive(Clone, Default)]
pub struct Events(Arc<Mutex<Hub>>);

#[derive(Default)]
struct Hub {
    seq: u64,
    faces: Vec<Weak<Queue>>,
    closed: bool,
}

#[derive(Default)]
struct Queue {
    state: Mutex<Waiting>,
    wake: Notify,
}

#[derive(Default)]
struct Waiting {
    events: VecDeque<Event>,
    bytes: usize,
    /// The heaviest event that came in since the queue was empty; merged text does not count.
    heaviest: usize,
    closed: bool,
}

impl Events {
    /// Tells every face.
    pub fn emit(&self, body: EventBody) {
        let mut hub = self.lock();
        hub.seq += 1;
        let event = Event { seq: hub.seq, body };
        let last = matches!(event.body, EventBody::Closed);
        hub.closed |= last;
        hub.faces.retain(|face| match face.upgrade() {
            Some(queue) => {
                queue.push(event.clone(), last);
                true
            }
            // The face is gone; so is its queue.
            None => false,
        });
    }

    /// A new face. Its first event is `first`, which no other face sees; then comes everything from now on.
    #[must_use]
    pub fn subscribe(&self, first: EventBody) -> Subscription {
        self.subscribe_with(|| first)
    }

    /// The same with a first event that is made when no other can come between it and the next: what has changed before
    /// that is in it, and what changes later is told. `first` must not use these events.
    #[must_use]
    pub fn subscribe_with(&self, first: impl FnOnce() -> EventBody) -> Subscription {
        let queue = Arc::new(Queue::default());
        let mut hub = self.lock();
        queue.push(Event { seq: hub.seq, body: first() }, hub.closed);
        hub.faces.push(Arc::downgrade(&queue));
        Subscription(queue)
    }

    /// The number of the last event.
    #[must_use]
    pub fn seq(&self) -> u64 {
        self.lock().seq
    }

    /// How many faces there are.
    #[must_use]
    pub fn faces(&self) -> usize {
        self.lock().faces.iter().filter(|face| face.strong_count() > 0).count()
    }

    fn lock(&self) -> MutexGuard<'_, Hub> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    fn push(&self, event: Event, last: bool) {
        let mut waiting = self.lock();
        // What waits already is judged, but for the one heaviest event: a face that keeps up may get one that is huge.
        if waiting.events.len() >= MOST_EVENTS || waiting.bytes.saturating_sub(waiting.heaviest) >= MOST_BYTES {
            waiting.events.clear();
            waiting.events.shrink_to(64);
            (waiting.bytes, waiting.heaviest) = (0, 0);
            waiting.events.push_back(Event { seq: event.seq, body: EventBody::Resync });
            if last {
                waiting.events.push_back(event);
            }
        } else {
            waiting.take(event);
        }
        waiting.closed |= last;
        drop(waiting);
        self.wake.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    fn take(&mut self, event: Event) {
        let (event, more) = match self.events.back_mut() {
            Some(back) => {
                let before = back.weight();
                match back.merge(event) {
                    // Of a merged event its text alone counts: `next` takes off what the whole weighs then.
                    Merge::Done => (None, back.weight() - before),
                    Merge::No(event) => (Some(event), 0),
                }
            }
            None => (Some(event), 0),
        };
        if let Some(event) = &event {
            self.heaviest = self.heaviest.max(event.weight());
        }
        self.bytes += event.as_ref().map_or(more, Event::weight);
        self.events.extend(event);
    }
}

/// One face's events.
pub struct Subscription(Arc<Queue>);

impl Subscription {
    /// The next event; `None` once the session is closed and everything was read.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            {
                let mut waiting = self.0.lock();
                if let Some(event) = waiting.events.pop_front() {
                    waiting.bytes = waiting.bytes.saturating_sub(event.weight());
                    if waiting.events.is_empty() {
                        (waiting.bytes, waiting.heaviest) = (0, 0);
                    }
                    return Some(event);
                }
                if waiting.closed {
                    return None;
                }
            }
            self.0.wake.notified().await;
        }
    }

    /// How many events wait, and roughly their bytes.
    #[must_use]
    pub fn waiting(&self) -> (usize, usize) {
        let waiting = self.0.lock();
        (waiting.events.len(), waiting.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delta(text: &str) -> EventBody {
        EventBody::TextDelta { index: 0, text: text.into() }
    }

    fn drain(face: &mut Subscription) -> Vec<Event> {
        let mut events = Vec::new();
        while face.waiting().0 > 0 {
            events.push(futures_util::FutureExt::now_or_never(face.next()).flatten().unwrap());
        }
        events
    }

    #[test]
    fn a_slow_face_gets_merged_text_and_a_fast_one_every_piece() {
        let events = Events::default();
        let (mut fast, mut slow) = (events.subscribe(EventBody::TurnStarted), events.subscribe(EventBody::TurnStarted));
        let (mut pieces, mut seqs) = (Vec::new(), Vec::new());
        for n in 0..10_000 {
            events.emit(delta(&format!("{n}한")));
            for event in drain(&mut fast) {
                seqs.push(event.seq);
                if let EventBody::TextDelta { text, .. } = event.body {
                    pieces.push(text);
                }
            }
        }
        assert_eq!((pieces.len(), seqs.iter().skip(1).copied().collect::<Vec<_>>()), (10_000, (1..=10_000).collect()));
        let merged = drain(&mut slow);
        assert_eq!(merged.len(), 2);
        assert_eq!(merged[1].seq, 10_000);
        assert!(matches!(&merged[1].body, EventBody::TextDelta { text, .. } if *text == pieces.concat()));
    }

    #[test]
    fn a_dead_face_is_bounded_and_told_to_resync() {
        let events = Events::default();
        let mut dead = events.subscribe(EventBody::TurnStarted);
        for _ in 0..100_000 {
            events.emit(EventBody::TurnStarted);
            assert!(dead.waiting().0 <= MOST_EVENTS + 1);
        }
        for _ in 0..10_000 {
            events.emit(delta(&"가".repeat(1000)));
            assert!(dead.waiting().1 <= MOST_BYTES + 3 * 4096);
        }
        assert!(matches!(drain(&mut dead)[0].body, EventBody::Resync));
        events.emit(EventBody::Closed);
        assert_eq!(drain(&mut dead).len(), 1);
        assert!(futures_util::FutureExt::now_or_never(dead.next()).unwrap().is_none());
    }

    #[test]
    fn what_a_merged_event_weighs_is_what_reading_it_takes_off() {
        let events = Events::default();
        let mut slow = events.subscribe(EventBody::TurnStarted);
        drain(&mut slow);
        for _ in 0..1000 {
            events.emit(delta("한"));
        }
        events.emit(EventBody::TurnStarted);
        assert_eq!(slow.waiting(), (2, 64 + 3000 + 128));
        futures_util::FutureExt::now_or_never(slow.next()).flatten().unwrap();
        assert_eq!(slow.waiting(), (1, 128));
    }

    #[test]
    fn a_face_that_is_gone_costs_nothing() {
        let events = Events::default();
        drop(events.subscribe(EventBody::TurnStarted));
        events.emit(EventBody::TurnStarted);
        assert_eq!(events.faces(), 0);
    }
}
