//! Recorded sessions of pi: our context is theirs.

use crate::family::File;
use crate::mem::checked;
use crate::model::{assert_same, written};
use gjc_context::{Folds, Said, select, view};
use gjc_entry::{Leaf, Source};
use gjc_log::Reader;
use gjc_log::fs::OsFs;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The recorded files of the family.
fn sessions() -> Vec<(PathBuf, Reader<OsFs>)> {
    let mut found = Vec::new();
    for folder in ["pi-0.73.1", "omp-18.2.3", "public"] {
        let Some(folder) = testkit::material::path(format!("fixtures/sessions/{folder}")) else { continue };
        let mut files = Vec::new();
        walk(&folder, &mut files);
        for file in files {
            let name = file.file_name().unwrap().to_string_lossy().into_owned();
            if name.ends_with(".jsonl") && !name.contains("codex") {
                let reader = Reader::open(&OsFs, &file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
                found.push((file, reader.value));
            }
        }
    }
    found
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
    let mut inside: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|item| item.unwrap().path()).collect();
    inside.sort();
    for path in inside {
        if path.is_dir() { walk(&path, files) } else { files.push(path) }
    }
}

#[test]
fn recorded_sessions_have_the_context_that_their_program_recorded() {
    let sessions = sessions();
    let mut recorded = 0;
    for (file, reader) in &sessions {
        let name = file.file_name().unwrap().to_string_lossy();
        let ours = written(&select(reader, Leaf::Current).unwrap().0);
        let theirs = File::read(&std::fs::read_to_string(file).unwrap());
        assert_same(&name, &ours, &theirs.context());
        let beside = file.with_extension("context.json");
        if beside.exists() {
            let theirs: Value = serde_json::from_slice(&std::fs::read(beside).unwrap()).unwrap();
            let roles: Vec<&Value> = ours.iter().map(|message| &message["role"]).collect();
            assert_eq!(roles, theirs["roles"].as_array().unwrap().iter().collect::<Vec<_>>(), "{name}");
            assert_eq!(ours.len() as u64, theirs["messages"].as_u64().unwrap(), "{name}");
            recorded += 1;
        }
        eprintln!("{name}: {} messages alike", ours.len());
    }
    eprintln!("{} sessions alike, {recorded} of them with a recorded context", sessions.len());
}

#[test]
fn every_leaf_of_a_recorded_session_can_be_sent() {
    for (file, reader) in sessions() {
        let skeleton = reader.skeleton().unwrap();
        // Of the long ones every tenth leaf: they are all of one make.
        let step = if skeleton.len() > 100 { 10 } else { 1 };
        for (ordinal, _) in skeleton.iter().step_by(step) {
            let (view, notes) = view(&reader, Leaf::At(ordinal), &mut Folds::default()).unwrap();
            if matches!(view.messages.last(), Some(last) if !matches!(last.said, Said::Assistant { .. })) {
                checked(view).unwrap_or_else(|violation| panic!("{} at {ordinal:?}: {violation}", file.display()));
            }
            assert!(notes.len() < 20, "{}: {notes:?}", file.display());
        }
    }
}

#[test]
fn pi_itself_builds_the_same_context() {
    for (file, reader) in sessions() {
        // A title before the header and entries without ids are not pi's.
        if file.components().any(|part| part.as_os_str() == "omp-18.2.3") || file.ends_with("gjc.session-v4.jsonl") {
            continue;
        }
        let Some(theirs) = testkit::pi::read(&file) else { return };
        let ours = written(&select(&reader, Leaf::Current).unwrap().0);
        assert_same(&file.display().to_string(), &ours, theirs["messages"].as_array().unwrap());
    }
}

#[test]
fn sessions_of_a_newer_pi_have_its_context() {
    let dir = tempfile::tempdir().unwrap();
    for theirs in testkit::pi::write_newer(dir.path(), 40).unwrap_or_default() {
        let file = PathBuf::from(theirs["file"].as_str().unwrap());
        let loaded = Reader::open(&OsFs, &file).unwrap();
        let reader = loaded.value;
        let tree = reader.skeleton().unwrap();
        assert_eq!(tree.id(tree.leaf().unwrap()).to_string(), theirs["leafId"]);
        assert!(loaded.damage.is_empty() && reader.verify_bodies().is_empty(), "{}", file.display());
        let ours = written(&select(&reader, Leaf::Current).unwrap().0);
        assert_same(&file.display().to_string(), &ours, theirs["messages"].as_array().unwrap());
    }
}
