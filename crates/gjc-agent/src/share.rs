//! A person shares a session: the page of it, without keys, goes to a secret gist or to a command of theirs, once they have
//! seen what was taken out and have said yes to exactly these bytes.

use gjc_entry::{Blobs, EntryId, Env, Label, Level, OpId, SessionId, Skeleton, Source, Timestamp, Vars};
use gjc_export::{Making, Piece, children, default_name, html};
use gjc_flow::{Call, Digest, LabelState, LabelWatch, Permit, Policy, Redeem, SinkRef, Verdict, decide, digest};
use gjc_llm::{Masked, Masks};
use gjc_log::Reader;
use gjc_log::fs::Fs;
use gjc_process::{Exit, OutputCap, Spawn, SpawnError, Stdin};
use gjc_protocol::Refusal;
use serde_json::json;
use serde_json::value::RawValue;
use std::cell::RefCell;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// What is longer nobody reads in a browser, and no gist takes.
const LONGEST: usize = 50 * 1024 * 1024;
/// How long the program may take to send it.
const PATIENCE: Duration = Duration::from_secs(120);
/// How much of what the program says a person is told when it fails.
const TOLD: usize = 300;
/// `gh` ends with this code where nobody is logged in.
const NOT_LOGGED_IN: i32 = 4;

/// Where a person shares sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sharing {
    /// A line for `sh -c` that reads the page; without one it is a secret gist, made with `gh`.
    pub command: Option<String>,
    /// How secret a session may be that is shared there.
    pub level: Level,
}

impl Default for Sharing {
    fn default() -> Self {
        Self { command: None, level: Level::Public }
    }
}

impl Sharing {
    /// The place, for a sentence.
    #[must_use]
    pub fn place(&self) -> &'static str {
        if self.command.is_some() { "the command of share.command" } else { "a secret gist (gh)" }
    }

    fn program(&self) -> &'static str {
        if self.command.is_some() { "the command of share.command" } else { "gh" }
    }

    /// Leave to share a page with this digest.
    ///
    /// # Errors
    /// The session is above the place's level.
    pub fn leave(
        &self,
        policy: &Policy,
        labels: &LabelState,
        (session, leaf): (&SessionId, Option<EntryId>),
        page: Digest,
    ) -> Result<Permit, Refusal> {
        let call = Call {
            tool: "share".into(),
            input: RawValue::from_string("{}".into()).unwrap_or_default(),
            sources: Vec::new(),
            sinks: vec![SinkRef { what: self.place().into(), level: self.level, digest: page }],
        };
        let decision = decide(policy, labels, &call);
        let blocked = |why: String| {
            Refusal::new("blocked", why)
                .hint("share.level says how secret a session may be that is shared; nothing was sent")
        };
        if let Verdict::Block(why) = &decision.verdict {
            return Err(blocked(why.clone()));
        }
        let entry = leaf.unwrap_or(EntryId::Other("".into()));
        let op = OpId { session: session.clone(), entry, call: 0 };
        let permit = decision.permits(&op, labels).take_next();
        permit.ok_or_else(|| blocked("nothing is shared: there is no leave for it".into()))
    }

    /// Sends a page, if the permit is for its very bytes and still good. Answers the address that the program has told.
    ///
    /// # Errors
    /// It was not sent, or nobody knows whether it was; the sentence says which.
    pub async fn send(
        &self,
        page: Shareable,
        permit: Permit,
        labels: &LabelWatch,
        env: &Env,
        cancel: CancellationToken,
    ) -> Result<Option<String>, Refusal> {
        let spawn = self.spawn(page.name, page.bytes, env);
        let Stdin::Bytes(bytes) = &spawn.stdin else { return Err(not_shared("there is no page")) };
        // The last moment before anything leaves.
        labels.redeem(permit, digest(bytes)).map(drop).map_err(|why| match why {
            gjc_flow::Stale::OtherBytes { .. } => changed(),
            why => Refusal::new("blocked", format!("nothing was shared: {why}")),
        })?;
        let program = self.program();
        let finished = gjc_process::run(spawn, cancel, None).await.map_err(|error| match error {
            SpawnError::ProgramMissing { .. } if self.command.is_none() => {
                Refusal::new("no_gh", "there is no gh here to make a gist with; nothing was sent").hint(
                    "install GitHub's gh and log in with gh auth login, or set share.command; an export can be sent by hand",
                )
            }
            error => not_shared(&format!("{program} could not be started: {}", first_line(&error.to_string()))),
        })?;
        let said = [&finished.output.head[..], &finished.output.tail[..]].concat();
        let said = String::from_utf8_lossy(&said);
        let unknown = |how: String| {
            Refusal::new("outcome_unknown", format!("{how}; whether the session was shared is not known"))
                .hint("look at what is there before you share it again: gh gist list")
        };
        match finished.exit {
            Exit::Code(0) => Ok(address(&said)),
            Exit::Code(NOT_LOGGED_IN) if self.command.is_none() => {
                Err(Refusal::new("not_logged_in", "gh is not logged in to GitHub; nothing was sent")
                    .hint("log in with: gh auth login"))
            }
            Exit::Code(code) => {
                let said = told(&said);
                let said = if said.is_empty() { said } else { format!(": {said}") };
                Err(not_shared(&format!("{program} ended with exit code {code}{said}")))
            }
            Exit::Signal(signal) => Err(unknown(format!("{program} was killed by signal {signal}"))),
            Exit::TimedOut => Err(unknown(format!("{program} did not end within {} seconds", PATIENCE.as_secs()))),
            Exit::Cancelled => Err(unknown(format!("{program} was stopped"))),
        }
    }

    fn spawn(&self, name: String, page: Vec<u8>, env: &Env) -> Spawn {
        // In the home folder: nothing in a project decides what runs or where it goes.
        let mut spawn = match &self.command {
            Some(_) => Spawn::new("sh", &env.dirs.home),
            None => Spawn::new("gh", &env.dirs.home),
        };
        spawn.args = match &self.command {
            Some(line) => vec!["-c".into(), line.into()],
            // A gist is secret unless it is asked to be public.
            None => ["gist", "create", "--desc", "A session of gjc", "--filename", &name, "-"].map(Into::into).into(),
        };
        spawn.env = env.vars.iter().map(|(name, value)| (name.into(), value.into())).collect();
        // Nobody is there whom it could ask.
        spawn
            .env
            .extend([("GH_PROMPT_DISABLED", "1"), ("NO_COLOR", "1")].map(|(key, value)| (key.into(), value.into())));
        spawn.env.push(("GJC_SHARE_NAME".into(), name.into()));
        spawn.stdin = Stdin::Bytes(page);
        spawn.timeout = Some(PATIENCE);
        spawn.cap = OutputCap { keep_head: 4096, keep_tail: 4096 };
        spawn
    }
}

