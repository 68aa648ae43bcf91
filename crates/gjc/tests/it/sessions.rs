//! `gjc sessions list|show|verify` and `gjc context show`: what they say, and that they change nothing.

use crate::kit::*;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use testkit::anthropic::Turn;
use testkit::harness::Home;

/// A session's bytes: two messages, the last at this minute.
fn two(id: &str, cwd: &str, minute: u32, prompt: &str) -> String {
    let text = header(id, cwd) + &user("0000000a", None, prompt) + &said("0000000b", "0000000a", "대답입니다");
    text.replace("07:19:00", &format!("07:{minute:02}:00"))
}

/// Runs something that must not change a byte of the home.
#[track_caller]
fn read_only(home: &Home, args: &[&str]) -> testkit::harness::Output {
    let before = tree(&root(home));
    let out = look(home, args).output();
    assert_eq!(tree(&root(home)), before, "{args:?} changed something");
    out
}

#[test]
fn no_sessions_yet() {
    let home = Home::new();
    let out = read_only(&home, &["sessions", "list"]);
    assert_eq!((out.code(), out.out().as_str()), (Some(0), ""));
    steady(&home, || insta::assert_snapshot!(out.err()));
    assert_eq!(json(&read_only(&home, &["sessions", "list", "--json"])), json!({"sessions": [], "unreadable": []}));
    assert_eq!(
        json(&read_only(&home, &["sessions", "verify", "--all", "--json"])),
        json!({"sound": true, "files": []})
    );
}

#[test]
fn the_list_is_newest_first_and_says_what_each_is() {
    let home = Home::new();
    plant(&home, "--p--", "old.jsonl", two("0197a0c2-0000-7000-8000-000000000001", "/p", 20, "오래된 물음입니다"));
    plant(
        &home,
        "--q--",
        "new.jsonl",
        two(
            "0197a0c2-0000-7000-8000-000000000002",
            "/q/한글 폴더",
            50,
            "\n\n  둘째 줄에서 시작하는 아주 긴 첫 물음이고, 표에서는 잘려야 하며 한글은 두 칸입니다\n더",
        ),
    );
    let named = two("0197a0c2-0000-7000-8000-000000000003", "/p", 40, "이름이 있음")
        + "{\"type\":\"session_info\",\"id\":\"0000000c\",\"parentId\":\"0000000b\",\"timestamp\":\"2026-06-05T07:41:00.000Z\",\"name\":\"이름 붙인 세션\"}\n";
    plant(&home, "--p--", "named.jsonl", named);
    // Found by its id only: there is nothing to go on with.
    plant(&home, "--p--", "empty.jsonl", header("0197a0c2-0000-7000-8000-000000000004", "/p"));
    // Not a session.
    plant(&home, "--p--", "foreign.jsonl", "{\"hello\":1}\n");
    plant(&home, "--p--", "notes.txt", "x");
    let out = read_only(&home, &["sessions", "list"]).ok();
    steady(&home, || insta::assert_snapshot!("list", shown(&out)));
    let listed = json(&read_only(&home, &["sessions", "list", "--json"]).ok());
    steady(&home, || insta::assert_json_snapshot!("list_json", listed));
    assert_eq!(read_only(&home, &["sessions", "show", "0197a0c2-0000-7000-8000-000000000004"]).code(), Some(0));
}

#[test]
fn a_word_means_one_session_or_an_error_that_helps() {
    let home = Home::new();
    for n in 1..=3 {
        plant(
            &home,
            "--p--",
            &format!("{n}.jsonl"),
            two(&format!("0197a0c2-0000-7000-8000-00000000000{n}"), "/p", n + 10, &format!("물음 {n}")),
        );
    }
    plant(
        &home,
        "--w--",
        "4.jsonl",
        two("0197ffff-0000-7000-8000-000000000004", home.work().to_str().unwrap(), 9, "여기"),
    );
    let mut all = String::new();
    for word in ["0197", "0197a0c2", "0197A0C2-0000-7000-8000-000000000002", "ffff", "", "없는.jsonl", "/etc", "./"] {
        let out = read_only(&home, &["sessions", "show", word]);
        all += &format!("# {word:?}: {}\n", shown(&out));
    }
    steady(&home, || insta::assert_snapshot!(all));
}

