//! `grep`, `find` and `ls` as a model uses them, from a script to the session file.

use crate::kit::*;
use serde_json::{Value, json};
use testkit::harness::Home;
use unicode_normalization::UnicodeNormalization;

fn call(tool: &str, input: Value) -> Value {
    json!({"type": "toolCall", "name": tool, "arguments": input})
}

#[test]
fn a_script_searches_real_files_and_hears_what_it_found() {
    let home = Home::new();
    let nfd = |text: &str| text.nfd().collect::<String>();
    home.write("project/src/main.rs", "fn main() {\n    println!(\"한글\");\n}\n");
    home.write(format!("project/{}.md", nfd("보고서")), nfd("한글 보고서\n"));
    home.write("project/.git/HEAD", "ref: refs/heads/main\n");
    home.write("project/.gitignore", "target/\n");
    home.write("project/target/debug.rs", "한글\n");
    let script = [
        json!({"content": [call("ls", json!({}))]}),
        json!({"expect": r"^\.git/\n\.gitignore\nsrc/\ntarget/\nᄇ.*\.md\n$", "content": [call("find", json!({"pattern": "*.rs"}))]}),
        json!({"expect": r"^src/main\.rs\n$", "content": [call("find", json!({"pattern": "보고*"}))]}),
        json!({"expect": r"^ᄇ.*\.md\n$", "content": [call("grep", json!({"pattern": "한글"}))]}),
        json!({"expect": r"^src/main\.rs:2:     println!\(.한글.\);\nᄇ.*\.md:1: .*\n$", "content": [
            call("grep", json!({"pattern": "(", "literal": true, "glob": "*.rs", "limit": 1})),
        ]}),
        json!({"expect": r"\[1 of 2 matching lines shown, 1 more; ", "content": [call("grep", json!({"pattern": "("}))]}),
        json!({"expect": "no regular expression: unclosed group\nhint: ", "content": [{"type": "text", "text": "찾았습니다."}]}),
    ];
    let script: String = script.iter().map(|line| format!("{line}\n")).collect();
    let script = home.write("script.jsonl", script);
    let model = format!("scripted/{}", script.display());
    let out = gjc(&home).args(["-p", "--model", &model, "찾아 줘"]).output().ok();
    assert_eq!((out.out().as_str(), out.err().as_str()), ("찾았습니다.\n", ""));
    let text = std::fs::read_to_string(the_session(&home)).unwrap();
    assert!(!text.contains("gjcLabel"), "all of it is the person's own: public and trusted");
    let id = id_of(&the_session(&home));
    let verified = look(&home, &["sessions", "verify", &id]).output().ok();
    assert!(verified.out().contains(", sound"), "{verified}");
}

#[test]
fn a_session_that_began_with_fewer_tools_does_not_come_to_more() {
    let home = Home::new();
    let stub = stub([text("하나"), text("둘"), text("셋"), text("넷")]);
    let run = |prompt: &str| on(&home, &stub).args(["-p", prompt]);
    // As before there were any searches.
    run("a").args(["--tools", "read,write,edit,bash"]).output().ok();
    let id = id_of(&the_session(&home));
    run("b").args(["--resume", &id]).output().ok();
    run("c").args(["--resume", &id, "--tools", "grep,find,ls"]).output().ok();
    run("d").output().ok();
    let names = |request: &testkit::stub::Recorded| -> Vec<String> {
        let tools = request.json()["tools"].as_array().unwrap().clone();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_string()).collect()
    };
    let asked: Vec<_> = stub.requests().iter().map(|request| names(request).join(",")).collect();
    let old = "read,write,edit,bash";
    assert_eq!(asked, [old, old, "grep,find,ls", "read,write,edit,bash,grep,find,ls,job"]);
}
