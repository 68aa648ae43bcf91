//! Damaged session files: said where, never repaired by a look, never in the way of the rest.

use crate::kit::*;
use serde_json::{Value, json};
use std::io::{Seek, Write};
use testkit::SeededIds;
use testkit::damage::{AT_BYTES, AT_LINES, Sound};
use testkit::harness::Home;

const ID: &str = "0197a0c2-0000-7000-8000-000000000001";

struct Case {
    name: &'static str,
    bytes: Vec<u8>,
    /// Entries that are there in spite of it.
    entries: u64,
    /// Byte offsets that `verify` names.
    offsets: Vec<usize>,
    unfinished: bool,
}

fn cases() -> Vec<Case> {
    let start = header(ID, "/p") + &user("0000000a", None, "첫 물음") + &said("0000000b", "0000000a", "첫 대답");
    let more = user("0000000c", Some("0000000b"), "둘째 물음") + &said("0000000d", "0000000c", "둘째 대답");
    let at = start.len();
    let case = |name, damaged: &[u8], entries, offsets: &[usize]| {
        let bytes = [start.as_bytes(), damaged, more.as_bytes()].concat();
        Case { name, bytes, entries, offsets: offsets.iter().map(|off| at + off).collect(), unfinished: false }
    };
    let extra = user("0000000e", Some("0000000b"), "곁가지");
    let prefix = &extra.as_bytes()[..45];
    let glued = [prefix, extra.as_bytes()].concat();
    let nuls = [extra.trim_end().as_bytes(), &[0; 9000], b"\n"].concat();
    let twice = [prefix, b"\n", extra.as_bytes()].concat();
    let mut cases = vec![
        case("sound", b"", 4, &[]),
        case("a line of NULs", &[&[0; 5000][..], b"\n"].concat(), 4, &[0]),
        case("a line that is no JSON", b"}{ not json\n", 4, &[0]),
        case("a cut record and a whole one on one line (K01)", &glued, 5, &[0]),
        // The record before the NULs is taken in; the place is named.
        case("NULs behind a whole record (K03)", &nuls, 5, &[0]),
        case("a record cut, and then whole (K04)", &twice, 5, &[0]),
        // It says nothing that is not there already.
        case("a record repeated", said("0000000b", "0000000a", "첫 대답").as_bytes(), 4, &[]),
        case(
            "an id used twice for different records (K05)",
            user("0000000b", Some("0000000a"), "다른 말").as_bytes(),
            // The first owns the id; the other is kept beside it, and told.
            5,
            &[0],
        ),
        case("a parent that is not there", user("0000000e", Some("99999999"), "고아").as_bytes(), 5, &[0]),
        case("a body that is no JSON", extra.replace("\"content\":[", "\"content\":[,").as_bytes(), 5, &[0]),
    ];
    let whole = start.clone() + &more;
    let mut tail = |name, bytes: &[u8]| {
        cases.push(Case {
            name,
            bytes: [whole.as_bytes(), bytes].concat(),
            entries: 4,
            offsets: vec![],
            unfinished: true,
        });
    };
    tail("a torn tail", prefix);
    tail("a tail that ends inside a letter (K02)", &[prefix, b"\xED\x95"].concat());
    tail("a tail of NULs (K03)", &[0; 140_000]);
    cases
}

