//! What happens between two steps, and at the end of a turn.
//!
//! The order is [`STEP`] and [`TURN`], and stands nowhere else. A stage only plans; one driver (`turn`) executes plans, in
//! order. Stages whose part of the product is not there yet plan nothing, at their place.

use gjc_entry::DeliveryId;
use gjc_protocol::{PromptMode, PromptPart};

/// After results, before the next request: what came in, then what a person said meanwhile, then the limit.
pub const STEP: &[Stage] = &[Stage::Deliveries, Stage::Steering, Stage::Emergency];

/// After a final answer, a rewind or an abort ([`Boundary::cause`]). After an abort or a failure the stages that would
/// change the context plan nothing.
pub const TURN: &[Stage] = &[
    Stage::Guards,
    Stage::Rewind,
    Stage::Marks,
    Stage::Disposables,
    Stage::ContextApply,
    Stage::TodoClearing,
    Stage::Compaction,
    Stage::Durable,
    Stage::MemoryFlush,
    Stage::Deliveries,
    Stage::Next,
];

/// A stage of a boundary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Take in what arrived: job results, peers, channels.
    Deliveries,
    /// Take in what a person said while the turn ran.
    Steering,
    /// Bring the context under the limit, whatever it takes.
    Emergency,
    /// Hold the answer back (an open checkpoint), with a warning to the model.
    Guards,
    /// Go back to a checkpoint.
    Rewind,
    /// Mark what could be optimised.
    Marks,
    /// Release what the model said it needs no longer.
    Disposables,
    /// Apply the model's edits of its own context.
    ContextApply,
    /// Clear finished todo items.
    TodoClearing,
    /// Summarise, if over the threshold.
    Compaction,
    /// Wait until everything is durable.
    Durable,
    /// Start to send memories; never waited for.
    MemoryFlush,
    /// Choose what happens next.
    Next,
}

/// Why a boundary was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// Results are stored, the model will be asked again.
    Results,
    /// The model gave its final answer.
    Answer,
    /// A person ended the turn.
    Abort,
    /// The model could not answer.
    Failure,
}

/// The situation at a boundary: everything that a stage may look at.
#[derive(Debug, Clone)]
pub struct Boundary {
    /// Why it was reached.
    pub cause: Cause,
    /// Prompts that a person gave meanwhile, oldest first.
    pub queue: Vec<Prompting>,
    /// What arrived and is not acknowledged yet, oldest first.
    pub deliveries: Vec<DeliveryId>,
    /// Whether some of it was taken in at this boundary: the model has not heard of it.
    pub arrived: bool,
}

/// A prompt on its way in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompting {
    /// Its pieces.
    pub parts: Vec<PromptPart>,
    /// When it enters.
    pub mode: PromptMode,
}

impl Prompting {
    /// Whether it enters at the next step.
    pub(crate) fn steers(&self) -> bool {
        self.mode == PromptMode::Steer
    }

    pub(crate) fn text(&self) -> String {
        self.parts.iter().map(|part| part.text.as_str()).collect::<Vec<_>>().join("\n")
    }
}

/// What a stage wants done, in order.
pub type Plan = Vec<Act>;

/// One thing that the driver can do.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Act {
    /// Admit the oldest queued prompt of those that steer.
    AdmitSteering,
    /// Take in one thing that arrived, unless the session has it already.
    TakeIn(DeliveryId),
    /// Wait until everything is durable, and say so if it cannot be.
    AwaitDurable,
    /// If that was so: the session has this for good, and its sender may forget it.
    Acknowledge(DeliveryId),
    /// Go on with this.
    Next(NextTurn),
}

/// What follows a turn. Precedence: a person's words, a rewind's continuation, an automatic resume, a reminder, an arrived
/// delivery, rest; after an abort or a failure a person's words only. The kinds between the first and the second come with their
/// parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum NextTurn {
    /// The oldest queued prompt.
    Human,
    /// Something arrived that the model shall hear of.
    Delivered,
    /// Nothing.
    Idle,
}

/// Plans one stage. Pure.
pub trait BoundaryStage {
    /// What shall be done in this situation.
    fn plan(&self, boundary: &Boundary) -> Plan;
}

