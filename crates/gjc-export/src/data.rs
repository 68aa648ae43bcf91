//! The data of a page: JSON that no parser of HTML can take for anything else.
//!
//! It is one array with one element on each line, so that the page reads it line by line, and only what it shows:
//!
//! | element | what it is |
//! |---|---|
//! | `{"head":{…}}` | the first: the session's file, time of the export, label, leaf (a place in the list of entries), size |
//! | `{"header":{…}}` | the session's first line |
//! | `{"damage":"…"}` | what could not be read, as a sentence |
//! | `{"child":"…","bytes":n}` | a subagent's session, which is not in the page |
//! | `{"p":place,"e":{…}}` | an entry and the place of its parent (`null`: a root); `twin`: its id belongs to an earlier one |
//! | `{"p":place,"id":"…","k":"…","lost":"…"}` | an entry that cannot be read, and why |
//! | `{"blob":"…","text":"…"}`, `{…,"base64":"…"}`, `{…,"missing":"…"}` | bytes that an entry before it names |

use crate::page::Piece;
use std::io::{self, Write};

/// Writes elements, each on a line of its own.
pub(crate) struct Data<'a> {
    out: &'a mut dyn Write,
    mask: Option<&'a dyn Fn(Vec<u8>, Piece) -> Vec<u8>>,
    begun: bool,
}

impl<'a> Data<'a> {
    pub(crate) fn new(out: &'a mut dyn Write, mask: Option<&'a dyn Fn(Vec<u8>, Piece) -> Vec<u8>>) -> Self {
        Self { out, mask, begun: false }
    }

    /// Writes one element; it is emptied. What the mask makes of it is written in its place.
    pub(crate) fn element(&mut self, json: &mut Vec<u8>) -> io::Result<()> {
        self.begin()?;
        match self.mask {
            Some(mask) => write_escaped(self.out, &mask(std::mem::take(json), Piece::Session))?,
            None => write_escaped(self.out, json)?,
        }
        json.clear();
        Ok(())
    }

    /// Writes an element of which a part is as long as a picture: `before` and `after` are JSON, `middle` writes what needs no
    /// escape.
    pub(crate) fn long(
        &mut self,
        before: &[u8],
        middle: impl FnOnce(&mut dyn Write) -> io::Result<()>,
        after: &[u8],
    ) -> io::Result<()> {
        self.begin()?;
        write_escaped(self.out, before)?;
        middle(self.out)?;
        write_escaped(self.out, after)
    }

    /// Ends the array.
    pub(crate) fn end(self) -> io::Result<()> {
        self.out.write_all(if self.begun { b"\n]" } else { b"[]" })
    }

    fn begin(&mut self) -> io::Result<()> {
        let separator: &[u8] = if std::mem::replace(&mut self.begun, true) { b",\n" } else { b"[\n" };
        self.out.write_all(separator)
    }
}

const ESCAPED: [bool; 256] = {
    let mut table = [false; 256];
    table[b'<' as usize] = true;
    table[b'>' as usize] = true;
    table[b'&' as usize] = true;
    // A line feed between the fields of an element would end its line.
    table[b'\n' as usize] = true;
    table[b'\r' as usize] = true;
    // The first byte of U+2028 and U+2029, which end a line for some readers.
    table[0xE2] = true;
    table
};

/// Writes JSON without the characters that mean something to a parser of HTML. They stand in strings only, where each may be
/// written as an escape: whoever parses the JSON gets the same values.
pub(crate) fn write_escaped(out: &mut dyn Write, json: &[u8]) -> io::Result<()> {
    let mut from = 0;
    for (at, byte) in json.iter().enumerate() {
        if !ESCAPED[usize::from(*byte)] {
            continue;
        }
        let (escape, len): (&[u8], usize) = match (byte, json.get(at + 1..at + 3)) {
            (b'<', _) => (b"\\u003c", 1),
            (b'>', _) => (b"\\u003e", 1),
            (b'&', _) => (b"\\u0026", 1),
            // Between fields: JSON has no raw line feeds in strings.
            (b'\n' | b'\r', _) => (b" ", 1),
            (_, Some([0x80, 0xA8])) => (b"\\u2028", 3),
            (_, Some([0x80, 0xA9])) => (b"\\u2029", 3),
            _ => continue,
        };
        out.write_all(&json[from..at])?;
        out.write_all(escape)?;
        from = at + len;
    }
    out.write_all(&json[from..])
}

/// Writes text between tags of HTML, or in a quoted attribute.
pub(crate) fn write_text(out: &mut dyn Write, text: &str) -> io::Result<()> {
    let mut from = 0;
    for (at, byte) in text.bytes().enumerate() {
        let escape: &[u8] = match byte {
            b'<' => b"&lt;",
            b'>' => b"&gt;",
            b'&' => b"&amp;",
            b'"' => b"&quot;",
            b'\'' => b"&#39;",
            _ => continue,
        };
        out.write_all(&text.as_bytes()[from..at])?;
        out.write_all(escape)?;
        from = at + 1;
    }
    out.write_all(&text.as_bytes()[from..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_html_knows_is_left_and_every_value_is_the_same() {
        let hostile = [
            "</script><script>alert(1)</script>",
            "<!--<script>",
            "]]>&lt;&#60;",
            "a\u{2028}b\u{2029}c‐–…",
            "한글 e\u{301} 각 \u{202e}",
            "\\u003c \\ \" \n\r\t\u{0}",
        ];
        let json = serde_json::to_vec_pretty(&hostile).unwrap();
        let mut out = Vec::new();
        write_escaped(&mut out, &json).unwrap();
        let text = String::from_utf8(out).unwrap();
        for character in ['<', '>', '&', '\u{2028}', '\u{2029}', '\n', '\r'] {
            assert!(!text.contains(character), "{character:?} in {text}");
        }
        assert_eq!(serde_json::from_str::<Vec<String>>(&text).unwrap(), hostile);
    }

    #[test]
    fn text_closes_neither_tags_nor_attributes() {
        let mut out = Vec::new();
        write_text(&mut out, "</title>'\"&한").unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "&lt;/title&gt;&#39;&quot;&amp;한");
    }
}
