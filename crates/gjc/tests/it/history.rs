//! The prompt history: what a person has said is safe before the model is asked, and is offered again if nobody answered.

use crate::kit::*;
use rusqlite::Connection;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Instant;
use testkit::anthropic::Turn;
use testkit::harness::{Home, Output};
use testkit::stub::{Gate, Reply};

fn history(home: &Home) -> PathBuf {
    home.agent_dir().join("history.db")
}

/// A reply whose first byte never comes.
fn never() -> Reply {
    text("오지 않는 대답").reply().gate_at(0, &Gate::new())
}

/// `gjc prompts --json` with more arguments.
#[track_caller]
fn prompts(home: &Home, args: &[&str]) -> Vec<Value> {
    let out = look(home, &[&["prompts", "--json"], args].concat()).output().ok();
    json(&out)["prompts"].as_array().unwrap().clone()
}

/// The texts of those that nobody answered.
#[track_caller]
fn unanswered(home: &Home) -> Vec<String> {
    let open = prompts(home, &[]).into_iter().filter(|prompt| prompt["unanswered"] == true);
    open.map(|prompt| prompt["text"].as_str().unwrap().to_owned()).collect()
}

/// `gjc -p` that is killed when its request has arrived.
fn killed(home: &Home, prompt: &str) {
    let stub = replies([never()]);
    let mut run = ask(home, &stub, prompt).spawn();
    run.close_stdin();
    stub.wait_for_requests(1, LIMIT);
    assert_eq!(run.kill_9().signal, Some(9));
}

/// A run that is answered.
#[track_caller]
fn answered(home: &Home, prompt: &str) -> Output {
    ask(home, &stub([text("네")]), prompt).output().ok()
}

fn rpc_prompt(id: &str, text: &str, mode: &str) -> String {
    let parts = json!([{"text": text, "origin": "typed"}]);
    json!({"id": id, "command": {"type": "prompt", "parts": parts, "mode": mode}}).to_string()
}

