//! What a project may do to a person: attacks.

use gjc_settings::{Document, Effective, Guard, Plain, SETTINGS, Scope, merge};
use proptest::prelude::*;
use std::path::Path;

fn document(text: &str, scope: Scope) -> Document {
    Document::parse(Path::new("config.yml"), text.as_bytes(), scope).unwrap_or_else(|problems| panic!("{problems}"))
}

fn both(user: &str, project: &str, trusted: bool) -> Effective {
    merge(Some(&document(user, Scope::User)), Some((&document(project, Scope::Project), trusted)), &[])
}

/// A stricter and a looser value than `user`, in lines of a file.
const STEPS: &[(&str, &str, &str, &str)] = &[
    ("tools", "tools: [read]", "tools: [read, edit]", "tools: [read, bash]"),
    ("approval", "approval: read-only", "approval: ask", "approval: auto-edit"),
    ("sandbox.mode", "sandbox: {mode: require}", "sandbox: {mode: auto}", "sandbox: {mode: off}"),
    ("sandbox.network", "sandbox: {network: denied}", "sandbox: {network: denied}", "sandbox: {network: allowed}"),
    ("async.maxJobs", "async: {maxJobs: 1}", "async: {maxJobs: 2}", "async: {maxJobs: 3}"),
    (
        "async.pollWaitDuration",
        "async: {pollWaitDuration: 5s}",
        "async: {pollWaitDuration: 10s}",
        "async: {pollWaitDuration: 30s}",
    ),
    (
        "session.durability",
        "session: {durability: entry}",
        "session: {durability: turn}",
        "session: {durability: none}",
    ),
    ("share.level", "share: {level: PUBLIC}", "share: {level: INTERNAL}", "share: {level: CONFIDENTIAL}"),
    ("retry.attempts", "retry: {attempts: 0}", "retry: {attempts: 3}", "retry: {attempts: 4}"),
    ("retry.longestDelay", "retry: {longestDelay: 999ms}", "retry: {longestDelay: 1s}", "retry: {longestDelay: 1m}"),
    ("retry.waitForQuota", "retry: {waitForQuota: off}", "retry: {waitForQuota: 1h}", "retry: {waitForQuota: 61m}"),
    ("bash.timeout", "bash: {timeout: 59s}", "bash: {timeout: 1m}", "bash: {timeout: 61s}"),
    ("bash.longestTimeout", "bash: {longestTimeout: 59m}", "bash: {longestTimeout: 1h}", "bash: {longestTimeout: 2h}"),
    ("bash.keepHead", "bash: {keepHead: 1KiB}", "bash: {keepHead: 2KiB}", "bash: {keepHead: 1MiB}"),
    ("bash.keepTail", "bash: {keepTail: 1KiB}", "bash: {keepTail: 2KiB}", "bash: {keepTail: 1MiB}"),
    // Of two values none is stricter than off.
    ("fetch.enabled", "fetch: {enabled: false}", "fetch: {enabled: false}", "fetch: {enabled: true}"),
    ("fetch.timeout", "fetch: {timeout: 5s}", "fetch: {timeout: 10s}", "fetch: {timeout: 11s}"),
];

#[test]
fn a_project_that_is_not_trusted_makes_stricter_and_never_looser() {
    for (key, strict, user, loose) in STEPS {
        let of = |now: &Effective| now.get(key).unwrap().plain.clone();
        let plain = |line: &str| of(&both(line, "", false));
        let now = both(user, strict, false);
        assert_eq!((of(&now), now.ignored.len()), (plain(strict), 0), "{key}");
        let now = both(user, loose, false);
        assert_eq!((of(&now), now.ignored.len()), (plain(user), 1), "{key}");
        let told = now.ignored[0].to_string();
        assert!(
            told.starts_with(&format!("config.yml:1 sets {key} to ")) && told.contains("--trust-project"),
            "{told}"
        );
        let now = both(user, loose, true);
        assert_eq!((of(&now), now.ignored.len()), (plain(loose), 0), "{key}");
    }
    let tightens = SETTINGS.iter().filter(|setting| matches!(setting.guard, Guard::Tighten { .. }));
    assert_eq!(
        tightens.map(|setting| setting.key).collect::<Vec<_>>(),
        STEPS.iter().map(|step| step.0).collect::<Vec<_>>()
    );
}

#[test]
fn a_clone_switches_fetch_off_and_never_on_and_opens_no_network() {
    let now = both("fetch: {enabled: true}", "fetch: {enabled: false}", false);
    assert!(!now.settings.fetch.enabled.0 && now.ignored.is_empty());
    let now = both("", "fetch: {enabled: true}", false);
    assert!(!now.settings.fetch.enabled.0 && now.ignored.len() == 1);
    for trusted in ["fetch: {allowHosts: [localhost]}", "fetch: {allowHosts: []}"] {
        let told = Document::parse(Path::new("c"), trusted.as_bytes(), Scope::Project).unwrap_err().to_string();
        assert!(told.contains("a project may not set fetch.allowHosts"), "{told}");
    }
}

#[test]
fn the_model_of_a_clone_counts_only_once_it_is_trusted() {
    // A script out of the clone would call tools without any model.
    let project = "models: {default: scripted/.gjc/evil.jsonl}";
    let now = both("", project, false);
    assert_eq!((now.settings.models.default.0.as_str(), now.ignored.len()), ("anthropic/claude-sonnet-4-5", 1));
    assert_eq!(both("", project, true).settings.models.default.0, "scripted/.gjc/evil.jsonl");
}

