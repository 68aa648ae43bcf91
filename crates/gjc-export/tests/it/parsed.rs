//! What a parser of HTML finds in a page.

use crate::kit::{Kit, answer};
use gjc_export::Piece;
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts};
use serde_json::{Value, json};
use std::cell::RefCell;

/// The tags of a page in order, each with its attributes and the text that follows it.
struct Found {
    name: String,
    attributes: Vec<(String, String)>,
    text: String,
}

#[derive(Default)]
struct Sink {
    found: RefCell<Vec<Found>>,
    closed: RefCell<bool>,
    comments: RefCell<usize>,
}

impl TokenSink for Sink {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        match token {
            Token::TagToken(Tag { kind: TagKind::StartTag, name, attrs, .. }) => {
                let attributes = attrs.iter().map(|one| (one.name.local.to_string(), one.value.to_string())).collect();
                let raw = match &*name {
                    "script" => Some(RawKind::ScriptData),
                    "style" | "noscript" => Some(RawKind::Rawtext),
                    "title" => Some(RawKind::Rcdata),
                    _ => None,
                };
                self.found.borrow_mut().push(Found { name: name.to_string(), attributes, text: String::new() });
                *self.closed.borrow_mut() = false;
                return raw.map_or(TokenSinkResult::Continue, TokenSinkResult::RawData);
            }
            Token::TagToken(_) => *self.closed.borrow_mut() = true,
            Token::CharacterTokens(text) if !*self.closed.borrow() => {
                if let Some(last) = self.found.borrow_mut().last_mut() {
                    last.text.push_str(&text);
                }
            }
            Token::CommentToken(_) => *self.comments.borrow_mut() += 1,
            _ => {}
        }
        TokenSinkResult::Continue
    }
}

fn parse(page: &str) -> Vec<Found> {
    let input = BufferQueue::default();
    input.push_back(StrTendril::from_slice(page));
    let tokenizer = Tokenizer::new(Sink::default(), TokenizerOpts::default());
    let _ = tokenizer.feed(&input);
    tokenizer.end();
    assert_eq!(*tokenizer.sink.comments.borrow(), 0);
    tokenizer.sink.found.take()
}

/// The elements of the data, parsed as one whole.
fn data(found: &[Found]) -> Vec<Value> {
    let data = found.iter().find(|one| one.attributes.iter().any(|(_, value)| value == "session")).unwrap();
    let whole: Vec<Value> = serde_json::from_str(&data.text).unwrap();
    // The page reads it line by line: that has to be the same.
    let lines: Vec<&str> = data.text.lines().collect();
    let by_line: Vec<Value> = lines[1..lines.len() - 1]
        .iter()
        .map(|line| serde_json::from_str(line.strip_suffix(',').unwrap_or(line)).unwrap())
        .collect();
    assert_eq!(whole, by_line);
    whole
}

pub(crate) const HOSTILE: &[&str] = &[
    "</script><script>window.pwned = 1</script>",
    "<!--<script>window.pwned = 2</script>",
    "]]></style></title><img src=x onerror='window.pwned = 3'>",
    "<svg onload=\"window.pwned = 4\"><script>window.pwned = 5</script></svg>",
    "[x](http://e 'a\" onmouseover=\"window.pwned=6') ![a\" onerror=\"window.pwned=7](u)",
    "line\u{2028}separators\u{2029}here",
    "\u{202e}txet desrever\u{2066} \u{200b}zero\u{feff}width \u{e0041}tag",
    "\u{1b}[31mred\u{1b}[0m \u{1b}]8;;http://127.0.0.1/\u{7}link\u{1b}]8;;\u{7} \u{7}\u{8}",
    "한글 NFD: \u{1112}\u{1161}\u{11ab}\u{1100}\u{1173}\u{11af} NFC: 한글",
    "&lt;script&gt; &#60; &amp; \" ' ` \\u003c",
];

