//! `gjc sessions show --full`: a session as one text, with the settings that were recorded last.

use crate::failure::Failure;
use crate::out;
use crate::sessions::{blobs_of, look};
use gjc_context::{Folds, Settings, ToolDef};
use gjc_entry::{Blobs, Env, Leaf, RequestEnv};
use gjc_export::{Live, TextError};
use gjc_log::Reader;
use gjc_log::fs::OsFs;
use std::io::{BufWriter, ErrorKind, Write};
use std::path::Path;
use std::process::ExitCode;

/// Writes it to standard output, part by part.
pub(crate) fn run(env: &Env, path: &Path) -> Result<ExitCode, Failure> {
    let loaded = look(env, path)?;
    let recorded = recorded(&loaded.value, &blobs_of(env, path))?;
    let live = recorded.as_ref().map(|(env, system, tools)| Live {
        system,
        tools,
        model: &env.model,
        thinking: env.thinking,
        tier: env.tier,
    });
    let mut out = BufWriter::new(std::io::stdout().lock());
    let written = gjc_export::text(&loaded.value, Leaf::Current, live, &mut out);
    match written.and_then(|()| Ok(out.flush()?)) {
        // Whoever reads has had enough.
        Err(TextError::Io(why)) if why.kind() == ErrorKind::BrokenPipe => {}
        written => written.map_err(|error| Failure::new(error.to_string()))?,
    }
    drop(out);
    for damage in &loaded.damage {
        out::talk(&format!("gjc: {}", out::row(&damage.to_string())));
    }
    Ok(ExitCode::SUCCESS)
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
