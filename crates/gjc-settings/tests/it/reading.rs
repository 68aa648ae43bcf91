//! What a file may say, and how it is told that it may not.

use gjc_settings::{Document, Durability, Effective, Flag, Origin, Plain, SETTINGS, Scope, Settings, merge};
use proptest::prelude::*;
use std::path::Path;

fn problems(text: &str) -> String {
    Document::parse(Path::new("config.yml"), text.as_bytes(), Scope::User).expect_err(text).to_string()
}

fn effective(text: &str) -> Effective {
    let document =
        Document::parse(Path::new("config.yml"), text.as_bytes(), Scope::User).unwrap_or_else(|p| panic!("{p}"));
    merge(Some(&document), None, &[])
}

#[test]
fn nothing_set_is_the_defaults() {
    for text in ["", "# 아무것도\n", "---\n", "retry:\nbash: # 나중에\n", "~\n", "\u{FEFF}"] {
        let now = effective(text);
        assert_eq!(now.settings, Settings::default(), "{text:?}");
        assert!(SETTINGS.iter().all(|setting| now.is_default(setting.key)));
    }
}

#[test]
fn every_value_has_its_origin() {
    let text = "# 설정\nretry:\n  attempts: 2 # 두 번\n  longestDelay: 1500ms\nbash: {timeout: 2 m}\n\
                session:\n  durability: none\nproviders:\n  anthropic:\n    url: https://예.한국/v1\ntools: []\n";
    let now = effective(text);
    assert_eq!((now.settings.retry.attempts.0, now.settings.retry.longest_delay.0), (2, 1500));
    assert_eq!((now.settings.bash.timeout.0, now.settings.session.durability), (120_000, Durability::None));
    assert_eq!(now.settings.anthropic.url.as_ref().unwrap().0, "https://예.한국/v1");
    assert!(now.settings.tools.names.0.is_empty());
    let line = |key: &str| now.get(key).unwrap().origin.to_string();
    assert_eq!(
        [line("retry.attempts"), line("bash.timeout"), line("tools")],
        ["config.yml:3", "config.yml:5", "config.yml:11"]
    );
    assert_eq!(line("bash.keepHead"), "default");
    assert_eq!(now.get("retry.longestDelay").unwrap().plain, Plain::Text("1500ms".into()));
}

#[test]
fn an_option_stands_above_the_file() {
    let document = Document::parse(Path::new("c"), b"models: {default: anthropic/one}\n", Scope::User).unwrap();
    let flag = Flag::new("models.default", "scripted/한글 파일.jsonl").unwrap();
    let now = merge(Some(&document), None, &[flag]);
    assert_eq!(now.settings.models.default.0, "scripted/한글 파일.jsonl");
    assert_eq!(now.get("models.default").unwrap().origin, Origin::Flag("--model"));
    assert!(Flag::new("tools", "read,bsh").unwrap_err().1.unwrap().contains("did you mean \"bash\""));
    assert!(Flag::new("retry.attempts", "3").is_err(), "no option sets it");
}

#[test]
fn a_variable_stands_below_every_file() {
    let key = "providers.openai.url";
    let variable = Flag::of_variable(key, "http://127.0.0.1:1").unwrap();
    let now = merge(None, None, std::slice::from_ref(&variable));
    assert_eq!(now.settings.openai.url.as_ref().unwrap().0, "http://127.0.0.1:1");
    assert_eq!(now.get(key).unwrap().origin, Origin::Variable("OPENAI_BASE_URL"));
    let text = b"providers: {openai: {url: 'http://127.0.0.1:2'}}\n";
    let document = Document::parse(Path::new("c"), text, Scope::User).unwrap();
    let now = merge(Some(&document), None, std::slice::from_ref(&variable));
    assert_eq!(now.settings.openai.url.as_ref().unwrap().0, "http://127.0.0.1:2");
    let flag = Flag::new(key, "http://127.0.0.1:3").unwrap();
    let now = merge(Some(&document), None, &[variable, flag]);
    assert_eq!(now.get(key).unwrap().origin, Origin::Flag("--provider-url"));
    assert!(Flag::of_variable(key, "no address").is_none() && Flag::of_variable("tools", "read").is_none());
}

