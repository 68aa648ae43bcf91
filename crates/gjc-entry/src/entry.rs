//! One line of a session file.

use crate::fields::{FieldError, Fields, JsonObject, RawFields};
use crate::message::ImageData;
use crate::{BlobRef, Block, Content, EntryId, Kind, Label, Message, Ordinal, Own, Timestamp, ToolResult, UserMessage};
use serde_json::value::RawValue;

/// An entry with its body.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Its id.
    pub id: EntryId,
    /// The entry that it follows; `None` for a root.
    pub parent: Option<EntryId>,
    /// When it was admitted, never before its predecessor in the file.
    pub at: Timestamp,
    /// The label on the line: the session's whole taint when it was admitted. `None`: the line has none, and the session's
    /// taint at that place holds.
    pub label: Option<Label>,
    /// What it says.
    pub body: Body,
    /// Fields that we do not know.
    pub extra: RawFields,
}

/// What an entry says.
#[derive(Debug, Clone)]
pub enum Body {
    /// Somebody said something.
    Message(Message),
    /// Older history is replaced by a summary.
    Compaction {
        /// The summary.
        summary: String,
        /// The oldest entry that stays.
        first_kept: EntryId,
        /// Tokens before it.
        tokens_before: u64,
    },
    /// What happened on a branch that was left.
    BranchSummary {
        /// Where the new branch begins (an entry, or `root`).
        from: String,
        /// The summary; nothing is shown when it is empty.
        summary: String,
    },
    /// gjc's own.
    Own(Own),
    /// Another program's state.
    Custom {
        /// Whose.
        custom_type: String,
        /// What.
        data: Option<Box<RawValue>>,
    },
    /// A program's text for the model.
    CustomMessage {
        /// Whose.
        custom_type: String,
        /// The text.
        content: Content,
        /// Whether a person sees it too.
        display: bool,
        /// For programs.
        details: Option<Box<RawValue>>,
    },
    /// A name for a place; empty or absent removes it.
    Label {
        /// Which place.
        target: EntryId,
        /// The name.
        label: Option<String>,
    },
    /// Another model: `provider/id` (the family writes it in two ways; both are read).
    ModelChange {
        /// The provider.
        provider: String,
        /// The model.
        model: String,
        /// For which role; absent means `default`.
        role: Option<String>,
    },
    /// Another thinking level.
    ThinkingLevelChange {
        /// The level; absent means off.
        level: Option<String>,
    },
    /// Another mode; the family knows `plan` and, out of it, `none`.
    ModeChange {
        /// The mode; absent means none.
        mode: Option<String>,
        /// What belongs to it, for programs.
        data: Option<Box<RawValue>>,
    },
    /// Another service tier.
    ServiceTierChange {
        /// The tier; absent means none in particular.
        tier: Option<String>,
    },
    /// The session's name.
    SessionInfo {
        /// The name.
        name: Option<String>,
    },
    /// A type that we do not know; all its fields are in `extra`.
    Unknown {
        /// The type.
        kind: String,
    },
}

/// Where a draft goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParentOf {
    /// Under the leaf.
    Leaf,
    /// Under this entry.
    Id(EntryId),
    /// As a root.
    Root,
}

/// An entry that is not admitted yet. The label is not optional: an unlabelled fact does not compile.
#[derive(Debug, Clone)]
pub struct Draft {
    /// What it says.
    pub body: Body,
    /// The session's taint with this fact in.
    pub label: Label,
    /// Where it goes.
    pub parent: ParentOf,
    /// Fields of the entry beside those of its type (`gjcWhole`, `gjcMended`, …).
    pub extra: RawFields,
}

impl Draft {
    /// A draft under the leaf.
    #[must_use]
    pub fn new(body: Body, label: Label) -> Self {
        Self { body, label, parent: ParentOf::Leaf, extra: RawFields::new() }
    }
}

