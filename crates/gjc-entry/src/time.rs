//! Points in time as session files write them.

use std::fmt;
use std::io::Write as _;
use std::str::FromStr;

/// Milliseconds since the Unix epoch, UTC. Written as `2026-06-05T07:18:54.123Z`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(i64);

/// A text that is no ISO 8601 point in time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is no point in time: expected the form 2026-06-05T07:18:54.123Z")]
pub struct NotATime(pub String);

impl Timestamp {
    /// From milliseconds since the epoch; values outside the years −9999…9999 are clamped.
    #[must_use]
    pub fn from_millis(millis: i64) -> Self {
        let (low, high) = (jiff::Timestamp::MIN.as_millisecond(), jiff::Timestamp::MAX.as_millisecond());
        Self(millis.clamp(low, high))
    }

    /// From the form in which session files have it; `None` for every other, which writing would change.
    #[must_use]
    pub fn written(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        let form = bytes.len() == 24 && bytes[10] == b'T' && bytes[19] == b'.' && bytes[23] == b'Z';
        text.parse().ok().filter(|_| form)
    }

    /// Writes it as a JSON string.
    pub(crate) fn write(self, out: &mut Vec<u8>) {
        // Writing to memory cannot fail.
        let _ = write!(out, "\"{self}\"");
    }

    /// Milliseconds since the epoch.
    #[must_use]
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// The form in file names: `:` and `.` become `-`.
    #[must_use]
    pub fn file_form(self) -> String {
        self.to_string().replace([':', '.'], "-")
    }

    /// The day in UTC, `2026-06-05`.
    #[must_use]
    pub fn day(self) -> String {
        self.to_string().chars().take_while(|c| *c != 'T').collect()
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The clamp in `from_millis` makes the conversion total; the epoch stands in for the impossible.
        let at = jiff::Timestamp::from_millisecond(self.0).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
        write!(f, "{at:.3}")
    }
}

impl FromStr for Timestamp {
    type Err = NotATime;

    fn from_str(text: &str) -> Result<Self, NotATime> {
        let at: jiff::Timestamp = text.parse().map_err(|_| NotATime(text.chars().take(40).collect()))?;
        Ok(Self(at.as_millisecond()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_with_milliseconds_always() {
        assert_eq!(Timestamp::from_millis(0).to_string(), "1970-01-01T00:00:00.000Z");
        assert_eq!(Timestamp::from_millis(1_780_643_934_120).to_string(), "2026-06-05T07:18:54.120Z");
        let mut json = Vec::new();
        Timestamp::from_millis(1_780_643_934_120).write(&mut json);
        assert_eq!(json, b"\"2026-06-05T07:18:54.120Z\"");
        assert_eq!(Timestamp::from_millis(1_780_643_934_120).file_form(), "2026-06-05T07-18-54-120Z");
        assert_eq!("2026-06-05T07:18:54.120Z".parse(), Ok(Timestamp::from_millis(1_780_643_934_120)));
        assert_eq!("2026-06-05T16:18:54.12+09:00".parse(), Ok(Timestamp::from_millis(1_780_643_934_120)));
        assert!("yesterday".parse::<Timestamp>().is_err());
        let _ = Timestamp::from_millis(i64::MAX).to_string();
        let _ = Timestamp::from_millis(i64::MIN).to_string();
    }
}
