//! What people have said to sessions: `history.db` in the agent folder, one SQLite file.
//!
//! A session's file begins with the first answer. Until then a prompt is in memory, and here. So it is written here, durably,
//! before the model is asked, and it counts as *unanswered* until its session holds it.
//!
//! Two tables. `history` (with its full-text index) is the one that other programs of the family keep in a file of this
//! name; it gets each prompt so that they can read it, and a file of theirs is used as it is. `gjc_prompts` is ours: the
//! text once more, because those programs merge and renumber their rows, and what became of it. The session's file has the
//! last word: a row that is open although its session holds the prompt (a kill between the two writes) is closed by whoever
//! looks next.
//!
//! What never happens here: a row is deleted; a text comes in that nobody gave as a prompt; a caller waits for another
//! program longer than [`History::PATIENCE`].

mod process;
mod rows;

use gjc_entry::{Block, Body, Content, Kind, Message, Skeleton, Source, Timestamp};
use gjc_log::Reader;
use gjc_log::fs::OsFs;
use process::{is_alive, this_process};
use rows::{Open, by_id, has_table, make_tables, open_rows, recent, sent_again, set_fate, share};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, TransactionBehavior, params};
use std::collections::HashSet;
use std::fs;
use std::io::{self, Read as _};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use unicode_normalization::UnicodeNormalization;

/// Why a prompt cannot be kept, or the kept ones cannot be seen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HistoryError {
    /// Another program holds its lock.
    #[error("the prompt history {} is held by another program", .0.display())]
    Busy(PathBuf),
    /// It is something else.
    #[error("{} is no database of prompts; it was left as it is", .0.display())]
    Foreign(PathBuf),
    /// The disk, or what holds the file, did not answer.
    #[error("the prompt history {} did not answer in time", .0.display())]
    Late(PathBuf),
    /// The file system refused.
    #[error("the prompt history {} cannot be used: {why}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        why: io::Error,
    },
    /// The database refused.
    #[error("the prompt history {} cannot be used: {why}", .path.display())]
    Sql {
        /// The file.
        path: PathBuf,
        /// Why.
        why: rusqlite::Error,
    },
}

/// A prompt, about to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// What was typed, as it was typed.
    pub text: String,
    /// How many pieces of the prompt are not in `text` (what was piped in beside it).
    pub more: usize,
    /// The folder of the session.
    pub cwd: String,
    /// Its id.
    pub session: String,
    /// Its file, which may not be there yet.
    pub file: String,
    /// When.
    pub at: Timestamp,
}

/// What became of a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fate {
    /// Nothing yet, as far as is known.
    Open,
    /// Its session holds it.
    Stored,
    /// The same text was sent once more.
    SentAgain,
    /// The person took it back before it was said.
    TakenBack,
    /// The person needs it no longer.
    Dismissed,
}

impl Fate {
    const ALL: [(Self, &'static str); 5] = [
        (Self::Open, "open"),
        (Self::Stored, "stored"),
        (Self::SentAgain, "sent_again"),
        (Self::TakenBack, "taken_back"),
        (Self::Dismissed, "dismissed"),
    ];

    /// Its word, as the file and `--json` have it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        Self::ALL.into_iter().find(|(fate, _)| *fate == self).map_or("open", |(_, word)| word)
    }

    /// A word that a later version wrote is nothing that this one would offer again.
    fn from_word(word: &str) -> Self {
        Self::ALL.into_iter().find(|(_, other)| *other == word).map_or(Self::Stored, |(fate, _)| fate)
    }
}

/// A prompt that is in the history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// Its number; `None` where another program wrote it.
    pub id: Option<i64>,
    /// What was typed.
    pub text: String,
    /// How many pieces of the prompt are not in `text`.
    pub more: usize,
    /// The folder of its session; empty where that is not known.
    pub cwd: String,
    /// The id of its session, where that is known.
    pub session: Option<String>,
    /// When.
    pub at: Timestamp,
    /// What became of it.
    pub fate: Fate,
    /// Whether nobody will answer it any more: it is open, its process has ended, and its session does not hold it.
    pub unanswered: bool,
}

impl Prompt {
    /// Whether its text holds `query`. 한글 is found however it was composed, and case does not count.
    #[must_use]
    pub fn holds(&self, query: &str) -> bool {
        query.is_empty() || folded(&self.text).contains(&folded(query))
    }
}

/// A `history.db`.
///
/// No connection outlives a call, and none maps the file into memory: a mapping of a file that somebody else cuts short
/// kills the process, and the history must never take a session with it.
#[derive(Debug)]
pub struct History {
    path: PathBuf,
    /// Nothing is written.
    looking: bool,
    /// This process, as rows name it.
    process: String,
}

