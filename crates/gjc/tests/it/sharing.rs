//! `gjc sessions share`, the command `share`, and the clipboard: what leaves, after which yes, and what it leaves without.

use crate::kit::*;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use testkit::harness::{Home, Running};

const ID: &str = "0197a0c2-0000-7000-8000-000000000001";

fn secrets() -> [String; 4] {
    [
        format!("ghp_{}", "a1B2".repeat(9)),
        format!("sk-ant-api03-{}", "Zz9_".repeat(10)),
        "-----BEGIN RSA PRIVATE KEY-----\nMIIEdeadbeef\n-----END RSA PRIVATE KEY-----".into(),
        "Authorization: Basic dXNlcjpwdw==".into(),
    ]
}

fn planted(home: &Home) -> PathBuf {
    let [github, anthropic, pem, basic] = secrets();
    let result = json!({"role": "toolResult", "toolCallId": "c", "toolName": "bash", "isError": false, "timestamp": 1,
        "content": [{"type": "text", "text": format!("열쇠 {anthropic} 끝\n{pem}\n{basic}")}]});
    let text = header(ID, "/p/한글")
        + &user("0000000a", None, &format!("내 열쇠는 {github} 입니다"))
        + &said("0000000b", "0000000a", "봤습니다")
        + &message("0000000c", Some("0000000b"), &result)
        + &said("0000000d", "0000000c", "끝");
    plant(home, "--p--", "2026_작업.jsonl", text)
}

/// A program in a folder that stands first in `PATH`; its folder.
fn program(home: &Home, name: &str, does: &str) -> PathBuf {
    let file = home.write(Path::new("bin").join(name), format!("#!/bin/sh\n{does}\n"));
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    file.parent().unwrap().to_owned()
}

fn with_usual(first: &Path) -> String {
    format!("{}:/usr/bin:/bin", first.display())
}

/// A `gh` that keeps what it is given, and answers as the real one does where nobody sees it.
fn gh(home: &Home) -> (PathBuf, String) {
    let kept = home.tmp();
    let does = format!(
        "printf '%s\\n' \"$@\" >> '{0}/gh.args'\ncat > '{0}/gh.page'\necho '- Creating gist' >&2\necho https://gist.github.com/ann/0a1b2c",
        kept.display()
    );
    (kept, with_usual(&program(home, "gh", &does)))
}

fn sent(kept: &Path) -> Option<(String, String)> {
    let page = std::fs::read_to_string(kept.join("gh.page")).ok()?;
    Some((std::fs::read_to_string(kept.join("gh.args")).unwrap(), page))
}

#[track_caller]
fn assert_clean(page: &str) {
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"), "a whole page");
    assert!(page.contains("내 열쇠는 [secret] 입니다") && page.contains("열쇠 [secret] 끝"), "words stay: {page}");
    for secret in secrets() {
        for line in secret.lines().filter(|line| !line.contains("Authorization")) {
            assert!(!page.contains(line), "{line}");
        }
    }
    assert!(!page.contains("dXNlcjpwdw"));
}

/// K46: what was taken out is listed, nothing is sent without a yes, and what is sent has no key in it.
#[test]
fn what_is_shared_is_without_keys_and_goes_as_a_secret_gist_after_a_yes() {
    let home = Home::new();
    let session = planted(&home);
    let before = std::fs::read(&session).unwrap();
    let (kept, path) = gh(&home);
    let share = |args: &[&str]| look(&home, &["sessions", "share", "0197a0c2"]).args(args).env("PATH", &path);
    let out = share(&[]).output();
    assert_eq!(out.code(), Some(2), "nobody can be asked: {out}");
    assert!(out.err().contains("taken out of it:") && out.err().contains("   1 × GitHub token"), "{out}");
    assert!(out.err().contains("say --yes beforehand"), "{out}");
    assert_eq!(sent(&kept), None, "nothing leaves without a yes");
    let out = share(&["--yes"]).output().ok();
    assert_eq!(out.out(), "https://gist.github.com/ann/0a1b2c\n");
    // The page's name is made of the first words: a key in them goes there too, and is counted once.
    for (count, kind) in [(1, "GitHub token"), (1, "Anthropic key"), (1, "private key"), (1, "authorization")] {
        assert!(out.err().contains(&format!("   {count} × {kind}")), "{kind}: {out}");
    }
    let (args, page) = sent(&kept).unwrap();
    assert_eq!(args, "gist\ncreate\n--desc\nA session of gjc\n--filename\ngjc-session-2026_작업.html\n-\n");
    assert_clean(&page);
    assert!(out.err().contains(&format!("({} bytes)", page.len())), "{out}");
    assert_eq!(std::fs::read(&session).unwrap(), before);
    let told = json(&share(&["--yes", "--json"]).output().ok());
    assert_eq!((&told["address"], &told["session"]), (&json!("https://gist.github.com/ann/0a1b2c"), &json!(ID)));
    assert_eq!(told["masked"].as_array().unwrap().len(), 4);
}

