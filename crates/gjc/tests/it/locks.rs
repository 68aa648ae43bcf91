//! Two processes, one session.

use crate::kit::*;
use testkit::harness::{Home, Running};
use testkit::stub::{Gate, Reply};

/// A stub's answer that stops in its middle.
fn half(gate: &Gate) -> Reply {
    let turn = text("반쯤 왔습니다");
    turn.reply().gate_at(turn.event_ends()[3], gate)
}

/// A session with one exchange.
fn session(home: &Home) -> String {
    let stub = stub([text("네")]);
    ask(home, &stub, "안녕").output().ok();
    id_of(&the_session(home))
}

/// Another process that has the session open, in the middle of an answer.
fn holder<'h>(home: &'h Home, stub: &testkit::stub::Stub, id: &str) -> Running<'h> {
    let mut run = on(home, stub).args(["-p", "오래", "--mode", "json", "--resume", id]).spawn();
    run.close_stdin();
    run.wait_for(|line| line.contains("text_delta"));
    run
}

#[test]
fn the_second_is_told_who_has_it_and_nothing_happens() {
    let home = Home::new();
    let id = session(&home);
    let gate = Gate::new();
    let stub = replies([half(&gate), text("이제 됩니다").reply()]);
    let first = holder(&home, &stub, &id);
    let before = std::fs::read(the_session(&home)).unwrap();
    let second = ask(&home, &stub, "나도").args(["--resume", &id]).output();
    assert_eq!((second.code(), second.out().as_str()), (Some(1), ""));
    assert!(second.err().contains(&format!("session is open in another process (pid {})", first.pid())), "{second}");
    steady(&home, || insta::assert_snapshot!(second.err()));
    assert_eq!(std::fs::read(the_session(&home)).unwrap(), before);
    // Looking is always allowed.
    assert!(look(&home, &["sessions", "show", &id]).output().ok().out().contains("안녕"));
    assert!(look(&home, &["sessions", "verify", &id]).output().ok().out().contains("sound, open in another process"));
    gate.open();
    first.wait().ok();
    let third = ask(&home, &stub, "이제?").args(["--resume", &id]).output().ok();
    assert_eq!(third.out(), "이제 됩니다\n");
}

#[test]
fn a_holder_that_was_killed_holds_nothing() {
    let home = Home::new();
    let id = session(&home);
    let stub = replies([half(&Gate::new()), text("다시").reply()]);
    let first = holder(&home, &stub, &id);
    assert_eq!(first.kill_9().signal, Some(9));
    let out = ask(&home, &stub, "어디까지 했지?").args(["--resume", &id]).output().ok();
    assert_eq!((out.out().as_str(), out.err().as_str()), ("다시\n", ""));
    let said: Vec<_> = messages(&the_session(&home)).iter().map(|m| m["role"].as_str().unwrap().to_owned()).collect();
    assert_eq!(said, ["user", "assistant", "user", "user", "assistant"], "the unfinished answer was never admitted");
}
