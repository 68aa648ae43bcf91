//! Settings through the binary: what counts, what stops it, what a clone may do.

use crate::kit::*;
use serde_json::{Value, json as j};
use std::path::PathBuf;
use testkit::anthropic::{self, Turn};
use testkit::harness::{Home, Output, Run};
use testkit::stub::Stub;

fn user(home: &Home, text: impl AsRef<[u8]>) -> PathBuf {
    home.write("home/.gjc/agent/config.yml", text)
}

/// The project's file; the working folder is a repository, so that nothing above it counts.
fn project(home: &Home, text: impl AsRef<[u8]>) -> PathBuf {
    home.write("project/.git/HEAD", "ref: refs/heads/main\n");
    home.write("project/.gjc/config.yml", text)
}

/// `gjc -p` with a key and without a word about model or address.
fn plain<'h>(home: &'h Home, prompt: &str) -> Run<'h> {
    gjc(home).args(["-p", prompt]).env("ANTHROPIC_API_KEY", KEY)
}

fn at(stub: &Stub) -> String {
    format!("providers:\n  anthropic:\n    url: {}\n", stub.url())
}

fn tools(body: &Value) -> Vec<String> {
    body["tools"].as_array().into_iter().flatten().map(|tool| tool["name"].as_str().unwrap().into()).collect()
}

#[test]
fn each_value_is_shown_with_its_origin() {
    let home = Home::new();
    user(&home, "# 나\nretry:\n  attempts: 2\nmodels: {default: scripted/한글.jsonl}\n");
    project(&home, "tools: [read]\nretry: {attempts: 9}\n");
    let out = look(&home, &["config", "list"]).output().ok();
    steady(&home, || insta::assert_snapshot!(shown(&out)));
    let listed = json(&look(&home, &["config", "list", "--json"]).output().ok());
    let of = |key: &str| listed["settings"].as_array().unwrap().iter().find(|s| s["key"] == key).unwrap().clone();
    assert_eq!((&of("retry.attempts")["value"], &of("retry.attempts")["origin"]), (&j!(2), &j!("user")));
    assert_eq!((&of("tools")["value"], &of("tools")["line"]), (&j!(["read"]), &j!(1)));
    assert_eq!((&of("bash.timeout")["origin"], &of("bash.timeout")["value"]), (&j!("default"), &j!("2m")));
    assert_eq!(listed["ignored"][0]["key"], "retry.attempts");
    let got = |args: &[&str]| look(&home, args).output();
    assert_eq!(got(&["config", "get", "retry.attempts"]).ok().out(), "2\n");
    assert_eq!(json(&got(&["config", "get", "models.default", "--json"]).ok())["value"], "scripted/한글.jsonl");
    assert_eq!(got(&["config", "get", "providers.anthropic.url"]).code(), Some(1));
    let wrong = got(&["config", "get", "retry.attemptz"]);
    assert_eq!(wrong.code(), Some(2));
    assert!(wrong.err().contains("did you mean retry.attempts?"), "{wrong}");
    assert_eq!(got(&["config", "path"]).ok().out(), format!("{}\n", home.agent_dir().join("config.yml").display()));
    let path = json(&got(&["config", "path", "--json"]).ok());
    assert_eq!(
        [&path["userExists"], &path["projectExists"], &path["projectTrusted"]],
        [&j!(true), &j!(true), &j!(false)]
    );
}

#[test]
fn set_changes_one_value_and_nothing_else() {
    let home = Home::new();
    look(&home, &["config", "set", "bash.timeout", "90s"]).output().ok();
    let file = home.agent_dir().join("config.yml");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "bash:\n  timeout: 90s\n");
    let text = "# 나의 설정\r\nbash:   # 명령\r\n  # 짧게\r\n  timeout: '1m'   # 한 분\r\n\r\ntools: [read] # 끝";
    user(&home, text);
    let set = json(&look(&home, &["config", "set", "bash.timeout", "5m", "--json"]).output().ok());
    assert_eq!((&set["key"], &set["value"]), (&j!("bash.timeout"), &j!("5m")));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text.replace("'1m'", "5m"));
    let before = tree(&root(&home));
    for (key, value, code) in [("bash.timeout", "5 years", 2), ("bsh.timeout", "5m", 2), ("tools", "read,rm", 2)] {
        let out = look(&home, &["config", "set", key, value]).output();
        assert_eq!((out.code(), out.out().as_str()), (Some(code), ""), "{out}");
    }
    user(&home, "tools: # 하나씩\n  - read # 왜\n");
    let out = look(&home, &["config", "set", "tools", "bash"]).output();
    assert_eq!(out.code(), Some(2));
    steady(&home, || insta::assert_snapshot!(shown(&out)));
    user(&home, text.replace("'1m'", "5m"));
    assert_eq!(tree(&root(&home)), before, "what is refused changes nothing");
}