/// A page without keys, and what was taken out of it.
pub struct Shareable {
    /// Its file's name.
    pub name: String,
    /// The page.
    pub bytes: Vec<u8>,
    /// What was taken out.
    pub masked: Masked,
    /// When it was made, which is in it.
    pub at: Timestamp,
    /// What the session knew that it was made of: of the same look at the file as the page itself.
    pub label: Label,
    /// Whose page it is.
    pub session: SessionId,
    /// The session's leaf.
    pub leaf: Option<EntryId>,
}

impl Shareable {
    /// Makes the page of a session file as it is: all branches, with everything taken out that looks like a key, and the
    /// values of those variables that hold some. What may not go to that place is not made.
    ///
    /// # Errors
    /// The file cannot be read, the session that is in it is above the place's level, or the page is too long.
    pub fn of<F: Fs>(
        fs: &F,
        file: &Path,
        blobs: &dyn Blobs,
        vars: &Vars,
        at: Timestamp,
        (sharing, policy): (&Sharing, &Policy),
    ) -> Result<Self, Refusal> {
        let loaded = Reader::open(fs, file).map_err(|error| {
            let refusal = Refusal::new("not_shared", error.to_string());
            error.hint().map_or(refusal.clone(), |hint| refusal.hint(hint))
        })?;
        let tree = loaded.value.skeleton();
        let label = tree.map_or(Label::PUBLIC_TRUSTED, Skeleton::label);
        let (session, leaf) = (loaded.value.header().id.clone(), tree.and_then(|tree| Some(tree.id(tree.leaf()?))));
        // The label of this very look: the file may have grown since anybody else looked.
        sharing.leave(policy, &state(label)?, (&session, leaf.clone()), Digest::default())?;
        let secrets = vars.iter().filter(|(name, value)| gjc_tools::is_secret(name, value));
        let masks = Masks::new(secrets.map(|(_, value)| value.to_owned()));
        let masked = RefCell::new(Masked::default());
        let mask = |json: Vec<u8>, piece: Piece| match piece {
            Piece::Session => masks.mask_json_for_others(json, &mut masked.borrow_mut()),
            Piece::Name => masks.mask_json_for_others(json, &mut Masked::default()),
        };
        let children = children(fs, file);
        let making = Making { blobs, children: &children, at, mask: Some(&mask), progress: &|_, _| {} };
        let mut page = Bounded(Vec::new());
        html(&loaded, &making, &mut page).map_err(|_| {
            Refusal::new("too_large", format!("the page would be longer than {LONGEST} bytes; nothing was sent"))
                .hint("export it, and send the file by another way")
        })?;
        Ok(Self { name: default_name(file), bytes: page.0, masked: masked.into_inner(), at, label, session, leaf })
    }

