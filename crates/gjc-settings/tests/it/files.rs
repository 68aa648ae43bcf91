//! Files as attacks: links, pipes, sizes, spellings of paths, and a swap between the look and the trust.

use gjc_settings::{
    ContentHash, Document, FileError, LARGEST, Scope, Trust, project_file, project_root, read_project, read_user, write,
};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

struct Place {
    _dir: tempfile::TempDir,
    agent: PathBuf,
    root: PathBuf,
    user: PathBuf,
}

fn place() -> Place {
    let dir = tempfile::tempdir().unwrap();
    let real = dir.path().canonicalize().unwrap();
    let (agent, root) = (real.join("agent"), real.join("프로젝트"));
    fs::create_dir_all(&agent).unwrap();
    fs::create_dir_all(root.join(".gjc")).unwrap();
    Place { _dir: dir, user: agent.join("config.yml"), agent, root }
}

#[test]
fn the_project_is_the_nearest_repository_or_the_folder_itself() {
    let place = place();
    let deep = place.root.join("src/깊은/곳");
    fs::create_dir_all(&deep).unwrap();
    assert_eq!(project_root(&deep), deep);
    fs::create_dir(place.root.join(".git")).unwrap();
    assert_eq!(project_root(&deep), place.root);
    // A worktree has a file there.
    fs::write(place.root.join("src/.git"), "gitdir: x").unwrap();
    assert_eq!(project_root(&deep), place.root.join("src"));
}

#[test]
fn no_link_of_a_project_is_followed() {
    let place = place();
    let elsewhere = place.agent.join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::write(elsewhere.join("config.yml"), "tools: []\n").unwrap();
    symlink(elsewhere.join("config.yml"), project_file(&place.root)).unwrap();
    let link = |place: &Place| match read_project(&place.root, &place.user) {
        Err(FileError::Link { path }) => path,
        other => panic!("{other:?}"),
    };
    assert_eq!(link(&place), project_file(&place.root));
    fs::remove_dir_all(place.root.join(".gjc")).unwrap();
    symlink(&elsewhere, place.root.join(".gjc")).unwrap();
    assert_eq!(link(&place), place.root.join(".gjc"));
    // A link to nothing is a link all the same.
    fs::remove_file(place.root.join(".gjc")).unwrap();
    symlink("/nowhere/at/all", place.root.join(".gjc")).unwrap();
    assert_eq!(link(&place), place.root.join(".gjc"));
}

#[test]
fn what_is_no_file_is_not_waited_for() {
    let place = place();
    assert!(read_project(&place.root, &place.user).unwrap().is_none());
    fs::create_dir(project_file(&place.root)).unwrap();
    assert!(matches!(read_project(&place.root, &place.user), Err(FileError::NoFile { .. })));
    fs::remove_dir(project_file(&place.root)).unwrap();
    for path in [project_file(&place.root), place.user.clone()] {
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    }
    assert!(matches!(read_project(&place.root, &place.user), Err(FileError::NoFile { .. })));
    assert!(matches!(read_user(&place.user), Err(FileError::NoFile { .. })));
}

#[test]
fn a_file_in_the_place_of_a_folder_holds_no_settings() {
    let place = place();
    fs::remove_dir(place.root.join(".gjc")).unwrap();
    fs::write(place.root.join(".gjc"), "길을 막음").unwrap();
    assert!(read_project(&place.root, &place.user).unwrap().is_none());
    fs::remove_dir(&place.agent).unwrap();
    fs::write(&place.agent, "길을 막음").unwrap();
    assert!(read_user(&place.user).unwrap().is_none());
    assert!(matches!(write(&place.user, None, "tools: []\n"), Err(FileError::Unwritable { .. })));
    assert_eq!(fs::read_to_string(&place.agent).unwrap(), "길을 막음");
}

#[test]
fn a_huge_file_is_not_read() {
    let place = place();
    // Two thousand times the limit, and no byte of it on the disk.
    let file = fs::File::create(project_file(&place.root)).unwrap();
    file.set_len(LARGEST * 2000).unwrap();
    assert!(matches!(read_project(&place.root, &place.user), Err(FileError::TooLarge { .. })));
    file.set_len(LARGEST + 1).unwrap();
    assert!(matches!(read_project(&place.root, &place.user), Err(FileError::TooLarge { .. })));
    file.set_len(LARGEST).unwrap();
    assert_eq!(read_project(&place.root, &place.user).unwrap().unwrap().len() as u64, LARGEST);
}

#[test]
fn a_person_s_own_file_is_not_taken_for_a_project_s() {
    let place = place();
    let user = project_file(&place.root);
    fs::write(&user, "providers:\n  anthropic:\n    url: http://127.0.0.1:1\n").unwrap();
    assert!(read_project(&place.root, &user).unwrap().is_none());
    assert!(read_project(&place.root, &place.user).unwrap().is_some());
}

