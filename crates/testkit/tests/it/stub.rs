use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use testkit::stub::{Framing, Gate, Piece, Reply, Script, Stub};

const LIMIT: Duration = Duration::from_secs(10);

fn post(stub: &Stub, body: &[u8]) -> TcpStream {
    let mut s = TcpStream::connect(stub.addr()).unwrap();
    send(&mut s, body);
    s
}

fn send(s: &mut TcpStream, body: &[u8]) {
    s.set_read_timeout(Some(LIMIT)).unwrap();
    let head = format!("POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n", body.len());
    s.write_all(&[head.as_bytes(), body].concat()).unwrap();
}

/// Reads up to and with the text, from a connection that stays open.
fn read_until(s: &mut TcpStream, end: &str) -> String {
    let mut got = Vec::new();
    let mut byte = [0];
    while !got.ends_with(end.as_bytes()) {
        s.read_exact(&mut byte).unwrap();
        got.push(byte[0]);
    }
    String::from_utf8(got).unwrap()
}

fn read_all(s: &mut TcpStream) -> String {
    let mut got = String::new();
    s.read_to_string(&mut got).unwrap();
    got
}

#[test]
fn requests_are_recorded_byte_for_byte_on_a_kept_connection() {
    let stub = Stub::start(Script::queue([Reply::text(200, "하나"), Reply::text(404, "둘")]));
    let first = [0u8, 13, 10, 13, 10, 255];
    let mut s = post(&stub, &first);
    assert!(read_until(&mut s, "하나").starts_with("HTTP/1.1 200 OK\r\n"));
    send(&mut s, "{\"말\":\"안녕\"}".as_bytes());
    assert!(read_until(&mut s, "둘").contains("content-length: 3\r\n"));
    let seen = stub.wait_for_requests(2, LIMIT);
    assert_eq!(seen[0].body, first);
    assert_eq!(seen[1].json()["말"], "안녕");
    assert_eq!(seen[1].header("HOST"), Some("x"));
    assert_eq!(seen[0].connection, seen[1].connection);
    assert!(seen[0].at <= seen[1].at);
    assert_eq!(stub.left(), 0);
}

#[test]
fn a_gate_holds_the_rest_until_the_test_opens_it() {
    let gate = Gate::new();
    let stub = Stub::start(Script::always(Reply::sse("안녕").gate_at(4, &gate)));
    let mut s = post(&stub, b"{}");
    // The gate stands inside the second letter.
    let head = read_until(&mut s, "\r\n\r\n");
    assert!(head.contains("transfer-encoding: chunked"));
    let mut part = [0; 9];
    s.read_exact(&mut part).unwrap();
    assert_eq!(&part, b"4\r\n\xec\x95\x88\xeb\r\n");
    s.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let held = s.read(&mut [0]).unwrap_err().kind();
    assert!(matches!(held, ErrorKind::WouldBlock | ErrorKind::TimedOut));
    s.set_read_timeout(Some(LIMIT)).unwrap();
    gate.open();
    let mut rest = [0; 12];
    s.read_exact(&mut rest).unwrap();
    assert_eq!(&rest, b"2\r\n\x85\x95\r\n0\r\n\r\n");
}

#[test]
fn a_client_that_hangs_up_at_a_gate_is_noticed() {
    let stub = Stub::start(Script::always(Reply::sse("abc").gate_at(1, &Gate::new())));
    let s = post(&stub, b"{}");
    stub.wait_for_requests(1, LIMIT);
    drop(s);
    stub.wait_for_hang_up(0, LIMIT);
    assert!(stub.own_times().is_empty());
}

#[test]
fn every_cut_of_every_framing_is_where_the_script_says() {
    let body = "{\"가\":1}";
    for framing in [Framing::Length, Framing::UntilClose] {
        for n in 0..=body.len() {
            let stub = Stub::start(Script::always(Reply::text(200, body).framing(framing).cut_at(n)));
            let mut s = post(&stub, b"");
            let head = read_until(&mut s, "\r\n\r\n");
            assert_eq!(head.contains("content-length: 9"), framing == Framing::Length);
            let mut got = vec![];
            s.read_to_end(&mut got).unwrap();
            assert_eq!(got, &body.as_bytes()[..n]);
        }
    }
}

#[test]
fn a_cut_stream_of_chunks_has_no_end_mark() {
    let stub =
        Stub::start(Script::queue([Reply::sse("abcd").cut_at(4), Reply::sse("abcd").framing(Framing::UntilClose)]));
    assert!(read_all(&mut post(&stub, b"")).ends_with("\r\n\r\n4\r\nabcd\r\n"));
    assert!(read_all(&mut post(&stub, b"")).ends_with("\r\n\r\nabcd"));
}

