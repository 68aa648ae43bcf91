use crate::rig::{Rig, sha256};
use gjc_entry::message::ImageData;
use gjc_entry::{Block, Label};
use serde_json::json;
use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::symlink;
use unicode_normalization::UnicodeNormalization;

#[tokio::test]
async fn text_is_shown_with_line_numbers() {
    let rig = Rig::new();
    let crlf = "[lines end with CR LF; edit keeps that]\n";
    let lossy =
        "[bytes that are not UTF-8 are shown as \u{fffd}; if this is old Korean text: `iconv -f CP949 -t UTF-8`]\n";
    let long = "가".repeat(2_001);
    #[rustfmt::skip]
    let table: Vec<(&[u8], String)> = vec![
        (b"", "[f is empty]".into()),
        (b"a", "     1\ta\n".into()),
        ("가\n\n나\n".as_bytes(), "     1\t가\n     2\t\n     3\t나\n".into()),
        (b"a\r\nb\r\n", format!("     1\ta\n     2\tb\n{crlf}")),
        (b"\xef\xbb\xbfa\n", "     1\ta\n".into()),
        (b"\xb0\xa1\n", format!("     1\t\u{fffd}\u{fffd}\n{lossy}")),
        ("\u{fffd}\n".as_bytes(), "     1\t\u{fffd}\n".into()),
        (long.as_bytes(), format!("     1\t{} [… line cut: it has 6003 bytes]\n", &long[3..])),
        (&long.as_bytes()[3..], format!("     1\t{}\n", &long[3..])),
    ];
    for (content, expected) in table {
        rig.file("f", content);
        let done = rig.read("f").await;
        assert_eq!(done.ok(), expected);
        assert_eq!(done.details["sha256"], sha256(content), "{expected}");
        assert_eq!(done.details["bytes"], content.len());
        assert_eq!(done.details["path"], rig.cwd.join("f").to_str().unwrap());
        assert_eq!(done.label, Label::PUBLIC_TRUSTED);
    }
}

#[tokio::test]
async fn parts_tell_how_to_go_on() {
    let rig = Rig::new();
    let content: String = (1..=2_500).map(|n| format!("줄 {n}\n")).collect();
    rig.file("f", &content);

    let done = rig.read("f").await;
    assert!(done.ok().ends_with("  2000\t줄 2000\n[lines 1–2000 of 2500; go on with offset 2001]\n"));
    assert_eq!((&done.details["range"], &done.details["lines_total"]), (&json!([1, 2000]), &json!(2500)));

    let done = rig.call("read", json!({"path": "f", "offset": 2499})).await;
    assert_eq!(done.ok(), "  2499\t줄 2499\n  2500\t줄 2500\n[lines 2499–2500, the end of the file]\n");
    let part = "줄 2499\n줄 2500\n".as_bytes();
    assert_eq!((&done.details["sha256"], &done.details["bytes"]), (&json!(sha256(part)), &json!(part.len())));

    let done = rig.call("read", json!({"path": "f", "offset": 7, "limit": 1})).await;
    assert_eq!(done.ok(), "     7\t줄 7\n[lines 7–7 of 2500; go on with offset 8]\n");

    rig.file("끝", "a\nb\nc");
    let done = rig.call("read", json!({"path": "끝", "limit": 1})).await;
    assert_eq!(done.ok(), "     1\ta\n[lines 1–1 of 3; go on with offset 2]\n");

    let done = rig.call("read", json!({"path": "f", "offset": 2501})).await;
    assert_eq!(done.err(), "f has only 2500 lines\nhint: choose a smaller offset");
}

#[tokio::test]
async fn the_parts_of_wide_text_are_the_whole() {
    let rig = Rig::new();
    let content: String = (1..=100).map(|n| format!("{n}{}\n", "한".repeat(600))).collect();
    rig.file("f", &content);
    let (mut offset, mut all, mut parts) = (1, String::new(), 0);
    loop {
        let done = rig.call("read", json!({"path": "f", "offset": offset})).await;
        let lines: Vec<_> = done.ok().lines().filter_map(|line| line.split_once('\t')).collect();
        assert!(done.ok().len() < 52_000);
        all.extend(lines.iter().map(|(_, line)| format!("{line}\n")));
        parts += 1;
        offset += lines.len();
        let shown = done.details["bytes"].as_u64().unwrap() as usize;
        assert_eq!(
            done.details["sha256"],
            sha256(&all.as_bytes()[all.len() - shown..]),
            "a line that did not fit is not in it"
        );
        assert_eq!(done.details["lines_total"], 100);
        if offset > 100 {
            break;
        }
        assert!(done.text.ends_with(&format!("of 100; go on with offset {offset}]\n")), "{}", &done.text[50_000..]);
    }
    assert_eq!((all, parts), (content, 4));
}

