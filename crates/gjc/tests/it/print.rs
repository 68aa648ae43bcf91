//! `-p`: one answer on stdout; a real loop of tools; what is on disk afterwards.

use crate::kit::*;
use serde_json::json;
use std::os::unix::fs::PermissionsExt;
use testkit::anthropic::Turn;
use testkit::harness::Home;

#[test]
fn the_answer_is_all_there_is_on_stdout() {
    let home = Home::new();
    let stub = stub([text("안녕하세요.\n  둘째 줄  \n")]);
    let out = ask(&home, &stub, "인사해 줘").output().ok();
    assert_eq!(out.out(), "안녕하세요.\n  둘째 줄  \n\n", "the text as it is, and one line feed");
    assert_eq!(out.err(), "");
    let requests = stub.requests();
    assert_eq!(requests.len(), 1);
    assert_eq!((requests[0].method.as_str(), requests[0].path.as_str()), ("POST", "/v1/messages"));
    assert_eq!(requests[0].header("x-api-key"), Some(KEY));
    let body = requests[0].json();
    assert_eq!(body["model"], "claude-stub-1");
    assert_eq!(body["stream"], true);
    assert_eq!(body["messages"][0]["content"][0]["text"], "인사해 줘");
    assert!(body["system"].to_string().contains("Today is "), "{body}");
}

#[test]
fn thinking_is_no_part_of_the_answer() {
    let home = Home::new();
    let stub = stub([Turn::new("m").thinking("속으로만", "sig==").text("하나").text("둘")]);
    assert_eq!(ask(&home, &stub, "x").output().ok().out(), "하나\n둘\n");
}

#[test]
fn tools_work_on_real_files_until_the_model_has_nothing_left_to_ask() {
    let home = Home::new();
    home.write("project/src/메모.txt", "첫째\n둘째\n");
    let stub = stub([
        Turn::new("m1").text("읽습니다.").tool_call("c1", "read", &json!({"path": "src/메모.txt"})),
        Turn::new("m2").tool_call("c2", "write", &json!({"path": "새 폴더/새.txt", "content": "한글 파일\n"})),
        Turn::new("m3").tool_call(
            "c3",
            "edit",
            &json!({"path": "src/메모.txt", "edits": [{"old": "둘째", "new": "두 번째"}]}),
        ),
        Turn::new("m4").tool_call("c4", "bash", &json!({"command": "cat src/메모.txt; pwd; echo 오류 >&2; exit 3"})),
        text("끝났습니다."),
    ]);
    let out = ask(&home, &stub, "고쳐 줘").output().ok();
    assert_eq!((out.out().as_str(), out.err().as_str()), ("끝났습니다.\n", ""));
    assert_eq!(std::fs::read_to_string(home.work().join("src/메모.txt")).unwrap(), "첫째\n두 번째\n");
    assert_eq!(std::fs::read_to_string(home.work().join("새 폴더/새.txt")).unwrap(), "한글 파일\n");
    let requests = stub.requests();
    assert_eq!(requests.len(), 5, "one request an answer");
    assert!(requests.iter().all(|request| request.connection == 0), "one connection serves them all");
    let result = |request: usize| {
        let body = requests[request].json();
        let last = body["messages"].as_array().unwrap().last().unwrap()["content"].clone();
        assert_eq!(last.as_array().unwrap().len(), 1, "{last}");
        last[0].clone()
    };
    assert_eq!(result(1)["tool_use_id"], "c1");
    assert!(result(1)["content"].to_string().contains("둘째"), "{}", result(1));
    let bash = result(4);
    let said = bash["content"].to_string();
    let pwd = home.work().display().to_string();
    assert!(said.contains("두 번째") && said.contains("오류") && said.contains(&pwd), "{said}");
    assert_eq!(bash["is_error"], true, "exit 3 is an error: {bash}");
    let roles: Vec<_> = messages(&the_session(&home)).iter().map(|m| m["role"].as_str().unwrap().to_owned()).collect();
    let turn = ["assistant", "toolResult"];
    let expected: Vec<_> = ["user"].into_iter().chain(turn.into_iter().cycle().take(8)).chain(["assistant"]).collect();
    assert_eq!(roles, expected);
    crate::rebuilt::assert_rebuilt(&home, &stub, &the_session(&home), &[0, 1, 2, 3, 4]);
}

