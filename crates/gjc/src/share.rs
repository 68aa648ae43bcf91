//! `gjc sessions share`: the page of a session, without keys, to others. What was taken out is shown first, and nothing is sent
//! without a yes.

use crate::confirm::confirm;
use crate::failure::Failure;
use crate::out;
use crate::print::interrupted;
use crate::sessions::{blobs_of, look, print_json};
use crate::settings::{Files, variables};
use crate::world::{real_dir, runtime};
use gjc_agent::{Shareable, Sharing};
use gjc_entry::{Env, Level};
use gjc_flow::Policy;
use gjc_log::fs::OsFs;
use gjc_settings::{Secrecy, Settings};
use schemars::JsonSchema;
use serde::Serialize;
use std::path::Path;
use std::process::ExitCode;
use tokio_util::sync::CancellationToken;

/// What `gjc sessions share --json` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct SharedJson {
    /// The session's id.
    session: String,
    /// Where it went.
    to: String,
    /// The address that the program has told.
    address: Option<String>,
    /// Bytes of the page.
    bytes: usize,
    /// What was taken out.
    masked: Vec<MaskedJson>,
}

/// A kind of secret that was taken out.
#[derive(Serialize, JsonSchema)]
pub(crate) struct MaskedJson {
    /// What it is called.
    kind: String,
    /// How often.
    count: usize,
}

/// Where sessions are shared, by the settings.
pub(crate) fn sharing(settings: &Settings) -> Sharing {
    let level = match settings.share.level {
        Secrecy::Public => Level::Public,
        Secrecy::Internal => Level::Internal,
        Secrecy::Confidential => Level::Confidential,
        Secrecy::Restricted => Level::Restricted,
    };
    Sharing { command: settings.share.command.as_ref().map(|line| line.0.clone()), level }
}

/// Shows what would be sent, asks, sends.
pub(crate) fn run(env: &Env, file: &Path, yes: bool, json: bool) -> Result<ExitCode, Failure> {
    let settings = Files::read(env, &real_dir(Path::new("."))?)?.effective(&variables(env)).settings;
    let sharing = sharing(&settings);
    let (policy, blobs) = (Policy::default(), blobs_of(env, file));
    let make = |at| Shareable::of(&OsFs, file, &blobs, &env.vars, at, (&sharing, &policy));
    // Opening says best what is no session.
    look(env, file)?;
    let seen = make(env.clock.wall())?;
    show(&seen, &sharing);
    if !yes && !confirm("share it?")? {
        return Err(Failure::declined("nothing was sent"));
    }
    // Looked at again, however long the person thought: what has come to know more since then is refused, and what has
    // changed in any other way is not what was said yes to.
    let page = make(seen.at)?;
    if page.token() != seen.token() {
        return Err(Failure::new("the session has changed since you saw it; nothing was sent")
            .hint(format!("look again: gjc sessions share {}", page.session)));
    }
    drop(seen);
    let (permit, labels) = page.leave(&sharing, &policy)?;
    let session = page.session.to_string();
    let masked = page.masked.kinds().map(|(kind, count)| MaskedJson { kind: kind.into(), count }).collect();
    let bytes = page.bytes.len();
    let address = runtime()?.block_on(async {
        let cancel = CancellationToken::new();
        let watch = labels.watch();
        let send = sharing.send(page, permit, &watch, env, cancel.clone());
        tokio::pin!(send);
        tokio::select! {
            biased;
            () = interrupted() => {
                cancel.cancel();
                send.await
            }
            sent = &mut send => sent,
        }
    })?;
    if json {
        return Ok(print_json(&SharedJson { session, to: sharing.place().into(), address, bytes, masked }));
    }
    match address {
        Some(address) => out::line(&out::row(&address)),
        None => out::notice("gjc: it was shared; the program has told no address"),
    }
    Ok(ExitCode::SUCCESS)
}

/// What a person says yes to.
fn show(page: &Shareable, sharing: &Sharing) {
    out::talk(&format!("gjc: {} ({} bytes) goes to {}", out::row(&page.name), page.bytes.len(), sharing.place()));
    if page.masked.count() == 0 {
        out::talk("gjc: nothing in it looks like a key; all branches, the system prompt and the tools are in it");
        return;
    }
    out::talk("gjc: taken out of it:");
    for (kind, count) in page.masked.kinds() {
        out::talk(&format!("  {count:>4} × {}", crate::words::told(kind)));
    }
}
