//! What a session may do: its mode, a fold over the path, and what a person is asked for, one over the session.

use crate::Fold;
use gjc_entry::{ApprovalMode, At, Body, Entry, Kind, KindSet, Own, Scope};

/// Whether a session plans, and whether its model knows.
///
/// A fold over the path: a session that goes back to before its plan mode is out of it. Other programs of the family know
/// more modes (`plan_paused`); in each of them but `plan` a session works as usual.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InMode {
    /// In plan mode.
    pub plan: bool,
    /// The last thing that the model was told, and still hears, is that it is in plan mode.
    pub told_plan: bool,
}

impl InMode {
    /// The family's word for plan mode.
    pub const PLAN: &str = "plan";
    /// The family's word for having left it.
    pub const NONE: &str = "none";
    /// The note that tells a model that plan mode has begun.
    pub const BEGUN: &str = "gjc.note.plan";
    /// The note that tells it that plan mode is over.
    pub const OVER: &str = "gjc.note.plan_over";
}

impl Fold for InMode {
    const SCOPE: Scope = Scope::Path;
    const KINDS: KindSet = KindSet::of(&[Kind::ModeChange, Kind::CustomMessage, Kind::Compaction, Kind::ResetBoundary]);

    fn step(&mut self, _: At, entry: &Entry) {
        match &entry.body {
            Body::ModeChange { mode, .. } => self.plan = mode.as_deref() == Some(Self::PLAN),
            Body::CustomMessage { custom_type, .. } if custom_type == Self::BEGUN => self.told_plan = true,
            Body::CustomMessage { custom_type, .. } if custom_type == Self::OVER => self.told_plan = false,
            // Other texts of programs.
            Body::CustomMessage { .. } => {}
            // What was told before may be out of the context now.
            _ => self.told_plan = false,
        }
    }
}

/// The approval mode that a session was last used in; `None` where it was never another than `full`.
///
/// A fold over the session: no move of the leaf makes it looser.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Approved(pub Option<ApprovalMode>);

impl Fold for Approved {
    const SCOPE: Scope = Scope::Session;
    const KINDS: KindSet = KindSet::of(&[Kind::OwnApproval]);

    fn step(&mut self, _: At, entry: &Entry) {
        if let Body::Own(Own::Approval(mode)) = &entry.body {
            self.0 = Some(*mode);
        }
    }
}