/// At a terminal, made by `script`: a no is a no.
#[test]
fn a_person_who_says_no_sends_nothing() {
    let home = Home::new();
    planted(&home);
    let (kept, path) = gh(&home);
    let at_terminal = |says: &str| {
        let line = format!("{} sessions share 0197a0c2", env!("CARGO_BIN_EXE_gjc"));
        home.run("script").args(["-qec", &line, "/dev/null"]).env("PATH", &path).stdin(format!("{says}\n")).output()
    };
    for no in ["n", "", "아니요"] {
        let out = at_terminal(no);
        assert_eq!(out.code(), Some(0), "{out}");
        assert!(out.out().contains("share it? [y/N]") && out.out().contains("nothing was sent"), "{out}");
        assert_eq!(sent(&kept), None);
    }
    assert!(at_terminal("예").ok().out().contains("https://gist.github.com/ann/0a1b2c"));
    assert_clean(&sent(&kept).unwrap().1);
}

#[test]
fn a_gh_that_is_absent_logged_out_or_fails_has_its_own_sentence() {
    let home = Home::new();
    planted(&home);
    let share = |path: &str| look(&home, &["sessions", "share", "0197a0c2", "--yes"]).env("PATH", path).output();
    let out = share(&home.tmp().display().to_string());
    assert_eq!((out.code(), out.out().as_str()), (Some(1), ""), "{out}");
    assert!(out.err().contains("there is no gh here to make a gist with; nothing was sent\nhint: install"), "{out}");
    let out = share(&with_usual(&program(&home, "gh", "echo 'To get started, run: gh auth login' >&2\nexit 4")));
    assert_eq!(out.code(), Some(1), "{out}");
    assert!(out.err().contains("gh is not logged in to GitHub; nothing was sent\nhint: log in"), "{out}");
    let out = share(&with_usual(&program(&home, "gh", "echo 'HTTP 502: 서버가 없음' >&2\nexit 1")));
    assert_eq!(out.code(), Some(1), "{out}");
    assert!(out.err().contains("not shared: gh ended with exit code 1: HTTP 502: 서버가 없음\n"), "{out}");
    let out = share(&with_usual(&program(&home, "gh", "kill -9 $$")));
    assert_eq!(out.code(), Some(1), "{out}");
    assert!(out.err().contains("whether the session was shared is not known"), "{out}");
    let out = share(&with_usual(&program(&home, "gh", "exit 1")));
    assert_eq!(out.code(), Some(1), "{out}");
    assert!(out.err().contains("not shared: gh ended with exit code 1\n"), "nothing was said: {out}");
}

#[test]
fn a_command_of_the_persons_own_takes_the_place_of_the_gist() {
    let home = Home::new();
    planted(&home);
    let line = "cat > \"$HOME/공유.html\"; echo \"http://내부/$GJC_SHARE_NAME\"";
    look(&home, &["config", "set", "share.command", line]).output().ok();
    let out = look(&home, &["sessions", "share", "0197a0c2", "--yes"]).output().ok();
    assert_eq!(out.out(), "http://내부/gjc-session-2026_작업.html\n");
    assert!(out.err().contains("goes to the command of share.command"), "{out}");
    assert_clean(&std::fs::read_to_string(home.path().join("공유.html")).unwrap());
}

