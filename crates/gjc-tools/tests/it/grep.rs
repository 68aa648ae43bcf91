use crate::find::with;
use crate::ls::pipe;
use crate::rig::Rig;
use gjc_entry::Label;
use serde_json::json;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use unicode_normalization::UnicodeNormalization;

#[tokio::test]
async fn lines_come_in_the_order_of_paths_and_numbers() {
    let rig = with(&[
        ("src/main.rs", "fn main() {}\n// 한글\nfn other() {}\n"),
        ("src.rs", "fn f() {}"),
        (".env", "fn=1\n"),
        ("src/깊이/a.rs", "\n\nfn g();\r\n"),
        (".git/config", "fn\n"),
        (".gitignore", "*.log\n"),
        ("x.log", "fn\n"),
    ]);
    let done = rig.call("grep", json!({"pattern": "fn"})).await;
    let expected = ".env:1: fn=1\nsrc/main.rs:1: fn main() {}\nsrc/main.rs:3: fn other() {}\nsrc/깊이/a.rs:3: fn g();\n\
                    src.rs:1: fn f() {}\n";
    assert_eq!(done.ok(), expected);
    let details = json!({
        "path": rig.cwd.to_str().unwrap(), "matches": 5, "files": 4, "shown": 5, "searched": 5, "binary": 0, "unread": 0,
    });
    assert_eq!(done.details, details);
    assert_eq!(done.label, Label::PUBLIC_TRUSTED);

    let grep = async |input| rig.call("grep", input).await.ok().to_string();
    assert_eq!(grep(json!({"pattern": "FN G", "ignoreCase": true})).await, "src/깊이/a.rs:3: fn g();\n");
    assert_eq!(grep(json!({"pattern": "f()", "literal": true})).await, "src.rs:1: fn f() {}\n");
    assert_eq!(grep(json!({"pattern": ";$"})).await, "src/깊이/a.rs:3: fn g();\n", "before CR LF too");
    assert_eq!(
        grep(json!({"pattern": "fn", "path": "src/main.rs", "limit": 1})).await,
        "src/main.rs:1: fn main() {}\n[1 of 2 matching lines shown, 1 more; narrow pattern, path or glob, or raise limit (all matches: 1 file)]\n"
    );
    assert_eq!(grep(json!({"pattern": "fn", "path": "./src/", "glob": "!main.*"})).await, "src/깊이/a.rs:3: fn g();\n");
    assert_eq!(
        grep(json!({"pattern": "fn", "glob": "src/*.rs", "filesOnly": true})).await,
        "src/main.rs: 2 matching lines\n"
    );
    assert_eq!(grep(json!({"pattern": "fn", "path": "x.log"})).await, "x.log:1: fn\n", "an ignored file that is named");
    assert_eq!(grep(json!({"pattern": "없다"})).await, "[no line matches; 5 files searched]\n");
}

#[tokio::test]
async fn lines_around_a_match_are_shown_once() {
    let rig = Rig::new();
    rig.file("a", "1\n2\n찾\n4\n찾\n6\n7\n8\n9\n찾\n11\n");
    rig.file("b", "찾\n");
    let done = rig.call("grep", json!({"pattern": "찾", "context": 1})).await;
    let expected = "a-2- 2\na:3: 찾\na-4- 4\na:5: 찾\na-6- 6\n--\na-9- 9\na:10: 찾\na-11- 11\n--\nb:1: 찾\n";
    assert_eq!(done.ok(), expected);
    let done = rig.call("grep", json!({"pattern": "찾", "context": 1, "limit": 2})).await;
    let note =
        "[2 of 4 matching lines shown, 2 more; narrow pattern, path or glob, or raise limit (all matches: 2 files)]\n";
    assert_eq!(done.ok(), format!("a-2- 2\na:3: 찾\na-4- 4\na:5: 찾\na-6- 6\n{note}"));
}

#[tokio::test]
async fn either_form_of_a_pattern_finds_either_form_of_names_and_content() {
    let rig = Rig::new();
    let nfd = |text: &str| text.nfd().collect::<String>();
    rig.file("composed.md", "가나다\n보고서를 썼다\n");
    rig.file("decomposed.md", nfd("가나다\n보고서를 썼다\n"));
    for pattern in ["보고서", "보.서", "[가-힣]고서"] {
        for pattern in [pattern.to_string(), nfd(pattern)] {
            let done = rig.call("grep", json!({"pattern": pattern})).await;
            let expected = format!("composed.md:2: 보고서를 썼다\ndecomposed.md:2: {}\n", nfd("보고서를 썼다"));
            assert_eq!(done.ok(), expected, "{pattern}; lines are shown as they are");
        }
    }
    fs::create_dir(rig.cwd.join(nfd("문서"))).unwrap();
    rig.file(&format!("{}/{}", nfd("문서"), nfd("글.md")), "x\n");
    let done = rig.call("grep", json!({"pattern": "x", "path": "문서", "glob": "글.*"})).await;
    assert_eq!(done.ok(), format!("문서/{}:1: x\n", nfd("글.md")));
}

