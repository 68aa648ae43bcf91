//! What becomes of a body at admission: mended, its pictures in the blob store, its long strings cut.
//!
//! The entry that comes out is the one that is kept in memory, shown and written: all three hold the same. Where nothing
//! is to be done, nothing is copied or encoded: only lengths are looked at, and raw JSON is searched for escapes.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use gjc_entry::fields::{FieldError, JsonObject, edit_strings, replace_lone_surrogates};
use gjc_entry::message::ImageData;
use gjc_entry::{BlobRef, Block, Body, Content, Entry, EntryId, Message, Origin, Own, RawFields, Timestamp};
use gjc_flow::digest;
use serde_json::value::RawValue;
use std::fmt::Write;
use std::path::Path;

/// The longest string that an entry may hold, in UTF-16 units: what the readers of the family take.
pub(crate) const LONGEST: usize = 500_000;
/// From how many characters of base64 on a picture goes to the blob store.
const PICTURE: usize = 1_024;
/// Signatures. A cut one is worthless, and a provider refuses it; without one it is only not used.
const SIGNATURES: [&str; 3] = ["thinkingSignature", "thoughtSignature", "textSignature"];
/// How far back a cut looks for the beginning of what a person sees as one character.
const CLUSTER: usize = 32;
const ZERO_WIDTH_JOINER: char = '\u{200D}';

const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// A body as it will be written.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) body: Body,
    /// Fields of the entry that say what was done.
    pub(crate) extra: RawFields,
    /// Whole texts that were too long: file name, text.
    pub(crate) artifacts: Vec<(String, String)>,
    /// What a person should know.
    pub(crate) notes: Vec<String>,
}

/// Makes a body what it will be in memory and on disk. `folder`: the session's own, for whole texts; `None` in memory.
///
/// # Errors
/// When a body that had to be encoded cannot be read again, which is a fault of this program.
pub(crate) fn prepare(
    body: Body,
    folder: Option<&Path>,
    put_blob: &mut dyn FnMut(&[u8]) -> BlobRef,
) -> Result<Prepared, FieldError> {
    let mut prepared = Prepared { body, extra: RawFields::new(), artifacts: Vec::new(), notes: Vec::new() };
    mend(&mut prepared)?;
    for block in blocks_of(&mut prepared.body) {
        store_picture(block, put_blob);
        drop_signature(block);
    }
    name_origins(&mut prepared.body);
    cap(&mut prepared, folder)?;
    Ok(prepared)
}

/// Replaces lone surrogates in the arguments of calls, for the tools that get them. Their admission reports it.
pub(crate) fn mend_arguments(blocks: &mut [Block]) {
    for block in blocks {
        if let Block::ToolCall { arguments, .. } = block
            && let Some(mended) = replace_lone_surrogates(arguments.get())
            && let Ok(raw) = RawValue::from_string(mended)
        {
            *arguments = raw;
        }
    }
}

/// Lone surrogates (JavaScript writes them) become U+FFFD: half of the readers refuse them. A Rust string cannot hold one,
/// so they can only be in raw JSON.
fn mend(prepared: &mut Prepared) -> Result<(), FieldError> {
    let mut lone = false;
    parts(&prepared.body, &mut |part| {
        if let Part::Raw(raw) = part {
            // Nearly no text has such an escape; looking for one is cheaper than looking at each.
            lone |= (raw.contains("\\ud") || raw.contains("\\uD")) && replace_lone_surrogates(raw).is_some();
        }
    });
    if !lone {
        return Ok(());
    }
    rewrite(prepared, &mut |json| replace_lone_surrogates(json))?;
    prepared.extra.push(field("gjcMended", "\"lone surrogates\""));
    prepared.notes.push(
        "a text held half of a character (a lone surrogate), which other programs cannot read; it is stored as \u{fffd}"
            .into(),
    );
    Ok(())
}

