//! What a browser makes of a page: every branch, search, pictures, links; and that nothing of a session runs or is loaded.

use crate::browser::Browser;
use crate::kit::{Kit, answer};
use crate::parsed::HOSTILE;
use serde_json::{Value, json};
use std::net::TcpListener;
use std::path::PathBuf;

/// Waits for what the page does a moment later.
const UNTIL: &str = "const until = async (made) => { for (;;) { const value = made(); if (value) return value; \
                     await new Promise(requestAnimationFrame); } };";

const PICTURE: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// Eight stripes of colour, 160 × 90.
const STRIPES: &str = "iVBORw0KGgoAAAANSUhEUgAAAKAAAABaCAMAAAAIGK1gAAAAGFBMVEUoWshBZLRabqBzeIyMgniljGS+llDXoDwuPJEhAAAAYElEQVR42u3OQQGAMBDAsBsM5t8xBiqAR6IgM2GFK9xhhye84YQRFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQU/E/wAyLsxOHsif7dAAAAAElFTkSuQmCC";

fn write(kit: &Kit) -> PathBuf {
    let file = kit.dir.path().join("page.html");
    std::fs::write(&file, kit.page()).unwrap();
    file
}

/// The words of the entry that is looked at after its address was asked for.
#[track_caller]
fn words_at(browser: &mut Browser, id: &str) -> Value {
    browser.value(&format!(
        "(async () => {{ {UNTIL} location.hash = '{id}'; \
         return (await until(() => document.querySelector('article[data-id=\"{id}\"]'))).innerText; }})()"
    ))
}

/// Seed: the page has the whole tree. K43: the active path is what stands there, what was left is marked.
#[test]
fn every_branch_is_shown_and_the_ones_that_were_left_say_so() {
    let Some(mut browser) = Browser::start() else { return };
    let mut kit = Kit::new();
    let first = kit.user("처음 질문");
    let mut ends = Vec::new();
    let mut all = vec![(first.clone(), "처음 질문".to_owned())];
    for branch in 0..3 {
        kit.go_on_from(&first);
        let here = kit.answer(&format!("대답 {branch}"));
        all.push((here.clone(), format!("대답 {branch}")));
        for twig in 0..2 {
            kit.go_on_from(&here);
            let (asked, said) = (format!("물음 {branch}.{twig}"), format!("끝 {branch}.{twig}"));
            all.push((kit.user(&asked), asked));
            let end = kit.answer(&said);
            all.push((end.clone(), said));
            ends.push(end);
        }
    }
    browser.open(&write(&kit));
    // What stands there at first is the active path, from its root to its leaf, and nothing else.
    let shown = browser.value("[...document.querySelectorAll('article .text')].map((one) => one.innerText)");
    assert_eq!(shown, json!(["처음 질문", "대답 2", "물음 2.1", "끝 2.1"]));
    assert_eq!(browser.value("document.querySelector('.banner').hidden"), true);
    let bars = "[...document.querySelectorAll('.fork')].map((one) => one.innerText.replace(/\\s+/g, ' '))";
    assert_eq!(browser.value(bars), json!(["‹ Branch 3 of 3 › the active one", "‹ Branch 2 of 2 › the active one"]));
    // All of them are listed; those that are not looked at are told apart.
    let rows = browser.value("document.querySelectorAll('.row').length");
    assert_eq!(rows, all.len(), "every entry of every branch has its row");
    assert_eq!(browser.value("document.querySelectorAll('.row.on').length"), 4);
    assert_eq!(browser.value("document.querySelectorAll('.row.off').length"), all.len() - 4);
    // Each can be gone to by its address.
    for (id, words) in &all {
        let told = words_at(&mut browser, id);
        assert!(told.as_str().unwrap().contains(words), "{id}: {told}");
    }
    // And by the arrows: round through the branches of the first answer, then back.
    browser.value(&format!("location.hash = '{}'", ends[5]));
    let mut seen = Vec::new();
    for _ in 0..3 {
        browser.value("document.querySelector('.fork .step:last-of-type').click()");
        let now = browser.value("[...document.querySelectorAll('article .text')].map((one) => one.innerText)");
        seen.push(now[1].as_str().unwrap().to_owned());
        let left = browser.value("!document.querySelector('.banner').hidden");
        assert_eq!(left, now[1] != "대답 2", "a branch that was left says so: {now}");
    }
    assert_eq!(seen, ["대답 0", "대답 1", "대답 2"]);
    browser.value("document.querySelector('.fork .step').click()");
    assert_eq!(browser.value("document.querySelector('.fork').classList.contains('active')"), false);
    browser.value("document.querySelector('.banner button').click()");
    let shown = browser.value("[...document.querySelectorAll('article .text')].at(-1).innerText");
    assert_eq!(shown, "끝 2.1", "one press leads back to the active branch");
    // A row leads to its branch as well.
    browser.value("document.querySelector('.row.off').click()");
    assert_eq!(browser.value("document.querySelector('.banner').hidden"), false);
}

