//! What a person reads when a program cannot be started.

use std::os::unix::fs::PermissionsExt;

use gjc_process::{Spawn, SpawnError, run};
use tokio_util::sync::CancellationToken;

use crate::support::sh;

async fn refused(spawn: Spawn) -> SpawnError {
    run(spawn, CancellationToken::new(), None).await.unwrap_err()
}

#[tokio::test]
async fn a_missing_program_is_named() {
    let mut spawn = sh("");
    for program in ["없는프로그램", "/no/such/file"] {
        spawn.program = program.into();
        let error = refused(spawn.clone()).await;
        assert!(matches!(error, SpawnError::ProgramMissing { .. }), "{error:?}");
        assert_eq!(
            error.to_string(),
            format!(
                "cannot start `{program}`: there is no such program.\nhint: check the spelling, install it, or give its full path"
            )
        );
    }
}

#[tokio::test]
async fn the_path_that_counts_is_the_one_given() {
    let mut spawn = sh("exit 0");
    spawn.env = vec![("PATH".into(), "/nowhere".into())];
    assert!(matches!(refused(spawn).await, SpawnError::ProgramMissing { .. }));
}

#[tokio::test]
async fn a_name_means_no_file_of_the_working_folder_whatever_path_says() {
    let dir = tempfile::tempdir().unwrap();
    for folder in ["", "bin", "도구"] {
        let file = dir.path().join(folder).join("어떤-프로그램");
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, "#!/bin/sh\n: > ran\n").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let mut spawn = sh("");
    spawn.cwd = dir.path().into();
    spawn.program = "어떤-프로그램".into();
    for path in ["", ".", ":/usr/bin", "/usr/bin:", "./bin:/usr/bin", "bin", "도구/.:/bin"] {
        spawn.env = vec![("PATH".into(), path.into())];
        assert!(matches!(refused(spawn.clone()).await, SpawnError::ProgramMissing { .. }), "{path:?}");
    }
    assert!(!dir.path().join("ran").exists());
    // One that is named by its whole path is meant; its own name is what was asked for.
    spawn.env = vec![("PATH".into(), format!(".:{}", dir.path().join("도구").display()).into())];
    run(spawn, CancellationToken::new(), None).await.unwrap();
    assert!(dir.path().join("ran").exists());
}

#[tokio::test]
async fn a_missing_directory_is_not_blamed_on_the_program() {
    let dir = tempfile::tempdir().unwrap();
    let mut spawn = sh("");
    spawn.cwd = dir.path().join("없음");
    let error = refused(spawn.clone()).await;
    assert!(matches!(error, SpawnError::CwdMissing { .. }), "{error:?}");
    assert!(error.to_string().contains("없음 does not exist.\nhint: create it"), "{error}");

    std::fs::write(&spawn.cwd, "").unwrap();
    let error = refused(spawn).await;
    assert!(matches!(error, SpawnError::CwdNotADirectory { .. }), "{error:?}");
}

#[tokio::test]
async fn a_file_that_may_not_be_executed_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let script = dir.path().join("script");
    std::fs::write(&script, "#!/no/such/interpreter\n").unwrap();
    let error = refused(Spawn::new(&script, dir.path())).await;
    assert!(matches!(error, SpawnError::Denied { .. }), "{error:?}");
    assert!(error.to_string().contains("chmod +x"));

    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o700)).unwrap();
    let error = refused(Spawn::new(&script, dir.path())).await;
    assert!(matches!(error, SpawnError::InterpreterMissing { .. }), "{error:?}");
}

#[tokio::test]
async fn what_the_kernel_does_not_take_is_explained() {
    let mut spawn = sh("");
    spawn.args.push("x".repeat(10_000_000).into());
    assert!(matches!(refused(spawn).await, SpawnError::TooLong { .. }));

    let mut spawn = sh("");
    spawn.args.push("a\0b".into());
    assert!(matches!(refused(spawn).await, SpawnError::Nul { .. }));
}
