//! `grep`: lines of files by a pattern.

mod found;
mod kin;
mod pattern;
mod search;

use crate::glob::Glob;
use crate::input::{Form, schema};
use crate::names::{Name, below, prefix, shown};
use crate::page::{MOST_NAMES, Page, more};
use crate::sandbox::secrets::Closed;
use crate::walk::{Stop, Unread, lock, stoppable, walk};
use crate::work::{count, planned};
use crate::{Effects, Output, Run, Shown, Tool, ToolCtx, ToolOutput, ToolSpec, path};
use async_trait::async_trait;
use found::{Found, InFile};
use gjc_entry::Label;
use gjc_flow::{Call, Permits, SourceRef};
use gjc_protocol::Refusal;
use pattern::{Meaning, Pattern};
use schemars::JsonSchema;
use search::{Broken, LINE_BYTES, Manner, Search};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use std::fs;
use std::io;
use std::num::NonZeroU64;
use std::path::Path;
use std::sync::{Arc, Mutex};

const FORM: Form = Form { tool: "grep", example: r#"{"pattern": "fn main", "path": "src", "glob": "*.rs"}"# };

/// Matching lines (or files) shown when no limit is given.
const MATCHES: u64 = 100;
/// The most lines around a match.
const CONTEXT: u32 = 100;

/// Searches the lines of files for a pattern.
///
/// Lines come in the order of paths and numbers, as `path:12: text`, those around a match as `path-11- text`; paths are as
/// `path` was given, and so as other tools take them. All files are searched, so the count of what is not shown is right.
/// Hidden files are searched, what ignore files name and `.git` are not, nor are binary files below a folder; links are not
/// followed. A pattern beyond ASCII finds both normal forms of a text. Details: `{path, matches, files, shown, searched,
/// binary, unread}`.
#[derive(Debug, Clone, Copy)]
pub struct Grep;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Input {
    /// A regular expression (Rust syntax), asked of each line.
    pattern: String,
    /// A file, or the folder to search in; the working folder if left out.
    path: Option<String>,
    /// Search only files that this glob finds: "*.rs", "src/**/*.ts", "!*.lock".
    glob: Option<String>,
    /// Whatever the case.
    #[serde(default)]
    ignore_case: bool,
    /// Take the pattern as a text, not as a regular expression.
    #[serde(default)]
    literal: bool,
    /// How many lines to show before and after each match.
    #[serde(default)]
    context: u32,
    /// Show only which files match, and in how many lines.
    #[serde(default)]
    files_only: bool,
    /// How many matching lines (or files) to show; 100 if left out.
    limit: Option<NonZeroU64>,
}

fn parse(input: &RawValue) -> Result<(Input, Option<Arc<Glob>>), Refusal> {
    let input: Input = FORM.parse(input)?;
    if input.pattern.is_empty() {
        return Err(FORM.wrong("`pattern` is empty"));
    }
    if input.context > CONTEXT {
        return Err(FORM.wrong(format!("`context` is more than {CONTEXT}")));
    }
    if let Some(path) = &input.path {
        path::check(&FORM, path)?;
    }
    let glob = input.glob.as_deref().map(|glob| Glob::new(&FORM, "glob", glob)).transpose()?;
    Ok((input, glob.map(Arc::new)))
}

#[async_trait]
impl Tool for Grep {
    fn name(&self) -> &'static str {
        "grep"
    }

    fn spec(&self, _: &Shown) -> Option<ToolSpec> {
        Some(ToolSpec {
            description:
                "Searches the lines of files for a pattern, in the order of their paths. Hidden files are searched; \
                          what .gitignore and .ignore name, .git, and binary files are not."
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
            grep(&within, &input, glob, stop, label)
        })
        .await
    }
}