#[test]
fn search_finds_in_all_branches_however_hangul_is_composed() {
    let Some(mut browser) = Browser::start() else { return };
    let mut kit = Kit::new();
    let first = kit.user("시작");
    // Decomposed, as a name of a file on some systems is.
    kit.answer("\u{1112}\u{1161}\u{11ab}\u{1100}\u{1173}\u{11af} in a branch that was left");
    kit.go_on_from(&first);
    kit.call("bash", &json!({"command": "grep 한글 *"}), "found: 한글.txt");
    let last = kit.answer("nothing of it here");
    browser.open(&write(&kit));
    let search = |browser: &mut Browser, words: &str| {
        let words = json!(words);
        browser.value(&format!(
            "(async () => {{ {UNTIL} const field = document.querySelector('.search'); const count = document.querySelector('.count'); \
             count.textContent = ''; field.value = {words}; field.dispatchEvent(new Event('input')); \
             return until(() => count.textContent && !count.textContent.includes('…') && count.textContent); }})()"
        ))
    };
    assert_eq!(search(&mut browser, "한글"), "3 found");
    assert_eq!(browser.value("document.querySelectorAll('.row').length"), 3);
    assert_eq!(search(&mut browser, "LEFT"), "1 found");
    browser.value("document.querySelector('.search').focus()");
    browser.press("Enter", "Enter");
    assert_eq!(browser.value("document.querySelector('.banner').hidden"), false, "Enter leads to the other branch");
    assert_eq!(search(&mut browser, "no such words"), "0 found");
    browser.press("Escape", "Escape");
    assert!(browser.value("document.querySelectorAll('.row').length").as_u64() > Some(2), "all are listed again");
    // By the place of the key: under a Korean layout J says ㅓ.
    words_at(&mut browser, &first);
    browser.press("KeyJ", "ㅓ");
    assert!(browser.value("location.hash") != format!("#{first}"));
    assert!(words_at(&mut browser, &last).as_str().unwrap().contains("nothing of it"));
}

#[test]
fn pictures_are_shown_and_what_could_hold_more_than_pixels_is_named() {
    let Some(mut browser) = Browser::start() else { return };
    use base64::Engine;
    let mut kit = Kit::new();
    let pixels = base64::prelude::BASE64_STANDARD.decode(PICTURE).unwrap();
    let kept = kit.blob(&pixels);
    let gone = format!("blob:sha256:{}", "0".repeat(64));
    let svg = base64::prelude::BASE64_STANDARD.encode("<svg xmlns='http://www.w3.org/2000/svg' onload='pwned=1'/>");
    for (data, kind) in [(kept.as_str(), "image/png"), (PICTURE, "image/png"), (&kept, "image/png")] {
        kit.entry(answer(&json!([{"type": "image", "data": data, "mimeType": kind}])));
    }
    for (data, kind) in
        [(gone.as_str(), "image/png"), (&svg, "image/svg+xml"), ("no base64\"", "image/png"), (&svg, "text/html")]
    {
        kit.entry(json!({"message": {"role": "user", "content": [{"type": "image", "data": data, "mimeType": kind}]}}));
    }
    browser.open(&write(&kit));
    let widths = browser.value(
        "Promise.all([...document.images].map(async (one) => { one.loading = 'eager'; await one.decode(); return one.naturalWidth; }))",
    );
    assert_eq!(widths, json!([1, 1, 1]), "the kept ones and the one in the file");
    let told = browser.value("[...document.querySelectorAll('article .aside')].map((one) => one.innerText).filter((one) => one.startsWith('['))");
    let told = told.as_array().unwrap();
    assert_eq!(told.len(), 4, "{told:?}");
    assert!(told[1].as_str().unwrap().contains("image/svg+xml"), "{told:?}");
}

