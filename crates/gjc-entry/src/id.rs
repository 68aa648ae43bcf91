//! Names of things: sessions, entries, outward acts, deliveries, blobs.

use crate::quote::quote;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// Why a text is no id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IdError {
    /// Not usable as a session id.
    #[error("\"{0}\" is no session id: it must have 1 to 128 bytes and no '/', '\\', \"..\" or control character")]
    Session(String),
    /// Not `session/entry/call`.
    #[error("\"{0}\" is no operation id: expected <session>/<entry>/<call>")]
    Op(String),
    /// Not 64 lowercase hexadecimal digits.
    #[error("\"{0}\" is no blob reference: expected blob:sha256: and 64 lowercase hexadecimal digits")]
    Blob(String),
}

/// The id of a session: a UUIDv7 where gjc made it, else whatever another program wrote, never a path.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(Box<str>);

impl SessionId {
    /// Takes a text as a session id.
    ///
    /// # Errors
    /// When it is empty, longer than 128 bytes, holds a path separator, `..` or a control character: such a text could
    /// leave the sessions folder or break a terminal.
    pub fn new(text: &str) -> Result<Self, IdError> {
        let bad = text.is_empty()
            || text.len() > 128
            || text.contains("..")
            || text.chars().any(|c| matches!(c, '/' | '\\') || c.is_control());
        if bad { Err(IdError::Session(text.chars().take(140).collect())) } else { Ok(Self(text.into())) }
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The id of an entry within its file: 8 lowercase hexadecimal digits, or a foreign form kept verbatim.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EntryId {
    /// The usual form; four bytes instead of a string.
    Short(u32),
    /// Any other text.
    Other(Box<str>),
}

impl EntryId {
    /// Reads an id; every text is one.
    #[must_use]
    pub fn new(text: &str) -> Self {
        match Self::short(text.as_bytes()) {
            Some(value) => Self::Short(value),
            None => Self::Other(text.into()),
        }
    }

    /// Writes it as a JSON string.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Short(value) => {
                let digit = |place: u32| b"0123456789abcdef"[(value >> (4 * place)) as usize & 15];
                let [a, b, c, d, e, f, g, h] = [7, 6, 5, 4, 3, 2, 1, 0].map(digit);
                out.extend_from_slice(&[b'"', a, b, c, d, e, f, g, h, b'"']);
            }
            Self::Other(text) => quote(out, text),
        }
    }

    /// The value of 8 lowercase hexadecimal digits.
    #[must_use]
    pub fn short(bytes: &[u8]) -> Option<u32> {
        // All 8 at once, a byte each: no branch on a digit, of which every second would be foretold wrongly.
        const EACH: u64 = 0x0101_0101_0101_0101;
        let digits = u64::from_be_bytes(bytes.try_into().ok()?);
        let letters = digits >> 6 & EACH;
        let values = (digits & (EACH * 0x0F)) + letters * 9;
        let above_nine = (values + EACH * (0x80 - 10)) >> 7 & EACH;
        let spelled = values + EACH * u64::from(b'0') + above_nine * u64::from(b'a' - b'0' - 10);
        if values & (EACH * 0xF0) != 0 || spelled != digits {
            return None;
        }
        let pairs = (values | values >> 4) & 0x00FF_00FF_00FF_00FF;
        let fours = (pairs | pairs >> 8) & 0x0000_FFFF_0000_FFFF;
        Some((fours | fours >> 16) as u32)
    }
}

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short(value) => write!(f, "{value:08x}"),
            Self::Other(text) => f.write_str(text),
        }
    }
}

/// Names one outward act: the assistant entry that asked for it and the position of the call in it. Call ids of
/// providers repeat; this does not. It is the idempotency key wherever the act leaves a trace.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OpId {
    /// The session that acts.
    pub session: SessionId,
    /// The assistant entry that holds the call.
    pub entry: EntryId,
    /// The call's position among the calls of that entry, from 0.
    pub call: u16,
}

impl fmt::Display for OpId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.session, self.entry, self.call)
    }
}

impl FromStr for OpId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let wrong = || IdError::Op(text.into());
        let (session, rest) = text.split_once('/').ok_or_else(wrong)?;
        let (entry, call) = rest.rsplit_once('/').ok_or_else(wrong)?;
        if entry.is_empty() {
            return Err(wrong());
        }
        Ok(Self {
            session: SessionId::new(session)?,
            entry: EntryId::new(entry),
            call: call.parse().map_err(|_| wrong())?,
        })
    }
}