fn store_picture(block: &mut Block, put_blob: &mut dyn FnMut(&[u8]) -> BlobRef) {
    if let Block::Image { data, .. } = block
        && let ImageData::Inline(base64) = data
        && base64.len() >= PICTURE
        && let Some(bytes) = picture_bytes(base64)
    {
        *data = ImageData::Blob(put_blob(&bytes));
    }
}

/// What base64 stands for; some programs break its lines.
fn picture_bytes(base64: &str) -> Option<Vec<u8>> {
    BASE64.decode(base64).ok().or_else(|| {
        let joined: Vec<u8> = base64.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
        BASE64.decode(joined).ok()
    })
}

/// Thinking that will be cut is no longer what was signed: the provider would refuse it with each request from then on.
fn drop_signature(block: &mut Block) {
    if let Block::Thinking { thinking, signature, .. } = block
        && is_long(thinking)
    {
        *signature = None;
    }
}

fn is_long(text: &str) -> bool {
    // No text has more UTF-16 units than bytes.
    text.len() > LONGEST && text.encode_utf16().count() > LONGEST
}

/// Who brought a block in, where that follows from what the entry is.
fn name_origins(body: &mut Body) {
    let known = match body {
        Body::Message(Message::ToolResult(_)) => Origin::Tool,
        Body::CustomMessage { custom_type, .. } if custom_type.starts_with("gjc.") => Origin::Host,
        _ => return,
    };
    for block in blocks_of(body) {
        if let Block::Text { origin, .. } | Block::Image { origin, .. } = block {
            origin.get_or_insert(known);
        }
    }
}

/// Cuts strings that are too long, wherever they stand.
fn cap(prepared: &mut Prepared, folder: Option<&Path>) -> Result<(), FieldError> {
    let mut long = false;
    // No string has more UTF-16 units than bytes, as text or as JSON.
    parts(&prepared.body, &mut |part| long |= part.len() > LONGEST);
    if !long {
        return Ok(());
    }
    let opaque: Vec<String> = blocks_of(&mut prepared.body)
        .iter()
        .enumerate()
        .filter(|(_, block)| matches!(block, Block::RedactedThinking { .. }))
        .map(|(index, _)| format!("/message/content/{index}/data"))
        .collect();
    let mut long = Long { folder, whole: Vec::new(), artifacts: Vec::new(), notes: Vec::new() };
    name_pictures(&mut prepared.body, &mut long);
    rewrite(prepared, &mut |json| {
        edit_strings(json, LONGEST, &mut |at, text| {
            let units = text.encode_utf16().count();
            if units <= LONGEST {
                return None;
            }
            if SIGNATURES.contains(&at.key) || opaque.iter().any(|pointer| pointer == at.pointer) {
                long.name(at.pointer, units, None);
                return Some(String::new());
            }
            let kept = long.keep(at.pointer, units, &text);
            let notice = match &kept {
                Some(path) => format!("the whole text, {units} UTF-16 units, is in {path}; read it in parts"),
                None => format!("of {units} UTF-16 units the rest was not kept (--no-session)"),
            };
            long.notes.push(match kept {
                Some(path) => format!("a text of {units} UTF-16 units was cut; the whole is in {path}"),
                None => format!("a text of {units} UTF-16 units was cut; the rest is not kept with --no-session"),
            });
            Some(cut(&text, &format!("\n\n[cut here: {notice}]")))
        })
    })?;
    if !long.whole.is_empty() {
        prepared.extra.push(field("gjcWhole", &format!("[{}]", long.whole.join(","))));
    }
    prepared.artifacts = long.artifacts;
    prepared.notes.extend(long.notes);
    Ok(())
}

/// What of a body was too long.
struct Long<'a> {
    folder: Option<&'a Path>,
    /// The items of `gjcWhole`.
    whole: Vec<String>,
    artifacts: Vec<(String, String)>,
    notes: Vec<String>,
}

