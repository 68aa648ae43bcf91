//! The one door into the log.

use crate::prepare::prepare;
use gjc_context::{Effect, Folds, Unfinished};
use gjc_entry::fields::FieldError;
use gjc_entry::{
    Blobs, Body, Clock, Draft, Entry, EntryId, Header, Kind, Label, Leaf, Level, Ordinal, Own, ParentOf, Part,
    SessionId, Skeleton, Source,
};
use gjc_flow::{AboveClearance, LabelState, Labelled, Runtime};
use gjc_log::fs::Fs;
use gjc_log::{Appended, Batch, Health, Lsn, Refused, Writer};
use std::collections::HashSet;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// Something that shall become an entry.
#[derive(Debug, Clone)]
pub struct Fact {
    /// What it says.
    pub body: Body,
    /// Where it goes.
    pub parent: ParentOf,
    /// Whether a person typed it just now: their word restores trust.
    pub typed: bool,
}

impl Fact {
    /// A fact under the leaf.
    #[must_use]
    pub fn new(body: Body) -> Self {
        Self { body, parent: ParentOf::Leaf, typed: false }
    }

    /// What a person has just typed.
    #[must_use]
    pub fn typed(body: Body) -> Self {
        Self { typed: true, ..Self::new(body) }
    }
}

/// What comes in together: as a whole, or not at all.
#[derive(Debug)]
pub enum Facts {
    /// One entry.
    One(Fact),
    /// An effect of several entries. What follows from the intent is asked of the effect with the intent as it will be
    /// stored, so that it is what [`gjc_context::unfinished`] finds after a crash between the lines.
    Effect {
        /// What shall happen.
        intent: Fact,
        /// Which effect it is one of.
        effect: Arc<dyn Effect>,
    },
    /// What a crash left out of an effect.
    Rest(Unfinished),
}

impl From<Fact> for Facts {
    fn from(fact: Fact) -> Self {
        Self::One(fact)
    }
}

