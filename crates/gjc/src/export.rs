//! `gjc --export` and `gjc sessions export`: a session as a page. It is only looked at: no lock, no breadcrumb, nothing made
//! where it is missing.

use crate::cli::ExportArgs;
use crate::failure::Failure;
use crate::out;
use crate::sessions::{blobs_of, print_json};
use gjc_entry::{Env, Source};
use gjc_export::{Kept, Making, Replace, children, default_name, html, to_file};
use gjc_log::Reader;
use gjc_log::fs::OsFs;
use schemars::JsonSchema;
use serde::Serialize;
use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// What takes no longer is not worth a word.
const SOON: Duration = Duration::from_millis(500);

/// What `gjc sessions export --json` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ExportJson {
    /// The session's id.
    session: String,
    /// Its file.
    from: String,
    /// The page.
    page: String,
    /// Bytes of the page.
    bytes: u64,
    /// Entries in it, all branches together.
    entries: usize,
    /// How many places of the session are damaged.
    damaged: usize,
}

/// `gjc --export FILE [OUT]`.
pub(crate) fn file(env: &Env, args: ExportArgs) -> Result<ExitCode, Failure> {
    let mut paths = args.export.unwrap_or_default().into_iter();
    let session = paths.next().unwrap_or_default();
    run(env, &session, paths.next(), args.force, false)
}

/// Makes the page of a session file.
pub(crate) fn run(
    env: &Env,
    session: &Path,
    to: Option<PathBuf>,
    force: bool,
    json: bool,
) -> Result<ExitCode, Failure> {
    let loaded = Reader::open(&OsFs, session)?;
    let page = page_of(session, to)?;
    let blobs = blobs_of(env, session);
    let children = children(&OsFs, session);
    let (begun, shown) = (env.clock.mono(), Cell::new(false));
    let progress = |done: usize, of: usize| {
        if env.clock.mono().duration_since(begun) > SOON {
            shown.set(true);
            out::progress(&format!("{done} of {of} entries"));
        }
    };
    let making = Making { blobs: &blobs, children: &children, at: env.clock.wall(), mask: None, progress: &progress };
    let replace = if force { Replace::Any } else { Replace::Pages };
    let kept = Kept { source: session, own: Some(&env.dirs.agent) };
    let wrote = to_file(&OsFs, &page, replace, kept, |out| html(&loaded, &making, out));
    if shown.get() {
        out::progress("");
    }
    let bytes = wrote?;
    if json {
        return Ok(print_json(&ExportJson {
            session: loaded.value.header().id.to_string(),
            from: session.display().to_string(),
            page: page.display().to_string(),
            bytes,
            entries: loaded.value.skeleton().map_or(0, gjc_entry::Skeleton::len),
            damaged: loaded.damage.len(),
        }));
    }
    out::line(&out::row(&page.display().to_string()));
    if let count @ 1.. = loaded.damage.len() {
        let places = if count == 1 { "one place".into() } else { format!("{count} places") };
        out::notice(&format!("gjc: the session is damaged in {places}; the page says where"));
    }
    Ok(ExitCode::SUCCESS)
}

/// Where the page goes: a folder gets it under its usual name.
fn page_of(session: &Path, to: Option<PathBuf>) -> Result<PathBuf, Failure> {
    let to = to.unwrap_or_default();
    let page = if to.as_os_str().is_empty() || to.is_dir() { to.join(default_name(session)) } else { to };
    std::path::absolute(&page).map_err(|error| Failure::new(format!("{} cannot be written: {error}", page.display())))
}