#[tokio::test]
async fn a_huge_file_is_not_loaded() {
    let rig = Rig::new();
    // 8 GiB that take no room on the disk; a tool that loaded it would not come back.
    let mut file = File::create(rig.cwd.join("huge")).unwrap();
    for n in 1..=20_000 {
        writeln!(file, "줄 {n}").unwrap();
    }
    file.seek(SeekFrom::Start(8 << 30)).unwrap();
    file.write_all(b"end").unwrap();
    let done = rig.call("read", json!({"path": "huge", "offset": 15_000, "limit": 2})).await;
    assert_eq!(done.ok(), " 15000\t줄 15000\n 15001\t줄 15001\n[lines 15000–15001; go on with offset 15002]\n");
    assert!(done.details.get("lines_total").is_none());
}

#[tokio::test]
async fn an_endless_line_can_be_cancelled() {
    let rig = Rig::new();
    let mut file = File::create(rig.cwd.join("huge")).unwrap();
    file.write_all(&[b'x'; 10_000]).unwrap();
    file.set_len(1 << 36).unwrap();
    let call = rig.plan("read", &json!({"path": "huge"})).unwrap();
    let permits = rig.permits(&call);
    let (done, ()) = tokio::join!(rig.run(call, permits), async { rig.cancel.cancel() });
    assert_eq!(done.details["error"], "cancelled");
}

#[tokio::test]
async fn folders_list_their_names() {
    let rig = Rig::new();
    fs::create_dir(rig.cwd.join("하위")).unwrap();
    rig.file("b.rs", "");
    rig.file("a", "");
    symlink("b.rs", rig.cwd.join("link")).unwrap();
    let done = rig.read(".").await;
    assert_eq!(done.ok(), "a\nb.rs\nlink -> b.rs\n하위/\n");
    assert_eq!(done.details, json!({"path": rig.cwd, "entries": 4, "range": [1, 4]}));
    let done = rig.call("read", json!({"path": ".", "offset": 2, "limit": 1})).await;
    assert_eq!(done.ok(), "b.rs\n[2–2 of 4 names; go on with offset 3]\n");
    assert_eq!(rig.read("하위").await.ok(), "[the folder is empty]\n");
    assert_eq!(rig.call("read", json!({"path": ".", "offset": 9})).await.ok(), "[the folder has only 4 names]\n");
}

#[tokio::test]
async fn pictures_come_as_blocks() {
    let rig = Rig::new();
    #[rustfmt::skip]
    let table: [(&[u8], &str, &str); 4] = [
        (b"\x89PNG\r\n\x1a\n", "image/png", "iVBORw0KGgo="),
        (b"\xff\xd8\xff\xe0", "image/jpeg", "/9j/4A=="),
        (b"GIF89a", "image/gif", "R0lGODlh"),
        (b"RIFF\x04\0\0\0WEBP", "image/webp", "UklGRgQAAABXRUJQ"),
    ];
    for (content, expected, base64) in table {
        // The name says nothing.
        rig.file("그림.txt", content);
        let done = rig.read("그림.txt").await;
        assert_eq!(done.ok(), format!("[그림.txt: {expected}, {} bytes]", content.len()));
        let Block::Image { data: ImageData::Inline(data), mime, .. } = &done.blocks[1] else { panic!("no picture") };
        assert_eq!((&**data, &**mime), (base64, expected));
        assert_eq!(done.details["sha256"], sha256(content));
    }
    let mut large = b"GIF89a".to_vec();
    large.resize(3_750_001, 0);
    rig.file("large", large);
    assert!(rig.read("large").await.err().contains("a picture of 3750001 bytes; models take 3750000"));
}

#[tokio::test]
async fn binary_files_are_refused_with_their_type() {
    let rig = Rig::new();
    #[rustfmt::skip]
    let table: [(&[u8], &str); 5] = [
        (b"%PDF-1.7\n", "f is a PDF document, 9 bytes"),
        (b"PK\x03\x04", "f is a ZIP archive"),
        (b"\x7fELF", "f is a program (ELF)"),
        (b"a\0b", "f is binary data, 3 bytes"),
        (b"\xff\xfea\0", "f is UTF-16 text, 4 bytes"),
    ];
    for (content, expected) in table {
        rig.file("f", content);
        let done = rig.read("f").await;
        assert!(done.err().starts_with(expected), "{}", done.text);
        assert!(done.text.contains("\nhint: "));
    }
}

