//! What a tool may ask of whoever runs the session.

use async_trait::async_trait;
use gjc_entry::OpId;
use gjc_flow::Caller;
use gjc_protocol::{Answer, Approval, Question};

/// The way from a call to a person. `None`: nobody answered, because the turn or the session ended, or nobody is there.
///
/// Dropping the future takes the ask back.
#[async_trait]
pub trait Host: Send + Sync + 'static {
    /// Asks a question of the model.
    async fn ask(&self, caller: &Caller, op: &OpId, question: Question) -> Option<Answer>;

    /// Asks whether a call may run.
    async fn approve(&self, caller: &Caller, op: &OpId, approval: Approval) -> Option<Answer>;
}

/// The host of a run in which nobody can be asked.
#[derive(Debug, Clone, Copy)]
pub struct Nobody;

#[async_trait]
impl Host for Nobody {
    async fn ask(&self, _: &Caller, _: &OpId, _: Question) -> Option<Answer> {
        None
    }

    async fn approve(&self, _: &Caller, _: &OpId, _: Approval) -> Option<Answer> {
        None
    }
}