/// K47: a subagent's session is linked, and its own page opens from there once it was made.
#[test]
fn children_are_linked_and_their_pages_open() {
    let Some(mut browser) = Browser::start() else { return };
    let mut kit = Kit::new();
    kit.user("나누어 한다");
    let folder = kit.file().with_extension("");
    std::fs::create_dir_all(&folder).unwrap();
    let child = folder.join("작업 #1%20.jsonl");
    std::fs::write(&child, vec![b'x'; 400_000]).unwrap();
    let mut other = Kit::new();
    other.answer("the child's own words");
    std::fs::write(kit.dir.path().join(gjc_export::default_name(&child)), other.page()).unwrap();
    browser.open(&write(&kit));
    let list = browser.value(&format!(
        "(async () => {{ {UNTIL} const card = [...document.querySelectorAll('.head .card')].find((one) => one.innerText.includes('Subagents')); \
         card.open = true; return (await until(() => card.querySelector('.children'))).innerText; }})()"
    ));
    assert!(
        list.as_str().unwrap().contains("작업 #1%20.jsonl") && list.as_str().unwrap().contains("390.6 KB"),
        "{list}"
    );
    let address = browser.value("document.querySelector('.children a').href");
    browser.open_address(address.as_str().unwrap());
    assert_eq!(browser.value("document.querySelector('article .text').innerText"), "the child's own words");
}

/// Seed: system prompt and descriptions of the tools, as the model had them.
#[test]
fn the_system_prompt_and_the_tools_are_on_the_page() {
    let Some(mut browser) = Browser::start() else { return };
    let mut kit = Kit::new();
    environment(&mut kit, "너는 <b>도우미</b>다", "파일을 읽는다 </script>");
    kit.user("안녕");
    browser.open(&write(&kit));
    browser.value("document.querySelectorAll('.head details').forEach((one) => (one.open = true))");
    let head = browser.value(&format!(
        "(async () => {{ {UNTIL} const head = document.querySelector('.head'); await until(() => head.querySelectorAll('.inside').length >= 2); \
         head.querySelectorAll('details').forEach((one) => (one.open = true)); \
         await until(() => head.innerText.includes('required')); return head.innerText; }})()"
    ));
    let head = head.as_str().unwrap();
    for words in ["너는 <b>도우미</b>다", "read", "파일을 읽는다 </script>", "\"required\""] {
        assert!(head.contains(words), "{words:?} in {head}");
    }
}

fn environment(kit: &mut Kit, system: &str, description: &str) {
    let system = kit.blob(system.as_bytes());
    let tools =
        json!([{"name": "read", "description": description, "inputSchema": {"type": "object", "required": ["path"]}}]);
    let tools = kit.blob(tools.to_string().as_bytes());
    kit.entry(json!({"type": "custom", "customType": "gjc.env", "data": {"system": system, "tools": tools,
        "model": {"provider": "anthropic", "id": "claude-x", "api": "anthropic-messages"}, "thinking": "off",
        "params": {"maxTokens": 1}, "renderer": 1}}));
}

