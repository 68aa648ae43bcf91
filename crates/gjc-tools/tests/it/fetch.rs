use crate::rig::Rig;
use gjc_entry::{Label, Level};
use gjc_flow::{LabelState, Policy, Verdict, decide};
use gjc_tools::{Effects, Fetch, Reach, Run, Shown, Tool, Tools};
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};
use testkit::stub::{Piece, Reply, Script, Stub};

/// A session whose `fetch` may reach these servers of this machine.
fn rig_allowing(allowed: &[&str]) -> Rig {
    let mut rig = Rig::new();
    let allowed = allowed.iter().map(ToString::to_string).collect();
    rig.tools = Tools::new(vec![Arc::new(Fetch::new(Reach { allowed, timeout: Duration::from_secs(20) }))]);
    rig
}

fn rig() -> Rig {
    rig_allowing(&["127.0.0.1"])
}

fn html(body: &str) -> Reply {
    Reply::new(200, "text/html; charset=utf-8", body)
}

async fn got(reply: Reply) -> crate::rig::Done {
    let stub = Stub::start(Script::always(reply));
    rig().call("fetch", json!({ "url": format!("{}/글/page", stub.url()) })).await
}

#[tokio::test]
async fn a_page_is_told_as_markdown_and_belongs_to_nobody() {
    let stub = Stub::start(Script::always(html(
        "<title>날씨</title><script>x()</script><h1>오늘</h1><p>맑음, <a href='/more'>더</a></p>",
    )));
    let url = format!("{}/a?q=한글#절", stub.url());
    let done = rig().call("fetch", json!({ "url": url })).await;
    let text = done.ok();
    assert!(
        text.starts_with(&format!("[{}/a?q=%ED%95%9C%EA%B8%80#%EC%A0%88: 200 OK, \"날씨\"; what follows", stub.url())),
        "{text}"
    );
    assert!(text.ends_with(&format!("# 오늘\n\n맑음, [더]({}/more)", stub.url())), "{text}");
    assert_eq!(done.label, Label { trusted: false, ..Label::PUBLIC_TRUSTED });
    assert_eq!(
        (&done.details["status"], &done.details["title"], &done.details["charset"]),
        (&json!(200), &json!("날씨"), &json!("UTF-8"))
    );

    let asked = &stub.requests()[0];
    assert_eq!(
        (asked.method.as_str(), asked.path.as_str()),
        ("GET", "/a?q=%ED%95%9C%EA%B8%80"),
        "the fragment stays here"
    );
    assert_eq!(asked.header("user-agent"), Some(concat!("gjc/", env!("CARGO_PKG_VERSION"))));
    for name in ["cookie", "authorization", "referer"] {
        assert_eq!(asked.header(name), None, "{name}");
    }
    assert_eq!(asked.header("accept-encoding"), Some("identity"));
}