#[test]
fn a_broken_file_stops_a_session_before_anything_and_holds_no_look_up() {
    for whose in ["user", "project"] {
        let home = Home::new();
        let stub = stub([text("하나"), text("둘")]);
        ask(&home, &stub, "a").output().ok();
        let broken = "session:\n  durabilty: entry # 영속\nretry:\n  attempts: 99\n";
        let file = if whose == "user" { user(&home, broken) } else { project(&home, broken) };
        let before = tree(&root(&home));
        let id = id_of(&the_session(&home));
        for args in [
            &["-p", "b"][..],
            &["-p", "b", "--mode", "json"],
            &["--mode", "rpc"],
            &["-p", "b", "--resume", &id],
            &["-p", "b", "--trust-project"],
            &["config", "list"],
            &["config", "get", "tools"],
        ] {
            let out = on(&home, &stub).args(args).output();
            let out = if args[0] == "config" { look(&home, args).output() } else { out };
            assert_eq!((out.code(), out.out().as_str()), (Some(2), ""), "{args:?} {out}");
            assert!(out.err().contains("did you mean \"durability\"?") && out.err().contains(":4:13:"), "{out}");
        }
        for args in [
            &["sessions", "list"][..],
            &["sessions", "show", &id],
            &["sessions", "verify", "--all"],
            &["context", "show", &id],
            &["prompts"],
            &["config", "path"],
            &["config", "path", "--json"],
        ] {
            look(&home, args).output().ok();
        }
        assert_eq!(tree(&root(&home)), before, "{whose}: nothing was begun");
        assert_eq!(stub.requests().len(), 1);
        let out = ask(&home, &stub, "b").output();
        let name = format!("broken_{whose}");
        steady(&home, || insta::assert_snapshot!(name, shown(&out)));
        std::fs::remove_file(file).unwrap();
        assert_eq!(ask(&home, &stub, "b").output().ok().out(), "둘\n");
    }
}

#[test]
fn what_is_no_file_stops_a_session_too() {
    let home = Home::new();
    home.write("project/.git/HEAD", "");
    let elsewhere = home.write("tmp/elsewhere/config.yml", "tools: []\n");
    std::os::unix::fs::symlink(elsewhere.parent().unwrap(), home.work().join(".gjc")).unwrap();
    let out = plain(&home, "x").output();
    assert_eq!(out.code(), Some(2), "{out}");
    assert!(out.err().contains("is a symbolic link"), "{out}");
    std::fs::remove_file(home.work().join(".gjc")).unwrap();
    let huge = project(&home, "");
    std::fs::File::options().write(true).open(&huge).unwrap().set_len(1 << 40).unwrap();
    let out = plain(&home, "x").output();
    assert!(out.code() == Some(2) && out.err().contains("more than 262144 bytes"), "{out}");
    std::fs::remove_file(&huge).unwrap();
    std::fs::create_dir_all(home.agent_dir().join("config.yml")).unwrap();
    let out = plain(&home, "x").output();
    assert!(out.code() == Some(2) && out.err().contains("is no file"), "{out}");
}

#[test]
fn the_script_of_a_clone_is_played_only_while_its_very_bytes_are_trusted() {
    let home = Home::new();
    let evil = j!({"content": [{"type": "text", "text": "탈취"}]});
    home.write("project/evil.script", format!("{evil}\n"));
    let file = project(&home, "models: {default: scripted/evil.script}\n");
    let stub = stub([text("나의 모델"), text("나의 모델"), text("나의 모델")]);
    user(&home, at(&stub));
    let said = |args: &[&str]| -> Output { plain(&home, "x").args(args).output().ok() };
    let out = said(&[]);
    assert_eq!(out.out(), "나의 모델\n");
    assert!(out.err().contains("sets models.default to scripted/evil.script, which you have not trusted"), "{out}");
    let out = said(&["--trust-project"]);
    assert_eq!(out.out(), "탈취\n");
    assert!(out.err().contains("is trusted as it is (sha256:"), "{out}");
    assert_eq!(said(&[]).out(), "탈취\n");
    // One byte more is another file; so is the same file in a copy of the project.
    std::fs::write(&file, "models: {default: scripted/evil.script} \n").unwrap();
    assert_eq!(said(&[]).out(), "나의 모델\n");
    std::fs::write(&file, "models: {default: scripted/evil.script}\n").unwrap();
    assert_eq!(said(&[]).out(), "탈취\n");
    std::fs::rename(home.work(), root(&home).join("딴 곳")).unwrap();
    std::fs::create_dir(home.work()).unwrap();
    let moved = plain(&home, "x").cwd(root(&home).join("딴 곳")).output().ok();
    assert_eq!(moved.out(), "나의 모델\n");
}

