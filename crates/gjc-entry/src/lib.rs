//! The vocabulary of gjc: what a session is made of, without any I/O.
//!
//! - [`id`]: [`SessionId`], [`EntryId`], [`OpId`], [`DeliveryId`], [`BlobRef`]
//! - [`label`]: [`Level`], [`Label`], [`Origin`]
//! - [`message`]: what people, models and tools said
//! - [`entry`]: one line of a session file, both ways (parse and encode)
//! - [`own`]: the entries that are gjc's own (`custom` with `gjc.*`)
//! - [`header`]: the first line
//! - [`tree`]: the skeleton of a session (no bodies), and [`Source`], through which folds read
//! - [`kind`], [`damage`]: what an entry is, and what is wrong with a line
//! - [`mod@env`]: clock, ids, folders and variables, made once in the binary and passed down
//!
//! Nothing here opens a file, reads a clock or knows the network. The formats are those of the pi / oh-my-pi / gajae-code
//! family, header version 3; unknown fields and types are kept and written back as they came ([`fields`]).

pub mod damage;
pub mod entry;
pub mod env;
pub mod fields;
pub mod header;
pub mod id;
pub mod kind;
pub mod label;
pub mod message;
mod names;
mod onepass;
pub mod own;
mod quote;
pub mod time;
pub mod tree;

pub use damage::{Damage, DamageKind};
pub use entry::{Body, Draft, Entry, ParentOf};
pub use env::{BoxFuture, Clock, Dirs, Env, Ids, Vars};
pub use fields::{Fields, JsonObject, RawFields};
pub use header::Header;
pub use id::{BlobRef, DeliveryId, EntryId, IdError, OpId, SessionId};
pub use kind::{Kind, KindSet};
pub use label::{Label, Level, Origin, UnknownLevel};
pub use message::{AssistantMessage, Block, Content, Message, StopReason, ToolResult, Usage, UserMessage};
pub use own::{
    ApprovalMode, Held, HeldBy, LeftOut, ModelRef, Own, Params, Part, RequestEnv, Scope, StartedJob, Thinking, Tier,
};
pub use time::Timestamp;
pub use tree::{
    At, Blobs, ContextPath, Leaf, Missing, NeedsIndex, Node, Ordinal, PathNode, PathNodes, Skeleton, Source,
};
