use std::fs;
use std::path::PathBuf;

use testkit::grown::Watch;

fn session(old: &str) -> (tempfile::TempDir, PathBuf, Watch) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("버킷/s.jsonl");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, old).unwrap();
    let watch = Watch::new(dir.path());
    assert_eq!(watch.files().collect::<Vec<_>>(), [&file]);
    (dir, file, watch)
}

#[test]
fn growth_and_new_files_are_fine() {
    let (dir, file, mut watch) = session("{\"가\":1}\n");
    watch.check();
    fs::write(&file, "{\"가\":1}\n{\"나\":2}\n").unwrap();
    fs::write(dir.path().join("t.jsonl"), "").unwrap();
    fs::write(dir.path().join("other.json"), "1").unwrap();
    watch.check();
    assert_eq!(watch.files().count(), 2);
}

#[test]
fn a_changed_byte_is_named_with_its_line() {
    let (_dir, file, mut watch) = session("{\"a\":1}\n{\"b\":2}\n");
    fs::write(&file, "{\"a\":1}\n{\"b\":3}\n{\"c\":4}\n").unwrap();
    let said = watch.try_check().unwrap_err();
    assert!(said.contains("s.jsonl") && said.contains("byte 13, line 2"), "{said}");
    watch.check();
}

#[test]
fn a_shorter_or_vanished_file_fails() {
    let (_dir, file, mut watch) = session("{\"a\":1}\n{\"b\":2}\n");
    fs::write(&file, "{\"a\":1}\n").unwrap();
    assert!(watch.try_check().is_err());
    fs::remove_file(&file).unwrap();
    assert!(watch.try_check().unwrap_err().contains("vanished"));
}

#[test]
fn the_test_may_delete_what_it_names() {
    let (_dir, file, mut watch) = session("{\"a\":1}\n");
    watch.forget(&file);
    fs::remove_file(&file).unwrap();
    watch.check();
}

#[test]
fn a_torn_tail_may_be_cut_only_when_it_is_kept_beside() {
    let torn = "{\"말\":\"안";
    for (kept, fine) in [(Some(torn), true), (Some("{\"other"), false), (None, false)] {
        let (_dir, file, mut watch) = session(&format!("{{\"a\":1}}\n{torn}"));
        fs::write(&file, "{\"a\":1}\n{\"b\":2}\n").unwrap();
        if let Some(kept) = kept {
            fs::write(file.with_extension("jsonl.torn"), format!("# torn\n{kept}\n")).unwrap();
        }
        assert_eq!(watch.try_check().is_ok(), fine, "{kept:?}");
    }
}

#[test]
fn a_whole_line_is_no_torn_tail() {
    let (_dir, file, mut watch) = session("{\"a\":1}\n{\"b\":2}\n");
    fs::write(&file, "{\"a\":1}\n").unwrap();
    fs::write(file.with_extension("jsonl.torn"), "{\"b\":2}\n").unwrap();
    assert!(watch.try_check().is_err());
}

#[test]
fn a_move_to_the_trash_and_back_is_no_loss_and_anything_less_is() {
    let dir = tempfile::tempdir().unwrap();
    let (home, bin) = (dir.path().join("s.jsonl"), dir.path().join("trash/x"));
    fs::create_dir_all(&bin).unwrap();
    fs::write(&home, "a\n").unwrap();
    let mut watch = Watch::new(dir.path());
    fs::rename(&home, bin.join("s.jsonl")).unwrap();
    assert_eq!(watch.try_check(), Ok(()));
    fs::rename(bin.join("s.jsonl"), &home).unwrap();
    assert_eq!(watch.try_check(), Ok(()));
    fs::rename(&home, dir.path().join("elsewhere.jsonl")).unwrap();
    assert!(watch.try_check().unwrap_err().contains("vanished"));
    fs::write(bin.join("elsewhere.jsonl"), "b\n").unwrap();
    fs::remove_file(dir.path().join("elsewhere.jsonl")).unwrap();
    assert!(watch.try_check().unwrap_err().contains("vanished"), "other bytes under its name");
}
