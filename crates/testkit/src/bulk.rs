//! Session files of any size, the same in every run: what long work of a person with an agent looks like on disk.
//!
//! Turns of a prompt, answers with thinking, text and calls, results whose sizes are log-normal (median 1.6 KB, most
//! 50 KB); text of code, paths, ANSI escapes, JSON, 한글. Every 120 entries or so the leaf moves back, mostly with a branch
//! summary; every 4 MB a compaction keeps the last 20 entries. Fast enough that a gigabyte is no reason to wait.

use gjc_entry::{Label, Level, Timestamp};
use std::io::{self, Write};

/// What is written.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// The file grows until it has so many bytes.
    pub bytes: u64,
    /// Another seed, another session.
    pub seed: u64,
    /// Whether every 4 MB a compaction stands.
    pub compactions: bool,
    /// Whether the leaf moves back now and then.
    pub branches: bool,
    /// Whether entries carry gjc's label, as gjc writes them once a session is not public.
    pub labels: bool,
}

impl Shape {
    /// A session as pi writes it.
    #[must_use]
    pub fn of(bytes: u64) -> Self {
        Self { bytes, seed: 1, compactions: true, branches: true, labels: false }
    }
}

/// What was written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Facts {
    /// Length of the file.
    pub bytes: u64,
    /// Entries, the header not counted.
    pub entries: u32,
    /// How often the leaf moved back.
    pub branches: u32,
    /// Compactions.
    pub compactions: u32,
}

