//! Sessions made of lines, and their pages.

use gjc_entry::Timestamp;
use gjc_export::{Making, Piece, children, html};
use gjc_log::fs::OsFs;
use gjc_log::{BlobStore, Reader};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;

/// A session in a folder of its own.
pub(crate) struct Kit {
    pub(crate) dir: tempfile::TempDir,
    lines: Vec<String>,
    last: Option<String>,
}

impl Kit {
    pub(crate) fn new() -> Self {
        let header = json!({"type": "session", "version": 3, "id": "01a22bef-762d-75c7-a66e-ef47986f3325",
            "timestamp": "2026-11-30T10:10:43.374Z", "cwd": "/home/ann/프로젝트"});
        Self { dir: tempfile::tempdir().unwrap(), lines: vec![header.to_string()], last: None }
    }

    /// Adds a line as it is.
    pub(crate) fn line(&mut self, line: &str) -> &mut Self {
        self.lines.push(line.into());
        self
    }

    /// Adds an entry under the one before it, with these fields; answers its id.
    pub(crate) fn entry(&mut self, fields: Value) -> String {
        let parent = self.last.clone();
        self.entry_under(parent.as_deref(), fields)
    }

    /// Adds an entry under another one.
    pub(crate) fn entry_under(&mut self, parent: Option<&str>, fields: Value) -> String {
        let id = format!("{:08x}", self.lines.len());
        let mut entry =
            json!({"type": "message", "id": id, "parentId": parent, "timestamp": "2026-11-30T10:10:44.238Z"});
        for (key, value) in fields.as_object().unwrap() {
            entry[key] = value.clone();
        }
        self.lines.push(entry.to_string());
        self.last = Some(id.clone());
        id
    }

    pub(crate) fn user(&mut self, text: &str) -> String {
        self.entry(json!({"message": {"role": "user", "content": [{"type": "text", "text": text}], "timestamp": 1}}))
    }

    pub(crate) fn answer(&mut self, text: &str) -> String {
        self.entry(answer(&json!([{"type": "text", "text": text}])))
    }

    /// A call of a tool and its result.
    pub(crate) fn call(&mut self, name: &str, arguments: &Value, result: &str) {
        let id = format!("call{}", self.lines.len());
        self.entry(answer(&json!([{"type": "toolCall", "id": id, "name": name, "arguments": arguments}])));
        self.entry(json!({"message": {"role": "toolResult", "toolCallId": id, "toolName": name,
            "content": [{"type": "text", "text": result}], "isError": false, "timestamp": 1}}));
    }

    /// Goes on from another entry.
    pub(crate) fn go_on_from(&mut self, id: &str) {
        self.last = Some(id.into());
    }

    /// The id of the entry that was added last.
    pub(crate) fn last(&self) -> String {
        self.last.clone().unwrap_or_default()
    }

    /// Keeps bytes as a blob; answers its name.
    pub(crate) fn blob(&self, bytes: &[u8]) -> String {
        let name = BlobStore::<OsFs>::name(bytes);
        let dir = self.dir.path().join("blobs");
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join(name.hex()), bytes).unwrap();
        format!("blob:sha256:{}", name.hex())
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.dir.path().join("2026-11-30T10-10-43-374Z_01a22bef.jsonl")
    }

    /// Writes the session and answers its page.
    pub(crate) fn page(&self) -> String {
        self.page_with(None)
    }

    pub(crate) fn page_with(&self, mask: Option<&dyn Fn(Vec<u8>, Piece) -> Vec<u8>>) -> String {
        std::fs::write(self.file(), self.lines.join("\n") + "\n").unwrap();
        let loaded = Reader::open(&OsFs, &self.file()).unwrap();
        let blobs = BlobStore::new(Arc::new(OsFs), Some(self.dir.path().join("blobs")));
        let children = children(&OsFs, &self.file());
        let at = Timestamp::from_millis(1_796_042_387_559);
        let making = Making { blobs: &blobs, children: &children, at, mask, progress: &|_, _| {} };
        let mut page = Vec::new();
        html(&loaded, &making, &mut page).unwrap();
        String::from_utf8(page).unwrap()
    }
}

pub(crate) fn answer(content: &Value) -> Value {
    json!({"message": {"role": "assistant", "content": content, "api": "anthropic-messages", "provider": "anthropic",
        "model": "claude-x", "stopReason": "stop", "timestamp": 1,
        "usage": {"input": 1200, "output": 80, "cacheRead": 300, "cacheWrite": 0, "totalTokens": 1580,
            "cost": {"input": 0.01, "output": 0.002, "cacheRead": 0.0, "cacheWrite": 0.0, "total": 0.012}}}})
}