fn grep(
    ctx: &ToolCtx,
    input: &Input,
    glob: Option<Arc<Glob>>,
    stop: &Stop,
    label: &mut Label,
) -> Result<ToolOutput, Refusal> {
    stop.check("the search")?;
    let given = input.path.as_deref().unwrap_or(".");
    let meaning = Meaning { literal: input.literal, ignore_case: input.ignore_case };
    let pattern = Pattern::new(&FORM, &input.pattern, meaning)?;
    let path = path::find(&ctx.cwd, given);
    let failed = |error: io::Error| path::refuse(&ctx.cwd, given, "searched", &error);
    let what = fs::metadata(&path).map_err(failed)?;
    // Asked before it is opened: a device may never end.
    if !what.is_dir() && !what.is_file() {
        return Err(path::special(given));
    }
    let root = path.canonicalize().map_err(failed)?;
    let closed = Closed::to(ctx);
    if closed.holds(&root) {
        return Err(Closed::refusal(given));
    }
    let (found, unread, before) = if what.is_dir() {
        let (found, unread) = in_folder(ctx, input, glob, &pattern, &root, (stop, closed.below(&root)));
        (found, unread, prefix(input.path.as_deref()))
    } else {
        let (found, unread) = in_file(ctx, input, &pattern, &path, stop).map_err(failed)?;
        (found, unread, String::new())
    };
    stop.check("the search")?;
    // What became a link meanwhile vouches for nothing.
    *label = label.join(path::label(&ctx.cwd, &ctx.own, &path)).join(path::label(&ctx.cwd, &ctx.own, &root));

    let mut page = Page::default();
    let shown = match input.files_only {
        true => show_files(&mut page, &found, &before, label),
        false => show_lines(&mut page, &found, &before, input, label),
    };
    let mut notes = Vec::new();
    let way_out = "narrow pattern, path or glob, or raise limit";
    if found.hits == 0 {
        let files = count(usize::try_from(found.searched).unwrap_or(usize::MAX), "file");
        notes.push(format!("no line matches; {files} searched"));
    } else if input.files_only {
        notes.extend(more(shown, found.files_with_hits, "file", way_out));
    } else if let Some(note) = more(shown, found.hits, "matching line", way_out) {
        let files = count(usize::try_from(found.files_with_hits).unwrap_or(usize::MAX), "file");
        notes.push(format!("{note} (all matches: {files})"));
    }
    if found.binary > 0 {
        let files = count(usize::try_from(found.binary).unwrap_or(usize::MAX), "binary file");
        notes.push(format!("{files} left out; name one as path to search it"));
    }
    notes.extend(unread.notes());
    let details = json!({
        "path": root.to_string_lossy(),
        "matches": found.hits,
        "files": found.files_with_hits,
        "shown": shown,
        "searched": found.searched,
        "binary": found.binary,
        "unread": unread.count(),
    });
    Ok(Output::from(*label).text(page.close(notes)).details(details).done())
}

/// Matching lines or files that may be shown.
fn limit(input: &Input) -> u64 {
    input.limit.map_or(MATCHES, NonZeroU64::get).min(MOST_NAMES)
}

fn in_folder(
    ctx: &ToolCtx,
    input: &Input,
    glob: Option<Arc<Glob>>,
    pattern: &Pattern,
    root: &Path,
    (stop, closed): (&Stop, Option<Closed>),
) -> (Found, Unread) {
    let limit = limit(input);
    let all = Mutex::new((Found::new(limit), Unread::default()));
    let manner = Manner { context: context(input), binary: false };
    let wanted = move |name: &[u8]| glob.as_ref().is_none_or(|glob| glob.admits(name));
    let closed = closed.as_ref();
    let unread = walk(root, stop, wanted, || {
        let search = Search::new(pattern.clone(), manner, stop);
        let mut mine = Collect { search, found: Found::new(limit), unread: Unread::default(), all: &all };
        Box::new(move |entry| {
            let name = below(root, entry.path());
            let is_closed = || closed.is_some_and(|closed| closed.holds(entry.path()));
            if entry.file_type().is_some_and(|kind| kind.is_file()) && !is_closed() {
                mine.file(ctx, input, entry.path(), name);
            }
        })
    });
    let mut all = lock(&all);
    let (found, mut more) = (std::mem::take(&mut all.0), std::mem::take(&mut all.1));
    more.take(unread);
    (found, more)
}

fn context(input: &Input) -> usize {
    if input.files_only { 0 } else { input.context as usize }
}

/// What one thread has found; given to all when the thread is done.
struct Collect<'s> {
    search: Search<'s>,
    found: Found,
    unread: Unread,
    all: &'s Mutex<(Found, Unread)>,
}

impl Drop for Collect<'_> {
    fn drop(&mut self) {
        let mut all = lock(self.all);
        all.0.take(std::mem::take(&mut self.found));
        all.1.take(std::mem::take(&mut self.unread));
    }
}

impl Collect<'_> {
    /// Searches a file of the walk.
    fn file(&mut self, ctx: &ToolCtx, input: &Input, path: &Path, name: &[u8]) {
        let file = match search::open(path, true) {
            Ok(file) => file,
            // Removed while the walk ran.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            Err(error) => return self.unread.add(format!("{}: {error}", shown(name))),
        };
        // It may have been replaced since its folder was read.
        if !file.metadata().is_ok_and(|found| found.is_file()) {
            return;
        }
        let wanted = self.found.wants(name);
        let keep = if wanted && !input.files_only { limit(input) } else { 0 };
        let (sifted, done) = self.search.file(&file, keep);
        match done {
            Ok(()) => {}
            Err(Broken::Stopped) => return,
            Err(broken) => self.unread.add(format!("{}: {}", shown(name), broken.sentence())),
        }
        // Nothing of a binary file counts, also what came before its first NUL: part of an answer looks like all of it.
        if sifted.binary {
            self.found.binary += 1;
            return;
        }
        self.found.searched += 1;
        if sifted.hits == 0 {
            return;
        }
        self.found.hits += sifted.hits;
        self.found.files_with_hits += 1;
        if wanted {
            let label = path::label_of(&ctx.cwd, &ctx.own, path, &file);
            let (lines, kept, hits) = (sifted.lines, sifted.kept, sifted.hits);
            self.found.keep(Name(name.to_vec()), InFile { lines, kept, hits, binary: false, label });
        }
    }
}

