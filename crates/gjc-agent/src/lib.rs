//! The session actor: one owner of one log, a mailbox of commands, a numbered stream of events.
//!
//! Read it in the order of a prompt:
//!
//! 1. `handle`: a face gives a command ([`SessionHandle::call`]); `actor` takes it and begins a turn; `commands`: all others
//! 2. `turn`: ask the model, run its calls, until it has nothing left to ask
//! 3. `request`: settings entry, view, check, bytes; `choice`, `mode`: what a person changes of that; `limits`: what a provider
//!    does not take
//! 4. `calls`: plan, decide, permit, run; `approve`: what a person is asked before; `asks`: what waits for them
//! 5. `admit`: the one door into the log; **labels join here** ([`Session::admit`]); `prepare`: what is stored of a body
//! 6. [`boundary`]: what happens between steps and at the end of a turn; **the order is [`boundary::STEP`] and
//!    [`boundary::TURN`]** and stands nowhere else
//! 7. `hooks`: programs of a person that are asked or told
//! 8. `jobs`: what runs beside turns; `deliveries`: how its end comes in, exactly once
//! 9. `switch`: from one session to another; `ways`: how the next one is got ready; `sessions`: who gives it; `about`: what a
//!    face asks of a session beside its messages
//! 10. `shell`: commands that a person runs beside the conversation
//! 11. `storage`: who waits for the disk; `events`: faces read, a slow one is told to resync, no other notices; `snapshot`: the whole
//!     state for it
//!
//! What never happens: anything but [`Session::admit`] appends; a tool or a face holds session state; an event waits for a
//! face.

pub mod boundary;

mod about;
mod act;
mod actor;
mod admit;
mod approve;
mod asks;
mod calls;
mod choice;
mod commands;
mod config;
mod deliveries;
mod events;
mod export;
mod handle;
mod hooks;
mod jobs;
mod limits;
mod mode;
mod opener;
mod prepare;
mod recover;
mod request;
mod sessions;
mod share;
mod sharing;
mod shell;
mod shown;
mod snapshot;
mod storage;
mod switch;
mod turn;
mod ways;

pub use actor::{start, start_among};
pub use admit::{Fact, Facts, NotAdmitted, Session};
pub use boundary::Prompting;
pub use choice::{Choice, Models, OneModel};
pub use config::Config;
pub use events::{Events, Subscription};
pub use export::write_page;
pub use handle::{SessionHandle, closed};
pub use hooks::{Hook, Hooks, Vouch};
pub use sessions::{Found, OneSession, Present, Purpose, Ready, Sessions, Undo, Wanted};
pub use share::{Shareable, Sharing};
pub use shown::{shown, shown_as};