    /// Leave to share it, as far as what is in it goes; and the label that it is for.
    ///
    /// # Errors
    /// It is above the place's level.
    pub fn leave(&self, sharing: &Sharing, policy: &Policy) -> Result<(Permit, LabelState), Refusal> {
        let labels = state(self.label)?;
        let permit = sharing.leave(policy, &labels, (&self.session, self.leaf.clone()), digest(&self.bytes))?;
        Ok((permit, labels))
    }

    /// What a person says yes to: this page, and no other.
    #[must_use]
    pub fn token(&self) -> String {
        let digest = digest(&self.bytes).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        format!("{}-{digest}", self.at.as_millis())
    }

    /// What a person has to see first.
    #[must_use]
    pub fn preview(&self, place: &str) -> serde_json::Value {
        let masked = self.masked.kinds().map(|(kind, count)| json!({ "kind": kind, "count": count }));
        json!({
            "to": place,
            "name": self.name,
            "bytes": self.bytes.len(),
            "masked": masked.collect::<Vec<_>>(),
            "confirm": self.token(),
        })
    }
}

fn state(label: Label) -> Result<LabelState, Refusal> {
    LabelState::new(label, Level::Restricted).map_err(|above| Refusal::new("blocked", above.to_string()))
}

/// Reads what a person has said yes to: when that page was made, and its digest.
pub(crate) fn parse_token(token: &str) -> Option<(Timestamp, Digest)> {
    let (millis, hex) = token.split_once('-')?;
    let mut digest = Digest::default();
    if hex.len() != 2 * digest.len() || !hex.is_ascii() {
        return None;
    }
    for (index, byte) in digest.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&hex[2 * index..2 * index + 2], 16).ok()?;
    }
    Some((Timestamp::from_millis(millis.parse().ok()?), digest))
}

/// The refusal of a yes to what is no longer there.
pub(crate) fn changed() -> Refusal {
    Refusal::new("changed", "the session is not what it was when it was looked at; nothing was sent")
        .hint("look again: send share without confirm, then with what it answers")
}

fn not_shared(why: &str) -> Refusal {
    Refusal::new("not_shared", format!("the session was not shared: {why}"))
        .hint("run the program in a shell to see what it says, or export the session and send the file")
}

/// The address that a program has told: the last one.
fn address(said: &str) -> Option<String> {
    let is_address = |word: &&str| word.starts_with("https://") || word.starts_with("http://");
    let found = said.split_whitespace().rev().find(is_address)?;
    Some(found.chars().filter(|c| !c.is_control()).collect())
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// What a program has said, as one short line.
fn told(said: &str) -> String {
    let words: Vec<&str> =
        said.split(|c: char| c.is_whitespace() || c.is_control()).filter(|w| !w.is_empty()).collect();
    Masks::new([]).mask(&words.join(" ")).chars().take(TOLD).collect()
}

/// Bytes up to [`LONGEST`].
struct Bounded(Vec<u8>);

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > LONGEST {
            return Err(io::Error::other("too long"));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_yes_is_to_one_page() {
        let page = Shareable {
            name: "a".into(),
            bytes: "쪽".into(),
            masked: Masked::default(),
            at: Timestamp::from_millis(7),
            label: Label::PUBLIC_TRUSTED,
            session: SessionId::new("s").unwrap(),
            leaf: None,
        };
        assert_eq!(parse_token(&page.token()), Some((page.at, digest("쪽".as_bytes()))));
        for wrong in
            ["", "7", "7-", "7-ab", "x-00", &format!("7-{}", "한".repeat(32)), &format!("7-{}", "g".repeat(64))]
        {
            assert_eq!(parse_token(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_last_address_is_the_one() {
        let gh = "- Creating gist…\n✓ Created secret gist\nhttps://gist.github.com/ann/0a1b\n";
        assert_eq!(address(gh).as_deref(), Some("https://gist.github.com/ann/0a1b"));
        assert_eq!(address("done\n"), None);
    }
}
