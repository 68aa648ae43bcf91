//! The corpora of the fuzz targets (`fuzz/corpus`, `cargo xtask fuzz`), replayed without a fuzzer.

use gjc_context::select;
use std::fs;
use std::path::Path;
use testkit::fuzz;

/// The inputs of a target: those in the tree, and those that it begins with.
fn inputs(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let mut inputs = fuzz::seeds(target);
    let mut bytes = 0;
    for entry in fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.unwrap().path();
        let content = fs::read(&path).unwrap();
        bytes += content.len();
        inputs.push((path.display().to_string(), content));
    }
    assert!(inputs.len() > 60 && inputs.len() <= 250, "{target} has {} inputs", inputs.len());
    assert!(bytes <= 200_000, "{target} has {bytes} bytes in the tree");
    inputs
}

fn replay(target: &str, run: impl Fn(&[u8])) {
    for (name, bytes) in inputs(target) {
        println!("{name}");
        run(&bytes);
    }
}

#[test]
fn every_session_file_of_the_corpus() {
    replay("loader", |bytes| fuzz::loader(bytes, &|source, leaf| drop(select(source, leaf))));
}

#[test]
fn every_line_of_the_corpus() {
    replay("entry", fuzz::entry);
}