/// How a connection is made.
#[derive(Debug, Clone, Copy)]
enum Way {
    /// Nobody else may have the file: the index of its write-ahead journal is in memory of our own.
    Alone,
    /// With others, by the locks of the file.
    Together,
    /// The same, for writing where there is no write-ahead journal.
    Rollback,
    /// Where nothing can be written, a file that has no journal is complete, and nobody changes it.
    Immutable,
}

impl History {
    /// How long a call waits for another program's lock.
    pub const PATIENCE: Duration = Duration::from_millis(250);
    /// How long it waits for other gjc's before that: a dozen of their transactions on a slow disk.
    const QUEUE: Duration = Duration::from_millis(500);
    /// Of [`Self::PATIENCE`], how long for having a write-ahead journal alone. A commit takes less; a program of the family that keeps the
    /// file open does not let go of it at all.
    const ALONE: Duration = Duration::from_millis(50);
    /// The longest write-ahead journal that is left for the next, in bytes: about 60 pages, a dozen prompts.
    const JOURNAL: u64 = 256 << 10;

    /// The history at `path`; a new one, for the owner's eyes only, where there is none.
    ///
    /// # Errors
    /// [`HistoryError`]. What is there and is no history is not touched.
    pub fn open(path: &Path) -> Result<Self, HistoryError> {
        let history = Self { path: path.into(), looking: false, process: this_process() };
        history.make()?;
        history.with(read)?;
        Ok(history)
    }

