//! Exit codes, signals, and readers that go away.

use crate::kit::*;
use serde_json::json;
use testkit::anthropic::Turn;
use testkit::harness::Home;
use testkit::process::assert_ended;
use testkit::stub::Gate;

#[test]
fn an_interrupt_keeps_what_came_and_ends_with_130() {
    for signal in ["INT", "TERM", "HUP"] {
        let home = Home::new();
        let turn = Turn::new("m").thinking("서명 없는 생각", "").text("여기까지 그리고 더");
        let cut = turn.event_ends()[6];
        let stub = replies([turn.reply().gate_at(cut, &Gate::new()), text("이어서").reply()]);
        let mut run = ask(&home, &stub, "길게").args(["--mode", "json"]).spawn();
        run.close_stdin();
        run.wait_for(|line| line.contains("text_delta"));
        match signal {
            "INT" => run.interrupt(),
            "TERM" => run.terminate(),
            _ => run.hang_up(),
        }
        let out = run.wait();
        assert_eq!(out.code(), Some(130), "{out}");
        let file = the_session(&home);
        let (_, kept) = answers(&file).pop().unwrap();
        assert_eq!(kept["stopReason"], "aborted");
        assert!(kept["content"].to_string().contains("여기까지 그리고"), "{kept}");
        // And it goes on: thinking without a signature would be refused by the provider.
        let out = ask(&home, &stub, "계속").args(["--resume", &id_of(&file)]).output().ok();
        assert_eq!(out.out(), "이어서\n");
        let body = String::from_utf8(stub.requests()[1].body.clone()).unwrap();
        assert!(body.contains("여기까지 그리고") && !body.contains("서명 없는 생각"), "{body}");
    }
}

#[test]
fn a_closed_terminal_ends_nothing_that_was_told_to_go_on() {
    let home = Home::new();
    let (gate, turn) = (Gate::new(), text("여기까지 그리고 더"));
    let stub = replies([turn.reply().gate_at(turn.event_ends()[3], &gate)]);
    let script = "trap '' HUP; exec \"$0\" -p x --mode json --model anthropic/claude-stub-1 --provider-url \"$1\"";
    let run = home.run("sh").args(["-c", script, env!("CARGO_BIN_EXE_gjc"), &stub.url()]).env("ANTHROPIC_API_KEY", KEY);
    let mut run = run.spawn();
    run.close_stdin();
    run.wait_for(|line| line.contains("text_delta"));
    run.hang_up();
    gate.open();
    run.wait().ok();
    assert_eq!(answers(&the_session(&home))[0].1["stopReason"], "stop");
}

#[test]
fn an_interrupted_answer_is_printed_as_far_as_it_came() {
    let home = Home::new();
    let turn = text("여기까지 그리고 더");
    let stub = replies([turn.reply().gate_at(turn.event_ends()[3], &Gate::new())]);
    let mut run = ask(&home, &stub, "x").spawn();
    run.close_stdin();
    stub.wait_for_requests(1, LIMIT);
    // The interrupt may come before or after the first words have: without any there is nothing to store.
    run.interrupt();
    let out = run.wait();
    assert_eq!(out.code(), Some(130), "{out}");
    assert!(["", "여기까지 그리고\n"].contains(&out.out().as_str()), "{out}");
    assert_eq!(out.err(), "gjc: interrupted\n");
    assert_eq!(session_files(&home).is_empty(), out.out().is_empty());
}

#[test]
fn an_interrupted_command_is_ended_with_its_children() {
    let home = Home::new();
    let command = "echo $$ > pids; sleep 600 & echo $! >> pids; echo 시작; wait";
    let stub = stub([Turn::new("m").tool_call("c", "bash", &json!({"command": command})), text("x")]);
    let mut run = ask(&home, &stub, "x").args(["--mode", "json"]).spawn();
    run.close_stdin();
    run.wait_for(|line| line.contains("tool_progress") && line.contains("시작"));
    run.interrupt();
    let out = run.wait();
    assert_eq!(out.code(), Some(130), "{out}");
    for pid in std::fs::read_to_string(home.work().join("pids")).unwrap().lines() {
        assert_ended(pid);
    }
    let file = the_session(&home);
    assert_eq!(messages(&file).last().unwrap()["role"], "toolResult", "the call is answered");
    look(&home, &["sessions", "verify", &id_of(&file)]).output().ok();
}

