//! `Store`: lists, ids, subagents, folders; with an index in any state, the same answers.

use crate::Dir;
use gjc_entry::Level;
use gjc_log::fs::OsFs;
use gjc_store::{Child, Folders, Likeness, Listing, NotResolved, SessionInfo, Store, moved, sweep_all};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

impl Dir {
    fn agent(&self) -> &Path {
        self.0.path()
    }

    fn store(&self) -> Store {
        Store::new(self.agent())
    }

    fn index(&self) -> PathBuf {
        self.agent().join("index.db")
    }

    /// So many sessions that an index is worth it, in four folders of two buckets.
    fn many(&self, n: u32) {
        for n in 0..n {
            let (bucket, cwd) =
                [("--a-b-c--", "/a/b-c"), ("--a-b-c--", "/a-b/c"), ("--작업--", "/작업"), ("--q--", "/q")]
                    [n as usize % 4];
            self.session(bucket, &format!("0197{n:04}"), cwd, n % 60, &format!("{n}번째 물음"));
        }
    }

    /// What there is by reading everything, which no index has a part in.
    fn swept(&self) -> Vec<SessionInfo> {
        sweep_all(&OsFs, &self.sessions()).unwrap().0
    }

    #[track_caller]
    fn same_answers(&self, what: &str) {
        let (swept, _) = sweep_all(&OsFs, &self.sessions()).unwrap();
        let store = self.store();
        assert_eq!(store.list().unwrap().sessions, swept, "list, {what}");
        assert!(store.first(50).iter().all(|first| swept.contains(first)), "first rows, {what}");
        let glances = store.glances().unwrap().0;
        let seen: Vec<_> = glances.iter().map(|glance| (&glance.path, glance.name(), glance.modified)).collect();
        let whole: Vec<_> = swept.iter().map(|info| (&info.path, info.name().to_owned(), info.modified)).collect();
        assert_eq!(seen, whole, "glances, {what}");
        assert_eq!(
            store.resolve(Path::new("/q"), "01970003").unwrap(),
            swept.iter().find(|info| info.id == "01970003").unwrap().path,
            "{what}"
        );
    }
}

fn line(kind: &str, second: u32, rest: &str) -> String {
    format!(
        r#"{{"type":"{kind}","id":"00000{second:03}","parentId":null,"timestamp":"2026-06-05T00:00:{second:02}.000Z",{rest}}}"#
    ) + "\n"
}

