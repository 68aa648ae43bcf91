//! `edit`: exact replacements in a file, all or none.

use crate::diff::{self, Change, Run as Lines};
use crate::input::{Form, schema};
use crate::place::Place;
use crate::preview::{self, Before};
use crate::work::{blocking, bytes_in, cancelled, count, failed, leave, planned, sha256};
use crate::{Effects, Output, Preview, Run, Shown, Tool, ToolCtx, ToolOutput, ToolSpec, path};
use async_trait::async_trait;
use gjc_entry::{Label, Level};
use gjc_flow::{Call, Digest, Permits, SinkRef, SourceRef};
use gjc_protocol::Refusal;
use memchr::memmem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::io::Read;
use std::path::Path;
use unicode_normalization::UnicodeNormalization;

const FORM: Form =
    Form { tool: "edit", example: r#"{"path": "src/main.rs", "edits": [{"old": "let a = 1;", "new": "let a = 2;"}]}"# };

/// The largest file, in bytes.
const FILE_BYTES: u64 = 32 << 20;
/// The most replacements of one call.
const MAX_PLACES: usize = 10_000;
/// Line numbers told of a text that occurs too often.
const TOLD_PLACES: usize = 10;
/// Bytes of the diff in the details.
const DIFF_BYTES: usize = 64 * 1024;
const BOM: &[u8] = b"\xef\xbb\xbf";

/// Replaces texts that occur exactly once (or all occurrences), all of them or none.
///
/// Each is looked for in the file as it was before the call. Line ends are matched whatever they are and stay as they are in
/// the file; byte order mark, mode, owner and a missing last line end stay. A file that has changed between reading and
/// writing is left alone. Details: `{path, sha256_before, sha256_after, hunks: [{line, removed, added}], diff}`; `line` counts
/// in the file after the edit, from 1; a diff above 64 KiB is cut.
#[derive(Debug, Clone, Copy)]
pub struct Edit;

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The file, absolute or from the working folder.
    path: String,
    /// The replacements; they must not overlap.
    #[schemars(length(min = 1))]
    edits: Vec<Replacement>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Replacement {
    /// The text as it stands in the file, with as many lines as make it unique.
    old: String,
    /// The text in its place.
    new: String,
    /// Replace every occurrence.
    #[serde(skip_serializing_if = "Option::is_none")]
    all: Option<bool>,
}

fn parse(input: &RawValue) -> Result<Input, Refusal> {
    let input: Input = FORM.parse(input)?;
    path::check(&FORM, &input.path)?;
    if input.edits.is_empty() {
        return Err(FORM.wrong("`edits` is empty"));
    }
    for (n, edit) in input.edits.iter().enumerate() {
        if edit.old.is_empty() {
            return Err(FORM.wrong(format!("`old` of edit {} is empty; to make a new file, use write", n + 1)));
        }
        if lf(&edit.old) == lf(&edit.new) {
            return Err(FORM.wrong(format!("`old` and `new` of edit {} are the same", n + 1)));
        }
    }
    Ok(input)
}

/// What the permit is for: the file and all replacements.
fn permitted(target: &Path, input: &Input) -> Digest {
    // Strings and booleans always serialise.
    bytes_in(target, &serde_json::to_vec(input).unwrap_or_default())
}

#[async_trait]
impl Tool for Edit {
    fn name(&self) -> &'static str {
        "edit"
    }

    fn spec(&self, _: &Shown) -> Option<ToolSpec> {
        Some(ToolSpec {
            description:
                "Replaces texts in a file. Each `old` must occur exactly once, white space included, unless `all` is \
                          true; give several edits of one file in one call. If one does not fit, nothing is changed."
                    .into(),
            input: schema::<Input>(),
            effects: Effects::Workspace,
            run: Run::Serial,
        })
    }

    fn plan(&self, ctx: &ToolCtx, input: &RawValue) -> Result<Call, Refusal> {
        let parsed = parse(input)?;
        let path = path::find(&ctx.cwd, &parsed.path);
        let what = path.display().to_string();
        Ok(Call {
            tool: self.name().into(),
            input: input.to_owned(),
            // A failed edit tells what stands in the file.
            sources: vec![SourceRef { what: what.clone(), label: path::label(&ctx.cwd, &ctx.own, &path) }],
            sinks: vec![SinkRef {
                what,
                level: Level::Restricted,
                digest: permitted(&path::target(&ctx.cwd, &parsed.path), &parsed),
            }],
        })
    }

    fn preview(&self, ctx: &ToolCtx, call: &Call) -> Result<Preview, ToolOutput> {
        let mut label = planned(call);
        seen(ctx, call, &mut label).map_err(|refusal| failed(label, &refusal))
    }

    async fn run(&self, ctx: ToolCtx, call: Call, permits: Permits) -> ToolOutput {
        blocking(planned(&call), move |label| edit(&ctx, &parse(&call.input)?, permits, label)).await
    }
}

