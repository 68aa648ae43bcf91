//! Hooks through the binary: what they are told, what they may say, what their failure does, and whose are run.

use crate::instructions::trusted;
use crate::kit::*;
use crate::rebuilt::assert_rebuilt;
use serde_json::{Value, json as j};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use testkit::anthropic::Turn;
use testkit::harness::Home;
use testkit::process::assert_ended;
use testkit::stub::Stub;

const ALLOW: &str = r#"echo '{"decision":"allow"}'"#;

/// A person's settings.
fn user(home: &Home, text: &str) {
    home.write("home/.gjc/agent/config.yml", text);
}

/// A person's settings with one hook of an event, a script outside of the project.
fn hook(home: &Home, event: &str, script: &str) -> PathBuf {
    let path = home.write("home/hook.sh", format!("{script}\n"));
    user(home, &format!("hooks:\n  {event}:\n    - sh {}\n", path.display()));
    path
}

/// A project's settings, in a repository.
fn project(home: &Home, text: &str) -> PathBuf {
    home.write("project/.git/HEAD", "ref: refs/heads/main\n");
    home.write("project/.gjc/config.yml", text)
}

fn calls(calls: &[(&str, Value)]) -> Turn {
    let mut turn = Turn::new("m");
    for (index, (tool, input)) in calls.iter().enumerate() {
        turn = turn.tool_call(&format!("c{index}"), tool, input);
    }
    turn
}

fn bash(command: &str) -> Turn {
    calls(&[("bash", j!({"command": command}))])
}

/// The words of a request.
fn request(stub: &Stub, n: usize) -> String {
    String::from_utf8(stub.requests()[n].body.clone()).unwrap()
}

fn heard(home: &Home) -> Vec<Value> {
    let text = std::fs::read_to_string(home.work().join("heard")).unwrap_or_default();
    text.lines()
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}")))
        .collect()
}

#[test]
fn a_call_that_a_hook_blocks_does_not_run_and_the_model_hears_why() {
    let home = Home::new();
    let script = home.write(
        "home/지킴이.sh",
        r#"cat >> heard; env > vars
           case "$(tail -n 1 heard)" in
             *금지*) echo '{"decision":"block","reason":"금지된 명령입니다"}' ;;
             *) echo talk >&2; echo '{"decision":"allow"}' ;;
           esac"#,
    );
    let command =
        format!("hooks: {{pre_tool_call: [{{command: sh {}, match: [bash], timeout: 20s}}]}}\n", script.display());
    user(&home, &command);
    let input = j!({"command": "touch 금지"});
    let turn = calls(&[("read", j!({"path": "."})), ("bash", input.clone()), ("bash", j!({"command": "touch 허락"}))]);
    let stub = stub([turn, text("끝")]);
    let out = ask(&home, &stub, "해 줘").env("GITHUB_TOKEN", "ghp_비밀").output().ok();
    assert_eq!((out.out().as_str(), out.err().as_str()), ("끝\n", ""));
    assert!(home.work().join("허락").exists() && !home.work().join("금지").exists());
    let heard = heard(&home);
    assert_eq!(heard.iter().map(|call| call["tool"].as_str().unwrap()).collect::<Vec<_>>(), ["bash", "bash"]);
    let file = the_session(&home);
    let expected = j!({
        "event": "pre_tool_call", "tool": "bash", "input": input, "session": id_of(&file),
        "cwd": home.work().canonicalize().unwrap(), "file": heard[0]["file"], "op": heard[0]["op"],
        "label": {"level": "PUBLIC", "trusted": true},
    });
    assert_eq!(heard[0], expected);
    assert!(heard[0]["op"].as_str().unwrap().ends_with("/1"), "the place of the call in its answer");
    assert!(request(&stub, 1).contains("a hook blocks this call: 금지된 명령입니다"), "{}", request(&stub, 1));
    assert!(!trusted(&the_session(&home)), "nobody vouches for what a hook says");
    let vars = std::fs::read_to_string(home.work().join("vars")).unwrap();
    assert!(!vars.contains(KEY) && !vars.contains("비밀"), "{vars}");
    assert!(vars.contains("GJC_HOOK=pre_tool_call\n") && vars.contains("GJC_PROJECT_DIR="), "{vars}");
    assert_rebuilt(&home, &stub, &file, &[0, 1]);
}

