//! The first line of a session file.

use crate::fields::{FieldError, Fields, JsonObject, RawFields};
use crate::{SessionId, Timestamp};

/// The version that gjc writes.
pub const VERSION: u32 = 3;
/// The highest version that gjc reads.
pub const MAX_VERSION: u32 = 5;
/// The lowest version that gjc appends to. Older files are read, and go on in a copy.
pub const MIN_APPENDED: u32 = 3;

/// What the first line says.
#[derive(Debug, Clone)]
pub struct Header {
    /// 1 when the line has none.
    pub version: u32,
    /// The session.
    pub id: SessionId,
    /// When it began.
    pub at: Timestamp,
    /// The folder that it worked in. It decides the session's scope, not the bucket's name.
    pub cwd: String,
    /// A fork's source (an id) or a branch's (a path). Trusted as neither.
    pub parent: Option<String>,
    /// The name of the first hour; later names are entries.
    pub title: Option<String>,
    /// Other fields.
    pub extra: RawFields,
}

impl Header {
    /// A header of a new session.
    #[must_use]
    pub fn new(id: SessionId, at: Timestamp, cwd: String) -> Self {
        Self { version: VERSION, id, at, cwd, parent: None, title: None, extra: Vec::new() }
    }

    /// The name of the session's file: when it began, and its id.
    #[must_use]
    pub fn file_name(&self) -> String {
        format!("{}_{}.jsonl", self.at.file_form(), self.id)
    }

    /// Reads a header line (without its line feed).
    ///
    /// # Errors
    /// When it is no header, or its id cannot be one.
    pub fn parse(line: &str) -> Result<Self, FieldError> {
        let mut fields = Fields::parse(line)?;
        let kind: String = fields.required("type")?;
        if kind != "session" {
            return Err(FieldError::Wrong { name: "type", why: format!("expected \"session\", found {kind:?}") });
        }
        Ok(Self {
            version: fields.optional("version")?.unwrap_or(1),
            id: fields.required("id")?,
            at: fields.optional::<String>("timestamp")?.and_then(|text| text.parse().ok()).unwrap_or_default(),
            cwd: fields.optional("cwd")?.unwrap_or_default(),
            parent: fields.optional("parentSession")?,
            title: fields.optional("title")?,
            extra: fields.rest(),
        })
    }

    /// Takes over what a `header_patch` line (gajae-code 4 and 5) changes: title and folder. Other fields it names replace
    /// those of the header.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn patch(&mut self, line: &str) -> Result<(), FieldError> {
        let raw = Fields::parse(line)?.raw("patch").ok_or(FieldError::Absent("patch"))?;
        let mut patch = Fields::parse(raw.get())?;
        let (title, cwd) = (patch.optional("title")?, patch.optional("cwd")?);
        self.title = title.or(self.title.take());
        self.cwd = cwd.unwrap_or_else(|| std::mem::take(&mut self.cwd));
        for (name, value) in patch.rest() {
            self.extra.retain(|(key, _)| *key != name);
            self.extra.push((name, value));
        }
        Ok(())
    }

    /// The title in a line before the header, which newer programs of the family rewrite in place.
    ///
    /// # Errors
    /// When it is no such line.
    pub fn title_slot(line: &str) -> Result<Option<String>, FieldError> {
        let mut fields = Fields::parse(line)?;
        let kind: String = fields.required("type")?;
        if kind != "title" {
            return Err(FieldError::Wrong { name: "type", why: format!("expected \"title\", found {kind:?}") });
        }
        Ok(fields.optional::<String>("title")?.filter(|title| !title.trim().is_empty()))
    }

    /// Whether entries of such a file have no ids, so that nothing can be appended to it.
    #[must_use]
    pub fn is_linear(&self) -> bool {
        self.version < 2
    }

    /// Writes it as a line with its line feed.
    pub fn write(&self, out: &mut Vec<u8>) {
        JsonObject::begin(out)
            .field("type", "session")
            .field("version", &self.version)
            .field("id", &self.id)
            .some("title", &self.title)
            .field("timestamp", &self.at.to_string())
            .field("cwd", &self.cwd)
            .some("parentSession", &self.parent)
            .rest(&self.extra)
            .end();
        out.push(b'\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_hold_time_and_id() {
        let id = SessionId::new("0197a0c2-5c7e-7c11-9b7a-2f6f0a6d9e01").unwrap();
        assert_eq!(
            Header::new(id, Timestamp::from_millis(1_780_643_934_123), "/".into()).file_name(),
            "2026-06-05T07-18-54-123Z_0197a0c2-5c7e-7c11-9b7a-2f6f0a6d9e01.jsonl"
        );
    }

    #[test]
    fn patches_and_title_slots() {
        let mut header =
            Header::parse(r#"{"type":"session","version":5,"id":"x","cwd":"/a","title":"t","z":1}"#).unwrap();
        header.patch(r#"{"type":"header_patch","patch":{"title":"제목","titleSource":"user","z":2}}"#).unwrap();
        assert_eq!((header.title.as_deref(), &*header.cwd), (Some("제목"), "/a"));
        assert_eq!(
            header.extra.iter().map(|(key, raw)| format!("{key}={}", raw.get())).collect::<Vec<_>>(),
            ["titleSource=\"user\"", "z=2"]
        );
        assert!(header.patch(r#"{"type":"header_patch","patch":3}"#).is_err());
        assert_eq!(
            Header::title_slot(r#"{"type":"title","v":1,"title":"이름","pad":"   "}"#).unwrap().as_deref(),
            Some("이름")
        );
        assert_eq!(Header::title_slot(r#"{"type":"title","title":"  "}"#).unwrap(), None);
        assert!(Header::title_slot(r#"{"type":"session"}"#).is_err());
    }

    #[test]
    fn round_trip() {
        let mut header = Header::new(SessionId::new("0197a0c2").unwrap(), Timestamp::from_millis(1), "/작업/a".into());
        header.parent = Some("p".into());
        let mut out = Vec::new();
        header.write(&mut out);
        let text = String::from_utf8(out).unwrap();
        assert_eq!(
            text,
            "{\"type\":\"session\",\"version\":3,\"id\":\"0197a0c2\",\"timestamp\":\"1970-01-01T00:00:00.001Z\",\"cwd\":\"/작업/a\",\"parentSession\":\"p\"}\n"
        );
        assert_eq!(Header::parse(text.trim()).unwrap().cwd, "/작업/a");
        assert_eq!(Header::parse(r#"{"type":"session","id":"x"}"#).unwrap().version, 1);
        assert!(Header::parse(r#"{"type":"message","id":"x"}"#).is_err());
        assert!(Header::parse(r#"{"type":"session","id":"../x"}"#).is_err());
    }
}
