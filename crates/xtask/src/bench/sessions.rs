//! What a person waits for among many sessions: the list of them, and the page of one; beside pi.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::{Bench, Group, Row, on_path};
use crate::shell;
use crate::workspace::Workspace;

const COUNT: &str = "1000";
/// Of each, about.
const BYTES: &str = "100000";
/// Of the session that becomes a page.
const PAGE_BYTES: &str = "10000000";

/// The list of 1,000 sessions of about 100 KB, and the page of one of 10 MB. Their files stay under the target folder.
///
/// # Errors
/// When they cannot be made.
pub(super) fn groups(bench: &Bench, workspace: &Workspace) -> Result<Vec<Group>> {
    let home = workspace.target.join("tmp/sessions");
    Ok(vec![list(bench, workspace, &home)?, page(bench, &home)?])
}

/// Ours is the whole command, its start too; of pi, whose start takes more than a second, the call alone.
fn list(bench: &Bench, workspace: &Workspace, home: &Path) -> Result<Group> {
    let agent = home.join("agent");
    shell::run(Command::new(&bench.bulk).arg("sessions").arg(&agent).args([COUNT, BYTES]))?;
    // A home that no other program's sessions are in, and a working folder whose sessions these are not.
    let in_home = |mut row: Row, more: &[(&str, PathBuf)]| {
        row.environment = vec![("HOME".into(), home.into()), ("PATH".into(), bench.path.clone())];
        row.environment.extend(more.iter().map(|(name, value)| (OsString::from(*name), value.clone().into())));
        row
    };
    let gjc = |name: &str, arguments: &[&str], dir: &Path| {
        in_home(Row::new(name, &bench.gjc, arguments.iter().copied()), &[("GJC_CODING_AGENT_DIR", dir.to_path_buf())])
    };
    // The same files without the index, which each run makes anew.
    let bare = home.join("bare");
    if !bare.join("sessions").exists() {
        fs::create_dir_all(&bare)?;
        shell::run(Command::new("cp").arg("-al").arg(agent.join("sessions")).arg(&bare))?;
    }
    let clear = r#"rm -rf "$GJC_CODING_AGENT_DIR"/index.db* && exec "$0" "$@""#;
    let gjc_path = bench.gjc.display().to_string();
    let fresh = Row::new(
        "gjc sessions list, without its index",
        "/bin/sh",
        ["-c", clear, &gjc_path, "sessions", "list", "--json"],
    );
    let mut rows = vec![
        gjc("gjc sessions list", &["sessions", "list", "--json"], &agent),
        in_home(fresh, &[("GJC_CODING_AGENT_DIR", bare)]),
    ];
    let pi = bench.cache.pi_module();
    if let Some(node) = on_path(&bench.path, "node").filter(|_| pi.is_dir()) {
        let script = workspace.root.join("crates/testkit/pi/list-sessions.mjs");
        for (name, which) in
            [("pi, SessionManager.listAll", vec!["all"]), ("pi, SessionManager.list", vec!["here", "/srv/가재"])]
        {
            let arguments = [script.clone().into_os_string(), pi.clone().into_os_string()];
            let row = Row::new(name, node.clone(), arguments.into_iter().chain(which.into_iter().map(Into::into)));
            let mut row = in_home(row, &[("PI_CODING_AGENT_DIR", agent.clone())]);
            row.reports = true;
            rows.push(row);
        }
    }
    Ok(Group { title: format!("sessions: list of {COUNT}"), rows, stub: None })
}

fn page(bench: &Bench, home: &Path) -> Result<Group> {
    let (file, out) = (home.join("page.jsonl"), home.join("page.html"));
    shell::run(Command::new(&bench.bulk).arg("file").arg(&file).arg(PAGE_BYTES))?;
    // What is there is not replaced unasked.
    let anew = r#"rm -f "$2" && exec "$0" --export "$1" "$2""#;
    let shell = |name: &str, program: OsString, more: Option<PathBuf>| {
        let script = if more.is_some() { r#"rm -f "$3" && exec "$0" "$1" --export "$2" "$3""# } else { anew };
        let files = [file.clone().into_os_string(), out.clone().into_os_string()];
        let words = [OsString::from("-c"), script.into(), program].into_iter();
        let mut row = Row::new(name, "/bin/sh", words.chain(more.map(Into::into)).chain(files));
        row.environment = vec![
            ("HOME".into(), home.into()),
            ("GJC_CODING_AGENT_DIR".into(), home.join("page").into()),
            ("PI_CODING_AGENT_DIR".into(), home.join("pi").into()),
            ("PI_OFFLINE".into(), "1".into()),
        ];
        row
    };
    let mut rows = vec![shell("gjc --export", bench.gjc.clone().into(), None)];
    let pi = bench.cache.pi_program();
    if let Some(node) = on_path(&bench.path, "node").filter(|_| pi.exists()) {
        rows.push(shell("pi --export", node.into(), Some(pi)));
    }
    Ok(Group { title: "sessions: page of 10 MB".into(), rows, stub: None })
}
