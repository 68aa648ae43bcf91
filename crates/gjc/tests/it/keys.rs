//! Where a provider's key comes from: the variable, the kernel's keyring, a command. The keyring is the real one of the machine; each
//! home has keys of its own in it, and takes them with it.

use crate::kit::*;
use serde_json::json as j;
use testkit::harness::{Home, Output, Run};
use testkit::stub::Stub;

/// A home that leaves nothing in the keyring.
struct Ring(Home);

impl Drop for Ring {
    fn drop(&mut self) {
        for provider in ["anthropic", "openai"] {
            let _ = look(&self.0, &["config", "key", "forget", provider]).output();
        }
    }
}

impl Ring {
    /// `None` (and a line on stderr) where the kernel gives no keyring, as in some containers.
    fn new() -> Option<Self> {
        let ring = Self(Home::new());
        let kept = ring.key(&["set", "openai"]).stdin("probe\n").output();
        if kept.code() == Some(0) {
            ring.key(&["forget", "openai"]).output().ok();
            return Some(ring);
        }
        assert!(kept.err().contains("the key cannot be kept in the keyring: "), "{kept}");
        assert!(std::env::var_os("GJC_CI").is_none(), "the kernel gives no keyring here: {kept}");
        eprintln!("left out: the kernel gives no keyring here");
        None
    }

    fn key<'h>(&'h self, args: &[&str]) -> Run<'h> {
        look(&self.0, &["config", "key"]).args(args)
    }

    fn place(&self) -> Output {
        self.key(&["where", "anthropic", "--json"]).output()
    }
}

fn asks<'h>(ring: &'h Ring, stub: &Stub) -> Run<'h> {
    gjc(&ring.0).args(["-p", "x", "--model", "anthropic/claude-stub-1", "--provider-url", &stub.url()])
}

#[test]
fn a_key_of_the_keyring_is_nowhere_but_there_and_in_the_header() {
    let Some(ring) = Ring::new() else { return };
    let stub = stub([text("네"), text("네"), text("네")]);
    let told = ring.key(&["set", "anthropic"]).stdin(format!("  {KEY}\r\n")).output().ok();
    assert!(told.err().contains("the keyring has the key of anthropic") && told.out().is_empty(), "{told}");
    let out = asks(&ring, &stub).args(["--mode", "json"]).output().ok();
    assert_eq!(stub.requests()[0].header("x-api-key"), Some(KEY));
    assert_eq!(json(&ring.place().ok())["source"], "keyring");
    assert_eq!(ring.key(&["where", "anthropic"]).output().ok().out(), "keyring\n");
    for (path, bytes) in tree(&root(&ring.0)) {
        let holds = bytes.unwrap_or_default().windows(KEY.len()).any(|part| part == KEY.as_bytes());
        assert!(!holds, "{} holds the key", path.display());
    }
    assert!(!format!("{out}{told}").contains(KEY));
    // Another agent folder has keys of its own.
    let other = Home::new();
    let none = look(&other, &["config", "key", "where", "anthropic", "--json"]).output();
    assert_eq!((none.code(), &json(&none)["source"]), (Some(1), &j!("nowhere")));
    // The last one that was given counts, and a forgotten one does not.
    ring.key(&["set", "anthropic"]).stdin("sk-second").output().ok();
    asks(&ring, &stub).output().ok();
    assert_eq!(stub.requests()[1].header("x-api-key"), Some("sk-second"));
    assert!(ring.key(&["forget", "anthropic"]).output().ok().err().contains("has no key of anthropic any more"));
    assert!(ring.key(&["forget", "anthropic"]).output().ok().err().contains("had no key of anthropic"));
    asks(&ring, &stub).output().ok();
    assert_eq!(stub.requests()[2].header("x-api-key"), None);
}

