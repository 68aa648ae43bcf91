//! Other sessions for a process that has one: what the actor asks for when a person goes from session to session.

use crate::breadcrumbs;
use crate::compose::{Composer, Start};
use crate::failure::Failure;
use crate::opening::place;
use crate::which::store;
use crate::world::real_dir;
use gjc_agent::{Found, Present, Purpose, Ready, Sessions, Undo, Wanted};
use gjc_entry::{BoxFuture, Header, SessionId};
use gjc_log::fs::OsFs;
use gjc_log::{ForkError, Reader};
use gjc_protocol::{Refusal, SwitchReason};
use gjc_store::Store;
use std::path::{Path, PathBuf};

impl Sessions<OsFs> for Composer {
    fn find(&self, word: String, purpose: Purpose, present: Present) -> BoxFuture<'static, Result<Found, Refusal>> {
        let sessions = store(&self.env, &self.args);
        // It may read many files.
        beside(move || find(&sessions, &word, purpose, &present))
    }

    fn ready(&self, wanted: Wanted, present: Present) -> BoxFuture<'static, Result<Ready<OsFs>, Refusal>> {
        let composer = self.clone();
        Box::pin(
            async move { composer.another(wanted, present).await.map_err(|failure| failure.refusal("not_switched")) },
        )
    }

    fn arrived(&self, present: &Present) {
        breadcrumbs::remember(&self.env, &self.args, &present.cwd, present.file.as_deref());
    }

    fn follow(&self, reason: SwitchReason, from: PathBuf, to: PathBuf) -> BoxFuture<'static, Vec<String>> {
        let (env, folders) = (self.env.clone(), (folder_of(&from), folder_of(&to)));
        Box::pin(async move {
            let followed = tokio::task::spawn_blocking(move || match reason {
                SwitchReason::Move => {
                    let there = std::fs::rename(&folders.0, &folders.1);
                    let left = there.is_err() && folders.0.exists();
                    let notice = left.then(|| gjc_log::carry_artifacts(&OsFs, &folders.0, &folders.1)).flatten();
                    let kept = gjc_store::trash_moved(&OsFs, &env.dirs.agent, &from, &to, env.clock.wall()).err();
                    let kept =
                        kept.map(|why| format!("the session's old file {} is still there: {why}", from.display()));
                    notice.into_iter().chain(kept).collect()
                }
                _ => gjc_log::carry_artifacts(&OsFs, &folders.0, &folders.1).into_iter().collect(),
            });
            followed.await.unwrap_or_default()
        })
    }

    fn trash(&self, file: PathBuf) -> BoxFuture<'static, Result<PathBuf, Refusal>> {
        let env = self.env.clone();
        beside(move || {
            let trashed = gjc_store::trash(&OsFs, &env.dirs.agent, &file, env.clock.wall());
            trashed.map(|trashed| trashed.folder).map_err(|error| {
                let refusal = Refusal::new("not_deleted", error.to_string());
                Refusal { hint: error.hint().map(Into::into), ..refusal }
            })
        })
    }
}

/// Does what may take a while where nobody waits for it.
fn beside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
) -> BoxFuture<'static, Result<T, Refusal>> {
    Box::pin(async move {
        let done = tokio::task::spawn_blocking(work).await;
        done.unwrap_or_else(|error| Err(Refusal::new("not_switched", error.to_string())))
    })
}

/// The folder beside a session file.
fn folder_of(file: &Path) -> PathBuf {
    file.with_extension("")
}

/// The session that a word means, and whether it is the one that is open.
fn find(sessions: &Store, word: &str, purpose: Purpose, present: &Present) -> Result<Found, Refusal> {
    let found = match purpose {
        Purpose::GoOn => sessions.resume(&present.cwd, word),
        Purpose::PutAway => sessions.resolve(&present.cwd, word),
    };
    let file = found.map_err(|error| Failure::from(error).refusal("not_found"))?;
    let real = std::fs::canonicalize(&file).ok();
    if real.is_some() && present.file.as_ref().is_some_and(|open| std::fs::canonicalize(open).ok() == real) {
        return Ok(Found::Present);
    }
    let loaded = Reader::open(&OsFs, &file).map_err(|error| Failure::from(error).refusal("not_opened"))?;
    Ok(Found::Other { id: loaded.value.header().id.to_string(), file })
}

impl Composer {
    async fn another(&self, wanted: Wanted, present: Present) -> Result<Ready<OsFs>, Failure> {
        let Present { id, file, cwd } = present;
        let source = file.unwrap_or_default();
        match wanted {
            Wanted::New => self.compose(Start::New { cwd }).await,
            Wanted::File(path) => self.compose(Start::File { path }).await,
            Wanted::Branch(upto) => self.compose(Start::Branch { source, upto, cwd }).await,
            Wanted::Fork => {
                let header = Header::new(self.env.ids.session(), self.env.clock.wall(), cwd.display().to_string());
                self.copy(source, header, &cwd).await
            }
            Wanted::Moved(to) => {
                let there = real_dir(&cwd.join(to))?;
                if there == cwd {
                    return Err(Failure::new(format!("the session is in {} already", there.display())));
                }
                let header = self.same_elsewhere(&source, &id, &there).await?;
                self.copy(source, header, &there).await
            }
        }
    }

    /// The header of a session that goes on in another folder.
    async fn same_elsewhere(&self, source: &Path, id: &str, there: &Path) -> Result<Header, Failure> {
        let path = source.to_owned();
        let read = tokio::task::spawn_blocking(move || Reader::open(&OsFs, &path)).await;
        let old = read.map_err(|error| Failure::new(error.to_string()))??.value.header().clone();
        let id = SessionId::new(id).map_err(|error| Failure::new(error.to_string()))?;
        Ok(Header { id, cwd: there.display().to_string(), ..old })
    }

    /// A session in a copy of another one's file, in the bucket of a folder. The copy is taken back unless the session is gone
    /// over to.
    async fn copy(&self, source: PathBuf, header: Header, cwd: &Path) -> Result<Ready<OsFs>, Failure> {
        let mut path = place(&self.env, self.args.session_dir.as_deref(), cwd, &header);
        if path.exists() {
            // A session that moves between folders whose buckets have one name, or lie in one folder.
            path.set_file_name(Header { at: self.env.clock.wall(), ..header.clone() }.file_name());
        }
        let to = path.clone();
        // Also where nobody waits for it any more: what a thread that cannot be stopped has made is taken back with its answer.
        let copied = tokio::task::spawn_blocking(move || {
            gjc_log::fork(&OsFs, &source, &to, header)?;
            Ok::<_, ForkError>(Undo::by(move || drop(std::fs::remove_file(&to))))
        });
        let undo = copied.await.map_err(|error| Failure::new(error.to_string()))??;
        let ready = self.compose(Start::File { path }).await?;
        Ok(Ready { undo, ..ready })
    }
}
