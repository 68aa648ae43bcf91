//! Which sessions hold the words of a query.
//!
//! Searched are titles, the folder, what persons and the model said, names and paths of tool calls, commands that a person
//! ran, and the first 2 KB of results. A session is found when each word of the query stands somewhere in these. The index
//! only rules sessions out; every one that is left is read, so that a hit is always in the file.

use crate::index::{Key, SHARDS, Words, digest};
use crate::look::{SessionInfo, label_of};
use crate::store::{Listing, Store};
use crate::sweep::{Unreadable, each};
use crate::words::{Term, folded, is_behind, terms, tokens};
use gjc_entry::{Body, Entry, EntryId, Label, Leaf, Message, Source};
use gjc_log::Reader;
use gjc_log::fs::OsFs;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::{HashMap, HashSet};

/// So much of a result is searched, in bytes.
const RESULT: usize = 2 << 10;
/// Places that are shown of a session.
const HITS: usize = 3;
/// Letters around a hit.
const AROUND: usize = 60;

/// What a search found.
#[derive(Debug, Default)]
pub struct Answer {
    /// The sessions, newest entry first.
    pub found: Vec<Found>,
    /// Whether older sessions were not looked at, because there are so many already.
    pub more: bool,
    /// Whether the query has no word at all.
    pub no_words: bool,
    /// Files that could not be read.
    pub unreadable: Vec<Unreadable>,
    /// How many sessions were read, because the index could not rule them out.
    pub read: usize,
}

impl Answer {
    /// What the answer is worth: all that the sessions in it are. Whoever hands it to a model hands this on.
    #[must_use]
    pub fn label(&self) -> Label {
        self.found.iter().fold(Label::PUBLIC_TRUSTED, |label, found| label.join(found.session.label))
    }
}

/// A session that holds the words.
#[derive(Debug)]
pub struct Found {
    /// The session.
    pub session: SessionInfo,
    /// Places that hold some of them, those with the most words first.
    pub hits: Vec<Hit>,
}

/// A place that holds words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// The entry; `None` for header and title.
    pub entry: Option<EntryId>,
    /// Who speaks: `user`, `assistant`, `tool`, `title`, `folder`.
    pub who: &'static str,
    /// Whether the entry lies on the active path, rather than on a branch that was left.
    pub active: bool,
    /// What the entry is worth.
    pub label: Label,
    /// The words with some letters around them.
    pub text: String,
}

pub(crate) fn search(
    store: &Store,
    listing: Listing,
    query: &str,
    limit: usize,
    wanted: impl Fn(&SessionInfo) -> bool,
) -> Answer {
    /// So many are read at once at most; no more than are wanted still, since most that are left hold the words.
    const BATCH: usize = 32;
    /// So few are not worth a round of their own.
    const FEW: usize = 4;
    let terms = terms(query);
    let mut answer = Answer { no_words: terms.is_empty(), unreadable: listing.unreadable, ..Answer::default() };
    if terms.is_empty() {
        return answer;
    }
    let key = |info: &SessionInfo| listing.states.get(&info.path).map(|state| Key::of(&info.path, state));
    let mut candidates: Vec<(&SessionInfo, Option<Key>)> =
        listing.sessions.iter().filter(|info| wanted(info)).map(|info| (info, key(info))).collect();
    let mut may: HashMap<Key, bool> = candidates.iter().filter_map(|(_, key)| Some(((*key)?, true))).collect();
    store.index.rule_out(&digests(&terms), &mut may);
    candidates.retain(|(_, key)| key.is_none_or(|key| may.get(&key).is_none_or(|may| *may)));
    let keys: Vec<Key> = candidates.iter().filter_map(|(_, key)| *key).collect();
    let mut known: HashSet<Key> =
        keys.iter().copied().zip(store.index.known(&keys)).filter_map(|(key, is)| is.then_some(key)).collect();
    let mut left = &candidates[..];
    while !left.is_empty() {
        if answer.found.len() >= limit {
            answer.more = true;
            break;
        }
        let wanted = (limit - answer.found.len()).clamp(FEW, BATCH).min(left.len());
        let (batch, later) = left.split_at(wanted);
        left = later;
        let looks = each(batch, |(info, key)| {
            let fill = key.is_some_and(|key| !known.contains(&key));
            look(info, &terms, fill)
        });
        answer.read += batch.len();
        let (mut filled, mut bytes) = (Vec::new(), 0);
        for ((info, key), look) in batch.iter().zip(looks) {
            let Some(look) = look else { continue };
            if let (Some(key), Some(words)) = (key, look.words) {
                bytes += info.size;
                filled.push((*key, words));
            }
            match look.hits {
                Some(_) if answer.found.len() >= limit => answer.more = true,
                Some(hits) => answer.found.push(Found { session: (*info).clone(), hits }),
                None => {}
            }
        }
        known.extend(filled.iter().map(|(key, _)| *key));
        if !filled.is_empty() && store.is_worth(filled.len(), bytes) {
            store.index.keep_words(&filled);
        }
    }
    answer
}