/// K44, K45: whatever is said, there is one style, one script, one piece of data, and no attribute of anybody else's.
#[test]
fn a_page_has_one_script_one_style_one_piece_of_data_and_nothing_of_the_session_as_markup() {
    let mut kit = Kit::new();
    let plain = parse(&{
        let mut kit = Kit::new();
        kit.user("hello");
        kit.page()
    });
    for text in HOSTILE {
        kit.user(text);
        kit.answer(text);
        kit.call(text, &json!({(*text): text, "__proto__": {"polluted": true}}), text);
    }
    kit.entry(json!({"type": "session_info", "name": HOSTILE.concat()}));
    kit.entry(json!({"type": HOSTILE[0], "customType": HOSTILE[1], "x": HOSTILE[2]}));
    let page = kit.page();
    let found = parse(&page);
    let shape =
        |found: &[Found]| -> Vec<_> { found.iter().map(|one| (one.name.clone(), one.attributes.clone())).collect() };
    assert_eq!(shape(&found), shape(&plain), "tags and attributes do not depend on what is said");
    let names: Vec<&str> = found.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names.iter().filter(|name| **name == "script").count(), 2, "the data and the script");
    assert_eq!(names.iter().filter(|name| **name == "style").count(), 1);
    // Every text is there as it was.
    let data = data(&found);
    let said: Vec<&str> = data.iter().filter_map(|one| one["e"]["message"]["content"][0]["text"].as_str()).collect();
    for text in HOSTILE {
        assert_eq!(said.iter().filter(|one| *one == text).count(), 3, "{text:?}");
    }
}

/// The policy names exactly the script and the style that are there, and allows nothing else.
#[test]
fn the_policy_allows_our_script_and_our_style_and_no_network() {
    use base64::Engine;
    use sha2::Digest;
    let mut kit = Kit::new();
    kit.user("hello");
    let found = parse(&kit.page());
    let policy = found
        .iter()
        .find(|one| one.attributes.iter().any(|(_, value)| value == "Content-Security-Policy"))
        .and_then(|one| one.attributes.iter().find(|(name, _)| name == "content"))
        .map(|(_, value)| value.clone())
        .unwrap();
    let hash = |name: &str| {
        let text = found.iter().rfind(|one| one.name == name).map(|one| one.text.as_str()).unwrap();
        format!("'sha256-{}'", base64::prelude::BASE64_STANDARD.encode(sha2::Sha256::digest(text)))
    };
    let rules: Vec<&str> = policy.split("; ").collect();
    assert_eq!(rules[0], "default-src 'none'");
    assert_eq!(rules[1], format!("script-src {}", hash("script")));
    assert_eq!(rules[2], format!("style-src {}", hash("style")));
    assert_eq!(rules[3..], ["img-src data:", "base-uri 'none'", "form-action 'none'"]);
}

