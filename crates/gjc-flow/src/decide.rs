//! May this call happen?

use crate::permit::{Permit, Permits};
use crate::{Call, LabelState};
use gjc_entry::{Label, Level, OpId};

/// The rules of a policy file. There are none yet; the hard invariants stand outside them.
#[derive(Debug, Clone, Default)]
pub struct Policy {}

/// What shall become of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// It may happen.
    Allow,
    /// It may not. The sentence is for the model and for people; it names the rule.
    Block(String),
}

/// A verdict, what the session's label would be after the call, and which rules led there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// May it happen?
    pub verdict: Verdict,
    /// The session's label with everything in that the call reads.
    pub after: Label,
    /// Each rule that was looked at.
    pub trace: Vec<RuleOutcome>,
    sinks: Vec<(String, Level, crate::Digest)>,
}

/// What one rule said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleOutcome {
    /// Its id.
    pub rule: String,
    /// Whether it let the call pass.
    pub passed: bool,
}

/// Decides one call. Pure: the answer depends on its arguments alone.
#[must_use]
pub fn decide(policy: &Policy, state: &LabelState, call: &Call) -> Decision {
    decide_at(policy, state, call, after(state.label(), call))
}

/// Decides calls that will run side by side: each is judged at the join of all, because each may see what another reads.
#[must_use]
pub fn decide_all(policy: &Policy, state: &LabelState, calls: &[Call]) -> Vec<Decision> {
    let joined = calls.iter().fold(state.label(), after);
    calls.iter().map(|call| decide_at(policy, state, call, joined)).collect()
}

fn after(label: Label, call: &Call) -> Label {
    call.sources.iter().fold(label, |label, source| label.join(source.label))
}

fn decide_at(_policy: &Policy, state: &LabelState, call: &Call, after: Label) -> Decision {
    let too_high = call.sources.iter().find(|source| source.label.level > state.clearance());
    let too_low = call.sinks.iter().find(|sink| sink.level < after.level);
    let trace = vec![
        RuleOutcome { rule: "no-read-above-clearance".into(), passed: too_high.is_none() },
        RuleOutcome { rule: "no-write-down".into(), passed: too_low.is_none() },
    ];
    let verdict = match (too_high, too_low) {
        (Some(source), _) => Verdict::Block(format!(
            "blocked: {} is {}, above this session's clearance {} (no-read-above-clearance)",
            source.what,
            source.label.level,
            state.clearance()
        )),
        (None, Some(sink)) => Verdict::Block(format!(
            "blocked: write-down: the session is {}, and {} may get no more than {} (no-write-down)",
            after.level, sink.what, sink.level
        )),
        (None, None) => Verdict::Allow,
    };
    let sinks = call.sinks.iter().map(|sink| (sink.what.clone(), sink.level, sink.digest)).collect();
    Decision { verdict, after, trace, sinks }
}

impl Decision {
    /// Makes an `Allow` good: one permit for each sink of the call. Any other verdict gives none.
    #[must_use]
    pub fn permits(self, op: &OpId, state: &LabelState) -> Permits {
        match self.verdict {
            Verdict::Block(_) => Permits::default(),
            Verdict::Allow => Permits(
                self.sinks
                    .into_iter()
                    .map(|(what, sink, digest)| Permit {
                        op: op.clone(),
                        what,
                        sink,
                        generation: state.generation(),
                        digest,
                    })
                    .collect(),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Labelled, Redeem, SinkRef, SourceRef, Stale, digest};
    use gjc_entry::{EntryId, SessionId};

    fn op() -> OpId {
        OpId { session: SessionId::new("s").unwrap(), entry: EntryId::Short(1), call: 0 }
    }

    fn call(sources: &[Level], sinks: &[Level]) -> Call {
        Call {
            tool: "t".into(),
            input: serde_json::value::RawValue::from_string("{}".into()).unwrap(),
            sources: sources
                .iter()
                .map(|&level| SourceRef { what: "급여.xlsx".into(), label: Label { level, trusted: true } })
                .collect(),
            sinks: sinks.iter().map(|&level| SinkRef { what: "host".into(), level, digest: digest(b"x") }).collect(),
        }
    }

    fn state(level: Level, clearance: Level) -> LabelState {
        LabelState::new(Label { level, trusted: true }, clearance).unwrap()
    }

    #[test]
    fn the_hard_invariants_hold_for_every_combination() {
        for taint in Level::ALL {
            for clearance in Level::ALL.into_iter().filter(|clearance| *clearance >= taint) {
                for source in Level::ALL {
                    for sink in Level::ALL {
                        let state = state(taint, clearance);
                        let decision = decide(&Policy::default(), &state, &call(&[source], &[sink]));
                        let right = source <= clearance && taint.max(source) <= sink;
                        assert_eq!(decision.verdict == Verdict::Allow, right, "{taint} {clearance} {source} {sink}");
                        assert_eq!(decision.permits(&op(), &state).len(), usize::from(right));
                    }
                }
            }
        }
    }

    #[test]
    fn parallel_calls_are_judged_at_the_join_of_all() {
        let state = state(Level::Public, Level::Restricted);
        let calls = [call(&[Level::Confidential], &[]), call(&[], &[Level::Public])];
        let decisions = decide_all(&Policy::default(), &state, &calls);
        assert_eq!(decisions[0].verdict, Verdict::Allow);
        assert!(matches!(&decisions[1].verdict, Verdict::Block(why) if why.contains("write-down")));
    }

    #[test]
    fn a_permit_is_for_these_bytes_and_dies_when_the_taint_passes_its_sink() {
        let mut state = state(Level::Public, Level::Restricted);
        let watch = state.watch();
        let take = |state: &LabelState| {
            decide(&Policy::default(), state, &call(&[], &[Level::Internal])).permits(&op(), state).take_next().unwrap()
        };
        assert!(matches!(watch.redeem(take(&state), digest(b"y")), Err(Stale::OtherBytes { .. })));
        let redeemed = watch.redeem(take(&state), digest(b"x")).unwrap();
        assert_eq!(Labelled::new(7, Label::PUBLIC_TRUSTED).release(redeemed), 7);
        let late = take(&state);
        state.join(Label { level: Level::Confidential, trusted: true }).unwrap();
        assert!(matches!(watch.redeem(late, digest(b"x")), Err(Stale::Raised { taint: Level::Confidential, .. })));
    }
}
