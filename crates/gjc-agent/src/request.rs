//! From the log to the bytes of the next request.

use crate::admit::{Fact, NotAdmitted, Session};
use crate::choice::Roles;
use crate::config::Config;
use gjc_context::{CacheMarks, Request, Settings, ToolDef, Violation, check, view};
use gjc_entry::{Body, Leaf, NeedsIndex, Own, RequestEnv, Thinking, Tier};
use gjc_flow::Labelled;
use gjc_llm::{Rendered, Unsupported};
use gjc_log::fs::Fs;
use gjc_protocol::Role;

/// Why no request could be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoRequest {
    #[error(transparent)]
    NotAdmitted(#[from] NotAdmitted),
    #[error(transparent)]
    NeedsIndex(#[from] NeedsIndex),
    #[error(transparent)]
    Violation(#[from] Violation),
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    #[error("the tool definitions cannot be written: {0}")]
    Tools(#[from] serde_json::Error),
}

/// Writes the settings half if it has changed, looks at the path, checks, renders.
pub(crate) fn next_request<F: Fs>(
    session: &mut Session<F>,
    config: &Config,
    roles: &Roles,
) -> Result<Rendered, NoRequest> {
    let env = settings(session, config, roles)?;
    let (log, folds) = session.parts();
    let (view, notes) = view(log, Leaf::Current, folds)?;
    session.note_unreadable(notes);
    let unedited = view.clone();
    let request = Request { env, cache: CacheMarks::of(&view), view };
    let checked = check(request, &unedited)?;
    Ok(config.provider.render(&checked, &*session.blobs())?)
}

/// The settings half of the next request, as an entry of the path: what was written last, or a new entry.
pub(crate) fn settings<F: Fs>(
    session: &mut Session<F>,
    config: &Config,
    roles: &Roles,
) -> Result<RequestEnv, NoRequest> {
    let shown = session.shown(config.answers);
    let tools: Vec<ToolDef> = config.tools.defs(&shown);
    let names: Vec<String> = config.tools.names().into_iter().map(Into::into).collect();
    let env = RequestEnv {
        system: session.put_blob(config.system_prompt(&config.env.clock.wall().day()).as_bytes()),
        tools: session.put_blob(&serde_json::to_vec(&tools)?),
        all_tools: if tools.len() == names.len() { Vec::new() } else { names },
        model: config.model.clone(),
        thinking: config.thinking,
        tier: config.tier,
        params: config.params.clone(),
        renderer: config.provider.renderer(),
        held: config.held,
    };
    let (log, folds) = session.parts();
    let found = folds.get::<Settings>(log, Leaf::Current)?;
    let written = found.env.as_ref() == Some(&env);
    let (thinking, tier) = (found.thinking.clone(), found.tier.clone());
    let (conversation, plan, named) = (found.conversation(), found.plan.clone(), found.model.clone());
    // Other programs of the family know all of these by their entries; in a new session the model stands in the answers.
    let ours = roles.model_for(Role::Default).model.clone();
    let before = conversation.unwrap_or_else(|| env.model.clone());
    // A wire that nobody knows yet is no other one.
    let other =
        (&ours.provider, &ours.id) != (&before.provider, &before.id) || !["", &*ours.api].contains(&&*before.api);
    // Settings of plan mode do not say whose the conversation is.
    let unsaid = env.model != ours && named.as_ref() != Some(&(ours.provider.clone(), ours.id.clone()));
    if other || unsaid {
        session.admit_own(Body::ModelChange { provider: ours.provider, model: ours.id, role: None })?;
    }
    if let Some(chosen) = roles.plan()
        && plan.as_ref() != Some(&chosen)
    {
        let (provider, model) = chosen;
        session.admit_own(Body::ModelChange { provider, model, role: Some("plan".into()) })?;
    }
    if thinking.as_deref().unwrap_or(Thinking::Off.as_str()) != env.thinking.as_str() {
        session.admit_own(Body::ThinkingLevelChange { level: Some(env.thinking.as_str().into()) })?;
    }
    if tier.and_then(|word| Tier::of_family(&word, &env.model.provider)).unwrap_or_default() != env.tier {
        let tier = Some(env.tier.as_str().into()).filter(|_| env.tier != Tier::Auto);
        session.admit_own(Body::ServiceTierChange { tier })?;
    }
    let (label, now) = (config.system_label, session.labels().label());
    if !written {
        session.admit(Labelled::new(Fact::new(Body::Own(Own::Env(env.clone()))), label))?;
    } else if now.join(label) != now {
        // It is sent with every request: what a typed prompt has restored is lost again.
        session.admit(Labelled::new(Fact::new(Body::Own(Own::Taint)), label))?;
    }
    Ok(env)
}
