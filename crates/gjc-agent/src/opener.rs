//! A file is opened for a person, by the program that the desktop has for its kind.

use gjc_entry::Vars;
use gjc_process::{Exit, Spawn};
use std::path::Path;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// It is begun and not waited for: the first window of a browser is a program that lives as long as the browser. So it gets a
/// session of its own, and nothing of ours to write to. `$0` is the file.
const BEGIN: &str = "command -v setsid >/dev/null && command -v xdg-open >/dev/null || exit 127; exec setsid xdg-open \"$0\" >/dev/null 2>&1";
/// To begin it takes no time at all.
const LIMIT: Duration = Duration::from_secs(10);

/// Begins to open a file, whose path is absolute.
///
/// # Errors
/// Why not, as a sentence.
pub(crate) async fn open(vars: &Vars, file: &Path) -> Result<(), String> {
    if vars.get("DISPLAY").is_none() && vars.get("WAYLAND_DISPLAY").is_none() {
        return Err("it is not opened: there is no desktop here".into());
    }
    // Where `PATH` has an entry that is not absolute, no file of a project is meant by it.
    let mut spawn = Spawn::new("sh", "/");
    spawn.args = vec!["-c".into(), BEGIN.into(), file.into()];
    spawn.env = vars.iter().map(|(name, value)| (name.into(), value.into())).collect();
    spawn.timeout = Some(LIMIT);
    match gjc_process::run(spawn, CancellationToken::new(), None).await {
        Ok(ran) if ran.exit == Exit::Code(0) => Ok(()),
        Ok(ran) if ran.exit == Exit::Code(127) => {
            Err("it is not opened: the program xdg-open is not there; xdg-utils has it".into())
        }
        Ok(_) => Err("it is not opened: xdg-open could not be started".into()),
        Err(error) => Err(format!("it is not opened: {error}")),
    }
}