#[test]
fn trust_is_for_these_bytes_at_this_path() {
    let place = place();
    let trust = Trust::new(&place.agent);
    let hash = ContentHash::of(b"tools: []\n");
    assert!(!trust.holds(&place.root, &hash));
    trust.grant(&place.root, &hash).unwrap();
    assert!(trust.holds(&place.root, &hash));
    for other in [&b"tools: [] \n"[..], b"tools: []", b"", b"tools: []\r\n"] {
        assert!(!trust.holds(&place.root, &ContentHash::of(other)));
    }
    // Another spelling of the path is another project.
    let name = place.root.display().to_string();
    let decomposed =
        name.replace("프로젝트", "\u{1111}\u{1173}\u{1105}\u{1169}\u{110C}\u{1166}\u{11A8}\u{1110}\u{1173}");
    assert_ne!(decomposed, name);
    for path in [decomposed, name.to_uppercase(), format!("{name}/"), format!("{name}2"), format!("{name}/../프로젝트")]
    {
        assert!(!trust.holds(Path::new(&path), &hash), "{path}");
    }
    // New bytes take the place of the old ones.
    let newer = ContentHash::of(b"tools: [read]\n");
    trust.grant(&place.root, &newer).unwrap();
    assert!(trust.holds(&place.root, &newer) && !trust.holds(&place.root, &hash));
}

#[test]
fn a_broken_trust_is_none() {
    let place = place();
    let trust = Trust::new(&place.agent);
    let hash = ContentHash::of(b"x");
    trust.grant(&place.root, &hash).unwrap();
    let files: Vec<_> = fs::read_dir(place.agent.join("trust")).unwrap().map(|file| file.unwrap().path()).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    assert_eq!(fs::metadata(&files[0]).unwrap().permissions().mode() & 0o777, 0o600);
    let whole = fs::read(&files[0]).unwrap();
    for end in 0..hash.to_string().len() + 1 {
        fs::write(&files[0], &whole[..end]).unwrap();
        assert!(!trust.holds(&place.root, &hash), "{end}");
    }
    fs::remove_file(&files[0]).unwrap();
    fs::create_dir(&files[0]).unwrap();
    assert!(!trust.holds(&place.root, &hash) && trust.grant(&place.root, &hash).is_err());
}

#[test]
fn a_file_that_is_swapped_between_the_look_and_the_trust_gains_nothing() {
    let place = place();
    let file = project_file(&place.root);
    fs::write(&file, "retry: {attempts: 1}\n").unwrap();
    let bytes = read_project(&place.root, &place.user).unwrap().unwrap();
    let seen = Document::parse(&file, &bytes, Scope::Project).unwrap();
    fs::write(&file, "retry: {attempts: 20}\n").unwrap();
    let trust = Trust::new(&place.agent);
    trust.grant(&place.root, seen.hash()).unwrap();
    // What counts now is what was seen; what stands there now is not trusted.
    assert_eq!(seen.entries()[0].plain, gjc_settings::Plain::Number(1));
    let bytes = read_project(&place.root, &place.user).unwrap().unwrap();
    let now = Document::parse(&file, &bytes, Scope::Project).unwrap();
    assert!(!trust.holds(&place.root, now.hash()));
}

#[test]
fn a_file_is_replaced_in_one_step_and_only_if_nobody_changed_it() {
    let place = place();
    let deep = place.agent.join("없던/곳/config.yml");
    write(&deep, None, "tools: []\n").unwrap();
    assert_eq!(fs::metadata(deep.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
    assert!(matches!(write(&deep, None, "x"), Err(FileError::Changed { .. })));
    assert!(matches!(write(&deep, Some(b"tools: [read]\n"), "x"), Err(FileError::Changed { .. })));
    assert_eq!(fs::read_to_string(&deep).unwrap(), "tools: []\n");
    fs::set_permissions(&deep, fs::Permissions::from_mode(0o640)).unwrap();
    let old = fs::metadata(&deep).unwrap().ino();
    write(&deep, Some(b"tools: []\n"), "tools: [bash]\n").unwrap();
    let new = fs::metadata(&deep).unwrap();
    assert_ne!(new.ino(), old, "whoever has the old file open keeps all of it");
    assert_eq!(new.permissions().mode() & 0o777, 0o640);
    assert_eq!(fs::read_dir(deep.parent().unwrap()).unwrap().count(), 1, "nothing is left beside it");
}

#[test]
fn a_person_s_link_stays_a_link() {
    let place = place();
    let kept = place.root.join("dotfiles.yml");
    fs::write(&kept, "tools: []\n").unwrap();
    symlink(&kept, &place.user).unwrap();
    assert_eq!(read_user(&place.user).unwrap().unwrap(), b"tools: []\n");
    write(&place.user, Some(b"tools: []\n"), "tools: [read]\n").unwrap();
    assert!(place.user.symlink_metadata().unwrap().is_symlink());
    assert_eq!(fs::read_to_string(&kept).unwrap(), "tools: [read]\n");
    fs::remove_file(&kept).unwrap();
    assert!(write(&place.user, None, "tools: []\n").is_err(), "a link to nothing is not written through");
}

#[test]
fn of_many_writers_at_once_one_wins_each_time() {
    let place = place();
    let path = &place.user;
    fs::write(path, "0").unwrap();
    let won: usize = std::thread::scope(|scope| {
        let hands: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    (0..20)
                        .filter(|_| {
                            let before = read_user(path).unwrap().unwrap();
                            let count: usize = std::str::from_utf8(&before).unwrap().parse().unwrap();
                            write(path, Some(&before), &(count + 1).to_string()).is_ok()
                        })
                        .count()
                })
            })
            .collect();
        hands.into_iter().map(|hand| hand.join().unwrap()).sum()
    });
    let count: usize = fs::read_to_string(path).unwrap().parse().unwrap();
    assert_eq!(count, won, "no write that was told to be done was lost");
    assert!(won >= 20);
}
