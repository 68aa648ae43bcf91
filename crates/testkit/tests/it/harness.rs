use std::panic::AssertUnwindSafe;
use std::time::Duration;

use testkit::harness::Home;
use testkit::process::assert_ended;

#[test]
fn the_environment_is_an_allow_list() {
    let home = Home::new();
    let out = home.run("env").env("EXTRA", "값").env_remove("RUST_BACKTRACE").output().ok().out();
    let names: Vec<&str> = out.lines().filter_map(|l| l.split_once('=')).map(|(k, _)| k).collect();
    let known = ["PATH", "LLVM_PROFILE_FILE", "HOME", "GJC_CODING_AGENT_DIR", "TMPDIR", "LANG", "TZ", "EXTRA"];
    let strange: Vec<_> = names.iter().filter(|n| !known.contains(n) && !n.starts_with("GIT_")).collect();
    assert!(strange.is_empty(), "{strange:?}");
    for line in [
        format!("HOME={}", home.path().display()),
        format!("GJC_CODING_AGENT_DIR={}", home.agent_dir().display()),
        "LANG=C.UTF-8".into(),
        "TZ=UTC".into(),
        "EXTRA=값".into(),
    ] {
        assert!(out.lines().any(|l| l == line), "{line} is missing in\n{out}");
    }
}

#[test]
fn an_output_has_both_streams_code_and_measures() {
    let home = Home::new();
    let out = home.run("sh").args(["-c", "pwd; cat; echo 오류 >&2; exit 3"]).stdin("입력\n").output();
    assert_eq!(out.out(), format!("{}\n입력\n", home.work().display()));
    assert_eq!((out.err().as_str(), out.code(), out.signal), ("오류\n", Some(3), None));
    assert!(out.max_rss > 100_000 && out.wall > Duration::ZERO);
    let said = crate::failure(move || drop(out.ok()));
    assert!(said.contains("입력") && said.contains("오류"), "{said}");
}

#[test]
fn a_large_stdin_and_output_do_not_block_each_other() {
    let home = Home::new();
    let big = vec![b'x'; 3 << 20];
    assert_eq!(home.run("cat").stdin(big.clone()).output().ok().stdout, big);
    home.run("true").stdin(big).output().ok();
}

#[test]
fn the_time_limit_kills_the_whole_group_and_shows_both_outputs() {
    let home = Home::new();
    let script = "echo $$ > pid; sleep 600 & echo $! > pid2; echo 나왔다; echo 막혔다 >&2; wait";
    let said = crate::failure(AssertUnwindSafe(|| {
        home.run("sh").args(["-c", script]).limit(Duration::from_millis(500)).output();
    }));
    assert!(said.contains("time limit") && said.contains("나왔다") && said.contains("막혔다"), "{said}");
    for file in ["pid", "pid2"] {
        let pid = std::fs::read_to_string(home.work().join(file)).unwrap();
        assert_ended(&pid);
    }
}

#[test]
fn one_can_talk_to_a_running_program() {
    let home = Home::new();
    let mut run = home.run("sh").args(["-c", "echo 준비; while read -r l; do echo \"<$l>\"; done; echo 안녕"]).spawn();
    assert_eq!(run.wait_for(|l| l.contains("준비")), "준비");
    run.send("하나");
    run.send("둘");
    assert_eq!(run.wait_for(|l| l == "<둘>"), "<둘>");
    let out = run.wait().ok();
    assert_eq!(out.out(), "준비\n<하나>\n<둘>\n안녕\n");
}

#[test]
fn a_line_that_never_comes_fails_with_what_came() {
    let home = Home::new();
    let mut run = home.run("sh").args(["-c", "printf 마지막"]).spawn();
    let mut seen = vec![];
    let said = crate::failure(AssertUnwindSafe(|| {
        run.wait_for(|l| {
            seen.push(l.to_owned());
            false
        });
    }));
    assert_eq!(seen, ["마지막"]);
    assert!(said.contains("ended before") && said.contains("마지막"), "{said}");
}

#[test]
fn kill_9_is_a_kill_9() {
    let home = Home::new();
    let mut run = home.run("sh").args(["-c", "echo $$; read -r l"]).spawn();
    let pid = run.pid();
    assert_eq!(run.wait_for(|_| true), pid.to_string());
    let out = run.kill_9();
    assert_eq!((out.signal, out.code()), (Some(9), None));
}

#[test]
fn a_run_that_rewrites_a_session_fails_the_test() {
    let home = Home::new();
    let file = home.write("home/s.jsonl", "{\"가\":1}\n");
    home.run("sh").args(["-c", "echo '{}' >> ~/s.jsonl"]).output().ok();
    let said = crate::failure(AssertUnwindSafe(|| {
        home.run("sh").args(["-c", "echo '{}' > ~/s.jsonl"]).output();
    }));
    assert!(said.contains("did not only grow"), "{said}");
    home.forget(&file);
    std::fs::remove_file(file).unwrap();
}

#[test]
fn the_home_looks_once_more_when_it_goes() {
    let said = crate::failure(|| {
        let home = Home::new();
        let file = home.write("home/s.jsonl", "{}\n");
        home.check_grown();
        std::fs::remove_file(file).unwrap();
    });
    assert!(said.contains("vanished"), "{said}");
}
