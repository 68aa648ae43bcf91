//! Hooks: a list of programs, which a trusted project adds to and never takes from.

use gjc_settings::{Document, Effective, Guard, Hook, SETTINGS, Scope, Settings, merge, set};
use std::path::Path;

fn document(text: &str, scope: Scope) -> Document {
    Document::parse(Path::new("config.yml"), text.as_bytes(), scope).unwrap_or_else(|problems| panic!("{problems}"))
}

fn of(text: &str) -> Settings {
    merge(Some(&document(text, Scope::User)), None, &[]).settings
}

fn problem(text: &str) -> String {
    Document::parse(Path::new("c"), text.as_bytes(), Scope::User).expect_err(text).to_string()
}

fn commands(hooks: &[Hook]) -> Vec<&str> {
    hooks.iter().map(|hook| hook.command.0.as_str()).collect()
}

#[test]
fn a_hook_is_a_command_or_a_map() {
    let text = "hooks:\n  pre_tool_call:\n    - ./검사.sh --빠르게\n    - command: check | tee log\n      match: [bash, write]\n      timeout: 1500ms\n  turn_end: [notify-send 끝]\n";
    let hooks = of(text).hooks;
    assert_eq!(commands(&hooks.pre_tool_call.0), ["./검사.sh --빠르게", "check | tee log"]);
    assert_eq!(hooks.pre_tool_call.0[1].tools.as_ref().unwrap().0, ["bash", "write"]);
    assert_eq!((hooks.pre_tool_call.0[0].timeout.0, hooks.pre_tool_call.0[1].timeout.0), (30_000, 1_500));
    assert!(hooks.pre_tool_call.0[0].tools.is_none() && hooks.pre_output.0.is_empty());
    assert_eq!(commands(&hooks.turn_end.0), ["notify-send 끝"]);
}

#[test]
fn a_mistake_is_told_at_its_place() {
    for (text, place, told) in [
        ("hooks: {pre_tool_cal: [x]}", "c:1:9", "did you mean \"pre_tool_call\"?"),
        ("hooks: {turn_end: x}", "c:1:19", "as in: [{command: ./check.sh, timeout: 10s}]"),
        ("hooks: {turn_end: [{run: x}]}", "c:1:21", "a hook has no \"run\""),
        ("hooks: {turn_end: [{timeout: 1s}]}", "c:1:20", "a hook needs a command"),
        ("hooks:\n  turn_end:\n  - x\n  - command: x\n    match: [bash]", "c:5:5", "this event is about no call"),
        ("hooks: {pre_tool_call: [{command: x, match: [bsah]}]}", "c:1:46", "did you mean \"bash\"?"),
        ("hooks: {pre_tool_call: [{command: x, match: []}]}", "c:1:45", "this hook would never run"),
        ("hooks: {pre_tool_call: [{command: x, timeout: 1h}]}", "c:1:47", "1h is not a time from 100ms to 10m"),
        ("hooks: {pre_tool_call: [\" \"]}", "c:1:25", "the command is empty"),
        ("hooks: {pre_tool_call: [[x]]}", "c:1:25", "a list stands here"),
        ("hooks: {pre_tool_call: [~]}", "c:1:25", "nothing stands here"),
        ("hooks: {pre_tool_call: [5]}", "c:1:25", "a number stands here"),
    ] {
        let problem = problem(text);
        assert!(problem.starts_with(place) && problem.contains(told), "{text}\n{problem}");
    }
}

#[test]
fn a_project_adds_to_the_person_s_once_it_is_trusted_and_takes_nothing_away() {
    let user = document("hooks: {pre_tool_call: [mine]}", Scope::User);
    let with = |project: &str, trusted: bool| -> Effective {
        merge(Some(&user), Some((&document(project, Scope::Project), trusted)), &[])
    };
    let seen = |now: &Effective| (commands(&now.settings.hooks.pre_tool_call.0).join(","), now.ignored.len());
    for (project, untrusted, trusted) in
        [("hooks: {pre_tool_call: [theirs]}", "mine", "mine,theirs"), ("hooks: {pre_tool_call: []}", "mine", "mine")]
    {
        assert_eq!(seen(&with(project, false)), (untrusted.into(), 1), "{project}");
        assert_eq!(seen(&with(project, true)), (trusted.into(), 0), "{project}");
    }
    let mut hooks = SETTINGS.iter().filter(|setting| setting.key.starts_with("hooks."));
    assert!(hooks.all(|setting| matches!(setting.guard, Guard::Adds)));
    let now = with("hooks: {pre_tool_call: [{command: theirs, match: [bash]}]}", true);
    assert_eq!(
        now.get("hooks.pre_tool_call").unwrap().plain.yaml(),
        "[{command: mine, timeout: 30s}, {command: theirs, match: [bash], timeout: 30s}]"
    );
}

#[test]
fn what_is_set_by_a_command_is_what_counts() {
    for (word, value) in [
        ("say \"끝\", 다음", "[{command: \"say \\\"끝\\\", 다음\", timeout: 30s}]"),
        ("[]", "[]"),
        ("[a b, {command: c, timeout: 2m}]", "[{command: \"a b\", timeout: 30s}, {command: c, timeout: 2m}]"),
        // What is no list is a command, as odd as it is.
        ("[ -e x ] && y", "[{command: \"[ -e x ] && y\", timeout: 30s}]"),
    ] {
        let edited = set(Path::new("c"), "hooks:\n  turn_end: [x]\n", "hooks.turn_end", word).unwrap();
        assert_eq!(edited, format!("hooks:\n  turn_end: {value}\n"));
        let now = merge(Some(&document(&edited, Scope::User)), None, &[]);
        assert_eq!(now.get("hooks.turn_end").unwrap().plain.yaml(), value);
    }
}
