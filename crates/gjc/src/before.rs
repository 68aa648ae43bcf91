//! What a session ran with before: who goes on with it goes on with that, unless a person says otherwise.

use crate::failure::Failure;
use crate::providers::name_of;
use gjc_context::{Approved, Folds, ToolDef};
use gjc_entry::{ApprovalMode, Blobs, Env, Held, Leaf, ModelRef, Thinking};
use gjc_llm::scripted;
use gjc_log::fs::OsFs;
use gjc_log::{BlobStore, Reader};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What a session ran with when it was last used.
#[derive(Default)]
pub(crate) struct Before {
    /// The folder that it worked in.
    pub(crate) cwd: Option<PathBuf>,
    pub(crate) model: Option<String>,
    /// The model of plan mode, if one was chosen.
    pub(crate) plan: Option<String>,
    pub(crate) thinking: Option<Thinking>,
    /// As the family's entries name it.
    pub(crate) tier: Option<String>,
    pub(crate) tools: Option<Vec<String>>,
    pub(crate) approval: Option<ApprovalMode>,
    pub(crate) held: Option<Held>,
}

impl Before {
    /// From its last settings; nothing where it has none, or where their blobs are gone.
    pub(crate) fn read(env: &Env, path: &Path) -> Result<Self, Failure> {
        let reader = Reader::open_with(&OsFs, path, &env.dirs.agent)?.value;
        let cwd = Some(PathBuf::from(&reader.header().cwd)).filter(|cwd| !cwd.as_os_str().is_empty());
        let mut folds = Folds::default();
        let found = folds.get::<gjc_context::Settings>(&reader, Leaf::Current).cloned().unwrap_or_default();
        // What another program has chosen since counts, also where there are no settings of ours; but no script is played
        // because another program says so.
        let other = |model: &ModelRef| model.provider != scripted::API;
        let plan = found.planning().filter(other).map(|model| name_of(&model));
        let conversation = found.conversation().filter(|model| found.chosen.is_none() || other(model));
        let (thinking, tier) = (found.thinking.as_deref().and_then(Thinking::of), found.tier);
        let approval = folds.get::<Approved>(&reader, Leaf::Current).ok().and_then(|approved| approved.0);
        let Some(settings) = found.env else {
            return Ok(Self { cwd, plan, thinking, tier, approval, ..Self::default() });
        };
        let blobs = BlobStore::new(Arc::new(OsFs), Some(env.dirs.blobs()));
        let defs = blobs.get(&settings.tools).ok().and_then(|json| serde_json::from_slice::<Vec<ToolDef>>(&json).ok());
        Ok(Self {
            cwd,
            model: Some(name_of(&conversation.unwrap_or(settings.model))),
            plan,
            thinking: thinking.or(Some(settings.thinking)),
            tools: match settings.all_tools {
                shown if shown.is_empty() => defs.map(|defs| defs.into_iter().map(|def| def.name).collect()),
                all => Some(all),
            },
            approval,
            held: settings.held,
            tier: tier.or_else(|| Some(settings.tier.as_str().into())),
        })
    }
}