fn append(path: &Path, text: &str) {
    use std::io::Write;
    fs::OpenOptions::new().append(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
}

fn names(listing: &Listing) -> Vec<&str> {
    listing.sessions.iter().map(SessionInfo::name).collect()
}

#[test]
fn few_sessions_need_no_index_and_nothing_is_written_for_them() {
    let dir = Dir::new();
    dir.many(8);
    dir.same_answers("few");
    assert!(!dir.index().exists());
    assert_eq!(fs::read_dir(dir.agent()).unwrap().count(), 1);
}

#[test]
fn an_index_follows_files_that_grow_come_go_and_change_behind_its_back() {
    let dir = Dir::new();
    dir.many(60);
    dir.same_answers("at first");
    assert!(dir.index().exists());
    assert_eq!(fs::metadata(dir.index()).unwrap().permissions().mode() & 0o777, 0o600);
    dir.same_answers("from the index");
    let path = |id: &str| dir.swept().into_iter().find(|info| info.id == id).unwrap().path;
    append(&path("01970007"), &line("session_info", 59, r#""name":"새 이름""#));
    dir.same_answers("grown");
    assert!(names(&dir.store().list().unwrap()).contains(&"새 이름"));
    fs::remove_file(path("01970008")).unwrap();
    dir.session("--q--", "0198", "/q", 59, "새로 온 것");
    dir.same_answers("one gone, one new");
    // As long as before, and its time is set back: only the time of the inode tells.
    let file = path("01970009");
    let before = fs::metadata(&file).unwrap();
    fs::write(&file, fs::read_to_string(&file).unwrap().replace("9번째", "8번째")).unwrap();
    fs::File::options().write(true).open(&file).unwrap().set_modified(before.modified().unwrap()).unwrap();
    dir.same_answers("changed in place");
    // Another file under the same name.
    let (one, other) = (path("01970010"), path("01970011"));
    let aside = one.with_extension("aside");
    fs::rename(&one, &aside).unwrap();
    fs::rename(&other, &one).unwrap();
    fs::rename(&aside, &other).unwrap();
    dir.same_answers("two names exchanged");
}

#[test]
fn a_list_is_as_fast_as_its_rows_only_when_they_are_proved() {
    // K11: a row that leads to another session's file, by a hand that knows the table.
    let dir = Dir::new();
    dir.many(60);
    dir.same_answers("before");
    let db = rusqlite::Connection::open(dir.index()).unwrap();
    db.execute_batch(
        "UPDATE gjc_sessions_1 SET info = (SELECT info FROM gjc_sessions_1 ORDER BY path LIMIT 1),
                                   seal = (SELECT seal FROM gjc_sessions_1 ORDER BY path LIMIT 1);",
    )
    .unwrap();
    dir.same_answers("each row says what another is");
    dir.same_answers("and afterwards");
    let wrong: i64 = db
        .query_row(
            "SELECT count(*) FROM gjc_sessions_1 AS a, gjc_sessions_1 AS b WHERE a.path < b.path AND a.info = b.info",
            [],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(wrong, 0, "the index was not made right again");
    // A label, or a count, that somebody would like better.
    db.execute_batch("UPDATE gjc_sessions_1 SET info = CAST(replace(CAST(info AS TEXT), '번째', '째번') AS BLOB)")
        .unwrap();
    dir.same_answers("words changed in the rows");
    db.execute_batch("UPDATE gjc_sessions_1 SET modified = 0, path = path || x'00'").unwrap();
    dir.same_answers("paths that no file has");
}

#[test]
fn an_empty_index_beside_sessions_hides_none_of_them_at_any_start() {
    // K37: that the file exists does not mean that anything is in it.
    let dir = Dir::new();
    dir.many(188);
    for start in 1..=2 {
        assert_eq!(dir.store().list().unwrap().sessions.len(), 188, "start {start}, without one");
    }
    let db = rusqlite::Connection::open(dir.index()).unwrap();
    for what in ["DELETE FROM gjc_sessions_1", "DROP TABLE gjc_sessions_1", "DROP TABLE gjc_words_1"] {
        db.execute_batch(what).unwrap();
        for start in 1..=2 {
            assert_eq!(dir.store().list().unwrap().sessions.len(), 188, "start {start} after {what}");
            dir.same_answers(what);
        }
    }
    // Tables of these names in another form: of a version to come.
    db.execute_batch("DROP TABLE gjc_sessions_1; CREATE TABLE gjc_sessions_1 (x)").unwrap();
    dir.same_answers("tables of another form");
    dir.same_answers("tables of another form, again");
    fs::write(dir.index(), "").unwrap();
    dir.same_answers("no bytes at all");
    assert!(fs::metadata(dir.index()).unwrap().len() > 0, "it was not filled again");
}

#[test]
fn random_bytes_in_the_index_change_no_answer() {
    let dir = Dir::new();
    dir.many(40);
    dir.same_answers("before");
    dir.store().fill(|| false).unwrap();
    let sound = fs::read(dir.index()).unwrap();
    let mut state = 7_u64;
    let mut random = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap()
    };
    for round in 0..60 {
        let mut bytes = sound.clone();
        match round % 6 {
            0 => bytes.iter_mut().for_each(|byte| *byte = random() as u8),
            1 => bytes.truncate(random() % sound.len()),
            // A page.
            2 => {
                let at = random() % (sound.len() / 4096) * 4096;
                bytes[at..at + 4096].iter_mut().for_each(|byte| *byte = random() as u8);
            }
            3 => {
                let (from, to) = (random() % (sound.len() / 4096) * 4096, random() % (sound.len() / 4096) * 4096);
                bytes.copy_within(from..from + 4096, to);
            }
            _ => (0..=random() % 20).for_each(|_| {
                let at = random() % sound.len();
                bytes[at] ^= 1 << (random() % 8);
            }),
        }
        fs::write(dir.index(), &bytes).unwrap();
        let what = format!("round {round}");
        let found = dir.store().search("물음", 100, |_| true).unwrap().found.len();
        assert_eq!(found, 40, "search, {what}");
        assert_eq!(dir.store().search("17번째", 100, |_| true).unwrap().found.len(), 1, "search, {what}");
        dir.same_answers(&what);
    }
}

#[test]
fn what_stands_where_the_index_belongs_is_no_hindrance_and_stays_whose_it_is() {
    let dir = Dir::new();
    dir.many(40);
    fs::create_dir(dir.index()).unwrap();
    dir.same_answers("a folder");
    fs::remove_dir(dir.index()).unwrap();
    // Somebody's database, by a link.
    let other = dir.agent().join("other.db");
    rusqlite::Connection::open(&other)
        .unwrap()
        .execute_batch("CREATE TABLE mine (x); INSERT INTO mine VALUES (1)")
        .unwrap();
    let before = fs::read(&other).unwrap();
    std::os::unix::fs::symlink(&other, dir.index()).unwrap();
    dir.same_answers("a link to another program's database");
    assert_eq!(fs::read(&other).unwrap(), before);
    fs::write(&other, "not a database, but mine").unwrap();
    dir.same_answers("a link to another file");
    assert_eq!(fs::read_to_string(&other).unwrap(), "not a database, but mine");
    fs::remove_file(dir.index()).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, dir.index(), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    dir.same_answers("a pipe");
    fs::remove_file(dir.index()).unwrap();
    dir.same_answers("nothing");
    fs::set_permissions(dir.index(), fs::Permissions::from_mode(0o400)).unwrap();
    dir.session("--q--", "0198", "/q", 59, "새로 온 것");
    dir.same_answers("a file that may only be read");
    fs::set_permissions(dir.index(), fs::Permissions::from_mode(0o000)).unwrap();
    dir.same_answers("a file that may not be read");
}

#[test]
fn a_locked_index_is_waited_for_once_and_shortly() {
    // K12: somebody holds it for as long as they please; ten processes want their lists.
    let dir = Dir::new();
    dir.many(60);
    dir.same_answers("before");
    let db = rusqlite::Connection::open(dir.index()).unwrap();
    db.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let swept = dir.swept();
    std::thread::scope(|scope| {
        for _ in 0..10 {
            scope.spawn(|| {
                let (store, began) = (dir.store(), Instant::now());
                for _ in 0..3 {
                    assert_eq!(store.list().unwrap().sessions, swept);
                    assert!(store.first(10).is_empty());
                    assert_eq!(store.search("물음", 100, |_| true).unwrap().found.len(), 60);
                }
                assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
            });
        }
    });
    db.execute_batch("ROLLBACK").unwrap();
    dir.same_answers("after");
    assert_eq!(dir.store().first(10).len(), 10);
}

#[test]
fn first_rows_are_the_newest_that_are_still_as_they_were() {
    let dir = Dir::new();
    dir.many(60);
    assert!(dir.store().first(5).is_empty(), "nothing is known yet");
    let all = dir.store().list().unwrap().sessions;
    assert_eq!(dir.store().first(5), all[..5]);
    assert_eq!(dir.store().first(1000), all);
    append(&all[0].path, &line("session_info", 1, r#""name":"달라짐""#));
    fs::remove_file(&all[1].path).unwrap();
    assert_eq!(dir.store().first(5), all[2..7]);
}

#[test]
fn all_of_many_sessions_are_listed_and_the_oldest_is_found() {
    // K19: no cap makes an old session look deleted.
    let dir = Dir::new();
    dir.many(250);
    let oldest = dir.session("--q--", "0001", "/q", 0, "가장 오래된 대화");
    assert_eq!(dir.store().list().unwrap().sessions.len(), 251);
    for _ in 0..2 {
        let found = dir.store().search("오래된 대화", 10, |_| true).unwrap().found;
        assert_eq!(found.iter().map(|found| &found.session.path).collect::<Vec<_>>(), [&oldest]);
    }
}

#[test]
fn a_session_that_begins_with_a_large_picture_is_listed_with_its_text() {
    // K20: a header, and a first line of 220 KB.
    let dir = Dir::new();
    let path = dir.session("--a--", "one", "/a", 9, "x");
    let picture = "iVBORw0KGgo".repeat(20_000);
    let text = fs::read_to_string(&path).unwrap().replace(
        r#""content":"x""#,
        &format!(r#""content":[{{"type":"image","data":"{picture}","mimeType":"image/png"}},{{"type":"text","text":"이 그림은 뭐야?"}}]"#),
    );
    fs::write(&path, text).unwrap();
    let listing = dir.store().list().unwrap();
    assert_eq!((names(&listing), listing.unreadable.len()), (vec!["이 그림은 뭐야?"], 0));
    let (glances, unreadable) = dir.store().glances().unwrap();
    assert_eq!(
        (glances[0].name(), glances[0].modified, unreadable.len()),
        ("이 그림은 뭐야?".into(), listing.sessions[0].modified, 0)
    );
}

#[test]
fn a_name_is_the_title_else_the_first_words_else_the_id_else_the_file() {
    let dir = Dir::new();
    let path = dir.session("--a--", "one", "/a", 1, "\\n\\n 첫 물음\\n둘째 줄");
    let whole = fs::read_to_string(&path).unwrap();
    let (header, message) = whole.split_at(whole.find('\n').unwrap() + 1);
    let titled = header.replace(r#""cwd""#, r#""title":"처음 이름","cwd""#);
    let named = line("session_info", 2, r#""name":"나중 이름""#);
    let unnamed = line("session_info", 3, r#""name":"""#);
    for (text, name, messages) in [
        (format!("{titled}{message}{named}"), "나중 이름", 1),
        (format!("{titled}{message}"), "처음 이름", 1),
        (whole.clone(), "첫 물음", 1),
        (format!("{header}{message}{named}{unnamed}"), "첫 물음", 1),
        (header.to_owned(), "one", 0),
    ] {
        fs::write(&path, &text).unwrap();
        let store = dir.store();
        let (listing, glances) = (store.list().unwrap(), store.glances().unwrap().0);
        assert_eq!((names(&listing), listing.sessions[0].messages), (vec![name], messages), "{text}");
        assert_eq!(glances[0].name(), name, "{text}");
    }
    // A header without an id, as no reader of the family writes it.
    let glance = gjc_store::Glance {
        id: String::new(),
        title: None,
        first_message: None,
        ..dir.store().glances().unwrap().0.remove(0)
    };
    assert_eq!(glance.name(), "2026-06-05T00-00-00-000Z_one.jsonl");
}

#[test]
fn a_session_without_messages_is_never_resumed_nor_in_the_way_of_one_that_has() {
    // K32: the click after a move made an empty session, the newest of all.
    let dir = Dir::new();
    let real = dir.session("--a--", "0197-aa", "/a", 1, "진짜");
    let path = dir.session("--a--", "0197-ab", "/a", 50, "x");
    let header = fs::read_to_string(&path).unwrap().lines().next().unwrap().to_owned() + "\n";
    fs::write(&path, header + &line("session_info", 59, r#""name":"빈 것""#)).unwrap();
    let store = dir.store();
    let newest = store.list().unwrap().sessions.into_iter().find(SessionInfo::has_content);
    assert_eq!(newest.unwrap().path, real);
    assert_eq!(store.resume(Path::new("/a"), "0197").unwrap(), real);
    assert_eq!(store.resolve(Path::new("/a"), "0197").unwrap(), real);
    let Err(error) = store.resume(Path::new("/a"), "0197-ab") else { panic!("it was resumed") };
    assert_eq!(error.to_string(), "Session \"0197-ab\" has no messages: there is nothing to go on with.");
    assert_eq!(store.resolve(Path::new("/a"), "0197-AB").unwrap(), path, "to look at, it is there");
    assert!(matches!(store.resume(Path::new("/a"), "0199"), Err(NotResolved::Unknown(_))));
}

#[test]
fn subagents_are_in_no_list_and_found_by_id_and_by_task() {
    let dir = Dir::new();
    let session = dir.session("--a--", "0197-aa", "/a", 1, "부모");
    let other = dir.session("--b--", "0197-bb", "/b", 2, "다른 부모");
    let child = |parent: &Path, task: &str, id: &str, text: &str| {
        let folder = parent.with_extension("");
        fs::create_dir_all(&folder).unwrap();
        let made = dir.session("--tmp--", id, "/a", 3, text);
        let path = folder.join(format!("{task}.jsonl"));
        fs::rename(made, &path).unwrap();
        path
    };
    let scout = child(&session, "1-정찰", "0199-c1", "정찰병");
    let deeper = child(&scout, "1-더깊이", "0199-c2", "손자");
    let others = child(&other, "1-정찰", "0199-d1", "남의 정찰병");
    fs::write(session.with_extension("").join("lines.jsonl"), "{\"a\":1}\n").unwrap();
    // A folder that is linked into itself.
    std::os::unix::fs::symlink(".", scout.with_extension("").join("1-더깊이")).unwrap();
    let store = dir.store();
    assert_eq!(store.list().unwrap().sessions.len(), 2);
    let (children, unreadable) = store.children().unwrap();
    let mut names: Vec<(&str, &str)> = children.iter().map(|child| (child.name.as_str(), child.info.name())).collect();
    names.sort_unstable();
    assert_eq!(
        names,
        [("0197-aa/1-정찰", "정찰병"), ("0197-aa/1-정찰/1-더깊이", "손자"), ("0197-bb/1-정찰", "남의 정찰병")]
    );
    assert!(unreadable.is_empty());
    let of =
        |Child { session: of, name, .. }: &Child| *of == if name.starts_with("0197-aa/") { &*session } else { &*other };
    assert!(children.iter().all(of));
    let find = |word: &str| store.resolve(Path::new("/c"), word);
    for (word, path) in [
        ("0199-c1", &scout),
        ("0199-d", &others),
        ("0197-aa/1-정찰", &scout),
        ("0197-A/1", &scout),
        ("0197-aa/1-정찰/1-더깊이", &deeper),
        ("0197-bb/1-정찰", &others),
    ] {
        assert_eq!(&find(word).unwrap(), path, "{word}");
    }
    assert!(matches!(find("0199-"), Err(NotResolved::Ambiguous { matches, .. }) if matches.len() == 3));
    assert!(matches!(find("0197/1-정찰"), Err(NotResolved::Ambiguous { matches, .. }) if matches.len() == 2));
    assert!(matches!(find("0197-aa/2"), Err(NotResolved::NoFile(_))));
    assert!(matches!(find("/0197-aa/1-정찰"), Err(NotResolved::NoFile(_))));
    assert_eq!(store.resolve(Path::new("/a"), "0197").unwrap(), session, "a subagent is in no session's way");
}

#[test]
fn projects_whose_paths_encode_alike_and_folders_under_other_names_are_kept_apart_and_found() {
    let dir = Dir::new();
    let root = dir.agent().join("프로젝트");
    let folder = |name: &str| {
        fs::create_dir_all(root.join(name)).unwrap();
        root.join(name)
    };
    let (one, two) = (folder("a/b-c"), folder("a-b/c"));
    assert_eq!(gjc_store::bucket_name(&one), gjc_store::bucket_name(&two));
    let session = |id: &str, cwd: &Path| dir.session(&gjc_store::bucket_name(cwd), id, cwd.to_str().unwrap(), 5, "x");
    let (first, second) = (session("0197-aa", &one), session("0197-bb", &two));
    assert_eq!(first.parent(), second.parent());
    let store = dir.store();
    assert_eq!((store.resolve(&one, "0197").unwrap(), store.resolve(&two, "0197").unwrap()), (first.clone(), second));
    // Through a link, each way.
    let link = root.join("link");
    std::os::unix::fs::symlink(&one, &link).unwrap();
    assert_eq!(store.resolve(&link, "0197").unwrap(), first);
    let by_link = session("0198-aa", &link);
    dir.session("--x--", "0198-bb", "/x", 6, "y");
    assert_eq!(store.resolve(&one, "0198").unwrap(), by_link);
    // Composed and decomposed.
    let nfd: String = unicode_normalization::UnicodeNormalization::nfd("한글 폴더").collect();
    let composed = session("0196-aa", &root.join("한글 폴더"));
    dir.session("--x--", "0196-bb", "/x", 6, "y");
    assert_eq!(store.resolve(&root.join(&nfd), "0196").unwrap(), composed);
    assert!(Folders::default().same(root.join(nfd).to_str().unwrap(), root.join("한글 폴더").to_str().unwrap()));
}

#[test]
fn a_folder_that_was_moved_or_renamed_is_noticed_and_never_taken_for_another() {
    let dir = Dir::new();
    let root = dir.agent().to_path_buf();
    fs::create_dir_all(root.join("새집/사업")).unwrap();
    fs::create_dir_all(root.join("still/사업")).unwrap();
    let session = |id: &str, cwd: &Path, second| dir.session("--s--", id, cwd.to_str().unwrap(), second, "x");
    let nfd: String = unicode_normalization::UnicodeNormalization::nfd("사업").collect();
    session("moved-1", &root.join("옛집").join(&nfd), 1);
    session("moved-2", &root.join("옛집").join(&nfd), 2);
    session("renamed", &root.join("새집/옛이름"), 9);
    session("worktree", &root.join("새집/사업.gjc-worktrees/일-1"), 8);
    session("there", &root.join("still/사업"), 4);
    session("far", &root.join("else/other"), 5);
    session("relative", Path::new("사업"), 6);
    let empty = session("empty", &root.join("없음/사업"), 7);
    fs::write(&empty, fs::read_to_string(&empty).unwrap().lines().next().unwrap().to_owned() + "\n").unwrap();
    let sessions = dir.store().list().unwrap().sessions;
    let found = moved(&sessions, &root.join("새집/사업"));
    let shown: Vec<(Likeness, Vec<&str>)> =
        found.iter().map(|moved| (moved.likeness, moved.sessions.iter().map(|info| &*info.id).collect())).collect();
    assert_eq!(
        shown,
        [
            (Likeness::Name, vec!["moved-2", "moved-1"]),
            (Likeness::Worktree, vec!["worktree"]),
            (Likeness::Place, vec!["renamed"])
        ]
    );
    assert!(moved(&sessions, &root.join("else/third")).iter().all(|moved| moved.likeness != Likeness::Name));
}

#[test]
fn a_folder_of_its_own_has_a_store_too_and_both_share_the_index() {
    let dir = Dir::new();
    dir.many(60);
    let own = dir.agent().join("own");
    fs::create_dir(&own).unwrap();
    for (n, info) in dir.swept().iter().take(40).enumerate() {
        fs::copy(&info.path, own.join(format!("{n}.jsonl"))).unwrap();
    }
    let flat = Store::flat(dir.agent(), &own);
    for _ in 0..2 {
        assert_eq!(flat.list().unwrap().sessions, gjc_store::sweep(&OsFs, &own).unwrap().0);
        assert_eq!(flat.first(100).len(), 40);
        dir.same_answers("beside a folder of its own");
    }
    let db = rusqlite::Connection::open(dir.index()).unwrap();
    let rows: i64 = db.query_row("SELECT count(*) FROM gjc_sessions_1", [], |row| row.get(0)).unwrap();
    assert_eq!(rows, 100, "neither forgets what the other knows");
}

#[test]
fn what_a_list_or_a_search_hands_on_is_worth_what_its_session_is() {
    // A listing is a source: title and first words say what the session knows. The label comes from the file, and through the
    // index it is the same; one that was changed there is not believed.
    let dir = Dir::new();
    dir.many(40);
    let path = dir.session("--s--", "secret", "/s", 20, "평범한 물음");
    let labelled = |second, label: &str, text: &str| {
        line(
            "message",
            second,
            &format!(r#""gjcLabel":{label},"message":{{"role":"user","content":"{text}","timestamp":1}}"#),
        )
    };
    append(&path, &labelled(21, r#"{"l":"CONFIDENTIAL","t":false}"#, "비밀 계획"));
    append(&path, &labelled(22, r#"{"l":"CONFIDENTIAL","t":true}"#, "사람이 다시 쓴 계획"));
    let broken = dir.session("--s--", "broken", "/s", 23, "물음");
    append(&broken, &labelled(24, r#"{"l":"NONSENSE"}"#, "라벨이 깨진 계획"));
    let check = |what: &str| {
        let sessions = dir.store().list().unwrap().sessions;
        let label = |id: &str| sessions.iter().find(|info| info.id == id).unwrap().label;
        assert_eq!((label("secret").level, label("secret").trusted), (Level::Confidential, false), "{what}");
        assert_eq!((label("broken").level, label("broken").trusted), (Level::Restricted, false), "{what}");
        assert_eq!((label("01970001").level, label("01970001").trusted), (Level::Public, true), "{what}");
        let answer = dir.store().search("계획", 10, |_| true).unwrap();
        let hits: Vec<_> = answer.found.iter().map(|found| (&*found.session.id, found.hits[0].label.level)).collect();
        assert_eq!(hits, [("broken", Level::Restricted), ("secret", Level::Confidential)], "{what}");
        let label = answer.label();
        assert_eq!((label.level, label.trusted), (Level::Restricted, false), "{what}");
        let public = dir.store().search("17번째", 10, |_| true).unwrap().label();
        assert_eq!((public.level, public.trusted), (Level::Public, true), "{what}");
        let first = dir.store().search("평범한", 10, |_| true).unwrap();
        assert_eq!(first.found[0].hits[0].label.level, Level::Public, "what was said before is worth what it was");
        assert_eq!(first.label().level, Level::Confidential, "that it is in this session is worth what the session is");
    };
    check("without an index");
    check("from the index");
    let db = rusqlite::Connection::open(dir.index()).unwrap();
    let changed = db
        .execute(
            "UPDATE gjc_sessions_1 SET info = CAST(replace(CAST(info AS TEXT), 'CONFIDENTIAL', 'PUBLIC') AS BLOB)",
            [],
        )
        .unwrap();
    assert!(changed >= 42);
    check("with labels changed in the index");
}