    /// The history at `path` for looking; `None` where there is none.
    ///
    /// # Errors
    /// [`HistoryError`].
    pub fn look(path: &Path) -> Result<Option<Self>, HistoryError> {
        match fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(why) => return Err(HistoryError::Io { path: path.into(), why }),
            Ok(_) => {}
        }
        let history = Self { path: path.into(), looking: true, process: this_process() };
        history.with(read)?;
        Ok(Some(history))
    }

    fn make(&self) -> Result<(), HistoryError> {
        make(&self.path).map_err(|why| HistoryError::Io { path: self.path.clone(), why })
    }

    /// Does something with a connection of its own. It is begun anew where the file cannot be had in one way.
    fn with<T>(&self, mut work: impl FnMut(&mut Connection) -> rusqlite::Result<T>) -> Result<T, HistoryError> {
        let meta = fs::metadata(&self.path).map_err(|why| HistoryError::Io { path: self.path.clone(), why })?;
        // A pipe or a device would be waited for.
        if !meta.is_file() {
            return Err(HistoryError::Foreign(self.path.clone()));
        }
        let _turn = self.turn();
        let mut patience = Self::PATIENCE;
        let wal = self.has_wal();
        if wal {
            let done = self.connect(Way::Alone, Self::ALONE).and_then(|mut db| work(&mut db));
            match done.map_err(|why| error(&self.path, why)) {
                // The other way maps the index, for the moment of one transaction.
                Err(HistoryError::Busy(_)) => {}
                // A file that may only be read cannot be locked for oneself.
                Err(HistoryError::Sql { .. }) if self.looking => {}
                done => return done,
            }
            patience -= Self::ALONE;
        }
        let way = if wal || self.looking { Way::Together } else { Way::Rollback };
        let done = match self.connect(way, patience).and_then(|mut db| work(&mut db)) {
            Err(why) if self.looking && cannot_open(&why) && !has_journal(&self.path) => {
                self.connect(Way::Immutable, patience).and_then(|mut db| work(&mut db))
            }
            done => done,
        };
        done.map_err(|why| error(&self.path, why))
    }

    fn connect(&self, way: Way, patience: Duration) -> rusqlite::Result<Connection> {
        // For looking too: a journal that a dead process has left is played back by the first who comes.
        let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut name = self.path.clone();
        if matches!(way, Way::Immutable) {
            let path = self.path.display().to_string().replace('%', "%25").replace('?', "%3f").replace('#', "%23");
            name = PathBuf::from(format!("file:{path}?immutable=1"));
            flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
        }
        let db = Connection::open_with_flags(name, flags)?;
        db.busy_timeout(patience)?;
        // The last to close would otherwise copy the journal into the file and sync both, with every prompt: see `tidy`.
        db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        db.query_row("PRAGMA mmap_size=0", [], |_| Ok(())).optional()?;
        if self.looking {
            db.execute_batch("PRAGMA query_only=1")?;
        }
        match way {
            Way::Alone => db.query_row("PRAGMA locking_mode=EXCLUSIVE", [], |_| Ok(()))?,
            // Cut to nothing rather than removed: with `synchronous=FULL` that is synced, a removal is not.
            Way::Rollback => db.query_row("PRAGMA journal_mode=TRUNCATE", [], |_| Ok(()))?,
            Way::Together | Way::Immutable => {}
        }
        Ok(db)
    }

    /// Waits for the other gjc's that use the file: SQLite sleeps longer and longer between its looks at a lock, and who came
    /// first may never get it. Whoever has waited long enough, or cannot wait here, goes on without: the locks of the file
    /// are what counts.
    fn turn(&self) -> (MutexGuard<'static, ()>, Option<fs::File>) {
        /// Within a process one at a time: to close a file takes away all locks that the process has on it.
        static ONE: Mutex<()> = Mutex::new(());
        let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        // Of the folder, not of the file: some file systems make one lock of the two kinds.
        let folder = self.path.parent().and_then(|dir| fs::File::open(dir).ok());
        for _ in 0..Self::QUEUE.as_millis() {
            let Some(Err(fs::TryLockError::WouldBlock)) = folder.as_ref().map(fs::File::try_lock) else { break };
            #[expect(
                clippy::disallowed_methods,
                reason = "no event tells of a lock; SQLite waits for its own in the same way"
            )]
            std::thread::sleep(Duration::from_millis(1));
        }
        (one, folder)
    }

    /// Whether the file says that it has a write-ahead journal.
    fn has_wal(&self) -> bool {
        let mut head = [0; 20];
        let read = fs::File::open(&self.path).and_then(|mut file| file.read_exact(&mut head));
        read.is_ok() && head[18] == 2
    }

    /// Whether a message of a session is this prompt: the same words or, of a text that is too long for a line, its
    /// beginning with the notice that it was cut.
    #[must_use]
    pub fn is_said(message: &str, prompt: &str) -> bool {
        /// How the session's notice begins.
        const NOTICE: &str = "\n\n[cut here: ";
        /// The UTF-16 units that are kept at least: 500,000 without the notice, in which there is a path.
        const KEPT: usize = 500_000 - (8 << 10);
        let cut_at = |at: usize| message[..at].encode_utf16().count() >= KEPT && prompt.starts_with(&message[..at]);
        message == prompt || prompt.len() > KEPT && message.match_indices(NOTICE).any(|(at, _)| cut_at(at))
    }

    /// Keeps a prompt; when this returns, it survives a power cut. Unanswered prompts of the same text and folder count as
    /// sent again. Its number is for [`History::settle`].
    ///
    /// # Errors
    /// [`HistoryError`]; then nothing has changed.
    pub fn record(&mut self, said: &Said) -> Result<i64, HistoryError> {
        // It may have been taken away.
        self.make()?;
        self.with(|db| self.try_record(db, said))
    }

    fn try_record(&self, db: &mut Connection, said: &Said) -> rusqlite::Result<i64> {
        db.execute_batch("PRAGMA synchronous=FULL")?;
        let tx = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        make_tables(&tx)?;
        for id in sent_again(&tx, said)? {
            set_fate(&tx, id, Fate::SentAgain)?;
        }
        let more = i64::try_from(said.more).unwrap_or(i64::MAX);
        tx.execute(
            "INSERT INTO gjc_prompts (prompt, more, cwd, session, file, created_at, process, fate)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 'open')",
            params![said.text, more, said.cwd, said.session, said.file, said.at.as_millis(), self.process],
        )?;
        let id = tx.last_insert_rowid();
        share(&tx, said)?;
        tx.commit()?;
        Ok(id)
    }

    /// Says to which session a prompt went that was kept before its session was open. As durable as [`History::settle`].
    ///
    /// # Errors
    /// [`HistoryError`].
    pub fn place(&mut self, id: i64, said: &Said) -> Result<(), HistoryError> {
        self.with(|db| {
            db.execute_batch("PRAGMA synchronous=NORMAL")?;
            let place = "UPDATE gjc_prompts SET cwd = ?2, session = ?3, file = ?4 WHERE id = ?1 AND session = ''";
            db.execute(place, params![id, said.cwd, said.session, said.file]).map(drop)
        })
    }

    /// Says what became of prompts. Not synced: what a power cut takes away of it is found out again from the sessions.
    ///
    /// # Errors
    /// [`HistoryError`].
    pub fn settle(&mut self, ids: &[i64], fate: Fate) -> Result<(), HistoryError> {
        self.with(|db| {
            db.execute_batch("PRAGMA synchronous=NORMAL")?;
            let tx = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
            // A file that was put in place of the one that the numbers are of.
            if has_table(&tx, "gjc_prompts")? {
                for id in ids {
                    set_fate(&tx, *id, fate)?;
                }
            }
            tx.commit()
        })
    }

    /// Copies a write-ahead journal into the file once it is long: each call reads it from its beginning. For when nobody
    /// waits; where another process is in the way, a later one does it.
    pub fn tidy(&mut self) {
        let journal = fs::metadata(format!("{}-wal", self.path.display())).map_or(0, |meta| meta.len());
        if journal > Self::JOURNAL {
            let _ = self.with(|db| db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())));
        }
    }

    /// The prompts of a folder (`None`: of all) that nobody will answer any more, oldest first. Those that their session
    /// holds after all are settled in passing, where the file may be written.
    ///
    /// # Errors
    /// [`HistoryError`].
    pub fn unanswered(&mut self, cwd: Option<&str>) -> Result<Vec<Prompt>, HistoryError> {
        let open = self.with(|db| open_rows(db, cwd))?;
        let (mut unanswered, mut held, mut taken) = (Vec::new(), Vec::new(), HashSet::new());
        for row in open.into_iter().filter(|row| !is_alive(&row.process)) {
            if is_held(&row, &mut taken) { held.extend(row.prompt.id) } else { unanswered.push(row.prompt) }
        }
        if !held.is_empty() {
            // Whoever only looks, or meets a lock, leaves it to the next.
            let _ = self.settle(&held, Fate::Stored);
        }
        Ok(unanswered.into_iter().map(|prompt| Prompt { unanswered: true, ..prompt }).collect())
    }

    /// The newest prompts of a folder (`None`: of all) that hold `query` ([`Prompt::holds`]), each text once, at most
    /// `limit`.
    ///
    /// # Errors
    /// [`HistoryError`].
    pub fn recent(&self, cwd: Option<&str>, query: &str, limit: usize) -> Result<Vec<Prompt>, HistoryError> {
        self.with(|db| recent(db, cwd, query, limit))
    }

    /// The prompt of a number.
    ///
    /// # Errors
    /// [`HistoryError`].
    pub fn get(&self, id: i64) -> Result<Option<Prompt>, HistoryError> {
        self.with(|db| by_id(db, id))
    }
}

