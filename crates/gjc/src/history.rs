//! What a face does for the prompt history: says what nobody answered, keeps each prompt before it is sent, notices from the
//! session's events when the session holds it.
//!
//! The session knows nothing of it. The database is used by one thread that nobody waits for longer than [`LIMIT`]: a
//! session goes on without a history that is locked, broken, full, or on a disk that does not answer.

use crate::out;
use gjc_entry::{Clock, Env, Origin};
use gjc_protocol::{EventBody, Health, PromptPart, Unanswered};
use gjc_store::{Fate, History, HistoryError, Prompt, Said};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;
use tokio::sync::oneshot;

/// The longest that anybody waits for the database, its own wait for locks included.
const LIMIT: Duration = Duration::from_secs(2);
/// The most prompts in an `unanswered` event.
const MOST: usize = 20;
/// The most characters of a text in an `unanswered` event.
const LONGEST: usize = 200;

/// Where the history is.
pub(crate) fn path(env: &Env) -> PathBuf {
    env.dirs.agent.join("history.db")
}

/// Keeps the prompts of one session.
#[derive(Clone)]
pub(crate) struct Keeper(Option<Arc<Inner>>);

struct Inner {
    jobs: mpsc::Sender<Job>,
    path: PathBuf,
    clock: Arc<dyn Clock>,
    cwd: String,
    seen: Arc<Mutex<Seen>>,
    /// A person was told that prompts are not kept.
    told: AtomicBool,
    /// The thread did not come back in time from something, and has not since.
    stuck: Arc<AtomicBool>,
}

type Job = Box<dyn FnOnce(&mut Worker) + Send>;

/// What is known of the prompts that were kept and are not settled yet.
#[derive(Default)]
struct Seen {
    /// The session's id and file; a rescue changes them.
    session: String,
    file: String,
    kept: Vec<Kept>,
    /// The session's file exists, or will with the end of this turn.
    begun: bool,
    failing: bool,
}

struct Kept {
    id: i64,
    /// All pieces, as the session's message has them.
    whole: String,
    said: Said,
    admitted: bool,
}

impl Keeper {
    /// Keeps nothing, for `--no-session`.
    pub(crate) fn none() -> Self {
        Self(None)
    }

    /// For a session in `cwd`, whose file is (or will be) `file`.
    pub(crate) fn new(env: &Env, session: &str, file: &Path, cwd: &Path, resumed: bool) -> Self {
        let (jobs, work) = mpsc::channel::<Job>();
        let path = path(env);
        let mut worker = Worker { path: path.clone(), open: None };
        std::thread::spawn(move || work.into_iter().for_each(|job| job(&mut worker)));
        Self(Some(Arc::new(Inner {
            jobs,
            path,
            clock: Arc::clone(&env.clock),
            cwd: cwd.display().to_string(),
            seen: Arc::new(Mutex::new(Seen {
                session: session.into(),
                file: file.display().to_string(),
                begun: resumed,
                ..Seen::default()
            })),
            told: AtomicBool::new(false),
            stuck: Arc::default(),
        })))
    }

    /// Says which prompts of this folder nobody answered, but for the one that is about to be sent again.
    pub(crate) async fn offer(&self, again: &[PromptPart]) -> Option<EventBody> {
        let inner = self.0.as_ref()?;
        let cwd = inner.cwd.clone();
        let found = inner.ask(move |worker| match worker.existing()? {
            Some(history) => history.unanswered(Some(&cwd)),
            None => Ok(Vec::new()),
        });
        let mut unanswered = match found.await {
            Ok(unanswered) => unanswered,
            Err(why) => {
                inner.complain(&why);
                return None;
            }
        };
        let again = typed(again).map(|(text, _)| text).unwrap_or_default();
        unanswered.retain(|prompt| prompt.text.trim() != again.trim());
        out::notice(&format!("gjc: {}", sentence(&unanswered)?));
        Some(EventBody::Unanswered {
            count: unanswered.len(),
            prompts: unanswered.iter().take(MOST).filter_map(event).collect(),
        })
    }

    /// Keeps a prompt, durably. Where that fails, a person is told so once, and the session goes on.
    pub(crate) async fn record(&self, parts: &[PromptPart]) {
        let Some((inner, (text, more))) = self.0.as_ref().zip(typed(parts)) else { return };
        let (session, file) = {
            let seen = lock(&inner.seen);
            (seen.session.clone(), seen.file.clone())
        };
        let said = Said { text, more, cwd: inner.cwd.clone(), session, file, at: inner.clock.wall() };
        let (seen, whole) = (Arc::clone(&inner.seen), whole(parts));
        // Nobody may be waiting any more when it is kept at last: the number is noted here, by who got it.
        let kept = inner.ask(move |worker| {
            let id = worker.made()?.record(&said)?;
            lock(&seen).kept.push(Kept { id, whole, said, admitted: false });
            Ok(())
        });
        if let Err(why) = kept.await {
            inner.complain(&why);
        }
    }

