//! What the commands of a session may reach: options over settings, and in a session that goes on never looser than it was,
//! unless an option says so.

use crate::cli::SandboxArgs;
use crate::failure::Failure;
use crate::world::real_dir;
use gjc_entry::{Env, Held, HeldBy};
use gjc_process::Network;
use gjc_settings::{Access, Settings};
use gjc_tools::{Confinement, SandboxMode};
use std::path::PathBuf;

/// What was decided.
pub(crate) struct Decided {
    /// For the tools.
    pub(crate) confinement: Confinement,
    /// For the session.
    pub(crate) held: Held,
    /// What a person should know of it.
    pub(crate) notices: Vec<String>,
}

/// From options, settings (options are among them), and how the session was held when it was last used. `over`: a process goes
/// over to it, and its options do not speak of it: they loosen nothing.
pub(crate) fn decide(
    env: &Env,
    args: &SandboxArgs,
    settings: &Settings,
    before: Option<Held>,
    over: bool,
) -> Result<Decided, Failure> {
    let mut notices = Vec::new();
    let asked = Held {
        sandbox: match settings.sandbox.mode {
            gjc_settings::SandboxMode::Require => HeldBy::Require,
            gjc_settings::SandboxMode::Auto => HeldBy::Auto,
            gjc_settings::SandboxMode::Off => HeldBy::Off,
        },
        network: settings.sandbox.network == Access::Allowed,
    };
    let mut held = asked;
    if let Some(before) = before {
        if over || args.sandbox.is_none() {
            held.sandbox = asked.sandbox.min(before.sandbox);
        }
        if over || args.sandbox_network.is_none() {
            held.network = asked.network && before.network;
        }
    }
    if held.sandbox != asked.sandbox {
        let (was, now) = (word(held.sandbox), word(asked.sandbox));
        notices.push(format!(
            "the session keeps its sandbox ({was}), which is stricter than the settings; --sandbox {now} loosens it"
        ));
    }
    if held.network != asked.network {
        notices.push(
            "the session's commands go on without the network; --sandbox-network allowed gives it to them".into(),
        );
    }
    let confinement = Confinement {
        mode: match held.sandbox {
            HeldBy::Require => SandboxMode::Require,
            HeldBy::Auto => SandboxMode::Auto,
            HeldBy::Off => SandboxMode::Off,
        },
        network: if held.network { Network::Allowed } else { Network::Denied },
        write: folders(env, args, settings, &mut notices)?,
        ..Confinement::auto(&env.dirs)
    };
    Ok(Decided { confinement, held, notices })
}

/// The word of the option and of the setting.
fn word(held: HeldBy) -> &'static str {
    match held {
        HeldBy::Require => "require",
        HeldBy::Auto => "auto",
        HeldBy::Off => "off",
    }
}

/// The folders beside the workspace, as real paths. One that is typed must be there; one of the settings may be on a disk that is
/// away today.
fn folders(
    env: &Env,
    args: &SandboxArgs,
    settings: &Settings,
    notices: &mut Vec<String>,
) -> Result<Vec<PathBuf>, Failure> {
    if !args.sandbox_write.is_empty() {
        return args.sandbox_write.iter().map(|dir| real_dir(dir)).collect();
    }
    let mut found = Vec::new();
    for dir in settings.sandbox.write.below(&env.dirs.home) {
        match real_dir(&dir) {
            Ok(real) => found.push(real),
            Err(_) => notices.push(format!("sandbox.write names {}, which is no folder here", dir.display())),
        }
    }
    Ok(found)
}
