//! The beginning that nearly every line has, read at once. The general reader of keys says the same of it, and reads
//! whatever begins in another way.

use crate::scan::Frame;
use crate::sift::Sifted;
use gjc_entry::{EntryId, Kind, Label, Level};

/// The frame of `{"type":"…","id":"8 hex","parentId":null or "8 hex",` with `"gjcLabel":{…}` or `"timestamp":"…"` behind;
/// `None` for any other line.
pub(crate) fn usual(line: &[u8], sifted: Sifted) -> Option<Frame> {
    let rest = line.strip_prefix(b"{\"type\":\"")?;
    let (kind, rest) = word(rest)?;
    // Its `customType` may stand anywhere.
    if kind == b"custom" {
        return None;
    }
    let (id, rest) = short(rest.strip_prefix(b",\"id\":")?)?;
    let rest = rest.strip_prefix(b",\"parentId\":")?;
    let (parent, rest) = match rest.strip_prefix(b"null") {
        Some(rest) => (None, rest),
        None => short(rest).map(|(id, rest)| (Some(id), rest))?,
    };
    let (label, rest) = match rest.strip_prefix(b",\"gjcLabel\":") {
        // Another label would be somewhere behind.
        _ if sifted.labels > 1 => return None,
        Some(rest) => label(rest).map(|(label, rest)| (Some(label), rest))?,
        None if sifted.labels > 0 => return None,
        None => (None, word(rest.strip_prefix(b",\"timestamp\":\"")?)?.1),
    };
    matches!(rest.first(), Some(b',' | b'}')).then_some(())?;
    Some(Frame {
        kind: Kind::of(std::str::from_utf8(kind).ok()?, None),
        id: EntryId::Short(id),
        parent: parent.map(EntryId::Short),
        label,
        parented: true,
        doubtful: sifted.parents > 1,
    })
}

/// Text without escapes up to its quote, and what stands behind that. Types and times are short.
fn word(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().take(40).position(|byte| matches!(byte, b'"' | b'\\'))?;
    (bytes[end] == b'"').then(|| (&bytes[..end], &bytes[end + 1..]))
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
                    usual_ones += usize::from(usual(&other, sift(&other)).is_some());
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
