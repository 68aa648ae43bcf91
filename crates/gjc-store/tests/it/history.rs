//! The prompt history on a real disk: what it keeps, what it gives back, and whom it bears with.

use gjc_entry::Timestamp;
use gjc_store::{Fate, History, HistoryError, Said};
use rusqlite::Connection;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

const HERE: &str = "/작업/한글 폴더";

struct World {
    _dir: tempfile::TempDir,
    path: PathBuf,
}

fn world() -> World {
    let dir = tempfile::tempdir().unwrap();
    World { path: dir.path().join("agent/history.db"), _dir: dir }
}

fn said(text: &str, at: i64) -> Said {
    Said {
        text: text.into(),
        more: 0,
        cwd: HERE.into(),
        session: "0197a0c2-5c7e-7c11-9b7a-2f6f0a6d9e01".into(),
        file: "/nowhere/session.jsonl".into(),
        at: Timestamp::from_millis(1_780_643_934_000 + at),
    }
}

/// Lets all rows be of a process that has ended.
fn everybody_dies(path: &Path) {
    Connection::open(path).unwrap().execute("UPDATE gjc_prompts SET process = 'boot/1/2'", []).unwrap();
}

fn texts(prompts: &[gjc_store::Prompt]) -> Vec<&str> {
    prompts.iter().map(|prompt| prompt.text.as_str()).collect()
}

#[test]
fn a_prompt_is_offered_once_its_process_has_ended_and_until_it_has_a_fate() {
    let world = world();
    assert!(History::look(&world.path).unwrap().is_none(), "looking makes nothing");
    let mut history = History::open(&world.path).unwrap();
    let ids: Vec<i64> =
        ["하나", "둘", "셋", "넷"].iter().zip(0..).map(|(text, at)| history.record(&said(text, at)).unwrap()).collect();
    assert_eq!(history.unanswered(Some(HERE)).unwrap(), [], "this process may still get an answer");
    everybody_dies(&world.path);
    assert_eq!(texts(&history.unanswered(Some(HERE)).unwrap()), ["하나", "둘", "셋", "넷"], "oldest first");
    assert_eq!(history.unanswered(Some("/other")).unwrap(), []);
    history.settle(&ids[..1], Fate::Stored).unwrap();
    history.settle(&ids[1..2], Fate::Dismissed).unwrap();
    // Sent once more; a shell has put a line feed in, or taken one away.
    history.record(&said("셋\n", 9)).unwrap();
    let mut other = History::look(&world.path).unwrap().unwrap();
    assert_eq!(texts(&other.unanswered(None).unwrap()), ["넷"]);
    // A later finding does not undo what a person has said.
    history.settle(&ids, Fate::Stored).unwrap();
    let fates: Vec<Fate> = ids.iter().map(|id| other.get(*id).unwrap().unwrap().fate).collect();
    assert_eq!(fates, [Fate::Stored, Fate::Dismissed, Fate::SentAgain, Fate::Stored]);
    assert_eq!(
        texts(&other.recent(Some(HERE), "", 9).unwrap()),
        ["셋\n", "넷", "셋", "둘", "하나"],
        "nothing is deleted"
    );
}

#[test]
fn the_same_words_of_a_process_that_runs_are_another_prompt() {
    let world = world();
    let mut history = History::open(&world.path).unwrap();
    let first = history.record(&said("계속", 0)).unwrap();
    let second = history.record(&said("계속", 1)).unwrap();
    assert_ne!(first, second);
    assert_eq!(history.get(first).unwrap().unwrap().fate, Fate::Open);
}

