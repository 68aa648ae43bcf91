//! `ls`: the names in one folder.

use crate::input::{Form, schema};
use crate::names::First;
use crate::page::{MOST_NAMES, Page, more};
use crate::walk::{Stop, stoppable};
use crate::work::planned;
use crate::{Effects, Output, Run, Shown, Tool, ToolCtx, ToolOutput, ToolSpec, path};
use async_trait::async_trait;
use gjc_entry::Label;
use gjc_flow::{Call, Permits, SourceRef};
use gjc_protocol::Refusal;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use std::fs::{self, FileType};
use std::num::NonZeroU64;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

const FORM: Form = Form { tool: "ls", example: r#"{"path": "src"}"# };

/// Names shown when no limit is given.
const NAMES: u64 = 500;

/// Lists the names in a folder: all of them, hidden and ignored ones too, in the order of their bytes.
///
/// Marks: `/` a folder, `|` a pipe, `=` a socket, ` -> target` a link (with a `/` if it leads to a folder). Details: `{path,
/// entries, shown}`.
#[derive(Debug, Clone, Copy)]
pub struct Ls;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The folder; the working folder if left out.
    path: Option<String>,
    /// How many names to show; 500 if left out.
    limit: Option<NonZeroU64>,
}

fn parse(input: &RawValue) -> Result<Input, Refusal> {
    let input: Input = FORM.parse(input)?;
    if let Some(path) = &input.path {
        path::check(&FORM, path)?;
    }
    Ok(input)
}

#[async_trait]
impl Tool for Ls {
    fn name(&self) -> &'static str {
        "ls"
    }

    fn spec(&self, _: &Shown) -> Option<ToolSpec> {
        Some(ToolSpec {
            description:
                "Lists the names in one folder, sorted: hidden and ignored ones too. A folder ends with /, a link \
                          shows where it leads."
                    .into(),
            input: schema::<Input>(),
            effects: Effects::None,
            run: Run::Parallel,
        })
    }

    fn plan(&self, ctx: &ToolCtx, raw: &RawValue) -> Result<Call, Refusal> {
        let input = parse(raw)?;
        let path = path::find(&ctx.cwd, input.path.as_deref().unwrap_or("."));
        let from = SourceRef { what: path.display().to_string(), label: path::label(&ctx.cwd, &ctx.own, &path) };
        Ok(Call { tool: self.name().into(), input: raw.to_owned(), sources: vec![from], sinks: Vec::new() })
    }

    async fn run(&self, ctx: ToolCtx, call: Call, _: Permits) -> ToolOutput {
        let within = ctx.clone();
        stoppable(&ctx, planned(&call), move |stop, label| list(&within, &parse(&call.input)?, stop, label)).await
    }
}

fn list(ctx: &ToolCtx, input: &Input, stop: &Stop, label: &mut Label) -> Result<ToolOutput, Refusal> {
    stop.check("the list")?;
    let given = input.path.as_deref().unwrap_or(".");
    let path = path::find(&ctx.cwd, given);
    let failed = |error: std::io::Error| path::refuse(&ctx.cwd, given, "listed", &error);
    if !fs::metadata(&path).map_err(failed)?.is_dir() {
        return Err(Refusal::new("not_a_folder", format!("{given} is no folder"))
            .hint("list the folder that it is in, or read it"));
    }
    let most = input.limit.map_or(NAMES, NonZeroU64::get).min(MOST_NAMES);
    let mut first = First::new(usize::try_from(most).unwrap_or(usize::MAX));
    for entry in fs::read_dir(&path).map_err(failed)? {
        stop.check("the list")?;
        first.add(entry.map_err(failed)?.file_name().as_bytes(), "");
    }
    // A folder that became a link meanwhile vouches for nothing.
    *label = label.join(path::label(&ctx.cwd, &ctx.own, &path));

    let entries = first.seen;
    let mut page = Page::default();
    for mut name in first.sorted() {
        let entry = path.join(std::ffi::OsStr::from_bytes(&name.0));
        name.0.extend(mark(&entry));
        if !page.add_name("", &name) {
            break;
        }
    }
    let shown = page.lines();
    let empty = (entries == 0).then(|| "the folder is empty".to_string());
    let more = more(shown, entries, "name", "raise limit, or look for a name with find");
    let real = path::real(&path).unwrap_or(path);
    let details = json!({ "path": real.to_string_lossy(), "entries": entries, "shown": shown });
    Ok(Output::from(*label).text(page.close(empty.into_iter().chain(more))).details(details).done())
}

/// What stands after a name. Of what vanished meanwhile nothing is known.
fn mark(entry: &Path) -> Vec<u8> {
    let Ok(found) = entry.symlink_metadata() else { return Vec::new() };
    if !found.is_symlink() {
        return of_kind(found.file_type()).as_bytes().to_vec();
    }
    let target = fs::read_link(entry).unwrap_or_default();
    // Where it leads may be a folder whose name does not say so.
    let folder =
        !target.as_os_str().as_bytes().ends_with(b"/") && fs::metadata(entry).is_ok_and(|found| found.is_dir());
    [&b" -> "[..], target.as_os_str().as_bytes(), if folder { b"/" } else { b"" }].concat()
}

fn of_kind(kind: FileType) -> &'static str {
    match kind {
        kind if kind.is_dir() => "/",
        kind if kind.is_fifo() => "|",
        kind if kind.is_socket() => "=",
        _ => "",
    }
}