#[test]
fn a_clone_is_compared_with_asking_where_a_person_has_set_nothing() {
    for (word, counts) in [("read-only", true), ("ask", true), ("auto-edit", false), ("full", false)] {
        let now = both("", &format!("approval: {word}"), false);
        assert_eq!((now.settings.approval.mode.is_some(), now.ignored.is_empty()), (counts, counts), "{word}");
    }
    let told = both("", "approval: full", false).ignored[0].to_string();
    assert!(told.contains("sets approval to full, which you have not trusted"), "{told}");
}

#[test]
fn what_a_project_may_never_set_is_an_error_trusted_or_not() {
    let never = SETTINGS.iter().filter(|setting| matches!(setting.guard, Guard::Never(_))).map(|setting| setting.key);
    let expected = ["anthropic.url", "anthropic.keyCommand", "openai.url", "openai.keyCommand"];
    let expected = expected.map(|key| format!("providers.{key}"));
    assert_eq!(
        never.collect::<Vec<_>>(),
        [&expected[..], &["sandbox.write".into(), "share.command".into(), "fetch.allowHosts".into()]].concat()
    );
    for line in ["url: https://evil.example", "keyCommand: curl evil", "url:", "\"url\": 5"] {
        for text in [
            format!("providers:\n  anthropic:\n    {line}\n"),
            format!("tools: []\nproviders: {{anthropic: {{{line}}}}}\n"),
        ] {
            let told = Document::parse(Path::new("c"), text.as_bytes(), Scope::Project).unwrap_err().to_string();
            assert!(told.contains("a project may not set providers.anthropic."), "{told}");
        }
    }
}

#[test]
fn no_spelling_goes_around_a_guard() {
    // Anchors, merges, tags, other forms of the letters, other case, escapes: a name is its letters, or it is none.
    for text in [
        "x: &x {attempts: 20}\nretry: *x",
        "retry:\n  <<: {attempts: 20}",
        "Retry: {attempts: 20}",
        "retry: {ATTEMPTS: 20}",
        "retr\u{FF59}: {attempts: 20}",
        "retry\u{200B}: {attempts: 20}",
        "retry: {attempts: !!int 20}",
        "retry: {attempts: 0x14}",
        "retry: {attempts: ２}",
        "retry: {attempts: 1}\nretry: {attempts: 20}",
        "retry.attempts: 20",
    ] {
        assert!(Document::parse(Path::new("c"), text.as_bytes(), Scope::Project).is_err(), "{text}");
    }
    // An escape in quotes is the same name, and meets the same guard.
    let now = both("", "\"re\\u0074ry\": {attempts: 20}", false);
    assert_eq!((now.settings.retry.attempts.0, now.ignored.len()), (5, 1));
    let told = Document::parse(Path::new("c"), b"providers: {anthropic: {\"\\u0075rl\": http://x}}", Scope::Project);
    assert!(told.unwrap_err().to_string().contains("may not set"));
}

fn value(key: &str) -> BoxedStrategy<Plain> {
    let pick =
        |values: &[&str]| prop::sample::select(values.iter().map(|v| Plain::Text((*v).to_owned())).collect::<Vec<_>>());
    match key {
        "tools" => prop::sample::subsequence(vec!["read", "write", "edit", "bash"], 0..=4)
            .prop_map(|names| Plain::List(names.into_iter().map(Into::into).collect()))
            .boxed(),
        "approval" => prop_oneof![pick(&["read-only", "ask", "auto-edit", "full"]), Just(Plain::None)].boxed(),
        "session.durability" => pick(&["entry", "turn", "none"]).boxed(),
        "share.level" => pick(&["PUBLIC", "INTERNAL", "CONFIDENTIAL", "RESTRICTED"]).boxed(),
        "fetch.enabled" => any::<bool>().prop_map(Plain::Truth).boxed(),
        "sandbox.mode" => pick(&["require", "auto", "off"]).boxed(),
        "sandbox.network" => pick(&["denied", "allowed"]).boxed(),
        "retry.waitForQuota" => pick(&["off", "1s", "60m", "1h", "8h"]).boxed(),
        "retry.attempts" => (0u64..=20).prop_map(Plain::Number).boxed(),
        "async.maxJobs" => (1u64..=100).prop_map(Plain::Number).boxed(),
        "bash.keepHead" | "bash.keepTail" => (256u64..4096).prop_map(|n| Plain::Text(format!("{n}B"))).boxed(),
        _ => (1_000u64..100_000).prop_map(|n| Plain::Text(format!("{n}ms"))).boxed(),
    }
}

fn three() -> impl Strategy<Value = (usize, Plain, Plain, Plain)> {
    (0..STEPS.len()).prop_flat_map(|nth| {
        let key = STEPS[nth].0;
        (Just(nth), value(key), value(key), value(key))
    })
}

proptest! {
    #[test]
    fn each_guard_is_an_order((nth, a, b, c) in three()) {
        let setting = gjc_settings::find(STEPS[nth].0).unwrap();
        let fits = |project: &Plain, user: &Plain| !setting.guard.keeps_out(project, user);
        prop_assert!(fits(&a, &a));
        prop_assert!(!(fits(&a, &b) && fits(&b, &c)) || fits(&a, &c), "{a:?} {b:?} {c:?}");
        if setting.key != "tools" {
            prop_assert!(fits(&a, &b) || fits(&b, &a), "of two values one is stricter, or they are equal");
        }
    }
}
