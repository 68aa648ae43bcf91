//! `gjc --export`, `gjc sessions export`, and the command `export`: pages of sessions.

use crate::kit::*;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use testkit::harness::{Home, Running};
use testkit::stub::Stub;

fn planted(home: &Home) -> PathBuf {
    let text = header("0197a0c2-0000-7000-8000-000000000001", "/p/한글")
        + &user("0000000a", None, "안녕 </script>")
        + &said("0000000b", "0000000a", "답 하나")
        + &said("0000000c", "0000000a", "다른 가지의 답");
    plant(home, "--p--", "2026_작업.jsonl", text)
}

fn page(path: &Path) -> String {
    let page = std::fs::read_to_string(path).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"), "{} is no whole page", path.display());
    page
}

#[test]
fn a_file_becomes_a_page_here_and_nothing_else_changes() {
    let home = Home::new();
    let session = planted(&home);
    let before = tree(&root(&home));
    let out = look(&home, &["--export"]).arg(&session).output().ok();
    let to = home.work().join("gjc-session-2026_작업.html");
    assert_eq!(Path::new(out.out().trim_end()), std::fs::canonicalize(&to).unwrap());
    assert_eq!(out.err(), "");
    let html = page(&to);
    assert!(html.contains("다른 가지의 답") && html.contains("안녕 \\u003c/script\\u003e"));
    let mut after = tree(&root(&home));
    after.retain(|path, _| !path.ends_with("gjc-session-2026_작업.html"));
    assert_eq!(after, before, "no lock, no breadcrumb, no index, no temporary file");
}

#[test]
fn the_second_path_is_where_it_goes_and_a_folder_gets_it_under_its_name() {
    let home = Home::new();
    let session = planted(&home);
    look(&home, &["--export"]).arg(&session).arg("결과 페이지.html").output().ok();
    page(&home.work().join("결과 페이지.html"));
    std::fs::create_dir(home.work().join("pages")).unwrap();
    look(&home, &["sessions", "export", "0197a0c2", "pages"]).output().ok();
    page(&home.work().join("pages/gjc-session-2026_작업.html"));
}

#[test]
fn a_missing_file_is_named_and_nothing_is_made() {
    let home = Home::new();
    planted(&home);
    let before = tree(&root(&home));
    let out = look(&home, &["--export", "no/such/세션.jsonl", "out.html"]).output();
    assert_eq!((out.code(), out.out().as_str()), (Some(1), ""));
    assert!(out.err().starts_with("gjc: File not found: no/such/세션.jsonl"), "{}", out.err());
    assert_eq!(look(&home, &["sessions", "export", "ffff"]).output().code(), Some(1));
    assert_eq!(tree(&root(&home)), before);
}

#[test]
fn what_stands_there_is_kept_unless_it_is_a_page() {
    let home = Home::new();
    let session = planted(&home);
    let notes = home.write("project/notes.html", "mine");
    let out = look(&home, &["sessions", "export", "0197a0c2", "notes.html"]).output();
    assert_eq!(out.code(), Some(1));
    assert!(out.err().contains("no earlier export") && out.err().contains("--force"), "{}", out.err());
    assert_eq!(std::fs::read_to_string(&notes).unwrap(), "mine");
    look(&home, &["sessions", "export", "0197a0c2", "notes.html", "--force"]).output().ok();
    page(&notes);
    look(&home, &["sessions", "export", "0197a0c2", "notes.html"]).output().ok();
    // A session is never written over, by whatever name it is meant.
    let before = std::fs::read(&session).unwrap();
    for force in [&["--force"][..], &[]] {
        let out = look(&home, &["sessions", "export", "0197a0c2"]).arg(&session).args(force).output();
        assert_eq!(out.code(), Some(1), "{}", out.err());
        let out = look(&home, &["--export"]).arg(&session).arg(&session).args(force).output();
        assert_eq!(out.code(), Some(1), "{}", out.err());
    }
    assert_eq!(std::fs::read(&session).unwrap(), before);
}

#[test]
fn programs_are_told_what_was_made() {
    let home = Home::new();
    let session = planted(&home);
    let told = json(&look(&home, &["sessions", "export", "0197a0c2", "a.html", "--json"]).output().ok());
    let path = PathBuf::from(told["page"].as_str().unwrap());
    assert_eq!(told["bytes"], page(&path).len());
    assert_eq!((&told["entries"], &told["damaged"]), (&json!(3), &json!(0)));
    assert_eq!(told["from"], session.display().to_string());
}