impl Body {
    /// Its kind, as an index knows it.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Self::Message(_) => Kind::Message,
            Self::Compaction { .. } => Kind::Compaction,
            Self::BranchSummary { .. } => Kind::BranchSummary,
            Self::Own(own) => own.kind(),
            Self::Custom { .. } => Kind::Custom,
            Self::CustomMessage { .. } => Kind::CustomMessage,
            Self::Label { .. } => Kind::Label,
            Self::ModelChange { .. } => Kind::ModelChange,
            Self::ThinkingLevelChange { .. } => Kind::ThinkingLevelChange,
            Self::ModeChange { .. } => Kind::ModeChange,
            Self::ServiceTierChange { .. } => Kind::ServiceTierChange,
            Self::SessionInfo { .. } => Kind::SessionInfo,
            Self::Unknown { kind } => Kind::of(kind, None),
        }
    }

    /// The top-level `type`.
    #[must_use]
    pub fn type_word(&self) -> &str {
        match self {
            Self::Own(_) | Self::Custom { .. } => "custom",
            Self::Unknown { kind } => kind,
            known => known.kind().as_str(),
        }
    }
}

impl Entry {
    /// Reads a line (without its line feed).
    ///
    /// # Errors
    /// When it is no object, when a field that its type needs is missing or of another type, or when one that decides what
    /// the entry is stands twice.
    pub fn parse(line: &str) -> Result<Self, FieldError> {
        crate::onepass::message_entry(line).map_or_else(|| Self::parse_generally(line), Ok)
    }

    /// As [`Entry::parse`], without the short way for what most lines are.
    ///
    /// # Errors
    /// As [`Entry::parse`].
    pub fn parse_generally(line: &str) -> Result<Self, FieldError> {
        let mut fields = Fields::parse(line)?;
        fields.once(&["type", "id", "parentId", "customType", "gjcLabel"])?;
        let (id, parent) = (fields.required("id")?, fields.optional("parentId")?);
        Self::take(id, parent, fields)
    }

    /// Reads a line of a file of version 1, whose entries have no ids: they follow each other in the order of the file, and
    /// the place of each is its id.
    ///
    /// # Errors
    /// As [`Entry::parse`].
    pub fn parse_linear(line: &str, place: Ordinal) -> Result<Self, FieldError> {
        let mut fields = Fields::parse(line)?;
        fields.once(&["type", "customType", "gjcLabel"])?;
        // What the family's own migration replaces.
        let _ = (fields.raw("id"), fields.raw("parentId"));
        let kept = fields.raw("firstKeptEntryIndex");
        let mut entry = Self::take(EntryId::Short(place.0), place.0.checked_sub(1).map(EntryId::Short), fields)?;
        if let Body::Compaction { first_kept, .. } = &mut entry.body
            && let Some(index) = kept.and_then(|raw| raw.get().parse::<u32>().ok())
        {
            // It counts the header.
            *first_kept = index.checked_sub(1).map_or(EntryId::Other("".into()), EntryId::Short);
        }
        Ok(entry)
    }

    /// A line of an older file as version 3 has it, under this id and parent (and, for a compaction, with this first entry
    /// kept): everything else stays as it was written.
    ///
    /// # Errors
    /// When it is no object.
    pub fn respelled(
        line: &str,
        id: &EntryId,
        parent: Option<&EntryId>,
        first_kept: Option<&EntryId>,
    ) -> Result<Vec<u8>, FieldError> {
        let mut fields = Fields::parse(line)?;
        let kind: String = fields.required("type")?;
        let _ = (fields.raw("id"), fields.raw("parentId"), fields.raw("firstKeptEntryIndex"));
        let kept = first_kept.map(|kept| (fields.raw("firstKeptEntryId"), kept));
        let message = fields.peek("message").map(|raw| raw.get());
        let hook = message
            .and_then(|json| Fields::parse(json).ok())
            .filter(|message| message.peek("role").is_some_and(|role| role.get() == "\"hookMessage\""));
        let mut out = Vec::with_capacity(line.len() + 64);
        let mut object = JsonObject::begin(&mut out);
        object.field("type", &kind).field("id", id).field("parentId", &parent);
        if let Some(mut hook) = hook {
            let _ = (fields.raw("message"), hook.raw("role"));
            object.with("message", |out| JsonObject::begin(out).field("role", "custom").rest(&hook.rest()).end());
        }
        if let Some((_, kept)) = kept {
            object.field("firstKeptEntryId", kept);
        }
        object.rest(&fields.rest()).end();
        out.push(b'\n');
        Ok(out)
    }

