//! What the sandbox of commands holds: what the kernel offers, and what attempts from inside really come to. All of it
//! happens in a temporary folder with a home of its own; no real key is ever tried.

use super::Finding;
use crate::failure::Failure;
use crate::world;
use gjc_entry::{Dirs, Env};
use gjc_process::{Lack, Network, Spawn, Support};
use gjc_tools::{Confinement, SandboxMode, describe, sandbox_of};
use std::fs;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::path::Path;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// What an attempt finds in the home of the trial.
const PLANTED: &str = "a planted key";

pub(super) fn findings(env: &Env, cwd: &Path) -> Result<Vec<Finding>, Failure> {
    let how = Confinement::auto(&env.dirs);
    let mut findings = vec![kernel(&how.support)];
    if how.support.is_nothing() {
        return Ok(findings);
    }
    findings.push(trial(env, &how.support)?);
    if how.support.landlock.is_err() {
        return Ok(findings);
    }
    let workspace = describe(&how, cwd, &env.vars);
    findings.push(match how.notices(cwd).into_iter().find(|notice| notice.contains("home folder")) {
        Some(_) => Finding::note("workspace", workspace, "use --cwd with the folder of a project"),
        None => Finding::ok("workspace", workspace),
    });
    Ok(findings)
}

fn kernel(support: &Support) -> Finding {
    let offers = match (&support.landlock, support.seccomp) {
        (Ok(version), true) => format!("Landlock {version} and seccomp"),
        (Ok(version), false) => format!("Landlock {version}, no seccomp"),
        (Err(why), true) => format!("seccomp alone: {}", why.reason()),
        (Err(why), false) => format!("none: {}", why.reason()),
    };
    let essential = support.essential();
    match essential.first() {
        Some(_) => {
            let lacks: Vec<_> = essential.iter().map(|lack| lack.sentence()).collect();
            Finding::note(
                "sandbox",
                format!("{offers}; {}", lacks.join("; ")),
                "a newer kernel, or a container that lets these calls through; --sandbox require runs no command without",
            )
        }
        None => {
            // Covered by other means: local sockets are closed where one leads outside.
            let lacks = support.lacks().into_iter().filter(|lack| *lack != Lack::LocalSockets);
            let lacks: Vec<_> = lacks.map(|lack| format!("; {}", lack.sentence())).collect();
            Finding::ok("sandbox", format!("{offers}{}", lacks.concat()))
        }
    }
}

/// Attempts from inside, each judged by what came of it.
fn trial(env: &Env, support: &Support) -> Result<Finding, Failure> {
    let cannot = |why: String| {
        Finding::problem(
            "attempts",
            format!("could not be made: {why}"),
            "make room in the temporary folder, or set TMPDIR",
        )
    };
    let world = match tempfile::Builder::new().prefix("gjc-doctor-").tempdir_in(&env.dirs.temp) {
        Ok(world) => world,
        Err(error) => return Ok(cannot(format!("{}: {error}", env.dirs.temp.display()))),
    };
    // The kernel's rules are about real paths.
    let root = world.path().canonicalize().unwrap_or_else(|_| world.path().into());
    let dirs = Dirs { home: root.join("home"), agent: root.join("home/.gjc/agent"), temp: root.join("temp") };
    let made = [root.join("work"), root.join("outside"), dirs.home.join(".ssh"), dirs.temp.clone()]
        .iter()
        .try_for_each(fs::create_dir_all)
        .and_then(|()| fs::write(dirs.home.join(".ssh/id"), PLANTED));
    let door = made.and_then(|()| TcpListener::bind("127.0.0.1:0"));
    let (door, port) = match door.and_then(|door| Ok((door.local_addr()?.port(), door))) {
        Ok((port, door)) => (door, port),
        Err(error) => return Ok(cannot(error.to_string())),
    };
    door.set_nonblocking(true).map_err(|error| Failure::new(error.to_string()))?;

    let how = Confinement {
        mode: SandboxMode::Auto,
        network: Network::Denied,
        write: Vec::new(),
        dirs: dirs.clone(),
        support: support.clone(),
    };
    let mut spawn = Spawn::new("bash", root.join("work"));
    let script =
        format!("echo x > made; echo x > ../outside/made; cat ../home/.ssh/id; exec 3<>/dev/tcp/127.0.0.1/{port}");
    spawn.args = vec!["-c".into(), script.into()];
    spawn.env = env.vars.get("PATH").map(|path| ("PATH".into(), path.into())).into_iter().collect();
    spawn.timeout = Some(Duration::from_secs(10));
    spawn.sandbox = sandbox_of(&how, &env.vars, &root.join("work"))?;
    let ran = world::runtime()?.block_on(gjc_process::run(spawn, CancellationToken::new(), None));
    let said = match ran {
        Ok(finished) => finished.output.text(),
        Err(error) => {
            let text = error.to_string();
            let (says, hint) = text.split_once("\nhint: ").unwrap_or((&text, "install bash"));
            return Ok(Finding::problem("attempts", says, hint));
        }
    };
    if !root.join("work/made").exists() {
        return Ok(Finding::problem(
            "attempts",
            "a command in the sandbox cannot write where it may",
            "run with --sandbox off, and report what the temporary folder is on",
        ));
    }
    let through: Vec<_> = [
        (root.join("outside/made").exists(), "a file outside was written"),
        (said.contains(PLANTED), "a key of the home folder was read"),
        (!door.accept().is_err_and(|error| error.kind() == ErrorKind::WouldBlock), "a denied network was reached"),
    ]
    .into_iter()
    .filter_map(|(through, what)| through.then_some(what))
    .collect();
    Ok(if through.is_empty() {
        Finding::ok("attempts", "writing outside, reading a key and a denied network were tried from inside and failed")
    } else if support.essential().is_empty() {
        Finding::problem(
            "attempts",
            through.join("; "),
            "the kernel offers what it does not hold; use --tools read here",
        )
    } else {
        Finding::note("attempts", through.join("; "), "as the kernel's lacks say; --sandbox require runs no command")
    })
}
