//! `--sandbox` and what belongs to it, by what a command of a model comes to.

use crate::kit::*;
use gjc_process::Support;
use serde_json::json;
use std::fs;
use testkit::anthropic::Turn;
use testkit::harness::{Home, Output};

/// Plays a model that runs one command.
fn bash(home: &Home, command: &str, flags: &[&str]) -> Output {
    let call = json!({"type": "toolCall", "name": "bash", "arguments": {"command": command}});
    let lines = [json!({"content": [call]}), json!({"content": [{"type": "text", "text": "끝"}]})];
    home.forget(&root(home).join("script.jsonl"));
    let script = home.write("script.jsonl", lines.map(|line| line.to_string()).join("\n"));
    let model = format!("scripted/{}", script.display());
    gjc(home).args(["-p", "--model", &model]).args(flags).arg("해 줘").output().ok()
}

/// Whether this kernel holds a sandbox. Where it does not, the tests say so and look at the refusal alone.
fn holds() -> bool {
    let lacks = Support::now().essential();
    if !lacks.is_empty() {
        eprintln!("no sandbox on this system: {lacks:?}");
    }
    lacks.is_empty()
}

#[test]
fn a_command_writes_in_the_project_alone_unless_a_person_says_more() {
    let home = Home::new();
    let outside = root(&home).join("outside");
    fs::create_dir(&outside).unwrap();
    let command = "echo 글 > inside; echo 글 > ../outside/made; cat ~/.ssh/id > key; true";
    home.write("home/.ssh/id", "열쇠");
    let key = home.work().join("key");
    if holds() {
        for flags in [&[][..], &["--sandbox", "auto"], &["--sandbox", "require"]] {
            let out = bash(&home, command, flags);
            assert_eq!((out.out(), out.err()), ("끝\n".into(), "".into()), "{flags:?}");
            assert_eq!(fs::read_to_string(home.work().join("inside")).unwrap(), "글\n");
            assert!(fs::read_dir(home.tmp()).unwrap().next().is_none(), "the private folder goes with the session");
            assert!(!outside.join("made").exists() && fs::read(&key).unwrap().is_empty(), "{flags:?}");
        }
        bash(&home, command, &["--sandbox-write", "../outside"]);
        assert!(outside.join("made").exists() && fs::read(&key).unwrap().is_empty());
        fs::remove_file(outside.join("made")).unwrap();
    }
    bash(&home, command, &["--sandbox", "off"]);
    assert!(outside.join("made").exists() && fs::read_to_string(&key).unwrap() == "열쇠");
}

#[test]
fn a_required_sandbox_is_there_or_no_command_runs() {
    let home = Home::new();
    let out = bash(&home, "touch made", &["--sandbox", "require"]);
    assert_eq!(home.work().join("made").exists(), holds());
    assert_eq!(out.err().contains("the sandbox is required"), !holds(), "{out}");
}

#[test]
fn the_network_is_denied_where_a_person_says_so() {
    let home = Home::new();
    let door = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    door.set_nonblocking(true).unwrap();
    let command = format!("exec 3<>/dev/tcp/127.0.0.1/{} && touch reached", door.local_addr().unwrap().port());
    let reached = home.work().join("reached");
    if holds() {
        bash(&home, &command, &["--sandbox-network", "denied"]);
        assert!(!reached.exists() && door.accept().is_err());
    }
    bash(&home, &command, &[]);
    assert!(reached.exists() && door.accept().is_ok());
}

#[test]
fn in_the_home_folder_a_person_is_told_that_nothing_can_be_written() {
    if !holds() {
        return;
    }
    let home = Home::new();
    let cwd = home.path().display().to_string();
    let out = bash(&home, "touch made", &["--cwd", &cwd]);
    assert!(out.err().contains("is the home folder or holds it") && !home.path().join("made").exists(), "{out}");
    let out = bash(&home, "true", &["--cwd", &cwd, "--tools", "bash,read", "--sandbox", "off"]);
    assert_eq!(out.err(), "");
}

#[test]
fn the_settings_say_what_commands_reach_and_an_option_stands_above_them() {
    let home = Home::new();
    let (outside, other) = (root(&home).join("home/밖"), root(&home).join("other"));
    fs::create_dir_all(&outside).unwrap();
    fs::create_dir(&other).unwrap();
    let door = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = door.local_addr().unwrap().port();
    let command =
        format!("touch ~/밖/made; touch ../other/made; exec 3<>/dev/tcp/127.0.0.1/{port} && touch reached; true");
    let reached = home.work().join("reached");
    let after = |flags: &[&str]| {
        let out = bash(&home, &command, flags);
        let made =
            [outside.join("made"), other.join("made"), reached.clone()].map(|file| fs::remove_file(file).is_ok());
        (made, out.err())
    };
    home.write("home/.gjc/agent/config.yml", "sandbox:\n  network: denied\n  write: [~/밖, ~/없는 곳]\n");
    let (made, told) = after(&[]);
    assert!(told.contains("sandbox.write names") && told.contains("없는 곳"), "{told}");
    if holds() {
        assert_eq!(made, [true, false, false]);
        assert_eq!(after(&["--sandbox-network", "allowed"]).0, [true, false, true]);
        // The folders of the option stand in the place of those of the settings.
        assert_eq!(after(&["--sandbox-write", "../other"]).0, [false, true, false]);
    }
    home.write("home/.gjc/agent/config.yml", "sandbox: {mode: off}\n");
    assert_eq!(after(&[]).0, [true, true, true]);
    if holds() {
        assert_eq!(after(&["--sandbox", "auto"]).0, [false, false, true]);
    }
}

