//! A stub model server for benches: the same scripted answer of the Messages API to every request.
//!
//! `testkit-stub [--port N] [--words N] [--delay-us N] [--requests N]`
//!
//! Prints its address, and at the end (SIGTERM, SIGINT, or after `--requests` answers) one JSON line with its own time
//! for each request in microseconds: from the request's last byte read to the reply's last byte written, so that a bench
//! can take "the stub's own time" away.
#![allow(clippy::print_stdout, clippy::print_stderr, clippy::disallowed_methods, reason = "a program of its own")]

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use testkit::StopSignals;
use testkit::anthropic::{Turn, Usage};
use testkit::stub::{Piece, Reply, Script, Stub};

struct Options {
    port: u16,
    words: u64,
    delay: Duration,
    requests: Option<usize>,
}

fn main() -> ExitCode {
    match options(std::env::args().skip(1)).and_then(|o| serve(&o).map_err(|e| e.to_string())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("testkit-stub: {e}\nhint: testkit-stub [--port N] [--words N] [--delay-us N] [--requests N]");
            ExitCode::from(2)
        }
    }
}

fn options(mut args: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut o = Options { port: 0, words: 20, delay: Duration::ZERO, requests: None };
    while let Some(flag) = args.next() {
        let number = |text: Option<String>| -> Result<u64, String> {
            let text = text.ok_or_else(|| format!("{flag} needs a number"))?;
            text.parse().map_err(|_| format!("{flag} needs a number, not {text:?}"))
        };
        match flag.as_str() {
            "--port" => o.port = u16::try_from(number(args.next())?).map_err(|_| "a port is below 65536".to_owned())?,
            "--words" => o.words = number(args.next())?,
            "--delay-us" => o.delay = Duration::from_micros(number(args.next())?),
            "--requests" => o.requests = usize::try_from(number(args.next())?).ok(),
            _ => return Err(format!("{flag} is not an option")),
        }
    }
    Ok(o)
}

fn serve(o: &Options) -> std::io::Result<()> {
    let signals = StopSignals::block()?;
    let stub = Arc::new(Stub::start_on(o.port, Script::always(answer(o))));
    println!("{}", stub.url());
    if let Some(n) = o.requests {
        let stub = Arc::clone(&stub);
        std::thread::spawn(move || {
            stub.wait_for_played(n);
            signals.raise();
        });
    }
    signals.wait();
    let micros: Vec<u128> = stub.own_times().iter().map(Duration::as_micros).collect();
    println!("{}", serde_json::json!({"requests": micros.len(), "own_us": micros}));
    Ok(())
}

fn answer(o: &Options) -> Reply {
    let text: String = (1..=o.words).map(|n| format!("word{n} ")).collect();
    let turn = Turn::new("msg_bench").text(&text).usage(Usage { output: o.words, ..Usage::default() });
    let mut reply = turn.reply();
    if !o.delay.is_zero() {
        reply.pieces = reply.pieces.into_iter().flat_map(|p| [Piece::Wait(o.delay), p]).collect();
    }
    reply
}
