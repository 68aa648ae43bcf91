use crate::rig::{Rig, dirs, names};
use gjc_entry::{Label, Level, Vars};
use gjc_flow::{Permits, digest};
use gjc_process::OutputCap;
use gjc_tools::{Confinement, Limits, Shown, Tools, builtin, builtin_within};
use serde_json::json;
use std::fs;
use std::time::Duration;

#[tokio::test]
async fn output_and_end_are_told() {
    let rig = Rig::new();
    #[rustfmt::skip]
    let table = [
        ("printf 안녕; printf ' 세상' >&2", "안녕 세상", json!(0)),
        ("true", "[no output]", json!(0)),
        ("echo 실패; exit 3", "실패\n[exit code 3]", json!(3)),
        ("printf x; false", "x\n[exit code 1]", json!(1)),
        ("kill -9 $$", "[killed by signal 9]", json!("signal 9")),
        ("pwd >/dev/null; basename \"$PWD\"", "ws\n", json!(0)),
        ("cat; [[ -n $BASH ]] && echo bash", "bash\n", json!(0)),
    ];
    for (command, text, exit) in table {
        let done = rig.bash(command).await;
        assert_eq!((&*done.text, done.is_error), (text, exit != 0), "{command}");
        assert_eq!((&done.details["exit"], &done.details["command"]), (&exit, &json!(command)));
        assert_eq!(done.details["left_running"], false);
        assert_eq!(
            done.label,
            Label { trusted: false, ..Label::PUBLIC_TRUSTED },
            "nobody vouches for what a command prints"
        );
    }
    assert!(rig.artifacts.as_ref().is_some_and(|dir| !dir.exists()), "short output needs no folder");
}

#[tokio::test]
async fn long_output_is_kept_whole_in_a_file() {
    let mut rig = Rig::new();
    let done = rig.bash("for i in $(seq 5000); do echo \"줄 $i\"; done").await;
    let whole: String = (1..=5000).map(|n| format!("줄 {n}\n")).collect();
    let artifact = rig.artifacts.clone().unwrap().join("1.bash.log");
    assert_eq!(fs::read_to_string(&artifact).unwrap(), whole);
    assert_eq!(done.details["artifact"], "artifact://1");
    assert_eq!(done.details["bytes"], whole.len());
    assert!(done.ok().starts_with("줄 1\n") && done.text.contains("bytes left out …]\n") && done.text.len() < 33_500);
    let named = format!("is artifact://1 (the file {})", artifact.display());
    let note = format!("줄 5000\n[the whole output, {} bytes, {named}; read it in parts]", whole.len());
    assert!(done.text.ends_with(&note), "{}", &done.text[30_000..]);

    rig.artifacts = None;
    let done = rig.bash("seq 20000").await;
    assert!(
        done.ok().ends_with("\n20000\n[the whole output, 108894 bytes, is artifact://1; read it in parts]"),
        "{}",
        done.text
    );
    assert!(done.text.len() < 33_500);
}

#[tokio::test]
async fn output_is_shown_as_it_comes() {
    let mut rig = Rig::new();
    let ready = rig.cwd.join("seen");
    let call =
        rig.plan("bash", &json!({"command": "echo 먼저; until [ -e seen ]; do sleep 0.01; done; echo 나중"})).unwrap();
    let permits = rig.permits(&call);
    let (_, mut progress) = tokio::sync::mpsc::unbounded_channel();
    std::mem::swap(&mut progress, &mut rig.progress);
    // The command ends only after its first line has been shown.
    let (done, ()) = tokio::join!(rig.run(call, permits), async {
        assert_eq!(progress.recv().await.as_deref(), Some("먼저\n"));
        fs::write(ready, "").unwrap();
    });
    assert_eq!(done.ok(), "먼저\n나중\n");
}

#[tokio::test]
async fn a_cancelled_command_is_ended() {
    let mut rig = Rig::new();
    let call = rig.plan("bash", &json!({"command": "echo 시작; sleep 1000; echo 끝"})).unwrap();
    let permits = rig.permits(&call);
    let (_, mut progress) = tokio::sync::mpsc::unbounded_channel();
    std::mem::swap(&mut progress, &mut rig.progress);
    let (done, ()) = tokio::join!(rig.run(call, permits), async {
        progress.recv().await.unwrap();
        rig.cancel.cancel();
    });
    assert_eq!((done.err(), &done.details["exit"]), ("시작\n[cancelled]", &json!("cancelled")));
}

