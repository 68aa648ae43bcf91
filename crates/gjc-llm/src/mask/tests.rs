//! What goes and what stays.

use super::*;
use serde_json::Value;

#[test]
fn every_shape_is_a_sound_pattern() {
    let masks = Masks::new([]);
    assert_eq!(masks.shapes.len(), SHAPES.len());
    assert!(masks.keys.is_some());
    assert!(masks.assigned.is_some(), "{:?}", Regex::new(assigned::PATTERN));
}

#[test]
fn secrets_go_and_words_stay() {
    let masks = Masks::new(["비밀의 열쇠".into(), "quo\"ted-secret".into(), "short".into(), "  ".into()]);
    for secret in [
        "비밀의 열쇠".to_owned(),
        "quo\"ted-secret".to_owned(),
        format!("sk-ant-api03-{}", "x".repeat(40)),
        format!("ghp_{}", "a1".repeat(18)),
        format!("xoxb-{}", "1".repeat(12)),
        format!("AKIA{}", "Z".repeat(16)),
        format!("eyJ{}.eyJ{}.{}", "a".repeat(12), "b".repeat(12), "c".repeat(20)),
        format!("Bearer {}", "t".repeat(24)),
        "-----BEGIN RSA PRIVATE KEY-----\nMIIE+/=\nAAAA\n-----END RSA PRIVATE KEY-----".to_owned(),
        "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nMIIE\n-----END RSA PRIVATE KEY-----".to_owned(),
        "-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: 1\n\nlQO\n-----END PGP PRIVATE KEY BLOCK-----".to_owned(),
    ] {
        let text = format!("앞 \"{secret}\" 뒤");
        let masked = masks.mask(&text);
        assert_eq!(masked, format!("앞 \"{MASKED}\" 뒤"), "{secret}");
        // Arguments of a call are JSON, before and after.
        let json = Value::from(text).to_string();
        let masked: Value = serde_json::from_str(&masks.mask(&json)).unwrap();
        assert_eq!(masked, format!("앞 \"{MASKED}\" 뒤"), "{json}");
    }
    assert_eq!(masks.mask("https://me:pw@host/x"), "https[secret]host/x");
    assert_eq!(masks.mask("redis://:hunter2@host/0"), "redis[secret]host/0");
    assert_eq!(masks.mask("curl -H 'Authorization: Basic dXNlcjpwdw=='"), "curl -H '[secret]'");
    for word in [
        "a short word",
        "the authorization failed",
        "sk-1",
        "task-oriented-programming-language",
        "eyJhbGci",
        "한글 sk- 글",
        "http://h:80/a@b",
    ] {
        assert_eq!(masks.mask(word), word);
    }
}