/// What is damaged or unknown is on the page as what it is, and the rest of the page stands.
#[test]
fn damage_and_unknown_entries_are_shown_as_what_they_are() {
    let Some(mut browser) = Browser::start() else { return };
    let mut kit = Kit::new();
    kit.user("처음");
    kit.line("no record at all");
    let strange = kit.entry(json!({"type": "brand_new", "what": {"is": ["이것"]}}));
    kit.entry(json!({"message": {"role": "user", "content": {"not": "a list"}}}));
    kit.entry(json!({"message": {"role": "assistant", "content": [null, 7, "x", {"type": "toolCall", "arguments": []}], "usage": "none"}}));
    let last = kit.answer("끝");
    browser.open(&write(&kit));
    let head = browser.value("document.querySelector('.head').innerText");
    assert!(head.as_str().unwrap().contains("Damaged in one place"), "{head}");
    assert!(words_at(&mut browser, &last).as_str().unwrap().contains('끝'));
    let strange = browser.value(&format!(
        "(async () => {{ {UNTIL} const card = document.querySelector('article[data-id=\"{strange}\"] details'); card.open = true; \
         return (await until(() => card.querySelector('pre'))).innerText; }})()"
    ));
    assert!(strange.as_str().unwrap().contains("이것"), "{strange}");
    assert!(browser.told("Runtime.exceptionThrown").is_empty());
}

/// A long session makes only what is near the window.
#[test]
fn a_long_session_is_built_where_it_is_looked_at() {
    let Some(mut browser) = Browser::start() else { return };
    let mut kit = Kit::new();
    for n in 0..3000 {
        kit.user(&format!("질문 {n}"));
        kit.answer(&format!("대답 {n}"));
    }
    let last = kit.answer("the last one");
    browser.open(&write(&kit));
    assert!(browser.value("document.querySelectorAll('article').length").as_u64() < Some(400));
    assert!(browser.value("document.querySelectorAll('.row').length").as_u64() < Some(200));
    assert!(words_at(&mut browser, &last).as_str().unwrap().contains("the last one"));
}

/// The page speaks the reader's language.
#[test]
fn a_korean_reader_is_spoken_to_in_korean() {
    let Some(mut browser) = Browser::start() else { return };
    let mut kit = Kit::new();
    let first = kit.user("안녕");
    kit.answer("하나");
    kit.go_on_from(&first);
    kit.answer("둘");
    browser.language("ko-KR");
    browser.open(&write(&kit));
    assert_eq!(browser.value("document.documentElement.lang"), "ko");
    let page = browser.value("document.body.innerText");
    for words in ["사용자", "어시스턴트", "가지 2/2", "메시지", "폴더"] {
        assert!(page.as_str().unwrap().contains(words), "{words} in {page}");
    }
}