#[test]
fn the_session_has_the_last_word() {
    let world = world();
    let mut history = History::open(&world.path).unwrap();
    let file = world.path.with_file_name("s.jsonl");
    let at = |text: &str, at: i64| Said { file: file.display().to_string(), ..said(text, at) };
    let stored = history.record(&at("저장된 말", 0)).unwrap();
    // Once said and answered long before, and once more while the process died.
    let repeated = history.record(&at("저장된 말", 60_000)).unwrap();
    let queued = history.record(&at("기다리던 말", 1)).unwrap();
    let mut piped = at("이것을 봐", 2);
    piped.more = 1;
    let piped = history.record(&piped).unwrap();
    everybody_dies(&world.path);
    let user = |id: &str, text: &str| {
        format!(
            "{{\"type\":\"message\",\"id\":\"{id}\",\"parentId\":null,\"timestamp\":\"2026-06-05T07:18:55.000Z\",\
             \"message\":{{\"role\":\"user\",\"content\":\"{text}\",\"timestamp\":1}}}}\n"
        )
    };
    let header = "{\"type\":\"session\",\"version\":3,\"id\":\"0197a0c2-5c7e-7c11-9b7a-2f6f0a6d9e01\",\
                  \"timestamp\":\"2026-06-05T07:18:54.000Z\",\"cwd\":\"/\"}\n";
    let lines = header.to_owned() + &user("0000000a", "저장된 말") + &user("0000000b", "이것을 봐\\n파이프로 온 글");
    std::fs::write(&file, lines).unwrap();
    // Who only looks finds the same, and writes nothing.
    let mut looking = History::look(&world.path).unwrap().unwrap();
    assert_eq!(texts(&looking.unanswered(None).unwrap()), ["기다리던 말", "저장된 말"]);
    assert_eq!(looking.get(stored).unwrap().unwrap().fate, Fate::Open);
    let unanswered = history.unanswered(None).unwrap();
    assert_eq!(unanswered.iter().map(|prompt| prompt.id.unwrap()).collect::<Vec<_>>(), [queued, repeated]);
    // One message answers for one of two equal prompts.
    let twice = [history.record(&at("이것을 또", 3)).unwrap(), history.record(&at("이것을 또", 4)).unwrap()];
    everybody_dies(&world.path);
    let lines = std::fs::read_to_string(&file).unwrap() + &user("0000000c", "이것을 또");
    std::fs::write(&file, lines).unwrap();
    let open: Vec<i64> = history.unanswered(None).unwrap().iter().filter_map(|prompt| prompt.id).collect();
    assert_eq!(open, [queued, twice[1], repeated]);
    for id in [stored, piped] {
        assert_eq!(history.get(id).unwrap().unwrap().fate, Fate::Stored);
    }
}

#[test]
fn a_prompt_that_was_kept_before_its_session_was_open_goes_to_it_once() {
    let world = world();
    let mut history = History::open(&world.path).unwrap();
    let id = history.record(&Said { session: String::new(), file: String::new(), ..said("먼저 한 말", 0) }).unwrap();
    history.place(id, &Said { cwd: "/다른 곳".into(), ..said("", 0) }).unwrap();
    history.place(id, &Said { session: "another".into(), ..said("", 0) }).unwrap();
    let prompt = history.get(id).unwrap().unwrap();
    assert_eq!((prompt.text.as_str(), prompt.cwd.as_str()), ("먼저 한 말", "/다른 곳"));
    assert_eq!((prompt.session, prompt.fate), (Some(said("", 0).session), Fate::Open));
}

#[test]
fn any_text_comes_back_as_it_was() {
    let world = world();
    let mut history = History::open(&world.path).unwrap();
    let texts = [
        "여러\n줄의\n\n말".to_owned(),
        "😀 이모지 👩‍👩‍👧‍👦".into(),
        "널 \0 뒤에도 글".into(),
        "\u{1}\u{1b}[31m\u{7f}\u{9b}".into(),
        "'; DROP TABLE history; --%_".into(),
        "큰 말 ".repeat(1 << 17),
    ];
    assert!(texts[5].len() >= 1 << 20);
    for (text, at) in texts.iter().zip(0..) {
        let begun = Instant::now();
        let id = history.record(&said(text, at)).unwrap();
        assert_eq!(&history.get(id).unwrap().unwrap().text, text);
        assert!(begun.elapsed().as_secs() < 5, "{} bytes took {:?}", text.len(), begun.elapsed());
    }
    let recent = history.recent(None, "", 100).unwrap();
    assert_eq!(recent.iter().rev().map(|prompt| prompt.text.clone()).collect::<Vec<_>>(), texts);
    assert_eq!(recent.iter().filter(|prompt| prompt.id.is_none()).count(), 0, "each once, though two tables have it");
}