/// Names one thing that comes in (a job's result, a peer's or a channel's message): an [`OpId`] or a hub's id.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DeliveryId(pub Box<str>);

/// SHA-256 of a blob's bytes, written `blob:sha256:<64 hex>`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlobRef(pub [u8; 32]);

impl BlobRef {
    /// The 64 hexadecimal digits: the blob's file name.
    #[must_use]
    pub fn hex(&self) -> String {
        self.0.iter().fold(String::with_capacity(64), |mut text, byte| {
            text.push(char::from_digit(u32::from(byte >> 4), 16).unwrap_or('0'));
            text.push(char::from_digit(u32::from(byte & 15), 16).unwrap_or('0'));
            text
        })
    }
}

impl fmt::Display for BlobRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "blob:sha256:{}", self.hex())
    }
}

impl fmt::Debug for BlobRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for BlobRef {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let wrong = || IdError::Blob(text.chars().take(80).collect());
        let hex = text.strip_prefix("blob:sha256:").ok_or_else(wrong)?.as_bytes();
        if hex.len() != 64 {
            return Err(wrong());
        }
        let mut hash = [0; 32];
        for (slot, pair) in hash.iter_mut().zip(hex.chunks_exact(2)) {
            let digit = |byte: u8| match byte {
                b'0'..=b'9' => Ok(byte - b'0'),
                b'a'..=b'f' => Ok(byte - b'a' + 10),
                _ => Err(wrong()),
            };
            *slot = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        Ok(Self(hash))
    }
}

macro_rules! as_text {
    ($($type:ty => $parse:expr),+ $(,)?) => {$(
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
                out.collect_str(self)
            }
        }
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let text = String::deserialize(from)?;
                let parse: fn(&str) -> Result<$type, IdError> = $parse;
                parse(&text).map_err(serde::de::Error::custom)
            }
        }
    )+};
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

as_text! {
    SessionId => SessionId::new,
    EntryId => |text| Ok(EntryId::new(text)),
    OpId => str::parse,
    BlobRef => str::parse,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_ids_and_foreign_ids_keep_their_spelling() {
        for text in ["0000000a", "ffffffff", "1c0a9f3e", "1C0A9F3E", "abc", "", "세션", "148375cc2fb00f96"] {
            assert_eq!(EntryId::new(text).to_string(), text);
            let mut json = Vec::new();
            EntryId::new(text).write(&mut json);
            assert_eq!(json, format!("\"{text}\"").into_bytes());
        }
        assert!(matches!(EntryId::new("1c0a9f3e"), EntryId::Short(0x1c0a_9f3e)));
        assert!(matches!(EntryId::new("1C0A9F3E"), EntryId::Other(_)));
    }

    #[test]
    fn a_session_id_never_is_a_path() {
        for text in ["", "../x", "a/b", "a\\b", "a\0b", "x\u{1b}[2J", &"a".repeat(129)] {
            assert!(SessionId::new(text).is_err(), "{text:?}");
        }
        assert!(SessionId::new("세션-1").is_ok());
    }

    #[test]
    fn only_lowercase_digits_make_a_short_id_whatever_byte_is_another() {
        for place in 0..8 {
            for byte in 0..=255u8 {
                let mut text = *b"0f9a5c3e";
                text[place] = byte;
                let own = matches!(byte, b'0'..=b'9' | b'a'..=b'f');
                let expected = own.then(|| u32::from_str_radix(std::str::from_utf8(&text).unwrap(), 16).unwrap());
                assert_eq!(EntryId::short(&text), expected, "{byte} at {place}");
            }
        }
    }

    #[test]
    fn op_ids_and_blob_refs_round_trip() {
        let op = OpId { session: SessionId::new("s-1").unwrap(), entry: EntryId::new("세/션"), call: 3 };
        assert_eq!(op.to_string().parse::<OpId>().unwrap(), op);
        let blob = BlobRef([0xab; 32]);
        assert_eq!(blob.to_string().parse::<BlobRef>().unwrap(), blob);
        assert!("blob:sha256:AB".parse::<BlobRef>().is_err());
    }
}
