//! `Store::search`: what is found, where, and that no state of the index changes it.

use crate::Dir;
use gjc_store::{Answer, Hit, Store};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use unicode_normalization::UnicodeNormalization;

fn store(dir: &Dir) -> Store {
    Store::new(dir.0.path())
}

#[track_caller]
fn search(dir: &Dir, query: &str) -> Answer {
    store(dir).search(query, 1000, |_| true).unwrap()
}

#[track_caller]
fn ids(dir: &Dir, query: &str) -> Vec<String> {
    let mut ids: Vec<String> = search(dir, query).found.into_iter().map(|found| found.session.id).collect();
    ids.sort_unstable();
    ids
}

/// One more message: its id, its parent's, what it is.
fn say(path: &Path, id: &str, parent: &str, message: &str) {
    let line = format!(
        r#"{{"type":"message","id":"{id}","parentId":"{parent}","timestamp":"2026-06-05T00:00:30.000Z","message":{message}}}"#
    );
    let mut file = fs::OpenOptions::new().append(true).open(path).unwrap();
    file.write_all(format!("{line}\n").as_bytes()).unwrap();
}

fn user(text: &str) -> String {
    format!(r#"{{"role":"user","content":{},"timestamp":1}}"#, serde_json::to_string(text).unwrap())
}

fn assistant(content: &str) -> String {
    format!(
        r#"{{"role":"assistant","content":[{content}],"api":"a","provider":"p","model":"m","usage":{{"input":1,"output":1,"cacheRead":0,"cacheWrite":0,"totalTokens":2,"cost":{{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}}}},"stopReason":"stop","timestamp":1}}"#
    )
}

fn result(text: &str) -> String {
    let text = serde_json::to_string(text).unwrap();
    format!(
        r#"{{"role":"toolResult","toolCallId":"c","toolName":"grep","content":[{{"type":"text","text":{text}}}],"isError":false,"timestamp":1}}"#
    )
}

/// Beside so many others that the index is used.
fn among_others() -> (Dir, PathBuf) {
    let dir = Dir::new();
    for n in 0..40 {
        dir.session("--o--", &format!("other-{n}"), "/other", n % 20, &format!("{n}번째 다른 물음"));
    }
    let path = dir.session("--작업--", "one", "/작업/본관", 1, "첫 물음");
    (dir, path)
}

/// The same with an index of all words, with one of no words, and without.
#[track_caller]
fn each_way(dir: &Dir, check: impl Fn(&str)) {
    check("as it is");
    check("after the first search");
    store(dir).fill(|| false).unwrap();
    check("filled");
    fs::remove_file(dir.0.path().join("index.db")).unwrap();
    check("without an index");
}

#[test]
fn each_part_of_a_session_that_says_something_is_searched_and_no_other() {
    let (dir, path) = among_others();
    let calls = r#"{"type":"thinking","thinking":"숨은생각"},{"type":"text","text":"답변입니다"},{"type":"toolCall","id":"c","name":"grep","arguments":{"path":"src/보관소.rs","pattern":"비밀무늬"}}"#;
    say(&path, "0000000b", "0000000a", &assistant(calls));
    say(&path, "0000000c", "0000000b", &result(&format!("앞부분\n{}", "가나다라 ".repeat(200) + "뒷부분")));
    say(
        &path,
        "0000000d",
        "0000000c",
        r#"{"role":"bashExecution","command":"cargo 빌드해","output":"완성","exitCode":0,"cancelled":false,"truncated":false,"timestamp":1}"#,
    );
    let line = r#"{"type":"session_info","id":"0000000e","parentId":"0000000d","timestamp":"2026-06-05T00:00:31.000Z","name":"이름표"}"#;
    fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(format!("{line}\n").as_bytes()).unwrap();
    each_way(&dir, |what| {
        for (query, who) in [
            ("이름표", "title"),
            ("본관", "folder"),
            ("첫", "user"),
            ("답변", "assistant"),
            ("grep", "tool"),
            ("보관소", "tool"),
            ("앞부분", "tool"),
            ("빌드", "user"),
            ("완성", "tool"),
        ] {
            let answer = search(&dir, query);
            assert_eq!(answer.found.len(), 1, "{query}, {what}");
            assert_eq!(
                (answer.found[0].session.path == path, answer.found[0].hits[0].who),
                (true, who),
                "{query}, {what}"
            );
        }
        for query in ["숨은생각", "비밀무늬", "뒷부분", "role", "없는말"] {
            assert!(ids(&dir, query).is_empty(), "{query}, {what}");
        }
    });
}

#[test]
fn all_words_must_be_there_and_the_places_with_the_most_come_first() {
    let (dir, path) = among_others();
    say(&path, "0000000b", "0000000a", &user("사과를 샀다"));
    say(&path, "0000000c", "0000000b", &user("배를 샀다"));
    say(&path, "0000000d", "0000000a", &user("다른 가지에서 사과와 배를 먹었다"));
    say(&path, "0000000e", "0000000d", &user("사과 사과"));
    each_way(&dir, |what| {
        let found = search(&dir, "배 사과").found;
        assert_eq!(found.len(), 1, "{what}");
        let hits: Vec<(String, bool)> = found[0]
            .hits
            .iter()
            .map(|Hit { entry, active, .. }| (entry.as_ref().unwrap().to_string(), *active))
            .collect();
        let named = |id: &str, active| (id.to_owned(), active);
        assert_eq!(hits, [named("0000000d", true), named("0000000b", false), named("0000000c", false)], "{what}");
        assert!(ids(&dir, "사과 배 귤").is_empty() && ids(&dir, "사과 샀다") == ["one"], "{what}");
    });
}

#[test]
fn what_is_shown_of_a_hit_is_one_line_cut_between_letters_whatever_the_text() {
    let (dir, path) = among_others();
    let long = "가\u{301}나 ".repeat(400);
    let text = format!("{long}\n\n찾을말이 있다\t여기\n{long}").nfd().collect::<String>();
    say(&path, "0000000b", "0000000a", &user(&text));
    say(&path, "0000000c", "0000000b", &user("İİİİİİİİ ﬁﬁ 다음찾을말 👩‍👩‍👧 끝"));
    let found = search(&dir, "찾을말").found;
    let shown: Vec<String> = found[0].hits.iter().map(|hit| hit.text.nfc().collect()).collect();
    assert!(
        shown[0].starts_with('…') && shown[0].ends_with('…') && shown[0].contains("찾을말이 있다 여기"),
        "{shown:?}"
    );
    assert!(!shown[0].contains('\n') && shown[0].chars().count() < 400, "{shown:?}");
    assert_eq!(shown[1], "İİİİİİİİ ﬁﬁ 다음찾을말 👩‍👩‍👧 끝");
}

#[test]
fn a_search_sees_what_came_after_the_index_was_filled() {
    let (dir, path) = among_others();
    assert_eq!(store(&dir).fill(|| false).unwrap(), 41);
    assert_eq!(store(&dir).fill(|| false).unwrap(), 0, "all is known");
    assert!(ids(&dir, "나중에").is_empty());
    say(&path, "0000000b", "0000000a", &user("나중에 한 말"));
    let answer = search(&dir, "나중");
    assert_eq!((answer.found.len(), answer.read), (1, 1), "only what has changed is read");
    let new = dir.session("--n--", "new", "/n", 3, "나중에 온 세션");
    assert_eq!(search(&dir, "나중").found.len(), 2);
    fs::remove_file(new).unwrap();
    assert_eq!(ids(&dir, "나중"), ["one"]);
    let answer = search(&dir, "17번째");
    assert_eq!((answer.found.len(), answer.read), (1, 1), "what the index rules out is not read");
    assert_eq!(search(&dir, "어디에도없는말").read, 0);
}

#[test]
fn filling_goes_on_where_it_was_stopped_and_a_limit_says_that_there_may_be_more() {
    let (dir, _) = among_others();
    assert_eq!(store(&dir).fill(|| true).unwrap(), 0);
    let few = store(&dir).search("물음", 3, |_| true).unwrap();
    assert_eq!((few.found.len(), few.more), (3, true));
    let all = store(&dir).search("물음", 41, |_| true).unwrap();
    assert_eq!((all.found.len(), all.more), (41, false));
    assert_eq!(
        few.found.iter().map(|found| &found.session.id).collect::<Vec<_>>(),
        all.found[..3].iter().map(|found| &found.session.id).collect::<Vec<_>>()
    );
    assert_eq!(store(&dir).fill(|| false).unwrap(), 0, "the searches have filled it");
    let own = store(&dir).search("물음", 50, |info| info.cwd.starts_with("/작업")).unwrap();
    assert_eq!(own.found.len(), 1);
    let none = store(&dir).search(" …!", 50, |_| true).unwrap();
    assert!(none.no_words && none.found.is_empty());
}

#[test]
fn a_search_finds_what_reading_everything_finds() {
    // Texts of mixed scripts and forms; each query is a piece of one of them. The reference knows nothing of tokens.
    const PIECES: &[&str] = &[
        "세션",
        "목록",
        "에서",
        "을",
        "들이",
        "Worktree",
        "gjc",
        "_v2",
        "两个",
        "字",
        "かな",
        "ไทยคำ",
        "größe",
        "ΜΈΤΡΟΣ",
        " ",
        " ",
        " ",
        "-",
        "\n",
        "é",
        "ﬁ",
        "1024",
        "데이터베이스",
        "집",
        "가을",
    ];
    let dir = Dir::new();
    let mut state = 11_u64;
    let mut random = |most: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % most
    };
    let mut texts = Vec::new();
    for n in 0..120 {
        let text: String = (0..2 + random(12)).map(|_| PIECES[random(PIECES.len())]).collect();
        let text = if random(3) == 0 { text.nfd().collect() } else { text };
        let path = dir.session("--r--", &format!("s{n:03}"), "/zzz", n % 60, "qqq");
        say(&path, "0000000b", "0000000a", &user(&text));
        texts.push((format!("s{n:03}"), text));
    }
    let mut asked = 0;
    for _ in 0..60 {
        let (_, text) = &texts[random(texts.len())];
        let letters: Vec<char> = text.chars().collect();
        let from = random(letters.len());
        let query: String = letters[from..].iter().take(1 + random(8)).collect();
        let terms = gjc_store::words::terms(&query);
        if terms.is_empty() {
            continue;
        }
        asked += 1;
        let holds = |text: &str| terms.iter().all(|term| term.is_in(&gjc_store::words::folded(text)));
        let right: Vec<String> = texts.iter().filter(|(_, text)| holds(text)).map(|(id, _)| id.clone()).collect();
        assert_eq!(ids(&dir, &query), right, "{query:?}");
    }
    assert!(asked > 40, "{asked}");
    for part in ["목록", "데이터베이스", "两个"] {
        let right: Vec<String> = texts
            .iter()
            .filter(|(_, text)| text.nfc().collect::<String>().contains(part))
            .map(|(id, _)| id.clone())
            .collect();
        assert_eq!(ids(&dir, part), right, "{part}");
        assert!(!right.is_empty());
    }
}

#[test]
fn damage_hides_only_itself_from_a_search() {
    let (dir, path) = among_others();
    say(&path, "0000000b", "0000000a", &user("망가질 말"));
    say(&path, "0000000c", "0000000b", &user("온전한 말"));
    let text = fs::read_to_string(&path).unwrap().replace("\"망가질 말\"", "\"망가질 말");
    fs::write(&path, text).unwrap();
    each_way(&dir, |what| {
        assert_eq!(ids(&dir, "온전한"), ["one"], "{what}");
        assert!(ids(&dir, "망가질").is_empty(), "{what}");
    });
    fs::write(path.with_file_name("broken.jsonl"), "온전한 말, but no header\n").unwrap();
    let answer = search(&dir, "온전한");
    assert_eq!((answer.found.len(), answer.unreadable.len()), (1, 1));
}