#[test]
fn the_variable_comes_first_then_the_keyring_then_the_command() {
    let Some(ring) = Ring::new() else { return };
    let stub = stub([text("a"), text("b"), text("c")]);
    let file = ring.0.write(
        "home/.gjc/agent/config.yml",
        "providers:\n  anthropic:\n    keyCommand: echo asked >> ~/asked; echo from-command\n",
    );
    let source = || json(&ring.place().ok());
    ring.key(&["set", "anthropic"]).stdin("from-keyring\n").output().ok();
    asks(&ring, &stub).env("ANTHROPIC_API_KEY", "from-variable").output().ok();
    let variable = json(&ring.key(&["where", "anthropic", "--json"]).env("ANTHROPIC_API_KEY", "x").output().ok());
    assert_eq!((&variable["source"], &variable["variable"]), (&j!("variable"), &j!("ANTHROPIC_API_KEY")));
    asks(&ring, &stub).output().ok();
    assert_eq!(source()["source"], "keyring");
    assert!(!ring.0.path().join("asked").exists(), "the command is not run for nothing");
    ring.key(&["forget", "anthropic"]).output().ok();
    assert_eq!(source()["source"], "command");
    assert_eq!(source()["command"], format!("{}:3", file.display()));
    assert!(!ring.0.path().join("asked").exists(), "to say where a key comes from, nothing is run");
    asks(&ring, &stub).output().ok();
    let keys: Vec<_> = stub.requests().iter().map(|request| request.header("x-api-key").unwrap().to_owned()).collect();
    assert_eq!(keys, ["from-variable", "from-keyring", "from-command"]);
}

#[test]
fn what_is_no_key_is_not_kept_and_not_shown() {
    let Some(ring) = Ring::new() else { return };
    for wrong in ["", "\n", "두 낱말", "two words", "a\u{7}b", &"k".repeat(9000)] {
        let out = ring.key(&["set", "anthropic"]).stdin(wrong).output();
        assert!(out.code() == Some(2) && out.err().contains("this is no key"), "{out}");
        assert!(wrong.trim().is_empty() || !out.err().contains(wrong.trim()), "{out}");
    }
    assert_eq!(ring.place().code(), Some(1));
    // A key is no argument: it would be in the list of processes and in the shell's history.
    let out = ring.key(&["set", "anthropic", KEY]).output();
    assert_eq!(out.code(), Some(2), "{out}");
    assert_eq!(ring.key(&["set", "gemini"]).stdin("k").output().code(), Some(2));
}

#[test]
fn who_has_no_key_is_told_all_ways_to_give_one() {
    let home = Home::new();
    for (model, provider, variable) in
        [("anthropic/x", "anthropic", "ANTHROPIC_API_KEY"), ("openai/x", "openai", "OPENAI_API_KEY")]
    {
        let out = gjc(&home).args(["-p", "x", "--model", model]).output();
        assert_eq!(out.code(), Some(1), "{out}");
        for way in [
            variable,
            &format!("gjc config key set {provider}"),
            &format!("providers.{provider}.keyCommand"),
            "--provider-url",
        ] {
            assert!(out.err().contains(way), "{way}: {out}");
        }
        let place = look(&home, &["config", "key", "where", provider]).output();
        assert!(place.code() == Some(1) && place.err() == out.err(), "{place}");
    }
}

#[test]
fn a_command_of_the_model_cannot_ask_the_keyring() {
    let Some(ring) = Ring::new() else { return };
    if !gjc_process::Support::now().essential().is_empty() {
        eprintln!("left out: no sandbox on this system");
        return;
    }
    ring.key(&["set", "anthropic"]).stdin(KEY).output().ok();
    // keyctl(2) by its number: KEYCTL_DESCRIBE of the person's keyring.
    let keyctl = if cfg!(target_arch = "x86_64") { 250 } else { 219 };
    let ask = format!("import ctypes; print('answer', ctypes.CDLL(None).syscall({keyctl}, 6, -4, 0, 0))");
    let outside = std::process::Command::new("python3").args(["-c", &ask]).output().unwrap();
    assert!(!String::from_utf8_lossy(&outside.stdout).contains("answer -1"), "outside of the sandbox it is answered");
    let call = j!({"command": format!("python3 -c \"{ask}\"")});
    let stub = stub([testkit::anthropic::Turn::new("m").tool_call("c", "bash", &call), text("끝")]);
    asks(&ring, &stub).output().ok();
    let said = messages(&the_session(&ring.0)).into_iter().find(|message| message["role"] == "toolResult").unwrap();
    assert!(said["content"][0]["text"].as_str().unwrap().contains("answer -1"), "{said}");
}
