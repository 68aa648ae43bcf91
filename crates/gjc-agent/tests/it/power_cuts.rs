//! The power goes out at every moment of scripted runs, and every state that the platter can be in is opened.
//!
//! What must hold in each: *acknowledged ⊆ recovered ⊆ issued*, in order; blobs of acknowledged lines are there; and the
//! next request passes the checker.

use gjc_context::{CacheMarks, Folds, Request, check, view};
use gjc_entry::{Blobs, Body, Kind, Leaf, ModelRef, Own, Params, RequestEnv, Source, Thinking};
use gjc_log::fs::Fs;
use gjc_log::fs::sim::SimFs;
use gjc_log::{BlobStore, OpenError};
use std::path::Path;
use std::sync::Arc;
use testkit::SeededIds;
use testkit::log::{Bench, add, sync, texts};
use testkit::session::{answer, calls, result, user};

/// Scripted runs of a campaign; together far more than 100,000 states.
const RUNS: u64 = 6;

/// What a scripted run does next.
#[derive(Debug, Clone)]
enum Act {
    Say(String),
    Env(String),
    Answer(String),
    Call(String),
    Result(String),
    Sync,
    Reopen,
}

/// A run of an agent, from a seed: prompts, settings, answers with and without calls, syncs at turn ends, restarts.
fn script(seed: u64, turns: usize) -> Vec<Act> {
    let random = SeededIds::new(seed);
    let mut acts = Vec::new();
    let word = |n: u64| ["한글 텍스트", "plain", "\"quoted\" \\ \u{1b}[31m", "😀😀", ""][(n % 5) as usize].to_owned();
    for turn in 0..turns {
        if turn == 0 || random.next().is_multiple_of(3) {
            acts.push(Act::Env(format!("system prompt {turn}")));
        }
        acts.push(Act::Say(format!("{turn} {}", word(random.next()))));
        for call in 0..random.next() % 3 {
            acts.push(Act::Call(format!("{turn}.{call}")));
            acts.push(Act::Result(format!("{turn}.{call} {}", word(random.next()))));
        }
        acts.push(Act::Answer(format!("{turn} {}", word(random.next()))));
        if !random.next().is_multiple_of(4) {
            acts.push(Act::Sync);
        }
        if random.next().is_multiple_of(5) {
            acts.push(Act::Reopen);
        }
    }
    acts.push(Act::Sync);
    acts
}

fn env(system: gjc_entry::BlobRef) -> RequestEnv {
    RequestEnv {
        all_tools: Vec::new(),
        system,
        tools: system,
        model: ModelRef { provider: "p".into(), id: "m".into(), api: "a".into() },
        thinking: Thinking::Off,
        tier: gjc_entry::Tier::Auto,
        params: Params { max_tokens: 1 },
        renderer: 1,
        held: None,
    }
}

/// Plays a script. A mark in the journal is the number of entries that were acknowledged as durable at that moment.
fn play(bench: &Bench<SimFs>, acts: &[Act]) -> usize {
    let mut writer = Some(bench.create());
    let mut issued = 0;
    for act in acts {
        let open = writer.as_mut().unwrap();
        match act {
            Act::Say(text) => drop(add(open, user(text))),
            Act::Env(text) => {
                let blob = open.put_blob(text.as_bytes());
                add(open, Body::Own(Own::Env(env(blob))));
            }
            Act::Answer(text) => drop(add(open, answer(text))),
            Act::Call(id) => drop(add(open, calls("t", &[(id, "read", "{\"path\":\"a\"}")]))),
            Act::Result(text) => {
                let id = text.split(' ').next().unwrap_or_default();
                add(open, result(id, "read", text));
            }
            Act::Sync => {
                sync(open).unwrap();
                if open.on_disk() {
                    bench.fs.mark(issued);
                }
                continue;
            }
            Act::Reopen => {
                if open.on_disk() {
                    sync(open).unwrap();
                    bench.fs.mark(issued);
                    drop(writer.take());
                    writer = Some(bench.open().unwrap().0.value);
                }
                continue;
            }
        }
        issued += 1;
    }
    usize::try_from(issued).unwrap()
}