/// Remembers the words of sessions that the index does not know.
pub(crate) fn fill(store: &Store, listing: &Listing, stop: impl Fn() -> bool + Sync) -> usize {
    /// What was read is kept each time so many bytes are together.
    const PART: u64 = 64 << 20;
    let key = |info: &SessionInfo| Some(Key::of(&info.path, listing.states.get(&info.path)?));
    let all: Vec<(&SessionInfo, Key)> = listing.sessions.iter().filter_map(|info| Some((info, key(info)?))).collect();
    let keys: Vec<Key> = all.iter().map(|(_, key)| *key).collect();
    let known = store.index.known(&keys);
    let mut left: Vec<(&SessionInfo, Key)> =
        all.into_iter().zip(known).filter_map(|(of, known)| (!known).then_some(of)).collect();
    if !store.is_worth(left.len(), left.iter().map(|(info, _)| info.size).sum()) {
        return 0;
    }
    let mut read = 0;
    while !left.is_empty() && !stop() {
        let mut bytes = 0;
        let fits = left.iter().take_while(|(info, _)| {
            let before = bytes;
            bytes += info.size;
            before < PART
        });
        let fits = fits.count();
        let part: Vec<_> = left.drain(..fits.max(1)).collect();
        let looks = each(&part, |(info, _)| if stop() { None } else { look(info, &[], true) });
        let words = |((_, key), look): (&(_, Key), Option<Look>)| Some((*key, look?.words?));
        let filled: Vec<(Key, Words)> = part.iter().zip(looks).filter_map(words).collect();
        read += filled.len();
        store.index.keep_words(&filled);
    }
    read
}

/// The places of all tokens that a session with the words has.
fn digests(terms: &[Term]) -> Vec<(usize, u32)> {
    let mut digests = Vec::new();
    terms.iter().for_each(|term| term.tokens(|token| digests.push(digest(token))));
    digests.sort_unstable();
    digests.dedup();
    digests
}

struct Look {
    /// `None`: the session does not hold all the words.
    hits: Option<Vec<Hit>>,
    /// All its words, if they were asked for.
    words: Option<Words>,
}

/// Reads a session; with `fill` to its end, else as far as it takes to know.
fn look(info: &SessionInfo, terms: &[Term], fill: bool) -> Option<Look> {
    /// So many entries are read at once.
    const PART: usize = 128;
    let loaded = Reader::open(&OsFs, &info.path).ok()?;
    let reader = &loaded.value;
    let mut search = Search::new(terms, fill);
    let tree = reader.skeleton()?;
    let whole = label_of(Some(tree));
    for title in reader.header().title.iter() {
        search.piece(None, whole, "title", title);
    }
    search.piece(None, whole, "folder", &reader.header().cwd);
    let places: Vec<_> = tree.iter().map(|(_, node)| (node.at(), node.label())).collect();
    let mut active = HashSet::new();
    for part in places.chunks(PART) {
        if search.is_done() && !fill {
            break;
        }
        let mut at = part.iter();
        reader.bodies(&mut part.iter().map(|(at, _)| *at), &mut |entry| {
            let place = at.next();
            if let (Ok(entry), Some((place, label))) = (entry, place) {
                pieces(&entry, |who, text| search.piece(Some((place.off, &entry.id)), *label, who, text));
            }
        });
    }
    if !search.hits.is_empty()
        && let Ok(path) = reader.path(Leaf::Current)
    {
        active.extend(path.0.iter().map(|node| node.at.off));
    }
    Some(Look { hits: search.answer(&active), words: fill.then(|| search.words()) })
}

/// What is searched of an entry: who says it, and what.
fn pieces(entry: &Entry, mut each: impl FnMut(&'static str, &str)) {
    /// Parts of JSON that other programs and models wrote.
    #[derive(Deserialize, Default)]
    struct Parts {
        #[serde(default)]
        path: Option<String>,
        #[serde(default, alias = "code")]
        command: Option<String>,
        #[serde(default)]
        output: Option<String>,
    }
    let parts = |raw: &RawValue| serde_json::from_str::<Parts>(raw.get()).unwrap_or_default();
    match &entry.body {
        Body::SessionInfo { name: Some(name) } => each("title", name),
        Body::Message(Message::User(user)) => each("user", &user.content.text()),
        Body::Message(Message::Assistant(said)) => {
            each("assistant", &said.text());
            for (_, name, input) in said.calls() {
                each("tool", name);
                for path in parts(input).path.iter() {
                    each("tool", path);
                }
            }
        }
        Body::Message(Message::ToolResult(result)) => {
            each("tool", &result.tool);
            each("tool", beginning(&result.content.text()));
        }
        Body::Message(Message::Other { raw, .. }) => {
            let parts = parts(raw);
            for command in parts.command.iter() {
                each("user", command);
            }
            for output in parts.output.iter() {
                each("tool", beginning(output));
            }
        }
        _ => {}
    }
}

/// The first 2 KB of a result, cut between letters.
fn beginning(text: &str) -> &str {
    if text.len() <= RESULT {
        return text;
    }
    let mut end = text.floor_char_boundary(RESULT);
    while text[end..].starts_with(is_behind) && end > 0 {
        end = text.floor_char_boundary(end - 1);
    }
    &text[..end]
}

/// A search through one session.
struct Search<'t> {
    terms: &'t [Term],
    seen: Vec<bool>,
    /// Offset of the entry, words of the query in it, hit.
    hits: Vec<(Option<u64>, usize, Hit)>,
    words: Option<Vec<HashSet<u32>>>,
}