/// Reads the file for the first time.
fn read(db: &mut Connection) -> rusqlite::Result<()> {
    db.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))
}

fn cannot_open(why: &rusqlite::Error) -> bool {
    matches!(why.sqlite_error_code(), Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly))
}

fn has_journal(path: &Path) -> bool {
    fs::metadata(format!("{}-wal", path.display())).is_ok_and(|meta| meta.len() > 0)
}

/// Text as it is compared in a search.
fn folded(text: &str) -> String {
    text.nfc().flat_map(char::to_lowercase).collect()
}

/// Whether a row's session holds its prompt: a person's message with its words, not older than it, and not `taken` for
/// another row with the same words.
fn is_held(open: &Open, taken: &mut HashSet<(PathBuf, u64)>) -> bool {
    let Ok(loaded) = Reader::open(&OsFs, &open.file) else { return false };
    let reader = &loaded.value;
    let nodes = reader.skeleton().into_iter().flat_map(Skeleton::iter);
    nodes.filter(|(_, node)| node.kind() == Kind::Message).any(|(_, node)| {
        let Ok(entry) = reader.body(node.at()) else { return false };
        let Body::Message(Message::User(user)) = &entry.body else { return false };
        let (whole, kept) = (user.content.text(), open.prompt.text.trim());
        let said = |text: &str| History::is_said(text.trim(), kept);
        let same = if open.prompt.more == 0 {
            said(&whole)
        } else {
            let blocks = if let Content::Blocks(blocks) = &user.content { blocks.as_slice() } else { &[] };
            whole.contains(kept) || blocks.iter().filter_map(Block::as_text).any(said)
        };
        same && entry.at >= open.prompt.at && taken.insert((open.file.clone(), node.at().off))
    })
}

fn error(path: &Path, why: rusqlite::Error) -> HistoryError {
    match why.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => HistoryError::Busy(path.into()),
        Some(ErrorCode::NotADatabase) => HistoryError::Foreign(path.into()),
        _ => HistoryError::Sql { path: path.into(), why },
    }
}

/// Makes the file and its folders where they are missing, durably. One that others may read is closed to them.
fn make(path: &Path) -> io::Result<()> {
    let dir = path.parent().unwrap_or(Path::new("."));
    make_dir(dir)?;
    match fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(_) => {
            return fs::File::open(dir)?.sync_all();
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    let meta = fs::metadata(path)?;
    if meta.is_file() && meta.mode() & 0o077 != 0 {
        // Not ours to change, perhaps; it is used all the same.
        let _ = fs::set_permissions(path, fs::Permissions::from_mode(0o600));
    }
    Ok(())
}

fn make_dir(dir: &Path) -> io::Result<()> {
    if dir.is_dir() {
        return Ok(());
    }
    let Some(parent) = dir.parent().filter(|parent| !parent.as_os_str().is_empty()) else {
        return Err(io::ErrorKind::NotFound.into());
    };
    make_dir(parent)?;
    match fs::DirBuilder::new().mode(0o700).create(dir) {
        // Another gjc was first.
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => fs::File::open(parent)?.sync_all(),
    }
}
