//! Where another session comes from: the actor asks whoever has put its own together.

use crate::admit::Session;
use crate::config::Config;
use gjc_entry::{BoxFuture, EntryId};
use gjc_log::fs::Fs;
use gjc_protocol::{Refusal, SwitchReason};
use std::future::ready;
use std::path::PathBuf;

/// A session that is ready to go on: its file is locked, and everything that it runs with is decided.
pub struct Ready<F: Fs> {
    /// The session.
    pub session: Session<F>,
    /// What it runs with.
    pub config: Config,
    /// Whether it had entries before.
    pub resumed: bool,
    /// What a person should know of it.
    pub notices: Vec<String>,
    /// Takes back what was made for it alone, unless the session is gone over to.
    pub undo: Undo,
}

/// Something that is done when this is dropped, unless it was called off.
#[derive(Default)]
pub struct Undo(Option<Box<dyn FnOnce() + Send>>);

impl Undo {
    /// This.
    pub fn by(undo: impl FnOnce() + Send + 'static) -> Self {
        Self(Some(Box::new(undo)))
    }

    /// Calls it off.
    pub fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for Undo {
    fn drop(&mut self) {
        if let Some(undo) = self.0.take() {
            undo();
        }
    }
}

/// The session that is open now, as far as another one depends on it.
#[derive(Debug, Clone)]
pub struct Present {
    /// Its id.
    pub id: String,
    /// Its file; `None` in memory. It is there only once the session had its first answer.
    pub file: Option<PathBuf>,
    /// The folder that it works in.
    pub cwd: PathBuf,
}

/// Which session is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// A new one in the same folder.
    New,
    /// The one of this file.
    File(PathBuf),
    /// A copy of the present one, which is durable, under an id of its own.
    Fork,
    /// A new one with everything of the present one up to an entry; up to none it is empty.
    Branch(Option<EntryId>),
    /// The present one, which is durable, in another folder; a relative path begins at its own.
    Moved(PathBuf),
}

/// What a session is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To go on with it: by its id, one without messages is none.
    GoOn,
    /// To put it away, whatever is in it.
    PutAway,
}

/// What a word means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// The session that is open now.
    Present,
    /// Another session.
    Other {
        /// Its id.
        id: String,
        /// Its file.
        file: PathBuf,
    },
}

/// Gives sessions, and puts them away. Whatever takes time happens beside the actor, which goes on meanwhile.
pub trait Sessions<F: Fs>: Send + Sync {
    /// The session that a word means: the beginning of an id, or a path. Nothing is opened for writing.
    fn find(&self, word: String, purpose: Purpose, present: Present) -> BoxFuture<'static, Result<Found, Refusal>>;

    /// Gets a session ready. Whatever can be refused is refused here, and what was begun is taken back then, also when the
    /// future is dropped.
    fn ready(&self, wanted: Wanted, present: Present) -> BoxFuture<'static, Result<Ready<F>, Refusal>>;

    /// A session is the one that is open now.
    fn arrived(&self, present: &Present);

    /// A session was left for a copy of its file, or of a part of it: what stands beside the file is brought to the new one,
    /// and of a session that has moved the old file is put away. Gives what a person should know of it.
    fn follow(&self, reason: SwitchReason, from: PathBuf, to: PathBuf) -> BoxFuture<'static, Vec<String>>;

    /// Puts a session into the trash that nobody has open. Gives where it is then.
    fn trash(&self, file: PathBuf) -> BoxFuture<'static, Result<PathBuf, Refusal>>;
}

/// No session but the one that there is.
#[derive(Debug, Clone, Copy)]
pub struct OneSession;

fn no_other<T: Send + 'static>() -> BoxFuture<'static, Result<T, Refusal>> {
    Box::pin(ready(Err(Refusal::new("one_session", "there is no other session to go to here"))))
}

impl<F: Fs> Sessions<F> for OneSession {
    fn find(&self, _: String, _: Purpose, _: Present) -> BoxFuture<'static, Result<Found, Refusal>> {
        no_other()
    }

    fn ready(&self, _: Wanted, _: Present) -> BoxFuture<'static, Result<Ready<F>, Refusal>> {
        no_other()
    }

    fn arrived(&self, _: &Present) {}

    fn follow(&self, _: SwitchReason, _: PathBuf, _: PathBuf) -> BoxFuture<'static, Vec<String>> {
        Box::pin(ready(Vec::new()))
    }

    fn trash(&self, _: PathBuf) -> BoxFuture<'static, Result<PathBuf, Refusal>> {
        no_other()
    }
}