#[test]
fn hangul_is_found_within_words_however_it_was_composed() {
    use unicode_normalization::UnicodeNormalization;
    let world = world();
    let mut history = History::open(&world.path).unwrap();
    let decomposed: String = "한글로된 프롬프트를 찾아라".nfd().collect();
    for (text, at) in [decomposed.as_str(), "Fix the TESTS", "100% 확실", "널\0 뒤의 바늘"].iter().zip(0..) {
        history.record(&said(text, at)).unwrap();
    }
    let found = |query: &str| history.recent(None, query, 9).unwrap().len();
    for (query, hits) in [
        ("글로", 1),
        ("롬프", 1),
        ("프롬프트를 찾", 1),
        ("tests", 1),
        ("0%", 1),
        ("%", 1),
        ("_", 0),
        ("바늘", 1),
        ("", 4),
        ("없는 말", 0),
    ] {
        assert_eq!(found(query), hits, "{query}");
    }
    assert_eq!(history.recent(None, "", 2).unwrap().len(), 2);
}

#[test]
fn only_the_owner_may_read_it() {
    let world = world();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    History::open(&world.path).unwrap().record(&said("비밀", 0)).unwrap();
    let all = std::fs::read_dir(world.path.parent().unwrap()).unwrap().map(|entry| entry.unwrap().path());
    for path in all.collect::<Vec<_>>() {
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
    assert_eq!(mode(world.path.parent().unwrap()), 0o700);
    // One that another program has left open to all is closed.
    std::fs::set_permissions(&world.path, std::fs::Permissions::from_mode(0o644)).unwrap();
    History::open(&world.path).unwrap();
    assert_eq!(mode(&world.path), 0o600);
}

/// What the programs of the family make: today's, and the one before it.
const THEIRS: [&str; 2] = [
    "CREATE TABLE history (id INTEGER PRIMARY KEY AUTOINCREMENT, prompt TEXT NOT NULL,
         created_at INTEGER NOT NULL DEFAULT (unixepoch()), cwd TEXT);",
    "CREATE TABLE history (id INTEGER PRIMARY KEY AUTOINCREMENT, prompt TEXT NOT NULL UNIQUE,
         created_at INTEGER NOT NULL DEFAULT (CAST(strftime('%s','now') AS INTEGER)), cwd TEXT, session_id TEXT);",
];
const THEIR_INDEX: &str = "
    CREATE INDEX IF NOT EXISTS idx_history_created_at ON history(created_at DESC);
    CREATE VIRTUAL TABLE IF NOT EXISTS history_fts USING fts5(prompt, content='history', content_rowid='id');
    CREATE TRIGGER IF NOT EXISTS history_ai AFTER INSERT ON history BEGIN
        INSERT INTO history_fts(rowid, prompt) VALUES (new.id, new.prompt);
    END;";

#[test]
fn a_file_of_the_family_is_used_and_stays_theirs() {
    for tables in THEIRS {
        let world = world();
        std::fs::create_dir_all(world.path.parent().unwrap()).unwrap();
        let db = Connection::open(&world.path).unwrap();
        db.execute_batch(&format!("PRAGMA journal_mode=WAL; PRAGMA user_version=1; {tables} {THEIR_INDEX}")).unwrap();
        let insert = "INSERT INTO history (prompt, created_at, cwd) VALUES (?1, 1780643933, ?2)";
        db.execute(insert, ["그들의 말", HERE]).unwrap();
        db.execute(insert, [None, Some("x")]).unwrap_err();
        let schema = |db: &Connection| -> Vec<String> {
            let mut rows =
                db.prepare("SELECT sql FROM sqlite_schema WHERE name LIKE '%history%' AND sql IS NOT NULL").unwrap();
            rows.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
        };
        let before = schema(&db);
        let mut history = History::open(&world.path).unwrap();
        for (text, at) in ["우리 말", "우리 말", "그들의 말", "우리 말"].iter().zip(0..) {
            history.record(&said(text, at * 1000)).unwrap();
        }
        assert_eq!(schema(&db), before);
        // Theirs sees ours, by its own index.
        let hits = |word: &str| -> i64 {
            let sql = "SELECT count(*) FROM history_fts f JOIN history h ON h.id = f.rowid WHERE history_fts MATCH ?1";
            db.query_row(sql, [word], |row| row.get(0)).unwrap()
        };
        let unique = tables.contains("UNIQUE");
        // Consecutive repetitions are one; the newer versions have each text once.
        assert_eq!((hits("우리"), hits("그들의")), if unique { (1, 1) } else { (2, 2) });
        let check: String = db.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(check, "ok");
        // They merge and renumber: nothing of ours goes.
        everybody_dies(&world.path);
        db.execute_batch("DROP TRIGGER history_ai; DROP TABLE history_fts; DROP TABLE history;").unwrap();
        db.execute_batch(&format!("{} {THEIR_INDEX}", THEIRS[1])).unwrap();
        assert_eq!(history.unanswered(Some(HERE)).unwrap().len(), 4);
        history.record(&said("그 뒤의 말", 9000)).unwrap();
        assert_eq!(hits("뒤의"), 1);
    }
}