#[tokio::test]
async fn names_are_found_in_either_normal_form() {
    let rig = Rig::new();
    let (nfc, nfd) = ("보고서.md".to_string(), "보고서.md".nfd().collect::<String>());
    for (there, asked) in [(&nfd, &nfc), (&nfc, &nfd)] {
        let path = rig.file(there, there);
        let done = rig.read(asked).await;
        assert_eq!(done.ok(), format!("     1\t{there}\n"));
        assert_eq!(done.details["path"], path.to_str().unwrap());
        fs::remove_file(path).unwrap();
    }
    rig.file(&nfc, "nfc");
    rig.file(&nfd, "nfd");
    assert_eq!(rig.read(&nfc).await.ok(), "     1\tnfc\n");
    assert_eq!(rig.read(&nfd).await.ok(), "     1\tnfd\n");
}

#[tokio::test]
async fn what_cannot_be_read_has_a_way_out() {
    let rig = Rig::new();
    rig.file("보고서.md", "");
    fs::create_dir(rig.cwd.join("src")).unwrap();
    rig.file("src/main.rs", "");
    let _socket = std::os::unix::net::UnixListener::bind(rig.cwd.join("socket")).unwrap();
    symlink("loop", rig.cwd.join("loop")).unwrap();
    let cwd = rig.cwd.display();
    #[rustfmt::skip]
    let table = [
        ("보고사.md", "there is no 보고사.md\nhint: did you mean 보고서.md?".to_string()),
        ("src/Mian.rs", "there is no src/Mian.rs\nhint: did you mean src/main.rs?".into()),
        ("src/다른.rs.txt", "there is no src/다른.rs.txt\nhint: list the folder with read {\"path\": \"src\"}".into()),
        ("~/x", format!("there is no ~/x: its folder does not exist either\nhint: the nearest folder that exists is {cwd}; list it with read")),
        ("src/main.rs/x", "src/main.rs/x could not be read: a part of the path is a file".into()),
        ("socket", "socket is a device, a pipe or a socket".into()),
        ("/dev/zero", "/dev/zero is a device".into()),
        ("loop", "loop could not be read: ".into()),
    ];
    for (path, expected) in table {
        let done = rig.read(path).await;
        assert!(done.err().starts_with(&expected), "{}", done.text);
        assert!(done.text.contains("\nhint: "), "{}", done.text);
    }
    assert!(rig.read(&"가".repeat(100)).await.err().contains("\nhint: "), "a name that is too long");
}

#[tokio::test]
async fn nobody_vouches_for_files_outside() {
    let rig = Rig::new();
    let untrusted = Label { trusted: false, ..Label::PUBLIC_TRUSTED };
    fs::write(rig.outside.join("밖"), "x").unwrap();
    rig.file("안", "x");
    symlink(rig.outside.join("밖"), rig.cwd.join("out")).unwrap();
    symlink(&rig.cwd, rig.outside.join("in")).unwrap();
    let absolute = rig.outside.join("밖").display().to_string();
    #[rustfmt::skip]
    let table = [
        ("안", true), ("../ws/안", true), ("../outside/in/안", true), (".", true),
        ("../outside/밖", false), (&*absolute, false), ("out", false), ("..", false), ("../ws2", false), ("missing/../../x", false),
    ];
    for (path, trusted) in table {
        let label = if trusted { Label::PUBLIC_TRUSTED } else { untrusted };
        let call = rig.plan("read", &json!({"path": path})).unwrap();
        assert_eq!(call.sources[0].label, label, "{path}");
        assert!(call.sinks.is_empty());
        assert_eq!(rig.read(path).await.label, label, "{path}");
    }
    // A link that moves between plan and run.
    symlink("안", rig.cwd.join("moving")).unwrap();
    let call = rig.plan("read", &json!({"path": "moving"})).unwrap();
    assert!(call.sources[0].label.trusted);
    fs::remove_file(rig.cwd.join("moving")).unwrap();
    symlink(rig.outside.join("밖"), rig.cwd.join("moving")).unwrap();
    let permits = rig.permits(&call);
    assert_eq!(rig.run(call, permits).await.label, untrusted);
}
