//! The tables that say which test proves what: each test and each file that they name is there.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const TABLES: [&str; 2] = ["docs/tests.md", "docs/sessions.md"];

fn sources(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
}

/// The names of a source, each as a whole.
fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|name| is_test(name))
}

/// A test is called by a sentence.
fn is_test(name: &str) -> bool {
    name.matches('_').count() >= 3 && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

#[test]
fn what_the_tables_name_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    sources(&root.join("crates"), &mut files);
    let mut known = BTreeSet::new();
    for file in &files {
        known.extend(names(&fs::read_to_string(file).unwrap()).map(ToOwned::to_owned));
    }
    let (mut missing, mut tests) = (Vec::new(), 0);
    for table in TABLES {
        let text = fs::read_to_string(root.join(table)).unwrap();
        for row in text.lines().filter(|line| line.starts_with('|')) {
            for word in row.split('`').skip(1).step_by(2) {
                let is_file = word.ends_with(".rs") && word.contains('/');
                tests += usize::from(is_test(word));
                if is_test(word) && !known.contains(word) || is_file && !root.join("crates").join(word).exists() {
                    missing.push(format!("{table}: {word}"));
                }
            }
        }
    }
    assert!(tests > 400, "only {tests} names were found in the tables");
    assert_eq!(missing, Vec::<String>::new());
}
