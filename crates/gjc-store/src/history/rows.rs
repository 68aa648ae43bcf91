//! The two tables of `history.db`, ours and the one of other programs, and every statement about them.

use super::process::is_alive;
use super::{Fate, Prompt, Said};
use gjc_entry::Timestamp;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, OptionalExtension, Row, Transaction, params};
use std::collections::HashSet;
use std::path::PathBuf;

pub(super) fn open_rows(db: &Connection, cwd: Option<&str>) -> rusqlite::Result<Vec<Open>> {
    if !has_table(db, "gjc_prompts")? {
        return Ok(Vec::new());
    }
    let mut rows = db.prepare(&format!(
        "SELECT {COLUMNS}, file, process FROM gjc_prompts
         WHERE fate = 'open' AND (?1 IS NULL OR cwd = ?1) ORDER BY created_at, id"
    ))?;
    let open =
        |row: &Row<'_>| Ok(Open { prompt: ours(row)?, file: PathBuf::from(text(row, 7)?), process: text(row, 8)? });
    rows.query_map([cwd], open)?.collect()
}

pub(super) fn recent(db: &Connection, cwd: Option<&str>, query: &str, limit: usize) -> rusqlite::Result<Vec<Prompt>> {
    // Keys are sorted first, so that not all texts are in memory at once.
    let mut all = keys(db, "gjc_prompts", cwd)?;
    // Theirs is in seconds. What looks otherwise than expected has nothing to show.
    all.extend(
        keys(db, "history", cwd).unwrap_or_default().into_iter().map(|key| (key.0.saturating_mul(1000), key.1, key.2)),
    );
    all.sort_unstable_by(|a, b| b.cmp(a));
    let (mut found, mut seen): (Vec<Prompt>, HashSet<(String, String)>) = Default::default();
    for (at, ours, id) in all {
        if found.len() == limit {
            break;
        }
        let prompt = if ours { by_id(db, id)? } else { by_their_id(db, id, at)? };
        let Some(prompt) = prompt.filter(|prompt| prompt.holds(query)) else { continue };
        if seen.insert((prompt.text.clone(), prompt.cwd.clone())) {
            found.push(prompt);
        }
    }
    Ok(found)
}

/// (time, whether it is ours, id) of each row of a table.
fn keys(db: &Connection, table: &str, cwd: Option<&str>) -> rusqlite::Result<Vec<(i64, bool, i64)>> {
    if !has_table(db, table)? {
        return Ok(Vec::new());
    }
    let ours = table == "gjc_prompts";
    let mut rows = db.prepare(&format!("SELECT id, created_at FROM {table} WHERE ?1 IS NULL OR cwd = ?1"))?;
    rows.query_map([cwd], |row| Ok((int(row, 1)?, ours, int(row, 0)?)))?.collect()
}

pub(super) fn by_id(db: &Connection, id: i64) -> rusqlite::Result<Option<Prompt>> {
    if !has_table(db, "gjc_prompts")? {
        return Ok(None);
    }
    let mut row = db.prepare(&format!("SELECT {COLUMNS} FROM gjc_prompts WHERE id = ?1"))?;
    row.query_row([id], ours).optional()
}

fn by_their_id(db: &Connection, id: i64, at: i64) -> rusqlite::Result<Option<Prompt>> {
    let mut row = db.prepare("SELECT prompt, cwd FROM history WHERE id = ?1")?;
    let prompt = |row: &Row<'_>| {
        Ok(Prompt {
            id: None,
            text: text(row, 0)?,
            more: 0,
            cwd: text(row, 1)?,
            session: None,
            at: Timestamp::from_millis(at),
            fate: Fate::Stored,
            unanswered: false,
        })
    };
    row.query_row([id], prompt).optional()
}

/// A row that is open, with what tells whether it still is.
pub(super) struct Open {
    pub(super) prompt: Prompt,
    pub(super) file: PathBuf,
    pub(super) process: String,
}

/// Of `gjc_prompts`, for [`ours`].
const COLUMNS: &str = "id, prompt, more, cwd, session, created_at, fate";

fn ours(row: &Row<'_>) -> rusqlite::Result<Prompt> {
    Ok(Prompt {
        id: Some(int(row, 0)?),
        text: text(row, 1)?,
        more: usize::try_from(int(row, 2)?).unwrap_or(0),
        cwd: text(row, 3)?,
        session: Some(text(row, 4)?),
        at: Timestamp::from_millis(int(row, 5)?),
        fate: Fate::from_word(&text(row, 6)?),
        unanswered: false,
    })
}

/// A column as text, whatever another program has put there.
fn text(row: &Row<'_>, column: usize) -> rusqlite::Result<String> {
    Ok(match row.get_ref(column)? {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Real(number) => number.to_string(),
        ValueRef::Null => String::new(),
    })
}

