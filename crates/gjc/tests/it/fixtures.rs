//! Recorded sessions of the family through the binary: the same context as their own program's, and going on with an old
//! one.

use crate::kit::{lines, look, session_files, stub, text};
use serde_json::Value;
use std::path::{Path, PathBuf};
use testkit::harness::Home;

/// A recorded file of pi.
fn recorded(name: &str) -> Option<PathBuf> {
    testkit::material::path(Path::new("fixtures/sessions").join(name))
}

fn messages(home: &Home, file: &Path) -> Vec<Value> {
    let shown = look(home, &["context", "show", "--json"]).args([file.to_str().unwrap()]).output();
    let shown: Value = serde_json::from_str(&done(shown).0).unwrap();
    shown["messages"].as_array().unwrap().clone()
}

/// What a run that succeeded said on its two streams.
#[track_caller]
fn done(output: testkit::harness::Output) -> (String, String) {
    assert!(output.status.success(), "{output:?}");
    (output.out(), output.err())
}

fn roles(messages: &[Value]) -> Vec<&Value> {
    messages.iter().map(|message| &message["role"]).collect()
}

#[test]
fn context_show_gives_what_pi_recorded() {
    let Some(folder) = recorded("pi-0.73.1/by-session-manager") else { return };
    let home = Home::new();
    let mut seen = 0;
    for (name, before) in [
        ("pi-mono.before-compaction", "pi-mono.before-compaction"),
        ("pi-mono.large-session", "pi-mono.large-session"),
        ("pi.prompt-cache-replay-session.v1", "pi.prompt-cache-replay-session.v1"),
    ] {
        let theirs: Value =
            serde_json::from_slice(&std::fs::read(folder.join(format!("{name}.after-open.context.json"))).unwrap())
                .unwrap();
        let after = messages(&home, &folder.join(format!("{name}.after-open.jsonl")));
        assert_eq!(roles(&after), theirs["roles"].as_array().unwrap().iter().collect::<Vec<_>>(), "{name}");
        // The file as it was before pi gave its entries ids says the same.
        let original = messages(&home, &recorded(&format!("public/{before}.jsonl")).unwrap());
        assert!(original == after, "{name}: the file of version 1 gives another context");
        seen += 1;
    }
    assert_eq!(seen, 3);
}

#[test]
fn a_session_of_version_1_goes_on_in_a_copy() {
    let Some(original) = recorded("public/pi.prompt-cache-replay-session.v1.jsonl") else { return };
    let home = Home::new();
    let old = home.work().join("old.jsonl");
    std::fs::copy(&original, &old).unwrap();
    let before = messages(&home, &old);
    let stub = stub([text("새 답")]);
    let run = crate::kit::ask(&home, &stub, "이어서").args(["--resume", old.to_str().unwrap()]).output();
    let (_, said) = done(run);
    assert!(said.contains("is of version 1, which nothing can be added to; it goes on in a copy: "), "{said}");
    assert_eq!(std::fs::read(&old).unwrap(), std::fs::read(&original).unwrap());
    let [copy] = &session_files(&home)[..] else { panic!("{:?}", session_files(&home)) };
    let header = &lines(copy)[0];
    assert_eq!((&header["version"], &header["parentSession"]), (&Value::from(3), &Value::from("replay-session-1")));
    let after = messages(&home, copy);
    assert_eq!(after[..before.len()], before[..]);
    assert_eq!(after.len(), before.len() + 2);
    done(look(&home, &["sessions", "verify", copy.to_str().unwrap()]).output());
    // pi reads the copy too.
    if let Some(theirs) = testkit::pi::read(copy) {
        assert_eq!(theirs["messages"].as_array().unwrap().len(), after.len());
    }
}
