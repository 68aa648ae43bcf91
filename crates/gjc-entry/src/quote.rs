//! JSON strings, written fast: the text of an entry is most of its line.
//!
//! The bytes are those of `serde_json`: only what has to be escaped is, in the shortest form, hexadecimal digits in lower
//! case. Where every second line of a text has quotes, tabs and line feeds, as code does, looking for the next of them and
//! copying what stands before it is a branch that is foretold wrongly each time. Here eight bytes are looked at together,
//! and eight with something to escape among them are written without a branch, each as a word of a table.

/// Bytes that are encoded into a buffer of fixed size before they go to the output together.
const PIECE: usize = 64;
/// The longest escape, `\u0000`.
const LONGEST: usize = 6;

/// How a byte is written: always eight bytes, of which the first `len` count.
#[derive(Clone, Copy)]
struct Written {
    word: [u8; 8],
    len: u8,
}

const WRITTEN: [Written; 256] = {
    let mut table = [Written { word: [0; 8], len: 1 }; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte as usize] = written(byte as u8);
        byte += 1;
    }
    table
};

const fn written(byte: u8) -> Written {
    let short = match byte {
        b'"' | b'\\' => byte,
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        0x08 => b'b',
        0x0C => b'f',
        0..=0x1F => {
            let digits = b"0123456789abcdef";
            let (high, low) = (digits[(byte >> 4) as usize], digits[(byte & 15) as usize]);
            return Written { word: [b'\\', b'u', b'0', b'0', high, low, 0, 0], len: LONGEST as u8 };
        }
        _ => return Written { word: [byte, 0, 0, 0, 0, 0, 0, 0], len: 1 },
    };
    Written { word: [b'\\', short, 0, 0, 0, 0, 0, 0], len: 2 }
}

/// Writes a text as a JSON string, with its quotes.
pub(crate) fn quote(out: &mut Vec<u8>, text: &str) {
    out.reserve(text.len() + 2);
    out.push(b'"');
    let mut piece = Piece { bytes: [0; PIECE * LONGEST + 8], len: 0 };
    for bytes in text.as_bytes().chunks(PIECE) {
        piece.len = 0;
        let (eights, rest) = bytes.as_chunks::<8>();
        for eight in eights {
            if has_escape(*eight) { piece.put_each(eight) } else { piece.put(eight, 8) }
        }
        piece.put_each(rest);
        out.extend_from_slice(&piece.bytes[..piece.len]);
    }
    out.push(b'"');
}

/// As [`quote`], for the names of fields: they are short, and nothing in them has to be escaped, but for those that others
/// gave.
pub(crate) fn quote_name(out: &mut Vec<u8>, name: &str) {
    if name.bytes().any(|byte| WRITTEN[usize::from(byte)].len > 1) {
        return quote(out, name);
    }
    out.push(b'"');
    out.extend_from_slice(name.as_bytes());
    out.push(b'"');
}

/// A piece of the text, encoded. It has room for the eight bytes of the last word, of which fewer may count.
struct Piece {
    bytes: [u8; PIECE * LONGEST + 8],
    len: usize,
}

impl Piece {
    fn put(&mut self, word: &[u8; 8], counts: usize) {
        self.bytes[self.len..self.len + 8].copy_from_slice(word);
        self.len += counts;
    }

    fn put_each(&mut self, bytes: &[u8]) {
        for byte in bytes {
            let Written { word, len } = &WRITTEN[usize::from(*byte)];
            self.put(word, usize::from(*len));
        }
    }
}

/// Whether one of eight bytes cannot stand in a JSON string as it is.
///
/// For each condition the high bit of a byte says whether it holds; a borrow may set it falsely in bytes above one where it
/// holds, never elsewhere. See "Determine if a word has a zero byte", "… a byte less than n" in Anderson, *Bit Twiddling
/// Hacks*.
fn has_escape(bytes: [u8; 8]) -> bool {
    const EACH: u64 = u64::MAX / 0xFF;
    let word = u64::from_le_bytes(bytes);
    let less = |word: u64, than: u8| word.wrapping_sub(EACH * u64::from(than)) & !word;
    let is = |byte: u8| less(word ^ (EACH * u64::from(byte)), 1);
    (less(word, 0x20) | is(b'"') | is(b'\\')) & (EACH * 0x80) != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str) {
        let mut out = b"before".to_vec();
        quote(&mut out, text);
        let expected = serde_json::to_string(text).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), format!("before{expected}"));
        let mut name = Vec::new();
        quote_name(&mut name, text);
        assert_eq!(String::from_utf8(name).unwrap(), expected);
    }

    #[test]
    fn every_character_is_written_as_serde_json_writes_it_wherever_it_stands() {
        let special = ['\u{80}', '가', '\u{2028}', '\u{fffd}', '😀', '\u{10ffff}'];
        for c in ('\0'..='\u{7f}').chain(special) {
            for before in 0..=PIECE + 8 {
                check(&format!("{}{c}{c}x{c}", "a".repeat(before)));
            }
        }
    }

    #[test]
    fn texts_of_any_length_are_whole() {
        for len in 0..=3 * PIECE {
            check(&"a".repeat(len));
            check(&"\u{1}".repeat(len));
            check(&"한\"\t".repeat(len));
        }
    }
}