    /// As version 3 says what an older one says: the role `hookMessage` became `custom`.
    #[must_use]
    pub fn migrated(mut self) -> Self {
        if let Body::Message(Message::Other { role, raw }) = &mut self.body
            && &**role == "hookMessage"
            && let Ok(mut fields) = Fields::parse(raw.get())
        {
            let _ = fields.raw("role");
            let mut json = Vec::new();
            JsonObject::begin(&mut json).field("role", "custom").rest(&fields.rest()).end();
            if let Some(new) = String::from_utf8(json).ok().and_then(|json| RawValue::from_string(json).ok()) {
                (*role, *raw) = ("custom".into(), new);
            }
        }
        self
    }

    /// With the content that the line `patch` (`{"type":"entry_patch","entryId":…,"patch":{"message":…}}`, gajae-code) gives
    /// it. One that gives none changes nothing.
    ///
    /// # Errors
    /// When the patch cannot be read.
    pub fn patched(mut self, patch: &str) -> Result<Self, FieldError> {
        let mut fields = Fields::parse(patch)?;
        let inner = fields.raw("patch").ok_or(FieldError::Absent("patch"))?;
        // Only what is a message can get another one: an index has taken down what the entry is.
        if let Some(message) = Fields::parse(inner.get())?.raw("message").filter(|_| self.body.kind() == Kind::Message)
        {
            self.body = Body::Message(Message::from_json(message)?);
        }
        Ok(self)
    }

    fn take(id: EntryId, parent: Option<EntryId>, mut fields: Fields<'_>) -> Result<Self, FieldError> {
        let kind: String = fields.required("type")?;
        let label = fields.raw("gjcLabel").map(|raw| Label::from_json(raw.get()));
        // A time in another form counts, and stays as it was written.
        let text = fields.peek("timestamp").and_then(|raw| crate::fields::from_raw::<String>(raw).ok());
        let at = text.as_deref().and_then(|text| text.parse().ok()).unwrap_or_default();
        if text.as_deref().and_then(Timestamp::written).is_some() {
            let _ = fields.raw("timestamp");
        }
        let body = Body::take(kind, &mut fields)?;
        Ok(Self { id, parent, at, label, body, extra: fields.rest() })
    }

    /// The blobs that it needs: settings, and pictures in its content.
    #[must_use]
    pub fn blobs(&self) -> Vec<BlobRef> {
        let blocks: &[Block] = match &self.body {
            Body::Own(Own::Env(env)) => return vec![env.system, env.tools],
            Body::Message(Message::User(UserMessage { content: Content::Blocks(blocks), .. })) => blocks,
            Body::Message(Message::ToolResult(ToolResult { content: Content::Blocks(blocks), .. })) => blocks,
            Body::Message(Message::Assistant(said)) => &said.content,
            Body::CustomMessage { content: Content::Blocks(blocks), .. } => blocks,
            _ => return Vec::new(),
        };
        let blob = |block: &Block| match block {
            Block::Image { data: ImageData::Blob(blob), .. } => Some(*blob),
            _ => None,
        };
        blocks.iter().filter_map(blob).collect()
    }

    /// Writes the line with its line feed. `label` is written when there is one.
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut line = JsonObject::beside(out, &self.extra);
        line.field("type", self.body.type_word()).with("id", |out| self.id.write(out));
        match &self.parent {
            Some(parent) => line.with("parentId", |out| parent.write(out)),
            None => line.field("parentId", &()),
        };
        if let Some(label) = self.label {
            // Right after `parentId`, so that a scan finds it without reading on.
            line.with("gjcLabel", |out| out.extend_from_slice(label.to_json().as_bytes()));
        }
        line.with("timestamp", |out| self.at.write(out));
        self.body.write(&mut line);
        line.rest(&self.extra).end();
        out.push(b'\n');
    }
}