#[test]
fn a_guard_that_fails_in_any_way_blocks() {
    for (script, why) in [
        ("exit 3", "ended with exit code 3"),
        ("kill -9 $$", "ended with exit code 137"),
        ("cat >/dev/null", "did not answer with one JSON object"),
        ("echo 허락", "did not answer with one JSON object"),
        (r#"echo '{"decision":"allow"} {"decision":"allow"}'"#, "did not answer with one JSON object"),
        (r#"echo '{"decision":"allow","input":{"command":"true"}}'"#, "did not answer with one JSON object"),
        ("echo '{\"decision\":\"allow\"}'; head -c 70000 /dev/zero | tr '\\0' ' '", "printed more than 65536 bytes"),
        ("", "did not answer with one JSON object"),
    ] {
        let home = Home::new();
        hook(&home, "pre_tool_call", script);
        let stub = stub([bash("touch made"), text("끝")]);
        let out = ask(&home, &stub, "해 줘").output().ok();
        assert!(!home.work().join("made").exists(), "{script}");
        let expected = format!("gjc: hook 1 of hooks.pre_tool_call {why}");
        assert!(out.err().starts_with(&expected) && out.err().lines().count() == 1, "{script}: {out}");
        assert!(request(&stub, 1).contains(&format!("not run: hook 1 of hooks.pre_tool_call {why}")), "{script}");
    }
}

#[test]
fn a_guard_that_does_not_end_blocks_and_is_ended_with_all_that_it_started() {
    let home = Home::new();
    user(&home, "hooks:\n  pre_tool_call:\n  - {command: \"sleep 600 & echo $! > pid; wait\", timeout: 300ms}\n");
    let stub = stub([bash("touch made"), text("끝")]);
    let out = ask(&home, &stub, "해 줘").output().ok();
    assert!(out.err().contains("hook 1 of hooks.pre_tool_call did not end within 300ms"), "{out}");
    assert!(!home.work().join("made").exists());
    assert_ended(&std::fs::read_to_string(home.work().join("pid")).unwrap());
}

#[test]
fn hooks_are_asked_in_order_and_the_first_that_blocks_has_decided() {
    let home = Home::new();
    let script = |name: &str, said: &str| home.write(format!("home/{name}"), format!("echo {name} >> order\n{said}\n"));
    let (one, two, three) =
        (script("one", ALLOW), script("two", r#"echo '{"decision":"block"}'"#), script("three", ALLOW));
    user(
        &home,
        &format!("hooks: {{pre_tool_call: [sh {}, sh {}, sh {}]}}\n", one.display(), two.display(), three.display()),
    );
    let stub = stub([bash("true"), text("끝")]);
    ask(&home, &stub, "해 줘").output().ok();
    assert_eq!(std::fs::read_to_string(home.work().join("order")).unwrap(), "one\ntwo\n");
    assert!(request(&stub, 1).contains("a hook blocks this call: it gives no reason"));
}

#[test]
fn hooks_of_calls_that_may_run_together_run_together() {
    let home = Home::new();
    // Each waits until the other has come.
    hook(
        &home,
        "pre_tool_call",
        &format!("echo x >> both; until [ \"$(wc -l < both)\" -ge 2 ]; do sleep 0.01; done; {ALLOW}"),
    );
    let stub = stub([calls(&[("ls", j!({})), ("read", j!({"path": "."}))]), text("끝")]);
    let out = ask(&home, &stub, "봐 줘").limit(Duration::from_secs(60)).output().ok();
    assert_eq!(out.err(), "");
}

#[test]
fn what_a_hook_adds_follows_the_result_and_its_failure_is_a_notice() {
    let home = Home::new();
    let script = r#"cat >> heard
        [ "$(wc -l < heard)" = 1 ] && { printf '%s' '{"add":"첫 줄\n# 둘째 줄"}'; exit; }
        [ "$(wc -l < heard)" = 2 ] && exit
        echo 아니다"#;
    hook(&home, "post_tool_response", script);
    home.write("project/글.txt", "내용\n");
    let read = || calls(&[("read", j!({"path": "글.txt"}))]);
    let stub = stub([read(), read(), calls(&[("ls", j!({}))]), text("끝")]);
    let out = ask(&home, &stub, "읽어 줘").output().ok();
    assert_eq!(out.out(), "끝\n");
    assert!(out.err().contains("hook 1 of hooks.post_tool_response did not answer with one JSON object"), "{out}");
    let heard = heard(&home);
    assert_eq!(heard[0]["event"], "post_tool_response");
    assert_eq!((&heard[0]["text"], &heard[0]["is_error"]), (&j!("     1\t내용\n"), &j!(false)));
    let told = stub.requests()[1].json();
    let last = told["messages"].as_array().unwrap().last().unwrap().to_string();
    let (result, added) = (last.find("내용").unwrap(), last.find("> 첫 줄\\n> # 둘째 줄").unwrap());
    assert!(result < added && last.contains("A hook adds to the result of call 1 (read)"), "{last}");
    assert!(!trusted(&the_session(&home)), "nobody vouches for what a hook adds");
    let file = the_session(&home);
    assert_rebuilt(&home, &stub, &file, &[0, 1, 2, 3]);
    let added = lines(&file).into_iter().filter(|line| line["customType"] == "gjc.hook").count();
    assert_eq!(added, 1);
}

#[test]
fn what_hooks_add_stands_behind_the_results_of_all_calls() {
    let home = Home::new();
    hook(&home, "post_tool_response", r#"echo '{"add":"덧붙임"}'"#);
    let run = |command: &str| ("bash", j!({"command": command}));
    let stub = stub([calls(&[run("echo 하나"), run("echo 둘")]), text("끝")]);
    ask(&home, &stub, "해 줘").output().ok();
    let told = stub.requests()[1].json();
    let last = told["messages"].as_array().unwrap().last().unwrap()["content"].as_array().unwrap().clone();
    let kinds: Vec<&str> = last.iter().map(|block| block["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["tool_result", "tool_result", "text", "text"], "{last:?}");
    assert!(last[2]["text"].as_str().unwrap().contains("call 1 (bash)"), "{last:?}");
    assert!(last[3]["text"].as_str().unwrap().contains("call 2 (bash)"), "{last:?}");
}

#[test]
fn an_answer_that_is_held_back_is_asked_for_again_and_only_what_passed_is_printed() {
    let home = Home::new();
    hook(
        &home,
        "pre_output",
        &format!(
            "cat >> heard; case \"$(tail -n 1 heard)\" in *비밀*) echo '{{\"decision\":\"block\",\"reason\":\"비밀은 안 된다\"}}';; *) {ALLOW};; esac"
        ),
    );
    let stub = stub([text("비밀은 42다"), text("말할 수 없다")]);
    let out = ask(&home, &stub, "말해 줘").output().ok();
    assert_eq!((out.out().as_str(), out.err().as_str()), ("말할 수 없다\n", ""));
    assert_eq!(heard(&home).iter().map(|told| &told["text"]).collect::<Vec<_>>(), ["비밀은 42다", "말할 수 없다"]);
    assert!(request(&stub, 1).contains("A hook holds this answer back"), "{}", request(&stub, 1));
    assert!(request(&stub, 1).contains("> 비밀은 안 된다") && !trusted(&the_session(&home)));
    assert_rebuilt(&home, &stub, &the_session(&home), &[0, 1]);
}

#[test]
fn an_answer_that_never_passes_fails_the_turn_and_is_not_printed() {
    let home = Home::new();
    hook(&home, "pre_output", r#"echo '{"decision":"block","reason":"다시"}'"#);
    let stub = stub(["하나", "둘", "셋", "넷", "다섯"].map(text));
    let out = ask(&home, &stub, "말해 줘").output();
    assert_eq!((out.code(), out.out().as_str()), (Some(1), ""), "{out}");
    assert!(out.err().contains("a hook has held the answer back 4 times\nhint: "), "{out}");
    assert_eq!(stub.left(), 1, "four were asked for");
    // A hook that fails lets nothing pass either; the model cannot mend that, and is not asked again.
    let home = Home::new();
    hook(&home, "pre_output", "exit 1");
    let out = ask(&home, &stub, "말해 줘").output();
    assert_eq!((out.code(), out.out().as_str(), stub.left()), (Some(1), "", 0), "{out}");
    assert!(out.err().contains("the answer is held back: hook 1 of hooks.pre_output ended with exit code 1"), "{out}");
}

#[test]
fn a_face_that_has_shown_an_answer_is_told_that_it_is_none() {
    let home = Home::new();
    hook(&home, "pre_output", &format!("[ -e once ] && {ALLOW} || echo '{{\"decision\":\"block\"}}'; touch once"));
    let stub = stub([text("하나"), text("둘")]);
    let out = on(&home, &stub).args(["--mode", "json", "말해 줘"]).output().ok();
    let kinds: Vec<String> = out
        .out()
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["type"].as_str().unwrap().into())
        .collect();
    let place = |kind: &str| kinds.iter().position(|found| found == kind).unwrap();
    let last = kinds.iter().rposition(|found| found == "message_started").unwrap();
    assert!(place("message_started") < place("withheld") && place("withheld") < last, "{kinds:?}");
    assert_eq!(kinds.iter().filter(|kind| *kind == "withheld").count(), 1, "{kinds:?}");
}

#[test]
fn of_an_answer_that_no_hook_has_seen_nothing_is_printed() {
    let turn = text("여기까지 그리고 더");
    for (hooked, printed) in [(false, "여기까지 그리고\n"), (true, "")] {
        let home = Home::new();
        if hooked {
            hook(&home, "pre_output", ALLOW);
        }
        let stub = replies([turn.reply().cut_at(turn.event_ends()[3])]);
        let out = ask(&home, &stub, "길게").output();
        assert_eq!((out.code(), out.out().as_str()), (Some(1), printed), "{out}");
    }
}

#[test]
fn a_hook_hears_how_a_turn_has_ended_and_its_failure_is_a_notice() {
    let home = Home::new();
    hook(&home, "turn_end", "cat >> heard; head -c 100000 /dev/zero; exit 7");
    let stub = stub([text("끝")]);
    let out = ask(&home, &stub, "해 줘").output().ok();
    assert_eq!(out.out(), "끝\n");
    assert_eq!(
        out.err(),
        "gjc: hook 1 of hooks.turn_end ended with exit code 7 (gjc config get hooks.turn_end shows it)\n"
    );
    let failed = ask(&home, &stub, "또").output();
    assert_eq!(failed.code(), Some(1), "the stub has no more to say");
    let ends = heard(&home).iter().map(|told| told["end"].clone()).collect::<Vec<_>>();
    assert_eq!(ends, ["done", "failed"]);
}

#[test]
fn commands_are_answered_while_a_hook_runs_and_an_abort_ends_it() {
    let home = Home::new();
    hook(&home, "pre_tool_call", "echo $$ > pid.tmp; mv pid.tmp pid; sleep 600");
    let stub = stub([bash("touch made"), text("끝")]);
    let mut run = on(&home, &stub).args(["--mode", "rpc"]).spawn();
    run.send(r#"{"id":"1","command":{"type":"prompt","parts":[{"text":"해 줘","origin":"typed"}]}}"#);
    let pid = wait_for(&home.work().join("pid"));
    run.send(r#"{"id":"2","command":{"type":"snapshot"}}"#);
    assert!(run.wait_for(|line| line.contains(r#""id":"2""#)).contains(r#""step":"deciding""#));
    run.send(r#"{"id":"3","command":{"type":"abort"}}"#);
    run.wait_for(|line| line.contains(r#""end":"aborted""#));
    run.send(r#"{"id":"4","command":{"type":"close"}}"#);
    run.wait().ok();
    assert_ended(&pid);
    assert!(!home.work().join("made").exists());
    let result = messages(&the_session(&home)).pop().unwrap();
    assert!(result["content"].to_string().contains("not run: the turn was ended before"), "{result}");
}

/// The words of a file that a hook makes.
#[track_caller]
fn wait_for(path: &std::path::Path) -> String {
    let begun = Instant::now();
    while begun.elapsed() < LIMIT {
        if let Ok(text) = std::fs::read_to_string(path) {
            return text;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("{} did not come", path.display());
}

#[test]
fn an_interrupt_ends_the_hook_at_the_end_of_a_turn() {
    let home = Home::new();
    hook(&home, "turn_end", "echo $$ > pid.tmp; mv pid.tmp pid; sleep 600");
    let stub = stub([text("끝")]);
    let mut run = ask(&home, &stub, "해 줘").spawn();
    run.close_stdin();
    let pid = wait_for(&home.work().join("pid"));
    run.interrupt();
    let out = run.wait().ok();
    assert_eq!((out.out().as_str(), out.err().as_str()), ("끝\n", ""), "the turn had its answer");
    assert_ended(&pid);
}

/// Plays `gjc -p` with a model that runs one command, in a project; whether the project's hook has run.
fn runs(home: &Home, flags: &[&str]) -> (bool, testkit::harness::Output) {
    let mark = home.work().join("run");
    let _ = std::fs::remove_file(&mark);
    let stub = stub([bash("true"), text("끝")]);
    let out = ask(home, &stub, "해 줘").args(flags).output();
    (mark.exists(), out)
}

#[test]
fn the_hooks_of_a_clone_never_run_until_its_very_bytes_are_trusted() {
    let home = Home::new();
    let settings = format!("hooks:\n  pre_tool_call:\n    - echo > run; {ALLOW}\n  turn_end: [echo > run]\n");
    let file = project(&home, &settings);
    let (ran, out) = runs(&home, &[]);
    assert!(
        !ran && out.err().contains("sets hooks.pre_tool_call to ") && out.err().contains("you have not trusted"),
        "{out}"
    );
    let (ran, out) = runs(&home, &["--trust-project"]);
    assert!(ran && out.err().contains("has hooks: programs that run from now on"), "{out}");
    let (ran, out) = runs(&home, &[]);
    assert!(ran && out.err().is_empty(), "{out}");
    std::fs::write(&file, format!("{settings} ")).unwrap();
    let (ran, out) = runs(&home, &[]);
    assert!(!ran && out.err().contains("you have not trusted"), "{out}");
    std::fs::write(&file, &settings).unwrap();
    assert!(runs(&home, &[]).0, "the same bytes again");
}

#[test]
fn a_script_of_the_project_runs_as_it_was_trusted_or_not_at_all() {
    let home = Home::new();
    let good = format!("touch run; {ALLOW}\n");
    project(&home, "hooks: {pre_tool_call: [sh \"$GJC_PROJECT_DIR\"/.gjc/'검사 스크립트.sh']}\n");
    let script = home.write("project/.gjc/검사 스크립트.sh", &good);
    let (ran, out) = runs(&home, &["--trust-project"]);
    assert!(ran && out.err().contains("검사 스크립트.sh, which a hook names, is trusted as it is"), "{out}");
    assert!(runs(&home, &[]).0);
    std::fs::write(&script, format!("{good}#")).unwrap();
    let (ran, out) = runs(&home, &[]);
    let told = "is a file of the project, and not trusted as it is now";
    assert!(
        !ran && out.err().contains("hook 1 of hooks.pre_tool_call was not run: ") && out.err().contains(told),
        "{out}"
    );
    // Neither may it become a link to something else, a pipe, or huge.
    std::fs::remove_file(&script).unwrap();
    let other = home.write("home/other.sh", &good);
    std::os::unix::fs::symlink(&other, &script).unwrap();
    assert!(!runs(&home, &[]).0);
    std::fs::remove_file(&script).unwrap();
    let pipe = std::ffi::CString::new(script.to_str().unwrap()).unwrap();
    // SAFETY: a path that ends with NUL.
    assert_eq!(unsafe { libc::mkfifo(pipe.as_ptr(), 0o600) }, 0);
    assert!(!runs(&home, &["--trust-project"]).0);
    std::fs::remove_file(&script).unwrap();
    std::fs::File::create(&script).unwrap().set_len(1 << 30).unwrap();
    assert!(!runs(&home, &["--trust-project"]).0);
    std::fs::write(&script, &good).unwrap();
    assert!(runs(&home, &[]).0, "the bytes that were trusted");
}

#[test]
fn doctor_names_the_file_that_keeps_a_hook_from_running() {
    let home = Home::new();
    let doctor = || look(&home, &["doctor"]).output().out();
    assert!(!doctor().contains("hooks"), "nothing is told of none");
    project(&home, "");
    user(&home, "hooks: {turn_end: [./check.sh, \"true\"]}\n");
    assert!(doctor().contains("ok       hooks       programs that are run at events: 2\n"), "{}", doctor());
    home.write("project/check.sh", "");
    assert!(doctor().contains("problem  hooks       ") && doctor().contains("check.sh is a file of the project"));
}

#[test]
fn a_model_that_rewrites_the_script_of_a_hook_does_not_get_it_run() {
    let home = Home::new();
    project(&home, "hooks: {post_tool_response: [sh ./check.sh]}\n");
    home.write("project/check.sh", "true\n");
    let write = calls(&[("write", j!({"path": "check.sh", "content": "touch evil\n"}))]);
    let stub = stub([write, calls(&[("ls", j!({}))]), text("끝")]);
    let out = ask(&home, &stub, "해 줘").args(["--trust-project"]).output().ok();
    assert!(out.err().contains("hook 1 of hooks.post_tool_response was not run"), "{out}");
    assert!(!home.work().join("evil").exists());
}

#[test]
fn a_person_s_hook_runs_nothing_of_a_clone_and_no_clone_takes_it_away() {
    let home = Home::new();
    let own = home.write("home/own.sh", format!("touch own; {ALLOW}"));
    user(&home, &format!("hooks: {{pre_tool_call: [sh {}, ./check.sh]}}\n", own.display()));
    project(&home, "hooks: {pre_tool_call: []}\n");
    home.write("project/check.sh", "touch run\n");
    for flags in [&[][..], &["--trust-project"]] {
        let own = home.work().join("own");
        let (ran, out) = runs(&home, flags);
        assert!(own.exists(), "{out}");
        assert!(!ran, "it may not be executed even when it is trusted: {out}");
        std::fs::remove_file(own).unwrap();
        let why =
            if flags.is_empty() { "hook 2 of hooks.pre_tool_call was not run" } else { "ended with exit code 126" };
        assert!(out.err().contains(why), "{out}");
    }
}

#[test]
fn under_a_korean_locale_a_person_is_told_in_korean() {
    let home = Home::new();
    hook(&home, "turn_end", "exit 7");
    let stub = stub([text("끝")]);
    let out = ask(&home, &stub, "해 줘").env("LC_ALL", "ko_KR.UTF-8").output().ok();
    let words = out.err().chars().filter(|c| c.is_alphabetic()).collect::<String>();
    assert!(!words.contains("ended") && out.err().contains("종료 코드 7"), "{out}");
}

#[test]
fn a_hook_hears_what_the_model_hears_of_a_job() {
    let home = Home::new();
    hook(&home, "post_tool_response", "cat >> heard; echo >> heard; echo '{}'");
    let stub = stub([
        calls(&[("bash", j!({"command": "echo 일했다", "background": true}))]),
        calls(&[("job", j!({"poll": ["job-1"]}))]),
        text("끝"),
    ]);
    ask(&home, &stub, "해 줘").output().ok();
    let heard: Vec<Value> = heard(&home);
    let job = heard.iter().find(|call| call["tool"] == "job").unwrap();
    assert!(job["text"].as_str().unwrap().contains("일했다"), "{job}");
}