    /// Looks at what happens in the session.
    pub(crate) fn see(&self, event: &EventBody) {
        let Some(inner) = &self.0 else { return };
        let mut seen = lock(&inner.seen);
        match event {
            EventBody::Message { message, .. } if message["role"] == "user" => {
                let said = content(message);
                if let Some(kept) =
                    seen.kept.iter_mut().find(|kept| !kept.admitted && History::is_said(&said, &kept.whole))
                {
                    kept.admitted = true;
                }
            }
            EventBody::Message { message, .. } if message["role"] == "assistant" => seen.begun = true,
            EventBody::Rescued { id, file } => {
                (seen.session, seen.file) = (id.clone(), file.clone());
                inner.move_kept();
                return;
            }
            EventBody::Switched { id, file, resumed, .. } => {
                // What the other session holds in memory alone was not answered, and stays so. What is not said yet is said here.
                seen.kept.retain(|kept| !kept.admitted);
                (seen.session, seen.begun, seen.failing) = (id.clone(), *resumed, false);
                seen.file = file.clone().unwrap_or_default();
                inner.move_kept();
                return;
            }
            EventBody::Storage(Health::Failing { .. }) => seen.failing = true,
            // What was admitted is durable now, or it is at the end of the turn that runs.
            EventBody::Storage(Health::Ok) => seen.failing = false,
            EventBody::TurnEnded { .. } | EventBody::Closed => {}
            _ => return,
        }
        let over = matches!(event, EventBody::TurnEnded { .. } | EventBody::Closed | EventBody::Storage(Health::Ok));
        if over && seen.begun && !seen.failing {
            let ids = seen.kept.extract_if(.., |kept| kept.admitted).map(|kept| kept.id).collect();
            inner.settle(ids, Fate::Stored);
        }
    }

    /// A queued prompt was taken back by the person.
    pub(crate) fn taken_back(&self, whole: &str) {
        let Some(inner) = &self.0 else { return };
        let mut seen = lock(&inner.seen);
        // The newest is the one that `unqueue` gives back.
        if let Some(index) = seen.kept.iter().rposition(|kept| !kept.admitted && kept.whole == whole) {
            let kept = seen.kept.remove(index);
            inner.settle(vec![kept.id], Fate::TakenBack);
        }
    }

    /// Waits until what was found out is written.
    pub(crate) async fn finish(&self) {
        if let Some(inner) = &self.0 {
            let _ = inner
                .ask(|worker| {
                    if let Some(mut history) = worker.open.take() {
                        history.tidy();
                    }
                    Ok(())
                })
                .await;
        }
    }
}

impl Inner {
    async fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Worker) -> Result<T, HistoryError> + Send + 'static,
    ) -> Result<T, HistoryError> {
        let (reply, answer) = oneshot::channel();
        let stuck = Arc::clone(&self.stuck);
        let job = move |worker: &mut Worker| {
            let done = work(worker);
            stuck.store(false, Ordering::SeqCst);
            let _ = reply.send(done);
        };
        let _ = self.jobs.send(Box::new(job));
        // It is done late, if ever; nobody waits for the same thing twice.
        let limit = if self.stuck.load(Ordering::SeqCst) { Duration::ZERO } else { LIMIT };
        match tokio::time::timeout(limit, answer).await {
            Ok(Ok(done)) => done,
            _ => {
                self.stuck.store(true, Ordering::SeqCst);
                Err(HistoryError::Late(self.path.clone()))
            }
        }
    }

    /// Keeps what is not settled yet once more, under the session's new id and file: whoever starts next looks there for it.
    fn move_kept(&self) {
        let seen = Arc::clone(&self.seen);
        let _ = self.jobs.send(Box::new(move |worker| {
            let Ok(Some(history)) = worker.existing() else { return };
            let here = |seen: &Seen, said: &Said| Said {
                session: seen.session.clone(),
                file: seen.file.clone(),
                ..said.clone()
            };
            let moving: Vec<(i64, Said)> = {
                let seen = lock(&seen);
                seen.kept.iter().map(|kept| (kept.id, here(&seen, &kept.said))).collect()
            };
            for (old, said) in moving {
                let Ok(new) = history.record(&said) else { return };
                let _ = history.settle(&[old], Fate::SentAgain);
                match lock(&seen).kept.iter_mut().find(|kept| kept.id == old) {
                    Some(kept) => (kept.id, kept.said) = (new, said),
                    // It was settled meanwhile, under its old number.
                    None => drop(history.settle(&[new], Fate::SentAgain)),
                }
            }
        }));
    }

    /// Nobody waits for it, and nothing is lost without it: the next start finds the prompts in their sessions.
    fn settle(&self, ids: Vec<i64>, fate: Fate) {
        if !ids.is_empty() {
            let _ = self.jobs.send(Box::new(move |worker| {
                if let Ok(Some(history)) = worker.existing() {
                    let _ = history.settle(&ids, fate);
                    history.tidy();
                }
            }));
        }
    }

    fn complain(&self, why: &HistoryError) {
        if !self.told.swap(true, Ordering::SeqCst) {
            out::notice(&format!("gjc: {why}; what you say is not kept there"));
        }
    }
}