/// The label gate of the sink: a confidential session goes to no public place, whoever says yes.
#[test]
fn a_session_above_the_place_is_not_shared() {
    let home = Home::new();
    let file = planted(&home);
    let text = std::fs::read_to_string(&file).unwrap();
    let labelled = "\"id\":\"0000000d\",\"parentId\":\"0000000c\",\"gjcLabel\":{\"l\":\"CONFIDENTIAL\",\"t\":true}";
    std::fs::write(&file, text.replace("\"id\":\"0000000d\",\"parentId\":\"0000000c\"", labelled)).unwrap();
    let (kept, path) = gh(&home);
    let share = || look(&home, &["sessions", "share", "0197a0c2", "--yes"]).env("PATH", &path).output();
    let out = share();
    assert_eq!(out.code(), Some(1), "{out}");
    assert!(
        out.err().contains("the session is CONFIDENTIAL, and a secret gist (gh) may get no more than PUBLIC"),
        "{out}"
    );
    assert_eq!(sent(&kept), None);
    look(&home, &["config", "set", "share.level", "CONFIDENTIAL"]).output().ok();
    share().ok();
    assert_clean(&sent(&kept).unwrap().1);
}

/// At a terminal, made by `script`: what comes to the session while the person thinks is not what they say yes to. The label
/// is looked at again with the page, so that nothing CONFIDENTIAL leaves that was not there when it was asked.
#[test]
fn what_the_session_comes_to_know_before_the_yes_is_not_sent() {
    for (label, told) in [
        (
            json!({"l": "CONFIDENTIAL", "t": true}),
            "the session is CONFIDENTIAL, and a secret gist (gh) may get no more",
        ),
        (json!(null), "the session has changed since you saw it; nothing was sent"),
    ] {
        let home = Home::new();
        let session = planted(&home);
        let (kept, path) = gh(&home);
        let line = format!("{} sessions share 0197a0c2", env!("CARGO_BIN_EXE_gjc"));
        let mut run = home.run("script").args(["-qec", &line, "/dev/null"]).env("PATH", &path).spawn();
        run.wait_for(|line| line.contains("GitHub token"));
        let mut entry: Value = serde_json::from_str(&said("0000000e", "0000000d", "연봉 1억 2천")).unwrap();
        if !label.is_null() {
            entry["gjcLabel"] = label;
        }
        let text = std::fs::read_to_string(&session).unwrap() + &format!("{entry}\n");
        std::fs::write(&session, text).unwrap();
        run.send("y");
        let out = run.wait();
        assert_eq!(out.code(), Some(1), "{out}");
        assert!(out.out().contains(told), "{out}");
        assert_eq!(sent(&kept), None, "{told}");
    }
}

#[track_caller]
fn call(run: &mut Running<'_>, id: &str, command: &Value) -> Value {
    run.send(&json!({"id": id, "command": command}).to_string());
    let line = run.wait_for(|line| line.contains("\"outcome\"") && line.contains(&format!("\"id\":\"{id}\"")));
    serde_json::from_str(&line).unwrap()
}

fn say(run: &mut Running<'_>, id: &str, text: &str) {
    call(run, id, &json!({"type": "prompt", "parts": [{"text": text, "origin": "typed"}]}));
    run.wait_for(|line| line.contains("\"turn_ended\""));
}