/// Writes a session file.
///
/// # Errors
/// As `out`.
pub fn write(out: impl Write, shape: Shape) -> io::Result<Facts> {
    let mut session = Session::new(out, shape);
    session.header();
    session.entry("model_change", |g| put(g, r#","provider":"fake","modelId":"fake-model""#));
    session.entry("thinking_level_change", |g| put(g, r#","thinkingLevel":"medium""#));
    while session.size() < shape.bytes {
        session.turn();
        session.aside();
        session.branch();
        session.compaction();
        session.flush(1 << 20)?;
    }
    session.flush(0)?;
    Ok(session.facts())
}

/// A file of this shape in `dir`, written at the first call: a gigabyte is made once a machine.
///
/// # Errors
/// As the system calls.
pub fn cached(dir: &std::path::Path, name: &str, shape: Shape) -> io::Result<std::path::PathBuf> {
    let path = dir.join(name);
    if path.metadata().is_ok_and(|found| found.len() >= shape.bytes) {
        return Ok(path);
    }
    std::fs::create_dir_all(dir)?;
    let temporary = tempfile::NamedTempFile::new_in(dir)?;
    write(temporary.as_file(), shape)?;
    temporary.as_file().sync_all()?;
    temporary.persist(&path)?;
    Ok(path)
}

const WORDS: &[&str] = &[
    "session", "fork", "resume", "parse", "index", "append", "leaf", "branch", "entry", "token", "stream", "buffer",
    "handle", "result", "error", "retry", "cache", "path", "tree", "node", "visit", "worker", "queue", "fn", "let",
    "mut", "impl", "pub", "struct", "enum", "match", "async", "await", "return", "self", "Ok", "Err", "Some", "None",
    "Vec",
];
const UNUSUAL: &[&str] =
    &["naïve", "größe", "日本語テキスト", "가재코드", "emoji 🦀✅", "Ωmega", "“quoted”", "세션을 이어서"];
const FIRST_MS: i64 = 1_760_000_000_000;

struct Gen {
    /// Lines of text, escaped for JSON, each with its line feed (`\n` as an escape).
    lines: Vec<Vec<u8>>,
    state: u64,
    now: i64,
    out: Vec<u8>,
}

fn put(g: &mut Gen, text: &str) {
    g.out.extend_from_slice(text.as_bytes());
}

impl Gen {
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, most: u64) -> u64 {
        self.next() % most.max(1)
    }

    fn between(&mut self, from: u64, to: u64) -> u64 {
        from + self.below(to - from)
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn word(&mut self) -> &'static str {
        WORDS[self.next() as usize % WORDS.len()]
    }

    /// `median` bytes in half of the cases, rarely much more (Box and Muller 1958).
    fn log_normal(&mut self, median: f64, sigma: f64) -> u64 {
        let unit = |bits: u64| ((bits >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
        let (a, b) = (unit(self.next()), unit(self.next()));
        let normal = (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos();
        ((normal * sigma).exp() * median).clamp(8.0, 50_000.0) as u64
    }

    /// About so many bytes of text inside of a JSON string.
    fn text(&mut self, bytes: u64) {
        let end = self.out.len() + bytes as usize;
        while self.out.len() < end {
            let line = self.next() as usize % self.lines.len();
            self.out.extend_from_slice(&self.lines[line]);
        }
    }

    fn hex(&mut self, digits: usize) {
        for _ in 0..digits.div_ceil(16) {
            let text = format!("{:016x}", self.next());
            self.out.extend_from_slice(&text.as_bytes()[..digits.min(16)]);
        }
    }

    /// A field whose value is so much text.
    fn field(&mut self, name: &str, bytes: u64) {
        put(self, name);
        put(self, ":\"");
        self.text(bytes);
        put(self, "\"");
    }

    fn make_lines(&mut self) {
        for _ in 0..600 {
            let words: Vec<&str> = (0..self.between(3, 13)).map(|_| self.word()).collect();
            let text = words.join(" ");
            let line = match self.below(100) {
                0..45 => {
                    format!("{}{text}{}", "    ".repeat(self.below(5) as usize), [";", " {", "}", ","][words.len() % 4])
                }
                45..60 => format!("src/{}/{}.rs:{}:{}: {text}", words[0], words[1], self.below(900), self.below(80)),
                60..70 => format!("\u{1b}[32m{text}\u{1b}[0m"),
                70..80 => serde_json::json!({words[0]: self.below(1_000_000), "nested": {"a": [1, 2], "q": "\"x\"\t"}})
                    .to_string(),
                80..86 => format!("{} {text}", UNUSUAL[self.below(UNUSUAL.len() as u64) as usize]),
                86..90 => String::new(),
                _ => format!("{:016x}{:016x} {text}", self.next(), self.next()),
            };
            let escaped = serde_json::Value::from(line + "\n").to_string();
            self.lines.push(escaped.as_bytes()[1..escaped.len() - 1].to_vec());
        }
    }
}

struct Session<W> {
    to: W,
    shape: Shape,
    g: Gen,
    facts: Facts,
    /// Of each entry.
    parents: Vec<Option<u32>>,
    leaf: Option<u32>,
    next_branch: u32,
    last_compaction: u64,
}

impl<W: Write> Session<W> {
    fn new(to: W, shape: Shape) -> Self {
        let now = FIRST_MS + shape.seed.cast_signed() * 1000;
        let mut g = Gen { lines: Vec::new(), state: shape.seed, now, out: Vec::with_capacity(2 << 20) };
        g.make_lines();
        Self {
            to,
            shape,
            g,
            facts: Facts::default(),
            parents: Vec::new(),
            leaf: None,
            next_branch: 120,
            last_compaction: 0,
        }
    }

    fn size(&self) -> u64 {
        self.facts.bytes + self.g.out.len() as u64
    }

    fn facts(&self) -> Facts {
        Facts { entries: self.parents.len() as u32, ..self.facts }
    }

    fn flush(&mut self, more_than: usize) -> io::Result<()> {
        if self.g.out.len() > more_than {
            self.to.write_all(&self.g.out)?;
            self.facts.bytes += self.g.out.len() as u64;
            self.g.out.clear();
        }
        Ok(())
    }

    /// A permutation of the ordinals (the finaliser of MurmurHash3), so that no id comes twice.
    fn id(&self, ordinal: u32) -> String {
        let mut mixed = ordinal ^ (self.shape.seed as u32).wrapping_mul(0x9E37_79B9);
        mixed = (mixed ^ mixed >> 16).wrapping_mul(0x85EB_CA6B);
        mixed = (mixed ^ mixed >> 13).wrapping_mul(0xC2B2_AE35);
        format!("{:08x}", mixed ^ mixed >> 16)
    }

    fn header(&mut self) {
        let at = Timestamp::from_millis(self.g.now);
        let (a, b) = (self.g.next(), self.g.next());
        let id = format!("{:08x}-0000-7{:03x}-8000-{:012x}", a as u32, a >> 52, b >> 16);
        let line = format!(
            "{{\"type\":\"session\",\"version\":3,\"id\":\"{id}\",\"timestamp\":\"{at}\",\"cwd\":\"/srv/가재\"}}\n"
        );
        put(&mut self.g, &line);
    }

    fn entry(&mut self, kind: &str, rest: impl FnOnce(&mut Gen)) -> u32 {
        let ordinal = self.parents.len() as u32;
        let parent = self.leaf.map_or("null".into(), |leaf| format!("\"{}\"", self.id(leaf)));
        let id = self.id(ordinal);
        self.g.now += self.g.between(50, 20_000).cast_signed();
        put(&mut self.g, &format!("{{\"type\":\"{kind}\",\"id\":\"{id}\",\"parentId\":{parent}"));
        if self.shape.labels {
            let label = Label { level: Level::Internal, trusted: self.g.chance(30) };
            put(&mut self.g, &format!(",\"gjcLabel\":{}", label.to_json()));
        }
        let at = Timestamp::from_millis(self.g.now);
        put(&mut self.g, &format!(",\"timestamp\":\"{at}\""));
        rest(&mut self.g);
        put(&mut self.g, "}\n");
        self.parents.push(self.leaf);
        self.leaf = Some(ordinal);
        ordinal
    }

    fn message(&mut self, role: &str, rest: impl FnOnce(&mut Gen)) {
        self.entry("message", |g| {
            put(g, &format!(",\"message\":{{\"role\":\"{role}\""));
            rest(g);
            let now = g.now;
            put(g, &format!(",\"timestamp\":{now}}}"));
        });
    }

    fn assistant(&mut self, stop: &str, content: impl FnOnce(&mut Gen)) {
        self.message("assistant", |g| {
            put(g, ",\"content\":[");
            content(g);
            let (input, output, cached) = (g.between(200, 90_000), g.between(20, 3000), g.below(80_000));
            put(g, "],\"api\":\"anthropic-messages\",\"provider\":\"fake\",\"model\":\"fake-model\"");
            put(
                g,
                &format!(
                    ",\"usage\":{{\"input\":{input},\"output\":{output},\"cacheRead\":{cached},\"cacheWrite\":0,\
                     \"totalTokens\":{},\"cost\":{{\"input\":0.1,\"output\":0.2,\"cacheRead\":0.01,\"cacheWrite\":0,\"total\":0.31}}}}",
                    input + output + cached
                ),
            );
            put(g, &format!(",\"stopReason\":\"{stop}\""));
        });
    }

    fn turn(&mut self) {
        self.message("user", |g| {
            let bytes = g.between(30, 600);
            g.field(",\"content\":[{\"type\":\"text\",\"text\"", bytes);
            put(g, "}]");
        });
        let rounds = [1, 1, 2, 3, 4, 6, 9][self.g.below(7) as usize];
        for _ in 0..rounds {
            if self.size() >= self.shape.bytes {
                break;
            }
            self.round();
        }
        let bytes = self.g.between(100, 3000);
        let stop = if self.g.chance(3) { "aborted" } else { "stop" };
        self.assistant(stop, |g| {
            g.field("{\"type\":\"text\",\"text\"", bytes);
            put(g, "}");
        });
    }

    /// An answer with calls, and their results.
    fn round(&mut self) {
        let calls: Vec<(String, &str)> = (0..[1, 1, 1, 2, 3][self.g.below(5) as usize])
            .map(|_| {
                let tool = ["bash", "read", "read", "edit", "write", "grep"][self.g.below(6) as usize];
                (format!("toolu_{:016x}", self.g.next()), tool)
            })
            .collect();
        self.assistant("toolUse", |g| {
            if g.chance(60) {
                let bytes = g.between(50, 2500);
                g.field("{\"type\":\"thinking\",\"thinking\"", bytes);
                put(g, ",\"thinkingSignature\":\"");
                g.hex(400);
                put(g, "\"},");
            }
            for (index, (id, tool)) in calls.iter().enumerate() {
                let comma = if index == 0 { "" } else { "," };
                put(g, &format!("{comma}{{\"type\":\"toolCall\",\"id\":\"{id}\",\"name\":\"{tool}\",\"arguments\":{{"));
                let word = g.word();
                put(g, &format!("\"path\":\"src/{word}.rs\""));
                let bytes = match *tool {
                    "edit" => g.between(40, 1600),
                    "write" => g.between(100, 6000),
                    "bash" => g.between(10, 200),
                    _ => 0,
                };
                if bytes > 0 {
                    g.field(",\"text\"", bytes);
                }
                put(g, "}}");
            }
        });
        for (id, tool) in &calls {
            let bytes = self.g.log_normal(1600.0, 1.3);
            self.message("toolResult", |g| {
                put(g, &format!(",\"toolCallId\":\"{id}\",\"toolName\":\"{tool}\""));
                g.field(",\"content\":[{\"type\":\"text\",\"text\"", bytes);
                let failed = g.chance(6);
                put(g, &format!("}}],\"isError\":{failed}"));
            });
        }
    }

    /// What happens beside the conversation.
    fn aside(&mut self) {
        let last = self.parents.len() as u64 - 1;
        let near = last.saturating_sub(self.g.below(30));
        let near = self.id(near as u32);
        match self.g.below(100) {
            0..2 => drop(self.entry("model_change", |g| put(g, r#","provider":"fake","modelId":"fake-model-2""#))),
            2..4 => drop(self.entry("thinking_level_change", |g| put(g, r#","thinkingLevel":"high""#))),
            4..6 => drop(self.entry("label", |g| put(g, &format!(",\"targetId\":\"{near}\",\"label\":\"여기\"")))),
            6..8 => drop(self.entry("custom", |g| {
                g.field(",\"customType\":\"ext-state\",\"data\":{\"s\"", 60);
                put(g, "}");
            })),
            8..10 => drop(self.entry("custom_message", |g| {
                g.field(",\"customType\":\"ext-note\",\"content\"", 200);
                put(g, ",\"display\":false");
            })),
            10..11 => drop(self.entry("session_info", |g| put(g, ",\"name\":\"이름\""))),
            _ => {}
        }
    }

    /// So many entries up the path from the leaf.
    fn up(&self, steps: u64) -> Option<u32> {
        let mut at = self.leaf?;
        for _ in 0..steps {
            at = self.parents[at as usize].unwrap_or(at);
        }
        Some(at)
    }

    fn branch(&mut self) {
        let entries = self.parents.len() as u32;
        if !self.shape.branches || entries < self.next_branch {
            return;
        }
        self.next_branch = entries + self.g.between(60, 180) as u32;
        let (from, steps) = (self.leaf, self.g.between(4, 40));
        self.leaf = self.up(steps);
        self.facts.branches += 1;
        if self.g.chance(70) {
            let from = self.id(from.unwrap_or(0));
            self.entry("branch_summary", |g| {
                put(g, &format!(",\"fromId\":\"{from}\""));
                let bytes = g.between(200, 1500);
                g.field(",\"summary\"", bytes);
            });
        }
    }

    fn compaction(&mut self) {
        if !self.shape.compactions || self.size() - self.last_compaction < 4_000_000 {
            return;
        }
        let Some(kept) = self.up(20) else { return };
        let kept = self.id(kept);
        self.entry("compaction", |g| {
            let bytes = g.between(1500, 6000);
            g.field(",\"summary\"", bytes);
            put(g, &format!(",\"firstKeptEntryId\":\"{kept}\",\"tokensBefore\":150000"));
        });
        self.facts.compactions += 1;
        self.last_compaction = self.size();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gjc_entry::{Entry, Header};

    #[test]
    fn a_generated_session_is_sound_and_the_same_in_every_run() {
        let shape = Shape { labels: true, ..Shape::of(9_000_000) };
        let (mut bytes, mut again) = (Vec::new(), Vec::new());
        let facts = write(&mut bytes, shape).unwrap();
        write(&mut again, shape).unwrap();
        assert!(bytes == again);
        assert_eq!(facts.bytes, bytes.len() as u64);
        assert!(facts.branches > 5 && facts.compactions == 2, "{facts:?}");
        let text = String::from_utf8(bytes).unwrap();
        let mut lines = text.lines();
        Header::parse(lines.next().unwrap()).unwrap();
        let mut seen = std::collections::HashSet::new();
        for line in lines {
            let entry = Entry::parse(line).unwrap();
            assert!(entry.parent.is_none_or(|parent| seen.contains(&parent)), "{line}");
            assert!(seen.insert(entry.id), "{line}");
        }
        assert_eq!(seen.len(), facts.entries as usize);
    }
}