#[test]
fn verify_names_each_place_and_all_looks_agree() {
    let mut all = String::new();
    for Case { name, bytes, entries, offsets, unfinished } in cases() {
        let home = Home::new();
        plant(&home, "--p--", "s.jsonl", &bytes);
        let before = tree(&root(&home));
        let verify = look(&home, &["sessions", "verify", ID]).output();
        let sound = offsets.is_empty() && !unfinished;
        all += &format!("# {name}\n{}", verify.out().replace(&root(&home).display().to_string(), "[root]"));
        let told = json(&look(&home, &["sessions", "verify", ID, "--json"]).output());
        let named: Vec<u64> =
            told["files"][0]["damage"].as_array().unwrap().iter().map(|d| d["offset"].as_u64().unwrap()).collect();
        assert_eq!(named, offsets.iter().map(|off| *off as u64).collect::<Vec<_>>(), "{name}: {told:#}");
        assert_eq!(told["files"][0]["entries"], entries, "{name}: {told:#}");
        assert_eq!((&told["sound"], &told["files"][0]["unfinished"]), (&json!(sound), &json!(unfinished)), "{name}");
        assert_eq!(verify.code(), Some(i32::from(!sound)), "{name}: {verify}");
        for off in &offsets {
            assert!(verify.out().contains(&off.to_string()), "{name}: {off} is not named: {verify}");
        }
        let show = json(&look(&home, &["sessions", "show", ID, "--json"]).output().ok());
        assert_eq!(show["entries"], entries, "{name}");
        let list = json(&look(&home, &["sessions", "list", "--json"]).output().ok());
        assert_eq!(list["sessions"][0]["messages"], entries, "{name}: {list:#}");
        assert_eq!(list["sessions"][0]["damaged"], show["damage"].as_array().unwrap().len(), "{name}");
        // The branch that was not hit is whole.
        let texts: Vec<&Value> =
            show["messages"].as_array().unwrap().iter().map(|m| &m["content"][0]["text"]).collect();
        assert_eq!(texts, ["첫 물음", "첫 대답", "둘째 물음", "둘째 대답"], "{name}");
        let context = json(&look(&home, &["context", "show", ID, "--json"]).output().ok());
        assert_eq!(context["messages"], show["messages"], "{name}");
        assert_eq!(tree(&root(&home)), before, "{name}: a look changed something");
    }
    insta::assert_snapshot!(all);
}

#[test]
fn a_damaged_session_goes_on_and_says_what_was_mended() {
    let mut all = String::new();
    for Case { name, bytes, entries, unfinished, .. } in cases() {
        let home = Home::new();
        let file = plant(&home, "--p--", "s.jsonl", &bytes);
        let stub = stub([text("이어서")]);
        let out = ask(&home, &stub, "계속").args(["--resume", ID]).output().ok();
        assert_eq!(out.out(), "이어서\n", "{name}");
        all += &format!("# {name}\n{}", out.err().replace(&root(&home).display().to_string(), "[root]"));
        // All that was there still is, in its place: the watch of the home has seen it grow only.
        let now = std::fs::read(&file).unwrap();
        let kept = bytes.iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
        assert!(now.starts_with(&bytes[..kept]), "{name}");
        if unfinished {
            let torn = std::fs::read(file.with_file_name("s.jsonl.torn")).unwrap();
            assert!(torn.windows(bytes.len() - kept).any(|part| part == &bytes[kept..]), "{name}: the tail is kept");
        }
        let told = json(&look(&home, &["sessions", "verify", ID, "--json"]).output());
        assert_eq!(told["files"][0]["entries"], entries + 3, "settings, prompt, answer: {name}: {told:#}");
        assert_eq!(told["files"][0]["unfinished"], false, "{name}");
        let sent = stub.requests()[0].json()["messages"].as_array().unwrap().len();
        assert_eq!(sent, 5, "{name}: the model hears the whole branch");
    }
    insta::assert_snapshot!(all);
}

#[test]
fn a_file_that_is_no_session_is_left_as_it_is() {
    let mut all = String::new();
    for (name, bytes) in [
        ("foreign", &b"{\"hello\":1}\n"[..]),
        ("empty", b""),
        ("half a header", b"{\"type\":\"session\",\"ver"),
        ("binary", b"\0\0\0\0\n"),
        ("future", b"{\"type\":\"session\",\"version\":99,\"id\":\"s-1\",\"timestamp\":\"2026-06-05T07:18:54.123Z\",\"cwd\":\"/p\"}\n"),
    ] {
        let home = Home::new();
        let file = plant(&home, "--p--", "s.jsonl", bytes);
        let path = file.to_str().unwrap();
        let before = tree(&root(&home));
        let stub = stub([text("x")]);
        for args in [&["sessions", "show", path][..], &["sessions", "verify", path], &["context", "show", path]] {
            let out = look(&home, args).output();
            assert_eq!(out.code(), Some(1), "{name}: {out}");
            all += &format!("# {name}: {}\n{}{}", args[..2].join(" "), out.out(), out.err()).replace(&root(&home).display().to_string(), "[root]");
        }
        let out = ask(&home, &stub, "x").args(["--resume", path]).output();
        assert_eq!(out.code(), Some(1), "{name}: {out}");
        all += &out.err().replace(&root(&home).display().to_string(), "[root]");
        assert_eq!(tree(&root(&home)), before, "{name}");
        assert!(stub.requests().is_empty());
    }
    insta::assert_snapshot!(all);
}