impl<'t> Search<'t> {
    fn new(terms: &'t [Term], fill: bool) -> Self {
        let words = fill.then(|| vec![HashSet::new(); SHARDS]);
        Self { terms, seen: vec![false; terms.len()], hits: Vec::new(), words }
    }

    /// Whether nothing more can change the answer.
    fn is_done(&self) -> bool {
        self.seen.iter().all(|seen| *seen)
            && self.hits.iter().filter(|(_, held, _)| *held == self.terms.len()).count() >= HITS
    }

    fn piece(&mut self, entry: Option<(u64, &EntryId)>, label: Label, who: &'static str, text: &str) {
        let folded = folded(text);
        if let Some(words) = &mut self.words {
            tokens(&folded, |token| {
                let (shard, word) = digest(token);
                words[shard].insert(word);
            });
        }
        if self.is_done() {
            return;
        }
        let (mut held, mut first) = (0, None);
        for (term, seen) in self.terms.iter().zip(&mut self.seen) {
            if let Some(at) = term.find(&folded) {
                *seen = true;
                held += 1;
                first = Some(first.map_or(at, |first: usize| first.min(at)));
            }
        }
        // The best few are kept: of equals, the earliest.
        let worst = self.hits.iter().map(|(_, held, _)| *held).min().unwrap_or(0);
        let Some(first) = first.filter(|_| self.hits.len() < HITS || held > worst) else { return };
        if self.hits.len() == HITS
            && let Some(at) = self.hits.iter().rposition(|(_, held, _)| *held == worst)
        {
            self.hits.remove(at);
        }
        let text = around(text, &folded, first);
        let hit = Hit { entry: entry.map(|(_, id)| id.clone()), who, active: true, label, text };
        self.hits.push((entry.map(|(off, _)| off), held, hit));
    }

    fn answer(&mut self, active: &HashSet<u64>) -> Option<Vec<Hit>> {
        self.hits.sort_by_key(|(_, held, _)| std::cmp::Reverse(*held));
        let hit = |(off, _, hit): (Option<u64>, usize, Hit)| Hit {
            active: off.is_none_or(|off| active.contains(&off)),
            ..hit
        };
        let hits = std::mem::take(&mut self.hits).into_iter().map(hit).collect();
        self.seen.iter().all(|seen| *seen).then_some(hits)
    }

    fn words(&mut self) -> Words {
        let sorted = |words: HashSet<u32>| {
            let mut words: Vec<u32> = words.into_iter().collect();
            words.sort_unstable();
            words
        };
        Words(self.words.take().unwrap_or_default().into_iter().map(sorted).collect())
    }
}

/// A text around the place `at` of its folded form, in one line, cut between letters.
fn around(text: &str, folded: &str, at: usize) -> String {
    // Folding changes lengths, but neither the order of letters nor what stands before a letter with its marks.
    let letters = letters(text);
    let whole = folded.get(..at).unwrap_or_default().len();
    let (mut length, mut hit) = (0, 0);
    for (index, letter) in letters.iter().enumerate() {
        if length > whole {
            break;
        }
        hit = index;
        length += crate::words::folded(letter).len();
    }
    let from = hit.saturating_sub(AROUND / 2);
    let to = (hit + 2 * AROUND).min(letters.len());
    let line: String = letters[from..to].concat().split_whitespace().collect::<Vec<_>>().join(" ");
    format!("{}{line}{}", if from > 0 { "…" } else { "" }, if to < letters.len() { "…" } else { "" })
}

/// A text in what a person sees as letters.
fn letters(text: &str) -> Vec<&str> {
    let mut letters = Vec::new();
    let mut from = 0;
    let mut joined = false;
    for (at, c) in text.char_indices() {
        if at > from && !is_behind(c) && !joined {
            letters.push(&text[from..at]);
            from = at;
        }
        joined = c == '\u{200d}';
    }
    letters.extend(text.get(from..).filter(|rest| !rest.is_empty()));
    letters
}