#[test]
fn a_clone_holds_commands_tighter_and_never_looser() {
    let home = Home::new();
    home.write("project/.git/HEAD", "ref: refs/heads/main\n");
    home.write("project/.gjc/config.yml", "sandbox: {mode: off, network: allowed}\n");
    home.write("home/.gjc/agent/config.yml", "sandbox: {mode: auto, network: denied}\n");
    let get = |key: &str| json(&look(&home, &["config", "get", key, "--json"]).output().ok())["value"].clone();
    assert_eq!((get("sandbox.mode"), get("sandbox.network")), (json!("auto"), json!("denied")));
    let out = bash(&home, "touch ../made", &[]);
    assert!(out.err().contains("sets sandbox.mode to off, which you have not trusted"), "{out}");
    assert!(!holds() || !root(&home).join("made").exists());
    home.write("project/.gjc/config.yml", "sandbox: {mode: require}\n");
    assert_eq!((get("sandbox.mode"), get("sandbox.network")), (json!("require"), json!("denied")));
    home.write("project/.gjc/config.yml", "sandbox: {write: [/]}\n");
    for trust in [&[][..], &["--trust-project"]] {
        let out = look(&home, &["-p", "x", "--provider-url", "http://127.0.0.1:9"]).args(trust).output();
        assert!(out.code() == Some(2) && out.err().contains("a project may not set sandbox.write"), "{out}");
    }
}

#[test]
fn a_session_that_goes_on_is_held_no_looser_unless_a_person_says_so() {
    let home = Home::new();
    let stub = stub((0..6).map(|n| text(&format!("답 {n}"))));
    ask(&home, &stub, "x").args(["--sandbox", "require", "--sandbox-network", "denied"]).output().ok();
    let file = the_session(&home);
    let id = id_of(&file);
    let held = || {
        let env = lines(&file).into_iter().rfind(|line| line["customType"] == "gjc.env").unwrap();
        (env["data"]["held"]["sandbox"].as_str().unwrap().to_owned(), env["data"]["held"]["network"].as_bool().unwrap())
    };
    assert_eq!(held(), ("require".into(), false));
    let go = |args: &[&str]| ask(&home, &stub, "y").args(["--resume", &id]).args(args).output().ok().err();
    let told = go(&[]);
    assert!(
        told.contains("the session keeps its sandbox (require)") && told.contains("--sandbox auto loosens it"),
        "{told}"
    );
    assert!(told.contains("go on without the network"), "{told}");
    assert_eq!(held(), ("require".into(), false));
    // A person's word counts, and stays; what is stricter needs no word.
    assert!(!go(&["--sandbox", "off", "--sandbox-network", "allowed"]).contains("keeps"));
    assert_eq!(held(), ("off".into(), true));
    home.write("home/.gjc/agent/config.yml", "sandbox: {network: denied}\n");
    assert!(!go(&[]).contains("keeps"));
    assert_eq!(held(), ("auto".into(), false));
    crate::rebuilt::assert_rebuilt(&home, &stub, &file, &[0, 1, 2, 3]);
}

#[test]
fn an_allowed_folder_must_be_there() {
    let home = Home::new();
    let out =
        look(&home, &["-p", "x", "--provider-url", "http://127.0.0.1:9", "--sandbox-write", "없는 폴더"]).output();
    assert_eq!(out.code(), Some(2));
    assert!(out.err().contains("없는 폴더"), "{out}");
}

/// What commands are kept from, the other tools are kept from as well, by whatever name.
#[test]
fn keys_of_the_home_folder_are_read_by_no_tool() {
    let home = Home::new();
    let key = home.write("home/.ssh/id_ed25519", "CANARY-비밀\n");
    home.write("home/.config/gh/hosts.yml", "oauth_token: CANARY-비밀\n");
    home.write("home/노트.md", "CANARY-아님\n");
    std::os::unix::fs::symlink(&key, home.work().join("열쇠")).unwrap();
    let there = home.path();
    let stub = stub([
        Turn::new("m")
            .tool_call("1", "read", &json!({"path": key.display().to_string()}))
            .tool_call("2", "read", &json!({"path": "열쇠"}))
            .tool_call("3", "grep", &json!({"pattern": "CANARY", "path": key.display().to_string()}))
            .tool_call("4", "grep", &json!({"pattern": "CANARY", "path": there.display().to_string()}))
            .tool_call("5", "grep", &json!({"pattern": "CANARY", "path": "열쇠"})),
        text("없습니다."),
    ]);
    ask(&home, &stub, "찾아 줘").output().ok();
    let told = stub.requests()[1].json()["messages"].to_string();
    assert!(!told.contains("CANARY-비밀") && told.contains("CANARY-아님"), "{told}");
    assert_eq!(told.matches("keys and private data are kept").count(), 4, "{told}");
}