#[tokio::test]
async fn a_long_line_is_cut_between_letters_around_the_match() {
    let rig = Rig::new();
    rig.file("min.js", format!("{}찾음{}\n짧다 찾음\n", "가".repeat(40_000), "나".repeat(40_000)));
    let done = rig.call("grep", json!({"pattern": "찾음"})).await;
    let cut = format!("min.js:1: […] {}찾음{} [… line cut: it has 240006 bytes]\n", "가".repeat(100), "나".repeat(398));
    assert_eq!(done.ok(), format!("{cut}min.js:2: 짧다 찾음\n"));
}

#[tokio::test]
async fn binary_files_are_said() {
    let rig = Rig::new();
    rig.file("a.bin", b"find me\n\0find me\n");
    rig.file("b.bin", b"\0");
    rig.file("글.txt", "find me\n");
    rig.file(
        "utf16.txt",
        [0xff, 0xfe].into_iter().chain("find 글\n".encode_utf16().flat_map(u16::to_le_bytes)).collect::<Vec<_>>(),
    );
    let done = rig.call("grep", json!({"pattern": "find"})).await;
    let note = "[2 binary files left out; name one as path to search it]\n";
    assert_eq!(done.ok(), format!("utf16.txt:1: find 글\n글.txt:1: find me\n{note}"));
    assert_eq!((&done.details["binary"], &done.details["searched"]), (&json!(2), &json!(2)));
    let done = rig.call("grep", json!({"pattern": "find", "path": "a.bin"})).await;
    assert_eq!(done.ok(), "a.bin: binary file, 2 lines match; see them with bash: `strings`, `grep -a`\n");
    let done = rig.call("grep", json!({"pattern": "없다", "path": "a.bin"})).await;
    assert_eq!(done.ok(), "[no line matches; 1 file searched]\n");
}

#[tokio::test]
async fn what_does_not_fit_is_counted_and_the_first_are_shown_each_time() {
    let rig = Rig::new();
    for folder in 0..20 {
        fs::create_dir(rig.cwd.join(format!("{folder:02}"))).unwrap();
        (0..20).for_each(|n| drop(rig.file(&format!("{folder:02}/{n:02}"), "찾\n아니\n찾\n")));
    }
    let first = rig.call("grep", json!({"pattern": "찾"})).await;
    let expected: String =
        (0..100).map(|n| format!("{:02}/{:02}:{}: 찾\n", n / 40, n / 2 % 20, 1 + n % 2 * 2)).collect();
    let note = "[100 of 800 matching lines shown, 700 more; narrow pattern, path or glob, or raise limit (all matches: 400 files)]\n";
    assert_eq!(first.ok(), format!("{expected}{note}"));
    for _ in 0..20 {
        assert_eq!(rig.call("grep", json!({"pattern": "찾"})).await.text, first.text);
    }
    let done = rig.call("grep", json!({"pattern": "찾", "filesOnly": true, "limit": 3})).await;
    let lines = "00/00: 2 matching lines\n00/01: 2 matching lines\n00/02: 2 matching lines\n";
    let note = "[3 of 400 files shown, 397 more; narrow pattern, path or glob, or raise limit]\n";
    assert_eq!(done.ok(), format!("{lines}{note}"));
    let wide = rig.file("00/wide", format!("찾{}\n", "다".repeat(400)).repeat(100));
    let done = rig.call("grep", json!({"pattern": "찾", "limit": u64::MAX})).await;
    assert!(done.ok().len() < 51_500 && done.text.contains(" of 900 matching lines shown, "), "{}", done.text.len());
    drop(wide);
}

#[tokio::test]
async fn a_line_of_256_mb_takes_little_memory_and_is_told() {
    let rig = Rig::new();
    let mut file = File::create(rig.cwd.join("huge")).unwrap();
    file.write_all("찾음\n".as_bytes()).unwrap();
    let piece = vec![b'x'; 1 << 20];
    (0..256).for_each(|_| file.write_all(&piece).unwrap());
    file.write_all("\n찾음\n".as_bytes()).unwrap();
    let before = testkit::probe::peak_kib();
    let done = rig.call("grep", json!({"pattern": "찾음"})).await;
    let told = "[not all could be read: huge: a line has more than 16 MiB; search what follows with bash]\n";
    assert_eq!(done.ok(), format!("huge:1: 찾음\n{told}"));
    let grown = (testkit::probe::peak_kib() - before) / 1024;
    // Other tests may run in this process meanwhile; all of the line would be 256.
    assert!(grown < 128, "{grown} MiB");
    assert_eq!(rig.call("grep", json!({"pattern": "찾음", "path": "huge"})).await.text, done.text);
    // What is longer than memory, in holes: NULs tell at once that it is no text.
    fs::remove_file(rig.cwd.join("huge")).unwrap();
    File::create(rig.cwd.join("hole")).unwrap().set_len(1 << 40).unwrap();
    let done = rig.call("grep", json!({"pattern": "찾음"})).await;
    assert_eq!(
        done.ok(),
        "[no line matches; 0 files searched]\n[1 binary file left out; name one as path to search it]\n"
    );
}