impl Broken {
    fn sentence(&self) -> String {
        match self {
            Self::Stopped => "stopped".into(),
            Self::LongLine => {
                format!("a line has more than {} MiB; search what follows with bash", LINE_BYTES >> 20)
            }
            Self::Io(error) => error.to_string(),
        }
    }
}

/// Searches the one file that was named, binary or not.
fn in_file(ctx: &ToolCtx, input: &Input, pattern: &Pattern, path: &Path, stop: &Stop) -> io::Result<(Found, Unread)> {
    let file = search::open(path, false)?;
    let (mut found, mut unread) = (Found::new(limit(input)), Unread::default());
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is no file any more"));
    }
    let manner = Manner { context: context(input), binary: true };
    let keep = if input.files_only { 0 } else { limit(input) };
    let (sifted, done) = Search::new(pattern.clone(), manner, stop).file(&file, keep);
    let label = path::label_of(&ctx.cwd, &ctx.own, path, &file);
    let given = input.path.as_deref().unwrap_or_default();
    match done {
        Err(Broken::Io(error)) => return Err(error),
        Err(broken) => unread.add(format!("{}: {}", shown(given.as_bytes()), broken.sentence())),
        Ok(()) => {}
    }
    found.searched = 1;
    found.hits = sifted.hits;
    found.files_with_hits = u64::from(sifted.hits > 0);
    if sifted.hits > 0 {
        let (lines, kept) = if sifted.binary { (Vec::new(), 0) } else { (sifted.lines, sifted.kept) };
        let file = InFile { lines, kept, hits: sifted.hits, binary: sifted.binary, label };
        found.keep(Name(given.as_bytes().to_vec()), file);
    }
    Ok((found, unread))
}

/// Shows which files match; tells how many.
fn show_files(page: &mut Page, found: &Found, before: &str, label: &mut Label) -> u64 {
    let mut files = 0;
    for (name, file) in &found.files {
        let name = shown(&name.0);
        let lines = count(usize::try_from(file.hits).unwrap_or(usize::MAX), "matching line");
        if !page.add(&format!("{before}{name}: {lines}")) {
            break;
        }
        if name.contains(char::REPLACEMENT_CHARACTER) {
            page.mark_lossy();
        }
        *label = label.join(file.label);
        files += 1;
    }
    files
}

/// Shows matching lines and those around them; tells how many match.
fn show_lines(page: &mut Page, found: &Found, before: &str, input: &Input, label: &mut Label) -> u64 {
    let (most, around) = (limit(input), u64::from(input.context));
    let mut hits = 0;
    for (name, file) in &found.files {
        if hits >= most {
            break;
        }
        let name = format!("{before}{}", shown(&name.0));
        if file.binary {
            let lines = count(usize::try_from(file.hits).unwrap_or(usize::MAX), "line");
            if !page.add(&format!("{name}: binary file, {lines} match; see them with bash: `strings`, `grep -a`")) {
                break;
            }
            *label = label.join(file.label);
            hits += file.hits;
            continue;
        }
        // Lines before a match are shown only with it.
        let mut last: Option<u64> = None;
        let mut last_hit = None;
        let mut waiting = Vec::new();
        for line in &file.lines {
            if !line.hit && last_hit.is_none_or(|hit| line.number > hit + around) {
                waiting.push(line);
                continue;
            }
            if line.hit && hits >= most {
                break;
            }
            let mut group = std::mem::take(&mut waiting);
            group.push(line);
            let mut text = String::new();
            for line in &group {
                let apart = last.is_some_and(|last| line.number > last + 1) || last.is_none();
                if around > 0 && apart && (page.lines() > 0 || !text.is_empty()) {
                    text.push_str("--\n");
                }
                let mark = if line.hit { ':' } else { '-' };
                text.push_str(&format!("{name}{mark}{}{mark} {}\n", line.number, line.text));
                last = Some(line.number);
            }
            if !page.add(text.trim_end_matches('\n')) {
                return hits;
            }
            if name.contains(char::REPLACEMENT_CHARACTER) {
                page.mark_lossy();
            }
            *label = label.join(file.label);
            if line.hit {
                hits += 1;
                last_hit = Some(line.number);
            }
        }
    }
    hits
}