#[test]
fn folders_are_meant_alike_wherever_a_run_begins() {
    let text = "sandbox: {write: [/var/cache/한글, '~', ~/작업, ~/a b]}\n";
    let now = effective(text);
    let folders: Vec<_> = now.settings.sandbox.write.below(Path::new("/집")).collect();
    assert_eq!(folders, ["/var/cache/한글", "/집", "/집/작업", "/집/a b"].map(Path::new));
    for text in ["sandbox: {write: [cache]}", "sandbox: {write: [./x]}", "sandbox: {write: ['~other/x']}"] {
        assert!(problems(text).contains("no folder that is meant everywhere"), "{text}");
    }
    assert!(problems("sandbox: {write: /tmp}").contains("a text stands here; wanted: a list of folders"));
}

#[test]
fn a_problem_is_told_with_its_place_its_line_and_what_was_meant() {
    assert_eq!(
        problems("session:\n  durability: turm # 한글\n"),
        "config.yml:2:15: session.durability: there is no durability \"turm\"\n  2 |   durability: turm # 한글\n    |               ^\n    \
         = did you mean \"turn\"? there are: entry, turn, none"
    );
    assert_eq!(
        problems("한글: 1\nretry:\n  attemptz: 3\n"),
        "config.yml:1:1: \"한글\" is no setting\n  1 | 한글: 1\n    | ^\n    \
         = there are: models, serviceTier, prices, providers, tools, approval, sandbox, async, session, share, retry, bash, fetch, hooks\n\
         config.yml:3:3: \"attemptz\" is no setting of retry\n  3 |   attemptz: 3\n    |   ^\n    = did you mean \"attempts\"?"
    );
}

#[test]
fn every_kind_of_mistake_is_named() {
    for (text, place, sentence) in [
        ("retry:\n  attempts: many", "2:13", "is not a number from 0 to 20"),
        ("retry:\n  attempts: 21", "2:13", "21 is not a number from 0 to 20"),
        ("retry:\n  attempts: -1", "2:13", "is not a number"),
        ("retry:\n  attempts: 99999999999999999999", "2:13", "is not a number"),
        ("retry:\n  attempts: '3'", "2:13", "a text stands here"),
        ("retry:\n  attempts: [3]", "2:13", "a list stands here"),
        ("retry:\n  attempts:\n", "2:3", "nothing stands here"),
        ("retry: 3", "1:8", "is a map of settings, not a value"),
        ("retry:\n  - attempts", "2:3", "is a map of settings, not a value"),
        ("bash:\n  timeout: 120", "2:12", "say the unit: 120s"),
        ("bash:\n  timeout: 2 weeks", "2:12", "is no time"),
        ("bash:\n  timeout: 0s", "2:12", "0s is not a time from 1s to 24h"),
        ("bash:\n  timeout: 99999999999999999999h", "2:12", "is no time"),
        ("bash:\n  keepHead: 2GB", "2:13", "is no size"),
        ("models:\n  default: claude", "2:12", "names no model"),
        ("models:\n  default: antropic/x", "2:12", "did you mean \"anthropic\"?"),
        ("models:\n  default: 5", "2:12", "a number stands here"),
        ("models:\n  default: true", "2:12", "a truth value stands here"),
        ("models:\n  default: \"anthropic/a\\nb\"", "2:12", "control character"),
        ("models.default: anthropic/x", "1:1", "write models: and below it"),
        ("default: anthropic/x", "1:1", "did you mean models.default?"),
        ("tools: read", "1:8", "as in: tools: [read, bash]"),
        ("tools: [read, reat]", "1:15", "did you mean \"read\"?"),
        ("tools: [read, read]", "1:15", "a second time"),
        ("tools:\n  - read\n  - {bash: 1}", "3:5", "a map stands here"),
        ("fetch: {enabled: yes}", "1:18", "a text stands here; wanted: true or false"),
        ("fetch: {enabled: 'true'}", "1:18", "leave the quotes out"),
        ("fetch: {enabled: 1}", "1:18", "wanted: true or false"),
        ("fetch: {enabled: }", "1:9", "nothing stands here"),
        ("fetch: {allowHosts: localhost}", "1:21", "as in: [localhost"),
        ("fetch: {allowHosts: [a, 'http://b']}", "1:25", "is no server"),
        ("fetch: {allowHosts: ['*.example.com']}", "1:22", "is no server"),
        ("fetch: {allowHosts: [a, a]}", "1:25", "a second time"),
        ("providers:\n  anthropic:\n    url: ftp://x", "3:10", "no address of a server"),
        ("providers:\n  anthropic:\n    url: https://me:pw@host/", "3:10", "holds no name or password"),
        ("providers:\n  openia:\n    url: https://x", "2:3", "is no setting of providers"),
        ("retry: {attempts: 1}\nretry: {attempts: 2}", "2:1", "the first one is in line 1"),
        ("retry:\n  attempts: 1\n  attempts: 2", "3:3", "stands here a second time"),
        ("retry: &a {attempts: 1}", "1:11", "no anchors"),
        ("retry: *a", "1:8", "no aliases"),
        ("retry:\n  <<: {attempts: 1}", "2:3", "no merges"),
        ("retry: !!map {attempts: 1}", "1:14", "no tags"),
        ("retry: {attempts: !x 3}", "1:22", "no tags"),
        ("%YAML 1.2\n---\nretry:\n", "1:1", "no YAML"),
        ("retry:\n---\nbash:\n", "2:1", "a second document"),
        ("- retry", "1:1", "is a map of names and values"),
        ("그냥 글", "1:1", "is a map of names and values"),
        ("? [a, b]\n: 1", "1:3", "no name of a setting"),
        ("retry:\n attempts: 1\n  longestDelay: 3s", "3:15", "no YAML"),
        ("retry: {attempts: 1", "", "no YAML"),
    ] {
        let told = problems(text);
        assert!(told.contains(sentence) && told.contains(&format!("config.yml:{place}")), "{text:?}\n{told}");
    }
}

