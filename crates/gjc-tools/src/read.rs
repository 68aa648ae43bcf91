//! `read`: text with line numbers, folders, pictures, whole outputs.

use crate::artifacts::{Found, SCHEME};
use crate::input::{Form, schema};
use crate::sandbox::secrets::Closed;
use crate::work::{blocking, cancelled, count, hex, planned, sha256};
use crate::{Effects, Output, Run, Shown, Tool, ToolCtx, ToolOutput, ToolSpec, path};
use async_trait::async_trait;
use base64::Engine;
use gjc_entry::message::ImageData;
use gjc_entry::{Block, Label, Origin};
use gjc_flow::{Call, Permits, SourceRef};
use gjc_protocol::Refusal;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, ErrorKind, Read as _};
use std::num::NonZeroU64;
use std::path::Path;
use tokio_util::sync::CancellationToken;

const FORM: Form = Form { tool: "read", example: r#"{"path": "src/main.rs", "offset": 1, "limit": 200}"# };

/// Lines (or names of a folder) shown when no limit is given.
const LINES: u64 = 2_000;
/// Characters shown of a line.
const LINE_CHARS: usize = 2_000;
/// Bytes kept of a line: enough for [`LINE_CHARS`] of the longest kind and one more.
const LINE_BYTES: usize = (LINE_CHARS + 1) * 4;
/// Bytes shown at most: about 15,000 tokens, a tenth of what a model takes in.
const SHOWN_BYTES: usize = 50 * 1024;
/// Up to this size of a file its lines are counted to the end.
const COUNTED_BYTES: u64 = 16 << 20;
/// The largest picture, in bytes: providers take 5 MB of base64.
pub(crate) const IMAGE_BYTES: u64 = 3_750_000;
/// Where a file tells its type; one NUL in it means binary.
const HEAD_BYTES: usize = 8 * 1024;
/// One read.
const CHUNK: usize = 64 * 1024;

/// Shows a file's text with line numbers, a folder's names, or a picture.
///
/// A file is read as a stream; of a large one only what comes before the last line shown. Details: of text `{path, range:
/// [first, last] | null, lines_total?, bytes, sha256, bom}`, where bytes and hash are those of the lines shown; of a folder
/// `{path, entries, range}`; of a picture `{path, mime, bytes, sha256}`.
#[derive(Debug, Clone, Copy)]
pub struct Read;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// A file or folder, absolute or from the working folder; or an output that was too long, as `artifact://3`.
    path: String,
    /// The first line to show, from 1.
    offset: Option<NonZeroU64>,
    /// How many lines to show; 2000 if left out.
    limit: Option<NonZeroU64>,
}

impl Input {
    fn first(&self) -> u64 {
        self.offset.map_or(1, NonZeroU64::get)
    }

    fn limit(&self) -> u64 {
        self.limit.map_or(LINES, NonZeroU64::get)
    }
}

fn parse(input: &RawValue) -> Result<Input, Refusal> {
    let input: Input = FORM.parse(input)?;
    path::check(&FORM, &input.path)?;
    Ok(input)
}

#[async_trait]
impl Tool for Read {
    fn name(&self) -> &'static str {
        "read"
    }

    fn spec(&self, _: &Shown) -> Option<ToolSpec> {
        Some(ToolSpec {
            description:
                "Shows a text file with line numbers, the names in a folder, or a picture (PNG, JPEG, GIF, WebP). \
                          Long files come in parts: go on with offset. The numbers are not part of the text."
                    .into(),
            input: schema::<Input>(),
            effects: Effects::None,
            run: Run::Parallel,
        })
    }

    fn plan(&self, ctx: &ToolCtx, input: &RawValue) -> Result<Call, Refusal> {
        let given = parse(input)?.path;
        if given.starts_with(SCHEME) {
            let from = SourceRef { label: ctx.artifacts.label(&given), what: given };
            return Ok(Call {
                tool: self.name().into(),
                input: input.to_owned(),
                sources: vec![from],
                sinks: Vec::new(),
            });
        }
        let path = path::find(&ctx.cwd, &given);
        let from = SourceRef { what: path.display().to_string(), label: label_of(ctx, &path) };
        Ok(Call { tool: self.name().into(), input: input.to_owned(), sources: vec![from], sinks: Vec::new() })
    }

    async fn run(&self, ctx: ToolCtx, call: Call, _: Permits) -> ToolOutput {
        blocking(planned(&call), move |label| read(&ctx, &parse(&call.input)?, label)).await
    }
}