/// What the thread of the history has.
struct Worker {
    path: PathBuf,
    open: Option<History>,
}

impl Worker {
    /// The history, a new one where there is none.
    fn made(&mut self) -> Result<&mut History, HistoryError> {
        match &mut self.open {
            Some(history) => Ok(history),
            none => Ok(none.insert(History::open(&self.path)?)),
        }
    }

    /// The history, if there is one.
    fn existing(&mut self) -> Result<Option<&mut History>, HistoryError> {
        if self.path.symlink_metadata().is_err() { Ok(None) } else { self.made().map(Some) }
    }
}

/// What of a prompt is kept: the typed pieces, and how many others there are; a prompt without a typed piece whole. `None`
/// when there is nothing that a session would take.
fn typed(parts: &[PromptPart]) -> Option<(String, usize)> {
    if parts.iter().any(|part| !matches!(part.origin, Origin::Typed | Origin::Paste | Origin::Media)) {
        return None;
    }
    let of_person = |part: &&PromptPart| part.origin == Origin::Typed && !part.text.trim().is_empty();
    let typed: Vec<&str> = parts.iter().filter(of_person).map(|part| part.text.as_str()).collect();
    let (text, more) = match typed.is_empty() {
        false => (typed.join("\n"), parts.len() - typed.len()),
        // Of files their names alone: what they hold is not a person's to be kept here.
        true => {
            let name = |part: &PromptPart| match part.origin {
                Origin::Media => part.text.lines().next().unwrap_or_default().to_owned(),
                _ => part.text.clone(),
            };
            let names: Vec<String> = parts.iter().map(name).filter(|text| !text.is_empty()).collect();
            (names.join("\n"), parts.iter().filter(|part| part.origin == Origin::Media).count())
        }
    };
    (!text.trim().is_empty()).then_some((text, more))
}

/// All pieces of a prompt, as the session joins them.
fn whole(parts: &[PromptPart]) -> String {
    parts.iter().map(|part| part.text.as_str()).filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
}

/// The same of a message.
fn content(message: &serde_json::Value) -> String {
    match &message["content"] {
        serde_json::Value::String(text) => text.clone(),
        blocks => {
            let blocks = blocks.as_array().map(Vec::as_slice).unwrap_or_default();
            blocks.iter().filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n")
        }
    }
}

/// The one sentence about what nobody answered.
fn sentence(unanswered: &[Prompt]) -> Option<String> {
    let oldest = unanswered.first()?;
    let what = out::cell(&oldest.text, 40);
    let (when, what, id) = (minute(oldest), what.trim_end(), oldest.id.unwrap_or_default());
    Some(match unanswered.len() {
        1 => format!(
            "a prompt of {when} in this folder has no answer: \"{what}\" (to see it: gjc prompts show {id}, to dismiss it: \
             gjc prompts forget {id})"
        ),
        count => format!(
            "{count} prompts in this folder have no answer, the oldest of {when}: \"{what}\" (to see them: gjc prompts, to \
             dismiss them: gjc prompts forget --all)"
        ),
    })
}

/// The minute of a prompt, as the lists write it.
pub(crate) fn minute(prompt: &Prompt) -> String {
    let when = prompt.at.to_string();
    when.get(..16).map_or_else(|| when.clone(), |minute| minute.replace('T', " ") + "Z")
}

fn event(prompt: &Prompt) -> Option<Unanswered> {
    Some(Unanswered {
        id: prompt.id?,
        text: prompt.text.chars().take(LONGEST).collect(),
        whole: prompt.text.chars().nth(LONGEST).is_none() && prompt.more == 0,
        session: prompt.session.clone().unwrap_or_default(),
        at: prompt.at.to_string(),
    })
}

fn lock(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}