impl Long<'_> {
    /// Keeps a whole text beside the session, and gives its path; `None` where nothing is kept.
    fn keep(&mut self, pointer: &str, units: usize, text: &str) -> Option<String> {
        let name = self.folder.map(|_| artifact_name(text));
        self.name(pointer, units, name.as_deref());
        let (folder, name) = self.folder.zip(name)?;
        let path = folder.join(&name).display().to_string();
        self.artifacts.push((name, text.into()));
        Some(path)
    }

    /// Says in the entry what is not there as it came.
    fn name(&mut self, pointer: &str, units: usize, artifact: Option<&str>) {
        let mut item = Vec::new();
        let mut fields = JsonObject::begin(&mut item);
        fields.field("at", pointer).some("artifact", &artifact).field("units", &units).end();
        self.whole.push(String::from_utf8(item).unwrap_or_default());
    }
}

/// A picture that is too long and was not stored as one is none: cut, with a notice inside, it would be refused with each
/// request. A text takes its place.
fn name_pictures(body: &mut Body, long: &mut Long<'_>) {
    let content = if matches!(body, Body::Message(_)) { "/message/content" } else { "/content" };
    for (index, block) in blocks_of(body).iter_mut().enumerate() {
        if let Block::Image { data: ImageData::Inline(data), mime, origin, extra } = block
            && is_long(data)
        {
            let units = data.encode_utf16().count();
            let kept = long.keep(&format!("{content}/{index}/text"), units, data);
            let rest =
                kept.map_or_else(|| "which were not kept (--no-session)".into(), |path| format!("kept in {path}"));
            let text = format!("[no image: its data is not base64; {units} UTF-16 units of type {mime}, {rest}]");
            long.notes.push(text[1..text.len() - 1].to_owned());
            *block = Block::Text { text, origin: *origin, extra: std::mem::take(extra) };
        }
    }
}

/// The name is the content's: a second attempt, and a second entry with the same text, name the same file.
fn artifact_name(text: &str) -> String {
    let mut name = String::from("whole-");
    for byte in &digest(text.as_bytes())[..16] {
        let _ = write!(name, "{byte:02x}");
    }
    name + ".txt"
}

/// The beginning of a text with a notice behind it, [`LONGEST`] units together. Never inside a surrogate pair, and not
/// inside what a person sees as one character where its beginning is near.
fn cut(text: &str, notice: &str) -> String {
    let room = LONGEST.saturating_sub(notice.encode_utf16().count());
    let mut units = 0;
    let beyond = text.char_indices().find(|(_, c)| {
        units += c.len_utf16();
        units > room
    });
    let end = beyond.map_or(text.len(), |(at, _)| at);
    format!("{}{notice}", &text[..cluster_start(text, end)])
}

/// The nearest place before `end` where no character goes on, if there is one near.
fn cluster_start(text: &str, end: usize) -> usize {
    let mut near = end;
    for _ in 0..CLUSTER {
        let (before, after) = (text[..near].chars().next_back(), text[near..].chars().next());
        match before {
            Some(before) if before == ZERO_WIDTH_JOINER || after.is_some_and(continues) => near -= before.len_utf8(),
            _ => return near,
        }
    }
    end
}

/// Whether a character belongs to the one before it: marks, joiners, skin tones, Hangul jamo that follow a consonant.
fn continues(c: char) -> bool {
    matches!(c,
        '\u{0300}'..='\u{036F}' | '\u{1160}'..='\u{11FF}' | '\u{D7B0}'..='\u{D7FF}' | '\u{200D}' | '\u{20D0}'..='\u{20FF}'
        | '\u{302A}'..='\u{302F}' | '\u{3099}'..='\u{309A}' | '\u{FE00}'..='\u{FE0F}' | '\u{1F3FB}'..='\u{1F3FF}'
        | '\u{E0020}'..='\u{E007F}')
}