/// All entries, all branches, the leaf, what is damaged, what is unknown.
#[test]
fn the_data_holds_every_entry_of_every_branch_the_leaf_and_what_is_damaged() {
    let mut kit = Kit::new();
    let first = kit.user("처음");
    kit.answer("left behind");
    kit.go_on_from(&first);
    kit.entry(json!({"type": "brand_new", "what": {"is": ["this"]}}));
    kit.line("not a record")
        .line(r#"{"type":"message","id":"0000beef","parentId":"00000001","timestamp":"x","message":7}"#);
    let last = kit.answer("the active one");
    let found = parse(&kit.page());
    let data = data(&found);
    let entries: Vec<&Value> = data.iter().filter(|one| one.get("p").is_some()).collect();
    let parents: Vec<Option<u64>> = entries.iter().map(|one| one["p"].as_u64()).collect();
    assert_eq!(parents, [None, Some(0), Some(0), Some(0), Some(2)]);
    assert_eq!(entries[2]["e"]["what"], json!({"is": ["this"]}), "an unknown type is kept as data");
    assert_eq!(entries[3]["id"], "0000beef");
    assert!(entries[3]["lost"].as_str().unwrap().contains("cannot be read"), "{}", entries[3]);
    assert_eq!(entries[4]["e"]["id"], last);
    assert_eq!((data[0]["head"]["leaf"].as_u64(), data[0]["head"]["entries"].as_u64()), (Some(4), Some(5)));
    assert_eq!(data[1]["header"]["cwd"], "/home/ann/프로젝트");
    assert_eq!(data.iter().filter(|one| one.get("damage").is_some()).count(), 1, "the line that is no record");
}

/// A picture that many entries show is in the page once; one that is gone is told.
#[test]
fn blobs_are_in_the_page_once_and_missing_ones_are_told() {
    let mut kit = Kit::new();
    let picture = kit.blob(b"\x89PNG not really");
    let system = kit.blob("너는 도우미다 </script>".as_bytes());
    let tools = kit.blob(b"[]");
    let gone = format!("blob:sha256:{}", "0".repeat(64));
    kit.entry(json!({"type": "custom", "customType": "gjc.env", "data": {"system": system, "tools": tools,
        "model": {"provider": "p", "id": "m", "api": "a"}, "thinking": "off", "params": {"maxTokens": 1}, "renderer": 1}}));
    for data in [&picture, &picture, &gone] {
        kit.entry(answer(&json!([{"type": "image", "data": data, "mimeType": "image/png"}])));
    }
    let data = data(&parse(&kit.page()));
    let blobs: Vec<&Value> = data.iter().filter(|one| one.get("blob").is_some()).collect();
    assert_eq!(blobs.len(), 4);
    assert_eq!(blobs[0]["text"], "너는 도우미다 </script>");
    assert_eq!(blobs[2]["base64"], "iVBORyBub3QgcmVhbGx5");
    assert!(blobs[3]["missing"].is_string());
}

/// K47: a session with large children stays as small as it is.
#[test]
fn children_are_named_and_not_held() {
    let mut kit = Kit::new();
    kit.user("ten tasks");
    let folder = kit.file().with_extension("");
    std::fs::create_dir_all(&folder).unwrap();
    let alone = kit.page().len();
    for n in 0..10 {
        std::fs::write(folder.join(format!("작업-{n}.jsonl")), vec![b'x'; 400_000]).unwrap();
    }
    let page = kit.page();
    assert!(page.len() < alone + 1000, "{} bytes more", page.len() - alone);
    let named = data(&parse(&page)).iter().filter(|one| one["bytes"] == 400_000).count();
    assert_eq!(named, 10);
}

/// Whoever shares a page takes secrets out of everything that is text in it, its name included.
#[test]
fn a_mask_sees_every_piece_of_the_page() {
    let mut kit = Kit::new();
    let system = kit.blob(b"the key is SECRET");
    let tools = kit.blob(b"[]");
    kit.entry(json!({"type": "custom", "customType": "gjc.env", "data": {"system": system, "tools": tools,
        "model": {"provider": "p", "id": "m", "api": "a"}, "thinking": "off", "params": {"maxTokens": 1}, "renderer": 1}}));
    kit.user("my SECRET");
    kit.entry(json!({"type": "unknown SECRET"}));
    let mask = |json: Vec<u8>, _: Piece| String::from_utf8(json).unwrap().replace("SECRET", "[…]").into_bytes();
    let page = kit.page_with(Some(&mask));
    assert!(!page.contains("SECRET"));
    assert!(page.contains("<title>my […]</title>"));
}

/// A secret that begins within the name's length and ends behind it is masked before the name is cut, and no mask is asked
/// to count it twice.
#[test]
fn the_name_is_cut_after_it_was_masked() {
    let secret = format!("SECRET{}", "x".repeat(60));
    let words = format!("{} {secret} 뒤의 글", "가".repeat(60));
    let counted = std::cell::Cell::new(0);
    let mask = |json: Vec<u8>, piece: Piece| {
        let text = String::from_utf8(json).unwrap();
        if piece == Piece::Session {
            counted.set(counted.get() + text.matches(&secret).count());
        }
        text.replace(&secret, "[…]").into_bytes()
    };
    let mut kit = Kit::new();
    kit.user(&words);
    let page = kit.page_with(Some(&mask));
    assert!(!page.contains("SECRET"), "{page}");
    assert!(page.contains(&format!("<title>{} […] 뒤의 글</title>", "가".repeat(60))));
    assert_eq!(counted.get(), 1);
    kit.entry(json!({"type": "session_info", "name": words}));
    assert!(!kit.page_with(Some(&mask)).contains("SECRET"));
    // One that goes over lines, of which the name is only the first.
    let mut kit = Kit::new();
    kit.user("\n  begin SEC\nRET end\nmore");
    let over = |json: Vec<u8>, _: Piece| String::from_utf8(json).unwrap().replace("SEC\\nRET", "[…]").into_bytes();
    assert!(kit.page_with(Some(&over)).contains("<title>begin […] end</title>"));
}

/// The label of the session is in the head of its page, where a program finds it without a browser.
#[test]
fn the_head_bears_the_label_of_the_session() {
    let mut kit = Kit::new();
    kit.user("public");
    assert!(kit.page().contains("<meta name=\"gjc-label\" content=\"PUBLIC trusted\">"));
    kit.entry(json!({"gjcLabel": {"l": "CONFIDENTIAL", "t": false}, "message": {"role": "user", "content": "급여"}}));
    let page = kit.page();
    assert!(page.contains("<meta name=\"gjc-label\" content=\"CONFIDENTIAL untrusted\">"));
    let data = data(&parse(&page));
    assert_eq!((&data[0]["head"]["level"], &data[0]["head"]["trusted"]), (&json!("CONFIDENTIAL"), &json!(false)));

    // One that cannot be read counts as the highest.
    kit.entry(json!({"gjcLabel": {"l": "SECRETISH"}, "message": {"role": "user", "content": "x"}}));
    assert!(kit.page().contains("<meta name=\"gjc-label\" content=\"RESTRICTED "));
}