#[test]
fn a_clone_may_name_no_server_and_no_command() {
    for line in ["url: http://127.0.0.1:9/", "keyCommand: touch stolen"] {
        let home = Home::new();
        project(&home, format!("providers:\n  anthropic:\n    {line}\n"));
        for args in [&[][..], &["--trust-project"]] {
            let out = plain(&home, "x").env_remove("ANTHROPIC_API_KEY").args(args).output();
            assert_eq!(out.code(), Some(2), "{out}");
            assert!(out.err().contains("a project may not set providers.anthropic."), "{out}");
        }
        assert!(!home.work().join("stolen").exists() && !home.agent_dir().join("trust").exists());
    }
}

#[test]
fn a_clone_that_allows_fewer_tools_is_heard_and_one_that_allows_more_is_not() {
    let home = Home::new();
    let stub = stub([text("a"), text("b"), text("c"), text("d")]);
    let run = |args: &[&str]| plain(&home, "x").args(args).output().ok();
    user(&home, at(&stub) + "tools: [read, edit]\n");
    run(&[]);
    let file = project(&home, "tools: [read]\n");
    run(&[]);
    std::fs::write(&file, "tools: [read, bash]\n").unwrap();
    assert!(run(&[]).err().contains("[read, edit] stays"));
    // A person at the command line has the last word.
    run(&["--tools", "bash"]);
    let asked: Vec<_> = stub.requests().iter().map(|request| tools(&request.json())).collect();
    assert_eq!(asked, [vec!["read", "edit"], vec!["read"], vec!["read", "edit"], vec!["bash"]]);
}

#[test]
fn a_session_that_goes_on_has_the_settings_of_its_own_project() {
    let home = Home::new();
    let stub = stub([text("a"), text("b")]);
    user(&home, at(&stub));
    plain(&home, "x").output().ok();
    project(&home, "retry: {attempts: 99}\n");
    let file = the_session(&home);
    let id = id_of(&file);
    let out = plain(&home, "x").arg("--resume").arg(&file).cwd(home.tmp()).output();
    assert!(out.code() == Some(2) && out.err().contains("project/.gjc/config.yml:1:19"), "{out}");
    // Asked to work elsewhere, it has the settings of that place.
    plain(&home, "x").args(["--resume", &id, "--cwd"]).arg(home.tmp()).output().ok();
}

#[test]
fn a_key_comes_from_a_command_once_and_is_nowhere_but_in_the_header() {
    let home = Home::new();
    let secret = home.write("home/.vault", format!("{KEY}\n"));
    let stub = replies([
        Turn::new("m1").tool_call("c1", "bash", &j!({"command": "env; pwd"})).reply(),
        anthropic::error(401, "authentication_error", &format!("the key {KEY} is no longer valid")),
    ]);
    let command = "echo asked >> ~/asked; echo talk >&2; pwd > ~/where; cat ~/.vault";
    user(&home, format!("{}    keyCommand: \"{command}\"\n", at(&stub)));
    let out = gjc(&home).args(["-p", "x", "--mode", "json"]).output();
    assert_eq!(out.code(), Some(1), "{out}");
    assert_eq!(stub.requests().len(), 2);
    assert!(stub.requests().iter().all(|request| request.header("x-api-key") == Some(KEY)));
    assert!(!format!("{out}").contains(KEY) && !out.err().contains("talk"), "{out}");
    for (path, bytes) in tree(&root(&home)) {
        let holds = bytes.unwrap_or_default().windows(KEY.len()).any(|part| part == KEY.as_bytes());
        assert!(!holds || path == secret, "{} holds the key", path.display());
    }
    assert_eq!(std::fs::read_to_string(home.path().join("asked")).unwrap(), "asked\n", "once in a process");
    assert_eq!(
        std::fs::read_to_string(home.path().join("where")).unwrap().trim_end(),
        home.path().display().to_string()
    );
    // What the environment says is not asked for; nor is a key for a script.
    let script = home.write("project/말.jsonl", format!("{}\n", j!({"content": [{"type": "text", "text": "네"}]})));
    gjc(&home).args(["-p", "x", "--model"]).arg(format!("scripted/{}", script.display())).output().ok();
    let _ = plain(&home, "x").output();
    assert_eq!(std::fs::read_to_string(home.path().join("asked")).unwrap(), "asked\n");
}