fn for_others(text: &str) -> (String, Vec<(&'static str, usize)>) {
    let mut masked = Masked::default();
    let text = Masks::new(["이-기계의-열쇠".into()]).mask_for_others(text, &mut masked);
    (text, masked.kinds().collect())
}

/// K46: each kind by its name, with 한글 on both sides, and as a text of JSON.
#[test]
fn what_goes_to_others_goes_without_keys_and_tells_what_was_in_it() {
    let url = "postgres://me:비밀번호@db/x".to_owned();
    for (kind, secret) in [
        ("Anthropic key", format!("sk-ant-api03-{}", "Ab1_".repeat(10))),
        ("OpenAI key", format!("sk-proj-{}", "aB3".repeat(12))),
        ("GitHub token", format!("ghp_{}", "a1B2".repeat(9))),
        ("GitHub token", format!("github_pat_{}", "a1_B".repeat(9))),
        ("AWS key", "AKIAIOSFODNN7EXAMPLE".to_owned()),
        ("Slack token", format!("xoxb-{}", "12-ab".repeat(5))),
        ("Slack token", format!("xapp-1-{}", "A2".repeat(12))),
        ("Google key", format!("AIza{}", "Sy1".repeat(12))),
        ("signed token", format!("eyJ{}.eyJ{}.{}", "a".repeat(12), "b".repeat(12), "c".repeat(20))),
        (
            "private key",
            "-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl\nAAAA\n-----END OPENSSH PRIVATE KEY-----".to_owned(),
        ),
        ("authorization", "Authorization: Basic dXNlcjpwdw==".to_owned()),
        ("key of this machine", "이-기계의-열쇠".to_owned()),
    ] {
        let text = format!("앞의 \u{AC00} \"{secret}\" 뒤의 글");
        let told = vec![(kind, 1)];
        assert_eq!(for_others(&text), (format!("앞의 \u{AC00} \"{MASKED}\" 뒤의 글"), told.clone()), "{secret}");
        let json = serde_json::json!({"role": "toolResult", "content": [{"text": text}], "n": 12}).to_string();
        let mut masked = Masked::default();
        let without = Masks::new(["이-기계의-열쇠".into()]).mask_json_for_others(json.into_bytes(), &mut masked);
        let without: Value = serde_json::from_slice(&without).unwrap();
        assert_eq!(without["content"][0]["text"], format!("앞의 \u{AC00} \"{MASKED}\" 뒤의 글"));
        assert_eq!(masked.kinds().collect::<Vec<_>>(), told);
    }
    assert_eq!(for_others(&url).0, format!("postgres{MASKED}db/x"));
    for (text, without) in [
        (
            "export AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY 이다",
            "export AWS_SECRET_ACCESS_KEY=[secret] 이다",
        ),
        ("DB_PASSWORD='hunter22pass'", "DB_PASSWORD='[secret]'"),
        ("password: s3cretvalue", "password: [secret]"),
        ("{\"apiKey\": \"a1b2c3d4e5\"}", "{\"apiKey\": \"[secret]\"}"),
        ("비밀 MY_TOKEN=abcdefgh12 끝", "비밀 MY_TOKEN=[secret] 끝"),
    ] {
        assert_eq!(for_others(text), (without.into(), vec![("value of a secret's name", 1)]), "{text}");
    }
}

#[test]
fn hashes_ids_code_and_words_are_no_secrets() {
    for text in [
        "commit 3f786850e387550fdab836ed7e6dc881de23001b",
        "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "0197a0c2-0000-7000-8000-000000000001",
        "blob:sha256:e3b0c44298fc1c149afbf4c8996fb924",
        "\"totalTokens\":1580123456,\"maxTokens\": 12345678",
        "const apiKey = process.env.API_KEY2",
        "let password = get_password(user)",
        "API_KEY=your-api-key-here",
        "OPENAI_API_KEY=$OPENAI_API_KEY",
        "SSH_KEY=/home/ann/.ssh/id_ed25519",
        "비밀번호: 나중에 정함",
        "the secret: patience and practice",
        "monkey=bananas123 keyboard: qwertz99",
        "toolu_01A09q90qw90lq917835lq9",
        "call_9fJ2kD8sLq0PzXw1",
    ] {
        assert_eq!(for_others(text), (text.to_owned(), Vec::new()), "{text}");
    }
}

#[test]
fn of_json_only_the_texts_with_secrets_change() {
    let mut masked = Masked::default();
    let json = r#"{ "a" : [1.50, true, "\u00e9\/", "\u003c"], "password":12345,"token_count": 7 }"#;
    let same = Masks::new([]).mask_json_for_others(json.as_bytes().to_vec(), &mut masked);
    assert_eq!((String::from_utf8(same).unwrap(), masked.count()), (json.to_owned(), 0));
    let json = r#"{"client_secret":"abcd1234efgh","Authorization":"Basic abcdef","b":{"x":"hunter22pass"}}"#;
    let without = Masks::new([]).mask_json_for_others(json.as_bytes().to_vec(), &mut masked);
    let right = r#"{"client_secret":"[secret]","Authorization":"[secret]","b":{"x":"hunter22pass"}}"#;
    assert_eq!((String::from_utf8(without).unwrap(), masked.count()), (right.to_owned(), 2));
    let broken = format!("no json \" ghp_{}", "a1".repeat(18));
    let without = Masks::new([]).mask_json_for_others(broken.into_bytes(), &mut masked);
    assert_eq!(String::from_utf8(without).unwrap(), "no json \" [secret]");
}

/// A line of a key, and what it would be in another.
fn line(of: usize) -> String {
    format!("{of}AbC/d+E").repeat(8)[..64].to_owned()
}

/// A key as it is, numbered, quoted, found, cut off: nothing of its body is left, and what stands around it is.
#[test]
fn of_a_private_key_nothing_is_left_however_it_is_shown() {
    let lines = [
        "-----BEGIN RSA PRIVATE KEY-----".to_owned(),
        line(1),
        line(2),
        line(3),
        "Zz9yX8w==".to_owned(),
        "-----END RSA PRIVATE KEY-----".to_owned(),
    ];
    let prefixes: [&dyn Fn(usize) -> String; 10] = [
        &|_| String::new(),
        &|at| format!("{at}:"),
        &|at| format!("{at:>6}→"),
        &|at| format!("{at:>6}\t"),
        &|_| "\t".into(),
        &|_| "> ".into(),
        &|_| "> > ".into(),
        &|at| format!("id_rsa:{at}:"),
        &|at| format!("열쇠/id_rsa-{at}-"),
        &|at| format!("{at} | "),
    ];
    for prefix in prefixes {
        for (from, to) in [(0, 6), (0, 5), (0, 3), (1, 6), (2, 6)] {
            for line_break in ["\n", "\r\n", "\\n"] {
                let shown: Vec<_> = (from..to).map(|at| prefix(at + 1) + &lines[at]).collect();
                let text = format!("앞의 글\n{}\n뒤의 글, words and 12 more", shown.join(line_break));
                let (masked, kinds) = for_others(&text);
                assert_eq!(kinds, [("private key", 1)], "{text}\n{masked}");
                assert!(!masked.contains("AbC") && !masked.contains("yX8w"), "{text}\n{masked}");
                assert!(masked.starts_with("앞의 글\n"), "{masked}");
                assert!(masked.ends_with("\n뒤의 글, words and 12 more"), "{masked}");
            }
        }
    }
    // Two of which the first has no end; lines left out; an encrypted one without an end.
    let two = format!("{}\n{}\n말\n{}", lines[0], lines[1], lines.join("\n"));
    assert_eq!(for_others(&two), (format!("{MASKED}\n말\n{MASKED}"), vec![("private key", 2)]));
    let gap = format!("{}\n{}\n[40줄 생략]\n{}\n끝.", lines[0], lines[1], lines[3]);
    assert_eq!(for_others(&gap).0, format!("{MASKED}\n끝."));
    let head = format!("{}\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0A1B\n\n{}", lines[0], lines[1]);
    assert_eq!(for_others(&head).0, MASKED);
    let json =
        serde_json::json!({"a": format!("{}\n{}", lines[0], lines[1]), "sha": "0123456789abcdef0123"}).to_string();
    let masked: Value = serde_json::from_str(&Masks::new([]).mask(&json)).unwrap();
    assert_eq!(masked, serde_json::json!({"a": MASKED, "sha": "0123456789abcdef0123"}));
    for words in [
        "a file begins with -----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQ",
        "PRIVATE KEY is what it is called\nMIIBIjANBgkqhkiG9w0BAQ",
    ] {
        assert_eq!(for_others(words).0, words);
    }
    assert_eq!(
        for_others("-----BEGIN PRIVATE KEY-----\nand then words follow").0,
        format!("{MASKED}\nand then words follow")
    );
}

#[test]
fn a_value_in_quotes_goes_to_its_end_and_short_passwords_go() {
    for (text, without) in [
        ("password = \"ab$LEAK&cd'ef 한글\" # 뒤", "password = \"[secret]\" # 뒤"),
        ("password: 'LEAK ed by words'", "password: '[secret]'"),
        ("let password: &str = \"LEAK-q\";", "let password: &str = \"[secret]\";"),
        ("{\\\"password\\\": \\\"a$LEAK&b\\\", \\\"n\\\": 1}", "{\\\"password\\\": \\\"[secret]\\\", \\\"n\\\": 1}"),
        ("\"passwd\": \"LEAKme\"", "\"passwd\": \"[secret]\""),
        ("password=abc123", "password=[secret]"),
        ("pwd: abc12$", "pwd: [secret]"),
        ("db.password=LEAKed", "db.password=[secret]"),
        ("password: 123456", "password: [secret]"),
        ("DB_PASS=ab12cd", "DB_PASS=[secret]"),
        ("API_KEY=1234567890", "API_KEY=[secret]"),
        ("{\"secret\": 1234567890, \"n\": 1234567890}", "{\"secret\": [secret], \"n\": 1234567890}"),
        (
            "{\"passwords\": [\"LEAK-1\", \"LEAK-2\"], \"n\": 1}",
            "{\"passwords\": [\"[secret]\", \"[secret]\"], \"n\": 1}",
        ),
        ("passphrase = 나의 비밀 문장", "passphrase = [secret]"),
        ("passphrase = 나의비밀문장 LEAK\n다음", "passphrase = [secret]\n다음"),
        ("passphrase: \"나의 비밀 문장\"", "passphrase: \"[secret]\""),
        ("token: abcd1234efgh", "token: [secret]"),
        ("\"token\":\"abcd1234efgh\"", "\"token\":\"[secret]\""),
        ("\"botToken\": \"ab&cd$efgh\"", "\"botToken\": \"[secret]\""),
        ("Authorization: abc123def456", "Authorization: [secret]"),
        ("-H \"authorization: 0123456789ab\"", "-H \"authorization: [secret]\""),
        ("?token=abcd1234&page=2", "?token=[secret]&page=2"),
        ("password:\nhunter22", "password:\n[secret]"),
    ] {
        let (masked, kinds) = for_others(text);
        assert_eq!(masked, without);
        assert_eq!(kinds.iter().map(|(kind, _)| *kind).collect::<Vec<_>>(), ["value of a secret's name"], "{text}");
    }
}

#[test]
fn a_password_in_an_address_goes_whatever_it_is_made_of() {
    for (text, without) in [
        ("postgres://u:p@LEAK@ss@h/db", "postgres[secret]h/db"),
        ("postgres://u:pa/LEAK/ss1@h/db", "postgres[secret]h/db"),
        ("postgres://u:p@LE/AK@h/db 뒤", "postgres[secret]h/db 뒤"),
        ("https://u:pw@example.org/@scope/x", "https[secret]example.org/@scope/x"),
        ("a redis://:비밀@localhost:6379 b amqp://x:y@z", "a redis[secret]localhost:6379 b amqp[secret]z"),
        ("{\\\"url\\\":\\\"mysql://u:p#w?x@h\\\"}", "{\\\"url\\\":\\\"mysql[secret]h\\\"}"),
    ] {
        assert_eq!(for_others(text).0, without);
        assert_eq!(Masks::new([]).mask(text), without);
    }
    for text in [
        "http://h:80/a@b",
        "http://localhost:3000/@vite/client",
        "https://host/users/me@example.org",
        "http://[::1]:80/a@b",
        "ssh://git@github.com:22/x",
        "http://host:$PORT/a@b",
        "http://h:80\\nmail a@b",
    ] {
        assert_eq!(for_others(text), (text.to_owned(), Vec::new()));
    }
}

#[test]
fn code_types_labels_and_places_are_no_values() {
    for text in [
        "token: String,",
        "pub token: Option<String>,",
        "password: &str",
        "password: &'a str, user: &str",
        "\"password\": null, \"token\": false",
        "let token = next_token();",
        "let token = lexer.next_token2();",
        "token = tokens[12345678]",
        "const password = await getPassword2(user)",
        "connect(password=password, token=token)",
        "password: z.string().min(8)",
        "password: str = Field(min_length=8)",
        "self.password = config.password2",
        "\"password\": {\"type\": \"string\"}",
        "\"password\": \"string\"",
        "password: 'Enter your password'",
        "\"secret\": \"Show the secret to nobody\"",
        "password = \"${DB_PASSWORD}\"",
        "password: $DB_PASSWORD",
        "password = '********'",
        "\"token\": \"identifier\"",
        "\"max_token\": 12345678, \"totalTokens\": 1580123456",
        "PWD=/home/ann/project1",
        "const ANTHROPIC_KEY: &str = \"ANTHROPIC_API_KEY\";",
        "Authorization: required",
        "the authorization: something that is asked",
        "private_key = './keys/id_ed25519'",
        "passphrase = ask_passphrase(user)",
        "비밀번호가 password: 나중에 정함",
    ] {
        assert_eq!(for_others(text), (text.to_owned(), Vec::new()));
    }
}

#[test]
fn numbers_and_lists_under_a_name_of_json_go() {
    let json = r#"{"password":12345678,"secrets":["ab12cd34", ["ef56gh78"], 12345678],"n":[12345678,"ab12cd34"],"token":"ab$cd&ef"}"#;
    let mut masked = Masked::default();
    let without = Masks::new([]).mask_json_for_others(json.as_bytes().to_vec(), &mut masked);
    let right = r#"{"password":"[secret]","secrets":["[secret]", ["[secret]"], "[secret]"],"n":[12345678,"ab12cd34"],"token":"[secret]"}"#;
    assert_eq!((String::from_utf8(without).unwrap(), masked.count()), (right.to_owned(), 5));
    let json = r#"{"password":null,"token":true,"secrets":[{"n":12345678,"x":"ab12cd34"}],"z":-1.5e3,"a":12345678}"#;
    let without = Masks::new([]).mask_json_for_others(json.as_bytes().to_vec(), &mut Masked::default());
    assert_eq!(String::from_utf8(without).unwrap(), json);
}

/// What is made to be looked at again from each of its places is not: work that grows with the square shows in how long this takes.
#[test]
fn long_texts_take_no_longer_than_their_length() {
    for piece in [
        "password=",
        "://a:",
        "secret='",
        "token=\"",
        "-----BEGIN PRIVATE KEY-----\n",
        "passphrase= x ",
        "[\"secrets\":",
    ] {
        let text = piece.repeat(60_000 / piece.len());
        for_others(&text);
        let _ = Masks::new([]).mask_json_for_others(text.into_bytes(), &mut Masked::default());
    }
    let long = format!("password={}\nx", "a1".repeat(5000));
    assert_eq!(for_others(&long).0, "password=[secret]\nx");
}
