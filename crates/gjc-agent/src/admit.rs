//! The one door into the log.

use gjc_context::Folds;
use gjc_entry::{Blobs, Body, Clock, Draft, Label, Level, ParentOf, SessionId};
use gjc_flow::{AboveClearance, LabelState, Labelled, Runtime};
use gjc_log::fs::Fs;
use gjc_log::{Appended, Batch, Lsn, Refused, Writer};
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
}

/// A session's state: the log, its label, its folds. Owned by the actor alone.
pub struct Session<F: Fs> {
    writer: Writer<F>,
    labels: LabelState,
    folds: Folds,
    runtime: Runtime,
    clock: Arc<dyn Clock>,
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
        Ok(Self { writer, labels, folds: Folds::default(), runtime, clock })
    }

    /// Takes a fact in. The only place where a label joins the session's and where the log grows:
    ///
    /// open (join) → cap → blob → normalise → draft → append.
    ///
    /// The entry bears the session's whole label as it is from now on, in the same line as its content.
    ///
    /// # Errors
    /// [`NotAdmitted`]. Above the clearance nothing has changed; a refusal of the log leaves the label raised, which errs on
    /// the safe side, and restores no trust.
    #[expect(clippy::disallowed_methods, reason = "the one door")]
    pub fn admit(&mut self, fact: Labelled<Fact>) -> Result<Appended, NotAdmitted> {
        let Fact { body, parent, typed } = fact.open(&mut self.labels)?;
        let body = normalise(store_images(cap(body)));
        let label = Label { trusted: typed || self.labels.label().trusted, ..self.labels.label() };
        gjc_fp::fp!("agent.admit.before");
        let appended = self.writer.append(Batch::One(Draft { body, label, parent }))?;
        gjc_fp::fp!("agent.admit.appended");
        if typed {
            self.labels.human_spoke();
        }
        Ok(appended)
    }

    /// Takes in what gjc itself states: settings, notices. It bears no label of its own.
    ///
    /// # Errors
    /// [`NotAdmitted`].
    pub fn admit_own(&mut self, body: Body) -> Result<Appended, NotAdmitted> {
        self.admit(Labelled::new(Fact::new(body), Label::PUBLIC_TRUSTED))
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

    /// Asks for everything so far to become durable.
    pub fn want_durable(&mut self) -> Lsn {
        self.writer.want_durable()
    }
}

// The stages of admission. Each takes a body and gives one back, so that memory and disk hold the same; those that have
// nothing to do yet say so by being the identity.

/// Strings beyond what the family's readers take are cut here, the whole going to an artefact first.
fn cap(body: Body) -> Body {
    body
}

/// Pictures become blobs here.
fn store_images(body: Body) -> Body {
    body
}

/// What other readers would refuse is mended here. Lone surrogates were mended when the text was parsed: a Rust string
/// cannot hold one.
fn normalise(body: Body) -> Body {
    body
}