/// What a person sees of it.
fn seen(ctx: &ToolCtx, call: &Call, label: &mut Label) -> Result<Preview, Refusal> {
    let input = parse(&call.input)?;
    let Target { place, before } = Target::open(ctx, &input.path, label)?;
    let edits: Vec<Prepared> = input.edits.iter().map(Prepared::new).collect();
    let changes = changes(&input.path, &Text::new(&before), &edits)?;
    let lines = diff::runs(&before, &changes);
    let diff = diff::unified(input.path.trim_start_matches('/'), &before, &lines);
    Ok(Preview::of_file(ctx, &input.path, &place.path, &diff, Some(&Before::of(before))))
}

fn edit(ctx: &ToolCtx, input: &Input, mut permits: Permits, label: &mut Label) -> Result<ToolOutput, Refusal> {
    let given = &input.path;
    let failed = |done: &'static str| move |error: std::io::Error| path::refuse(&ctx.cwd, given, done, &error);
    let Target { place, before } = Target::open(ctx, given, label)?;
    if !preview::still(ctx, &place.path).map_err(failed("read"))? {
        return Err(preview::changed(given));
    }

    let text = Text::new(&before);
    let edits: Vec<Prepared> = input.edits.iter().map(Prepared::new).collect();
    let changes = changes(given, &text, &edits)?;
    let after = diff::apply(&before, &changes);
    let lines = diff::runs(&before, &changes);

    if ctx.cancel.is_cancelled() {
        return Err(cancelled());
    }
    let by = leave(ctx, &mut permits, permitted(&place.path, input))?;
    let path = place.path.clone();
    // The bytes are compared, not the time stamps: those are too coarse for two writes in a row.
    let unchanged =
        |place: &Place| Ok(place.read().is_ok_and(|now| now == before) && preview::still(ctx, &place.path)?);
    if !place.replace(ctx, given, &after, by, unchanged)? {
        return Err(Refusal::new("changed_meanwhile", format!("nothing was done: {given} has changed meanwhile"))
            .hint("read it again, then plan the edit anew"));
    }

    let (summary, hunks) = told(given, &edits, &lines);
    Ok(Output::from(*label)
        .text(summary)
        .details(json!({
            "path": path::real(&path).unwrap_or_else(|| path.clone()).to_string_lossy(),
            "sha256_before": sha256(&before),
            "sha256_after": sha256(&after),
            "hunks": hunks,
            "diff": cut(diff::unified(given.trim_start_matches('/'), &before, &lines)),
        }))
        .done())
}

/// A file that may be edited.
struct Target {
    place: Place,
    /// Its content.
    before: Vec<u8>,
}