#[test]
fn a_command_that_gives_no_key_is_told_without_a_word_of_what_it_printed() {
    let home = Home::new();
    for (command, why) in [
        ("echo 비밀말; exit 3", "ended with exit code 3"),
        ("true", "printed no key"),
        ("echo 비밀말 둘", "printed no key"),
        ("printf 'secret\\nwords'", "printed no key"),
        ("printf 'sk-\\377secret'", "printed no key"),
        ("head -c 20000 /dev/zero | tr '\\\\0' s", "printed more than 8192 bytes"),
        ("kill -9 $$", "was killed by signal 9"),
    ] {
        user(&home, format!("providers:\n  anthropic:\n    keyCommand: {}\n", Value::from(command)));
        let out = gjc(&home).args(["-p", "x"]).output();
        assert_eq!((out.code(), out.out().as_str()), (Some(1), ""), "{out}");
        assert!(out.err().contains(why) && out.err().contains("config.yml:3)"), "{command}: {out}");
        assert!(!out.err().contains("비밀말") && !out.err().contains("words") && !out.err().contains("ssss"), "{out}");
    }
    assert!(session_files(&home).is_empty());
}

#[test]
fn retries_commands_and_durability_do_what_the_settings_say() {
    let home = Home::new();
    let busy = || anthropic::error(529, "overloaded_error", "바쁨").header("retry-after", "0");
    let call = j!({"command": "printf '%0600d' 7; sleep 30"});
    let stub = replies([busy(), busy(), Turn::new("m1").tool_call("c", "bash", &call).reply(), text("끝").reply()]);
    user(
        &home,
        at(&stub)
            + "retry: {attempts: 1}\nbash: {timeout: 1s, keepHead: 256B, keepTail: 256B}\nsession: {durability: none}\n",
    );
    assert_eq!(plain(&home, "x").output().code(), Some(1));
    assert_eq!(stub.requests().len(), 2, "once more, and no more");
    let out = plain(&home, "x").output().ok();
    assert_eq!(out.out(), "끝\n");
    let requests = stub.requests();
    assert!(String::from_utf8_lossy(&requests[2].body).contains("1000 if left out, 600000 at most"));
    let last = requests[3].json();
    let result = last["messages"].as_array().unwrap().last().unwrap()["content"][0].to_string();
    assert!(result.contains("88 bytes left out") && result.contains("timed out after 1000 ms"), "{result}");
    let session = session_files(&home).pop().unwrap();
    look(&home, &["sessions", "verify"]).arg(&session).output().ok();
}

#[test]
fn the_tools_of_the_settings_are_those_that_there_are() {
    let home = Home::new();
    let stub = stub([text("a")]);
    ask(&home, &stub, "x").output().ok();
    // With -p nobody is there to be asked.
    let told = gjc_settings::TOOLS.iter().filter(|name| **name != "ask").copied().collect::<Vec<_>>();
    assert_eq!(tools(&stub.requests()[0].json()), told);
}

#[test]
fn what_cannot_be_edited_is_shown_in_a_form_that_counts() {
    let home = Home::new();
    let file = user(&home, "retry: {attempts: 3}\n");
    let refused = look(&home, &["config", "set", "retry.attempts", "4"]).output();
    assert_eq!(refused.code(), Some(2), "{refused}");
    let err = refused.err();
    let by_hand = err.lines().find_map(|line| line.split_once("by hand it is: ")).unwrap().1;
    std::fs::write(&file, by_hand).unwrap();
    assert_eq!(look(&home, &["config", "get", "retry.attempts"]).output().ok().out(), "4\n");
    let empty = look(&home, &["config", "set", "tools", ""]).output();
    assert!(empty.code() == Some(2) && empty.err().contains("no value is given"), "{empty}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), by_hand);
}

#[test]
fn a_key_command_ends_with_an_interrupted_gjc() {
    let home = Home::new();
    let mark = home.tmp().join("begun");
    user(
        &home,
        format!("providers:\n  anthropic:\n    keyCommand: \"echo $$ > '{}'; sleep 60; echo K\"\n", mark.display()),
    );
    let mut run = gjc(&home).args(["-p", "x"]).env_remove("ANTHROPIC_API_KEY").spawn();
    run.close_stdin();
    let begun = std::time::Instant::now();
    let pid = loop {
        assert!(begun.elapsed().as_secs() < 30, "the command was not begun");
        if let Some(pid) = std::fs::read_to_string(&mark).ok().and_then(|text| text.trim().parse::<u32>().ok()) {
            break pid;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    };
    run.interrupt();
    assert_eq!(run.wait().code(), Some(130));
    // `sleep` is in the session of the shell.
    let session =
        |stat: String| stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(3).map(String::from));
    let left: Vec<_> = std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok())
        .filter(|stat| !stat.contains(") Z ") && session(stat.clone()) == Some(pid.to_string()))
        .collect();
    assert_eq!(left, Vec::<String>::new());
}

