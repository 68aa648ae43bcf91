//! Information flow, as pure functions and types that cannot be misused.
//!
//! - [`LabelState`]: a session's taint, trust and clearance; one owner, no copy, taint never falls
//! - [`Labelled`]: a value with its label; opening it *is* joining the label to a session
//! - [`decide`] / [`decide_all`]: may this call happen? The same function for doing and for simulating
//! - [`Permit`]: a decision made good for one sink and one digest; redeemed ([`Redeem`]) at the moment of commit
//! - [`Caller`], [`Runtime`]: who calls, as only the runtime can say it
//!
//! The hard invariants (no read above the clearance, no write below the taint) stand outside the policy's rules: no rule
//! can switch them off. Nothing here does I/O.

#![cfg_attr(test, allow(clippy::disallowed_methods))]

mod call;
mod decide;
mod label_state;
mod labelled;
mod permit;

pub use call::{Call, Caller, Runtime, SinkRef, SourceRef};
pub use decide::{Decision, Policy, RuleOutcome, Verdict, decide, decide_all};
pub use label_state::{AboveClearance, LabelState, LabelWatch};
pub use labelled::Labelled;
pub use permit::{Digest, Digesting, Permit, Permits, Redeem, Redeemed, Stale, digest};