/// Changes a body as JSON, so that what is kept in memory is what a reader of the line gets.
fn rewrite(prepared: &mut Prepared, change: &mut dyn FnMut(&str) -> Option<String>) -> Result<(), FieldError> {
    let entry = Entry {
        id: EntryId::Short(0),
        parent: None,
        at: Timestamp::default(),
        label: None,
        body: prepared.body.clone(),
        extra: RawFields::new(),
    };
    let mut line = Vec::new();
    entry.write(&mut line);
    let line = String::from_utf8(line).map_err(|error| FieldError::NotAnObject(error.to_string()))?;
    if let Some(changed) = change(line.trim_end()) {
        prepared.body = Entry::parse(&changed)?.body;
    }
    Ok(())
}

fn field(name: &str, json: &str) -> (Box<str>, Box<RawValue>) {
    (name.into(), RawValue::from_string(json.into()).unwrap_or_default())
}

/// The blocks of a body's content.
fn blocks_of(body: &mut Body) -> &mut [Block] {
    match body {
        Body::Message(Message::Assistant(said)) => &mut said.content,
        Body::Message(Message::User(user)) => blocks(&mut user.content),
        Body::Message(Message::ToolResult(result)) => blocks(&mut result.content),
        Body::CustomMessage { content, .. } => blocks(content),
        _ => &mut [],
    }
}

fn blocks(content: &mut Content) -> &mut [Block] {
    match content {
        Content::Blocks(blocks) => blocks,
        Content::Text(_) => &mut [],
    }
}

/// A piece of a body that may be long, or hold what has to be mended.
enum Part<'a> {
    Text(&'a str),
    Raw(&'a str),
}

impl Part<'_> {
    fn len(&self) -> usize {
        let (Self::Text(text) | Self::Raw(text)) = self;
        text.len()
    }
}