impl Target {
    /// Reads it; what it is worth joins into `label` before a byte is read.
    fn open(ctx: &ToolCtx, given: &str, label: &mut Label) -> Result<Self, Refusal> {
        let failed = |done: &'static str| move |error: std::io::Error| path::refuse(&ctx.cwd, given, done, &error);
        let place = Place::find(ctx, given)?;
        let Some(existing) = &place.existing else {
            return Err(failed("edited")(std::io::ErrorKind::NotFound.into()));
        };
        if existing.len() > FILE_BYTES {
            let sentence = format!("{given} has {} bytes; edit takes {FILE_BYTES}", existing.len());
            return Err(Refusal::new("too_large", sentence).hint("use bash, for example `sed -i`"));
        }
        let mut file = place.open().map_err(failed("read"))?;
        *label = label.join(path::label_of(&ctx.cwd, &ctx.own, &place.path, &file));
        let mut before = Vec::new();
        file.read_to_end(&mut before).map_err(failed("read"))?;
        Ok(Self { place, before })
    }
}

/// What the model and programs are told of an edit.
fn told(given: &str, edits: &[Prepared], lines: &[Lines]) -> (String, Vec<serde_json::Value>) {
    let (mut removed, mut added) = (0, 0);
    let mut hunks = Vec::new();
    for run in lines {
        hunks.push(
            json!({ "line": run.old.start + added - removed + 1, "removed": run.old.len(), "added": run.new.len() }),
        );
        removed += run.old.len();
        added += run.new.len();
    }
    let at: Vec<String> = hunks.iter().take(TOLD_PLACES).map(|hunk| hunk["line"].to_string()).collect();
    let more = if hunks.len() > TOLD_PLACES { ", …" } else { "" };
    let made = count(edits.len(), "edit");
    let line = if hunks.len() == 1 { "line" } else { "lines" };
    (format!("{given}: {made}, +{added} −{removed} lines, at {line} {}{more}", at.join(", ")), hunks)
}

fn cut(mut diff: String) -> String {
    if diff.len() > DIFF_BYTES {
        let end = memchr::memrchr(b'\n', &diff.as_bytes()[..DIFF_BYTES]).map_or(0, |at| at + 1);
        diff.truncate(end);
        diff.push_str("[… the rest of the diff is left out …]\n");
    }
    diff
}

/// A file's text for matching: without byte order mark, every line end a line feed.
struct Text<'a> {
    bytes: &'a [u8],
    body: Cow<'a, [u8]>,
    /// Where in `body` a carriage return is left out, before a line feed.
    returns: Vec<usize>,
    /// Whether most of its lines end with CR LF.
    crlf: bool,
    bom: usize,
}

impl<'a> Text<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        let rest = bytes.strip_prefix(BOM).unwrap_or(bytes);
        let mut body = Cow::Borrowed(rest);
        let mut returns = Vec::new();
        let mut done = 0;
        for at in memmem::find_iter(rest, b"\r\n") {
            if returns.is_empty() {
                body = Cow::Owned(Vec::with_capacity(rest.len()));
            }
            body.to_mut().extend_from_slice(&rest[done..at]);
            returns.push(body.len());
            done = at + 1;
        }
        if !returns.is_empty() {
            body.to_mut().extend_from_slice(&rest[done..]);
        }
        let crlf = returns.len() * 2 > memchr::memchr_iter(b'\n', &body).count();
        Self { bytes, body, returns, crlf, bom: bytes.len() - rest.len() }
    }

    /// The place in the file of a place in `body`.
    fn original(&self, at: usize) -> usize {
        self.bom + at + self.returns.partition_point(|left_out| *left_out < at)
    }

    /// The number of the line of a place in `body`, from 1.
    fn line(&self, at: usize) -> usize {
        memchr::memchr_iter(b'\n', &self.body[..at]).count() + 1
    }

    /// Whether what is written into this part of the file gets CR LF: as the part itself has it, else as most of the file.
    fn crlf(&self, part: &[u8]) -> bool {
        match memchr::memchr(b'\n', part) {
            Some(at) => at > 0 && part[at - 1] == b'\r',
            None => self.crlf,
        }
    }
}

/// A replacement, its texts with line feeds and, for files that have them, with CR LF.
struct Prepared {
    old: String,
    new: [Vec<u8>; 2],
    all: bool,
}

