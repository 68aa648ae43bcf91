//! `index.db`: what was found in session files before, so that it need not be found again.
//!
//! A cache and nothing else. A row is good for one state of one file (path, device, inode, size, modification time) and
//! bears a seal over that and its content: what is stale, was changed, or belongs to another file does not prove itself and
//! is not used. Where the file is missing, locked, broken, or of another form, everything is read from the sessions.
//!
//! The words of a session are [`SHARDS`] sorted lists of digests. (A full-text index of SQLite would be smaller, but a
//! flipped bit in it makes sessions vanish from answers without a trace; these lists prove themselves one by one.)
//!
//! What never happens here: a wait longer than [`PATIENCE`]; an answer that depends on what is in the file; a database that
//! is not gjc's is changed.

use crate::look::SessionInfo;
use gjc_entry::{Label, Timestamp};
use gjc_log::fs::{Fs, OsFs};
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, Transaction, params};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use twox_hash::XxHash3_64;

/// How long a lock of another process is waited for.
const PATIENCE: Duration = Duration::from_millis(100);
/// `gjci`: says that the file is ours.
const APPLICATION: i32 = 0x676a_6369;
/// Lists of words of one session.
pub(crate) const SHARDS: usize = 32;
/// Tables of another form have another number.
const TABLES: &str = "CREATE TABLE IF NOT EXISTS gjc_sessions_1 (
         path BLOB PRIMARY KEY, modified INTEGER NOT NULL, seal INTEGER NOT NULL, info BLOB NOT NULL
     ) WITHOUT ROWID;
     CREATE INDEX IF NOT EXISTS gjc_sessions_1_modified ON gjc_sessions_1(modified);
     CREATE TABLE IF NOT EXISTS gjc_words_1 (
         shard INTEGER, key INTEGER, seal INTEGER NOT NULL, words BLOB NOT NULL, PRIMARY KEY (shard, key)
     ) WITHOUT ROWID;";

/// The index of an agent folder.
#[derive(Debug)]
pub(crate) struct Index {
    path: PathBuf,
    /// Another process did not let go of it in time; it is not waited for twice.
    busy: AtomicBool,
}

/// A row as it stands in the file.
pub(crate) struct Row {
    seal: i64,
    info: Vec<u8>,
}

/// The state of a file that a row is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct State {
    dev: u64,
    inode: u64,
    len: u64,
    mtime: i64,
    /// Of name and content: who sets the modification time back cannot set this one.
    ctime: i64,
}

impl State {
    /// That of a regular file; nothing else is a session.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let meta = path.metadata().ok().filter(std::fs::Metadata::is_file)?;
        let nanos = |seconds: i64, rest: i64| seconds.saturating_mul(1_000_000_000).saturating_add(rest);
        Some(Self {
            dev: meta.dev(),
            inode: meta.ino(),
            len: meta.len(),
            mtime: nanos(meta.mtime(), meta.mtime_nsec()),
            ctime: nanos(meta.ctime(), meta.ctime_nsec()),
        })
    }

    /// Bytes of the file.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }
}

/// A session's file in one state, as the lists of words name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Key(i64);

impl Key {
    pub(crate) fn of(path: &Path, state: &State) -> Self {
        let numbers = [state.dev, state.inode, state.len, state.mtime.cast_unsigned(), state.ctime.cast_unsigned()];
        let mut bytes = path.as_os_str().as_bytes().to_vec();
        bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        Self(XxHash3_64::oneshot(&bytes).cast_signed())
    }
}

/// The digests of a session's words, by shard, each list sorted.
pub(crate) struct Words(pub(crate) Vec<Vec<u32>>);

/// A word's place: which shard, and what stands there.
pub(crate) fn digest(word: &str) -> (usize, u32) {
    let hash = XxHash3_64::oneshot(word.as_bytes());
    // The shard is of the upper half: both halves are independent.
    ((hash >> 32) as usize % SHARDS, hash as u32)
}

#[derive(Serialize, Deserialize)]
struct Info {
    state: State,
    id: String,
    cwd: String,
    title: Option<String>,
    first: Option<String>,
    messages: usize,
    created: i64,
    modified: i64,
    damaged: usize,
    unfinished: bool,
    parent: Option<String>,
    version: u32,
    label: String,
}

impl Row {
    /// The session, and the state of its file then, if the row is sound and of this file.
    pub(crate) fn open(&self, path: &Path) -> Option<(State, SessionInfo)> {
        if self.seal != seal(path.as_os_str().as_bytes(), &self.info) {
            return None;
        }
        let info: Info = serde_json::from_slice(&self.info).ok()?;
        let session = SessionInfo {
            path: path.into(),
            id: info.id,
            cwd: info.cwd,
            title: info.title,
            first_message: info.first,
            messages: info.messages,
            created: Timestamp::from_millis(info.created),
            modified: Timestamp::from_millis(info.modified),
            size: info.state.len,
            damaged: info.damaged,
            unfinished: info.unfinished,
            parent: info.parent,
            version: info.version,
            label: Label::from_json(&info.label),
        };
        Some((info.state, session))
    }