#[test]
fn a_key_command_is_asked_for_any_server_that_is_named() {
    let home = Home::new();
    let stub = replies([testkit::openai::Chat::new("c").text("네").reply()]);
    user(&home, format!("providers:\n  openai:\n    url: {}\n    keyCommand: echo local-key\n", stub.url()));
    gjc(&home).args(["-p", "x", "--model", "openai/qwen3"]).output().ok();
    assert_eq!(stub.requests()[0].header("authorization"), Some("Bearer local-key"));
}

#[test]
fn the_variable_of_other_programs_is_checked_as_a_setting_is() {
    let home = Home::new();
    for (url, why) in [("http://u:pw@127.0.0.1:9", "no name or password"), ("notaurl", "no address of a server")] {
        let run =
            gjc(&home).args(["-p", "x", "--model", "openai/m"]).env("OPENAI_BASE_URL", url).env("OPENAI_API_KEY", KEY);
        let out = run.output();
        assert!(out.code() == Some(2) && out.err().contains("OPENAI_BASE_URL") && out.err().contains(why), "{out}");
        assert!(!out.err().contains("pw@"), "{out}");
    }
}

#[test]
fn unset_takes_one_value_out_and_nothing_else() {
    let home = Home::new();
    let text = "# 나의 설정\r\nbash:   # 명령\r\n  timeout: 1m   # 한 분\r\n  keepHead: 1KiB\r\n\r\ntools: [read] # 끝";
    let file = user(&home, text);
    let unset = |key: &str| look(&home, &["config", "unset", key, "--json"]).output();
    let gone = json(&unset("bash.timeout").ok());
    assert_eq!((&gone["key"], &gone["wasSet"]), (&j!("bash.timeout"), &j!(true)));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text.replace("  timeout: 1m   # 한 분\r\n", ""));
    let before = tree(&root(&home));
    assert_eq!(json(&unset("bash.timeout").ok())["wasSet"], false);
    let told = look(&home, &["config", "unset", "retry.attempts"]).output().ok();
    assert!(told.err().contains("retry.attempts was not set in "), "{told}");
    let unknown = unset("bsh.timeout");
    assert!(unknown.code() == Some(2) && unknown.err().contains("did you mean bash.timeout?"), "{unknown}");
    assert_eq!(tree(&root(&home)), before);
    user(&home, "retry: {attempts: 3}\n");
    let by_hand = unset("retry.attempts");
    assert!(
        by_hand.code() == Some(2) && by_hand.err().contains("nothing was written; take it out by hand"),
        "{by_hand}"
    );
    let none = Home::new();
    look(&none, &["config", "unset", "tools"]).output().ok();
    assert!(!none.agent_dir().exists(), "no file is made for nothing");
}

#[test]
fn a_variable_of_other_programs_is_a_layer_with_its_name() {
    let home = Home::new();
    let get = || {
        let run = look(&home, &["config", "get", "providers.openai.url", "--json"]);
        json(&run.env("OPENAI_BASE_URL", "http://127.0.0.1:1").output().ok())
    };
    let found = get();
    assert_eq!(
        (&found["value"], &found["origin"], &found["variable"]),
        (&j!("http://127.0.0.1:1"), &j!("variable"), &j!("OPENAI_BASE_URL"))
    );
    let listed = look(&home, &["config", "list"]).env("OPENAI_BASE_URL", "http://127.0.0.1:1").output().ok();
    assert!(
        listed.out().lines().any(|row| row.starts_with("providers.openai.url") && row.contains("OPENAI_BASE_URL")),
        "{listed}"
    );
    user(&home, "providers: {openai: {url: 'http://127.0.0.1:2'}}\n");
    assert_eq!((&get()["value"], &get()["origin"]), (&j!("http://127.0.0.1:2"), &j!("user")));
    // It is where requests go, below every file.
    let home = Home::new();
    let stub = replies([testkit::openai::Chat::new("c").text("네").reply()]);
    let run = gjc(&home).args(["-p", "x", "--model", "openai/m"]).env("OPENAI_BASE_URL", stub.url());
    assert_eq!(run.output().ok().out(), "네\n");
}