#[test]
fn a_reset_is_a_reset() {
    let gate = Gate::new();
    let stub = Stub::start(Script::always(Reply::text(200, "abcd").reset_at(2).gate_at(2, &gate)));
    let mut s = post(&stub, b"");
    read_until(&mut s, "\r\n\r\nab");
    gate.open();
    assert_eq!(s.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
}

#[test]
fn bytes_come_one_by_one_with_their_pauses() {
    let pause = Duration::from_millis(3);
    let stub = Stub::start(Script::always(Reply::text(200, "0123456789").every_byte(pause)));
    let start = Instant::now();
    read_until(&mut post(&stub, b""), "9");
    assert!(start.elapsed() >= pause * 9);
}

#[test]
fn a_raw_reply_is_the_wire_itself() {
    let stub = Stub::start(Script::always(Reply::raw(vec![Piece::Bytes(b"HTTP/1.1 2".to_vec())])));
    assert_eq!(read_all(&mut post(&stub, b"")), "HTTP/1.1 2");
}

#[test]
fn a_script_may_look_at_the_request_and_may_run_out() {
    let echo =
        Stub::start(Script::answer(|r, n| Reply::text(200, &format!("{n}:{}.", String::from_utf8_lossy(&r.body)))));
    let mut s = post(&echo, "물음".as_bytes());
    read_until(&mut s, "0:물음.");
    send(&mut s, b"");
    read_until(&mut s, "1:.");

    let empty = Stub::start(Script::queue([]));
    assert!(read_until(&mut post(&empty, b""), "request 0").starts_with("HTTP/1.1 500 "));
    empty.push(Reply::text(200, "later"));
    read_until(&mut post(&empty, b""), "later");
}

#[test]
fn dropping_the_stub_ends_what_stands_at_a_gate_or_waits() {
    for piece in [Piece::Gate(Gate::new()), Piece::Wait(Duration::from_secs(3600))] {
        let stub = Stub::start(Script::always(Reply::sse("").then(piece)));
        let mut s = post(&stub, b"");
        stub.wait_for_requests(1, LIMIT);
        let addr = stub.addr();
        drop(stub);
        let mut rest = vec![];
        let _ = s.read_to_end(&mut rest);
        assert!(!rest.ends_with(b"0\r\n\r\n"));
        assert!(TcpStream::connect(addr).is_err());
    }
}

#[test]
fn waiting_for_requests_that_do_not_come_tells_which_came() {
    let stub = Stub::start(Script::always(Reply::text(200, "x")));
    read_until(&mut post(&stub, b""), "x");
    let said = crate::failure(std::panic::AssertUnwindSafe(|| {
        stub.wait_for_requests(2, Duration::from_millis(1));
    }));
    assert!(said.contains("2 requests") && said.contains("POST /v1/messages"), "{said}");
}

#[test]
fn the_bench_stub_tells_its_own_time() {
    let home = testkit::harness::Home::new();
    let mut run = home.run(env!("CARGO_BIN_EXE_testkit-stub")).args(["--words", "3", "--requests", "2"]).spawn();
    let url = run.wait_for(|l| l.starts_with("http://"));
    for _ in 0..2 {
        let mut s = TcpStream::connect(url.trim_start_matches("http://")).unwrap();
        send(&mut s, b"{}");
        let answer = read_until(&mut s, "0\r\n\r\n");
        assert!(answer.contains("word1 wo") && answer.contains("message_stop"), "{answer}");
    }
    let out = run.wait().ok();
    let last: serde_json::Value = serde_json::from_str(out.out().lines().last().unwrap()).unwrap();
    assert_eq!(last["requests"], 2);
    assert_eq!(last["own_us"].as_array().unwrap().len(), 2);
}

#[test]
fn the_bench_stub_ends_at_sigterm_with_its_times() {
    let home = testkit::harness::Home::new();
    let mut run = home.run(env!("CARGO_BIN_EXE_testkit-stub")).spawn();
    run.wait_for(|l| l.starts_with("http://"));
    run.terminate();
    assert!(run.wait().ok().out().contains(r#""requests":0"#));
    let bad = home.run(env!("CARGO_BIN_EXE_testkit-stub")).arg("--port").output();
    assert_eq!(bad.code(), Some(2), "{bad}");
}