/// Everything that the session holds, as text, in file order.
fn lines(source: &dyn Source) -> Vec<String> {
    source
        .skeleton()
        .unwrap()
        .iter()
        .map(|(_, node)| {
            let mut line = Vec::new();
            source.body(node.at()).unwrap().write(&mut line);
            String::from_utf8(line).unwrap()
        })
        .collect()
}

/// Opens what a power cut left, and checks the promises. Gives back how many entries were recovered.
fn examine(cut: SimFs, acknowledged: usize, issued: &[String], what: &dyn std::fmt::Display) -> usize {
    let bench = Bench::new(Arc::new(cut), Path::new("/agent")).unwatched();
    let mut writer = match bench.open() {
        Ok((loaded, _)) => {
            assert!(loaded.damage.is_empty(), "{what}: {:?}", loaded.damage);
            loaded.value
        }
        Err(OpenError::NotFound(_)) => {
            assert_eq!(acknowledged, 0, "{what}: the session is gone");
            return 0;
        }
        Err(error) => panic!("{what}: {error}"),
    };
    let recovered = lines(&writer);
    assert!(recovered.len() >= acknowledged, "{what}: {acknowledged} acknowledged, {} recovered", recovered.len());
    assert_eq!(recovered, issued[..recovered.len()], "{what}");
    let blobs = BlobStore::new(Arc::clone(&bench.fs), Some(bench.root.join("blobs")));
    for (_, node) in
        writer.skeleton().unwrap().iter().take(acknowledged).filter(|(_, node)| node.kind() == Kind::OwnEnv)
    {
        if let Body::Own(Own::Env(env)) = &writer.body(node.at()).unwrap().body {
            blobs.get(&env.system).unwrap_or_else(|missing| panic!("{what}: {missing}"));
        }
    }
    // The next prompt can be sent, and what is written from here on stays.
    add(&mut writer, user("그 다음"));
    let (view, _) = view(&writer, Leaf::Current, &mut Folds::default()).unwrap();
    let request = Request { env: env(gjc_entry::BlobRef([0; 32])), cache: CacheMarks::of(&view), view: view.clone() };
    check(request, &view).unwrap_or_else(|violation| panic!("{what}: {violation}"));
    recovered.len()
}

/// Runs a script and examines every state. Gives back how many there were.
fn campaign(seed: u64, turns: usize) -> usize {
    let bench = Bench::new(Arc::new(SimFs::new()), Path::new("/agent"));
    bench.fs.mkdir(Path::new("/agent")).unwrap();
    bench.fs.settle();
    let count = play(&bench, &script(seed, turns));
    let whole = bench.open().unwrap().0.value;
    let issued = lines(&whole);
    assert_eq!(issued.len(), count);
    assert!(!texts(&whole).is_empty());
    drop(whole);
    let (mut states, mut most) = (0, 0);
    for cut in bench.fs.power_cuts() {
        let acknowledged = usize::try_from(cut.marks.iter().copied().max().unwrap_or(0)).unwrap();
        let what = format!("seed {seed}: {cut}");
        most = most.max(examine(cut.fs, acknowledged, &issued, &what));
        states += 1;
    }
    assert_eq!(most, count, "some state holds everything");
    states
}

#[test]
fn every_power_cut_of_scripted_runs_keeps_what_was_acknowledged() {
    let states: usize = (0..RUNS).map(|seed| campaign(seed, 1 + (seed % 4) as usize)).sum();
    assert!(states >= 100_000, "{states} states");
    println!("{states} states of {RUNS} runs");
}

#[test]
fn a_kill_at_any_moment_keeps_everything_that_was_written() {
    for seed in 0..50 {
        let bench = Bench::new(Arc::new(SimFs::new()), Path::new("/agent"));
        bench.fs.mkdir(Path::new("/agent")).unwrap();
        let acts = script(seed, 3);
        for end in 0..acts.len() {
            let bench = Bench::new(Arc::new(SimFs::new()), Path::new("/agent"));
            bench.fs.mkdir(Path::new("/agent")).unwrap();
            let issued = play(&bench, &acts[..end]);
            let killed = Bench::new(Arc::new(bench.fs.kill()), Path::new("/agent"));
            if let Ok((loaded, _)) = killed.open() {
                assert_eq!(lines(&loaded.value).len(), issued, "seed {seed}, after {end} acts");
            }
        }
    }
}