/// A count of tokens; one that is no whole number stays as it was written.
fn tokens_before(fields: &mut Fields<'_>) -> u64 {
    let whole = fields.lenient::<u64>("tokensBefore");
    let about = || fields.peek("tokensBefore").and_then(|raw| raw.get().parse::<f64>().ok());
    whole.unwrap_or_else(|| about().map_or(0, |tokens| tokens.max(0.0) as u64))
}

impl Body {
    fn take(kind: String, fields: &mut Fields<'_>) -> Result<Self, FieldError> {
        Ok(match kind.as_str() {
            "message" => {
                let raw = fields.raw("message").ok_or(FieldError::Absent("message"))?;
                Self::Message(Message::from_json(raw)?)
            }
            "compaction" => Self::Compaction {
                summary: fields.optional("summary")?.unwrap_or_default(),
                first_kept: fields.optional("firstKeptEntryId")?.unwrap_or(EntryId::Other("".into())),
                tokens_before: tokens_before(fields),
            },
            "branch_summary" => Self::BranchSummary {
                from: fields.optional("fromId")?.unwrap_or_default(),
                summary: fields.optional("summary")?.unwrap_or_default(),
            },
            "custom" => {
                let custom_type: String = fields.optional("customType")?.unwrap_or_default();
                let data = fields.raw("data").map(ToOwned::to_owned);
                if custom_type.starts_with("gjc.") {
                    Self::Own(Own::from_json(&custom_type, data)?)
                } else {
                    Self::Custom { custom_type, data }
                }
            }
            "custom_message" => {
                let raw = fields.raw("content").filter(|raw| raw.get() != "null");
                Self::CustomMessage {
                    custom_type: fields.optional("customType")?.unwrap_or_default(),
                    content: raw.map_or(Ok(Content::Blocks(Vec::new())), Content::from_json)?,
                    display: fields.lenient("display").unwrap_or(false),
                    details: fields.raw("details").map(ToOwned::to_owned),
                }
            }
            "label" => Self::Label { target: fields.required("targetId")?, label: fields.optional("label")? },
            "model_change" => {
                let (provider, model) = match fields.optional::<String>("provider")? {
                    // pi writes `provider` and `modelId`, the others one `model` with a slash.
                    Some(provider) => (provider, fields.optional("modelId")?.unwrap_or_default()),
                    None => {
                        let model = (fields.optional("model")?, fields.optional("modelId")?);
                        let both: String = model.0.or(model.1).unwrap_or_default();
                        let (provider, model) = both.split_once('/').unwrap_or(("", &both));
                        (provider.into(), model.into())
                    }
                };
                Self::ModelChange { provider, model, role: fields.optional("role")? }
            }
            "thinking_level_change" => Self::ThinkingLevelChange { level: fields.optional("thinkingLevel")? },
            "mode_change" => {
                Self::ModeChange { mode: fields.optional("mode")?, data: fields.raw("data").map(ToOwned::to_owned) }
            }
            "service_tier_change" => Self::ServiceTierChange { tier: fields.optional("serviceTier")? },
            "session_info" => Self::SessionInfo { name: fields.optional("name")? },
            _ => Self::Unknown { kind },
        })
    }