#[test]
fn a_prompt_whose_process_was_killed_is_offered_until_it_is_sent_again() {
    let home = Home::new();
    let lost = "어제의 긴 물음:\n둘째 줄과 😀";
    killed(&home, lost);
    assert_eq!(session_files(&home), [] as [PathBuf; 0], "nothing of the session is on the disk");
    let mode = std::fs::metadata(history(&home)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    // Each start in the folder says so; nothing of it goes to a model by itself.
    let stub = stub([text("하나"), text("둘")]);
    for answer in ["하나\n", "둘\n"] {
        let out = ask(&home, &stub, "다른 말").output().ok();
        assert_eq!(out.out(), answer);
        steady(&home, || insta::assert_snapshot!("offered", out.err()));
    }
    for request in stub.requests() {
        assert!(
            !String::from_utf8_lossy(&request.body).contains("어제의"),
            "a kept prompt went to the model by itself"
        );
    }
    // In another folder nothing is said.
    let other = home.write("other/x", "");
    let out = ask(&home, &replies([text("셋").reply()]), "여기").cwd(other.parent().unwrap()).output().ok();
    assert_eq!(out.err(), "");
    // The way out that the sentence names, as a shell does it.
    let id = prompts(&home, &[])[0]["id"].to_string();
    let shown = look(&home, &["prompts", "show", &id]).output().ok();
    assert_eq!(shown.out(), format!("{lost}\n"));
    let again = answered(&home, shown.out().trim_end_matches('\n'));
    assert_eq!(again.err(), "");
    assert_eq!(answered(&home, "끝").err(), "");
    let fates: Vec<Value> = prompts(&home, &["어제의"]).iter().map(|prompt| prompt["fate"].clone()).collect();
    assert_eq!(fates, ["stored"], "the list has each text once");
    assert_eq!(json(&look(&home, &["prompts", "show", "--json", &id]).output().ok())["fate"], "sent_again");
}

#[cfg(feature = "failpoints")]
#[test]
fn a_death_at_each_moment_before_the_first_answer_is_stored_loses_no_prompt() {
    for (point, alone) in [
        ("agent.prompt.replied", true),
        ("agent.request.before", true),
        ("agent.answer.heard", true),
        // The answer is on its way to the disk: the session has the prompt, or the history offers it.
        ("agent.turn.over", false),
        ("agent.durable.after", false),
        ("agent.turn.told", false),
    ] {
        let home = Home::new();
        let out = ask(&home, &stub([text("네")]), "물음 하나").env("GJC_FP", format!("{point}=kill")).output();
        assert_eq!(out.signal, Some(9), "{point}: {out}");
        let stored = session_files(&home).len() == 1;
        assert!(!alone || !stored, "{point}");
        let offered = answered(&home, "다음").err().contains("물음 하나");
        assert_eq!(offered, !stored, "{point}: offered {offered}, stored {stored}");
        assert_eq!(unanswered(&home).len(), usize::from(offered), "{point}");
    }
}

#[test]
fn an_answer_settles_it() {
    let home = Home::new();
    assert_eq!(answered(&home, "물음").err(), "");
    let all = prompts(&home, &[]);
    assert_eq!((all.len(), &all[0]["fate"], &all[0]["text"]), (1, &json!("stored"), &json!("물음")));
    assert_eq!(all[0]["session"], id_of(&the_session(&home)));
}

#[test]
fn what_a_session_holds_is_not_offered_although_its_process_was_killed() {
    let home = Home::new();
    let stub = replies([Turn::new("m").tool_call("c", "bash", &json!({"command": "true"})).reply(), never()]);
    let mut run = ask(&home, &stub, "일해 줘").spawn();
    run.close_stdin();
    stub.wait_for_requests(2, LIMIT);
    run.kill_9();
    assert_eq!(unanswered(&home), [] as [String; 0]);
    assert_eq!(answered(&home, "다음").err(), "");
    assert_eq!(prompts(&home, &["일해"])[0]["fate"], "stored");
}

#[test]
fn an_interrupt_and_a_provider_that_is_down_leave_it_to_be_offered() {
    let home = Home::new();
    let refused =
        Reply::json(400, &json!({"type": "error", "error": {"type": "invalid_request_error", "message": "no"}}));
    assert_eq!(ask(&home, &replies([refused]), "거절된 물음").output().code(), Some(1));
    let stub = replies([never()]);
    let mut run = ask(&home, &stub, "끊긴 물음").spawn();
    run.close_stdin();
    stub.wait_for_requests(1, LIMIT);
    run.interrupt();
    assert_eq!(run.wait().code(), Some(130));
    assert_eq!(unanswered(&home), ["거절된 물음", "끊긴 물음"], "oldest first");
    let out = answered(&home, "다음");
    steady(&home, || insta::assert_snapshot!("offered_two", out.err()));
    let id = prompts(&home, &[])[0]["id"].to_string();
    look(&home, &["prompts", "forget", &id]).output().ok();
    assert_eq!(unanswered(&home), ["끊긴 물음"]);
    look(&home, &["prompts", "forget", "--all"]).output().ok();
    assert_eq!(answered(&home, "끝").err(), "");
    assert_eq!(prompts(&home, &[]).len(), 4, "nothing is deleted");
    let lost = look(&home, &["prompts", "forget", "99"]).output();
    assert_eq!((lost.code(), lost.out().as_str()), (Some(1), ""));
    steady(&home, || insta::assert_snapshot!("unknown", lost.err()));
}

#[test]
fn programs_are_told_by_an_event() {
    let home = Home::new();
    let long = "긴 ".repeat(300);
    killed(&home, "짧은 물음");
    killed(&home, &long);
    for mode in ["json", "rpc"] {
        let stub = stub([text("네")]);
        let run = on(&home, &stub).args(["--mode", mode]);
        let out = if mode == "json" { run.arg("새 물음").output().ok() } else { run.output().ok() };
        let lines: Vec<Value> = out.out().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let event = &lines[1];
        assert_eq!((&lines[0]["type"], &event["type"]), (&json!("session"), &json!("unanswered")), "{mode}");
        assert_eq!((&event["seq"], &event["count"]), (&lines[0]["seq"], &json!(2)));
        assert_eq!((&event["prompts"][0]["text"], &event["prompts"][0]["whole"]), (&json!("짧은 물음"), &json!(true)));
        assert_eq!(event["prompts"][1]["text"].as_str().unwrap().chars().count(), 200);
        assert_eq!(event["prompts"][1]["whole"], false);
        assert!(out.err().contains("2 prompts in this folder have no answer"), "{out}");
    }
}

#[test]
fn prompts_that_wait_are_safe_too_and_one_that_was_taken_back_is_gone() {
    let home = Home::new();
    let stub = replies([never()]);
    let mut run = on(&home, &stub).args(["--mode", "rpc"]).spawn();
    run.send(&rpc_prompt("1", "첫째", "steer"));
    stub.wait_for_requests(1, LIMIT);
    for (id, text, mode) in [("2", "고쳐 말하면", "steer"), ("3", "끝나면", "follow_up"), ("4", "거둘 말", "steer")]
    {
        run.send(&rpc_prompt(id, text, mode));
    }
    run.send(&json!({"id": "5", "command": {"type": "unqueue"}}).to_string());
    run.wait_for(|line| line.contains(r#""id":"5""#));
    // What claims to be of a tool was not typed.
    let tool = json!([{"text": "도구의 말", "origin": "tool"}]);
    run.send(&json!({"id": "6", "command": {"type": "prompt", "parts": tool}}).to_string());
    run.wait_for(|line| line.contains(r#""id":"6""#));
    assert_eq!(unanswered(&home), [] as [String; 0], "its process runs");
    run.kill_9();
    assert_eq!(unanswered(&home), ["첫째", "고쳐 말하면", "끝나면"]);
    assert_eq!(prompts(&home, &["거둘"])[0]["fate"], "taken_back");
    assert_eq!(prompts(&home, &["도구의"]), [] as [Value; 0]);
}

#[test]
fn a_session_of_many_turns_settles_each_prompt_that_it_holds() {
    let home = Home::new();
    let gate = Gate::new();
    let stub = replies([text("하나").reply().gate_at(0, &gate), text("둘").reply(), never()]);
    let mut run = on(&home, &stub).args(["--mode", "rpc"]).spawn();
    run.send(&rpc_prompt("1", "첫째", "steer"));
    run.send(&rpc_prompt("2", "둘째", "follow_up"));
    run.wait_for(|line| line.contains(r#""id":"2""#));
    gate.open();
    for _ in 0..2 {
        run.wait_for(|line| line.contains("turn_ended"));
    }
    // The third is admitted and in the file, but no turn has ended with it.
    run.send(&rpc_prompt("3", "셋째", "steer"));
    stub.wait_for_requests(3, LIMIT);
    run.kill_9();
    assert_eq!(unanswered(&home), [] as [String; 0]);
    assert_eq!(messages(&the_session(&home)).len(), 5);
}

#[test]
fn without_a_session_nothing_is_kept() {
    let home = Home::new();
    killed(&home, "남은 물음");
    let before = tree(&home.agent_dir());
    let out = ask(&home, &stub([text("네")]), "비밀 물음").arg("--no-session").output().ok();
    assert_eq!(out.err(), "");
    assert_eq!(tree(&home.agent_dir()), before);
    let fresh = Home::new();
    ask(&fresh, &stub([text("네")]), "비밀 물음").arg("--no-session").output().ok();
    assert!(!history(&fresh).exists());
}

/// Whether any file of the history holds these bytes.
fn holds(home: &Home, bytes: &str) -> bool {
    let files = walk(&home.agent_dir())
        .into_iter()
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("history.db")));
    let mut any = false;
    for path in files {
        any |= std::fs::read(path).unwrap().windows(bytes.len()).any(|window| window == bytes.as_bytes());
    }
    any
}

#[test]
fn nothing_of_a_session_is_kept_but_what_a_person_typed() {
    let home = Home::new();
    home.write("project/메모.txt", "MARKER-FILE\n");
    home.write("project/시스템.txt", "MARKER-SYSTEM\n");
    let stub = stub([
        Turn::new("m1").thinking("MARKER-THINKING", "sig==").text("MARKER-TEXT").tool_call(
            "c1",
            "read",
            &json!({"path": "메모.txt"}),
        ),
        Turn::new("m2").tool_call("c2", "bash", &json!({"command": "echo MARKER-OUT; printf 'MARKER-%s' INPUT"})),
        text("MARKER-ANSWER"),
    ]);
    let run = ask(&home, &stub, "내가 친 말").arg("--append-system-prompt").arg(home.work().join("시스템.txt"));
    // Some is piped in beside the typed words: not typed, and not kept.
    run.stdin("MARKER-PIPED\n").output().ok();
    let session = std::fs::read_to_string(the_session(&home)).unwrap();
    for marker in ["FILE", "OUT", "INPUT", "TEXT", "THINKING", "ANSWER", "PIPED"] {
        assert!(session.contains(&format!("MARKER-{marker}")), "the session has {marker}");
    }
    assert!(holds(&home, "내가 친 말"), "the typed words are there");
    assert!(!holds(&home, "MARKER") && !holds(&home, KEY));
    assert_eq!(prompts(&home, &[])[0]["notKept"], 1);
    // Where the piped text is the whole prompt, it is what the person said.
    on(&home, &replies([text("네").reply()])).arg("-p").stdin("파이프로 준 물음\n").output().ok();
    assert_eq!(prompts(&home, &["파이프"])[0]["notKept"], 0);
}

#[test]
fn the_list_has_a_row_for_each_whatever_it_holds() {
    let home = Home::new();
    assert_eq!(
        look(&home, &["prompts"]).output().ok().err(),
        "There are no prompts of this folder yet. All folders: gjc prompts --all\n"
    );
    assert!(!history(&home).exists(), "looking makes nothing");
    answered(&home, "여러 줄의\n\t\u{1b}[31m말\u{7}과 제어 문자");
    answered(&home, &"아주 긴 물음입니다 ".repeat(20));
    answered(&home, "plain ASCII, 100% '; --");
    killed(&home, "😀 이모지와 \u{202e}뒤집기");
    // What argv cannot hold.
    let stub = stub([text("하나"), text("둘")]);
    let lines = [rpc_prompt("1", "널\0널", "steer"), rpc_prompt("2", &"큰 ".repeat(30_000), "follow_up")];
    on(&home, &stub).args(["--mode", "rpc"]).stdin(lines.join("\n")).output().ok();
    let listed = look(&home, &["prompts"]).output().ok();
    steady(&home, || insta::assert_snapshot!("list", shown(&listed)));
    assert_eq!(prompts(&home, &["널"])[0]["text"], "널\0널");
    assert_eq!(prompts(&home, &["지와"]).len(), 1, "한글 within a word");
    assert_eq!(prompts(&home, &["ascii,", "100%"]).len(), 1);
    assert_eq!(prompts(&home, &["-n", "2"]).len(), 2);
    let none = look(&home, &["prompts", "-n", "0"]).output().ok();
    assert_eq!((none.out(), none.err()), (String::new(), String::new()));
    assert_eq!(look(&home, &["prompts", "없는 말"]).output().ok().err(), "No prompt holds this text.\n");
    assert!(look(&home, &["prompts", "--all"]).cwd(home.tmp()).output().ok().out().contains("plain ASCII"));
    assert_eq!(look(&home, &["prompts"]).cwd(home.tmp()).output().ok().out(), "");
}

#[test]
fn a_history_of_another_program_is_used() {
    let home = Home::new();
    std::fs::create_dir_all(home.agent_dir()).unwrap();
    let db = Connection::open(history(&home)).unwrap();
    db.execute_batch(
        "PRAGMA journal_mode=WAL;
         CREATE TABLE history (id INTEGER PRIMARY KEY AUTOINCREMENT, prompt TEXT NOT NULL,
             created_at INTEGER NOT NULL DEFAULT (unixepoch()), cwd TEXT);",
    )
    .unwrap();
    let here = home.work().display().to_string();
    db.execute("INSERT INTO history (prompt, created_at, cwd) VALUES ('그들의 물음', 1780643934, ?1)", [here]).unwrap();
    answered(&home, "우리의 물음");
    let listed = prompts(&home, &[]);
    let texts: Vec<&str> = listed.iter().map(|prompt| prompt["text"].as_str().unwrap()).collect();
    assert_eq!(texts, ["우리의 물음", "그들의 물음"]);
    assert_eq!((listed[1].get("id"), &listed[1]["unanswered"]), (None, &json!(false)));
    let theirs: i64 =
        db.query_row("SELECT count(*) FROM history WHERE prompt = '우리의 물음'", [], |row| row.get(0)).unwrap();
    assert_eq!(theirs, 1);
}

/// A run whose prompt cannot be kept: it is answered all the same, and says why once.
#[track_caller]
fn goes_on_without(home: &Home, why: &str) {
    let begun = Instant::now();
    let stub = stub([text("하나"), text("둘")]);
    let mut run = on(home, &stub).args(["--mode", "rpc"]).spawn();
    run.send(&rpc_prompt("1", "첫째", "steer"));
    run.send(&rpc_prompt("2", "둘째", "follow_up"));
    run.close_stdin();
    let out = run.wait().ok();
    assert!(begun.elapsed().as_secs() < 10, "{out}");
    assert_eq!(out.out().matches(r#""end":"done""#).count(), 2, "{out}");
    let told: Vec<String> = out.err().lines().filter(|line| line.contains("not kept")).map(Into::into).collect();
    assert!(told.len() == 1 && told[0].contains(why) && told[0].contains("history.db"), "{out}");
}

#[test]
fn a_session_goes_on_without_a_history_that_cannot_be_used() {
    let home = Home::new();
    // Noise under its name is kept as it is.
    let noise: Vec<u8> = (0..10_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    home.write("home/.gjc/agent/history.db", &noise);
    goes_on_without(&home, "no database of prompts");
    assert_eq!(std::fs::read(history(&home)).unwrap(), noise);
    let out = look(&home, &["prompts"]).output();
    assert_eq!((out.code(), out.out().as_str()), (Some(1), ""));
    steady(&home, || insta::assert_snapshot!("noise", out.err()));
    // A folder.
    std::fs::remove_file(history(&home)).unwrap();
    std::fs::create_dir(history(&home)).unwrap();
    goes_on_without(&home, "no database of prompts");
    std::fs::remove_dir(history(&home)).unwrap();
    // A place that is not there.
    std::os::unix::fs::symlink("/proc/nowhere/x", history(&home)).unwrap();
    goes_on_without(&home, "cannot be used");
    std::fs::remove_file(history(&home)).unwrap();
    // A damaged database.
    answered(&home, "전");
    let mut bytes = std::fs::read(history(&home)).unwrap();
    let wal = home.agent_dir().join("history.db-wal");
    let _ = std::fs::remove_file(&wal);
    bytes.resize(100, 0);
    bytes.extend([0x5a; 5000]);
    std::fs::write(history(&home), &bytes).unwrap();
    goes_on_without(&home, "");
}

#[test]
fn a_history_that_is_taken_away_is_made_anew() {
    let home = Home::new();
    let stub = stub([text("하나"), text("둘")]);
    let mut run = on(&home, &stub).args(["--mode", "rpc"]).spawn();
    run.send(&rpc_prompt("1", "첫째", "steer"));
    run.wait_for(|line| line.contains("turn_ended"));
    for suffix in ["", "-journal"] {
        let _ = std::fs::remove_file(format!("{}{suffix}", history(&home).display()));
    }
    run.send(&rpc_prompt("2", "둘째", "steer"));
    run.wait_for(|line| line.contains("turn_ended"));
    run.close_stdin();
    assert_eq!(run.wait().ok().err(), "");
    let texts: Vec<Value> = prompts(&home, &[]).iter().map(|prompt| prompt["text"].clone()).collect();
    assert_eq!(texts, ["둘째"]);
}

/// A file as a program of the family leaves it.
fn family(home: &Home) {
    std::fs::create_dir_all(home.agent_dir()).unwrap();
    let db = Connection::open(history(home)).unwrap();
    db.execute_batch(
        "PRAGMA journal_mode=WAL;
         CREATE TABLE history (id INTEGER PRIMARY KEY AUTOINCREMENT, prompt TEXT NOT NULL,
             created_at INTEGER NOT NULL DEFAULT (unixepoch()), cwd TEXT);",
    )
    .unwrap();
}

#[test]
fn files_that_are_cut_short_under_a_session_take_nothing_of_it_down() {
    for (theirs, suffix) in
        [(false, ""), (false, "-journal"), (false, "-shm"), (true, ""), (true, "-wal"), (true, "-shm")]
    {
        for length in [0, 100] {
            let home = Home::new();
            if theirs {
                family(&home);
            }
            let stub = stub([text("하나"), text("둘"), text("셋")]);
            let mut run = on(&home, &stub).args(["--mode", "rpc"]).spawn();
            for (id, prompt) in [("1", "첫째"), ("2", "둘째"), ("3", "셋째")] {
                run.send(&rpc_prompt(id, prompt, "steer"));
                run.wait_for(|line| line.contains("turn_ended"));
                let file = format!("{}{suffix}", history(&home).display());
                // There is no `-shm` to cut: one that is put there is nobody's.
                let file = std::fs::OpenOptions::new().write(true).create(true).truncate(false).open(file).unwrap();
                file.set_len(length).unwrap();
            }
            run.close_stdin();
            let out = run.wait();
            let case = format!("theirs {theirs}, {suffix}, {length}: {out}");
            assert_eq!((out.signal, out.code()), (None, Some(0)), "{case}");
            assert_eq!(out.out().matches(r#""end":"done""#).count(), 3, "{case}");
            assert!(out.err().lines().count() <= 1, "{case}");
            assert_eq!(messages(&the_session(&home)).len(), 6, "{case}");
            assert!(!answered_anyhow(&home).err().contains("panicked"), "{case}");
        }
    }
}

/// A later run in the same home, whose history may be damaged.
#[track_caller]
fn answered_anyhow(home: &Home) -> Output {
    let out = ask(home, &stub([text("네")]), "그 뒤").output().ok();
    assert_eq!(out.out(), "네\n");
    out
}

#[test]
fn a_prompt_that_is_too_long_for_a_line_is_answered_as_any_other() {
    let long = "긴".repeat(500_001);
    for mode in ["print", "piped beside", "rpc", "killed"] {
        let home = Home::new();
        let stub = match mode {
            "killed" => replies([Turn::new("m").tool_call("c", "bash", &json!({"command": "true"})).reply(), never()]),
            _ => stub([text("네")]),
        };
        let rpc = on(&home, &stub).args(["--mode", "rpc"]);
        match mode {
            "print" => drop(on(&home, &stub).arg("-p").stdin(long.as_str()).output().ok()),
            "piped beside" => drop(ask(&home, &stub, "이것을 봐").stdin(long.as_str()).output().ok()),
            "rpc" => drop(rpc.stdin(rpc_prompt("1", &long, "steer")).output().ok()),
            _ => {
                let mut run = rpc.spawn();
                run.send(&rpc_prompt("1", &long, "steer"));
                stub.wait_for_requests(2, LIMIT);
                run.kill_9();
            }
        }
        assert!(std::fs::read_to_string(the_session(&home)).unwrap().contains("gjcWhole"), "{mode}");
        assert_eq!(unanswered(&home), [] as [String; 0], "{mode}");
        let fate = if mode == "killed" { "open" } else { "stored" };
        assert_eq!(prompts(&home, &[])[0]["fate"], fate, "{mode}");
        assert_eq!(answered(&home, "다음").err(), "", "{mode}");
        assert!(prompts(&home, &[]).iter().all(|prompt| prompt["fate"] == "stored"), "{mode}");
    }
}

#[test]
fn ten_at_once_and_a_lock_that_is_held_freeze_nobody() {
    let home = Home::new();
    answered(&home, "처음");
    let holder = Connection::open(history(&home)).unwrap();
    holder.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let stub = replies((0..10).map(|_| text("네").reply()));
    let begun = Instant::now();
    let runs: Vec<_> = (0..10)
        .map(|n| {
            let mut run = ask(&home, &stub, &format!("물음 {n}")).spawn();
            run.close_stdin();
            run
        })
        .collect();
    for run in runs {
        let out = run.wait().ok();
        assert_eq!(out.out(), "네\n");
        assert_eq!(out.err().matches("held by another program").count(), 1, "{out}");
    }
    assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
    holder.execute_batch("COMMIT").unwrap();
    assert_eq!(session_files(&home).len(), 11);
    // Without the lock all are kept.
    let stub = replies((0..10).map(|_| text("네").reply()));
    let runs: Vec<_> = (0..10)
        .map(|n| {
            let mut run = ask(&home, &stub, &format!("또 {n}")).spawn();
            run.close_stdin();
            run
        })
        .collect();
    for run in runs {
        assert_eq!(run.wait().ok().err(), "");
    }
    assert_eq!(prompts(&home, &["또"]).len(), 10);
}

#[test]
fn a_refused_start_keeps_nothing() {
    let home = Home::new();
    let out = look(&home, &["-p", "열쇠가 없다"]).output();
    assert_eq!(out.code(), Some(1));
    assert!(!history(&home).exists());
}