/// K44, K45: whatever a session says, nothing of it runs, and the browser asks for nothing but the page.
#[test]
fn nothing_of_a_session_runs_and_nothing_is_asked_for() {
    let Some(mut browser) = Browser::start() else { return };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let at = format!("http://{}", listener.local_addr().unwrap());
    let mut kit = Kit::new();
    let first = kit.user("start");
    let mut texts: Vec<String> = HOSTILE.iter().map(|&text| text.to_owned()).collect();
    texts.extend(addresses(&at));
    for text in &texts {
        let text = text.as_str();
        kit.user(text);
        kit.answer(text);
        kit.call(
            text,
            &json!({(text): text, "command": text, "path": text, "content": text, "__proto__": {"polluted": true}}),
            text,
        );
        kit.call("edit", &json!({"path": text, "oldText": text, "newText": format!("{text}\n{text}")}), text);
        kit.entry(answer(&json!([{"type": "thinking", "thinking": text}, {"type": text, "text": text},
            {"type": "image", "data": text, "mimeType": text}, {"type": "image", "data": text, "mimeType": "image/png"}])));
        kit.entry(json!({"type": "compaction", "summary": text, "firstKeptEntryId": text, "tokensBefore": text}));
        kit.entry(json!({"type": "custom_message", "customType": text, "content": text, "display": true}));
        kit.entry(json!({"type": "label", "targetId": first, "label": text}));
        kit.entry(json!({"type": text, "customType": text, "data": {(text): text}}));
        kit.entry(json!({"message": {"role": "bashExecution", "command": text, "output": text, "exitCode": text}}));
        kit.go_on_from(&first);
        kit.line(text.lines().next().unwrap());
    }
    environment(&mut kit, &texts.join("\n\n"), &texts.join("\n\n"));
    kit.entry(json!({"type": "session_info", "name": texts.join(" ")}));
    let folder = kit.file().with_extension("");
    std::fs::create_dir_all(&folder).unwrap();
    for (n, text) in texts.iter().enumerate() {
        let name: String = text.chars().filter(|c| !['/', '\0'].contains(c)).take(60).collect();
        std::fs::write(folder.join(format!("{n}{name}.jsonl")), "x").unwrap();
    }
    let file = write(&kit);
    browser.open(&file);
    let branches = browser
        .value("Number(document.querySelector('.fork .which').innerText.match(/of (\\d+)/)[1])")
        .as_u64()
        .unwrap();
    assert_eq!(branches, texts.len() as u64 + 1);
    // Every branch, everything in it opened, twice: formatted, and as it was written.
    let mut written = Vec::new();
    for _ in 0..2 {
        for _ in 0..branches {
            browser.value(OPEN_ALL);
            let strange = browser.value(STRANGE);
            assert_eq!(strange, json!([]), "elements, attributes or addresses that are not the page's own");
            browser.value("document.querySelector('.fork .step:last-of-type').click()");
        }
        browser.press("KeyM", "m");
        written.push(browser.value("document.querySelectorAll('.text.written').length > 0"));
    }
    assert_eq!(written, [true, false]);
    assert_eq!(browser.value("String(globalThis.pwned)"), "undefined");
    assert_eq!(browser.value("String({}.polluted)"), "undefined");
    let own = format!("file://{}", file.display());
    let asked = browser
        .told("Network.requestWillBeSent")
        .into_iter()
        .map(|one| one["request"]["url"].as_str().unwrap().to_owned());
    let asked: Vec<String> = asked.filter(|url| *url != own && !url.starts_with("data:image/")).collect();
    assert!(asked.is_empty(), "{asked:?}");
    for kind in [
        "Page.javascriptDialogOpening",
        "Runtime.exceptionThrown",
        "Page.windowOpen",
        "Page.frameAttached",
        "Audits.issueAdded",
        "Log.entryAdded",
    ] {
        assert!(browser.told(kind).is_empty(), "{kind}: {:?}", browser.told(kind));
    }
    assert!(listener.accept().is_err(), "nobody called");
    // The second wall: even if something got in as markup, it would neither run nor be loaded.
    browser.value(&format!(
        "(async () => {{ const div = document.createElement('div'); \
         div.innerHTML = `<img src='{at}/img'><img src=x onerror='pwned=1'><a id=go href='javascript:pwned=2'>x</a>\
         <svg onload='pwned=3'></svg><link rel=stylesheet href='{at}/css'><div style='background:url({at}/bg)'>x</div><video src='{at}/v'></video>`; \
         document.body.append(div); const script = document.createElement('script'); script.textContent = 'pwned=4'; document.body.append(script); \
         document.getElementById('go').click(); await fetch('{at}/fetch').catch(() => 0); try {{ new WebSocket('{at}'.replace('http', 'ws')) }} catch {{}} \
         navigator.sendBeacon('{at}/beacon'); await new Promise((done) => setTimeout(done, 300)); }})()"
    ));
    assert_eq!(browser.value("String(globalThis.pwned)"), "undefined");
    let called = listener.accept().ok().map(|(mut caller, _)| {
        caller.set_nonblocking(true).unwrap();
        let mut said = [0; 200];
        let got = std::io::Read::read(&mut caller, &mut said).unwrap_or(0);
        String::from_utf8_lossy(&said[..got]).into_owned()
    });
    assert_eq!(called, None, "the policy lets nothing out");
}

