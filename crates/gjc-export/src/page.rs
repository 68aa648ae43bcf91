//! The page: a frame that is the same for every session, and the session as data in it.
//!
//! The only things that a browser may run or apply are our own script and style, named by their hashes in a content security
//! policy that allows nothing else: no network, no frames, no forms; pictures only as data. The session is no markup but
//! JSON, from which the script builds text nodes.

use crate::children::Child;
use crate::data::{Data, write_text};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use gjc_entry::{
    BlobRef, Blobs, Body, JsonObject, Kind, Label, Message, Node, Ordinal, Skeleton, Source, Timestamp, UserMessage,
};
use gjc_log::fs::Fs;
use gjc_log::{Loaded, Reader, Tail};
use sha2::{Digest, Sha256};
use std::collections::HashSet;
use std::io::{self, Write};

const STYLE: &str = include_str!("page/page.css");
const SCRIPT: &str = concat!(
    include_str!("page/text.js"),
    include_str!("page/code.js"),
    include_str!("page/markdown.js"),
    include_str!("page/session.js"),
    include_str!("page/entry.js"),
    include_str!("page/outline.js"),
    include_str!("page/main.js"),
);

/// How every page begins, and nothing else: an earlier one may be replaced by a new one.
pub(crate) const BEGINS: &str = "<!doctype html>\n<html lang=\"en\" data-made-by=\"gjc\">\n";

/// So many of the first messages are looked at for words that a page without a name can bear.
const LOOKED_AT: usize = 16;
/// Characters of a page's name.
const LONGEST_NAME: usize = 80;
/// Subagents that are named; of the others the number is told.
const CHILDREN: usize = 500;

/// What a mask is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece {
    /// A part of the session.
    Session,
    /// What the page is named after: it stands in the session too, so who counts what was masked counts it there.
    Name,
}

/// What a page is made with, beside the session.
pub struct Making<'a> {
    /// Pictures, system prompts, lists of tools.
    pub blobs: &'a dyn Blobs,
    /// The sessions of subagents, to be named.
    pub children: &'a [Child],
    /// When it is made.
    pub at: Timestamp,
    /// What every piece of JSON passes before it is written, whole (an entry, a text): the place to take secrets out. What it
    /// gives back must be JSON.
    pub mask: Option<&'a dyn Fn(Vec<u8>, Piece) -> Vec<u8>>,
    /// Told how many entries of how many are written, now and then.
    pub progress: &'a dyn Fn(usize, usize),
}

/// Writes a session as a page: all entries with all branches, what is damaged, system prompt, tools, pictures. Memory does
/// not grow with the session but for 60 bytes an entry, and the largest line.
///
/// The reader is to be one that has scanned its file ([`Reader::open`]).
///
/// # Errors
/// Those of `out`.
pub fn html<F: Fs>(loaded: &Loaded<Reader<F>>, making: &Making<'_>, out: &mut dyn Write) -> io::Result<()> {
    let reader = &loaded.value;
    let none = Skeleton::default();
    let tree = reader.skeleton().unwrap_or(&none);
    let name = name_of(reader, tree, making)?;
    let mut out = io::BufWriter::with_capacity(128 * 1024, out);
    out.write_all(BEGINS.as_bytes())?;
    write!(
        out,
        "<head>\n<meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         script-src '{}'; style-src '{}'; img-src data:; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n<meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta http-equiv=\"x-dns-prefetch-control\" content=\"off\">\n\
         <meta name=\"generator\" content=\"gjc {}\">\n<meta name=\"gjc-label\" content=\"{}\">\n<title>",
        hash(SCRIPT),
        hash(STYLE),
        env!("CARGO_PKG_VERSION"),
        label_words(tree.label()),
    )?;
    write_text(&mut out, &name)?;
    write!(out, "</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<noscript>")?;
    write_text(
        &mut out,
        "This page holds a session of gjc as data, and shows it with a script of its own. It loads nothing. ",
    )?;
    write_text(&mut out, "Switch JavaScript on to read it.")?;
    out.write_all(b"</noscript>\n<script type=\"application/json\" id=\"session\">")?;
    let mut data = Data::new(&mut out, making.mask);
    write_head(loaded, tree, making, &mut data)?;
    write_entries(reader, tree, making, &mut data)?;
    data.end()?;
    write!(out, "</script>\n<script type=\"module\">{SCRIPT}</script>\n</body>\n</html>\n")?;
    out.flush()
}

/// As a content security policy names a script or a style: by its SHA-256.
fn hash(text: &str) -> String {
    format!("sha256-{}", BASE64_STANDARD.encode(Sha256::digest(text)))
}

pub(crate) fn label_words(label: Label) -> String {
    format!("{} {}", label.level, if label.trusted { "trusted" } else { "untrusted" })
}

/// What is known before the first entry.
fn write_head<F: Fs>(
    loaded: &Loaded<Reader<F>>,
    tree: &Skeleton,
    making: &Making<'_>,
    data: &mut Data<'_>,
) -> io::Result<()> {
    let reader = &loaded.value;
    let mut json = Vec::new();
    let file = reader.file_path().file_name().map(|name| name.to_string_lossy());
    JsonObject::begin(&mut json)
        .with("head", |out| {
            JsonObject::begin(out)
                .field("format", &1)
                .field("gjc", env!("CARGO_PKG_VERSION"))
                .field("file", &file.unwrap_or_default())
                .field("exported", &making.at.to_string())
                .field("level", &tree.label().level.to_string())
                .field("trusted", &tree.label().trusted)
                .field("leaf", &tree.leaf().map(|leaf| leaf.0))
                .field("entries", &tree.len())
                .field("unfinished", &(loaded.tail != Tail::Clean))
                .end();
        })
        .end();
    data.element(&mut json)?;
    JsonObject::begin(&mut json)
        .with("header", |out| {
            reader.header().write(out);
            // Its line feed.
            out.pop();
        })
        .end();
    data.element(&mut json)?;
    for damage in &loaded.damage {
        JsonObject::begin(&mut json).field("damage", &damage.to_string()).end();
        data.element(&mut json)?;
    }
    for child in making.children.iter().take(CHILDREN) {
        let name = child.path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        JsonObject::begin(&mut json).field("child", &name).field("bytes", &child.bytes).end();
        data.element(&mut json)?;
    }
    if let more @ 1.. = making.children.len().saturating_sub(CHILDREN) {
        JsonObject::begin(&mut json).field("moreChildren", &more).end();
        data.element(&mut json)?;
    }
    Ok(())
}