/// Every kind of damage somewhere in a session, as each command sees it.
#[test]
fn each_kind_of_damage_is_told_alike_by_every_command() {
    let sound = Sound::small();
    let random = SeededIds::new(29);
    let behind_header = sound.records[1].span.start;
    let bytes = AT_BYTES
        .iter()
        .map(|(_, damage)| damage(&sound, behind_header + random.next() as usize % (sound.len() - behind_header)));
    let lines =
        AT_LINES.iter().map(|(_, damage)| damage(&sound, 1 + random.next() as usize % (sound.records.len() - 1)));
    let header = AT_BYTES.iter().step_by(5).map(|(_, damage)| damage(&sound, random.next() as usize % behind_header));
    let (mut opened, mut refused) = (0, 0);
    for damaged in bytes.chain(lines).chain(header) {
        let home = Home::new();
        let file = plant(&home, "--p--", "s.jsonl", &damaged.bytes);
        let path = file.to_str().unwrap();
        let before = tree(&root(&home));
        let verify = look(&home, &["sessions", "verify", path, "--json"]).output();
        let verified = json(&verify)["files"][0].clone();
        let list = json(&look(&home, &["sessions", "list", "--json"]).output().ok());
        let show = look(&home, &["sessions", "show", path, "--json"]).output();
        assert_eq!(tree(&root(&home)), before, "{damaged}: a look changed something");
        if !verified["unreadable"].is_null() {
            refused += 1;
            assert_eq!((verify.code(), show.code()), (Some(1), Some(1)), "{damaged}: {show}");
            assert_eq!(list["unreadable"][0]["path"], path, "{damaged}: {list:#}");
            let stub = stub([text("x")]);
            assert_eq!(ask(&home, &stub, "x").args(["--resume", path]).output().code(), Some(1), "{damaged}");
            assert_eq!(tree(&root(&home)), before, "{damaged}: a refusal changed something");
            continue;
        }
        opened += 1;
        let show = json(&show.ok());
        let places = |damage: &Value| -> Vec<u64> {
            damage.as_array().unwrap().iter().map(|damage| damage["offset"].as_u64().unwrap()).collect()
        };
        let (told, shown) = (places(&verified["damage"]), places(&show["damage"]));
        assert_eq!(verified["entries"], show["entries"], "{damaged}");
        assert!(shown.iter().all(|place| told.contains(place)), "{damaged}: {told:?} {shown:?}");
        assert_eq!(list["sessions"][0]["damaged"], shown.len(), "{damaged}: {list:#}");
        assert_eq!(list["sessions"][0]["id"], show["id"], "{damaged}");
        let unfinished = verified["unfinished"] == true;
        assert_eq!(verify.code(), Some(i32::from(unfinished || !told.is_empty())), "{damaged}: {verified:#}");

        // It goes on: settings, prompt, answer; and a last record without its line feed, if there is one.
        let stub = stub([text("이어서")]);
        assert_eq!(ask(&home, &stub, "계속").args(["--resume", path]).output().ok().out(), "이어서\n", "{damaged}");
        let after = json(&look(&home, &["sessions", "verify", path, "--json"]).output())["files"][0].clone();
        let (was, is) = (verified["entries"].as_u64().unwrap(), after["entries"].as_u64().unwrap());
        assert!((was + 3..=was + 3 + u64::from(unfinished)).contains(&is), "{damaged}: {was} entries, then {is}");
        assert_eq!(places(&after["damage"]), told, "{damaged}: {after:#}");
        let again = json(&look(&home, &["sessions", "show", path, "--json"]).output().ok());
        let last = again["messages"].as_array().unwrap().last().unwrap().clone();
        assert_eq!(last["content"][0]["text"], "이어서", "{damaged}");
    }
    assert!(opened > 40 && refused > 0, "{opened} opened, {refused} refused");
}

