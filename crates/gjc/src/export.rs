//! `gjc --export` and `gjc sessions export`: a session as a page. It is only looked at: no lock, no breadcrumb, nothing made
//! where it is missing.

use crate::cli::ExportArgs;
use crate::failure::Failure;
use crate::out;
use crate::sessions::{blobs_of, print_json};
use gjc_agent::write_page;
use gjc_entry::{Env, Source};
use gjc_export::{Kept, Making, Replace, children, default_name};
use gjc_flow::Policy;
use gjc_log::fs::OsFs;
use gjc_log::{Reader, Tail};
use gjc_protocol::refuse_copies;
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
    let (session, to) = (paths.next().unwrap_or_default(), paths.next());
    no_copies(&session.to_string_lossy(), to.as_deref(), args.copy)?;
    run(env, &session, to, args.force, false)
}

/// An export is no copy; the way that is one is named.
pub(crate) fn no_copies(session: &str, to: Option<&Path>, copy: bool) -> Result<(), Failure> {
    let word = if copy { Some("--copy") } else { to.and_then(Path::to_str) };
    let Some(refusal) = word.and_then(refuse_copies) else { return Ok(()) };
    let session = if session.contains(char::is_whitespace) { format!("\"{session}\"") } else { session.into() };
    let session = out::row(&session);
    Err(Failure::misuse(refusal).hint(format!("to the clipboard: gjc sessions show {session} --full --copy")))
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
    let wrote = write_page(&OsFs, (&page, replace, kept), &loaded, &making, &Policy::default(), None);
    if shown.get() {
        out::progress("");
    }
    let bytes = wrote?;
    // A last line that is not finished is one of the places that the page tells of.
    let damaged = loaded.damage.len() + usize::from(loaded.tail != Tail::Clean);
    if json {
        return Ok(print_json(&ExportJson {
            session: loaded.value.header().id.to_string(),
            from: session.display().to_string(),
            page: page.display().to_string(),
            bytes,
            entries: loaded.value.skeleton().map_or(0, gjc_entry::Skeleton::len),
            damaged,
        }));
    }
    out::line(&out::row(&page.display().to_string()));
    if let count @ 1.. = damaged {
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