#[test]
fn a_session_is_shown_as_it_was_and_so_is_its_context() {
    let home = Home::new();
    home.write("project/메모.txt", "첫째\n둘째\n");
    let stub = stub([
        Turn::new("m1")
            .thinking("읽어 보자", "sig==")
            .text("읽습니다.")
            .tool_call("c1", "read", &json!({"path": "메모.txt"}))
            .tool_call("c2", "bash", &json!({"command": "false"})),
        text("두 줄입니다."),
    ]);
    ask(&home, &stub, "몇 줄이야?").stdin("붙인 글").output().ok();
    let file = the_session(&home);
    let id = id_of(&file);
    for (name, args) in
        [("show", &["sessions", "show"][..]), ("verify", &["sessions", "verify"]), ("context", &["context", "show"])]
    {
        let out = read_only(&home, &[args, &[&id]].concat()).ok();
        steady(&home, || insta::assert_snapshot!(name, shown(&out)));
        let out = read_only(&home, &[args, &[&id, "--json"]].concat()).ok();
        let text = out.out();
        steady(&home, || insta::assert_snapshot!(format!("{name}_json"), text));
    }
    let stored = messages(&file);
    assert_eq!(
        json(&look(&home, &["sessions", "show", &id, "--json"]).output())["messages"],
        Value::Array(stored.clone())
    );
    assert_eq!(
        json(&look(&home, &["context", "show", &id, "--json"]).output())["messages"],
        Value::Array(stored.clone())
    );
    // At an entry: what was context there.
    let (first, _) = &answers(&file)[0];
    let at = json(&read_only(&home, &["context", "show", &id, "--at", first, "--json"]).ok());
    assert_eq!((&at["at"], &at["messages"]), (&json!(first), &json!(stored[..2])));
}

#[test]
fn a_compaction_that_keeps_the_system_text_shows_it_once_and_its_summary() {
    let home = Home::new();
    let id = "0197a0c2-0000-7000-8000-00000000000c";
    let compaction = json!({"type": "compaction", "id": "0000000c", "parentId": "0000000b",
        "timestamp": "2026-06-05T07:19:01.000Z", "summary": "이때까지의 요약", "firstKeptEntryId": "0000000b",
        "tokensBefore": 9, "systemMessage": {"role": "system", "content": "그때의 지시", "timestamp": 1}});
    plant(&home, "--p--", "compacted.jsonl", two(id, "/p", 20, "물음") + &format!("{compaction}\n"));
    let out = read_only(&home, &["context", "show", id]).ok().out();
    for said in ["이때까지의 요약", "그때의 지시", "대답입니다"] {
        assert_eq!(out.matches(said).count(), 1, "{said}: {out}");
    }
    assert_eq!(out.matches("── 0000000c user").count(), 2, "{out}");
}

#[test]
fn a_message_that_is_nested_too_deep_is_shown_but_for_that() {
    let home = Home::new();
    let id = "0197a0c2-0000-7000-8000-00000000000d";
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let result = format!(
        r#"{{"type":"message","id":"0000000d","parentId":"0000000b","timestamp":"2026-06-05T07:19:01.000Z","message":{{"role":"custom","content":"옆의 글","details":{deep},"timestamp":1}}}}"#
    );
    plant(&home, "--p--", "deep.jsonl", two(id, "/p", 20, "물음") + &result + "\n");
    for args in [["sessions", "show", id, "--json"], ["context", "show", id, "--json"]] {
        let shown = json(&read_only(&home, &args).ok());
        let message = &shown["messages"][2];
        assert_eq!(message["content"], "옆의 글");
        assert!(message["details"].to_string().contains("nested too deep to be shown"));
    }
}

#[test]
fn looking_needs_no_right_to_write_and_makes_nothing() {
    let home = Home::new();
    let stub = stub([text("네")]);
    ask(&home, &stub, "안녕").output().ok();
    let file = the_session(&home);
    let id = id_of(&file);
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o400)).unwrap();
    let path = file.to_str().unwrap();
    for args in [
        &["sessions", "list"][..],
        &["sessions", "list", "--json"],
        &["sessions", "show", &id],
        &["sessions", "show", path],
        &["sessions", "verify", &id],
        &["sessions", "verify", "--all", "--json"],
        &["context", "show", &id, "--json"],
        &["context", "request", &id],
    ] {
        read_only(&home, args).ok();
    }
}

