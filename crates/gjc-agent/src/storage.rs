//! What the actor knows of its storage: who waits for it, when it is tried again, what faces are told.

use crate::actor::Actor;
use gjc_entry::BoxFuture;
use gjc_log::fs::Fs;
use gjc_log::{Durability, Health, durable, written};
use gjc_protocol::{EventBody, Health as Told};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// How long the actor waits before it tries again to store what could not be stored: twice as long each time, up to the
/// second, until it succeeds. Each new entry tries at once.
const WRITE_AGAIN: Duration = Duration::from_millis(250);
const WRITE_AGAIN_MOST: Duration = Duration::from_secs(15);

impl<F: Fs> Actor<F> {
    /// Waits until everything is as safe as the session's durability asks for while it runs. `false`, and faces are told,
    /// when it cannot be at the moment.
    pub(crate) async fn make_safe(&mut self) -> bool {
        if !self.written_is_safe() {
            return self.make_durable().await;
        }
        let stored = self.becoming_safe();
        let stored = self.attend(stored).await;
        self.tell_storage();
        stored
    }

    /// The same for who cannot hold the actor meanwhile.
    pub(crate) fn becoming_safe(&mut self) -> BoxFuture<'static, bool> {
        let mut storage = self.session.log().storage();
        if self.written_is_safe() {
            let lsn = self.session.want_written();
            Box::pin(async move { written(&mut storage, lsn).await.is_ok() })
        } else {
            let lsn = self.session.want_durable();
            Box::pin(async move { durable(&mut storage, lsn).await.is_ok() })
        }
    }

    /// Writes everything so far; ready when it can be read under the session's name.
    pub(crate) fn under_its_name(&mut self) -> BoxFuture<'static, Result<(), Arc<io::Error>>> {
        let mut storage = self.session.log().storage();
        if self.is_named() {
            let lsn = self.session.want_written();
            Box::pin(async move { written(&mut storage, lsn).await })
        } else {
            let lsn = self.session.want_durable();
            Box::pin(async move { durable(&mut storage, lsn).await })
        }
    }

    /// Whether nothing waits for the disk while the session runs. A file without its name is not safe: killed before its
    /// first sync, gjc would lose the session.
    fn written_is_safe(&self) -> bool {
        self.session.log().durability() == Durability::None && self.is_named()
    }

    /// Whether the file bears its name. Until its first sync it has a temporary one, also that which a lost session goes
    /// on in.
    fn is_named(&self) -> bool {
        self.session.log().on_disk() && {
            let now = self.storage.borrow();
            now.durable.len > 0 && now.durable.file == now.written.file
        }
    }

    /// Waits until everything is durable. `false`, and faces are told, when it cannot be at the moment.
    pub(crate) async fn make_durable(&mut self) -> bool {
        gjc_fp::fp!("agent.durable.before");
        let lsn = self.session.want_durable();
        let mut storage = self.session.log().storage();
        let stored = self.attend(async move { durable(&mut storage, lsn).await }).await;
        gjc_fp::fp!("agent.durable.after");
        self.tell_storage();
        stored.is_ok()
    }

    /// Tries again to store what could not be stored; how it went is told when it is known.
    pub(crate) fn store_again(&mut self) {
        let waited = self.again.take().map_or(WRITE_AGAIN, |(_, waited)| (waited * 2).min(WRITE_AGAIN_MOST));
        self.again = Some((self.config.env.clock.sleep(waited), waited));
        self.session.want_durable();
        self.tell_storage();
    }

    /// Tells faces when storage begins or ceases to fail.
    pub(crate) fn tell_storage(&mut self) {
        let storage = self.storage.borrow_and_update().clone();
        let now = match storage.health {
            // After a failure all is well again once nothing can be lost any more, not when the next write succeeds.
            Health::Ok if self.told != Told::Ok && storage.durable < storage.written => return,
            Health::Ok => Told::Ok,
            Health::Failing(why) => Told::Failing { why: why.to_string() },
        };
        match (&now, &self.again) {
            (Told::Ok, _) => self.again = None,
            (Told::Failing { .. }, None) => {
                self.again = Some((self.config.env.clock.sleep(WRITE_AGAIN), WRITE_AGAIN));
            }
            (Told::Failing { .. }, Some(_)) => {}
        }
        if now != self.told {
            self.told = now.clone();
            self.events.emit(EventBody::Storage(now));
        }
    }
}

/// When it is time to store again; never while storage is well.
pub(crate) async fn due(again: &mut Option<(BoxFuture<'static, ()>, Duration)>) {
    match again {
        Some((sleep, _)) => sleep.await,
        None => std::future::pending().await,
    }
}