impl BoundaryStage for Stage {
    fn plan(&self, boundary: &Boundary) -> Plan {
        match self {
            Self::Deliveries => deliveries(boundary),
            Self::Steering => steering(boundary),
            Self::Durable => vec![Act::AwaitDurable],
            Self::Next => vec![Act::Next(next(boundary))],
            Self::Emergency
            | Self::Guards
            | Self::Rewind
            | Self::Marks
            | Self::Disposables
            | Self::ContextApply
            | Self::TodoClearing
            | Self::Compaction
            | Self::MemoryFlush => Plan::new(),
        }
    }
}

/// All that arrived comes in; what is safe in the session is acknowledged.
fn deliveries(boundary: &Boundary) -> Plan {
    let all = || boundary.deliveries.iter().cloned();
    let wait = (!boundary.deliveries.is_empty()).then_some(Act::AwaitDurable);
    all().map(Act::TakeIn).chain(wait).chain(all().map(Act::Acknowledge)).collect()
}

/// All that a person said to steer comes in at once, in its order.
fn steering(boundary: &Boundary) -> Plan {
    boundary.queue.iter().filter(|prompt| prompt.steers()).map(|_| Act::AdmitSteering).collect()
}

fn next(boundary: &Boundary) -> NextTurn {
    let goes_on = matches!(boundary.cause, Cause::Answer | Cause::Results);
    match boundary {
        Boundary { queue, .. } if !queue.is_empty() => NextTurn::Human,
        Boundary { arrived: true, .. } if goes_on => NextTurn::Delivered,
        _ => NextTurn::Idle,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boundary(modes: &[PromptMode]) -> Boundary {
        let prompt = |mode: &PromptMode| Prompting { parts: Vec::new(), mode: *mode };
        Boundary {
            cause: Cause::Answer,
            queue: modes.iter().map(prompt).collect(),
            deliveries: Vec::new(),
            arrived: false,
        }
    }

    #[test]
    fn the_order_is_the_architecture_s() {
        use Stage::*;
        assert_eq!(STEP, [Deliveries, Steering, Emergency]);
        assert_eq!(
            TURN,
            [
                Guards,
                Rewind,
                Marks,
                Disposables,
                ContextApply,
                TodoClearing,
                Compaction,
                Durable,
                MemoryFlush,
                Deliveries,
                Next
            ]
        );
    }

    #[test]
    fn only_steering_prompts_enter_between_steps_and_any_begins_the_next_turn() {
        use PromptMode::{FollowUp, Steer};
        assert_eq!(
            Stage::Steering.plan(&boundary(&[FollowUp, Steer, Steer])),
            [Act::AdmitSteering, Act::AdmitSteering]
        );
        assert_eq!(Stage::Next.plan(&boundary(&[FollowUp])), [Act::Next(NextTurn::Human)]);
        assert_eq!(Stage::Next.plan(&boundary(&[])), [Act::Next(NextTurn::Idle)]);
    }

    #[test]
    fn what_arrived_is_acknowledged_only_after_it_was_awaited() {
        let (a, b) = (DeliveryId("가".into()), DeliveryId("b".into()));
        let boundary = Boundary { deliveries: vec![a.clone(), b.clone()], ..boundary(&[]) };
        assert_eq!(
            Stage::Deliveries.plan(&boundary),
            [
                Act::TakeIn(a.clone()),
                Act::TakeIn(b.clone()),
                Act::AwaitDurable,
                Act::Acknowledge(a),
                Act::Acknowledge(b)
            ]
        );
    }

    #[test]
    fn what_arrived_begins_a_turn_but_not_before_a_person_and_not_after_an_abort() {
        let next =
            |modes: &[PromptMode], cause| Stage::Next.plan(&Boundary { arrived: true, cause, ..boundary(modes) }).pop();
        let follows = |next| Some(Act::Next(next));
        assert_eq!(next(&[], Cause::Answer), follows(NextTurn::Delivered));
        assert_eq!(next(&[PromptMode::FollowUp], Cause::Answer), follows(NextTurn::Human));
        for cause in [Cause::Abort, Cause::Failure] {
            assert_eq!(next(&[], cause), follows(NextTurn::Idle));
            assert_eq!(next(&[PromptMode::Steer], cause), follows(NextTurn::Human));
        }
    }

    #[test]
    fn a_turn_is_durable_before_anything_follows_it() {
        let plans: Vec<Act> = TURN.iter().flat_map(|stage| stage.plan(&boundary(&[]))).collect();
        assert_eq!(plans, [Act::AwaitDurable, Act::Next(NextTurn::Idle)]);
    }
}