#[test]
fn a_first_message_of_half_a_megabyte_is_listed() {
    let home = Home::new();
    let image = "A".repeat(500_000);
    let first = message(
        "0000000a",
        None,
        &json!({"role": "user", "timestamp": 1, "content": [
        {"type": "image", "data": image, "mimeType": "image/png"}, {"type": "text", "text": "그림을 봐 줘"}]}),
    );
    plant(
        &home,
        "--p--",
        "big.jsonl",
        header("0197a0c2-0000-7000-8000-000000000001", "/p") + &first + &said("0000000b", "0000000a", "봤어요"),
    );
    let listed = json(&read_only(&home, &["sessions", "list", "--json"]).ok());
    assert_eq!(
        (&listed["sessions"][0]["firstMessage"], &listed["sessions"][0]["messages"]),
        (&json!("그림을 봐 줘"), &json!(2))
    );
    let long = header("0197a0c2-0000-7000-8000-000000000002", "/p") + &user("0000000a", None, &"한글 ".repeat(100_000));
    plant(&home, "--p--", "long.jsonl", long);
    let listed = json(&read_only(&home, &["sessions", "list", "--json"]).ok());
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 2);
}

#[test]
fn a_file_that_cannot_be_read_hides_no_other() {
    let home = Home::new();
    plant(&home, "--p--", "good.jsonl", two("0197a0c2-0000-7000-8000-000000000001", "/p", 20, "좋음"));
    plant(
        &home,
        "--p--",
        "future.jsonl",
        header("0197a0c2-0000-7000-8000-000000000002", "/p").replace("\"version\":3", "\"version\":99"),
    );
    plant(&home, "--p--", "nothing.jsonl", "");
    plant(&home, "--p--", "binary.jsonl", b"\0\xff\xfe\0\n");
    // A folder and a link to nowhere with the names of sessions: modes would not stop root.
    std::fs::create_dir(home.agent_dir().join("sessions/--p--/folder.jsonl")).unwrap();
    std::os::unix::fs::symlink("/없다", home.agent_dir().join("sessions/--p--/link.jsonl")).unwrap();
    std::os::unix::fs::symlink("loop.jsonl", home.agent_dir().join("sessions/--p--/loop.jsonl")).unwrap();
    home.write("home/.gjc/agent/sessions/a file beside the buckets", "x");
    let out = read_only(&home, &["sessions", "list"]).ok();
    steady(&home, || insta::assert_snapshot!("unreadable", shown(&out)));
    let verified = read_only(&home, &["sessions", "verify", "--all"]);
    assert_eq!(verified.code(), Some(1));
    steady(&home, || insta::assert_snapshot!("unreadable_verify", shown(&verified)));
}

#[test]
fn a_resumed_session_keeps_its_model_and_its_tools() {
    let home = Home::new();
    let stub = stub([text("하나"), text("둘"), text("셋")]);
    let run = |prompt: &str| gjc(&home).args(["-p", "--provider-url", &stub.url(), prompt]);
    run("a").args(["--model", "anthropic/mine", "--tools", "read"]).output().ok();
    let id = id_of(&the_session(&home));
    run("b").args(["--resume", &id]).output().ok();
    run("c").args(["--resume", &id, "--model", "anthropic/other", "--tools", "read,bash"]).output().ok();
    let asked: Vec<(Value, usize)> = stub
        .requests()
        .iter()
        .map(|request| request.json())
        .map(|body| (body["model"].clone(), body["tools"].as_array().map_or(0, Vec::len)))
        .collect();
    assert_eq!(asked, [(Value::from("mine"), 1), (Value::from("mine"), 1), (Value::from("other"), 2)]);
}

#[test]
fn a_session_thinks_as_long_as_it_was_told_to_and_the_family_knows() {
    let home = Home::new();
    let stub = stub([text("하나"), text("둘"), text("셋")]);
    let run = |prompt: &str| on(&home, &stub).args(["-p", prompt]);
    run("a").args(["--thinking", "medium"]).output().ok();
    let file = the_session(&home);
    let id = id_of(&file);
    run("b").args(["--resume", &id]).output().ok();
    run("c").args(["--resume", &id, "--thinking", "off"]).output().ok();
    let thinking = |n: usize| stub.requests()[n].json()["thinking"].clone();
    assert_eq!(thinking(0), json!({"type": "enabled", "budget_tokens": 10_240}));
    assert_eq!(thinking(1), thinking(0));
    assert_eq!(thinking(2), Value::Null);
    let levels: Vec<Value> = lines(&file)
        .into_iter()
        .filter(|line| line["type"] == "thinking_level_change")
        .map(|line| line["thinkingLevel"].clone())
        .collect();
    assert_eq!(levels, ["medium", "off"]);
    let wrong = run("d").args(["--thinking", "매우"]).output();
    assert_eq!(wrong.code(), Some(2));
}
