//! A session in memory, damaged bodies included, that counts how often a body is read.

use gjc_context::CacheMarks;
use gjc_context::{Checked, Folds, Msg, Note, Request, Said, View, Violation, check, view};
use gjc_entry::tree::{NewNode, Pushed};
use gjc_entry::{
    At, BlobRef, Block, Body, Damage, DamageKind, Entry, EntryId, Kind, Leaf, ModelRef, NeedsIndex, Ordinal, Own,
    Params, PathNodes, RequestEnv, Skeleton, Source, Thinking, Timestamp,
};
use serde_json::{Map, Value, json};
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

/// The session.
#[derive(Default)]
pub(crate) struct Tree {
    skeleton: Skeleton,
    bodies: HashMap<At, Result<Arc<Entry>, Damage>>,
    /// The lines as JSON, for a reader that knows nothing of our types; a damaged one has `"damaged": true`.
    pub(crate) lines: Vec<Value>,
    reads: RefCell<HashMap<At, usize>>,
    end: u64,
}

impl Tree {
    /// One path.
    pub(crate) fn path(bodies: impl IntoIterator<Item = Body>) -> Self {
        let mut tree = Self::default();
        for body in bodies {
            tree.say(body);
        }
        tree
    }

    /// An entry under the leaf.
    pub(crate) fn say(&mut self, body: Body) -> Ordinal {
        self.push(self.skeleton.leaf(), body)
    }

    /// An entry under another; it goes through its bytes, as on disk.
    pub(crate) fn push(&mut self, parent: Option<Ordinal>, body: Body) -> Ordinal {
        let entry = Entry {
            id: self.next_id(),
            parent: parent.map(|ordinal| self.skeleton.id(ordinal)),
            at: Timestamp::from_millis(1_780_000_000_000 + self.skeleton.len() as i64),
            label: None,
            body,
            extra: Vec::new(),
        };
        let mut line = Vec::new();
        entry.write(&mut line);
        self.line(serde_json::from_slice(&line).unwrap())
    }

    /// An entry of another program, under the leaf.
    pub(crate) fn foreign(&mut self, kind: &str, fields: Value) -> Ordinal {
        let mut line = Map::new();
        line.insert("type".into(), kind.into());
        line.insert("id".into(), self.next_id().to_string().into());
        line.insert("parentId".into(), self.skeleton.leaf().map(|leaf| self.skeleton.id(leaf).to_string()).into());
        line.insert("timestamp".into(), "2026-06-05T07:18:54.123Z".into());
        line.extend(fields.as_object().unwrap().clone());
        self.line(line.into())
    }

    /// A message of a role that we do not know, under the leaf.
    pub(crate) fn role(&mut self, message: Value) -> Ordinal {
        self.foreign("message", json!({ "message": message }))
    }

    /// An entry under the leaf whose frame is sound and whose body is not.
    pub(crate) fn damaged(&mut self, kind: Kind) -> Ordinal {
        let ordinal = self.foreign(kind.as_str(), json!({ "damaged": true }));
        let at = self.at(ordinal);
        self.bodies.insert(at, Err(Damage { at, kind: DamageKind::Body("cut".into()) }));
        ordinal
    }

    /// Moves the leaf, as `gjc.leaf` does.
    pub(crate) fn move_leaf(&mut self, to: Option<Ordinal>) -> Ordinal {
        let id = |ordinal| self.skeleton.id(ordinal);
        let body = Body::Own(Own::Leaf { from: self.skeleton.leaf().map(id), to: to.map(id) });
        self.push(to, body)
    }

    fn next_id(&self) -> EntryId {
        EntryId::Short(0xa000_0000 + u32::try_from(self.skeleton.len()).unwrap())
    }

    fn line(&mut self, line: Value) -> Ordinal {
        let text = line.to_string();
        let at = At { off: self.end, len: u32::try_from(text.len()).unwrap() };
        self.end += text.len() as u64 + 1;
        let kind = Kind::of(line["type"].as_str().unwrap(), line["customType"].as_str());
        let new = NewNode {
            at,
            kind,
            id: EntryId::new(line["id"].as_str().unwrap()),
            parent: line["parentId"].as_str().map(EntryId::new),
            label: None,
        };
        let Pushed::New(ordinal) = self.skeleton.push(new) else { unreachable!("ids are new and parents known") };
        if line.get("damaged").is_none() {
            self.bodies.insert(at, Ok(Arc::new(Entry::parse(&text).unwrap())));
        }
        self.lines.push(line);
        ordinal
    }