#[test]
fn a_running_session_shares_the_page_that_was_seen_and_no_other() {
    let home = Home::new();
    let (kept, path) = gh(&home);
    let stub = stub([text("대답"), text("또")]);
    let mut run = on(&home, &stub).args(["--mode", "rpc"]).env("PATH", &path).spawn();
    let early = call(&mut run, "0", &json!({"type": "share"}));
    assert_eq!(early["code"], "nothing_stored", "{early}");
    // The provider's own key, in words of a person.
    say(&mut run, "1", &format!("이것은 {KEY} 이다"));
    let seen = call(&mut run, "2", &json!({"type": "share"}));
    assert_eq!((&seen["outcome"], &seen["value"]["shared"]), (&json!("done"), &json!(false)), "{seen}");
    assert_eq!(seen["value"]["to"], "a secret gist (gh)");
    assert_eq!(seen["value"]["masked"][0]["count"].as_u64().map(|count| count > 0), Some(true), "{seen}");
    say(&mut run, "3", "그 뒤의 말");
    for (id, token) in [("4", seen["value"]["confirm"].as_str().unwrap()), ("5", "yes")] {
        let refused = call(&mut run, id, &json!({"type": "share", "confirm": token}));
        assert_eq!(refused["code"], "changed", "{refused}");
    }
    assert_eq!(sent(&kept), None, "a look sends nothing, nor does an old yes");
    let seen = call(&mut run, "6", &json!({"type": "share"}));
    let done = call(&mut run, "7", &json!({"type": "share", "confirm": seen["value"]["confirm"]}));
    assert_eq!(done["value"]["shared"], true, "{done}");
    assert_eq!(done["value"]["address"], "https://gist.github.com/ann/0a1b2c", "{done}");
    let (_, page) = sent(&kept).unwrap();
    assert_eq!(seen["value"]["bytes"], page.len());
    assert!(page.contains("이것은 [secret] 이다") && page.contains("그 뒤의 말") && !page.contains(KEY));
    call(&mut run, "close", &json!({"type": "close"}));
}

#[test]
fn a_session_in_memory_says_why_it_is_not_shared() {
    let home = Home::new();
    let (kept, path) = gh(&home);
    let stub = stub([text("대답")]);
    let mut run = on(&home, &stub).args(["--mode", "rpc", "--no-session"]).env("PATH", &path).spawn();
    say(&mut run, "1", "물음");
    let refused = call(&mut run, "2", &json!({"type": "share"}));
    assert_eq!(refused["code"], "in_memory", "{refused}");
    assert!(refused["sentence"].as_str().unwrap().contains("no file to share"), "{refused}");
    assert!(refused["hint"].as_str().unwrap().contains("/dump"), "{refused}");
    assert_eq!(sent(&kept), None);
    call(&mut run, "close", &json!({"type": "close"}));
}

#[test]
fn the_clipboard_gets_what_the_screen_would() {
    let home = Home::new();
    planted(&home);
    let shown = look(&home, &["sessions", "show", "0197a0c2", "--full"]).output().ok().out();
    let before = tree(&home.agent_dir());
    for (name, display) in [("wl-copy", "WAYLAND_DISPLAY"), ("xclip", "DISPLAY"), ("xsel", "DISPLAY")] {
        let kept = home.tmp().join(name);
        let folder = program(&home, name, &format!("cat > '{}'", kept.display()));
        // Another display's program is not asked.
        let out = look(&home, &["sessions", "show", "0197a0c2", "--full", "--copy"])
            .env("PATH", with_usual(&folder))
            .env(display, "wayland-9")
            .output()
            .ok();
        let said = format!("gjc: the session is in the clipboard: {} bytes, by {name}\n", shown.len());
        assert_eq!((out.out(), out.err()), (String::new(), said));
        assert_eq!(std::fs::read_to_string(&kept).unwrap(), shown);
        std::fs::remove_file(folder.join(name)).unwrap();
    }
    assert_eq!(tree(&home.agent_dir()), before);
}

#[test]
fn without_a_clipboard_the_text_is_offered_to_a_file() {
    let home = Home::new();
    planted(&home);
    // Harness processes have no terminal: a session of its own takes the last one away.
    let gjc = env!("CARGO_BIN_EXE_gjc");
    let out = home
        .run("setsid")
        .args(["--wait", gjc, "sessions", "show", "0197a0c2", "--full", "--copy"])
        .env("DISPLAY", ":9")
        .output();
    assert_eq!((out.code(), out.out().as_str()), (Some(1), ""), "{out}");
    assert!(out.err().contains("there is no clipboard here"), "{out}");
    assert!(out.err().contains("hint: write it to a file: gjc sessions show ID --full > dump.txt"), "{out}");
    // In a terminal it is the terminal's to keep.
    let line = format!("{gjc} sessions show 0197a0c2 --full --copy");
    let out = home.run("script").args(["-qec", &line, "/dev/null"]).output().ok();
    assert!(out.out().contains("\u{1b}]52;c;") && out.out().contains("by the terminal"), "{out}");
}
