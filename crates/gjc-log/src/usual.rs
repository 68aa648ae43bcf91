//! The beginning that nearly every line has, read at once. The general reader of keys says the same of it, and reads
//! whatever begins in another way.

use crate::scan::Frame;
use crate::sift::Sifted;
use gjc_entry::{EntryId, Kind, Label, Level};

/// What the usual beginning of a line says.
#[derive(Debug)]
pub(crate) struct Begun {
    /// Of an entry whose whole frame it is, unless `"parentId"` or `"gjcLabel"` come again.
    pub(crate) frame: Frame,
    /// How many bytes were read: printable ASCII, with one `"parentId":`, and one `"gjcLabel"` if the frame has a label.
    pub(crate) len: usize,
}

impl Begun {
    /// What a sift of the bytes that were read says.
    pub(crate) fn sifted(&self) -> Sifted {
        Sifted { nul: false, utf8: true, parents: 1, labels: u8::from(self.frame.label.is_some()) }
    }
}

/// The frame of `{"type":"…","id":"8 hex","parentId":null or "8 hex",` with `"gjcLabel":{…}` or `"timestamp":"…"` behind;
/// `None` for any other line. What comes after the line feed is not looked at.
pub(crate) fn begin(bytes: &[u8]) -> Option<Begun> {
    let rest = bytes.strip_prefix(b"{\"type\":\"")?;
    let (kind, rest) = match rest.strip_prefix(b"message\"") {
        Some(rest) => (Kind::Message, rest),
        None => {
            let (kind, rest) = word(rest)?;
            // Its `customType` may stand anywhere.
            if kind == "custom" {
                return None;
            }
            (Kind::of(kind, None), rest)
        }
    };
    let (id, rest) = short(rest.strip_prefix(b",\"id\":")?)?;
    let rest = rest.strip_prefix(b",\"parentId\":")?;
    let (parent, rest) = match rest.strip_prefix(b"null") {
        Some(rest) => (None, rest),
        None => short(rest).map(|(id, rest)| (Some(id), rest))?,
    };
    let (label, rest) = match rest.strip_prefix(b",\"gjcLabel\":") {
        Some(rest) => label(rest).map(|(label, rest)| (Some(label), rest))?,
        None => (None, time(rest.strip_prefix(b",\"timestamp\":\"")?)?),
    };
    matches!(rest.first(), Some(b',' | b'}')).then_some(())?;
    let (id, parent) = (EntryId::Short(id), parent.map(EntryId::Short));
    let frame = Frame { kind, id, parent, label, parented: true, doubtful: false };
    Some(Begun { frame, len: bytes.len() - rest.len() })
}

/// What stands behind a time and its quote: 24 bytes, or another text.
fn time(bytes: &[u8]) -> Option<&[u8]> {
    match bytes.split_first_chunk::<25>() {
        // All bytes at once: no branch for each.
        Some(([text @ .., b'"'], rest)) if text.iter().fold(true, |plain, byte| plain & is_plain(*byte)) => Some(rest),
        _ => Some(word(bytes)?.1),
    }
}

/// Text without escapes up to its quote, and what stands behind that. Types and times are short.
fn word(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let end = bytes.iter().take(40).position(|byte| !is_plain(*byte))?;
    let (word, rest) = bytes.split_at(end);
    Some((std::str::from_utf8(word).ok()?, rest.strip_prefix(b"\"")?))
}

/// Whether a byte is a printable ASCII character that stands for itself inside of a text.
fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..0x7F) & (byte != b'"') & (byte != b'\\')
}

/// A short id in its quotes, and what stands behind.
fn short(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (quoted, rest) = bytes.split_first_chunk::<10>()?;
    match quoted {
        [b'"', id @ .., b'"'] => Some((EntryId::short(id)?, rest)),
        _ => None,
    }
}

/// A label as gjc writes it, and what stands behind.
fn label(bytes: &[u8]) -> Option<(Label, &[u8])> {
    let rest = bytes.strip_prefix(b"{\"l\":\"")?;
    let (level, rest) =
        Level::ALL.into_iter().find_map(|level| Some((level, rest.strip_prefix(level.as_str().as_bytes())?)))?;
    let rest = rest.strip_prefix(b"\",\"t\":")?;
    let trusted = rest.first() == Some(&b't');
    let rest = rest.strip_prefix(if trusted { &b"true}"[..] } else { b"false}" })?;
    Some((Label { level, trusted }, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scan::{frame, general};
    use crate::sift::sift;

    #[test]
    fn the_general_reader_says_the_same_whatever_byte_is_another() {
        let lines = [
            r#"{"type":"message","id":"0000000a","parentId":"ffffff0b","timestamp":"2026-06-05T07:18:54.123Z","message":{"role":"user"}}"#,
            r#"{"type":"message","id":"0000000a","parentId":null,"timestamp":"2026-06-05T07:18:54.123Z","x":{"gjcLabel":1}}"#,
            r#"{"type":"label","id":"0000000a","parentId":"ffffff0b","gjcLabel":{"l":"INTERNAL","t":false},"timestamp":"x"}"#,
            r#"{"type":"compaction","id":"0000000a","parentId":null,"gjcLabel":{"l":"RESTRICTED","t":true}}"#,
            r#"{"type":"custom","id":"0000000a","parentId":null,"timestamp":"x","customType":"gjc.leaf"}"#,
            r#"{"type":"message","id":"0000000a","parentId":null,"timestamp":"x","y":1,"gjcLabel":{"l":"PUBLIC","t":true}}"#,
        ];
        let mut usual_ones = 0;
        for line in lines {
            for at in 0..line.len() {
                for byte in b"\"\\{}[],:x0 tn\t" {
                    let mut other = line.as_bytes().to_vec();
                    other[at] = *byte;
                    usual_ones += usize::from(begin(&other).is_some());
                    if other.starts_with(b"{") && other.ends_with(b"}") {
                        let expected = general(&other, sift(&other), false);
                        assert_eq!(frame(&other), expected, "{}", String::from_utf8_lossy(&other));
                    }
                }
            }
        }
        assert!(usual_ones > 1000, "{usual_ones}");
    }
}