/// Opens what can be opened, all the way down.
const OPEN_ALL: &str = "(async () => { for (let round = 0; round < 4; round += 1) { \
    document.querySelectorAll('details').forEach((one) => (one.open = true)); \
    document.querySelectorAll('.chunk').forEach((one) => one.scrollIntoView()); \
    document.querySelectorAll('.more').forEach((one) => one.click()); \
    await new Promise(requestAnimationFrame); await new Promise((done) => setTimeout(done)); } })()";

/// What is in the page that its own script would not make.
const STRANGE: &str = "[...document.querySelectorAll('body *')].flatMap((one) => { \
    const tags = 'a article aside blockquote button code dd details div dl dt em footer h1 h3 h4 h5 h6 header hr img input li main nav noscript ol option output p pre s script section select span strong summary table tbody td th thead tr ul'; \
    const bad = []; \
    if (!tags.split(' ').includes(one.localName) || one.namespaceURI !== 'http://www.w3.org/1999/xhtml') bad.push(one.localName); \
    for (const { name, value } of one.attributes) { \
      const known = 'alt aria-label aria-level aria-pressed aria-selected class data-at data-chunk data-id data-results hidden href id loading name open placeholder rel role src start style tabindex target title type value'; \
      if (!known.split(' ').includes(name)) bad.push(name); \
      if (name === 'href' && !/^(https?:|mailto:|#|\\.\\/[^/]*$)/.test(value)) bad.push(value); \
      if (name === 'src' && !/^data:image\\/(png|jpeg|gif|webp);base64,/.test(value)) bad.push(value); \
    } \
    return bad; })";

/// Whatever would lead somewhere.
fn addresses(at: &str) -> Vec<String> {
    [
        "[go](javascript:window.pwned=8) [go](JaVaScRiPt:pwned=9) [go](java\tscript:pwned=10) <javascript:pwned=11>",
        "[go](data:text/html,<script>pwned=12</script>) ![p](data:image/svg+xml;base64,PHN2ZyBvbmxvYWQ9InB3bmVkPTEiLz4=)",
        "![pixel](AT/pixel.png) [![badge](AT/badge.svg)](AT/)",
        "<img src=\"AT/img\"><link rel=stylesheet href=AT/css><base href=AT/><meta http-equiv=refresh content=\"0;url=AT/\">",
        "<style>@import url(AT/style); body { background: url(AT/bg) }</style><div style=\"background:url(AT/div)\">x</div>",
        "<iframe srcdoc=\"<script>parent.pwned=13</script>\"></iframe><object data=AT/o></object><embed src=AT/e>",
        "<form action=AT/f><button>x</button></form><video src=AT/v autoplay></video><audio src=AT/a>",
        "```html\n</code></pre><script>pwned=14</script>\n```\n\n```\"><img src=x onerror=pwned=15>\nx\n```",
        "| a | b |\n|---|---|\n| <img src=x onerror=pwned=16> | [x](javascript:pwned=17) |",
        "[x](http://a\"onmouseover=pwned=18) [y](https://user:pass@host/'\"><svg/onload=pwned=19>) <https://x\"><b>",
        "{{constructor.constructor('pwned=20')()}} ${pwned=21} <%= pwned=22 %>",
        "AT/bare?q=1 \u{1b}]8;;AT/osc\u{7}link\u{1b}]8;;\u{7} \u{9b}31m [\u{202e}gnp.exe](AT/rtl)",
    ]
    .map(|text| text.replace("AT", at))
    .into()
}