#[test]
fn a_table_of_theirs_that_takes_no_row_of_ours_does_no_harm() {
    for tables in [
        "CREATE TABLE history (id INTEGER PRIMARY KEY, prompt TEXT, created_at INTEGER, cwd TEXT, must TEXT NOT NULL);",
        "CREATE TABLE history (words TEXT);",
        "CREATE VIEW history AS SELECT 1 AS id;",
        "CREATE TABLE history (id INTEGER PRIMARY KEY, prompt TEXT, created_at INTEGER, cwd TEXT);
         CREATE TRIGGER gone AFTER INSERT ON history BEGIN INSERT INTO lost VALUES (new.id); END;",
    ] {
        let world = world();
        std::fs::create_dir_all(world.path.parent().unwrap()).unwrap();
        Connection::open(&world.path).unwrap().execute_batch(tables).unwrap();
        let mut history = History::open(&world.path).unwrap();
        let id = history.record(&said("그래도", 0)).unwrap();
        assert_eq!(history.get(id).unwrap().unwrap().text, "그래도");
        assert_eq!(texts(&history.recent(None, "", 9).unwrap()), ["그래도"], "{tables}");
    }
}

#[test]
fn what_is_no_history_is_left_as_it_is() {
    let world = world();
    std::fs::create_dir_all(world.path.parent().unwrap()).unwrap();
    let noise: Vec<u8> = (0..10_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    std::fs::write(&world.path, &noise).unwrap();
    assert!(matches!(History::open(&world.path), Err(HistoryError::Foreign(_))));
    assert!(matches!(History::look(&world.path), Err(HistoryError::Foreign(_))));
    assert_eq!(std::fs::read(&world.path).unwrap(), noise);
    std::fs::remove_file(&world.path).unwrap();
    std::fs::create_dir(&world.path).unwrap();
    assert!(matches!(History::open(&world.path), Err(HistoryError::Foreign(_))));
    std::fs::remove_dir(&world.path).unwrap();
    // An empty file is an empty database to SQLite.
    std::fs::write(&world.path, "").unwrap();
    History::open(&world.path).unwrap().record(&said("x", 0)).unwrap();
}

#[test]
fn a_lock_of_another_program_is_not_waited_for_long() {
    let world = world();
    let mut history = History::open(&world.path).unwrap();
    history.record(&said("먼저", 0)).unwrap();
    let other = Connection::open(&world.path).unwrap();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let begun = Instant::now();
    assert!(matches!(history.record(&said("잠긴 동안", 1)), Err(HistoryError::Busy(_))));
    let took = begun.elapsed();
    assert!(took >= History::PATIENCE && took < History::PATIENCE * 4, "{took:?}");
    other.execute_batch("COMMIT").unwrap();
    history.record(&said("그 뒤", 2)).unwrap();
    assert_eq!(texts(&history.recent(None, "", 9).unwrap()), ["그 뒤", "먼저"]);
}

#[test]
fn a_file_that_was_taken_away_is_made_anew() {
    let world = world();
    let mut history = History::open(&world.path).unwrap();
    let id = history.record(&said("x", 0)).unwrap();
    for suffix in ["", "-journal"] {
        let _ = std::fs::remove_file(format!("{}{suffix}", world.path.display()));
    }
    assert!(matches!(history.settle(&[id], Fate::Stored), Err(HistoryError::Io { .. })));
    assert!(!world.path.exists(), "a finding makes no file");
    history.record(&said("y", 1)).unwrap();
    assert_eq!(texts(&history.recent(None, "", 9).unwrap()), ["y"]);
}

/// A file as the programs of the family leave it: with a write-ahead journal.
fn family(world: &World) -> Connection {
    std::fs::create_dir_all(world.path.parent().unwrap()).unwrap();
    let db = Connection::open(&world.path).unwrap();
    db.execute_batch(&format!("PRAGMA journal_mode=WAL; {} {THEIR_INDEX}", THEIRS[0])).unwrap();
    db
}

#[test]
fn a_write_ahead_journal_is_kept_short_and_nothing_is_lost_with_it() {
    let world = world();
    drop(family(&world));
    let journal = world.path.with_file_name("history.db-wal");
    let mut longest = 0;
    for n in 0..40 {
        let mut history = History::open(&world.path).unwrap();
        history.record(&said(&format!("물음 {n}"), n)).unwrap();
        longest = longest.max(std::fs::metadata(&journal).unwrap().len());
        history.tidy();
    }
    assert!(longest > 128 << 10 && longest < 512 << 10, "{longest}");
    assert!(std::fs::metadata(&journal).unwrap().len() < longest);
    assert_eq!(History::open(&world.path).unwrap().recent(None, "", 99).unwrap().len(), 40);
}

#[test]
fn nothing_is_mapped_that_another_could_cut_short() {
    let (ours, theirs) = (world(), world());
    drop(family(&theirs));
    for (world, journal) in [(ours, "-journal"), (theirs, "-wal")] {
        let mut history = History::open(&world.path).unwrap();
        history.record(&said("하나", 0)).unwrap();
        assert!(!world.path.with_file_name("history.db-shm").exists());
        assert!(world.path.with_file_name(format!("history.db{journal}")).exists());
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        assert!(!maps.contains(&world.path.display().to_string()), "{maps}");
        // Theirs stays in its mode, and ours in ours.
        let mode = Connection::open(&world.path).unwrap().query_row("PRAGMA journal_mode", [], |row| row.get(0));
        assert_eq!(mode, Ok(if journal == "-wal" { "wal".to_owned() } else { "delete".into() }));
        assert_eq!(texts(&history.recent(None, "", 9).unwrap()), ["하나"]);
    }
}

#[test]
fn a_program_of_the_family_that_keeps_its_file_open_is_no_obstacle() {
    let world = world();
    let db = family(&world);
    db.execute("INSERT INTO history (prompt, created_at, cwd) VALUES ('그들의 말', 1780643933, ?1)", [HERE]).unwrap();
    let mut history = History::open(&world.path).unwrap();
    history.record(&said("우리 말", 1000)).unwrap();
    assert_eq!(texts(&history.recent(None, "", 9).unwrap()), ["우리 말", "그들의 말"]);
    let seen: i64 = db.query_row("SELECT count(*) FROM history", [], |row| row.get(0)).unwrap();
    assert_eq!(seen, 2);
}

#[test]
fn a_prompt_that_was_cut_in_its_session_is_that_prompt() {
    let whole = "한".repeat(500_001);
    let cut =
        |units: usize| format!("{}\n\n[cut here: the whole text, 500001 UTF-16 units, is in /x]", "한".repeat(units));
    assert!(History::is_said(&cut(499_900), &whole));
    assert!(!History::is_said(&cut(100), &whole), "that little is left of none");
    assert!(!History::is_said(&cut(499_900), &format!("또 {whole}")));
    assert!(!History::is_said(&"한".repeat(499_900), &whole), "it does not say so");
    // A person may write the words of the notice.
    let own = format!("\n\n[cut here: {whole}");
    assert!(History::is_said(&format!("\n\n[cut here: {}", cut(499_900)), &own));
    assert!(History::is_said("짧은 말", "짧은 말") && !History::is_said("짧은 말", "짧은"));
}

#[test]
fn ten_writers_at_once_lose_nothing() {
    let world = world();
    let threads: Vec<_> = (0..10)
        .map(|n| {
            let path = world.path.clone();
            std::thread::spawn(move || {
                let mut history = History::open(&path).unwrap();
                (0..5).filter(|k| history.record(&said(&format!("{n}의 {k}"), n * 100 + k)).is_ok()).count()
            })
        })
        .collect();
    let kept: usize = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    let history = History::open(&world.path).unwrap();
    assert_eq!(history.recent(None, "", 99).unwrap().len(), kept);
    assert!(kept > 0);
}