#[test]
fn no_secret_is_repeated() {
    for text in [
        "providers:\n  anthropic:\n    apiKey: hunter2\n",
        "providers:\n  anthropic:\n    apiKey:\n      hunter2\n",
        "providers:\n  anthropic:\n    keyCommand: [echo, hunter2]\n",
        "providers:\n  anthropic: {apiKey: hunter2}\n",
        "providers:\n  anthropic: {url: 5, apiKey: hunter2}\n",
        "token: hunter2: x\n",
        "token:\n  hunter2: [\n",
        "비밀: sk-ant-hunter2\n",
        "password: &x hunter2\n",
        "password: \"hunter2\n",
        "api_key: hunter2 \u{0}\n",
    ] {
        for end in 0..=text.len() {
            if !text.is_char_boundary(end) {
                continue;
            }
            if let Err(told) = Document::parse(Path::new("c"), &text.as_bytes()[..end], Scope::User) {
                assert!(!told.to_string().contains("hunter2"), "{text:?} up to {end}\n{told}");
            }
        }
    }
    let mut bytes = b"token: hunter2 ".to_vec();
    bytes.push(0xFF);
    let told = Document::parse(Path::new("c"), &bytes, Scope::User).unwrap_err().to_string();
    assert!(told.contains("c:1:16: the file is no UTF-8") && !told.contains("hunter2"), "{told}");
}

#[test]
fn depth_and_number_are_bounded() {
    for text in [
        "[".repeat(200_000),
        "{a: ".repeat(60_000),
        (0..400).map(|n| " ".repeat(n) + "a:\n").collect(),
        "- ".repeat(100_000),
    ] {
        assert!(problems(&text).contains("nested deeper than 16"), "{}", &text[..20]);
    }
    let many: String = (0..10_000).map(|n| format!("x{n}: 1\n")).collect();
    let told = problems(&many);
    assert!(told.ends_with("and 9980 more") && told.len() < 10_000, "{}", told.len());
    let long = format!("{}: 1", "가".repeat(300));
    assert!(problems(&long).len() < 1_500);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Document::parse(Path::new("c"), &bytes, Scope::Project).map_err(|problems| problems.to_string());
    }

    #[test]
    fn no_text_of_its_own_signs_makes_it_panic(text in "(retry|bash|attempts|tools|models|default|timeout|한글|[ \\n:{}\\[\\],&*!|>'\"#%@?~0-9a-z.<-]){0,60}") {
        if let Ok(document) = Document::parse(Path::new("c"), text.as_bytes(), Scope::User) {
            let now = merge(Some(&document), None, &[]);
            for entry in document.entries() {
                prop_assert_eq!(&now.get(entry.setting.key).unwrap().plain, &entry.plain);
            }
        }
    }

    #[test]
    fn a_value_in_its_usual_form_is_read_as_the_same(text in "anthropic/.{1,40}") {
        // What is one line is a name; everything else is refused.
        if let Ok(flag) = Flag::new("models.default", &text) {
            let plain = merge(None, None, &[flag]).get("models.default").unwrap().plain.clone();
            let file = format!("models:\n  default: {}\n", plain.yaml());
            prop_assert_eq!(&effective(&file).settings.models.default.0, &text);
        }
    }
}