#[test]
fn a_reader_that_has_gone_away_is_silence() {
    let home = Home::new();
    let stub = replies([long(&"긴 글 ".repeat(100_000)), text("둘").reply()]);
    let gjc = env!("CARGO_BIN_EXE_gjc");
    let with = format!("--model anthropic/x --provider-url {}", stub.url());
    for command in [
        format!("{gjc} -p x {with} </dev/null"),
        format!("{gjc} -p x --mode json {with} </dev/null"),
        format!("{gjc} sessions list"),
        format!("{gjc} sessions list --json"),
        format!("{gjc} sessions verify --all"),
        format!("{gjc} --help"),
        format!("{gjc} demo --dir demo"),
    ] {
        // The reader is gone before the first byte: it has been waited for.
        let script =
            format!("exec 3>&1; mkfifo p; true <p & {{ wait $!; {command} ; }} >p; echo \"exit $?\" >&3; rm p");
        let out = home.run("bash").args(["-c", &script]).output();
        assert_eq!(out.err(), "", "{command}: {out}");
        assert!(!out.out().contains("panicked"), "{command}: {out}");
        assert_eq!(out.out(), "exit 0\n", "{command}: {out}");
    }
    assert_eq!(stub.left(), 0);
    // So is stderr.
    for (command, code) in [
        ("sessions show none", 1),
        ("--mode xml", 2),
        ("sessions list", 0),
        ("-p x --provider-url http://127.0.0.1:9 --model y", 2),
    ] {
        let script = format!(
            "exec 3>&1; mkfifo p; true <p & {{ wait $!; {gjc} {command} </dev/null ; }} 2>p; echo \"exit $?\" >&3; rm p"
        );
        let agent = home.tmp().join("empty");
        let out = home.run("bash").args(["-c", &script]).env("GJC_CODING_AGENT_DIR", agent).output();
        assert_eq!(out.out(), format!("exit {code}\n"), "{command}: {out}");
    }
    // A closed stdout too.
    for command in ["sessions list", "--version"] {
        let out = home.run("bash").args(["-c", &format!("{gjc} {command} >&-; echo $? >&2")]).output();
        assert_eq!(out.err(), "0\n", "{command}");
    }
    look(&home, &["sessions", "verify", "--all"]).output().ok();
}

#[test]
fn misuse_is_2_and_help_is_0() {
    let home = Home::new();
    for (args, code) in [
        (&["--no-such"][..], 2),
        (&["sessions"], 2),
        (&["sessions", "verify"], 2),
        (&["-p", "x", "--resume", "a", "--no-session"], 2),
        (&["-p", "x", "--cwd", "/없는 폴더"], 2),
        (&["-p", "x", "--system-prompt", "없는 파일", "--provider-url", "http://127.0.0.1:9"], 2),
        (&["-p", "x", "--tools", "없는 도구", "--provider-url", "http://127.0.0.1:9"], 2),
        (&["--mode", "rpc", "x"], 2),
        (&[], 2),
        (&["--help"], 0),
        (&["--version"], 0),
        (&["sessions", "list"], 0),
        (&["sessions", "show", "없다"], 1),
    ] {
        let out = look(&home, args).output();
        assert_eq!(out.code(), Some(code), "{args:?}: {out}");
        assert_eq!(out.out().is_empty(), code != 0 || args.contains(&"list"), "{args:?}: {out}");
    }
    assert!(walk(&home.path()).is_empty(), "misuse stores nothing");
}

#[test]
fn without_a_home_there_is_a_way_out() {
    let home = Home::new();
    let out = look(&home, &["sessions", "list"]).env_remove("HOME").env_remove("GJC_CODING_AGENT_DIR").output();
    assert_eq!(out.code(), Some(2));
    steady(&home, || insta::assert_snapshot!(out.err()));
}