#[tokio::test]
async fn a_command_that_takes_too_long_is_ended() {
    let rig = Rig::new();
    let done = rig.call("bash", json!({"command": "echo 시작; sleep 1000", "timeout_ms": 300})).await;
    assert_eq!(done.err(), "시작\n[timed out after 300 ms and was ended; `timeout_ms` allows more]");
    assert_eq!(done.details["exit"], "timed out");
}

#[tokio::test]
async fn what_is_left_running_is_ended_and_told() {
    let rig = Rig::new();
    let done = rig.bash("sleep 1000 & echo 끝").await;
    assert_eq!(done.ok(), "끝\n[what the command left running was ended]");
    assert_eq!(done.details["left_running"], true);
}

#[tokio::test]
async fn commands_see_no_secrets_and_never_ask() {
    let rig = Rig::new();
    let done = rig.bash("env").await;
    assert!(!done.ok().contains("비밀") && !done.text.contains("TEST_API_KEY"));
    for set in ["GIT_TERMINAL_PROMPT=0\n", "PAGER=cat\n", "NO_COLOR=1\n", "TERM=dumb\n", "PATH="] {
        assert!(done.text.contains(set), "{set}");
    }
}

#[tokio::test]
async fn sh_stands_in_for_bash() {
    let mut rig = Rig::new();
    let bin = rig.outside.join("bin");
    fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink("/bin/sh", bin.join("sh")).unwrap();
    rig.tools =
        builtin(&Vars::new([("PATH".to_string(), bin.display().to_string())]), Confinement::off(&dirs(&rig.outside)));
    assert_eq!(rig.bash("echo \"셸 $0\"").await.ok(), "셸 sh\n");
    fs::remove_file(bin.join("sh")).unwrap();
    let done = rig.bash("echo").await;
    assert!(done.err().contains("cannot start `sh`") && done.text.contains("hint: "), "{}", done.text);
}

#[tokio::test]
async fn without_a_good_permit_nothing_runs() {
    let rig = Rig::new();
    let call = rig.plan("bash", &json!({"command": "touch 흔적"})).unwrap();
    assert_eq!((call.sinks[0].level, call.sinks[0].digest), (Level::Restricted, digest("touch 흔적".as_bytes())));
    assert_eq!(rig.run(call.clone(), Permits::default()).await.details["error"], "no_permit");
    let other = rig.plan("bash", &json!({"command": "true"})).unwrap();
    assert_eq!(rig.run(call, rig.permits(&other)).await.details["error"], "stale_permit");
    assert!(names(&rig.cwd).is_empty());
}

#[tokio::test]
async fn the_limits_are_those_that_were_given_and_the_model_is_told_them() {
    let mut rig = Rig::new();
    let vars = Vars::new([("PATH".to_string(), std::env::var("PATH").unwrap())]);
    let limits = Limits {
        timeout: Duration::from_millis(300),
        longest_timeout: Duration::from_millis(900),
        shown: OutputCap { keep_head: 6, keep_tail: 6 },
        ..Limits::default()
    };
    let told = |tools: &Tools| {
        let defs = tools.defs(&Shown::default());
        let bash = defs.iter().find(|def| def.name == "bash").unwrap();
        serde_json::from_str::<serde_json::Value>(bash.input.get()).unwrap()["properties"]["timeout_ms"]["description"]
            .clone()
    };
    assert_eq!(
        told(&rig.tools),
        "After so many milliseconds it is ended; 120000 if left out, 600000 at most. In the background: no limit if left out."
    );
    rig.tools = builtin_within(&vars, Confinement::off(&dirs(&rig.outside)), limits);
    assert_eq!(
        told(&rig.tools),
        "After so many milliseconds it is ended; 300 if left out, 900 at most. In the background: no limit if left out."
    );
    assert!(rig.bash("sleep 30").await.err().contains("timed out after 300 ms"));
    let refusal = rig.plan("bash", &json!({"command": "true", "timeout_ms": 901})).unwrap_err();
    assert!(refusal.sentence.contains("more than 900"), "{refusal:?}");
    let done = rig.bash("printf '가나다라마바사'").await;
    assert!(done.ok().starts_with("가나\n[… 9 bytes left out …]\n바사\n[the whole output, 21 bytes"), "{}", done.text);
    // A usual time above the longest is the longest.
    rig.tools = builtin_within(
        &vars,
        Confinement::off(&dirs(&rig.outside)),
        Limits { timeout: Duration::from_secs(60), ..limits },
    );
    assert!(rig.bash("sleep 30").await.err().contains("timed out after 900 ms"));
}