    /// The id of an entry.
    pub(crate) fn id(&self, ordinal: Ordinal) -> EntryId {
        self.skeleton.id(ordinal)
    }

    /// Where an entry stands.
    pub(crate) fn at(&self, ordinal: Ordinal) -> At {
        self.skeleton.node(ordinal).unwrap().at()
    }

    /// The entry at a place, without counting.
    pub(crate) fn peek(&self, at: At) -> Option<&Entry> {
        self.bodies[&at].as_deref().ok()
    }

    /// How often each body was read so far.
    pub(crate) fn reads(&self) -> HashMap<At, usize> {
        self.reads.borrow().clone()
    }

    /// Every leaf that can be asked about.
    pub(crate) fn leaves(&self) -> Vec<Leaf> {
        let all = self.skeleton.iter().map(|(ordinal, _)| Leaf::At(ordinal));
        [Leaf::Root, Leaf::Current].into_iter().chain(all).collect()
    }

    /// The view and the notes at the active leaf.
    pub(crate) fn view(&self) -> (View, Vec<Note>) {
        view(self, Leaf::Current, &mut Folds::default()).unwrap()
    }

    /// The view as one line a message. Fails when a next prompt could not be sent with it.
    #[track_caller]
    pub(crate) fn shown(&self) -> Vec<String> {
        let (view, _) = self.view();
        let mut next = view.clone();
        next.messages.push(Msg { from: None, said: Said::User(vec![Block::text("next", gjc_entry::Origin::Host)]) });
        checked(next).unwrap_or_else(|violation| panic!("{violation}: {:#?}", view.messages));
        view.messages.iter().map(show).collect()
    }
}

impl Source for Tree {
    fn path(&self, leaf: Leaf) -> Result<PathNodes, NeedsIndex> {
        Ok(self.skeleton.path(leaf))
    }

    fn skeleton(&self) -> Option<&Skeleton> {
        Some(&self.skeleton)
    }

    fn body(&self, at: At) -> Result<Arc<Entry>, Damage> {
        *self.reads.borrow_mut().entry(at).or_default() += 1;
        self.bodies[&at].clone()
    }
}

/// A view as it leaves, checked against itself.
pub(crate) fn checked(view: View) -> Result<Checked<Request>, Violation> {
    checked_against(view.clone(), &view)
}

/// A view as it leaves, checked against another.
pub(crate) fn checked_against(view: View, unedited: &View) -> Result<Checked<Request>, Violation> {
    let env = RequestEnv {
        all_tools: Vec::new(),
        system: BlobRef([1; 32]),
        tools: BlobRef([2; 32]),
        model: ModelRef { provider: "anthropic".into(), id: "claude-x".into(), api: "anthropic-messages".into() },
        thinking: Thinking::Off,
        tier: gjc_entry::Tier::Auto,
        params: Params { max_tokens: 1000 },
        renderer: 1,
        held: None,
    };
    let cache = CacheMarks::of(&view);
    check(Request { env, view, cache }, unedited)
}

/// `user: …`, `model: …` or `id: …`, with calls as `name(id)`.
pub(crate) fn show(message: &Msg) -> String {
    let blocks = |blocks: &[Block]| {
        let shown: Vec<String> = blocks
            .iter()
            .map(|block| match block {
                Block::Text { text, .. } => text.clone(),
                Block::Thinking { thinking, .. } => format!("<{thinking}>"),
                Block::RedactedThinking { data, .. } => format!("<redacted {data}>"),
                Block::Image { mime, .. } => format!("[{mime}]"),
                Block::ToolCall { id, name, .. } => format!("{name}({id})"),
                Block::Unknown(raw) => raw.get().into(),
            })
            .collect();
        shown.join(" ")
    };
    match &message.said {
        Said::User(said) => format!("user: {}", blocks(said)),
        Said::Assistant { blocks: said, .. } => format!("model: {}", blocks(said)),
        Said::Result { call, content, is_error, .. } => {
            format!("{call}{} {}", if *is_error { "!" } else { ":" }, blocks(content))
        }
    }
}