#[test]
fn damage_is_told_and_is_in_the_page() {
    let home = Home::new();
    let session = planted(&home);
    let text = std::fs::read_to_string(&session).unwrap() + "no record at all\n";
    std::fs::write(&session, text).unwrap();
    let out = look(&home, &["--export"]).arg(&session).output().ok();
    assert_eq!(out.err(), "gjc: the session is damaged in one place; the page says where\n");
    assert!(page(Path::new(out.out().trim_end())).contains("a line of 16 bytes is no entry"));
}

#[test]
fn a_last_line_that_is_not_finished_is_counted() {
    let home = Home::new();
    let session = planted(&home);
    let text = std::fs::read_to_string(&session).unwrap() + "{\"type\":\"message\",\"id\":\"00";
    std::fs::write(&session, text).unwrap();
    let out = look(&home, &["sessions", "export", "0197a0c2"]).output().ok();
    assert_eq!(out.err(), "gjc: the session is damaged in one place; the page says where\n");
    assert!(page(Path::new(out.out().trim_end())).contains("\"unfinished\":true"));
    assert_eq!(json(&look(&home, &["sessions", "export", "0197a0c2", "--json"]).output().ok())["damaged"], 1);
}

/// On the command line too an export is no copy, and the way that is one is told, with the session that was named.
#[test]
fn a_copy_on_the_command_line_leads_to_show() {
    let home = Home::new();
    let session = planted(&home);
    let before = tree(&home.work());
    let file = session.display().to_string();
    for word in ["copy", "clipboard", "--copy"] {
        for (args, named) in
            [(vec!["--export", &file, word], file.as_str()), (vec!["sessions", "export", "0197a0c2", word], "0197a0c2")]
        {
            let out = look(&home, &args).output();
            assert_eq!((out.code(), out.out().as_str()), (Some(2), ""), "{out}");
            let way = format!("gjc sessions show {named} --full --copy");
            assert!(out.err().contains("nothing is copied") && out.err().contains(&way), "{out}");
        }
    }
    assert_eq!(tree(&home.work()), before, "nothing was made");
}

/// A page of the command line passes the same gate, and bears the label of the session that it was made of.
#[test]
fn a_page_of_the_command_line_bears_the_label() {
    let home = Home::new();
    let session = planted(&home);
    let text = std::fs::read_to_string(&session).unwrap();
    let labelled = "\"id\":\"0000000c\",\"gjcLabel\":{\"l\":\"RESTRICTED\",\"t\":false}";
    std::fs::write(&session, text.replace("\"id\":\"0000000c\"", labelled)).unwrap();
    let out = look(&home, &["--export"]).arg(&session).output().ok();
    let html = page(Path::new(out.out().trim_end()));
    assert!(html.contains("<meta name=\"gjc-label\" content=\"RESTRICTED untrusted\">"));
    let shown = look(&home, &["sessions", "show", "0197a0c2", "--full"]).output().ok();
    assert!(shown.out().starts_with("── label\nRESTRICTED untrusted\n"), "{shown}");
}

/// A session that another process writes to is exported all the same: looking takes no lock.
#[test]
fn an_open_session_is_exported_by_another_process() {
    let home = Home::new();
    let stub = stub([text("stored answer")]);
    let mut run = rpc(&home, &stub);
    let file = file_of(&event(&mut run, "session"));
    say(&mut run, "1", "x");
    look(&home, &["--export"]).arg(&file).arg("other.html").output().ok();
    assert!(page(&home.work().join("other.html")).contains("stored answer"));
    say_closed(&mut run);
}

fn rpc<'h>(home: &'h Home, stub: &Stub) -> Running<'h> {
    on(home, stub).args(["--mode", "rpc"]).spawn()
}

#[track_caller]
fn call(run: &mut Running<'_>, id: &str, command: &Value) -> Value {
    run.send(&json!({"id": id, "command": command}).to_string());
    let line = run.wait_for(|line| {
        let value: Value = serde_json::from_str(line).unwrap();
        value["id"] == id && !value["outcome"].is_null()
    });
    serde_json::from_str(&line).unwrap()
}

#[track_caller]
fn event(run: &mut Running<'_>, kind: &str) -> Value {
    let line = run.wait_for(|line| serde_json::from_str::<Value>(line).unwrap()["type"] == kind);
    serde_json::from_str(&line).unwrap()
}

#[track_caller]
fn say(run: &mut Running<'_>, id: &str, text: &str) {
    let prompt = json!({"type": "prompt", "parts": [{"text": text, "origin": "typed"}]});
    assert_eq!(call(run, id, &prompt)["outcome"], "accepted");
    event(run, "turn_ended");
}