#[tokio::test]
async fn text_is_told_as_it_is_and_in_whatever_charset() {
    let done = got(Reply::json(200, &json!({"키": ["<b>", 1]}))).await;
    assert!(done.ok().ends_with(r#"{"키":["<b>",1]}"#), "{}", done.text);
    let korean = encoding_rs::EUC_KR.encode("똠방각하, 한글").0.into_owned();
    for said in ["text/plain; charset=euc-kr", "text/plain; charset=cp949", "text/plain", ""] {
        let done = got(Reply::new(200, said, korean.clone())).await;
        assert!(done.ok().ends_with("똠방각하, 한글"), "{said}: {}", done.text);
        assert_eq!(done.details["charset"], "EUC-KR", "{said}");
    }
    let page = [&b"<html><meta charset=\"euc-kr\"><p>"[..], &korean].concat();
    assert!(got(Reply::new(200, "text/html", page)).await.ok().ends_with("똠방각하, 한글"));
    assert!(got(html("<script>only()</script>")).await.ok().contains("there is no text in it"));
}

#[tokio::test]
async fn what_is_no_text_is_refused_with_its_kind_and_size() {
    for (kind, bytes) in [
        ("image/png", b"\x89PNG\0".to_vec()),
        ("application/octet-stream", b"PK\0\0".to_vec()),
        ("text/plain", b"a\0b".to_vec()),
    ] {
        let size = bytes.len();
        let done = got(Reply::new(200, kind, bytes)).await;
        let said = done.err();
        assert!(
            said.contains("sent no text") && said.contains(kind) && said.contains(&format!("{size} bytes")),
            "{said}"
        );
        assert!(said.contains("hint: ") && done.details["error"] == "binary" && !done.label.trusted);
    }
    let packed = got(html("x").header("content-encoding", "gzip")).await;
    assert!(packed.err().contains("packed as gzip"), "{}", packed.text);
}

#[tokio::test]
async fn what_the_server_refuses_is_told_with_what_it_says() {
    let done = got(Reply::new(404, "text/html", "<h1>없는 쪽</h1>")).await;
    assert!(done.err().contains("404 Not Found") && done.text.contains("# 없는 쪽"), "{}", done.text);
    let rig = rig_allowing(&["127.0.0.1"]);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let done = rig.call("fetch", json!({ "url": format!("http://127.0.0.1:{port}/a?token=비밀") })).await;
    assert!(done.err().contains("cannot be reached") && !done.text.contains("token"), "{}", done.text);
    let done = got(html("abcdef").cut_at(3)).await;
    assert!(done.err().contains("broke off"), "{}", done.text);
}

#[tokio::test]
async fn a_long_page_is_shown_in_part_and_kept_whole() {
    let lines: String = (0..20_000).map(|n| format!("{n}번째 줄\n")).collect();
    let stub = Stub::start(Script::always(Reply::text(200, &lines)));
    let mut rig = rig();
    let done = rig.call("fetch", json!({ "url": stub.url() })).await;
    let text = done.ok();
    assert!(text.contains("\n0번째 줄\n") && !text.contains("\n19999번째") && text.len() < 60 * 1024);
    let kept = done.details["artifact"].as_str().unwrap();
    assert!(text.contains(&format!("the whole text is {kept}; read it in parts")), "{text}");
    rig.tools = Rig::new().tools;
    let last = rig.call("read", json!({ "path": kept, "offset": 20_000 })).await;
    assert!(last.ok().contains("19999번째 줄"), "{}", last.ok());
    assert!(!last.label.trusted, "a page is nobody's word, also in parts");
    // More than is read at all.
    let huge = "가나다라마바사아자차\n".repeat(300_000);
    let done = got(Reply::text(200, &huge)).await;
    assert!(done.ok().contains("what comes after them was not read") && done.details["cut"] == true);
}

#[tokio::test]
async fn redirects_are_followed_so_far_and_each_is_looked_at() {
    let hop = |to: &str| Reply::text(302, "").header("location", to);
    let stub = Stub::start(Script::answer(move |asked, _| match asked.path.as_str() {
        "/start" => hop("deep/next?a=1"),
        "/deep/next?a=1" => hop("/end"),
        "/end" => html("끝 <a href=x>곳</a>"),
        "/round" => hop("/round"),
        "/file" => hop("file:///etc/passwd"),
        "/metadata" => hop("http://169.254.169.254/latest/"),
        "/here" => hop("http://localhost:1/"),
        "/password" => hop("http://a:b@127.0.0.1/"),
        "/odd" => hop("http://["),
        other => panic!("{other}"),
    }));
    let rig = rig();
    let go = async |path: &str| rig.call("fetch", json!({ "url": format!("{}{path}", stub.url()) })).await;
    let done = go("/start").await;
    assert!(done.ok().contains(&format!("[곳]({}/x)", stub.url())), "{}", done.text);
    assert_eq!(done.details["url"], format!("{}/end", stub.url()));
    for (path, code) in [
        ("/round", "redirects"),
        ("/file", "wrong_input"),
        ("/metadata", "private_address"),
        ("/here", "private_address"),
        ("/password", "wrong_input"),
        ("/odd", "redirects"),
    ] {
        let done = go(path).await;
        assert!(
            done.is_error && done.details["error"] == code && done.text.contains("hint: "),
            "{path}: {}",
            done.text
        );
    }
    assert_eq!(stub.requests().iter().filter(|asked| asked.path == "/round").count(), 11);
}

#[tokio::test]
async fn this_machine_is_reached_only_where_a_person_allows_it() {
    let stub = Stub::start(Script::always(html("안")));
    let port = stub.addr().port();
    for (allowed, url, reached) in [
        ("other", format!("http://127.0.0.1:{port}/"), false),
        ("localhost", format!("http://127.0.0.1:{port}/"), false),
        ("127.0.0.1", format!("http://localhost:{port}/"), false),
        ("127.0.0.1:1", format!("http://127.0.0.1:{port}/"), false),
        ("127.0.0.1", format!("http://127.0.0.1:{port}/"), true),
        ("127.0.0.1", format!("http://127.1:{port}/"), true),
        // The name is resolved here, and the client is given the addresses: it can resolve none itself.
        ("LOCALHOST", format!("http://localhost:{port}/"), true),
    ] {
        let before = stub.requests().len();
        let done = rig_allowing(&[allowed]).call("fetch", json!({ "url": url })).await;
        assert_eq!(
            (!done.is_error, stub.requests().len() - before),
            (reached, usize::from(reached)),
            "{allowed} {url}: {}",
            done.text
        );
        assert!(reached || done.details["error"] == "private_address", "{}", done.text);
    }
}

#[tokio::test]
async fn it_ends_when_the_time_is_up_or_nobody_waits_any_more() {
    let gate = testkit::stub::Gate::new();
    let stub = Stub::start(Script::always(html("오래 걸린다").gate_at(3, &gate)));
    let mut rig = rig();
    let allowed = vec!["127.0.0.1".to_string()];
    rig.tools = Tools::new(vec![Arc::new(Fetch::new(Reach { allowed, timeout: Duration::from_millis(200) }))]);
    let begun = Instant::now();
    let done = rig.call("fetch", json!({ "url": stub.url() })).await;
    assert!(done.err().contains("not done after 0.2 seconds") && done.details["error"] == "timed_out", "{}", done.text);
    let rig = self::rig();
    let cancel = rig.cancel.clone();
    let url = stub.url();
    let asked = async { rig.call("fetch", json!({ "url": url })).await };
    let stop = async {
        let asked = move || {
            stub.wait_for_requests(2, Duration::from_secs(10));
            stub
        };
        let stub = tokio::task::spawn_blocking(asked).await.unwrap();
        cancel.cancel();
        stub
    };
    let (done, _stub) = tokio::join!(asked, stop);
    assert_eq!(done.details["error"], "cancelled");
    assert!(begun.elapsed() < Duration::from_secs(15));
    gate.open();
}

#[tokio::test]
async fn the_address_is_a_sink_that_anybody_may_read() {
    let rig = rig();
    let call = rig.plan("fetch", &json!({ "url": "https://example.com/a?b=c" })).unwrap();
    assert_eq!(
        (call.sinks.len(), call.sinks[0].level, call.sinks[0].what.as_str()),
        (1, Level::Public, "fetch: https://example.com")
    );
    assert!(!call.sources[0].label.trusted);
    for (level, allowed) in [(Level::Public, true), (Level::Internal, false), (Level::Restricted, false)] {
        let state = LabelState::new(Label { level, trusted: true }, Level::Restricted).unwrap();
        assert_eq!(decide(&Policy::default(), &state, &call).verdict == Verdict::Allow, allowed, "{level}");
    }
    // A permit for another address is none.
    let stub = Stub::start(Script::always(html("x")));
    let call = rig.plan("fetch", &json!({ "url": stub.url() })).unwrap();
    let other = rig.plan("fetch", &json!({ "url": format!("{}/other", stub.url()) })).unwrap();
    let permits = rig.permits(&other);
    assert_eq!(rig.run(call, permits).await.details["error"], "stale_permit");
    assert!(stub.requests().is_empty());
    let spec =
        Fetch::new(Reach { allowed: Vec::new(), timeout: Duration::from_secs(1) }).spec(&Shown::default()).unwrap();
    assert_eq!((spec.effects, spec.run), (Effects::Outside, Run::Serial));
}

#[tokio::test]
async fn an_answer_made_to_hurt_is_an_answer() {
    for reply in [
        html(&"<div>".repeat(200_000)),
        Reply::new(200, "text/html", vec![0xff; 10_000]),
        Reply::new(200, "text/html; charset=\"", "x"),
        Reply::new(200, &"x".repeat(5_000), "x"),
        Reply::new(302, "text/html", "no location"),
        Reply::raw(vec![Piece::Bytes(b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999\r\n\r\nx".to_vec())]),
        Reply::raw(vec![Piece::Bytes(b"\0\xff\xff".to_vec())]),
    ] {
        let done = got(reply).await;
        assert!(!done.label.trusted && !done.text.is_empty());
    }
}