/// The person's own skills are their word, as files of the workspace are.
fn label_of(ctx: &ToolCtx, path: &Path) -> Label {
    if path::is_own_skill(&ctx.own, path) { Label::PUBLIC_TRUSTED } else { path::label(&ctx.cwd, &ctx.own, path) }
}

fn read(ctx: &ToolCtx, input: &Input, label: &mut Label) -> Result<ToolOutput, Refusal> {
    if ctx.cancel.is_cancelled() {
        return Err(cancelled());
    }
    if input.path.starts_with(SCHEME) {
        let Found { from, size, label: of, path } = ctx.artifacts.open(&input.path)?;
        *label = label.join(of);
        let resolved = path.unwrap_or_else(|| input.path.as_str().into());
        let opened = Opened { from, size, resolved: &resolved };
        return Ok(content(&ctx.cwd, &ctx.cancel, input, opened)?.output(*label));
    }
    let path = path::find(&ctx.cwd, &input.path);
    let failed = |error: io::Error| path::refuse(&ctx.cwd, &input.path, "read", &error);
    let found = fs::metadata(&path).map_err(failed)?;
    if found.is_dir() {
        *label = label.join(label_of(ctx, &path));
        return folder(input, &path, *label).map_err(failed);
    }
    // Asked before it is opened: opening a pipe waits for a writer.
    if !found.is_file() {
        return Err(path::special(&input.path));
    }
    let file = File::open(&path).map_err(failed)?;
    // Of the file that is open now, whatever the path leads to by then.
    let opened = path::real(&path).filter(|_| path::is_behind(&path, &file));
    if opened.is_none_or(|opened| Closed::to(ctx).holds(&opened)) {
        return Err(Closed::refusal(&input.path));
    }
    *label = label.join(match path::is_own_skill(&ctx.own, &path) && path::is_behind(&path, &file) {
        true => Label::PUBLIC_TRUSTED,
        false => path::label_of(&ctx.cwd, &ctx.own, &path, &file),
    });
    let resolved = path::real(&path).unwrap_or(path);
    let opened = Opened { from: Box::new(file), size: found.len(), resolved: &resolved };
    Ok(content(&ctx.cwd, &ctx.cancel, input, opened)?.output(*label))
}

/// The beginning of a file for a prompt, as `read` shows it, and the open file.
///
/// # Errors
/// As the tool's.
pub(crate) fn whole(cwd: &Path, given: &str) -> Result<(Seen, File), Refusal> {
    let path = path::find(cwd, given);
    let failed = |error: io::Error| path::refuse(cwd, given, "read", &error);
    let found = fs::metadata(&path).map_err(failed)?;
    if found.is_dir() {
        return Err(Refusal::new("is_folder", format!("{given} is a folder; name a file in it")));
    }
    if !found.is_file() {
        return Err(path::special(given));
    }
    let file = File::open(&path).map_err(failed)?;
    let input = Input { path: given.into(), offset: None, limit: None };
    let resolved = path::real(&path).unwrap_or(path);
    let from = Box::new(file.try_clone().map_err(failed)?);
    let seen =
        content(cwd, &CancellationToken::new(), &input, Opened { from, size: found.len(), resolved: &resolved })?;
    Ok((seen, file))
}

/// What is shown of something.
pub(crate) struct Seen {
    /// Numbered lines and what is to be said of them; of a picture its name, kind and size.
    pub(crate) text: String,
    /// Kind and base64.
    pub(crate) picture: Option<(&'static str, String)>,
    details: Value,
}

impl Seen {
    fn output(self, label: Label) -> ToolOutput {
        let output = Output::from(label).text(self.text).details(self.details);
        let block = |(mime, data): (&str, String)| Block::Image {
            data: ImageData::Inline(data),
            mime: mime.into(),
            origin: Some(Origin::Tool),
            extra: Vec::new(),
        };
        match self.picture {
            Some(picture) => output.block(block(picture)).done(),
            None => output.done(),
        }
    }
}

/// Something with a content.
struct Opened<'a> {
    from: Box<dyn io::Read + Send>,
    size: u64,
    resolved: &'a Path,
}