    fn of(state: State, session: &SessionInfo) -> Self {
        let info = serde_json::to_vec(&Info {
            state,
            id: session.id.clone(),
            cwd: session.cwd.clone(),
            title: session.title.clone(),
            first: session.first_message.clone(),
            messages: session.messages,
            created: session.created.as_millis(),
            modified: session.modified.as_millis(),
            damaged: session.damaged,
            unfinished: session.unfinished,
            parent: session.parent.clone(),
            version: session.version,
            label: session.label.to_json(),
        })
        .unwrap_or_default();
        Self { seal: seal(session.path.as_os_str().as_bytes(), &info), info }
    }
}

fn seal(name: &[u8], content: &[u8]) -> i64 {
    let name = XxHash3_64::oneshot(name);
    XxHash3_64::oneshot_with_seed(name, content).cast_signed()
}

fn seal_of_words(shard: usize, key: Key, words: &[u8]) -> i64 {
    seal(&[shard as u64, key.0.cast_unsigned()].map(u64::to_le_bytes).concat(), words)
}

impl Index {
    pub(crate) fn new(agent_dir: &Path) -> Self {
        Self { path: agent_dir.join("index.db"), busy: AtomicBool::new(false) }
    }

    /// Whether there is a file.
    pub(crate) fn is_there(&self) -> bool {
        self.path.metadata().is_ok_and(|meta| meta.is_file())
    }

    /// All rows by path; none where there is nothing that can be read.
    pub(crate) fn rows(&self) -> HashMap<PathBuf, Row> {
        let mut rows = HashMap::new();
        self.read(|db| {
            each_row(db, "SELECT path, seal, info FROM gjc_sessions_1", |path, row| {
                rows.insert(path, row);
                true
            })
        });
        rows
    }

    /// Hands the rows out, the newest session first, until enough were taken.
    pub(crate) fn newest(&self, mut take: impl FnMut(PathBuf, Row) -> bool) {
        self.read(|db| each_row(db, "SELECT path, seal, info FROM gjc_sessions_1 ORDER BY modified DESC", &mut take));
    }