#[test]
fn a_failed_call_is_an_answer_to_the_model_and_no_end() {
    let home = Home::new();
    let stub = stub([
        Turn::new("m1")
            .tool_call("c1", "read", &json!({"path": "없는 파일"}))
            .tool_call("c2", "no_such_tool", &json!({}))
            .tool_call_raw("c3", "write", r#"{"path": 3}"#),
        text("못 찾았습니다."),
    ]);
    assert_eq!(ask(&home, &stub, "x").output().ok().out(), "못 찾았습니다.\n");
    let results = stub.requests()[1].json()["messages"].as_array().unwrap().last().unwrap()["content"].clone();
    let results = results.as_array().unwrap();
    assert_eq!(results.len(), 3);
    for (result, id) in results.iter().zip(["c1", "c2", "c3"]) {
        assert_eq!((&result["tool_use_id"], &result["is_error"]), (&json!(id), &json!(true)), "{result}");
    }
}

#[test]
fn the_session_is_where_the_family_looks_for_it_and_nobody_else_can() {
    let home = Home::new();
    let cwd = home.work().join("한글 폴더");
    std::fs::create_dir(&cwd).unwrap();
    let stub = stub([text("네")]);
    ask(&home, &stub, "x").cwd(&cwd).output().ok();
    let file = the_session(&home);
    let bucket = file.parent().unwrap();
    let expected = format!("--{}--", cwd.display().to_string().trim_start_matches('/').replace('/', "-"));
    assert_eq!(bucket.file_name().unwrap().to_str().unwrap(), expected);
    let header = &lines(&file)[0];
    assert_eq!((&header["type"], &header["version"]), (&json!("session"), &json!(3)));
    assert_eq!(header["cwd"], cwd.display().to_string());
    let stamp = header["timestamp"].as_str().unwrap().replace([':', '.'], "-");
    let name = format!("{stamp}_{}.jsonl", header["id"].as_str().unwrap());
    assert_eq!(file.file_name().unwrap().to_str().unwrap(), name);
    for path in walk(&home.agent_dir()).into_iter().chain([home.agent_dir()]) {
        let mode = std::fs::symlink_metadata(&path).unwrap().permissions().mode() & 0o777;
        let expected = if path.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(mode, expected, "{} has {mode:o}", path.display());
        assert!(!path.to_string_lossy().ends_with(".tmp"), "{} was left behind", path.display());
    }
}

#[test]
fn no_session_leaves_nothing_behind() {
    let home = Home::new();
    let stub = stub([
        Turn::new("m1").tool_call("c1", "bash", &json!({"command": "seq 1 30000"})),
        Turn::new("m2").tool_call("c2", "read", &json!({"path": "."})),
        text("끝"),
    ]);
    let before = tree(&root(&home));
    let out = ask(&home, &stub, "x").arg("--no-session").output().ok();
    assert_eq!(out.out(), "끝\n");
    let after = tree(&root(&home));
    let new: Vec<_> = after.keys().filter(|path| !before.contains_key(*path)).collect();
    assert!(new.is_empty(), "{new:?}");
    assert_eq!(before, after);
}

#[test]
fn standard_input_is_added_to_the_prompt() {
    let home = Home::new();
    let stub = stub([text("a"), text("b"), text("c")]);
    ask(&home, &stub, "무엇이 문제야?").stdin("로그 첫 줄\n로그 둘째 줄\n").output().ok();
    on(&home, &stub).arg("-p").stdin("입력만\n").output().ok();
    on(&home, &stub).args(["-p", "여러", "낱말"]).output().ok();
    let said = |n: usize| stub.requests()[n].json()["messages"][0]["content"].clone();
    let texts = |n: usize| -> Vec<String> {
        said(n).as_array().unwrap().iter().map(|block| block["text"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(texts(0), ["무엇이 문제야?", "로그 첫 줄\n로그 둘째 줄\n"]);
    assert_eq!(texts(1), ["입력만\n"]);
    assert_eq!(texts(2), ["여러 낱말"]);
}

#[test]
fn a_prompt_that_says_nothing_is_misuse() {
    let home = Home::new();
    let stub = stub([]);
    for args in [&["-p"][..], &["-p", ""], &["-p", " \n"]] {
        let out = on(&home, &stub).args(args).stdin(" \n").output();
        assert_eq!(out.code(), Some(2), "{args:?}: {out}");
        assert_eq!(out.out(), "");
        steady(&home, || insta::assert_snapshot!("nothing_to_say", out.err()));
    }
    assert!(stub.requests().is_empty());
    assert_eq!(session_files(&home), Vec::<std::path::PathBuf>::new());
}

#[test]
fn a_session_goes_on_with_all_that_was_said() {
    let home = Home::new();
    let stub = stub([text("하나"), text("둘"), text("셋")]);
    ask(&home, &stub, "첫째").output().ok();
    let file = the_session(&home);
    let id = id_of(&file);
    ask(&home, &stub, "둘째").args(["--resume", &id[..20]]).output().ok();
    // From another folder the path leads to it, and it goes on in its own folder.
    let out = ask(&home, &stub, "셋째").args(["--resume", file.to_str().unwrap()]).cwd(home.tmp()).output().ok();
    assert_eq!(out.out(), "셋\n");
    assert_eq!(session_files(&home), [file]);
    let bodies: Vec<_> = stub.requests().iter().map(|request| request.json()).collect();
    let texts = |n: usize| -> Vec<String> {
        let of = |m: &serde_json::Value| m["content"][0]["text"].as_str().unwrap().to_owned();
        bodies[n]["messages"].as_array().unwrap().iter().map(of).collect()
    };
    assert_eq!(texts(2), ["첫째", "하나", "둘째", "둘", "셋째"]);
    assert_eq!(bodies[0]["system"], bodies[2]["system"]);
}

#[test]
fn quiet_silences_notices_and_nothing_that_went_wrong() {
    let home = Home::new();
    home.write("project/AGENTS.md", "들여쓰기는 탭이다.");
    let stub = stub([text("답")]);
    assert!(ask(&home, &stub, "x").output().ok().err().contains("AGENTS.md"));
    let stub = self::stub([text("답")]);
    let out = ask(&home, &stub, "x").arg("--quiet").output().ok();
    assert_eq!((out.out().as_str(), out.err().as_str()), ("답\n", ""));
    let failed = gjc(&home).args(["-q", "-p", "x", "--resume", "none"]).output();
    assert!(failed.code() == Some(1) && failed.err().starts_with("gjc: Session"), "{failed}");
}