#[tokio::test]
async fn what_never_ends_is_not_opened() {
    let rig = with(&[("a.rs", "찾\n")]);
    pipe(&rig.cwd.join("pipe"));
    symlink("/dev/zero", rig.cwd.join("zero")).unwrap();
    symlink("loop", rig.cwd.join("loop")).unwrap();
    symlink("..", rig.cwd.join("up")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(rig.cwd.join("socket")).unwrap();
    let done = rig.call("grep", json!({"pattern": "찾"})).await;
    assert_eq!(done.ok(), "a.rs:1: 찾\n");
    for path in ["pipe", "zero", "/dev/zero", "socket"] {
        let done = rig.call("grep", json!({"pattern": "찾", "path": path})).await;
        let expected = format!("{path} is a device, a pipe or a socket, not a file\nhint: ");
        assert!(done.err().starts_with(&expected), "{}", done.text);
    }
    let done = rig.call("grep", json!({"pattern": "찾", "path": "loop"})).await;
    assert!(done.err().starts_with("loop could not be searched: "), "{}", done.text);
    let done = rig.call("grep", json!({"pattern": "찾", "path": "b.rs"})).await;
    assert_eq!(done.err(), "there is no b.rs\nhint: did you mean a.rs?");
}

#[tokio::test]
async fn a_wrong_pattern_is_told_with_a_way_out() {
    let rig = Rig::new();
    let done = rig.call("grep", json!({"pattern": "f(한글"})).await;
    let expected = "grep: `pattern` is no regular expression: unclosed group\nhint: mend it, or set literal to search for the very text";
    assert_eq!(done.err(), expected);
    let done = rig.call("grep", json!({"pattern": "한\n글"})).await;
    assert!(done.err().starts_with("grep: `pattern` holds a line feed"), "{}", done.text);
}

#[tokio::test]
async fn names_that_are_not_utf_8_are_shown_and_told() {
    let rig = Rig::new();
    fs::write(rig.cwd.join(OsStr::from_bytes(b"\xb0\xa1.rs")), "찾\n").unwrap();
    rig.file("a\nb:1: 거짓", "찾\n");
    let done = rig.call("grep", json!({"pattern": "찾"})).await;
    let note =
        "[bytes of names that are not UTF-8 are shown as \u{fffd}; reach such a file with bash and a wildcard]\n";
    assert_eq!(done.ok(), format!("a\\nb:1: 거짓:1: 찾\n\u{fffd}\u{fffd}.rs:1: 찾\n{note}"));
}

#[tokio::test]
async fn a_search_ends_when_it_is_cancelled() {
    let rig = Rig::new();
    // Text without an end in sight: a hole would be binary.
    let piece = "아무 것도 없는 줄\n".repeat(100_000);
    (0..40).for_each(|n| drop(rig.file(&n.to_string(), &piece)));
    let call = rig.plan("grep", &json!({"pattern": "찾음"})).unwrap();
    let permits = rig.permits(&call);
    let (done, ()) = tokio::join!(rig.run(call, permits), async { rig.cancel.cancel() });
    assert_eq!(done.details["error"], "cancelled");
}

#[tokio::test]
async fn nobody_vouches_for_lines_from_outside() {
    let rig = Rig::new();
    fs::write(rig.outside.join("밖"), "찾\n").unwrap();
    rig.file("안", "찾\n");
    symlink(rig.outside.join("밖"), rig.cwd.join("out")).unwrap();
    symlink(&rig.outside, rig.cwd.join("folder")).unwrap();
    let table = [
        ("안", true),
        (".", true),
        ("../ws", true),
        ("..", false),
        ("out", false),
        ("folder", false),
        ("../outside/밖", false),
    ];
    for (path, trusted) in table {
        let label = Label { trusted, ..Label::PUBLIC_TRUSTED };
        for files_only in [false, true] {
            let input = json!({"pattern": "찾", "path": path, "filesOnly": files_only});
            let call = rig.plan("grep", &input).unwrap();
            assert_eq!((call.sources[0].label, call.sinks.len()), (label, 0), "{path}");
            assert_eq!(rig.call("grep", input).await.label, label, "{path}");
        }
    }
    // A link that moves between plan and run.
    symlink("안", rig.cwd.join("moving")).unwrap();
    let call = rig.plan("grep", &json!({"pattern": "찾", "path": "moving"})).unwrap();
    assert!(call.sources[0].label.trusted);
    fs::remove_file(rig.cwd.join("moving")).unwrap();
    symlink(rig.outside.join("밖"), rig.cwd.join("moving")).unwrap();
    let permits = rig.permits(&call);
    let done = rig.run(call, permits).await;
    assert!(!done.label.trusted && done.ok() == "moving:1: 찾\n", "{}", done.text);
}