/// A column as a number; 0 where it is none.
fn int(row: &Row<'_>, column: usize) -> rusqlite::Result<i64> {
    Ok(match row.get_ref(column)? {
        ValueRef::Integer(number) => number,
        ValueRef::Real(number) => number as i64,
        _ => 0,
    })
}

pub(super) fn set_fate(tx: &Transaction<'_>, id: i64, fate: Fate) -> rusqlite::Result<()> {
    // What a person has said of a prompt is not taken back by what a program finds out later.
    tx.execute("UPDATE gjc_prompts SET fate = ?2 WHERE id = ?1 AND fate = 'open'", params![id, fate.as_str()]).map(drop)
}

pub(super) fn has_table(db: &Connection, name: &str) -> rusqlite::Result<bool> {
    let mut found = db.prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?1")?;
    found.exists([name])
}

pub(super) fn make_tables(tx: &Transaction<'_>) -> rusqlite::Result<()> {
    tx.execute_batch(
        "CREATE TABLE IF NOT EXISTS gjc_prompts (
             id INTEGER PRIMARY KEY AUTOINCREMENT,
             prompt TEXT NOT NULL,
             more INTEGER NOT NULL,
             cwd TEXT NOT NULL,
             session TEXT NOT NULL,
             file TEXT NOT NULL,
             created_at INTEGER NOT NULL,
             process TEXT NOT NULL,
             fate TEXT NOT NULL
         );
         CREATE INDEX IF NOT EXISTS gjc_prompts_open ON gjc_prompts(cwd) WHERE fate = 'open';",
    )?;
    // Theirs is made where it is missing, and left as it is where not.
    theirs(tx, || {
        if has_table(tx, "history")? {
            return Ok(());
        }
        tx.execute_batch(
            "CREATE TABLE history (
                 id INTEGER PRIMARY KEY AUTOINCREMENT,
                 prompt TEXT NOT NULL,
                 created_at INTEGER NOT NULL DEFAULT (CAST(strftime('%s','now') AS INTEGER)),
                 cwd TEXT
             );
             CREATE INDEX IF NOT EXISTS idx_history_created_at ON history(created_at DESC);
             CREATE VIRTUAL TABLE IF NOT EXISTS history_fts USING fts5(prompt, content='history', content_rowid='id');
             CREATE TRIGGER IF NOT EXISTS history_ai AFTER INSERT ON history BEGIN
                 INSERT INTO history_fts(rowid, prompt) VALUES (new.id, new.prompt);
             END;",
        )
    })
}

/// The open prompts of ended processes that a new one repeats.
pub(super) fn sent_again(tx: &Transaction<'_>, said: &Said) -> rusqlite::Result<Vec<i64>> {
    let mut open = tx.prepare("SELECT id, prompt, process FROM gjc_prompts WHERE fate = 'open' AND cwd = ?1")?;
    let mut rows = open.query([&said.cwd])?;
    let mut again = Vec::new();
    while let Some(row) = rows.next()? {
        // A shell takes the last line feeds away when it puts a text in for a command.
        if text(row, 1)?.trim() == said.text.trim() && !is_alive(&text(row, 2)?) {
            again.push(int(row, 0)?);
        }
    }
    Ok(again)
}

/// Gives a prompt to the other programs.
pub(super) fn share(tx: &Transaction<'_>, said: &Said) -> rusqlite::Result<()> {
    let seconds = said.at.as_millis().div_euclid(1000);
    theirs(tx, || {
        let last = "SELECT prompt FROM history ORDER BY id DESC LIMIT 1";
        if tx.query_row(last, [], |row| text(row, 0)).optional()?.is_some_and(|last| last == said.text) {
            return Ok(());
        }
        let insert = "INSERT INTO history (prompt, created_at, cwd) VALUES (?1, ?2, ?3)";
        match tx.execute(insert, params![said.text, seconds, said.cwd]) {
            // Some versions have each text once, with the time of its last use.
            Err(why) if why.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => {
                let update = "UPDATE history SET created_at = ?2, cwd = ?3 WHERE prompt = ?1";
                tx.execute(update, params![said.text, seconds, said.cwd]).map(drop)
            }
            other => other.map(drop),
        }
    })
}

/// Does something with the other programs' table, wholly or not at all. It is theirs: where it is not what is expected,
/// ours has the prompt all the same. A disk that fails is no matter of theirs.
fn theirs(tx: &Transaction<'_>, work: impl FnOnce() -> rusqlite::Result<()>) -> rusqlite::Result<()> {
    tx.execute_batch("SAVEPOINT theirs")?;
    if let Err(why) = work() {
        if matches!(why.sqlite_error_code(), Some(ErrorCode::DiskFull | ErrorCode::SystemIoFailure)) {
            return Err(why);
        }
        tx.execute_batch("ROLLBACK TO theirs")?;
    }
    tx.execute_batch("RELEASE theirs")
}