fn content(cwd: &Path, cancel: &CancellationToken, input: &Input, opened: Opened<'_>) -> Result<Seen, Refusal> {
    let Opened { from, size, resolved } = opened;
    let failed = |error: io::Error| path::refuse(cwd, &input.path, "read", &error);
    let mut from = BufReader::with_capacity(CHUNK, from);
    let head = from.fill_buf().map_err(failed)?;
    let at = if input.path.starts_with(SCHEME) { format!(" of {}", resolved.display()) } else { String::new() };
    match Type::of(&head[..head.len().min(HEAD_BYTES)]) {
        Type::Image(mime) => image(input, from, mime, size, resolved, failed),
        Type::Binary(what) => Err(Refusal::new("binary", format!("{} is {what}, {size} bytes", input.path))
            .hint(format!("look at it with bash{at}: `file`, `strings`, `xxd | head`, or a program for this type"))),
        Type::Utf16 => Err(Refusal::new("binary", format!("{} is UTF-16 text, {size} bytes", input.path))
            .hint(format!("show it with bash{at}: `iconv -f UTF-16 -t UTF-8`"))),
        Type::Text => {
            let lines = Lines { from, cancel: cancel.clone() };
            text(input, lines, size, resolved, failed)
        }
    }
}

/// The kind of picture that bytes are, if models take it.
pub(crate) fn picture_kind(bytes: &[u8]) -> Option<&'static str> {
    match Type::of(&bytes[..bytes.len().min(HEAD_BYTES)]) {
        Type::Image(kind) => Some(kind),
        _ => None,
    }
}