    /// Of these sessions, those that certainly lack one of the words are taken out. A session whose list of words is not
    /// there, or does not prove itself, stays.
    pub(crate) fn rule_out(&self, words: &[(usize, u32)], sessions: &mut HashMap<Key, bool>) {
        /// So many are looked up one by one; of more, the whole shard is read in its order.
        const FEW: usize = 500;
        let _ = self.read(|db| {
            let mut all = db.prepare("SELECT key, seal, words FROM gjc_words_1 WHERE shard = ?1")?;
            let mut one = db.prepare("SELECT key, seal, words FROM gjc_words_1 WHERE shard = ?1 AND key = ?2")?;
            for (shard, word) in words {
                let left: Vec<Key> = sessions.iter().filter(|(_, may)| **may).map(|(key, _)| *key).collect();
                let mut judge = |row: &rusqlite::Row<'_>| {
                    let key = Key(row.get(0)?);
                    if let Some(may) = sessions.get_mut(&key).filter(|may| **may) {
                        let list = row.get_ref(2)?.as_blob()?;
                        *may = row.get::<_, i64>(1)? != seal_of_words(*shard, key, list) || has(list, *word);
                    }
                    rusqlite::Result::Ok(())
                };
                if left.len() <= FEW {
                    for key in left {
                        one.query_row(params![*shard as i64, key.0], &mut judge).optional()?;
                    }
                } else {
                    let mut rows = all.query([*shard as i64])?;
                    while let Some(row) = rows.next()? {
                        judge(row)?;
                    }
                }
            }
            Ok(())
        });
    }

    /// Which of these sessions have lists of words.
    pub(crate) fn known(&self, sessions: &[Key]) -> Vec<bool> {
        let known = self.read(|db| {
            let mut one = db.prepare("SELECT 1 FROM gjc_words_1 WHERE shard = 0 AND key = ?1")?;
            sessions.iter().map(|key| one.exists([key.0])).collect()
        });
        known.unwrap_or_else(|| vec![false; sessions.len()])
    }

    /// Remembers sessions, and forgets files that are gone. Best effort.
    pub(crate) fn keep(&self, found: &[(State, &SessionInfo)], replaced: &[(PathBuf, Option<Key>)]) {
        self.write(|tx| {
            let mut forget = tx.prepare("DELETE FROM gjc_sessions_1 WHERE path = ?1")?;
            let mut unlist = tx.prepare("DELETE FROM gjc_words_1 WHERE shard = ?1 AND key = ?2")?;
            for (path, key) in replaced {
                forget.execute([path.as_os_str().as_bytes()])?;
                for shard in key.iter().flat_map(|_| 0..SHARDS) {
                    unlist.execute(params![shard as i64, key.map(|key| key.0)])?;
                }
            }
            let mut put = tx.prepare("INSERT OR REPLACE INTO gjc_sessions_1 VALUES (?1, ?2, ?3, ?4)")?;
            for (state, session) in found {
                let row = Row::of(*state, session);
                let path = session.path.as_os_str().as_bytes();
                put.execute(params![path, session.modified.as_millis(), row.seal, row.info])?;
            }
            Ok(())
        });
    }

    /// Remembers the words of sessions. Best effort.
    pub(crate) fn keep_words(&self, sessions: &[(Key, Words)]) {
        self.write(|tx| {
            let mut put = tx.prepare("INSERT OR REPLACE INTO gjc_words_1 VALUES (?1, ?2, ?3, ?4)")?;
            // In the order of the table.
            for shard in 0..SHARDS {
                for (key, words) in sessions {
                    let list: Vec<u8> = words.0[shard].iter().flat_map(|word| word.to_le_bytes()).collect();
                    put.execute(params![shard as i64, key.0, seal_of_words(shard, *key, &list), list])?;
                }
            }
            Ok(())
        });
    }

    fn read<T>(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Option<T> {
        // A pipe or a device would be waited for.
        if !self.is_there() || self.busy.load(Ordering::Relaxed) {
            return None;
        }
        let read = || {
            let db = connect(&self.path)?;
            db.execute_batch("PRAGMA query_only=1")?;
            if application(&db)? == APPLICATION { work(&db).map(Some) } else { Ok(None) }
        };
        read().map_err(|why| self.note(&why)).ok()?
    }

    fn note(&self, why: &rusqlite::Error) {
        if matches!(why.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)) {
            self.busy.store(true, Ordering::Relaxed);
        }
    }

    fn write(&self, work: impl Fn(&Transaction<'_>) -> rusqlite::Result<()>) {
        if self.busy.load(Ordering::Relaxed) {
            return;
        }
        // Mode and kind: SQLite would make a file that everybody may read.
        let made = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&self.path);
        if made.is_err() && !self.is_there() {
            return;
        }
        match self.try_write(&work, "") {
            Err(why)
                if matches!(why.sqlite_error_code(), Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt)) =>
            {
                // Nothing but a cache goes.
                if self.path.symlink_metadata().is_ok_and(|meta| meta.is_file()) && OsFs.unlink(&self.path).is_ok() {
                    let _ = OsFs.unlink(&self.path.with_extension("db-journal"));
                    let _ = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&self.path);
                    let _ = self.try_write(&work, "");
                }
            }
            // Tables of these names and of another form.
            Err(why) if why.sqlite_error_code() == Some(ErrorCode::Unknown) => {
                let _ = self.try_write(&work, "DROP TABLE IF EXISTS gjc_sessions_1; DROP TABLE IF EXISTS gjc_words_1;");
            }
            Err(why) => self.note(&why),
            Ok(()) => {}
        }
    }

    fn try_write(
        &self,
        work: &impl Fn(&Transaction<'_>) -> rusqlite::Result<()>,
        before: &str,
    ) -> rusqlite::Result<()> {
        let mut db = connect(&self.path)?;
        // A power cut may leave anything: it would not prove itself. No write-ahead journal, which file systems of other
        // machines cannot share.
        db.query_row("PRAGMA journal_mode=TRUNCATE", [], |_| Ok(()))?;
        db.execute_batch("PRAGMA synchronous=OFF")?;
        let tx = db.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        match application(&tx)? {
            APPLICATION => {}
            0 if !tx.prepare("SELECT 1 FROM sqlite_schema")?.exists([])? => {
                tx.execute_batch(&format!("PRAGMA application_id={APPLICATION}"))?;
            }
            // Another program's.
            _ => return Ok(()),
        }
        tx.execute_batch(before)?;
        tx.execute_batch(TABLES)?;
        work(&tx)?;
        tx.commit()
    }
}

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    // Where it may only be read, SQLite opens it so.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(path, flags)?;
    db.busy_timeout(PATIENCE)?;
    db.execute_batch("PRAGMA trusted_schema=0")?;
    db.query_row("PRAGMA mmap_size=0", [], |_| Ok(())).optional()?;
    Ok(db)
}

fn application(db: &Connection) -> rusqlite::Result<i32> {
    db.query_row("PRAGMA application_id", [], |row| row.get(0))
}

fn each_row(db: &Connection, query: &str, mut take: impl FnMut(PathBuf, Row) -> bool) -> rusqlite::Result<()> {
    let mut query = db.prepare(query)?;
    let mut rows = query.query([])?;
    // What comes before a broken page is as good as it was.
    while let Ok(Some(row)) = rows.next() {
        let path = row.get_ref(0)?.as_blob().map(|path| std::ffi::OsString::from_vec(path.into()));
        if let (Ok(path), Ok(seal), Ok(info)) = (path, row.get(1), row.get(2))
            && !take(PathBuf::from(path), Row { seal, info })
        {
            break;
        }
    }
    Ok(())
}

/// Whether a sorted list of digests has one.
fn has(list: &[u8], word: u32) -> bool {
    let words = list.as_chunks::<4>().0;
    words.binary_search_by(|bytes| u32::from_le_bytes(*bytes).cmp(&word)).is_ok()
}
