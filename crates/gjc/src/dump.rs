//! `gjc sessions show --full`: a session as one text, printed or copied, with the settings that were recorded last.

use crate::failure::Failure;
use crate::sessions::{blobs_of, look};
use crate::{clipboard, out};
use gjc_context::{Folds, Settings, ToolDef};
use gjc_entry::{Blobs, Damage, Env, Leaf, RequestEnv};
use gjc_export::{Live, TextError};
use gjc_log::Reader;
use gjc_log::fs::OsFs;
use std::io::{BufWriter, ErrorKind, Write};
use std::path::Path;
use std::process::ExitCode;

/// Writes it to standard output, part by part.
pub(crate) fn run(env: &Env, path: &Path) -> Result<ExitCode, Failure> {
    let mut out = BufWriter::new(std::io::stdout().lock());
    let damage = match write(env, path, &mut out) {
        Ok(damage) => damage,
        // Whoever reads has had enough.
        Err(NotDumped::Text(TextError::Io(why))) if why.kind() == ErrorKind::BrokenPipe => Vec::new(),
        Err(why) => return Err(why.into()),
    };
    drop(out);
    tell(&damage);
    Ok(ExitCode::SUCCESS)
}

/// Puts it into the clipboard.
pub(crate) fn copy(env: &Env, path: &Path) -> Result<ExitCode, Failure> {
    let mut text = Vec::new();
    let damage = write(env, path, &mut text)?;
    let bytes = text.len();
    let by = clipboard::copy(env, text)?;
    out::notice(&format!("gjc: the session is in the clipboard: {bytes} bytes, by {by}"));
    tell(&damage);
    Ok(ExitCode::SUCCESS)
}

/// Why there is no dump.
enum NotDumped {
    Text(TextError),
    Failed(Failure),
}

impl From<NotDumped> for Failure {
    fn from(why: NotDumped) -> Self {
        match why {
            NotDumped::Text(error) => Self::new(error.to_string()),
            NotDumped::Failed(failure) => failure,
        }
    }
}

fn write(env: &Env, path: &Path, out: &mut dyn Write) -> Result<Vec<Damage>, NotDumped> {
    let loaded = look(env, path).map_err(NotDumped::Failed)?;
    let recorded = recorded(&loaded.value, &blobs_of(env, path)).map_err(NotDumped::Failed)?;
    let live = recorded.as_ref().map(|(env, system, tools)| Live {
        system,
        tools,
        model: &env.model,
        thinking: env.thinking,
        tier: env.tier,
    });
    let written = gjc_export::text(&loaded.value, Leaf::Current, live, out);
    written.and_then(|()| Ok(out.flush()?)).map_err(NotDumped::Text)?;
    Ok(loaded.damage)
}

fn tell(damage: &[Damage]) {
    for damage in damage {
        out::talk(&format!("gjc: {}", out::row(&damage.to_string())));
    }
}

/// The settings of the last request: a blob that is not there says so in its place.
fn recorded(reader: &Reader<OsFs>, blobs: &dyn Blobs) -> Result<Option<(RequestEnv, String, Vec<ToolDef>)>, Failure> {
    let mut folds = Folds::default();
    let settings = folds.get::<Settings>(reader, Leaf::Current).map_err(|error| Failure::new(error.to_string()))?;
    let Some(env) = settings.env.clone() else { return Ok(None) };
    let system = match blobs.get(&env.system) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(missing) => missing.to_string(),
    };
    let tools = blobs.get(&env.tools).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
    Ok(Some((env, system, tools)))
}