/// How it looks, in a window and on a phone, light and dark: nothing is wider than the window, every word can be read. The
/// pictures are for people: they lie in `pages` of the tests' folder.
#[test]
fn the_page_fits_windows_and_phones_light_and_dark() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("pages");
    std::fs::create_dir_all(&folder).unwrap();
    let (kit, places) = sample();
    let file = write(&kit);
    for (device, width, height) in [("desktop", 1280, 900), ("phone", 390, 844)] {
        for (light, dark) in [("light", false), ("dark", true)] {
            browser.look(width, height, dark);
            browser.open(&file);
            let take = |name: &str, browser: &mut Browser| {
                browser.value("Promise.all(document.getAnimations().map((one) => one.finish()))");
                browser.picture(&folder.join(format!("{device}-{light}-{name}.png")));
            };
            take("0-head", &mut browser);
            browser.value(OPEN_ALL);
            for (name, id) in &places {
                words_at(&mut browser, id);
                let calls = format!(
                    "document.querySelectorAll('article[data-id=\"{id}\"] details').forEach((one) => (one.open = true))"
                );
                browser.value(&calls);
                browser.value(
                    "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))).then(() => null)",
                );
                take(name, &mut browser);
            }
            browser.value("document.querySelector('.bar .list').click()");
            take("9-tree", &mut browser);
            let wide = browser.value(
                "[...document.querySelectorAll('.page, .page *, .bar *')].filter((one) => !one.closest('pre, .table') && \
                 one.getBoundingClientRect().right > innerWidth + 1).map((one) => one.className || one.localName)",
            );
            assert_eq!(wide, json!([]), "{device}, {light}: wider than the window");
            assert_eq!(browser.value("document.documentElement.scrollWidth <= innerWidth"), true, "{device}, {light}");
            let faint = browser.value(CONTRAST);
            assert_eq!(faint, json!([]), "{device}, {light}: words that cannot be read well");
        }
    }
}

/// Words whose colour is too near to that of what they stand on (WCAG: 4.5, of what is only beside 3).
const CONTRAST: &str = "(() => { \
    const rgb = (text) => text.match(/[\\d.]+/g).map(Number); \
    const bright = ([r, g, b]) => [r, g, b].map((one) => (one /= 255) <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4) \
        .reduce((sum, one, at) => sum + one * [0.2126, 0.7152, 0.0722][at], 0); \
    const under = (one) => { for (; one; one = one.parentElement) { const c = rgb(getComputedStyle(one).backgroundColor); if (c.length < 4 || c[3] === 1) return c; } \
        return rgb(getComputedStyle(document.body).backgroundColor); }; \
    const found = new Map(); \
    for (const one of document.querySelectorAll('.page *, .bar *')) { \
        if (![...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim()) || !one.checkVisibility()) continue; \
        const [a, b] = [bright(rgb(getComputedStyle(one).color)), bright(under(one))].sort((x, y) => y - x); \
        const ratio = (a + 0.05) / (b + 0.05); \
        if (ratio < 4.5) found.set(one.className || one.localName, Math.round(ratio * 100) / 100); \
    } \
    return [...found]; })()";