impl Prepared {
    fn new(edit: &Replacement) -> Self {
        let new = lf(&edit.new);
        let crlf = new.replace('\n', "\r\n").into_bytes();
        Self {
            old: lf(&edit.old).into_owned(),
            new: [new.into_owned().into_bytes(), crlf],
            all: edit.all == Some(true),
        }
    }
}

fn lf(text: &str) -> Cow<'_, str> {
    if text.contains("\r\n") { text.replace("\r\n", "\n").into() } else { text.into() }
}

/// Where everything goes, sorted; or all that does not fit.
fn changes<'e>(given: &str, text: &Text<'_>, edits: &'e [Prepared]) -> Result<Vec<Change<'e>>, Refusal> {
    let mut found: Vec<(usize, Change<'e>)> = Vec::new();
    let mut wrong = Vec::new();
    for (n, edit) in edits.iter().enumerate() {
        let places = places(&text.body, edit.old.as_bytes(), edit.all);
        match places.len() {
            0 => wrong.push(format!("edit {}: `old` is not in {given}; {}", n + 1, near(text, edit))),
            2.. if !edit.all => wrong.push(format!(
                "edit {}: `old` occurs {} times in {given} ({}); give more of the lines around it, or \"all\": true",
                n + 1,
                if places.len() < MAX_PLACES { places.len().to_string() } else { format!("at least {MAX_PLACES}") },
                lines_told(text, &places)
            )),
            _ => {}
        }
        found.extend(places.into_iter().map(|at| {
            let at = text.original(at)..text.original(at + edit.old.len());
            let new = &edit.new[usize::from(text.crlf(&text.bytes[at.clone()]))];
            (n, Change { at, new })
        }));
    }
    if wrong.is_empty() && found.len() > MAX_PLACES {
        wrong.push(format!("more than {MAX_PLACES} places would change; use bash, for example `sed -i`"));
    }
    found.sort_by_key(|(_, change)| change.at.start);
    if wrong.is_empty() {
        wrong.extend(found.windows(2).find(|pair| pair[1].1.at.start < pair[0].1.at.end).map(|pair| {
            let (first, second) = (pair[0].0.min(pair[1].0) + 1, pair[0].0.max(pair[1].0) + 1);
            let line = memchr::memchr_iter(b'\n', &text.bytes[..pair[1].1.at.start]).count() + 1;
            format!("edits {first} and {second} overlap in line {line} of {given}; make one edit of them")
        }));
    }
    if wrong.is_empty() {
        return Ok(found.into_iter().map(|(_, change)| change).collect());
    }
    Err(Refusal::new("no_match", format!("nothing was changed:\n{}", wrong.join("\n"))))
}

/// Where `old` stands. For one replacement overlapping places count too: they make it ambiguous.
fn places(body: &[u8], old: &[u8], all: bool) -> Vec<usize> {
    let finder = memmem::Finder::new(old);
    let mut places = Vec::new();
    let mut from = 0;
    while places.len() <= MAX_PLACES
        && let Some(at) = body.get(from..).and_then(|rest| finder.find(rest))
    {
        places.push(from + at);
        from += at + if all { old.len() } else { 1 };
    }
    places
}

fn lines_told(text: &Text<'_>, places: &[usize]) -> String {
    let told: Vec<_> = places.iter().take(TOLD_PLACES).map(|at| text.line(*at).to_string()).collect();
    let more = if places.len() > TOLD_PLACES { ", …" } else { "" };
    format!("lines {}{more}", told.join(", "))
}

/// Why `old` may not be there, with what to do.
fn near(text: &Text<'_>, edit: &Prepared) -> String {
    let body = String::from_utf8_lossy(&text.body);
    let lines: Vec<&str> = body.lines().collect();
    let old: Vec<&str> = edit.old.lines().collect();
    let matches = |same: &dyn Fn(&str, &str) -> bool| {
        lines.windows(old.len().max(1)).position(|window| window.iter().zip(&old).all(|(a, b)| same(a, b)))
    };
    let blank = old.iter().all(|line| line.trim().is_empty());
    if !blank && let Some(at) = matches(&|a, b| a.split_whitespace().eq(b.split_whitespace())) {
        return format!("the white space differs: the file has\n{}", numbered(&lines, at, old.len()));
    }
    // Models write 한글 composed.
    if let Some(at) = matches(&|a, b| a.nfc().eq(b.nfc())) {
        return format!("line {} has it in another Unicode normal form; use bash for this file", at + 1);
    }
    let new = String::from_utf8_lossy(&edit.new[0]);
    if !new.trim().is_empty()
        && let Some(at) = body.find(&*new)
    {
        return format!("`new` stands already in line {}: was this done before?", body[..at].matches('\n').count() + 1);
    }
    let first = old.iter().map(|line| line.trim()).find(|line| !line.is_empty());
    if let Some(first) = first.filter(|_| old.len() > 1)
        && let Some(at) = lines.iter().position(|line| line.trim() == first)
    {
        return format!(
            "its first line is there, the others differ: the file has\n{}",
            numbered(&lines, at, old.len())
        );
    }
    "read the file again".into()
}

/// Some lines with their numbers, as read shows them.
fn numbered(lines: &[&str], at: usize, len: usize) -> String {
    let shown = lines[at..].iter().take(len.min(TOLD_PLACES)).enumerate();
    let shown: Vec<_> =
        shown.map(|(n, line)| format!("{:>6}\t{}", at + n + 1, line.chars().take(200).collect::<String>())).collect();
    shown.join("\n")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    /// Texts whose parts repeat, with both line ends.
    fn text() -> impl Strategy<Value = String> {
        prop::collection::vec(prop::sample::select(vec!["a", "b", "한", "글", " ", "\n", "\r\n"]), 0..40)
            .prop_map(|parts| parts.concat())
    }

    proptest! {
        #[test]
        fn an_edit_is_a_replacement_of_normalised_text(
            before in text(),
            bom in any::<bool>(),
            edits in prop::collection::vec((text(), text(), any::<bool>()), 1..3),
        ) {
            let file = [if bom { BOM } else { b"" }, before.as_bytes()].concat();
            // Longer texts are seldom found.
            let short = |text: &str| text.chars().take(3).collect::<String>().replace('\r', "");
            let edits: Vec<_> = edits
                .iter()
                .map(|(old, new, all)| Replacement { old: short(old), new: new.clone(), all: Some(*all) })
                .filter(|edit| !edit.old.is_empty())
                .map(|edit| Prepared::new(&edit))
                .collect();
            let text = Text::new(&file);
            let Ok(changes) = changes("f", &text, &edits) else { return Ok(()) };
            let after = diff::apply(&file, &changes);

            // One edit alone is what the standard library would do.
            if let [edit] = &edits[..] {
                let new = String::from_utf8(edit.new[0].clone()).unwrap();
                let expected = lf(&before).replace(&edit.old, &new);
                prop_assert_eq!(lf(std::str::from_utf8(after.strip_prefix(if bom { BOM } else { b"" }).unwrap()).unwrap()), expected);
            }
            // A file with one kind of line ends keeps it.
            let feeds = |bytes: &[u8]| memchr::memchr_iter(b'\n', bytes).count();
            let returns = |bytes: &[u8]| memchr::memchr_iter(b'\r', bytes).count();
            if feeds(&file) == returns(&file) && feeds(&file) > 0 {
                prop_assert_eq!(feeds(&after), returns(&after));
            }
            if returns(&file) == 0 {
                prop_assert_eq!(returns(&after), 0);
            }
            // The diff says what was done.
            let mut lines: Vec<Vec<u8>> = file.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
            for run in diff::runs(&file, &changes).into_iter().rev() {
                lines.splice(run.old, run.new);
            }
            prop_assert_eq!(lines.concat(), after);
        }
    }
}