/// Why a fact did not come in.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotAdmitted {
    /// It is above what the session may know.
    #[error(transparent)]
    AboveClearance(#[from] AboveClearance),
    /// The log cannot take it.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// An intent that its effect does not know.
    #[error("the entry is no intent of this effect; this is a fault of gjc, and nothing was stored")]
    NoIntent,
    /// It could not be made ready for the file.
    #[error("the entry cannot be stored: {0}; this is a fault of gjc")]
    Unreadable(#[from] FieldError),
}

/// A session's state: the log, its label, its folds. Owned by the actor alone.
pub struct Session<F: Fs> {
    writer: Writer<F>,
    labels: LabelState,
    /// Set when the file came to hold more than the session may know: nothing goes into it from then on.
    closed_by: Option<AboveClearance>,
    folds: Folds,
    runtime: Runtime,
    clock: Arc<dyn Clock>,
    /// What a person should know of what was admitted.
    notes: Vec<String>,
    /// What of the conversation a person knows not to be readable.
    told: HashSet<String>,
}

impl<F: Fs> Session<F> {
    /// Around an open log. Its taint is that of its last labelled line.
    ///
    /// # Errors
    /// [`AboveClearance`] when it has taken in more than `clearance` allows.
    pub fn new(
        writer: Writer<F>,
        runtime: Runtime,
        clock: Arc<dyn Clock>,
        clearance: Level,
    ) -> Result<Self, AboveClearance> {
        let labels = LabelState::new(writer.label(), clearance)?;
        Ok(Self {
            writer,
            labels,
            closed_by: None,
            folds: Folds::default(),
            runtime,
            clock,
            notes: Vec::new(),
            told: HashSet::new(),
        })
    }

    /// Takes facts in. The only place where a label joins the session's and where the log grows:
    ///
    /// open (join) → normalise → blob → cap → draft → append.
    ///
    /// Every entry bears the session's whole label as it is from now on, in the same line as its content.
    ///
    /// # Errors
    /// [`NotAdmitted`]. Above the clearance nothing has changed; a refusal of the log leaves the label raised, which errs on
    /// the safe side, and restores no trust.
    pub fn admit<T: Into<Facts>>(&mut self, facts: Labelled<T>) -> Result<Appended, NotAdmitted> {
        if let Some(above) = self.closed_by {
            return Err(above.into());
        }
        #[expect(clippy::disallowed_methods, reason = "the one door: opening is joining")]
        let facts = facts.open(&mut self.labels)?.into();
        let typed = match &facts {
            Facts::One(fact) | Facts::Effect { intent: fact, .. } => fact.typed,
            Facts::Rest(_) => false,
        };
        let mut desk = Desk {
            label: Label { trusted: typed || self.labels.label().trusted, ..self.labels.label() },
            folder: self.writer.artifact_dir(),
            artifacts: Vec::new(),
            notes: Vec::new(),
        };
        let batches = self.batches(facts, &mut desk)?;
        // Those of an earlier entry that still waits stay, whatever becomes of this one.
        desk.artifacts.retain(|(name, text)| self.writer.put_artifact(name, text.as_bytes()));
        let before = self.writer.skeleton().map_or(0, Skeleton::len);
        gjc_fp::fp!("agent.admit.before");
        let whole = batches.len() == 1;
        let appended = match self.append(batches) {
            Ok(appended) => appended,
            Err(refused) => {
                // What no line names shall not be there either.
                for (name, _) in desk.artifacts.iter().filter(|_| whole) {
                    self.writer.drop_artifact(name);
                }
                return Err(refused.into());
            }
        };
        gjc_fp::fp!("agent.admit.appended");
        self.closed_by = self.join_from(before).err();
        if typed {
            self.labels.human_spoke();
        }
        self.notes.append(&mut desk.notes);
        Ok(appended)
    }

    /// Joins the labels of the entries from a place on: with ours the log may have taken in what another program has
    /// appended meanwhile, and what that knows the session knows.
    fn join_from(&mut self, first: usize) -> Result<(), AboveClearance> {
        let Some(skeleton) = self.writer.skeleton() else { return Ok(()) };
        for ordinal in first..skeleton.len() {
            if let Some(node) = u32::try_from(ordinal).ok().and_then(|ordinal| skeleton.node(Ordinal(ordinal))) {
                self.labels.join(node.label())?;
            }
        }
        self.labels.join(self.writer.label())
    }

    /// The drafts, as they will be stored.
    fn batches(&mut self, facts: Facts, desk: &mut Desk) -> Result<Vec<Batch>, NotAdmitted> {
        Ok(match facts {
            Facts::One(fact) => {
                self.place(&fact.parent)?;
                vec![Batch::One(desk.draft(&mut self.writer, fact.body, fact.parent)?)]
            }
            Facts::Effect { intent, effect } => {
                let before = self.place(&intent.parent)?;
                let intent = desk.draft(&mut self.writer, intent.body, intent.parent)?;
                let rest = effect.rest(&intent.body, &self.writer, before).ok_or(NotAdmitted::NoIntent)?;
                let rest = rest.into_iter().map(|body| desk.draft(&mut self.writer, body, ParentOf::Leaf));
                let rest = rest.collect::<Result<_, _>>()?;
                vec![Batch::Effect { intent, rest }]
            }
            Facts::Rest(Unfinished { intent, missing, .. }) => {
                let rest = missing.into_iter().map(|(n, body)| {
                    let mut draft = desk.draft(&mut self.writer, body, ParentOf::Leaf)?;
                    draft.extra.push(Part { of: intent.clone(), n }.field());
                    Ok(Batch::One(draft))
                });
                rest.collect::<Result<_, FieldError>>()?
            }
        })
    }

    /// The leaf that a parent is. Asked before anything is made ready, so that a refused entry leaves no blob either.
    fn place(&self, parent: &ParentOf) -> Result<Leaf, Refused> {
        match parent {
            ParentOf::Leaf => Ok(Leaf::Current),
            ParentOf::Root => Ok(Leaf::Root),
            ParentOf::Id(id) => {
                let found = self.writer.skeleton().and_then(|skeleton| skeleton.find(id));
                found.map(Leaf::At).ok_or_else(|| Refused::NoSuchParent(id.clone()))
            }
        }
    }

    /// Appends. Of several batches each is whole by itself; one that is torn from the next is completed at the next open.
    #[expect(clippy::disallowed_methods, reason = "the one door")]
    fn append(&mut self, batches: Vec<Batch>) -> Result<Appended, Refused> {
        let mut all = Appended { ids: Default::default(), lsn: Lsn::default() };
        for batch in batches {
            let Appended { ids, lsn } = self.writer.append(batch)?;
            all.ids.extend(ids);
            all.lsn = lsn;
        }
        Ok(all)
    }

    /// Takes in what gjc itself states: settings, notices. It bears no label of its own.
    ///
    /// # Errors
    /// [`NotAdmitted`].
    pub fn admit_own(&mut self, body: Body) -> Result<Appended, NotAdmitted> {
        self.admit(Labelled::new(Fact::new(body), Label::PUBLIC_TRUSTED))
    }

    /// Moves the leaf: an entry whose parent is the target, so that every reader of the file lands there too. `None` goes
    /// before the first entry. Nothing is written, and nothing given back, when the session stands there already.
    ///
    /// The session's label stays: what it has taken in on another branch it knows all the same.
    ///
    /// # Errors
    /// [`NotAdmitted`], as when the target is not in the session.
    pub fn move_leaf(&mut self, to: Option<EntryId>) -> Result<Option<Appended>, NotAdmitted> {
        if self.stands_at(to.as_ref()) {
            return Ok(None);
        }
        let from = self.leaf();
        let parent = to.clone().map_or(ParentOf::Root, ParentOf::Id);
        let fact = Fact { parent, ..Fact::new(Body::Own(Own::Leaf { from, to })) };
        self.admit(Labelled::new(fact, Label::PUBLIC_TRUSTED)).map(Some)
    }

    /// Whether an entry is the leaf, or nothing but moves and names stands between it and the leaf.
    fn stands_at(&self, place: Option<&EntryId>) -> bool {
        let Some(skeleton) = self.writer.skeleton() else { return false };
        let mut at = skeleton.leaf();
        while let Some((ordinal, node)) = at.and_then(|ordinal| Some((ordinal, skeleton.node(ordinal)?))) {
            if place == Some(&skeleton.id(ordinal)) {
                return true;
            }
            if !matches!(node.kind(), Kind::OwnLeaf | Kind::Label) {
                return false;
            }
            at = node.parent();
        }
        place.is_none()
    }

    /// The leaf's id; `None` while there is no entry.
    #[must_use]
    pub fn leaf(&self) -> Option<EntryId> {
        let skeleton = self.writer.skeleton()?;
        skeleton.leaf().map(|leaf| skeleton.id(leaf))
    }

    /// Whether an entry is in the session; one that cannot be read is.
    #[must_use]
    pub fn has(&self, id: &EntryId) -> bool {
        self.writer.skeleton().is_some_and(|skeleton| skeleton.find(id).is_some())
    }

    /// An entry, if it is in the session and can be read.
    #[must_use]
    pub fn entry(&self, id: &EntryId) -> Option<Arc<Entry>> {
        let skeleton = self.writer.skeleton()?;
        self.writer.body(skeleton.node(skeleton.find(id)?)?.at()).ok()
    }

    /// The entry that another hangs on; `None` for one that hangs on nothing, also where what it names is not there.
    #[must_use]
    pub fn parent(&self, id: &EntryId) -> Option<EntryId> {
        let skeleton = self.writer.skeleton()?;
        Some(skeleton.id(skeleton.node(skeleton.find(id)?)?.parent()?))
    }

    /// What could not be read of the conversation is told once, and never sent in silence as if it had not been.
    pub(crate) fn note_unreadable(&mut self, notes: Vec<gjc_context::Note>) {
        for note in notes.into_iter().filter(|note| note.unreadable) {
            if self.told.insert(note.sentence.clone()) {
                self.notes.push(format!("the model does not hear all of this session: {}", note.sentence));
            }
        }
    }

    /// Takes what a person should know of what was admitted since the last time, and of what other programs have put into
    /// the file meanwhile.
    pub fn take_notes(&mut self) -> Vec<String> {
        let foreign = self.writer.take_damage().into_iter().map(|damage| {
            format!("another program has left damage in the session file: {damage}; everything else is there")
        });
        let foreign: Vec<String> = foreign.collect();
        // In the order in which they were noticed: a note about an entry is told once.
        let mut notes = std::mem::take(&mut self.notes);
        notes.extend(foreign);
        notes
    }

    /// Goes on in a new file beside one that was replaced, cut or deleted by another program ([`gjc_log::Storage::lost`]), or
    /// that nobody may write to any more: a fork under the id `new`, with all entries that can still be read. `None` when the file has
    /// everything that it should.
    ///
    /// # Errors
    /// When the new file cannot be made; nothing has changed then.
    pub fn rescue(&mut self, new: SessionId) -> io::Result<Option<PathBuf>> {
        let storage = self.writer.storage().borrow().clone();
        let forbidden =
            matches!(&storage.health, Health::Failing(why) if why.kind() == io::ErrorKind::PermissionDenied);
        if !(storage.lost || forbidden && self.writer.has_unwritten()) {
            return Ok(None);
        }
        let Some(lost) = self.writer.file_path() else { return Ok(None) };
        let (at, old) = (self.clock.wall(), self.writer.header());
        let mut header = Header::new(new, at, old.cwd.clone());
        let path = lost.with_file_name(header.file_name());
        header.parent = Some(old.id.to_string());
        header.title.clone_from(&old.title);
        let folder = self.writer.artifact_dir();
        self.writer.save_as(&path, header)?;
        // Its entries name what stands beside the lost file.
        self.notes.extend(folder.and_then(|old| self.writer.carry_artifacts_from(&old)));
        Ok(Some(path))
    }

    /// The log, for reading.
    #[must_use]
    pub fn log(&self) -> &Writer<F> {
        &self.writer
    }

    /// The label.
    #[must_use]
    pub fn labels(&self) -> &LabelState {
        &self.labels
    }

    /// Who this session is, for tools.
    #[must_use]
    pub fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> &SessionId {
        &self.writer.header().id
    }

    /// Milliseconds since the epoch, for messages.
    #[must_use]
    pub fn now_millis(&self) -> i64 {
        self.clock.wall().as_millis()
    }

    /// The blobs.
    #[must_use]
    pub fn blobs(&self) -> Arc<dyn Blobs> {
        Arc::clone(self.writer.blobs()) as Arc<dyn Blobs>
    }

    /// Log and folds together: what a fold is asked with.
    pub fn parts(&mut self) -> (&Writer<F>, &mut Folds) {
        (&self.writer, &mut self.folds)
    }

    /// Takes bytes into the blob store.
    pub fn put_blob(&mut self, bytes: &[u8]) -> gjc_entry::BlobRef {
        self.writer.put_blob(bytes)
    }

    /// Writes everything so far.
    pub fn want_written(&mut self) -> Lsn {
        self.writer.want_written()
    }

    /// Gives the session its file now, before a first answer.
    pub fn make_due(&mut self) {
        self.writer.make_due();
    }

    /// Asks for everything so far to become durable.
    pub fn want_durable(&mut self) -> Lsn {
        self.writer.want_durable()
    }
}

/// What one admission works with.
struct Desk {
    label: Label,
    folder: Option<PathBuf>,
    artifacts: Vec<(String, String)>,
    notes: Vec<String>,
}

impl Desk {
    fn draft<F: Fs>(&mut self, writer: &mut Writer<F>, body: Body, parent: ParentOf) -> Result<Draft, FieldError> {
        let prepared = prepare(body, self.folder.as_deref(), &mut |bytes| writer.put_blob(bytes))?;
        self.artifacts.extend(prepared.artifacts);
        self.notes.extend(prepared.notes);
        Ok(Draft { body: prepared.body, label: self.label, parent, extra: prepared.extra })
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "plays another program that appends to the same file")]
mod tests {
    use super::*;
    use gjc_log::fs::sim::SimFs;
    use testkit::log::Bench;
    use testkit::session::{answer, user};

    /// A session whose writer has come to know what another program appended, as it does when it looks at its file.
    fn session(clearance: Level, adopted: Label) -> Session<SimFs> {
        let bench = Bench::new(Arc::new(SimFs::new()), std::path::Path::new("/agent"));
        let mut session = Session::new(bench.memory(), Runtime::new(), bench.clock.clone(), clearance).unwrap();
        session.admit_own(answer("네")).unwrap();
        session.writer.append(Batch::One(Draft::new(user("남의 비밀"), adopted))).unwrap();
        session
    }

    #[test]
    fn what_another_program_appended_raises_the_session_with_the_next_append() {
        let mut session = session(Level::Restricted, Label { level: Level::Confidential, trusted: true });
        let watch = session.labels().watch();
        session.admit_own(user("다음")).unwrap();
        assert_eq!(session.labels().label().level, Level::Confidential);
        assert_eq!(watch.now().0.level, Level::Confidential, "sinks see it at their commit");
        let appended = session.admit_own(user("그 다음")).unwrap();
        assert_eq!(session.entry(&appended.ids[0]).unwrap().label.unwrap().level, Level::Confidential);
    }

    #[test]
    fn a_file_that_holds_more_than_the_session_may_know_takes_nothing_any_more() {
        let mut session = session(Level::Internal, Label { level: Level::Restricted, trusted: true });
        // The line that finds it out is in; what follows is not.
        session.admit_own(user("다음")).unwrap();
        let count = session.log().skeleton().unwrap().len();
        for _ in 0..2 {
            let refused = session.admit_own(user("그 다음"));
            assert!(matches!(
                refused,
                Err(NotAdmitted::AboveClearance(AboveClearance {
                    fact: Level::Restricted,
                    clearance: Level::Internal
                }))
            ));
            assert!(matches!(session.move_leaf(None), Err(NotAdmitted::AboveClearance(_))));
        }
        assert_eq!(session.log().skeleton().unwrap().len(), count);
        assert_eq!(session.labels().label().level, Level::Public, "it knows no more than it may");
    }
}