/// Every string and every raw value of a body.
fn parts(body: &Body, see: &mut dyn FnMut(Part<'_>)) {
    match body {
        Body::Message(Message::User(user)) => {
            content_parts(&user.content, see);
            raw_parts(&user.extra, see);
        }
        Body::Message(Message::Assistant(said)) => {
            said.content.iter().for_each(|block| block_parts(block, see));
            for text in [&said.api, &said.provider, &said.model] {
                see(Part::Text(text));
            }
            for text in said.response_id.iter().chain(&said.error) {
                see(Part::Text(text));
            }
            if let gjc_entry::StopReason::Other(text) = &said.stop {
                see(Part::Text(text));
            }
            raw_parts(&said.extra, see);
        }
        Body::Message(Message::ToolResult(result)) => {
            see(Part::Text(&result.call_id));
            see(Part::Text(&result.tool));
            content_parts(&result.content, see);
            result.details.iter().for_each(|raw| see(Part::Raw(raw.get())));
            raw_parts(&result.extra, see);
        }
        Body::Message(Message::Other { raw, .. }) => see(Part::Raw(raw.get())),
        Body::Compaction { summary, .. } => see(Part::Text(summary)),
        Body::BranchSummary { from, summary } => {
            see(Part::Text(from));
            see(Part::Text(summary));
        }
        Body::Own(Own::Other { data: Some(raw), .. }) => see(Part::Raw(raw.get())),
        // Names and numbers of ours.
        Body::Own(_) | Body::Unknown { .. } => {}
        Body::Custom { custom_type, data } => {
            see(Part::Text(custom_type));
            data.iter().for_each(|raw| see(Part::Raw(raw.get())));
        }
        Body::CustomMessage { custom_type, content, details, .. } => {
            see(Part::Text(custom_type));
            content_parts(content, see);
            details.iter().for_each(|raw| see(Part::Raw(raw.get())));
        }
        Body::Label { label: text, .. }
        | Body::SessionInfo { name: text }
        | Body::ThinkingLevelChange { level: text }
        | Body::ServiceTierChange { tier: text } => {
            text.iter().for_each(|text| see(Part::Text(text)));
        }
        Body::ModeChange { mode, data } => {
            mode.iter().for_each(|text| see(Part::Text(text)));
            data.iter().for_each(|raw| see(Part::Raw(raw.get())));
        }
        Body::ModelChange { provider, model, role } => {
            [provider, model].into_iter().chain(role).for_each(|text| see(Part::Text(text)));
        }
    }
}

fn content_parts(content: &Content, see: &mut dyn FnMut(Part<'_>)) {
    match content {
        Content::Text(text) => see(Part::Text(text)),
        Content::Blocks(blocks) => blocks.iter().for_each(|block| block_parts(block, see)),
    }
}

fn block_parts(block: &Block, see: &mut dyn FnMut(Part<'_>)) {
    let extra = match block {
        Block::Text { text, extra, .. } => {
            see(Part::Text(text));
            extra
        }
        Block::Thinking { thinking, signature, extra } => {
            see(Part::Text(thinking));
            signature.iter().for_each(|text| see(Part::Text(text)));
            extra
        }
        Block::RedactedThinking { data, extra } => {
            see(Part::Text(data));
            extra
        }
        Block::Image { data, mime, extra, .. } => {
            see(Part::Text(mime));
            if let ImageData::Inline(base64) = data {
                see(Part::Text(base64));
            }
            extra
        }
        Block::ToolCall { id, name, arguments, extra } => {
            see(Part::Text(id));
            see(Part::Text(name));
            see(Part::Raw(arguments.get()));
            extra
        }
        Block::Unknown(raw) => return see(Part::Raw(raw.get())),
    };
    raw_parts(extra, see);
}

fn raw_parts(fields: &RawFields, see: &mut dyn FnMut(Part<'_>)) {
    fields.iter().for_each(|(_, raw)| see(Part::Raw(raw.get())));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cut_goes_through_what_a_person_sees_as_one_character() {
        let units = |text: &str| text.encode_utf16().count();
        // A family, a thumb with its tone, decomposed Hangul, a letter with marks, a character of two units.
        for cluster in ["👩\u{200D}👩\u{200D}👧\u{200D}👦", "👍🏽", "\u{1112}\u{1161}\u{11ab}", "e\u{301}\u{302}", "😀"]
        {
            // One of these offsets has the cut at each place of a cluster.
            for offset in 0..units(cluster) {
                let whole = format!("{}{}", "x".repeat(offset), cluster.repeat(LONGEST / units(cluster) + 9));
                let short = cut(&whole, "…");
                let kept = short.strip_suffix('…').unwrap();
                assert!(
                    whole.starts_with(kept) && kept[offset..].len().is_multiple_of(cluster.len()),
                    "{cluster} {offset}"
                );
                assert!(units(&short) <= LONGEST && units(&short) > LONGEST - units(cluster), "{cluster} {offset}");
            }
        }
        // A letter with no end of marks is no reason to lose more.
        assert_eq!(units(&cut(&format!("e{}", "\u{301}".repeat(LONGEST + 9)), "…")), LONGEST);
        assert_eq!(units(&cut(&"한".repeat(LONGEST + 1), "…")), LONGEST);
    }

    #[test]
    fn a_body_that_needs_nothing_is_not_rewritten() {
        let arguments = RawValue::from_string(r#"{ "a" : "\u0041\ud83d\ude00", "n":1.0 }"#.into()).unwrap();
        let block = Block::ToolCall { id: "c".into(), name: "t".into(), arguments, extra: Vec::new() };
        let address = |block: &Block| match block {
            Block::ToolCall { arguments, .. } => arguments.get().as_ptr(),
            _ => unreachable!(),
        };
        let before = address(&block);
        let said = Body::Message(Message::User(gjc_entry::UserMessage {
            content: Content::Blocks(vec![block]),
            at: 1,
            extra: Vec::new(),
        }));
        let mut prepared = prepare(said, None, &mut |_| unreachable!()).unwrap();
        assert_eq!(address(&blocks_of(&mut prepared.body)[0]), before, "the very same bytes");
        assert!(prepared.extra.is_empty() && prepared.notes.is_empty() && prepared.artifacts.is_empty());
    }
}