fn say_closed(run: &mut Running<'_>) {
    assert_eq!(call(run, "close", &json!({"type": "close"}))["outcome"], "done");
}

fn file_of(event: &Value) -> PathBuf {
    event["file"].as_str().unwrap().into()
}

#[test]
fn a_running_session_is_exported_with_its_system_prompt_and_tools() {
    let home = Home::new();
    let stub = stub([text("첫 대답")]);
    let mut run = rpc(&home, &stub);
    let file = file_of(&event(&mut run, "session"));
    let early = call(&mut run, "0", &json!({"type": "export"}));
    assert_eq!((&early["outcome"], &early["code"]), (&json!("refused"), &json!("nothing_stored")), "{early}");
    say(&mut run, "1", "내보낼 말");
    let before = std::fs::read(&file).unwrap();
    let done = call(&mut run, "2", &json!({"type": "export"}));
    assert_eq!(done["outcome"], "done", "{done}");
    let to = PathBuf::from(done["value"]["page"].as_str().unwrap());
    assert_eq!(to.file_name().unwrap().to_str().unwrap(), gjc_export::default_name(&file));
    let html = page(&to);
    assert_eq!(done["value"]["bytes"], html.len());
    assert!(html.contains("내보낼 말") && html.contains("첫 대답"));
    assert!(html.contains("\"text\":\"[{"), "the tools that the model was shown");
    assert!(html.contains("<meta name=\"gjc-label\" content=\"PUBLIC trusted\">"));
    assert_eq!(std::fs::read(&file).unwrap(), before, "an export stores nothing");
    // To another place, by a path of one's own; never over something else.
    let other = call(&mut run, "3", &json!({"type": "export", "path": "빈 칸.html"}));
    assert_eq!(Path::new(other["value"]["page"].as_str().unwrap()).file_name().unwrap(), "빈 칸.html", "{other}");
    home.write("project/mine.txt", "mine");
    let taken = call(&mut run, "4", &json!({"type": "export", "path": "mine.txt"}));
    assert_eq!((&taken["outcome"], &taken["code"]), (&json!("refused"), &json!("taken")), "{taken}");
    let over = call(&mut run, "5", &json!({"type": "export", "path": file, "force": true}));
    assert_eq!((&over["outcome"], &over["code"]), (&json!("refused"), &json!("taken")), "{over}");
    assert_eq!(std::fs::read(&file).unwrap(), before);
    say_closed(&mut run);
}

#[test]
fn copies_are_for_dump_and_memory_has_no_file() {
    let home = Home::new();
    let stub = stub([text("x")]);
    let mut run = on(&home, &stub).args(["--mode", "rpc", "--no-session"]).spawn();
    say(&mut run, "1", "x");
    for word in ["--copy", "clipboard", "copy"] {
        let refused = call(&mut run, word, &json!({"type": "export", "path": word}));
        assert_eq!(refused["code"], "use_dump");
        assert!(refused["hint"].as_str().unwrap().contains("/dump"), "{refused}");
    }
    let refused = call(&mut run, "2", &json!({"type": "export"}));
    assert_eq!(refused["code"], "in_memory", "{refused}");
    assert!(walk(&home.work()).is_empty(), "nothing was made");
    say_closed(&mut run);
}

/// What a person types behind `/export`: it ends at the first blank, quotes are told of, `--no-open` opens nothing.
#[test]
fn what_is_typed_ends_at_the_first_blank_and_a_quoted_path_is_refused_with_the_command_line() {
    let home = Home::new();
    let stub = stub([text("x")]);
    let mut run = rpc(&home, &stub);
    let file = file_of(&event(&mut run, "session"));
    say(&mut run, "1", "x");
    for (typed, name) in [("한글/페이지.html --no-open", "한글/페이지.html"), ("my page.html", "my"), ("--no-open", "")]
    {
        std::fs::create_dir_all(home.work().join("한글")).unwrap();
        let done = call(&mut run, typed, &json!({"type": "export", "typed": typed}));
        assert_eq!(done["outcome"], "done", "{done}");
        let usual = gjc_export::default_name(&file);
        let to = home.work().join(if name.is_empty() { &usual } else { name });
        assert_eq!(Path::new(done["value"]["page"].as_str().unwrap()), std::fs::canonicalize(to).unwrap());
        assert_eq!(done["value"].get("opened").is_some(), !typed.contains("--no-open"), "{done}");
    }
    // Another file stands there: the hint that is given can be followed.
    std::fs::write(home.work().join("쪽지.html"), "내 쪽지").unwrap();
    let refused = call(&mut run, "f1", &json!({"type": "export", "typed": "쪽지.html --no-open"}));
    assert_eq!(refused["code"], "taken", "{refused}");
    assert!(refused["hint"].as_str().unwrap().contains("--force"), "{refused}");
    let done = call(&mut run, "f2", &json!({"type": "export", "typed": "쪽지.html --force --no-open"}));
    assert_eq!(done["outcome"], "done", "{done}");
    page(&home.work().join("쪽지.html"));
    let before = tree(&home.work());
    for (typed, code, way) in [
        ("-f", "unknown_option", "--force"),
        ("page.html --open", "unknown_option", "--no-open"),
        ("\"my page.html\"", "quoted_path", "gjc sessions export"),
        ("'my page.html'", "quoted_path", "gjc sessions export"),
        ("--copy", "use_dump", "/dump"),
        ("clipboard", "use_dump", "/dump"),
        ("copy", "use_dump", "/dump"),
        ("--no-open copy", "use_dump", "/dump"),
    ] {
        let refused = call(&mut run, typed, &json!({"type": "export", "typed": typed}));
        assert_eq!((&refused["outcome"], &refused["code"]), (&json!("refused"), &json!(code)), "{refused}");
        assert!(refused["hint"].as_str().unwrap().contains(way), "{refused}");
    }
    assert_eq!(tree(&home.work()), before, "nothing was made");
    say_closed(&mut run);
}