    fn write(&self, line: &mut JsonObject<'_>) {
        match self {
            Self::Message(message) => line.with("message", |out| message.write(out)),
            Self::Compaction { summary, first_kept, tokens_before } => line
                .field("summary", summary)
                .field("firstKeptEntryId", first_kept)
                .field("tokensBefore", tokens_before),
            Self::BranchSummary { from, summary } => line.field("fromId", from).field("summary", summary),
            Self::Own(own) => line.field("customType", &own.custom_type()).with("data", |out| own.write_data(out)),
            Self::Custom { custom_type, data } => line.field("customType", custom_type).some("data", data),
            Self::CustomMessage { custom_type, content, display, details } => line
                .field("customType", custom_type)
                .with("content", |out| content.write(out))
                .field("display", display)
                .some("details", details),
            Self::Label { target, label } => line.field("targetId", target).some("label", label),
            // pi's spelling: the other members of the family read it too, and pi reads no other.
            Self::ModelChange { provider, model, role } => {
                line.field("provider", provider).field("modelId", model).some("role", role)
            }
            Self::ThinkingLevelChange { level } => line.field("thinkingLevel", level),
            Self::ModeChange { mode, data } => line.some("mode", mode).some("data", data),
            Self::ServiceTierChange { tier } => line.field("serviceTier", tier),
            Self::SessionInfo { name } => line.some("name", name),
            Self::Unknown { .. } => line,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_known_type_survives_a_round_trip() {
        for line in [
            r#"{"type":"message","id":"00000001","parentId":null,"timestamp":"2026-06-05T07:18:54.123Z","message":{"role":"user","content":"안녕","timestamp":1}}"#,
            r#"{"type":"compaction","id":"00000002","parentId":"00000001","timestamp":"2026-06-05T07:18:54.123Z","summary":"s","firstKeptEntryId":"00000001","tokensBefore":7,"fromHook":true}"#,
            r#"{"type":"custom","id":"00000003","parentId":"00000001","gjcLabel":{"l":"RESTRICTED","t":false},"timestamp":"2026-06-05T07:18:54.123Z","customType":"gjc.leaf","data":{"from":null,"to":"00000001"}}"#,
            r#"{"type":"custom","id":"00000004","parentId":null,"timestamp":"2026-06-05T07:18:54.123Z","customType":"gjc.future","data":{"x": [1]}}"#,
            r#"{"type":"custom_message","id":"x","parentId":null,"timestamp":"2026-06-05T07:18:54.123Z","customType":"handoff","content":"c","display":false,"attribution":"agent"}"#,
            r#"{"type":"model_change","id":"x","parentId":null,"timestamp":"2026-06-05T07:18:54.123Z","provider":"p","modelId":"m"}"#,
            r#"{"type":"mode_change","id":"x","parentId":null,"timestamp":"2026-06-05T07:18:54.123Z","mode":"plan","data":{"planFile":"계획.md"}}"#,
            r#"{"type":"custom","id":"00000005","parentId":null,"timestamp":"2026-06-05T07:18:54.123Z","customType":"gjc.approval","data":{"mode":"auto-edit"}}"#,
            r#"{"type":"service_tier_change","id":"x","parentId":null,"timestamp":"2026-06-05T07:18:54.123Z","serviceTier":null}"#,
            r#"{"type":"service_tier_change","id":"x","parentId":null,"timestamp":"2026-06-05T07:18:54.123Z","serviceTier":"openai-only"}"#,
            r#"{"type":"brand_new","id":"x","parentId":null,"timestamp":"2026-06-05T07:18:54.123Z","z":1,"a":{"b": 2}}"#,
        ] {
            let entry = Entry::parse(line).unwrap();
            let mut out = Vec::new();
            entry.write(&mut out);
            assert_eq!(String::from_utf8(out).unwrap(), format!("{line}\n"));
        }
    }

    #[test]
    fn an_approval_mode_of_a_later_version_allows_nothing() {
        let line = r#"{"type":"custom","id":"00000005","parentId":null,"timestamp":"2026-06-05T07:18:54.123Z","customType":"gjc.approval","data":{"mode":"yolo"}}"#;
        let body = Entry::parse(line).unwrap().body;
        assert!(matches!(body, Body::Own(Own::Approval(crate::ApprovalMode::ReadOnly))), "{body:?}");
    }

    #[test]
    fn version_1_counts_instead_of_naming() {
        let entry = Entry::parse_linear(
            r#"{"type":"compaction","timestamp":"2026-06-05T07:18:54.123Z","summary":"s","firstKeptEntryIndex":3,"tokensBefore":7}"#,
            Ordinal(9),
        )
        .unwrap();
        assert_eq!((entry.id, entry.parent), (EntryId::Short(9), Some(EntryId::Short(8))));
        assert!(matches!(entry.body, Body::Compaction { first_kept: EntryId::Short(2), .. }));
        assert!(Entry::parse_linear(r#"{"type":"x"}"#, Ordinal(0)).unwrap().parent.is_none());
    }

    #[test]
    fn a_respelled_line_keeps_every_byte_that_it_can() {
        let line = r#"{"type":"message","timestamp":"2026-06-05T07:18:54Z","message":{"role":"hookMessage","usage":{"x": 1.50}},"z":{"b": [1 , 2]}}"#;
        let new = Entry::respelled(line, &EntryId::Short(2), Some(&EntryId::Short(1)), None).unwrap();
        assert_eq!(
            String::from_utf8(new).unwrap(),
            "{\"type\":\"message\",\"id\":\"00000002\",\"parentId\":\"00000001\",\"message\":{\"role\":\"custom\",\"usage\":{\"x\": 1.50}},\"timestamp\":\"2026-06-05T07:18:54Z\",\"z\":{\"b\": [1 , 2]}}\n"
        );
        let line = r#"{"type":"compaction","summary":"s","firstKeptEntryIndex":3,"tokensBefore":7.5}"#;
        let new = Entry::respelled(line, &EntryId::Short(9), None, Some(&EntryId::Short(2))).unwrap();
        assert_eq!(
            String::from_utf8(new).unwrap(),
            "{\"type\":\"compaction\",\"id\":\"00000009\",\"parentId\":null,\"firstKeptEntryId\":\"00000002\",\"summary\":\"s\",\"tokensBefore\":7.5}\n"
        );
    }

    #[test]
    fn what_is_not_content_costs_no_content() {
        let line = r#"{"type":"message","id":"a","parentId":null,"timestamp":7,"message":{"role":"assistant","content":[{"type":"text","text":"답"}],"model":3,"usage":{"input":-3,"output":12.5,"reasoningTokens":4,"cost":{"total":null}},"stopReason":"stop","timestamp":"x"}}"#;
        let entry = Entry::parse(line).unwrap();
        let Body::Message(Message::Assistant(said)) = &entry.body else { panic!() };
        assert_eq!((said.text().as_str(), said.usage.input, said.usage.output), ("답", 0, 12));
        let mut out = Vec::new();
        entry.write(&mut out);
        let (before, after): (serde_json::Value, serde_json::Value) =
            (serde_json::from_str(line).unwrap(), serde_json::from_slice(&out).unwrap());
        for path in ["/timestamp", "/message/usage", "/message/model", "/message/timestamp"] {
            assert_eq!(before.pointer(path), after.pointer(path), "{path}");
        }
    }

    #[test]
    fn hooks_became_custom() {
        let line = r#"{"type":"message","id":"a","parentId":null,"message":{"role":"hookMessage","customType":"h","content":"훅"}}"#;
        let Body::Message(Message::Other { role, raw }) = Entry::parse(line).unwrap().migrated().body else { panic!() };
        assert_eq!((&*role, raw.get()), ("custom", r#"{"role":"custom","customType":"h","content":"훅"}"#));
    }

    #[test]
    fn a_patch_gives_another_message() {
        let line = r#"{"type":"message","id":"a","parentId":null,"message":{"role":"user","content":"전"}}"#;
        let patch = r#"{"type":"entry_patch","entryId":"a","patch":{"message":{"role":"user","content":"후"}}}"#;
        let Body::Message(message) = Entry::parse(line).unwrap().patched(patch).unwrap().body else { panic!() };
        let Message::User(user) = message else { panic!() };
        assert_eq!(user.content.text(), "후");
        assert!(Entry::parse(line).unwrap().patched(r#"{"type":"entry_patch"}"#).is_err());
    }

    #[test]
    fn what_decides_may_not_stand_twice() {
        let error = Entry::parse(r#"{"type":"x","id":"a","parentId":null,"z":1,"id":"b"}"#).unwrap_err();
        assert_eq!(error, FieldError::Twice("id"));
    }

    #[test]
    fn a_corrupt_label_is_restricted() {
        let entry = Entry::parse(r#"{"type":"x","id":"a","gjcLabel":{"l":"public"}}"#).unwrap();
        assert_eq!(entry.label, Some(Label::CORRUPT));
    }
}
