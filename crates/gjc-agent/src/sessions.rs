//! Where another session comes from: the actor asks whoever has put its own together.

use crate::admit::Session;
use crate::config::Config;
use gjc_entry::BoxFuture;
use gjc_log::fs::Fs;
use gjc_protocol::Refusal;
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
#[non_exhaustive]
pub enum Wanted {
    /// A new one in the same folder.
    New,
    /// The one of this file.
    File(PathBuf),
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

/// Gives sessions. All of them work on clones: the actor goes on meanwhile.
pub trait Sessions<F: Fs>: Send + Sync {
    /// The session that a word means: the beginning of an id, or a path. Nothing is opened for writing.
    fn find(&self, word: String, present: Present) -> BoxFuture<'static, Result<Found, Refusal>>;

    /// Gets a session ready. Whatever can be refused is refused here, and what was begun is taken back then.
    fn ready(&self, wanted: Wanted, present: Present) -> BoxFuture<'static, Result<Ready<F>, Refusal>>;

    /// A session is the one that is open now.
    fn arrived(&self, present: &Present);
}

/// No session but the one that there is.
#[derive(Debug, Clone, Copy)]
pub struct OneSession;

impl OneSession {
    fn refusal() -> Refusal {
        Refusal::new("one_session", "there is no other session to go to here")
    }
}

impl<F: Fs> Sessions<F> for OneSession {
    fn find(&self, _: String, _: Present) -> BoxFuture<'static, Result<Found, Refusal>> {
        Box::pin(ready(Err(Self::refusal())))
    }

    fn ready(&self, _: Wanted, _: Present) -> BoxFuture<'static, Result<Ready<F>, Refusal>> {
        Box::pin(ready(Err(Self::refusal())))
    }

    fn arrived(&self, _: &Present) {}
}
