//! The bytes of an answer as text: what kind they are, and in which charset.

use encoding_rs::{EUC_KR, Encoding, UTF_8, WINDOWS_1252};
use regex::bytes::Regex;
use std::sync::OnceLock;

/// How far a page is searched for the name of its charset, as browsers do.
const HEAD: usize = 1_024;

/// What is done with an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A page, told as Markdown.
    Html,
    /// Text, told as it is.
    Text,
    /// Anything else.
    Binary,
    /// The server does not say; its bytes do.
    Unsaid,
}

/// What a `content-type` says.
pub(super) fn kind(content_type: &str) -> Kind {
    let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let (class, name) = essence.split_once('/').unwrap_or((&essence, ""));
    match (class, name) {
        ("", _) | ("application", "octet-stream" | "x-unknown") | ("unknown", _) => Kind::Unsaid,
        ("text", "html") | ("application", "xhtml+xml") => Kind::Html,
        ("text", _) => Kind::Text,
        (
            "application",
            "json" | "xml" | "javascript" | "ecmascript" | "x-javascript" | "yaml" | "x-yaml" | "toml" | "sql"
            | "graphql" | "x-sh" | "x-ndjson" | "jsonl" | "rtf" | "x-httpd-php",
        ) => Kind::Text,
        (_, name) if ["+json", "+xml", "+yaml", "+json-seq"].iter().any(|end| name.ends_with(end)) => Kind::Text,
        _ => Kind::Binary,
    }
}

/// What bytes are of which nobody said it.
pub(super) fn looks_like(bytes: &[u8]) -> Kind {
    let head = &bytes[..bytes.len().min(HEAD)];
    if head.contains(&0) && Encoding::for_bom(head).is_none() {
        return Kind::Binary;
    }
    let lower = head.trim_ascii_start().to_ascii_lowercase();
    if lower.starts_with(b"<!doctype html") || lower.starts_with(b"<html") { Kind::Html } else { Kind::Text }
}

/// The text of bytes, and the name of its charset; `None` for what is no text.
///
/// A byte order mark decides, then the server, then the page itself (`html`). Where nobody says it, it is UTF-8 if it can be,
/// else EUC-KR with the extensions of CP949 if it can be, else windows-1252.
pub(super) fn decoded(bytes: &[u8], content_type: &str, html: bool) -> Option<(String, &'static str)> {
    let said = Encoding::for_bom(bytes)
        .map(|(encoding, _)| encoding)
        .or_else(|| named(parameter(content_type)?))
        .or_else(|| named(in_page(bytes).filter(|_| html)?));
    let encoding = said.unwrap_or_else(|| {
        let fits = |encoding: &&'static Encoding| {
            encoding.decode_without_bom_handling_and_without_replacement(bytes).is_some()
        };
        [UTF_8, EUC_KR].into_iter().find(fits).unwrap_or(WINDOWS_1252)
    });
    let (text, encoding, _) = encoding.decode(bytes);
    (!text.contains('\0')).then(|| (text.into_owned(), encoding.name()))
}

/// A charset by its label, with those that Korean programs use and browsers do not know.
fn named(label: &str) -> Option<&'static Encoding> {
    let label = label.trim();
    match label.to_ascii_lowercase().as_str() {
        "cp949" | "ms949" | "uhc" | "x-windows-949" => Some(EUC_KR),
        _ => Encoding::for_label(label.as_bytes()),
    }
}

/// The charset of a `content-type`.
fn parameter(content_type: &str) -> Option<&str> {
    content_type.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("charset").then(|| value.trim().trim_matches(['"', '\'']))
    })
}

/// The charset that a page names in its head: `<meta charset=…>`, or the same in the older form.
fn in_page(bytes: &[u8]) -> Option<&str> {
    static CHARSET: OnceLock<Option<Regex>> = OnceLock::new();
    let pattern = CHARSET.get_or_init(|| {
        Regex::new(r#"(?i-u)<(?:meta|\?xml)[^>]*?(?:charset|encoding)\s*=\s*["']?([a-z0-9_:.-]+)"#).ok()
    });
    let found = pattern.as_ref()?.captures(&bytes[..bytes.len().min(HEAD)])?.get(1)?;
    std::str::from_utf8(found.as_bytes()).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn kinds_are_told_apart() {
        for (said, expected) in [
            ("text/html; charset=utf-8", Kind::Html),
            ("TEXT/HTML", Kind::Html),
            ("application/xhtml+xml", Kind::Html),
            ("text/plain", Kind::Text),
            ("text/markdown;charset=UTF-8", Kind::Text),
            ("application/json", Kind::Text),
            ("application/problem+json", Kind::Text),
            ("image/svg+xml", Kind::Text),
            ("image/png", Kind::Binary),
            ("application/pdf", Kind::Binary),
            ("application/gzip", Kind::Binary),
            ("", Kind::Unsaid),
            ("application/octet-stream", Kind::Unsaid),
        ] {
            assert_eq!(kind(said), expected, "{said}");
        }
        assert_eq!(looks_like(b"\n <!DOCTYPE HTML>"), Kind::Html);
        assert_eq!(looks_like(b"PK\x03\x04\0\0"), Kind::Binary);
        assert_eq!(looks_like("글".as_bytes()), Kind::Text);
        assert_eq!(looks_like(b""), Kind::Text);
    }

    #[test]
    fn the_charset_is_the_marks_the_servers_the_pages_or_a_guess() {
        let korean = EUC_KR.encode("똠방각하 한글").0.into_owned();
        let page = |label: &str| [format!("<meta charset={label}>").as_bytes(), &korean].concat();
        let older =
            [&b"<meta http-equiv=\"Content-Type\" content=\"text/html; charset=euc-kr\">"[..], &korean].concat();
        for (bytes, said, html, charset) in [
            ("한글".as_bytes(), "", false, "UTF-8"),
            (&korean, "text/plain; charset=EUC-KR", false, "EUC-KR"),
            (&korean, "text/plain; charset=\"cp949\"", false, "EUC-KR"),
            (&korean, "text/plain", false, "EUC-KR"),
            (&page("ks_c_5601-1987"), "text/html", true, "EUC-KR"),
            (&page("'MS949'"), "text/html", true, "EUC-KR"),
            (&older, "text/html", true, "EUC-KR"),
            (b"\xff\xfe\x00\xd5\x5c\xb8", "text/plain; charset=euc-kr", false, "UTF-16LE"),
            (b"\xe9t\xe9!\xff", "", false, "windows-1252"),
            (b"x", "text/html; charset=nobody-knows", true, "UTF-8"),
        ] {
            let (text, name) = decoded(bytes, said, html).unwrap();
            assert_eq!(name, charset, "{said} {text}");
            assert!(!text.contains('\u{fffd}') && !text.contains('\u{feff}'), "{text}");
            assert!(charset != "EUC-KR" || text.ends_with("똠방각하 한글"), "{text}");
        }
        assert_eq!(decoded(b"a\0b", "text/plain", false), None);
    }
}