/// What the beginning of a file says it is.
#[derive(Clone, Copy)]
enum Type {
    Text,
    Utf16,
    Image(&'static str),
    Binary(&'static str),
}

impl Type {
    const KNOWN: &[(&[u8], Self)] = &[
        (b"\x89PNG\r\n\x1a\n", Self::Image("image/png")),
        (b"\xff\xd8\xff", Self::Image("image/jpeg")),
        (b"GIF87a", Self::Image("image/gif")),
        (b"GIF89a", Self::Image("image/gif")),
        (b"%PDF-", Self::Binary("a PDF document")),
        (b"PK\x03\x04", Self::Binary("a ZIP archive (or a document that is one: .docx, .xlsx, .hwpx)")),
        (b"\x1f\x8b", Self::Binary("gzip data")),
        (b"\x28\xb5\x2f\xfd", Self::Binary("zstd data")),
        (b"\xfd7zXZ\0", Self::Binary("xz data")),
        (b"\x7fELF", Self::Binary("a program (ELF)")),
        (b"\0asm", Self::Binary("a WebAssembly module")),
        (b"SQLite format 3\0", Self::Binary("an SQLite database")),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", Self::Binary("an old Office document (.doc, .xls, .hwp)")),
        (b"\xff\xfe", Self::Utf16),
        (b"\xfe\xff", Self::Utf16),
    ];

    fn of(head: &[u8]) -> Self {
        if head.starts_with(b"RIFF") && head.get(8..12) == Some(b"WEBP") {
            return Self::Image("image/webp");
        }
        match Self::KNOWN.iter().find(|(magic, _)| head.starts_with(magic)) {
            Some((_, kind)) => *kind,
            None if memchr::memchr(0, head).is_some() => Self::Binary("binary data"),
            None => Self::Text,
        }
    }
}

fn image(
    input: &Input,
    from: BufReader<Box<dyn io::Read + Send>>,
    mime: &'static str,
    size: u64,
    resolved: &Path,
    failed: impl Fn(io::Error) -> Refusal,
) -> Result<Seen, Refusal> {
    let mut bytes = Vec::new();
    if size <= IMAGE_BYTES {
        // Not trusted to have stayed that small.
        from.take(IMAGE_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    }
    if size > IMAGE_BYTES || bytes.len() as u64 > IMAGE_BYTES {
        let sentence = format!("{} is a picture of {size} bytes; models take {IMAGE_BYTES}", input.path);
        return Err(Refusal::new("too_large", sentence).hint("make a smaller copy with bash and read that"));
    }
    let data = base64::engine::general_purpose::STANDARD.encode(&bytes);
    Ok(Seen {
        text: format!("[{}: {mime}, {} bytes]", input.path, bytes.len()),
        picture: Some((mime, data)),
        details: json!({
            "path": resolved.to_string_lossy(), "mime": mime, "bytes": bytes.len(), "sha256": sha256(&bytes),
        }),
    })
}

fn text(
    input: &Input,
    mut lines: Lines,
    size: u64,
    resolved: &Path,
    failed: impl Fn(io::Error) -> Refusal,
) -> Result<Seen, Refusal> {
    let first = input.first();
    let before = lines.skip(first - 1).map_err(&failed)?;
    let mut page = Page::default();
    let mut full = false;
    while page.lines < input.limit()
        && !full
        && let Some(line) = lines.next(&mut page.hash).map_err(&failed)?
    {
        full = !page.add(before + page.lines + 1, &line);
    }
    let last = before + page.lines;

    // How many there are, if that is soon known.
    let ended = !full && lines.ended().map_err(&failed)?;
    let mut total = None;
    if ended || size <= COUNTED_BYTES {
        total = Some(last + u64::from(full) + lines.skip(u64::MAX).map_err(&failed)?);
    }

    if page.lines == 0 && first > 1 {
        let has = count(usize::try_from(before).unwrap_or(usize::MAX), "line");
        return Err(Refusal::new("past_end", format!("{} has only {has}", input.path)).hint("choose a smaller offset"));
    }
    if page.lines == 0 {
        let details = page.details(resolved, None, total);
        return Ok(Seen { text: format!("[{} is empty]", input.path), picture: None, details });
    }
    let details = page.details(resolved, Some([first, last]), total);
    let mut notes = page.notes();
    let of = total.map_or(String::new(), |total| format!(" of {total}"));
    if total.is_none_or(|total| last < total) {
        notes.push(format!("lines {first}–{last}{of}; go on with offset {}", last + 1));
    } else if first > 1 {
        notes.push(format!("lines {first}–{last}, the end of the file"));
    }
    let mut shown = page.shown;
    for note in notes {
        shown.push_str(&format!("[{note}]\n"));
    }
    Ok(Seen { text: shown, picture: None, details })
}

/// What is shown of a text.
#[derive(Default)]
struct Page {
    shown: String,
    lines: u64,
    bytes: u64,
    /// Of all lines read; a line that did not fit any more is not in `sha256`.
    hash: Sha256,
    sha256: Sha256,
    bom: bool,
    crlf: bool,
    lossy: bool,
}

impl Page {
    /// Adds a line; false if it does not fit.
    fn add(&mut self, number: u64, line: &Line) -> bool {
        let mut kept = &line.kept[..];
        let bom = number == 1 && kept.starts_with(b"\xef\xbb\xbf");
        if bom {
            kept = &kept[3..];
        }
        let crlf = line.whole && kept.ends_with(b"\r");
        if crlf {
            kept = &kept[..kept.len() - 1];
        }
        let text = String::from_utf8_lossy(kept);
        // A code point that the cut of the bytes has split lies behind this cut of the characters.
        let cut = text.char_indices().nth(LINE_CHARS).map(|(at, _)| at);
        let seen = &text[..cut.unwrap_or(text.len())];
        let mut shown = format!("{number:>6}\t{seen}");
        if cut.is_some() {
            shown.push_str(&format!(" [… line cut: it has {} bytes]", line.bytes));
        }
        shown.push('\n');
        if self.lines > 0 && self.shown.len() + shown.len() > SHOWN_BYTES {
            return false;
        }
        self.lossy |= matches!(text, Cow::Owned(_)) && seen.contains(char::REPLACEMENT_CHARACTER);
        self.bom |= bom;
        self.crlf |= crlf;
        self.shown.push_str(&shown);
        self.lines += 1;
        self.bytes += line.bytes;
        self.sha256 = self.hash.clone();
        true
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.crlf {
            notes.push("lines end with CR LF; edit keeps that".into());
        }
        if self.lossy {
            notes.push(
                "bytes that are not UTF-8 are shown as \u{fffd}; if this is old Korean text: `iconv -f CP949 -t UTF-8`"
                    .into(),
            );
        }
        notes
    }

    fn details(&self, resolved: &Path, range: Option<[u64; 2]>, total: Option<u64>) -> serde_json::Value {
        let mut details = json!({
            "path": resolved.to_string_lossy(),
            "range": range,
            "bytes": self.bytes,
            "sha256": hex(&self.sha256.clone().finalize()),
            "bom": self.bom,
        });
        if let Some(total) = total {
            details["lines_total"] = total.into();
        }
        details
    }
}

/// A file, line by line, in little memory however long they are.
struct Lines {
    from: BufReader<Box<dyn io::Read + Send>>,
    cancel: CancellationToken,
}

struct Line {
    /// Its beginning, without the line feed.
    kept: Vec<u8>,
    /// Whether that is all of it.
    whole: bool,
    /// Its length on disk, with the line feed.
    bytes: u64,
}

impl Lines {
    /// The next line; all its bytes go into `hash`.
    fn next(&mut self, hash: &mut Sha256) -> io::Result<Option<Line>> {
        let mut line = Line { kept: Vec::new(), whole: true, bytes: 0 };
        loop {
            let buffer = self.buffer()?;
            if buffer.is_empty() {
                return Ok((line.bytes > 0).then_some(line));
            }
            let feed = memchr::memchr(b'\n', buffer);
            let text = &buffer[..feed.unwrap_or(buffer.len())];
            let len = text.len() + usize::from(feed.is_some());
            let room = LINE_BYTES - line.kept.len();
            line.whole &= text.len() <= room;
            line.kept.extend_from_slice(&text[..text.len().min(room)]);
            line.bytes += len as u64;
            hash.update(&buffer[..len]);
            self.from.consume(len);
            if feed.is_some() {
                return Ok(Some(line));
            }
        }
    }

    /// Passes over so many lines, or as many as there are; tells how many.
    fn skip(&mut self, most: u64) -> io::Result<u64> {
        let (mut passed, mut begun) = (0, false);
        while passed < most {
            let buffer = self.buffer()?;
            if buffer.is_empty() {
                return Ok(passed + u64::from(begun));
            }
            let mut used = buffer.len();
            begun = !buffer.ends_with(b"\n");
            for at in memchr::memchr_iter(b'\n', buffer) {
                passed += 1;
                if passed == most {
                    used = at + 1;
                    break;
                }
            }
            self.from.consume(used);
        }
        Ok(passed)
    }

    fn ended(&mut self) -> io::Result<bool> {
        Ok(self.buffer()?.is_empty())
    }

    fn buffer(&mut self) -> io::Result<&[u8]> {
        loop {
            if self.cancel.is_cancelled() {
                return Err(ErrorKind::Interrupted.into());
            }
            match self.from.fill_buf() {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
                // Filled: asking again only lends it.
                Ok(_) => return self.from.fill_buf(),
            }
        }
    }
}

fn folder(input: &Input, path: &Path, label: Label) -> io::Result<ToolOutput> {
    let mut names = fs::read_dir(path)?.collect::<io::Result<Vec<_>>>()?;
    names.sort_by_key(fs::DirEntry::file_name);
    let start = usize::try_from(input.first() - 1).unwrap_or(usize::MAX).min(names.len());
    let limit = usize::try_from(input.limit()).unwrap_or(usize::MAX);
    let mut shown = String::new();
    let mut last = start;
    for entry in names[start..].iter().take(limit) {
        let mut line = entry.file_name().to_string_lossy().into_owned();
        let kind = entry.file_type()?;
        if kind.is_symlink() {
            let target = fs::read_link(entry.path()).unwrap_or_default();
            line.push_str(&format!(" -> {}", target.display()));
        } else if kind.is_dir() {
            line.push('/');
        }
        if last > start && shown.len() + line.len() + 1 > SHOWN_BYTES {
            break;
        }
        shown.push_str(&line);
        shown.push('\n');
        last += 1;
    }
    if names.is_empty() {
        shown.push_str("[the folder is empty]\n");
    } else if last < names.len() {
        shown.push_str(&format!("[{}–{last} of {} names; go on with offset {}]\n", start + 1, names.len(), last + 1));
    } else if last == start {
        shown.push_str(&format!("[the folder has only {}]\n", count(names.len(), "name")));
    }
    let details = json!({
        "path": path::real(path).unwrap_or(path.to_path_buf()).to_string_lossy(),
        "entries": names.len(),
        "range": (last > start).then_some([start + 1, last]),
    });
    Ok(Output::from(label).text(shown).details(details).done())
}
