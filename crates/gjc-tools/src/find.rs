//! `find`: files and folders by their names.

use crate::glob::Glob;
use crate::input::{Form, schema};
use crate::names::{First, below, prefix};
use crate::page::{MOST_NAMES, Page, more};
use crate::walk::{Stop, lock, stoppable, walk};
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
use std::fs;
use std::num::NonZeroU64;
use std::sync::{Arc, Mutex};

const FORM: Form = Form { tool: "find", example: r#"{"pattern": "*.rs", "path": "src"}"# };

/// Names shown when no limit is given.
const NAMES: u64 = 1_000;

/// Finds files, folders and links below a folder by a glob.
///
/// Names come in the order of their paths, folders with a `/` at the end, each as `path` was given and so as other tools take
/// it. Hidden files are found, what ignore files name and `.git` are not; links are not followed. Either normal form of a
/// glob finds either form of a name. Details: `{path, found, shown, unread}`.
#[derive(Debug, Clone, Copy)]
pub struct Find;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// A glob: "*.rs" is about names at any depth, "src/**/*.rs" about paths from the searched folder, "tests/" about folders.
    pattern: String,
    /// The folder to search in; the working folder if left out.
    path: Option<String>,
    /// How many names to show; 1000 if left out.
    limit: Option<NonZeroU64>,
}

fn parse(input: &RawValue) -> Result<(Input, Arc<Glob>), Refusal> {
    let input: Input = FORM.parse(input)?;
    if let Some(path) = &input.path {
        path::check(&FORM, path)?;
    }
    let glob = Glob::new(&FORM, "pattern", &input.pattern)?;
    Ok((input, Arc::new(glob)))
}

#[async_trait]
impl Tool for Find {
    fn name(&self) -> &'static str {
        "find"
    }

    fn spec(&self, _: &Shown) -> Option<ToolSpec> {
        Some(ToolSpec {
            description:
                "Finds files and folders by a glob, in the order of their paths. Hidden files are found; what \
                          .gitignore and .ignore name, and .git, are not."
                    .into(),
            input: schema::<Input>(),
            effects: Effects::None,
            run: Run::Parallel,
        })
    }

    fn plan(&self, ctx: &ToolCtx, raw: &RawValue) -> Result<Call, Refusal> {
        let (input, _) = parse(raw)?;
        let path = path::find(&ctx.cwd, input.path.as_deref().unwrap_or("."));
        let from = SourceRef { what: path.display().to_string(), label: path::label(&ctx.cwd, &ctx.own, &path) };
        Ok(Call { tool: self.name().into(), input: raw.to_owned(), sources: vec![from], sinks: Vec::new() })
    }

    async fn run(&self, ctx: ToolCtx, call: Call, _: Permits) -> ToolOutput {
        let within = ctx.clone();
        stoppable(&ctx, planned(&call), move |stop, label| {
            let (input, glob) = parse(&call.input)?;
            find(&within, &input, &glob, stop, label)
        })
        .await
    }
}

fn find(ctx: &ToolCtx, input: &Input, glob: &Arc<Glob>, stop: &Stop, label: &mut Label) -> Result<ToolOutput, Refusal> {
    stop.check("the search")?;
    let given = input.path.as_deref().unwrap_or(".");
    let path = path::find(&ctx.cwd, given);
    let failed = |error: std::io::Error| path::refuse(&ctx.cwd, given, "searched", &error);
    if !fs::metadata(&path).map_err(failed)?.is_dir() {
        return Err(Refusal::new("not_a_folder", format!("{given} is no folder"))
            .hint("give the folder that it is in, or read it"));
    }
    let root = path.canonicalize().map_err(failed)?;
    let most = input.limit.map_or(NAMES, NonZeroU64::get).min(MOST_NAMES);
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let all = Mutex::new(First::new(most));
    let files = Arc::clone(glob);
    let unread = walk(
        &root,
        stop,
        move |name| files.finds(name, false),
        || {
            let mut mine = Collect { first: Some(First::new(most)), all: &all };
            let root = root.clone();
            Box::new(move |entry| {
                let name = below(&root, entry.path());
                let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
                // All else was asked before it came here.
                if (!is_folder || glob.finds(name, true))
                    && let Some(first) = &mut mine.first
                {
                    first.add(name, if is_folder { "/" } else { "" });
                }
            })
        },
    );
    stop.check("the search")?;
    // A folder that became a link meanwhile vouches for nothing.
    *label = label.join(path::label(&ctx.cwd, &ctx.own, &path)).join(path::label(&ctx.cwd, &ctx.own, &root));

    let first = std::mem::replace(&mut *lock(&all), First::new(0));
    let found = first.seen;
    let before = prefix(input.path.as_deref());
    let mut page = Page::default();
    for name in first.sorted() {
        if !page.add_name(&before, &name) {
            break;
        }
    }
    let shown = page.lines();
    let mut notes = Vec::new();
    if found == 0 {
        notes.push("nothing is found; what ignore files name is left out, bash sees it with `find`".into());
    }
    notes.extend(more(shown, found, "name", "narrow pattern or path, or raise limit"));
    notes.extend(unread.notes());
    let details = json!({ "path": root.to_string_lossy(), "found": found, "shown": shown, "unread": unread.count() });
    Ok(Output::from(*label).text(page.close(notes)).details(details).done())
}

/// What one thread has found; given to all when the thread is done.
struct Collect<'s> {
    first: Option<First>,
    all: &'s Mutex<First>,
}

impl Drop for Collect<'_> {
    fn drop(&mut self) {
        if let Some(first) = self.first.take() {
            lock(self.all).take(first);
        }
    }
}