/// A session with a bit of everything, and the places worth a look.
fn sample() -> (Kit, Vec<(&'static str, String)>) {
    let mut kit = Kit::new();
    environment(
        &mut kit,
        "너는 터미널에서 일하는 도우미다.\n\n- 간단히 답한다\n- 파일을 지우기 전에 묻는다",
        "Reads a file, with line numbers.",
    );
    let first = kit.user("설정 파일을 읽는 부분이 느립니다. 왜 그런지 찾아서 고쳐 주세요.\n\nA very long word: Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft/home/ann/projects/gjc/crates/gjc-settings/src/very/deep/folder/definition.rs");
    kit.entry(answer(&json!([{"type": "thinking", "thinking": "먼저 `files.rs`를 읽어 본다. 그다음 측정한다."}, {"type": "text", "text": "먼저 코드를 읽겠습니다."}])));
    kit.call("read", &json!({"path": "crates/gjc-settings/src/files.rs"}), "use std::path::Path;\n\n/// Reads all settings, 한 번에 하나씩.\npub fn read(dir: &Path) -> Result<String, Error> {\n    let text = std::fs::read_to_string(dir.join(\"config.yml\"))?; // 42 bytes\n    Ok(text)\n}\n");
    kit.entry(answer(&json!([{"type": "toolCall", "id": "e1", "name": "edit", "arguments": {"path": "crates/gjc-settings/src/files.rs", "oldText": "let text = std::fs::read_to_string(dir.join(\"config.yml\"))?; // 42 bytes\nOk(text)", "newText": "let mut text = String::with_capacity(4096);\nFile::open(dir.join(\"config.yml\"))?.read_to_string(&mut text)?; // 한 번에 읽는다\nOk(text)"}}])));
    let edit = kit.last();
    kit.entry(json!({"message": {"role": "toolResult", "toolCallId": "e1", "toolName": "edit", "content": [{"type": "text", "text": "1 change in crates/gjc-settings/src/files.rs"}], "isError": false, "timestamp": 1}}));
    kit.entry(answer(&json!([{"type": "toolCall", "id": "b1", "name": "bash", "arguments": {"command": "cargo test -p gjc-settings && echo '모두 통과'", "timeout": 60}}])));
    let bash = kit.last();
    kit.entry(json!({"message": {"role": "toolResult", "toolCallId": "b1", "toolName": "bash", "content": [{"type": "text", "text": "\u{1b}[1m\u{1b}[32m   Compiling\u{1b}[0m gjc-settings v0.1.0\n\u{1b}[31merror\u{1b}[0m: 테스트 하나가 실패했습니다\n  --> src/files.rs:12:9\n"}], "isError": true, "timestamp": 1}}));
    let left = kit.answer("이 가지는 버려졌습니다.");
    kit.entry(json!({"type": "label", "targetId": left, "label": "첫 시도"}));
    kit.go_on_from(&first);
    kit.entry(json!({"type": "model_change", "provider": "anthropic", "modelId": "claude-x"}));
    let table = kit.answer("## 결과\n\n설정은 이제 **한 번에** 읽습니다. _기울임_, ~~취소~~, `코드`, [문서](https://example.org/문서)도 있습니다.\n\n| 크기 | 이전 | 지금 | 비고 |\n|---:|---:|:---:|---|\n| 4 KB | 12 ms | 3 ms | 작은 파일에서는 차이가 거의 없습니다 |\n| 10 MB | 2,100 ms | 95 ms | `read_to_string`을 한 번만 부릅니다 |\n\n1. 먼저 측정\n2. 고치고\n   - 다시 측정\n   - [x] 기록\n   - [ ] 배포\n3. 끝\n\n> 인용: 빠른 것이 옳은 것은 아니다.\n\n```rust\nfn main() -> Result<(), Box<dyn std::error::Error>> {\n    let answer = 42; // 답, and a line that is much longer than any window of a phone could ever show without scrolling\n    println!(\"안녕, {answer}\");\n    Ok(())\n}\n```\n\n```diff\n@@ -1,2 +1,2 @@\n-let a = 1;\n+let a = 2;\n let b = 3;\n```\n\n---\n\n끝.");
    kit.entry(json!({"type": "compaction", "summary": "설정 읽기를 빠르게 했다.", "firstKeptEntryId": table, "tokensBefore": 152_000}));
    let picture = kit.entry(json!({"message": {"role": "user", "content": [{"type": "text", "text": "화면은 이렇습니다 \u{202e}gnp.exe"}, {"type": "image", "data": STRIPES, "mimeType": "image/png"}], "timestamp": 1}}));
    kit.line("a line that is no record");
    let last = kit.answer("확인했습니다. 더 할 일이 있을까요?");
    let folder = kit.file().with_extension("");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("조사-0001.jsonl"), vec![b'x'; 41_000]).unwrap();
    (
        kit,
        vec![
            ("1-first", first),
            ("2-table", table),
            ("3-picture", picture),
            ("4-last", last),
            ("5-edit", edit),
            ("6-bash", bash),
        ],
    )
}