/// All entries in file order, each followed by the blobs that it is the first to name.
fn write_entries<F: Fs>(
    reader: &Reader<F>,
    tree: &Skeleton,
    making: &Making<'_>,
    data: &mut Data<'_>,
) -> io::Result<()> {
    let (mut json, mut wrote, mut told) = (Vec::new(), Ok(()), HashSet::new());
    let mut nodes = tree.iter();
    let mut count = 0;
    reader.bodies(&mut tree.iter().map(|(_, node)| node.at()), &mut |body| {
        let Some((ordinal, node)) = nodes.next().filter(|_| wrote.is_ok()) else { return };
        count += 1;
        if count % 4096 == 0 {
            (making.progress)(count, tree.len());
        }
        wrote = (|| match body {
            Ok(entry) => {
                write_place(&mut json, node);
                json.extend_from_slice(b",\"e\":");
                entry.write(&mut json);
                // Its line feed.
                json.pop();
                json.push(b'}');
                data.element(&mut json)?;
                let new = entry.blobs().into_iter().filter(|blob| told.insert(*blob)).collect::<Vec<_>>();
                new.into_iter().try_for_each(|blob| write_blob(&blob, node.kind(), making, data))
            }
            Err(damage) => {
                write_place(&mut json, node);
                json.push(b',');
                let mut rest = Vec::new();
                JsonObject::begin(&mut rest)
                    .field("id", &tree.id(ordinal))
                    .field("k", node.kind().as_str())
                    .field("lost", &damage.to_string())
                    .end();
                json.extend_from_slice(&rest[1..]);
                data.element(&mut json)
            }
        })();
    });
    wrote
}

/// The beginning of an entry's element, up to its place in the tree.
fn write_place(json: &mut Vec<u8>, node: &Node) {
    json.extend_from_slice(b"{\"p\":");
    match node.parent() {
        Some(Ordinal(parent)) => json.extend_from_slice(parent.to_string().as_bytes()),
        None => json.extend_from_slice(b"null"),
    }
    if node.is_nameless() {
        json.extend_from_slice(b",\"twin\":true");
    }
}

fn write_blob(blob: &BlobRef, of: Kind, making: &Making<'_>, data: &mut Data<'_>) -> io::Result<()> {
    let mut json = Vec::new();
    let bytes = match making.blobs.get(blob) {
        Ok(bytes) => bytes,
        Err(missing) => {
            JsonObject::begin(&mut json).field("blob", &blob.hex()).field("missing", &missing.why).end();
            return data.element(&mut json);
        }
    };
    if of == Kind::OwnEnv
        && let Ok(text) = std::str::from_utf8(&bytes)
    {
        JsonObject::begin(&mut json).field("blob", &blob.hex()).field("text", text).end();
        return data.element(&mut json);
    }
    let before = format!("{{\"blob\":\"{}\",\"base64\":\"", blob.hex());
    data.long(
        before.as_bytes(),
        |out| {
            // A multiple of three, so that the pieces are what the whole would be.
            let mut piece = String::new();
            bytes.chunks(48 * 1024).try_for_each(|chunk| {
                piece.clear();
                BASE64_STANDARD.encode_string(chunk, &mut piece);
                out.write_all(piece.as_bytes())
            })
        },
        b"\"}",
    )
}

/// The session's name as a person knows it: the last one it was given, else the first words of a person, else its id.
fn name_of<F: Fs>(reader: &Reader<F>, tree: &Skeleton, making: &Making<'_>) -> io::Result<String> {
    let renamed = tree.iter().rev().filter(|(_, node)| node.kind() == Kind::SessionInfo).find_map(|(_, node)| {
        match &reader.body(node.at()).ok()?.body {
            Body::SessionInfo { name } => name.clone().filter(|name| !name.trim().is_empty()),
            _ => None,
        }
    });
    let first_words = || {
        let messages = tree.iter().filter(|(_, node)| node.kind() == Kind::Message).take(LOOKED_AT);
        messages.filter_map(|(_, node)| reader.body(node.at()).ok()).find_map(|entry| match &entry.body {
            Body::Message(Message::User(UserMessage { content, .. })) => {
                Some(content.text()).filter(|text| !text.trim().is_empty())
            }
            _ => None,
        })
    };
    let header = reader.header();
    let whole: String =
        renamed.or_else(|| header.title.clone()).or_else(first_words).unwrap_or_else(|| header.id.to_string());
    // Whole, before anything is cut off: no mask knows a secret by its half.
    let whole = match making.mask {
        Some(mask) => serde_json::from_slice(&mask(serde_json::to_vec(&whole)?, Piece::Name))?,
        None => whole,
    };
    let line = whole.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    Ok(line.chars().map(|c| if c.is_control() { ' ' } else { c }).take(LONGEST_NAME).collect())
}