/// A desktop's opener that tells who it was called with, in a pipe that waits for it.
#[test]
fn a_page_is_opened_by_the_programs_of_the_desktop() {
    let home = Home::new();
    let opened = home.path().join("opened");
    assert!(std::process::Command::new("mkfifo").arg(&opened).status().unwrap().success());
    let script = format!("#!/bin/sh\nprintf '%s' \"$1\" > '{}'\n", opened.display());
    let program = home.write("bin/xdg-open", script);
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    // A program of that name in the project's folder is never meant.
    let trap = home.write("project/xdg-open", "#!/bin/sh\ntouch trapped\n");
    std::fs::set_permissions(&trap, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!(".:{}:/usr/bin:/bin", program.parent().unwrap().display());
    let stub = stub([text("x")]);
    let mut run = on(&home, &stub).args(["--mode", "rpc"]).env("DISPLAY", ":7").env("PATH", path).spawn();
    say(&mut run, "1", "x");
    let done = call(&mut run, "2", &json!({"type": "export", "typed": "페이지;$(id).html"}));
    assert_eq!(done["value"]["opened"], true, "{done}");
    assert_eq!(std::fs::read_to_string(&opened).unwrap(), done["value"]["page"].as_str().unwrap());
    assert!(!home.work().join("trapped").exists());
    // A program asks for it in so many words.
    let done = call(&mut run, "3", &json!({"type": "export", "path": "b.html", "open": true}));
    assert_eq!(std::fs::read_to_string(&opened).unwrap(), done["value"]["page"].as_str().unwrap());
    say_closed(&mut run);
}

#[test]
fn where_nothing_can_be_opened_the_page_is_there_and_it_is_told_why() {
    let home = Home::new();
    let stub = stub([text("x"), text("y")]);
    for (display, why) in [("", "no desktop here"), (":7", "xdg-open is not there")] {
        let bin = home.path().join("few");
        std::fs::create_dir_all(&bin).unwrap();
        for name in ["sh", "setsid"] {
            let _ = std::os::unix::fs::symlink(Path::new("/usr/bin").join(name), bin.join(name));
        }
        let mut run = on(&home, &stub).args(["--mode", "rpc"]).env("DISPLAY", display).env("PATH", &bin).spawn();
        say(&mut run, "1", "x");
        let done = call(&mut run, "2", &json!({"type": "export", "typed": "a.html"}));
        assert_eq!(done["value"]["opened"], false, "{done}");
        assert!(done["value"]["notOpened"].as_str().unwrap().contains(why), "{done}");
        page(&home.work().join("a.html"));
        say_closed(&mut run);
    }
}

/// A session in memory has no file, however it is asked.
#[test]
fn a_session_in_memory_says_why_it_is_not_exported() {
    let home = Home::new();
    let stub = stub([text("x")]);
    let mut run = on(&home, &stub).args(["--mode", "rpc", "--no-session"]).spawn();
    say(&mut run, "1", "x");
    let refused = call(&mut run, "2", &json!({"type": "export", "typed": "page.html"}));
    assert_eq!(refused["code"], "in_memory");
    assert!(refused["sentence"].as_str().unwrap().contains("lives in memory only"), "{refused}");
    assert!(refused["hint"].as_str().unwrap().contains("/dump"), "{refused}");
    say_closed(&mut run);
}