/// gjc with so many kilobytes of address space.
fn within<'h>(home: &'h Home, agent: &std::path::Path, kilobytes: u32, args: &[&str]) -> testkit::harness::Run<'h> {
    home.run("sh")
        .args(["-c", &format!("ulimit -v {kilobytes} && exec \"$@\""), "sh", env!("CARGO_BIN_EXE_gjc")])
        .args(args)
        .env("GJC_CODING_AGENT_DIR", agent)
}

/// A big session in an agent folder of its own: the watch of the home would hold it in memory.
fn big(agent: &std::path::Path, write: impl FnOnce(&mut std::fs::File)) -> String {
    let bucket = agent.join("sessions/--p--");
    std::fs::create_dir_all(&bucket).unwrap();
    let path = bucket.join("big.jsonl");
    let mut file = std::fs::File::create(&path).unwrap();
    file.write_all(header(ID, "/p").as_bytes()).unwrap();
    write(&mut file);
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_session_of_500_mb_is_listed_and_shown_within_300_mb() {
    let (home, agent) = (Home::new(), tempfile::tempdir().unwrap());
    let path = big(agent.path(), |file| {
        // Nearly all of it lies on a branch that was left.
        file.write_all((user("0000000a", None, "첫 물음") + &said("0000000b", "0000000a", "첫 대답")).as_bytes())
            .unwrap();
        let long = "가나다라 ".repeat(77_000);
        for index in 0..500 {
            file.write_all(said(&format!("{:08x}", 0x100 + index), "0000000a", &long).as_bytes()).unwrap();
        }
        file.write_all(user("0000000c", Some("0000000b"), "둘째 물음").as_bytes()).unwrap();
    });
    for index in 0..200 {
        let session = header(&format!("s-{index}"), "/p") + &user("0000000a", None, "작은 것");
        std::fs::write(agent.path().join(format!("sessions/--p--/{index}.jsonl")), session).unwrap();
    }
    assert!(std::fs::metadata(&path).unwrap().len() > 480_000_000);
    let list = json(&within(&home, agent.path(), 300_000, &["sessions", "list", "--json"]).output().ok());
    assert_eq!(list["sessions"].as_array().unwrap().len(), 201);
    let show = json(&within(&home, agent.path(), 300_000, &["sessions", "show", &path, "--json"]).output().ok());
    assert_eq!((&show["entries"], show["messages"].as_array().unwrap().len()), (&json!(503), 3));
    let verify = within(&home, agent.path(), 300_000, &["sessions", "verify", &path]).output();
    assert!(verify.out().ends_with("503 entries, sound\n"), "{verify}");
}

#[test]
fn a_hole_of_2_gb_in_a_session_costs_no_memory() {
    let (home, agent) = (Home::new(), tempfile::tempdir().unwrap());
    let path = big(agent.path(), |file| {
        file.write_all(user("0000000a", None, "첫 물음").as_bytes()).unwrap();
        let end = file.stream_position().unwrap() + (2 << 30);
        file.set_len(end).unwrap();
        file.seek(std::io::SeekFrom::Start(end)).unwrap();
        file.write_all(("\n".to_owned() + &said("0000000b", "0000000a", "첫 대답")).as_bytes()).unwrap();
    });
    // The hole is longer than a line may be; it is passed over, not held.
    let show = within(&home, agent.path(), 300_000, &["sessions", "show", &path, "--json"]).output();
    let show = json(&show.ok());
    assert_eq!((&show["entries"], show["messages"].as_array().unwrap().len()), (&json!(2), 2));
    assert_eq!(show["damage"].as_array().unwrap().len(), 1, "{show:#}");
}
