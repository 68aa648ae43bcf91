//! Every recorded file of the family opens, with exactly the damage that is stated in `tests/damage/<name>.json`, and every
//! recorded file of other programs is refused by name. None is touched.

use gjc_entry::Source;
use gjc_log::fs::OsFs;
use gjc_log::{OpenError, Reader, Tail};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

fn recorded() -> Option<(Vec<PathBuf>, Vec<PathBuf>)> {
    let mut files = Vec::new();
    walk(&testkit::material::path("fixtures/sessions")?, &mut files);
    files.retain(|file| !file.to_string_lossy().ends_with(".context.json"));
    let family = |file: &Path| {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        let of = |start: &str| file.components().any(|part| part.as_os_str().to_string_lossy().starts_with(start));
        of("pi-0") || of("omp-") || (of("public") && (name.starts_with("pi") || name.starts_with("gjc")))
    };
    Some(files.into_iter().partition(|file| family(file)))
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
    let mut inside: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|item| item.unwrap().path()).collect();
    inside.sort();
    for path in inside {
        if path.is_dir() { walk(&path, files) } else { files.push(path) }
    }
}

/// What is wrong with a file, as the JSON beside this test states it.
fn damage(file: &Path) -> (usize, Value) {
    let loaded = Reader::open(&OsFs, file).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(loaded.tail, Tail::Clean, "{}", file.display());
    let all = loaded.damage.into_iter().chain(loaded.value.verify_bodies());
    let all: Vec<Value> = all
        .map(|damage| json!({"offset": damage.at.off, "length": damage.at.len, "what": damage.to_string()}))
        .collect();
    (loaded.value.skeleton().unwrap().len(), json!(all))
}

#[test]
fn the_family_s_files_have_the_damage_that_is_known() {
    let Some((family, _)) = recorded() else { return };
    assert!(family.len() >= 20, "{family:?}");
    for file in family {
        let before = (std::fs::read(&file).unwrap(), std::fs::metadata(&file).unwrap().modified().unwrap());
        let (entries, found) = damage(&file);
        let name = file.file_name().unwrap().to_string_lossy();
        let known = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/damage").join(format!("{name}.json"));
        let known: Value = match std::fs::read(&known) {
            Ok(bytes) => serde_json::from_slice(&bytes).unwrap(),
            Err(_) => json!([]),
        };
        assert_eq!(found, known, "{name}:\n{}", serde_json::to_string_pretty(&found).unwrap());
        assert!(entries > 0, "{name}");
        let after = (std::fs::read(&file).unwrap(), std::fs::metadata(&file).unwrap().modified().unwrap());
        assert!(before == after, "{name} was touched");
    }
}

#[test]
fn every_stated_damage_belongs_to_a_recorded_file() {
    let Some((family, _)) = recorded() else { return };
    for stated in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/damage")).unwrap() {
        let name = stated.unwrap().file_name().into_string().unwrap();
        let of = name.strip_suffix(".json").unwrap();
        assert!(family.iter().any(|file| file.file_name().unwrap().to_string_lossy() == of), "{name}");
    }
}

#[test]
fn files_of_other_programs_are_refused_by_name_and_left_alone() {
    let Some((_, others)) = recorded() else { return };
    assert!(others.len() >= 5, "{others:?}");
    for file in others {
        let before = std::fs::read(&file).unwrap();
        let Err(refused @ OpenError::NoHeader { .. }) = Reader::open(&OsFs, &file) else {
            panic!("{} was opened", file.display())
        };
        assert!(refused.to_string().starts_with(&file.display().to_string()), "{refused}");
        assert!(std::fs::read(&file).unwrap() == before);
    }
}
