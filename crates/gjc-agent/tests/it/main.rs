//! Tests of the session actor and of what stands below it together.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, clippy::disallowed_methods)]

mod admission;
mod approvals;
mod calls;
mod choice;
mod durability;
mod effects;
mod end;
mod exports;
mod faces;
mod held;
mod jobs;
mod labels;
mod limits;
mod modes;
mod places;
mod power_cuts;
mod prompts;
mod recovery;
mod requests;
mod retries;
mod storage;
mod turn;
mod world;
